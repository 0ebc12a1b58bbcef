"""What does a notebook say once it has run? One as Markdown, for whoever has installed nothing.

python -m slides.read          executes notebook 00 at the smallest scale and writes notebooks/read/

Every forge shows the page: text, code, what was printed, and figures as SVG beside it. It holds a
hash of the notebook's cells, so a test says when it has to be written again.
"""

import base64
import hashlib
import html
import os
import posixpath
import re
import sys
import tempfile
from pathlib import Path

from minimal.command import command, wait_for_imports

if __name__ == "__main__":
    wait_for_imports()

import nbformat  # noqa: E402

from course import figures, owner  # noqa: E402
from minimal.data import corpora  # noqa: E402
from minimal.data.files import remove_folder, write_whole  # noqa: E402
from notebooks import run  # noqa: E402
from notebooks.run import tags  # noqa: E402
from slides import lesson  # noqa: E402

FOLDER = run.HERE / "read"
NOTEBOOK = run.HERE / "00_start_here.ipynb"
PICTURE = re.compile(r'<img alt="([^"]*)"[^>]*? src="data:image/[^;]*;base64,([^"]*)"')
MARKDOWN_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s]+)(?=\))")
OF_THIS_MACHINE = re.compile(r"\bdoctor\.examine\(")  # what such a cell prints differs everywhere


# ---- where the page comes from -------------------------------------------------------------------


def source_hash(path):
    """A hash of all that is written in a notebook, but for links of a fork's owner."""
    cells = nbformat.read(path, 4).cells
    cells[0].source = owner.on_its_page(cells[0].source)
    told = "\n".join(f"{cell.cell_type} {tags(cell)}\n{cell.source}" for cell in cells)
    return hashlib.sha256(told.encode()).hexdigest()


def origin(path):
    """The first line of a page: the cells and the text that it was made from."""
    text = corpora.find("auto").fingerprint
    return f"<!-- cells {source_hash(path)}, text {text}, written by `make read` -->"


# ---- from cells to Markdown ----------------------------------------------------------------------


def page(notebook, path, pictures=None):
    """The Markdown of an executed notebook; SVGs are put into `pictures`, {file: bytes}."""
    pictures = {} if pictures is None else pictures
    cells = [cell for cell in notebook.cells if "injected-parameters" not in tags(cell)]
    start = lesson.first_section(cells)
    parts = [origin(path), first_cell(cells[0].source, path)]

    # a drawing as it is, then what only a program needs
    drawn = [cell for cell in cells[1:start] if "remove-input" in tags(cell)]
    set_up = [fenced(cell.source) for cell in cells[1:start] if "remove-input" not in tags(cell)]
    parts += [outputs(cell, path, pictures) for cell in drawn]
    parts.append(markdown_fold("The set-up", "\n\n".join(set_up)))

    for deeper, some in lesson.runs(cells[start:]):
        shown = told_in_markdown(some, path, pictures)
        if deeper:
            heading = without_tags(lesson.page_heading(some))
            shown = [markdown_fold(f"Deeper: {heading}", "\n\n".join(shown))]
        parts += shown
    return "\n\n".join(filter(None, parts)) + "\n"


def first_cell(source, path):
    """The title, how this page came to be, and the rest of the first cell."""
    title, _, rest = owner.on_its_page(source).partition("\n")
    made = (
        f"*[`{path.name}`](../{path.name}), executed at the smallest scale. To run it yourself: "
        "`make lab`, as [README](../../README.md#two-commands) says. Answers to predictions are "
        "folded.*"
    )
    return f"{title}\n\n{made}\n{moved(rest)}"


def told_in_markdown(cells, path, pictures):
    """Cells in order; what comes out after a guess waits behind a click, up to the next text."""
    parts, guessed = [], False
    for cell in cells:
        if cell.cell_type == "markdown":
            guessed = False
            parts.append(moved(cell.source))
            continue
        guessed = guessed or bool(lesson.GUESS.search(cell.source))
        if lesson.checks_turn(cell):
            continue  # it judges what the reader wrote, and here nobody can write
        code = fenced(cell.source)
        if "remove-input" in tags(cell):
            code = ""
        elif "hide-input" in tags(cell):
            code = markdown_fold("The code", code)
        made = outputs(cell, path, pictures)
        if made and guessed:
            made = markdown_fold("What comes out", made)
        parts += [code, made]
    return list(filter(None, parts))


def outputs(cell, path, pictures):
    """What a cell printed and drew."""
    if OF_THIS_MACHINE.search(cell.source):
        return "*What this prints is about your machine.*"
    parts = []
    for i, output in enumerate(cell.outputs):
        if output.output_type == "stream":
            printed = output.text.rstrip()
            parts.append(f"```text\n{printed}\n```")
        elif "text/html" in output.get("data", {}):
            name = f"{path.stem[:2]}_{cell.id}{f'_{i}' if i else ''}.svg"
            alt, image = PICTURE.search(output.data["text/html"]).groups()
            pictures[name] = base64.b64decode(image)
            parts.append(f'<img src="{name}" alt="{alt}">')
    return "\n\n".join(parts)


def slim(image):
    """An SVG without who drew it, and with places to a hundredth of a point: a quarter smaller."""
    image = re.sub(r"<metadata>.*?</metadata>", "", image, flags=re.S)
    image = re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", image)
    return "\n".join(line.strip() for line in image.splitlines() if line.strip()) + "\n"


def fenced(source):
    return f"```python\n{source}\n```"


def markdown_fold(summary, inner):
    """Markdown within <details> is read as such where an empty line stands around it."""
    return f"<details><summary>{summary}</summary>\n\n{inner}\n\n</details>"


def without_tags(markup):
    return html.escape(html.unescape(re.sub(r"<[^>]+>", "", markup)), quote=False)


def moved(text):
    """Links as they stand in notebooks/, seen from the folder below it."""
    return MARKDOWN_LINK.sub(lambda found: posixpath.normpath(f"../{found[1]}"), text)


# ---- the command ---------------------------------------------------------------------------------


@command("slides.read", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    os.environ[figures.KIND] = "svg"
    with tempfile.TemporaryDirectory() as folder:
        row = run.execute(NOTEBOOK, "smoke", folder)
        if row["faults"]:
            sys.exit("\n".join(f"read: {fault}" for fault in row["faults"]))
        executed = nbformat.read(Path(folder, NOTEBOOK.name), 4)
    pictures = {}
    text = page(executed, NOTEBOOK, pictures)
    remove_folder(FOLDER)
    FOLDER.mkdir()
    write_whole(FOLDER / f"{NOTEBOOK.stem}.md", text)
    for name, image in pictures.items():
        write_whole(FOLDER / name, slim(image.decode()))
    size = sum(path.stat().st_size for path in FOLDER.iterdir()) / 1000
    print(f"wrote {FOLDER.relative_to(run.ROOT)}, {size:.0f} kB")


if __name__ == "__main__":
    sys.exit(main())
