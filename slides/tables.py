"""What was printed, what was recorded? The evidence of the course as tables.

None of them is typed here.
"""

import html
import itertools
import re

from course import figures, records
from evidence.lab.comparison import signed
from minimal.compare import intervals

NUMBER = re.compile(r"([-−+±.,%×≈\d\s()]|(?<=\d)e(?=-?\d)|\bto\b|\bnats\b|\bmin\b)+")
HUGE = 1e12  # from here on nobody counts the zeros
DIGITS = 6  # no source prints more of a number
WORDS = 24  # letters from which on a cell wants room on a phone
NAME = re.compile(r"<code>[^<]*</code>")


def shown(value, digits=4):
    """A value in words, a number in that many digits: of what is recorded here four say enough."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(shown(part, digits) for part in value)
    if not is_number(value):
        return html.escape(str(value))
    if abs(value) >= HUGE:
        told = f"{value:.3g}".replace("e+", "e")
    elif abs(value) >= 1e4:
        told = f"{value:,.0f}"
    else:
        told = f"{value:.{digits}g}" if isinstance(value, float) else str(value)
    return minus(told)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def minus(told):
    """A number's sign as the findings write it: a hyphen is no minus."""
    return f"−{told[1:]}" if told.startswith("-") else told


def measured(column):
    """A column of one measure as a source prints it, 0.26 below 0.334: all with as many places as
    the longest has."""
    numbers = [value for value in column if value is not None]
    alike = all(is_number(value) and abs(value) < 100 for value in numbers)
    alike = alike and not any("e" in f"{value:.{DIGITS}g}" for value in numbers)  # 6e-05: no 0.00
    if not alike or not any(isinstance(value, float) for value in numbers):
        return [shown(value, DIGITS) for value in column]
    places = max(len(f"{value:.{DIGITS}g}".partition(".")[2]) for value in numbers)
    return ["" if value is None else minus(f"{value:.{places}f}") for value in column]


