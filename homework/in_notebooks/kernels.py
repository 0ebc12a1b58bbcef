"""How is a kernel judged that a learner writes in a notebook? By what its programs store.

An exercise here is an ordinary one with four differences: its stub is a Triton kernel, the course
launches it, it is asked in float32 only, and the trace says what it may not load. The kernel runs
first on tiles of PyTorch, where every address is checked (minimal/kernels/tiles.py), then, where
Triton is, in Triton's interpreter; both must store the same.
"""

import functools
import inspect
from collections import Counter
from typing import NamedTuple

import numpy as np
import torch

from homework import turn
from homework.handed_on import tensor
from homework.marking import PUBLIC, Exercise, Unit, compare, fit, stand_in
from minimal.kernels import tiles

try:
    import triton
    from triton.runtime.interpreter import InterpretedFunction

    # It must have been chosen (TRITON_INTERPRET=1) before Triton was first imported.
    INTERPRETED = isinstance(triton.language.max, InterpretedFunction)
    for name in "abs exp exp2 log log2 rsqrt sqrt floor".split() if INTERPRETED else ():
        # the interpreter replaces tl.exp and forgets x.exp()
        method = lambda x, name=name: getattr(triton.language, name)(x)  # noqa: E731
        setattr(triton.language.tensor, name, method)
except ImportError:  # macOS, Windows: the tiles of PyTorch are all there is
    INTERPRETED = False


UNSTORED = np.array(0x7FC0_5EED, np.uint32)  # a NaN by its bits: no calculation makes this one


class Launch(NamedTuple):
    """How the course launches a kernel: its grid, its arguments in order, and what it fills."""

    grid: tuple
    arguments: tuple
    sizes: dict
    outs: tuple
    shared: bool = False  # programs may add to one place


def empty(*shape):
    """A tensor to be filled; what no program stores stays NaN, and is told from one that was."""
    return torch.full(shape, int(UNSTORED), dtype=torch.int32).view(torch.float32)


def row_by_row(lanes, whole=False):
    """A launch with a program a row of x, which stores a number, or the whole row."""

    def launch(x, size):
        out = empty(*x.shape) if whole else empty(len(x))
        return Launch((len(x),), (x, out, x.shape[1]), {lanes: size}, (out,))

    return launch


def unstored(array):
    """Where an array still is as `empty` made it."""
    bits = np.ascontiguousarray(array)
    return (
        bits.view(np.uint32) == UNSTORED if bits.dtype == np.float32 else np.zeros(bits.shape, bool)
    )


