"""Equal what? A run and a budget in, the run that spends the budget out.

Budgets are steps, tokens, FLOPs or seconds; equal parameters are equal tokens besides.
"""

import statistics
from dataclasses import replace

from minimal.bench.timing import clock
from minimal.compare.runs import as_trained
from minimal.kernels import recorded
from minimal.model.count import count
from minimal.train import Trainer
from minimal.variants import skeleton

# steps of a trial: those that a graph runs as they are, the one that it records, and one more
WARM_STEPS, TIMED = recorded.WARM + 2, 8


def buys(run, budget, cost):
    """The run with the steps that the budget pays for, to the nearest."""
    if budget < cost:
        raise ValueError(f"a budget of {budget:g} buys no step of {run.plan}: one costs {cost:.3g}")
    return replace(run, steps=round(budget / cost))


def by_steps(run, budget):
    return buys(run, budget, 1)


def by_tokens(run, budget):
    return buys(run, budget, tokens_a_step(run))


def by_flops(run, budget):
    counted = shape(run)
    return buys(run, budget, counted["flops_per_token"] * run.batch * counted["context"])


def by_time(run, budget):
    """As many steps as fit into `budget` seconds, by the median of a few warm steps, since the
    schedule must know its length beforehand."""
    trainer = Trainer(replace(as_trained(run), steps=WARM_STEPS + TIMED, out=None), quiet=True)
    steps, where = iter(range(WARM_STEPS + TIMED)), trainer.team.device
    seconds = clock(lambda: trainer.step(next(steps)), TIMED, WARM_STEPS, where)
    return buys(run, budget, statistics.median(seconds))


def by_parameters(run, budget):
    """Equal tokens AND equal parameters: the MLPs give or take what the value path costs, to the
    nearest unit of width."""
    target = parameters(replace(run, plan="standard"))

    def at(hidden):
        return parameters(replace(run, changes=run.changes | dict(hidden=hidden)))

    slope = at(2) - at(1)
    if slope == 0:
        raise ValueError(
            f"{run.plan} has no MLP to give parameters from: compare it by flops, tokens or time"
        )
    hidden = round(1 + (target - at(1)) / slope)
    if hidden < 1:
        raise ValueError(
            f"{run.plan} at {run.size} has {at(1) - target:,} parameters too many even without "
            "MLPs: take a larger size"
        )
    return replace(by_tokens(run, budget), changes=run.changes | dict(hidden=hidden))


MATCH = dict(
    steps=by_steps,
    tokens=by_tokens,
    flops=by_flops,
    time=by_time,
    parameters=by_parameters,
)


# ---- what a run is made of, without training it --------------------------------------------------


def shape(run):
    """Its counts (model.count) and its context."""
    model = skeleton(run.plan, run.size, **run.config())
    return count(model) | dict(context=model.config.context)


def parameters(run):
    """How many its model has: without a pass through it, as `shape` takes."""
    model = skeleton(run.plan, run.size, **run.config())
    return sum(p.numel() for p in model.parameters())


def tokens_a_step(run):
    return run.batch * skeleton(run.plan, run.size, **run.config()).config.context
