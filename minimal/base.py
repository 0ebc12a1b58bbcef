"""What does every part stand on? Norm, a linear map that casts, rotary positions, the device, the seed."""

import ctypes
import hashlib
import sys

import torch
import torch.nn.functional as F
from torch import nn


def norm(x, eps=None):
    """RMS-norm without weights; applying it twice changes nothing."""
    return F.rms_norm(x, (x.shape[-1],), eps=eps)


class Linear(nn.Module):
    """y = x W^T (+ b), with W cast to x's type: master weights stay fp32 while activations may be bf16.

    `key` names the matrix's job ("3.v"), `kind` its row in the style's init table. Equal keys get equal random
    numbers in every plan, so two plans with one seed differ in their value path and in nothing else.
    """

    def __init__(self, key, n_in, n_out, kind="matrix", bias=False):
        super().__init__()
        self.key, self.kind = key, kind
        self.weight = nn.Parameter(torch.empty(n_out, n_in))
        self.bias = nn.Parameter(torch.empty(n_out)) if bias else None

    def forward(self, x):
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), bias)


class Norm(nn.Module):
    """A norm with weights: LayerNorm (gpt2, bert) or RMS-norm (llama)."""

    def __init__(self, width, kind, eps):
        super().__init__()
        self.kind, self.eps = kind, eps
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = nn.Parameter(torch.empty(width)) if kind == "layer" else None

    def forward(self, x):
        weight = self.weight.to(x.dtype)
        if self.kind == "rms":
            return F.rms_norm(x, weight.shape, weight, self.eps)
        return F.layer_norm(x, weight.shape, weight, self.bias.to(x.dtype), self.eps)


def rope_tables(positions, width, base, half=False):
    """cos and sin for `positions`, each (T, 1, width // 2). `half`: modded-nanogpt turns only the first half of the
    features, at (1/base)^linspace(0, 1)."""
    if half:
        turning = base ** -torch.linspace(0, 1, width // 4, device=positions.device)
        rate = torch.cat([turning, torch.zeros(width // 2 - width // 4, device=positions.device)])
    else:
        rate = base ** -(torch.arange(0, width, 2, device=positions.device) / width)
    angle = positions[:, None].float() * rate  # (T, width/2)
    return angle.cos()[:, None], angle.sin()[:, None]


def rotate(x, cos, sin):
    """Rotary positions, half-split layout, turning by -angle: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin."""
    x1, x2 = x.chunk(2, dim=-1)  # (B, T, H, D/2) each
    return torch.cat([x1 * cos + x2 * sin, x2 * cos - x1 * sin], dim=-1)


def generator(seed, key):
    """A random stream for (seed, key): the same key gets the same numbers whatever else the model holds."""
    digest = hashlib.sha256(f"{seed}/{key}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def device(name="auto"):
    """The accelerator if there is one. "mps" is taken only when asked for: fp32 there is not bit-stable."""
    if name != "auto":
        kind = name.partition(":")[0]
        present = dict(cpu=lambda: True, cuda=torch.cuda.is_available, mps=torch.backends.mps.is_available)
        if kind not in present:
            raise ValueError(f"there is no device {name!r}: choose auto, cpu, cuda or mps")
        if not present[kind]():
            raise ValueError(f"there is no {kind} device here: choose auto or cpu; `make doctor` says more")
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def compute_dtype(where):
    """bf16 on GPUs from Ampere on; fp32 elsewhere (without AMX, bf16 on a CPU is about three times slower)."""
    where = torch.device(where)
    if where.type == "cuda" and torch.cuda.get_device_capability(where)[0] >= 8:
        return torch.bfloat16
    return torch.float32


def keep_memory():
    """Ask the C library to keep the blocks of one training step for the next. By default it returns every large one to
    the system, which clears it, page by page, before it comes back: a fifth of a CPU step. Only glibc has the dials."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    if hasattr(libc, "mallopt"):
        libc.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD: from where a block comes straight from the system
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD: how much may lie idle
