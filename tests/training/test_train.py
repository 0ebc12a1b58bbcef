"""Does training do what it says, from the command line, after kills and in several processes?"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from minimal import train
from minimal.generate import generate
from minimal.model.count import attention_flops
from minimal.model.layers import Linear
from minimal.model.plan import Plan, place
from minimal.model.values import Own
from minimal.train import Trainer, load
from minimal.training import checkpoint
from minimal.training.loop import LATER, file_stamp
from minimal.training.recipes import RECIPES
from minimal.training.run import Diverged, Run, Stop, TimeIsUp
from tests import warm
from tests.training.toys import CLI, TINY, made, trained
from tests.training.worker import Worker


def command(*args):
    return [sys.executable, "-m", "minimal.train", *map(str, args), *CLI]


@pytest.mark.slow
def test_a_model_learns_and_the_same_run_gives_the_same_bits(corpus):
    one, two = trained(corpus, steps=40), trained(corpus, steps=40)
    assert one["losses"] == two["losses"] and one["valid"][-1]["loss"] == two["valid"][-1]["loss"]
    assert one["losses"][-1] < 0.5 * one["losses"][0]
    assert one["valid"][-1]["loss"] < one["losses"][0] and one["valid"][-1]["bpb"] > 0
    assert trained(corpus, steps=40, seed=1)["losses"] != one["losses"]


def test_what_the_machine_can_do_is_measured_once_for_all_runs_of_a_process(corpus, monkeypatch):
    measured = []
    monkeypatch.setattr(train, "matmul_rate", lambda where: measured.append(where) or 1e9)
    train.floor.cache_clear()
    runs = [made(corpus, steps=1, seed=seed) for seed in (0, 1)]
    for trainer in runs:
        trainer.fit()
    train.floor.cache_clear()
    assert len(measured) == 1 and {trainer.rate for trainer in runs} == {1e9}


def test_the_floor_of_several_processes_is_what_their_machines_can_do_together(corpus):
    trainer, logged = made(corpus, steps=1), {}
    trainer.fit()
    trainer.rate, trainer.log = 1e6, lambda **what: logged.update(what)
    shares = []
    for trainer.team.world in (1, 4):
        trainer.report(seconds=1.0, steps=2)
        shares.append(logged["floor_share"])
    assert shares[0] > 1 and shares[1] == pytest.approx(shares[0] / 4, abs=1e-4)


def test_every_coefficient_is_recorded_at_every_step(corpus):
    result = trained(corpus, plan="row13", steps=12)
    c = result["coefficients"]
    assert c["names"] == ["blocks.1.attention.value.a", "blocks.1.attention.value.b"]
    assert len(c["steps"]) == 12 and c["steps"][0] != c["steps"][-1]


def test_a_resumed_run_is_the_run(corpus, tmp_path):
    """Stopped by time, then taken up again, with dropout: losses, weights, log are bit-equal."""
    more = dict(steps=30, save=7, plan="bov", changes=TINY["changes"] | dict(dropout=0.1))
    whole = trained(corpus, tmp_path / "whole", **more)
    with pytest.raises(Stop, match="stopped at step .* goes on from there"):
        trained(corpus, tmp_path / "parts", minutes=1e-9, **more)
    parts = trained(corpus, tmp_path / "parts", **more)
    assert parts["losses"] == whole["losses"]
    one, two = (checkpoint.load(tmp_path / name)[0] for name in ("whole", "parts"))
    assert one.keys() == two.keys() and all(torch.equal(one[k], two[k]) for k in one)
    logged = {
        name: [json.loads(line)["step"] for line in (tmp_path / name / "log.jsonl").open()]
        for name in ("whole", "parts")
    }
    steps = logged["parts"]
    assert steps == sorted(set(steps)) and set(logged["whole"]) <= set(steps)


def test_accumulation_is_the_same_step(corpus):
    one, two = trained(corpus, steps=4), trained(corpus, steps=4, accumulate=4)
    assert torch.allclose(torch.tensor(one["losses"]), torch.tensor(two["losses"]), atol=1e-4)


@pytest.mark.parametrize(
    "scale, longest, block, quarter", [("laptop", 32, 2, 14), ("paper", 3456, 128, 1536)]
)
def test_a_schedule_of_windows_opens_them_in_whole_blocks(corpus, scale, longest, block, quarter):
    more = dict(
        recipe="modded", scale=scale, steps=40, changes=dict(layers=3, width=32, windows="LSL")
    )
    trainer = Trainer(Run(corpus=corpus, **(TINY | more)), quiet=True)
    assert trainer.windows(0) == [block] * 3 and trainer.windows(40)[::2] == [longest] * 2
    assert trainer.windows(10)[::2] == [quarter] * 2
    assert trainer.windows(40)[1] == longest // (2 * block) * block
    assert all(w % block == 0 for step in range(41) for w in trainer.windows(step))
    open_ = Trainer(Run(corpus=corpus, **(TINY | more | dict(recipe="modded-open"))), quiet=True)
    assert open_.windows(0) == open_.windows(39) == trainer.windows(40)
    assert Trainer(Run(corpus=corpus, **TINY), quiet=True).windows(10) is None


def test_a_window_is_in_force_when_a_schedule_asks_for_it(corpus):
    """At step 0 nobody sees more than a block, in training and in evaluation."""
    more = dict(steps=4, plan="standard", evaluate=1)
    open_, shut = (trained(corpus, recipe=recipe, **more) for recipe in ("modded-open", "modded"))
    assert (
        open_["losses"][1:] != shut["losses"][1:]
        and open_["valid"][0]["loss"] != shut["valid"][0]["loss"]
    )


def test_an_evaluation_sees_as_far_as_the_step_that_it_follows(corpus):
    """Of a model with the windows of this moment, not with those of step 0."""
    changes = dict(layers=3, width=32, windows="LSL")
    trainer = made(corpus, recipe="modded", steps=40, changes=changes)
    seen, scored = [], trainer.scored

    def noted(windows, ids, targets):
        seen.append(windows)
        return scored(windows, ids, targets)

    trainer.scored = noted
    for trainer.done in (0, 10, 40):
        seen.clear()
        trainer.evaluate()
        assert seen and all(windows == trainer.windows(trainer.done) for windows in seen)
    assert trainer.windows(40) != trainer.windows(10) != trainer.windows(0)


def held_out_loss(trainer, model):
    """Of a model that is told of no windows."""
    x, y = next(trainer.data.valid(trainer.run.batch, trainer.run.rows))
    with torch.no_grad():
        nats = model.eval().loss(x, y, reduction="none")  # (B T,)
    return nats.double().sum().item() / y.numel()


@pytest.mark.parametrize("recipe", ["modded", "modded-open", "bov"])
def test_a_model_sees_after_training_and_after_loading_as_it_was_trained(corpus, tmp_path, recipe):
    """Stopped on the way, too; and from a folder of before, which does not say its windows."""
    changes = dict(layers=3, width=32, windows="LSL")
    how = dict(recipe=recipe, steps=8, evaluate=1, plan="bov", changes=changes)
    whole, stopped = made(corpus, tmp_path / "whole", **how), made(corpus, tmp_path / "cut", **how)
    whole.fit()
    with pytest.raises(TimeIsUp):
        stopped.fit(minutes=0)
    for trainer, done in ((whole, 8), (stopped, 1)):
        told, loaded = trainer.valid[-1], load(trainer.out)[0]
        assert told["step"] == done
        assert held_out_loss(trainer, trainer.model) == told["loss"]
        assert held_out_loss(trainer, loaded) == told["loss"]
        tensors, state = checkpoint.load(trainer.out)
        del state["windows"]
        checkpoint.save(trainer.out / "last.safetensors", tensors, state)
        assert load(trainer.out)[0].windows == loaded.windows == trainer.model.windows
    with pytest.raises(TimeIsUp):
        stopped.fit(minutes=0)
    assert made(corpus, tmp_path / "cut", **how).fit()["losses"] == whole.result()["losses"]


def test_a_model_with_the_windows_of_its_recipe_writes_alike_with_rings_and_without(
    corpus, tmp_path
):
    """Narrow ones, of an early step: the text is far longer than what a layer sees."""
    how = dict(recipe="modded", plan="bov", changes=dict(layers=3, width=32, windows="LSL"))
    with pytest.raises(TimeIsUp):
        trained(corpus, tmp_path, minutes=0, **how)
    model, _ = load(tmp_path)
    assert model.windows == [6, 2, 6]
    ids = torch.arange(20)[None]  # (1, T)
    whole = ids
    for _ in range(12):
        whole = torch.cat([whole, model(whole)[:, -1:].argmax(-1)], dim=1)
    for rings in (True, False):
        assert torch.equal(generate(model, ids, 12, top_k=1, rings=rings), whole)


def test_a_flop_budget_sets_the_steps(corpus):
    trainer = Trainer(Run(corpus=corpus, flops=3e9, **TINY), quiet=True)
    assert trainer.steps == round(3e9 / (trainer.counted["flops_per_token"] * 8 * 32))
    with pytest.raises(ValueError, match="steps would never end: wanted at most"):
        Trainer(Run(corpus=corpus, flops=1e29, **TINY), quiet=True)


def test_a_folder_of_a_flop_budget_goes_on_and_is_loaded(corpus, tmp_path):
    """It says the steps that were bought beside the budget, and a Run wants one of them."""
    how = dict(steps=None, flops=5e8)
    with pytest.raises(TimeIsUp):
        trained(corpus, tmp_path, minutes=0, **how)
    whole = trained(corpus, tmp_path, **how)
    assert len(whole["losses"]) == whole["steps"] > 1
    assert load(tmp_path)[0].config.vocab == 300


def test_a_flop_budget_counts_every_matrix_of_a_plan(corpus):
    """Latent attention, whose W_UV was once left out of the count."""
    trainer = Trainer(Run(corpus=corpus, flops=3e9, **TINY | dict(plan="mla")), quiet=True)
    model = trainer.model
    weights = sum(part.weight.numel() for part in model.modules() if isinstance(part, Linear))
    assert trainer.steps == round(3e9 / ((6 * weights + attention_flops(model)) * 8 * 32))


def test_a_checkpoint_gives_model_and_tokenizer_back(corpus, tmp_path):
    result = trained(corpus, tmp_path, plan="vplus")
    model, tok = load(tmp_path)
    assert tok.decode(tok.encode("the cat sees rain.")) == "the cat sees rain."
    trainer = Trainer(Run(**(result["run"] | dict(out=None))), quiet=True)
    trainer.model, trainer.done = model, 20
    assert trainer.evaluate()["loss"] == result["valid"][-1]["loss"]


TEAM = """import json, os
from pathlib import Path
import torch
from minimal.train import Run, Trainer
run = Run(plan="bov", corpus={corpus!r}, out={out!r}, **{how})
trainer = Trainer(run, quiet=True)
kept = sum(t.numel() for t in trainer.optimizer.live_state().values())
Path({out!r}, f"kept-{{trainer.team.rank}}.json").write_text(json.dumps(kept))
trainer.fit()
# as the command does: whoever leaves early takes the others' connections along
if torch.distributed.is_initialized():
    torch.distributed.destroy_process_group()
