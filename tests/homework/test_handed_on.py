"""Is a right answer handed on in the form that the notebook's next cells need?"""

import numpy as np
import pytest
import torch

from homework import handed_on, marking, turn
from tests.homework.test_judged import new_kernel, written  # noqa: F401 a fixture
from tests.homework.test_turn import ALL

PLAIN = [(unit, name) for unit, name in ALL if not hasattr(turn.exercise_of(unit, name), "launch")]
exercises = pytest.mark.parametrize("unit, name", PLAIN, ids=[f"{u}-{n}" for u, n in PLAIN])
FORMS = dict(
    lists=lambda x: x.tolist(), numpy=lambda x: x.detach().numpy(), detached=lambda x: x.detach()
)


def dressed(own, form):
    """The course's answer as a learner's, each tensor in another form."""

    def each(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(each, value))
        return form(value) if torch.is_tensor(value) else value

    def answer(*inputs):
        return each(own(*inputs))

    answer.__name__ = own.__name__
    return answer


def cases(exercise):
    return [case for part in exercise.parts for case in exercise.cases(part, marking.PUBLIC)]


@exercises
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_handed_on_as_the_courses_or_refused_for_its_gradient(
    unit, name, form, capsys
):
    own, exercise = turn.solution(unit, name), turn.exercise_of(unit, name)
    given = turn.your_turn(unit, dressed(own, FORMS[form]))
    said = capsys.readouterr().out
    if name in handed_on.LEARNS.get(unit, ()):
        assert given is own and handed_on.RIGHT + handed_on.CUT in said
        return
    assert "The notebook goes on with yours." in said
    for case in cases(exercise):
        mine, theirs = (f(*handed_on.copies(case)) for f in (given, own))
        assert handed_on.fits(mine, theirs), (mine, theirs)
        same(mine, theirs)


def same(mine, theirs):
    if isinstance(theirs, (list, tuple)):
        for pair in zip(mine, theirs, strict=True):
            same(*pair)
    elif torch.is_tensor(theirs):
        torch.testing.assert_close(mine.detach(), theirs.detach(), equal_nan=True)
    else:
        assert mine == pytest.approx(theirs)


@pytest.mark.parametrize("unit", handed_on.LEARNS)
def test_where_a_gradient_is_asked_for_the_courses_own_answer_has_one(unit):
    for name in handed_on.LEARNS[unit]:
        own, exercise = turn.solution(unit, name), turn.exercise_of(unit, name)
        for case in cases(exercise):
            assert max(g.abs().max() for g in handed_on.gradients(own, case)) > 0, name


IN_PLACE = """
def forward(self, ids):
    x = norm(self.embed(ids))
    v1 = None
    for n, layer in enumerate(self.layers):
        h = norm(x)
        v = self.value(n, h, v1, ids)
        v1 = v if n == 0 else v1
        x += layer.attention(h, v)
        x += layer.mlp(norm(x))
    return self.scores(x)
"""
HALF = """
def attention(q, k, v):
    T, S = q.shape[1], k.shape[1]
    seen = torch.ones(S, S).tril().bool()[S - T:]
    z = torch.einsum("bthd,bshd->bhts", q, k) / q.shape[-1] ** 0.5
    a = z.masked_fill(~seen, -torch.inf).softmax(-1)
    return torch.einsum("bhts,bshd->bthd", a.detach(), v)
"""


ROOT_SQUARED = """
def norm(x):
    rms = x.square().mean(-1, keepdim=True).sqrt()
    return x / (rms**2 + torch.finfo(x.dtype).eps).sqrt()
"""


@pytest.mark.parametrize(
    "unit, code, told",
    [
        ("nb02", IN_PLACE, handed_on.IN_PLACE),
        ("nb01", HALF, handed_on.UNREACHED.format("`k` and `q`")),
        ("nb02", ROOT_SQUARED, handed_on.ENDLESS),
    ],
)
def test_an_answer_through_which_nothing_can_be_learned_is_told_why(unit, code, told, capsys):
    answer = written(code)
    given = turn.your_turn(unit, answer)
    said = capsys.readouterr().out
    assert given is turn.solution(unit, answer.__name__) and handed_on.RIGHT + told in said


