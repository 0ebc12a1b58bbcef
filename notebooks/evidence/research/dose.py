"""In how many layers may values be functions of the token alone? The dose, from its two grids.

    lead("code", ALL)   how far a cell is ahead of standard; the interval holds the error of the
                        seeds and that of the held-out rows
    picture()           the figure of the course; a panel for each text whose grid is whole

What was foretold stands in title.EXPECTED_DOSE; here each of its sentences meets what came.
"""

from course import figures
from course.markdown import table
from evidence.research import asked, at_d12, leads, pairs
from evidence.research.asked import NAMED, above, below, came_between, on_each, so, standing, within
from evidence.research.leads import number, row_in_words, signed
from evidence.research.title import (
    BOTTOM,
    ELSEWHERE,
    LAYERS,
    MARGIN,
    SECOND,
    TEXTS,
    TOP,
    WIDENED,
    in_layers,
)


def alone(layers):
    """The cell in which these layers make their values from the token alone, by x0 W_V."""
    return in_layers("x0-v", layers)


ALL = alone(TOP[LAYERS])
HALVED = {k: in_layers("row12", TOP[k]) for k in WIDENED}
TABLE_DOSES = {k: in_layers("bov-fixed", TOP[k]) for k in WIDENED}
STANDARD_AS_LARGE = {k: f"standard, hidden {hidden}" for k, hidden in WIDENED.items()}
DOSES = {  # where the layers lie: {how many: the cell}
    "from the top": {k: alone(layers) for k, layers in TOP.items()},
    "from the bottom": {k: alone(layers) for k, layers in BOTTOM.items()},
    "every second": {len(SECOND): alone(SECOND)},
}
BESIDE = {
    "half of it V, from the top": HALVED,
    "tables, from the top": TABLE_DOSES,
    "standard as large as tables": STANDARD_AS_LARGE,
}


FORETOLD_ELSEWHERE = dict(  # (lowest, highest) lead; title.EXPECTED_ELSEWHERE in numbers
    dose_dombey=(0.01, 0.05),
    dose_miserables=(0.01, 0.05),
    dose_long_code=(0.03, 0.10),
    dose_long_novels=(-0.02, 0.02),
    dose_wide_code=(0.08, 0.16),
    dose_wide_novel=(0.01, 0.05),
)


# ---- leads ---------------------------------------------------------------------------------------

BEYOND = {  # the grids that begin so: (in words, what is not known without them)
    "dose_long": ("After eight times as many tokens", "longer runs"),
    "dose_wide": ("At three times the width", "larger models"),
}
ON_WHAT = dict(
    dose_long_code="code",
    dose_long_novels="a folder of novels",
    dose_wide_code="code",
    dose_wide_novel="the novel",
)


CHANGED = dict(
    dose_long_code="code, 4,000 steps less 500",
    dose_wide_code="code, width 192 less 64",
    dose_wide_novel="the novel, width 192 less 64",
)

texts, lead = asked.of_question("dose")


def is_whole():
    return len(texts()) == len(TEXTS)


# ---- the answer ----------------------------------------------------------------------------------

SAID = dict(
    ahead="leads `standard`",
    behind="is behind `standard`",
    level="is level with `standard`",
    open="cannot be told from `standard`",
)
SAID_ON_A_TEXT = dict.fromkeys(SAID, "on {1}: {0}") | dict(ahead="by {} on {}")
STANDING_WORDS = dict(
    ahead="clearly ahead",
    behind="clearly behind",
    level=f"level (within {MARGIN})",
    open="not told apart",
)


# The grids in which each of the two has its own best rates, half a step finer first: what was
# written of their leads before the first run.
FAIR_STARTS = {
    "fair_finer": dict(code=(0.11, 0.16), novel=(0.0, 0.012)),
    "fair": dict(code=(0.06, 0.13), novel=(0.003, 0.015)),
}


def fairest():
    """The finest of them that is whole on both texts, or None."""
    return next((name for name in FAIR_STARTS if asked.texts(name) == [*TEXTS]), None)


def leads_of(question):
    return {text: asked.lead(question, text, "x0-v") for text in TEXTS}


def answer_leads():
    """{text: the lead of all twelve layers that answers the title}: where each of the two has its
    own best rates, on seeds that chose nothing, once these grids are whole; before that, of the
    dose, with one recipe for both."""
    if fairest():
        return leads_of(fairest())
    return {text: lead(text, ALL) for text in texts()}


def gained_finer(plan):
    """What rates half a step finer gain a system on the ten seeds, in words."""
    return on_each({text: asked.lead("fair_finer", text, plan, plan, of="fair") for text in TEXTS})


