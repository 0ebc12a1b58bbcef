"""Notebook 02, solved."""

import torch


def rms_norm(x):
    eps = torch.finfo(x.dtype).eps
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()  # (…, C)


def block(x, attention, mlp):
    x = x + attention(rms_norm(x))  # (B, T, C)
    return x + mlp(rms_norm(x))  # (B, T, C)


def adamw_step(p, g, m, s, step, lr=0.01, betas=(0.8, 0.95), eps=1e-10, decay=0.1):
    # both running means
    m = betas[0] * m + (1 - betas[0]) * g
    s = betas[1] * s + (1 - betas[1]) * g * g
    # corrected for their start at zero
    mean = m / (1 - betas[0] ** step)
    square = s / (1 - betas[1] ** step)
    # the pull goes past both
    return p * (1 - lr * decay) - lr * mean / (square.sqrt() + eps), m, s


def orthogonal(G, rounds):
    X = G / (1.01 * G.norm() + 1e-6)  # (rows, columns), no singular value above 1
    for a, b, c in rounds:
        A = X @ X.T  # (rows, rows)
        X = a * X + (b * A + c * A @ A) @ X
    return X


def learning_rate(step, steps, warmup, falls=0.65, start=0.025, end=0.05):
    begin = steps - round(falls * steps)
    if step < warmup:
        return start + (1 - start) * step / warmup
    if step <= begin:
        return 1.0
    return 1 + (end - 1) * (step - begin) / (steps - begin)
