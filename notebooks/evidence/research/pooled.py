"""What if all plans scatter alike? Differences from the baseline with one spread for all."""

import math
import statistics

from minimal.compare.intervals import by_cell, t_quantile


def pooled(rows, metric, baseline="standard", share=0.95):
    """Each plan against the baseline with one spread for all plans: what is left of the values once
    the mean of each plan and of each (size, seed) is taken out, a two-way analysis of variance.

    It has (plans - 1)(cells - 1) degrees of freedom where a paired interval has cells - 1, so no
    plan is clear by the luck of its own three seeds; the price is the belief that all plans
    scatter alike. Only cells that every plan has count. With two plans it is paired's interval."""
    grid = by_cell(rows, metric)
    if baseline not in grid:
        raise ValueError(f"wanted a baseline of {', '.join(grid)}; got {baseline!r}")
    cells = sorted(set.intersection(*map(set, grid.values())), key=str)
    dof = (len(grid) - 1) * (len(cells) - 1)
    if dof < 1:
        raise ValueError(
            f"wanted two plans and two (size, seed) that all have, got {len(grid)} and "
            f"{len(cells)}: leave out the plans that lack rows"
        )
    # a value is its plan's mean plus its cell's, less the mean of all, plus chance
    mean = {plan: statistics.fmean(values[cell] for cell in cells) for plan, values in grid.items()}
    level = {cell: statistics.fmean(values[cell] for values in grid.values()) for cell in cells}
    whole = statistics.fmean(mean.values())
    chance = [
        values[cell] - mean[plan] - level[cell] + whole
        for plan, values in grid.items()
        for cell in cells
    ]
    spread = math.sqrt(math.fsum(value**2 for value in chance) / dof)
    reach = t_quantile((1 + share) / 2, dof) * spread * math.sqrt(2 / len(cells))
    table = []
    for plan in grid:
        change = mean[plan] - mean[baseline]
        row = dict(plan=plan, n=len(cells), spread=spread, dof=dof, difference=change)
        row |= dict(low=change - reach, high=change + reach, clear=abs(change) > reach)
        table.append(row)
    return table
