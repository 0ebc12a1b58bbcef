"""What can be read of a graded file, and of a class? A card for each learner, a page for the class.

Markdown, since every learning platform takes it. Sentences are the grader's own; names of files are
not, and are made harmless.
"""

import re
import statistics
import textwrap
from collections import Counter

# letters without a shape: fillers of Hangul, Braille's empty cell, what only changes a neighbour
BLANK = {*"\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0", *map(chr, range(0xFE00, 0xFE10))}
WIDTH = 80  # columns of a card on a terminal
MOST = 5  # sentences of an exercise in the page for the class


def visible(text):
    """Text that is all seen: nothing moves a cursor, turns the line or is blank but a space."""
    return "".join(c if c.isprintable() and c not in BLANK else ascii(c)[1:-1] for c in text)


def safe(text):
    """Text for a cell or a line's start: one line, and no Markdown or HTML in it."""
    plain = visible(" ".join(text.split()))
    for mark in "\\`*_[]<>|~#":
        plain = plain.replace(mark, f"\\{mark}" if mark not in "<>" else f"&#{ord(mark)};")
    return re.sub(r"^(\d*)([-+=.)])", r"\1\\\2", plain)


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(str(cell) for cell in line) + " |" for line in lines]


def lines(name, wide, row):
    """One part on a terminal: its points, and the reason beside them, or wrapped below them."""
    head = f"{name:<{wide}}  {row.earned:>2}/{row.points:<2}"
    if len(head) + 2 + len(row.why) <= WIDTH or not row.why:
        return [f"{head}  {row.why}".rstrip()]
    indent = " " * 8
    below = textwrap.wrap(row.why, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return [head, *below]


def explained(exercise):
    """Why an exercise's answer is right, on a terminal: below its name, wrapped."""
    indent = " " * 8
    how = dict(initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return [
        f"{exercise.name} is right. Why it is so:",
        *textwrap.wrap(exercise.after, WIDTH, **how),
    ]


def finished(unit, units):
    """For whoever has all points of a unit: where its solutions are, and what is next."""
    said = [f"All {unit.points} points of {unit.short}: done."]
    if (units / "solutions" / unit.folder).is_dir():
        said.append(f"Compare with the solutions in homework/solutions/{unit.folder}.")
    pages = sorted(units.glob("hw*/README.md"))
    later = [page for page in pages if page.parent.name > unit.folder]
    later += [page for page in pages if not (page.parent / "exercises.py").exists()]  # the project
    if later:
        title = later[0].read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        page = f"homework/{later[0].parent.name}/README.md"
        said.append(f"Next is {title.rstrip('?')}: see {page}.")
    return " ".join(said)


def card(unit, rows, who="", notes=()):
    """A learner's card: every part with its points and its reason."""
    earned, points = sum(row.earned for row in rows), sum(row.points for row in rows)
    text = [f"# {unit.short} · {unit.title}", ""]
    text += [
        f"{safe(who)}: **{earned} of {points} points**" if who else f"{earned} of {points}",
        "",
    ]
    text += [f"*{safe(note)}*\n" for note in notes if note]
    cells = [
        [f"{row.exercise}: {row.part}", f"{row.earned}/{row.points}", safe(row.why)] for row in rows
    ]
    return "\n".join([*text, *table(["part", "points", "why"], cells)]) + "\n"


def summary(unit, graded):
    """A class on a page: means by part, and what was said most often. `graded`: {learner: rows}."""
    whole = {who: rows for who, rows in graded.items() if rows is not None}
    text = [f"# {unit.short} · {unit.title}", ""]
    failed = len(graded) - len(whole)
    text += [f"{len(whole)} graded" + (f", {failed} not graded: grade again" if failed else ""), ""]
    if not whole:
        return "\n".join(text) + "\n"

    # marks
    marks = sorted(sum(row.earned for row in rows) for rows in whole.values())
    mean, median = statistics.fmean(marks), statistics.median(marks)
    middle = f"Mean {mean:.1f} of {unit.points}, median {median:g}"
    text += [f"{middle}, lowest {marks[0]}, highest {marks[-1]}.", ""]

    # parts
    cells = []
    for exercise, part in unit.parts():
        mine = [r for rows in whole.values() for r in rows if r.part == part.name]
        mine = [row for row in mine if row.exercise == exercise.name]
        mean = statistics.fmean(row.earned for row in mine)
        full = sum(row.state == "ok" for row in mine)
        name = f"{exercise.name}: {part.name}"
        cells.append([name, f"{mean:.1f}/{part.points}", f"{full} of {len(mine)}"])
    text += [*table(["part", "mean", "earned it"], cells), ""]

    # sentences
    cells = []
    for name in unit.exercises:
        said = Counter()
        for rows in whole.values():
            # a learner counts once for a sentence
            said.update({general(row.why) for row in rows if row.exercise == name and row.why})
        cells += [[name, count, safe(why)] for why, count in said.most_common(MOST)]
    text += ["What was said most often:", ""]
    text += table(["exercise", "learners", "sentence"], cells)
    return "\n".join(text) + "\n"


def general(why):
    """A sentence without what differs from learner to learner: where, and how many of how many."""
    return why.split("; asked with")[0].split("; found ")[0].split(" (")[0]
