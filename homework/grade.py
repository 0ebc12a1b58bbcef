"""How is a stranger's homework graded? `python -m homework.grade hw03 kv_cache.py --out results.json`

This process makes secret inputs, starts the submission behind a sandbox (homework/runner.py is what runs there),
takes back bytes, reads them as plain arrays and judges them here. It never imports, unpickles or runs a submission.
"""
import argparse
import ast
import builtins
import csv
import importlib.util
import io
import json
import math
import os
import secrets
import selectors
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from homework import runner
from homework.marking import SAYS, find

PROGRAM = Path(runner.__file__).read_text(encoding="utf-8")
UIDS = range(60706, 61184)                                      # accounts that nobody has
MISHAP = "grader error: nothing was lost and this is not a mark; ask your instructor to grade again"

# As root of new namespaces: an empty root of 64 MB in memory, Python read-only in it, no network, no other processes.
SETUP = """
set -e; umask 022; root=$1; drop=$2; shift 2
mount -t tmpfs -o size=64m,mode=0755 tmpfs "$root"
while [ "$1" != -- ]; do
  mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; mount -o remount,bind,ro,nosuid,nodev "$root$1"; shift
done; shift
mkdir -p "$root/proc" "$root/dev" "$root/tmp"; chmod 1777 "$root/tmp"; mount -t proc proc "$root/proc"
for name in null zero random urandom; do : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
chroot "$root" setpriv $drop --bounding-set=-all --inh-caps=-all --no-new-privs "$@"; exit $?
"""

WAYS = {
    "namespaces": "own empty file system, network and processes; as root also a spare account; all end with the grader",
    "uid": "a spare account, whose processes are ended. OPEN: the network; files that anyone may read or write",
    "none": "limits and a clean environment only; never as root. OPEN: whatever you may do yourself: your files and "
            "processes, the network, processes left behind",
}


class GraderError(Exception):
    """Something on this side went wrong: never the learner's loss."""


def places():
    """The folders that Python and torch need, none inside another."""
    python = os.path.dirname(os.path.realpath(sys.executable))
    wanted, found = ["/usr", "/bin", "/lib", "/lib64", "/etc", sys.prefix, sys.base_prefix, python], []
    for place in sorted({*wanted, *map(os.path.realpath, wanted)}):
        if os.path.isdir(place) and not any(place.startswith(other + "/") for other in found):
            found.append(place)
    return found


def accounts():
    """The account of every process that runs now."""
    found = set()
    for pid in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            found.add(os.stat(f"/proc/{pid}").st_uid if pid.isdigit() else None)
        except OSError:
            pass                                                # it has ended meanwhile
    return found


