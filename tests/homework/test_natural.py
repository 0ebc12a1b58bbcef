"""Slips of one line that a learner makes: how many have a name?

Whoever wrote this list knew the named ones, so its share is an upper bound of what learners meet.
"""

import inspect

import pytest

from homework import turn
from tests.homework.test_judged import new_kernel, tried  # noqa: F401 a fixture

# (unit, exercise, text of the solution, what a learner writes in its place)
SLIPS = [
    ("nb04", "resformer_values", "(V[-1] + V[0]) / 2", "V[-1] + V[0]"),
    ("nb04", "resformer_values", "(V[-1] + V[0]) / 2", "(V[-1] + V[-2]) / 2"),
    ("nb04", "resformer_values", "(V[-1] + V[0]) / 2", "V.mean(0)"),
    ("nb04", "resformer_values", "(V[-1] + V[0]) / 2", "V[-1] + V[0] / 2"),
    ("nb04", "resformer_values", "(V[-1] + V[0]) / 2", "(V[0] + V[1]) / 2"),
    ("nb04", "resformer_values", "(V[-1] + V[0]) / 2", "V[0].clone()"),
    ("nb04", "two_layer_attention", " / D**0.5", ""),
    ("nb04", "two_layer_attention", " / D**0.5", " / D"),
    ("nb04", "two_layer_attention", "softmax(-1)", "softmax(-2)"),
    ("nb04", "two_layer_attention", "[seen, seen]", "[seen, torch.ones_like(seen)]"),
    ("nb04", "two_layer_attention", "[v, v_m]", "[v_m, v]"),
    ("nb04", "two_layer_attention", "~both", "~torch.ones_like(both)"),
    ("nb04", "neutreno", "(v1 - v)", "v1"),
    ("nb04", "neutreno", "(v1 - v)", "(v - v1)"),
    ("nb04", "neutreno", "y + lam", "(1 - lam) * y + lam"),
    ("nb04", "neutreno", "bhts,bshd->bthd", "bhst,bshd->bthd"),
    ("nb04", "learned_mix", "a[:, None] * v + b[:, None] * v1", "a * v + b * v1"),
    ("nb04", "learned_mix", "b[:, None] * v1", "(1 - a[:, None]) * v1"),
    ("nb05", "owners_of", "a <= n", "a < n or a == 0"),
    ("nb05", "shared_heads", "rows.repeat_interleave(H // G, 2)", "rows.repeat(1, 1, H // G, 1)"),
    ("nb05", "bytes_a_token", "len(set(keys)) + len(set(values))", "len(keys) + len(values)"),
    ("nb05", "bytes_a_token", "len(set(keys)) + len(set(values))", "2 * len(set(keys))"),
    ("nb05", "bytes_a_token", "len(set(keys)) + len(set(values))", "len(set(keys + values))"),
    ("nb05", "bytes_a_token", " * size", ""),
    ("nb05", "deep_step", "[keys, k]", "[k, keys]"),
    ("nb05", "deep_step", " / q.shape[-1] ** 0.5", ""),
    ("nb06", "with_table", "table[ids]", "table[: ids.shape[1]].expand_as(v)"),
    ("nb06", "with_table", "a * v + b * e", "b * v + a * e"),
    ("nb06", "with_table", "a * v + b * e", "b * e"),
    ("nb06", "with_table", "a * v + b * e", "(a * v + b * e) / (a + b)"),
    ("nb06", "enter_layer", "r * x + z * x0", "r * (x + z * x0)"),
    ("nb06", "enter_layer", "x + w * early", "(1 - w) * x + w * early"),
    ("nb06", "enter_layer", "r * x + z * x0", "z * x + r * x0"),
    ("nb06", "share_of_lengths", "(a * x)", "x"),
    ("nb06", "share_of_lengths", "right / (left + right)", "left / (left + right)"),
    ("nb06", "share_of_lengths", ".norm(dim=-1), (b * y).norm(dim=-1)", ".norm(), (b * y).norm()"),
    (
        "nb06",
        "share_of_lengths",
        "(right / (left + right)).mean()",
        "right.sum() / (left + right).sum()",
    ),
    ("nb09", "row_8", "n in chosen", "n - 1 in chosen"),
    ("nb09", "row_8", "x0 if", "h + x0 if"),
    ("nb09", "four_ways", "(V + other) / 2", "V + other"),
    ("nb09", "four_ways", "a * other\n", "V + a * other\n"),
    ("nb09", "four_ways", "a * V + b * other", "b * V + a * other"),
    ("nb09", "equal_width", "hidden - extra", "hidden + extra"),
    ("nb09", "equal_width", "2 * width * layers", "width * layers"),
    ("nb09", "equal_width", "2 * width * layers", "2 * width"),
    ("nb09", "explained", " / (len(y) - len(times))", " / len(y)"),
    ("nb10", "bank_layer", "scale * torch", "torch"),
    ("nb10", "bank_layer", "softmax(-1)", "softmax(-2)"),
    ("nb10", "bank_layer", "gain * torch", "torch"),
    ("nb10", "bank_layer", " + S - T", ""),
    ("nb10", "cached_bytes", 'int("E" in layers)', 'layers.count("E")'),
    ("nb10", "cached_bytes", " * number", ""),
    ("nb10", "break_even", "batch * sum", "sum"),
    ("nb10", "break_even", "<= tables", "< tables"),
    ("nb10", "break_even", "min(T, row)", "T"),
    ("nb12", "paired_interval", " / len(d) ** 0.5", ""),
    ("nb12", "paired_interval", " / len(d) ** 0.5", " / len(d)"),
    ("nb12", "paired_interval", "d.std()", "d.std(correction=0)"),
    ("nb12", "paired_interval", "baseline - plan", "plan - baseline"),
    ("nb12", "sign_flips", "sums.abs() >= d.sum().abs()", "sums >= d.sum()"),
    ("nb12", "sign_flips", ">= d.sum().abs() * (1 - 1e-6)", "> d.sum().abs() * (1 + 1e-6)"),
    ("nb12", "holm", "times).cummax(0).values", "times)"),
    ("nb12", "holm", "torch.arange(len(p), 0, -1)", "len(p)"),
    ("nb12", "holm", "torch.arange(len(p), 0, -1)", "torch.arange(1, len(p) + 1)"),
    ("nb12", "holm", ".clamp(max=1)", ""),
    ("nb11a", "flash", " * scale  #", "  #"),
    ("nb11a", "flash", "key[None, :] <= t[:, None]", "key[None, :] < T"),
    ("nb11a", "flash", "total * shrink + tl.sum(e, 1)", "total + tl.sum(e, 1)"),
    ("nb11a", "flash", "sums * shrink[:, None]", "sums"),
    ("nb11a", "flash", "sums / total[:, None]", "sums"),
    ("nb11a", "online", "total * tl.exp(top - higher)", "total"),
    ("nb11a", "online", "top + tl.log(total)", "tl.log(total)"),
    ("nb11a", "softmax", "row - tl.max(row, 0)", "row"),
    ("nb11a", "softmax", "e / tl.sum(e, 0)", "e"),
    ("nb11a", "softmax", 'other=float("-inf")', "other=0.0"),
    ("nb11a", "gather", " * tl.load(gain)", ""),
    ("nb11a", "gather", "table + row", "table + key"),
    ("nb11a", "grad_keys", " - mean[:, None]", ""),
    ("nb11a", "grad_keys", "sum_k * scale", "sum_k"),
]
UNNAMED = ("right shape, wrong numbers", "wrong number")


def said(unit, name, right, instead):
    code = inspect.getsource(turn.plain(turn.solution(unit, name)))
    assert right in code, (unit, name, right)
    return tried(unit, code.replace(right, instead))


def test_four_in_five_natural_slips_have_a_name(note):
    silent = []
    for slip in SLIPS:
        found = said(*slip)
        assert found.state != "ok", slip
        if found.state == "wrong" and any(words in found.why[:60] for words in UNNAMED):
            silent.append(slip)
    note("natural slips", "all", f"{len(SLIPS) - len(silent)} of {len(SLIPS)} named")
    assert len(silent) <= 0.2 * len(SLIPS), silent


@pytest.mark.parametrize("unit", sorted({slip[0] for slip in SLIPS}))
def test_a_unit_is_asked_with_several_slips(unit):
    assert sum(slip[0] == unit for slip in SLIPS) >= 8
