"""Is what query, key and value choose told from whole grids only, in sentences that hold?"""

import pytest

from evidence.research import own_mixtures
from evidence.research.grids import GRIDS
from tests.lab.conftest import came_of

AS_SAID = dict(q=0.1, k=0.15, v=0.6)
LEADS = {"coef-shared": 0.03, "coef-apart": 0.035, "depth-shared": 0.03, "depth-apart": 0.05}


@pytest.fixture
def record(write_grid):
    """record("code", dict(q=…, k=…, v=…)) writes a whole grid in which the doors ask for so much of
    the token in the upper half, and for nothing of it below; one choice for all for `shared`."""

    def written(text, weights, shared=0.5, over_depth=None):
        def mixes(run):
            asks = weights if str(run.plan).startswith("coef") else over_depth or weights
            return dict(mixed=mixed(str(run.plan), run.seed, asks, shared))

        write_grid(f"own_mixture_{text}", lambda cell: LEADS.get(cell, 0.0), mixes)

    return written


def mixed(plan, seed, weights, shared):
    if plan == "standard":
        return {}
    if plan.endswith("shared"):
        weights = dict.fromkeys("qkv" if plan.startswith("coef") else "q", shared)
    found = {}
    for door, weight in weights.items():
        by_layer = [0.0] * 6 + [weight + 0.001 * seed] * 6
        over_depth = plan.startswith("depth")
        found[door] = [[w, 1 - w] for w in by_layer] if over_depth else by_layer
    return found


def test_every_cell_of_the_grid_is_told_once():
    grid = {str(run.plan) for run in GRIDS["own_mixture_code"].runs()}
    assert {*own_mixtures.CHOICES, "standard"} == grid
    assert set(own_mixtures.APART) < set(own_mixtures.CHOICES)


def test_the_upper_half_alone_is_counted(record):
    record("code", AS_SAID)
    for plan in own_mixtures.APART:
        shares = own_mixtures.token_shares("code", plan, "v")
        assert shares == pytest.approx({seed: 0.6 + 0.001 * seed for seed in range(5)})


def test_as_foretold_it_is_told_so(record):
    record("code", AS_SAID)
    record("novel", AS_SAID)
    assert own_mixtures.heading().startswith("Left to choose, values ask for more of the token")
    lines = came_of(own_mixtures)
    assert all(came.startswith("so") for what, came in lines.items() if "lies nearer" in what)
    assert all(
        came.startswith("so: queries") for what, came in lines.items() if "every seed" in what
    )
    assert lines["weights: apart ahead of shared by less than .01 on code"].startswith("so")
    assert lines["over depth: apart ahead of shared by .01 or more on code"].startswith("so")
    assert own_mixtures.our_mind()[1] == "it did not"
    told = own_mixtures.cells()
    assert "0.10, 0.15, 0.60" in told and "| 0.50 |" in told
    assert "| over depth: for each, ahead of one for all | **+0.020**" in told


def test_where_values_ask_for_less_it_is_told_so(record):
    less = dict(q=0.5, k=0.1, v=0.3)
    record("code", less)
    assert own_mixtures.heading() == (
        "Left to choose, values do not ask for more of the token than queries and keys (on code)"
    )
    lines = came_of(own_mixtures)
    assert lines["weights of q and k below .2 on code"].startswith("not so: 0.50, 0.10")
    assert lines["the one pair lies nearer to v's than to q's on code"].startswith("not so")
    assert own_mixtures.our_mind()[1] == "it did, on code"
    record("novel", AS_SAID)
    assert own_mixtures.heading().startswith("Whether values ask for more of the token depends")
    assert own_mixtures.our_mind()[1] == "it did, on code"


def test_weights_and_choices_over_depth_may_say_different_things(record):
    record("code", AS_SAID, over_depth=dict(q=0.4, k=0.1, v=0.3))
    assert own_mixtures.asks_most("code", "coef-apart")
    assert not own_mixtures.asks_most("code", "depth-apart")
    assert own_mixtures.heading().startswith("Whether values ask")


def test_one_seed_in_which_they_do_not_is_enough(record):
    record("code", dict(q=0.3, k=0.1, v=0.3))
    assert not own_mixtures.asks_most("code", "coef-apart")


def test_what_is_read_of_the_last_layers_is_counted_from_an_even_choice(monkeypatch):
    """0 where all parts are read alike; where the last alone is, all that an even choice leaves."""
    evenly = [[1 / n] * n for n in range(1, 13)]
    last = [[0.0] * at + [1.0] for at in range(12)]
    first = [[1.0] + [0.0] * at for at in range(12)]
    row = dict(plan="depth-apart", seed=0, mixed=dict(q=evenly, k=last, v=first))
    monkeypatch.setattr(own_mixtures.pairs, "whole_rows", lambda grid: [row])
    found = {door: own_mixtures.of_the_last("code", door)[0] for door in "qkv"}
    even = sum(3 / n for n in range(7, 13)) / 6
    assert found == pytest.approx(dict(q=0.0, k=1 - even, v=-even))


def test_nothing_is_told_before_a_grid_is_whole(write_grid):
    assert own_mixtures.texts() == []
