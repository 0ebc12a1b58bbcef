"""hw08: what does one program of a kernel read, keep and write?"""

import numpy as np

from homework.by_index import softmax
from homework.marking import Part, Unit, always, drawn, guesses, need, normals, refuse

unit = Unit(
    "hw08_gather_attention",
    "What does one program do?",
    """Each works tile by tile. The first five are Triton kernels (in the interpreter, which the
    lines below switch on: no GPU is needed), and where Triton is installed a kernel must have
    stored the result. Where there is none, write a loop over programs in PyTorch.
    Letters: T queries, S keys, D key width, E value width, H heads, V vocabulary, P programs.
    Widths are powers of two.""",
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


@unit.exercise(
    Part("whole blocks", 2, lambda r: (r.normal(size=16), 4)),
    Part("a ragged end", 4, lambda r: (r.normal(size=int(r.choice([9, 13, 14, 15, 19]))), 4)),
    kernel=0,
)
def copy_tiles(x, block):
    """The first kernel: x (N,) copied backwards, `block` numbers a program. x need not be
    contiguous.

    Returns (copy (N,), offsets (P,block), mask (P,block)): what was stored, and for each of the P
    programs the whole-number offsets at which its lanes store and whether (bool) each lane is on.
    """
    N = len(x)
    programs = -(-N // block)
    offsets = np.array([[p * block + lane for lane in range(block)] for p in range(programs)])
    mask = offsets < N
    copy = np.array([x[N - 1 - i] for i in range(N)])
    return copy, offsets, mask


unit.mistakes("""
takes: easy, 11 minutes
hint: Program p stores at offsets = p * block + arange(block), where mask = offsets < N, and loads
    | at N - 1 - offsets.
hint: There are ceil(N / block) programs: (N + block - 1) // block.
after: ceil(N / block) programs run, and the last has lanes without work: the mask switches them
    | off, and their offsets stay where the arithmetic puts them. Clamped offsets would let several
    | lanes write to one place. Every kernel of the package does the same: in
    | minimal/kernels/decode.py: combine the mask is d < D.
6 | you turned every block by itself: the last number of all comes first
    np.array([x[N - 1 - i] for i in range(N)]) => np.concatenate([x[i : i + block][::-1] for i in
  | range(0, N, block)])
6 | x has no place N: the lane that stores at i loads at N - 1 - i
    N - 1 - i => (N - i) % N
4 | you clamped the offsets at the end; a lane that has nothing to do is switched off by the mask,
  | its offset stays where arithmetic puts it
    return copy, offsets => return copy, np.minimum(offsets, N - 1)
4 | you launched N // block programs; the last, ragged block needs one too
    -(-N // block) => N // block
4 | lanes at or behind N must be off, or they read and write what is not theirs
    offsets < N => offsets >= 0
6 | x came out forwards: the lane that stores at i loads at N - 1 - i
    N - 1 - i => i
6 | offsets say where a lane STORES: program * block + lane; only the load runs backwards
    return copy, offsets => return copy, N - 1 - offsets
6 | every program starts at program * block; yours all start at 0
    return copy, offsets => return copy, offsets % block
6 | your mask is True where a lane is OFF
    offsets, mask => offsets, ~mask
2 | ceil(N / block) programs: where the blocks fit exactly, you launched one too many
    -(-N // block) => N // block + 1
4 | idle lanes keep their offsets: arithmetic puts them behind N, the mask switches them off
    return copy, offsets => return copy, offsets * mask
6 | a program has neighbouring lanes: program * block + lane
    p * block + lane => p + lane * programs
""")


@drawn
def ragged(r, empty, large=False):
    lengths = r.permutation(np.array([0 if empty else 3, 1, 4, 6]))
    x = r.normal(size=(4, 6))
    return (x * 40 - 150 if large else x * 3), lengths, 8


@unit.exercise(
    Part("rows of any length", 3, ragged(False)),
    Part("an empty row, large numbers", 5, ragged(True, large=True)),
    kernel=0,
)
def softmax_rows(x, lengths, block):
    """Softmax of the first lengths[r] numbers of each row of x (R,C), one program a row, `block` >=
    C lanes. lengths (R,) are whole numbers from 0 to C. x need not be contiguous.

    Returns (out (R,C), lanes (R,block)): lanes are the programs' exp(tile - maximum), idle lanes
    included (these must come out as 0). Behind a row's end out is 0; a row of length 0 is all 0.
    """
    out, lanes = np.zeros(x.shape), np.zeros((len(x), block))
    for r, n in enumerate(lengths):
        tile = np.full(block, -np.inf)
        tile[:n] = x[r, :n]
        top = tile.max() if n else 0
        lanes[r] = np.exp(tile - top)
        total = lanes[r].sum() if n else 1
        out[r] = lanes[r, : x.shape[1]] / total
    return out, lanes


unit.mistakes(r"""
takes: medium, 18 minutes
hint: tl.load(pointer, mask=lane < length, other=-float('inf')): exp(-inf) is 0, so idle lanes fall
    | out of the sum by themselves. A row starts at row * x.stride(0).
hint: An empty row: take 0 for a maximum of -inf, and 1 for a sum of 0. Then every lane is exp(-inf)
    | / 1. Store C numbers, not length: behind the end stands 0.
after: An idle lane should have loaded -inf: exp(-inf) is 0, so it falls out of the maximum and the
    | sum alike, while a loaded 0 would count. A row without lanes has neither, and a neutral number
    | in the place of -inf and of 0 keeps NaN away. minimal/kernels/decode.py: combine treats splits
    | that saw no key in this way.
8 | your idle lanes loaded 0: exp of that counts in the sum. Load them as -inf
    -np.inf => 0.0 if n else -np.inf
    -np.inf => 0.0
8 | a row ends at its length: what stands behind it in memory is not part of it
    enumerate(lengths) => enumerate([x.shape[1]] * len(x))
5 | a row of length 0 has no lane on, and -inf - -inf is NaN. Its out and its lanes are 0
    tile.max() if n else 0 => tile.max()
8 | subtract the row's maximum before exp
    tile.max() if n else 0 => 0
8 | out is divided by the sum of the lanes
    / total =>
8 | lanes are exp(tile - maximum) before the division
    / total => / total\n    lanes[r] /= total
8 | the maximum is that of the row's own numbers; yours is that of all x
    np.exp(tile - top) => np.exp(tile - x.max(), dtype="f4")
8 | load idle lanes as -inf: any finite number is a score like others
    -np.inf => -1.0
5 | a row of length 0 is all 0 in out, and not even
    / total => / total if n else 1 / x.shape[1]
8 | out is divided by the SUM of the lanes; you divided by their mean
    / total => / total * x.shape[1]
8 | nothing is added to the sum: a row's sum is at least 1, and an empty row has none
    / total => / (lanes[r].sum() + 1e-2)
""")


def thousand(q, k):
    """q, k (N,D), changed: the last query's score is 1000 with the first key (exp overflows), and 0
    with the others."""
    q[-1] = 1000 * np.sqrt(len(q[-1])) * k[0] / (k[0] @ k[0])
    k[1:] -= np.outer(k[1:] @ k[0], k[0]) / (k[0] @ k[0])


def flash_by_row(q, k, v, prefix, block_m, block_n):
    """(out, lse, tiles read by each program), query by query, each over its program's tiles."""
    (T, D), visited = q.shape, []
    out, lse = np.zeros((T, v.shape[1])), np.zeros(T)
    for t in range(T):
        end = max(min(t - t % block_m + block_m, T), prefix)
        if t % block_m == 0:
            visited.append(-(-end // block_n))
        m, total, acc = -np.inf, 0.0, 0.0
        for start in range(0, end, block_n):
            keys = np.arange(start, min(start + block_n, T))
            seen = (keys <= t) | (keys < prefix)
            scores = np.where(seen, k[keys] @ q[t] / np.sqrt(D), -np.inf)
            new = max(m, scores.max())
            shrink, p = np.exp(m - new), np.exp(scores - new)
            total = total * shrink + p.sum()
            acc = acc * shrink + p @ v[keys]
            m = new
        out[t] = acc / total
        lse[t] = m + np.log(total)
    return out, lse, np.array(visited)


@drawn
def sequence(r, T, large=False):
    n = int(r.choice(T))
    q, k = (2 * x for x in normals(r, (n, 16), (n, 16)))
    if large:
        thousand(q, k)
    return q, k, r.normal(size=(n, 16)), 32, 16  # tiles that tl.dot takes


@drawn
def prefixed(r, T, large=False):
    """The same with a prefix of 37: it reaches behind the first tile of queries."""
    q, k, v, *blocks = sequence(T, large)(r)
    return q, k, v, 37, *blocks


@unit.exercise(
    Part("whole tiles", 6, prefixed([64])),
    Part(
        "ragged tiles",
        10,
        [prefixed([73, 69], True), prefixed([41, 45, 47], True), prefixed([73, 69], True)],
    ),
    kernel=0,
    single=True,
)
def flash(q, k, v, prefix, block_m, block_n):
    """Flash attention with a prefix, forward, one head: q, k (T,D), v (T,E). Query t sees the keys
    up to t, and all of the first `prefix` keys (at most T), even those that come later. A program
    has block_m queries and reads block_n keys at a time.

    Returns (out (T,E), lse (T,), visited (P,)): lse is the natural log of the sum of exp(scores),
    scores over sqrt(D); visited is the number of key tiles (whole numbers) that each program reads:
    none that none of its queries may see, and none behind the end of the sequence. All is float32,
    and D, E and both blocks are at least 16, as tl.dot wants them.
    """
    return flash_by_row(q, k, v, prefix, block_m, block_n)


unit.mistakes("""
takes: hard, 37 minutes
hint: Program p: queries p * block_m …; keys in steps of block_n up to the last query's own
    | position, or to the end of the prefix, whichever is later. State: m, l, acc (hw01's online
    | softmax).
hint: Mask of a tile: ((key <= query) | (key < prefix)) & (key < T) & (query < T). The number of
    | tiles: ceil(max(min(T, (p + 1) * block_m), prefix) / block_n).
hint: At the end out = acc / total, lse = m + log(total).
after: A program keeps three things a query, maximum, sum and weighted sum. Its loop ends at the
    | diagonal or at the end of the prefix, so tiles that nobody sees are never read; a mask that
    | came without a bound for the loop would give the same numbers and read them all.
    | minimal/kernels/forward.py: forward has no prefix, but a window, and walks in three stretches
    | so that only tiles at an edge are masked.
in: flash_by_row
16 | everybody sees the prefix, also those who stand in it: a key is seen if it is not later than
   | the query OR belongs to the prefix
     v, prefix => v, 0
16 | your first programs stop at their diagonal, before the end of the prefix that they see
     -end // => -min(t + block_m, T) //
16 | your programs read tiles wholly behind their last query: the loop ends at the diagonal's tile
     -end // => -T //
16 | within the tile of the diagonal, keys behind the query must be masked
     keys <= t => start <= t
10 | exp of a score in the hundreds overflows: subtract the running maximum first
     max(m, scores.max()) => 0.0
16 | lse is the maximum PLUS the log of the sum of exp(score - maximum)
     m + np.log(total) => m
16 | your scores are not divided by sqrt(D)
     / np.sqrt(D) =>
16 | a query sees itself: the own key is at or before the query
     keys <= t => keys < t
16 | the prefix is the keys 0 to prefix - 1; yours shows key number `prefix` as well
     keys < prefix => keys <= prefix
16 | when the maximum grows, acc and the sum both shrink, by exp(m - new)
     acc * shrink => acc
     total * shrink => total
16 | lse is the running maximum PLUS the log of the sum; the maximum is missing
     m + np.log(total) => np.log(total)
16 | lse takes the natural log of the sum, not its log2
     np.log(total) => np.log2(total)
16 | maximum and log of the sum are added, not multiplied
     m + np.log(total) => m * np.log(total)
16 | lse is the maximum plus the LOG of the sum; yours is the sum itself
     m + np.log(total) => total
16 | the loop ends at the program's last query, or at the prefix's end, whichever is later
     max(min(t - t % block_m + block_m, T), prefix) => min(t - t % block_m + block_m, T)
16 | your loop ends with the tile of the program's FIRST query; go on to its last one
     max(min(t - t % block_m + block_m, T), prefix) => t - t % block_m + 1
16 | visited counts tiles, not keys
     // block_n) => // block_n) * block_n
16 | divide acc by the sum at the end
     acc / total => acc
""")


@drawn
def named(r, T, large=False):
    q, k, v, *blocks = sequence(T, large)(r)
    return q, k, v, r.integers(0, 9, len(v)), r.normal(size=(16, 16)), -1.75, *blocks


@unit.exercise(
    Part("whole tiles", 6, named([32, 64])),
    Part("ragged tiles", 8, named([41, 43, 47], True)),
    kernel=0,
    single=True,
)
def gather_flash(q, k, v, ids, table, gain, block_m, block_n):
    """Causal flash attention (no prefix) whose values have a part of their own and a part that is
    named by token ids: the value at position p is v[p] + gain * table[ids[p]].

    q, k (T,D), v (T,E), ids (T,), table (V,E), gain a number; sizes and dtype as in flash. Returns
    (out (T,E), lse (T,)).
    """
    values = v + gain * table[ids]
    mixed, lse, _ = flash_by_row(q, k, values, 0, block_m, block_n)
    return mixed, lse


unit.mistakes("""
takes: medium, 14 minutes
hint: The value tile is v[keys of the tile] + gain * table[ids[keys of the tile]]: three loads, the
    | third depending on the second.
hint: An idle lane has no id: load 0 under the mask, and let its weight of 0 do the rest. Gain
    | cannot wait until after the loop here, unless you keep two sums.
after: As long as all values come from the table, the gain can wait for the finished sum. Beside an
    | own value it cannot: it goes on the row, once a tile, or the program keeps a second sum, twice
    | the registers. In the package: minimal/kernels/forward.py: absorb loads the rows,
    | minimal/kernels/forward.py: forward applies the gain at the end, and the plans with a table
    | beside V add it first and keep the sum.
in: flash_by_row
14 | your table is read at the position; the id that stands there names the row
     [ids] => [np.arange(len(ids)) % len(table)]
14 | gain belongs to the table's rows alone: on the finished sum it would scale own values, too
     gain * table => table
     and: return mixed => return gain * mixed
14 | the gain is missing
     gain * table => table
14 | your values are the table's rows alone: here they are added to the token's own
     v + gain => gain
 8 | exp of a score in the hundreds overflows: subtract the running maximum first
     max(m, scores.max()) => 0.0
14 | gain belongs to the table's rows; you scaled the own values instead
     v + gain * table[ids] => gain * v + table[ids]
14 | the own value is v[position]; you looked it up by token id
     v + gain => v[ids % len(v)] + gain
14 | the rows are ADDED to the own values; you multiplied
     v + gain * table[ids] => v * (1 + gain * table[ids])
14 | the own values come whole, without 1 - gain
     v + gain => (1 - gain) * v + gain
14 | the table's rows are missing
     v + gain * table[ids] => v
14 | your scores are not divided by sqrt(D)
     / np.sqrt(D) =>
14 | keys after the query are not masked
     keys <= t => keys >= 0
14 | when the maximum grows, acc and the sum both shrink
     acc * shrink => acc
     total * shrink => total
14 | lse is the running maximum PLUS the log of the sum
     m + np.log(total) => np.log(total)
14 | divide acc by the sum at the end
     acc / total => acc
14 | you added the QUERY's own row to the sum; every key brings its row, weighed as its value
     return mixed => return mixed + gain * table[ids]
""")


@drawn
def cache(r, S, splits, large=False):
    n = int(r.choice(S))
    q, k, table = normals(r, (6, 8), (n, 3, 8), (16, 3, 4))
    q, k = 2 * q, 2 * k
    if large:
        thousand(q, k[:, 2])
    return q, k, r.integers(0, 6, n), table, 1.5, splits


@unit.exercise(
    Part("even splits", 6, cache([8, 12, 16], 4)),
    Part("uneven splits", 8, cache([10, 13, 14], 4, True)),
    kernel=0,
)
def split_decode(q, k, ids, table, gain, splits):
    """One decode step over `splits` stretches of keys, with grouped heads: q (H,D), k (S,G,D), ids
    (S,), table (V,G,E), gain a number. Query head h reads head h // (H // G) of keys and table.

    Returns (parts (splits,H,E), lse (splits,H), out (H,E)). A split has ceil(S / splits)
    neighbouring keys (the last may have fewer, but at least one); parts are normalised within their
    split and without the gain; scores over sqrt(D).
    """
    (S, G, D), (H, _), E = k.shape, q.shape, table.shape[2]
    size = -(-S // splits)
    parts, lse = np.zeros((splits, H, E)), np.zeros((splits, H))
    for n, h in np.ndindex(splits, H):
        g = h // (H // G)
        mine = np.arange(n * size, min(n * size + size, S))
        scores = np.array([q[h] @ k[s, g] for s in mine]) / np.sqrt(D)
        top = scores.max()
        p = np.exp(scores - top)
        parts[n, h] = p @ table[ids[mine], g] / p.sum()
        lse[n, h] = top + np.log(p.sum())
    share = softmax(lse, 0)
    out = gain * (share[..., None] * parts).sum(0)
    return parts, lse, out


unit.mistakes("""
takes: medium, 18 minutes
hint: Split n reads keys n * size … with size = ceil(S / splits), and stores for every query head
    | its own softmax-weighted sum and its own lse. g = h // (H // G).
hint: Merge: w = softmax of the lse over the splits; out = gain * sum_n w_n part_n.
after: With one query a head would be one program, and most of the machine would wait; splits give
    | it work. Query heads that share a key head can share a program, so that keys and rows are read
    | once for all of them: minimal/kernels/decode.py: split packs them into the rows of a tile.
    | Splits count by exp of their lse; minimal/kernels/decode.py: combine applies the gain last.
14 | neighbours share: query head h reads key head h // (H // G), not h % G
     h // (H // G) => h % G
14 | you averaged the splits; each counts by exp(lse)
     softmax(lse, 0) => np.full(lse.shape, 1 / splits)
14 | the parts are stored without the gain; it is applied once, after the merge
     return parts => return gain * parts
 8 | exp of a score in the hundreds overflows: subtract the split's maximum first
     scores.max() => 0.0
 8 | a split has ceil(S / splits) keys; rounded down, the last keys belong to nobody
     -(-S // splits) => S // splits
14 | your scores are not divided by sqrt(D)
     / np.sqrt(D) =>
14 | you summed the splits; each counts by exp(lse), and all of them sum to 1
     softmax(lse, 0) => np.ones_like(lse)
14 | exp(lse) must be divided by its sum over the splits
     softmax(lse, 0) => np.exp(lse)
14 | weigh the splits by exp(lse); you took lse itself
     softmax(lse, 0) => lse / lse.sum(0)
14 | the splits of one head share the weight; your softmax of lse runs over the heads
     softmax(lse, 0) => softmax(lse, 1)
14 | the parts come without the gain; in yours it stands there, and in out again
     return parts, lse, out => return gain * parts, lse, gain * out
14 | a part is normalised within its split: divide by its own sum of exp
     p @ table[ids[mine], g] / p.sum() => np.exp(scores) @ table[ids[mine], g]
14 | lse is the maximum PLUS the log of the sum; yours is the maximum alone
     top + np.log(p.sum()) => top
14 | lse is the LOG of the sum of exp
     top + np.log(p.sum()) => np.exp(top + np.log(p.sum()))
14 | lse is a natural logarithm; yours has base 2
     top + np.log(p.sum()) => (top + np.log(p.sum())) / np.log(2)
14 | your table is read by position in the split; the id that stands there names the row
     ids[mine] => mine - n * size
""")


@drawn
def spoken(r, distinct):
    ids = r.permutation(30)[:8] if distinct else np.array([29, 3, *r.choice([3, 7, 29], 6)])
    return r.normal(size=(2, 8)) * 2, ids, r.normal(size=(32, 2, 4)), 0.5


@unit.exercise(
    Part("all tokens distinct", 4, spoken(True)), Part("tokens that repeat", 8, spoken(False))
)
def histogram_decode(scores, ids, table, gain):
    """Decode by masses: scores (H,S) of one query (already scaled), ids (S,), table (V,H,E), gain a
    number.

    Returns (tokens (U,) the distinct ids, ascending; masses (H,U) the softmax weight on each; out
    (H,E)). Reads U rows of the table.
    """
    weights, tokens = softmax(scores), np.unique(ids)
    masses = np.stack([weights[:, ids == t].sum(1) for t in tokens], 1)
    out = gain * np.einsum("hu,uhe->he", masses, table[tokens])
    return tokens, masses, out


unit.mistakes(r"""
takes: medium, 10 minutes
hint: tokens, local = torch.unique(ids, return_inverse=True): local is each position's rank among
    | the distinct ones, so the bins are few.
hint: masses.scatter_add_ or index_add_ over local; then one product of (H,U) with the U rows of the
    | table.
after: Numbered from 0, the distinct tokens need U bins and U rows of the table;
    | minimal/kernels/histogram.py: shrink gives the package's histogram the same few bins. README's
    | question about the race: softmax and bins grow with the S keys, the product with the U rows,
    | and which is largest your own clock must say. A trick cannot win more than the share of the
    | part that it touches.
12 | your distinct tokens come in order of appearance; wanted ascending (torch.unique)
     np.unique(ids) => np.array(list(dict.fromkeys(ids)))
 8 | a token that repeats collects all of its weights; yours kept the last
     .sum(1) => [:, -1]
12 | divide by the sum over all keys: the masses of a head sum to 1
     softmax(scores) => np.exp(scores - scores.max(1, keepdims=True))
12 | those are sums of scores: take the softmax of each head first
     softmax(scores) => scores
12 | the softmax runs over the keys of a head; yours runs over the heads
     softmax(scores) => softmax(scores, 0)
 8 | softmax first, then collect; you collected the scores and took the softmax of the sums
     softmax(scores) => scores
     and: out = => masses = softmax(masses)\nout =
12 | row u of the product is the row of token u: table[tokens], not the first U rows
     table[tokens] => table[: len(tokens)]
12 | a mass is a sum of softmax weights, not how often a token occurs
     tokens, masses => tokens, np.array([[np.mean(ids == t) for t in tokens]] * len(scores))
12 | wanted the distinct tokens, each once, with all of their weights
     return tokens, masses => return ids, weights
 8 | a mass is the SUM of a token's weights; you took their mean
     .sum(1) => .mean(1)
12 | the scores come scaled already
     softmax(scores) => softmax(scores) * scores.shape[1] ** -0.5
12 | out weighs each row by its mass; yours is a plain mean
     np.einsum("hu,uhe->he", masses, table[tokens]) => table[tokens].mean(0)
 8 | each place of a token adds its weight; yours kept the largest score of a token
     softmax(scores) => scores
     and: .sum(1) => .max(1)
     and: out = => masses = softmax(masses)\nout =
12 | wanted the distinct ids that occur, not every row of the table
     np.unique(ids) => np.arange(len(table))
""")


@drawn
def attended(r, gain):
    P, dout = np.exp(r.normal(size=(5, 8))), r.normal(size=(5, 4))
    return P / P.sum(1, keepdims=True), dout, r.choice([1, 4, 6], 8), r.normal(size=(9, 4)), gain


@unit.exercise(Part("a gain", 5, attended(1.6)), Part("a gain of zero", 5, attended(0.0)))
def table_gradient(P, dout, ids, table, gain):
    """Backward of out = gain * P @ table[ids]: P (T,S), dout (T,E), ids (S,), table (V,E), gain a
    number.

    Returns (dtable (V,E), dgain). Deterministic, rows of absent tokens exactly 0, and finite for
    every gain.
    """
    dtable, dgain = np.zeros(table.shape), 0.0
    for s, i in enumerate(ids):
        arrived = sum(P[t, s] * dout[t] for t in range(len(P)))
        dtable[i] += gain * arrived
        dgain += arrived @ table[i]
    return dtable, dgain


unit.mistakes("""
takes: medium, 9 minutes
hint: dv = gain * Pᵀ dout, as always; then rows with the same id are added: index_add.
hint: u = P @ table[ids]; d gain = (dout * u).sum(): no division anywhere.
after: Rows of one token are summed in the order of the text: minimal/kernels/backward.py:
    | sum_by_token does that without atomics, which would add in an order that changes from run to
    | run. The gain's gradient comes from the unscaled output, sum(dout · u), so nothing is divided
    | and a gain of zero is no exception.
 5 | a token that repeats collects the gradients of all its places
     += gain => = gain
10 | on its way into the table the gradient passes the gain
     gain * arrived => arrived
 5 | out / gain is NaN at gain 0: keep the unscaled output u = P V, then d gain = sum(dout * u)
     return dtable, dgain => return dtable, dgain * gain / np.float64(gain)
10 | out is gain * u, so d gain is sum(dout * u), without the gain
     return dtable, dgain => return dtable, gain * dgain
10 | d gain is a sum over all entries of dout * u, not their mean
     return dtable, dgain => return dtable, dgain / dout.size
10 | d gain starts from dout: sum(dout * (P V))
     return dtable, dgain => return dtable, (P @ table[ids]).sum()
10 | gain is one number: sum dout * u over all entries
     return dtable, dgain => return dtable, dout * (P @ table[ids])
10 | gain is one number: sum over queries and entries both
     return dtable, dgain => return dtable, (dout * (P @ table[ids])).sum(1)
10 | those rows belong to places; add them up in rows of the table, by id
     return dtable => return gain * P.T @ dout
 5 | the places of a token are summed, not averaged
     return dtable => return dtable / np.maximum(np.bincount(ids, minlength=len(table)), 1)[:, None]
 5 | the row itself is no factor of its gradient
     return dtable => return dtable * table
10 | a gradient starts from zeros; yours starts from the table
     return dtable => return table + dtable
""")


near = guesses("fused", "materialised")

GATHER, MATERIALISE = 301 / (100 + 32), 301 / (100 + 32 + 201 + 201)


@unit.exercise(
    Part("gathered on the fly", 3, None, near(0, GATHER, GATHER / 10)),
    Part("gathered into memory first", 3, None, near(1, MATERIALISE, MATERIALISE / 10)),
)
def predict_speed():
    """Predict, by bytes alone. Keys are stored in one byte a number, values in two: one decode step
    of one layer reads 100 MB of keys and, with a value cache, 201 MB of values. The same history
    has 32 MB of distinct table rows. How many times as fast as the value cache is (1) a kernel that
    gathers rows as it goes (each row comes from memory once), (2) the paper's Figure 3: gather all
    values into memory (here, too, each distinct row is read once), then attend? Within 10 % counts.
    """
    return GATHER, MATERIALISE


unit.mistakes("""
takes: easy, 5 minutes
off for gathered on the fly: more than 10 % off: K is read either way, only V's bytes change
off for gathered into memory first: more than 10 % off: the rows are read, V is written, and V is
    | read again, beside K
hint for gathered on the fly: 301 MB with a value cache. What is left of V's 201?
hint for gathered on the fly: K and the distinct rows: 100 + 32.
hint for gathered into memory first: Which bytes are written, and read once more?
hint for gathered into memory first: Beside K and the rows: V written and V read.
after: By bytes, 301 / 132 = 2.28 for the kernel that gathers as it goes, and 301 / 534 = 0.56 for
    | the way that writes all values first: it reads the rows, writes V and reads it again, and is
    | slower than the cache that it replaces. Narrow keys make both stand out more, because less is
    | shared. These are floors; notebooks/evidence/bench/graphs.py: split_bytes counts those
    | of the kernel, for any shape.
6 | more than 10 % off
    => (1.73, 0.63)
3 | more than 10 % off
    => (2.2, 1.0)
""")


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


@unit.exercise(Part("it loses by a hair", 6, None, slow_link))
def offload_counter_example():
    """Find the error, and where it begins. Return (ids (1000,), width): a history of 1,000 token
    ids (below 32,768), and the width of a value row.

    The paper keeps the table in host memory, since "only the needed entries are prefetched on
    demand". But a decode step needs the rows of ALL earlier tokens. Return the most repetitive
    history, with as few distinct tokens as possible, whose distinct rows still take longer over a
    link of 64 GB/s than 1,000 cached rows from memory at 3 TB/s.
    """
    return np.arange(1000) % 22, 768


unit.mistakes("""
takes: medium, 9 minutes
hint: Over the link go the distinct rows; from the card's memory come 1,000. Both have the width.
hint: 3e12 / 64e9 is 47. How many distinct tokens are more than one in 47 of a thousand?
after: The link is 47 times slower than the card's memory, so 22 distinct tokens in a thousand are
    | enough for it to lose. If fetched rows stay on the card, only new tokens cross, and what stays
    | is a value cache by token: notebooks/course/offload.py: Offloaded.
6 | the link is faster here
    => (np.zeros(1000), 768)
6 | the link would lose with fewer
    => (np.arange(1000), 768)
6 | wanted ids (1000,)
    => (np.arange(10), 768)
""")


EDGES = [
    always(np.array([7, 300]), 12, 132, 2, 3),
    always(np.array([216, 98, 501, 31, 401]), 12, 8, 67, 2),  # only the overhead decides
    always(np.array([392, 223]), 12, 8, 77, 1),  # one piece for each text
    always(np.array([100]), 1, 132, 5, 0),  # pieces of one tile
]


def load(r):
    tiles, heads = r.integers(20, 700, size=int(r.integers(2, 6))), r.integers(1, 17)
    return tiles, heads, r.choice([132, 264, 660]), r.integers(10, 80), r.integers(1, 4)


@unit.exercise(Part("many shapes", 8, [*[load] * 6, *EDGES]))
def best_splits(tiles, heads, slots, overhead, merge):
    """Stretch: several texts are decoded at once; text b has tiles[b] key tiles. Every text is cut
    into pieces of `size` tiles, the last of a text may be shorter, and every piece of every head is
    a program. Return (size, programs), two whole numbers, with the size (1 … the longest text) of
    least cost: waves * (size + overhead) + merge * the most pieces of any text. waves: how often
    the programs fill `slots` places, rounded up. Among equals the largest size.
    """
    best = np.inf, 0, 0
    for size in range(1, max(tiles) + 1):
        pieces = [-(-n // size) for n in tiles]
        programs = heads * sum(pieces)
        waves = -(-programs // slots)
        cost = waves * (size + overhead) + merge * max(pieces)
        if cost <= best[0]:
            best = cost, size, programs
    return best[1], best[2]


unit.mistakes("""
takes: stretch, 23 minutes
hint: For a size: pieces of a text = ceil(its tiles / size); programs = heads times the sum over
    | texts. Which texts decide what the merge costs?
hint: cost = ceil(programs / slots) * (size + overhead) + merge * (most pieces of a text). Try all
    | sizes, and mind which of equals is wanted.
after: README's question: waves and pieces are whole numbers, so the cost is a staircase in the
    | size, and the best size jumps where a step begins. Long texts want many pieces and short ones
    | few, so one size for all is a compromise. minimal/kernels/decode.py: how_many_splits takes the
    | fewest splits that fill the machine once.
8 | a wave that is half full takes as long as a full one: round up
    -(-programs // slots) => programs / slots
8 | merging costs `merge` for every piece
    + merge * max(pieces) =>
8 | a piece belongs to one text: each text's tiles are cut by themselves, and rounded up
    in tiles] => in [sum(tiles)]]
8 | among equal costs the largest size is wanted
    cost <= => cost <
8 | every piece of every HEAD is a program
    best[1], best[2] => best[1], best[2] // heads
8 | second comes the number of programs; yours is the cost
    best[1], best[2] => best[1], best[0]
8 | merging waits for the text with the MOST pieces, the longest
    max(pieces) => min(pieces)
8 | wanted the size of a piece; yours is how many pieces the longest text has
    return best[1] => return -(-max(tiles) // best[1])
8 | every wave pays the overhead: waves * (size + overhead)
    (size + overhead) => size
8 | the largest size is that of the longest text: the search ends one before
    max(tiles) + 1 => max(max(tiles), 2)
8 | a size of 1 may be the best, too
    range(1 => range(min(2, max(tiles))
8 | a program for every head: the waves are counted over heads and pieces
    heads * sum(pieces) => sum(pieces)
8 | merge counts the pieces of one text, not all programs
    max(pieces) => programs
""")
