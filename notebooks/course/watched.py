"""What does a run say of its model on the way? A training that takes notes, done at most once."""

import inspect
import json
from dataclasses import replace

from minimal.compare.runs import trained_once
from minimal.data import files
from minimal.train import Trainer


class Watched(Trainer):
    """A run that says something of its model whenever it evaluates."""

    note = None

    def evaluate(self):
        return dict(note=self.note(self.model)) | super().evaluate()


def watched(run, note, every=25):
    """What note(model) says before the first step of a run, after every so many and at its end:
    steps, notes, the last held-out loss and the folder. A note written otherwise is another run."""

    def train(folder):
        trainer = Watched(replace(run, out=str(folder), evaluate=every), quiet=True)
        trainer.note = note
        start = folder / "start.json"  # kept, since a run that goes on is past its first step
        if not start.exists():
            files.write_whole(start, json.dumps(note(trainer.model)))
        rows = trainer.fit()["valid"]
        return dict(
            steps=[0, *(row["step"] for row in rows)],
            notes=[json.loads(start.read_text(encoding="utf-8")), *(row["note"] for row in rows)],
            loss=rows[-1]["loss"],
        )

    return trained_once("watched", run, train, inspect.getsource(note), every)
