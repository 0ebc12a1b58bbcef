"""Does a core end with what is recorded: both texts, most seeds, nothing of a part of a grid?"""

import pytest

from course import records
from evidence.research import ending
from minimal.compare.intervals import paired


def test_a_plan_is_read_from_the_grid_with_the_most_seeds():
    table = ending.found({"ResFormer": "resformer"})
    for text in ("code", "novel"):
        (row,) = paired(records.read(f"ten_seeds_{text}")["rows"], "loss", plans=["resformer"])
        ours = table[text]["ResFormer"]
        assert ours["n"] == 10 and ours["difference"] == pytest.approx(-row["difference"])
        assert ours["low"] == pytest.approx(-row["high"]) and ours["clear"]


def test_a_cell_of_a_grid_is_compared_inside_it():
    wider = ("why_vocab", "standard hidden=416", "standard hidden=None")
    found = ending.found({"wider": wider})
    assert [found[text]["wider"]["n"] for text in ("code", "novel")] == [3, 3]
    assert 0 < found["code"]["wider"]["difference"] < 0.03


def test_what_is_not_whole_is_said_and_not_drawn(capsys):
    systems = {"ResFormer": "resformer", "nobody": ("no_such_grid", "resformer")}
    found = ending.show(systems, "a title", "an alt text that is long enough to be read aloud")
    told = capsys.readouterr().out
    assert told.count("nobody     not recorded yet") == 2
    assert all(set(rows) == {"ResFormer"} for rows in found.values())
