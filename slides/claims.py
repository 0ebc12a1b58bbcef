"""What did the sources claim, and what became of it? Every claim as a card with its verdict, folded
by source: a phone shows the sources on a few screens."""

import html
import re
from collections import Counter

from course import records
from slides.tables import cited

HOW = dict(
    misprint="misprint",
    summary="wrong in the summary",
    statement="wrong",
    condition="a condition is missing",
    inference="does not follow",
)
MINUS = re.compile(r"(?<![\w.,)-])-(?=\.?\d)")  # a hyphen that is a number's sign
VERDICT_SIGNS = {
    "reproduced": "✓",
    "not reproduced": "✗",
    "wrong": "≠",
    "too close for our seeds": "≈",
    "out of reach at our scale": "–",
    "open": "…",
}


def claims(link):
    """Every claim with its verdict; `link(path, words)` links the words to a file, if it can."""
    book, sources = records.claims(), records.published()
    kinds = "".join(
        f"<li><em>{HOW[kind]}</em>: {meaning}</li>" for kind, meaning in records.WRONG.items()
    )
    parts = [
        "<h1>Claims and evidence</h1>",
        f"<p>{len(book)} claims of the five sources and of what came after them, each with a "
        "verdict that a test holds to its evidence. An open claim says what would decide it. "
        "Beside them: "
        '<a href="index.html">what our runs say</a>, '
        '<a href="published.html">what the sources print</a> and '
        '<a href="recorded.html">every recorded run</a>.</p>'
        "<details><summary>What is wrong says how, and none of it that a method does not work"
        f"</summary><ul>{kinds}</ul></details>",
        chooser(book),
    ]
    for source, about in sources.items():
        some = [claim for claim in book if claim["source"] == source]
        if some:
            cards = "\n".join(claim_card(claim, link) for claim in some)
            parts += [
                f'<h2 id="{source}">{html.escape(about["short"])}</h2>',
                f'<p class="soft">{cited(about)}. Here: {tally(some)}.</p>',
                f"<details><summary>All {len(some)}</summary>"
                f'<ul class="claims">{cards}</ul></details>',
            ]
    return "\n".join(parts)


def asked_about():
    """The claims that readers ask about, a line each, for the front page."""
    book, sources = {claim["id"]: claim for claim in records.claims()}, records.published()
    lines = []
    for claim in map(book.get, records.asked_about()):
        told, source = word(claim), html.escape(sources[claim["source"]]["short"])
        lines.append(
            f"<li>{html.escape(claim['claim'])} <strong>{sign(told)} {told}</strong> "
            f'<span class="soft">{source}</span></li>'
        )
    return (
        f'<h2 id="claims">What the papers claim</h2><ul>{"".join(lines)}</ul>'
        f'<p><a href="evidence/claims.html">All {len(book)} claims</a>, each with what its verdict '
        "rests on.</p>"
    )


def chooser(book):
    """One button a verdict; a script shows only what is asked for, and without it all is there."""
    counts = Counter(map(word, book))
    buttons = [f'<button type="button" data-show="" aria-pressed="true">all {len(book)}</button>']
    for verdict in order():
        if counts[verdict]:
            told = f"{sign(verdict)} {verdict} {counts[verdict]}"
            buttons.append(
                f'<button type="button" data-show="{verdict}" aria-pressed="false">{told}</button>'
            )
    return (
        f'<div class="chooser" role="group" aria-label="Show claims by verdict">{"".join(buttons)}'
        '<span class="soft" role="status"></span></div>'
    )


def claim_card(claim, link):
    """One claim: its place and verdict, what is said, on what the verdict rests."""
    verdict = word(claim)
    return (
        f'<li data-verdict="{verdict}"><p class="top"><span class="verdict">{sign(verdict)} '
        f'{verdict}</span> <span class="soft">{html.escape(claim["place"])}</span></p>'
        f'<p class="said">{html.escape(claim["claim"])}</p>'
        f"<details><summary>On what it rests</summary><p>{grounds(claim, link)}</p></details></li>"
    )


def word(claim):
    """A verdict as a reader should see it: of what is wrong, how."""
    return HOW.get(claim.get("kind"), claim["verdict"])


def sign(verdict):
    return VERDICT_SIGNS.get(verdict, VERDICT_SIGNS["wrong"])


def order():
    """The words of all verdicts, in the order in which they are told."""
    found = []
    for verdict in records.VERDICTS:
        found += HOW.values() if verdict == "wrong" else [verdict]
    return found


def tally(some):
    """How many of each verdict, in words."""
    counts = Counter(map(word, some))
    plural = lambda how: "s" if how == "misprint" and counts[how] > 1 else ""
    return ", ".join(f"{counts[how]} {how}{plural(how)}" for how in order() if counts[how])


def on_code(claim):
    """What the other text says of a claim, where the same systems were recorded on it."""
    if "on_code" not in claim:
        return None
    return f"On code {claim['verdict_on_code']}: {claim['on_code']}"


def grounds(claim, link):
    """The evidence with what was measured and noted; where there is none, what would decide."""
    told = [claim.get("measured"), on_code(claim), claim["note"]]
    if not claim["evidence"]:
        told.append(f"Would decide: {claim['decide'].rstrip('.')}.")
    said = MINUS.sub("−", html.escape(" ".join(filter(None, told))))
    path, _, test = (claim["evidence"] or "").partition("::")
    if not path:
        return said
    # a test, or a statement of the records, is named by what it finds
    kind = "Test" if test.startswith("test_") else "Records"
    name = f"{kind}: " + test.removeprefix("test_").replace("_", " ")
    name = name if test else path.rpartition("/")[2]
    return f"{link(path, html.escape(name))}. {said}".strip()