def finer_changes():
    """By how much the lead changes with these rates, seed by seed."""
    found = {}
    for text in TEXTS:
        finer, coarse = (ahead_by_seed(name, text, "x0-v") for name in ("fair_finer", "fair"))
        found[text] = leads.as_row(text, leads.change(finer, coarse))
    return on_each(found)


def opening():
    """(heading of the finding, first words of the answer), by what all twelve layers show."""
    found = {standing(row) for row in answer_leads().values()}
    if found == {"behind"}:
        return "Values need the context of their layer, at this scale", "At this scale, yes"
    if "behind" in found:
        where = "Whether values need the context of their layer depends on the text"
        return where, "At this scale it depends on the text"
    return "Values do not need the context of their layer, at this scale", "At this scale, no"


def sentence():
    """All twelve layers on each text, in words; texts that show the same share a verb."""
    told = {}
    for text, row in answer_leads().items():
        how = standing(row)
        words = f"{signed(row['difference'])} ({signed(row['low'])} to {signed(row['high'])})"
        told.setdefault(how, []).append(SAID_ON_A_TEXT[how].format(words, NAMED[text]))
    parts = (f"{SAID[how]} {' and '.join(where)}" for how, where in told.items())
    what = "A model whose twelve layers all make their values from the token alone"
    return f"{what} {', and it '.join(parts)}"


def fair_foretold(question="fair"):
    """What was written before the first run of the fair grids, and what came."""
    rows = []
    for text in asked.texts(question):
        low, high = FAIR_STARTS[question][text]
        row = asked.lead(question, text, "x0-v")
        words = f"between {decimals(low, 3)} and {decimals(high, 3)} on {NAMED[text]}"
        rows.append([words, came_between(row, low, high)])
        if question == "fair" or text == "code":
            rows.append([f"clear on {NAMED[text]}", so(row["clear"])])
        if question == "fair":
            below_little = asked.it_did(row["high"] < MARGIN)
            rows.append([f"our mind changes: below .01 on {NAMED[text]}", below_little])
        elif text == "novel":
            not_clear = asked.it_did(row["low"] < 0)
            rows.append(["our mind changes about the novel: not clear of zero", not_clear])
    return table(["foretold", "came"], rows)


def doses_counted():
    """How many doses of x0 W_V stand where, on each text."""
    cells = [cell for by_dose in DOSES.values() for cell in by_dose.values()]
    parts = []
    for text in texts():
        found = [standing(lead(text, cell)) for cell in cells]
        there = {how: found.count(how) for how in SAID if how in found}
        words = ", ".join(f"{n} {STANDING_WORDS[how]}" for how, n in there.items())
        parts.append(f"on {NAMED[text]} {words}")
    return f"Of {len(cells)} doses of x0 W_V: {'; '.join(parts)}"


# ---- tables --------------------------------------------------------------------------------------


def doses():
    """Every cell of the two grids ahead of standard, and tables ahead of standard as large."""
    lines = []
    for place, by_dose in (DOSES | BESIDE).items():
        for k, cell in by_dose.items():
            words = (row_in_words(lead(text, cell)) for text in texts())
            lines.append([place, k, *words])
    for k in WIDENED:
        words = (row_in_words(lead(text, TABLE_DOSES[k], STANDARD_AS_LARGE[k])) for text in texts())
        lines.append(["tables over standard as large", k, *words])
    return table(["values of the token", "layers", *texts()], lines)


def foretold():
    """What was written before the first run, and what came."""
    rows = [*along_the_layers(), *of_the_others(), our_mind()]
    return table(["foretold", "came"], [row for row in rows if row])


def dose_over_dose():
    """Which layers carry it, and what V does that is kept beside the token: one dose ahead of
    another."""
    top, bottom = DOSES["from the top"], DOSES["from the bottom"]
    asked_of = {
        "all twelve, ahead of the four at the top": (ALL, top[4]),
        "the eight at the top, ahead of all twelve": (top[8], ALL),
        "the four at the top, ahead of the four at the bottom": (top[4], bottom[4]),
        "the four at the top, ahead of the same with half of it V": (top[4], HALVED[4]),
    }
    lines = []
    for words, cells in asked_of.items():
        lines.append([words, *(row_in_words(lead(text, *cells)) for text in texts())])
    return table(["a dose, ahead of another", *texts()], lines)


def top_over_bottom():
    """How far four layers at the top are ahead of four at the bottom, in words."""
    four = DOSES["from the top"][4], DOSES["from the bottom"][4]
    return on_each({text: lead(text, *four) for text in texts()})


