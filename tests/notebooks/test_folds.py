"""What is closed when a notebook opens: code that only draws, and what goes deeper?

JupyterLab reads metadata, the site reads tags. Both are looked at here; nothing runs.
"""

import nbformat
import pytest

from course import folds
from homework import clock
from notebooks import run
from slides import lesson

PATHS = run.chosen([])
FEW = 3  # lines of drawing that nobody has to be spared


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def cells(request):
    return nbformat.read(request.param, 4).cells


def draws_at_length(cell):
    """Is at least half of a cell, and more than a few lines, there to draw?"""
    drawing = [text for draws, text in lesson.pieces(cell.source) if draws]
    many = sum(text.count("\n") + 1 for text in drawing)
    return cell.cell_type == "code" and many > FEW and 2 * many >= clock.read(cell)[1]


def hidden_in_lab(cell):
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def opens_on_a_click(cell):
    """Does the site fold all of its code, or leave it out?"""
    shown = lesson.source_html(cell)
    return not shown or shown.startswith("<details")


def test_a_cell_that_draws_at_length_is_folded_in_lab_and_on_the_site(cells):
    drawing = [cell for cell in cells if draws_at_length(cell)]
    assert [cell.id for cell in drawing if not hidden_in_lab(cell)] == []
    assert [cell.id for cell in drawing if not opens_on_a_click(cell)] == []


def test_what_the_site_hides_lab_hides_too(cells):
    asked = [cell for cell in cells if folds.HIDDEN & folds.tags(cell)]
    assert [cell.id for cell in asked if not hidden_in_lab(cell)] == []


def test_what_goes_deeper_is_closed_and_the_core_is_not(cells):
    under, headings = folds.under_folds(cells)
    collapsed = [cell.metadata.get("jp-MarkdownHeadingCollapsed", False) for cell in cells]
    assert [at for at, closed in enumerate(collapsed) if closed] == headings
    for cell, hidden, closed in zip(cells, under, collapsed, strict=True):
        deeper = "deeper" in folds.tags(cell)
        assert not hidden or deeper, f"{cell.id}: of the core, under a collapsed heading"
        assert not deeper or hidden or closed or hidden_in_lab(cell), f"{cell.id}: deeper, and open"


def test_every_run_of_deeper_cells_is_one_fold_of_the_site(cells):
    shown = lesson.runs(cells[lesson.first_section(cells) :])
    wanted = sum(deeper for deeper, _ in shown)
    page = lesson.body(nbformat.v4.new_notebook(cells=cells))
    assert page.count('<details class="deeper">') == wanted > 0


def test_no_exercise_of_the_core_is_hidden(cells):
    exercises = [c for c in cells if "your-turn" in folds.tags(c) and "deeper" not in folds.tags(c)]
    assert [cell.id for cell in exercises if hidden_in_lab(cell)] == []


def book(*cells):
    """Cells from (source, tags…); a source that begins with # or a capital letter is text."""
    found = []
    for source, *tags in cells:
        text = source[0] in "#T"
        make = nbformat.v4.new_markdown_cell if text else nbformat.v4.new_code_cell
        found.append(make(source, metadata=dict(tags=tags)))
    return found


def test_a_fold_ends_at_a_heading_that_stands_as_high():
    cells = book(
        ("## A",),
        ("### B (deeper)", "deeper"),
        ("x = 1", "deeper"),
        ("#### C", "deeper"),
        ("### D (deeper)", "deeper"),
        ("## E",),
        ("y = 1", "deeper"),
        ("## F\n\n```python\n# not a heading\n```",),
        ("z = 1", "hide-input"),
    )
    under, headings = folds.under_folds(cells)
    assert under == [False, False, True, True, False, False, False, False, False]
    assert headings == [1, 4]
    told = folds.metadata(cells)
    assert told[1] == told[4] == {"jp-MarkdownHeadingCollapsed": True}
    assert told[6] == told[8] == {"jupyter": {"source_hidden": True}}
    assert [told[at] for at in (0, 2, 3, 5, 7)] == [{}] * 5


def test_a_core_cell_under_a_fold_is_seen():
    cells = book(("### A (deeper)", "deeper"), ("Text without a heading",))
    assert folds.under_folds(cells)[0] == [False, True]


def test_a_cell_that_draws_is_told_from_one_that_counts():
    long = "fig, ax = figures.axes('x')\nax.plot(a)\nax.plot(b)\nfigures.show(fig, 'y')"
    short = "figures.show(figures.lines(a, 'x'), 'y')"
    counts = "\n".join(f"x{n} = {n}" for n in range(9))
    assert [draws_at_length(cell) for cell in book((long,), (short,), (f"{counts}\n{long}",))] == [
        True,
        False,
        False,
    ]


def test_the_first_screen_is_the_drawing_and_the_question_not_parameters_and_imports(cells):
    first = [cell for cell in cells if cell.id in ("drawing", "parameters", "derived")]
    assert len(first) >= 2 and all(map(hidden_in_lab, first))  # in 00 the drawing is stored
