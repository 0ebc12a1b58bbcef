"""Leads as a picture: a mark a system, its interval, zero dotted; filled where it is clear."""

import textwrap

from course import figures
from evidence.lab.comparison import signed


def picture(panels, title, xlabel="nats ahead; filled: clear of zero", names=None):
    """(figure, alt text) of {panel: table of leads}. The first panel names and orders the systems;
    `names` are the words for plans."""
    names = names or {}
    order = list(next(iter(panels.values())).index)[::-1]
    words = [names.get(plan, plan) for plan in order]
    fig, axes = figures.panels_of(panels, textwrap.fill(title, 92), "", "", 9.4)
    fig.set_figheight(1.3 + 0.32 * len(order))
    for at, (ax, table) in enumerate(zip(axes, panels.values())):
        rows = [table.loc[plan] if plan in table.index else None for plan in order]
        marks = [None if row is None else dict(row, difference=row.lead) for row in rows]
        figures.interval_marks(ax, marks)
        ax.set_yticks(range(len(order)), [""] * len(order) if at else words)
        ax.set_ylim(-0.6, len(order) - 0.4)
        for y, row in enumerate(rows):
            if row is not None:
                place = dict(xycoords=("axes fraction", "data"), va="center", fontsize=9.5)
                ax.annotate(signed(row.lead), (1.01, y), **place)
    one_scale(axes)
    fig.supxlabel(xlabel, fontsize=figures.LETTER)
    said = lambda plan, row: f"{names.get(plan, plan)} {signed(row.lead)}"
    rows = {name: [said(*row) for row in table.iterrows()] for name, table in panels.items()}
    return fig, f"{title}. Across: {xlabel}. {read_aloud(rows)}"


def along(panels, x, title, xlabel, names=None):
    """(figure, alt text) of {panel: {system: its Lead at each x}}: lines with intervals, each named
    at its end in the last panel; a step of the axis is a factor of two."""
    names, told = names or {}, {}
    width = 9.4 if len(panels) > 1 else 7.0
    fig, axes = figures.panels_of(panels, title, xlabel, "nats ahead of standard", width)
    for ax, (panel, found) in zip(axes, panels.items()):
        ends, told[panel] = [], []
        for i, (system, leads) in enumerate(found.items()):
            mean, reach = [one.mean for one in leads], [one.reach() for one in leads]
            aside = [1.02 ** (i - len(found) // 2) * place for place in x]  # no bar hides another
            ax.errorbar(aside, mean, reach, capsize=3, **figures.line_style(i))
            name = names.get(system, system)
            told[panel].append(f"{name} {signed(mean[0])} to {signed(mean[-1])}")
            ends.append([mean[-1], aside[-1], name, figures.COLOURS[i % 8]])
        ax.axhline(0, color=figures.INK, linestyle=":", linewidth=1)
        ax.set_xscale("log", base=2)
        ax.set_xticks(x, [f"{place:g}" for place in x])
    figures.one_scale(axes)
    figures.label_ends(axes[-1], ends)
    title = title or "Leads over standard"
    return fig, f"{title}. Across: {xlabel}. From first to last, {read_aloud(told)}"


def one_scale(axes):
    left, right = zip(*(ax.get_xlim() for ax in axes))
    for ax in axes:
        ax.set_xlim(min(left), max(right))
        ax.locator_params(axis="x", nbins=5)


def read_aloud(panels):
    """{panel: what its rows say} for whoever does not see them: a sentence a panel."""
    return " ".join(f"{panel}: {'; '.join(parts)}." for panel, parts in panels.items())
