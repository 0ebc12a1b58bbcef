"""Notebook 13: which row do two ids choose, and where may a matrix go?"""

import numpy as np

from homework.marking import Part, Unit, Wrong, need, normals, refuse, slip

unit = Unit("nb13_what_came_next", "What came next?", "The exercises of notebook 13.")

PRIME = 2**31 - 1


def texts(r):
    """Ids (2, T), three factors, a number of rows."""
    ids = r.integers(0, 50, size=(2, int(r.integers(3, 9))))
    a, b, c = (int(x) for x in r.integers(1, PRIME, size=3))
    return ids, a, b, c, int(r.integers(5, 200))


def one_token(r):
    _, a, b, c, rows = texts(r)
    return r.integers(0, 50, size=(2, 1)), a, b, c, rows


def shifted(ids):
    """Each text one place to the right, a zero in front."""
    return np.pad(ids, ((0, 0), (1, 0)))[:, :-1]


def slots(here, before, a, b, c, rows, first=PRIME):
    exact = [x.astype(object) for x in (here, before)]
    return ((a * exact[0] + b * exact[1] + c) % first % rows).astype(np.int64)


@unit.exercise(
    Part("texts", 3, [texts, texts, one_token]),
    Wrong(
        "looks ahead",
        3,
        "your slot depends on the id that comes next; wanted the id here and the one before",
        dict(step=-1),
    ),
    Wrong(
        "comes round",
        3,
        "your first slot knows the last id of the text (roll does that); before a text there is "
        "none, which counts as 0",
        dict(around=True),
    ),
    Wrong(
        "order forgotten",
        3,
        "cold water and water cold share your slot: each of the two ids has a factor of its own",
        dict(swap=True),
    ),
    Wrong(
        "no room for none",
        3,
        "id 0 and no id at all look alike in yours: ids are counted from 1 here",
        dict(one=0),
    ),
    slip(
        3,
        "the id before is counted from 1 as well: pad AFTER adding 1",
        lambda i, a, b, c, rows: slots(i + 1, shifted(i), a, b, c, rows),
    ),
    slip(
        3,
        "before the first place stands 0, which no id has; you put a 1 there",
        lambda i, a, b, c, rows: slots(i + 1, np.maximum(shifted(i + 1), 1), a, b, c, rows),
    ),
    slip(
        3,
        "a and b have changed places: a belongs to the id here",
        lambda i, a, b, c, rows: bigram_slots(i, b, a, c, rows),
    ),
    slip(3, "c is missing", lambda i, a, b, c, rows: bigram_slots(i, a, b, 0, rows)),
    slip(
        3,
        "the remainder by 2**31 - 1 comes first, then that by rows: yours is missing, or comes "
        "last, where it changes nothing",
        lambda i, a, b, c, rows: slots(i + 1, shifted(i + 1), a, b, c, rows, 2**62),
    ),
    slip(
        3,
        "the remainder by rows is missing: a slot is below rows",
        lambda i, a, b, c, rows: slots(i + 1, shifted(i + 1), a, b, c, PRIME),
    ),
    slip(
        3,
        "2**31 - 1 is wanted, a prime; you took 2**31",
        lambda i, a, b, c, rows: slots(i + 1, shifted(i + 1), a, b, c, rows, 2**31),
    ),
    slip(
        3,
        "you looked two places back; the id before stands one place earlier",
        lambda i, a, b, c, rows: slots(i + 1, shifted(shifted(i + 1)), a, b, c, rows),
    ),
    slip(
        3,
        "c is added before the remainder by 2**31 - 1",
        lambda i, a, b, c, rows: (slots(i + 1, shifted(i + 1), a, b, 0, PRIME) + c) % rows,
    ),
    slip(
        3,
        "you took the id here twice; the second is the one before",
        lambda i, a, b, c, rows: slots(i + 1, i + 1, a, b, c, rows),
    ),
    slip(
        3,
        "you shifted the batch: the place before is in the same text",
        lambda i, a, b, c, rows: slots(i + 1, shifted((i + 1).T).T, a, b, c, rows),
    ),
    hints=[
        "The ids before: the same tensor, one place to the right, with a column of zeros in front.",
        "torch.nn.functional.pad(ids + 1, (1, 0))[:, :-1] is the ids before, from 1, 0 for none.",
    ],
    level="easy",
    minutes=8,
)
def bigram_slots(ids, a, b, c, rows, *, step=1, around=False, swap=False, one=1):
    """(B, T): ((a here + b before + c) mod (2**31 - 1)) mod rows, with ids counted from 1.

    ids (B, T) int64. here: the id at this place plus 1; before: the id one place earlier plus 1,
    and 0 at the first place.
    """
    B, T = ids.shape
    slots = np.zeros((B, T), dtype=np.int64)
    for i in range(B):
        for t in range(T):
            here = int(ids[i, t]) + one
            at = t - step
            there = 0 <= at < T
            before = int(ids[i, at % T]) + one if there or around else 0
            first, second = (a, a) if swap else (a, b)
            slots[i, t] = (first * here + second * before + c) % PRIME % rows
    return slots


