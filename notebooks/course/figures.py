"""How is a result shown so that everybody can read it? Figures with alt text.

Lines and groups are told apart by dash and mark before colour, so grey paper is enough.
"""

import base64
import functools
import html
import io
import os
from pathlib import Path

from course import CHECKOUT, shades, slim
from minimal.compare.intervals import ahead as ahead  # figures.ahead turns what is drawn
from minimal.compare.intervals import mean_spread
from minimal.data.files import write_whole
from minimal.training.progress import in_notebook

INK, PAPER = "#1b1f24", "#ffffff"

COLOURS = ("#0b5fa5", "#c8501e", "#3a7d34", "#7b4fa3", "#8a6d00", "#b3245a", "#0e7c7b", "#5f6368")

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 3)))

MARKS = "osD^vPX*"

SHORTEST_ALT = 40
KIND = "COURSE_FIGURES"  # in the environment: svg, where a page for forges is written
FOLDER = "MINIMAL_FIGURES"  # in the environment: the folder where a figure with a name is kept
LETTERS_FROM = "COURSE_LETTERS"  # in the environment: a folder with the letters of the site
LETTER = 11  # points: the size of the words in a figure


# ---- the course's hand ---------------------------------------------------------------------------


def house_style():
    """What every figure of the course has in common, as Matplotlib's settings."""
    inked = ("axes.edgecolor", "text.color", "axes.labelcolor", "xtick.color", "ytick.color")
    return dict.fromkeys(inked, INK) | {
        "font.family": families(os.environ.get(LETTERS_FROM)),
        "font.size": LETTER,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": PAPER,
        "svg.hashsalt": "minimal",
        "svg.fonttype": "none",  # letters as letters, not as paths
        "figure.constrained_layout.use": True,
    }


@functools.cache
def families(folder):
    """The letters in this folder by name, and what every Matplotlib has for signs beyond them."""
    from matplotlib import font_manager

    names = []
    for file in sorted(Path(folder).glob("*.ttf")) if folder else ():
        font_manager.fontManager.addfont(file)
        names.append(font_manager.get_font(file).family_name)
    return [*dict.fromkeys(reversed(names)), "DejaVu Sans"]  # latin before greek


def axes(title, xlabel="", ylabel="", width=7.0, height=4.0, columns=1, rows=1):
    """A figure in the course's hand: its takeaway as the title, at the left; a quiet grid."""
    import matplotlib

    if not os.environ.get("MPLBACKEND"):
        matplotlib.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(house_style())
    fig, grid = plt.subplots(rows, columns, figsize=(width, height), squeeze=False)
    panels = grid.ravel()
    fig.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold", wrap=True)
    for panel in panels:
        panel.grid(alpha=0.25, linewidth=0.6)
        panel.set_xlabel(xlabel)
        panel.set_ylabel(ylabel)
    return fig, panels[0] if len(panels) == 1 else panels


def panels_of(names, title, xlabel, ylabel, width):
    """A figure with one named panel beside the other: (figure, the panels)."""
    fig, panels = axes(title, xlabel, ylabel, width, columns=len(names))
    panels = [panels] if len(names) == 1 else list(panels)
    for panel, name in zip(panels, names):
        panel.set_title(name, loc="left", fontsize=10)
    return fig, panels


def line_style(i):
    """The i-th way of drawing a line: colour, dash and mark change together."""
    told_apart = dict(color=COLOURS[i % 8], linestyle=DASHES[i % 8], marker=MARKS[i % 8])
    return told_apart | dict(markersize=4.5, linewidth=1.6)


# ---- lines and bands -----------------------------------------------------------------------------


