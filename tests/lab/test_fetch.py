"""The grids of made-up texts: is every cell asked once, recorded, and trained as it says?"""

import pytest

from course import records
from evidence.lab.quantities import depths_in_need, exact_of
from evidence.measured import fetch

EACH = pytest.mark.parametrize("name", fetch.GRIDS)


@EACH
def test_every_cell_is_asked_once_and_seed_by_seed_and_is_recorded(name):
    question, cells, steps = fetch.GRIDS[name]
    cells, recorded = list(cells()), records.read(name)
    assert len({str(cell) for cell in cells}) == len(cells) == len(recorded["rows"])
    assert all(any(fetch.same(row, cell) for row in recorded["rows"]) for cell in cells)
    assert {row["steps"] for row in recorded["rows"]} == {steps} and recorded["what"] == question
    before = cells[:96] if name == "compute_then_fetch" else cells  # the others were asked later
    assert [cell["seed"] for cell in before] == sorted(cell["seed"] for cell in before)


@EACH
def test_a_row_names_its_shape_and_its_file_the_function_of_its_texts(name):
    question, cells, _ = fetch.GRIDS[name]
    for cell in list(cells())[:2]:
        row, head, words = fetch.made(question, "a test", 1, cell)
        assert cell.items() <= row.items() and row["steps"] == 1 and 0 <= row["exact"] <= 1
        assert head["corpus"]["fingerprint"] == records.read(name)["corpus"]["fingerprint"]
        assert f"depth {cell['depth']}" in words


def test_the_command_goes_on_with_the_grid_that_is_named(monkeypatch, capsys):
    filled = []
    monkeypatch.setattr(fetch.ledger, "fill", lambda path, cells, *_: filled.append(path.name))
    fetch.main([])
    fetch.main(["many_answers", "--minutes", "1"])
    assert filled == ["compute_then_fetch.json", "many_answers.json"]
    with pytest.raises(SystemExit):
        fetch.main(["fetch_nothing"])
    assert "invalid choice: 'fetch_nothing'" in capsys.readouterr().err


def test_a_need_shows_where_every_model_of_the_stream_answers_more(monkeypatch):
    shares = {("standard", 2): (0.9, 1.0), ("standard", 3): (1.0, 1.0)}
    shares |= {("x0", 2): (0.5, 0.6), ("x0", 3): (0.8, 0.97)}
    rows = [
        dict(plan=plan, depth=depth, last_mlp=True, seed=seed, exact=share)
        for (plan, depth), some in shares.items()
        for seed, share in enumerate(some)
    ]
    monkeypatch.setattr(records, "read", lambda name: dict(rows=rows))
    assert exact_of("made plan=x0 depth=2".split()) == pytest.approx(0.55)
    assert depths_in_need(["made"]) == 1, "in three layers one model of x0 W_V is as good"
