"""The tree as git would publish it, and a way to call make.

That is what is staged: a learner's own work is not judged.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


OF_MAKE = re.compile("MAKE|MFLAGS|(ARGS|LAB_ARGS|PYTHON|TORCH|EXTRAS|PROFILE|PART|HW|FILE)$").match


@pytest.fixture(scope="session")
def outside():
    """The environment without what the `make test` above us has put in it."""
    return {key: value for key, value in os.environ.items() if not OF_MAKE(key)}


@pytest.fixture(scope="session")
def make(outside):
    def call(folder, *arguments, **environment):
        return subprocess.run(
            ["make", *arguments],
            cwd=folder,
            env=outside | environment,
            text=True,
            timeout=60,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    return call


def git(folder, *words):
    """What git says in a folder, as somebody whom it knows."""
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def text_of(path):
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """A folder with the staged files; in a copy without git's history, with the working files."""
    folder = tmp_path_factory.mktemp("published")
    git = subprocess.run(
        ["git", "checkout-index", "--all", f"--prefix={folder}/"], cwd=ROOT, capture_output=True
    )
    if git.returncode == 0 and any(folder.iterdir()):
        return folder
    ignored = [
        line.rstrip("/")
        for line in (ROOT / ".gitignore").read_text().split("\n")
        if line and line[0] != "#"
    ]
    for path in ROOT.rglob("*"):
        parts = path.relative_to(ROOT).parts
        if (
            path.is_file()
            and ".git" not in parts
            and not any(pathlib.PurePath(part).match(rule) for part in parts for rule in ignored)
        ):
            (folder / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            (folder / path.relative_to(ROOT)).write_bytes(path.read_bytes())
    return folder


@pytest.fixture(scope="session")
def tree(published):
    """{name: text, or None for a file that is not text}."""
    files = sorted(path for path in published.rglob("*") if path.is_file())
    return {path.relative_to(published).as_posix(): text_of(path) for path in files}
