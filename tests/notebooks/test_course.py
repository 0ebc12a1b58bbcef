"""Does the whole course run at the smallest scale, and are its pages fit to be read?"""

import contextlib
import io
import os
import re
import shutil
import subprocess
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from course import doctor, figures
from notebooks import run
from slides import deck, read
from tests import warm

PATHS = run.chosen([])
FIRST = PATHS[0]


@pytest.fixture(scope="session")
def course(tmp_path_factory):
    """Every numbered notebook executed by the command that `make course` calls, in runners and
    kernels that are forks: the last test below starts a kernel truly and compares, test_runner.py
    the command. test_questions.py executes the laboratory's.
    """
    out, said = tmp_path_factory.mktemp("course"), io.StringIO()
    with warm.runners(), contextlib.redirect_stdout(said):
        stems = [path.stem for path in PATHS]
        status = run.main([*stems, "--profile", "smoke", "--jobs", "1", "--out", str(out)])
    if kept := os.environ.get("MINIMAL_EXECUTED"):
        for copy in (out / "smoke").glob("*.ipynb"):
            shutil.copy(copy, kept)
    return SimpleNamespace(returncode=status, stdout=said.getvalue()), out / "smoke"


@pytest.fixture(scope="session")
def pages(request, tmp_path_factory):
    """A folder with the page of every notebook. An earlier run of the tests, without what draws
    equations, may have left executed copies in $MINIMAL_EXECUTED."""
    kept = sorted(Path(os.environ.get("MINIMAL_EXECUTED", "nowhere")).glob("*.ipynb"))
    if len(kept) < len(PATHS):
        return request.getfixturevalue("course")[1]
    folder = tmp_path_factory.mktemp("pages")
    for copy in kept:
        run.publish(nbformat.read(copy, 4), folder / copy.name)
    return folder


@pytest.fixture(params=[path.stem for path in PATHS])
def executed(request, course):
    return nbformat.read(course[1] / f"{request.param}.ipynb", 4)


def test_the_whole_course_runs_at_the_smallest_scale(course, note):
    done, _ = course
    note("the course at the smallest scale", done.stdout.partition("\n\n")[2])
    assert done.returncode == 0, done.stdout
    assert f"profile smoke: {len(PATHS)} of {len(PATHS)} notebooks whole" in done.stdout


@pytest.mark.library
def test_the_page_to_read_says_what_the_notebook_says_when_it_runs(tmp_path, monkeypatch):
    """Every word of it; its figures have files of their own."""
    written = read.page_of(FIRST).read_text(encoding="utf-8")
    assert written.partition("\n")[0] == read.origin(FIRST), "make read writes it anew"
    monkeypatch.setenv(figures.KIND, "svg")
    with warm.runners():
        copies, _ = deck.executed([FIRST], "smoke", tmp_path, jobs=1)
    executed = nbformat.read(copies[FIRST], 4)
    assert read.lesson_page(executed, FIRST) == written


# ---- pictures that can be heard ------------------------------------------------------------------


class Images(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.alts = []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.alts.append(dict(attributes).get("alt") or "")


def violations(notebook):
    """Pictures without alt text, with too short a one, or with that of another on the page."""
    alts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            alts += re.findall(r"!\[([^\]]*)\]\(", cell.source) + Images(cell.source).alts
            continue
        for data in (output.data for output in cell.outputs if "data" in output):
            alts += Images(data.get("text/html", "")).alts
            alts += ["" for kind in data if kind.startswith("image/")]
    return [alt for i, alt in enumerate(alts) if len(alt) < figures.SHORTEST_ALT or alt in alts[:i]]


def test_every_picture_has_its_own_alt_text(executed):
    assert violations(executed) == []


def test_the_rule_for_alt_text_catches_what_it_is_for():
    long = "Loss against steps for two plans, which cross once at step 40."

    def page(*outputs, markdown=""):
        cell = nbformat.v4.new_code_cell(
            outputs=[nbformat.v4.new_output("display_data", data) for data in outputs]
        )
        return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(markdown), cell])

    img = lambda alt: {"text/html": f'<figure><img alt="{escape(alt)}" src="x"></figure>'}
    assert violations(page(img(long), img(long + " Again."))) == []
    assert violations(page(img(long), img(long))) == [long]
    assert violations(page(img("a plot"))) == ["a plot"]
    assert violations(page({"text/html": "<img src='x'>"}, {"image/png": "…"})) == ["", ""]
    assert violations(page(markdown=f"![{long}](a.png) ![](b.png)")) == [""]


# ---- pages that can be read without a network, and on a phone ------------------------------------


