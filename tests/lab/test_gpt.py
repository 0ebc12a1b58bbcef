"""The GPT that readers change: is it minimal's `standard`, weight by weight and step by step?"""

import contextlib
import inspect
import random
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from course import figures, one_line, proofs
from course.one_line import (
    WithBar,
    apart,
    beside,
    by_our_names,
    look,
    never_cleared,
    started,
    train,
    with_weights,
)
from minimal.data import corpora
from minimal.gpt import GPT, Layer
from minimal.model.config import SIZES
from minimal.training.optim import Optimizer
from minimal.variants import build

NANO = SIZES["nano"].but(vocab=256, context=32)
ids = torch.randint(256, (2, 32), generator=torch.Generator().manual_seed(0))  # (B, T)
targets = ids.roll(-1, 1)


def awake(plan="standard"):
    """One of minimal's models in doubles, silent nowhere."""
    return proofs.awake(plan, NANO)


def distance(a, b):
    return (a - b).abs().max().item()


def test_it_is_minimals_standard_in_logits_and_in_every_gradient():
    theirs = by_our_names(awake())
    assert theirs.keys() == dict(GPT(NANO).named_parameters()).keys()
    logits, gradients = apart(GPT)
    assert logits < 1e-5 and gradients < 1e-6  # minimal's logits are floats


def test_so_it_is_in_the_sizes_whose_layers_have_windows():
    config = NANO.but(windows=(3, 9, 5, 0))
    theirs = proofs.awake("standard", config)
    for kind, same in ((config, True), (NANO, False)):
        ours = with_weights(GPT(kind), theirs).double()
        logits, gradients = proofs.models_apart(theirs, ours, ids, targets, by_our_names)
        assert (logits < 1e-5 and gradients < 1e-6) == same and (same or logits > 1e-3)
    map_ = GPT(config).layers[0].map(torch.randn(1, 32, config.width))  # (B, H, T, T)
    assert ((map_ > 0).sum(-1) == torch.arange(1, 33).clamp(max=4)).all()


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
    assert min(apart(NoMask)) > 1e-4
    assert min(apart(Halves)) > 1e-4


def test_one_line_makes_resformer_and_svformer():
    assert max(apart(Halves, "resformer")) < 1e-5
    assert min(apart(Halves, "resformer-nearest")) > 1e-4
    assert max(apart(First, "svformer")) < 1e-5


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


class PerPair(Layer):
    """A value for every pair of tokens: v_ij = v_j + q^R_i k^R_j."""

    def __init__(self, config):
        super().__init__(config)
        C = config.width
        self.q_r, self.k_r = (torch.nn.Linear(C, C, bias=False) for _ in range(2))

    def heard(self, h, v):
        pairs = v[:, None] + self.q_r(h)[:, :, None] * self.k_r(h)[:, None]  # (B, T, S, C)
        pairs = pairs.unflatten(-1, (self.heads, -1))
        return torch.einsum("bhts,btshd->bthd", self.map(h), pairs).flatten(2)


def test_another_layer_makes_dynamic_values():
    names = {"read.query": "q_r", "read.key": "k_r"}
    logits, gradients = apart(partial(GPT, layer=PerPair), "dva/many/ffn/wo", names)
    assert logits < 1e-5 and gradients < 1e-6
    turned = {"read.query": "k_r", "read.key": "q_r"}
    assert apart(partial(GPT, layer=PerPair), "dva/many/ffn/wo", turned)[0] > 1e-3


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


def test_models_are_trained_beside_each_other_from_one_start(tmp_path):
    path = tmp_path / "text.txt"
    letters = random.Random(0)
    path.write_text("".join(letters.choices("abcdefghijklmnopqrstuvwxyz     \n", k=200_000)))
    book = corpora.find(str(path))
    kinds = dict(standard=GPT, again=GPT, table=WithTable, halves=Halves)
    losses = beside(kinds, "smoke", book, steps=20, upto=3, rows=2)
    assert losses["standard"] == losses["again"] and len(losses["halves"]) == 3
    assert losses["standard"][0] == pytest.approx(losses["halves"][0], abs=1e-6)  # silent at first
    assert abs(losses["standard"][2] - losses["halves"][2]) > 1e-6
    assert (
        losses["table"] == beside(dict(table=WithTable), "smoke", book, 20, upto=3, rows=2)["table"]
    )


def test_a_look_shows_the_difference_from_the_first_model(monkeypatch, capsys):
    drawn, draw, ticks = {}, figures.lines, []

    def lines(series, *words, **x):
        drawn.update(series, **x)
        return draw(series, *words, **x)

    def show(fig, alt):
        print(figures.check_alt(alt))
        ticks.extend(fig.axes[0].get_xticks().tolist())

    monkeypatch.setattr(figures, "lines", lines)
    monkeypatch.setattr(figures, "show", show)
    losses = dict(standard=[3.0, 2.0, 1.0], changed=[3.0, 2.5, 2.0])
    look(losses, corpora.find("stdlib"), "A title", window=2)
    assert drawn == dict(changed=[-0.25, -0.75], standard=[0.0, 0.0], x=[2, 3])
    assert ticks and all(at == round(at) for at in ticks), "a step is a whole number"
    assert (
        "lead of changed over standard in training loss over 3 training steps"
        in capsys.readouterr().out
    )


def test_a_loop_of_ones_own_says_how_far_it_is(monkeypatch):
    seen = []
    bar = contextlib.nullcontext(SimpleNamespace(show=seen.append))
    monkeypatch.setattr(one_line, "progress", lambda title, total: seen.append(title) or bar)
    batches = WithBar([(ids, targets)] * 3, "your loop")
    assert len(batches) == 3 and batches[2][0] is ids and not seen
    assert [rows for rows, _ in batches] == [ids] * 3 and seen == ["your loop", 1, 2, 3]


def test_gradients_that_are_never_cleared_are_the_sum_of_all_so_far():
    model = started(GPT(NANO))
    never_cleared(model)
    sums = []
    for rows in (ids, targets):
        model.zero_grad()
        model.loss(rows, rows.roll(-1, 1)).backward()
        sums.append(model.head.weight.grad.clone())
    alone = started(GPT(NANO))
    alone.loss(targets, targets.roll(-1, 1)).backward()
    assert distance(sums[1], sums[0] + alone.head.weight.grad) < 1e-6 * sums[1].abs().max()
    assert sums[0].abs().max() > 0


def test_weights_that_a_line_leaves_without_work_are_not_trained():
    model = started(First(NANO), seed=0)
    before = [layer.value.weight.detach().clone() for layer in model.layers]
    train(model, Data(), steps=2, rows=2)
    moved = [distance(a, layer.value.weight) for a, layer in zip(before, model.layers)]
    assert moved[0] > 0 and moved[1:] == [0, 0, 0]


def test_a_weight_without_a_place_is_refused():
    deeper = SIZES["smoke"].but(layers=3)
    small = GPT(SIZES["smoke"])
    small.config = deeper
    with pytest.raises(ValueError, match="no place for"):
        started(small)


def test_its_heart_can_be_read_in_a_minute():
    parts = (GPT.forward, GPT.value, GPT.scores, Layer.attention, Layer.heard)
    parts += (Layer.queries_and_keys, Layer.mlp)
    lines = [line.strip() for part in parts for line in inspect.getsource(part).splitlines()]
    code = [line for line in lines if line and not line.startswith(('"""', "#"))]
    assert len(code) <= 28 and max(map(len, lines)) <= 96
