"""A session on a rented GPU, tried out on a CPU: every stage, resumed, and its cost told first."""

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter

import pytest
import torch

from course import records
from evidence.bench import generation, gpu_table, rented, rivals, step_kernels
from minimal.data.files import CHECKOUT
from minimal.kernels import dense
from minimal.model import still
from minimal.model.count import count
from minimal.variants import skeleton


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "runs"))
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat, and the dog lay by the door. " * 3000)
    return tmp_path, str(text)


def session(place, **more):
    out = place[0] / "out"
    out.mkdir(exist_ok=True)
    return rented.Session(dry=True, corpus=place[1], out=out, **more)


def stages(monkeypatch, *names):
    """Only these stages; their shares of the time stay."""
    monkeypatch.setattr(rented, "STAGES", {name: rented.STAGES[name] for name in names})


@pytest.mark.slow
def test_every_stage_runs_on_a_cpu_by_the_command_and_a_second_call_does_nothing(place):
    out = place[0] / "out"
    command = [sys.executable, "-m", "evidence.bench.rented", "--dry", "--out", str(out)]
    command += ["--corpus", place[1]]
    # that of generation compiles, and has a test of its own
    names = [name for name in rented.STAGES if name != "generation"]
    command += ["--only", *names]
    how = dict(env=os.environ | dict(TRITON_INTERPRET="1", OMP_NUM_THREADS="1"), text=True)
    first = subprocess.run(command, capture_output=True, timeout=900, cwd=CHECKOUT, **how)
    assert first.returncode == 0 and first.stdout.endswith("all stages are on file\n"), first.stderr
    rows = json.loads((out / f"{rented.FILE}.json").read_text())["rows"]
    parts = [row["part"] for row in rows]
    wanted = dict(kernels=1, token=2, step=3)
    wanted |= dict(attention=len(rented.ATTENTION), training=3, budget=1, run=3)
    assert Counter(parts) == wanted and rows[0]["equal"] == [True]
    assert [*dict.fromkeys(parts)] == [*wanted], "in the order of what decides"
    assert [row["plan"] for row in rows[-3:]] == list(rented.PLANS)
    assert all(0 < row["loss"] < 7 and row["flops"] > 0 for row in rows[-3:])
    assert all({"commit", "torch", "machine"} <= row.keys() for row in rows)
    # every plan got the same budget, to half a step
    steps = [row["flops"] / row["steps"] for row in rows[-3:]]
    budget = next(row["flops"] for row in rows if row["part"] == "budget")
    assert all(abs(row["flops"] - budget) <= step / 2 for row, step in zip(rows[-3:], steps))
    # again
    again = subprocess.run(command, capture_output=True, timeout=60, cwd=CHECKOUT, **how)
    assert again.stdout.count(": on file") == len(names)
    assert json.loads((out / f"{rented.FILE}.json").read_text())["rows"] == rows


def test_a_session_out_of_time_goes_on_with_the_same_budget(place, monkeypatch, capsys):
    stages(monkeypatch, "runs")
    short = session(place, minutes=1e-9)
    assert not rented.carry_out(short)
    assert "the same command goes on" in capsys.readouterr().out
    (decided,) = short.rows("budget")
    assert not short.rows("run"), "nothing is claimed of a run that is not whole"
    # the next day, with other minutes
    later = session(place, minutes=5)
    assert later.budget() == decided["flops"]
    assert rented.carry_out(later) and len(later.rows("run")) == 3
    assert len(later.rows("budget")) == 1


def test_more_seeds_go_on_where_the_first_seed_ended(place, monkeypatch):
    stages(monkeypatch, "runs")
    assert rented.carry_out(session(place, minutes=5))
    first = session(place).rows("run")
    more = session(place, minutes=5, seeds=2)
    assert not rented.session_whole(more, "runs") and rented.carry_out(more)
    rows = more.rows("run")
    assert rows[:3] == first and [row["seed"] for row in rows] == [0] * 3 + [1] * 3
    assert [row["plan"] for row in rows] == 2 * list(rented.PLANS)
    assert all(a["loss"] != b["loss"] for a, b in zip(rows[:3], rows[3:]))
    assert len(more.rows("budget")) == 1, "every seed has the budget of the first"


