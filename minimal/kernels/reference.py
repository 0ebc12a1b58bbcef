"""What must every kernel equal? The mask, attention by its definition, and the tolerance."""

import torch

MOST_LOGIT = 40.0  # without a running maximum masses span exp(-2 * bound) .. 1: fp32 holds exp(-80)

# The largest |difference| from the reference, for values of unit size. float32: the same sums in
# another order, about eps * sqrt(S). float16 and bfloat16: weights are rounded before they meet
# the values, and so is the output.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def visible(T, S, causal=True, window=0, lengths=None, device=None):
    """May query t see key s? (T, S) of bool; with `lengths`, one a sequence, (B, 1, T, S).

    Query t stands at S - T + t, so the queries are the last T of the keys. With lengths they are
    the last T of the valid keys, unless T = S: then padding stands on the right. `window` is how
    many keys to its left a query sees besides itself, 0 for all."""
    key = torch.arange(S, device=device)  # (S,)
    query = torch.arange(T, device=device)[:, None]  # (T, 1)
    if lengths is None:
        position = S - T + query  # (T, 1)
        seen = torch.ones(T, S, dtype=torch.bool, device=device)
    else:
        length = lengths[:, None, None, None]  # (B, 1, 1, 1)
        start = torch.zeros_like(length) if T == S else length - T
        position = start + query  # (B, 1, T, 1)
        seen = (key < length).expand(-1, 1, T, S)
    if causal:
        seen = seen & (key <= position)
    if window:
        seen = seen & (position - key <= window)
    return seen


def weights(q, k, *, causal=True, window=0, lengths=None, scale=None, mask=None):
    """The attention map A (B, H, T, S): softmax over the visible keys, in float32 or better.

    A query that sees no key gets zeros."""
    if mask is None:
        mask = visible(q.shape[1], k.shape[1], causal, window, lengths, q.device)
    kind = torch.promote_types(q.dtype, torch.float32)
    k = k.repeat_interleave(q.shape[2] // k.shape[2], dim=2)  # (B, S, H, D)
    score = torch.einsum("bthd,bshd->bhts", q.to(kind), k.to(kind))
    score = score * (q.shape[-1] ** -0.5 if scale is None else scale)
    hidden = ~mask
    return score.masked_fill(hidden, -torch.inf).softmax(-1).masked_fill(hidden, 0)


def by_definition(q, k, v, gain=None, **how):
    """Attention over values that exist: q (B, T, H, D), k and v (B, S, G, D) -> (B, T, H, D)."""
    a = weights(q, k, **how)  # (B, H, T, S)
    v = v.repeat_interleave(q.shape[2] // v.shape[2], dim=2)  # (B, S, H, D)
    y = torch.einsum("bhts,bshd->bthd", a, v.to(a.dtype)).to(q.dtype)  # (B, T, H, D)
    return y if gain is None else y * gain.to(y.dtype)


def reference(q, k, table, ids, gain=None, **how):
    """What everything in this room computes: attention whose values are gain * table[ids]."""
    return by_definition(q, k, table[ids], gain, **how)
