"""Small models in PyTorch, called as a GPT is: by a learner on tensors, by an oracle on arrays."""

import copy
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from homework.marking import Part, drawn, normals

OWN_METHOD = (
    "self.value is the method that you are writing; a layer makes its own values by "
    "self.layers[n].value(h)"
)


def normed(x):
    return x / (x**2).mean(-1, keepdims=True) ** 0.5


class Weight(nn.Module):
    """A matrix that may be asked with an array, too: then it answers in float64."""

    def keep(self, array):
        self.weight = nn.Parameter(torch.from_numpy(array), requires_grad=False)

    @property
    def array(self):
        return self.weight.detach().double().numpy()

    def __call__(self, x):
        return self.by_hand(x) if isinstance(x, np.ndarray) else super().__call__(x)


class Linear(Weight, nn.Linear):
    """h (…, C) -> h Wᵀ (…, rows)."""

    def __init__(self, matrix):
        super().__init__(*matrix.shape[::-1], bias=False)
        self.keep(matrix)

    def by_hand(self, h):
        return h @ self.array.T


class Embedding(Weight, nn.Embedding):
    """ids -> rows of a table."""

    def __init__(self, table):
        super().__init__(*table.shape)
        self.keep(table)

    def by_hand(self, ids):
        return self.array[ids]


class Small(nn.Module):
    def asked_in(self, dtype):
        """The same in this precision."""
        return copy.deepcopy(self).to(torch.float32 if dtype == "f4" else torch.float64)


class Layer(Small):
    """A layer of a GPT. Its attention is a running sum, and feels the size of what it reads."""

    def __init__(self, r, width):
        super().__init__()
        for name in ("query", "key", "value", "out"):
            setattr(self, name, Linear(r.normal(size=(width, width))))
        self.up = Linear(r.normal(size=(4 * width, width)))
        self.down = Linear(r.normal(size=(width, 4 * width)) / 4)

    def __repr__(self):
        return "a layer"

    def attention(self, h, v):
        return self.out((v + h * v).cumsum(1)) / 4

    def mlp(self, h):
        wide = self.up(h)
        return self.down(wide * wide * (wide > 0))


class NoMLP(Layer):
    """The same, where `mlp` is what the learner writes."""

    def mlp(self, h):
        raise RuntimeError("self.mlp is the method that you are writing, of self.up and self.down")


class GPT(Small):
    """Everything of a GPT but its forward pass. Its values hear the first layer's and the ids, so
    that it shows whether these arrive."""

    def __init__(self, r, layers, width=4, vocab=7):
        super().__init__()
        self.embed = Embedding(r.normal(size=(vocab, width)))
        self.layers = nn.ModuleList(Layer(r, width) for _ in range(layers))
        self.head = Linear(r.normal(size=(vocab, width)))
        self.config = SimpleNamespace(vocab=vocab, width=width, layers=layers)

    def __repr__(self):
        many = len(self.layers)
        return f"a model of {many} layer{'s' * (many > 1)}"

    def forward(self, ids):
        raise RuntimeError("this small model has no forward pass: that is what `forward` is for")

    def value(self, n, h, v1, ids):
        own = self.layers[n].value(h) + self.embed(ids)
        if n == 0:
            return own
        return (own + (0 if v1 is None else v1)) / 2

    def scores(self, x):
        z = self.head(normed(x))
        return 15 * (np.tanh(z / 15) if isinstance(z, np.ndarray) else torch.tanh(z / 15))


def learning(thing, leaves):
    """A copy of a model whose weights learn, and are added to `leaves`; else the thing itself."""
    if not isinstance(thing, nn.Module):
        return thing
    made = copy.deepcopy(thing).requires_grad_()
    leaves += made.parameters()
    return made


class Unwritten(GPT):
    """The same, with a table by token id for every layer; `value` is what the learner writes."""

    def __init__(self, r, layers):
        super().__init__(r, layers)
        self.tables = nn.ModuleList(Embedding(r.normal(size=(7, 4))) for _ in self.layers)

    def value(self, *given, **named):
        raise RuntimeError(OWN_METHOD)


@drawn
def layer(r, n):
    h, v1 = normals(r, (2, 5, 4), (2, 5, 4))
    made, ids = Unwritten(r, 3), r.integers(0, 7, (2, 5))
    ids[:, 3] = ids[:, 1]  # a token that occurs twice
    return made, n, h, v1 if n else None, ids  # the first has no v1 yet


VALUES = (  # the parts of an exercise that asks a model of three layers for the values of one
    Part("the first layer", 1, layer(0)),
    Part("a deeper layer", 2, [layer(1), layer(2), layer(1)]),
)


# ---- something to train --------------------------------------------------------------------------


class Bigram(nn.Module):
    """The smallest language model: for every token, the scores of what follows it."""

    def __init__(self, start):
        super().__init__()
        self.start = start
        self.table = nn.Parameter(torch.from_numpy(start.copy()))

    def __repr__(self):
        return "a model"

    def forward(self, ids):
        return self.table[ids]

    def loss(self, ids, targets):
        return F.cross_entropy(self(ids).mT, targets)


def loss_and_slope(table, ids, targets):
    """The loss of such a model, and its gradient: (V, V)."""
    e, one = np.exp(table[ids.flat]), np.eye(len(table))
    p = e / e.sum(-1, keepdims=True)
    nats = -np.log(p[range(ids.size), targets.flat]).mean()
    return nats, one[ids.flat].T @ (p - one[targets.flat]) / ids.size


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
        self.model.table.data.copy_(torch.from_numpy(self.model.start))
        self.model.table.grad = None
