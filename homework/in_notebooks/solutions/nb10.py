"""Notebook 10, solved."""

import torch


def bank_layer(q, k, ids, table, gain, scale):
    T, S = q.shape[1], k.shape[1]
    # who listens to whom: from the context
    scores = scale * torch.einsum("bthd,bshd->bhts", q, k)  # (B, H, T, S)
    visible = torch.arange(S) <= torch.arange(T)[:, None] + S - T  # (T, S)
    weights = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    # what is handed over: by the token
    v = table[ids]  # (B, S, H, D)
    return gain * torch.einsum("bhts,bshd->bthd", weights, v)


def cached_bytes(layers, kv_width, number, id):
    keys = len(layers)
    values = sum(word.startswith("own") for word in layers)
    ids = int("E" in layers)  # once, for all layers
    return (keys + values) * kv_width * number + ids * id


def break_even(vocabulary, batch, rows):
    tables = vocabulary * len(rows)
    T = 1
    while batch * sum(T if row is None else min(T, row) for row in rows) <= tables:
        T += 1
    return T


def read_by_token(weights, ids, table):
    mass = weights.new_zeros(*weights.shape[:2], len(table))  # (B, H, V)
    index = ids[:, None].expand_as(weights).long()  # (B, H, S)
    mass.scatter_add_(-1, index, weights)
    return torch.einsum("bhv,vhd->bhd", mass, table)
