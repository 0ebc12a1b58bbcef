"""Who is in the class, what is late, and what does the platform's gradebook take back?

A roster is a .csv with a line a learner, as Canvas, Moodle or GitHub Classroom export it, or of
your own: its first line names the columns.
"""

import csv
import functools
import io
import math
import os
import re
import stat
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, time

from homework.reports import visible

IDENTITY = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]  # Canvas' own columns
GIVEN_BACK = {"ID", "SIS User ID", "SIS Login ID"}  # one of these says to Canvas whose mark it is
NAMES = ["Student", "Full name", "name", "identifier"]  # who that is, in words: the first of these
NOBODY = ("Points Possible", "Student, Test")  # lines of Canvas' gradebook that are no learner's
NUMBERED = {"id", "identifier"}  # columns of a platform's own number
IDENTIFY = NUMBERED | {"student", "full name", "name", "sis user id", "sis login id", "id number"}
IDENTIFY |= {"username", "login", "github_username", "github", "email address", "email", "mail"}


def read(path):
    """The learners of a roster, as dictionaries by column. A semicolon separates as well. Canvas'
    lines on how marks are posted, on points and of its test student are no learners."""
    text = text_of(path)
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    try:
        rows = list(csv.DictReader(io.StringIO(text), delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"it is no .csv ({error})") from None
    rows = [{key: (text or "").strip() for key, text in row.items() if key} for row in rows]
    rows = [row for row in rows if row and any(identity(row))]
    return [row for row in rows if row.get("Student") not in NOBODY]


def text_of(path):
    """The text of a file, and of nothing that one would have to wait for."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, encoding="utf-8-sig") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is no file")
        return file.read()


def called(row):
    """A learner of the roster in words."""
    return next((row[name] for name in NAMES if row.get(name)), next(iter(row.values())))


def plain(text):
    """A name without what platforms change in it: `Jones, Ben` is Canvas' `jonesben`. Where the
    system speaks ASCII, a file's name comes with its letters as bytes."""
    text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in text if c.isalnum())


@functools.cache
def readings(text):
    """A name as it may be written: `Lee, Anna` is `Anna Lee`, too."""
    last, _, first = text.partition(",")
    return frozenset({plain(text), plain(first + last)} - {""})


def identity(row):
    """What a row says of who that is: its name, and what stands in columns that identify. A section
    or a mark may read like somebody else's name or number."""
    return [called(row), *(text for name, text in row.items() if name.casefold() in IDENTIFY)]


def find(rows, mine):
    """The learner of the roster who handed this in, or None: by the platform's number, else by the
    name, else by the GitHub name of a clone."""
    number = {mine.number, f"Participant {mine.number}"} if mine.number else set()
    name, github = readings(mine.who), github_name(rows, mine)
    numbers = lambda row: [text for name, text in row.items() if name.casefold() in NUMBERED]
    ways = [
        lambda row: any(text in number for text in numbers(row)),
        lambda row: any(readings(text) & name for text in identity(row)),
        lambda row: any(text and text.casefold() == github for text in identity(row)),
    ]
    for way in ways:
        found = [row for row in rows if way(row)]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def github_name(rows, mine):
    """What stands behind the assignment in a clone's name, or '' where it is no clone.

    `hw03-anna-lee` is never Lee's. The assignment is what all clones begin with, up to a hyphen;
    GitHub names and assignments may hold more of them, so it ends where most of the rest is on the
    roster. Of a clone alone, and of one that begins in its own way, it ends at the first hyphen."""
    if not mine.clone:
        return ""
    names = [name.casefold() for name in mine.clones or [mine.who]]
    known = {text.casefold() for row in rows for text in identity(row)}
    listed = lambda end: sum(name[end:] in known for name in names)
    shared = os.path.commonprefix(names) if len(names) > 1 else ""
    ends = [place.end() for place in re.finditer("-", shared)]
    who = mine.who.casefold()
    return who[max(ends, key=listed, default=who.find("-") + 1) :]


@dataclass(frozen=True)
class Whose:
    """The roster's line of what was handed in, if there is one, and who else is found in it."""

    row: dict = None
    also: tuple = ()

    @property
    def note(self):
        if self.also:
            return f"one learner of the roster is {', '.join(self.also)}, too: which one counts?"
        return "" if self.row else "not on the roster, or there twice"


