"""What does PyTorch's own attention give? The dense way: values that exist, one fused call."""

import torch.nn.functional as F

from minimal.kernels.reference import visible


def attention(
    q, k, v, gain=None, *, causal=True, window=0, lengths=None, scale=None, mask=None, dropout=0.0
):
    """q (B, T, H, D), k and v (B, S, G, D) -> (B, T, H, D); equal to reference.by_definition.

    The gain multiplies the output and not the values: A (g V) = g (A V)."""
    T, S = q.shape[1], k.shape[1]

    # PyTorch knows two masks by itself: nothing is hidden, or the causal one of a square map.
    windowed = 0 < window < S - 1
    unmasked = mask is None and lengths is None and not windowed
    square = unmasked and causal and T == S and T > 1
    open_to_all = unmasked and (T == 1 or not causal)

    # Any other mask is formed. The softmax of a query that sees no key would be 0 / 0: it is shown
    # every key, and its output is then set to 0.
    blind = None
    if mask is None and not (square or open_to_all):
        mask = visible(T, S, causal, window, lengths, q.device)
        if lengths is not None or T > S:
            blind = ~mask.any(-1, keepdim=True)  # ([B, 1,] T, 1)
            mask = mask | blind

    q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.to(q.dtype).transpose(1, 2)
    grouped = q.shape[1] != k.shape[1]
    y = F.scaled_dot_product_attention(
        q, k, v, mask, dropout, square, scale=scale, enable_gqa=grouped
    )  # (B, H, T, D)
    if blind is not None:
        y = y.masked_fill(blind, 0)
    y = y.transpose(1, 2)
    return y if gain is None else y * gain.to(y.dtype)


def rows_of(table, ids):
    """table[ids], (B, S, G, D), by the call whose backward adds in a fixed order."""
    if not table.is_contiguous():
        return table[ids]
    return F.embedding(ids, table.flatten(1)).unflatten(-1, table.shape[1:])


def dense(q, k, table, ids, gain, *, bound=None, plan=None, **how):
    """A way of gather_attention: rows of the table first, then PyTorch's attention; it trains."""
    return attention(q, k, rows_of(table, ids), gain, **how)
