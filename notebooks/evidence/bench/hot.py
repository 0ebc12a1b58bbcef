"""What does a token that stands everywhere cost the gradient of a table? Too little for a split.

`sum_by_token` adds up a table's gradient with one program a token and column block, so the hottest
token's program is the last to end: 8 % of 65,536 positions are 164 turns of 32, one after another.
In an ordinary text the commonest token has about that share. Two programs a hot token would end
sooner, and cost a second pass over what they leave.

One H100 decided (`table` in notebooks/evidence/measured/gather_gpu.json): ids as they were drawn
take 381 us and 8 % takes 515, so a split could save 135 us at most, of a fused backward of 5,495.
Models train through PyTorch's attention besides. So no token is split. The rows stay: PyTorch's own
gradient of an embedding is faster from 8 % on, and much faster on padding alone.
"""

import torch

from evidence.bench.graphs import agree, columns, each_us, fastest_of
from minimal.kernels.backward import run_sum_by_token
from minimal.kernels.fused import sort_ids, summed

# the further share of one token: none, a text's, and on to nothing but padding
HOTTEST = (0.0, 0.02, 0.04, 0.08, 0.25, 1.0)


def heated(ids, share):
    """The same ids, of which so many are now token 0."""
    chance = torch.Generator().manual_seed(1)
    hot = torch.rand(ids.shape, generator=chance).to(ids.device) < share
    return ids.masked_fill(hot, 0)


def table_gradient(bench, B, T, H, G, D, share):
    """Rows by position summed by token: by our kernel, by PyTorch's embedding, by atomics, which a
    compiled model has; and by what our fused backward chooses of the first two.

    The sort of the ids is not counted: it is made once for all layers of a step."""
    ids = heated(bench.ids(B, T), share)
    rows = bench.randn(B, T, G, D)
    flat, index = rows.view(B * T, G * D), ids.flatten()
    table = torch.empty(bench.V, G, D, device=bench.device)  # fp32, as a model has it
    plan = sort_ids(ids, bench.V)

    def embedding():
        back = torch.ops.aten.embedding_dense_backward
        return back(flat, index, bench.V, -1, False).view_as(table)

    def atomics():
        zeros = torch.zeros_like(table).flatten(1)
        return zeros.index_add_(0, index, flat.float()).view_as(table)

    ways = {
        ("sum_by_token", ""): lambda: run_sum_by_token(rows, plan, table),
        ("embedding", ""): embedding,
        ("atomics", ""): atomics,
        ("chosen", ""): lambda: summed(rows, ids, plan, table),
    }
    taken = bench.seconds(agree(ways, bench.dtype, f"table's gradient, {share:.0%} hot"))
    moved = rows.numel() * rows.element_size() + table.numel() * 4
    floor = moved / bench.memory
    better = min(taken["sum_by_token", ""], taken["embedding", ""])
    return dict(
        part="table",
        B=B,
        T=T,
        width=G * D,
        hottest=index.bincount().max().item() / index.numel(),
        floor_us=1e6 * floor,
        share_of_floor=floor / fastest_of(taken, "sum_by_token")[0],
        chosen_over_best=better / taken["chosen", ""],
        **columns(taken),
        each_us=each_us(taken),
    )
