"""What does a backward that is written by hand say to whoever asks for a second derivative?"""

import functools

import torch


def first_only(instead):
    """A backward by hand gives numbers, and autograd would take them for constants: whoever asks
    for the graph of a gradient is told so, and what to take `instead`. PyTorch's
    once_differentiable is silent where the gradient that comes in is a constant itself, as that of
    a loss is."""

    def decorate(backward):
        @functools.wraps(backward)
        def told(ctx, grad):
            if torch.is_grad_enabled() and not torch.compiler.is_compiling():
                raise RuntimeError(
                    "a gradient by hand has no second derivative: wanted create_graph=False, "
                    f"got True; take {instead}"
                )
            return backward(ctx, grad)

        return told

    return decorate
