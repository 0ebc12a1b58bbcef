"""How is a stranger's homework graded? `python -m homework.grade hw03 kv_cache.py --out
results.json`

This process makes secret inputs, starts the submission behind a sandbox (homework/sandbox.py; what
runs there is homework/runner.py), takes back bytes, reads them as plain arrays and judges them
here. It never imports, unpickles or runs a submission.

Exit status: 0 all graded, 1 something in the folder was not graded, 2 a grader error.
"""

import argparse
import ast
import builtins
import csv
import hashlib
import importlib.util
import io
import json
import math
import os
import re
import secrets
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from homework import reports, runner
from homework.marking import SAYS, Row, find, road_of
from homework.sandbox import WAYS, GraderError, Sandbox, best_way, check
from minimal.command import command
from minimal.data.files import DataError, write_whole

MISHAP = "grader error: nothing was lost and this is not a mark; ask your instructor to grade again"
OURS = re.compile(rb'\{\n "(score|output)": |submission,score,of,|# hw\d\d ')
SLOW = ("starved", "late")  # what a crowd on this machine can do to honest work


# ------------------------------------------------------------------------------- one submission


def read(reply, cases):
    """(states, arrays by case) from untrusted bytes: a line of JSON, then arrays of numbers."""
    head, _, rest = reply.partition(b"\n")
    body, states, answers = io.BytesIO(rest), [], []
    for said in json.loads(head[:100_000])[:cases]:
        states.append(read_state(said))
        count = min(int(said.get("arrays", 0)), 64)
        answers.append([read_array(body, len(rest)) for _ in range(count)])
    missing = cases - len(states)
    return states + [dict(state="died")] * missing, answers + [[]] * missing


def read_state(said):
    """What may be told of a call: a known state, a line, an exception of Python's own."""
    state = said["state"] if said["state"] in SAYS or said["state"] == "ok" else "forged"
    line = said.get("line")
    known = getattr(builtins, str(said.get("error")), None)
    is_error = isinstance(known, type) and issubclass(known, BaseException)
    stored = said.get("stored")
    return dict(
        state=state,
        stored=stored if isinstance(stored, int) else 0,
        line=line if isinstance(line, int) and 0 <= line < 100_000 else "?",
        error=known.__name__ if is_error else "an error",
    )


def read_array(body, most):
    """The next array of numbers, no larger than the bytes that were sent."""
    if body.read(6) != b"\x93NUMPY" or body.read(2) != b"\x01\x00":
        raise ValueError("not an array")
    size = struct.unpack("<H", body.read(2))[0]
    about = ast.literal_eval(body.read(size)[:1000].decode("latin1").strip())
    kind, shape = np.dtype(str(about["descr"])), tuple(int(n) for n in about["shape"])
    count = math.prod(shape)
    if kind.kind not in "fiub" or min(shape, default=0) < 0 or count * kind.itemsize > most:
        raise ValueError("not an array of numbers")
    flat = np.frombuffer(body.read(count * kind.itemsize), kind)
    return flat.reshape(shape, order="F" if about["fortran_order"] else "C")


def hear(reply, exercise, part, seed):
    """(state, why) of one part from the bytes that were sent back."""
    if not reply:
        return ("died" if reply is None else "starved"), ""
    try:
        said = read(reply, len(exercise.cases(part, seed)))
    except Exception:  # whatever these bytes are, they are not an answer
        return "forged", ""
    with np.errstate(all="ignore"):
        return exercise.verdict(part, seed, *said, hidden=True)


def question(exercise, cases):
    """A part's cases as a message: arrays behind, their places and layouts in front."""
    arrays = [x for inputs in cases for x in inputs if isinstance(x, np.ndarray)]
    places = iter(range(len(arrays)))

    def told(x):
        if not isinstance(x, np.ndarray):
            return x
        return dict(array=next(places), apart=x.ndim == 1 and not x.flags.c_contiguous)

    head = [[told(x) for x in inputs] for inputs in cases]
    return runner.pack(dict(function=exercise.name, cases=head, arrays=len(arrays)), arrays)


