"""How do the Triton kernels train? Autograd around them, and one sort of the ids for all layers."""

from typing import NamedTuple

import torch

from minimal.kernels.check import as_int32, kernel_ready, stamp
from minimal.kernels.first_only import first_only

# The commonest token's share from which PyTorch's gradient of a table is faster than ours: on an
# H100 ours took .85 of its time where that share was 3.9 %, 1.16 at 7.8 % and 3.92 at 100 %.
COMMON_SHARE = 0.06


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
    known = order_of(ids, vocabulary)
    ids._order = (now, known)
    return known


def order_of(ids, vocabulary):
    tokens, order = ids.flatten().sort(stable=True)
    every = torch.arange(vocabulary + 1, dtype=ids.dtype, device=ids.device)
    starts = torch.searchsorted(tokens, every, out_int32=True)
    return TokenOrder(order.int(), starts)


def commonest(ids, order):
    """The commonest token's share of all positions: a GPU is asked once for these ids, and not
    while a graph is made, which would have to wait for it."""
    now = stamp(ids, len(order.starts))
    before, known = getattr(ids, "_commonest", (None, None))
    if before == now and not ids.is_inference():
        return known
    if torch.compiler.is_compiling() or (ids.is_cuda and torch.cuda.is_current_stream_capturing()):
        return 0.0
    known = int(order.starts.diff().max()) / max(1, ids.numel())
    ids._commonest = (now, known)
    return known


def summed(rows, ids, order, table):
    """rows (B, S, G, D) by position -> (V, G, D) by token, in the table's type.

    By our kernel over the sorted ids, where one program walks over all positions of its token; or,
    where a token is so common that the others wait for it, by PyTorch's gradient of an
    embedding."""
    from minimal.kernels.backward import run_sum_by_token

    order = order or sort_ids(ids, len(table))
    if commonest(ids, order) < COMMON_SHARE:
        return run_sum_by_token(rows, order, table)
    flat = rows.flatten(2).to(table.dtype)  # (B, S, G D)
    back = torch.ops.aten.embedding_dense_backward
    return back(flat, ids, len(table), -1, False).view_as(table)


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
        from minimal.kernels.backward import run_backward

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
            grad_table = summed(grad_v, ids, ctx.order, table)

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
