"""Decode on a GPU: a step by every way, beside the best V cache, with the floor by bytes.

Keys and table rows in bf16, as a model holds them that only generates; and rows twice as wide as
keys, as a model that is being trained holds them: its tables are fp32, its keys bf16."""

import itertools
from functools import partial

import torch
import torch.nn.functional as F

from evidence.bench.graphs import (
    agree,
    backends,
    columns,
    fastest_of,
    flex,
    flex_joins,
    sdpa,
    split_bytes,
)
from minimal.kernels.decode import STRETCHES, how_many_splits, run_histogram, run_split

# fmt: off
CACHED = [  # B, tokens in the cache, query heads, key heads, D
    (1, 4096, 6, 6, 128), (1, 16384, 6, 6, 128), (1, 32768, 6, 6, 128), (1, 131072, 6, 6, 128),
    (8, 4096, 6, 6, 128), (8, 16384, 6, 6, 128), (8, 131072, 6, 6, 128), (8, 131072, 32, 8, 128),
    (64, 4096, 6, 6, 128), (64, 16384, 6, 6, 128),
]
WIDE = [(1, 16384, 6, 6, 128), (1, 131072, 6, 6, 128), (4, 131072, 6, 6, 128)]
# fmt: on

LARGE = 256 << 20  # bytes of a layer's keys beyond which two layers are enough for a graph
TOO_SHORT = 15e-6  # seconds of a graph below which its launch counts too: claim nothing


def decode_ways(bench, ids, layers, B, S, H, G, D, wide):
    """{(family, settings): call} over some layers, each with tensors of its own."""
    scale = D**-0.5
    made = []
    for _ in range(layers):
        q, k = (1.2 * F.rms_norm(bench.randn(B, n, h, D), (D,)) for n, h in ((1, H), (S, G)))
        table = bench.randn(G, bench.V, D).transpose(0, 1)  # head-major
        v = table[ids]
        table = table.float().contiguous() if wide else table  # as a model in training holds it
        made.append((q, k, table, table.reshape(bench.V, G * D), v))

    # Our split kernel, over a stored V, over one that is gathered first, and through the ids.
    how = (None, None, True, 0, scale)  # no gain, no lengths, causal, no window
    rows = lambda flat, v: F.embedding(ids, flat).view(v.shape).to(v.dtype)
    ways = {}
    for stages, each in itertools.product((3, 2), (4, 3)):
        splits = how_many_splits(B, G, S, programs_each=each)
        run = partial(run_split, splits=splits, stages=stages)
        at = f"{stages} stages, {splits} splits"
        ways |= {
            ("v_cache", at): lambda q, k, t, f, v, run=run: run(q, k, v, None, *how),
            ("materialise", at): lambda q, k, t, f, v, run=run: run(q, k, rows(f, v), None, *how),
            ("gather", at): lambda q, k, t, f, v, run=run: run(q, k, t, ids, *how),
        }

    # PyTorch's attention by each backend, and masses by token.
    for name in backends(bench.device):
        ways |= {
            ("sdpa", name): lambda q, k, t, f, v, by=name: sdpa(q, k, v, by),
            ("rows_and_sdpa", name): lambda q, k, t, f, v, by=name: sdpa(q, k, rows(f, v), by),
        }
    if flex_joins(bench, B, S, H, G, D):
        ways["flex", ""] = lambda q, k, t, f, v: flex(q, k, v)
        ways["rows_and_flex", ""] = lambda q, k, t, f, v: flex(q, k, rows(f, v))
    if G == H:
        counted = dict(bound=1.44 * D**0.5, causal=True, window=0, lengths=None, scale=scale)
        for family, stretches in dict(histogram=STRETCHES, histogram_whole=1).items():
            run = partial(run_histogram, **counted, stretches=stretches)
            ways[family, ""] = lambda q, k, t, f, v, run=run: run(q, k, t, ids, None)
    if wide:  # rows narrowed in every step: those of the whole table
        ways["narrowed", ""] = lambda q, k, t, f, v: run_split(q, k, t.to(k.dtype), ids, *how)

    def every_layer(one):
        return lambda: [one(*layer) for layer in made][-1]

    return {name: every_layer(one) for name, one in ways.items()}


def decode(bench, B, S, H, G, D, wide=False):
    """Microseconds a layer by way, times faster than the V cache, share of the time floor."""
    bytes_each = torch.empty(0, dtype=bench.dtype).element_size()
    layers = bench.layers if B * S * G * D * bytes_each <= LARGE else 2
    ids = bench.ids(B, S)
    ways = decode_ways(bench, ids, layers, B, S, H, G, D, wide)
    ways = agree(ways, bench.dtype, f"decode {B} x {S}")
    taken = {name: s / layers for name, s in bench.graphs(ways).items()}

    distinct = ids.unique().numel()
    gather = fastest_of(taken, "gather")[0]
    stored = min(s for (family, _), s in taken.items() if family in ("v_cache", "sdpa", "flex"))
    row = dict(
        part="wide" if wide else "decode",
        B=B,
        T=S,  # tokens in the cache
        H=H,
        G=G,
        D=D,
        layers=layers,
        distinct=distinct,
        faster_than_v_cache=stored / gather,
        too_short=layers * gather < TOO_SHORT,
        **columns(taken),
    )
    if wide:
        return row | dict(binned_over_v_cache=stored / fastest_of(taken, "histogram")[0])
    moved = split_bytes(B, 1, S, H, G, D, bench.V, bytes_each, distinct=distinct)
    floor = max(moved[0] / bench.memory, moved[1] / bench.l2)
    return row | dict(floor_us=1e6 * floor, share_of_floor=floor / gather)
