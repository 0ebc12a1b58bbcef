"""How does a notebook become a deck of slides? It is executed, then one HTML file and one PDF.

Slide types are Jupyter's own (slide, fragment, -, notes, skip), so Lab and nbconvert read the same
deck. A tag on the cell that begins a slide says its kind: title, beside (words left, code and
figures right), predict, end; else plain.
"""

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from course import formula
from notebooks import run
from notebooks.run import ROOT
from slides import labels, letters, page
from slides.browser import Browser
from slides.dark import turned

HERE = ROOT / "slides"
KINDS = ("title", "beside", "predict", "end")
SCRIPTS = (
    "reveal.js/dist/reveal.js",
    "reveal.js/dist/reveal.css",
    "reveal.js/plugin/notes/notes.js",
)
FACES = (
    *(("source-sans-3", f"{weight}.css") for weight in ("400", "400-italic", "600", "700")),
    *(("source-code-pro", f"{weight}.css") for weight in ("400", "600")),
    ("noto-sans-math", "400.css"),
)


def decks():
    return run.numbered(HERE)


def at_hand():
    """The decks that can be shown here: none without the npm packages, of which Reveal is one."""
    return decks() if letters.packages_here() else []


def slide_type(cell):
    if "injected-parameters" in page.tags(cell):
        return "skip"
    return cell.metadata.get("slideshow", {}).get("slide_type", "-")


def slides(notebook):
    """The slides as lists of cells; what is skipped stands on none of them."""
    found = []
    for cell in notebook.cells:
        if slide_type(cell) == "slide":
            found.append([cell])
        elif slide_type(cell) != "skip":
            if not found:
                raise ValueError(
                    f"cell {cell.id} stands before the first slide: "
                    "give it the slide type slide or skip"
                )
            found[-1].append(cell)
    return found


def kind(cells):
    return next((tag for tag in page.tags(cells[0]) if tag in KINDS), "")


# ---- HTML ----------------------------------------------------------------------------------------


def slide_html(cells):
    """One section: heading, body, notes. Beside: words to the left, code and outputs right."""
    heading, _, rest = cells[0].source.partition("\n")
    beside = kind(cells) == "beside"

    # every cell to its place
    left, right, notes = [], [], []
    if rest.strip():
        left.append(page.markdown_html(rest))
    for cell in cells[1:]:
        made = page.cell_html(cell)
        if slide_type(cell) == "fragment":
            made = f'<div class="fragment">{made}</div>'
        if slide_type(cell) == "notes":
            notes.append(made)
        elif beside and cell.cell_type == "code":
            right.append(made)
        else:
            left.append(made)

    body = "".join(left)
    if beside:
        body = f'<div class="left">{body}</div><div class="right">{"".join(right)}</div>'
    return (
        f'<section id="{cells[0].id}"><div class="slide {kind(cells)}">'
        f'{page.markdown_html(heading)}<div class="body">{body}</div></div>'
        f'<aside class="notes">{"".join(notes)}</aside></section>'
    )


def html(notebook, assets="assets"):
    """The deck as one page; `assets` leads from it to the folder that `lay_out` fills."""
    sections = formula.drawn(turned("\n".join(map(slide_html, slides(notebook)))))
    return f"""<!doctype html>
<html lang="en"><head>
{page.head(page.title(notebook, "slides"), assets, "reveal.css", "deck.css")}
</head><body>
<main class="reveal"><div class="slides">
{sections}
</div></main>
<script src="{assets}/reveal.js"></script><script src="{assets}/notes.js"></script>
<script src="{assets}/deck.js" defer></script>
</body></html>
"""


