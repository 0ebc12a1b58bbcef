"""Does the loop keep its folder, its clock and its word, however a training ends?"""

import json
import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from minimal.data import files
from minimal.kernels import recorded
from minimal.model import loss as model_loss
from minimal.train import Trainer, load
from minimal.training import checkpoint, device
from minimal.training.checkpoint import CheckpointError
from minimal.training.loop import Loop, Pace, StopRequest
from minimal.training.run import Diverged, Stop
from minimal.training.team import Team
from tests.training.toys import made, trained

# ---- the wish to stop ---------------------------------------------------------------------------


class Interrupted(Trainer):
    """Ctrl-C in its fourth step; `times` of them."""

    times = 1

    def step(self, step):
        if step == 3:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)
        return super().step(step)


def test_ctrl_c_ends_the_step_saves_and_says_where(corpus, tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with pytest.raises(Stop, match=r"stopped at step 4 of 20 .SIGINT.; .* goes on from there"):
        made(corpus, tmp_path / "a", Interrupted).fit()
    assert checkpoint.load(tmp_path / "a")[1]["done"] == 4
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    whole = trained(corpus, tmp_path / "b")
    assert trained(corpus, tmp_path / "a")["losses"] == whole["losses"]


def test_a_second_ctrl_c_does_not_wait(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(Interrupted, "times", 2)
    with pytest.raises(KeyboardInterrupt):
        made(corpus, tmp_path, Interrupted).fit()
    assert not (tmp_path / "last.safetensors").exists()


def test_a_signal_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with StopRequest() as request:
            os.kill(os.getpid(), signal.SIGINT)
            assert not request.made()
    finally:
        signal.signal(signal.SIGINT, before)


def test_minutes_that_are_no_time_are_refused():
    for minutes in (-1, float("nan")):
        with pytest.raises(ValueError, match="minutes: wanted a number from 0, got"):
            StopRequest(minutes)


def test_the_clock_stands_while_we_evaluate(monkeypatch):
    now = iter([0.0, 10.0, 100.0, 105.0])
    monkeypatch.setattr("minimal.training.loop.time.perf_counter", lambda: next(now))
    pace = Pace(done=3)
    with pace.standing():
        pass
    assert pace.lap(done=8) == (15.0, 5)


# ---- one folder, one run ------------------------------------------------------------------------


def test_two_at_once_in_one_folder_is_refused_in_one_sentence(corpus, tmp_path):
    class Other(Trainer):
        def step(self, step):
            if step == 2:
                with pytest.raises(CheckpointError, match="another process is training in .*--out"):
                    made(corpus, tmp_path).fit()
            return super().step(step)

    assert len(made(corpus, tmp_path, Other).fit()["losses"]) == 20


def test_another_run_that_started_from_the_same_empty_folder_does_not_overwrite(corpus, tmp_path):
    """Both found nothing; the second begins after the first has ended."""
    first, second, same = (made(corpus, tmp_path, seed=seed) for seed in (0, 1, 0))
    losses = first.fit()["losses"]
    with pytest.raises(CheckpointError, match="holds another run .seed: 0 there, 1 here"):
        second.fit()
    assert same.fit()["losses"] == losses, "the same run is found finished"
    assert [row["loss"] for row in checkpoint.load(tmp_path)[1]["history"]] == losses


@pytest.mark.parametrize("place", ["/proc/nowhere", "file"])
def test_a_folder_that_cannot_be_written_is_named_before_anything_is_trained(
    corpus, tmp_path, place, monkeypatch
):
    (tmp_path / "file").write_text("a file where a folder is wanted")
    monkeypatch.setattr(Trainer, "step", None)
    with pytest.raises(files.DataError, match=f"cannot write .*{place}.*--out"):
        made(corpus, place if place.startswith("/") else tmp_path / place).fit()


# ---- numbers that are none ----------------------------------------------------------------------


def test_a_run_whose_last_step_makes_nan_of_its_weights_is_no_success(corpus, tmp_path):
    for out in (None, tmp_path):
        with pytest.raises(Diverged, match="holds weights that are no numbers after step 2; "):
            trained(corpus, out, lr=1e30, steps=2)
    assert not (tmp_path / "last.safetensors").exists()


def test_weights_that_are_no_numbers_are_not_saved_on_the_way(corpus, tmp_path):
    trainer = made(corpus, tmp_path, steps=20, save=4)
    step = trainer.step

    def spoil(at):
        loss = step(at)
        if at == 7:
            with torch.no_grad():
                trainer.model.embed.weight[0] = float("nan")
        return loss

    trainer.step = spoil
    with pytest.raises(Diverged, match="embed.weight .* after step 8; the last checkpoint"):
        trainer.fit()
    assert checkpoint.load(tmp_path)[1]["done"] == 4


# ---- evaluations --------------------------------------------------------------------------------


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def test_an_evaluation_that_fails_loses_nothing(corpus, tmp_path, monkeypatch):
    """A last evaluation that does not fit into memory: the run is saved, and only it is missing."""
    whole = trained(corpus, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "evaluate", lambda self: exec("raise RuntimeError('out of memory')"))
        with pytest.raises(RuntimeError, match="out of memory"):
            trained(corpus, tmp_path / "cut")
    assert checkpoint.load(tmp_path / "cut")[1]["done"] == 20
    monkeypatch.setattr(Trainer, "step", None)
    again = trained(corpus, tmp_path / "cut")
    assert again["losses"] == whole["losses"]
    assert without_seconds(again["valid"]) == without_seconds(whole["valid"])
    assert len(again["valid"]) == 1
    assert checkpoint.load(tmp_path / "cut")[1]["valid"] == again["valid"]


def test_an_evaluation_that_fails_on_the_way_is_made_when_the_run_goes_on(
    corpus, tmp_path, monkeypatch
):
    """Saving and measuring are due at step 10: what was trained is kept, and no evaluation lost."""
    often = dict(evaluate=5, save=10)
    whole, evaluate = trained(corpus, tmp_path / "whole", **often), Trainer.evaluate

    def fails_at_10(trainer):
        if trainer.done == 10:
            raise RuntimeError("out of memory")
        return evaluate(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "evaluate", fails_at_10)
        with pytest.raises(RuntimeError, match="out of memory"):
            trained(corpus, tmp_path / "cut", **often)
    state = checkpoint.load(tmp_path / "cut")[1]
    assert state["done"] == 10 and [row["step"] for row in state["valid"]] == [5]
    again = trained(corpus, tmp_path / "cut", **often)
    assert again["losses"] == whole["losses"]
    assert without_seconds(again["valid"]) == without_seconds(whole["valid"])
    assert [row["step"] for row in again["valid"]] == [5, 10, 15, 20]
    assert checkpoint.load(tmp_path / "cut")[1]["valid"] == again["valid"]


def test_an_evaluation_takes_no_more_rows_at_once_than_a_training_step(corpus):
    trainer = made(corpus, accumulate=4)  # of a batch of 8
    seen, loss = [], trainer.model.loss
    trainer.model.loss = lambda x, *rest, **how: seen.append(len(x)) or loss(x, *rest, **how)
    assert trainer.evaluate()["loss"] > 0 and seen == [2, 2, 2, 2]


def test_an_evaluation_takes_no_more_rows_than_their_scores_have_room(corpus, monkeypatch):
    """Training never holds all scores of a batch; an evaluation holds those of its rows."""
    trainer = made(corpus)  # rows of 32 tokens, each with 300 scores
    whole = trainer.evaluate()
    seen, loss = [], trainer.model.loss
    trainer.model.loss = lambda x, *rest, **how: seen.append(len(x)) or loss(x, *rest, **how)
    monkeypatch.setattr(model_loss, "SCORES", 3 * 32 * 300 + 299)
    assert trainer.evaluate()["loss"] == pytest.approx(whole["loss"], abs=1e-6)
    assert seen == [3, 3, 2]
    monkeypatch.setattr(model_loss, "SCORES", 1)
    seen.clear()
    assert trainer.evaluate()["loss"] > 0 and seen == [1] * 8
    assert model_loss.rows_at_once(2048, 2**15, torch.device("cuda")) == 4


# ---- what a GPU is spared -----------------------------------------------------------------------


def test_a_steps_ids_and_targets_cross_once_however_the_batch_is_cut(corpus):
    trainer = made(corpus, accumulate=4)  # of a batch of 8
    crossed, whole = [], trainer.team.to_device
    trainer.team.to_device = lambda tensor: crossed.append(len(tensor)) or whole(tensor)
    trainer.step(0)
    assert crossed == [8, 8]


@pytest.mark.parametrize("kind, wanted", (("cuda", ["pinned", True]), ("cpu", [True])))
def test_what_crosses_to_a_gpu_is_pinned_first(kind, wanted):
    done = []

    class Recorded:
        def pin_memory(self):
            done.append("pinned")
            return self

        def to(self, device, non_blocking):
            done.append(non_blocking)

    team = SimpleNamespace(device=torch.device(kind))
    Team.to_device(team, Recorded())
    assert done == wanted


def test_the_floors_product_is_of_random_numbers_that_no_run_misses(monkeypatch):
    """A GPU multiplies constants faster; and a run's own numbers must not move."""
    made_of = []
    monkeypatch.setattr(device, "clock", lambda work, **_: made_of.append(work()) or [1.0])
    before = torch.get_rng_state()
    assert device.matmul_rate("cpu", n=256) == 2 * 256**3
    assert torch.equal(torch.get_rng_state(), before)
    assert made_of[0].std() == pytest.approx(16, rel=0.05), "the square root of 256"


def test_a_gpu_computes_in_bf16_unless_fp32_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda where: (9, 0))
    assert device.compute_dtype("cuda") == torch.bfloat16
    assert device.compute_dtype("cpu") == torch.float32
    monkeypatch.setenv("MINIMAL_COMPUTE", "float32")
    assert device.compute_dtype("cuda") == torch.float32
    monkeypatch.setenv("MINIMAL_COMPUTE", "float16")
    with pytest.raises(ValueError, match="MINIMAL_COMPUTE: wanted float32, .* got 'float16'"):
        device.compute_dtype("cuda")


# ---- a step as one CUDA graph (what it computes: tests.kernels.on_gpu step) ----------------------


@pytest.fixture
def graphs(monkeypatch):
    """A CUDA that records nothing: what is recorded and replayed is written down instead."""
    said = []
    graph = SimpleNamespace(replay=lambda: said.append("replay"))
    stream = SimpleNamespace(wait_stream=lambda other: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda of: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: graph)
    monkeypatch.setattr(torch.cuda, "graph", lambda of: said.append("record") or nullcontext())
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda x: x)
    monkeypatch.setattr(recorded, "on_gpu", lambda device: True)
    return said


