"""How is a stranger's homework graded? `python -P -m homework.grade hw03 kv_cache.py
--out results.json`

This process makes secret inputs, starts the submission behind a sandbox (homework/sandbox.py; what
runs there is homework/runner.py), takes back bytes, reads them as plain arrays and judges them
here. It never imports, unpickles or runs a submission.

Exit status: 0 all graded, 1 something in the folder was not graded, 2 a grader error, 130 stopped
by Ctrl-C.
"""

import argparse
import ast
import builtins
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
import zipfile
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from homework import handed_in, reading, reports, roster, runner, unnamed
from homework.marking import SAYS, Row, find, road_of
from homework.reports import visible
from homework.sandbox import WAYS, GraderError, Sandbox, best_way, check
from minimal.command import command
from minimal.data.files import DataError, write_whole

MISHAP = "grader error: nothing was lost and this is not a mark; ask your instructor to grade again"
OURS = re.compile(rb'\{\n "(score|output|unnamed)": |"?submission"?,|"?Student"?,|# hw\d\d ')
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


def grade(unit, source, seed, way, seconds=10, memory=4, most=150, kept=(), heard=None):
    """The rows of one submission (bytes); `kept` are rows of an earlier try, which are not asked
    again; what came back of judged parts is put into `heard`. Raises only what is the grader's own
    fault."""
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
            if heard is not None and state in ("ok", "wrong"):
                heard[exercise.name, part.name] = read(reply, len(exercise.cases(part, seed)))
    finally:
        if box:
            box.end()
    return rows


# ------------------------------------------------------------------------------------- results


def results(unit, rows, spent, seed, note=""):
    """Gradescope's results.json. Without rows: valid, says what happened, and holds no mark."""
    known = dict(execution_time=int(spent), stdout_visibility="hidden", extra_data=dict(seed=seed))
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


@dataclass
class Graded:
    """One learner's outcome: the rows, or None and what went wrong on this side."""

    rows: list | None = None
    notes: list = field(default_factory=list)
    days: int | None = 0  # late, as far as is known
    unnamed: dict = field(default_factory=dict)  # wrong answers that were told no reason

    @property
    def note(self):
        return visible("; ".join(self.notes))

    @property
    def mark(self):
        return "grader error" if self.rows is None else sum(row.earned for row in self.rows)

    def of(self, exercise):
        mine = [row.earned for row in self.rows or [] if row.exercise == exercise]
        return "" if self.rows is None else sum(mine)

    def slow(self):
        return [row for row in self.rows or [] if row.state in SLOW]


def one(unit, mine, out, options, before=None):
    """Grade what a learner handed in, write its results whatever happens.

    With `before`, an earlier outcome: ask again what was too slow then, and keep the rest.
    """
    start = time.monotonic()
    if before is None:
        put_results(out, unit, None, 0, options.seed, "it did not finish")
    days = None
    try:
        file, note = mine.choose(unit)
        days = roster.days_late(mine, file, options.due)
        if shut := file.content.shut if file else mine.shut:
            raise GraderError(shut)
        why = file.none if file else not_there(unit, note)
        if why:
            why = visible(why)
            rows = [Row(e.name, part.name, part.points, "missing", why) for e, part in unit.parts()]
            graded = Graded(rows, [why if file else note])
        else:
            limits = (options.seconds, options.memory, options.most)
            kept = [row for row in before.rows if row not in before.slow()] if before else ()
            way = options.isolation
            heard, told = {}, before.unnamed if before else {}
            rows = grade(unit, file.read(), options.seed, way, *limits, kept, heard)
            told = told | unnamed.answers(unit, rows, options.seed, heard)
            graded = Graded(rows, [note] if note else [], unnamed=told)
    except GraderError as error:
        graded = Graded(None, [str(error)[:200]])
    except Exception as error:
        graded = Graded(None, [" ".join(f"{type(error).__name__}: {error}".split())[:200]])
    graded.days = days
    said = graded.note.split(":")[0]
    put_results(out, unit, graded.rows, time.monotonic() - start, options.seed, said)
    return graded


