"""The whole chain at smoke scale: matched runs, cached, resumed, recorded, drawn."""

import io
import json
import pathlib
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from course import comparison as course_comparison
from course import records
from course.watched import watched
from minimal import variants
from minimal.compare import __main__ as compare_command
from minimal.compare import budgets, comparison, intervals, ledger
from minimal.compare import runs as runs_module
from minimal.compare.budgets import MATCH
from minimal.compare.runs import (
    Grid,
    cached,
    in_folder,
    lacking,
    missing_runs,
    record,
    row_of,
    run_key,
    same,
)
from minimal.data import files
from minimal.kernels import recorded
from minimal.model import attention
from minimal.model.count import count
from minimal.model.values import Mix, Own
from minimal.train import Trainer
from minimal.training.recipes import RECIPES
from minimal.training.run import Diverged, Run, TimeIsUp
from minimal.variants import PLANS, Plan, after_first, first, skeleton

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
    others = (
        replace(base, seed=1),
        replace(base, plan="bov"),
        replace(base, steps=7),
        replace(base, lr=0.1),
        replace(base, changes=dict(layers=3)),
        replace(base, rows=4),  # what was measured
        replace(base, evaluate=2),
    )
    key = run_key(base, "f")
    keys = [key, run_key(base, "other text"), *(run_key(run, "f") for run in others)]
    assert len(set(keys)) == len(keys)
    assert run_key(replace(base, out="elsewhere", save=3, device="cpu"), "f") == key


def test_a_plan_of_one_name_and_other_numbers_is_another_run(base, monkeypatch):
    """Whoever tries a plan of theirs changes its numbers and asks again: the cache must not
    answer."""

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


def ask_for(base, *more):
    """A comparison of one's own at smoke scale, as words on the command line."""
    words = f"--size smoke --vocab 300 --batch 4 --corpus {base.corpus}".split()
    return [*words, *more]


def test_a_budget_that_buys_nothing_is_refused(base, monkeypatch, capsys):
    monkeypatch.setattr(comparison, "record", None)
    command = ask_for(base, "--plans", "bov", "--match", "flops", "--budget")
    with pytest.raises(SystemExit):
        compare_command.main([*command, "-5"])
    assert "--budget: wanted a number above 0, got -5" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="compare: a budget of 1 buys no step of standard"):
        compare_command.main([*command, "1"])


def test_a_file_of_another_comparison_is_not_continued(base, tmp_path, capsys):
    out = str(tmp_path / "mine.json")
    words = "--plans gqa --match steps --seeds 0 --out".split()
    command = ask_for(base, *words, out, "--budget")
    compare_command.main([*command, "2"])
    told = "holds runs that are steps-matched at 2, and these are steps-matched at 3: name another"
    with pytest.raises(SystemExit, match=told):
        compare_command.main([*command, "3"])


def test_a_comparison_is_printed_on_a_console_that_lacks_letters(base, tmp_path, monkeypatch):
    """And a file whose name the locale cannot read is a sentence, on whatever console."""
    made = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(made, encoding="ascii", errors="strict"))
    monkeypatch.setattr(comparison, "draw", lambda *_: None)
    words = f"--plans gqa --match steps --budget 1 --seeds 0 1 --out {tmp_path}/mine.json"
    compare_command.main(ask_for(base, *words.split()))
    assert rb" \u2026 " in made.getvalue()
    there = tmp_path / "te\udcc3\udca9xt.txt"  # as an ASCII locale has the letters of é
    there.write_text(TEXT)
    with pytest.raises(SystemExit, match=r"te.udcc3.+: set PYTHONUTF8=1 before the command"):
        other = words.replace("mine", "other").split()
        compare_command.main(ask_for(replace(base, corpus=str(there)), *other))


def test_evidence_is_a_json_file(base):
    command = ask_for(base, "--plans", "gqa", "--match", "steps", "--budget", "2")
    with pytest.raises(SystemExit, match="wanted a file that ends in .json, got mine.txt"):
        compare_command.main([*command, "--out", "mine.txt"])


