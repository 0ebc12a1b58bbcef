"""Models small enough for an oracle's loops, called as a GPT is: on arrays and on tensors alike."""

import copy
from types import SimpleNamespace

import numpy as np
import torch

from homework.marking import Part, drawn, normals


def like(h, array):
    """The array as a tensor, where h is one; numbers of h's kind."""
    if torch.is_tensor(h) and not torch.is_tensor(array):
        array = torch.from_numpy(np.array(array))
    return array.to(h.dtype) if torch.is_tensor(array) and h.is_floating_point() else array


def normed(x):
    return x / (x**2).mean(-1, keepdims=True) ** 0.5


class Linear:
    """h (…, C) -> h Wᵀ (…, rows)."""

    kind = torch.float64  # of `weight`: that of the case's inputs

    def __init__(self, matrix):
        self.matrix = matrix

    def __call__(self, h):
        return h @ like(h, self.matrix).T

    @property
    def weight(self):
        return torch.as_tensor(self.matrix).to(self.kind)


class Layer:
    """A layer of a GPT: the running sum moves things between positions, the square bends them."""

    def __init__(self, r, width):
        self.value = Linear(r.normal(size=(width, width)))
        self.up = Linear(r.normal(size=(4 * width, width)))
        self.down = Linear(r.normal(size=(width, 4 * width)))
        self.loud = 1 + r.random()

    def __repr__(self):
        return "a layer"

    def attention(self, h, v):
        return self.loud * (v + h * v).cumsum(1) / 4

    def mlp(self, h):
        return self.loud * h * abs(h)


class GPT:
    """Everything of a GPT but the way through it. A layer's values are half the first layer's, so
    that it shows whether these arrive."""

    def __init__(self, r, layers, width=4, vocab=7):
        self.table = r.normal(size=(vocab, width))
        self.layers = [Layer(r, width) for _ in range(layers)]

    def __repr__(self):
        return f"a model of {len(self.layers)} layers"

    def asked_in(self, dtype):
        """The same, whose matrices are weights of this precision for whoever asks for them."""
        kind = torch.float32 if dtype == "f4" else torch.float64
        for layer in self.layers:
            layer.value.kind = layer.up.kind = layer.down.kind = kind
        return self

    def embed(self, ids):
        return like(ids, self.table)[ids]

    def value(self, n, h, v1, ids):
        own = self.layers[n].value(h)
        if n == 0:
            return own
        return (own + (0 if v1 is None else v1)) / 2

    def scores(self, x):
        return 3 * normed(x)


def learning(thing, leaves):
    """A model whose arrays are tensors that learn, which are added to `leaves`; else the thing."""
    if not isinstance(thing, (Linear, Layer, GPT, Embedding)):
        return thing
    made = copy.copy(thing)
    if isinstance(thing, Embedding):  # one table under both of its names
        made.table = made.weight = thing.weight.clone().requires_grad_()
        leaves.append(made.weight)
        return made
    for name, part in vars(thing).items():
        if isinstance(part, np.ndarray):
            part = torch.from_numpy(part.copy()).requires_grad_()
            leaves.append(part)
        elif isinstance(part, list):
            part = [learning(x, leaves) for x in part]
        else:
            part = learning(part, leaves)
        setattr(made, name, part)
    return made


class Unwritten(GPT):
    """The same, where `value` is what the learner writes."""

    def value(self, n, h, v1, ids):
        raise RuntimeError(
            "self.value is the method that you are writing; a layer makes its own values by "
            "self.layers[n].value(h)"
        )


class Embedding:
    """ids -> rows of a table, which is there as a whole, too."""

    def __init__(self, table):
        self.table, self.weight = table, torch.from_numpy(table.copy())
        self.num_embeddings, self.embedding_dim = table.shape

    def __call__(self, ids):
        return self.weight[ids] if torch.is_tensor(ids) else self.table[ids]

    forward = __call__


class Whole(GPT):
    """The same, whose embedding and sizes may be asked for."""

    def __init__(self, r, layers, width=4, vocab=7):
        super().__init__(r, layers, width, vocab)
        self.embed = Embedding(self.table)
        self.config = SimpleNamespace(vocab=vocab, width=width, layers=layers)

    def asked_in(self, dtype):
        self.embed.weight = torch.from_numpy(self.embed.table.astype(dtype))
        return super().asked_in(dtype)


class Single(Embedding):
    """The same in single precision, as the weights of a model are."""

    def __init__(self, table):
        super().__init__(table.astype("f4").astype("f8"))
        self.weight = self.weight.float()


class WithTables(Unwritten):
    """The same, with a table by token id for every layer."""

    def __init__(self, r, layers):
        super().__init__(r, layers)
        self.tables = [Single(r.normal(size=self.table.shape)) for _ in self.layers]


def layers_of(model):
    """The parts of an exercise that asks such a model of three layers for the values of one."""

    @drawn
    def layer(r, n):
        h, v1 = normals(r, (2, 5, 4), (2, 5, 4))
        made, ids = model(r, 3), r.integers(0, 7, (2, 5))
        ids[:, 3] = ids[:, 1]  # a token that occurs twice
        return made, n, h, v1 if n else None, ids  # the first has no v1 yet

    yield Part("the first layer", 1, layer(0))
    yield Part("a deeper layer", 2, [layer(1), layer(2), layer(1)])


# ---- something to train --------------------------------------------------------------------------


class Line(torch.nn.Module):
    """The smallest model with a loss: y = w · x."""

    def __init__(self, start):
        super().__init__()
        self.start = start
        self.weight = torch.nn.Parameter(torch.from_numpy(start.copy()))

    def __repr__(self):
        return "a model"

    def forward(self, x):
        raise RuntimeError("this small model gives its loss alone: model.loss(ids, targets)")

    def loss(self, x, y):
        return ((x @ self.weight - y) ** 2).mean()


class Descent(torch.optim.SGD):
    def __repr__(self):
        return "an optimizer"


class Batches:
    """Pairs of arrays as tensors. Whoever begins to read them finds the model at its start: an
    exercise is asked many times."""

    def __init__(self, pairs, model):
        self.pairs, self.model = pairs, model

    def __repr__(self):
        return f"{len(self.pairs)} batches"

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, at):
        if at == 0:
            self.begin()
        return tuple(torch.from_numpy(x.copy()) for x in self.pairs[at])

    def __iter__(self):
        return (self[at] for at in range(len(self.pairs)))

    def begin(self):
        self.model.weight.data.copy_(torch.from_numpy(self.model.start))
        self.model.weight.grad = None
