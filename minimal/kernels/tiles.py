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
from collections import Counter
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

    def touch(self, kind, at, mask, masked, told=True):
        """The addresses of the lanes that are on, checked and kept; masked: by a mask of theirs."""
        on = at[mask].as_subclass(torch.Tensor)
        program = self.trace.program
        outside = on[(on < 0) | (on >= len(self.flat))]
        if len(outside):
            verb = "loads from" if kind == "load" else "stores to"
            fix = "switch the lanes without work off by a mask"
            if masked:
                fix = "your mask has its lane on: check the bound, and stride, row or bin"
            elif len(outside) == len(on):
                fix = "no place of this tile lies inside: check stride, row and program_id"
            raise Mistake(
                f"program {name_of(program)} {verb} place {int(outside[0])} of {self.name}, "
                f"which has {len(self.flat)}: {fix}"
            )
        event = Event(program, kind, self.name, on.clone(), at.numel() - len(on), told)
        self.trace.events.append(event)
        return on


class Pointer:
    """An address, or a tile of them: a place in a memory plus offsets."""

    def __init__(self, memory, at):
        self.memory, self.at = memory, at

    def __add__(self, offset):
        if isinstance(offset, Pointer):
            offset.number()
        at = self.at + offset
        if at.is_floating_point():
            raise Mistake("an address is a whole number: // divides whole numbers, and / does not")
        return Pointer(self.memory, at)

    __radd__ = __add__

    def __sub__(self, offset):
        return Pointer(self.memory, self.at - offset)

    def __getitem__(self, index):
        return Pointer(self.memory, self.at[index]) if self.at.dim() else self.number()

    @property
    def dtype(self):
        return types.SimpleNamespace(element_ty=self.memory.flat.dtype)

    def number(self, *_):
        """An address was taken for the number that stands there."""
        name = self.memory.name
        raise Mistake(
            f"{name} is an address and no number: tl.load({name} + …) reads one, and "
            f"tl.store({name} + …, …) writes one"
        )

    __setitem__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __rsub__ = __neg__ = number

    def lanes(self, mask):
        """(offsets, mask) of one shape."""
        mask = torch.as_tensor(True if mask is None else mask)
        return torch.broadcast_tensors(torch.as_tensor(self.at), mask)


# ---- the language --------------------------------------------------------------------------------
class Tile(torch.Tensor):
    """Numbers in registers, with Triton's methods: those that PyTorch does not spell alike follow
    the language below."""


def tile(x):
    """A tile; of one of Python's numbers, too."""
    return x if isinstance(x, Tile) else torch.as_tensor(x).as_subclass(Tile)


def each(function):
    """A function of PyTorch, place by place, as one of the language."""
    return staticmethod(lambda *tiles: function(*map(tile, tiles)))