def no_keys(made, q, latent, up):
    """What is made of the latent and W_UK, and of no query, is a key."""
    if any(x.of == {"latent", "up"} for x in made):
        return "you made the keys: up met the latent before a query did. Let up join the queries"
    return ""


def heads(r):
    H, D, C, T, S = (int(n) for n in r.integers(2, 6, size=5))
    return normals(r, (T, H, D), (S, C), (H, D, C))


def softmaxed(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@unit.exercise(
    Part("queries that read the latent", 3, heads),
    Wrong(
        "one matrix for all",
        3,
        "every head has a matrix of its own: yours gives all heads the first one's",
        dict(shared=True),
    ),
    Wrong(
        "heads added up",
        3,
        "your heads all ask the same: the sum over h belongs into no part of it",
        dict(summed=True),
    ),
    slip(
        3,
        "heads and queries have changed places: wanted (H, T, S)",
        lambda q, z, up: absorbed_scores(q, z, up).swapaxes(0, 1),
    ),
    slip(
        3,
        "queries and places have changed places: wanted (H, T, S)",
        lambda q, z, up: absorbed_scores(q, z, up).swapaxes(1, 2),
    ),
    slip(
        3,
        "every head has a query of its own: yours gives all heads the first one's",
        lambda q, z, up: absorbed_scores(q[:, :1] + 0 * q, z, up),
    ),
    slip(
        3,
        "scores alone: no softmax is asked for",
        lambda q, z, up: softmaxed(absorbed_scores(q, z, up)),
    ),
    slip(
        3,
        "every head has its own scores: you added the heads up",
        lambda q, z, up: absorbed_scores(q, z, up).sum(0),
    ),
    slip(
        3,
        "the heads of q are turned round: head h of q meets up[h]",
        lambda q, z, up: absorbed_scores(q[:, ::-1], z, up),
    ),
    slip(
        3,
        "no mask is asked for: all scores are wanted",
        lambda q, z, up: np.tril(absorbed_scores(q, z, up)),
    ),
    slip(
        3,
        "every head has a query of its own: you averaged them",
        lambda q, z, up: absorbed_scores(q.mean(1, keepdims=True) + 0 * q, z, up),
    ),
    slip(
        3,
        "no scale is asked for: you divided by the root of a width",
        lambda q, z, up: absorbed_scores(q, z, up) / z.shape[1] ** 0.5,
    ),
    slip(
        3,
        "no scale is asked for: you divided by the root of a width",
        lambda q, z, up: absorbed_scores(q, z, up) / q.shape[2] ** 0.5,
    ),
    hints=[
        "A score is the sum over d of q[t, h, d] times the sum over c of up[h, d, c] latent[s, c]. "
        "Which of the two sums can be made without s?",
        "Sum over d first: q' [t, h, c] = sum over d of q[t, h, d] up[h, d, c]. One einsum.",
    ],
    level="medium",
    minutes=10,
    forbids=no_keys,
)
def absorbed_scores(q, latent, up, *, shared=False, summed=False):
    """(H, T, S): q[t, h] . (up[h] latent[s]), without making a key: only q and latent meet s.

    q (T, H, D): queries. latent (S, C): what the cache keeps. up (H, D, C): W_UK, head by head.
    """
    T, H, D = q.shape
    S, C = latent.shape
    scores = np.zeros((H, T, S))
    for h in range(H):
        for t in range(T):
            for s in range(S):
                key = up[0 if shared else h] @ latent[s]
                scores[h, t, s] = q[t, h] @ key
    return np.repeat(scores.sum(0, keepdims=True), H, 0) if summed else scores


# ---- four caches ---------------------------------------------------------------------------------


def shapes(r):
    """Tokens, layers, heads (even), their width, a latent's width, a vocabulary."""
    low = (50, 3, 1, 8, 10, 100)
    tokens, layers, half, head, latent, vocab = (int(r.integers(x, 4 * x)) for x in low)
    return tokens, layers, 2 * half, head, latent, vocab


def but(shape, which, change):
    """The four caches, one of them mistaken."""
    found = list(four_caches(*shape))
    found[which] = change(found[which])
    return tuple(found)


@unit.exercise(
    Part("bytes", 4, shapes),
    Wrong(
        "a latent for keys, one for values",
        4,
        "your latent is counted twice: keys and values are made of the same one",
        dict(latents=2),
    ),
    Wrong(
        "keys of the first layer alone",
        4,
        "svformer shares values, not keys: every layer keeps keys of its own",
        dict(share_keys=True),
    ),
    Wrong(
        "ids in every layer",
        4,
        "the ids are kept once, for all layers",
        dict(ids_each=True),
    ),
    Wrong(
        "one table",
        4,
        "you counted one table: here every layer reads one of its own",
        dict(tables_each=False),
    ),
    Wrong(
        "all heads",
        4,
        "gqa keeps keys and values for half of the heads",
        dict(grouped=False),
    ),
    slip(
        4,
        "gqa keeps two streams, keys AND values, of two bytes a number",
        lambda *x: but(x, 0, lambda y: y // 2),
    ),
    slip(4, "mla keeps a latent in every layer", lambda *x: but(x, 1, lambda y: y // x[1])),
    slip(
        4, "mla keeps one latent for all heads together", lambda *x: but(x, 1, lambda y: y * x[2])
    ),
    slip(
        4,
        "svformer has the values of the first layer alone: layers + 1 streams",
        lambda *x: but(x, 2, lambda y: y * 2 * x[1] // (x[1] + 1)),
    ),
    slip(
        4,
        "svformer keeps the values of its first layer: layers + 1 streams",
        lambda *x: but(x, 2, lambda y: y * x[1] // (x[1] + 1)),
    ),
    slip(
        4,
        "the bank keeps the ids as well: four bytes a token",
        lambda *x: but(x, 3, lambda y: y - 4 * x[0]),
    ),
    slip(4, "an id takes four bytes", lambda *x: but(x, 3, lambda y: y - 2 * x[0])),
    slip(
        4,
        "the tables are included: one in every layer",
        lambda *x: but(x, 3, lambda y: y - 2 * x[1] * x[5] * x[2] * x[3]),
    ),
    slip(
        4,
        "a table has a row for every head",
        lambda *x: but(x, 3, lambda y: y - 2 * x[1] * x[5] * (x[2] - 1) * x[3]),
    ),
    slip(
        4,
        "a number of a table takes two bytes, too",
        lambda *x: but(x, 3, lambda y: y - x[1] * x[5] * x[2] * x[3]),
    ),
    hints=[
        "Two bytes a number, four an id. What is kept for each token, and what is kept once?",
        "gqa: 2 * 2 * tokens * layers * heads / 2 * head. svformer has `layers` streams of keys "
        "and one of values. The bank's tables do not grow with the text.",
    ],
    level="medium",
    minutes=12,
)
def four_caches(
    tokens,
    layers,
    heads,
    head,
    latent,
    vocab,
    *,
    latents=1,
    share_keys=False,
    ids_each=False,
    tables_each=True,
    grouped=True,
):
    """(gqa, mla, svformer, bank): the bytes that a text of so many tokens keeps, tables included.

    Two bytes a number, four an id. gqa has keys and values of heads / 2 heads. mla keeps `latent`
    numbers a token and layer. svformer has keys of all heads and layers, and values of the first
    layer. bank has keys of all heads and layers, the ids, and in every layer a table of `vocab`
    rows for each head.
    """
    gqa = mla = svformer = bank = 0
    for layer in range(layers):
        first = layer == 0
        gqa += 2 * 2 * tokens * (heads // 2 if grouped else heads) * head
        mla += 2 * latents * tokens * latent
        keys = 2 * tokens * heads * head
        svformer += keys if first or not share_keys else 0
        svformer += 2 * tokens * heads * head if first else 0
        bank += keys
        bank += 4 * tokens if first or ids_each else 0
        bank += 2 * vocab * heads * head if first or tables_each else 0
    return gqa, mla, svformer, bank


# ---- a gate as dynamic values --------------------------------------------------------------------

MAPS = [np.eye(6), np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]]  # two causal maps, (T, T)


def is_the_gate(answer, sigma, v):
    """Is A v + q_r * (A k_r) = sigma * (A v), whatever the map?"""
    q_r, k_r = need(answer, q_r=2, k_r=2)
    refuse(q_r.shape != v.shape or k_r.shape != v.shape, f"wanted two of shape {v.shape}")
    gaps = [np.abs(A @ v + q_r * (A @ k_r) - sigma * (A @ v)).max() for A in MAPS]
    refuse(
        gaps[0] < 1e-4 < gaps[1],
        "right where a token sees itself alone: your gate is that of the token that is looked at",
    )
    extra = np.abs(q_r * (MAPS[1] @ k_r) - sigma * (MAPS[1] @ v)).max()
    refuse(extra < 1e-4, "A V stands in the sum already: yours has one A V too many")
    turned = np.abs(q_r * (MAPS[1] @ k_r) + (sigma - 1) * (MAPS[1] @ v)).max()
    refuse(turned < 1e-4, "what you add to A V has the wrong sign: sigma is less than one")
    refuse(max(gaps) >= 1e-4, "A V + q_R * (A K_R) is not sigma * (A V)")


def gates(r):
    (v,) = normals(r, (6, 3))
    return 1 / (1 + np.exp(-r.normal(size=(6, 3)))), v


@unit.exercise(
    Part("any map", 3, gates, is_the_gate),
    Wrong(
        "the gate itself",
        3,
        "A V stands in the sum already",
        returns=lambda sigma, v: (sigma, v),
    ),
    Wrong(
        "the gate on the values",
        3,
        "right where a token sees itself alone",
        returns=lambda sigma, v: (np.ones_like(v), (sigma - 1) * v),
    ),
    Wrong(
        "the wrong sign",
        3,
        "what you add to A V has the wrong sign",
        returns=lambda sigma, v: (1 - sigma, v),
    ),
    hints=[
        "Write sigma * (A V) as A V + something. What is the something?",
        "K_R = V: then both sums are A V. Which q_R makes of 1 + q_R the gate?",
    ],
    level="easy",
    minutes=5,
)
def gate_as_dva(sigma, v):
    """(q_r, k_r), both (T, D), with which dynamic values are a gate: for every map A (T, T)

    A v + q_r * (A k_r) = sigma * (A v). sigma, v (T, D): the gate of each query, the values.
    """
    return sigma - 1, v
