"""What did the sources print, what do they claim, what have we measured? Readers of evidence."""

import functools
import json
import tomllib
from collections import Counter

from course import CHECKOUT
from minimal.data import results
from minimal.data.results import load

EVIDENCE = CHECKOUT / "notebooks" / "evidence"
RUNS = EVIDENCE / "runs"  # one table of all runs, a line a run; a file a topic
MEASURED = EVIDENCE / "measured"  # what is no run: speed, portraits, made-up texts; a file each

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


def written_claims():
    """The sources' claims as people wrote them: id, source, place, quote, claim, and either a
    verdict with its evidence or what is compared."""
    return book_of_claims()["claims"]


def asked_about():
    """The twelve that readers ask about, by their ids."""
    return book_of_claims()["asked_about"]


def book_of_claims():
    return parsed(EVIDENCE / "claims.toml")


def parsed(path):
    """What a file of evidence says, parsed once, and again when it has changed."""
    return parsed_when(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=4)
def parsed_when(path, written):
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.suffix == ".toml" else load(path)


def claims(verdicts=None):
    """The same, those that runs decide with the verdict that evidence.lab.claims wrote: verdict,
    evidence, what was measured, and the same on code."""
    verdicts = load(EVIDENCE / "verdicts.json") if verdicts is None else verdicts
    plain = dict(evidence=None, note="", verdict="open")
    return [plain | claim | verdicts.get(claim["id"], {}) for claim in written_claims()]


# ---- what we have measured -----------------------------------------------------------------------


def recorded_runs():
    """Every recorded run as a dict, in the order of the table."""
    return runs_when(written())


def written(folder=None, names="*"):
    """Changes whenever a run is recorded, or a file of another folder is written: what was computed
    from all of them may be kept."""
    paths = sorted((folder or RUNS).glob(names))
    return tuple((path, path.stat().st_mtime_ns) for path in paths)


@functools.lru_cache(maxsize=1)
def runs_when(written):
    paths = (path for path, _ in written if path.suffix == ".jsonl")
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return [json.loads(line) for text in texts for line in text.splitlines()]


def recordings():
    """{grid: what its runs share: topic (the file of the table), question, command, commit, corpus,
    hardware, versions}."""
    return dict(parsed(RUNS / "recordings.json"))


def read(name):
    """What is recorded under a name: what, command, commit, corpus and so on, and `rows`. A name is
    a grid of the table, or a file of `measured`; or it is the path of another file of evidence."""
    if str(name).endswith(".json"):
        return results.read(name)
    heads = recordings()
    if name in heads:
        return heads[name] | dict(rows=list(rows_by_grid(written())[name]))
    return results.read(MEASURED / f"{name}.json")


def rows(name):
    """The rows of a name; none where nothing is recorded yet."""
    there = name in recordings() or (MEASURED / f"{name}.json").is_file()
    return read(name)["rows"] if there else []


def recorded_names():
    """Every grid and every file that holds something."""
    return [*recordings(), *sorted(path.stem for path in MEASURED.glob("*.json"))]


@functools.lru_cache(maxsize=1)
def rows_by_grid(written):
    found = {}
    for run in recorded_runs():
        found.setdefault(run["grid"], []).append(as_row(run))
    return found


def as_row(run):
    """A line of the table as a row of a file: what was asked stands together."""
    asked = {name: run[name] for name in ASKED if name in run}
    first = {name: run[name] for name in ("plan", "size", "seed", "steps")}
    rest = {name: value for name, value in run.items() if name not in ("grid", *asked)}
    return first | rest | dict(asked=asked)
