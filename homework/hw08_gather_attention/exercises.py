"""hw08: what does one program of a kernel read, keep and write?"""

import numpy as np

from homework.marking import For, Part, Unit, Wrong, need, normals, refuse, slip

unit = Unit(
    "hw08_gather_attention",
    "What does one program do?",
    """
    Fill in the functions, in any order, and run `pytest homework/hw08_gather_attention` as
    often as you like.
    Each works tile by tile. The first five are Triton kernels (in the interpreter, which the lines
    below switch on: no GPU is needed), and where Triton is installed a kernel must have stored
    the result. Where there is none, write a loop over programs in PyTorch.
    Letters: T queries, S keys, D key width, E value width, H heads, V vocabulary, P programs.
    Widths are powers of two.
    Functions answer in the dtype of their inputs, and leave their inputs as they
    were.
""",
    prelude="""
    import os

    os.environ.setdefault("TRITON_INTERPRET", "1")  # before triton is imported

    import torch  # noqa: F401

    try:
        import triton
        import triton.language as tl
    except ImportError:  # then write loops over programs
        triton = tl = None
""",
)


# ------------------------------------------------------------------------------------ copy, softmax


def longer_by_one(x, block):
    """One program more than whole blocks, whether or not something is left."""
    offsets = np.arange((len(x) // block + 1) * block).reshape(-1, block)
    return x[::-1], offsets, offsets < len(x)


def strided(x, block):
    """Every program takes each P-th place."""
    programs = -(-len(x) // block)
    offsets = np.arange(programs)[:, None] + np.arange(block) * programs
    return x[::-1], offsets, offsets < len(x)


@unit.exercise(
    Part("whole blocks", 2, lambda r: (r.normal(size=16), 4)),
    Part("a ragged end", 4, lambda r: (r.normal(size=int(r.choice([9, 13, 14, 15, 19]))), 4)),
    Wrong(
        "turned block by block",
        6,
        "you turned every block by itself: the last number of all comes first",
        dict(each=True),
    ),
    Wrong(
        "one place too far",
        6,
        "x has no place N: the lane that stores at i loads at N - 1 - i",
        dict(last=0),
    ),
    Wrong(
        "offsets clamped",
        4,
        "you clamped the offsets at the end; a lane that has nothing to do is switched off by "
        "the mask, its offset stays where arithmetic puts it",
        dict(clamp=True),
    ),
    Wrong(
        "one program short",
        4,
        "you launched N // block programs; the last, ragged block needs one too",
        dict(whole=True),
    ),
    Wrong(
        "every lane on",
        4,
        "lanes at or behind N must be off, or they read and write what is not theirs",
        dict(mask=False),
    ),
    slip(
        6,
        "x came out forwards: the lane that stores at i loads at N - 1 - i",
        lambda x, block: (x, *copy_tiles(x, block)[1:]),
    ),
    slip(
        6,
        "offsets say where a lane STORES: program * block + lane; only the load runs backwards",
        lambda x, block: (
            copy_tiles(x, block)[0],
            len(x) - 1 - copy_tiles(x, block)[1],
            copy_tiles(x, block)[2],
        ),
    ),
    slip(
        6,
        "every program starts at program * block; yours all start at 0",
        lambda x, block: (x[::-1], copy_tiles(x, block)[1] % block, copy_tiles(x, block)[2]),
    ),
    slip(
        6,
        "your mask is True where a lane is OFF",
        lambda x, block: (*copy_tiles(x, block)[:2], ~copy_tiles(x, block)[2]),
    ),
    slip(
        2,
        "ceil(N / block) programs: where the blocks fit exactly, you launched one too many",
        lambda x, block: longer_by_one(x, block),
    ),
    slip(
        4,
        "idle lanes keep their offsets: arithmetic puts them behind N, the mask switches them off",
        lambda x, block: (
            x[::-1],
            copy_tiles(x, block)[1] * copy_tiles(x, block)[2],
            copy_tiles(x, block)[2],
        ),
    ),
    slip(
        6,
        "a program has neighbouring lanes: program * block + lane",
        lambda x, block: strided(x, block),
    ),
    hints=[
        "Program p stores at offsets = p * block + arange(block), where mask = offsets < N, and "
        "loads at N - 1 - offsets.",
        "There are ceil(N / block) programs: (N + block - 1) // block.",
    ],
    after="ceil(N / block) programs run, and the last has lanes without work: the mask "
    "switches them off, and their offsets stay where the arithmetic puts them. Clamped "
    "offsets would let several lanes write to one place. Every kernel of the package "
    "does the same: in minimal/kernels/decode.py: combine the mask is d < D.",
    level="easy",
    minutes=11,
    kernel=0,
)
def copy_tiles(x, block, *, clamp=False, whole=False, mask=True, each=False, last=1):
    """The first kernel: x (N,) copied backwards, `block` numbers a program. x need not be
    contiguous.

    Returns (copy (N,), offsets (P,block), mask (P,block)): what was stored, and for each of the P
    programs the whole-number offsets at which its lanes store and whether (bool) each lane is on.
    """
    programs = len(x) // block if whole else -(-len(x) // block)
    starts = range(0, len(x), block)
    turned = np.array([x[(len(x) - last - i) % len(x)] for i in range(len(x))])
    turned = np.concatenate([x[i : i + block][::-1] for i in starts]) if each else turned
    offsets = np.array([[p * block + lane for lane in range(block)] for p in range(programs)])
    on = offsets < len(x)
    return (
        turned,
        np.minimum(offsets, len(x) - 1) if clamp else offsets,
        on if mask else on | True,
    )


def ragged(empty, large=False):
    def make(r):
        lengths = r.permutation(np.array([0 if empty else 3, 1, 4, 6]))
        x = r.normal(size=(4, 6))
        return (x * 40 - 150 if large else x * 3), lengths, 8

    return make


def wide(x, block):
    return np.pad(x, ((0, 0), (0, block - x.shape[1])))


def by_top(x, lengths, block, top, sign=1):
    """The lanes less another number than the maximum of what counts, in float32."""
    lanes = np.zeros((len(x), block), np.float32)
    for r, n in enumerate(lengths):
        lanes[r, :n] = np.exp((sign * (x[r, :n] - (top(x[r], n) if n else 0.0))).astype("f4"))
    return divided(lanes, x, lengths), lanes


def padded(x, lengths, block, idle):
    """Idle lanes hold a number, which counts for the maximum and the sum."""
    tile = np.where(np.arange(block) < lengths[:, None], wide(x, block), idle)
    top = np.where(lengths > 0, tile.max(1), 0.0)[:, None]
    return divided(np.exp(tile - top), x, lengths), np.exp(tile - top)


def divided(lanes, x, lengths):
    return (lanes / np.where(lengths > 0, lanes.sum(1), 1)[:, None])[:, : x.shape[1]]


@unit.exercise(
    Part("rows of any length", 3, ragged(False)),
    Part("an empty row, large numbers", 5, ragged(True, large=True)),
    Wrong(
        "zeros in the padding",
        8,
        "your idle lanes loaded 0: exp of that counts in the sum. Load them as -inf",
        dict(other=0.0),
    ),
    Wrong(
        "whole rows",
        8,
        "a row ends at its length: what stands behind it in memory is not part of it",
        dict(short=False),
    ),
    Wrong(
        "0 / 0",
        5,
        "a row of length 0 has no lane on: its maximum is -inf, and -inf - -inf is NaN. Its out "
        "and its lanes are 0",
        dict(nothing=np.nan),
    ),
    Wrong("maximum not subtracted", 8, "subtract the row's maximum before exp", dict(shift=False)),
    slip(
        8,
        "out is divided by the sum of the lanes",
        lambda *given: (softmax_rows(*given)[1][:, : given[0].shape[1]], softmax_rows(*given)[1]),
    ),
    slip(
        8,
        "lanes are exp(tile - maximum) before the division",
        lambda x, lengths, block: (
            softmax_rows(x, lengths, block)[0],
            wide(softmax_rows(x, lengths, block)[0], block),
        ),
    ),
    slip(
        8,
        "the maximum is that of the row's own numbers; yours is that of all x",
        lambda x, lengths, block: by_top(x, lengths, block, lambda row, n: x.max()),
    ),
    slip(
        8,
        "the maximum is that of the first lengths[r] numbers; yours saw those behind, too",
        lambda x, lengths, block: by_top(x, lengths, block, lambda row, n: row.max()),
    ),
    slip(
        8,
        "a row has lengths[r] numbers; yours took one more",
        lambda x, lengths, block: softmax_rows(x, np.minimum(lengths + 1, x.shape[1]), block),
    ),
    slip(
        8,
        "load idle lanes as -inf: any finite number is a score like others",
        lambda x, lengths, block: padded(x, lengths, block, -1.0),
    ),
    slip(
        5,
        "a row of length 0 is all 0 in out, and not even",
        lambda x, lengths, block: (
            np.where(lengths[:, None] == 0, 1 / x.shape[1], softmax_rows(x, lengths, block)[0]),
            softmax_rows(x, lengths, block)[1],
        ),
    ),
    slip(
        8,
        "out is divided by the SUM of the lanes; you divided by their mean",
        lambda x, *given: (softmax_rows(x, *given)[0] * x.shape[1], softmax_rows(x, *given)[1]),
    ),
    slip(
        8,
        "subtract the row's maximum before exp: lanes are exp(tile - maximum)",
        lambda x, lengths, block: by_top(x, lengths, block, lambda row, n: 0.0),
    ),
    slip(
        8,
        "the sign is turned: exp(tile - maximum), not exp(maximum - tile)",
        lambda x, lengths, block: by_top(x, lengths, block, lambda row, n: row[:n].max(), -1),
    ),
    slip(
        8,
        "idle lanes of yours hold 0, so exp of that counts in the sum: load them as -inf",
        lambda x, lengths, block: padded(x, lengths, block, 0.0),
    ),
    slip(
        8,
        "nothing is added to the sum: a row's sum is at least 1, and an empty row has none",
        lambda x, lengths, block: (
            softmax_rows(x, lengths, block)[1][:, : x.shape[1]]
            / (softmax_rows(x, lengths, block)[1].sum(1, keepdims=True) + 1e-2),
            softmax_rows(x, lengths, block)[1],
        ),
    ),
    hints=[
        "tl.load(pointer, mask=lane < length, other=-float('inf')): exp(-inf) is 0, so idle lanes "
        "fall out of the sum by themselves. A row starts at row * x.stride(0).",
        "An empty row: take 0 for a maximum of -inf, and 1 for a sum of 0. Then every lane is "
        "exp(-inf) / 1. Store C numbers, not length: behind the end stands 0.",
    ],
    after="An idle lane should have loaded -inf: exp(-inf) is 0, so it falls out of the maximum "
    "and the sum alike, while a loaded 0 would count. A row without lanes has neither, and a "
    "neutral number in the place of -inf and of 0 keeps NaN away. minimal/kernels/decode.py: "
    "combine treats splits that saw no key in this way.",
    level="medium",
    minutes=18,
    kernel=0,
)
def softmax_rows(x, lengths, block, *, other=-np.inf, short=True, shift=True, nothing=0.0):
    """Softmax of the first lengths[r] numbers of each row of x (R,C), one program a row, `block` >=
    C lanes. lengths (R,) are whole numbers from 0 to C. x need not be contiguous.

    Returns (out (R,C), lanes (R,block)): lanes are the programs' exp(tile - maximum), idle lanes
    included (these must come out as 0). Behind a row's end out is 0; a row of length 0 is all 0.
    """
    R, C = x.shape
    out, lanes = np.zeros((R, C)), np.zeros((R, block))
    for r in range(R):
        end = lengths[r] if short else C
        if end == 0:
            out[r], lanes[r] = nothing, nothing
            continue
        tile = np.array([x[r, c] if c < end else other for c in range(block)])
        lanes[r] = np.exp(tile - (tile.max() if shift else 0))
        out[r] = lanes[r, :C] / lanes[r].sum()
    return out, lanes


# ------------------------------------------------------------------------------------ flash, gather


def thousand(q, k):
    """q, k (N,D), changed: the last query's score is 1000 with the first key (exp overflows), and 0
    with the others."""
    q[-1] = 1000 * np.sqrt(len(q[-1])) * k[0] / (k[0] @ k[0])
    k[1:] -= np.outer(k[1:] @ k[0], k[0]) / (k[0] @ k[0])


def flash_by_row(
    q,
    k,
    v,
    prefix=0,
    skip=True,
    diagonal=True,
    base=1.0,
    lse_of="sum",
    block_m=1,
    block_n=1,
    shift=True,
    past=False,
):
    """(out, lse, tiles read by each program), row by row."""
    T, D = q.shape
    out, lse, visited = np.zeros((T, v.shape[1])), np.zeros(T), []
    for start in range(0, T, block_m):
        end = min(start + block_m, T)
        reach = max(start + block_m if past else end if skip else T, prefix)
        visited.append(-(-reach // block_n))
        for t in range(start, end):
            last = t + 1 if diagonal else min(T, -(-(t + 1) // block_n) * block_n)
            last = max(last, prefix)
            scores = np.array([q[t] @ k[s] for s in range(last)]) / np.sqrt(D)
            top = scores.max() if shift else 0
            p = np.exp(scores - top)
            out[t] = p @ v[:last] / p.sum()
            lse[t] = (np.log(p.sum()) if lse_of == "sum" else 0) + top
    return out, lse / base, np.array(visited)


def sequence(T, large=False):
    def make(r):
        n = int(r.choice(T))
        q, k = (2 * x for x in normals(r, (n, 16), (n, 16)))
        if large:
            thousand(q, k)
        return q, k, r.normal(size=(n, 16)), 32, 16  # tiles that tl.dot takes

    return make


def prefixed(T, large=False):
    """The same with a prefix of 37: it reaches behind the first tile of queries."""

    def make(r):
        q, k, v, *blocks = sequence(T, large)(r)
        return q, k, v, 37, *blocks

    return make


def tiled(
    q,
    k,
    v,
    prefix,
    block_m,
    block_n,
    own=0,
    more=0,
    acc=True,
    total=True,
    lse=lambda m, total: m + np.log(total),
    reach=None,
    divided=True,
):
    """Flash as a learner's loop writes it, with one step done otherwise."""
    T, D = q.shape
    outs, lses, visited = [], [], []
    for first in range(0, T, block_m):
        rows = np.arange(first, min(first + block_m, T))
        m, sums, o = np.full((len(rows), 1), -np.inf), 0.0, 0.0
        last = reach(first, T) if reach else min(max(first + block_m, prefix), T)
        starts = range(0, last, block_n)
        for start in starts:
            keys = np.arange(start, min(start + block_n, T))
            seen = (keys <= rows[:, None] - own) | (keys < prefix + more)
            s = np.where(seen, q[rows] @ k[keys].T / np.sqrt(D), -np.inf)
            new = np.maximum(m, s.max(1, keepdims=True))
            shrink, p = np.exp(m - new), np.exp(s - new)
            sums = sums * (shrink if total else 1) + p.sum(1, keepdims=True)
            o = o * (shrink if acc else 1) + p @ v[keys]
            m = new
        outs.append(o / sums if divided else o)
        lses.append(lse(m, sums)[:, 0])
        visited.append(len(starts))
    return np.concatenate(outs), np.concatenate(lses), np.array(visited)


@unit.exercise(
    Part("whole tiles", 6, prefixed([64])),
    Part(
        "ragged tiles",
        10,
        [prefixed([73, 69], True), prefixed([41, 45, 47], True), prefixed([73, 69], True)],
    ),
    Wrong(
        "causal alone",
        16,
        "everybody sees the prefix, also those who stand in it: a key is seen if it is not later "
        "than the query OR belongs to the prefix",
        dict(open=False),
    ),
    Wrong(
        "the loop ends at the diagonal",
        16,
        "your first programs stop at their diagonal, before the end of the prefix that they see",
        dict(far=False),
    ),
    Wrong(
        "reads the future",
        16,
        "your programs read tiles that lie wholly behind their last query: the loop ends "
        "with the tile of the diagonal",
        dict(skip=False),
    ),
    Wrong(
        "diagonal not masked",
        16,
        "within the tile of the diagonal, keys behind the query must be masked",
        dict(diagonal=False),
    ),
    Wrong(
        "reads behind the end",
        10,
        "your last program reads a tile that lies wholly behind the end of the sequence",
        dict(past=True),
    ),
    Wrong(
        "no maximum",
        10,
        "exp of a score in the hundreds overflows: subtract the running maximum first",
        dict(shift=False),
    ),
    Wrong(
        "lse to the base of two",
        16,
        "your lse is in base 2; give it in natural units",
        dict(base=np.log(2)),
    ),
    Wrong(
        "the maximum for the lse",
        16,
        "lse is the maximum PLUS the log of the sum of exp(score - maximum)",
        dict(lse_of="max"),
    ),
    slip(
        16,
        "your scores are not divided by sqrt(D)",
        lambda q, k, v, prefix, m, n: flash(q * np.sqrt(q.shape[1]), k, v, prefix, m, n),
    ),
    slip(
        16,
        "a query sees itself: the own key is at or before the query",
        tiled,
        own=1,
    ),
    slip(
        16,
        "the prefix is the keys 0 to prefix - 1; yours shows key number `prefix` as well",
        tiled,
        more=1,
    ),
    slip(
        16,
        "acc shrinks when the maximum grows, as the sum does: acc * exp(m - new)",
        tiled,
        acc=False,
    ),
    slip(
        16,
        "the sum shrinks when the maximum grows, as acc does: total * exp(m - new)",
        tiled,
        total=False,
    ),
    slip(
        16,
        "lse is the running maximum PLUS the log of the sum; the maximum is missing",
        tiled,
        lse=lambda m, t: np.log(t),
    ),
    slip(
        16,
        "lse takes the natural log of the sum, not its log2",
        lambda q, k, v, prefix, m, n: tiled(q, k, v, prefix, m, n, lse=lambda m, t: m + np.log2(t)),
    ),
    slip(
        16,
        "maximum and log of the sum are added, not multiplied",
        lambda q, k, v, prefix, m, n: tiled(q, k, v, prefix, m, n, lse=lambda m, t: m * np.log(t)),
    ),
    slip(
        16,
        "lse is the maximum plus the LOG of the sum; yours is the sum itself",
        tiled,
        lse=lambda m, t: t,
    ),
    slip(
        16,
        "the loop ends at the program's last query, or at the prefix's end, whichever is later",
        lambda q, k, v, prefix, m, n: tiled(
            q, k, v, prefix, m, n, reach=lambda first, T: min(first + m, T)
        ),
    ),
    slip(
        16,
        "your loop ends with the tile of the program's FIRST query; go on to its last one",
        tiled,
        reach=lambda first, T: first + 1,
    ),
    slip(
        16,
        "visited counts tiles, not keys",
        lambda q, k, v, prefix, m, n: (
            *flash(q, k, v, prefix, m, n)[:2],
            flash(q, k, v, prefix, m, n)[2] * n,
        ),
    ),
    slip(
        16,
        "divide acc by the sum at the end",
        tiled,
        divided=False,
    ),
    hints=[
        "Program p: queries p * block_m …; keys in steps of block_n up to the last query's own "
        "position, or to the end of the prefix, whichever is later. State: m, l, acc (hw01's "
        "online softmax).",
        "Mask of a tile: ((key <= query) | (key < prefix)) & (key < T) & (query < T). The number "
        "of tiles: ceil(max(min(T, (p + 1) * block_m), prefix) / block_n).",
        "At the end out = acc / total, lse = m + log(total).",
    ],
    after="A program keeps three things a query, maximum, sum and weighted sum. Its loop ends at "
    "the diagonal or at the end of the prefix, so tiles that nobody sees are never read; a mask "
    "that came without a bound for the loop would give the same numbers and read them all. "
    "minimal/kernels/forward.py: forward has no prefix, but a window, and walks in three stretches "
    "so that only tiles at an edge are masked.",
    level="hard",
    minutes=37,
    kernel=0,
    single=True,
)
def flash(q, k, v, prefix, block_m, block_n, *, open=True, far=True, **how):
    """Flash attention with a prefix, forward, one head: q, k (T,D), v (T,E). Query t sees the keys
    up to t, and all of the first `prefix` keys (at most T), even those that come later. A program
    has block_m queries and reads block_n keys at a time.

    Returns (out (T,E), lse (T,), visited (P,)): lse is the natural log of the sum of exp(scores),
    scores over sqrt(D); visited is the number of key tiles (whole numbers) that each program reads:
    none that none of its queries may see, and none behind the end of the sequence. All is float32,
    and D, E and both blocks are at least 16, as tl.dot wants them.
    """
    blocks = dict(block_m=block_m, block_n=block_n, **how)
    if not open:
        return flash_by_row(q, k, v, **blocks)
    out, lse, visited = flash_by_row(q, k, v, prefix=prefix, **blocks)
    return out, lse, visited if far else flash_by_row(q, k, v, **blocks)[2]


def named(T, large=False):
    def make(r):
        q, k, v, *blocks = sequence(T, large)(r)
        return q, k, v, r.integers(0, 9, len(v)), r.normal(size=(16, 16)), -1.75, *blocks

    return make


def causal(q, k, values, block_m, block_n, **how):
    """Flash without a prefix over these values: (out, lse)."""
    return tiled(q, k, values, 0, block_m, block_n, **how)[:2]


@unit.exercise(
    Part("whole tiles", 6, named([32, 64])),
    Part("ragged tiles", 8, named([41, 43, 47], True)),
    Wrong(
        "by position",
        14,
        "your table is read at the position; the id that stands there names the row",
        dict(by="position"),
    ),
    Wrong(
        "gain on everything",
        14,
        "gain belongs to the table's rows alone: at the end, on the finished sum, it would scale "
        "the own values, too",
        dict(on="both"),
    ),
    Wrong(
        "gain in the scores",
        14,
        "gain scales the table's rows; it has no business in the scores",
        dict(on="scores"),
    ),
    Wrong("no gain", 14, "the gain is missing", dict(on="none")),
    Wrong(
        "in place of V",
        14,
        "your values are the table's rows alone: here they are added to the token's own",
        dict(own=False),
    ),
    Wrong(
        "no maximum",
        8,
        "exp of a score in the hundreds overflows: subtract the running maximum first",
        dict(shift=False),
    ),
    slip(
        14,
        "gain belongs to the table's rows; you scaled the own values instead",
        lambda q, k, v, ids, table, gain, m, n: causal(q, k, gain * v + table[ids], m, n),
    ),
    slip(
        14,
        "the own value is v[position]; you looked it up by token id",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q, k, v[ids % len(v)] + gain * table[ids], m, n
        ),
    ),
    slip(
        14,
        "the rows are ADDED to the own values; you multiplied",
        lambda q, k, v, ids, table, gain, m, n: causal(q, k, v * (1 + gain * table[ids]), m, n),
    ),
    slip(
        14,
        "the own values come whole, without 1 - gain",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q, k, (1 - gain) * v + gain * table[ids], m, n
        ),
    ),
    slip(
        14,
        "the table's rows are missing",
        lambda q, k, v, ids, table, gain, m, n: causal(q, k, v, m, n),
    ),
    slip(
        14,
        "your scores are not divided by sqrt(D)",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q * np.sqrt(q.shape[1]), k, v + gain * table[ids], m, n
        ),
    ),
    slip(
        14,
        "keys after the query are not masked",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q, k, v + gain * table[ids], m, n, own=-10_000
        ),
    ),
    slip(
        14,
        "acc shrinks when the maximum grows, as the sum does",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q, k, v + gain * table[ids], m, n, acc=False
        ),
    ),
    slip(
        14,
        "the sum shrinks when the maximum grows, as acc does",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q, k, v + gain * table[ids], m, n, total=False
        ),
    ),
    slip(
        14,
        "lse is the running maximum PLUS the log of the sum",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q, k, v + gain * table[ids], m, n, lse=lambda top, t: np.log(t)
        ),
    ),
    slip(
        14,
        "divide acc by the sum at the end",
        lambda q, k, v, ids, table, gain, m, n: causal(
            q, k, v + gain * table[ids], m, n, divided=False
        ),
    ),
    slip(
        14,
        "you added the QUERY's own row to the sum; every key brings its row, weighed as its value",
        lambda q, k, v, ids, table, gain, m, n: (
            gather_flash(q, k, v, ids, table, gain, m, n)[0] + gain * table[ids],
            causal(q, k, v, m, n)[1],
        ),
    ),
    hints=[
        "The value tile is v[keys of the tile] + gain * table[ids[keys of the tile]]: three loads, "
        "the third depending on the second.",
        "An idle lane has no id: load 0 under the mask, and let its weight of 0 do the rest. Gain "
        "cannot wait until after the loop here, unless you keep two sums.",
    ],
    after="As long as all values come from the table, the gain can wait for the finished sum. "
    "Beside an own value it cannot: it goes on the row, once a tile, or the program keeps a second "
    "sum, twice the registers. In the package: minimal/kernels/forward.py: absorb loads the rows, "
    "minimal/kernels/forward.py: forward applies the gain at the end, and the plans with a table "
    "beside V add it first and keep the sum.",
    level="medium",
    minutes=14,
    kernel=0,
    single=True,
)
def gather_flash(
    q, k, v, ids, table, gain, block_m, block_n, *, by="id", on="rows", own=True, shift=True
):
    """Causal flash attention (no prefix) whose values have a part of their own and a part that is
    named by token ids: the value at position p is v[p] + gain * table[ids[p]].

    q, k (T,D), v (T,E), ids (T,), table (V,E), gain a number; sizes and dtype as in flash. Returns
    (out (T,E), lse (T,)).
    """
    rows = table[ids] if by == "id" else table[np.arange(len(ids)) % len(table)]
    values = (v if own else 0 * v) + (gain if on == "rows" else 1) * rows
    out, lse, _ = flash_by_row(q * (gain if on == "scores" else 1), k, values, shift=shift)
    return out * (gain if on == "both" else 1), lse