trainer.team.leave()
"""


def under_torchrun(script, processes):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    how = dict(env=os.environ | dict(OMP_NUM_THREADS="1"), capture_output=True, text=True)
    return subprocess.run([sys.executable, *torchrun, script], timeout=240, **how)


def quickly(script, processes):
    """The same team or one process, without their imports."""
    return warm.run([script], processes=processes)


def started(processes, corpus, out, run=quickly, **more):
    """Train in so many processes; the numbers of optimizer state that each of them kept."""
    out.mkdir(exist_ok=True)
    script = out / "team.py"
    script.write_text(TEAM.format(corpus=corpus, out=str(out), how=TINY | more))
    done = run(script, processes)
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(path.read_text()) for path in sorted(out.glob("kept-*.json"))]


def losses_of(out):
    return torch.tensor([row["loss"] for row in checkpoint.load(out)[1]["history"]])


@pytest.fixture(scope="module")
def alone(corpus, tmp_path_factory):
    """Five steps of one process: their folder, and the numbers of optimizer state."""
    out = tmp_path_factory.mktemp("alone") / "one"
    return out, started(1, corpus, out, steps=5)


@pytest.mark.slow
@pytest.mark.parametrize("processes, run", [(4, quickly), (2, under_torchrun)])
def test_several_processes_train_as_one_and_share_the_optimizers_state(
    corpus, alone, tmp_path, processes, run
):
    """Losses of torchrun with several processes against one process, in fp32; each keeps its part
    of the optimizer's state, and the checkpoint holds the whole."""
    (one, (whole,)), several = alone, tmp_path / "several"
    parts = started(processes, corpus, several, run, steps=5)
    assert torch.allclose(losses_of(one), losses_of(several), atol=1e-5)
    # memory
    assert len(parts) == processes and sum(parts) == whole
    assert max(parts) < 1.5 * whole / processes
    # what is saved is the same, whoever trained
    ours, theirs = (checkpoint.load(out)[0] for out in (one, several))
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        # Adam divides small gradients by small ones: rounding moves single weights, not whole ones
        apart = (tensor - theirs[name]).double().norm() / tensor.double().norm().clamp_min(1e-12)
        assert tensor.shape == theirs[name].shape and apart < 0.02, (name, apart)


