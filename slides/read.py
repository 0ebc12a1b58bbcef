"""What does a notebook say once it has run? A page of Markdown, for whoever has installed nothing.

python -m slides.read           executes the notebooks that have no page, or changed since it was
                                written, at the smallest scale, and writes notebooks/read/
python -m slides.read 00 04     writes these, changed or not; --all: every one
python -m slides.read --stale   only names them

Every forge shows the pages: text, code, what was printed, and figures as SVG beside them. Each
holds a hash of its notebook's cells, so a test says which have to be written again.
"""

import base64
import hashlib
import html
import os
import posixpath
import re
import sys
import tempfile

from minimal.command import command, wait_for_imports

if __name__ == "__main__":
    wait_for_imports()

import nbformat  # noqa: E402

from course import figures, owner, slim  # noqa: E402
from course.drawings.canvas import STYLE  # noqa: E402
from minimal.data import corpora  # noqa: E402
from minimal.data.files import remove, write_whole  # noqa: E402
from notebooks import run  # noqa: E402
from notebooks.run import tags  # noqa: E402
from slides import deck, lesson, page  # noqa: E402

FOLDER = run.HERE / "read"
CONTENTS = "README.md"
PICTURE = re.compile(r'<img alt="([^"]*)"[^>]*? src="data:image/[^;]*;base64,([^"]*)"')
PIECE = re.compile(r"<svg (.*?)</svg>", flags=re.S)  # of a piece to move, as it stands first
SENTENCE = re.compile(r"<p>(.*?)</p>", flags=re.S)
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


def page_of(path):
    return FOLDER / f"{path.stem}.md"


def number(path):
    """00, 11a: what the command and the names of pictures know a notebook by."""
    return path.stem.partition("_")[0]


def stale():
    """The notebooks that have no page, or have changed since theirs was written."""
    told = lambda path: page_of(path).read_text(encoding="utf-8").partition("\n")[0]
    fits = lambda path: page_of(path).exists() and f" {source_hash(path)}," in told(path)
    return [path for path in run.chosen([]) if not fits(path)]


# ---- from cells to Markdown ----------------------------------------------------------------------


def lesson_page(notebook, path, pictures=None):
    """The Markdown of an executed notebook; SVGs are put into `pictures`, {file: text}."""
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
        data = output.get("data", {})
        if output.output_type == "stream":
            parts.append(printed(output.text))
        elif "text/html" in data:
            name = f"{number(path)}_{cell.id}{f'_{i}' if i else ''}.svg"
            parts.append(drawn(data["text/html"], name, pictures))
        elif "text/markdown" in data:
            parts.append(moved(data["text/markdown"]))
        elif "text/plain" in data:
            parts.append(printed(data["text/plain"]))
    return "\n\n".join(parts)


def printed(text):
    return f"```text\n{text.rstrip()}\n```"


def drawn(markup, name, pictures):
    """A figure; a piece to move as it stands first, with the sentences below it; or a table."""
    found = PICTURE.search(markup)
    if found:
        pictures[name] = base64.b64decode(found[2]).decode()
        return f'<img src="{name}" alt="{found[1]}">'
    if not (piece := PIECE.search(markup)):
        return table_of(markup)
    inner = piece[1]
    alt = re.search(r'aria-label="([^"]*)"', inner)[1]
    opened = f'<svg xmlns="http://www.w3.org/2000/svg" {inner}</svg>'
    pictures[name] = opened.replace(">", f"><style>{STYLE}</style>", 1)
    told = " ".join(without_tags(words) for words in SENTENCE.findall(markup))
    return f'<img src="{name}" alt="{alt}">\n\n*It moves in JupyterLab and on the site.* {told}'


def table_of(markup):
    """A table of pandas, as forges take one: without styles."""
    table = re.search(r"<table.*</table>", markup, flags=re.S)[0]
    return re.sub(r'\s*\n\s*| (?:class|border|style|id)="[^"]*"', "", table)


