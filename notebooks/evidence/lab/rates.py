"""Which learning rates did each system choose? From the grids whose rates are "tried".

means(runs, "code")             mean loss of three seeds: a row a choice, a column a system
chosen(runs, "code", "x0-v")    the rates with the lowest of these
"""

import numpy as np

from evidence.lab.asked import MATRICES
from evidence.lab.comparison import NotRecorded
from minimal.training import recipes

RECIPE = recipes.RECIPES["course"]
COARSE = r"^tuning_(?!beyond|finer)"  # grids of the first choice: half, once and twice
FIRST = r"^tuning_[a-z]+$"  # of these, the first six systems
FINER, BEYOND = r"^tuning_finer", r"^tuning_beyond"  # half a step to both sides; one further


def in_words(overrides):
    """Rates as multiples of the recipe's: "matrices x 2", "beta x 0.1", or "the recipe's"."""
    if not isinstance(overrides, dict):
        return "the recipe's"
    times = {round(how["lr"] / RECIPE.rows[role].lr, 3) for role, how in overrides.items()}
    roles = "matrices" if set(overrides) == set(MATRICES) else ", ".join(overrides)
    return f"{roles} x {times.pop():g}"


def tried(runs, text, grids=COARSE):
    """The runs that chose rates on a text, with these in words."""
    some = runs[(runs.rates == "tried") & (runs.text == text) & runs.grid.str.contains(grids)]
    return some.assign(at=some.overrides.map(in_words))


def means(runs, text, grids=COARSE):
    return tried(runs, text, grids).groupby(["at", "plan"], sort=False).loss.mean().unstack("plan")


def means_of(runs, text, plan, grids=COARSE):
    """The means of one system, a row a choice."""
    found = means(runs, text, grids)
    if plan not in found:
        raise NotRecorded(
            f"wanted runs of {plan} on {text} that tried rates, got none: ask for them in a grid "
            f'"tuning_…" with rates = "tried", and record it whole'
        )
    return found[plan].dropna()


def chosen(runs, text, plan):
    return means_of(runs, text, plan).idxmin()


def gain_of_tuning(runs, text, plan):
    """How far a system's best mean is ahead of its own at the recipe's rates."""
    found = means_of(runs, text, plan)
    return float(found["the recipe's"] - found.min())


def at_rate(runs, text, plan, *at):
    """How far a system is ahead at other rates, "matrices x 2", of itself at the recipe's."""
    found = means_of(runs, text, plan)
    return float(found["the recipe's"] - found[" ".join(at)])


def ahead_beyond(runs, text, plan):
    """How far one rate beyond the last is ahead of the best of those that were tried first."""
    further = means_of(runs, text, plan, BEYOND).item()
    return float(means_of(runs, text, plan).min() - further)


def ahead_finer(runs, text, plan, times):
    """How far half a step to one side, 0.707, is ahead of a system's choice."""
    finer = means_of(runs, text, plan, FINER)[f"matrices x {times}"]
    return float(means_of(runs, text, plan).min() - finer)


def choosers(runs, text, *at):
    """How many of the first six systems chose these rates."""
    return int((means(runs, text, FIRST).idxmin() == " ".join(at)).sum())


def of_matrices(runs, text):
    """The means of the first six systems at the three rates of their matrices, (rates, systems)."""
    return means(runs, text, FIRST).loc[["matrices x 0.5", "the recipe's", "matrices x 2"]].values


def from_the_next(runs, text):
    """How far the best of these rates is ahead of the next, where that is most."""
    best, second, _ = np.sort(of_matrices(runs, text), axis=0)
    return float((second - best).max())


def turned_round(runs, text):
    """By how much at most two systems change places between two rates, both ways as far."""
    found = of_matrices(runs, text)
    behind = found[:, :, None] - found[:, None, :]  # (rates, systems, systems)
    return float(np.minimum(behind[:, None], -behind[None]).max())


def at_best(runs, text):
    """The runs of each system at the rates that it chose, three seeds each, as a table of runs."""
    some, best = tried(runs, text), means(runs, text).idxmin()
    return some[some["at"] == some.plan.map(best)]
