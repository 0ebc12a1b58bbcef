"""Leads along tokens and widths: on invented rows, and never from a part of a grid."""

import json
import math

import pytest

from course import records
from evidence.research import grids, slopes
from minimal.compare.runs import asked_of
from minimal.data.files import CHECKOUT


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
        head = dict.fromkeys(("what", "command", "commit", "hardware", "versions", "corpus"), "")
        (tmp_path / f"{name}.json").write_text(json.dumps(head | dict(rows=rows)))
        monkeypatch.setattr(records, "EVIDENCE", tmp_path)
        monkeypatch.setattr(records, "read", lambda path: dict(rows=rows))
        return rows

    return write


def melting(row):
    """resformer's lead halves with every doubling; the seed scatters a little."""
    scatter = 0.001 * row["seed"]
    return -100 / row["steps"] + scatter if row["plan"] == "resformer" else 0.0


def test_a_lead_is_paired_with_the_baseline_of_as_many_tokens(recorded):
    found = slopes.leads_along(recorded("budgets_code", melting), "tokens")
    assert {"bov", "bov-fixed", "bov, slow gain", "bov, equal parameters"} - set(found) == {"bov"}
    x, difference, low, high = zip(*found["resformer"], strict=True)
    assert list(x) == [2048 * steps for steps in (500, 1000, 2000, 4000)]
    wanted = [100 / steps - 0.001 for steps in (500, 1000, 2000, 4000)]
    assert all(math.isclose(a, b, abs_tol=1e-9) for a, b in zip(difference, wanted, strict=True))
    assert all(a < b < c for a, b, c in zip(low, difference, high, strict=True))
    assert all(point[1] == 0 for point in found["denseformer"])


def test_the_sentence_counts_leads_and_not_lags(recorded):
    found = slopes.leads_along(recorded("budgets_code", melting), "tokens")
    assert slopes.shrunk_words(found) == "1 of 1 leads are smaller at the end than at the beginning"
    found["svformer"] = [(1, -0.2, -0.3, -0.1), (2, -0.4, -0.5, -0.3)]  # behind, and further
    found["bov-fixed"] = [(1, 0.2, 0.1, 0.3), (2, 0.4, 0.3, 0.5)]
    assert slopes.shrunk_words(found) == "1 of 2 leads are smaller at the end than at the beginning"
    grown = {"bov-fixed": found["bov-fixed"]}
    assert slopes.shrunk_words(grown) == "No lead of 1 is smaller at the end than at the beginning"


def test_widths_are_paired_at_one_width_and_named_by_the_baselines_parameters(recorded):
    lead = lambda row: 0.0 if row["plan"] == "standard" else -0.1
    found = slopes.leads_along(recorded("widths_code", lead), "size")
    assert set(found) == {"bov-fixed", "resformer", "denseformer", "bov-fixed, equal parameters"}
    for points in found.values():
        assert [point[0] for point in points] == [640_000, 1_280_000, 1_920_000]
        assert all(math.isclose(point[1], 0.1) for point in points)


@pytest.mark.parametrize("name, axis", [("budgets_code", "tokens"), ("widths_code", "size")])
def test_nothing_is_drawn_from_a_part_of_a_grid(recorded, capsys, name, axis):
    runs = len(list(grids.GRIDS[name].runs()))
    recorded(name, melting, runs - 1)
    assert slopes.drawn_along(name, axis) is None
    said = f"{name}: {runs - 1} of {runs} runs are recorded; nothing is drawn from a part of a grid"
    assert capsys.readouterr().out == said + "\n"
    recorded(name, melting)
    fig = slopes.drawn_along(name, axis)
    assert fig is not None and capsys.readouterr().out == ""
    assert len(fig.axes[0].containers) == len(slopes.leads_along(records.read(name)["rows"], axis))


# ---- what is told of the recorded curves ---------------------------------------------------------


