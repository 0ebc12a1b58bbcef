"""Does what a notebook says of its runs hold on another text than the default one?

English is the second text: `manual`, which comes with Python. What a notebook prints about its text
must follow from it: its checks hold, and no cell names a text that was not read. Without a kernel:
test_course.py has all notebooks in one.
"""

import re

import nbformat
import pytest

from notebooks import run
from tests.notebooks.book import opened

# what tokens cost, what layers do to words, what weights and rows are read to mean
NAMES = ("00_start_here", "03_inside", "06_value_embeddings", "09_thirteen_rows")
READ = [path for path in run.chosen([]) if path.stem in NAMES]
ABOUT_OTHERS = re.compile(r"recorded|thirteen_rows|novel|set MINIMAL_DATA|Limitations:", re.I)


def printed(book):
    """The lines that its cells print; an error, or a check that does not hold, ends it."""
    return [line for cell in book.cells for line in book.run(cell.source, cell.id).splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_a_notebook_holds_on_english(path, monkeypatch):
    monkeypatch.delenv("MINIMAL_DATA", raising=False)
    read = opened(path, printed, corpus="manual")
    assert isinstance(read, list), read
    cells = run.code(nbformat.read(path, 4))
    drawn = [cell for cell in cells if "figures." in cell.source]
    named = any(re.search(r"\bbook\b", cell.source) for cell in drawn)
    assert named or any("manual" in line for line in read), "no cell says which text was read"
    others = [line for line in read if re.search(r"stdlib|War and Peace", line)]
    assert [line for line in others if not ABOUT_OTHERS.search(line)] == []
