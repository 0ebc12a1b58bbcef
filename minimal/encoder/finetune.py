"""What can be read off an encoder? Answers to questions about a passage (SQuAD): fine-tuning a
head that points at spans.

python -m minimal.encoder.finetune --train train-v1.1.json --test dev-v1.1.json --encoder runs/mlm
"""

import math
import statistics
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from minimal.command import command, number
from minimal.data import files
from minimal.encoder import bert, wordpiece
from minimal.encoder.pretrain import fit, places, plan_of, restore
from minimal.tasks import passages, squad
from minimal.training.device import compute_dtype, device
from minimal.training.recipes import RECIPES

LOSING_SCORE = -1e4  # a score that no padding can win with

BATCH = 64  # windows that are scored at once


@dataclass
class SpanTask:
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
        how = self.pieces, self.length, self.stride, self.report
        self.rows = passages.windows(self.train, *how, train=True)
        self.held = passages.windows(self.test, *how)

    def scores(self, model, table, which):
        """Where answers begin and end (B, T) each; never in the padding."""
        # The windows of this batch, as long as the longest of them.
        lengths = table.lengths[which]
        width = int(lengths.max())
        ids = table.ids[which, :width].to(model.device)  # (B, T)
        segments = table.segments[which, :width].to(model.device)
        lengths = lengths.to(model.device)

        padding = torch.arange(width, device=model.device) >= lengths[:, None]  # (B, T)
        ends = model(ids, segments=segments, lengths=lengths)
        return [end.masked_fill(padding, LOSING_SCORE) for end in ends]

    def loss(self, model, which):
        first, last = self.scores(model, self.rows, which)
        target = self.rows.spans[which].to(model.device)  # (B, 2)
        return (F.cross_entropy(first, target[:, 0]) + F.cross_entropy(last, target[:, 1])) / 2

    def found(self, model):
        """id -> (n best answers with their scores, the score of no answer), on test questions."""
        ends = torch.full((2, *self.held.ids.shape), LOSING_SCORE)  # first and last (N, T)
        for which in torch.arange(len(self.held.ids)).split(BATCH):
            for whole, part in zip(ends, self.scores(model, self.held, which)):
                whole[which, : part.shape[1]] = part.cpu()
        return passages.answers(self.test, self.held, *ends)

    def score(self, model):
        threshold = 0.0 if self.v2 else None
        said = passages.chosen_answers(self.found(model), threshold)
        return squad.score(self.test, said, self.v2)


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
    """The encoder under a fresh head for this task, trained and scored. -> the task's score, with
    steps and losses. The numbers are the report's: 3 epochs of 64 at 5e-5, falling, the last
    step's weights."""
    longest = max(task.rows.ids.shape[1], task.held.ids.shape[1])
    if longest > model.config.context:
        raise ValueError(
            f"rows of {longest} positions for a model that has {model.config.context}: "
            f"make the task with length={model.config.context}"
        )
    model.with_head(task.head, seed)
    count = len(task.rows.ids)
    steps = steps or math.ceil(epochs * count / batch)

    def loss_at(step):
        return task.loss(model, places(count, batch, seed, step))

    losses = fit(model, loss_at, steps, seed=seed, recipe=recipe, lr=lr, **how)
    model.eval()
    with torch.no_grad():
        return task.score(model) | dict(steps=steps, losses=losses)


# ---- the command --------------------------------------------------------------------------------
def task_of(name, train, test, pieces, length):
    """Both halves of SQuAD v1 or v2, from files or through `datasets`."""
    report = files.Report()
    train = squad.load(train, "train", report)
    test = squad.load(test, "validation", report)
    stride = min(128, length // 3)
    return SpanTask(train, test, pieces, length, stride, name == "squad_v2", report)


def encoder(asked):
    """(model, pieces): a folder of minimal.encoder.pretrain, or public weights with their
    vocabulary."""
    if asked.encoder:
        return restore(asked.encoder)
    pieces = wordpiece.load_pieces(asked.pieces)
    plan, size = plan_of(asked.plan or "standard"), asked.size or "bert-base"
    model = bert.build(plan, size, vocab=pieces.vocab)
    missing, spare = bert.load_public(model, asked.weights)
    print(f"not in the file, so fresh: {', '.join(missing) or 'nothing'}")
    print(f"in the file and not used: {', '.join(spare) or 'nothing'}")
    return model, pieces


def options(parser):
    add = parser.add_argument
    add("--task", default="squad", choices=("squad", "squad_v2"))
    add("--train", required=True, help="a .json, or for datasets rajpurkar/squad")
    add("--test", required=True)
    add("--encoder", help="a folder that python -m minimal.encoder.pretrain wrote")
    add("--weights", help="or a model.safetensors with public BERT weights; then also --pieces")
    add("--pieces", help="vocab.txt of these weights")
    add("--size", help="of these weights (bert-base)")
    add("--plan", help='{"alpha": "head"} adds a bypass to them')
    add("--length", type=number(int, least=8), default=384)
    add("--epochs", type=number(float, above=0), default=3)
    add("--batch", type=number(int, least=1), default=64)
    add("--lr", type=number(float, above=0), default=5e-5)
    seeds = "one run each: 42 2 8 9 5 are the report's"
    add("--seeds", type=number(int, least=0), nargs="+", default=[42], help=seeds)


def check_options(parser, asked):
    """An encoder, from one place."""
    if not asked.encoder and not (asked.weights and asked.pieces):
        parser.error(
            "an encoder is wanted: --encoder FOLDER, or --weights model.safetensors with "
            "--pieces vocab.txt"
        )
    besides = [name for name in ("weights", "pieces", "size", "plan") if getattr(asked, name)]
    if asked.encoder and besides:
        names = ", ".join(f"--{name}" for name in besides)
        parser.error(f"{asked.encoder} says itself what it holds: leave out {names}, or --encoder")


@command("minimal.encoder.finetune", __doc__.partition("\n\n")[0])
def main(parser, argv):
    options(parser)
    asked = parser.parse_args(argv)
    check_options(parser, asked)
    model, pieces = encoder(asked)
    length = min(asked.length, model.config.context)
    task = task_of(asked.task, asked.train, asked.test, pieces, length)
    print(task.report)

    # One run a seed, each from the same encoder.
    rows = []
    for seed in asked.seeds:
        if rows:
            model, _ = encoder(asked)
        model.to(device(), compute=compute_dtype(device()))
        how = dict(epochs=asked.epochs, batch=asked.batch, lr=asked.lr)
        got = finetune(model, task, seed=seed, **how)
        row = {name: value for name, value in got.items() if isinstance(value, float)}
        scores = ", ".join(f"{name} {value:.2f}" for name, value in row.items())
        print(f"seed {seed}: {scores}", flush=True)
        rows.append(row)

    # The mean over seeds, with its standard deviation.
    for name in rows[0] if len(rows) > 1 else ():
        scores = [row[name] for row in rows]
        mean, deviation = statistics.mean(scores), statistics.stdev(scores)
        print(f"{name}: {mean:.2f} ± {deviation:.2f} over {len(rows)} seeds")


if __name__ == "__main__":
    main()
