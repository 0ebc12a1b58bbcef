"""What would hinder a reader who listens, types or needs contrast? axe-core looks at every kind of
page, with every fold open, in three widths and both themes."""

import pytest

from notebooks.run import ROOT
from slides import screens

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(not AXE.is_file(), reason="no axe-core here: make setup EXTRAS=site"),
]
PAGES = (
    "index.html",
    "beside.html",
    "404.html",
    "notebooks/00_start_here.html",
    "notebooks/05_svformer.html",  # with lists to choose from
    "homework/index.html",
    "homework/hw01_attention.html",
    "homework/instructors.html",
    "evidence/index.html",
    "evidence/ledger.html",
    "evidence/claims.html",
    "evidence/published.html",
    "evidence/recorded.html",
    "api/index.html",
    "api/model.values.html",
    "slides/index.html",
    "slides/01_attention.html",
)
# of a table of hundreds of rows, which are all made alike, twenty: axe looks at each cell
SHORTENED = "document.querySelectorAll('tbody tr:nth-child(n+21)').forEach(row => row.remove())"
LOOK = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
    violations.map(({id, nodes}) => `${id}: ${nodes.length} x ${nodes[0].html.slice(0, 160)}`))"""


def opened(browser, path, width):
    page = browser.page(width, 900, phone=width < 500)
    page.open(path)
    page.run(screens.UNFOLD)
    page.run(SHORTENED)
    page.run(AXE.read_text(encoding="utf-8"))
    return page


@pytest.mark.parametrize("at", PAGES)
def test_nothing_hinders_a_reader_in_any_window(browser, site, at):
    """At a desk, on a tablet in the dark, and on a phone, which folds as it opens."""
    desk, found = opened(browser, site[0] / at, 1440), {}
    found["desk"] = desk.run(LOOK)
    tablet = dict(width=820, height=900, deviceScaleFactor=1, mobile=False)
    desk.call("Emulation.setDeviceMetricsOverride", **tablet)
    desk.run("document.documentElement.dataset.theme = 'dark'")
    found["tablet"] = desk.run(LOOK)
    found["phone"] = opened(browser, site[0] / at, 390).run(LOOK)
    assert {window: faults for window, faults in found.items() if faults} == {}


def test_a_hindrance_is_seen(browser, tmp_path):
    words = '<html lang="en" data-ready="yes"><title>A</title><main><h1>A</h1>'
    listed = '<select aria-label="one" aria-valuetext="two"><option>1</select>'
    (tmp_path / "a.html").write_text(f"<!doctype html>{words}{listed}<img src='data:,'></main>")
    found = " ".join(opened(browser, tmp_path / "a.html", 390).run(LOOK))
    assert "image-alt" in found and "aria-allowed-attr" in found
