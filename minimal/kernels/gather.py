"""How can attention read its values through the token ids, and which way of doing that is right here?

A Bank of Values needs no V: the value at position p is gain * table[ids[p]]. `gather_attention` is that sentence as a
function to drop into a model of your own:

    y = gather_attention(q, k, table, ids, gain, window=512)  # where attention(q, k, table[ids] * gain) stood

It checks its tensors once, lets `route` choose a way from the shapes, and every way must equal `reference` within
TOLERANCE:

    way        what it does                                                 where            file
    dense      rows of the table into PyTorch's attention; trains           anywhere         here
    fused      rows gathered inside the attention loop; trains              Triton           gather_forward, _backward
    split      decode: the keys divided among programs, then combined       Triton           gather_decode
    histogram  decode: mass summed by token, one product with the table     CPU, Triton      histogram, gather_decode
    rows       decode: one weighted sum of table rows                       CPU              histogram
"""

import importlib.util
import os
import sys
import warnings
from typing import NamedTuple

import torch
import torch.nn.functional as F

from minimal.kernels.reference import MOST_LOGIT, TOLERANCE, reference, visible, want

HAS_TRITON = importlib.util.find_spec("triton") is not None

DECODE_QUERIES = (
    64  # query rows that share a key head; beyond, attention is bound by products and not by bytes
)

FEW_VALUES = (
    2**19
)  # numbers in the visible values; fewer are gathered by a CPU before any other way has started


# ---- which way, and why --------------------------------------------------------------------------
def kernels_run(device):
    """Triton is here and has something to run on: a GPU, or its interpreter (TRITON_INTERPRET=1 before the import)."""
    loaded = sys.modules.get("minimal.kernels.forward")
    interpreted = loaded.INTERPRETED if loaded else os.environ.get("TRITON_INTERPRET") == "1"
    return HAS_TRITON and (device == "cuda" or interpreted)


