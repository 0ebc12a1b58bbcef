"""Leads along tokens and widths: on invented rows, and never from a part of a grid."""

import json
import math

import pytest

from minimal.lab.evidence import grids, records, slopes
from minimal.lab.evidence.runs import asked_of


def row_of(run, lead):
    """A recorded row of a run, as good as `lead(row)` says."""
    width = run.changes.get("width", 64) if run.changes else 64
    asked = json.loads(json.dumps(asked_of(run)))  # as a file gives it back
    row = dict(plan=run.plan, size=run.size, seed=run.seed, asked=asked, steps=run.steps)
    row |= dict(tokens=run.steps * 2048, parameters=width * 10_000)
    return row | dict(loss=3.0 + 0.1 * run.seed + lead(row))


@pytest.fixture
def recorded(tmp_path, monkeypatch):
    """Write a grid's first `count` runs as if they had been trained."""

    def write(name, lead, count=None):
        rows = [row_of(run, lead) for run in grids.GRIDS[name].runs()][:count]
        (tmp_path / f"{name}.json").touch()
        monkeypatch.setattr(records, "EVIDENCE", tmp_path)
        monkeypatch.setattr(records, "read", lambda path: dict(rows=rows))
        return rows

    return write


def melting(row):
    """resformer's lead halves with every doubling; the seed scatters a little."""
    scatter = 0.001 * row["seed"]
    return -100 / row["steps"] + scatter if row["plan"] == "resformer" else 0.0


def test_a_lead_is_paired_with_the_baseline_of_as_many_tokens(recorded):
    found = slopes.leads(recorded("budgets_code", melting), "tokens")
    assert {"bov", "bov-fixed", "bov, slow gain", "bov, equal parameters"} - set(found) == {"bov"}
    x, difference, low, high = zip(*found["resformer"], strict=True)
    assert list(x) == [2048 * steps for steps in (500, 1000, 2000, 4000)]
    wanted = [-100 / steps + 0.001 for steps in (500, 1000, 2000, 4000)]
    assert all(math.isclose(a, b, abs_tol=1e-9) for a, b in zip(difference, wanted, strict=True))
    assert all(a < b < c for a, b, c in zip(low, difference, high, strict=True))
    assert all(point[1] == 0 for point in found["denseformer"])


def test_the_sentence_counts_leads_and_not_lags(recorded):
    found = slopes.leads(recorded("budgets_code", melting), "tokens")
    assert slopes.sentence(found) == "1 of 1 leads are smaller at the end than at the beginning"
    found["svformer"] = [(1, 0.2, 0.1, 0.3), (2, 0.4, 0.3, 0.5)]  # behind, and further behind
    found["bov-fixed"] = [(1, -0.2, -0.3, -0.1), (2, -0.4, -0.5, -0.3)]
    assert slopes.sentence(found) == "1 of 2 leads are smaller at the end than at the beginning"


def test_widths_are_paired_at_one_width_and_named_by_the_baselines_parameters(recorded):
    lead = lambda row: 0.0 if row["plan"] == "standard" else -0.1
    found = slopes.leads(recorded("widths_code", lead), "size")
    assert set(found) == {"bov-fixed", "resformer", "denseformer", "bov-fixed, equal parameters"}
    for points in found.values():
        assert [point[0] for point in points] == [640_000, 1_280_000, 1_920_000]
        assert all(math.isclose(point[1], -0.1) for point in points)


@pytest.mark.parametrize("name, axis", [("budgets_code", "tokens"), ("widths_code", "size")])
def test_nothing_is_drawn_from_a_part_of_a_grid(recorded, capsys, name, axis):
    runs = len(list(grids.GRIDS[name].runs()))
    recorded(name, melting, runs - 1)
    assert slopes.picture(name, axis) is None
    said = f"{name}: {runs - 1} of {runs} runs are recorded; nothing is drawn from a part of a grid"
    assert capsys.readouterr().out == said + "\n"
    recorded(name, melting)
    fig = slopes.picture(name, axis)
    assert fig is not None and capsys.readouterr().out == ""
    assert len(fig.axes[0].containers) == len(slopes.leads(records.read(name)["rows"], axis))
