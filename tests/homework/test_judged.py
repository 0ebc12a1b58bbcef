"""Nothing right is refused, nothing forbidden is taken, nothing false is said: case by case."""

import inspect
from collections import Counter

import numpy as np
import pytest
import torch

from homework import turn
from homework.in_notebooks import kernels
from homework.mistakes import written


@pytest.fixture(autouse=True)
def new_kernel(monkeypatch):
    for name, value in (("HEARD", Counter()), ("ANSWERED", {}), ("EXPLAINED", set())):
        monkeypatch.setattr(turn, name, value)


def tried(unit, code):
    function = written(code)
    return turn.attempt(turn.exercise_of(unit, turn.plain(function).__name__), function)


# ---- nothing right is refused --------------------------------------------------------------------

RIGHT = {
    "a tuple for a list": (
        "nb05",
        "def owners_of(layers, anchors):\n"
        "    return tuple(max(a for a in anchors if a <= n) for n in range(layers))",
    ),
    "a generator": (
        "nb05",
        "def owners_of(layers, anchors):\n"
        "    return (max(a for a in anchors if a <= n) for n in range(layers))",
    ),
    "a deque": (
        "nb05",
        "def owners_of(layers, anchors):\n"
        "    return deque(max(a for a in anchors if a <= n) for n in range(layers))",
    ),
    "a list of another class": (
        "nb05",
        "def owners_of(layers, anchors):\n"
        "    class Mine(list):\n        pass\n"
        "    return Mine(max(a for a in anchors if a <= n) for n in range(layers))",
    ),
    "a view of an input": (
        "nb05",
        "def shared_heads(rows, H):\n"
        "    B, S, G, D = rows.shape\n"
        "    many = rows[:, :, :, None].expand(B, S, G, H // G, D)\n"
        "    return many.reshape(B, S, H, D)",
    ),
    "an input itself": ("nb13", "def gate_as_dva(sigma, v):\n    return sigma - 1, v"),
    "a list for a pair": ("nb13", "def gate_as_dva(sigma, v):\n    return [sigma - 1, v]"),
    "lists of numbers for a tensor": (
        "nb12",
        "def holm(p):\n    order = sorted(range(len(p)), key=lambda i: p[i])\n"
        "    out, high = [0.0] * len(p), 0.0\n"
        "    for k, i in enumerate(order):\n"
        "        high = max(high, (len(p) - k) * p[i].item())\n"
        "        out[i] = min(1.0, high)\n"
        "    return out",
    ),
    "numbers of NumPy": (
        "nb12",
        "def paired_interval(plan, baseline, t):\n    d = (baseline - plan).double().numpy()\n"
        "    reach = t * d.std(ddof=1) / len(d) ** 0.5\n"
        "    return np.array([d.mean(), d.mean() - reach, d.mean() + reach])",
    ),
    "an array that NumPy made float64": (
        "nb12",
        "def holm(p):\n    p = p.numpy()\n    order = p.argsort()\n"
        "    up = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))\n"
        "    out = np.empty_like(up)\n    out[order] = np.minimum(up, 1)\n    return out",
    ),
    "a list of numbers": (
        "nb12",
        "def paired_interval(plan, baseline, t):\n    d = baseline - plan\n"
        "    reach = t * d.std() / len(d) ** 0.5\n"
        "    return [d.mean(), d.mean() - reach, d.mean() + reach]",
    ),
    "rows in a list": (
        "nb01",
        "def causal_mask(T, S):\n    return [[s <= t + S - T for s in range(S)] for t in range(T)]",
    ),
    "a stack of values": (
        "nb09",
        "def four_ways(V, other, a, b):\n"
        "    return torch.stack([a * V, a * other, (V + other) / 2, a * V + b * other])",
    ),
}


RIGHT |= {
    "the closed formula": (
        "nb06",
        "def furthest(lr, steps, falling):\n"
        "    return lr * (steps - falling) + lr * (falling + 1) / 2",
    ),
    "divided by falling": (
        "nb06",
        "def furthest(lr, steps, falling):\n"
        "    return sum(lr * min(1, (steps - i) / falling) for i in range(steps))",
    ),
}


