"""Where do kernels run in tests? In Triton's interpreter, in memory that starts as NaN.

tests/interpreter.py chooses the interpreter, before Triton is first imported. All memory that a
kernel is given to fill starts as NaN, so that what it forgets to write is seen."""

import sys

import pytest
import torch

from tests import interpreter as chosen  # noqa: F401 before anything imports Triton


@pytest.fixture
def interpreter():
    """For tests that launch kernels."""
    from minimal.kernels import route

    if not route.HAS_TRITON:
        pytest.skip("Triton is not installed: its kernels cannot run here")
    assert route.kernels_run("cpu"), "Triton was imported before TRITON_INTERPRET=1 was set"


class Poisoned:
    """torch as the kernels' modules see it: memory that they ask for is full of NaN."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def empty(self, *sizes, **options):
        x = torch.empty(*sizes, **options)
        return x.fill_(float("nan")) if x.is_floating_point() else x

    def empty_like(self, *sizes, **options):
        x = torch.empty_like(*sizes, **options)
        return x.fill_(float("nan")) if x.is_floating_point() else x


@pytest.fixture(autouse=True)
def memory_starts_as_nan(monkeypatch):
    rooms = "gather fused forward backward decode histogram reference".split()
    for name in rooms:
        module = sys.modules.get(f"minimal.kernels.{name}")
        if module:
            monkeypatch.setattr(module, "torch", Poisoned())
