"""Is the dose told from whole grids only, with the right sign, and in sentences that hold?"""

from functools import partial

import pytest
import torch

from evidence.research import asked, dose, findings, leads, pairs, title
from evidence.research.grids import GRIDS
from minimal.data import results
from minimal.variants import build
from tests.lab.conftest import came_in, came_of

AHEAD = {"standard, hidden 416": 0.02, "standard, hidden 736": 0.045}
A_LAYER = {"x0-v": 0.009, "row12": 0.008, "bov-fixed": 0.04}


def ahead(cell, scale=1.0):
    """An invented lead: so much a layer, and half as much for layers that are not the last."""
    if cell.startswith("standard"):
        return scale * AHEAD.get(cell, 0.0)
    plan, layers = cell.split("@")
    where = [int(at) for at in layers.split(",")]
    at_the_top = where == list(range(12 - len(where), 12))
    return scale * A_LAYER[plan] * len(where) * (1 if at_the_top else 0.5)


@pytest.fixture
def record(write_grid):
    """record(code=1, novel=.5) writes both grids, their leads times so much."""

    def written(**scales):
        for text, scale in scales.items():
            write_grid(f"dose_{text}", partial(ahead, scale=scale))

    return written


def test_a_lead_is_above_zero_and_its_interval_holds_it(record):
    record(code=1, novel=-1)
    row = dose.lead("code", dose.ALL)
    assert row["difference"] == pytest.approx(0.108)
    assert row["low"] < row["difference"] < row["high"] and row["n"] == 5
    assert dose.lead("novel", dose.ALL)["difference"] == pytest.approx(-0.108)
    over = dose.lead("code", dose.TABLE_DOSES[4], dose.STANDARD_AS_LARGE[4])
    assert over["difference"] == pytest.approx(0.16 - 0.02)


def test_every_cell_of_the_grids_is_told_once():
    told = [cell for cells in (dose.DOSES | dose.BESIDE).values() for cell in cells.values()]
    grid = {leads.cell_of(run.plan, run.changes or {}) for run in GRIDS["dose_code"].runs()}
    assert len(told) == len(set(told)) and {*told, "standard"} == grid


@pytest.mark.parametrize(
    "code, novel, opens, says, mind",
    [
        (1, 0.3, "At this scale, no", "on code and by +0.032", "it did not"),
        (1, 0.0, "At this scale, no", "is level with `standard` on the novel", "it did not"),
        (0.0, 0.0, "At this scale, no", "is level with `standard` on code", "it did ("),
        (1, -1, "At this scale it depends", "is behind `standard` on the novel", "it did not"),
        (-1, -1, "At this scale, yes", "is behind `standard` on code: −0.108", "it did ("),
    ],
)
def test_the_answer_is_chosen_by_what_all_twelve_layers_show(
    record, code, novel, opens, says, mind
):
    record(code=code, novel=novel)
    heading, first = dose.opening()
    assert first.startswith(opens) and says in dose.sentence()
    assert ("do not need" in heading) == ("no" in first.split())
    assert dose.our_mind()[1].startswith(mind)


def test_layer_1_of_standard_has_the_value_of_the_token_already():
    """So all twelve are eleven changed layers, as the page says."""
    ids = torch.randint(97, (2, 9), generator=torch.Generator().manual_seed(0))
    logits = []
    for plan in ("standard", dose.alone([0]), dose.alone([1])):
        model = build(plan, "smoke", vocab=97)
        for block in model.blocks:  # W_O is zero at the start
            torch.nn.init.normal_(block.attention.out.weight, generator=torch.manual_seed(1))
        logits.append(model(ids))
    assert torch.equal(logits[0], logits[1]) and not torch.equal(logits[0], logits[2])


