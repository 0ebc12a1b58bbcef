"""A comparison of your own plans: matched, trained, paired by seed, written down, drawn.

from minimal.compare import compare

compare([Plan(place(value=Mine), name="mine")], size="nano", budget=200_000, seeds=range(5))
"""

import importlib

__all__ = ["compare"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"minimal.compare has {', '.join(__all__)} and its modules")
    return getattr(importlib.import_module("minimal.compare.comparison"), name)
