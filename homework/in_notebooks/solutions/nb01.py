"""Notebook 01, solved."""

import math

import torch


def causal_mask(T, S):
    return torch.arange(S) <= torch.arange(T)[:, None] + S - T  # (T, S)


def turn(x, positions, base=10_000.0):
    D = x.shape[-1]
    rate = base ** (-torch.arange(0, D, 2, device=x.device).double() / D)  # (D/2,)
    angle = (positions[:, None] * rate)[:, None]  # (T, 1, D/2), the same for all heads
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    x1, x2 = x.chunk(2, -1)  # (B, T, H, D/2) each
    return torch.cat([x1 * cos + x2 * sin, x2 * cos - x1 * sin], -1)  # (B, T, H, D)


def add_tile(m, total, out, scores, values):
    largest = torch.maximum(m, scores.amax(-1, keepdim=True))  # (…, T, 1)
    shrink = (m - largest).exp()  # (…, T, 1): corrects what was summed before
    e = (scores - largest).exp()  # (…, T, S), none above 1
    return largest, total * shrink + e.sum(-1, keepdim=True), out * shrink + e @ values


def decode_step(q, k, v, k_cache, v_cache):
    k_cache = torch.cat([k_cache, k], 1)  # (B, S + 1, H, D)
    v_cache = torch.cat([v_cache, v], 1)  # (B, S + 1, H, D)
    scores = torch.einsum("bthd,bshd->bhts", q, k_cache) / math.sqrt(
        q.shape[-1]
    )  # (B, H, 1, S + 1)
    out = torch.einsum("bhts,bshd->bthd", scores.softmax(-1), v_cache)  # (B, 1, H, D)
    return out, k_cache, v_cache
