"""Does the answer hold in a model of 135M parameters? From the grids `answer_d12*`, made on a GPU.

    lead_in_d12("x0-v")                how far it is ahead of standard at the end: a row of a table
    lead_in_d12("x0-v", at=HALFWAY)    the same in the middle of the run

An interval holds the error of the seeds alone: every run is read on the same 512 held-out rows, a
million tokens. What was foretold stands in title.EXPECTED_AT_D12 and title.MORE_AT_D12.
"""

from course import records
from course.markdown import table
from evidence.research import asked, leads, pairs
from evidence.research.asked import above, came_between, it_did, so
from evidence.research.leads import row_in_words
from evidence.research.title import AT_D12, WIDENED_AT_D12

# the first asks the question, the others add plans of the same state; the last is standard again
GRID = "answer_d12"
TABLES_GRID, MORE_GRID, AGAIN_GRID = (f"{GRID}_{name}" for name in ("tables", "more", "again"))
END, HALFWAY = AT_D12.steps, AT_D12.steps // 2

WIDE_IN_D12 = f"standard, hidden {WIDENED_AT_D12}"
IN_D12 = {
    "x0-v": "x0 W_V in all layers",
    "row8": "x0 W_V in the last third",
    "svformer": "SVFormer",
    "resformer": "ResFormer",
    "bov": "tables in the last third",
    WIDE_IN_D12: "standard as large as these tables",
}
OVER_EACH_OTHER = {
    ("row8", "x0-v"): "x0 W_V in the last third, ahead of all layers",
    ("x0-v", "svformer"): "x0 W_V in all layers, ahead of SVFormer",
    ("x0-v", "resformer"): "x0 W_V in all layers, ahead of ResFormer",
    ("bov", WIDE_IN_D12): "tables, ahead of standard as large",
}


def is_recorded(*grids):
    return all(map(pairs.whole, grids or (GRID,)))


def rows_of_cells(*grids):
    """{cell: its rows}, of the grids that are whole."""
    found = {}
    for row in (row for grid in grids for row in pairs.whole_rows(grid)):
        cell = leads.cell_of(row["plan"], row["asked"].get("changes") or {})
        found.setdefault(cell, []).append(row)
    return found


def in_d12():
    """The same, of every cell that was trained once."""
    return rows_of_cells(GRID, TABLES_GRID, MORE_GRID)


def losses_in_d12(cell, at=END):
    """{seed: held-out nats a token after so many steps}."""
    return losses_after(at, in_d12()[cell])


def losses_after(steps, rows):
    return {row["seed"]: dict(row["valid"])[steps] for row in rows}


def by_seed_in_d12(plan, over="standard", at=END):
    return leads.between(losses_in_d12(plan, at), losses_in_d12(over, at))


def lead_in_d12(plan, over="standard", at=END):
    return leads.as_row(plan, by_seed_in_d12(plan, over, at))


def millions(cell, what="parameters"):
    """What a run of a cell has, parameters or tokens, in millions."""
    return in_d12()[cell][0][what] / 1e6


def hardware():
    return records.read(GRID)["hardware"]


# ---- in words ------------------------------------------------------------------------------------


def sentence():
    """The lead in d12; nothing before the grid is whole."""
    if not is_recorded():
        return ""
    size, tokens = millions("standard"), millions("standard", "tokens")
    words = (
        f"In a model of {size:.0f}M parameters it is {row_in_words(lead_in_d12('x0-v'))} on code "
        f"after {tokens:.0f}M tokens. "
    )
    if is_recorded(MORE_GRID):
        more = asked.standing(lead_in_d12("row8", "x0-v")) == "ahead"
        third = row_in_words(lead_in_d12("row8")) + ", which is more" * more
        words += f"There the last third alone leads by {third}. "
    return words + "Longer runs of that size are not known."


def all_plans():
    """Every plan ahead of standard, halfway and at the end, and some ahead of each other."""
    lines = []
    for cell, words in IN_D12.items():
        if cell in in_d12():
            lines.append([words, f"{millions(cell):.0f}M", *halfway_and_end(cell, "standard")])
    for (cell, other), words in OVER_EACH_OTHER.items():
        if {cell, other} <= set(in_d12()):
            lines.append([words, "", *halfway_and_end(cell, other)])
    columns = ["d12, ahead of standard", "parameters"]
    return table([*columns, f"after {HALFWAY} steps", f"after {END}"], lines)


def halfway_and_end(cell, over):
    return [row_in_words(lead_in_d12(cell, over, at)) for at in (HALFWAY, END)]


# Commits a5bf67d and 909089c; every run was trained after the second.
REGISTERED = (
    "The grid was registered with a fourth plan, tables. A first machine was lost before any run "
    "was whole, but training losses of one seed had been seen (after 300 steps 1.976 for "
    "`standard`, 1.871 for x0 W_V). Then tables were taken out until a `standard` as large could "
    "stand beside them; what was expected of the others stayed."
)


