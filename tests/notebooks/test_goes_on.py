"""Does a notebook run to its end with a learner's own answers? "The notebook goes on with yours" is
a promise to every answer that its check calls right.

The answers are the right ones of blind.txt, and the course's own as lists of plain numbers, cut off
from their gradients. A notebook runs in a process of its own, and every exercise is answered twice:
by the first of its list, then by plain numbers. With these the notebook goes on, since they are the
farthest from the course's own; where they are refused, with the sentence about gradients, it goes
on with the first of the list. What runs are the exercises, the cells that use an answer or what is
made of it, and the cells that these need. EVERY_ANSWER=1 takes the whole list, one answer at a
time: at every exercise a fork takes it in the learner's place and runs what comes after. That takes
ten minutes, and says whose fault it is.

Four notebooks read English meanwhile, `manual`, which comes with Python, and all of their cells
run. What they print about their text must follow from it: their checks hold, and no cell names a
text that was not read.

Left out are 11a and 11b, whose answers are kernels: they store what they store, and are handed on
as they are (tests/kernels/test_notebook_kernels.py). So are cells that an answer does not reach,
what a called function changes in a thing of another cell, the pixels of figures (they are drawn,
not painted), and every profile but smoke.
"""

import ast
import builtins
import os
import re
import resource
import symtable
import textwrap

import nbformat
import pytest
import torch

from homework import handed_on, turn
from notebooks import run
from tests import warm
from tests.homework import test_blind as blind
from tests.notebooks import test_core_alone as names
from tests.notebooks.book import Book, opened

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="every answer runs in a fork"),
]
FIRST, BARE = "answer 1", "lists without a gradient"
HANDED_ON = "The notebook goes on with yours."
PATHS = [path for path in run.chosen([]) if not path.stem.startswith("11")]
# what tokens cost, what layers do to words, what weights and rows are read to mean
ENGLISH = ("00_start_here", "03_inside", "06_value_embeddings", "09_thirteen_rows")
ABOUT_OTHERS = re.compile(r"recorded|thirteen_rows|novel|set MINIMAL_DATA|Limitations:", re.I)


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


def reached(sources, *asked):
    """The places of the cells that use these names, or what is made of them, and of those they
    need; and of those that add to PLANS: a plan may be asked for by a word."""
    marked, places = set(asked), set()
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


class Answered(Book):
    """A notebook that a learner answers. `said`: the lines that its cells have printed."""

    def __init__(self, path, every_cell=False, **parameters):
        super().__init__(path, **parameters)
        self.every_cell, self.said = every_cell, []

    def together(self):
        """{exercise: "" or what stopped the notebook after its answer}. Every exercise is answered
        in one run."""
        asked, found = [turn_of(cell) for cell in self.cells], {}
        sources = [cell.source for cell in self.cells]
        using = reached(sources, *(name for _, name in filter(None, asked)))
        name = "before the first"
        for at in range(len(sources)) if self.every_cell else using:
            if asked[at]:
                name = asked[at][1]
                found[name] = self.answered(at, *asked[at])
            elif why := self.tried(self.cells[at])[1]:
                found[name] = f"{why} (EVERY_ANSWER=1 says which answer it was)"
                break
        return found

    def answered(self, at, unit, name):
        """'' if the check takes both answers; the second stays, or else the first."""
        known = answers(unit, name)
        for which in (FIRST, BARE):
            known[which](self)
            said, why = self.tried(self.cells[at])
            if why or not goes_on(said):
                return f"{which}: {why or said}"
        if HANDED_ON not in said:  # refused, and the solution stands in
            known[FIRST](self)
            self.tried(self.cells[at])
        return ""

    def one_by_one(self):
        """{(exercise, answer): "" or what stopped the notebook}."""
        found, asked = {}, [turn_of(cell) for cell in self.cells]
        last = max((at for at, turn in enumerate(asked) if turn), default=-1)
        for at, cell in enumerate(self.cells[: last + 1]):
            if asked[at]:
                for which, define in answers(*asked[at]).items():
                    after = lambda: self.after(at, asked[at][1], define)
                    found[asked[at][1], which] = warm.in_a_fork(after)
            self.run(cell.source, cell.id)
        return found

    def after(self, at, name, define):
        """'' if the notebook runs to its end with this answer, or refuses it with a reason."""
        define(self)
        said = self.run(self.cells[at].source, self.cells[at].id)
        if HANDED_ON not in said:
            return "" if goes_on(said) else said
        later = self.cells[at + 1 :]
        for place in reached([cell.source for cell in later], name):
            if why := self.tried(later[place])[1]:
                return why
        return ""

    def tried(self, cell):
        """(what a cell printed, what stopped it)."""
        try:
            said = self.run(cell.source, cell.id)
            self.said += said.splitlines()
            return said, ""
        except BaseException as error:
            return "", f"{cell.id}: {type(error).__name__}: {error}"


def goes_on(said):
    """Did a check hand the answer on, or refuse it for a reason that it gives?"""
    return HANDED_ON in said or handed_on.RIGHT in said


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
    for number, lines in enumerate(right, 1):
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


def seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_a_check_calls_right_is_handed_on_and_the_notebook_runs_to_its_end(
    path, note, monkeypatch
):
    monkeypatch.delenv("MINIMAL_DATA", raising=False)
    before, each, english = seconds(), "EVERY_ANSWER" in os.environ, path.stem in ENGLISH
    answered = Answered.one_by_one if each else Answered.together
    text = dict(corpus="manual", every_cell=True) if english else {}
    read = opened(path, lambda book: (answered(book), book.said), Answered, **text)
    assert isinstance(read, tuple), read
    found, said = read
    note("notebooks with a learner's answers", path.stem, f"{len(found)} answers" if each else "")
    print(f"{path.stem}: {len(found)} answers, {seconds() - before:.0f} CPU seconds")
    assert {which: why for which, why in found.items() if why} == {}
    if english and not each:
        names_its_text(path, said)


def names_its_text(path, said):
    """Some cell says which text was read, or draws its name; and none names another."""
    drawn = [cell for cell in run.code(nbformat.read(path, 4)) if "figures." in cell.source]
    named = any(re.search(r"\bbook\b", cell.source) for cell in drawn)
    assert named or any("manual" in line for line in said), "no cell says which text was read"
    others = [line for line in said if re.search(r"stdlib|War and Peace", line)]
    assert [line for line in others if not ABOUT_OTHERS.search(line)] == []
