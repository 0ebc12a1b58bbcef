"""Is the gather as fast on this GPU as its bytes allow?                                    make bench PART=gpu

First two bandwidths, because they set every floor: memory's, and the L2 cache's, which no data sheet states. Then
decode by three ways that all split their keys (a V cache, the paper's materialised V, the gather), PyTorch's attention
beside them, from 4k to 1M cached tokens; then the fused training forward against our own kernel over a stored V. These
run as CUDA graphs, timed by events, each row the median of rounds in which every way has its turn. Last, whole training
steps of three plans, as a share of the best bf16 product that the same run measured.
Not yet measured on a GPU: no number in this repository comes from here until notebooks/evidence/gather_gpu.json exists.
"""

import itertools
import statistics
import time

import torch
import torch.nn.functional as F

from minimal.kernels.decode import Graphed, run_split, split_bytes
from minimal.kernels.forward import forward_bytes, run_forward, tl, triton
from minimal.lab.speed.bench import training
from minimal.lab.timing import zipf

CACHED = [
    (1, 4096),
    (1, 16384),
    (1, 32768),
    (8, 4096),
    (1, 131072),
    (8, 16384),
    (64, 4096),
    (8, 131072),
    (64, 16384),
]

TRAINED = [(32, 2048), (16, 4096), (8, 8192)]

HEADS = [(6, 128), (12, 64)]  # heads and their width; decode takes the first

MODELS = dict(plans=("standard", "bov", "vplus"), size="d12", batch=32, compile=True)

OTHER = 64 << 20  # floats that are read between two ways: 256 MB, several times the largest L2

BUFFERS = dict(
    small=4 << 20, large=256 << 20, programs=528
)  # floats: 16 MB stay in the cache, 1 GB cannot


@triton.jit
def read_again(x, out, blocks, turns, N: tl.constexpr):
    """One program: the whole of x, `turns` times, starting at a place of its own. Nothing but loads and a sum."""
    lane, total = tl.arange(0, N), tl.zeros([N], tl.float32)
    for step in range(blocks * turns):
        block = (tl.program_id(0) * 37 + step) % blocks
        total += tl.load(x + block * N + lane)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


def run_read_again(x, programs, turns=1, N=4096):
    out = torch.empty(programs, device=x.device)
    read_again[(programs,)](x, out, x.numel() // N, turns, N=N, num_warps=8)
    return out


def seconds(ways, device, rounds):
    """{name: median seconds}: recorded as graphs, timed in turn. Before each the L2 cache is filled with other things,
    by reading (what is written would have to leave again): a way that found its tensors there would beat its floor."""
    ways, taken = (
        {name: Graphed(way, device) for name, way in ways.items()},
        {name: [] for name in ways},
    )
    other = torch.ones(OTHER if device == "cuda" else 0, device=device)
    for _turn in range(rounds + 2):
        for name, way in ways.items():
            other.sum()
            taken[name].append(timed(way, device))
    return {name: statistics.median(times[2:]) for name, times in taken.items()}


def timed(way, device):
    if device == "cpu":  # only to try the code out: in the interpreter a time says nothing
        start = time.perf_counter()
        way()
        return time.perf_counter() - start
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    way()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def bandwidths(device, rounds, small, large, programs):
    """(bytes a second from memory, from L2)."""
    few, many = torch.ones(small, device=device), torch.ones(large, device=device)
    taken = seconds(
        dict(l2=lambda: run_read_again(few, programs), memory=lambda: many.sum()), device, rounds
    )
    return 4 * large / taken["memory"], 4 * small * programs / taken["l2"]


def decode(B, T, H, D, V, memory, l2, device, dtype, rounds):
    """One row: microseconds by way, times faster than the V cache, share of the time floor."""
    ids = zipf(V, B * T, torch.Generator().manual_seed(0)).view(B, T).to(device)
    q = torch.randn(B, 1, H, D, device=device, dtype=dtype)
    k = torch.randn(B, T, H, D, device=device, dtype=dtype)
    table = torch.randn(H, V, D, device=device, dtype=dtype).transpose(0, 1)  # head-major
    v, gain, scale = table[ids], torch.tensor(0.7, device=device), D**-0.5
    flat = table.reshape(V, H * D)
    taken = seconds(
        dict(
            v_cache=lambda: run_split(q, k, v, None, gain, None, True, 0, scale),
            materialise=lambda: run_split(
                q, k, F.embedding(ids, flat).view(v.shape), None, gain, None, True, 0, scale
            ),
            gather=lambda: run_split(q, k, table, ids, gain, None, True, 0, scale),
            sdpa=lambda: (
                F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in (q, k, v))) * gain
            ),
        ),
        device,
        rounds,
    )
    distinct = ids.unique().numel()
    from_memory, through_l2 = split_bytes(B, 1, T, H, H, D, V, k.element_size(), distinct=distinct)
    floor = max(from_memory / memory, through_l2 / l2)
    return dict(
        part="decode",
        B=B,
        T=T,
        H=H,
        D=D,
        distinct=distinct,
        floor_us=1e6 * floor,
        share_of_floor=floor / taken["gather"],
        faster_than_v_cache=taken["v_cache"] / taken["gather"],
        **{f"{name}_us": 1e6 * value for name, value in taken.items()},
    )


