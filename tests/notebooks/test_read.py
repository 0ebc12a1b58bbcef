"""Can the notebooks be read where nothing is installed? The pages that `make read` writes."""

import re

import nbformat
import pandas
import pytest

from course import figures, owner
from notebooks import run
from slides import lesson, read

FIRST = run.chosen(["00"])[0]
WRITTEN = [path for path in run.chosen([]) if read.page_of(path).exists()]
MOST = 6_000_000  # bytes of all pages and pictures together
each = pytest.mark.parametrize("path", WRITTEN, ids=read.number)


def text_of(path):
    return read.page_of(path).read_text(encoding="utf-8")


def cells_of(path):
    return nbformat.read(path, 4).cells


def test_each_page_was_made_from_its_notebook_as_it_is_now():
    old = " ".join(read.number(path) for path in read.stale() if path in WRITTEN)
    assert old == "", f"notebooks {old} changed since their pages were written: make read"


def test_every_notebook_has_a_page():
    assert WRITTEN == run.chosen([])


def test_another_letter_in_a_cell_is_another_hash(tmp_path):
    notebook = nbformat.read(FIRST, 4)
    notebook.cells[5].source += "."
    nbformat.write(notebook, tmp_path / "a.ipynb")
    assert read.source_hash(tmp_path / "a.ipynb") != read.source_hash(FIRST)


def test_a_link_in_the_head_to_its_own_page_is_no_change(tmp_path):
    """The command writes the link after the page, which would be stale at once."""
    notebook = nbformat.read(FIRST, 4)
    notebook.cells[0].source = owner.on_its_page(notebook.cells[0].source)
    nbformat.write(notebook, tmp_path / "a.ipynb")
    assert read.source_hash(tmp_path / "a.ipynb") == read.source_hash(FIRST)


def test_the_command_names_what_is_old_and_runs_nothing(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(read.deck, "executed", lambda *_: pytest.fail("a notebook was run"))
    monkeypatch.setattr(read, "FOLDER", tmp_path)
    read.main(["--stale"])
    assert capsys.readouterr().out.split() == [read.number(path) for path in run.chosen([])]
    for path in run.chosen([])[1:]:
        read.page_of(path).write_text(read.origin(path))
    read.main(["--stale"])
    assert capsys.readouterr().out == "00\n"


@each
def test_every_cell_stands_in_it_but_those_that_judge_what_a_reader_wrote(path):
    text = text_of(path)
    for cell in cells_of(path)[1:]:
        if cell.cell_type == "markdown":
            assert read.moved(cell.source) in text, cell.id
        elif "remove-input" not in cell.metadata.get("tags", []):
            assert (cell.source in text) != bool(lesson.checks_turn(cell)), cell.id


@each
def test_the_notebook_leads_to_it_and_it_does_not_lead_to_itself(path):
    head = cells_of(path)[0].source
    assert f"[executed, to read](../notebooks/read/{path.stem}.md)" in head
    assert not owner.TO_READ.search(text_of(path))
    assert f"]({path.stem}.md)" in (read.FOLDER / read.CONTENTS).read_text(encoding="utf-8")


@each
def test_every_link_and_picture_leads_to_a_file(path):
    text = re.sub(r"```.*?```", "", text_of(path), flags=re.S)
    links = re.findall(r"\]\((?![a-z]+:|#)([^)#]+)", text)
    pictures = re.findall(r'<img src="([^"]*)"', text)
    assert len(links) > 3 and len(pictures) > 1
    assert [link for link in links + pictures if not (read.FOLDER / link).exists()] == []
    kept = {one.name for one in read.FOLDER.glob(f"{read.number(path)}_*.svg")}
    assert kept == set(pictures)


@each
def test_pictures_are_light_drawings_that_can_be_heard_and_say_no_date(path):
    alts = re.findall(r'<img src="[^"]*" alt="([^"]*)"', text_of(path))
    assert all(len(alt) >= figures.SHORTEST_ALT for alt in alts) and len(set(alts)) == len(alts)
    for one in read.FOLDER.glob(f"{read.number(path)}_*.svg"):
        drawing = one.read_text(encoding="utf-8")
        assert drawing.startswith(("<svg", "<?xml")) and drawing.rstrip().endswith("</svg>")
        assert "data:image" not in drawing and "xmlns=" in drawing
        assert "metadata" not in drawing and "<text" in drawing, "letters stay letters"


@each
def test_every_fold_is_closed_again_and_no_page_names_this_machine(path):
    text = text_of(path)
    assert text.count("<details>") == text.count("</details>")
    assert str(run.ROOT) not in text


def test_all_pages_together_are_light():
    assert sum(path.stat().st_size for path in read.FOLDER.iterdir()) < MOST


def test_an_answer_waits():
    text = text_of(FIRST)
    before = text[: text.index("layers with W_V in ResFormer: 12")]
    assert before.count("<details>") == before.count("</details>") + 1
    assert "you said" not in text


def test_a_smaller_picture_says_the_same_numbers():
    """Its places are rounded, and what is written in it is not."""
    drawing = '<svg width="9"><path d="M 1.23456 2"/><text x="3.14159">+0.108</text></svg>'
    assert read.small(drawing) == (
        '<svg width="9"><path d="M1.2 2"/><text x="3.1">+0.108</text></svg>\n'
    )


def test_a_shade_of_a_heat_map_is_short_and_paper_is_no_shade():
    path = '<path d="M 1 2\nL 3 2\nL 3 4\n" clip-path="url(#p)" style="{}"/>\n'
    grey, paper = "fill: #909090; stroke: #909090; stroke-width: 0.5", "fill: none"
    assert read.small(path.format(grey) + path.format(paper)) == (
        '<path d="M1 2L3 2L3 4" fill="#909090" stroke="#909090" stroke-width=".5"/>\n'
    )


def test_what_moves_stands_still_and_is_told():
    piece = (
        '<div class="movable"><style>x</style><p>A caption.</p><div class="picture">'
        '<svg width="9" height="9" role="img" aria-label="What it shows"><g></g></svg></div>'
        '<p><strong><span data-key="a">3 &lt; 4</span></strong></p></div><script>no</script>'
    )
    pictures = {}
    told = read.drawn(piece, "01_a.svg", pictures)
    assert told.startswith('<img src="01_a.svg" alt="What it shows">')
    assert told.endswith("A caption. 3 &lt; 4") and "script" not in told
    assert pictures["01_a.svg"].startswith('<svg xmlns="http://www.w3.org/2000/svg" width="9"')


def test_a_table_of_pandas_is_one_line_without_styles():
    frame = pandas.DataFrame(dict(loss=[3.125]), ["standard"])
    assert read.drawn(frame._repr_html_(), "01_a.svg", {}) == (
        "<table><thead><tr><th></th><th>loss</th></tr></thead>"
        "<tbody><tr><th>standard</th><td>3.125</td></tr></tbody></table>"
    )
