"""Notebook 10: what would a dictionary of values hold?"""

from collections import Counter

import numpy as np

from homework.marking import Part, Unit, drawn, normals

unit = Unit("nb10_bank_of_values", "Bank of Values", single=True)


@drawn
def looked_up(r, T, S):
    """Queries, keys, ids (some token comes twice), a table, a gain and a scale."""
    q, k = normals(r, (2, T, 2, 4), (2, S, 2, 4))
    ids, table = r.integers(S, 2 * S, (2, S)), r.normal(size=(2 * S, 2, 4))
    return q, k, ids, table, 1.5 + r.random(), 0.3 + 0.1 * r.random()


@unit.exercise(
    Part("a whole text", 1, looked_up(6, 6)), Part("new tokens behind a cache", 1, looked_up(2, 7))
)
def bank_layer(q, k, ids, table, gain, scale):
    """Causal attention whose values are rows of a table: q (B,T,H,D), k (B,S,H,D), ids (B,S), table
    (V,H,D), gain and scale numbers -> (B,T,H,D).

    Weights are softmax(scale * q k). The T queries are the last T of the S positions.
    """
    T, S = q.shape[1], k.shape[1]
    score = scale * np.einsum("bthd,bshd->bhts", q, k)
    last = np.arange(T)[:, None] + S - T
    score = np.where(np.arange(S) <= last, score, -np.inf)
    e = np.exp(score - score.max(-1, keepdims=True))
    weight = e / e.sum(-1, keepdims=True)
    return gain * np.einsum("bhts,bshd->bthd", weight, table[ids])


unit.mistakes("""
takes: medium, 12 minutes
hint: Look up: v = table[ids] has the shape of values, (B, S, H, D). The rest is notebook 01.
hint: torch.einsum("bthd,bshd->bhts", q, k) makes the scores; visible are keys s <= t + S - T.
hint: Read: torch.einsum("bhts,bshd->bthd", weights, v), and the gain at the end.
2 | you read row p at position p; read the row of the TOKEN that stands there, table[ids]
    table[ids] => table[0 * ids + np.arange(S)]
2 | the gain is missing: it multiplies what attention read
    gain * =>
2 | the scores are multiplied by scale before the softmax
    scale * =>
2 | the weights are the SOFTMAX of the scores; you read with the scores themselves
    weight, table => np.where(np.arange(S) <= last, score, 0), table
2 | the gain multiplies what attention read, once
    gain * => gain**2 *
    gain * np.einsum => gain + np.einsum
2 | your queries also see the keys after them
    np.arange(S) <= last => True
2 | your softmax runs over the queries; each QUERY's weights sum to one: axis S of (B, H, T, S)
    score.max(-1, => score.max(2,
    and: e.sum(-1, => e.sum(2,
1 | with fewer queries than keys, the queries are the LAST positions: query t sees keys up to t + S
  | - T
    + S - T =>
2 | each of your queries sees one key too many: the last is t + S - T
    + S - T => + S - T + 1
2 | the scale is an input; you took one over the root of D
    scale * => q.shape[-1] ** -0.5 *
2 | scale belongs to the scores alone; you multiplied what is read by it as well
    gain * => gain * scale *
2 | gain belongs to what is read; you multiplied the scores by it
    scale * => gain *
2 | gain belongs to what is read; it stands in your scores
    scale * => gain * scale *
    and: return gain * => return
2 | a score of 0 is a weight like others; what a query may not see has the score -inf
    -np.inf => 0
2 | masked_fill hides where its mask is True: yours hides what a query may see: ~ turns it
    <= last => > last
2 | the scores are multiplied by scale; you divided by it
    scale * => 1 / scale *
2 | mask before the softmax: the weights of the keys that a query sees sum to one
    np.where(np.arange(S) <= last, score, -np.inf) => score
    and: weight, table => weight * (np.arange(S) <= last), table
2 | your mask is turned round: a query sees the keys up to its own place, not those from there on
    <= last => >= last
2 | each of your queries sees one key too few: the last is its own, t + S - T
    + S - T => + S - T - 1
2 | both texts read the rows of the first one; each has its own ids
    table[ids] => table[0 * ids + ids[:1]]
""")


@drawn
def stack(r, *kinds):
    """A model of these kinds of layers behind two ordinary ones, and its sizes in bytes."""
    layers = ["own", "own"] + [kind for kind in kinds for _ in range(int(r.choice([3, 5])))]
    return layers, 64 * int(r.integers(2, 13)), int(r.choice([2, 4])), int(r.choice([3, 8]))


@unit.exercise(
    Part("in place of V", 1, [stack("E"), stack("V1"), stack("V1", "E")]),
    Part("added to V", 1, [stack("own+E"), stack("own+V1"), stack("own+E", "E")]),
)
def cached_bytes(layers, kv_width, number, id):
    """The bytes that one token leaves in the cache. layers: a list with a word for each, where its
    values come from: "own", "V1", "E" (a table), "own+V1" or "own+E" (a sum, which is kept).

    Keys and values are kv_width numbers of `number` bytes each; an id takes `id` bytes.
    """
    own = sum(word.startswith("own") for word in layers)
    ids = int("E" in layers)
    rows = len(layers) + own
    return rows * kv_width * number + ids * id


