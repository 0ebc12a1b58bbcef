"""How do the numbers of a wrong answer stand to those that were wanted?

For mistakes that nobody named. Each sentence is said only if it is true in every case that is
wrong, whatever its part, of the first result of which one is true.
"""

import inspect

import numpy as np

from homework.compare import unwarned

ENOUGH = 3  # numbers that must agree: fewer may agree by chance
CURVES = {
    "the squares of the wanted numbers": np.square,
    "the roots of the wanted numbers": np.sqrt,
    "the natural logarithms of the wanted numbers": np.log,
    "e to the power of the wanted numbers": np.exp,
    "one over the wanted numbers": np.reciprocal,
    "one minus the wanted numbers": lambda x: 1 - x,
    "the wanted numbers without their signs": np.abs,
}
GATHERED = {"sum": np.sum, "mean": np.mean}


def near(got, wanted):
    return got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-3, atol=1e-5)


NUMBERS = "biuf"  # kinds of dtypes that a difference can be told of


def relation(exercise, seed, asked):
    """A sentence, or ''. asked: (part, states, answers) of a part and of all others that are known;
    those that are right say nothing."""
    cases = [
        (answer, exercise.expected(part, seed, case), exercise.cases(part, seed)[case])
        for part, states, answers in asked
        for case, (state, answer) in enumerate(zip(states, answers, strict=True))
        if state["state"] == "ok"
    ]
    all_done = all(state["state"] == "ok" for _, states, _ in asked for state in states)
    wrong = [case for case in cases if not agree(*case[:2])]
    count = len(cases[0][1])
    if not wrong or any(len(answer) != count for answer, _, _ in wrong):
        return ""
    given = inputs_of(exercise, [inputs for _, _, inputs in wrong])
    for n in range(count):
        if any(case[0][n].dtype.kind not in NUMBERS for case in wrong):
            continue
        pairs = [(got[n].astype("f8"), right[n].astype("f8")) for got, right, _ in wrong]
        if not known(pairs):
            continue
        with np.errstate(all="ignore"):
            said = (
                told(pairs, given)
                or elsewhere(wrong, n)
                or (amounts(pairs, given) if all_done else "")
            )
        if said:
            return f"result {n + 1}: {said}" if count > 1 else said
    return ""


def known(pairs):
    """Is this result wrong, finite, and of enough numbers to say how?"""
    if all(near(*pair) for pair in pairs) or sum(right.size for _, right in pairs) < ENOUGH:
        return False
    return all(np.isfinite(x).all() for pair in pairs for x in pair)


def elsewhere(wrong, n):
    """Is this result what another one should be?"""
    for m in range(len(wrong[0][1])):
        if m != n and all(near(got[n], right[m]) for got, right, _ in wrong):
            if not all(near(right[n], right[m]) for _, right, _ in wrong):
                return f"that is what result {m + 1} should be"
    return ""


def agree(got, right):
    return len(got) == len(right) and all(map(near, got, right))


def inputs_of(exercise, cases):
    """{name: its arrays, case by case} of the inputs that are arrays of real numbers."""
    names = list(inspect.signature(exercise.oracle).parameters)[: len(cases[0])]
    columns = dict(zip(names, zip(*cases, strict=True), strict=True))
    return {
        name: [x.astype("f8") for x in column]
        for name, column in columns.items()
        if all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in column)
    }


def told(pairs, inputs):
    def every(holds):
        return all(holds(got, right) for got, right in pairs)

    # one of the inputs, or the wanted numbers bent, moved or turned
    for name, arrays in inputs.items():
        if all(near(got, x) for (got, _), x in zip(pairs, arrays, strict=True)):
            return f"that is `{name}` as it came"
    for says, curve in CURVES.items():
        if every(lambda got, right, curve=curve: near(got, curve(right))):
            return f"those are {says}"
    if moved := shifted(pairs):
        return moved
    return turned(pairs) or gathered(pairs) or apart(pairs) or cut(pairs)


def amounts(pairs, inputs):
    """What is said where every case has an answer: in one alone it is easily chance."""
    return left_over(pairs, inputs) or scaled(pairs)


def shifted(pairs):
    """Is one number too much in every place?"""
    if any(got.shape != right.shape for got, right in pairs):
        return ""
    over = np.concatenate([np.ravel(got - right) for got, right in pairs])
    if np.ptp(over) > 1e-4 or abs(over[0]) < 1e-2:
        return ""
    side = "large" if over[0] > 0 else "small"
    return f"every number is {abs(over[0]):.4g} too {side}"


def turned(pairs):
    """Are the numbers right, and stand in another order along one axis, or two?"""
    most = max(right.ndim for _, right in pairs)
    for i in range(most):
        if all(got.ndim > i and near(np.flip(got, i), right) for got, right in pairs):
            return f"your numbers are right, and in reverse order along axis {i}"
        for j in range(i + 1, most):
            same = (got.ndim > j and near(got.swapaxes(i, j), right) for got, right in pairs)
            if all(same):
                return f"your numbers are right, and axes {i} and {j} are exchanged"
    return ""


