"""hw02 again: einsum, float64 inside, singular values."""

import torch
import torch.nn.functional as F
from torch import einsum


def importance_entropy(A):
    p = einsum("hqk->k", A.double())
    return torch.distributions.Categorical(probs=p).entropy()


def token_similarity(h):
    cosines = F.cosine_similarity(h.double()[:, None], h.double()[None], dim=-1)
    return cosines[~torch.eye(len(h), dtype=torch.bool)].mean().item()


def spectrum(v):
    singular = torch.linalg.svdvals(v.double()) ** 2 / v.shape[0]
    return F.pad(singular, (0, v.shape[1] - len(singular))).to(v.dtype)


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
    return einsum("bts,bsd->btd", A - lam * torch.eye(A.shape[-1], dtype=A.dtype), v) + lam * v1


def denseformer(x, w, a):
    seen = x[None]
    for n, matrix in enumerate(w):
        seen = torch.cat([seen, (x + (x @ matrix).tanh())[None]])
        x = einsum("j,jbtc->btc", a[n, : len(seen)], seen)
    return x


def predict_entropies():
    return torch.tensor([7.6, 0.1, 7.25])


def ones_counter_example():
    A = torch.tril(torch.ones(4, 4, dtype=torch.float64))
    v = torch.zeros(4, 1)
    return A / A.sum(1, keepdim=True), v, v + torch.tensor([[0], [0], [0], [1]]), torch.tensor(0.1)


def best_mix(q, k, v, k_m, v_m):
    kind, (q, k, v, k_m, v_m) = q.dtype, (x.double() for x in (q, k, v, k_m, v_m))
    streams = torch.stack([attend(q, (k,), (v,)), attend(q, (k,), (v_m,))])
    gram = einsum("ibtd,jbtd->ij", streams, streams)
    return torch.linalg.solve(
        gram, einsum("ibtd,btd->i", streams, cross_layer(q, k, v, k_m, v_m))
    ).to(kind)
