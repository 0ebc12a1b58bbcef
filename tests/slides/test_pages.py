"""What stands on a page, what is folded, and where do its buttons lead? Without a browser."""

import base64
import html
import io
import re
from xml.etree import ElementTree

import nbformat
import pytest
from matplotlib import image

from course import figures, formula, owner, shades
from notebooks import run
from slides import build, dark, deck, launch, lesson, links, page, preview, search, shell

code = nbformat.v4.new_code_cell
text = nbformat.v4.new_markdown_cell


def ran(source, said="", tags=()):
    """A cell that was executed and printed something."""
    outputs = [nbformat.v4.new_output("stream", text=said)] if said else []
    return code(source, outputs=outputs, metadata=dict(tags=list(tags)))


def body(*cells):
    return lesson.body(nbformat.v4.new_notebook(cells=[text("# 99 · Title"), *cells]))


def inside(kind, page):
    """What stands in the folds of one kind."""
    return "".join(re.findall(rf'<details class="{kind}">(.*?)</details>', page, flags=re.S))


# ---- predictions ---------------------------------------------------------------------------------


def test_what_answers_a_prediction_waits_until_it_is_asked_for():
    page = body(
        text("> **Predict.** How hot?"),
        ran("guess_hot = None  # degrees"),
        ran("x = measure()", "it is 451"),
        ran("y = 2", "four hundred"),
        text("So paper burns.\n\n## Next question"),
        ran("z = 3", "seen at once"),
    )
    held = inside("held", page)
    assert "it is 451" in held and "four hundred" in held and "So paper burns." in held
    assert "measure" not in held, "the code that measures is read before"
    assert "Next question" not in held and "seen at once" not in held
    assert 'data-guess="guess_hot"' in page and "degrees" in page


def test_behind_an_answer_there_is_room_for_what_the_reader_guessed():
    page = body(
        text("> **Predict.** How hot?"),
        ran("guess_hot = None"),
        ran('answer("paper: heat", 451, guess_hot)', "paper: heat: 451\nand more: 2"),
        text("Again?\n\n> **Predict.** How cold?"),
        ran("guess_hot = None"),
        ran('answer("ice: heat", 0, guess_hot, form="d")', "ice: heat: 0"),
    )
    rooms = re.findall(r'(\d+)<span data-said="([^"]+)" data-truth="([^"]+)"></span>', page)
    assert rooms == [("451", "guess_hot", "451"), ("0", "guess_hot-2", "0")]


def test_nothing_waits_where_nothing_was_guessed():
    page = body(text("> **Predict.** How hot?"), ran("x = 1", "it is 451"), text("So it is."))
    assert "it is 451" in page and '<details class="held">' not in page


def test_a_second_question_in_the_text_that_answers_the_first_is_seen():
    page = body(
        text("> **Predict.** One?"),
        ran("guess_one, guess_two = None, None"),
        ran("print(1)", "uno"),
        text("Uno.\n\n> **Predict.** And two?"),
        ran("guess_three = None"),
        ran("print(2)", "due"),
    )
    held = re.findall(r'<details class="held">(.*?)</details>', page, flags=re.S)
    assert len(held) == 2 and "uno" in held[0] and "due" in held[1]
    assert "And two?" not in "".join(held)
    assert re.findall(r'data-guess="(\w+)"', page) == ["guess_one", "guess_two", "guess_three"]


def test_an_exercise_in_the_text_that_answers_a_question_is_seen():
    page = body(
        text("> **Predict.** One?"),
        ran("guess_one = None"),
        ran("print(1)", "uno"),
        text("Uno.\n\n> **Your turn** · easy, 3 minutes. Write two."),
    )
    assert "uno" in inside("held", page) and "Uno." in inside("held", page)
    assert "Write two." in page and "Write two." not in inside("held", page)


def test_an_answer_that_comes_after_a_deeper_section_waits_too():
    page = body(
        text("> **Predict.** How hot?"),
        ran("guess_hot = None"),
        ran("z = 3", "an aside", tags=["deeper"]),
        ran("x = measure()", "it is 451"),
        text("So paper burns."),
    )
    held = inside("held", page)
    assert "it is 451" in held and "So paper burns." in held and "an aside" not in held
    assert 'data-guess="guess_hot"' in page and "an aside" in inside("deeper", page)


