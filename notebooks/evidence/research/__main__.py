"""What is recorded, what is missing, and how is one more run recorded, or an old one repeated?

python -m evidence.research                                what is recorded, what is missing
python -m evidence.research --record --minutes 60          go on with what is missing, in order
python -m evidence.research --repeat thirteen_rows bov 2   train a recorded row again

On a GPU a step is one CUDA graph, and MINIMAL_COMPUTE=float32 keeps the numbers near a CPU's.
"""

import importlib.util
import re
import sys
import time

import torch

from course import records
from evidence.lab import record as to_the_table
from evidence.lab.asked import grids
from evidence.research import repeats
from evidence.research.grids import EXPLORATORY, GRIDS, WAR
from minimal.command import command, number
from minimal.compare import ledger
from minimal.compare.budgets import shape
from minimal.compare.runs import lacking, missing_runs, record


def path_of(name):
    return records.EVIDENCE / f"{name}.json"


# ---- what is there -------------------------------------------------------------------------------


def pace():
    """Seconds a FLOP on one core of this machine, as the grids are recorded: one thread a run."""
    from minimal.bench.bench import training

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = training(WAR.size, batch=WAR.batch, repeats=8)
    finally:
        torch.set_num_threads(threads)
    return 1 / (found["tokens_per_second"] * shape(WAR)["flops_per_token"])


def work(run, counted):
    """Counted FLOPs of a run of that shape: its steps, and for every token evaluated a third of
    what a token of a step takes."""
    held = run.rows * (run.steps // run.evaluate) / 3
    rows = run.steps * run.batch + held
    return counted["flops_per_token"] * counted["context"] * rows


def all_work(runs, shapes):
    """FLOPs of many runs; `shapes` keeps what was counted, since a seed does not change a shape."""
    total = 0.0
    for run in runs:
        cell = run.plan, run.size, str(run.config())
        if cell not in shapes:
            shapes[cell] = shape(run)
        total += work(run, shapes[cell])
    return total


def status():
    """What is recorded, what is missing, and how long the rest would take here, on one core."""
    seconds_a_flop, all_hours, shapes = pace(), 0.0, {}
    for name, grid in GRIDS.items():
        todo, total = missing_runs(grid, path_of(name)), len(list(grid.runs()))
        hours = seconds_a_flop * all_work(todo, shapes) / 3600
        all_hours += hours
        rest = f"{hours:5.1f} h here" if todo else "whole"
        rest += several_commits(ledger.rows_of(path_of(name)))
        what = f"{grid.what} ({grid.kind})" if grid.kind == EXPLORATORY else grid.what
        print(f"{name:16}{total - len(todo):4} of {total:3} runs recorded   {rest:14}{what}")
    print(
        f"the rest: about {all_hours:.1f} h on one core; OMP_NUM_THREADS=1 "
        "python -m evidence.research --record goes on, and several of these commands share the "
        "work; python -m evidence.research.verdicts then brings the claims up to date"
    )
    for path in sorted(records.EVIDENCE.glob("*.json")):
        if path.stem not in (*GRIDS, "claims", "published"):
            content = records.read(path)
            rows, command = len(content["rows"]), content["command"]
            print(f"{path.stem:16}{rows:4} rows             {command}{a_name_of_then(command)}")


def a_name_of_then(command):
    """A record keeps the words that made it, and some of those modules have moved since."""
    found = re.search(r"-m ([\w.]+)", command)
    try:
        here = not found or importlib.util.find_spec(found[1])
    except ModuleNotFoundError:  # its folder is not there either
        here = False
    return "" if here else "  (its name then; git log has it)"


def several_commits(rows):
    """A warning where the rows of one file were made by code of several commits."""
    found = records.commits(rows)
    return f", {len(found)} commits " if len(found) > 1 else ""


# ---- what the options do -------------------------------------------------------------------------


def record_grids(names, words, until):
    for name in names:
        grid, before = GRIDS[name], len(missing_runs(GRIDS[name], path_of(name)))
        if not before:
            rows = len(ledger.rows_of(path_of(name)))
            print(f"{name}: whole, {rows} rows; nothing to do (--repeat trains a row again)")
            continue
        here = ledger.numerical_state()["machine"]
        if grid.on not in here and len(names) > 1:
            print(f"{name}: left out, since it wants a machine that says {grid.on}")
            continue
        if name in grids():
            print(f"{name}: {to_the_table.record(grids()[name], words, until)} runs to go")
            continue
        grid.check_machine(here, f"start the command with ATEN_CPU_CAPABILITY={grid.on.lower()}")
        to_go, diverged = record(grid, path_of(name), words, until)
        rest = lacking(to_go, diverged) or "whole now"
        print(f"{name}: {before - to_go - len(diverged)} runs recorded, {rest}", flush=True)


def repeat_row(parser, asked, words):
    """--repeat GRID PLAN SEED, with a number where a plan has several runs."""
    if len(asked.repeat) not in (3, 4) or asked.repeat[0] not in GRIDS:
        parser.error(f"--repeat wants GRID PLAN SEED [NUMBER], GRID one of {', '.join(GRIDS)}")
    name, plan, *numbers = asked.repeat
    if not all(text.isdecimal() for text in numbers):
        parser.error(f"--repeat wants whole numbers after the plan, got {' '.join(numbers)}")
    floor = repeats.noise_floor()
    row = repeats.repeat(name, plan, *map(int, numbers), minutes=asked.minutes, command=words)
    print(repeats.sentences(row, floor))


@command("evidence.research", __doc__)
def main(parser, argv):
    parser.add_argument(
        "--record",
        nargs="*",
        metavar="GRID",
        choices=GRIDS,
        help=f"go on with these (default all): {', '.join(GRIDS)}",
    )
    parser.add_argument(
        "--repeat",
        nargs="+",
        metavar=("GRID", "PLAN SEED"),
        help="train this recorded row again and say how far it lies from the record",
    )
    parser.add_argument(
        "--minutes",
        type=number(float, above=0),
        help="stop cleanly after so long; the next call goes on",
    )
    asked = parser.parse_args(argv)
    words = " ".join(["python -m evidence.research", *argv])
    until = float("inf") if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    if asked.record is not None:
        record_grids(asked.record or GRIDS, words, until)
    elif asked.repeat:
        repeat_row(parser, asked, words)
    else:
        status()


if __name__ == "__main__":
    sys.exit(main())