def test_a_step_runs_twice_as_it_is_is_then_recorded_once_and_replayed(graphs):
    given = []

    def work(what, x):
        graphs.append(what)
        given.append(x)
        return (2 * x,)

    step = recorded.Recorded(work, torch.device("cpu"))
    ends = [step("open", torch.full((3,), float(n)))[0] for n in range(5)]
    assert graphs == ["open", "open", "record", "open", "replay", "replay", "replay"]
    assert all(x is given[0] for x in given), "a recording reads its own tensors, always the same"
    assert given[0].tolist() == [4.0] * 3, "and every call copies its own numbers there"
    assert [end.tolist() for end in ends[:2]] == [[0.0] * 3, [2.0] * 3], "what came out stays"


def test_another_window_and_another_shape_are_recordings_of_their_own(graphs):
    step = recorded.Recorded(lambda what, x: (x,), torch.device("cpu"))
    for what, size in (([16, 32], 3), ([16, 32], 3), ([32, 64], 3), ([16, 32], 2)):
        step(what, torch.zeros(size))
    assert [one.calls for _, one in step.found.values()] == [2, 1, 1] and not graphs


@pytest.mark.parametrize("world, wanted", ((1, []), (2, [0])))
def test_a_process_of_several_ends_before_python_takes_itself_apart(monkeypatch, world, wanted):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    Team.leave(SimpleNamespace(world=world))
    assert ended == wanted