def grade(unit, source, seed, way, seconds=10, memory=4, most=150, kept=()):
    """The rows of one submission (bytes); `kept` are rows of an earlier try, which are not asked
    again. Raises only what is the grader's own fault."""
    rows, box, until = [], None, time.monotonic() + most
    kept = {(row.exercise, row.part): row for row in kept}
    try:
        for exercise, part in unit.parts():
            if (exercise.name, part.name) in kept:
                rows.append(kept[exercise.name, part.name])
                continue
            state, why = "late", ""
            asked = question(exercise, exercise.cases(part, seed))
            while (left := until - time.monotonic()) > 0:
                first, box = box is None, box or Sandbox(source, way, seconds, memory)
                reply = box.ask(asked, min(seconds, left) + 2)
                state, why = hear(reply, exercise, part, seed)
                # Who was asked before may have left something behind: a second chance for a part
                # that died, in a fresh sandbox.
                if not reply or (state == "died" and not first):
                    box = box.end()
                if state != "died" or first:
                    break
            rows.append(
                Row(exercise.name, part.name, part.points, state, why or SAYS.get(state, ""))
            )
    finally:
        if box:
            box.end()
    return rows


# ------------------------------------------------------------------------------------- results


def results(unit, rows, spent, seed, note=""):
    """Gradescope's results.json. Without rows: valid, says what happened, and holds no mark."""
    known = dict(
        execution_time=int(spent),
        stdout_visibility="hidden",
        extra_data=dict(seed=seed),
    )
    if rows is None:
        nothing = dict(name="grader error", score=0, max_score=0, status="failed", output=MISHAP)
        return dict(output=f"{MISHAP}{note and f' ({note})'}", tests=[nothing], **known)
    tests = [
        dict(
            name=f"{row.exercise}: {row.part}",
            score=row.earned,
            max_score=row.points,
            status="passed" if row.earned else "failed",
            output=row.why,
            number=str(i),
            visibility="visible",
        )
        for i, row in enumerate(rows, 1)
    ]
    words = f"{unit.short} · {unit.title}"
    if road := road_of(unit):
        words += f"\n{road}"
    title = dict(output=words, visibility="visible")
    return dict(score=sum(row.earned for row in rows), **title, tests=tests, **known)


def put(path, text):
    """All or nothing, and only over results that this grader wrote before."""
    write_whole(path, text, is_ours)


def is_ours(path):
    """Does this file begin as results, a table, a card or a page of the grader?"""
    with open(path, "rb") as file:
        return bool(OURS.match(file.read(80)))


def put_results(path, unit, rows, spent, seed, note=""):
    put(path, json.dumps(results(unit, rows, spent, seed, note), indent=1))


def printable(name):
    """A file's name on a terminal or in a table: nothing in it moves a cursor or turns a line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name)


def cell(text):
    """A name in a table that a spreadsheet opens: text, never a formula."""
    text = printable(text)
    return f"'{text}" if text.startswith(tuple("=+-@")) else text


@dataclass
class Graded:
    """One learner's outcome: the rows, or None and what went wrong on this side."""

    rows: list | None = None
    notes: list = field(default_factory=list)

    @property
    def note(self):
        return printable("; ".join(self.notes))

    @property
    def mark(self):
        return "grader error" if self.rows is None else sum(row.earned for row in self.rows)

    def of(self, exercise):
        mine = [row.earned for row in self.rows or [] if row.exercise == exercise]
        return "" if self.rows is None else sum(mine)

    def slow(self):
        return [row for row in self.rows or [] if row.state in SLOW]


def one(unit, path, out, options, before=None):
    """Grade one file (or a folder that holds it), write its results whatever happens.

    With `before`, an earlier outcome: ask again what was too slow then, and keep the rest.
    """
    start = time.monotonic()
    graded = Graded()
    if before is None:
        put_results(out, unit, None, 0, options.seed, "it did not finish")
    try:
        file = handed_in(unit, path)
        renamed = "" if file.name == unit.file or not path.is_dir() else printable(file.name)
        note = refused(unit, path, file)
        if note:
            why = f"{unit.file} was not handed in as a file of at most 1 MB"
            rows = [Row(e.name, part.name, part.points, "missing", why) for e, part in unit.parts()]
            graded = Graded(rows, [note])
        else:
            limits = (options.seconds, options.memory, options.most)
            kept = [row for row in before.rows if row not in before.slow()] if before else ()
            way = options.isolation
            graded = Graded(grade(unit, file.read_bytes(), options.seed, way, *limits, kept))
            if renamed:
                graded.notes.append(f"{renamed} was graded: there is no other")
    except Exception as error:
        graded = Graded(None, [" ".join(f"{type(error).__name__}: {error}".split())[:200]])
    said = graded.note.split(":")[0]
    put_results(out, unit, graded.rows, time.monotonic() - start, options.seed, said)
    return graded


def handed_in(unit, path):
    """The file to grade. A folder's only .py file will do with the number that a browser gave it:
    `attention (1).py`."""
    if not path.is_dir():
        return path
    file = path / unit.file
    if path.is_symlink() or os.path.lexists(file):
        return file
    found = [p for p in entries(path) if p.suffix == ".py" and p.is_file() and not p.is_symlink()]
    numbered = re.compile(re.escape(file.stem) + r"[ _-]?\(?\d+\)?")
    alone = len(found) == 1 and numbered.fullmatch(found[0].stem)
    return found[0] if alone else file


