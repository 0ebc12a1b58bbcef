"""Is that all? A whole GPT, to be read in a minute and changed by a line.

It is minimal's plan `standard` in nanochat's style, written for a reader: notebooks change where a
layer's values come from, train what they have changed, and only then meet the package's ways.

    class ResFormer(GPT):
        def value(self, n, h, v1, ids):
            v = self.layers[n].value(h)  # (B, T, C)
            return v if n == 0 else (v + v1) / 2

    model = started(ResFormer(SIZES["tiny"]), seed=0)
    losses = train(model, dataset, steps=100)

tests/lab/test_gpt.py holds it to minimal's logits, gradients and training, weight by weight.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from minimal.model.attend import attend
from minimal.model.layers import norm, rope_tables, rotate
from minimal.model.tape import Rows
from minimal.training.optim import Optimizer
from minimal.variants import build

ROLES = dict(embed="embed", head="head", up="mlp", down="mlp")  # all others: by their shape


class GPT(nn.Module):
    """Embedding, layers, head: a stream to which every layer adds."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.head = nn.Linear(config.width, config.vocab, bias=False)

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
            f"{path}.{leaf}".lstrip("."): ROLES.get(path.split(".")[-1])
            or by_shape.get(type(module), "lambda")
            for path, module in self.named_modules()
            for leaf, _ in module.named_parameters(recurse=False)
        }


class Layer(nn.Module):
    """Two branches, and their six matrices."""

    attend = staticmethod(attend)  # softmax(q k') v, as in notebook 01

    def __init__(self, config):
        super().__init__()
        C = config.width
        self.heads = config.heads
        self.query, self.key, self.value = (nn.Linear(C, C, bias=False) for _ in range(3))
        self.out = nn.Linear(C, C, bias=False)
        self.up, self.down = nn.Linear(C, 4 * C, bias=False), nn.Linear(4 * C, C, bias=False)

    def attention(self, h, v):
        """What attention adds to the stream: h and v (B, T, C) -> (B, T, C)."""
        q, k, v = (y.unflatten(-1, (self.heads, -1)) for y in (self.query(h), self.key(h), v))
        D = q.shape[-1]  # q, k and v are (B, T, H, D)
        angles = rope_tables(torch.arange(h.shape[1], device=h.device), D, 100_000.0)
        q, k = norm(rotate(q, *angles)), norm(rotate(k, *angles))
        y = self.attend(q, k, Rows(v), scale=1.2 * 1.2 / math.sqrt(D))  # (B, T, H, D)
        return self.out(y.flatten(2))

    def mlp(self, h):
        """What the MLP adds: widen, cut off at zero, square, narrow. (B, T, C) -> (B, T, C)."""
        return self.down(self.up(h).relu().square())


# ---- to start and to train it as `minimal` does --------------------------------------------------


def by_our_names(model):
    """The weights of one of minimal's models under the names that they have here."""
    parts = [
        ("blocks.", "layers."),
        ("attention.", ""),
        ("mlp.", ""),
        (".project", ""),
        ("value.x", "value"),
    ]
    named = {}
    for name, p in model.named_parameters():
        for theirs, ours in parts:
            name = name.replace(theirs, ours)
        named[name] = p
    return named


def with_weights(model, theirs):
    """The same model with the weights of one of minimal's.

    What a notebook has added to it keeps the start that it was given.
    """
    weights = by_our_names(theirs)
    unknown = model.load_state_dict({k: p.detach() for k, p in weights.items()}, strict=False)
    if unknown.unexpected_keys:
        raise ValueError(f"wanted every weight of `standard`, no place for {unknown[1]}")
    return model


def started(model, seed=0):
    """The same model with the start that minimal gives `standard` for this seed."""
    return with_weights(model, build("standard", model.config, seed=seed))


def train(model, dataset, steps, seed=0, upto=None, rows=16):
    """Train a model as `python -m minimal.train` would; the losses of its first `upto` steps."""
    batch_tokens = rows * model.config.context
    optimizer = Optimizer(model, "bov", batch_tokens=batch_tokens, steps=steps, scale="laptop")
    device, losses = model.head.weight.device, []
    for step in range(steps if upto is None else upto):
        ids, targets = dataset.batch(step, rows, seed)  # (B, T) each
        loss = model.loss(ids.to(device), targets.to(device))
        loss.backward()
        optimizer.step(step)
        losses.append(loss.item())
    return losses
