"""How is a run trained once and recorded once? A cache of runs by their content, and grids of them
that fill an evidence file.

Whoever wants a run that another process is training waits for it; what was killed goes on from its
last checkpoint.
"""

import functools
import json
import math
import statistics
import time
from dataclasses import asdict, dataclass, field, replace
from typing import Callable

import torch

from minimal.compare import ledger
from minimal.data import corpora, files, results
from minimal.model.count import count, settings_of
from minimal.model.foreign import foreign_code
from minimal.train import Trainer
from minimal.training import recipes
from minimal.training.run import HOW_MUCH, HOW_OFTEN, NOT_IN_IDENTITY, Diverged, Run, TimeIsUp
from minimal.variants import skeleton

RUN_FORMAT = 2  # raise it when the same Run would give other numbers: all are then trained anew


# ---- one run, trained once -----------------------------------------------------------------------


def run_key(run, fingerprint):
    """The name of a run's content: what it trains, on what, how, from which seed, by which torch.
    Plan and recipe enter with their numbers, since names stay when numbers change."""
    model = skeleton(run.plan, run.size, **run.config())
    asked = {name: value for name, value in run.asked().items() if name not in NOT_IN_IDENTITY}
    return files.digest(
        asked,
        model.config.stored(),
        settings_of(model),
        count(model),
        recipes.numbers(recipes.named(run.recipe)),
        *foreign_code(model),
        fingerprint,
        torch.__version__.split("+")[0],
        RUN_FORMAT,
    )


def as_trained(run):
    """The run as it is trained here, and so as it is timed: what is tiny for a GPU as one graph a
    step, unless the run asks for a compiler, which joins what a graph launches at once."""
    return replace(run, graph=torch.cuda.is_available() and not run.compile)


def in_folder(run, folder):
    """The run as it is trained here, in its folder."""
    return replace(as_trained(run), out=str(folder))


def cached(run, minutes=None, quiet=None, wait=True):
    """The result of a run, trained at most once: notebooks that share a baseline share its cost.
    With wait=False it is None while another process trains that run."""

    def train(folder):
        return Trainer(in_folder(run, folder), quiet).fit(minutes)

    return trained_once("trained", run, train, wait=wait)


def trained_once(room, run, train, *more, wait=True):
    """What train(folder) returned, kept in the folder of that run (and of what `more` names), with
    the numerical state it was trained in; None if another process is at it and `wait` is False."""
    corpus = corpora.find(run.corpus, run.tokens)
    key = run_key(run, corpus.fingerprint)
    name = f"{run.plan}-{files.digest(key, *more) if more else key}"
    folder = files.runs_folder() / room / name
    done, begun = folder / "result.json", folder / "begun.jsonl"
    try:
        with files.locked(done, wait=wait):
            if not done.exists():
                if not (folder / "last.safetensors").exists():
                    files.remove(begun)
                files.append_lines(begun, [ledger.numerical_state()])
                result = train(folder) | one_state(files.read_lines(begun))
                files.write_whole(done, json.dumps(result))
    except files.Busy:
        return None
    return json.loads(done.read_text()) | dict(folder=str(folder))


def one_state(states):
    """The numerical state of a run that was begun or taken up again in these: all that differ."""
    found = {}
    for name in states[0]:
        values = dict.fromkeys(str(state[name]) for state in states)
        found[name] = states[0][name] if len(values) == 1 else ", then ".join(values)
    return found


# ---- a grid of runs and its file -----------------------------------------------------------------


@dataclass
class Grid:
    """A question, and the runs that answer it. `cells` are dicts of Run fields; each is trained for
    every seed."""

    what: str
    cells: list
    seeds: tuple = (0, 1, 2)
    base: Run = field(default_factory=Run)
    also: Callable = lambda result: {}  # more fields of a row, from the run's result

    def runs(self):
        """Seed by seed, so that an interrupted grid is a whole grid with fewer seeds."""
        for seed in self.seeds:
            for cell in self.cells:
                yield replace(self.base, seed=seed, **cell)

    def row(self, run, result):
        """What a run of this grid leaves in its file."""
        return row_of(run, result) | self.also(result)


