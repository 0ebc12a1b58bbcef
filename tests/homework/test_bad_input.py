"""What do the commands say to input that cannot be right? One sentence, no traceback, no mark."""

import json
import os
import subprocess
import sys

import pytest

from homework import cells, grade, gradescope, marking, race, reset
from tests import warm
from tests.homework.classroom import HOMEWORK, HONEST, UNIT, table, zipped


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with a submission, a file and an empty folder."""
    (tmp_path / "kv_cache.py").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "class" / "anna").mkdir(parents=True)
    (tmp_path / "class" / "anna" / "kv_cache.py").write_text("")
    (tmp_path / "no.zip").write_text("no")
    (tmp_path / "empty.csv").write_text("name\n")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, command, arguments):
    """The one sentence that a command says before it gives up."""
    with pytest.raises(SystemExit) as end:
        command(arguments)
    said = capsys.readouterr()
    assert end.value.code not in (0, None) and "Traceback" not in said.err
    sentences = [line for line in said.err.splitlines() if " --help lists" in line]
    if isinstance(end.value.code, str):
        sentences += end.value.code.splitlines()
    (sentence,) = sentences
    return sentence


@pytest.mark.parametrize(
    "options, says",
    [
        (["--seconds", "0"], "--seconds: wanted a number from 1 to 86400, got '0'"),
        (["--seconds", "-1"], "--seconds: wanted a number from 1"),
        (["--seconds", "nan"], "--seconds: wanted a number from 1 to 86400, got 'nan'"),
        (["--seconds", "inf"], "--seconds: wanted a number from 1"),
        (["--seconds", "ten"], "--seconds: wanted a number from 1"),
        (["--most", "0"], "--most: wanted a number from 1"),
        (["--most", "nan"], "--most: wanted a number from 1"),
        (["--memory", "0"], "--memory: wanted a whole number from 1 to 1024, got '0'"),
        (["--memory", "-3"], "--memory: wanted a whole number from 1 to 1024, got '-3'"),
        (["--memory", "9000000000"], "--memory: wanted a whole number from 1 to 1024"),
        (["--memory", "1.5"], "--memory: wanted a whole number"),
        (["--jobs", "0"], "--jobs: wanted a whole number from 1"),
        (["--jobs", "two"], "--jobs: wanted a whole number from 1"),
        (["--seed", "-1"], "--seed: wanted a whole number from 0"),
        (["--isolation", "hope"], "invalid choice: 'hope'"),
        (["--out", "/proc/x/results.json"], "results cannot be written to /proc/x"),
        (["--out", "file/results.json"], "results cannot be written to file/results.json"),
    ],
)
def test_a_wrong_option_never_costs_points(desk, capsys, way, options, says):
    assert says in refused(capsys, grade.main, ["hw03", "kv_cache.py", *options])
    assert not (desk / "results.json").exists()


@pytest.mark.parametrize(
    "command, arguments, says",
    [
        (grade.main, ["hw99", "kv_cache.py"], "wanted one of hw01_attention"),
        (grade.main, ["hw03", "nowhere.py"], "nowhere.py is not there"),
        (grade.main, ["hw03", "empty"], "empty holds no kv_cache.py"),
        (grade.main, ["hw03", "pipe"], "wanted a file, a folder or a .zip, got pipe"),
        (grade.main, ["hw03", "/dev/null"], "wanted a file, a folder or a .zip, got /dev/null"),
        (grade.main, ["hw03", "no.zip"], "no.zip cannot be read: File is not a zip file"),
        (grade.main, ["hw03", "class"], "results lies in class"),
        (grade.main, ["hw03", "class", "--out", "class/marks"], "would be graded as a learner"),
        (grade.main, ["hw03", "class", "--roster", "nowhere"], "wanted a roster, a .csv in UTF-8"),
        (grade.main, ["hw03", "class", "--roster", "empty.csv"], "holds no learner"),
        (grade.main, ["hw03", "class", "--due", "soon"], "wanted a time like 2026-10-31T23:59"),
        (grade.main, ["hw03", "class", "--late", "110"], "--late: wanted a number from 0 to 100"),
        (reset.main, ["hw99"], "got 'hw99'"),
        (cells.main, ["nosuch"], "nb12, nb13, got nosuch"),
        (race.main, ["ada", "--keys", "0"], "--keys: wanted a whole number from 1 to 16,777,216"),
        (race.main, ["ada", "--keys", "-5"], "--keys: wanted a whole number from 1"),
        (race.main, ["ada", "--vocabulary", "0"], "--vocabulary: wanted a whole number from 1"),
        (reset.main, [], "required: unit"),
        (gradescope.main, ["hw03", "--out", "file/x.zip"], "cannot write file/x.zip"),
        (gradescope.main, ["hw03", "--out", "/proc/x.zip"], "cannot write /proc/x.zip"),
        (gradescope.main, ["hw03", "--out", "empty"], "got empty, which is a folder"),
    ],
)
def test_a_wrong_argument_is_answered_in_a_sentence(
    desk, capsys, monkeypatch, command, arguments, says
):
    if "results lies" in says:  # where results go if nothing is said
        monkeypatch.chdir(desk / "class")
        arguments, says = ["hw03", "."], "results lies in ."
    assert says in refused(capsys, command, arguments)


# -------------------------------------------------------------------------- what a learner has

STRANGE = {
    "Windows-1252": "# für Übung 3\n".encode("cp1252") + HONEST.encode(),
    "binary": bytes(range(256)),
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The place of a learner's file, in a course of its own."""
    monkeypatch.setattr(marking, "HERE", tmp_path / "homework")
    monkeypatch.setattr(reset, "find", lambda name: UNIT)
    UNIT.path.parent.mkdir(parents=True)
    return UNIT.path


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_reset_keeps_a_file_that_is_no_text(mine, capsys, text):
    mine.write_bytes(text)
    reset.main(["hw03"])
    kept = f"work/{UNIT.folder}/kv_cache.mine-1.py"
    assert f"your file is now {kept}" in capsys.readouterr().out
    assert mine.with_name("kv_cache.mine-1.py").read_bytes() == text
    assert mine.read_text() == UNIT.stub()


