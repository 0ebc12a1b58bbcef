"""All recorded runs as one pandas table, a row a run.

grid      which grid asked for it, and `topic`: the file of the table that has it
text      "code" (the Python standard library), "novel" (War and Peace), or a corpus by its name
rates     how the system got its learning rates: see RATES
cell      the plan, with what was changed of its size: "standard, hidden 416"
seed, steps, loss (held-out nats a token), bpb (bits a byte), tokens, parameters, commit, machine
state     rows of two states of the numbers (code, PyTorch, processor) are not compared
held_out  the loss of every 16 held-out rows; valid, train: the curves; coefficients at the end
"""

import functools

import pandas as pd

from course import records
from evidence.lab import asked

RATES = dict(
    tuned="each system at the best of the rates that were tried, on five seeds that chose none",
    ten="the same of two systems, on ten such seeds",
    fine="the two at rates half a step finer, on the ten",
    tried="the runs that chose the rates, seeds 0 to 2",
    course="one recipe for all, searched on standard",
    long="a recipe for 4,000 steps, each system half a step below what it chose at 500",
    anew="the same recipe at a later state of the code: compared among themselves alone",
    older="an older recipe, searched on none of these systems",
    paper="the rates of Bank of Values, carried by batch, for all",
    again="runs of another grid once more, to see how far they fall",
)


def runs(whole=True):
    """Every run of every whole grid, since nothing is decided from a part of one; or all runs."""
    return runs_when(whole, records.written())


@functools.lru_cache(maxsize=2)
def runs_when(whole, written):
    grids, heads, states = asked.grids(), records.recordings(), known_states()
    lines = []
    for run in records.recorded_runs():
        grid = grids.get(run["grid"])
        about = dict(topic=heads[run["grid"]]["topic"], text=text_of(run), cell=cell_of(run))
        about |= dict(rates=grid.rates if grid else "older", state=state_of(run, states))
        lines.append(run | about)
    table = pd.DataFrame(lines)
    if not whole:
        return table
    counted = table.groupby("grid").size()
    kept = [name for name, grid in grids.items() if counted.get(name) == grid.size()]
    return table[table.grid.isin(kept)].reset_index(drop=True)


def text_of(run):
    return asked.NAMED.get(run["corpus"], run["corpus"])


def cell_of(run):
    """A plan, and what was changed of its size."""
    changes = (run.get("changes") or {}).items()
    return ", ".join([run["plan"], *(f"{name} {value}" for name, value in changes)])


def at_step(table, step):
    """The same runs with the loss that they had after so many steps; that of the end is exact."""
    curves = [
        dict(curve) | {steps: loss}
        for curve, steps, loss in zip(table.valid, table.steps, table.loss)
    ]
    return table.assign(loss=[curve[step] for curve in curves], held_out=None)


# ---- the state of the numbers --------------------------------------------------------------------


def known_states():
    """{(commit, torch, machine): state}, as far as fingerprints were taken."""
    rows = records.read("states")["rows"]
    return {(row["commit"], row["torch"], row["machine"]): row["state"] for row in rows}


def state_of(run, states):
    """None where no fingerprint was taken; a run that was taken up again names several commits."""
    commits = (run.get("commit") or "").split(", then ")
    found = {states.get((commit, run.get("torch"), run.get("machine"))) for commit in commits}
    return found.pop() if len(found) == 1 else None
