"""Does a learner get a report card that helps: partial credit, reasons, hints, files, and a way
back to the stub?"""

import itertools
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

from homework import marking, reset, runner
from tests import warm

HOMEWORK = Path(marking.__file__).parent
UNIT = marking.find("hw03")
HONEST = (HOMEWORK / "solutions" / UNIT.folder / "reference.py").read_text()

SKIP = "return torch.cat([own, v1[:, :, half:]], 2)"


def changed(text, *edits):
    """The text with each (old, new) put in place: every old one is there."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


HALF = changed(
    HONEST,
    (" / D**0.5 ", " "),
    (SKIP, SKIP.replace("]], 2)", "], 2)")),
    ("def windowed_bytes", "import nonsense_that_is_not_installed\n\n\ndef windowed_byte"),
    ("turns = ((smooth", "raise ValueError('tired') ;((smooth"),
    ("    return 37.5, 33.7, 4.0", "    raise NotImplementedError"),
)


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A copy of homework/ in which a learner works, without the solutions."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(
        HOMEWORK, root / "homework", ignore=shutil.ignore_patterns("__pycache__", "solutions")
    )
    options = 'pythonpath = ["."]\naddopts = "--import-mode=importlib --strict-markers"\n'
    (root / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{options}")
    file_of(root).parent.mkdir(parents=True)
    return root


def file_of(course):
    """Where a learner writes."""
    return course / "work" / UNIT.folder / UNIT.file


def card(course, text, *arguments):
    file_of(course).write_text(text)
    quick = ["-p", "no:cacheprovider", "-p", "no:anyio"]  # a plugin that takes a third of a card
    words = ["-m", "pytest", f"homework/{UNIT.folder}", *quick, *arguments]
    return warm.run(words, cwd=course).stdout


def said_of(text, name):
    """What a card says of an exercise's first part, its wrapped lines joined."""
    rows = text.splitlines()
    at = next(i for i, row in enumerate(rows) if row.startswith(f"{name}:"))
    more = itertools.takewhile(lambda row: row.startswith("        "), rows[at + 1 :])
    return " ".join([rows[at], *(row.strip() for row in more)])


def one_line(text):
    return " ".join(text.split())


def test_a_broken_line_a_wrong_answer_and_a_missing_function_each_cost_only_their_parts(course):
    assert HALF.count("nonsense") == 1 and "tired" in HALF
    text = card(course, HALF, "--card", "card.md", "--junitxml", "card.xml")
    lost = {
        "grouped_attention",
        "skip_heads",
        "windowed_bytes",
        "critical_point",
        "predict_savings",
    }
    left = UNIT.points - sum(UNIT.exercises[name].points for name in lost)
    assert f"{left} of 100 points" in text, text
    line = {name: said_of(text, name) for name in UNIT.exercises}
    assert (
        "not divided by the square root" in line["grouped_attention"]
        and "0/7" in line["grouped_attention"]
    )
    assert re.search(r"line \d+ cannot be read \(syntax error\)", line["skip_heads"])
    assert "no function of this name" in line["windowed_bytes"]
    assert "raised ValueError in line" in line["critical_point"]
    assert "not written yet" in line["predict_savings"] and "4/4" in line["owners"]
    assert "nonsense_that_is_not_installed" in text and "Traceback" not in text
    after = one_line(text).partition("grouped_attention:")[2].partition("skip_heads:")[0]
    assert "(--hint 1 says more)" in after and "hint 1 of" not in after, "the mistake is named"
    raised = one_line(text).partition("critical_point:")[2]
    assert "hint 1 of" in raised.partition("(--hint 2 says more)")[0], "and that one is not"
    markdown = (course / "card.md").read_text()
    assert markdown.startswith("# hw03") and "| part | points | why | next hint |" in markdown
    assert (
        len([row for row in markdown.splitlines() if row.startswith("| ")]) == len(UNIT.parts()) + 2
    )
    cases = xml.parse(course / "card.xml").iter("testcase")
    properties = [
        {p.get("name"): int(p.get("value")) for p in case.iter("property")} for case in cases
    ]
    assert (
        sum(p["points"] for p in properties) == 100 and sum(p["earned"] for p in properties) == left
    )


