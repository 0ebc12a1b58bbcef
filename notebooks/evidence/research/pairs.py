"""Does a recorded comparison hold? Two plans on the same seeds, with an interval and a p.

A comparison is read from whole grids only, and from rows of one state of the numbers: where several
grids hold it, from the one with the most seeds.
"""

import functools
import json
import statistics

import pandas as pd

from course import records
from course.significance import f_test
from evidence.research import leads, states
from evidence.research.grids import GRIDS
from evidence.research.leads import from_to, signed
from minimal.compare import intervals, ledger
from minimal.compare.runs import asked_of

# What we call little. In nats: half of ResFormer's lead on the novel (.021), the smallest of the
# leads that a source is named after; whoever misses a difference below that misses no main effect.
# In points of F1: about the spread of one plan's seeds.
LITTLE = dict(loss=0.01, f1=1.0)

SEEDS = 3  # pairs below which nothing is decided


def early(row):
    """The mean held-out loss over the first half of training."""
    losses = [loss for _, loss in row["valid"]]
    return statistics.fmean(losses[: len(losses) // 2])


FIELDS = dict(early=early)  # what a comparison may name besides the fields of a row


# ---- one comparison ------------------------------------------------------------------------------


def whole(name):
    """Is every run of this grid recorded? The oldest files are, and their rows name no commit."""
    path = records.EVIDENCE / f"{name}.json"
    if not path.exists():
        return False
    return counted_whole(name, path, path.stat().st_mtime_ns)


@functools.cache
def counted_whole(name, path, written):
    return not lacking(name)


def lacking(name):
    """How many runs of a grid its file lacks: runs.missing_runs in one pass."""
    rows = records.rows_of(records.EVIDENCE / f"{name}.json")
    there = {(row["plan"], row["seed"], words_of(row["asked"])) for row in rows}
    runs = GRIDS[name].runs()
    return sum((str(run.plan), run.seed, words_of(asked_of(run))) not in there for run in runs)


def progress(name):
    """(how many runs of a grid are recorded, of how many)."""
    runs = len(list(GRIDS[name].runs()))
    return runs - lacking(name), runs


def words_of(asked):
    return json.dumps(asked, sort_keys=True)


def whole_rows(name):
    """The rows of a file that may be compared: those of a grid once it is whole, since nothing is
    decided from a part of it."""
    rows, _ = held(name)
    begun = name in GRIDS and any(row.get("commit") for row in rows)
    return rows if not begun or whole(name) else []


def rows_asked(name, plan=None, **asked):
    """Those of one plan, and of one setting: rows_asked(..., lr=3e-4)."""
    some = [row for row in whole_rows(name) if plan in (None, row.get("plan"))]
    return [row for row in some if asked.items() <= row.get("asked", {}).items()]


def rows_once_whole(path, cells, same):
    """The rows of a file that is no grid of runs; none until every one of `cells()` is there."""
    written = path.stat().st_mtime_ns if path.exists() else None
    return rows_when(path, cells, same, written)


@functools.lru_cache(maxsize=64)  # a table asks for each of its cells
def rows_when(path, cells, same, written):
    return [] if ledger.missing(path, cells(), same) else ledger.rows_of(path)


def runs():
    """Every run of every whole grid, as one table."""
    return runs_when(records.stamp())


@functools.lru_cache(maxsize=1)
def runs_when(stamp):
    return pd.concat([runs_of(name) for name in GRIDS if whole_rows(name)])


def runs_of(name):
    """The runs of one grid as a table; an empty one until it is whole."""
    return leads.frame(whole_rows(name), name)


def held(name):
    """The rows of a file, and the same by their setting; nobody changes them."""
    path = records.EVIDENCE / f"{name}.json"
    if not path.exists():
        return [], {}
    now = path.stat()
    return held_when(path, (now.st_mtime_ns, now.st_size, now.st_ino))


@functools.lru_cache(maxsize=128)  # the page asks for each of fifty files two hundred times
def held_when(path, written):
    rows, groups = records.rows_of(path), {}
    for row in rows:
        asked = json.dumps(row.get("asked", {}), sort_keys=True)
        groups.setdefault((row.get("size"), asked), []).append(row)
    return rows, groups


def richer(files):
    """Whole grids, recorded in one state of the numbers, beside these files; the noise floor is
    there to be compared with its twin alone."""
    return [name for name in of_one_state(records.stamp()) if name not in files]


@functools.lru_cache(maxsize=1)  # every comparison asks it of every grid
def of_one_state(stamp):
    known = states.known()
    whole_ones = [name for name, grid in GRIDS.items() if not grid.on and whole(name)]
    return [name for name in whole_ones if states.state_of(whole_rows(name), known)]


def settings(files):
    """{(size, what the runs were asked, as text): rows}: only runs of one setting are compared."""
    groups = {}
    for file in files:
        if not whole_rows(file):
            continue
        for setting, rows in held(file)[1].items():
            groups.setdefault(setting, []).extend(rows)
    return groups


def holds(relation, low, high, little):
    """Does the interval of a - b say so? True, False, or None where it cannot tell."""
    yes, no = {
        "<": (high < 0, low > 0),
        "<~": (high < little, low > little),
        "~": (-little < low and high < little, low > little or high < -little),
    }[relation]
    return None if yes == no else yes


def p_of(relation, differences, little):
    """The p of what the interval says: below .05 exactly where `holds` can tell."""
    above = intervals.t_test([value - little for value in differences])
    if relation == "<":
        return intervals.t_test(differences)
    if relation == "<~" or above is None:
        return above
    below = intervals.t_test([value + little for value in differences])
    mean = statistics.fmean(differences)
    if mean > little:
        return above
    return below if mean < -little else max(above, below)


def spread_apart(ours, theirs):
    """The ratio of two spreads between seeds, and what an F test at 5 % says of it."""
    one, two = (intervals.mean_spread(list(values.values()))[1] for values in (ours, theirs))
    p = f_test(one, len(ours), two, len(theirs))
    return dict(ratio=one / two, p=p, holds=one > two if p < 0.05 else None)


def by_seed(rows, name):
    """{seed: value} of "plan" (its loss) or of "plan.field"."""
    plan, _, field = name.partition(".")
    read = FIELDS.get(field, lambda row: row[field or "loss"])
    return {row["seed"]: read(row) for row in rows if row["plan"] == plan}


def compared(files, comparison, most_seeds=True):
    """One dict a setting of these files: the comparison, the setting, n, what was found, whether it
    holds, its p, and `file`, where it was read: another whole grid if that has more seeds."""
    found = compared_when(tuple(files), comparison, most_seeds, records.stamp())
    return [dict(row) for row in found]


@functools.lru_cache(maxsize=4096)  # the pages ask for each several times
def compared_when(files, comparison, most_seeds, stamp):
    table = table_of(files, comparison)
    if not table or not most_seeds:
        return table
    at = {(found["size"], str(found["asked"])): i for i, found in enumerate(table)}
    for name in richer(files):
        if not measures(whole_rows(name), comparison):
            continue
        for found in table_of((name,), comparison):
            i = at.get((found["size"], str(found["asked"])))
            if i is not None and found["n"] > table[i]["n"]:
                table[i] = found
    return table


def measures(rows, comparison):
    """Do these rows have what is compared? A grid of runs has no entropies, say."""
    first, _, second, *_ = comparison.split()
    fields = {name.partition(".")[2] for name in (first, second)} - {"", *FIELDS}
    return all(field in rows[0] for field in fields)


def table_of(files, comparison):
    first, relation, second, *at = comparison.split()
    little = LITTLE.get(first.partition(".")[2] or "loss", 0.0)
    table = []
    for (size, asked), rows in settings(files).items():
        if at and at[1] not in (size, str(json.loads(asked).get("steps"))):
            continue
        ours, theirs = by_seed(rows, first), by_seed(rows, second)
        ahead = leads.paired(ours, theirs).values()
        if not ahead:
            continue
        row = dict(first=first, second=second, size=size, asked=json.loads(asked), file=files[0])
        row |= dict(n=len(ahead), enough=len(ahead) >= SEEDS, holds=None, p=None)
        if relation == "wider":
            row |= spread_apart(ours, theirs) if row["enough"] else dict(ratio=None)
        else:
            differences = [-value for value in ahead]
            change, low, high = intervals.interval(differences)
            row |= dict(difference=change, low=low, high=high)
            if row["enough"]:
                row["holds"] = holds(relation, low, high, little)
                row["p"] = p_of(relation, differences, little)
                if row["p"] is None and row["holds"] is not None:
                    row["p"] = 0.0  # all pairs are equally far apart
        table.append(row)
    return table


# ---- in words ------------------------------------------------------------------------------------


def comparison_in_words(found, several):
    """One comparison in words, the setting named only where there are several."""
    one, _, field = found["first"].partition(".")
    other, _, other_field = found["second"].partition(".")
    at = f" at {setting_of(found)}" if several else ""
    n = "one seed" if found["n"] == 1 else f"{found['n']} seeds"
    if "ratio" in found:
        spread = f"too few ({n})"
        if found["ratio"]:
            spread = f"{found['ratio']:.1f} times (F test p = {found['p']:.2f}, {n})"
        return f"spread of {one} against {other}{at}: {spread}"
    change, low, high = (found[name] for name in ("difference", "low", "high"))
    names = f"{found['first']} less {found['second']}"
    if field == other_field:
        names = f"{one} less {other}, {field}"
    if not field or field == other_field == "early":  # losses: what ends lower is ahead
        names = f"{one} ahead of {other}" + (", early" if field else "")
        change, low, high = (x if x is None else -x for x in (change, high, low))
    elif field == other_field == "f1":  # points: what ends higher is
        names = f"{one} ahead of {other}, f1"
    unit = " nats" if field in ("", "early") else ""
    interval = "" if low is None else f"{from_to(low, high)}, "
    return f"{names}{at}: {signed(change)}{unit} ({interval}{n})"


def setting_of(found):
    """What a setting is beyond corpus and budget, or else its size."""
    told = ("corpus", "steps", "batch", "overrides")
    asked = {k: v for k, v in found["asked"].items() if k not in told}
    rates = {row["lr"] for row in found["asked"].get("overrides", {}).values()}
    if len(rates) == 1:
        asked["rate"] = rates.pop()
    changes = asked.pop("changes", {})
    return (
        ", ".join(f"{name} {value}" for name, value in (changes | asked).items()) or found["size"]
    )
