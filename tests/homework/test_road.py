"""hw08: where Triton is, a kernel must have run; elsewhere the report says that none did."""

import copy
import json

import pytest
import torch

from homework import conftest as card
from homework import grade, marking, race, runner
from tests import warm

UNIT = marking.find("hw08")
SOLUTIONS = marking.HERE / "solutions" / UNIT.folder
KERNELS = {name for name, exercise in UNIT.exercises.items() if exercise.kernel is not None}
PROGRAM = """
import json, pathlib, sys
from homework import marking, runner
unit = marking.find("hw08")
names, problems = runner.load(pathlib.Path(sys.argv[1]).read_text())
rows = [unit.mark(names, problems, e, part) for e, part in unit.parts()
        if e.name in (sys.argv[2:] or unit.exercises)]
print(json.dumps([[row.exercise, row.state] for row in rows]))
"""


@pytest.fixture
def triton(monkeypatch):
    """The road where Triton is installed."""
    pytest.importorskip("triton")
    monkeypatch.delenv("HOMEWORK_ROAD", raising=False)


def states(path, *only):
    """{exercise: states of its parts} of a file, in a process that interprets kernels."""
    done = warm.run(["-c", PROGRAM, path, *only])
    assert done.returncode == 0, done.stderr
    found = {}
    for exercise, state in json.loads(done.stdout.splitlines()[-1]):
        found.setdefault(exercise, set()).add(state)
    return found


def test_five_exercises_ask_for_a_kernel():
    assert len(KERNELS) == 5 and "copy_tiles" in KERNELS and "table_gradient" not in KERNELS


def test_where_triton_is_right_numbers_without_a_kernel_are_told_so(triton):
    found = states(SOLUTIONS / "reference.py")
    assert {name for name, said in found.items() if said == {"road"}} == KERNELS
    assert {name for name, said in found.items() if said == {"ok"}} == set(found) - KERNELS


def test_kernels_earn_everything_in_the_public_tests(triton):
    found = states(SOLUTIONS / "triton_kernels.py")
    assert found == dict.fromkeys(UNIT.exercises, {"ok"}) and KERNELS < set(found)


def test_the_kernels_of_the_solution_are_those_that_notebook_11a_teaches():
    """Flash in tiles that tl.dot takes, with fp32 accumulators, and asked in fp32 alone."""
    text = (SOLUTIONS / "triton_kernels.py").read_text()
    assert text.count("tl.dot(") == 2 and "tl.zeros((BLOCK_M, E), tl.float32)" in text
    for name in ("flash", "gather_flash"):
        exercise = UNIT.exercises[name]
        for part in exercise.parts:
            for q, _, v, *_, block_m, block_n in exercise.cases(part, 0):
                assert q.dtype == v.dtype == "float32"
                assert min(q.shape[1], v.shape[1], block_m, block_n) >= 16


def test_the_pytorch_road_earns_everything_and_says_what_it_is(monkeypatch):
    monkeypatch.setenv("HOMEWORK_ROAD", "torch")
    assert set.union(*states(SOLUTIONS / "reference.py").values()) == {"ok"}
    assert "no kernel has been shown to run" in marking.road_of(UNIT)
    assert marking.road_of(marking.find("hw03")) == ""
    rows = [marking.Row("copy_tiles", "whole blocks", 2, "ok", "")]
    assert "the PyTorch road" in grade.results(UNIT, rows, 1, 5)["output"]


def test_where_there_is_no_triton_nothing_asks_for_it(monkeypatch):
    monkeypatch.delenv("HOMEWORK_ROAD", raising=False)
    monkeypatch.setattr(marking.importlib.util, "find_spec", lambda name: None)
    assert marking.road() == "torch"


