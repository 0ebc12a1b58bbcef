"""How do systems stand where each has the rates that suit it best? On seeds that chose nothing.

The grids at_its_best_*: the tuning grids chose the rates, others of the same seeds as in the fair
grids tried them. The grids as_wide_* add a `standard` as large as the tables; those that
ON_FRESH_SEEDS names add systems that were tuned later, with the same seeds.
"""

from typing import NamedTuple

from course.markdown import table
from evidence.lab.names import SYSTEMS
from evidence.research import answer, asked, pairs, states
from evidence.research.asked import NAMED
from evidence.research.leads import (
    COUNTS,
    from_to,
    number,
    rank_correlation,
    signed,
)
from evidence.research.names import NAMES
from evidence.research.title import MARGIN, WIDENED

SEVENTEEN = (
    "x0-v", "bov-fixed", "bov", "bov-keep", "row8", "row9", "row12", "row13", "resformer",
    "row5", "row6", "row11", "neutreno", "denseformer", "engram", "row2", "svformer",
)  # fmt: skip
CALLED_HERE = {cell: SYSTEMS[cell] for cell in SEVENTEEN}


class Later(NamedTuple):
    """A system that was tuned later, and what was written of it before its fresh seeds ran."""

    question: str  # its grids of fresh seeds
    lead: dict  # {text: (lowest, highest) lead over standard}
    rival: str
    over_rival: dict  # {text: (lowest, highest) lead over that}


