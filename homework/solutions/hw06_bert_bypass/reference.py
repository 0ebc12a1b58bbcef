"""hw06, solved the way the notebooks write it."""

import re
import string
from collections import Counter

import torch


def bypass(x, wq, wk, wv, heads, lengths, alpha):
    past = alpha[:, None] * x.relu().unflatten(2, (heads, -1))  # (B,T,H,D)
    v = x @ wv + past.flatten(2)  # (B,T,C)
    q, k, v = (
        y.unflatten(2, (heads, -1)).transpose(1, 2) for y in (x @ wq, x @ wk, v)
    )  # (B,H,T,D)
    scores = q @ k.mT / q.shape[3] ** 0.5  # (B,H,T,T)
    padding = torch.arange(x.shape[1]) >= lengths[:, None]  # (B,T)
    weights = scores.masked_fill(padding[:, None, None], float("-inf")).softmax(3)
    return (weights @ v).transpose(1, 2).flatten(2)  # (B,T,C)


def mask_tokens(ids, draw, action, random_ids, special, starts, mask_id):
    places = torch.arange(ids.shape[1]).expand_as(ids)
    first = places.where(starts, 0).cummax(1).values  # (B,T): where the word of each piece begins
    draw, action = draw.gather(1, first), action.gather(1, first)
    chosen = (draw < 0.15) & ~special
    swapped = torch.where(action < 0.8, mask_id, torch.where(action < 0.9, random_ids, ids))
    return torch.where(chosen, swapped, ids), torch.where(chosen, ids, -100)


def best_span(start, end, context, longest, threshold):
    T = len(start)
    distance = torch.arange(T) - torch.arange(T)[:, None]  # (T,T): end minus start
    allowed = (distance >= 0) & (distance < longest) & context & context[:, None]
    scores = (start[:, None] + end).masked_fill(~allowed, float("-inf"))
    if scores.max() <= start[0] + end[0] + threshold:
        return 0, 0
    return divmod(scores.argmax().item(), T)


def words(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1_of(p, g):
    common = (Counter(p) & Counter(g)).total()
    return 2 * common / (len(p) + len(g)) if p or g else 1.0


def em_f1(prediction, golds):
    said, people = words(prediction), [words(gold) for gold in golds]
    f1 = max(f1_of(said, gold) for gold in people)
    person = []
    for i, gold in enumerate(people):
        others = people[:i] + people[i + 1 :]
        person.append(max((f1_of(gold, other) for other in others), default=1.0))
    return float(said in people), f1, sum(person) / len(person)


def best_windows(length, size, overlap):
    step = size - overlap
    starts = torch.tensor([0, *range(step, length - overlap, step)])
    left = torch.arange(length)[:, None] - starts  # (length, W)
    return starts, torch.minimum(left, size - 1 - left).argmax(1)


def variance_parts(streams, weights):
    parts = weights[:, None] * (streams - streams.mean(1, keepdim=True))  # (K,N)
    return parts @ parts.T / streams.shape[1]


def welch(a, mean, std, n):
    p, q = a.var() / len(a), std**2 / n
    return (mean - a.mean()) / (p + q).sqrt(), (p + q) ** 2 / (p**2 / (len(a) - 1) + q**2 / (n - 1))


def predict_statistics():
    return 0.34, 3.9


def variance_counter_example():
    """Minus the bypass, and one far input that relu does not see."""
    x = torch.tensor([-10.0, 0.0, 1.0, 2.0, 3.0])
    return torch.tensor([-3.0, 0.0, -1.0, -2.0, -3.0]), x, 0.5


def calming_alpha(v, r):
    covariance = (v * r).mean(0) - v.mean(0) * r.mean(0)  # (D,)
    best = (-covariance / r.var(0, unbiased=False)).relu()
    return best, 2 * best