def along_the_layers():
    """The sentences on x0 W_V alone, on code first."""
    if "code" in texts():
        yield each_layer()
    for text, low, high in (("code", 0.08, 0.13), ("novel", 0.02, 0.04)):
        if text in texts():
            yield [
                f"all twelve lead by {decimals(low)} to {decimals(high)} on {NAMED[text]}",
                came_between(lead(text, ALL), low, high),
            ]
    four = DOSES["from the top"][4], DOSES["from the bottom"][4]
    if "code" in texts():
        yield [
            "four from the bottom gain less than four from the top, by .01 or more on code",
            above(lead("code", *four), 0.01),
        ]
    if "novel" in texts():
        yield ["and less on the novel", above(lead("novel", *four), 0.0)]
    yield ["every second layer lies between four and eight from the top", between_doses()]


def each_layer():
    """Does any further layer from the top gain or cost much?"""
    top = DOSES["from the top"]
    means = {0: 0.0} | {k: lead("code", cell)["difference"] for k, cell in top.items()}
    doses_ = list(means)
    steps = {(a, b): abs(means[b] - means[a]) / (b - a) for a, b in zip(doses_, doses_[1:])}
    (a, b), most = max(steps.items(), key=lambda step: step[1])
    return [
        "on code every further layer from the top gains or costs less than .02",
        f"{so(most < 0.02)}, in the mean: {number(most)} a layer at most, from {a} to {b} layers",
    ]


def of_the_others():
    """The sentences on V beside the token, and on tables."""
    halves = []
    for text in texts():
        for k in WIDENED:
            row = lead(text, HALVED[k], DOSES["from the top"][k])
            halves.append(f"{k} layers, {text}: {within(row, 0.02)}")
    yield ["V at one half beside x0 W_V is within .02 of x0 W_V alone", "; ".join(halves)]
    for text, words in (
        ("code", "tables in four layers lead standard as large on code"),
        ("novel", "and not by .05 on the novel"),
    ):
        if text in texts():
            row = lead(text, TABLE_DOSES[4], STANDARD_AS_LARGE[4])
            yield [words, above(row, 0.0) if text == "code" else below(row, 0.05)]


def between_doses():
    parts = []
    for text in texts():
        ends = sorted(lead(text, DOSES["from the top"][k])["difference"] for k in (4, 8))
        (cell,) = DOSES["every second"].values()
        mean = lead(text, cell)["difference"]
        word = so(ends[0] <= mean <= ends[1])
        words = f"{signed(mean)} where they have {signed(ends[0])} and {signed(ends[1])}"
        parts.append(f"{word} on {NAMED[text]}, in the mean: {words}")
    return "; ".join(parts)


def our_mind():
    """The condition under which the answer would be another: level or behind on both texts."""
    found = {text: standing(lead(text, ALL)) for text in texts()}
    against = [how in ("behind", "level") for how in found.values()]
    word = asked.it_did(all(against))
    if all(against) and not is_whole():
        word = "not decided before both grids are whole"
    words = "; ".join(f"{NAMED[text]}: {how}" for text, how in found.items())
    return [
        "our mind changes: all twelve behind, or within .01, on both texts",
        f"{word} ({words})",
    ]


def our_mind_of_the_answer():
    """The same condition, asked of the answer, whose two systems have rates of their own."""
    found = answer_leads()
    shown = [standing(row) for row in found.values()]
    words = (f"{NAMED[text]}: {above_little(row)}" for text, row in found.items())
    did = asked.it_did(all(how in ("behind", "level") for how in shown))
    return f"{did} ({'; '.join(words)})"


def above_little(row):
    """What a lead shows, and whether it is told from what is called little."""
    told = standing(row)
    open_ = told == "ahead" and row["low"] < MARGIN
    return f"{told}, and not told from {decimals(MARGIN)}" if open_ else told


# ---- elsewhere -----------------------------------------------------------------------------------


def recorded_elsewhere():
    """{grid: its lead} of the grids on other texts, lengths and widths that are whole."""
    found = {}
    for grid in filter(pairs.whole, ELSEWHERE):
        question, _, text = grid.rpartition("_")
        found[grid] = asked.lead(question, text, *both_cells_of(grid))
    return found


def both_cells_of(grid):
    """The two cells of such a grid: all twelve layers, and standard."""
    _, _, shared, _ = ELSEWHERE[grid]
    return [leads.cell_of(plan, shared.get("changes", {})) for plan in ("x0-v", "standard")]


def elsewhere():
    """A row for each of them, beside what was foretold."""
    lines = []
    for grid, row in recorded_elsewhere().items():
        low, high = FORETOLD_ELSEWHERE[grid]
        came = came_between(row, low, high).partition(":")[0]
        foretold_ = f"{signed(low, 2)} to {signed(high, 2)}"
        lines.append([ELSEWHERE[grid][0], row["n"], row_in_words(row), foretold_, came])
    return table(["where", "seeds", "ahead of standard", "foretold", "came"], lines)


