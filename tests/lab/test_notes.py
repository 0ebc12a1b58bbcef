"""Are notes with numbers of ours computed from the records, and do they move with them?"""

import re

import pandas as pd
import pytest

from course.records import claims
from evidence.research import claims as decided
from evidence.research import notes, pairs

AS_PRINTED = ("byp-mean", "byp-spread", "bov-specific")  # numbers of the source alone


@pytest.mark.parametrize("claim", notes.NOTES)
def test_a_note_belongs_to_a_claim_and_knows_all_its_numbers(claim):
    assert claim in {row["id"] for row in claims()}
    assert "not recorded" not in notes.note(claim)


def test_what_runs_decide_has_no_typed_decimal_in_its_note():
    by_runs = [row for row in claims() if decided.by(row) == "runs"]
    typed = [row["id"] for row in by_runs if re.search(r"(?<!\d)\.\d\d|\d\.\d\d", row["note"])]
    assert set(typed) <= {*notes.NOTES, *AS_PRINTED}


def test_a_change_of_a_lead_is_tested_seed_by_seed(monkeypatch):
    losses = dict(standard=[3.0, 3.1, 3.2], svformer=[2.9, 3.0, 3.1])
    shorter = [(plan, seed, x, 64) for plan, run in losses.items() for seed, x in enumerate(run)]
    longer = [(plan, s, x - 0.01 * s * (plan == "svformer"), 256) for plan, s, x, _ in shorter]
    table = pd.DataFrame(shorter + longer, columns=["cell", "seed", "loss", "context"])
    table["differs"] = [f'{{"context": {context}}}' for context in table.context]
    monkeypatch.setattr(pairs, "runs_of", lambda grid: table)
    assert notes.note("sv-longer").startswith("Its lead at 256 tokens less that at 64: 0.010 nats")


def test_a_note_follows_the_records(monkeypatch):
    losses = dict(standard=[3.0, 3.1, 3.2], skipv1=[2.9, 3.01, 3.1])
    rows = [(plan, seed, x) for plan, run in losses.items() for seed, x in enumerate(run)]
    table = pd.DataFrame(rows, columns=["cell", "seed", "loss"])
    monkeypatch.setattr(pairs, "runs_of", lambda grid: table)
    assert notes.lead_with_seeds(*notes.LEADS["skipv1"]).startswith("0.097 nats (0.08")
    assert notes.note("bov-skipv1").endswith("3 seeds, clear) over standard (grid sharing).")


def test_a_claim_without_numbers_of_ours_keeps_its_note():
    assert notes.note("res-eq4") is None
