"""Do an answer's arrays agree with those that were wanted, and if not, in which word?"""

import contextlib
import functools
import warnings

import numpy as np

TOLERANCE = {"float64": 1e-6, "float32": 2e-4, "float16": 1e-2}


@contextlib.contextmanager
def unwarned():
    """What is calculated here may divide by zero, and take a mean of nothing, in silence."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def floats(value):
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


# numpy takes 7 microseconds to spell a dtype, and a diagnosis asks 100,000 times
name_of = functools.cache(str)


def dtype_of(inputs):
    """The dtype in which a case is asked; None where it holds no array of real numbers."""
    return next((name_of(x.dtype) for x in inputs if floats(x)), None)


def spread(answer, count):
    """A list of numbers, or a stacked tensor, where several results were asked for."""
    one = len(answer) == 1 != count and answer[0].ndim and len(answer[0]) == count
    return list(map(np.asarray, answer[0])) if one else answer


def stacked(answer, expected):
    """Several rows, or numbers, where one tensor of so many was asked for."""
    (wanted,) = expected
    fits = wanted.ndim and len(answer) == len(wanted) > 1
    if not fits or any(part.shape != wanted.shape[1:] for part in answer):
        return answer
    return [np.stack(answer)]


def compare(answer, expected, dtype, hidden=True, like=None, near=None):
    """'' if the arrays agree: structure, shape, dtype, finiteness first (closeness alone lets
    shapes broadcast).

    A single number may come as Python's, in float64, after a calculation in the inputs' dtype
    (`like`): the looser counts. No number needs to be nearer than this dtype is (`near`).
    """
    answer = spread(answer, len(expected))
    numbers = len(answer) > 1 and all(part.ndim == 0 for part in answer)
    answer = stacked(answer, expected) if len(expected) == 1 else answer
    if len(answer) != len(expected):
        many = "one result" if len(expected) == 1 else f"{len(expected)} results"
        row = len(answer) == 1 and answer[0].ndim == 1  # of numbers
        got = answer[0] if row and not any(part.ndim for part in expected) else answer
        return f"wanted {many}, got {len(got)}"
    for i, (got, wanted) in enumerate(zip(answer, expected, strict=True)):
        which = f"result {i + 1}: " if len(expected) > 1 else ""
        if got.shape != wanted.shape:
            return f"{which}wanted shape {wanted.shape}, got {shape_of(got)}"
        kind = {"i": "iu", "u": "iu"}.get(wanted.dtype.kind, wanted.dtype.kind)
        loose = numbers or got.ndim == 0  # Python's numbers
        whole = kind == "f" and got.dtype.kind in "iub" and np.array_equal(got, wanted)
        if whole:  # 2 for 2.0
            continue
        if wanted.ndim and dtype and kind == "f" and name_of(got.dtype) != dtype and not loose:
            fix = ".to(x.dtype), or dtype=x.dtype where a tensor is made, keeps it"
            return f"{which}wanted dtype {dtype} like the inputs, got {got.dtype}: {fix}"
        if (wanted.ndim or kind == "b") and kind != "f" and got.dtype.kind not in kind:
            return f"{which}wanted dtype {wanted.dtype}, got {got.dtype}"
        if kind == "f" and dtype and not np.isfinite(got).all():
            return f"{which}some of its numbers are not finite"
        far = too_far(got, wanted, [name_of(got.dtype), near] + [like or dtype] * loose)
        if not far.any() and dtype == "float64" and rounded(got, wanted):
            return f"{which}asked in float64, you calculated in float32: keep the inputs' dtype"
        if far.any():
            return which + where_far(got, wanted, far, hidden)
    return ""


def where_far(got, wanted, far, hidden):
    """How many numbers are wrong, and unless they are hidden the first of them."""
    told = ""
    if not hidden:
        place = tuple(int(x) for x in np.argwhere(far)[0])
        told = both(wanted[place], got.astype("f8")[place])
    if not wanted.ndim:
        return f"wrong number{told and ': '}{told}"
    told = told and f", first at {list(place)}: {told}"
    return f"right shape, wrong numbers ({int(far.sum())} of {far.size}{told})"


def too_far(got, wanted, kinds):
    """Which numbers are not those that were wanted, as near as the loosest of these dtypes is."""
    exact = got.astype("f8")
    real = wanted.dtype.kind == "f"
    near = max(TOLERANCE.get(name, 0.0) for name in kinds) if real else 0.0
    with np.errstate(all="ignore"):
        same = (exact == wanted) | (np.isnan(exact) & np.isnan(wanted))
        close = np.abs(exact - wanted) <= near * (1 + np.abs(wanted))
        return ~same & ~(close & np.isfinite(wanted))  # inf is near to nothing else


def rounded(got, wanted):
    """Whether every number went through float32, though what was wanted has more digits."""
    with np.errstate(all="ignore"):
        whole = (got == got.astype("f4")) | np.isnan(got)
        more = np.abs(wanted - wanted.astype("f4")) > 1e-10 * np.abs(wanted)
    return bool(got.dtype == "f8" and got.ndim and whole.all() and more.any())


def shape_of(array):
    """A shape in a sentence; not one that nobody returns by mistake: it could be a message."""
    usual = array.ndim <= 8 and max(array.shape, default=0) < 10_000
    return array.shape if usual else f"{array.ndim} dimensions of another size"


def both(wanted, got):
    """Two numbers in words: whole ones in full with their difference, others with the digits that
    tell them apart."""
    if wanted.dtype.kind != "f" and got == np.round(got):
        if wanted.dtype.kind == "b":
            return f"wanted {wanted}, got {bool(got)}"
        return f"wanted {wanted}, got {int(got)} (difference {int(got) - int(wanted):+d})"
    digits = next((n for n in range(6, 18) if f"{wanted:.{n}g}" != f"{got:.{n}g}"), 6)
    return f"wanted {wanted:.{digits}g}, got {got:.{digits}g}"