def route(
    B,
    T,
    S,
    H,
    G,
    D,
    V,
    *,
    device,
    training=False,
    window=0,
    bound=None,
    k_bytes=4,
    table_bytes=4,
    triton=None,
):
    """(way, reason), from shapes. What it says of GPUs follows from counted bytes: not yet measured on a GPU."""
    triton = HAS_TRITON if triton is None else triton
    decoding, gpu = not training and T * (H // G) <= DECODE_QUERIES, device == "cuda"
    fits = 32 <= D <= 128 and max(k_bytes, table_bytes) <= 4  # what the kernels take
    reach = min(S, window + T) if window else S  # keys that some query sees
    by_position, by_token = B * T * H * reach, V * (G if B * T * H > G else H)  # table rows to read
    rules = [
        (
            not decoding and gpu and triton and fits and 0 < window < S // 4,
            "fused",
            f"PyTorch's attention has no windows and computes all {S} keys of a query, the kernel about {window}",
        ),
        (
            not decoding,
            "dense",
            "a stored V costs 2 to 9 % of the forward, and PyTorch's attention is faster than ours by more",
        ),
        (gpu and not triton, "dense", "Triton is not installed"),
        (gpu and not fits, "dense", "the kernels take head widths of 32 to 128 and no float64"),
        (
            gpu
            and bound is not None
            and bound <= MOST_LOGIT
            and H == G
            and k_bytes < table_bytes
            and 4 * by_token <= by_position,
            "histogram",  # 4: a row from L2 costs half of one from memory, bins cost too
            f"keys are smaller than table rows, and {by_token} rows of the whole table few against {by_position} from L2",
        ),
        (
            gpu,
            "split",
            "decode is bound by bytes: keys from memory, table rows mostly from the L2 cache"
            if B * S >= 16384
            else "short: launches cost more than bytes here, but no V is stored",
        ),
        (
            B * reach * G * D < FEW_VALUES,
            "dense",
            f"{B * reach} rows of values are there before a cleverer way starts",
        ),
        (
            by_token < by_position,
            "histogram",
            f"{by_token} rows of the whole table < {by_position} rows by position",
        ),
        (True, "rows", f"{by_position} rows by position <= {by_token} rows of the whole table"),
    ]
    return next((way, reason) for holds, way, reason in rules if holds)


# ---- the front door ------------------------------------------------------------------------------
def gather_attention(
    q,
    k,
    table,
    ids,
    gain=None,
    *,
    causal=True,
    window=0,
    lengths=None,
    scale=None,
    bound=None,
    way=None,
    plan=None,
):
    """q (B, T, H, D), k (B, S, G, D), table (V, G, D), ids (B, S) int32, gain 0-D or None -> (B, T, H, D).

    window: how many keys to its left a query sees besides itself, 0 = all. lengths (B,): valid keys of each sequence;
    with T = S the rest is padding on the right, with T < S the queries are the last T valid positions.
    bound: the largest |logit| there can be (QK norm gives one) spares decoding the running maximum.
    way: one of WAYS instead of route's choice. plan: sort_ids(ids, V) if it is at hand."""
    check(q, k, table, ids, gain, window, lengths, scale)
    (B, T, H, D), (_, S, G, _), V = q.shape, k.shape, len(table)
    training = torch.is_grad_enabled() and any(
        x is not None and x.requires_grad for x in (q, k, table, gain)
    )
    if way is None:
        way, _ = route(
            B,
            T,
            S,
            H,
            G,
            D,
            V,
            device=q.device.type,
            training=training,
            window=window,
            bound=bound,
            k_bytes=k.element_size(),
            table_bytes=table.element_size(),
        )
    want(way in WAYS, "way wants one of {}, got {!r}", ", ".join(WAYS), way)
    want(
        way in TRAIN or not training,
        "way={!r} has no backward: use torch.no_grad(), dense or fused",
        way,
    )
    if way in ("fused", "split") and not kernels_run(q.device.type):
        say_once(
            f"gather_attention: Triton cannot run on {q.device.type} tensors here, so {way} becomes dense"
        )
        way = "dense"
    how = dict(
        causal=causal,
        window=window,
        lengths=lengths,
        scale=D**-0.5 if scale is None else float(scale),
    )
    if lengths is None and 0 < window < S - T:  # a window makes the past short
        k, ids, plan = (
            k[:, S - T - window :],
            ids[:, S - T - window :],
            None,
        )  # a plan for all ids fits these no longer
    if not q.numel() or not S:
        return reference(q, k, table, ids, gain, **how)
    return WAYS[way](q, k, table, ids, gain, bound=bound, plan=plan, **how)


def dense(q, k, table, ids, gain, *, causal, window, lengths, scale, bound=None, plan=None):
    """Rows first, then PyTorch's attention. F.embedding's backward adds in a fixed order, table[ids]'s does not."""
    T, S = q.shape[1], k.shape[1]
    plain = (
        lengths is None and not 0 < window < S - 1 and (not causal or T == S or T == 1)
    )  # SDPA knows this mask
    v = (
        F.embedding(ids, table.flatten(1)).view(k.shape) if table.is_contiguous() else table[ids]
    )  # (B, S, G, D)
    see = None if plain else visible(T, S, causal, window, lengths, q.device)  # (B, 1, T, S)
    blind = (
        None if plain else ~see.any(-1, keepdim=True)
    )  # their softmax is 0 / 0: let them see, then put 0
    out = F.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (q, k, v.to(q.dtype))),
        attn_mask=None if plain else see | blind,
        is_causal=plain and causal and T > 1,
        scale=scale,
        enable_gqa=q.shape[2] != k.shape[2],
    )  # (B, H, T, D)
    out = (out if plain else out.masked_fill(blind, 0)).transpose(1, 2)
    return out if gain is None else out * gain.to(out.dtype)


class TokenOrder(NamedTuple):
    """Positions sorted by token: those of token w are order[starts[w]:starts[w + 1]], in the order of the text."""

    order: torch.Tensor  # (B*S,) int32
    starts: torch.Tensor  # (V + 1,) int32


