"""Does every recipe train as its formula says? Five steps of each against plain PyTorch.

The reference knows rates and schedules (test_optim compares those with the sources), and nothing of
the optimizer: AdamW is torch's own, one parameter at a time, and Muon is its source's formula, one
matrix at a time, in float64. Public code is compared in tests/model/test_official.py.
"""

from dataclasses import replace

import pytest
import torch

from minimal.training import optim
from minimal.training.recipes import ALGORITHMS, RECIPES, Row, laptop, numbers
from minimal.training.rows import KEPT
from tests.training.test_optim import by_hand, nano, optimizer

STEPS, FIRST = 200, 98  # in the middle of a run, where most schedules have left their peaks


def gradients(model, step):
    """Of every size, so that clipping has something to do."""
    chance = torch.Generator().manual_seed(step)
    return {n: torch.randn(p.shape, generator=chance) for n, p in model.named_parameters()}


def clipped(grads, norm):
    if not norm:
        return grads
    total = sum(g.double().square().sum() for g in grads.values()).sqrt()
    return {name: g * min(1.0, norm / (total.item() + 1e-6)) for name, g in grads.items()}


class PlainAdamW:
    """One parameter under torch.optim.AdamW, neither fused nor grouped."""

    def __init__(self, p, row, recipe):
        self.p, self.row, self.recipe = torch.nn.Parameter(p.clone()), row, recipe
        how = dict(betas=row.betas, eps=row.eps, weight_decay=row.decay)
        self.adamw = torch.optim.AdamW([self.p], lr=row.lr, foreach=False, fused=False, **how)

    def step(self, grad, step):
        self.p.grad = grad
        self.adamw.param_groups[0]["lr"] = self.row.lr * self.recipe.lr(step, STEPS)
        self.adamw.step()


class PlainMuon:
    """One matrix by the formula; plain decay, shaped or not, where the recipe asks for it."""

    def __init__(self, p, row, recipe):
        self.p, self.row, self.recipe = p.clone(), row, recipe
        rows, columns = p.shape
        self.buffer = torch.zeros_like(p)
        self.second = p.new_zeros(*((rows, 1) if rows >= columns else (1, columns)))
        self.shape = max(1, rows / columns) ** 0.5

    def step(self, grad, step):
        row, recipe = self.row, self.recipe
        lr = row.lr * recipe.lr(step, STEPS)
        momentum = recipe.momentum(step, STEPS)
        decay = row.decay * recipe.muon_decay(step, STEPS)
        if row.cautious:  # nanochat: the shape factor is in both, the second moment in the update
            state = self.p, grad, self.buffer, self.second
            self.p, self.buffer, self.second = by_hand(*state, lr, momentum, decay)
            return
        assert row.betas[1] is None and not row.shaped_decay  # modded-nanogpt
        self.buffer = momentum * self.buffer + (1 - momentum) * grad
        update = optim.orthogonal((momentum * self.buffer + (1 - momentum) * grad)[None])[0]
        self.p = self.p * (1 - lr * decay) - lr * self.shape * update


@pytest.mark.parametrize("recipe", RECIPES)
def test_five_steps_of_every_recipe_are_those_of_its_formula(recipe):
    """On the plan with the most roles; of five steps' way 2 per mille may differ, in fp32."""
    model = nano("vplus")
    ours = optimizer(model, recipe, steps=STEPS)
    named = dict(model.named_parameters())
    rows = optim.rows_by_name(ours.recipe, model.roles(), named)
    kinds = dict(adamw=PlainAdamW, muon=PlainMuon)
    plain = {
        name: kinds[rows[name].algorithm](p.detach().double(), rows[name], ours.recipe)
        for name, p in named.items()
    }
    start = {name: p.detach().clone() for name, p in named.items()}
    for step in range(FIRST, FIRST + 5):
        grads = gradients(model, step)
        for name, grad in clipped(grads, ours.recipe.clip).items():
            plain[name].step(grad.double(), step)
        for name, p in named.items():
            p.grad = grads[name]
        ours.step(step)
    for name, p in named.items():
        theirs = plain[name].p.detach()
        way, apart = (theirs - start[name]).norm(), (p.detach().double() - theirs).norm()
        assert way > 0 and apart < 2e-3 * way, (name, (apart / way).item())


