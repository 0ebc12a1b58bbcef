"""What do the tests of the grader share? A unit, honest work, and ways to play other roles."""

import copy
import csv
import os
import sys
import textwrap
import zipfile
from pathlib import Path

from homework import grade, marking

HOMEWORK = Path(grade.__file__).parent
CHECKOUT = HOMEWORK.parent
WHOLE = marking.find("hw03")
UNIT = copy.copy(WHOLE)  # three of its exercises, for a class of more than 30
UNIT.exercises = {name: WHOLE.exercises[name] for name in ("owners", "skip_heads", "svformer")}
HONEST = (HOMEWORK / "solutions" / UNIT.folder / "reference.py").read_text()
DOORS = ("skip_heads", *(f"skip_heads_{n}" for n in range(2, 6)))  # where attacks stand in one file
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def with_doors(unit):
    """The unit with skip_heads five times, and svformer behind it. One sandbox, which takes two
    seconds to start, meets five attacks; honest work behind them meets what they leave."""
    wide = copy.copy(unit)
    wide.exercises = {}
    for name in DOORS:
        wide.exercises[name] = copy.copy(unit.exercises["skip_heads"])
        wide.exercises[name].name = name
    wide.exercises["svformer"] = unit.exercises["svformer"]
    return wide


def attacked(**attacks):
    """The honest file with functions that attack in the place of its own: name=body."""
    return HONEST + "".join(attacking(name, body) for name, body in attacks.items())


def attacking(name, body):
    inputs, body = "v, v1" if name in DOORS else "*inputs", textwrap.dedent(body).strip()
    body = textwrap.indent(body, "    ")
    return f"\nimport numpy as np\n\n\ndef {name}({inputs}):\n{body}\n"


def readable(command):
    """The command, in a mount namespace where any account may read this Python and this checkout
    (the home in which they lie may be closed to others)."""
    base = Path(sys.base_prefix).resolve()
    closed = first_closed(base) or first_closed(CHECKOUT)
    if closed is None:
        return command
    kept = [place for place in (base, CHECKOUT) if closed in [place, *place.parents]]
    script = "set -e; "
    for n, place in enumerate(kept):
        script += f'aside{n}=$(mktemp -d); mount --rbind "{place}" "$aside{n}"; '
    script += f'mount -t tmpfs -o mode=755 tmpfs "{closed}"; '
    for n, place in enumerate(kept):
        script += f'mkdir -p "{place}"; mount --rbind "$aside{n}" "{place}"; '
        script += f'umount -l "$aside{n}"; rmdir "$aside{n}"; '
    return ["unshare", "--mount", "sh", "-c", script + 'exec "$@"', "sh", *command]


def first_closed(place):
    """The highest folder on the way to a place that other accounts may not enter; None: all may."""
    way = [*reversed(place.parents), place]
    return next((folder for folder in way if not os.stat(folder).st_mode & 0o001), None)


def zipped(path, **texts):
    """An archive of these files."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
    return path


def table(path):
    """The lines of a .csv, as dictionaries."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
