"""Does notebook 13 tell nothing before a grid is whole, and what was recorded once it is?"""

import pytest

from evidence.research import asked, registered
from evidence.research.value_path import LEADS_FORETOLD, VALUE_PATH


def lead(question, text, cell, over="standard"):
    """A clear lead of .05 to .07, of stream 0 the largest."""
    mean = 0.06 + 0.1 * cell.startswith("x0-v")
    return dict(plan=cell, n=5, difference=mean, low=mean - 0.01, high=mean + 0.01, clear=True)


@pytest.fixture
def recorded(monkeypatch):
    """Says of which questions and texts grids are whole; all their leads are those above."""
    whole = {}
    monkeypatch.setattr(asked, "texts", lambda question: whole.get(question, []))
    monkeypatch.setattr(asked, "lead", lead)
    return whole


def test_before_anything_is_recorded_nothing_is_told(recorded):
    assert registered.dial_picture() is None
    for question in VALUE_PATH:
        assert registered.recorded_so_far(question) == f"{question}: registered, not yet recorded"
        table = registered.foretold_and_came(question)
        of = [told for told in LEADS_FORETOLD if told.question == question]
        assert table.count(" open ") == len(of) > 0
        assert all(f"{told.low:+.3f} to {told.high:+.3f}" in table for told in of)


def test_what_came_stands_beside_what_was_foretold(recorded):
    recorded["xsa"] = ["code"]
    assert "recorded on code, 5 seeds each; not yet on the novel" in registered.recorded_so_far(
        "xsa"
    )
    table = registered.foretold_and_came("xsa")
    line = next(line for line in table.splitlines() if "`xsa` over `standard`" in line)
    assert "+0.040 to +0.080 | so: " in line and line.count("open") == 1
    more = next(line for line in table.splitlines() if "`xsa-x0` over `xsa`" in line)
    assert "| less: " in more, "foretold from +0.090 on, and +0.060 came"


def test_the_dial_is_drawn_with_every_text_and_place_that_is_recorded(recorded):
    recorded["upstream"] = ["code", "novel"]
    recorded["upstream_third"] = ["code"]
    fig, alt = registered.dial_picture()
    code, novel = fig.axes
    assert len(code.containers) == 2 and len(novel.containers) == 1
    line = code.containers[0].lines[0]
    assert list(line.get_xdata()) == [0, 1, 2, 4, 6, 8]
    assert list(line.get_ydata()) == pytest.approx([0.16] + [0.06] * 5)
    assert "on code, in the last third, +0.160, +0.060" in alt and "on the novel" in alt


def test_what_was_foretold_is_drawn_as_bars_and_what_came_as_marks(recorded):
    cells = {
        told.cell
        for told in LEADS_FORETOLD
        if told.over == "standard" and told.question in ("upstream", "keys", "xsa")
    }
    fig, alt = registered.foretold_spans()
    assert [len(ax.patches) for ax in fig.axes] == [len(cells)] * 2
    assert alt.count("not yet recorded") == 3
    before = [len(ax.lines) for ax in fig.axes]
    recorded["xsa"] = ["code"]
    after = [len(ax.lines) for ax in registered.foretold_spans()[0].axes]
    assert after[0] > before[0] and after[1] == before[1]