def refused(unit, path, file):
    """Why this is no file to grade, for the instructor; '' if it is one."""
    if path.is_symlink():
        return f"{path.name} is a link: each learner hands in a file of their own"
    if file.is_symlink():
        return f"{unit.file} is a link, or larger than 1 MB"
    if not os.path.lexists(file):
        return missing(unit, path)
    if not file.is_file() or file.stat().st_size > 1 << 20:
        return f"{unit.file} is no file, or larger than 1 MB"
    return ""


def missing(unit, folder):
    """What an instructor wants to know of a folder without the file: what it holds instead."""
    found = sorted(p.name for p in folder.iterdir() if p.suffix == ".py")
    names = printable(", ".join(found[:3]))[:100] + ", …" * (len(found) > 3)
    below = "; a folder below holds one" if any(folder.glob(f"*/{unit.file}")) else ""
    return f"{unit.file} missing" + (f"; found {names}" if found else "") + below


# ------------------------------------------------------------------------------------- a class


def learner(path):
    """Whose submission is this? A folder's whole name (j.smith), a file's without .py."""
    return path.name if path.is_dir() else path.stem


def results_file(path):
    """The name of a learner's results: theirs, cut where a file system would refuse its length."""
    name = os.fsencode(learner(path))
    if len(name) <= 200:
        return f"{learner(path)}.json"
    mark = hashlib.sha256(name).hexdigest()[:12]
    return f"{name[:150].decode('utf-8', 'ignore')}-{mark}.json"


def put_table(path, unit, done):
    """grades.csv: a line a learner, as far as they are graded."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["submission", "score", "of", *unit.exercises, "note"])
    for who, graded in done.items():
        earned = [graded.of(name) for name in unit.exercises]
        table.writerow([cell(learner(who)), graded.mark, unit.points, *earned, cell(graded.note)])
    put(path, text.getvalue())


def folder(unit, paths, out, options):
    """Many submissions side by side: a results file and a card each, grades.csv, a page for the
    class, and a table.

    Whoever was too slow beside the others is asked again at the end, alone.
    """
    done = {}

    def attempt(path, before=None):
        try:
            return one(unit, path, out / results_file(path), options, before)
        except (OSError, DataError) as error:
            return Graded(None, [f"results cannot be written: {error}"])

    def report(path, graded):
        done[path] = graded
        put_table(out / "grades.csv", unit, done)
        if graded.rows is not None:
            card = reports.card(unit, graded.rows, learner(path), graded.notes)
            put((out / "cards" / results_file(path)).with_suffix(".md"), card)
        name = printable(learner(path))
        print(f"{name:<40} {graded.mark:>12} of {unit.points}  {graded.note}".rstrip(), flush=True)

    put_table(out / "grades.csv", unit, done)
    with ThreadPoolExecutor(options.jobs) as workers:
        for path, graded in zip(paths, workers.map(attempt, paths), strict=True):
            report(path, graded)

    crowd = options.jobs > 1 and len(paths) > 1
    for path in [path for path in paths if crowd and done[path].slow()]:
        graded = attempt(path, before=done[path])
        graded.notes.append(f"parts asked again alone, after a time-out: {len(done[path].slow())}")
        report(path, graded)
    page = reports.summary(unit, {learner(path): graded.rows for path, graded in done.items()})
    put(out / "grades.md", page)
    return list(done.values())


# ------------------------------------------------------------------------------- the command


def number(kind, least, most):
    """A type for argparse: a number in these bounds (what is not a number is in none)."""

    def parse(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"wanted {what} from {least} to {most}, got {text!r}")
        return value

    return parse


def options_of(parser):
    ways = "\n".join(f"  {way:<11} {what}" for way, what in WAYS.items())
    parser.epilog = (
        f"ways to isolate, best first:\n{ways}\n\nWhat no way stops: right answers of "
        "somebody else, and load on this machine until its time is over."
    )
    add = parser.add_argument
    add("unit", help="for example hw03")
    add("submission", type=Path, help="the learner's file, or a folder with one of each learner")
    add(
        "--out",
        type=Path,
        help="a file (default: results.json); for a class, a folder (default: results). With a "
        ".json a folder is one learner's, whatever it holds",
    )
    add("--seed", type=number(int, 0, 2**63), help="of the inputs (default: a new secret one)")
    jobs = dict(type=number(int, 1, 1000), default=os.cpu_count())
    add("--jobs", **jobs, help="submissions at a time (default: %(default)s)")
    seconds = number(float, 1, 86400)
    add("--seconds", type=seconds, default=10, help="for one part (default: %(default)s)")
    add("--most", type=seconds, default=150, help="for one submission (default: %(default)s)")
    memory = dict(type=number(int, 1, 1024), default=4)
    add("--memory", **memory, help="GiB of address space beside torch's (default: %(default)s)")
    ways = dict(choices=["auto", *WAYS], default="auto")
    add("--isolation", **ways, help="default: the best that works here")
    add("--require-isolation", action="store_true", help="refuse to run where it would be 'none'")


def entries(path):
    """What lies in a folder, without what systems and editors put there."""
    return sorted(p for p in path.iterdir() if not p.name.startswith((".", "__")))


def class_of(unit, path, error):
    """The submissions in a folder, and the names of what is none."""
    paths = [p for p in entries(path) if p.is_dir() or p.suffix == ".py"]
    if not paths:
        error(f"{path} holds no {unit.file}, and no file or folder for each learner")
    for name in {p.name for p in paths if p.is_dir()} & {p.stem for p in paths if p.is_file()}:
        error(
            f"{path} holds {printable(name)} as a file and as a folder: rename one, each gets "
            "results by its name"
        )
    return paths, [printable(p.name) for p in entries(path) if p not in paths]


def is_alone(unit, path, out, error):
    """One learner's file or folder? Refused where it could be a class as well."""
    if path.is_file() or (out and out.suffix == ".json"):
        return True
    if not (path / unit.file).is_file():
        return False
    others = [p for p in entries(path) if p.name != unit.file and (p.is_dir() or p.suffix == ".py")]
    if others:
        names = printable(", ".join(p.name for p in others[:3]))
        error(
            f"{path} holds {unit.file} beside {names}: if it is a class, rename {unit.file} after "
            "its learner; if it is one learner's folder, say --out results.json"
        )
    return True


