"""Is an effect the mean over all twins, and nothing else?"""

import itertools

import pandas as pd
import pytest

from evidence.lab import effect
from evidence.lab.quantities import quantity

COST = dict(standard=0.1, dva=0.0, one=-0.02, noffn=0.3, nowo=0.05) | {"dva-random": 0.12}
FACTORS = ("standard", "dva-random", "dva"), ("one", "many"), ("ffn", "noffn"), ("wo", "nowo")


def grid(seeds=(0, 1)):
    """Losses that are sums of costs, and a network whose removal costs less with a modifier."""
    rows = []
    for seed, names in itertools.product(seeds, itertools.product(*FACTORS)):
        loss = 3 + seed / 10 + sum(COST.get(name, 0) for name in names)
        loss -= 0.1 * (names[0] == "dva" and names[2] == "noffn")
        rows.append(dict(plan="/".join(names), seed=seed, loss=loss))
    return pd.DataFrame(rows)


def test_an_effect_is_what_one_change_does_on_the_mean_of_all_twins():
    assert effect(grid(), "one", "many").by_seed.tolist() == pytest.approx([0.02, 0.02])
    assert effect(grid(), "noffn", "ffn").mean == pytest.approx(-(0.3 - 0.1 / 3))
    assert effect(grid(), "dva-random", "standard").mean == pytest.approx(-0.02)


def test_a_third_word_asks_among_some_plans_alone():
    some = grid()[grid().plan.str.startswith("dva/")]
    assert effect(some, "noffn", "ffn").mean == pytest.approx(-0.2)
    among = quantity("effect noffn over ffn dva grid=dva_factorial").mean
    of_all = quantity("effect noffn over ffn grid=dva_factorial").mean
    assert round(among, 3) == -0.116 and of_all < among
