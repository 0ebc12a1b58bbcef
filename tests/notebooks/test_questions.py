"""Does each notebook of the laboratory run, in its seconds, and hold what it says?"""

import ast
import html
import re
import sys
import time
from types import SimpleNamespace

import nbformat
import pandas as pd
import pytest

from course import figures, work
from evidence import lab
from evidence.lab import marks
from evidence.lab.foretold import predictions, sentence, surprising
from notebooks import run
from tests import warm
from tests.pictures import shown

PATHS = run.questions()
CPU_SECONDS = 10  # less what is imported
LINES = 40


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


def open_code(notebook):
    """The lines of code that a reader sees: neither parameters nor what draws."""
    shown = [cell for cell in run.code(notebook) if not {"parameters", "hide-input"} & tags(cell)]
    return [line for cell in shown for line in cell.source.splitlines() if line.strip()]


def names_set(notebook):
    """Every name that a cell besides that of the parameters gives a value, in a loop, too."""
    cells = [cell for cell in run.code(notebook) if "parameters" not in tags(cell)]
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    stored = [node for node in nodes if isinstance(node, ast.Name)]
    return {node.id for node in stored if isinstance(node.ctx, ast.Store)}


def tags(cell):
    return set(run.tags(cell))


def test_a_question_is_short_and_trains_nothing(path):
    notebook = nbformat.read(path, 4)
    source = "\n".join(cell.source for cell in run.code(notebook))
    assert len(open_code(notebook)) <= LINES
    assert not re.search(r"minimal\.train|cached\(|Trainer", source)
    assert source.count("figures.show(") == 1, "one picture"
    assert sum(map(run.asserts, run.code(notebook))) >= 3, "an assert a sentence"
    asked = set(run.known_parameters(notebook))
    assert asked, "a place for a question of one's own"
    assert not asked & names_set(notebook), "a value that the reader has set is overwritten"


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Every question executed by the command that `make figures` calls, in forks."""
    out = tmp_path_factory.mktemp("questions")
    with pytest.MonkeyPatch.context() as patch, warm.runners():
        patch.setenv(figures.FOLDER, str(out / "figures"))
        words = ["questions", "--profile", "smoke", "--jobs", "1", "--out", str(out)]
        return SimpleNamespace(status=run.main(words), folder=out)


def test_every_question_is_whole_and_draws_the_pictures_that_pages_show(executed):
    assert executed.status == 0
    sources = [cell.source for path in PATHS for cell in run.code(nbformat.read(path, 4))]
    named = re.findall(r', name="([\w-]+)"\)$', "\n".join(sources), re.M)
    drawn = executed.folder / "figures"
    assert sorted(named) == sorted(path.stem for path in drawn.iterdir())
    for name in named:
        again, committed = (folder / f"{name}.svg" for folder in (drawn, marks.FIGURES))
        assert shown(committed.read_text()) == shown(again.read_text()), f"{name}: make figures"


def test_its_page_shows_no_mark_and_every_sentence_whole(path, executed):
    page = (executed.folder / "smoke" / f"{path.stem}.html").read_text(encoding="utf-8")
    assert "&lt;!--" not in page, "a mark is seen"
    for told in foretold_in(nbformat.read(path, 4)):
        assert html.escape(told, quote=False) in page, "a sentence is cut short"


def foretold_in(notebook):
    """What it shows of what was foretold: of `judged` all, of `surprises` what did not come."""
    source = "\n".join(cell.source for cell in run.code(notebook))
    ((shows, names),) = re.findall(r"^(judged|surprises)\((.*)\)$", source, re.M)
    asked = list(predictions(*re.findall(r'"([\w*]+)"', names)))
    shown = [row for _, row, came in asked if shows == "judged" or surprising(row, came)]
    assert shown or not asked, "nothing is judged"  # one page asked without numbers
    return [sentence(row) for row in shown]


def test_every_decimal_in_its_prose_carries_a_mark(path):
    for text in marks.texts_of(path):
        unmarked = re.sub(marks.MARKED, "", text)
        assert re.findall(r"(?<![\w.])\d+\.\d{2,}", unmarked.replace("1.41", "")) == []


def test_a_learner_finds_it_beside_the_notebooks_and_its_links_lead_somewhere(path, tmp_path):
    place = f"questions/{path.name}"
    assert work.sources(run.ROOT)[place] == path
    copy = work.as_copied(path).decode()
    for link in re.findall(r"\]\(([^)#:]+)\)", copy):
        there = (run.ROOT / "work" / "questions" / link).resolve()
        name = there.relative_to(run.ROOT).as_posix()
        assert there.exists() or name.removeprefix("work/") in work.sources(run.ROOT), link


OWN = dict(  # a question of one's own to each
    best_rates=dict(first=5, last=7, rates="tuned", system="engram", over="bov-fixed"),
    does_it_last=dict(on="code", steps=1000, seeds=2, system="bov-fixed", over="denseformer"),
    how_deep_may_a_value_read=dict(on="novel", seeds=3, system="upstream-8", over="standard"),
    made_up_texts=dict(study="many_answers", system="svformer", over="standard"),
    what_coefficients_say=dict(on="code", rate=0.005, system="bov-every", over="standard"),
    why_on_code=dict(on="code", than="novel", system="bov-fixed", over="resformer"),
    how_many_layers=dict(on="code", seeds=2, system="x0-v@0,1", over="standard"),
    which_rates=dict(on="code", system="bov-fixed", over="resformer"),
    who_needs_the_stream=dict(on="code", seeds=3, system="x0-qkv", over="x0-kv"),
    larger_model=dict(step=175, seeds=2, system="x0-v", over="svformer"),
    number_or_gradient=dict(on="code", steps=2000, seeds=3, system="standard/x0-both"),
)


def forget():
    """What the course keeps of files that it has read, and of what it computed from them."""
    rooms = [sys.modules[name] for name in sys.modules if re.match(r"(course|evidence)\b", name)]
    for kept in [value for room in rooms for value in vars(room).values()]:
        if hasattr(kept, "cache_clear"):
            kept.cache_clear()


def test_one_asks_with_values_of_ones_own_and_waits_for_seconds(path):
    """Cell by cell, without a kernel, and with nothing computed before."""
    notebook, asked = nbformat.read(path, 4), OWN[path.stem]
    assert set(asked) <= set(run.known_parameters(notebook))

    def ran():
        forget()
        start, names = time.process_time(), {}
        for cell in run.code(notebook):
            exec(compile(cell.source, cell.id, "exec"), names)
            if "parameters" in tags(cell):
                names |= asked
        return time.process_time() - start

    spent = warm.in_a_fork(ran)
    assert isinstance(spent, float), spent
    assert spent < CPU_SECONDS


def test_a_tuned_system_is_ranked_without_a_name_on_the_texts_that_it_has(monkeypatch):
    table = lab.runs()
    tuned = table[(table.rates == "tuned") & (table.plan == "resformer") & (table.text == "code")]
    more = pd.concat([table, tuned.assign(plan="mine", cell="mine")], ignore_index=True)
    before = set(table[table.rates == "tuned"].plan) - {"standard"}
    monkeypatch.setattr(lab, "runs", lambda: more)
    notebook, named = nbformat.read(run.QUESTIONS / "best_rates.ipynb", 4), {}
    for cell in run.code(notebook):
        exec(cell.source, named)
        if "orders" in named:
            break
    ahead, both = named["ahead"], named["both"]
    assert ahead["code"]["lead"]["mine"] == ahead["code"]["lead"]["resformer"]
    assert "mine" not in ahead["novel"].index and "mine" not in both
    assert f"of {len(before) + 1}: " in named["title"] and set(both) == before
