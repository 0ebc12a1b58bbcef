"""Can the course be read with only a browser? The site as a reader, a phone and a keyboard see it.

In light and dark, and without a network.
"""

import re
from pathlib import Path

import pytest

from course import owner
from slides import links

ROOT = Path(links.__file__).resolve().parents[1]
KINDS = (
    "index.html",
    "notebooks/01_attention.html",
    "homework/index.html",
    "homework/hw01_attention.html",
    "homework/instructors.html",
    "evidence/index.html",
    "evidence/claims.html",
    "evidence/published.html",
    "evidence/recorded.html",
    "api/index.html",
    "api/model.values.html",
    "slides/index.html",
)
needs_browser = pytest.mark.site


# ---- without a browser ---------------------------------------------------------------------------


def test_letters_have_enough_contrast_in_both_themes():
    css = (ROOT / "slides/theme/base.css").read_text(encoding="utf-8")
    themes = [
        dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root[^{]*\{([^}]*)\}", css)
    ]
    light = lambda colour: sum(
        weight * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4)
        for weight, c in zip(
            (0.2126, 0.7152, 0.0722), (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
        )
    )
    contrast = lambda a, b: (max(light(a), light(b)) + 0.05) / (min(light(a), light(b)) + 0.05)
    assert len(themes) == 3 and themes[1] == themes[2], "dark by choice, and as the system asks"
    for theme in themes:
        thin = {
            (text, ground): contrast(theme[text], theme[ground])
            for ground in ("paper", "card", "code")
            for text in ("ink", "soft", "accent", "key", "text", "number", "note", "name")
        }
        assert {pair: round(value, 2) for pair, value in thin.items() if value < 4.5} == {}


def test_links_are_turned_into_links_between_pages_and_one_that_leads_nowhere_is_refused():
    turn = lambda link: links.relink(
        f'<a href="{link}">x</a>', "notebooks/01_attention.ipynb", "notebooks/01_attention.html"
    )
    assert 'href="00_start_here.html"' in turn("00_start_here.ipynb")
    assert 'href="../homework/hw01_attention.html#part"' in turn(
        "../homework/hw01_attention/README.md#part"
    )
    assert 'href="../api/model.values.html"' in turn("../minimal/model/values.py")
    assert turn("https://arxiv.org/abs/2606.02780").count("arxiv") == 1 and 'href="#why"' in turn(
        "#why"
    )
    assert 'evidence/index.html#Methods"' in turn("evidence/README.md#methods")
    within = links.relink('<a href="#methods">x</a>', "notebooks/evidence/README.md", "any.html")
    assert within == '<a href="#Methods">x</a>'
    assert "in preparation" in turn("99_not_yet.ipynb")
    with pytest.raises(ValueError, match="leads nowhere"):
        turn("../minimal/no_such.py")


@pytest.mark.parametrize("home", [None, "https://example.com/course"])
def test_a_file_without_a_page_is_linked_only_where_a_fork_has_said_its_address(monkeypatch, home):
    monkeypatch.setattr(owner, "project", lambda: home)
    body = links.relink('<a href="../Makefile">x</a>', "notebooks/README.md", "index.html")
    anchor = links.anchor("Makefile", "evidence/claims.html", "words")
    if home:
        assert body == f'<a href="{home}/blob/main/Makefile">x</a>'
        assert anchor == f'<a href="{home}/blob/main/Makefile">words</a>'
    else:
        assert body == '<span class="soft" title="in the repository: Makefile">x</span>'
        assert anchor == "words"


def test_broken_links_missing_names_and_strangers_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h2 id="here"></h2><a href="b.html#there">x</a>'
        '<a href="#here">y</a><a href="c.html">z</a>'
        '<script src="https://example.com/x.js"></script>'
        '<a href="https://example.com">far</a>'
    )
    (tmp_path / "b.html").write_text("<p>")
    assert links.broken(tmp_path) == [
        "a.html loads https://example.com/x.js",
        "a.html: b.html#there leads nowhere",
        "a.html: c.html leads nowhere",
    ]


# ---- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def screens():
    folder = ROOT / "build" / "screens"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@needs_browser
def test_every_page_is_there_every_link_leads_somewhere_and_all_of_it_is_small(site):
    out, faults = site
    assert faults == [] and links.broken(out) == []
    assert [at for at in KINDS if not (out / at).exists()] == []
    assert sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) < 40e6


