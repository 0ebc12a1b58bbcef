"""Is the gather as fast on this GPU as its bytes allow? Graphs, events, floors.

    make bench PART=gpu
    python -m evidence.bench.gpu --part decode forward --out DIR

First two bandwidths, because they set every floor: memory's, and the L2 cache's, which no data
sheet states. Then decode, forward and backward, each way beside its rivals at their best settings
(pipeline stages, splits, PyTorch's attention by each of its backends, FlexAttention) and beside
what training takes, attention within documents, the gradient of a table whose tokens are as
frequent as in text or more so, and whole training steps of three plans, as a share of the best bf16
product that the same run measured. All ways of a row must agree before any is timed; every row is
the median of rounds in which every way has its turn, and is written to DIR/gather_gpu.json as soon
as it is measured.

Where a command has little time, ask for a part at a time: all go into one file. The one on record
is an H100's. Not yet measured: an A100, several GPUs, keys of one byte.
"""

from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch._functorch import config as functorch

from evidence.bench.documents import PACKED, documents
from evidence.bench.gpu_decode import CACHED, WIDE, decode
from evidence.bench.graphs import (
    BUFFERS,
    Bench,
    agree,
    backends,
    bandwidths,
    columns,
    each_us,
    fastest_of,
    flex,
    flex_joins,
    forward_bytes,
    gradients,
    sdpa,
)
from minimal.bench.bench import training
from minimal.command import command, number
from minimal.data import results
from minimal.data.files import runs_folder
from minimal.kernels.backward import run_sum_by_token
from minimal.kernels.dense import attention, tiles_of
from minimal.kernels.embedding import look_up
from minimal.kernels.fastest import CHOSEN
from minimal.kernels.forward import run_forward, triton
from minimal.kernels.fused import sort_ids, sum_by_id
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import visible
from minimal.training.compiling import compiled

PARTS = ("decode", "forward", "backward", "documents", "table", "train", "wide")

# fmt: off
TRAINED = [  # B, T, query heads, key heads, D, and keys to the left (0 = all)
    (32, 2048, 6, 6, 128, 0), (16, 4096, 6, 6, 128, 0), (8, 8192, 6, 6, 128, 0),
    (32, 2048, 12, 12, 64, 0), (16, 4096, 12, 12, 64, 0), (8, 8192, 12, 12, 64, 0),
    (32, 2048, 6, 6, 128, 512), (8, 8192, 6, 6, 128, 512),  # d12's windows
]
# fmt: on
MODELS = dict(plans=("standard", "bov", "vplus"), size="d12", batch=32, compile=True)


# ---- rows ----------------------------------------------------------------------------------------
def attention_inputs(bench, B, T, H, G, D):
    """q, k, table, ids, and the table's rows by position."""
    ids, table = bench.ids(B, T), bench.randn(bench.V, G, D)
    return bench.randn(B, T, H, D), bench.randn(B, T, G, D), table, ids, table[ids]


def torch_ways(bench, B, T, H, G, D, window):
    """{(family, settings): attention(q, k, v)} of PyTorch's causal attentions, each backend by
    itself; and `chosen`, the one that a model trains through."""
    mask = visible(T, T, True, window, device=bench.device) if window else None
    ways = {
        ("sdpa", name): lambda q, k, v, by=name: sdpa(q, k, v, by, mask is None, mask)
        for name in backends(bench.device, bool(window))
    }
    ways["chosen", ""] = partial(attention, window=window)
    if flex_joins(bench, B, T, H, G, D, window):
        tiles = tiles_of(T, window or T, bench.device)
        ways["flex", ""] = lambda q, k, v: flex(q, k, v, tiles)
    return ways


def visible_pairs(T, window):
    """Queries and keys that see each other; without a window half of the square, as is usual."""
    return T * (window + 1) - window * (window + 1) // 2 if window else T * T / 2


