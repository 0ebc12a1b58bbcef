"""Has every notebook the shape that a reader relies on? Its source is judged; nothing runs."""

import ast
import builtins
import re
import subprocess
import symtable
import sys
from pathlib import Path

import nbformat
import papermill
import pytest

from notebooks import run
from tests.syllabus import SYLLABUS

PATHS = run.chosen([])
LINES, WIDTH = 25, 120  # what fits beside a reader, and on a page 1,280 pixels wide


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, 4)


def prose(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def text_of(notebook):
    return "\n\n".join(cell.source for cell in prose(notebook))


def test_every_notebook_is_one_of_the_syllabus():
    assert PATHS and {path.stem for path in PATHS} <= set(SYLLABUS), "add it to tests/syllabus.py"


def test_the_source_is_as_run_py_clean_leaves_it(path, notebook):
    nbformat.validate(notebook)
    cleaned = nbformat.writes(run.clean(notebook, path.stem)) + "\n"
    assert path.read_text(encoding="utf-8") == cleaned, "python notebooks/run.py --clean"


def test_cell_ids_are_words(notebook):
    ids = [cell.id for cell in notebook.cells]
    assert [
        name
        for name in ids
        if run.RANDOM_ID.fullmatch(name) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    ] == []
    assert len(set(ids)) == len(ids)


def test_it_opens_with_title_claim_and_time_then_asks_for_parameters(path, notebook):
    title = notebook.cells[0].source
    assert re.match(rf"# {path.stem.split('_')[0]} · \S", title)
    assert all(part in title for part in ("**The claim.**", "**Time.**", "**You need**", "GPU"))
    stored = "](../slides/figures/" in title  # in 00: there before anything runs
    assert stored or notebook.cells[1].id == "drawing", "the system stands on the first screen"
    work = [cell for cell in run.code(notebook) if "drawing" not in run.tags(cell)]
    parameters, derived = work[:2]
    assert set(run.tags(parameters)) <= {"parameters", "hide-input"}
    assert "profile" in derived.source, (
        "what follows from the parameters stands in the next cell, which papermill leaves alone"
    )


def test_parameters_are_flat_literals_with_a_type_and_a_word_of_help(path, notebook):
    lines = next(
        cell for cell in run.code(notebook) if "parameters" in run.tags(cell)
    ).source.splitlines()
    assert lines[0].startswith('profile: str = "laptop"  # smoke, laptop or gpu')
    for line in lines:
        assign = ast.parse(line).body[0]
        assert isinstance(assign, ast.AnnAssign), line
        ast.literal_eval(assign.value)
    told = papermill.inspect_notebook(path)
    assert list(told) == run.known_parameters(notebook)
    assert [
        name
        for name, about in told.items()
        if not about["help"] or about["inferred_type_name"] == "None"
    ] == []


def test_papermill_documents_the_parameters():
    done = subprocess.run(
        [sys.executable, "-m", "papermill", "--help-notebook", PATHS[0]],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert re.search(r"profile: str.*\n?.*smoke, laptop or gpu", done.stdout), (
        done.stdout + done.stderr
    )


def test_no_cell_is_a_wall_of_code(notebook):
    assert {
        cell.id: n for cell in run.code(notebook) if (n := cell.source.count("\n") + 1) > LINES
    } == {}
    assert [
        line
        for cell in run.code(notebook)
        for line in cell.source.splitlines()
        if len(line) > WIDTH
    ] == []


def test_headings_go_down_one_step_at_a_time(notebook):
    levels = [
        len(mark)
        for mark in re.findall(
            r"^(#+) ", re.sub(r"```.*?```", "", text_of(notebook), flags=re.S), flags=re.M
        )
    ]
    assert levels[0] == 1 and levels.count(1) == 1
    assert [(a, b) for a, b in zip(levels, levels[1:]) if b > a + 1] == []


def test_it_predicts_checks_asks_and_cites(notebook):
    text, code = text_of(notebook), "\n".join(cell.source for cell in run.code(notebook))
    assert (
        text.count("> **Predict.**") >= 2
        and len(re.findall(r"^guess\w*.*= .*None", code, flags=re.M)) >= 2
    )
    assert (
        "<details><summary>Hint</summary>\n\n" in text
        and "<details><summary>Answer</summary>\n\n" in text
    )
    assert text.count("<details>") == text.count("</details>") == text.count("</summary>\n\n")
    assert "## Checks" in text and "## References" in text and "arxiv.org/abs/" in text
    assert not re.search(r"seed 00\d", text), "a source is cited by title and arXiv id"


def unasked(notebook):
    """The cells that take a guess for which no prediction has been asked since the guess before."""
    found, asked = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            asked |= "> **Predict.**" in cell.source
        elif re.search(r"^guess\w*.*= .*None", cell.source, flags=re.M):
            found += [] if asked else [cell.id]
            asked = False
    return found


def test_a_guess_is_asked_for_before_it_is_taken(notebook):
    assert unasked(notebook) == []


def test_a_guess_that_nobody_asked_for_is_seen():
    ask = nbformat.v4.new_markdown_cell("> **Predict.** How many?")
    taken, again = (nbformat.v4.new_code_cell("guess_many = None  # a number") for _ in range(2))
    book = lambda *cells: nbformat.v4.new_notebook(cells=list(cells))
    assert unasked(book(ask, taken)) == []
    assert unasked(book(ask, taken, again)) == [again.id]


def loose(notebook):
    """The cells in which what asks to predict or to write is no quote, which is a box on a forge,
    on the site and in JupyterLab. What asks to write is one to the end of its cell."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type != "markdown":
            continue
        opens = re.search(r"^(?!> )[^\w\n]*\*\*(Predict|Your turn)\b", cell.source, flags=re.M)
        asks = re.search(r"^> \*\*Your turn\*\*.*\Z", cell.source, flags=re.M | re.S)
        lines = asks[0].splitlines() if asks else []
        if opens or not all(line.startswith(">") for line in lines):
            found.append(cell.id)
    return found


def test_predict_and_your_turn_are_boxes_of_one_form(notebook):
    assert loose(notebook) == []


@pytest.mark.parametrize(
    "text, held",
    [
        ("Words.\n\n> **Your turn** · easy. Write.\n>\n> Run it.", True),
        ("*Your turn* cells are yours. Is it **your turn**?", True),
        ("**Your turn** · easy. Write.", False),
        ("> **Your turn** · easy. Write.\n\nRun it.", False),
        ("Words.\n\n**Predict.** How many?", False),
    ],
)
def test_a_box_of_another_form_is_seen(text, held):
    cell = nbformat.v4.new_markdown_cell(text)
    assert loose(nbformat.v4.new_notebook(cells=[cell])) == ([] if held else [cell.id])


def test_every_check_says_what_it_claims(notebook):
    checks = [cell for cell in run.code(notebook) if "checks" in run.tags(cell)]
    asserts = [
        line
        for cell in checks
        for line in ast.walk(ast.parse(cell.source))
        if isinstance(line, ast.Assert)
    ]
    assert len(asserts) >= 5
    assert [ast.unparse(line.test) for line in asserts if line.msg is None] == []


def test_pictures_go_through_figures_show(notebook):
    code = "\n".join(cell.source for cell in run.code(notebook))
    assert "figures.show(" in code
    assert re.findall(r"plt\.show|display\(fig|\bpyplot\b|^%matplotlib", code, flags=re.M) == []
    assert [cell.id for cell in notebook.cells if cell.get("attachments")] == []


def names_made(code):
    """What a cell imports, defines or assigns."""
    made = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            made |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            made.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            made.add(node.id)
    return made


def names_asked(scope):
    """What a text looks up outside of its functions."""
    asked = {one.get_name() for one in scope.get_symbols() if one.is_global()}
    return asked.union(*map(names_asked, scope.get_children()))


def test_a_folded_solution_runs_where_it_stands(notebook):
    """Typed into its cell it finds all it names: a learner who copies it is not told of F."""
    known = {*dir(builtins), *("hint", "case", "your_turn")}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            known |= names_made(re.sub(r"^[%!].*$", "", cell.source, flags=re.M))
        for solution in re.findall(r"<summary>Solution.*?```python\n(.*?)```", cell.source, re.S):
            asked = names_asked(symtable.symtable(solution, cell.id, "exec"))
            assert asked - known - names_made(solution) == set(), cell.id


def test_links_lead_somewhere(path, notebook):
    local = [
        link
        for link in re.findall(r"\]\(([^)]+)\)", text_of(notebook))
        if "//" not in link and link[0] != "#"
    ]
    lost = []
    for link in local:
        name, _, part = link.partition("#")
        file = path.parent / name
        there = file.exists() or Path(name).stem in SYLLABUS
        if not there or (part and part not in parts_of(file)):
            lost.append(link)
    assert lost == []


def parts_of(page):
    """The names of a page's headings, as forges write them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return [re.sub(r"[^\w -]", "", words).lower().replace(" ", "-") for words in headings]
