"""Is what was foretold of the tuning grids held to their means?"""

import json
import math

import pandas as pd
import pytest

from evidence.research import answer, fair_start, title
from tests.lab.conftest import came_in, came_of

SLOW, USUAL, FAST = (
    json.dumps(dict(overrides=fair_start.OVERRIDES[factor]) if factor != title.SAME else {})
    for factor in fair_start.OVERRIDES
)
TABLE = json.dumps(dict(overrides=title.at_times(title.TWICE, "table")))


@pytest.fixture
def losses(monkeypatch):
    """losses(slow, usual, fast): what standard and bov-fixed end with at three rates; twice the
    rate of tables is better by .01."""

    def given(standard, tables):
        df = pd.DataFrame({"standard": standard, "bov-fixed": tables}, [SLOW, USUAL, FAST])
        df.loc[TABLE] = [None, tables[1] - 0.01]
        monkeypatch.setattr(answer, "at_each_choice", lambda text: df)

    lead = dict(difference=0.1, low=0.05, high=0.15, clear=True, n=3)
    rows = [lead | dict(plan=plan) for plan in ("bov-fixed", "x0-v", "resformer", "svformer")]
    monkeypatch.setattr(answer, "at_their_best", lambda text: rows)
    return given


def test_a_rate_above_the_recipes_is_named_with_who_wants_it(losses):
    losses([3.0, 3.1, 3.2], [2.9, 2.8, 2.7])
    came = came_of(fair_start)
    assert came["matrices: the recipe's rate or half of it is best for every plan"] == (
        "not so: twice the rate is best for bov-fixed on code; for bov-fixed on novel"
    )
    neighbours = "within .02 of its neighbour on code"
    assert came[neighbours] == "not so: 0.100 for standard"
    losses([3.0, 3.01, 3.2], [2.9, 2.8, 2.7])
    assert came_of(fair_start)[neighbours] == "not so: 0.100 for bov-fixed"
    losses([3.0, 3.01, 3.2], [2.9, 2.805, 2.8])
    assert came_of(fair_start)[neighbours] == "so: 0.010 for standard"
    assert came["x0-v ahead by 0.08 to 0.13 on code"].startswith("so, in the mean: ")
    assert came["x0-v ahead by 0.02 to 0.04 on novel"].startswith("more: ")


def test_an_order_turns_round_by_the_smaller_of_its_two_leads(losses):
    losses([3.0, 3.0, 3.0], [2.95, 3.0, 3.03])
    assert fair_start.turned_by_rates("code") == pytest.approx(0.03)
    came = came_of(fair_start)
    turned = "no order of two plans turns round by more than .02 nats on code"
    assert came[turned] == "not so: by 0.030 at most, both ways"
    assert came["tables: twice the rate is no worse on code"] == "so: +0.0100"
    losses([3.0, 3.0, 3.0], [2.95, 2.9, 2.99])
    assert fair_start.turned_by_rates("code") == 0


def test_what_was_foretold_of_a_system_that_was_tuned_later_meets_its_means(monkeypatch):
    """A rate counts by its name: the words of the grid and those of what was foretold are one."""
    rates = [json.dumps(json.loads(at), sort_keys=True) for at in (SLOW, USUAL, FAST)]
    df = pd.DataFrame({"row8": [3.0, 2.95, 2.9], "x0-v": [3.0, 3.0, 2.92]}, rates)
    monkeypatch.setattr(answer, "at_each_choice", lambda text, *questions: df)
    came = came_in(fair_start.foretold_of_rates("row8"))
    assert came[f"{fair_start.AT_TWICE} on code"].startswith("so: ")
    assert came[f"{fair_start.AT_USUAL} on novel"] == f"not so: {fair_start.AT_TWICE}"
    assert came["neighbouring rates within .02 nats on code"] == "not so: 0.050"
    assert came["ahead of x0-v by −0.030 to +0.030 on code"] == "so: +0.020"
    assert came["ahead of x0-v by −0.010 to +0.010 on novel"] == "not so: +0.020"


def test_of_each_plan_the_choice_that_it_gets_is_bold_and_no_other(monkeypatch):
    rates = [json.dumps(json.loads(at), sort_keys=True) for at in (SLOW, USUAL, FAST)]
    tables = json.dumps(dict(overrides=dict(table=dict(lr=2 * title.RECIPE.rows["table"].lr))))
    losses = {"row8": [3.0, 2.95, 2.96, None], "bov-fixed": [2.9, 2.8, 2.85, 2.75]}
    df = pd.DataFrame(losses, [*rates, tables])
    monkeypatch.setattr(answer, "at_each_choice", lambda text, *questions: df)
    monkeypatch.setattr(fair_start, "finer_is_recorded", lambda: False)
    columns, _, *lines = fair_start.choices("code").split("\n")
    assert columns == "| plan | the recipe's | matrices x 0.5 | matrices x 2 | other rates |"
    assert lines == [
        "| row8 | **2.950** | 3.000 | 2.960 |  |",
        "| bov-fixed | 2.800 | 2.900 | 2.850 | table ×2: **2.750** |",
    ]
    _, _, *lines = fair_start.taken().split("\n")
    assert lines == [
        "| row8 | the recipe's | the recipe's |",
        "| bov-fixed | table x 2 | table x 2 |",
    ]


def test_one_rate_further_is_held_against_the_best_of_those_that_were_tried(monkeypatch):
    def written(overrides):
        return json.dumps(dict(overrides=overrides), sort_keys=True)

    quarter = title.at_times(title.QUARTER, *title.MATRICES)
    tried = pd.DataFrame({"standard": [3.0, 3.05]}, [SLOW, USUAL])
    further = pd.DataFrame({"standard": [2.98, None]}, [written(quarter), "another's"])

    def at_each_choice(text, *questions):
        return further if questions == fair_start.FURTHER_RATES else tried

    monkeypatch.setattr(answer, "at_each_choice", at_each_choice)
    spans = dict.fromkeys(title.TEXTS, dict(standard=(-0.06, -0.01)))
    monkeypatch.setattr(fair_start, "FURTHER", spans)
    best, beyond, ahead = fair_start.steps_beyond("code")["standard"]
    assert (best, beyond) == ("matrices x 0.5", "matrices x 0.25")
    assert ahead == pytest.approx(0.02) and fair_start.better_beyond("code") == ["standard"]
    came = came_in(fair_start.foretold_of_beyond())
    asked = "standard on code: matrices x 0.25 ahead of matrices x 0.5 by −0.060 to −0.010"
    assert came[asked] == "not so: +0.020"
    assert came["our mind changes on novel: standard better by more than .01"] == "it did"


def test_each_system_whose_best_rate_was_the_last_is_tried_one_further():
    for text in title.TEXTS:
        later = (by_text.get(text, []) for by_text in title.FURTHER_LATER.values())
        asked = [cell["plan"] for cells in (title.ONE_FURTHER[text], *later) for cell in cells]
        assert sorted(asked) == sorted(fair_start.FURTHER[text])
        for best, further, _ in fair_start.steps_beyond(text).values():
            assert best.split(" x ")[0] == further.split(" x ")[0]
            factors = [float(rates.split(" x ")[1]) for rates in (best, further)]
            assert abs(math.log(factors[1])) > abs(math.log(factors[0])) > 0
