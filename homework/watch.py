"""What does an answer make on its way? For exercises that forbid a way, not a number.

Some sentences of a stub cannot be read off the numbers: "without making a key", "no tensor larger
than (T, S)". So the function runs once more, on watch: every tensor that it makes is noted with the
operation that made it, its size in memory, and the inputs that it comes from.

    made = made_by(absorbed_scores, q, latent, up)
    any(x.of == {"latent", "up"} for x in made)  # a key: made of both, without a query
"""

import inspect
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode


@dataclass(frozen=True)
class Made:
    """A tensor that a function made: by which operation, of how many numbers, from which inputs,
    and of which tensors: where each begins in its memory, and which inputs it comes from; and
    whether it lies in memory that was there before, as a view does and what is changed in place."""

    operation: str
    size: int
    of: frozenset
    given: tuple = ()
    view: bool = False


class Watch(TorchDispatchMode):
    """Notes what is made while it is on. A view has the memory of another tensor, and its size."""

    def __init__(self, inputs):
        super().__init__()
        self.made, self.kept = [], []  # kept: memory that is freed could come again
        self.origins = {place(x): {name} for name, x in inputs.items() if torch.is_tensor(x)}

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        found = operation(*args, **(kwargs or {}))
        given = tensors([*args, *(kwargs or {}).values()])
        known = [frozenset(self.origins.get(place(x), ())) for x in given]
        of = frozenset().union(*known)
        starts = tuple((x.storage_offset(), names) for x, names in zip(given, known, strict=True))
        before = set(map(place, given))
        for x in tensors([found]):
            self.kept.append(x)
            self.origins[place(x)] = self.origins.get(place(x), set()) | of
            size = x.untyped_storage().nbytes() // x.element_size()
            comes = frozenset(self.origins[place(x)])
            view = place(x) in before
            self.made.append(Made(operation.name(), size, comes, starts, view))
        return found


def place(tensor):
    """The memory of a tensor, which its views share."""
    return tensor.untyped_storage().data_ptr()


def tensors(values):
    """All tensors in lists and tuples, however deep."""
    found = []
    for value in values:
        if torch.is_tensor(value):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += tensors(value)
    return found


def made_by(function, names, *inputs):
    """What a function makes of these inputs, which are called by these names."""
    with Watch(dict(zip(names, inputs, strict=False))) as watch:
        function(*inputs)
    return watch.made


def names_of(oracle):
    return list(inspect.signature(oracle).parameters)