@needs_browser
def test_a_reader_clicks_from_the_front_page_through_a_notebook_a_deck_and_a_homework(
    browser, site, screens
):
    reader = browser.page()
    reader.open(site[0] / "index.html")
    reader.shot(screens / "front-light.png", whole=True)
    for link, heading in (
        ('a[href="notebooks/01_attention.html"]', "01 · Attention from scratch"),
        ("a[rel=prev]", "00 · Start here"),
        ("a.home", "Where do the values come from?"),
        ('a[href="homework/hw01_attention.html"]', "hw01 · What does a token see?"),
        ('header a[href$="slides/index.html"]', "Slides"),
        ('a[href="01_attention.html"]', "01 · Attention from scratch"),
    ):
        reader.click(link)
        assert reader.run("document.querySelector('h1').textContent").startswith(heading)
    assert reader.run("Reveal.isReady()")
    reader.press("ArrowRight")
    assert reader.run("Reveal.getIndices().h") == 1
    reader.click("a.back")
    assert reader.run("document.querySelector('h1').textContent") == "Slides"
    assert reader.errors == [] and reader.strangers() == []


@needs_browser
@pytest.mark.parametrize("at", KINDS)
def test_a_phone_needs_no_second_direction_and_nothing_is_fetched_or_broken(
    browser, site, screens, at
):
    phone = browser.page(390, 844, phone=True)
    phone.open(site[0] / at)
    wide = """[...document.querySelectorAll("main *")]
        .filter(e => e.getBoundingClientRect().right > 391)
        .filter(e => !e.closest("svg, pre, .scroll, .equation, figure"))
        .map(e => e.localName + " " + e.textContent.trim().slice(0, 40))"""
    assert phone.run("document.documentElement.scrollWidth") <= 390, phone.run(wide)
    assert phone.run("[...document.images].every(i => i.alt.trim() && i.naturalWidth)")
    assert phone.errors == [] and phone.strangers() == []
    phone.shot(screens / f"phone-{at.replace('/', '-')[:-5]}.png", whole=True)


@needs_browser
def test_equations_are_drawn_and_read_out(browser, site):
    reader = browser.page()
    reader.open(site[0] / "notebooks/01_attention.html")
    high = """[...document.querySelectorAll('main math')]
        .filter(e => e.getBoundingClientRect().height > 8 && e.textContent.trim()).length"""
    assert reader.run(high) > 20
    told = reader.call("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in told if "role" in node]
    assert roles.count("MathMLMath") > 20 and "MathMLFraction" in roles
    as_typed = """[...document.querySelectorAll('main p, main li')].filter(e => {
        const own = [...e.childNodes].filter(n => n.nodeType === 3);
        return /\\$[^$]+\\$/.test(own.map(n => n.textContent).join(''));
    }).length"""
    assert reader.run(as_typed) == 0


@needs_browser
def test_the_keyboard_reaches_the_text_and_the_switch_of_light_and_dark(browser, site, screens):
    reader = browser.page(dark=True)
    reader.open(site[0] / "index.html")
    reader.run("localStorage.removeItem('theme')")
    assert reader.run("document.documentElement.dataset.theme") == "dark"
    reader.shot(screens / "front-dark.png", whole=True)
    reader.press("Tab")
    assert reader.run("document.activeElement.className") == "skip"
    reached = []
    while "theme" not in reached and len(reached) < 12:
        reader.press("Tab")
        reached.append(
            reader.run("document.activeElement.id || document.activeElement.textContent")
        )
    assert (
        reached[:3] == ["Where do the values come from?", "Course", "Slides"]
        and reached[-1] == "theme"
    )
    assert reader.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    reader.press("Enter")
    assert reader.run("document.documentElement.dataset.theme") == "light"
    reader.open(site[0] / "api/index.html")
    assert reader.run("document.documentElement.dataset.theme") == "light", (
        "the choice is kept from page to page"
    )
    reader.run("localStorage.removeItem('theme')")
    reader.open(site[0] / "notebooks/01_attention.html")
    reader.shot(screens / "notebook-dark.png", whole=True)


@needs_browser
def test_the_front_page_says_what_the_course_is_how_to_start_and_how_long_it_takes(browser, site):
    reader = browser.page()
    reader.open(site[0] / "index.html")
    text = reader.run("document.querySelector('main').innerText")
    assert "make lab" in text and "An hour." in text and "minutes" in text
    assert reader.run("document.querySelectorAll('.units li').length") == len(
        list((ROOT / "notebooks").glob("[0-9][0-9]*_*.ipynb"))
    )
    assert reader.run("document.querySelector('.map img').naturalWidth") > 300
    both = [
        path
        for path in (site[0] / "slides").glob("[0-9]*.html")
        if (site[0] / "notebooks" / path.name).exists()
    ]
    assert reader.run("document.querySelectorAll('.units a[href^=\"slides/\"]').length") == len(
        both
    )
