"""Is that all? A whole GPT, to be read in a minute and changed by a line.

It is minimal's plan `standard` in nanochat's style, written for a reader: notebooks change where a
layer's values come from, train what they have changed, and only then meet the package's ways.

    class ResFormer(GPT):
        def value(self, n, h, v1, ids):
            v = self.layers[n].value(h)  # (B, T, C)
            return v if n == 0 else (v + v1) / 2

    losses = beside(dict(standard=GPT, ResFormer=ResFormer), "tiny", book, steps=100)
    apart(ResFormer, "resformer")  # from minimal's plan with the same weights: logits, gradients

tests/lab/test_gpt.py holds it to minimal's logits, gradients and training, weight by weight.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from minimal.data.packing import pack
from minimal.data.tokenizer import tokenizer
from minimal.kernels.reference import weights
from course import figures
from minimal.compare.curves import relative
from course.proofs import awake, models_apart
from minimal.model.attend import attend
from minimal.model.config import SIZES
from minimal.model.layers import norm, rope_tables, rotate
from minimal.model.tape import Rows
from minimal.training.optim import Optimizer
from minimal.variants import build

ROLES = dict(embed="embed", head="head", up="mlp", down="mlp")  # all others: by their shape


class GPT(nn.Module):
    """Embedding, layers, head: a stream to which every layer adds. `layer` makes one of them."""

    def __init__(self, config, layer=None):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab, config.width)
        self.layers = nn.ModuleList((layer or Layer)(config) for _ in range(config.layers))
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
        self.heads, self.scale = config.heads, 1.2 * 1.2 / math.sqrt(config.head)
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
        return weights(*self.queries_and_keys(h), scale=self.scale)

    def mlp(self, h):
        """What the MLP adds: widen, cut off at zero, square, narrow. (B, T, C) -> (B, T, C)."""
        return self.down(self.up(h).relu().square())


# ---- to start and to train it as `minimal` does --------------------------------------------------


def by_our_names(model, names=()):
    """The weights of one of minimal's models under the names that they have here; `names` {theirs:
    ours} adds to what is known."""
    parts = [
        *dict(names).items(),
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


def rest(model, ids, targets):
    """Freeze the weights for which a changed line has no use: no gradient reaches them."""
    named = [p for p in model.parameters() if p.requires_grad]
    at = model.head.weight.device
    loss = model.loss(ids.to(at), targets.to(at))
    for p, gradient in zip(named, torch.autograd.grad(loss, named, allow_unused=True)):
        p.requires_grad_(gradient is not None)


def train(model, dataset, steps, seed=0, upto=None, rows=16):
    """Train a model as `python -m minimal.train` would; the losses of its first `upto` steps."""
    batch_tokens = rows * model.config.context
    rest(model, *dataset.batch(0, 1, seed))
    optimizer = Optimizer(model, "bov", batch_tokens=batch_tokens, steps=steps, scale="laptop")
    device, losses = model.head.weight.device, []
    for step in range(steps if upto is None else upto):
        ids, targets = dataset.batch(step, rows, seed)  # (B, T) each
        loss = model.loss(ids.to(device), targets.to(device))
        loss.backward()
        optimizer.step(step)
        losses.append(loss.item())
    return losses


# ---- to look at what one line changes ------------------------------------------------------------


def beside(kinds, size, book, steps, seed=0, upto=None, rows=16):
    """{name: losses} of models that differ by a line. They have one start, in all that they share,
    and read the same text in the same order. `kinds` {name: what makes a model from a config}."""
    config, losses = SIZES[size], {}
    data = pack(book, tokenizer(book, config.vocab), config.context)
    for name, kind in kinds.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)  # what a line adds starts the same, too
            model = started(kind(config), seed)
        losses[name] = train(model, data, steps, seed, upto, rows)
    return losses


def look(losses, book, title, window=10):
    """Draw what `beside` returned: every model's smoothed loss, less that of the first."""
    first, *others = losses
    series = {name: relative(losses[name], losses[first], window) for name in others}
    at = list(range(window, len(losses[first]) + 1))  # an average is named by its last step
    series[first] = [0.0] * len(at)
    xlabel, ylabel = f"step (average of {window}), {book.name}", f"nats below or above {first}"
    alt = f"Smoothed training loss of {' and '.join(others)} minus that of {first} over "
    alt += f"{at[-1]} training steps, and a level line at zero; below zero is ahead of {first}."
    fig = figures.lines(series, title, xlabel, ylabel, x=at)
    fig.axes[0].xaxis.get_major_locator().set_params(integer=True)  # half a step is none
    figures.show(fig, alt)


def apart(kind, plan="standard", names=(), size="nano", vocab=256, context=32):
    """How far is a model from minimal's plan with the same weights? (logits, gradients), as
    `models_apart` counts them. `names` {theirs: ours} of what a line adds."""
    config = SIZES[size].but(vocab=vocab, context=context)
    theirs, ours = awake(plan, config), kind(config).double()
    given, own = by_our_names(theirs, names), dict(ours.named_parameters())
    with torch.no_grad():
        for name, p in given.items():
            own[name].copy_(p.reshape(own[name].shape))
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(vocab, (2, context), generator=draw)  # (B, T)
    return models_apart(
        theirs, ours, ids, ids.roll(-1, 1), lambda model: by_our_names(model, names)
    )
