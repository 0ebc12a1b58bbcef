"""How do systems stand where each has the rates that suit it best? On seeds that chose nothing.

The grids at_its_best_*: the tuning grids chose the rates, others of the same seeds as in the fair
grids tried them.
"""

from course.markdown import table
from evidence.research import asked
from evidence.research.asked import NAMED
from evidence.research.leads import number, row_in_words, signed

texts, lead = asked.of_question("at_its_best")

CALLED_HERE = {
    "x0-v": "x0 W_V in all layers",
    "bov-fixed": "tables in the last third, gain fixed",
    "resformer": "ResFormer",
    "denseformer": "DenseFormer",
    "svformer": "SVFormer",
}
BETWEEN = dict(  # {text: {system: what was written before the first run}}
    code={
        "resformer": (0.05, 0.09),
        "svformer": (0.02, 0.06),
        "bov-fixed": (0.22, 0.29),
        "denseformer": (0, 0.06),
    },
    novel={
        "resformer": (-0.005, 0.015),
        "svformer": (-0.025, 0),
        "bov-fixed": (0.035, 0.065),
        "denseformer": (0.015, 0.045),
    },
)


def systems_at_their_best(text):
    """Leads over standard as rows of a picture, in the order of the table."""
    return [lead(text, plan) | dict(plan=name) for plan, name in CALLED_HERE.items()]


def at_their_rates():
    """Leads over standard, text beside text."""
    lines = []
    for plan, name in CALLED_HERE.items():
        words = (row_in_words(lead(text, plan)) for text in texts())
        lines.append([name, *words])
    return table(["ahead of `standard`", *(NAMED[text] for text in texts())], lines)


def on_the_texts(plan):
    """How far it is ahead of standard, on each text, in words."""
    return asked.on_each({text: lead(text, plan) for text in texts()})


def for_a_slide(plan):
    """The same for a slide: means, and which of them is not clear."""
    parts = []
    for text in texts():
        row = lead(text, plan)
        doubt = "" if row["clear"] else " (not clear)"
        parts.append(f"{signed(row['difference'])} on {NAMED[text]}{doubt}")
    return ", ".join(parts)


def foretold():
    """What was written before the first run, and what came."""
    lines = []
    for text in texts():
        for plan, (low, high) in BETWEEN[text].items():
            row = lead(text, plan)
            span = f"{number(low)} to {number(high)}"
            words = f"{CALLED_HERE[plan]} by {span} on {NAMED[text]}"
            lines.append([words, asked.came_between(row, low, high)])
        lines.append([f"our mind changes on {NAMED[text]}", our_mind(text)])
    return table(["foretold", "came"], lines)


def our_mind(text):
    """ResFormer or SVFormer clearly ahead of x0 W_V?"""
    ahead = []
    for plan in ("resformer", "svformer"):
        row = lead(text, plan, over="x0-v")
        if row["clear"] and row["difference"] > 0:
            ahead.append(CALLED_HERE[plan])
    return f"it did: {' and '.join(ahead)} ahead of x0 W_V" if ahead else "it did not"
