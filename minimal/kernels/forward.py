"""What does attention do, tile by tile, when its values are rows of a table named by token ids?

Flash attention with one change: where a tile of V would be read, a tile of ids is read first and
names the rows. This file has what all kernels share (who may see whom, the online softmax, how they
are launched) and the forward kernel; reference.py has what it must equal and the tolerance.

B batch, T queries, S keys, H query heads, G key/value heads, D head width, V vocabulary; M x N is a
tile of T x S. A kernel's arguments stand in rows by kind: tensors, strides, sizes, constants of the
compilation. Scores are kept in base 2, because exp2 is one instruction: log2(e) is folded into the
scale.
"""

import os

import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # macOS, Windows: the byte counts still work, the kernels are text to read
    from types import SimpleNamespace

    triton, tl = SimpleNamespace(jit=lambda function: function), SimpleNamespace(constexpr=float)

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"

LOG2E = tl.constexpr(1.4426950408889634)

# (bytes an element, padded head width) -> M, N, warps, stages; a third key is for GPUs of that
# generation only (8: less shared memory). Chosen from what the compiler reports, see compiled.json:
# no spills. Odd stages only: a load through ids is one level deeper than a plain one, so of 3
# stages it gets two buffers and of 5 three; 4 buys nothing.
TILES = {
    (2, 32): (128, 64, 8, 5),
    (2, 64): (128, 64, 8, 5),
    (2, 128): (128, 64, 8, 5),
    (2, 128, 8): (128, 32, 8, 5),
    (4, 32): (32, 32, 8, 3),
    (4, 64): (32, 32, 8, 3),
    (4, 128): (32, 16, 8, 3),
}


# ---- who sees whom -------------------------------------------------------------------------------
@triton.jit
def where_it_starts(length, T, S):
    """Query t stands at start + t: queries are the last T keys, or all of them (right padding)."""
    return tl.where(T == S, 0, length - T)


