"""What does the build take for whole, and which wishes does it refuse? Without a browser."""

import os
import subprocess
import time

import nbformat
import pytest

from course import doctor, owner
from slides import build, deck, letters, links


def copy_of(path, counts, error=False):
    """An executed copy whose code cells ran in this order, written after everything else."""
    cells = []
    for count in counts:
        cell = nbformat.v4.new_code_cell("x = 1", execution_count=count)
        cells.append(cell)
    if error:
        cells[-1].outputs = [nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    later = time.time() + 3600
    os.utime(path, (later, later))
    return path


def test_a_copy_that_did_not_run_to_its_end_is_run_again_however_new_it_is(tmp_path):
    source, copy = deck.decks()[0], tmp_path / "deck.ipynb"
    assert not deck.fresh(source, copy), "there is none"
    assert deck.fresh(source, copy_of(copy, [1, 2, 3]))
    assert not deck.fresh(source, copy_of(copy, [1, 2, None])), "killed in the middle"
    assert not deck.fresh(source, copy_of(copy, [1, 2, 3], error=True))
    os.utime(copy_of(copy, [1, 2, 3]), (0, 0))
    assert not deck.fresh(source, copy), "older than its source"


@pytest.mark.parametrize(
    "place",
    [
        "minimal/model/values.py",
        "notebooks/course/drawings/ideas.py",
        "notebooks/course/movable/runtime.js",
        "notebooks/evidence/claims.toml",
        "notebooks/evidence/measured/again.json",
        "notebooks/evidence/lab/comparison.py",
        "homework/in_notebooks/nb01.py",
    ],
)
def test_a_copy_is_made_anew_when_what_it_is_made_from_has_changed(tmp_path, monkeypatch, place):
    """A figure, a record or an exercise, wherever it lies; what else changes costs nothing."""
    monkeypatch.setattr(deck, "ROOT", tmp_path)
    source, made_from, other = (tmp_path / name for name in ("01.ipynb", place, "README.md"))
    made_from.parent.mkdir(parents=True)
    for path in (source, made_from, other):
        path.touch()
    copy = copy_of(tmp_path / "copy.ipynb", [1])
    later = copy.stat().st_mtime + 60
    os.utime(other, (later, later))
    assert deck.fresh(source, copy)
    os.utime(made_from, (later, later))
    assert not deck.fresh(source, copy)


def test_whatever_kind_of_file_lies_beside_what_notebooks_import_counts():
    listed = ["git", "ls-files", "notebooks/course"]
    told = subprocess.run(listed, cwd=deck.ROOT, capture_output=True, text=True)
    if told.returncode:
        pytest.skip("a copy without git's history")
    files = {deck.ROOT / name for name in told.stdout.split()}
    counted = {path for room, kind in deck.MADE_FROM for path in (deck.ROOT / room).rglob(kind)}
    assert files and files - counted == set(), "add their kind to MADE_FROM in slides/deck.py"


def test_a_build_that_was_stopped_goes_on_where_it_was_and_says_so(tmp_path, capsys, monkeypatch):
    sources, ran = deck.decks()[:3], []

    def one(path, profile, folder, parameters, jobs):
        ran.append(path)
        copy_of(folder / path.name, [1])
        return dict(name=path.stem, faults=["it was stopped"] if path == sources[2] else [])

    monkeypatch.setattr(deck.run, "in_a_process", one)
    copy_of(tmp_path / sources[0].name, [1, 2])
    copies, faults = deck.executed(sources, "smoke", tmp_path)
    assert ran == sources[1:] and faults == [f"{sources[2].stem}: it was stopped"]
    assert list(copies) == sources[:2]
    assert "decks at smoke scale: 1 of 3 are executed, now 02, 03\n" in capsys.readouterr().out
    deck.executed(sources, "smoke", tmp_path)
    assert ran == sources[1:] + sources[2:], "only the one that failed"
    assert "2 of 3 are executed, now 03" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, sentence",
    [
        (["99"], "99 names a deck, and the site has all of them: add --decks"),
        (["--decks", "99"], "no deck 99: there is 01_attention, "),
    ],
)
def test_a_name_that_cannot_be_is_refused_before_anything_is_built(capsys, words, sentence):
    with pytest.raises(SystemExit) as left:
        build.main(words)
    assert left.value.code == 2 and sentence in capsys.readouterr().err


def test_every_deck_is_printed_the_second_half_of_a_lecture_too(tmp_path, monkeypatch):
    class Printer:
        """A browser that only notes which page it prints."""

        __enter__ = page = lambda self: self
        __exit__ = open = lambda self, *_: None

        def pdf(self, path):
            path.touch()

    monkeypatch.setattr(deck, "Browser", Printer)
    stems = [path.stem for path in deck.decks()]
    for stem in [*stems, "index"]:
        (tmp_path / f"{stem}.html").touch()
    deck.print_all(tmp_path)
    assert sorted(path.stem for path in tmp_path.glob("*.pdf")) == stems


def test_decks_alone_want_their_packages_in_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(letters, "PACKAGES", tmp_path / "nothing")
    monkeypatch.setattr(deck, "executed", lambda *_: ({}, []))
    with pytest.raises(
        SystemExit, match="wanted reveal.js and fonts .* found none: make setup EXTRAS=site"
    ):
        deck.build_decks(tmp_path, tmp_path)


def test_readme_links_the_site_where_it_has_an_address_and_once(monkeypatch):
    plain = (links.ROOT / "README.md").read_text(encoding="utf-8")
    monkeypatch.setattr(owner, "site_address", lambda: None)
    assert owner.with_site(plain) == plain and owner.EXECUTED in plain
    monkeypatch.setattr(owner, "site_address", lambda: "https://example.com/course/")
    linked = owner.with_site(owner.with_site(plain))
    assert linked.count("https://example.com/course/index.html") == 1
    monkeypatch.setattr(owner, "site_address", lambda: None)
    assert owner.with_site(linked) == plain


def test_pages_need_neither_npm_nor_a_browser(monkeypatch, tmp_path):
    """Not executed and without decks; every link still leads somewhere."""
    home = "https://example.com/course/"
    monkeypatch.setattr(letters, "PACKAGES", tmp_path / "nothing")
    monkeypatch.setattr(doctor, "browser", lambda: None)
    monkeypatch.setattr(owner, "site_address", lambda: home)
    links.places.cache_clear()
    try:
        out = tmp_path / "site"
        build.build(out, {}, "smoke", {})
        assert links.broken(out) == []
    finally:
        links.places.cache_clear()
    told = build.left_out()
    assert len(told) == 2 and "npm" in told[0] and "Chromium" in told[1]
    lesson = (out / "notebooks" / "01_attention.html").read_text(encoding="utf-8")
    assert "<math " in lesson and "og:image" not in lesson

    # with an address, search engines get every page under it once
    address = '<link rel="canonical" href="https://example.com/course/notebooks/01_attention.html">'
    assert address in lesson
    listed = (out / "sitemap.xml").read_text(encoding="utf-8")
    assert "<loc>https://example.com/course/notebooks/01_attention.html</loc>" in listed
    assert "404.html" not in listed
