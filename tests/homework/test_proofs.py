"""Does the homework tell right from wrong? Reference, stub, named wrong answers, mutants, other
right answers."""

import linecache
import os
import re
import signal
import textwrap
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest

from homework import clock, conftest, grade, marking, runner
from homework.mistakes import lost
from tests.homework.mutants import SLIPPED, mutants

HOMEWORK = Path(marking.__file__).parent
UNITS = [marking.find(path.parent.name) for path in sorted(HOMEWORK.glob("hw*/exercises.py"))]
SEEDS = [marking.PUBLIC, 1, 987654321]
STEP = int(os.environ.get("STEP", 4))  # between slips of the reference that are tried
units = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.short)


def marked(unit, source, seed=marking.PUBLIC, only=None):
    """The marks of a file's parts as they are asked for."""
    names, problems = runner.load(source)
    for e, part in unit.parts():
        if only in (None, e.name):
            yield unit.mark(names, problems, e, part, seed)


def marks(*what, **how):
    return list(marked(*what, **how))


def solutions(unit):
    """Less the Triton kernels, which need the interpreter's own process: test_grade.py runs them
    behind the grader."""
    paths = sorted((HOMEWORK / "solutions" / unit.folder).glob("*.py"))
    return {path.stem: path.read_text() for path in paths if path.stem != "triton_kernels"}


@units
def test_the_reference_and_two_other_right_answers_earn_everything(unit):
    texts = solutions(unit)
    assert len(texts) >= 3 and "reference" in texts
    for name, text in texts.items():
        for seed in SEEDS:
            rows = marks(unit, text, seed)
            assert {row.state for row in rows} == {"ok"}, (
                name,
                seed,
                [row for row in rows if row.state != "ok"],
            )
            assert sum(row.earned for row in rows) == unit.points == 100


@units
def test_the_stub_earns_nothing_and_fails_by_not_being_written_alone(unit):
    assert {row.state for row in marks(unit, unit.stub())} == {"todo"}


@units
def test_every_named_wrong_answer_loses_its_points_and_is_told_why(unit, matrix):
    for e in unit.exercises.values():
        assert len(e.wrongs) >= 2, e.name
        for wrong in e.wrongs:
            for seed in SEEDS:
                points, told = lost(e, wrong, seed)
                assert points == wrong.loses > 0, (e.name, wrong.name, seed, points, told)
            assert any(why.startswith(wrong.says) for why in told), (e.name, wrong.name, told)
            if not any(
                part.accept for part in e.parts
            ):  # what it is told elsewhere is at least as special
                known = {w.says for w in e.wrongs if w.loses <= wrong.loses}
                told = [
                    why for why in told if "wrong number" not in why and "not finite" not in why
                ]
                assert set(told) <= known, (e.name, wrong.name, told)
            matrix(unit, e, wrong.name, f"-{wrong.loses}")


@units
def test_nine_in_ten_mutants_of_the_reference_lose_points(unit, matrix):
    """A slip in a helper is judged by every exercise, one in an exercise by that exercise. Every
    third slip is tried, of all kinds in all functions; STEP=1 tries all."""

    def stop(*_):
        raise TimeoutError

    signal.signal(signal.SIGPROF, stop)  # by the processor's clock: others may use it, too
    killed, all_of_them, survivors = 0, 0, []
    for function, line, what, text in mutants(solutions(unit)["reference"], STEP):
        signal.setitimer(signal.ITIMER_PROF, 2, 0.1)  # an endless mutant is stopped in every case
        try:
            rows = marked(unit, text, only=function if function in unit.exercises else None)
            dead = any(row.state != "ok" for row in rows)  # one part that is lost is enough
        except TimeoutError:
            dead = True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        all_of_them, killed = all_of_them + 1, killed + dead
        if not dead:
            survivors.append(f"{function}, line {line}: {what}")
    matrix(
        unit,
        None,
        f"mutants {killed} of {all_of_them} killed; survivors:",
        " | ".join(survivors) or "none",
    )
    assert all_of_them >= 100 / STEP and killed >= 0.9 * all_of_them, survivors


