"""How is a result shown so that everybody can read it? Figures with alt text, told apart by line and mark before colour.

python -m minimal.lab.pictures        redraw the pictures of README and slides into slides/figures/
"""

import base64
import html
import io
import os

from minimal.lab.evidence.intervals import mean_spread

INK, PAPER = "#1b1f24", "#ffffff"

COLOURS = ("#0b5fa5", "#c8501e", "#3a7d34", "#7b4fa3", "#8a6d00", "#b3245a", "#0e7c7b", "#5f6368")

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)), (0, (3, 3)))

MARKS = "osD^vPX*"

SHORTEST_ALT = 40


def axes(title, xlabel="", ylabel="", width=7.0, height=4.0, columns=1):
    """A figure in the course's hand: the takeaway as its title, at the left; no frame; a quiet grid."""
    import matplotlib

    if not os.environ.get("MPLBACKEND"):
        matplotlib.use("agg")
    import matplotlib.pyplot as plt

    ink = dict.fromkeys(
        ("axes.edgecolor", "text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK
    )
    plt.rcParams.update(
        ink
        | {
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.facecolor": PAPER,
            "svg.hashsalt": "minimal",
            "figure.constrained_layout.use": True,
        }
    )
    fig, ax = plt.subplots(1, columns, figsize=(width, height), squeeze=False)
    fig.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
    for one in ax[0]:
        one.grid(alpha=0.25, linewidth=0.6)
        one.set_xlabel(xlabel)
        one.set_ylabel(ylabel)
    return fig, ax[0][0] if columns == 1 else ax[0]


def line_style(i):
    """The i-th way of drawing a line: colour, dash and mark change together, so grey paper is enough."""
    return dict(
        color=COLOURS[i % 8],
        linestyle=DASHES[i % 8],
        marker=MARKS[i % 8],
        markersize=4.5,
        linewidth=1.6,
    )


def lines(series, title, xlabel, ylabel, alt_of="", x=None, marks=12, logx=False):
    """{name: values} or {name: (x, values)} as lines, each named at its own end rather than in a legend box."""
    fig, ax = axes(title, xlabel, ylabel)
    ends = []
    for i, (name, values) in enumerate(series.items()):
        xs, ys = (
            values
            if isinstance(values, tuple)
            else (x if x is not None else range(len(values)), values)
        )
        ax.plot(xs, ys, markevery=max(1, len(ys) // marks), **line_style(i))
        ends.append([ys[-1], xs[-1], name, COLOURS[i % 8]])
    if logx:
        ax.set_xscale("log", base=2)
    label_ends(ax, ends)
    return fig


def label_ends(ax, ends):
    """Names at the right ends of lines, pushed apart where they would overlap."""
    low, high = ax.get_ylim()
    gap, last = (high - low) * 0.055, None
    for y, x, name, colour in sorted(ends):
        at = y if last is None else max(y, last + gap)
        ax.annotate(
            name,
            (x, y),
            (1.01, (at - low) / (high - low)),
            textcoords=ax.transAxes,
            color=colour,
            va="center",
            fontsize=9.5,
            annotation_clip=False,
        )
        last = at


def bands(panels, title, xlabel, ylabel, x=None):
    """{panel: {name: curves}} side by side on one scale: each name's mean, in a band from its lowest to its highest run."""
    fig, row = axes(title, xlabel, ylabel, max(7.0, 1.6 + 3.6 * len(panels)), columns=len(panels))
    row = row if len(panels) > 1 else [row]
    for ax, (panel, series) in zip(row, panels.items()):
        for i, (name, curves) in enumerate(series.items()):
            points = list(zip(*curves))
            xs = x if x is not None else range(len(points))
            ax.fill_between(
                xs,
                [min(p) for p in points],
                [max(p) for p in points],
                color=COLOURS[i % 8],
                alpha=0.2,
                lw=0,
            )
            mean = [sum(p) / len(p) for p in points]
            ax.plot(xs, mean, label=name, markevery=max(1, len(mean) // 8), **line_style(i))
        ax.locator_params(axis="x", integer=True)
        ax.set_title(panel, loc="left", fontsize=10)
        ax.legend(frameon=False, fontsize=8.5)
    low, high = min(ax.get_ylim()[0] for ax in row), max(ax.get_ylim()[1] for ax in row)
    for ax in row:
        ax.set_ylim(low, high)
    return fig


def points(groups, title, ylabel, baseline=None):
    """{name: values}: every point shown, its mean as a bar; what n = 3 looks like should be seen."""
    fig, ax = axes(title, "", ylabel)
    for i, (_name, values) in enumerate(groups.items()):
        ax.scatter(
            [i] * len(values),
            values,
            marker=MARKS[i % 8],
            s=34,
            color=COLOURS[i % 8],
            alpha=0.8,
            zorder=3,
        )
        mean = sum(values) / len(values)
        ax.plot([i - 0.28, i + 0.28], [mean, mean], color=INK, linewidth=1.8)
    if baseline is not None:
        ax.axhline(baseline, color=INK, linestyle=":", linewidth=1)
    many = len(groups) > 5
    ax.set_xticks(
        range(len(groups)), groups, rotation=30 if many else 0, ha="right" if many else "center"
    )
    return fig


def heatmap(matrix, title, xlabel, ylabel, ticks=None):
    """A map of numbers in grey, dark = large; `ticks` names the rows and columns."""
    fig, ax = axes(title, xlabel, ylabel, 5.2, 4.6)
    ax.grid(False)
    image = ax.imshow(matrix, cmap="Greys", aspect="auto")
    fig.colorbar(image, ax=ax, shrink=0.85)
    if ticks:
        ax.set_xticks(range(len(ticks)), ticks, rotation=90)
        ax.set_yticks(range(len(ticks)), ticks)
    return fig


def intervals(table, title, xlabel):
    """Rows of records.paired as differences with intervals; open marks where one crosses 0 or is missing."""
    rows = [r for r in table if r["difference"] is not None]
    fig, ax = axes(title, xlabel, "", 7.0, 0.9 + 0.32 * len(rows))
    for y, r in enumerate(reversed(rows)):
        if r["low"] is not None:
            ax.plot([r["low"], r["high"]], [y, y], color=INK, linewidth=1.4)
        ax.plot(
            r["difference"],
            y,
            "o",
            color=INK,
            markerfacecolor=INK if r["clear"] else PAPER,
            markersize=6,
        )
    ax.axvline(0, color=INK, linestyle=":", linewidth=1)
    ax.set_xlabel(xlabel, loc="right")  # beside long names a centred label would leave the page
    ax.locator_params(axis="x", nbins=6)
    ax.set_yticks(range(len(rows)), [f"{r['plan']} (n={r['n']})" for r in reversed(rows)])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    if any(r["low"] is not None for r in rows):
        ax.annotate(
            "filled: clear of zero",
            (0, 0),
            (0.01, 0.02),
            textcoords="figure fraction",
            fontsize=8.5,
        )
    return fig


# What a layer's values are made of -> (colour, hatch, letter). The letter alone is enough.
SOURCES = dict(
    own=("#dfe3e8", "", ""),
    layer=("#9ec7ec", "//", "1"),
    x0=("#b9dfb3", "\\\\", "x"),
    table=("#f2b48f", "..", "E"),
    mix=("#d9c6ea", "xx", "+"),
    input=("#efe08a", "--", "h"),
    none=("#ffffff", "", "–"),
)

WORDS = dict(
    own="own stream",
    layer="an earlier layer (1 = layer 0's V₁)",
    x0="x0 W_V",
    table="table by token id",
    mix="a mixture, and with what",
    input="the input itself",
    none="no attention",
)


def sources_map(
    size="tiny", plans=None, title="Where do the values come from? One row a plan, one cell a layer"
):
    """Plans down, layers across, drawn from the plans themselves."""
    from matplotlib.patches import Patch, Rectangle

    from minimal.variants import PLANS, skeleton

    plans = plans or list(PLANS)
    models = {name: skeleton(name, size) for name in plans}
    layers = max(len(m.blocks) for m in models.values())
    fig, ax = axes(title, "layer", "", 0.42 * layers + 3.4, 0.21 * len(plans) + 1.5)
    ax.grid(False)
    used = set()
    for y, (_name, model) in enumerate(models.items()):
        for at, block in enumerate(model.blocks):
            a = block.attention
            colour, hatch, letter = SOURCES[a.value.mark if a else "none"]
            part = a.value.partner() if a else None  # of a mixture, what joins the own stream
            used |= {a.value.mark, part.mark} if a else {"none"}
            letter = (
                letter + SOURCES[part.mark][2]
                if part is not None and part is not a.value
                else letter
            )
            letter = (
                letter.replace("1", str(part.j + 1))
                if part is not None and part.mark == "layer"
                else letter
            )
            letter += "γ" if a and a.value.gain is not None else ""
            extra = "·" if a and (a.query.label() or a.key.label() or a.read.label()) else ""
            ax.add_patch(
                Rectangle(
                    (at, y), 1, 1, facecolor=colour, edgecolor=PAPER, hatch=hatch, linewidth=1.2
                )
            )
            ax.text(at + 0.5, y + 0.54, letter + extra, ha="center", va="center", fontsize=7.5)
    ax.set_xlim(0, layers)
    ax.set_ylim(len(plans), 0)
    ax.set_xticks([i + 0.5 for i in range(layers)], range(layers))
    ax.set_yticks([i + 0.5 for i in range(len(plans))], plans, fontsize=8)
    patches = [
        Patch(
            facecolor=colour,
            hatch=hatch,
            edgecolor=INK,
            linewidth=0.4,
            label=f"{letter or ' '}  {WORDS[mark]}",
        )
        for mark, (colour, hatch, letter) in SOURCES.items()
        if mark in used
    ]
    ax.legend(
        handles=patches,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        frameon=False,
        fontsize=8.5,
        alignment="left",
        title="γ: learned gain   ·: queries, keys or reading changed",
        title_fontsize=8.5,
    )
    return fig


MAP_ALT = (
    "Table of coloured cells, one row for each plan of the course and one column for each layer; letters and hatching "
    "tell whether a layer takes its values from its own stream, an earlier layer, x0, a token table or a mixture. "
    "Most rows change only the last third or every layer but the first."
)


def for_slide(fig, width=8.0, height=4.2):
    """The same figure for a slide, where 144 pixels are an inch and text needs 20: no word below 10 points, and no title,
    since the slide has one."""
    from matplotlib.text import Text

    fig.set_size_inches(width, height)
    fig.suptitle("")
    for word in fig.findobj(Text):
        word.set_fontsize(max(10.5, word.get_fontsize()))
    return fig


HEADLINE = dict(
    modded="modded-nanogpt: U-Net, mixin, tables",
    vplus="V + gated table, every second layer",
    denseformer="DenseFormer",
    row13="V + x0 W_V, last third, learned gains",
    resformer="ResFormer",
    svformer="SVFormer",
    bov="Bank of Values",
    neutreno="NeuTRENO",
    gqa="half the key and value heads",
    cla="keys and values by pairs of layers",
    bypass="the BERT bypass, in a decoder",
    dva="dynamic value attention, no MLP",
) | {"bov-fixed": "Bank of Values, gain fixed at 1", "bov-keep": "Bank of Values that keeps V"}


def recorded(
    title="Token tables lead clearly, with more parameters; most others stay within chance",
):
    """The recorded differences from standard attention, best first, with their numbers."""
    from minimal.lab.evidence import records
    from minimal.lab.evidence.intervals import paired

    table = [
        row | dict(plan=HEADLINE[row["plan"]])
        for row in paired(records.read("thirteen_rows")["rows"], "loss")
        if row["plan"] in HEADLINE
    ]
    table.sort(key=lambda row: row["difference"])
    fig = intervals(
        table,
        title,
        "held-out nats a token minus standard's, mean and 95 % interval of paired seeds; left is better",
    )
    fig.set_size_inches(9.4, fig.get_figheight())
    for y, row in enumerate(reversed(table)):
        fig.axes[0].annotate(
            f"{row['difference']:+.3f}".replace("-", "−"),
            (1.01, y),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=9.5,
        )
    return fig


# ---- showing ---------------------------------------------------------------------------------------------------------
def check_alt(alt):
    """Alt text says what is on the axes and what is seen."""
    if len(alt) < SHORTEST_ALT:
        raise ValueError(
            f"alt text of {len(alt)} characters: say in at least {SHORTEST_ALT} "
            "what is on the axes and what is seen"
        )
    return alt


def picture(fig, kind="png"):
    """The figure as bytes, equal for equal figures."""
    buffer = io.BytesIO()
    fig.savefig(
        buffer,
        format=kind,
        dpi=144,
        metadata={"Date": None} if kind == "svg" else {"Software": None},
    )
    return buffer.getvalue()


def show(fig, alt):
    """Put the figure on the page as <figure><img alt>, which Lab, VS Code, Colab, HTML and reveal all keep."""
    import matplotlib.pyplot as plt

    check_alt(alt)
    data = base64.b64encode(picture(fig)).decode()
    plt.close(fig)
    image = f'<img alt="{html.escape(alt, quote=True)}" src="data:image/png;base64,{data}" style="max-width:100%">'
    page = f'<figure style="margin:0">{image}</figure>'
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
    except ImportError:
        get_ipython = lambda: None
    if get_ipython() is None:
        print(f"[figure] {alt}")
        return
    display(HTML(page))


def groups_by_panel(panels, title, ylabel="F1"):
    """{panel: {group: scores}} -> a figure: every run a mark, the mean a bar, ± one standard deviation a line."""

    fig, row = axes(title, ylabel=ylabel, width=1 + 2.8 * len(panels), columns=len(panels))
    for ax, (panel, groups) in zip(row if len(panels) > 1 else [row], panels.items()):
        for x, (_name, scores) in enumerate(groups.items()):
            mean, std = mean_spread(scores)
            spots = [x + 0.1 * (i - (len(scores) - 1) / 2) for i in range(len(scores))]
            ax.plot(spots, scores, MARKS[x % 8], color=COLOURS[x % 8], linestyle="none")
            ax.plot([x - 0.3, x + 0.3], [mean, mean], color=INK, linewidth=1.8)
            if std is not None:
                ax.vlines(x + 0.34, mean - std, mean + std, color=INK, linewidth=1)
        ax.set_xticks(
            range(len(groups)), [f"{name}\nn = {len(scores)}" for name, scores in groups.items()]
        )
        ax.set_xlim(-0.6, len(groups) - 0.4)
        ax.set_title(panel, fontsize=10, loc="left")
    return fig
