"""The exercises of notebook 11a: kernels, from an addition to the gradient of a table."""

import numpy as np
import torch

from homework.in_notebooks.kernels import (
    KernelUnit,
    Launch,
    at_a_time,
    blocks,
    empty,
    no_future,
    no_past,
    once,
    told,
)
from homework.marking import Part, Wrong, normals, slip

unit = KernelUnit(
    "nb11a_write_a_kernel",
    "Write a kernel",
    "Each is the text of one program. `tl.` is all that a kernel needs.",
    prelude="import triton\nimport triton.language as tl",
)


# ---- addresses -----------------------------------------------------------------------------------


def launch_add(x, y, BLOCK):
    out = empty(len(x))
    return Launch((blocks(len(x), BLOCK),), (x, y, out, len(x)), dict(BLOCK=BLOCK), (out,))


@unit.exercise(
    Part("whole blocks", 2, lambda r: (*normals(r, 12, 12), 4)),
    Part("a ragged end", 4, lambda r: (*normals(r, 10, 10), 4)),
    Wrong(
        "everybody in the first block",
        6,
        "your programs all work on the first block: a program's places begin at "
        "tl.program_id(0) * BLOCK",
        dict(first=True),
    ),
    Wrong("only x", 6, "y is missing: load both, then add", dict(both=False)),
    slip(6, "you multiplied; the two are added", lambda x, y, BLOCK: x * y),
    slip(6, "you loaded x twice: the second is y", lambda x, y, BLOCK: x + x),
    slip(6, "you took y off; it is added", lambda x, y, BLOCK: x - y),
    arguments="x, y, out, n, BLOCK: tl.constexpr",
    launch=launch_add,
    hints=[
        "place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK); mine = place < n.",
        "tl.store(out + place, tl.load(x + place, mask=mine) + tl.load(y + place, mask=mine), "
        "mask=mine)",
    ],
    level="easy",
    minutes=6,
)
def add(x, y, BLOCK, *, first=False, both=True):
    """out[i] = x[i] + y[i] for the BLOCK places of this program, those below n."""
    out = x + y if both else x.copy()
    if first:
        out[BLOCK:] = np.nan
    return out


def launch_transpose(x, M, N):
    R, C = x.shape
    x = x.T.contiguous().T  # columns are contiguous: strides are not what one expects
    out = empty(C, R)
    grid = (blocks(R, M), blocks(C, N))
    return Launch(grid, (x, out, R, C, x.stride(0), x.stride(1)), dict(M=M, N=N), (out,))


@unit.exercise(
    Part("whole tiles", 3, lambda r: (r.normal(size=(8, 4)), 4, 2)),
    Part("ragged tiles", 5, lambda r: (r.normal(size=(7, 5)), 4, 2)),
    Wrong(
        "strides guessed",
        8,
        "you stepped through x as if it were contiguous: row r, column c stands at "
        "r * x_row + c * x_column",
        dict(guess=True),
    ),
    Wrong(
        "not turned",
        8,
        "out has C rows of R places: what came from row r, column c goes to c * R + r",
        dict(turn=False),
    ),
    slip(
        8,
        "column c of x stands c * x_column further, not c",
        lambda x, M, N: (x.T.ravel()[np.arange(len(x))[:, None] + np.arange(x.shape[1])]).T,
    ),
    arguments="x, out, R, C, x_row, x_column, M: tl.constexpr, N: tl.constexpr",
    launch=launch_transpose,
    hints=[
        "r = tl.program_id(0) * M + tl.arange(0, M); c likewise from program_id(1) and N; "
        "r[:, None] is a column, c[None, :] a row, and together they are a tile.",
        "mine = (r[:, None] < R) & (c[None, :] < C); store the tile to c[None, :] * R + "
        "r[:, None] as it is: the addresses turn it.",
    ],
    level="easy",
    minutes=8,
)
def transpose(x, M, N, *, guess=False, turn=True):
    """out[c, r] = x[r, c] for one tile of M rows by N columns; x is (R, C), out is (C, R).

    x_row and x_column are the steps from a row of x, or a column, to the next; out is contiguous.
    """
    R, C = x.shape
    if guess:
        x = x.T.reshape(R, C)
    return x.T if turn else x.reshape(C, R)


# ---- sums ----------------------------------------------------------------------------------------