def isolate(options, closed, error):
    """Settle on a way that works here, and say which."""
    if options.isolation == "auto":
        options.isolation, notes = best_way(options.memory, closed)
        print(*notes, sep="\n", end="\n" * bool(notes), file=sys.stderr)
    elif options.isolation != "none":
        try:
            check(options.isolation, options.memory, closed)
        except (GraderError, OSError) as why:
            error(f"--isolation {options.isolation} does not work here: {why}")
    print(f"isolation: {options.isolation}: {WAYS[options.isolation]}", file=sys.stderr)
    if options.isolation == "none" and (options.require_isolation or os.geteuid() == 0):
        root = "as root no stranger's code is run without one"
        why = "--require-isolation was given" if os.geteuid() else root
        error(f"this system offers neither a spare account nor namespaces; {why}")


@command("homework.grade", __doc__)
def main(parser, argv):
    options_of(parser)
    options, error = parser.parse_args(argv), parser.error
    if not hasattr(os, "fork"):
        error("this grader needs a system that can fork (Linux, macOS, WSL)")
    options.seed = secrets.randbits(48) if options.seed is None else options.seed
    unit, path = find(options.unit), options.submission
    if not path.exists():
        error(f"{path} is not there")

    # One learner, or a class: what is graded, and where its results go.
    alone = is_alone(unit, path, options.out, error)
    out = options.out or Path("results.json" if alone else "results")
    out = out / results_file(path) if alone and out.is_dir() else out
    paths, left = ([path.resolve()], []) if alone else class_of(unit, path, error)
    if left:
        what = "not graded, neither a folder nor a .py file"
        print(f"{what}: {', '.join(left)}", file=sys.stderr)

    isolate(options, [] if alone else [path.resolve()], error)
    if "triton" in unit.prelude and importlib.util.find_spec("triton") is None:
        why = "submissions with Triton kernels would lose their points"
        print(f"there is no Triton here: {why}", file=sys.stderr)

    try:
        done = [one(unit, *paths, out, options)] if alone else folder(unit, paths, out, options)
    except (OSError, DataError) as why:
        error(f"results cannot be written to {out}: {why}")
    if alone:
        tell(unit, *done)
    return 2 if any(graded.rows is None for graded in done) else 1 if left else 0


def tell(unit, graded):
    """One learner's rows, and the sum."""
    for row in graded.rows or []:
        name = f"{row.exercise}: {row.part}"
        print(f"{row.earned:>3}/{row.points:<3} {name}  {row.why}".rstrip())
    if graded.rows is None:
        print(f"{MISHAP} ({graded.note})")
    else:
        print(f"{graded.mark} of {unit.points}  {graded.note}".rstrip())


if __name__ == "__main__":
    sys.exit(main())
