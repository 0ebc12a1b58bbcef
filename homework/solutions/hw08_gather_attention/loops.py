"""hw08 a third time: row by row and lane by lane, SDPA and autograd where they fit."""

import torch
import torch.nn.functional as F


def copy_tiles(x, block):
    offsets, masks, start = [], [], 0
    while start < len(x):
        offsets.append([start + lane for lane in range(block)])
        masks.append([start + lane < len(x) for lane in range(block)])
        start += block
    turned = torch.stack([x[len(x) - 1 - at] for at in range(len(x))])
    return turned, torch.tensor(offsets), torch.tensor(masks)


def softmax_rows(x, lengths, block):
    lanes, out = torch.zeros(len(x), block, dtype=x.dtype), torch.zeros_like(x)
    for row, end in enumerate(lengths.tolist()):
        if end:
            mine = x[row, :end]
            lanes[row, :end] = (mine - mine.max()).exp()
            out[row, :end] = mine.softmax(0)
    return out, lanes


def flash(q, k, v, prefix, block_m, block_n):
    lse, visited = [], []
    seen = torch.ones(len(q), len(q), dtype=torch.bool).tril()
    seen[:, :prefix] = True
    for t in range(len(q)):
        end = max(t + 1, prefix)
        lse.append((k[:end] @ q[t] / q.shape[1] ** 0.5).logsumexp(0))
        if t % block_m == block_m - 1 or t == len(q) - 1:
            visited.append((end - 1) // block_n + 1)
    out = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=seen)[0]
    return out, torch.stack(lse), visited


def gather_flash(q, k, v, ids, table, gain, block_m, block_n):
    return flash(q, k, v + gain * F.embedding(ids, table), 0, block_m, block_n)[:2]


def split_decode(q, k, ids, table, gain, splits):
    size = (len(k) + splits - 1) // splits
    heads = [[], [], []]
    for h in range(len(q)):
        g = h * k.shape[1] // len(q)
        scores = k[:, g] @ q[h] / q.shape[1] ** 0.5
        edges = [slice(n * size, (n + 1) * size) for n in range(splits)]
        heads[0].append(torch.stack([scores[e].softmax(0) @ table[ids[e], g] for e in edges]))
        heads[1].append(torch.stack([scores[e].logsumexp(0) for e in edges]))
        heads[2].append(gain * (scores.softmax(0) @ table[ids, g]))
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
    table = table.clone().requires_grad_()
    gain = torch.tensor(gain, dtype=table.dtype, requires_grad=True)
    return torch.autograd.grad(gain * P @ table[ids], (table, gain), dout)


def predict_speed():
    return [2.2, 0.6]


def offload_counter_example():
    return [3 * min(i, 21) for i in range(1000)], 64


def best_splits(tiles, heads, slots, overhead, merge):
    best = None
    for size in range(1, tiles.max().item() + 1):
        pieces = [(n - 1) // size + 1 for n in tiles.tolist()]
        programs = heads * sum(pieces)
        cost = ((programs - 1) // slots + 1) * (size + overhead) + merge * max(pieces)
        if best is None or cost <= best[0]:
            best = (cost, size, programs)
    return best[1:]