def forward(bench, B, T, H, G, D, window=0):
    """The fused forward, our kernel over a stored V, PyTorch's attention with and without rows."""
    q, k, table, ids, v = attention_inputs(bench, B, T, H, G, D)
    flat, how = table.flatten(1), (None, None, True, window, D**-0.5)
    rows = lambda: F.embedding(ids, flat).view(v.shape)
    ways = {("fused_training", ""): lambda: run_forward(q, k, table, ids, *how, True)[0]}
    for stages in (3, 5):
        run, at = partial(run_forward, stages=stages), f"{stages} stages"
        ways["fused", at] = lambda run=run: run(q, k, table, ids, *how, False)[0]
        ways["stored", at] = lambda run=run: run(q, k, v, None, *how, False)[0]
    for (family, at), run in torch_ways(bench, B, T, H, G, D, window).items():
        ways[family, at] = lambda run=run: run(q, k, v)
        ways[f"rows_and_{family}", at] = lambda run=run: run(q, k, rows())
    taken = bench.graphs(agree(ways, bench.dtype, f"forward {B} x {T}"))
    fused = fastest_of(taken, "fused")[0]
    moved = forward_bytes(B, T, T, H, G, D, bench.V, k.element_size(), keep=False)
    return dict(
        part="forward",
        B=B,
        T=T,
        H=H,
        D=D,
        window=window,
        fused_over_stored=fastest_of(taken, "stored")[0] / fused,
        tflops=4 * B * H * visible_pairs(T, window) * D / fused / 1e12,
        bytes_us=1e6 * moved / bench.memory,
        chosen_over_best=share_of_best(taken, "rows_and_chosen", ("rows_and", "fused_training")),
        **columns(taken),
        each_us=each_us(taken),
    )


def share_of_best(taken, chosen, rivals):
    """The time of the best of these families, as a share of what the chosen one takes: 1 where none
    is better."""
    best = min(s for (family, _), s in taken.items() if family.startswith(rivals))
    return best / fastest_of(taken, chosen)[0]


def backward(bench, B, T, H, G, D, window=0):
    """Gradients of q, k and table: by our kernels, and by PyTorch's through the rows. No graphs."""
    q, k, table, ids, _ = attention_inputs(bench, B, T, H, G, D)
    leaves = [x.requires_grad_() for x in (q, k, table)]
    push = bench.randn(B, T, H, D)

    back = lambda forward: gradients(forward, leaves, push)
    rows = lambda: F.embedding(ids, table.flatten(1)).view(k.shape)
    ours = dict(way="fused", window=window)
    ways = {("fused", ""): back(lambda: gather_attention(q, k, table, ids, **ours))}
    for (family, at), run in torch_ways(bench, B, T, H, G, D, window).items():
        ways[f"rows_and_{family}", at] = back(lambda run=run: run(q, k, rows()))
    taken = bench.seconds(agree(ways, bench.dtype, f"backward {B} x {T}"))
    fused = fastest_of(taken, "fused")[0]
    return dict(
        part="backward",
        B=B,
        T=T,
        H=H,
        D=D,
        window=window,
        fused_over_dense=min(s for name, s in taken.items() if name[0] != "fused") / fused,
        tflops=10 * B * H * visible_pairs(T, window) * D / fused / 1e12,  # 2.5 forwards, as usual
        chosen_over_best=share_of_best(taken, "rows_and_chosen", ("rows_and", "fused")),
        **columns(taken),
        each_us=each_us(taken),
    )


# ---- a table's gradient --------------------------------------------------------------------------

# the further share of one token: none, a text's, and on to nothing but padding
HOTTEST = (0.0, 0.02, 0.04, 0.08, 0.25, 1.0)

TRAINED_WAYS = ("compiled", "joined", "eager")


def heated(ids, share):
    """The same ids, of which so many are now token 0."""
    chance = torch.Generator().manual_seed(1)
    hot = torch.rand(ids.shape, generator=chance).to(ids.device) < share
    return ids.masked_fill(hot, 0)


