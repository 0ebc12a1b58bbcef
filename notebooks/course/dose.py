"""How much changes with each layer whose values know the token alone? The dose, from its record.

draw({"code": recorded("code"), "novel": recorded("novel")})

A grid may be half recorded, or not at all: what is there is drawn, and what is missing is said.
Which layers a plan changes is read off the model that it builds, so no name of a plan stands here.
"""

from collections import Counter

from course import figures, records
from minimal.compare import intervals
from minimal.variants import skeleton

NONE, TOP, BOTTOM, SECOND, ALL = "none", "from the top", "from the bottom", "every second", "all"
# the registered cells: where the layers lie, and how many they are
WANTED = [(NONE, 0), *((place, k) for place in (TOP, BOTTOM) for k in (2, 4, 8))]
WANTED += [(SECOND, 6), (ALL, 12)]
SEEDS = 5


def recorded(text):
    """The rows of the dose grid of a text, "code" or "novel"; none where nothing is recorded."""
    return records.rows_of(records.EVIDENCE / f"dose_{text}.json")


def changed(plan, size="tiny"):
    """The layers, from 0, whose values are x0 W_V and nothing else; None for a plan that has other
    sources, or that nobody knows here."""
    try:
        sources = [block.attention.value for block in skeleton(plan, size).blocks]
    except (KeyError, ValueError):
        return None
    known = all(source.mark in ("own", "x0") and source.gain is None for source in sources)
    return [n for n, source in enumerate(sources) if source.mark == "x0"] if known else None


def cell_of(layers, depth=12):
    """(where they lie, how many they are), or None for layers that lie otherwise."""
    k = len(layers)
    places = {
        NONE: [],
        ALL: list(range(depth)),
        TOP: list(range(depth - k, depth)),
        BOTTOM: list(range(k)),
        SECOND: list(range(1, depth, 2)),
    }
    return next(((name, k) for name, place in places.items() if layers == place), None)


def compared(rows):
    """{(place, k): a row of intervals.paired} against no layer changed, on the same seeds."""
    plain = [row for row in rows if not row.get("asked", {}).get("changes")]
    if not plain:
        return {}
    steps = Counter(row["steps"] for row in plain).most_common(1)[0][0]
    named = []
    for row in plain:
        layers = changed(row["plan"], row["size"])
        cell = cell_of(layers) if layers is not None else None
        if cell and row["steps"] == steps:
            named.append(row | dict(plan=cell))
    if not any(row["plan"] == (NONE, 0) for row in named):
        return {}
    found = intervals.paired(named, "loss", (NONE, 0))
    return {row["plan"]: row for row in found if row["n"]}


def missing(found):
    """What of the registered grid is not there, in words: "from the top 8 (3 of 5 seeds)"."""
    words = []
    for cell in WANTED:
        n = found[cell]["n"] if cell in found else 0
        if n < SEEDS:
            words.append(" ".join(map(str, cell)) + (f" ({n} of {SEEDS} seeds)" if n else ""))
    return words


def draw(texts, title, alt):
    """The dose of each text {name: rows}: lines by place against how many layers were changed."""
    tables = {text: compared(rows) for text, rows in texts.items()}
    there = {text: found for text, found in tables.items() if len(found) > 1}
    for text, found in tables.items():
        lacking = missing(found)
        told = f"not recorded yet: {', '.join(lacking)}" if lacking else "all is recorded"
        print(f"{text}: {told}")
    if not there:
        return tables
    figures.show(figure(there, title), alt)
    return tables


def figure(tables, title):
    """The lines of several texts {name: what `compared` found}, a panel each."""
    what = "layers that read the token alone", "nats minus standard"
    fig, panels = figures.panels_of(list(tables), title, *what, 9.0)
    for ax, found in zip(panels, tables.values()):
        for i, place in enumerate((TOP, BOTTOM, SECOND)):
            ends = {cell: row for cell, row in found.items() if cell[0] in (NONE, place, ALL)}
            if place in {cell[0] for cell in ends} or (i == 0 and len(ends) > 1):
                line(ax, ends, place, i)
        ax.axhline(0, color=figures.INK, linestyle=":", linewidth=1)
        ax.set_xticks((0, 2, 4, 6, 8, 12))
        ax.legend(frameon=False, fontsize=8.5)
    figures.one_scale(panels)
    return fig


def line(ax, ends, place, i):
    """One line with its intervals; no layer and all layers belong to every line."""
    rows = sorted(ends.items(), key=lambda item: item[0][1])
    x, y = [cell[1] for cell, _ in rows], [row["difference"] for _, row in rows]
    look = figures.line_style(i)
    ax.plot(x, y, label=place, **look)
    for k, (_, row) in zip(x, rows):
        if row["low"] is not None and k:
            ax.plot([k, k], [row["low"], row["high"]], color=look["color"], linewidth=1)
