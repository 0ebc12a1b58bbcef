"""Does the isolated grader hold? A class in one folder: attacks, honest work beside each, one that
hangs."""

import argparse
import contextlib
import copy
import csv
import importlib.metadata
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from homework import grade, gradescope, handed_in, marking, runner, sandbox
from homework.compare import compare, dtype_of
from tests.homework.attacks import INSIDE, OUTSIDE, SHIPPED
from tests.homework.classroom import DOORS, HOMEWORK, HONEST, UNIT, WHOLE, attacked, with_doors

WIDE = with_doors(UNIT)
ALL_HONEST = HONEST + "".join(f"\n{name} = skip_heads\n" for name in DOORS[1:])
ALONE = f"{HONEST}\ndel skip_heads\n"  # only what stands behind the doors
BESIDE = WIDE.exercises["svformer"].points  # what that is worth


def options(way):
    return argparse.Namespace(
        seed=7,
        isolation=way,
        seconds=4,
        memory=4,
        most=90,
        jobs=os.cpu_count(),
        due=None,
        late=0,
        canvas=None,
    )


@pytest.fixture(scope="module")
def home():
    """A port of this machine that counts who calls."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        calls = []

        def listen():
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return
                calls.append(1)

        threading.Thread(target=listen, daemon=True).start()
        yield server.getsockname()[1], calls


LONG = "l" * 252
NAMES = {  # how a learner's file can be called, and how the table and the terminal call it
    "not UTF-8": (b"m\xfcller", "m\\udcfcller"),
    "as long as a name can be": (LONG.encode(), LONG),
    "moves the cursor": (b"\x1b[2K\x1b[1Aeve", "\\x1b[2K\\x1b[1Aeve"),
    "turns the line": ("anna\u202eyp.bob".encode(), "anna\\u202eyp.bob"),
    "a formula": (b"=cmd|'calc'!A0", "=cmd|'calc'!A0"),
    "another formula": (b"@SUM(1)", "@SUM(1)"),
    "umlauts": ("Ben Öz_12345_file".encode(), "Ben Öz_12345_file"),
}


class Class:
    """A folder that a class hands in, graded by the command side by side."""

    def __init__(self, root, port):
        self.handed, self.out, self.marker = root / "handed", root / "out", root / "marker"
        self.handed.mkdir()
        self.port, self.stems, self.scenes = port, {}, {}
        self.doors = {}  # what stands in another than the first

    def hand_in(self, name, text, stem=None, **files):
        """One learner's file, or a folder where files lie beside it."""
        stem = self.stems[name] = stem or f"learner-{len(self.stems):02}".encode()
        results = self.out / f"{os.fsdecode(stem)}.json"
        facts = dict(RESULTS=results, HOMEWORK=HOMEWORK, MARKER=self.marker, PORT=self.port)
        for word, fact in facts.items():
            text = text.replace(word, str(fact))
        place = os.fsencode(self.handed) + b"/" + stem
        if not files:
            Path(os.fsdecode(place + b".py")).write_text(text)
            return
        folder = Path(os.fsdecode(place))
        folder.mkdir()
        for file, content in {**files, UNIT.file: text}.items():
            (folder / file).write_text(content)

    def grade(self, way):
        arguments = ["hw03", self.handed, "--out", self.out, "--isolation", way, "--seed", 7]
        limits = ["--seconds", 1, "--most", 15, "--jobs", max(2, os.cpu_count())]
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
            patch.setattr(grade, "find", lambda name: WIDE)
            isolate = grade.isolate
            patch.setattr(grade, "isolate", lambda *asked: isolate(*asked) or self.swap())
            said.reconfigure = lambda **how: None
            self.status = grade.main([*map(str, arguments + limits)])
        self.terminal = said.getvalue()
        for name, stem in self.stems.items():
            path = self.out / grade.results_file(os.fsdecode(stem))
            door = self.doors.get(name, DOORS[0])
            self.scenes[name] = Scene(json.loads(path.read_text()), door)
        with open(self.out / "grades.csv", newline="") as file:
            self.table = list(csv.DictReader(file))

    def swap(self):
        """What two learners do once the class has been looked at and before it is graded."""
        for who, swap in dict(swapper=link_to_victim, turncoat=os.mkfifo).items():
            file = self.handed / who / UNIT.file
            file.unlink()
            swap(file)

    def __getitem__(self, name):
        return self.scenes[name]

    def row(self, called):
        """The line of grades.csv for a learner."""
        (row,) = [row for row in self.table if row["submission"].lstrip("'") == called]
        return row


