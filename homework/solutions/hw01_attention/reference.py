"""hw01, solved the way the notebooks write it."""

import torch


def causal_mask(T, S):
    return torch.arange(S) <= torch.arange(T)[:, None] + S - T  # (T,S)


def attention(q, k, v, causal):
    q, k, v = (
        q.transpose(1, 2),
        k.transpose(1, 2),
        v.transpose(1, 2),
    )  # (B,H,T,D), (B,H,S,D), (B,H,S,E)
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (B,H,T,S)
    if causal:
        scores = scores.masked_fill(~causal_mask(q.shape[2], k.shape[2]), float("-inf"))
    return (scores.softmax(-1) @ v).transpose(1, 2)  # (B,T,H,E)


def rope(x, positions, base):
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half, dtype=torch.float64) / half)  # (D/2,)
    angle = (positions[:, None] * frequencies)[:, None].to(x.dtype)  # (T,1,D/2)
    x1, x2 = x[..., :half], x[..., half:]
    return torch.cat([x1 * angle.cos() + x2 * angle.sin(), x2 * angle.cos() - x1 * angle.sin()], -1)


def online_softmax(scores, values, tile):
    m = torch.full_like(scores[:, 0], float("-inf"))  # (T,)
    total = torch.zeros_like(m)  # (T,)
    o = torch.zeros_like(scores[:, :1])  # (T,1), then (T,E)
    maxima, sums = [], []
    for s, v in zip(scores.split(tile, 1), values.split(tile), strict=True):  # (T,tile), (tile,E)
        new = torch.maximum(m, s.amax(1))
        shrink, p = (m - new).exp(), (s - new[:, None]).exp()
        total = total * shrink + p.sum(1)
        o = o * shrink[:, None] + p @ v
        m = new
        maxima.append(m)
        sums.append(total)
    return o / total[:, None], torch.stack(maxima), torch.stack(sums)


def merge(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    return out_a * (lse_a - lse).exp()[..., None] + out_b * (lse_b - lse).exp()[..., None], lse


def decode_step(q, k, v, k_cache, v_cache):
    k = torch.cat([k_cache, k], 1)  # (B,S+1,H,D)
    v = torch.cat([v_cache, v], 1)  # (B,S+1,H,D)
    return attention(q, k, v, False), k, v


def flops_per_token(layers, width, vocabulary, context):
    matrices = layers * 12 * width**2 + width * vocabulary
    return 6 * matrices + 12 * layers * width * context


def predict_sharpness():
    return 0.8, 0.06


def mask_counter_example():
    """Nothing changes but the last value; every query weighs it."""
    same, v = torch.eye(3), torch.eye(3)
    v[2] = 2.0
    return same, same, same, same, same, v


def tile_backward(q, k, v, out, lse, dout):
    scale = q.shape[-1] ** -0.5
    P = (q @ k.mT * scale - lse[:, None]).exp()  # (T,S)
    dP = dout @ v.mT  # (T,S)
    dS = P * (dP - (dout * out).sum(-1, keepdim=True)) * scale  # (T,S)
    return dS @ k, dS.mT @ q, P.mT @ dout
