"""Does the isolated grader hold? A class in one folder: attacks, honest work beside each, one that hangs."""
import argparse
import copy
import csv
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest

from homework import marking, grade, gradescope, runner
from tests.homework.attacks import INSIDE, OUTSIDE, SHIPPED
from tests.homework.classroom import HOMEWORK, HONEST, UNIT, WHOLE, attacked

BESIDE = UNIT.points - UNIT.exercises["skip_heads"].points  # what the honest part of every attack is worth


def options(way):
    return argparse.Namespace(seed=7, isolation=way, seconds=4, memory=4, most=90, jobs=os.cpu_count())


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


@pytest.fixture(scope="module")
def graded(tmp_path_factory, home, way):
    """{name: (score, {exercise: earned}, results)} of the whole folder, graded side by side."""
    root = tmp_path_factory.mktemp("class")
    handed, out = root / "handed", root / "out"
    handed.mkdir()
    names = {}

    def hand_in(name, text, **files):
        names[name] = f"learner-{len(names):02}"
        text = text.replace("RESULTS", str(out / f"{names[name]}.json")).replace("HOMEWORK", str(HOMEWORK))
        text = text.replace("MARKER", str(root / "marker")).replace("PORT", str(home[0]))
        if files:
            (handed / names[name]).mkdir()
            for file, content in files.items():
                (handed / names[name] / file).write_text(content)
            (handed / names[name] / UNIT.file).write_text(text)
        else:
            (handed / f"{names[name]}.py").write_text(text)

    hand_in("honest", HONEST)
    for name, body in INSIDE.items():
        if name != "a full disk" or way == "namespaces":        # elsewhere it would be this machine's disk
            hand_in(name, attacked("skip_heads", body))
    for name, text in OUTSIDE.items():
        hand_in(name, f"{HONEST}\ndel skip_heads\n{text}\n")
    hand_in("shipped files", f"{HONEST}\ndel skip_heads\n", **SHIPPED)
    hand_in("hangs when read", f"{HONEST}\nwhile True:\n    pass\n")
    (handed / "nothing").mkdir()
    names["nothing"] = "nothing"
    before = {path: path.read_bytes() for path in HOMEWORK.rglob("*.py")}
    grade.folder(UNIT, sorted(handed.iterdir()), out, options(way))
    found = {}
    for name, stem in names.items():
        result = json.loads((out / f"{stem}.json").read_text())
        earned = {}
        for test in result["tests"]:
            earned[test["name"].split(":")[0]] = earned.get(test["name"].split(":")[0], 0) + test["score"]
        found[name] = result.get("score"), earned, result
    with open(out / "grades.csv") as file:
        found["table"] = list(csv.DictReader(file))
    found["changed"] = [path for path, text in before.items() if path.read_bytes() != text]
    found["marker"] = (root / "marker").exists()
    return found


@pytest.mark.parametrize("name", [*INSIDE, *OUTSIDE, "shipped files"])
def test_an_attack_earns_nothing_and_the_honest_work_beside_it_earns_its_points(graded, name, way):
    if name not in graded:
        pytest.skip(f"not tried under {way}")
    score, earned, result = graded[name]
    assert earned["skip_heads"] == 0, result
    assert score == BESIDE, result
    assert_gradescope(result)


def test_honest_work_earns_everything(graded):
    assert graded["honest"][0] == UNIT.points


def test_a_folder_loses_nobody_even_if_one_hangs(graded):
    rows = graded["table"]
    assert len(rows) >= 30 and all(row["score"] != "" and row["of"] == str(UNIT.points) for row in rows)
    assert graded["hangs when read"][0] == 0 and graded["nothing"][0] == 0
    assert [sum(int(row[name]) for name in UNIT.exercises) for row in rows] == [int(row["score"]) for row in rows]


def test_nobody_called_home(graded, home, way):
    if way != "namespaces":
        pytest.skip("the network is open here: no namespaces")
    assert home[1] == []


def test_the_grader_never_unpickled_anything(graded):
    assert not graded["marker"]


def test_no_file_of_the_course_was_touched(graded):
    assert graded["changed"] == []


@pytest.mark.parametrize("name, why", [
    ("an answer of 32 megabytes", "too large"), ("a loop that resets timers", "in time"), ("NaN", "not finite"),
    ("one number that would broadcast", "shape"), ("inputs zeroed in place", "its own inputs"),
    ("pytest.skip in the function", "it raised"), ("shipped files", "no function")])
