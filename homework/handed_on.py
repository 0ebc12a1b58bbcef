"""What does a notebook go on with? A right answer, in the form that its next cells need.

The judge takes numbers as tensors, as NumPy's arrays and as lists. The cells behind an exercise
index, move and differentiate what the course's own answer would give them. So an answer that is
called right is handed on as a function that gives the same form; and where a notebook takes a
gradient through it, the gradient has to be right, too.
"""

import functools
import inspect

import torch

from homework import marking, runner
from homework.in_notebooks import models

# Exercises through whose answers their notebook takes a gradient.
LEARNS = {
    "nb01": ("attention", "turn", "add_tile"),
    "nb02": ("norm", "mlp", "forward", "value"),
    "nb04": ("resformer_values", "two_layer_attention", "neutreno", "learned_mix"),
    "nb05": ("value", "shared_heads"),
    "nb06": ("value", "with_table", "enter_layer", "gated_value"),
    "nb07": ("by_pairs", "two_streams", "folded"),
    "nb08": ("with_bypass",),
    "nb09": ("row_8", "four_ways"),
    "nb10": ("bank_layer",),
    "nb13": ("upstream", "exclusive"),
}
NUMBERS_LEARN = ("with_table", "enter_layer")  # of these exercises plain numbers are learned, too
RIGHT = "the numbers are right, but "
STAY = (
    "stay with tensors from what you are given to what you return (lists, NumPy, .item(), "
    ".detach() and torch.no_grad() cut the way back)"
)
CUT = f"no gradient comes back through your answer, so nothing could learn through it: {STAY}"
UNREACHED = f"no gradient comes back to {{}}, which then could not learn: {STAY}"
ANOTHER = (
    "the gradient that comes back through your answer is not that of its numbers: norm and mask "
    f"nothing that came normed or masked, and {STAY}"
)
LEARNED_NUMBER = (
    "this notebook learns the numbers among your inputs, so there they are tensors, and your "
    "answer takes plain ones alone (alpha=x, float(x), torch.tensor([x, …])): multiply by them"
)
ENDLESS = (
    "the gradient that comes back through your answer is not finite: that of a root is infinite at "
    "0 (eps stands below the root), and NaN behind 0 / 0 or 0 * inf stays NaN under a mask"
)
IN_PLACE = (
    "no gradient can come back through your answer, so nothing could learn through it: a line "
    "changes in place (+=, x[…] = …, x.add_) what the way back needs; x = x + … makes a new tensor"
)


def ready(unit, exercise, function, own):
    """(the function that a notebook goes on with, "") for a right answer, or (None, why not).

    `own` is the course's answer, whose form the notebook is written for."""
    if hasattr(exercise, "launch"):
        return function, ""  # a kernel stores what it stores
    asked = [inputs for part in exercise.parts for inputs in exercise.cases(part, marking.PUBLIC)]
    if exercise.name in LEARNS.get(unit, ()):
        for inputs in asked:
            why = no_way_back(function, own, inputs)
            if not why and exercise.name in NUMBERS_LEARN:
                why = no_way_back(function, own, inputs, numbers=True) and LEARNED_NUMBER
            if why:
                return None, RIGHT + why
    wanted = [own(*copies(inputs)) for inputs in asked]
    given = [function(*copies(inputs)) for inputs in asked]
    if all(map(fits, given, wanted)):
        return function, ""
    return in_the_form_of(wanted[0], function), ""


def copies(inputs):
    """A case's inputs as a notebook would give them: arrays as tensors."""
    return [tensor(x) for x in inputs]


def tensor(value):
    """A case's array as a tensor in its own layout, a list as a list of its own; numbers and names
    as they are."""
    value = runner.copied(value)
    if not isinstance(value, marking.np.ndarray):
        return value
    return torch.from_numpy(value) if value.ndim else value.item()


# ---- forms ---------------------------------------------------------------------------------------


def fits(given, wanted):
    """Has what was returned the form of what the course returns?"""
    if torch.is_tensor(wanted):
        both = torch.is_tensor(given) and given.is_floating_point() == wanted.is_floating_point()
        return both and (wanted.is_floating_point() or given.dtype == wanted.dtype)
    if isinstance(wanted, (list, tuple)):
        return type(given) is type(wanted) and all(map(fits, given, wanted))
    if isinstance(wanted, (bool, int, float)):
        return isinstance(given, (bool, int, float))
    return True


def in_the_form_of(wanted, function):
    """The same function, whose answers have this form."""

    @functools.wraps(function)
    def handed(*inputs, **more):
        return formed(function(*inputs, **more), wanted, tensors([*inputs, *more.values()]))

    return handed


