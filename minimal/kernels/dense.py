"""What does PyTorch's own attention give? The dense way: values that exist, one fused call.

A window is a mask to that call, and with a mask it computes the whole square. Where a model is
compiled for a GPU, `sliding` computes only the tiles of the window instead: on an H100 a forward of
2,048 tokens with a window of 512 took 352 us by it and 1,227 by the mask (gather_gpu.json)."""

import torch
import torch.nn.functional as F

from minimal.kernels.fastest import fastest
from minimal.kernels.histogram import finish, masses
from minimal.kernels.reference import visible
from minimal.kernels.route import FEW_VALUES, HAS_TRITON

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

    # PyTorch knows two masks by itself: nothing is hidden, or the causal one of a square map.
    windowed = 0 < window < S - 1
    by_rule = mask is None and lengths is None
    unmasked = by_rule and not windowed
    square = unmasked and causal and T == S and T > 1
    open_to_all = unmasked and (T == 1 or not causal)

    # On a GPU a window may cost what it shows.
    slides = windowed and by_rule and causal and T == S and dropout == 0
    if slides and skips_tiles(q, v):
        y = sliding(q, k, v.to(q.dtype), window, scale)
        return y if gain is None else y * gain.to(y.dtype)

    # One query and a long past: which products are fastest depends on the machine.
    if T == 1 and open_to_all and asks_machine(q, k, v):
        y = one_query(q, k, v.to(q.dtype), scale, bound)
        return y if gain is None else y * gain.to(y.dtype)

    # Any other mask is formed. The softmax of a query that sees no key would be 0 / 0: it is shown
    # every key, and its output is then set to 0.
    blind = None
    if mask is None and not (square or open_to_all):
        mask = visible(T, S, causal, window, lengths, q.device)
        if lengths is not None or T > S:
            blind = ~mask.any(-1, keepdim=True)  # ([B, 1,] T, 1)
            mask = mask | blind

    v = v if v.dtype == q.dtype else v.to(q.dtype)
    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
    grouped = q.shape[1] != k.shape[1]
    y = F.scaled_dot_product_attention(
        q, k, v, mask, dropout, square, scale=scale, enable_gqa=grouped
    )  # (B, H, T, D)
    if blind is not None:
        y = y.masked_fill(blind, 0)
    y = y.transpose(1, 2)
    return y if gain is None else y * gain.to(y.dtype)


def asks_machine(q, k, v):
    """Is it a decode step on a CPU, over enough rows for a measurement to pay?"""
    eager = q.device.type == "cpu" and not torch.compiler.is_compiling()
    fits = q.shape[3] == v.shape[3] and k.numel() >= FEW_VALUES
    return eager and fits and not torch.is_grad_enabled()


def one_query(q, k, v, scale=None, bound=None):
    """q (B, 1, H, D) over all of k and v (B, S, G, D), by PyTorch's call or by two products: what
    was faster when it was first asked at this size. On an EPYC the products were 1.3 to 1.4 times
    as fast at 131,072 keys."""
    (B, _, H, D), (_, S, G, _) = q.shape, k.shape

    def call():
        heads = (x.transpose(1, 2) for x in (q, k, v))
        y = F.scaled_dot_product_attention(*heads, scale=scale, enable_gqa=H != G)
        return y.transpose(1, 2)

    def products():
        mass, total = masses(q, k, None, D**-0.5 if scale is None else scale, bound, v.dtype)
        mass = mass.to(v.dtype)  # (B, G, R, S)
        sums = torch.stack([mass[b] @ v[b].transpose(0, 1) for b in range(B)])  # (B, G, R, D)
        return finish(sums, total, None, q)

    ways = dict(call=call, products=products)
    sizes = (B, S.bit_length(), H, G, D, k.stride(1) == D, q.dtype)
    return ways[fastest(("stored", *sizes), ways)]()


def skips_tiles(q, v):
    """May `sliding` stand here? FlexAttention is one kernel only where a GPU's code is compiled.

    Uncompiled it would hold all scores, and a CPU keeps its one call and its last digits."""
    compiled = q.is_cuda and HAS_TRITON and torch.compiler.is_compiling()
    fits = 16 <= min(q.shape[-1], v.shape[-1]) and max(q.shape[-1], v.shape[-1]) <= WIDEST
    return compiled and fits and q.element_size() == 2 and q.shape[1] >= LONG


def sliding(q, k, v, window, scale=None):
    """Causal attention in a window, q (B, T, H, D), k and v (B, T, G, D) -> (B, T, H, D).

    FlexAttention leaves out each tile of 128 x 128 that the rule hides whole, so a query costs
    about window + 128 keys instead of T. Which tiles these are is computed in the graph, where all
    layers of one window share the answer.
    Reference: by_definition(q, k, v, window=window, scale=scale)."""
    from torch.nn.attention.flex_attention import flex_attention

    tiles, grouped = tiles_of(q.shape[1], window, q.device), q.shape[2] != k.shape[2]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    y = flex_attention(q, k, v, block_mask=tiles, scale=scale, enable_gqa=grouped)
    return y.transpose(1, 2)


def tiles_of(T, window, device):
    """The tiles of (T, T) that FlexAttention computes: causal, and `window` keys to the left."""
    from torch.nn.attention.flex_attention import create_block_mask

    def rule(b, h, query, key):
        return (key <= query) & (query - key <= window)

    return create_block_mask(rule, None, None, T, T, device=device)


def look_up(table, ids):
    """table[ids], (B, S, G, D), by the call whose backward adds in a fixed order."""
    if not table.is_contiguous():
        return table[ids]
    return F.embedding(ids, table.flatten(1)).view(*ids.shape, *table.shape[1:])


def dense(q, k, table, ids, gain, *, order=None, **how):
    """A way of gather_attention: rows of the table first, then PyTorch's attention; it trains."""
    return attention(q, k, look_up(table, ids), gain, **how)
