"""What does a learner hear who fills in a cell of a notebook? The homework's own verdict, at once.

A notebook names an exercise of a unit, shows its stub, and hands over what became of it:

    causal_mask = your_turn("nb01", causal_mask)

A right answer is used from there on. Anything else is answered with what is wrong and one more
hint, and the solution stands in for it, so that the notebook runs to its end whoever runs it.
"""

import importlib
import inspect
import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import torch

from homework import handed_on, marking, runner
from homework.handed_on import tensor
from homework.verdict_card import failing_case, show

SECONDS = 10  # for all cases of an exercise
TRIES = ("wrong", "forbidden", "raised", "time")  # what earns a hint
HEARD = Counter()  # (unit, exercise) -> hints given so far, in this kernel
EXPLAINED = set()  # (unit, exercise): why it is so was said, in this kernel
ANSWERED = {}  # (unit, exercise) -> the code that was answered last


# ---- where exercises and their solutions are -----------------------------------------------------


def unit_of(name):
    """The unit "nb01" of a notebook, or the homework "hw01"."""
    if not name.startswith("nb"):
        return marking.find(name)
    try:
        return importlib.import_module(f"homework.in_notebooks.{name}").unit
    except ModuleNotFoundError:
        raise ValueError(f"there is no unit {name!r}: wanted a name such as nb01 or hw01") from None


def exercise_of(unit, name):
    exercises = unit_of(unit).exercises
    if name not in exercises:
        raise ValueError(f"{unit} has {', '.join(exercises)}; got {name!r}: keep the name as it is")
    return exercises[name]


def solution(unit, name):
    """The course's own answer to an exercise: a function that runs."""
    exercise_of(unit, name)
    if unit.startswith("nb"):
        return getattr(importlib.import_module(f"homework.in_notebooks.solutions.{unit}"), name)
    path = marking.HERE / "solutions" / unit_of(unit).folder / "reference.py"
    names, _ = runner.load(path.read_text(encoding="utf-8"), str(path))
    return names[name]


def stands_in(function):
    """Is this the course's own answer, under whatever name? Its code lies among the solutions."""
    code = getattr(plain(function), "__code__", None)
    places = (marking.HERE / "solutions", marking.HERE / "in_notebooks" / "solutions")
    return code is not None and any(
        Path(code.co_filename).resolve().is_relative_to(place.resolve()) for place in places
    )


def plain(function):
    """The Python function behind a kernel, or behind what wraps it."""
    return inspect.unwrap(getattr(function, "fn", function))


# ---- what a learner's function does --------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """What became of an answer: a state (ok, todo, wrong, …), why, in which part and case."""

    state: str
    why: str = ""
    part: str = ""
    case: int = 0  # counted from 1 over all parts
    cases: int = 0
    failed: tuple = field(default=(), compare=False)  # the part, its case from 0, what came of it


def attempt(exercise, function):
    """The first part that a function does not earn; of a right one, how many cases it met."""
    code = getattr(plain(function), "__code__", None)
    path = getattr(code, "co_filename", "")
    runs = exercise.runs(function)
    names, count = {exercise.name: generous(runs)}, 0
    prepare(exercise)
    with marking.alarm(SECONDS) as rung:
        for part in exercise.parts:
            given = (names, {}, exercise, part, marking.PUBLIC, path)
            state, why, states, answers = marking.tried(*given)
            if rung:
                return Tried("time", why if state == "time" else marking.SAYS["time"])
            if state != "ok":
                at = first_failing(exercise, part, states, answers)
                failed = (part, at, answers[at])
                return Tried(state, why, part.name, count + at + 1, failed=failed)
            count += len(states)
        number = 0
        for part in exercise.parts:
            for inputs in exercise.cases(part, marking.PUBLIC):
                number += 1
                if why := exercise.forbidden(function, *map(tensor, inputs)):
                    said = f"the numbers are right, but {why}"
                    return Tried("forbidden", said, part.name, number)
    return Tried("time", marking.SAYS["time"]) if rung else Tried("ok", cases=count)


def prepare(exercise):
    """Load and compute what is not the answer's: the course's own answers, and what watches it.
    Both may load torch._dynamo, seconds of a fresh kernel."""
    for part in exercise.parts:
        cases = exercise.cases(part, marking.PUBLIC)
        for case in range(0 if part.accept else len(cases)):
            exercise.expected(part, marking.PUBLIC, case)
    if callable(exercise.forbids):
        from homework import watch

        watch.made_by(torch.clone, ["x"], torch.zeros(1))


def generous(function):
    """The same function: an iterator is a list, Python's numbers get the dtype of the inputs."""

    def called(*inputs):
        real = [x.dtype for x in handed_on.tensors(inputs) if x.is_floating_point()]
        return contained(function(*inputs), real[0] if real else torch.float64)

    return called