unit.mistakes("""
takes: easy, 6 minutes
hint: Every layer keeps keys. Which of the five words also needs values of its own?
hint: (2 streams where the word begins with own, else 1) * kv_width * number, and one id if any
    | layer is a plain E.
2 | the ids are kept once: all table layers read the same text
    int("E" in layers) => layers.count("E")
    int("E" in layers) => sum("E" in word for word in layers)
2 | only VALUES are named by the token: keys come from the stream and stay, in every layer
    len(layers) => own
    len(layers) => (len(layers) - layers.count("E"))
    len(layers) + own => own
1 | a table row ADDED to V saves nothing: the sum differs from place to place and is kept
    word.startswith("own") => word in ("own", "own+V1")
1 | V1 stands in the cache already, in the layer that made it: a layer that reads it keeps keys only
    + own => + own + layers.count("V1")
    + own => + own + ("V1" in layers)
2 | you counted numbers; wanted bytes: `number` bytes each, and `id` bytes for an id
    * number + ids * id => + ids
    * number =>
2 | ids are kept only where a layer reads a table alone
    int("E" in layers) => 1
2 | the ids are missing: a table is read by them
    int("E" in layers) => 0
1 | a layer that keeps its sum asks for no ids
    int("E" in layers) => any("E" in word for word in layers)
1 | a sum is kept like any other value: 'own+V1' and 'own+E' begin with own
    sum(word.startswith("own") for word in layers) => layers.count("own")
2 | only layers with a value of their own keep one; you counted keys and values in every layer
    len(layers) + own => 2 * len(layers)
1 | a sum is ONE row: what was added need not be kept beside it
    + own => + own + layers.count("own+V1")
    + own => + own + sum("+" in word for word in layers)
2 | an id takes `id` bytes, whatever a number takes
    ids * id => ids * id * number
2 | keys are kept in every layer, not once
    len(layers) => 1
2 | V1 stands in the cache already, in the layer that made it: whoever reads it keeps no second one
    + own => + own + any("V1" in word for word in layers)
    + own => + own + sum("V1" in word for word in layers)
""")


def without_windows(r):
    batch = int(r.integers(2, 9))
    return batch * int(r.integers(200, 1800)), batch, [None] * int(r.integers(2, 6))


def with_windows(r):
    vocabulary = 1 + 35 * int(r.integers(50, 240))  # never equal to the rows of 5 or 7 texts
    batch, window = int(r.choice([5, 7])), 16 * int(r.integers(2, 9))
    return vocabulary, batch, [window, window, None, window][: r.integers(3, 5)]


def with_wide_windows(r):
    """It breaks even before the windows are full."""
    return 1 + 35 * int(r.integers(20, 60)), int(r.choice([5, 7])), [8192, None, 8192]


@unit.exercise(
    Part("no windows", 1, without_windows),
    Part("windows in all layers but one", 1, [with_windows, with_wide_windows, with_windows]),
)
def break_even(vocabulary, batch, rows):
    """The first context T at which the values that tables replace would take more rows than the
    tables. `batch` texts are written at once; ids are not counted.

    rows: a list with an entry for each table layer, the most rows that it would keep of a text
    (its window), or None where it keeps all T. At least one is None.
    """
    T, tables = 1, vocabulary * len(rows)
    while batch * sum(min(T, r or T) for r in rows) <= tables:
        T += 1
    return T


unit.mistakes("""
takes: medium, 10 minutes
hint: Cache: batch * sum(min(T, rows) for each layer). Tables: vocabulary * number of layers.
hint: Count T upwards from 1, or solve for T: once T is past the windows, they keep a constant.
hint: for T in itertools.count(1): if batch * sum(T if r is None else min(T, r) for r in rows) >
    | vocabulary * len(rows): return T
2 | the tables stand there once, the cache once for EVERY text: count batch times the rows
    batch * =>
    batch * =>
    and: vocabulary * => batch * vocabulary *
1 | a window holds the rows of ONE text: batch * min(T, rows)
    batch * sum(min(T, r or T) for r => sum(min(batch * T, r or batch * T) for r
1 | at equal size nothing is saved yet: the first context at which the cache is LARGER
    <= tables => < tables
1 | a layer with a window keeps at most min(T, rows) of a text, and yet it has a table: the layer
  | that sees everything must earn it, too
    min(T, r or T) => T
2 | that is the number of places in all texts, B T; wanted the context T of each
    return T => return T * batch
2 | every layer of the list has a table: count vocabulary times their number
    vocabulary * len(rows) => vocabulary
1 | layers with a window keep rows as well: min(T, rows) each
    min(T, r or T) => 0 if r else T
1 | a layer with a window has a table, too: vocabulary times ALL layers of the list
    vocabulary * len(rows) => vocabulary * rows.count(None)
2 | you counted one step too few: the first T at which the cache IS larger
    return T => return T - 1
2 | you counted one step too many: the FIRST T at which the cache is larger
    return T => return T + 1
2 | values alone are replaced: keys stay, and count on neither side
    batch * => 2 * batch *
1 | before a window is full a layer keeps T rows: min(T, rows)
    min(T, r or T) => r or T
    => (vocabulary * len(rows) // batch - sum(r or 0 for r in rows)) // rows.count(None) + 1
2 | at equal size nothing is saved yet, and before a window is full its layer keeps T rows: your
  | formula misses both
    => -((sum(r or 0 for r in rows) - vocabulary * len(rows) / batch) // rows.count(None))
    => (vocabulary * len(rows) / batch - sum(r or 0 for r in rows)) / rows.count(None)
1 | a layer keeps the SMALLER of T and its window: min(T, rows)
    min(T => max(T
1 | the windows count once for every text as well: batch times ALL rows
    batch * sum(min(T, r or T) for r => sum(min(T, r) if r else batch * T for r
""")


