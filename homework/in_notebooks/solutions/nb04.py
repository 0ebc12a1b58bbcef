"""Notebook 04, solved."""

import torch


def resformer_values(V):
    return (V[-1] + V[0]) / 2  # (B, T, H, D)


def two_layer_attention(q, k, v, k_m, v_m):
    T, D = q.shape[1], q.shape[-1]
    keys, values = torch.cat([k, k_m], 1), torch.cat([v, v_m], 1)  # (B, 2 T, H, D)
    scores = torch.einsum("bthd,bshd->bhts", q, keys) / D**0.5  # (B, H, T, 2 T)
    seen = torch.ones(T, T, dtype=torch.bool).tril()  # (T, T)
    both = torch.cat([seen, seen], -1)  # (T, 2 T)
    a = scores.masked_fill(~both, -torch.inf).softmax(-1)  # (B, H, T, 2 T)
    return torch.einsum("bhts,bshd->bthd", a, values)  # (B, T, H, D)


def neutreno(A, v, v1, lam):
    y = torch.einsum("bhts,bshd->bthd", A, v)  # (B, T, H, D)
    return y + lam * (v1 - v)


def learned_mix(v, v1, a, b):
    return a[:, None] * v + b[:, None] * v1  # (B, T, H, D)
