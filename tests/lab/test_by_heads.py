"""The grid of fetch_by_heads, and what its page says."""

import pytest

from course import records
from evidence.research import by_heads
from minimal.data import results


def test_the_grid_asks_every_cell_once_and_seed_by_seed():
    cells = list(by_heads.cells_by_heads())
    assert len({str(cell) for cell in cells}) == len(cells) == 3 * 19
    assert [cell["seed"] for cell in cells] == sorted(cell["seed"] for cell in cells)


@pytest.fixture
def record(tmp_path, monkeypatch):
    """record(share) writes all rows: standard answers all, others share(cell) of them."""
    monkeypatch.setattr(by_heads, "BY_HEADS", tmp_path / "fetch_by_heads.json")
    head = records.read("tuning_code")

    def written(share, count=None):
        rows = []
        for cell in list(by_heads.cells_by_heads())[:count]:
            right = 0.99 if cell["plan"] in ("standard", "last") else share(cell)
            rows.append(cell | dict(exact=right - cell["seed"] / 1000))
        results.write(by_heads.BY_HEADS, head | dict(rows=rows))

    return written


def foretold():
    return dict(line.strip("| ").split(" | ") for line in by_heads.foretold().splitlines())


def one_number_a_head(cell):
    if cell["text"] != "closed":
        return 0.97
    return {2: 0.5, 4: 0.8, 8: 0.95}[cell["heads"] * (cell["depth"] - 1)]


def test_what_came_stands_beside_what_was_predicted(record):
    record(one_number_a_head)
    came = foretold()
    assert came["values of the token, two heads: at most .7"] == "so: 0.50, 0.50, 0.50"
    assert came["x0 W_V, two heads, three layers: within .15 of four heads"] == "so: 0.80"
    mind = came["our mind changes: x0 W_V within .05 of standard with two heads"]
    assert mind == "it did not: behind by 0.49"
    assert by_heads.claim_of_heads().startswith("With few heads")
    assert "values of the stream answer 0.99 of the questions" in by_heads.sentence()
    assert "0.50 with two heads, 0.80 with four and 0.95 with eight" in by_heads.sentence()
    lines = by_heads.answers_table().splitlines()
    assert lines[2].startswith("| closed | 2 | 2 | 2 | 0.99 (0.99 to 0.99) | 0.50 (0.50 to 0.50) |")
    assert lines[5].startswith("| closed | 2 | 3 | 4 | 0.99 (0.99 to 0.99) | 0.80 (0.80 to 0.80) |")
    fig, alt = by_heads.picture()
    assert "x0 W_V: 0.50, 0.80, 0.95" in alt and len(fig.axes) == 1


def test_values_of_the_token_that_answer_as_well_change_our_mind(record):
    record(lambda cell: 0.98)
    mind = foretold()["our mind changes: x0 W_V within .05 of standard with two heads"]
    assert mind == "it did: behind by 0.01"
    assert by_heads.sentence().startswith("A need for values of the stream is not shown")


def test_nothing_is_told_of_a_part(record):
    record(one_number_a_head, count=-1)
    assert not by_heads.recorded_rows() and by_heads.picture() is None
