"""The whole chain at smoke scale: matched runs, cached, resumed, recorded, drawn."""

import json
import time
from dataclasses import replace
from functools import partial

import pytest

from minimal import variants
from minimal.lab.evidence import __main__ as evidence_command
from minimal.lab.evidence import budgets, intervals, records
from minimal.lab.evidence import runs as runs_module
from minimal.lab.evidence.budgets import MATCH, shape, work
from minimal.lab.evidence.grids import GRIDS, Grid
from minimal.lab.evidence.runs import (
    cached,
    missing,
    record,
    row_of,
    run_key,
    same,
)
from minimal.model import attention
from minimal.model.count import count
from minimal.model.values import Mix, Own
from minimal.train import Trainer
from minimal.training.run import Run, TimeIsUp
from minimal.variants import PLANS, Plan, after_first, first, plan_named, skeleton

TEXT = (
    "\n".join(
        f"{a} {b} {c}."
        for a in ("the cat", "a dog", "my horse")
        for b in ("sees", "hears", "knows")
        for c in ("the moon", "a river", "rain")
    )
    * 200
)
SMOKE = dict(size="smoke", vocab=300, context=32, batch=4, rows=8)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "runs"))
    (tmp_path / "text.txt").write_text(TEXT)


@pytest.fixture
def base(tmp_path):
    return Run(corpus=str(tmp_path / "text.txt"), steps=6, evaluate=3, **SMOKE)


def test_a_run_is_trained_once(base, monkeypatch):
    one = cached(base, quiet=True)
    monkeypatch.setattr(runs_module, "Trainer", None)  # a second training would fail
    assert cached(base, quiet=True) == one


def test_the_key_of_a_run_is_its_content(base):
    keys = [
        run_key(run, "f")
        for run in (
            base,
            replace(base, seed=1),
            replace(base, plan="bov"),
            replace(base, steps=7),
            replace(base, lr=0.1),
            replace(base, changes=dict(layers=3)),
        )
    ] + [run_key(base, "other text")]
    assert len(set(keys)) == len(keys)
    assert run_key(replace(base, out="elsewhere", save=3, device="cpu"), "f") == keys[0]
    assert (
        len({keys[0], run_key(replace(base, rows=4), "f"), run_key(replace(base, evaluate=2), "f")})
        == 3
    ), "what was measured"


def test_a_plan_of_one_name_and_other_numbers_is_another_run(base, monkeypatch):
    """Whoever tries a plan of theirs changes its numbers and asks again: that must not be answered from the cache."""

    def plan(a=0.7, start=0.0, role=None, limit="none"):
        value = partial(Mix, Own, first(), a, start, roles=(None, role))
        return Plan(
            variants.place(after_first, value=value, read=partial(attention.Dynamic, True, limit))
        )

    keys = []
    for changed in ({}, dict(a=0.1), dict(start=0.3), dict(role="beta"), dict(limit="clamp")):
        monkeypatch.setitem(PLANS, "mine", plan(**changed))
        keys.append(run_key(replace(base, plan="mine"), "f"))
    assert len(set(keys)) == 5


def test_a_budget_that_buys_nothing_is_refused(base, tmp_path, monkeypatch):
    monkeypatch.setattr(runs_module, "record", lambda *_: 0)
    command = [
        "--plans",
        "bov",
        "--size",
        "smoke",
        "--corpus",
        base.corpus,
        "--match",
        "flops",
        "--budget",
    ]
    for budget, words in (
        ("-5", "a budget must be above 0, not -5"),
        ("1", "buys no step of standard"),
    ):
        with pytest.raises(SystemExit, match=words):
            evidence_command.main([*command, budget])


def test_a_file_of_another_comparison_is_not_continued(base, tmp_path, capsys):
    out = str(tmp_path / "mine.json")
    command = [
        "--plans",
        "gqa",
        "--size",
        "smoke",
        "--corpus",
        base.corpus,
        "--match",
        "steps",
        "--seeds",
        "0",
        "--vocab",
        "300",
        "--out",
        out,
    ]
    evidence_command.main([*command, "--budget", "2"])
    with pytest.raises(
        SystemExit,
        match="holds runs that are steps-matched at 2, and these are steps-matched at 3: name another --out",
    ):
        evidence_command.main([*command, "--budget", "3"])


