"""Do the rooms stand? Imports run one way, in no circle, over the whole tree: the package, what
notebooks import, what serves the records, slides; and homework beside them."""

import ast
import functools
import graphlib
import inspect
import pathlib
import subprocess
import sys

import pytest

import minimal

ROOT = pathlib.Path(__file__).resolve().parents[2]

# room -> the rooms that it may import from, besides itself. Files beside the rooms of minimal are
# the commands, but command.py and callable.py, which are ground floors of their own
GROUND = {"command", "callable"}
PACKAGE = GROUND | {"commands", "model", "training", "data", "kernels"}
ALL = PACKAGE | {"tasks", "encoder", "compare", "bench"}
MAY = {
    "kernels": set(),
    "command": set(),
    "callable": set(),
    "data": {"command"},
    "training": {"command", "data"},
    "model": {"command", "kernels"},
    "commands": PACKAGE,
    "tasks": PACKAGE,
    "encoder": PACKAGE | {"tasks"},
    "compare": PACKAGE | {"bench"},
    "bench": PACKAGE | {"compare"},
    "homework": ALL,
    "course": ALL,
    "evidence": ALL | {"course"},
    "notebooks": ALL | {"course", "homework"},
    "slides": ALL | {"course", "evidence", "notebooks", "homework"},
}

# where the files of a room lie, and under which name they are imported
TREES = dict(
    minimal="minimal",
    homework="homework",
    course="notebooks/course",
    evidence="notebooks/evidence",
    notebooks="notebooks",
    slides="slides",
)


def package(root=ROOT):
    """{module: source} of every file, `minimal.model.values` and the like."""
    found = {}
    for name, folder in TREES.items():
        here = root / folder
        pattern = "*.py" if name == "notebooks" else "**/*.py"
        for path in sorted(here.glob(pattern)):
            parts = path.relative_to(here).with_suffix("").parts
            found[".".join((name, *parts))] = path.read_text()
    return found


@functools.cache  # a test changes one file of five hundred
def imports_of(source):
    """The import statements of a source, at the top or inside functions."""
    wanted = (ast.Import, ast.ImportFrom)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, wanted)]


def imported(source, modules):
    """The modules of ours that this source imports."""
    found = set()
    for node in imports_of(source):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide the room: write the whole name"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.add(
                    inside if inside in modules or f"{inside}.__init__" in modules else node.module
                )
    return {name for name in found if name.split(".")[0] in TREES}


def room(module):
    first, *rest = module.split(".")
    if first != "minimal":
        return first
    return rest[0] if rest and rest[0] in MAY else "commands"


def broken_walls(package):
    """One sentence for every import that runs against the plan."""
    arrows = {name: imported(source, package) for name, source in package.items()}
    found = []
    for name, targets in arrows.items():
        for target in sorted(targets):
            here, there = room(name), room(target)
            if here != there and there not in MAY[here]:
                found.append(f"{name} ({here}) imports {target} ({there})")
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        found.append(f"a circle: {' -> '.join(error.args[1])}")
    return found


def test_imports_run_one_way_and_in_no_circle():
    assert broken_walls(package()) == []


@pytest.mark.parametrize(
    "module, line, told",
    [
        (
            "minimal.kernels.histogram",
            "from minimal.model.tape import Rows",
            "kernels.histogram (kernels) imports minimal.model.tape",
        ),
        (
            "minimal.train",
            "def late():\n    from course import figures",
            "minimal.train (commands) imports course.figures (course)",
        ),
        (
            "homework.grade",
            "from course import figures",
            "homework.grade (homework) imports course.figures (course)",
        ),
        (
            "course.figures",
            "from evidence.lab import quantities",
            "course.figures (course) imports evidence.lab.quantities (evidence)",
        ),
        (
            "evidence.lab.quantities",
            "from slides import tables",
            "evidence.lab.quantities (evidence) imports slides.tables (slides)",
        ),
        (
            "minimal.data.files",
            "import minimal.training.run",
            "minimal.data.files (data) imports minimal.training.run",
        ),
        (
            "minimal.kernels.reference",
            "from minimal.command import number",
            "kernels.reference (kernels) imports minimal.command",
        ),
        (
            "minimal.command",
            "from minimal.data.files import DataError",
            "minimal.command (command) imports minimal.data.files",
        ),
        ("minimal.model.tape", "from minimal.model.transformer import GPT", "a circle: "),
    ],
)
def test_one_import_turned_round_is_found(module, line, told):
    changed = package()
    changed[module] += "\n" + line
    assert any(told in sentence for sentence in broken_walls(changed))


def test_every_file_has_a_room():
    rooms = {
        path.name
        for path in (ROOT / "minimal").iterdir()
        if path.is_dir() and path.name != "__pycache__"
    }
    assert rooms == ALL - GROUND - {"commands"}


