"""hw07: where do the values of deep layers come from, and what does it save to look them up?"""

from bisect import bisect_left

import numpy as np

from homework.by_index import causal_weights, normed
from homework.marking import Part, Unit, always, drawn, guesses, need, normals, per_cent, refuse

unit = Unit(
    "hw07_bank_of_values",
    "Where do deep layers get their values?",
    """Letters: B batch, T new positions, S visible positions, H heads, D head width, C model
    width, V vocabulary, L layers (numbered from 0).""",
)


RULES = ("last third", "every second", "last half")


def targets(rule, layers):
    """The layers that a rule picks."""
    first = dict(zip(RULES, (2 * layers // 3, (layers - 1) % 2, layers // 2), strict=True))
    return list(range(first[rule], layers, 2 if rule == "every second" else 1))


@drawn
def picked_by(r, rule, remainder=None):
    """What a rule picks, at a depth at which all differ: even, or with this remainder by 3."""
    layers = 2 * int(r.integers(4, 10)) if remainder is None else 3 * int(r.integers(3, 9))
    layers += remainder or 0
    return targets(rule, layers), layers


def by_none(r):
    """As many layers as the last third has, or as many as the last half, one too low."""
    layers = 2 * int(r.integers(5, 10))
    rule = RULES[2 * int(r.integers(2))]
    return [i - 1 for i in targets(rule, layers)], layers


by_one = [picked_by("last third", 1), *map(picked_by, RULES[1:]), picked_by("last third", 2)]
by_one += [always([0, 2, 4, 6, 8], 9)]
picked = [([2, 3], 4), ([1], 2), ([1, 2], 3), ([1, 2, 3, 4, 5, 6, 7], 8), ([7, 8], 9)]
picked += [([6, 8], 9), ([0, 1, 2], 9), ([5, 6, 7, 8], 9)]


@unit.exercise(
    Part("one rule", 2, by_one),
    Part("several rules, or none", 2, [by_none, *(always(*case) for case in picked)]),
)
def which_rules(picked, layers):
    """Which rules could have picked these layers (a list, ascending) of a model with `layers`
    layers? Three answers, 1 for yes and 0 for no, in this order. last third: all from (2L)//3 on.
    every second: the last layer, and every second one below it. last half: all from L//2 on.
    """
    third, second, half = [targets(rule, layers) for rule in RULES]
    found = [int(list(picked) == mine) for mine in (third, second, half)]
    return tuple(found)


unit.mistakes("""
takes: easy, 8 minutes
hint: For 12 layers: [8, 9, 10, 11], [1, 3, 5, 7, 9, 11], [6, …, 11]. And for 4?
hint: Write each rule down as a list for this depth, and compare: i >= (2 * L) // 3; i % 2 == (L -
    | 1) % 2; i >= L // 2.
after: In a model of 4 layers the last third and the last half are the same two layers, and in one
    | of 2 all three rules are one: what is measured there cannot tell them apart, whatever the run
    | was called. 2L/3 is rounded down, and every second layer is counted from the last one. In the
    | package: minimal/model/plan.py: last_third, minimal/model/plan.py: alternate and
    | minimal/model/plan.py: second_half.
in: targets
4 | you rounded 2L/3 up; the first target is 2L/3 rounded down
    2 * layers // 3 => -(-2 * layers // 3)
4 | every second layer is counted from the LAST one down: the last layer is always a target
    (layers - 1) % 2 => 0
2 | you stopped at the first rule that fits; in a shallow model several pick the same layers
    return tuple(found) => return tuple(int(n == (found + [1]).index(1)) for n in range(3))
4 | you compared how many layers there are, not which
    list(picked) == mine => len(picked) == len(mine)
2 | every second is counted from the LAST layer down: at an odd depth these are 0, 2, 4, …
    (layers - 1) % 2 => 1
2 | `picked` ascends; your list of every second layer descends, and is never equal to it
    in (third, second => in (third, second[::-1]
4 | layers are counted from 0: the last third begins AT layer 2L // 3, the last half AT L // 2
    2 * layers // 3 => 2 * layers // 3 + 1
    layers // 2 => layers // 2 + 1
4 | the LAST third begins at 2L // 3; yours has two thirds
    2 * layers // 3 => layers // 3
4 | you took the first third; the last one begins at 2L // 3
    in (third => in (list(range(layers // 3))
2 | the last half begins at L / 2 rounded DOWN
    layers // 2 => (layers + 1) // 2
2 | a rule picks ALL of its layers: some of the last third are not the last third
    return tuple(found) => return int(set(picked) <= set(third)), *found[1:]
""")


def target_layers(row, layers):
    """Which layers a row of Table 1 changes."""
    if row == 3:
        return range(1, layers)
    return targets("every second" if row in (4, 7) else "last third", layers)


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


@unit.exercise(
    Part("in place of V", 8, row(*range(1, 10)) + row(3, 4, 6, 7, 9, inside=False)),
    Part("added to V", 8, row(10, 11, 12, 13) + row(11, 13, inside=False)),
)
def value(row, layer, layers, v, v1, vx, a, b):
    """The value that layer `layer` of a model with `layers` layers uses in row 1 … 13 of the Bank
    of Values paper's Table 1. All tensors (B,T,H,D).

    v: the layer's own; v1: the first layer's; vx: x0 W_V. In place of V: 1 V, 2 aV, 3 and 5 V1, 4
    and 6 aV1, 8 x0W, 7 and 9 a x0W. Added: 10 (V + V1)/2, 11 aV + bV1, 12 (V + x0W)/2, 13 aV + b
    x0W. Row 3 changes all layers but layer 0, rows 4 and 7 "every second", all others the "last
    third" (see `which_rules`). A layer that its row does not change uses v.
    """
    if layer not in target_layers(row, layers):
        return v.copy()
    source = v if row < 3 else v1 if row in (3, 4, 5, 6, 10, 11) else vx
    if row < 10:
        return (a if row in (2, 4, 6, 7, 9) else 1) * source
    return (v + source) / 2 if row in (10, 12) else a * v + b * source


unit.mistakes("""
takes: medium, 18 minutes
hint: First: is this layer one of the row's? The rules are those of number 1, but for row 3, which
    | takes all layers from 1 on. If it is not, return a copy of v.
hint: Three questions for a row: which source? in place of V, or added? learned, or fixed?
hint: A dict {row: (which tensor, coefficient of V, coefficient of the tensor)} spares branches.
after: Source, in place or added, learned or fixed: with the choice of layers these are the four
    | dials, and a table of coefficients does for thirteen branches. Row 3 stops at layer 1, because
    | the first layer cannot borrow from itself; the rows are plans in minimal/variants.py: PLANS.
    | README's question: Figure 2 (b, c) shows rates and starts as much as preference, since one
    | coefficient learns a hundred times as fast and without decay (minimal/training/recipes.py:
    | COEFFICIENTS). Only a run that treats both alike could tell.
in: target_layers, targets
16 | this layer is none of the row's: its value is v, as it is
     layer not in target_layers(row, layers) => False
 8 | row 3 changes all layers but the first, rows 4 and 7 every second one
     target_layers(row, layers) => targets("last third", layers)
 8 | rows 10 and 12 take half of each; you took the whole of both
     (v + source) / 2 => (v + source)
 8 | rows 11 and 13 have two coefficients: a for V and b for the context-free value
     b * source => a * source
16 | you took V1 where x0 W_V was meant, or the other way round: see the table's first column
     v1 if row => vx if row
     and: else vx => else v1
 8 | row 3 changes ALL layers but layer 0, not the last third
     row == 3 => False
 8 | row 3 does not change layer 0: V1 is made there
     range(1, layers) => range(layers)
 8 | rows 4 and 7 change every second layer, not the last third
     "every second" if row in (4, 7) else "last third" => "last third"
 8 | every second layer is counted from the LAST one down: at an odd depth these are even
     (layers - 1) % 2 => 1
16 | the last third begins AT layer 2L // 3, counted from 0; yours begins later
     2 * layers // 3 => 2 * layers // 3 + 1
16 | you changed the last half; these rows change the last third, from 2L // 3 on
     2 * layers // 3 => layers // 2
 8 | the coefficient a is missing in rows 4 and 6
     (2, 4, 6, 7, 9) => (2, 7, 9)
 8 | rows 7 and 9 take x0 W_V, not V1
     (3, 4, 5, 6, 10, 11) => (3, 4, 5, 6, 7, 9, 10, 11)
 8 | V has a coefficient of its own in rows 11 and 13: a
     a * v => v
 8 | a belongs to V and b to the other; yours have changed places
     a * v + b => b * v + a
 8 | a and b are two numbers; yours add up to one
     a * v => (1 - b) * v
""")


def embedded(C, E):
    """Rows with a mean square of about 100: next to it an epsilon of 1e-5 is nothing, one of 1e-2
    is not."""
    return lambda r: (
        normed(r.normal(size=(9, C))) * (8 + 4 * r.random((9, 1))),
        r.normal(size=(int(r.integers(2, 5)), C, E)),
    )


@unit.exercise(
    Part("as many columns", 4, embedded(5, 5)), Part("a narrower value", 4, embedded(6, 4))
)
def aligned_table(embedding, w):
    """One table for n layers, as near to all as it can be: layer i's own table would have the rows
    RMSNorm(embedding[t]) @ w[i]. Return the table with the smallest sum of squared differences from
    these n tables. embedding (V,C), w (n,C,E) -> (V,E).

    The norm is taken over C, without weights or epsilon (one of at most 1e-5 does no harm here).
    """
    tables = np.array([normed(embedding) @ matrix for matrix in w])
    return tables.mean(0)


unit.mistakes("""
takes: medium, 10 minutes
hint: With one layer it is notebook 10's table. With n layers: which vector has the smallest sum of
    | squared distances from n given ones?
hint: Their mean. And the mean of n products with one matrix factor in common is a product again:
    | average the w first.
after: The mean of n points has the smallest sum of squared distances from them, and the mean of
    | products is a product with the mean matrix. So one table for several layers is right for none
    | of them: the claim that the first forward pass is that of x0 W_V holds for a table of each
    | layer's own. In the package: minimal/model/init.py: align, which fills a shared table with the
    | rows of one matrix.
in: normed
8 | that is the table of one layer; which is closest to those of all?
    tables.mean(0) => tables[0]
8 | you added what the layers make; the table that is closest to all lies in their middle
    tables.mean(0) => tables.sum(0)
8 | the embedding is RMS-normalised before it meets W_V (Eq 3)
    normed(embedding) => embedding
8 | you normalised the value; the embedding is normalised, then multiplied
    normed(embedding) => embedding
    and: tables.mean(0) => normed(tables.mean(0))
8 | you divided by the length; RMS-norm leaves length sqrt(C): divide by the root MEAN square
    .mean(-1 => .sum(-1
8 | one layer's table is near to that layer alone: take the mean of all
    tables.mean(0) => tables[-1]
8 | the nearest table to all, in squares, is their MEAN, not their median
    tables.mean(0) => np.sort(tables, 0)[(len(w) - 1) // 2]
8 | the norm is that of each token, over C
    .mean(-1 => .mean(0
8 | RMSNorm divides by the ROOT of the mean square
    np.sqrt((x**2).mean(-1, keepdims=True)) => (x**2).mean(-1, keepdims=True)
""")


@drawn
def lookup(r, T, S):
    q, k = normals(r, (2, T, 6, 5), (2, S, 3, 5))
    return q, k, r.integers(0, 6, (2, S)), r.normal(size=(11, 3, 5)), 2.5


@unit.exercise(Part("a whole sequence", 7, lookup(6, 6)), Part("behind a cache", 7, lookup(2, 7)))
def bov_attention(q, k, ids, table, gamma):
    """Causal attention with grouped heads whose values are looked up: q (B,T,H,D), k (B,S,G,D), ids
    (B,S), table (V,G,D), gamma a number -> (B,T,H,D).

    G divides H: query head h reads keys and rows of group h // (H // G). The value of position p is
    gamma * table[ids[p]] (Eq 5), scores are q k / sqrt(D); the T queries are the last T of S
    positions.
    """
    (B, T, H, D), G = q.shape, k.shape[2]
    out = np.zeros((B, T, H, D))
    for b, h in np.ndindex(B, H):
        g = h // (H // G)
        weights = causal_weights(q[b, :, h], k[b, :, g])
        rows = table[ids[b], g]
        out[b, :, h] = gamma * (weights @ rows)
    return out


unit.mistakes("""
takes: medium, 15 minutes
hint: table[ids] has the shape of values: (B,S,G,D). Repeat keys and values for the heads of their
    | group: repeat_interleave along the heads. The rest is notebook 10's layer.
hint: gamma scales every value alike, so it may wait until after the sum.
after: table[ids] stands where V stood, and the rest is attention as it was. gamma scales all values
    | alike, so it may wait until after the sum: minimal/kernels/gather.py: gather_attention applies
    | it once. With grouped heads the table shrinks with the keys: a row has G D numbers. The einsum
    | solution makes no V at all but collects the weights by token, and that is the next exercise.
in: causal_weights
14 | your table was read at the position; it is read at the id of the token that stands there
     ids[b] => np.arange(k.shape[1])
14 | gamma, the layer's coefficient, is missing
     gamma * =>
14 | gamma was applied twice
     gamma * => gamma**2 *
 7 | with fewer queries than keys, the queries are the LAST positions: query t sees keys up to t + S
   | - T
     t + S - T + 1 => t + 1
14 | your queries also see the keys after them
     scores[t, t + S - T + 1 :] = -np.inf => pass
14 | neighbouring query heads share a key head and its rows: head h reads group h // (H // G)
     h // (H // G) => h % G
14 | the scores are not divided by sqrt(D)
     / np.sqrt(D) =>
14 | the scores are divided by the ROOT of D
     np.sqrt(D) => D
14 | gamma belongs to the values; you multiplied the scores by it as well
     q[b => gamma * q[b
14 | the values are the table's rows alone; you added the keys
     table[ids[b], g] => table[ids[b], g] + k[b, :, g]
14 | each of your queries sees one key too many: the last is t + S - T
     t + S - T + 1 => t + S - T + 2
14 | your softmax runs over the queries; the weights of each QUERY sum to one
     softmax(scores) => softmax(scores, 0)
""")


@drawn
def masses(r, distinct):
    w = r.random((2, 3, 6))
    ids = np.stack([r.permutation(9)[:6] if distinct else r.integers(0, 3, 6) for _ in range(2)])
    table = r.normal(size=(12, 3, 4))
    return w / w.sum(-1, keepdims=True), ids + (2 if distinct else 5), table, 1.5


@unit.exercise(
    Part("every token once", 3, masses(True)), Part("tokens that come again", 7, masses(False))
)
def histogram_decode(weights, ids, table, gamma):
    """Decode without any values, and read only the rows in use: how much attention falls on each
    TOKEN TYPE that stands anywhere in the batch, then one product with these rows.

    weights (B,H,S) of one query of each text, ids (B,S), table (V,H,D) -> (tokens (U,), masses
    (B,H,U), out (B,H,D)). tokens: every id of the batch once, ascending; a token that is not in a
    text has mass 0 there. out is what attention hands over, times gamma.
    """
    tokens = sorted(set(ids.flatten().tolist()))
    masses = np.zeros((*weights.shape[:2], len(tokens)))
    for b, h, p in np.ndindex(weights.shape):
        masses[b, h, tokens.index(ids[b, p])] += weights[b, h, p]
    out = sum(masses[:, :, u, None] * table[token] for u, token in enumerate(tokens))
    return np.array(tokens), masses, gamma * out


unit.mistakes("""
takes: medium, 14 minutes
hint: tokens, place = ids.unique(return_inverse=True): place (B,S) says where in the list each
    | position's token stands.
hint: masses[b, h, place[b, p]] += weights[b, h, p]: scatter_add along the last dimension, with
    | place expanded over the heads.
hint: out = gamma * sum over the list of mass * table[tokens]: one einsum, bhu,uhd->bhd.
after: Equal tokens have equal values, so their weights may be added before any value is read: out =
    | gamma · sum over tokens of mass · row. Over the whole vocabulary this reads all of the table,
    | so minimal/kernels/histogram.py: histogram_decode reads it in order and once; with a list of
    | the tokens in use only their rows are read, which is what notebooks/course/offload.py:
    | Offloaded keeps on the card when the table is not there.
 7 | a token that occurs twice must collect both weights; yours kept the last
     += => =
10 | you counted tokens; what is collected is their attention weight
     += weights[b, h, p] => += 1
10 | gamma is missing
     gamma * out => out
10 | row u of the table is not token u of your list: read table[tokens]
     table[token] => table[u]
10 | tokens are wanted in ASCENDING order
     np.array(tokens), masses => np.array(tokens)[::-1], masses[..., ::-1]
10 | every head has weights of its own; out is read with a mean over heads
     sum(masses => sum(masses.mean(1, keepdims=True)
""")


def budget(r):
    L = int(r.integers(4, 30))
    windows = [int(w) for w in r.choice([512, 2048], L)]
    return L, 64 * r.integers(4, 30), r.integers(8000, 60000), windows, r.integers(1, L)


@unit.exercise(
    Part(
        "the models of the paper",
        5,
        [lambda r, n=n: (12, 768, 32768, [512, 512, 512, 2048] * 3, n) for n in (0, 4, 11)],
    ),
    Part("other models", 5, budget),
)
def flops_and_tokens(layers, width, vocabulary, windows, without):
    """(FLOPs of training on one token, how many per cent more tokens than standard attention the
    same FLOPs pay for).

    Counted as in hw01: 6 a matrix weight (each layer 12 C², one head C V), 12 C · window a layer;
    `without` layers have no W_V.
    """
    head = width * vocabulary
    gone = 6 * without * width**2
    standard = 6 * (12 * layers * width**2 + head) + 12 * width * sum(windows)
    mine = standard - gone
    return mine, 100 * (standard / mine - 1)


unit.mistakes("""
takes: easy, 6 minutes
hint: The 12-layer model: 759,693,312 for standard attention, 745,537,536 for BoV, 720,764,928 for
    | row 3. And 1.9 % more tokens is not 1.9 % cheaper: which cost do you divide by?
hint: 6 · (12 L C² + C V - n C²) + 12 · C · (sum of the windows).
after: Without W_V in n layers a token costs 6 n C² less: 1.86 per cent cheaper for BoV, which is
    | 1.90 per cent more tokens, because one divides by the smaller cost. Row 3 gets 5.4 per cent
    | more, the most of all, and loses: so more tokens alone do not explain why BoV wins. A budget
    | becomes steps in minimal/compare/budgets.py: by_flops.
10 | looking a row up is no multiplication: tables and embeddings cost nothing here
     head = => head = 2 *
     and: standard - gone => standard - gone + 6 * without * head / 2
10 | the layers that look their values up have no W_V: 6 C² less for each
     standard - gone => standard
10 | each layer attends over its own window: add them up
     sum(windows) => windows[0] * layers
10 | that is how much CHEAPER a token is; more tokens are standard's cost over yours, less 1
     100 * (standard / mine - 1) => 100 * (1 - mine / standard)
10 | wanted per cent: a hundred times your share
     100 * (standard / mine - 1) => standard / mine - 1
10 | a weight of W_V costs 6 FLOPs, too, as every other
     6 * without => without
10 | W_V is C² of a layer's 12 C²: the layer's other matrices stay
     6 * without => 72 * without
10 | attention costs 12 C · window as it is: the 6 is for weights
     12 * width => 72 * width
10 | the windows are not halved here: 12 C · window a layer
     12 * width => 6 * width
10 | looking an embedding up is no multiplication: one head C V
     head = => head = 2 *
10 | the head is missing: C V weights
     head = width * vocabulary => head = 0
10 | training costs 6 a weight: 2 forward and 4 backward
     6 * (12 => 2 * (12
10 | the first answer is what a token costs WITHOUT these W_V
     return mine => return standard
10 | `without` counts the layers that have NO W_V
     6 * without => 6 * (layers - without)
""")


@drawn
def model(r, batch):
    kv, C = 64 * int(r.integers(1, 6)), 64 * int(r.integers(6, 20))
    positions, vocabulary = r.integers(1000, 90000), r.integers(8000, 60000)
    layers = int(r.integers(2, 9))
    deep, texts = int(r.integers(1, layers)), batch or r.integers(2, 40)
    id_bytes = r.choice([2, 4, 8])
    return layers, deep, texts, positions, vocabulary, kv, C, 2, id_bytes


@unit.exercise(Part("one sequence", 4, model(1)), Part("a batch", 8, model(0)))
def saved_bytes(layers, tables, batch, tokens, vocabulary, value_width, width, size, id_size):
    """Bytes (a whole number, negative if it costs) that BoV saves at decode with `layers` target
    layers that share `tables` tables: Eq 6, done exactly.

    Gone: their value caches (batch · tokens · value_width each) and matrices W_V (width ·
    value_width each). New: the tables (vocabulary · value_width each) and one id of id_size bytes
    a position. Everything else has `size` bytes. Full context, no windows.
    """
    positions = batch * tokens
    caches = layers * positions * value_width
    matrices = layers * width * value_width
    rows = tables * vocabulary * value_width
    saved = (caches + matrices - rows) * size - positions * id_size
    return saved


unit.mistakes("""
takes: medium, 9 minutes
hint: What goes: `layers` value streams of B · T · E elements, and as many matrices C × E. What
    | comes: `tables` tables V × E, and B · T ids.
hint: 12-layer model of width 768, 4 targets with 4 tables, one sequence of 32,768, 2 bytes, 8-byte
    | ids: 4,456,448. With one table for the four: 155,451,392.
after: A table serves the whole batch, and all layers that share it, and a cache exists once a
    | sequence and layer: so it is layers · B T positions against tables · |V| rows, less the ids,
    | plus the matrices that are gone. README asks which fraction saturates at a sixth: that of the
    | whole K and V cache, a third of the layers and one of two streams; of the V cache it would be
    | a third. notebooks/course/memory.py: break_even counts it on a model, ids included.
12 | that is Eq 6 as printed, in ELEMENTS for one sequence; wanted bytes: times an element's size
     => layers * value_width * (tokens - vocabulary)
 8 | one table serves the batch, and a cache one sequence: B T positions against |V| rows
     layers * positions => layers * tokens
12 | the ids must be kept: B T of them, once for all layers
     - positions * id_size =>
12 | the ids are kept once, not once for every target layer
     positions * id_size => layers * positions * id_size
12 | the target layers no longer need W_V (model width × value width each)
     + matrices =>
12 | layers may share a table: `tables` of them come, and all `layers` caches and matrices go
     tables * vocabulary => layers * vocabulary
12 | matrices W_V are GONE: they are saved as well
     + matrices => - matrices
 8 | every text of the batch has ids of its own
     positions * id_size => tokens * id_size
12 | values alone are gone: keys stay, and count on neither side
     (caches => (2 * caches
12 | you counted numbers; wanted bytes
     * size =>
12 | ids are new: they are taken off what is saved
     - positions => + positions
12 | every target layer loses a W_V, however many tables they share
     layers * width => tables * width
12 | your sign is turned: what is saved is positive
     return saved => return -saved
""")


near = guesses("length", "share")


@unit.exercise(
    Part("the length", 3, None, near(0, 1860.5, 150)),
    Part("the share", 3, None, near(1, 25, 2, per_cent)),
)
def predict_break_even():
    """Predict: a vocabulary of 32,768, full context, tables in HALF of the layers (leave ids and
    W_V out). Sixteen answers are written to one prompt of 3,000 tokens, whose keys and values are
    kept once for all. (1) From how many written tokens each does BoV save memory? (2) What per cent
    of the whole K and V cache can it save at most?
    """
    return 1860.5, 25.0


unit.mistakes("""
takes: medium, 9 minutes
off for the length: off by more than 150 tokens: the prompt's rows are kept once for all sixteen,
    | and so is the table; what they write is kept sixteen times
off for the share: off by more than 2 points: half of the layers, and only one of their two streams
hint for the length: Rows that a layer would keep: 3,000 for the prompt and 16 n for what is
    | written. The table has |V|. When are they equal?
hint for the share: Never more than all value rows of half of the layers. What part is that of keys
    | AND values of all layers?
after: 3,000 + 16 n = 32,768 at n = 1,860.5: so from 1,861 tokens each. Without sharing the prompt,
    | 16 caches of 3,000 rows would have been larger than the table from the first word on: whatever
    | shrinks a cache moves break-even away. At most all values of half of the layers can go, and
    | values are half of the cache: a quarter. notebooks/course/memory.py: break_even counts a
    | model's bytes for a batch.
3 | off by more than 150 tokens
    => (0, 25)
3 | off by more than
    => (2048, 25)
3 | off by more than 2 points
    => (1860, 50)
    => (1860, 16.7)
3 | per cent, not a fraction
    => (1860, 0.25)
""")


def cannot_fit(answer):
    embedding, table = need(answer, embedding=2, table=2)
    refuse(
        len(embedding) != len(table), "wanted an embedding (V,C) and a table (V,E) of the same V"
    )
    refuse(np.abs(embedding).sum(1).min() < 1e-3, "no embedding may vanish: it is normalised")
    refuse(np.abs(table).max(initial=0) < 1e-3, "a table of zeros is matched by W_V = 0")
    # What is left of the table beside the columns of x, without W_V itself: it may be large.
    x = normed(embedding)
    columns, sizes, _ = np.linalg.svd(x, full_matrices=False)
    columns = columns[:, sizes > 1e-12 * sizes.max()]
    left = table - columns @ (columns.T @ table)
    refuse(
        np.linalg.norm(left) < 0.5 * np.linalg.norm(table),
        "some W_V comes within half of your table: are there "
        "more tokens than dimensions, and does the table do more than the embedding says?",
    )


@unit.exercise(Part("a table that no W_V comes near", 8, None, cannot_fit))
def expressivity_counter_example():
    """Find the error. Return (embedding (V,C), table (V,E)): token embeddings, and a value table
    for one layer.

    The paper says (Sec 5.2) that computing x0 W_V in a layer "has the same expressivity as BoV".
    Return a table that no matrix W_V reproduces: the best RMSNorm(embedding) W_V leaves at least
    half of it (in Frobenius norm) unexplained.
    """
    return np.ones((4, 2)), np.array([[1.0], [-1.0], [1.0], [-1.0]])


unit.mistakes("""
takes: easy, 4 minutes
hint: x0 W_V has C · E numbers to choose, a table V · E.
hint: Two tokens with the same embedding get the same x0 W_V. What may a table do with them?
after: Two tokens with the same embedding get the same x0 W_V, whatever the matrix, and a table may
    | tell them apart; more generally the columns of the embedding span at most C directions of |V|.
    | So x0 W_V is a special case of the table, the one at which minimal/model/init.py: align starts
    | it.
8 | some W_V comes within half
    => (np.eye(6) + 0.1, np.random.default_rng(0).normal(size=(6, 4)))
    => (normed(np.arange(24.0).reshape(12, 2) ** 1.5 + 1),
  | normed(np.arange(24.0).reshape(12, 2) ** 1.5 + 1) @ np.ones((2, 3)))
""")


@drawn
def windowed(r, kind):
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


full = [always([0, 0], 3, 0, 32768), *map(windowed, ("full", "prompt", "prompt"))]
full += [always([0, 0], 4, 0, 32768)]
some = [always([512, 512, 512, 0], 1, 0, 32768), always([512, 0, 0], 3, 700, 32768)]
some += map(windowed, ("mixed", "late", "late"))
never = [always([512, 512], 100, 0, 32768), windowed("never"), windowed("never")]


@unit.exercise(
    Part("all targets see everything", 3, full),
    Part("some are windowed", 6, some),
    Part("all are windowed", 3, never),
)
def windowed_break_even(windows, batch, prompt, vocabulary):
    """Stretch: `batch` sequences go on from one prompt, whose rows are kept once for all. After how
    many tokens of its own each would the target layers' value caches hold at least as many rows as
    their tables? The smallest such number, at least 1; -1 if never.

    windows[n]: how many keys to its left target layer n sees besides its own, 0 for all. A cache
    keeps only rows that the newest token can see: windows[n] + 1 of the prompt and the sequence's
    own tokens together, the newest included. prompt: its tokens, 0 for none.
    """

    def rows(T):
        total = 0
        for window in windows:
            reach = window + 1 if window else np.inf
            own, seen = min(T, reach), max(0, min(prompt, reach - T))
            total += batch * own + seen
        return total

    wanted = len(windows) * vocabulary
    if rows(wanted + 1) < wanted:
        return -1
    first = bisect_left(range(wanted + 1), wanted, lo=1, key=rows)
    return first


unit.mistakes("""
takes: stretch, 23 minutes
hint: Rows that the standard cache would hold in a target layer after T own tokens: B times T or
    | min(T, window + 1), and once the prompt, or what the window still shows of it: min(prompt,
    | window + 1 - T), not below 0.
hint: It never shrinks as T grows: search by halving, or solve it. If windows stop it below the
    | tables' rows, the answer is -1.
after: A windowed layer stops at N + 1 rows, so nearly all of the four tables must be paid for by
    | the one layer that sees everything: 4 · 32,768 - 3 · 513 = 129,533 tokens, where Eq 6 says
    | 32,768. A shared prompt counts once, and in a windowed layer only as long as it is seen. One
    | solution solves for T between the edges of the windows and two search for it: the held rows
    | never shrink, so both find the same. notebooks/course/memory.py: break_even with rings=True
    | asks it of a model.
 9 | a windowed layer's cache stops growing at window + 1 rows; it replaces less than you counted
     window + 1 if window else np.inf => np.inf
 6 | a window of N keys to the left keeps N + 1 rows, itself included
     window + 1 => window
12 | every sequence of the batch has its own cache of what it wrote; the table is shared
     batch * own => own
 9 | the prompt's rows stand in the cache, too, once for all sequences
     + seen =>
 9 | the prompt is kept once, not once for every sequence
     batch * own + seen => batch * (own + seen)
 6 | a windowed layer shows a part of the prompt, as long as it is in sight
     + seen => + (0 if window else seen)
 9 | a layer that sees everything keeps the whole prompt, too
     + seen => + (seen if window else 0)
 6 | prompt and what is written share window + 1 rows: of the prompt these show window + 1 - T
     min(prompt, reach - T) => min(prompt, reach)
 9 | in a windowed layer, too, every sequence has rows of its own: times `batch`
     batch * own => (1 if window else batch) * own
 9 | AT LEAST as many rows as the tables: as many are enough
     * vocabulary => * vocabulary + 1
12 | every target layer has a table: as many tables as windows
     len(windows) * =>
 9 | windowed layers have tables, too, though they keep few rows
     len(windows) => list(windows).count(0)
12 | the tables are shared by all sequences: they count once
     len(windows) => batch * len(windows)
 3 | if never, the answer is -1
     return -1 => return 0
 9 | wanted are the tokens of each sequence's OWN; yours count the prompt as well
     return first => return first + prompt * (0 in windows)
""")