def test_an_interrupted_grid_goes_on_and_repeats_nothing(base, tmp_path, monkeypatch):
    grid, path = (
        Grid("test", [dict(plan="standard"), dict(plan="bov")], (0, 1), base),
        tmp_path / "e.json",
    )
    trained, whole = [], cached

    def two_at_most(run, *more, **how):
        if len(trained) == 2:
            raise TimeIsUp("stopped at step 1 of 6 (time is up)")
        trained.append((run.plan, run.seed))
        return whole(run, *more, **how)

    monkeypatch.setattr(runs_module, "cached", two_at_most)
    assert record(grid, path, "test") == 2
    assert [(r["plan"], r["seed"]) for r in records.read(path)["rows"]] == [
        ("standard", 0),
        ("bov", 0),
    ], "a whole grid with one seed"
    trained.clear()
    assert record(grid, path, "test") == 0 and trained == [("standard", 1), ("bov", 1)]
    assert missing(grid, path) == []
    table = intervals.paired(records.read(path)["rows"], "loss")
    assert [r["n"] for r in table] == [2, 2] and table[1]["low"] < table[1]["difference"] < table[
        1
    ]["high"]


def test_a_run_that_diverges_does_not_block_those_behind_it(base, tmp_path, capsys):
    grid, path = Grid("test", [dict(lr=1e30), dict(lr=1e-3)], (0,), base), tmp_path / "e.json"
    for _ in range(2):
        assert record(grid, path, "test") == 1
        assert [row["asked"]["lr"] for row in records.read(path)["rows"]] == [1e-3]
        assert "the loss became nan" in capsys.readouterr().out


def test_a_row_is_recognised_by_what_was_asked(base):
    result = cached(base, quiet=True)
    row = json.loads(json.dumps(row_of(base, result)))
    assert (
        same(row, base)
        and not same(row, replace(base, lr=0.5))
        and not same(row, replace(base, seed=5))
    )
    assert len(json.dumps(row)) < 4000


def test_matching_means_what_it_says(base):
    bov = replace(base, plan="bov-every", vocab=None, size="tiny", context=None)
    standard = replace(bov, plan="standard")
    flops = lambda run: (
        count(skeleton(run.plan, run.size, **run.config()))["flops_per_token"]
        * run.steps
        * run.batch
        * 128
    )
    one, two = (MATCH["flops"](run, 3e12) for run in (standard, bov))
    assert two.steps > one.steps and abs(flops(one) / flops(two) - 1) < 0.01
    assert MATCH["tokens"](bov, 51200).steps == 51200 // (4 * 128)
    matched = MATCH["parameters"](replace(bov, plan="bov"), 51200)
    parameters = [
        count(skeleton(r.plan, r.size, **r.config()))["parameters"] for r in (matched, standard)
    ]
    assert matched.changes["hidden"] < 256 and abs(parameters[0] / parameters[1] - 1) < 0.002
    with pytest.raises(ValueError, match="too many even without MLPs"):
        MATCH["parameters"](bov, 51200)


def test_time_matching_gives_the_slower_plan_fewer_steps(base, monkeypatch):
    class Paced(Trainer):
        def step(self, step):
            time.sleep(0.005 if self.run.plan == "standard" else 0.02)

    monkeypatch.setattr(budgets, "Trainer", Paced)
    runs = [MATCH["time"](replace(base, plan=plan), 1.0).steps for plan in ("standard", "cross")]
    assert 200 >= runs[0] > 2 * runs[1] > 0


