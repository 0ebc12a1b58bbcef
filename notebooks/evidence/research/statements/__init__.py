"""What do claims, notebooks and decks say of the records that no comparison of two plans says?

    @said
    def every_gain_of_row_2_falls_below_1():
        found = ends("thirteen_rows", "row2", "gain")
        return dict(so=max(found) < 1, gains=of(found))

A statement is a function: its name is the sentence, `so` whether the records bear it out, the rest
what was found. All of them stand in notebooks/evidence/statements.md, which is the only place that
knows a recorded decimal: `python -m evidence.research.page` renews it, and one test compares it.
"""

import importlib

from course import records
from evidence.research import pairs
from evidence.research.leads import as_row, number, paired

SAID = {}  # name: function, in the order in which they stand in the files
MODULES = ("systems", "corners", "rates", "weights", "choices", "scale", "texts", "states")
YES, NO = "yes", "**no**"

HEAD = """# What is said of the records, and whether it is so

Back to [what is found](README.md). Claims, notebooks and decks say these sentences; no comparison
of two plans decides them. Everything is computed from the records. A lead in bold is clear of zero;
ranges are of all runs.
"""
TAIL = """
<!-- written by `python -m evidence.research.page` from research/statements and the records -->
"""


def said(function):
    if function.__name__ in SAID:
        raise ValueError(f"wanted a sentence of its own, got {function.__name__} twice: rename one")
    SAID[function.__name__] = function
    return function


# ---- what was recorded ---------------------------------------------------------------------------


def runs_by_seed(grid, plan, **asked):
    """{seed: row} of one plan in one setting."""
    some = pairs.rows_asked(grid, plan, **asked)
    found = {row["seed"]: row for row in some}
    if len(found) != len(some):
        raise ValueError(f"wanted one setting of {plan} in {grid}, got several: ask for more")
    return found


def values(runs, field="loss"):
    """{seed: value} of {seed: row}."""
    return {seed: row[field] for seed, row in runs.items()}


def lead_by_seed(ours, theirs, field="loss"):
    """How far ours end below theirs, seed by seed, of two {seed: row}."""
    return list(paired(values(ours, field), values(theirs, field)).values())


def ends_of(some, letter):
    """Final coefficients whose names end so, over layers and rows."""
    return [
        value
        for row in some
        for name, value in row["coefficients"].items()
        if name.endswith(f"value.{letter}")
    ]


def per_seed(runs, what):
    """What a function finds in each run, a list."""
    return [what(row) for row in runs.values()]


# ---- what is found -------------------------------------------------------------------------------


def ahead(differences):
    """1 where a mean is clearly above zero, -1 where it is clearly below, else 0."""
    row = as_row("", differences)
    if not row["clear"]:
        return 0
    return 1 if row["low"] > 0 else -1


def of(numbers, digits=2):
    """The least and the most of some numbers."""
    numbers = list(numbers)
    return f"{number(min(numbers), digits)} to {number(max(numbers), digits)}"


def average(numbers):
    return sum(numbers) / len(numbers)


def count(numbers, wanted):
    """How many of them are as wanted: "3 of 12"."""
    numbers = list(numbers)
    return f"{sum(map(wanted, numbers))} of {len(numbers)}"


def cell_in_words(value):
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(cell_in_words, value))
    return str(value)


# ---- all of them ---------------------------------------------------------------------------------


def all_found():
    """{sentence: {name: what was found}} of all statements."""
    return {name: function() for name, function in all_of_them().items()}


def all_of_them():
    for module in MODULES:
        importlib.import_module(f"{__name__}.{module}")
    return SAID


def statements_page():
    """All statements as Markdown, a line each; the names of functions are the sentences."""
    lines = [HEAD, "| said | so | found |", "| --- | --- | --- |"]
    for name, about in all_found().items():
        so = YES if about.pop("so") else NO
        cell = "; ".join(
            f"{key.replace('_', ' ')}: {cell_in_words(value)}" for key, value in about.items()
        )
        lines.append(f"| {name.replace('_', ' ')} | {so} | {cell} |")
    return "\n".join(lines) + TAIL


def untrue():
    """The sentences that the written page does not bear out."""
    lines = (records.EVIDENCE / "statements.md").read_text(encoding="utf-8").splitlines()
    return [line.split("|")[1].strip() for line in lines if f"| {NO} |" in line]
