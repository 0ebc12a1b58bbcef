"""What a class was told no reason for becomes drafts of edits: kept without names, found again, and
fit for a table."""

import ast
import json

import numpy as np
import pytest

from homework import edits, grade, marking, mistakes, unnamed
from homework.marking import Part, Row, Unit, normals
from tests.homework.classroom import HONEST, UNIT

SEED = 7
unit = Unit("hw77_toy", "A toy", "x")


@unit.exercise(
    Part("any", 5, lambda r: normals(r, (4, 5), (4, 5))),
    Part("long", 5, lambda r: normals(r, (4, 50), (4, 50))),
)
def distance(x, y):
    """(4,), and half their mean."""
    left = 3
    while left > 0:
        left = left - 1
    apart = np.sqrt(((x - y) ** 2).sum(1))
    return apart, apart.mean(keepdims=True) / 2


unit.mistakes("""
hint: Subtract first.
10 | take the root
     np.sqrt(((x - y) ** 2).sum(1)) => ((x - y) ** 2).sum(1)
""")
EXERCISE = unit.exercises["distance"]


def handed(answer, state="ok"):
    """(rows, heard) of a learner whose function of the inputs this is."""
    heard, rows = {}, []
    for part in EXERCISE.parts:
        cases = EXERCISE.cases(part, SEED)
        states = [dict(state=state)] * len(cases)
        found = [[np.asarray(x, case[0].dtype) for x in answer(*case)] for case in cases]
        heard["distance", part.name] = (states, found)
        said = EXERCISE.verdict(part, SEED, states, found, hidden=True)
        rows.append(Row("distance", part.name, part.points, *said))
    return rows, heard


def kept(answer, **how):
    rows, heard = handed(answer, **how)
    return unnamed.answers(unit, rows, SEED, heard)


def summed(x, y):
    apart = np.sqrt(((x + y) ** 2).sum(1))
    return apart, apart.mean(keepdims=True) / 2


def summed_otherwise(x, y):
    return tuple(z * (1 + 1e-7) for z in summed(x, y))


def squared(x, y):
    apart = ((x - y) ** 2).sum(1)
    return apart, apart.mean(keepdims=True) / 2


def strange(x, y):
    return x[:, 0] * 7 + 1, y[:1, 0]


def wrong_in_one_part(x, y):
    return (distance if x.shape[1] == 5 else summed)(x, y)


# ---- what is kept --------------------------------------------------------------------------------


def test_only_an_answer_without_a_reason_is_kept():
    assert kept(distance) == {} and kept(squared) == {}, "right, and named"
    assert kept(summed, state="raised") == {}
    (parts,) = kept(summed).values()
    assert parts.keys() == {"any", "long"}
    (parts,) = kept(wrong_in_one_part).values()
    assert parts.keys() == {"any", "long"}, "what is right tells more, too"


def test_an_answer_that_is_too_large_is_not_kept(monkeypatch):
    assert kept(summed)
    monkeypatch.setattr(unnamed, "MOST", 29)  # five numbers in three cases of two parts
    assert kept(summed) == {}


def test_equal_answers_are_one_and_the_most_frequent_comes_first():
    learners = [kept(f) for f in (strange, distance, summed, summed_otherwise)]
    groups = unnamed.grouped(unit, SEED, learners)
    assert [(name, count) for name, _, count in groups] == [("distance", 2), ("distance", 1)]


def test_a_file_brings_back_what_was_kept():
    text = unnamed.page(unit, SEED, [kept(summed), kept(summed)])
    seed, ((name, parts, count),) = unnamed.read(unit, text)
    assert (seed, name, count) == (SEED, "distance", 2)
    (before,) = kept(summed).values()
    for part in ("any", "long"):
        for old, new in zip(before[part], parts[part], strict=True):
            assert [x.dtype for x in new] == [x.dtype for x in old]
            assert all(map(np.array_equal, old, new))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"unnamed": "hw77"}'])
def test_a_file_of_something_else_is_refused_in_a_sentence(text):
    with pytest.raises(ValueError, match="wanted unnamed.txt, as the grader"):
        unnamed.read(unit, text)
    with pytest.raises(ValueError, match="wanted answers to hw77, got hw78's"):
        unnamed.read(unit, unnamed.page(unit, SEED, []).replace("hw77", "hw78"))


# ---- drafts --------------------------------------------------------------------------------------


