"""What does a training step cost elsewhere? nanochat's design, as one writes it in an afternoon.

It computes what our `standard` computes: rotary positions, norms without weights, of queries and
keys too, relu squared, and a head of its own whose scores are softly capped. How it is written
differs: plain modules, autocast to bf16, all scores of the vocabulary at once, and the loss as
PyTorch has it. Windows are left out, since PyTorch's call would take them as masks.
"""

import torch
import torch.nn.functional as F
from torch import nn

from evidence.bench.rivals import norm
from minimal.model.config import size as named
from minimal.training.device import compute_dtype

BASE = 100_000.0  # of the rotary positions
SHARPER = 1.2  # the gain of queries and keys, behind their norm
CAP = 15.0  # no score is larger


def turned(x, cos, sin):
    """Rotary positions of x (B, T, H, D), in halves."""
    a, b = x.chunk(2, -1)  # (B, T, H, D/2) each
    return torch.cat([a * cos + b * sin, b * cos - a * sin], -1)


def matrix(n_in, n_out):
    return nn.Linear(n_in, n_out, bias=False)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, hidden, self.heads = config.width, config.mlp_width, config.heads
        self.q, self.k, self.v, self.out = (matrix(width, width) for _ in range(4))
        self.mlp = nn.ModuleDict(dict(up=matrix(width, hidden), down=matrix(hidden, width)))

    def forward(self, x, cos, sin):
        # attention
        h = norm(x)
        q, k, v = (w(h).unflatten(-1, (self.heads, -1)) for w in (self.q, self.k, self.v))
        q, k = (norm(turned(z, cos, sin)) * SHARPER for z in (q, k))
        q, k, v = (z.transpose(1, 2) for z in (q, k, v))  # (B, H, T, D)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        # feed-forward
        return x + self.mlp["down"](F.relu(self.mlp["up"](norm(x))).square())


class Nanochat(nn.Module):
    """A size's layers, width, heads and vocabulary; weights as PyTorch starts them."""

    def __init__(self, size, where="cpu"):
        super().__init__()
        c = self.config = named(size)
        self.embed = nn.Embedding(c.vocab, c.width)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.head = matrix(c.width, c.vocab)
        self.kind = compute_dtype(where)
        self.to(where)

    def roles(self):
        """What our optimizer asks of a model: the same rows move both."""
        kinds = {"embed.weight": "embed", "head.weight": "head"}
        return {name: kinds.get(name, "matrix") for name, _ in self.named_parameters()}

    def loss(self, ids, targets):
        """Cross entropy in nats, ids and targets (B, T)."""
        half = self.kind == torch.bfloat16
        with torch.autocast(ids.device.type, torch.bfloat16, enabled=half):
            x = norm(self.embed(ids).to(self.kind))  # (B, T, C)
            cos, sin = self.angles(x)
            for layer in self.layers:
                x = layer(x, cos, sin)
            scores = self.head(norm(x)).float()  # (B, T, V)
            scores = CAP * torch.tanh(scores / CAP)
            return F.cross_entropy(scores.flatten(0, 1), targets.flatten())

    def angles(self, x):
        """cos and sin of every position, (T, 1, D/2) each."""
        head, places = self.config.head, torch.arange(x.shape[1], device=x.device)
        rates = BASE ** -(torch.arange(0, head, 2, device=x.device) / head)
        angle = (places[:, None] * rates)[:, None]  # (T, 1, D/2)
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)
