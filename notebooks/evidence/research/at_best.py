"""How do systems stand where each has the rates that suit it best? On seeds that chose nothing.

The grids at_its_best_*: the tuning grids chose the rates, others of the same seeds as in the fair
grids tried them. The grids as_wide_* add a `standard` as large as the tables, with the same seeds.
"""

from course.markdown import table
from evidence.research import asked, pairs, states
from evidence.research.asked import NAMED
from evidence.research.leads import number, row_in_words, signed
from evidence.research.title import MARGIN, WIDENED

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


# ---- tables, over a standard as large ------------------------------------------------------------

TABLES_FIXED, WIDENED_STANDARD = "bov-fixed", f"standard, hidden {WIDENED[4]}"
OVER_AS_WIDE = dict(code=(0.13, 0.23), novel=(0.015, 0.04))  # foretold of tables
WIDER = (0.0, 0.03)  # and of standard widened, over standard, on both texts


def texts_of_wide():
    """Where both grids are whole, and of one state of the numbers."""
    return [text for text in texts() if pairs.whole(f"as_wide_{text}") and of_one_state_with(text)]


def of_one_state_with(text):
    both = (pairs.whole_rows(f"{question}_{text}") for question in ("at_its_best", "as_wide"))
    return states.state_of([row for rows in both for row in rows])


def over_as_wide(text):
    """Tables ahead of a standard as large, each at its own best rates: a row of a table."""
    return lead(text, TABLES_FIXED, WIDENED_STANDARD, of="as_wide")


def wider(text):
    """Standard widened ahead of standard."""
    return asked.lead("as_wide", text, WIDENED_STANDARD, of="at_its_best")


def tables_over_as_wide():
    """In words, on each text."""
    return asked.on_each({text: over_as_wide(text) for text in texts_of_wide()})


def foretold_of_wide():
    """What was written before the first run, and what came."""
    lines = []
    for text in texts_of_wide():
        span = " to ".join(map(number, WIDER))
        words = f"`standard` widened ahead of `standard` by {span} on {NAMED[text]}"
        lines.append([words, asked.came_between(wider(text), *WIDER)])
        row, (low, high) = over_as_wide(text), OVER_AS_WIDE[text]
        words = f"tables ahead of it by {number(low)} to {number(high)} on {NAMED[text]}, clear"
        lines.append([words, f"{asked.came_between(row, low, high)}; {asked.standing(row)}"])
        below = "it did" if row["high"] < MARGIN else "it did not"
        lines.append([f"our mind changes on {NAMED[text]}: a lead below .01", below])
    return table(["foretold", "came"], lines)


# ---- in words ------------------------------------------------------------------------------------


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
