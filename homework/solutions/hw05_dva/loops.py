"""hw05 a third time: pair by pair where it is small, SDPA and autograd where they fit."""

import torch
import torch.nn.functional as F


def pair_values(v, qr, kr):
    H, G = v.shape[1], kr.shape[1]
    offers = []
    for h in range(H):
        mine = kr[:, h * G // H]  # (S,D)
        offers.append(torch.stack([v[:, h] + q * mine for q in qr[:, h]]))
    return torch.stack(offers, 2)


def dva(x, wq, wk, wv, wqr, wkr):
    q, k, out = x @ wq, x @ wk, 0
    gates = [torch.ones_like(x), *(x @ w for w in wqr)]
    for gate, stream in zip(gates, [x @ wv, *(x @ w for w in wkr)], strict=True):
        out = out + gate * F.scaled_dot_product_attention(q, k, stream, is_causal=True)
    return out


def pair_bytes(batch, tokens, width, size):
    pairs = torch.empty(batch, tokens, tokens, width, device="meta").numel()
    weights = torch.empty(batch, tokens, tokens, device="meta").numel()
    stream = torch.empty(batch, tokens, width, device="meta").numel()
    return pairs * size, (weights + 2 * stream) * size


def parameters(plan, layers, width, vocabulary, context):
    nn = torch.nn
    with torch.device("meta"):
        parts = [nn.Embedding(vocabulary, width), nn.Embedding(context, width)]
        parts += [nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)]
        for _ in range(layers):
            matrices = 3 if plan == "gpt2" else 5
            parts += [nn.LayerNorm(width)]
            parts += [nn.Linear(width, width, bias=False) for _ in range(matrices)]
            if plan == "gpt2":
                parts += [nn.LayerNorm(width)]
                parts += [nn.Linear(width, 4 * width), nn.Linear(4 * width, width)]
            if plan in ("gpt2", "dva-wo"):
                parts += [nn.Linear(width, width)]
    return sum(p.numel() for part in parts for p in part.parameters())


def dva_backward(A, v, qr, kr, dout):
    v, qr, kr = (x.clone().requires_grad_() for x in (v, qr, kr))
    out = (A[..., None] * pair_values(v, qr, kr)).sum(1)
    return torch.autograd.grad(out, (v, qr, kr), dout)


def dva_step(q, k, v, qr, kr, k_cache, v_cache, kr_cache):
    k, v, kr = (torch.cat(pair, 1) for pair in ((k_cache, k), (v_cache, v), (kr_cache, kr)))
    out = F.scaled_dot_product_attention(q, k, v) + qr * F.scaled_dot_product_attention(q, k, kr)
    return out, k, v, kr


def latent_set(w1, b1, w2, b2):
    keys = F.pad(torch.hstack([w1, b1.unsqueeze(1)]), (0, 0, 0, 1))
    keys[-1, -1] += 1
    return keys, torch.vstack([w2.mT, b2])


def predict_cost():
    return 1600.0, 41


def reading_counter_example():
    A = torch.zeros(3, 3, dtype=torch.float64)
    A[:, 1] = 1.0
    gates = torch.diag(torch.tensor([1.0, 5.0, 9.0]))
    return torch.tensor(2), A, torch.eye(3), gates, torch.ones(3, 3)


def dva_tiles(scores, v, qr, kr, tile):
    out, lse = None, None
    outs = []
    for s, a, b in zip(scores.split(tile, 1), v.split(tile), kr.split(tile), strict=True):
        here, here_lse = s.softmax(1) @ a + qr * (s.softmax(1) @ b), s.logsumexp(1)
        if out is None:
            out, lse = here, here_lse
        else:
            # linear in the weights: whole outputs can be merged
            share = torch.sigmoid(here_lse - lse)[:, None]
            out, lse = out + share * (here - out), torch.logaddexp(lse, here_lse)
        outs.append(out)
    return torch.stack(outs)
