"""What did the sources print, what do they claim, what have we measured? Readers of evidence."""

import contextlib
import functools
import json
from collections import Counter

from course import CHECKOUT
from minimal.compare.ledger import rows_of  # noqa: F401 read with the records
from minimal.data import results
from minimal.data.results import load

EVIDENCE = CHECKOUT / "notebooks" / "evidence"
RUNS = EVIDENCE / "runs"  # one table of all runs, a line a run; a file a topic

# what a run was asked beyond the defaults, flat beside what came of it
ASKED = (
    *("corpus", "steps", "batch", "accumulate", "context", "vocab", "style", "recipe", "scale"),
    *("warmup", "lr", "changes", "overrides"),
)

# Runs of ours decide the first three, arithmetic and tests the fourth. What no run of ours could
# reach is not what our seeds cannot tell apart.
VERDICTS = (
    "reproduced",
    "not reproduced",
    "too close for our seeds",
    "wrong",
    "out of reach at our scale",
    "open",
)

WRONG = dict(  # what a wrong claim is
    misprint="a formula, number or word that the source's own code, table or another passage "
    "corrects",
    summary="said by the summary through which the source is known; its full text was not read",
    statement="a statement that the source itself, or arithmetic, contradicts",
    condition="leaves out a condition, or a name, that the source has elsewhere",
    inference="does not follow from what is shown; it may be true",
)


def commits(rows):
    """{commit: how many of these rows were made by it}, most first; None for rows that do not say,
    as those recorded before rows named it. More than one: no single state of the numbers."""
    return dict(Counter(row.get("commit") for row in rows).most_common())


# ---- what the sources print and claim ------------------------------------------------------------


def published(source=None, table=None):
    """A table of one of the five sources as a dict: place, caption, approximate (read off a
    figure), columns ({name: unit}), rows (dicts). Without a table, the names of that source's
    tables; without a source, the sources."""
    book = load(EVIDENCE / "published.json")
    if source is None:
        return book["sources"]
    if source not in book["sources"]:
        raise KeyError(f"wanted one of {', '.join(book['sources'])}; got {source!r}")
    known = {entry["table"]: entry for entry in book["tables"] if entry["source"] == source}
    if table is None:
        return list(known)
    if table not in known:
        raise KeyError(f"{source} has {', '.join(known)}; got {table!r}")
    found, about = dict(known[table]), book["sources"][source]
    found["place"] = f"{about['short']} ({about['arxiv'] or about['year']}), {table}"
    found["approximate"] = found.get("approximate", False)
    found["rows"] = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    return found


def quoted(source, quantity):
    """One number that stands in a source's text or training table, by name: a dict with value,
    unit and where."""
    tables = [published(source, table) for table in published(source)]
    rows = [row for table in tables for row in table["rows"] if "quantity" in row]
    by_name = {row["quantity"]: row for row in rows}
    if quantity not in by_name:
        raise KeyError(f"{source} has {'; '.join(by_name)}; got {quantity!r}")
    return by_name[quantity]


def claims():
    """The sources' claims: id, source, place, claim, verdict, evidence or what would decide."""
    return load(EVIDENCE / "claims.json")


# ---- what we have measured -----------------------------------------------------------------------


def recorded_runs():
    """Every recorded run as a dict, in the order of the table."""
    written = ((path, path.stat().st_mtime_ns) for path in sorted(RUNS.glob("*.jsonl")))
    return runs_when(tuple(written))


@functools.lru_cache(maxsize=1)
def runs_when(written):
    return [
        json.loads(line)
        for path, _ in written
        for line in path.read_text(encoding="utf-8").splitlines()
    ]


def recordings():
    """{grid: what its runs share: topic (the file of the table), question, command, commit, corpus,
    hardware, versions}."""
    return load(RUNS / "recordings.json")


def read(path):
    """An evidence file; a bare name means notebooks/evidence/<name>.json."""
    return results.read(path if str(path).endswith(".json") else EVIDENCE / f"{path}.json")


def stamp():
    """Changes whenever a file of evidence does: what was computed from all of them may be kept."""
    return EVIDENCE, *sorted((p.name, p.stat().st_mtime_ns) for p in EVIDENCE.glob("*.json"))


# ---- files of older code -------------------------------------------------------------------------

# Older code opens a file a grid, evidence/NAME.json. Each is written again from the table where it
# is missing or older; git ignores them, and they go when that code has gone.


def as_file(run):
    """A line of the table as a row of such a file."""
    asked = {name: run[name] for name in ASKED if name in run}
    row = {name: run[name] for name in ("plan", "size", "seed", "steps")}
    for name, value in run.items():
        if name not in asked and name != "grid":
            row[name] = value
        if name == "coefficients":
            row["asked"] = asked
    return row


def write_back():
    """Write the files that are missing or older than the table."""
    if not RUNS.is_dir():
        return
    newest = max(path.stat().st_mtime for path in RUNS.iterdir())
    heads, stale = recordings(), []
    for name in heads:
        path = EVIDENCE / f"{name}.json"
        if not path.exists() or path.stat().st_mtime < newest:
            stale.append(name)
    rows = {name: [] for name in stale}
    for run in recorded_runs() if stale else ():
        if run["grid"] in rows:
            rows[run["grid"]].append(as_file(run))
    for name in stale:
        head = {key: value for key, value in heads[name].items() if key != "topic"}
        with contextlib.suppress(OSError):  # an installation that may not be written
            results.write(EVIDENCE / f"{name}.json", head | dict(rows=rows[name]))


write_back()
