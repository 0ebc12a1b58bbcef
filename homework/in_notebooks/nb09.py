"""Notebook 09: where do the values come from?"""

import math

import numpy as np

from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb09_thirteen_rows", "Thirteen rows", "The exercises of notebook 09.")


# ---- the empty box: row 8, and any other choice of layers ----------------------------------------


def normed(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True))


def streams(at, chosen, C):
    """Layer `at` of a stack: what it reads, the embedding, and its matrix."""

    def make(r):
        h, x0, W = normals(r, (2, 4, C), (2, 4, C), (C, C))
        return at, chosen, normed(h), normed(x0), W

    return make


@unit.exercise(
    Part("a layer that is chosen", 1, [streams(10, [8, 9, 10, 11], 6), streams(3, [1, 3, 5], 4)]),
    Part("one that is not", 1, [streams(7, [8, 9, 10, 11], 6), streams(2, [1, 3, 5], 4)]),
    Part("all layers", 1, [streams(0, list(range(12)), 5), streams(11, list(range(12)), 4)]),
    Part("the layers at the bottom", 1, [streams(9, [0, 1, 2, 3], 4), streams(2, [0, 1, 2, 3], 5)]),
    Wrong(
        "everywhere",
        2,
        "you read the embedding in every layer; only the layers of `chosen` do so",
        dict(where=lambda n, chosen: True),
    ),
    Wrong(
        "nowhere",
        3,
        "that is the ordinary value, h W, in every layer: in those of `chosen` x0 stands for h",
        dict(where=lambda n, chosen: False),
    ),
    Wrong(
        "from the first one on",
        2,
        "`chosen` is a list of layers, and not the first of many: n in chosen",
        dict(where=lambda n, chosen: n >= chosen[0]),
    ),
    Wrong(
        "between the ends",
        1,
        "between the first and the last there may be layers that are not chosen: n in chosen",
        dict(where=lambda n, chosen: chosen[0] <= n <= chosen[-1]),
    ),
    Wrong(
        "up to the last one",
        1,
        "`chosen` need not begin at layer 0: n in chosen",
        dict(where=lambda n, chosen: n <= chosen[-1]),
    ),
    Wrong(
        "counted from 1",
        3,
        "n and `chosen` are counted alike, from 0: n in chosen, and nothing is added to n",
        dict(where=lambda n, chosen: n + 1 in chosen),
    ),
    Wrong(
        "one less",
        3,
        "n and `chosen` are counted alike, from 0: n in chosen, and nothing is taken from n",
        dict(where=lambda n, chosen: n - 1 in chosen),
    ),
    Wrong(
        "how many",
        2,
        "`chosen` says which layers, not only how many: n in chosen",
        dict(where=lambda n, chosen: n < len(chosen)),
    ),
    Wrong(
        "the last third of twelve",
        3,
        "the last third is row 8's own choice; here `chosen` says which layers: n in chosen",
        dict(where=lambda n, chosen: n >= 8),
    ),
    Wrong(
        "not the first layer",
        1,
        "layer 0 may be among the chosen, too: n in chosen",
        dict(where=lambda n, chosen: n > 0 and n in chosen),
    ),
    Wrong(
        "added",
        3,
        "in place of, not added: nothing of h is left in a value of a chosen layer",
        dict(mix=(1, 1)),
    ),
    Wrong(
        "half of each",
        3,
        "in place of, not mixed: nothing of h is left in a value of a chosen layer",
        dict(mix=(0.5, 0.5)),
    ),
    Wrong(
        "no matrix",
        4,
        "a value is the stream times this layer's W: F.linear(stream, W)",
        dict(matrix=False),
    ),
    Wrong(
        "turned matrix",
        4,
        "a row of W makes one feature, as in a torch Linear: F.linear(stream, W) or stream @ W.T",
        dict(turned=True),
    ),
    slip(
        3,
        "the token's value has no matrix: a chosen layer applies its own W to x0",
        lambda n, chosen, h, x0, W: x0 if n in chosen else row_8(n, chosen, h, x0, W),
    ),
    slip(
        4,
        "the two streams have changed places: x0 is for the layers of `chosen`",
        lambda n, chosen, h, x0, W: row_8(n, chosen, x0, h, W),
    ),
    slip(
        2,
        "W is turned round in the layers that are not chosen: F.linear(h, W)",
        lambda n, chosen, h, x0, W: row_8(n, chosen, h, x0, W if n in chosen else W.T),
    ),
    slip(
        3,
        "W is turned round in the chosen layers: F.linear(x0, W)",
        lambda n, chosen, h, x0, W: row_8(n, chosen, h, x0, W.T if n in chosen else W),
    ),
    hints=[
        "Choose a stream first: x0 where n is one of `chosen`, h where it is not.",
        "Then multiply by W, as torch's Linear does: F.linear(stream, W).",
        "stream = x0 if n in chosen else h",
    ],
    level="easy",
    minutes=6,
)
def row_8(
    n, chosen, h, x0, W, *, where=lambda n, chosen: n in chosen,
    mix=(1, 0), matrix=True, turned=False,
):  # fmt: skip
    """The values of layer n (B,T,C): made from x0 in the layers of `chosen`, from h in all others.

    chosen: a list of layers. Row 8 of the paper's table chooses the last third; any list may stand
    there. n and `chosen` count from 0. h and x0 (B,T,C): what this layer reads, and the embedding,
    both normed already. W (C,C) holds W_V as a torch Linear does: one row for each feature that
    comes out.
    """
    B, T, C = h.shape
    out = np.zeros((B, T, C))
    for b in range(B):
        for t in range(T):
            row = mix[0] * x0[b, t] + mix[1] * h[b, t] if where(n, chosen) else h[b, t]
            for e in range(C):
                weights = W[:, e] if turned else W[e]
                out[b, t, e] = row @ weights if matrix else row[e]
    return out