def test_an_answer_that_takes_plain_numbers_alone_is_refused_where_they_are_learned(capsys):
    answer = written(
        "def with_table(v, table, ids, a, b):\n    return torch.add(a * v, table[ids], alpha=b)"
    )
    assert turn.your_turn("nb06", answer) is turn.solution("nb06", "with_table")
    assert handed_on.RIGHT + handed_on.LEARNED_NUMBER in capsys.readouterr().out


def test_a_term_whose_number_is_0_may_be_left_out(capsys):
    answer = written(
        "def enter_layer(x, x0, early, r, z, w):\n"
        "    x = x + w * early if w else x\n    return r * x + z * x0"
    )
    assert turn.your_turn("nb06", answer) is answer, capsys.readouterr().out


UNTAUGHT = """
def value(self, n, h, v1, ids):
    return self.layers[n].value(h) + self.tables[n](ids).detach()
"""
TWICE = """
def row_8(n, chosen, h, x0, W):
    return norm(x0 if n in chosen else h) @ W.T
"""


@pytest.mark.parametrize(
    "unit, code, told",
    [
        ("nb06", UNTAUGHT, handed_on.UNREACHED.format("a weight of `self`")),
        ("nb09", TWICE, handed_on.ANOTHER),
    ],
)
def test_a_table_that_does_not_learn_and_a_norm_done_twice_have_other_gradients(
    unit, code, told, capsys
):
    answer = written(code)
    assert turn.your_turn(unit, answer) is turn.solution(unit, answer.__name__)
    assert handed_on.RIGHT + told in capsys.readouterr().out


@pytest.mark.parametrize("cut", ["a.detach()", "torch.tensor(a.tolist())", "a.data.clone()"])
def test_shares_that_could_not_learn_are_refused_by_their_name(cut, capsys):
    answer = written(
        "def learned_mix(v, v1, a, b):\n"
        f"    return ({cut})[:, None] * v + torch.stack([b[:, None] * x for x in v1])"
    )
    assert turn.your_turn("nb04", answer) is turn.solution("nb04", "learned_mix")
    assert handed_on.RIGHT + handed_on.UNREACHED.format("`a`") in capsys.readouterr().out


def test_first_values_that_could_not_learn_are_refused(capsys):
    answer = written(
        "def neutreno(A, v, v1, lam):\n"
        "    return (A @ v.transpose(1, 2)).transpose(1, 2) + lam * (v1.detach() - v)"
    )
    assert turn.your_turn("nb04", answer) is turn.solution("nb04", "neutreno")
    assert handed_on.RIGHT + handed_on.UNREACHED.format("`v1`") in capsys.readouterr().out


ROWS = """
def by_pairs(a, v, qR, kR):
    return [[a[i] @ (v + qR[i] * kR)[:, c] for c in range(v.shape[1])] for i in range(len(a))]
"""


def test_rows_in_lists_are_handed_on_as_a_tensor_with_the_gradient_of_each(capsys):
    given, own = turn.your_turn("nb07", written(ROWS)), turn.solution("nb07", "by_pairs")
    case = cases(turn.exercise_of("nb07", "by_pairs"))[-1]
    assert "The notebook goes on with yours." in capsys.readouterr().out
    same(*(torch.stack(handed_on.gradients(f, case)[1:]) for f in (given, own)))
    assert given(*handed_on.copies(case)).shape == (5, 4)


def test_what_is_handed_on_is_still_the_learners(capsys):
    """In a second check it is praised again; its source is the learner's."""
    mask = dressed(turn.solution("nb01", "causal_mask"), lambda x: x.numpy())
    given = turn.your_turn("nb01", mask)
    assert given is not mask and turn.plain(given) is mask and turn.your_turn("nb01", given)
    assert capsys.readouterr().out.count("goes on with yours") == 2


def test_numbers_have_the_type_and_the_place_of_what_came_in():
    double = handed_on.in_the_form_of(torch.zeros(1), lambda x: (2 * np.asarray(x)).tolist())
    for kind in (torch.float32, torch.float64):
        assert double(torch.ones(3, dtype=kind)).dtype == kind
    many = handed_on.in_the_form_of([0], lambda n: (x for x in range(n)))
    assert many(3) == [0, 1, 2] and many(0) == []
    assert handed_on.in_the_form_of(0.0, lambda: torch.tensor(0.5))() == 0.5
