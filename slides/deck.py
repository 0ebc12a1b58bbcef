"""How does a lecture, written as a notebook, become slides? Executed like every notebook, then one HTML file and one PDF.

Slide types are Jupyter's own (slide, fragment, -, notes, skip), so Lab and nbconvert read the same deck. A tag on the
cell that begins a slide says its kind: title, beside (words left, code and figures right), predict, end; else plain.
"""

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat

from notebooks import run
from slides import page
from slides.browser import Browser

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
KINDS = ("title", "beside", "predict", "end")
FACES = (
    *(("source-sans-3", f"{weight}.css") for weight in ("400", "400-italic", "600", "700")),
    *(("source-code-pro", f"{weight}.css") for weight in ("400", "600")),
)


def decks():
    return run.numbered(HERE)


def slide_type(cell):
    return (
        "skip"
        if "injected-parameters" in page.tags(cell)
        else cell.metadata.get("slideshow", {}).get("slide_type", "-")
    )


def slides(notebook):
    """The slides as lists of cells; what is skipped stands on none of them."""
    found = []
    for cell in notebook.cells:
        if slide_type(cell) == "slide":
            found.append([cell])
        elif slide_type(cell) != "skip":
            if not found:
                raise ValueError(
                    f"cell {cell.id} stands before the first slide: give it the slide type slide or skip"
                )
            found[-1].append(cell)
    return found


def kind(cells):
    return next((tag for tag in page.tags(cells[0]) if tag in KINDS), "")


# ---- HTML ------------------------------------------------------------------------------------------------------------


def slide_html(cells):
    """One section: heading, body, notes. Beside: Markdown to the left, code and its outputs to the right."""
    heading, _, rest = cells[0].source.partition("\n")
    left, right, notes = [page.markdown_html(rest)] if rest.strip() else [], [], []
    for cell in cells[1:]:
        put = (
            notes
            if slide_type(cell) == "notes"
            else right
            if cell.cell_type == "code" and kind(cells) == "beside"
            else left
        )
        made = page.cell_html(cell)
        put.append(
            f'<div class="fragment">{made}</div>' if slide_type(cell) == "fragment" else made
        )
    columns = [
        f'<div class="{name}">{"".join(part)}</div>'
        for name, part in (("left", left), ("right", right))
    ]
    body = "".join(columns) if kind(cells) == "beside" else "".join(left)
    return (
        f'<section id="{cells[0].id}"><div class="slide {kind(cells)}">{page.markdown_html(heading)}'
        f'<div class="body">{body}</div></div><aside class="notes">{"".join(notes)}</aside></section>'
    )


def html(notebook, assets="assets"):
    """The deck as one page; `assets` leads from it to the folder that `lay_out` fills."""
    sections = "\n".join(map(slide_html, slides(notebook)))
    return f"""<!doctype html>
<html lang="en"><head>
{page.head(page.title(notebook, "slides"), assets, "reveal.css", "deck.css")}
</head><body>
<div class="reveal"><div class="slides">
{sections}
</div></div>
<script src="{assets}/reveal.js"></script><script src="{assets}/notes.js"></script>
<script src="{assets}/deck.js" defer></script>
</body></html>
"""


def lay_out(folder):
    """What pages load, copied from the npm packages and from our theme; says what to do where the packages are absent."""
    packages, folder = ROOT / "node_modules", Path(folder)
    if not packages.is_dir():
        sys.exit(
            "slides: wanted reveal.js, MathJax and fonts under node_modules/, found none: make setup EXTRAS=site"
        )
    (folder / "fonts").mkdir(parents=True, exist_ok=True)
    for source in (
        "reveal.js/dist/reveal.js",
        "reveal.js/dist/reveal.css",
        "reveal.js/plugin/notes/notes.js",
        "mathjax/es5/tex-svg-full.js",
    ):
        shutil.copy(packages / source, folder)
    for source in (HERE / "theme").iterdir():
        shutil.copy(source, folder)
    faces = []
    for name, sheet in FACES:
        package = packages / "@fontsource" / name
        for face in re.findall(
            r"@font-face \{.*?\}", (package / sheet).read_text(encoding="utf-8"), flags=re.S
        ):
            file = re.search(r"files/([^)]*?\.woff2)", face)[1]
            if re.search(r"-(latin|latin-ext|greek)-\d", file):
                shutil.copy(package / "files" / file, folder / "fonts")
                faces.append(
                    re.sub(
                        r"src:.*?;", f'src: url(fonts/{file}) format("woff2");', face, flags=re.S
                    )
                )
    (folder / "fonts.css").write_text("\n".join(faces) + "\n", encoding="utf-8")


# ---- building --------------------------------------------------------------------------------------------------------


def fresh(path, copy):
    """Was this copy executed after the last change of its source and of the package?"""
    newest = max(source.stat().st_mtime for source in [path, *(ROOT / "minimal").rglob("*.py")])
    return copy.exists() and copy.stat().st_mtime > newest


def executed(paths, profile, folder, jobs=2):
    """{path: executed copy} by the notebooks' own runner, and what went wrong; copies that are still true are kept."""
    folder = Path(folder).resolve()
    stale = [path for path in paths if not fresh(path, folder / path.name)]
    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(lambda path: run.in_a_process(path, profile, folder, {}, jobs), stale))
    faults = [f"{row['name']}: {fault}" for row in rows for fault in row["faults"]]
    for path, row in zip(stale, rows):
        if row["faults"]:
            (folder / path.name).unlink(
                missing_ok=True
            )  # to be run again, not to be taken for whole
    return {path: folder / path.name for path in paths if (folder / path.name).exists()}, faults


def build(out, work, names=()):
    """Decks as HTML under `out`, executed copies under `work`; their faults."""
    wanted = [path for path in decks() if not names or path.stem.startswith(tuple(names))]
    copies, faults = executed(wanted, "smoke", work)
    lay_out(out / "assets")
    for path, copy in copies.items():
        (out / f"{path.stem}.html").write_text(html(nbformat.read(copy, 4)), encoding="utf-8")
    return faults


def print_all(out):
    """Each deck as PDF beside it: a page a slide, fragments shown, always in light colours."""
    with Browser() as browser:
        for path in sorted(out.glob("[0-9][0-9]_*.html")):
            sheet = browser.page()
            sheet.open(path, "?print-pdf")
            sheet.pdf(path.with_suffix(".pdf"))
            print(f"printed {path.with_suffix('.pdf').name}")
