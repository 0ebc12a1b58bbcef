"""The card of a verdict: readable without colour, the old sentences as text, and the case that
failed where it fits."""

import re
import textwrap
from collections import Counter
from html.parser import HTMLParser

import IPython.display
import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

from homework import marking, turn, verdict_card
from homework.verdict_card import LOOKS, SIDE, card, failing_case

NOTEBOOKS = sorted(path.stem for path in (marking.HERE / "in_notebooks").glob("nb*.py"))
ASKED = [
    (unit, name)
    for unit in NOTEBOOKS
    for name, exercise in turn.unit_of(unit).exercises.items()
    if not any(part.accept for part in exercise.parts)  # there nothing is wanted beside it
]


@pytest.fixture(autouse=True)
def new_kernel(monkeypatch):
    monkeypatch.setattr(turn, "HEARD", Counter())
    monkeypatch.setattr(turn, "ANSWERED", {})
    monkeypatch.setattr(turn, "EXPLAINED", set())


@pytest.fixture
def shown(monkeypatch):
    """What a notebook's cells display: [{media type: text}]."""
    found = []
    monkeypatch.setattr(verdict_card, "in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", lambda data, raw: found.append(data))
    return found


def mask(sees):
    """An answer to causal_mask, of which each calls itself so."""

    def causal_mask(T, S):
        return sees(torch.arange(S), torch.arange(T)[:, None] + S - T)

    return causal_mask


def stub(T, S):
    raise NotImplementedError


def broken(T, S):
    return T / 0


stub.__name__ = broken.__name__ = "causal_mask"
RIGHT, ITSELF_UNSEEN = mask(torch.le), mask(torch.lt)
ANSWERS = {
    "right": RIGHT,
    "wrong": ITSELF_UNSEEN,
    "stub": stub,
    "error": broken,
    "the solution": turn.solution("nb01", "causal_mask"),
}
WORDS = {"right": "right", "error": "your own error"}  # else not yet


