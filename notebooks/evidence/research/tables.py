"""Which tables stand on the page of findings? Each as Markdown, filled from the records."""

import statistics

import pandas as pd

from course import records
from course.markdown import table
from evidence.bench.table import generated_on, generation_table  # noqa: F401, for the page
from evidence.bench.table import speed_table as speed  # noqa: F401, page.md asks for it
from evidence.research import leads, measured, noted, numbers, pairs, slopes, states
from evidence.research.grids import EXPLORATORY, GRIDS
from evidence.research.names import NAMES
from evidence.research.numbers import number, signed

BASE = "standard"

MIXINS = {  # (plan, recipe) of lambdas.json, in words
    ("modded", "modded"): "plain",
    ("modded", "modded-open"): "window open",
    ("modded", "modded-constant"): "rate constant",
    ("modded-moved", "modded"): "gap moved",
    ("modded-whole", "modded"): "no gap",
}


# ---- every system --------------------------------------------------------------------------------


def systems_table(place):
    """Every system against standard on a text, best first."""
    found = numbers.systems(place)
    file = numbers.FILES_OF[place][0]
    base = next(row for row in pairs.whole_rows(file) if row["plan"] == "standard")
    losses = [row["loss"] for row in pairs.whole_rows(file) if row["plan"] == base["plan"]]
    average = f"{number(statistics.fmean(losses))} ± {number(statistics.stdev(losses))}"
    lines = [["standard", "`standard`", average, "", "", ""]]
    for row in found:
        change = signed(-row["difference"])
        change = f"**{change}**" if row["clear"] else change
        lines.append(
            [
                NAMES[row["plan"]],
                f"`{row['plan']}`",
                f"{number(row['mean'])} ± {number(row['spread'])}",
                f"{change} {marks(row)}".strip(),
                f"{signed(-row['high'])} to {signed(-row['low'])}",
                f"{signed(-row['pool_high'])} to {signed(-row['pool_low'])}",
            ]
        )
    several = {row["n"] for row in found} != {len(losses)}
    head = [
        "system",
        "plan",
        "nats",
        "ahead of standard",
        "95 % interval",
        "with the spread of all",
    ]
    if several:
        head.append("seeds")
        for line, n in zip(lines, [len(losses), *(row["n"] for row in found)]):
            line.append(n)
    return table(head, lines)


def marks(row):
    """Does it stay clear among all of the table? And is it shown to be little?"""
    among = "‡" if row["by_holm"] else "†" * row["by_rate"]
    return among + "≈" * row["alike"]


# ---- grids that compare plans with standard ------------------------------------------------------


def leads_table(*grids):
    """How far every cell of whole grids is ahead of standard of its grid, best first in the first
    of them; a column a grid."""
    columns, order = {}, {}
    for grid in filter(pairs.whole, grids):
        df = pairs.runs_of(grid)
        cells = [cell for cell in df.cell.unique() if cell != "standard"]
        name = grid.rpartition("_")[2]
        columns[name] = {cell: lead_in_table(grid, cell) for cell in cells}
        for cell in cells:
            order.setdefault(
                cell, -leads.cell_by_seed(df, cell).mean() if len(columns) == 1 else -9
            )
    table_ = pd.DataFrame(columns).fillna("").rename_axis("plan")
    table_ = table_.loc[sorted(table_.index, key=order.get, reverse=True)]
    return leads.to_markdown(table_.rename("`{}`".format))


def lead_in_table(grid, cell):
    """A cell's lead over standard; where a grid kept the held-out rows, the interval holds their
    error, too."""
    sides = {name: {row["seed"]: row for row in rows_of_cell(grid, name)} for name in (cell, BASE)}
    ours, theirs = sides.values()
    if not all("held_out" in row for side in (ours, theirs) for row in side.values()):
        return leads.with_interval(leads.cell_lead(pairs.runs_of(grid), cell))
    both = ours.keys() & theirs.keys()
    kept = [{seed: leads.Read.of(side[seed]) for seed in both} for side in (ours, theirs)]
    return leads.row_in_words(leads.as_row_with_rows(cell, *kept))


def rows_of_cell(grid, cell):
    def name(row):
        return leads.cell_of(row["plan"], row["asked"].get("changes") or {})

    return [row for row in pairs.whole_rows(grid) if name(row) == cell]


