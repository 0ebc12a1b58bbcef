"""Is a class of one's own still the class that was trained? Its code as text, equal for equal code.

A kept run, and a run's folder, stand for one code. Of what stands outside of a class and is used by
its methods, functions, classes and fixed values of the same file or notebook count; those of other
files do not, nor do lists and tensors, which may change while a model runs.
"""

import dis
import inspect
import sys
import types

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
    """A class, and what its functions use of the file or notebook in which it stands."""
    return "\n".join([source_of(kind), *used_by(kind)])


def source_of(kind):
    """The source of a class, which has none in a cell of a notebook, and what it consists of: a
    source may say the names of its numbers alone."""
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        source = kind.__qualname__
    return "\n".join([source, *contents_of(kind)])


def used_by(kind):
    """What the functions of a class name outside of it, what these name in turn, and so on."""
    home, found, waiting = kind.__module__, {kind.__qualname__: ""}, functions_in_class(kind)
    while waiting:
        for name, value in named_in(waiting.pop()):
            if name in found:
                continue
            if is_fixed(value):
                found[name] = in_words(value)
            elif getattr(value, "__module__", None) == home:
                functions = (
                    functions_in_class(value) if inspect.isclass(value) else functions_in(value)
                )
                found[name] = "; ".join(map(code_of, functions))
                waiting += functions
    return [f"{name}: {text}" for name, text in sorted(found.items()) if text]


def functions_in_class(kind):
    every = [function for part in vars(kind).values() for function in functions_in(part)]
    return [function for function in every if function.__module__ == kind.__module__]


def named_in(function):
    """(name, value) of all that stands outside of a function and is named in it, or in one that it
    holds."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        if cell != types.CellType():  # an empty one is given its value later
            yield name, cell.cell_contents
    held = function.__globals__
    yield from (
        (name, held[name]) for name in sorted(globals_in(function.__code__)) if name in held
    )


def globals_in(code):
    named = {one.argval for one in dis.get_instructions(code) if one.opname == "LOAD_GLOBAL"}
    return named.union(*(globals_in(inner) for inner in code.co_consts if inspect.iscode(inner)))


def is_fixed(value):
    """A number, a text, or several of them that cannot change."""
    if isinstance(value, tuple):
        return all(map(is_fixed, value))
    return value is None or isinstance(value, (int, float, str))


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
