"""READ FIRST. A whole GPT on one screen, and the one line that says where its values come from.

    class ResFormer(GPT):
        def value(self, n, h, v1, ids):
            v = self.layers[n].value(h)  # (B, T, C)
            return v if n == 0 else (v + v1) / 2

It is the plan `standard`, written for a reader; notebook 02 writes it piece by piece, and every
later notebook changes its `value`. The rest of the package is the same for every plan at once,
with a cache, kernels and recipes. tests/lab/test_gpt.py holds this file to it, weight by weight:
logits, gradients and training. Of a Config it knows the sizes and the windows, and nothing of
groups, hidden, style, smear and dropout.
"""

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from minimal.kernels.reference import weights
from minimal.model.attend import attend
from minimal.model.layers import norm, rope_tables, rotate
from minimal.model.tape import Rows

ROLE_OF_NAME = dict(embed="embed", head="head", up="mlp", down="mlp")  # all others: by their shape


class GPT(nn.Module):
    """Embedding, layers, head: a stream to which every layer adds. `layer` makes one of them."""

    def __init__(self, config, layer=None):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.width)
        self.layers = nn.ModuleList((layer or Layer)(config) for _ in range(config.layers))
        self.head = nn.Linear(config.width, config.vocab, bias=False)
        for layer, window in zip(self.layers, config.window_sizes()):
            if window:
                layer.window, layer.attend = window, partial(layer.attend, window=window)

    def forward(self, ids):
        x = norm(self.embed(ids))  # (B, T, C): the stream begins
        v1 = None  # the first layer's values
        for n, layer in enumerate(self.layers):
            h = norm(x)  # (B, T, C): what the layer reads
            v = self.value(n, h, v1, ids)  # (B, T, C)
            v1 = v if n == 0 else v1
            x = x + layer.attention(h, v)
            x = x + layer.mlp(norm(x))
        return self.scores(x)

    def value(self, n, h, v1, ids):
        """Where do the values of layer n come from? This is the line that the course changes."""
        return self.layers[n].value(h)  # (B, T, C)

    def scores(self, x):
        """The stream after the last layer -> a score for every token: (B, T, V)."""
        z = self.head(norm(x))  # (B, T, V)
        return 15 * torch.tanh(z / 15)  # a smooth bound

    def loss(self, ids, targets):
        """Nats a token."""
        return F.cross_entropy(self(ids).mT, targets)

    def roles(self):
        """What every parameter is to the optimizer: a matrix, a row by id, a learned number."""
        by_shape = {nn.Embedding: "table", nn.Linear: "matrix"}
        return {
            f"{path}.{leaf}".lstrip("."): ROLE_OF_NAME.get(path.split(".")[-1])
            or by_shape.get(type(module), "lambda")
            for path, module in self.named_modules()
            for leaf, _ in module.named_parameters(recurse=False)
        }


class Layer(nn.Module):
    """Two branches, and their six matrices."""

    attend = staticmethod(attend)  # softmax(q k') v, as in notebook 01
    window = 0  # keys to the left that a token sees; 0: all

    def __init__(self, config):
        super().__init__()
        C = config.width
        self.heads = config.heads
        self.scale = 1.2 * 1.2 / math.sqrt(config.head)  # a gain of 1.2 for q and for k
        self.query, self.key, self.value = (nn.Linear(C, C, bias=False) for _ in range(3))
        self.out = nn.Linear(C, C, bias=False)
        self.up, self.down = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)

    def attention(self, h, v):
        """What attention adds to the stream: h and v (B, T, C) -> (B, T, C)."""
        return self.out(self.heard(h, v))

    def heard(self, h, v):
        """Every token's mean of the values that it sees, head by head: (B, T, C)."""
        q, k = self.queries_and_keys(h)
        v = v.unflatten(-1, (self.heads, -1))  # (B, T, H, D)
        return self.attend(q, k, Rows(v), scale=self.scale).flatten(2)

    def queries_and_keys(self, h):
        """Who looks for what, and what can be found: (B, T, H, D) each."""
        q, k = (y.unflatten(-1, (self.heads, -1)) for y in (self.query(h), self.key(h)))
        angles = rope_tables(torch.arange(h.shape[1], device=h.device), q.shape[-1], 100_000.0)
        return norm(rotate(q, *angles)), norm(rotate(k, *angles))

    def map(self, h):
        """The attention map itself, which `heard` need not form: (B, H, T, T)."""
        return weights(*self.queries_and_keys(h), scale=self.scale, window=self.window)

    def mlp(self, h):
        """What the MLP adds: widen, cut off at zero, square, narrow. (B, T, C) -> (B, T, C)."""
        return self.down(self.up(h).relu().square())
