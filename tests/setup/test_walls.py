"""Do the rooms of `minimal` stand? Imports run one way, in no circle; nothing imports the lab."""

import ast
import graphlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# room -> the rooms that it may import from, besides itself. Files beside the rooms are the
# commands, but command.py, what they all share, is a ground floor of its own
MAY = {
    "kernels": set(),
    "command": set(),
    "data": {"command"},
    "training": {"command", "data"},
    "model": {"command", "kernels"},
    "commands": {"command", "model", "training", "data", "kernels"},
    "tasks": {"command", "commands", "model", "training", "data", "kernels"},
    "encoder": {"command", "tasks", "commands", "model", "training", "data", "kernels"},
    "lab": {"command", "tasks", "encoder", "commands", "model", "training", "data", "kernels"},
}


def package(root=ROOT):
    """{module: source} of every file, `minimal.model.values` and the like."""
    paths = sorted((root / "minimal").rglob("*.py"))
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path.read_text() for path in paths
    }


def imported(source, modules):
    """The modules of ours that this source imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide the room: write the whole name"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                found.add(
                    inside if inside in modules or f"{inside}.__init__" in modules else node.module
                )
    return {name for name in found if name == "minimal" or name.startswith("minimal.")}


def room(module):
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in MAY else "commands"


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
            "def late():\n    from minimal.lab import figures",
            "minimal.train (commands) imports minimal.lab",
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
    assert rooms == MAY.keys() - {"command", "commands"}


def test_the_front_door_is_a_map_that_names_every_room_and_every_command():
    front = package()["minimal.__init__"]
    tree = ast.parse(front)
    waiting = [ast.unparse(statement).splitlines()[0] for statement in tree.body[1:]]
    assert ast.get_docstring(tree)
    asked = ["import os", "import sys", "if sys.argv[:1] == ['-m']:"]
    assert waiting == [*asked, "if 'OMP_WAIT_POLICY' not in os.environ:"], "no other code"
    inside = [
        path
        for path in (ROOT / "minimal").iterdir()
        if path.name not in ("__init__.py", "__pycache__")
    ]
    assert [path.name for path in inside if path.name not in front] == []
