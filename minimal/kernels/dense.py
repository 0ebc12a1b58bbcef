"""What does PyTorch's own attention give? The dense way: values that exist, one fused call.

A window is a mask to that call, and with a mask it computes the whole square. On a GPU `sliding`
computes only the tiles of the window instead: on an H100 a forward of 2,048 tokens with a window of
512 took 352 us by it and 1,227 by the mask. Nor does the call divide the keys of a single query
among programs if there is a mask, and `split_keys` does (gather_gpu.json)."""

import functools

import torch
import torch.nn.functional as F

from minimal.kernels.embedding import look_up
from minimal.kernels.fastest import fastest
from minimal.kernels.histogram import finish, masses
from minimal.kernels.reference import visible
from minimal.kernels.route import DECODE_QUERIES, FEW_VALUES, HAS_TRITON

LONG = 1024  # queries; a shorter text's square costs less than a kernel's compilation
WIDEST = 128  # the head width up to which a tile of keys and one of values fit beside each other


def attention(
    q, k, v, gain=None,
    *,
    causal=True, window=0, lengths=None, scale=None, mask=None, dropout=0.0, bound=None,
):  # fmt: skip
    """q (B, T, H, D), k and v (B, S, G, D) -> (B, T, H, D); equal to reference.by_definition.

    The gain multiplies the output and not the values: A (g V) = g (A V)."""
    T, S = q.shape[1], k.shape[1]
    by_rule = mask is None and lengths is None

    # A window makes the past short.
    if by_rule and 0 < window < S - T:
        k, v, S = k[:, -window - T :], v[:, -window - T :], window + T
    v = v if v.dtype == q.dtype else v.to(q.dtype)

    # Which way: the first that holds.
    seen = known_mask(T, S, causal, window) if by_rule else None
    if seen == "all" and T == 1 and asks_machine(q, k, v):
        y = one_query(q, k, v, scale, bound)
    elif seen is not None:
        y = one_call(q, k, v, scale, None, dropout, seen == "causal")
    elif by_rule and causal and T == S and dropout == 0 and skips_tiles(q, v):
        y = sliding(q, k, v, window, scale)
    elif T == 1 and mask is None and splits_keys(q, k, v):
        y = split_keys(q, k, v, causal, window, lengths, scale)
    elif mask is not None:
        y = one_call(q, k, v, scale, mask, dropout)
    else:
        y = masked(q, k, v, scale, dropout, causal, window, lengths)
    if gain is None:
        return y
    return y * (gain if gain.dtype == y.dtype else gain.to(y.dtype))


def known_mask(T, S, causal, window):
    """The masks that PyTorch's call knows by itself: "all" keys are seen, or those of a square map
    that came before ("causal")."""
    if 0 < window < S - 1:
        return None
    if T == 1 or not causal:
        return "all"
    return "causal" if T == S else None


def one_call(q, k, v, scale, mask=None, dropout=0.0, causal=False):
    """PyTorch's call, which wants heads before positions."""
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(
        q, k, v, mask, dropout, causal, scale=scale, enable_gqa=grouped
    ).transpose(1, 2)  # (B, T, H, D)


def masked(q, k, v, scale, dropout, causal, window, lengths):
    """With a mask that is formed. The softmax of a query that sees no key would be 0 / 0: it is
    shown every key, and its output is then set to 0."""
    T, S = q.shape[1], k.shape[1]
    mask = visible(T, S, causal, window, lengths, q.device)
    if lengths is None and T <= S:  # every query sees a key
        return one_call(q, k, v, scale, mask, dropout)
    blind = ~mask.any(-1, keepdim=True)  # ([B, 1,] T, 1)
    y = one_call(q, k, v, scale, mask | blind, dropout)
    return y.transpose(1, 2).masked_fill(blind, 0).transpose(1, 2)


def asks_machine(q, k, v):
    """Is it a decode step on a CPU, over enough rows for a measurement to pay?"""
    if k.numel() < FEW_VALUES or not q.is_cpu or q.shape[3] != v.shape[3]:
        return False
    return not (torch.compiler.is_compiling() or torch.is_grad_enabled())


