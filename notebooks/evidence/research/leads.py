"""All recorded runs as one table, and the one comparison: how far ahead, paired by seed?

    pairs.runs()                  a row a run of every whole grid
    lead(df, "resformer")         its lead over standard by seed; ahead is above zero
    with_interval(lead(...))      its mean and interval in words
    as_row("resformer", lead(...))  the same as a row of a table, which figures draw

A cell is a plan and what was changed in it: "bov-fixed, hidden 96". Choose rows with pandas first;
a cell that has two rows for one seed is refused.
"""

import json
import math
import statistics
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from minimal.compare import intervals

UP_TO_TWELVE = "no one two three four five six seven eight nine ten eleven twelve"
COUNTS = f"{UP_TO_TWELVE} thirteen fourteen fifteen sixteen seventeen".split()

SETTING = ("corpus", "steps", "batch", "rows", "evaluate")  # what is asked beside plan and changes


# ---- the table -----------------------------------------------------------------------------------


def frame(rows, grid=""):
    """Rows of a file as a DataFrame: their plain fields, the text, the cell and what differs."""
    lines = []
    for row in rows:
        asked = row.get("asked", {})
        differs = {name: value for name, value in asked.items() if name not in SETTING}
        changes = differs.get("changes") or {}
        plain = {name: value for name, value in row.items() if isinstance(value, str | int | float)}
        plain |= dict(grid=grid, text=asked.get("corpus", ""), cell=cell_of(row["plan"], changes))
        lines.append(plain | dict(differs=json.dumps(differs, sort_keys=True)))
    return pd.DataFrame(lines)


def cell_of(plan, changes):
    return ", ".join([plan, *(f"{name} {value}" for name, value in changes.items())])


# ---- the comparison ------------------------------------------------------------------------------


def cell_by_seed(df, cell, value="loss"):
    """The values of one cell, a Series by seed."""
    found = df[df.cell == cell]
    if found.seed.duplicated().any():
        raise ValueError(f"wanted one setting of {cell}, got several: choose rows first")
    return found.set_index("seed")[value].sort_index()


def cell_lead(df, cell, over="standard", value="loss"):
    """How far a cell ends below another, a Series by seed, of the seeds that both have."""
    return between(cell_by_seed(df, cell, value), cell_by_seed(df, over, value))


def between(ours, theirs):
    """How far ours lie below theirs, of two {seed: value}, as a Series."""
    return pd.Series(paired(ours, theirs), dtype=float)


def paired(ours, theirs):
    """The same as a dict; a run that blew up has no lead. The one home of "ahead, by seed"."""
    both = sorted(set(ours.keys()) & set(theirs.keys()))
    pairs = {seed: (ours[seed], theirs[seed]) for seed in both}
    known = {seed: pair for seed, pair in pairs.items() if None not in pair}
    ahead = {seed: float(their - our) for seed, (our, their) in known.items()}
    return {seed: lead for seed, lead in ahead.items() if not math.isnan(lead)}


def change(first, second):
    """By how much the first of two leads exceeds the second, seed by seed: tested as a change."""
    return between(second, first)


def rank_correlation(first, second):
    """Spearman's: how alike two lists order the same things."""
    return float(stats.spearmanr(first, second).statistic)


# ---- a lead as a row of a table, and in words ----------------------------------------------------


def as_row(plan, values):
    """A lead by seed as figures.interval_marks draws it: its mean, its interval, and whether this
    is clear of zero. The one home of such a row."""
    values = list(values)
    return row_of_interval(plan, len(values), *intervals.interval(values))


def row_of_interval(plan, n, mean, low, high):
    clear = intervals.clear(low, high, n)
    return dict(plan=plan, n=n, difference=mean, low=low, high=high, clear=clear)


def with_interval(values, digits=3):
    """Their mean and its interval; bold where it is clear of zero."""
    return row_in_words(as_row("", values), digits)


def row_in_words(row, digits=3):
    words = signed(row["difference"], digits)
    if row["clear"]:
        words = f"**{words}**"
    return words if row["low"] is None else f"{words} ({bounds(row, digits)})"


def bounds(row, digits=3):
    """An interval, "+0.010 to +0.030"."""
    return from_to(row["low"], row["high"], digits)


def from_to(low, high, digits=3):
    return f"{signed(low, digits)} to {signed(high, digits)}"


def mean_and_range(values, form="{:.2f}"):
    """Mean, least and most of several runs; of one run its value alone."""
    mean = form.format(statistics.fmean(values))
    if len(values) == 1:
        return mean
    return f"{mean} ({form.format(min(values))} to {form.format(max(values))})"


def number(value, digits=3):
    """A number as the pages write it: a true minus, no sign where it is not needed."""
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value, digits=3):
    return f"{value:+.{digits}f}".replace("-", "−")


def to_markdown(df):
    """A table of words as Markdown, its index as the first column."""
    lines = [[df.index.name or "", *df.columns], ["---"] * (len(df.columns) + 1)]
    lines += [[name, *line] for name, line in zip(df.index, df.values)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


# ---- the error of the held-out text --------------------------------------------------------------


class Read(NamedTuple):
    """What a run lost on the held-out text: in all, and a number every sixteen rows."""

    loss: float
    stretches: list

    @classmethod
    def of(cls, row):
        return cls(row["loss"], row["held_out"])

    def plus(self, other):
        both = zip(self.stretches, other.stretches)
        return Read(self.loss + other.loss, [sum(pair) for pair in both])


def as_row_with_rows(plan, ours, theirs, share=0.95):
    """A lead as a row of a table; its interval holds the error of the held-out rows beside that of
    the seeds. `ours` and `theirs` are {seed: Read}, of the same rows.

    The two errors add as squares: of the seeds' means, and of the rows' means over seeds. The lead
    itself is of the whole losses, since the last stretch of a text is shorter than the others."""
    both = sorted(ours.keys() & theirs.keys())
    by_seeds = pd.Series({seed: theirs[seed].loss - ours[seed].loss for seed in both})
    stretches = {seed: np.subtract(theirs[seed].stretches, ours[seed].stretches) for seed in both}
    by_rows = pd.DataFrame(stretches).mean(axis=1)
    error = (stats.sem(by_seeds) ** 2 + error_along(by_rows) ** 2) ** 0.5
    reach = stats.t.ppf((1 + share) / 2, len(by_seeds) - 1) * error
    mean = by_seeds.mean()
    return row_of_interval(plan, len(by_seeds), mean, mean - reach, mean + reach)


def error_along(values):
    """The standard error of the mean of numbers that stand in the order of a text, where neighbours
    are alike, as stretches of one file are: covariances of the nearest count, too (Newey and West,
    1987, with their weights and the usual reach)."""
    n = len(values)
    apart = np.asarray(values) - np.mean(values)
    products = np.correlate(apart, apart, "full")[n - 1 :]  # of every distance, from 0
    reach = int(4 * (n / 100) ** (2 / 9))
    weights = 1 - np.arange(reach + 1) / (reach + 1)
    counted = products[0] + 2 * weights[1:] @ products[1 : reach + 1]
    return (counted / (n * (n - 1))) ** 0.5
