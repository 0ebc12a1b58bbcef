"""Is content or gradient told from whole grids only, in sentences that hold for what came?"""

import pytest

from evidence.research import content, leads
from evidence.research.grids import GRIDS
from tests.lab.conftest import came_in, came_of

HOME = dict(both=0.05, forward=0.005, gradient=0.04, neither=0.0, other=-0.02)
SAID = dict(both=0.05, forward=0.05, gradient=0.0, neither=0.0, other=-0.02)
NOTHING = dict.fromkeys(HOME, 0.0)


@pytest.fixture
def record(write_grid):
    """record(code=by_way, novel=…) writes grids with these leads, for V1 and for x0 alike."""

    def written(**texts):
        for text, by_way in texts.items():
            write_grid(f"content_gradient_{text}", lambda c: by_way.get(c.split("-")[-1], 0))

    return written


def test_every_cell_of_the_grid_is_told_once():
    told = {content.passed_cell(what, way) for what in content.OF for way in content.PASSED_WORDS}
    grid = {leads.cell_of(run.plan, {}) for run in GRIDS["content_gradient_code"].runs()}
    assert told | {"standard"} == grid


@pytest.mark.parametrize(
    "by_way, heading",
    [
        (HOME, "The gradient's way home to the first layer helps"),
        (SAID, "the number helps; the gradient alone is not shown to"),
        (dict(HOME, forward=0.03), "the number helps, and so does the gradient's way home"),
        (NOTHING, "its gradient clearly helps alone (on code)"),
        (dict(NOTHING, both=0.05), "nor its gradient clearly helps alone; together they do"),
    ],
)
def test_the_heading_says_which_part_helps_alone(record, by_way, heading):
    record(code=by_way)
    assert heading in content.heading()


def test_foretold_stands_beside_what_came(record):
    record(code=HOME, novel=SAID)
    lines = came_of(content)
    half = "gains at least half of what both gain on code"
    assert lines[f"V1: the gradient alone {half}"] == "so, in the mean: +0.040 of +0.050"
    assert lines[f"x0 W_V: the number alone {half}"].startswith("not so, in the mean: +0.005")
    assert lines["V1: the number alone gains less than .02 on code"].startswith("so: ")
    other = lines["another text's V1 costs .01 or more against neither on code"]
    assert other.startswith("so: **+0.020**")
    assert lines["neither, for V1: within .02 of standard on code"].startswith("so: ")
    assert lines["V1: the number alone gains less than .02 on the novel"].startswith("not so: ")
    assert content.our_mind()[1].startswith("behind on code")
    assert "not shown to be behind on the novel" in content.our_mind()[1]


def test_four_times_as_long_is_told_beside_what_was_foretold(record, write_grid):
    record(code=HOME)
    assert not content.texts_of_long()
    said = dict(SAID, other=-0.04)
    write_grid("content_gradient_long_code", lambda cell: said.get(cell.split("-")[-1], 0))
    lines = came_in(content.foretold_of_long())
    signs = lines["the signs are those of 500 steps"]
    assert signs.startswith("so")
    assert lines["V1: number and gradient gain .02 to .08"].startswith("so: ")
    assert lines["V1: the number alone is within .02 of neither"].startswith("not so: ")
    assert lines["V1: the gradient alone is within .02 of neither"].startswith("so: ")
    assert lines["x0 W_V: the gradient alone gains less than .02"].startswith("so: ")
    assert lines["another text's V1 costs .02 or more against neither"].startswith("so")
    mind = content.mind()[1]
    assert "the number alone: so" in mind and "the gradient alone: not so" in mind
    assert content.cells_after_long().count("\n") == content.cells().count("\n")
    assert content.sentence_after_long() == (
        "Of V1 it is so after four times as long, too: number and gradient lead together, so does "
        "the number alone"
    )


def test_a_gain_that_turned_round_is_named(record, write_grid):
    record(code=HOME)
    turned = dict(HOME, gradient=-0.04)
    write_grid("content_gradient_long_code", lambda cell: turned.get(cell.split("-")[-1], 0))
    assert content.signs()[1] == (
        "not so, in the mean: the gradient alone of V1, the gradient alone of x0 W_V turned round"
    )


def test_one_text_alone_is_told_as_one(record):
    record()
    assert not content.texts()
    record(code=HOME)
    assert content.texts() and "novel" not in content.cells()