def test_a_wrong_answer_without_a_name_comes_with_its_case(course):
    """The learner can ask the same again; hidden cases say nothing of themselves."""
    tight = changed(
        HONEST,
        (SKIP, SKIP.replace("return", "return 2 *")),
        ("def grouped_attention(q, k, v):", "def grouped_attention(q, k, v):\n    q.view(-1)"),
    )
    text = card(course, tight)
    assert "; asked with v=float32 (2, 5, 2, 3), v1=float32 (2, 5, 8, 3)" in one_line(text), text
    assert "every number is 2 times the wanted one" in one_line(text)
    assert re.search(
        r"raised RuntimeError in line \d+: view size .*; "
        r"asked with q=float32 \(2, 5, 6, 6\) not contiguous, k=",
        one_line(text),
    )
    rows = [(UNIT.exercises["owners"], part) for part in UNIT.exercises["owners"].parts]
    for owners, part in rows:
        says = [
            owners.verdict(part, 0, [dict(state="ok")] * 3, [[]] * 3, hidden)[1]
            for hidden in (False, True)
        ]
        assert says[0].startswith(says[1] + "; asked with plan=") and "asked" not in says[1]


def test_an_error_that_a_function_inherits_is_traced_to_its_source(course):
    """One mistake in a helper is one thing to fix, though two lines of the card lose."""
    grouped, skip = "def grouped_attention(q, k, v):", "def skip_heads(v, v1):"
    leaning = changed(
        HONEST,
        (skip, f"{skip}\n    grouped_attention(v, v, v)"),
        (grouped, f"{grouped}\n    raise ValueError('tired')"),
    )
    text = card(course, leaning)
    proved = "with the right grouped_attention in its place your skip_heads passes"
    assert one_line(text).count(f"{proved}: fix grouped_attention first") == 1
    # beside the hints, not in their place
    after = text.split("\nskip_heads:")[1].split("\nsvformer:")[0]
    assert "hint 1" in after and "hint 1 of 2: Give every query head" in text


def test_a_function_is_not_blamed_where_the_right_one_would_not_help(course):
    """Its caller has a mistake of its own, or calls it for nothing."""
    grouped, skip = "def grouped_attention(q, k, v):", "def skip_heads(v, v1):"
    own = changed(
        HONEST,
        (skip, f"{skip}\n    grouped_attention(v, v, v)"),
        (SKIP, SKIP.replace("return", "return 2 *")),
        (grouped, f"{grouped}\n    raise ValueError('tired')"),
    )
    assert "in its place your skip_heads" not in one_line(card(course, own))
    idle = changed(
        HONEST,
        (SKIP, SKIP.replace("return", "grouped_attention; return 2 *")),
        (grouped, f"{grouped}\n    raise ValueError('tired')"),
    )
    assert "in its place your skip_heads" not in one_line(card(course, idle))


def test_a_forgotten_return_is_told(course):
    text = one_line(card(course, changed(HONEST, (SKIP, SKIP.replace("return ", "")))))
    assert "skip_heads: half the heads 0/" in text
    assert "it returned None: a `return` is missing" in text


def test_a_hint_for_one_part_is_not_given_for_another():
    from homework import conftest

    unit = marking.find("hw04")
    exercise = unit.exercises["predict_lambdas"]
    first, second = (part.name for part in exercise.parts)
    rows = [marking.Row(exercise.name, name, 3, "wrong", "no") for name in (first, second)]
    told = [conftest.next_hints(unit, row, 1) for row in rows]
    assert told[0] == [f"hint 1 of 1: {exercise.hints_for(first)[0]}"]
    assert told[1] == [f"hint 1 of 1: {exercise.hints_for(second)[0]}"] and told[0] != told[1]
    assert len(exercise.hints) == 2


def test_the_first_hint_speaks_to_the_diagnosis():
    """A general hint after an exact diagnosis would only lead away from it."""
    from homework import conftest

    unit = marking.find("hw01")
    exercise = unit.exercises["prefix_mask"]
    for wrong in exercise.wrongs:
        row = marking.Row(exercise.name, exercise.parts[0].name, 4, "wrong", wrong.says)
        told = conftest.next_hints(unit, row, None)
        assert told == [f"hint: {wrong.hint}", "(--hint 1 says more)"] and wrong.hint
        assert conftest.next_hints(unit, row, 1)[0] == f"hint 1 of 2: {exercise.hints[0]}"
    others = unit.exercises["attention"]
    row = marking.Row(others.name, others.parts[0].name, 14, "wrong", others.wrongs[-1].says)
    assert not others.wrongs[-1].hint, "what is wrong is said, and nothing leads away from it"
    assert conftest.next_hints(unit, row, None) == ["(--hint 1 says more)"]
    row = marking.Row(exercise.name, exercise.parts[0].name, 4, "wrong", "right shape, wrong …")
    assert conftest.next_hints(unit, row, None)[0].startswith("hint 1 of 2: ")


def test_why_it_is_so_is_said_in_the_first_run_and_when_it_is_asked_for(course):
    file_of(course).write_text(HONEST, encoding="utf-8")
    words = ["-m", "pytest", f"homework/{UNIT.folder}", "-k", "owners"]
    runs = [warm.run([*words, *more], cwd=course).stdout for more in ([], [], ["--why"])]
    says = ["owners is right. Why it is so" in text for text in runs]
    assert says == [True, False, True], runs[1]
    assert "--why says again" in runs[1] and "--why says again" not in runs[0]


