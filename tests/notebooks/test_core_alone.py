"""Can the core of a notebook be run without what goes deeper? Names are followed; nothing runs."""

import ast
import builtins

import nbformat
import pytest

from notebooks import run

# the model by hand goes deeper, and what is read off it stays in the core
LEANING = {"06_value_embeddings"}


def made(tree):
    """The names that a cell gives: by =, for, with, def, class, import, or as an argument."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        if isinstance(node, ast.arg):
            names.add(node.arg)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
    return names


def used(tree):
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return {node.id for node in names if isinstance(node.ctx, ast.Load)}


def unmade(notebook):
    """{cell: names that it uses and that no cell of the core has made up to there}."""
    known, found = set(dir(builtins)), {}
    for cell in run.code(notebook):
        if "deeper" in run.tags(cell):
            continue
        tree = ast.parse(cell.source)
        known |= made(tree)
        if used(tree) - known:
            found[cell.id] = used(tree) - known
    return found


@pytest.mark.parametrize(
    "path",
    [path for path in run.chosen([]) if path.stem not in LEANING],
    ids=lambda path: path.stem,
)
def test_the_core_needs_nothing_that_is_made_deeper(path):
    assert unmade(nbformat.read(path, 4)) == {}


def test_a_name_that_is_made_deeper_or_later_is_seen():
    def cell(source, *tags):
        found = nbformat.v4.new_code_cell(source, metadata=dict(tags=list(tags)))
        found.id = source.split()[0]
        return found

    made_here = cell("import torch as t\ndef f(x):\n    return t.exp(x) + g")
    book = lambda *cells: nbformat.v4.new_notebook(cells=list(cells))
    assert unmade(book(cell("g = 1"), made_here)) == {}
    assert unmade(book(cell("g = 1", "deeper"), made_here)) == {"import": {"g"}}
    assert unmade(book(made_here, cell("g = 1"))) == {"import": {"g"}}
    assert (
        unmade(book(cell("h = print", "deeper"), cell("k = h = 1"), cell("len and str(h)"))) == {}
    )
