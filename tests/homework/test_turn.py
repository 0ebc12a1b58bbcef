"""Exercises in notebooks: what a learner hears, and that notebooks hold what units define."""

import ast
import inspect
import json
import linecache
import sys
import textwrap
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from homework import cells, marking, turn
from homework.mistakes import lost, written
from minimal.gpt import GPT, Layer
from minimal.kernels import tiles

SEEDS = [marking.PUBLIC, 987654321]  # a notebook asks with the first alone
IN_NOTEBOOKS = sorted(path.stem for path in (marking.HERE / "in_notebooks").glob("nb*.py"))
ALL = [(unit, name) for unit in IN_NOTEBOOKS for name in turn.unit_of(unit).exercises]
exercises = pytest.mark.parametrize("unit, name", ALL, ids=[f"{u}-{n}" for u, n in ALL])


@pytest.fixture(autouse=True)
def new_kernel(monkeypatch):
    monkeypatch.setattr(turn, "HEARD", Counter())
    monkeypatch.setattr(turn, "ANSWERED", {})
    monkeypatch.setattr(turn, "EXPLAINED", set())


def function_of(code):
    """The function in a piece of source."""
    names = dict(tl=tiles.tl, triton=tiles.triton)
    exec(compile(code, "<cell>", "exec"), names)
    return list(names.values())[-1]


def retyped(function):
    """The same function as a learner would have it: written in a cell, not in the course's file."""
    plain = turn.plain(function)
    code = textwrap.dedent(inspect.getsource(plain))
    linecache.cache["<retyped>"] = (len(code), None, code.splitlines(keepends=True), "<retyped>")
    names = dict(plain.__globals__)
    exec(compile(code, "<retyped>", "exec"), names)
    return names[plain.__name__]


# ---- every exercise ------------------------------------------------------------------------------


@exercises
def test_the_solution_is_right_and_used_as_the_learners(unit, name, capsys):
    own = retyped(turn.solution(unit, name))
    assert turn.your_turn(unit, own) is own
    assert capsys.readouterr().out.startswith(f"{name}: right, in all ")
    exercise = turn.exercise_of(unit, name)
    assert all(
        turn.unit_of(unit).mark({name: own}, {}, exercise, part, seed).state == "ok"
        for part in exercise.parts
        for seed in SEEDS
    )


@exercises
def test_an_untouched_stub_says_so_in_one_line_and_the_solution_stands_in(unit, name, capsys):
    stub = function_of(f"import torch\n{turn.exercise_of(unit, name).stub()}".split("\n", 1)[1])
    assert turn.your_turn(unit, stub) is turn.solution(unit, name)
    said = capsys.readouterr().out
    assert said.count("\n") == 1 and "not written yet" in said


@exercises
def test_every_named_wrong_answer_is_told_in_the_notebook(unit, name, capsys):
    exercise = turn.exercise_of(unit, name)
    for wrong in exercise.wrongs:
        for seed in SEEDS:
            points, told = lost(exercise, wrong, seed)
            assert points == wrong.loses > 0, (wrong.name, seed, points, told)
            assert any(why.startswith(wrong.says) for why in told), (wrong.name, told)
        if any(part.accept for part in exercise.parts):
            continue  # such an answer has no oracle to go wrong
        for memory in (turn.HEARD, turn.ANSWERED, turn.EXPLAINED):  # as in a new kernel
            memory.clear()
        assert turn.your_turn(unit, marking.stand_in(exercise, wrong)) is turn.solution(unit, name)
        said = capsys.readouterr().out
        known = {w.says for w in exercise.wrongs if w.loses <= wrong.loses}
        assert any(words in said for words in known), (wrong.name, said)


@exercises
def test_an_exercise_of_a_notebook_answers_within_a_second(unit, name):
    import time

    exercise = turn.exercise_of(unit, name)
    turn.attempt(exercise, turn.solution(unit, name))  # the oracle's answers are kept
    start = time.process_time()
    assert turn.attempt(exercise, turn.solution(unit, name)).state == "ok"
    assert time.process_time() - start < 1
    assert len(exercise.wrongs) >= 2 and exercise.hints and exercise.minutes <= 20


