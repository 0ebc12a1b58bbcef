"""Is what systems do at their own best rates told from whole grids only, and with its doubts?"""

import pytest

from course import records
from evidence.research import at_best
from evidence.research.grids import GRIDS
from minimal.data import results
from tests.lab.conftest import came_in, came_of

LEADS = {"x0-v": 0.14, "bov-fixed": 0.25, "resformer": 0.06, "svformer": 0.03, "denseformer": 0.02}


@pytest.fixture
def record(write_grid):
    """record("code", resformer=.2) writes a whole grid with these leads, else with LEADS."""

    def written(text, **others):
        leads = LEADS | others
        write_grid(f"at_its_best_{text}", lambda cell: leads.get(cell, 0.0))

    return written


def test_every_system_of_the_grid_is_told_once():
    """And of each something was foretold, but of x0 W_V, which had been tried before."""
    grid = {str(run.plan) for run in GRIDS["at_its_best_code"].runs()}
    assert grid == {*at_best.CALLED_HERE, "standard"} - set(at_best.ON_FRESH_SEEDS)
    for foretold in at_best.BETWEEN.values():
        assert {*foretold, "x0-v"} == grid - {"standard"}


def test_nothing_is_told_before_a_grid_is_whole(write_grid):
    assert at_best.texts() == []


def test_a_lead_is_told_on_each_text_and_a_doubt_beside_it(record):
    record("code")
    assert at_best.for_a_slide("resformer") == "+0.064 on code"
    record("novel", resformer=0.0)
    assert at_best.for_a_slide("resformer") == "+0.064 on code, +0.000 on the novel (not clear)"
    assert "**+0.064**" in at_best.on_the_texts("resformer")


def test_who_leads_where_is_told_for_whoever_does_not_see_the_picture(record):
    record("code", svformer=0.0)
    record("novel", resformer=0.0, svformer=0.0, denseformer=-0.1)
    assert at_best.who_leads_where() == (
        "Clearly ahead on both texts: x0 W_V in all layers; tables in the last third, gain fixed. "
        "Clearly ahead on code alone: ResFormer; DenseFormer. Clearly ahead on neither text: "
        "SVFormer."
    )
    shown = [row["plan"] for row in at_best.systems_at_their_best("code", but=["svformer"])]
    assert "SVFormer" not in [*shown, at_best.who_leads_where(["svformer"])] and len(shown) == 4


def test_how_alike_two_texts_order_the_systems_is_a_rank_correlation(record):
    record("code")
    record("novel")
    assert at_best.ordered_alike() == "1.00"
    record("novel", **{plan: -lead for plan, lead in LEADS.items()})
    assert at_best.ordered_alike() == "−1.00"


def test_what_was_foretold_meets_what_came(record):
    record("code", svformer=0.005)
    lines = came_of(at_best)
    assert lines["ResFormer by 0.050 to 0.090 on code"].startswith("so")
    assert lines["SVFormer by 0.020 to 0.060 on code"].startswith("less")
    assert lines["our mind changes on code"] == "it did not"
    record("code", resformer=0.3)
    lines = came_of(at_best)
    assert lines["ResFormer by 0.050 to 0.090 on code"].startswith("more")
    assert lines["our mind changes on code"] == "it did: ResFormer ahead of x0 W_V"


def test_tables_are_told_over_a_standard_as_large_once_both_grids_are_whole(record, write_grid):
    record("code")
    assert at_best.texts_of_wide() == []
    write_grid("as_wide_code", lambda cell: 0.02)
    assert at_best.texts_of_wide() == ["code"]
    assert at_best.tables_over_as_wide().startswith("**+0.2")
    lines = came_in(at_best.foretold_of_wide())
    assert lines["`standard` widened ahead of `standard` by 0.000 to 0.030 on code"][:3] == "so:"
    assert lines["tables ahead of it by 0.130 to 0.230 on code, clear"].startswith("more: ")
    assert lines["our mind changes on code: a lead below .01"] == "it did not"
    write_grid("as_wide_code", lambda cell: 0.27)
    lines = came_in(at_best.foretold_of_wide())
    assert lines["our mind changes on code: a lead below .01"] == "it did"


def test_grids_of_two_states_are_not_compared(record, write_grid):
    record("code")
    write_grid("as_wide_code", lambda cell: 0.02)
    path = records.EVIDENCE / "as_wide_code.json"
    made = records.read("as_wide_code")
    rows = [row | dict(commit="1e1f382") for row in made["rows"]]
    results.write(path, made | dict(rows=rows))
    assert at_best.texts_of_wide() == []


def test_a_system_that_was_tuned_later_joins_once_it_is_whole_on_each_text(record, write_grid):
    record("code")
    record("novel")
    assert at_best.how_many_systems() == "five" and at_best.told_later() == []
    write_grid("third_at_its_best_code", lambda cell: 0.13)
    assert "row8" not in at_best.told_systems()  # half a line says nothing
    write_grid("third_at_its_best_novel", lambda cell: 0.13)
    assert at_best.how_many_systems() == "six" and at_best.told_later() == ["row8"]
    assert "| x0 W_V in the last third | **+0.1" in at_best.at_their_rates()
    assert at_best.later_in_words("x0-v", "row8").startswith("**+0.011**")
    drawn = [row["plan"] for row in at_best.systems_at_their_best("code")]
    assert len(drawn) == 6 and "x0 W_V in the last third" in drawn


def test_half_of_v_is_foretold_beside_the_token_alone(record, write_grid):
    for text in ("code", "novel"):
        record(text)
        write_grid(f"third_at_its_best_{text}", lambda cell: 0.1)
        write_grid(f"half_at_its_best_{text}", lambda cell: 0.05)
    assert at_best.told_later() == ["row8", "row12"]
    lines = came_in(at_best.foretold_later("row12"))
    assert lines["half V, half x0 W_V, in the last third by 0.030 to 0.090 on code"].startswith(
        "so: "
    )
    ahead = "ahead of x0 W_V in the last third by {} on {}"
    assert lines[ahead.format("−0.060 to +0.000", "code")].startswith("so: **−0.05")
    assert lines[ahead.format("−0.010 to +0.010", "the novel")].startswith("less: ")
    assert lines["our mind changes: clearly ahead of it on both texts"] == "it did not"


def test_what_was_foretold_of_a_later_system_meets_what_came(record, write_grid):
    for text, lead in dict(code=0.02, novel=0.2).items():
        record(text)
        write_grid(f"third_at_its_best_{text}", lambda cell, lead=lead: lead)
    lines = came_in(at_best.foretold_later("row8"))
    assert lines["x0 W_V in the last third by 0.080 to 0.160 on code"].startswith("less: ")
    ahead = "ahead of x0 W_V in all layers by {} on {}"
    assert lines[ahead.format("−0.030 to +0.030", "code")].startswith("less: **−0.1")
    assert lines[ahead.format("−0.015 to +0.000", "the novel")].startswith("more: **+0.0")
    assert lines["our mind changes: clearly ahead of it on both texts"] == "it did not"
    write_grid("third_at_its_best_code", lambda cell: 0.2)
    lines = came_in(at_best.foretold_later("row8"))
    assert lines["our mind changes: clearly ahead of it on both texts"] == "it did"
