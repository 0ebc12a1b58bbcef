"""Record a grid of asked/*.toml: train what its file of the table lacks, one run at a time.

    python -m evidence.lab.record                       what is recorded, what is missing
    python -m evidence.lab.record fair_finer_code       go on with these grids
    python -m evidence.lab.record dose_code --minutes 60
    python -m evidence.lab.record --again dose_code standard 2      a recorded run once more

Each run is a line of runs/TOPIC.jsonl as soon as it is trained, so the same command goes on where
it was stopped, and several of them share the work. Commit the grid before its first run: the badge
"asked before" is what git says of the commit that every row names.
"""

import json
import sys
import time
from dataclasses import replace

from course import records
from evidence.lab.asked import grids
from minimal.command import command, number
from minimal.data.files import append_lines, locked, write_whole


def recorded(name):
    """{(plan, seed, what was asked)} of the runs of a grid that the table has."""
    return {key_of(run) for run in records.recorded_runs() if run["grid"] == name}


def key_of(run):
    asked = {name: run[name] for name in records.ASKED if name in run}
    return run["plan"], run["seed"], json.dumps(asked, sort_keys=True)


def key_of_run(run):
    from minimal.compare.runs import asked_of

    return str(run.plan), run.seed, json.dumps(asked_of(run), sort_keys=True)


def missing(grid):
    """The runs of a grid that the table lacks."""
    there = recorded(grid.name)
    return [run for run in grid.runs() if key_of_run(run) not in there]


# ---- one run -------------------------------------------------------------------------------------


def line_of(grid, run, result, study):
    """A run as a line of the table."""
    from minimal.compare.runs import asked_of, row_of

    row = row_of(run, result) | study(result)
    row.pop("asked")
    first = dict(grid=grid.name, **{name: row.pop(name) for name in ("plan", "size", "seed")})
    row.pop("steps")
    return json.loads(json.dumps(first | asked_of(run) | row))


def study_of(grid):
    """What is measured of a trained model beside its losses."""
    from evidence.lab import studies

    if grid.study and not hasattr(studies, grid.study):
        raise ValueError(f"{grid.name}: wanted a study, got {grid.study!r}: name one of studies.py")
    return getattr(studies, grid.study) if grid.study else lambda result: {}


def ready(run):
    """The run with its plan, where that is one of our own; texts of our own are known then, too."""
    from evidence.lab import plans
    from evidence.measured import derived  # noqa: F401 whose names of texts are then known

    return replace(run, plan=plans.OURS.get(run.plan, run.plan))


def of_another_grid(grid, run):
    """(its line, its corpus) if another grid with the same study has this very run, trained in the
    state of the numbers that is here: it need not be trained twice. Else None; so where the
    question is how far a second training falls from the first."""
    from evidence.lab.table import known_states, state_of
    from minimal.compare import ledger
    from minimal.data import corpora

    states, known, asked = known_states(), grids(), key_of_run(run)
    here = state_of(ledger.numerical_state(), states)
    if grid.rates == "again" or here is None:
        return None
    for line in records.recorded_runs():
        other = known.get(line["grid"])
        same_question = other and other.study == grid.study and key_of(line) == asked
        if same_question and state_of(line, states) == here:
            corpus = records.recordings()[other.name]["corpus"]
            if corpora.find(run.corpus, run.tokens).fingerprint == corpus["fingerprint"]:
                return line | dict(grid=grid.name), corpus
    return None


def trained_now(grid, run, study, minutes):
    """(its line, its corpus); None while another process trains that run."""
    from minimal.compare.runs import cached

    result = cached(ready(run), minutes, True, wait=False)
    if result is None:
        return None
    return line_of(grid, run, result, study), result["corpus"]


def check_machine(grid, machine):
    if grid.machine not in machine:
        raise ValueError(f"{grid.name}: wanted a machine that says {grid.machine}, got {machine}")


def note_recording(grid, command, corpus):
    """The first run of a grid says where it comes from: corpus, hardware, versions."""
    from minimal.data import results

    path = records.RUNS / "recordings.json"
    with locked(path):
        heads = records.recordings()
        if grid.name in heads:
            theirs = heads[grid.name]["corpus"]
            if theirs["fingerprint"] != corpus["fingerprint"]:
                raise ValueError(
                    f"{grid.name} holds runs on corpus {theirs['name']} ({theirs['fingerprint']}), "
                    f"this one is from {corpus['fingerprint']}: take that text, or a new grid"
                )
            return
        head = results.header(grid.what, command, corpus)
        head.pop("rows")
        heads[grid.name] = dict(topic=grid.topic) | head
        lines = (
            f" {json.dumps(name)}: {json.dumps(told, ensure_ascii=False)}"
            for name, told in heads.items()
        )
        write_whole(path, "{\n" + ",\n".join(lines) + "\n}\n")


