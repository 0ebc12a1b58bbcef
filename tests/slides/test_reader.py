"""Does a reader find the way? Chapters, contents, search, copy and folds in a real browser."""

import itertools
import re

import pytest
from matplotlib import image

from course import figures, owner, shades
from notebooks import run
from slides import deck, page, preview, screens, shell

pytestmark = pytest.mark.site
LESSON = "notebooks/01_attention.html"
DESK, TABLET, PHONE = (1440, 900), (820, 1180), (390, 844)


def opened(browser, site, at=LESSON, size=DESK, **how):
    reader = browser.page(*size, phone=size == PHONE, **how)
    reader.open(site[0] / at)
    return reader


@pytest.fixture(scope="module")
def lesson(browser, site):
    """A notebook's page at a desk, opened once for all who only look or leave it as it was."""
    return opened(browser, site)


def resized(reader, size):
    """The same page in another window, a phone's if it is as small."""
    width, height = size
    screen = dict(width=width, height=height, deviceScaleFactor=1, mobile=size == PHONE)
    reader.call("Emulation.setDeviceMetricsOverride", **screen)
    settled(reader)
    return reader


def settled(reader):
    """After the next two pictures: scripts that follow the reader have run."""
    reader.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


# ---- the way ------------------------------------------------------------------------------------


def test_the_header_stays_and_is_one_row(browser, site):
    reader = opened(browser, site)
    for size in (DESK, TABLET, PHONE):
        resized(reader, size).run("scrollTo(0, 3000)")
        settled(reader)
        box = reader.run(
            "(({top, height}) => [top, height])("
            "document.querySelector('header').getBoundingClientRect())"
        )
        assert box[0] == 0 and box[1] <= 60, size
        assert reader.run("scrollY") > 1000, size
        assert reader.run("document.documentElement.scrollWidth") <= size[0]


def test_the_chapters_show_where_the_reader_is(lesson):
    told = lesson.run("document.querySelector('#chapters a[aria-current=page]').textContent")
    assert told == "01 · Attention from scratch"
    links = lesson.run("document.querySelectorAll('#chapters details[open] a').length")
    assert links == len(run.chosen([]))
    parts = lesson.run(
        "[...document.querySelectorAll('#chapters summary')].map(e => e.textContent)"
    )
    assert parts == ["Course", "Slides", "Homework", "Evidence", "Package"]


def test_in_a_narrow_window_chapters_wait_behind_a_button(browser, site):
    reader = opened(browser, site, size=TABLET)
    for size in (TABLET, PHONE):
        behind_a_button(resized(reader, size))


def behind_a_button(reader):
    seen = (
        "document.getElementById('chapters').offsetParent !== null || "
        "getComputedStyle(document.getElementById('chapters')).display !== 'none'"
    )
    assert not reader.run(seen)
    reader.run("document.getElementById('menu').click()")
    assert reader.run(seen)
    assert reader.run("document.getElementById('menu').getAttribute('aria-expanded')") == "true"
    assert reader.run("document.getElementById('chapters').contains(document.activeElement)")
    reader.press("Escape")
    assert not reader.run(seen)
    assert reader.run("document.activeElement.id") == "menu"


def test_the_contents_follow_the_reader(browser, site):
    reader = opened(browser, site)
    assert reader.run("document.querySelector('.contents details').open")
    seen = "[...document.querySelectorAll('main h2')].filter(e => e.checkVisibility())"
    for i in (2, 4):
        reader.run(f"{seen}[{i}].scrollIntoView()")
        settled(reader)
        now = reader.run("document.querySelector('.contents [aria-current]').hash.slice(1)")
        assert now == reader.run(f"encodeURI({seen}[{i}].id)")
    narrow = opened(browser, site, size=TABLET)
    assert not narrow.run("document.querySelector('.contents details').open")


def test_a_heading_shows_a_link_to_itself_when_it_is_reached(browser, site):
    reader = opened(browser, site)
    link = "document.querySelector('main h2 .anchor-link')"
    assert reader.run(f"{link}.hash.slice(1) === encodeURI({link}.parentElement.id)")
    reader.run(f"{link}.focus()")
    assert reader.run(f"getComputedStyle({link}).opacity") == "1"
    assert reader.run(f"{link}.getAttribute('aria-label')")


