"""hw08 a third time: row by row and lane by lane, SDPA and autograd where they fit."""

import torch
import torch.nn.functional as F


def copy_tiles(x, block):
    offsets, masks, start = [], [], 0
    while start < len(x):
        offsets.append([start + lane for lane in range(block)])
        masks.append([start + lane < len(x) for lane in range(block)])
        start += block
    return torch.cat(x.split(block)), torch.tensor(offsets), torch.tensor(masks)


def softmax_rows(x, block):
    lanes = torch.zeros(len(x), block, dtype=x.dtype)
    lanes[:, : x.shape[1]] = (x - x.amax(1, keepdim=True)).exp()
    return x.softmax(1), lanes


def flash(q, k, v, block_m, block_n):
    lse, visited = [], []
    for t in range(len(q)):
        scores = k[: t + 1] @ q[t] / q.shape[1] ** 0.5
        lse.append(scores.logsumexp(0))
        if t % block_m == block_m - 1 or t == len(q) - 1:
            visited.append(t // block_n + 1)
    return (
        F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0],
        torch.stack(lse),
        visited,
    )


def gather_flash(q, k, ids, table, gain, block_m, block_n):
    out, lse, _ = flash(q, k, F.embedding(ids, table), block_m, block_n)
    return gain * out, lse


def split_decode(q, k, ids, table, gain, splits):
    size = (len(k) + splits - 1) // splits
    heads = [[], [], []]
    for h in range(len(q)):
        scores = k[:, h] @ q[h] / q.shape[1] ** 0.5
        edges = [slice(n * size, (n + 1) * size) for n in range(splits)]
        heads[0].append(torch.stack([scores[e].softmax(0) @ table[ids[e], h] for e in edges]))
        heads[1].append(torch.stack([scores[e].logsumexp(0) for e in edges]))
        heads[2].append(gain * (scores.softmax(0) @ table[ids, h]))
    return torch.stack(heads[0], 1), torch.stack(heads[1], 1), torch.stack(heads[2])


def histogram_decode(scores, ids, table, gain):
    tokens = sorted(set(ids.tolist()))
    p = scores.softmax(1)
    masses = torch.stack([p[:, ids == token].sum(1) for token in tokens], 1)
    outs = []
    for h in range(len(scores)):
        outs.append(gain * sum(masses[h, u] * table[token, h] for u, token in enumerate(tokens)))
    return torch.tensor(tokens), masses, torch.stack(outs)


def table_gradient(P, dout, ids, table, gain):
    table, gain = (
        table.clone().requires_grad_(),
        torch.tensor(gain, dtype=table.dtype, requires_grad=True),
    )
    return torch.autograd.grad(gain * P @ table[ids], (table, gain), dout)


def predict_speed():
    return [1.6, 0.7]


def offload_counter_example():
    return [3 * i for i in range(300)], 64


def best_splits(tiles, heads, slots, overhead, merge):
    best = None
    for n in range(1, tiles + 1):
        waves, longest = (heads * n - 1) // slots + 1, (tiles - 1) // n + 1
        cost = waves * (longest + overhead) + merge * n
        if best is None or cost < best[0] - 1e-9:
            best = (cost, n)
    return best[1]
