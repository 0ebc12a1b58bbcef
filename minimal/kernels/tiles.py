"""What does a kernel do, program by program? Triton's language in PyTorch, each address on record.

The text of a kernel is run as it stands, one program after another, with tiles that are tensors. So
it runs where there is no Triton (macOS, Windows), and it can be watched: every load and store is
checked against the memory that was given, and kept, to be drawn. What Triton leaves undefined is
made visible: an idle lane that was told nothing loads NaN, or an address far outside.

    trace = run(kernel, (4,), x, out, n=100, BLOCK=32)
    trace.events[0]  # Event(program=(0,), kind='load', tensor='x', places=…, idle=0)

This is a teaching machine: no compiler reads the kernel here, so what passes must still pass in
Triton's interpreter, where it exists. Only what the course's kernels use is here.
"""

import inspect
import itertools
import types
from dataclasses import dataclass, field

import torch

FAR = 1 << 30  # what an idle lane loads from a tensor of whole numbers, if it was told nothing


class Mistake(RuntimeError):
    """What a program may not do, in a sentence."""


# ---- memory --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Event:
    """One load, store or atomic addition of one program."""

    program: tuple
    kind: str  # load, store or add
    tensor: str
    places: torch.Tensor  # offsets of the lanes that were on, in the order of the lanes
    idle: int  # lanes that were off
    told: bool = True  # a load: whether `other` said what idle lanes get


class Memory:
    """A tensor as a kernel sees it: numbers in a row, from its first on."""

    def __init__(self, name, tensor, trace):
        self.name, self.tensor, self.trace = name, tensor, trace
        room = tensor.untyped_storage().nbytes() // tensor.element_size()
        self.flat = tensor.as_strided((room - tensor.storage_offset(),), (1,))

    def touch(self, kind, at, mask, told=True):
        """The addresses of the lanes that are on, checked and kept."""
        on = at[mask]
        program = self.trace.program
        outside = on[(on < 0) | (on >= len(self.flat))]
        if len(outside):
            verb = "loads from" if kind == "load" else "stores to"
            raise Mistake(
                f"program {name_of(program)} {verb} place {outside[0]} of {self.name}, which has "
                f"{len(self.flat)}: switch the lanes without work off by a mask"
            )
        event = Event(program, kind, self.name, on.clone(), at.numel() - len(on), told)
        self.trace.events.append(event)
        return on


class Pointer:
    """An address, or a tile of them: a place in a memory plus offsets."""

    def __init__(self, memory, at):
        self.memory, self.at = memory, at

    def __add__(self, offset):
        return Pointer(self.memory, self.at + offset)

    __radd__ = __add__

    def __sub__(self, offset):
        return Pointer(self.memory, self.at - offset)

    def __getitem__(self, index):
        return Pointer(self.memory, self.at[index])

    def lanes(self, mask):
        """(offsets, mask) of one shape."""
        mask = torch.as_tensor(True if mask is None else mask)
        return torch.broadcast_tensors(torch.as_tensor(self.at), mask)


