"""Can the site speak another language? Its words around the texts are one table, and no other."""

import html
import re

import nbformat
import pytest

from notebooks.run import ROOT
from slides import build, front, labels, launch, lesson, shell

MARKED = "⟦{}⟧"


@pytest.fixture
def marked(monkeypatch):
    """The site with every label in brackets, so that what is written in code stands outside."""
    for name, said in labels.PAGES.items():
        monkeypatch.setitem(labels.PAGES, name, MARKED.format(said))


def unmarked(page):
    """What a reader sees or hears of a page that is in no brackets."""
    while "⟦" in page:  # one may stand in another
        page = re.sub(r"⟦[^⟦⟧]*⟧", "", page)
    page = re.sub(r"<(head|main)\b.*?</\1>", "", page, flags=re.S)
    heard = re.findall(r'aria-label="([^"]*)"', page)
    seen = html.unescape(re.sub(r"<[^>]+>", "\n", page)).split("\n")
    return {words.strip() for words in [*heard, *seen]} - {"", "/", "◐", "¶"}


def test_all_that_stands_around_a_text_is_of_the_table(marked):
    groups = [(part, [("A page", "a.html")]) for part in shell.NAV]
    near = ("Another", "b.html")
    body = "<h2>One</h2><h2>Two</h2>"
    page = shell.shell("Name", body, "a.html", groups, before=near, after=near)
    names = {"A page", "One", "Two", "Where do the values come from?"}
    assert unmarked(page) == names
    assert "⟦" in build.lost([]) and unmarked(front.deck_index({}, set())) == set()


def test_buttons_of_a_notebook_and_what_is_folded_are_of_the_table(marked):
    path = ROOT / "notebooks" / "01_attention.ipynb"
    at = "notebooks/01_attention.html"
    tools = launch.toolbar(path, at, [path.stem], [path.stem], ["hw01_attention"])
    assert unmarked(tools) <= {"Colab", "Binder"}
    code, text = nbformat.v4.new_code_cell, nbformat.v4.new_markdown_cell
    tagged = lambda tag: dict(tags=[tag])
    drawing = nbformat.v4.new_output("display_data", {"text/html": "<figure>a picture</figure>"})
    cells = [
        text("# T\n"),
        text("> **Predict.**"),
        code("guess_x = None"),
        code("x = 1", outputs=[drawing]),
        code("def f(x):\n    return x", metadata=tagged("your-turn")),
        code("x = 3", metadata=tagged("hide-input")),
        code("def g(x):\n    return x", metadata=tagged("deeper")),
    ]
    made = lesson.body(nbformat.v4.new_notebook(cells=cells))
    words = unmarked(re.sub(r"<(pre|code)\b.*?</\1>", "", made, flags=re.S))
    assert words == {"T", "Predict.", "a picture"}


def test_scripts_have_no_words_of_their_own():
    shown = re.compile(r"""(?:textContent|aria-label|placeholder)\W*=\s*["`](?!\$)[\w ]+["`]""")
    scripts = sorted((ROOT / "slides" / "theme").glob("*.js"))
    assert [(path.name, shown.findall(path.read_text())) for path in scripts] == [
        (path.name, []) for path in scripts
    ]
    asked = "".join(path.read_text() for path in scripts)
    assert [name for name in labels.IN_SCRIPTS if f'"{name}"' not in asked] == []
    named = set(re.findall(r'\bsay\("(\w+)"', asked))
    assert named and named <= labels.IN_SCRIPTS.keys()


def test_no_label_is_left_over():
    code = "".join(path.read_text() for path in (ROOT / "slides").glob("*.py"))
    quoted = set(re.findall(r"""["'](\w+)["']""", code))
    assert labels.PAGES.keys() - quoted - set(build.FINDINGS) - shell.NAV.keys() == set()


CHANGES = {
    ('start = "Start reading"', ""): "wanted 'start', found none",
    ('start = "', 'begin = "x"\nstart = "'): "found 'begin' too",
    ("{profile}", "{scale}"): "'executed': wanted in braces profile, got scale",
    ('copy = "Copy"', ""): "wanted 'copy', found none",
    ("[scripts]", "[skripts]"): "found 'skripts' too",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_does_not_fit_is_refused_in_a_sentence(change, tmp_path, monkeypatch):
    for name in ("PAGES", "IN_SCRIPTS"):
        monkeypatch.setattr(labels, name, dict(getattr(labels, name)))
    table = tmp_path / "xx.toml"
    table.write_text(labels.ENGLISH.read_text(encoding="utf-8").replace(*change, 1))
    with pytest.raises(ValueError, match=f"xx.toml: .*{re.escape(CHANGES[change])}"):
        labels.use(table)


def test_another_table_is_spoken(tmp_path, monkeypatch):
    for name in ("PAGES", "IN_SCRIPTS"):
        monkeypatch.setattr(labels, name, dict(getattr(labels, name)))
    table = tmp_path / "xx.toml"
    english = labels.ENGLISH.read_text(encoding="utf-8")
    table.write_text(english.replace("Start reading", "开始阅读").replace('"Copy"', '"复制"'))
    labels.use(table)
    assert labels.say("start") == "开始阅读" and '"copy": "复制"' in labels.script()