def sort_ids(ids, vocabulary):
    """One stable sort for all layers of a step: the plan stays on the ids tensor until somebody writes to it."""
    stamp = vocabulary, None if ids.is_inference() else ids._version
    if stamp[1] is None or getattr(ids, "_plan", (None,))[0] != stamp:
        tokens, order = ids.flatten().sort(stable=True)
        every = torch.arange(vocabulary + 1, dtype=ids.dtype, device=ids.device)
        ids._plan = (
            stamp,
            TokenOrder(order.int(), torch.searchsorted(tokens, every, out_int32=True)),
        )
    return ids._plan[1]


class Fused(torch.autograd.Function):
    """The Triton kernels and their gradients. Of what is kept for the backward, nothing is a V."""

    @staticmethod
    def forward(ctx, q, k, table, ids, gain, lengths, causal, window, scale, plan, atomic):
        from minimal.kernels.forward import run_forward

        ctx.how, ctx.plan, ctx.atomic = (causal, window, scale), plan, atomic
        keep = any(ctx.needs_input_grad)
        out, unscaled, lse = run_forward(
            q, k, table, ids, gain, lengths, causal, window, scale, keep
        )
        ctx.save_for_backward(*(q, k, table, ids, gain, lengths, unscaled, lse) if keep else ())
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        from minimal.kernels.backward import run_backward, run_sum_by_token

        q, k, table, ids, gain, lengths, unscaled, lse = ctx.saved_tensors
        grad_q, grad_k, grad_v, grad_table, delta = run_backward(
            grad.contiguous(), q, k, table, ids, gain, lengths, unscaled, lse, *ctx.how, ctx.atomic
        )
        if ctx.needs_input_grad[2]:
            grad_table = (
                run_sum_by_token(grad_v, ctx.plan or sort_ids(ids, len(table)), table)
                if grad_table is None
                else grad_table.to(table.dtype)
            )
        grad_gain = (
            None if gain is None else delta.sum().to(gain.dtype)
        )  # sum of dO * u: finite at gain 0
        return grad_q, grad_k, grad_table, None, grad_gain, *[None] * 6


def fused(
    q, k, table, ids, gain, *, causal, window, lengths, scale, bound=None, plan=None, atomic=False
):
    """Values gathered inside the attention loop. `atomic`: the table's gradient by atomics instead of by the plan."""
    return Fused.apply(
        *kernel_ready(q, k, table, ids),
        gain,
        as_int32(lengths),
        causal,
        window,
        scale,
        plan,
        atomic,
    )


def split(q, k, table, ids, gain, *, causal, window, lengths, scale, bound=None, plan=None):
    from minimal.kernels.decode import run_split

    return run_split(
        *kernel_ready(q, k, table, ids), gain, as_int32(lengths), causal, window, scale
    )


def histogram(q, k, table, ids, gain, *, lengths, bound=None, plan=None, **how):
    if q.is_cuda and bound is not None and kernels_run("cuda"):
        from minimal.kernels.decode import run_histogram

        return run_histogram(
            *kernel_ready(q, k, table, ids), gain, lengths=as_int32(lengths), bound=bound, **how
        )
    from minimal.kernels.histogram import histogram_decode

    return histogram_decode(q, k, table, ids, gain, lengths=lengths, bound=bound, **how)


def rows(q, k, table, ids, gain, *, plan=None, **how):
    from minimal.kernels.histogram import rows_decode

    return rows_decode(q, k, table, ids, gain, **how)


WAYS = dict(dense=dense, fused=fused, split=split, histogram=histogram, rows=rows)

TRAIN = ("dense", "fused")


