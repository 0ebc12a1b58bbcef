"""When is a gradient worth writing by hand? Two functions that a small model meets in every layer.

In eager fp32 on a CPU a step of the `tiny` model is bound by passes over its activations, and
autograd makes more of them than the mathematics needs. Compilers fuse, and GPUs have kernels: there
the plain expressions stay.
"""

import functools

import torch

from minimal.kernels.first_only import first_only


def by_hand(x):
    """Do our own expressions, and their gradients, pay here?"""
    return x.is_cpu and x.dtype == torch.float32 and not torch.compiler.is_compiling()


# In double, model and loss go PyTorch's way, which knows second derivatives.
IN_DOUBLE = "model.double() and its loss(…, reduction='sum')"


def rms_norm(x, eps=None):
    """y = x r with r = 1 / sqrt(mean x^2 + eps). Autograd is asked only where it has to learn."""
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    if torch.is_grad_enabled():
        return RMSNorm.apply(x, eps)
    return x * scale_of(x, eps)


def scale_of(x, eps):
    """r (..., 1), in the place of the lengths that it is made of."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length.square_().div_(constant(x.shape[-1])).add_(constant(eps)).rsqrt_()


@functools.cache
def constant(number):
    """A number as a tensor: as a number of Python's, each operation would make one of it."""
    with torch.inference_mode(False):
        return torch.tensor(float(number))


class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, eps):
        r = scale_of(x, eps)  # (..., 1)
        y = x * r  # (..., C)
        ctx.save_for_backward(y, r)
        return y

    @staticmethod
    @first_only(IN_DOUBLE)
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
    @first_only(IN_DOUBLE)
    def backward(ctx, grad):
        (positive,) = ctx.saved_tensors
        return (grad * positive).mul_(2)