def test_an_answer_waits_though_an_exercise_stands_between_it_and_the_question():
    page = body(
        text("> **Predict.** How hot?"),
        ran("guess_hot = None"),
        text("> **Your turn** · easy, 3 minutes. Write it."),
        ran("def f(x):\n    raise NotImplementedError", "", ["your-turn"]),
        ran('f = your_turn("nb99", f)', "not written yet"),
        text("<details><summary>Solution</summary>\n\n`return x`\n\n</details>"),
        ran("x = f()", "it is 451"),
        text("So paper burns."),
    )
    held = inside("held", page)
    assert "it is 451" in held and "So paper burns." in held
    assert "Solution" not in held and "Write it" not in held and "def" not in held


def test_a_second_answer_to_a_guess_waits_too_and_a_check_of_it_does_not():
    page = body(
        text("> **Predict.** How hot, and how long?"),
        ran("import math\n\nguess_hot = [None] * 2  # degrees\nguess_long = None"),
        ran("print(1)", "it is 451"),
        text("So paper burns."),
        ran('answer("long", 7, guess_long)', "seven hours"),
        text("Long enough."),
        ran("assert guess_long is None\nall_hold()", "1 check holds"),
    )
    held = re.findall(r'<details class="held">(.*?)</details>', page, flags=re.S)
    assert len(held) == 2 and "seven hours" in held[1] and "1 check holds" not in held[1]
    assert re.findall(r'data-guess="(\w+)"', page) == ["guess_hot", "guess_long"]


def test_a_name_that_is_asked_for_again_is_another_guess():
    """Else its box shows the answer that was given to the first question."""
    page = body(
        text("> **Predict.** Higher?"),
        ran("guess_row8 = None"),
        ran("print(1)", "higher"),
        text("Yes.\n\n> **Predict.** By how much?"),
        ran("guess_row8, guess_row3 = None, None"),
        ran("print(2)", "by two"),
    )
    assert re.findall(r'data-guess="([^"]+)"', page) == ["guess_row8", "guess_row8-2", "guess_row3"]
    assert page.count("Your guess: row8 <input") == 2
    notebook = nbformat.read(links.ROOT / "notebooks" / "09_thirteen_rows.ipynb", 4)
    kept = re.findall(r'data-guess="([^"]+)"', lesson.body(notebook))
    assert len(kept) == len(set(kept)) >= 2


def test_no_solution_of_the_course_is_taken_for_the_answer_to_a_prediction():
    for path in run.chosen([]):
        notebook = nbformat.read(path, 4)
        for cell in run.code(notebook):
            said = [] if "your-turn" in cell.metadata.get("tags", []) else ["said"]
            cell.outputs = [nbformat.v4.new_output("stream", text=one) for one in said]
        for held in lesson.body(notebook).split('<details class="held">')[1:]:
            assert not held.partition("</summary>")[2].strip().startswith("<details>"), path.stem


def test_in_the_course_a_guess_is_always_followed_by_something_that_waits():
    for path in run.chosen([]):
        notebook = nbformat.read(path, 4)
        for cell in run.code(notebook):
            cell.outputs = [nbformat.v4.new_output("stream", text="said")]
        page = lesson.body(notebook)
        boxes, held = page.count('<div class="guess">'), page.count('<details class="held">')
        assert held >= boxes >= 2, path.stem


# ---- folds ---------------------------------------------------------------------------------------


def test_code_that_only_draws_is_folded_and_its_figure_is_not():
    source = "y = work()\nfig = figures.lines(y)\nfigures.show(fig, 'alt')\nprint(y)"
    page = body(ran(source, "a figure"))
    folded = inside("code", page)
    assert "lines" in folded and "alt" in folded
    assert "work" not in folded and "print" not in folded and "a figure" not in folded


