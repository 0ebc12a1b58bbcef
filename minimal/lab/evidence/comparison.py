"""Which of my plans is better, at equal what? A comparison of your own: matched and paired.

python -m minimal.lab.evidence --plans standard bov --match flops --budget 3e13 --seeds 0 1 2
"""

import json
from dataclasses import replace
from pathlib import Path

from minimal.data import results
from minimal.data.files import digest, once, runs_folder, write_whole
from minimal.lab.evidence import intervals, records
from minimal.lab.evidence.budgets import MATCH
from minimal.lab.evidence.curves import relative
from minimal.lab.evidence.grids import Grid
from minimal.lab.evidence.runs import record
from minimal.model.count import settings_of
from minimal.training.run import Run
from minimal.variants import skeleton


def compare(asked, command, until):
    """Train what was asked for, as far as time allows, and say what is there."""
    names = list(dict.fromkeys([asked.baseline, *asked.plans]))
    base = Run(
        size=asked.size, corpus=asked.corpus, batch=asked.batch, vocab=asked.vocab, evaluate=10**9
    )
    plans = [settings_of(skeleton(name, asked.size)) for name in names]
    where = asked.size, asked.corpus, asked.batch, asked.vocab
    key = digest(names, plans, asked.match, asked.budget, *where)
    path = Path(asked.out or runs_folder() / "evidence" / f"{key}.json")
    if path.suffix != ".json":
        raise ValueError(f"wanted a file that ends in .json, got {path}: name another --out")
    results.check_target(path)
    what = f"{asked.match}-matched at {asked.budget:g}"
    if records.rows_of(path) and (held := records.read(path)["what"]) != what:
        raise ValueError(
            f"{path} holds runs that are {held}, and these are {what}: name another --out"
        )

    # which runs spend the budget: kept, since a second measurement of time would find other steps
    def match(part):
        runs = [MATCH[asked.match](replace(base, plan=name), asked.budget) for name in names]
        cells = [dict(plan=run.plan, steps=run.steps, changes=run.changes) for run in runs]
        part.write_text(json.dumps(cells))

    cells = json.loads(once(path.with_suffix(f".{key}.cells"), match).read_text())

    # train them, and show what is there
    to_go = record(Grid(what, cells, tuple(asked.seeds), base), path, command, until)
    if path.exists():
        rows = records.read(path)["rows"]
        print_table(rows, asked.baseline)
        draw(rows, asked.baseline, path.with_suffix(""))
        more = f"; {to_go} runs to go: the same command goes on" if to_go else ""
        print(f"written: {path}; figures in {path.with_suffix('')}/{more}")


def recorded(grid, base, *plans):
    """Print the paired differences from `base` that a recorded grid has for these plans, as they
    are (rows with changes aside); {plan: row of intervals.paired}, {} where nothing is recorded."""
    rows = records.rows_of(records.EVIDENCE / f"{grid}.json")
    rows = [row for row in rows if "changes" not in row["asked"]]
    table = intervals.paired(rows, "loss", base) if rows else []
    found = {row["plan"]: row for row in table if row["n"]}
    if not found:
        print(f"{grid}: not recorded yet")
    for plan in (plan for plan in plans if plan in found):
        row = found[plan]
        reach = "one seed, no interval"
        if row["low"] is not None:
            reach = f"{row['low']:+.3f} to {row['high']:+.3f}"
        words = f"{row['difference']:+.3f} nats ({reach}, n = {row['n']})"
        print(f"{grid:22} {plan:12} minus {base}: {words}")
    return found


def print_table(rows, baseline):
    print(
        f"{'plan':20}{'n':>3}{'nats':>9}{'spread':>9}{'minus ' + baseline:>18}   "
        "95 % interval of the paired difference"
    )
    for row in intervals.paired(rows, "loss", baseline):
        known = f"{row['plan']:20}{row['n']:3}{row['mean']:9.4f}{row['spread'] or 0:9.4f}"
        change = "" if row["difference"] is None else f"{row['difference']:+.4f}"
        print(f"{known}{change:>18}   {verdict(row, baseline)}")


def verdict(row, baseline):
    """The interval of a difference in words."""
    if row["difference"] is None:
        return f"no {baseline} to pair it with yet"
    if row["low"] is None:
        return "one seed: no interval"
    unclear = not row["clear"] and row["plan"] != baseline
    return f"{row['low']:+.4f} … {row['high']:+.4f}" + "   not distinguishable here" * unclear


def draw(rows, baseline, folder):
    """Loss and relative loss against steps, tokens and FLOPs, as pictures in `folder`."""
    from minimal.lab import figures

    def picture(name, series, title, xlabel, ylabel):
        fig = figures.lines(series, title, xlabel, ylabel)
        write_whole(folder / f"{name}.svg", figures.picture(fig, "svg"), is_picture)

    folder.mkdir(parents=True, exist_ok=True)
    seed = min(row["seed"] for row in rows)
    first = {row["plan"]: row for row in rows if row["seed"] == seed}

    # every plan's loss, against what it was given
    for axis in ("steps", "tokens", "flops"):
        series = {plan: (along(row, axis), row["train"]) for plan, row in first.items()}
        picture(f"loss-{axis}", series, "Training loss", axis, "nats a token")

    # less the baseline's, where all curves are of one length
    base = first.pop(baseline, None)
    lengths = {len(row["train"]) for row in first.values()}
    if base is None or lengths != {len(base["train"])}:
        return
    window = min(5, len(base["train"]))
    series = {plan: relative(row["train"], base["train"], window) for plan, row in first.items()}
    title = f"Below zero: ahead of {baseline}"
    picture("relative", series, title, f"{base['every']} steps", "nats")


def is_picture(path):
    return b"<svg" in path.read_bytes()[:2000]


def along(row, axis):
    """Where the points of a row's thinned curve lie on an axis: in the middle of what each sums."""
    a_point = row[axis] * row["every"] / row["steps"]
    return [a_point * (i + 0.5) for i in range(len(row["train"]))]