def not_there(unit, note):
    """What a learner reads whose file was not found."""
    return note.replace(f"{unit.file} missing", f"{unit.file} was not handed in", 1)


# ------------------------------------------------------------------------------------- a class


def results_file(who):
    """The name of a learner's results: theirs, cut where a file system would refuse its length."""
    name = who.encode("utf-8", "surrogateescape")
    if len(name) > 200:
        mark = hashlib.sha256(name).hexdigest()[:12]
        name = f"{name[:150].decode('utf-8', 'ignore')}-{mark}".encode()
    return os.fsdecode(name + b".json")


def folder(unit, learners, out, options, people=None):
    """Many submissions side by side: a results file and a card each, grades.csv, a page for the
    class, and a table.

    Whoever was too slow beside the others is asked again at the end, alone.
    """
    done = {}
    same, whose = handed_in.shared(learners, unit), roster.match(people, learners)

    def attempt(mine, before=None):
        if mine.who in same:
            others = ", ".join(same[mine.who])
            why = f"one file on the disk, a hard link, is also {others}'s: hand in a copy each"
            put_results(out / results_file(mine.who), unit, None, 0, options.seed, "a hard link")
            return Graded(None, [why])
        try:
            return one(unit, mine, out / results_file(mine.who), options, before)
        except DataError as error:
            return Graded(None, [f"results cannot be written: {error}"])
        except OSError as error:
            return Graded(None, [f"results cannot be written: {error.strerror}"])

    def put_tables():
        put(out / "grades.csv", roster.grades(unit, done.values(), people, whose, options.late))
        if options.canvas:
            known = (done.values(), people, whose)
            text = roster.canvas(*known, options.canvas, options.late)
            put(out / "canvas.csv", text)

    def report(mine, graded):
        done[mine.who] = (mine, graded)
        put_tables()
        if graded.rows is not None:
            card = reports.card(unit, graded.rows, mine.who, graded.notes)
            put((out / "cards" / results_file(mine.who)).with_suffix(".md"), card)
        name = visible(mine.who)
        print(f"{name:<40} {graded.mark:>12} of {unit.points}  {graded.note}".rstrip(), flush=True)

    put_tables()
    with ThreadPoolExecutor(options.jobs) as workers:
        try:
            tried = [workers.submit(attempt, mine) for mine in learners]
            for mine, attempted in zip(learners, tried, strict=True):
                while not wait([attempted], timeout=0.2).done:
                    pass  # a Ctrl-C that came just before Python began to wait is heard here
                report(mine, attempted.result())
        except KeyboardInterrupt:
            workers.shutdown(wait=False, cancel_futures=True)
            Sandbox.end_all()
            raise

    crowd = options.jobs > 1 and len(learners) > 1
    for mine in [mine for mine in learners if crowd and done[mine.who][1].slow()]:
        before = done[mine.who][1]
        graded = attempt(mine, before)
        graded.notes.append(f"parts asked again alone, after a time-out: {len(before.slow())}")
        report(mine, graded)
    page = reports.summary(unit, {who: graded.rows for who, (_, graded) in done.items()})
    put(out / "grades.md", page)
    found = [graded.unnamed for _, graded in done.values()]
    put(out / "unnamed.txt", unnamed.page(unit, options.seed, found))
    return [graded for _, graded in done.values()]


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


def moment(text):
    """A type for argparse: a day, or a time on it."""
    try:
        return roster.moment(text)
    except (ValueError, OverflowError, OSError):
        why = f"wanted a time like 2026-10-31T23:59, got {text!r}"
        raise argparse.ArgumentTypeError(why) from None


