"""Notebook 13: how deep may a value read, what if it is the key, what is taken out of it? And what
goes deeper: which row two ids choose, and where a matrix may go."""

import numpy as np

from homework.marking import Part, Unit, Wrong, need, normals, refuse, slip

unit = Unit("nb13_what_came_next", "What came next?", "The exercises of notebook 13.")

PRIME = 2**31 - 1


# ---- V from an earlier stream --------------------------------------------------------------------


def normed(x):
    return x / np.sqrt((x**2).mean(-1, keepdims=True))


def layer_normed(x):
    """As PyTorch has it."""
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)


def dial(n, j):
    """Five streams (N, B, T, C), which grow and lean to one side; a layer, a dial, W_V (E, C)."""

    def make(r):
        streams, w = normals(r, (5, 2, 3, 4), (6, 4))
        return (streams + 0.5) * np.arange(1, 6)[:, None, None, None], n, j, w

    return make


@unit.exercise(
    Part("below, level, above", 3, [dial(3, 1), dial(2, 2), dial(1, 3), dial(4, 0), dial(3, 2)]),
    slip(
        3,
        "a layer below j reads its own stream, for the one that enters layer j is not there yet: "
        "min(j, n)",
        lambda x, n, j, w: upstream(x, j, j, w),
    ),
    slip(
        3,
        "that is the layer's own stream, whatever j says",
        lambda x, n, j, w: upstream(x, n, n, w),
    ),
    slip(3, "that is x0, whatever j says", lambda x, n, j, w: upstream(x, n, 0, w)),
    slip(
        3,
        "the earlier of the two streams is wanted, min(j, n); yours is the later one",
        lambda x, n, j, w: upstream(x, max(n, j), max(n, j), w),
    ),
    slip(
        3,
        "the norm before W_V is missing",
        lambda x, n, j, w: x[min(j, n)] @ w.T,
    ),
    slip(
        3,
        "the norm comes before W_V; yours comes after it",
        lambda x, n, j, w: normed(x[min(j, n)] @ w.T),
    ),
    slip(
        3,
        "streams[i] is what ENTERS layer i: yours is what leaves it",
        lambda x, n, j, w: upstream(x, n, j + 1, w),
    ),
    slip(
        3,
        "streams[0] enters layer 0: yours counts from 1",
        lambda x, n, j, w: normed(x[min(j, n) - 1]) @ w.T,
    ),
    slip(
        3,
        "norm divides by the root of the MEAN square, not of the sum",
        lambda x, n, j, w: upstream(x, n, j, w) / 2,
    ),
    slip(
        3,
        "one stream is wanted; you added all of them up to it",
        lambda x, n, j, w: normed(x[: min(j, n) + 1].sum(0)) @ w.T,
    ),
    slip(
        3,
        "one stream is wanted; you took the mean of all up to it",
        lambda x, n, j, w: x[: min(j, n) + 1].mean(0) @ w.T,
    ),
    slip(
        3,
        "norm here has no mean to take away: the root of the mean square alone",
        lambda x, n, j, w: upstream(x - x.mean(-1, keepdims=True), n, j, w),
    ),
    slip(
        3,
        "norm here has no mean to take away: the root of the mean square alone",
        lambda x, n, j, w: layer_normed(x[min(j, n)]) @ w.T,
    ),
    slip(
        3,
        "that is the normed stream; W_V makes values of it",
        lambda x, n, j, w: normed(x[min(j, n)]),
    ),
    slip(
        3,
        "the norm runs over the C numbers of a token: yours runs over all tokens",
        lambda x, n, j, w: x[min(j, n)] / np.sqrt((x[min(j, n)] ** 2).mean()) @ w.T,
    ),
    hints=[
        "Which entry of streams is it? Try n = 3 and j = 1, then n = 1 and j = 3.",
        "norm(streams[min(j, n)]) @ w.T; norm is in minimal.model.layers and imported here.",
    ],
    level="easy",
    minutes=5,
)
def upstream(streams, n, j, w):
    """(B, T, E): the values of layer n, made of the stream that enters layer j; of the layer's own
    stream where that comes first.

    streams (N, B, T, C): streams[i] is what enters layer i, before its norm. w (E, C): W_V of
    layer n. As in every layer, W_V reads the normed stream: x over the root of its mean square.
    """
    return normed(streams[min(j, n)]) @ w.T


