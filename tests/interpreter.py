"""Import this before Triton: its first import decides whether its language is interpreted.

Whichever folder of tests comes first, kernels or homework, kernels run in the interpreter.
"""

import inspect
import os
import sys

import torch


def remember_the_language():
    """Before each function that it calls, Triton's interpreter looks through all of its language
    for what it must replace: a quarter of a kernel's seconds. Here it looks once."""
    from triton.language import core
    from triton.runtime import interpreter

    found = {}

    def replace(package, builder, scope):
        if package not in found:
            members = inspect.getmembers(package)
            found[package] = [name for name, member in members if core.is_builtin(member)]
        for name in found[package]:
            member = getattr(package, name)
            if core.is_builtin(member):  # not yet replaced
                interpreter._patch_attr(package, name, member, builder, scope)

    known = getattr(interpreter, "_patch_builtin", replace)
    if list(inspect.signature(known).parameters) == ["pkg", "builder", "scope"]:
        interpreter._patch_builtin = replace


INHERITED = os.environ.get("TRITON_INTERPRET")
if "triton" not in sys.modules and sys.platform == "linux":
    os.environ["TRITON_INTERPRET"] = "1"
    from evidence.research.bench import gpu  # noqa: F401
    from minimal.kernels import backward, decode, fused, route  # noqa: F401 all files with kernels

    if route.HAS_TRITON:  # the first launch imports the rest of it
        remember_the_language()
        order = fused.sort_ids(torch.zeros(1, 1).int(), 1)
        backward.run_sum_by_token(torch.ones(1, 1, 1, 32), order, torch.ones(1, 1, 32))
    if INHERITED is None:  # other tests, and the processes that they start, go on without it
        del os.environ["TRITON_INTERPRET"]
