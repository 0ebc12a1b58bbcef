"""How is anything trained here? One loop for GPT and BERT: steps, a log, checkpoints, a clean end.

class Mine(Loop):
    def __init__(self, …):
        super().__init__(model, optimizer, steps, out, every=dict(save=500))
        self.resume()                  # goes on from `out`, or refuses another run's folder

    def step(self, step): …            # wanted: see Loop
    def identity(self): …

Mine(…).fit(minutes=10)
"""

import contextlib
import json
import math
import signal
import threading
import time
from pathlib import Path

import torch

from minimal.data import files
from minimal.training import checkpoint
from minimal.training.run import Diverged, Stop, TimeIsUp

CHECKPOINT, LOG = "last.safetensors", "log.jsonl"

PROGRESS = dict(done=int, seconds=(int, float), valid=list, history=list)  # kept beside weights

# of identities: folders that were written before lack these, and go on
LATER = {"code", "numbers", "rows"}

FOREVER = 10**9  # steps: more than that is a slip of the keyboard


class StopRequest:
    """The wish to stop: SIGTERM, Ctrl-C or the end of the minutes.

    The loop then ends its step, saves and says so. A second Ctrl-C does not wait for that.
    """

    def __init__(self, minutes=None):
        if minutes is not None and not minutes >= 0:
            raise ValueError(f"minutes: wanted a number from 0, got {minutes}")
        self.end = math.inf if minutes is None else time.monotonic() + 60 * minutes
        self.signal, self.before = None, {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for kind in (signal.SIGTERM, signal.SIGINT):
                if signal.getsignal(kind) not in (signal.SIG_IGN, None):  # nohup's wish stands
                    self.before[kind] = signal.signal(kind, self.note)
        return self

    def __exit__(self, *_):
        for kind, handler in self.before.items():
            signal.signal(kind, handler)

    def note(self, number, frame):
        if self.signal and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number).name

    def made(self):
        return self.signal is not None or time.monotonic() > self.end

    def answer(self, where, kept):
        """The exception that ends the loop."""
        if self.signal:
            return Stop(f"{where} ({self.signal}); {kept}")
        return TimeIsUp(f"{where} (time is up); {kept}")


class Pace:
    """The clock of a loop: it stands while we evaluate and save."""

    def __init__(self, done):
        self.start, self.done = time.perf_counter(), done

    def lap(self, done):
        """(seconds, steps) since the last lap."""
        now = time.perf_counter()
        lap = now - self.start, done - self.done
        self.start, self.done = now, done
        return lap

    @contextlib.contextmanager
    def standing(self):
        before = time.perf_counter()
        yield
        self.start += time.perf_counter() - before


