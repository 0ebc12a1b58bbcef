"""Notebook 05, solved."""

import torch

from minimal.model.layers import norm


def value(self, n, h, v1, ids):
    return self.layers[n].value(h) if n == 0 else v1  # (B, T, C)


def owners_of(layers, anchors):
    return [max(a for a in anchors if a <= n) for n in range(layers)]


def bytes_a_token(keys, values, groups, width, size):
    rows = len(set(keys)) + len(set(values))
    return rows * groups * width * size


def shared_heads(rows, H):
    G = rows.shape[2]
    return rows.repeat_interleave(H // G, 2)  # (B, S, H, D)


def deep_step(q, k, keys, value):
    keys = torch.cat([keys, k], 1)  # (B, S + 1, H, D)
    scores = torch.einsum("bthd,bshd->bhts", q, keys) / q.shape[-1] ** 0.5  # (B, H, 1, S + 1)
    y = torch.einsum("bhts,bshd->bthd", scores.softmax(-1), value)  # (B, 1, H, D)
    return y, keys


def value_table(model):
    x = norm(model.embed.weight)  # (V, C): the stream of every token, before any layer
    return model.layers[0].value(norm(x))  # (V, C)