def test_our_mind_is_asked_of_the_answer_and_a_lead_not_told_from_little_is_called_so(monkeypatch):
    def shown(**leads_):
        rows = {text: dict(difference=mean, low=low, high=high, clear=low > 0 or high < 0)
                for text, (low, mean, high) in leads_.items()}  # fmt: skip
        monkeypatch.setattr(dose, "answer_leads", lambda: rows)
        return dose.our_mind_of_the_answer()

    one = shown(code=(0.08, 0.1, 0.12), novel=(0.005, 0.01, 0.015))
    assert one == "it did not (code: ahead; the novel: ahead, and not told from .01)"
    assert shown(code=(-0.2, -0.1, -0.05), novel=(-0.005, 0.0, 0.005)).startswith("it did (")


def test_what_a_mean_alone_says_is_called_so():
    row = dict(difference=0.012, low=0.004, high=0.02, clear=True)
    assert asked.above(row, 0.01).startswith("so, in the mean: **+0.012**")
    assert asked.above(row, 0.0).startswith("so: ") and asked.above(row, 0.03).startswith(
        "not so: "
    )
    assert asked.below(row, 0.05).startswith("so: ")
    assert asked.within(row, 0.021).startswith("so: ")
    assert asked.within(row, 0.01).startswith("not so, in the mean")
    assert asked.came_between(row, 0.03, 0.04).startswith("less: ")
    assert asked.came_between(row, 0.02, 0.04).startswith("less, in the mean: ")
    assert asked.came_between(row, 0.0, 0.001).startswith("more: ")
    assert asked.came_between(row, 0.0, 0.02).startswith("so: ")
    assert asked.came_between(row, 0.01, 0.04).startswith("so, in the mean: ")
    assert asked.standing(row) == "ahead"
    assert asked.standing(row | dict(high=0.009)) == "level"
    assert asked.standing(row | dict(low=-0.01, clear=False)) == "open"


def test_foretold_stands_beside_what_came(record):
    record(code=1, novel=0.3)
    lines = came_of(dose)
    assert lines["all twelve lead by .08 to .13 on code"].startswith("so: **+0.108**")
    steps = lines["on code every further layer from the top gains or costs less than .02"]
    assert steps.startswith("so, in the mean: 0.009 a layer at most")
    assert lines["and less on the novel"].startswith("so")
    four = "four from the bottom gain less than four from the top, by .01 or more on code"
    assert lines[four].startswith("so: **+0.018**")
    between = lines["every second layer lies between four and eight from the top"]
    assert between.startswith("not so on code, in the mean: +0.027 where they have +0.036")


def test_the_figure_shows_all_cells_and_its_words_say_their_means(record):
    record(code=1, novel=0.3)
    fig, alt = dose.picture()
    names = [text.get_text() for text in fig.axes[1].texts]
    assert {"from the top", "half of it V", "tables", "standard as large"} == set(names)
    in_a_box = [text.get_text() for text in fig.axes[1].get_legend().get_texts()]
    assert in_a_box == ["from the bottom", "every second"]
    lines = [line for line in fig.axes[0].lines if line.get_marker() not in ("None", "")]
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 6
    assert "code: from the top 2: +0.018, 4: +0.036, 8: +0.072, 12: +0.108" in alt
    for line in dose.doses().splitlines()[2:-2]:
        place, k, *words = line.strip("| ").split(" | ")
        assert f"{k}: {words[0].strip('*')[:6]}" in alt


def test_nothing_is_told_from_a_part(record, tmp_path):
    record(code=1, novel=1)
    path = tmp_path / "dose_novel.json"
    content = results.read(path)
    results.write(path, content | dict(rows=content["rows"][:-1]))
    assert dose.texts() == ["code"] and not dose.is_whole()
    assert pairs.whole_rows("dose_novel") == []
    # of the text that is whole all is told, of the other nothing
    fig, alt = dose.picture()
    assert len(fig.axes) == 1 and "novel" not in alt
    words = dose.doses, dose.doses_counted, dose.sentence, dose.dose_over_dose
    told = "".join(word() for word in words)
    assert "novel" not in told + dose.foretold().replace("behind, or within .01, on both", "")
    (tmp_path / "dose_code.json").unlink()
    assert dose.picture() is None and dose.texts() == []