def known_beyond():
    """What is known of longer runs and of larger models, and what is not: a sentence or two."""
    there, larger = recorded_elsewhere(), at_d12.sentence()
    known, unknown = [], []
    for kind, (words, without) in BEYOND.items():
        found = {grid: row for grid, row in there.items() if grid.startswith(kind)}
        where = (f"{row_in_words(row)} on {ON_WHAT[grid]}" for grid, row in found.items())
        if found:
            known.append(f"{words} the lead is {' and '.join(where)}.")
        elif not (larger and without == "larger models"):
            unknown.append(without)
    if unknown:
        known.append(f"{' and '.join(unknown).capitalize()} are not known.")
    return " ".join([*known, larger]).strip()


def ahead_by_seed(question, text, cell, over="standard", of=None):
    """How far a cell is ahead of another, seed by seed; the other may be `of` another question."""
    both = (question, cell), (of or question, over)
    read = (asked.held_out_losses(grid, text)[one] for grid, one in both)
    ours, theirs = ({seed: read.loss for seed, read in by_seed.items()} for by_seed in read)
    return leads.between(ours, theirs)


def changes():
    """{grid: by how much its lead exceeds the dose's on the same text}, of the seeds that both
    have, tested as a change; of what is whole."""
    found = {}
    for grid in recorded_elsewhere():
        question, _, text = grid.rpartition("_")
        if grid in CHANGED and text in texts():
            there = ahead_by_seed(question, text, *both_cells_of(grid))
            here = ahead_by_seed("dose", text, ALL)
            found[grid] = leads.as_row(grid, leads.change(there, here))
    return found


def changed_with_width():
    """By how much the lead changes at three times the width, in words."""
    found = changes()
    return on_each({text: found[f"dose_wide_{text}"] for text in TEXTS})


def changes_in_words():
    """Does the lead grow or shrink? A table; nothing before one of the grids is whole."""
    lines = [[CHANGED[grid], row["n"], row_in_words(row)] for grid, row in changes().items()]
    return table(["the lead in one less that in the other", "seeds", "change"], lines)


# ---- did it come as foretold? --------------------------------------------------------------------


def decimals(value, digits=2):
    return f"{value:.{digits}f}".removeprefix("0")


# ---- the figure ----------------------------------------------------------------------------------


def picture(width=10.4, height=4.6):
    """(figure, alt text): the lead by dose, a panel a text; None until a grid is whole."""
    if not texts():
        return None
    ends = ", ".join(f"{signed(lead(text, ALL)['difference'])} on {text}" for text in texts())
    title = f"Values of the token, nats ahead of standard: in all twelve layers {ends}"
    panels = {"code": "code", "the novel (a scale of its own)": "novel"}
    panels = {name: text for name, text in panels.items() if text in texts()}
    fig, row = figures.panels_of(panels, title, "layers", "ahead of standard", width)
    fig.set_figheight(height)
    told = [panel(ax, text) for ax, text in zip(row, panels.values())]
    alt = (
        "Lead over standard, ahead above zero, by how many of twelve layers have values of the "
        "token alone: x0 W_V from the top, from the bottom and in every second layer; half of "
        "it V; tables, and a standard as large as these; with 95 % intervals of seeds and rows. "
    )
    return fig, alt + " ".join(told)


def panel(ax, text):
    """The lines of one text: those that end at twelve layers are named there, the others in a box.
    -> all of its means, in words."""
    told, ends = [], []
    for i, (name, by_dose) in enumerate((DOSES | BESIDE).items()):
        rows = {k: lead(text, cell) for k, cell in by_dose.items()}
        means = [row["difference"] for row in rows.values()]
        words = ", ".join(f"{k}: {signed(mean)}" for k, mean in zip(rows, means))
        told.append(f"{name} {words}")

        # means and intervals, so far aside that no bar hides another
        look, places = figures.line_style(i), [k + 0.09 * i for k in rows]
        reaches_all = max(rows) == LAYERS
        ax.plot(places, means, label=None if reaches_all else name, **look)
        for x, row in zip(places, rows.values()):
            ax.plot([x, x], [row["low"], row["high"]], color=look["color"], linewidth=1)
        if name in DOSES and len(rows) > 1:  # no layer at all is standard
            ax.plot([0, places[0]], [0, means[0]], **look | dict(marker=""))
        if reaches_all:
            short = name.removesuffix(", from the top").removesuffix(" as tables")
            ends.append([means[-1], places[-1], short, look["color"]])
    ax.axhline(0, color=figures.INK, linestyle=":", linewidth=1)
    ax.set_xticks((0, 2, 4, 6, 8, 12))
    ax.set_xlim(-0.4, 12.8)
    ax.set_ylim(top=1.25 * ax.get_ylim()[1])  # room for the box above all intervals
    figures.label_ends(ax, ends)
    ax.legend(frameon=False, fontsize=9.5, loc="upper left")
    return f"{text}: {'; '.join(told)}."
