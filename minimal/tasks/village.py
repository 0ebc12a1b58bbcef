"""What could a laptop learn to read? A village that does not exist, in SQuAD format, as hard as you turn the dial.

Every paragraph tells facts about a few people: (subject, relation, object), each worded in one of several ways. The
answer is the object, or the subject where the question is asked backwards. Nobody can know it beforehand: names, towns
and years of the test split never occur in the training split, only the syllables that they are made of.
"""

import random
import re
from dataclasses import dataclass

# ---- who and what there is --------------------------------------------------------------------------------------
FIRST = (
    "ba be bo da de do fa fe fi ga ge go ha he hi ja jo ka ke ki la le li lo ma me mi mo na ne ni no pa pe pi po "
    "ra re ri ro sa se si so ta te ti to va ve vi vo"
).split()

LAST = "bran dak dor fin gar kel lan lin mar mund nel nor ran rik ris rod sel sten tan vald vin wen wyn zad".split()

PLACE = (
    "alder ash birch brad chel crom dun elm fair glen hart hazel hol kirk lang mill nor oak red stan thorn wal "
    "wes whit"
).split()

ENDING = "bury cliff dale field ford gate ham haven hill hurst mouth port stead stow ton well wick wood worth".split()

TRADES = (
    "baker brewer carpenter clerk cobbler cooper doctor dyer fiddler gardener glazier hatter joiner lawyer mason "
    "miller painter pilot potter roper saddler smith tailor tanner teacher thatcher turner weaver"
).split()

COLOURS = (
    "black blind brown grey lame lean red small spotted striped tame thin white wild young".split()
)

ANIMALS = "cat cow dog dove duck falcon ferret fox goat goose hare hen horse mule owl parrot pig pony raven".split()

MAKES = "boiled carved cheap dried fine french fresh green painted rough salted smoked sweet woven yellow".split()

GOODS = (
    "apples baskets beans bread butter candles cheese cloth fish honey lace leather paper pears pots ribbons "
    "ropes soap"
).split()

INSTRUMENTS = "bassoon bugle cello clarinet drum fiddle flute guitar harp horn lute lyre pipes trumpet viola".split()

KINDS = dict(  # a thing of this kind is one word of each list, joined by the last entry
    person=(FIRST, LAST, ""),
    town=(PLACE, ENDING, ""),
    year=([str(n) for n in range(14, 20)], [f"{n:02}" for n in range(100)], ""),
    number=([str(n) for n in range(2, 10)], [str(n) for n in range(10)], ""),
    trade=(TRADES,),
    instrument=(INSTRUMENTS,),
    animal=(COLOURS, ANIMALS, " "),
    goods=(MAKES, GOODS, " "),
)

HELD_OUT = 5  # of the things made of two parts, one in five is kept for the test split


def thing(kind, split, rng):
    """One thing of a kind, among those of this split. Single words (trades, instruments) are the same in both."""
    first, *rest = KINDS[kind]
    if not rest:
        return rng.choice(first)
    while True:
        i, j = rng.randrange(len(first)), rng.randrange(len(rest[0]))
        if ((i + 2 * j) % HELD_OUT == 0) == (split == "test"):
            made = first[i] + rest[1] + rest[0][j]
            return made.capitalize() if kind in ("person", "town") else made


# ---- what can be said and asked ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Relation:
    kind: str  # of the object; the subject is a person
    told: tuple  # {s} subject, {o} object; the first wording is the plainest
    asked: tuple  # for the object
    back: tuple  # for the subject
    denied: str  # what a decoy says about another thing of the same kind


