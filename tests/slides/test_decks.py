"""Can everything on every slide be read, without a network, in a real browser?"""

import re

import nbformat
import pytest
import walk

from slides import deck

pytestmark = pytest.mark.site
STEMS = [path.stem for path in deck.decks()]


def test_every_deck_runs_whole(copies):
    assert copies[1] == [] and [path.stem for path in copies[0]] == STEMS


@pytest.mark.parametrize("stem", STEMS)
def test_nothing_is_cut_off_small_mute_or_fetched_on_any_slide(browser, built, stem):
    assert walk.faults(browser, built / f"{stem}.html") == []


@pytest.mark.parametrize("stem", STEMS)
def test_the_pdf_has_a_page_for_every_slide(browser, built, stem, tmp_path):
    sheet = browser.page()
    sheet.open(built / f"{stem}.html", "?print-pdf")
    sheet.pdf(tmp_path / "deck.pdf")
    pages = re.findall(rb"/Type\s*/Page\b(?!s)", (tmp_path / "deck.pdf").read_bytes())
    assert len(pages) == sheet.run("document.querySelectorAll('section[id]').length")
    assert sheet.errors == [] and sheet.strangers() == []


def test_notes_stand_in_the_page_but_not_on_the_slide(browser, built):
    talk = browser.page()
    talk.open(built / f"{STEMS[0]}.html")
    assert talk.run(
        "[...document.querySelectorAll('aside.notes')]"
        ".every(e => e.textContent.trim() && getComputedStyle(e).display === 'none')"
    )
    assert talk.run("Reveal.hasPlugin('notes')")


def test_the_t_key_changes_between_light_and_dark_and_the_system_is_asked_first(browser, built):
    for dark in (False, True):
        talk = browser.page(dark=dark)
        talk.open(built / f"{STEMS[0]}.html")
        talk.run("localStorage.removeItem('theme')")
        assert talk.run("document.documentElement.dataset.theme") == ("dark" if dark else "light")
        talk.press("t", "KeyT")
        talk.run("switchTheme()")
        assert talk.run("document.documentElement.dataset.theme") == ("light" if dark else "dark")
        talk.run("localStorage.removeItem('theme')")


# ---- the walk itself: does it see what it should? ------------------------------------------------

ALT = "Two axes and nothing on them, drawn to see whether this test can see"
PICTURE = (
    "data:image/svg+xml,"
    "%3Csvg xmlns=%22http://www.w3.org/2000/svg%22 width=%22900%22 height=%2290%22/%3E"
)
BEYOND = "position:absolute;left:1200px;width:200px"
BROKEN = {
    "holds": "\n\n".join(["One more line of text that takes the place of others."] * 30),
    "px": '<span style="font-size:14px">a footnote that only the first row can read</span>',
    "without alt": '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA=">',
    "shrinks": f'<img style="width:40px" alt="{ALT}" src="{PICTURE}">',
    "cut off at its side": "    " + "wide = " + "1 + " * 60 + "1",
    "leaves the slide": f'<div style="{BEYOND}">beyond the edge</div>',
    "console": "<script>console.error('something is wrong')</script>",
    "asks for": '<script src="https://example.com/lost.js"></script>',
    "overlap": '<p style="margin-bottom:-40px">One line of words</p><p>and another on top</p>',
}


@pytest.mark.parametrize("fault", BROKEN)
def test_the_walk_sees_what_it_should(browser, built, fault):
    cell = nbformat.v4.new_markdown_cell(
        "## A slide\n\n" + BROKEN[fault],
        id="made",
        metadata=dict(slideshow=dict(slide_type="slide")),
    )
    path = built / "made.html"
    path.write_text(deck.html(nbformat.v4.new_notebook(cells=[cell])), encoding="utf-8")
    assert any(fault in found for found in walk.faults(browser, path)), walk.faults(browser, path)
    path.unlink()


def test_the_walk_is_content_with_a_slide_that_can_be_read_and_looks_behind_fragments(
    browser, built
):
    cells = [
        nbformat.v4.new_markdown_cell(
            "## A slide\n\nOne line.", id="made", metadata=dict(slideshow=dict(slide_type="slide"))
        ),
        nbformat.v4.new_markdown_cell(
            "And another.", id="more", metadata=dict(slideshow=dict(slide_type="fragment"))
        ),
    ]
    path = built / "made.html"
    path.write_text(deck.html(nbformat.v4.new_notebook(cells=cells)), encoding="utf-8")
    assert walk.faults(browser, path) == []
    cells[1].source = BROKEN["px"]
    path.write_text(deck.html(nbformat.v4.new_notebook(cells=cells)), encoding="utf-8")
    assert any("14 px" in found for found in walk.faults(browser, path))
    path.unlink()
