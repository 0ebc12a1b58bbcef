"""Does a learner who works on copies meet no conflict, and lose nothing? With two small clones."""

import json
import os
import platform
import shutil

import pytest

from course import work
from tests.setup.conftest import ROOT, git

NAMES = ("00_start.ipynb", "01_next.ipynb")
DECK, STUB = "slides/00_start.ipynb", "hw01_first/first.py"
REPORT = "hw09_open_project/report.md"
EXERCISES = "homework/hw01_first/exercises.py"
MADE = """\"\"\"hw01 · First

Fill in the functions, in any order, and as often as you like run

    pytest homework/hw01_first

about
Functions answer in the dtype of their inputs, and leave these as they were.
\"\"\"

"""  # the stub, less its last line


def book(*sources):
    """A notebook of these cells, as the course publishes it."""
    cells = [
        dict(cell_type="code", id=f"c{at}", metadata={}, source=[text], outputs=[])
        for at, text in enumerate(sources)
    ]
    return json.dumps(dict(cells=cells, metadata={}, nbformat=4, nbformat_minor=5)) + "\n"


@pytest.fixture
def course(tmp_path):
    """The course's repository: two notebooks, a deck, homework, and its .gitignore."""
    folder = tmp_path / "course"
    (folder / "notebooks").mkdir(parents=True)
    shutil.copy(ROOT / ".gitignore", folder)
    for name in NAMES:
        (folder / "notebooks" / name).write_text(book("x = 1"))
    texts = {DECK: book("y = 1"), f"homework/{REPORT}": "# R\n", EXERCISES: exercises("first = 1")}
    for place, text in texts.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_text(text)
    git(folder, "init", "-q")
    publish(folder)
    return folder


def exercises(prelude):
    """A unit whose stub ends in this line."""
    about = f"'hw01_first', 'First', 'about', {prelude!r}"
    return f"from homework.marking import Unit\nunit = Unit({about})  # the oracle\n"


def publish(course):
    git(course, "add", ".")
    git(course, "commit", "-q", "-m", "an update")


@pytest.fixture
def mine(course, tmp_path):
    """A learner's clone, with copies."""
    git(tmp_path, "clone", "-q", str(course), "mine")
    assert updated(tmp_path / "mine") == [(place, "new") for place in (*NAMES, DECK, STUB, REPORT)]
    return tmp_path / "mine"


def updated(clone):
    return work.update(clone, clone / "work")


def change(path, source=None, outputs=()):
    """What a learner types and what a run leaves behind, as JupyterLab saves it."""
    notebook = json.loads(path.read_text())
    cell = notebook["cells"][0]
    cell["source"] = source or cell["source"]
    cell.update(outputs=list(outputs), execution_count=3)
    notebook["metadata"]["language_info"] = dict(name="python", version="3.13")
    path.write_text(json.dumps(notebook))


def source(path):
    return "".join(json.loads(path.read_text())["cells"][0]["source"])


PRINTED = [dict(output_type="stream", name="stdout", text=["1\n"])]


def test_what_ran_and_was_saved_leaves_git_clean_and_an_update_has_no_conflict(course, mine):
    first, second = (mine / "work" / name for name in NAMES)
    change(first, "x = 'mine'", PRINTED)
    assert git(mine, "status", "--porcelain") == ""
    for name in NAMES:
        (course / "notebooks" / name).write_text(book("x = 2"))
    publish(course)
    git(mine, "pull", "-q", "--ff-only")
    assert updated(mine) == [(NAMES[0], "kept"), (NAMES[1], "renewed")]
    assert source(first) == "x = 'mine'" and source(second) == "x = 2"
    assert git(mine, "status", "--porcelain") == ""
    again = work.news(updated(mine))
    assert len(again) == 1 and "make reset NOTEBOOK=00" in again[0] and "yours" in again[0]


def test_homework_and_decks_are_copies_too_and_nothing_that_was_written_is_lost(course, mine):
    assert (mine / "work" / STUB).read_text() == f"{MADE}first = 1\n"
    assert not (mine / "work" / "hw01_first" / "exercises.py").exists()
    (mine / "work" / STUB).write_text("mine")
    change(mine / "work" / DECK, "y = 'mine'", PRINTED)
    assert git(mine, "status", "--porcelain") == ""
    (course / DECK).write_text(book("y = 2"))
    (course / "homework" / REPORT).write_text("second")
    (course / EXERCISES).write_text(exercises("second = 2"))
    publish(course)
    git(mine, "pull", "-q", "--ff-only")
    happened = dict(updated(mine))
    assert happened.pop(REPORT).startswith("renewed; the one before is now report.20")
    assert happened == {DECK: "kept", STUB: "kept"}
    assert (mine / "work" / STUB).read_text() == "mine"
    assert (mine / "work" / REPORT).read_text() == "second"
    deck, stub = work.news(updated(mine))
    assert "make reset HW=hw01" in stub and f"make reset NOTEBOOK={DECK}" in deck


def test_a_stub_in_which_nothing_is_written_follows_its_exercises(course, mine):
    (mine / EXERCISES).write_text(exercises("second = 2"))
    assert STUB in dict(updated(mine))
    assert (mine / "work" / STUB).read_text() == f"{MADE}second = 2\n"


