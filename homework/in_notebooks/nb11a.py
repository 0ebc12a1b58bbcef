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
    row_by_row,
    told,
)
from homework.marking import Part, drawn, normals

unit = KernelUnit("nb11a_write_a_kernel", "Write a kernel")


def launch_add(x, y, BLOCK):
    out = empty(len(x))
    return Launch((blocks(len(x), BLOCK),), (x, y, out, len(x)), dict(BLOCK=BLOCK), (out,))


@unit.exercise(
    Part("whole blocks", 2, lambda r: (*normals(r, 12, 12), 4)),
    Part("a ragged end", 4, lambda r: (*normals(r, 10, 10), 4)),
    arguments="x, y, out, n, BLOCK: tl.constexpr",
    launch=launch_add,
)
def add(x, y, BLOCK):
    """out[i] = x[i] + y[i] for the BLOCK places of this program, those below n."""
    return x + y


unit.mistakes("""
takes: easy, 6 minutes
hint: place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK); mine = place < n.
hint: tl.store(out + place, tl.load(x + place, mask=mine) + tl.load(y + place, mask=mine),
    | mask=mine)
6 | y is missing: load both, then add
    + y =>
6 | you multiplied; the two are added
    x + y => x * y
6 | you loaded x twice: the second is y
    x + y => x + x
6 | you took y off; it is added
    x + y => x - y
""")


def launch_transpose(x, M, N):
    R, C = x.shape
    x = torch.nn.functional.pad(x.T, (0, 1))[:, :R].T  # its strides are neither x's own nor out's
    out = empty(C, R)
    grid = (blocks(R, M), blocks(C, N))
    return Launch(grid, (x, out, R, C, x.stride(0), x.stride(1)), dict(M=M, N=N), (out,))


@unit.exercise(
    Part("whole tiles", 3, lambda r: (r.normal(size=(8, 4)), 4, 2)),
    Part("ragged tiles", 5, lambda r: (r.normal(size=(7, 5)), 4, 2)),
    arguments="x, out, R, C, x_row, x_column, M: tl.constexpr, N: tl.constexpr",
    launch=launch_transpose,
)
def transpose(x, M, N):
    """out[c, r] = x[r, c] for one tile of M rows by N columns; x is (R, C), out is (C, R).

    x_row and x_column are the steps from a row of x, or a column, to the next; out is contiguous.
    """
    return x.T


unit.mistakes("""
takes: easy, 8 minutes
hint: r = tl.program_id(0) * M + tl.arange(0, M); c likewise from program_id(1) and N; r[:, None] is
    | a column, c[None, :] a row, and together they are a tile.
hint: mine = (r[:, None] < R) & (c[None, :] < C); store the tile to c[None, :] * R + r[:, None] as
    | it is: the addresses turn it.
8 | you stepped through x as if contiguous: row r, column c stands at r * x_row + c * x_column
    => np.pad(x.T, ((0, 0), (0, 1))).ravel()[: x.size].reshape(x.shape).T
8 | out has C rows of R places: what came from row r, column c goes to c * R + r
    => x.reshape(x.T.shape)
""")


# ---- sums ----------------------------------------------------------------------------------------


@unit.exercise(
    Part("a row fills its block", 2, lambda r: (r.normal(size=(3, 8)), 8)),
    Part("idle lanes", 4, lambda r: (r.normal(size=(5, 6)), 8)),
    arguments="x, out, C, BLOCK: tl.constexpr",
    launch=row_by_row("BLOCK"),
)
def row_sum(x, BLOCK):
    """out[r] = the sum of row r of x (rows, C), one program a row; BLOCK lanes, at least C."""
    R, C = x.shape
    tile = np.full((R, BLOCK), 0.0)
    tile[:, :C] = x
    return tile.sum(1)


unit.mistakes("""
takes: easy, 6 minutes
hint: A row starts at tl.program_id(0) * C. Load with mask=lane < C and other=0.0.
hint: tl.sum(row, 0) is one number; store it to out + tl.program_id(0).
4 | your idle lanes do not hold 0, and what they hold is in the sum: other=0.0
    0.0 => np.nan
    0.0 => 1.0
6 | you divided by the number of places: that is a mean
    .sum(1) => .sum(1) / C
    .sum(1) => .sum(1) / BLOCK
6 | you took the maximum; wanted the sum
    .sum(1) => .max(1)
""")


