"""Did the mean move, or only the seeds? Plans against a baseline, paired by seed, and the interval
of a mean.

Samples are lists of numbers; a p is two-sided.
"""

import functools
import math
import statistics

FEWEST = 3  # pairs: two may agree by luck, and their interval has no width then


# ---- the distribution of t ----------------------------------------------------------------


@functools.cache
def functions():
    """SciPy's special functions, of the extra `compare`; loaded when the first interval asks."""
    try:
        from scipy import special
    except ImportError:
        raise ValueError("an interval needs SciPy: pip install 'minimal[compare]'") from None
    return special


def student(t, dof):
    """P(T <= t) of Student's t."""
    return float(functions().stdtr(dof, t))


def t_quantile(p, dof):
    """The t below which a share p lies: 4.303 for p = .975 and two degrees of freedom."""
    return float(functions().stdtrit(dof, p))


# ---- one sample: values, or differences of pairs -------------------------------------------------


def mean_spread(values):
    """Mean, and standard deviation between runs (n - 1); one run has no spread (None)."""
    spread = statistics.stdev(values) if len(values) > 1 else None
    return statistics.fmean(values), spread


def interval(values, share=0.95):
    """Mean, low, high of a t-interval; low and high are None where one value cannot give them."""
    mean, spread = mean_spread(values)
    if spread is None:
        return mean, None, None
    reach = t_quantile((1 + share) / 2, len(values) - 1) * spread / math.sqrt(len(values))
    return mean, mean - reach, mean + reach


def clear(low, high, n):
    """Does the interval of n values exclude zero, and are they enough to say so?"""
    return low is not None and n >= FEWEST and not low <= 0 <= high


def t_test(differences):
    """The p of a mean difference of 0, by Student's t; None where no spread was seen."""
    mean, spread = mean_spread(differences)
    if not spread:
        return None
    t = mean / (spread / math.sqrt(len(differences)))
    return 2 * (1 - student(abs(t), len(differences) - 1))


# ---- plans against a baseline, paired by (size, seed) --------------------------------------------


def by_cell(rows, metric):
    """{plan: {(size, seed): value}} of evidence rows; a run that blew up has no value."""
    if rows and not any(metric in row for row in rows):
        raise ValueError(f"no row has a {metric!r}: choose one of {', '.join(rows[0])}")
    grid = {}
    for row in rows:
        cell = (row.get("size"), row.get("seed"))
        values = grid.setdefault(row["plan"], {})
        if cell in values:
            raise ValueError(
                f"two rows for {row['plan']}, size {cell[0]}, seed {cell[1]}; "
                "keep one budget: filter the rows by steps or tokens first"
            )
        value = row.get(metric)
        if value is not None and math.isfinite(value):
            values[cell] = value
    return grid


def paired(rows, metric, baseline="standard", share=0.95, plans=None, cells=None):
    """Each plan against the baseline on the same (size, seed): one dict a plan with n, mean,
    spread, difference, low, high, clear, p, and missing, the cells that plan or baseline lacks.
    Name `plans` or `cells` [(size, seed)] to hear of absent ones, too."""
    grid = by_cell(rows, metric)
    wanted = cells or sorted({(row.get("size"), row.get("seed")) for row in rows}, key=str)
    base = grid.get(baseline, {})
    table = []
    for plan in plans or grid:
        own = {cell: value for cell, value in grid.get(plan, {}).items() if cell in wanted}
        both = [cell for cell in wanted if cell in own and cell in base]
        differences = [own[cell] - base[cell] for cell in both]
        mean, spread = mean_spread(list(own.values())) if own else (None, None)
        change, low, high = interval(differences, share) if both else (None, None, None)
        row = dict(plan=plan, n=len(both), mean=mean, spread=spread)
        row |= dict(difference=change, low=low, high=high)
        row["clear"] = plan != baseline and clear(low, high, len(both))
        row["p"] = t_test(differences) if both else None
        row["missing"] = [cell for cell in wanted if cell not in both]
        table.append(row)
    return table


def ahead(table):
    """Rows of `paired` turned, for what is better when it is lower: by how much a plan's loss ends
    below the baseline's. Ahead is above zero."""
    turned = lambda x: None if x is None else 0 - x  # a 0 stays 0, without a sign
    return [
        row
        | dict(difference=turned(row["difference"]))
        | dict(low=turned(row["high"]), high=turned(row["low"]))
        for row in table
    ]
