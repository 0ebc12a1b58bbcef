"""What is attention, index by index? The slow float64 forms that oracles share: one sum a line,
nothing clever."""

import numpy as np


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


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


def weights(
    q, k, causal=True, root=True, late=0, transposed=False, scale=None, after=False, seen=None
):
    """(T, S) weights of one head; the T queries are the last T of S positions, and see what `seen`
    (T, S) allows. The other switches make wrong answers: `late` shifts the mask, `transposed`
    normalises over the queries, `after` masks behind the softmax."""
    (T, D), S = q.shape, len(k)
    divisor = scale or (np.sqrt(D) if root else 1)
    scores, hidden = np.zeros((T, S)), np.zeros((T, S), bool)
    for t in range(T):
        for s in range(S):
            scores[t, s] = sum(q[t, d] * k[s, d] for d in range(D)) / divisor
            hidden[t, s] = causal and s > t + S - T + late
            hidden[t, s] |= seen is not None and not seen[t, s]
    if after:
        return np.stack([softmax(row) for row in scores]) * ~hidden
    scores[hidden] = -np.inf
    if transposed:
        return np.stack([softmax(column) for column in scores.T], 1)
    return np.stack([softmax(row) for row in scores])


def attention(q, k, v, turns=False, seen=None, **how):
    """(B,T,H,D) from q (B,T,H,D) and k, v (B,S,G,D): query head h reads key head h // (H // G) (by
    turns: h % G). `seen` (B,T,S), where it is given, is a mask of its own for every text."""
    B, T, H, _ = q.shape
    G, out = k.shape[2], np.zeros((B, T, H, v.shape[-1]))
    for b in range(B):
        for h in range(H):
            g = h % G if turns else h // (H // G)
            mask = None if seen is None else seen[b]
            A = weights(q[b, :, h], k[b, :, g], seen=mask, **how)
            for t in range(T):
                out[b, t, h] = sum(A[t, s] * v[b, s, g] for s in range(k.shape[1]))
    return out