class Loads(HTMLParser):
    """What a page loads from other machines: by its tags, its styles, and its scripts."""

    def __init__(self, page):
        super().__init__()
        self.found, self.inside = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        told = dict(attributes)
        self.inside = tag
        link = told.get("src") or (told.get("href") if tag == "link" else "") or ""
        if re.match(r"https?:|//", link):
            self.found.append(link)

    def handle_data(self, text):
        if self.inside == "style":
            address = r"['\"]?((?:https?:)?//[^'\")\s]+)"
            self.found += re.findall(r"(?:@import\s*(?:url\()?|url\()\s*" + address, text)
        if self.inside == "script":
            address = r"['\"](https?://[^'\"]+)"
            self.found += re.findall(r"(?:import|fetch|src)\b[^;\n]*?" + address, text)


def test_no_page_of_the_course_loads_anything_from_elsewhere(course):
    pages = {path.stem: (course[1] / f"{path.stem}.html").read_text("utf-8") for path in PATHS}
    assert {name: Loads(page).found for name, page in pages.items() if Loads(page).found} == {}
    assert all("<math " in page for page in pages.values())


@pytest.mark.parametrize(
    "page",
    [
        "<script src='https://example.com/a.js'></script>",
        "<script src='//example.com/a.js'></script>",
        "<link rel='stylesheet' href='https://example.com/a.css'>",
        "<img src='https://example.com/a.png'>",
        "<style>@import url(https://example.com/a.css);</style>",
        "<style>a { background: url('https://example.com/a.png') }</style>",
        "<script>import mermaid from 'https://example.com/a.mjs';</script>",
    ],
)
def test_what_a_page_would_load_is_seen(page):
    assert len(Loads(page).found) == 1
    assert (
        Loads("<a href='https://example.com'>x</a><img src='data:image/png;base64,xx'>").found == []
    )


# sends what sticks out of a page to the page around its frame
MEASURE = """<script>addEventListener("load", () => setTimeout(() => {
  const inside = ".jp-RenderedMarkdown > *, .jp-RenderedHTMLCommon img";
  const wide = [...document.querySelectorAll(inside)]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.tagName + " " + e.textContent.trim().slice(0, 40));
  if (document.documentElement.scrollWidth > innerWidth) wide.push("the page itself scrolls");
  const p = parent.document.createElement("p");
  p.textContent = name + ": " + (wide.join("; ") || "fits");
  parent.document.body.append(p);
}, 500));</script>"""


def measured(bodies, width, folder):
    """{name: what sticks out} of pages `width` pixels wide, each in a frame of one page."""
    frames = ""
    for name, page in bodies.items():
        # without scripts equations would stay as typed
        page = re.sub(r"<script.*?</script>", "", page, flags=re.S)
        page = re.sub(r"\$[^$<]+\$", "equation", page)
        (folder / f"{name}.html").write_text(page + MEASURE, encoding="utf-8")
        size = f'width="{width}" height="800" style="border:0"'
        frames += f'<iframe name="{name}" src="{name}.html" {size}></iframe>'
    (folder / "all.html").write_text(f"<!doctype html><body>{frames}</body>", encoding="utf-8")
    flags = """--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking
        --disable-component-update --disable-sync --allow-file-access-from-files
        --window-size=1600,1000 --virtual-time-budget=20000 --dump-dom""".split()
    command = [doctor.browser(), *flags, f"--user-data-dir={folder}/user"]
    command.append(f"file://{folder}/all.html")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return dict(re.findall(r"<p>(\w+): (.*?)</p>", done.stdout, flags=re.S))


@pytest.mark.site
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_scrolls_sideways(pages, tmp_path, width):
    bodies = {
        path.stem: (pages / f"{path.stem}.html").read_text(encoding="utf-8") for path in PATHS
    }
    control = dict(
        control='<div class="jp-RenderedMarkdown"><p style="width: 1500px">too wide</p></div>'
    )
    found = measured(bodies | control, width, tmp_path)
    assert found.pop("control") == "P too wide; the page itself scrolls"
    assert found == dict.fromkeys(bodies, "fits")


# ---- numbers that come again ---------------------------------------------------------------------


def test_running_a_notebook_again_gives_the_same_numbers_and_the_same_pictures(course, tmp_path):
    quick = next(path for path in PATHS if path.stem == "01_attention")
    assert run.execute(quick, "smoke", tmp_path)["faults"] == []
    first, second = (nbformat.read(folder / quick.name, 4) for folder in (course[1], tmp_path))
    for a, b in zip(run.code(first), run.code(second), strict=True):
        assert a.outputs == b.outputs, a.id
    assert any(cell.outputs for cell in run.code(first))