def test_what_stands_before_the_first_section_is_set_up_and_folded():
    page = body(
        ran("seed: int = 0", "", ["parameters"]),
        ran("import torch", "seen"),
        text("## A question"),
        ran("from functools import partial"),
    )
    folded = inside("code", page)
    assert page.count("<summary>Show the set-up</summary>") == 1
    assert "seed" in folded and "torch" in folded
    assert "partial" not in folded and "seen" not in folded, "nothing of the lesson"


def test_a_name_with_hyphens_is_not_parted_in_a_line_of_text():
    made = page.markdown_html("Say `make --jobs 2` or `row`; a-b.\n\n    plain --text\n")
    assert '<code>make <span class="whole">--jobs</span> 2</code>' in made
    assert "<code>row</code>" in made and made.count("whole") == 1, "not in a block, not in prose"


@pytest.mark.parametrize(
    "tag, kind, folded, shown",
    [
        ("hide-input", "code", "secret", "said"),
        ("deeper", "deeper", "secret", ""),
        ("remove-input", "none", "", "said"),
    ],
)
def test_a_tag_says_what_is_folded(tag, kind, folded, shown):
    page = body(ran("secret = 1", "said", [tag]))
    assert folded in inside(kind, page)
    assert shown in re.sub(r"<details.*?</details>", "", page, flags=re.S)
    assert ("secret" in page) == (tag != "remove-input")


def test_deeper_cells_in_a_row_are_one_fold_with_the_name_of_their_section():
    deeper = dict(metadata=dict(tags=["deeper"]))
    page = body(text("## Why so deep?", **deeper), ran("a = 1", "", ["deeper"]), text("Back."))
    assert page.count('<details class="deeper">') == 1
    assert "<summary>Deeper: Why so deep?</summary>" in page
    assert "Back." not in inside("deeper", page)


@pytest.mark.parametrize(
    "cells, name",
    [
        ([text("### A $x_0$ (deeper)")], "A $x_0$"),
        ([text("## One (deeper)"), text("## Two")], "One and one more section"),
        ([text("## One\n\n## Two\n\n### 3")], "One and 2 more sections"),
        ([code("assert x\nall_hold()"), text("## Questions (deeper)")], "more checks; Questions"),
        ([code("fig = 1\nfigures.show(fig, 'alt')")], "a figure"),
        ([code("def mlp(x):\n    return x")], "the code of mlp"),
        ([code("x = 1")], "a cell beyond the core"),
    ],
)
def test_a_fold_is_named_once_and_says_how_much_is_in_it(cells, name):
    for cell in cells:
        cell.metadata.tags = ["deeper"]
    page = body(text("## Core"), *cells)
    summary = re.search(r"<summary>(Deeper.*?)</summary>", page)[1]
    assert re.sub(r"<[^>]+>", "", summary) == f"Deeper: {name}"


PRINTED = [(80, ""), (90, " lines table"), (100, " lines table small"), (300, " lines")]


@pytest.mark.parametrize("length, kind", PRINTED)
def test_what_is_printed_fits_a_narrow_fold(length, kind):
    page = body(ran("x = 1", "short\n  " + "x" * (length - 2)))
    assert f'<pre class="output{kind}">' in page and "x" * (length - 2) in page
    assert re.findall(r"--in:(\d+)ch", page)[-2:] == (["4", "6"] if kind else ["4"])


def test_no_full_stop_begins_a_line_since_an_equation_stands_before_it():
    made = page.markdown_html("As $x$. Or $y$ (with $z$), in `$a$.`.\n\n$$\nw.\n$$\n")
    kept = re.findall(r'<span class="whole">(.*?)</span>', made)
    assert kept == ["$x$.", "$z$),"]


def test_an_exercise_is_a_box_that_says_where_to_write_and_its_check_says_nothing():
    page = body(
        ran("def merge(x):\n    raise NotImplementedError", "", ["your-turn"]),
        ran('merge = your_turn("nb99", merge)', "not written yet"),
        text("<details><summary>Solution</summary>\n\n`return x`\n\n</details>"),
    )
    assert '<div class="your-turn"><p>Write it in JupyterLab' in page and "make lab" in page
    assert "not written yet" not in page and "your_turn(" not in page
    assert "<summary>Solution</summary>" in page


