"""How does a gradient come back to a table? The rows that were looked up, summed by id.

Two ways lead on a GPU: PyTorch's gradient of an embedding, and our kernel, which walks over the
positions of each id. A compiler takes neither. It joins the sum with what stands before it and adds
every number to its place by an atomic operation, in whatever order they come. So the sum is an
operator that it does not look into, and that takes the way which is faster here.
"""

import torch
import torch.nn.functional as F

from minimal.kernels.fastest import fastest
from minimal.kernels.fused import order_of
from minimal.kernels.route import HAS_TRITON


def look_up(table, ids, dtype=None):
    """table[ids] in `dtype` (None: the table's); its gradient is added up in a fixed order."""
    dtype = dtype or table.dtype
    if not table.is_contiguous():
        return table[ids].to(dtype)
    flat = table.flatten(1)  # (V, C)
    if torch.compiler.is_compiling() and torch.is_grad_enabled():
        rows = LookUp.apply(flat, ids, dtype)
    else:
        rows = F.embedding(ids, flat).to(dtype)
    return rows.view(*ids.shape, *table.shape[1:])


class LookUp(torch.autograd.Function):
    """The same for a compiler. The rows take their type in here, so that their gradient comes back
    in it: fp32 instead of bf16 would be twice the bytes, written and read."""

    @staticmethod
    def forward(ctx, table, ids, dtype):
        ctx.save_for_backward(ids)
        ctx.count, ctx.dtype = len(table), table.dtype
        return F.embedding(ids, table).to(dtype)

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        return sum_rows(grad, ids, ctx.count, ctx.dtype), None, None


def faster_sum(
    rows: torch.Tensor, ids: torch.Tensor, count: int, dtype: torch.dtype
) -> torch.Tensor:
    """rows (*ids, C) by position -> (count, C) by id.

    Which way is faster hangs on how frequent the commonest id is, and whoever looks at ids waits
    for the GPU. So the first batch of a shape is summed both ways, and the others as was faster."""

    def embedding():
        back = torch.ops.aten.embedding_dense_backward
        return back(rows.to(dtype), ids, count, -1, False)

    def segments():
        from minimal.kernels.backward import run_sum_by_token

        like = torch.empty(count, rows.shape[-1], dtype=dtype, device="meta")
        return run_sum_by_token(rows.contiguous(), order_of(ids, count), like)

    if not (rows.is_cuda and HAS_TRITON) or torch.float64 in (rows.dtype, dtype):
        return embedding()
    ways = dict(embedding=embedding, segments=segments)
    question = ("table", ids.numel(), count, rows.shape[-1], rows.dtype, dtype)
    return ways[fastest(question, ways)]()


sum_rows = torch.library.custom_op("minimal::sum_rows", faster_sum, mutates_args=())


@sum_rows.register_fake
def shape_of_sum(rows, ids, count, dtype):
    return rows.new_empty((count, rows.shape[-1]), dtype=dtype)