def test_a_place_that_cannot_be_written_is_said_at_once_not_waited_for(base):
    command = ask_for(base, "--plans", "gqa", "--match", "steps", "--budget", "2")
    with pytest.raises(SystemExit, match="compare: cannot write /proc/x"):
        compare_command.main([*command, "--out", "/proc/x.json"])


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
    assert record(grid, path, "test") == (2, [])
    assert [(r["plan"], r["seed"]) for r in records.read(path)["rows"]] == [
        ("standard", 0),
        ("bov", 0),
    ], "a whole grid with one seed"
    trained.clear()
    assert record(grid, path, "test") == (0, []) and trained == [("standard", 1), ("bov", 1)]
    assert missing_runs(grid, path) == []
    table = intervals.paired(records.read(path)["rows"], "loss")
    assert [r["n"] for r in table] == [2, 2] and table[1]["low"] < table[1]["difference"] < table[
        1
    ]["high"]


def test_a_run_that_diverges_does_not_block_those_behind_it(base, tmp_path, capsys):
    grid, path = Grid("test", [dict(lr=1e30), dict(lr=1e-3)], (0,), base), tmp_path / "e.json"
    for _ in range(2):
        assert record(grid, path, "test") == (0, [replace(base, lr=1e30)])
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
            time.sleep(0.005 if self.run.plan == "standard" else 0.05)

    monkeypatch.setattr(budgets, "Trainer", Paced)
    runs = [MATCH["time"](replace(base, plan=plan), 1.0).steps for plan in ("standard", "cross")]
    assert 200 >= runs[0] > 2 * runs[1] > 0


@pytest.mark.parametrize("compiled", [False, True])
def test_time_is_measured_of_steps_that_run_as_in_training(base, monkeypatch, compiled):
    """On a GPU as one graph a step, of which the first calls are none and the next is recorded."""
    made = []

    class Counted:
        def __init__(self, run, quiet):
            self.run, self.team, self.steps = run, SimpleNamespace(device="cpu"), []
            made.append(self)

        def step(self, step):
            self.steps.append(step)

    def clock(work, repeats, warm, where):
        assert warm > recorded.WARM + 1
        for _ in range(warm + repeats):
            work()
        return [0.1] * repeats

    monkeypatch.setattr(budgets, "Trainer", Counted)
    monkeypatch.setattr(budgets, "clock", clock)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    run = replace(base, compile=compiled)
    assert MATCH["time"](run, 1.0) == replace(run, steps=10), "what is asked stays as it is"
    (trial,) = made
    assert trial.run.graph == in_folder(run, "anywhere").graph == (not compiled)
    assert trial.steps == [*range(trial.run.steps)]


def test_a_run_whose_time_is_up_before_it_begins_is_left_for_later(base, tmp_path, monkeypatch):
    """Between the question whether there is time and its answer a moment passes."""
    grid, now = Grid("test", [dict()], (0,), base), iter([1.0, 3.0])
    asked = []
    monkeypatch.setattr(runs_module, "cached", lambda run, minutes, *_, **__: asked.append(minutes))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    assert record(grid, tmp_path / "e.json", "test", until=2.0) == (1, []) and asked == [0]


def test_equal_time_is_measured_once_and_goes_on_with_what_was_measured(
    base, tmp_path, capsys, monkeypatch
):
    words = f"--plans bov --match time --budget .2 --out {tmp_path}/mine.json --seeds".split()
    command = ask_for(base, *words)
    compare_command.main([*command, "0"])
    rows = records.read(tmp_path / "mine.json")["rows"]
    monkeypatch.setitem(MATCH, "time", None)  # measuring again would fail
    compare_command.main([*command, "0", "1"])
    more = records.read(tmp_path / "mine.json")["rows"]
    assert more[:2] == rows
    assert [(row["plan"], row["seed"]) for row in more[2:]] == [("standard", 1), ("bov", 1)]
    assert {r["plan"]: r["steps"] for r in rows} == {r["plan"]: r["steps"] for r in more[2:]}


def test_a_plan_without_its_baseline_is_shown_alone(capsys):
    rows = [dict(plan="bov", size="smoke", seed=0, loss=3.0)]
    comparison.print_table(comparison.leads(rows, "standard"), "standard")
    assert "no standard to pair it with yet" in capsys.readouterr().out


def test_a_plan_that_diverges_is_named_and_not_to_go(base, tmp_path, capsys, monkeypatch):
    def diverges(run, *more, **how):
        if run.plan == "bov":
            raise Diverged("the loss became nan at step 1; nothing was saved")
        return cached(run, *more, **how)

    monkeypatch.setattr(runs_module, "cached", diverges)
    monkeypatch.setattr(comparison, "draw", lambda *_: None)
    words = f"--plans bov --match steps --budget 1 --seeds 0 1 --out {tmp_path}/mine.json"
    compare_command.main(ask_for(base, *words.split()))
    *_, standard, bov, last = capsys.readouterr().out.splitlines()
    assert standard.split()[:2] == ["standard", "2"] and bov.split() == ["bov", "0", "diverged"]
    assert last.endswith("; diverged: bov (seeds 0, 1)") and "to go" not in last


