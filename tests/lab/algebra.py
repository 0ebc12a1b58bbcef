"""Small pieces that the tests of claims share."""

import math
from functools import lru_cache

import torch

from minimal.variants import summary

counted = lru_cache(maxsize=None)(
    summary
)  # parameters, FLOPs and cache bytes of a plan at a size, from its structure


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def attention(q, k):
    """Causal softmax weights (T, T)."""
    mask = torch.ones(len(q), len(k), dtype=torch.bool).triu(1)
    return (q @ k.T / q.shape[1] ** 0.5).masked_fill(mask, -math.inf).softmax(-1)


def entropy(importance):
    a = importance / importance.sum()
    return -torch.special.xlogy(a, a).sum().item()


def variance(t):
    return t.var(correction=0).item()


def covariance(a, b):
    return ((a - a.mean()) * (b - b.mean())).mean().item()
