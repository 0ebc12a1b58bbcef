"""Does the answer hold in a model of 135M parameters? From the grid `answer_d12`, made on a GPU.

    lead_in_d12("x0-v")                how far it is ahead of standard at the end: a row of a table
    lead_in_d12("x0-v", at=HALFWAY)    the same in the middle of the run

An interval holds the error of the seeds alone: every run is read on the same 512 held-out rows, a
million tokens. What was foretold stands in title.EXPECTED_AT_D12.
"""

from course import records
from course.markdown import table
from evidence.research import leads, pairs
from evidence.research.asked import above, came_between, so
from evidence.research.leads import row_in_words
from evidence.research.title import AT_D12

GRID = "answer_d12"
END, HALFWAY = AT_D12.steps, AT_D12.steps // 2
IN_D12 = {"x0-v": "x0 W_V in all layers", "svformer": "SVFormer"}


def is_recorded():
    return pairs.whole(GRID)


def losses_in_d12(plan, at=END):
    """{seed: held-out nats a token after so many steps}."""
    rows = [row for row in pairs.whole_rows(GRID) if row["plan"] == plan]
    return {row["seed"]: dict(row["valid"])[at] for row in rows}


def by_seed_in_d12(plan, over="standard", at=END):
    return leads.between(losses_in_d12(plan, at), losses_in_d12(over, at))


def lead_in_d12(plan, over="standard", at=END):
    return leads.as_row(plan, by_seed_in_d12(plan, over, at))


def millions(plan, what="parameters"):
    """What a run of a plan has, parameters or tokens, in millions."""
    return next(row[what] for row in pairs.whole_rows(GRID) if row["plan"] == plan) / 1e6


def hardware():
    return records.read(GRID)["hardware"]


# ---- in words ------------------------------------------------------------------------------------


def sentence():
    """The lead in d12; nothing before the grid is whole."""
    if not is_recorded():
        return ""
    size, tokens = millions("standard"), millions("standard", "tokens")
    return (
        f"In a model of {size:.0f}M parameters it is {row_in_words(lead_in_d12('x0-v'))} on code "
        f"after {tokens:.0f}M tokens. Longer runs of that size are not known."
    )


def both_plans():
    """Both plans ahead of standard, halfway and at the end, and one ahead of the other."""
    lines = []
    for plan, words in IN_D12.items():
        line = [words, f"{millions(plan):.0f}M"]
        lines.append([*line, *(row_in_words(lead_in_d12(plan, at=at)) for at in (HALFWAY, END))])
    over = (row_in_words(lead_in_d12("x0-v", "svformer", at)) for at in (HALFWAY, END))
    lines.append(["the first, ahead of the second", "", *over])
    columns = ["d12, ahead of standard", "parameters"]
    return table([*columns, f"after {HALFWAY} steps", f"after {END}"], lines)


# Commits a5bf67d and 909089c; every run was trained after the second.
REGISTERED = (
    "The grid was registered with a fourth plan, tables. A first machine was lost before any run "
    "was whole, but training losses of one seed had been seen (after 300 steps 1.976 for "
    "`standard`, 1.871 for x0 W_V). Then tables were taken out; what was expected of the others "
    "stayed."
)


def second_half():
    """The lead at the end less that halfway, seed by seed: a row of a table."""
    before, after = (by_seed_in_d12("x0-v", at=at) for at in (HALFWAY, END))
    return leads.as_row("x0-v", leads.change(after, before))


def halfway():
    """Did the lead change from halfway to the end?"""
    row = second_half()
    grew = "grew" if row["difference"] > 0 else "shrank"
    told = grew if row["clear"] else "did not clearly change"
    return (
        f"From halfway to the end the lead of x0 W_V {told} ({row_in_words(row)}), so what a "
        "longer run would leave of it cannot be read off these"
    )


def foretold():
    """What was written before the first run, and what came."""
    first, second = lead_in_d12("x0-v"), lead_in_d12("svformer")
    rows = [
        ["x0 W_V in all layers ahead by .03 to .12", came_between(first, 0.03, 0.12)],
        ["and clear", so(first["clear"])],
        ["SVFormer ahead by 0 to .06", came_between(second, 0.0, 0.06)],
        ["SVFormer behind x0 W_V", above(lead_in_d12("x0-v", "svformer"), 0.0)],
        ["our mind changes: x0 W_V behind, or within .01", our_mind()],
    ]
    return table(["foretold", "came"], rows)


def our_mind():
    """The condition under which larger models would not be covered by the answer."""
    row = lead_in_d12("x0-v")
    return "it did" if row["high"] < 0.01 else "it did not"