# What a parameter without gradient loses in a step at the peak of its schedule, by role: rate times
# decay, times the shape factor where the source has it there. mlp.up is (4, 1), a factor of 2.
# fmt: off
LOST = {
    # recipe:         matrix      mlp.up       head           embed
    "bov":           (0.02 * 0.28, 0.04 * 0.28, 0.008 * 0.01, 0.3 * 0.001),
    "bov-short":     (0.02 * 0.28, 0.04 * 0.28, 0.008 * 0.01, 0.3 * 0.001),
    "course":        (0.02 * 1.0,  0.04 * 1.0,  0.02 * 0.01,  0.3 * 0.001),
    "modded":        (2.5e-4,      5.0e-4,      0.0,          0.0),
    "modded-open":   (2.5e-4,      5.0e-4,      0.0,          0.0),
    "modded-constant": (2.5e-4,    5.0e-4,      0.0,          0.0),
    "resformer":     (6e-5,        6e-5,        6e-5,         6e-5),
    "gpt2":          (6e-5,        6e-5,        6e-5,         6e-5),
    "gpt2-constant": (6e-5,        6e-5,        6e-5,         6e-5),
    "bert":          (1e-6,        1e-6,        1e-6,         1e-6),
    "squad":         (0.0,         0.0,         0.0,          0.0),
}
# fmt: on
NAMES = ("blocks.1.attention.out.weight", "blocks.1.mlp.up.weight", "head.weight", "embed.weight")


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_effective_decay_of_every_recipe_is_that_of_its_source(recipe):
    model = nano().double()
    ours = optimizer(model, recipe, steps=1000)
    step = 30  # every warm-up is over; of falling rates and decays their share is known
    with torch.no_grad():
        for name in NAMES:
            model.get_parameter(name).fill_(1.0)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    ours.step(step)
    for name, lost in zip(NAMES, LOST[recipe]):
        share = ours.recipe.lr(step, 1000)
        if "blocks" in name and ours.recipe.rows["matrix"].algorithm == "muon":
            share *= ours.recipe.muon_decay(step, 1000)
        found = 1 - model.get_parameter(name).detach().mean().item()
        assert found == pytest.approx(lost * share, rel=1e-3, abs=1e-9), name


def test_recipes_that_differ_in_their_base_of_warm_ups_alone_are_told_apart():
    """Where the package has that recipe its repr is enough: kept runs are found by it."""
    ours = RECIPES["bov"]
    theirs = replace(ours, steps=100)
    assert repr(theirs) == repr(ours) and laptop(theirs).lr != laptop(ours).lr
    assert numbers(theirs) != numbers(ours)
    faster = [replace(recipe.change("matrix", lr=1.0), steps=9) for recipe in (ours, theirs)]
    assert numbers(faster[0]) == numbers(faster[1]) != numbers(replace(faster[0], steps=8))
    assert all(numbers(recipe) == repr(recipe) for recipe in RECIPES.values())


def test_a_row_of_ones_own_is_checked_where_it_is_made_and_lists_are_as_good_as_tuples():
    with pytest.raises(ValueError, match="algorithm in a recipe's row: wanted .*, got 'adam'"):
        Row("adam", 0.1)
    plain = Row("adamw", 0.1, betas=(0.9, 0.95), lr_by=("batch",))
    assert Row("adamw", 0.1, betas=[0.9, 0.95], lr_by=["batch"]) == plain
    lists = RECIPES["bov"].change("matrix", algorithm="adamw", betas=[0.9, 0.95])
    model = nano("bov")
    moved = {name for part in optimizer(model, lists).dense for name in part.named}
    assert moved >= {f"blocks.{at}.attention.out.weight" for at in range(3)}
    assert ALGORITHMS.keys() == KEPT.keys(), "what is known of one is kept, too"
