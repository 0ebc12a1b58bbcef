"""hw08 as Triton kernels, for the interpreter: what the unit is about. What needs no kernel is in
plain PyTorch."""

import os

os.environ.setdefault("TRITON_INTERPRET", "1")  # before triton is imported

import math

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, out, offsets, masks, N, stride, BLOCK: tl.constexpr):
    program, lane = tl.program_id(0), tl.arange(0, BLOCK)
    at = program * BLOCK + lane
    on = at < N
    tl.store(out + at, tl.load(x + (N - 1 - at) * stride, mask=on), mask=on)
    tl.store(offsets + at, at)
    tl.store(masks + at, on.to(tl.int32))


def copy_tiles(x, block):
    programs = triton.cdiv(len(x), block)
    out = torch.empty(len(x), dtype=x.dtype)
    offsets, masks = (torch.empty(programs, block, dtype=torch.int32) for _ in range(2))
    copy_kernel[programs,](x, out, offsets, masks, len(x), x.stride(0), BLOCK=block)
    return out, offsets, masks.bool()


@triton.jit
def softmax_kernel(x, lengths, out, lanes, C, row_stride, column_stride, BLOCK: tl.constexpr):
    row, lane = tl.program_id(0), tl.arange(0, BLOCK)
    on = lane < tl.load(lengths + row)
    tile = tl.load(x + row * row_stride + lane * column_stride, mask=on, other=-float("inf"))
    top = tl.max(tile, 0)
    p = tl.exp(tile - tl.where(top == -float("inf"), 0.0, top))  # an empty row: exp(-inf)
    total = tl.sum(p, 0)
    tl.store(lanes + row * BLOCK + lane, p)
    tl.store(out + row * C + lane, p / tl.where(total > 0, total, 1.0), mask=lane < C)


def softmax_rows(x, lengths, block):
    R, C = x.shape
    out, lanes = torch.empty(R, C, dtype=x.dtype), torch.empty(R, block, dtype=x.dtype)
    softmax_kernel[R,](x, lengths, out, lanes, C, x.stride(0), x.stride(1), BLOCK=block)
    return out, lanes


