"""All recorded runs as one table, and the one comparison: how far ahead, paired by seed?

    pairs.runs()                  a row a run of every whole grid
    lead(df, "resformer")         its lead over standard by seed; ahead is above zero
    told(lead(df, "resformer"))   its mean and interval in words

A cell is a plan and what was changed in it: "bov-fixed, hidden 96". Choose rows with pandas first;
a cell that has two rows for one seed is refused.
"""

import json
import math

import pandas as pd
from scipy import stats

from minimal.compare import intervals

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


def by_seed(df, cell, value="loss"):
    """The values of one cell, a Series by seed."""
    found = df[df.cell == cell]
    if found.seed.duplicated().any():
        raise ValueError(f"wanted one setting of {cell}, got several: choose rows first")
    return found.set_index("seed")[value].sort_index()


def lead(df, cell, over="standard", value="loss"):
    """How far a cell ends below another, a Series by seed, of the seeds that both have."""
    return between(by_seed(df, cell, value), by_seed(df, over, value))


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


def told(values, digits=3):
    """Their mean and its interval; bold where it is clear of zero."""
    values = list(values)
    return in_words(*intervals.interval(values), len(values), digits)


def in_words(mean, low, high, n, digits=3):
    words = signed(mean, digits)
    if intervals.clear(low, high, n):
        words = f"**{words}**"
    return words if low is None else f"{words} ({signed(low, digits)} to {signed(high, digits)})"


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


def with_rows(ours, theirs, share=0.95):
    """(mean, low, high) of a lead whose interval holds the error of the held-out rows beside that
    of the seeds. `ours` and `theirs` are {seed: a loss a held-out row}, of the same rows.

    The two errors add as squares: of the seeds' means, and of the rows' means over seeds."""
    table = pd.DataFrame({seed: pd.Series(theirs[seed]) - ours[seed] for seed in ours})
    by_seeds, by_rows = table.mean(axis=0), table.mean(axis=1)
    error = (stats.sem(by_seeds) ** 2 + stats.sem(by_rows) ** 2) ** 0.5
    reach = stats.t.ppf((1 + share) / 2, len(by_seeds) - 1) * error
    mean = by_seeds.mean()
    return mean, mean - reach, mean + reach
