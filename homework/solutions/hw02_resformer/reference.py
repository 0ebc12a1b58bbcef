"""hw02, solved the way the notebooks write it."""

import torch


def importance_entropy(A):
    p = A.mean(0)  # (T,): what is received; sums to 1 as rows do
    return -torch.xlogy(p, p).sum()


def concentration(A, lengths):
    found = []
    for text, T in zip(A.mean(1), lengths.tolist(), strict=True):
        even = torch.ones_like(text[:T, :T]).tril()  # (T,T)
        even = even / even.sum(-1, keepdim=True)
        found.append(importance_entropy(even) - importance_entropy(text[:T, :T]))
    return torch.stack(found)


def token_similarity(h):
    B, T = h.shape[:2]
    sums = (h / h.norm(dim=-1, keepdim=True)).sum(1)  # (B,C)
    of_each, of_all = sums.square().sum(), sums.sum(0).square().sum()
    return (of_each - B * T) / (B * T * (T - 1)), (of_all - of_each) / (B * (B - 1) * T * T)


def needed(v, share):
    sizes = torch.linalg.eigvalsh(v.mT @ v).flip(-1)  # (B,D), the largest first
    held = sizes.cumsum(-1) / sizes.sum(-1, keepdim=True)
    return (held < share).sum(-1) + 1  # (B,)


def directions(v, share):
    return needed(v, share), needed(v - v.mean(1, keepdim=True), share)


def causal_scores(q, k):
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (B,T,T)
    return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))


def cross_layer(q, k, v):
    T, S = q.shape[1], k.shape[2]
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (M,B,T,S)
    seen = torch.arange(S) <= torch.arange(T)[:, None] + S - T  # (T,S)
    scores = scores.masked_fill(~seen, float("-inf")).permute(1, 2, 0, 3)  # (B,T,M,S)
    weights = scores.flatten(2).softmax(-1).view_as(scores)
    return torch.einsum("btms,mbsd->btd", weights, v), weights.sum(-1)


def resformer(x, wq, wk, wv, wo, lam):
    made = []
    for n in range(len(wq)):
        made.append(x @ wv[n])  # (B,T,C)
        v = sum(lam[n, m] * made[m] for m in range(n + 1))
        x = x + causal_scores(x @ wq[n], x @ wk[n]).softmax(-1) @ v @ wo[n]
    return x


def neutreno(A, v, v1, lam):
    own = (v1 - v)[:, v.shape[1] - A.shape[2] :]  # (B,T,H,D): the last T positions
    return torch.einsum("bhts,bshd->bthd", A, v) + lam[:, None] * own


def denseformer(x, w, a, dilation, period):
    X = [x]
    for n in range(len(w)):
        x = x + torch.tanh(x @ w[n])
        X.append(x)
        if (n + 1) % period == 0:
            x = sum(a[n, j] * X[j] for j in range(n + 1, -1, -dilation))
    return x


def predict_entropies():
    return 7.62, 4.5, 7.55


def formula_counter_example():
    """Everyone sees only itself; still the first row of J V contains the last value."""
    v = torch.eye(3)
    v2 = v.clone()
    v2[2] = 5.0
    return 3, torch.eye(3), v, v2, 0.4


def best_mix(q, k, v, k_m, v_m):
    A = causal_scores(q, k).softmax(-1)  # (B,T,T)
    columns = torch.stack([(A @ v).flatten(), (A @ v_m).flatten()], 1)  # (B T D, 2)
    target, _ = cross_layer(q, torch.stack([k_m, k]), torch.stack([v_m, v]))
    return torch.linalg.lstsq(columns, target.reshape(-1, 1)).solution.flatten()
