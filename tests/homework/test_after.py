"""Passing is not silent: why it is so, for whoever has earned it, and for nobody else."""

import ast
import functools
import importlib
import json
import re
import shutil
from pathlib import Path

import pytest

from course.significance import welch
from homework import clock, grade, marking, reports, runner, turn
from minimal.compare import intervals
from tests import warm

HOMEWORK = Path(marking.__file__).parent
ROOT = HOMEWORK.parent
UNITS = [marking.find(path.parent.name) for path in sorted(HOMEWORK.glob("hw*/exercises.py"))]
EVERY = [exercise for unit in UNITS for exercise in unit.exercises.values()]
UNIT = marking.find("hw03")
HONEST = (HOMEWORK / "solutions" / UNIT.folder / "reference.py").read_text(encoding="utf-8")
PLACE = re.compile(r"((?:minimal|notebooks/(?:evidence/\w+|course))/[\w/]+\.py): (\w+(?:\.\w+)?)")


def one_line(text):
    return " ".join(text.split())


# ---- the texts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("exercise", EVERY, ids=lambda exercise: exercise.name)
def test_every_exercise_says_why_in_two_to_four_sentences(exercise):
    after = exercise.after
    assert 2 <= len(re.findall(r"[.?!](?=\s|$)", after)) <= 4, after
    assert after == one_line(after) and after[-1] == "." and len(after) <= 700
    assert "`" not in after.replace("`overlap`", "").replace("`reach`", "") and "$" not in after


@functools.cache
def defined(path):
    """What a module defines at its top, and in its classes: "Mix", "Own.through"."""
    names = set()
    for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets = [target for target in node.targets if isinstance(target, ast.Name)]
            names |= {target.id for target in targets}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
            inside = node.body if isinstance(node, ast.ClassDef) else ()
            names |= {f"{node.name}.{x.name}" for x in inside if isinstance(x, ast.FunctionDef)}
    return names


@pytest.mark.parametrize("exercise", EVERY, ids=lambda exercise: exercise.name)
def test_what_it_is_in_the_package_is_there(exercise):
    places = PLACE.findall(exercise.after)
    named = exercise.after.count("minimal/") + exercise.after.count("evidence/")
    named += exercise.after.count("course/")
    assert places and len(places) == named
    for path, name in places:
        assert name in defined(path), f"{path} has no {name}"


def test_a_name_that_is_not_there_would_be_noticed():
    assert {"Mix", "Own.through", "ACTS"} <= defined("minimal/model/values.py")
    assert not {"Mixture", "Mix.through"} & defined("minimal/model/values.py")


def test_the_questions_of_the_statements_are_answered():
    """As many answers in a unit as its page has boxes that ask."""
    for unit in UNITS:
        asked = (unit.home / "README.md").read_text(encoding="utf-8").count("**Question.**")
        texts = [exercise.after for exercise in unit.exercises.values()]
        answered = sum(len(re.findall(r"README's question", text)) for text in texts)
        assert answered >= asked, (unit.short, asked, answered)


