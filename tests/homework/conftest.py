"""The kill matrix, printed after the homework proofs: what each wrong answer lost, and which
mutants lived."""

import pytest

from homework import sandbox
from tests import interpreter  # noqa: F401 before an exercise imports Triton

LINES = {}


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


@pytest.fixture
def matrix():
    """Note one cell: matrix(unit, exercise or None, what, result)."""

    def note(unit, exercise, what, result):
        row = (exercise.name, exercise.points) if exercise else ("all", unit.points)
        LINES.setdefault((unit.short, *row), {})[what] = result

    return note


def pytest_terminal_summary(terminalreporter):
    if LINES:
        terminalreporter.section("kill matrix: points lost by each wrong answer")
    for (unit, exercise, points), cells in sorted(LINES.items()):
        told = ", ".join(f"{what} {result}".strip() for what, result in cells.items())
        terminalreporter.write_line(f"{unit} {exercise} ({points}): {told}")
