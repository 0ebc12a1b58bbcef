"""Is the bypass better, or only less sure of itself? The report's Table 1 in small: sizes x paired seeds x plans.

    nice -n 15 python -m minimal.lab.evidence.bypass_seeds --seeds 5 --threads 1 --minutes 60

Every run is whole: its own first weights, masked pieces on the village's questions and passages (minimal.tasks.village), then
spans. Seeds are paired: one seed gives all plans the same first weights, masks and batches. A finished run is recorded
at once, and the next call goes on with the cells that are missing.
"""

import argparse
import json
import math
import time
from functools import lru_cache
from pathlib import Path

import torch

from minimal.data import files, results
from minimal.data.files import digest
from minimal.encoder import bert, bypass
from minimal.encoder.finetune import Spans, finetune
from minimal.encoder.pretrain import RECIPE, fit, on_windows
from minimal.encoder.wordpiece import learn_pieces
from minimal.lab.evidence import intervals, records
from minimal.model.config import Config
from minimal.tasks import squad, village

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

RAMPED = {
    "bypass-warmup": "warmup",
    "bypass-decay": "decay",
}  # over the masked pieces; the spans keep where it ends

SET = dict(level=2, paragraphs=4000, test=250, vocab=700)  # of the village

SIZES = (
    "2x32",
    "4x64",
    "6x96",
)  # layers x width, in heads of 32: a small, a medium and a large one

RUN = dict(
    masked=300, spans=600, batch=32, masked_lr=4e-3, lr=2e-3
)  # steps; the rates are for 64 and fall as 1/C


def texts(level, paragraphs, test, vocab):
    """(training questions, test questions, vocabulary, fingerprint) of a generated set."""
    trees = [
        village.make(level, count, 0, split)
        for count, split in ((paragraphs, "train"), (test, "test"))
    ]
    train, held = (squad.read(tree, files.Report()) for tree in trees)
    pieces = learn_pieces(
        [*dict.fromkeys(q.context for q in train), *(q.question for q in train)], vocab
    )
    return train, held, pieces, digest(*(json.dumps(tree) for tree in trees), pieces.fingerprint)


@lru_cache(maxsize=1)
def village_task(**settings):
    """(task, fingerprint); the entities of its test questions never occur in training."""
    train, held, pieces, fingerprint = texts(**settings)
    return Spans(train, held, pieces, length=512), fingerprint