@pytest.mark.slow
def test_a_run_of_two_processes_goes_on_in_one_and_in_three(corpus, tmp_path):
    """The checkpoint knows nothing of who trained it: every process takes its part."""
    more = dict(batch=6, steps=6, evaluate=100)
    started(1, corpus, tmp_path / "one", **more)
    out = tmp_path / "passed on"
    for processes, minutes in ((2, 0), (1, 0), (3, None)):
        script = tmp_path / "go_on.py"
        script.write_text(
            "from minimal.train import Run, Trainer\n"
            "from minimal.training.run import TimeIsUp\n"
            f"run = Run(plan='bov', corpus={corpus!r}, out={str(out)!r}, **{TINY | more})\n"
            "try:\n"
            f"    Trainer(run, quiet=True).fit({minutes})\n"
            "except TimeIsUp:\n"
            "    pass\n"
        )
        done = quickly(script, processes)
        assert done.returncode == 0, done.stderr[-2000:]
    assert len(losses_of(out)) == 6
    assert torch.allclose(losses_of(tmp_path / "one"), losses_of(out), atol=1e-5)


@pytest.mark.slow
def test_two_processes_stop_together_though_only_one_is_asked(corpus, tmp_path):
    """Rank 1's time is up; rank 0, which alone saves, hears of it and saves at the same step."""
    script = tmp_path / "two.py"
    script.write_text(f"""import os
from minimal.train import Run, Trainer
often = dict(steps=100000, save=100000, evaluate=100000)
run = Run(corpus={corpus!r}, out={str(tmp_path / "x")!r}, **often, **{TINY})
Trainer(run).fit(0.02 if os.environ["RANK"] == "1" else None)
""")
    ended = quickly(script, 2)
    assert ended.returncode and ended.stderr.count("TimeIsUp: stopped at step") == 2, ended.stderr[
        -2000:
    ]
    assert checkpoint.load(tmp_path / "x")[1]["done"] > 0