@pytest.mark.parametrize("how", RIGHT)
def test_what_is_right_is_taken_in_any_container(how):
    found = tried(*RIGHT[how])
    assert found.state == "ok", found


def test_whole_numbers_answer_for_real_ones_where_they_are_equal():
    from homework.compare import compare

    assert not compare([np.array([1, 2])], [np.array([1.0, 2.0])], "float32")
    assert "wanted dtype float32" in compare([np.array([1, 2])], [np.array([1.0, 2.5])], "float32")
    assert "wanted dtype int64" in compare([np.array([1.0, 2.0])], [np.array([1, 2])], "float32")


# ---- nothing forbidden is taken ------------------------------------------------------------------

FORBIDDEN = {
    "torch's own softmax": (
        "nb00",
        "def softmax(z):\n    return torch.softmax(z, -1)",
        "by hand|torch.softmax made them",
    ),
    "keys made": (
        "nb13",
        "def absorbed_scores(q, latent, up):\n"
        "    keys = torch.einsum('sc,hdc->hsd', latent, up)\n"
        "    return torch.einsum('thd,hsd->hts', q, keys)",
        "you made the keys",
    ),
    "keys made in a loop": (
        "nb13",
        "def absorbed_scores(q, latent, up):\n"
        "    rows = [q[:, h] @ (latent @ up[h].T).T for h in range(len(up))]\n"
        "    return torch.stack(rows)",
        "you made the keys",
    ),
    "values gathered": (
        "nb10",
        "def read_by_token(weights, ids, table):\n"
        "    return torch.einsum('bhs,bshd->bhd', weights, table[ids])",
        "you made the values",
    ),
    "values by one-hot": (
        "nb10",
        "def read_by_token(weights, ids, table):\n"
        "    hot = torch.nn.functional.one_hot(ids, len(table)).to(table)\n"
        "    rows = torch.einsum('bsv,vhd->bshd', hot, table)\n"
        "    return torch.einsum('bhs,bshd->bhd', weights, rows)",
        "you made the values",
    ),
    "pairs": (
        "nb07",
        "def two_streams(a, v, qR, kR):\n"
        "    pairs = v[None] + qR[:, None] * kR[None]\n"
        "    return (a[:, :, None] * pairs).sum(1)",
        "the pairs are what is to be avoided",
    ),
    "no pairs yet": (
        "nb07",
        "def by_pairs(a, v, qR, kR):\n    return a @ v + qR * (a @ kR)",
        "already without the pairs",
    ),
    "no pairs yet, row by row": (
        "nb07",
        "def by_pairs(a, v, qR, kR):\n"
        "    out = torch.empty_like(qR)\n"
        "    for i in range(len(a)):\n        out[i] = a[i] @ v + qR[i] * (a[i] @ kR)\n"
        "    return out",
        "already without the pairs",
    ),
}


@pytest.mark.parametrize("how", FORBIDDEN)
def test_what_the_stub_forbids_is_told_though_the_numbers_are_right(how):
    unit, code, says = FORBIDDEN[how]
    found = tried(unit, code)
    assert found.state == "forbidden" and found.why.startswith("the numbers are right, but ")
    assert any(words in found.why for words in says.split("|")), found


ALLOWED = {
    "one-hot weights": (
        "nb10",
        "def read_by_token(weights, ids, table):\n"
        "    hot = torch.nn.functional.one_hot(ids, len(table)).to(table)\n"
        "    return torch.einsum('bhs,bsv,vhd->bhd', weights, hot, table)",
    ),
    "three at once": (
        "nb13",
        "def absorbed_scores(q, latent, up):\n"
        "    return torch.einsum('thd,hdc,sc->hts', q, up, latent)",
    ),
    "head by head": (
        "nb13",
        "def absorbed_scores(q, latent, up):\n"
        "    out = torch.zeros(len(up), len(q), len(latent), dtype=q.dtype)\n"
        "    for h in range(len(up)):\n        out[h] = q[:, h] @ up[h] @ latent.T\n"
        "    return out",
    ),
    "pairs that are weighed first": (
        "nb07",
        "def by_pairs(a, v, qR, kR):\n"
        "    weighed = a[:, :, None] * kR\n"
        "    return a @ v + (weighed * qR[:, None]).sum(1)",
    ),
    "pairs of NumPy": (
        "nb07",
        "def by_pairs(a, v, qR, kR):\n"
        "    a, v, qR, kR = (x.numpy() for x in (a, v, qR, kR))\n"
        "    return torch.tensor((a[:, :, None] * (v + qR[:, None] * kR)).sum(1))",
    ),
    "one stream twice as wide": (
        "nb07",
        "def two_streams(a, v, qR, kR):\n"
        "    both = a @ torch.cat([v, kR], -1)\n"
        "    first, second = both.chunk(2, -1)\n"
        "    return first + qR * second",
    ),
}


