"""Can a learner finish the core of a notebook, and read each of its cells at a glance?

The core is what is neither tagged `deeper` nor written by the learner: her stubs, and the solutions
that are folded.
"""

import nbformat
import pytest

from homework import cells, clock
from notebooks import run

CELLS, MINUTES = 45, 60  # of a notebook's core
LINES = 12  # of code in a cell; blank lines and comments are not counted
HIDDEN = {"remove-input", "hide-input"}

# the notebooks of which this is not yet true
NOT_YET = {
    "00_start_here",
    "01_attention",
    "02_transformer",
    "03_inside",
    "08_bert_bypass",
    "09_thirteen_rows",
    "10_bank_of_values",
    "11a_write_a_kernel",
    "11b_decode_and_the_best_kernel",
    "12_scale_and_evidence",
    "13_what_came_next",
}
PATHS = [path for path in run.chosen([]) if path.stem not in NOT_YET]
each_notebook = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


def core(notebook):
    return [
        cell
        for cell in notebook.cells
        if not clock.written(cell) and "deeper" not in cells.tags(cell)
    ]


def long_cells(notebook):
    """{id: lines} of the core's code cells that take more than a glance."""
    visible = [
        cell
        for cell in core(notebook)
        if cell.cell_type == "code" and not HIDDEN & set(cells.tags(cell))
    ]
    lines = {cell.id: clock.read(cell)[1] for cell in visible}
    return {name: count for name, count in lines.items() if count > LINES}


@each_notebook
def test_the_core_is_a_path_one_can_finish(path):
    notebook = nbformat.read(path, 4)
    assert len(core(notebook)) <= CELLS, "tag depth `deeper`, join prose, move plumbing to lab"
    assert clock.time(notebook).core <= MINUTES


@each_notebook
def test_a_core_cell_is_read_at_a_glance(path):
    assert long_cells(nbformat.read(path, 4)) == {}


def test_what_is_deeper_hidden_or_written_is_not_counted():
    source = "\n".join(f"x{n} = {n}" for n in range(LINES + 1)) + "\n\n# a comment\n"

    def of(*tags):
        cell = nbformat.v4.new_code_cell(source, id="-".join(tags) or "plain")
        cell.metadata["tags"] = list(tags)
        return cell

    notebook = nbformat.v4.new_notebook(
        cells=[of(), of("deeper"), of("your-turn"), of("remove-input")]
    )
    assert long_cells(notebook) == {"plain": LINES + 1}
    assert [cell.id for cell in core(notebook)] == ["plain", "remove-input"]
