"""How does a compiled model train a table? By a lookup whose gradient is one call to the compiler.

By itself it joins the sum over positions with what stands before it, and adds every number to its
place by an atomic operation, in whatever order they come. Eager training, and this, add by id."""

import torch
import torch.nn.functional as F
from torch import library

from minimal.kernels.fused import sum_by_id


def look_up(table, ids, dtype=None):
    """table[ids] in `dtype` (None: the table's); its gradient is added up in a fixed order."""
    dtype = dtype or table.dtype
    if not table.is_contiguous():
        return table[ids].to(dtype)
    flat = table.flatten(1)  # (V, C)
    trains = torch.compiler.is_compiling() and torch.is_grad_enabled()
    rows = LookUp.apply(flat, ids, dtype) if trains else F.embedding(ids, flat).to(dtype)
    return rows.view(*ids.shape, *table.shape[1:])


class LookUp(torch.autograd.Function):
    """Rows take their type in here, so that their gradient comes back in it: bf16, not fp32."""

    @staticmethod
    def forward(ctx, table, ids, dtype):
        ctx.save_for_backward(ids)
        ctx.count, ctx.dtype = len(table), table.dtype
        return F.embedding(ids, table).to(dtype)

    @staticmethod
    def backward(ctx, grad):
        (ids,) = ctx.saved_tensors
        return sum_rows(grad, ids, ctx.count, ctx.dtype), None, None


@library.custom_op("minimal::sum_rows", mutates_args=())
def sum_rows(rows: torch.Tensor, ids: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor:
    return sum_by_id(rows, ids, count, dtype)


@sum_rows.register_fake
def shape_of_sum(rows, ids, count, dtype):
    return rows.new_empty((count, rows.shape[-1]), dtype=dtype)
