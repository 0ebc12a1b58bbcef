"""Is all code in one hand, and do the workflows run only what a commit names?"""

import json
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PINNED = re.compile(r"actions/[\w-]+@[0-9a-f]{40}").fullmatch


@pytest.mark.parametrize("words", [["check"], ["format", "--check"]], ids=" ".join)
def test_ruff_has_nothing_to_say(published, words):
    """Of what is staged: a learner's own homework is not judged."""
    ruff = [sys.executable, "-m", "ruff", *words, "--no-cache", "--quiet"]
    done = subprocess.run(ruff, cwd=published, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


# hint, case and solution are imported for the learner, who calls them where none of our cells does
FOR_THE_LEARNER = 'lint.pyflakes.allowed-unused-imports = ["homework.turn"]'
NAMES = ["check", "--isolated", "--no-cache", "--select", "F821,F401,F811", "--quiet"]
NAMES += ["--config", FOR_THE_LEARNER]


def test_no_notebook_or_deck_uses_a_name_that_nothing_made_or_imports_for_nothing(published):
    """Read without running, over all cells: what a run would only meet in the branch it takes."""
    paths = sorted(map(str, published.glob("[ns]*/[0-9]*.ipynb")))
    assert len(paths) >= 25
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *NAMES, *paths], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout


def test_a_name_that_nothing_made_is_found(tmp_path):
    import nbformat

    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("print(sys.path)")])
    nbformat.write(page, tmp_path / "lost.ipynb")
    ruff = [sys.executable, "-m", "ruff", *NAMES, str(tmp_path / "lost.ipynb")]
    done = subprocess.run(ruff, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "Undefined name `sys`" in done.stdout


def test_actions_are_pinned_by_commit_and_may_only_read(published):
    """A tag can be moved by whoever holds its repository; a commit cannot."""
    flows = sorted((published / ".github" / "workflows").glob("*.yml"))
    assert len(flows) >= 3
    for path in flows:
        flow = yaml.safe_load(path.read_text())
        assert flow["permissions"] == {"contents": "read"}, path.name
        steps = [step for job in flow["jobs"].values() for step in job["steps"]]
        used = [step["uses"] for step in steps if "uses" in step]
        assert used and [name for name in used if not PINNED(name)] == [], path.name
        for step in steps:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False, path.name


def test_npm_packages_have_one_version_and_a_hash_each():
    package = json.loads((ROOT / "package.json").read_text())
    wanted = package["dependencies"] | package["devDependencies"]
    locked = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    for name, version in wanted.items():
        entry = locked[f"node_modules/{name}"]
        assert entry["version"] == version and entry["integrity"].startswith("sha512-"), name
