"""hw06 again: einsum, float64 inside, counts as vectors."""

import string

import torch
from torch import einsum


def bypass(x, wq, wk, wv, heads, lengths, alpha):
    kind, (B, T, C), x = x.dtype, x.shape, x.double()
    q, k, v = (
        einsum("btc,chd->bthd", x, w.double().reshape(C, heads, C // heads)) for w in (wq, wk, wv)
    )
    v = v + einsum("h,bthd->bthd", alpha.double(), x.clamp(min=0).reshape(v.shape))
    scores = einsum("bthd,bshd->bhts", q, k) * (heads / C) ** 0.5
    for b, length in enumerate(lengths.tolist()):
        scores[b, :, :, length:] = -torch.inf
    return einsum("bhts,bshd->bthd", scores.softmax(-1), v).reshape(B, T, C).to(kind)


def mask_tokens(ids, draw, action, random_ids, special, starts, mask_id):
    # number the words of all rows together, and look up the dice of their first pieces
    word = starts.flatten().cumsum(0).reshape(ids.shape) - 1
    draw, action = draw[starts][word], action[starts][word]
    chosen = torch.logical_and(draw < 0.15, special.logical_not())
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    labels[chosen] = ids[chosen]
    inputs[chosen & (action < 0.8)] = mask_id
    swap = chosen & (action >= 0.8) & (action < 0.9)
    inputs[swap] = random_ids[swap]
    return inputs, labels


def best_span(start, end, context, longest, threshold):
    band = torch.ones(len(start), len(end), dtype=torch.bool).triu().tril(longest - 1)
    inside = einsum("s,e->se", context.double(), context.double()).bool()
    scores = start.double().unsqueeze(1) + end.double().unsqueeze(0)
    none = scores[0, 0] + threshold
    scores[~(band & inside)] = -torch.inf
    place = torch.tensor([scores.max(1).values.argmax(), scores.max(0).values.argmax()])
    return place * (scores.max() > none)


def em_f1(prediction, golds):
    table = str.maketrans("", "", string.punctuation)

    def clean(text):
        return [w for w in text.lower().translate(table).split() if w not in ("a", "an", "the")]

    texts = [clean(text) for text in [prediction, *golds]]  # the prediction first
    vocabulary = sorted(set().union(*texts))
    counts = torch.tensor([[words.count(w) for w in vocabulary] for words in texts]).double()
    common = torch.minimum(counts[:, None], counts[None]).sum(-1)  # (1 + golds, 1 + golds)
    lengths = counts.sum(-1)
    both = lengths[:, None] + lengths
    f1 = torch.where(both > 0, 2 * common / both, 1.0)
    among = f1[1:, 1:].clone().fill_diagonal_(-1).amax(1)
    person = torch.where(among < 0, 1.0, among).mean()
    return float(texts[0] in texts[1:]), f1[0, 1:].max().item(), person.item()


def best_windows(length, size, overlap):
    count = max(1, -(-(length - overlap) // (size - overlap)))
    starts = torch.arange(count) * (size - overlap)
    middles = 2 * starts + size - 1  # in halves of a token
    off = (2 * torch.arange(length)[:, None] - middles).abs()  # nearest to a window's middle
    return starts, off.argmin(1)


def variance_parts(streams, weights):
    centred = streams.double() - streams.double().mean(1, keepdim=True)
    weights = weights.double()
    found = einsum("i,j,in,jn->ij", weights, weights, centred, centred) / streams.shape[1]
    return found.to(streams.dtype)


def welch(a, mean, std, n):
    numbers = torch.tensor([a.numel(), n], dtype=torch.float64)
    deviations = torch.stack([a.double().std(correction=1), torch.tensor(std).double()])
    errors, free = deviations.square() / numbers, numbers - 1
    return (mean - a.double().mean()) / errors.sum().sqrt(), errors.sum().square() / (
        errors.square() / free
    ).sum()


def predict_statistics():
    return torch.tensor([0.35, 3.7])


def variance_counter_example():
    x = torch.linspace(-6, 2, 81, dtype=torch.float64)
    return -2 * x.relu() - 2.5 * (x < -3), x, torch.tensor(0.7)


def calming_alpha(v, r):
    dv, dr = (x.double() - x.double().mean(0) for x in (v, r))
    slope = einsum("nd,nd->d", dv, dr) / einsum("nd,nd->d", dr, dr)
    best = torch.where(slope < 0, -slope, torch.zeros_like(slope)).to(v.dtype)
    return best, best + best