def test_a_generation_that_was_measured_is_not_measured_again(place, monkeypatch):
    stages(monkeypatch, "generation")
    one = session(place)
    # a compiler would take half a minute
    monkeypatch.setattr(still, "Made", lambda: lambda work, *tensors: work())
    monkeypatch.setattr(rivals, "compiled", lambda work: work)
    assert rented.carry_out(one)
    rows = one.rows("generation")
    written = [row["plan"] for row in rows]
    assert written[:6] == [*generation.PLANS, "standard, compiled", "plain loop"]
    assert written.count("plain loop") == 2 and "plain loop, compiled" in written
    assert all(row["times_loop"] > 0 and row["share"] > 0 for row in rows)
    assert not list(rented.measure_generation(one))


def test_a_generation_is_whole_when_every_shape_is_on_file(place, monkeypatch):
    """Rivals have rows, too: so many rows of four shapes say nothing of the fifth."""
    stages(monkeypatch, "generation")
    one = session(place)
    first, last = one.written()
    for plan in (
        *generation.PLANS,
        "plain loop",
        "eager loop",
        "standard, compiled",
        "transformers",
    ):
        one.keep(dict(part="generation", plan=plan, texts=first[0], length=first[1]))
    assert not rented.session_whole(one, "generation")
    one.keep(dict(part="generation", plan="standard", texts=last[0], length=last[1]))
    assert rented.session_whole(one, "generation")


@pytest.mark.parametrize("name", ("token", "step", "generation", "attention"))
def test_what_has_no_time_left_is_not_begun(place, monkeypatch, capsys, name):
    """A command is cut off when its minutes are over, and with it what it was measuring."""
    stages(monkeypatch, name)
    monkeypatch.setattr(rented, "kernels_run", lambda where: True)
    late = session(place, minutes=0.2)
    assert not rented.carry_out(late) and not late.rows(name)
    assert "are left; the same command goes on" in capsys.readouterr().out


def test_a_part_of_attention_that_is_on_file_is_not_measured_again(place, monkeypatch):
    from evidence.bench import gpu

    stages(monkeypatch, "attention")
    one, asked = session(place), []
    monkeypatch.setattr(rented, "kernels_run", lambda where: True)
    monkeypatch.setattr(gpu, "everything", lambda out, parts, **_: asked.extend(parts) or [1, 2])
    one.keep(dict(part="attention", what="forward", rows=2, file="gather_gpu.json"))
    assert rented.carry_out(one) and asked == [*rented.ATTENTION[1:]]


def test_a_step_by_kernel_goes_on_with_the_way_that_is_missing(place, monkeypatch):
    stages(monkeypatch, "step")
    one = session(place)
    one.keep(dict(part="step", way=step_kernels.OURS))
    assert rented.carry_out(one)
    assert [row["way"] for row in one.rows("step")] == [*step_kernels.WAYS]


def test_without_room_for_the_loop_the_plans_are_timed_all_the_same(place, monkeypatch, capsys):
    one, asked = session(place), []

    def short_of_memory(shape, rivals=False, **how):
        asked.append(rivals)
        if rivals:
            raise torch.OutOfMemoryError("no room")
        return [dict(plan="standard", texts=1, length=64)]

    monkeypatch.setattr(rented, "generation", short_of_memory)
    rows = list(rented.measure_generation(one))
    assert asked == 2 * [True, False] and [row["part"] for row in rows] == 2 * ["generation"]
    assert "no room for the plain loop" in capsys.readouterr().out


def test_only_the_stages_that_are_asked_for_are_carried_out_and_counted(place):
    one = session(place, only=("kernels",))
    assert rented.carry_out(one) and [*one.stages()] == ["kernels"]
    assert one.rows("kernels") and not one.rows("training")
    told = rented.plan_in_words(rented.Session(minutes=30, corpus=place[1], out=place[0]))
    few = rented.Session(minutes=30, corpus=place[1], out=place[0], only=("generation", "runs"))
    assert "attention" in told and "attention" not in rented.plan_in_words(few)
    assert few.for_runs() > 20, "the stages that are left out leave their minutes"
    assert "each run" in told and "each run" not in rented.plan_in_words(one)


def test_what_is_wrong_with_a_kernel_is_on_file(place, monkeypatch):
    stages(monkeypatch, "kernels")
    monkeypatch.setattr(rented, "gather_attention", lambda q, *rest: q * 0 + 7)
    rented.carry_out(session(place))
    (row,) = session(place).rows("kernels")
    assert row["equal"] == [False]


