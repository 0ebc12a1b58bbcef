"""Is a folder that others write to read once, never through a link and without waiting?"""

import os
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from homework import grade, handed_in, reading
from tests.homework.classroom import CHECKOUT, UNIT, table, zipped

NAME = UNIT.file


def link(path, neighbour):
    path.symlink_to(neighbour)


def pipe(path, neighbour):
    os.mkfifo(path)


def unix_socket(path, neighbour):
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def three_gigabytes(path, neighbour):
    with open(path, "wb") as file:
        file.truncate(3 << 30)


SWAPS = {link: "is a link", pipe: "is no file", unix_socket: "is no file"}
SWAPS |= {three_gigabytes: "is larger than 1 MB"}


@pytest.fixture
def group(tmp_path):
    """A class of two, both right."""
    for who in ("ann", "mallory"):
        (tmp_path / "class" / who / "work").mkdir(parents=True)
        (tmp_path / "class" / who / "work" / NAME).write_text("first")
    return tmp_path / "class"


def graded(path, out, *more):
    status = grade.main(["hw03", str(path), "--out", str(out), "--jobs", "1", *more])
    return status, {row["submission"]: row for row in table(out / "grades.csv")}


@pytest.fixture(params=SWAPS)
def swapped(request, group):
    """Puts something else in the place of one file; returns what is then said of it."""

    def swap():
        mine = group / "mallory" / "work" / NAME
        mine.unlink()
        request.param(mine, group / "ann" / "work" / NAME)
        return SWAPS[request.param]

    return swap


def test_what_is_swapped_before_it_is_read_is_seen_for_what_it_is(group, swapped):
    """Nothing is followed, and nothing waited for."""
    learners, *_ = handed_in.whole_class(group)
    told = swapped()
    file, _ = learners[1].choose(UNIT)
    assert told in file.none and file.read() == b""


def test_what_is_swapped_after_it_was_read_stays_what_it_was(
    group, swapped, tmp_path, stub, monkeypatch
):
    monkeypatch.setattr(grade, "isolate", lambda *a: swapped())  # what comes before the first part
    status, rows = graded(group, tmp_path / "out")
    assert status == 0 and {row["score"] for row in rows.values()} == {str(UNIT.points)}
    assert stub == ["first", "first"]


def test_a_folder_that_becomes_a_link_is_not_followed(group):
    learners, *_ = handed_in.whole_class(group)
    (group / "mallory" / "work").rename(group / "mallory" / "before")
    (group / "mallory" / "work").symlink_to(group / "ann" / "work")
    assert "is a link" in learners[1].choose(UNIT)[0].none
    assert learners[0].choose(UNIT)[0].read() == b"first"


def test_a_file_is_read_once(group):
    learners, *_ = handed_in.whole_class(group)
    file, _ = learners[0].choose(UNIT)
    (group / "ann" / "work" / NAME).write_text("second")
    assert learners[0].choose(UNIT)[0] is file and file.read() == b"first"


def test_a_path_that_is_too_long_stops_nobody(group, tmp_path, stub):
    """Of more than 4,096 letters, and of more folders than anybody makes."""
    at = os.open(group / "mallory", os.O_RDONLY)
    for name in ["d" * 250] * 20 + ["e"] * 90:
        os.mkdir(name, dir_fd=at)
        at, before = os.open(name, os.O_RDONLY, dir_fd=at), at
        os.close(before)
    os.close(os.open(NAME, os.O_WRONLY | os.O_CREAT, dir_fd=at)), os.close(at)
    (group / "mallory" / "work" / NAME).unlink()
    status, rows = graded(group, tmp_path / "out")
    subprocess.run(["rm", "-rf", group / "mallory"], check=True)
    assert status == 2 and rows["ann"]["score"] == str(UNIT.points)
    assert rows["mallory"]["score"] == "grader error"
    assert "holds too much to be looked through" in rows["mallory"]["note"]


def test_a_learner_with_too_many_files_is_found_near_the_top(group, tmp_path, stub, monkeypatch):
    monkeypatch.setattr(reading, "MANY", 50)
    (group / "mallory" / "crowd").mkdir()
    for number in range(60):
        (group / "mallory" / "crowd" / f"{number}.py").write_text("")
    (group / "mallory" / NAME).write_text("first")
    status, rows = graded(group, tmp_path / "out")
    assert status == 0 and {row["score"] for row in rows.values()} == {str(UNIT.points)}


CLOSED = """
import os, sys
from homework import grade, handed_in, marking
unit = marking.find("hw03")
os.setgroups([]), os.setgid(65534), os.setuid(65534)
learners, left, twice = handed_in.whole_class(__import__("pathlib").Path(sys.argv[1]))
for mine in learners:
    file, note = mine.choose(unit)
    print(mine.who, mine.has(unit), repr(file.content.shut if file else mine.shut), sep="|")
"""


