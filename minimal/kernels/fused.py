"""How do the Triton kernels train? Autograd around them, and one sort of the ids for all layers."""

from typing import NamedTuple

import torch

from minimal.kernels.check import as_int32, kernel_ready, stamp
from minimal.kernels.fastest import fastest
from minimal.kernels.first_only import first_only
from minimal.kernels.route import kernels_run


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


def sum_by_id(rows, ids, count, dtype, order=None):
    """rows (*ids, C) by position -> (count, C) by id, in a fixed order.

    By PyTorch's gradient of an embedding, or by our kernel over the sorted ids. Which is faster
    hangs on how common the commonest id is, and whoever looks at ids waits for the GPU: so the
    first batch of a shape is summed both ways, and the others as was faster."""

    def embedding():
        return torch.ops.aten.embedding_dense_backward(rows.to(dtype), ids, count, -1, False)

    def segments():
        from minimal.kernels.backward import run_sum_by_token

        # a view, so that no sort is kept: a compiled step puts other ids into the same tensor
        known = order or sort_ids(ids.view_as(ids), count)
        like = torch.empty(count, rows.shape[-1], dtype=dtype, device="meta")
        return run_sum_by_token(rows.contiguous(), known, like)

    if not kernels_run(rows.device.type) or torch.float64 in (rows.dtype, dtype):
        return embedding()
    ways = dict(embedding=embedding, segments=segments)
    question = ("table", order is None, ids.numel(), count, rows.shape[-1], rows.dtype, dtype)
    return ways[fastest(question, ways)]()


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
            order = ctx.order or sort_ids(ids, len(table))
            grad_table = sum_by_id(grad_v.flatten(2), ids, len(table), table.dtype, order)
            grad_table = grad_table.view(table.shape)

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
