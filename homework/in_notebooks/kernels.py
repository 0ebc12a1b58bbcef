"""How is a kernel judged that a learner writes in a notebook? By what its programs store.

An exercise here is an ordinary one with three differences: its stub is a Triton kernel, the course
launches it, and it is asked in float32 only. The kernel runs first on tiles of PyTorch, where every
address is checked (minimal/kernels/tiles.py), then, where Triton is, in Triton's interpreter; both
must store the same.
"""

import inspect
from typing import NamedTuple

import numpy as np
import torch

from homework.marking import PUBLIC, Exercise, Unit, compare, fit
from minimal.kernels import tiles

try:
    import triton
    from triton.runtime.interpreter import InterpretedFunction

    # It must have been chosen (TRITON_INTERPRET=1) before Triton was first imported.
    INTERPRETED = isinstance(triton.language.max, InterpretedFunction)
except ImportError:  # macOS, Windows: the tiles of PyTorch are all there is
    INTERPRETED = False


class Launch(NamedTuple):
    """How the course launches a kernel: its grid, its arguments in order, and what it fills."""

    grid: tuple
    arguments: tuple
    sizes: dict
    outs: tuple
    shared: bool = False  # programs may add to one place


def empty(*shape):
    """A tensor to be filled; what no program stores stays NaN."""
    return torch.full(shape, float("nan"))


def blocks(size, block):
    return -(-size // block)


def launched(launch, kernel, *inputs):
    """What the programs of a kernel stored, with every address checked."""
    made = launch(*inputs)
    trace = tiles.run(kernel, made.grid, *made.arguments, **made.sizes)
    race = next(filter(None, map(trace.twice, written(trace, made))), None)
    if race and not made.shared:
        place, one, other = race
        raise tiles.Mistake(
            f"programs {tiles.name_of(one)} and {tiles.name_of(other)} both store to place "
            f"{place}: on a GPU the one that comes last would win"
        )
    finite = not any(torch.isnan(out).any() for out in made.outs)
    if not (finite and INTERPRETED):
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


def written(trace, made):
    """The names of the tensors that a kernel fills."""
    return [name for name, x in trace.tensors.items() if any(x is out for out in made.outs)]


class KernelExercise(Exercise):
    """An exercise whose answer is a kernel with these arguments, launched like this."""

    def __init__(self, oracle, pieces, hints, level, minutes, arguments, launch):
        super().__init__(oracle, pieces, hints, level, minutes)
        self.arguments, self.launch = arguments, launch

    def head(self):
        return f"@triton.jit\ndef {self.name}({self.arguments}):"

    def runs(self, answer):
        """A kernel as a function of the exercise's inputs; what is such a function stays one."""
        asked = [name.split(":")[0].strip() for name in self.arguments.split(",")]
        plain = not hasattr(answer, "fn")
        if plain and list(inspect.signature(answer).parameters) != asked:
            return answer
        return lambda *inputs: launched(self.launch, answer, *inputs)

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
            lost = int((np.isnan(got) & ~np.isnan(right)).sum()) if got.shape == right.shape else 0
            if lost:
                which = f"result {i}: " if len(wanted) > 1 else ""
                return (
                    f"{which}{lost} of {got.size} places are NaN: no program stored them, or what "
                    "an idle lane loaded went into a sum"
                )
        return compare(bounded(answer), bounded(wanted), "float32", hidden)


def bounded(arrays):
    """-inf, which an empty sum's logarithm is, as a number that can be compared."""
    return [np.where(np.isneginf(x), np.float32(-1e30), x).astype(x.dtype) for x in arrays]


class KernelUnit(Unit):
    """A unit of kernels; `arguments` is what stands in the brackets of the stub."""

    def exercise(self, *pieces, arguments, launch, hints, level, minutes):
        def keep(oracle):
            made = KernelExercise(oracle, pieces, hints, level, minutes, arguments, launch)
            self.exercises[oracle.__name__] = made
            return oracle

        return keep

    def mark(self, names, problems, exercise, part, seed=PUBLIC, path="submission.py"):
        """One row, by launching what is there under the exercise's name."""
        names = {name: exercise.runs(names[name]) for name in [exercise.name] if name in names}
        return super().mark(names, problems, exercise, part, seed, path)
