"""What is made once is made once: by many processes together, after a kill, and on a disk that is full."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from minimal.data import files
from minimal.data.files import DataError

ROOT = Path(__file__).resolve().parents[2]
SLOW = """
import os, sys, time
from pathlib import Path
from minimal.data import files
def make(part):
    with open({log!r}, "a") as log:
        log.write("made\\n")
    part.mkdir()
    for i in range(5):
        (part / str(i)).write_text(str(i))
        time.sleep({pause})
        if i == {die_at}:
            os._exit(9)
folder = files.once(Path({path!r}), make)
assert sorted(p.name for p in folder.iterdir()) == list("01234"), list(folder.iterdir())
"""


def slow(tmp_path, die_at=-1, pause=0.05):
    code = SLOW.format(
        log=str(tmp_path / "log"), path=str(tmp_path / "made"), die_at=die_at, pause=pause
    )
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE)


def test_of_processes_that_start_together_one_makes_and_all_read(tmp_path):
    racers = [slow(tmp_path) for _ in range(4)]
    assert [(racer.wait(60), racer.stderr.read()) for racer in racers] == [(0, b"")] * 4
    assert (tmp_path / "log").read_text() == "made\n"


def test_a_maker_that_is_killed_leaves_nothing_that_the_next_one_would_read(tmp_path):
    assert slow(tmp_path, die_at=2).wait(60) == 9
    assert not (tmp_path / "made").exists() and len(list((tmp_path / "made.part").iterdir())) == 3
    assert slow(tmp_path).wait(60) == 0
    assert not (tmp_path / "made.part").exists() and (tmp_path / "log").read_text() == "made\n" * 2


@pytest.mark.slow
def test_two_runs_that_prepare_the_same_corpus_at_once_agree_with_one_alone(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(" ".join(f"the number {n} is {n * n % 97} and a word" for n in range(6_000)))

    def start(runs):
        command = [
            sys.executable,
            "-m",
            "minimal.data",
            "--corpus",
            path,
            "--vocab",
            "300",
            "--context",
            "64",
        ]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "MINIMAL_RUNS": str(tmp_path / runs)},
        )

    def table(run):
        out, err = run.communicate(timeout=120)
        assert run.returncode == 0, err
        return dict(
            line.split(maxsplit=1) for line in out.splitlines() if not line.startswith("seconds")
        )

    both = [start("shared"), start("shared")]
    first, second, alone = *map(table, both), table(start("alone"))
    assert first == second == alone and len(first) == 7

    def files(runs):
        made = [path for path in (tmp_path / runs).rglob("*") if path.suffix in (".bin", ".json")]
        return {path.relative_to(tmp_path / runs): path.read_bytes() for path in made}

    assert files("shared") == files("alone") and len(files("alone")) == 4


def test_a_disk_that_is_full_says_so_and_keeps_nothing_half_made(tmp_path):
    def no_room(part):
        part.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(DataError, match="cannot write .*No space left on device.*set MINIMAL_RUNS"):
        files.once(tmp_path / "thing", no_room)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_what_a_maker_itself_cannot_read_is_not_called_a_full_disk(tmp_path):
    with pytest.raises(FileNotFoundError):
        files.once(tmp_path / "thing", lambda part: (tmp_path / "absent").read_text())
    with pytest.raises(KeyError):
        files.once(tmp_path / "thing", lambda part: (part.mkdir(), {}["absent"]))
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".lock"] == []


def test_runs_live_where_minimal_runs_says_and_else_in_the_checkout(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))
    assert files.data_folder().is_relative_to(tmp_path)
    monkeypatch.delenv("MINIMAL_RUNS")
    monkeypatch.chdir(tmp_path)
    home = ROOT if (ROOT / "pyproject.toml").exists() else tmp_path
    assert files.runs_folder() == home / "runs"
