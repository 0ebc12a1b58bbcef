"""Is what was built by hand the same function as another? In outputs and in gradients."""

import torch


def gap(f, g, *inputs, seed=0):
    """The largest difference between f and g, in outputs and in gradients by every input.

    Two functions train alike only if both agree. The gradient from above is arbitrary, so it is
    drawn.
    """
    inputs = [x.detach().requires_grad_() for x in inputs]
    outputs = f(*inputs), g(*inputs)
    above = torch.randn(outputs[0].shape, generator=torch.Generator().manual_seed(seed))
    above = above.to(outputs[0])
    gradients = [torch.autograd.grad(y, inputs, above) for y in outputs]
    pairs = [outputs, *zip(*gradients, strict=True)]
    return max((a - b).abs().max().item() for a, b in pairs)
