"""Are figures in the letters of the page around them? Where the npm packages are here."""

import base64
import os
import re

import pytest

from course import figures
from slides import letters, page


@pytest.mark.site
def test_a_figure_drawn_for_the_site_is_in_its_letters_and_no_other_is():
    with letters.for_figures():
        assert figures.house_style()["font.family"][0] == "Source Sans 3 latin"
        made = figures.figure_bytes(figures.axes("A takeaway of γ → 0")[0])
    assert figures.LETTERS_FROM not in os.environ
    assert figures.house_style()["font.family"] == ["DejaVu Sans"]
    assert made != figures.figure_bytes(figures.axes("A takeaway of γ → 0")[0])


def test_without_the_packages_figures_are_as_everywhere():
    with letters.for_figures():
        assert figures.LETTERS_FROM not in os.environ
    svg = '<img src="data:image/svg+xml;base64,PHN2Zy8+">'
    assert letters.into_images(svg) == svg


@pytest.mark.site
@pytest.mark.parametrize(
    "words, weights, alphabets",
    [("plain", 1, 1), ('<text font-weight="bold">b</text>', 2, 1), ("γ", 1, 2)],
)
def test_a_drawing_brings_the_letters_that_it_needs(words, weights, alphabets, tmp_path):
    svg = f"<svg><style>text {{ }}</style><text>{words}</text></svg>"
    path = tmp_path / "a.svg"
    path.write_text(svg, encoding="utf-8")
    letters.into_drawings(tmp_path)
    made = path.read_text(encoding="utf-8")
    assert made.count("@font-face") == weights * alphabets and made.count("data:font/woff2") > 0
    assert re.sub(r"@font-face\{.*?\}\n", "", made) == svg
    data = base64.b64encode(svg.encode()).decode()
    image = letters.into_images(f'<img src="data:image/svg+xml;base64,{data}">')
    held = re.search(r"base64,([^\"]*)", image)[1]
    assert base64.b64decode(held).decode() == made
    assert page.letters is letters, "pages of notebooks do so"
