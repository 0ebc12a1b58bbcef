"""A mistake is an edit of the oracle: what a table says, where an edit belongs, what it makes."""

import inspect
import re

import numpy as np
import pytest

from homework import edits, marking, turn
from homework.diagnosis import pairs, varied
from homework.marking import Part, Unit, normals

EXERCISES = sorted(marking.HERE.glob("hw*/exercises.py"))
NOTEBOOKS = sorted(marking.HERE.glob("in_notebooks/nb*.py"))


def rooted(x):
    return np.sqrt(x)


def squares(x, *, start=0):
    return start + total(x * x)


def total(x):
    return x.sum()


def length(x, unit=1.0):
    """The length of x, not the root of x: a number. No edit meets this text: x.sum(1)."""
    size = squares(x)  # of all
    return rooted(size) / unit


def halves(x):
    found = []
    for row in x:
        found.append(row / 2)
    return np.array(found)


X = np.array([[3.0, 4.0], [0.0, 12.0]])


def made(oracle, table):
    return {name: edit for _, name, edit in edits.ways_of(oracle, edits.read(table))}


def only(oracle, table):
    (edit,) = made(oracle, table).values()
    return edit


# ---- what a table says ---------------------------------------------------------------------------


def test_a_table_is_read_from_top_to_bottom():
    table = edits.read(
        """
        takes: hard, 12 minutes
        hint: first think of the sum: what is in it?
        in: squares, total
        off for small numbers: no, more: think of one
        hint for large numbers: and then
           | of its root
        after: a length is the root
           | of a sum

        12 | the first, which is
           | longer than a line: a => b
           hint: look at
           | the line above
           size => 2 * size
           / unit => * unit
           and: size =>
           | more
        3 | the second
          => 1 / 2 || 1 / 3
          * size => || + size
          | || - size
        """,
        first=40,
    )
    assert table.helpers == ["squares", "total"] and table.after == "a length is the root of a sum"
    assert table.hints == [
        (None, "first think of the sum: what is in it?"),
        ("large numbers", "and then of its root"),
    ]
    assert table.takes == ("hard", 12)
    assert table.off == {"small numbers": "no, more: think of one"}
    first, second = table.mistakes
    assert (first.line, first.loses, first.says) == (
        50,
        12,
        "the first, which is longer than a line: a => b",
    )
    assert first.hint == "look at the line above"
    assert first.ways == [
        [(54, "size", "2 * size")],
        [(55, "/ unit", "* unit"), (56, "size", "more")],
    ]
    assert (second.loses, second.says) == (3, "the second")
    assert second.ways == [
        [(59, "", "1 / 2")],
        [(59, "", "1 / 3")],
        [(60, "* size", "")],
        [(60, "* size", "+ size")],
        [(60, "* size", "- size")],
    ]


@pytest.mark.parametrize(
    "table, says",
    [
        ("size => 2", "line 1: wanted `POINTS | SENTENCE`, got 'size => 2'"),
        ("2 | a\n size", "line 2: wanted `this text => that text`, got 'size'"),
        ("2 | a\n3 | b\n size => 2", "line 1: a sentence without an edit: 'a'"),
        ("2 | a\n and: size => 2", "line 2: `and:` goes with an edit, and there is none above it"),
        ("2 | a\n seize => 2", "line 2: 'seize' does not occur in the body of length"),
        ("2 | a\n siz => 2", "line 2: 'siz' occurs 2 times in the body of length; write more"),
        ("2 | a\n x.sum(1) => 2", "line 2: 'x.sum(1)' does not occur"),  # it is the docstring's
        ("2 | a\n unit=1.0 => 2", "line 2: 'unit=1.0' does not occur"),  # what is asked stays
        ("2 | a\n / unit =>\n and: unit => 2", "line 3: 'unit' lies where the edit above lies"),
        (
            "2 | a\n / unit => / 2.sum()",
            "line 2: Python cannot read 'return rooted(size) / 2.sum()'",
        ),
        ("in: no_such\n2 | a\n => 2", "`in:` wants functions that length calls, got no_such"),
        ("in: X\n2 | a\n => 2", "`in:` wants functions that length calls, got X"),
        ("in: total\n2 | a\n x.sum(1) => 2", "in the body of length and total"),
    ],
)
def test_a_misprint_is_told_with_its_line(table, says):
    with pytest.raises(edits.Misprint) as error:
        list(edits.ways_of(length, edits.read(table)))
    assert says in str(error.value)


def test_a_unit_says_in_which_file_and_exercise_a_misprint_is():
    unit = Unit("hw99_example", "", "")
    unit.exercise(Part("any", 2, lambda r: normals(r, 3)))(total)
    line = test_a_unit_says_in_which_file_and_exercise_a_misprint_is.__code__.co_firstlineno + 8
    with pytest.raises(edits.Misprint, match=rf"test_edits.py, total: line {line}: 'mean' does"):
        unit.mistakes("""

        2 | your mean is a sum
            mean => sum
        """)
    assert unit.exercises["total"].wrongs == []


# ---- what an edit makes --------------------------------------------------------------------------


def test_an_edit_changes_the_one_place_that_has_its_text():
    assert only(length, "2 | a\n / unit => / unit / 2")(X) == 6.5
    assert only(length, "2 | a\n rooted(size) => size")(X) == 169
    assert only(length, "2 | a\n rooted(size) / =>")(X) == 1.0
    assert length(X) == 13