@pytest.mark.parametrize("how", ALLOWED)
def test_what_keeps_to_its_stub_is_right(how):
    found = tried(*ALLOWED[how])
    assert found.state == "ok", found


# ---- kernels: the trace decides ------------------------------------------------------------------


def changed(name, *pairs, unit="nb11a"):
    """The course's kernel with some of its text replaced, as a learner would have it."""
    code = inspect.getsource(turn.plain(turn.solution(unit, name)))
    for old, new in pairs:
        assert old in code, (name, old)
        code = code.replace(old, new)
    return code


TO_THE_END = ("tl.minimum((tl.program_id(0) + 1) * M, T)", "T")
TWO_PASSES = """@triton.jit
def online(x, out, C, N: tl.constexpr):
    row, top = tl.program_id(0), tl.full([1], float("-inf"), tl.float32)
    for start in tl.range(0, C, N):
        lane = start + tl.arange(0, N)
        tile = tl.load(x + row * C + lane, mask=lane < C, other=float("-inf"))
        top = tl.maximum(top, tl.max(tile, 0))
    total = tl.zeros([1], tl.float32)
    for start in tl.range(0, C, N):
        lane = start + tl.arange(0, N)
        tile = tl.load(x + row * C + lane, mask=lane < C, other=float("-inf"))
        total += tl.sum(tl.exp(tile - top), 0)
    tl.store(out + row + tl.arange(0, 1), top + tl.log(total))
"""
ALL_AT_ONCE = """@triton.jit
def online(x, out, C, N: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, 16)
    tile = tl.load(x + row * C + lane, mask=lane < C, other=float("-inf"))
    top = tl.max(tile, 0)
    tl.store(out + row + tl.arange(0, 1), top + tl.log(tl.sum(tl.exp(tile - top), 0)))
"""
KERNELS = {
    "flash loads the future": (
        changed("flash", TO_THE_END),
        "loads keys up to 63, and its last query is 31",
    ),
    "gather loads the future": (changed("gather", TO_THE_END), "the rest is future"),
    "ids without other": (
        changed("gather", ("mask=key < T, other=0)", "mask=key < T)")),
        "idle lanes of your load of ids were told nothing",
    ),
    "online in two passes": (TWO_PASSES, "loads place 0 of x 2 times: one pass over x is wanted"),
    "online all at once": (ALL_AT_ONCE, "you load 16 numbers of x at a time: N is 4"),
    "gradients from query 0": (
        changed(
            "grad_keys", ("tl.range(tl.program_id(0) * N // M * M, T, M)", "tl.range(0, T, M)")
        ),
        "program 1 loads queries from 0 on, and its first key is 32",
    ),
    "the gate once a lane": (
        changed("add_rows", ("tl.load(gate + t)", "tl.load(gate + t + 0 * lane)")),
        "loads place 0 of gate 8 times: one pass over gate is wanted",
    ),
    "a store in every turn": (
        changed("matmul", ("    tl.store(", "        tl.store(")),
        "program (0, 0) stores to place 0 of out 2 times: store once",
    ),
    "the sum through the memory": (
        changed(
            "add",
            ("    total =", "    tl.store(out + place, 0.0, mask=mine)\n    total ="),
            ("total, mask", "total + tl.load(out + place, mask=mine), mask"),
        ),
        "you load out again",
    ),
}


@pytest.mark.parametrize("how", KERNELS)
def test_the_trace_says_what_a_kernel_loads(how):
    code, says = KERNELS[how]
    found = tried("nb11a", code)
    assert found.state == "forbidden" and says in found.why, found


