"""hw08 · What does one program do?

Fill in the functions, in any order, and run `pytest homework/hw08_gather_attention` as
often as you like.
Each works tile by tile. The first five are Triton kernels (in the interpreter, which the lines
below switch on: no GPU is needed), and where Triton is installed a kernel must have stored
the result. Where there is none, write a loop over programs in PyTorch.
Letters: T queries, S keys, D key width, E value width, H heads, V vocabulary, P programs.
Widths are powers of two.
Functions answer in the dtype of their inputs, and leave their inputs as they
were.
"""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")  # before triton is imported

import torch  # noqa: F401

try:
    import triton
    import triton.language as tl
except ImportError:  # then write loops over programs
    triton = tl = None


def copy_tiles(x, block):
    """The first kernel: x (N,) copied backwards, `block` numbers a program. x need not be
    contiguous.

    Returns (copy (N,), offsets (P,block), mask (P,block)): what was stored, and for each of the P
    programs the whole-number offsets at which its lanes store and whether (bool) each lane is on.
    """
    raise NotImplementedError


def softmax_rows(x, lengths, block):
    """Softmax of the first lengths[r] numbers of each row of x (R,C), one program a row, `block` >=
    C lanes. lengths (R,) are whole numbers from 0 to C. x need not be contiguous.

    Returns (out (R,C), lanes (R,block)): lanes are the programs' exp(tile - maximum), idle lanes
    included (these must come out as 0). Behind a row's end out is 0; a row of length 0 is all 0.
    """
    raise NotImplementedError


def flash(q, k, v, prefix, block_m, block_n):
    """Flash attention with a prefix, forward, one head: q, k (T,D), v (T,E). Query t sees the keys
    up to t, and all of the first `prefix` keys (at most T), even those that come later. A program
    has block_m queries and reads block_n keys at a time.

    Returns (out (T,E), lse (T,), visited (P,)): lse is the natural log of the sum of exp(scores),
    scores over sqrt(D); visited is the number of key tiles (whole numbers) that each program reads:
    none that none of its queries may see, and none behind the end of the sequence. All is float32,
    and D, E and both blocks are at least 16, as tl.dot wants them.
    """
    raise NotImplementedError


def gather_flash(q, k, v, ids, table, gain, block_m, block_n):
    """Causal flash attention (no prefix) whose values have a part of their own and a part that is
    named by token ids: the value at position p is v[p] + gain * table[ids[p]].

    q, k (T,D), v (T,E), ids (T,), table (V,E), gain a number; sizes and dtype as in flash. Returns
    (out (T,E), lse (T,)).
    """
    raise NotImplementedError


def split_decode(q, k, ids, table, gain, splits):
    """One decode step over `splits` stretches of keys, with grouped heads: q (H,D), k (S,G,D), ids
    (S,), table (V,G,E), gain a number. Query head h reads head h // (H // G) of keys and table.

    Returns (parts (splits,H,E), lse (splits,H), out (H,E)). A split has ceil(S / splits)
    neighbouring keys (the last may have fewer, but at least one); parts are normalised within their
    split and without the gain; scores over sqrt(D).
    """
    raise NotImplementedError


def histogram_decode(scores, ids, table, gain):
    """Decode by masses: scores (H,S) of one query (already scaled), ids (S,), table (V,H,E), gain a
    number.

    Returns (tokens (U,) the distinct ids, ascending; masses (H,U) the softmax weight on each; out
    (H,E)). Reads U rows of the table.
    """
    raise NotImplementedError


def table_gradient(P, dout, ids, table, gain):
    """Backward of out = gain * P @ table[ids]: P (T,S), dout (T,E), ids (S,), table (V,E), gain a
    number.

    Returns (dtable (V,E), dgain). Deterministic, rows of absent tokens exactly 0, and finite for
    every gain.
    """
    raise NotImplementedError


def predict_speed():
    """Predict, by bytes alone. Keys are stored in one byte a number, values in two: one decode step
    of one layer reads 100 MB of keys and, with a value cache, 201 MB of values. The same history
    has 32 MB of distinct table rows. How many times as fast as the value cache is (1) a kernel that
    gathers rows as it goes (each row comes from memory once), (2) the paper's Figure 3: gather all
    values into memory (here, too, each distinct row is read once), then attend? Within 10 % counts.
    """
    raise NotImplementedError


def offload_counter_example():
    """Find the error, and where it begins. Return (ids (1000,), width): a history of 1,000 token
    ids (below 32,768), and the width of a value row.

    The paper keeps the table in host memory, since "only the needed entries are prefetched on
    demand". But a decode step needs the rows of ALL earlier tokens. Return the most repetitive
    history, with as few distinct tokens as possible, whose distinct rows still take longer over a
    link of 64 GB/s than 1,000 cached rows from memory at 3 TB/s.
    """
    raise NotImplementedError


def best_splits(tiles, heads, slots, overhead, merge):
    """Stretch: several texts are decoded at once; text b has tiles[b] key tiles. Every text is cut
    into pieces of `size` tiles, the last of a text may be shorter, and every piece of every head is
    a program. Return (size, programs), two whole numbers, with the size (1 … the longest text) of
    least cost: waves * (size + overhead) + merge * the most pieces of any text. waves: how often
    the programs fill `slots` places, rounded up. Among equals the largest size.
    """
    raise NotImplementedError
