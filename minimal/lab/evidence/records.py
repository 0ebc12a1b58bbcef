"""What did the sources print, what do they claim, what have we measured? One reader and one writer for all of it."""

from minimal.data import results
from minimal.data.files import CHECKOUT
from minimal.data.results import load

EVIDENCE = CHECKOUT / "notebooks" / "evidence"

VERDICTS = ("reproduced", "not reproduced", "not testable at our scale", "wrong", "open")

WRONG = dict(
    misprint="a formula, number or word that the source's own code, table or another passage corrects",
    summary="said by the summary through which the source is known; its full text was not read",
    statement="a statement that the source itself, or arithmetic, contradicts",
)  # what a wrong claim is


def published(source=None, table=None):
    """A table of one of the five sources as a dict: place, caption, approximate (read off a figure), columns
    ({name: unit}), rows (dicts). Without a table, the names of that source's tables; without a source, the sources."""
    book = load(EVIDENCE / "published.json")
    known = {t["table"]: t for t in book["tables"] if t["source"] == source}
    if source is None:
        return book["sources"]
    if source not in book["sources"]:
        raise KeyError(f"wanted one of {', '.join(book['sources'])}; got {source!r}")
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
    """One number that stands in a source's text or training table, by name: a dict with value, unit and where."""
    rows = {
        row["quantity"]: row
        for table in published(source)
        for row in published(source, table)["rows"]
        if "quantity" in row
    }
    if quantity not in rows:
        raise KeyError(f"{source} has {'; '.join(rows)}; got {quantity!r}")
    return rows[quantity]


def claims():
    """The sources' claims, one a row: id, source, place, claim, verdict, and the evidence or what would decide."""
    return load(EVIDENCE / "claims.json")


def read(path):
    """An evidence file; a bare name means notebooks/evidence/<name>.json."""
    return results.read(path if str(path).endswith(".json") else EVIDENCE / f"{path}.json")