# ---- four ways to use a second source ------------------------------------------------------------


@unit.exercise(
    Part(
        "two coefficients",
        1,
        lambda r: (*normals(r, (2, 3, 2, 4), (2, 3, 2, 4)), 2 + r.random(), -1 - r.random()),
    ),
    Part(
        "the start of row 11: a = 1, b = 0",
        1,
        lambda r: (*normals(r, (2, 3, 2, 4), (2, 3, 2, 4)), 1.0, 0.0),
    ),
    Wrong(
        "the whole of both",
        2,
        "row 10 takes HALF of each: the fixed coefficients are one half",
        dict(half=1.0),
    ),
    Wrong(
        "one coefficient",
        2,
        "row 11 has two coefficients: a for V and b for the other source",
        dict(two=False),
    ),
    Wrong(
        "exchanged",
        2,
        "a belongs to V and b to the other source; in row 11 you exchanged them",
        dict(exchanged=True),
    ),
    Wrong(
        "V kept",
        2,
        "row 6 is in place of V: nothing of V is left in it",
        dict(kept=True),
    ),
    slip(
        1,
        "rows 2 and 6 have a gain: a times the source",
        lambda V, o, a, b: (V, o, (V + o) / 2, a * V + b * o),
    ),
    slip(
        2,
        "the gain of row 6 is a, too; b occurs in row 11 alone",
        lambda V, o, a, b: (a * V, b * o, (V + o) / 2, a * V + b * o),
    ),
    slip(
        2,
        "a and b are the weights of row 11 as they are: nothing is halved in it",
        lambda V, o, a, b: (a * V, a * o, (V + o) / 2, (a * V + b * o) / 2),
    ),
    slip(
        1,
        "row 11 has two free coefficients: the other source takes b, not 1 - a",
        lambda V, o, a, b: (a * V, a * o, (V + o) / 2, a * V + (1 - a) * o),
    ),
    slip(
        1,
        "a is missing in row 11: a times V, b times the other",
        lambda V, o, a, b: (a * V, a * o, (V + o) / 2, V + b * o),
    ),
    slip(
        1,
        "row 10 has no gain: half of each",
        lambda V, o, a, b: (a * V, a * o, a * (V + o) / 2, a * V + b * o),
    ),
    slip(
        2,
        "half of EACH in row 10; you took all of one source",
        lambda V, o, a, b: (a * V, a * o, V + o / 2, a * V + b * o),
    ),
    slip(
        2,
        "row 2 is V with the gain alone: a * V",
        lambda V, o, a, b: (V + a * V, a * o, (V + o) / 2, a * V + b * o),
    ),
    slip(
        1,
        "b alone belongs to the other source in row 11; you multiplied it by a as well",
        lambda V, o, a, b: (a * V, a * o, (V + o) / 2, a * (V + b * o)),
    ),
    slip(
        2,
        "row 6 is in place of V: nothing of V is left in it, and a stands on the other source",
        lambda V, o, a, b: (a * V, a * V + o, (V + o) / 2, a * V + b * o),
    ),
    slip(
        2,
        "row 10 has fixed shares, one half each: a and b do not occur in it",
        lambda V, o, a, b: (a * V, a * o, (a * V + b * o) / 2, a * V + b * o),
    ),
    slip(
        2,
        "in row 11 each coefficient stands on its own source; you multiplied both by both",
        lambda V, o, a, b: (a * V, a * o, (V + o) / 2, (a + b) * (V + o)),
    ),
    slip(
        1,
        "a and b in row 11 are used as they are; you divided by their sum",
        lambda V, o, a, b: (a * V, a * o, (V + o) / 2, (a * V + b * o) / (a + b)),
    ),
    hints=[
        "Four expressions, in the order of the list. V stands in three of them.",
        "return a * V, a * other, (V + other) / 2, a * V + b * other",
    ],
    level="easy",
    minutes=5,
)
def four_ways(V, other, a, b, *, half=0.5, two=True, exchanged=False, kept=False):
    """The values of rows 2, 6, 10 and 11, as a tuple of four; V and other (B,T,G,D), a and b
    numbers.

    row 2: V with the gain a. row 6: the other source with the gain a, in place of V.
    row 10: half of each. row 11: a times V and b times the other.
    """
    on_v, on_other = (b, a) if exchanged else (a, b if two else a)
    return (
        a * V,
        a * other + (V if kept else 0),
        half * V + half * other,
        on_v * V + on_other * other,
    )


