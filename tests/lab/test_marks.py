"""Would a wrong number be noticed, wherever one of the records stands in prose? And a figure?"""

import re

import pytest

from course import figures
from course.drawings.__main__ import PICTURES, picture_bytes
from course.records import CHECKOUT, EVIDENCE
from evidence.lab import marks
from evidence.lab.marks import FIGURES, MOVING
from tests.pictures import shown

PRINTED = "the numbers of records stand in what its cells print and draw, none in its prose"
SPOKEN = f"{PRINTED}; its notes speak numbers as words"
OF_TOYS = "its numbers are of toys that it computes"
ASKS = "it asks for numbers and tells none that was recorded"
ARCHIVE = "an archive with its date, or measured by hand: no command renews it"

# files that people read and in which no number of the records stands, and why
WITHOUT = {
    "notebooks/README.md": "it tells how to set up the course",
    "notebooks/01_attention.ipynb": OF_TOYS,
    "notebooks/11a_write_a_kernel.ipynb": PRINTED,
    "slides/01_attention.ipynb": OF_TOYS,
    "slides/02_transformer.ipynb": "its two numbers are of single runs, marked by hand",
    "slides/11b_decode_and_the_best_kernel.ipynb": PRINTED,
    "notebooks/evidence/questions/what_coefficients_say.ipynb": PRINTED,
    **{f"notebooks/evidence/{name}.md": ARCHIVE for name in ("ledger", "speed")},
    **{f"slides/{name}.ipynb": SPOKEN for name in ("03_inside", "04_resformer")},
    **{f"slides/{name}.ipynb": SPOKEN for name in ("06_value_embeddings", "08_bert_bypass")},
    **{f"slides/{name}.ipynb": SPOKEN for name in ("12_scale_and_evidence", "13_what_came_next")},
}
EVERY = {path.relative_to(CHECKOUT).as_posix(): path for path in marks.marked_files()}
WITHOUT |= {name: ASKS for name in EVERY if name.startswith("homework/")}


def counted(path):
    """The marked numbers of a file that are not by hand."""
    found = [match for text in marks.texts_of(path) for match in marks.MARKED.finditer(text)]
    return [match for match in found if not match[4].startswith(marks.BY_HAND)]


def falsified(match):
    """A marked number with another last digit."""
    if match[4].startswith(marks.BY_HAND):
        return match[0]
    number = re.search(marks.NUMBER, match[0])[0]
    return match[0].replace(number, number[:-1] + str((int(number[-1]) + 1) % 10), 1)


@pytest.mark.parametrize("name", sorted(EVERY))
def test_every_marked_number_that_is_falsified_is_named(name, monkeypatch):
    path = EVERY[name]
    wrong = [marks.MARKED.sub(falsified, text) for text in marks.texts_of(path)]
    monkeypatch.setattr(marks, "texts_of", lambda path: wrong)
    noticed = marks.stale(path)
    monkeypatch.undo()
    assert [new for _, new in noticed] == [match[0] for match in counted(path)]
    assert bool(noticed) != (name in WITHOUT), "a number's mark, or a reason to have none"


def test_no_reason_is_left_behind():
    assert set(WITHOUT) <= set(EVERY)


def test_the_findings_are_read_in_six_minutes():
    page = (EVIDENCE / "README.md").read_text(encoding="utf-8")
    seen = re.sub(r"<!--.*?-->|!\[.*?\]\(.*?\)", "", page, flags=re.S)
    assert len(seen.split()) <= 1500


@pytest.mark.parametrize("name", [*PICTURES, *MOVING])
def test_the_committed_drawings_are_those_of_today(name):
    today = picture_bytes((PICTURES | MOVING)[name]).decode()
    committed = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")
    assert shown(today) == shown(committed), "make figures"


def test_every_picture_is_shown_holds_its_alt_text_and_turns_dark_with_its_page():
    pages = "".join(path.read_text(encoding="utf-8") for path in marks.marked_files())
    for path in FIGURES.iterdir():
        svg = path.read_text(encoding="utf-8")
        assert f"figures/{path.name}" in pages
        assert marks.alt_of(path.stem), path.name
        asked = re.findall(r"@media \(prefers-color-scheme: dark\) \{(.*)", svg, flags=re.S)
        dark = r"\s*(svg > g \{ filter: invert|\.paper \{ fill: #1)"
        assert len(asked) == 1 and re.match(dark, asked[0]), path.name


def test_what_is_kept_as_a_file_is_a_figure_with_a_name(tmp_path, monkeypatch, capsys):
    alt = 'A line of nothing over nothing: an empty pair of axes for a "test"'
    for folder in ("", str(tmp_path)):
        monkeypatch.setenv(figures.FOLDER, folder)
        for name in ("", "kept"):
            figures.show(figures.axes("A takeaway")[0], alt, name)
        assert [path.name for path in tmp_path.iterdir()] == ["kept.svg"] * bool(folder)
    monkeypatch.setattr(marks, "FIGURES", tmp_path)
    assert marks.alt_of("kept") == alt
    capsys.readouterr()
