"""Is a notebook's core a path that one can finish? Cells, minutes and lines are counted.

The core is what is neither tagged `deeper` nor written by the learner: stubs, and solutions folded
until she asks.
"""

import nbformat
import pytest

from homework import cells, clock
from notebooks import run

CELLS, MINUTES, LINES = 45, 60, 12  # of a core; lines of a cell whose code is shown
NOT_YET = {
    "00_start_here",
    "01_attention",
    "02_transformer",
    "03_inside",
    "04_resformer",
    "05_svformer",
    "06_value_embeddings",
    "07_dynamic_value_attention",
    "08_bert_bypass",
    "09_thirteen_rows",
    "10_bank_of_values",
}

paths = pytest.mark.parametrize(
    "path",
    [path for path in run.chosen([]) if path.stem not in NOT_YET],
    ids=lambda path: path.stem,
)


def core(notebook):
    """The cells that everybody reads."""
    told = [cell for cell in notebook.cells if not clock.written(cell)]
    return [cell for cell in told if "deeper" not in cells.tags(cell)]


def shown(cell):
    """Is it code that a reader sees?"""
    return cell.cell_type == "code" and "remove-input" not in cells.tags(cell)


@paths
def test_the_core_is_a_path_one_can_finish(path):
    notebook = nbformat.read(path, 4)
    assert len(core(notebook)) <= CELLS
    assert clock.time(notebook).core <= MINUTES


@paths
def test_a_core_cell_is_read_at_a_glance(path):
    visible = filter(shown, core(nbformat.read(path, 4)))
    lines = {cell.id: clock.read(cell)[1] for cell in visible}
    assert {name: count for name, count in lines.items() if count > LINES} == {}