# ---- equal parameters ----------------------------------------------------------------------------


def model(r):
    layers, width, hidden = r.integers(4, 30), 64 * r.integers(2, 12), 64 * r.integers(16, 40)
    return layers, width, hidden


def more(r):
    layers, width, hidden = model(r)
    return int(layers), int(width), int(hidden), int(layers * width * r.integers(50, 400)) + 5


def fewer(r):
    layers, width, hidden = model(r)
    return int(layers), int(width), int(hidden), -int(layers * width * r.integers(50, 400)) - 5


@unit.exercise(
    Part("a plan with more parameters", 1, more),
    Part("a plan with fewer", 1, fewer),
    Wrong(
        "wider instead of narrower",
        2,
        "you widened the networks; what the plan has more, its networks give back",
        dict(sign=1),
    ),
    Wrong(
        "one matrix",
        2,
        "a feed-forward network has two matrices: one unit of width costs 2 C numbers a layer",
        dict(matrices=1),
    ),
    Wrong(
        "one layer",
        2,
        "all layers share the cost: one unit of width costs 2 C numbers in EVERY layer",
        dict(shared=False),
    ),
    Wrong("rounded up", 2, "to the NEAREST unit: you rounded up", dict(whole=math.ceil)),
    Wrong("rounded down", 2, "to the NEAREST unit: you rounded down", dict(whole=math.floor)),
    Wrong("not rounded", 2, "a width is a whole number: round it", dict(whole=float)),
    slip(
        2,
        "one unit of width costs a row and a column of C numbers: 2 C in every layer, "
        "and C is missing",
        lambda L, C, F, extra: round(F - extra / (2 * L)),
    ),
    Wrong(
        "three matrices",
        2,
        "a network has two matrices, not three: 2 C numbers a unit and layer",
        dict(matrices=3),
    ),
    slip(
        2,
        "W_in is (hidden, C): a unit of width costs 2 C numbers, not C^2",
        lambda L, C, F, extra: round(F - extra / (C**2 * L)),
    ),
    slip(
        2,
        "a unit of width is a row of C numbers, not of hidden",
        lambda L, C, F, extra: round(F - extra / (2 * F * L)),
    ),
    slip(
        2,
        "that is by how much the width changes; wanted the width that is left",
        lambda L, C, F, extra: round(extra / (2 * C * L)),
    ),
    Wrong(
        "eight matrices",
        2,
        "a unit of width costs 2 C numbers a layer, not 8 C: `hidden` is the width itself",
        dict(matrices=8),
    ),
    Wrong(
        "four matrices",
        2,
        "a network has two matrices, not four: 2 C numbers a unit and layer",
        dict(matrices=4),
    ),
    slip(
        2,
        "`width` and `hidden` have changed places: what gives way is `hidden`",
        lambda L, C, F, extra: round(C - extra / (2 * F * L)),
    ),
    slip(
        1,
        "`extra` has a sign: a plan with fewer parameters gets WIDER networks",
        lambda L, C, F, extra: round(F - abs(extra) / (2 * C * L)),
    ),
    slip(
        2,
        "what the plan has more is taken off `hidden`; you multiplied",
        lambda L, C, F, extra: round(F * (1 - extra / (2 * C * L))),
    ),
    hints=[
        "How many numbers does one more unit of width cost? It is a row in one matrix and a column "
        "in the other, in every layer.",
        "round(hidden - extra / (2 * width * layers))",
    ],
    level="easy",
    minutes=5,
)
def equal_width(layers, width, hidden, extra, *, sign=-1, matrices=2, shared=True, whole=round):
    """The width of the feed-forward networks, to the nearest unit, with which a plan has as many
    parameters as the standard model.

    layers, width C: of both models. hidden: the width of standard's networks, W_in (hidden, C) and
    W_out (C, hidden) in each layer. extra: how many more parameters the plan has at that width.
    """
    unit_of_width = matrices * width * (layers if shared else 1)
    return whole(hidden + sign * extra / unit_of_width)


