"""Where does a stranger's code run? In one child process a submission, as closed as can be.

`homework/runner.py` is what runs inside. Three ways to isolate it are known; `best_way` finds the
first that works here by trying it with a harmless question.
"""

import json
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
from pathlib import Path

from homework import runner, syscalls

HERE = Path(__file__).parent
PROGRAM = Path(runner.__file__).read_bytes()  # in UTF-8, whatever this terminal speaks
UIDS = range(60706, 61184)  # accounts that nobody has
LIMITS = dict(
    RLIMIT_FSIZE=64 << 20,
    RLIMIT_NPROC=16,
    RLIMIT_CORE=0,
    RLIMIT_NOFILE=256,
    RLIMIT_CPU=600,
    RLIMIT_MSGQUEUE=0,
)
CLEAN = dict(
    PATH="/usr/sbin:/usr/bin:/sbin:/bin",
    HOME="/tmp",
    TMPDIR="/tmp",
    LANG="C.UTF-8",
    OMP_NUM_THREADS="1",
    TRITON_INTERPRET="1",
)

# As root of new namespaces: a root that is read-only, 64 MB in memory at OWN, Python read-only, no
# network, no other processes. It is built over /sys, which every Linux has and nothing else lies
# in, so nothing is left on the disk; OWN is no folder of anybody's, so nothing covers anything.
# Short of memory, the kernel ends this one first; /proc is read-only, so nobody takes that back.
OWN = "/own-folder-of-a-submission"
SETUP = """
set -e; umask 022; own=/sys$1; drop=$2; shift 2
{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null || :
mount -t tmpfs -o size=1m,mode=0755 tmpfs /sys
while [ "$1" != -- ]; do
  if [ -d "$1" ]; then mkdir -p "/sys$1"; else mkdir -p "/sys${1%/*}"; : > "/sys$1"; fi
  mount --rbind "$1" "/sys$1"; mount -o remount,bind,ro,nosuid,nodev "/sys$1"; shift
done; shift
mkdir -p /sys/proc /sys/dev "$own"; mount -t proc -o ro proc /sys/proc
mount -t tmpfs -o size=64m,nr_inodes=16k,mode=1777 tmpfs "$own"
for name in null zero random urandom; do
  : > "/sys/dev/$name"; mount --bind "/dev/$name" "/sys/dev/$name"
done
mount -o remount,bind,ro /sys
exec chroot /sys setpriv $drop --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""

WAYS = {
    "namespaces": "own empty file system, network and processes; as root also a spare account; "
    "all end with the grader",
    "uid": "a spare account, whose processes are ended. OPEN: files that anyone may read or write",
    "none": "limits and a clean environment only; never as root. OPEN: whatever you may do "
    "yourself: your files and processes; where this is no Linux, the network and processes left "
    "behind",
}


class GraderError(Exception):
    """Something on this side went wrong: never the learner's loss."""


def pythons():
    """This Python, in the folder where it really is, and what links at its end lead to."""
    folder, name = os.path.split(sys.executable)
    path = os.path.join(os.path.realpath(folder), name)
    while os.path.islink(path):
        yield path
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    yield path


def places():
    """What Python and torch need, none inside another: programs and libraries, never a whole /usr,
    /opt or home, where this course may lie with its answers."""
    wanted = ["/bin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/usr/lib64", "/etc"]
    wanted += map(os.path.dirname, pythons())
    for prefix in (sys.prefix, os.path.realpath(sys.prefix), sys.base_prefix):
        wanted += [f"{prefix}/{name}" for name in ("bin", "lib", "lib64", "pyvenv.cfg")]
    wanted += [os.path.realpath(path) for path in wanted]
    found = []
    for place in sorted({os.path.normpath(path) for path in wanted}, key=Path):
        inside = any(Path(place).is_relative_to(other) for other in found)
        if os.path.exists(place) and not inside:
            found.append(place)
    return found


def in_namespaces(command, uid=None):
    """The command behind SETUP; as root under a spare account."""
    drop = f"--reuid={uid} --regid={uid} --clear-groups" if uid else ""
    ours = [] if uid else ["--user", "--map-root-user"]
    own = ["--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child"]
    script = ["sh", "-c", SETUP, "sh", OWN, drop, *places(), "--"]
    return ["unshare", *ours, *own, *script, *command]


def accounts():
    """The account of every process that runs now."""
    found = set()
    for pid in os.listdir("/proc") if os.path.isdir("/proc") else []:
        try:
            found.add(os.stat(f"/proc/{pid}").st_uid if pid.isdigit() else None)
        except OSError:
            pass  # it has ended meanwhile
    return found


def run_as(uid, *command):
    """Run a short command of our own as a spare account; whether it says yes, within a minute."""
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    account = dict(user=uid, group=uid, extra_groups=[])
    try:
        return subprocess.run(command, cwd="/", timeout=60, **quiet, **account).returncode == 0
    except subprocess.TimeoutExpired:
        return False


