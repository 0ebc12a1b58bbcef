"""Do our optimizers step as the public code's? Their optimizer, fed with our gradients, on the CPU.

MINIMAL_OFFICIAL names a folder with checkouts, as tests/model/test_official.py says. Bank of Values
is compared there; here are modded-nanogpt (train_gpt_medium.py) and the run scripts of ResFormer.
test_recipes.py compares every recipe with its formula, without anybody's code.
"""

import re
from types import SimpleNamespace

import pytest
import torch

from minimal.training import optim
from minimal.training.recipes import RECIPES
from minimal.variants import build
from tests.model import official

pytestmark = pytest.mark.official

STEPS = 5960  # of their run
SIZE = dict(layers=16, width=128, heads=1, vocab=256, context=128, windows="LSSSLSSSSSSLSSSL")
SCRIPT = "scripts/run_llama_resformer_82M.sh"


class Alone:
    """torch.distributed for one process."""

    @staticmethod
    def all_gather(into, tensor, async_op):
        done = torch.futures.Future()
        done.set_result(None)
        return SimpleNamespace(get_future=lambda: done)


class Masters:
    """Stands in for their `update`, whose integer arithmetic PyTorch has on a GPU alone.

    There the upper half of each number lies in the bf16 parameter and the lower in `mantissa`; here
    the fp32 number lies in a tensor of its own. The other lines are theirs.
    """

    def __init__(self, params, polynomials):
        self.of = {p.data_ptr(): p.detach().float().clone() for p in params}
        self.polynomials, self.decays = polynomials, set()

    def update(self, upper, mantissa, buffer, grad, momentum, eff_lr, eff_weight_decay):
        master, grad = self.of[upper.data_ptr()], grad.float()
        buffer.copy_(momentum * buffer + (1 - momentum) * grad)
        v = self.polynomials(momentum * buffer + (1 - momentum) * grad)
        master.mul_(1 - eff_weight_decay)
        master.add_(v, alpha=-eff_lr.item())
        self.decays.add(round(eff_weight_decay.item(), 9))


def their_polynomials(file):
    """Five Newton-Schulz steps, in fp32 instead of bf16."""
    end = "@torch.compile\ndef update("
    code = official.executed(
        file, "def zeropower_via_newtonschulz5(", end, torch=torch, Tensor=torch.Tensor
    )

    def polynomials(matrix):
        with official.OnCpuInFp32():
            return code.zeropower_via_newtonschulz5(matrix)

    return polynomials


def their_setup(file, other, update):
    """Their two optimizers for this model, as their script groups it, and their schedule."""
    names = dict(torch=torch, nn=torch.nn, Tensor=torch.Tensor)
    muon = official.executed(file, "class Muon(", "def norm(", dist=Alone, update=update, **names)
    return official.executed(
        file,
        "# collect the parameters to optimize",
        "# attention window size schedule",
        model=other,
        Muon=muon.Muon,
        rank=0,
        world_size=1,
        args=SimpleNamespace(num_iterations=STEPS, cooldown_frac=0.7),
        **names,
    )


@pytest.mark.parametrize("first", [100, 3000])  # momentum rises; the rate falls
def test_five_steps_of_modded_nanogpts_optimizers_move_the_weights_as_ours(first, monkeypatch):
    """Rates, momentum, decays and AdamW are theirs; their polynomials are put into our Muon."""
    file = official.checkout("modded-nanogpt") / "train_gpt_medium.py"

    # one model on both sides, its numbers those that bf16 can hold
    model = build("modded", "nano", style="modded", **SIZE)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p).bfloat16())
    with official.OnCpuInFp32():
        other = official.modded(file.parent).GPT(
            vocab_size=256, num_layers=16, num_heads=1, model_dim=128, max_seq_len=128
        )
    pairs, rest = official.paired(model, other, official.modded_rules(model.streams[0].skips))
    assert not rest
    for pair in pairs:
        pair.put()
    matrices = [p for p in other.blocks.parameters() if p.ndim >= 2]
    for p in matrices:
        p.data = p.data.bfloat16()

    # both optimizers
    polynomials = their_polynomials(file)
    monkeypatch.setattr(optim, "orthogonal", polynomials)
    masters = Masters(matrices, polynomials)
    theirs = their_setup(file, other, masters.update)
    ours = optim.Optimizer(model, RECIPES["modded"], batch_tokens=2**19, steps=STEPS)

    start = {pair.name: pair.ours.detach().clone() for pair in pairs}
    for step in range(first, first + 5):
        for p in other.parameters():
            p.grad = torch.zeros_like(p)
        for pair in pairs:
            pair.ours.grad = torch.randn_like(pair.ours).bfloat16().float()
            there = pair.whole.grad if pair.at is None else pair.whole.grad[pair.at]
            there.copy_((pair.ours.grad * pair.sign).reshape(there.shape))
        for group in [*theirs.optimizer1.param_groups, *theirs.optimizer2.param_groups]:
            group["lr"] = group["initial_lr"] * theirs.get_lr(step)
        warm = min(step / 300, 1)
        theirs.optimizer2.param_groups[0]["momentum"] = (1 - warm) * 0.85 + warm * 0.95
        for optimizer in theirs.optimizers:
            optimizer.step()
        ours.step(step)

    worst = 0.0
    for pair in pairs:
        whole = masters.of.get(pair.whole.data_ptr(), pair.whole.detach())
        way = (pair.ours.detach() - start[pair.name]).norm()
        apart = (pair.ours.detach() - pair.seen(whole)).norm()
        assert way > 0 and apart < 1e-4 * way, pair.name
        worst = max(worst, (apart / way).item())
    print(f"modded: apart by {worst:.1e} of the way; decays a step {sorted(masters.decays)}")
    last = theirs.get_lr(first + 4)
    assert {round(decay * last, 9) for decay in (2.5e-4, 5.0e-4)} <= masters.decays


def test_resformers_run_scripts_ask_for_our_recipe():
    """AdamW of PyTorch through the Hugging Face trainer: its options are what can be compared."""
    text = (official.checkout("Value-Residual-Learning") / SCRIPT).read_text()
    asked = dict(re.findall(r"--(\w+) ([^\s\\]+)", text))
    values = dict(re.findall(r"^(\w+)=([\d.e-]+)$", text, re.M))
    number = lambda name: float(values.get(asked[name].strip("${}"), asked[name]))
    recipe = RECIPES["resformer"]
    row, steps = recipe.rows["matrix"], int(number("max_steps"))
    assert asked["optim"] == "adamw_torch"
    assert asked["lr_scheduler_name"] == "linear_warmup_cosine"
    assert (row.lr, row.decay) == (number("learning_rate"), number("weight_decay"))
    assert row.betas == (number("adam_beta1"), number("adam_beta2"))
    assert (row.eps, recipe.clip) == (number("adam_epsilon"), number("max_grad_norm"))
    assert (recipe.lr.warmup, recipe.steps) == (number("warmup_step"), steps)
    assert recipe.lr(steps, steps) * row.lr == pytest.approx(float(values["END_LR"]))
