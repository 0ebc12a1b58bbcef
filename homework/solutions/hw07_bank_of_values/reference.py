"""hw07, solved the way the notebooks write it."""

from bisect import bisect_left

import torch

WHERE = {4: "every second", 7: "every second"}


def targets(rule, layers):
    if rule == "every second":
        return [i for i in range(layers) if i % 2 == (layers - 1) % 2]
    return list(range(2 * layers // 3 if rule == "last third" else layers // 2, layers))


RULES = ("last third", "every second", "last half")


def which_rules(picked, layers):
    return [int(targets(rule, layers) == picked) for rule in RULES]


def value(row, layer, layers, v, v1, vx, a, b):
    chosen = range(1, layers) if row == 3 else targets(WHERE.get(row, "last third"), layers)
    if layer not in chosen:
        return v.clone()
    free = v1 if row in (3, 4, 5, 6, 10, 11) else vx
    if row in (10, 12):
        return (v + free) / 2
    if row in (11, 13):
        return a * v + b * free
    one = v if row in (1, 2) else free
    return a * one if row in (2, 4, 6, 7, 9) else one.clone()


def aligned_table(embedding, w):
    x0 = embedding / embedding.square().mean(1, keepdim=True).sqrt()  # (V,C)
    return x0 @ w.mean(0)  # the mean of the layers' tables


def bov_attention(q, k, ids, table, gamma):
    group = q.shape[2] // k.shape[2]
    k, v = (x.repeat_interleave(group, 2) for x in (k, table[ids]))  # (B,S,H,D)
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))  # (B,H,T,D), (B,H,S,D), (B,H,S,D)
    T, S = q.shape[2], k.shape[2]
    hidden = torch.arange(S) > torch.arange(T)[:, None] + S - T
    weights = (q @ k.mT / q.shape[3] ** 0.5).masked_fill(hidden, float("-inf")).softmax(-1)
    return gamma * (weights @ v).transpose(1, 2)  # (B,T,H,D)


def histogram_decode(weights, ids, table, gamma):
    B, H, S = weights.shape
    tokens, place = ids.unique(return_inverse=True)  # (U,), (B,S)
    masses = weights.new_zeros(B, H, len(tokens)).scatter_add(
        2, place[:, None].expand(B, H, S), weights
    )
    return tokens, masses, gamma * torch.einsum("bhu,uhd->bhd", masses, table[tokens])


def flops_and_tokens(layers, width, vocabulary, windows, without):
    standard = 6 * (12 * layers * width**2 + width * vocabulary) + 12 * width * sum(windows)
    mine = standard - 6 * without * width**2
    return mine, 100 * (standard / mine - 1)


def saved_bytes(layers, tables, batch, tokens, vocabulary, value_width, width, size, id_size):
    rows = layers * (batch * tokens + width) - tables * vocabulary
    return rows * value_width * size - batch * tokens * id_size


def predict_break_even():
    return 1861, 25


def expressivity_counter_example():
    """All four tokens have one embedding, and the table tells them apart."""
    return torch.ones(4, 2), torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])


def windowed_break_even(windows, batch, prompt, vocabulary):
    def rows(T):
        own = sum(T if w == 0 else min(T, w + 1) for w in windows)
        seen = sum(prompt if w == 0 else min(prompt, max(0, w + 1 - T)) for w in windows)
        return batch * own + seen

    wanted = len(windows) * vocabulary  # rows of all tables: long enough if anyone sees all
    T = bisect_left(range(wanted + 1), wanted, lo=1, key=rows)
    return T if T <= wanted else -1
