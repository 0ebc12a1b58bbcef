"""Is what a model of 135M parameters says told from its whole grid only, and with its spread?"""

import pytest

from course import records
from evidence.research import at_d12, dose
from evidence.research.leads import cell_of
from minimal.data import results
from tests.lab.conftest import came_of


@pytest.fixture
def record(write_grid):
    """record(grid, **leads) writes a grid with these leads at the end, four times these halfway."""

    def written(grid=at_d12.GRID, **leads):
        """Names with "_" for "-"; wide is standard as large as the tables."""
        found = {plan.replace("_", "-"): lead for plan, lead in leads.items()}
        found[at_d12.WIDE_IN_D12] = found.pop("wide", 0.0)

        def more(run):
            cell = cell_of(run.plan, run.changes)
            lead, noise = found.get(cell, 0.0), 0.001 * run.seed
            valid = [[at_d12.HALFWAY, 3 - 4 * lead - noise], [at_d12.END, 2 - lead - noise]]
            twice = 2 if run.changes else 1
            return dict(valid=valid, parameters=135e6, tokens=46e6, flops=twice * 1e16)

        write_grid(grid, lambda cell: found.get(cell, 0.0), more)

    return written


def test_nothing_is_told_before_the_grid_is_whole(record):
    assert not at_d12.is_recorded() and at_d12.sentence() == ""
    record(x0_v=0.05, svformer=0.02)
    path = records.EVIDENCE / f"{at_d12.GRID}.json"
    whole = records.read(at_d12.GRID)
    results.write(path, whole | dict(rows=whole["rows"][:-1]))
    assert not at_d12.is_recorded()


def test_a_lead_is_told_halfway_and_at_the_end(record):
    record(x0_v=0.05, svformer=0.02)
    assert at_d12.sentence().startswith("In a model of 135M parameters it is **+0.050** ")
    first, second, over = at_d12.all_plans().splitlines()[2:]
    assert "**+0.200**" in first and "**+0.050**" in first and "135M" in first
    assert "**+0.080**" in second and "**+0.020**" in second
    assert "**+0.120**" in over and "**+0.030**" in over
    assert "x0 W_V shrank (**−0.150** " in at_d12.halfway()
    # and the page no longer says that larger models are not known
    assert dose.known_beyond().startswith("Longer runs are not known. In a model of 135M ")


def test_what_was_foretold_stands_beside_what_came(record):
    record(x0_v=0.15, svformer=0.02)
    came = came_of(at_d12)
    assert came["x0 W_V in all layers ahead by .03 to .12"].startswith("more: **+0.150**")
    assert came["SVFormer ahead by 0 to .06"].startswith("so: ")
    assert came["our mind changes: x0 W_V behind, or within .01"] == "it did not"
    record(x0_v=-0.02, svformer=0.02)
    came = came_of(at_d12)
    assert came["our mind changes: x0 W_V behind, or within .01"] == "it did"
    assert came["SVFormer behind x0 W_V"].startswith("not so: ")


def test_later_grids_are_told_once_whole_beside_the_first(record):
    record(x0_v=0.05, svformer=0.02)
    before = at_d12.all_plans()
    assert "row8" not in at_d12.in_d12()
    assert at_d12.beside_each_other() == at_d12.across_commits() == ""
    record(at_d12.MORE_GRID, resformer=0.03, row8=0.08)
    record(at_d12.TABLES_GRID, bov=0.1, wide=0.04)
    record(at_d12.AGAIN_GRID, standard=0.0005)
    lines = dict(line.strip("| ").split(" | ", 1) for line in at_d12.all_plans().splitlines()[2:])
    assert set(before.splitlines()) < set(at_d12.all_plans().splitlines())
    assert "**+0.030**" in lines["x0 W_V in the last third, ahead of all layers"]
    assert "**+0.060**" in lines["tables, ahead of standard as large"]
    assert "There the last third alone leads by **+0.080**" in at_d12.sentence()
    assert "which is more. " in at_d12.sentence()
    told = at_d12.beside_each_other()
    assert "in the last third alone are ahead of those in all twelve layers (**+0.030**" in told
    assert "Tables are ahead of a `standard` as large" in told and "takes 2.0 times" in told
    assert "ended within 0.0005 of the first" in at_d12.across_commits()


def test_what_was_foretold_of_later_grids_joins_once_they_are_whole(record):
    record(x0_v=0.05, svformer=0.02)
    before = came_of(at_d12)
    record(at_d12.MORE_GRID, resformer=0.005, row8=0.02)
    record(at_d12.TABLES_GRID, bov=0.1, wide=0.14)
    record(at_d12.AGAIN_GRID, standard=0.03)
    came = came_of(at_d12)
    assert before.items() <= came.items()
    assert came["x0 W_V in the last third ahead by .03 to .08"].startswith("less: ")
    assert came["and of x0 W_V in the last third by 0 to .05"].startswith("so: ")
    assert came["our mind changes: one of them behind, or within .01"] == "it did"
    assert came["tables ahead of standard as large by 0 to .06"].startswith("less: **−0.040**")
    assert came["our mind changes: tables behind it, clearly"] == "it did"
    assert came["standard's second runs within .02 of the first"].startswith("not so: 0.03")
