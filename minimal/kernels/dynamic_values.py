"""How do several value streams share one attention map? Dynamic value attention by its identity.

Dynamic value attention gives every pair a value of its own, v_ij = v_j + qR_i * kR_j, and needs
none of them: sum_j a_ij v_ij = (A V)_i + qR_i * (A K_R)_i. Two streams and one map, if the map is
formed once. PyTorch's fused attention forms it in every call and keeps it to itself, so there two
streams cost two maps. `mix` forms each block of rows of the map once, for as many streams as there
are, and skips what lies above the diagonal.
"""

import torch

MAP_ROWS = 128  # rows of the map at a time: 3/8 of a causal map of 512 is never computed


def mix(q, k, streams, scale=None):
    """Causal self-attention: q, k (B, T, H, D), streams (B, T, H, any width) -> each A @ stream."""
    T, D = q.shape[1], q.shape[-1]
    scale = D**-0.5 if scale is None else scale
    q = (q * scale).transpose(1, 2)  # (B, H, T, D)
    k = k.permute(0, 2, 3, 1)  # (B, H, D, T)
    values = torch.cat([stream.transpose(1, 2) for stream in streams], -1)  # (B, H, T, all widths)
    later = torch.ones(MAP_ROWS, MAP_ROWS, dtype=torch.bool, device=q.device).triu(1)
    mixed = []
    for first in range(0, T, MAP_ROWS):
        last = min(T, first + MAP_ROWS)
        score = q[:, :, first:last] @ k[..., :last]  # (B, H, rows, last)
        score[..., first:].masked_fill_(later[: last - first, : last - first], float("-inf"))
        mixed.append(score.softmax(-1) @ values[:, :, :last])
    return torch.cat(mixed, 2).transpose(1, 2).split([stream.shape[-1] for stream in streams], -1)


def dynamic_values(q, k, v, qr, kr, scale=None):
    """(A V) + qR * (A K_R), all (B, T, H, D): what attention over every pair's own value gives."""
    plain, gated = mix(q, k, [v, kr], scale)
    return plain + qr * gated