def forward(B, T, H, D, V, memory, device, dtype, rounds):
    """One row: the fused forward against the same kernel over a stored V, and PyTorch's attention with and without
    the gather that it needs first."""
    ids = zipf(V, B * T, torch.Generator().manual_seed(0)).view(B, T).to(device)
    q, k = torch.randn(2, B, T, H, D, device=device, dtype=dtype)
    table = torch.randn(V, H, D, device=device, dtype=dtype)
    v, scale = table[ids], D**-0.5
    flat = table.flatten(1)
    sdpa = lambda v: F.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (q, k, v)), is_causal=True
    )
    taken = seconds(
        dict(
            fused=lambda: run_forward(q, k, table, ids, None, None, True, 0, scale, True)[0],
            stored=lambda: run_forward(q, k, v, None, None, None, True, 0, scale, True)[0],
            sdpa=lambda: sdpa(v),
            rows_and_sdpa=lambda: sdpa(F.embedding(ids, flat).view(v.shape)),
        ),
        device,
        rounds,
    )
    return dict(
        part="forward",
        B=B,
        T=T,
        H=H,
        D=D,
        fused_over_stored=taken["stored"] / taken["fused"],
        tflops=2 * B * H * T * T * D / taken["fused"] / 1e12,
        bytes_us=1e6 * forward_bytes(B, T, T, H, H, D, V, k.element_size()) / memory,
        **{f"{name}_us": 1e6 * value for name, value in taken.items()},
    )


def everything(
    device="cuda",
    cached=CACHED,
    trained=TRAINED,
    heads=HEADS,
    V=32768,
    dtype=torch.bfloat16,
    buffers=BUFFERS,
    models=MODELS,
    rounds=20,
    out="gather_gpu",
):
    """All rows, printed as they come, and recorded with the hardware. The defaults are the measurement; anything
    smaller, and device "cpu" with Triton's interpreter, only tries the code out."""
    from minimal.data.results import header, write
    from minimal.lab.evidence.records import EVIDENCE

    memory, l2 = bandwidths(device, rounds, **buffers)
    rows = [dict(part="bandwidth", memory_gb_s=memory / 1e9, l2_gb_s=l2 / 1e9)]
    print(f"memory {memory / 1e9:.0f} GB/s, L2 {l2 / 1e9:.0f} GB/s")
    for B, T in cached:
        rows.append(decode(B, T, *heads[0], V, memory, l2, device, dtype, rounds))
        print(
            "decode {B} x {T}: {gather_us:.0f} us, {faster_than_v_cache:.2f} times as fast as the V cache, "
            "{share_of_floor:.0%} of the floor".format(**rows[-1])
        )
    for (B, T), (H, D) in itertools.product(trained, heads):
        rows.append(forward(B, T, H, D, V, memory, device, dtype, rounds))
        print(
            "forward {B} x {T}, {H} x {D}: {tflops:.0f} TFLOP/s, {fused_over_stored:.2f} of our own kernel over a "
            "stored V".format(**rows[-1])
        )
    for plan in models["plans"]:
        rows.append(
            dict(part="train", batch=models["batch"])
            | training(models["size"], plan, models["batch"], models["compile"], rounds, device)
        )
        print(
            "{plan:9} {size}: {tokens_per_second:,} tokens/s, {tflops:.0f} TFLOP/s counted, {share:.0%} of the best "
            "product's".format(**rows[-1])
        )
    if out:
        head = header(
            "a GPU: bandwidths, gather attention in decode and forward, training steps",
            "make bench PART=gpu",
            dict(name="Zipf ids", fingerprint="seed 0", tokens=max(B * T for B, T in cached)),
        )
        head["versions"]["triton"] = triton.__version__
        write(EVIDENCE / f"{out}.json", head | dict(rows=rows))
    return rows