def test_the_results_say_why(graded, name, why):
    said, = [test["output"] for test in graded[name][2]["tests"] if test["name"].startswith("skip_heads")]
    assert why in said


def test_hidden_results_hold_prepared_sentences_only(graded):
    """Whatever a submission raises or returns, none of its own words reach the results."""
    for name in graded.keys() & {*INSIDE, *OUTSIDE}:
        for test in graded[name][2]["tests"]:
            assert "not today" not in test["output"] and "hidden inputs" not in test["output"]


def assert_gradescope(result):
    """The documented shape of results.json: a score on top or on every test, known keys, known words."""
    top = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
           "stdout_visibility", "extra_data", "tests", "leaderboard"}
    inner = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags",
             "visibility", "extra_data"}
    assert set(result) <= top and isinstance(result["execution_time"], int)
    assert "score" in result or (result["tests"] and all("score" in test for test in result["tests"]))
    assert isinstance(result.get("score", 0.0), (int, float)) and isinstance(result["output"], str)
    for test in result["tests"]:
        assert set(test) <= inner and isinstance(test["name"], str) and isinstance(test["output"], str)
        assert 0 <= test["score"] <= test["max_score"] and test["status"] in ("passed", "failed")
        assert test.get("visibility", "visible") in ("visible", "hidden", "after_due_date", "after_published")


def test_a_crash_of_the_grader_is_no_zero_and_leaves_valid_results(tmp_path, monkeypatch, way):
    (tmp_path / "kv_cache.py").write_text(HONEST)
    monkeypatch.setattr(marking.Exercise, "expected", lambda *a: 1 / 0)
    graded = grade.one(UNIT, tmp_path / "kv_cache.py", tmp_path / "results.json", options(way))
    result = json.loads((tmp_path / "results.json").read_text())
    assert graded.rows is None and "ZeroDivisionError" in graded.note
    assert "score" not in result and result["tests"][0]["max_score"] == 0 and "not a mark" in result["output"]
    assert_gradescope(result)


def test_a_grader_that_is_killed_leaves_valid_results(tmp_path, way):
    (tmp_path / "kv_cache.py").write_text("import time\ntime.sleep(60)\n")
    file, out = str(tmp_path / "kv_cache.py"), str(tmp_path / "r.json")
    command = [sys.executable, "-m", "homework.grade", "hw03", file, "--out", out]
    with subprocess.Popen(command, cwd=HOMEWORK.parent, stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "r.json").exists():
            assert process.poll() is None
        process.kill()
    result = json.loads((tmp_path / "r.json").read_text())
    assert "did not finish" in result["output"]
    assert_gradescope(result)


def test_the_same_seed_asks_the_same_and_another_seed_something_else():
    e = UNIT.exercises["skip_heads"]
    part = e.parts[0]
    same, other = e.cases(part, 3), e.cases(part, 4)
    assert all(np.array_equal(a, b) for a, b in zip(same[0], marking.Exercise.cases.__wrapped__(e, part, 3)[0]))
    assert not np.array_equal(same[0][0], other[0][0])


@pytest.mark.parametrize("reply", [
    b"", b"\n", b"[]", b"1\n", b'[{"state": "ok"}]\n', b'[{"state": ["ok"], "arrays": 1}]\n',
    b'[{"state": "ok", "arrays": 1e999}]\n', runner.pack([dict(state="ok", arrays=1)], [np.zeros(3)])[:-1],
    runner.pack([dict(state="ok", arrays=2)], [np.zeros(3)]),
    runner.pack([dict(state="ok", arrays=1)], [np.array(["text"])])])
def test_bytes_that_are_no_answer_are_refused(reply):
    try:
        states, answers = grade.read(reply, 1)
    except Exception:
        return                                                  # grade() calls this "its answer could not be read"
    assert UNIT.exercises["skip_heads"].verdict(UNIT.exercises["skip_heads"].parts[0], 0, states, answers)[0] != "ok"


def test_an_answer_comes_back_as_it_was_sent():
    sent = [np.arange(6.0).reshape(2, 3), np.asfortranarray(np.ones((3, 2), "f4")), np.array(3), np.array([True])]
    (state,), (came,) = grade.read(runner.pack([dict(state="ok", arrays=4)], sent), 1)
    assert state["state"] == "ok" and all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(sent, came))


