"""The grid of carried.json, and what its page says."""

import pytest

from course import records
from evidence.research import carried
from minimal.data import results


def test_the_grid_asks_every_cell_once_and_seed_by_seed():
    cells = list(carried.carried_cells())
    assert len({str(cell) for cell in cells}) == len(cells) == 3 * 10
    assert [cell["seed"] for cell in cells] == sorted(cell["seed"] for cell in cells)


@pytest.fixture
def record(tmp_path, monkeypatch):
    """record(share) writes all rows: standard answers all, others share(cell) of them."""
    monkeypatch.setattr(carried, "CARRIED", tmp_path / "carried.json")
    head = records.read("tuning_code")

    def written(share, count=None):
        rows = []
        for cell in list(carried.carried_cells())[:count]:
            right = 0.99 if cell["plan"] == "standard" else share(cell)
            rows.append(cell | dict(exact=right - cell["seed"] / 1000))
        results.write(carried.CARRIED, head | dict(rows=rows))

    return written


def foretold():
    return dict(line.strip("| ").split(" | ") for line in carried.foretold().splitlines())


def fewer_of_many(cell):
    return {8: 0.95, 64: 0.6, 512: 0.2}[cell["symbols"]] + (0.3 if cell["heads"] == 8 else 0)


def test_what_came_stands_beside_what_was_predicted(record):
    record(fewer_of_many)
    came = foretold()
    assert came["x0 W_V, two heads: .9 or more with 8"] == "so: 0.95"
    assert came["at most .5 with 512"] == "so: 0.20"
    assert came["x0 W_V, eight heads, 512: more by .1"] == "so: 0.50"
    mind = came["our mind changes: x0 W_V within .1 of standard, 512 symbols"]
    assert mind == "it did not: behind by 0.79"
    assert carried.claim_of_carried().startswith("What a place has taken up")
    assert "0.95 of the questions about 8 kinds of symbols, 0.60 about 64" in carried.sentence()
    lines = carried.carried_table().splitlines()
    assert lines[2] == "| 8 | 2 | 0.99 (0.99 to 0.99) | 0.95 (0.95 to 0.95) |  |  |"
    fig, alt = carried.picture()
    assert "x0 W_V: 0.95, 0.60, 0.20" in alt and len(fig.axes) == 1


def test_values_of_the_token_that_answer_as_well_change_our_mind(record):
    record(lambda cell: 0.98)
    mind = foretold()["our mind changes: x0 W_V within .1 of standard, 512 symbols"]
    assert mind == "it did: behind by 0.01"
    assert carried.sentence().startswith("A need for values of the stream is not shown")


def test_nothing_is_told_of_a_part(record):
    record(fewer_of_many, count=-1)
    assert not carried.recorded_rows() and carried.picture() is None


def test_rows_of_all_kinds_stand_in_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(carried, "CARRIED", tmp_path / "carried.json")
    monkeypatch.setattr(carried, "TWO_HOPS", 1)
    for symbols in carried.MANY:
        cell = carried.carried_cell("x0", symbols, 2, 0)
        row, head, words = carried.carried_row(cell)
        results.append(carried.CARRIED, row, head)
        assert words.startswith(f"{symbols} symbols, 2 heads: ")
    assert [row["symbols"] for row in results.read(carried.CARRIED)["rows"]] == [8, 64, 512]
