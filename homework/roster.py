"""Who is in the class, what is late, and what does the platform's gradebook take back?

A roster is a .csv with a line a learner, as Canvas, Moodle or GitHub Classroom export it, or of
your own: its first line names the columns.
"""

import csv
import io
import math
import re
import unicodedata

from homework.reports import visible

IDENTITY = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]  # Canvas' own columns
NAMES = ["Student", "Full name", "name", "identifier"]  # who that is, in words: the first of these


def read(path):
    """The learners of a roster, as dictionaries by column. A semicolon separates as well."""
    text = path.read_text(encoding="utf-8-sig")
    head = text.partition("\n")[0]
    separator = max(",;\t", key=head.count)
    try:
        rows = list(csv.DictReader(io.StringIO(text), delimiter=separator))
    except csv.Error as error:
        raise ValueError(f"it is no .csv ({error})") from None
    rows = [{key: (text or "").strip() for key, text in row.items() if key} for row in rows]
    rows = [row for row in rows if any(row.values())]
    return [row for row in rows if row.get("Student") != "Points Possible"]


def called(row):
    """A learner of the roster in words."""
    return next((row[name] for name in NAMES if row.get(name)), next(iter(row.values())))


def plain(text):
    """A name without what platforms change in it: `Jones, Ben` is Canvas' `jonesben`."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in text if c.isalnum())


def find(rows, mine):
    """The learner of the roster who handed this in, or None: by the platform's number, else by a
    cell that is the name, else by a GitHub name at the end of a clone's."""
    number = {mine.number, f"Participant {mine.number}"} if mine.number else set()
    who = mine.who.casefold()
    ways = [
        lambda cell: cell in number,
        lambda cell: plain(cell) == plain(mine.who),
        lambda cell: who.endswith(f"-{cell.casefold()}"),
    ]
    for way in ways:
        found = [row for row in rows if any(cell and way(cell) for cell in row.values())]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def days_late(mine, file, due):
    """Days begun after the due time, or None: nobody can know. A clone's files are as old as the
    clone, and an archive's have no time."""
    days = 1 if mine.late else 0
    if due is None:
        return days
    when = None if file is None or mine.clone else file.when
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


def grades(unit, done, people, percent):
    """grades.csv: a line for each learner who is graded already, and for whom the roster misses.

    `done`: (handed in, graded) of each; `people`: the roster's lines, or None. Everything stands in
    quotes, so a semicolon in a name separates nothing."""
    head = ["submission", "learner", "score", "of", "days late", "final", *unit.exercises, "note"]
    lines, here = [head], []
    for mine, graded in done:
        row = find(people or [], mine)
        here.append(row)
        notes = [graded.note] if graded.note else []
        if people and not row:
            notes.append("not on the roster, or there twice")
        if graded.days is None:
            notes.append("when it was handed in is not known")
        names = [cell(mine.who), cell(called(row)) if row else ""]
        days = "" if graded.days is None else graded.days
        marks = [graded.mark, unit.points, days, final(graded, percent)]
        earned = [graded.of(name) for name in unit.exercises]
        lines.append([*names, *marks, *earned, cell("; ".join(notes))])
    for row in [row for row in people or [] if done and row not in here]:
        nothing = [0, unit.points, "", 0, *[0] * len(unit.exercises)]
        lines.append(["", cell(called(row)), *nothing, "handed in nothing"])
    return as_csv(lines, quoting=csv.QUOTE_ALL)


def canvas(done, people, assignment, percent):
    """What Canvas' gradebook imports. The column has the assignment's number where the roster
    knows it; whoever handed in nothing has no line, so Canvas leaves them as they are."""
    known = re.compile(re.escape(assignment) + r"( \(\d+\))?")
    heads = [key for row in (people or [])[:1] for key in row if known.fullmatch(key)]
    lines = [[*IDENTITY, *(heads or [assignment])[:1]]]
    for mine, graded in done:
        row = find(people or [], mine) or {"Student": mine.who, "ID": mine.number}
        identity = [cell(row.get(name, "")) for name in IDENTITY]
        lines.append([*identity, final(graded, percent)])
    return as_csv(lines)