class Page(HTMLParser):
    """What tags there are, closed in order, and the cells of its tables."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.roles, self.strong, self.text = [], [], "", ""
        self.captions, self.tables, self.framed = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        attributes = dict(attributes)
        self.roles += filter(None, [attributes.get("role")])
        if tag == "table":
            self.tables.append([])
        if tag == "caption":
            self.captions.append("")
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
            if "outline" in attributes.get("style", ""):
                self.framed.append((len(self.tables[-1]) - 1, len(self.tables[-1][-1]) - 1))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if "strong" in self.open:
            self.strong += data
        if "caption" in self.open:
            self.captions[-1] += data
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data


# ---- as text -------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ANSWERS)
def test_the_text_of_a_card_is_what_a_terminal_prints(answer, shown, monkeypatch, capsys):
    turn.your_turn("nb01", ANSWERS[answer])
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(verdict_card, "in_notebook", lambda: False)
    for kept in (turn.HEARD, turn.ANSWERED, turn.EXPLAINED):
        kept.clear()
    turn.your_turn("nb01", ANSWERS[answer])
    (data,) = shown
    assert capsys.readouterr().out == data["text/plain"] + "\n"
    page = Page(data["text/html"])
    assert all(line in page.text for line in data["text/plain"].splitlines())


@pytest.mark.slow
def test_a_kernel_gets_one_card_and_its_text():
    code = """
    import torch
    from homework.turn import your_turn

    def causal_mask(T, S):
        return torch.arange(S) < torch.arange(T)[:, None] + S - T

    causal_mask = your_turn("nb01", causal_mask)
    """
    cells = [nbformat.v4.new_code_cell(textwrap.dedent(code))]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "display_data" and set(output.data) == {"text/plain", "text/html"}
    assert output.data["text/plain"].startswith("causal_mask, as many queries as keys: your posit")
    assert Page(output.data["text/html"]).strong == "○ not yet"


# ---- how it looks --------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_card_says_in_a_word_and_a_sign_what_its_colour_says(answer, shown):
    turn.your_turn("nb01", ANSWERS[answer])
    page = Page(shown[0]["text/html"])
    word = WORDS.get(answer, "not yet")
    assert page.strong == f"{LOOKS[word][0]} {word}" and page.roles == ["status"]
    assert page.text.strip().startswith(page.strong), "it is read first"


def test_signs_and_colours_are_three():
    signs, colours = zip(*LOOKS.values(), strict=True)
    assert len(set(signs)) == len(set(colours)) == len(LOOKS) == 3


def lightness(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return sum(w * x for w, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(a, b):
    dark, light = sorted(map(lightness, (a, b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("word", LOOKS)
def test_every_colour_is_seen_in_light_and_in_dark(word):
    """JupyterLab's grounds are #fff and #111; all other text has the theme's own colours."""
    assert contrast(LOOKS[word][1], "#ffffff") >= 4.5, "white letters on it"
    assert contrast(LOOKS[word][1], "#111111") >= 3, "its border on dark"
    state = {"right": "ok", "not yet": "wrong", "your own error": "raised"}[word]
    made = card(state, ["one", "two"])
    assert set(re.findall(r"#\w+", made)) == {LOOKS[word][1], "#fff"}
    assert "color:var(--jp-content-font-color1,inherit)" in made


def test_what_a_sentence_says_of_tags_stays_text():
    page = Page(card("wrong", ["f: you wrote <b>a</b> & b", "hint 1 of 1: x < y"]))
    assert "you wrote <b>a</b> & b" in page.text and "x < y" in page.text


# ---- the case that failed ------------------------------------------------------------------------


def test_the_first_number_that_differs_has_a_sign_and_a_frame(shown):
    turn.your_turn("nb01", ITSELF_UNSEEN)
    page = Page(shown[0]["text/html"])
    assert "Asked with T=8, S=8." in page.text
    assert page.captions == ["yours, shape (8, 8)", "wanted, shape (8, 8)"]
    yours, wanted = page.tables
    assert yours[1][:3] == ["0", "≠ False", "False"] and wanted[1][:3] == ["0", "≠ True", "False"]
    for table in page.tables:
        signs = [(i, j) for i in range(9) for j in range(9) if "≠" in table[i][j]]
        assert signs == [(i, i) for i in range(1, 9)]
    assert page.framed == [(1, 1), (1, 1)], "one frame in each"


def answered(unit, name, change, part=0, case=0):
    """The table of an answer that is the right one, changed."""
    exercise = turn.exercise_of(unit, name)
    part = exercise.parts[part]
    right = exercise.expected(part, marking.PUBLIC, case)
    like = "f4" if right[0].dtype.kind == "f" else right[0].dtype
    answer = change([array.astype(like) for array in right])
    return failing_case(exercise, part, marking.PUBLIC, case, answer), right, answer


def nudged(arrays):
    """Two numbers too large, in two matrices."""
    arrays[0][0, 2, 3] += 1
    arrays[0][1, 1, 1] += 1
    return arrays


def test_of_more_axes_the_first_matrix_is_shown_that_differs():
    made, right, answer = answered("nb02", "norm", nudged)
    page = Page(made)
    assert page.captions == [f"{whose}, shape (2, 4, 6), at [0]" for whose in ("yours", "wanted")]
    yours, wanted = page.tables
    assert yours[3][4] == f"≠ {answer[0][0, 2, 3]:.4g}" and page.framed == [(3, 4), (3, 4)]
    assert wanted[3][4] == f"≠ {right[0][0, 2, 3]:.4g}"
    assert [sum("≠" in cell for row in table for cell in row) for table in page.tables] == [1, 1]


def test_another_shape_is_shown_whole_and_without_signs():
    made, *_ = answered("nb01", "causal_mask", lambda arrays: [arrays[0].T[:5]])
    page = Page(made)
    assert page.captions == ["yours, shape (5, 8)", "wanted, shape (8, 8)"]
    assert "≠" not in made and page.framed == []


def test_nothing_is_shown_where_it_does_not_fit_or_where_all_is_right():
    big = np.zeros((SIDE + 1, SIDE), bool)
    for answer in ([big], [big, big], [np.zeros((0, 3))], [np.zeros((2, 2, 2))]):
        assert answered("nb01", "causal_mask", lambda _, answer=answer: answer)[0] == ""
    assert answered("nb01", "causal_mask", lambda arrays: arrays)[0] == ""
    assert answered("nb02", "norm", lambda arrays: [np.array("text")])[0] == ""


def vector(x, n):
    """An oracle: n numbers."""
    return np.arange(n, dtype="f8") * x


def exercise_of(*pieces):
    return marking.Exercise(vector, pieces)


def test_a_vector_goes_on_in_the_next_row_under_the_index_of_its_first_number():
    part = marking.Part("any", 1, lambda r: (2.0, 19))
    answer = vector(2.0, 19)
    answer[17] = -1
    page = Page(failing_case(exercise_of(part), part, 0, 0, [answer]))
    assert [row[0] for row in page.tables[0]] == ["", "0", "8", "16"]
    assert page.tables[0][3] == ["16", "32", "≠ -1", "36"]
    assert page.tables[1][3] == ["16", "32", "≠ 34", "36"]


def test_digits_are_enough_to_see_the_difference():
    part = marking.Part("any", 1, lambda r: (2.0, 19))
    answer = vector(2.0, 19)
    answer[5] += 1e-4
    yours, wanted = Page(failing_case(exercise_of(part), part, 0, 0, [answer])).tables
    assert (yours[1][6], wanted[1][6]) == ("≠ 10.0001", "≠ 10")


def test_what_is_asked_without_inputs_and_what_has_many_answers_is_not_given_away():
    def constant(x=1.0, n=3):
        """Predict three numbers."""
        return np.arange(3.0)

    told, open_ = marking.Part("told", 1), marking.Part("open", 1, accept=lambda *_: None)
    exercise = marking.Exercise(constant, [told, open_])
    for part in (told, open_):
        assert failing_case(exercise, part, 0, 0, [np.zeros(3)]) == ""


def test_homework_asked_in_a_notebook_shows_no_table(shown):
    exercise = turn.exercise_of("hw01", "merge")
    turn.your_turn("hw01", marking.stand_in(exercise, exercise.wrongs[0]))
    assert Page(shown[0]["text/html"]).strong == "○ not yet" and "<table" not in str(shown)


@pytest.mark.parametrize("unit, name", ASKED, ids=[f"{u}-{n}" for u, n in ASKED])
def test_every_exercise_shows_its_mistakes_on_a_card_that_can_be_read(unit, name, shown):
    exercise = turn.exercise_of(unit, name)
    for wrong in exercise.wrongs[:2]:
        turn.your_turn(unit, marking.stand_in(exercise, wrong))
    for data in shown:
        page = Page(data["text/html"])
        assert page.strong == "○ not yet"
        assert len(page.tables) in (0, 2) and len(page.framed) in (0, 2)
        for table in page.tables:
            assert 1 <= len(table) <= SIDE + 1 and all(len(row) <= SIDE + 1 for row in table)
