"""Is a class of one's own still the class that was trained? Its code as text, equal for equal code.

A kept run, and a run's folder, stand for one code. Functions and numbers outside of a class are not
looked at, though its methods may use them.
"""

import inspect
import sys

import torch

INSIDE = ("fget", "fset", "fdel", "func", "__wrapped__")  # of a property, of what is decorated


def foreign_code(model):
    """The code of every part that is not of this package, and of what it inherits: the run of a
    class of your own is trained anew when you have changed the class."""
    kinds = {kind for part in model.modules() for kind in type(part).__mro__}
    return sorted(written(kind) for kind in kinds if is_foreign(kind))


def is_foreign(kind):
    """Is this class somebody's own? The standard library has no parts of models: a part is its
    owner's even if the file is called code.py."""
    home = kind.__module__.split(".")[0]
    if home in ("minimal", "torch"):
        return False
    return issubclass(kind, torch.nn.Module) or home not in sys.stdlib_module_names


def written(kind):
    """The source of a class; where it has none, as in a cell of a notebook, what it consists of."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return "\n".join([kind.__qualname__, *contents_of(kind)])


def contents_of(kind):
    """The functions of a class, and its numbers and texts; but not what Python itself notes there,
    such as __module__."""
    for name, part in vars(kind).items():
        functions = functions_in(part)
        for function in functions:
            yield f"{name}: {code_of(function)}"
        if not functions and not name.startswith("__"):
            yield f"{name} = {in_words(part)}"


def functions_in(part):
    """A function, or those that a property, a class method or a decorator holds."""
    inside = [getattr(part, name, None) for name in INSIDE]
    found = [function for one in inside if one is not None for function in functions_in(one)]
    return found or [part] * inspect.isfunction(part)


def code_of(function):
    """A function's source, or else its instructions; and its defaults, of which a source may say
    the names alone."""
    defaults = in_words([function.__defaults__, function.__kwdefaults__])
    try:
        return f"{inspect.getsource(function)} {defaults}"
    except (OSError, TypeError):
        return f"{instructions(function.__code__)} {defaults}"


def instructions(code):
    """What a function does, and its constants, of which a function inside it is one."""
    constants = [instructions(x) if inspect.iscode(x) else in_words(x) for x in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {constants}"


def in_words(value):
    """A value as a text that is equal in every process: without addresses, and sets in order."""
    if isinstance(value, (set, frozenset)):
        return f"set of {sorted(map(in_words, value))}"
    if isinstance(value, dict):
        return f"dict of {in_words([*value.items()])}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(map(in_words, value))})"
    said = repr(value)
    return type(value).__name__ if " at 0x" in said else said
