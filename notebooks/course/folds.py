"""What is closed when a notebook opens in JupyterLab? `python notebooks/run.py --clean` writes it.

Tags say what a cell is; the site reads them itself (slides/lesson.py), JupyterLab reads metadata:
a section tagged deeper opens with its heading collapsed, and code that only draws opens hidden. One
click opens either. A cell that draws in many lines is tagged hide-input; a drawing, remove-input.
"""

import re

FENCE = re.compile(r"```.*?```", flags=re.S)
HEADING = re.compile(r"^(#+) ", flags=re.M)
HIDDEN = {"hide-input", "remove-input"}


def tags(cell):
    return set(cell["metadata"].get("tags", []))


def level(cell):
    """Of the highest heading in a cell of text: 1 for #, 2 for ##; None where there is none."""
    if cell["cell_type"] != "markdown":
        return None
    return min(map(len, HEADING.findall(FENCE.sub("", cell["source"]))), default=None)


def under_folds(cells):
    """[True where a collapsed heading hides this cell], and the places of those headings.

    JupyterLab hides what follows a collapsed heading up to the next one that stands as high.
    """
    hidden, headings, fold = [], [], None
    for at, cell in enumerate(cells):
        found = level(cell)
        if fold and found and found <= fold:
            fold = None
        hidden.append(bool(fold))
        if not fold and found and "deeper" in tags(cell):
            headings.append(at)
            fold = found
    return hidden, headings


def metadata(cells):
    """What JupyterLab has to know of every cell: a list of dicts, in the order of the cells."""
    hidden, headings = under_folds(cells)
    found = []
    for at, cell in enumerate(cells):
        about = {}
        code = cell["cell_type"] == "code"
        alone = "deeper" in tags(cell) and not hidden[at]
        if code and (HIDDEN & tags(cell) or alone):
            about["jupyter"] = dict(source_hidden=True)
        if at in headings:
            about["jp-MarkdownHeadingCollapsed"] = True
        found.append(about)
    return found
