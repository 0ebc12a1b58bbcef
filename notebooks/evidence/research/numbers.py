"""Which numbers may the page of findings name? Each as the words that stand in its sentences.

    {{mean_lead("bov-fixed", "novel")}}                     by how much it ends below standard
    {{told("bov", "parameters", "standard in thirteen_rows")}}   the same with its interval

A *place* is "novel" or "code" (every system at one budget, from the grid with the most seeds), or a
file and what its runs were asked: "sizes layers=18", "code.json" where a text has that name. A cell
"plan in place" names its own.
"""

import functools
import re
import statistics

from course import records
from course.significance import benjamini_hochberg, holm
from evidence.research import leads, pairs, repeats, states, verdicts
from evidence.research.grids import GRIDS
from evidence.research.leads import as_row, number, signed, with_interval  # noqa: F401 slides, too
from evidence.research.pooled import pooled
from minimal.compare import intervals

TABLES = re.compile("bov|vplus|modded")  # plans with tables by token

FILES_OF = dict(novel=verdicts.ON_NOVEL, code=verdicts.CODE_FILES)


# ---- two cells on the same seeds -----------------------------------------------------------------


def named_cell_by_seed(cell, place):
    """{seed: value} of "plan", "plan.field" or "plan in place"."""
    name, _, own_place = cell.partition(" in ")
    _, *wanted = (own_place or place).split()
    file = file_of(cell, place)
    rows = [row for row in pairs.whole_rows(file) if fits(row, wanted)]
    found = pairs.by_seed(rows, name)
    plan = name.partition(".")[0]
    if len(found) != sum(row["plan"] == plan for row in rows):
        raise ValueError(f"wanted one setting of {cell} in {own_place or place}, got several")
    return found


def file_of(cell, place):
    """The file of a cell."""
    file, *_ = (cell.partition(" in ")[2] or place).split()
    return FILES_OF[file][0] if file in FILES_OF else file.removesuffix(".json")


def fits(row, wanted):
    """Was this row asked all of these "name=value"? A field of the row counts, too; a name alone
    asks for any value."""
    asked = row | row.get("asked", {})
    asked |= asked.get("changes") or {}
    named = (one.partition("=") for one in wanted)
    return all(
        str(asked.get(name)) == value if value else name in asked for name, _, value in named
    )


def differences(plan, place, over="standard"):
    """How far `plan` ends below `over`, by seed."""
    if place in FILES_OF and " in " not in plan + over:
        found = best(plan, place, over)
        place = found["file"] if found["file"] not in FILES_OF[place] else place
        if place in FILES_OF:  # its two cells may stand in two files of one setting
            rows = [row for file in FILES_OF[place] for row in pairs.whole_rows(file)]
            ours, theirs = pairs.by_seed(rows, plan), pairs.by_seed(rows, over)
            return list(leads.between(ours, theirs))
    check_states(file_of(plan, place), file_of(over, place))
    ours, theirs = named_cell_by_seed(plan, place), named_cell_by_seed(over, place)
    found = leads.between(ours, theirs)
    if not len(found):
        raise ValueError(f"wanted seeds that {plan} and {over} share in {place}, got none")
    return list(found)


def best(plan, place, over="standard"):
    """The comparison of two plans on a text, from the whole grid with the most seeds."""
    (found,) = pairs.compared(FILES_OF[place], f"{plan} < {over}")
    return found


def against_standard(plans, place):
    """Rows of plans that are recorded on a text, for figures.intervals: each from the whole grid
    with the most seeds."""
    rows = [row for plan in plans for row in pairs.compared(FILES_OF[place], f"{plan} < standard")]
    return [row | dict(plan=row["first"], clear=row["holds"] is not None) for row in rows]


def mean_difference(plan, place, over="standard"):
    return statistics.fmean(differences(plan, place, over))


# ---- words for sentences -------------------------------------------------------------------------