def test_a_kernel_that_stores_less_than_the_result_is_not_enough(triton, tmp_path):
    text = (SOLUTIONS / "triton_kernels.py").read_text()
    reference = (SOLUTIONS / "reference.py").read_text()
    alibi = """
from reference_of_the_test import copy_tiles as plain
kernel_copy = copy_tiles
def copy_tiles(x, block):
    kernel_copy(x[:1], block)
    return plain(x, block)
"""
    (tmp_path / "reference_of_the_test.py").write_text(reference)
    file = tmp_path / "gather_attention.py"
    file.write_text(f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\n{text}\n{alibi}")
    assert states(file, "copy_tiles")["copy_tiles"] == {"road"}


def test_the_grader_looks_at_what_ran(triton, way):
    """Right numbers without kernels; with them, test_grade.py has the same exercises graded."""
    few = [name for name in UNIT.exercises if name in ("copy_tiles", "gather_flash")]
    unit = copy.copy(UNIT)
    unit.exercises = {name: UNIT.exercises[name] for name in few}
    rows = grade.grade(unit, (SOLUTIONS / "reference.py").read_bytes(), 5, way, seconds=30)
    assert {row.state for row in rows} == {"road"}, rows


def test_wrong_numbers_are_told_before_the_road(triton):
    exercise = UNIT.exercises["copy_tiles"]
    part = exercise.parts[0]
    wanted = [exercise.expected(part, 0, case) for case in range(3)]
    given = [dict(state="ok", stored=0)] * 3
    narrow = [[x.astype("f4") if x.dtype == "f8" else x for x in arrays] for arrays in wanted]
    narrow[2] = wanted[2]
    assert exercise.verdict(part, 0, given, narrow)[0] == "road"
    wrong = [[arrays[0] + 1, *arrays[1:]] for arrays in narrow]
    assert exercise.verdict(part, 0, given, wrong)[0] == "wrong"


def test_the_card_and_the_grader_use_the_same_words():
    assert card.road_of is grade.road_of is marking.road_of


# ---- the race ------------------------------------------------------------------------------------


def test_only_a_right_answer_races():
    given = race.inputs(200, 50)
    names, _ = runner.load((SOLUTIONS / "reference.py").read_text())
    right = names["histogram_decode"]
    assert race.race(right, right, given, rounds=3) > 0
    with pytest.raises(SystemExit, match="no place on the board: out: other numbers"):
        race.race(lambda *x: (*right(*x)[:2], right(*x)[2] * 1.1), right, given, rounds=1)
    with pytest.raises(SystemExit, match="wanted three results"):
        race.race(lambda *x: right(*x)[2], right, given, rounds=1)


def test_who_writes_to_the_inputs_harms_nobody():
    given = race.inputs(200, 50)
    kept = race.fresh(given)
    names, _ = runner.load((SOLUTIONS / "reference.py").read_text())
    right = names["histogram_decode"]

    def writes(scores, ids, table, gain):
        found = right(scores, ids, table, gain)
        for x in (scores, ids, table):
            x.zero_()
        return found

    assert race.race(writes, right, given, rounds=2) > 0
    assert all(torch.equal(x, y) for x, y in zip(given[:3], kept[:3]))


STUB = "def histogram_decode(scores, ids, table, gain):\n    "


@pytest.mark.parametrize(
    "text, says",
    [
        (f"{STUB}return 1 +\n", "histogram_decode: line 2 cannot be read (syntax error): "),
        (f"{STUB}return 1 / 0\n", "histogram_decode: it raised ZeroDivisionError in line 2: "),
        (f"{STUB}exit()\n", "histogram_decode: it raised SystemExit in line 2"),
        (f"{STUB}raise NotImplementedError\n", "histogram_decode: not written yet"),
        (f"{STUB}return F.relu(scores)\n", "write `import torch.nn.functional as F` above"),
        (f"{STUB}return [0], [0], [0]\n", "tokens: wanted a tensor, got list"),
        (f"@slow\n{STUB}return 0\n", "histogram_decode: it raised NameError in line 2: "),
        (f"def racing_{STUB[4:]}1 +\n", "racing_histogram_decode: line 2 cannot be read"),
        ("x = 1\n", "wanted racing_histogram_decode or histogram_decode in "),
    ],
)
def test_what_cannot_race_is_told_in_a_sentence_with_its_line(tmp_path, text, says):
    file = tmp_path / "gather_attention.py"
    file.write_text(text)
    with pytest.raises(SystemExit) as end:
        given = race.inputs(200, 50)
        race.race(race.learners(file), lambda *x: x[:3], given, rounds=1)
    assert says in end.value.code and "\n" not in end.value.code


def test_the_board_keeps_what_was_run_and_shows_the_best_first(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))
    names, _ = runner.load((SOLUTIONS / "reference.py").read_text())
    monkeypatch.setattr(race, "learners", lambda path: names["histogram_decode"])
    ratios = iter([1.5, 2.5])
    monkeypatch.setattr(race, "race", lambda *given: next(ratios))
    for name in ("ada", "bo"):
        race.main([name, "--keys", "100", "--vocabulary", "20"])
    said = capsys.readouterr().out
    assert said.index("1.  2.50  bo") > said.index("1.  1.50  ada")
    assert "2.  1.50  ada" in said and len(race.board().read_text().splitlines()) == 2


@pytest.mark.parametrize("other", ["--keys", "--vocabulary", "threads"])
def test_the_board_compares_only_races_over_the_same_course(tmp_path, monkeypatch, capsys, other):
    """With fewer tokens there are fewer rows to read, and another ratio."""
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))
    monkeypatch.setattr(race, "learners", lambda path: None)
    monkeypatch.setattr(race, "race", lambda *given: 2.0)
    course = {"--keys": 100, "--vocabulary": 20, "threads": 1}
    for name, asked in dict(ada=course, bo=course | {other: 50}, cy=course).items():
        monkeypatch.setattr(race.torch, "get_num_threads", lambda n=asked["threads"]: n)
        words = [f"{option}={asked[option]}" for option in ("--keys", "--vocabulary")]
        capsys.readouterr()
        race.main([name, *words])
    said = capsys.readouterr().out
    assert "1.  2.00  ada" in said and "2.  2.00  cy" in said and "bo" not in said