class Language:
    """What stands behind `tl.` in a kernel; `trace` is the run that asks."""

    constexpr = object
    float16, bfloat16, float32 = torch.float16, torch.bfloat16, torch.float32
    int1, int32, int64 = torch.bool, torch.int32, torch.int64
    exp, exp2, log, log2 = map(each, (torch.exp, torch.exp2, torch.log, torch.log2))
    sqrt, rsqrt, abs, floor = map(each, (torch.sqrt, torch.rsqrt, torch.abs, torch.floor))
    zeros_like = each(torch.zeros_like)
    math = property(lambda self: self)

    def __init__(self, trace=None):
        self.trace = trace

    # who am I
    def program_id(self, axis):
        return tile(self.trace.program[axis])

    def num_programs(self, axis):
        return tile(self.trace.grid[axis])

    # tiles
    def arange(self, start, end=None):
        if end is None:
            raise Mistake(f"wanted two ends, tl.arange(0, {start}), got tl.arange({start})")
        width = end - start
        if width < 1 or width & (width - 1):
            raise Mistake(f"wanted a power of two of lanes, got tl.arange({start}, {end})")
        return tile(torch.arange(start, end))

    def zeros(self, shape, dtype):
        if isinstance(shape, int):
            raise Mistake("wanted the shape in brackets: tl.zeros([M, N], tl.float32)")
        return self.full(shape, 0, dtype)

    def full(self, shape, value, dtype):
        return tile(torch.full(tuple(shape), value, dtype=dtype))

    def expand_dims(self, x, axis):
        return x.unsqueeze(axis)

    def broadcast_to(self, x, *shape):
        return tile(x).expand(*shape)

    def reshape(self, x, *shape):
        return x.reshape(*shape)

    view = reshape

    def cast(self, x, dtype):
        return tile(x).to(dtype)

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
        return torch.where(tile(condition), a, b)

    def maximum(self, a, b):
        return torch.maximum(*alike(a, b))

    def minimum(self, a, b):
        return torch.minimum(*alike(a, b))

    def fma(self, x, y, z):
        return x * y + z

    def max(self, x, axis=None, keep_dims=False):
        if torch.is_tensor(axis):
            raise Mistake("tl.max goes along an axis; of two tiles tl.maximum takes the larger")
        return reduced(torch.amax, x, axis, keep_dims)

    def min(self, x, axis=None, keep_dims=False):
        return reduced(torch.amin, x, axis, keep_dims)

    def sum(self, x, axis=None, keep_dims=False):
        return reduced(torch.sum, x, axis, keep_dims)

    def softmax(self, x, dim=None, **_):
        return torch.softmax(x, 0 if dim is None else dim)

    def trans(self, x):
        return x.mT

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
        nothing = self.trace.untold if kind.is_floating_point else FAR
        found = tile(torch.full(at.shape, nothing if other is None else other, dtype=kind))
        found[on] = memory.flat[
            memory.touch("load", at, on, mask is not None, other is not None)
        ].to(kind)
        return found

    def store(self, pointer, value, mask=None):
        at, on = self.lanes(pointer, mask)
        memory = pointer.memory
        value = for_each_address(value, memory, at)
        memory.flat[memory.touch("store", at, on, mask is not None)] = value[on]

    def atomic_add(self, pointer, value, mask=None, **_):
        at, on = self.lanes(pointer, mask)
        memory = pointer.memory
        value = for_each_address(value, memory, at)
        memory.flat.index_add_(0, memory.touch("add", at, on, mask is not None), value[on])

    def lanes(self, pointer, mask):
        if not isinstance(pointer, Pointer):
            raise Mistake("wanted an address: a tensor of the kernel's arguments plus offsets")
        return pointer.lanes(mask)


def for_each_address(value, memory, at):
    """What is stored, a number for each address."""
    value = torch.as_tensor(value, dtype=memory.flat.dtype)
    try:
        return value.expand(at.shape)
    except RuntimeError:
        got, wanted = tuple(value.shape), tuple(at.shape)
        raise Mistake(f"what is stored is {got}, and its addresses are {wanted}") from None


def alike(a, b):
    """Two tiles of one kind from tiles and Python's numbers."""
    known = next((x.dtype for x in (a, b) if isinstance(x, torch.Tensor)), None)
    return tile(torch.as_tensor(a, dtype=known)), tile(torch.as_tensor(b, dtype=known))


def reduced(function, x, axis, keep_dims):
    """A sum or an extreme along an axis, or over all of a tile."""
    axes = tuple(range(tile(x).dim())) if axis is None else axis
    return function(tile(x), axes, keepdim=keep_dims)


for name in "max min sum softmax trans expand_dims broadcast_to cast".split():
    method = getattr(Language, name)
    setattr(Tile, name, lambda x, *a, method=method, **how: method(tl, x, *a, **how))


# ---- a run ---------------------------------------------------------------------------------------
@dataclass
class Trace:
    """What a grid of programs did."""

    grid: tuple
    tensors: dict = field(default_factory=dict)  # name -> tensor
    events: list = field(default_factory=list)
    program: tuple = ()
    untold: float = float("nan")  # what idle lanes hold where a load does not say `other`

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


