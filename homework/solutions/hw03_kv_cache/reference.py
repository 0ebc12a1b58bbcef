"""hw03, solved the way the notebooks write it."""

import torch


def owners(plan, windows, anchors):
    keys, values = [], []
    for n, window in enumerate(windows):
        kind = [m for m in range(n + 1) if windows[m] == window]  # up to itself
        paired = kind[(len(kind) - 1) // 2 * 2]
        latest = max([m for m in kind if m in anchors], default=n)
        keys.append(paired if plan in ("cla", "share-k2") else n)
        value = {"svformer": kind[0], "cla": paired, "share-v2": paired, "anchors": latest}
        values.append(value.get(plan, n))
    return keys, values


def stream(rows, width, bits):
    return rows * (width * bits + (16 if bits < 16 else 0)) // 8  # bytes, with the scales


def cache_bytes(plan, layers, batch, tokens, heads, groups, width, key_bits, value_bits):
    rows = batch * tokens * groups
    key, value = stream(rows, width, key_bits), stream(rows, width, value_bits)
    if plan == "svformer":
        return layers * key + value
    if plan == "cla":
        return (layers + 1) // 2 * (key + value)
    if plan == "skipv1":
        return layers * key + value + (layers - 1) * value // 2
    return layers * (key + value)


def grouped_attention(q, k, v):
    (_, T, H, D), (S, G) = q.shape, k.shape[1:3]
    k = k.repeat_interleave(H // G, 2)  # (B,S,H,D)
    v = v.repeat_interleave(H // v.shape[2], 2)  # (B,S,H,E)
    scores = q.transpose(1, 2) @ k.permute(0, 2, 3, 1) / D**0.5  # (B,H,T,S)
    seen = torch.arange(S) <= torch.arange(T)[:, None] + S - T
    weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
    return (weights @ v.transpose(1, 2)).transpose(1, 2)  # (B,T,H,E)


def skip_heads(v, v1):
    half = v1.shape[2] // 2
    own = v.repeat_interleave(half // v.shape[2], 2)  # (B,T,H/2,D)
    return torch.cat([own, v1[:, :, half:]], 2)  # (B,T,H,D)


def causal_weights(q, k):
    scores = q @ k.mT / q.shape[-1] ** 0.5  # (B,T,T)
    hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, float("-inf")).softmax(-1)


def svformer(x, wq, wk, wv, wo):
    v = x @ wv  # (B,T,C)
    for n in range(len(wq)):
        x = x + causal_weights(x @ wq[n], x @ wk[n]) @ v @ wo[n]
    return x


def svformer_step(x, keys, value, wq, wk, wv, wo):
    value = torch.cat([value, x @ wv], 1)  # (B,S+1,C)
    grown = []
    for n in range(len(wq)):
        k = torch.cat([keys[n], x @ wk[n]], 1)  # (B,S+1,C)
        scores = x @ wq[n] @ k.mT / x.shape[-1] ** 0.5  # (B,1,S+1)
        x = x + scores.softmax(-1) @ value @ wo[n]
        grown.append(k)
    return x, torch.stack(grown), value


def critical_point(method, baseline, window):
    smooth = (method - baseline).unfold(0, window, 1).mean(-1)  # (N - window + 1,)
    turns = ((smooth[:-1] < 0) & (smooth[1:] >= 0)).nonzero()
    return turns[0].item() + 1 if len(turns) else -1


def predict_savings():
    return 37.5, 33.7, 4.0


def ring_counter_example():
    """Three keys, a window of 2: the oldest is still visible, matches the query, and has a value of
    its own."""
    return 3, torch.tensor([4.0]), torch.tensor([[4.0], [0.0], [0.0]]), torch.eye(3), 2


def windowed_bytes(key_owners, value_owners, windows, batch, tokens, groups, width, size):
    needs = [tokens if w == 0 else min(tokens, w + 1) for w in windows]
    rows = 0
    for reads in (key_owners, value_owners):
        for owner in set(reads):
            rows += max(need for need, read in zip(needs, reads, strict=True) if read == owner)
    return rows * batch * groups * width * size
