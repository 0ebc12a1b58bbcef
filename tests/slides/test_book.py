"""Is the whole course on paper? Every chapter, its contents, its links, and the PDF itself."""

import re

import nbformat
import pytest

from notebooks import run
from slides import book, links, page

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def paper(site):
    return book.whole(site[0])


def test_every_notebook_unit_and_the_findings_are_a_chapter_and_stand_in_the_contents(paper):
    listed, _, rest = paper.partition("</nav>")
    wanted = [f"notebooks-{path.stem}" for path in run.chosen([])]
    wanted += [f"homework-{path.parent.name}" for path in links.units()] + ["evidence-index"]
    assert re.findall(r'<section class="chapter" id="([^"]*)"', rest) == wanted
    assert re.findall(r'<li><a href="#([^"]*)"><strong>', listed) == wanted
    assert rest.count("<h1") == len(wanted)


def test_every_link_within_the_book_leads_somewhere_and_no_name_is_given_twice(paper):
    names = re.findall(r'<(?:h[1-3]|section)\b[^>]*? id="([^"]*)"', paper)
    assert len(names) > 300 and len(set(names)) == len(names)
    links_of = re.findall(r'<a\b[^>]*href="([^"]*)"', paper)
    assert [link for link in links_of if not re.match("https?:|#", link)] == []
    inner = {link[1:] for link in links_of if link.startswith("#")}
    assert inner - set(re.findall(r'\bid="([^"]*)"', paper)) == set()


def test_every_fold_is_open_and_nothing_asks_to_be_pressed(paper):
    assert "<details" in paper and not re.search(r"<details(?! open)", paper)
    assert "<button" not in paper and 'class="toolbar"' not in paper


def test_a_chapter_that_is_missing_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="wanted notebooks/00_.* found none: make site"):
        book.whole(tmp_path)


@pytest.mark.slow
def test_the_pdf_lists_every_chapter(site, tmp_path):
    book.write(site[0], tmp_path / "course.pdf")
    printed = (tmp_path / "course.pdf").read_bytes()
    assert printed.startswith(b"%PDF") and not (site[0] / "book.html").exists()
    assert len(re.findall(rb"/Type /Page\b", printed)) > 200
    titles = [name.decode("latin-1") for name in re.findall(rb"/Title \((.*?)\)\s", printed)]
    wide = re.findall(rb"/Title <FEFF([0-9A-F]*)>", printed)
    titles += [bytes.fromhex(name.decode()).decode("utf-16-be") for name in wide]
    names = [page.title(nbformat.read(path, 4), path.stem) for path in run.chosen([])]
    assert [name for name in map(page.plain, names) if name not in titles] == []