def contained(value, dtype):
    """What was returned, as the judge knows it: tensors, numbers, lists and tuples of these."""
    if isinstance(value, marking.np.ndarray) and value.dtype == "f8":
        return torch.from_numpy(value).to(dtype)  # fp32 times whole numbers is float64 in NumPy
    if torch.is_tensor(value) or isinstance(value, marking.np.ndarray):
        return value
    if isinstance(value, (str, bytes, dict, set)) or not hasattr(value, "__iter__"):
        return value
    found = [contained(x, dtype) for x in value]
    real = any(isinstance(x, float) for x in found)
    if found and real and all(isinstance(x, (int, float)) for x in found):
        return torch.tensor(found, dtype=dtype)
    return tuple(found) if isinstance(value, tuple) else found


def first_failing(exercise, part, states, answers):
    """Which case of a part lost it."""
    for case, (state, answer) in enumerate(zip(states, answers, strict=True)):
        if state["state"] != "ok" or exercise.judge(part, marking.PUBLIC, case, answer):
            return case
    return 0


# ---- what a notebook calls -----------------------------------------------------------------------


def your_turn(unit, function):
    """Check what the learner wrote, say what came of it, and return what the notebook goes on with:
    the learner's function if it is right, else the solution."""
    name = plain(function).__name__
    exercise = exercise_of(unit, name)
    offer()
    if stands_in(function):
        still = "this is still the course's solution: your own cell, which defines it, has not run"
        show("todo", [f"{name}: {still}, or an error stopped it."])
        return function
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of a case's numbers
        found = attempt(exercise, function)
        if found.state == "ok":
            ready, why = handed_on.ready(unit, exercise, function, solution(unit, name))
            found = Tried("form", why) if why else found
    if found.state == "ok":
        said = [f"{name}: right, in all {found.cases} cases. The notebook goes on with yours."]
        if exercise.after and (unit, name) not in EXPLAINED:
            EXPLAINED.add((unit, name))
            said.append(exercise.after)
        show(found.state, said)
        return ready
    if found.state == "todo":
        minutes = f"{exercise.level}, {exercise.minutes} minutes"
        show("todo", [f"{name}: not written yet ({minutes}); the solution stands in for it."])
        return solution(unit, name)

    # what is wrong, and a further hint for every further try; the last one only who asks hears
    said = [f"{name}, {found.part}: {found.why}" if found.part else f"{name}: {found.why}"]
    code, every = text_of(function), exercise.hints_for(found.part or None)
    if found.state in TRIES and ANSWERED.get((unit, name)) != code:
        ANSWERED[unit, name] = code
        HEARD[unit, name] += HEARD[unit, name] < len(every) - 1
    said += hints_so_far(unit, exercise, found.part or None)
    if HEARD[unit, name] < len(every):
        said.append(f'(hint("{unit}", "{name}") says more)')
    at_hand = f'; case("{unit}", "{name}", {found.case}) is where it failed' if found.case else ""
    said.append(f"The solution stands in for it until yours is right{at_hand}.")
    show(found.state, said, table_of(unit, exercise, found))
    return solution(unit, name)


def table_of(unit, exercise, found):
    """The case that failed, of a notebook's exercise: homework keeps its numbers for `case`."""
    if found.state != "wrong" or not unit.startswith("nb"):
        return ""
    part, case, answer = found.failed
    return failing_case(exercise, part, marking.PUBLIC, case, answer)


def offer():
    """What learners are told to call is there, whatever their cells imported."""
    notebook = sys.modules.get("IPython")
    shell = notebook.get_ipython() if notebook else None
    for function in (hint, case, solution) if shell else ():
        shell.user_ns.setdefault(function.__name__, function)


def text_of(function):
    """The code of a function, to tell a new try from the same cell run again."""
    try:
        return inspect.getsource(plain(function))
    except (OSError, TypeError):
        return repr(function)


def hint(unit, name):
    """One more hint, up to the line that solves it."""
    exercise = exercise_of(unit, name)
    HEARD[unit, name] += 1
    for line in hints_so_far(unit, exercise):
        print(line)
    if HEARD[unit, name] > len(exercise.hints):
        print(f"That is all of them. solution({unit!r}, {name!r}) is a function to compare with.")


def hints_so_far(unit, exercise, part=None):
    every = exercise.hints_for(part)
    given = every[: HEARD[unit, exercise.name]]
    return [f"hint {i} of {len(every)}: {text}" for i, text in enumerate(given, 1)]


def case(unit, name, number):
    """One case of an exercise, at hand: its part, its inputs as tensors, and what is wanted.

    one = case("nb01", "causal_mask", 4)
    causal_mask(*one.inputs), one.wanted
    """
    exercise = exercise_of(unit, name)
    asked = [
        (part, at)
        for part in exercise.parts
        for at in range(len(exercise.cases(part, marking.PUBLIC)))
    ]
    if not 1 <= number <= len(asked):
        raise ValueError(f"{name} has cases 1 to {len(asked)}, got {number}")
    part, at = asked[number - 1]
    inputs = tuple(map(tensor, exercise.cases(part, marking.PUBLIC)[at]))
    if part.accept:
        return SimpleNamespace(part=part.name, inputs=inputs, wanted=None)
    wanted = tuple(map(tensor, exercise.expected(part, marking.PUBLIC, at)))
    wanted = wanted[0] if len(wanted) == 1 else wanted
    return SimpleNamespace(part=part.name, inputs=inputs, wanted=wanted)