def check(q, k, table, ids, gain, window, lengths, scale):
    """One clear sentence for each way to call this wrongly."""
    for name, x, n in (("q", q, 4), ("k", k, 4), ("table", table, 3), ("ids", ids, 2)):
        want(x.ndim == n, "{} wants {} dimensions, got {}", name, n, x.shape)
    (B, _, H, D), (_, S, G, _), V = q.shape, k.shape, len(table)
    want(
        k.shape == (B, S, G, D),
        "k wants batch {} and head width {} as q has, got {}",
        B,
        D,
        k.shape,
    )
    want(G > 0 and H % G == 0, "q's {} heads want to be a multiple of k's {} heads", H, G)
    want(table.shape == (V, G, D), "table wants (V, {}, {}) to fit k, got {}", G, D, table.shape)
    want(ids.shape == (B, S), "ids wants one id a key, ({}, {}), got {}", B, S, ids.shape)
    want(ids.dtype == torch.int32, "ids wants torch.int32, got {}: call ids.int()", ids.dtype)
    want(
        q.dtype in TOLERANCE and k.dtype == q.dtype,
        "q and k want one floating dtype: {}, {}",
        q.dtype,
        k.dtype,
    )
    want(table.dtype in TOLERANCE, "table wants a floating dtype, got {}", table.dtype)
    want(
        gain is None or isinstance(gain, torch.Tensor) and gain.ndim == 0,
        "gain wants a 0-D tensor or None, got {}",
        gain,
    )
    want(window >= 0, "window wants the number of keys to the left, 0 for all, got {}", window)
    want(scale is None or scale > 0, "scale wants a positive number, got {}", scale)
    want(
        lengths is None or (lengths.shape == (B,) and lengths.dtype in (torch.int32, torch.int64)),
        "lengths wants {} integers, one a sequence, got {}",
        B,
        lengths,
    )
    for name, x in (("k", k), ("table", table), ("ids", ids), ("gain", gain), ("lengths", lengths)):
        want(
            x is None or x.device == q.device,
            "all tensors want one device, got q on {} and another elsewhere: {}",
            q.device,
            name,
        )
    if ids.numel() and may_look(ids, V):
        low, high = (int(x) for x in ids.aminmax())
        want(
            0 <= low and high < V,
            "ids want to name rows 0 to {}, padding too, got {} to {}",
            V - 1,
            low,
            high,
        )
        low, high = (0, S) if lengths is None else (int(x) for x in lengths.aminmax())
        want(0 <= low and high <= S, "lengths want 0 to {} keys, got {} to {}", S, low, high)


def may_look(ids, vocabulary):
    """On a GPU looking at the ids waits for the device, so it is done once and not once a layer (again after a write,
    except in inference mode, which counts none); while a CUDA graph is recorded, or a model compiled, nobody can look:
    make one call before."""
    if torch.compiler.is_compiling() or (ids.is_cuda and torch.cuda.is_current_stream_capturing()):
        return False
    if not ids.is_cuda:
        return True
    stamp = vocabulary, None if ids.is_inference() else ids._version
    known, ids._looked = getattr(ids, "_looked", None), stamp
    return known != stamp


def kernel_ready(q, k, table, ids):
    """What the kernels take for granted: dtypes, head width, rows without holes, offsets that fit in 32 bits."""
    want(
        torch.float64 not in (q.dtype, table.dtype),
        "the kernels want float32, bfloat16 or float16, got float64",
    )
    want(
        32 <= q.shape[-1] <= 128,
        "the kernels want a head width of 32 to 128, got {}: use way='dense'",
        q.shape[-1],
    )
    want(
        q.is_cuda or torch.bfloat16 not in (q.dtype, table.dtype),
        "Triton's interpreter multiplies bfloat16 wrongly and says nothing: use float32",
    )
    k, table, ids = (x if x.stride(-1) == 1 else x.contiguous() for x in (k, table, ids))
    for name, x in (("a sequence of k", k[0]), ("table", table)):
        last = sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True))
        want(
            last < 2**31,
            "the kernels want fewer than 2^31 elements in {}, got {}: use way='dense'",
            name,
            last + 1,
        )
    return q.contiguous(), k, table, ids


def as_int32(lengths):
    return None if lengths is None else lengths.int()


SAID = set()


def say_once(sentence):
    if sentence not in SAID:
        SAID.add(sentence)
        warnings.warn(sentence, stacklevel=3)
