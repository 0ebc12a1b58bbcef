"""Is every deck one that can be given? Its source is judged; nothing runs, in no browser."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from notebooks import run
from slides import deck, page
from tests.syllabus import SYLLABUS

ROOT = Path(run.__file__).resolve().parents[1]
LINES, WIDTH, BESIDE = 10, 84, 46  # of visible code on a slide, and beside words


@pytest.fixture(params=deck.decks(), ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.read(path, 4)


@pytest.fixture
def slides(notebook):
    return deck.slides(notebook)


def visible_code(cells):
    return [
        cell for cell in cells if cell.cell_type == "code" and "remove-input" not in page.tags(cell)
    ]


def test_every_deck_is_one_of_the_syllabus():
    assert deck.decks() and {path.stem for path in deck.decks()} <= set(SYLLABUS[1:]), (
        "add it to tests/syllabus.py"
    )


def test_the_source_is_as_run_py_clean_leaves_it(path, notebook):
    nbformat.validate(notebook)
    cleaned = nbformat.writes(run.clean(notebook, path.stem)) + "\n"
    assert path.read_text(encoding="utf-8") == cleaned, "python notebooks/run.py --clean"


def test_cell_ids_are_words_and_slides_can_be_linked_to(notebook):
    ids = [cell.id for cell in notebook.cells]
    assert [
        name
        for name in ids
        if run.RANDOM_ID.fullmatch(name) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)
    ] == []
    assert len(set(ids)) == len(ids)


def test_every_cell_says_its_slide_type(notebook):
    known = {"slide", "fragment", "-", "notes", "skip"}
    assert [
        cell.id
        for cell in notebook.cells
        if cell.metadata.get("slideshow", {}).get("slide_type") not in known
    ] == []


def test_a_deck_runs_by_itself_like_a_notebook(notebook):
    parameters = run.code(notebook)[0]
    assert run.known_parameters(notebook)[0] == "profile" and "parameters" in page.tags(parameters)
    assert run.faults_before(notebook, {}) == []


def test_a_lecture_has_12_to_20_slides(slides):
    assert 12 <= len(slides) <= 20


def test_every_slide_has_one_heading_and_the_first_has_the_title(path, slides):
    assert slides[0][0].source.startswith(f"# {path.stem.split('_')[0]} · ")
    assert [cells[0].id for cells in slides[1:] if not re.match(r"## \S", cells[0].source)] == []
    assert [
        cells[0].id
        for cells in slides
        if sum(
            len(re.findall(r"^#+ ", cell.source, flags=re.M))
            for cell in cells
            if cell.cell_type == "markdown"
        )
        != 1
    ] == []


def test_it_begins_with_a_title_asks_the_room_and_ends_with_what_was_measured_and_what_was_not(
    slides,
):
    kinds = [deck.kind(cells) for cells in slides]
    assert kinds[0] == "title" and kinds[-1] == "end" and kinds.count("predict") >= 1
    assert [
        cells[0].id
        for cells, kind in zip(slides, kinds)
        if kind == "predict" and "> " not in cells[0].source
    ] == []
    words = " ".join(cell.source for cell in slides[-1])
    assert re.search(r"(?i)what we measured", slides[-1][0].source) and re.search(
        r"(?i)\bnot\b.*measured|measured.*\bnot\b", words, flags=re.S
    )


def test_every_slide_has_notes_that_can_be_read_aloud(slides):
    """Sentences, forty words at least, and no marks that a voice cannot say."""
    notes = {
        cells[0].id: " ".join(cell.source for cell in cells if deck.slide_type(cell) == "notes")
        for cells in slides
    }
    assert {name: len(text.split()) for name, text in notes.items() if len(text.split()) < 40} == {}
    assert {
        name: found
        for name, text in notes.items()
        if (found := re.findall(r"[$`_\\|<>=]|\]\(|^#|^- ", text, flags=re.M))
    } == {}


def test_no_slide_is_a_wall_of_code(slides):
    for cells in slides:
        shown = [line for cell in visible_code(cells) for line in cell.source.splitlines()]
        width = BESIDE if deck.kind(cells) == "beside" else WIDTH
        assert len(shown) <= LINES, f"{cells[0].id}: {len(shown)} lines of code"
        assert [line for line in shown if len(line) > width] == [], (
            f"{cells[0].id}: code wider than {width}"
        )
    assert [
        cell.id
        for cells in slides
        for cell in cells
        if cell.cell_type == "code" and cell.source.count("\n") >= 25
    ] == []


def test_figures_are_drawn_live_for_the_wall_and_have_alt_texts_of_their_own(notebook):
    code = "\n".join(cell.source for cell in run.code(notebook))
    assert (
        "figures.for_slide(" in code
        and re.findall(r"plt\.show|display\(fig|\bpyplot\b|!\[[^]]*\]\(|<img", code) == []
    )
    assert [
        cell.id
        for cell in notebook.cells
        if cell.get("attachments") or (cell.cell_type == "markdown" and "<img" in cell.source)
    ] == []
    calls = [
        node
        for cell in run.code(notebook)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "draw"
    ]
    alts = [ast.unparse(call.args[1]) for call in calls]
    assert len(alts) >= 3 and len(set(alts)) == len(alts)
    assert [alt for alt in alts if len(alt) < 42] == []


def test_the_title_is_that_of_its_notebook(path, notebook):
    twin = ROOT / "notebooks" / path.name
    if twin.exists():
        assert page.title(notebook, "") == page.title(nbformat.read(twin, 4), "")


def test_the_drawing_on_a_title_is_one_of_its_notebook_and_as_large_as_a_slide_needs():
    """Seven decks at least: 01 to 07."""
    drawn = 0
    for path in deck.decks():
        first = deck.slides(nbformat.read(path, 4))[0]
        for cell in (cell for cell in first if "drawing" in page.tags(cell)):
            call = ast.parse(cell.source).body[-1].value
            assert ast.unparse(call.func).endswith(".for_slide"), path.stem
            name = call.func.value.func.id
            of_notebook = nbformat.read(ROOT / "notebooks" / path.name, 4).cells
            drawings = [cell.source for cell in of_notebook if "drawing" in page.tags(cell)]
            assert any(f"{name}(" in source for source in drawings), f"{path.stem}: {name}"
            assert "remove-input" in page.tags(cell), path.stem
            drawn += 1
    assert drawn >= 7


def test_every_drawing_is_as_large_as_a_slide_needs(notebook):
    """The walk through a deck does not see the letters inside a picture."""
    trees = [ast.parse(cell.source) for cell in run.code(notebook)]
    drawers = {
        name.name
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and "course.drawings" in node.module
        for name in node.names
    }
    shown = [tree.body[-1].value for tree in trees if isinstance(tree.body[-1], ast.Expr)]
    assert [ast.unparse(one) for one in shown if getattr(one.func, "id", "") in drawers] == []
