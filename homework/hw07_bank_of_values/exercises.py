"""hw07: where do the values of deep layers come from, and what does it save to look them up?"""

import numpy as np

from homework import by_index
from homework.marking import For, Part, Unit, Wrong, need, normals, per_cent, refuse, slip

unit = Unit(
    "hw07_bank_of_values",
    "Where do deep layers get their values?",
    """
    Fill in the functions, in any order, and run `pytest homework/hw07_bank_of_values` as often
    as you like.
    Letters: B batch, T new positions, S visible positions, H heads, D head width, C model
    width, V vocabulary, L layers (numbered from 0).
    Functions answer in the dtype of their inputs, and leave their inputs as they
    were.
""",
)


def rms(x):
    """Each row divided by the root of its mean square."""
    return np.stack([row / np.sqrt(sum(a * a for a in row) / len(row)) for row in x])


RULES = ("last third", "every second", "last half")


def targets(rule, layers, up=0, last=True):
    """The layers that a rule picks."""
    start = {
        "last third": -(-2 * layers // 3) if up else 2 * layers // 3,
        "last half": layers // 2,
    }.get(rule, 0)
    return [
        i
        for i in range(start, layers)
        if rule != "every second" or i % 2 == ((layers - 1) % 2 if last else 0)
    ]


def picked_by(rule, remainder=None):
    """What a rule picks, at a depth at which all differ: even, or with this remainder by 3."""

    def make(r):
        layers = 2 * int(r.integers(4, 10)) if remainder is None else 3 * int(r.integers(3, 9))
        layers += remainder or 0
        return targets(rule, layers), layers

    return make


def by_none(r):
    """As many layers as the last third has, or as many as the last half, one too low."""
    layers = 2 * int(r.integers(5, 10))
    rule = RULES[2 * int(r.integers(2))]
    return [i - 1 for i in targets(rule, layers)], layers


def with_rule(rule, picks):
    """which_rules with one rule mistaken: picks(L) are the layers that it is taken for."""

    def made(picked, layers):
        found = list(which_rules(picked, layers))
        found[RULES.index(rule)] = int(list(picked) == list(picks(layers)))
        return tuple(found)

    return made


@unit.exercise(
    Part(
        "one rule",
        2,
        [
            picked_by("last third", 1),
            picked_by("every second"),
            picked_by("last half"),
            picked_by("last third", 2),
            lambda r: ([0, 2, 4, 6, 8], 9),
        ],
    ),
    Part(
        "several rules, or none",
        2,
        [
            lambda r: ([2, 3], 4),
            lambda r: ([1], 2),
            by_none,
            lambda r: ([1, 2], 3),
            lambda r: (list(range(1, 8)), 8),
            lambda r: ([7, 8], 9),
            lambda r: ([6, 8], 9),
            lambda r: ([0, 1, 2], 9),
            lambda r: ([5, 6, 7, 8], 9),
        ],
    ),
    Wrong(
        "rounded up",
        4,
        "you rounded 2L/3 up; the first target is 2L/3 rounded down, so a depth that 3 does not "
        "divide has one target more",
        dict(up=1),
    ),
    Wrong(
        "counted from the first",
        4,
        "every second layer is counted from the LAST one down: the last layer is always a target",
        dict(last=False),
    ),
    Wrong(
        "the first rule that fits",
        2,
        "you stopped at the first rule that fits; in a shallow model several pick the same layers",
        dict(several=False),
    ),
    Wrong(
        "as many layers",
        4,
        "you compared how many layers there are, not which",
        dict(number=True),
    ),
    slip(
        2,
        "every second is counted from the LAST layer down: at an odd depth these are 0, 2, 4, …",
        with_rule("every second", lambda L: range(1, L, 2)),
    ),
    slip(
        2,
        "`picked` ascends; your list of every second layer descends, and is never equal to it",
        with_rule("every second", lambda L: range(L - 1, -1, -2)),
    ),
    slip(
        4,
        "layers are counted from 0: the last third begins AT layer 2L // 3",
        with_rule("last third", lambda L: range(2 * L // 3 + 1, L)),
    ),
    slip(
        4,
        "the LAST third begins at 2L // 3; yours has two thirds",
        with_rule("last third", lambda L: range(L // 3, L)),
    ),
    slip(
        4,
        "you took the first third; the last one begins at 2L // 3",
        with_rule("last third", lambda L: range(L // 3)),
    ),
    slip(
        2,
        "the last half begins at L / 2 rounded DOWN",
        with_rule("last half", lambda L: range((L + 1) // 2, L)),
    ),
    slip(
        4,
        "layers are counted from 0: the last half begins AT layer L // 2",
        with_rule("last half", lambda L: range(L // 2 + 1, L)),
    ),
    slip(
        2,
        "a rule picks ALL of its layers: some of the last third are not the last third",
        lambda picked, layers: (
            int(set(picked) <= set(targets("last third", layers))),
            *which_rules(picked, layers)[1:],
        ),
    ),
    hints=[
        "For 12 layers: [8, 9, 10, 11], [1, 3, 5, 7, 9, 11], [6, …, 11]. And for 4?",
        "Write each rule down as a list for this depth, and compare: i >= (2 * L) // 3; i % 2 == "
        "(L - 1) % 2; i >= L // 2.",
    ],
    after="In a model of 4 layers the last third and the last half are the same two layers, and in "
    "one of 2 all three rules are one: what is measured there cannot tell them apart, whatever the "
    "run was called. 2L/3 is rounded down, and every second layer is counted from the last one. In "
    "the package: minimal/model/plan.py: last_third, minimal/model/plan.py: alternate "
    "and minimal/model/plan.py: second_half.",
    level="easy",
    minutes=8,
)
def which_rules(picked, layers, *, up=0, last=True, several=True, number=False):
    """Which rules could have picked these layers (a list, ascending) of a model with `layers`
    layers? Three answers, 1 for yes and 0 for no, in this order. last third: all from (2L)//3 on.
    every second: the last layer, and every second one below it. last half: all from L//2 on.
    """
    found = []
    for rule in RULES:
        mine = targets(rule, layers, up, last)
        fits = len(mine) == len(picked) if number else mine == list(picked)
        found.append(int(fits and (several or not any(found))))
    return tuple(found)


def target_layers(row, layers):
    """Which layers a row of Table 1 changes."""
    rule = {4: "every second", 7: "every second"}.get(row, "last third")
    return range(1, layers) if row == 3 else targets(rule, layers)


def row(*numbers, inside=True):
    """A row in a model of some depth, in one of the layers that it changes, or in another one."""

    def case(r, n):
        layers = int(r.integers(7, 20))
        layers += n == 4 and layers % 2 == 0  # at an odd depth every second layer is an even one
        chosen, deep = target_layers(n, layers), targets("last third", layers)
        # layers in which the rules differ
        telling = [i for i in range(layers) if n not in (3, 4, 7) or i not in deep]
        layer = r.choice([i for i in telling if (i in chosen) == inside])
        if n in (6, 11):  # where the last third begins, or just before
            layer = deep[0] - (not inside)
        tensors = normals(r, *[(2, 4, 3, 5)] * 3)
        return n, int(layer), layers, *tensors, 2 + r.normal(), r.normal() - 2

    return [lambda r, n=n: case(r, n) for n in numbers]


DEEP = (2, 5, 6, 8, 9, 10, 11, 12, 13)  # rows that change the last third


def in_rows(*rows, made):
    """value with what `made` makes of the same inputs in these rows."""
    return lambda row, *given: (made if row in rows else value)(row, *given)


@unit.exercise(
    Part("in place of V", 8, row(*range(1, 10)) + row(3, 4, 6, 7, 9, inside=False)),
    Part("added to V", 8, row(10, 11, 12, 13) + row(11, 13, inside=False)),
    Wrong(
        "changed everywhere",
        16,
        "this layer is none of the row's: its value is v, as it is",
        dict(everywhere=True),
    ),
    Wrong(
        "the last third for all",
        8,
        "row 3 changes all layers but the first, rows 4 and 7 every second one",
        dict(third=True),
    ),
    Wrong(
        "a coefficient everywhere",
        8,
        "rows 1, 3, 5 and 8 have no learned coefficient: their value is taken as it is",
        dict(fixed=False),
    ),
    Wrong(
        "halves forgotten",
        8,
        "rows 10 and 12 take half of each; you took the whole of both",
        dict(half=1.0),
    ),
    Wrong(
        "one coefficient",
        8,
        "rows 11 and 13 have two coefficients: a for V and b for the context-free value",
        dict(two=False),
    ),
    Wrong(
        "V1 for x0",
        16,
        "you took V1 where x0 W_V was meant, or the other way round: see the table's first column",
        dict(swap=True),
    ),
    slip(
        8,
        "row 3 changes ALL layers but layer 0, not the last third",
        in_rows(3, made=lambda row, *given: value(5, *given)),
    ),
    slip(
        8,
        "row 3 does not change layer 0: V1 is made there",
        in_rows(3, made=lambda row, layer, layers, v, v1, *rest: v1.copy()),
    ),
    slip(
        8,
        "rows 4 and 7 change every second layer, not the last third",
        in_rows(4, 7, made=lambda row, *given: value(row + 2, *given)),
    ),
    slip(
        8,
        "every second layer is counted from the LAST one down: at an odd depth these are even",
        in_rows(4, 7, made=lambda row, layer, L, *rest: value(row, layer, L + L % 2, *rest)),
    ),
    slip(
        16,
        "the last third begins AT layer 2L // 3, counted from 0; yours begins later",
        in_rows(
            *DEEP,
            made=lambda row, layer, L, v, *rest: (
                v.copy() if layer == 2 * L // 3 else value(row, layer, L, v, *rest)
            ),
        ),
    ),
    slip(
        16,
        "you changed the last half; these rows change the last third, from 2L // 3 on",
        in_rows(
            *DEEP,
            made=lambda row, layer, L, *rest: value(
                row, L - 1 if layer >= L // 2 else layer, L, *rest
            ),
        ),
    ),
    slip(
        8,
        "the coefficient a is missing in rows 4 and 6",
        in_rows(4, 6, made=lambda row, *given: value(row, *given[:-2], 1.0, 0.0)),
    ),
    slip(
        8,
        "rows 7 and 9 take x0 W_V, not V1",
        in_rows(
            7, 9, made=lambda row, layer, L, v, v1, vx, a, b: value(row, layer, L, v, v1, v1, a, b)
        ),
    ),
    slip(
        8,
        "V has a coefficient of its own in rows 11 and 13: a",
        in_rows(11, 13, made=lambda row, *given: value(row, *given[:-2], 1.0, given[-1])),
    ),
    slip(
        8,
        "a belongs to V and b to the other; yours have changed places",
        in_rows(11, 13, made=lambda row, *given: value(row, *given[:-2], given[-1], given[-2])),
    ),
    slip(
        8,
        "a and b are two numbers; yours add up to one",
        in_rows(11, 13, made=lambda row, *given: value(row, *given[:-2], 1 - given[-1], given[-1])),
    ),
    hints=[
        "First: is this layer one of the row's? The rules are those of number 1, but for row 3, "
        "which takes all layers from 1 on. If it is not, return a copy of v.",
        "Three questions for a row: which source? in place of V, or added? learned coefficient, "
        "or fixed?",
        "A dict {row: (which tensor, coefficient of V, coefficient of the tensor)} beats thirteen "
        "branches.",
    ],
    after="Source, in place or added, learned or fixed: with the choice of layers these are "
    "the four dials, and a table of coefficients does for thirteen branches. Row 3 stops at "
    "layer 1, because the first layer cannot borrow from itself; the rows "
    "are plans in minimal/variants.py: PLANS. README's question: Figure 2 (b, c) shows "
    "rates and starts as much as preference, since one coefficient learns a hundred "
    "times as fast and without decay (minimal/training/recipes.py: COEFFICIENTS). Only "
    "a run that treats both alike could tell.",
    level="medium",
    minutes=18,
)
def value(
    row,
    layer,
    layers,
    v,
    v1,
    vx,
    a,
    b,
    *,
    fixed=True,
    half=0.5,
    two=True,
    swap=False,
    everywhere=False,
    third=False,
):
    """The value that layer `layer` of a model with `layers` layers uses in row 1 … 13 of the Bank
    of Values paper's Table 1. All tensors (B,T,H,D).

    v: the layer's own; v1: the first layer's; vx: x0 W_V. In place of V: 1 V, 2 aV, 3 and 5 V1, 4
    and 6 aV1, 8 x0W, 7 and 9 a x0W. Added: 10 (V + V1)/2, 11 aV + bV1, 12 (V + x0W)/2, 13 aV + b
    x0W. Row 3 changes all layers but layer 0, rows 4 and 7 "every second", all others the "last
    third" (see `which_rules`). A layer that its row does not change uses v.
    """
    changed = targets("last third", layers) if third else target_layers(row, layers)
    if layer not in changed and not everywhere:
        return v.copy()
    source = {
        1: v,
        2: v,
        3: v1,
        4: v1,
        5: v1,
        6: v1,
        7: vx,
        8: vx,
        9: vx,
        10: v1,
        11: v1,
        12: vx,
        13: vx,
    }[row]
    if swap and source is not v:
        source = vx if source is v1 else v1
    if row < 10:
        return (a if row in (2, 4, 6, 7, 9) or not fixed else 1) * source
    return half * (v + source) if row in (10, 12) else a * v + (b if two else a) * source


def embedded(C, E):
    """Rows with a mean square of about 100: next to it an epsilon of 1e-5 is nothing, one of 1e-2
    is not."""
    return lambda r: (
        rms(r.normal(size=(9, C))) * (8 + 4 * r.random((9, 1))),
        r.normal(size=(int(r.integers(2, 5)), C, E)),
    )


def rooted(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True))


@unit.exercise(
    Part("as many columns", 4, embedded(5, 5)),
    Part("a narrower value", 4, embedded(6, 4)),
    Wrong(
        "the first layer's",
        8,
        "that is the table of one layer; the others start with a neighbour's values. Which table "
        "is closest to all of them?",
        dict(of="first"),
    ),
    Wrong(
        "the sum",
        8,
        "you added what the layers make; the table that is closest to all lies in their middle",
        dict(of="sum"),
    ),
    Wrong(
        "not normalised",
        8,
        "the embedding is RMS-normalised before it meets W_V (Eq 3)",
        dict(norm="none"),
    ),
    Wrong(
        "normalised after",
        8,
        "you normalised the value; the embedding is normalised, then multiplied",
        dict(norm="after"),
    ),
    Wrong(
        "length one",
        8,
        "you divided by the length; RMS-norm divides by the root of the MEAN square, so a row "
        "keeps length sqrt(C)",
        dict(norm="length"),
    ),
    slip(
        8,
        "one layer's table is near to that layer alone: take the mean of all",
        lambda embedding, w: aligned_table(embedding, w[-1:]),
    ),
    slip(
        8,
        "the nearest table to all, in squares, is their MEAN, not their median",
        lambda embedding, w: np.sort(rooted(embedding) @ w, 0)[(len(w) - 1) // 2],
    ),
    slip(
        8,
        "the norm is that of each token, over C",
        lambda embedding, w: embedding / np.sqrt((embedding**2).mean(0, keepdims=True)) @ w.mean(0),
    ),
    slip(
        8,
        "RMSNorm divides by the ROOT of the mean square",
        lambda embedding, w: embedding / (embedding**2).mean(-1, keepdims=True) @ w.mean(0),
    ),
    hints=[
        "With one layer it is notebook 10's table. With n layers: which vector has the smallest "
        "sum of squared distances from n given ones?",
        "Their mean. And the mean of n products with one matrix factor in common is a product "
        "again: average the w first.",
    ],
    after="The mean of n points has the smallest sum of squared distances from them, and the "
    "mean of products is a product with the mean matrix. So one table for several layers is "
    "right for none of them: the claim that the first forward pass is that of x0 W_V holds for "
    "a table of each layer's own. In the package: minimal/model/init.py: align, which fills a "
    "shared table with the rows of one matrix.",
    level="medium",
    minutes=10,
)
def aligned_table(embedding, w, *, norm="before", of="mean"):
    """One table for n layers, as near to all as it can be: layer i's own table would have the rows
    RMSNorm(embedding[t]) @ w[i]. Return the table with the smallest sum of squared differences from
    these n tables. embedding (V,C), w (n,C,E) -> (V,E).

    The norm is taken over C, without weights or epsilon (one of at most 1e-5 does no harm here).
    """
    w = dict(mean=w.sum(0) / len(w), first=w[0], sum=w.sum(0))[of]
    table = np.zeros((len(embedding), w.shape[1]))
    for t, e in enumerate(embedding):
        x = {"none": e, "after": e, "before": rms(e[None])[0], "length": e / np.sqrt(e @ e)}[norm]
        table[t] = [sum(x[c] * w[c, d] for c in range(len(e))) for d in range(w.shape[1])]
    return rms(table) if norm == "after" else table


def lookup(T, S):
    return lambda r: (
        *normals(r, (2, T, 6, 5), (2, S, 3, 5)),
        r.integers(0, 6, (2, S)),
        *normals(r, (11, 3, 5)),
        2.5,
    )


def heads_read(q, k, rows, gamma, shift=0, axis=3):
    """bov_attention with other rows, a shifted mask or another axis of the softmax."""
    (T, H, D), (S, G) = q.shape[1:], k.shape[1:3]
    k, rows = np.repeat(k, H // G, 2), np.repeat(rows, H // G, 2)
    score = np.einsum("bthd,bshd->bhts", q, k) / np.sqrt(D)
    seen = np.arange(S) <= np.arange(T)[:, None] + S - T + shift
    e = np.where(seen, np.exp(score), 0)
    return gamma * np.einsum("bhts,bshd->bthd", e / e.sum(axis, keepdims=True), rows)


@unit.exercise(
    Part("a whole sequence", 7, lookup(6, 6)),
    Part("behind a cache", 7, lookup(2, 7)),
    Wrong(
        "indexed by position",
        14,
        "your table was read at the position; it is read at the id of the token that stands there",
        dict(by="position"),
    ),
    Wrong("no coefficient", 14, "gamma, the layer's coefficient, is missing", dict(power=0)),
    Wrong("the coefficient twice", 14, "gamma was applied twice", dict(power=2)),
    Wrong(
        "mask from the left",
        7,
        "with fewer queries than keys, the queries are the LAST positions: query t sees keys up "
        "to t + S - T",
        dict(corner=True),
    ),
    Wrong("no mask", 14, "your queries also see the keys after them", dict(causal=False)),
    Wrong(
        "heads by turns",
        14,
        "query heads that follow each other share a key head and its rows: head h reads group "
        "h // (H // G), not h % G",
        dict(turns=True),
    ),
    slip(
        14,
        "the scores are not divided by sqrt(D)",
        lambda q, *x: bov_attention(q * q.shape[3] ** 0.5, *x),
    ),
    slip(
        14,
        "the scores are divided by the ROOT of D",
        lambda q, *x: bov_attention(q / q.shape[3] ** 0.5, *x),
    ),
    slip(
        14,
        "gamma belongs to the values; you multiplied the scores by it as well",
        lambda q, k, ids, table, gamma: bov_attention(gamma * q, k, ids, table, gamma),
    ),
    slip(
        14,
        "the values are the table's rows alone; you added the keys",
        lambda q, k, ids, table, gamma: heads_read(q, k, table[ids] + k, gamma),
    ),
    slip(
        14,
        "each of your queries sees one key too many: the last is t + S - T",
        lambda q, k, ids, table, gamma: heads_read(q, k, table[ids], gamma, shift=1),
    ),
    slip(
        14,
        "your softmax runs over the queries; the weights of each QUERY sum to one",
        lambda q, k, ids, table, gamma: heads_read(q, k, table[ids], gamma, axis=2),
    ),
    hints=[
        "table[ids] has the shape of values: (B,S,G,D). Repeat keys and values for the heads of "
        "their group: repeat_interleave along the heads. The rest is notebook 10's layer.",
        "gamma scales every value alike, so it may wait until after the sum.",
    ],
    after="table[ids] stands where V stood, and the rest is attention as it was. gamma scales "
    "all values alike, so it may wait until after the sum: minimal/kernels/gather.py: "
    "gather_attention applies it once. With grouped heads the table shrinks with the keys: a row "
    "has G D numbers. The einsum solution makes no V at all but "
    "collects the weights by token, and that is the next exercise.",
    level="medium",
    minutes=15,
)
def bov_attention(
    q, k, ids, table, gamma, *, by="id", power=1, causal=True, corner=False, turns=False
):
    """Causal attention with grouped heads whose values are looked up: q (B,T,H,D), k (B,S,G,D), ids
    (B,S), table (V,G,D), gamma a number -> (B,T,H,D).

    G divides H: query head h reads keys and rows of group h // (H // G). The value of position p is
    gamma * table[ids[p]] (Eq 5), scores are q k / sqrt(D); the T queries are the last T of S
    positions.
    """
    rows = ids if by == "id" else np.tile(np.arange(k.shape[1]), (len(k), 1))
    v = np.stack([np.stack([gamma**power * table[t] for t in line]) for line in rows])
    late = q.shape[1] - k.shape[1] if corner else 0
    return by_index.attention(q, k, v, turns, causal=causal, late=late)


def masses(distinct):
    def make(r):
        w = r.random((2, 3, 6))
        ids = (
            np.stack([r.permutation(9)[:6] for _ in range(2)])
            if distinct
            else r.integers(0, 3, (2, 6))
        )
        return (
            w / w.sum(-1, keepdims=True),
            ids + (2 if distinct else 5),
            r.normal(size=(12, 3, 4)),
            1.5,
        )

    return make


def read_by(masses, weights, ids, table, gamma):
    masses = np.broadcast_to(masses, (len(ids), table.shape[1], masses.shape[2]))
    return gamma * np.einsum("bhu,uhd->bhd", masses, table[np.unique(ids)])


@unit.exercise(
    Part("every token once", 3, masses(True)),
    Part("tokens that come again", 7, masses(False)),
    Wrong(
        "the last one wins",
        7,
        "a token that occurs twice must collect both weights; yours kept the last",
        dict(add=False),
    ),
    Wrong(
        "counts",
        10,
        "you counted tokens; what is collected is their attention weight",
        dict(count=True),
    ),
    Wrong("no coefficient", 10, "gamma is missing", dict(scaled=False)),
    Wrong(
        "rows by place in the list",
        10,
        "row u of the table is not token u of your list: read table[tokens]",
        dict(local=True),
    ),
    slip(
        10,
        "tokens are wanted in ASCENDING order",
        lambda *x: (
            histogram_decode(*x)[0][::-1],
            histogram_decode(*x)[1][..., ::-1],
            histogram_decode(*x)[2],
        ),
    ),
    slip(
        10,
        "every head has weights of its own; out is read with a mean over heads",
        lambda *x: (
            *histogram_decode(*x)[:2],
            read_by(histogram_decode(*x)[1].mean(1, keepdims=True), *x),
        ),
    ),
    hints=[
        "tokens, place = ids.unique(return_inverse=True): place (B,S) says where in the list each "
        "position's token stands.",
        "masses[b, h, place[b, p]] += weights[b, h, p]: scatter_add along the last dimension, with "
        "place expanded over the heads.",
        "out = gamma * sum over the list of mass * table[tokens]: one einsum, bhu,uhd->bhd.",
    ],
    after="Equal tokens have equal values, so their weights may be added before any value is "
    "read: out = gamma · sum over tokens of mass · row. Over the whole vocabulary this reads "
    "all of the table, so minimal/kernels/histogram.py: histogram_decode reads it in order and "
    "once; with a list of the tokens in use only their rows are read, which is what "
    "notebooks/course/offload.py: Offloaded keeps on the card when the table is not there.",
    level="medium",
    minutes=14,
)
def histogram_decode(
    weights, ids, table, gamma, *, add=True, count=False, scaled=True, local=False
):
    """Decode without any values, and read only the rows in use: how much attention falls on each
    TOKEN TYPE that stands anywhere in the batch, then one product with these rows.

    weights (B,H,S) of one query of each text, ids (B,S), table (V,H,D) -> (tokens (U,), masses
    (B,H,U), out (B,H,D)). tokens: every id of the batch once, ascending; a token that is not in a
    text has mass 0 there. out is what attention hands over, times gamma.
    """
    B, H, S = weights.shape
    tokens = sorted(set(ids.flatten().tolist()))
    mass = np.zeros((B, H, len(tokens)))
    for b in range(B):
        for h in range(H):
            for p in range(S):
                u = tokens.index(ids[b, p])
                mass[b, h, u] = (mass[b, h, u] if add else 0) + (1 if count else weights[b, h, p])
    out = np.zeros((B, H, table.shape[2]))
    for u, token in enumerate(tokens):
        out += mass[:, :, u, None] * table[u if local else token]
    return np.array(tokens), mass, out * (gamma if scaled else 1)


def budget(r):
    L = int(r.integers(4, 30))
    windows = [int(w) for w in r.choice([512, 2048], L)]
    return L, 64 * r.integers(4, 30), r.integers(8000, 60000), windows, r.integers(1, L)


def costed(
    layers, width, vocabulary, windows, without, weight=6, heads=1, gone=6, attend=12, more=None
):
    """flops_and_tokens with one of its factors mistaken."""
    matrices = 12 * layers * width**2 + heads * width * vocabulary
    standard = weight * matrices + attend * width * sum(windows)
    mine = standard - gone * without * width**2
    return mine, more(standard, mine) if more else 100 * (standard / mine - 1)


@unit.exercise(
    Part(
        "the models of the paper",
        5,
        [lambda r, n=n: (12, 768, 32768, [512, 512, 512, 2048] * 3, n) for n in (0, 4, 11)],
    ),
    Part("other models", 5, budget),
    Wrong(
        "the table multiplies",
        10,
        "looking a row up is no multiplication: tables and embeddings cost nothing here",
        dict(lookup=True),
    ),
    Wrong(
        "W_V kept",
        10,
        "the layers that look their values up have no W_V: 6 C² less for each",
        dict(dropped=False),
    ),
    Wrong(
        "one window for all",
        10,
        "each layer attends over its own window: add them up",
        dict(each=False),
    ),
    slip(
        10,
        "that is how much CHEAPER a token is; more tokens are standard's cost over yours, less 1",
        costed,
        more=lambda standard, mine: 100 * (1 - mine / standard),
    ),
    slip(
        10,
        "wanted per cent: a hundred times your share",
        costed,
        more=lambda standard, mine: standard / mine - 1,
    ),
    slip(10, "a weight of W_V costs 6 FLOPs, too, as every other", costed, gone=1),
    slip(10, "W_V is C² of a layer's 12 C²: the layer's other matrices stay", costed, gone=72),
    slip(10, "attention costs 12 C · window as it is: the 6 is for weights", costed, attend=72),
    slip(10, "the windows are not halved here: 12 C · window a layer", costed, attend=6),
    slip(10, "looking an embedding up is no multiplication: one head C V", costed, heads=2),
    slip(10, "the head is missing: C V weights", costed, heads=0),
    slip(10, "training costs 6 a weight: 2 forward and 4 backward", costed, weight=2),
    slip(
        10,
        "the first answer is what a token costs WITHOUT these W_V",
        lambda *given: (flops_and_tokens(*given[:-1], 0)[0], flops_and_tokens(*given)[1]),
    ),
    slip(
        10,
        "`without` counts the layers that have NO W_V",
        lambda layers, *given: flops_and_tokens(layers, *given[:-1], layers - given[-1]),
    ),
    hints=[
        "The 12-layer model: 759,693,312 for standard attention, 745,537,536 for BoV, 720,764,928 "
        "for row 3. And 1.9 % more tokens is not 1.9 % cheaper: which cost do you divide by?",
        "6 · (12 L C² + C V - n C²) + 12 · C · (sum of the windows).",
    ],
    after="Without W_V in n layers a token costs 6 n C² less: 1.86 per cent cheaper for BoV, "
    "which is 1.90 per cent more tokens, because one divides by the smaller cost. Row 3 "
    "gets 5.4 per cent more, the most of all, and loses: so more tokens alone do not "
    "explain why BoV wins. A budget becomes steps in minimal/compare/budgets.py: "
    "by_flops.",
    level="easy",
    minutes=6,
)
def flops_and_tokens(
    layers, width, vocabulary, windows, without, *, lookup=False, dropped=True, each=True
):
    """(FLOPs of training on one token, how many per cent more tokens than standard attention the
    same FLOPs pay for).

    Counted as in hw01: 6 a matrix weight (each layer 12 C², one head C V), 12 C · window a layer;
    `without` layers have no W_V.
    """

    def per_token(n):
        matrices = layers * 12 * width**2 + width * vocabulary - (n * width**2 if dropped else 0)
        matrices += (n + 1) * vocabulary * width if lookup else 0
        return 6 * matrices + 12 * width * (sum(windows) if each else windows[0] * layers)

    return per_token(without), 100 * (per_token(0) / per_token(without) - 1)


def model(batch):
    def make(r):
        kv, C = 64 * int(r.integers(1, 6)), 64 * int(r.integers(6, 20))
        positions, vocabulary = r.integers(1000, 90000), r.integers(8000, 60000)
        layers = int(r.integers(2, 9))
        return (
            layers,
            int(r.integers(1, layers)),
            batch or r.integers(2, 40),
            positions,
            vocabulary,
            kv,
            C,
            2,
            r.choice([2, 4, 8]),
        )

    return make


@unit.exercise(
    Part("one sequence", 4, model(1)),
    Part("a batch", 8, model(0)),
    Wrong(
        "Eq 6 as printed",
        12,
        "that is Eq 6 as printed, in ELEMENTS and for one sequence; wanted bytes: times the "
        "size of an element",
        dict(printed=True),
    ),
    Wrong(
        "one sequence",
        8,
        "the table serves the whole batch, the cache it replaces exists once a sequence: B T "
        "positions against |V| rows",
        dict(batched=False),
    ),
    Wrong("no ids", 12, "the ids must be kept: B T of them, once for all layers", dict(ids=0)),
    Wrong(
        "ids for every layer",
        12,
        "the ids are kept once, not once for every target layer",
        dict(ids="each"),
    ),
    Wrong(
        "W_V kept",
        12,
        "the target layers no longer need W_V (model width × value width each)",
        dict(credit=False),
    ),
    Wrong(
        "a table for every layer",
        12,
        "layers may share a table: there are `tables` of them, and all `layers` caches and "
        "matrices are gone",
        dict(own=True),
    ),
    slip(
        12,
        "matrices W_V are GONE: they are saved as well",
        lambda L, n, B, T, V, E, C, size, i: saved_bytes(L, n, B, T, V, E, -C, size, i),
    ),
    slip(
        8,
        "every text of the batch has ids of its own",
        lambda L, n, B, T, V, E, C, size, i: (
            saved_bytes(L, n, B, T, V, E, C, size, i) + (B - 1) * T * i
        ),
    ),
    slip(
        12,
        "values alone are gone: keys stay, and count on neither side",
        lambda L, n, B, T, V, E, C, size, i: (
            saved_bytes(L, n, B, T, V, E, C, size, i) + L * B * T * E * size
        ),
    ),
    slip(
        12,
        "you counted numbers; wanted bytes",
        lambda L, n, B, T, V, E, C, size, i: saved_bytes(L, n, B, T, V, E, C, 1, i),
    ),
    slip(
        12,
        "ids are new: they are taken off what is saved",
        lambda L, n, B, T, V, E, C, size, i: saved_bytes(L, n, B, T, V, E, C, size, -i),
    ),
    slip(
        12,
        "every target layer loses a W_V, however many tables they share",
        lambda L, n, B, T, V, E, C, size, i: (
            saved_bytes(L, n, B, T, V, E, C, size, i) - (L - n) * C * E * size
        ),
    ),
    slip(12, "your sign is turned: what is saved is positive", lambda *x: -saved_bytes(*x)),
    hints=[
        "What goes: `layers` value streams of B · T · E elements, and as many matrices C × E. "
        "What comes: `tables` tables V × E, and B · T ids.",
        "12-layer model of width 768, 4 targets with 4 tables, one sequence of 32,768, 2 bytes, "
        "8-byte ids: 4,456,448. With one table for the four: 155,451,392.",
    ],
    after="A table serves the whole batch, and all layers that share it, and a cache exists once a "
    "sequence and layer: so it is layers · B T positions against tables · |V| rows, less the ids, "
    "plus the matrices that are gone. "
    "README asks which fraction saturates at a sixth: that of the whole K and V cache, "
    "a third of the layers and one of two streams; of the V cache it would be a third. "
    "notebooks/course/memory.py: break_even counts it on a model, ids included.",
    level="medium",
    minutes=9,
)
def saved_bytes(
    layers,
    tables,
    batch,
    tokens,
    vocabulary,
    value_width,
    width,
    size,
    id_size,
    *,
    printed=False,
    batched=True,
    ids=1,
    credit=True,
    own=False,
):
    """Bytes (a whole number, negative if it costs) that BoV saves at decode with `layers` target
    layers that share `tables` tables: Eq 6, done exactly.

    Gone: their value caches (batch · tokens · value_width each) and matrices W_V (width ·
    value_width each). New: the tables (vocabulary · value_width each) and one id of id_size bytes
    a position. Everything else has `size` bytes. Full context, no windows.
    """
    positions = (batch if batched else 1) * tokens
    if printed:
        return layers * value_width * (tokens - vocabulary)
    rows = 0
    for _ in range(layers):
        rows += positions + (width if credit else 0)
    for _ in range(layers if own else tables):
        rows -= vocabulary
    saved = rows * value_width * size
    return saved - batch * tokens * id_size * (layers if ids == "each" else ids)


def near(which, value, within, why):
    def accept(answer):
        said = need(answer, length=0, share=0)[which]
        refuse(abs((per_cent(said) if which else said) - value) > within, why)

    return accept


@unit.exercise(
    Part(
        "the length",
        3,
        None,
        near(
            0,
            1860.5,
            150,
            "off by more than 150 tokens: the prompt's rows are kept once for all sixteen, and so "
            "is the table; what they write is kept sixteen times",
        ),
    ),
    Part(
        "the share",
        3,
        None,
        near(
            1,
            25,
            2,
            "off by more than 2 points: half of the layers, and only one of their two streams",
        ),
    ),
    Wrong("sixteen prompts", 3, "off by more than 150 tokens", returns=lambda: (0, 25)),
    Wrong("the prompt is one of them", 3, "off by more than", returns=lambda: (2048, 25)),
    Wrong("half of the layers", 3, "off by more than 2 points", returns=lambda: (1860, 50)),
    Wrong("a third of them", 3, "off by more than 2 points", returns=lambda: (1860, 16.7)),
    Wrong("a fraction", 3, "per cent, not a fraction", returns=lambda: (1860, 0.25)),
    hints=[
        For(
            "the length",
            "Rows that a layer would keep: 3,000 for the prompt and 16 n for what is written. The "
            "table has |V|. When are they equal?",
        ),
        For(
            "the share",
            "Never more than all value rows of half of the layers. What part is that of keys "
            "AND values of all layers?",
        ),
    ],
    after="3,000 + 16 n = 32,768 at n = 1,860.5: so from 1,861 tokens each. Without sharing the "
    "prompt, 16 caches of 3,000 rows would have been larger than the table from the first "
    "word on: whatever shrinks a cache moves break-even away. At most all values of half of "
    "the layers can go, and values are half of the cache: a quarter. "
    "notebooks/course/memory.py: break_even counts a model's bytes for a batch.",
    level="medium",
    minutes=9,
)
def predict_break_even():
    """Predict: a vocabulary of 32,768, full context, tables in HALF of the layers (leave ids and
    W_V out). Sixteen answers are written to one prompt of 3,000 tokens, whose keys and values are
    kept once for all. (1) From how many written tokens each does BoV save memory? (2) What per cent
    of the whole K and V cache can it save at most?
    """
    return 1860.5, 25.0


def cannot_fit(answer):
    embedding, table = need(answer, embedding=2, table=2)
    refuse(
        len(embedding) != len(table), "wanted an embedding (V,C) and a table (V,E) of the same V"
    )
    refuse(np.abs(embedding).sum(1).min() < 1e-3, "no embedding may vanish: it is normalised")
    refuse(np.abs(table).max(initial=0) < 1e-3, "a table of zeros is matched by W_V = 0")
    # What is left of the table beside the columns of x, without W_V itself: it may be large.
    x = rms(embedding)
    columns, sizes, _ = np.linalg.svd(x, full_matrices=False)
    columns = columns[:, sizes > 1e-12 * sizes.max()]
    left = table - columns @ (columns.T @ table)
    refuse(
        np.linalg.norm(left) < 0.5 * np.linalg.norm(table),
        "some W_V comes within half of your table: are there "
        "more tokens than dimensions, and does the table do more than the embedding says?",
    )


@unit.exercise(
    Part("a table that no W_V comes near", 8, None, cannot_fit),
    Wrong(
        "as many tokens as dimensions",
        8,
        "some W_V comes within half",
        returns=lambda: (np.eye(6) + 0.1, np.random.default_rng(0).normal(size=(6, 4))),
    ),
    Wrong(
        "a product",
        8,
        "some W_V comes within half",
        returns=lambda: (
            rms(np.arange(24.0).reshape(12, 2) ** 1.5 + 1),
            rms(np.arange(24.0).reshape(12, 2) ** 1.5 + 1) @ np.ones((2, 3)),
        ),
    ),
    hints=[
        "x0 W_V has C · E numbers to choose, a table V · E.",
        "Two tokens with the same embedding get the same x0 W_V. What may a table do with them?",
    ],
    after="Two tokens with the same embedding get the same x0 W_V, whatever the matrix, and a "
    "table may tell them apart; more generally the columns of the embedding span at "
    "most C directions of |V|. So x0 W_V is a special case of the table, the one at "
    "which minimal/model/init.py: align starts it.",
    level="easy",
    minutes=4,
)
def expressivity_counter_example():
    """Find the error. Return (embedding (V,C), table (V,E)): token embeddings, and a value table
    for one layer.

    The paper says (Sec 5.2) that computing x0 W_V in a layer "has the same expressivity as BoV".
    Return a table that no matrix W_V reproduces: the best RMSNorm(embedding) W_V leaves at least
    half of it (in Frobenius norm) unexplained.
    """
    return np.ones((4, 2)), np.array([[1.0], [-1.0], [1.0], [-1.0]])


def windowed(kind):
    def make(r):
        V, B = int(r.integers(2000, 40000)), int(r.integers(2, 5))
        n = int(r.integers(2, 6))
        some = [int(w) for w in r.choice([128, 512, 1024], n)]
        prompt = int(r.integers(50, 2000))
        if kind == "full":
            return [0] * n, B, 0, V
        if kind == "prompt":
            return [0] * n, B, prompt, V
        if kind == "mixed":
            return [*some, 0], B, 0, V
        if kind == "late":  # break-even while the windows still see the prompt
            return [*some[:2], 2048, 0], B, 1900, 1900 + 40 * B
        return some, 1, prompt, V + 3024

    return make


def kept_rows(window, batch, own, seen, prompt):
    """Rows of a layer: `own` of each sequence, and `seen` of the prompt once."""
    return batch * own + seen


def breaking(held=kept_rows, tables=lambda windows, batch: len(windows), beyond=0):
    """windowed_break_even with other rows of a layer, other tables, or so many rows beyond them."""

    def made(windows, batch, prompt, vocabulary):
        def rows(T):
            total = 0
            for window in windows:
                own = min(T, window + 1) if window else T
                seen = min(prompt, max(0, window + 1 - T)) if window else prompt
                total += held(window, batch, own, seen, prompt)
            return total

        wanted = tables(windows, batch) * vocabulary + beyond
        low, high = 0, wanted + 1
        if rows(high) < wanted:
            return -1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if rows(middle) >= wanted else (middle, high)
        return high

    return made


@unit.exercise(
    Part(
        "all targets see everything",
        3,
        [
            lambda r: ([0, 0], 3, 0, 32768),
            windowed("full"),
            windowed("prompt"),
            windowed("prompt"),
            lambda r: ([0, 0], 4, 0, 32768),
        ],
    ),
    Part(
        "some are windowed",
        6,
        [
            lambda r: ([512, 512, 512, 0], 1, 0, 32768),
            lambda r: ([512, 0, 0], 3, 700, 32768),
            windowed("mixed"),
            windowed("late"),
            windowed("late"),
        ],
    ),
    Part(
        "all are windowed",
        3,
        [lambda r: ([512, 512], 100, 0, 32768), windowed("never"), windowed("never")],
    ),
    Wrong(
        "windows ignored",
        9,
        "a windowed layer's cache stops growing at window + 1 rows; it replaces less than you "
        "counted",
        dict(ignore=True),
    ),
    Wrong(
        "N rows",
        6,
        "a window of N keys to the left keeps N + 1 rows, itself included",
        dict(itself=0),
    ),
    Wrong(
        "rounded down",
        12,
        "at your length the caches still hold fewer rows than the tables: round up",
        dict(early=1),
    ),
    Wrong(
        "never, without a full layer",
        3,
        "a large batch breaks even although every layer is windowed: the rows of all "
        "sequences count",
        dict(hopeless=True),
    ),
    Wrong(
        "one sequence",
        12,
        "every sequence of the batch has its own cache of what it wrote; the table is shared",
        dict(batched=False),
    ),
    Wrong(
        "no prompt",
        9,
        "the prompt's rows stand in the cache, too, once for all sequences",
        dict(shared="none"),
    ),
    Wrong(
        "a prompt for each",
        9,
        "the prompt is kept once, not once for every sequence",
        dict(shared="each"),
    ),
    Wrong(
        "a prompt that stays",
        6,
        "a windowed layer lets go of the prompt as it moves out of sight: after T tokens of its "
        "own a sequence sees at most window + 1 - T of it",
        dict(shared="stays"),
    ),
    slip(
        9,
        "the prompt is kept once in a layer that sees everything, too",
        breaking(
            lambda window, batch, own, seen, prompt: (
                batch * own + (seen if window else batch * seen)
            )
        ),
    ),
    slip(
        6,
        "a windowed layer shows a part of the prompt, as long as it is in sight",
        breaking(lambda window, batch, own, seen, prompt: batch * own + (0 if window else seen)),
    ),
    slip(
        9,
        "a layer that sees everything keeps the whole prompt, too",
        breaking(lambda window, batch, own, seen, prompt: batch * own + (seen if window else 0)),
    ),
    slip(
        6,
        "window + 1 rows are shared by the prompt and what is written: of the prompt they show "
        "window + 1 - T",
        breaking(
            lambda window, batch, own, seen, prompt: (
                batch * own + (min(prompt, window + 1) if window else prompt)
            )
        ),
    ),
    slip(
        9,
        "in a windowed layer, too, every sequence has rows of its own: times `batch`",
        breaking(lambda window, batch, own, seen, prompt: own * (1 if window else batch) + seen),
    ),
    slip(9, "AT LEAST as many rows as the tables: as many are enough", breaking(beyond=1)),
    slip(
        12,
        "every target layer has a table: as many tables as windows",
        breaking(tables=lambda windows, batch: 1),
    ),
    slip(
        9,
        "windowed layers have tables, too, though they keep few rows",
        breaking(tables=lambda windows, batch: list(windows).count(0)),
    ),
    slip(
        12,
        "the tables are shared by all sequences: they count once",
        breaking(tables=lambda windows, batch: len(windows) * batch),
    ),
    slip(3, "if never, the answer is -1", lambda *given: max(0, windowed_break_even(*given))),
    slip(
        9,
        "wanted are the tokens of each sequence's OWN; yours count the prompt as well",
        lambda windows, batch, prompt, vocabulary: (
            windowed_break_even(windows, batch, prompt, vocabulary) + prompt * (0 in windows)
        ),
    ),
    hints=[
        "Rows that the standard cache would hold in a target layer after T own tokens: B times T "
        "or min(T, window + 1), and once the prompt, or what the window still shows of it: "
        "min(prompt, window + 1 - T), not below 0.",
        "It never shrinks as T grows: search by halving, or solve it. If windows stop it below the "
        "tables' rows, the answer is -1.",
    ],
    after="A windowed layer stops at N + 1 rows, so nearly all of the four tables must be "
    "paid for by the one layer that sees everything: 4 · 32,768 - 3 · 513 = 129,533 "
    "tokens, where Eq 6 says 32,768. A shared prompt counts once, and in a windowed layer only as "
    "long as it is seen. One solution solves for T between the edges of the "
    "windows and two search for it: the held rows never shrink, so both find the same. "
    "notebooks/course/memory.py: break_even with rings=True asks it of a model.",
    level="stretch",
    minutes=23,
)
def windowed_break_even(
    windows,
    batch,
    prompt,
    vocabulary,
    *,
    ignore=False,
    itself=1,
    batched=True,
    early=0,
    hopeless=False,
    shared="once",
):
    """Stretch: `batch` sequences go on from one prompt, whose rows are kept once for all. After how
    many tokens of its own each would the target layers' value caches hold at least as many rows as
    their tables? The smallest such number, at least 1; -1 if never.

    windows[n]: how many keys to its left target layer n sees besides its own, 0 for all. A cache
    keeps only rows that the newest token can see: windows[n] + 1 of the prompt and the sequence's
    own tokens together, the newest included. prompt: its tokens, 0 for none.
    """

    def held(window, T):
        own = T if window == 0 or ignore else min(T, window + itself)
        if window and not ignore and shared != "stays":
            seen = min(prompt, max(0, window + itself - T))
        else:
            seen = prompt
        texts = batch if batched else 1
        return texts * own + dict(none=0, each=texts * seen).get(shared, seen)

    def rows(T):
        return sum(held(window, T) for window in windows)

    wanted = len(windows) * vocabulary
    low, high = 0, wanted + 1
    if rows(high) < wanted or (hopeless and all(windows)):
        return -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if rows(middle) >= wanted else (middle, high)
    return high - early * (rows(high) > wanted)
