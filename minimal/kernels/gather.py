"""How can attention read its values through the token ids? The front door: gather_attention.

A Bank of Values needs no V: the value at position p is gain * table[ids[p]]. `gather_attention` is
that sentence as a function to drop into a model of your own:

    y = gather_attention(q, k, table, ids, gain, window=512)  # where attention(q, k, V) stood

It checks its tensors once, lets `route` choose a way from the shapes, and every way must equal
`reference` within TOLERANCE:

    way        what it does                                        where        file
    dense      rows of the table into PyTorch's attention; trains  anywhere     dense
    fused      rows gathered inside the attention loop; trains     Triton       fused, forward, …
    split      decode: keys divided among programs, then combined  Triton       decode
    histogram  decode: mass summed by token, then one product      CPU, Triton  histogram, decode
    rows       decode: one weighted sum of table rows              CPU          histogram
"""

import warnings
from functools import partial

import torch

from minimal.kernels.check import as_int32, check, kernel_ready, want
from minimal.kernels.dense import dense
from minimal.kernels.fastest import fastest
from minimal.kernels.fused import fused
from minimal.kernels.histogram import histogram_decode, rows_decode
from minimal.kernels.reference import reference
from minimal.kernels.route import choose_way, is_close, kernels_run


def gather_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    table: torch.Tensor,
    ids: torch.Tensor,
    gain: torch.Tensor | None = None,
    *,
    causal: bool = True,
    window: int = 0,
    lengths: torch.Tensor | None = None,
    scale: float | None = None,
    bound: float | None = None,
    way: str | None = None,
    order: tuple | None = None,
) -> torch.Tensor:
    """q (B, T, H, D), k (B, S, G, D), table (V, G, D), ids (B, S) int32, gain 0-D or None -> as q.

    window: how many keys to its left a query sees besides itself, 0 = all. lengths (B,): valid keys
    of each sequence; with T = S the rest is padding on the right, with T < S the queries are the
    last T valid positions. bound: the largest |logit| there can be (QK norm gives one) spares
    decoding the running maximum. way: one of WAYS instead of route's choice. order:
    sort_ids(ids, V), if it is at hand."""
    check(q, k, table, ids, gain, window, lengths, scale)
    how = dict(causal=causal, window=window, lengths=lengths, scale=scale)
    return unchecked(q, k, table, ids, gain, bound=bound, way=way, order=order, **how)


def unchecked(
    q, k, table, ids, gain,
    *,
    causal=True, window=0, lengths=None, scale=None, bound=None, way=None, order=None,
):  # fmt: skip
    """The same for a model, whose tensors fit and whose ids were looked at when they came in."""
    T, D, S = q.shape[1], q.shape[3], k.shape[1]
    training = torch.is_grad_enabled() and any(
        x.requires_grad for x in (q, k, table, gain) if x is not None
    )

    # Which way: route's, unless the caller names one, and dense where Triton cannot run.
    chosen_here = way is None
    if chosen_here:
        way = routed(q, k, table, training, window)
    want(way in WAYS, "way wants one of {}, got {!r}", ", ".join(WAYS), way)
    has_backward = way in TRAIN or not training
    want(has_backward, "way={!r} has no backward: use torch.no_grad(), dense or fused", way)
    if way in ("fused", "split") and not kernels_run(q.device.type):
        sentence = "gather_attention: Triton cannot run on {} tensors here, so {} becomes dense"
        say_once(sentence.format(q.device.type, way))
        way = "dense"

    # What every way is told; a window makes the past short.
    scale = D**-0.5 if scale is None else float(scale)
    how = dict(causal=causal, window=window, lengths=lengths, scale=scale)
    if lengths is None and 0 < window < S - T:
        first = S - T - window
        k, ids = k[:, first:], ids[:, first:]
        order = None  # that of all ids fits these no longer
    if not q.numel() or not S:
        return reference(q, k, table, ids, gain, **how)

    # Where bytes do not decide, a measurement does.
    given, how = (q, k, table, ids, gain), dict(how, bound=bound, order=order)
    if chosen_here and way in COUNTED:
        way = measured(way, given, how)
    return WAYS[way](*given, **how)


def routed(q, k, table, training, window):
    """The way that route chooses for these tensors."""
    (B, T, H, D), (_, S, G, _), V = q.shape, k.shape, len(table)
    bytes_each = dict(k_bytes=k.element_size(), table_bytes=table.element_size())
    known = dict(device=q.device.type, training=training, window=window)
    return choose_way(B, T, S, H, G, D, V, **known, **bytes_each)[0]


def measured(way, given, how):
    """On a CPU, where bytes leave it open: both ways timed once on these tensors, one kept."""
    q, k, table = given[:3]
    (B, T, H, D), (_, S, G, _), V = q.shape, k.shape, len(table)
    if q.is_cuda or torch.compiler.is_compiling() or not is_close(B, T, S, H, G, V):
        return way
    ways = {name: partial(WAYS[name], *given, **how) for name in COUNTED}
    sizes = (B, T, S.bit_length(), H, G, D, V)
    return fastest(("counted", *sizes, q.dtype, table.dtype), ways)


def split_decode(q, k, table, ids, gain, *, causal, window, lengths, scale, bound=None, order=None):
    from minimal.kernels.decode import run_split

    ready = kernel_ready(q, k, table, ids)
    return run_split(*ready, gain, as_int32(lengths), causal, window, scale)


def histogram(q, k, table, ids, gain, *, lengths, bound=None, order=None, **how):
    if not q.is_cuda or bound is None or not kernels_run("cuda"):
        return histogram_decode(q, k, table, ids, gain, lengths=lengths, bound=bound, **how)
    from minimal.kernels.decode import run_histogram

    ready = kernel_ready(q, k, table, ids)
    return run_histogram(*ready, gain, lengths=as_int32(lengths), bound=bound, **how)


def rows(q, k, table, ids, gain, *, order=None, **how):
    return rows_decode(q, k, table, ids, gain, **how)


WAYS = dict(dense=dense, fused=fused, split=split_decode, histogram=histogram, rows=rows)

TRAIN = ("dense", "fused")  # the ways that have a backward

COUNTED = ("rows", "histogram")  # the ways of a CPU that store no values

SAID = set()


def say_once(sentence):
    if sentence not in SAID:
        SAID.add(sentence)
        warnings.warn(sentence, stacklevel=3)
