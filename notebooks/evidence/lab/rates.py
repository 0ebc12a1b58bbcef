"""Which learning rates did each system choose? From the grids whose rates are "tried".

means(runs, "code")             mean loss of three seeds: a row a choice, a column a system
chosen(runs, "x0-v", "code")    the rates with the lowest of these
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


def chosen(runs, plan, text):
    found = means(runs, text)
    if plan not in found:
        raise NotRecorded(
            f"wanted runs of {plan} on {text} that tried rates, got none: ask for them in a grid "
            f'"tuning_…" with rates = "tried", and record it whole'
        )
    return found[plan].idxmin()


def gain_of_tuning(runs, plan, text):
    """How far a system's best mean is ahead of its own at the recipe's rates."""
    found = means(runs, text)[plan]
    return float(found["the recipe's"] - found.min())


def ahead_at_best(runs, plan, over, text):
    """How far a system's best mean is ahead of another's."""
    found = means(runs, text)
    return float(found[over].min() - found[plan].min())


def ahead_beyond(runs, plan, text):
    """How far one rate beyond the last is ahead of the best of those that were tried first."""
    further = means(runs, text, BEYOND)[plan].dropna().item()
    return float(means(runs, text)[plan].min() - further)


def at_rate(runs, plan, at, text):
    """How far a system is ahead at other rates, "table x 2", of itself at the recipe's."""
    found = means(runs, text)[plan]
    return float(found["the recipe's"] - found[at])


def ahead_finer(runs, plan, at, text):
    """How far half a step to one side, "matrices x 0.707", is ahead of a system's choice."""
    return float(means(runs, text)[plan].min() - means(runs, text, FINER)[plan][at])


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