def table(columns, rows, kind=""):
    head = "".join(f'<th scope="col">{html.escape(str(name))}</th>' for name in columns)
    lines = ("".join(map(table_cell, row)) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    start = f"<table class={kind}>" if kind else "<table>"
    return f"{start}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


INTERVAL = re.compile(r"^(.+?) (\([^()]*\))$")


def table_cell(cell):
    """A cell; a number stays on one line, and its interval on one, below it where it is narrow.

    On a phone long words keep some room, and a name may be parted at its underscores."""
    plain = re.sub("<[^>]+>", "", str(cell))
    if NUMBER.fullmatch(plain):
        parts = '<span class="whole">\\1</span> <span class="whole">\\2</span>'
        return f'<td class="number">{INTERVAL.sub(parts, str(cell))}</td>'
    cell = NAME.sub(lambda name: name[0].replace("_", "_<wbr>"), str(cell))
    return f'<td class="words">{cell}</td>' if len(plain) > WORDS else f"<td>{cell}</td>"


def numbers_whole(body):
    """Tables that Markdown made: their numbers stay on one line, too."""
    return re.sub(r"<td>(.*?)</td>", lambda match: table_cell(match[1]), body)


def cited(about):
    where = str(about["year"])
    if about["arxiv"]:
        where = f'<a href="https://arxiv.org/abs/{about["arxiv"]}">{about["arxiv"]}</a>'
    return f"{html.escape(about['title'])}, {where}; read: {html.escape(about['read'])}"


# ---- what the sources print ----------------------------------------------------------------------


def published():
    parts = [
        "<h1>Tables of the papers</h1>"
        "<p>Every table of the five sources, typed once; ≈ marks values read off a figure. Of what "
        "came after them abstracts were read, and no table is typed.</p>"
    ]
    for source, about in records.published().items():
        parts.append(f'<h2 id="{source}">{html.escape(about["short"])}</h2>')
        parts.append(f'<p class="soft">{cited(about)}</p>')
        for name in records.published(source):
            found = records.published(source, name)
            columns = found["columns"].items()
            units = [f"{column} ({unit})" if unit else column for column, unit in columns]
            mark = " ≈" if found["approximate"] else ""
            rows = [list(row.values()) for row in found["rows"]]
            if found["approximate"]:  # read by eye: no digit more than was read
                lines = [map(shown, row) for row in rows]
            else:
                lines = zip(*map(measured, zip(*rows)))
            note = f'<span class="soft">{html.escape(found.get("note") or "")}</span>'
            parts += [
                f"<h3>{html.escape(name)}{mark}</h3>",
                f"<p>{html.escape(found['caption'])}. {note}</p>",
                table(units, lines),
            ]
    return "\n".join(parts)


# ---- what is recorded here -----------------------------------------------------------------------

MOVED = {  # what a recorded command began with -> what it begins with today
    "minimal.evidence --record": "evidence.lab.record",
    "minimal.lab.evidence --record": "evidence.lab.record",
    "evidence.research --record": "evidence.lab.record",
    "minimal.lab.evidence --repeat": "evidence.lab.record --again",
    "minimal.seeds": "evidence.measured.bypass_seeds",
    "minimal.lab.evidence.portraits": "evidence.measured.portraits",
    "minimal.lab.evidence.states": "evidence.measured.states",
    "evidence.research.fetch --deeper": "evidence.measured.fetch compute_then_fetch_deeper",
    "evidence.research.fetch_first": "evidence.measured.fetch fetch_first",
    "evidence.research.fetch": "evidence.measured.fetch",
    "evidence.research.many_answers": "evidence.measured.fetch many_answers",
    "evidence.research.mean_values": "evidence.measured.mean_values",
    "minimal.lab.speed.compiled": "course.compiled",
}


TEXT = re.compile(r"_(code|novels?)$")
FAMILIES = ("tuning", "at_its_best")  # the rates of a system, and what it does with them


def recorded():
    """Every file; those that put one question to several texts under one heading."""
    parts = [
        "<h1>What is recorded here</h1><p>Runs that take longer than a notebook should, kept as "
        "small JSON with the command that repeats them. The same run with its sums in other order "
        'ends elsewhere: what that is worth stands under <a href="index.html">Findings</a>, and a '
        "difference of that size is none.</p>"
    ]
    names = records.recorded_names()
    for question, files in itertools.groupby(sorted(names, key=by_question), asked_in):
        together = list(files)
        if len(together) == 1:
            parts += one_file(together[0], "h2")
            continue
        what = "files" if question in FAMILIES else "texts"
        parts.append(f'<h2 id="about_{question}">{question}: {len(together)} {what}</h2>')
        for name in together:
            parts += one_file(name, "h3")
    return "\n".join(parts)


def asked_in(name):
    """The question of a file: its name less the text to which it was put, or the family to which
    questions of many systems belong."""
    question = TEXT.sub("", name)
    return next((family for family in FAMILIES if family in question), question)


def by_question(name):
    return asked_in(name), name


def one_file(name, heading):
    file = records.read(name)
    return [
        f'<{heading} id="{name}">{name}</{heading}><p>{sentence(file["what"])}.</p>',
        facts(file),
        differences(file["rows"]),
        every(file["rows"]),
    ]


def sentence(text):
    """What a file is about, with a capital letter."""
    return html.escape(text[:1].upper() + text[1:])


def facts(file):
    corpus = file["corpus"]
    versions = ", ".join(f"{name} {number}" for name, number in file["versions"].items())
    rows = [
        ("command", command(file["command"])),
        ("commit", file["commit"]),
        ("hardware", re.sub(r"\b1 threads\b", "1 thread", file["hardware"])),
        ("versions", versions),
    ]
    if corpus["tokens"]:  # a measurement of speed reads none
        told = f"{corpus['name']} ({corpus['fingerprint']}), {corpus['tokens']:,} tokens"
        rows.append(("corpus", told))
    lines = (f'<tr><th scope="row">{name}</th><td>{told}</td></tr>' for name, told in rows)
    return f'<table class="facts"><tbody>{"".join(lines)}</tbody></table>'


def command(line):
    """A command as it is given today; modules have moved since some runs were recorded."""
    for then, now in MOVED.items():
        if re.search(rf"{re.escape(then)}(?![\w.])", line):
            today = html.escape(line.replace(then, now))
            return f"<code>{today}</code>; at that commit <code>{then}</code>"
    return f"<code>{html.escape(line)}</code>"


def differences(rows):
    """Each plan against standard on the same seeds, with its interval over several seeds."""
    if not rows or "loss" not in rows[0]:
        return ""
    try:
        found = intervals.paired(rows, "loss")
    except ValueError:  # several budgets in one file: the rows below are all there is to say
        return ""
    found = [row for row in found if row["difference"] is not None and row["plan"] != "standard"]
    if not found:  # nothing beside standard, or no standard
        return ""
    one = ""
    if all(row["n"] < 2 for row in found):
        one = '<p class="soft">One seed carries no interval.</p>'
    lines = []
    for row in sorted(figures.ahead(found), key=lambda row: -row["difference"]):
        low, high = row["low"], row["high"]
        interval = "" if low is None else f"{signed(low)} to {signed(high)}"
        clear = "yes" if row["clear"] else "no"
        lines.append((row["plan"], row["n"], signed(row["difference"]), interval, clear))
    columns = ("plan", "pairs", "held-out nats ahead of standard", "95 % interval", "excludes 0")
    return one + table(columns, lines)


def every(rows):
    """All rows, each kind of columns as a table of its own; what is nested stays in the file."""
    of_part, kinds = {}, {}
    for row in rows:
        of_part.setdefault(row.get("part"), []).append(row)
    for some in of_part.values():
        flat = [{name: value for name, value in row.items() if scalar(value)} for row in some]
        names = tuple(dict.fromkeys(name for row in flat for name in row))
        lines = [[shown(row.get(name)) for name in names] for row in flat]
        kinds.setdefault(names, []).extend(lines)
    told = "\n".join(table(names, lines) for names, lines in kinds.items())
    return f'<details class="rows"><summary>All {len(rows)} rows</summary>\n{told}</details>'


def scalar(value):
    return not isinstance(value, (list, dict))
