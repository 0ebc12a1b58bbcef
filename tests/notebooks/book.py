"""A notebook that runs in this process at the smallest scale, cell by cell, without a kernel."""

import contextlib
import importlib
import io
import linecache
import os

import nbformat

from homework import turn
from notebooks import run
from tests import warm

# what most notebooks load, and the first exercise of each: four seconds
SLOW = "torch._dynamo IPython matplotlib.pyplot pandas scipy.optimize scipy.stats evidence.lab"


def opened(path, work, book=None, **parameters):
    """What work(book) returns of this notebook, in a fork of this process."""
    for name in SLOW.split():
        importlib.import_module(name)  # here, once for all of them
    return warm.in_a_fork(lambda: work((book or Book)(path, **parameters)))


class Book:
    """It changes the working folder, and its figures are drawn but not painted."""

    def __init__(self, path, **parameters):
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.display import display

        from course import figures

        figures.figure_bytes = lambda fig, kind="png": b""
        turn.SECONDS = 600  # how long an answer may take is no question here
        os.environ.update(run.QUIET)
        os.chdir(path.parent)
        self.names = InteractiveShell.instance().user_ns
        self.names["display"] = display
        self.cells = run.code(nbformat.read(path, 4))
        for cell in self.cells:
            if "parameters" in run.tags(cell):
                lines = (dict(profile="smoke") | parameters).items()
                cell.source += "".join(f"\n{name} = {value!r}" for name, value in lines)

    def run(self, source, name):
        """Run a cell; what it printed."""
        place, said = f"<{name}>", io.StringIO()
        linecache.cache[place] = (len(source), None, source.splitlines(keepends=True), place)
        self.names["In"].append(source)  # which all_hold() reads
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            exec(compile(source, place, "exec"), self.names)
        return said.getvalue()
