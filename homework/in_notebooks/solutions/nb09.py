"""Notebook 09, solved."""

import torch.nn.functional as F


def row_8(n, chosen, h, x0, W):
    stream = x0 if n in chosen else h  # (B, T, C)
    return F.linear(stream, W)  # (B, T, E)


def four_ways(V, other, a, b):
    row_2 = a * V  # (B, T, G, D) each
    row_6 = a * other
    row_10 = (V + other) / 2
    row_11 = a * V + b * other
    return row_2, row_6, row_10, row_11


def equal_width(layers, width, hidden, extra):
    a_unit = 2 * width * layers  # a row of W_in and a column of W_out, in every layer
    return round(hidden - extra / a_unit)


def explained(y, ids):
    _, group, times = ids.unique(return_inverse=True, return_counts=True)
    sums = y.new_zeros(len(times), y.shape[1]).index_add_(0, group, y)  # (tokens, F)
    means = sums / times[:, None]
    within = (y - means[group]).square().sum() / (len(y) - len(times))
    whole = (y - y.mean(0)).square().sum() / (len(y) - 1)
    return 1 - (within / whole).item()
