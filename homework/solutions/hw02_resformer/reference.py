"""hw02, solved the way the notebooks write it."""

import torch


def importance_entropy(A):
    p = A.mean((0, 1))  # (T,): over heads and queries; sums to 1 as rows do
    return -torch.xlogy(p, p).sum()


def token_similarity(h):
    unit = h / h.norm(dim=1, keepdim=True)  # (T,C)
    cosines, T = unit @ unit.T, len(h)
    return (cosines.sum() - cosines.trace()) / (T * (T - 1))


def spectrum(v):
    return torch.linalg.eigvalsh(v.T @ v / len(v)).sort(descending=True).values  # (D,)


def causal_scores(q, k):
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (B,T,T)
    return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), float("-inf"))


def cross_layer(q, k, v, k_m, v_m):
    scores = torch.cat([causal_scores(q, k), causal_scores(q, k_m)], -1)  # (B,T,2T)
    return scores.softmax(-1) @ torch.cat([v, v_m], 1)


def resformer(x, wq, wk, wv, wo):
    v1 = x @ wv[0]  # (B,T,C)
    for n in range(len(wq)):
        v = (x @ wv[n] + v1) / 2  # in the first layer this is v1
        x = x + causal_scores(x @ wq[n], x @ wk[n]).softmax(-1) @ v @ wo[n]
    return x


def neutreno(A, v, v1, lam):
    return A @ v + lam * (v1 - v)


def denseformer(x, w, a):
    X = [x]
    for n in range(len(w)):
        X.append(x + torch.tanh(x @ w[n]))
        x = sum(a[n, j] * X[j] for j in range(n + 2))
    return x


def predict_entropies():
    return 7.62, 0.0, 7.2


def ones_counter_example():
    """Everyone sees only itself; still the first row of J V contains the last value."""
    v = torch.eye(3)
    v2 = v.clone()
    v2[2] = 5.0
    return torch.eye(3), v, v2, 0.4


def best_mix(q, k, v, k_m, v_m):
    A = causal_scores(q, k).softmax(-1)  # (B,T,T)
    columns = torch.stack([(A @ v).flatten(), (A @ v_m).flatten()], 1)  # (B T D, 2)
    target = cross_layer(q, k, v, k_m, v_m).flatten()
    return torch.linalg.lstsq(columns, target[:, None]).solution.flatten()
