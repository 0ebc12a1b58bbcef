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


def expected_sharing(last, count, rows, each, heads):
    last, count = last.tolist(), count.tolist()
    alone = (1 - 1 / rows) ** (len(last) - 1)
    owned = 0
    for name, times in zip(last, count):
        rivals = last.count(name) - 1
        owned += times * (1 - (1 - 1 / each) ** rivals) ** heads
    return (1 - alone) ** heads, owned / sum(count)


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


def mixed_values(streams, first, second, fixed, w):
    weights, values = [], []
    for t in range(streams.shape[1]):
        hidden = torch.nn.functional.gelu(first @ normed(streams[-1, t]))
        a = second @ hidden + fixed
        weights.append(a)
        values.append(w @ normed(a @ streams[:, t]))
    return torch.stack(weights), torch.stack(values)


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
