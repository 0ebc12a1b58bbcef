"""Do README and CONTRIBUTING tell the truth? Rooms, paths, commands, minutes, Colab's lines."""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAMES = ("README.md", "CONTRIBUTING.md", "notebooks/README.md")
README, CONTRIBUTING, BESIDE = (ROOT / name for name in NAMES)
ROOM = re.compile(r"^    (\w+(?:\.py|/)) ", re.M)


def front():
    """The map in the docstring of the package."""
    return ast.get_docstring(ast.parse((ROOT / "minimal/__init__.py").read_text()), clean=True)


def test_contributing_shows_the_rooms_of_the_package():
    rooms = ["gpt.py", *ROOM.findall(front())]
    assert len(rooms) > 10
    table = CONTRIBUTING.read_text().partition("## The rooms")[2].partition("\n## ")[0]
    first = "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert re.findall(r"`([^`]+)`", first) == rooms


def test_contributing_says_for_what_the_whole_proof_is_run():
    """Whoever pushes a branch and waits for a workflow that never starts has lost a day."""
    flow = (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8")
    triggers = flow.partition("jobs:")[0]
    events = dict(re.findall(r"^  (\w+):\n(?:    branches: \[(.+)\])?", triggers, re.M))
    text = " ".join(CONTRIBUTING.read_text(encoding="utf-8").split())
    (said,) = re.findall(r"the workflow `tests` runs it ([^.]+)\.", text)
    assert "- run: make test" in flow and events == dict(push="main", pull_request="")
    assert said == f"for every pull request, and for a push only to `{events['push']}`"


def lost(text):
    """Paths and modules of `minimal` that this text names and that do not exist."""
    found = []
    for path in re.findall(r"\bminimal/[\w/]+\.py\b", text):
        if not (ROOT / path).is_file():
            found.append(path)
    for module in re.findall(r"-m (minimal[\w.]*\w)", text):
        file = ROOT.joinpath(*module.split("."))
        if not file.with_suffix(".py").is_file() and not (file / "__main__.py").is_file():
            found.append(f"-m {module}")
    return found


def test_what_is_said_of_the_package_exists(tree):
    """In prose, notebooks, decks and workflows; recorded files keep the command of their day."""
    read = re.compile(r".*\.(md|ipynb|yml|py|sh)|Makefile|\.ci/run").fullmatch
    texts = {name: text for name, text in tree.items() if text and read(name)}
    texts.pop("CHANGELOG.md")  # which names what is gone
    faults = {name: lost(text) for name, text in texts.items() if not name.startswith("tests/")}
    assert {name: found for name, found in faults.items() if found} == {}
    assert len(re.findall(r"\bminimal/[\w/]+\.py\b", README.read_text())) >= 2


def test_a_module_that_moved_is_found():
    assert lost("see minimal/no_such.py") == ["minimal/no_such.py"]
    assert lost("python -m minimal.no_such --help") == ["-m minimal.no_such"]
    assert lost("python -m evidence.bench; minimal/model/values.py") == []
    assert lost("python -m minimal.model") == ["-m minimal.model"], "a room is not a command"


def colab():
    """The two lines that the owner of a fork is given."""
    return re.findall(r"^    ([!%].*)$", BESIDE.read_text(), re.M)


def test_the_lines_for_colab_fetch_a_fork_and_import_from_it(tmp_path):
    """As on Colab, in a kernel in an empty folder; pip, a stranger here, only notes its call."""
    fork, alone, tools = (tmp_path / name for name in ("fork", "alone", "tools"))
    for folder in (fork, alone, tools):
        folder.mkdir(parents=True)
    (fork / "notebooks" / "course").mkdir(parents=True)
    (fork / "notebooks" / "course" / "__init__.py").touch()
    git = lambda *words: subprocess.run(["git", *words], cwd=fork, check=True, capture_output=True)
    git("init", "-q")
    git("add", ".")
    git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "one")
    (tools / "pip").write_text('#!/bin/sh\necho "pip $*"\n')
    (tools / "pip").chmod(0o755)

    assert len(colab()) == 2 and "ADDRESS" in colab()[0]
    lines = "\n".join(colab()).replace("ADDRESS", f"file://{fork}")
    cell = nbformat.v4.new_code_cell(f"{lines}\nimport course; print(course.__path__[0])")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PATH"] = f"{tools}{os.pathsep}{environment['PATH']}"
    client = NotebookClient(notebook, timeout=60, kernel_name="python3")
    client.resources = {"metadata": {"path": str(alone)}}
    client.execute(env=environment)
    printed = "".join(output.text for output in notebook.cells[0].outputs)
    assert "pip install --quiet ./course" in printed
    assert printed.split()[-1] == str(alone / "course" / "notebooks" / "course")


@pytest.mark.parametrize("program", ["notebooks/run.py", "slides/site.py"])
def test_a_program_answers_from_any_folder(program, tmp_path):
    command = [sys.executable, ROOT / program, "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith(f"usage: python {program}")


def test_readme_is_told_new_minutes_by_a_command():
    from homework import clock

    books = {"01_attention.ipynb": clock.Time(60, 60, 60)} | dict.fromkeys(
        "abcd", clock.Time(0, 0, 0)
    )
    text = "[x](notebooks/01_attention.ipynb) | Who? | 4 | 5 | 6 |\nAll notebooks (9 hours)"
    assert clock.told(text, books, dict(hw01_attention=60)) == (
        "[x](notebooks/01_attention.ipynb) | Who? | 60 | 60 | 60 |\nAll notebooks (3 hours)"
    )


def test_a_few_sentences_more_change_no_minute_and_many_do():
    from homework import clock

    head = "**Time.** 40 minutes to read and run, 9 to write, 20 more for what goes deeper; wait."
    assert clock.said(head) == clock.Time(40, 9, 20)
    for time in (clock.Time(43, 9, 20), clock.Time(38, 10, 23)):
        assert clock.with_time(head, time) == head
    for time in (clock.Time(51, 9, 20), clock.Time(40, 9, 0)):
        assert clock.with_time(head, time) == head.replace(str(clock.said(head)), str(time))
    row = "[x](notebooks/01_attention.ipynb) | Who? | 40 | 9 | 20 |"
    books = {"01_attention.ipynb": clock.Time(43, 9, 21)}
    books |= dict.fromkeys("abcd", clock.Time(0, 0, 0))
    assert clock.told(row, books, dict(hw01_attention=60)) == row


def test_a_minute_is_130_words_or_8_lines():
    from homework import clock

    new = nbformat.v4
    prose = new.new_markdown_cell("word " * 260 + "<b>tag</b>")
    code = new.new_code_cell("x = 1\n" * 16 + "# a comment\n\n")
    deeper = new.new_code_cell("x = 1\n" * 24, metadata=dict(tags=["deeper"]))
    stub = new.new_code_cell("x = 1\n" * 80, metadata=dict(tags=["your-turn"]))
    check = new.new_code_cell('causal_mask = your_turn("nb01", causal_mask)\n' + "y = 1\n" * 7)
    solved = new.new_markdown_cell("<details><summary>Solution: causal_mask</summary>" + "a " * 260)
    cells = [prose, code, deeper, stub, check, solved]
    assert clock.time(new.new_notebook(cells=[prose, code])) == clock.Time(4, 0, 0)
    assert clock.time(new.new_notebook(cells=cells)) == clock.Time(5, 7, 3)
    stub["source"] = "def causal_mask(T):\n    raise NotImplementedError"
    stub["metadata"]["tags"].append("deeper")
    assert clock.time(new.new_notebook(cells=cells)) == clock.Time(5, 0, 10), "folded exercises"
    assert str(clock.Time(5, 5, 3)) == (
        "5 minutes to read and run, 5 to write, 3 more for what goes deeper"
    )


def test_what_stands_between_the_words_takes_time_too():
    from homework import clock

    new = nbformat.v4
    equation = new.new_markdown_cell("$$ x = 1 $$\n\n$$ y = 2 $$")
    guess = new.new_markdown_cell("> **Predict.** Two?")
    shown = new.new_code_cell("figures.show(fig)\nprint(1)")
    drawing = new.new_code_cell("systems()", metadata=dict(tags=["drawing"]))
    assert [clock.pauses(cell) for cell in (equation, guess, shown, drawing)] == [1, 1, 1.25, 1]
    plot = new.new_code_cell("x = 1\n" * 80, metadata=dict(tags=["hide-input"]))
    assert clock.minutes([plot]) == 0, "code that opens closed is not read"


@pytest.mark.parametrize(
    "said, minutes",
    [
        ("all cells run in about 6 minutes on a CPU, in less than 2 GB", 6),
        ("all cells run in 5 to 8 minutes on a CPU and in about one later", 8),
        ("nine training runs (five of them its own) take about a minute each", 9),
        ("all cells run in about 30 seconds", 0),
    ],
)
def test_what_trains_is_waited_for(said, minutes):
    from homework import clock

    assert clock.waiting(f"**Time.** 5 minutes to read and run; {said}. No GPU.") == minutes


SCREEN, COLUMN = 900, 830  # pixels: a window 1440 wide, and the text in it
FORGE = f"""body {{ margin: 0; width: {COLUMN}px }}
body {{ font: 16px/1.5 "Noto Sans", Helvetica, sans-serif }}
h1, h2 {{ margin: 24px 0 16px; line-height: 1.25; padding-bottom: .3em; border-bottom: 1px solid }}
p, pre, table, details {{ margin: 0 0 16px }} img {{ max-width: 100% }}
pre {{ padding: 16px; font-size: 85%; line-height: 1.45; overflow: auto }} code {{ font-size: 85% }}
table {{ border-collapse: collapse }} td, th {{ padding: 6px 13px; border: 1px solid }}"""


def test_the_letters_of_the_first_drawing_are_12_pixels_in_a_column_of_a_forge():
    found = re.search(r'<img src="(\S+)" alt="[^"]{40,}"', README.read_text(encoding="utf-8"))
    drawing = (ROOT / found[1]).read_text(encoding="utf-8")
    wide = float(re.search(r'<svg[^>]* width="(\d+)"', drawing)[1])
    letters = [float(size) for size in re.findall(r'font-size="([\d.]+)"', drawing)]
    assert len(letters) > 20 and min(letters) * min(1, COLUMN / wide) >= 12


def test_a_notebook_has_one_title_in_readme_and_on_its_first_line():
    rows = re.findall(r"^\| \[(.*?)\]\((notebooks/\S+\.ipynb)\)", README.read_text(), flags=re.M)
    assert len(rows) == 15
    for title, path in rows:
        first = nbformat.read(ROOT / path, 4).cells[0].source.partition("\n")[0]
        assert first == "# " + title.replace(" ", " · ", 1), path


@pytest.mark.site
def test_readme_is_three_screens_in_a_column_as_forges_have_it(browser, tmp_path):
    from slides import page as pages

    shutil.copytree(ROOT / "slides" / "figures", tmp_path / "slides" / "figures")
    body = pages.markdown_html(README.read_text(encoding="utf-8"))
    (tmp_path / "readme.html").write_text(
        f"<!doctype html><html data-ready=yes><meta charset=utf-8><style>{FORGE}</style>{body}",
        encoding="utf-8",
    )
    page = browser.page(1440, SCREEN)
    page.open(tmp_path / "readme.html")
    assert page.run("document.querySelector('img').naturalWidth") > 0
    assert page.run("document.body.scrollHeight") <= 3 * SCREEN