RELATIONS = (
    Relation(
        "town",
        (
            "{s} lives in {o}.",
            "The house of {s} stands in {o}.",
            "{o} has long been the home of {s}.",
            "Since the flood {s} has lived in {o}.",
        ),
        (
            "Where does {s} live?",
            "In which town is the house of {s}?",
            "Which town is the home of {s}?",
        ),
        ("Who lives in {o}?", "Whose house stands in {o}?"),
        "{s} would never live in {o}.",
    ),
    Relation(
        "year",
        (
            "{s} was born in {o}.",
            "In {o}, {s} was born.",
            "The birth of {s} fell in the year {o}.",
            "The parish book puts the birth of {s} in {o}.",
        ),
        ("When was {s} born?", "In which year was {s} born?", "What is the year of birth of {s}?"),
        ("Who was born in {o}?", "Whose birth fell in {o}?"),
        "{s} was not born in {o}.",
    ),
    Relation(
        "trade",
        (
            "{s} works as a {o}.",
            "By trade {s} is a {o}.",
            "{s} earns a living as a {o}.",
            "The village knows {s} as its {o}.",
        ),
        ("What does {s} work as?", "What is the trade of {s}?", "How does {s} earn a living?"),
        ("Who works as a {o}?", "Who is a {o} by trade?"),
        "{s} gave up being a {o}.",
    ),
    Relation(
        "animal",
        (
            "{s} keeps a {o}.",
            "A {o} belongs to {s}.",
            "{s} is the owner of a {o}.",
            "Behind the house of {s} sleeps a {o}.",
        ),
        ("What does {s} keep?", "Which animal belongs to {s}?", "What is {s} the owner of?"),
        ("Who keeps a {o}?", "Who is the owner of a {o}?"),
        "{s} is afraid of the {o}.",
    ),
    Relation(
        "town",
        (
            "{s} grew up in {o}.",
            "{o} is the town where {s} grew up.",
            "As a child {s} went to school in {o}.",
            "The childhood of {s} was spent in {o}.",
        ),
        (
            "Where did {s} grow up?",
            "Where was the childhood of {s} spent?",
            "In which town did {s} go to school?",
        ),
        ("Who grew up in {o}?", "Who went to school in {o}?"),
        "As a child {s} had never seen {o}.",
    ),
    Relation(
        "year",
        (
            "{s} went to sea in {o}.",
            "In {o}, {s} went to sea.",
            "The ship of {s} sailed first in {o}.",
            "It was {o} when {s} first went aboard a ship.",
        ),
        (
            "When did {s} go to sea?",
            "In which year did {s} go to sea?",
            "When did the ship of {s} sail first?",
        ),
        ("Who went to sea in {o}?", "Whose ship sailed first in {o}?"),
        "In {o}, {s} was still on land.",
    ),
    Relation(
        "goods",
        (
            "{s} sells {o}.",
            "At the market {s} sells {o}.",
            "{o} can be bought from {s}.",
            "The stall of {s} is full of {o}.",
        ),
        (
            "What does {s} sell?",
            "What can be bought from {s}?",
            "What is the stall of {s} full of?",
        ),
        ("Who sells {o}?", "From whom can {o} be bought?"),
        "{s} will not sell {o}.",
    ),
    Relation(
        "person",
        (
            "{s} was taught by {o}.",
            "{o} was the teacher of {s}.",
            "{s} learned to read from {o}.",
            "It was {o} who taught {s}.",
        ),
        ("Who taught {s}?", "Who was the teacher of {s}?", "From whom did {s} learn to read?"),
        ("Whom did {o} teach?", "Whose teacher was {o}?"),
        "{s} refused to be taught by {o}.",
    ),
    Relation(
        "instrument",
        (
            "{s} plays the {o}.",
            "On feast days {s} plays the {o}.",
            "The {o} is played by {s}.",
            "No one masters the {o} as {s} does.",
        ),
        ("What does {s} play?", "Which instrument does {s} play?", "What is played by {s}?"),
        ("Who plays the {o}?", "By whom is the {o} played?"),
        "{s} cannot bear the {o}.",
    ),
    Relation(
        "number",
        (
            "{s} owes {o} crowns.",
            "The debt of {s} is {o} crowns.",
            "{o} crowns are owed by {s}.",
            "{s} has not paid back the {o} crowns.",
        ),
        (
            "How many crowns does {s} owe?",
            "How large is the debt of {s}?",
            "How much is owed by {s}?",
        ),
        ("Who owes {o} crowns?", "Whose debt is {o} crowns?"),
        "{s} never borrowed {o} crowns.",
    ),
)

IDLE = (
    "The winter was long.",
    "Nobody could say why.",
    "It rained for a week.",
    "The bridge was closed again.",
    "So the old people tell it.",
    "The bells rang at noon.",
    "There is little more to report.",
    "The road was bad.",
    "Then the fair came to the valley.",
    "All this was written down much later.",
)


# ---- the dial ---------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Level:
    people: int  # each of them is a distractor for the others: the same relations, other objects
    facts: int  # about each person
    relations: int  # how many of RELATIONS are in play
    wordings: int  # of a fact, and of a question
    back: float = 0.0  # share of questions that ask for the subject
    decoys: int = 0  # sentences that deny what somebody might guess
    idle: int = 0  # sentences that say nothing
    pronouns: bool = (
        False  # the second fact about a person says "this person": it must be carried over
    )


