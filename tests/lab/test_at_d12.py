"""Is what a model of 135M parameters says told from its whole grid only, and with its spread?"""

import pytest

from course import records
from evidence.research import at_d12, dose
from minimal.data import results
from tests.lab.conftest import came_of


@pytest.fixture
def record(write_grid):
    """record(**leads) writes the grid with these leads at the end, and four times these halfway."""

    def written(**leads):
        """Names with "_" for "-"."""
        found = {plan.replace("_", "-"): lead for plan, lead in leads.items()}

        def more(run):
            lead, noise = found.get(run.plan, 0.0), 0.001 * run.seed
            valid = [[at_d12.HALFWAY, 3 - 4 * lead - noise], [at_d12.END, 2 - lead - noise]]
            return dict(valid=valid, parameters=135e6, tokens=46e6)

        write_grid(at_d12.GRID, lambda cell: found.get(cell, 0.0), more)

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
    first, second, over = at_d12.both_plans().splitlines()[2:]
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