def run(kernel, grid, *arguments, order=None, untold=float("nan"), **sizes):
    """Every program of the grid once, in this order or in that of the grid -> the trace."""
    function = function_of(kernel)
    trace = Trace(tuple(grid), untold=untold)
    program = spoken(function, Language(trace), {})
    given = inspect.signature(function).bind(*arguments, **sizes).arguments
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            trace.tensors[name] = value
            given[name] = Pointer(Memory(name, value, trace), torch.tensor(0))
    for trace.program in order or itertools.product(*map(range, grid)):
        program(**given)
    return trace


# ---- what a result hangs on ----------------------------------------------------------------------
def alone(launch, kernel, inputs, program, change=None):
    """(outs, trace) of one program, with the number in a place of an argument changed or not; None
    where it cannot run."""
    made = launch(*(x.clone() if torch.is_tensor(x) else x for x in inputs))
    if change:
        argument, place = change
        flat = Memory("", made.arguments[argument], None).flat
        others = flat[flat != flat[place]]
        flat[place] = -1.5 - flat[place] if flat.is_floating_point() else [*others, 0][0]
    try:
        trace = run(kernel, made.grid, *made.arguments, order=[program], **made.sizes)
    except Exception:
        return None
    return [out.view(torch.int32) for out in made.outs], trace


def astray(launch, kernel, solution, inputs):
    """Which number a program needs and never loads, or uses and should not: a sentence. Each is
    proved: the number is changed, and then what the program stores changes or does not."""
    made = launch(*inputs)
    names = list(inspect.signature(function_of(kernel)).parameters)
    for program in itertools.product(*map(range, made.grid)):
        runs = [alone(launch, x, inputs, program) for x in (solution, kernel)]
        if None in runs:
            return ""
        who = f"program {name_of(program)}"

        def hangs(at, argument, which, program=program, runs=runs):
            """Of these places, the first on which what one of the two stores hangs."""
            for place in sorted(at)[:3]:
                again = alone(launch, (solution, kernel)[which], inputs, program, (argument, place))
                if again is None or not all(map(torch.equal, again[0], runs[which][0])):
                    return place
            return None

        def named(argument, place):
            """A place as an index of its tensor."""
            x, name = made.arguments[argument], names[argument]
            found = (addresses_of(x) == place).nonzero().tolist()
            at = f" (place {place})" if x.dim() > 1 else ""
            return f"{name}{found[0]}{at}" if found else f"place {place} of {name}"

        touched = [touches(trace, kernel) for (_, trace), kernel in zip(runs, (solution, kernel))]
        for argument, is_load in dict.fromkeys([*touched[0], *touched[1]]):
            need, used = (Counter(x.get((argument, is_load), ())) for x in touched)
            missing, extra = set(need) - set(used), set(used) - set(need)
            if not is_load and missing:
                return f"{who} never writes to {named(argument, min(missing))}, which is its own"
            if not is_load:
                continue
            missing, extra = hangs(missing, argument, 0), hangs(extra, argument, 1)
            pairs = (
                (missing, "never loads {}, which it needs"),
                (extra, "uses {}, which it should not"),
            )
            if told := [text.format(named(argument, x)) for x, text in pairs if x is not None]:
                return f"{who} {', and '.join(told)}"
            most, least = max(used, key=used.get, default=0), min(used, key=used.get, default=0)
            if used[most] > used[least] and len(set(need.values())) == 1:
                often = f"{named(argument, most)} more often than {named(argument, least)}"
                return f"{who} loads {often}: its tiles overlap"
    return ""


def touches(trace, kernel):
    """{(argument, whether it is loaded): its places, as often as they are touched}, in order."""
    names, found = list(inspect.signature(function_of(kernel)).parameters), {}
    for event in trace.events:
        key = names.index(event.tensor), event.kind == "load"
        found[key] = found.get(key, []) + event.places.tolist()
    return found


# ---- where there is no Triton --------------------------------------------------------------------
class Kernel:
    """kernel[grid](…): the launch of Triton."""

    def __init__(self, fn):
        self.fn, self.__name__, self.__doc__ = fn, fn.__name__, fn.__doc__

    def __getitem__(self, grid):
        return lambda *arguments, **sizes: run(self.fn, grid, *arguments, **sizes)


tl = Language()
triton = types.SimpleNamespace(jit=Kernel, cdiv=tl.cdiv, absent=True)