class Loop:
    """Steps in order. A subclass gives model, optimizer and steps to __init__, and must define

        step(step)      fetch, forward, backward, optimizer step -> the loss, a tensor of one number
                        that is not waited for; a pure function of the step's number
        identity()      what must be equal for a folder to go on, in values that JSON can hold

    and may define

        watch()         -> a vector that is kept, in float32, with the loss of every step
                        (`coefficients`)
        evaluate()      -> a dict for `valid`; asked every["evaluate"] steps and after the last one
        report(seconds, steps)    what is logged and shown, every["report"] steps
        extra()         -> what else the checkpoint's JSON holds
        agree(wish, report)       does this step stop? (Several processes must answer alike.)

    What was reached is in `done` (steps), `seconds`, `history` (a dict a step) and `valid`.
    """

    writes = True  # of several processes one alone writes

    def __init__(self, model, optimizer, steps, out=None, every=None):
        if steps > FOREVER:
            raise ValueError(f"{steps:,} steps would never end: wanted at most {FOREVER:,}")
        self.model, self.optimizer, self.steps = model, optimizer, steps
        self.out = Path(out) if out else None
        self.every = dict(report=10) | (every or {})
        self.done, self.seconds, self.history, self.valid = 0, 0.0, [], []
        self.pending = []  # (loss, what was watched) of the latest steps, still on the device
        self.opened = None  # the state of the checkpoint's file when we read or wrote it

    # ---- what a subclass may say otherwise --------------------------------------------------
    def watch(self):
        return None

    def report(self, seconds, steps):
        self.log(seconds=round(self.seconds, 1))

    def extra(self):
        return {}

    def agree(self, wish, report):
        return wish

    # ---- the loop ---------------------------------------------------------------------------
    def fit(self, minutes=None):
        """Train to the end, or for some minutes. Whoever stops it finds what was reached saved."""
        with self.alone(), StopRequest(minutes) as request:
            self.begin()
            first, pace = self.done, Pace(self.done)
            for step in range(first, self.steps):
                self.pending.append((self.step(step), self.watch()))
                self.done = step + 1
                evaluate, save = self.due("evaluate"), self.due("save")
                report = evaluate or save or step == first or self.due("report")
                stop = self.agree(request.made(), report)
                if report or stop:
                    self.collect()
                    seconds, steps = pace.lap(self.done)
                    self.seconds += seconds if step > first else 0  # the first step may compile
                    self.report(seconds, steps)
                with pace.standing():
                    if save or stop:  # first, so that no evaluation can lose it
                        self.save()
                    if evaluate:
                        self.measure()
                if stop and self.done < self.steps:
                    raise request.answer(
                        f"stopped at step {self.done} of {self.steps}", self.kept()
                    )

    def due(self, what):
        """Is it this step's turn? The last step's always."""
        every = self.every.get(what)
        return every is not None and (self.done == self.steps or self.done % every == 0)

    def begin(self):
        """Start from what the folder holds by now, and with a log that says no more than that."""
        self.model.train()
        if self.out and file_stamp(self.out / CHECKPOINT) != self.opened:
            self.resume()
        if self.out and self.writes:
            self.cut_log()
        measured = self.valid[-1]["step"] if self.valid else None
        if self.done and self.due("evaluate") and measured != self.done:
            self.measure()  # the run was ended between a save and its evaluation

    def cut_log(self):
        """Steps that were lost, and are trained again, leave the log."""
        rows, log = files.read_lines(self.out / LOG), self.out / LOG
        if log.is_file() and log.stat().st_size and not any("step" in row for row in rows):
            raise checkpoint.CheckpointError(
                f"{log} is no log of a run: it is left as it is; name another folder with --out"
            )
        kept = [row for row in rows if row.get("step", math.inf) <= self.done]
        if len(kept) < len(rows):
            lines = "".join(json.dumps(row) + "\n" for row in kept)
            files.write_whole(self.out / LOG, lines)

    def collect(self):
        """Bring the pending losses over from the device; one that is no number ends the run."""
        first = self.done - len(self.pending) + 1
        for step, (loss, watched) in enumerate(self.pending, first):
            row = dict(step=step, loss=float(loss))
            if not math.isfinite(row["loss"]):
                self.diverged(f"the loss became {row['loss']} at step {step}")
            if watched is not None:
                row["coefficients"] = watched.tolist()
            self.history.append(row)
        self.pending = []

    def measure(self):
        """Evaluate. A later save keeps what came out, and behind the last step this one."""
        self.check_finite()
        self.valid.append(self.evaluate())
        if self.done == self.steps:
            self.save()

    def log(self, **what):
        if self.out and self.writes:
            row = dict(step=self.done, loss=self.history[-1]["loss"], **what)
            files.append_lines(self.out / LOG, [row])

    # ---- what can go wrong ------------------------------------------------------------------
    def check_finite(self):
        for name, p in self.model.named_parameters():
            if not torch.isfinite(p).all():
                self.diverged(f"{name} holds weights that are no numbers after step {self.done}")

    def diverged(self, what):
        kept = checkpoint.kept(self.out / CHECKPOINT) if self.out else "nothing was saved"
        raise Diverged(f"{what}; {kept}; try a smaller --lr")

    def kept(self):
        if self.out:
            return f"{self.out} goes on from there"
        return "nothing was kept: name a folder with --out"

    @contextlib.contextmanager
    def alone(self):
        """Nobody else trains in this folder meanwhile."""
        if not (self.out and self.writes):
            yield
            return
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(files.locked(self.out / ".training", wait=False))
            except files.Busy:
                raise checkpoint.CheckpointError(
                    f"another process is training in {self.out}: wait for it, or name another "
                    "folder with --out"
                ) from None
            yield

    # ---- save and resume --------------------------------------------------------------------
    def save(self):
        """Weights, optimizer and what was reached, in one file; never weights that are NaN."""
        self.check_finite()
        if not self.out:
            return
        optimizer = self.optimizer.state_dict()  # several processes gather it together
        if not self.writes:
            return
        tensors = {f"model/{name}": p for name, p in self.model.named_parameters()}
        for name, tensor in optimizer.items():
            tensors[f"optimizer/{name}"] = tensor
        progress = {name: getattr(self, name) for name in PROGRESS}
        state = progress | dict(identity=self.identity()) | self.extra()
        checkpoint.save(self.out / CHECKPOINT, tensors, state)
        self.opened = file_stamp(self.out / CHECKPOINT)

    def resume(self):
        """Go on from the folder's checkpoint, where there is one; refuse the one of another run."""
        path = self.out / CHECKPOINT if self.out else None
        if path is None or not path.exists():
            return
        tensors, state = checkpoint.load(path, **PROGRESS)
        refuse_another_run(path, state["identity"], self.identity())
        if state["done"] != len(state["history"]) or not 0 < state["done"] <= self.steps:
            raise checkpoint.CheckpointError(
                f"{path} is damaged: it holds {len(state['history'])} losses after "
                f"{state['done']} of {self.steps} steps; delete it, and the run starts anew"
            )
        try:
            checkpoint.check_fractions(tensors)
            checkpoint.load_weights(self.model, checkpoint.part(tensors, "model/"))
            self.optimizer.load_state_dict(checkpoint.part(tensors, "optimizer/"))
        except ValueError as error:
            raise checkpoint.CheckpointError(f"{path}: {error}") from None
        for name in PROGRESS:
            setattr(self, name, state[name])
        self.opened = file_stamp(path)


def refuse_another_run(path, theirs, ours):
    """A folder goes on with the run that it holds, and with no other."""
    ours = json.loads(json.dumps(ours))
    asked = [name for name in ours if name in theirs or name not in LATER]
    told = told_apart(theirs, ours, asked)
    if told:
        raise checkpoint.CheckpointError(
            f"{path.parent} holds another run ({told}): "
            "name another folder with --out, or the same run"
        )


def told_apart(theirs, ours, names):
    """What two identities say otherwise under these names, in words; nothing where they agree."""
    differ = [name for name in names if theirs.get(name) != ours[name]]
    return ", ".join(f"{name}: {theirs.get(name)} there, {ours[name]} here" for name in differ)


def file_stamp(path):
    """What changes when somebody else writes this file; None where there is none."""
    try:
        seen = path.stat()
    except FileNotFoundError:
        return None
    return seen.st_mtime_ns, seen.st_size, seen.st_ino
