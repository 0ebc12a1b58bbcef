"""Does a notebook run to its end with a learner's own answers? "The notebook goes on with yours" is
a promise to every answer that its check calls right.

The answers are the right ones of blind.txt, and the course's own as lists of plain numbers, cut off
from their gradients. A notebook runs once, in a process of its own; at every exercise a fork of it
takes one answer in the learner's place and runs what comes after: the cells that use the answer or
what is made of it, and the cells that these need. An answer may be refused instead, with the
sentence about gradients. Each exercise is given the first answer of the list and the one of plain
numbers; EVERY_ANSWER=1 gives it all of the list, which takes some ten minutes more.

Left out are 11a and 11b, whose answers are kernels: they store what they store, and are handed on
as they are (tests/kernels/test_notebook_kernels.py). So are cells that an answer does not reach,
what a called function changes in a thing of another cell, the pixels of figures (they are drawn,
not painted), and every profile but smoke.
"""

import ast
import builtins
import contextlib
import importlib
import io
import linecache
import os
import pickle
import resource
import symtable
import textwrap
import traceback

import nbformat
import pytest
import torch

from homework import handed_on, turn
from notebooks import run
from tests.homework import test_blind as blind
from tests.notebooks import test_core_alone as names

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="every answer runs in a fork"),
]
BARE = "lists without a gradient"
PATHS = [path for path in run.chosen([]) if not path.stem.startswith("11")]


# ---- which cells use an answer -------------------------------------------------------------------


def used(source):
    """The names that a cell looks up; what a class body binds may stand for a name outside it."""
    found = names.used(source)
    for scope in names.scopes(symtable.symtable(source, "cell", "exec")):
        if scope.get_type() == "class":
            found |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_referenced()}
    return found


def given(source):
    """The names that a cell binds, or whose things it changes: x[0] = …, x.y = …, x.append(…)."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
        if stored and isinstance(node, (ast.Attribute, ast.Subscript)):
            found.add(first_name(node))
        elif isinstance(node, ast.AugAssign):
            found.add(first_name(node.target))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.add(first_name(node.func))
    return (found | names.made(source)) - {None, *dir(builtins)}


def first_name(node):
    """The x of x.y[z].w, if there is one."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def reached(sources, name):
    """The places of the cells that use `name`, or what is made of it, and of those they need; and
    of those that add to PLANS: a plan may be asked for by a word."""
    marked, places = {name}, set()
    for at, source in enumerate(sources):
        if used(source) & marked:
            marked |= given(source)
            places.add(at)
        if "PLANS" in given(source):
            places.add(at)
    wanted = set()
    for at in reversed(range(len(sources))):
        if at in places or given(sources[at]) & wanted:
            places.add(at)
            wanted |= used(sources[at])
    return sorted(places)


def test_cells_that_use_an_answer_are_found_with_what_they_need():
    cells = [
        "a = 1",  # needed by the class
        "b = 2",
        "class Mine:\n    f = f\n    size = a",
        "found = {}",  # needed by the next
        "found['mine'] = Mine()",
        "print(b)",
        "print(found)",
        "PLANS['mine'] = a",
    ]
    assert reached(cells, "f") == [0, 2, 3, 4, 6, 7]
    assert reached(cells, "nothing") == [0, 7]


# ---- one notebook, in a process of its own -------------------------------------------------------


class Book:
    """A notebook that runs here at the smallest scale, cell by cell, without a kernel."""

    def __init__(self, path):
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.display import display

        from course import figures

        importlib.import_module("torch._dynamo")  # or every fork would, in its first exercise
        figures.figure_bytes = lambda fig, kind="png": b""
        turn.SECONDS = 600  # how long an answer may take is no question here
        os.chdir(path.parent)
        self.names = InteractiveShell.instance().user_ns
        self.names["display"] = display
        self.cells = run.code(nbformat.read(path, 4))
        for cell in self.cells:
            if "parameters" in run.tags(cell):
                cell.source += '\nprofile = "smoke"'

    def run(self, source, name):
        """Run a cell; what it printed."""
        place, said = f"<{name}>", io.StringIO()
        linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        self.names["In"].append(source)  # which all_hold() reads
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            exec(compile(source, place, "exec"), self.names)
        return said.getvalue()

    def tried(self):
        """{(exercise, answer): "" or what stopped the notebook}."""
        found, asked = {}, [turn_of(cell) for cell in self.cells]
        last = max((at for at, turn in enumerate(asked) if turn), default=-1)
        for at, cell in enumerate(self.cells[: last + 1]):
            if asked[at]:
                for which, define in answers(*asked[at]).items():
                    goes_on = lambda: self.goes_on(at, *asked[at], define)
                    found[asked[at][1], which] = in_a_fork(goes_on)
            self.run(cell.source, cell.id)
        return found

    def goes_on(self, at, unit, name, define):
        """'' if the notebook runs to its end with this answer, or refuses it with a reason."""
        define(self)
        said = self.run(self.cells[at].source, self.cells[at].id)
        if "The notebook goes on with yours." not in said:
            return "" if handed_on.RIGHT in said else said
        later = self.cells[at + 1 :]
        for place in reached([cell.source for cell in later], name):
            try:
                self.run(later[place].source, later[place].id)
            except BaseException as error:
                return f"{later[place].id}: {type(error).__name__}: {error}"
        return ""


def turn_of(cell):
    """(unit, exercise) of a cell that checks one, else None."""
    for node in ast.walk(ast.parse(cell.source)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "your_turn":
            return node.args[0].value, node.args[1].id
    return None


def answers(unit, name):
    """{which: a function that gives it to a book} of right answers to an exercise."""
    exercise, found = turn.exercise_of(unit, name), {}
    right = blind.answers(blind.listed()[f"{unit} {name}"])[0]
    for number, lines in enumerate(right if "EVERY_ANSWER" in os.environ else right[:1], 1):
        code = f"{exercise.head()}\n{textwrap.indent(lines, '    ')}\n"
        found[f"answer {number}"] = lambda book, code=code: written(book, code, name)
    own = turn.solution(unit, name)
    found[BARE] = lambda book: book.names.update({name: bare(own)})
    return found


def written(book, code, name):
    """A learner's cell. What answers of the list may use beside the notebook's names is theirs."""
    usual = dict(torch=torch, F=torch.nn.functional)
    usual |= {module: __import__(module) for module in ("math", "itertools")}
    mine = usual | book.names
    exec(compile(code, f"<answer to {name}>", "exec"), mine)
    book.names[name] = mine[name]


def bare(own):
    """The course's own answer, as lists of plain numbers."""

    def plain(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(plain, value))
        return value.tolist() if torch.is_tensor(value) else value

    def answer(*inputs, **more):
        return plain(own(*inputs, **more))

    answer.__name__ = own.__name__
    return answer


def in_a_fork(work):
    """What work() returns, worked out in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            answer = work()
        except BaseException:
            answer = traceback.format_exc()
        with os.fdopen(writing, "wb") as sheet:
            pickle.dump(answer, sheet)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as sheet:
        told = sheet.read()
    os.waitpid(child, 0)
    return pickle.loads(told) if told else "its process ended without a word"


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_a_check_calls_right_is_handed_on_and_the_notebook_runs_to_its_end(path, note):
    before = seconds()
    found = in_a_fork(lambda: Book(path).tried())
    note("notebooks with a learner's answers", path.stem, f"{len(found)} answers")
    print(f"{path.stem}: {len(found)} answers, {seconds() - before:.0f} CPU seconds")
    assert isinstance(found, dict), found
    assert {which: why for which, why in found.items() if why} == {}