def test_several_processes_have_no_step_as_one_graph():
    with pytest.raises(ValueError, match="one CUDA graph is for one process: wanted that, got 2"):
        Team.alone(SimpleNamespace(world=2), "a step as one CUDA graph")


# ---- checkpoints that are damaged ---------------------------------------------------------------


def with_state(path, change):
    """Rewrite a checkpoint with another state: change(state) -> JSON text, or None for no state."""
    with safe_open(str(path), "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        header = dict(file.metadata())
    text = change(json.loads(header.pop("state")))
    if text is not None:
        header |= dict(state=text, sha256=checkpoint.content_hash(tensors, text))
    save_file(tensors, str(path), header)


def without(name):
    return lambda state: json.dumps({k: v for k, v in state.items() if k != name})


def having(**more):
    return lambda state: json.dumps(state | more)


STATES = {
    "no state": lambda state: None,
    "state is a list": lambda state: "[1, 2]",
    "state is cut": lambda state: json.dumps(state)[:-30],
    "no identity": without("identity"),
    "identity is a list": having(identity=[1]),
    "done is a name": having(done="x"),
    "done is negative": having(done=-3),
    "fewer losses than steps": having(history=[]),
}


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    trained(corpus, out, steps=3)
    return (out / "last.safetensors").read_bytes()


@pytest.mark.parametrize("what", STATES)
def test_a_checkpoint_with_a_damaged_state_is_named(corpus, tmp_path, finished, what):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished)
    with_state(path, STATES[what])
    with pytest.raises(CheckpointError, match="(delete|another folder)") as told:
        trained(corpus, tmp_path, steps=3)
    assert str(path) in str(told.value)


