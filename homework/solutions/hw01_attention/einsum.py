"""hw01 again: einsum, float64 inside, complex rotations."""

import torch
from torch import einsum


def causal_mask(T, S):
    return torch.ones(S, S, dtype=torch.bool).tril()[S - T :]


def attention(q, k, v, causal):
    scores = (
        einsum("bthd,bshd->bhts", q.double(), k.double())
        / torch.tensor(q.shape[-1]).double().sqrt()
    )
    if causal:
        scores += torch.zeros_like(scores).masked_fill(
            causal_mask(*scores.shape[-2:]).logical_not(), -torch.inf
        )
    weights = torch.exp(scores - scores.logsumexp(-1, keepdim=True))
    return einsum("bhts,bshe->bthe", weights, v.double()).to(q.dtype)


def rope(x, positions, base):
    D = x.shape[-1]
    pairs = torch.complex(*x.double().chunk(2, -1))
    angle = torch.outer(positions.double(), base ** (-torch.arange(0, D, 2).double() / D))
    turned = pairs * torch.polar(torch.ones_like(angle), -angle)[None, :, None]
    return torch.cat([turned.real, turned.imag], -1).to(x.dtype)


def online_softmax(scores, values, tile):
    kind, scores, values = scores.dtype, scores.double(), values.double()
    state = None
    seen = []
    for start in range(0, scores.shape[1], tile):
        s = scores[:, start : start + tile]
        m = s.max(1).values
        p = (s - m[:, None]).exp()
        here = (m, einsum("ts->t", p), einsum("ts,se->te", p, values[start : start + tile]))
        if state is not None:
            m = torch.stack([state[0], here[0]]).max(0).values
            a, b = torch.exp(state[0] - m), torch.exp(here[0] - m)
            here = (m, a * state[1] + b * here[1], a[:, None] * state[2] + b[:, None] * here[2])
        state = here
        seen.append(here[:2])
    maxima, sums = (torch.stack(x).to(kind) for x in zip(*seen, strict=True))
    return (state[2] / state[1][:, None]).to(kind), maxima, sums


def merge(out_a, lse_a, out_b, lse_b):
    both = torch.stack([lse_a, lse_b]).double()
    shares = both.softmax(0)
    out = einsum("n...,n...e->...e", shares, torch.stack([out_a, out_b]).double())
    return out.to(out_a.dtype), both.logsumexp(0).to(out_a.dtype)


def decode_step(q, k, v, k_cache, v_cache):
    S = k_cache.shape[1]
    keys, values = (torch.empty(*x.shape[:1], S + 1, *x.shape[2:], dtype=x.dtype) for x in (k, v))
    keys[:, :S], keys[:, S:], values[:, :S], values[:, S:] = k_cache, k, v_cache, v
    return attention(q, keys, values, True), keys, values


def flops_per_token(layers, width, vocabulary, context):
    weights = sum([4 * width * width, 2 * 4 * width * width]) * layers + vocabulary * width
    return 2 * (1 + 2) * (weights + layers * 2 * width * context)


def predict_sharpness():
    return [0.75, 0.08]


def mask_counter_example():
    q = torch.zeros(2, 4, dtype=torch.float64)
    k, v = q + 1, torch.tensor([[0], [1]])
    return q, k, v, q, k, 3 * v


def tile_backward(q, k, v, out, lse, dout):
    kind, (q, k, v, out, lse, dout) = q.dtype, (x.double() for x in (q, k, v, out, lse, dout))
    P = torch.exp(einsum("td,sd->ts", q, k) / q.shape[1] ** 0.5 - lse.unsqueeze(1))
    dS = (
        P
        * (einsum("te,se->ts", dout, v) - einsum("te,te->t", dout, out)[:, None])
        / q.shape[1] ** 0.5
    )
    found = einsum("ts,sd->td", dS, k), einsum("ts,td->sd", dS, q), einsum("ts,te->se", P, dout)
    return tuple(x.to(kind) for x in found)