# ---- search --------------------------------------------------------------------------------------


def test_a_slash_searches_the_whole_course_from_a_folder(browser, site):
    reader = opened(browser, site, "homework/hw01_attention.html")
    reader.press("/", "Slash")
    assert reader.run("document.querySelector('dialog').open")
    assert reader.run("document.activeElement.type") == "search"
    reader.call("Input.insertText", text="lukewarm reasons")
    found = "[...document.querySelectorAll('dialog li a')].map(a => a.href)"
    reader.wait(lambda: reader.run(found), "search")
    assert all("01_attention.html" in link for link in reader.run(found))
    reader.press("ArrowDown")
    assert reader.run("document.activeElement.closest('dialog li') !== null")
    before = reader.loads
    reader.run("document.activeElement.click()")
    reader.settle(before)
    assert "/01_attention.html" in reader.run("location.href")
    assert reader.errors == [] and reader.strangers() == []


def test_search_leads_to_a_slide_by_its_notes(browser, site):
    reader = opened(browser, site)
    reader.run("document.getElementById('find').click()")
    notes = "the cheapest mechanism would be to take the mean over the sentence"
    reader.call("Input.insertText", text=notes)
    link = "document.querySelector('dialog li a')"
    reader.wait(lambda: reader.run(f"{link} !== null"), "search")
    assert reader.run(f"{link}.textContent").startswith("How do hands learn that they are cold?")
    before = reader.loads
    reader.run(f"{link}.click()")
    reader.settle(before)
    assert reader.run("Reveal.getCurrentSlide().id") == "water"
    assert reader.errors == [] and reader.strangers() == []


def test_search_says_when_nothing_is_found_and_leaves_by_escape(browser, site):
    """And in a field a slash is a letter."""
    reader = opened(browser, site)
    reader.run("document.getElementById('find').click()")
    reader.call("Input.insertText", text="zzyzx")
    status = "document.querySelector('dialog [role=status]').textContent"
    reader.wait(lambda: reader.run(status) == "0 places", "search")
    assert reader.run("document.querySelector('dialog').open")
    reader.press("Escape")
    assert not reader.run("document.querySelector('dialog').open")
    reader.run("document.querySelector('[data-guess]').focus()")
    reader.press("/", "Slash")
    assert not reader.run("document.querySelector('dialog').open")


# ---- reading a notebook --------------------------------------------------------------------------


def test_copy_takes_the_code_and_says_so(lesson):
    lesson.run(
        "navigator.clipboard.writeText = text => { window.taken = text; return Promise.resolve(); }"
    )
    lesson.run("document.querySelector('main .lines').parentElement.querySelector('.copy').click()")
    assert lesson.run("window.taken") == lesson.run(
        "document.querySelector('main .lines').textContent.replace(/\\n$/, '')"
    )
    assert lesson.run("document.querySelector('main .lines + .copy').textContent") == "Copied"


FITS = "[...document.querySelectorAll('main pre.lines')].filter(e => e.scrollWidth > e.clientWidth)"
EDGES = """['main > :is(p, blockquote)', 'main > :is(figure, details, .box)'].map(kind =>
    [...new Set([...document.querySelectorAll(kind)]
        .map(e => Math.round(e.getBoundingClientRect().right)))])"""
# letters in a line, of paragraphs of several lines that hold no equation and no code
LETTERS = """[...document.querySelectorAll('main > p')]
    .filter(p => !p.querySelector('math, code, img'))
    .map(p => [p.textContent.trim().length, p.getBoundingClientRect().height
        / parseFloat(getComputedStyle(p).lineHeight)])
    .filter(([letters, lines]) => lines > 2.5).map(([letters, lines]) => letters / (lines - 0.5))"""
TWICE = """[...document.querySelectorAll('main [id]:not(svg *)')].map(e => e.id)
    .filter((id, i, all) => all.indexOf(id) !== i)"""


def too_wide(reader, size):
    """What is wider than a window of this size, with every fold open."""
    resized(reader, size).run(screens.UNFOLD)
    return reader.run(f"{screens.WIDE}({size[0]})")