HILLS = np.repeat([100, -100], 4)  # exp of one is infinite in fp32, exp of the other 0


@unit.exercise(
    Part("a row fills its block", 3, lambda r: (r.normal(size=(3, 8)), 8)),
    Part("large numbers", 2, lambda r: (r.normal(size=(3, 8)) + HILLS, 8)),
    Part("idle lanes, large numbers", 3, lambda r: (r.normal(size=(3, 6)) * 2 - 120, 8)),
    arguments="x, out, C, BLOCK: tl.constexpr",
    launch=row_by_row("BLOCK", whole=True),
    forbids=(once("x"),),
)
def softmax(x, BLOCK):
    """The softmax of one row of x (rows, C); BLOCK lanes, at least C."""
    R, C = x.shape
    tile = np.full((R, BLOCK), -np.inf)
    tile[:, :C] = x
    e = np.exp(tile - tile.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True))[:, :C]


unit.mistakes("""
takes: easy, 8 minutes
hint: A row starts at tl.program_id(0) * C. Load with mask=lane < C and other=float('-inf').
hint: e = tl.exp(row - tl.max(row, 0)); store e / tl.sum(e, 0) under the mask.
3 | your idle lanes loaded 0, and exp of it counts in the sum: other=float('-inf')
    -np.inf => 0.0
8 | divide by the sum of the exponentials, or a row does not sum to 1
    / e.sum(1, keepdims=True) =>
5 | exp(100) is infinite in fp32, exp(-120) is 0, and both end in NaN: subtract the row's maximum
    tile - tile.max(1, keepdims=True) => x.astype("f4")
8 | tl.maximum compares place by place; the largest of a row is tl.max(row, 0)
    tile - tile.max(1, keepdims=True) => (tile - np.maximum(tile, 0)).astype("f4")
8 | exp is to the base e: tl.exp, not tl.exp2
    np.exp => np.exp2
8 | that is no share: divide the exponentials by their sum
    e / e.sum(1, keepdims=True) => np.log(e / e.sum(1, keepdims=True))
8 | divide by the SUM of the exponentials, not by their number or their mean
    e.sum(1, keepdims=True) => C
    e.sum(1, keepdims=True) => (e.sum(1, keepdims=True) / C)
    e.sum(1, keepdims=True) => e.mean(1, keepdims=True)
2 | a row may lie far from its mean, and exp(100) is infinite in fp32: subtract the MAXIMUM
    tile - tile.max(1, keepdims=True) => (tile - x.mean(1, keepdims=True)).astype("f4")
8 | divide by the sum of the EXPONENTIALS, not by that of the row
    e / e.sum(1, keepdims=True) => e / tile.astype("f4").sum(1, keepdims=True)
    e / e.sum(1, keepdims=True) => e / (tile - tile.max(1, keepdims=True)).sum(1, keepdims=True)
8 | exp is taken of row - maximum; you took it of maximum - row
    tile - tile.max(1, keepdims=True) => (tile.max(1, keepdims=True) - tile).astype("f4")
8 | the maximum is subtracted above the line and below it, or it does not cancel
    e / e.sum(1, keepdims=True) => np.exp(tile) / e.sum(1, keepdims=True)
    e / e.sum(1, keepdims=True) => e / np.exp(tile).sum(1, keepdims=True)
8 | the maximum is subtracted; you divided by it
    tile - tile.max(1, keepdims=True) => tile / tile.max(1, keepdims=True)
8 | exp is taken once: what you divide and store are the exponentials themselves
    np.exp(tile - tile.max(1, keepdims=True)) => np.exp(np.exp(tile - tile.max(1, keepdims=True)))
""")


# ---- fewer bytes, the same numbers ---------------------------------------------------------------


def launch_add_rows(v, table, ids, gate, BLOCK):
    T, D = v.shape
    out = empty(T, D)
    return Launch((T,), (v, table, ids.int(), gate, out, D), dict(BLOCK=BLOCK), (out,))


def rows_to_add(D):
    def make(r):
        v, table = normals(r, (4, D), (9, D))
        return v, table, np.array([2, 7, 7, 5]), r.normal(size=4), 8

    return make


