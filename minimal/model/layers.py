"""What is every block made of? Norms, linear maps that cast, rotary positions, embeddings, MLPs, coefficients."""

from functools import partial as part  # noqa: F401, the plans' word for it

import torch
import torch.nn.functional as F
from torch import nn


class Coefficient(nn.Module):
    """A learned scalar (or a short vector) with a role, which decides its rate. All are recorded in training."""

    def __init__(self, role, start, shape=()):
        super().__init__()
        self.role, self.start = role, start
        self.value = nn.Parameter(torch.empty(shape))

    def forward(self):
        return self.value


def coefficient(role, start, shape=()):
    """A number that is learned if it has a role, and a plain number otherwise; one that is made is kept."""
    if isinstance(start, Coefficient):
        return start
    return Coefficient(role, start, shape) if role else (lambda: start)


class Embedding(nn.Module):
    """Rows by id. `shape` is one row's shape: (C,) for tokens, (G, D) for a table of values."""

    def __init__(self, key, count, shape, role, start):
        super().__init__()
        self.key, self.role, self.start = key, role, start
        self.weight = nn.Parameter(torch.empty(count, *shape))

    def forward(self, ids):
        return F.embedding(ids, self.weight.flatten(1)).unflatten(-1, self.weight.shape[1:])

    def rows(self):
        return self.weight


class MLP(nn.Module):
    """relu(W1 h)^2 W2 (nanochat), SwiGLU (llama), or GELU (gpt2, bert)."""

    def __init__(self, config, at):
        super().__init__()
        style, width, hidden = config.manners, config.width, config.mlp_width
        self.kind = style.mlp
        self.up = Linear(f"{at}.up", width, hidden, "up", style.bias)
        self.gate = (
            Linear(f"{at}.up2", width, hidden, "up", style.bias) if self.kind == "swiglu" else None
        )
        self.down = Linear(f"{at}.down", hidden, width, "out", style.bias)

    def forward(self, h):
        u = self.up(h)  # (B, T, hidden)
        if self.kind == "swiglu":
            return self.down(F.silu(self.gate(h)) * u)
        if self.kind == "gelu":
            return self.down(F.gelu(u))
        u = F.relu(u)
        return self.down(u * u)  # a product's gradient is cheaper than a power's


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