@pytest.mark.parametrize("kind", ["folder", "link to nowhere"])
def test_reset_keeps_what_is_no_file(mine, kind):
    if kind == "folder":
        mine.mkdir()
        (mine / "inside").write_text("mine")
    else:
        mine.symlink_to("nowhere")
    reset.main(["hw03"])
    kept = mine.with_name("kv_cache.mine-1.py")
    assert mine.read_text() == UNIT.stub() and not mine.is_symlink()
    assert os.path.islink(kept) if kind != "folder" else (kept / "inside").read_text() == "mine"


def test_reset_says_why_it_cannot_write(mine, capsys):
    mine.parent.rmdir()
    mine.parent.write_text("a file")
    assert "kv_cache.py cannot be written: " in refused(capsys, reset.main, ["hw03"])


EDITORS = [b"\xef\xbb\xbf", "# für Übung 3\n".encode("cp1252")]
PLAIN = HONEST[HONEST.index("import") :].encode()


@pytest.mark.parametrize("start", EDITORS)
def test_a_file_that_a_windows_editor_saved_is_read_like_any_other(mine, start):
    mine.write_bytes(start + PLAIN)
    for exercise, part in UNIT.parts():
        UNIT.check(exercise.name, part.name)
    UNIT.rows.clear()


@pytest.mark.parametrize("start", EDITORS)
def test_the_grader_reads_a_file_that_a_windows_editor_saved(start, way):
    rows = grade.grade(UNIT, start + PLAIN, 3, way)
    assert {row.state for row in rows} == {"ok"}


def test_a_folder_in_the_place_of_the_file_is_said_in_a_sentence(mine):
    mine.mkdir()
    with pytest.raises(marking.Lost, match="kv_cache.py cannot be read: Is a directory"):
        UNIT.check("owners", "anchors")


def test_a_card_that_cannot_be_written_is_said_in_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    words = ["-m", "pytest", "homework/hw03_kv_cache", "-k", "owners_anchors"]
    options = ["-p", "no:cacheprovider", "--card", str(tmp_path / "file" / "card.md")]
    done = warm.run([*words, *options], cwd=HOMEWORK.parent)
    assert "the card cannot be written to" in done.stdout and "INTERNALERROR" not in done.stdout


def test_a_name_that_is_almost_too_long_is_cut_and_stays_its_own(tmp_path):
    names = [grade.results_file(f"{'ü' * 120}{n}") for n in range(2)]
    assert len(set(names)) == 2
    for name in names:
        assert len(os.fsencode(name)) <= 200
        grade.put(tmp_path / name, json.dumps("fits"))


def test_a_terminal_that_speaks_ascii_is_no_obstacle(tmp_path, way):
    """Neither for what runs in the sandbox, nor for names, of files and in an archive."""
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "Ann Öz.py").write_text(HONEST, encoding="utf-8")
    zipped(tmp_path / "class.zip", **{"Ann Öz/kv_cache.py": HONEST})
    (tmp_path / "roster.csv").write_text('name\n"Öz, Ann"\n', encoding="utf-8")
    ascii_only = dict(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    for name in ("class", "class.zip"):
        out = tmp_path / f"out of {name}"
        command = [sys.executable, "-m", "homework.grade", "hw03", str(tmp_path / name)]
        asked = ["--out", str(out), "--roster", str(tmp_path / "roster.csv")]
        how = dict(cwd=HOMEWORK.parent, env=dict(os.environ, **ascii_only), text=True)
        done = subprocess.run([*command, *asked], capture_output=True, **how)
        assert done.returncode == 0, done.stderr
        (row,) = table(out / "grades.csv")
        assert (row["score"], row["learner"], row["note"]) == ("100", "Öz, Ann", "")
        assert (out / "Ann Öz.json").is_file()
