"""Which pictures do README and slides show, and in which words for those who cannot see them?

python -m evidence.research.pictures        redraw them from plans and records into slides/figures/
"""

import re
import textwrap
from pathlib import Path

from course import figures
from course.drawings.canvas import Drawing
from course.drawings.systems import systems
from course.records import CHECKOUT
from course.source_map import sources_map
from evidence.research import numbers
from minimal.command import command
from minimal.data.files import write_whole

FIGURES = CHECKOUT / "slides" / "figures"

# What a reader's dark page does to a picture: paper and letters change places, hues stay. White
# becomes the dark paper of the drawings.
DARK = """
@media (prefers-color-scheme: dark) { svg > g { filter: invert(.92) hue-rotate(180deg); } }
"""

THREE = ("standard", "svformer", "bov")
FIVE = ("standard", "resformer", "svformer", "bov", "bypass")
NINE = ("standard", "resformer", "svformer", "row9", "bov", "vplus", "modded", "dva", "bypass")

HEADLINE = {
    "modded": "modded-nanogpt: U-Net, mixin, tables",
    "vplus": "V + gated table, every second layer",
    "denseformer": "DenseFormer",
    "row13": "V + x0 W_V, last third, learned gains",
    "resformer": "ResFormer",
    "svformer": "SVFormer",
    "bov": "Bank of Values",
    "neutreno": "NeuTRENO",
    "gqa": "half the key and value heads",
    "cla": "keys and values by pairs of layers",
    "bypass": "the BERT bypass, in a decoder",
    "dva": "dynamic value attention, no MLP",
    "bov-fixed": "Bank of Values, gain fixed at 1",
    "bov-keep": "Bank of Values that keeps V",
}


def three_systems():
    """For a column of 830 pixels, where its letters keep their size."""
    return systems(*THREE)


def five_systems():
    return systems(*FIVE)


def five_systems_tall():
    """For a phone, where five side by side have letters of four pixels."""
    return systems(*FIVE, columns=2)


def short_map():
    return sources_map(plans=list(NINE), title="Where do the values come from?")


def recorded(stacked=False):
    """The recorded differences from standard attention on both texts, best on code first."""
    panels = {}
    for name, place in (("code: Python's library", "code"), ("a novel: War and Peace", "novel")):
        table = [row for row in numbers.systems(place) if row["plan"] in HEADLINE]
        panels[name] = [row | dict(plan=HEADLINE[row["plan"]]) for row in table]
    ahead = [
        sum(row["clear"] and row["difference"] < 0 for row in rows) for rows in panels.values()
    ]
    return beside(
        panels,
        f"Clearly ahead: {ahead[0]} of {len(HEADLINE)} on code, {ahead[1]} on a novel; "
        "tables also bring parameters",
        "held-out nats a token minus standard's (left is better), mean and 95 % interval of seeds; "
        "filled: clear of zero",
        stacked,
    )


def recorded_tall():
    """For a phone: the novel below code, in letters that need no moving sideways."""
    return recorded(stacked=True)


def beside(panels, title, xlabel, stacked=False):
    """{panel: rows} as figures.intervals, side by side on one scale: the first panel names and
    orders the plans, and each difference stands at its row's end. Or stacked, narrow as a phone."""
    width, letters = (5.4, 48) if stacked else (9.4, 200)
    names = [row["plan"] for row in next(iter(panels.values()))][::-1]
    title, xlabel = (textwrap.fill(words, letters) for words in (title, xlabel))
    fig, row = figures.panels_of(panels, title, "", "", width, stacked)
    high = len(row) if stacked else 1
    fig.set_figheight(1.3 + high * (0.32 * len(names) + 0.5 * stacked))
    for ax, table in zip(row, panels.values()):
        by_plan = {found["plan"]: found for found in table}
        figures.interval_marks(ax, [by_plan.get(name) for name in names])
        told = stacked or ax is row[0]
        ax.set_yticks(range(len(names)), names if told else [""] * len(names))
        ax.set_ylim(-0.6, len(names) - 0.4)
        for y, name in enumerate(names):
            if name in by_plan:
                told = numbers.signed(by_plan[name]["difference"])
                place = dict(xycoords=("axes fraction", "data"), va="center", fontsize=9.5)
                ax.annotate(told, (1.01, y), **place)
    left, right = zip(*(ax.get_xlim() for ax in row))
    for ax in row:
        ax.set_xlim(min(left), max(right))
        ax.locator_params(axis="x", nbins=5)
    fig.supxlabel(xlabel, fontsize=figures.LETTER)
    return fig


THREE_TOLD = (
    "Three attention layers as boxes and arrows. Queries and keys make the map in each, and only "
    "the thick arrow of the value moves: from the layer's own stream in standard attention, only "
    "from layer 1 in SVFormer, from a table by token id in Bank of Values."
)

FIVE_TOLD = (
    "Five attention layers as boxes and arrows. Queries and keys make the map in each, and "
    "only the thick arrow of the value moves: from the layer's own stream in standard "
    "attention, also from layer 1 in ResFormer, only from layer 1 in SVFormer, from a table by "
    "token id in Bank of Values, past the value matrix in the value bypass."
)

RECORDED_TOLD = (
    "Fourteen systems down, the difference of their held-out loss from standard attention "
    "across, with intervals, on code and on a novel. On code ten are clearly ahead, the ones "
    "with tables by far. On the novel the same ten are, by less and in another order. Dynamic "
    "value attention without a network is behind on both."
)

# file: (what draws it, its alt text, which README or the page beside it repeats)
PICTURES = {
    "three.svg": (three_systems, THREE_TOLD),
    "systems.svg": (five_systems, FIVE_TOLD),
    "systems-tall.svg": (five_systems_tall, FIVE_TOLD),
    "sources.svg": (
        sources_map,
        "Every plan of the course down, twelve layers across, each cell lettered by the source of "
        "its values: own stream, an earlier layer, x0, a table by token id or by the last n ids, a "
        "latent, all streams so far, a mixture, or no attention. A strip marks the layers where a "
        "row of a table joins the stream instead: ple and engram.",
    ),
    "sources-short.svg": (
        short_map,
        "Nine systems down, twelve layers across: which layers take their values from their own "
        "stream, an earlier layer, the token embedding, a table by token id, or a mixture.",
    ),
    "recorded.svg": (recorded, RECORDED_TOLD),
    "recorded-tall.svg": (recorded_tall, RECORDED_TOLD),
}


def drawn(name):
    """One of the pictures, as bytes."""
    draw, alt = PICTURES[name]
    figures.check_alt(alt)
    made = draw()
    if isinstance(made, Drawing):
        return made.svg.encode()
    return turning(figures.picture(made, Path(name).suffix[1:]))


def turning(svg):
    """A picture that turns dark with the page around it, as the drawings do. A hundredth of a point
    is finer than a screen: more decimals would double the file."""
    svg = re.sub(rb"([MLCQ ][\d.]+\.\d\d)\d+", rb"\1", svg)  # of paths; a scale keeps its own
    return svg.replace(b"</style>", DARK.encode() + b"</style>", 1)


@command("evidence.research.pictures", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        write_whole(FIGURES / name, drawn(name))
        print(f"drew slides/figures/{name}")


if __name__ == "__main__":
    main()