@pytest.mark.parametrize("path", run.chosen([]), ids=lambda path: path.stem)
def test_text_ends_at_one_edge_what_is_wide_at_another_and_nothing_leaves_any_window(
    browser, site, path
):
    """Long names of files in the pager and in the ways to run, and equations as they are read."""
    reader = opened(browser, site, f"notebooks/{path.stem}.html")
    assert reader.run(f"{FITS}.length") == 0
    text, wide = reader.run(EDGES)
    assert len(text) == len(wide) == 1 and text < wide
    assert reader.run(TWICE) == []
    assert {size: too_wide(reader, size) for size in (TABLET, PHONE)} == {TABLET: [], PHONE: []}
    assert reader.errors == []


def test_a_line_of_text_has_seventy_to_eighty_letters(browser, site):
    lines = opened(browser, site, "essay.html").run(LETTERS)
    assert len(lines) > 5 and 70 <= sum(lines) / len(lines) <= 80


@pytest.mark.parametrize(
    "at", ["index.html", "api/compare.budgets.html", "api/model.attention.html"]
)
def test_nothing_else_is_wider_than_a_tablet_or_a_phone(browser, site, at):
    reader = opened(browser, site, at)
    assert {size: too_wide(reader, size) for size in (TABLET, PHONE)} == {TABLET: [], PHONE: []}


MOVES = """[...document.querySelectorAll('main .scroll')]
    .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth)
    .map(e => e.textContent.trim().slice(0, 40))"""
WORDS = """Math.min(...[...document.querySelectorAll('main table:has(th:nth-child(6)) td.words')]
    .map(e => e.getBoundingClientRect().width))"""
ROWS = """(heights => Math.max(...heights) / Math.min(...heights))(
    [...document.querySelectorAll('.rows tbody tr')].map(e => e.getBoundingClientRect().height))"""


def test_at_a_desk_no_table_of_the_findings_moves_or_squeezes_its_words(browser, site):
    for at in ("evidence/index.html", "evidence/ledger.html"):
        reader = opened(browser, site, at)
        assert reader.run(MOVES) == [], at
    assert reader.run(WORDS) > 140


def test_the_rows_of_a_record_are_a_line_each(browser, site):
    reader = opened(browser, site, "evidence/recorded.html")
    reader.run(screens.UNFOLD)
    assert reader.run(ROWS) < 1.5


def test_the_list_of_files_fits_a_phone(browser, site):
    assert opened(browser, site, "api/index.html", PHONE).run(MOVES) == []


def test_what_is_too_wide_is_seen_in_every_window(browser, site):
    reader = opened(browser, site)
    reader.run(
        "document.querySelector('main details').insertAdjacentHTML('beforeend', "
        "'<svg width=900 height=9></svg>')"
    )
    for size in (TABLET, PHONE):
        assert any("svg wider than the text" in fault for fault in too_wide(reader, size)), size


def test_answers_and_guesses_stay_with_the_reader(browser, site):
    reader = opened(browser, site)
    assert reader.run("[...document.querySelectorAll('details.held')].every(e => !e.open)")
    reader.run("document.querySelector('[data-guess]').focus()")
    reader.call("Input.insertText", text="0.25")
    reader.open(site[0] / LESSON)
    assert reader.run("document.querySelector('[data-guess]').value") == "0.25"
    reader.run("localStorage.clear()")


def test_a_link_into_a_fold_opens_it_and_paper_shows_every_fold(browser, site):
    reader = opened(browser, site)
    reader.run("document.querySelector('details.held > :nth-child(2)').id = 'deep'")
    reader.run("location.hash = 'deep'")
    fold = "document.querySelector('details.held').open"
    reader.wait(lambda: reader.run(fold), "the fold")
    reader.run("dispatchEvent(new Event('beforeprint'))")
    assert reader.run("[...document.querySelectorAll('main details')].every(e => e.open)")


