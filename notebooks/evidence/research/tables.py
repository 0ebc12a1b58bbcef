"""Which tables stand on the page of findings? Each as Markdown, filled from the records."""

import statistics

from course import records
from course.markdown import table
from evidence.research import measured, numbers, pairs, pictures, slopes, states
from evidence.research.grids import EXPLORATORY, GRIDS
from evidence.research.numbers import number, signed
from evidence.research.table import speed_table as speed  # noqa: F401, page.md asks for it

MIXINS = {  # (plan, recipe) of lambdas.json, in words
    ("modded", "modded"): "plain",
    ("modded", "modded-open"): "window open",
    ("modded", "modded-constant"): "rate constant",
    ("modded-moved", "modded"): "gap moved",
    ("modded-whole", "modded"): "no gap",
}

NAMES = pictures.HEADLINE | {
    "modded": "modded-nanogpt: U-Net, mixin, value tables",
    "vplus": "V + gated table in every second layer",
    "row13": "V + x0 W_V, both gains learned (row 13)",
    "bov-shared": "Bank of Values, one table for all layers",
    "bov-every": "Bank of Values in every layer",
    "row8": "x0 W_V, last third (row 8)",
    "row3": "the first layer's V from layer 1 on (row 3: SVFormer, trained again)",
    "row5": "the first layer's V, last third (row 5)",
    "resformer-learned": "ResFormer, learned weights",
    "row6": "the first layer's V, learned gain, last third (row 6)",
    "row9": "x0 W_V, learned gain, last third (row 9)",
    "row11": "V + the first layer's V, both gains learned (row 11)",
    "row10": "half V, half the first layer's V, last third (row 10)",
    "row12": "half V, half x0 W_V, last third (row 12)",
    "row2": "V with a learned gain, last third (row 2)",
    "bypass": "the bypass, in a decoder",
    "cla": "keys and values shared by pairs of layers",
    "row4": "the first layer's V, learned gain, every second layer (row 4)",
    "row7": "x0 W_V, learned gain, every second layer (row 7)",
    "dva": "dynamic value attention (one head, no feed-forward net)",
}


# ---- every system --------------------------------------------------------------------------------


def systems(place):
    """Every system against standard on a text, best first."""
    found = numbers.systems(place)
    file = numbers.TEXTS[place][0]
    base = next(row for row in pairs.rows_of(file) if row["plan"] == "standard")
    losses = [row["loss"] for row in pairs.rows_of(file) if row["plan"] == base["plan"]]
    average = f"{number(statistics.fmean(losses))} ± {number(statistics.stdev(losses))}"
    lines = [["standard", "`standard`", average, "", "", ""]]
    for row in found:
        change = signed(row["difference"])
        change = f"**{change}**" if row["clear"] else change
        lines.append(
            [
                NAMES[row["plan"]],
                f"`{row['plan']}`",
                f"{number(row['mean'])} ± {number(row['spread'])}",
                f"{change} {marks(row)}".strip(),
                f"{signed(row['low'])} to {signed(row['high'])}",
                f"{signed(row['pool_low'])} to {signed(row['pool_high'])}",
            ]
        )
    several = {row["n"] for row in found} != {len(losses)}
    head = ["system", "plan", "nats", "minus standard", "95 % interval", "with the spread of all"]
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


def against_standard(*grids):
    """Every cell of whole grids against standard of the same grid and text, best first in the first
    grid; a column a grid."""
    grids = [grid for grid in grids if pairs.whole(grid)]
    found = {}
    for grid in grids:
        for cell, values in cells_of(grid).items():
            found.setdefault(cell, {})[grid] = values
    lines = []
    for cell, by_grid in found.items():
        line = [f"`{cell}`"]
        for grid in grids:
            base = cells_of(grid).get("standard")
            line.append(apart(by_grid[grid], base) if grid in by_grid and base else "")
        lines.append((by_grid, line))
    first = grids[0]
    worst = float("inf")
    order = lambda one: statistics.fmean(one[0][first].values()) if first in one[0] else worst
    lines = [line for _, line in sorted(lines, key=order) if line[0] != "`standard`"]
    return table(["plan", *(grid.rpartition("_")[2] for grid in grids)], lines)


def first_shares(plan, *grids):
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
    """The melting systems less standard at its own steps, by steps."""
    return by_setting(f"budgets_{text}", "steps", {})


def widths():
    """Every system less the standard of its width."""
    return by_setting("widths_code", "width", dict(width=64))


def by_setting(grid, name, default):
    """Every cell of a grid less the standard of its own setting, a column a setting."""
    found, settings = {}, {}
    for row in pairs.rows_of(grid):
        asked = default | row["asked"] | (row["asked"].get("changes") or {})
        at = settings.setdefault(asked[name], {})
        at.setdefault(slopes.name_of(row), {})[row["seed"]] = row["loss"]
    ascending = sorted(settings)
    for at in (settings[value] for value in ascending):
        for cell in filter(at.__contains__, slopes.SYSTEMS):
            found.setdefault(cell, []).append(apart(at[cell], at["standard"]))
    columns = [f"{value:,} {name}" if name == "steps" else f"{name} {value}" for value in ascending]
    return table(["system", *columns], [[cell, *line] for cell, line in found.items()])


def cells_of(grid):
    """{plan and what was changed: {seed: loss}} of a whole grid; {} until then."""
    found = {}
    for row in pairs.rows_of(grid):
        changed = row["asked"].get("changes") or {}
        words = [row["plan"], *(f"{name} {value}" for name, value in changed.items())]
        found.setdefault(", ".join(words), {})[row["seed"]] = row["loss"]
    return found


def mixins():
    """What the weights of modded-nanogpt's mixin did, in short and in long runs."""
    lines = []
    for grid in ("lambdas", "lambdas_long"):
        for (plan, recipe), words in MIXINS.items():
            if rows := measured.mixed(recipe, plan, grid):
                lines.append(mixin(rows, grid, plan, recipe, words))
    head = "run | turn back | largest at | outweighs | largest rise | nats less plain"
    return table(head.split(" | "), lines)


def mixin(rows, grid, plan, recipe, words):
    """One line of that table."""
    setting, run = (recipe, plan, grid), f"{plan} in {grid} recipe={recipe}"
    return [
        f"{measured.asked_steps(grid)} steps, {words}",
        measured.turned_back(*setting),
        f"{measured.turn_at(*setting)} %",
        measured.outweighs(*setting),
        signed(statistics.fmean(row["rise"] for row in rows)),
        "" if words == "plain" else numbers.told("modded", f"{grid} recipe=modded", run),
    ]


def apart(ours, theirs):
    both = sorted(ours.keys() & theirs.keys())
    return numbers.with_interval([ours[seed] - theirs[seed] for seed in both])


# ---- what there is -------------------------------------------------------------------------------


def recorded():
    """Every grid that has begun, and what is asked of it."""
    lines = []
    for name, grid in GRIDS.items():
        path = records.EVIDENCE / f"{name}.json"
        if not path.exists():
            continue
        total = len(list(grid.runs()))
        there = total - pairs.lacking(name)
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
