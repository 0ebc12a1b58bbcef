"""How is a GPU timed? Graphs, events, a full cache, rivals by name, two bandwidths, and floors."""

from functools import cache
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch._functorch import config as functorch
from torch.nn.attention import SDPBackend, flex_attention, sdpa_kernel

from minimal.bench.timing import in_turn, medians, zipf
from minimal.kernels.fastest import milliseconds
from minimal.kernels.forward import tl, triton
from minimal.kernels.recorded import Graphed
from minimal.kernels.reference import TOLERANCE
from minimal.training.compiling import compiled

# Backends of PyTorch's attention on a GPU, and those of them that take a mask.
BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION")
MASKED = ("EFFICIENT_ATTENTION", "CUDNN_ATTENTION")

OTHER = 64 << 20  # floats read between two ways: 256 MB, several times the largest L2

# Floats: 16 MB stay in the cache, 1 GB cannot.
BUFFERS = dict(small=4 << 20, large=256 << 20, programs=528)

# fmt: off
FLEX = {  # is compiled for every shape, with a search: rented time that it gets where it may win
    (8, 131072, 6, 6, 128), (8, 131072, 32, 8, 128),
    (32, 2048, 6, 6, 128, 0), (32, 2048, 6, 6, 128, 512), (8, 8192, 6, 6, 128, 512),
}
# fmt: on


class Bench(NamedTuple):
    """What all rows share. Device "cpu", in the interpreter, only tries the code out."""

    device: str = "cuda"
    dtype: torch.dtype = torch.bfloat16
    V: int = 32768
    rounds: int = 20
    layers: int = (
        10  # in one graph of decode, each with tensors of its own, so that launches are few
    )
    backwards: int = 8  # passes of a table's gradient in one call
    memory: float = 0.0  # bytes a second
    l2: float = 0.0

    def randn(self, *shape):
        return torch.randn(*shape, device=self.device, dtype=self.dtype)

    def ids(self, B, S):
        drawn = zipf(self.V, B * S, torch.Generator().manual_seed(0))
        return drawn.view(B, S).to(self.device)

    def seconds(self, ways):
        """{name: median seconds} of calls on this device, in turn."""
        measure = milliseconds if self.device == "cpu" else by_events(self.device)
        taken = medians(in_turn(ways, self.rounds, measure))
        return {name: ms / 1e3 for name, ms in taken.items()}

    def graphs(self, ways):
        """The same, each recorded once as a CUDA graph."""
        recorded = {name: Graphed(way, self.device, warm=1) for name, way in ways.items()}
        for one in recorded.values():
            one()  # as it is; the next call, by which a clock warms up, is recorded
        return self.seconds(recorded)


def by_events(device):
    """Milliseconds by the GPU's own clock, with the L2 cache full of other things.

    It is filled by reading: what is written would have to leave again. A way that found its tensors
    there would beat its floor."""
    other = torch.ones(OTHER, device=device)

    def measure(way):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        other.sum()
        start.record()
        way()
        end.record()
        end.synchronize()
        return start.elapsed_time(end)

    return measure


def agree(ways, dtype, what):
    """All ways give one answer, or there is nothing to time. The ways, without refused rivals."""
    kept, first = {}, None
    for name, way in ways.items():
        try:
            answer = way()
        except RuntimeError as error:
            rival = name[0].endswith(("sdpa", "flex"))
            if not rival or isinstance(error, torch.OutOfMemoryError):
                raise
            told = " ".join(name).strip()
            print(f"{what}: {told} is refused: {str(error).splitlines()[0]}")
            continue
        kept[name] = way
        answer = answer if isinstance(answer, tuple) else (answer,)
        first = first or answer
        for mine, right in zip(answer, first, strict=True):
            off = (mine.float() - right.float()).abs().max().item()
            limit = TOLERANCE[dtype] * max(1, right.float().abs().max().item())
            if not off <= limit:
                wrong = f"{what}: {' '.join(name)} is off by {off:.1e}: there is nothing to time"
                raise AssertionError(wrong)
    return kept


def fastest_of(taken, family):
    """(seconds, settings) of the fastest of a family's ways."""
    mine = {settings: s for (name, settings), s in taken.items() if name == family}
    settings = min(mine, key=mine.get)
    return mine[settings], settings


def columns(taken):
    """<family>_us and <family>_settings of every family, at its best settings."""
    row = {}
    for family in dict.fromkeys(name for name, _ in taken):
        s, settings = fastest_of(taken, family)
        row |= {f"{family}_us": 1e6 * s, f"{family}_settings": settings}
    return row


def each_us(taken):
    """Microseconds of every way, settings and all: no way hides behind a better one of its
    family."""
    return {" ".join(name).strip(): 1e6 * s for name, s in taken.items()}


def gradients(forward, leaves, push):
    """A call of the backward pass alone: the forward pass is made once, by the first call."""
    outputs = []

    def call():
        if not outputs:
            outputs.append(forward())
        return torch.autograd.grad(outputs[0], leaves, push, retain_graph=True)

    return call


