"""The kill matrix of the homework proofs, printed after the tests: what each wrong answer lost, and which mutants lived."""
import pytest

LINES = {}


@pytest.fixture
def matrix():
    """Note one cell: matrix(unit, exercise or None, what, result)."""
    def note(unit, exercise, what, result):
        LINES.setdefault((unit.folder, exercise.name if exercise else "all", exercise.points if exercise else 100), {})[what] = result
    return note


def pytest_terminal_summary(terminalreporter):
    if LINES:
        terminalreporter.section("kill matrix: points lost by each wrong answer")
    for (folder, exercise, points), cells in sorted(LINES.items()):
        told = ", ".join(f"{what} {result}".strip() for what, result in cells.items())
        terminalreporter.write_line(f"{folder.split('_')[0]} {exercise} ({points}): {told}")
