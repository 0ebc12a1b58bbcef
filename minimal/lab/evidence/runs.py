"""Which system is better, at equal what, and how sure are we? Matched, paired, cached, resumable comparisons.

python -m minimal.lab.evidence                                   what is recorded, what is missing, how long it would take
python -m minimal.lab.evidence --record --minutes 60             go on with what is missing, in order
python -m minimal.lab.evidence --plans standard bov --match flops --budget 3e13 --seeds 0 1 2     a comparison of your own
"""

import inspect
import json
import statistics
import time
from dataclasses import asdict, replace
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from minimal.data import corpora, files, results
from minimal.data.files import digest, runs_folder
from minimal.lab.evidence import records
from minimal.model.count import count, settings_of
from minimal.train import Trainer
from minimal.training.run import HOW_OFTEN, NOT_IN_IDENTITY, Diverged, Run, TimeIsUp
from minimal.variants import skeleton

RUN_FORMAT = (
    1  # raise it when the same Run would give other numbers: what is cached is then trained anew
)


# ---- one run, trained once -------------------------------------------------------------------------------------------
def run_key(run, fingerprint):
    """The name of a run's content: what it trains, on what, how, from which seed, with which torch."""
    model = skeleton(run.plan, run.size, **run.config())
    asked = {k: v for k, v in asdict(run).items() if k not in NOT_IN_IDENTITY}
    version = torch.__version__.split("+")[0]
    return digest(
        asked,
        asdict(model.config),
        settings_of(model),
        count(model),
        fingerprint,
        version,
        RUN_FORMAT,
    )


def cached(run, minutes=None, quiet=None, wait=True):
    """The result of a run, trained at most once: notebooks that share a baseline share its cost. Whoever wants a run that
    another process is training waits for it (or, with wait=False, gets None); after a kill it goes on from the last
    checkpoint."""
    corpus = corpora.find(run.corpus, run.tokens, run.mix)
    folder = runs_folder() / "trained" / f"{run.plan}-{run_key(run, corpus.fingerprint)}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / "lock", timeout=-1 if wait else 0):
            done = folder / "result.json"
            if not done.exists():
                result = Trainer(replace(run, out=str(folder)), quiet).fit(minutes)
                files.write_whole(done, json.dumps(result))
            return json.loads(done.read_text()) | dict(folder=str(folder))
    except Timeout:
        return None


# ---- a grid of runs and its file -------------------------------------------------------------------------------------
def asked_of(run):
    """What a run was asked beyond the defaults and beyond what its row says anyway."""
    defaults, said = asdict(Run()), NOT_IN_IDENTITY | HOW_OFTEN | {"plan", "size", "seed"}
    return {k: v for k, v in asdict(run).items() if v != defaults[k] and k not in said}


def row_of(run, result):
    """A run in one small line: who, how long, how good, and the curves thinned to about fifty points."""
    losses, every = result["losses"], max(1, len(result["losses"]) // 50)
    thin = [
        round(statistics.fmean(losses[i : i + every]), 4)
        for i in range(0, len(losses) - every + 1, every)
    ]
    final, names = result["valid"][-1], result["coefficients"]["names"]
    last = (result["coefficients"]["steps"] or [[]])[-1]
    return dict(
        plan=run.plan,
        size=run.size,
        seed=run.seed,
        steps=result["steps"],
        loss=round(final["loss"], 5),
        bpb=round(final["bpb"], 5),
        tokens=result["tokens"],
        flops=result["flops_per_token"] * result["tokens"],
        parameters=result["parameters"],
        seconds=round(result["seconds"], 1),
        train=thin,
        every=every,
        valid=[[v["step"], round(v["loss"], 4)] for v in result["valid"]],
        coefficients={n: round(v, 4) for n, v in zip(names, last)},
        asked=asked_of(run),
    )


def same(row, run):
    """Is this recorded row that run? Compared by what was asked, so a row does not depend on this machine's cache."""
    asked = json.loads(json.dumps(asked_of(run)))
    return (row["plan"], row["size"], row["seed"], row["asked"]) == (
        run.plan,
        run.size,
        run.seed,
        asked,
    )


def missing(grid, path):
    rows = records.read(path)["rows"] if Path(path).exists() else []
    return [run for run in grid.runs() if not any(same(row, run) for row in rows)]


def record(grid, path, command, until=float("inf"), quiet=True):
    """Train what the file lacks and append each finished run at once; returns how many are still missing. Several
    processes may work on one grid: each takes runs that no other is training."""
    todo = missing(grid, path)
    if todo:  # the file may hold another corpus: then nothing need be trained
        corpus = corpora.find(todo[0].corpus, todo[0].tokens, todo[0].mix)
        results.check_corpus(path, dict(name=corpus.name, fingerprint=corpus.fingerprint))
    for run in todo:
        left = (until - time.monotonic()) / 60
        if left <= 0:
            break
        try:
            result = cached(run, None if left == float("inf") else left, quiet, wait=False)
        except TimeIsUp:
            break
        except Diverged as why:
            print(f"{run.plan:20} seed {run.seed}: {why}", flush=True)
            continue
        if result is None or run not in missing(grid, path):
            continue
        results.append(
            path,
            row_of(run, result) | grid.also(result),
            results.header(grid.what, command, result["corpus"]),
        )
        print(
            f"{run.plan:20} seed {run.seed}: {result['valid'][-1]['loss']:.4f} nats, {result['seconds']:.0f} s; "
            f"{len(missing(grid, path))} to go",
            flush=True,
        )
    return len(missing(grid, path))


def watched(run, note, every=25):
    """What note(model) says before the first step of a run, after every so many and at its end: steps, notes, the last
    held-out loss and the folder. Trained once and kept, like evidence.cached; a note that is written otherwise is another run."""

    class Watched(Trainer):
        def evaluate(self):
            return dict(note=note(self.model)) | super().evaluate()

    def make(part):
        trainer = Watched(replace(run, out=str(part), evaluate=every), quiet=True)
        told = [dict(step=0, note=note(trainer.model)), *trainer.fit()["valid"]]
        done = dict(
            steps=[row["step"] for row in told],
            notes=[row["note"] for row in told],
            loss=told[-1]["loss"],
        )
        (part / "watched.json").write_text(json.dumps(done))

    key = run_key(run, corpora.find(run.corpus, run.tokens, run.mix).fingerprint)
    name = f"{run.plan}-{key}-{files.digest(inspect.getsource(note), every)}"
    folder = files.once(files.runs_folder() / "watched" / name, make)
    return json.loads((folder / "watched.json").read_text()) | dict(folder=str(folder))