# ---- what does the token explain? ----------------------------------------------------------------


def groups(features, means):
    """A quantity with a part that the token decides, off-centre. Each of four tokens stands there
    once or more, and not all ids occur."""

    def make(r):
        which = np.concatenate([np.arange(4), r.integers(0, 4, 9)])
        token = means * r.normal(size=(4, features))
        scale = 1 + np.arange(features)
        return (3 + token[which] + r.normal(size=(13, features))) * scale, 5 * which + 2

    return make


def token_means(y, ids, sums=False):
    """For each place the mean of its token, or the sum."""
    collect = np.sum if sums else np.mean
    return np.stack([collect(y[ids == w], axis=0) for w in ids])


@unit.exercise(
    Part("one feature", 1, groups(1, 1.0)),
    Part("several features", 1, groups(3, 1.0)),
    Wrong(
        "not corrected",
        2,
        "you divided sums of squares as they are: a mean of few places fits by chance. Within: "
        "divide by N less the number of tokens; whole: by N - 1",
        dict(corrected=False),
    ),
    Wrong(
        "the other share",
        2,
        "that is the share WITHIN tokens; wanted what the token explains: 1 less that",
        dict(turn=True),
    ),
    Wrong(
        "not centred",
        2,
        "the whole variance is around the mean of all places: subtract it first",
        dict(centred=False),
    ),
    Wrong(
        "a mean of shares",
        1,
        "add the squares over all features first, then divide; you averaged a share for each "
        "feature",
        dict(each=True),
    ),
    slip(
        2,
        "within is over N less the number of tokens; you divided by N",
        lambda y, ids: 1 - (1 - explained(y, ids)) * (len(y) - len(set(ids))) / len(y),
    ),
    slip(
        2,
        "count the tokens that occur; the largest id does not say how many there are",
        lambda y, ids: (
            1 - (1 - explained(y, ids)) * (len(y) - len(set(ids))) / (len(y) - ids.max() - 1)
        ),
    ),
    slip(
        2,
        "whole is over N - 1; you divided by N",
        lambda y, ids: 1 - (1 - explained(y, ids)) * len(y) / (len(y) - 1),
    ),
    slip(
        2,
        "within over whole, not whole over within",
        lambda y, ids: 1 - 1 / (1 - explained(y, ids)),
    ),
    slip(
        1,
        "each feature has a mean of its own: y.mean(0)",
        lambda y, ids: 1 - (1 - explained(y, ids)) * np.var(y, 0).sum() / np.var(y) / y.shape[1],
    ),
    slip(
        2,
        "you divided by what is within; the share is of the WHOLE",
        lambda y, ids: 1 / (1 - explained(y, ids)) - 1,
    ),
    slip(2, "a share of variance is no root", lambda y, ids: explained(y, ids) ** 0.5),
    slip(
        2,
        "within is over N less the number of tokens, and nothing more",
        lambda y, ids: (
            1 - (1 - explained(y, ids)) * (len(y) - len(set(ids))) / (len(y) - len(set(ids)) - 1)
        ),
    ),
    slip(
        2,
        "within is over N LESS the number of tokens; you divided by that number",
        lambda y, ids: 1 - (1 - explained(y, ids)) * (len(y) - len(set(ids))) / len(set(ids)),
    ),
    slip(
        2,
        "squares are wanted, you took absolute values",
        lambda y, ids: (
            1
            - abs(y - token_means(y, ids)).sum()
            / (len(y) - len(set(ids)))
            / np.var(y, 0, ddof=1).sum()
        ),
    ),
    slip(
        2,
        "around the MEAN of each token; you took off its sum",
        lambda y, ids: (
            1
            - ((y - token_means(y, ids, sums=True)) ** 2).sum()
            / (len(y) - len(set(ids)))
            / np.var(y, 0, ddof=1).sum()
        ),
    ),
    hints=[
        "The mean of each token's places, the squares that are left around it, and the squares "
        "around the mean of all.",
        "ids.unique(return_inverse=True, return_counts=True) numbers the tokens; index_add_ sums "
        "the rows of each.",
        "within = (y - means[group]).square().sum() / (N - tokens); whole = "
        "(y - y.mean(0)).square().sum() / (N - 1); 1 - within / whole.",
    ],
    level="medium",
    minutes=10,
)
def explained(y, ids, *, corrected=True, turn=False, centred=True, each=False):
    """The share of y's variance that the token explains, as a number: y (N,F), ids (N,).

    1 - within / whole. within: the squares around the mean of each token, over N - (number of
    different tokens). whole: the squares around the mean of all, over N - 1. Squares are summed
    over all features.
    """
    N, F = y.shape
    tokens = sorted(set(ids.tolist()))
    within, whole = np.zeros(F), np.zeros(F)
    for f in range(F):
        centre = sum(y[:, f]) / N if centred else 0.0
        mean = {w: np.mean([y[n, f] for n in range(N) if ids[n] == w]) for w in tokens}
        for n in range(N):
            within[f] += (y[n, f] - mean[ids[n]]) ** 2
            whole[f] += (y[n, f] - centre) ** 2
    free = (N - len(tokens)) / (N - 1) if corrected else 1.0
    share = np.mean(within / whole) / free if each else within.sum() / whole.sum() / free
    return share if turn else 1 - share
