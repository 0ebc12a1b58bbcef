"""How long does a notebook take a person, and how long a unit of homework? Counted, not felt.

A notebook: 130 words or 8 lines of code a minute, and what stands between them: an equation, what a
cell prints, a figure, a guess, and the wait for what trains, as the head says it. Cells tagged
`deeper` are counted for themselves, their exercises too; stubs and folded solutions are not read
but written, and an exercise says how long that takes.

An exercise of the homework: its docstring at 130 words a minute, a minute for every line of the
reference solution, and a pause to think that depends on its level. A unit: its exercises, and its
page at 130 words a minute.

python -m homework.clock        writes today's minutes and hours into the units and both front pages

What is said stays while it is near what is counted: a few sentences more change no number.
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
EQUATION, OUTPUT, FIGURE, GUESS = 0.5, 0.25, 1, 1  # minutes each
PICTURE = re.compile(r"figures\.show\(|\b(?:addresses|pipeline)\(")
PRINTS = re.compile(r"\b(?:print|answer|display|recorded)\(")
HIDDEN = {"hide-input", "remove-input"}  # code that opens closed is not read
WAIT = re.compile(r"\b(\d+|an?|one|two|three|four|five)(?: to (\d+))? minutes?( each)?\b")
RUNS = re.compile(r"(\w+) training runs")
NUMBERS = dict(a=1, an=1, one=1, two=2, three=3, four=4, five=5, six=6, seven=7, eight=8, nine=9)
NUMBERS |= dict(ten=10, eleven=11, twelve=12)
THINKING = dict(easy=3, medium=7, hard=10, stretch=15)  # minutes, for an exercise of homework
MINUTES = re.compile(r"\((notebooks/\S+\.ipynb)\) \| [^|]+\| (\d+) \| (\d+) \| (\d+) \|")
THIS_PAGE = re.compile(r"^\| \| this page \|.*?(\d+) min \|$", re.M)
NOT_READ = re.compile(
    r"\$\$.*?\$\$|<[^>]+>|\*\*Beside it\.\*\* [^\n]*|(?<=\])\([^)\s]*\)", flags=re.S
)
TIME = re.compile(r"(?<=\*\*Time\.\*\* )[^;]*(?=;)")
SAID = re.compile(r"(\d+) (?:minutes to read and run|(to write)|(more for))")
NEAR = 0.2  # of what is counted: no two readers agree better than that


def near(said, counted):
    """Does a number of minutes still tell what is counted? To a fifth of it, or to two minutes."""
    return abs(said - counted) <= max(2, NEAR * counted)


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


def pauses(cell):
    """Minutes for what a cell shows, and for what it asks the reader to guess."""
    source = cell["source"]
    if cell["cell_type"] == "markdown":
        return EQUATION * (source.count("$$") // 2) + GUESS * source.count("**Predict.**")
    if "drawing" in cells.tags(cell):
        return FIGURE
    shown = OUTPUT * bool(PRINTS.search(source))
    return shown + FIGURE * bool(PICTURE.search(source))


def minutes(of):
    """Minutes for these cells, not yet rounded."""
    prose = sum(read(cell)[0] for cell in of)
    lines = sum(read(cell)[1] for cell in of if not HIDDEN & set(cells.tags(cell)))
    return prose / WORDS + lines / LINES + sum(map(pauses, of))


def waiting(head):
    """How many minutes the head says that all cells run: what trains, and who waits for it."""
    said = re.search(r"\*\*Time\.\*\* [^;]*;(.*?)(?:\n\n|\Z)", head, flags=re.S)
    found = said and WAIT.search(said[1])
    if not found:
        return 0
    least, most, each = found.groups()
    number = int(most or NUMBERS.get(least) or least)
    runs = RUNS.search(said[1])
    return number * NUMBERS.get(runs[1].lower(), 1) if each and runs else number


def written(cell):
    """Is this cell written by the learner, or folded until she asks?"""
    return "your-turn" in cells.tags(cell) or cells.SOLUTION.match(cell["source"])


def time(notebook):
    """What a person needs for a notebook."""
    told = [cell for cell in notebook.cells if not written(cell)]
    deeper = [cell for cell in told if "deeper" in cells.tags(cell)]
    core = [cell for cell in told if "deeper" not in cells.tags(cell)]
    exercises = {
        name: turn.exercise_of(unit, name).minutes for name, unit in cells.turns(notebook).items()
    }
    folded = sum(exercises[name] for name in exercises if name in stubs(notebook))
    wait = waiting(notebook.cells[0]["source"]) if notebook.cells else 0
    reading = round(minutes(core) + wait)
    return Time(reading, sum(exercises.values()) - folded, round(minutes(deeper)) + folded)


def stubs(notebook):
    """The names of the exercises that stand in what goes deeper."""
    deeper = [cell for cell in notebook.cells if {"deeper", "your-turn"} <= set(cells.tags(cell))]
    return {name for cell in deeper for name in re.findall(r"^def (\w+)", cell["source"], re.M)}


def said(source):
    """The Time that the head of a notebook tells; None where it tells none."""
    words = TIME.search(source)
    parts = {write or more: int(n) for n, write, more in SAID.findall(words[0] if words else "")}
    return Time(parts[""], parts.get("to write", 0), parts.get("more for", 0)) if parts else None


def tells(told, time):
    """Are these two Times one, as near as it matters?"""
    pairs = zip((told.core, told.writing, told.deeper), (time.core, time.writing, time.deeper))
    return all(near(*pair) and bool(pair[0]) == bool(pair[1]) for pair in pairs)


def with_time(source, time):
    """The head of a notebook with the time that was counted; as it is, where it is near to that."""
    told = said(source)
    return source if told and tells(told, time) else TIME.sub(str(time), source, count=1)


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


def said_of_page(page):
    """The minutes that a unit's page says of itself; those that are counted, where it says none
    or what is no longer near."""
    counted, row = page_minutes(page), THIS_PAGE.search(page)
    return int(row[1]) if row and near(int(row[1]), counted) else counted


def unit_minutes(unit, page):
    return sum(exercise.minutes for exercise in unit.exercises.values()) + said_of_page(page)


def graded():
    folders = sorted(path.parent.name for path in (ROOT / "homework").glob("hw*/exercises.py"))
    return [marking.find(folder) for folder in folders]


def with_minutes(source, minutes):
    """A unit's exercises.py with these minutes, {exercise: minutes}."""
    for name, number in minutes.items():
        first = re.compile(rf"(^def {name}\(.*?^takes: \w+, )\d+", re.M | re.S)
        source = first.sub(rf"\g<1>{number}", source, count=1)
    return source


