"""What do the records answer to the title? The parts of the first page of findings.

A grid that is not whole says how many of its runs are recorded, and nothing else.
"""

import json
import subprocess
import textwrap

import pandas as pd

from course import figures, records
from evidence.research import gains, leads, numbers, pairs, slopes, title, why
from evidence.research.grids import GRIDS
from evidence.research.names import HEADLINE
from evidence.research.title import TEXTS
from minimal.compare.runs import asked_of

LATER = {  # systems of grids beside the big table: their grid
    "ngram-hash": "frontier_forms",
    "engram": "frontier",
}


# ---- what is there, and when it was asked --------------------------------------------------------


# grids recorded part by part, and the commit before that which names all of their cells
PREPARED = dict(critical_point="905fb24")


def grown(name):
    """The plans of the cells that a grid was given after all that it then had was recorded with the
    same seeds, as git tells it; none where there is no history."""
    if name in PREPARED:
        return []
    file = f"notebooks/evidence/{name}.json"
    for commit in said_by_git("log", "--reverse", "--format=%h", "--", file).split():
        version = said_by_git("show", f"{commit}:{file}")
        there = cells_of(json.loads(version)["rows"]) if version else {}
        seeds = {tuple(sorted(some)) for some in there.values()}
        if len(seeds) == 1 and len(*seeds) >= pairs.SEEDS:
            later = (run.plan for run in GRIDS[name].runs() if cell_of_run(run) not in there)
            return sorted(set(map(str, later)))
    return []


def cells_of(rows):
    """{(plan, what was asked): its seeds}."""
    found = {}
    for row in rows:
        asked = pairs.words_of(row.get("asked", {}))
        found.setdefault((row["plan"], asked), set()).add(row["seed"])
    return found


def cell_of_run(run):
    return str(run.plan), pairs.words_of(asked_of(run))


def said_by_git(*words):
    done = subprocess.run(
        ["git", *words], cwd=records.CHECKOUT, capture_output=True, encoding="utf-8"
    )
    return done.stdout if done.returncode == 0 else ""


# ---- leads ---------------------------------------------------------------------------------------


def slow(text, plan="bov-every", rate="0.005"):
    """A plan with a learned gain at a slow rate: its lead over standard, by seed."""
    ours = pairs.by_seed(gains.slowed(text, plan, rate), plan)
    return leads.between(ours, gains.at_the_papers_rate(text, "standard"))


def later(text, plan):
    """A system that came later, over the standard of its own grid."""
    return leads.cell_lead(pairs.runs_of(f"{LATER[plan]}_{text}"), plan)


def widened(text):
    """Tables in the last third over standard with as many parameters, in nats, by seed."""
    df = pairs.runs_of(f"why_vocab_{text}")
    df = df[~df.differs.str.contains("vocab")]
    return leads.cell_lead(df, "bov-fixed", f"standard, hidden {why.WIDE[1024]}")


def as_large(text):
    """Engram with MLPs that are narrower for its tables, over standard of its size."""
    return leads.cell_lead(pairs.runs_of(f"frontier_places_{text}"), "engram, hidden 75")


def along(grid, system, at=-1, over=0):
    """By how much a lead at the end of an axis exceeds that at its beginning: tested as a change,
    seed by seed."""
    place_of, *_ = slopes.AXES[slopes.CURVES[grid][0]]
    places = list(slopes.by_place(pairs.whole_rows(grid), place_of).values())
    ends = (places[at], places[over])
    return leads.change(*(leads.between(end[system], end["standard"]) for end in ends))


# ---- tables --------------------------------------------------------------------------------------

VALUES = {  # in words: what its lead is, by text
    "SVFormer: every layer reads the first layer's V": lambda text: numbers.differences(
        "svformer", text
    ),
    "x0 W_V in the last third (row 8)": lambda text: numbers.differences("row8", text),
    "tables in the last third, gain fixed": lambda text: numbers.differences("bov-fixed", text),
    "control: the same tables beside V": lambda text: numbers.differences("bov-keep", text),
    "tables in all layers, slow gain": slow,
}


def values_of_the_token():
    """Leads over standard of systems whose values are functions of the token."""
    table = {
        text: {name: leads.with_interval(lead(text)) for name, lead in VALUES.items()}
        for text in TEXTS
    }
    return leads.to_markdown(pd.DataFrame(table).rename_axis("values"))


def best_systems():
    """The best of every family on both texts, with those that came later: best on code first."""
    return on_both_texts(ranked)


def on_both_texts(rows_of):
    """A table of the leads that rows_of(text) gives, in its order on code."""
    found = {text: {row["plan"]: row for row in rows_of(text)} for text in TEXTS}
    names = list(found["code"])
    words = {text: [leads.row_in_words(found[text][name]) for name in names] for text in TEXTS}
    return leads.to_markdown(pd.DataFrame(words, index=names).rename_axis("system"))