@triton.jit
def flash_kernel(
    q, k, v, ids, table, out, lse, visited, gain, scale, T, prefix,
    D: tl.constexpr, E: tl.constexpr, NAMED: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """NAMED: a row of the table, which ids name, is added to every value."""
    first = tl.program_id(0) * BLOCK_M
    queries, d, e = first + tl.arange(0, BLOCK_M), tl.arange(0, D), tl.arange(0, E)
    here = queries < T
    q_tile = tl.load(q + queries[:, None] * D + d[None, :], mask=here[:, None], other=0.0)
    m = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, E), tl.float32)
    tiles = 0
    for start in range(0, tl.maximum(tl.minimum(first + BLOCK_M, T), prefix), BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        k_tile = tl.load(k + keys[:, None] * D + d[None, :], mask=keys[:, None] < T, other=0.0)
        scores = tl.dot(q_tile, k_tile.T, input_precision="ieee") * scale
        seen = (keys[None, :] <= queries[:, None]) | (keys[None, :] < prefix)
        scores = tl.where(seen & (keys[None, :] < T), scores, -float("inf"))
        new = tl.maximum(m, tl.max(scores, 1))
        p, shrink = tl.exp(scores - new[:, None]), tl.exp(m - new)
        real = keys[:, None] < T
        v_tile = tl.load(v + keys[:, None] * E + e[None, :], mask=real, other=0.0)
        if NAMED:
            rows = tl.load(ids + keys, mask=keys < T, other=0)
            v_tile += gain * tl.load(table + rows[:, None] * E + e[None, :], mask=real, other=0.0)
        total = total * shrink + tl.sum(p, 1)
        acc = tl.dot(p, v_tile, acc * shrink[:, None], input_precision="ieee")
        m = new
        tiles += 1
    tl.store(out + queries[:, None] * E + e[None, :], acc / total[:, None], mask=here[:, None])
    tl.store(lse + queries, m + tl.log(total), mask=here)
    tl.store(visited + tl.program_id(0), tiles)


def launch(q, k, v, prefix, block_m, block_n, ids=None, table=None, gain=0.0):
    (T, D), E = q.shape, v.shape[1]
    q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
    programs = triton.cdiv(T, block_m)
    out, lse, visited = q.new_empty(T, E), q.new_empty(T), torch.empty(programs, dtype=torch.int32)
    named = (v, v) if ids is None else (ids, table.contiguous())
    tensors, sizes = (q, k, v, *named, out, lse, visited), dict(BLOCK_M=block_m, BLOCK_N=block_n)
    sizes |= dict(D=D, E=E, NAMED=ids is not None)
    flash_kernel[programs,](*tensors, gain, D**-0.5, T, prefix, **sizes)
    return out, lse, visited


def flash(q, k, v, prefix, block_m, block_n):
    return launch(q, k, v, prefix, block_m, block_n)


def gather_flash(q, k, v, ids, table, gain, block_m, block_n):
    return launch(q, k, v, 0, block_m, block_n, ids, table, gain)[:2]


@triton.jit
def decode_kernel(
    q, k, ids, table, parts, lse, S, H, G, SIZE, scale,
    D: tl.constexpr, E: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """One split of one query head, its keys all at once."""
    split, h = tl.program_id(0), tl.program_id(1)
    g = h // (H // G)  # the key head that it shares with its neighbours
    lane, d, e = tl.arange(0, LANES), tl.arange(0, D), tl.arange(0, E)
    keys = split * SIZE + lane
    on = (lane < SIZE) & (keys < S)
    q_row = tl.load(q + h * D + d)
    k_tile = tl.load(k + (keys[:, None] * G + g) * D + d[None, :], mask=on[:, None], other=0.0)
    scores = tl.where(on, tl.sum(k_tile * q_row[None, :], 1) * scale, -float("inf"))
    m = tl.max(scores, 0)
    p = tl.exp(scores - m)
    total = tl.sum(p, 0)
    names = tl.load(ids + keys, mask=on, other=0)
    rows = tl.load(table + (names[:, None] * G + g) * E + e[None, :], mask=on[:, None], other=0.0)
    tl.store(parts + (split * H + h) * E + e, tl.sum(p[:, None] * rows, 0) / total)
    tl.store(lse + split * H + h, m + tl.log(total))


def split_decode(q, k, ids, table, gain, splits):
    (S, G, D), H, E = k.shape, len(q), table.shape[2]
    size = triton.cdiv(S, splits)
    parts, lse = q.new_empty(splits, H, E), q.new_empty(splits, H)
    tensors = (q.contiguous(), k.contiguous(), ids, table.contiguous(), parts, lse)
    sizes = dict(D=D, E=E, LANES=triton.next_power_of_2(size))
    decode_kernel[splits, H](*tensors, S, H, G, size, D**-0.5, **sizes)
    return parts, lse, gain * (lse.softmax(0)[..., None] * parts).sum(0)


@triton.jit
def mass_kernel(p, local, masses, S, U, LANES: tl.constexpr):
    """One bin of one head: no two programs add to one place."""
    u, h, lane = tl.program_id(0), tl.program_id(1), tl.arange(0, LANES)
    token = tl.load(local + lane, mask=lane < S, other=-1)
    weight = tl.load(p + h * S + lane, mask=token == u, other=0.0)
    tl.store(masses + h * U + u, tl.sum(weight, 0))


def histogram_decode(scores, ids, table, gain):
    tokens, local = torch.unique(ids, return_inverse=True)
    (H, S), U = scores.shape, len(tokens)
    masses, p = scores.new_empty(H, U), scores.softmax(1).contiguous()
    mass_kernel[U, H](p, local, masses, S, U, LANES=triton.next_power_of_2(S))
    return tokens, masses, gain * torch.einsum("hu,uhe->he", masses, table[tokens])


def table_gradient(P, dout, ids, table, gain):
    order = ids.argsort(stable=True)  # rows of one token side by side, in a fixed order
    counts = torch.bincount(ids, minlength=len(table))
    rows = (gain * P.T @ dout)[order]
    return torch.segment_reduce(rows, "sum", lengths=counts), (dout * (P @ table[ids])).sum()


def predict_speed():
    return 301 / 132, 301 / 534


def offload_counter_example():
    return torch.arange(1000) % 22, 1024


def best_splits(tiles, heads, slots, overhead, merge):
    found = []
    for size in range(1, max(tiles.tolist()) + 1):
        pieces = [math.ceil(n / size) for n in tiles.tolist()]
        programs = heads * sum(pieces)
        cost = math.ceil(programs / slots) * (size + overhead) + merge * max(pieces)
        found.append((cost, -size, programs))
    _, size, programs = min(found)
    return -size, programs
