"""Which pictures do README and slides show, and in which words for those who cannot see them?

python -m evidence.research.pictures        redraw them from plans and records into slides/figures/
"""

import itertools
import re
from pathlib import Path

from course import figures
from course.drawings.canvas import Drawing
from course.drawings.moving import dose as moving_dose_of
from course.drawings.moving import moving
from course.drawings.moving import seeds as moving_seeds_of
from course.drawings.systems import systems
from course.records import CHECKOUT, EVIDENCE, rows_of
from course.source_map import sources_map
from evidence.lab.comparison import of_seeds
from evidence.lab.quantities import quantity
from evidence.research import (
    answer,
    at_best,
    content,
    dose,
    fetch,
    fetch_first,
    many_answers,
    slopes,
    text_leads,
    who,
)
from evidence.research.answer import beside
from evidence.research.names import HEADLINE
from minimal.command import command
from minimal.data.files import write_whole

FIGURES = CHECKOUT / "slides" / "figures"

# What a reader's dark page does to a picture: paper and letters change places, hues stay. White
# becomes the dark paper of the drawings.
DARK = """
@media (prefers-color-scheme: dark) { svg > g { filter: invert(.92) hue-rotate(180deg); } }
"""

FIVE_SYSTEMS = ("standard", "resformer", "svformer", "bov", "bypass")
NINE = ("standard", "resformer", "svformer", "row9", "bov", "vplus", "modded", "dva", "bypass")


FIRST_SHOWN = 200  # steps: before it the two curves lie on each other


def moving_arrow(columns=2):
    """Mean training loss of ten seeds, each system at its own best learning rate, on code."""
    rows = rows_of(EVIDENCE / "fair_finer_code.json")

    def mean(plan):
        curves = [row["train"] for row in rows if row["plan"] == plan]
        return [sum(at_once) / len(curves) for at_once in zip(*curves, strict=True)]

    steps = [rows[0]["every"] * (i + 1) for i in range(len(rows[0]["train"]))]
    first = steps.index(FIRST_SHOWN)
    shown = (part[first:] for part in (steps, mean("standard"), mean("x0-v")))
    return moving(*shown, MOVING_TOLD, columns)


def moving_tall():
    """For a phone, where two side by side have letters of six pixels."""
    return moving_arrow(columns=1)


TOP_LAYERS = (2, 4, 8, 12)  # layers from the top that take their values from the token
TRIES = 6  # of all ways to choose three seeds, as many are shown


def moving_dose(columns=2):
    """The leads of the question notebook "In how many layers?", one recipe, five seeds."""
    cell = lambda count: "x0-v@" + ",".join(map(str, range(12 - count, 12)))
    of = lambda text: [quantity(f"lead {cell(count)} {text} course") for count in TOP_LAYERS]
    leads = {text: of(text) for text in ("code", "novel")}
    return moving_dose_of(TOP_LAYERS, leads, DOSE_TOLD, columns)


def moving_seeds(columns=2):
    """The ten seeds of the answer, three at a time: choices evenly spaced from the lowest mean to
    the highest. The lead of every seed, and the interval that these seeds alone give."""
    rows = {}
    for title, text in (("the novel", "novel"), ("code", "code")):
        by_seed = list(quantity(f"lead x0-v {text} fine").by_seed)
        tries = sorted(itertools.combinations(by_seed, 3), key=sum)
        shown = [tries[int(len(tries) * (at + 0.5) / TRIES)] for at in range(TRIES)]
        named = [*((f"try {at}", some) for at, some in enumerate(shown, 1)), ("all ten", by_seed)]
        rows[title] = [(name, of_seeds(some)) for name, some in named]
    return moving_seeds_of(rows, SEEDS_TOLD, columns)


def dose_tall():
    return moving_dose(columns=1)


def seeds_tall():
    return moving_seeds(columns=1)


def five_systems():
    return systems(*FIVE_SYSTEMS)


def five_systems_tall():
    """For a phone, where five side by side have letters of four pixels."""
    return systems(*FIVE_SYSTEMS, columns=2)


def short_map():
    return sources_map(plans=list(NINE), title="Where do the values come from?")


def recorded_leads(stacked=False):
    """Recorded leads over standard attention on both texts, best on code first."""
    panels = {
        "code: Python's library": answer.ranked("code"),
        "a novel: War and Peace": answer.ranked("novel"),
    }
    ahead = [
        sum(row["clear"] and row["difference"] > 0 for row in rows) for rows in panels.values()
    ]
    return beside(
        panels,
        f"Clearly ahead: {ahead[0]} of {len(HEADLINE)} on code, {ahead[1]} on a novel; "
        "tables also bring parameters",
        "held-out nats a token ahead of standard, mean and 95 % interval of seeds; "
        "filled: clear of zero",
        stacked,
    )


def recorded_tall():
    """For a phone: the novel below code, in letters that need no moving sideways."""
    return recorded_leads(stacked=True)


