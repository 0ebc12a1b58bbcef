"""hw03 again: einsum and float64 inside, counts from sets of owners."""

import torch


def owners(plan, windows, anchors):
    rank = [windows[:n].count(window) for n, window in enumerate(windows)]  # within its window
    at = {(window, rank[n]): n for n, window in enumerate(windows)}
    made = [n in anchors for n in range(len(windows))]
    own, pair = lambda n: n, lambda n: at[windows[n], rank[n] // 2 * 2]
    table = {
        "svformer": (own, lambda n: at[windows[n], 0]),
        "cla": (pair, pair),
        "share-k2": (pair, own),
        "share-v2": (own, pair),
        "anchors": (own, lambda n: n if made[n] else value(at[windows[n], rank[n] - 1])),
    }
    key, value = table.get(plan, (own, own))
    layers = range(len(windows))
    return torch.tensor([[key(n) for n in layers], [value(n) for n in layers]])


def cache_bytes(plan, layers, batch, tokens, heads, groups, width, key_bits, value_bits):
    keys, values = (
        [0] * layers if plan == "skipv1" else x for x in owners(plan, [0] * layers, []).tolist()
    )
    key, value = (groups * (width * bits // 8 + 2 * (bits < 16)) for bits in (key_bits, value_bits))
    if plan == "skipv1":
        return batch * tokens * sum(key + value // (1 if n == 0 else 2) for n in range(layers))
    return batch * tokens * (key * len(set(keys)) + value * len(set(values)))


def grouped_attention(q, k, v):
    B, T, H, D = q.shape
    S, G = k.shape[1:3]
    grouped = q.double().reshape(B, T, G, H // G, D)  # neighbours share
    scores = torch.einsum("btgrd,bsgd->bgrts", grouped, k.double()) * D**-0.5
    scores = scores + torch.full((T, S), -torch.inf).triu(S - T + 1)
    maps = scores.softmax(-1).flatten(1, 2).unflatten(1, (v.shape[2], -1))  # other neighbours
    out = torch.einsum("bgrts,bsge->btgre", maps, v.double())
    return out.reshape(B, T, H, -1).to(q.dtype)


def skip_heads(v, v1):
    B, T, H, D = v1.shape
    own = v.double()[:, :, :, None].expand(-1, -1, -1, H // 2 // v.shape[2], -1)
    borrowed = v1.double().tensor_split(2, 2)[1]
    return torch.cat((own.reshape(B, T, H // 2, D), borrowed), dim=-2).to(v.dtype)


def svformer(x, wq, wk, wv, wo):
    kind, x = x.dtype, x.double()
    value = torch.einsum("btc,cd->btd", x, wv.double())[:, :, None]
    for q, k, o in zip(wq.double(), wk.double(), wo.double(), strict=True):
        mixed = grouped_attention((x @ q)[:, :, None], (x @ k)[:, :, None], value)[:, :, 0]
        x = x + torch.einsum("btc,cd->btd", mixed, o)
    return x.to(kind)


def svformer_step(x, keys, value, wq, wk, wv, wo):
    value = torch.cat((value, torch.einsum("btc,cd->btd", x, wv)), 1)
    new = torch.empty(keys.shape[0], keys.shape[1], keys.shape[2] + 1, keys.shape[3], dtype=x.dtype)
    for n, (q, k, o) in enumerate(zip(wq, wk, wo, strict=True)):
        new[n, :, :-1], new[n, :, -1:] = keys[n], x @ k
        one_head = (rows[:, :, None] for rows in (x @ q, new[n], value))
        x = x + grouped_attention(*one_head)[:, :, 0] @ o
    return x, new, value


def critical_point(method, baseline, window):
    total = torch.cat([torch.zeros(1, dtype=torch.float64), (method - baseline).double().cumsum(0)])
    ahead = total[window:] < total[:-window]
    return next((k for k in range(1, len(ahead)) if ahead[k - 1] and not ahead[k]), -1)


def predict_savings():
    return [38, 35, 5]


def ring_counter_example():
    k = torch.zeros(8, 4, dtype=torch.float64)
    k[-6] = 3.0
    return torch.tensor(3), torch.ones(4), k, torch.arange(8.0)[:, None], torch.tensor(5)


def windowed_bytes(key_owners, value_owners, windows, batch, tokens, groups, width, size):
    rows = {}
    for stream, reads in enumerate((key_owners, value_owners)):
        for owner, window in zip(reads, windows, strict=True):
            needed = min(tokens, window + 1) if window else tokens
            rows[stream, owner] = max(rows.get((stream, owner), 0), needed)
    return batch * sum(rows.values()) * groups * width * size
