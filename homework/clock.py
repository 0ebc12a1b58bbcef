"""How long does a notebook take a person, and how long a unit of homework? Counted, not felt.

A notebook: 130 words or 8 lines of code a minute. Cells tagged `deeper` are counted for themselves;
stubs and folded solutions are not read but written, and an exercise says how long that takes.

An exercise of the homework: its docstring at 130 words a minute, a minute for every line of the
reference solution, and a pause to think that depends on its level. A unit: its exercises, and its
page at 130 words a minute.

python -m homework.clock        writes today's minutes and hours into the units and both front pages
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat

from homework import cells, marking, turn
from minimal.command import command
from minimal.data.files import write_whole

ROOT = Path(__file__).resolve().parents[1]
WORDS, LINES = 130, 8  # a minute
THINKING = dict(easy=3, medium=7, hard=10, stretch=15)  # minutes, for an exercise of homework
NOT_READ = re.compile(
    r"\$\$.*?\$\$|<[^>]+>|\*\*Beside it\.\*\* [^\n]*|(?<=\])\([^)\s]*\)", flags=re.S
)
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


def words(text):
    """How many words, less equations, marks of HTML, addresses, and the line of links of a head."""
    return len(re.findall(r"\w[\w'’-]*", NOT_READ.sub("", text)))


def read(cell):
    """(words, lines of code) of a cell, less equations and comments."""
    source = cell["source"]
    if cell["cell_type"] == "markdown":
        return words(source), 0
    kept = [line.strip() for line in source.splitlines()]
    return 0, sum(bool(line) and not line.startswith("#") for line in kept)


def minutes(of):
    """Minutes for these cells, not yet rounded."""
    counted = [read(cell) for cell in of]
    prose, lines = (sum(numbers) for numbers in zip(*counted, strict=True)) if counted else (0, 0)
    return prose / WORDS + lines / LINES


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


# ---- homework ------------------------------------------------------------------------------------


def lines_of(solution, names):
    """{name: lines} of these functions of a file: their bodies, less docstrings and comments.

    A helper's lines belong to the first function that calls it, its head included.
    """
    tree = ast.parse(solution)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    texts, told = solution.splitlines(), set(names)

    def own(function):
        documented = ast.get_docstring(function) is not None
        first = function.body[documented].lineno
        kept = [line.strip() for line in texts[first - 1 : function.end_lineno]]
        return sum(bool(line) and not line.startswith("#") for line in kept)

    def helpers(function):
        lines, used = 0, [node for node in ast.walk(function) if isinstance(node, ast.Name)]
        local = {node.id for node in used if isinstance(node.ctx, ast.Store)}
        for name in (node.id for node in used if node.id not in local):
            if name in functions and name not in told:
                told.add(name)
                lines += 1 + own(functions[name]) + helpers(functions[name])
        return lines

    return {name: own(functions[name]) + helpers(functions[name]) for name in names}


def minutes_of(exercise, lines):
    """Minutes for an exercise of homework whose reference solution has so many lines."""
    return round(THINKING[exercise.level] + words(exercise.doc) / WORDS + lines)


def counted(unit):
    """{exercise: minutes} of a unit of homework, by its reference solution."""
    path = ROOT / "homework" / "solutions" / unit.folder / "reference.py"
    lines = lines_of(path.read_text(encoding="utf-8"), unit.exercises)
    return {name: minutes_of(unit.exercises[name], lines[name]) for name in lines}


def page_minutes(page):
    """Minutes for a unit's page, less its table and its commands."""
    read = [line for line in page.splitlines() if not line.startswith(("|", "    "))]
    return round(words("\n".join(read)) / WORDS)


def unit_minutes(unit, page):
    return sum(exercise.minutes for exercise in unit.exercises.values()) + page_minutes(page)


def graded():
    folders = sorted(path.parent.name for path in (ROOT / "homework").glob("hw*/exercises.py"))
    return [marking.find(folder) for folder in folders]


def with_minutes(source, minutes):
    """A unit's exercises.py with these minutes, {exercise: minutes}."""
    for name, number in minutes.items():
        last = re.compile(rf"\bminutes=\d+(?=(?:(?!\bminutes=\d).)*?^def {name}\()", re.M | re.S)
        source = last.sub(f"minutes={number}", source, count=1)
    return source


def with_card(page, unit):
    """A unit's README.md with the minutes of its exercises, of the page, and of all."""
    for exercise in unit.exercises.values():
        row = re.compile(rf"^(\| \d+ \| `{exercise.name}` \| \d+ \|)[^|]+\|[^|]+\|$", re.M)
        told = rf"\g<1> {exercise.level} | {exercise.minutes} min |"
        page = row.sub(told, page)
    page = re.sub(
        r"^\| \| this page \|.*$",
        f"| | this page | | | {page_minutes(page)} min |",
        page,
        flags=re.M,
    )
    return re.sub(
        r"^About \d+ minutes", f"About {unit_minutes(unit, page)} minutes", page, flags=re.M
    )


def write_exercises():
    """Today's minutes into every unit of which the solutions are here."""
    for unit in graded():
        path = unit.path.with_name("exercises.py")
        if (ROOT / "homework" / "solutions" / unit.folder).is_dir():
            source, minutes = path.read_text(encoding="utf-8"), counted(unit)
            write_whole(path, with_minutes(source, minutes))
            for name, number in minutes.items():
                unit.exercises[name].minutes = number


def write_cards():
    """The minutes of every unit into its page and into the instructors'."""
    instructors = ROOT / "homework" / "README.md"
    text = instructors.read_text(encoding="utf-8")
    for unit in graded():
        path = unit.path.with_name("README.md")
        page = with_card(path.read_text(encoding="utf-8"), unit)
        write_whole(path, page)
        row = re.compile(rf"^(\| `{unit.folder}` \|.*\|) \d+ \|$", re.M)
        text = row.sub(rf"\g<1> {unit_minutes(unit, page)} |", text)
    write_whole(instructors, text)


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
    """A page with the minutes of its table and the hours of its ways as they are counted now."""
    for name, time in notebooks.items():
        row = re.compile(rf"(\(notebooks/{name}\) \| [^|]+\| )[\d +]+( \|)")
        text = row.sub(rf"\g<1>{time.core} + {time.writing} + {time.deeper}\2", text)
    for words, number in hours(notebooks, units).items():
        text = re.sub(rf"({words}\s)\(\d+ hours\)", rf"\1({number} hours)", text)
    return text


@command("homework.clock", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    write_exercises()
    write_cards()
    books, pages = notebooks(), units()
    for page in (ROOT / "README.md", ROOT / "notebooks" / "README.md"):
        write_whole(page, told(page.read_text(encoding="utf-8"), books, pages))


if __name__ == "__main__":
    main()
