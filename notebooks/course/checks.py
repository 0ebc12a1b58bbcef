"""How many of a notebook's claims hold? Those of a cell of asserts that ran to its last line.

from course.checks import all_hold

assert moved["mask"] == 0, "a mask hides the future"
all_hold()                                              # 1 check holds
"""

import ast


def asserts(source, names=None):
    """How many asserts a cell that runs to its end has met. One in a loop counts once; one in a
    branch or a function counts not at all, or with the cell's `names` where its branch was
    taken."""
    return met(ast.parse(source).body, names)


def met(lines, names):
    found = sum(isinstance(line, ast.Assert) for line in lines)
    for line in lines:
        if isinstance(line, ast.For):
            found += met(line.body, None)  # what its names were in each round is not known
        if isinstance(line, ast.With):
            found += met(line.body, names)
        if isinstance(line, ast.If) and names is not None:
            found += met(branch(line, names), names)
    return found


def branch(line, names):
    """The lines of an `if` that were run."""
    test = compile(ast.Expression(line.test), "<check>", "eval")
    return line.body if eval(test, names) else line.orelse


def all_hold():
    """The last line of a cell of checks: it is reached only if all of them hold, and says so."""
    from IPython import get_ipython

    if not __debug__:
        raise RuntimeError(
            "no assert is checked here: unset PYTHONOPTIMIZE and start Python without -O"
        )
    names = get_ipython().user_ns
    many = asserts(names["In"][-1], names)
    print(f"{many} checks hold" if many != 1 else "1 check holds")