def test_folding_loses_no_line_of_any_cell():
    for path in run.chosen([]):
        for cell in run.code(nbformat.read(path, 4)):
            made = "\n".join(part for _, part in lesson.pieces(cell.source))
            kept = [line for line in made.splitlines() if line.strip()]
            assert kept == [line for line in cell.source.splitlines() if line.strip()], cell.id


def test_a_line_of_code_keeps_its_letters_and_says_how_far_in_it_goes_on():
    source = 'def f(x):\n    """Two\n    lines."""\n\n    return x < 1  # (B, T)'
    made = lesson.lines_html(source)
    assert html.unescape(re.sub(r"<[^>]+>", "", made)).rstrip("\n") == source
    assert re.findall(r"--in:(\d+)ch", made) == ["4", "8", "8", "4", "8"]


# ---- around the text -----------------------------------------------------------------------------


def test_every_heading_has_one_name_of_its_own_and_stands_in_the_contents():
    made, found = shell.anchored(
        "<h2>Same</h2><h3>Same</h3><h2 id='x'>Else</h2><h2>&amp; more</h2>"
    )
    names = re.findall(r'<h\d id="([^"]*)"', made)
    assert len(set(names)) == 4 and [name for _, name, _ in found] == names
    contents = shell.on_this_page(found)
    assert all(f'href="#{name}"' in contents and f'href="#{name}"' in made for name in names)
    assert shell.on_this_page(found[:1]) == ""


def test_a_wide_table_moves_in_its_box_without_a_script():
    made = shell.shell(
        "Name", "<table><tr><td>1</td></tr></table><p>x</p><table></table>", "a.html"
    )
    assert made.count('<div class="scroll"><table') == made.count("</table></div>") == 2


def test_a_link_in_small_letters_reaches_its_heading():
    links = '<a href="#what-is-recorded">list</a><a href="#nowhere">x</a>'
    made, _ = shell.anchored(f"<h2 id='z'>A</h2><h2 id=\"What-is-recorded\">B</h2>{links}")
    assert 'href="#What-is-recorded">list' in made and 'href="#nowhere"' in made
    asked, _ = shell.anchored('<h2 id="What-came-next?">A</h2><a href="#what-came-next">x</a>')
    assert 'href="#What-came-next?">x' in asked


def test_a_link_to_a_name_that_is_there_is_left_alone():
    """A class Norm and a function norm, of one file, shared a link; which of them, chance said."""
    both = '<h2 id="Norm">class Norm</h2><h2 id="norm">norm(x)</h2><a href="#NORM">x</a>'
    made, _ = shell.anchored(both)
    assert re.findall(r'href="#(\w+)"', made) == ["Norm", "norm", "Norm"], "of two the first"


def test_no_heading_takes_a_name_of_what_stands_around_the_text():
    """A function main had the id of all text, so its link led to the top of the page."""
    functions = "".join(f'<h2 id="{name}">{name}()</h2>' for name in (*shell.OWN, "main-2"))
    body = f'<p id="beside"></p>{functions}<h3 id="beside">Beside</h3><a href="#main">x</a>'
    made = shell.shell("Name", f"{body}<h2>Else</h2>", "api/a.html")
    ids = re.findall(r'\sid="([^"]*)"', made)
    assert len(set(ids)) == len(ids) and set(shell.OWN) < set(ids)
    links = re.findall(r'<h. id="([^"]*)".*?href="#([^"]*)"', made)
    assert len(links) == len(shell.OWN) + 3 and all(name == link for name, link in links)
    assert '<a href="#main-2">x</a>' in made
    bare = shell.shell("Name", "", "api/a.html")
    assert sorted(re.findall(r'\sid="([^"]*)"', bare)) == sorted(shell.OWN)
    (found,) = search.entries("api/a.html", "a", '<h2 id="main-2">main()</h2>')
    assert found[:3] == ("api/a.html#main-2", "a", "main")


