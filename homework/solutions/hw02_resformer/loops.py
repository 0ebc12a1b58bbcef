"""hw02 a third time: row by row, SDPA where it fits."""

import torch
import torch.nn.functional as F


def entropy(received):
    shares = [p / sum(received) for p in received]
    return -sum(p * torch.tensor(p).double().log().item() for p in shares if p > 0)


def concentration(A, lengths):
    found = []
    for text, T in zip(A.double(), lengths.tolist(), strict=True):
        received = [text[:, :T, s].sum().item() for s in range(T)]
        even = [sum(1 / (t + 1) for t in range(s, T)) for s in range(T)]
        found.append(entropy(even) - entropy(received))
    return torch.tensor(found, dtype=A.dtype)


def token_similarity(h):
    texts = F.normalize(h.double(), dim=-1).unbind(0)
    within, across = [], []
    for b, one in enumerate(texts):
        for c, other in enumerate(texts):
            for t in range(len(one)):
                for s in range(len(other)):
                    if b != c:
                        across.append(torch.dot(one[t], other[s]))
                    elif t != s:
                        within.append(torch.dot(one[t], other[s]))
    return torch.stack(within).mean(), torch.stack(across).mean()


def count(values, share):
    moment = torch.zeros(values.shape[1], values.shape[1], dtype=torch.float64)
    for row in values.double():
        moment += torch.outer(row, row)
    sizes = torch.linalg.eigvals(moment).real.sort(descending=True).values
    for n in range(1, len(sizes) + 1):
        if sizes[:n].sum() >= share * sizes.sum():
            return n


def directions(v, share):
    plain = [count(text, share) for text in v]
    centred = [count(text - text.mean(0), share) for text in v]
    return torch.tensor(plain), torch.tensor(centred)


def cross_layer(q, k, v):
    (M, _, S, _), T = k.shape, q.shape[1]
    seen = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    everywhere = torch.cat([seen] * M, 1)  # (T, M S)
    keys, values = torch.cat(k.unbind(), 1), torch.cat(v.unbind(), 1)  # (B, M S, D)
    read = F.scaled_dot_product_attention(q, keys, values, attn_mask=everywhere)
    whose = torch.eye(M, dtype=q.dtype).repeat_interleave(S, 0).expand(len(q), -1, -1)
    return read, F.scaled_dot_product_attention(q, keys, whose, attn_mask=everywhere)


def resformer(x, wq, wk, wv, wo, lam):
    made = []
    for n in range(wq.shape[0]):
        made.append(F.linear(x, wv[n].T))
        mixed = torch.zeros_like(x)
        for share, values in zip(lam[n], made, strict=False):
            mixed = mixed + share * values
        x = x + F.scaled_dot_product_attention(x @ wq[n], x @ wk[n], mixed, is_causal=True) @ wo[n]
    return x


def neutreno(A, v, v1, lam):
    late, rows = v.shape[1] - A.shape[2], []
    for t in range(A.shape[2]):
        heads = []
        for h, strength in enumerate(lam):
            heard = (A[:, h, t, :, None] * v[:, :, h]).sum(1)
            heads.append(heard + strength * (v1[:, late + t, h] - v[:, late + t, h]))
        rows.append(torch.stack(heads, 1))
    return torch.stack(rows, 1)


def denseformer(x, w, a, dilation, period):
    outputs = [x]
    for n in range(w.shape[0]):
        outputs += [x + torch.tanh(F.linear(x, w[n].T))]
        x = outputs[-1]
        if (n + 1) % period:
            continue
        x, j = torch.zeros_like(x), n + 1
        while j >= 0:
            x = x + a[n, j] * outputs[j]
            j -= dilation
    return x


def predict_entropies():
    return 7.7, 4.6, 7.5


def formula_counter_example():
    v = torch.arange(6.0).reshape(3, 2)
    A = torch.tensor([[1.0, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]])
    return torch.tensor(3), A, v, torch.cat([v[:2], -v[2:]]), 1


def best_mix(q, k, v, k_m, v_m):
    X = F.scaled_dot_product_attention(q, k, v, is_causal=True).double()
    Y = F.scaled_dot_product_attention(q, k, v_m, is_causal=True).double()
    target = cross_layer(q, torch.stack([k, k_m]), torch.stack([v, v_m]))[0].double()
    products = ((X, X), (X, Y), (Y, Y), (X, target), (Y, target))
    xx, xy, yy, xt, yt = ((a * b).sum() for a, b in products)
    return torch.stack([xt * yy - yt * xy, yt * xx - xt * xy]).div(xx * yy - xy * xy).to(q.dtype)
