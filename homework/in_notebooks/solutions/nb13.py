"""Notebook 13, solved."""

import torch
import torch.nn.functional as F

from minimal.model.layers import norm


def upstream(streams, n, j, w):
    return norm(streams[min(j, n)]) @ w.T  # (B, T, E)


def read_turned(a, k, cos, sin):
    y = torch.einsum("hts,shd->thd", a, k)  # (T, H, D)
    y1, y2 = y.chunk(2, dim=-1)
    cos, sin = cos[:, None], sin[:, None]  # (T, 1, D/2): the same for all heads
    return torch.cat([y1 * cos - y2 * sin, y2 * cos + y1 * sin], dim=-1)


def exclusive(y, v):
    u = F.normalize(v, dim=-1)  # (T, H, D): the direction of the own value
    return y - (y * u).sum(-1, keepdim=True) * u


def bigram_slots(ids, a, b, c, rows):
    here = ids + 1  # (B, T)
    before = F.pad(here, (1, 0))[:, :-1]  # (B, T): 0 where nothing stands before
    prime = 2**31 - 1  # mod after each product: with three ids a sum could pass 2^63
    return (a * here % prime + b * before % prime + c) % prime % rows


def absorbed_scores(q, latent, up):
    queries = torch.einsum("thd,hdc->htc", q, up)  # (H, T, C): W_UK has joined the queries
    return queries @ latent.T  # (H, T, S)


def five_caches(tokens, layers, heads, head, latent, vocab):
    stream = 2 * tokens * heads * head  # keys, or values, of one layer
    gqa = layers * stream  # two streams of half the heads
    mla = 2 * tokens * layers * latent
    svformer = (layers + 1) * stream
    bank = layers * stream + 4 * tokens + 2 * layers * vocab * heads * head
    turned = layers * stream  # a row is key and value
    return gqa, mla, svformer, bank, turned


def gate_as_dva(sigma, v):
    return sigma - 1, v.clone()