def mean_lead(plan, place, over="standard"):
    """By how much it ends lower."""
    return number(mean_difference(plan, place, over))


def lag(plan, place, over="standard"):
    """By how much it ends higher."""
    return number(-mean_difference(plan, place, over))


def clear(plan, place, over="standard"):
    row = as_row(plan, differences(plan, place, over))
    return "clear" if row["clear"] else "not clear"


def stands(plan, place, over="standard"):
    """ "0.059 ahead" or "0.020 behind (not clear)"."""
    change = mean_difference(plan, place, over)
    side = "ahead" if change > 0 else "behind"
    doubt = "" if clear(plan, place, over) == "clear" else " (not clear)"
    return f"{number(abs(change))} {side}{doubt}"


def told(plan, place, over="standard", digits=3):
    """Lead and interval, for a cell of a table."""
    return with_interval(differences(plan, place, over), digits)


def change_with_interval(first, second):
    """By how much one lead exceeds another, seed by seed."""
    return with_interval(leads.change(*(dict(enumerate(values)) for values in (first, second))))


def on_both(plan, grid, over="standard"):
    """`told` on code and on the novel, for two cells of a table."""
    cells = []
    for place in (f"{grid}_code", f"{grid}_novel"):
        ours, theirs = as_asked(plan, place), as_asked(over, place)
        cells.append(told(ours, "", theirs) if pairs.whole(place) else "not whole yet")
    return " | ".join(cells)


def as_asked(name, place):
    """ "ngram-two hidden=85" as a cell of a place; a plan alone is the one as it is."""
    plan, _, asked = name.partition(" ")
    return f"{plan} in {place} {asked or 'hidden=None'}"


def more(first, second, place, over="standard", under="standard", where=None):
    """By how much the lead of `first` over `over` exceeds that of `second` over `under`."""
    one, two = differences(first, place, over), differences(second, where or place, under)
    return change_with_interval(one, two)


def lead_at(plan, place, step, over="standard"):
    """Its lead after so many steps of the recorded runs."""
    rows = pairs.whole_rows(best(plan, place, over)["file"])
    curves = {(row["plan"], row["seed"]): dict(row["valid"]) for row in rows}
    at = lambda name: {seed: curve[step] for (one, seed), curve in curves.items() if one == name}
    return number(statistics.fmean(leads.between(at(plan), at(over))))


# ---- counts over all systems ---------------------------------------------------------------------


def systems(place):
    """Rows of every system against standard on a text, best first: those of `intervals.paired`, p,
    and whether they stay clear among all of them."""
    return list(systems_of(place, records.stamp()))


@functools.cache
def systems_of(place, stamp):
    names = dict.fromkeys(run.plan for run in GRIDS[FILES_OF[place][0]].runs())
    table = [spread_of(name, place) for name in names if name != "standard"]
    ps = {row["plan"]: row["p"] for row in table if row["p"] is not None}
    by_rate, by_holm = benjamini_hochberg(ps), holm(ps)
    for row in table:
        row["by_rate"] = by_rate.get(row["plan"], 1) < 0.05
        row["by_holm"] = by_holm.get(row["plan"], 1) < 0.05
    table.sort(key=lambda row: row["difference"])
    return table


def spread_of(plan, place):
    """One system against standard: with its own spread, and with that of all plans together."""
    found = best(plan, place)
    file = found["file"]
    values = list(pairs.by_seed(pairs.whole_rows(file), plan).values())
    average, spread = intervals.mean_spread(values)
    row = dict(plan=plan, n=found["n"], mean=average, spread=spread, p=found["p"], file=file)
    row |= {name: found[name] for name in ("difference", "low", "high")}
    row["clear"] = intervals.clear(row["low"], row["high"], row["n"])
    pool = next(one for one in pools(file) if one["plan"] == plan)
    row |= dict(pool_low=pool["low"], pool_high=pool["high"], pool_clear=pool["clear"])
    bounds = [row[name] for name in ("low", "high", "pool_low", "pool_high")]
    return row | dict(alike=all(abs(bound) < pairs.LITTLE["loss"] for bound in bounds))


