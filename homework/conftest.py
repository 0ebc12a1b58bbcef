"""What does a learner see after `pytest homework/hw03_kv_cache`? A report card: part, points, why,
next hint."""

import re
import textwrap
import types
from pathlib import Path

import pytest

import minimal  # noqa: F401 before torch: it says how long waiting threads may spin
from homework import reports
from homework.marking import HERE, Lost, Row, find, road_of
from minimal.data.files import write_whole

CARD = pytest.StashKey[list]()


def is_card(path):
    return b"| part | points |" in path.read_bytes()


def pytest_addoption(parser):
    group = parser.getgroup("homework")
    group.addoption(
        "--hint",
        type=int,
        metavar="N",
        help="show the first N hints of every exercise that lost points "
        "(default: the first, once you have tried)",
    )
    group.addoption(
        "--why", action="store_true", help="say again why what you have earned is right"
    )
    group.addoption(
        "--card",
        type=Path,
        metavar="FILE",
        help="write the card as Markdown too (JUnit: --junitxml FILE)",
    )


def pytest_configure(config):
    config.addinivalue_line("markers", "points(n): what this part of a homework is worth")
    config.stash[CARD] = []


def pytest_collect_file(file_path, parent):
    """A unit's tests are made from its exercises: no file holds them."""
    if file_path.name != "exercises.py":
        return None
    module = pytest.Module.from_parent(parent, path=file_path)
    module.obj = types.ModuleType(file_path.parent.name)
    module.obj.unit = find(file_path.parent.name)
    module.obj.test_part = parts_of(module.obj.unit)
    return module


def parts_of(unit):
    """The test function of a unit: pytest asks it once for each part of each exercise."""

    @pytest.mark.parametrize("exercise, part", [param(*pair) for pair in unit.parts()])
    def test_part(exercise, part):
        unit.check(exercise, part)

    return test_part


def param(exercise, part):
    """A part as pytest lists it: named after its exercise, worth its points."""
    name = re.sub(r"\W+", "_", part.name.lower()).strip("_")
    mark = pytest.mark.points(part.points)
    return pytest.param(exercise.name, part.name, id=f"{exercise.name}_{name}", marks=mark)


def pytest_collection_modifyitems(config, items):
    if items and all(
        item.get_closest_marker("points") for item in items
    ):  # only homework: the card says it all
        config.option.tbstyle = "no"
        config.pluginmanager.get_plugin("terminalreporter").reportchars = ""


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    mark = item.get_closest_marker("points")
    if mark is None or call.when != "call":
        return
    unit, error = item.module.unit, call.excinfo.value if call.excinfo else None
    asked = item.callspec.params
    row = unit.rows.pop() if unit.rows else Row(*asked.values(), mark.args[0], "failed", str(error))
    if error is not None:  # the reason, not a traceback through the course's files
        report.longrepr = (
            row.why if isinstance(error, Lost) else f"the test itself failed: {error!r}"
        )
    item.user_properties += [
        ("points", mark.args[0]),
        ("earned", mark.args[0] if report.passed else 0),
    ]
    report.user_properties = item.user_properties
    item.config.stash[CARD].append((unit, row))


def pytest_report_teststatus(report, config):
    if report.when == "call" and any(key == "points" for key, _ in report.user_properties):
        return report.outcome, "", ""  # no row of dots and F's


def next_hints(unit, row, level):
    """The hints up to this level, numbered, and how to ask for the next. Where the mistake is
    named, only its own hint speaks: the general ones lead away from it, and wait to be asked."""
    tried = row.exercise in unit.exercises and row.state not in ("ok", "broken", "missing", "road")
    hints = unit.exercises[row.exercise].hints_for(row.part) if tried else ()
    named = unit.exercises[row.exercise].named(row.why) if tried else None
    if named is not None and level is None:
        own = [f"hint: {named.hint}"] if named.hint else []
        return own + ["(--hint 1 says more)"] * bool(hints)
    level = (row.state != "todo") if level is None else max(level, 0)
    shown = [f"hint {i} of {len(hints)}: {hint}" for i, hint in enumerate(hints[:level], 1)]
    return shown + [f"(--hint {level + 1} says more)"] * (len(hints) > level)