@pytest.mark.parametrize("heading", ["What causes the 37.6 %?", "Does x₀ count?", "Plain"])
def test_signs_in_a_heading_do_not_hide_it_from_the_contents_or_from_a_link(
    browser, tmp_path, heading
):
    """A notebook's heading has an id that is encoded as in an address: 37.6-%25."""
    words = "<p>Words.</p>" * 60
    first, second = (page.markdown_html(f"## {name}") + words for name in ("First", heading))
    body = f"<h1>A</h1>{first}<details>{second}</details>"
    deck.lay_out(tmp_path / "assets")
    (tmp_path / "a.html").write_text(shell.shell("A", body, "a.html"), encoding="utf-8")
    reader = browser.page(*DESK)
    reader.open(tmp_path / "a.html")
    link = "document.querySelectorAll('.contents a')[1]"
    reader.run(f"{link}.click()")
    reader.wait(lambda: reader.run("document.querySelector('main details').open"), "the fold")
    settled(reader)
    assert reader.run(f"{link}.getAttribute('aria-current')") == "true"

    # what is no code of a sign costs a page nothing else
    reader = browser.page(*DESK)
    reader.open(tmp_path / "a.html", "#37.6-%")
    assert reader.errors == []


def test_letters_of_figures_can_be_read_on_a_phone(browser, site):
    phone = opened(browser, site, size=PHONE)
    shown = phone.run("""[...document.querySelectorAll('figure img[src^="data:image/png"]')]
        .map(e => e.clientWidth / e.naturalWidth * 22)""")  # 11 points at 144 pixels an inch
    assert shown and min(shown) >= 12
    assert phone.run(
        "[...document.querySelectorAll('figure.scrolls')].every(e => e.tabIndex === 0)"
    )
    assert phone.run("document.querySelectorAll('figure.scrolls').length") > 0
    assert phone.run("document.documentElement.scrollWidth") <= 390


def test_a_picture_of_the_findings_is_moved_on_a_phone_and_not_shrunk(browser, site):
    phone = opened(browser, site, "evidence/index.html", PHONE)
    shown = phone.run("""[...document.querySelectorAll('main img')]
        .map(e => e.clientWidth / e.naturalWidth)""")
    assert len(shown) >= 3 and min(shown) > 0.95
    phone.run("document.querySelectorAll('main details').forEach(e => e.open = true)")
    scrolling = "document.querySelectorAll('figure.scrolls').length"
    phone.wait(lambda: phone.run(scrolling) == len(shown), "all of them in boxes that scroll")
    assert phone.run("document.documentElement.scrollWidth") <= 390


def test_a_notebook_leads_to_its_deck_homework_file_and_to_running_it(lesson):
    links = lesson.run(
        "[...document.querySelectorAll('.toolbar a')].map(a => a.getAttribute('href'))"
    )
    wanted = {
        "../slides/01_attention.html",
        "../homework/hw01_attention.html",
        "01_attention.ipynb",
    }
    assert wanted <= set(links)
    assert "make lab" in lesson.run("document.querySelector('.toolbar details').textContent")


# ---- other pages ---------------------------------------------------------------------------------


def test_claims_are_shown_by_verdict(browser, site):
    reader = opened(browser, site, "evidence/claims.html", TABLET)
    shown = "[...document.querySelectorAll('.claims li')].filter(e => e.checkVisibility())"
    assert reader.run(f"{shown}.length") == 0, "folded by source"
    reader.run("document.querySelector('[data-show=\"\"]').click()")
    whole = reader.run(f"{shown}.length")
    reader.run("document.querySelector('[data-show=\"not reproduced\"]').click()")
    kinds = reader.run(f"[...new Set({shown}.map(e => e.dataset.verdict))]")
    some = reader.run(f"{shown}.length")
    assert kinds == ["not reproduced"] and 0 < some < whole
    status = reader.run("document.querySelector('.chooser [role=status]').textContent")
    assert status == f"{some} of {whole} shown"
    reader.run("document.querySelector('[data-show=\"\"]').click()")
    assert reader.run(f"{shown}.length") == whole


def test_no_claim_is_cut_off(browser, site):
    reader = opened(browser, site, "evidence/claims.html", TABLET)
    cut = (
        "[...document.querySelectorAll('.claims li, .claims li *')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth"
        " || e.clientWidth && e.scrollWidth > e.clientWidth + 1).length"
    )
    reader.run(screens.UNFOLD)
    for size in (TABLET, PHONE):
        assert resized(reader, size).run(cut) == 0, size