def test_a_description_is_the_first_sentence_that_says_something_without_signs():
    told = preview.description(
        "<p>x</p><p><strong>The claim.</strong> Attention is one line, "
        r"$\mathrm{softmax}(QK^\top/\sqrt D)\,V$, and it is the same function each time.</p>"
    )
    assert told.startswith("Attention is one line, softmax") and not set(told) & set("\\${}")
    buttons = (
        f'<div class="toolbar"><p>{"how to run it " * 9}</p></div><p class="soft state">of 9</p>'
    )
    assert preview.description(f"{buttons}<p>{'values ' * 9}</p>") == ("values " * 9).strip()
    long = preview.description(f"<p>{'word ' * 100}</p>")
    assert len(long) <= preview.LONGEST + 2 and long.endswith("word …")


def test_a_description_is_of_words_and_not_of_code_or_half_a_sentence():
    said = "What is said here is long enough to be told."
    code = "<pre><code>python -m minimal.data --corpus war-and-peace</code></pre><p>x</p>"
    drawing = f'<svg><path d="M0 0"/></svg><picture><source srcset="{"a" * 50}"></picture>'
    assert preview.description(f"{code}{drawing}<p class=soft>{said}</p>") == said

    half = f"<p>{said} The value depends on the pair,</p>"
    equation, rest = "<p>$$ v_{ij} = v_j + q^R_i \\odot k^R_j, $$</p>", "<p>and on no more.</p>"
    told = preview.description(half + equation + rest)
    assert (
        told == f"{said} The value depends on the pair, v_ij = v_j + q^R_i ⊙ k^R_j, and on no more."
    )
    assert preview.description(f"{equation}<p>{said}</p>") == said


def test_the_head_of_a_notebook_links_its_page_where_the_site_has_an_address(monkeypatch):
    head = "# 01 · A\n\n**Beside it.** [Slides](../slides/01_a.ipynb) · next: [02](02_b.ipynb)"
    for home in ("https://some.github.io/course", "https://some.github.io/course/"):
        monkeypatch.setattr(owner, "site_address", lambda home=home: home)
        linked = owner.with_page(head, "01_a")
        page = "[Page](https://some.github.io/course/notebooks/01_a.html)"
        assert f"**Beside it.** {page} · [Slides](" in linked
        assert owner.with_page(linked, "01_a") == linked, (
            "written once, however often it is cleaned"
        )

    # an address that moved, one that was taken back, and a head without the line
    monkeypatch.setattr(owner, "site_address", lambda: "https://elsewhere.org")
    moved = owner.with_page(linked, "01_a")
    assert moved.count("[Page]") == 1 and "(https://elsewhere.org/notebooks/01_a.html)" in moved
    monkeypatch.setattr(owner, "site_address", lambda: None)
    assert owner.with_page(moved, "01_a") == head
    assert owner.with_page("# A deck", "01_a") == "# A deck"


def test_a_page_does_not_link_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(owner, "site_address", lambda: "https://some.github.io/course")
    source = links.ROOT / "notebooks" / "01_attention.ipynb"
    copy = tmp_path / source.name
    nbformat.write(run.clean(nbformat.read(source, 4), source.stem), copy)
    assert "[Page](https://some.github.io/course/notebooks/" in copy.read_text(encoding="utf-8")
    _, _, made = build.notebook_page(source, {source: copy}, "smoke")
    assert ">Page</a>" not in made and ">homework hw01</a>" in made, "the other links stay"


@pytest.mark.parametrize(
    "home, names, address",
    [
        (None, [], ""),
        ("https://example.com/a/b", [], ""),
        (
            "https://github.com/some/fork.git",
            ["Colab", "Binder"],
            "https://colab.research.google.com/github/some/fork/blob/main/notebooks/01_a.ipynb",
        ),
        (
            "https://gitlab.com/some/fork",
            ["Binder"],
            "https://mybinder.org/v2/gl/some%2Ffork/main?labpath=notebooks%2F01_a.ipynb",
        ),
    ],
)
def test_one_address_gives_a_fork_its_launch_buttons(monkeypatch, home, names, address):
    monkeypatch.setattr(owner, "project", lambda: home)
    path = links.ROOT / "notebooks" / "01_a.ipynb"
    made = launch.toolbar(path, "notebooks/01_a.html", {"01_a": ""}, (), ["hw01_attention"])
    assert re.findall(r'class="launch" href="[^"]*">(\w+)<', made) == names
    assert address in made and "Homepage" not in made, "a reader is told nothing about owners"
    for link in ("../slides/01_a.html", "../homework/hw01_attention.html", "01_a.ipynb"):
        assert f'href="{link}"' in made
    assert "make lab" in made


