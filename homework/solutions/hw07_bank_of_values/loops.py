"""hw07 a third time: token by token, SDPA where it fits."""

import torch
import torch.nn.functional as F


def targets(rule, layers):
    found, i = [], layers - 1
    stop = {"last third": (2 * layers) // 3, "last half": layers // 2, "every second": 0}[rule]
    while i >= stop:
        found.insert(0, i)
        i -= 2 if rule == "every second" else 1
    return found


def which_rules(picked, layers):
    found = []
    for rule in ("last third", "every second", "last half"):
        theirs, same = targets(rule, layers), True
        for i in range(layers):
            if (i in theirs) != (i in picked):
                same = False
        found.append(same)
    return tuple(found)


def value(row, layer, layers, v, v1, vx, a, b):
    if row in (4, 7):
        chosen = targets("every second", layers)
    elif row == 3:
        chosen = list(range(layers))[1:]
    else:
        chosen = targets("last third", layers)
    table = {
        1: (1, 0, 0),
        2: (a, 0, 0),
        3: (0, 1, 0),
        4: (0, a, 0),
        5: (0, 1, 0),
        6: (0, a, 0),
        7: (0, 0, a),
        8: (0, 0, 1),
        9: (0, 0, a),
        10: (0.5, 0.5, 0),
        11: (a, b, 0),
        12: (0.5, 0, 0.5),
        13: (a, 0, b),
    }
    out = torch.zeros_like(v)
    weights = table[row if layer in chosen else 1]
    for weight, stream in zip(weights, (v, v1, vx), strict=True):
        out = out + weight * stream
    return out


def aligned_table(embedding, w):
    rows = []
    for e in embedding.unbind():
        x0 = e * e.shape[0] ** 0.5 / e.norm()
        rows.append(sum(x0 @ one for one in w) / len(w))
    return torch.stack(rows)


def bov_attention(q, k, ids, table, gamma):
    T, S = q.shape[1], k.shape[1]
    seen = torch.ones(T, S, dtype=torch.bool).tril(S - T)
    values = F.embedding(ids, table.reshape(len(table), -1)).unflatten(-1, table.shape[1:])
    outs, share = [], q.shape[2] // k.shape[2]
    for h in range(q.shape[2]):
        a, b, c = q[:, :, h], k[:, :, h // share], gamma * values[:, :, h // share]
        outs.append(F.scaled_dot_product_attention(a, b, c, attn_mask=seen))
    return torch.stack(outs, 2)


def histogram_decode(weights, ids, table, gamma):
    tokens = sorted(set(ids.flatten().tolist()))
    masses = torch.zeros(*weights.shape[:2], len(tokens), dtype=weights.dtype)
    for b, text in enumerate(ids.tolist()):
        for p, token in enumerate(text):
            masses[b, :, tokens.index(token)] += weights[b, :, p]
    rows = gamma * table[tokens].transpose(0, 1)  # (H,U,D)
    return torch.tensor(tokens), masses, (masses.permute(1, 0, 2) @ rows).permute(1, 0, 2)


def flops_and_tokens(layers, width, vocabulary, windows, without):
    costs = []
    for missing in (0, without):
        total = 6 * width * vocabulary
        for n in range(layers):
            total += 6 * (12 if n >= missing else 11) * width * width + 12 * width * windows[n]
        costs.append(total)
    return costs[1], costs[0] * 100 / costs[1] - 100


def saved_bytes(layers, tables, batch, tokens, vocabulary, value_width, width, size, id_size):
    total = -batch * tokens * id_size
    for _ in range(layers):
        total += size * value_width * (batch * tokens + width)
    for _ in range(tables):
        total -= size * value_width * vocabulary
    return total


def predict_break_even():
    return torch.tensor([1900, 26])


def expressivity_counter_example():
    embedding = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]], dtype=torch.float64)
    return embedding, torch.tensor(
        [[1.0, 2.0], [-1.0, -2.0], [3.0, 0.0], [-3.0, 0.0]], dtype=torch.float64
    )


def windowed_break_even(windows, batch, prompt, vocabulary):
    def held(T):
        total = 0
        for w in windows:
            total += batch * (min(T, w + 1) if w else T)
            total += min(prompt, max(0, w + 1 - T)) if w else prompt
        return total

    needed = len(windows) * vocabulary
    T, stride = 0, 1 << 30  # the largest T that is not enough, bit by bit
    while stride:
        if held(T + stride) < needed:
            T += stride
        stride //= 2
    return T + 1 if T < (1 << 31) - 1 else -1
