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


@pytest.mark.slow
def test_it_passes_every_test_of_every_plan():
    files = ("model/test_plans.py", "model/test_counts.py", "training/test_optim.py")
    words = ["-m", "pytest", "-q", "-p", "tests.model.toy", "-k", "toy"]
    told = warm.run(
        words + [ROOT / "tests" / file for file in files],
        cwd=ROOT,
        env=os.environ | dict(PYTHONPATH=str(ROOT), REQUIRE=""),
    )
    passed = re.search(r"(\d+) passed", told.stdout)
    assert told.returncode == 0, told.stdout[-2000:]
    assert int(passed[1]) >= 13, "decoding, rings, capacity, gradients, causality, bytes, precision"


# ---- the page "a value path of your own" ---------------------------------------------------------


@pytest.fixture
def page(tmp_path):
    """The code of CONTRIBUTING's page, written where it says, in a folder beside the checkout."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    text = text.partition("## A value path of your own")[2].partition("\n## ")[0]
    block = re.search(r"\n\n((?:       .*\n|\n)+)3\. ", text)[1]
    source = textwrap.dedent(block)
    (tmp_path / "mine.py").write_text(source, encoding="utf-8")
    return text, tmp_path


def told(words, folder, **more):
    environment = os.environ | dict(PYTHONPATH=f"{ROOT}{os.pathsep}{folder}", REQUIRE="") | more
    return warm.run(words, cwd=ROOT, env=environment)


@pytest.mark.slow
def test_the_page_leads_from_a_class_through_the_tests_of_every_plan(page):
    text, folder = page
    asked = re.search(r"pytest (-p mine .*?)`", text)[1].split()
    done = told(["-m", "pytest", "-q", *asked], folder)
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-2000:]
    assert int(passed[1]) >= 10


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