def numbers():
    """{exercise: the numbers that its text must hold}, computed by the oracles and the package."""
    units = {
        unit.short: importlib.import_module(f"homework.{unit.folder}.exercises") for unit in UNITS
    }
    sizes_of = units["hw01"].predict_output_size()
    even = units["hw02"].predict_entropies()
    saved = units["hw03"].predict_savings()
    naive, factored = units["hw05"].pair_bytes(1, 512, 768, 4)
    small = (12, 768, 50257, 256)
    sizes = [units["hw05"].parameters(plan, *small) / 1e6 for plan in ("dva", "dva-wo")]
    variance, t = units["hw06"].predict_statistics()
    t_again, dof, p = welch(55.51, 0.32, 5, 59.62, 3.32, 5)
    windows = [512, 512, 512, 2048] * 3
    costs = [units["hw07"].flops_and_tokens(12, 768, 32768, windows, n) for n in (0, 4, 11)]
    far = units["hw07"].windowed_break_even([512, 512, 512, 0], 1, 0, 32768)
    fast, slow = units["hw08"].predict_speed()
    one, two = units["hw10"].predict_two_hashes()
    joined = 5120 * 512 / (128 * (5120 + 512))  # M C and E (M + C)
    skip = 2**0.5 - 1  # where lam / (1 + lam) - lam / 2 is largest
    return dict(
        predict_output_size=[
            f"= {sizes_of[0]:.3f}",
            f"is {sizes_of[1]:.3f}",
            f"it {sizes_of[2]:.2f}",
        ],
        predict_entropies=[f"= {even[0]:.2f}", f"is {even[1]:.2f}", f"gives {even[2]:.2f}"],
        predict_savings=[f"save {saved[0]:.1f}", f"{saved[1]:.1f} with", f"{saved[2]:.1f} with"],
        window=[
            f"half of the longest: 1,728, rounded up to {units['hw04'].window(1, 2, 3456, 128):,}"
        ],
        predict_lambdas=[
            f"first goes {9.3 - 1:.1f} up",
            f"second goes {2 * (9.3 - 1):.1f},",
            f"ratio of {9.3 / (2 * (9.3 - 1)):.2f}",
            f"{0.5 * 3:.1f} of {1 + 0.5 * 3:.1f} lengths, {100 * 1.5 / 2.5:.0f} per cent",
        ],
        predict_cost=[f"{2 * 768:,} tokens", f"{100 * (12 - 8 - 1 + 2) / 12:.1f} per cent"],
        skip_counter_example=[
            f"{100 * 0.4 / 1.4:.1f} per cent",
            f"{100 * (skip / (1 + skip) - skip / 2):.1f} points",
            f"near {skip:.2f}",
        ],
        pair_bytes=[
            f"{naive / 1e6:.0f} MB",
            f"{factored / 1e6:.1f} MB, {naive / factored:.0f} times",
        ],
        parameters=[f"{sizes[0]:.1f} million", f"be {sizes[1]:.1f}"],
        welch=[f"{dof:.2f} in"],
        predict_statistics=[
            f"= {variance:.2f}",
            f"t is {t:.3f}",
            f"t is {t_again:.3f}",
            f"line is {intervals.t_quantile(0.975, dof):.3f}",
            f"p is {p:.4f}",
        ],
        flops_and_tokens=[
            f"{100 * (1 - costs[1][0] / costs[0][0]):.2f} per cent cheaper",
            f"{costs[1][1]:.2f} per cent more",
            f"gets {costs[2][1]:.1f} per cent",
        ],
        windowed_break_even=[f"= {far:,} tokens"],
        predict_speed=[f"= {fast:.2f} for", f"= {slow:.2f} for"],
        offload_counter_example=[f"{3e12 / 64e9:.0f} times slower"],
        latent_step=[f"{joined:.1f} times the work"],
        predict_two_hashes=[f"{100 * one:.1f} per cent", f"{100 * two:.1f} per cent"],
    )


def test_the_numbers_in_the_texts_are_computed():
    after = {exercise.name: exercise.after for exercise in EVERY}
    missing = [(name, x) for name, all in numbers().items() for x in all if x not in after[name]]
    assert not missing


