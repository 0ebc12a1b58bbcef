"""What was claimed, what was printed, what was recorded? The evidence of the course as tables.

None of them is typed here.
"""

import html
from collections import Counter

from minimal.lab.evidence import intervals, records

HOW = dict(
    misprint="misprint",
    summary="wrong in the summary",
    statement="wrong",
    condition="a condition is missing",
    inference="does not follow",
)
SIGNS = {
    "reproduced": "✓",
    "not reproduced": "✗",
    "wrong": "≠",
    "too close for our seeds": "≈",
    "out of reach at our scale": "–",
    "open": "…",
}


def shown(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return html.escape(str(value))


def table(columns, rows, kind=""):
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in columns)
    lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    start = f"<table class={kind}>" if kind else "<table>"
    return f"{start}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


# ---- claims --------------------------------------------------------------------------------------


def claims(link):
    """Every claim with its verdict; `link(path, words)` links the words to a file, if it can."""
    book, sources = records.claims(), records.published()
    kinds = "; ".join(f"<em>{HOW[kind]}</em>, {meaning}" for kind, meaning in records.WRONG.items())
    parts = [
        "<h1>Claims and evidence</h1>",
        f"<p>{len(book)} claims of the five sources, each with a verdict that a test holds to its "
        f"evidence: {tally(book)}. What is wrong says how: {kinds}. None of it says that a method "
        "does not work. An open claim says what would decide it. Beside them: "
        '<a href="index.html">what our runs say</a>, '
        '<a href="published.html">what the sources print</a> and '
        '<a href="recorded.html">every recorded run</a>.</p>',
    ]
    columns = ("place", "claim", "verdict", "evidence, or what would decide")
    for source, about in sources.items():
        some = [claim for claim in book if claim["source"] == source]
        if some:
            parts += [
                f'<h2 id="{source}">{html.escape(about["short"])}</h2>',
                f'<p class="soft">{cited(about)}. Here: {tally(some)}.</p>',
                table(columns, [cells(claim, link) for claim in some], "long"),
            ]
    return "\n".join(parts)


def cells(claim, link):
    """The row of one claim."""
    verdict = f'<span class="verdict">{SIGNS[claim["verdict"]]} {word(claim)}</span>'
    said = (html.escape(claim["place"]), html.escape(claim["claim"]))
    return (*said, verdict, grounds(claim, link))


def word(claim):
    """A verdict as a reader should see it: of what is wrong, how."""
    return HOW.get(claim.get("kind"), claim["verdict"])


def tally(some):
    """How many of each verdict, in words."""
    counts = Counter(map(word, some))
    order = []
    for verdict in records.VERDICTS:
        order += HOW.values() if verdict == "wrong" else [verdict]
    plural = lambda how: "s" if how == "misprint" and counts[how] > 1 else ""
    return ", ".join(f"{counts[how]} {how}{plural(how)}" for how in order if counts[how])


def cited(about):
    where = str(about["year"])
    if about["arxiv"]:
        where = f'<a href="https://arxiv.org/abs/{about["arxiv"]}">{about["arxiv"]}</a>'
    return f"{html.escape(about['title'])}, {where}; read: {html.escape(about['read'])}"


def on_code(claim):
    """What the other text says of a claim, where the same systems were recorded on it."""
    if "on_code" not in claim:
        return None
    return f"On code {claim['verdict_on_code']}: {claim['on_code']}"


def grounds(claim, link):
    """The evidence with what was measured and noted; while a claim is open, what would decide."""
    told = [claim.get("measured"), on_code(claim), claim["note"]]
    if claim["verdict"] == "open":
        told.append(f"Would decide: {claim['decide']}.")
    said = html.escape(" ".join(filter(None, told)))
    path, _, test = (claim["evidence"] or "").partition("::")
    if not path:
        return said
    name = test.replace("_", " ") or path.rpartition("/")[2]
    return f"{link(path, html.escape(name))}. {said}".strip()


# ---- what the sources print ----------------------------------------------------------------------


def published():
    parts = [
        "<h1>What the sources print</h1>"
        "<p>Every table of the five sources, typed once; ≈ marks values read off a figure.</p>"
    ]
    for source, about in records.published().items():
        parts.append(f'<h2 id="{source}">{html.escape(about["short"])}</h2>')
        parts.append(f'<p class="soft">{cited(about)}</p>')
        for name in records.published(source):
            found = records.published(source, name)
            columns = found["columns"].items()
            units = [f"{column} ({unit})" if unit else column for column, unit in columns]
            mark = " ≈" if found["approximate"] else ""
            note = f'<span class="soft">{html.escape(found.get("note") or "")}</span>'
            parts += [
                f"<h3>{html.escape(name)}{mark}</h3>",
                f"<p>{html.escape(found['caption'])}. {note}</p>",
                table(units, [map(shown, row.values()) for row in found["rows"]]),
            ]
    return "\n".join(parts)


# ---- what is recorded here -----------------------------------------------------------------------


def recorded():
    parts = [
        "<h1>What is recorded here</h1><p>Runs that take longer than a notebook should, kept as "
        "small JSON with the command that repeats them.</p>"
    ]
    for path in sorted(records.EVIDENCE.glob("*.json")):
        if path.stem not in ("claims", "published"):
            file = records.read(path.stem)
            parts += [
                f'<h2 id="{path.stem}">{path.stem}</h2><p>{html.escape(file["what"])}.</p>',
                facts(file),
                differences(file["rows"]),
                every(file["rows"]),
            ]
    return "\n".join(parts)


def facts(file):
    corpus = file["corpus"]
    versions = ", ".join(f"{name} {number}" for name, number in file["versions"].items())
    rows = [
        ("command", f"<code>{html.escape(file['command'])}</code>"),
        ("commit", file["commit"]),
        ("hardware", file["hardware"]),
        ("versions", versions),
        ("corpus", f"{corpus['name']} ({corpus['fingerprint']}), {corpus['tokens']:,} tokens"),
    ]
    return table(("", ""), rows).replace("<thead><tr><th></th><th></th></tr></thead>", "")


def differences(rows):
    """Each plan against standard on the same seeds, with its interval over several seeds."""
    if not rows or "loss" not in rows[0]:
        return ""
    try:
        found = intervals.paired(rows, "loss")
    except ValueError:  # several budgets in one file: the rows below are all there is to say
        return ""
    found = [row for row in found if row["difference"] is not None and row["plan"] != "standard"]
    one = ""
    if all(row["n"] < 2 for row in found):
        one = '<p class="soft">One seed carries no interval.</p>'
    lines = []
    for row in sorted(found, key=lambda row: row["difference"]):
        interval = "" if row["low"] is None else f"{row['low']:+.3f} to {row['high']:+.3f}"
        clear = "yes" if row["clear"] else "no"
        lines.append((row["plan"], row["n"], f"{row['difference']:+.3f}", interval, clear))
    columns = ("plan", "pairs", "held-out nats minus standard", "95 % interval", "excludes 0")
    return one + table(columns, lines)


def every(rows):
    """All rows; curves and nested fields stay in the file."""
    first = rows[0] if rows else {}
    names = [name for name, value in first.items() if not isinstance(value, (list, dict))]
    lines = [[shown(row.get(name)) for name in names] for row in rows]
    return f"<details><summary>All {len(rows)} rows</summary>\n{table(names, lines)}</details>"