def with_card(page, unit):
    """A unit's README.md with the minutes of its exercises, of the page, and of all."""
    for exercise in unit.exercises.values():
        row = re.compile(rf"^(\| \d+ \| `{exercise.name}` \| \d+ \|)[^|]+\|[^|]+\|$", re.M)
        told = rf"\g<1> {exercise.level} | {exercise.minutes} min |"
        page = row.sub(told, page)
    page = THIS_PAGE.sub(f"| | this page | | | {said_of_page(page)} min |", page)
    return re.sub(
        r"^About \d+ minutes", f"About {unit_minutes(unit, page)} minutes", page, flags=re.M
    )


def write_exercises():
    """Today's minutes into every unit of which the solutions are here."""
    for unit in graded():
        path = unit.home / "exercises.py"
        if (ROOT / "homework" / "solutions" / unit.folder).is_dir():
            source, exercises = path.read_text(encoding="utf-8"), unit.exercises
            minutes = {
                name: number
                for name, number in counted(unit).items()
                if not near(exercises[name].minutes, number)
            }
            write_whole(path, with_minutes(source, minutes))
            for name, number in minutes.items():
                exercises[name].minutes = number


def write_cards():
    """The minutes of every unit into its page and into the instructors'."""
    instructors = ROOT / "homework" / "README.md"
    text = instructors.read_text(encoding="utf-8")
    for unit in graded():
        path = unit.home / "README.md"
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
        row = re.compile(rf"(\(notebooks/{name}\) \| [^|]+\| )(\d+) \| (\d+) \| (\d+)( \|)")
        found = row.search(text)
        if found and not tells(Time(*map(int, found.groups()[1:4])), time):
            text = row.sub(rf"\g<1>{time.core} | {time.writing} | {time.deeper}\5", text)
    for words, number in hours(notebooks, units).items():
        row = re.compile(rf"({words}\s)\((\d+) hours\)")
        found = row.search(text)
        if found and not near(int(found[2]), number):
            text = row.sub(rf"\1({number} hours)", text)
    return text


def as_in(front, text):
    """A translation of README with README's own minutes."""
    for name, *minutes in MINUTES.findall(front):
        row = re.compile(rf"(\({re.escape(name)}\) \| [^|]+\| )\d+ \| \d+ \| \d+( \|)")
        text = row.sub(rf"\g<1>{' | '.join(minutes)}\2", text)
    return text


@command("homework.clock", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    write_exercises()
    write_cards()
    books, pages = notebooks(), units()
    for page in (ROOT / "README.md", ROOT / "notebooks" / "README.md"):
        write_whole(page, told(page.read_text(encoding="utf-8"), books, pages))
    front = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in ROOT.glob("README.*.md"):
        write_whole(page, as_in(front, page.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
