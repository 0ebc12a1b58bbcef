"""Notebook 09: where do the values come from?"""

import numpy as np

from homework.by_index import normed
from homework.marking import Part, Unit, drawn, normals

unit = Unit("nb09_thirteen_rows", "Thirteen rows")


@drawn
def streams(r, at, chosen, C):
    """Layer `at` of a stack: what it reads, the embedding, and its matrix."""
    h, x0, W = normals(r, (2, 4, C), (2, 4, C), (C, C))
    return at, chosen, normed(h), normed(x0), W


@unit.exercise(
    Part("a layer that is chosen", 1, [streams(10, [8, 9, 10, 11], 6), streams(3, [1, 3, 5], 4)]),
    Part("one that is not", 1, [streams(7, [8, 9, 10, 11], 6), streams(2, [1, 3, 5], 4)]),
    Part("all layers", 1, [streams(0, list(range(12)), 5), streams(11, list(range(12)), 4)]),
    Part("the layers at the bottom", 1, [streams(9, [0, 1, 2, 3], 4), streams(2, [0, 1, 2, 3], 5)]),
)
def row_8(n, chosen, h, x0, W):
    """The values of layer n (B,T,C): made from x0 in the layers of `chosen`, from h in all others.

    chosen: a list of layers. Row 8 of the paper's table chooses the last third; any list may stand
    there. n and `chosen` count from 0. h and x0 (B,T,C): what this layer reads, and the embedding,
    both normed already. W (C,C) holds W_V as a torch Linear does: one row for each feature that
    comes out.
    """
    stream = x0 if n in chosen else h
    return stream @ W.T


unit.mistakes("""
takes: easy, 6 minutes
hint: Choose a stream first: x0 where n is one of `chosen`, h where it is not.
hint: Then multiply by W, as torch's Linear does: F.linear(stream, W).
hint: stream = x0 if n in chosen else h
2 | you read the embedding in every layer; only the layers of `chosen` do so
    n in chosen => True
3 | that is the ordinary value, h W, in every layer: in those of `chosen` x0 stands for h
    n in chosen => False
2 | `chosen` names every layer that is chosen, not only where they begin: n in chosen
    n in chosen => n >= chosen[0]
1 | between the first and the last there may be layers that are not chosen: n in chosen
    n in chosen => chosen[0] <= n <= chosen[-1]
1 | `chosen` need not begin at layer 0: n in chosen
    n in chosen => n <= chosen[-1]
3 | n and `chosen` are counted alike, from 0: n in chosen, and nothing is added to n
    n in chosen => n + 1 in chosen
    n in chosen => n - 1 in chosen
2 | `chosen` says which layers, not only how many: n in chosen
    n in chosen => n < len(chosen)
3 | the last third is row 8's own choice; here `chosen` says which layers: n in chosen
    n in chosen => n >= 8
1 | layer 0 may be among the chosen, too: n in chosen
    n in chosen => n > 0 and n in chosen
3 | in place of, neither added nor mixed: nothing of h is left in a value of a chosen layer
    x0 if => x0 + h if
    x0 if => (x0 + h) / 2 if
4 | a value is the stream times this layer's W: F.linear(stream, W)
    @ W.T =>
4 | a row of W makes one feature, as in a torch Linear: F.linear(stream, W) or stream @ W.T
    W.T => W
3 | the token's value has no matrix: a chosen layer applies its own W to x0
    stream @ W.T => stream if n in chosen else stream @ W.T
4 | the two streams have changed places: x0 is for the layers of `chosen`
    x0 if => h if
    and: else h => else x0
2 | W is turned round in the layers that are not chosen: F.linear(h, W)
    W.T => (W.T if n in chosen else W)
""")


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
)
def four_ways(V, other, a, b):
    """The values of rows 2, 6, 10 and 11, as a tuple of four; V and other (B,T,G,D), a and b
    numbers.

    row 2: V with the gain a. row 6: the other source with the gain a, in place of V.
    row 10: half of each. row 11: a times V and b times the other.
    """
    row_2 = a * V
    row_6 = a * other
    row_10 = (V + other) / 2
    row_11 = a * V + b * other
    return row_2, row_6, row_10, row_11


