"""Launch a kernel of a notebook: watched on tiles of PyTorch, then in Triton, where it is."""

import importlib.util
import os

import numpy as np
import torch

from course import interpreter
from minimal.kernels import tiles

ABSENT = importlib.util.find_spec("triton") is None


def prepare(profile, kernels="auto"):
    """(triton, tl, a Launcher) for a notebook: Triton compiled with the profile gpu, where a GPU
    is, and interpreted elsewhere; tiles of PyTorch under the same names where Triton is absent."""
    on_gpu = profile == "gpu" and torch.cuda.is_available()
    os.environ["TRITON_INTERPRET"] = "0" if on_gpu else "1"  # read when Triton is imported
    try:
        import triton
        import triton.language as tl
    except ImportError:
        from minimal.kernels.tiles import tl, triton
    else:
        if not on_gpu:
            interpreter.quicker()
    return triton, tl, Launcher(kernels, "cuda" if on_gpu else "cpu")


class Launcher:
    """launch(kernel, grid, *arguments, **sizes) -> the trace; the arguments are filled as told.

    `gaps` keeps by kernel how far Triton's numbers were from those of the tiles. With `kernels`
    "torch" Triton is not asked; `where` is the device on which it runs."""

    def __init__(self, kernels="auto", where="cpu"):
        self.ways = ["tiles"] if ABSENT or kernels == "torch" else ["tiles", "triton"]
        self.where, self.gaps = where, {}

    def __str__(self):
        with_triton = {"cpu": "and in Triton's interpreter", "cuda": "and, compiled, on the GPU"}
        return "kernels run on tiles of PyTorch " + (
            with_triton[self.where] if "triton" in self.ways else "only: Triton is not here"
        )

    def __call__(self, kernel, grid, *arguments, order=None, **sizes):
        watched = [x.clone() if torch.is_tensor(x) else x for x in arguments]
        trace = tiles.run(kernel, grid, *watched, order=order, **sizes)
        if "triton" in self.ways and order is None:
            there = [x.to(self.where) if torch.is_tensor(x) else x for x in arguments]
            with np.errstate(all="ignore"):  # 0 / 0 is the learner's lesson, not numpy's
                kernel[grid](*there, **sizes)
            gap = max(tensors_apart(a, b) for a, b in zip(watched, there, strict=True))
            self.gaps[kernel.__name__] = max(gap, self.gaps.get(kernel.__name__, 0.0))
            watched = there
        for given, found in zip(arguments, watched, strict=True):
            if torch.is_tensor(given):
                given.copy_(found)
        return trace


def tensors_apart(a, b):
    """The largest difference of two tensors; the same infinity or NaN in both counts nothing."""
    if not torch.is_tensor(a) or not a.is_floating_point() or a is b:
        return 0.0
    difference = (a - b.to(a.device)).abs()
    same = (a == b.to(a.device)) | (a.isnan() & b.to(a.device).isnan())
    return difference.masked_fill(same, 0.0).nan_to_num(torch.inf).max().item()


def empty(*shape):
    """A tensor for a kernel to fill: what it forgets stays NaN."""
    return torch.full(shape, float("nan"))