def tensors(inputs):
    """The tensors among inputs, and the weights of a model."""
    given = [x for x in inputs if isinstance(x, torch.nn.Module)]
    return [x for x in inputs if torch.is_tensor(x)] + [w for x in given for w in x.parameters()]


def formed(given, wanted, inputs):
    """What was returned in the form that is wanted: real numbers of the inputs' type, and where
    the inputs are."""
    if fits(given, wanted):
        return given
    if torch.is_tensor(wanted):
        given = stacked(given)
        real = [x.dtype for x in inputs if x.is_floating_point()] + [wanted.dtype]
        kind = real[0] if wanted.is_floating_point() else wanted.dtype
        where = inputs[0].device if inputs else None
        if torch.is_tensor(given):
            return given.to(where, kind)
        return torch.tensor(numbers(given), dtype=kind, device=where)  # with all their digits
    if isinstance(wanted, (list, tuple)):
        plain = all(isinstance(x, (bool, int, float)) for x in wanted)
        items = numbers(given) if plain else list(given)
        every = wanted if len(wanted) == len(items) else wanted[:1] * len(items)
        return type(wanted)(formed(*pair, inputs) for pair in zip(items, every))
    if isinstance(wanted, (bool, int, float)) and hasattr(given, "item"):
        return given.item()
    return given


def stacked(given):
    """Tensors in lists, as deep as they lie, as one tensor, whose gradient finds its way back."""
    rows = list(map(stacked, given)) if isinstance(given, (list, tuple)) else []
    return torch.stack(rows) if rows and all(map(torch.is_tensor, rows)) else given


def numbers(given):
    """Python's numbers, in lists as deep as what was given."""
    if hasattr(given, "tolist"):
        return given.tolist()
    return [numbers(x) for x in given] if hasattr(given, "__iter__") else given


# ---- gradients -----------------------------------------------------------------------------------


def no_way_back(function, own, inputs, numbers=False):
    """'' if gradients come back through an answer as they do through the course's own, else why
    not."""
    wanted = gradients(own, inputs, numbers)
    if wanted is None:
        return ""
    one = torch.is_tensor(own(*copies(inputs)))
    try:
        given = gradients((lambda *x: stacked(function(*x))) if one else function, inputs, numbers)
    except Exception as error:
        in_place = "inplace" in str(error) or "in-place" in str(error)
        return IN_PLACE if in_place else f"{CUT} ({type(error).__name__}: {error})"
    if given is None:
        return CUT
    if not all(x.isfinite().all() for x in given):
        return ENDLESS
    missed = [not x.any() and (y.abs() > 1e-3).any() for x, y in zip(given, wanted, strict=True)]
    if any(missed):
        named = zip(owners(own, inputs, numbers), missed, strict=True)
        return UNREACHED.format(" and ".join(sorted({name for name, out in named if out})))
    given, wanted = (torch.cat([x.flatten() for x in each]) for each in (given, wanted))
    return ANOTHER if (given - wanted).abs().max() > 1e-2 * wanted.abs().max() else ""


def owners(own, inputs, numbers):
    """Which input each gradient belongs to, in words."""
    found = []
    for name, x in zip(inspect.signature(own).parameters, copies(inputs)):
        given, leaves = learning(x, numbers)
        own_name = f"`{name}`" if torch.is_tensor(given) else f"a weight of `{name}`"
        found += [own_name] * len(leaves)
    return found


def learning(x, numbers):
    """An input, and what of it learns: itself, or the weights of a model."""
    leaves = []
    x = torch.tensor(x) if numbers and isinstance(x, float) and x else x  # 0: a term left out
    if torch.is_tensor(x) and x.is_floating_point():
        leaves.append(x.requires_grad_())
    return models.learning(x, leaves), leaves


def gradients(function, inputs, numbers=False):
    """The gradients of all real inputs, and of the weights of a model among them, of what a
    function returns; None where it returns nothing that has one. With `numbers`, those of plain
    real numbers, too."""
    pairs = [learning(x, numbers) for x in copies(inputs)]
    leaves = [leaf for _, learned in pairs for leaf in learned]
    answer = function(*(given for given, _ in pairs))
    answer = answer if isinstance(answer, (list, tuple)) else [answer]
    learned = [y for y in answer if torch.is_tensor(y) and y.requires_grad]
    if not learned:
        return None
    draw = torch.Generator().manual_seed(0)
    total = sum((y * torch.randn(y.shape, generator=draw).to(y)).sum() for y in learned)
    found = torch.autograd.grad(total, leaves, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(leaves, found)]