@pytest.mark.parametrize(
    "home, image, url",
    [
        (None, "../assets/share.png", None),
        (
            "https://example.com/course/",
            "https://example.com/course/assets/share.png",
            "https://example.com/course/api/a.html",
        ),
    ],
)
def test_a_shared_link_shows_the_courses_picture(monkeypatch, home, image, url):
    monkeypatch.setattr(owner, "site_address", lambda: home)
    monkeypatch.setattr(preview.doctor, "browser", lambda: "chromium")  # as where it was drawn
    made = preview.tags(
        'A "name"', "<p>What is said here is long enough to be told.</p>", "api/a.html"
    )
    read = dict(re.findall(r'<meta (?:property|name)="([^"]*)" content="([^"]*)">', made))
    assert read["og:image"] == image and read.get("og:url") == url
    assert ('rel="canonical"' in made) == bool(home)
    assert read["og:title"] == "A &quot;name&quot;" and len(read["og:image:alt"]) > 40
    assert (
        read["description"]
        == read["og:description"]
        == ("What is said here is long enough to be told.")
    )


@pytest.mark.parametrize("home", [None, "https://example.com/course/"])
def test_an_address_without_a_page_leads_home_from_any_folder(monkeypatch, home):
    monkeypatch.setattr(owner, "site_address", lambda: home)
    made = build.lost([])
    assert ('<base href="https://example.com/course/">' in made) == bool(home)
    assert '<a href="index.html">front page</a>' in made


def test_a_tab_says_which_course_a_page_is_of():
    head = page.head("01 · *Attention*", "assets")
    assert "<title>01 · Attention · Where do the values come from?</title>" in head
    assert "<title>Where do the values come from?</title>" in page.head(page.COURSE, "assets")
    assert 'rel="icon" href="data:image/svg+xml,' in head


def test_the_buttons_above_a_notebook_are_not_found():
    tools = launch.toolbar(run.chosen([])[1], "notebooks/01_attention.html")
    assert "Download" in tools
    page = f'{tools}<p class="soft state">Executed.</p><p>Read this.</p>'
    assert search.words(page) == "Read this."


def test_a_page_is_found_by_its_sections_and_not_by_what_is_folded_away():
    page = (
        '<p>before</p><h2 id="one">One<a class="anchor-link" href="#one">#</a></h2>'
        "<p>x<em>y</em></p>"
        '<details class="code"><summary>s</summary>hidden</details><script>no</script>'
    )
    assert search.entries("a.html", "Name", page) == [
        ("a.html", "Name", "", "before"),
        ("a.html#one", "Name", "One", "xy"),
    ]
    assert search.index_script([("a", "</b>", "", "é")]).startswith("window.searchIndex = [[")


def test_a_slide_is_found_by_its_heading_its_text_and_its_notes():
    deck = (
        '<section id="water"><div class="slide "><h2 id="h">How do <em>hands</em> know?</h2>'
        "<div class=body><p>A mean.</p></div></div>"
        '<aside class="notes"><p>Look at it.</p></aside></section>'
        '<section id="end"><h1>Done</h1><img alt="unread"></section>'
    )
    assert search.deck_entries("slides/01_a.html", "01 · A", deck) == [
        ("slides/01_a.html#/water", "Slides: 01 · A", "How do hands know?", "A mean. Look at it."),
        ("slides/01_a.html#/end", "Slides: 01 · A", "Done", ""),
    ]


