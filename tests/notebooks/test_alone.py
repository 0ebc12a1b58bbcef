"""Can the core be run without what is folded? No name that it uses is made in a deeper cell."""

import subprocess
import sys

import nbformat
import pytest

from homework import cells
from notebooks import run

# the others use, in checks or further down, what a deeper cell has made
ALONE = ("08_bert_bypass", "09_thirteen_rows", "10_bank_of_values")
PATHS = [path for path in run.chosen([]) if path.stem in ALONE]
NAMES = ["check", "--isolated", "--no-cache", "--select", "F821", "--quiet"]


def unmade(notebook, path):
    """What ruff says of names that no cell of the core makes; nothing if there is none."""
    notebook.cells = [cell for cell in notebook.cells if "deeper" not in cells.tags(cell)]
    nbformat.write(notebook, path)
    ruff = [sys.executable, "-m", "ruff", *NAMES, str(path)]
    return subprocess.run(ruff, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_core_runs_without_what_goes_deeper(path, tmp_path):
    assert unmade(nbformat.read(path, 4), tmp_path / path.name) == ""


def test_a_name_from_a_deeper_cell_is_seen(tmp_path):
    new = nbformat.v4
    deeper = new.new_code_cell("loss = 3", metadata=dict(tags=["deeper"]))
    notebook = new.new_notebook(cells=[deeper, new.new_code_cell("print(loss)")])
    notebook.metadata["language_info"] = dict(name="python")
    assert "loss" in unmade(notebook, tmp_path / "made_deeper.ipynb")
    assert len(PATHS) == len(ALONE)