def lines(series, title, xlabel, ylabel, x=None, marks=12, logx=False, logy=False):
    """{name: values} or {name: (x, values)} as lines, each named at its own end, without a box."""
    fig, ax = axes(title, xlabel, ylabel)
    ends = []
    for i, (name, values) in enumerate(series.items()):
        if isinstance(values, tuple):
            xs, ys = values
        else:
            xs, ys = range(len(values)) if x is None else x, values
        ax.plot(xs, ys, markevery=max(1, len(ys) // marks), **line_style(i))
        ends.append([ys[-1], xs[-1], name, COLOURS[i % 8]])
    if logx:
        ax.set_xscale("log", base=2)
    if logy:
        ax.set_yscale("log")
    label_ends(ax, ends)
    return fig


def label_ends(ax, ends):
    """Names at the right ends of lines, as near as they may stand without touching each other; thin
    lines lead to them where one had to move.

    They stay at their lines when something that is drawn later moves the axis.
    """
    ax.get_ylim()  # settles the axis
    to_axes = ax.transData + ax.transAxes.inverted()
    points = 72 * ax.get_position().height * ax.figure.get_figheight()
    gap = 14 / points  # a line of letters, on a slide too
    ends = sorted(ends)
    shares = [to_axes.transform((x, y))[1] for y, x, *_ in ends]  # of the height
    places = not_touching(shares, gap)
    moved = any(abs(at - share) > gap / 2 for share, at in zip(shares, places))
    lead = dict(arrowstyle="-", lw=0.6, relpos=(0, 0.5), shrinkA=0, shrinkB=3)
    for (y, x, name, colour), at in zip(ends, places):
        ax.annotate(
            name,
            (x, y),
            (1.05 if moved else 1.01, to_axes.inverted().transform((1.01, at))[1]),
            textcoords=ax.get_yaxis_transform(),
            color=colour,
            va="center",
            fontsize=9.5,
            annotation_clip=False,
            arrowprops=lead | dict(color=colour) if moved else None,
        )


def not_touching(wanted, gap, top=1.0):
    """The places nearest to these, which ascend, that lie `gap` apart and none above the top."""
    groups = []  # of places that touch: [how many, the mean of where the lowest one would stand]
    for n, place in enumerate(wanted):
        groups.append([1, place - n * gap])
        while len(groups) > 1 and groups[-1][1] < groups[-2][1]:
            (many, high), (more, low) = groups.pop(), groups.pop()
            groups.append([many + more, (many * high + more * low) / (many + more)])
    lowest = [place for many, place in groups for _ in range(many)]
    free = max(top, *wanted) - (len(wanted) - 1) * gap if len(wanted) > 1 else wanted[0]
    return [min(place, free) + n * gap for n, place in enumerate(lowest)]


def bands(panels, title, xlabel, ylabel, x=None, logx=False, baseline=None, one_legend=False):
    """{panel: {name: curves}} side by side on one scale: each name's mean over its runs, in a band
    from the lowest run to the highest. `one_legend`, below all panels, is for equal names."""
    width = max(7.0, 1.6 + 3.0 * len(panels))
    fig, row = panels_of(panels, title, xlabel, ylabel, width)
    for ax, series in zip(row, panels.values()):
        for i, (name, curves) in enumerate(series.items()):
            at_each = list(zip(*curves))
            xs = range(len(at_each)) if x is None else x
            low, high = [min(runs) for runs in at_each], [max(runs) for runs in at_each]
            mean = [sum(runs) / len(runs) for runs in at_each]
            ax.fill_between(xs, low, high, color=COLOURS[i % 8], alpha=0.2, lw=0)
            ax.plot(xs, mean, label=name, markevery=max(1, len(mean) // 8), **line_style(i))
        if logx:
            ax.set_xscale("log", base=2)
        else:
            ax.locator_params(axis="x", integer=True)
        if baseline is not None:
            ax.axhline(baseline, color=INK, linestyle=":", linewidth=1)
        if not one_legend:
            ax.legend(frameon=False, fontsize=8.5)
    if one_legend:
        marks, names = row[0].get_legend_handles_labels()
        fig.legend(marks, names, frameon=False, loc="outside lower center", ncols=len(names))
    one_scale(row)
    return fig


def one_scale(row):
    limits = [ax.get_ylim() for ax in row]
    low, high = min(low for low, _ in limits), max(high for _, high in limits)
    for ax in row:
        ax.set_ylim(low, high)


# ---- groups of runs ------------------------------------------------------------------------------


def points(groups, title, ylabel, baseline=None, spread=False):
    """{name: values}, or {panel: {name: values}}: every run a mark, its group's mean a bar, since
    what n = 3 looks like should be seen. `spread`: n under each name, and a standard deviation."""
    several = any(isinstance(values, dict) for values in groups.values())
    panels = groups if several else {"": groups}
    width = 1 + 2.8 * len(panels) if several else 7.0
    fig, row = panels_of(panels, title, "", ylabel, width)
    for ax, members in zip(row, panels.values()):
        for x, values in enumerate(members.values()):
            group(ax, x, values, spread)
        if baseline is not None:
            ax.axhline(baseline, color=INK, linestyle=":", linewidth=1)
        name_groups(ax, members, spread)
    return fig


def group(ax, x, values, spread):
    """The runs of one group side by side around x, and their mean."""
    apart = min(0.1, 0.5 / len(values))
    spots = [x + apart * (i - (len(values) - 1) / 2) for i in range(len(values))]
    mean, deviation = mean_spread(values)
    mark = dict(marker=MARKS[x % 8], color=COLOURS[x % 8], linestyle="none", alpha=0.8)
    ax.plot(spots, values, **mark)
    ax.plot([x - 0.3, x + 0.3], [mean, mean], color=INK, linewidth=1.8)
    if spread and deviation is not None:
        ax.vlines(x + 0.34, mean - deviation, mean + deviation, color=INK, linewidth=1)


def name_groups(ax, members, spread):
    names = list(members)
    if spread:
        names = [f"{name}\nn = {len(values)}" for name, values in members.items()]
    slant = dict(rotation=30, ha="right") if len(names) > 5 else {}
    ax.set_xticks(range(len(names)), names, **slant)
    ax.set_xlim(-0.6, len(names) - 0.4)


def intervals(table, title, xlabel):
    """Rows of intervals.paired as differences with their intervals; the mark is open where an
    interval crosses 0 or is missing."""
    rows = [row for row in table if row["difference"] is not None][::-1]
    fig, ax = axes(title, "", "", 7.0, 0.9 + 0.32 * len(rows))
    interval_marks(ax, rows)
    if any(row["low"] is not None for row in rows):
        xlabel += "\nfilled: clear of zero"
    ax.set_xlabel(xlabel, loc="right")  # beside long names a centred label would leave the page
    ax.locator_params(axis="x", nbins=6)
    ax.set_yticks(range(len(rows)), [f"{row['plan']} (n={row['n']})" for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    return fig


def interval_panels(tables, title, xlabel):
    """{panel: rows of intervals.paired} side by side on one scale: the first panel's plans, in its
    order, in every panel."""
    names = [row["plan"] for row in next(iter(tables.values()))][::-1]
    fig, panels = axes(title, "", "", 9.0, 1.3 + 0.32 * len(names), columns=len(tables))
    for ax, (panel, rows) in zip(panels, tables.items()):
        found = {row["plan"]: row for row in rows if row["difference"] is not None}
        interval_marks(ax, [found.get(name) for name in names])
        ax.set_title(panel, loc="left", fontsize=10)
        ax.set_yticks(range(len(names)), names if ax is panels[0] else [""] * len(names))
        ax.set_ylim(-0.6, len(names) - 0.4)
        ax.locator_params(axis="x", nbins=5)
    limits = [ax.get_xlim() for ax in panels]
    for ax in panels:
        ax.set_xlim(min(low for low, _ in limits), max(high for _, high in limits))
    panels[-1].set_xlabel(f"{xlabel}\nfilled: clear of zero", loc="right")
    return fig


def interval_marks(ax, rows):
    """Rows upwards: mark and interval; a row that is None is left free."""
    for y, row in enumerate(rows):
        if row is None:
            continue
        if row["low"] is not None:
            ax.plot([row["low"], row["high"]], [y, y], color=INK, linewidth=1.4)
        filling = INK if row["clear"] else PAPER
        ax.plot(row["difference"], y, "o", color=INK, markerfacecolor=filling, markersize=6)
    ax.axvline(0, color=INK, linestyle=":", linewidth=1)


def heatmap(matrix, title, xlabel, ylabel, ticks=None):
    """A matrix in grey, dark = large; `ticks` names its rows and columns."""
    fig, ax = axes(title, xlabel, ylabel, 5.2, 4.6)
    ax.grid(False)
    image = ax.imshow(matrix, cmap="Greys", aspect="auto")
    fig.colorbar(image, ax=ax, shrink=0.85)
    if ticks:
        ax.set_xticks(range(len(ticks)), ticks, rotation=90)
        ax.set_yticks(range(len(ticks)), ticks)
    return fig


def attention_maps(named, title, words):
    """Small attention maps side by side, {name: (T, S)}, with every weight in its cell."""
    width = max(4.4, 3.3 * len(named))  # room for the title of a single map
    fig, row = axes(title, "looked at (key)", "", width, 3.9, columns=len(named))
    row = [row] if len(named) == 1 else row
    for panel, (name, a) in zip(row, named.items(), strict=True):
        panel.set_title(name, fontsize=11)
        panel.grid(False)
        panel.imshow(a, cmap="Greys", vmin=0, vmax=1.3)
        panel.set_xticks(range(len(words)), words, rotation=90)
        panel.set_yticks(range(len(words)), words)
        for t, weights in enumerate(a.tolist()):
            for s, weight in enumerate(weights):
                number = f"{weight:.2f}".lstrip("0") if weight >= 0.005 else ""
                ink = PAPER if weight > 0.6 else INK
                panel.text(s, t, number, color=ink, ha="center", va="center", fontsize=8)
    row[0].set_ylabel("looking (query)")
    return fig


# ---- showing -------------------------------------------------------------------------------------


def for_slide(fig, width=8.0, height=4.2):
    """The same figure for a slide, which has a title of its own. 144 pixels are an inch there and
    text needs 20, so no word stays below 10.5 points."""
    from matplotlib.text import Text

    fig.set_size_inches(width, height)
    fig.suptitle("")
    for word in fig.findobj(Text):
        word.set_fontsize(max(10.5, word.get_fontsize()))
    return fig


def check_alt(alt):
    """Alt text says what is on the axes and what is seen."""
    if len(alt) < SHORTEST_ALT:
        raise ValueError(
            f"wanted an alt text of at least {SHORTEST_ALT} characters, got {len(alt)}: "
            "say what is on the axes and what is seen"
        )
    return alt


def figure_bytes(fig, kind="png"):
    """The figure as bytes, equal for equal figures: no date, no program's name. Then it is done
    with: pyplot keeps every figure that nobody closes."""
    import matplotlib.pyplot as plt

    buffer = io.BytesIO()
    nameless = {"Date": None} if kind == "svg" else {"Software": None}
    if kind == "svg":
        shades_as_cells(fig)
    fig.savefig(buffer, format=kind, dpi=144, metadata=nameless)
    plt.close(fig)
    return buffer.getvalue()


def shades_as_cells(fig):
    """A drawing without pictures in it, which forges may not show: each shade is a cell of its own,
    and where it is paper there is none."""
    import numpy as np
    from matplotlib.collections import QuadMesh

    for panel in fig.axes:
        limits = panel.get_xlim(), panel.get_ylim()
        for shown in list(panel.images):
            left, right, bottom, top = shown.get_extent()
            values = np.ma.asarray(shown.get_array())
            cells = np.ma.masked_where(shown.norm(values) <= 0, values)  # (rows, columns)
            across = np.linspace(left, right, cells.shape[1] + 1)
            down = np.linspace(top, bottom, cells.shape[0] + 1)
            look = dict(cmap=shown.cmap, norm=shown.norm, zorder=shown.zorder)
            panel.pcolormesh(across, down, cells, **look)
            shown.remove()
        for mesh in panel.collections:
            if isinstance(mesh, QuadMesh):
                mesh.set(rasterized=False, edgecolor="face", linewidth=0.5)  # no seams; scales, too
        panel.set_xlim(limits[0])
        panel.set_ylim(limits[1])


# What a reader's dark page does to a figure: paper and letters change places, hues stay. White
# becomes the dark paper of the drawings.
DARK = """
@media (prefers-color-scheme: dark) { svg > g { filter: invert(.92) hue-rotate(180deg); } }
"""


def file_bytes(fig, alt, decimals=2):
    """An SVG that holds its alt text and turns dark with the page around it, as the drawings do. A
    hundredth of a point is finer than a screen."""
    svg = slim.slim(figure_bytes(fig, "svg").decode(), decimals)
    told = f"<desc>{html.escape(check_alt(alt))}</desc>\n<defs>"
    return svg.replace("<defs>", told, 1).replace("</style>", f"{DARK}</style>", 1).encode()


def show(fig, alt, name=""):
    """Put the figure on the page as <figure><img alt>, which Lab, VS Code, Colab, HTML and reveal
    all keep; outside a notebook, print its alt text. `make figures` keeps one that has a `name` as
    slides/figures/NAME.svg, for the pages that show it."""
    check_alt(alt)
    if name and os.environ.get(FOLDER):
        write_whole(CHECKOUT / os.environ[FOLDER] / f"{name}.svg", file_bytes(fig, alt))
    inches = fig.get_size_inches()[0]
    kind = os.environ.get(KIND, "png")
    media = dict(svg="svg+xml").get(kind, kind)
    image = figure_bytes(fig, kind)
    if not in_notebook():
        print(f"[figure] {alt}")
        return
    from IPython.display import HTML, display

    display(HTML(on_page(image, media, alt, inches, shades.boxes(fig))))


def on_page(image, kind, alt, inches=None, shaded=""):
    """An image (bytes) as HTML that needs no other file. With its width in inches it is shown no
    larger than its letters are as large as the text around it: 7 inches are 46 letters wide."""
    data = base64.b64encode(image).decode()
    told = f'alt="{html.escape(alt, quote=True)}"'
    widest = f"min(100%,{inches * 72 / LETTER:.1f}em)" if inches else "100%"
    width = f"--inches:{inches:g};" if inches else ""  # for a page that is too narrow for all of it
    look = f'style="{width}max-width:{widest}"'
    told += f' data-shades="{shaded}"' if shaded else ""
    tag = f'<img {told} src="data:image/{kind};base64,{data}" {look}>'
    return f'<figure style="margin:0">{tag}</figure>'