def test_an_address_made_of_an_untold_id_is_outside():
    code = changed(
        "gather",
        ("mask=key < T, other=0)", "mask=key < T)"),
        (
            "table + row[:, None] * D + d[None, :], mask=key[:, None] < T, other=0.0",
            "table + row[:, None] * D + d[None, :]",
        ),
    )
    found = tried("nb11a", code)
    assert found.state == "raised" and "of table, which has" in found.why, found


NEEDS = {
    "another head": (
        "nb11b",
        "mass_of_runs",
        [("(key * H + h)", "(key + h)")],
        "program (0, 0) never loads k[1, 0, 0] (place 32), which it needs, and uses k[0, 1, 0]",
    ),
    "no loop to the end": (
        "nb11b",
        "combine",
        [("mask=s < splits, other", "mask=s < splits - 1, other")],
        "program 0 never loads lse[3, 0] (place 6), which it needs: right shape",
    ),
    "the next stretch": (
        "nb11b",
        "split",
        [("tl.minimum((s + 1) * each, S)", "S")],
        "program (0, 0) uses k[5, 0, 0] (place 160), which it should not",
    ),
    "a step too short": (
        "nb11a",
        "online",
        [("tl.range(0, C, N)", "tl.range(0, C)")],
        "program 0 loads x[0, 3] (place 3) more often than x[0, 0] (place 0): its tiles overlap",
    ),
    "places that are not its own": (
        "nb11a",
        "add",
        [("out + place", "out + n - 1 - place")],
        "program 0 never writes to out[0], which is its own",
    ),
}


@pytest.mark.parametrize("how", NEEDS)
def test_a_wrong_kernel_is_told_which_number_it_lacks_and_which_is_not_its_own(how):
    unit, name, edits, says = NEEDS[how]
    found = tried(unit, changed(name, *edits, unit=unit))
    assert found.state == "wrong" and found.why.startswith(says), found


def test_a_number_that_is_loaded_and_changes_nothing_is_not_held_against_a_kernel():
    found = tried("nb11a", changed("flash", TO_THE_END, ("tl.log(total)", "3 * tl.log(total)")))
    assert found.why.startswith("result 2: right shape, wrong numbers"), found


def test_no_program_stored_is_said_only_if_none_did():
    code = changed("softmax", ("row - tl.max(row, 0)", "row"))
    found = tried("nb11a", code)
    assert "both end in NaN: subtract the row's maximum" in found.why, found
    blank, made = kernels.empty(4).numpy(), np.array([0.0, np.nan, np.inf - np.inf], "f4")
    assert kernels.unstored(blank).all() and not kernels.unstored(made).any()
    calculated = torch.zeros(4) / torch.zeros(4)
    assert not kernels.unstored(calculated.numpy()).any()


def test_idle_lanes_that_were_told_nothing_are_not_taken_for_a_missing_maximum():
    code = changed("softmax", (', other=float("-inf")', ""))
    found = tried("nb11a", code)
    assert "your idle lanes were told nothing" in found.why, found


def test_an_answer_that_no_maximum_saves_is_named():
    code = """@triton.jit
def combine(part, lse, gain, out, H, splits, PADDED: tl.constexpr, D: tl.constexpr):
    h, s, d = tl.program_id(0), tl.arange(0, PADDED), tl.arange(0, D)
    norm = tl.load(lse + s * H + h, mask=s < splits, other=float("-inf"))
    weight = tl.exp(norm)
    at = (s * H + h)[:, None] * D + d[None, :]
    means = tl.load(part + at, mask=s[:, None] < splits, other=0.0)
    mean = tl.sum(weight[:, None] * means, 0) / tl.sum(weight, 0)
    tl.store(out + h * D + d, mean * tl.load(gain))
"""
    found = tried("nb11b", code)
    assert "exp(-200) is 0 in fp32" in found.why, found


# ---- nothing false is said -----------------------------------------------------------------------

ADAMW = """def adamw_step(p, g, m, s, step, lr=0.01, betas=(0.8, 0.95), eps=1e-10, decay=0.1):
    m = betas[0] * m + (1 - betas[0]) * g
    s = betas[1] * s + (1 - betas[1]) * g * g
    mean, square = m / (1 - betas[0] ** step), s / (1 - betas[1] ** step)
    return {}, m, s
"""