def inherited(unit, row, rows):
    """Which other exercises' functions, themselves short of points, this row's function calls, and
    would have passed with the right ones: fix those first."""
    lost = {other.exercise for other in rows if other.state != "ok"} - {row.exercise}
    if not lost or row.state not in ("wrong", "raised"):
        return ""
    proved = [name for name in unit.inherited(row) if name in lost]
    if not proved:
        return ""
    names = " and ".join(proved)
    return f"with the right {names} in its place your {row.exercise} passes: fix {names} first"


def first_time(config, unit, exercises):
    """Those of these exercises of which no run before has said why they are right."""
    if config.getoption("why") or not hasattr(config, "cache"):
        return exercises
    place = f"homework/{unit.short}"
    before = config.cache.get(place, [])
    config.cache.set(place, sorted({*before, *(exercise.name for exercise in exercises)}))
    return [exercise for exercise in exercises if exercise.name not in before]


def pytest_terminal_summary(terminalreporter, config):
    text = []
    for unit in dict.fromkeys(unit for unit, _ in config.stash[CARD]):
        rows = [row for of, row in config.stash[CARD] if of is unit]
        text += tell(unit, rows, terminalreporter, config)
    if text and (card := config.getoption("card")):
        try:
            write_whole(card, "\n".join(text), is_card)
        except (OSError, ValueError) as error:
            terminalreporter.write_line(f"the card cannot be written to {card}: {error}", red=True)


def tell(unit, rows, terminal, config):
    """A unit's card on the terminal; returns it as lines of Markdown."""
    line, level = terminal.write_line, config.getoption("hint")
    earned, points = sum(row.earned for row in rows), sum(row.points for row in rows)
    title = f"{unit.short} · {unit.title} {earned} of {points} points"
    terminal.section(title, sep="=", bold=True)

    # the file, and what of it could not be read
    for name, problem in unit.problems.items():
        if name.startswith("line "):
            why = problem.get("detail", "")
            line(f"{name} of {unit.file} could not be read or run: {why}", red=True)
    line(f"your file: {unit.shown}")
    if road := road_of(unit):
        line(road)

    # why it is so: above the table, so that what is left to do stays in sight
    whole = [exercise for exercise in unit.whole(rows) if exercise.after]
    new = first_time(config, unit, whole)
    for said in (said for exercise in new for said in reports.explained(exercise)):
        line(said)
    if len(new) < len(whole):
        line("(--why says again why what you have earned is right)")
    if whole:
        line("")

    # the parts; of two that would be told the same hints, the first is
    wide = max(len(f"{row.exercise}: {row.part}") for row in rows)
    cells, told = [], {()}
    for row in rows:
        name, first = f"{row.exercise}: {row.part}", inherited(unit, row, rows)
        hints = (*([first] if first else []), *next_hints(unit, row, level))
        shown = () if (row.exercise, hints) in told else hints
        told.add((row.exercise, hints))
        for said in reports.lines(name, wide, row):
            line(said, green=row.state == "ok", red=row.state != "ok")
        for hint in shown:
            line(f"        {hint}")
        texts = [name, f"{row.earned}/{row.points}", row.why, " ".join(shown)]
        cells.append([text.replace("|", "\\|").replace("\n", " ") for text in texts])

    text = [f"# {title}", "", *([road, ""] if road else [])]
    text += [*reports.table(["part", "points", "why", "next hint"], cells), ""]
    for exercise in whole:
        text += [f"**`{exercise.name}`**: {reports.safe(exercise.after)}", ""]
    if earned == unit.points:
        said = reports.finished(unit, HERE)
        for part in textwrap.wrap(said, reports.WIDTH, break_on_hyphens=False):
            line(part, bold=True)
        text += [reports.safe(said), ""]
    return text
