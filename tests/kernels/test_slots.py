"""Do the kernels read slots of n-grams where they read ids? Unchanged: a bank is a bank."""

import pytest
import torch

from minimal.kernels.gather import gather_attention
from minimal.kernels.histogram import histogram_decode, rows_decode, shrink
from minimal.kernels.reference import TOLERANCE, reference
from minimal.model import ngram
from tests.kernels.shapes import Shape

ROWS = 200  # slots, many more than the 11 ids that name them


def slotted(T=40, S=40, grad=False):
    """q, k, a table of n-gram rows, slots of the last two ids, gain."""
    q, k, table, ids, gain = Shape(T=T, S=S).tensors(grad=grad)
    made = torch.Generator().manual_seed(1)
    table = torch.randn(ROWS, *table.shape[1:], generator=made, requires_grad=grad)
    slots = ngram.slots(ids, 2, ROWS)
    assert slots.dtype == ids.dtype and slots.max() >= 100
    assert len(slots.unique()) > 3 * len(ids.unique()), "names of two ids, not of one"
    return q, k, table, slots, gain


def outputs_and_gradients(function, inputs, **how):
    out = function(*inputs, **how)
    push = torch.randn(out.shape, generator=torch.Generator().manual_seed(2))
    leaves = [x for x in inputs if x.requires_grad]
    return [out, *torch.autograd.grad(out, leaves, push)]


@pytest.mark.parametrize("way", ["dense", "fused"])
def test_training_reads_slots(way, interpreter):
    """With the gradient of the table, which the fused way sums over the sorted slots."""
    mine = outputs_and_gradients(gather_attention, slotted(grad=True), way=way)
    right = outputs_and_gradients(reference, slotted(grad=True))
    for got, wanted in zip(mine, right, strict=True):
        scale = max(1.0, wanted.abs().max().item())
        assert (got - wanted).abs().max() <= TOLERANCE[torch.float32] * scale * 4


def test_decoding_reads_slots(interpreter):
    from minimal.kernels.decode import run_histogram, run_split

    q, k, table, slots, gain = given = slotted(T=1, S=90)
    right = reference(*given)
    rows, local = shrink(table, slots)
    bound = (q.norm(dim=-1).max() * k.norm(dim=-1).max()).item() * 32**-0.5
    how = dict(causal=True, window=0, lengths=None, scale=32**-0.5)
    ways = dict(
        rows=rows_decode(*given),
        histogram=histogram_decode(*given),
        shrunk=histogram_decode(q, k, rows, local, gain),
        split=run_split(*given, None, True, 0, 32**-0.5, 3),
        bins=run_histogram(*given, bound=bound, **how),
    )
    for name, got in ways.items():
        gap = (got - right).abs().max()
        assert gap <= TOLERANCE[torch.float32], f"{name}: {gap}"