@triton.jit
def may_see(position, key, length, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """The mask, from positions and keys of shapes that broadcast: (M, 1) with (1, N), say."""
    everywhere = position == position  # gives the mask both shapes
    see = (key < length) & everywhere
    if CAUSAL:
        see = see & (key <= position)
    if WINDOW > 0:
        see = see & (position - key <= WINDOW)
    return see


@triton.jit
def key_range(low, high, length, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, N: tl.constexpr):
    """Queries at low..high see keys of [start, stop) only, and all of them see all of [whole, end).

    Positions before 0 see nothing: with a stop below 0, [whole, end) would begin there."""
    start, whole, end, stop = 0, 0, length // N * N, length
    if WINDOW > 0:
        start = tl.maximum(low - WINDOW, 0) // N * N
        whole = tl.cdiv(tl.maximum(high - WINDOW, 0), N) * N
    if CAUSAL:
        stop = tl.maximum(tl.minimum(length, high + 1), 0)
        end = tl.minimum(length, tl.maximum(low + 1, 0)) // N * N
    whole = tl.minimum(whole, stop)
    return start, whole, tl.maximum(whole, end), stop


# ---- the online softmax --------------------------------------------------------------------------
@triton.jit
def memory_of(k, table, ids, b, g, k_b, k_s, k_g, table_v, table_g, ids_b):
    """Where the keys and rows of one sequence and head begin, and the steps from one to the next.

    Without ids the table is V itself, (B, S, G, D), with the step of its sequences in the place of
    that of ids, and this is flash attention: the rival."""
    k += b.to(tl.int64) * k_b + g * k_g
    table += g * table_g
    if ids is None:
        table += b.to(tl.int64) * ids_b
    return k, table, k_s, table_v


@triton.jit
def nothing_yet(M: tl.constexpr, PADDED: tl.constexpr):
    """A softmax over no keys: the sum of its weights, their maximum, the weighted sum of values."""
    top = tl.full([M], float("-inf"), tl.float32)
    return tl.zeros([M], tl.float32), top, tl.zeros([M, PADDED], tl.float32)


@triton.jit
def absorb(
    softmax, query, memory, ids, start, stop, position, length, scale,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    D: tl.constexpr, N: tl.constexpr, HINT: tl.constexpr,
):  # fmt: skip
    """The softmax goes on over keys [start, stop). HINT tells the L2 cache how to treat them.

    Compilers may drop it (Triton 3.7 drops nearly all), so nothing rests on it."""
    total, top, sums = softmax
    k, table, k_s, table_v = memory
    d = tl.arange(0, query.shape[1])
    for tile in tl.range(start, stop, N):
        key = tl.multiple_of(tile, N) + tl.arange(0, N)  # (N,)
        real = (key < length) if MASKED else (key >= 0)

        # which rows: the ids of these keys
        if ids is None:
            token = tl.where(real, key, 0)  # (N,)
        else:
            token = tl.load(ids + key, mask=real, other=0)
        at = k + key[None, :] * k_s + d[:, None]
        here = real[None, :] & (d[:, None] < D)
        keys = tl.load(at, mask=here, other=0.0, eviction_policy=HINT)  # (D, N)
        at = table + token[:, None] * table_v + d[None, :]
        values = tl.load(at, mask=d[None, :] < D, other=0.0, eviction_policy="evict_last")  # (N, D)
        values = values.to(query.dtype)

        # scores, and the largest so far
        score = tl.dot(query, keys, input_precision="ieee") * scale  # (M, N)
        if MASKED:
            see = may_see(position[:, None], key[None, :], length, CAUSAL, WINDOW)
            score = tl.where(see, score, float("-inf"))
        new_top = tl.maximum(top, tl.max(score, 1))
        safe = tl.where(new_top == float("-inf"), 0.0, new_top)  # queries that saw no key yet

        # what was summed shrinks to the new maximum, then the tile is added
        weight = tl.exp2(score - safe[:, None])
        shrink = tl.exp2(top - safe)
        total = total * shrink + tl.sum(weight, 1)
        sums = sums * shrink[:, None]
        sums = tl.dot(weight.to(query.dtype), values, sums, input_precision="ieee")
        top = new_top
    return total, top, sums


@triton.jit
def finished(softmax):
    """(mean of the values, log2 of the sum): 0 and -inf for queries that saw no key."""
    total, top, sums = softmax
    total = tl.where(total > 0.0, total, 1.0)
    return sums / total[:, None], top + tl.log2(total)


@triton.jit
def forward(
    q, k, table, ids, gain, lengths, out, unscaled, lse,
    k_b, k_s, k_g, table_v, table_g, ids_b,
    T, S, H, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    D: tl.constexpr, PADDED: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """One program: M queries of one head. The gain multiplies the finished sum once."""
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    t = tl.program_id(0) * M + tl.arange(0, M)  # (M,)
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    row = (b.to(tl.int64) * T * H + t * H + h)[:, None] * D + d[None, :]  # (M, D)
    inside = (t[:, None] < T) & (d[None, :] < D)
    query = tl.load(q + row, mask=inside, other=0.0)
    memory = memory_of(k, table, ids, b, h // GROUP, k_b, k_s, k_g, table_v, table_g, ids_b)
    if ids is not None:
        ids += b.to(tl.int64) * ids_b

    # Three stretches: the window's left edge, tiles that all queries see, the diagonal and the end.
    low = first + tl.program_id(0) * M
    high = tl.minimum(low + M, first + T) - 1
    start, whole, end, stop = key_range(low, high, length, CAUSAL, WINDOW, N)
    at, scale = first + t, tl.full([], scale * LOG2E, tl.float32)
    sums = nothing_yet(M, PADDED)
    if WINDOW > 0:
        sums = absorb(
            sums, query, memory, ids, start, whole, at, length, scale,
            True, CAUSAL, WINDOW, D, N, "",
        )  # fmt: skip
    sums = absorb(
        sums, query, memory, ids, whole, end, at, length, scale,
        False, CAUSAL, WINDOW, D, N, "",
    )  # fmt: skip
    sums = absorb(
        sums, query, memory, ids, end, stop, at, length, scale,
        True, CAUSAL, WINDOW, D, N, "",
    )  # fmt: skip

    mean, norm = finished(sums)
    scaled = mean if gain is None else mean * tl.load(gain).to(tl.float32)
    tl.store(out + row, scaled, mask=inside)
    if unscaled is not None:  # training: the gain's gradient needs the mean, the backward the norm
        tl.store(unscaled + row, mean, mask=inside)
        tl.store(lse + (b * H + h) * T + t, norm, mask=t < T)


# ---- launching -----------------------------------------------------------------------------------
def padded_width(D):
    """The head width as a tile has it: a power of two, at least 32."""
    return max(32, 1 << (D - 1).bit_length())


def pick_tiles(tiles, element_size, padded, generation):
    return tiles.get((element_size, padded, generation), tiles[element_size, padded])


def strides(k, table, ids):
    """k_b, k_s, k_g, table_v, table_g, ids_b: what every kernel is told about memory. Without ids
    the table is V, and the last one is its own step from sequence to sequence."""
    by_sequence = table.stride(0) if ids is None else ids.stride(0)
    return *k.stride()[:3], *table.stride()[-3:-1], by_sequence


def launch_plan(tiles, q, k, table, ids, causal, window):
    """(strides and sizes, constants, launch options) of the kernels of training."""
    (T, H, D), (S, G) = q.shape[1:], k.shape[1:3]
    padded = padded_width(D)
    if INTERPRETED:
        m, n, warps, stages = 32, 32, 1, 1
    else:
        generation = torch.cuda.get_device_capability(q.device)[0]
        m, n, warps, stages = pick_tiles(tiles, q.element_size(), padded, generation)
    numbers = (*strides(k, table, ids), T, S, H)
    constants = dict(GROUP=H // G, CAUSAL=causal, WINDOW=window, D=D, PADDED=padded, M=m, N=n)
    return numbers, constants, dict(num_warps=warps, num_stages=stages)


def run_forward(q, k, table, ids, gain, lengths, causal, window, scale, keep, stages=None):
    """(out, unscaled, lse); the last two only if `keep`, for the backward. `stages`: not TILES'."""
    B, T, H, _ = q.shape
    out = torch.empty_like(q)
    unscaled = torch.empty_like(q) if keep else None
    lse = torch.empty(B, H, T, device=q.device) if keep else None
    numbers, constants, launch = launch_plan(TILES, q, k, table, ids, causal, window)
    launch["num_stages"] = stages or launch["num_stages"]
    grid = (-(-T // constants["M"]), B * H)
    tensors = (q, k, table, ids, gain, lengths, out, unscaled, lse)
    forward[grid](*tensors, *numbers, scale, **constants, **launch)
    return out, unscaled, lse
