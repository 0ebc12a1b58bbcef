"""What does attention do, tile by tile, when its values are rows of a table named by token ids?

Flash attention with one change: where a tile of V would be read, a tile of ids is read first and names the rows.
This file has what all kernels share (who may see whom, how they are launched) and the forward kernel; gather.py has
the reference that it must equal and the tolerance. B batch, T queries, S keys, H query heads, G key/value heads,
D head width, V vocabulary; M x N is a tile of T x S. Scores are kept in base 2, because exp2 is one instruction:
log2(e) is folded into the scale.
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

# (bytes an element, padded head width) -> M, N, warps, stages; a third key is for GPUs of that generation only (8: less
# shared memory). Chosen from what the compiler reports (evidence/compiled.json): no spills. Odd stages only: a load
# through ids is one level deeper than a plain one, so of 3 stages it gets two buffers and of 5 three; 4 buys nothing.
TILES = {
    (2, 32): (128, 64, 8, 5),
    (2, 64): (128, 64, 8, 5),
    (2, 128): (128, 64, 8, 5),
    (2, 128, 8): (128, 32, 8, 5),
    (4, 32): (32, 32, 8, 3),
    (4, 64): (32, 32, 8, 3),
    (4, 128): (32, 16, 8, 3),
}


@triton.jit
def where_it_starts(length, T, S):
    """Query t stands at start + t: queries are the last T of the keys, unless both are S long (right padding)."""
    return tl.where(T == S, 0, length - T)


@triton.jit
def may_see(position, key, length, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """The mask, from positions and keys of shapes that broadcast: (M, 1) with (1, N), say."""
    see = (key < length) & (
        position == position
    )  # the second is always true and gives the mask both shapes
    if CAUSAL:
        see = see & (key <= position)
    if WINDOW > 0:
        see = see & (position - key <= WINDOW)
    return see


@triton.jit
def key_range(low, high, length, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, N: tl.constexpr):
    """Queries at low..high see keys of [start, stop) only, and all of them see all of [whole, end)."""
    start, whole, end, stop = 0, 0, length // N * N, length
    if WINDOW > 0:
        start = tl.maximum(low - WINDOW, 0) // N * N
        whole = tl.cdiv(tl.maximum(high - WINDOW, 0), N) * N
    if CAUSAL:
        stop = tl.minimum(length, high + 1)
        end = tl.minimum(length, tl.maximum(low + 1, 0)) // N * N
    whole = tl.minimum(whole, stop)
    return start, whole, tl.maximum(whole, end), stop


@triton.jit
def absorb(
    query,
    total,
    top,
    out,
    k,
    table,
    ids,
    k_s,
    table_v,
    start,
    stop,
    position,
    length,
    scale,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    D: tl.constexpr,
    PADDED: tl.constexpr,
    N: tl.constexpr,
):
    """The online softmax over keys [start, stop): its running sum, its maximum, its weighted sum of values."""
    d = tl.arange(0, PADDED)
    for tile in tl.range(start, stop, N):
        key = tl.multiple_of(tile, N) + tl.arange(0, N)  # (N,)
        real = (key < length) if MASKED else (key >= 0)
        token = (
            tl.where(real, key, 0) if ids is None else tl.load(ids + key, mask=real, other=0)
        )  # (N,)
        keys = tl.load(
            k + key[None, :] * k_s + d[:, None], mask=real[None, :] & (d[:, None] < D), other=0.0
        )  # (D, N)
        values = tl.load(
            table + token[:, None] * table_v + d[None, :],
            mask=d[None, :] < D,
            other=0.0,
            eviction_policy="evict_last",
        ).to(query.dtype)  # (N, D): rows that the ids name
        score = tl.dot(query, keys, input_precision="ieee") * scale  # (M, N)
        if MASKED:
            score = tl.where(
                may_see(position[:, None], key[None, :], length, CAUSAL, WINDOW),
                score,
                float("-inf"),
            )
        new_top = tl.maximum(top, tl.max(score, 1))
        safe = tl.where(
            new_top == float("-inf"), 0.0, new_top
        )  # for queries that have seen no key yet
        weight = tl.exp2(score - safe[:, None])
        shrink = tl.exp2(top - safe)
        total = total * shrink + tl.sum(weight, 1)
        out = tl.dot(weight.to(query.dtype), values, out * shrink[:, None], input_precision="ieee")
        top = new_top
    return total, top, out


@triton.jit
def forward(
    q,
    k,
    table,
    ids,
    gain,
    lengths,
    out,
    unscaled,
    lse,
    k_b,
    k_s,
    k_g,
    table_v,
    table_g,
    ids_b,
    T,
    S,
    H,
    scale,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    D: tl.constexpr,
    PADDED: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
):
    """One program: M queries of one head. The gain multiplies the finished sum once, not every value.

    Without ids the table is V itself, (B, S, G, D), and this is flash attention: what the gather is compared with."""
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    t = tl.program_id(0) * M + tl.arange(0, M)  # (M,)
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    row = (b.to(tl.int64) * T * H + t * H + h)[:, None] * D + d[None, :]  # (M, D)
    inside = (t[:, None] < T) & (d[None, :] < D)
    query = tl.load(q + row, mask=inside, other=0.0)
    k += b.to(tl.int64) * k_b + h // GROUP * k_g
    table += h // GROUP * table_g
    if ids is None:
        table += b.to(tl.int64) * S * table_v
    else:
        ids += b.to(tl.int64) * ids_b

    low = first + tl.program_id(0) * M
    start, whole, end, stop = key_range(
        low, tl.minimum(low + M, first + T) - 1, length, CAUSAL, WINDOW, N
    )
    total, top = tl.zeros([M], tl.float32), tl.full([M], float("-inf"), tl.float32)
    sums = tl.zeros([M, PADDED], tl.float32)
    if WINDOW > 0:  # the window's left edge
        total, top, sums = absorb(
            query,
            total,
            top,
            sums,
            k,
            table,
            ids,
            k_s,
            table_v,
            start,
            whole,
            first + t,
            length,
            scale * LOG2E,
            True,
            CAUSAL,
            WINDOW,
            D,
            PADDED,
            N,
        )
    total, top, sums = absorb(
        query,
        total,
        top,
        sums,
        k,
        table,
        ids,
        k_s,
        table_v,
        whole,
        end,
        first + t,
        length,
        scale * LOG2E,
        False,
        CAUSAL,
        WINDOW,
        D,
        PADDED,
        N,
    )  # tiles that all see: no mask
    total, top, sums = absorb(
        query,
        total,
        top,
        sums,
        k,
        table,
        ids,
        k_s,
        table_v,
        end,
        stop,
        first + t,
        length,
        scale * LOG2E,
        True,
        CAUSAL,
        WINDOW,
        D,
        PADDED,
        N,
    )  # the diagonal and the last keys
    seen = total > 0.0
    total = tl.where(seen, total, 1.0)
    mean = sums / total[:, None]  # 0 where a query saw no key
    scaled = mean if gain is None else mean * tl.load(gain).to(tl.float32)
    tl.store(out + row, scaled, mask=inside)
    if (
        unscaled is not None
    ):  # training: the gain's gradient needs the mean, the backward the log of the sum
        tl.store(unscaled + row, mean, mask=inside)
        tl.store(lse + (b * H + h) * T + t, top + tl.log2(total), mask=t < T)


def pick_tiles(tiles, element_size, padded, generation):
    return tiles.get((element_size, padded, generation), tiles[element_size, padded])


def launch_plan(tiles, q, k, table, ids, causal, window):
    """What every kernel of training is told: strides and sizes, the constants it is compiled for, warps and stages."""
    T, H, D = q.shape[1:]
    padded = max(32, 1 << (D - 1).bit_length())
    m, n, warps, stages = (
        (32, 32, 1, 1)
        if INTERPRETED
        else pick_tiles(
            tiles, q.element_size(), padded, torch.cuda.get_device_capability(q.device)[0]
        )
    )
    sizes = (
        *k.stride()[:3],
        *table.stride()[-3:-1],
        0 if ids is None else ids.stride(0),
        T,
        k.shape[1],
        H,
    )
    constants = dict(
        GROUP=H // k.shape[2], CAUSAL=causal, WINDOW=window, D=D, PADDED=padded, M=m, N=n
    )
    return sizes, constants, dict(num_warps=warps, num_stages=stages)


def run_forward(q, k, table, ids, gain, lengths, causal, window, scale, keep):
    """(out, unscaled, lse); the last two only if `keep`, for the backward."""
    out = torch.empty_like(q)
    unscaled = torch.empty_like(q) if keep else None
    lse = (
        torch.empty(q.shape[0], q.shape[2], q.shape[1], device=q.device) if keep else None
    )  # (B, H, T)
    sizes, constants, launch = launch_plan(TILES, q, k, table, ids, causal, window)
    grid = (-(-q.shape[1] // constants["M"]), q.shape[0] * q.shape[2])
    forward[grid](
        q, k, table, ids, gain, lengths, out, unscaled, lse, *sizes, scale, **constants, **launch
    )
    return out, unscaled, lse


def forward_bytes(B, T, S, H, G, D, V, b=2, distinct=None, keep=True):
    """What must cross HBM once: q, k, ids, the table rows that occur, out (and for training the unscaled out and lse).

    Attention over stored values reads B*S*G*D*b where this reads `distinct` rows (all of V unless told)."""
    rows = min(distinct or V, B * S)
    queries, keys = B * T * H * D * b, B * S * G * D * b
    return (
        queries * (3 if keep else 2)
        + keys
        + B * S * 4
        + rows * G * D * b
        + (B * H * T * 4 if keep else 0)
    )
