"""Notebook 10: what would a dictionary of values hold?"""

from collections import Counter

import numpy as np

from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb10_bank_of_values", "Bank of Values", "The exercises of notebook 10.")


# ---- the layer -----------------------------------------------------------------------------------


def looked_up(T, S):
    """Queries, keys, ids (some token comes twice), a table, a gain and a scale."""
    return lambda r: (
        *normals(r, (2, T, 2, 4), (2, S, 2, 4)),
        r.integers(S, 2 * S, (2, S)),
        *normals(r, (2 * S, 2, 4)),
        1.5 + r.random(),
        0.3 + 0.1 * r.random(),
    )


def over_queries(q, k, ids, table, gain, scale):
    """The softmax along the wrong axis: a mistake."""
    T, S = q.shape[1], k.shape[1]
    score = scale * np.einsum("bthd,bshd->bhts", q, k)
    score = np.where(np.arange(S) <= np.arange(T)[:, None] + S - T, score, -np.inf)
    e = np.exp(score - score.max(2, keepdims=True))
    return gain * np.einsum("bhts,bshd->bthd", e / e.sum(2, keepdims=True), table[ids])


def masked(q, k, v, gain, scale, shift, ahead=False, hidden=0, late=False):
    """Attention with a mask that is shifted, turned round, of other numbers, or late."""
    T, S = q.shape[1], k.shape[1]
    score = scale * np.einsum("bthd,bshd->bhts", q, k)
    last = np.arange(T)[:, None] + S - T + shift
    seen = np.arange(S) >= last if ahead else np.arange(S) <= last
    e = np.where(seen, np.exp(score), hidden)
    whole = np.exp(score) if late else e
    return gain * np.einsum("bhts,bshd->bthd", e / whole.sum(-1, keepdims=True), v)


@unit.exercise(
    Part("a whole text", 1, looked_up(6, 6)),
    Part("new tokens behind a cache", 1, looked_up(2, 7)),
    Wrong(
        "rows by position",
        2,
        "you read row p at position p; read the row of the TOKEN that stands there, table[ids]",
        dict(by="position"),
    ),
    Wrong("no gain", 2, "the gain is missing: it multiplies what attention read", dict(power=0)),
    Wrong("the gain twice", 2, "the gain was applied twice", dict(power=2)),
    Wrong("no scale", 2, "the scores are multiplied by scale before the softmax", dict(scaled=0)),
    Wrong("no mask", 2, "your queries also see the keys after them", dict(causal=False)),
    Wrong(
        "softmax over the queries",
        2,
        "your softmax runs over the queries; the weights of each QUERY sum to one: the last axis "
        "of (B, H, T, S)",
        returns=lambda q, k, ids, table, gain, scale: over_queries(q, k, ids, table, gain, scale),
    ),
    Wrong(
        "mask from the left",
        1,
        "with fewer queries than keys, the queries are the LAST positions: query t sees keys up "
        "to t + S - T",
        dict(corner=True),
    ),
    slip(
        2,
        "each of your queries sees one key too many: the last is t + S - T",
        lambda q, k, i, t, g, s: masked(q, k, t[i], g, s, 1),
    ),
    slip(
        2,
        "the scale is an input; you took one over the root of D",
        lambda q, k, i, t, g, s: bank_layer(q, k, i, t, g, q.shape[-1] ** -0.5),
    ),
    slip(
        2,
        "scale belongs to the scores alone; you multiplied what is read by it as well",
        lambda q, k, i, t, g, s: bank_layer(q, k, i, t, g * s, s),
    ),
    slip(
        2,
        "gain belongs to what is read; you multiplied the scores by it",
        lambda q, k, i, t, g, s: bank_layer(q, k, i, t, g, g),
    ),
    slip(
        2,
        "gain belongs to what is read; it stands in your scores",
        lambda q, k, i, t, g, s: bank_layer(q, k, i, t, 1, g * s),
    ),
    slip(
        2,
        "a score of 0 is a weight like others; what a query may not see has the score -inf",
        lambda q, k, i, t, g, s: masked(q, k, t[i], g, s, 0, hidden=1),
    ),
    slip(
        2,
        "mask before the softmax: the weights of the keys that a query sees sum to one",
        lambda q, k, i, t, g, s: masked(q, k, t[i], g, s, 0, late=True),
    ),
    slip(
        2,
        "your mask is turned round: a query sees the keys up to its own place, not those "
        "from there on",
        lambda q, k, i, t, g, s: masked(q, k, t[i], g, s, 0, ahead=True),
    ),
    slip(
        2,
        "you turned the text round: the value of place s is the row of ids[s]",
        lambda q, k, i, t, g, s: bank_layer(q, k, i[:, ::-1], t, g, s),
    ),
    slip(
        2,
        "the values are the table's rows alone; you added the keys",
        lambda q, k, i, t, g, s: masked(q, k, t[i] + k, g, s, 0),
    ),
    slip(
        2, "token w has row w, not w - 1", lambda q, k, i, t, g, s: bank_layer(q, k, i - 1, t, g, s)
    ),
    hints=[
        "Look up: v = table[ids] has the shape of values, (B, S, H, D). The rest is notebook 01.",
        'torch.einsum("bthd,bshd->bhts", q, k) makes the scores; visible are keys s <= t + S - T.',
        'Read: torch.einsum("bhts,bshd->bthd", weights, v), and the gain at the end.',
    ],
    level="medium",
    minutes=12,
)
def bank_layer(
    q, k, ids, table, gain, scale, *, by="id", power=1, scaled=1, causal=True, corner=False
):
    """Causal attention whose values are rows of a table: q (B,T,H,D), k (B,S,H,D), ids (B,S), table
    (V,H,D), gain and scale numbers -> (B,T,H,D).

    Weights are softmax(scale * q k). The T queries are the last T of the S positions.
    """
    (B, T, H, D), S = q.shape, k.shape[1]
    out = np.zeros((B, T, H, D))
    for b in range(B):
        for h in range(H):
            for t in range(T):
                last = (t if corner else t + S - T) if causal else S - 1
                score = [
                    (scale if scaled else 1) * sum(q[b, t, h] * k[b, s, h]) for s in range(last + 1)
                ]
                weight = np.exp(np.array(score) - max(score))
                weight /= weight.sum()
                for s in range(last + 1):
                    row = ids[b, s] if by == "id" else s
                    out[b, t, h] += weight[s] * gain**power * table[row, h]
    return out


