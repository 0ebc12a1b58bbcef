"""Does a lead melt as runs grow longer, or models larger? Paired differences along an axis.

Nothing is drawn from a part of a grid: whoever looks before all seeds are there sees what chance
has finished first.
"""

from course import figures
from evidence.research import pairs
from evidence.research.leads import as_row, between, from_to, number, signed

# what makes two runs of a grid comparable, and what the axis says of the baseline's run
AXES = dict(
    tokens=(lambda row: row["tokens"], lambda row: row["tokens"], "tokens read"),
    size=(
        lambda row: row["asked"]["changes"]["width"],
        lambda row: row["parameters"],
        "parameters of the baseline",
    ),
)

# the grids of curves: (axis, text)
CURVES = dict(
    budgets_code=("tokens", "code"),
    budgets_novels=("tokens", "a folder of novels"),
    widths_code=("size", "code"),
)

AHEAD = "nats ahead of standard"

# by name_of, in the order in which they are told; a system has one line style in all pictures
SYSTEMS = (
    *("bov-fixed", "bov, slow gain", "bov, equal parameters", "bov-fixed, equal parameters"),
    *("resformer", "svformer", "denseformer"),
)


def name_of(row):
    """A plan, and what was changed in it beside its width."""
    asked = row["asked"]
    name = row["plan"]
    name += ", slow gain" if "overrides" in asked else ""
    return name + (", equal parameters" if "hidden" in (asked.get("changes") or {}) else "")


def by_place(rows, place_of):
    """{place on an axis: {system: {seed: loss}}}, ascending."""
    found = {}
    for row in sorted(rows, key=place_of):
        at = found.setdefault(place_of(row), {})
        at.setdefault(name_of(row), {})[row["seed"]] = row["loss"]
    return found


def leads_along(rows, axis, base="standard"):
    """{system: [(x, lead, low, high), …]} over the baseline, seed by seed, ahead above zero,
    ascending in x: tokens, or the baseline's parameters at the same width."""
    place_of, x_of, _ = AXES[axis]
    x = {place_of(row): x_of(row) for row in rows if name_of(row) == base}
    found = {}
    for place, losses in by_place(rows, place_of).items():
        theirs = losses.pop(base)
        for system, ours in losses.items():
            row = as_row(system, between(ours, theirs))
            point = (x[place], row["difference"], row["low"], row["high"])
            found.setdefault(system, []).append(point)
    return found


def counted(value):
    """A place on an axis, in words: "0.72M", "8M"."""
    millions = value / 1e6
    return f"{millions:.0f}M" if millions >= 1 else f"{millions:.2f}M"


# ---- for the page of findings --------------------------------------------------------------------


def found_in(grid):
    """The leads of a recorded grid along its own axis; none until all of it is there."""
    return leads_along(pairs.whole_rows(grid), CURVES[grid][0])


def points_of(grid, system):
    return found_in(grid)[system]


def lead_at_place(grid, system, at):
    """By how much a system is ahead at one place of its axis, with the interval: 0 is the first."""
    _, ahead, low, high = points_of(grid, system)[at]
    return f"{number(ahead)} ({from_to(low, high)})"


def left(grid, system):
    """What the last place of the axis leaves of the first one's lead: "58 %"."""
    points = points_of(grid, system)
    return f"{100 * points[-1][1] / points[0][1]:.0f} %"


# ---- the picture ---------------------------------------------------------------------------------


def shrunk(found):
    """(how many leads are smaller at the end of the axis than at its beginning, of how many); who
    is behind at the first point has none."""
    led = [points for points in found.values() if points[0][1] > 0]
    return sum(points[-1][1] < points[0][1] for points in led), len(led)


def shrunk_words(found):
    """What became of the leads between the two ends of the axis, in words."""
    smaller, leads = shrunk(found)
    if not smaller:
        return f"No lead of {leads} is smaller at the end than at the beginning"
    return f"{smaller} of {leads} leads are smaller at the end than at the beginning"


def drawn_along(name, axis):
    """The leads of a recorded grid along an axis, as a figure; None, and a line that says so, where
    it is not whole."""
    there, runs = pairs.progress(name)
    if there < runs:
        print(
            f"{name}: {there} of {runs} runs are recorded; nothing is drawn from a part of a grid"
        )
        return None
    found = leads_along(pairs.whole_rows(name), axis)
    words = shrunk_words(found), AXES[axis][2], AHEAD
    fig, (ax,) = figures.panels_of([CURVES[name][1]], *words, width=7.0)
    figures.label_ends(ax, draw(ax, found))
    return fig


def side_by_side(panels, title="", ylabel=AHEAD):
    """{panel: leads by tokens}, one panel beside the other on one scale."""
    words = title, "tokens read", ylabel
    fig, row = figures.panels_of(panels, *words, width=9.6)
    ends = [draw(ax, found) for ax, found in zip(row, panels.values())]
    low, high = zip(*(ax.get_ylim() for ax in row))
    for ax in row:
        ax.set_ylim(min(low), max(high))
    figures.label_ends(row[-1], ends[-1])  # a system has one style in all panels
    return fig


def by_text():
    """{text: its leads by tokens}, for `beside`."""
    return {text: found_in(grid) for grid, (axis, text) in CURVES.items() if axis == "tokens"}


def by_tokens():
    """(figure, alt text) of both grids of budgets; None before both are whole."""
    panels = by_text()
    if not all(panels.values()):
        return None
    counts = ("{} of {} on ".format(*shrunk(found)) + text for text, found in panels.items())
    fig = side_by_side(panels, f"Leads smaller at the end: {', '.join(counts)}")
    return fig, (
        "Lead over standard at as many tokens, one to eight million, a panel for "
        f"each text, with intervals over three seeds. At the end {line_ends(panels.values())}."
    )


def by_width():
    """(figure, alt text) of the grid of widths; None before it is whole."""
    fig = drawn_along("widths_code", "size")
    return fig and (
        fig,
        "Lead over standard of the same width in held-out loss on code, against standard's "
        "parameters, with intervals over three seeds. At the end "
        f"{line_ends([found_in('widths_code')])}.",
    )


def line_ends(panels):
    """Where the lines of each panel end, in words."""
    return "; ".join(
        ", ".join(f"{name} {signed(points[-1][1], 2)}" for name, points in found.items())
        for found in panels
    )


def draw(ax, found):
    """The points of every system with their intervals. -> where its name belongs, at the end."""
    ends = []
    for system in filter(found.__contains__, SYSTEMS):
        i, points = SYSTEMS.index(system), found[system]
        x, ahead, low, high = (list(column) for column in zip(*points))
        reach = [[d - b for d, b in zip(ahead, low)], [t - d for d, t in zip(ahead, high)]]
        aside = [1.02 ** (i - 3) * place for place in x]  # so that no bar hides another
        ax.errorbar(aside, ahead, reach, capsize=3, **figures.line_style(i))
        ends.append([ahead[-1], aside[-1], system, figures.COLOURS[i % 8]])
    ax.axhline(0, color=figures.INK, linestyle=":", linewidth=1)
    ax.set_xscale("log", base=2)
    places = [point[0] for point in next(iter(found.values()))]
    ax.set_xticks(places, [counted(place) for place in places])
    return ends
