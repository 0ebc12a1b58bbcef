"""What does a prediction cost, and what gradient does it send back? Cross entropy, in parts.

The scores over the vocabulary are the largest tensor of a step. Their gradient, p - 1[target], is
known as soon as they are: so it is made on the way, some positions at a time, in place, and the
scores are never all held at once.
"""

import torch

from minimal.kernels.first_only import first_only
from minimal.model.gradients import IN_DOUBLE

# Positions at a time. On a CPU enough for a fast product, and few enough for the scores to stay
# near the cores; on a GPU few parts, because each is launched and, where it is compiled, compiled.
ROWS, ROWS_ON_GPU = 512, 8192
# Scores held at once where all of them are wanted: 256 MB in fp32, and 1 GB on a GPU.
SCORES, SCORES_ON_GPU = 2**26, 2**28
CAP = 15.0  # no score is larger, in the styles that cap softly


def rows_at_once(tokens, vocab, device):
    """How many rows of so many tokens have their scores held at once, where nothing is trained."""
    room = SCORES if device.type == "cpu" else SCORES_ON_GPU
    return max(1, room // (tokens * vocab))


def tanh(z):
    """15 tanh(z / 15) and its derivative; by exp, a third of torch.tanh's time on a CPU."""
    t = z.mul_(2 / CAP).exp_().add_(1).reciprocal_().mul_(-2).add_(1)
    return CAP * t, t.square_().neg_().add_(1)


def isru(z):
    """z / sqrt(1 + (z / 15)^2) and its derivative."""
    r = torch.rsqrt(z * z / CAP**2 + 1)
    return z * r, r * r * r


# soft cap -> (scores, derivative) from z, which may be overwritten
CAPS = {"tanh": tanh, "isru": isru, None: lambda z: (z, None)}

# soft cap -> scores from z / 15, for whoever wants them and no gradient by hand
CAPPED = {
    "tanh": lambda z: CAP * torch.tanh(z),
    "isru": lambda z: CAP * z * torch.rsqrt(z * z + 1),
}


class HeadLoss(torch.autograd.Function):
    """-log softmax(cap(x W^T))[target], summed over positions; targets below 0 do not count."""

    @staticmethod
    def forward(ctx, x, weight, targets, cap):
        w = weight.to(x.dtype)  # (V, C)
        total = torch.zeros((), device=x.device)
        dx = torch.empty_like(x)  # (N, C)
        dw = torch.zeros_like(w, dtype=torch.float32)  # (V, C): a long sum, in fp32
        rows = ROWS_ON_GPU if x.is_cuda else ROWS
        for n in range(0, len(x), rows):
            h = x[n : n + rows]  # (rows, C)
            y = targets[n : n + rows, None]  # (rows, 1)
            counts, y = y >= 0, y.clamp_min(0)
            # scores, less what keeps exp small: a capped score is at most 15
            z, slope = CAPS[cap]((h @ w.T).float())  # (rows, V)
            z.sub_(CAP if cap else z.amax(1, keepdim=True))
            own = z.gather(1, y)  # (rows, 1)
            # loss
            p = z.exp_()
            s = p.sum(1, keepdim=True)  # (rows, 1)
            total = total + ((s.log() - own) * counts).sum()
            # gradient of the scores: p - 1[target], through the cap
            p.mul_(counts / s).scatter_add_(1, y, -counts.float())  # (rows, V)
            d = (p if slope is None else p.mul_(slope)).to(x.dtype)
            # gradients of stream and head
            dx[n : n + rows] = d @ w
            dw += d.T @ h
        ctx.save_for_backward(dx, dw.to(weight.dtype))
        return total

    @staticmethod
    @first_only(IN_DOUBLE)
    def backward(ctx, grad):
        dx, dw = ctx.saved_tensors
        return dx * grad.to(dx.dtype), dw * grad, None, None