def test_an_edit_takes_the_defaults_of_what_it_edits():
    assert only(length, "in: squares\n2 | a\n x * x => abs(x)")(X) == np.sqrt(19)
    assert only(length, "2 | a\n rooted(size) => size")(X) == 169
    assert only(length, "2 | a\n rooted(size) => size")(X, 13) == 13


def test_without_a_text_the_whole_body_is_replaced():
    assert only(length, "2 | a\n => abs(x).sum()")(X) == 19
    assert only(length, "2 | a\n => 2 * length(x)")(X) == 26, "its own name is the right one's"
    assert only(length, "2 | a\n" + r" => y = abs(x)\nreturn y.max()")(X) == 12


def test_several_edits_at_once_and_several_ways_share_a_sentence():
    table = "2 | a\n squares(x) => squares(x) + 27\n and: rooted( => ("
    assert only(length, table)(X) == 196
    both = made(length, "2 | a\n rooted( => 2 * rooted(\n / unit => / 2")
    assert [edit(X) for edit in both.values()] == [26, 6.5]
    assert list(both) == ["rooted( => 2 * rooted(", "/ unit => / 2"]


def test_a_new_line_is_written_as_in_python():
    old, new = "found.append(row / 2)", r"found.append(row / 2)\n    found[-1][0] = 0"
    assert only(halves, f"2 | a\n {old} => {new}")(X).tolist() == [[0.0, 2.0], [0.0, 6.0]]


def test_an_edit_may_lie_in_a_function_that_the_oracle_calls_or_that_is_called_there():
    table = "in: squares, total\n2 | a\n x * x => abs(x)\n3 | b\n x.sum() => x.max()"
    one, two = made(length, table).values()
    assert one(X) == np.sqrt(19) and two(X) == 12
    assert one.beside(two)(X) == np.sqrt(12)
    assert length(X) == 13 and squares(X) == 169, "nobody else's function has changed"


def test_two_edits_that_meet_are_no_pair():
    one, two, three = made(length, "1 | a\n / unit => / 2\n unit => 3\n rooted => abs").values()
    assert one.beside(two) is None and one.beside(one) is None
    assert one.beside(three)(X) == 84.5 == three.beside(one)(X)


# ---- exercises that have them --------------------------------------------------------------------


@pytest.mark.parametrize("path", [*EXERCISES, *NOTEBOOKS], ids="{0.parent.name} {0.stem}".format)
def test_every_mistake_is_a_line_of_a_table(path):
    """There is no other notation: no oracle with switches, no mistake that is made by hand."""
    assert not re.search(r"\b(slip|Wrong)\(", path.read_text(encoding="utf-8"))
    homework = path.name == "exercises.py"
    unit = marking.find(path.parent.name) if homework else turn.unit_of(path.stem)
    assert unit.exercises
    for name, exercise in unit.exercises.items():
        asked = inspect.signature(exercise.oracle).parameters.values()
        assert {x.kind for x in asked} <= {inspect.Parameter.POSITIONAL_OR_KEYWORD}, name


def an_exercise(table):
    unit = Unit("hw99_example", "", "")
    part = Part("any", 2, lambda r: normals(r, (2, 3)))
    unit.exercise(part)(length)
    unit.mistakes(table)
    return unit, unit.exercises["length"]


TABLE = """
2 | take the root
    rooted(size) => size
2 | halves are not wanted
    / unit => / unit / 2
    / unit => / (2 * unit)
1 | the largest is no length
    => x.max()
"""


@pytest.mark.parametrize("line", ["hint for some: a", "off for some: a"])
def test_a_part_that_is_not_there_is_a_misprint(line):
    with pytest.raises(edits.Misprint, match="length: there is no part 'some'"):
        an_exercise(f"{line}\n{TABLE}")
    _, exercise = an_exercise(line.replace("some", "any") + TABLE)
    assert [*exercise.hints_for("any"), *exercise.off.values()] == ["a"]


def test_named_mistakes_come_with_the_most_special_first():
    _, exercise = an_exercise(TABLE)
    assert [wrong.loses for wrong in exercise.wrongs] == [1, 2, 2, 2]
    assert exercise.wrongs[1].name == "rooted(size) => size"


def test_a_mistake_is_named_alone_and_beside_another():
    unit, exercise = an_exercise(TABLE)

    def told(code):
        import torch

        names = dict(torch=torch)
        exec(f"def length(x):\n    return {code}", names)
        return unit.mark(names, {}, exercise, exercise.parts[0]).why

    assert told("x.norm()") == ""
    assert told("x.square().sum()") == "take the root"
    assert told("x.norm() / 2") == "halves are not wanted"
    both = "two things at once. First: take the root. Second: halves are not wanted"
    assert told("x.square().sum() / 2") == both


def test_two_ways_of_one_sentence_are_no_pair():
    _, exercise = an_exercise(TABLE)
    said = [wrong.says for wrong in pairs(tuple(exercise.wrongs))]
    assert len(said) == 2 and all("take the root" in words for words in said)


def test_an_answer_of_one_number_is_no_pair_of_mistakes():
    """Of many pairs some are the same everywhere by chance."""
    ones = [("part", [], [[np.ones(3)], [np.ones((2, 2), int)]])]
    assert not varied(ones) and not varied([("part", [], [[np.full(3, np.nan)]])])
    assert not varied([*ones, ("places", [], [[np.array([1, 2])]])])
    assert varied([*ones, ("other", [], [[np.array([1.5, 2.5])]])])
