"""Cards and the page for a class, and what explains an answer: true sentences, made harmless."""

import numpy as np
import pytest

from homework import diagnosis, grade, marking, reports
from homework.marking import Part, Row, Unit, normals
from tests.homework.classroom import HONEST, UNIT

unit = Unit("hw77_toy", "A toy", "x")


@unit.exercise(
    Part("any", 5, lambda r: normals(r, (4, 5), (4, 5))),
)
def distance(x, y):
    """(4,), and its mean over 2."""
    far = ((x - y) ** 2).sum(1) ** 0.5
    return far, far.mean(keepdims=True) / 2


unit.mistakes("""
hint: Subtract first.
5 | take the root
    ** 0.5 =>
5 | the root is the power of a half
    0.5 => 3
5 | subtract
    x - y => x + y
""")
EXERCISE = unit.exercises["distance"]
PART = EXERCISE.parts[0]


def told(answer, hidden=False):
    """What is said of an answer (a function of the inputs) in all cases."""
    cases = EXERCISE.cases(PART, 0)
    answers = [
        [np.asarray(x, inputs[0].dtype) for x in answer(*(z.astype("f8") for z in inputs))]
        for inputs in cases
    ]
    return EXERCISE.verdict(PART, 0, [dict(state="ok")] * len(cases), answers, hidden)[1]


def squares(x, y):
    found = np.square(x - y).sum(1)
    return found, found.mean(keepdims=True) / 2


@pytest.mark.parametrize("hidden", [False, True])
def test_one_mistake_two_at_once_and_results_in_each_others_place_are_told(hidden):
    oracle = EXERCISE.oracle
    assert told(oracle, hidden) == ""
    assert told(squares, hidden) == "take the root"
    both = told(lambda x, y: squares(x, -y), hidden)
    assert both == "two things at once. First: take the root. Second: subtract"
    swapped = told(lambda x, y: oracle(x, y)[::-1], hidden)
    assert swapped == "your results 1 and 2 are right and in each other's place"


def test_a_factor_is_told_to_the_learner_and_not_by_hidden_grading():
    three = lambda x, y: tuple(3 * z for z in EXERCISE.oracle(x, y))
    assert told(three).startswith("every number is 3 times the wanted one")
    assert "3 times" not in told(three, hidden=True)
    # one number that does not follow the others, and it is not said
    off = lambda x, y: (3 * EXERCISE.oracle(x, y)[0], 2 * EXERCISE.oracle(x, y)[1])
    assert "times the wanted one" not in told(off)


def test_pairs_edit_no_text_twice():
    made = diagnosis.pairs(tuple(EXERCISE.wrongs))
    assert [wrong.name for wrong in made] == [
        "** 0.5 => + x - y => x + y",
        "0.5 => 3 + x - y => x + y",
    ]


def test_what_hangs_on_the_layout_is_told_and_only_then(tmp_path):
    import torch

    def tidy_only(x, y):
        if not x.is_contiguous():
            x = x + 1
        d = (x - y).square().sum(1).sqrt()
        return d, d.mean(0, keepdim=True) / 2

    row = unit.mark(dict(distance=tidy_only), {}, EXERCISE, PART)
    assert row.state == "wrong" and row.why == marking.LAYOUT

    def always(x, y):
        d = (x - y).square().sum(1).sqrt() + 1
        return d, d.mean(0, keepdim=True) / 2

    assert unit.mark(dict(distance=always), {}, EXERCISE, PART).why != marking.LAYOUT
    assert torch.is_tensor(marking.stand_in(EXERCISE)(torch.ones(4, 5), torch.zeros(4, 5))[0])


def rows_of(*earned):
    names = [(exercise.name, part) for exercise, part in UNIT.parts()]
    return [
        Row(name, part.name, part.points, "ok" if good else "wrong", "" if good else "shape (3, 4)")
        for (name, part), good in zip(names, earned, strict=True)
    ]


def test_the_page_for_a_class_has_means_and_the_commonest_sentences():
    count = len(UNIT.parts())
    graded = dict(anna=rows_of(*[True] * count), ben=rows_of(*[False] * count), carla=None)
    page = reports.summary(UNIT, graded)
    assert "2 graded, 1 not graded: grade again" in page
    assert f"Mean {UNIT.points / 2:.1f} of {UNIT.points}" in page
    exercise, part = UNIT.parts()[0]
    assert (
        f"| {exercise.name}: {part.name} | {part.points / 2:.1f}/{part.points} | 1 of 2 |" in page
    )
    assert f"| {exercise.name} | 1 | shape |" in page
    assert "graded" in reports.summary(UNIT, dict(carla=None))


def test_a_name_on_a_card_is_harmless():
    card = reports.card(
        UNIT, rows_of(*[True] * len(UNIT.parts())), "a|b <img src=x> `c` [d](e)\n# f"
    )
    head = card.splitlines()[2]
    assert "<" not in head and "\\|" in head and "\\[d\\]" in head and "# f" in head
    assert not any(line.startswith("# f") for line in card.splitlines())


def test_a_class_gets_a_card_each_and_a_browsers_number_is_no_obstacle(
    tmp_path, way, capsys, monkeypatch
):
    """What is read earns everything: nothing runs, since the sandbox has tests of its own."""
    right = lambda unit, *rest: [
        Row(e.name, part.name, part.points, "ok", "") for e, part in unit.parts()
    ]
    monkeypatch.setattr(grade, "grade", right)
    handed, out = tmp_path / "handed", tmp_path / "out"
    names = dict(anna="kv_cache (1).py", ben="kv_cache.py", carla="other.py", dan="kv_cache-2.py")
    for who, name in names.items():
        (handed / who).mkdir(parents=True)
        (handed / who / name).write_text(HONEST)
    (handed / "dan" / "more.py").write_text("")
    assert grade.main(["hw03", str(handed), "--isolation", way, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "100 of 100  kv_cache (1).py was graded" in said.split("ben")[0]
    assert "0 of 100  kv_cache.py missing; found other.py" in said
    assert "100 of 100  kv_cache-2.py was graded" in said
    cards = {path.name: path.read_text() for path in (out / "cards").iterdir()}
    assert set(cards) == {"anna.md", "ben.md", "carla.md", "dan.md"}
    assert "anna: **100 of 100 points**" in cards["anna.md"]
    assert "4 graded" in (out / "grades.md").read_text()