def told(name):
    """The words of a page or notebook, one space between them."""
    text = (CHECKOUT / name).read_text(encoding="utf-8")
    return " ".join(text.replace('\\n",\n    "', " ").split())


def recorded_leads(grid, axis="tokens"):
    """{system: [(ahead, low, high), …]} along the axis: what is ahead is above zero."""
    found = slopes.leads_along(records.rows_of(records.EVIDENCE / f"{grid}.json"), axis)
    return {name: [point[1:] for point in found[name]] for name in found}


def test_what_is_said_of_leads_by_tokens_is_what_the_curves_are():
    """The findings, README, notebook 12 and its deck."""
    code, novels = recorded_leads("budgets_code"), recorded_leads("budgets_novels")
    ends = lambda leads, name: (leads[name][0][0], leads[name][-1][0])
    # DenseFormer's grows at every doubling, on both texts; no other's does on both
    for leads in (code, novels):
        ahead = [lead for lead, _, _ in leads["denseformer"]]
        assert ahead == sorted(ahead) and ahead[0] > 0
        grown = [name for name in leads if ends(leads, name)[1] > max(0, ends(leads, name)[0])]
        assert grown == ["denseformer"]
    assert code["denseformer"][0] < code["bov-fixed"][0], "begins behind them"
    assert novels["denseformer"][0] < novels["bov-fixed"][0]
    assert novels["denseformer"][-1] > novels["bov-fixed"][-1], "and ends ahead, on novels"
    # tables on code: one drop, and flat after it
    first, second, third, last = (lead for lead, _, _ in code["bov-fixed"])
    assert first < second and third < 0.6 * second and third - last < 0.02
    assert 0.5 < last / first < 0.6, "README: about half"
    # at equal parameters: nearly gone on code, never ahead on novels
    slim = code["bov, equal parameters"]
    assert slim[0][1] > 0 > slim[-1][1] and slim[-1][0] < 0.2 * slim[0][0]
    assert all(lead < 0 for lead, _, _ in novels["bov, equal parameters"])
    # the first layer's values: two thirds stay on code, nothing is clear on novels from 2,000 on
    for name in ("resformer", "svformer"):
        assert 0.6 < ends(code, name)[1] / ends(code, name)[0] < 0.72
        assert novels[name][0][1] > 0 and all(low < 0 for _, low, _ in novels[name][2:])
    # how much text that is
    for grid, times in (("budgets_code", (2, 3)), ("budgets_novels", (0.4, 0.6))):
        file = records.read(grid)
        read = max(row["tokens"] for row in file["rows"]) / file["corpus"]["tokens"]
        assert times[0] < read < times[1]


def test_what_is_said_of_leads_by_width_is_what_the_curves_are():
    leads = recorded_leads("widths_code", "size")
    assert len(leads) == 4 and all(points[-1] > points[0] for points in leads.values())


def test_the_pictures_of_the_site_wait_until_their_grids_are_whole(monkeypatch):
    assert all(len(draw()) == 2 for draw in (slopes.by_tokens, slopes.by_width))
    monkeypatch.setattr(slopes.pairs, "whole_rows", lambda grid: [])
    monkeypatch.setattr(slopes.pairs, "lacking", lambda name: 1)
    assert slopes.by_tokens() is None and slopes.by_width() is None


def test_a_lead_is_told_with_its_interval_and_with_what_is_left_of_it(recorded, monkeypatch):
    rows = recorded("budgets_code", melting)
    monkeypatch.setattr(slopes.pairs, "whole_rows", lambda grid: rows)
    assert slopes.lead_at_place("budgets_code", "resformer", 0).startswith(
        "0.199 (+0.197 to +0.201"
    )
    assert slopes.left("budgets_code", "resformer") == "12 %"
    assert [slopes.counted(value) for value in (720_896, 2_785_280, 8_192_000)] == [
        *("0.72M", "3M", "8M"),
    ]