# ---- the key as the value ------------------------------------------------------------------------


def rotated(x, cos, sin):
    """(T, H, D) turned as keys are, two halves by an angle a place."""
    first, second = np.split(x, 2, -1)
    c, s = cos[:, None], sin[:, None]
    return np.concatenate([first * c + second * s, second * c - first * s], -1)


def side_by_side(x, cos, sin):
    """The same with neighbours for pairs."""
    halves = np.concatenate([x[..., ::2], x[..., 1::2]], -1)
    first, second = np.split(rotated(halves, cos, sin), 2, -1)
    return np.stack([first, second], -1).reshape(x.shape)


def reads(r):
    """Weights (H, T, S), turned keys (S, H, D), cos and sin (T, D/2) of the last T places."""
    H, T, S, D = 2, 3, 5, 8
    scores, k = normals(r, (H, T, S), (S, H, D))
    angles = np.arange(S - T, S)[:, None] * np.array([1.0, 0.6, 0.3, 0.1])
    return softmaxed(scores), k, np.cos(angles), np.sin(angles)


def heard(a, k):
    return np.einsum("hts,shd->thd", a, k)


def swapped_halves(y):
    return np.concatenate(np.split(y, 2, -1)[::-1], -1)


@unit.exercise(
    Part("the last places", 4, reads),
    slip(
        4, "you did not turn back: that is the mean of turned keys", lambda a, k, c, s: heard(a, k)
    ),
    slip(
        4,
        "you turned on, the same way as the keys: back is by the other sign of sin",
        lambda a, k, c, s: read_turned(a, k, c, -s),
    ),
    slip(
        4,
        "the pairs are the two HALVES of a row, x1 and x2; yours are neighbours",
        lambda a, k, c, s: side_by_side(heard(a, k), c, -s),
    ),
    slip(
        4,
        "in one half the sign of sin is still that of turning on",
        lambda a, k, c, s: half_turned(heard(a, k), c, s, -1, -1),
    ),
    slip(
        4,
        "in one half the sign of sin is still that of turning on",
        lambda a, k, c, s: half_turned(heard(a, k), c, s, 1, 1),
    ),
    slip(
        4,
        "cos and sin have changed places",
        lambda a, k, c, s: read_turned(a, k, s, c),
    ),
    slip(
        4,
        "the halves of your rows have changed places",
        lambda a, k, c, s: swapped_halves(read_turned(a, k, c, s)),
    ),
    slip(
        4,
        "a holds weights already: no softmax is asked for",
        lambda a, k, c, s: read_turned(softmaxed(a), k, c, s),
    ),
    slip(
        4,
        "every head has weights of its own: you averaged them",
        lambda a, k, c, s: read_turned(a.mean(0, keepdims=True) + 0 * a, k, c, s),
    ),
    slip(
        4,
        "head h of a reads head h of k: yours are exchanged",
        lambda a, k, c, s: read_turned(a[::-1], k, c, s),
    ),
    slip(
        4,
        "no norm is asked for",
        lambda a, k, c, s: normed(read_turned(a, k, c, s)),
    ),
    slip(
        4,
        "every query turns back by its own place: you took the first one's for all",
        lambda a, k, c, s: read_turned(a, k, c[:1] + 0 * c, s[:1] + 0 * s),
    ),
    slip(
        4,
        "every query turns back by its own place: you took the last one's for all",
        lambda a, k, c, s: read_turned(a, k, c[-1:] + 0 * c, s[-1:] + 0 * s),
    ),
    hints=[
        "First the weighted mean of keys, for every query and head. Then turn each row of it, as "
        "notebook 01 turned a key, by the query's angle and with the other sign of sin.",
        "y = torch.einsum('hts,shd->thd', a, k); y1, y2 = y.chunk(2, -1); cos[:, None] stands for "
        "all heads. The first half is y1 cos - y2 sin.",
    ],
    level="medium",
    minutes=8,
)
def read_turned(a, k, cos, sin):
    """(T, H, D): what is read where keys are the values, turned back by the place of the query.

    a (H, T, S): weights. k (S, H, D): keys, each turned by its place. cos, sin (T, D/2): of the
    queries' places. A place turns a row of two halves (x1, x2) into (x1 cos + x2 sin, x2 cos - x1
    sin); back is the same by minus the angle.
    """
    return rotated(heard(a, k), cos, -sin)


