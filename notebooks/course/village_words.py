"""Who lives in the village, what is there, and what can be said and asked about it? The words and
wordings of course.village."""

from dataclasses import dataclass

# ---- who and what there is ----------------------------------------------------------------------
FIRST = (
    "ba be bo da de do fa fe fi ga ge go ha he hi ja jo ka ke ki la le li lo ma me mi mo na ne ni "
    "no pa pe pi po ra re ri ro sa se si so ta te ti to va ve vi vo"
).split()

LAST = (
    "bran dak dor fin gar kel lan lin mar mund nel nor ran rik ris rod sel sten tan vald vin wen "
    "wyn zad"
).split()

PLACE = (
    "alder ash birch brad chel crom dun elm fair glen hart hazel hol kirk lang mill nor oak red "
    "stan thorn wal wes whit"
).split()

ENDING = (
    "bury cliff dale field ford gate ham haven hill hurst mouth port stead stow ton well wick "
    "wood worth"
).split()

TRADES = (
    "baker brewer carpenter clerk cobbler cooper doctor dyer fiddler gardener glazier hatter "
    "joiner lawyer mason miller painter pilot potter roper saddler smith tailor tanner teacher "
    "thatcher turner weaver"
).split()

COATS = (
    "black blind brown grey lame lean red small spotted striped tame thin white wild young"
).split()

ANIMALS = (
    "cat cow dog dove duck falcon ferret fox goat goose hare hen horse mule owl parrot pig pony "
    "raven"
).split()

MAKES = (
    "boiled carved cheap dried fine french fresh green painted rough salted smoked sweet woven "
    "yellow"
).split()

GOODS = (
    "apples baskets beans bread butter candles cheese cloth fish honey lace leather paper pears "
    "pots ribbons ropes soap"
).split()

INSTRUMENTS = (
    "bassoon bugle cello clarinet drum fiddle flute guitar harp horn lute lyre pipes trumpet viola"
).split()

KINDS = dict(  # a thing of this kind is one word of each list, joined by the last entry
    person=(FIRST, LAST, ""),
    town=(PLACE, ENDING, ""),
    year=([str(n) for n in range(14, 20)], [f"{n:02}" for n in range(100)], ""),
    number=([str(n) for n in range(2, 10)], [str(n) for n in range(10)], ""),
    trade=(TRADES,),
    instrument=(INSTRUMENTS,),
    animal=(COATS, ANIMALS, " "),
    goods=(MAKES, GOODS, " "),
)


# ---- what can be said and asked -----------------------------------------------------------------
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