def record(grid, command, until=float("inf")):
    """Train what is missing -> how many runs are to go."""
    from minimal.compare import ledger
    from minimal.training.run import Diverged, TimeIsUp

    check_machine(grid, ledger.numerical_state()["machine"])
    study = study_of(grid)
    for run in missing(grid):
        left = until - time.monotonic()
        if left <= 0:
            break
        try:
            minutes = None if left == float("inf") else left / 60
            made = of_another_grid(grid, run) or trained_now(grid, run, study, minutes)
        except TimeIsUp as why:
            print(f"{str(run.plan):20} seed {run.seed}: {why}", flush=True)
            break
        except Diverged as why:  # it must not block the runs behind it
            print(f"{str(run.plan):20} seed {run.seed}: {why}", flush=True)
            continue
        if made is None or key_of_run(run) in recorded(grid.name):
            continue  # another process trains it, or has recorded it
        line, corpus = made
        check_machine(grid, line.get("machine", "none"))
        note_recording(grid, command, corpus)
        with locked(records.RUNS / grid.name):
            if key_of_run(run) in recorded(grid.name):
                continue  # another process measured the same model, and was first
            append_lines(records.RUNS / f"{grid.topic}.jsonl", [line])
        print(f"{line['plan']:20} seed {line['seed']}: {line['loss']:.4f} nats", flush=True)
    return len(missing(grid))


# ---- a recorded run once more --------------------------------------------------------------------


def again(grid, plan, seed, number, command, minutes=None):
    """Train a recorded run anew beside its record -> its row, which says how far the two lie apart.
    `number` (from 1) chooses where a plan has several runs of that seed."""
    from minimal.compare import ledger
    from minimal.compare.runs import in_folder, row_of, run_key
    from minimal.data import corpora, files, results
    from minimal.train import Trainer

    lines = {key_of(line): line for line in records.recorded_runs() if line["grid"] == grid.name}
    runs = [run for run in grid.runs() if (str(run.plan), run.seed) == (plan, seed)]
    runs = [run for run in runs if key_of_run(run) in lines]
    if not 1 <= number <= len(runs):
        raise ValueError(
            f"wanted a number from 1 to {len(runs)}, as many runs of {plan} with seed {seed} are "
            f"recorded in {grid.name}; got {number}"
        )
    run = ready(runs[number - 1])
    recorded = lines[key_of_run(run)]
    theirs, here = records.recordings()[grid.name]["corpus"], corpora.find(run.corpus, run.tokens)
    if here.fingerprint != theirs["fingerprint"]:
        raise ValueError(
            f"wanted corpus {theirs['name']} ({theirs['fingerprint']}), on which {grid.name} is "
            f"recorded; got {here.name} ({here.fingerprint}): take the text of the record"
        )
    folder = files.runs_folder() / "repeated" / f"{run.plan}-{run_key(run, here.fingerprint)}"
    with files.locked(folder):
        result = Trainer(in_folder(run, folder), quiet=True).fit(minutes)
        row = row_of(run, result) | ledger.numerical_state()
        row |= dict(recorded=recorded["loss"], recorded_commit=recorded.get("commit"))
        row["difference"] = round(row["loss"] - recorded["loss"], 5)
        head = results.header(f"Recorded runs of {grid.name}, again", command, result["corpus"])
        results.append(records.MEASURED / f"again_{grid.name}.json", row, head)
        files.remove_folder(folder)
    return row


def repeat(parser, known, asked, words):
    """--again GRID PLAN SEED, with a number where a plan has several runs."""
    given = asked.again + ["1"] * (len(asked.again) == 3)
    if len(given) != 4 or given[0] not in known or not all(map(str.isdecimal, given[2:])):
        parser.error(f"--again wants GRID PLAN SEED [NUMBER], got {' '.join(asked.again)}")
    name, plan, seed, number = given
    row = again(known[name], plan, int(seed), int(number), words, asked.minutes)
    made = f"{row['recorded']:.5f} at commit {row['recorded_commit'] or 'unknown'}"
    print(f"{plan}, seed {row['seed']}: recorded {made}, again {row['loss']:.5f}")
    print(f"difference {row['difference']:+.5f} nats a token")


@command("evidence.lab.record", __doc__)
def main(parser, argv):
    known = grids()
    parser.add_argument("grids", nargs="*", metavar="GRID")
    parser.add_argument("--minutes", type=number(float, above=0), help="stop cleanly after so long")
    parser.add_argument("--again", nargs="+", metavar=("GRID", "PLAN SEED"), help="a run once more")
    asked = parser.parse_args(argv)
    words = " ".join(["python -m evidence.lab.record", *argv])
    if asked.again:
        repeat(parser, known, asked, words)
        return
    if unknown := [name for name in asked.grids if name not in known]:
        parser.error(f"no grid {', '.join(unknown)}: asked/*.toml have {', '.join(known)}")
    until = float("inf") if asked.minutes is None else time.monotonic() + 60 * asked.minutes
    for name in asked.grids:
        print(f"{name}: {record(known[name], words, until)} runs to go", flush=True)
    if not asked.grids:
        for name, grid in known.items():
            there = len(recorded(name))
            print(f"{name:28}{there:4} of {grid.size():3} runs recorded   {grid.what}")


if __name__ == "__main__":
    sys.exit(main())
