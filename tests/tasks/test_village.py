"""Is the generated set what it says: SQuAD in form, the same from a seed, unguessable, with
entities held out?"""

import collections
import hashlib
import json
import re

import pytest

from course import village
from minimal.data import files
from minimal.encoder import wordpiece
from minimal.tasks import squad

MANY = [(level, split) for level in village.LEVELS for split in ("train", "test")]


def read(tree):
    report = files.Report()
    questions = squad.read(tree, report)
    assert not report.skipped
    return questions


def test_the_same_arguments_give_the_same_bytes_for_ever():
    made = json.dumps(village.make(3, 20, 0, "train", 0.2), sort_keys=True)
    assert made == json.dumps(village.make(3, 20, 0, "train", 0.2), sort_keys=True)
    assert made != json.dumps(village.make(3, 20, 1, "train", 0.2), sort_keys=True)
    assert hashlib.sha256(made.encode()).hexdigest()[:12] == "992686ef1f5f", (
        "the set changed: recorded results no longer hold"
    )


@pytest.mark.parametrize("level, split", MANY)
def test_every_answer_stands_where_it_says(level, split):
    questions = read(village.make(level, 30, 0, split))
    dial = village.LEVELS[level]
    assert len(questions) == 30 * dial.people * dial.facts
    for question in questions:
        ((text, start),) = question.answers
        assert question.context[start : start + len(text)] == text and question.span == (
            start,
            start + len(text),
        )
        assert question.context.count(text) >= 1 and "{" not in question.context + question.question


@pytest.mark.parametrize("level", village.LEVELS)
def test_exactly_one_fact_of_the_paragraph_answers_a_question(level):
    """Subject and relation of a question select one sentence: no two facts share them, and no thing
    is told twice."""
    for part in village.make(level, 40, 0)["data"][0]["paragraphs"]:
        asked = [item["question"] for item in part["qas"]]
        assert len(set(asked)) == len(asked)
        answers = [item["answers"][0]["text"].lower() for item in part["qas"]]
        objects = [
            a for a, q in zip(answers, asked) if not q.startswith(("Who", "By whom", "From whom"))
        ]
        assert len(set(objects)) == len(objects)


def names(tree):
    """Made-up words: capitalised ones that are no sentence starters of the templates, and years."""
    text = " ".join(p["context"] for p in tree["data"][0]["paragraphs"])
    fixed = set(
        re.findall(
            r"\w+",
            " ".join(" ".join(r.told) + r.denied for r in village.RELATIONS)
            + " ".join(village.IDLE),
        )
    )
    singles = {
        word.capitalize()
        for kind in village.KINDS.values()
        for words in kind[:2]
        for word in words
        if len(word) > 2
    }
    return {
        word
        for word in re.findall(r"\b(?:[A-Z][a-z]+|\d+)\b", text)
        if word not in fixed | singles and len(word) > 3
    }


def test_held_out_entities_never_occur_in_training_but_their_parts_do():
    train, test = names(village.make(2, 1500, 0, "train")), names(village.make(2, 300, 5, "test"))
    assert len(train) > 1200 and len(test) > 250
    assert not train & test
    for kind in ("person", "town", "year", "number", "animal", "goods"):
        first, second, glue = village.KINDS[kind]
        by_split = {
            split: {
                (i, j)
                for i in range(len(first))
                for j in range(len(second))
                if ((i + 2 * j) % village.HELD_OUT == 0) == (split == "test")
            }
            for split in ("train", "test")
        }
        for part in (0, 1):
            assert {p[part] for p in by_split["test"]} <= {p[part] for p in by_split["train"]}, (
                "every part is trained on"
            )
        made = [[a + glue + b for a in first for b in second]]
        assert len(set(made[0])) == len(made[0]), f"two different {kind} parts make the same word"


def test_guessing_without_the_question_scores_what_one_fact_in_n_gives():
    for level in (1, 3):
        tree, dial = village.make(level, 200, 0, "test"), village.LEVELS[level]
        got = squad.score(read(tree), village.chance_predictions(tree))
        assert (
            abs(got["exact"] - 100 / (dial.people * dial.facts)) < 4
            and got["f1"] < got["exact"] + 3
        )


def test_the_dial_makes_paragraphs_longer_and_chance_lower():
    length, chance = [], []
    for level in village.LEVELS:
        tree = village.make(level, 60, 0, "test")
        length.append(sum(len(p["context"].split()) for p in tree["data"][0]["paragraphs"]) / 60)
        chance.append(squad.score(read(tree), village.chance_predictions(tree))["f1"])
    assert length == sorted(length) and length[-1] > 4 * length[0] and chance[0] > 2 * chance[-1]


def test_the_upper_levels_ask_backwards_deny_idle_and_say_this_person():
    tree = village.make(5, 60, 0)
    text = json.dumps(tree)
    asked = [i["question"] for p in tree["data"][0]["paragraphs"] for i in p["qas"]]
    back = sum(q.startswith("Who") or "hom" in q.split()[1] for q in asked) / len(asked)
    assert 0.3 < back < 0.8 and "this person" in text.lower()
    assert any(idle in text for idle in village.IDLE) and "would never live" in text
    plain = json.dumps(village.make(1, 60, 0))
    assert (
        "this person" not in plain.lower()
        and "would never" not in plain
        and not any(idle in plain for idle in village.IDLE)
    )


def test_backward_questions_answer_with_the_name_even_where_the_fact_says_this_person():
    for part in village.make(5, 40, 0)["data"][0]["paragraphs"]:
        for item in part["qas"]:
            assert item["answers"][0]["text"].lower() != "this person"


def test_unanswerable_questions_are_marked_and_about_what_is_not_told():
    tree = village.make(2, 200, 0, "train", unanswerable=0.3)
    items = [(p["context"], i) for p in tree["data"][0]["paragraphs"] for i in p["qas"]]
    none = [(c, i) for c, i in items if i["is_impossible"]]
    assert tree["version"] == "v2.0" and abs(len(none) / len(items) - 0.3) < 0.05
    assert all(not i["answers"] for _, i in none) and all(
        i["answers"] for _, i in items if not i["is_impossible"]
    )
    strangers = sum(
        not any(word in context for word in re.findall(r"\b[A-Z][a-z]+", i["question"])[1:])
        for context, i in none
    )
    assert 0.3 < strangers / len(none) < 0.7, "about half ask for a person of whom nothing is told"
    assert len(read(tree)) == len(items)


def test_names_fall_into_pieces_so_that_held_out_ones_are_spelled_with_trained_ones():
    tree = village.make(1, 800, 0)
    texts = [p["context"] for p in tree["data"][0]["paragraphs"]]
    pieces = wordpiece.learn_pieces(texts, 700)
    held = [p["context"] for p in village.make(1, 200, 0, "test")["data"][0]["paragraphs"]]
    seen, asked = (collections.Counter(sum(pieces.encode_all(part), [])) for part in (texts, held))
    assert not asked[pieces.unk]
    strange = sum(n for piece, n in asked.items() if seen[piece] < 5)
    assert strange < 0.01 * asked.total(), (
        "held-out names must not be told by pieces that nobody trained"
    )


def test_wrong_arguments_get_one_sentence():
    for change, wanted in (
        (dict(level=9), "a level from 1 to 5"),
        (dict(split="dev"), "'train' or 'test'"),
    ):
        with pytest.raises(ValueError, match=wanted):
            village.make(**change)
