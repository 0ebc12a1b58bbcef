"""hw10, solved place by place: slow, and close to the sentences of the statement."""

import math

import torch

PRIME = 2**31 - 1


def name_to_slot(numbers, factors, total, rows):
    found = total
    for factor, number in zip(factors.tolist(), numbers):
        found += factor * number
    return found % PRIME % rows


def document_slots(ids, starts, factors, total, rows):
    slots = torch.zeros_like(ids)
    for b in range(ids.shape[0]):
        name = [0] * len(factors)  # newest first
        for t in range(ids.shape[1]):
            if starts[b, t]:
                name = [0] * len(factors)
            name = [ids[b, t].item() + 1, *name[:-1]]
            slots[b, t] = name_to_slot(name, factors, total, rows)
    return slots


def latent_step(q, q_turned, latent, turned, up_k, up_v, out):
    weights, mixed, y = [], [], 0
    root = math.sqrt(q.shape[1] + q_turned.shape[1])
    for h in range(len(q)):
        asked = up_k[h].T @ q[h]  # (C,)
        scores = (latent @ asked + turned @ q_turned[h]) / root
        weights.append(torch.softmax(scores, 0))
        mixed.append(weights[h] @ latent)
        y = y + out[:, h] @ up_v[h] @ mixed[h]
    return torch.stack(weights), torch.stack(mixed), y


def normed(x):
    return x / (x * x).mean().sqrt()


def turned(row, cos, sin):
    half = len(row) // 2
    x1, x2 = row[:half], row[half:]
    return torch.cat([x1 * cos + x2 * sin, x2 * cos - x1 * sin])


def turned_step(h, w_q, w_k, kept, cos, sin):
    B, S, G, D = kept.shape
    H = len(w_q) // D
    left = torch.zeros(B, S + 1, G, D, dtype=kept.dtype)
    left[:, :S] = kept
    y = torch.zeros(B, H, D, dtype=kept.dtype)
    for b in range(B):
        for g in range(G):
            left[b, S, g] = normed(turned(w_k[g * D : (g + 1) * D] @ h[b], cos, sin))
        for head in range(H):
            q = normed(turned(w_q[head * D : (head + 1) * D] @ h[b], cos, sin))
            keys = left[b, :, head // (H // G)]
            weights = torch.softmax(keys @ q / math.sqrt(D), 0)
            y[b, head] = turned(weights @ keys, cos, -sin)
    return y, left


def shares_taken(y, v, a):
    (B, T, H, _), (S, G) = y.shape, v.shape[1:3]
    left = y.clone()
    for b in range(B):
        for t in range(T):
            for head in range(H):
                own = v[b, S - T + t, head // (H // G)]
                along = (y[b, t, head] @ own) / (own @ own) * own
                left[b, t, head] -= torch.tanh(a[head]) * along
    return left


def predict_two_hashes():
    small = 1 - (1 - 1 / 500_000) ** 99_999
    return 1 - (1 - 1 / 1_000_000) ** 99_999, small * small


def false_counter_example():
    """Three tokens that look at all before them."""
    A = torch.ones(3, 3).tril()
    return 3, A / A.sum(1, keepdim=True), torch.ones(3), torch.tensor([0.1, 0.5, 0.9])


def slots_go_on(kept, ids, starts, factors, total, rows):
    slots, left = torch.zeros_like(ids), torch.zeros_like(kept)
    for b in range(ids.shape[0]):
        name = kept[b].tolist()  # oldest first
        for t in range(ids.shape[1]):
            name = [0] * len(name) if starts[b, t] else name
            name.append(ids[b, t].item() + 1)
            slots[b, t] = name_to_slot(name[::-1], factors, total, rows)
            name = name[1:]
        left[b] = torch.tensor(name)
    return slots, left