CELL = re.compile(r'<path d="([^"]*)" clip-path="[^"]*" style="([^"]*)stroke-width: 0.5"/>')
NO_CELL = re.compile(r'<path d="[^"]*" clip-path="[^"]*" style="fill: none"/>')


def cell_of(found):
    """One shade of a heat map, which has thousands: nothing of it is outside its panel."""
    shade = re.search("#[0-9a-f]{6}", found[2])[0]
    way = " ".join(found[1].split())
    return f'<path d="{way}" fill="{shade}" stroke="{shade}" stroke-width=".5"/>'


def small(image):
    """An SVG with its places to a tenth of a point, and the shades of a heat map in few letters."""
    return slim.slim(CELL.sub(cell_of, NO_CELL.sub("", image)), decimals=1)


def fenced(source):
    return f"```python\n{source}\n```"


def markdown_fold(summary, inner):
    """Markdown within <details> is read as such where an empty line stands around it."""
    return f"<details><summary>{summary}</summary>\n\n{inner}\n\n</details>"


def without_tags(markup):
    return html.escape(html.unescape(re.sub(r"<[^>]+>", "", markup)), quote=False)


def moved(text):
    """Links as they stand in notebooks/, seen from the folder below it. To another notebook they
    lead to its page, if it has one."""

    def turn(found):
        link, _, part = found[1].partition("#")
        page = f"{link.removesuffix('.ipynb')}.md"
        if link.endswith(".ipynb") and (FOLDER / page).exists():
            return f"{page}#{part}" if part else page
        return posixpath.normpath(f"../{found[1]}")

    return MARKDOWN_LINK.sub(turn, text)


# ---- all of them ---------------------------------------------------------------------------------


def listed():
    """The page that a forge shows for the folder."""
    rows = []
    for path in run.chosen([]):
        name = page.title(nbformat.read(path, 4), path.stem)
        to = page_of(path).name if page_of(path).exists() else f"../{path.name}"
        rows.append(f"- [{name}]({to})")
    names = "\n".join(rows)
    return (
        "# The notebooks, to read\n\nEach has run at the smallest scale; text, code, what was "
        "printed and the pictures are here. Nothing has to be installed. To run and change them: "
        f"`make lab`, as [README](../../README.md#two-commands) says.\n\n{names}\n"
    )


def write_page(path, executed):
    """The page of an executed notebook and its pictures, in place of what stood there."""
    pictures = {}
    text = lesson_page(executed, path, pictures)
    for old in FOLDER.glob(f"{number(path)}_*.svg"):
        remove(old)
    write_whole(page_of(path), text)
    for name, image in pictures.items():
        write_whole(FOLDER / name, small(image))
    return sum(len(small(image)) for image in pictures.values()) + len(text)


@command("slides.read", __doc__)
def main(parser, argv):
    add = parser.add_argument
    add("names", nargs="*", metavar="NAME", help="a number or a stem; default: what is stale")
    add("--all", action="store_true", help="every notebook")
    add("--stale", action="store_true", help="name those whose page is missing or old")
    asked = parser.parse_args(argv)
    old = stale()
    if asked.stale:
        print(" ".join(map(number, old)) or "every page says what its notebook says")
        return
    paths = run.chosen(asked.names) if asked.names or asked.all else old
    os.environ[figures.KIND] = "svg"
    with tempfile.TemporaryDirectory() as folder:
        copies, faults = deck.executed(paths, "smoke", folder)
        FOLDER.mkdir(exist_ok=True)
        for path in copies:
            write_whole(page_of(path), "")  # so that the others lead to it
        for path, copy in copies.items():
            size = write_page(path, nbformat.read(copy, 4))
            print(f"wrote {page_of(path).relative_to(run.ROOT)}, {size / 1000:.0f} kB")
    write_whole(FOLDER / CONTENTS, listed())

    # the heads of the notebooks lead to their pages
    run.main(["--clean", *map(str, run.chosen([]))])
    if faults:
        sys.exit("\n".join(f"read: {fault}" for fault in faults))


if __name__ == "__main__":
    sys.exit(main())