class Sandbox:
    """One child that answers questions about one submission. `way` is a key of WAYS."""

    taken, lock = set(), threading.Lock()
    running, stopped = set(), False

    def __init__(self, source, way, seconds, memory, closed=()):
        self.uid, self.way = None, way
        if self.stopped:
            raise GraderError("the grader was stopped")
        self.take_account()
        self.words = tempfile.TemporaryFile()  # of the set-up; the learner's go to /dev/null
        try:
            self.start(seconds, memory, [HERE, *closed])
        except OSError as error:
            self.taken.discard(self.uid)
            raise GraderError(f"the sandbox did not start: {error}") from None
        if self.ask(source, 120) != b"ready\n":
            self.end()
            raise GraderError(f"the sandbox did not start: {self.last_words()}")

    @classmethod
    def end_all(cls):
        """End what runs, and start nothing more: whoever grades has had enough."""
        cls.stopped = True
        for box in list(cls.running):
            box.kill()

    def take_account(self):
        """A root's submission gets an account that nobody has."""
        if os.geteuid():
            return
        if self.way == "none":
            raise GraderError("a stranger's code is never run as root without isolation")
        with self.lock:
            self.uid = secrets.choice(sorted(set(UIDS) - self.taken - accounts()))
            self.taken.add(self.uid)

    def start(self, seconds, memory, closed):
        alone = self.uid is not None or self.way == "namespaces"
        limits = dict(LIMITS)
        if not alone:
            del limits["RLIMIT_NPROC"]  # it would count everything else that this account runs
        told = dict(limits=limits, memory=memory, seconds=seconds, alone=alone)
        told["filter"] = syscalls.filter_program().hex()
        told["keyctl"] = syscalls.number("keyctl")
        told["closed"] = [] if self.way == "none" else list(map(str, closed))
        command = [next(pythons()), "-I", "-c", PROGRAM, json.dumps(told)]
        options, env = {}, dict(CLEAN)
        if self.way == "namespaces":
            command = in_namespaces(command, self.uid)
            env |= dict(HOME=OWN, TMPDIR=OWN)
        elif self.way == "uid":
            options = dict(user=self.uid, group=self.uid, extra_groups=[])
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, bufsize=0)
        session = dict(cwd="/", env=env, start_new_session=True)
        self.child = subprocess.Popen(command, **pipes, **session, **options)
        self.running.add(self)
        if self.stopped:  # meanwhile
            self.kill()
        if self.way == "uid":  # before it has the source; a root that may set it for good does so
            Path(f"/proc/{self.child.pid}/oom_score_adj").write_text("1000")
        for pipe in (self.child.stdin, self.child.stdout):
            os.set_blocking(pipe.fileno(), False)

    def ask(self, message, seconds):
        """Send a message, return the reply: nothing (b"") if it is late, None if it is broken."""
        unsent, heard = struct.pack(">Q", len(message)) + message, b""
        until = time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(self.child.stdout, selectors.EVENT_READ)
            ready.register(self.child.stdin, selectors.EVENT_WRITE)
            while (left := until - time.monotonic()) > 0:
                for key, _ in ready.select(left):
                    try:
                        if key.fileobj is self.child.stdin:
                            unsent = unsent[os.write(key.fd, unsent[:65536]) :]
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
                        return heard[8 : 8 + size]
        return b""

    def last_words(self):
        self.words.seek(0)
        said = self.words.read(10_000).decode("utf-8", "replace").strip().splitlines()
        return said[-1] if said else "it said nothing"

    def kill(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has ended

    def end(self):
        """Nothing of the child is alive after this (where the way allows that to be known)."""
        self.kill()
        self.child.wait()
        self.running.discard(self)
        if self.way == "uid":
            self.end_account()

        # The pipe ends when its last holder has ended.
        os.set_blocking(self.child.stdout.fileno(), True)
        waiting = threading.Thread(target=self.child.stdout.read, daemon=True)
        waiting.start()
        waiting.join(5 if self.way != "none" else 0.1)
        self.child.stdin.close()
        self.taken.discard(self.uid)

    def end_account(self):
        """End everything that runs under the spare account, then delete what it left in /tmp."""
        for _ in range(50):
            run_as(self.uid, "sh", "-c", "kill -9 -1")
            if self.uid not in accounts():
                break
        run_as(self.uid, "sh", "-c", runner.SWEEP, "sh", CLEAN["TMPDIR"])


def check(way, memory, closed=()):
    """GraderError, in a sentence, unless this way works here and closes these folders as well."""
    if way == "uid" and os.geteuid():
        raise GraderError("only root can use a spare account")
    box = Sandbox(b"", way, 10, memory, closed)
    try:
        question = runner.pack(dict(function="nothing", cases=[[]], arrays=0))
        if not (box.ask(question, 30) or b"").startswith(b'[{"state": "missing"'):
            raise GraderError("a harmless question was not answered")
    finally:
        box.end()


def best_way(memory, closed=()):
    """(the first of WAYS that works here, found by trying, and why those before it do not)."""
    notes = []
    for way in ("namespaces", "uid"):
        try:
            check(way, memory, closed)
            return way, notes
        except (GraderError, OSError) as error:
            notes.append(f"not {way}: {error}")
    return "none", notes
