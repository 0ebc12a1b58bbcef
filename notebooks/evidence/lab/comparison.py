"""How far is one system ahead of another? On the same seeds, with a 95 % interval.

    lead(runs, "x0-v", text="code", rates="fine")             over standard
    lead(runs, "row12", over="row8", text="code", rates="tuned")
    leads(runs, ["x0-v", "row8"], text="code", rates="tuned")  a row each, and what stays clear
                                                               among so many
    change(after, before)                                      tested as a change, seed by seed

A lead above zero means a lower held-out loss than the other. Where runs keep the loss of stretches
of the held-out text, the interval holds the error of the rows beside that of the seeds.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from course.significance import benjamini_hochberg, holm
from minimal.compare.intervals import FEWEST


class NotRecorded(ValueError):
    """No whole grid has these runs."""


@dataclass(frozen=True)
class Lead:
    """A mean over pairs of seeds, and its standard error."""

    by_seed: pd.Series
    error: float

    @property
    def n(self):
        return len(self.by_seed)

    @property
    def mean(self):
        return float(self.by_seed.mean())

    def reach(self, share=0.95):
        """Half of an interval's width, by Student's t."""
        return float(stats.t.ppf((1 + share) / 2, self.n - 1) * self.error)

    @property
    def low(self):
        return self.mean - self.reach()

    @property
    def high(self):
        return self.mean + self.reach()

    @property
    def clear(self):
        """Does the interval exclude zero, and are there enough seeds to say so?"""
        return self.n >= FEWEST and not self.low <= 0 <= self.high

    @property
    def p(self):
        """Of a lead of zero, two-sided."""
        return self.p_at(0.0)

    def p_at(self, value):
        """Of a lead of this value, two-sided."""
        t = abs(self.mean - value) / self.error if self.error else math.inf
        return float(2 * stats.t.sf(t, self.n - 1))

    def p_of(self, low=None, high=None):
        """Of what the interval says of a range, that it lies in it or beyond it: below .05 exactly
        where no end of the range lies in the interval."""
        return max(self.p_at(end) for end in (low, high) if end is not None)

    def __neg__(self):
        """The lead of the other system."""
        return Lead(-self.by_seed, self.error)

    def __str__(self):
        return f"{signed(self.mean)} ({signed(self.low)} to {signed(self.high)})"


def signed(value, digits=3):
    """A number with its sign and a true minus, as the pages write it."""
    return f"{value:+.{digits}f}".replace("-", "−")


def lead(runs, plan, over="standard", **where):
    """The Lead of a system over another. `where` chooses rows by column: text="code", grid=…,
    rates="tuned"; `plan` and `over` are cells, "bov-fixed" or "standard, hidden 416"."""
    some = rows_where(runs, **where)
    ours, theirs = by_seed(some, plan, where), by_seed(some, over, where)
    seeds = ours.index.intersection(theirs.index)
    if len(seeds) < 2:
        raise ValueError(f"wanted two seeds that {plan} and {over} share, got {len(seeds)}")
    check_states(ours, theirs, plan, over)
    return paired(ours.loc[seeds], theirs.loc[seeds])


def rows_where(runs, **where):
    """The rows of a table whose columns have these values."""
    for column, value in where.items():
        runs = runs[runs[column] == value]
    return runs


def by_seed(runs, cell, where=()):
    """The runs of one cell, a row a seed. Grids that share a run count it once."""
    some = runs[runs.cell == cell].drop_duplicates(["seed", "loss"])
    named = ", ".join(f"{name}={value!r}" for name, value in dict(where).items()) or "all rows"
    if some.empty:
        raise NotRecorded(f"wanted runs of {cell}, got none in {named}")
    if some.seed.duplicated().any():
        grids = ", ".join(sorted(set(some.grid)))
        raise ValueError(
            f"wanted one run of {cell} a seed, got several in {named}: name text, rates, steps or "
            f"grid ({grids})"
        )
    return some.set_index("seed").sort_index()


def check_states(ours, theirs, plan, over):
    states = {*ours.state.dropna(), *theirs.state.dropna()}
    if len(states) > 1:
        raise ValueError(
            f"wanted {plan} and {over} of one state of the numbers, got {', '.join(sorted(states))}"
        )


def paired(ours, theirs):
    """The Lead of rows over other rows of the same seeds."""
    ahead = theirs.loss - ours.loss
    error = stats.sem(ahead)
    if ours.held_out.notna().all() and theirs.held_out.notna().all():
        stretches = np.stack(theirs.held_out) - np.stack(ours.held_out)  # (seeds, stretches)
        error = math.hypot(error, error_along(stretches.mean(0)))
    return Lead(ahead, float(error))


def error_along(values):
    """The standard error of the mean of numbers in the order of a text, where neighbours are alike:
    covariances of the nearest count, too (Newey and West, 1987, their weights, the usual reach)."""
    n = len(values)
    apart = values - np.mean(values)
    products = np.correlate(apart, apart, "full")[n - 1 :]  # of every distance, from 0
    reach = int(4 * (n / 100) ** (2 / 9))
    weights = 1 - np.arange(reach + 1) / (reach + 1)
    counted = products[0] + 2 * weights[1:] @ products[1 : reach + 1]
    return (counted / (n * (n - 1))) ** 0.5


def change(after, before):
    """By how much one Lead exceeds another, seed by seed."""
    return difference(after.by_seed, before.by_seed)


def difference(first, second):
    """The Lead of one Series over another on the seeds that they share, whose error is that of the
    seeds alone."""
    return of_seeds((first - second).dropna())


def of_seeds(ahead):
    """The Lead of some seeds, whose error is that of the seeds alone."""
    error = stats.sem(ahead) if len(ahead) > 1 else math.nan
    return Lead(pd.Series(ahead), float(error))


def effect(runs, after, before):
    """The Lead of one change: the mean over all plans that have a twin with `after` in place of
    `before`, as dva/one/ffn/wo is one of dva/many/ffn/wo."""
    loss = runs.pivot(index="plan", columns="seed", values="loss")
    swap = lambda plan: "/".join(after if part == before else part for part in plan.split("/"))
    twins = {plan: swap(plan) for plan in loss.index if swap(plan) != plan}
    gains = [loss.loc[plan] - loss.loc[twin] for plan, twin in twins.items() if twin in loss.index]
    mean = sum(gains) / len(gains)
    return Lead(mean, float(stats.sem(mean)))


def leads(runs, plans, over="standard", **where):
    """A row a system, best first: its lead, and whether it stays clear among all of them, by
    Benjamini-Hochberg (`bh`: of what is clear one in twenty is a false alarm) and by Holm."""
    found = {plan: lead(runs, plan, over, **where) for plan in plans}
    return tabled(found).sort_values("lead", ascending=False)


def tabled(found):
    """{name: Lead} as a table, a row a name in their order, as `picture` takes it."""
    among = stay_clear({plan: one.p for plan, one in found.items()})
    rows = [
        dict(plan=plan, n=one.n, lead=one.mean, low=one.low, high=one.high, clear=one.clear)
        | dict(p=one.p, bh=among[plan][0], holm=among[plan][1])
        for plan, one in found.items()
    ]
    return pd.DataFrame(rows).set_index("plan")


def stay_clear(ps):
    """{name: p} -> {name: (by Benjamini-Hochberg, by Holm)}: is it clear at 5 % among them all?"""
    corrected = benjamini_hochberg(ps), holm(ps)
    return {name: tuple(p[name] < 0.05 for p in corrected) for name in ps}
