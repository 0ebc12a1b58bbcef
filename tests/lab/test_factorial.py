"""Is an effect the mean over all twins, and nothing else?"""

import itertools

import pytest

from evidence.research.factorial import effect_row, effects, whole_seeds

COST = dict(standard=0.1, dva=0.0, one=-0.02, noffn=0.3, nowo=0.05) | {"dva-random": 0.12}
FACTORS = ("standard", "dva-random", "dva"), ("one", "many"), ("ffn", "noffn"), ("wo", "nowo")


def grid(seeds=(0, 1)):
    """Losses that are sums of costs, and a network whose removal costs less with a modifier."""
    rows = []
    for seed, names in itertools.product(seeds, itertools.product(*FACTORS)):
        loss = 3 + seed / 10 + sum(COST.get(name, 0) for name in names)
        loss -= 0.1 * (names[0] == "dva" and names[2] == "noffn")
        rows.append(dict(plan="/".join(names), seed=seed, loss=loss))
    return rows


def test_an_effect_is_what_one_change_does_on_the_mean_of_all_twins():
    found = effect_row(grid(), 1, "many", "one")
    assert found["difference"] == pytest.approx(-0.02) and found["n"] == 2
    assert found["plan"] == "many heads → one head"
    assert effect_row(grid(), 2, "ffn", "noffn")["difference"] == pytest.approx(0.3 - 0.1 / 3)


def test_all_effects_and_the_two_that_ask_for_the_network():
    table = {row["plan"]: row["difference"] for row in effects(grid())}
    assert len(table) == 7
    assert table["network → no network, no modifier"] == pytest.approx(0.3)
    assert table["network → no network, learned modifier"] == pytest.approx(0.2)
    assert table["no modifier → random modifier"] == pytest.approx(0.02)


def test_a_seed_that_lacks_a_run_does_not_count():
    rows = grid((0, 1))[:-1]
    assert {row["seed"] for row in whole_seeds(rows)} == {0}
    assert effect_row(whole_seeds(rows), 3, "wo", "nowo")["low"] is None