def pools(file):
    return pools_of(file, records.stamp())


@functools.cache
def pools_of(file, stamp):
    rows = [row for row in pairs.whole_rows(file) if row["steps"] == 500]
    return pooled(rows, "loss")


def leading(place, by="clear"):
    """How many systems are clearly ahead; by "pool_clear", "by_rate" or "by_holm" instead."""
    return str(sum(row[by] and row["difference"] < 0 for row in systems(place)))


def how_many(place):
    return str(len(systems(place)))


def orders_alike(tables=True):
    """How alike the two texts order the systems; without the plans that have tables, if asked."""
    ranks = []
    for place in FILES_OF:
        rows = (row["plan"] for row in systems(place))
        some = [plan for plan in rows if tables or not TABLES.match(plan)]
        ranks.append({plan: rank for rank, plan in enumerate(some)})
    novel, code = ranks
    return number(leads.rank_correlation([*novel.values()], [code[plan] for plan in novel]), 2)


# ---- what a difference is worth ------------------------------------------------------------------


def seed_spread(place):
    """The median over all systems of the spread between seeds."""
    return number(statistics.median(row["spread"] for row in systems(place)))


def pooled_spread(place):
    return number(pools(FILES_OF[place][0])[0]["spread"])


def noise(name, grid="noise_code", twin="ten_seeds_code"):
    """`n`, `rms` or `largest` of the differences between two recordings of the same runs."""
    value = repeats.twin_floor(grid, twin)[name]
    return str(value) if name == "n" else number(value, 4)


def repeated(grid):
    """The largest difference of recorded runs from their repetitions on other machines."""
    rows = records.rows_of(repeats.folder_of_repeats() / f"{grid}.json")
    return number(max(abs(row["difference"]) for row in rows), 4)


def last_doubling(place, plan="standard"):
    """What the second half of a run gains: held-out loss at its middle less at its end."""
    rows = [row for row in pairs.whole_rows(FILES_OF[place][0]) if row["plan"] == plan]
    gains = []
    for row in rows:
        losses = dict(row["valid"])
        gains.append(losses[row["steps"] // 2] - losses[row["steps"]])
    return number(statistics.fmean(gains))


def a_per_cent(plan, place, slim):
    """What one per cent more parameters gains a plan, in its MLPs: as it is, less its slim self."""
    size = {}
    for file in (FILES_OF[place][0], slim):
        rows = [row for row in pairs.whole_rows(file) if row["plan"] == plan]
        size[file] = next(row["parameters"] for row in rows if fits_plain(row))
    full, less = size.values()
    gain = mean_difference(f"{plan} in {FILES_OF[place][0]}", "", f"{plan} in {slim}.json")
    return number(gain / (100 * (full / less - 1)), 4)


def fits_plain(row):
    return "overrides" not in row["asked"]


def extra_parameters(plan, place="novel"):
    """How many per cent more parameters than standard."""
    rows = {row["plan"]: row["parameters"] for row in pairs.whole_rows(FILES_OF[place][0])}
    return f"{100 * (rows[plan] / rows['standard'] - 1):.0f}"


def margin(name="loss"):
    return number(pairs.LITTLE[name], 2)


def check_states(*files):
    """Files of two states of the numbers are not compared."""
    made = {file: state_in(file) for file in files}
    if len(set(made.values())) > 1:
        told = ", ".join(f"{file} is of {found}" for file, found in made.items())
        raise ValueError(f"wanted files of one state of the numbers, but {told}")


def state_in(file):
    path = records.EVIDENCE / f"{file}.json"
    return state_when(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=128)  # the page asks for each of fifty files sixty times
def state_when(path, written):
    return states.state_of_file(records.read(path)) or "older"
