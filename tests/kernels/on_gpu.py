"""Do the compiled kernels equal the reference in float64 on a GPU? Run by test_on_gpu.py.

In processes of their own, because in the tests' own Triton is an interpreter. By hand, all at once:

    for part in {training,decoding}-{float32,bfloat16,float16} atomics graph table windows step; do
        python -m tests.kernels.on_gpu $part > $part.log 2>&1 &
    done; wait
"""

import sys
from functools import partial
from unittest import mock

import torch

from minimal.kernels import fastest
from minimal.kernels import fused as fused_module
from minimal.kernels import recorded as recording
from minimal.kernels.decode import run_histogram, run_split
from minimal.kernels.dense import attention
from minimal.kernels.embedding import look_up
from minimal.kernels.fused import fused
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import TOLERANCE, by_definition, reference
from minimal.train import Trainer
from minimal.training.run import Run
from tests.kernels.shapes import DECODING, TRAINING, Shape


def close(mine, right, dtype, what, size=None):
    """Relative to the largest value that is right, or to a `size` that is known better."""
    difference = (mine.double() - right.double()).abs().max().item() if mine.numel() else 0
    limit = TOLERANCE[dtype] * max(1, right.abs().max().item() if right.numel() else 1, size or 0)
    assert torch.isfinite(mine).all() and difference <= limit, (
        f"{what}, {dtype}: off by {difference}"
    )


def on_gpu(tensors, dtype, grad=False):
    return [
        None
        if x is None
        else x.detach()
        .cuda()
        .to(dtype if x.ndim and x.is_floating_point() else x.dtype)
        .requires_grad_(grad and x.is_floating_point())
        for x in tensors
    ]


def how_on_gpu(shape):
    return {
        name: value.int().cuda() if isinstance(value, torch.Tensor) else value
        for name, value in shape.how.items()
    }


def training(dtype):
    shapes = dict(TRAINING)
    for D, window in ((64, 0), (96, 70), (128, 129)):
        shapes[f"wide_{D}"] = Shape(T=300, S=300, H=4, G=2, D=D, window=window)
    shapes["tiles_before_the_first_key"] = Shape(T=400, S=20)  # whole tiles of 128 see nothing
    shapes["tiles_before_a_short_sequence"] = Shape(T=400, S=500, lengths=(10, 500))
    for name, shape in shapes.items():
        print(name, flush=True)
        inputs, how = on_gpu(shape.tensors(), dtype, grad=True), how_on_gpu(shape)
        exact = [
            x if x is None or x.dtype == torch.int32 else x.detach().double().requires_grad_()
            for x in inputs
        ]
        out, right = gather_attention(*inputs, way="fused", **how), reference(*exact, **how)
        push = torch.randn_like(out)
        close(out, right, dtype, name)
        leaves, rights = (
            [x for x in tensors if x is not None and x.requires_grad] for tensors in (inputs, exact)
        )
        mine = torch.autograd.grad(out, leaves, push, retain_graph=True)

        # The gain's gradient sums signed terms: errors add up as such terms do at random.
        with torch.no_grad():
            spread = (push * reference(*exact[:4], **how)).square().sum().sqrt().item()
        true = torch.autograd.grad(right, rights, push.double())
        for a, b in zip(mine, true, strict=True):
            close(a, b, dtype, f"{name}, a gradient", None if a.ndim else spread)
        again = torch.autograd.grad(out, leaves, push)
        assert all(torch.equal(a, b) for a, b in zip(mine, again, strict=True)), (
            f"{name}: two runs differ"
        )


def atomics():
    """The table's gradient by atomics is that by the sort, up to rounding."""
    q, k, table, ids, gain = on_gpu(TRAINING["padded"].tensors(), torch.float32, grad=True)
    how = how_on_gpu(TRAINING["padded"]) | dict(scale=32**-0.5)
    grads = []
    for atomic in (False, True):
        out = fused(q, k, table, ids, gain, atomic=atomic, **how)
        grads.append(torch.autograd.grad(out.sum(), table)[0])
    close(*grads, torch.float32, "atomics")


def decoding(dtype):
    for name, shape in DECODING.items():
        print(name, flush=True)
        inputs, how = on_gpu(shape.tensors(), dtype), how_on_gpu(shape)
        right = reference(
            *(x.double() if x is not None and x.ndim > 2 else x for x in inputs), **how
        )
        given = (how["lengths"], shape.causal, shape.window, shape.D**-0.5)
        for splits in (None, 1, 3):
            close(run_split(*inputs, *given, splits), right, dtype, f"{name}, {splits} splits")
        if shape.T == 1 and shape.lengths:  # as a step whose shapes stay the same reads a stored V
            q, k, table, ids, gain = inputs
            stored = attention(q, k, table[ids], gain, scale=shape.D**-0.5, **how)
            close(stored, right, dtype, f"{name}, stored")
        norms = [x.float().norm(dim=-1).max().item() for x in inputs[:2]]
        bound = norms[0] * norms[1] * shape.D**-0.5
        counted = run_histogram(*inputs, bound=bound, scale=shape.D**-0.5, **how)
        close(counted, right, dtype, f"{name}, histogram")


