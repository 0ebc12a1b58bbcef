"""The kill matrix, printed at the end of the run: what each wrong answer lost, and which mutants
lived."""

import functools

import pytest

from homework import grade, marking, sandbox
from tests import interpreter  # noqa: F401 before an exercise imports Triton
from tests.homework.classroom import UNIT


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "points(n): what a part is worth, as homework/conftest.py says"
    )


@pytest.fixture(autouse=True)
def pytorch_road(monkeypatch):
    """Right answers here are loops in PyTorch; test_road.py takes the other road."""
    monkeypatch.setenv("HOMEWORK_ROAD", "torch")


@pytest.fixture(scope="session")
def way():
    """The isolation of this system. Without any, nothing hostile is ever run here: the attacks
    would be real."""
    found, notes = sandbox.best_way(4)
    if found == "none":
        pytest.skip(f"no isolation on this system ({'; '.join(notes)})")
    return found


checked = functools.cache(sandbox.check)


@pytest.fixture(autouse=True)
def checked_once(monkeypatch):
    """Each command first tries its sandbox, which takes two seconds. Here it does so once; how it
    tries, and that it is refused what lies open, is asked of processes of its own."""
    monkeypatch.setattr(grade, "check", lambda way, memory, closed=(): checked(way, memory))


@pytest.fixture
def stub(monkeypatch):
    """Grading costs nothing here: a file that says "first" earns everything."""
    asked = []

    def fake(unit, source, *more):
        asked.append(source.decode())
        state = "ok" if source == b"first" else "shape"
        return [marking.Row(e.name, p.name, p.points, state, "") for e, p in unit.parts()]

    monkeypatch.setattr(grade, "grade", fake)
    monkeypatch.setattr(grade, "isolate", lambda *a: None)
    monkeypatch.setattr(grade, "find", lambda name: UNIT)
    return asked


@pytest.fixture
def matrix(note):
    """One cell of the kill matrix: matrix(unit, exercise or None, what, result)."""

    def cell(unit, exercise, what, result):
        name, points = (exercise.name, exercise.points) if exercise else ("all", unit.points)
        row = f"{unit.short} {name} ({points})"
        note("kill matrix: points lost by each wrong answer", row, f"{what} {result}".strip())

    return cell