class Sandbox:
    """One child that answers questions about one submission. `way` is a key of WAYS."""
    taken, lock = set(), threading.Lock()

    def __init__(self, source, way, seconds, memory):
        limits = dict(RLIMIT_FSIZE=64 << 20, RLIMIT_NPROC=64, RLIMIT_CORE=0, RLIMIT_NOFILE=256, RLIMIT_CPU=600)
        self.uid, self.way, self.root, options = None, way, None, {}
        if os.geteuid() == 0:
            if way == "none":
                raise GraderError("a stranger's code is never run as root without isolation")
            with self.lock:
                self.uid = secrets.choice(sorted(set(UIDS) - self.taken - accounts()))
                self.taken.add(self.uid)
        if self.uid is None and way != "namespaces":
            del limits["RLIMIT_NPROC"]                          # it would count everything else that this account runs
        alone = self.uid is not None or way == "namespaces"
        told = json.dumps(dict(limits=limits, memory=memory, seconds=seconds, alone=alone))
        command = [sys.executable, "-I", "-c", PROGRAM, told]
        if way == "namespaces":
            self.root = tempfile.mkdtemp(prefix="grade-")
            drop = f"--reuid={self.uid} --regid={self.uid} --clear-groups" if self.uid else ""
            ours = [] if self.uid else ["--user", "--map-root-user"]
            command = ["unshare", *ours, "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child",
                       "sh", "-c", SETUP, "sh", self.root, drop, *places(), "--", *command]
        elif way == "uid":
            options = dict(user=self.uid, group=self.uid, extra_groups=[])
        clean = dict(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/tmp", TMPDIR="/tmp", LANG="C.UTF-8",
                     OMP_NUM_THREADS="1", TRITON_INTERPRET="1")
        self.words = tempfile.TemporaryFile()                   # of the set-up; the learner's stderr is /dev/null
        try:
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words,
                                          cwd="/", env=clean, bufsize=0, start_new_session=True, **options)
        except OSError as error:
            self.clean_up()
            raise GraderError(f"the sandbox did not start: {error}") from None
        for pipe in (self.child.stdin, self.child.stdout):
            os.set_blocking(pipe.fileno(), False)
        if self.ask(source, 120) != b"ready\n":
            self.end()
            self.words.seek(0)
            said = self.words.read(10_000).decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise GraderError(f"the sandbox did not start: {said[-1]}")

    def ask(self, message, seconds):
        """Send a message and return the reply; None if there is none in time, or more than anyone may say."""
        unsent, heard, until = struct.pack(">Q", len(message)) + message, b"", time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self.child.stdout, selectors.EVENT_READ)
            ready.register(self.child.stdin, selectors.EVENT_WRITE)
            while (left := until - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    try:
                        if key.fileobj is self.child.stdin:
                            unsent = unsent[os.write(key.fd, unsent[:65536]):]
                            if not unsent:
                                ready.unregister(key.fileobj)
                            continue
                        piece = os.read(key.fd, 1 << 20)
                    except BlockingIOError:
                        continue
                    except OSError:
                        return None
                    heard += piece
                    size = struct.unpack(">Q", heard[:8])[0] if len(heard) >= 8 else 0
                    if not piece or size > runner.MOST:
                        return None
                    if len(heard) >= 8 + size > 8:
                        return heard[8:8 + size]
        return None

    def end(self):
        """Nothing of the child is alive after this (where the way allows that to be known)."""
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        for _ in range(50 if self.way == "uid" else 0):
            subprocess.run(["sh", "-c", "kill -9 -1"], user=self.uid, group=self.uid, extra_groups=[])
            if self.uid not in accounts():
                break
        os.set_blocking(self.child.stdout.fileno(), True)
        waiting = threading.Thread(target=self.child.stdout.read, daemon=True)
        waiting.start()
        waiting.join(5 if self.way != "none" else 0.1)          # the pipe ends when its last holder has ended
        self.child.stdin.close()
        self.clean_up()

    def clean_up(self):
        self.taken.discard(self.uid)
        if self.root:
            os.rmdir(self.root)


def best_way(memory):
    """(the first of WAYS that works here, found by trying, and why those before it do not)."""
    notes = []
    for way in ("namespaces", "uid"):
        try:
            if way == "uid" and os.geteuid():
                raise GraderError("only root can use a spare account")
            Sandbox(b"", way, 10, memory).end()
            return way, notes
        except (GraderError, OSError) as error:
            notes.append(f"not {way}: {error}")
    return "none", notes


def read(reply, cases):
    """(states, arrays by case) from untrusted bytes: a line of JSON, then arrays of numbers, no larger than they."""
    head, _, rest = reply.partition(b"\n")
    body, states, answers = io.BytesIO(rest), [], []
    for said in json.loads(head[:100_000])[:cases]:
        state = dict(state=said["state"] if said["state"] in SAYS or said["state"] == "ok" else "forged")
        state["line"] = said["line"] if isinstance(said.get("line"), int) and 0 <= said["line"] < 100_000 else "?"
        known = getattr(builtins, str(said.get("error")), None)
        state["error"] = known.__name__ if isinstance(known, type) and issubclass(known, BaseException) else "an error"
        arrays = []
        for _ in range(min(int(said.get("arrays", 0)), 64)):
            if body.read(6) != b"\x93NUMPY" or body.read(2) != b"\x01\x00":
                raise ValueError("not an array")
            about = ast.literal_eval(body.read(struct.unpack("<H", body.read(2))[0])[:1000].decode("latin1").strip())
            kind, shape = np.dtype(str(about["descr"])), tuple(int(n) for n in about["shape"])
            count = math.prod(shape)
            if kind.kind not in "fiub" or min(shape, default=0) < 0 or count * kind.itemsize > len(rest):
                raise ValueError("not an array of numbers")
            flat = np.frombuffer(body.read(count * kind.itemsize), kind)
            arrays.append(flat.reshape(shape, order="F" if about["fortran_order"] else "C"))
        states.append(state)
        answers.append(arrays)
    missing = cases - len(states)
    return states + [dict(state="died")] * missing, answers + [[]] * missing


def hear(reply, exercise, part, seed):
    """(state, why) of one part from the bytes that came back."""
    if reply is None:
        return "died", ""
    try:
        said = read(reply, len(exercise.cases(part, seed)))
    except Exception:                                           # whatever these bytes are, they are not an answer
        return "forged", ""
    return exercise.verdict(part, seed, *said, hidden=True)


def grade(unit, source, seed, way, seconds=10, memory=4, most=150):
    """[(exercise, part, points, earned, why)] of one submission (bytes). Raises only what is the grader's own fault."""
    rows, box, until = [], None, time.monotonic() + most
    try:
        for exercise, part in unit.parts():
            cases, state, why = exercise.cases(part, seed), "late", ""
            arrays = [x for inputs in cases for x in inputs if isinstance(x, np.ndarray)]
            places = iter(range(len(arrays)))
            told = [[dict(array=next(places), apart=x.ndim == 1 and not x.flags.c_contiguous)
                     if isinstance(x, np.ndarray) else x for x in inputs] for inputs in cases]
            question = runner.pack(dict(function=exercise.name, cases=told, arrays=len(arrays)), arrays)
            while (left := until - time.monotonic()) > 0:
                first, box = box is None, box or Sandbox(source, way, seconds, memory)
                reply = box.ask(question, min(seconds, left) + 2)
                state, why = hear(reply, exercise, part, seed)
                if reply is None or (state == "died" and not first):
                    box = box.end()                             # who was asked before may have left something behind:
                if state != "died" or first:                    # a second chance, alone in a fresh sandbox
                    break
            earned = part.points if state == "ok" else 0
            rows.append((exercise.name, part.name, part.points, earned, why or SAYS.get(state, "")))
    finally:
        if box:
            box.end()
    return rows


def results(unit, rows, spent, seed, note=""):
    """Gradescope's results.json. Without rows: valid, says what happened, and holds no mark."""
    known = dict(execution_time=int(spent), stdout_visibility="hidden", extra_data=dict(seed=seed))
    if rows is None:
        nothing = dict(name="grader error", score=0, max_score=0, status="failed", output=MISHAP)
        return dict(output=f"{MISHAP}{note and f' ({note})'}", tests=[nothing], **known)
    tests = [dict(name=f"{name}: {part}", score=earned, max_score=points, status="passed" if earned else "failed",
                  output=why, number=str(i), visibility="visible")
             for i, (name, part, points, earned, why) in enumerate(rows, 1)]
    return dict(score=sum(row[3] for row in rows), output=f"{unit.short} · {unit.title}", visibility="visible",
                tests=tests, **known)


def write(path, value):
    """All or nothing: a reader finds the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False, encoding="utf-8") as file:
        json.dump(value, file, indent=1)
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def one(unit, path, out, options):
    """Grade one file (or a folder that holds it), write its results whatever happens; returns (rows or None, note)."""
    start, rows, note = time.monotonic(), None, ""
    write(out, results(unit, None, 0, options.seed, "it did not finish"))
    try:
        file = path / unit.file if path.is_dir() else path
        if file.is_symlink() or not file.is_file() or file.stat().st_size > 1 << 20:
            why = f"{unit.file} was not handed in as a file of at most 1 MB"
            note = f"{unit.file} is a link, or larger than 1 MB" if os.path.lexists(file) else missing(unit, path)
            rows = [(exercise.name, part.name, part.points, 0, why) for exercise, part in unit.parts()]
        else:
            rows = grade(unit, file.read_bytes(), options.seed, options.isolation, options.seconds, options.memory,
                         options.most)
    except Exception as error:
        note = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    write(out, results(unit, rows, time.monotonic() - start, options.seed, note.split(":")[0]))
    return rows, note


def missing(unit, folder):
    """What an instructor wants to know of a folder without the file: which Python files it holds instead."""
    found = sorted(p.name for p in folder.iterdir() if p.suffix == ".py")
    names = "".join(c if c.isprintable() else "?" for c in ", ".join(found[:3]))[:100]
    below = "; a folder below holds one" if any(folder.glob(f"*/{unit.file}")) else ""
    return f"{unit.file} missing" + (f"; found {names}{', …' * (len(found) > 3)}" if found else "") + below


def learner(path):
    """Whose submission is this? A folder's whole name (j.smith), a file's without .py."""
    return path.name if path.is_dir() else path.stem


def folder(unit, paths, out, options):
    """Many submissions side by side: a results file each, grades.csv, and a table."""
    done = []
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "grades.csv", "w", newline="", encoding="utf-8") as file, ThreadPoolExecutor(options.jobs) as workers:
        table = csv.writer(file)
        table.writerow(["submission", "score", "of", *unit.exercises, "note"])
        marks = workers.map(lambda path: one(unit, path, out / f"{learner(path)}.json", options), paths)
        for path, (rows, note) in zip(paths, marks):
            done.append((rows, note))
            earned = ["" if rows is None else sum(row[3] for row in rows if row[0] == name) for name in unit.exercises]
            mark = "grader error" if rows is None else sum(earned)
            table.writerow([learner(path), mark, unit.points, *earned, note])
            file.flush()
            print(f"{learner(path):<40} {mark:>12} of {unit.points}  {note}".rstrip(), flush=True)
    return done


def positive(text):
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"wanted 1 or more, came {text}")
    return int(text)


def main(argv=None):
    ways = "\n".join(f"  {way:<11} {what}" for way, what in WAYS.items())
    parser = argparse.ArgumentParser(
        prog="python -m homework.grade", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"ways to isolate, best first:\n{ways}\n\nWhat no way stops: right answers of somebody else, and "
               "load on this machine until its time is over.")
    add = parser.add_argument
    add("unit", help="for example hw03")
    add("submission", type=Path, help="the learner's file, or a folder with one file or folder a learner")
    add("--out", type=Path, help="a file (default: results.json); for a class, a folder (default: results). With a "
                                 ".json a folder is one learner's, whatever it holds")
    add("--seed", type=int, help="of the hidden inputs (default: a new secret one)")
    add("--jobs", type=positive, default=os.cpu_count(), help="submissions at a time (default: %(default)s)")
    add("--seconds", type=float, default=10, help="for one part (default: %(default)s)")
    add("--most", type=float, default=150, help="seconds for one submission (default: %(default)s)")
    add("--memory", type=int, default=4, help="GiB of address space on top of torch's own (default: %(default)s)")
    add("--isolation", choices=["auto", *WAYS], default="auto", help="default: the best that works here")
    add("--require-isolation", action="store_true", help="refuse to run where the way would be 'none'")
    options = parser.parse_args(argv)
    if not hasattr(os, "fork"):
        parser.error("this grader needs a system that can fork (Linux, macOS, WSL)")
    options.seed = secrets.randbits(48) if options.seed is None else options.seed
    unit, path = find(options.unit), options.submission
    if not path.exists():
        parser.error(f"{path} is not there")
    alone = path.is_file() or (path / unit.file).is_file() or (options.out and options.out.suffix == ".json")
    out, paths = options.out or Path("results.json" if alone else "results"), []
    out = out / f"{learner(path)}.json" if alone and out.is_dir() else out
    if not alone:
        entries = sorted(p for p in path.iterdir() if not p.name.startswith("."))
        paths = [p for p in entries if p.is_dir() or p.suffix == ".py"]
        if not paths:
            parser.error(f"{path} holds no {unit.file}, and no file or folder for each learner")
        if left := [p.name for p in entries if p not in paths]:
            print(f"not graded, neither a folder nor a .py file: {', '.join(left)}", file=sys.stderr)
        for name in {p.name for p in paths if p.is_dir()} & {p.stem for p in paths if p.is_file()}:
            parser.error(f"{path} holds {name} as a file and as a folder: rename one, each gets results by its name")
    if options.isolation == "auto":
        options.isolation, notes = best_way(options.memory)
        print(*notes, sep="\n", end="\n" * bool(notes), file=sys.stderr)
    print(f"isolation: {options.isolation}: {WAYS[options.isolation]}", file=sys.stderr)
    if options.isolation == "none" and (options.require_isolation or os.geteuid() == 0):
        why = "--require-isolation was given" if os.geteuid() else "as root no stranger's code is run without one"
        parser.error(f"this system offers neither a spare account nor namespaces; {why}")
    if "triton" in unit.prelude and importlib.util.find_spec("triton") is None:
        print("there is no Triton here: submissions with Triton kernels would lose their points", file=sys.stderr)
    try:
        if not alone:
            done = folder(unit, paths, out, options)
            return 2 if any(rows is None for rows, _ in done) else 0
        rows, note = one(unit, path, out, options)
    except OSError as error:
        parser.error(f"results cannot be written to {out}: {error}")
    for name, part, points, earned, why in rows or []:
        print(f"{earned:>3}/{points:<3} {name}: {part}  {why}".rstrip())
    print(f"{sum(row[3] for row in rows)} of {unit.points}  {note}".rstrip() if rows is not None else f"{MISHAP} ({note})")
    return 0 if rows is not None else 2


if __name__ == "__main__":
    sys.exit(main())
