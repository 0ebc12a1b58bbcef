"""How long does a notebook take a person? Counted from its words, its lines and its exercises.

130 words or 8 lines of code a minute. Cells tagged `deeper` are counted for themselves; stubs and
folded solutions are not read but written, and an exercise says how long that takes.

python -m homework.clock        writes today's minutes and hours into README.md
"""

import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from homework import cells, turn

ROOT = Path(__file__).resolve().parents[1]
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


# ---- README --------------------------------------------------------------------------------------


def notebooks():
    """{name: Time} of the course, in order."""
    paths = sorted((ROOT / "notebooks").glob("[0-9][0-9]*_*.ipynb"))
    return {path.name: time(nbformat.read(path, 4)) for path in paths}


def units():
    """Minutes of every unit of homework, by its name; the open project is a week of evenings."""
    found = {}
    for path in sorted((ROOT / "homework").glob("hw[0-9][0-9]_*/README.md")):
        told = re.search(r"^About (\d+) minutes", path.read_text(encoding="utf-8"), flags=re.M)
        if told:
            found[path.parent.name] = int(told[1])
    return found


def hours(notebooks, units):
    """What a day, a week and more hold: {the words before the hours: hours}."""
    core = [time.core + time.writing for time in notebooks.values()]
    return {
        "without what goes deeper": round(sum(core[:5]) / 60),
        "and homework 01": round(units["hw01_attention"] / 60),
        "exercises of all notebooks": round(sum(core) / 60),
        "units of homework": round(sum(units.values()) / 60),
        "All notebooks": round(sum(time.all for time in notebooks.values()) / 60),
    }


def told(text, notebooks, units):
    """README with the minutes of its table and the hours below it as they are counted now."""
    for name, time in notebooks.items():
        row = re.compile(rf"(\(notebooks/{name}\) \| [^|]+\| )[\d +]+( \|)")
        text = row.sub(rf"\g<1>{time.core} + {time.writing} + {time.deeper}\2", text)
    for words, number in hours(notebooks, units).items():
        text = re.sub(rf"({words}\s)\(\d+ hours\)", rf"\1({number} hours)", text)
    return text


def main():
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    readme.write_text(told(text, notebooks(), units()), encoding="utf-8")


if __name__ == "__main__":
    main()
