"""How long does a notebook take a person? Counted from its words, its lines and its exercises.

130 words or 8 lines of code a minute. Cells tagged `deeper` are counted for themselves; stubs and
folded solutions are not read but written, and an exercise says how long that takes.
"""

import re
from dataclasses import dataclass

from homework import cells, turn

WORDS, LINES = 130, 8  # a minute
TIME = re.compile(r"(?<=\*\*Time\.\*\* )[^;]*(?=;)")


@dataclass(frozen=True)
class Time:
    """Minutes to read and run, to write, and for what goes deeper."""

    core: int
    writing: int
    deeper: int

    @property
    def all(self):
        return self.core + self.writing + self.deeper

    def __str__(self):
        words = f"{self.core} minutes to read and run"
        words += f", {self.writing} to write" if self.writing else ""
        return words + (f", {self.deeper} more for what goes deeper" if self.deeper else "")


def read(cell):
    """(words, lines of code) of a cell, less equations and comments."""
    source = cell["source"]
    if cell["cell_type"] == "markdown":
        prose = re.sub(r"\$\$.*?\$\$|<[^>]+>", "", source, flags=re.S)
        return len(re.findall(r"\w[\w'’-]*", prose)), 0
    kept = [line.strip() for line in source.splitlines()]
    return 0, sum(bool(line) and not line.startswith("#") for line in kept)


def minutes(of):
    """Minutes for these cells, not yet rounded."""
    counted = [read(cell) for cell in of]
    words, lines = (sum(numbers) for numbers in zip(*counted, strict=True)) if counted else (0, 0)
    return words / WORDS + lines / LINES


def written(cell):
    """Is this cell written by the learner, or folded until she asks?"""
    return "your-turn" in cells.tags(cell) or cells.SOLUTION.match(cell["source"])


def time(notebook):
    """What a person needs for a notebook."""
    told = [cell for cell in notebook.cells if not written(cell)]
    deeper = [cell for cell in told if "deeper" in cells.tags(cell)]
    core = [cell for cell in told if "deeper" not in cells.tags(cell)]
    exercises = [turn.exercise_of(unit, name) for name, unit in cells.turns(notebook).items()]
    writing = sum(exercise.minutes for exercise in exercises)
    return Time(round(minutes(core)), writing, round(minutes(deeper)))


def with_time(source, time):
    """The head of a notebook, with the time that was counted."""
    return TIME.sub(str(time), source, count=1)