@pytest.mark.parametrize(
    "short, name, instead", SLIPPED, ids=[f"{s[0]}-{s[1]}-{i}" for i, s in enumerate(SLIPPED)]
)
def test_what_once_slipped_through_loses_points_with_any_inputs(short, name, instead):
    unit = marking.find(short)
    text = f"{solutions(unit)['reference']}\nimport re\nright = {name}\n{name} = {instead}\n"
    for seed in [*SEEDS, 10, 11]:
        rows = marks(unit, text, seed, only=name)
        assert {row.state for row in rows} & {"wrong"}, (seed, rows)
        assert {row.state for row in rows} <= {"ok", "wrong"}, (seed, rows)


def trivial(e, part, seed):
    """Answers without a thought, case by case: constants, also in the shape that is wanted, and the
    inputs."""
    cases = [e.cases(part, seed)[case] for case in range(len(e.cases(part, seed)))]
    wanted = [e.expected(part, seed, case) for case in range(len(cases))]
    for constant in (0, 1, -1, 0.5, -100, 128):
        yield f"{constant}", [[np.array(constant)] for _ in cases]
        yield f"{constant} as often as wanted", [[np.array(constant)] * len(w) for w in wanted]
        if not part.accept:  # where many answers are right, an example of a constant may be one
            yield f"full of {constant}", [[np.full_like(x, constant) for x in w] for w in wanted]
    yield "nothing", [[] for _ in cases]
    yield "an empty list", [[np.array([])] for _ in cases]
    arrays = [
        [np.asarray(x) for x in inputs if isinstance(x, (np.ndarray, int, float, list))]
        for inputs in cases
    ]
    most = max(len(inputs) for inputs in arrays)
    for i in range(most):
        yield f"input {i}", [inputs[i : i + 1] for inputs in arrays]
        yield (
            f"input {i} as often as wanted",
            [inputs[i : i + 1] * len(w) for inputs, w in zip(arrays, wanted, strict=True)],
        )
    yield "all inputs", arrays
    yield "the first inputs", [inputs[: len(w)] for inputs, w in zip(arrays, wanted, strict=True)]
    yield (
        "the last inputs",
        [inputs[len(inputs) - len(w) :] for inputs, w in zip(arrays, wanted, strict=True)],
    )


@units
def test_an_answer_without_a_thought_earns_nothing(unit):
    for e, part in unit.parts():
        for seed in SEEDS:
            for name, answers in trivial(e, part, seed):
                if any(e.judge(part, seed, case, answer) for case, answer in enumerate(answers)):
                    continue  # a wrong case loses the part; why it is wrong is asked elsewhere
                states = [dict(state="ok")] * len(answers)
                state, _ = e.verdict(part, seed, states, answers)
                assert state != "ok", (e.name, part.name, seed, name)


@units
def test_a_unit_has_the_shape_that_the_course_promises(unit):
    exercises = list(unit.exercises.values())
    assert 6 <= len(exercises) <= 10 and unit.points == 100, (
        "a unit has 6 to 10 exercises and exactly 100 points"
    )
    assert any(e.name.startswith("predict") for e in exercises), "no prediction"
    assert any(e.level == "stretch" for e in exercises), "no stretch"
    assert any(e.name.endswith("counter_example") for e in exercises), "no error to find"
    for e in exercises:
        assert (
            len(e.hints) >= 2 and e.minutes > 0 and e.level in ("easy", "medium", "hard", "stretch")
        ), e.name
        for part in e.parts:
            assert len(e.cases(part, 0)) >= 3 or part.make is None


@units
def test_the_public_tests_are_worth_what_the_exercises_say(unit):
    (parametrize,) = conftest.parts_of(unit).pytestmark
    names, params = parametrize.args
    found = {param.values: [mark.args for mark in param.marks] for param in params}
    assert names == "exercise, part" and len({param.id for param in params}) == len(params)
    assert found == {(e.name, part.name): [(part.points,)] for e, part in unit.parts()}


