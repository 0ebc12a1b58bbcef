"""What do the tests of the title's grids share? A folder of records, and whole grids in it."""

import json
from functools import partial

import pytest

from course import records
from evidence.research import leads
from evidence.research.grids import GRIDS
from minimal.compare.runs import asked_of
from minimal.data import results


def rows_with(name, lead_of, more):
    """Rows of a whole grid with invented leads, a little apart from seed to seed and row to row."""
    state = records.read("states")["rows"][0]
    for run in GRIDS[name].runs():
        lead = lead_of(leads.cell_of(str(run.plan), run.changes or {}))
        lead *= 1 + 0.02 * (run.seed - 2)
        held_out = [3.1 + 0.01 * run.seed + at / 20 - lead for at in range(20)]
        yield dict(
            **dict(plan=str(run.plan), size=run.size, seed=run.seed, steps=run.steps),
            **dict(held_out=held_out, loss=sum(held_out) / 20),
            asked=json.loads(json.dumps(asked_of(run))),
            **{name: state[name] for name in ("commit", "torch", "machine")},
            **more(run),
        )


@pytest.fixture
def write_grid(tmp_path, monkeypatch):
    """write_grid(name, lead_of) records a whole grid in an empty folder: each cell, named as in
    tables, leads by lead_of(cell); more(run) is what its rows hold beside."""
    head, states = records.read("tuning_code"), records.read("states")
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    results.write(tmp_path / "states.json", states)

    def write(name, lead_of, more=lambda run: {}):
        rows = list(rows_with(name, lead_of, more))
        results.write(tmp_path / f"{name}.json", head | dict(rows=rows))

    return write


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    """recorder(study, "PATH", cells) is record(share, count=None), which writes all rows of a study
    of a made-up text, or so many: models whose last values are of the stream answer all, others
    share(cell) of it."""
    return lambda study, name, cells: partial(recorded, tmp_path, monkeypatch, study, name, cells)


def recorded(folder, monkeypatch, study, name, cells, share, count=None):
    rows = []
    for cell in list(cells())[:count]:
        right = 0.99 if cell["plan"] in ("standard", "last") else share(cell)
        rows.append(cell | dict(exact=right - cell["seed"] / 1000))
    path = folder / "answers.json"
    results.write(path, records.read("tuning_code") | dict(rows=rows))
    monkeypatch.setattr(study, name, path)


def came_of(study):
    """{what was foretold: what came}, as a study's page says."""
    return came_in(study.foretold())


def came_in(told):
    """The same, of a table."""
    return dict(line.strip("| ").split(" | ") for line in told.splitlines())