def link_to_victim(file):
    file.symlink_to(f"../victim/{UNIT.file}")


class Scene:
    """What the results say of one learner, and of one door in particular."""

    def __init__(self, result, door):
        self.result, self.score = result, result.get("score")
        self.at_door = [test for test in result["tests"] if test["name"].split(":")[0] == door]
        self.earned = sum(test["score"] for test in self.at_door)


@pytest.fixture(scope="module")
def graded(tmp_path_factory, home, way):
    """A class of more than 30: attacks, five to a file and some under strange names, honest work,
    and sixteen who handed in nothing."""
    handed = Class(tmp_path_factory.mktemp("class"), home[0])
    handed.hand_in("honest", ALL_HONEST)
    attacks = list(INSIDE)
    if way != "namespaces":
        attacks.remove("a full disk")  # elsewhere it would be this machine's
    files = -(-len(attacks) // len(DOORS))
    strange = dict(enumerate(NAMES, 1))  # the first attack writes where its own results will be
    for at in range(files):
        inside = dict(zip(DOORS, attacks[at::files], strict=False))
        text = attacked(**{door: INSIDE[name] for door, name in inside.items()})
        stem = NAMES[strange[at]][0] if at in strange else None
        for door, name in inside.items():
            handed.doors[name] = door
            handed.hand_in(name, text, stem)
            stem = handed.stems[name]
        if at in strange:
            handed.stems[strange[at]] = stem
    for name, text in OUTSIDE.items():
        handed.hand_in(name, f"{ALONE}\n{text}\n")
    handed.hand_in("shipped files", ALONE, **SHIPPED)
    handed.hand_in("hangs when read", f"{ALL_HONEST}\nwhile True:\n    pass\n")

    # A link to somebody else's folder, one to somebody else's file, and an empty folder.
    handed.hand_in("victim", ALL_HONEST, b"victim", **{"notes.txt": ""})
    (handed.handed / "mallory").symlink_to("victim")
    (handed.handed / "trudy").mkdir()
    (handed.handed / "trudy" / UNIT.file).symlink_to(f"../victim/{UNIT.file}")
    nothing = [f"nothing-{number:02}" for number in range(16)]
    for name in nothing:
        (handed.handed / name).mkdir()
    handed.stems |= {name: name.encode() for name in ("mallory", "trudy", *nothing)}

    # What nobody can wait for, read or reach, and what is swapped later.
    handed.hand_in("swapper", "", b"swapper", **{"notes.txt": ""})
    handed.hand_in("turncoat", ALL_HONEST, b"turncoat", **{"notes.txt": ""})
    for name in ("pipe", "giant", "deep"):
        (handed.handed / name).mkdir()
    os.mkfifo(handed.handed / "pipe" / UNIT.file)
    with open(handed.handed / "giant" / UNIT.file, "wb") as file:
        file.truncate(3 << 30)
    at = os.open(handed.handed / "deep", os.O_RDONLY)
    for name in ["d" * 250] * 20:
        os.mkdir(name, dir_fd=at)
        at, before = os.open(name, os.O_RDONLY, dir_fd=at), at
        os.close(before)
    os.close(at)
    handed.stems |= {name: name.encode() for name in ("pipe", "giant", "deep")}

    before = {path: path.read_bytes() for path in HOMEWORK.rglob("*.py")}
    handed.grade(way)
    handed.changed = [path for path, text in before.items() if path.read_bytes() != text]
    return handed


@pytest.mark.parametrize("name", [*INSIDE, *OUTSIDE, "shipped files"])
def test_an_attack_earns_nothing_and_the_honest_work_beside_it_earns_its_points(graded, name, way):
    if name not in graded.scenes:
        pytest.skip(f"not tried under {way}")
    scene = graded[name]
    assert scene.earned == 0, scene.result
    assert scene.score == BESIDE, scene.result
    assert_gradescope(scene.result)


def test_honest_work_earns_everything(graded):
    assert graded["honest"].score == WIDE.points
    assert graded["victim"].score == WIDE.points
    assert graded["honest"].earned == WIDE.exercises[DOORS[0]].points


def test_a_class_that_changes_while_it_is_graded_is_graded_as_it_was(graded):
    assert graded["swapper"].score == 0 and "is a link" not in graded.row("swapper")["note"]
    assert graded["turncoat"].score == WIDE.points


@pytest.mark.parametrize(
    "name, told", dict(pipe="is no file", giant="is larger than 1 MB", deep="missing").items()
)
def test_what_cannot_be_read_has_a_line(graded, name, told):
    assert graded[name].score == 0 and told in graded.row(name)["note"]


@pytest.mark.parametrize("name", NAMES)
def test_honest_work_earns_its_points_under_any_name(graded, name):
    assert graded[name].score == BESIDE
    row = graded.row(NAMES[name][1])
    assert row["score"] == str(BESIDE)
    assert row["submission"].startswith("'") == ("formula" in name)
    assert f"{NAMES[name][1]} " in graded.terminal


def test_a_name_cannot_speak_to_the_terminal_or_to_a_spreadsheet(graded):
    assert all(c.isprintable() or c == "\n" for c in graded.terminal)
    for row in graded.table:
        assert not row["submission"].startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("name, told", [("mallory", "mallory is a link"), ("trudy", "is a link")])
def test_a_link_to_somebody_elses_work_earns_nothing(graded, name, told):
    assert graded[name].score == 0 and told in graded.row(name)["note"]


def test_a_folder_loses_nobody_even_if_one_hangs(graded):
    rows = graded.table
    assert len(rows) >= 30
    assert all(row["score"] != "" and row["of"] == str(WIDE.points) for row in rows)
    assert graded["hangs when read"].score == 0 and graded["nothing-00"].score == 0
    sums = [sum(int(row[name]) for name in WIDE.exercises) for row in rows]
    assert sums == [int(row["score"]) for row in rows]
    assert graded.status == 0 and len(rows) == len({*graded.stems.values()})
    assert not [path for path in graded.out.iterdir() if path.name.startswith(".")]


def test_nobody_called_home(graded, home):
    assert home[1] == []


def test_the_grader_never_unpickled_anything(graded):
    assert not graded.marker.exists()


def test_no_file_of_the_course_was_touched(graded):
    assert graded.changed == []


@pytest.mark.parametrize(
    "name, why",
    [
        ("an answer of 32 megabytes", "too large"),
        ("a loop that resets timers", "in time"),
        ("NaN", "not finite"),
        ("one number that would broadcast", "shape"),
        ("inputs zeroed in place", "its own inputs"),
        ("pytest.skip in the function", "it raised"),
        ("shipped files", "no function"),
    ],
)
def test_the_results_say_why(graded, name, why):
    (test,) = graded[name].at_door
    assert why in test["output"]


def test_hidden_results_hold_prepared_sentences_only(graded):
    """Whatever a submission raises or returns, none of its own words reach the results."""
    for name in graded.scenes.keys() & {*INSIDE, *OUTSIDE}:
        for test in graded[name].result["tests"]:
            assert "not today" not in test["output"] and "hidden inputs" not in test["output"]


def assert_gradescope(result):
    """The documented shape of results.json: a score on top or on every test, known keys, known
    words."""
    top = {
        "score",
        "execution_time",
        "output",
        "output_format",
        "test_output_format",
        "test_name_format",
        "visibility",
        "stdout_visibility",
        "extra_data",
        "tests",
        "leaderboard",
    }
    inner = {
        "score",
        "max_score",
        "status",
        "name",
        "name_format",
        "number",
        "output",
        "output_format",
        "tags",
        "visibility",
        "extra_data",
    }
    assert set(result) <= top and isinstance(result["execution_time"], int)
    assert "score" in result or (
        result["tests"] and all("score" in test for test in result["tests"])
    )
    assert isinstance(result.get("score", 0.0), (int, float)) and isinstance(result["output"], str)
    for test in result["tests"]:
        assert (
            set(test) <= inner and isinstance(test["name"], str) and isinstance(test["output"], str)
        )
        assert 0 <= test["score"] <= test["max_score"] and test["status"] in ("passed", "failed")
        assert test.get("visibility", "visible") in (
            "visible",
            "hidden",
            "after_due_date",
            "after_published",
        )


def test_a_crash_of_the_grader_is_no_zero_and_leaves_valid_results(tmp_path, monkeypatch, way):
    (tmp_path / "kv_cache.py").write_text(HONEST)
    monkeypatch.setattr(marking.Exercise, "expected", lambda *a: 1 / 0)
    mine = handed_in.single(tmp_path / "kv_cache.py")
    graded = grade.one(UNIT, mine, tmp_path / "results.json", options(way))
    result = json.loads((tmp_path / "results.json").read_text())
    assert graded.rows is None and "ZeroDivisionError" in graded.note
    assert (
        "score" not in result
        and result["tests"][0]["max_score"] == 0
        and "not a mark" in result["output"]
    )
    assert_gradescope(result)


def test_results_that_cannot_be_written_cost_nobody_else(tmp_path, way, capsys):
    """One learner's line says so, the others are graded, and the status is no success."""
    handed, out = tmp_path / "handed", tmp_path / "out"
    for name in ("anna", "ben", "carla"):
        (handed / name).mkdir(parents=True)
    (handed / "carla" / "kv_cache.py").write_text("")
    (out / "ben.json" / "in the way").mkdir(parents=True)
    assert grade.main(["hw03", str(handed), "--isolation", way, "--out", str(out)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["anna", "ben", "carla"]
    assert "grader error" in lines[1] and "results cannot be written" in lines[1]
    assert {path.name for path in out.iterdir()} == {
        "anna.json",
        "ben.json",
        "carla.json",
        "cards",
        "grades.csv",
        "grades.md",
        "unnamed.txt",
    }


def test_who_was_too_slow_beside_a_crowd_is_asked_again_alone(tmp_path, monkeypatch, capsys):
    """Only what was starved or came too late, and only after everybody else has ended."""
    calls = []

    def fake(unit, source, seed, way, seconds, memory, most, kept=(), heard=None):
        calls.append((source.decode(), len(kept)))
        states = ["ok" if kept else state for state in source.decode().split()]
        return [
            marking.Row(e.name, p.name, p.points, state, "")
            for (e, p), state in zip(unit.parts(), states, strict=True)
        ]

    monkeypatch.setattr(grade, "grade", fake)
    parts = len(UNIT.parts())
    texts = dict(crowd=["time"] * parts, honest=["ok"] * (parts - 2) + ["starved", "late"])
    for name, states in texts.items():
        (tmp_path / f"{name}.py").write_text(" ".join(states))
    learners, asked = handed_in.whole_class(tmp_path)[0], options("none")
    asked.jobs = 2
    done = grade.folder(UNIT, learners, tmp_path / "out", asked)
    assert [graded.mark for graded in done] == [0, UNIT.points]
    assert calls[2:] == [(" ".join(texts["honest"]), parts - 2)]
    assert "asked again alone, after a time-out: 2" in capsys.readouterr().out
    result = json.loads((tmp_path / "out" / "honest.json").read_text())
    assert result["score"] == UNIT.points
    asked.jobs = 1  # nobody was beside them
    assert grade.folder(UNIT, learners, tmp_path / "out", asked)[0].mark == 0
    assert len(calls) == 5


@pytest.mark.parametrize(
    "body, state", [("while True: pass", "time"), ("import time; time.sleep(60)", "starved")]
)
def test_a_part_without_its_share_of_a_processor_is_told_from_one_that_used_it(body, state, way):
    """Asking an endless loop again would only cost time; a part that hardly ran may be honest."""
    box = sandbox.Sandbox(f"def f():\n    {body}\n".encode(), way, 2, 4)
    reply = box.ask(runner.pack(dict(function="f", cases=[[]], arrays=0)), 30)
    box.end()
    assert grade.read(reply, 1)[0][0]["state"] in {state, "starved"}


def test_a_class_in_which_one_did_not_rename_is_no_single_learner(tmp_path, capsys, way):
    """kv_cache.py beside anna.py: one of them would be graded, and the others lost in silence."""
    for name in ("kv_cache.py", "anna.py", "ben.py"):
        (tmp_path / name).write_text("")
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path)])
    said = capsys.readouterr().err
    assert "kv_cache.py beside anna.py, ben.py" in said and "--out results.json" in said
    out = tmp_path / "marks.json"
    assert grade.main(["hw03", str(tmp_path), "--isolation", way, "--out", str(out)]) == 0
    assert json.loads(out.read_text())["score"] == 0


