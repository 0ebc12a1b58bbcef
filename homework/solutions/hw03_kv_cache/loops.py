"""hw03 a third time: head by head, position by position, SDPA where it fits."""

import torch
import torch.nn.functional as F


def owners(plan, windows, anchors):
    keys, values, seen = [], [], {}
    for n, window in enumerate(windows):
        first, anchor, pair, count = seen.get(window, (n, n, n, 0))
        anchor = n if n in anchors else anchor
        pair = n if count % 2 == 0 else pair
        seen[window] = first, anchor, pair, count + 1
        keys += [pair] if plan in {"cla", "share-k2"} else [n]
        values += [
            {"svformer": first, "anchors": anchor, "cla": pair, "share-v2": pair}.get(plan, n)
        ]
    return keys, values


def cache_bytes(plan, layers, batch, tokens, heads, groups, width, key_bits, value_bits):
    key, value = width * key_bits, width * value_bits
    key += 16 if key_bits < 16 else 0
    value += 16 if value_bits < 16 else 0
    bits = 0
    for n in range(layers):
        if plan == "svformer":
            bits += key + value * (n == 0)
        elif plan == "cla":
            bits += (key + value) * (n % 2 == 0)
        elif plan == "skipv1":
            bits += key + (value if n == 0 else value / 2)
        else:
            bits += key + value
    return int(bits * batch * tokens * groups) // 8


def grouped_attention(q, k, v):
    T, S, H, G = q.shape[1], k.shape[1], q.shape[2], k.shape[2]
    seen = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    outs = []
    for h in range(H):
        own, its = k[:, :, h * G // H], v[:, :, h * v.shape[2] // H]
        outs.append(F.scaled_dot_product_attention(q[:, :, h], own, its, attn_mask=seen))
    return torch.stack(outs, 2)


def skip_heads(v, v1):
    out, half = v1.clone(), v1.shape[2] // 2
    for h in range(half):
        out[:, :, h] = v[:, :, h * v.shape[2] // half]
    return out


def svformer(x, wq, wk, wv, wo):
    outs = []
    keys, value = x.new_zeros(len(wq), len(x), 0, x.shape[-1]), x.new_zeros(len(x), 0, x.shape[-1])
    for t in range(x.shape[1]):
        out, keys, value = svformer_step(x[:, t : t + 1], keys, value, wq, wk, wv, wo)
        outs.append(out)
    return torch.cat(outs, 1)


def svformer_step(x, keys, value, wq, wk, wv, wo):
    value = torch.cat([value, F.linear(x, wv.T)], 1)
    grown = ()
    for n in range(wq.shape[0]):
        k = torch.cat([keys[n], F.linear(x, wk[n].T)], 1)
        x = x + F.linear(F.scaled_dot_product_attention(F.linear(x, wq[n].T), k, value), wo[n].T)
        grown += (k,)
    return x, torch.stack(grown), value


def critical_point(method, baseline, window):
    before = None
    for k in range(len(method) - window + 1):
        now = (method[k : k + window] - baseline[k : k + window]).double().mean()
        if before is not None and before < 0 and now >= 0:
            return k
        before = now
    return -1


def predict_savings():
    return torch.tensor([36.0, 32.0, 3.0])


def ring_counter_example():
    q = torch.randn(3, generator=torch.Generator().manual_seed(0))
    return 3, q, torch.stack([8 * q, q, q, -q]), torch.tensor([[1.0], [0.0], [0.0], [0.0]]), 3


def windowed_bytes(key_owners, value_owners, windows, batch, tokens, groups, width, size):
    total = 0
    for reads in (key_owners, value_owners):
        for owner in range(len(windows)):
            longest = 0
            for reader in range(len(windows)):
                if reads[reader] == owner:
                    longest = max(
                        longest, tokens if not windows[reader] else min(windows[reader] + 1, tokens)
                    )
            total += longest
    return total * batch * groups * width * size
