"""hw06 a third time: sequence by sequence, pair by pair, SDPA where it fits."""

import statistics
import string

import torch
import torch.nn.functional as F


def bypass(x, wq, wk, wv, heads, lengths, alpha):
    D, outs = x.shape[2] // heads, []
    wide = torch.cat([a.expand(D) for a in alpha])  # (C,)
    for sequence, length in zip(x, lengths, strict=True):
        seen = sequence[:length]
        q, k, v = sequence @ wq, seen @ wk, seen @ wv + wide * F.relu(seen)
        parts = zip(q.split(D, 1), k.split(D, 1), v.split(D, 1), strict=True)
        outs.append(torch.cat([F.scaled_dot_product_attention(*part) for part in parts], 1))
    return torch.stack(outs)


def mask_tokens(ids, draw, action, random_ids, special, starts, mask_id):
    inputs, labels = ids.clone(), ids.clone()
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1]):
            if starts[b, t]:
                chance, fate = draw[b, t], action[b, t]
            if special[b, t] or chance >= 0.15:
                labels[b, t] = -100
            elif fate < 0.8:
                inputs[b, t] = mask_id
            elif fate < 0.9:
                inputs[b, t] = random_ids[b, t]
    return inputs, labels


def best_span(start, end, context, longest, threshold):
    T = len(start)
    pairs = [
        (s, e) for s in range(T) for e in range(s, min(s + longest, T)) if context[s] and context[e]
    ]

    def score(pair):
        return start[pair[0]].item() + end[pair[1]].item()

    best = max(pairs, key=score)
    return best if score(best) - score((0, 0)) > threshold else (0, 0)


def clean(text):
    for mark in string.punctuation:
        text = text.replace(mark, "")
    return [word for word in text.lower().split() if word not in {"a", "an", "the"}]


def overlap_of(said, wanted):
    left, common = list(wanted), 0
    for word in said:
        if word in left:
            left.remove(word)
            common += 1
    total = len(said) + len(wanted)
    return 2 * common / total if total else 1.0


def em_f1(prediction, golds):
    best, people = [0.0, 0.0], []
    for i, gold in enumerate(golds):
        said, wanted, person = clean(prediction), clean(gold), None
        best = [max(best[0], float(said == wanted)), max(best[1], overlap_of(said, wanted))]
        for j, other in enumerate(golds):
            if i != j:
                person = max(person or 0.0, overlap_of(wanted, clean(other)))
        people.append(1.0 if person is None else person)
    return *best, sum(people) / len(people)


def best_windows(length, size, overlap):
    starts = [0]
    while length > starts[-1] + size:
        starts += [starts[-1] + size - overlap]
    best, w = [], 0
    for t in range(length):
        # the next window is better as soon as its left side is longer than this one's right side
        while w + 1 < len(starts) and t - starts[w + 1] > starts[w] + size - 1 - t:
            w += 1
        best.append(w)
    return starts, best


def variance_parts(streams, weights):
    out = torch.empty(len(streams), len(streams), dtype=streams.dtype)
    for i, (x, a) in enumerate(zip(streams, weights, strict=True)):
        for j, (y, b) in enumerate(zip(streams, weights, strict=True)):
            out[i, j] = a * b * ((x - x.mean()) * (y - y.mean())).mean()
    return out


def welch(a, mean, std, n):
    a = a.tolist()
    p, q = statistics.variance(a) / len(a), std * std / n
    t = (mean - statistics.mean(a)) / (p + q) ** 0.5
    return t, (p + q) ** 2 / (p * p / (len(a) - 1) + q * q / (n - 1))


def predict_statistics():
    return [0.30, 4.1]


def variance_counter_example():
    v = torch.tensor([0.0, 3.0, 2.0, 1.0, 0.0, 0.0])
    return v, torch.tensor([-20.0, 0.0, 1.0, 2.0, 3.0, 3.0]), 0.5


def calming_alpha(v, r):
    best = []
    for a, b in zip(v.T.double(), r.T.double(), strict=True):
        matrix = torch.cov(torch.stack([a, b]))
        best.append(max(0.0, (-matrix[0, 1] / matrix[1, 1]).item()))
    best = torch.tensor(best, dtype=v.dtype)
    return best, 2 * best
