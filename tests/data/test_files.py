"""Is what is made once made once: by many processes together, after a kill, on a full disk?"""

import errno
import hashlib
import io
import os
import subprocess
import sys
import tarfile
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
found = sorted(p.name for p in folder.iterdir())
assert found == [*"01234", files.SUMS], found
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


def prepared(tmp_path, calls):
    """A cached folder of two files; `calls` counts how often it is made."""

    def make(part):
        calls.append(1)
        part.mkdir()
        (part / "train.bin").write_bytes(bytes(range(200)))
        (part / "about.json").write_text('{"tokens": 100}')

    return files.once(tmp_path / "cache", make)


@pytest.mark.parametrize(
    "name, content",
    [
        ("train.bin", bytes(200)),  # zeros of the right size: what a power cut leaves
        ("train.bin", b""),
        ("about.json", b'{"tok'),
        (files.SUMS, b"\xff\xfe\xfa"),
        ("about.json", None),
    ],
)
def test_a_damaged_cache_is_made_again_and_says_so(tmp_path, capsys, name, content):
    calls = []
    folder = prepared(tmp_path, calls)
    assert prepared(tmp_path, calls) == folder and len(calls) == 1
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    prepared(tmp_path, calls)
    assert len(calls) == 2 and (folder / "train.bin").read_bytes() == bytes(range(200))
    said = capsys.readouterr().err
    assert f"{folder} is damaged ({name} is " in said and said.count("\n") == 1


def test_sums_are_those_of_sha256sum(tmp_path):
    folder = prepared(tmp_path, [])
    lines = (folder / files.SUMS).read_text().splitlines()
    assert [line[64:] for line in lines] == ["  about.json", "  train.bin"]
    assert lines[1][:64] == hashlib.sha256(bytes(range(200))).hexdigest()


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """The order of calls is what a power cut sees: every file, then the rename, then the folder."""
    order, replace = [], os.replace
    monkeypatch.setattr(files, "to_disk", lambda path: order.append(path.name))
    monkeypatch.setattr(os, "replace", lambda a, b: order.append("rename") or replace(a, b))
    files.write_whole(tmp_path / "x.json", "{}")
    assert order[0].startswith(".x.json.") and order[1:] == ["rename", tmp_path.name]
    order.clear()
    prepared(tmp_path, [])
    assert sorted(order[:4]) == sorted([files.SUMS, "about.json", "cache.part", "train.bin"])
    assert order[4:] == ["rename", tmp_path.name]


@pytest.mark.parametrize("place", ["/proc/nowhere/x.json", "/proc/x.json", "file/x.json"])
def test_what_cannot_be_written_or_locked_is_said_at_once(tmp_path, place):
    (tmp_path / "file").write_text("a file where a folder is wanted")
    path = place if place.startswith("/") else tmp_path / place
    with pytest.raises(DataError, match="cannot write .*x.json.* that you may write to"):
        files.write_whole(path, "{}")
    with pytest.raises(DataError, match="cannot write .*x.json.lock .* that you may write to"):
        with files.locked(path):
            pass


def test_a_lock_that_another_process_holds_is_told_or_waited_for(tmp_path, monkeypatch, capsys):
    code = f"""
import time
from minimal.data import files
with files.locked({str(tmp_path / "x")!r}):
    print("held", flush=True)
    time.sleep(1.5)
"""
    holder = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(files.Busy, match="another process holds .*x.lock"):
        with files.locked(tmp_path / "x", wait=False):
            pass
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    with files.locked(tmp_path / "x"):
        assert holder.wait(10) == 0
    assert "waiting for" in capsys.readouterr().err


def test_a_log_of_another_encoding_or_of_other_rows_does_no_harm(tmp_path):
    (tmp_path / "log").write_bytes(b'{"step": 1}\n"m\xfcller"\n[2]\n\xff\xfe\n{"step": 2')
    files.append_lines(tmp_path / "log", [{"step": 3}])
    assert files.read_lines(tmp_path / "log") == [{"step": 1}, {"step": 3}]


# ---- archives ------------------------------------------------------------------------------------


@pytest.mark.parametrize("safely", [True, False], ids=["as Python is today", "before 3.11.4"])
def test_what_git_packs_is_unpacked_by_a_python_without_the_filter_too(
    tmp_path, monkeypatch, safely
):
    if not safely:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
        plain = tarfile.TarFile.extractall
        monkeypatch.setattr(tarfile.TarFile, "extractall", lambda self, at: plain(self, at))
    packed, text = io.BytesIO(), b"a line\n"
    with tarfile.open(fileobj=packed, mode="w") as archive:
        about = tarfile.TarInfo("folder/file.txt")
        about.size = len(text)
        archive.addfile(about, io.BytesIO(text))
    files.unpack(packed.getvalue(), tmp_path / "out")
    assert (tmp_path / "out" / "folder" / "file.txt").read_bytes() == text