# ---- the language --------------------------------------------------------------------------------
class Language:
    """What stands behind `tl.` in a kernel; `trace` is the run that asks."""

    constexpr = object
    float16, bfloat16, float32 = torch.float16, torch.bfloat16, torch.float32
    int1, int32, int64 = torch.bool, torch.int32, torch.int64
    exp, exp2, log = map(staticmethod, (torch.exp, torch.exp2, torch.log))
    log2, sqrt, abs = map(staticmethod, (torch.log2, torch.sqrt, torch.abs))

    def __init__(self, trace=None):
        self.trace = trace

    # who am I
    def program_id(self, axis):
        return torch.tensor(self.trace.program[axis])

    def num_programs(self, axis):
        return torch.tensor(self.trace.grid[axis])

    # tiles
    def arange(self, start, end):
        width = end - start
        if width < 1 or width & (width - 1):
            raise Mistake(f"wanted a power of two of lanes, got tl.arange({start}, {end})")
        return torch.arange(start, end)

    def zeros(self, shape, dtype):
        return torch.zeros(tuple(shape), dtype=dtype)

    def full(self, shape, value, dtype):
        return torch.full(tuple(shape), value, dtype=dtype)

    def range(self, start, stop=None, step=1, **_):
        start, stop = (0, start) if stop is None else (start, stop)
        return range(int(start), int(stop), int(step))

    static_range = range

    def cdiv(self, a, b):
        return -(-a // b)

    def multiple_of(self, x, _):
        return x

    # arithmetic
    def where(self, condition, a, b):
        return torch.where(torch.as_tensor(condition), a, b)

    def maximum(self, a, b):
        return torch.maximum(*alike(a, b))

    def minimum(self, a, b):
        return torch.minimum(*alike(a, b))

    def max(self, x, axis=None):
        return x.amax() if axis is None else x.amax(axis)

    def min(self, x, axis=None):
        return x.amin() if axis is None else x.amin(axis)

    def sum(self, x, axis=None):
        return x.sum() if axis is None else x.sum(axis)

    def softmax(self, x, dim=None, **_):
        return x.softmax(0 if dim is None else dim)

    def trans(self, x):
        return x.T

    def dot(self, a, b, acc=None, **_):
        if a.shape[1] != b.shape[0]:
            raise Mistake(
                f"tl.dot of {tuple(a.shape)} with {tuple(b.shape)}: the inner sizes differ"
            )
        product = a.float() @ b.float()
        return product if acc is None else acc + product

    def __getattr__(self, name):
        known = ", ".join(x for x in dir(Language) if not x.startswith("_"))
        raise AttributeError(f"wanted one of tl.'s {known}, got tl.{name}: no other is built here")

    # memory
    def load(self, pointer, mask=None, other=None, **_):
        at, on = self.lanes(pointer, mask)
        memory = pointer.memory
        kind = memory.flat.dtype
        if kind in (torch.int8, torch.int16, torch.int32):
            kind = torch.int64  # an address made of FAR stays far outside, and wraps to no place
        nothing = float("nan") if kind.is_floating_point else FAR
        found = torch.full(at.shape, nothing if other is None else other, dtype=kind)
        found[on] = memory.flat[memory.touch("load", at, on, other is not None)].to(kind)
        return found

    def store(self, pointer, value, mask=None):
        at, on = self.lanes(pointer, mask)
        memory = pointer.memory
        value = torch.as_tensor(value, dtype=memory.flat.dtype).expand(at.shape)
        memory.flat[memory.touch("store", at, on)] = value[on]

    def atomic_add(self, pointer, value, mask=None, **_):
        at, on = self.lanes(pointer, mask)
        memory = pointer.memory
        value = torch.as_tensor(value, dtype=memory.flat.dtype).expand(at.shape)
        memory.flat.index_add_(0, memory.touch("add", at, on), value[on])

    def lanes(self, pointer, mask):
        if not isinstance(pointer, Pointer):
            raise Mistake("wanted an address: a tensor of the kernel's arguments plus offsets")
        return pointer.lanes(mask)


def alike(a, b):
    """Two tensors of one kind from tensors and Python's numbers."""
    known = next((x.dtype for x in (a, b) if isinstance(x, torch.Tensor)), None)
    return torch.as_tensor(a, dtype=known), torch.as_tensor(b, dtype=known)


# ---- a run ---------------------------------------------------------------------------------------
@dataclass
class Trace:
    """What a grid of programs did."""

    grid: tuple
    tensors: dict = field(default_factory=dict)  # name -> tensor
    events: list = field(default_factory=list)
    program: tuple = ()

    def of(self, tensor, kind=None, program=None):
        """The events of one tensor, of one kind, of one program."""
        return [
            event
            for event in self.events
            if event.tensor == tensor
            and kind in (None, event.kind)
            and program in (None, event.program)
        ]

    def twice(self, tensor):
        """The first place that two programs stored, and who: a race; None if there is none."""
        owner = {}
        for event in self.of(tensor, "store"):
            for place in event.places.tolist():
                if owner.setdefault(place, event.program) != event.program:
                    return place, owner[place], event.program
        return None


def addresses_of(tensor):
    """The place of each number, counted from the first."""
    steps = [
        (torch.arange(size) * stride).view(-1, *[1] * (tensor.dim() - 1 - i))
        for i, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True))
    ]
    return sum(steps, torch.zeros(tensor.shape, dtype=torch.int64))


def name_of(program):
    return program[0] if len(program) == 1 else program


def function_of(kernel):
    """The Python function behind a kernel, as Triton or this file has wrapped it."""
    return inspect.unwrap(getattr(kernel, "fn", kernel))


def spoken(function, language, known):
    """The same function, and the kernels that it calls, with this language behind `tl`."""
    if function in known:
        return known[function]
    names = dict(function.__globals__)
    twin = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    known[function] = twin
    for name in function.__code__.co_names:
        found = names.get(name)
        if name == "tl":
            names[name] = language
        elif hasattr(found, "fn"):
            names[name] = spoken(function_of(found), language, known)
        elif hasattr(found, "value"):  # a constant of the whole file
            names[name] = found.value
    return twin


def run(kernel, grid, *arguments, order=None, **sizes):
    """Every program of the grid once, in this order or in that of the grid -> the trace."""
    function = function_of(kernel)
    trace = Trace(tuple(grid))
    program = spoken(function, Language(trace), {})
    given = inspect.signature(function).bind(*arguments, **sizes).arguments
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            trace.tensors[name] = value
            given[name] = Pointer(Memory(name, value, trace), torch.tensor(0))
    for trace.program in order or itertools.product(*map(range, grid)):
        program(**given)
    return trace


# ---- where there is no Triton --------------------------------------------------------------------
class Kernel:
    """kernel[grid](…): the launch of Triton."""

    def __init__(self, fn):
        self.fn, self.__name__, self.__doc__ = fn, fn.__name__, fn.__doc__

    def __getitem__(self, grid):
        return lambda *arguments, **sizes: run(self.fn, grid, *arguments, **sizes)


tl = Language()
triton = types.SimpleNamespace(jit=Kernel, cdiv=tl.cdiv, absent=True)
