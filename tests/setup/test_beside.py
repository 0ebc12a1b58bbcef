"""Does an environment know its course, and does it learn when that was renamed or copied?"""

import os
import sys

import pytest

from course import CHECKOUT, beside

ELSEWHERE = "/nobodys/course"
ACTIVATE = 'VIRTUAL_ENV="{}/.venv"\nPATH="$VIRTUAL_ENV/bin:$PATH"\n'
PROGRAM = "#!{}/.venv/bin/python\nimport sys\n"


@pytest.fixture
def venv(tmp_path, monkeypatch):
    """The folders of an environment that was set up elsewhere, with what lies in them."""
    for folder in ("purelib", "scripts"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(beside.sysconfig, "get_path", lambda name: str(tmp_path / name))
    (tmp_path / "purelib" / "course.pth").write_text(f"{ELSEWHERE}\n{ELSEWHERE}/notebooks\n")
    (tmp_path / "scripts" / "activate").write_text(ACTIVATE.format(ELSEWHERE))
    (tmp_path / "scripts" / "pytest").write_text(PROGRAM.format(ELSEWHERE))
    (tmp_path / "scripts" / "pytest").chmod(0o755)
    return tmp_path


def test_the_lines_of_an_environment_name_this_checkout(venv):
    assert beside.addressed() == ELSEWHERE
    beside.main()
    lines = (venv / "purelib" / "course.pth").read_text().splitlines()
    assert lines[:2] == [str(CHECKOUT), f"{CHECKOUT}/notebooks"] and beside.addressed() == lines[0]


def test_before_set_up_no_checkout_is_named(venv):
    (venv / "purelib" / "course.pth").unlink()
    assert beside.addressed() == ""
    beside.main()
    assert beside.addressed() == str(CHECKOUT)


def test_activate_and_programs_follow_their_folder(venv):
    """`source .venv/bin/activate`, then pytest: not the other folder's."""
    beside.main()
    assert (venv / "scripts" / "activate").read_text() == ACTIVATE.format(CHECKOUT)
    assert (venv / "scripts" / "pytest").read_text() == PROGRAM.format(CHECKOUT)
    assert os.access(venv / "scripts" / "pytest", os.X_OK)


@pytest.mark.parametrize("word, status", [("--help", 0), ("elsewhere", 2)])
def test_whoever_asks_something_keeps_the_environment(venv, word, status, capsys):
    before = (venv / "purelib" / "course.pth").read_text()
    with pytest.raises(SystemExit) as left:
        beside.main([word])
    assert left.value.code == status and "takes no options" in capsys.readouterr().out
    assert (venv / "purelib" / "course.pth").read_text() == before


def test_what_is_no_program_of_this_environment_stays(venv):
    """A neighbour's, one that is machine code, and what a link leads to."""
    kept = dict(neighbour=PROGRAM.format(ELSEWHERE + "-2"), code=f"\0{ELSEWHERE}/.venv/bin")
    for name, text in kept.items():
        (venv / "scripts" / name).write_text(text)
    (venv / "far").write_text(PROGRAM.format(ELSEWHERE))
    (venv / "scripts" / "link").symlink_to(venv / "far")
    (venv / "scripts" / "python").symlink_to(sys.executable)
    beside.main()
    assert {name: (venv / "scripts" / name).read_text() for name in kept} == kept
    assert (venv / "far").read_text() == PROGRAM.format(ELSEWHERE)