def test_what_a_file_lacks_is_said_and_nothing_of_a_whole_one(base):
    lost = [replace(base, plan=plan, seed=seed) for plan, seed in (("a", 0), ("b", 0), ("a", 2))]
    told = "diverged: a (seeds 0, 2), b (seeds 0)"
    assert lacking(0, lost) == told
    assert lacking(2, lost) == f"{told}; 2 runs to go: the same command goes on"
    assert lacking(1, []) == "1 run to go: the same command goes on" and lacking(0, []) == ""


def test_a_comparison_whose_runs_all_diverge_says_so(base, tmp_path, capsys, monkeypatch):
    def diverges(run, *more, **how):
        raise Diverged("the loss became nan at step 1; nothing was saved")

    monkeypatch.setattr(runs_module, "cached", diverges)
    words = f"--plans bov --match steps --budget 1 --seeds 0 --out {tmp_path}/mine.json"
    compare_command.main(ask_for(base, *words.split()))
    assert "diverged: standard (seeds 0), bov (seeds 0)" in capsys.readouterr().out


def test_ahead_is_above_zero_in_what_a_comparison_prints_returns_and_draws(
    tmp_path, capsys, monkeypatch
):
    """A plan of a lower loss than its baseline, by .1, .12 and .14."""
    losses = {("standard", seed): 3.0 for seed in range(3)}
    losses |= {("bov", seed): 2.9 - 0.02 * seed for seed in range(3)}
    given = dict(size="smoke", steps=2, tokens=9, flops=9, every=1)
    rows = [
        given | dict(plan=plan, seed=seed, loss=loss, train=[loss + 1, loss])
        for (plan, seed), loss in losses.items()
    ]

    comparison.print_table(comparison.leads(rows, "standard"), "standard")
    head, standard, bov = capsys.readouterr().out.splitlines()
    assert "lead over standard" in head and "+0.0000" in standard
    assert "+0.1200   +0.0703 … +0.1697" in bov
    lead = comparison.leads(rows, "standard")[1]
    assert lead["clear"] and 0 < lead["low"] < lead["difference"] < lead["high"]

    drawn = {}
    monkeypatch.setattr(comparison, "line_plot", lambda series, title, *_: drawn.update(series))
    monkeypatch.setattr(comparison, "write_picture", lambda *_: None)
    comparison.draw(rows, "standard", tmp_path / "drawn")
    assert drawn["bov"][1] == pytest.approx([0.1])


def test_the_command_compares_draws_and_goes_on(base, tmp_path, capsys, monkeypatch):
    words = f"--plans bov --match flops --budget 2e9 --seeds 0 --out {tmp_path}/mine.json".split()
    command = ask_for(base, *words)
    compare_command.main(command)
    said = capsys.readouterr().out
    assert "bov" in said and "one seed: no interval" in said
    drawn = {path.name for path in (tmp_path / "mine").glob("*.svg")}
    assert drawn >= {"loss-steps.svg", "loss-tokens.svg", "loss-flops.svg"}
    monkeypatch.setattr(runs_module, "cached", None)  # nothing is trained twice
    compare_command.main(command)
    assert "to go" not in capsys.readouterr().out


# ---- what a record says of its making, and whether it comes again --------------------------------


def test_rows_of_before_have_no_commit():
    assert records.commits([dict(plan="bov"), dict(plan="gqa")]) == {None: 2}