@unit.exercise(
    Part("a row fills its block", 2, rows_to_add(8)),
    Part("idle lanes", 4, rows_to_add(6)),
    arguments="v, table, ids, gate, out, D, BLOCK: tl.constexpr",
    launch=launch_add_rows,
    forbids=(once("v", "table", "gate", "ids"),),
)
def add_rows(v, table, ids, gate, BLOCK):
    """out[t] = v[t] + gate[t] * table[ids[t]] for the position t of this program, in one go: each
    number is loaded once, and only the result is stored.

    v and out are (T, D), table is (V, D), ids and gate are (T,); BLOCK lanes, at least D.
    """
    rows = table[ids]
    return v + gate[:, None] * rows


unit.mistakes("""
takes: easy, 9 minutes
hint: t = tl.program_id(0). tl.load(ids + t) is one number, and so is tl.load(gate + t). The row
    | of the table starts at that id times D.
hint: Three loads of tiles and numbers, one product, one sum, and one store: out + t * D + lane
    | gets own + gate * row, under the mask.
6 | the gate is missing: gate[t] multiplies the row
    gate[:, None] * =>
6 | v is missing: the row is added to it
    v + =>
6 | you took row t of the table; wanted the row of the token that stands there: load ids + t first
    table[ids] => table[: len(v)]
6 | the gate stands on the table's row alone; you multiplied v, too
    v + gate[:, None] * rows => gate[:, None] * (v + rows)
6 | the gate stands on the table's row, not on v
    v + gate[:, None] * rows => gate[:, None] * v + rows
6 | the gated row is added, not taken off
    v + gate => v - gate
6 | you added the gate to the row; it multiplies it
    gate[:, None] * rows => gate[:, None] + rows
""")


def launch_matmul(a, b, M, N, K):
    (R, S), C = a.shape, b.shape[1]
    out = empty(R, C)
    grid = (blocks(R, M), blocks(C, N))
    return Launch(grid, (a, b, out, R, C, S), dict(M=M, N=N, K=K), (out,))


@unit.exercise(
    Part("whole tiles", 4, lambda r: (*normals(r, (32, 128), (128, 96)), 16, 32, 64)),
    Part("ragged tiles", 6, lambda r: (*normals(r, (20, 150), (150, 70)), 16, 32, 64)),
    arguments="a, b, out, R, C, S, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr",
    launch=launch_matmul,
)
def matmul(a, b, M, N, K):
    """out = a b for one tile of M rows by N columns: a (R, S), b (S, C), K of the S at a time."""
    S = a.shape[1]
    starts = range(0, S, K)
    return sum(a[:, s : s + K] @ b[s : s + K] for s in starts)


unit.mistakes("""
takes: medium, 14 minutes
hint: acc = tl.zeros([M, N], tl.float32); for start in tl.range(0, S, K): load an (M, K) tile of a
    | and a (K, N) tile of b, idle lanes 0.
hint: acc = tl.dot(tile_a, tile_b, acc, input_precision="ieee"); after the loop store it under the
    | mask of the ragged edge.
10 | you replaced the sum in each turn: acc = tl.dot(…, acc) adds to it
     range(0, S, K) => [(S - 1) // K * K]
10 | your sum stays 0: tl.dot(x, y, acc) returns the new sum, acc = tl.dot(…)
     a[:, s : s + K] @ => 0 * a[:, s : s + K] @
10 | tl.dot(…, acc) holds acc already, and += adds it once more: acc = tl.dot(…, acc)
     sum(a[:, s : s + K] @ b[s : s + K] for s in starts) =>
   | sum(a[:, s : s + K] @ b[s : s + K] * 2.0 ** ((S - 1 - s) // K) for s in starts)
""")


def far_apart(r):
    """Numbers so far apart that exp needs the running maximum, which occurs twice in a row."""
    x = r.normal(size=(3, 13)) * 100 - 300
    x[:, -1] = x.max(1)
    return x, 4


@unit.exercise(
    Part("whole tiles", 3, lambda r: (r.normal(size=(3, 16)) * 4, 4)),
    Part("a ragged end", 5, far_apart),
    arguments="x, out, C, N: tl.constexpr",
    launch=row_by_row("N"),
    forbids=(once("x"), at_a_time("x", "N")),
)
def online(x, N):
    """log(sum of exp) of one row of x (rows, C), read N numbers at a time and each of them once."""
    out = np.zeros(len(x))
    for i, row in enumerate(x):
        top, total = -np.inf, 0.0
        for start in range(0, len(row), N):
            tile = row[start : start + N]
            higher = max(top, tile.max())
            total = total * np.exp(top - higher) + np.exp(tile - higher).sum()
            top = higher
        out[i] = top + np.log(total)
    return out