def test_a_grader_that_is_killed_leaves_valid_results_and_nothing_else(tmp_path, way):
    (tmp_path / "kv_cache.py").write_text("import time\ntime.sleep(60)\n")
    (tmp_path / "temporary").mkdir()
    file, out = str(tmp_path / "kv_cache.py"), str(tmp_path / "r.json")
    command = [sys.executable, "-m", "homework.grade", "hw03", file, "--out", out]
    how = dict(cwd=HOMEWORK.parent, env=dict(os.environ, TMPDIR=str(tmp_path / "temporary")))
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **how) as process:
        while not (tmp_path / "r.json").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
    result = json.loads((tmp_path / "r.json").read_text())
    assert "did not finish" in result["output"]
    assert not list((tmp_path / "temporary").iterdir())
    assert_gradescope(result)


def test_the_same_seed_asks_the_same_and_another_seed_something_else():
    e = UNIT.exercises["skip_heads"]
    part = e.parts[0]
    same, other = e.cases(part, 3), e.cases(part, 4)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(same[0], marking.Exercise.cases.__wrapped__(e, part, 3)[0], strict=True)
    )
    assert not np.array_equal(same[0][0], other[0][0])


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\n",
        b"[]",
        b"1\n",
        b'[{"state": "ok"}]\n',
        b'[{"state": ["ok"], "arrays": 1}]\n',
        b'[{"state": "ok", "arrays": 1e999}]\n',
        runner.pack([dict(state="ok", arrays=1)], [np.zeros(3)])[:-1],
        runner.pack([dict(state="ok", arrays=2)], [np.zeros(3)]),
        runner.pack([dict(state="ok", arrays=1)], [np.array(["text"])]),
    ],
)
def test_bytes_that_are_no_answer_are_refused(reply):
    try:
        states, answers = grade.read(reply, 1)
    except Exception:
        return  # grade() calls this "its answer could not be read"
    assert (
        UNIT.exercises["skip_heads"].verdict(
            UNIT.exercises["skip_heads"].parts[0], 0, states, answers
        )[0]
        != "ok"
    )