STANDING = {
    "ahead": "ahead of",
    "behind": "behind",
    "level": "level with",
    "open": "not told apart from",
}


def beside_each_other():
    """The dose in d12, and tables at equal parameters: a sentence each, of what is whole."""
    words = []
    if is_recorded(MORE_GRID):
        row = lead_in_d12("row8", "x0-v")
        words.append(
            f"Values of the token in the last third alone are {STANDING[asked.standing(row)]} "
            f"those in all twelve layers ({row_in_words(row)})."
        )
    if is_recorded(TABLES_GRID):
        row, times = lead_in_d12("bov", WIDE_IN_D12), times_the_flops()
        words.append(
            f"Tables are {STANDING[asked.standing(row)]} a `standard` as large "
            f"({row_in_words(row)}), which takes {times:.1f} times their FLOPs."
        )
    return " ".join(words)


def times_the_flops():
    """FLOPs of standard as large, as a multiple of those with tables."""
    return millions(WIDE_IN_D12, "flops") / millions("bov", "flops")


def second_half(cell="x0-v"):
    """The lead at the end less that halfway, seed by seed: a row of a table."""
    before, after = (by_seed_in_d12(cell, at=at) for at in (HALFWAY, END))
    return leads.as_row(cell, leads.change(after, before))


def halfway():
    """Did the lead change from halfway to the end?"""
    row = second_half()
    grew = "grew" if row["difference"] > 0 else "shrank"
    told = grew if row["clear"] else "did not clearly change"
    return (
        f"From halfway to the end the lead of x0 W_V {told} ({row_in_words(row)}), so what a "
        "longer run would leave of it cannot be read off these"
    )


def again():
    """How far the second runs of standard ended from the first."""
    first, second = (
        losses_in_d12("standard"),
        losses_after(END, rows_of_cells(AGAIN_GRID)["standard"]),
    )
    return max(abs(second[seed] - first[seed]) for seed in first)


def across_commits():
    """What joins the later plans to the first ones; nothing before it was measured."""
    if not is_recorded(AGAIN_GRID):
        return ""
    return (
        "The last four plans were trained later, by another commit. With it the three runs of "
        f"`standard` were trained again and ended within {again():.4f} of the first ones."
    )


def foretold():
    """What was written before the first run of each grid, and what came."""
    first, second = lead_in_d12("x0-v"), lead_in_d12("svformer")
    rows = [
        ["x0 W_V in all layers ahead by .03 to .12", came_between(first, 0.03, 0.12)],
        ["and clear", so(first["clear"])],
        ["SVFormer ahead by 0 to .06", came_between(second, 0.0, 0.06)],
        ["SVFormer behind x0 W_V", above(lead_in_d12("x0-v", "svformer"), 0.0)],
        ["our mind changes: x0 W_V behind, or within .01", within_little("x0-v")],
    ]
    for grid, came in CAME_LATER.items():
        rows += came() if is_recorded(grid) else []
    return table(["foretold", "came"], rows)


def within_little(*cells):
    """The condition under which larger models would not be covered by the answer."""
    return it_did(any(lead_in_d12(cell)["high"] < 0.01 for cell in cells))


def came_of_tables():
    tables, wide = lead_in_d12("bov"), lead_in_d12(WIDE_IN_D12)
    over = lead_in_d12("bov", WIDE_IN_D12)
    return [
        ["tables in the last third ahead by .06 to .12", came_between(tables, 0.06, 0.12)],
        ["standard as large ahead by .03 to .09", came_between(wide, 0.03, 0.09)],
        ["both clear", so(tables["clear"] and wide["clear"])],
        ["tables ahead of standard as large by 0 to .06", came_between(over, 0.0, 0.06)],
        ["our mind changes: tables behind it, clearly", it_did(over["high"] < 0)],
    ]


def came_of_more():
    resformer, third = lead_in_d12("resformer"), lead_in_d12("row8")
    over = [lead_in_d12("x0-v", plan) for plan in ("resformer", "row8")]
    return [
        ["ResFormer ahead by .02 to .05", came_between(resformer, 0.02, 0.05)],
        ["x0 W_V in the last third ahead by .03 to .08", came_between(third, 0.03, 0.08)],
        ["both clear", so(resformer["clear"] and third["clear"])],
        ["x0 W_V in all layers ahead of ResFormer by 0 to .05", came_between(over[0], 0.0, 0.05)],
        ["and of x0 W_V in the last third by 0 to .05", came_between(over[1], 0.0, 0.05)],
        ["our mind changes: one of them behind, or within .01", within_little("resformer", "row8")],
    ]


def came_again():
    word = so(again() < 0.02)
    return [["standard's second runs within .02 of the first", f"{word}: {again():.4f} at most"]]


CAME_LATER = {TABLES_GRID: came_of_tables, MORE_GRID: came_of_more, AGAIN_GRID: came_again}