def shares_of_first(plan, *grids):
    """The share of the first stream in a plan's mixtures by stretches of layers, a column a grid:
    the mean of all runs, and the least of one."""
    lines = []
    for first, last in ((3, 7), (8, 10), (11, 12)):
        line = [f"{first} to {last}"]
        for grid in grids:
            runs = [curve[first - 2 : last - 1] for curve in measured.first_shares(grid, plan)]
            means = [statistics.fmean(curve) for curve in runs]
            line.append(f"{statistics.fmean(means):.0%} ({min(means):.0%})".replace("%", " %"))
        lines.append(line)
    return table(["layers", *(grid.rpartition("_")[2] for grid in grids)], lines)


def budgets(text):
    """The melting systems ahead of standard at its own steps, by steps."""
    return by_setting(f"budgets_{text}", lambda row: row["steps"], "{:,} steps")


def widths():
    """By how much every system is ahead of the standard of its width."""
    width_of, *_ = slopes.AXES["size"]
    return by_setting("widths_code", width_of, "width {}")


def by_setting(grid, place_of, words):
    """How far every cell of a grid is ahead of standard of its setting; a column a setting."""
    found, settings = {}, slopes.by_place(pairs.whole_rows(grid), place_of)
    for at in settings.values():
        for cell in filter(at.__contains__, slopes.SYSTEMS):
            ahead = leads.between(at[cell], at["standard"])
            found.setdefault(cell, []).append(leads.with_interval(ahead))
    columns = map(words.format, settings)
    return table(["system", *columns], [[cell, *line] for cell, line in found.items()])


def mixins():
    """What the weights of modded-nanogpt's mixin did, in short and in long runs."""
    lines = []
    for grid in ("lambdas", "lambdas_long"):
        for (plan, recipe), words in MIXINS.items():
            if rows := pairs.rows_asked(grid, plan, recipe=recipe):
                lines.append(mixin(rows, grid, plan, recipe, words))
    head = "run | turn back | largest at | outweighs | largest rise | ahead of plain"
    return table(head.split(" | "), lines)


def ahead_of_plain(grid, run):
    """How far a run is ahead of the plain one, by seed."""
    return [-lead for lead in numbers.differences("modded", f"{grid} recipe=modded", run)]


def mixin(rows, grid, plan, recipe, words):
    """One line of that table."""
    setting, run = (grid, recipe, plan), f"{plan} in {grid} recipe={recipe}"
    turn = statistics.fmean(row["turn"] for row in rows)
    return [
        f"{measured.asked_steps(grid)} steps, {words}",
        noted.fell(*setting),
        f"{100 * turn:.0f} %",
        noted.outweighs(*setting),
        signed(statistics.fmean(row["rise"] for row in rows)),
        "" if words == "plain" else leads.with_interval(ahead_of_plain(grid, run)),
    ]


# ---- what there is -------------------------------------------------------------------------------


def recorded_grids():
    """Every grid that has begun, and what is asked of it."""
    lines = []
    for name, grid in GRIDS.items():
        path = records.EVIDENCE / f"{name}.json"
        if not path.exists():
            continue
        there, total = pairs.progress(name)
        told = "whole" if there == total else f"{there} of {total}"
        state = state_in_words(records.read(path))
        kind = "exploratory" if grid.kind == EXPLORATORY else "asked before"
        lines.append([f"[{name}.json]({name}.json)", grid.what, told, kind, state])
    return table(["file", "question", "runs", "kind", "state"], lines)


def state_in_words(content):
    """The state of a file's rows, or "older" where the file does not tell it."""
    if state := states.state_of_file(content):
        return state
    return "not named" if content["rows"][0].get("commit") else "older"


def prepared():
    """The grids that have not begun."""
    names = [name for name in GRIDS if not (records.EVIDENCE / f"{name}.json").exists()]
    return ", ".join(f"`{name}`" for name in names) or "none"


def other_files():
    """What else is recorded, beside grids of runs."""
    lines = []
    for path in sorted(records.EVIDENCE.glob("*.json")):
        if path.stem not in (*GRIDS, "claims", "published"):
            what = records.read(path)["what"]
            lines.append([f"[{path.name}]({path.name})", what])
    return table(["file", "what"], lines)