def blocks(size, block):
    return -(-size // block)


def launched(launch, kernel, *inputs, oracle=None):
    """What the programs of a kernel stored, with every address checked; on tiles alone where the
    oracle says that it is wrong."""
    made = launch(*inputs)
    trace = tiles.run(kernel, made.grid, *made.arguments, **made.sizes)
    race = next(filter(None, map(trace.twice, written(trace, made))), None)
    if race and not made.shared:
        place, one, other = race
        raise tiles.Mistake(
            f"programs {tiles.name_of(one)} and {tiles.name_of(other)} both store to place "
            f"{place}, and on a GPU the last would win: check program_id, and where each stores"
        )
    if not made.shared and any(event.kind == "add" for event in trace.events):
        raise tiles.Mistake("tl.atomic_add adds to what is there, and nothing is there yet: store")
    finite = not any(torch.isnan(out).any() for out in made.outs)
    untold = {event.tensor for event in trace.events if event.idle and not event.told}
    if not finite and untold:
        again = launch(*inputs)
        tiles.run(kernel, again.grid, *again.arguments, untold=0.0, **again.sizes)
        if not any(torch.isnan(out).any() for out in again.outs):
            raise tiles.Mistake(
                f"your idle lanes were told nothing in the load of {', '.join(sorted(untold))}, "
                "and what they hold, NaN, is counted: say with other=… what changes nothing (0.0 "
                "in a sum, -inf before a maximum)"
            )
    if not (finite and INTERPRETED and (oracle is None or near(made.outs, oracle(*inputs)))):
        return tuple(made.outs)

    again = launch(*inputs)
    try:
        with np.errstate(all="ignore"):
            InterpretedFunction(tiles.function_of(kernel))[again.grid](
                *again.arguments, **again.sizes
            )
    except triton.runtime.errors.InterpreterError as error:
        raise error.__cause__ or error from None
    for ours, theirs in zip(made.outs, again.outs, strict=True):
        if not torch.allclose(ours, theirs, atol=1e-4, rtol=1e-3, equal_nan=True):
            raise tiles.Mistake("Triton's interpreter stores other numbers: use only `tl.` inside")
    return tuple(again.outs)


def near(outs, wanted):
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    pairs = zip(outs, wanted, strict=True)
    return all(torch.allclose(x, y, rtol=1e-2, atol=1e-2) for x, y in pairs)


def written(trace, made):
    """The names of the tensors that a kernel fills."""
    return [name for name, x in trace.tensors.items() if any(x is out for out in made.outs)]


# ---- what a kernel loads -------------------------------------------------------------------------


def loads(trace, tensor, kind="load"):
    """{program: the places of a tensor that it loads, in order, as often as it does}."""
    found = {}
    for event in trace.of(tensor, kind):
        found[event.program] = found.get(event.program, []) + event.places.tolist()
    return found


def repeated(trace, tensor, kind):
    """Which program loads, or stores to, a place of a tensor more than once; '' if none does."""
    for program, places in loads(trace, tensor, kind).items():
        for place, often in Counter(places).most_common(1):
            if often > 1:
                verb = "loads" if kind == "load" else "stores to"
                who = f"program {tiles.name_of(program)}"
                return f"{who} {verb} place {place} of {tensor} {often} times"
    return ""


def once(*tensors):
    """Forbids a program to load a place of these tensors twice."""

    def judge(trace, made):
        found = [(repeated(trace, tensor, "load"), tensor) for tensor in tensors]
        return next((f"{x}: one pass over {tensor} is wanted" for x, tensor in found if x), "")

    return judge


def stored_once(trace, made):
    """Forbids what costs bytes and changes no number: a way through the memory and back."""
    for out in written(trace, made):
        if trace.of(out, "load") and not made.shared:
            return f"you load {out} again: what a program has made is still in its registers"
        if found := repeated(trace, out, "store"):
            return f"{found}: store once, when all is done; until then registers hold it"
    return ""


def at_a_time(tensor, size):
    """Forbids a load of more lanes than the constant of this name."""

    def judge(trace, made):
        most = max(len(event.places) + event.idle for event in trace.of(tensor, "load"))
        if most > made.sizes[size]:
            return f"you load {most} numbers of {tensor} at a time: {size} is {made.sizes[size]}"
        return ""

    return judge


def told(tensor):
    """Forbids idle lanes that load no `other`."""

    def judge(trace, made):
        if all(event.told or not event.idle for event in trace.of(tensor, "load")):
            return ""
        return (
            f"idle lanes of your load of {tensor} were told nothing, and what they hold names a "
            "row: other=0"
        )

    return judge


def no_future(trace, made):
    """Forbids tiles of keys that lie wholly behind a program's last query."""
    M, N, D = (made.sizes[name] for name in "MND")
    for program, places in loads(trace, "k").items():
        last = (program[0] + 1) * M - 1
        furthest = max(places) // D
        if furthest >= (last // N + 1) * N:
            return (
                f"program {program[0]} loads keys up to {furthest}, and its last query is {last}: "
                "end the loop there, the rest is future"
            )
    return ""


def no_past(trace, made):
    """Forbids tiles of queries that lie wholly before a program's first key."""
    M, N, D = (made.sizes[name] for name in "MND")
    for program, places in loads(trace, "q").items():
        first = program[0] * N
        nearest = min(places) // D
        if nearest < first // M * M:
            return (
                f"program {program[0]} loads queries from {nearest} on, and its first key is "
                f"{first}: the queries before it do not see it, so begin there"
            )
    return ""


class KernelExercise(Exercise):
    """An exercise whose answer is a kernel with these arguments, launched like this.

    forbids: judges of what it loaded, (trace, launch) -> '' or a sentence.
    """

    learners = None  # the kernel that is asked now

    def __init__(self, oracle, parts, arguments, launch, forbids=()):
        super().__init__(oracle, parts)
        self.arguments, self.launch, self.forbids = arguments, launch, (*forbids, stored_once)

    def forbidden(self, answer, *inputs):
        """'' if a kernel keeps to what its stub says of its loads."""
        if not self.is_kernel(answer):
            return ""
        made = self.launch(*inputs)
        trace = tiles.run(answer, made.grid, *made.arguments, **made.sizes)
        return next(filter(None, (judge(trace, made) for judge in self.forbids)), "")

    def verdict(self, part, seed, states, answers, hidden=False, others=()):
        """As of any exercise; what has no name is told by what the kernel loads and stores."""
        state, why = super().verdict(part, seed, states, answers, hidden, others)
        unnamed = state == "wrong" and not self.named(why) and not why.startswith("two things")
        if unnamed and self.learners and (others or len(self.parts) == 1):
            for case, answer in enumerate(answers):
                if self.judge(part, seed, case, answer):
                    inputs = map(tensor, self.cases(part, seed)[case])
                    unit = self.oracle.__module__.rpartition(".")[2]
                    right = turn.solution(unit, self.name)
                    found = tiles.astray(self.launch, self.learners, right, [*inputs])
                    return state, f"{found}: {why}" if found else why
        return state, why

    def is_kernel(self, answer):
        """A kernel, decorated or not; what is a function of the exercise's inputs is none."""
        asked = [name.split(":")[0].strip() for name in self.arguments.split(",")]
        return hasattr(answer, "fn") or list(inspect.signature(answer).parameters) == asked

    def head(self):
        return f"@triton.jit\ndef {self.name}({self.arguments}):"

    def runs(self, answer):
        """A kernel as a function of the exercise's inputs; what is such a function stays one."""
        self.learners = answer if self.is_kernel(answer) else None
        if not self.learners:
            return answer
        return lambda *inputs: launched(self.launch, answer, *inputs, oracle=stand_in(self))

    @functools.lru_cache(maxsize=256)  # noqa: B019  exercises live as long as the process
    def cases(self, part, seed):
        """What a part is asked: twice, in float32."""
        made = []
        for case in range(2):
            rng = np.random.default_rng([seed, part.points, len(part.name), case])
            drawn = part.make(rng)
            made.append(tuple(fit(x, "f4", np.ascontiguousarray) for x in drawn))
        return made

    def judge(self, part, seed, case, answer, hidden=False):
        """'' if these arrays answer the case; -inf is a number like any other here."""
        wanted = self.expected(part, seed, case)
        for i, (got, right) in enumerate(zip(answer, wanted, strict=False), 1):
            if got.shape != right.shape:
                continue
            which = f"result {i}: " if len(wanted) > 1 else ""
            if lost := int(unstored(got).sum()):
                place = np.argwhere(unstored(got))[0].tolist()
                lost = f"{which}{lost} of {got.size} places are NaN, the first at {place}"
                return f"{lost}: no program stored them"
            if lost := int((np.isnan(got) & ~np.isnan(right)).sum()):
                return (
                    f"{which}your programs stored NaN in {lost} of {got.size} places: 0 / 0, "
                    "inf - inf, inf / inf or 0 * inf"
                )
        told = compare(bounded(answer), bounded(wanted), "float32", hidden)
        return told.replace("-1e+30", "-inf")


def bounded(arrays):
    """-inf, which an empty sum's logarithm is, as a number that can be compared."""
    return [np.where(np.isneginf(x), np.float32(-1e30), x).astype(x.dtype) for x in arrays]


class KernelUnit(Unit):
    """A unit of kernels; `arguments` is what stands in the brackets of the stub."""

    def exercise(self, *parts, arguments, launch, forbids=()):
        def keep(oracle):
            made = KernelExercise(oracle, parts, arguments, launch, forbids)
            self.exercises[oracle.__name__] = made
            return oracle

        return keep

    def mark(self, names, problems, exercise, part, seed=PUBLIC, path="submission.py"):
        """One row, by launching what is there under the exercise's name."""
        names = {name: exercise.runs(names[name]) for name in [exercise.name] if name in names}
        return super().mark(names, problems, exercise, part, seed, path)
