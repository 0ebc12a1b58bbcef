"""Notebook 01, solved."""

import math

import torch


def square_mask(T):
    return torch.arange(T) <= torch.arange(T)[:, None]  # (T, T)


def causal_mask(T, S):
    return torch.arange(S) <= torch.arange(T)[:, None] + S - T  # (T, S)


def scores(q, k):
    return torch.einsum("bthd,bshd->bhts", q, k)  # (B, H, T, S)


def weights(z, seen):
    return z.masked_fill(~seen, -torch.inf).softmax(-1)  # (B, H, T, S)


def attention(q, k, v):
    T, S, D = q.shape[1], k.shape[1], q.shape[-1]
    seen = causal_mask(T, S).to(q.device)  # (T, S)
    a = weights(scores(q, k) / math.sqrt(D), seen)  # (B, H, T, S)
    return torch.einsum("bhts,bshd->bthd", a, v)  # (B, T, H, D)


def multi_head(x, W_Q, W_K, W_V, W_O, H):
    q, k, v = ((x @ W).unflatten(-1, (H, -1)) for W in (W_Q, W_K, W_V))  # (B, T, H, D) each
    return attention(q, k, v).flatten(2) @ W_O  # (B, T, C)


def turn_pair(x1, x2, angle):
    cos, sin = angle.cos(), angle.sin()
    return x1 * cos + x2 * sin, x2 * cos - x1 * sin


def turn(x, positions, base=10_000.0):
    D = x.shape[-1]
    rate = base ** (-torch.arange(0, D, 2, device=x.device).double() / D)  # (D/2,)
    angle = (positions[:, None] * rate)[:, None]  # (T, 1, D/2), the same for all heads
    x1, x2 = x.chunk(2, -1)  # (B, T, H, D/2) each
    return torch.cat(turn_pair(x1, x2, angle), -1).to(x.dtype)  # (B, T, H, D)


def add_tile(m, total, out, scores, values):
    largest = torch.maximum(m, scores.amax(-1, keepdim=True))  # (…, T, 1)
    shrink = (m - largest).exp()  # (…, T, 1): corrects what was summed before
    e = (scores - largest).exp()  # (…, T, S), none above 1
    return largest, total * shrink + e.sum(-1, keepdim=True), out * shrink + e @ values


def decode_step(q, k, v, k_cache, v_cache):
    k_cache = torch.cat([k_cache, k], 1)  # (B, S + 1, H, D)
    v_cache = torch.cat([v_cache, v], 1)  # (B, S + 1, H, D)
    return attention(q, k_cache, v_cache), k_cache, v_cache