def test_a_small_change_of_the_oracle_is_found_and_can_stand_in_a_table(monkeypatch):
    """Among them is `left + 1`, which never ends."""
    monkeypatch.setattr(unnamed, "SECONDS", 0.2)
    (parts,) = kept(summed).values()
    assert unnamed.drafts(EXERCISE, SEED, parts) == [("x - y", "x + y")]
    lines, row = mistakes.tried(unit, EXERCISE, "x - y", "x + y")
    assert row == (10, "SENTENCE", "x - y => x + y")


def test_what_no_small_change_gives_has_no_draft(monkeypatch):
    monkeypatch.setattr(unnamed, "SECONDS", 0.2)
    for answer in (strange, wrong_in_one_part):
        (parts,) = kept(answer).values()
        assert unnamed.drafts(EXERCISE, SEED, parts) == []


COMPUTED = [name for name in marking.find("hw03").exercises if not name.startswith("predict")]


@pytest.mark.parametrize("name", COMPUTED)
def test_every_change_is_an_edit_as_a_table_has_it(name):
    exercise = marking.find("hw03").exercises[name]
    bodies = exercise.bodies or edits.bodies_of(exercise.oracle)
    changes = list(unnamed.changes(exercise))
    assert len(changes) >= 10
    for old, new, made in changes:
        line = f"{old} => {new}".replace("\n", "\\n")
        again = edits.edited(bodies, [(1, *edits.edit_of(line))])
        assert again.source(again.spans[0][0]) == made.source(made.spans[0][0]), line
        assert again.source(again.spans[0][0]) != edits.Edited(bodies, ()).source(
            again.spans[0][0]
        ), line


def test_a_change_behind_an_umlaut_is_in_its_place():
    text = 'a = "ä"; b = c - 1\nd = c - 1'
    place = unnamed.place_of(text, node_of(text[: text.index("\n")]))
    assert unnamed.wide_enough([text], 0, *place, "c + 1") == ("b = c - 1", "b = c + 1")


def test_a_change_is_no_longer_than_what_makes_it_stand_once():
    text = "needs = [min(T, w + 1) if w else T for w in windows]\nkept = max(needs) + 1"
    one = next(x.right for x in ast.walk(node_of(text[: text.index("\n")])) if is_sum(x))
    place = unnamed.place_of(text, one)
    assert unnamed.wide_enough([text], 0, *place, "2") == ("w + 1", "w + 2")
    wider = unnamed.wide_enough([f"{text}\nlast = w + 1"], 0, *place, "2")
    assert wider == ("min(T, w + 1)", "min(T, w + 2)")


def is_sum(node):
    return isinstance(node, ast.BinOp)


def node_of(text):
    return ast.parse(text).body[-1].value


# ---- a class -------------------------------------------------------------------------------------


def test_a_class_leaves_drafts_with_counts_and_without_names(tmp_path, way, monkeypatch, capsys):
    monkeypatch.setattr(grade, "find", lambda name: UNIT)
    slip = HONEST.replace("x = x + causal_weights", "x = x - causal_weights")
    assert slip != HONEST
    handed_in = tmp_path / "handed in"
    handed_in.mkdir()
    for who, text in dict(anna=slip, carla=slip).items():
        (handed_in / f"{who}.py").write_text(text)
    out = tmp_path / "graded"
    grade.main(["hw03", str(handed_in), "--out", str(out), "--isolation", way, "--seed", "7"])
    file = out / "unnamed.txt"
    text = file.read_text()
    assert [(x["exercise"], x["learners"]) for x in json.loads(text)["answers"]] == [
        ("svformer", 2)
    ]
    assert not any(who in text for who in ("anna", "carla"))
    capsys.readouterr()
    mistakes.main(["hw03", "--class", str(file)])
    said = capsys.readouterr().out
    assert "svformer: 2 learners were told no reason" in said
    draft = "x + heard(q, k, v) @ wo[n] => x - heard(q, k, v) @ wo[n]"
    assert f"    A draft: {draft}" in said and "| SENTENCE" in said
    assert grade.is_ours(file), "graded again, it may be written over"


def test_a_class_that_was_told_every_reason_says_so():
    assert list(mistakes.of_class(unit, unnamed.page(unit, SEED, [{}, {}]))) == [
        "Every wrong answer was told a reason."
    ]
