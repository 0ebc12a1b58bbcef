"""Can the first notebook be read where nothing is installed? The page that `make read` writes."""

import re

import nbformat

from course import figures, owner
from notebooks import run
from slides import lesson, read

PAGE = read.FOLDER / f"{read.NOTEBOOK.stem}.md"
TEXT = PAGE.read_text(encoding="utf-8")
CELLS = nbformat.read(read.NOTEBOOK, 4).cells


def test_the_page_was_made_from_the_notebook_as_it_is_now():
    told = re.match(r"<!-- cells (\w+),", TEXT)[1]
    assert told == read.source_hash(read.NOTEBOOK), "the notebook was changed since: make read"


def test_another_letter_in_a_cell_is_another_hash(tmp_path):
    notebook = nbformat.read(read.NOTEBOOK, 4)
    notebook.cells[5].source += "."
    nbformat.write(notebook, tmp_path / "a.ipynb")
    assert read.source_hash(tmp_path / "a.ipynb") != read.source_hash(read.NOTEBOOK)


def test_every_cell_stands_in_it_but_those_that_judge_what_a_reader_wrote():
    for cell in CELLS[1:]:
        if cell.cell_type == "markdown":
            assert read.moved(cell.source) in TEXT, cell.id
        elif "remove-input" not in cell.metadata.get("tags", []):
            assert (cell.source in TEXT) != bool(lesson.checks_turn(cell)), cell.id


def test_the_notebook_leads_to_it_and_it_does_not_lead_to_itself():
    assert owner.TO_READ.search(CELLS[0].source) and not owner.TO_READ.search(TEXT)
    assert f"({'../notebooks/read/' + PAGE.name})" in CELLS[0].source


def test_every_link_and_picture_leads_to_a_file():
    links = re.findall(r"\]\((?![a-z]+:|#)([^)#]+)", re.sub(r"```.*?```", "", TEXT, flags=re.S))
    pictures = re.findall(r'<img src="([^"]*)"', TEXT)
    assert len(links) > 10 and len(pictures) == 4
    assert [link for link in links + pictures if not (read.FOLDER / link).exists()] == []
    assert {path.name for path in read.FOLDER.iterdir()} == {PAGE.name, *pictures}


def test_pictures_are_light_drawings_that_can_be_heard_and_say_no_date():
    alts = re.findall(r'<img src="[^"]*" alt="([^"]*)"', TEXT)
    assert all(len(alt) >= figures.SHORTEST_ALT for alt in alts) and len(set(alts)) == len(alts)
    for path in read.FOLDER.glob("*.svg"):
        drawing = path.read_text(encoding="utf-8")
        assert drawing.rstrip().endswith("</svg>") and "data:image" not in drawing
        assert "metadata" not in drawing and "<text" in drawing, "letters stay letters"
    assert sum(path.stat().st_size for path in read.FOLDER.iterdir()) < 300_000


def test_an_answer_waits_and_every_fold_is_closed_again():
    answer = TEXT.index("layers with W_V in ResFormer: 12")
    before = TEXT[:answer]
    assert before.count("<details>") == before.count("</details>") + 1
    assert TEXT.count("<details>") == TEXT.count("</details>")
    assert "you said" not in TEXT and str(run.ROOT) not in TEXT