def lay_out(folder):
    """What pages and decks load: our theme, and what is there of the npm packages. Without them
    pages are in the letters that the reader's machine has."""
    packages, folder = letters.PACKAGES, Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for source in (HERE / "theme").iterdir():
        shutil.copy(source, folder)
    (folder / "labels.js").write_text(labels.script(), encoding="utf-8")
    if not at_hand():
        (folder / "fonts.css").touch()
        return
    (folder / "fonts").mkdir(exist_ok=True)
    for source in (packages / name for name in SCRIPTS):
        shutil.copy(source, folder)

    # fonts: of every style sheet the faces of the letters that the course uses
    faces = []
    for name, sheet in FACES:
        package = packages / "@fontsource" / name
        rules = (package / sheet).read_text(encoding="utf-8")
        for face in re.findall(r"@font-face \{.*?\}", rules, flags=re.S):
            file = re.search(r"files/([^)]*?\.woff2)", face)[1]
            if re.search(r"-(latin|latin-ext|greek)-\d", file):
                shutil.copy(package / "files" / file, folder / "fonts")
                source = f'src: url(fonts/{file}) format("woff2");'
                face = re.sub(r"src:.*?;", source, face, flags=re.S)
                # the letters of equations lie far from those that their package names
                faces.append(re.sub(r"unicode-range:.*?;", "", face) if "Math" in face else face)
    (folder / "fonts.css").write_text("\n".join(faces) + "\n", encoding="utf-8")


# ---- building ------------------------------------------------------------------------------------

MADE_FROM = (  # (folder, files in it) of what a notebook or a deck is made from, beside its source
    ("minimal", "*.py"),
    ("notebooks/course", "*.py"),
    ("notebooks/course", "*.js"),
    ("notebooks/evidence", "*.py"),
    ("notebooks/evidence", "*.json"),
    ("notebooks/evidence", "*.jsonl"),
    ("notebooks/evidence", "*.toml"),
    ("homework", "*.py"),
)


def fresh(path, copy):
    """Was this copy executed to its end, after the last change of what it is made from?

    That is its source, the code that it imports, what moves in it, and the recorded evidence that
    it draws.
    """
    if not copy.exists():
        return False
    drawn = [file for room, kind in MADE_FROM for file in (ROOT / room).rglob(kind)]
    newest = max(source.stat().st_mtime for source in [path, *drawn])
    return copy.stat().st_mtime > newest and not run.faults_after(nbformat.read(copy, 4))


def plan(paths, stale, profile):
    """What is about to be done, in one line."""
    what = "decks" if paths and paths[0].parent == HERE else "notebooks"
    kept = f"{what} at {profile} scale: {len(paths) - len(stale)} of {len(paths)} are executed"
    names = ", ".join(path.stem.partition("_")[0] for path in stale)
    return f"{kept}, now {names}" if stale else kept


def executed(paths, profile, folder, jobs=2):
    """{path: executed copy} by the runner, and what went wrong; fresh copies are kept."""
    folder = Path(folder).resolve()
    stale = [path for path in paths if not fresh(path, folder / path.name)]
    run.say(plan(paths, stale, profile))
    with ThreadPoolExecutor(jobs) as pool:
        one = lambda path: run.in_a_process(path, profile, folder, {}, jobs)
        rows = list(pool.map(one, stale))

    # one that failed is to be run again, not to be taken for whole
    faults = []
    for path, row in zip(stale, rows):
        faults += [f"{row['name']}: {fault}" for fault in row["faults"]]
        if row["faults"]:
            (folder / path.name).unlink(missing_ok=True)
    copies = {path: folder / path.name for path in paths}
    return {path: copy for path, copy in copies.items() if copy.exists()}, faults


def build_decks(out, work, names=()):
    """Decks as HTML under `out`, executed copies under `work`; their faults."""
    if not at_hand():
        sys.exit(
            "slides: wanted reveal.js and fonts under node_modules/, found none: "
            "make setup EXTRAS=site"
        )
    wanted = [path for path in decks() if not names or path.stem.startswith(tuple(names))]
    copies, faults = executed(wanted, "smoke", work)
    lay_out(out / "assets")
    for path, copy in copies.items():
        (out / f"{path.stem}.html").write_text(html(nbformat.read(copy, 4)), encoding="utf-8")
    return faults


def print_all(out):
    """Each deck as PDF beside it: a page a slide, fragments shown, always in light colours."""
    with Browser() as browser:
        for path in sorted(out.glob("[0-9][0-9]*_*.html")):
            sheet = browser.page()
            sheet.open(path, "?print-pdf")
            sheet.pdf(path.with_suffix(".pdf"))
            print(f"printed {path.with_suffix('.pdf').name}")