# ---- who sees them -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    skip = shutil.ignore_patterns("__pycache__", "solutions")
    shutil.copytree(HOMEWORK, root / "homework", ignore=skip)
    options = 'pythonpath = ["."]\naddopts = "--import-mode=importlib --strict-markers"\n'
    (root / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n{options}")
    return root


def card(course, text, *arguments):
    (course / "work" / UNIT.folder).mkdir(parents=True, exist_ok=True)
    (course / "work" / UNIT.folder / UNIT.file).write_text(text, encoding="utf-8")
    quick = ["-p", "no:cacheprovider", "-p", "no:anyio"]  # a plugin that takes a third of a card
    words = ["-m", "pytest", f"homework/{UNIT.folder}", *quick, *arguments]
    return warm.run(words, cwd=course).stdout


def test_the_card_explains_what_is_earned_whole_and_nothing_else(course):
    step = UNIT.exercises["svformer_step"]
    first = "torch.cat([value, x @ wv], 1)"
    assert first in HONEST
    wrong_later = HONEST.replace(first, "torch.cat([x @ wv, value], 1)")  # one part of two
    said = card(course, wrong_later, "--card", "card.md")
    told, page = one_line(said), (course / "card.md").read_text(encoding="utf-8")
    assert re.search(r"svformer_step: the first token, from an empty cache +4/4", said), said
    assert step.after not in told and reports.safe(step.after) not in page
    for exercise in UNIT.exercises.values():
        if exercise is not step:
            assert exercise.after in told and reports.safe(exercise.after) in page
    assert "Next is" not in told
    reasons = said[said.index("owners is right.") : said.index("\nowners: ")]
    assert all(len(row) <= 80 for row in reasons.splitlines())


def test_all_points_end_in_what_is_next(course):
    said = card(course, HONEST)
    told = one_line(said)
    assert "100 of 100 points" in told and "solutions" not in told  # this course withholds them
    assert "All 100 points of hw03: done. Next is hw04 · What do the lambdas say: see" in told
    assert "homework/hw04_value_embeddings/README.md." in told
    few = one_line(card(course, HONEST, "-k", "owners"))
    assert UNIT.exercises["owners"].after in few and "Next is" not in few
    one = one_line(card(course, HONEST, "-k", "owners_anchors"))  # a part of it: not asked whole
    assert "owners: anchors" in one and UNIT.exercises["owners"].after not in one


def test_the_last_unit_leads_to_the_open_project():
    assert "Next is hw09 · A value path of your own" in reports.finished(UNITS[-1], HOMEWORK)
    assert "solutions/hw10_frontier" in reports.finished(UNITS[-1], HOMEWORK)
    before = marking.find("hw08")
    assert "Next is hw09 · A value path of your own" in reports.finished(before, HOMEWORK)
    assert "solutions/hw08_gather_attention" in reports.finished(before, HOMEWORK)


def test_a_stub_says_nothing_of_them(course):
    told = one_line(card(course, UNIT.stub()))
    assert "0 of 100 points" in told and "Why it is so" not in told
    assert not any(exercise.after in one_line(UNIT.stub()) for exercise in EVERY)


def test_hidden_results_hold_none():
    for unit in UNITS:
        rows = [marking.Row(e.name, part.name, part.points, "ok", "") for e, part in unit.parts()]
        graded = json.dumps(grade.results(unit, rows, 1, 5), ensure_ascii=False)
        pages = reports.card(unit, rows, "ada") + reports.summary(unit, {"ada": rows})
        assert '"score"' in graded and "100 of 100" in pages
        for exercise in unit.exercises.values():
            for text in (exercise.after, reports.safe(exercise.after)):
                assert text not in graded and text not in pages


def test_a_notebook_exercise_that_has_one_says_it_once_it_is_right(capsys, monkeypatch):
    monkeypatch.setattr(turn, "EXPLAINED", set())
    exercise = UNIT.exercises["skip_heads"]
    names = runner.load(HONEST)[0]
    turn.your_turn("hw03", names["skip_heads"])
    assert exercise.after in one_line(capsys.readouterr().out)

    def skip_heads(v, v1):
        raise NotImplementedError

    turn.your_turn("hw03", skip_heads)
    assert exercise.after not in one_line(capsys.readouterr().out)


# ---- minutes -------------------------------------------------------------------------------------


def test_the_minutes_of_the_instructors_page_are_the_exercises():
    page = (HOMEWORK / "README.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"\| `(hw\d\d_\w+)` \|.*\| (\d+) \|", page))
    texts = {unit: (unit.home / "README.md").read_text(encoding="utf-8") for unit in UNITS}
    wanted = {unit.folder: str(clock.unit_minutes(unit, texts[unit])) for unit in UNITS}
    assert said == wanted
    for unit, text in texts.items():
        assert f"About {wanted[unit.folder]} minutes." in text


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.short)
def test_minutes_follow_from_words_lines_and_level(unit):
    """To a fifth: a sentence more in an exercise changes no number."""
    counted = clock.counted(unit)
    said = {name: exercise.minutes for name, exercise in unit.exercises.items()}
    far = {name for name in counted if not clock.near(said[name], counted[name])}
    assert far == set() and said.keys() == counted.keys(), "python -m homework.clock writes them"


def test_the_rule_of_the_instructors_page_is_the_one_that_counts():
    page = one_line((HOMEWORK / "README.md").read_text(encoding="utf-8"))
    levels = ", ".join(
        f"{level} {minutes}" + (" minutes" if level == "easy" else "")
        for level, minutes in clock.THINKING.items()
    )
    assert f"by its level: {levels}." in page and f"at {clock.WORDS} words a minute" in page


def test_a_helper_is_counted_once_and_a_line_is_a_minute():
    solution = '''
def helper(x):
    """Not counted."""
    # neither
    y = 2 * x
    return y


def first(x):
    helpers = [helper]

    return helpers[0](x)


def second(x):
    """Not counted."""
    return helper(
        x
    )
'''
    assert clock.lines_of(solution, ["first", "second"]) == dict(first=2 + 3, second=3)
    assert clock.lines_of(solution, ["second"]) == dict(second=3 + 3)
    easy, hard = (marking.Exercise(one_line, []) for _ in range(2))
    easy.level, hard.level = "easy", "hard"
    easy.doc = hard.doc = "word " * 260
    assert clock.minutes_of(easy, 5) == 3 + 2 + 5
    assert clock.minutes_of(hard, 6) == 10 + 2 + 6


def test_minutes_are_written_where_they_belong():
    table = "unit.mistakes(\nhint: 5 minutes\ntakes: easy, {} minutes\n)\n\n\n"
    source = f"def a():\n    1\n\n\n{table}def b(x):\n    2\n\n\n{table}"
    told = clock.with_minutes(source.format(5, 6), dict(b=17))
    assert told == source.replace("{}", "5", 1).replace("{}", "17")
    assert clock.with_minutes(told, dict(a=8, b=7)) == source.format(8, 7)
    page = "About 1 minutes.\n\n| 1 | `owners` | 10 | easy | 1 min |\n| | this page | | | 9 min |\n"
    told = clock.with_card(page, UNIT)
    owners = UNIT.exercises["owners"]
    assert f"| 1 | `owners` | 10 | {owners.level} | {owners.minutes} min |" in told
    assert "| | this page | | | 0 min |" in told
    assert told.startswith(f"About {sum(e.minutes for e in UNIT.exercises.values())} minutes.")