def one_query(q, k, v, scale=None, bound=None):
    """q (B, 1, H, D) over all of k and v (B, S, G, D), by PyTorch's call or by two products: what
    was faster when it was first asked at this size. On an EPYC the products were 1.3 to 1.4 times
    as fast at 131,072 keys."""
    (B, _, H, D), (_, S, G, _) = q.shape, k.shape

    def call():
        return one_call(q, k, v, scale)

    def products():
        mass, total = masses(q, k, None, D**-0.5 if scale is None else scale, bound, v.dtype)
        mass = mass.to(v.dtype)  # (B, G, R, S)
        sums = torch.stack([mass[b] @ v[b].transpose(0, 1) for b in range(B)])  # (B, G, R, D)
        return finish(sums, total, None, q)

    ways = dict(call=call, products=products)
    sizes = (B, S.bit_length(), H, G, D, k.stride(1) == D, q.dtype)
    return ways[fastest(("stored", *sizes), ways)]()


def splits_keys(q, k, v):
    """May `split_keys` stand here? On an H100 it took .86 to 1.01 of the time that PyTorch's best
    backend took without a mask, from 4,096 to 131,072 keys (`v_cache` in gather_gpu.json)."""
    D, half_or_single = q.shape[-1], q.dtype != torch.float64
    fits = half_or_single and 32 <= D <= 128 and v.shape[-1] == D and k.stride(-1) == 1
    few = q.shape[2] // k.shape[2] <= DECODE_QUERIES and k.stride(0) < 2**31
    return q.is_cuda and HAS_TRITON and fits and few and not torch.is_grad_enabled()


def split_keys(q, k, v, causal, window, lengths, scale=None):
    """One query over a cache of which `lengths` rows are text, by our kernel for decoding."""
    from minimal.kernels.decode import run_split

    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    lengths = None if lengths is None else lengths.int()
    return run_split(q.contiguous(), k, v, None, None, lengths, causal, window, scale)


def skips_tiles(q, v):
    """May `sliding` stand here? FlexAttention is one kernel only where a GPU's code is compiled. A
    CPU keeps its one call and its last digits."""
    compiled = q.is_cuda and HAS_TRITON
    fits = 16 <= min(q.shape[-1], v.shape[-1]) and max(q.shape[-1], v.shape[-1]) <= WIDEST
    return compiled and fits and q.element_size() == 2 and q.shape[1] >= LONG


def sliding(q, k, v, window, scale=None):
    """Causal attention in a window, q (B, T, H, D), k and v (B, T, G, D) -> (B, T, H, D).

    FlexAttention leaves out each tile of 128 x 128 that the rule hides whole, so a query costs
    about window + 128 keys instead of T. Which tiles these are is computed in the graph, where all
    layers of one window share the answer.
    Uncompiled it would hold all scores: so it is compiled by itself where the model is not.
    Reference: by_definition(q, k, v, window=window, scale=scale)."""
    from torch.nn.attention.flex_attention import flex_attention

    flex, make_tiles = flex_attention, tiles_of
    if stands_alone(q):
        flex, make_tiles = compiled_once(flex_attention), tiles_once
    tiles, grouped = make_tiles(q.shape[1], window, q.device), q.shape[2] != k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    y = flex(q, k, v, block_mask=tiles, scale=scale, enable_gqa=grouped)
    return y.transpose(1, 2)


def stands_alone(q):
    """Is it a call on a GPU that no compiler sees?"""
    return q.is_cuda and not torch.compiler.is_compiling()


@functools.cache
def compiled_once(work):
    return torch.compile(work, dynamic=False)


def tiles_of(T, window, device):
    """The tiles of (T, T) that FlexAttention computes: causal, and `window` keys to the left."""
    from torch.nn.attention.flex_attention import create_block_mask

    def rule(b, h, query, key):
        return (key <= query) & (query - key <= window)

    return create_block_mask(rule, None, None, T, T, device=device)


tiles_once = functools.lru_cache(maxsize=8)(tiles_of)


def dense(q, k, table, ids, gain, *, order=None, **how):
    """A way of gather_attention: rows of the table first, then PyTorch's attention; it trains."""
    return attention(q, k, look_up(table, ids), gain, **how)