@exercises
def test_every_exercise_stands_in_its_notebook(unit, name):
    held = [cells.turns(read(path)) for path in notebooks()]
    assert any(found.get(name) == unit for found in held), f"no notebook asks for {unit} {name}"


# ---- every notebook ------------------------------------------------------------------------------


def notebooks():
    return sorted(cells.NOTEBOOKS.glob("*.ipynb"))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_a_notebooks_stubs_and_solutions_are_those_of_its_units(path):
    notebook = read(path)
    units = cells.turns(notebook)
    stubs, solved = [], []
    for cell in notebook["cells"]:
        assert "".join(cell["source"]) == cells.written(cell, units), (
            f"run python -m homework.cells nb{path.name.split('_')[0]}"
        )
        if "your-turn" in cell["metadata"].get("tags", []):
            stubs.append(cells.defined("".join(cell["source"])))
        solved += cells.SOLUTION.findall("".join(cell["source"]))
    assert stubs == list(units), "every stub is checked, in order"
    assert solved == stubs, "every exercise has its folded solution"


# ---- the stand-in --------------------------------------------------------------------------------

STILL = "this is still the course's solution: your own cell, which defines it, has not run"
LEFT = {
    "a stub": "def {name}(*inputs):\n    raise NotImplementedError\n",
    "a wrong answer": "def {name}(*inputs):\n    return 1\n",
    "an error": "def {name}(*inputs):\n    return inputs / 0\n",
}


def ran(cell, names):
    """A cell of a notebook: an error leaves what was bound before."""
    try:
        exec(compile(cell, "<cell>", "exec"), names)
    except SyntaxError:
        pass


def check(unit, name, names, capsys):
    """The notebook's check cell, and what it said."""
    names[name] = turn.your_turn(unit, names[name])
    return capsys.readouterr().out


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("unit, name", [("nb01", "causal_mask"), ("hw01", "merge")])
def test_a_stand_in_is_never_praised(unit, name, left, capsys):
    names = {}
    ran(LEFT[left].format(name=name), names)
    assert "stands in for it" in check(unit, name, names, capsys)

    # the check alone, again and again
    for _ in range(2):
        said = check(unit, name, names, capsys)
        assert STILL in said and "right" not in said and said.count("\n") == 1

    # a cell that cannot be read, one that defines another name, and an alias of the stand-in
    ran(f"def {name}(:\n    return 1", names)
    assert STILL in check(unit, name, names, capsys)
    ran("def another_name(*inputs):\n    return 1\n", names)
    assert STILL in check(unit, name, names, capsys)
    ran(f"kept = {name}\ndel {name}\n{name} = kept\n", names)
    assert STILL in check(unit, name, names, capsys)

    # the learner's own, and then it stays
    names[name] = own = retyped(turn.solution(unit, name))
    for _ in range(2):
        said = check(unit, name, names, capsys)
        assert said.startswith(f"{name}: right, in all ") and names[name] is own


def test_a_stand_in_that_is_a_kernel_is_never_praised(capsys):
    names = dict(add=function_of(turn.exercise_of("nb11a", "add").stub()))
    assert "not written yet" in check("nb11a", "add", names, capsys)
    assert STILL in check("nb11a", "add", names, capsys)
    names["add"] = retyped(turn.solution("nb11a", "add"))
    assert "add: right, in all" in check("nb11a", "add", names, capsys)


def test_a_solution_under_a_wrapper_is_still_the_courses(capsys):
    import functools

    mask = turn.solution("nb01", "causal_mask")

    @functools.wraps(mask)
    def causal_mask(*inputs):
        return mask(*inputs)

    assert STILL in check("nb01", "causal_mask", dict(causal_mask=causal_mask), capsys)


