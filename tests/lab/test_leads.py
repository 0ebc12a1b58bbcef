"""Is a lead the mean over pairs, on rows whose leads are known?"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evidence.research import leads, pairs, tables
from minimal.compare import intervals


def row(plan, seed, loss, **asked):
    return dict(plan=plan, seed=seed, loss=loss, asked=asked, curve=[1, 2])


ROWS = [
    *(row("standard", seed, 3.0 + seed / 10) for seed in range(3)),
    *(row("bov", seed, 2.9 + seed / 10 - seed / 100) for seed in range(4)),
    row("bov", 0, 2.95, changes=dict(hidden=96)),
]


def test_a_lead_is_of_one_cell_on_the_seeds_that_both_have():
    df = leads.frame(ROWS)
    assert list(leads.cell_lead(df, "bov").round(9)) == [0.1, 0.11, 0.12]
    assert list(leads.cell_lead(df, "bov, hidden 96").round(9)) == [0.05]
    assert list(leads.cell_lead(df, "standard", over="bov").round(9)) == [-0.1, -0.11, -0.12]
    with pytest.raises(ValueError, match="wanted one setting of bov, got several"):
        leads.cell_lead(pd.concat([df, df]), "bov")


def test_the_change_of_a_lead_is_tested_as_a_change():
    """Both leads scatter widely and together: their change hardly does."""
    first, second = {0: 0.1, 1: 0.5, 2: 0.9}, {0: 0.09, 1: 0.48, 2: 0.89}
    assert leads.with_interval(first.values()).startswith("+0.500 (")
    assert leads.with_interval(leads.change(first, second)).startswith("+0.013 (")


def test_intervals_of_the_table_are_those_of_scipy():
    df = leads.frame(ROWS)
    found = leads.cell_lead(df, "bov")
    _, low, high = intervals.interval(list(found))
    wanted = stats.t.interval(0.95, 2, found.mean(), stats.sem(found))
    assert (low, high) == pytest.approx(wanted)


def test_the_error_of_the_rows_makes_an_interval_wider_and_never_moves_its_middle():

    def reads(of_seed):
        stretches = {seed: of_seed(seed / 100) for seed in range(3)}
        return {seed: leads.Read(sum(some) / 4, some) for seed, some in stretches.items()}

    theirs = reads(lambda more: [3.0, 3.2, 3.4, 3.1])
    alike = reads(lambda more: [2.9, 3.1, 3.3, 3.0 - more])
    apart = reads(lambda more: [2.6, 3.5, 3.0, 3.2 - more])
    one, two = (leads.as_row_with_rows("bov", ours, theirs) for ours in (alike, apart))
    assert one["difference"] == pytest.approx(two["difference"]) == pytest.approx(0.1025)
    assert two["high"] - two["low"] > one["high"] - one["low"]


def test_a_lead_is_of_the_whole_loss_though_the_last_stretch_of_a_text_is_shorter():
    """Two stretches of sixteen rows and one of four: 36 rows."""
    theirs = {seed: leads.Read(3.0, [3.0, 3.0, 3.0]) for seed in range(3)}
    ours = {seed: leads.Read((2.9 * 32 + 2.0 * 4) / 36, [2.9, 2.9, 2.0]) for seed in range(3)}
    found = leads.as_row_with_rows("bov", ours, theirs)["difference"]
    assert found == pytest.approx((0.1 * 32 + 1.0 * 4) / 36)


def test_the_error_along_a_text_counts_that_neighbours_are_alike():
    chance, ratios = np.random.default_rng(0), []
    for _ in range(200):
        each, files = chance.normal(size=60), np.repeat(chance.normal(size=20), 3)
        ratios.append([leads.error_along(some) / stats.sem(some) for some in (each, files)])
    alone, alike = np.mean(ratios, axis=0)
    assert 0.9 < alone < 1 and alike > 1.3

    # and by its sums: the reach of sixty numbers is three
    apart, n = files - files.mean(), 60
    by_hand = sum(
        max(0, 1 - abs(i - j) / 4) * apart[i] * apart[j] for i in range(n) for j in range(n)
    )
    assert leads.error_along(files) == pytest.approx((by_hand / (n * (n - 1))) ** 0.5)


def test_every_recorded_run_is_a_row_of_the_table():
    df = pairs.runs()
    assert {"grid", "text", "cell", "seed", "loss", "bpb", "parameters", "flops"} <= {*df.columns}
    assert not df[["grid", "plan", "seed"]].isna().any().any()
    assert len(df) == sum(len(pairs.whole_rows(name)) for name in df.grid.unique())


def test_a_table_against_standard_holds_the_held_out_rows_where_a_grid_kept_them(monkeypatch):
    """Seeds agree and rows do not: the interval of seeds alone would be too narrow."""
    apart = [0.3, -0.1, 0.2, 0.0]

    def row(plan, seed, rows):
        loss = sum(rows) / len(rows)
        return dict(plan=plan, seed=seed, loss=loss, held_out=rows, asked=dict(corpus="toy"))

    made = [row("standard", s, [3.0 + 0.01 * s] * 4) for s in range(3)]
    made += [row("bov", s, [3.0 + 0.012 * s - x for x in apart]) for s in range(3)]
    monkeypatch.setattr(tables.pairs, "whole_rows", lambda grid: made)
    with_rows = tables.lead_in_table("toy", "bov")
    for one in made:
        del one["held_out"]
    of_seeds = tables.lead_in_table("toy", "bov")
    assert of_seeds.startswith("**+0.098** (+0.093") and with_rows.startswith("+0.098 (−")
