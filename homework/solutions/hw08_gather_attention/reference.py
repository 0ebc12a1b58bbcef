"""hw08, solved as loops over programs: each body is what one program does (triton_kernels.py has
the kernels)."""

import math

import torch


def copy_tiles(x, block):
    out, offsets, masks = torch.empty_like(x), [], []
    for program in range(math.ceil(len(x) / block)):
        lanes = program * block + torch.arange(block)
        mask = lanes < len(x)
        out[lanes[mask]] = x[len(x) - 1 - lanes[mask]]
        offsets.append(lanes)
        masks.append(mask)
    return out, torch.stack(offsets), torch.stack(masks)


def softmax_rows(x, lengths, block):
    R, C = x.shape
    out, lanes = [], []
    for row in range(R):
        tile = x.new_full((block,), float("-inf"))  # idle lanes
        tile[: lengths[row]] = x[row, : lengths[row]]
        top = tile.max() if lengths[row] else 0.0  # an empty row has no maximum
        p = (tile - top).exp()
        lanes.append(p)
        out.append(p[:C] / p.sum().clamp(min=1.0))  # the maximum itself counts 1
    return torch.stack(out), torch.stack(lanes)


def program(q, k, value_tile, first, block_n, prefix=0):
    """Online softmax of one tile of queries that starts at position `first`: (acc, total, m), tiles
    read."""
    T, D = k.shape
    queries = first + torch.arange(len(q))
    m = q.new_full((len(q), 1), float("-inf"))  # (M,1)
    total, acc, tiles = torch.zeros_like(m), 0, 0
    for start in range(0, max(first + len(q), prefix), block_n):  # none that nobody sees
        keys = torch.arange(start, min(start + block_n, T))
        scores = q @ k[keys].mT / D**0.5  # (M,N)
        hidden = (keys > queries[:, None]) & (keys >= prefix)
        scores = scores.masked_fill(hidden, float("-inf"))
        new = torch.maximum(m, scores.amax(1, keepdim=True))
        shrink, p = (m - new).exp(), (scores - new).exp()
        total = total * shrink + p.sum(1, keepdim=True)
        acc = acc * shrink + p @ value_tile(keys)
        m = new
        tiles += 1
    return acc, total, m, tiles


def flash(q, k, v, prefix, block_m, block_n):
    outs, lse, visited = [], [], []
    for first in range(0, len(q), block_m):
        acc, total, m, tiles = program(
            q[first : first + block_m], k, lambda keys: v[keys], first, block_n, prefix
        )
        outs.append(acc / total)
        lse.append((m + total.log()).flatten())
        visited.append(tiles)
    return torch.cat(outs), torch.cat(lse), torch.tensor(visited)


def gather_flash(q, k, v, ids, table, gain, block_m, block_n):
    outs, lse = [], []
    values = lambda keys: v[keys] + gain * table[ids[keys]]
    for first in range(0, len(q), block_m):
        acc, total, m, _ = program(q[first : first + block_m], k, values, first, block_n)
        outs.append(acc / total)
        lse.append((m + total.log()).flatten())
    return torch.cat(outs), torch.cat(lse)


def split_decode(q, k, ids, table, gain, splits):
    size = math.ceil(len(k) / splits)
    shared = q.shape[0] // k.shape[1]  # query heads that read one key head
    k, table = (x.repeat_interleave(shared, 1) for x in (k, table))
    parts, lse = [], []
    for mine, names in zip(k.split(size), ids.split(size), strict=True):  # (N,H,D), (N,)
        scores = (mine * q).sum(2) / q.shape[1] ** 0.5  # (N,H)
        lse.append(scores.logsumexp(0))
        parts.append((scores.softmax(0)[..., None] * table[names]).sum(0))
    parts, lse = torch.stack(parts), torch.stack(lse)  # (splits,H,E), (splits,H)
    return parts, lse, gain * (lse.softmax(0)[..., None] * parts).sum(0)


def histogram_decode(scores, ids, table, gain):
    tokens, local = torch.unique(ids, return_inverse=True)  # (U,), (S,)
    masses = scores.new_zeros(len(scores), len(tokens)).index_add(1, local, scores.softmax(1))
    return tokens, masses, gain * torch.einsum("hu,uhe->he", masses, table[tokens])


def table_gradient(P, dout, ids, table, gain):
    dtable = torch.zeros_like(table).index_add(0, ids, gain * P.T @ dout)
    return dtable, (dout * (P @ table[ids])).sum()


def predict_speed():
    return 2.3, 0.56


def offload_counter_example():
    """One distinct token in 47 is where the link begins to lose."""
    return torch.arange(1000) % math.ceil(1000 * 64e9 / 3e12), 768


def best_splits(tiles, heads, slots, overhead, merge):
    def programs(size):
        return heads * sum(math.ceil(n / size) for n in tiles.tolist())

    def cost(size):
        waves, longest = math.ceil(programs(size) / slots), math.ceil(max(tiles.tolist()) / size)
        return waves * (size + overhead) + merge * longest

    best = min(range(max(tiles.tolist()), 0, -1), key=cost)  # the largest first
    return best, programs(best)
