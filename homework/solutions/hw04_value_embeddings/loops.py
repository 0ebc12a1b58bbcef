"""hw04 a third time: head by head, recursively, autograd where it fits."""

import torch


def table_of(layers, tables, without):
    reads, waiting = [-1] * layers, list(range(tables))
    for i in range(layers):
        if waiting and i not in without:
            reads[i] = waiting.pop(0)
    waiting = list(range(tables))
    for i in reversed(range(layers)):
        if waiting and i not in without:
            reads[i] = waiting.pop()
    return reads


def normal(v):
    heads = []
    for h in range(v.shape[2]):
        head = v[:, :, h]
        heads.append(head * head.shape[-1] ** 0.5 / head.norm(dim=-1, keepdim=True))
    return torch.stack(heads, 2)


def mixed_value(v, ve, s0, s1):
    out = normal(v).mul(s0)
    if ve is not None:
        B, T, H, D = v.shape
        G = ve.shape[-1] // D
        reads = [h * G // H for h in range(H)]
        out = out + torch.stack([ve[:, :, g * D : (g + 1) * D] for g in reads], 2) * s1
    return out


def unet(x0, w, lambdas, skips, weights):
    def output(i):
        if i < 0:
            return x0
        x = output(i - 1)
        for skip, weight in zip(skips, weights, strict=True):
            x = x + weight * output(skip[0]) if skip[1] == i else x
        x = x * lambdas[i][0] + x0 * lambdas[i][1]
        return x + (x @ w[i]).tanh()

    return output(len(w) - 1)


def gated_value(v, ve, x, w):
    heads = []
    for h in range(v.shape[2]):
        gate = 3 * torch.sigmoid((x[:, :, :12] * w[h]).sum(-1, keepdim=True))
        heads.append(v[:, :, h] + gate * ve[:, :, h])
    return torch.stack(heads, 2)


def contribution(v, ve, s0, s1):
    a, b = abs(s0), abs(s1)
    own, shares = a * v.shape[-1] ** 0.5, []
    for row in ve.reshape(-1, v.shape[-1]).double():
        other = b * row.norm().item()
        shares.append(other / (own + other))
    return 1 - a / (a + b), sum(shares) / len(shares)


def adam_pair(start, gradients, lr, beta1, beta2, eps):
    out = torch.empty_like(gradients)
    for j in range(2):
        p, m, s = start[j].item(), 0.0, 0.0
        for n, g in enumerate(gradients[:, j].tolist()):
            m += (1 - beta1) * (g - m)
            s += (1 - beta2) * (g * g - s)
            p -= lr * m / (1 - beta1 ** (n + 1)) / ((s / (1 - beta2 ** (n + 1))) ** 0.5 + eps)
            out[n, j] = p
    return out


def window(step, steps, longest, block):
    x = step / steps
    raw, found = longest * (4 * x * x * x - 6 * x * x + 3 * x), block
    while found < raw:
        found += block
    return found


def predict_lambdas():
    return [16.58, 61]


def skip_counter_example():
    x = torch.randn(8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return 2, x, x.flip(0), 0.3


def lambda_gradients(ids, table, v, s0, s1, dout):
    table, s0, s1 = (
        torch.as_tensor(x, dtype=v.dtype).clone().requires_grad_() for x in (table, s0, s1)
    )
    out = s0 * normal(v) + s1 * table[ids].reshape(v.shape)
    return torch.autograd.grad(out, (s0, s1, table), dout)
