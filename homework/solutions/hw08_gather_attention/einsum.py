"""hw08 again: whole matrices in float64, no programs at all. Right answers, and nothing learned
about tiles."""

import torch
from torch import einsum


def copy_tiles(x, block):
    programs = (x.numel() + block - 1) // block
    offsets = torch.arange(programs * block).reshape(programs, block)
    return x.flip(0), offsets, offsets < x.numel()


def softmax_rows(x, lengths, block):
    wide = torch.nn.functional.pad(x.double(), (0, block - x.shape[1]))
    wide = wide.masked_fill(torch.arange(block) >= lengths[:, None], -torch.inf)
    lanes = torch.exp(wide - wide.max(1, keepdim=True).values).nan_to_num(0)
    out = wide.softmax(1).nan_to_num(0)[:, : x.shape[1]]
    return out.to(x.dtype), lanes.to(x.dtype)


def causal(q, k, prefix=0):
    hidden = torch.full((len(q), len(k)), -torch.inf).triu(1)
    hidden[:, :prefix] = 0
    return einsum("td,sd->ts", q.double(), k.double()) / q.shape[1] ** 0.5 + hidden


def flash(q, k, v, prefix, block_m, block_n):
    scores, T = causal(q, k, prefix), len(q)
    ends = torch.clamp(torch.arange(block_m, T + block_m, block_m), max=T).clamp(min=prefix)
    visited = torch.div(ends + block_n - 1, block_n, rounding_mode="floor")
    out = einsum("ts,se->te", scores.softmax(1), v.double())
    return out.to(q.dtype), scores.logsumexp(1).to(q.dtype), visited


def gather_flash(q, k, v, ids, table, gain, block_m, block_n):
    scores = causal(q, k)
    one_hot = torch.nn.functional.one_hot(ids, len(table)).double()
    out = einsum("ts,sv,ve->te", scores.softmax(1), one_hot, gain * table.double())
    out = out + einsum("ts,se->te", scores.softmax(1), v.double())
    return out.to(q.dtype), scores.logsumexp(1).to(q.dtype)


def split_decode(q, k, ids, table, gain, splits):
    S, kind, head = len(k), q.dtype, torch.arange(len(q)) * k.shape[1] // len(q)
    k, table = k[:, head], table[:, head]  # (S,H,D), (V,H,E)
    scores = einsum("hd,shd->sh", q.double(), k.double()) / q.shape[1] ** 0.5
    owner = torch.arange(S) // -(-S // splits)
    mine = torch.where(owner[None] == torch.arange(splits)[:, None], 0.0, -torch.inf)  # (splits,S)
    scores = scores[None] + mine[..., None]  # (splits,S,H)
    parts = einsum("nsh,she->nhe", scores.softmax(1), table.double()[ids])
    whole = scores.flatten(0, 1).softmax(0).unflatten(0, (splits, S)).sum(0)
    out = einsum("sh,she->he", whole, table.double()[ids])
    return parts.to(kind), scores.logsumexp(1).to(kind), (gain * out).to(kind)


def histogram_decode(scores, ids, table, gain):
    tokens = ids.unique(sorted=True)
    masses = einsum("hs,su->hu", scores.double().softmax(-1), (ids[:, None] == tokens).double())
    out = gain * einsum("hu,uhe->he", masses, table.double()[tokens])
    return tokens, masses.to(scores.dtype), out.to(scores.dtype)


def table_gradient(P, dout, ids, table, gain):
    one_hot = torch.nn.functional.one_hot(ids, len(table)).to(P.dtype)
    collected = einsum("ts,sv,te->ve", P, one_hot, dout)
    return gain * collected, (collected * table).sum()


def predict_speed():
    return torch.tensor([2.35, 0.53])


def offload_counter_example():
    return torch.arange(22).repeat(46)[:1000] * 1000, torch.tensor(128)


def best_splits(tiles, heads, slots, overhead, merge):
    size = torch.arange(1, int(tiles.max()) + 1)
    pieces = (tiles[:, None] + size - 1) // size  # (texts,sizes)
    programs = heads * pieces.sum(0)
    cost = (programs + slots - 1) // slots * (size + overhead) + merge * pieces.max(0).values
    best = (cost == cost.min()).nonzero()[-1]
    return int(size[best]), int(programs[best])
