"""How do exercises get into a notebook without being written twice? `python -m homework.cells nb01`

A notebook decides where an exercise stands and what is said around it. The stub in its cell tagged
`your-turn`, and the code in its folded solution, are written here, from the unit.
"""

import ast
import inspect
import json
import re
import textwrap
from pathlib import Path

from homework.turn import exercise_of, solution
from minimal.command import command
from minimal.data.files import write_whole

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
CHECK = re.compile(r'^(\w+) = your_turn\("(\w+)", (\w+)\)', re.M)
SOLUTION = re.compile(r"<details><summary>Solution: (\w+)</summary>")
CODE = re.compile(r"```python\n.*?```", re.S)


def tags(cell):
    return cell["metadata"].get("tags", [])


def turns(notebook):
    """{name: unit} of the exercises that a notebook's cells check, in order."""
    sources = ["".join(cell["source"]) for cell in notebook["cells"]]
    return {name: unit for text in sources for name, unit, _ in CHECK.findall(text)}


def stub_cell(unit, name):
    return exercise_of(unit, name).stub().rstrip()


def solution_code(unit, name):
    """The source of a solution, less what only the exercise's file needs."""
    found = solution(unit, name)
    return textwrap.dedent(inspect.getsource(getattr(found, "fn", found))).rstrip()


def defined(source):
    """The function that a cell defines, if it holds nothing else."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return None
    return body[0].name if len(body) == 1 and isinstance(body[0], ast.FunctionDef) else None


def written(cell, units):
    """What a cell of a notebook should hold: its stub, its solution, or what it holds already."""
    source = "".join(cell["source"])
    if "your-turn" in tags(cell):
        name = defined(source)
        if name not in units:
            raise ValueError(
                f"a your-turn cell holds one stub that a later cell checks, got {name}"
            )
        return stub_cell(units[name], name)
    found = SOLUTION.match(source)
    if cell["cell_type"] != "markdown" or not found:
        return source
    name = found.group(1)
    code = f"```python\n{solution_code(units[name], name)}\n```"
    return CODE.sub(lambda _: code, source, count=1)


def update(path):
    """Write stubs and solutions into a notebook; True if anything changed."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    units, changed = turns(notebook), False
    for cell in notebook["cells"]:
        now = written(cell, units)
        if now != "".join(cell["source"]):
            cell["source"], changed = now.splitlines(keepends=True), True
    if changed:
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        write_whole(path, text + "\n")
    return changed


@command("homework.cells", __doc__)
def main(parser, argv):
    parser.add_argument("units", nargs="*", help="for example nb01; without: every notebook")
    asked = parser.parse_args(argv).units
    paths = {f"nb{path.name.split('_')[0]}": path for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
    for unit in asked or paths:
        if unit not in paths:
            parser.error(f"wanted some of {', '.join(paths)}, got {unit}")
    for path in [paths[unit] for unit in asked or paths]:
        print(f"{path.name}: {'written' if update(path) else 'as it should be'}")


if __name__ == "__main__":
    main()