ON_FRESH_SEEDS = {
    "row8": Later(
        "third_at_its_best",
        dict(code=(0.08, 0.16), novel=(-0.005, 0.015)),
        "x0-v",
        dict(code=(-0.03, 0.03), novel=(-0.015, 0)),
    ),
    "row12": Later(
        "half_at_its_best",
        dict(code=(0.03, 0.09), novel=(-0.01, 0.01)),
        "row8",
        dict(code=(-0.06, 0), novel=(-0.01, 0.01)),
    ),
    "bov": Later(
        "bank_at_its_best",
        dict(code=(0.14, 0.24), novel=(0.03, 0.05)),
        "bov-fixed",
        dict(code=(-0.03, 0.03), novel=(-0.01, 0.005)),
    ),
    "row5": Later(
        "first_at_its_best",
        dict(code=(0.03, 0.08), novel=(-0.015, 0.01)),
        "resformer",
        dict(code=(-0.05, 0), novel=(-0.015, 0.005)),
    ),
    "neutreno": Later(
        "first_at_its_best",
        dict(code=(-0.03, 0.03), novel=(0.01, 0.03)),
        "resformer",
        dict(code=(-0.08, -0.02), novel=(0, 0.025)),
    ),
    "bov-keep": Later(
        "keep_at_its_best",
        dict(code=(0.13, 0.22), novel=(0.025, 0.05)),
        "bov-fixed",
        dict(code=(-0.06, 0.03), novel=(-0.015, 0.005)),
    ),
    "row9": Later(
        "gain_at_its_best",
        dict(code=(0.07, 0.15), novel=(-0.005, 0.015)),
        "row8",
        dict(code=(-0.03, 0.03), novel=(-0.005, 0.01)),
    ),
    "row6": Later(
        "v1_gain_at_its_best",
        dict(code=(0.04, 0.12), novel=(-0.01, 0.01)),
        "row5",
        dict(code=(-0.03, 0.04), novel=(-0.008, 0.01)),
    ),
    "row11": Later(
        "open_at_its_best",
        dict(code=(0.03, 0.09), novel=(-0.01, 0.01)),
        "row5",
        dict(code=(-0.03, 0.03), novel=(-0.008, 0.01)),
    ),
    "row13": Later(
        "open_at_its_best",
        dict(code=(0.04, 0.11), novel=(0.008, 0.028)),
        "row8",
        dict(code=(-0.08, 0), novel=(0.008, 0.03)),
    ),
    "engram": Later(
        "engram_at_its_best",
        dict(code=(0.12, 0.19), novel=(0.11, 0.15)),
        "bov-fixed",
        dict(code=(-0.08, 0.02), novel=(0.07, 0.11)),
    ),
    "row2": Later(
        "own_gain_at_its_best",
        dict(code=(-0.03, 0.02), novel=(-0.012, 0.006)),
        "standard",
        dict(code=(-0.03, 0.02), novel=(-0.012, 0.006)),
    ),
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


def texts():
    """Of which texts anything may be told here."""
    return asked.texts("at_its_best")


def question_of(plan):
    """The grid of fresh seeds that has this system."""
    return ON_FRESH_SEEDS[plan].question if plan in ON_FRESH_SEEDS else "at_its_best"


def lead(text, plan, over="standard"):
    """How far a system is ahead of another, each at its own best rates: a row of a table."""
    return asked.lead(question_of(plan), text, plan, over, of=question_of(over))


def texts_beside(question):
    """Of which texts a grid of another question may stand beside at_its_best: both are whole, and
    of one state of the numbers."""
    beside = [text for text in texts() if pairs.whole(f"{question}_{text}")]
    return [text for text in beside if of_one_state_with(question, text)]


def of_one_state_with(question, text):
    both = (pairs.whole_rows(f"{name}_{text}") for name in ("at_its_best", question))
    return states.state_of([row for rows in both for row in rows])


def told_systems(but=()):
    """The systems that may be told on each text of at_its_best, in the order of the table; a
    picture may have no room for some."""
    late = {
        plan for plan, later in ON_FRESH_SEEDS.items() if texts_beside(later.question) != texts()
    }
    return [plan for plan in CALLED_HERE if plan not in {*late, *but}]


def how_many_systems():
    return COUNTS[len(told_systems())]


def systems_at_their_best(text, but=()):
    """Leads over standard as rows of a picture."""
    return [lead(text, plan) | dict(plan=CALLED_HERE[plan]) for plan in told_systems(but)]


def who_leads_where(but=()):
    """The same in words, for whoever does not see the picture."""
    systems = {}
    for plan in told_systems(but):
        ahead = [NAMED[text] for text in texts() if asked.standing(lead(text, plan)) == "ahead"]
        where = {0: "neither text", 1: f"{' '.join(ahead)} alone"}.get(len(ahead), "both texts")
        systems.setdefault(where, []).append(CALLED_HERE[plan])
    parts = (f"Clearly ahead on {where}: {'; '.join(found)}." for where, found in systems.items())
    return " ".join(parts)


def picture():
    """(figure, alt text): every system ahead of standard, best on code first, a panel a text."""
    panels = {NAMED[text]: systems_at_their_best(text) for text in texts()}
    first = next(iter(panels.values()))
    first.sort(key=lambda row: -row["difference"])
    ahead = (sum(asked.standing(row) == "ahead" for row in rows) for rows in panels.values())
    title = f"Clearly ahead of standard, of {len(first)}: " + ", ".join(
        f"{n} on {name}" for n, name in zip(ahead, panels)
    )
    xlabel = "each at its own best rates: nats ahead of standard; filled: clear of zero"
    fig = answer.beside(panels, title, xlabel)
    return fig, f"{title}. {who_leads_where()}"


def ordered_alike():
    """How alike the two texts order these systems, as a rank correlation."""
    means = ([lead(text, plan)["difference"] for plan in told_systems()] for text in texts())
    return number(rank_correlation(*means), 2)


def at_their_rates():
    """Leads over standard, text beside text."""
    rows = {CALLED_HERE[plan]: later_on_each(plan) for plan in told_systems()}
    return asked.text_beside_text(rows, "ahead of `standard`")


def finer_standard():
    """How far standard at rates half a step finer is ahead of itself in this table, in words; of
    the seeds that both have."""
    rows = {
        text: asked.lead("fair_finer", text, "standard", of="at_its_best")
        for text in texts_beside("fair_finer")
    }
    return asked.on_each(rows)


def finer_over_the_last_third():
    """How far all layers, half a step finer as in the answer, are ahead of the last third."""
    rows = {
        text: asked.lead("fair_finer", text, "x0-v", "row8", of="third_at_its_best")
        for text in texts_beside("fair_finer")
    }
    return asked.on_each(rows)


# ---- tables, over a standard as large ------------------------------------------------------------

TABLES_FIXED, WIDENED_STANDARD = "bov-fixed", f"standard, hidden {WIDENED[4]}"
OVER_AS_WIDE = dict(code=(0.13, 0.23), novel=(0.015, 0.04))  # foretold of tables
WIDER = (0.0, 0.03)  # and of standard widened, over standard, on both texts


def texts_of_wide():
    return texts_beside("as_wide")


def over_as_wide(text):
    """Tables at their best rates ahead of a standard as large, at those that standard chose: a row
    of a table."""
    return asked.lead("at_its_best", text, TABLES_FIXED, WIDENED_STANDARD, of="as_wide")


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
        changes = f"our mind changes on {NAMED[text]}: a lead below .01"
        lines.append([changes, asked.it_did(row["high"] < MARGIN)])
    return table(["foretold", "came"], lines)


# ---- systems that were tuned later ---------------------------------------------------------------


def later_on_each(plan, over="standard"):
    """{text: how far a system is ahead of another}, where one or both were tuned later."""
    grids = {question_of(one) for one in (plan, over)} - {"at_its_best"}
    both = [text for text in texts() if all(text in texts_beside(grid) for grid in grids)]
    return {text: lead(text, plan, over) for text in both}


def called(plan):
    """A system in words; where its fresh seeds are not registered, as older pictures call it."""
    return CALLED_HERE.get(plan) or NAMES.get(plan, f"`{plan}`")


def told_later():
    return [plan for plan, later in ON_FRESH_SEEDS.items() if texts_beside(later.question)]


def foretold_later(plan):
    """What was written of such a system before its fresh seeds, and what came."""
    later, lines = ON_FRESH_SEEDS[plan], []
    for text in texts_beside(later.question) if later.rival != "standard" else ():
        lines.append(foretold_over_standard(text, plan, *later.lead[text]))
    beside = later_on_each(plan, later.rival)
    for text, row in beside.items():
        span = from_to(*later.over_rival[text])
        words = f"ahead of {called(later.rival)} by {span} on {NAMED[text]}"
        lines.append([words, asked.came_between(row, *later.over_rival[text])])
    changes = asked.it_did(changes_our_mind(plan))
    lines.append(["our mind changes: clearly ahead of it on both texts", changes])
    return table(["foretold", "came"], lines)


def changes_our_mind(plan):
    """Is it clearly ahead, on both texts, of the rival of which this was not expected?"""
    beside = later_on_each(plan, ON_FRESH_SEEDS[plan].rival)
    ahead = [asked.standing(row) == "ahead" for row in beside.values()]
    return len(ahead) == 2 and all(ahead)


def or_our_mind(plan):
    """What a sentence on such a lead adds."""
    return ", which changes our mind, as was written before" if changes_our_mind(plan) else ""


# ---- in words ------------------------------------------------------------------------------------


def later_in_words(plan, over):
    return asked.on_each(later_on_each(plan, over))


def on_the_texts(plan):
    """How far it is ahead of standard, on each text, in words."""
    return later_in_words(plan, "standard")


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
        for plan, span in BETWEEN[text].items():
            lines.append(foretold_over_standard(text, plan, *span))
        lines.append([f"our mind changes on {NAMED[text]}", our_mind(text)])
    return table(["foretold", "came"], lines)


def foretold_over_standard(text, plan, low, high):
    """A line: between what its lead over standard was expected, and what it is."""
    words = f"{CALLED_HERE[plan]} by {number(low)} to {number(high)} on {NAMED[text]}"
    return [words, asked.came_between(lead(text, plan), low, high)]


def our_mind(text):
    """ResFormer or SVFormer clearly ahead of x0 W_V?"""
    ahead = []
    for plan in ("resformer", "svformer"):
        row = lead(text, plan, over="x0-v")
        if row["clear"] and row["difference"] > 0:
            ahead.append(CALLED_HERE[plan])
    return f"it did: {' and '.join(ahead)} ahead of x0 W_V" if ahead else "it did not"
