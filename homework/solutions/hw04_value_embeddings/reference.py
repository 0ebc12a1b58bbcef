"""hw04, solved the way the notebooks write it."""

import math

import torch


def rms(x):
    return x / x.square().mean(-1, keepdim=True).sqrt()


def table_of(layers, tables, without):
    able = [i for i in range(layers) if i not in without]
    reads = [-1] * layers
    for t in range(tables):
        reads[able[t]] = reads[able[t - tables]] = t
    return reads


def mixed_value(v, ve, s0, s1):
    own = s0 * rms(v)  # (B,T,H,D), each head by itself
    if ve is None:
        return own
    ve = ve.unflatten(-1, (-1, v.shape[-1]))  # (B,T,G,D)
    return own + s1 * ve.repeat_interleave(v.shape[2] // ve.shape[2], 2)


def unet(x0, w, lambdas, skips, weights):
    x, out = x0, []
    for i in range(len(w)):
        for (source, end), weight in zip(skips, weights, strict=True):
            if end == i:
                x = x + weight * out[source]
        x = lambdas[i, 0] * x + lambdas[i, 1] * x0
        x = x + torch.tanh(x @ w[i])
        out.append(x)
    return x


def gated_value(v, ve, x, w):
    gate = 3 * torch.sigmoid(x[..., :12] @ w.T)  # (B,T,H)
    return v + gate[..., None] * ve


def contribution(v, ve, s0, s1):
    own = abs(s0) * rms(v).norm(dim=3)  # (B,T,H)
    other = abs(s1) * ve.norm(dim=3)  # (B,T,H)
    return abs(s1) / (abs(s0) + abs(s1)), (other / (own + other)).mean()


def adam_pair(start, gradients, lr, beta1, beta2, eps):
    p, m, s, values = start, torch.zeros_like(start), torch.zeros_like(start), []
    for n, g in enumerate(gradients, 1):
        m = beta1 * m + (1 - beta1) * g
        s = beta2 * s + (1 - beta2) * g**2
        p = p - lr * (m / (1 - beta1**n)) / ((s / (1 - beta2**n)).sqrt() + eps)
        values.append(p)
    return torch.stack(values)


def window(step, steps, longest, block):
    x = step / steps
    return block * max(1, math.ceil(longest * (4 * x**3 - 6 * x**2 + 3 * x) / block))


def predict_lambdas():
    return 16.6, 60


def skip_counter_example():
    """In the middle the two rules are farthest apart: 20 against 28.6 per cent."""
    return 2, torch.ones(4), -torch.ones(4), 0.4


def lambda_gradients(ids, table, v, s0, s1, dout):
    ds0 = (dout * rms(v)).sum()
    ds1 = (dout * table[ids].reshape(v.shape)).sum()
    dtable = torch.zeros_like(table).index_add(0, ids.flatten(), s1 * dout.flatten(2).flatten(0, 1))
    return ds0, ds1, dtable
