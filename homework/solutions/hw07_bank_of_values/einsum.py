"""hw07 again: einsum, one-hot tokens, float64 inside."""

import torch
import torch.nn.functional as F
from torch import einsum

OF_V, OF_OTHER = "1a0000000haha", "001a1aa1ahbhb"  # for each row the share of V, and of v1 or vx


def chosen_by(rule, layers):
    every = torch.arange(layers)
    chosen = {
        "last third": 3 * every + 2 >= 2 * layers,
        "every second": (layers - 1 - every) % 2 == 0,
        "last half": 2 * every + 1 >= layers,
    }
    return chosen[rule]


def which_rules(picked, layers):
    mine = torch.zeros(layers, dtype=torch.bool)
    mine[picked] = True
    rules = ("last third", "every second", "last half")
    theirs = torch.stack([chosen_by(rule, layers) for rule in rules])  # (3,L)
    return (theirs == mine).all(1).long()


def value(row, layer, layers, v, v1, vx, a, b):
    rule = "every second" if row in (4, 7) else "last third"
    changed = layer > 0 if row == 3 else bool(chosen_by(rule, layers)[layer])
    numbers = {"0": 0.0, "1": 1.0, "h": 0.5, "a": a, "b": b}
    at = row - 1 if changed else 0
    shares = torch.tensor([numbers[OF_V[at]], numbers[OF_OTHER[at]]])
    streams = torch.stack([v, v1 if row in (3, 4, 5, 6, 10, 11) else vx])
    return einsum("s,s...->...", shares.to(v.dtype), streams)


def aligned_table(embedding, w):
    x0 = F.rms_norm(embedding.double(), embedding.shape[-1:], eps=0.0)
    return (einsum("vc,ncd->vd", x0, w.double()) / len(w)).to(embedding.dtype)


def bov_attention(q, k, ids, table, gamma):
    kind, q, k, table = q.dtype, q.double(), k.double(), table.double()
    one_hot = F.one_hot(ids, len(table)).double()
    q = q.unflatten(2, (k.shape[2], -1))  # (B,T,G,R,D)
    scores = einsum("btgrd,bsgd->bgrts", q, k) / q.shape[-1] ** 0.5
    T, S = scores.shape[-2:]
    scores = scores + torch.full((T, S), -torch.inf).triu(S - T + 1)
    masses = einsum("bgrts,bsv->bgrtv", scores.softmax(-1), one_hot)
    return (gamma * einsum("bgrtv,vgd->btgrd", masses, table)).flatten(2, 3).to(kind)


def histogram_decode(weights, ids, table, gamma):
    one_hot = F.one_hot(ids, table.shape[0]).to(weights.dtype)  # (B,S,V)
    tokens = one_hot.any(0).any(0).nonzero().squeeze(1)  # (U,)
    masses = einsum("bhs,bsu->bhu", weights, one_hot[..., tokens])
    return tokens, masses, einsum("bhu,uhd->bhd", masses, gamma * table[tokens])


def flops_and_tokens(layers, width, vocabulary, windows, without):
    square = width * width

    def cost(kept):
        matrices = (11 * layers + kept) * square + vocabulary * width
        return 6 * matrices + sum(12 * width * w for w in windows)

    mine = cost(layers - without)
    return mine, (cost(layers) - mine) / mine * 100


def saved_bytes(layers, tables, batch, tokens, vocabulary, value_width, width, size, id_size):
    gone = layers * (batch * tokens * value_width + width * value_width) * size
    new = tables * vocabulary * value_width * size + batch * tokens * id_size
    return gone - new


def predict_break_even():
    return [1800.0, 24.0]


def expressivity_counter_example():
    g = torch.Generator().manual_seed(0)
    return torch.randn(200, 16, generator=g), torch.randn(200, 8, generator=g)


def windowed_break_even(windows, batch, prompt, vocabulary):
    def rows(T):
        own = sum(min(T, w + 1) if w else T for w in windows)
        return batch * own + sum(min(prompt, max(0, w + 1 - T)) if w else prompt for w in windows)

    wanted = len(windows) * vocabulary
    # between these edges the held rows lie on straight lines
    edges = {1, *(w + 1 for w in windows if w), *(max(1, w + 1 - prompt) for w in windows if w)}
    for low, high in zip(sorted(edges), [*sorted(edges)[1:], None], strict=True):
        missing, slope = wanted - rows(low), rows(low + 1) - rows(low)
        if missing <= 0:
            return low
        T = low - (-missing // slope) if slope else None
        if T and (high is None or T <= high):
            return T
    return -1