def options_of(parser):
    ways = "\n".join(f"  {way:<11} {what}" for way, what in WAYS.items())
    parser.epilog = (
        f"ways to isolate, best first:\n{ways}\n\nWhat no way stops: right answers of "
        "somebody else, and load on this machine until its time is over."
    )
    add = parser.add_argument
    add("unit", help="for example hw03")
    add(
        "submission",
        type=Path,
        nargs="?",
        help="the learner's file, or what the platform gives for a class: a folder or a .zip "
        "(default: your own file of this unit)",
    )
    add(
        "--out",
        type=Path,
        help="a file (default: results.json); for a class, a folder (default: results). With a "
        ".json a folder is one learner's, whatever it holds",
    )
    add("--roster", type=Path, help="a .csv with the class: who handed in nothing is named")
    due = "when it was due: 2026-10-31T18:00, or a day, to its end (this machine's clock)"
    add("--due", type=moment, help=due)
    percent = dict(type=number(float, 0, 100), default=0)
    add(
        "--late", **percent, help="%% of the score that each day begun costs (default: %(default)s)"
    )
    add("--canvas", metavar="ASSIGNMENT", help="write canvas.csv for Canvas' gradebook, too")
    add("--seed", type=number(int, 0, 2**63), help="of the inputs (default: a new secret one)")
    jobs = dict(type=number(int, 1, 1000), default=os.cpu_count())
    add("--jobs", **jobs, help="submissions at a time (default: %(default)s)")
    seconds = number(float, 1, 86400)
    add("--seconds", type=seconds, default=10, help="for one part (default: %(default)s)")
    add("--most", type=seconds, default=150, help="for one submission (default: %(default)s)")
    memory = dict(type=number(int, 1, 1024), default=4)
    add("--memory", **memory, help="GiB for a submission, beside torch (default: %(default)s)")
    ways = dict(choices=["auto", *WAYS], default="auto")
    add("--isolation", **ways, help="default: the best that works here")
    add("--require-isolation", action="store_true", help="refuse to run where it would be 'none'")


def class_of(unit, path, error):
    """What each learner handed in, and the names of what is nobody's."""
    try:
        (learners, left, twice), top = handed_in.find_class(path, unit)
    except (zipfile.BadZipFile, NotImplementedError, OSError) as why:
        error(f"{path} cannot be read: {why}")
    if top:
        print(f"{path} holds the class in its folder {visible(top)}", file=sys.stderr)
    for name in twice:
        error(
            f"{path} holds {visible(name)} as a file and as a folder: rename one, each gets "
            "results by its name"
        )
    if not learners:
        error(f"{path} holds no {unit.file}, and no file or folder for each learner")
    if not any([mine.has(unit) for mine in learners]):  # all are read now
        names = {file.called for mine in learners for file in mine.files}
        found = sorted(name for name in names if name.endswith(".py"))
        said = visible(", ".join(found[:3])) + ", …" * (len(found) > 3)
        error(
            f"nobody in {path} handed in {unit.file} (found {said or 'no .py file'}): name the "
            "folder that holds a file or a folder of each learner"
        )
    return learners, [visible(name) for name in left]


def is_alone(unit, path, out, error):
    """One learner's file or folder? Refused where it could be a class as well."""
    if path.is_file():
        return path.suffix.lower() != ".zip"
    if not path.is_dir():
        error(f"wanted a file, a folder or a .zip, got {path}, which is none of these")
    if out and out.suffix == ".json":
        return True
    if (path / "homework" / unit.folder).is_dir():
        return True  # a clone
    if not (path / unit.file).is_file():
        return False
    names = sorted(p.name for p in path.iterdir() if not reading.ignored(p.name))
    others = [n for n in names if n != unit.file and ((path / n).is_dir() or n.endswith(".py"))]
    if others:
        names = visible(", ".join(others[:3]))
        error(
            f"{path} holds {unit.file} beside {names}: if it is a class, rename {unit.file} after "
            "its learner; if it is one learner's folder, say --out results.json"
        )
    return True


