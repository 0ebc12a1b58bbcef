"""The grid of fetch_first, and what its page says."""

import pytest

from evidence.research import fetch_first
from tests.lab.conftest import came_of


def test_the_grid_asks_every_cell_once_and_seed_by_seed():
    cells = list(fetch_first.moving_cells())
    assert len({str(cell) for cell in cells}) == len(cells) == 3 * 13
    assert [cell["seed"] for cell in cells] == sorted(cell["seed"] for cell in cells)


def test_a_row_names_its_shape(monkeypatch):
    monkeypatch.setattr(fetch_first, "MANY_STEPS", 1)
    cell = fetch_first.moving_cell("x0", 0)
    row, _, words = fetch_first.moving_row(cell)
    assert cell.items() <= row.items() and not row["last_mlp"] and row["steps"] == 1
    assert words.startswith("2 layers, 2 heads, no last MLP: ")


@pytest.fixture
def record(recorder):
    return recorder(fetch_first, "FETCH_FIRST", fetch_first.moving_cells)


def needs_an_mlp(cell):
    if cell["last_mlp"] or cell["depth"] == 3:
        return 0.97
    return 0.5 if cell["heads"] == 2 else 0.6


def test_what_came_stands_beside_what_was_predicted(record):
    record(needs_an_mlp)
    came = came_of(fetch_first)
    told = "x0 W_V, SVFormer, tables without it, two heads: at most .7"
    assert came[told] == "so: 0.50, 0.50, 0.50"
    assert came["with eight heads more, by .05"] == "so: 0.60, 0.60, 0.60"
    mind = came["our mind changes: x0 W_V within .1 of standard, two heads, without it"]
    assert mind == "it did not: behind by 0.49"
    assert fetch_first.claim_of_moving().startswith("Values of the stream are needed")
    assert "answer 0.97 of the questions if an MLP follows the fetch, and 0.50 if none does" in (
        fetch_first.sentence()
    )
    lines = fetch_first.answers_table().splitlines()
    assert lines[3].startswith("| 2 | 2 | no | 0.99 (0.99 to 0.99) | 0.50 (0.50 to 0.50) |")
    fig, alt = fetch_first.picture()
    assert "x0 W_V, 2 layers, 2 heads: 0.50" in alt and len(fig.axes) == 1


def test_values_of_the_token_that_answer_as_well_change_our_mind(record):
    record(lambda cell: 0.98)
    mind = came_of(fetch_first)[
        "our mind changes: x0 W_V within .1 of standard, two heads, without it"
    ]
    assert mind == "it did: behind by 0.01"
    assert fetch_first.sentence().startswith("A need for values of the stream is not shown")


def test_nothing_is_told_of_a_part(record):
    record(needs_an_mlp, count=-1)
    assert not fetch_first.recorded_rows() and fetch_first.picture() is None
