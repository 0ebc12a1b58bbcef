"""How do gradients flow back through values that were never stored? The backward kernels.

out = gain * u with u = P E[ids]. So dS = gain * P * (dO E[ids]^T - delta), delta = rowsum(dO * u),
and the gain's gradient is the sum of all deltas: nothing is divided by the gain, which may be 0.
Two kernels, one for the queries and one for the keys, cost seven products instead of five, and in
exchange no two programs ever add to the same place. A third kernel sums the gradients of positions
into gradients of tokens, in a fixed order. Letters and the order of arguments as in forward.py.
"""

import torch

from minimal.kernels.forward import (
    LOG2E,
    key_range,
    launch_plan,
    may_see,
    tl,
    triton,
    where_it_starts,
)

# (bytes an element, padded head width[, generation]) -> M, N, warps, stages, as forward.TILES.
QUERY_TILES = {
    (2, 32): (64, 64, 4, 3),
    (2, 64): (64, 64, 8, 3),
    (2, 128): (64, 64, 8, 3),
    (2, 128, 8): (64, 32, 8, 3),
    (4, 32): (32, 32, 8, 3),
    (4, 64): (32, 32, 8, 3),
    (4, 128): (32, 16, 8, 3),
}
KEY_TILES = QUERY_TILES | {(2, 128): (32, 64, 8, 3), (2, 128, 8): (32, 64, 8, 3)}