def table_gradient(bench, B, T, H, G, D, share):
    """Rows by position summed by token: by our kernel, by PyTorch's embedding, by atomics; and by
    what our fused backward chooses of the first two. Then as a training step has it, from rows of
    the activations' type to a table of fp32: `compiled`, by our operator; `joined`, by what the
    compiler makes of PyTorch's lookup by itself; `eager`, by PyTorch's lookup uncompiled.

    `sum_by_token` has one program a token and column block, so the hottest token's program ends
    last. Two programs a hot token would end sooner, and cost a second pass over what they leave. A
    split could save what a text's hottest token costs over ids as they were drawn: on an H100 less
    than a twentieth of a fused backward, and models train through PyTorch's attention. So no token
    is split.

    The sort of the ids is not counted where our kernel is called alone: there it is made once for
    all layers of a step. In `compiled` and in PyTorch's own it is."""
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

    def chosen():
        return sum_by_id(rows.flatten(2), ids, bench.V, table.dtype, plan).view_as(table)

    CHOSEN.clear()  # each share is asked anew
    alone = {
        ("sum_by_token", ""): lambda: run_sum_by_token(rows, plan, table),
        ("embedding", ""): embedding,
        ("atomics", ""): atomics,
        ("chosen", ""): chosen,
    }
    # a compiled backward that is timed runs again and again: it may not reuse what was kept for it
    with functorch.patch(donated_buffer=False):
        ways = alone | trained_ways(bench, table, ids, rows)
        ways = agree(ways, bench.dtype, f"table's gradient, {share:.0%} hot")
    alone = {name: way for name, way in ways.items() if name in alone}
    taken = bench.seconds(alone)
    # Python needs about as long for a backward pass as the GPU: in a row of them it is ahead
    often = {(name, ""): partial(again, ways[name, ""], bench.backwards) for name in TRAINED_WAYS}
    taken |= {name: seconds / bench.backwards for name, seconds in bench.seconds(often).items()}
    moved = rows.numel() * rows.element_size() + table.numel() * 4
    floor = moved / bench.memory
    better = min(taken["sum_by_token", ""], taken["embedding", ""])
    best_trained = min(taken[name, ""] for name in ("sum_by_token", "joined", "eager"))
    return dict(
        part="table",
        B=B,
        T=T,
        width=G * D,
        hottest=index.bincount().max().item() / index.numel(),
        floor_us=1e6 * floor,
        share_of_floor=floor / fastest_of(taken, "sum_by_token")[0],
        chosen_over_best=better / taken["chosen", ""],
        compiled_over_best=best_trained / taken["compiled", ""],
        **columns(taken),
        each_us=each_us(taken),
    )


def again(way, times):
    for _ in range(times):
        way()


def trained_ways(bench, table, ids, rows):
    """The backward pass of a lookup alone. On a CPU the compiler's graph is run, not its code."""
    leaf = torch.zeros_like(table, requires_grad=True)
    backend = dict(backend="aot_eager") if bench.device == "cpu" else {}

    def pytorchs(table, ids, dtype):
        return F.embedding(ids, table.flatten(1)).view(rows.shape).to(dtype)

    looks = dict(
        compiled=compiled(look_up, **backend), joined=compiled(pytorchs, **backend), eager=pytorchs
    )
    return {
        (name, ""): gradients(lambda look=look: look(leaf, ids, rows.dtype), [leaf], rows)
        for name, look in looks.items()
    }


# ---- training ------------------------------------------------------------------------------------


def train(bench, plan, size, batch, compile):
    """Whole training steps of a plan."""
    row = training(size, plan, batch, compile, bench.rounds, bench.device)
    return dict(part="train", batch=batch) | row