def test_the_front_door_names_every_room_and_every_command():
    front = ast.get_docstring(ast.parse(package()["minimal.__init__"]))
    inside = [
        path.name
        for path in (ROOT / "minimal").iterdir()
        if path.name not in ("__init__.py", "__pycache__", "py.typed")
    ]
    assert [name for name in inside if name not in front] == []


IN_ANY_ORDER = """
import os, sys, time
before, began = dict(os.environ), time.process_time()  # a busy neighbour takes none of it
import minimal
took = time.process_time() - began
assert took < 0.05, took
assert "torch" not in sys.modules and dict(os.environ) == before
import minimal.train                                # the module first, then the function
from minimal import train, generate, build, load, Run, Plan, place, PLANS, gather_attention
assert minimal.__version__ and callable(train) and callable(generate)
assert train is minimal.train and minimal.train.Trainer
assert set(minimal.__all__) == set(dir(minimal))
try:
    minimal.nothing
except AttributeError as error:
    assert "minimal has build" in str(error)
"""


def test_the_public_names_are_lazy_and_come_in_any_order():
    done = subprocess.run([sys.executable, "-c", IN_ANY_ORDER], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_public_names_say_what_they_take_and_give():
    public = {name: getattr(minimal, name) for name in minimal.__all__}
    called = {name: thing for name, thing in public.items() if callable(thing)}
    assert {*public} - {*called} == {"PLANS", "__version__"}
    for name, thing in called.items():
        signature = inspect.signature(thing)
        ends = [] if inspect.isclass(thing) else [signature.return_annotation]
        taken = [parameter.annotation for parameter in signature.parameters.values()]
        assert inspect.Parameter.empty not in [*taken, *ends], f"{name}{signature}"


# ---- one meaning for each name of a room ---------------------------------------------------------

# Words that several files of a room may have, and why: room -> [(why, the words)]. All other names
# stand once, so that a search finds one thing.
SHARED = dict(
    minimal=[
        ("parts of a command", "main options report"),
        ("read through their module, as squad.read and checkpoint.load", "read load build"),
        ("gpt.py tells the model a second time, on one screen", "GPT Layer"),
        ("what Python asks of a lazy module", "__all__ __getattr__"),
    ],
    course=[
        ("the command", "main"),
        ("measures of a drawing, which has its own", "LEFT MIDDLE RIGHT TOP WIDE HIGH"),
    ],
    slides=[("the command", "main")],
    lab=[("the command", "main")],
    evidence=[
        ("parts of a command", "main report"),
        ("what each study was given", "SEEDS STEPS"),
        ("what each command and each bench runs", "PLANS PARTS SHAPES KINDS everything"),
        ("a bench, and its rows as the page has them", "decode generation table_gradient"),
        ("the ways of one bench, and whether they agree", "decode_ways agree"),
    ],
)


@functools.cache
def names_of(source):
    """The functions, classes and constants at the top of a file."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.Assign):
            parts = (part for target in node.targets for part in ast.walk(target))
            found |= {part.id for part in parts if isinstance(part, ast.Name)}
    return found


def shared(tree):
    """The words that several files of a room may have."""
    return {word for _, words in SHARED[tree] for word in words.split()}


def tree_of(module):
    """The small library of the laboratory has names of its own."""
    return "lab" if module.startswith("evidence.lab") else module.split(".")[0]


def homes(package, tree):
    """{name: the files of a room in which it stands}."""
    found = {}
    for module, source in package.items():
        if tree_of(module) == tree:
            for name in names_of(source):
                found.setdefault(name, []).append(module)
    return found


def standing_twice(package, tree):
    """The same of names in several files, but for the words that they share."""
    found = homes(package, tree).items()
    return {name: files for name, files in found if len(files) > 1 and name not in shared(tree)}


@pytest.mark.parametrize("tree", SHARED)
def test_a_name_of_a_room_means_one_thing(tree):
    assert standing_twice(package(), tree) == {}


@pytest.mark.parametrize("word", ["Own", "dense", "reference", "rows_of", "told"])
def test_a_word_that_once_meant_several_things_means_one_everywhere(word):
    found = [homes(package(), tree).get(word, []) for tree in SHARED]
    assert len(sum(found, [])) == 1


@pytest.mark.parametrize("tree", SHARED)
def test_a_shared_word_stands_in_several_files(tree):
    found = homes(package(), tree)
    assert {word: found[word] for word in shared(tree) if len(found[word]) < 2} == {}


@pytest.mark.parametrize(
    "second, line, first",
    [
        ("minimal.generate", "def place(): ...", "minimal.model.plan"),
        ("course.diary", "def gap(): ...", "course.proofs"),
        ("slides.front", "def escaped(text): ...", "slides.shell"),
        ("evidence.bench.gpu_table", "def newest(rows): ...", "evidence.bench.table"),
    ],
)
def test_a_second_home_of_a_name_is_found(second, line, first):
    changed = package()
    changed[second] += "\n" + line
    [name] = names_of(line)
    found = standing_twice(changed, second.split(".")[0])
    assert sorted(found[name]) == sorted([first, second])
