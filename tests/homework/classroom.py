"""What do the tests of the grader share? A unit, honest work, and ways to play other roles."""

import copy
import os
import sys
import textwrap
from pathlib import Path

import numpy as np

from homework import grade, marking

HOMEWORK = Path(grade.__file__).parent
WHOLE = marking.find("hw03")
UNIT = copy.copy(WHOLE)  # three of its exercises, for a class of more than 30
UNIT.exercises = {name: WHOLE.exercises[name] for name in ("owners", "skip_heads", "svformer")}
HONEST = (HOMEWORK / "solutions" / UNIT.folder / "reference.py").read_text()
DOORS = ("skip_heads", "skip_heads_2", "skip_heads_3")  # where attacks stand in one file
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def with_doors(unit):
    """The unit with skip_heads three times, and svformer behind it. One sandbox, which takes two
    seconds to start, meets three attacks; honest work behind them meets what they leave."""
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
    """The command, in a mount namespace where any account may read this Python (its home may be
    closed to others)."""
    base = Path(sys.base_prefix).resolve()
    closed = next(
        (str(p) for p in [*reversed(base.parents), base] if not os.stat(p).st_mode & 0o001), None
    )
    if closed is None:
        return command
    script = f"""set -e; aside=$(mktemp -d); mount --bind "{base}" "$aside"
                 mount -t tmpfs -o mode=755 tmpfs "{closed}"; mkdir -p "{base}"
                 mount --bind "$aside" "{base}"; umount "$aside"; rmdir "$aside"; exec "$@" """
    return ["unshare", "--mount", "sh", "-c", script, "sh", *command]


def lost(unit, e, wrong, seed):
    """(points that a named wrong answer loses, what it is told)."""
    points, told, asked = 0, [], []
    for part in e.parts:
        cases, answers = e.cases(part, seed), []
        for case, inputs in enumerate(cases):
            dtype = next((x.dtype for x in inputs if marking.floats(x)), None)
            found = e.expected(part, seed, case, wrong) or []
            with np.errstate(over="ignore"):
                answers.append(
                    [
                        x.astype(dtype) if dtype and x.ndim and marking.floats(x) else x
                        for x in found
                    ]
                )
        asked.append((part, [dict(state="ok")] * len(cases), answers))
    for part, states, answers in asked:
        others = [other for other in asked if other[0] != part and not other[0].accept]
        state, why = e.verdict(part, seed, states, answers, others=others)
        if state != "ok":
            points += part.points
            told.append(why)
    return points, told