def test_a_commit_knows_when_the_code_was_changed_since(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHECKOUT", tmp_path)
    code = tmp_path / "minimal" / "code.py"
    code.parent.mkdir()
    code.write_text("one\n")
    (tmp_path / "pyproject.toml").write_text("")
    assert ledger.commit_here() is None, "no repository"
    person = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init"], ["add", "."], [*person, "commit", "-m", "one"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    clean = ledger.commit_here()
    (tmp_path / "evidence.json").write_text("{}\n")  # what is recorded changes no number
    assert len(clean) >= 7 and ledger.commit_here() == clean
    code.write_text("two\n")
    assert ledger.commit_here() == clean + "+"
    (tmp_path / "pyproject.toml").unlink()
    assert ledger.commit_here() is None, "installed inside a repository of somebody else"


def test_a_run_taken_up_by_other_code_names_both(base, monkeypatch):
    run, step = replace(base, save=2), Trainer.step

    def killed(trainer, at):
        if at == 3:
            raise KeyboardInterrupt
        return step(trainer, at)

    monkeypatch.setattr(Trainer, "step", killed)
    state = ledger.numerical_state()
    for commit in ("lost", "one"):  # the first is killed before its first checkpoint
        monkeypatch.setattr(ledger, "numerical_state", lambda c=commit: state | dict(commit=c))
        with pytest.raises(KeyboardInterrupt):
            cached(replace(run, save=2 if commit == "one" else 100), quiet=True)
    monkeypatch.setattr(Trainer, "step", step)
    monkeypatch.setattr(ledger, "numerical_state", lambda: state | dict(commit="two"))
    result = cached(run, quiet=True)
    assert result["commit"] == "one, then two" and result["torch"] == state["torch"]


def test_a_watched_run_that_is_killed_goes_on(base, monkeypatch, tmp_path):
    run, step, steps = replace(base, save=2), Trainer.step, []

    def counted(trainer, at):
        steps.append(at)
        if steps == [0, 1, 2, 3]:
            raise KeyboardInterrupt
        return step(trainer, at)

    monkeypatch.setattr(Trainer, "step", counted)
    with pytest.raises(KeyboardInterrupt):
        watched(run, first_weight, every=2)
    again = watched(run, first_weight, every=2)
    assert steps == [0, 1, 2, 3, 2, 3, 4, 5]
    monkeypatch.setattr(Trainer, "step", step)
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "elsewhere"))
    whole = watched(run, first_weight, every=2)
    assert again.pop("folder") != whole.pop("folder")
    assert again == whole and again["steps"] == [0, 2, 4, 6]
    assert len(set(again["notes"])) == 4, "noted before the first step, and at three others"


def first_weight(model):
    return next(model.parameters()).flatten()[0].item()


def test_a_run_that_another_process_trains_is_left_to_it(base):
    done = pathlib.Path(cached(base, quiet=True)["folder"], "result.json")
    done.unlink()
    holder = subprocess.Popen([sys.executable, "-c", HOLD, done], stdout=subprocess.PIPE)
    try:
        holder.stdout.readline()
        assert cached(base, quiet=True, wait=False) is None
    finally:
        holder.kill()
        holder.wait()
    assert cached(base, quiet=True, wait=False)["commit"] == ledger.numerical_state()["commit"]


HOLD = """
import sys, time
from minimal.data.files import locked
with locked(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_recipe_of_one_name_and_other_numbers_is_another_run(base, monkeypatch):
    before = run_key(base, "f")
    monkeypatch.setitem(RECIPES, "bov", RECIPES["bov"].change("matrix", lr=0.03))
    assert run_key(base, "f") != before


def test_what_is_recorded_is_printed_with_its_interval_and_changed_models_are_left_out(
    monkeypatch, capsys
):
    def row(plan, seed, loss, **asked):
        return dict(plan=plan, size="tiny", seed=seed, loss=loss, asked=asked)

    rows = [row("standard", seed, 3.0 + seed) for seed in range(3)]
    rows += [row("bov", seed, 2.9 + seed + 0.01 * seed) for seed in range(3)]
    rows += [row("bov", seed, 9.0, changes=dict(hidden=96)) for seed in range(3)]
    monkeypatch.setattr(records, "rows", lambda grid: rows)
    found = course_comparison.say_recorded("grid", "standard", "bov", "mla")
    assert round(found["bov"]["difference"], 6) == 0.09 and found["bov"]["n"] == 3
    said = capsys.readouterr().out
    assert said.startswith(
        "grid                   bov          ahead of standard: +0.090 nats (+0.065"
    )
    assert said.count("\n") == 1 and "n = 3" in said, "mla has no rows, and no line"

    monkeypatch.setattr(records, "rows", lambda grid: rows[:1] + rows[3:4])
    course_comparison.say_recorded("grid", "standard", "bov")
    assert "(one seed, no interval, n = 1)" in capsys.readouterr().out
    monkeypatch.setattr(records, "rows", lambda grid: [])
    assert course_comparison.say_recorded("grid", "standard", "bov") == {}
    assert capsys.readouterr().out == "grid: not recorded yet\n"