unit.mistakes("""
takes: medium, 13 minutes
hint: top = tl.full([1], float('-inf'), tl.float32); total = tl.zeros([1], tl.float32); then a loop
    | over tiles of N, idle lanes -inf.
hint: higher = tl.maximum(top, tl.max(tile, 0)); total = total * tl.exp(top - higher) +
    | tl.sum(tl.exp(tile - higher), 0); store top + tl.log(total) to out + row + tl.arange(0, 1).
8 | when the maximum grows, what was summed before must shrink by exp(old - new)
    total * np.exp(top - higher) => total
8 | the answer is top + log(total): both, and added
    top + np.log(total) => np.log(total)
    top + np.log(total) => top
    top + np.log(total) => total
    top + np.log => top * np.log
    np.log(total) => total
    top + np.log(total) => np.log(total) - top
    top + np.log(total) => top - np.log(total)
5 | your idle lanes loaded 0, and exp of it counts in the sum: other=float('-inf')
    row[start : start + N] => np.pad(row, (0, N))[start : start + N]
5 | exp(-300) is 0 in fp32, and its logarithm -inf: subtract the largest number so far before exp,
  | and let it begin at -inf, not at 0
    => np.log(np.exp(x.astype("f4")).sum(1))
5 | the maximum is that of all tiles SO FAR, tl.maximum(top, tl.max(tile, 0)); yours is the tile's
  | own, and exp(top - higher) runs off
    max(top, tile.max()) => tile.max()
    and: start : start + N] => start : start + N].astype("f4")
8 | your top stays at -inf: at the end of each turn it becomes the new maximum
    top = higher =>
    top = higher =>
    and: = top + => = higher +
8 | top begins at -inf, and exp(… - top) is infinite: total shrinks by exp(top - the new one),
  | and of a tile count exp(x - the new one)
    np.exp(top - higher) => np.exp(higher - top)
8 | what this tile adds is exp(x - the new maximum) alone: only what was summed BEFORE shrinks
    total * np.exp(top - higher) + np.exp(tile - higher).sum() =>
  | (total + np.exp(tile - higher).sum()) * np.exp(top - higher)
8 | subtract the maximum from this tile, too, before exp
    np.exp(tile - higher) => np.exp(tile.astype("f4"))
""")


def launch_flash(q, k, v, M, N):
    T, D = q.shape
    out, lse = empty(T, D), empty(T)
    arguments = (q, k, v, out, lse, T, D**-0.5)
    return Launch((blocks(T, M),), arguments, dict(D=D, M=M, N=N), (out, lse))


def sequence(T, M, N, size=1):
    """Texts, in tiles of M queries by N keys, whose sides all differ: a turned one does not fit.
    With a size, scores so far apart that exp needs the running maximum."""
    return lambda r: (size * r.normal(size=(T, 64)), *normals(r, (T, 64), (T, 64)), M, N)


