"""What was asked, and what was foretold of it? Read from notebooks/evidence/asked/*.toml.

    grids()                  {name: Grid}: its cells, seeds, texts, and what was expected
    asked_before(grid)       did git hold the cells before the runs were recorded?

A table of such a file is a grid; one with `texts` is a grid a text, "dose" is dose_code and
dose_novel. A cell is a dict of Run fields; `times` multiplies rates of its recipe.
"""

import functools
import subprocess
import tomllib
from dataclasses import dataclass, field, replace

from course.records import CHECKOUT, EVIDENCE, recorded_runs, recordings, written
from minimal.training import recipes
from minimal.training.run import Run

ASKED = EVIDENCE / "asked"
MATRICES = ("matrix", "mlp", "gate")  # `times = {matrices = 0.5}` is half the rate of all three
PLAIN = (
    "what",
    "rates",
    "machine",
    "study",
    "expected",
    "asked",
    "exploratory",
    "record",
    "counted",
)


@dataclass
class Grid:
    """A question to one text, and the runs that answer it: each cell is trained for every seed."""

    name: str
    topic: str  # the file that asks, and the file of the table that has its runs
    text: str  # "code", "novel", or the name of a corpus
    seeds: tuple
    run: dict  # Run fields that all cells share
    cells: list
    what: str = ""
    rates: str = "older"  # how its systems got their learning rates
    machine: str = ""  # what the machine of every row must say of itself
    study: str = ""  # what is measured of a trained model beside its losses
    expected: str = ""  # as it was written before the first run
    asked: str = ""  # a commit that holds all cells, where they were asked in an older file
    exploratory: bool = False  # chosen after looking at other results, or grown after its runs
    foretold: list = field(default_factory=list)
    counted: dict = field(default_factory=dict)  # of the text alone, before a run
    record: str = ""  # files of what was measured, where no run of the table answers

    def size(self):
        """How many runs it asks for."""
        return len(self.cells) * len(self.seeds)

    def runs(self):
        """Seed by seed, so that an interrupted grid is a whole grid with fewer seeds."""
        for seed in self.seeds:
            for cell in self.cells:
                yield run_of(self.run | cell, seed)


def run_of(fields, seed):
    """The Run of a cell: its rates from `times` where it has them."""
    fields = dict(fields)
    times = fields.pop("times", {})
    run = Run(seed=seed, **fields)
    rows = recipes.RECIPES[run.recipe].rows
    overrides = {}
    for name, factor in times.items():
        for role in MATRICES if name == "matrices" else (name,):
            overrides[role] = dict(lr=factor * rows[role].lr)
    return replace(run, overrides=overrides) if overrides else run


# ---- the files -----------------------------------------------------------------------------------


def grids():
    """{name: Grid}, in the order of the files and of their tables."""
    return grids_when(written(ASKED, "*.toml"))


@functools.lru_cache(maxsize=1)
def grids_when(files):
    found = {}
    for path, _ in files:
        for grid in grids_in(path.read_text(encoding="utf-8"), path.stem):
            if grid.name in found:
                raise ValueError(f"{path.name}: {grid.name} stands twice: name one of them anew")
            found[grid.name] = grid
    return found


def grids_in(text, topic):
    """The grids of one file."""
    for key, told in tomllib.loads(text).items():
        plain = {name: told[name] for name in PLAIN if name in told}
        corpora = told.get("texts") or {"": told.get("corpus", "")}
        for text_, corpus in corpora.items():
            cells = told.get("cells", [])
            yield Grid(
                name=f"{key}_{text_}" if text_ else key,
                topic=topic,
                text=text_ or NAMED.get(corpus, corpus),
                seeds=tuple(told.get("seeds", ())),
                run=told.get("run", {}) | dict(corpus=corpus),
                cells=cells[text_] if isinstance(cells, dict) else cells,
                foretold=told.get("foretold", []),
                **plain,
            )


NAMED = {"stdlib": "code", "war-and-peace": "novel"}  # corpora that have a short name


# ---- when it was asked ---------------------------------------------------------------------------


def asked_before(grid):
    """(how many of its recorded runs git held as asked before they were trained, of how many);
    None where there is no history. A run that another grid had trained before counts as not asked.
    """
    if not git("rev-parse", "HEAD"):
        return None
    commits = [begun_at(run) for run in recorded_runs() if run["grid"] == grid.name]
    return sum(held_at(grid, commit) for commit in commits), len(commits)


def begun_at(run):
    """The commit at which a run was begun; the oldest runs have that of their recording."""
    commit = run.get("commit") or recordings()[run["grid"]]["commit"]
    return commit.split(", then ")[0].removesuffix("+")


@functools.lru_cache(maxsize=1024)
def held_at_commit(name, topic, asked, commit):
    if asked:  # asked in an older file, which this commit was found to hold
        return git("merge-base", "--is-ancestor", asked, commit) is not None
    text = git("show", f"{commit}:notebooks/evidence/asked/{topic}.toml")
    return bool(text) and any(grid.name == name for grid in grids_in(text, topic))


def held_at(grid, commit):
    """Did this commit hold the grid?"""
    return held_at_commit(grid.name, grid.topic, grid.asked, commit)


def git(*words):
    """What git prints; None where it fails or where there is none."""
    try:
        done = subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, encoding="utf-8")
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None