@units
def test_the_statement_names_every_exercise_with_its_points_and_minutes(unit):
    text = (unit.home / "README.md").read_text(encoding="utf-8")
    for e in unit.exercises.values():
        row = next(
            (line for line in text.splitlines() if line.startswith("|") and f"`{e.name}`" in line),
            "",
        )
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        assert (
            cells and str(e.points) in cells and e.level in cells and f"{e.minutes} min" in cells
        ), (e.name, row)
    page = clock.said_of_page(text)  # near what is counted, or else what is counted
    whole = sum(e.minutes for e in unit.exercises.values()) + page
    assert f"About {whole} minutes" in text, "the sum of the minutes"
    assert f"| | this page | | | {page} min |" in text


def test_learners_files_and_public_tests_never_import_a_solution():
    for path in HOMEWORK.rglob("*.py"):
        if "solutions" not in path.relative_to(HOMEWORK).parts:
            assert not re.search(
                r"(import|from)\s+\S*solutions", path.read_text(encoding="utf-8")
            ), path
    for unit in UNITS:
        assert "homework" not in re.findall(r"^(?:import|from) (\w+)", unit.stub(), re.M)


def test_the_example_on_the_instructors_page_is_a_whole_exercise():
    page = (HOMEWORK / "README.md").read_text(encoding="utf-8")
    code = textwrap.dedent(
        page[page.index("    @unit.exercise(") : page.index("\n\n1. **Make room")]
    )
    unit = marking.Unit("hw99_example", "", "")
    linecache.cache["<page>"] = (len(code), None, code.splitlines(keepends=True), "<page>")
    names = dict(unit=unit, np=np, Part=marking.Part, normals=marking.normals)
    exec(compile(code, "<page>", "exec"), names)
    e = unit.exercises["distance"]
    assert len(e.wrongs) == 3
    assert [lost(e, wrong, 0) for wrong in e.wrongs] == [
        (wrong.loses, [wrong.says]) for wrong in e.wrongs
    ]
    assert {
        row.state for row in marks(unit, "def distance(x, y):\n    return (x - y).norm()\n")
    } == {"ok"}
    assert {row.state for row in marks(unit, unit.stub())} == {"todo"}


def test_inputs_vary_in_dtype_and_layout():
    e = marking.find("hw03").exercises["grouped_attention"]
    tensors = [inputs[0] for inputs in e.cases(e.parts[0], 0)]
    assert [str(x.dtype) for x in tensors] == ["float32", "float32", "float64"]
    assert [x.flags.c_contiguous for x in tensors] == [True, False, False]


def test_a_kernel_that_ignores_the_stride_of_a_vector_loses():
    unit = marking.find("hw08")
    text = (
        solutions(unit)["reference"]
        + """
right = copy_tiles
def copy_tiles(x, block):
    return right(x.as_strided(x.shape, (1,)), block)
"""
    )
    assert {row.state for row in marks(unit, text, only="copy_tiles")} == {"wrong"}


@pytest.mark.parametrize(
    "got, wanted, says",
    [
        ([np.zeros((1,))], [np.zeros((3, 2))], "shape"),
        ([np.zeros((3, 2), "f8")], [np.zeros((3, 2))], "dtype"),
        ([np.full((3, 2), np.nan, "f4")], [np.zeros((3, 2))], "finite"),
        ([np.zeros(2, "f4"), np.zeros(2, "f4")], [np.zeros(2)], "one result"),
        ([np.zeros((3,), "f4")], [np.zeros((3,), bool)], "dtype"),
        ([np.array(5.0)], [np.array(6)], "number"),
        ([np.zeros(2)], [np.array(0.5)] * 3, "wanted 3 results, got 2"),
        ([np.zeros(4)], [np.zeros(2)] * 3, "wanted 3 results, got 1"),
    ],
)
def test_shape_dtype_and_finiteness_are_judged_before_values(got, wanted, says):
    assert says in marking.compare(got, wanted, "float32")


def test_a_number_is_as_exact_as_the_inputs_it_was_made_from():
    """A Python number is float64, whatever it was calculated in; a whole number stays exact."""
    almost, wanted = [np.array(3.0003)], [np.array(3.0)]
    assert not marking.compare(almost, wanted, "float32") and marking.compare(
        almost, wanted, "float64"
    )
    assert marking.compare(almost, wanted, None) and not marking.compare(
        almost, wanted, None, like="float32"
    )
    assert marking.compare([np.array(2810769409)], [np.array(2810769408)], "float32")


