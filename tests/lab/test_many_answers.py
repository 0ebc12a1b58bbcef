"""The grid of many_answers, and what its page says."""

import pytest

from evidence.research import many_answers
from tests.lab.conftest import came_of


def test_the_grid_asks_every_cell_once_and_seed_by_seed():
    cells = list(many_answers.many_cells())
    assert len({str(cell) for cell in cells}) == len(cells) == 3 * 10
    assert [cell["seed"] for cell in cells] == sorted(cell["seed"] for cell in cells)


def test_a_row_names_its_shape(monkeypatch):
    monkeypatch.setattr(many_answers, "STEPS", 1)
    ten, _ = many_answers.many_row(many_answers.many_cell("x0", 10, 2, 0))[1:]
    cell = many_answers.many_cell("x0", 20, 2, 0)
    row, head, words = many_answers.many_row(cell)
    assert head["corpus"] == ten["corpus"], "one file holds rows of both texts"
    assert cell.items() <= row.items() and not row["last_mlp"] and row["steps"] == 1
    assert words.startswith("20 answers, 2 heads: ")


@pytest.fixture
def record(recorder):
    return recorder(many_answers, "MANY_ANSWERS", many_answers.many_cells)


def a_weight_says_little(cell):
    return 0.8 if cell["heads"] == 8 else 5 / cell["answers"]


def test_what_came_stands_beside_what_was_predicted(record):
    record(a_weight_says_little)
    came = came_of(many_answers)
    assert came["x0 W_V of ten answers: at most .85"] == "so: 0.50"
    assert came["x0 W_V of twenty: at most .6"] == "so: 0.25"
    assert came["SVFormer, tables of twenty: at most .7"] == "so: 0.25, 0.25"
    assert came["x0 W_V with eight heads: more, by .1"] == "so: 0.80"
    mind = came["our mind changes: x0 W_V within .1 of standard, two heads, twenty"]
    assert mind == "it did not: behind by 0.74"
    lines = many_answers.table_of_many().splitlines()
    assert lines[3].startswith("| 20 | 2 | 0.99 (0.99 to 0.99) | 0.25 (0.25 to 0.25) |")
    assert many_answers.sentence().startswith("The more answers there are")
    fig, alt = many_answers.picture()
    assert ", 0.50, 0.25; SVFormer" in alt and len(fig.axes) == 1


def test_values_of_the_token_that_answer_as_well_change_our_mind(record):
    record(lambda cell: 0.999)
    mind = came_of(many_answers)[
        "our mind changes: x0 W_V within .1 of standard, two heads, twenty"
    ]
    assert mind == "it did: ahead by 0.01"
    assert many_answers.sentence().startswith("A need for values of the stream is not shown")


def test_nothing_is_told_of_a_part(record):
    record(a_weight_says_little, count=-1)
    assert not many_answers.recorded_rows() and many_answers.picture() is None
