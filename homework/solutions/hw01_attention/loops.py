"""hw01 a third time: query by query, SDPA and autograd where they fit."""

import torch
import torch.nn.functional as F


def prefix_mask(T, S, prefix):
    return torch.tensor([[s - S <= t - T or s < prefix for s in range(S)] for t in range(T)])


def attention(q, k, v, documents):
    late, out = k.shape[1] - q.shape[1], q.new_empty(*q.shape[:3], v.shape[-1])
    for b, row in enumerate(documents.tolist()):
        for t in range(q.shape[1]):
            mine = [s for s in range(late + t + 1) if row[s] == row[late + t]]
            heads = (x.unsqueeze(0).transpose(1, 2) for x in (q[b, [t]], k[b, mine], v[b, mine]))
            out[b, t] = F.scaled_dot_product_attention(*heads)[0, :, 0]
    return out


def rope(x, positions, base, turned):
    half = turned // 2
    out = x.clone(memory_format=torch.contiguous_format)
    for b, text in enumerate(positions.tolist()):
        for t, position in enumerate(text):
            for i in range(half):
                angle = torch.tensor(position / base ** (2 * i / turned), dtype=torch.float64)
                c, s = angle.cos().item(), angle.sin().item()
                out[b, t, :, i] = c * x[b, t, :, i] + s * x[b, t, :, i + half]
                out[b, t, :, i + half] = c * x[b, t, :, i + half] - s * x[b, t, :, i]
    return out


def online_softmax(scores, values, tiles):
    order = [s for start, end in tiles.tolist() for s in range(start, end)]
    ends = (tiles[:, 1] - tiles[:, 0]).cumsum(0).tolist()
    came = scores[:, order]  # (T,S), in the order of arrival
    maxima = torch.stack([came[:, :end].amax(1) for end in ends]).nan_to_num(neginf=0.0)
    sums = torch.stack(
        [(came[:, :end] - m[:, None]).exp().sum(1) for end, m in zip(ends, maxima, strict=True)]
    )
    return scores.softmax(1) @ values, maxima, sums


def merge(out_a, lse_a, out_b, lse_b):
    share = torch.sigmoid(lse_a - lse_b)
    top = torch.maximum(lse_a, lse_b)
    return torch.lerp(out_b, out_a, share.unsqueeze(-1)), top + torch.log1p(
        torch.exp(-(lse_a - lse_b).abs())
    )


def decode_step(q, k, v, k_cache, v_cache, lengths):
    keys, values, outs = k_cache.clone(), v_cache.clone(), []
    for b, end in enumerate(lengths.tolist()):
        keys[b, end], values[b, end] = k[b, 0], v[b, 0]
        rows = (
            x.unsqueeze(0).transpose(1, 2) for x in (q[b], keys[b, : end + 1], values[b, : end + 1])
        )
        outs.append(F.scaled_dot_product_attention(*rows)[0].transpose(0, 1))
    return torch.stack(outs).contiguous(), keys, values


def flops_per_token(layers, width, heads, groups, hidden, vocabulary, context):
    forward, D = 2 * width * vocabulary, width // heads
    for _ in range(layers):
        forward += heads * 2 * width * D + groups * 2 * 2 * width * D + 2 * width * width
        forward += 3 * 2 * width * hidden + heads * 2 * 2 * D * context
    return 3 * forward


def predict_output_size():
    return torch.tensor(0.035), torch.tensor(0.045), torch.tensor(0.7)


def mask_counter_example():
    g = torch.Generator().manual_seed(1)
    q, k, v = (torch.randn(5, 2, generator=g) for _ in range(3))
    k2 = k.clone()
    k2[-1] += 5
    return torch.tensor(3), q, k, v, q, k2, v


def tile_backward(q, k, v, out, lse, dout, start):
    q, k, v = (x.clone().requires_grad_() for x in (q, k, v))
    scores = q @ k.T / q.shape[1] ** 0.5 - lse[:, None]
    seen = torch.tensor([[start + s <= t for s in range(len(k))] for t in range(len(q))])
    weights = torch.exp(scores) * seen
    lean = dout @ v.detach().T - (dout * out).sum(1, keepdim=True)
    ((scores * (weights * lean).detach()).sum() + ((weights.detach() @ v) * dout).sum()).backward()
    return q.grad, k.grad, v.grad