@pytest.mark.root
def test_a_folder_that_is_closed_stops_nobody(tmp_path):
    """Its learner has a line that is no mark; the others are found."""
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        for who, mode in dict(ann=0o755, ben=0o444, cy=0o000, di=0o711).items():
            Path(place, who).mkdir()
            Path(place, who, NAME).write_text("first")
            Path(place, who).chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", CLOSED, place], cwd=CHECKOUT, capture_output=True, text=True
        )
    said = [line.split("|") for line in (done.stdout or pytest.fail(done.stderr)).splitlines()]
    assert [words[:2] for words in said] == [[who, "True"] for who in ("ann", "ben", "cy", "di")]
    assert said[0][2] == "''"
    assert all("cannot be read here: Permission denied" in words[2] for words in said[1:])


def test_what_could_not_be_read_is_no_mark(group, tmp_path, stub, monkeypatch):
    broken = lambda name: reading.Content(shut=f"{name} cannot be read here: Input/output error")
    read = reading.fetch
    monkeypatch.setattr(
        reading, "fetch", lambda root, parts: broken(NAME) if "ann" in parts else read(root, parts)
    )
    status, rows = graded(group, tmp_path / "out")
    assert status == 2 and rows["mallory"]["score"] == str(UNIT.points)
    assert (rows["ann"]["score"], rows["ann"]["final"]) == ("grader error", "")
    assert rows["ann"]["note"] == f"{NAME} cannot be read here: Input/output error"


# ---- archives ------------------------------------------------------------------------------------


def with_flag(path, at, value):
    """The archive with another number at a place of its first entry, here and in its directory."""
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x03\x04") + at] = value
    data[data.index(b"PK\x01\x02") + at + 2] = value
    path.write_bytes(data)


DAMAGES = {
    "encrypted": (lambda path: with_flag(path, 6, 1), "is encrypted in the archive"),
    "packed in another way": (lambda path: with_flag(path, 8, 14), "is damaged in the archive"),
    "damaged": (
        lambda path: path.write_bytes(path.read_bytes().replace(b"first", b"worst")),
        "is damaged in the archive",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_entry_that_cannot_be_unpacked_is_said_so_and_not_asked_again_for_ever(
    damage, tmp_path, stub
):
    path = tmp_path / "class.zip"
    zipped(path, **{f"ann/{NAME}": "first", f"ben/{NAME}": "second"})
    spoil, told = DAMAGES[damage]
    spoil(path)
    status, rows = graded(path, tmp_path / "out")
    assert status == 0 and stub == ["second"]
    assert told in rows["ann"]["note"] and rows["ann"]["score"] == "0"


def test_two_entries_of_one_name_are_nobodys_choice(tmp_path, stub):
    with pytest.warns(UserWarning, match="Duplicate name"):
        with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
            for name in (f"ann/{NAME}", f"ann/{NAME}", f"ben/{NAME}"):
                archive.writestr(name, "first")
    _, rows = graded(tmp_path / "class.zip", tmp_path / "out")
    assert f"{NAME} is in the archive 2 times" in rows["ann"]["note"] and stub == ["first"]


def test_paths_of_windows_are_paths(tmp_path, stub):
    archive = zipped(tmp_path / "class.zip", **{f"ann\\{NAME}": "first", f"ben\\{NAME}": "second"})
    _, rows = graded(archive, tmp_path / "out")
    assert [*rows] == ["ann", "ben"] and stub == ["first", "second"]


# ---- what cannot be a class ----------------------------------------------------------------------


def clones(root):
    for who in ("ann", "ben"):
        (root / "hw03-submissions" / f"hw03-{who}" / ".git").mkdir(parents=True)
        (root / "hw03-submissions" / f"hw03-{who}" / NAME).write_text("first")
    (root / "hw03-submissions" / "hw03-cy").mkdir()
    return root, ["hw03-ann", "hw03-ben", "hw03-cy"]


def archive_with_an_outer_folder(root):
    names = ["annexample_123_4567_kv_cache.py", "jonesben_LATE_124_4570_kv_cache-1.py"]
    zipped(root / "class.zip", **{f"submissions/{name}": "first" for name in names})
    return root / "class.zip", ["annexample", "jonesben"]


@pytest.mark.parametrize("comes", [clones, archive_with_an_outer_folder])
def test_a_class_one_folder_down_is_found_there(comes, tmp_path, stub, capsys):
    (tmp_path / "place").mkdir()
    place, whose = comes(tmp_path / "place")
    status, rows = graded(place, tmp_path / "out")
    assert status == 0 and [*rows] == whose and stub == ["first", "first"]
    assert f"{place} holds the class in its folder " in capsys.readouterr().err
    assert len([who for who in whose if rows[who]["score"] == str(UNIT.points)]) == 2


@pytest.mark.parametrize("names", [["ann/helper.py", "ann/tests.py"], ["ann/x/kv.py", "ben/kv.py"]])
def test_a_class_in_which_nobody_handed_in_the_file_is_none(names, tmp_path, stub, capsys):
    """Another unit, another folder, or all with a wrong name: not a row of zeros."""
    for name in names:
        (tmp_path / "class" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "class" / name).write_text("first")
    with pytest.raises(SystemExit):
        graded(tmp_path / "class", tmp_path / "out")
    assert f"nobody in {tmp_path / 'class'} handed in {NAME} (found " in capsys.readouterr().err
    assert not (tmp_path / "out").exists() and stub == []