def test_a_line_of_the_card_fits_80_columns(course):
    text = card(course, HALF, "--hint", "9")
    body = text[text.index("grouped_attention:") :]
    rows = [row for row in body.splitlines() if row[:8] == " " * 8 and "hint" not in row]
    assert rows and all(len(row) <= 80 for row in rows)


def test_the_reference_earns_a_full_card_and_an_untouched_stub_shows_no_hints(course):
    assert "100 of 100 points" in card(course, HONEST)
    text = card(course, UNIT.stub())
    assert (
        "0 of 100 points" in text
        and text.count("not written yet") == len(UNIT.parts())
        and "hint 1 of" not in text
    )


def test_hints_come_in_levels(course):
    text = card(course, UNIT.stub(), "--hint", "2")
    assert "hint 2 of 3: First list the layers" in text and "hint 3 of 3" not in text


def test_reset_writes_the_stub_and_keeps_every_file_of_the_learner(course, monkeypatch):
    monkeypatch.setattr(marking, "HERE", course / "homework")
    file_of(course).unlink(missing_ok=True)
    assert reset.reset(UNIT) is None and UNIT.path.read_text() == UNIT.stub()
    assert reset.reset(UNIT) is None, "there is nothing to keep"
    for text in ("first = 1\n", "second = 2\n"):
        UNIT.path.write_text(text)
        assert reset.reset(UNIT).read_text() == text and UNIT.path.read_text() == UNIT.stub()
    assert len(list(UNIT.path.parent.glob("kv_cache.mine-*.py"))) == 2


def test_the_card_says_which_file_it_read(course):
    text = card(course, HALF, "-k", "windowed")
    assert f"your file: work/{UNIT.folder}/{UNIT.file}" in text
    assert "no function of this name" in text


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarm")
def test_an_endless_loop_costs_its_own_part_and_ends(course, monkeypatch):
    monkeypatch.setattr(marking, "HERE", course / "homework")
    monkeypatch.setattr(marking, "SECONDS", 1)
    before = signal.getsignal(signal.SIGALRM)
    UNIT.path.write_text(HONEST + "\n\ndef skip_heads(v, v1):\n    while True:\n        pass\n")
    with pytest.raises(marking.Lost, match="did not finish in time: it was still in line"):
        UNIT.check("skip_heads", "half the heads")
    UNIT.check("owners", "anchors")
    UNIT.path.write_text("while True:\n    pass\n\n\n" + HONEST)
    with pytest.raises(marking.Lost, match="did not finish in time"):
        UNIT.check("owners", "anchors")
    UNIT.check("owners", "anchors")
    assert (
        signal.getsignal(signal.SIGALRM) is before and signal.getitimer(signal.ITIMER_REAL)[0] == 0
    )
    UNIT.rows.clear()


def test_an_unknown_unit_is_answered_with_the_known_ones():
    with pytest.raises(SystemExit, match="hw03_kv_cache"):
        marking.find("hw99")


@pytest.mark.parametrize(
    "text, good, bad",
    [
        (
            "def a():\n    return 1\n\n\ndef b():\n    return (1\n\n\ndef c():\n    return 3\n",
            "ac",
            "b",
        ),
        ('def a():\n    """never closed\n\n\ndef b():\n    return 2\n', "b", "a"),
        ("@nothing\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n", "b", "a"),
        ("import nothing_of_this_name\ndef a():\n    return 1\n", "a", ""),
        ("raise SystemExit\ndef a():\n    return 1\n", "a", ""),
        (
            "from __future__ import annotations\ndef a(x: Missing = 1) -> Gone:\n    return x\n",
            "a",
            "",
        ),
        ("def a():\n\treturn 1\n\ndef b():\n  x = 1\n    y = 2\n", "a", "b"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass K:\n    n: int = 1\ndef "
            "a():\n    return K().n\n",
            "a",
            "",
        ),
    ],
)
def test_a_file_is_read_definition_by_definition(text, good, bad):
    names, problems = runner.load(text)
    for name in good:
        assert runner.answer(names, problems, name, ())[0] == dict(state="ok"), problems
    for name in bad:
        assert runner.answer(names, problems, name, ())[0]["state"] in ("broken", "raised")