def half_turned(y, cos, sin, first, second):
    y1, y2 = np.split(y, 2, -1)
    c, s = cos[:, None], sin[:, None]
    return np.concatenate([y1 * c + first * y2 * s, y2 * c + second * y1 * s], -1)


# ---- what is taken out ---------------------------------------------------------------------------


def along(y, v, over):
    """The sum of y v over some axes, over that of v v, times v."""
    return (y * v).sum(over, keepdims=True) / (v * v).sum(over, keepdims=True) * v


def length(x):
    return np.sqrt((x**2).sum(-1, keepdims=True))


def along_direction(y, v, over):
    """The same, of the direction of v in each head: right only over the last axis."""
    u = v / length(v)
    return (y * u).sum(over, keepdims=True) * u


def dot(y, v):
    return (y * v).sum(-1, keepdims=True)


@unit.exercise(
    Part("every token and head", 3, lambda r: normals(r, (4, 3, 6), (4, 3, 6))),
    slip(
        3,
        "v is not of length 1: divide by v . v, or take the direction of v first",
        lambda y, v: y - dot(y, v) * v,
    ),
    slip(
        3,
        "v comes in twice, in the product and behind it: divide by its length twice",
        lambda y, v: y - dot(y, v) * v / length(v),
    ),
    slip(3, "you added what lies along v: it is taken out", lambda y, v: y + along(y, v, -1)),
    slip(3, "that is what is taken out; what is LEFT is wanted", lambda y, v: along(y, v, -1)),
    slip(
        3,
        "you took out the whole value: only y's share along it goes",
        lambda y, v: y - v,
    ),
    slip(
        3,
        "every head has a value of its own: your product runs over the heads, too",
        lambda y, v: y - along(y, v, (1, 2)),
    ),
    slip(
        3,
        "you took out the whole value: only y's share along it goes",
        lambda y, v: y - v / length(v),
    ),
    slip(
        3,
        "every head has a value of its own: your product runs over the heads, too",
        lambda y, v: y - along_direction(y, v, (1, 2)),
    ),
    slip(
        3,
        "every head has a value of its own: divide by the length of that one",
        lambda y, v: y - dot(y, v) / (v * v).sum((1, 2), keepdims=True) * v,
    ),
    slip(
        3,
        "y and v have changed places: y is what is kept, less its share along v",
        lambda y, v: v - along(v, y, -1),
    ),
    slip(
        3,
        "divide by v . v, not by y . y",
        lambda y, v: y - dot(y, v) / dot(y, y) * v,
    ),
    slip(
        3,
        "a product of two vectors is the SUM over their numbers; yours is the mean",
        lambda y, v: y - along(y, v, -1) / y.shape[-1],
    ),
    slip(
        3,
        "the sum over the D numbers of a head is missing",
        lambda y, v: y - y * v * v / dot(v, v),
    ),
    slip(
        3,
        "your product runs over the tokens; it runs over the D numbers of a head",
        lambda y, v: y - along(y, v, 0),
    ),
    slip(
        3,
        "your product runs over the tokens; it runs over the D numbers of a head",
        lambda y, v: y - along_direction(y, v, 0),
    ),
    slip(
        3,
        "your product runs over the heads; it runs over the D numbers of a head",
        lambda y, v: y - along(y, v, 1),
    ),
    slip(
        3,
        "your product runs over the heads; it runs over the D numbers of a head",
        lambda y, v: y - along_direction(y, v, 1),
    ),
    slip(
        3,
        "that is the cosine of y and v times v: the share has y's length in it",
        lambda y, v: y - dot(y, v) / length(y) / length(v) * v,
    ),
    slip(
        3,
        "what is left keeps the length that it has: no norm behind it",
        lambda y, v: normed(exclusive(y, v)),
    ),
    slip(
        3,
        "what is left keeps the length that it has: no norm behind it",
        lambda y, v: exclusive(y, v) / length(exclusive(y, v)),
    ),
    slip(
        3,
        "a share against v goes as well: no abs, no relu",
        lambda y, v: y - np.abs(dot(y, v)) / dot(v, v) * v,
    ),
    slip(
        3,
        "a share against v goes as well: no abs, no relu",
        lambda y, v: y - np.maximum(dot(y, v), 0) / dot(v, v) * v,
    ),
    hints=[
        "The direction of v is u = v over its length. How far does y reach along u? A product, one "
        "number a token and head.",
        "u = F.normalize(v, dim=-1); then y - (y * u).sum(-1, keepdim=True) * u.",
    ],
    level="easy",
    minutes=5,
)
def exclusive(y, v):
    """(T, H, D): what each token has heard, less what lies along its own value, head by head.

    y (T, H, D): what attention has said to each token. v (T, H, D): the value of that token itself.
    What is left has no part along v: its product with v is 0 for every token and head.
    """
    return y - along(y, v, -1)


