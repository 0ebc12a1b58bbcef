"""How are values read? Values that exist go to PyTorch's attention, a Bank's to gather attention.

The mask, the attention map and the definition stand in kernels/reference.py, the fused call in
kernels/dense.py; here they are given a value of the seam, Rows or Bank, in the place of V."""

import torch

from minimal.kernels.dense import attention
from minimal.kernels.gather import unchecked
from minimal.kernels.reference import visible
from minimal.model.tape import Bank
from minimal.model.trace import kept_whole


def in_one_call(q, k, value, **how):
    """PyTorch's fused attention over values that exist."""
    return attention(q, k, value.dense(q.dtype), value.gain, **how)


@kept_whole
def attend(q, k, value, *, bound=None, mask=None, dropout=0.0, **how):
    """q (B, T, H, D), k (B, S, G, D), value Rows or Bank over S -> (B, T, H, D).

    `bound` is the largest |logit| there can be, where QK norm gives one."""
    # A Bank trains through its rows: storing V costs little beside what the fused call gains.
    by_token = isinstance(value, Bank) and mask is None
    if by_token and not torch.is_grad_enabled():
        return unchecked(q, k, value.table, value.ids, value.gain, bound=bound, **how)
    return in_one_call(q, k, value, mask=mask, dropout=dropout, bound=bound, **how)


@kept_whole
def seen_of(q, k, *, causal, window, lengths, scale):
    """Which keys each query sees: reference.visible for queries and keys that are there."""
    return visible(q.shape[1], k.shape[1], causal, window, lengths, q.device)
