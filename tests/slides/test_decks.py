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


@pytest.mark.parametrize("stem", STEMS[::3])
def test_the_pdf_has_a_page_for_every_slide(browser, built, stem, tmp_path):
    """Of every third deck: that no slide of any of them is too high, the walk has seen."""
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


TURNED = """(kinds => kinds.map(kind => [...document.querySelectorAll(kind)].map(
    e => getComputedStyle(e).filter.includes("invert"))))(["img.lines-only", ".shades"])"""


def test_in_the_dark_lines_and_paper_turn_and_what_means_a_number_does_not(browser, built):
    for dark in (False, True):
        talk = browser.page(dark=dark)
        talk.open(built / f"{STEMS[0]}.html")
        talk.run("localStorage.removeItem('theme')")
        lines, maps = talk.run(TURNED)
        assert len(lines) >= 4 and set(lines) == {dark} and len(maps) >= 2 and set(maps) == {dark}
        kept = talk.run("getComputedStyle(document.querySelector('.boxes')).display")
        assert kept == ("block" if dark else "none")


# ---- on a phone ----------------------------------------------------------------------------------


@pytest.mark.parametrize("stem", STEMS)
def test_an_upright_phone_scrolls_through_every_slide_and_reads_it(browser, built, stem):
    assert walk.faults_on_a_phone(browser, built / f"{stem}.html") == []


def phone(browser, path, query=""):
    """The deck on an upright phone."""
    talk = browser.page(*walk.PHONE, phone=True)
    talk.open(path, query)
    return talk


def test_the_address_follows_the_reader_of_a_phone_and_leads_back(browser, built):
    path = built / f"{STEMS[3]}.html"
    talk = phone(browser, path)
    wanted = talk.run("document.querySelectorAll('section')[4].id")
    talk.run(f"document.getElementById({wanted!r}).scrollIntoView()")
    later = "new Promise(done => setTimeout(() => done(location.hash), 300))"
    assert talk.run(later) == f"#/{wanted}"
    again = phone(browser, path, f"#/{wanted}")
    assert abs(again.run(f"document.getElementById({wanted!r}).getBoundingClientRect().top")) < 20


def test_a_phone_that_is_turned_shows_the_same_slide_as_a_slide(browser, built):
    talk = phone(browser, built / f"{STEMS[3]}.html")
    wanted = talk.run("document.querySelectorAll('section')[4].id")
    talk.run(f"document.getElementById({wanted!r}).scrollIntoView()")
    talk.run("new Promise(done => setTimeout(done, 300))")
    before = talk.loads
    lying = dict(width=844, height=390, deviceScaleFactor=1, mobile=True)
    talk.call("Emulation.setDeviceMetricsOverride", **lying)
    talk.settle(before)
    assert talk.run("Reveal.isReady() && Reveal.getCurrentSlide().id") == wanted


def test_a_figure_on_a_phone_is_as_wide_as_the_screen_and_larger_when_asked(browser, built):
    talk = phone(browser, built / f"{STEMS[3]}.html")
    width = "document.querySelector('figure img').getBoundingClientRect().width"
    narrow = talk.run(width)
    button = "document.querySelector('figure + button')"
    talk.run(f"{button}.click()")
    assert narrow <= walk.PHONE[0] < talk.run(width)
    assert talk.run("document.documentElement.scrollWidth") == walk.PHONE[0]
    talk.run(f"{button}.click()")
    assert talk.run(width) == narrow


def test_what_is_printed_from_a_phone_is_slides(browser, built):
    talk = phone(browser, built / f"{STEMS[0]}.html", "?print-pdf")
    assert talk.run("document.querySelectorAll('.pdf-page section').length") == talk.run(
        "document.querySelectorAll('section[id]').length"
    )


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
    "ends in the middle": "<style>#made-9 .body {justify-content: start}</style><p>Few words.</p>",
}


def faults_of(bodies, look, browser, folder):
    """What `look` finds in a deck with a slide for each of these bodies."""
    cells = []
    for number, body in enumerate(bodies):
        cell = nbformat.v4.new_markdown_cell("## A slide\n\n" + body, id=f"made-{number}")
        cell.metadata = dict(slideshow=dict(slide_type="slide"))
        cells.append(cell)
    path = folder / "made.html"
    path.write_text(deck.html(nbformat.v4.new_notebook(cells=cells)), encoding="utf-8")
    found = look(browser, path)
    path.unlink()
    return found


@pytest.fixture(scope="module")
def seen(browser, built):
    return faults_of(BROKEN.values(), walk.faults, browser, built)


@pytest.mark.parametrize("fault", BROKEN)
def test_the_walk_sees_what_it_should(seen, fault):
    """On its own slide, unless it is one of the whole page."""
    own = f"made, slide made-{[*BROKEN].index(fault)}: "
    where = "made: " if fault in ("console", "asks for") else own
    assert any(one.startswith(where) and fault in one for one in seen), seen


CUT = '<div style="overflow:hidden;white-space:nowrap">' + "words " * 60 + "</div>"
FIXED = '<div style="position:absolute;left:380px;width:200px">beyond the edge</div>'
SHRUNK = '<div style="transform:scale(0.5)">words that are shown at half their size</div>'
BROKEN_ON_A_PHONE = {
    'p "a footnote" is 12.0 px': '<p style="font-size:12px">a footnote</p>',
    "is 8.5 px": SHRUNK,
    "image shown": f'<img style="width:40px" alt="{ALT}" src="{PICTURE}">',
    "leaves the screen": FIXED,
    "moves sideways": "",  # so does the page, for the same reason
    "is cut off at its side": CUT,
    "slide made-6 is out of reach": "<style>#made-6 { display: none }</style>",
    'p "never seen" is hidden': '<p class="fragment" style="opacity:0">never seen</p>',
    "console": BROKEN["console"],
    "asks for": BROKEN["asks for"],
}


@pytest.fixture(scope="module")
def seen_on_a_phone(browser, built):
    return faults_of(BROKEN_ON_A_PHONE.values(), walk.faults_on_a_phone, browser, built)


@pytest.mark.parametrize("fault", BROKEN_ON_A_PHONE)
def test_the_look_at_a_phone_sees_what_it_should(seen_on_a_phone, fault):
    assert any(fault in one for one in seen_on_a_phone), seen_on_a_phone


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