# ---- what is kept --------------------------------------------------------------------------------


def stack(*kinds):
    """A model of these kinds of layers behind two ordinary ones, and its sizes in bytes."""

    def make(r):
        layers = ["own", "own"] + [kind for kind in kinds for _ in range(int(r.choice([3, 5])))]
        return layers, 64 * int(r.integers(2, 13)), int(r.choice([2, 4])), int(r.choice([3, 8]))

    return make


@unit.exercise(
    Part("in place of V", 1, [stack("E"), stack("V1"), stack("V1", "E")]),
    Part("added to V", 1, [stack("own+E"), stack("own+V1"), stack("own+E", "E")]),
    Wrong(
        "ids for every layer",
        2,
        "the ids are kept once: all table layers read the same text",
        dict(once=False),
    ),
    Wrong(
        "keys gone too",
        2,
        "only VALUES are named by the token: keys come from the stream and stay, in every layer",
        dict(keys=False),
    ),
    Wrong(
        "adding saves",
        1,
        "a table row ADDED to V saves nothing: the sum differs from place to place and is kept",
        dict(added=True),
    ),
    Wrong(
        "V1 again",
        1,
        "V1 stands in the cache already, in the layer that made it: a layer that reads it keeps "
        "keys only",
        dict(again=True),
    ),
    Wrong(
        "numbers",
        2,
        "you counted numbers; wanted bytes: `number` bytes each, and `id` bytes for an id",
        dict(bytes_each=False),
    ),
    slip(
        2,
        "ids are kept only where a layer reads a table alone",
        lambda L, kv, n, i: cached_bytes(L, kv, n, 0) + i,
    ),
    slip(
        2,
        "the ids are missing: a table is read by them",
        lambda L, kv, n, i: cached_bytes(L, kv, n, 0),
    ),
    slip(
        1,
        "a layer that keeps its sum asks for no ids",
        lambda L, kv, n, i: cached_bytes(L, kv, n, 0) + i * any("E" in word for word in L),
    ),
    slip(2, "a number takes `number` bytes", lambda L, kv, n, i: cached_bytes(L, kv, 1, i)),
    slip(
        1,
        "a sum is kept like any other value: 'own+V1' and 'own+E' begin with own",
        lambda L, kv, n, i: (len(L) + L.count("own")) * kv * n + i * ("E" in L),
    ),
    slip(
        2,
        "the keys are missing: every layer keeps its own",
        lambda L, kv, n, i: cached_bytes(L, kv, n, i) - len(L) * kv * n,
    ),
    slip(
        2,
        "only layers with a value of their own keep one; you counted keys and values in "
        "every layer",
        lambda L, kv, n, i: 2 * len(L) * kv * n + i * ("E" in L),
    ),
    slip(
        1,
        "a sum is ONE row: what was added need not be kept beside it",
        lambda L, kv, n, i: cached_bytes(L, kv, n, i) + L.count("own+V1") * kv * n,
    ),
    slip(
        2,
        "an id takes `id` bytes, whatever a number takes",
        lambda L, kv, n, i: cached_bytes(L, kv, n, i * n),
    ),
    slip(
        2,
        "keys are kept in every layer, not once",
        lambda L, kv, n, i: cached_bytes(L, kv, n, i) - (len(L) - 1) * kv * n,
    ),
    hints=[
        "Every layer keeps keys. Which of the four words also needs values of its own?",
        "(2 streams where the word begins with own, else 1) * kv_width * number, and one id if any "
        "layer is a plain E.",
    ],
    level="easy",
    minutes=6,
)
def cached_bytes(
    layers, kv_width, number, id, *, once=True, keys=True, added=False, again=False, bytes_each=True
):
    """The bytes that one token leaves in the cache. layers: a list with a word for each, where its
    values come from: "own", "V1", "E" (a table), "own+V1" or "own+E" (a sum).

    Keys and values are kv_width numbers of `number` bytes each; an id takes `id` bytes.
    """
    streams = 0
    for word in layers:
        own = word.startswith("own") and not (added and word == "own+E")
        streams += (1 if keys or word not in ("E", "V1") else 0) + own
        streams += again and word == "V1"
    tables = layers.count("E")
    ids = min(tables, 1) if once else tables
    if not bytes_each:
        number, id = 1, 1
    return streams * kv_width * number + ids * id


