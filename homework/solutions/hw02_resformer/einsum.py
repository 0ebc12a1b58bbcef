"""hw02 again: einsum, float64 inside, singular values."""

import torch
import torch.nn.functional as F
from torch import einsum


def concentration(A, lengths):
    rows = torch.arange(A.shape[-1])
    real = (rows < lengths[:, None]).double()  # (B,T)
    even = torch.ones(len(rows), len(rows)).tril().double() / (rows[:, None] + 1)
    received = einsum("bhqk,bq,bk->bk", A.double(), real, real)
    received = torch.stack([einsum("qk,bq,bk->bk", even, real, real), received])  # (2,B,T)
    found = torch.distributions.Categorical(probs=received).entropy()
    return (found[0] - found[1]).to(A.dtype)


def token_similarity(h):
    rows, text = h.double().flatten(0, 1), torch.arange(len(h)).repeat_interleave(h.shape[1])
    cosines = F.cosine_similarity(rows[:, None], rows[None], dim=-1)
    same, itself = text[:, None] == text, torch.eye(len(rows), dtype=torch.bool)
    return cosines[same & ~itself].mean().item(), cosines[~same].mean().item()


def directions(v, share):
    found = []
    for values in (v.double(), v.double() - einsum("btd->bd", v.double())[:, None] / v.shape[1]):
        shares = torch.linalg.svdvals(values) ** 2
        shares = shares / einsum("bn->b", shares)[:, None]
        found.append(1 + (shares.cumsum(1) < share).long().sum(1))
    return tuple(found)


def attend(q, keys, values):
    """One softmax over several layers' keys: what is read, and the maps (B,T,M,S)."""
    T, S = q.shape[1], keys.shape[2]
    scores = einsum("btd,mbsd->btms", q, keys) * q.shape[-1] ** -0.5
    scores = scores + torch.full((T, S), -torch.inf).triu(S - T + 1)[:, None]
    weights = scores.flatten(2).softmax(-1).unflatten(2, (len(keys), S))
    return einsum("btms,mbsd->btd", weights, values), weights


def cross_layer(q, k, v):
    read, weights = attend(q.double(), k.double(), v.double())
    return read.to(q.dtype), einsum("btms->btm", weights).to(q.dtype)


def resformer(x, wq, wk, wv, wo, lam):
    kind, x, values = x.dtype, x.double(), []
    for n, (q, k, v, o) in enumerate(zip(*(w.double() for w in (wq, wk, wv, wo)), strict=True)):
        values.append(x @ v)
        mixed = einsum("m,mbtc->btc", lam[n, : n + 1].double(), torch.stack(values))
        x = x + attend(x @ q, (x @ k)[None], mixed[None])[0] @ o
    return x.to(kind)


def neutreno(A, v, v1, lam):
    T, S = A.shape[-2:]
    own = torch.eye(S, dtype=A.dtype)[S - T :]  # (T,S)
    corrected = A - einsum("h,ts->hts", lam, own)
    return einsum("bhts,bshd->bthd", corrected, v) + einsum("h,ts,bshd->bthd", lam, own, v1)


def denseformer(x, w, a, dilation, period):
    seen = x[None]
    for n, matrix in enumerate(w):
        x = x + (x @ matrix).tanh()
        seen = torch.cat([seen, x[None]])
        if (n + 1) % period == 0:
            newest_first = torch.arange(n + 1, -1, -dilation)
            x = einsum("j,jbtc->btc", a[n, newest_first], seen[newest_first])
    return x


def predict_entropies():
    return torch.tensor([7.6, 4.4, 7.6])


def formula_counter_example():
    A = torch.tril(torch.ones(4, 4, dtype=torch.float64))
    v = torch.zeros(4, 1)
    v2 = v + torch.tensor([[0], [0], [0], [1]])
    return 3, A / A.sum(1, keepdim=True), v, v2, torch.tensor(0.1)


def best_mix(q, k, v, k_m, v_m):
    kind, (q, k, v, k_m, v_m) = q.dtype, (x.double() for x in (q, k, v, k_m, v_m))
    streams = torch.stack([attend(q, k[None], values[None])[0] for values in (v, v_m)])
    target, _ = cross_layer(q, torch.stack([k, k_m]), torch.stack([v, v_m]))
    gram = einsum("ibtd,jbtd->ij", streams, streams)
    return torch.linalg.solve(gram, einsum("ibtd,btd->i", streams, target)).to(kind)
