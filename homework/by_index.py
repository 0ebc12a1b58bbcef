"""What is attention, index by index? The slow float64 forms that oracles share: one sum a line,
nothing clever."""

import numpy as np


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normed(x):
    """Each row divided by the root of its mean square."""
    return x / np.sqrt((x**2).mean(-1, keepdims=True))


def units(h):
    return h / np.linalg.norm(h, axis=-1, keepdims=True)


def entropy_of(p):
    return -sum(x * np.log(x) if x > 0 else 0.0 for x in p)


def causal_weights(q, k):
    """(T, S) weights of one head; the T queries are the last T of S positions."""
    (T, D), S = q.shape, len(k)
    scores = np.array([[row @ key for key in k] for row in q]) / np.sqrt(D)
    for t in range(T):
        scores[t, t + S - T + 1 :] = -np.inf
    return softmax(scores)


def causal_attention(q, k, v):
    """(B,T,H,E) from q (B,T,H,D), k (B,S,G,D) and v (B,S,G,E): query head h reads key head
    h // (H // G)."""
    B, T, H, _ = q.shape
    share, out = H // k.shape[2], np.zeros((B, T, H, v.shape[-1]))
    for b, h in np.ndindex(B, H):
        out[b, :, h] = causal_weights(q[b, :, h], k[b, :, h // share]) @ v[b, :, h // share]
    return out
