"""Is what rates of its own do to a lead counted on shared seeds, and told with its doubts?"""

import pytest

from evidence.research import at_best, own_rates, title


@pytest.fixture
def tuned(write_grid):
    """tuned(svformer=-.01) writes both grids of the novel, each system ahead by so much with rates
    of its own and by .03 with the older recipe."""

    def written(**ahead):
        write_grid("at_its_best_novel", lambda cell: ahead.get(cell, 0.0))
        write_grid("at_its_best_code", lambda cell: 0.0)
        write_grid(own_rates.OLDER, lambda cell: 0.03 * (cell != "standard"))

    return written


def test_a_lead_that_shrank_is_told_from_one_that_did_not(tuned):
    tuned(svformer=-0.01, resformer=0.03, denseformer=0.06)
    found = own_rates.changes_on_the_novel()
    assert found["svformer"]["difference"] == pytest.approx(-0.04, abs=0.005)
    assert found["denseformer"]["difference"] == pytest.approx(0.03, abs=0.005)
    assert {row["n"] for row in found.values()} == {5}, "seeds that both grids have"
    assert "x0-v" not in found, "the older grid has no such system"
    told = own_rates.on_the_novel_in_words()
    assert told.startswith("on the novel 2 of 4 leads are clearly smaller so")
    assert told.endswith("and 1 clearly larger")
    assert "| SVFormer | **+0.03" in own_rates.all_changes()


def test_where_none_shrank_the_words_say_so(tuned):
    tuned(**dict.fromkeys(at_best.CALLED_HERE, 0.03))
    told = own_rates.on_the_novel_in_words()
    assert told.startswith("on the novel 0 of 4 leads are clearly smaller so than with the older")
    assert told.endswith("recipe, and none clearly larger")


def test_the_answers_change_is_of_the_rates_that_it_has_and_of_the_seeds_of_the_dose():
    """Of the records themselves: seeds 0 to 2 chose the rates, 3 and 4 did not."""
    for text in title.TEXTS:
        for plan in ("x0-v", "standard"):
            assert {0, 1, 2, 3, 4} <= own_rates.at_chosen_rates(text, plan).keys()
    found = own_rates.answer_changes()
    assert {row["n"] for row in found.values()} == {5}