def gathered(pairs):
    """Was something taken together that was wanted apart?"""
    for name, gather in GATHERED.items():
        if all(right.size > 1 and near(np.squeeze(got), gather(right)) for got, right in pairs):
            return f"that is the {name} of all the wanted numbers; they are wanted one by one"
        for axis in range(min(right.ndim for _, right in pairs)):
            if all(
                right.shape[axis] > 1 and near(np.squeeze(got), np.squeeze(gather(right, axis)))
                for got, right in pairs
            ):
                return f"that is the {name} of what is wanted, along axis {axis}"
    return ""


def apart(pairs):
    """Was something left apart that was wanted together?"""
    for name, gather in GATHERED.items():
        if all(got.size > 1 == right.size and near(gather(got), right) for got, right in pairs):
            return f"the {name} of all your numbers is right; wanted that one number"
        for axis in range(min(got.ndim for got, _ in pairs)):
            if all(got.shape[axis] > 1 and near(gather(got, axis), right) for got, right in pairs):
                return f"the {name} of your numbers along axis {axis} is right, and wanted alone"
    return ""


def cut(pairs):
    """Are the numbers right, and some too many or missing at one end of an axis?"""
    for axis in range(max(right.ndim for _, right in pairs)):
        for end, kept in (("end", at_first), ("beginning", at_last)):
            if all(longer(got, right, axis, kept) for got, right in pairs):
                return f"those are the wanted numbers, and more at the {end} of axis {axis}"
            if all(longer(right, got, axis, kept) for got, right in pairs):
                return f"your numbers are right, and some are missing at the {end} of axis {axis}"
    return ""


def longer(more, less, axis, kept):
    """Does `more` hold all of `less`, and something besides along an axis?"""
    if more.ndim != less.ndim or more.ndim <= axis or more.shape[axis] <= less.shape[axis]:
        return False
    return less.size > 0 and near(np.take(more, kept(more, less, axis), axis), less)


def at_first(more, less, axis):
    return np.arange(less.shape[axis])


def at_last(more, less, axis):
    return np.arange(more.shape[axis] - less.shape[axis], more.shape[axis])


def left_over(pairs, inputs):
    """Is the difference a multiple of one of the inputs?"""
    if any(got.shape != right.shape or not got.any() for got, right in pairs):
        return ""
    for name, arrays in inputs.items():
        times = []
        for (got, right), x in zip(pairs, arrays, strict=True):
            over = got - right
            if over.shape != x.shape or x.size < ENOUGH or near(over, 0 * over):
                break
            times.append((over * x).sum() / (x * x).sum())
            if not np.allclose(over, times[-1] * x, rtol=1e-3, atol=1e-4):
                break
        else:
            size = abs(times[0])
            term = f"`{name}`" if abs(size - 1) < 1e-3 else f"{size:.3g} times `{name}`"
            verb = "lack" if times[0] < 0 else "hold too much"
            return f"your numbers {verb}: {term}, in the first case that is wrong"
    return ""


def scaled(pairs):
    """Does every row along the last axis lack a factor of its own, or every case one?"""
    one_factor = True
    for got, right in pairs:
        if got.shape != right.shape or got.ndim < 2 or got.shape[-1] < ENOUGH:
            return ""
        scale = (got * right).sum(-1, keepdims=True) / (right * right).sum(-1, keepdims=True)
        if np.abs(scale).min() < 1e-6 or not near(got / scale, right):
            return ""
        one_factor &= np.allclose(scale, scale.flat[0], rtol=1e-3)
    if one_factor:
        return f"in each case all your numbers are one and the same multiple of the wanted: {LOOK}"
    return (
        "along the last axis your numbers stand in the right proportions, and each row is off by "
        f"a factor of its own: {LOOK}"
    )


LOOK = "look at what you divide or multiply by"


# ---- what does not matter to an answer -----------------------------------------------------------


def others(value):
    """More inputs of the same kind; none where it is not known how they look."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
        return [(1.5 * np.flip(value) + 0.25).astype(value.dtype)]
    if isinstance(value, float):
        return [1.5 * value + 0.25]
    whole = isinstance(value, int) and not isinstance(value, bool)
    return [value + 1, 3 * value + 2] if whole else []


def ignored(exercise, seed, call):
    """Which inputs could be others without a change in any answer, though they should change it?
    call: inputs -> arrays, or None where it fails."""
    cases = [case for part in exercise.parts for case in exercise.cases(part, seed)]
    names = list(inspect.signature(exercise.oracle).parameters)[: len(cases[0])]
    return [name for at, name in enumerate(names) if unmoved(exercise, cases, at, call)]


def unmoved(exercise, cases, at, call):
    """Do answers stay where they are when input number `at` is another one?"""
    matters = 0
    for inputs in cases:
        for value in others(inputs[at]):
            changed = [*inputs[:at], value, *inputs[at + 1 :]]
            try:
                with unwarned():
                    before, after = (arrays(exercise.oracle(*x)) for x in (inputs, changed))
            except Exception:
                continue  # no such input is allowed
            got, again = call(inputs), call(changed)
            if not got or not again or not alike(got, again):
                return False
            matters += not alike(before, after)
    return matters > 0


def arrays(value):
    return [np.asarray(x) for x in (value if isinstance(value, tuple) else (value,))]


def alike(a, b):
    return len(a) == len(b) and all(
        x.shape == y.shape and np.array_equal(x, y, equal_nan=x.dtype.kind == "f")
        for x, y in zip(a, b, strict=True)
    )
