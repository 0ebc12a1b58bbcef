"""The GPT that readers change: is it minimal's `standard`, weight by weight and step by step?"""

import inspect

import pytest
import torch
import torch.nn.functional as F

from minimal.lab.gpt import GPT, Layer, by_our_names, started, train
from minimal.model.config import SIZES
from minimal.training.optim import Optimizer
from minimal.variants import build

NANO = SIZES["nano"].but(vocab=256, context=32)
ids = torch.randint(256, (2, 32), generator=torch.Generator().manual_seed(0))  # (B, T)
targets = ids.roll(-1, 1)


def awake(plan="standard"):
    """One of minimal's models in doubles, with random numbers where it starts at zero."""
    model = build(plan, NANO, seed=1).double()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if not p.any():
                p.normal_(std=0.1, generator=torch.Generator().manual_seed(len(name)))
    return model


def twin(model, kind=GPT):
    """The readers' model with the same weights."""
    ours = kind(NANO).double()
    ours.load_state_dict({name: p.detach() for name, p in by_our_names(model).items()})
    return ours


def distance(a, b):
    return (a - b).abs().max().item()


def apart(theirs, ours):
    """The largest difference of logits, and that of any weight's gradient."""
    named, mine = by_our_names(theirs), dict(ours.named_parameters())
    assert named.keys() == mine.keys()
    theirs_by = torch.autograd.grad(
        F.cross_entropy(theirs(ids).double().mT, targets), named.values()
    )
    ours_by = torch.autograd.grad(ours.loss(ids, targets), [mine[name] for name in named])
    worst = max(distance(a, b) for a, b in zip(theirs_by, ours_by, strict=True))
    return distance(theirs(ids), ours(ids)), worst


def test_it_is_minimals_standard_in_logits_and_in_every_gradient():
    theirs = awake()
    logits, gradients = apart(theirs, twin(theirs))
    assert logits < 1e-5 and gradients < 1e-6  # minimal's logits are floats


class NoMask(GPT):
    def __init__(self, config):
        super().__init__(config)
        for layer in self.layers:
            layer.attend = lambda q, k, v, scale: Layer.attend(q, k, v, causal=False, scale=scale)


class Halves(GPT):
    def value(self, n, h, v1, ids):
        v = self.layers[n].value(h)  # (B, T, C)
        return v if n == 0 else (v + v1) / 2


class First(GPT):
    def value(self, n, h, v1, ids):
        return self.layers[n].value(h) if n == 0 else v1


def test_a_wrong_model_is_seen():
    theirs = awake()
    assert min(apart(theirs, twin(theirs, NoMask))) > 1e-4
    assert min(apart(theirs, twin(theirs, Halves))) > 1e-4


def test_one_line_makes_resformer_and_svformer():
    theirs = awake("resformer")
    assert max(apart(theirs, twin(theirs, Halves))) < 1e-5
    theirs = awake("svformer")
    with torch.no_grad():
        ours = First(NANO).double()
        ours.load_state_dict(by_our_names(theirs), strict=False)
        assert distance(theirs(ids), ours(ids)) < 1e-5


class Tables(GPT):
    """As notebook 10 begins: in the last third of the layers a value is a row of a table."""

    def __init__(self, config):
        super().__init__(config)
        self.first = 2 * config.layers // 3
        rows = (config.vocab, config.width)
        self.tables = torch.nn.ModuleList(
            torch.nn.Embedding(*rows) for _ in self.layers[self.first :]
        )

    def value(self, n, h, v1, ids):
        if n < self.first:
            return super().value(n, h, v1, ids)
        return self.tables[n - self.first](ids)


class ByPosition(Tables):
    def value(self, n, h, v1, ids):
        return super().value(n, h, v1, torch.arange(ids.shape[1]).expand_as(ids))


@pytest.mark.parametrize(("kind", "same"), [(Tables, True), (ByPosition, False)])
def test_one_line_makes_bank_of_values(kind, same):
    theirs = awake("bov-fixed")
    ours, named = kind(NANO).double(), by_our_names(theirs)
    tables = {name: p for name, p in named.items() if name.startswith("banks.")}
    ours.load_state_dict(
        {name: p.detach() for name, p in named.items() if name not in tables}, strict=False
    )
    with torch.no_grad():
        for table, p in zip(ours.tables, tables.values(), strict=True):
            table.weight.copy_(p.flatten(1))  # (V, G, D) there, (V, C) here
    theirs_by = torch.autograd.grad(theirs.loss(ids, targets), tables.values())
    ours_by = torch.autograd.grad(ours.loss(ids, targets), [t.weight for t in ours.tables])
    worst = max(distance(a.flatten(1), b) for a, b in zip(theirs_by, ours_by, strict=True))
    found = max(distance(theirs(ids), ours(ids)), worst)
    assert (found < 1e-5) == same and (same or found > 1e-3)


class Data:
    """The least of a dataset: one batch."""

    def batch(self, step, rows, seed):
        return ids, targets


def test_it_starts_and_trains_as_minimals_does():
    ours = train(started(GPT(NANO), seed=3), Data(), steps=40, upto=6, rows=2)
    theirs, losses = build("standard", NANO, seed=3), []
    optimizer = Optimizer(theirs, "bov", batch_tokens=64, steps=40, scale="laptop")
    for step in range(6):
        loss = theirs.loss(ids, targets)
        loss.backward()
        optimizer.step(step)
        losses.append(loss.item())
    assert max(abs(a - b) for a, b in zip(ours, losses, strict=True)) < 1e-3
    assert losses[-1] < losses[0] - 0.1


class WithTable(GPT):
    def __init__(self, config):
        super().__init__(config)
        self.table = torch.nn.Embedding(config.vocab, config.width)
        self.share = torch.nn.Parameter(torch.tensor(0.5))

    def value(self, n, h, v1, ids):
        return super().value(n, h, v1, ids) + self.share * self.table(ids)


def test_what_a_notebook_adds_is_trained_by_its_kind():
    roles = WithTable(NANO).roles()
    assert roles["table.weight"] == "table" and roles["share"] == "lambda"
    assert roles["layers.0.up.weight"] == "mlp" and roles["layers.0.query.weight"] == "matrix"
    assert roles["embed.weight"] == "embed" and roles["head.weight"] == "head"
    model = started(WithTable(NANO), seed=0)
    before = model.table.weight.detach().clone(), model.share.item()
    train(model, Data(), steps=2, rows=2)
    assert distance(before[0], model.table.weight) > 0 and model.share.item() != before[1]


def test_a_weight_without_a_place_is_refused():
    deeper = SIZES["smoke"].but(layers=3)
    small = GPT(SIZES["smoke"])
    small.config = deeper
    with pytest.raises(ValueError, match="no place for"):
        started(small)


def test_its_heart_can_be_read_in_a_minute():
    parts = (GPT.forward, GPT.value, GPT.scores, Layer.attention, Layer.mlp)
    lines = [line.strip() for part in parts for line in inspect.getsource(part).splitlines()]
    code = [line for line in lines if line and not line.startswith(('"""', "#"))]
    assert len(code) <= 28 and max(map(len, lines)) <= 96