def test_the_sources_of_the_claims_are_a_few_screens_of_a_phone(browser, site):
    reader = opened(browser, site, "evidence/claims.html", PHONE)
    assert reader.run("document.querySelectorAll('main > details > .claims').length") >= 5
    assert reader.run("document.body.scrollHeight") < 6000


WHOLE = "document.querySelector('main').textContent.replaceAll('Read on', '').replace(/\\s+/g, '')"


def test_a_phone_shows_the_answer_and_each_finding_as_its_heading_until_it_is_opened(
    browser, site, tmp_path
):
    """No word is lost: a desk, paper and a link to a finding show what is folded."""
    at = "evidence/index.html"
    phone, desk = opened(browser, site, at, PHONE), opened(browser, site, at)
    folds = "[...document.querySelectorAll('main > h2 + details.section')]"
    named = phone.run("document.querySelectorAll('main > h2').length")
    assert named >= 6 and phone.run(f"{folds}.length") == named
    assert phone.run(f"{folds}.filter(fold => fold.open).length") == 0
    assert phone.run("document.body.scrollHeight") < 4000
    answer = "document.querySelector('main strong').getBoundingClientRect().bottom"
    assert phone.run(answer) < PHONE[1], "the answer stands on the first screen"
    assert desk.run(f"{folds}.length") == 0 and phone.run(WHOLE) == desk.run(WHOLE)
    desk.tiles(tmp_path / "desk", 3000)  # a window that is narrow for a moment
    assert desk.run(f"{folds}.length") == 0
    phone.run("location.hash = 'Methods'")
    opens = "document.getElementById('Methods').nextElementSibling.open"
    phone.wait(lambda: phone.run(opens), "the fold of a heading that is linked")
    phone.run("dispatchEvent(new Event('beforeprint'))")
    assert phone.run(f"{folds}.every(fold => fold.open)")


@pytest.mark.parametrize("at", ["ledger", "published", "recorded"])
def test_long_lists_of_evidence_are_a_few_screens_of_a_phone(browser, site, at):
    phone = opened(browser, site, f"evidence/{at}.html", PHONE)
    assert phone.run("document.body.scrollHeight") < 12 * PHONE[1]


def test_figures_of_lines_turn_dark_shades_keep_a_softer_paper_and_all_a_margin(browser, site):
    reader = opened(browser, site, dark=True)
    reader.run("localStorage.removeItem('theme')")
    style = "getComputedStyle(document.querySelector('figure img[src^=\"data:image/png\"]'))"
    filters = reader.run("""[...document.querySelectorAll('figure img')].map(e =>
        [e.className, getComputedStyle(e).filter])""")
    turned = {told for kind, told in filters if kind == "lines-only"}
    paper = {told for kind, told in filters if kind != "lines-only"}
    assert turned == {"invert(1) hue-rotate(180deg)"} and paper == {"brightness(0.88)"}
    assert float(reader.run(f"{style}.paddingTop").removesuffix("px")) >= 8


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_a_heat_map_says_dark_is_large_in_the_dark_too_and_its_paper_turns(browser, site, theme):
    fig = figures.heatmap([[0.0, 1.0]], "Small and large", "x", "y")
    alt = "A heat map of two cells, small at the left and large at the right"
    picture = figures.on_page(figures.figure_bytes(fig), "png", alt, 5, shades.boxes(fig))
    path = site[0] / "heat.html"
    path.write_text(shell.shell("Heat", f"<h1>Heat</h1>{picture}", path.name), encoding="utf-8")
    reader = browser.page(*DESK, dark=theme == "dark")
    reader.open(path)
    path.unlink()
    reader.shot(site[0].parent / f"heat-{theme}.png")
    pixels = image.imread(site[0].parent / f"heat-{theme}.png")[..., :3].mean(-1)  # (height, width)
    box = "document.querySelector('.shades img').getBoundingClientRect()"
    left, top, width, height = (reader.run(f"{box}.{side}") for side in "x y width height".split())
    at = lambda across, down: pixels[int(top + down * height), int(left + across * width)]
    sides = [float(side) / 100 for side in shades.boxes(fig).partition(",")[0].split()]
    middle = sides[1] + sides[3] / 2
    small, large = (at(sides[0] + part * sides[2], middle) for part in (0.25, 0.75))
    assert small > 0.8 and large < 0.2
    paper = at(0.98, 0.98)
    assert paper < 0.25 if theme == "dark" else paper > 0.9