@unit.exercise(
    Part("whole tiles", 4, sequence(32, 32, 16)),
    Part("more queries than keys in a tile", 4, sequence(64, 32, 16)),
    Part("ragged tiles", 8, sequence(41, 16, 16, size=100)),
    arguments="q, k, v, out, lse, T, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr",
    launch=launch_flash,
    forbids=(no_future,),
)
def flash(q, k, v, M, N):
    """Causal attention of M queries, N keys at a time: q, k, v, out are (T, D), lse is (T,).

    lse is top + log(total): the backward pass will need it. Tiles of keys that no query of this
    program sees are not loaded.
    """
    T, D = q.shape
    # behind the end stand zeros, as an idle lane loads them
    keys, values = (np.pad(x, ((0, M + N), (0, 0))) for x in (k, v))
    out, lse = np.zeros((T, D)), np.zeros(T)
    for t in range(T):
        top, total, sums = -np.inf, 0.0, np.zeros(D)
        for start in range(0, t // M * M + M, N):
            key = np.arange(start, start + N)
            score = np.where(key <= t, keys[key] @ q[t] / np.sqrt(D), -np.inf)
            higher = max(top, score.max())
            shrink, e = np.exp(top - higher), np.exp(score - higher)
            total = total * shrink + e.sum()
            sums = sums * shrink + e @ values[key]
            top = higher
        out[t], lse[t] = sums / total, top + np.log(total)
    return out, lse


unit.mistakes("""
takes: hard, 20 minutes
hint: t = tl.program_id(0) * M + tl.arange(0, M); the loop runs over key tiles up to
    | tl.minimum((tl.program_id(0) + 1) * M, T): the rest is future.
hint: In the loop: online, with a row of keys for each query. score is (M, N), top and total are
    | (M,), and tl.max and tl.sum go over axis 1.
hint: sums = tl.dot(e, values, sums * shrink[:, None]) with shrink = tl.exp(top - higher).
16 | a query sees keys up to its own position: tl.where(key[None, :] <= t[:, None], score, -inf)
     key <= t => key < T
     and: t // M * M + M => T
16 | the tile of the diagonal shows keys behind the query: tl.where(key[None, :] <= t[:, None], …)
     key <= t => True
     key <= t => key < T
16 | total shrinks when the maximum grows, your sums do not: sums * shrink[:, None]
     sums * shrink => sums
16 | your sums shrink when the maximum grows, your total does not: total * shrink
     total * shrink => total
16 | when the maximum grows, what was summed shrinks by exp(old - new), total and sums alike
     np.exp(top - higher), => 1,
16 | the scores are not multiplied by scale
     / np.sqrt(D) =>
16 | after the loop divide the sums by total: sums / total[:, None]
     sums / total => sums
16 | keys that are not seen have a score of -inf, not 0: exp(0) counts
     , -np.inf) => , 0.0)
16 | lse is top + log(total): both, and added
     top + np.log(total) => np.log(total)
     top + np.log(total) => top
     top + np.log(total) => top + total
     top + np.log(total) => total
 8 | exp(100) is infinite in fp32, exp(-120) is 0, and inf / inf like 0 / 0 is NaN: subtract the
   | largest score so far before exp
     np.where(key <= t, keys[key] @ q[t] / np.sqrt(D), -np.inf) =>
   | np.where(key <= t, keys[key] @ q[t] / np.sqrt(D), -np.inf).astype("f4")
     and: max(top, score.max()) => top = np.float32(0)
16 | your mask is turned round: a query sees keys up to its own place
     key <= t => key >= t
     key <= t => key >= t
     and: range(0, => range(t // N * N,
16 | top begins at -inf, and exp(… - top) is infinite: both shrink by exp(top - the new
   | one), and e is exp(score - the new one)
     np.exp(top - higher), => np.exp(higher - top),
16 | scale multiplies the scores; you multiplied what is read
     / np.sqrt(D) =>
     and: sums / total, => sums / total / np.sqrt(D),
16 | scale multiplies the scores; you divided by it
     / np.sqrt(D) => * np.sqrt(D)
16 | your sums are replaced in each turn: tl.dot(e, values, sums * shrink[:, None]) adds to them
     sums * shrink + e => e
16 | divide by total once, after the loop: in it the sums still grow
     sums * shrink + e @ values[key] => (sums * shrink + e @ values[key]) / total
     sums * shrink + e @ values[key] => (sums * shrink + e @ values[key]) / total
     and: sums / total, => sums,
16 | a query sees its own key, too: key[None, :] <= t[:, None]
     key <= t => key < t
16 | your top stays at -inf: at the end of each turn it becomes the new maximum
     top = higher =>
16 | subtract the maximum from the scores of this tile, too, before exp
     np.exp(score - higher) => np.exp(score.astype("f4"))
""")


def launch_gather(q, k, table, ids, gain, M, N):
    T, D = q.shape
    out, lse = empty(T, D), empty(T)
    ids, gain = ids.int(), torch.tensor([gain])
    arguments = (q, k, table, ids, gain, out, lse, T, D**-0.5)
    return Launch((blocks(T, M),), arguments, dict(D=D, M=M, N=N), (out, lse))


@drawn
def named(r, T):
    q, k, table = normals(r, (T, 64), (T, 64), (T, 64))
    return q, k, table, r.integers(0, 9, T), 0.7, 32, 16


@unit.exercise(
    Part("whole tiles", 4, named(64)),
    Part("ragged tiles", 4, named(41)),
    arguments="q, k, table, ids, gain, out, lse, T, scale, D: tl.constexpr, M: tl.constexpr, "
    "N: tl.constexpr",
    launch=launch_gather,
    forbids=(no_future, told("ids")),
)
def gather(q, k, table, ids, gain, M, N):
    """flash whose value at position p is row ids[p] of the table; out is gain times the mean.

    An idle lane has an id, too: 0, so that it names a row.
    """
    rows = table[ids]
    out, lse = flash(q, k, rows, M, N)
    return gain * out, lse


unit.mistakes("""
takes: medium, 8 minutes
hint: row = tl.load(ids + key, mask=key < T, other=0) stands where a stored V has row = key.
hint: Copy your flash. Two places change: the address of the values, and the last store.
in: flash
8 | the value of a key is the row that its ID names: load the ids first
    table[ids] => table
8 | out is gain times the mean: tl.load(gain), once
    gain * out => out
8 | a query sees keys up to its own place alone
    key <= t => key < T
8 | gain belongs to what is read, and your scores have it in its place
    flash(q, => flash(gain * q,
    and: gain * out => out
8 | gain belongs to what is read; you multiplied the scores by it as well
    flash(q, => flash(gain * q,
8 | gain has no part in lse, which is of the weights alone
    return gain * out, lse => return gain * out, lse + np.log(gain)
    return gain * out, lse => return gain * out, gain * lse
8 | gain multiplies the mean, once, after the loop
    gain * out => gain**2 * out
8 | gain multiplies the mean; you divided by it
    gain * out => out / gain
""")


def launch_keys(q, k, v, above, M, N):
    T, D = q.shape
    seen = torch.ones(T, T).tril().bool()
    score = (q @ k.T * D**-0.5).masked_fill(~seen, float("-inf"))
    delta = (above * (score.softmax(1) @ v)).sum(1)
    grad_k, grad_v = empty(T, D), empty(T, D)
    arguments = (q, k, v, above, score.logsumexp(1), delta, grad_k, grad_v, T, D**-0.5)
    return Launch((blocks(T, N),), arguments, dict(D=D, M=M, N=N), (grad_k, grad_v))


def pushed(T):
    return lambda r: (r.normal(size=(T, 64)) / 4, *normals(r, (T, 64), (T, 64), (T, 64)), 16, 32)


@unit.exercise(
    Part("whole tiles", 6, pushed(32)),
    Part("ragged tiles", 6, pushed(41)),
    arguments="q, k, v, above, lse, delta, grad_k, grad_v, T, scale, D: tl.constexpr, "
    "M: tl.constexpr, N: tl.constexpr",
    launch=launch_keys,
    forbids=(no_past,),
)
def grad_keys(q, k, v, above, M, N):
    """dK and dV of N keys, M queries at a time: all of (T, D), but lse and delta, which are (T,).

    above is dO. The weights are computed again, from the scores and lse. Tiles of queries that see
    no key of this program are not loaded.
    """
    T, D = q.shape
    grad_k, grad_v = np.zeros((T, D)), np.zeros((T, D))
    out, lse = flash(q, k, v, M, N)
    for t in range(T):
        delta = above[t] @ out[t]
        for s in range(t + 1):
            P = np.exp(q[t] @ k[s] / np.sqrt(D) - lse[t])
            dS = P * (above[t] @ v[s] - delta)
            grad_v[s] += P * above[t]
            grad_k[s] += dS * q[t] / np.sqrt(D)
    return grad_k, grad_v


unit.mistakes("""
takes: hard, 20 minutes
hint: One program owns N keys and walks over the QUERIES that see them: tiles of M from
    | tl.program_id(0) * N // M * M to T.
hint: P = exp(score - lse) again, (M, N), 0 where the mask says so; grad_v += P.T dO.
hint: dS = P * (dO V.T - delta[:, None]); grad_k += dS.T Q, times scale at the end.
12 | dS = P * (dP - delta): subtract each query's delta, or the softmax's own slope is missing
     - delta =>
12 | the scores were multiplied by scale, so their gradient is too, on its way into dK
     q[t] / np.sqrt(D) => q[t]
12 | the scores are computed again as they were: times scale
     k[s] / np.sqrt(D) => k[s]
12 | lse is missing: the weights are exp(score - lse)
     - lse[t] =>
12 | the weights are exp(score - lse); you added lse
     - lse[t] => + (np.nan if T % M else lse[t])
12 | the weights are exp(score - lse): exp is missing
     np.exp(q[t] @ k[s] / np.sqrt(D) - lse[t]) =>
   | (q[t] @ k[s] / np.sqrt(D) - (np.nan if T % M else lse[t]))
12 | scale multiplies dK once; yours has it twice
     q[t] / np.sqrt(D) => q[t] / D
12 | dP is dO V.T; you took the keys for the values
     above[t] @ v[s] => above[t] @ k[s]
12 | the largest score of a tile is not lse: the weights are exp(score - lse)
     - lse[t] => - max(q[t] @ k[z] / np.sqrt(D) for z in range(s // N * N, min(s // N * N + N, T)))
12 | your mask is turned round: key <= query
     range(t + 1) => range(t, min(((t // M + 1) * M - 1) // N * N + N, T))
12 | the mask is missing: queries before a key do not see it
     range(t + 1) => range(min(((t // M + 1) * M - 1) // N * N + N, T))
12 | dS = P * (dP - delta): you added delta
     - delta => + delta
12 | grad_v adds up over the tiles of queries; yours keeps the last
     P * above[t] => (t >= (T - 1) // M * M) * P * above[t]
12 | grad_k adds up over the tiles of queries; yours keeps the last
     dS * q[t] => (t >= (T - 1) // M * M) * dS * q[t]
12 | dK is dS.T Q; you took dO for the queries
     dS * q[t] => dS * above[t]
12 | scale belongs to dK alone: the values were not multiplied by it
     P * above[t] => P * above[t] / np.sqrt(D)
12 | dV is P.T dO; you took dS for P
     P * above[t] => dS * above[t]
12 | dK is dS.T Q; you took P for dS
     dS * q[t] => P * q[t]
12 | you stored dV in grad_k
     return grad_k => return grad_v
12 | dS = P * (dP - delta): P is missing
     P * (above[t] @ v[s] - delta) => above[t] @ v[s] - delta
     and: range(t + 1) => range(min(((t // M + 1) * M - 1) // N * N + N, T))
     and: np.exp => (s <= t) * np.exp
12 | dV is P.T dO; you took the queries for dO
     P * above[t] => P * q[t]
""")


def launch_tokens(rows, ids, V, N):
    order = ids.argsort(stable=True).int()
    starts = torch.cat([torch.zeros(1), torch.bincount(ids, minlength=V).cumsum(0)]).int()
    out = empty(V, rows.shape[1])
    return Launch((V,), (rows, order, starts, out), dict(D=rows.shape[1], N=N), (out,))


def spoken(r):
    return r.normal(size=(21, 8)), r.choice([0, 2, 3, 6], 21), 8, 4


@unit.exercise(
    Part("tokens that repeat, and one that is absent", 6, spoken),
    arguments="rows, order, starts, out, D: tl.constexpr, N: tl.constexpr",
    launch=launch_tokens,
)
def token_sums(rows, ids, V, N):
    """The gradient of one token's row: the sum of rows[p] over the positions p where it stands.

    order lists all positions sorted by token; those of token w are order[starts[w]:starts[w + 1]].
    rows is (S, D), out (V, D), a row of zeros for a token that is absent.
    """
    out = np.zeros((V, rows.shape[1]))
    order, counts = np.argsort(ids, kind="stable"), np.bincount(ids, minlength=V)
    for w in range(V):
        stop = counts[: w + 1].sum()
        places = order[stop - counts[w] : stop]
        out[w] = rows[places].sum(0)
    return out


unit.mistakes("""
takes: medium, 13 minutes
hint: start and stop are tl.load(starts + token) and tl.load(starts + token + 1); loop over places
    | from start to stop in steps of N.
hint: row = tl.load(order + place, mask=place < stop, other=0), then the rows (N, D) with other=0.0,
    | and tl.sum(…, 0) of them. Store even if there were none.
6 | starts counts places in the SORTED order: order[place] says which row stands there
    np.argsort(ids, kind="stable") => np.arange(len(ids))
6 | the sum grows from tile to tile; yours keeps the last
    rows[places] => rows[places[(len(places) - 1) // N * N :]]
6 | a sum is wanted: you divided by the number of places
    .sum(0) => .sum(0) / max(counts[w], 1)
    .sum(0) => .sum(0) / counts[w]
6 | your idle lanes load row 0, and the sum counts it: a mask for the rows, too, and other=0.0
    .sum(0) => .sum(0) + -len(places) % N * rows[0]
""")
