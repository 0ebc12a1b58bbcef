"""What must every kernel equal? The mask, attention as it is defined, and how far off an answer may be."""

import torch

MOST_LOGIT = 40.0  # without a running maximum masses span exp(-2 * bound) .. 1: fp32 holds exp(-80)

# The largest |difference| from the reference, for values of unit size. float32: the same sums in another order, about
# eps * sqrt(S). float16 and bfloat16: weights are rounded before they meet the values, and so is what comes out.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def visible(T, S, causal=True, window=0, lengths=None, device=None):
    """(1 or B, 1, T, S): may query t see key s? It stands at S - T + t, or is one of the last T valid positions."""
    key = torch.arange(S, device=device)
    length = torch.full((1,), S, device=device) if lengths is None else lengths
    first = torch.zeros_like(length) if T == S else length - T  # (B,)
    here = (first[:, None] + torch.arange(T, device=device))[:, None, :, None]  # (B, 1, T, 1)
    see = (key < length[:, None])[:, None, None, :].expand(-1, 1, T, S)
    see = see & (key <= here) if causal else see
    return see & (here - key <= window) if window else see


def reference(q, k, table, ids, gain=None, *, causal=True, window=0, lengths=None, scale=None):
    """What everything here computes: softmax attention whose values are gain * table[ids]; blind queries give 0."""
    hidden = ~visible(q.shape[1], k.shape[1], causal, window, lengths, q.device)
    k, v = (
        x.repeat_interleave(q.shape[2] // k.shape[2], 2) for x in (k, table[ids].to(q.dtype))
    )  # (B, S, H, D)
    score = torch.einsum("bthd,bshd->bhts", q, k) * (
        q.shape[-1] ** -0.5 if scale is None else scale
    )
    weight = (
        score.masked_fill(hidden, float("-inf")).softmax(-1).masked_fill(hidden, 0)
    )  # (B, H, T, S)
    out = torch.einsum("bhts,bshd->bthd", weight, v)
    return out if gain is None else out * gain.to(out.dtype)


def want(holds, sentence, *got):
    """The sentence is only written where it is needed."""
    if not holds:
        raise ValueError(sentence.format(*got))