def test_what_a_learner_wrote_where_the_stub_was_is_in_no_danger(course, mine):
    """Beside the exercises, where earlier versions had it: it is taken along, and kept when it is
    gone there."""
    shutil.rmtree(mine / "work")
    (mine / "homework" / STUB).write_text("mine")
    updated(mine)
    assert (mine / "work" / STUB).read_text() == "mine"
    (mine / "homework" / STUB).unlink()
    aside = dict(updated(mine))[STUB].split()[-1]
    assert (mine / "work" / STUB).with_name(aside).read_text() == "mine"


def test_a_copy_that_was_made_before_anything_was_noted_is_kept(mine):
    (mine / "work" / work.GIVEN).write_text("no JSON")
    assert updated(mine) == []
    (mine / "work" / work.GIVEN).unlink()
    (mine / "notebooks" / NAMES[0]).write_text(book("x = 2"))
    assert updated(mine) == [(NAMES[0], "kept")]


def test_a_copy_names_the_kernel_that_runs_it(mine):
    """What JupyterLab would write into it: a tab that was only opened would count as unsaved."""
    about = json.loads((mine / "work" / NAMES[0]).read_text())["metadata"]
    assert about["kernelspec"]["name"] == "python3" and about["kernelspec"]["language"] == "python"
    assert about["language_info"]["version"] == platform.python_version()
    assert updated(mine) == []


def test_a_copy_links_the_copy_of_its_deck(course, tmp_path):
    linked = book("see [Slides](../slides/00_start.ipynb) and [a map](../slides/figures/a.svg)")
    (course / "notebooks" / NAMES[0]).write_text(linked)
    work.update(course, tmp_path / "copies")
    copy = source(tmp_path / "copies" / NAMES[0])
    assert copy == "see [Slides](slides/00_start.ipynb) and [a map](../slides/figures/a.svg)"
    assert work.update(course, tmp_path / "copies") == []


def test_a_copy_that_only_ran_is_renewed_and_what_it_printed_is_kept_aside(course, mine):
    copy = mine / "work" / NAMES[0]
    change(copy, outputs=PRINTED)
    assert updated(mine) == []
    (mine / "notebooks" / NAMES[0]).write_text(book("x = 2"))
    ((name, what),) = updated(mine)
    aside = copy.with_name(what.split()[-1])
    assert name == NAMES[0] and what.startswith("renewed; the one before is now 00_start.20")
    assert source(copy) == "x = 2" and "1\\n" in aside.read_text()


def test_a_reset_loses_nothing_however_often(mine):
    copy = mine / "work" / NAMES[0]
    kept = []
    for text in ("one", "two", "three"):
        change(copy, text)
        kept.append(work.reset(mine, mine / "work", NAMES[0]))
        assert source(copy) == "x = 1"
    assert [source(path) for path in kept] == ["one", "two", "three"]
    assert len({path.name for path in kept}) == 3 and all(p.parent == copy.parent for p in kept)


def test_a_copy_that_is_no_notebook_any_more_is_kept(mine):
    copy = mine / "work" / NAMES[0]
    for text in ("", "{", "[]", '{"cells": 3}'):
        copy.write_text(text)
        assert updated(mine) == [(NAMES[0], "kept")] and copy.read_text() == text


def make_link(path):
    path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("make, got", [(os.mkdir, "a folder"), (make_link, "a link")])
def test_a_link_or_folder_in_a_copys_place_is_refused_in_a_sentence(mine, make, got):
    for path in (mine / "work" / NAMES[1], mine / "work"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        if path.name == "work" and make is os.mkdir:
            path.write_text("a file")
            got = "a file"
        else:
            make(path)
        with pytest.raises(ValueError, match=f"wanted a .* at .*{path.name}.*, got {got}: move it"):
            updated(mine)
    assert not (mine / "elsewhere").exists(), "nothing is written to where a link leads"


def test_a_notebook_is_meant_by_its_number_or_its_name():
    wanted = "11a_write_a_kernel.ipynb"
    assert {work.named(w) for w in ("11a", wanted, wanted[:-6])} == {wanted}
    with pytest.raises(ValueError, match="wanted a notebook, one of 00, .*got '11'"):
        work.named("11")


def test_every_link_of_a_copy_leads_to_where_that_of_the_notebook_does():
    """work/ stands beside notebooks/: what is linked is another copy, or named from the top."""
    for path in work.numbered(work.CHECKOUT / "notebooks"):
        for cell in json.loads(path.read_text())["cells"]:
            text = "".join(cell["source"])
            for link in work.re.findall(r"\]\(([^)#\s:]+)(?:#[^)]*)?\)", text):
                if cell["cell_type"] == "markdown":
                    assert link.startswith("../") or work.NAME.fullmatch(link), (path.name, link)


@pytest.mark.parametrize("place", [DECK, REPORT])
def test_a_deck_and_a_report_are_started_over_by_their_place(mine, monkeypatch, capsys, place):
    monkeypatch.setattr(work, "CHECKOUT", mine)
    (mine / "work" / place).write_text(book("y = 'mine'"))
    work.main(["--reset", place])
    assert f"work/{place} is as the course has it; yours is now " in capsys.readouterr().out
    copy, given = (mine / "work" / place), work.sources(mine)[place]
    assert work.state(copy.read_bytes(), copy.name) == work.state(given.read_bytes(), given.name)


@pytest.mark.parametrize("word", ["04", "hw99", "slides/99.ipynb", "../README.md"])
def test_what_is_no_copy_is_not_started_over(mine, monkeypatch, word):
    monkeypatch.setattr(work, "CHECKOUT", mine)
    with pytest.raises(ValueError, match="wanted a notebook, one of 00, 01, or a file of work/"):
        work.named(word)