def model_of(plan, layers, width, task, seed=0):
    context = max(task.rows.ids.shape[1], task.held.ids.shape[1])
    config = Config(
        layers, width, max(1, width // 32), context, task.pieces.vocab, style="bert", windows="L"
    )
    return bert.build(PLANS.get(plan, plan), config, seed=seed)


def run(plan, layers, width, seed, **changes):
    """One whole run: -> (the row for the record, the model). `variances`, a layer: Var V, a² Var R, 2a Cov(V, R) for
    a = 1/2 and R = relu(X), whether the plan adds it or not, and the variance of what the layer attends to."""
    how = RUN | {name: value for name, value in changes.items() if name in RUN}
    masked_lr, lr = (how[name] * 64 / width for name in ("masked_lr", "lr"))
    task, _ = village_task(**SET | {name: value for name, value in changes.items() if name in SET})
    model, start = model_of(plan, layers, width, task, seed), time.perf_counter()
    masked = (
        fit(
            model,
            on_windows(model, task.pieces, task.rows, how["batch"], seed),
            how["masked"],
            seed=seed,
            lr=masked_lr,
            ramp=RAMPED.get(plan),
        )
        if how["masked"]
        else []
    )
    got = finetune(
        model, task, steps=how["spans"], batch=how["batch"], lr=lr, seed=seed, recipe=RECIPE
    )
    tail = lambda losses: sum(losses[-50:]) / len(losses[-50:]) if losses else None
    ids = task.held.ids[:64, : int(task.held.lengths[:64].min())]
    values = [
        [round(row[name], 5) for name in ("v", "r", "cross", "attended")]
        for row in bypass.spread(model, ids)
    ]
    learned = {
        name: [round(x, 4) for x in c.detach().flatten().tolist()]
        for name, c in model.coefficients().items()
    }
    return dict(
        plan=plan,
        size=f"{layers}x{width}",
        seed=seed,
        steps=how["masked"] + how["spans"],
        f1=got["f1"],
        exact=got["exact"],
        masked_loss=tail(masked),
        span_loss=tail(got["losses"]),
        alpha=learned or None,
        variances=values,
        parameters=sum(p.numel() for p in model.parameters()),
        seconds=round(time.perf_counter() - start, 1),
    ), model


# ---- the grid ---------------------------------------------------------------------------------------------------
def grid(path, plans, sizes, seeds, minutes=None, **changes):
    """Fill the missing cells of an evidence file, seed by seed, so that a partial grid is paired everywhere."""
    path = Path(path)
    settings = SET | RUN | changes
    task, fingerprint = village_task(**{name: settings[name] for name in SET})
    corpus = dict(
        name=f"minimal.tasks.village level {settings['level']}",
        fingerprint=fingerprint,
        tokens=int(task.rows.lengths.sum()),
    )
    head = results.header(
        "BERT with and without the value bypass on the generated extractive-QA set: masked pieces, then spans, F1 on "
        "held-out entities",
        "python -m minimal.lab.evidence.bypass_seeds",
        corpus,
    ) | dict(settings=settings)
    if path.exists() and (kept := records.read(path))["settings"] != settings:
        raise ValueError(
            f"{path.name} was recorded with other settings ("
            + ", ".join(
                f"{k} {kept['settings'].get(k)}, here {v}"
                for k, v in settings.items()
                if kept["settings"].get(k) != v
            )
            + "); give it a file of its own"
        )
    until = time.monotonic() + 60 * minutes if minutes else math.inf
    cells = [(plan, *size, seed) for seed in seeds for size in sizes for plan in plans]

    def recorded(row, cell):
        plan, layers, width, seed = cell
        return (row["plan"], row["size"], row["seed"]) == (plan, f"{layers}x{width}", seed)

    def make(cell):
        row, _ = run(*cell, **changes)
        return row, head, f"{row['size']}, F1 {row['f1']:.2f} ({row['seconds']:.0f} s)"

    if not records.missing(path, cells, recorded):
        print(f"{path.name}: whole, nothing to do")
    elif records.fill(path, cells, recorded, make, until):
        print("time is up; the same command goes on from here")


def table(rows, metric="f1", baseline="standard"):
    """{size: {plan: scores by seed}} and, size by size, what stats.compare says."""
    groups = {}
    for row in sorted(rows, key=lambda r: (r["size"], r["seed"])):
        groups.setdefault(row["size"], {}).setdefault(row["plan"], []).append(row[metric])
    return groups, {
        size: intervals.compare(group, baseline)
        for size, group in groups.items()
        if baseline in group
    }


def draw_variances(rows, title, metric="f1"):
    """The two variances that the report takes for one: of the values inside a run, and of the scores between runs.
    Every run a mark; if wide values made scores uncertain, marks would fan out to the right."""
    from minimal.lab import figures

    fig, ax = figures.axes(
        title,
        "Var of what is attended to / Var of W_V x, mean over layers",
        f"{metric.upper()} less its group's mean",
    )
    groups = {}
    for row in rows:
        groups.setdefault((row["plan"], row["size"]), []).append(row)
    names = list(dict.fromkeys(row["plan"] for row in rows))
    for (plan, _), group in groups.items():
        mean, i = sum(row[metric] for row in group) / len(group), names.index(plan)
        ratios = [
            sum(attended / v for v, _, _, attended in row["variances"]) / len(row["variances"])
            for row in group
        ]
        ax.plot(
            ratios,
            [row[metric] - mean for row in group],
            figures.MARKS[i % 8],
            color=figures.COLOURS[i % 8],
            linestyle="none",
            label=plan,
        )
    handles = dict(zip(*reversed(ax.get_legend_handles_labels())))  # one entry a plan
    ax.legend(handles.values(), handles.keys(), fontsize=9)
    ax.axhline(0, color=figures.INK, linewidth=1)
    return fig


def main():
    ask = argparse.ArgumentParser(
        prog="python -m minimal.lab.evidence.bypass_seeds", description=__doc__.splitlines()[0]
    )
    ask.add_argument("--plans", nargs="*", default=["standard", "bypass"], choices=PLANS)
    ask.add_argument("--sizes", default=",".join(SIZES), help="LAYERSxWIDTH with commas between")
    ask.add_argument("--seeds", type=int, default=5)
    ask.add_argument("--out", default=str(records.EVIDENCE / "bypass.json"))
    ask.add_argument("--threads", type=int, default=2)
    ask.add_argument("--minutes", type=float)
    for name, value in (SET | RUN).items():
        ask.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    asked = vars(ask.parse_args())
    torch.set_num_threads(asked.pop("threads"))
    sizes = [tuple(map(int, size.split("x"))) for size in asked.pop("sizes").split(",")]
    out = asked.pop("out")
    grid(out, asked.pop("plans"), sizes, range(asked.pop("seeds")), asked.pop("minutes"), **asked)
    for size, rows in table(records.read(out)["rows"])[1].items():
        print(size, *(intervals.sentence(row) for row in rows), sep="\n  ")


if __name__ == "__main__":
    main()
