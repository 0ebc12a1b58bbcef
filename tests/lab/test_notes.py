"""Are notes with numbers of ours computed from the records, and do they move with them?"""

import pandas as pd
import pytest

from course.records import claims
from evidence.research import notes, pairs


@pytest.mark.parametrize("claim", notes.NOTES)
def test_a_note_belongs_to_a_claim_and_knows_all_its_numbers(claim):
    assert claim in {row["id"] for row in claims()}
    assert "not recorded" not in notes.note(claim)


def test_a_note_follows_the_records(monkeypatch):
    losses = dict(standard=[3.0, 3.1, 3.2], skipv1=[2.9, 3.01, 3.1])
    rows = [(plan, seed, x) for plan, run in losses.items() for seed, x in enumerate(run)]
    table = pd.DataFrame(rows, columns=["cell", "seed", "loss"])
    monkeypatch.setattr(pairs, "runs_of", lambda grid: table)
    assert notes.lead(*notes.LEADS["skipv1"]).startswith("0.097 nats (0.08")
    assert notes.note("bov-skipv1").endswith("3 seeds, clear) over standard (grid sharing).")


def test_a_claim_without_numbers_of_ours_keeps_its_note():
    assert notes.note("res-eq4") is None
