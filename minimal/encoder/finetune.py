"""What can be read off an encoder? Spans (SQuAD, the generated set) and sentences (GLUE), by one loop and one line.

python -m minimal.encoder.finetune --task squad --train train-v1.1.json --test dev-v1.1.json --encoder runs/mlm
python -m minimal.encoder.finetune --task sst2 --train train.tsv --test dev.tsv --encoder runs/mlm
"""

import argparse
import math
import statistics
import sys
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from minimal.data import files
from minimal.encoder import bert, wordpiece
from minimal.encoder.pretrain import fit, places, plan_of, restore
from minimal.tasks import glue, squad
from minimal.training.device import compute_dtype, device
from minimal.training.recipes import RECIPES

FAR = -1e4  # a score that no padding can win with


@dataclass
class Spans:
    """Questions about passages: where does the answer begin, where does it end?"""

    train: list
    test: list
    pieces: object
    length: int = 384
    stride: int = 128
    v2: bool = False
    report: files.Report = field(default_factory=files.Report)
    head = bert.Spans

    def __post_init__(self):
        self.rows = squad.windows(
            self.train, self.pieces, self.length, self.stride, self.report, train=True
        )
        self.held = squad.windows(self.test, self.pieces, self.length, self.stride, self.report)

    def scores(self, model, table, which):
        """Where answers begin and end (B, T) each; never in the padding."""
        lengths = table.lengths[which]
        width = int(lengths.max())
        ids, segments = (t[which, :width].to(model.device) for t in (table.ids, table.segments))
        lengths = lengths.to(model.device)
        padding = torch.arange(width, device=model.device) >= lengths[:, None]  # (B, T)
        return [s.masked_fill(padding, FAR) for s in model(ids, segments=segments, lengths=lengths)]

    def loss(self, model, which):
        first, last = self.scores(model, self.rows, which)
        target = self.rows.spans[which].to(model.device)  # (B, 2)
        return (F.cross_entropy(first, target[:, 0]) + F.cross_entropy(last, target[:, 1])) / 2

    def found(self, model):
        """id -> (n best answers with their scores, the score of no answer), on the test questions."""
        ends = [torch.full(self.held.ids.shape, FAR), torch.full(self.held.ids.shape, FAR)]
        for which in torch.arange(len(self.held.ids)).split(64):
            for whole, part in zip(ends, self.scores(model, self.held, which)):
                whole[which, : part.shape[1]] = part.cpu()
        return squad.answers(self.test, self.held, *ends)

    def score(self, model):
        said = squad.choose(self.found(model), threshold=0.0 if self.v2 else None)
        return squad.score(self.test, said, self.v2)


@dataclass
class Sentences:
    """Sentences, or pairs of them: which class?"""

    train: list
    test: list
    pieces: object
    length: int = 128
    report: files.Report = field(default_factory=files.Report)
    head = bert.Sentence

    def __post_init__(self):
        self.rows, self.held = (
            glue.encode(part, self.pieces, self.length, self.report)
            for part in (self.train, self.test)
        )

    def scores(self, model, table, which):
        width = int(table.lengths[which].max())
        ids, segments = (t[which, :width].to(model.device) for t in (table.ids, table.segments))
        return model(
            ids, segments=segments, lengths=table.lengths[which].to(model.device)
        )  # (B, 2)

    def loss(self, model, which):
        return F.cross_entropy(
            self.scores(model, self.rows, which), self.rows.labels[which].to(model.device)
        )

    def score(self, model):
        said = torch.cat(
            [
                self.scores(model, self.held, which).argmax(-1).cpu()
                for which in torch.arange(len(self.held.ids)).split(64)
            ]
        )
        return glue.score(said, self.held.labels)


def finetune(
    model,
    task,
    *,
    epochs=3.0,
    steps=None,
    batch=64,
    lr=5e-5,
    seed=0,
    recipe=RECIPES["squad"],
    **how,
):
    """The encoder under a fresh head for this task, trained and scored. -> the task's score, with steps and losses.
    The numbers are the report's: 3 epochs of 64 at 5e-5, falling, the last step's weights."""
    longest = max(task.rows.ids.shape[1], task.held.ids.shape[1])
    if longest > model.config.context:
        raise ValueError(
            f"rows of {longest} positions for a model that has {model.config.context}: "
            f"make the task with length={model.config.context}"
        )
    model.wear(task.head, seed)
    steps = steps or math.ceil(epochs * len(task.rows.ids) / batch)
    losses = fit(
        model,
        lambda step: task.loss(model, places(len(task.rows.ids), batch, seed, step)),
        steps,
        seed=seed,
        recipe=recipe,
        lr=lr,
        **how,
    )
    model.eval()
    with torch.no_grad():
        return task.score(model) | dict(steps=steps, losses=losses)