def test_a_slide_without_a_heading_is_found_too():
    cells = [
        text(
            "### Smaller\n\nWords.", id="small", metadata=dict(slideshow=dict(slide_type="slide"))
        ),
        text("A sentence.", id="none", metadata=dict(slideshow=dict(slide_type="slide"))),
    ]
    talk = deck.html(nbformat.v4.new_notebook(cells=cells))
    assert [row[2:] for row in search.deck_entries("a.html", "A", talk)] == [
        ("Smaller", "Words."),
        ("", "A sentence."),
    ]


def test_a_figure_takes_fewer_bytes_on_a_page_and_looks_the_same():
    series = {name: [i, 3, 4 - i] for i, name in enumerate("abcd")}
    drawn = figures.figure_bytes(figures.lines(series, "Four lines", "x", "y"))
    alt = "Four lines that are drawn to be counted in bytes, and to be looked at"
    whole = figures.on_page(drawn, "png", alt)
    made = page.lighter(whole)
    data = base64.b64decode(re.search(r'base64,([^"]*)"', made)[1])
    assert len(data) < len(drawn) / 2 and alt in made
    before, after = (image.imread(io.BytesIO(one))[..., :3] for one in (drawn, data))
    assert before.shape == after.shape and abs(before - after).mean() < 0.002
    assert (after[0, -1] == 1).all(), "paper stays white"
    assert dark.turned(made).startswith('<figure style="margin:0"><img class="lines-only"')


def test_a_heat_map_as_a_drawing_is_cells_and_holds_no_picture():
    """Forges show no picture within a drawing."""
    ramp = [[x / 9 for x in range(10)] for _ in range(10)]
    drawn = figures.figure_bytes(figures.heatmap(ramp, "A ramp", "x", "y"), "svg").decode()
    assert "data:image" not in drawn and "<image" not in drawn
    assert len(set(re.findall(r"#([0-9a-f]{2})\1\1", drawn))) > 50, "the shades of map and scale"


def test_only_figures_without_shades_turn_dark():
    ramp = [[x / 9 for x in range(10)] for _ in range(10)]
    lines = figures.lines({"a": [1, 2, 3], "b": [3, 1, 2]}, "Two lines", "x", "y")
    heatmap = lambda: figures.heatmap(ramp, "A ramp", "x", "y")
    alt = "A figure drawn to see whether it turns dark with the page or not"
    pages = [figures.on_page(figures.figure_bytes(fig), "png", alt) for fig in (lines, heatmap())]
    assert ["lines-only" in dark.turned(page) for page in pages] == [True, False]
    assert dark.turned(pages[1]) == pages[1] and alt in dark.turned(pages[0])
    boxed = figures.on_page(
        figures.figure_bytes(heat := heatmap()), "png", alt, 5, shades.boxes(heat)
    )
    made = dark.turned(boxed)
    assert "lines-only" not in made and made.count("%;width:") == 2, "the map, and its scale"
    assert made.count("max-width") == 1, "the boxes are as wide as the picture"
    ours = '<img alt="x" src="../figures/recorded.svg">'
    assert dark.turned(ours) == ours, "it turns by itself: notebooks/course/figures.py"


@pytest.mark.parametrize(
    "tex, told",
    [
        (r"\mathrm{softmax}(QK^\top/\sqrt D)\,V", "softmax(QK⊤/√D) V"),
        (r"V \leftarrow \tfrac12\,(V_n + V_1)", "V ← 1/2 (V_n + V_1)"),
        (r"\sum_{s \in \text{tile}} e^{x_s - m'}", "Σ_(s ∈ tile) e^(x_s - m')"),
        (r"\frac{\partial L}{\partial W_{UV}}", "(∂ L)/(∂ W_UV)"),
        (r"\bar u^2 \ne 10^{-3}", "u\u0304² ≠ 10⁻³"),
        (r"i = p\cdot\text{BLOCK}, \qquad |\mathcal V|", "i = p·BLOCK, |V|"),
        (r"\begin{aligned} a &= b,\\ c &= d \end{aligned}", "a = b, c = d"),
    ],
)
def test_an_equation_can_be_read_where_none_is_drawn(tex, told):
    assert formula.as_text(tex) == told


