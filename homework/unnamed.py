"""Which answers of a class were told no reason, and which edit of an oracle gives the same numbers?

The grader keeps the arrays that came back for such answers, equal ones once, with the number of
learners, and nobody's name or code. `python -m homework.mistakes hw03 --class graded/unnamed.txt`
tries small changes of the oracle on them: what gives the same numbers in every case is a draft for
a table. (Two named mistakes at once need no draft: they have a sentence already.)
"""

import ast
import base64
import io
import json
import re

import numpy as np

from homework import diagnosis, edits, slips
from homework.alarm import alarm
from homework.marking import Wrong

MOST = 20_000  # numbers of an answer that is kept
SECONDS = 2  # for one change: it may never end
DRAFTS = 3  # for one answer: the shortest


# ---- what the grader keeps -----------------------------------------------------------------------


def answers(unit, rows, seed, heard):
    """{exercise: {part: arrays by case}} of one learner, where a part is wrong and was told no
    more than where its numbers differ. heard: {(exercise, part): (states, arrays by case)}."""
    found = {}
    for row in rows:
        if (row.exercise, row.part) not in heard or row.exercise in found:
            continue
        exercise = unit.exercises[row.exercise]
        parts = {
            part.name: heard[exercise.name, part.name][1]
            for part in exercise.parts
            if is_whole(part, heard.get((exercise.name, part.name)))
        }
        size = sum(x.size for cases in parts.values() for case in cases for x in case)
        if row.part in parts and row.why == numbers(exercise, row, seed, parts) and size <= MOST:
            found[exercise.name] = parts
    return found


def is_whole(part, heard):
    """Did every case of a part that has one right answer come back?"""
    return heard and not part.accept and all(state["state"] == "ok" for state in heard[0])


def numbers(exercise, row, seed, parts):
    """What is told of a wrong part that nothing explains."""
    (part,) = (part for part in exercise.parts if part.name == row.part)
    said = (
        exercise.judge(part, seed, case, answer, hidden=True)
        for case, answer in enumerate(parts[row.part])
    )
    return next(filter(None, said), None)


def grouped(unit, seed, learners):
    """[[exercise, parts, learners]] of `answers`, equal numbers as one, the most frequent first."""
    groups = []
    for found in learners:
        for name, parts in found.items():
            exercise = unit.exercises[name]
            known = [group for group in groups if group[0] == name]
            same = (group for group in known if alike(exercise, seed, parts, group[1]))
            if group := next(same, None):
                group[2] += 1
            else:
                groups.append([name, parts, 1])
    return sorted(groups, key=lambda group: -group[2])


def alike(exercise, seed, one, other):
    return one.keys() == other.keys() and all(
        diagnosis.arrays_agree(exercise, part, seed, case, *pair)
        for part in exercise.parts
        if part.name in one
        for case, pair in enumerate(zip(one[part.name], other[part.name], strict=True))
    )


def page(unit, seed, learners):
    """The file: text, so that it can be looked at."""
    kept = [
        dict(exercise=name, learners=count, parts={p: packed(cases) for p, cases in parts.items()})
        for name, parts, count in grouped(unit, seed, learners)
    ]
    return json.dumps(dict(unnamed=unit.short, seed=seed, answers=kept), indent=1) + "\n"


def packed(cases):
    return [[text_of(array) for array in case] for case in cases]


def text_of(array):
    body = io.BytesIO()
    np.save(body, array, allow_pickle=False)
    return base64.b64encode(body.getvalue()).decode()


def array_of(text):
    return np.load(io.BytesIO(base64.b64decode(text)), allow_pickle=False)


def read(unit, text):
    """(seed, [(exercise, parts, learners)]) of a file that `page` made for this unit."""
    try:
        known = json.loads(text)
        of, seed, kept = known["unnamed"], known["seed"], known["answers"]
    except (ValueError, KeyError, TypeError):
        raise ValueError("wanted unnamed.txt, as the grader of a class writes it") from None
    if of != unit.short:
        raise ValueError(f"wanted answers to {unit.short}, got {of}'s")
    unpacked = lambda cases: [[array_of(text) for text in case] for case in cases]
    return seed, [
        (x["exercise"], {p: unpacked(cases) for p, cases in x["parts"].items()}, x["learners"])
        for x in kept
    ]


# ---- drafts --------------------------------------------------------------------------------------


def drafts(exercise, seed, parts):
    """[(old, new)] of small changes of the oracle that give these numbers, the shortest first."""
    asked = [
        (part, [dict(state="ok")] * len(parts[part.name]), parts[part.name])
        for part in exercise.parts
        if part.name in parts
    ]
    # first a part that is wrong: a change must show there
    asked.sort(key=lambda one: all(not exercise.judge(one[0], seed, *x) for x in enumerate(one[2])))
    found = []
    for old, new, made in changes(exercise):
        with alarm(SECONDS):
            if diagnosis.explains(exercise, seed, asked, Wrong(f"{old} => {new}", 0, "", made)):
                found.append((old, new))
    return sorted(found, key=lambda edit: len("".join(edit)))[:DRAFTS]


def changes(exercise):
    """(old, new, Edited) of every small slip in the oracle's body and in those of its helpers."""
    bodies = exercise.bodies or edits.bodies_of(exercise.oracle)
    texts = [body.text for body in bodies]
    for n, text in enumerate(texts):
        for *_, node in slips.places(ast.parse(text)):
            for slip in slips.slips(node):
                start, end = place_of(text, node)
                old, new = wide_enough(texts, n, start, end, ast.unparse(slip))
                try:
                    yield old, new, edits.edited(bodies, [(1, old, new)])
                except edits.Misprint:
                    continue  # no edit of a table


def place_of(text, node):
    """Where an expression stands; Python counts bytes."""
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    places = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return [len(text.encode()[: starts[line - 1] + column].decode()) for line, column in places]


def wide_enough(texts, n, start, end, new):
    """(old, new) of a change, with as much around it, up to whole lines, as occurs only once."""
    text = texts[n]
    lines = [0, *(found.end() for found in re.finditer("\n", text[:start]))]
    stop = text.find("\n", end) if "\n" in text[end:] else len(text)
    parts = [x for x in ast.walk(ast.parse(text)) if isinstance(x, (ast.expr, ast.stmt))]
    around = [place_of(text, part) for part in parts] + [[line, stop] for line in lines]
    holds = [place for place in around if place[0] <= start and end <= place[1]]
    for left, right in sorted(holds, key=lambda place: place[1] - place[0]):
        left += len(text[left:right]) - len(text[left:right].lstrip())
        if right - left > 3 and often(texts, text[left:right]) == 1:  # a "0" alone says nothing
            break
    return text[left:right], text[left:start] + new + text[end:right]


def often(texts, old):
    return sum(len(re.findall(f"(?={re.escape(old)})", text)) for text in texts)