@pytest.mark.parametrize("equal, longest", ((True, 1024), (False, math.inf)))
def test_windows_that_are_wrong_on_this_gpu_stay_masks(place, monkeypatch, capsys, equal, longest):
    """A session that goes on the next day, too, reads it from its file."""
    stages(monkeypatch, "runs")
    monkeypatch.setattr(dense, "LONG", 1024)  # and puts back what there was
    one = session(place, minutes=1e-9)
    one.keep(dict(part="kernels", kernels=["graph", "windows"], equal=[True, equal]))
    rented.carry_out(one)
    assert dense.LONG == longest
    assert ("windows are not equal" in capsys.readouterr().out) is not equal


def test_the_plan_is_told_before_anything_starts(place):
    one = rented.Session(minutes=30, corpus=place[1], out=place[0])
    told = rented.plan_in_words(one)
    minutes = [float(found) for found in re.findall(r"([\d.]+) min ", told)]
    assert abs(sum(minutes) - 30) <= 1 and "(assumed)" in told and "FLOPs" in told
    assert not one.path.exists()
    # the budget follows the minutes that the other stages leave, and what was measured
    rate = rented.PEAK * rented.ASSUMED
    fixed = sum(minutes for _, minutes, _ in rented.STAGES.values())
    each = 60 * ((30 - fixed) / 3 - rented.COMPILING)
    assert one.budget() == pytest.approx(each * rate, rel=0.05)
    twice = rented.Session(minutes=60, out=place[0]).budget()
    assert twice - one.budget() == pytest.approx(60 * 30 / 3 * rate, rel=0.05)
    # what is on file leaves its minutes to the runs; who has hardly any still trains
    one.keep(dict(part="kernels", kernels=[], equal=[]))
    assert one.budget() == pytest.approx((each + 60 * 2 / 3) * rate, rel=0.05)
    assert rented.Session(minutes=4, out=place[0]).budget() == pytest.approx(30 * rate, rel=0.05)


def test_a_budget_counts_on_the_slowest_plan_that_was_measured(place):
    one = session(place)
    for plan, tflops in zip(rented.PLANS, (300, 250, 400)):
        one.keep(dict(part="training", plan=plan, tflops=tflops))
    real = rented.Session(minutes=30, corpus=place[1], out=one.out)
    assert real.rate() == 250e12 and "(measured)" in rented.plan_in_words(real)


def test_without_a_gpu_the_command_says_what_is_wanted(capsys):
    with pytest.raises(SystemExit):
        rented.main([])
    assert "wanted a GPU that torch can use, got none" in capsys.readouterr().err


def test_the_cost_is_that_of_the_flops_that_the_paper_prints():
    assert gpu_table.each_of([3e3, 3e3]) == "2 x 3e03"
    assert gpu_table.each_of([3e3, 2e3]) == "3e03, 2e03"
    rows = records.published("bov", "Table 8")["rows"]
    target = next(row for row in rows if row["quantity"] == "target FLOPs")
    assert [target["d12"], target["d24"]] == [runs[0] for runs in gpu_table.PAPERS.values()][:2]
    total = records.quoted("bov", "FLOPs, 780M baseline on 100B tokens")["value"]
    both = list(gpu_table.PAPERS.values())[2]
    assert total == both[0]
    counted = [count(skeleton(plan, "d24"))["flops_per_token"] for plan in ("standard", "bov")]
    assert both[1] / both[0] == pytest.approx(counted[1] / counted[0], rel=2e-3)


def test_the_cost_counts_on_what_d12_reached_and_else_on_what_we_assume(tmp_path, monkeypatch):
    steps = [row for row in records.read("gpu_session")["rows"] if row["part"] == "training"]
    slowest = min(row["tokens_per_second"] * flops_of(row) for row in steps) / gpu_table.PEAK
    assert gpu_table.reached() == pytest.approx(slowest, rel=1e-3)
    assert gpu_table.hours(gpu_table.PEAK * 3600) == pytest.approx(1 / slowest, rel=1e-3)
    assert gpu_table.hours(gpu_table.PEAK * 3600, share=0.5) == 2
    assert "measured for d12; d24 was not" in gpu_table.cost()
    # another machine's share is not an H100's, and without a file it is assumed
    other = [row | dict(machine="another GPU") for row in steps]
    monkeypatch.setattr(records, "rows", lambda name: other)
    assert gpu_table.reached() is None and "assumed; not measured" in gpu_table.cost()
    monkeypatch.undo()
    monkeypatch.setattr(records, "MEASURED", tmp_path)
    assert gpu_table.hours(gpu_table.PEAK * 3600) == pytest.approx(1 / gpu_table.ASSUMED)


def flops_of(row):
    """FLOPs a token, counted from the structure."""
    return count(skeleton(row["plan"], row["size"]))["flops_per_token"]