def ranked(text, plans=None):
    """Rows for figures.interval_marks, ahead above zero: systems of the big table and later ones,
    best first."""
    table = [row for row in numbers.systems(text) if row["plan"] in HEADLINE]
    table = figures.ahead(table)
    for plan, grid in LATER.items():
        if pairs.whole(f"{grid}_{text}"):
            table.append(leads.as_row(plan, later(text, plan)))
    named = [row | dict(plan=HEADLINE[row["plan"]]) for row in table]
    return sorted(named, key=lambda row: -row["difference"])


# ---- pictures --------------------------------------------------------------------------------


def beside(panels, title, xlabel, stacked=False):
    """{panel: rows} as figures.intervals, side by side on one scale: the first panel names and
    orders the plans, and each difference stands at its row's end. Or stacked, narrow as a phone."""
    width, letters, title_letters = (5.4, 48, 48) if stacked else (9.4, 200, 92)
    names = [row["plan"] for row in next(iter(panels.values()))][::-1]
    title, xlabel = textwrap.fill(title, title_letters), textwrap.fill(xlabel, letters)
    fig, row = figures.panels_of(panels, title, "", "", width, stacked)
    high = len(row) if stacked else 1
    fig.set_figheight(1.3 + high * (0.32 * len(names) + 0.5 * stacked))
    for ax, table in zip(row, panels.values()):
        by_plan = {found["plan"]: found for found in table}
        figures.interval_marks(ax, [by_plan.get(name) for name in names])
        told = stacked or ax is row[0]
        ax.set_yticks(range(len(names)), names if told else [""] * len(names))
        ax.set_ylim(-0.6, len(names) - 0.4)
        for y, name in enumerate(names):
            if name in by_plan:
                told = leads.signed(by_plan[name]["difference"])
                place = dict(xycoords=("axes fraction", "data"), va="center", fontsize=9.5)
                ax.annotate(told, (1.01, y), **place)
    left, right = zip(*(ax.get_xlim() for ax in row))
    for ax in row:
        ax.set_xlim(min(left), max(right))
        ax.locator_params(axis="x", nbins=5)
    fig.supxlabel(xlabel, fontsize=figures.LETTER)
    return fig


def panels_in_words(panels):
    """The rows of such panels for an alt text: a sentence a panel."""
    told = []
    for name, rows in panels.items():
        words = (f"{row['plan']} {leads.signed(row['difference'])}" for row in rows)
        told.append(f"{name}: {', '.join(words)}.")
    return " ".join(told)


# ---- what is being recorded ----------------------------------------------------------------------


def at_each_choice(text, *questions):
    """The mean loss of a plan (a column) where so much differs from the recipe (a row): of the six
    of the tuning grids, or of those of several questions whose grids are whole."""
    df = pd.concat(pairs.runs_of(f"{question}_{text}") for question in questions or ("tuning",))
    return df.groupby(["plan", "differs"], sort=False).loss.mean().unstack("plan")


def at_their_best(text):
    """Leads over standard where each plan has the rates that its grid chose: rows, best first."""
    df, best = pairs.runs_of(f"tuning_{text}"), at_each_choice(text).idxmin()
    of_rows = {plan: {} for plan in best.index}
    for row, differs in zip(pairs.whole_rows(f"tuning_{text}"), df.differs):
        if differs == best[row["plan"]]:
            of_rows[row["plan"]][row["seed"]] = leads.Read.of(row)
    theirs = of_rows.pop("standard")
    found = [leads.as_row_with_rows(plan, ours, theirs) for plan, ours in of_rows.items()]
    return sorted(found, key=lambda row: -row["difference"])


def tuned_systems():
    """The leads of the tuning grids on both texts, best on code first."""
    return on_both_texts(at_their_best)


def gained_on_older():
    """What standard's own best rates gain it over the recipe of the older grids, on the same seeds
    and the same rows: those of the novel, which has no more than the older grids read."""
    best = at_each_choice("novel").standard.idxmin()
    df = pairs.runs_of("tuning_novel")
    tuned = df[(df.plan == "standard") & (df.differs == best)].set_index("seed").loss
    older = leads.cell_by_seed(pairs.runs_of("thirteen_rows"), "standard")
    return leads.number(leads.between(tuned, older).mean())


def rates_in_words(differs):
    """ "matrices x 2" or "table x 2" of what a row was asked, as text."""
    overrides = json.loads(differs).get("overrides", {})
    if not overrides:
        return "the recipe's"
    by = {round(how["lr"] / title.RECIPE.rows[role].lr, 3) for role, how in overrides.items()}
    roles = "matrices" if set(overrides) == set(title.MATRICES) else ", ".join(overrides)
    return f"{roles} x {by.pop():g}"
