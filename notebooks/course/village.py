"""What could a laptop learn to read? A village that does not exist, in SQuAD format, as hard as you
turn the dial: a generated set of questions.

Every paragraph tells facts about a few people: (subject, relation, object), each worded in one of
several ways. The answer is the object, or the subject where the question is asked backwards. Nobody
can know it beforehand: names, towns and years of the test split never occur in the training split,
only the syllables that they are made of.
"""

import random
import re
from dataclasses import dataclass

from course.village_words import IDLE, KINDS, RELATIONS

HELD_OUT = 5  # of the things made of two parts, one in five is kept for the test split

CAPITALISED = ("person", "town")


# ---- the dial -----------------------------------------------------------------------------------
@dataclass(frozen=True)
class Level:
    people: int  # each of them is a distractor for the others: the same relations, other objects
    facts: int  # about each person
    relations: int  # how many of RELATIONS are in play
    wordings: int  # of a fact, and of a question
    back: float = 0.0  # share of questions that ask for the subject
    decoys: int = 0  # sentences that deny what somebody might guess
    idle: int = 0  # sentences that say nothing
    pronouns: bool = False  # a person's second fact says "this person": it must be carried over


LEVELS = {
    # one person: find the sentence that tells it, in the words of the question
    1: Level(people=1, facts=4, relations=10, wordings=1),
    # the same in other words
    2: Level(people=1, facts=5, relations=10, wordings=4),
    # two people: the name decides too
    3: Level(people=2, facts=3, relations=10, wordings=3),
    4: Level(people=3, facts=3, relations=10, wordings=4, back=0.3, decoys=1, idle=1),
    5: Level(5, 3, relations=10, wordings=4, back=0.5, decoys=4, idle=3, pronouns=True),
}


# ---- paragraphs ---------------------------------------------------------------------------------
def make(level=1, paragraphs=500, seed=0, split="train", unanswerable=0.0):
    """A SQuAD tree (v2 with a share of `unanswerable` questions): the same arguments give the same
    bytes."""
    if level not in LEVELS:
        raise ValueError(f"wanted a level from {min(LEVELS)} to {max(LEVELS)}, got {level!r}")
    if split not in ("train", "test"):
        raise ValueError(f"wanted the split 'train' or 'test', got {split!r}")
    rng = random.Random(f"{level}/{seed}/{split}/{unanswerable}")
    made = []
    for i in range(paragraphs):
        name = f"{split}-{level}-{seed}-{i}"
        made.append(paragraph(LEVELS[level], name, split, unanswerable, rng))
    article = dict(title="The village", paragraphs=made)
    return dict(version="v2.0" if unanswerable else "1.1", data=[article])


def thing(kind, split, rng):
    """One thing of a kind, among those of this split. Single words (trades, instruments) are the
    same in both."""
    if len(KINDS[kind]) == 1:
        (words,) = KINDS[kind]
        return rng.choice(words)
    first, second, joint = KINDS[kind]
    while True:
        i, j = rng.randrange(len(first)), rng.randrange(len(second))
        held_out = (i + 2 * j) % HELD_OUT == 0
        if held_out == (split == "test"):
            made = first[i] + joint + second[j]
            return made.capitalize() if kind in CAPITALISED else made


def paragraph(level, name, split, unanswerable, rng):
    """One context and a question about each of its facts."""
    taken = set()

    def new(kind):
        made = thing(kind, split, rng)
        while made in taken:
            made = thing(kind, split, rng)
        taken.add(made)
        return made

    # What is true in this paragraph, and what is only denied.
    relations = rng.sample(RELATIONS[: level.relations], level.relations)
    told, untold = relations[: level.facts], relations[level.facts :]
    people = [new("person") for _ in range(level.people)]
    facts = [(subject, relation, new(relation.kind)) for subject in people for relation in told]
    decoys = [
        (rng.choice(facts)[0], relation.denied, new(relation.kind))
        for relation in rng.choices(told, k=level.decoys)
    ]
    context, subjects, objects = text_of_facts(level, facts, decoys, rng)

    # A question about each fact; some of them about what is not told.
    items = []
    for i, (subject, relation, obj) in enumerate(facts):
        back, place = rng.random() < level.back, None
        if rng.random() >= unanswerable:
            place = subjects[i] if back else objects[i]
        elif rng.random() < 0.5:
            relation, back = rng.choice(untold), False  # a person of whom this is not told
        else:
            subject, back = new("person"), False  # a person of whom nothing is told
        wordings = relation.back if back else relation.asked
        asked = rng.choice(wordings[: level.wordings])
        question = asked.format(s=subject, o=obj)
        answers = [] if place is None else [answer_at(context, place)]
        item = dict(id=f"{name}-{i}", question=question, answers=answers)
        if unanswerable:
            item["is_impossible"] = not answers
        items.append(item)
    return dict(context=context, qas=items)


def answer_at(context, place):
    first, end = place
    return dict(text=context[first:end], answer_start=first)


def text_of_facts(level, facts, decoys, rng):
    """The text, and where each fact's subject and object stand in it: (first, end) in
    characters."""
    # A block is told in one piece: [(number of the fact, wording, subject, object)].
    blocks = []
    for i, (subject, relation, obj) in enumerate(facts):
        wording = rng.choice(relation.told[: level.wordings])
        blocks.append([(i, wording, subject, obj)])
    if level.pronouns:
        blocks = [rng.sample(block, len(block)) for block in by_person(blocks)]
    blocks += [[(None, denied, subject, obj)] for subject, denied, obj in decoys]
    blocks += [[(None, idle, "", "")] for idle in rng.sample(IDLE, level.idle)]
    rng.shuffle(blocks)

    text, subjects, objects = "", {}, {}
    for block in blocks:
        first_fact = block[0][0]
        for nth, (i, wording, subject, obj) in enumerate(block):
            text += " " if text else ""
            start, named = len(text), nth == 0
            said = {"{s}": subject if named else "this person", "{o}": obj}
            for part in re.split(r"({.})", wording):
                words = said.get(part, part)
                place = len(text), len(text) + len(words)
                if part == "{o}":
                    objects[i] = place
                if part == "{s}":  # asked backwards, the answer is the name
                    subjects[i] = place if named else subjects[first_fact]
                text += words
            text = text[:start] + text[start].upper() + text[start + 1 :]
    return text, subjects, objects


def by_person(blocks):
    """All facts of a person in one block; only the first that is told will say the name."""
    people = {}
    for (fact,) in blocks:
        _, _, subject, _ = fact
        people.setdefault(subject, []).append(fact)
    return people.values()


def chance_predictions(tree, seed=0):
    """Predictions that read only the passage: some fact's answer, whatever was asked. The score of
    chance."""
    rng, said = random.Random(seed), {}
    for article in tree["data"]:
        for part in article["paragraphs"]:
            answers = [answer["text"] for item in part["qas"] for answer in item["answers"]]
            for item in part["qas"]:
                said[item["id"]] = rng.choice(answers or [""])
    return said
