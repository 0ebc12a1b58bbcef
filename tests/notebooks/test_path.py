"""Can a notebook's core be finished? Few cells, an hour at most, and cells read at a glance."""

import nbformat
import pytest

from homework import cells, clock
from notebooks import run

CELLS, LINES, MINUTES = 48, 12, 60

PATHS = run.chosen([])


def core(notebook):
    """What everybody reads: neither deeper, nor written, checked or unfolded by the learner."""
    read = [cell for cell in notebook.cells if "deeper" not in cells.tags(cell)]
    return [c for c in read if not clock.written(c) and not cells.CHECK.match(c.source)]


def long_cells(notebook):
    """{id: lines} of the visible code cells of the core that take more than a glance."""
    visible = [cell for cell in core(notebook) if not clock.HIDDEN & set(cells.tags(cell))]
    lines = {cell.id: clock.read(cell)[1] for cell in visible if cell.cell_type == "code"}
    return {name: many for name, many in lines.items() if many > LINES}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_core_is_a_path_one_can_finish(path):
    notebook = nbformat.read(path, 4)
    assert len(core(notebook)) <= CELLS
    assert clock.time(notebook).core <= MINUTES


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_core_cell_is_read_at_a_glance(path):
    assert long_cells(nbformat.read(path, 4)) == {}


def test_a_long_cell_and_a_long_core_are_seen():
    make = nbformat.v4
    long, short = "\n".join(["x = 1"] * (LINES + 1)), "\n\n".join(["x = 1", "# why"] * LINES)
    notebook = make.new_notebook(
        cells=[
            make.new_code_cell(long, id="long"),
            make.new_code_cell(short, id="short"),
            make.new_code_cell(long, id="deep", metadata=dict(tags=["deeper"])),
            make.new_code_cell(long, id="yours", metadata=dict(tags=["your-turn"])),
            make.new_code_cell(long, id="drawing", metadata=dict(tags=["remove-input"])),
            make.new_markdown_cell("<details><summary>Solution: x</summary>", id="solved"),
        ]
    )
    assert long_cells(notebook) == {"long": LINES + 1}
    assert [cell.id for cell in core(notebook)] == ["long", "short", "drawing"]
