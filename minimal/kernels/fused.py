"""How do the Triton kernels train? Autograd around them, and one sort of the ids for all layers."""

from typing import NamedTuple

import torch

from minimal.kernels.check import as_int32, kernel_ready, stamp
from minimal.kernels.first_only import first_only


class TokenOrder(NamedTuple):
    """Positions sorted by token: those of token w are order[starts[w]:starts[w + 1]]."""

    order: torch.Tensor  # (B*S,) int32
    starts: torch.Tensor  # (V + 1,) int32


def sort_ids(ids, vocabulary):
    """One stable sort for all layers of a step: kept on the ids until somebody writes to them."""
    now = stamp(ids, vocabulary)
    before, known = getattr(ids, "_order", (None, None))
    if before == now and not ids.is_inference():
        return known
    tokens, order = ids.flatten().sort(stable=True)
    every = torch.arange(vocabulary + 1, dtype=ids.dtype, device=ids.device)
    starts = torch.searchsorted(tokens, every, out_int32=True)
    known = TokenOrder(order.int(), starts)
    ids._order = (now, known)
    return known


class Fused(torch.autograd.Function):
    """The Triton kernels and their gradients. Of what is kept for the backward, nothing is a V."""

    @staticmethod
    def forward(ctx, q, k, table, ids, gain, lengths, causal, window, scale, order, atomic):
        from minimal.kernels.forward import run_forward

        ctx.how, ctx.order, ctx.atomic = (causal, window, scale), order, atomic
        keep = any(ctx.needs_input_grad)
        given = (q, k, table, ids, gain, lengths)
        out, unscaled, lse = run_forward(*given, causal, window, scale, keep)
        if keep:
            ctx.save_for_backward(*given, unscaled, lse)
        return out

    @staticmethod
    @first_only("way='dense' within sdpa_kernel(SDPBackend.MATH)")
    def backward(ctx, grad):
        from minimal.kernels.backward import run_backward, run_sum_by_token

        saved = ctx.saved_tensors  # q, k, table, ids, gain, lengths, unscaled, lse
        table, ids, gain = saved[2:5]
        grads = run_backward(grad.contiguous(), *saved, *ctx.how, ctx.atomic)
        grad_q, grad_k, grad_v, grad_table, delta = grads

        # The table's gradient: positions summed by token, unless atomics have done it.
        if not ctx.needs_input_grad[2]:
            grad_table = None
        elif ctx.atomic:
            grad_table = grad_table.to(table.dtype)
        else:
            order = ctx.order or sort_ids(ids, len(table))
            grad_table = run_sum_by_token(grad_v, order, table)

        # The gain's gradient is the sum of dO * u, finite at gain 0.
        grad_gain = None if gain is None else delta.sum().to(gain.dtype)
        return grad_q, grad_k, grad_table, None, grad_gain, *[None] * 6


def fused(
    q, k, table, ids, gain, *, causal, window, lengths, scale, bound=None, order=None, atomic=False
):
    """A way of gather_attention: values gathered inside the attention loop; it trains.

    `atomic`: the table's gradient by atomics instead of by the sort."""
    ready = kernel_ready(q, k, table, ids)
    return Fused.apply(*ready, gain, as_int32(lengths), causal, window, scale, order, atomic)
