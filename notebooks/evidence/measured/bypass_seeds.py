"""Is the bypass better, or only less sure of itself? The report's Table 1 in small: sizes x paired
seeds x plans.

    nice -n 15 python -m evidence.measured.bypass_seeds --seeds 5 --threads 1 --minutes 60

Every run is whole: its own first weights, masked pieces on the village's questions and passages
(course.village), then spans. Seeds are paired: one seed gives all plans the same first
weights, masks and batches. A finished run is recorded at once, and the next call goes on with the
cells that are missing.
"""

import argparse
import contextlib
import io
import json
import math
import re
import time
from functools import lru_cache
from pathlib import Path

import torch

from course import records, significance, village
from course.variance import spread
from minimal.command import command, number
from minimal.compare import intervals, ledger
from minimal.data import files, results
from minimal.data.files import digest
from minimal.encoder import bert
from minimal.encoder.finetune import SpanTask, finetune
from minimal.encoder.pretrain import RECIPE, fit, masked_loss, places
from minimal.encoder.wordpiece import learn_pieces
from minimal.model.config import Config
from minimal.tasks import squad

PLANS = {  # what is asked of each of section 4.2's dials; "bypass" is what the report ran
    "standard": "standard",
    "bypass": {},
    "bypass-layer": dict(alpha="layer"),
    "bypass-head": dict(alpha="head"),
    "bypass-global": dict(alpha="global"),
    "bypass-gate": dict(alpha="gate"),
    "bypass-gelu": dict(act="gelu"),
    "bypass-silu": dict(act="silu"),
    "bypass-none": dict(act="none"),
    "bypass-norm": dict(on="norm"),
    "bypass-last": dict(where="last_third"),
    "bypass-first": dict(where=(0,)),
    "bypass-negative": dict(start=-0.5),
    "bypass-warmup": {},
    "bypass-decay": {},
}

# Over the masked pieces; the spans keep where it ends.
RAMPED = {"bypass-warmup": "warmup", "bypass-decay": "decay"}

SET = dict(level=2, paragraphs=4000, test=250, vocab=700)  # of the village

SIZES = ("2x32", "4x64", "6x96")  # layers x width, in heads of 32: small, medium and large

# Steps, and windows a step; the rates are for a width of 64 and fall as 1/C.
RUN = dict(masked=300, spans=600, batch=32, masked_lr=4e-3, lr=2e-3)

LAST = 50  # steps, over which a recorded loss is the mean


def sized_set(level, paragraphs, test, vocab):
    """(training questions, test questions, vocabulary, fingerprint) of a generated set."""
    train_tree = village.make(level, paragraphs, 0, "train")
    test_tree = village.make(level, test, 0, "test")
    train, held = (squad.read(tree, files.Report()) for tree in (train_tree, test_tree))
    contexts = dict.fromkeys(question.context for question in train)
    pieces = learn_pieces([*contexts, *(question.question for question in train)], vocab)
    trees = [json.dumps(tree) for tree in (train_tree, test_tree)]
    return train, held, pieces, digest(*trees, pieces.fingerprint)


@lru_cache(maxsize=1)
def village_task(**settings):
    """(task, fingerprint); the entities of its test questions never occur in training."""
    train, held, pieces, fingerprint = sized_set(**settings)
    return SpanTask(train, held, pieces, length=512), fingerprint


