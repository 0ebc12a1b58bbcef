"""Figures that everybody can read, drawn from the plans and equal to the committed ones."""

import re
import subprocess
import sys

import pytest

from minimal.lab import figures, pictures
from minimal.variants import PLANS


def test_show_keeps_the_alt_text_as_html(monkeypatch, capsys):
    fig, ax = figures.axes("A takeaway")
    figures.show(fig, "Line of nothing over nothing: an empty pair of axes for a test")
    assert "[figure] Line of nothing" in capsys.readouterr().out


def test_a_figure_without_real_alt_text_is_refused():
    fig, ax = figures.axes("A takeaway")
    with pytest.raises(ValueError, match="at least 40"):
        figures.show(fig, "a plot")


def test_lines_differ_in_more_than_colour():
    hands = [figures.line_style(i) for i in range(8)]
    assert len({(str(h["linestyle"]), h["marker"]) for h in hands}) == 8


def test_the_map_of_sources_has_a_row_for_every_plan():
    fig = figures.sources_map("nano")
    ax = fig.axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == list(PLANS)
    letters = [t.get_text() for t in ax.texts]
    assert letters.count("Eγ") == 2 + 2 + 4 + 2 + 2 + 2, (
        "bov, shared, every, alternate, half and gqa, at four layers"
    )


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_committed_pictures_are_those_of_today(name):
    """Text and cells of the picture, not its bytes: another Matplotlib may write another file."""
    import matplotlib.pyplot as plt

    path = pictures.FIGURES / name
    assert path.exists(), "run make figures"
    fig = pictures.PICTURES[name]()
    drawn = figures.picture(fig, "svg").decode()
    plt.close(fig)
    words = lambda svg: re.findall(r"<!-- (.*?) -->", svg)
    cells = lambda svg: re.findall(r"fill: (#[0-9a-f]{6})", svg)
    committed = path.read_text()
    assert words(drawn) == words(committed) and cells(drawn) == cells(committed), (
        "stale: run make figures and commit"
    )


def test_importing_the_package_leaves_the_heavy_ones_alone():
    code = (
        "import torch, sys; before = set(sys.modules); import minimal.train, minimal.generate, minimal.analysis, minimal.lab.figures, "
        "minimal.lab.evidence.runs; print([m for m in ('datasets', 'matplotlib', 'triton', 'transformers') if m in sys.modules and m not in before])"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
