"""Does a cell of checks say how many held, and nothing where one did not?"""

import nbformat
import pytest
from nbclient import NotebookClient

from course.checks import asserts

CELL = """
from course.checks import all_hold

assert profile, "outside"
for name in "ab":
    assert name, "in a loop, once"
    if name == "a":
        assert name, "in a loop's branch"
if profile != "smoke":
    assert profile == "laptop", "in a branch"
    assert profile, "and another"
else:
    assert profile, "in the other branch"
all_hold()
"""


@pytest.fixture(scope="module")
def said():
    """What a kernel printed for each of some cells."""
    cells = [
        "profile = 'laptop'",
        CELL,
        "profile = 'smoke'",
        CELL,
        "assert 1 > 2, 'no'\nall_hold()",
    ]
    cells = [nbformat.v4.new_code_cell(source) for source in cells]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True).execute()
    return [[output.get("text") for output in cell.outputs] for cell in notebook.cells]


def test_what_held_is_counted_by_the_branch_that_was_taken(said):
    assert said[1] == ["4 checks hold\n"] and said[3] == ["3 checks hold\n"]


def test_a_check_that_fails_is_not_followed_by_praise(said):
    assert said[4] == [None], "the error, and nothing else"


def test_without_names_only_what_is_met_for_certain_counts():
    assert asserts(CELL) == 2
    assert asserts("def f():\n    assert 0\nwith x:\n    assert 1") == 1