@triton.jit
def backward_queries(
    q, k, table, ids, gain, lengths, unscaled, lse, grad, grad_q, delta,
    k_b, k_s, k_g, table_v, table_g, ids_b,
    T, S, H, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    D: tl.constexpr, PADDED: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """One program: dQ of M queries of one head, and their delta. Values are gathered again."""
    b, h = tl.program_id(1) // H, tl.program_id(1) % H
    t = tl.program_id(0) * M + tl.arange(0, M)  # (M,)
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    row = (b.to(tl.int64) * T * H + t * H + h)[:, None] * D + d[None, :]  # (M, D)
    line = (b * H + h) * T + t  # (M,)
    inside = (t[:, None] < T) & (d[None, :] < D)
    query = tl.load(q + row, mask=inside, other=0.0)
    push = tl.load(grad + row, mask=inside, other=0.0)  # dO
    norm = tl.load(lse + line, mask=t < T, other=float("inf"))  # (M,)
    k += b.to(tl.int64) * k_b + h // GROUP * k_g
    table += h // GROUP * table_g
    ids += b.to(tl.int64) * ids_b

    # delta, which the keys' kernel reads
    mean = tl.load(unscaled + row, mask=inside, other=0.0)
    dot = tl.sum(push.to(tl.float32) * mean.to(tl.float32), 1)  # (M,)
    tl.store(delta + line, dot, mask=t < T)

    # over the keys that these queries see
    low = first + tl.program_id(0) * M
    high = tl.minimum(low + M, first + T) - 1
    start, _, _, stop = key_range(low, high, length, CAUSAL, WINDOW, N)
    sums = tl.zeros([M, PADDED], tl.float32)
    for tile in tl.range(start, stop, N):
        key = tl.multiple_of(tile, N) + tl.arange(0, N)  # (N,)
        real = (key < length)[:, None] & (d[None, :] < D)
        token = tl.load(ids + key, mask=key < length, other=0)
        keys = tl.load(k + key[:, None] * k_s + d[None, :], mask=real, other=0.0)  # (N, D)
        values = tl.load(table + token[:, None] * table_v + d[None, :], mask=real, other=0.0)
        values = values.to(query.dtype)  # (N, D)

        # the weights again, then dS / gain, then dQ
        score = tl.dot(query, keys.T, input_precision="ieee") * (scale * LOG2E)  # (M, N)
        see = may_see((first + t)[:, None], key[None, :], length, CAUSAL, WINDOW)
        weight = tl.where(see, tl.exp2(score - norm[:, None]), 0.0)
        pull = weight * (tl.dot(push, values.T, input_precision="ieee") - dot[:, None])  # (M, N)
        sums = tl.dot(pull.to(query.dtype), keys, sums, input_precision="ieee")
    factor = scale if gain is None else scale * tl.load(gain).to(tl.float32)
    tl.store(grad_q + row, sums * factor, mask=inside)


@triton.jit
def backward_keys(
    q, k, table, ids, gain, lengths, lse, grad, delta, grad_k, grad_v, grad_table,
    k_b, k_s, k_g, table_v, table_g, ids_b,
    T, S, H, scale,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    D: tl.constexpr, PADDED: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """One program: dK and dV of N keys of a key head, over all queries of all heads that read it.

    With grad_table (V, G, D) in fp32 the value rows go to their tokens by atomics instead of
    staying by position: no dV in memory, but additions in whatever order programs finish, so the
    last bits differ between runs. For teaching."""
    G = H // GROUP
    b, g = tl.program_id(1) // G, tl.program_id(1) % G
    key = tl.program_id(0) * N + tl.arange(0, N)  # (N,)
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    real = (key < length)[:, None] & (d[None, :] < D)
    token = tl.load(ids + b.to(tl.int64) * ids_b + key, mask=key < length, other=0)  # (N,)
    k += b.to(tl.int64) * k_b + g * k_g
    table += g * table_g
    keys = tl.load(k + key[:, None] * k_s + d[None, :], mask=real, other=0.0)  # (N, D)
    values = tl.load(table + token[:, None] * table_v + d[None, :], mask=real, other=0.0)
    values = values.to(keys.dtype)  # (N, D)

    # the queries that may see these keys
    begin, end = 0, T
    if CAUSAL:
        begin = tl.maximum(tl.program_id(0) * N - first, 0) // M * M
    if WINDOW > 0:
        end = tl.minimum(T, tl.program_id(0) * N + N + WINDOW - first)
    sum_k = tl.zeros([N, PADDED], tl.float32)
    sum_v = tl.zeros([N, PADDED], tl.float32)
    for h in range(g * GROUP, g * GROUP + GROUP):
        for tile in tl.range(begin, end, M):
            t = tile + tl.arange(0, M)  # (M,)
            row = (b.to(tl.int64) * T * H + t * H + h)[:, None] * D + d[None, :]  # (M, D)
            line = (b * H + h) * T + t  # (M,)
            inside = (t[:, None] < T) & (d[None, :] < D)
            query = tl.load(q + row, mask=inside, other=0.0)
            push = tl.load(grad + row, mask=inside, other=0.0)
            norm = tl.load(lse + line, mask=t < T, other=float("inf"))  # (M,)
            dot = tl.load(delta + line, mask=t < T, other=0.0)

            # the weights again, transposed: (N, M)
            score = tl.dot(keys, query.T, input_precision="ieee") * (scale * LOG2E)
            see = may_see((first + t)[None, :], key[:, None], length, CAUSAL, WINDOW)
            weight = tl.where(see, tl.exp2(score - norm[None, :]), 0.0)
            sum_v = tl.dot(weight.to(query.dtype), push, sum_v, input_precision="ieee")
            pull = weight * (tl.dot(values, push.T, input_precision="ieee") - dot[None, :])
            sum_k = tl.dot(pull.to(query.dtype), query, sum_k, input_precision="ieee")

    factor = 1.0 if gain is None else tl.load(gain).to(tl.float32)
    line = b.to(tl.int64) * S * G + key * G + g  # (N,) of (B, S, G)
    place = line[:, None] * D + d[None, :]
    slot = (key[:, None] < S) & (d[None, :] < D)
    tl.store(grad_k + place, sum_k * (scale * factor), mask=slot)
    if grad_table is None:
        tl.store(grad_v + place, sum_v * factor, mask=slot)
    else:
        by_token = (token * G + g)[:, None] * D + d[None, :]  # (N, D) of (V, G, D)
        tl.atomic_add(grad_table + by_token, sum_v * factor, mask=real, sem="relaxed")


@triton.jit
def sum_by_token(rows, order, starts, out, width, C: tl.constexpr, N: tl.constexpr):
    """One program: C columns of one token's gradient, its positions added in the order of the text.

    The order is the same in each run, and so are the bits. `order` lists positions sorted by token,
    token w's from starts[w] to starts[w + 1]. A token that does not occur writes zeros, so nothing
    needs to be cleared first. One program walks over all positions of its token, however frequent:
    whether a hot token is worth several has not been measured.
    Reference: out.zero_().index_add_(0, ids, rows)."""
    token = tl.program_id(0)
    column = tl.program_id(1) * C + tl.arange(0, C)  # (C,)
    start, stop = tl.load(starts + token), tl.load(starts + token + 1)
    total = tl.zeros([C], tl.float32)
    for tile in tl.range(start, stop, N):
        place = tile + tl.arange(0, N)  # (N,)
        row = tl.load(order + place, mask=place < stop, other=0).to(tl.int64)
        inside = (place < stop)[:, None] & (column < width)[None, :]
        part = tl.load(rows + row[:, None] * width + column[None, :], mask=inside, other=0.0)
        total += tl.sum(part.to(tl.float32), 0)
    tl.store(out + token.to(tl.int64) * width + column, total, mask=column < width)


# ---- launching -----------------------------------------------------------------------------------
def run_backward(
    grad, q, k, table, ids, gain, lengths, unscaled, lse, causal, window, scale, atomic
):
    """(dQ, dK, dV by position or None, dE summed by atomics or None, delta)."""
    given = (q, k, table, ids, gain, lengths)
    B, T, H, _ = q.shape
    S, G = k.shape[1:3]

    grad_q, delta = torch.empty_like(q), torch.empty_like(lse)
    numbers, constants, launch = launch_plan(QUERY_TILES, q, k, table, ids, causal, window)
    tensors = (*given, unscaled, lse, grad, grad_q, delta)
    grid = (-(-T // constants["M"]), B * H)
    backward_queries[grid](*tensors, *numbers, scale, **constants, **launch)

    grad_k = torch.empty(k.shape, dtype=k.dtype, device=k.device)
    grad_v = grad_table = None
    if atomic:
        grad_table = torch.zeros(table.shape, dtype=torch.float32, device=k.device)
    else:
        grad_v = torch.empty(k.shape, dtype=k.dtype, device=k.device)
    numbers, constants, launch = launch_plan(KEY_TILES, q, k, table, ids, causal, window)
    tensors = (*given, lse, grad, delta, grad_k, grad_v, grad_table)
    grid = (-(-S // constants["N"]), B * G)
    backward_keys[grid](*tensors, *numbers, scale, **constants, **launch)
    return grad_q, grad_k, grad_v, grad_table, delta


def run_sum_by_token(rows, order, table):
    """rows (B, S, G, D) by position -> (V, G, D) by token, in the table's dtype, summed in fp32."""
    out = torch.empty(table.shape, dtype=table.dtype, device=table.device)
    width = table.shape[1] * table.shape[2]
    launch = dict(num_warps=2, num_stages=3)
    sum_by_token[(len(table), -(-width // 64))](rows, *order, out, width, C=64, N=32, **launch)
    return out
