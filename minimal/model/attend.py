"""How are values read? The reference in eight lines, then the dispatch: Rows -> dense, Bank -> gather."""

import math

import torch
import torch.nn.functional as F

from minimal.model.tape import Bank


def visible(t, s, causal=True, window=0, lengths=None, device=None):
    """Which keys may a query see? (T, S) or (B, 1, T, S) of bool. Query t stands at S - T + t; `window` keys to its
    left besides itself (0 = all); with `lengths` the queries are the last T of the valid keys, unless T = S."""
    key = torch.arange(s, device=device)  # (S,)
    if lengths is None:
        here = torch.arange(s - t, s, device=device)[:, None]  # (T, 1)
        seen = torch.ones(t, s, dtype=torch.bool, device=device)
    else:
        first = lengths[:, None] - t if t < s else torch.zeros_like(lengths)[:, None]  # (B, 1)
        here = (first + torch.arange(t, device=device))[:, None, :, None]  # (B, 1, T, 1)
        seen = (key < lengths[:, None])[:, None, None, :].expand(-1, 1, t, s)  # (B, 1, T, S)
    if causal:
        seen = seen & (key <= here)
    return seen & (here - key <= window) if window else seen


def weights(q, k, *, causal=True, window=0, lengths=None, scale=None, mask=None):
    """The attention map A (B, H, T, S), in fp32: softmax over the visible keys; a query that sees none gets zeros."""
    k = k.repeat_interleave(q.shape[2] // k.shape[2], dim=2)  # (B, S, H, D)
    seen = (
        visible(q.shape[1], k.shape[1], causal, window, lengths, q.device) if mask is None else mask
    )
    score = torch.einsum("bthd,bshd->bhts", q.float(), k.float()) * (
        scale or 1 / math.sqrt(q.shape[-1])
    )
    return torch.nan_to_num(score.masked_fill(~seen, -torch.inf).softmax(-1))


def reference(q, k, value, **how):
    """Attention as it is defined. Everything else here and in the kernels must equal this."""
    a = weights(q, k, **how)  # (B, H, T, S)
    v = value.dense().repeat_interleave(q.shape[2] // k.shape[2], dim=2)  # (B, S, H, D)
    y = torch.einsum("bhts,bshd->bthd", a, v.float()).to(q.dtype)  # (B, T, H, D)
    return y if value.gain is None else y * value.gain


def dense(q, k, value, *, causal=True, window=0, lengths=None, scale=None, mask=None, dropout=0.0):
    """PyTorch's fused attention over values that exist. The gain multiplies the output: A (g V) = g (A V)."""
    v = value.dense()  # (B, S, G, D)
    t, s = q.shape[1], k.shape[1]
    whole = mask is None and lengths is None and not 0 < window < s - 1
    fast = whole and causal and t == s and t > 1
    if mask is None and not fast and not (whole and (t == 1 or not causal)):
        mask = visible(t, s, causal, window, lengths, q.device)
    q, k, v = (
        q.transpose(1, 2),
        k.transpose(1, 2),
        v.to(q.dtype).transpose(1, 2),
    )  # (B, heads, rows, D)
    y = F.scaled_dot_product_attention(
        q, k, v, mask, dropout, fast, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )
    if lengths is not None:
        y = y.nan_to_num()  # rows that see no key
    y = y.transpose(1, 2)  # (B, T, H, D)
    return y if value.gain is None else y * value.gain.to(y.dtype)


def attend(q, k, value, *, bound=None, **how):
    """q (B, T, H, D), k (B, S, G, D), value Rows or Bank over S -> (B, T, H, D). `bound`: the largest |logit| there can
    be, where QK norm gives one."""
    s = min(
        k.shape[1], length(value)
    )  # with rings, keys and values of different owners may reach back differently
    k, value = last(k, s), aligned(value, s)
    if (
        isinstance(value, Bank)
        and not torch.is_grad_enabled()
        and not q.is_meta
        and how.get("mask") is None
    ):
        from minimal.kernels.gather import gather_attention

        how = {name: how[name] for name in ("causal", "window", "lengths", "scale") if name in how}
        return gather_attention(q, k, value.table, value.ids, value.gain, bound=bound, **how)
    return dense(
        q, k, value, **how
    )  # a Bank trains through its rows: storing V costs little beside what SDPA gains


def length(value):
    return (value.ids if isinstance(value, Bank) else value.v).shape[1]


def last(rows, s):
    return rows if rows.shape[1] == s else rows[:, rows.shape[1] - s :]


def aligned(value, s):
    """The last S of the values' rows."""
    return (
        value._replace(ids=last(value.ids, s))
        if isinstance(value, Bank)
        else value._replace(v=last(value.v, s))
    )