# ---- what a learner hears ------------------------------------------------------------------------


def from_the_left(T, S):
    return torch.arange(S) <= torch.arange(T)[:, None]


from_the_left.__name__ = "causal_mask"


def not_turned(x, positions, base=10_000.0):
    return x + 1


not_turned.__name__ = "turn"


def test_every_new_try_brings_a_further_hint_and_the_last_one_only_who_asks(capsys, monkeypatch):
    codes = iter(["one", "one", "two", "three", "four", "five"])
    monkeypatch.setattr(turn, "text_of", lambda function: next(codes))

    def heard():
        turn.your_turn("nb01", not_turned)
        said = capsys.readouterr().out
        assert ('hint("nb01", "turn") says more' in said) == (said.count("hint 3 of 3") == 0)
        return [line[:11] for line in said.splitlines() if line.startswith("hint ")]

    assert [len(heard()) for _ in range(5)] == [1, 1, 2, 2, 2]
    turn.hint("nb01", "turn")
    assert "hint 3 of 3" in capsys.readouterr().out
    assert heard() == ["hint 1 of 3", "hint 2 of 3", "hint 3 of 3"]


def test_a_wrong_type_earns_no_hint(capsys):
    for i in range(3):
        turn.your_turn("nb01", function_of(f"def turn(x, positions, base=1):\n    return 'no {i}'"))
        said = capsys.readouterr().out
        assert "it must return real numbers" in said and "got str" in said and "hint 1" not in said


def test_why_it_is_so_is_said_once(capsys):
    exercise = turn.exercise_of("hw03", "skip_heads")
    own = retyped(turn.solution("hw03", "skip_heads"))
    told = [turn.your_turn("hw03", own) and capsys.readouterr().out for _ in range(3)]
    assert [exercise.after in said for said in told] == [True, False, False]


def test_a_wrong_answer_names_the_case_and_the_case_is_at_hand(capsys):
    turn.your_turn("nb01", from_the_left)
    said = capsys.readouterr().out
    assert "fewer queries than keys" in said and 'case("nb01", "causal_mask", 4)' in said
    one = turn.case("nb01", "causal_mask", 4)
    assert not torch.equal(from_the_left(*one.inputs), one.wanted)
    assert torch.equal(turn.solution("nb01", "causal_mask")(*one.inputs), one.wanted)
    before = turn.case("nb01", "causal_mask", 3)
    assert torch.equal(from_the_left(*before.inputs), before.wanted)
    with pytest.raises(ValueError, match="has cases 1 to 6, got 7"):
        turn.case("nb01", "causal_mask", 7)


def uses_up(unit, name, line):
    """The solution behind a line that uses up a list it was given."""
    code = textwrap.dedent(inspect.getsource(turn.solution(unit, name)))
    head, _, body = code.partition("\n")
    names = dict(turn.solution(unit, name).__globals__)
    exec(compile(f"{head}\n    {line}\n{body}", "<cell>", "exec"), names)
    return names[name]


USED_UP = [
    ("hw04", "unet", "skips.reverse()"),
    ("hw07", "windowed_break_even", "while 0 in windows: windows.remove(0)"),
    ("nb08", "word_f1", "[wanted.remove(word) for word in said if word in wanted]"),
]


@pytest.mark.parametrize("unit, name, line", USED_UP)
def test_a_list_that_an_answer_used_up_is_told_and_costs_no_other_answer(unit, name, line, capsys):
    """The oracle is asked again behind it, and the next answer behind both."""
    exercise = turn.exercise_of(unit, name)
    exercise.expected.cache_clear()
    asked = [repr(exercise.cases(part, marking.PUBLIC)) for part in exercise.parts]
    found = turn.attempt(exercise, uses_up(unit, name, line))
    assert (found.state, found.why) == ("changed", marking.SAYS["changed"])
    assert asked == [repr(exercise.cases(part, marking.PUBLIC)) for part in exercise.parts]
    exercise.expected.cache_clear()
    assert turn.attempt(exercise, turn.solution(unit, name)).state == "ok"