def graph():
    """A recorded graph reads the lengths that stand in the tensor now."""
    q, k, table, ids, gain = on_gpu(Shape(T=1, S=5000, D=128).tensors(), torch.bfloat16)
    lengths = torch.tensor([4000, 77], dtype=torch.int32, device="cuda")
    step = recording.Graphed(
        lambda: gather_attention(q, k, table, ids, gain, lengths=lengths, way="split"),
        "cuda",
        warm=1,
    )
    for new in ([4000, 77], [5000, 1], [1, 4096]):  # as it is, recorded, replayed
        lengths.copy_(torch.tensor(new))
        right = reference(q.double(), k.double(), table.double(), ids, gain, lengths=lengths)
        close(step(), right, torch.bfloat16, "graph")


# rows, positions, key heads, D
TABLE = (310, 1028, 3, 40)


def table(where="cuda"):
    """A table's gradient as a compiled model has it: float64's, by both ways and by the faster."""
    V, N, G, D = TABLE
    look, choose = torch.compile(look_up, dynamic=False, fullgraph=True), fused_module.fastest
    for share in (0.0, 0.5, 1.0):
        what = f"a table's gradient, {share:.0%} one token"
        print(what, flush=True)
        ids = torch.randint(V - 2, (2, N // 2), dtype=torch.int32)
        ids = ids.masked_fill(torch.rand(ids.shape) < share, V - 2).to(where)
        for dtype in (torch.float32, torch.bfloat16):
            rows = torch.randn(*ids.shape, G, D, device=where).to(dtype)
            leaf = torch.zeros(V, G, D, device=where, requires_grad=True)
            right = torch.zeros(V, G * D, dtype=torch.float64, device=where)
            right.index_add_(0, ids.flatten(), rows.double().view(-1, G * D))
            for only in ("embedding", "segments", None):
                fastest.CHOSEN.clear()
                way = lambda *asked, only=only: only or choose(*asked)
                with mock.patch.object(fused_module, "fastest", way):
                    mine, again = (
                        torch.autograd.grad(look(leaf, ids, dtype), leaf, rows)[0] for _ in range(2)
                    )
                assert torch.equal(mine, again), f"{what}: other bits"
                close(mine.flatten(1), right, torch.float32, what)


# T, window, query heads, key heads, D
WINDOWS = ((2048, 512, 6, 6, 128), (1500, 300, 4, 2, 64), (1024, 1000, 2, 1, 16))


def windows():
    """A windowed layer as a compiled model has it: one kernel, and the definition's gradients."""
    from torch._inductor.utils import run_and_get_code  # loads the compiler, a second of collecting

    for T, window, H, G, D in WINDOWS:
        what = f"{T} queries in a window of {window}"
        print(what, flush=True)
        made = Shape(B=2, T=T, S=T, H=H, G=G, D=D).tensors()[:2]
        made = on_gpu([*made, torch.randn(2, T, G, D)], torch.bfloat16, grad=True)
        exact = [x.detach().double().requires_grad_() for x in made]
        compiled = torch.compile(attention, dynamic=False, fullgraph=True)
        out, code = run_and_get_code(lambda: compiled(*made, window=window))
        tiled = any(word in text for word in ("flex", "SPARSE_KV_BLOCK_SIZE") for text in code)
        assert tiled, f"{what}: a mask was made"
        right = by_definition(*exact, window=window)
        close(out, right, torch.bfloat16, what)
        push = torch.randn_like(out)
        mine = torch.autograd.grad(out, made, push)
        for a, b in zip(mine, torch.autograd.grad(right, exact, push.double()), strict=True):
            close(a, b, torch.bfloat16, f"{what}, a gradient")


def step():
    """A training step replayed is the training step, to the last bit, and so is the held-out loss.

    Windows that grow make a recording each; two batches of held-out rows have two shapes."""
    for plan, recipe in (("bov", "bov"), ("resformer", "resformer"), ("modded", "modded")):
        ends = []
        for recording.WARM in (10**9, 2):  # never recorded; recorded
            how = dict(size="nano", corpus="stdlib", steps=48, evaluate=16, rows=24, recipe=recipe)
            trainer = Trainer(Run(plan, graph=True, **how), quiet=True)
            result = trainer.fit()
            replays = [one.graph is not None for _, one in trainer.replayed.found.values()]
            assert any(replays) is (recording.WARM == 2), f"{plan}: {replays}"
            held = [row["loss"] for row in result["valid"]]
            ends.append((result["losses"], held, result["coefficients"]["steps"]))
        assert ends[0] == ends[1], f"{plan}: a replayed step is another step"
        assert ends[0][0][-1] < ends[0][0][0]


# A process a part: hundreds of kernels are compiled, and processes compile side by side.
TYPES = dict(float32=torch.float32, bfloat16=torch.bfloat16, float16=torch.float16)
PARTS = dict(atomics=atomics, graph=graph, table=table, windows=windows, step=step)
for name, dtype in TYPES.items():
    PARTS[f"training-{name}"] = partial(training, dtype)
    PARTS[f"decoding-{name}"] = partial(decoding, dtype)

if __name__ == "__main__":
    torch.manual_seed(0)
    PARTS[sys.argv[1]]()
    print("equal")
