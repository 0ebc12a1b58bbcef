"""Which words of a notebook does the course's extension of JupyterLab make loud?"""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.site
EXTENSION = ROOT / "notebooks/lab/labextensions/minimal-course/static/remoteEntry.js"
TURN = "<strong>Your turn</strong> · easy"
CELLS = {
    "a cell that begins so": (f"<blockquote><p>{TURN}</p><p>Run it.</p></blockquote>", True),
    "a quote below other text": (f"<p>Before.</p><blockquote><p>{TURN}</p></blockquote>", True),
    "a paragraph": (f"<p>{TURN}</p>", False),
    "words within a sentence": (f"<blockquote><p>See {TURN}.</p></blockquote>", False),
    "other strong words": ("<blockquote><p><strong>My turn</strong></p></blockquote>", False),
}


@pytest.fixture(scope="module")
def lab(browser, tmp_path_factory):
    cells = "".join(f'<div class="jp-RenderedMarkdown">{html}</div>' for html, _ in CELLS.values())
    path = tmp_path_factory.mktemp("lab") / "lab.html"
    path.write_text(
        f'<!doctype html><html data-ready="yes"><div class="jp-Notebook">{cells}</div>'
        f"<script>{EXTENSION.read_text(encoding='utf-8')}</script>",
        encoding="utf-8",
    )
    page = browser.page()
    page.open(path)
    page.run("window._JUPYTERLAB['minimal-course'].get().then(made => made().default.activate())")
    page.run("document.body.append('changed')")  # it looks whenever the page changes
    page.wait(lambda: page.run("!!document.querySelector('.course-turn')"), "a loud box")
    return page


@pytest.mark.parametrize("name", CELLS)
def test_a_quote_that_begins_with_your_turn_is_loud(lab, name):
    cell = f"document.querySelectorAll('.jp-RenderedMarkdown')[{list(CELLS).index(name)}]"
    found = lab.run(f"""[{cell}, ...{cell}.querySelectorAll('*')]
        .filter(e => e.classList.contains('course-turn')).map(e => e.localName)""")
    assert found == ["blockquote"] * CELLS[name][1]
