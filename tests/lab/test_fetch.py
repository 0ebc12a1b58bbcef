"""The grid of compute_then_fetch, and what its page says."""

import pytest

from evidence.research import fetch
from tests.lab.conftest import came_in, came_of


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


# ---- deeper --------------------------------------------------------------------------------------


@pytest.fixture
def record_deeper(recorder):
    return recorder(fetch, "DEEPER_PATH", fetch.deeper_cells)


def test_three_to_six_layers_are_asked_with_and_without_the_last_mlp():
    cells = list(fetch.deeper_cells())
    assert len({str(cell) for cell in cells}) == len(cells) == 84
    settings = {(cell["depth"], cell["last_mlp"]) for cell in cells}
    assert settings == {*fetch.DEEPER_SETTINGS} and len(fetch.EXPECTED_DEEPER) > 200


def test_a_need_in_deeper_models_is_counted(record_deeper):
    record_deeper(lambda cell: 0.6 if cell["depth"] > 4 else 0.97)
    assert {depth for depth, _ in fetch.needed_at()} == {5, 6}
    assert "a need is shown in 4 of 7 of the models" in fetch.sentence_of_deeper()
    came = came_in(fetch.foretold_of_deeper())
    assert came["a need shows at no depth"] == "not so"
    assert came["our mind changes: a need at two depths or more"] == "it did"
    assert came["x0 W_V: 0.85 or more at every depth, in the mean"] == "not so: 0.60 at least"
    assert "| 5, no last MLP | 0.99 (0.99 to 0.99) | 0.60 (" in fetch.answered_deeper()


def test_none_is_counted_where_others_answer_as_well(record_deeper):
    record_deeper(lambda cell: 0.98 if cell["last_mlp"] else 0.86)
    came = came_in(fetch.foretold_of_deeper())
    assert came["our mind changes: a need at two depths or more"] == "it did"
    assert came["x0 W_V: with and without the last MLP within .1"] == "not so: 0.12 apart at most"
    record_deeper(lambda cell: 0.98)
    assert "a need is shown in none of the models" in fetch.sentence_of_deeper()
    assert came_in(fetch.foretold_of_deeper())["a need shows at no depth"] == "so"


def test_nothing_is_told_of_a_part_of_the_deeper_grid(record_deeper):
    record_deeper(lambda cell: 0.98, count=-1)
    assert fetch.deeper_rows() == []


def test_an_option_goes_on_with_the_deeper_grid(monkeypatch):
    filled = []
    monkeypatch.setattr(fetch.ledger, "fill", lambda path, cells, *_: filled.append(path.name))
    fetch.main([])
    fetch.main(["--deeper", "--minutes", "1"])
    assert filled == ["compute_then_fetch.json", "compute_then_fetch_deeper.json"]