def shares_of(e):
    return e / e.sum(1, keepdims=True)


def launch_softmax(x, BLOCK):
    out = empty(*x.shape)
    return Launch((len(x),), (x, out, x.shape[1]), dict(BLOCK=BLOCK), (out,))


@unit.exercise(
    Part("a row fills its block", 3, lambda r: (r.normal(size=(3, 8)), 8)),
    Part("idle lanes, large numbers", 5, lambda r: (r.normal(size=(3, 6)) * 2 - 120, 8)),
    Wrong(
        "zeros in idle lanes",
        5,
        "your idle lanes loaded 0, and exp of it counts in the sum: other=float('-inf')",
        dict(idle=0.0),
    ),
    Wrong(
        "not divided",
        8,
        "divide by the sum of the exponentials, or a row does not sum to 1",
        dict(divide=False),
    ),
    Wrong(
        "no maximum",
        5,
        "exp(-120) is 0 in fp32, and 0 / 0 is NaN: subtract the row's maximum before exp",
        returns=lambda x, BLOCK: shares_of(np.exp(x.astype("f4"))),
    ),
    slip(
        8,
        "exp is to the base e: tl.exp, not tl.exp2",
        lambda x, BLOCK: shares_of(np.exp2(x - x.max(1, keepdims=True))),
    ),
    slip(
        8,
        "that is no share: divide the exponentials by their sum",
        lambda x, BLOCK: (
            (x - x.max(1, keepdims=True))
            - np.log(np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True))
        ),
    ),
    slip(
        8,
        "divide by the SUM of the exponentials, not by their number",
        lambda x, BLOCK: np.exp(x - x.max(1, keepdims=True)) / x.shape[1],
    ),
    arguments="x, out, C, BLOCK: tl.constexpr",
    launch=launch_softmax,
    hints=[
        "A row starts at tl.program_id(0) * C. Load with mask=lane < C and other=float('-inf').",
        "e = tl.exp(row - tl.max(row, 0)); store e / tl.sum(e, 0) under the mask.",
    ],
    level="easy",
    minutes=8,
)
def softmax(x, BLOCK, *, idle=-np.inf, divide=True):
    """The softmax of one row of x (rows, C); BLOCK lanes, at least C."""
    R, C = x.shape
    tile = np.full((R, BLOCK), idle)
    tile[:, :C] = x
    e = np.exp(tile - tile.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True) if divide else e)[:, :C]


def launch_matmul(a, b, M, N, K):
    (R, S), C = a.shape, b.shape[1]
    out = empty(R, C)
    grid = (blocks(R, M), blocks(C, N))
    return Launch(grid, (a, b, out, R, C, S), dict(M=M, N=N, K=K), (out,))


def reading(a, b, starts, K):
    """What a loop over these starts would add up."""
    return sum((a[:, s : s + K] @ b[s : s + K] for s in starts), np.zeros((len(a), b.shape[1])))


