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
    """One softmax over several layers' keys."""
    T = q.shape[1]
    scores = [
        einsum("btd,bsd->bts", q, k) * q.shape[-1] ** -0.5 + torch.full((T, T), -torch.inf).triu(1)
        for k in keys
    ]
    weights = torch.stack(scores, 2).flatten(2).softmax(-1).unflatten(2, (len(keys), T))
    return einsum("btns,nbsd->btd", weights, torch.stack(values))


def cross_layer(q, k, v, k_m, v_m):
    return attend(q.double(), (k.double(), k_m.double()), (v.double(), v_m.double())).to(q.dtype)


def resformer(x, wq, wk, wv, wo):
    kind, x = x.dtype, x.double()
    values = []
    for q, k, v, o in zip(*(w.double() for w in (wq, wk, wv, wo)), strict=True):
        values.append(x @ v)
        x = x + attend(x @ q, (x @ k,), (0.5 * values[0] + 0.5 * values[-1],)) @ o
    return x.to(kind)


def neutreno(A, v, v1, lam):
    T, S = A.shape[-2:]
    own = torch.eye(S, dtype=A.dtype)[S - T :]  # (T,S)
    corrected = A - einsum("h,ts->hts", lam, own)
    return einsum("bhts,bshd->bthd", corrected, v) + einsum("h,ts,bshd->bthd", lam, own, v1)


def denseformer(x, w, a):
    seen = x[None]
    for n, matrix in enumerate(w):
        seen = torch.cat([seen, (x + (x @ matrix).tanh())[None]])
        x = einsum("j,jbtc->btc", a[n, : len(seen)], seen)
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
    streams = torch.stack([attend(q, (k,), (v,)), attend(q, (k,), (v_m,))])
    gram = einsum("ibtd,jbtd->ij", streams, streams)
    return torch.linalg.solve(
        gram, einsum("ibtd,btd->i", streams, cross_layer(q, k, v, k_m, v_m))
    ).to(kind)