def test_a_case_at_hand_is_a_copy():
    first, again = (turn.case("hw07", "which_rules", 1) for _ in range(2))
    wanted = list(again.inputs[0])
    first.inputs[0].clear()
    assert again.inputs[0] == turn.case("hw07", "which_rules", 1).inputs[0] == wanted != []


def test_a_name_that_was_not_imported_comes_with_its_line(capsys):
    broken = function_of("def causal_mask(T, S):\n    return F.pad(torch.ones(T, S), (0, 0))\n")
    turn.plain(broken).__globals__.pop("F", None)
    turn.your_turn("nb01", broken)
    said = capsys.readouterr().out
    assert "write `import torch.nn.functional as F` above your function" in said


def test_an_error_names_its_line_and_hints_come_when_asked_for(capsys):
    broken = function_of("def causal_mask(T, S):\n    x = 1\n    return T / 0\n")
    turn.your_turn("nb01", broken)
    assert "it raised ZeroDivisionError in line 3" in capsys.readouterr().out
    for wanted in ("hint 2 of 2", "That is all of them"):
        turn.hint("nb01", "causal_mask")
        assert wanted in capsys.readouterr().out


def test_an_error_of_all_programs_together_names_no_line(capsys):
    double = "def add(x, y, out, n, BLOCK):\n    i = tl.arange(0, BLOCK)\n"
    turn.your_turn("nb11a", written(double + "    tl.store(out + i, tl.load(x + i))\n"))
    assert "it raised Mistake: programs 0 and 1 both store" in capsys.readouterr().out


def test_an_endless_answer_is_stopped(capsys, monkeypatch):
    monkeypatch.setattr(turn, "SECONDS", 0.2)
    endless = function_of("def causal_mask(T, S):\n    while True:\n        pass\n")
    turn.your_turn("nb01", endless)
    said = capsys.readouterr().out
    assert "did not finish in time: it was still in line " in said and "asked with T=" in said


def test_complex_numbers_are_called_so(capsys):
    turn.your_turn("nb03", function_of("def spectrum(v):\n    return v[0, 0] * 1j"))
    assert "real numbers: one, or a tensor, or a" in (said := capsys.readouterr().out)
    assert "got complex64" in said


def test_the_judge_and_an_answer_calculate_without_warnings(capsys, recwarn):
    turn.your_turn(
        "nb03", function_of("def weight_back(A, back):\n    return A[:, :0].numpy().mean(1)")
    )
    assert not recwarn.list and "weight_back" in capsys.readouterr().out


def test_an_exercise_of_the_homework_can_be_asked_in_a_notebook_too(capsys):
    merge = retyped(turn.solution("hw01", "merge"))
    assert turn.your_turn("hw01", merge) is merge


def test_names_that_do_not_exist_are_answered_with_those_that_do():
    with pytest.raises(ValueError, match="there is no unit 'nb77'"):
        turn.case("nb77", "x", 1)
    with pytest.raises(ValueError, match="nb01 has square_mask, causal_mask"):
        turn.case("nb01", "x", 1)


def test_writing_cells_puts_back_what_a_unit_defines(tmp_path):
    stub = turn.exercise_of("nb01", "causal_mask").stub()
    texts = [
        ("code", ["your-turn"], "def causal_mask(T, S):\n    pass"),
        ("code", [], 'causal_mask = your_turn("nb01", causal_mask)'),
        (
            "markdown",
            [],
            "<details><summary>Solution: causal_mask</summary>\n\n```python\nold\n```\n\n"
            "Why.\n</details>",
        ),
    ]
    notebook = dict(
        cells=[
            dict(cell_type=kind, metadata=dict(tags=tags), source=text.splitlines(keepends=True))
            for kind, tags, text in texts
        ]
    )
    path = Path(tmp_path) / "01_x.ipynb"
    path.write_text(json.dumps(notebook))
    assert cells.update(path) and not cells.update(path)
    first, second, third = ("".join(cell["source"]) for cell in read(path)["cells"])
    assert first == stub.rstrip() and second == texts[1][2]
    assert (
        "torch.arange(S) <=" in third and third.endswith("Why.\n</details>") and "old" not in third
    )


