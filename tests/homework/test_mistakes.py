"""The command that tries a mistake: what it says of an edit, what it writes, what it proves."""

import importlib.util
import re

import pytest

from homework import mistakes, turn

FILE = '''"""A unit of one exercise."""

import numpy as np

from homework.marking import Part, Unit, normals

unit = Unit("nb99_example", "An example", "")


@unit.exercise(
    Part("many", 3, lambda r: normals(r, (4, 3))),
    Part("as many", 12, lambda r: normals(r, (3, 3))),
)
def lengths(x):
    """The length of every row of x (N, D): (N,)."""
    return np.sqrt((x**2).sum(-1))


unit.mistakes("""
hint: Square first.
hint: x.square().sum(-1).sqrt()
15 | take the root
     np.sqrt =>
15 | every row has a length of its own
     sum(-1) => sum(0)
""")
'''
LIST = {
    "nb99 lengths": "return x.norm(dim=-1)\n--\nreturn (x * x).sum(-1).sqrt()\nWRONG\n"
    "dim=-1 => dim=0\n"
    "return x.abs().sum(-1)\n"
    "return x.abs().sum(-1) + 0\n"
    "return x.abs().amax(-1)\n"
    "return x.norm(\n"
}


@pytest.fixture
def unit(tmp_path, monkeypatch):
    """A unit in a file of its own, its list, and a solution that runs."""
    path = tmp_path / "nb99.py"

    def load():
        path.touch()
        spec = importlib.util.spec_from_file_location("nb99", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.unit

    path.write_text(FILE, encoding="utf-8")
    found = load()
    found.path_of_test, found.load = path, load
    solved = mistakes.written("def lengths(x):\n    return x.square().sum(-1).sqrt()\n")
    monkeypatch.setattr(turn, "unit_of", lambda name: found)
    monkeypatch.setattr(turn, "solution", lambda unit, name: solved)
    monkeypatch.setattr(mistakes, "listed", lambda: LIST)
    monkeypatch.setenv("HOMEWORK_ROAD", "torch")
    return found


def said(capsys, *asked):
    """(status, what the command says)."""
    with pytest.raises(SystemExit) as end:
        mistakes.main(["nb99", *asked])
    return end.value.code, capsys.readouterr().out


def test_a_new_mistake_is_told_with_its_cost_and_its_line(unit, capsys):
    code, words = said(capsys, "lengths", "np.sqrt((x**2).sum(-1))", "abs(x).sum(-1)")
    assert code == 0
    assert "many, 0/3: right shape, wrong numbers" in words
    assert "many: it differs from the right answer in 9 of 9 cases\n" in words
    assert "It is told apart from 2 named mistakes." in words and "NOT" not in words
    assert words.endswith("15 | SENTENCE\n    np.sqrt((x**2).sum(-1)) => abs(x).sum(-1)\n")


def test_it_says_in_how_many_cases_it_shows(unit, capsys):
    _, words = said(capsys, "lengths", "sum(-1) => sum(-1) + (len(x) == 3)")
    assert "many: it differs from the right answer in 0 of 9 cases\n" in words
    assert "as many: it differs from the right answer in 9 of 9 cases\n" in words
    _, words = said(capsys, "lengths", "x**2 => x**2 * (1 + (x[0, 0] > 0))")
    assert re.search(r"^many: it differs from the right answer in [1-8] of 9 cases$", words, re.M)


def test_it_says_what_it_names_that_had_no_name(unit, capsys):
    _, words = said(capsys, "lengths", "=> abs(x).sum(-1)")
    named = "It names what had no name on the list: "
    assert words.count(named) == 2 and f"{named}return x.abs().sum(-1) + 0" in words
    assert "amax" not in words and "RIGHT" not in words


def test_what_is_named_already_is_said_and_earns_no_line(unit, capsys):
    code, words = said(capsys, "lengths", "sum(-1) => sum(0, keepdims=False)")
    assert code == 1 and "SENTENCE" not in words
    assert "as many, 0/12: every row has a length of its own" in words
    assert "(named: `sum(-1) => sum(0)`)" in words
    assert "It is NOT told apart from `sum(-1) => sum(0)`: every row has" in words


def test_what_is_right_is_no_mistake(unit, capsys):
    code, words = said(capsys, "lengths", "x**2 => x * x")
    assert code == 1 and "It is the right answer in every case: no mistake." in words


def test_an_edit_that_would_name_a_right_answer_is_refused(unit, capsys, monkeypatch):
    """The list is the net: a right answer to which the oracle does not agree."""
    wrong = "return x.abs().sum(-1)\nWRONG\nreturn 0 * x\n"
    monkeypatch.setattr(mistakes, "listed", lambda: {"nb99 lengths": wrong})
    code, words = said(capsys, "lengths", "=> abs(x).sum(-1)")
    assert code == 1 and "It would name a RIGHT answer:\n    return x.abs().sum(-1)" in words


def test_an_edit_of_the_solution_says_what_a_learner_is_told(unit, capsys):
    code, words = said(capsys, "lengths", ".sqrt() =>")
    assert code == 1 and "many, 0/3: take the root" in words
    assert "so this is the solution's; for the table, edit the oracle" in words


def test_an_edit_that_fits_nowhere_is_answered_with_the_oracle(unit, capsys):
    code, words = said(capsys, "lengths", "cube => square")
    assert code == 1 and "'cube' does not occur in the body of lengths" in words
    assert words.endswith("    return np.sqrt((x**2).sum(-1))\n")


def test_an_edit_that_raises_says_so(unit, capsys):
    code, words = said(capsys, "lengths", "sum(-1) => sum(2)")
    assert code == 1 and "the oracle with this edit raises AxisError: " in words


def test_a_sentence_writes_the_edit_into_the_table_where_it_is_told(unit, capsys):
    edit = "np.sqrt((x**2).sum(-1)) => abs(x).max(-1)"
    code, words = said(capsys, "lengths", edit, "--says", "the largest entry is no length")
    text = unit.path_of_test.read_text(encoding="utf-8")
    line = text.splitlines().index("15 | the largest entry is no length") + 1
    assert code == 0 and words.endswith(f"written: nb99.py, line {line}\n")
    assert text == FILE.replace(
        "sum(0)\n", f"sum(0)\n15 | the largest entry is no length\n     {edit}\n"
    )
    exercise = unit.load().exercises["lengths"]
    answer = mistakes.written("def lengths(x):\n    return x.abs().amax(-1)\n")
    told = mistakes.told(exercise, mistakes.answered(exercise, answer))
    assert {why for *_, why in told} == {"the largest entry is no length"}


def test_what_is_written_fits_a_line_and_is_read_again_as_it_was(unit, capsys):
    edit = f"=> {' + '.join(['abs(x).max(-1)  *  0'] * 6)}"
    says = " ".join(["the largest entry, six times, is no length"] * 4)
    code, _ = said(capsys, "lengths", edit, "--says", says)
    text = unit.path_of_test.read_text(encoding="utf-8")
    assert code == 0 and max(map(len, text.splitlines())) <= 100
    wrong = unit.load().exercises["lengths"].wrongs[-1]
    assert (wrong.says, wrong.name) == (says, edit)


def test_a_new_line_is_written_only_into_an_r_string(unit, capsys):
    edit = r"return np.sqrt => x = abs(x)\nreturn np.cbrt"
    with pytest.raises(SystemExit) as end:
        mistakes.main(["nb99", "lengths", edit, "--says", "the third root is too much"])
    assert "wants an r-string" in str(end.value.code) + capsys.readouterr().err
    assert unit.path_of_test.read_text(encoding="utf-8") == FILE


def test_a_unit_is_proved_line_by_line(unit, capsys):
    assert said(capsys) == (0, "lengths: 2 named mistakes, no problems\n")
    unit.mistakes("""
    12 | costs too little
         => 2 * np.sqrt((x**2).sum(-1))
    15 | comes too late
         (x**2).sum(-1) => (x * x).sum(0)
    """)
    code, words = said(capsys, "lengths")
    assert code == 1 and "lengths: 4 named mistakes, 2 problems" in words
    assert "costs 15 with seed 0, and says 12" in words
    assert "`(x**2).sum(-1) => (x * x).sum(0)` is never told its sentence, but: every row" in words


@pytest.mark.parametrize("asked", [["no_such"], ["lengths", "no arrow"], ["lengths", *"abc"]])
def test_a_wrong_question_is_answered_in_a_sentence(unit, capsys, asked):
    with pytest.raises(SystemExit) as end:
        mistakes.main(["nb99", *asked])
    assert end.value.code == 2 and "wanted" in capsys.readouterr().err