def test_a_named_mistake_is_named_only_if_it_explains_every_case():
    """A forgotten factor of 2 looks like a count of elements of two bytes, and in one part like one
    stream of two; but neither explains all parts, so neither is named."""
    unit = marking.find("hw03")
    text = (
        solutions(unit)["reference"]
        + """
whole = cache_bytes
def cache_bytes(*shape):
    return whole(*shape) // 2
"""
    )
    says = {row.part: row.why for row in marks(unit, text, only="cache_bytes")}
    assert all(why.startswith("wrong number: wanted ") for why in says.values()), says
    assert not any("elements" in why or "streams" in why for why in says.values()), says


@pytest.mark.parametrize(
    "got, wanted, says",
    [
        (2810769409, 2810769408, "wrong number: wanted 2810769408, got 2810769409 (difference +1)"),
        (1000.004, 1000.002, "wrong number: wanted 1000.002, got 1000.004"),
        ([1.0, 2.5], [1.0, 2.0], "wrong numbers (1 of 2, first at [1]: wanted 2, got 2.5)"),
        ([True, True], [True, False], "(1 of 2, first at [1]: wanted False, got True)"),
    ],
)
def test_numbers_are_shown_with_the_digits_that_tell_them_apart(got, wanted, says):
    assert marking.compare([np.array(got)], [np.array(wanted)], "float64", hidden=False).endswith(
        says
    )


# --------------------------------------------------------------- who judges must not be slowed down

EXAMPLES = [(unit, e, part) for unit in UNITS for e, part in unit.parts() if part.accept]


def heard(e, part, answer):
    """What the grader says of an answer that comes back as bytes."""
    reply = runner.pack([dict(state="ok", arrays=len(answer))], answer)
    state, why = grade.hear(reply, e, part, 0)
    return why if state == "wrong" else state


def judged(e, part, answer):
    """The same, and the megabytes that it took."""
    tracemalloc.start()
    try:
        return heard(e, part, answer), tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


def test_an_answer_of_no_numbers_takes_no_memory_whatever_its_shape():
    """(20 million, 0) is no number at all, and its sum over rows would be 160 MB in the grader."""
    for _, e, part in EXAMPLES:
        for shape in [(20_000_000, 0), (0, 20_000_000), (0,)]:
            why, megabytes = judged(e, part, [np.zeros(shape)] * 2)
            assert "empty" in why and megabytes < 5, (e.name, shape, why, megabytes)


def test_a_large_example_is_judged_at_once():
    """10,000 numbers may be given: whatever their shapes, the grader needs a moment for them."""
    for _, e, part in EXAMPLES:
        for count in range(1, 7):
            for rows, columns in [(10_000, 1), (1, 10_000), (100, 100), (1_666, 1)]:
                each = min(rows, 10_000 // count // columns) or 1
                tall = np.random.default_rng(0).normal(size=(each, min(columns, 10_000 // count)))
                for answer in ([tall] * count, [tall.ravel()] * count):
                    start = time.process_time()
                    _, megabytes = judged(e, part, answer)
                    spent, shapes = time.process_time() - start, [x.shape for x in answer]
                    assert spent < 1 and megabytes < 150, (e.name, shapes, spent, megabytes)


def test_the_judge_says_nothing_on_the_instructors_screen():
    huge = [np.full((3, 3), 1e300), np.full(3, np.nan), np.array(np.longdouble("1e4000"))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for unit in UNITS:
            for e, part in unit.parts():
                for answer in ([x] * count for x in huge for count in range(1, 5)):
                    assert heard(e, part, answer) != "ok", (e.name, answer)


def test_a_shape_is_no_message():
    """Sixty bits a part could leave a sandbox as the shape that is told."""
    wanted = [np.zeros((3, 2))]
    for shape in [(0, 20_000_017), (104_113, 0, 1), (1,) * 20]:
        why = marking.compare([np.zeros(shape)], wanted, "float64")
        assert "wanted shape (3, 2)" in why and not re.search(r"\d{4}|1, 1, 1", why), why
    assert "(3, 5)" in marking.compare([np.zeros((3, 5))], wanted, "float64")