@pytest.mark.slow
def test_ten_kills_lose_at_most_the_steps_since_the_last_checkpoint(corpus, tmp_path):
    """kill -9 at random moments of ten lives.

    Each time the file on disk is whole and no finished checkpoint is lost; at the end the losses
    are, to the bit, those of a run that nobody disturbed.
    """
    run = dict(corpus=corpus, out=str(tmp_path / "run"), steps=250, save=5, evaluate=1000, **TINY)
    chance, reached = random.Random(0), 0
    saved = tmp_path / "run" / "last.safetensors"
    with Worker(run) as worker:
        longest = 60.0  # seconds of a life up to its first checkpoint, on this machine as it is now
        for life in range(10):
            pid, start, before = worker.start(pace=0.014), time.monotonic(), file_stamp(saved)
            if life % 2:  # at any moment up to the first checkpoint, and in its writing
                time.sleep(chance.uniform(0.2, 1) * longest)
            else:  # at any moment after it
                while file_stamp(saved) == before and time.monotonic() < start + 60:
                    time.sleep(0.005)
                longest = min(longest, time.monotonic() - start)
                time.sleep(chance.uniform(0, 0.3))
            worker.kill(pid)
            if saved.exists():
                state = checkpoint.load(tmp_path / "run")[1]
                assert state["done"] >= reached and len(state["history"]) == state["done"]
                reached = state["done"]
        assert 0 < reached < 250, (
            "the lives were too short to save anything, or so long that the run ended"
        )
        worker.finish()
    assert not list((tmp_path / "run").glob(".last*")), "what kills left behind is gone"
    alone = run | dict(out=str(tmp_path / "alone"))
    with Worker(alone) as worker:
        worker.finish()
    disturbed, undisturbed = (
        checkpoint.load(tmp_path / name)[1]["history"] for name in ("run", "alone")
    )
    assert disturbed == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["SIGTERM", "SIGINT"])
