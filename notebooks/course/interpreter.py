"""Triton's interpreter, in half of its time: what it does again and again, it does once.

Call quicker() after the first import of Triton and before the first kernel. A Triton whose inside
looks otherwise is left as it is.
"""

import dataclasses
import inspect


def quicker():
    remember_the_language()
    believe_whole_numbers()


def remember_the_language():
    """Before each function that it calls, the interpreter looks through all of its language for
    what it must replace: a quarter of a kernel's seconds. Here it looks once."""
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


def believe_whole_numbers():
    """Each sum and product of whole numbers it makes again in 64 bits, to see whether it has
    overflowed: a third of what is left. On a GPU nothing looks. What overflows lands in another
    place, so whoever compares what a kernel stored sees it all the same."""
    from triton.runtime import interpreter

    builder = interpreter.interpreter_builder
    if getattr(builder.options, "sanitize_overflow", False):
        builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)