# what is said of a row
SAID = dict(
    decode="decode {B} x {T}: {gather_us:.0f} us a layer, {faster_than_v_cache:.2f} times as fast "
    "as the best V cache, {share_of_floor:.0%} of the floor",
    wide="decode {B} x {T}, rows wider than keys: {gather_us:.0f} us a layer by rows, "
    "{histogram_us:.0f} by token, {faster_than_v_cache:.2f} and {binned_over_v_cache:.2f} times as "
    "fast as the best V cache",
    forward="forward {B} x {T}, {H} x {D}, window {window}: {tflops:.0f} TFLOP/s, "
    "{fused_over_stored:.2f} of our own kernel over a stored V; what training takes is at "
    "{chosen_over_best:.2f} of the best\n    {each_us}",
    backward="backward {B} x {T}, {H} x {D}, window {window}: {tflops:.0f} TFLOP/s, "
    "{fused_over_dense:.2f} of PyTorch's through the rows; what training takes is at "
    "{chosen_over_best:.2f} of the best\n    {each_us}",
    documents="documents of {mean} tokens in {B} x {T}: tiles in {tiles_us:.0f} us a batch\n"
    "    forward {forward_us}\n    backward {backward_us}",
    table="table's gradient, hottest token {hottest:.0%}: {sum_by_token_us:.0f} us, "
    "{share_of_floor:.0%} of the floor; ours chooses {chosen_over_best:.2f} of the better one, a "
    "compiled step {compiled_over_best:.2f} of the best\n"
    "    {each_us}",
    train="{plan:9} {size}: {tokens_per_second:,} tokens/s, {tflops:.0f} TFLOP/s counted, "
    "{share:.0%} of the best product's",
)


def everything(out=None, parts=PARTS, bench=None, cached=CACHED, trained=TRAINED, **smaller):
    """All rows of some parts: printed, and written to out/gather_gpu.json, each when it is
    there."""
    # settings, and the file's head
    bench = bench or Bench()
    models, buffers = smaller.get("models", MODELS), smaller.get("buffers", BUFFERS)
    head = results.header(
        "a GPU: bandwidths, gather attention in decode, forward and backward, training steps",
        "make bench PART=gpu",
        dict(name="Zipf ids", fingerprint="seed 0", tokens=max(B * S for B, S, *_ in cached)),
    )
    head["versions"]["triton"] = getattr(triton, "__version__", None)
    path, rows = None if out is None else Path(out) / "gather_gpu.json", []

    def keep(row):
        rows.append(row)
        if path is not None:
            results.append(path, row, head)
        return row

    # the bandwidths, then part by part
    bench, row = bandwidths(bench, **buffers)
    keep(row)
    plans, how = models["plans"], {name: models[name] for name in ("size", "batch", "compile")}
    work = dict(
        decode=[partial(decode, bench, *shape) for shape in cached],
        wide=[partial(decode, bench, *shape, wide=True) for shape in smaller.get("wide", WIDE)],
        forward=[partial(forward, bench, *shape) for shape in trained],
        backward=[partial(backward, bench, *shape) for shape in trained],
        documents=[partial(documents, bench, *shape) for shape in smaller.get("texts", PACKED)],
        table=[
            partial(table_gradient, bench, *trained[0][:5], share)
            for share in smaller.get("hottest", HOTTEST)
        ],
        train=[partial(train, bench, plan, **how) for plan in plans],
    )
    for part in parts:
        for measure in work[part]:
            print(SAID[part].format(**microseconds(keep(measure()))), flush=True)
    return rows


def microseconds(row):
    """A row whose lists of ways are told in whole microseconds."""
    told = {name: value for name, value in row.items() if isinstance(value, dict)}
    words = {
        name: ", ".join(f"{way} {us:.0f}" for way, us in one.items()) for name, one in told.items()
    }
    return row | words


@command("evidence.bench.gpu", __doc__.splitlines()[0])
def main(parser, argv):
    parser.add_argument("--part", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument(
        "--out", default=runs_folder() / "gpu", help="the folder of gather_gpu.json"
    )
    parser.add_argument("--rounds", type=number(int, least=1), default=20)
    asked = parser.parse_args(argv)
    if not torch.cuda.is_available():
        parser.error("wanted a GPU that torch can use, got none: run it on a machine that has one")
    everything(asked.out, asked.part, Bench(rounds=asked.rounds))


if __name__ == "__main__":
    main()
