"""When is a gradient worth writing by hand? Two functions that a small model meets in every layer.

In eager fp32 on a CPU a step of the `tiny` model is bound by passes over its activations, and
autograd makes more of them than the mathematics needs. Compilers fuse, and GPUs have kernels: there
the plain expressions stay.
"""

import torch


def by_hand(x):
    """Do our own gradients pay here?"""
    eager = not torch.compiler.is_compiling()
    return x.device.type == "cpu" and x.dtype == torch.float32 and eager


class RMSNorm(torch.autograd.Function):
    """y = x r with r = 1 / sqrt(mean x^2 + eps)."""

    @staticmethod
    def forward(ctx, x, eps):
        eps = torch.finfo(x.dtype).eps if eps is None else eps
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # (..., 1)
        r = (length.square() / x.shape[-1] + eps).rsqrt()  # (..., 1)
        y = x * r  # (..., C)
        ctx.save_for_backward(y, r)
        return y

    @staticmethod
    def backward(ctx, grad):
        y, r = ctx.saved_tensors  # (..., C), (..., 1)
        # What lies along y would only stretch x, and y does not change when x is stretched.
        along = (grad * y).mean(-1, keepdim=True)  # (..., 1)
        return torch.addcmul(grad, y, along, value=-1).mul_(r), None


class SquaredRelu(torch.autograd.Function):
    """relu(u)^2: two passes over a layer's widest tensor where autograd takes four; equal bits."""

    @staticmethod
    def forward(ctx, u):
        positive = u.relu()
        ctx.save_for_backward(positive)
        return positive * positive

    @staticmethod
    def backward(ctx, grad):
        (positive,) = ctx.saved_tensors
        return (grad * positive).mul_(2)