def test_without_isolation_the_grader_says_so_and_refuses_if_told_to_or_if_it_is_root(tmp_path, capsys, monkeypatch):
    (tmp_path / "kv_cache.py").write_text(HONEST)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path / "kv_cache.py"), "--isolation", "none"])
    with pytest.raises(grade.GraderError, match="never run as root"):
        grade.Sandbox(b"", "none", 1, 4)
    assert "OPEN" in capsys.readouterr().err
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SystemExit):
        grade.main(["hw03", str(tmp_path / "kv_cache.py"), "--isolation", "none", "--require-isolation"])
    assert "OPEN" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        grade.main(["--help"])
    assert "OPEN" in capsys.readouterr().out


@pytest.mark.parametrize("name", [WHOLE.file, "kv_cache (1).py"])
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
    if name == WHOLE.file:
        assert result["score"] == WHOLE.points - WHOLE.exercises["owners"].points
    else:
        assert result["score"] == 0 and "kv_cache.py was not handed in" in result["tests"][0]["output"]
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["results.json"]
    assert not list((tmp_path / "source").rglob("*solutions*"))


def test_each_learner_of_a_class_has_results_of_its_own(tmp_path, monkeypatch, capsys, way):
    monkeypatch.chdir(tmp_path)
    handed = tmp_path / "handed"
    for name in ("j.miller", "j.smith"):
        (handed / name).mkdir(parents=True)
    (handed / "j.smith" / "my_cache.py").write_text("def owners(plan, layers, anchors):\n    return [], []\n")
    for out, told in (("results", []), ("graded.v2", ["--out", "graded.v2"])):
        assert grade.main(["hw03", str(handed), "--isolation", way, *told]) == 0
        assert {path.name for path in (tmp_path / out).iterdir()} == {"grades.csv", "j.miller.json", "j.smith.json"}
        with open(tmp_path / out / "grades.csv") as file:
            rows = list(csv.DictReader(file))
        assert [row["submission"] for row in rows] == ["j.miller", "j.smith"]
        assert [row["note"] for row in rows] == ["kv_cache.py missing", "kv_cache.py missing; found my_cache.py"]
        assert "j.smith" in (table := capsys.readouterr().out) and "found my_cache.py" in table
    (handed / "gus.zip").write_bytes(b"")
    one = handed / "j.miller" / "inner"
    one.mkdir()
    (one / "kv_cache.py").write_text("")
    assert grade.main(["hw03", str(handed), "--isolation", way, "--out", "again"]) == 0
    said = capsys.readouterr()
    assert "not graded, neither a folder nor a .py file: gus.zip" in said.err
    assert "kv_cache.py missing; a folder below holds one" in said.out
    (handed / "j.smith.py").write_text("")
    (tmp_path / "nobody").mkdir()
    for folder, why in ((handed, "j.smith as a file and as a folder"), (tmp_path / "nobody", "holds no kv_cache.py")):
        with pytest.raises(SystemExit):
            grade.main(["hw03", str(folder)])
        assert why in capsys.readouterr().err


def test_a_place_where_results_cannot_be_is_told_before_anything_runs(tmp_path, capsys, way):
    file = tmp_path / "kv_cache.py"
    file.write_text("")
    for told, words in ((["--out", "/proc/x/results.json"], "results cannot be written to"), (["--jobs", "0"], "wanted 1 or more, came 0")):
        with pytest.raises(SystemExit):
            grade.main(["hw03", str(file), *told])
        assert words in capsys.readouterr().err
    (tmp_path / "marks").mkdir()
    assert grade.main(["hw03", str(file), "--isolation", way, "--out", str(tmp_path / "marks")]) == 0
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["kv_cache.json"]


def test_the_zip_brings_what_a_unit_asks_for():
    """A CPU build of torch has no Triton, and without it honest kernels would lose their points."""
    assert "triton" in marking.find("hw08").prelude and '"triton>=3.6"' in gradescope.SETUP


def test_triton_kernels_are_graded_in_the_interpreter(tmp_path, way):
    pytest.importorskip("triton")
    unit = copy.copy(marking.find("hw08"))
    unit.exercises = {name: unit.exercises[name] for name in ("copy_tiles", "gather_flash", "split_decode")}
    source = (HOMEWORK / "solutions" / unit.folder / "triton_kernels.py").read_bytes()
    rows = grade.grade(unit, source, 5, way, seconds=30)
    assert sum(row.earned for row in rows) == unit.points, [row for row in rows if not row.earned]