def test_the_first_drawing_is_tall_on_a_phone_and_as_wide_as_the_screen(browser, site):
    reader = opened(browser, site, "index.html")
    told = (
        "(e => [e.currentSrc.split('/').pop(), e.getBoundingClientRect().width / e.naturalWidth])"
    )
    for size, file, least in (
        (DESK, "moving.svg", 0.6),
        (TABLET, "moving-tall.svg", 1),
        (PHONE, "moving-tall.svg", 0.65),  # letters of 12 pixels are about 8
    ):
        shown, scale = resized(reader, size).run(f"{told}(document.querySelector('.map img'))")
        assert shown == file and least <= scale <= 1, (size, shown, scale)
        sideways = reader.run(
            "(e => e.scrollWidth - e.clientWidth)(document.querySelector('.map'))"
        )
        assert sideways <= 1, size


@pytest.mark.parametrize("system", ["dark", "light"])
def test_drawings_of_the_front_page_have_the_paper_of_the_page(browser, site, system, tmp_path):
    """Of the page's own theme, which the reader may choose against her system's."""
    drawings = {
        "index.html": ["figures/moving.svg"],
        "beside.html": ["figures/systems.svg", "figures/at-best.svg"],
    }
    for at, theme in itertools.product(drawings, ("light", "dark")):
        reader = opened(browser, site, at, dark=system == "dark")
        reader.run(f"document.documentElement.dataset.theme = '{theme}'")
        for file in drawings[at]:
            box = f"document.querySelector('main img[src$=\"{file}\"]').getBoundingClientRect()"
            reader.run(f"scrollTo(0, scrollY + {box}.y - 100)")
            settled(reader)
            left, top = reader.run(f"[{box}.x, {box}.y]")
            reader.shot(tmp_path / "page.png")
            pixels = image.imread(tmp_path / "page.png")[..., :3].mean(-1)  # (height, width)
            paper = pixels[int(top) + 8, int(left) + 8]
            assert paper < 0.25 if theme == "dark" else paper > 0.9, (theme, file, paper)
            image_at = f"document.querySelector('main img[src$=\"{file}\"]')"
            behind = reader.run(f"getComputedStyle({image_at}).backgroundColor")
            assert behind == "rgba(0, 0, 0, 0)", "what is white shines at a dark picture's edges"


def test_every_page_tells_others_what_it_is_about(site):
    lost = []
    for path in sorted(site[0].rglob("*.html")):
        text = path.read_text(encoding="utf-8")
        told = re.search(r'<meta name="description" content="([^"]*)">', text)
        if not told or len(told[1]) < 20 or 'property="og:title"' not in text:
            lost.append(path.name)
        shared = re.search(r'<meta property="og:image" content="([^"]*)">', text)
        if not shared or not (path.parent / shared[1]).resolve().is_file():
            lost.append(f"{path.name}: no picture to share")
    assert lost == []
    head = (site[0] / preview.SHARE_PICTURE).read_bytes()[:24]
    size = tuple(int.from_bytes(head[i : i + 4], "big") for i in (16, 20))
    assert head[1:4] == b"PNG" and size == preview.SIZE
    assert (site[0] / "sitemap.xml").exists() == bool(owner.site_address())


@pytest.mark.parametrize("dark", [False, True])
def test_a_piece_to_move_has_the_colours_of_the_page_whatever_the_system_asks(browser, site, dark):
    reader = opened(browser, site, dark=not dark)
    reader.run(f"localStorage.setItem('theme', '{'dark' if dark else 'light'}')")
    reader.open(site[0] / LESSON)
    colour = lambda what, of: sum(
        map(
            int,
            re.findall(
                r"\d+",
                reader.run(f"getComputedStyle(document.querySelector('.movable svg {what}')).{of}"),
            )[:3],
        )
    )
    letters, paper = colour("text", "fill"), colour(".paper", "fill")
    reader.run("localStorage.removeItem('theme')")
    assert (letters > paper + 300) if dark else (paper > letters + 300)
