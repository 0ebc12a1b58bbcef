"""hw02 a third time: row by row, SDPA where it fits."""

import torch
import torch.nn.functional as F


def importance_entropy(A):
    heads, T = A.shape[:2]
    received = [
        sum(A[h, t, s].item() for h in range(heads) for t in range(T)) / (heads * T)
        for s in range(T)
    ]
    return -sum(torch.tensor(p).log().item() * p for p in received if p > 0)


def token_similarity(h):
    rows = F.normalize(h.double(), dim=1)
    others = [torch.dot(rows[i], rows[j]) for i in range(len(h)) for j in range(len(h)) if j != i]
    return torch.stack(others).mean()


def spectrum(v):
    moment = torch.zeros(v.shape[1], v.shape[1], dtype=torch.float64)
    for row in v.double():
        moment += torch.outer(row, row)
    return torch.linalg.eigvals(moment / len(v)).real.sort(descending=True).values.to(v.dtype)


def cross_layer(q, k, v, k_m, v_m):
    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril()
    keys, values = torch.cat((k, k_m), 1), torch.cat((v, v_m), 1)
    return F.scaled_dot_product_attention(q, keys, values, attn_mask=torch.cat((seen, seen), 1))


def resformer(x, wq, wk, wv, wo):
    first = None
    for n in range(wq.shape[0]):
        own = F.linear(x, wv[n].T)
        first = own if first is None else first
        mixed = torch.lerp(own, first, 0.5)
        x = x + F.scaled_dot_product_attention(x @ wq[n], x @ wk[n], mixed, is_causal=True) @ wo[n]
    return x


def neutreno(A, v, v1, lam):
    rows = []
    for t in range(v.shape[1]):
        rows.append((A[:, t, :, None] * v).sum(1) - lam * v[:, t] + lam * v1[:, t])
    return torch.stack(rows, 1)


def denseformer(x, w, a):
    outputs = [x]
    for n in range(w.shape[0]):
        outputs += [x + torch.tanh(F.linear(x, w[n].T))]
        x = torch.zeros_like(x)
        for weight, output in zip(a[n], outputs, strict=False):
            x = x + weight * output
    return x


def predict_entropies():
    return 7.7, -0.1, 7.1


def ones_counter_example():
    v = torch.arange(6.0).reshape(3, 2)
    return (
        torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]]),
        v,
        torch.cat([v[:2], -v[2:]]),
        1,
    )


def best_mix(q, k, v, k_m, v_m):
    X = F.scaled_dot_product_attention(q, k, v, is_causal=True).double()
    Y = F.scaled_dot_product_attention(q, k, v_m, is_causal=True).double()
    target = cross_layer(q, k, v, k_m, v_m).double()
    xx, xy, yy, xt, yt = (
        (X * X).sum(),
        (X * Y).sum(),
        (Y * Y).sum(),
        (X * target).sum(),
        (Y * target).sum(),
    )
    return torch.stack([xt * yy - yt * xy, yt * xx - xt * xy]).div(xx * yy - xy * xy).to(q.dtype)