def test_hidden_grading_keeps_what_was_wanted_to_itself():
    """A wrong number earns how many are wrong; public tests say, besides, which was wanted."""
    exercise, seed = UNIT.exercises["skip_heads"], 7
    part = exercise.parts[0]
    cases = range(len(exercise.cases(part, seed)))
    answers = [[x.copy() for x in exercise.expected(part, seed, case)] for case in cases]
    dtypes = [dtype_of(inputs) for inputs in exercise.cases(part, seed)]
    answers = [[x.astype(kind) for x in answer] for answer, kind in zip(answers, dtypes)]
    answers[0][0].flat[0] += 5
    states = [dict(state="ok", arrays=len(answer)) for answer in answers]
    reply = runner.pack(states, [x for answer in answers for x in answer])
    state, why = grade.hear(reply, exercise, part, seed)
    assert state == "wrong" and why.startswith("right shape, wrong numbers (1 of ")
    wanted = exercise.expected(part, seed, 0)[0].flat[0]
    assert "wanted" not in why and "asked with" not in why and f"{wanted:.6g}" not in why
    _, told = exercise.verdict(part, seed, *grade.read(reply, len(cases)))
    assert "wanted" in told and f"{wanted:.6g}" in told, "the public tests say it"


@pytest.mark.parametrize(
    "dtype, near, far", [("float64", 1e-7, 1e-5), ("float32", 1e-4, 1e-3), ("float16", 5e-3, 5e-2)]
)
def test_an_answer_may_be_off_by_the_rounding_of_its_type_and_by_no_more(dtype, near, far):
    wanted = [np.linspace(1, 2, 7).astype(dtype).astype("f8")]
    told = lambda off: compare([(wanted[0] * (1 + off)).astype(dtype)], wanted, dtype)
    assert told(near) == "" and "wrong numbers" in told(far)


