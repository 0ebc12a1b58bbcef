"""hw04 again: einsum, float64 inside, PyTorch's own norm and optimizer."""

import torch
import torch.nn.functional as F
from torch import einsum


def table_of(layers, tables, without):
    able = torch.ones(layers, dtype=torch.long)
    able[without] = 0
    below, above = able.cumsum(0) - able, able.flip(0).cumsum(0).flip(0)  # above: itself included
    late = torch.where(above <= tables, tables - above, -1)
    return torch.where(able == 0, -1, torch.where(below < tables, below, late))


def mixed_value(v, ve, s0, s1):
    streams, scales = [F.rms_norm(v.double(), v.shape[-1:], eps=0.0)], [s0]
    if ve is not None:
        rows = ve.unflatten(-1, (-1, 1, v.shape[-1])).double()  # (B,T,G,1,D)
        each = v.shape[2] // rows.shape[2]
        streams.append(rows.expand(-1, -1, -1, each, -1).flatten(2, 3))
        scales.append(s1)
    return einsum("n,nbthd->bthd", torch.tensor(scales).double(), torch.stack(streams)).to(v.dtype)


def unet(x0, w, lambdas, skips, weights):
    kind, x0, w, lambdas = x0.dtype, x0.double(), w.double(), lambdas.double()
    ends = {}
    for n, (a, b) in enumerate(skips):
        ends.setdefault(b, []).append((a, weights[n].double()))
    stream, saved = x0.clone(), {}
    for i in range(w.shape[0]):
        for a, weight in ends.get(i, ()):
            stream = torch.add(stream, saved[a] * weight)
        stream = einsum("n,nbtc->btc", lambdas[i], torch.stack([stream, x0]))
        stream = saved[i] = stream + einsum("btc,cd->btd", stream, w[i]).tanh()
    return stream.to(kind)


def gated_value(v, ve, x, w):
    logits = einsum("btc,hc->bth", x.narrow(-1, 0, 12).double(), w.double())
    return (v + einsum("bth,bthd->bthd", 3 / (1 + torch.exp(-logits)), ve.double())).to(v.dtype)


def contribution(v, ve, s0, s1):
    lengths = (
        torch.stack([s0 * F.rms_norm(v, v.shape[-1:], eps=0.0), s1 * ve]).double().norm(dim=-1)
    )
    weights = torch.tensor([s0, s1]).abs()
    return (weights[1] / weights.sum()).item(), (lengths[1] / lengths.sum(0)).mean().item()


def adam_pair(start, gradients, lr, beta1, beta2, eps):
    p = torch.nn.Parameter(start.double().clone())
    optimizer = torch.optim.Adam([p], lr=lr, betas=(beta1, beta2), eps=eps)
    values = []
    for g in gradients:
        p.grad = g.double().clone()
        optimizer.step()
        values.append(p.detach().clone())
    return torch.stack(values).to(start.dtype)


def window(step, steps, longest, block):
    x = torch.tensor(step / steps, dtype=torch.float64)
    raw = longest * x * (3 + x * (4 * x - 6))
    return int(torch.clamp(torch.ceil(raw / block), min=1)) * block


def predict_lambdas():
    return torch.tensor([16.6, 59.0], dtype=torch.float64)


def skip_counter_example():
    return torch.tensor(2), torch.tensor([3.0, 4.0]), torch.tensor([0.0, 5.0]), torch.tensor(0.5)


def lambda_gradients(ids, table, v, s0, s1, dout):
    g = dout.double()
    ds0 = einsum("bthd,bthd->", g, F.rms_norm(v.double(), v.shape[-1:], eps=0.0))
    one_hot = F.one_hot(ids, len(table)).double()
    dve = einsum("btv,btc->vc", one_hot, g.flatten(2))
    ds1 = einsum("vc,vc->", dve, table.double())
    return tuple(x.to(v.dtype) for x in (ds0, ds1, s1 * dve))