# ---- what a learner writes in notebook 02 --------------------------------------------------------


def lines_of(function):
    """The lines of a function's body, less its docstring."""
    source = textwrap.dedent(inspect.getsource(function))
    body = ast.parse(source).body[0].body
    body = body[ast.get_docstring(ast.parse(source).body[0]) is not None :]
    return source.splitlines()[body[0].lineno - 1 :]


def test_the_way_through_that_a_learner_writes_is_the_courses_line_for_line():
    assert lines_of(turn.solution("nb02", "forward")) == lines_of(GPT.forward)
    assert lines_of(turn.solution("nb02", "mlp")) == lines_of(Layer.mlp)


def cleared_behind_the_step(model, optimizer, batches):
    losses = []
    for ids, targets in batches:
        loss = model.loss(ids, targets)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses)


def by_index(model, optimizer, batches):
    losses = [0.0] * len(batches)
    for at in range(len(batches)):
        for p in model.parameters():
            p.grad = None
        loss = model.loss(*batches[at])
        loss.backward()
        optimizer.step()
        losses[at] = float(loss)
    return losses


@pytest.mark.parametrize("loop", [cleared_behind_the_step, by_index])
def test_other_right_loops_are_right(loop, capsys):
    loop.__name__ = "training"
    for _ in range(2):  # the model of a case begins anew
        assert turn.plain(turn.your_turn("nb02", loop)) is loop  # as a list, where it gave a tensor


def test_an_error_of_what_an_answer_calls_is_not_a_stub(capsys):
    """PyTorch, too, says NotImplementedError: of a module without a forward, for instance."""
    mask = function_of("import torch\ndef causal_mask(T, S):\n    return torch.nn.Module()(T)\n")
    turn.your_turn("nb01", mask)
    assert "it raised NotImplementedError in line 3" in capsys.readouterr().out


def keeps_tensors(model, optimizer, batches):
    return [model.loss(*pair) for pair in batches]


def test_a_loss_with_its_history_is_told_apart_from_a_number(capsys):
    keeps_tensors.__name__ = "training"
    turn.your_turn("nb02", keeps_tensors)
    assert "keep .item() of each" in capsys.readouterr().out


def test_a_base_that_is_ignored_is_not_called_a_rate_that_is_too_steep(capsys):
    """10,000 is the square of 100: with that base the two would be one mistake."""
    ignores = function_of(
        "from homework.in_notebooks.solutions.nb01 import turn as right\n"
        "def turn(x, positions, base=10_000.0):\n    return right(x, positions)\n"
    )
    turn.your_turn("nb01", ignores)
    said = capsys.readouterr().out
    assert "do not depend on `base`" in said and "twice as fast" not in said


def test_sums_that_never_shrink_are_not_said_to_shrink(capsys):
    forgets = function_of(
        "import torch\ndef add_tile(m, total, out, scores, values):\n"
        "    largest = torch.maximum(m, scores.amax(-1, keepdim=True))\n"
        "    e = (scores - largest).exp()\n"
        "    return largest, total + e.sum(-1, keepdim=True), out + e @ values\n"
    )
    turn.your_turn("nb01", forgets)
    said = capsys.readouterr().out
    assert "neither your total nor your out did" in said and "two things" not in said


def test_what_a_notebook_tells_to_call_is_there(monkeypatch):
    """Whoever imports your_turn alone may still type hint("nb01", "scores"); own names stay."""
    shell = SimpleNamespace(user_ns=dict(case="mine"))
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    turn.your_turn("nb01", turn.solution("nb01", "scores"))
    assert shell.user_ns == dict(case="mine", hint=turn.hint, solution=turn.solution)