def test_an_answer_comes_back_as_it_was_sent():
    sent = [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.ones((3, 2), "f4")),
        np.array(3),
        np.array([True]),
    ]
    (state,), (got,) = grade.read(runner.pack([dict(state="ok", arrays=4)], sent), 1)
    assert state["state"] == "ok" and all(
        a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(sent, got, strict=True)
    )


def test_a_list_that_a_submission_changed_is_refused_like_an_array():
    """What runs behind the sandbox says so, and the grader's own cases stay as they were."""
    unit = marking.find("hw07")
    exercise = unit.exercises["windowed_break_even"]
    name, part = exercise.name, exercise.parts[0]
    path = HOMEWORK / "solutions" / unit.folder / "reference.py"
    honest = path.read_text()
    uses_up = f"{honest}\nkept = {name}\ndef {name}(windows, *rest):\n    "
    uses_up += "found = kept(windows, *rest)\n    windows.clear()\n    return found\n"
    before = repr(exercise.cases(part, 7))
    told = []
    for source in (honest, uses_up):
        sheet = io.BytesIO()
        runner.write(sheet, source, grade.question(exercise, exercise.cases(part, 7)))
        told.append(grade.hear(sheet.getvalue(), exercise, part, 7))
    assert told == [("ok", ""), ("changed", marking.SAYS["changed"])]
    assert repr(exercise.cases(part, 7)) == before