def test_the_answer_is_that_of_a_fair_start_once_it_is_whole_on_both_texts(record, write_grid):
    """Ten seeds at each plan's own rates go before five at one recipe, on both texts or on none."""
    record(code=1, novel=0.3)
    for text, size in (("code", 0.09), ("novel", -0.03)):
        assert "+0.108" in dose.sentence() and dose.opening()[1] == "At this scale, no"
        write_grid(f"fair_{text}", lambda cell, size=size: size * (cell == "x0-v"))
    assert "by +0.10" in dose.sentence() and "is behind `standard` on the novel" in dose.sentence()
    assert dose.opening()[1] == "At this scale it depends on the text"
    lines = came_in(dose.fair_foretold())
    assert lines["between .060 and .130 on code"].startswith("so: **+0.100**")
    assert lines["between .003 and .015 on the novel"].startswith("less: ")
    assert lines["our mind changes: below .01 on the novel"] == "it did"
    assert lines["our mind changes: below .01 on code"] == "it did not"

    # and rates half a step finer go before these
    for text, size in (("code", 0.12), ("novel", -0.03)):
        assert dose.fairest() == "fair"
        write_grid(f"fair_finer_{text}", lambda cell, size=size: size * (cell == "x0-v"))
    assert dose.fairest() == "fair_finer"
    told = findings.at_which_rates().splitlines()[2:]
    assert [line.split("**")[1][:5] for line in told] == ["+0.13", "+0.10", "+0.10"]
    lines = came_in(dose.fair_foretold("fair_finer"))
    assert lines["between .110 and .160 on code"].startswith("so: **+0.1")
    assert lines["our mind changes about the novel: not clear of zero"] == "it did"
    assert dose.finer_changes().count(" on ") == 2 and "+0.0" in dose.finer_changes()


def test_what_is_recorded_elsewhere_stands_beside_what_was_foretold(write_grid):
    assert dose.recorded_elsewhere() == {}
    assert dose.known_beyond() == "Longer runs and larger models are not known."
    for grid, size in (("dose_dombey", 0.03), ("dose_wide_code", -0.02)):
        write_grid(grid, lambda cell, size=size: size * cell.startswith("x0-v"))
    first, second = dose.elsewhere().splitlines()[2:]
    assert first.startswith("| Dombey and Son | 5 | **+0.03") and first.endswith("| so |")
    assert second.startswith("| code, width 192 | 3 | **−0.0") and second.endswith("| less |")
    assert dose.FORETOLD_ELSEWHERE.keys() == title.ELSEWHERE.keys()
    assert dose.known_beyond().startswith("At three times the width the lead is **−0.0")
    assert dose.known_beyond().endswith(" on code. Longer runs are not known.")
    assert {*dose.ON_WHAT} == {
        grid for grid in title.ELSEWHERE if grid.startswith(tuple(dose.BEYOND))
    }


def test_what_time_or_width_does_to_a_lead_is_tested_as_a_change(record, write_grid):
    record(code=1)
    assert dose.changes() == {}
    write_grid("dose_long_code", lambda cell: 0.054 * (cell == "x0-v"))
    write_grid("dose_wide_code", lambda cell: 0.216 * cell.startswith("x0-v"))
    write_grid("dose_wide_novel", lambda cell: 0.1)  # whose dose is not whole
    time, width = dose.changes().values()
    assert (time["n"], width["n"]) == (3, 3) and time["clear"] and width["clear"]
    # of .108 at first a half is left, less two per cent: the seeds that both have are 0, 1 and 2
    assert time["difference"] == pytest.approx(-0.054 * 0.98)
    assert width["difference"] == pytest.approx(0.108 * 0.98)
    first, second = dose.changes_in_words().splitlines()[2:]
    assert first == "| code, 4,000 steps less 500 | 3 | **−0.053** (−0.056 to −0.050) |"
    assert second.startswith("| code, width 192 less 64 | 3 | **+0.106**")
    assert dose.CHANGED.keys() <= title.ELSEWHERE.keys()