# ---- PyTorch's attentions, (B, T, H, D) in and out -----------------------------------------------
def sdpa(q, k, v, backend, causal=False, mask=None):
    """The one call, by one of its backends."""
    with sdpa_kernel(getattr(SDPBackend, backend)):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        grouped = q.shape[1] != k.shape[1]
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal, enable_gqa=grouped)
    return y.transpose(1, 2)


def backends(device, masked=False):
    if device == "cpu":
        return ("FLASH_ATTENTION", "MATH")
    return MASKED if masked else BACKENDS


def flex(q, k, v, tiles=None):
    """FlexAttention; `tiles` are those that it computes, None for all."""
    call, grouped = best_flex(q.device.type), q.shape[2] != k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return call(q, k, v, block_mask=tiles, enable_gqa=grouped).transpose(1, 2)


def flex_joins(bench, *shape):
    """A CPU, where it is refused, says so in every row."""
    return shape in FLEX or bench.device == "cpu"


@cache
def best_flex(device):
    """Compiled for every shape anew, and at the fastest of the settings that PyTorch tries.

    A backward that is timed runs again and again, so it must not reuse what it was given."""
    if device != "cuda":
        raise RuntimeError("FlexAttention is one kernel only where it is compiled for a GPU")
    from torch._inductor import config as inductor  # loads the compiler, two seconds
    from torch._inductor import select_algorithm

    functorch.donated_buffer = False
    inductor.max_autotune_report_choices_stats = False
    select_algorithm.PRINT_AUTOTUNE = False  # a screen a shape
    return compiled(flex_attention.flex_attention, mode="max-autotune-no-cudagraphs")


# ---- bandwidths ----------------------------------------------------------------------------------
@triton.jit
def read_again(x, out, blocks, turns, N: tl.constexpr):
    """One program: the whole of x, `turns` times, from a place of its own. Only loads and a sum."""
    lane, total = tl.arange(0, N), tl.zeros([N], tl.float32)
    for step in range(blocks * turns):
        block = (tl.program_id(0) * 37 + step) % blocks
        total += tl.load(x + block * N + lane)
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


def run_read_again(x, programs, turns=1, N=4096):
    out = torch.empty(programs, device=x.device)
    read_again[(programs,)](x, out, x.numel() // N, turns, N=N, num_warps=8)
    return out


def bandwidths(bench, small, large, programs):
    """The bench with its two rates, and the row."""
    few, many = (torch.ones(n, device=bench.device) for n in (small, large))
    taken = bench.graphs(dict(l2=lambda: run_read_again(few, programs), memory=lambda: many.sum()))
    memory, l2 = 4 * large / taken["memory"], 4 * small * programs / taken["l2"]
    row = dict(part="bandwidth", memory_gb_s=memory / 1e9, l2_gb_s=l2 / 1e9)
    print("memory {memory_gb_s:.0f} GB/s, L2 {l2_gb_s:.0f} GB/s".format(**row))
    if l2 < 1.3 * memory:
        print(
            "L2 is hardly faster than memory: the copy did not stay there, and floors are too high"
        )
    return bench._replace(memory=memory, l2=l2), row


# ---- floors: the bytes that each way of reading values must move ---------------------------------


def rows_bytes(B, T, S, H, G, D, V, b=4, distinct=None):
    """(from memory, through the caches): keys and ids once, and rows, the distinct ones or all."""
    keys = B * S * G * D * b + B * S * 4
    rows = min(distinct or V, B * S) * G * D * b
    return keys + rows, keys + B * T * H * S * D * b


def histogram_bytes(B, T, S, H, G, D, V, b=4, distinct=None):
    """Keys and ids once, bins cleared, filled and read, rows once: those that occur, or all."""
    keys = B * S * G * D * b + B * S * 4
    bins = B * T * H * V * 4
    return keys + 4 * bins + (distinct or V) * G * D * b


def sorted_bytes(B, T, S, H, G, D, runs, b=4):
    """Keys once, one row a run and query head, run lengths and tokens."""
    keys = B * S * G * D * b
    return keys + B * T * H * runs * D * b + B * runs * 12


def split_bytes(B, T, S, H, G, D, V, b=2, splits=1, distinct=None):
    """(from HBM, through L2): keys and ids once; rows that occur from HBM, a row a key from L2."""
    keys = B * S * G * D * b + B * S * 4
    partial = 2 * splits * B * T * H * (D + 1) * 4 if splits > 1 else 0
    edges = 2 * B * T * H * D * b + partial
    rows = min(distinct or V, B * S) * G * D * b
    return keys + edges + rows, keys + edges + B * S * G * D * b


def forward_bytes(B, T, S, H, G, D, V, b=2, distinct=None, keep=True):
    """What must cross HBM once: q, k, ids, the table rows that occur, out.

    Training (`keep`) also writes the unscaled out and lse. Attention over stored values reads
    B*S*G*D*b where this reads `distinct` rows (all of V unless told)."""
    queries, keys, ids = B * T * H * D * b, B * S * G * D * b, B * S * 4
    rows = min(distinct or V, B * S) * G * D * b
    kept = queries + B * H * T * 4 if keep else 0
    return 2 * queries + keys + ids + rows + kept