@functools.cache
def defaults():
    return asdict(Run())


def asked_of(run):
    """What a run was asked beyond the defaults and beyond what its row says anyway."""
    said = NOT_IN_IDENTITY | HOW_OFTEN | HOW_MUCH | {"plan", "size", "seed"}
    return {
        name: value
        for name, value in run.asked().items()
        if value != defaults()[name] and name not in said
    }


def row_of(run, result):
    """A run in one small line: who, how long, how good, the curves thinned to about fifty points,
    and the numerical state in which it was trained."""
    losses = result["losses"]
    every = max(1, len(losses) // 50)
    starts = range(0, len(losses) - every + 1, every)
    final, coefficients = result["valid"][-1], result["coefficients"]
    ends = coefficients["steps"][-1] if coefficients["steps"] else []
    return dict(
        plan=str(run.plan),
        size=run.size,
        seed=run.seed,
        steps=result["steps"],
        loss=round(final["loss"], 5),
        bpb=round(final["bpb"], 5),
        tokens=result["tokens"],
        flops=result["flops_per_token"] * result["tokens"],
        parameters=result["parameters"],
        seconds=round(result["seconds"], 1),
        train=[round(statistics.fmean(losses[i : i + every]), 4) for i in starts],
        every=every,
        valid=[[row["step"], round(row["loss"], 4)] for row in result["valid"]],
        coefficients={name: round(end, 4) for name, end in zip(coefficients["names"], ends)},
        asked=asked_of(run),
        **{name: result[name] for name in ledger.numerical_state() if name in result},
    )


def same(row, run):
    """Is this recorded row that run? Compared by what was asked, not by this machine's cache."""
    asked = json.loads(json.dumps(asked_of(run)))
    ours = (str(run.plan), run.size, run.seed, asked)
    return (row["plan"], row["size"], row["seed"], row["asked"]) == ours


def missing_runs(grid, path):
    """The runs of a grid that its file lacks."""
    return ledger.missing(path, grid.runs(), same)


def record(grid, path, command, until=math.inf, quiet=True):
    """Train what the file lacks -> (how many runs are to go, those that diverged). Several
    processes may work on one grid: each takes runs that no other is training."""
    todo = missing_runs(grid, path)
    if todo:  # a file of another corpus is refused before anything is trained
        corpus = corpora.find(todo[0].corpus, todo[0].tokens)
        results.check_corpus(path, dict(name=corpus.name, fingerprint=corpus.fingerprint))
    diverged = []

    def make(run):
        left = max(0, until - time.monotonic()) / 60
        try:
            result = cached(run, None if left == math.inf else left, quiet, wait=False)
        except TimeIsUp:
            return None
        except Diverged as why:  # it must not block the runs behind it
            print(f"{str(run.plan):20} seed {run.seed}: {why}", flush=True)
            diverged.append(run)
            return None
        if result is None:
            return None
        row = grid.row(run, result)
        head = results.header(grid.what, command, result["corpus"])
        return row, head, f"{row['loss']:.4f} nats, {row['seconds']:.0f} s"

    missing = ledger.fill(path, grid.runs(), same, make, until)
    return len(missing) - len(diverged), diverged


def lacking(to_go, diverged):
    """What a file of runs lacks, in words: for good, and until the same command is given again."""
    seeds = {}
    for run in diverged:
        seeds.setdefault(str(run.plan), []).append(str(run.seed))
    lost = [f"{plan} (seeds {', '.join(found)})" for plan, found in seeds.items()]
    told = [f"diverged: {', '.join(lost)}"] if lost else []
    if to_go:
        told.append(f"{to_go} run{'s' * (to_go > 1)} to go: the same command goes on")
    return "; ".join(told)
