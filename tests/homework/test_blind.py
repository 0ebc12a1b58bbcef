"""Right and wrong answers that were written before anybody looked at the named mistakes.

blind.txt: for each exercise ("== unit name") its right answers, with -- between them, then what
a learner may write instead: a whole body, an expression, or "this text => that text" in the first
right answer (\\n is a new line).
"""

import re

import pytest

from homework import turn
from homework.mistakes import answers, function_of, listed
from tests.homework.test_judged import new_kernel  # noqa: F401 a fixture

ASKED = listed()
UNNAMED = re.compile(r"(result \d+: )?(right shape, wrong|wrong number|wanted shape|wanted dtype)")


@pytest.fixture(autouse=True)
def no_triton(monkeypatch):
    """What is listed are loops in PyTorch; where Triton is installed, kernels are wanted."""
    monkeypatch.setenv("HOMEWORK_ROAD", "torch")


def judged(name, lines):
    exercise = turn.exercise_of(*name.split())
    return turn.attempt(exercise, function_of(exercise, lines))


@pytest.mark.parametrize("name", ASKED)
def test_right_answers_are_taken_wrong_ones_are_not_and_four_in_five_have_a_name(name, note):
    right, wrong = answers(ASKED[name])
    for lines in right:
        found = judged(name, lines)
        assert found.state == "ok", (lines, found.why)
    found = {line: judged(name, lines) for line, lines in wrong.items()}
    assert [line for line, x in found.items() if x.state == "ok"] == []
    silent = [line for line, x in found.items() if x.state == "wrong" and UNNAMED.match(x.why)]
    note("blind list", name, f"{len(wrong) - len(silent)} of {len(wrong)} named")
    assert len(silent) <= 0.2 * len(wrong), silent


def test_ten_wrong_answers_at_least_are_tried():
    assert all(len(answers(ASKED[name])[1]) >= 10 for name in ASKED)


def test_what_the_teaching_machine_does_not_have_is_said_with_what_it_has():
    found = judged("nb11a add", "tl.store(out, tl.sigmoid(tl.load(x)))")
    assert "wanted one of tl.'s abs, arange" in found.why and "got tl.sigmoid" in found.why