def test_without_isolation_the_grader_says_so_and_refuses_if_told_to_or_if_it_is_root(
    tmp_path, capsys, monkeypatch
):
    (tmp_path / "kv_cache.py").write_text(HONEST)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path / "kv_cache.py"), "--isolation", "none"])
    with pytest.raises(grade.GraderError, match="never run as root"):
        grade.Sandbox(b"", "none", 1, 4)
    assert "OPEN" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit):
        grade.main(
            ["hw03", str(tmp_path / "kv_cache.py"), "--isolation", "none", "--require-isolation"]
        )
    assert "OPEN" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        grade.main(["--help"])
    assert "OPEN" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["kv_cache (1).py", "my_cache.py"])
def test_the_zip_grades_as_gradescope_would_run_it(name, tmp_path, way):
    """A file of another name is not graded, but it has its results, and they say why."""
    archive = gradescope.build(WHOLE, tmp_path / "hw03.zip")
    shutil.unpack_archive(archive, tmp_path / "source")
    for place in ("submission", "results"):
        (tmp_path / place).mkdir()
    (tmp_path / "submission" / name).write_text(HONEST.replace("def owners", "def owner"))
    (tmp_path / "submission" / "numpy.py").write_text("raise SystemExit")
    env = {"PATH": os.environ["PATH"], "AUTOGRADER": str(tmp_path), "PYTHON": sys.executable}
    command = ["bash", str(tmp_path / "source" / "run_autograder")]
    subprocess.run(command, env=env, check=True, cwd="/", capture_output=True)
    result = json.loads((tmp_path / "results" / "results.json").read_text())
    assert_gradescope(result)
    if name != "my_cache.py":
        assert result["score"] == WHOLE.points - WHOLE.exercises["owners"].points
    else:
        assert (
            result["score"] == 0 and "kv_cache.py was not handed in" in result["tests"][0]["output"]
        )
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["results.json"]
    assert not list((tmp_path / "source").rglob("*solutions*"))
    for place in ("source", "submission", "results"):
        assert (tmp_path / place).stat().st_mode & 0o077 == 0, f"another account can enter {place}"


