"""A wrong answer that nobody named hears how its numbers stand to those wanted: only what is so."""

import pytest

from tests.homework.test_judged import new_kernel, tried  # noqa: F401 a fixture

TOLD = {
    "a term is missing": (
        "nb06",
        "def enter_layer(x, x0, early, r, z, w):\n    return r * (x + w * early)",
        "your numbers lack: ",
    ),
    "in reverse order": (
        "nb05",
        "def owners_of(layers, anchors):\n"
        "    return [max(a for a in anchors if a <= n) for n in range(layers)][::-1]",
        "your numbers are right, and in reverse order along axis 0",
    ),
    "turned": (
        "nb01",
        "def causal_mask(T, S):\n    return (torch.arange(S) <= torch.arange(S - T, S)[:, None]).T",
        "your numbers are right, and axes 0 and 1 are exchanged",
    ),
    "bent": (
        "nb03",
        "def similarity(h):\n    u, T = torch.nn.functional.normalize(h, dim=-1), h.shape[1]\n"
        "    return 1 - (u.sum(1).square().sum(-1) - T) / (T * T - T)",
        "those are one minus the wanted numbers",
    ),
    "taken together": (
        "nb03",
        "def similarity(h):\n    u, T = torch.nn.functional.normalize(h, dim=-1), h.shape[1]\n"
        "    return ((u.sum(1).square().sum(-1) - T) / (T * T - T)).mean()",
        "that is the mean of all the wanted numbers",
    ),
    "rows off by a factor": (
        "nb00",
        "def softmax(z):\n    e = (z - z.amax(-1, keepdim=True)).exp()\n"
        "    return e / e.norm(dim=-1, keepdim=True)",
        "along the last axis your numbers stand in the right proportions",
    ),
    "rows off by the same factor": (
        "nb05",
        "def shared_heads(rows, H):\n    G = rows.shape[2]\n"
        "    return rows.repeat_interleave(H // G, 2) / H",
        "in each case all your numbers are one and the same multiple of the wanted: look at",
    ),
    "an input that does not matter": (
        "nb06",
        "def furthest(lr, steps, falling):\n    return lr * steps",
        "the rate falls in the last steps",  # a name comes first
    ),
    "another": (
        "nb04",
        "def neutreno(A, v, v1, lam):\n    return torch.einsum('bhts,bshd->bthd', A, v) + v1",
        "with another `lam` your answer stays the same: ",
    ),
}


@pytest.mark.parametrize("how", TOLD)
def test_what_is_so_is_said(how):
    unit, code, said = TOLD[how]
    assert tried(unit, code).why.startswith(said), tried(unit, code).why


def test_what_is_so_in_one_part_alone_is_not_said():
    """With one token A v is v, so what is returned there is v1; in a text it is not."""
    code = (
        "def neutreno(A, v, v1, lam):\n"
        "    return torch.einsum('bhts,bshd->bthd', A, v) - v + v1 + 0 * lam"
    )
    assert "as it came" not in tried("nb04", code).why


def test_an_input_that_matters_somewhere_is_not_called_idle():
    code = (
        "def learning_rate(step, steps, warmup, falls=.65, start=.025, end=.05):\n"
        "    return 1.0 if step <= .35 * steps else 0.5"
    )
    assert "depend on `step`" not in tried("nb02", code).why
    assert "depend on `steps`" not in tried("nb02", code).why


def test_whatever_grades_finds_it():
    """Gradescope gets a list of files, and none that they import may be missing."""
    import re

    from homework import gradescope, marking

    for part in gradescope.PARTS:
        text = (marking.HERE / part).read_text(encoding="utf-8")
        used = re.findall(r"^from homework\.(\w+) import", text, re.M)
        for names in re.findall(r"^from homework import (.+)$", text, re.M):
            used += names.split(", ")
        assert {f"{name}.py" for name in used} <= set(gradescope.PARTS), part