unit.mistakes("""
takes: easy, 5 minutes
hint: Four expressions, in the order of the list. V stands in three of them.
hint: return a * V, a * other, (V + other) / 2, a * V + b * other
2 | row 10 takes HALF of each: the fixed coefficients are one half
    / 2 =>
2 | row 11 has two coefficients: a for V and b for the other source
    b * other => a * other
2 | a belongs to V and b to the other source; in row 11 you exchanged them
    a * V + b * other => b * V + a * other
2 | row 6 is in place of V, with the gain a: nothing of V is left in it
    a * other => a * other + V
    a * other => a * V + other
1 | rows 2 and 6 have a gain: a times the source
    row_2 = a * V => row_2 = V
    and: a * other => other
2 | the gain of row 6 is a, too; b occurs in row 11 alone
    a * other => b * other
2 | a and b are the weights of row 11 as they are: nothing is halved in it
    a * V + b * other => (a * V + b * other) / 2
1 | row 11 has two free coefficients: the other source takes b, not 1 - a
    b * other => (1 - a) * other
1 | a is missing in row 11: a times V, b times the other
    a * V + b => V + b
1 | row 10 has no gain: half of each
    (V + other) / 2 => a * (V + other) / 2
2 | half of EACH in row 10; you took all of one source
    (V + other) => V + other
2 | row 2 is V with the gain alone: a * V
    row_2 = a * V => row_2 = V + a * V
1 | b alone belongs to the other source in row 11; you multiplied it by a as well
    a * V + b * other => a * (V + b * other)
2 | row 10 has fixed shares, one half each: a and b do not occur in it
    (V + other) / 2 => (a * V + b * other) / 2
2 | a gain multiplies: rows 2 and 6 are a times the source
    row_2 = a * V => row_2 = V + a
    and: a * other => other + a
""")


@drawn
def plan(r, sign):
    layers, width, hidden = r.integers(4, 30), 64 * r.integers(2, 12), 64 * r.integers(16, 40)
    return layers, width, hidden, sign * (layers * width * r.integers(50, 400) + 5)


@unit.exercise(
    Part("a plan with more parameters", 1, plan(1)), Part("a plan with fewer", 1, plan(-1))
)
def equal_width(layers, width, hidden, extra):
    """The width of the feed-forward networks, to the nearest unit, with which a plan has as many
    parameters as the standard model.

    layers, width C: of both models. hidden: the width of standard's networks, W_in (hidden, C) and
    W_out (C, hidden) in each layer. extra: how many more parameters the plan has at that width.
    """
    unit_of_width = 2 * width * layers
    left = hidden - extra / unit_of_width
    return round(left)


unit.mistakes("""
takes: easy, 5 minutes
hint: How many numbers does one more unit of width cost? It is a row in one matrix and a column in
    | the other, in every layer.
hint: round(hidden - extra / (2 * width * layers))
2 | you widened the networks; what the plan has more, its networks give back
    hidden - => hidden +
2 | a feed-forward network has two matrices: one unit of width costs 2 C numbers a layer
    2 * width => width
    2 * width => 3 * width
    2 * width => 4 * width
    2 * width => 8 * width
2 | one division by all of 2 * C * layers: what stands behind / without brackets multiplies
    extra / unit_of_width => extra / 2 * width * layers
    extra / unit_of_width => extra / layers / 2 * width
2 | wanted the width of the NETWORKS: `hidden` is what gives way, not `width`
    hidden - => width -
2 | all layers share the cost: one unit of width costs 2 C numbers in EVERY layer
    * layers =>
2 | to the NEAREST unit: round does it; you went up, or down, whatever is nearer
    round(left) => int(np.ceil(left))
    round(left) => int(np.floor(left))
2 | a width is a whole number: round it
    round(left) => left
2 | one unit of width costs a row and a column of C numbers: 2 C in every layer, and C is missing
    2 * width => 2
2 | W_in is (hidden, C): a unit of width costs 2 C numbers, not C^2
    2 * width => width**2
    2 * width => 2 * width**2
2 | a unit of width is a row of C numbers, not of hidden
    2 * width => 2 * hidden
2 | that is by how much the width changes; wanted the width that is left
    hidden - =>
2 | `width` and `hidden` have changed places: what gives way is `hidden`
    hidden - => width -
    and: 2 * width => 2 * hidden
1 | `extra` has a sign: a plan with fewer parameters gets WIDER networks
    extra / => abs(extra) /
2 | what the plan has more is taken off `hidden`; you multiplied
    hidden - extra / unit_of_width => hidden * (1 - extra / unit_of_width)
""")