def test_equal_time_is_measured_once_and_goes_on_with_what_was_measured(
    base, tmp_path, capsys, monkeypatch
):
    ask = [
        "--plans",
        "bov",
        "--match",
        "time",
        "--budget",
        ".2",
        "--seeds",
        "0",
        "--size",
        "smoke",
        "--batch",
        "4",
        "--vocab",
        "300",
        "--corpus",
        base.corpus,
        "--out",
        str(tmp_path / "mine.json"),
    ]
    evidence_command.main(ask)
    rows = records.read(tmp_path / "mine.json")["rows"]
    monkeypatch.setitem(MATCH, "time", None)  # measuring again would fail
    evidence_command.main(ask[:7] + ["0", "1"] + ask[8:])
    more = records.read(tmp_path / "mine.json")["rows"]
    assert more[:2] == rows and [(r["plan"], r["seed"]) for r in more[2:]] == [
        ("standard", 1),
        ("bov", 1),
    ]
    assert {r["plan"]: r["steps"] for r in rows} == {r["plan"]: r["steps"] for r in more[2:]}


def test_a_plan_without_its_baseline_is_shown_alone(capsys):
    evidence_command.table([dict(plan="bov", size="smoke", seed=0, loss=3.0)], "standard")
    assert "no standard to pair it with yet" in capsys.readouterr().out


def test_the_command_compares_draws_and_goes_on(base, tmp_path, capsys, monkeypatch):
    ask = [
        "--plans",
        "bov",
        "--match",
        "flops",
        "--budget",
        "2e9",
        "--seeds",
        "0",
        "--size",
        "smoke",
        "--batch",
        "4",
        "--vocab",
        "300",
        "--corpus",
        base.corpus,
        "--out",
        str(tmp_path / "mine.json"),
    ]
    evidence_command.main(ask)
    said = capsys.readouterr().out
    assert "bov" in said and "one seed: no interval" in said
    assert {p.name for p in (tmp_path / "mine").glob("*.svg")} >= {
        "loss-steps.svg",
        "loss-tokens.svg",
        "loss-flops.svg",
    }
    monkeypatch.setattr(runs_module, "cached", None)  # nothing is trained twice
    evidence_command.main(ask)
    assert "to go" not in capsys.readouterr().out


def test_status_says_what_is_missing(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    monkeypatch.setattr(
        evidence_command, "shape", lambda run: dict(flops_per_token=5e6, context=128)
    )  # counting is tested below
    evidence_command.main([])
    said = capsys.readouterr().out
    assert (
        all(name in said for name in GRIDS)
        and "0 of" in said
        and said.count(" h here") == len(GRIDS)
    )


def test_the_work_of_a_run_is_its_steps_and_a_third_for_what_is_evaluated(base):
    per_token = count(skeleton(base.plan, base.size, **base.config()))["flops_per_token"]
    assert work(base, shape(base)) == pytest.approx(
        per_token * (6 * 4 * 32 + 8 * 32 * 2 / 3), rel=1e-12
    )
    deep, shallow = (replace(base, changes=dict(layers=layers)) for layers in (6, 3))
    assert evidence_command.all_work([deep], {}) > 1.5 * evidence_command.all_work([shallow], {})
    assert evidence_command.all_work([base, replace(base, seed=1)], {}) == 2 * work(
        base, shape(base)
    )


def test_every_grid_names_plans_that_exist():
    for grid in GRIDS.values():
        for run in grid.runs():
            skeleton(plan_named(run.plan), run.size, **run.config())
    assert len({run.plan for run in GRIDS["dva_factorial"].runs()}) == 24


def test_slim_plans_are_as_large_as_standard_to_the_nearest_width():
    target = count(skeleton("standard", "tiny"))["parameters"]
    for run in GRIDS["parameters"].runs():
        sizes = [
            count(skeleton(run.plan, "tiny", hidden=run.changes["hidden"] + more))["parameters"]
            for more in (-1, 0, 1)
        ]
        assert min(sizes, key=lambda size: abs(size - target)) == sizes[1]


def test_dva_as_large_as_standard_has_its_parameters_to_one_per_cent():
    target = count(skeleton("standard", "tiny"))["parameters"]
    for run in GRIDS["dva_matched"].runs():
        if run.changes:
            assert count(skeleton(run.plan, "tiny", **run.changes))["parameters"] == pytest.approx(
                target, rel=0.01
            ), run.plan
