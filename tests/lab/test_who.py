"""Is query, key or value told from whole grids only, in sentences that hold for what came?"""

from functools import partial

import pytest

from evidence.research import leads, who
from evidence.research.grids import GRIDS
from tests.lab.conftest import came_of

ONES = dict(q=-0.03, k=-0.04, v=0.10)


@pytest.fixture
def record(write_grid):
    """record(code=dict(q=…, k=…, v=…), novel=…) writes grids in which these leads add up; in the
    last third they are a third as large."""

    def ahead(ones, cell):
        doors, _, layers = cell.removeprefix("x0-").partition("@")
        of_all = 0 if cell == "standard" else sum(ones[door] for door in doors)
        return of_all / 3 if layers else of_all

    def written(**texts):
        for text, ones in texts.items():
            write_grid(f"who_needs_{text}", partial(ahead, ones))

    return written


def test_every_cell_of_the_grid_is_told_once():
    told = [*who.EVERYWHERE.values(), *who.LAST_THIRD.values(), "standard"]
    grid = {leads.cell_of(run.plan, run.changes or {}) for run in GRIDS["who_needs_code"].runs()}
    assert len(told) == len(set(told)) and set(told) == grid


WORSE = "do worse without the stream of their layer"


def test_nothing_is_told_before_a_grid_is_whole(record):
    record()
    assert not who.texts() and who.picture() is None


@pytest.mark.parametrize(
    "novel, heading",
    [
        (ONES, f"In all layers queries and keys {WORSE}, values do not"),
        (dict(ONES, k=0.0), f"In all layers queries {WORSE}, values do not"),
        (dict(q=-0.03, k=-0.04, v=-0.05), f"In all layers queries and keys {WORSE}"),
        (dict(q=0.03, k=0.04, v=0.05), "No part of attention is clearly worse without the stream"),
    ],
)
def test_the_heading_says_who_is_behind_on_every_text(record, novel, heading):
    record(code=ONES, novel=novel)
    found = who.heading()
    assert found.startswith(heading)
    assert ("do not" in heading) == ("do not" in found)


def test_one_text_alone_is_told_as_one(record):
    record(code=ONES)
    assert who.where() == "code alone" and "novel" not in who.cells()
    assert who.heading().endswith("values do not (on code)")
    record(novel=ONES)
    assert who.where() == "both texts" and "all layers, novel" in who.cells()


def test_who_loses_in_the_last_third_is_named(record):
    record(code=dict(q=0.03, k=0.04, v=0.05), novel=dict(q=0.03, k=0.04, v=0.05))
    assert "none of the three" in who.alone_in_the_last_third()
    record(novel=dict(q=0.03, k=-0.04, v=0.05))
    assert who.alone_in_the_last_third().startswith("In the last third keys made from")


def test_foretold_stands_beside_what_came(record):
    record(code=ONES, novel=dict(q=-0.02, k=-0.02, v=-0.03))
    lines = came_of(who)
    assert lines["queries lead by −0.05 to −0.01 on code"].startswith("so: **−0.030**")
    assert lines["values lead by +0.02 to +0.04 on the novel"].startswith("less: **−0.030**")
    sums = lines["queries and keys cost more than the sum of each on code"]
    assert "not clear: +0.000" in sums or "not clear: −0.000" in sums
    assert lines["values gain beside keys of the token on code"].startswith("so: ")
    assert lines["values gain beside keys of the token on the novel"].startswith("not so: ")
    third = lines["in the last third the same signs, at most half as large, on code"]
    assert third.count(" so,") == 3 and "not so" not in third
    assert who.our_mind()[1] == "it did, on the novel"


def test_the_figure_shows_each_mean(record):
    record(code=ONES, novel=ONES)
    fig, alt = who.picture()
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["code", "the novel"]
    for words in ("queries −0.030", "keys and values +0.060", "queries, keys and values +0.030"):
        assert alt.count(words) == 2
