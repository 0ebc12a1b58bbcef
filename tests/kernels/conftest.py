"""Kernels run in Triton's interpreter here, chosen by an environment variable before Triton is first imported; and all
memory that a kernel is given to fill starts as NaN, so that what it forgets to write is seen."""

import os
import sys

import pytest
import torch

INHERITED = os.environ.get("TRITON_INTERPRET")
if "triton" not in sys.modules and sys.platform == "linux":
    os.environ["TRITON_INTERPRET"] = "1"
    from minimal.kernels import (
        backward,  # noqa: F401 the files with kernels, and with them Triton
        gather,
    )

    if gather.HAS_TRITON:  # the first launch imports the rest of it
        backward.run_sum_by_token(
            torch.ones(1, 1, 1, 32),
            gather.sort_ids(torch.zeros(1, 1).int(), 1),
            torch.ones(1, 1, 32),
        )
    if INHERITED is None:  # other tests, and the processes that they start, go on without it
        del os.environ["TRITON_INTERPRET"]


@pytest.fixture
def interpreter():
    """For tests that launch kernels."""
    from minimal.kernels import gather

    if not gather.HAS_TRITON:
        pytest.skip("Triton is not installed: its kernels cannot run here")
    assert gather.kernels_run("cpu"), "Triton was imported before TRITON_INTERPRET=1 was set"


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
    for name in ("gather", "forward", "backward", "decode", "histogram", "reference"):
        module = sys.modules.get(f"minimal.kernels.{name}")
        if module:
            monkeypatch.setattr(module, "torch", Poisoned())