LEVELS = {
    1: Level(
        1, 4, 10, 1
    ),  # one person: find the sentence that tells it, in the words of the question
    2: Level(1, 5, 10, 4),  # the same in other words
    3: Level(2, 3, 10, 3),  # two people: the name decides too
    4: Level(3, 3, 10, 4, back=0.3, decoys=1, idle=1),
    5: Level(5, 3, 10, 4, back=0.5, decoys=4, idle=3, pronouns=True),
}


# ---- paragraphs -------------------------------------------------------------------------------------------------
def make(level=1, paragraphs=500, seed=0, split="train", unanswerable=0.0):
    """A SQuAD tree (v2 with a share of `unanswerable` questions): the same arguments give the same bytes."""
    if level not in LEVELS:
        raise ValueError(f"wanted a level from {min(LEVELS)} to {max(LEVELS)}, got {level!r}")
    if split not in ("train", "test"):
        raise ValueError(f"wanted the split 'train' or 'test', got {split!r}")
    rng = random.Random(f"{level}/{seed}/{split}/{unanswerable}")
    told = [
        paragraph(LEVELS[level], f"{split}-{level}-{seed}-{i}", split, unanswerable, rng)
        for i in range(paragraphs)
    ]
    return dict(
        version="v2.0" if unanswerable else "1.1", data=[dict(title="The village", paragraphs=told)]
    )


def paragraph(dial, name, split, unanswerable, rng):
    """One context and a question about each of its facts."""
    taken = set()

    def new(kind):
        while (made := thing(kind, split, rng)) in taken:
            pass
        taken.add(made)
        return made

    relations = rng.sample(RELATIONS[: dial.relations], dial.relations)
    told, untold = relations[: dial.facts], relations[dial.facts :]
    facts = [
        (subject, relation, new(relation.kind))
        for subject in [new("person") for _ in range(dial.people)]
        for relation in told
    ]
    decoys = [
        (rng.choice(facts)[0], relation.denied, new(relation.kind))
        for relation in rng.choices(told, k=dial.decoys)
    ]
    context, subjects, objects = tell(dial, facts, decoys, rng)
    items = []
    for i, (subject, relation, obj) in enumerate(facts):
        back, answer = rng.random() < dial.back, None
        if rng.random() >= unanswerable:
            answer = subjects[i] if back else objects[i]
        elif rng.random() < 0.5:
            relation, back = rng.choice(untold), False  # a person of whom this is not told
        else:
            subject, back = new("person"), False  # a person of whom nothing is told
        asked = rng.choice((relation.back if back else relation.asked)[: dial.wordings])
        answers = [dict(text=context[slice(*answer)], answer_start=answer[0])] if answer else []
        items.append(
            dict(id=f"{name}-{i}", question=asked.format(s=subject, o=obj), answers=answers)
            | (dict(is_impossible=not answers) if unanswerable else {})
        )
    return dict(context=context, qas=items)


def tell(dial, facts, decoys, rng):
    """The text, and where each fact's subject and object stand in it: (first, end) in characters."""
    blocks = [
        [(i, rng.choice(relation.told[: dial.wordings]), subject, obj)]
        for i, (subject, relation, obj) in enumerate(facts)
    ]
    if (
        dial.pronouns
    ):  # all of a person's facts in one block, in any order; only the first of them says the name
        people = dict.fromkeys(subject for subject, _, _ in facts)
        blocks = [
            rng.sample(block, len(block))
            for block in ([b[0] for b in blocks if b[0][2] == person] for person in people)
        ]
    blocks += [[(None, told, subject, obj)] for subject, told, obj in decoys]
    blocks += [[(None, idle, "", "")] for idle in rng.sample(IDLE, dial.idle)]
    rng.shuffle(blocks)
    text, subjects, objects = "", {}, {}
    for block in blocks:
        for nth, (i, wording, subject, obj) in enumerate(block):
            text += " " if text else ""
            start, named = len(text), not nth
            for part in re.split(r"({.})", wording):
                said = {"{s}": subject if named else "this person", "{o}": obj}.get(part, part)
                place = len(text), len(text) + len(said)
                if part == "{o}":
                    objects[i] = place
                if part == "{s}":
                    subjects[i] = (
                        place if named else subjects[block[0][0]]
                    )  # backwards, the answer is the name
                text += said
            text = text[:start] + text[start].upper() + text[start + 1 :]
    return text, subjects, objects


def guesses(tree, seed=0):
    """Predictions that read only the passage: some fact's answer, whatever was asked. The score of chance."""
    rng, said = random.Random(seed), {}
    for article in tree["data"]:
        for part in article["paragraphs"]:
            answers = [answer["text"] for item in part["qas"] for answer in item["answers"]]
            said |= {item["id"]: rng.choice(answers or [""]) for item in part["qas"]}
    return said