@unit.exercise(
    Part("whole tiles", 4, lambda r: (*normals(r, (32, 32), (32, 16)), 16, 16, 16)),
    Part("ragged tiles", 6, lambda r: (*normals(r, (20, 37), (37, 18)), 16, 16, 16)),
    Wrong(
        "the last stretch only",
        10,
        "you replaced the sum in each turn: acc = tl.dot(…, acc) adds to it",
        dict(keep="last"),
    ),
    Wrong(
        "the first stretch only",
        10,
        "your loop ends after one turn: it walks over all S in steps of K",
        dict(keep="first"),
    ),
    slip(
        10,
        "your loop ends before the last tile: it runs to S, in steps of K",
        lambda a, b, M, N, K: reading(a, b, range(0, a.shape[1] - K, K), K),
    ),
    slip(
        6,
        "what is left after the last whole tile is missing: the loop runs to S",
        lambda a, b, M, N, K: reading(a, b, range(0, a.shape[1] // K * K, K), K),
    ),
    slip(
        10,
        "your loop begins one tile late: it starts at 0",
        lambda a, b, M, N, K: reading(a, b, range(K, a.shape[1], K), K),
    ),
    slip(
        10,
        "your loop takes steps of 1: tl.range(0, S, K)",
        lambda a, b, M, N, K: reading(a, b, range(a.shape[1] // K), K),
    ),
    slip(
        10,
        "every turn of your loop reads the first tile: s = start + tl.arange(0, K)",
        lambda a, b, M, N, K: blocks(a.shape[1], K) * reading(a, b, [0], K),
    ),
    arguments="a, b, out, R, C, S, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr",
    launch=launch_matmul,
    hints=[
        "acc = tl.zeros([M, N], tl.float32); for start in tl.range(0, S, K): load an (M, K) tile "
        "of a and a (K, N) tile of b, idle lanes 0.",
        'acc = tl.dot(tile_a, tile_b, acc, input_precision="ieee"); after the loop store it under '
        "the mask of the ragged edge.",
    ],
    level="medium",
    minutes=14,
)
def matmul(a, b, M, N, K, *, keep="all"):
    """out = a b for one tile of M rows by N columns: a (R, S), b (S, C), K of the S at a time."""
    S = a.shape[1]
    start = (S - 1) // K * K if keep == "last" else 0
    stop = K if keep == "first" else S
    return a[:, start:stop] @ b[start:stop]


def launch_online(x, N):
    out = empty(len(x))
    return Launch((len(x),), (x, out, x.shape[1]), dict(N=N), (out,))


def far_apart(r):
    """Numbers so far apart that exp needs the running maximum, which occurs twice in a row."""
    x = r.normal(size=(3, 13)) * 100 - 300
    x[:, -1] = x.max(1)
    return x, 4


@unit.exercise(
    Part("whole tiles", 3, lambda r: (r.normal(size=(3, 16)) * 4, 4)),
    Part("a ragged end", 5, far_apart),
    Wrong(
        "not corrected",
        8,
        "when the maximum grows, what was summed before must shrink by exp(old - new)",
        dict(correct=False),
    ),
    Wrong("the sum alone", 8, "the answer is top + log(total)", dict(top=False)),
    slip(
        5,
        "your idle lanes loaded 0, and exp of it counts in the sum: other=float('-inf')",
        lambda x, N: online(np.pad(x, ((0, 0), (0, -x.shape[1] % N))), N),
    ),
    slip(
        8,
        "your loop ends before the last tile: it runs to C, in steps of N",
        lambda x, N: online(x[:, : blocks(x.shape[1] - N, N) * N], N),
    ),
    slip(
        8,
        "a row of x begins at row * C",
        lambda x, N: online(
            np.stack([x.ravel()[i * N : i * N + x.shape[1]] for i in range(len(x))]), N
        ),
    ),
    slip(
        8,
        "every turn of your loop reads the first tile: start + tl.arange(0, N)",
        lambda x, N: online(np.tile(x[:, :N], (1, blocks(x.shape[1], N))), N),
    ),
    slip(
        8,
        "that is the maximum; the logarithm of the sum is missing: top + log(total)",
        lambda x, N: x.max(1),
    ),
    slip(
        8,
        "that is the sum as it stands: the answer is top + log(total)",
        lambda x, N: np.exp(online(x, N) - x.max(1)),
    ),
    slip(
        8,
        "top and log(total) are added, not multiplied",
        lambda x, N: x.max(1) * (online(x, N) - x.max(1)),
    ),
    slip(8, "log(total) is added to top, not taken off", lambda x, N: 2 * x.max(1) - online(x, N)),
    slip(
        8,
        "your top stays at -inf: at the end of each turn, top = higher",
        lambda x, N: np.full(len(x), -np.inf),
    ),
    slip(
        8,
        "at the first tile top is -inf, and exp(tile - top) infinite: subtract higher, the maximum "
        "with this tile in it",
        lambda x, N: np.full(len(x), np.inf),
    ),
    arguments="x, out, C, N: tl.constexpr",
    launch=launch_online,
    forbids=(once("x"), at_a_time("x", "N")),
    hints=[
        "top = tl.full([1], float('-inf'), tl.float32); total = tl.zeros([1], tl.float32); then a "
        "loop over tiles of N, idle lanes -inf.",
        "higher = tl.maximum(top, tl.max(tile, 0)); total = total * tl.exp(top - higher) + "
        "tl.sum(tl.exp(tile - higher), 0); store top + tl.log(total) to out + row + "
        "tl.arange(0, 1).",
    ],
    level="medium",
    minutes=13,
)
def online(x, N, *, correct=True, top=True):
    """log(sum of exp) of one row of x (rows, C), read N numbers at a time and each of them once."""
    out = np.zeros(len(x))
    for i, row in enumerate(x):
        high, total = -np.inf, 0.0
        for start in range(0, len(row), N):
            tile = row[start : start + N]
            new = max(high, tile.max())
            total = total * (np.exp(high - new) if correct else 1) + np.exp(tile - new).sum()
            high = new
        out[i] = np.log(total) + (high if top else 0)
    return out


# ---- attention -----------------------------------------------------------------------------------


def attention(q, k, v, *, causal=True, scale=True, divide=True):
    """(out, lse) of causal attention, one query at a time."""
    T, D = q.shape
    out, lse = np.zeros((T, v.shape[1])), np.zeros(T)
    for t in range(T):
        last = t + 1 if causal else T
        score = np.array([q[t] @ k[s] for s in range(last)]) / (np.sqrt(D) if scale else 1)
        top = score.max()
        e = np.exp(score - top)
        out[t] = e @ v[:last] / (e.sum() if divide else 1)
        lse[t] = top + np.log(e.sum())
    return out, lse


def launch_flash(q, k, v, M, N):
    T, D = q.shape
    out, lse = empty(T, D), empty(T)
    arguments = (q, k, v, out, lse, T, D**-0.5)
    return Launch((blocks(T, M),), arguments, dict(D=D, M=M, N=N), (out, lse))


def sequence(T, size=1, M=16):
    """Texts, in tiles of M queries by 16 keys; with a size, scores so far apart that exp needs the
    running maximum."""
    return lambda r: (size * r.normal(size=(T, 16)), *normals(r, (T, 16), (T, 16)), M, 16)


DIAGONAL = (
    "within the tile of the diagonal keys behind the query are still seen: tl.where(key[None, :] "
    "<= t[:, None], score, -inf)"
)
CAUSAL = Wrong(
    "the future is seen",
    16,
    "a query sees keys up to its own position: tl.where(key[None, :] <= t[:, None], score, -inf)",
    dict(causal=False),
)


def mapped(q, k, v, seen, hidden=-np.inf):
    """(out, lse) with another mask: which keys s are in a query's sum, and what the future scores;
    idle keys are zeros, as a kernel loads them."""
    T, D = q.shape
    keys, values = (np.pad(x, ((0, 16), (0, 0))) for x in (k, v))
    t, s = np.arange(T)[:, None], np.arange(len(keys))
    score = q @ keys.T / np.sqrt(D)
    score = score if hidden == -np.inf else np.where(s <= t, score, hidden)
    score = np.where(seen(s, t), score, -np.inf)
    top = score.max(1, keepdims=True)
    e = np.exp(score - top)
    return e @ values / e.sum(1, keepdims=True), top[:, 0] + np.log(e.sum(1))


def tops(q, k):
    """The largest score of each query."""
    score = q @ k.T / np.sqrt(q.shape[1])
    return np.where(np.tri(len(q)), score, -np.inf).max(1)


@unit.exercise(
    Part("whole tiles", 4, sequence(32)),
    Part("more queries than keys in a tile", 4, sequence(64, M=32)),
    Part("ragged tiles", 8, sequence(41, size=100)),
    CAUSAL,
    Wrong(
        "the tile of the diagonal",
        16,
        DIAGONAL,
        dict(diagonal=False),
    ),
    Wrong(
        "sums not rescaled",
        16,
        "total shrinks when the maximum grows, your sums do not: sums * shrink[:, None]",
        dict(shrink=(True, False)),
    ),
    Wrong(
        "total not rescaled",
        16,
        "your sums shrink when the maximum grows, your total does not: total * shrink",
        dict(shrink=(False, True)),
    ),
    Wrong(
        "nothing rescaled",
        16,
        "when the maximum grows, what was summed before must shrink by exp(old - new), total and "
        "sums alike",
        dict(shrink=(False, False)),
    ),
    Wrong("not scaled", 16, "the scores are not multiplied by scale", dict(scale=False)),
    Wrong(
        "not divided",
        16,
        "after the loop divide the sums by total: sums / total[:, None]",
        dict(divide=False),
    ),
    slip(
        16,
        DIAGONAL,
        lambda q, k, v, M, N: mapped(q, k, v, lambda s, t: (s < (t // M + 1) * M) & (s < len(k))),
    ),
    slip(
        4,
        "the loop ends too early: M queries may need several tiles of N keys, all below the end of "
        "their own tile, (tl.program_id(0) + 1) * M",
        lambda q, k, v, M, N: mapped(
            q, k, v, lambda s, t: (s <= t) & (s < (t // M * M // N + 1) * N)
        ),
    ),
    slip(
        16,
        "keys that are not seen have a score of -inf, not 0: exp(0) counts",
        lambda q, k, v, M, N: mapped(q, k, v, lambda s, t: s < (t // M + 1) * M, hidden=0.0),
    ),
    slip(
        16,
        "lse is top + log(total): top is missing",
        lambda q, k, v, M, N: (attention(q, k, v)[0], attention(q, k, v)[1] - tops(q, k)),
    ),
    slip(
        16,
        "lse is top + log(total): log(total) is missing",
        lambda q, k, v, M, N: (attention(q, k, v)[0], tops(q, k)),
    ),
    slip(16, "your values are the keys: load v", lambda q, k, v, M, N: attention(q, k, k)),
    slip(
        16,
        "your mask is turned round: a query sees keys up to its own place",
        lambda q, k, v, M, N: mapped(q, k, v, lambda s, t: (s >= t) & (s < (t // M + 1) * M)),
    ),
    arguments="q, k, v, out, lse, T, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr",
    launch=launch_flash,
    forbids=(no_future,),
    hints=[
        "t = tl.program_id(0) * M + tl.arange(0, M); the loop runs over key tiles up to "
        "tl.minimum((tl.program_id(0) + 1) * M, T): the rest is future.",
        "In the loop: online, with a row of keys for each query. score is (M, N), top and total "
        "are (M,), and tl.max and tl.sum go over axis 1.",
        "sums = tl.dot(e, values, sums * shrink[:, None]) with shrink = tl.exp(top - higher).",
    ],
    level="hard",
    minutes=20,
)
def flash(q, k, v, M, N, *, diagonal=True, shrink=(True, True), **how):
    """Causal attention of M queries, N keys at a time: q, k, v, out are (T, D), lse is (T,).

    lse is top + log(total): the backward pass will need it. Tiles of keys that no query of this
    program sees are not loaded.
    """
    if diagonal and all(shrink):
        return attention(q, k, v, **how)
    return by_tiles(q, k, v, M, N, diagonal, shrink)


def by_tiles(q, k, v, M, N, diagonal, shrink):
    """flash tile by tile, with its mistakes: idle keys are zeros, as a kernel loads them."""
    T, D = q.shape
    behind = ((0, -T % N + M), (0, 0))
    keys, values = np.pad(k, behind), np.pad(v, behind)
    out, lse = np.zeros((T, D)), np.zeros(T)
    for t in range(T):
        top, total, sums = -np.inf, 0.0, np.zeros(D)
        for start in range(0, min((t // M + 1) * M, T), N):
            seen = np.arange(start, start + N)
            seen = seen[seen <= t] if diagonal else seen
            score = keys[seen] @ q[t] / np.sqrt(D)
            new = max(top, score.max(initial=-np.inf))
            less, e = np.exp(top - new), np.exp(score - new)
            total = total * (less if shrink[0] else 1) + e.sum()
            sums = sums * (less if shrink[1] else 1) + e @ values[seen]
            top = new
        out[t], lse[t] = sums / total, top + np.log(total)
    return out, lse


def launch_gather(q, k, table, ids, gain, M, N):
    T, D = q.shape
    out, lse = empty(T, D), empty(T)
    ids, gain = ids.int(), torch.tensor([gain])
    arguments = (q, k, table, ids, gain, out, lse, T, D**-0.5)
    return Launch((blocks(T, M),), arguments, dict(D=D, M=M, N=N), (out, lse))


def named(T):
    def make(r):
        q, k, table = normals(r, (T, 16), (T, 16), (T, 16))
        return q, k, table, r.integers(0, 9, T), 0.7, 16, 16

    return make


def scaled(q, k, rows, gain, seen=lambda s, t: s <= t):
    out, lse = mapped(q, k, rows, lambda s, t: seen(s, t) & (s < len(k)))
    return gain * out, lse


def by_query(q, k, table, ids, gain, M):
    """Row i of a tile of values is that of the tile's i-th query."""
    rows = np.zeros_like(k)
    out, lse = attention(q, k, rows)
    behind = np.pad(ids, (0, -len(ids) % M))
    for t in range(len(q)):
        mine = table[behind[t // M * M :][np.arange(len(k)) % M]]
        out[t] = attention(q[: t + 1], k[: t + 1], mine[: t + 1])[0][t]
    return gain * out, lse


def grown(q, k, rows, gain, M, N, shrink):
    out, lse = by_tiles(q, k, rows, M, N, True, shrink)
    return gain * out, lse


@unit.exercise(
    Part("whole tiles", 4, named(32)),
    Part("ragged tiles", 4, named(41)),
    Wrong(
        "rows by position",
        8,
        "the value of a key is the row that its ID names: load the ids first",
        dict(by="position"),
    ),
    Wrong("no gain", 8, "out is gain times the mean: tl.load(gain), once", dict(gained=False)),
    slip(
        8,
        "row w of the table begins at w * D",
        lambda q, k, table, ids, gain, M, N: scaled(
            q, k, np.stack([table.ravel()[w : w + 16] for w in ids]), gain
        ),
    ),
    slip(
        8,
        "a query sees keys up to its own place alone",
        lambda q, k, table, ids, gain, M, N: scaled(
            q, k, table[ids], gain, lambda s, t: s // N <= t // M
        ),
    ),
    slip(
        8,
        "gain belongs to what is read; you multiplied the scores by it as well",
        lambda q, k, table, ids, gain, M, N: scaled(gain * q, k, table[ids], gain),
    ),
    slip(
        8,
        "the scores are not multiplied by scale",
        lambda q, k, table, ids, gain, M, N: scaled(q * q.shape[1] ** 0.5, k, table[ids], gain),
    ),
    slip(
        8,
        "gain has no part in lse, which is of the weights alone",
        lambda q, k, table, ids, gain, M, N: (
            gain * attention(q, k, table[ids])[0],
            attention(q, k, table[ids])[1] + np.log(gain),
        ),
    ),
    slip(
        8,
        "the rows are the table's; you read those of k",
        lambda q, k, table, ids, gain, M, N: scaled(q, k, k[ids], gain),
    ),
    slip(
        8,
        "the ids of the KEYS name the rows, not those of the queries",
        lambda q, k, table, ids, gain, M, N: by_query(q, k, table, ids, gain, M),
    ),
    slip(
        8,
        "your sums do not shrink when the maximum grows: sums * shrink[:, None]",
        lambda q, k, table, ids, gain, M, N: grown(q, k, table[ids], gain, M, N, (True, False)),
    ),
    arguments="q, k, table, ids, gain, out, lse, T, scale, D: tl.constexpr, M: tl.constexpr, "
    "N: tl.constexpr",
    launch=launch_gather,
    forbids=(no_future, told("ids")),
    hints=[
        "row = tl.load(ids + key, mask=key < T, other=0) stands where row = key would do for a "
        "stored V.",
        "Copy your flash. Two places change: the address of the values, and the last store.",
    ],
    level="medium",
    minutes=8,
)
def gather(q, k, table, ids, gain, M, N, *, by="id", gained=True):
    """flash whose value at position p is row ids[p] of the table; out is gain times the mean.

    An idle lane has an id, too: 0, so that it names a row.
    """
    rows = table[ids] if by == "id" else table
    out, lse = attention(q, k, rows)
    return out * (gain if gained else 1), lse


# ---- backward ------------------------------------------------------------------------------------


def launch_keys(q, k, v, above, M, N):
    T, D = q.shape
    seen = torch.ones(T, T).tril().bool()
    score = (q @ k.T * D**-0.5).masked_fill(~seen, float("-inf"))
    delta = (above * (score.softmax(1) @ v)).sum(1)
    grad_k, grad_v = empty(T, D), empty(T, D)
    arguments = (q, k, v, above, score.logsumexp(1), delta, grad_k, grad_v, T, D**-0.5)
    return Launch((blocks(T, N),), arguments, dict(D=D, M=M, N=N), (grad_k, grad_v))


def pushed(T):
    return lambda r: (*normals(r, (T, 16), (T, 16), (T, 16), (T, 16)), 16, 16)


def pushed_back(
    q, k, v, above, score=lambda z: z, log=None, seen=lambda s, t: s <= t,
    only=lambda s, t: s >= 0, slope=lambda P, dP, delta: P * (dP - delta), into=None,
):  # fmt: skip
    """(dK, dV) as products of matrices, with one of the steps mistaken."""
    t, s = np.arange(len(q))[:, None], np.arange(len(k))
    out, lse = attention(q, k, v)
    z = score(q @ k.T / np.sqrt(q.shape[1])) - (lse[:, None] if log is None else log)
    P = np.where(seen(s, t) & only(s, t), np.exp(z), 0)
    dS = slope(P, above @ v.T, (above * out).sum(1, keepdims=True))
    return dS.T @ (q if into is None else into) / np.sqrt(q.shape[1]), P.T @ above


def last_tile(q, k, v, above, M, N):
    """(dK, dV) of the last tile of queries alone."""
    last = (len(q) - 1) // M * M
    return pushed_back(q, k, v, above, only=lambda s, t: t >= last)


@unit.exercise(
    Part("whole tiles", 6, pushed(32)),
    Part("ragged tiles", 6, pushed(41)),
    Wrong(
        "delta forgotten",
        12,
        "dS = P * (dP - delta): subtract each query's delta, or the softmax's own slope is missing",
        dict(minus=False),
    ),
    Wrong(
        "scale forgotten",
        12,
        "the scores were multiplied by scale, so their gradient is too, on its way into dK",
        dict(scaled=False),
    ),
    slip(
        12,
        "the scores are computed again as they were: times scale",
        lambda *x: pushed_back(*x[:4], score=lambda z: z * x[0].shape[1] ** 0.5),
    ),
    slip(
        12,
        "lse is missing: the weights are exp(score - lse)",
        lambda *x: pushed_back(*x[:4], log=0),
    ),
    slip(
        12,
        "a key is seen by the queries from its own place on, to the END: yours stop after its tile",
        lambda *x: pushed_back(*x[:4], only=lambda s, t: t < (s // x[5] + 1) * x[5]),
    ),
    slip(
        12,
        "your mask is turned round: key <= query",
        lambda *x: pushed_back(
            *x[:4], seen=lambda s, t: s >= t, only=lambda s, t: t >= s // x[5] * x[5] // x[4] * x[4]
        ),
    ),
    slip(
        12,
        "the mask is missing: queries before a key do not see it",
        lambda *x: pushed_back(
            *x[:4], seen=lambda s, t: s >= 0, only=lambda s, t: t >= s // x[5] * x[5] // x[4] * x[4]
        ),
    ),
    slip(
        12,
        "dS = P * (dP - delta): you added delta",
        lambda *x: pushed_back(*x[:4], slope=lambda P, dP, delta: P * (dP + delta)),
    ),
    slip(
        12,
        "grad_v adds up over the tiles of queries; yours keeps the last",
        lambda *x: (grad_keys(*x)[0], last_tile(*x)[1]),
    ),
    slip(
        12,
        "grad_k adds up over the tiles of queries; yours keeps the last",
        lambda *x: (last_tile(*x)[0], grad_keys(*x)[1]),
    ),
    slip(
        12,
        "dK is dS.T Q; you took dO for the queries",
        lambda *x: (pushed_back(*x[:4], into=x[3])[0], grad_keys(*x)[1]),
    ),
    slip(
        12,
        "scale belongs to dK alone: the values were not multiplied by it",
        lambda *x: (grad_keys(*x)[0], grad_keys(*x)[1] * x[0].shape[1] ** -0.5),
    ),
    slip(12, "you stored dV in grad_k", lambda *x: (grad_keys(*x)[1],) * 2),
    arguments="q, k, v, above, lse, delta, grad_k, grad_v, T, scale, D: tl.constexpr, "
    "M: tl.constexpr, N: tl.constexpr",
    launch=launch_keys,
    forbids=(no_past,),
    hints=[
        "One program owns N keys and walks over the QUERIES that see them: tiles of M from "
        "tl.program_id(0) * N // M * M to T.",
        "P = exp(score - lse) again, (M, N), 0 where the mask says so; grad_v += P.T dO.",
        "dS = P * (dO V.T - delta[:, None]); grad_k += dS.T Q, times scale at the end.",
    ],
    level="hard",
    minutes=20,
)
def grad_keys(q, k, v, above, M, N, *, minus=True, scaled=True):
    """dK and dV of N keys, M queries at a time: all of (T, D), but lse and delta, which are (T,).

    above is dO. The weights are computed again, from the scores and lse. Tiles of queries that see
    no key of this program are not loaded.
    """
    T, D = q.shape
    grad_k, grad_v = np.zeros((T, D)), np.zeros((T, D))
    out, lse = attention(q, k, v)
    for t in range(T):
        delta = above[t] @ out[t] if minus else 0
        for s in range(t + 1):
            P = np.exp(q[t] @ k[s] / np.sqrt(D) - lse[t])
            dS = P * (above[t] @ v[s] - delta)
            grad_v[s] += P * above[t]
            grad_k[s] += dS * q[t] / (np.sqrt(D) if scaled else 1)
    return grad_k, grad_v


def launch_tokens(rows, ids, V, N):
    order = ids.argsort(stable=True).int()
    starts = torch.cat([torch.zeros(1), torch.bincount(ids, minlength=V).cumsum(0)]).int()
    out = empty(V, rows.shape[1])
    return Launch((V,), (rows, order, starts, out), dict(D=rows.shape[1], N=N), (out,))


def spoken(r):
    return r.normal(size=(21, 4)), r.choice([0, 2, 3, 6], 21), 8, 4


def picked(rows, ids, V, places):
    """Each token's sum over other places of the sorted order."""
    found = [places(np.flatnonzero(ids == w)) for w in range(V)]
    return np.stack([rows[p].sum(0) for p in found])


@unit.exercise(
    Part("tokens that repeat, and one that is absent", 6, spoken),
    Wrong(
        "order ignored",
        6,
        "starts counts places in the SORTED order: order[place] says which row stands there",
        dict(sort=False),
    ),
    Wrong("one tile only", 6, "a token may fill several tiles: loop to its stop", dict(tiles=1)),
    slip(
        6,
        "the sum grows from tile to tile; yours keeps the last",
        lambda rows, ids, V, N: picked(
            rows, ids, V, lambda p: p[(len(p) - 1) // N * N :] if len(p) else p
        ),
    ),
    slip(
        6,
        "a sum is wanted: you divided by the number of places",
        lambda rows, ids, V, N: (
            token_sums(rows, ids, V, N) / np.maximum(np.bincount(ids, minlength=V), 1)[:, None]
        ),
    ),
    slip(
        6,
        "what is left after the last whole tile is missing: the loop runs to stop",
        lambda rows, ids, V, N: picked(rows, ids, V, lambda p: p[: len(p) // N * N]),
    ),
    slip(
        6,
        "every turn of your loop reads the first tile: start + tl.arange(0, N)",
        lambda rows, ids, V, N: picked(rows, ids, V, lambda p: np.tile(p[:N], blocks(len(p), N))),
    ),
    slip(
        6,
        "your loop leaves out the first place: it begins at start",
        lambda rows, ids, V, N: picked(rows, ids, V, lambda p: p[1:]),
    ),
    slip(
        6,
        "order[place] says which row stands there; you took row w, the token itself",
        lambda rows, ids, V, N: picked(rows, ids, V, lambda p: p * 0 + ids[p]),
    ),
    arguments="rows, order, starts, out, D: tl.constexpr, N: tl.constexpr",
    launch=launch_tokens,
    hints=[
        "start and stop are tl.load(starts + token) and tl.load(starts + token + 1); loop over "
        "places from start to stop in steps of N.",
        "row = tl.load(order + place, mask=place < stop, other=0), then the rows (N, D) with "
        "other=0.0, and tl.sum(…, 0) of them. Store even if there were none.",
    ],
    level="medium",
    minutes=13,
)
def token_sums(rows, ids, V, N, *, sort=True, tiles=None):
    """The gradient of one token's row: the sum of rows[p] over the positions p where it stands.

    order lists all positions sorted by token; those of token w are order[starts[w]:starts[w + 1]].
    rows is (S, D), out (V, D), a row of zeros for a token that is absent.
    """
    out = np.zeros((V, rows.shape[1]))
    order = np.argsort(ids, kind="stable") if sort else np.arange(len(ids))
    stops = np.cumsum(np.bincount(ids, minlength=V))
    for w in range(V):
        start = stops[w - 1] if w else 0
        stop = min(stops[w], start + tiles * N) if tiles else stops[w]
        out[w] = sum((rows[p] for p in order[start:stop]), np.zeros(rows.shape[1]))
    return out