@drawn
def groups(r, features, means):
    """A quantity with a part that the token decides, off-centre. Each of four tokens stands there
    once or more, and not all ids occur."""
    which = np.concatenate([np.arange(4), r.integers(0, 4, 9)])
    token = means * r.normal(size=(4, features))
    scale = 1 + np.arange(features)
    return (3 + token[which] + r.normal(size=(13, features))) * scale, 5 * which + 2


@unit.exercise(Part("one feature", 1, groups(1, 1.0)), Part("several features", 1, groups(3, 1.0)))
def explained(y, ids):
    """The share of y's variance that the token explains, as a number: y (N,F), ids (N,).

    1 - within / whole. within: the squares around the mean of each token, over N - (number of
    different tokens). whole: the squares around the mean of all, over N - 1. Squares are summed
    over all features.
    """
    N, tokens = len(y), set(ids.tolist())
    means = np.stack([y[ids == w].mean(0) for w in ids])
    around_tokens = (y - means) ** 2
    around_all = (y - y.mean(0)) ** 2
    within = around_tokens.sum() / (N - len(tokens))
    whole = around_all.sum() / (N - 1)
    return 1 - within / whole


unit.mistakes("""
takes: medium, 10 minutes
hint: The mean of each token's places, the squares left around it, and those around the mean of all.
hint: ids.unique(return_inverse=True, return_counts=True) numbers the tokens; index_add_ sums.
hint: within = (y - means[group]).square().sum() / (N - tokens); whole = (y -
    | y.mean(0)).square().sum() / (N - 1); 1 - within / whole.
2 | a mean of few places fits by chance, so what is left around it is divided by less. Within: by N
  | less the number of tokens; whole: by N - 1
    / (N - len(tokens)) =>
    and: / (N - 1) =>
    / (N - len(tokens)) => / (N - 1)
    and: / (N - 1) => / N
2 | that is the share WITHIN tokens; wanted what the token explains: 1 less that
    1 - within / whole => within / whole
2 | a variance is of SQUARES; you took absolute values, or a root at the end
    - means) ** 2 => - means).__abs__()
    and: - y.mean(0)) ** 2 => - y.mean(0)).__abs__()
    within / whole => (within / whole) ** 0.5
2 | the whole variance is around the mean of all places: subtract it first
    (y - y.mean(0)) => y
1 | add the squares over all features first, then divide; you averaged a share for each feature
    around_tokens.sum() => around_tokens.sum(0)
    and: around_all.sum() => around_all.sum(0)
    and: within / whole => (within / whole).mean()
2 | within is over N LESS the number of different tokens
    (N - len(tokens)) => N
    (N - len(tokens)) => len(tokens)
    len(tokens) => len(tokens) - 1
2 | count the tokens that occur; the largest id does not say how many there are
    len(tokens) => (ids.max() + 1)
2 | whole is over N - 1; you divided by N
    (N - 1) => N
2 | within over whole, not whole over within
    within / whole => whole / within
2 | within tokens you took squares around the mean of ALL; a token's are around its own mean
    y - means => y - y.mean(0)
1 | each feature has a mean of its own: y.mean(0)
    y.mean(0) => y.mean()
2 | you divided by what is within; the share is of the WHOLE
    1 - within / whole => (whole - within) / within
2 | a share of variance is no root
    1 - within / whole => (1 - within / whole) ** 0.5
2 | squares are wanted, you took absolute values
    (y - means) ** 2 => abs(y - means)
2 | around the MEAN of each token; you took off its sum
    y[ids == w].mean(0) => y[ids == w].sum(0)
2 | that is per cent; wanted a share of one
    1 - within / whole => 100 * (1 - within / whole)
2 | tokens that stand in many places count more: add all squares first, then divide
    within / whole => np.mean([y[ids == w].var(0).sum() for w in tokens]) / whole
    within / whole => np.mean(
  | [y[ids == w].var(0, ddof=1).sum() for w in tokens if sum(ids == w) > 1]) / whole
2 | means scatter by chance as well: the share is 1 - within / whole, not what the means scatter
    => (lambda m: m.var(0, ddof=1).sum() / y.var(0, ddof=1).sum())(
  | np.stack([y[ids == w].mean(0) for w in set(ids.tolist())]))
    => (((np.stack([y[ids == w].mean(0) for w in ids]) - y.mean(0)) ** 2).sum()
  | / (len(set(ids.tolist())) - 1) / y.var(0, ddof=1).sum())
""")
