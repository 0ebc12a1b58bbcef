"""Where does a stranger's code run? In one child process a submission, as closed as the system
allows.

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

from homework import runner

HERE = Path(__file__).parent
PROGRAM = Path(runner.__file__).read_text(encoding="utf-8")
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

# As root of new namespaces: a root that is read-only, 64 MB in memory at /tmp, Python read-only,
# no network, no other processes, nothing of System V that would stay when a process has ended.
# Short of memory, the kernel ends this one first; /proc is read-only, so nobody takes that back.
SETUP = """
set -e; umask 022; root=$1; drop=$2; shift 2
{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null || :
for name in shmmni msgmni; do { echo 0 > /proc/sys/kernel/$name; } 2>/dev/null || :; done
{ echo 0 0 0 0 > /proc/sys/kernel/sem; } 2>/dev/null || :
mount -t tmpfs -o size=1m,mode=0755 tmpfs "$root"
while [ "$1" != -- ]; do
  mkdir -p "$root$1"; mount --rbind "$1" "$root$1"
  mount -o remount,bind,ro,nosuid,nodev "$root$1"; shift
done; shift
mkdir -p "$root/proc" "$root/dev" "$root/tmp"; mount -t proc -o ro proc "$root/proc"
mount -t tmpfs -o size=64m,nr_inodes=16k,mode=1777 tmpfs "$root/tmp"
for name in null zero random urandom; do
  : > "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"
done
mount -o remount,bind,ro "$root"
chroot "$root" setpriv $drop --bounding-set=-all --inh-caps=-all --no-new-privs "$@"; exit $?
"""

WAYS = {
    "namespaces": "own empty file system, network and processes; as root also a spare account; "
    "all end with the grader",
    "uid": "a spare account, whose processes are ended. OPEN: the network; files that anyone may "
    "read or write",
    "none": "limits and a clean environment only; never as root. OPEN: whatever you may do "
    "yourself: your files and processes, the network, processes left behind",
}


class GraderError(Exception):
    """Something on this side went wrong: never the learner's loss."""


def places():
    """The folders that Python and torch need, none inside another."""
    python = os.path.dirname(os.path.realpath(sys.executable))
    wanted = ["/usr", "/bin", "/lib", "/lib64", "/etc", sys.prefix, sys.base_prefix, python]
    found = []
    for place in sorted({*wanted, *map(os.path.realpath, wanted)}):
        inside = any(place.startswith(other + "/") for other in found)
        if os.path.isdir(place) and not inside:
            found.append(place)
    return found


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

    def __init__(self, source, way, seconds, memory):
        self.uid, self.way, self.root = None, way, None
        self.take_account()
        self.words = tempfile.TemporaryFile()  # of the set-up; the learner's go to /dev/null
        try:
            self.start(seconds, memory)
        except OSError as error:
            self.clean_up()
            raise GraderError(f"the sandbox did not start: {error}") from None
        if self.ask(source, 120) != b"ready\n":
            self.end()
            raise GraderError(f"the sandbox did not start: {self.last_words()}")

    def take_account(self):
        """A root's submission gets an account that nobody has."""
        if os.geteuid():
            return
        if self.way == "none":
            raise GraderError("a stranger's code is never run as root without isolation")
        with self.lock:
            self.uid = secrets.choice(sorted(set(UIDS) - self.taken - accounts()))
            self.taken.add(self.uid)

    def start(self, seconds, memory):
        alone = self.uid is not None or self.way == "namespaces"
        limits = dict(LIMITS)
        if not alone:
            del limits["RLIMIT_NPROC"]  # it would count everything else that this account runs
        told = dict(limits=limits, memory=memory, seconds=seconds, alone=alone)
        command = [sys.executable, "-I", "-c", PROGRAM, json.dumps(told)]
        options = {}
        if self.way == "namespaces":
            command = self.in_namespaces(command)
        elif self.way == "uid":
            options = dict(user=self.uid, group=self.uid, extra_groups=[])
        pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.words, bufsize=0)
        session = dict(cwd="/", env=CLEAN, start_new_session=True)
        self.child = subprocess.Popen(command, **pipes, **session, **options)
        if self.way == "uid":  # before it has the source; a root that may set it for good does so
            Path(f"/proc/{self.child.pid}/oom_score_adj").write_text("1000")
        for pipe in (self.child.stdin, self.child.stdout):
            os.set_blocking(pipe.fileno(), False)

    def in_namespaces(self, command):
        self.root = tempfile.mkdtemp(prefix="grade-")
        drop = f"--reuid={self.uid} --regid={self.uid} --clear-groups" if self.uid else ""
        ours = [] if self.uid else ["--user", "--map-root-user"]
        own = ["--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child"]
        script = ["sh", "-c", SETUP, "sh", self.root, drop, *places(), "--"]
        return ["unshare", *ours, *own, *script, *command]

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

    def end(self):
        """Nothing of the child is alive after this (where the way allows that to be known)."""
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        if self.way == "uid":
            self.end_account()

        # The pipe ends when its last holder has ended.
        os.set_blocking(self.child.stdout.fileno(), True)
        waiting = threading.Thread(target=self.child.stdout.read, daemon=True)
        waiting.start()
        waiting.join(5 if self.way != "none" else 0.1)
        self.child.stdin.close()
        self.clean_up()

    def end_account(self):
        """End everything that runs under the spare account, then delete what it left in /tmp."""
        for _ in range(50):
            run_as(self.uid, "sh", "-c", "kill -9 -1")
            if self.uid not in accounts():
                break
        run_as(self.uid, "sh", "-c", runner.SWEEP, "sh", CLEAN["TMPDIR"])

    def clean_up(self):
        self.taken.discard(self.uid)
        if self.root:
            os.rmdir(self.root)


def open_to_others(folders):
    """The first of these folders that a spare account can enter, or None."""
    uid = secrets.choice(sorted(set(UIDS) - accounts()))
    for folder in folders:
        if run_as(uid, "sh", "-c", 'test -x "$1"', "sh", str(folder)):
            return folder
    return None


def check(way, memory, closed=()):
    """GraderError, in a sentence, unless this way works here and closes these folders too."""
    if way == "uid" and os.geteuid():
        raise GraderError("only root can use a spare account")
    if way == "uid" and (folder := open_to_others([HERE, *closed])):
        raise GraderError(
            f"the spare account, and so a submission, can enter {folder}: chmod 700 {folder}"
        )
    box = Sandbox(b"", way, 10, memory)
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