def test_ctrl_c_ends_the_grader_with_a_sentence_and_leaves_nothing_running(tmp_path, way):
    for name in ("anna", "ben"):
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / f"{name}.py").write_text("while True:\n    pass\n")
    seconds = f"60.{os.getpid()}1"  # a name for all that it starts
    command = [sys.executable, "-m", "homework.grade", "hw03", str(tmp_path / "class")]
    limits = ["--out", str(tmp_path / "out"), "--jobs", "2", "--seconds", seconds]
    how = dict(cwd=HOMEWORK.parent, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    # whoever started the tests in the background has Ctrl-C ignored, and its children too
    heard = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen([*command, *limits], preexec_fn=heard, **how) as process:
        while not (tmp_path / "out" / "ben.json").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
    assert process.returncode == 130 and "stopped by Ctrl-C" in said and "Traceback" not in said
    alive = [p for p in Path("/proc").glob("[0-9]*/cmdline") if seconds.encode() in words(p)]
    assert not alive


def test_a_ctrl_c_that_a_thread_took_is_heard_while_the_grader_waits(tmp_path, monkeypatch, way):
    """As happened on a busy machine: Python noted the signal, and the wait for a submission did not
    wake."""
    ended, heard = threading.Event(), []

    def one(*asked):
        time.sleep(0.5)  # until the grader waits
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        heard.append(ended.wait(20))
        return grade.Graded(None, ["stopped"])

    (tmp_path / "class").mkdir()
    for name in ("anna", "ben"):
        (tmp_path / "class" / f"{name}.py").write_text("")
    monkeypatch.setattr(grade, "one", one)
    monkeypatch.setattr(grade.Sandbox, "end_all", ended.set)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        asked = ["hw03", str(tmp_path / "class"), "--out", str(tmp_path / "out")]
        assert grade.main([*asked, "--jobs", "1", "--isolation", way]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [True]


def words(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def test_each_learner_of_a_class_has_results_of_its_own(tmp_path, monkeypatch, capsys, way):
    monkeypatch.chdir(tmp_path)
    handed = tmp_path / "handed"
    for name in ("j.miller", "j.smith", "k.lee"):
        (handed / name).mkdir(parents=True)
    (handed / "j.smith" / "my_cache.py").write_text(
        "def owners(plan, windows, anchors):\n    return [], []\n"
    )
    (handed / "k.lee" / "kv_cache.py").write_text("")
    for out, told in (("results", []), ("graded.v2", ["--out", "graded.v2"])):
        assert grade.main(["hw03", str(handed), "--isolation", way, *told]) == 0
        assert {path.name for path in (tmp_path / out).iterdir()} == {
            "cards",
            "grades.csv",
            "grades.md",
            "j.miller.json",
            "j.smith.json",
            "k.lee.json",
            "unnamed.txt",
        }
        with open(tmp_path / out / "grades.csv") as file:
            rows = list(csv.DictReader(file))
        assert [row["submission"] for row in rows] == ["j.miller", "j.smith", "k.lee"]
        assert [row["note"] for row in rows] == [
            "kv_cache.py missing",
            "kv_cache.py missing; found my_cache.py",
            "",
        ]
        assert "j.smith" in (table := capsys.readouterr().out) and "found my_cache.py" in table
    (handed / "gus.zip").write_bytes(b"")
    for inner in ("inner", "other"):
        (handed / "j.miller" / inner).mkdir()
        (handed / "j.miller" / inner / "kv_cache.py").write_text("")
    assert grade.main(["hw03", str(handed), "--isolation", way, "--out", "again"]) == 1
    said = capsys.readouterr()
    assert "not graded, neither a folder nor a .py file: gus.zip" in said.err
    assert "several files are called kv_cache.py: inner/kv_cache.py, other/kv_cache" in said.out
    (handed / "j.smith.py").write_text("")
    (tmp_path / "nobody").mkdir()
    for folder, why in (
        (handed, "j.smith as a file and as a folder"),
        (tmp_path / "nobody", "holds no kv_cache.py"),
    ):
        with pytest.raises(SystemExit):
            grade.main(["hw03", str(folder)])
        assert why in capsys.readouterr().err


def test_a_place_where_results_cannot_be_is_told_before_anything_runs(tmp_path, capsys, way):
    file = tmp_path / "kv_cache.py"
    file.write_text("")
    for told, words in (
        (["--out", "/proc/x/results.json"], "results cannot be written to"),
        (["--jobs", "0"], "wanted a whole number from 1 to 1000, got '0'"),
    ):
        with pytest.raises(SystemExit):
            grade.main(["hw03", str(file), *told])
        assert words in capsys.readouterr().err
    (tmp_path / "marks").mkdir()
    assert (
        grade.main(["hw03", str(file), "--isolation", way, "--out", str(tmp_path / "marks")]) == 0
    )
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["kv_cache.json"]


def test_the_zip_brings_what_a_unit_asks_for():
    """Torch's CPU build, which is small; it has no Triton, and without it honest kernels would lose
    their points."""
    assert "triton" in marking.find("hw08").prelude
    install = [line.split() for line in gradescope.SETUP.splitlines() if "pip install" in line]
    assert {"numpy", "triton"} <= {*gradescope.NEEDED}
    (torch,) = [line for line in install if "torch" in line]
    assert torch[torch.index("--index-url") + 1] == '"$cpu"'
    assert "cpu=https://download.pytorch.org/whl/cpu " in gradescope.SETUP


def test_gradescope_installs_what_the_course_pins(tmp_path):
    """A new release of a package must not change a term's grading."""
    shutil.unpack_archive(gradescope.build(WHOLE, tmp_path / "hw03.zip"), tmp_path)
    pins = (tmp_path / "constraints.txt").read_text()
    assert pins == (HOMEWORK.parent / "constraints.txt").read_text()
    assert re.search(r"^torch==\d", pins, re.M)
    told = (tmp_path / "hashes.txt").read_text(encoding="utf-8")
    named = re.findall(r"^([\w.-]+)==\d[^\n]*\\\n +--hash=sha256:[0-9a-f]{64}", told, re.M)
    assert sorted(named) == sorted(gradescope.NEEDED)
    assert set(told.splitlines()) <= set((HOMEWORK.parent / "hashes.txt").read_text().splitlines())
    install = [line for line in gradescope.SETUP.splitlines() if "pip install" in line]
    assert 'cd "$(dirname "$0")"' in gradescope.SETUP and ">=" not in "".join(install)


FAKE = """#!/bin/sh
echo "$(basename "$0") $@" >> {calls}
case "$2" in venv) mkdir -p "$3/bin"; cp "$0" "$3/bin/pip";; esac
[ -z "$OLD" ] || case "$1" in -c) exit 1;; esac
"""


@pytest.mark.parametrize("old", ["", "1"])
def test_gradescopes_image_is_set_up_step_by_step(tmp_path, old):
    """setup.sh runs whole, on programs that only write down how they were called."""
    shutil.unpack_archive(gradescope.build(WHOLE, tmp_path / "hw03.zip"), tmp_path / "source")
    (tmp_path / "bin").mkdir()
    for name in ("apt-get", "python3"):
        (tmp_path / "bin" / name).write_text(FAKE.format(calls=tmp_path / "calls"))
        (tmp_path / "bin" / name).chmod(0o755)
    script = tmp_path / "source" / "setup.sh"
    script.write_text(script.read_text().replace("/opt/grader", str(tmp_path / "grader")))
    env = dict(PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}", OLD=old)
    done = subprocess.run(["bash", str(script)], env=env, capture_output=True, text=True)
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[0] for call in calls[:3]] == ["apt-get", "apt-get", "python3"]
    if old:
        assert done.returncode == 1 and "wanted Python 3.11 or newer" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    cpu = "https://download.pytorch.org/whl/cpu"
    assert calls[3:] == [
        f"python3 -m venv {tmp_path / 'grader'}",
        "pip install --require-hashes --no-deps -r hashes.txt",
        f"pip install -c constraints.txt --no-deps --index-url {cpu} torch",
    ]


def test_gradescopes_image_has_all_that_torch_and_the_grader_need():
    """PyTorch's own index lacks some of it, so nothing but torch itself comes from there."""
    here, seen = default_environment(), set()
    open_ = ["torch", "numpy", "triton", "filelock"]
    while open_:
        name = open_.pop()
        if name not in seen:
            seen.add(name)
            needs = map(Requirement, importlib.metadata.requires(name) or [])
            of_here = [one for one in needs if not one.marker or one.marker.evaluate(here)]
            open_ += [canonicalize_name(one.name) for one in of_here]
    brought = {name for name in seen if not name.startswith(("nvidia-", "cuda-"))}
    assert brought == {"torch", *gradescope.NEEDED}


def test_triton_kernels_are_graded_in_the_interpreter(tmp_path, way):
    pytest.importorskip("triton")
    unit = copy.copy(marking.find("hw08"))
    unit.exercises = {
        name: unit.exercises[name] for name in ("copy_tiles", "gather_flash", "split_decode")
    }
    source = (HOMEWORK / "solutions" / unit.folder / "triton_kernels.py").read_bytes()
    rows = grade.grade(unit, source, 5, way, seconds=30)
    assert sum(row.earned for row in rows) == unit.points, [row for row in rows if not row.earned]