# ---- the row that two ids choose -----------------------------------------------------------------


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


# ---- one latent for keys and values --------------------------------------------------------------


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


# ---- five caches ---------------------------------------------------------------------------------


def shapes(r):
    """Tokens, layers, heads (even), their width, a latent's width, a vocabulary."""
    low = (50, 3, 1, 8, 10, 100)
    tokens, layers, half, head, latent, vocab = (int(r.integers(x, 4 * x)) for x in low)
    return tokens, layers, 2 * half, head, latent, vocab


def but(shape, which, change):
    """The five caches, one of them mistaken."""
    found = list(five_caches(*shape))
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
    slip(
        4,
        "the turned key is kept once: the value is the same row, read again",
        lambda *x: but(x, 4, lambda y: 2 * y),
    ),
    slip(
        4,
        "every layer keeps turned keys of its own",
        lambda *x: but(x, 4, lambda y: y // x[1]),
    ),
    slip(
        4,
        "turned keys are kept for all heads: no group shares one",
        lambda *x: but(x, 4, lambda y: y // 2),
    ),
    hints=[
        "Two bytes a number, four an id. What is kept for each token, and what is kept once?",
        "gqa: 2 * 2 * tokens * layers * heads / 2 * head. svformer has `layers` streams of keys "
        "and one of values. The bank's tables do not grow with the text. turned: `layers` streams.",
    ],
    level="medium",
    minutes=12,
)
def five_caches(
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
    """(gqa, mla, svformer, bank, turned): the bytes that so many tokens keep, tables included.

    Two bytes a number, four an id. gqa has keys and values of heads / 2 heads. mla keeps `latent`
    numbers a token and layer. svformer has keys of all heads and layers, and values of the first
    layer. bank has keys of all heads and layers, the ids, and in every layer a table of `vocab`
    rows for each head. turned has keys of all heads and layers, which are its values, too.
    """
    gqa = mla = svformer = bank = turned = 0
    for layer in range(layers):
        first = layer == 0
        gqa += 2 * 2 * tokens * (heads // 2 if grouped else heads) * head
        mla += 2 * latents * tokens * latent
        keys = 2 * tokens * heads * head
        svformer += keys if first or not share_keys else 0
        svformer += 2 * tokens * heads * head if first else 0
        turned += keys
        bank += keys
        bank += 4 * tokens if first or ids_each else 0
        bank += 2 * vocab * heads * head if first or tables_each else 0
    return gqa, mla, svformer, bank, turned


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
