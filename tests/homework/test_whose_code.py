"""Whose modules run when an instructor grades? The course's, whatever the current folder holds."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from homework import grade
from tests.homework.classroom import CHECKOUT

COMMANDS = ["grade", "gradescope", "release", "reset"]
SHADOWS = ["contextlib", "secrets", "types", "numpy", "homework"]


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """A Python that is set up for this course as `make setup` does it."""
    home = tmp_path_factory.mktemp("environment")
    venv.create(home, symlinks=True)
    path = home / "bin" / "python"
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=True)
    packages = Path(done.stdout.strip(), "packages.pth")
    packages.write_text(sysconfig.get_path("purelib"))
    subprocess.run([path, CHECKOUT / "notebooks" / "course" / "beside.py"], check=True)
    return path


@pytest.fixture(params=["a clone", "a flat class"])
def handed_in(request, tmp_path):
    """A folder in which every module says that it ran, by a file of its name in `ran`."""
    ran, class_folder = tmp_path / "ran", tmp_path / "class"
    ran.mkdir(), class_folder.mkdir()
    says = lambda name: f"open({os.fspath(ran / name)!r}, 'w').close()\n"
    if request.param == "a clone":
        (class_folder / "homework").mkdir()
        for name in ("__init__", *COMMANDS):
            (class_folder / "homework" / f"{name}.py").write_text(says(name))
    for name in SHADOWS[: None if request.param == "a flat class" else -1]:
        (class_folder / f"{name}.py").write_text(says(name))
    yield class_folder
    assert os.listdir(ran) == [], "a learner's module ran as the instructor"


def run(python, folder, *words):
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([python, *words], cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_refuses_a_folder_whose_modules_would_come_first(python, handed_in, command):
    done = run(python, handed_in, "-m", f"homework.{command}", "hw03", ".")
    assert done.returncode == 2 and done.stdout == ""
    told = "homework: modules of the current folder would run: say python -P -m, or start in"
    assert done.stderr.splitlines() == [f"{told} {CHECKOUT}"]


def test_with_P_only_the_courses_modules_run_wherever_one_stands(python, handed_in):
    done = run(python, handed_in, "-P", "-m", "homework.grade", "--help")
    assert done.returncode == 0 and "usage: python -m homework.grade" in done.stdout, done.stderr


def test_in_the_courses_folder_nothing_has_to_be_said(python):
    done = run(python, CHECKOUT, "-um", "homework.grade", "--help")
    assert done.returncode == 0 and "usage: python -m homework.grade" in done.stdout, done.stderr


def test_other_programs_of_the_environment_notice_nothing(python, tmp_path):
    for words in (["-m", "json.tool", "--help"], ["-c", "import sys; print('usage:', sys.argv)"]):
        done = run(python, tmp_path, *words)
        assert done.returncode == 0 and "usage:" in done.stdout and not done.stderr


@pytest.mark.parametrize("holds", ["the course", "a folder of modules"])
def test_a_grader_that_lies_in_what_is_graded_is_refused(holds, tmp_path, monkeypatch, capsys):
    graded = CHECKOUT if holds == "the course" else tmp_path
    if holds == "a folder of modules":
        (tmp_path / "modules").mkdir()
        monkeypatch.syspath_prepend(tmp_path / "modules")
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(graded)])
    assert "from which this grader loads its own modules" in capsys.readouterr().err


def test_exercises_without_their_docstrings_are_refused_in_a_sentence():
    """python -OO leaves them out, and a stub is made of them."""
    for words in (["-m", "homework.reset", "hw03"], ["-c", "import homework"]):
        done = subprocess.run(
            [sys.executable, "-OO", *words], cwd=CHECKOUT, capture_output=True, text=True
        )
        *_, last = done.stderr.splitlines()
        assert done.returncode != 0 and "which python -OO leaves out: use -O, or none" in last
        assert ("Traceback" in done.stderr) == ("-c" in words)