# ---- when does it pay? ---------------------------------------------------------------------------


def without_windows(r):
    batch = int(r.integers(2, 9))
    return batch * int(r.integers(1000, 9000)), batch, [None] * int(r.integers(2, 6))


def with_windows(r):
    vocabulary = 1 + 35 * int(r.integers(250, 1200))  # never equal to the rows of 5 or 7 texts
    batch, window = int(r.choice([5, 7])), 64 * int(r.integers(2, 9))
    return vocabulary, batch, [window, window, None, window][: r.integers(3, 5)]


def with_wide_windows(r):
    """It breaks even before the windows are full."""
    return 1 + 35 * int(r.integers(20, 60)), int(r.choice([5, 7])), [8192, None, 8192]


def counted(vocabulary, batch, rows, tables=None, full=False):
    """The first context at which more rows are kept, by counting."""
    tables, T = tables or vocabulary * len(rows), 1
    while batch * sum(T if r is None else r if full else min(T, r) for r in rows) <= tables:
        T += 1
    return T


@unit.exercise(
    Part("no windows", 1, without_windows),
    Part("windows in all layers but one", 1, [with_windows, with_wide_windows, with_windows]),
    Wrong(
        "one text",
        2,
        "the tables stand there once, the cache once for EVERY text: count batch times the rows",
        dict(batched=False),
    ),
    Wrong(
        "equal is enough",
        1,
        "at equal size nothing is saved yet: the first context at which the cache is LARGER",
        dict(larger=False),
    ),
    Wrong(
        "windows ignored",
        1,
        "a layer with a window keeps at most min(T, rows) of a text, and yet it has a table: the "
        "layer that sees everything must earn it, too",
        dict(windows=False),
    ),
    Wrong(
        "all texts together",
        2,
        "that is the number of places in all texts, B T; wanted the context T of each",
        dict(each=False),
    ),
    slip(
        2,
        "every layer of the list has a table: count vocabulary times their number",
        lambda V, B, rows: counted(V, B, rows, V),
    ),
    slip(
        1,
        "layers with a window keep rows as well: min(T, rows) each",
        lambda V, B, rows: counted(V, B, [x and 0 for x in rows]),
    ),
    slip(
        2,
        "you counted one step too few: the first T at which the cache IS larger",
        lambda V, B, rows: break_even(V, B, rows) - 1,
    ),
    slip(
        2,
        "you counted one step too many: the FIRST T at which the cache is larger",
        lambda V, B, rows: break_even(V, B, rows) + 1,
    ),
    slip(
        2,
        "values alone are replaced: keys stay, and count on neither side",
        lambda V, B, rows: break_even(V, 2 * B, rows),
    ),
    slip(
        1,
        "before a window is full a layer keeps T rows: min(T, rows)",
        counted,
        full=True,
    ),
    hints=[
        "Cache: batch * sum(min(T, rows) for each layer). Tables: vocabulary * number of layers.",
        "Count T upwards from 1, or solve for T: what the windows keep is a constant once T is "
        "past them.",
        "for T in itertools.count(1): if batch * sum(T if r is None else min(T, r) for r in rows) "
        "> vocabulary * len(rows): return T",
    ],
    level="medium",
    minutes=10,
)
def break_even(vocabulary, batch, rows, *, batched=True, larger=True, windows=True, each=True):
    """The first context T at which the values that tables replace would take more rows than the
    tables. `batch` texts are written at once; ids are not counted.

    rows: a list with an entry for each table layer, the most rows that it would keep of a text
    (its window), or None where it keeps all T. At least one is None.
    """
    texts, tables = batch if batched else 1, vocabulary * len(rows)
    T = counted(vocabulary, texts, rows if windows else [None] * len(rows), tables - (not larger))
    return T if each else T * batch


