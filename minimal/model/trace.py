"""What would one write by hand for this plan? A step that was watched becomes a plain function.

A step of decoding walks through modules, a tape and a cache, and asks at every one of them what it
asked for the token before. While a StepTrace is active, every operation of PyTorch is done and also
written down. What comes of weights alone is there already and stays; the rest is the source of a
function of arrays, one operation a line.

What hangs on how many rows there are is not looked into: the cache keeps rows and attention reads
them by calls that stand in the function as they are (see kept_whole). Whether something else hangs
on it is asked by watching another step: only what two of them say alike is right for the next one.
"""

import functools
import itertools
import math

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

# What may be asked of a tensor: the answer holds for every step. Its numbers may not.
LASTING = {"__get__", "__len__", "dim", "is_contiguous", "is_floating_point", "numel", "size"}


def kept_whole(work):
    """A function that a trace keeps as one call: what it does hangs on how many rows there are."""

    @functools.wraps(work)
    def call(*given, **how):
        return as_one(work, *given, **how)

    return call


def as_one(work, *given, **how):
    """work(...), which a trace keeps as one call."""
    trace = StepTrace.now
    return work(*given, **how) if trace is None else trace.do(work, given, how, together=True)


class StepTrace(TorchFunctionMode):
    """What one step does, where `inputs`, tensors by name, are all that changes between steps."""

    now = None  # the one that is active

    def __init__(self, **inputs):
        super().__init__()
        self.inputs = inputs
        self.names = {id(x): name for name, x in inputs.items() if x is not None}
        self.varied = set(self.names)  # ids of tensors that differ from step to step
        self.alive = list(inputs.values())  # an id is a name as long as what it names is there
        self.constants, self.made = {}, set()  # name -> what it is; ids of those made on the way
        self.lines = []  # (the names of what comes out, the call, the names that it reads)
        self.count, self.reads = itertools.count(), set()
        self.refused = None  # why this step cannot be written down

    def __enter__(self):
        StepTrace.now = self
        return super().__enter__()

    def __exit__(self, *error):
        StepTrace.now = None
        return super().__exit__(*error)

    # ---- watching -----------------------------------------------------------------------------
    def __torch_function__(self, operation, types, given=(), how=None):
        return self.do(operation, given, how or {})

    def do(self, operation, given, how, together=False):
        """operation(...), written down where its answer differs from step to step."""
        with torch._C.DisableTorchFunction():
            result = operation(*given, **how)
            if together and id(result) in self.names:  # another time it may be something else
                result = result.view_as(result)
            self.note(operation, given, how, result, together)
        return result

    def note(self, operation, given, how, result, together):
        name = getattr(operation, "__name__", "")
        writes = name == "__setitem__" or "out" in how or (name[-1:] == "_" != name[-2:-1])
        varies = any(id(x) in self.varied for x in tensors_in((given, how)))
        found = [result] if isinstance(result, torch.Tensor) else tensors_in(result)
        self.alive.append(result)
        if writes and (not given or id(given[0]) not in self.varied):
            self.refused = f"{name} writes into what stays the same from step to step"
        elif not (writes or together) and given and result is given[0]:
            pass  # x.to(a type that it has), and the like
        elif not varies:
            self.made |= {id(x) for x in found}
        elif found or writes:
            self.write(operation, given, how, result, found)
        elif name not in LASTING:
            self.refused = f"{name} looks at numbers"

    # ---- writing ------------------------------------------------------------------------------
    def write(self, operation, given, how, result, found):
        self.reads = set()
        words = [self.word(x) for x in given]
        words += [f"{name}={self.word(x)}" for name, x in how.items()]
        call = f"{self.word(operation)}({', '.join(words)})"
        for x in found:
            if id(x) not in self.varied:
                self.names[id(x)] = f"x{next(self.count)}"
                self.varied.add(id(x))
        out = [self.names[id(x)] for x in found]
        if len(found) > 1 and len(found) != len(result):
            self.refused = f"{operation} answers with more than tensors"
        self.lines.append((out, call, self.reads))

    def word(self, x):
        """How x is called in the source."""
        if id(x) in self.varied:
            self.reads.add(self.names[id(x)])
            return self.names[id(x)]
        if x is None or type(x) in (bool, int, str) or type(x) is float and math.isfinite(x):
            return repr(x)
        if isinstance(x, slice):
            return f"slice({self.word(x.start)}, {self.word(x.stop)}, {self.word(x.step)})"
        if isinstance(x, (tuple, list)):
            words = ", ".join(map(self.word, x))
            if isinstance(x, list):
                return f"[{words}]"
            return f"{self.word(type(x))}({words})" if hasattr(x, "_fields") else f"({words},)"
        # anything else is what it is: weights, functions, types
        if id(x) not in self.names:
            self.names[id(x)] = f"c{next(self.count)}"
            self.constants[self.names[id(x)]] = x
        return self.names[id(x)]

    def says_the_same(self, other):
        """Have both steps done the same, with the same things?"""
        if self.refused or other.refused or self.lines != other.lines:
            return False
        return all(self.is_same(x, other.constants[name]) for name, x in self.constants.items())

    def is_same(self, x, y):
        if id(x) in self.made:
            return x.shape == y.shape and torch.equal(x, y)
        return x is y if isinstance(x, torch.Tensor) else x == y

    def function(self, answer):
        """The step as a function of its inputs, in their order."""
        last = {name: at for at, (_, _, reads) in enumerate(self.lines) for name in reads}
        source = [f"def step({', '.join(self.inputs)}):"]
        for at, (out, call, reads) in enumerate(self.lines):
            source.append(f"    {', '.join(out)} = {call}" if out else f"    {call}")
            # memory that was just used is near: let the next line have it
            over = [name for name in (*reads, *out) if last.get(name, at) == at]
            over = [name for name in over if name != self.names[id(answer)]]
            if over:
                source.append(f"    del {', '.join(dict.fromkeys(over))}")
        source.append(f"    return {self.names[id(answer)]}")
        scope = dict(self.constants)
        exec("\n".join(source), scope)
        return scope["step"]


def tensors_in(x):
    return [leaf for leaf in tree_leaves(x) if isinstance(leaf, torch.Tensor)]
