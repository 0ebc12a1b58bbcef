"""Does every claim quote its source, and do the words stand there? The sources' texts are not in
the repository: SOURCES names a folder that has them, and without it their comparison is skipped."""

import os
import re
import unicodedata
from pathlib import Path

import pytest

from course.records import claims

FILES = dict(bov="000", dva="001", resformer="002", lambdas="003", bypass="004")
OF_THE_FIVE = [row for row in claims() if row["source"] in FILES]


def plain(text):
    """Letters and signs alone: no white space, no hyphen at a line's end, and no LaTeX, which the
    text of Bank of Values has behind every formula."""
    text = re.sub(r"-\n(?=[a-z])", "", text)
    text = text.replace("\\uparrow", "↑").replace("\\downarrow", "↓")
    text = re.sub(r"\\\S*?(?=[,.;:’)]*(?:\s|$))", "", text)
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def text_of(source):
    """The text of a source, or None where nobody has it."""
    found = sorted(Path(os.environ["SOURCES"]).glob(f"{FILES[source]}_*.txt"))
    return found[0].read_text(encoding="utf-8") if found else None


@pytest.mark.parametrize("row", OF_THE_FIVE, ids=lambda row: row["id"])
def test_every_claim_of_the_five_sources_has_a_short_quote(row):
    quote = row.get("quote", "")
    assert quote, "wanted the source's own words, got none: add a quote"
    assert len(quote.split()) <= 40, "wanted a sentence or less"


@pytest.mark.sources
@pytest.mark.parametrize("source", FILES)
def test_quotes_stand_exactly_in_their_source(source):
    text = text_of(source)
    if text is None:
        pytest.skip("the text of this source is not here")
    there = plain(text)
    rows = [row for row in OF_THE_FIVE if row["source"] == source]
    # a formula may be quoted as LaTeX
    inexact = [
        row["id"] for row in rows if row["quote"] not in text and plain(row["quote"]) not in there
    ]
    assert not inexact


def test_what_came_after_the_five_sources_quotes_a_public_page_or_is_our_own_question():
    others = [row for row in claims() if row["source"] not in FILES]
    without = [row["place"] for row in others if "quote" not in row]
    assert without == ["Notebook 13, our own question"]
    for row in others:
        if "quote" in row:
            assert row["address"].startswith("https://"), row["id"]
            assert 4 < len(row["quote"].split()) <= 40, "wanted a sentence or less"


def test_what_bank_of_values_authors_reported_afterwards_is_decided_but_for_one():
    after = {row["id"]: row for row in claims() if row["id"].startswith("new-after-")}
    open_ = after.pop("new-after-mlp")
    assert open_["verdict"] == "open" and open_["decide"]
    assert set(after) == {f"new-after-{what}" for what in ("shared", "apart", "depth")}
    assert all("test_claims_runs.py::" in row["evidence"] for row in after.values())


def test_a_changed_word_would_be_noticed():
    source = "of the values from the stan-\ndard  layer, 𝐕\\mathbf{V} and"
    assert plain("the standard layer, V and") in plain(source)
    assert plain("a standard layer") not in plain(source)
