"""Is a bar seen where somebody looks, and does it leave a sentence in a notebook, and no pink?"""

import io
import re
import sys

import nbformat
import pytest
from nbclient import NotebookClient

from minimal.model.plan import Plan
from minimal.train import Trainer
from minimal.training import progress as bars
from minimal.training.progress import NoBar, PageBar, TextBar, progress
from minimal.training.run import Run
from tests.training.toys import TINY

TRAINED = f"""
import os
os.environ.pop("CI", None)
from minimal.train import Trainer
from minimal.training.run import Run

Trainer(Run(corpus=CORPUS, steps=25, **{TINY!r})).fit();
"""


@pytest.fixture
def in_kernel():
    def run(source):
        """The outputs of a cell that a kernel ran."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        return notebook.cells[0].outputs

    return run


@pytest.mark.slow
def test_a_run_in_a_notebook_writes_nothing_to_stderr_and_ends_in_a_sentence(corpus, in_kernel):
    outputs = in_kernel(TRAINED.replace("CORPUS", repr(str(corpus))))
    assert [output.name for output in outputs if output.output_type == "stream"] == ["stdout"]
    (bar,) = [output for output in outputs if output.output_type == "display_data"]
    assert re.fullmatch(
        r"<div [^>]*>standard: 25 steps in \d+ s, loss \d\.\d{3}</div>", bar.data["text/html"]
    )


@pytest.fixture
def pages(monkeypatch):
    """What a page bar shows, one after the other."""
    shown = []
    monkeypatch.setattr(PageBar, "put", lambda bar, page: shown.append(page) or bar.note())
    monkeypatch.setattr(PageBar, "note", lambda bar: setattr(bar, "handle", bar), raising=False)
    return shown


def test_a_bar_says_how_far_it_is_and_a_stopped_one_where_it_stopped(pages):
    with pytest.raises(KeyboardInterrupt):
        with PageBar("a < b", 1000, 200, "steps") as bar:
            bar.show(400, "loss 3.50", "99 tokens/s")
            raise KeyboardInterrupt
    first, last = pages
    assert 'value="400" max="1000"' in first and "400 of 1,000 steps" in first
    assert "loss 3.50, 99 tokens/s" in first and "a &lt; b" in first
    assert last == "a &lt; b: stopped after 400 of 1,000 steps, 0 s, loss 3.50"


def test_a_bar_that_had_nothing_to_show_leaves_nothing(pages):
    with PageBar("standard", 10, 10, "steps"):
        pass
    assert pages == []


@pytest.mark.parametrize(
    "notebook, terminal, quiet, wanted",
    [
        (True, False, False, PageBar),
        (False, True, False, TextBar),
        (False, False, False, NoBar),
        (True, True, True, NoBar),
    ],
)
def test_each_place_has_its_bar(monkeypatch, notebook, terminal, quiet, wanted):
    screen = io.StringIO()
    screen.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(bars, "in_notebook", lambda: notebook)
    with progress("standard", 100, quiet=quiet) as bar:
        bar.show(50, "loss 3.50", "99 tokens/s")
        assert type(bar) is wanted
    assert ("50/100" in screen.getvalue()) == (wanted is TextBar)


def test_a_plan_of_ones_own_names_the_bar_of_a_terminal(corpus, monkeypatch):
    """A terminal of a width, into which a bar is cut: a StringIO has none, and tqdm asks these."""
    screen = io.StringIO()
    screen.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(bars, "in_notebook", lambda: False)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    Trainer(Run(plan=Plan(name="mine"), corpus=corpus, steps=1, **TINY), quiet=False).fit()
    assert "mine: " in screen.getvalue()


def test_pages_made_by_machines_hold_no_bar(monkeypatch):
    monkeypatch.setattr(bars, "in_notebook", lambda: True)
    monkeypatch.setenv("CI", "true")
    assert type(progress("standard", 100)) is NoBar
    monkeypatch.delenv("CI")
    assert type(progress("standard", 100)) is PageBar
