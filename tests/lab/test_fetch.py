"""The grid of compute_then_fetch, and what its page says."""

import pytest

from evidence.research import fetch
from tests.lab.conftest import came_of


def test_the_grid_asks_every_cell_once_and_seed_by_seed():
    cells = list(fetch.asked_cells())
    assert len({str(cell) for cell in cells}) == len(cells) == 3 * 34
    for part in (cells[:96], cells[96:]):
        assert [cell["seed"] for cell in part] == sorted(cell["seed"] for cell in part)


# ---- the page ------------------------------------------------------------------------------------


@pytest.fixture
def record(recorder):
    return recorder(fetch, "PATH", fetch.asked_cells)


def needs_the_stream(cell):
    if cell["text"] == "closed":
        return 0.5 + 0.1 * (cell["depth"] - 2)
    return 0.97 if cell["last_mlp"] or cell["text"] == "raw" else 0.45


def test_what_came_stands_beside_what_was_predicted(record):
    record(needs_the_stream)
    came = came_of(fetch)
    assert came["`closed`: x0 W_V behind standard by .2 or more in two layers"] == "so: by 0.49"
    assert came["and by less in three and in four"] == "so: by 0.39 and 0.29"
    assert came["and below .6 there without the last MLP"] == "so: at most 0.45"
    assert (
        came["our mind changes: x0 W_V within .05 in `closed`, two layers"]
        == "it did not: behind by 0.49"
    )
    assert fetch.sentence().startswith("Where a place has computed")
    closed = [line for line in fetch.answered().splitlines() if "closed" in line]
    assert "| 1 | 0.99 (0.99 to 0.99) | 0.40 (0.40 to 0.40) |" in closed[0]
    assert "| 2 | 0.99 (0.99 to 0.99) | 0.50 (0.50 to 0.50) |" in closed[1]
    fig, alt = fetch.picture()
    assert "closed, x0 W_V: 0.40, 0.50, 0.60, 0.70" in alt and len(fig.axes) == 3


def test_values_of_the_token_that_answer_as_well_change_our_mind(record):
    record(lambda cell: 0.98)
    assert (
        came_of(fetch)["our mind changes: x0 W_V within .05 in `closed`, two layers"]
        == "it did: behind by 0.01"
    )
    assert fetch.sentence().startswith("A need for values of the stream is not shown")
    assert "answer at least 0.98 of it. One layer answers 0.99 with values of the stream" in (
        fetch.sentence()
    )


def test_nothing_is_told_of_a_part(record):
    record(needs_the_stream, count=-1)
    assert not fetch.recorded_rows() and fetch.picture() is None
