"""What was foretold of the frontier of the value path, and what came? For notebook 13 and its deck.

    recorded_so_far("xsa")      is the question's grid recorded, on each text? In words
    foretold_and_came("xsa")    a table: every lead that was foretold, and what came of it
    dial_picture()              lead over standard against the stream that values read
    foretold_spans()            what was foretold as bars, and what came as marks

Nothing is told of a grid before all its runs are recorded. Until then recorded_so_far() says so,
what came is "open", and dial_picture() is None.
"""

from course import figures, markdown
from evidence.research import asked
from evidence.research.cells import FIVE
from evidence.research.title import TEXTS, TOP, in_layers
from evidence.research.value_path import LEADS_FORETOLD

DIAL = {0: "x0-v"} | {j: f"upstream-{j}" for j in (1, 2, 4, 6, 8)}  # {stream: plan}
DIAL_PLACES = {"in all layers": ("upstream", ""), "in the last third": ("upstream_third", TOP[4])}


def recorded_so_far(question):
    done = asked.texts(question)
    if not done:
        return f"{question}: registered, not yet recorded"
    missing = [asked.NAMED[text] for text in TEXTS if text not in done]
    beside = f"; not yet on {missing[0]}" if missing else ""
    where = " and ".join(asked.NAMED[text] for text in done)
    return f"{question}: recorded on {where}, {len(FIVE)} seeds each{beside}"


def foretold_and_came(question):
    """The table in Markdown: a line a lead, text beside text."""
    of = [told for told in LEADS_FORETOLD if told.question == question]
    pairs = dict.fromkeys((told.cell, told.over) for told in of)
    heads = [f"{what} on {asked.NAMED[text]}" for text in TEXTS for what in ("foretold", "came")]
    lines = []
    for cell, over in pairs:
        by_text = {told.text: told for told in of if (told.cell, told.over) == (cell, over)}
        told = [words for text in TEXTS for words in foretold_beside_came(by_text[text])]
        lines.append([f"`{cell}` over `{over}`", *told])
    return markdown.table(["lead of", *heads], lines)


def foretold_beside_came(told):
    """What was foretold of one lead, and what came."""
    span = f"{told.low:+.3f} to {told.high:+.3f}"
    if told.text not in asked.texts(told.question):
        return span, "open"
    row = asked.lead(told.question, told.text, told.cell, told.over)
    return span, asked.came_between(row, told.low, told.high)


def dial_leads():
    """{text: {layers: rows of leads, one a stream}} of all that is recorded."""
    found = {}
    for layers, (question, at) in DIAL_PLACES.items():
        for text in asked.texts(question):
            plans = (in_layers(plan, at) if at else plan for plan in DIAL.values())
            rows = [asked.lead(question, text, plan) for plan in plans]
            found.setdefault(asked.NAMED[text], {})[layers] = rows
    return found


def furthest_ahead(series):
    """The stream whose lead is the largest, in the first of these places."""
    leads = [row["difference"] for row in next(iter(series.values()))]
    return max(zip(leads, DIAL))[1]


def dial_picture():
    panels = dial_leads()
    if not panels:
        return None
    best = (f"{text}: {furthest_ahead(series)}" for text, series in panels.items())
    title = f"Furthest ahead reads stream: {'; '.join(best)}"
    xlabel, ylabel = "stream that values read (0: the embedding)", "nats ahead of standard"
    fig, axes = figures.panels_of(panels, title, xlabel, ylabel, 1.6 + 3.6 * len(panels))
    for ax, series in zip(axes, panels.values()):
        for i, (layers, rows) in enumerate(series.items()):
            mean = [row["difference"] for row in rows]
            reach = [[row["difference"] - row["low"] for row in rows]]
            reach += [[row["high"] - row["difference"] for row in rows]]
            ax.errorbar(list(DIAL), mean, reach, label=layers, capsize=3, **figures.line_style(i))
        ax.axhline(0, color=figures.INK, linestyle=":", linewidth=1)
        ax.legend(frameon=False, fontsize=8.5)
    figures.one_scale(axes)
    words = (
        f"on {text}, {layers}, " + ", ".join(f"{row['difference']:+.3f}" for row in rows)
        for text, series in panels.items()
        for layers, rows in series.items()
    )
    streams = ", ".join(map(str, DIAL))
    alt = f"Lead over standard in held-out nats where values read stream {streams}"
    return fig, f"{alt}, with intervals over {len(FIVE)} seeds: {'; '.join(words)}."


def foretold_spans():
    """(figure, alt text) of the leads over standard that were foretold of three questions, a bar
    from the least to the most; what came is a mark, where it is recorded."""
    of = {
        told.cell: told.question
        for told in LEADS_FORETOLD
        if told.question in ("upstream", "keys", "xsa") and told.over == "standard"
    }
    shown = [told for told in LEADS_FORETOLD if told.over == "standard" and told.cell in of]
    found = {(told.cell, told.text): told for told in shown}
    fig, axes = figures.panels_of(
        [asked.NAMED[text] for text in TEXTS], "", "nats ahead of standard", "", 9.0
    )
    for ax, text in zip(axes, TEXTS):
        for y, (cell, question) in enumerate(reversed(of.items())):
            told = found[cell, text]
            ax.barh(y, told.high - told.low, 0.5, told.low, color=figures.COLOURS[0], alpha=0.35)
            if text in asked.texts(question):
                row = asked.lead(question, text, cell)
                figures.interval_marks(ax, [None] * y + [row])
        ax.axvline(0, color=figures.INK, linestyle=":", linewidth=1)
        ax.set_xlim(min(told.low for told in shown) - 0.01, max(told.high for told in shown) + 0.01)
        ax.set_yticks(range(len(of)), list(of)[::-1] if ax is axes[0] else [""] * len(of))
    states = "; ".join(recorded_so_far(question) for question in dict.fromkeys(of.values()))
    alt = f"What was foretold of {len(of)} leads over standard, as bars on code and on the novel"
    return fig, f"{alt}: from {', '.join(of)}. {states}."
