"""What do rates of its own do to a lead? The same seeds, with one recipe for all and without.

Nobody planned this: it was asked once all of its grids were whole, of seeds that two of them share.
"""

from course.markdown import table
from evidence.research import at_best, dose, leads, pairs, title
from evidence.research.asked import on_each
from evidence.research.leads import number, row_in_words

OLDER = "ten_seeds_novel"  # one recipe, tuned for none; on code these grids read fewer rows


# ---- the answer ----------------------------------------------------------------------------------


def answer_changes():
    """{text: by how much the lead of all twelve layers with rates of their own exceeds that with
    the recipe}, of the seeds of the dose: three of them chose these rates, the others did not."""
    found = {}
    for text in title.TEXTS:
        ours, theirs = (at_chosen_rates(text, plan) for plan in ("x0-v", "standard"))
        with_recipe = dose.ahead_by_seed("dose", text, dose.ALL)
        changed = leads.change(leads.between(ours, theirs), with_recipe)
        found[text] = leads.as_row(text, changed)
    return found


def at_chosen_rates(text, plan):
    """{seed: loss} at the rates of the answer, of the seeds that chose them and of the others."""
    (chosen,) = [cell["overrides"] for cell in title.FINER_FAIR[text] if cell["plan"] == plan]
    grids = (f"tuning_finer_{text}", f"fair_finer_{text}")
    rows = [row for grid in grids for row in pairs.rows_asked(grid, plan, overrides=chosen)]
    return {row["seed"]: row["loss"] for row in rows}


def answer_in_words():
    return on_each(answer_changes())


# ---- the other systems ---------------------------------------------------------------------------


def leads_on_the_novel():
    """{system: its lead by seed with the older recipe, and with rates of its own}, of the seeds
    that both grids have."""
    older = pairs.whole_rows(OLDER)
    found = {}
    for plan in at_best.told_systems():
        before = leads.between(*(pairs.by_seed(older, one) for one in (plan, "standard")))
        own = dose.ahead_by_seed(at_best.question_of(plan), "novel", plan, of="at_its_best")
        seeds = before.index.intersection(own.index)
        if len(seeds):
            found[plan] = before[seeds], own[seeds]
    return found


def changes_on_the_novel():
    """{system: by how much its lead on the novel exceeds that with the older recipe}."""
    return {
        plan: leads.as_row(plan, leads.change(own, before))
        for plan, (before, own) in leads_on_the_novel().items()
    }


def on_the_novel_in_words():
    found = list(changes_on_the_novel().values())
    clear = [row["difference"] for row in found if row["clear"]]
    smaller = [number(-change) for change in sorted(clear, reverse=True) if change < 0]
    by = f", by {smaller[0]} to {smaller[-1]}" if smaller else ""
    return (
        f"on the novel {len(smaller)} of {len(found)} leads are clearly smaller so than with the "
        f"older recipe{by}, and {len(clear) - len(smaller) or 'none'} clearly larger"
    )


def all_changes():
    """The same, system by system."""
    lines, changes = [], changes_on_the_novel()
    for plan, found in leads_on_the_novel().items():
        words = [row_in_words(leads.as_row(plan, lead)) for lead in found]
        lines.append([at_best.CALLED_HERE[plan], *words, row_in_words(changes[plan])])
    return table(
        ["on the novel, ahead of `standard`", "older recipe", "own rates", "change"], lines
    )