@pytest.mark.parametrize(
    "body, ends",
    [
        ("return x @ x", "2x3); in `x @ x` x is (2, 3)"),
        ("return (x @\n            x)", "2x3); in `x @ x` x is (2, 3)"),
        ("out = torch.zeros(4); out[1:] = x", "in `out[1:] = x` out is (4,), x is (2, 3)"),
        ("for t in range(4): y = 1 + x[t]", "size 2; in `x[t]` x is (2, 3), t is 2"),
        ("w = torch.ones(3).double(); x @ w", "in `x @ w` x is float32 (2, 3), w is float64 (3,)"),
        ("parts = [x, x]; x + parts[2]", "range; in `parts[2]` parts is a list of 2"),
        ("w = None; return w[0]", "subscriptable; in `w[0]` w is None"),
        ("n = 10 ** 9999; n.x", "no attribute 'x'"),
        ("x < 0.5 & (x > 0)", "write (x < y) & z; in `0.5 & (x > 0)` x is (2, 3)"),
        ("max(x, 0)", "torch.where and torch.clamp; in `max(x, 0)` x is (2, 3)"),
        ("x @ torch.ones(3).double()", "s them one; in `x @ torch.ones(3).double()` x is (2, 3)"),
        ("torch.tensor([x, x])", "puts tensors together; in `torch.tensor([x, x])` x is (2, 3)"),
        ("float(x)", "to Python scalars; in `float(x)` x is (2, 3)"),
        ("import math; math.log(x)", "takes a tensor; in `math.log(x)` x is (2, 3)"),
        ("return nothing + 1", "name 'nothing' is not defined"),
        ("return relu(x)", "name 'relu' is not defined: PyTorch's is torch.relu"),
        ("return t + 1", "name 't' is not defined"),
        ("raise NameError('no word', name=5)", "no word"),
    ],
)
def test_an_error_says_what_was_computed_with_which_shapes(body, ends):
    import numpy as np

    names, _ = runner.load(f"import torch\n\ndef f(x):\n    {body}\n")
    state, _ = runner.answer(names, {}, "f", [np.ones((2, 3), "f4")])
    assert state["detail"].endswith(ends)


@pytest.mark.parametrize(
    "body, state",
    [
        ("raise NotImplementedError", "todo"),
        ("return {}", "type"),
        ("return None", "nothing"),
        ("return 'text'", "type"),
        ("x.zero_(); return x", "changed"),
        ("exit()", "raised"),
        ("return x.to(torch.complex64)", "type"),
        ("return x", "ok"),
        ("return x[1:]", "ok"),
        ("return 1, x.view(3, 1)", "ok"),
        ("return x.numpy()", "ok"),
        ("return x + 0", "ok"),
        ("return [1, 2]", "ok"),
        ("return x.clone().requires_grad_()", "ok"),
        ("import pytest; pytest.skip()", "raised"),
    ],
)
def test_a_call_ends_in_a_known_state(body, state):
    import numpy as np

    names, problems = runner.load(f"import torch\ndef f(x):\n    {body}\n")
    assert runner.answer(names, problems, "f", (np.ones(3, "f4"),))[0]["state"] == state


@pytest.mark.parametrize(
    "body, state",
    [
        ("x.remove(x[0])", "changed"),
        ("x.reverse()", "changed"),
        ("x[0] = torch.ones(2)", "changed"),
        ("x[0] = x", "changed"),
        ("x = list(x); x.clear()", "ok"),
        ("x + x", "ok"),
    ],
)
@pytest.mark.parametrize("given", [[1, 2], [[1, 2], [3, 4]], ["a", "b"], [None, float("nan")]])
def test_a_list_that_a_call_changed_is_told_and_the_case_stays_as_it_was(given, body, state):
    before = repr(given)
    names, problems = runner.load(f"import torch\ndef f(x):\n    {body}\n    return 1\n")
    assert runner.answer(names, problems, "f", (given,))[0]["state"] == state
    assert repr(given) == before


def test_what_lists_and_dictionaries_hold_is_kept_too():
    inner = (
        "import torch\ndef f(x, y, z):\n    x[0].pop(); y['a'].pop(); z[0].pop()\n    return 1\n"
    )
    names, problems = runner.load(inner)
    given = [[1, 2]], dict(a=[1, 2]), ([1, 2],)
    assert runner.answer(names, problems, "f", given)[0]["state"] == "changed"
    assert given == ([[1, 2]], dict(a=[1, 2]), ([1, 2],))


def test_a_learner_sees_one_named_test_a_part(course):
    text = card(course, HONEST, "-v", "-k", "owners_anchors or windowed")
    assert (
        "test_part[owners_anchors]" in text and "test_part[windowed_bytes_shared_streams]" in text
    )
    assert "3 passed" in text and "13 of 13 points" in text, text


def test_a_file_that_is_not_there_costs_every_part_and_names_the_way_back(course):
    file_of(course).unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", f"homework/{UNIT.folder}", "-p", "no:cacheprovider"]
    text = subprocess.run(command, cwd=course, capture_output=True, text=True).stdout
    assert "0 of 100 points" in text and text.count("make work") == len(UNIT.parts()), text
