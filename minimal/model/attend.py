"""How are values read? Values that exist go to PyTorch's attention, a Bank's to gather attention.

The mask, the attention map and the definition stand in kernels/reference.py, the fused call in
kernels/dense.py; here they are given a value of the seam, Rows or Bank, in the place of V."""

import torch

from minimal.kernels.dense import attention
from minimal.kernels.gather import unchecked
from minimal.model.tape import Bank


def in_one_call(q, k, value, **how):
    """PyTorch's fused attention over values that exist."""
    return attention(q, k, value.dense(), value.gain, **how)


def attend(q, k, value, *, bound=None, mask=None, dropout=0.0, **how):
    """q (B, T, H, D), k (B, S, G, D), value Rows or Bank over S -> (B, T, H, D).

    `bound` is the largest |logit| there can be, where QK norm gives one."""
    # A Bank trains through its rows: storing V costs little beside what the fused call gains.
    by_token = isinstance(value, Bank) and mask is None
    if by_token and not torch.is_grad_enabled():
        return unchecked(q, k, value.table, value.ids, value.gain, bound=bound, **how)
    return in_one_call(q, k, value, mask=mask, dropout=dropout, bound=bound, **how)