def check_apart(path, error):
    """Nothing that this process loads may lie in what is graded."""
    graded = path.resolve()
    for place in (Path(__file__).parent, *sys.path):
        if Path(place).resolve().is_relative_to(graded):
            error(
                f"{path} holds {place}, from which this grader loads its own modules: name only "
                "what was handed in, and start in the course's folder"
            )


def known_people(options, error):
    """The roster's lines, or None."""
    if options.roster is None:
        return None
    wanted = f"wanted a roster, a .csv in UTF-8 with a line a learner, got {options.roster}"
    try:
        people = roster.read(options.roster)
    except (OSError, ValueError) as why:
        error(f"{wanted}: {why}")
    if not people:
        error(f"{wanted}, which holds no learner")
    if options.canvas and not roster.GIVEN_BACK & {*people[0]}:
        known = ", ".join(sorted(roster.GIVEN_BACK))
        error(
            f"--canvas wants Canvas' own gradebook as the roster, with one of {known}; "
            f"{options.roster} has {visible(', '.join(people[0]))}"
        )
    return people


def check_class(options, people, learners, error):
    """Refuse what would take nothing, or give marks to nobody, without a word."""
    if options.late and options.due is None and not any(mine.judged for mine in learners):
        error("--late takes its share for each day since --due: say when it was due")
    if options.canvas and not people and not any(mine.judged for mine in learners):
        error("--canvas wants Canvas' archive, or its gradebook as --roster: it knows nobody else")
    if people and not any(of.row for of in roster.match(people, learners).values()):
        names = visible(", ".join(mine.who for mine in learners[:3]))
        error(f"{options.roster} knows nobody who handed in ({names}, …): is it this class's?")


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
    unit = find(options.unit)
    path = options.submission or unit.path
    if not path.exists():
        error(f"{path} is not there")

    check_apart(path, error)

    # One learner, or a class: what is graded, and where its results go.
    alone = is_alone(unit, path, options.out, error)
    out = options.out or Path("results.json" if alone else "results")
    people = known_people(options, error)
    if alone:
        for name in ("roster", "due", "late", "canvas"):
            if getattr(options, name):
                error(f"--{name} is for a class, got one learner's work: {path}")
        learners, left = [handed_in.single(path.resolve())], []
        out = out / results_file(learners[0].who) if out.is_dir() else out
    else:
        learners, left = class_of(unit, path, error)
        check_class(options, people, learners, error)
        if out.resolve().is_relative_to(path.resolve()):
            error(f"--out {out} lies in {path}, and would be graded as a learner next time")
    if left:
        what = "not graded, neither a folder nor a .py file"
        print(f"{what}: {', '.join(left)}", file=sys.stderr)

    isolate(options, [] if alone else [path.resolve()], error)
    if "triton" in unit.prelude and importlib.util.find_spec("triton") is None:
        why = "submissions with Triton kernels would lose their points"
        print(f"there is no Triton here: {why}", file=sys.stderr)

    try:
        if alone:
            done = [one(unit, *learners, out, options)]
        else:
            done = folder(unit, learners, out, options, people)
    except (OSError, DataError) as why:
        error(f"results cannot be written to {out}: {why}")
    except KeyboardInterrupt:
        print("\nstopped by Ctrl-C: what was graded until then is written", file=sys.stderr)
        return 130
    if alone:
        tell(unit, *done)
    elif people:
        tell_missing(people, learners)
    return 2 if any(graded.rows is None for graded in done) else 1 if left else 0


def tell_missing(people, learners):
    """Whose work is not there, and whose work is nobody's on the roster."""
    whose = roster.match(people, learners)
    absent = [roster.called(row) for row in roster.missing(people, whose)]
    strangers = [who for who, of in whose.items() if of.row is None]
    twins = [who for who, of in whose.items() if of.also]
    said = {"handed in nothing": absent, "not on the roster": strangers, "handed in twice": twins}
    for what, names in said.items():
        if names:
            print(f"{what}: {visible(', '.join(names))}")


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