def from_table(x):
    """Where each part of the table begins of which a tensor was made."""
    return [start for start, names in x.given if names == {"table"}]


def no_values(made, weights, ids, table):
    """Rows that were chosen by ids before any weight met them are values, where there are more of
    them than tokens."""
    rows = [x.size for x in made if x.of == {"ids", "table"} and from_table(x)]
    if sum(rows) > sum(text.unique().numel() for text in ids) * table[0].numel():
        return (
            "you made the values: rows of the table, place by place. Add the weights by token "
            "first, then multiply each row once"
        )
    # a row of the table, found by a Python number, that meets weights; a view is made of one tensor
    rows = Counter(
        start
        for x in made
        if {"weights", "table"} <= x.of and len(x.given) > 1
        for start in from_table(x)
    )
    if max(rows.values(), default=0) > len(ids):
        return (
            "you multiplied a row of the table once for every place where its token stands. Add "
            "the weights by token first, then multiply each row once"
        )
    return ""


@drawn
def weighed(r, distinct):
    """Weights of one query, the ids of a text, and a table of nine rows."""
    weights = r.random((2, 3, 6))
    tokens = [r.permutation(9)[:6] if distinct else r.integers(2, 5, 6) for _ in range(2)]
    return weights / weights.sum(-1, keepdims=True), np.stack(tokens), r.normal(size=(9, 3, 4))


@unit.exercise(
    Part("every token once", 1, weighed(True)),
    Part("tokens that come again", 1, weighed(False)),
    forbids=no_values,
)
def read_by_token(weights, ids, table):
    """What one query reads, without any values: weights (B,H,S), ids (B,S), table (V,H,D) ->
    (B,H,D).

    Add up the weights of each token of the vocabulary, then multiply each row of the table once.
    """
    mass = np.zeros((*weights.shape[:2], len(table)))
    for b, h, s in np.ndindex(*weights.shape):
        mass[b, h, ids[b, s]] += weights[b, h, s]
    return np.einsum("bhv,vhd->bhd", mass, table)


unit.mistakes("""
takes: medium, 8 minutes
hint: First a number for each token of the vocabulary and each head: mass (B, H, V), zeros.
hint: mass.scatter_add_(-1, ids[:, None].expand_as(weights).long(), weights) adds, also where an id
    | comes twice.
hint: Then every row once: torch.einsum("bhv,vhd->bhd", mass, table).
1 | a token that stands in several places collects ALL their weights; yours kept the last
    += => =
2 | you left out the newest place; it reads its own row, too
    += => += (s < weights.shape[2] - 1) *
1 | you averaged the weights of a token's places; they are ADDED
    += => += 1 / (ids[b] == ids[b, s]).sum() *
2 | you counted how often a token stands there; its attention WEIGHTS are added
    weights[b, h, s] => 1
2 | you added up the weights of the first head alone: ids[:, None] must be expanded to all heads
    += => += (h == 0) *
2 | that is the mass of each token; the rows are multiplied by it: "bhv,vhd->bhd"
    return np.einsum("bhv,vhd->bhd", mass, table) => return mass
2 | every head has weights of its own, and its own part of a row: keep the heads apart
    weights[b, h, s] => weights[b, :, s].mean()
    weights[b, h, s] => weights[b, :, s].sum()
2 | the weights come from a softmax already; you took another
    weights[b, h, s] => (e := np.exp(weights[b, h]))[s] / e.sum()
    mass, table => np.exp(mass) / np.exp(mass).sum(-1, keepdims=True), table
2 | you read the table's heads in another order
    mass, table => mass, table[:, ::-1]
2 | you added the texts of the batch: each has its own weights
    mass, table => mass.sum(0, keepdims=True) + 0 * mass, table
2 | every head reads its own part of a row; yours all read the first one's
    mass, table => mass, table[:, :1] + 0 * table
2 | both texts add the weights by the ids of the first one; each has its own
    ids[b, s] => ids[0, s]
""")
