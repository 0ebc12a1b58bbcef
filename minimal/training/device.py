"""Where does training run, and how fast could it be? Device, number type, matmul rate."""

import ctypes
import os
import sys
import time

import torch


def device(name="auto"):
    """The accelerator if there is one. "mps" only when asked for: fp32 there is not bit-stable."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind = name.partition(":")[0]
    present = dict(
        cpu=lambda: True, cuda=torch.cuda.is_available, mps=torch.backends.mps.is_available
    )
    if kind not in present:
        raise ValueError(f"there is no device {name!r}: choose auto, cpu, cuda or mps")
    if not present[kind]():
        raise ValueError(f"there is no {kind} device here: choose auto or cpu")
    try:
        return torch.device(name)
    except RuntimeError:
        raise ValueError(f"device {name!r}: wanted {kind} or {kind}:NUMBER") from None


def compute_dtype(where):
    """bf16 on GPUs from Ampere on, else fp32: on a CPU without AMX bf16 is three times slower.

    MINIMAL_COMPUTE=float32 asks for fp32 there, too: a run that is to be compared with a CPU's."""
    where, asked = torch.device(where), os.environ.get("MINIMAL_COMPUTE", "")
    if asked not in ("", "float32"):
        raise ValueError(f"MINIMAL_COMPUTE: wanted float32, or nothing at all, got {asked!r}")
    if where.type == "cuda" and torch.cuda.get_device_capability(where)[0] >= 8 and not asked:
        return torch.bfloat16
    return torch.float32


def keep_memory():
    """Ask the C library to keep the blocks of one training step for the next.

    By default it returns every large one to the system, which clears it page by page before we get
    it again: a fifth of a CPU step. Only glibc has the dials.
    """
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "mallopt"):
        libc.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD: larger blocks are the system's own
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: how much may lie idle


def clock(work, repeats=10, warm=3, where="cpu", now=time.perf_counter):
    """Seconds of each of some warm calls, by the clock `now`."""
    synchronize = torch.cuda.synchronize if torch.device(where).type == "cuda" else lambda: None
    for _ in range(warm):
        work()
    seconds = []
    for _ in range(repeats):
        synchronize()
        start = now()
        work()
        synchronize()
        seconds.append(now() - start)
    return seconds


def matmul_rate(where="cpu", n=1024, now=time.perf_counter):
    """The best rate of an n^3 product, in FLOP/s: a training step of nothing but products.

    fp32 on a CPU; bf16 and 8192^3 on a GPU. The numbers are random, because a GPU multiplies
    constants faster; they come from a generator of their own, because a run's must not move.
    """
    kind = torch.float32
    if torch.device(where).type == "cuda":
        kind, n = torch.bfloat16, 8192
    chance = torch.Generator(where).manual_seed(0)
    a, b = torch.randn(2, n, n, device=where, dtype=kind, generator=chance)
    return 2 * n**3 / min(clock(lambda: a @ b, where=where, now=now))
