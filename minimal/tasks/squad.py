"""Which words of this passage answer the question? SQuAD v1 and v2: reading, and the official
score. What lies between, windows for an encoder and answers from its scores, is in passages.py."""

import json
import re
import string
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from minimal.data.files import Skip, need
from minimal.tasks.rows import downloaded

SHAPE = (
    '{"data": [{"paragraphs": [{"context", "qas": '
    '[{"id", "question", "answers": [{"text", "answer_start"}]}]}]}]}'
)


@dataclass(frozen=True)
class Question:
    id: str
    question: str
    context: str
    answers: tuple = ()  # (text, start) pairs; none means: the passage does not answer it (v2)

    @property
    def span(self):
        """(first, end) in characters of the first answer that occurs in the context, nearest to
        where it should be; None if none occurs."""
        for text, start in self.answers:
            if not text.strip():
                continue
            anywhere = re.finditer(f"(?={re.escape(text)})", self.context)
            places = [match.start() for match in anywhere]
            if places:
                nearest = min(places, key=lambda place: abs(place - start))
                return nearest, nearest + len(text)
        return None


# ---- reading ------------------------------------------------------------------------------------
def read(source, report):
    """The questions of a SQuAD file (a path, or the dict in it). A broken file raises, a broken
    item is skipped and reported."""
    if isinstance(source, dict):
        return checked(items_of(source, "this SQuAD data"), report)
    try:
        tree = json.loads(Path(source).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{source} is not JSON ({error}); wanted a SQuAD file, {SHAPE}") from None
    return checked(items_of(tree, str(source)), report)


def from_rows(rows, report, v2=False):
    """The same from rows of `datasets`, where answers = {"text": [...], "answer_start": [...]},
    in v2 also empty."""

    def items():
        for number, row in enumerate(rows):
            place = f"row {number}"
            columns = part_of(row, "answers", dict, place)
            texts = part_of(columns, "text", list, f"{place}, answers")
            starts = part_of(columns, "answer_start", list, f"{place}, answers")
            answers = [dict(text=text, answer_start=at) for text, at in zip(texts, starts)]
            item = dict(row, answers=answers, is_impossible=v2 and not answers)
            yield place, item, row.get("context")

    return checked(items(), report)


def load(name, split, report):
    """A .json file, or through `datasets` by name: load("rajpurkar/squad", "train", report)."""
    if str(name).endswith(".json"):
        return read(name, report)
    rows = downloaded(str(name), "the path of a SQuAD .json file", str(name), split)
    return from_rows(rows, report, v2="v2" in str(name))


def items_of(tree, name):
    """(place, item, context) of every question in the tree."""
    for i, article in enumerate(part_of(tree, "data", list, name)):
        for j, paragraph in enumerate(part_of(article, "paragraphs", list, f"{name}, article {i}")):
            place = f"article {i}, paragraph {j}"
            context = part_of(paragraph, "context", str, f"{name}, {place}")
            for k, item in enumerate(part_of(paragraph, "qas", list, f"{name}, {place}")):
                yield f"{place}, question {k}", item, context


def part_of(tree, key, kind, place):
    """tree[key], or one sentence about what stands there instead."""
    found = tree.get(key) if isinstance(tree, dict) else None
    if isinstance(found, kind):
        return found
    got = "nothing of that name"
    if isinstance(tree, dict) and key in tree:
        got = f"a {type(found).__name__}"
    raise ValueError(
        f"{place}: wanted {key!r}, a {kind.__name__}; got {got}; a SQuAD file is {SHAPE}"
    )


def checked(items, report):
    """Questions from (place, item, context); an item that cannot be used is reported."""
    questions = {}
    for place, item, context in items:
        id = item.get("id") if isinstance(item, dict) else None
        try:
            need(isinstance(id, str) and id, "it has no id, so that no prediction could name it")
            place = id if id not in questions else f"{place} (another {id})"
            need(id not in questions, "an earlier question has the same id")
            question = some_text(item.get("question"), "question")
            questions[id] = Question(id, question, some_text(context, "context"), answers_of(item))
        except Skip as why:
            report.skipped[place] = str(why)
    return list(questions.values())


def some_text(text, what):
    need(isinstance(text, str) and text.strip(), f"its {what} is empty")
    return text


def answers_of(item):
    if item.get("is_impossible"):
        return ()
    answers = item.get("answers")
    need(answers, "it has no answer, and nothing marks it is_impossible")
    whole = isinstance(answers, list) and all(is_answer(answer) for answer in answers)
    need(whole, "its answers are not a list of {text, answer_start}")
    return tuple((answer["text"], answer["answer_start"]) for answer in answers)


def is_answer(answer):
    return (
        isinstance(answer, dict)
        and isinstance(answer.get("text"), str)
        and isinstance(answer.get("answer_start"), int)
    )


# ---- the official score -------------------------------------------------------------------------
def normalise(text):
    """Lower case, no ASCII punctuation, no English articles, single spaces: the official scorers'
    order."""
    text = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def exact(said, truth):
    return float(normalise(said) == normalise(truth))


def f1(said, truth, v2=False):
    """Overlap of two bags of words. Where one of them is empty, v1's scorer says 0 and v2's says
    whether both are."""
    ours, theirs = normalise(said).split(), normalise(truth).split()
    if v2 and not (ours and theirs):
        return float(ours == theirs)
    same = (Counter(ours) & Counter(theirs)).total()
    return 2 * same / (len(ours) + len(theirs)) if same else 0.0


def scores_of(question, said, v2):
    """exact and f1 of one prediction: the best over the accepted answers; 0 without one."""
    if said is None:
        return dict(exact=0.0, f1=0.0)
    truths = [text for text, _ in question.answers if not v2 or normalise(text)] or [""]
    return dict(
        exact=max(exact(said, truth) for truth in truths),
        f1=max(f1(said, truth, v2) for truth in truths),
    )


def score(questions, said, v2=False):
    """EM and F1 in per cent: the mean over ALL questions. One without a prediction is named and
    scores 0, which is v1's rule; v2's script leaves it out of the mean: that would be silence."""
    scores = {q.id: scores_of(q, said.get(q.id), v2) for q in questions}
    parts = {"": questions}
    if v2:
        parts["answerable_"] = [q for q in questions if q.answers]
        parts["unanswerable_"] = [q for q in questions if not q.answers]
    result = {"missing": [q.id for q in questions if q.id not in said]}
    for name, part in parts.items():
        for metric in ("exact", "f1"):
            total = sum(scores[q.id][metric] for q in part)
            result[name + metric] = 100 * total / len(part) if part else None
        result[name + "total"] = len(part)
    return result
