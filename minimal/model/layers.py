"""What is every block made of? Norms, linear maps that cast, rotary positions, embeddings, MLPs.

And coefficients: learned numbers with a role, which decides their learning rate.
"""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from minimal.model import gradients


class Module(nn.Module):
    """nn.Module whose calls go straight to `forward` where nobody learns and nobody has hooked in:
    on the way there PyTorch asks eight questions, 150 times a token."""

    def __call__(self, *inputs, **how):
        if torch.is_grad_enabled() or self._forward_hooks or self._forward_pre_hooks:
            return super().__call__(*inputs, **how)
        return self.forward(*inputs, **how)


class Part(Module):
    """One part of an attention layer: a source of values, of queries, of keys, or a way to read.

    The rest of the package (cache, rings, counts, maps) asks a part for these and nothing else:

    j        the last of the earlier layers that it reads in the same pass; None: it reads none
    reads    layers whose kept rows it reads, so that their rings reach back as far as it does
    keeps    the name under which decoding keeps rows of its own; None: it keeps nothing
    recalls  does it read ids of earlier tokens? Then decoding keeps ids, too
    label()  how `variants.describe` names it; "" for what every standard layer does
    """

    j = None
    reads = ()
    keeps = None
    recalls = False

    def label(self):
        return ""


class Coefficient(Module):
    """A learned number (or a short vector) with a role. All of them are recorded in training."""

    def __init__(self, role, start, shape=()):
        super().__init__()
        self.role, self.start = role, start
        self.value = nn.Parameter(torch.empty(shape))

    def forward(self):
        return self.value


def coefficient(role, start, shape=()):
    """A number that is learned if it has a role, else a plain one; one that is made is kept."""
    if isinstance(start, Coefficient):
        return start
    return Coefficient(role, start, shape) if role else (lambda: start)


class Embedding(Module):
    """Rows by id. `shape` is one row's shape: (C,) for tokens, (G, D) for a table of values."""

    def __init__(self, key, count, shape, role, start):
        super().__init__()
        self.key, self.role, self.start = key, role, start
        self.weight = nn.Parameter(torch.empty(count, *shape))

    def forward(self, ids):
        return F.embedding(ids, self.weight.flatten(1)).unflatten(-1, self.weight.shape[1:])

    def rows(self):
        return self.weight


class Linear(Module):
    """y = x W^T (+ b), with W cast to x's type: master weights stay fp32 where x is bf16.

    `key` names the matrix's job ("3.v"), `kind` its row in the style's init table. Equal keys get
    equal random numbers in every plan, so two plans with one seed differ in their value path only.
    """

    def __init__(self, key, n_in, n_out, kind="matrix", bias=False):
        super().__init__()
        self.key, self.kind = key, kind
        self.weight = nn.Parameter(torch.empty(n_out, n_in))
        self.bias = nn.Parameter(torch.empty(n_out)) if bias else None

    def forward(self, x):
        weight, bias = self.weight, self.bias
        if weight.dtype != x.dtype:
            weight = weight.to(x.dtype)
            bias = None if bias is None else bias.to(x.dtype)
        if one_row_compiled(x):
            y = (x.flatten() * weight).sum(-1).view(*x.shape[:-1], -1)
            return y if bias is None else y + bias
        return F.linear(x, weight, bias)


def by_head(x, heads):
    """(B, T, heads D) -> (B, T, heads, D)."""
    return x.view(*x.shape[:-1], heads, x.shape[-1] // heads)


def one_row_compiled(x):
    """A compiler for a CPU joins a sum over one row with all that stands around it; a product is a
    call of a library, 73 times a token."""
    one = x.is_cpu and x.numel() == x.shape[-1]
    return one and torch.compiler.is_compiling() and not torch.is_grad_enabled()


class MLP(Module):
    """relu(W1 h)^2 W2 (nanochat), SwiGLU (llama), or GELU (gpt2, bert).

    GELU is the exact one, h Phi(h), as in BERT. OpenAI's GPT-2 has the tanh approximation of it:
    logits with GPT-2's own weights would differ by about 6e-4.
    """

    def __init__(self, config, at):
        super().__init__()
        style, width, hidden = config.style, config.width, config.mlp_width
        self.kind = style.mlp
        self.up = Linear(f"{at}.up", width, hidden, "up", style.bias)
        self.gate = None
        if self.kind == "swiglu":
            self.gate = Linear(f"{at}.up2", width, hidden, "up", style.bias)
        self.down = Linear(f"{at}.down", hidden, width, "out", style.bias)

    def forward(self, h):
        u = self.up(h)  # (B, T, hidden)
        if self.kind == "swiglu":
            return self.down(F.silu(self.gate(h)) * u)
        if self.kind == "gelu":
            return self.down(F.gelu(u))
        return self.down(squared_relu(u))


# ---- norms ------------------------------------------------------------------------------------
def norm(x, eps=None):
    """RMS-norm without weights; applying it twice changes nothing."""
    if gradients.by_hand(x):
        return gradients.rms_norm(x, eps)
    return F.rms_norm(x, (x.shape[-1],), eps=eps)


def squared_relu(u):
    """relu(u)^2, the nonlinearity of nanochat's and modded-nanogpt's MLPs."""
    if torch.is_grad_enabled() and gradients.by_hand(u):
        return gradients.SquaredRelu.apply(u)
    u = F.relu(u)
    return u * u  # a product's gradient is cheaper than a power's


class Norm(Module):
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


def norm_of(config):
    """The norm of the model's style: `norm` itself, or a module with weights of its own."""
    style = config.style
    return norm if style.norm == "plain" else Norm(config.width, style.norm, style.eps)


# ---- rotary positions -------------------------------------------------------------------------
def rope_tables(positions, width, base, half=False):
    """cos and sin for `positions`, each (T, 1, width // 2).

    `half`: modded-nanogpt turns only the first half of the features, at (1/base)^linspace(0, 1).
    """
    # a compiler folds what is always the same by itself
    rates = rope_rates if torch.compiler.is_compiling() else rates_once
    angle = positions[:, None].float() * rates(width, base, half, positions.device)  # (T, width/2)
    return angle.cos()[:, None], angle.sin()[:, None]


def rope_rates(width, base, half, device):
    """How far each pair of features turns a position, (width // 2,)."""
    if not half:
        return base ** -(torch.arange(0, width, 2, device=device) / width)
    turning = base ** -torch.linspace(0, 1, width // 4, device=device)
    still = torch.zeros(width // 2 - width // 4, device=device)
    return torch.cat([turning, still])


rates_once = functools.cache(torch.inference_mode(False)(rope_rates))


def rotate(x, cos, sin):
    """Rotary positions in halves, by -angle: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin."""
    return rotate_rows(x, *whole_rows(cos, sin, x.shape[-2]))


def whole_rows(cos, sin, heads):
    """The tables for rotate_rows, made once a pass: on a CPU, operations on halves of short rows
    cost several times as much as on whole ones."""
    both = torch.cat([cos, cos], dim=-1).expand(-1, heads, -1).contiguous()  # (T, H, D)
    signed = torch.cat([sin, -sin], dim=-1).expand(-1, heads, -1).contiguous()  # (T, H, D)
    return both, signed


def rotate_rows(x, both, signed):
    """rotate() by tables that are as wide as x."""
    return x * both + x.roll(x.shape[-1] // 2, dims=-1) * signed