@pytest.mark.parametrize(
    "line",
    [
        "p - lr * mean / (square.sqrt() + eps)",
        "p * (1 - decay) - lr * mean / (square.sqrt() + eps)",
        "(p - lr * mean / (square.sqrt() + eps)) * (1 - lr * decay)",
        "0 * p",
    ],
)
def test_a_mistake_that_overflows_explains_nothing(line):
    found = tried("nb02", ADAMW.format(line))
    assert found.state == "wrong"
    assert "a step behind" not in found.why and "not that of their squares" not in found.why, found


MASK = """def two_layer_attention(q, k, v, k_m, v_m):
    k, v = torch.cat([k, k_m], 1), torch.cat([v, v_m], 1)
    T, S = q.shape[1], k.shape[1]
    scores = torch.einsum('bthd,bshd->bhts', q, k) / q.shape[-1] ** 0.5
    seen = torch.arange(S) <= torch.arange(T)[:, None] + S - T
    a = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return torch.einsum('bhts,bshd->bthd', a, v)
"""
RANKED = """def hide(ids, dice, ordinary, others, mask):
    x, y = ids.clone(), torch.full_like(ids, -100)
    for b in range(len(ids)):
        at = ordinary[b].nonzero()[:, 0]
        at = at[dice[b, at].argsort()][: round(0.15 * len(at))]
        most, nearly = round(0.8 * len(at)), round(0.9 * len(at))
        y[b, at] = ids[b, at]
        x[b, at[:most]] = mask
        x[b, at[most:nearly]] = others[b, at[most:nearly]]
    return x, y
"""
GREEDY = """def best_pair(begin, end, inside):
    begin = begin.masked_fill(~inside, -torch.inf)
    first = begin.argmax().item()
    end = end.masked_fill(~inside, -torch.inf)
    return first, first + end[first:].argmax().item()
"""
ALONE = """def best_pair(begin, end, inside):
    begin, end = (x.masked_fill(~inside, -torch.inf) for x in (begin, end))
    return begin.argmax().item(), end.argmax().item()
"""
SAID = {
    "01's mask on both": ("nb04", MASK, "notebook 01's mask for T queries and 2 T keys"),
    "half of one": (
        "nb04",
        "def resformer_values(V):\n    return V[-1] / 2 + V[0]",
        "only one of the two is halved",
    ),
    "ranked dice": ("nb08", RANKED, "you sorted the dice"),
    "a greedy span": ("nb08", GREEDY, "another pair may have the larger SUM"),
    "ends by themselves": ("nb08", ALONE, "your answer ends before it begins"),
}


@pytest.mark.parametrize("how", SAID)
def test_what_was_named_falsely_or_not_at_all_has_its_name(how):
    unit, code, says = SAID[how]
    found = tried(unit, code)
    assert found.state == "wrong" and says in found.why, found


def test_an_infinite_mistake_explains_only_the_same_infinity():
    from homework import diagnosis

    below = np.full(3, -np.inf)
    for given in (np.full(3, np.inf, "float32"), np.full(3, np.nan, "float32")):
        got, found = diagnosis.in_range(given, below)
        assert not (got == found).any()
    got, found = diagnosis.in_range(below.astype("float32"), below)
    assert (got == found).all()
    overflowed = np.array([-np.inf, np.inf, -np.inf])
    got, found = diagnosis.in_range(np.full(3, np.nan, "float32"), overflowed)
    assert (got == found).all(), "inf less inf is what float32 has there"


def test_an_empty_sums_logarithm_is_called_minus_infinity(monkeypatch, recwarn):
    from homework.in_notebooks.solutions import nb11b

    monkeypatch.setenv("HOMEWORK_ROAD", "torch")
    ended = "top + tl.log(safe)"
    kernel = inspect.getsource(getattr(nb11b.split, "fn", nb11b.split))
    assert ended in kernel
    found = tried("nb11b", kernel.replace(ended, f"tl.where(total > 0.0, {ended}, 1.0)"))
    assert "wanted -inf, got 1" in found.why and not recwarn.list