# ---- the command ------------------------------------------------------------------------------------------------
def task_of(name, train, test, pieces, length):
    """The two halves of a task, from files or through `datasets`."""
    report = files.Report()
    if name in ("squad", "squad_v2"):
        parts = [
            squad.load(source, split, report)
            for source, split in ((train, "train"), (test, "validation"))
        ]
        return Spans(*parts, pieces, length, min(128, length // 3), name == "squad_v2", report)
    parts = [
        glue.load(source, name, split, report)
        for source, split in ((train, "train"), (test, "validation"))
    ]
    return Sentences(*parts, pieces, length, report)


def encoder(asked):
    """(model, pieces): a folder of minimal.encoder.pretrain, or public weights with their vocabulary."""
    if asked.encoder:
        return restore(asked.encoder)
    pieces = wordpiece.load_pieces(asked.pieces)
    model = bert.build(
        plan_of(asked.plan or "standard"), asked.size or "bert-base", vocab=pieces.vocab
    )
    missing, spare = bert.load_public(model, asked.weights)
    print(
        f"not in the file, so fresh: {', '.join(missing) or 'nothing'}; in the file and not used: "
        f"{', '.join(spare) or 'nothing'}"
    )
    return model, pieces


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python -m minimal.encoder.finetune", description=__doc__.splitlines()[0]
    )
    ask.add_argument("--task", default="squad", choices=("squad", "squad_v2", *glue.TASKS))
    ask.add_argument(
        "--train",
        required=True,
        help="a .json or .tsv, or for datasets rajpurkar/squad, nyu-mll/glue",
    )
    ask.add_argument("--test", required=True)
    ask.add_argument("--encoder", help="a folder that python -m minimal.encoder.pretrain wrote")
    ask.add_argument(
        "--weights",
        help="or a model.safetensors with public BERT weights, with --pieces and --size",
    )
    ask.add_argument("--pieces", help="vocab.txt of these weights")
    ask.add_argument("--size", help="of these weights (bert-base)")
    ask.add_argument("--plan", help='{"alpha": "head"} adds a bypass to them')
    ask.add_argument("--length", type=int, default=384)
    ask.add_argument("--epochs", type=float, default=3)
    ask.add_argument("--batch", type=int, default=64)
    ask.add_argument("--lr", type=float, default=5e-5)
    ask.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[42],
        help="one run each: 42 2 8 9 5 are the report's",
    )
    asked = ask.parse_args(argv)
    if not asked.encoder and not (asked.weights and asked.pieces):
        ask.error(
            "an encoder is wanted: --encoder FOLDER, or --weights model.safetensors with --pieces vocab.txt"
        )
    told = [f"--{name}" for name in ("weights", "pieces", "size", "plan") if getattr(asked, name)]
    if asked.encoder and told:
        ask.error(
            f"{asked.encoder} says itself what it holds: leave out {', '.join(told)}, or --encoder"
        )
    try:
        model, pieces = encoder(asked)
        task = task_of(
            asked.task, asked.train, asked.test, pieces, min(asked.length, model.config.context)
        )
        print(task.report)
        rows = []
        for seed in asked.seeds:
            if rows:
                model, _ = encoder(asked)
            model.to(device(), compute=compute_dtype(device()))
            got = finetune(
                model, task, epochs=asked.epochs, batch=asked.batch, lr=asked.lr, seed=seed
            )
            rows.append({name: value for name, value in got.items() if isinstance(value, float)})
            print(
                f"seed {seed}: "
                + ", ".join(f"{name} {value:.2f}" for name, value in rows[-1].items()),
                flush=True,
            )
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"finetune: {error}")
    for name in rows[0] if len(rows) > 1 else ():
        scores = [row[name] for row in rows]
        mean, spread = statistics.mean(scores), statistics.stdev(scores)
        print(f"{name}: {mean:.2f} ± {spread:.2f} over {len(rows)} seeds")


if __name__ == "__main__":
    main()
