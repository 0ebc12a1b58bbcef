"""Which system is better, at equal what, and how sure are we? `make evidence` and comparisons of your own.

python -m minimal.lab.evidence                                   what is recorded, what is missing, how long it would take
python -m minimal.lab.evidence --record --minutes 60             go on with what is missing, in order
python -m minimal.lab.evidence --plans standard bov --match flops --budget 3e13 --seeds 0 1 2     a comparison of your own
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from minimal.data.files import digest, once, runs_folder
from minimal.lab.evidence import intervals, records
from minimal.lab.evidence.budgets import MATCH, shape, work
from minimal.lab.evidence.grids import GRIDS, WAR, Grid
from minimal.lab.evidence.runs import missing, record
from minimal.model.count import settings_of
from minimal.training.run import Run, Stop
from minimal.variants import skeleton


def pace():
    """Seconds a FLOP on one core of this machine: warm training steps of the size that the grids train."""
    from minimal.lab.speed.bench import training

    threads = torch.get_num_threads()
    torch.set_num_threads(
        1
    )  # as the grids are recorded: one thread a run, and several runs at a time
    try:
        found = training(WAR.size, batch=WAR.batch, repeats=8)
    finally:
        torch.set_num_threads(threads)
    return 1 / (found["tokens_per_second"] * shape(WAR)["flops_per_token"])


def all_work(todo, shapes):
    """FLOPs of many runs; `shapes` keeps what was counted, since seeds, rates and texts do not change a shape."""
    total = 0.0
    for run in todo:
        cell = run.plan, run.size, str(run.config())
        shapes[cell] = shapes.get(cell) or shape(run)
        total += work(run, shapes[cell])
    return total


def status():
    """What is recorded, what is missing, and how long the rest would take here, on one core."""
    here, whole, shapes = pace(), 0.0, {}
    for name, grid in GRIDS.items():
        total, todo = len(list(grid.runs())), missing(grid, records.EVIDENCE / f"{name}.json")
        hours = here * all_work(todo, shapes) / 3600
        whole += hours
        rest = f"{hours:5.1f} h here" if todo else "whole"
        print(f"{name:16}{total - len(todo):4} of {total:3} runs recorded   {rest:14}{grid.what}")
    print(
        f"the rest: about {whole:.1f} h on one core; OMP_NUM_THREADS=1 python -m minimal.lab.evidence --record goes on, and"
    )
    print(
        "several of these commands share the work; python -m minimal.lab.evidence.verdicts then brings the claims up to date"
    )
    for path in sorted(records.EVIDENCE.glob("*.json")):
        if path.stem not in (*GRIDS, "claims", "published"):
            content = records.read(path)
            print(f"{path.stem:16}{len(content['rows']):4} rows             {content['command']}")


def table(rows, baseline):
    print(
        f"{'plan':20}{'n':>3}{'nats':>9}{'spread':>9}{'minus ' + baseline:>18}   "
        "95 % interval of the paired difference"
    )
    for r in intervals.paired(rows, "loss", baseline):
        if r["difference"] is None:
            print(
                f"{r['plan']:20}{r['n']:3}{r['mean']:9.4f}{r['spread'] or 0:9.4f}{'':18}   no {baseline} to pair it with yet"
            )
            continue
        if r["low"] is None:
            interval = "one seed: no interval"
        else:
            unclear = "" if r["clear"] or r["plan"] == baseline else "   not distinguishable here"
            interval = f"{r['low']:+.4f} … {r['high']:+.4f}{unclear}"
        print(
            f"{r['plan']:20}{r['n']:3}{r['mean']:9.4f}{r['spread'] or 0:9.4f}{r['difference']:+18.4f}   {interval}"
        )


def draw(rows, baseline, folder):
    """Loss and relative loss against steps, tokens and FLOPs, as pictures in `folder`."""
    from minimal.lab import figures
    from minimal.lab.evidence.curves import relative

    def picture(name, *lines):
        (folder / f"{name}.svg").write_bytes(figures.picture(figures.lines(*lines), "svg"))

    folder.mkdir(parents=True, exist_ok=True)
    seed = min(r["seed"] for r in rows)
    first = {r["plan"]: r for r in rows if r["seed"] == seed}
    for axis in ("steps", "tokens", "flops"):
        series = {
            p: (
                [r[axis] * (i + 0.5) * r["every"] / r["steps"] for i in range(len(r["train"]))],
                r["train"],
            )
            for p, r in first.items()
        }
        picture(f"loss-{axis}", series, "Training loss", axis, "nats a token")
    base = first.get(baseline)
    if (
        len(first) > 1
        and base
        and all(len(r["train"]) == len(base["train"]) for r in first.values())
    ):
        window = min(5, len(base["train"]))
        series = {
            p: relative(r["train"], base["train"], window)
            for p, r in first.items()
            if p != baseline
        }
        picture(
            "relative", series, f"Below zero: ahead of {baseline}", f"{base['every']} steps", "nats"
        )


def compare(asked, command, until):
    """Train what was asked for, as far as time allows, and say what is there."""
    if asked.budget <= 0:
        raise ValueError(f"a budget must be above 0, not {asked.budget:g}")
    names = [asked.baseline, *(p for p in asked.plans if p != asked.baseline)]
    base = Run(
        size=asked.size, corpus=asked.corpus, batch=asked.batch, vocab=asked.vocab, evaluate=10**9
    )
    plans = [settings_of(skeleton(plan, asked.size)) for plan in names]
    name = digest(
        names, plans, asked.match, asked.budget, asked.size, asked.corpus, asked.batch, asked.vocab
    )
    path = Path(asked.out or runs_folder() / "evidence" / f"{name}.json")

    def match(part):
        matched = [MATCH[asked.match](replace(base, plan=name), asked.budget) for name in names]
        part.write_text(
            json.dumps(
                [dict(plan=run.plan, steps=run.steps, changes=run.changes) for run in matched]
            )
        )

    cells = json.loads(
        once(path.with_suffix(f".{name}.cells"), match).read_text()
    )  # a clock would not say the same twice
    what = f"{asked.match}-matched at {asked.budget:g}"
    if path.exists() and (held := records.read(path)["what"]) != what:
        raise ValueError(
            f"{path} holds runs that are {held}, and these are {what}: name another --out"
        )
    left = record(Grid(what, cells, tuple(asked.seeds), base), path, command, until)
    if path.exists():
        rows = records.read(path)["rows"]
        table(rows, asked.baseline)
        draw(rows, asked.baseline, path.with_suffix(""))
        print(
            f"written: {path}; figures in {path.with_suffix('')}/"
            + (f"; {left} runs to go: the same command goes on" if left else "")
        )


def main(argv=None):
    ask = argparse.ArgumentParser(
        prog="python -m minimal.lab.evidence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ask.add_argument(
        "--record",
        nargs="*",
        metavar="GRID",
        choices=GRIDS,
        help=f"go on with these (default all): {', '.join(GRIDS)}",
    )
    ask.add_argument("--plans", nargs="+", metavar="PLAN", help="compare these")
    ask.add_argument("--match", choices=MATCH, default="tokens")
    ask.add_argument(
        "--budget",
        type=float,
        default=512_000,
        help="steps, tokens (also for parameters), FLOPs or seconds a run",
    )
    ask.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    ask.add_argument("--baseline", default="standard")
    ask.add_argument("--size", default="tiny")
    ask.add_argument("--corpus", default="auto")
    ask.add_argument("--batch", type=int, default=16)
    ask.add_argument("--vocab", type=int, help="default: the size's")
    ask.add_argument(
        "--minutes", type=float, help="stop cleanly after so long; the next call goes on"
    )
    ask.add_argument("--out", help="evidence file (default: under $MINIMAL_RUNS)")
    asked = ask.parse_args(argv)
    command = " ".join(
        ["python -m minimal.lab.evidence", *(sys.argv[1:] if argv is None else argv)]
    )
    until = float("inf") if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    try:
        if asked.record is not None:
            for name in asked.record or GRIDS:
                record(GRIDS[name], records.EVIDENCE / f"{name}.json", command, until)
        elif asked.plans:
            compare(asked, command, until)
        else:
            status()
    except (ValueError, KeyError, OSError, Stop) as error:
        sys.exit(f"evidence: {error}")


if __name__ == "__main__":
    main()