# ---- reading by token ----------------------------------------------------------------------------


def no_values(made, weights, ids, table):
    """Rows that were chosen by ids before any weight met them are values."""
    if any(x.of == {"ids", "table"} for x in made):
        return (
            "you made the values: rows of the table, place by place. Add the weights by token "
            "first, then multiply each row once"
        )
    # a row of the table, found by a Python number, that meets weights; a view is made of one tensor
    rows = Counter(
        start
        for x in made
        if {"weights", "table"} <= x.of and len(x.given) > 1
        for start, names in x.given
        if names == {"table"}
    )
    if max(rows.values(), default=0) > len(ids):
        return (
            "you multiplied a row of the table once for every place where its token stands. Add "
            "the weights by token first, then multiply each row once"
        )
    return ""


def weighed(distinct):
    """Weights of one query, the ids of a text, and a table of nine rows."""

    def make(r):
        weights = r.random((2, 3, 6))
        tokens = [r.permutation(9)[:6] if distinct else r.integers(2, 5, 6) for _ in range(2)]
        return weights / weights.sum(-1, keepdims=True), np.stack(tokens), r.normal(size=(9, 3, 4))

    return make


def massed(weights, ids, table, change):
    """What is read with masses that were changed."""
    mass = np.einsum("bhs,bsv->bhv", weights, np.eye(len(table))[ids])
    return np.einsum("bhv,vhd->bhd", change(mass), table)


@unit.exercise(
    Part("every token once", 1, weighed(True)),
    Part("tokens that come again", 1, weighed(False)),
    Wrong(
        "the last one wins",
        1,
        "a token that stands in several places collects ALL their weights; yours kept the last",
        dict(add="last"),
    ),
    Wrong(
        "a mean",
        1,
        "you averaged the weights of a token's places; they are ADDED",
        dict(add="mean"),
    ),
    Wrong(
        "counts",
        2,
        "you counted how often a token stands there; its attention WEIGHTS are added",
        dict(add="count"),
    ),
    Wrong(
        "heads together",
        2,
        "every head has weights of its own, and its own part of a row: keep the heads apart",
        dict(apart=False),
    ),
    slip(
        2,
        "the weights come from a softmax already; you took another",
        lambda w, i, t: massed(w, i, t, lambda m: np.exp(m) / np.exp(m).sum(-1, keepdims=True)),
    ),
    slip(
        2,
        "you read the table's heads in another order",
        lambda w, i, t: read_by_token(w, i, t[:, ::-1]),
    ),
    slip(
        2,
        "a token counts with its summed weight, not with one",
        lambda w, i, t: massed(w, i, t, lambda m: m > 0),
    ),
    slip(
        2,
        "you added the texts of the batch: each has its own weights",
        lambda w, i, t: massed(w, i, t, lambda m: m.sum(0, keepdims=True) + 0 * m),
    ),
    hints=[
        "First a number for each token of the vocabulary and each head: mass (B, H, V), zeros.",
        "mass.scatter_add_(-1, ids[:, None].expand_as(weights).long(), weights) adds, also where "
        "an id comes twice.",
        'Then every row once: torch.einsum("bhv,vhd->bhd", mass, table).',
    ],
    level="medium",
    minutes=8,
    forbids=no_values,
)
def read_by_token(weights, ids, table, *, add="sum", apart=True):
    """What one query reads, without any values: weights (B,H,S), ids (B,S), table (V,H,D) ->
    (B,H,D).

    Add up the weights of each token of the vocabulary, then multiply each row of the table once.
    """
    B, H, S = weights.shape
    out = np.zeros((B, H, table.shape[2]))
    for b in range(B):
        for v in range(len(table)):
            places = [s for s in range(S) if ids[b, s] == v]
            if not places:
                continue
            each = weights[b][:, places] if apart else weights[b].mean(0, keepdims=True)[:, places]
            mass = dict(
                sum=each.sum(1),
                last=each[:, -1],
                mean=each.mean(1),
                count=np.full(len(each), float(len(places))),
            )[add]
            for h in range(H):
                out[b, h] += mass[h if apart else 0] * table[v, h]
    return out