# ------------------------------------------------------------------------------------------- decode


def cache(S, splits, large=False):
    def make(r):
        n = int(r.choice(S))
        q, k, table = normals(r, (6, 8), (n, 3, 8), (16, 3, 4))
        q, k = 2 * q, 2 * k
        if large:
            thousand(q, k[:, 2])
        return q, k, r.integers(0, 6, n), table, 1.5, splits

    return make


def merged(q, k, ids, table, gain, splits, weigh):
    parts, lse, _ = split_decode(q, k, ids, table, gain, splits)
    return parts, lse, gain * (weigh(lse)[..., None] * parts).sum(0)


def by_head(lse):
    share = np.exp(lse - lse.max(1, keepdims=True))
    return share / share.sum(1, keepdims=True)


def staged(q, k, ids, table, gain, splits, early, late):
    parts, lse, out = split_decode(q, k, ids, table, 1.0, splits)
    return parts * early, lse, out * early * late


def with_lse(q, k, ids, table, gain, splits, other):
    """Another number in the place of lse, which then weighs the splits; top: their maxima."""
    parts, lse, _ = split_decode(q, k, ids, table, gain, splits)
    size, shared = -(-len(k) // splits), len(q) // k.shape[1]
    scores = np.stack([k[:, h // shared] @ q[h] for h in range(len(q))], 1) / np.sqrt(q.shape[1])
    top = np.stack([scores[n : n + size].max(0) for n in range(0, len(k), size)])
    found = other(top, lse)
    share = np.exp(found - found.max(0))
    return parts, found, gain * ((share / share.sum(0))[..., None] * parts).sum(0)


def unnormalised(q, k, ids, table, gain, splits):
    parts, lse, _ = split_decode(q, k, ids, table, gain, splits)
    share = np.exp(lse - lse.max(0))
    parts = parts * np.exp(lse)[..., None]
    return parts, lse, gain * ((share / share.sum(0))[..., None] * parts).sum(0)


@unit.exercise(
    Part("even splits", 6, cache([8, 12, 16], 4)),
    Part("uneven splits", 8, cache([10, 13, 14], 4, True)),
    Wrong(
        "key heads by turns",
        14,
        "neighbours share: query head h reads key head h // (H // G), not h % G",
        dict(turns=True),
    ),
    Wrong("plain mean", 14, "you averaged the splits; each counts by exp(lse)", dict(merge="mean")),
    Wrong(
        "gain in the parts",
        14,
        "the parts are stored without the gain; it is applied once, after the merge",
        dict(early=True),
    ),
    Wrong(
        "no maximum",
        8,
        "exp of a score in the hundreds overflows: subtract the split's maximum first",
        dict(shift=False),
    ),
    Wrong(
        "rounded down",
        8,
        "a split has ceil(S / splits) keys; rounded down, the last keys belong to nobody",
        dict(up=False),
    ),
    slip(
        14,
        "your scores are not divided by sqrt(D)",
        lambda q, k, ids, table, gain, splits: split_decode(
            q * np.sqrt(q.shape[1]), k, ids, table, gain, splits
        ),
    ),
    slip(
        14,
        "you summed the splits; each counts by exp(lse), and all of them sum to 1",
        lambda q, k, ids, table, gain, splits: merged(
            q, k, ids, table, gain, splits, lambda lse: np.ones_like(lse)
        ),
    ),
    slip(
        14,
        "exp(lse) must be divided by its sum over the splits",
        lambda q, k, ids, table, gain, splits: merged(q, k, ids, table, gain, splits, np.exp),
    ),
    slip(
        14,
        "weigh the splits by exp(lse); you took lse itself",
        lambda q, k, ids, table, gain, splits: merged(
            q, k, ids, table, gain, splits, lambda lse: lse / lse.sum(0)
        ),
    ),
    slip(
        14,
        "the splits of one head share the weight; your softmax of lse runs over the heads",
        lambda q, k, ids, table, gain, splits: merged(
            q, k, ids, table, gain, splits, lambda lse: by_head(lse)
        ),
    ),
    slip(
        14,
        "the parts come without the gain; in yours it stands there, and in out again",
        lambda q, k, ids, table, gain, splits: staged(q, k, ids, table, gain, splits, gain, gain),
    ),
    slip(
        14,
        "a part is normalised within its split: divide by its own sum of exp",
        lambda q, k, ids, table, gain, splits: unnormalised(q, k, ids, table, gain, splits),
    ),
    slip(
        14,
        "lse is the maximum PLUS the log of the sum; yours is the maximum alone",
        lambda q, k, ids, table, gain, splits: with_lse(
            q, k, ids, table, gain, splits, lambda top, lse: top
        ),
    ),
    slip(
        14,
        "lse is the LOG of the sum of exp",
        lambda q, k, ids, table, gain, splits: with_lse(
            q, k, ids, table, gain, splits, lambda top, lse: np.exp(lse)
        ),
    ),
    slip(
        14,
        "lse is a natural logarithm; yours has base 2",
        lambda q, k, ids, table, gain, splits: with_lse(
            q, k, ids, table, gain, splits, lambda top, lse: lse / np.log(2)
        ),
    ),
    slip(
        14,
        "your table is read by position in the split; the id that stands there names the row",
        lambda q, k, ids, table, gain, splits: split_decode(
            q, k, np.arange(len(ids)) % -(-len(ids) // splits), table, gain, splits
        ),
    ),
    hints=[
        "Split n reads keys n * size … with size = ceil(S / splits), and stores for every query "
        "head its own softmax-weighted sum and its own lse. g = h // (H // G).",
        "Merge: w = softmax of the lse over the splits; out = gain * sum_n w_n part_n.",
    ],
    after="With one query a head would be one program, and most of the machine would wait; splits "
    "give it work. Query heads that share a key head can share a program, so that keys and rows "
    "are read once for all of them: minimal/kernels/decode.py: split packs them into the rows of "
    "a tile. Each split counts by exp of its lse, and minimal/kernels/decode.py: combine applies "
    "the gain after the merge.",
    level="medium",
    minutes=18,
    kernel=0,
)
def split_decode(
    q,
    k,
    ids,
    table,
    gain,
    splits,
    *,
    merge="lse",
    early=False,
    up=True,
    shift=True,
    turns=False,
):
    """One decode step over `splits` stretches of keys, with grouped heads: q (H,D), k (S,G,D), ids
    (S,), table (V,G,E), gain a number. Query head h reads head h // (H // G) of keys and table.

    Returns (parts (splits,H,E), lse (splits,H), out (H,E)). A split has ceil(S / splits)
    neighbouring keys (the last may have fewer, but at least one); parts are normalised within their
    split and without the gain; scores over sqrt(D).
    """
    (S, G, D), (H, _), E = k.shape, q.shape, table.shape[2]
    size = -(-S // splits) if up else S // splits
    parts, lse = np.zeros((splits, H, E)), np.zeros((splits, H))
    for n in range(splits):
        for h in range(H):
            g = h % G if turns else h // (H // G)
            mine = range(n * size, min(n * size + size, S))
            scores = np.array([q[h] @ k[s, g] for s in mine]) / np.sqrt(D)
            top = scores.max() if shift else 0
            p = np.exp(scores - top)
            parts[n, h] = sum(a * table[ids[s], g] for a, s in zip(p / p.sum(), mine, strict=True))
            lse[n, h] = top + np.log(p.sum())
    share = np.exp(lse - lse.max(0))
    share = np.full(share.shape, 1 / splits) if merge == "mean" else share / share.sum(0)
    out = gain * (share[..., None] * parts).sum(0)
    return parts * (gain if early else 1), lse, out


def spoken(distinct):
    def make(r):
        ids = r.permutation(30)[:8] if distinct else np.array([29, 3, *r.choice([3, 7, 29], 6)])
        return r.normal(size=(2, 8)) * 2, ids, r.normal(size=(32, 2, 4)), 0.5

    return make


def softmaxed(scores):
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def collected(weights, ids, table, gain, after=False, mean=False, largest=False):
    """The bins of these weights, by slips of one step."""
    tokens = np.unique(ids)
    bins = [weights[:, ids == t] for t in tokens]
    how = np.max if largest else np.mean if mean else np.sum
    masses = np.stack([how(one, 1) for one in bins], 1)
    masses = softmaxed(masses) if after or largest else masses
    return tokens, masses, gain * np.einsum("hu,uhe->he", masses, table[tokens])


def rank(ids, table):
    """For each row of the table: which of the distinct ids it is (0 where it is none)."""
    found = np.zeros(len(table), int)
    found[np.unique(ids)] = np.arange(len(np.unique(ids)))
    return found


def every(weights, ids, table, gain):
    masses = np.stack([weights[:, ids == t].sum(1) for t in range(len(table))], 1)
    return masses, gain * np.einsum("hv,vhe->he", masses, table)


@unit.exercise(
    Part("all tokens distinct", 4, spoken(True)),
    Part("tokens that repeat", 8, spoken(False)),
    Wrong(
        "order of appearance",
        12,
        "your distinct tokens come in order of appearance; wanted ascending (torch.unique)",
        dict(order="seen"),
    ),
    Wrong(
        "the last one wins",
        8,
        "a token that repeats collects all of its weights; yours kept the last",
        dict(add=False),
    ),
    Wrong(
        "masses not normalised",
        12,
        "divide by the sum over all keys: the masses of a head sum to 1",
        dict(norm=False),
    ),
    slip(
        12,
        "those are sums of scores: take the softmax of each head first",
        lambda scores, ids, table, gain: collected(scores, ids, table, gain),
    ),
    slip(
        12,
        "the softmax runs over the keys of a head; yours runs over the heads",
        lambda scores, ids, table, gain: collected(
            np.exp(scores) / np.exp(scores).sum(0), ids, table, gain
        ),
    ),
    slip(
        8,
        "softmax first, then collect; you collected the scores and took the softmax of the sums",
        collected,
        after=True,
    ),
    slip(
        12,
        "row u of the product is the row of token u: table[tokens], not the first U rows",
        lambda scores, ids, table, gain: (
            *collected(softmaxed(scores), ids, table, gain)[:2],
            collected(
                softmaxed(scores),
                ids,
                np.concatenate([table[: len(np.unique(ids))], table])[rank(ids, table)],
                gain,
            )[2],
        ),
    ),
    slip(
        12,
        "a mass is a sum of softmax weights, not how often a token occurs",
        lambda scores, ids, table, gain: (
            *collected(0 * scores + 1 / scores.shape[1], ids, table, gain)[:2],
            collected(softmaxed(scores), ids, table, gain)[2],
        ),
    ),
    slip(
        12,
        "wanted the distinct tokens, each once, with all of their weights",
        lambda scores, ids, table, gain: (
            ids,
            softmaxed(scores),
            collected(softmaxed(scores), ids, table, gain)[2],
        ),
    ),
    slip(
        8,
        "a mass is the SUM of a token's weights; you took their mean",
        lambda scores, ids, table, gain: collected(softmaxed(scores), ids, table, gain, mean=True),
    ),
    slip(
        12,
        "the scores come scaled already",
        lambda scores, ids, table, gain: collected(
            softmaxed(scores) * scores.shape[1] ** -0.5, ids, table, gain
        ),
    ),
    slip(
        12,
        "out weighs each row by its mass; yours is a plain mean",
        lambda scores, ids, table, gain: (
            *collected(softmaxed(scores), ids, table, gain)[:2],
            gain * table[np.unique(ids)].mean(0),
        ),
    ),
    slip(
        8,
        "each place of a token adds its weight; yours kept the largest score of a token",
        collected,
        largest=True,
    ),
    slip(
        12,
        "wanted the distinct ids that occur, not every row of the table",
        lambda scores, ids, table, gain: (
            np.arange(len(table)),
            *every(softmaxed(scores), ids, table, gain),
        ),
    ),
    hints=[
        "tokens, local = torch.unique(ids, return_inverse=True): local is each position's rank "
        "among the distinct ones, so the bins are few.",
        "masses.scatter_add_ or index_add_ over local; then one product of (H,U) with the U rows "
        "of the table.",
    ],
    after="Numbered from 0, the distinct tokens need U bins and U rows of the table; "
    "minimal/kernels/histogram.py: shrink gives the package's histogram the same few "
    "bins. README's question about the race: softmax and bins grow with the S keys, the "
    "product with the U rows, and which is largest your own clock must say. A trick "
    "cannot win more than the share of the part that it touches.",
    level="medium",
    minutes=10,
)
def histogram_decode(scores, ids, table, gain, *, order="sorted", add=True, norm=True):
    """Decode by masses: scores (H,S) of one query (already scaled), ids (S,), table (V,H,E), gain a
    number.

    Returns (tokens (U,) the distinct ids, ascending; masses (H,U) the softmax weight on each; out
    (H,E)). Reads U rows of the table.
    """
    tokens = (
        sorted({int(i) for i in ids})
        if order == "sorted"
        else list(dict.fromkeys(int(i) for i in ids))
    )
    H, masses = len(scores), np.zeros((len(scores), len(tokens)))
    for h in range(H):
        p = np.exp(scores[h] - scores[h].max())
        p = p / p.sum() if norm else p
        for s, i in enumerate(ids):
            u = tokens.index(int(i))
            masses[h, u] = (masses[h, u] if add else 0) + p[s]
    return (
        np.array(tokens),
        masses,
        gain * np.stack([masses[h] @ table[tokens, h] for h in range(H)]),
    )


# ----------------------------------------------------------------------------------------- backward


def attended(gain):
    def make(r):
        P = np.exp(r.normal(size=(5, 8)))
        return (
            P / P.sum(1, keepdims=True),
            r.normal(size=(5, 4)),
            r.choice([1, 4, 6], 8),
            r.normal(size=(9, 4)),
            gain,
        )

    return make


@unit.exercise(
    Part("a gain", 5, attended(1.6)),
    Part("a gain of zero", 5, attended(0.0)),
    Wrong(
        "the last one wins",
        5,
        "a token that repeats collects the gradients of all its places",
        dict(add=False),
    ),
    Wrong(
        "gain forgotten",
        10,
        "on its way into the table the gradient passes the gain",
        dict(scaled=False),
    ),
    Wrong(
        "divided by the gain",
        5,
        "out / gain is NaN at gain 0: keep the unscaled output u = P V, then d gain = "
        "sum(dout * u)",
        dict(divide=True),
    ),
    slip(
        10,
        "out is gain * u, so d gain is sum(dout * u), without the gain",
        lambda P, dout, ids, table, gain: (
            table_gradient(P, dout, ids, table, gain)[0],
            gain * table_gradient(P, dout, ids, table, gain)[1],
        ),
    ),
    slip(
        10,
        "d gain is a sum over all entries of dout * u, not their mean",
        lambda P, dout, ids, table, gain: (
            table_gradient(P, dout, ids, table, gain)[0],
            table_gradient(P, dout, ids, table, gain)[1] / dout.size,
        ),
    ),
    slip(
        10,
        "d gain starts from dout: sum(dout * (P V))",
        lambda P, dout, ids, table, gain: (
            table_gradient(P, dout, ids, table, gain)[0],
            (P @ table[ids]).sum(),
        ),
    ),
    slip(
        10,
        "gain is one number: sum dout * u over all entries",
        lambda P, dout, ids, table, gain: (
            table_gradient(P, dout, ids, table, gain)[0],
            dout * (P @ table[ids]),
        ),
    ),
    slip(
        10,
        "gain is one number: sum over queries and entries both",
        lambda P, dout, ids, table, gain: (
            table_gradient(P, dout, ids, table, gain)[0],
            (dout * (P @ table[ids])).sum(1),
        ),
    ),
    slip(
        10,
        "those rows belong to places; add them up in rows of the table, by id",
        lambda P, dout, ids, table, gain: (
            gain * P.T @ dout,
            table_gradient(P, dout, ids, table, gain)[1],
        ),
    ),
    slip(
        5,
        "the places of a token are summed, not averaged",
        lambda P, dout, ids, table, gain: (
            table_gradient(P, dout, ids, table, gain)[0]
            / np.maximum(np.bincount(ids, minlength=len(table)), 1)[:, None],
            table_gradient(P, dout, ids, table, gain)[1],
        ),
    ),
    slip(
        5,
        "the row itself is no factor of its gradient",
        lambda P, dout, ids, table, gain: (
            table_gradient(P, dout, ids, table, gain)[0] * table,
            table_gradient(P, dout, ids, table, gain)[1],
        ),
    ),
    slip(
        10,
        "a gradient starts from zeros; yours starts from the table",
        lambda P, dout, ids, table, gain: (
            table + table_gradient(P, dout, ids, table, gain)[0],
            table_gradient(P, dout, ids, table, gain)[1],
        ),
    ),
    hints=[
        "dv = gain * Pᵀ dout, as always; then rows with the same id are added: index_add.",
        "u = P @ table[ids]; d gain = (dout * u).sum(): no division anywhere.",
    ],
    after="Rows of one token are summed in the order of the text: "
    "minimal/kernels/backward.py: sum_by_token does that without atomics, which would "
    "add in an order that changes from run to run. The gain's gradient comes from the "
    "unscaled output, sum(dout · u), so nothing is divided and a gain of zero is no "
    "exception.",
    level="medium",
    minutes=9,
)
def table_gradient(P, dout, ids, table, gain, *, add=True, scaled=True, divide=False):
    """Backward of out = gain * P @ table[ids]: P (T,S), dout (T,E), ids (S,), table (V,E), gain a
    number.

    Returns (dtable (V,E), dgain). Deterministic, rows of absent tokens exactly 0, and finite for
    every gain.
    """
    dtable, dgain = np.zeros(table.shape), 0.0
    for s, i in enumerate(ids):
        here = (gain if scaled else 1) * sum(P[t, s] * dout[t] for t in range(len(P)))
        dtable[i] = (dtable[i] if add else 0) + here
        dgain += sum(P[t, s] * dout[t] @ table[i] for t in range(len(P)))
    return dtable, dgain * gain / np.float64(gain) if divide else dgain


# ------------------------------------------------------------------------------------------- floors


def near(which, low, high, why):
    def accept(answer):
        refuse(not low < need(answer, fused=0, materialised=0)[which] < high, why)

    return accept


GATHER, MATERIALISE = 301 / (100 + 32), 301 / (100 + 32 + 201 + 201)


@unit.exercise(
    Part(
        "gathered on the fly",
        3,
        None,
        near(
            0,
            GATHER * 0.9,
            GATHER * 1.1,
            "more than 10 % off: K is read either way, only V's bytes change",
        ),
    ),
    Part(
        "gathered into memory first",
        3,
        None,
        near(
            1,
            MATERIALISE * 0.9,
            MATERIALISE * 1.1,
            "more than 10 % off: the rows are read, V is written, and V is read again, beside K",
        ),
    ),
    Wrong("as with wide keys", 6, "more than 10 % off", returns=lambda: (1.73, 0.63)),
    Wrong("no loss", 3, "more than 10 % off", returns=lambda: (2.2, 1.0)),
    hints=[
        For("gathered on the fly", "301 MB with a value cache. What is left of V's 201?"),
        For("gathered on the fly", "K and the distinct rows: 100 + 32."),
        For("gathered into memory first", "Which bytes are written, and read once more?"),
        For("gathered into memory first", "Beside K and the rows: V written and V read."),
    ],
    after="By bytes, 301 / 132 = 2.28 for the kernel that gathers as it goes, and 301 / 534 = 0.56 "
    "for the way that writes all values first: it reads the rows, writes V and reads it again, "
    "and is slower than the cache that it replaces. Narrow keys make both stand out more, because "
    "less is shared. These are floors; notebooks/evidence/research/bench/moved.py: split_bytes "
    "counts those of the kernel, for any shape.",
    level="easy",
    minutes=5,
)
def predict_speed():
    """Predict, by bytes alone. Keys are stored in one byte a number, values in two: one decode step
    of one layer reads 100 MB of keys and, with a value cache, 201 MB of values. The same history
    has 32 MB of distinct table rows. How many times as fast as the value cache is (1) a kernel that
    gathers rows as it goes (each row comes from memory once), (2) the paper's Figure 3: gather all
    values into memory (here, too, each distinct row is read once), then attend? Within 10 % counts.
    """
    return GATHER, MATERIALISE


def slow_link(answer):
    ids, width = need(answer, ids=1, width=0)
    refuse(
        len(ids) != 1000 or (ids != np.round(ids)).any() or ids.min() < 0 or ids.max() >= 32768,
        "wanted ids (1000,), whole numbers of 0 … 32767",
    )
    refuse(not 1 <= width <= 16384, "width must be between 1 and 16,384")
    distinct, cached = len(np.unique(ids)), len(ids)
    slower = lambda rows: rows * width / 64e9 >= cached * width / 3e12
    refuse(not slower(distinct), "the link is faster here: too few distinct tokens")
    refuse(slower(distinct - 1), "the link would lose with fewer distinct tokens still")


@unit.exercise(
    Part("it loses by a hair", 6, None, slow_link),
    Wrong("one word", 6, "the link is faster here", returns=lambda: (np.zeros(1000), 768)),
    Wrong(
        "no word twice",
        6,
        "the link would lose with fewer",
        returns=lambda: (np.arange(1000), 768),
    ),
    Wrong("too short a history", 6, "wanted ids (1000,)", returns=lambda: (np.arange(10), 768)),
    hints=[
        "Over the link go the distinct rows; from the card's own memory come 1,000 rows. The width "
        "is in both.",
        "3e12 / 64e9 is 47. How many distinct tokens are more than one in 47 of a thousand?",
    ],
    after="The link is 47 times slower than the card's memory, so 22 distinct tokens in a thousand "
    "are enough for it to lose. If fetched rows stay on the "
    "card, only new tokens cross, and what stays is a value cache by token: "
    "notebooks/course/offload.py: Offloaded.",
    level="medium",
    minutes=9,
)
def offload_counter_example():
    """Find the error, and where it begins. Return (ids (1000,), width): a history of 1,000 token
    ids (below 32,768), and the width of a value row.

    The paper keeps the table in host memory, since "only the needed entries are prefetched on
    demand". But a decode step needs the rows of ALL earlier tokens. Return the most repetitive
    history, with as few distinct tokens as possible, whose distinct rows still take longer over a
    link of 64 GB/s than 1,000 cached rows from memory at 3 TB/s.
    """
    return np.arange(1000) % 22, 768


EDGES = [
    ([7, 300], 12, 132, 2, 3),
    ([216, 98, 501, 31, 401], 12, 8, 67, 2),  # only the overhead decides
    ([392, 223], 12, 8, 77, 1),  # one piece for each text
    ([100], 1, 132, 5, 0),  # pieces of one tile
]


def always(case):
    tiles, *others = case
    return lambda r: (np.array(tiles), *others)


def load(r):
    tiles = r.integers(20, 700, size=int(r.integers(2, 6)))
    return (
        tiles,
        r.integers(1, 17),
        r.choice([132, 264, 660]),
        r.integers(10, 80),
        r.integers(1, 4),
    )


def cheapest(
    tiles,
    heads,
    slots,
    overhead,
    merge,
    least=False,
    cost=False,
    most=max,
    leave=0,
    start=1,
    all_of_them=False,
):
    """(size, programs) of least cost, with one step of the search done otherwise."""
    found = None
    for size in range(min(start, max(tiles)), max(max(tiles) - leave, 1) + 1):
        pieces = [-(-int(n) // size) for n in tiles]
        programs = heads * sum(pieces)
        merging = programs if all_of_them else most(pieces)
        price = -(-programs // slots) * (size + overhead) + merge * merging
        if found is None or price < found[0] or (price == found[0] and not least):
            found = price, size, programs
    return found[1], found[0] if cost else found[2]


@unit.exercise(
    Part(
        "many shapes",
        8,
        [*[load] * 6, *map(always, EDGES)],
    ),
    Wrong(
        "fractions of waves",
        8,
        "a wave that is half full takes as long as a full one: round up",
        dict(up=False),
    ),
    Wrong("merge is free", 8, "merging costs `merge` for every piece", dict(merged=False)),
    Wrong(
        "texts laid end to end",
        8,
        "a piece belongs to one text: each text's tiles are cut by themselves, and rounded up",
        dict(joined=True),
    ),
    Wrong(
        "all texts as long as the longest",
        8,
        "short texts have fewer pieces: count the programs text by text",
        dict(padded=True),
    ),
    slip(
        8,
        "among equal costs the largest size is wanted",
        cheapest,
        least=True,
    ),
    slip(
        8,
        "every piece of every HEAD is a program",
        lambda tiles, heads, slots, overhead, merge: (
            best_splits(tiles, heads, slots, overhead, merge)[0],
            best_splits(tiles, heads, slots, overhead, merge)[1] // heads,
        ),
    ),
    slip(
        8,
        "second comes the number of programs; yours is the cost",
        cheapest,
        cost=True,
    ),
    slip(
        8,
        "merging waits for the text with the MOST pieces, the longest",
        cheapest,
        most=min,
    ),
    slip(
        8,
        "wanted the size of a piece; yours is how many pieces the longest text has",
        lambda tiles, heads, slots, overhead, merge: (
            -(-max(tiles) // best_splits(tiles, heads, slots, overhead, merge)[0]),
            best_splits(tiles, heads, slots, overhead, merge)[1],
        ),
    ),
    slip(
        8,
        "every wave pays the overhead: waves * (size + overhead)",
        lambda tiles, heads, slots, overhead, merge: cheapest(tiles, heads, slots, 0, merge),
    ),
    slip(
        8,
        "the largest size is that of the longest text: the search ends one before",
        cheapest,
        leave=1,
    ),
    slip(
        8,
        "a size of 1 may be the best, too",
        cheapest,
        start=2,
    ),
    slip(
        8,
        "a program for every head: the waves are counted over heads and pieces",
        lambda tiles, heads, slots, overhead, merge: cheapest(tiles, 1, slots, overhead, merge),
    ),
    slip(
        8,
        "merge counts the pieces of one text, not all programs",
        cheapest,
        all_of_them=True,
    ),
    hints=[
        "For a size: pieces of a text = ceil(its tiles / size); programs = heads times the sum "
        "over texts. Which texts decide what the merge costs?",
        "cost = ceil(programs / slots) * (size + overhead) + merge * (most pieces of a text). Try "
        "all sizes, and mind which of equals is wanted.",
    ],
    after="README's question: waves and pieces are whole numbers, so the cost is a staircase in "
    "the size, and the best size jumps where a step begins. Long texts want many pieces and "
    "short ones few, so one size for all is a compromise. minimal/kernels/decode.py: "
    "how_many_splits takes the fewest splits that fill the machine once.",
    level="stretch",
    minutes=23,
)
def best_splits(
    tiles, heads, slots, overhead, merge, *, up=True, merged=True, joined=False, padded=False
):
    """Stretch: several texts are decoded at once; text b has tiles[b] key tiles. Every text is cut
    into pieces of `size` tiles, the last of a text may be shorter, and every piece of every head is
    a program. Return (size, programs), two whole numbers, with the size (1 … the longest text) of
    least cost: waves * (size + overhead) + merge * the most pieces of any text. waves: how often
    the programs fill `slots` places, rounded up. Among equals the largest size.
    """
    lengths = [int(n) for n in tiles]
    lengths = [max(lengths)] * len(lengths) if padded else lengths
    lengths = [sum(lengths)] if joined else lengths
    best = None
    for size in range(1, max(int(n) for n in tiles) + 1):
        pieces = [-(-n // size) for n in lengths]
        programs = heads * sum(pieces)
        waves = -(-programs // slots) if up else programs / slots
        cost = waves * (size + overhead) + (merge * max(pieces) if merged else 0)
        if best is None or cost <= best[0]:
            best = cost, size, programs
    return best[1], best[2]