def match(rows, learners):
    """{learner: Whose} of a class."""
    rows = rows or []
    found = {mine.who: find(rows, mine) for mine in learners}
    of_row = {}
    for who, row in found.items():
        of_row.setdefault(id(row), []).append(who)
    others = lambda who, row: tuple(other for other in of_row[id(row)] if row and other != who)
    return {who: Whose(row, others(who, row)) for who, row in found.items()}


def moment(text):
    """When something is due: a time, or a day, which lasts until its end."""
    try:
        due = datetime.combine(date.fromisoformat(text), time.max)
    except ValueError:
        due = datetime.fromisoformat(text)
    due.timestamp()  # of a year that has one
    return due


def days_late(mine, file, due):
    """Days begun after the due time, or None: nobody can know. A clone's files are as old as the
    clone, an archive's have no time, and Canvas marks by itself who is late."""
    days = 1 if mine.late else 0
    if due is None or mine.judged:
        return days
    when = None if file is None or mine.clone else file.content.when
    if when is None:
        return days or None
    return max(days, math.ceil((when - due.timestamp()) / 86400))


def final(graded, percent):
    """The score when each day begun costs so many percent of it; nothing where there is none."""
    if graded.rows is None:
        return ""
    kept = max(0.0, 1 - percent * (graded.days or 0) / 100)
    return round(graded.mark * kept, 2) if percent else graded.mark


# ------------------------------------------------------------------------------------- tables


def cell(text):
    """A name in a table that a spreadsheet opens, whatever it takes for a separator: text, never a
    formula, in any width of its letters."""
    pieces = re.split("([;,|])", visible(text))
    formulas = ("=", "+", "-", "@")
    first = [unicodedata.normalize("NFKC", piece).lstrip() for piece in pieces]
    return "".join(
        f"'{piece}" if plain.startswith(formulas) else piece
        for piece, plain in zip(pieces, first, strict=True)
    )


def as_csv(lines, **how):
    text = io.StringIO()
    csv.writer(text, **how).writerows(lines)
    return text.getvalue()


def grades(unit, done, people, whose, percent):
    """grades.csv: a line for each learner who is graded already, and for whom the roster misses.

    `done`: (handed in, graded) of each; `people`: the roster's lines, or None; `whose`: as `match`
    tells. Everything stands in quotes, so a semicolon in a name separates nothing."""
    head = ["submission", "learner", "score", "of", "days late", "final", *unit.exercises, "note"]
    lines = [head]
    for mine, graded in done:
        of = whose[mine.who]
        notes = [graded.note] if graded.note else []
        if people and of.note:
            notes.append(of.note)
        if graded.days is None:
            notes.append("when it was handed in is not known")
        names = [cell(mine.who), cell(called(of.row)) if of.row else ""]
        days = "" if graded.days is None else graded.days
        marks = [graded.mark, unit.points, days, final(graded, percent)]
        earned = [graded.of(name) for name in unit.exercises]
        lines.append([*names, *marks, *earned, cell("; ".join(notes))])
    for row in missing(people, whose) if done else []:
        nothing = [0, unit.points, "", 0, *[0] * len(unit.exercises)]
        lines.append(["", cell(called(row)), *nothing, "handed in nothing"])
    return as_csv(lines, quoting=csv.QUOTE_ALL)


def missing(people, whose):
    """The roster's lines of whoever handed in nothing."""
    here = [of.row for of in whose.values()]
    return [row for row in people or [] if row not in here]


def canvas(done, people, whose, assignment, percent):
    """What Canvas' gradebook imports. The column has the assignment's number where the roster
    knows it. Whoever handed in nothing has no line, so Canvas leaves them as they are; neither has
    work of which Canvas could not tell whose it is."""
    known = re.compile(re.escape(assignment) + r"( \(\d+\))?")
    heads = [key for row in (people or [])[:1] for key in row if known.fullmatch(key)]
    lines = [[*IDENTITY, *(heads or [assignment])[:1]]]
    for mine, graded in done:
        of = whose[mine.who]
        row = of.row or {"Student": mine.who, "ID": mine.number if mine.judged else ""}
        if not of.also and any(row.get(name) for name in GIVEN_BACK):
            identity = [cell(row.get(name, "")) for name in IDENTITY]
            lines.append([*identity, final(graded, percent)])
    return as_csv(lines)
