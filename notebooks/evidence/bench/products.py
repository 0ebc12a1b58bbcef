"""How fast could a step be at best? Its matrix products alone, each at its own shape.

The floor of a profile is the rate of one large product. A small model has thin products, which no
library does at that rate. So every product of a step is written down with its shapes and strides,
and is called again by itself, on numbers that lie in the cache: what a step of the same products
cannot get below, however little the rest of it takes. Attention's own kernels count as products.
"""

from collections import Counter

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_unflatten

from minimal.bench.timing import clock

aten = torch.ops.aten
KINDS = {
    aten.mm,
    aten.addmm,
    aten.bmm,
    aten.baddbmm,
    aten._scaled_dot_product_flash_attention_for_cpu,
    aten._scaled_dot_product_flash_attention_for_cpu_backward,
}
CALLS = 7  # of which the fastest counts


class Written(TorchDispatchMode):
    """Counts the products that are called inside, by operation and the layout of what it is
    given."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function.overloadpacket in KINDS:
            given, tree = tree_flatten((args, kwargs))
            self.seen[function, tuple(map(layout, given)), tree] += 1
        return function(*args, **kwargs)


def layout(value):
    """A tensor as (shape, strides, type); anything else as it is."""
    if isinstance(value, torch.Tensor):
        return "tensor", tuple(value.shape), value.stride(), value.dtype
    return tuple(value) if isinstance(value, list) else value


def random_alike(told):
    """A tensor of that layout, of random numbers."""
    if not isinstance(told, tuple) or told[:1] != ("tensor",):
        return told
    _, shape, strides, dtype = told
    own = [size if stride else 1 for size, stride in zip(shape, strides, strict=True)]
    return torch.empty_strided(own, strides, dtype=dtype).normal_().expand(shape)


def products_of(step):
    """{(operation, layouts, tree): how often} of one call of `step`."""
    with Written() as written:
        step()
    return written.seen


def seconds_alone(products, **how):
    """Seconds of all these products, one after the other: the fastest of a few calls of each, by
    what `clock` takes."""
    total = 0.0
    for (function, layouts, tree), often in products.items():
        args, kwargs = tree_unflatten([random_alike(told) for told in layouts], tree)
        total += often * min(clock(lambda: function(*args, **kwargs), CALLS, warm=1, **how))
    return total