def test_a_signal_saves_and_says_so(corpus, tmp_path, kind):
    process = subprocess.Popen(
        command("--corpus", corpus, "--steps", 100000, "--out", tmp_path / "x", "--save", 100000),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | dict(OMP_NUM_THREADS="1"),
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "x" / "log.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(getattr(signal, kind))
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1 and kind in said and "goes on from there" in said
    assert said.count("\n") == 1, "one sentence and no traceback"
    assert checkpoint.load(tmp_path / "x")[1]["done"] > 0


@pytest.mark.parametrize(
    "damage,words",
    [
        (lambda p: p.write_bytes(p.read_bytes()[:-100]), "is damaged or no checkpoint"),
        (lambda p: p.write_bytes(b"not a checkpoint"), "is damaged or no checkpoint"),
    ],
)
def test_a_damaged_checkpoint_is_named(corpus, tmp_path, damage, words):
    trained(corpus, tmp_path, steps=3)
    damage(tmp_path / "last.safetensors")
    with pytest.raises(checkpoint.CheckpointError, match=words):
        trained(corpus, tmp_path, steps=3)


def test_a_foreign_checkpoint_is_named(corpus, tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, str(tmp_path / "last.safetensors"))
    with pytest.raises(checkpoint.CheckpointError, match="no checkpoint of this course"):
        trained(corpus, tmp_path)
    with pytest.raises(checkpoint.CheckpointError, match="no checkpoint at"):
        load(tmp_path / "nowhere")


def test_another_run_in_the_same_folder_is_refused(corpus, tmp_path):
    trained(corpus, tmp_path, steps=3)
    with pytest.raises(
        checkpoint.CheckpointError, match="holds another run .seed: 0 there, 1 here"
    ):
        trained(corpus, tmp_path, steps=3, seed=1)


def own_plan(gain):
    """A plan of somebody's own, by one name, with one class that is written otherwise each time."""
    return Plan(place(value=type("Mine", (Own,), dict(gain=gain))), name="mine")


def test_a_class_of_ones_own_that_was_changed_does_not_go_on_in_the_folder_of_before(
    corpus, tmp_path
):
    losses = trained(corpus, tmp_path, plan=own_plan(1.0), steps=3)["losses"]
    with pytest.raises(checkpoint.CheckpointError, match="holds another run .code: .* there"):
        trained(corpus, tmp_path, plan=own_plan(2.0), steps=3)
    assert trained(corpus, tmp_path, plan=own_plan(1.0), steps=3)["losses"] == losses


def test_a_folder_is_not_loaded_with_another_class_or_plan_whose_shapes_fit(corpus, tmp_path):
    trained(corpus, tmp_path, plan=own_plan(1.0), steps=3)
    told = f"{tmp_path}: it holds another run .*{{}}: .* there, .* here.: load it with the plan"
    with pytest.raises(checkpoint.CheckpointError, match=told.format("code")):
        load(tmp_path, plan=own_plan(2.0))
    with pytest.raises(checkpoint.CheckpointError, match=told.format("model")):
        load(tmp_path, plan="standard")
    weights = load(tmp_path, plan=own_plan(1.0))[0].state_dict()
    # as folders of before, which say neither
    tensors, state = checkpoint.load(tmp_path)
    del state["identity"]["code"], state["identity"]["model"]
    checkpoint.save(tmp_path / "last.safetensors", tensors, state)
    again = load(tmp_path, plan="standard")[0].state_dict()
    assert all(torch.equal(weights[name], again[name]) for name in weights)


@pytest.mark.parametrize("change", [dict(lr=0.03), dict(steps=100)])
def test_a_recipe_of_one_name_and_other_numbers_does_not_go_on(
    corpus, tmp_path, monkeypatch, change
):
    ours, steps = RECIPES["bov"], change.get("steps")
    theirs = replace(ours, steps=steps) if steps else ours.change("matrix", **change)
    monkeypatch.setitem(RECIPES, "mine", ours)
    trained(corpus, tmp_path, recipe="mine", steps=3)
    monkeypatch.setitem(RECIPES, "mine", theirs)
    with pytest.raises(checkpoint.CheckpointError, match="holds another run .numbers: .* there"):
        trained(corpus, tmp_path, recipe="mine", steps=3)


def test_a_folder_is_not_measured_on_another_number_of_rows(corpus, tmp_path):
    """Finished or not: its evaluations would be of two texts, or those of before be shown."""
    for folder, minutes in (("whole", None), ("cut", 0)):
        with nullcontext() if minutes is None else pytest.raises(TimeIsUp):
            trained(corpus, tmp_path / folder, minutes, steps=3)
        told = "holds another run .rows: 8 there, 4 here.: name another folder with --out"
        with pytest.raises(checkpoint.CheckpointError, match=told):
            trained(corpus, tmp_path / folder, steps=3, rows=4)
        often = trained(corpus, tmp_path / folder, steps=3, rows=8, evaluate=1)
        assert often["valid"][-1]["step"] == 3


def test_a_folder_that_names_no_code_numbers_or_rows_goes_on_and_names_them_then(corpus, tmp_path):
    """As folders do that were written before; what else a folder lacks makes it another run."""
    path, whole = tmp_path / "last.safetensors", trained(corpus, tmp_path / "whole", save=2)
    with pytest.raises(TimeIsUp):
        trained(corpus, tmp_path, minutes=0, save=2)
    tensors, state = checkpoint.load(path)
    told = [state["identity"].pop(name) for name in LATER]
    checkpoint.save(path, tensors, state)
    assert trained(corpus, tmp_path, save=2)["losses"] == whole["losses"]
    tensors, state = checkpoint.load(path)
    assert [state["identity"][name] for name in LATER] == told
    del state["identity"]["seed"]
    checkpoint.save(path, tensors, state)
    with pytest.raises(checkpoint.CheckpointError, match="another run .seed: None there, 0 here"):
        trained(corpus, tmp_path, save=2)


def test_a_checkpoint_of_another_plan_does_not_fit(corpus, tmp_path):
    trained(corpus, tmp_path, steps=3)
    weights = {k[6:]: v for k, v in checkpoint.load(tmp_path)[0].items() if k.startswith("model/")}
    from minimal.variants import build

    with pytest.raises(checkpoint.CheckpointError, match="lacks banks.1.weight"):
        checkpoint.load_weights(build("bov", "nano", vocab=300, layers=2, width=32), weights)


def test_a_full_disk_keeps_the_last_checkpoint(corpus, tmp_path, monkeypatch):
    trained(corpus, tmp_path, steps=3)
    before = (tmp_path / "last.safetensors").read_bytes()

    def full(tensors, path, meta):
        open(path, "wb").write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    with pytest.raises(checkpoint.CheckpointError, match="No space left.*is untouched; make room"):
        checkpoint.save(tmp_path / "last.safetensors", {}, {})
    assert (tmp_path / "last.safetensors").read_bytes() == before and len(
        list(tmp_path.glob(".last*"))
    ) == 0


def test_a_loss_that_is_no_number_ends_the_run(corpus, tmp_path):
    trainer = Trainer(Run(corpus=corpus, out=str(tmp_path), **(TINY | dict(steps=20))), quiet=True)
    with torch.no_grad():
        trainer.model.head.weight.fill_(float("nan"))
    with pytest.raises(
        Diverged, match="the loss became nan at step 1; there is no earlier checkpoint"
    ):
        trainer.fit()
    assert not (tmp_path / "last.safetensors").exists()


def test_the_log_of_a_run_that_saved_nothing_is_not_continued(corpus, tmp_path):
    with pytest.raises(Diverged):
        trained(corpus, tmp_path, lr=1e30)
    trained(corpus, tmp_path, steps=20)
    assert [json.loads(line)["step"] for line in open(tmp_path / "log.jsonl")] == [1, 10, 20]


def test_nothing_is_not_taken_for_not_given(corpus):
    with pytest.raises(TimeIsUp, match="stopped at step 1 of 20 .time is up.; nothing was kept"):
        trained(corpus, minutes=0)
    with pytest.raises(ValueError, match="lr must be above 0, got 0.0"):
        Run(lr=0.0)


@pytest.mark.parametrize(
    "what,words",
    [
        (["--plan", "bovv"], "unknown plan 'bovv'"),
        (["--corpus", "nowhere.txt"], "nowhere.txt"),
        (["--recipe", "magic"], "there is no recipe 'magic'"),
        (["--accumulate", "3"], "does not split into 3 parts"),
        (["--scale", "huge"], "there is no scale 'huge'"),
        (["--evaluate", "0"], "evaluate must be above 0"),
        (["--steps", "-3"], "steps must be above 0"),
        (["--device", "gpu"], "there is no device 'gpu'"),
        (["--out", "/proc/nowhere"], "/proc/nowhere"),
        (["--warmup", "20"], "warmup is a share of the run"),
        (["--context", "0"], "context must be above 0"),
    ],
)
def test_the_command_line_answers_in_one_sentence(corpus, what, words, capsys):
    from minimal.train import main

    with pytest.raises(SystemExit) as stopped:
        main(["--corpus", corpus, "--quiet", *CLI, *what])
    assert words in str(stopped.value) and "\n" not in str(stopped.value)


def test_bad_corpora_are_named(tmp_path):
    from minimal.data.files import DataError

    for name, content, words in (
        ("empty.txt", b"", "empty"),
        ("short.txt", b"too short " * 5, "short"),
        ("binary.txt", bytes(range(256)) * 900, "text"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=words):
            trained(str(tmp_path / name))