def equations():
    """Every equation of notebooks, questions and decks: (TeX, does it stand by itself?)."""
    found = []
    for path in (*run.chosen([]), *run.questions(), *deck.decks()):
        cells = nbformat.read(path, 4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)
        found += [(one[1] or one[2], bool(one[1])) for one in formula.EQUATION.finditer(text)]
    assert len(found) > 1000
    return sorted(set(found))


def test_no_equation_of_the_course_keeps_a_sign_of_its_markup():
    for tex, display in equations():
        drawn = html.unescape(re.sub("<[^>]*>", "", formula.mathml(tex.strip(), display)))
        for told in (formula.as_text(tex), drawn):
            assert told and not set(told.replace("#{", "").replace("}", "")) & set("\\{$&"), tex
            assert not re.search("frac|sqrt|math", told), tex
        assert "_" not in drawn, tex


def test_what_is_drawn_is_what_mathml_core_knows():
    """Other elements and variants are shown by no browser, or by one alone."""
    known = "math mi mn mo mtext mspace mrow mfrac msqrt mstyle msub msup msubsup munder mover"
    known = {*known.split(), "munderover", "mtable", "mtr", "mtd"}
    for tex, display in equations():
        root = ElementTree.fromstring(formula.mathml(tex.strip(), display))
        assert {node.tag for node in root.iter()} <= known, tex
        variants = {node.get("mathvariant") for node in root.iter()}
        assert variants <= {None, "normal", "monospace"}, tex  # the last by our style sheet


@pytest.mark.parametrize(
    "tex, part",
    [
        (r"\mathrm{norm}(x)", "<mi>norm</mi>"),
        (r"\log Z", '<mi>log</mi><mspace width="0.167em" /><mi>Z</mi>'),
        (r"\log(Z)", '<mi>log</mi><mo stretchy="false">(</mo>'),
        (r"a = -b", '<mo form="prefix">−</mo>'),
        (r"a - b", "<mo>−</mo>"),
        (r"\mathcal V", "<mi>𝒱</mi>"),
        (r"m'", '<mrow><mi>m</mi><mo lspace="0" rspace="0">′</mo></mrow>'),
        (r"4{,}096", "<mtext>4,096</mtext>"),
        (r"a = b \\ c", "<mi>b</mi></mrow></mtd></mtr><mtr><mtd>"),
    ],
)
def test_an_equation_is_drawn_as_a_book_has_it(tex, part):
    assert part in formula.mathml(tex)


def test_equations_are_drawn_where_text_is_and_nowhere_else():
    kept = '<pre>$a$</pre><code>$b$</code><img alt="$c$"><script>$d$ $e$</script>'
    page = f"{kept}<p>So $i &lt; n$.</p>$$\nx\n$$"
    made = formula.drawn(page)
    assert made.startswith(kept) and made.count("<math ") == 2
    assert '<math display="inline" alttext="i &lt; n"><mrow><mi>i</mi><mo>&lt;' in made
    assert '<span class="equation"><math display="block"' in made
    assert formula.drawn(made) == made
    assert search.words(made) == "$a$ $b$ So i < n. x"


def test_the_search_shows_equations_as_signs_and_code_as_it_is():
    page = r"<p>So <em>$e^{-x} &lt; \alpha$</em>, <code>$HOME and $PATH</code>, 3$</p>"
    assert search.words(page) == "So e^(-x) < α, $HOME and $PATH, 3$"


def test_every_figure_has_a_number_and_an_address_of_its_own():
    figure = "<figure style='margin:0'><img alt='two'></figure>"
    cells = [ran("x = 1", ""), ran("y = 2", "")]
    for cell in cells:
        cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": figure})]
    made = body(text("# T"), text("## H"), *cells)
    captions = re.findall(r'<figcaption><a href="#(figure-\d)">(Figure \d)</a>', made)
    assert captions == [("figure-1", "Figure 1"), ("figure-2", "Figure 2")]
    assert re.findall(r'<figure id="(figure-\d)"', made) == ["figure-1", "figure-2"]