def model_of(plan, layers, width, task, seed=0):
    heads = max(1, width // 32)
    context = max(task.rows.ids.shape[1], task.held.ids.shape[1])
    vocab = task.pieces.vocab
    config = Config(layers, width, heads, context, vocab, style="bert", windows="L")
    return bert.build(PLANS.get(plan, plan), config, seed=seed)


def on_windows(model, pieces, rows, batch, seed):
    """loss_at(step) of masked pieces in questions with their passages (passages.windows): how they
    fit together is learned before anybody asks for an answer."""

    def loss_at(step):
        which = places(len(rows.ids), batch, seed, step)
        lengths = rows.lengths[which]
        width = int(lengths.max())
        ids = rows.ids[which, :width]  # (B, T)
        segments = rows.segments[which, :width].to(model.device)
        lengths = lengths.to(model.device)
        return masked_loss(model, pieces, ids, seed, step, segments, lengths)

    return loss_at


def run(plan, layers, width, seed, **changes):
    """One whole run: -> (the row for the record, the model). `variances`, a layer: Var V,
    a² Var R, 2a Cov(V, R) for a = 1/2 and R = relu(X), whether the plan adds it or not, and the
    variance of what the layer attends to. The passage has the segment of a question here, unlike in
    training."""
    how = RUN | {name: value for name, value in changes.items() if name in RUN}
    chosen = SET | {name: value for name, value in changes.items() if name in SET}
    masked_lr, lr = (how[name] * 64 / width for name in ("masked_lr", "lr"))
    task, _ = village_task(**chosen)
    model, start = model_of(plan, layers, width, task, seed), time.perf_counter()

    # First masked pieces, then spans.
    masked = []
    if how["masked"]:
        loss_at = on_windows(model, task.pieces, task.rows, how["batch"], seed)
        ramp = RAMPED.get(plan)
        masked = fit(model, loss_at, how["masked"], seed=seed, lr=masked_lr, ramp=ramp)
    steps, batch = how["spans"], how["batch"]
    got = finetune(model, task, steps=steps, batch=batch, lr=lr, seed=seed, recipe=RECIPE)

    # What the values and the learned numbers have become.
    ids = task.held.ids[:64, : int(task.held.lengths[:64].min())]
    variances = []
    for row in spread(model, ids):
        variances.append([round(row[name], 5) for name in ("v", "r", "cross", "attended")])
    learned = {}
    for name, numbers in model.coefficients().items():
        learned[name] = [round(x, 4) for x in numbers.detach().flatten().tolist()]
    return dict(
        plan=plan,
        size=f"{layers}x{width}",
        seed=seed,
        steps=how["masked"] + how["spans"],
        f1=got["f1"],
        exact=got["exact"],
        masked_loss=last_mean(masked),
        span_loss=last_mean(got["losses"]),
        alpha=learned or None,
        variances=variances,
        parameters=sum(p.numel() for p in model.parameters()),
        seconds=round(time.perf_counter() - start, 1),
    ), model


def last_mean(losses):
    return sum(losses[-LAST:]) / len(losses[-LAST:]) if losses else None


# ---- the grid -----------------------------------------------------------------------------------
def grid(path, plans, sizes, seeds, minutes=None, **changes):
    """Fill the missing cells of a file, seed by seed: a partial grid is paired everywhere."""
    path = Path(path)
    settings = SET | RUN | changes
    results.check_evidence(path)
    if path.exists():
        refuse_other_settings(path, settings)
    with files.locked(path):
        pass
    head = header_of(settings)
    until = time.monotonic() + 60 * minutes if minutes else math.inf
    cells = [(plan, *size, seed) for seed in seeds for size in sizes for plan in plans]

    def recorded(row, cell):
        plan, layers, width, seed = cell
        return (row["plan"], row["size"], row["seed"]) == (plan, f"{layers}x{width}", seed)

    def make(cell):
        row, _ = run(*cell, **changes)
        return row, head, f"{row['size']}, F1 {row['f1']:.2f} ({row['seconds']:.0f} s)"

    if not ledger.missing(path, cells, recorded):
        print(f"{path.name}: whole, nothing to do")
    elif ledger.fill(path, cells, recorded, make, until):
        print("time is up; the same command goes on from here")


def refuse_other_settings(path, settings):
    kept = records.read(path).get("settings", {})
    differ = [name for name in settings if kept.get(name) != settings[name]]
    if kept.keys() != settings.keys() or differ:
        told = ", ".join(f"{name} {kept.get(name)}, here {settings[name]}" for name in differ)
        raise ValueError(
            f"{path.name} was recorded with other settings ({told}); give it a file of its own"
        )


def header_of(settings):
    task, fingerprint = village_task(**{name: settings[name] for name in SET})
    corpus = dict(
        name=f"minimal.tasks.village level {settings['level']}",
        fingerprint=fingerprint,
        tokens=int(task.rows.lengths.sum()),
    )
    what = (
        "BERT with and without the value bypass on the generated extractive-QA set: masked "
        "pieces, then spans, F1 on held-out entities"
    )
    head = results.header(what, "python -m evidence.measured.bypass_seeds", corpus)
    return head | dict(settings=settings)


def table(rows, metric="f1", baseline="standard"):
    """{size: {plan: scores by seed}} and, size by size, what stats.compare says."""
    groups = {}
    for row in sorted(rows, key=lambda r: (r["size"], r["seed"])):
        groups.setdefault(row["size"], {}).setdefault(row["plan"], []).append(row[metric])
    return groups, {
        size: significance.compare_groups(group, baseline)
        for size, group in groups.items()
        if baseline in group
    }


def draw_variances(rows, title, metric="f1"):
    """The two variances that the report takes for one: of the values inside a run, and of the
    scores between runs. Every run a mark; if wide values made scores uncertain, marks would fan out
    to the right."""
    from course import figures

    groups = {}
    for row in rows:
        groups.setdefault((row["plan"], row["size"]), []).append(row)
    names = list(dict.fromkeys(row["plan"] for row in rows))

    fig, ax = figures.axes(
        title,
        "Var of what is attended to / Var of W_V x, mean over layers",
        f"{metric.upper()} less its group's mean",
    )
    for (plan, _), group in groups.items():
        mean = sum(row[metric] for row in group) / len(group)
        scores = [row[metric] - mean for row in group]
        ratios = [mean_ratio(row["variances"]) for row in group]
        kind = names.index(plan) % 8
        mark, color = figures.MARKS[kind], figures.COLOURS[kind]
        ax.plot(ratios, scores, mark, color=color, linestyle="none", label=plan)
    handles, labels = ax.get_legend_handles_labels()
    entries = dict(zip(labels, handles))  # one a plan
    ax.legend(entries.values(), entries.keys(), fontsize=9)
    ax.axhline(0, color=figures.INK, linewidth=1)
    return fig


def mean_ratio(variances):
    """Var of what a layer attends to over that of W_V x, mean over layers."""
    return sum(attended / v for v, _, _, attended in variances) / len(variances)


# ---- what a notebook looks at -------------------------------------------------------------------

# Which runs of the bypass does a notebook look at? An encoder to look into, a small grid that is
# trained on the spot, and the recorded sizes side by side.

SHAPES = dict(smoke=(2, 32), laptop=(2, 64), gpu=(4, 128))  # layers, width

SETTINGS = dict(
    smoke=dict(level=1, paragraphs=60, test=20, vocab=400, masked=4, spans=6, batch=16),
    laptop=dict(level=1, paragraphs=2000, test=100, vocab=500, masked=100, spans=300, batch=32),
    gpu=dict(level=2),
)


def encoder(profile, seed):
    """A standard encoder that has learned to answer: (its row, the model, its task, the F1 of
    answers by chance)."""
    settings = SETTINGS[profile]
    row, model = run("standard", *SHAPES[profile], seed, **settings)
    chosen = {name: settings.get(name, usual) for name, usual in SET.items()}
    task, _ = village_task(**chosen)
    tree = village.make(chosen["level"], chosen["test"], 0, "test")
    by_chance = squad.score(task.test, village.chance_predictions(tree))["f1"]
    return row, model.eval(), task, by_chance


def same_everywhere(y):
    """The share of the square of y (B, T, H, D) that depends neither on the text nor on the
    position: that of its mean vector."""
    y = y.flatten(0, 1).flatten(1)  # (B T, H D)
    return (y.mean(0).square().sum() / y.square().sum(1).mean()).item()


def live(profile, plans, seeds):
    """The rows of these plans with seeds 0, 1, …, by seed: trained where the cache lacks them."""
    shape, settings = SHAPES[profile], SETTINGS[profile]
    # both decide how sums are rounded
    made_by = torch.__version__.split("+")[0], torch.get_num_threads()
    path = files.runs_folder() / "village" / f"{files.digest(shape, settings, made_by)}.json"
    with contextlib.redirect_stdout(io.StringIO()):  # it reports seconds, which are no result
        grid(path, plans, [shape], range(seeds), **settings)
    kept = [row for row in records.read(path)["rows"] if row["seed"] < seeds]
    return sorted(kept, key=lambda row: row["seed"])


def by_size(rows):
    """The bypass against standard in F1, paired by seed: a row for every size that has both."""
    found = []
    for size in SIZES:
        of_size = [row for row in rows if row["size"] == size]
        for row in intervals.paired(of_size, "f1", plans=["bypass"]) if of_size else []:
            found.append(row | dict(plan=f"{size}, bypass"))
    return found


# ---- the command --------------------------------------------------------------------------------
def sizes_of(text):
    """2x32,4x64 -> [(2, 32), (4, 64)]."""
    if not re.fullmatch(r"[1-9]\d*x[1-9]\d*(,[1-9]\d*x[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f"wanted LAYERSxWIDTH as in 2x32,4x64, got {text!r}")
    return [tuple(map(int, size.split("x"))) for size in text.split(",")]


def json_file(text):
    if not text.endswith(".json"):
        raise argparse.ArgumentTypeError(f"wanted a file that ends in .json, got {text!r}")
    return Path(text)


def options(parser):
    add, at_least_1 = parser.add_argument, number(int, least=1)
    add("--plans", nargs="+", default=["standard", "bypass"], choices=PLANS)
    add("--sizes", type=sizes_of, default=",".join(SIZES), help="LAYERSxWIDTH with commas between")
    add("--seeds", type=at_least_1, default=5)
    add("--out", type=json_file, default=str(records.MEASURED / "bypass.json"))
    add("--threads", type=at_least_1, default=2)
    add("--minutes", type=number(float, above=0))
    for name, value in (SET | RUN).items():
        kind = number(float, above=0) if name in ("masked_lr", "lr") else at_least_1
        kind = number(int, least=0) if name == "masked" else kind
        add(f"--{name.replace('_', '-')}", type=kind, default=value)


@command("evidence.measured.bypass_seeds", __doc__)
def main(parser, argv):
    options(parser)
    asked = parser.parse_args(argv)
    torch.set_num_threads(asked.threads)
    settings = {name: getattr(asked, name) for name in SET | RUN}
    grid(asked.out, asked.plans, asked.sizes, range(asked.seeds), asked.minutes, **settings)
    rows = records.read(asked.out)["rows"] if asked.out.exists() else []
    for size, told in table(rows)[1].items():
        print(size, *(significance.sentence(row) for row in told), sep="\n  ")


if __name__ == "__main__":
    main()
