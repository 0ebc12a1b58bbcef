"""Is a new variant a source and a line of PLANS, and nothing else? A toy one passes every test."""

import os
import re
import textwrap
from pathlib import Path

import pytest

from course.source_map import sources_map
from minimal import variants
from tests import warm
from tests.model.toy import TOY

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(variants.PLANS, "toy", TOY)


@pytest.mark.slow
def test_it_is_counted_listed_and_drawn(capsys):
    variants.main(["--size", "nano"])
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line}
    assert lines["toy"].endswith("own ×2, γ·own+rolled V1 ×2") and "own ×4" in lines["standard"]
    variants.main(["--size", "nano", "--plans", "toy", "--json"])
    assert '"plan": "toy"' in capsys.readouterr().out
    drawn = sources_map("nano", ["toy"])
    words = [text.get_text() for text in drawn.axes[0].texts]
    assert len(words) == 4 and sum("γ" in word for word in words) == 2


def test_it_may_be_placed_where_it_can_stand():
    words = variants.describe(variants.skeleton("toy@1,3", "nano"))
    assert [i for i, word in enumerate(words) if "rolled" in word] == [1, 3]
    with pytest.raises(ValueError, match="layer 0 would read layer 0"):
        variants.skeleton("toy@0", "nano")


# ---- the page "a value path of your own" ---------------------------------------------------------


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The code of CONTRIBUTING's page, written where it says, in a folder beside the checkout."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = text.partition("## A value path of your own")[2].partition("\n## ")[0]
    block = re.search(r"\n\n((?:       .*\n|\n)+)3\. ", text)[1]
    source = textwrap.dedent(block)
    folder = tmp_path_factory.mktemp("mine")
    (folder / "mine.py").write_text(source, encoding="utf-8")
    return text, folder


def told(words, folder, **more):
    environment = os.environ | dict(PYTHONPATH=f"{ROOT}{os.pathsep}{folder}", REQUIRE="") | more
    return warm.run(words, cwd=ROOT, env=environment)


@pytest.fixture(scope="module")
def passed(page):
    """The names of the tests that the page's plan and the toy passed, in the page's command and a
    file more: collecting them takes longer than some of them do."""
    text, folder = page
    asked = re.search(r"pytest (-p mine .*?)`", text)[1].split()
    assert asked[2:4] == ["-k", "mine"]
    asked[2:4] = ["-k", "mine or toy", "-p", "tests.model.toy", "-v"]
    done = told(["-m", "pytest", *asked, "tests/training/test_optim.py"], folder)
    assert done.returncode == 0, done.stdout[-2000:]
    return re.findall(r"::(\S+) PASSED", done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("plan, least", [("mine", 10), ("toy", 13)])
def test_it_passes_every_test_of_every_plan(passed, plan, least):
    """Decoding, rings, capacity, gradients, causality, bytes, precision."""
    assert len([name for name in passed if plan in name]) >= least


@pytest.mark.slow
def test_the_page_counts_and_compares(page, own_runs):
    """Its commands as they stand; the comparison in the smallest size and three steps."""
    text, folder = page
    count, compare = re.findall(r'python -c "(import mine; .*?)"`', text)
    counted = told(["-c", count], folder)
    assert counted.returncode == 0 and "own·(1+E) ×4" in counted.stdout, counted.stderr[-2000:]
    small = compare.replace("--budget 500", "--budget 3 --size smoke --corpus stdlib")
    assert small != compare
    done = told(["-c", small], folder, MINIMAL_RUNS=str(own_runs))
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "mine" in done.stdout and "bov-keep" in done.stdout