def test_a_checkpoint_without_its_history_is_named(corpus, tmp_path, finished):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished)
    tensors, state = checkpoint.load(path)
    kept = {name: tensor for name, tensor in tensors.items() if name != "history/loss"}
    del state["history"]
    checkpoint.save(path, kept, state)
    with pytest.raises(CheckpointError, match="wanted 'history' in its state, got nothing"):
        trained(corpus, tmp_path, steps=3)


@pytest.mark.parametrize(
    "change, words",
    [
        (STATES["no state"], "wanted its state as a JSON object, got 'nothing'"),
        (STATES["no identity"], "wanted 'identity' in its state, got nothing"),
        (without("tokenizer"), "wanted 'tokenizer' in its state, got nothing"),
        (having(tokenizer="{}"), "this is no tokenizer"),
        (having(identity=dict(plan="no-such-plan")), "unknown plan 'no-such-plan'"),
        (having(identity=dict(steps="many")), "steps: wanted a whole number, got 'many'"),
        (having(identity=dict(size="tiny")), "does not fit this model"),
        (having(identity=dict(style="bert")), "would see the token that it is to predict"),
    ],
)
def test_a_checkpoint_that_cannot_be_opened_is_named(tmp_path, finished, change, words):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished)
    with_state(path, change)
    with pytest.raises(CheckpointError, match=words) as told:
        load(tmp_path)
    assert str(tmp_path) in str(told.value)


def test_a_checkpoint_with_numbers_that_are_none_is_named(corpus, tmp_path, finished):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished)
    with safe_open(str(path), "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        header = dict(file.metadata())
    tensors["model/head.weight"][0, 0] = float("nan")
    header["sha256"] = checkpoint.content_hash(tensors, header["state"])
    save_file(tensors, str(path), header)
    for opening in (lambda: load(tmp_path), lambda: trained(corpus, tmp_path, steps=3)):
        with pytest.raises(CheckpointError, match=f"{path} is damaged: model/head.weight holds"):
            opening()


def replaced(path, change=lambda name, tensor: tensor, **more):
    """Write a checkpoint again, whole, with other tensors or another state."""
    tensors, state = checkpoint.load(path)
    tensors = {name: change(name, tensor) for name, tensor in tensors.items()}
    checkpoint.save(path, tensors, state | more)


@pytest.mark.parametrize("room", ["model/", "optimizer/"])
def test_weights_of_whole_numbers_are_refused(corpus, tmp_path, finished, room):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished)
    replaced(path, lambda name, tensor: tensor.long() if name.startswith(room) else tensor)
    words = f"{tmp_path}.*: {room}.*: wanted weights with a fraction .*, got torch.int64"
    for opening in (lambda: load(tmp_path), lambda: trained(corpus, tmp_path, steps=3)):
        with pytest.raises(CheckpointError, match=words):
            opening()


def test_a_tokenizer_of_another_size_is_refused(tmp_path, finished):
    path = tmp_path / "last.safetensors"
    path.write_bytes(finished)
    _, tok = load(tmp_path)
    smaller = json.loads(tok.text)
    smaller["model"]["merges"].pop()
    smaller["model"]["vocab"].popitem()
    replaced(path, tokenizer=json.dumps(smaller))
    with pytest.raises(CheckpointError, match="the tokenizer has 299 tokens, the model 300: make"):
        load(tmp_path)


# ---- the loop alone -----------------------------------------------------------------------------


class Line(Loop):
    """One weight that follows one number, by hand; the smallest subclass there can be."""

    def __init__(self, out, steps=25):
        model = torch.nn.Linear(1, 1, bias=False)
        with torch.no_grad():
            model.weight.fill_(1.0)
        super().__init__(model, self, steps, out, every=dict(save=10))
        self.resume()

    def state_dict(self):
        return dict(rate=torch.tensor(0.1))

    def load_state_dict(self, state):
        assert state.keys() == {"rate"}

    def step(self, step):
        with torch.no_grad():
            self.model.weight.mul_(0.9)
        return self.model.weight.detach().sum()

    def identity(self):
        return dict(what="a line", steps=(1, 2))


def test_a_subclass_needs_a_step_and_an_identity_and_no_more(tmp_path):
    """As BERT's: no evaluations, no coefficients, a log and a checkpoint."""
    whole = Line(tmp_path / "whole")
    whole.fit()
    assert [row["step"] for row in whole.history] == list(range(1, 26)) and whole.valid == []
    assert whole.history[0].keys() == {"step", "loss"}
    cut = Line(tmp_path / "cut")
    with pytest.raises(Stop, match="stopped at step 1 of 25 .time is up"):
        cut.fit(minutes=0)
    cut = Line(tmp_path / "cut")
    cut.fit()
    assert cut.history == whole.history and cut.done == 25
    logged = [row["step"] for row in files.read_lines(tmp_path / "whole" / "log.jsonl")]
    assert logged == [1, 10, 20, 25]
