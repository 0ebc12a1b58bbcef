"""Where do the values of each plan come from, layer by layer? The map of sources, as a picture.

It is drawn from the plans themselves: a source tells its `mark` (values.py), and the tables below
say how that mark looks. The letter alone is enough to tell two sources apart.
"""

from torch.nn import Module

from course.figures import INK, PAPER, axes
from minimal.model.attention import Dynamic, Gated
from minimal.model.lookup import AlsoIntoStream, IntoStream, Looked
from minimal.variants import PLANS, skeleton

SOURCES = dict(  # mark -> (colour, hatch, letter)
    own=("#dfe3e8", "", ""),
    layer=("#9ec7ec", "//", "1"),
    x0=("#b9dfb3", "\\\\", "x"),
    stream=("#d5ebc4", "\\\\\\", "X"),
    key=("#cfd6f0", "//\\\\", "k"),
    table=("#f2b48f", "..", "E"),
    slots=("#f6d6a8", "oo", "n"),
    opened=("#f7c9c4", "/-", "e"),
    latent=("#cfe6e3", "||", "c"),
    depth=("#e6cfd8", "++", "Σ"),
    mix=("#d9c6ea", "xx", "+"),
    input=("#efe08a", "--", "h"),
    query=("#f3c4d6", "||", "q"),
    none=("#ffffff", "", "–"),
)

LEGEND = dict(
    own="the layer's hidden state",
    layer="an earlier layer (1 = the first, V₁)",
    x0="x0 W_V",
    stream="X_j W_V, the hidden state that enters layer j + 1",
    key="the layer's own key",
    table="table by token id",
    slots="table by the last n ids",
    opened="table by token id, opened by the hidden state",
    latent="a latent that is kept, W c",
    depth="all hidden states so far, mixed",
    mix="a mixture, and with what",
    input="the input itself",
    query="hidden state, changed by the query that reads it",
    none="no attention",
)

TITLE = "Where do the values come from? One row a plan, one cell a layer"
SIGNS = (  # in lines
    {"γ": "learned coefficients", "⊙": "gate on the way out"},
    {"·": "queries, keys or reading changed"},
)
STRIP = 0.36  # of a cell: a row that joins the stream, on the side where it joins
STRIPS = (
    "A strip in a cell: a row of a table joins the hidden\n"
    "state, before (left) or behind the layer (right)"
)


def sources_map(size="tiny", plans=None, title=TITLE):
    """Plans down, layers across: a figure."""
    plans = plans or list(PLANS)
    models = [skeleton(plan, size) for plan in plans]
    layers = max(len(model.blocks) for model in models)
    width, height = 0.42 * layers + 3.4, 0.21 * len(plans) + 1.5
    fig, ax = axes(title, "layer", "", width, height)
    ax.grid(False)
    used, written = set(), set()
    for y, model in enumerate(models):
        strips = tables_in_stream(model)
        for at, block in enumerate(model.blocks):
            marks, letters = described(block.attention)
            side, mark = strips.get(at, ("", None))
            cell(ax, at, y, marks[0], letters, side)
            used.update(marks)
            written.update(letters)
            if mark:
                strip(ax, at, y, mark, side)
                used.update([mark, "strip"])
    ax.set_xlim(0, layers)
    ax.set_ylim(len(plans), 0)
    ax.set_xticks([at + 0.5 for at in range(layers)], range(1, layers + 1))
    ax.set_yticks([y + 0.5 for y in range(len(plans))], plans, fontsize=8)
    legend(ax, [mark for mark in SOURCES if mark in used], signs_in(written, "strip" in used))
    return fig


def described(attention):
    """(the marks that a layer's cell stands for, its letters): a mixture tells what joins it."""
    if attention is None:
        return ["none"], SOURCES["none"][2]
    source = attention.value
    marks, letters = [source.mark], letter_of(source)
    if isinstance(attention.read, Dynamic):
        marks, letters = ["query"], SOURCES["query"][2]
    joined = source.partner()  # of x + y: what is added to the own stream
    if joined is not source:
        marks.append(joined.mark)
        letters += letter_of(joined)
    if learns(source):
        letters += "γ"
    if isinstance(attention.read, Gated):
        letters += "⊙"
    elif attention.query.label() or attention.key.label() or attention.read.label():
        letters += "·"
    return marks, letters


def learns(source):
    """Has a source a number of its own that is learned: a gain, or a weight in a mixture?"""
    weights = [getattr(source, name, None) for name in ("gain", "a", "b")]
    return any(isinstance(weight, Module) and [*weight.parameters()] for weight in weights)


def value_matrices(plan, size="tiny"):
    """In how many layers does a plan have a matrix W_V?"""
    named = skeleton(plan, size).named_parameters()
    return sum("attention.value" in name and p.ndim == 2 for name, p in named)


def tables_in_stream(model):
    """{layer: (side, mark)} of the rows of tables that join the stream and not the values."""
    found = {}
    for stream in model.streams:
        if isinstance(stream, IntoStream):
            side = "behind" if stream.behind else "before"
            found |= {int(at): (side, look.mark) for at, look in stream.looks.items()}
        if isinstance(stream, AlsoIntoStream):
            for at, sources in model.sources().items():
                for part in sources:
                    if isinstance(part, Looked):
                        found[at] = ("behind", part.mark)
    return found


def letter_of(source):
    if source.mark == "layer":
        return str(source.j + 1)
    return SOURCES[source.mark][2]


def cell(ax, x, y, mark, letters, side=""):
    """A layer; its letters make room for a strip at that side."""
    middle = x + {"": 0.5, "before": (1 + STRIP) / 2, "behind": (1 - STRIP) / 2}[side]
    box(ax, x, y, 1, mark)
    ax.text(middle, y + 0.54, letters, ha="center", va="center", fontsize=7.5)


def strip(ax, x, y, mark, side):
    """What joins the stream before a layer, or behind it."""
    left = x if side == "before" else x + 1 - STRIP
    box(ax, left, y, STRIP, mark)
    letter = SOURCES[mark][2]
    ax.text(left + STRIP / 2, y + 0.54, letter, ha="center", va="center", fontsize=7.5)


def box(ax, x, y, width, mark):
    from matplotlib.patches import Rectangle

    colour, hatch, _ = SOURCES[mark]
    look = dict(facecolor=colour, edgecolor=PAPER, hatch=hatch, linewidth=1.2)
    ax.add_patch(Rectangle((x, y), width, 1, **look))


def signs_in(written, strips):
    """Lines that say what the signs mean that stand somewhere."""
    lines = [[f"{sign}: {line[sign]}" for sign in line if sign in written] for line in SIGNS]
    return ["   ".join(line) for line in lines if line] + [STRIPS] * strips


def legend(ax, marks, also):
    """What the colours mean, below what the signs that occur mean."""
    from matplotlib.patches import Patch

    patches = []
    for mark in marks:
        colour, hatch, letter = SOURCES[mark]
        look = dict(facecolor=colour, hatch=hatch, edgecolor=INK, linewidth=0.4)
        patches.append(Patch(label=f"{letter or ' '}  {LEGEND[mark]}", **look))
    ax.legend(
        handles=patches,
        loc="upper left",
        bbox_to_anchor=(1.01, 1),
        frameon=False,
        fontsize=8.5,
        alignment="left",
        title="\n".join(also),
        title_fontsize=8.5,
    )
