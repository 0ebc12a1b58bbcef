"""Can the core of a notebook be run without what goes deeper? Names are followed; nothing runs."""

import ast
import builtins
import re
import symtable

import nbformat
import pytest

from homework import cells, clock
from notebooks import run


def scopes(table):
    """A cell's scope and all that are inside it."""
    return [table] + [scope for child in table.get_children() for scope in scopes(child)]


def made(source):
    """The names that a cell gives to the cells after it: by =, for, with, def, class or import."""
    top = symtable.symtable(source, "cell", "exec")
    found = {symbol.get_name() for symbol in top.get_symbols() if gives(symbol)}
    walrus = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.NamedExpr)]
    return found | {node.target.id for node in walrus}


def gives(symbol):
    return symbol.is_assigned() or symbol.is_imported()


def used(source):
    """The names that a cell looks up outside its own functions."""
    top, *inside = scopes(symtable.symtable(source, "cell", "exec"))
    found = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_referenced()}
    for scope in inside:
        found |= {symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global()}
    return found


def unmade(notebook):
    """{cell: names that it uses and that no cell of the core has made up to there}."""
    known, found = set(dir(builtins)), {}
    for cell in run.code(notebook):
        if "deeper" in run.tags(cell):
            continue
        known |= made(cell.source)
        if used(cell.source) - known:
            found[cell.id] = used(cell.source) - known
    return found


@pytest.mark.parametrize("path", run.chosen([]), ids=lambda path: path.stem)
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


# what holds digits and is no number to remember: links, sources, time, indices, names of things
NO_NUMBER = (
    r"^## (?:References|Now you|Next)\b.*",  # to the end of the cell
    r"^\*\*(?:Time|Beside it)\.\*\* [^\n]*",
    r"^# [^\n]*",
    r"<details>.*?</details>",
    r"\[[^\]]*\]\([^)]*\)",  # a link, its words too
    r"<[^>]+>",
    r"_(?:\w|\{[^}]*\})",  # an index
    r"(?:[A-Za-z]\w*[A-Za-z_-])\d[\w-]*|\b[A-Za-z]\d+\b",  # fp32, d12, H100
    r"\b(?:[Rr]ows?|[Ll]ayers?|[Tt]ables?|[Ff]igures?|[Ee]qs?|[Ss]ections?|[Nn]otebooks?|[Hh]omework)"
    r" \d+\w?(?:(?:, | and | to |/)\d+\w?)*",
    r"^\d+\. ",  # a list
)
DIGITS = re.compile(r"\.?\d[\d.,]*")


def numbers(cell):
    """How many numbers a cell of prose asks the reader to take in, its formulas and tables too."""
    text = cell["source"]
    for pattern in NO_NUMBER:
        text = re.sub(pattern, " ", text, flags=re.S | re.M)
    return len(DIGITS.findall(text))


def numbers_of_core(notebook):
    """The numbers in the prose of what is not folded."""
    of = [cell for cell in notebook.cells if cell["cell_type"] == "markdown"]
    return sum(numbers(cell) for cell in of if "deeper" not in cells.tags(cell))


@pytest.mark.parametrize("path", sorted(run.HERE.glob("*.ipynb")), ids=lambda path: path.stem)
def test_an_hour_is_an_hour_and_its_numbers_can_be_kept_in_mind(path):
    notebook = nbformat.read(path, 4)
    assert clock.time(notebook).core <= 60
    assert numbers_of_core(notebook) <= 80


@pytest.mark.parametrize(
    "text, count",
    [
        ("a lead of 0.186 nats on code, and of 5.7 per cent", 2),
        ("| 1 | 2.5 |\n|---|---|\n$x = 0.5\\, x_0$", 3),
        ("Rows 8 and 9 of Table 1, layer 12, an H100, fp32: [paper 5](2606.02780)", 0),
        ("1. first\n2. second\n\n**Time.** 47 minutes\n\n## References\n\n- 2026, 2606.02780", 0),
    ],
)
def test_names_and_indices_are_no_numbers(text, count):
    assert numbers(nbformat.v4.new_markdown_cell(text)) == count
