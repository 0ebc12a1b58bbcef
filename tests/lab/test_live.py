"""Do a notebook's runs and recorded rows say what their numbers say?"""

import pytest

from course import live as module
from course import records
from course.live import Live, recorded, tell

LOSSES = {  # held-out loss by (plan, seed)
    ("standard", 0): 3.0,
    ("standard", 1): 3.2,
    ("standard", 2): 3.1,
    ("better", 0): 2.9,
    ("better", 1): 3.099,
    ("better", 2): 2.9995,
    ("even", 0): 3.1,
    ("even", 1): 3.1,
    ("even", 2): 3.1,
}
ALT = "Recorded differences of plans from standard in held-out loss, with their intervals."


@pytest.fixture
def runs():
    results = {
        key: dict(valid=[dict(loss=9.0), dict(loss=loss)], losses=[loss] * 10)
        for key, loss in LOSSES.items()
    }
    return Live("smoke", steps=10, corpus="stdlib", results=results)


def test_plans_are_compared_seed_by_seed(runs):
    assert runs.by_seed("better") == pytest.approx([0.1, 0.101, 0.1005])
    assert runs.ahead("better", 1, "even") == pytest.approx(0.001)
    assert runs.apart("even") == pytest.approx(0.2)
    assert runs.lead("better") == pytest.approx([0.1] * 9)


@pytest.mark.parametrize(
    "plan, words", [("better", "clear of zero"), ("even", "not distinguishable here")]
)
def test_it_says_what_an_interval_allows(runs, capsys, plan, words):
    runs.say(plan)
    said = capsys.readouterr().out
    assert words in said and "n = 3" in said and "stdlib" in said
    del runs.results[plan, 2]
    runs.say(plan)
    said = capsys.readouterr().out
    assert "n = 2" in said and "not distinguishable here" in said, "two may agree by luck"
    runs.results[plan, 1]["valid"][-1]["loss"] = runs.loss("standard", 1) - runs.ahead(plan)
    runs.say(plan)
    said = capsys.readouterr().out
    assert "not distinguishable here: so few may agree by luck" in said, "the interval is 0 wide"
    del runs.results[plan, 1]
    runs.say(plan)
    assert "one seed, no interval" in capsys.readouterr().out


def test_a_run_is_asked_for_once_for_each_seed(runs, monkeypatch):
    asked = []
    monkeypatch.setattr(module, "cached", lambda run: asked.append(run) or dict(losses=[]))
    runs.train("standard", "new", seeds=2)
    assert [(run.plan, run.seed) for run in asked] == [
        ("standard", 0),
        ("new", 0),
        ("standard", 1),
        ("new", 1),
    ]
    assert {(run.size, run.steps, run.corpus) for run in asked} == {("smoke", 10, "stdlib")}
    assert runs.results["new", 1] == dict(losses=[])


def test_a_drawing_has_a_line_for_every_run_and_for_standard(runs, monkeypatch):
    from course import figures

    drawn = {}
    monkeypatch.setattr(figures, "lines", lambda series, *more, **x: drawn.update(series, **x))
    monkeypatch.setattr(figures, "show", lambda fig, alt: None)
    runs.draw({"ours": ("better", 0)}, "A title", ALT)
    assert list(drawn) == ["ours", "standard", "x"] and len(drawn["x"]) == 9
    assert drawn["standard"] == [0.0] * 9 and drawn["ours"][0] == pytest.approx(0.1)


def test_a_recorded_plan_comes_from_the_first_file_that_has_it():
    files = ("thirteen_rows", "sharing", "no such file")
    first = records.rows("thirteen_rows")
    rows = recorded(*files)
    assert rows[: len(first)] == first and len(rows) > len(first)
    assert not {row["plan"] for row in first} & {row["plan"] for row in rows[len(first) :]}
    assert recorded("no such file") == []


def test_recorded_plans_are_told_with_their_intervals(capsys):
    rows = [dict(plan=p, seed=s, size="smoke", loss=loss) for (p, s), loss in LOSSES.items()]
    table = tell(rows, ["better", "even", "absent"], ALT, words=lambda plan: f"({plan}!)")
    assert [(row["plan"], row["clear"]) for row in table] == [("better", True), ("even", False)]
    said = capsys.readouterr().out
    assert "+0.1005" in said and "(better!)" in said and "absent" not in said
    assert f"[figure] {ALT}" in said
    assert tell([], ["better"], ALT) == []
    assert "recorded yet" in capsys.readouterr().out
