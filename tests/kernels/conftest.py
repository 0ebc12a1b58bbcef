"""Where do kernels run in tests? In Triton's interpreter, in memory that starts as NaN.

The interpreter is chosen by an environment variable before Triton is first imported. All memory
that a kernel is given to fill starts as NaN, so that what it forgets to write is seen."""

import os
import sys

import pytest
import torch

INHERITED = os.environ.get("TRITON_INTERPRET")
if "triton" not in sys.modules and sys.platform == "linux":
    os.environ["TRITON_INTERPRET"] = "1"
    from minimal.kernels import backward, decode, fused, route  # noqa: F401 all files with kernels
    from minimal.lab.speed import gpu  # noqa: F401

    if route.HAS_TRITON:  # the first launch imports the rest of it
        order = fused.sort_ids(torch.zeros(1, 1).int(), 1)
        backward.run_sum_by_token(torch.ones(1, 1, 1, 32), order, torch.ones(1, 1, 32))
    if INHERITED is None:  # other tests, and the processes that they start, go on without it
        del os.environ["TRITON_INTERPRET"]


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