MOVING_TOLD = (
    "One layer of attention as boxes and arrows, beside two curves of training loss. Queries and "
    "keys stay where they are; the thick arrow of the value leaves the hidden state and starts at "
    "the token. With it the loss on code falls below that of standard attention, from step 300 on."
)

DOSE_TOLD = (
    "Twelve layers as boxes, which change from the top down: two, four, eight, all take their "
    "values from the token. Beside them the lead over standard attention on code and on a novel, "
    "with intervals. On both texts two layers have more than half of what all twelve have; on code "
    "the lead is several times that on the novel."
)

SEEDS_TOLD = (
    "The lead over standard attention from three of ten seeds, six times, and from all ten, each "
    "with its interval. On the novel most tries hold zero, though all ten seeds together are clear "
    "of it; on code every try is clear of zero."
)

FIVE_TOLD = (
    "Five attention layers as boxes and arrows. Queries and keys make the map in each, and "
    "only the thick arrow of the value moves: from the layer's own stream in standard "
    "attention, also from layer 1 in ResFormer, only from layer 1 in SVFormer, from a table by "
    "token id in Bank of Values, past the value matrix in the value bypass."
)

RECORDED_TOLD = (
    "Sixteen systems down, how far their held-out loss is ahead of standard attention across, "
    "with intervals, on code and on a novel. On code twelve are clearly ahead, a hashed table of "
    "id pairs by most. On the novel the same twelve are, by less and in another order. Dynamic "
    "value attention without a network is behind on both."
)

# file: (what draws it, its alt text, which README or the page beside it repeats)
PICTURES = {
    "moving.svg": (moving_arrow, MOVING_TOLD),
    "moving-tall.svg": (moving_tall, MOVING_TOLD),
    "dose-moving.svg": (moving_dose, DOSE_TOLD),
    "dose-moving-tall.svg": (dose_tall, DOSE_TOLD),
    "seeds-moving.svg": (moving_seeds, SEEDS_TOLD),
    "seeds-moving-tall.svg": (seeds_tall, SEEDS_TOLD),
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
    "recorded.svg": (recorded_leads, RECORDED_TOLD),
    "recorded-tall.svg": (recorded_tall, RECORDED_TOLD),
}

# the others are drawn from plans alone
FROM_RECORDS = [
    f"{name}{tall}.svg"
    for name in ("moving", "dose-moving", "seeds-moving", "recorded")
    for tall in ("", "-tall")
]

# of the pages of findings: what returns (figure, alt text), or None before its grids are whole
FINDINGS = {
    "dose.svg": dose.picture,
    "at-best.svg": at_best.picture,
    "who.svg": who.picture,
    "content.svg": content.picture,
    "fetch.svg": fetch.picture,
    "fetch-first.svg": fetch_first.picture,
    "many-answers.svg": many_answers.picture,
    "tokens.svg": slopes.by_tokens,
    "texts.svg": text_leads.picture,
}


def on_the_page(name):
    """A picture as Markdown; nothing before its grids are whole."""
    found = FINDINGS[name]()
    return f"![{figures.check_alt(found[1])}](../../slides/figures/{name})" if found else ""


def drawn(name):
    """One of the pictures, as bytes; None before its grids are whole."""
    if name in FINDINGS:
        found = FINDINGS[name]()
        return found and turning(figures.figure_bytes(found[0], "svg"))
    draw, alt = PICTURES[name]
    figures.check_alt(alt)
    made = draw()
    if isinstance(made, Drawing):
        return made.svg.encode()
    svg = figures.figure_bytes(made, Path(name).suffix[1:])
    return turning(svg, decimals=1 if name == "sources.svg" else 2)


def shown(svg):
    """Text and cells of a picture, not its bytes: another Matplotlib may write another file."""
    words = re.findall(r"<!-- (.*?) -->", svg)
    return words, re.findall(r"fill: (#[0-9a-f]{6})|(<(?:path|rect|text) .*)", svg)


def is_of_today(name):
    """Does the file show what is drawn now?"""
    path = FIGURES / name
    return path.exists() and shown(path.read_text(encoding="utf-8")) == shown(drawn(name).decode())


def turning(svg, decimals=2):
    """A picture that turns dark with the page around it, as the drawings do. A hundredth of a point
    is finer than a screen, and a tenth is for the largest: more decimals would double the file."""
    kept = rb"([MLCQ ][\d.]+\.\d{%d})\d+" % decimals
    svg = re.sub(kept, rb"\1", svg)  # of paths; a scale keeps its own
    if decimals == 1:  # and where letters stand
        svg = re.sub(rb"(translate\([\d.]+\.\d)\d+", rb"\1", svg)
    return svg.replace(b"</style>", DARK.encode() + b"</style>", 1)


@command("evidence.research.pictures", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    FIGURES.mkdir(parents=True, exist_ok=True)
    for name in (*PICTURES, *FINDINGS):
        if made := drawn(name):
            write_whole(FIGURES / name, made)
            print(f"drew slides/figures/{name}")


if __name__ == "__main__":
    main()
