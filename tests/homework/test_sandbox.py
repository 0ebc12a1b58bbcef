"""Does the sandbox hold by itself, whatever runs in it and however it is made?"""

import errno
import json
import os
import platform
import re
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from homework import grade, runner, sandbox, syscalls
from tests.homework.attacks import INSIDE
from tests.homework.classroom import HOMEWORK, HONEST, NOBODY, UNIT, WHOLE, attacked, readable

CURIOUS = """
import ctypes, mmap, os, socket, tempfile, threading
import torch

libc = ctypes.CDLL(None, use_errno=True)
made, mine = 0o1600, 77

def leave():
    os.chdir(tempfile.gettempdir())
    os.makedirs("closed/inside")
    os.chmod("closed/inside", 0), os.chmod("closed", 0)
    for _ in range(3000):
        os.mkdir("deep")
        os.chdir("deep")
    libc.shmget(mine, 4096, made), libc.msgget(mine, made), libc.semget(mine, 1, made)
    return torch.tensor(1)

def look():
    kept = [libc.shmget(mine, 0, 0), libc.msgget(mine, 0), libc.semget(mine, 0, 0)]
    return torch.tensor([len(os.listdir(tempfile.gettempdir())), *[number >= 0 for number in kept]])

def write_anywhere():
    written = []
    for folder in ("/", "/dev", "/usr", tempfile.gettempdir()):
        try:
            open(folder + "/mine", "w").close()
            written.append(1)
        except OSError:
            written.append(0)
    return torch.tensor(written)

def hoard():
    got = 0
    while got < 64 and libc.shmget(0, 16 << 20, made) >= 0:
        got += 16
    return torch.tensor(got)

def outlive():
    try:
        open("/proc/self/oom_score_adj", "w").write("0")
    except OSError:
        pass
    return torch.tensor(int(open("/proc/self/oom_score_adj").read()))

def crowd():
    children = 0
    for start in (os.fork, lambda: os.posix_spawn("/bin/true", ["true"], {})):
        try:
            if start() == 0:
                os._exit(0)
            children += 1
        except OSError:
            pass
    return torch.tensor(children)

def sockets():
    made = 0
    for make in (socket.socket, socket.socketpair):
        try:
            make()
            made += 1
        except OSError:
            pass
    return torch.tensor(made)

def threads():
    done = []
    several = [threading.Thread(target=done.append, args=(i,)) for i in range(3)]
    [t.start() for t in several], [t.join() for t in several]
    return torch.tensor(sorted(done))

def calls(numbers):
    answers = []
    for number in numbers.tolist():
        ctypes.set_errno(0)
        result = libc.syscall(int(number), 0, 0, 0, 0, 0, 0)
        answers.append(ctypes.get_errno() if result == -1 else 0)
    return torch.tensor(answers)

def mebibytes():
    held = []
    while len(held) < 4096:
        try:
            held.append(mmap.mmap(-1, 64 << 20))
        except (OSError, MemoryError):
            break
    return torch.tensor(64 * len(held))
"""


HEADERS = {
    "x86_64": ["/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"],
    "aarch64": ["/usr/include/asm-generic/unistd.h"],
}


@pytest.fixture(scope="module")
def ask(way):
    """Call a function of CURIOUS in one sandbox and return the array that it gave."""
    box = sandbox.Sandbox(CURIOUS.encode(), way, 20, 1)

    def call(name, *arrays):
        case = [dict(array=i, apart=False) for i in range(len(arrays))]
        asked = dict(function=name, cases=[case], arrays=len(arrays))
        reply = box.ask(runner.pack(asked, arrays), 30)
        (state,), (arrays,) = grade.read(reply, 1)
        assert state["state"] == "ok", (name, state)
        return arrays[0].tolist()

    yield call
    box.end()


def test_a_part_finds_nothing_of_the_part_before(ask):
    """Closed folders, a tree too deep for a path, memory and queues of System V."""
    ask("leave")
    assert ask("look") == [0, 0, 0, 0]


def test_what_is_left_behind_is_deleted_and_nothing_that_a_link_leads_to_is_touched(tmp_path):
    """Closed folders and links, as whoever swept them: chmod -R follows a link that it is given."""
    left, kept = tmp_path / "left", tmp_path / "kept"
    for place in (left / "shut" / "inside", kept / "inside"):
        place.mkdir(parents=True)
    (left / "link").symlink_to(kept)
    (left / "shut" / "inside" / "link").symlink_to(kept)
    for place in (left / "shut" / "inside", left / "shut", kept / "inside"):
        place.chmod(0)
    subprocess.run(["sh", "-c", runner.SWEEP, "sh", left], check=True)
    assert os.listdir(left) == [] and os.listdir(kept) == ["inside"]
    assert stat.S_IMODE((kept / "inside").stat().st_mode) == 0
    (kept / "inside").chmod(0o700)


def test_only_one_folder_can_be_written(ask, way):
    if way != "namespaces":
        pytest.skip("an own file system needs namespaces")
    assert ask("write_anywhere") == [0, 0, 0, 1]


def test_no_memory_outlives_its_process(ask):
    assert ask("hoard") == 0


def test_a_submission_is_one_process_and_so_has_one_limit_of_memory(ask):
    """No second process, in whatever way; threads are as good as ever."""
    assert ask("crowd") == ask("sockets") == 0
    assert ask("threads") == [0, 1, 2]
    assert ask("mebibytes") <= 1024 + 64


def test_the_kernel_answers_no_call_that_computing_does_not_need(ask):
    """fork and clone would start somebody, so "crowd" asks for these."""
    names = [name for name in syscalls.REFUSED if name not in ("fork", "vfork")]
    numbers = [syscalls.number(name) for name in names]
    known = {n: number for n, number in zip(names, numbers, strict=True) if number is not None}
    answers = ask("calls", np.array([*known.values()]))
    assert dict(zip(known, answers, strict=True)) == dict.fromkeys(known, errno.EPERM)
    newer = dict(pidfd_open=434, io_uring_setup=425, memfd_secret=447, landlock=444, one_day=900)
    assert ask("calls", np.array([*newer.values()])) == [errno.ENOSYS] * len(newer)


@pytest.mark.parametrize("machine, header", HEADERS.items())
def test_each_refused_call_has_its_number(machine, header):
    """Read from the kernel's own headers, where they are installed."""
    if not (found := [Path(p) for p in header if Path(p).is_file()]):
        pytest.skip(f"no headers of {machine} here")
    lines = re.findall(r"#define __NR3?_?(\w+)\s+(\d+)", found[0].read_text())
    theirs = {name: int(number) for name, number in lines}
    for name in syscalls.REFUSED:
        assert syscalls.number(name, machine) == theirs.get(name), name
    assert syscalls.CLONE[[*syscalls.KINDS].index(machine)] == theirs["clone"]


def test_a_processor_whose_calls_nobody_listed_is_refused_in_words(monkeypatch, way):
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(sandbox.GraderError, match="no filter of system calls"):
        sandbox.Sandbox(b"", way, 1, 4).end()


def test_what_the_kernel_ends_first_cannot_change_its_mind(ask, way):
    if way != "namespaces":
        pytest.skip("/proc is read-only in a file system of its own")
    assert ask("outlive") == 1000


@pytest.mark.parametrize("memory", [0, 9_000_000_000])
def test_a_limit_that_cannot_be_set_is_no_sandbox(memory, way):
    with pytest.raises(sandbox.GraderError, match="memory|RLIMIT_AS"):
        sandbox.Sandbox(b"", way, 1, memory).end()


def test_a_sandbox_says_which_limit_it_lacks(monkeypatch, way):
    monkeypatch.setitem(sandbox.LIMITS, "RLIMIT_NOFILE", -5)
    with pytest.raises(sandbox.GraderError, match="RLIMIT_NOFILE could not be set to -5"):
        sandbox.Sandbox(b"", way, 1, 4).end()


def test_a_sandbox_that_answers_nothing_is_not_taken(monkeypatch, way):
    monkeypatch.setitem(sandbox.LIMITS, "RLIMIT_NPROC", 1)  # it starts, and no part can
    with pytest.raises(sandbox.GraderError, match="not answered"):
        sandbox.check(way, 4)


# ------------------------------------------------------------------ wherever the course is

# Lays homework and .venv below a place, in mounts of its own; nothing of the machine is changed.
# What lies in the place's first folder is covered, so this Python is put back there.
LAID = """
set -e; cover=$1; place=$2; homework=$3; venv=$4; base=$5; shift 5
mount -t tmpfs tmpfs /sys
mkdir /sys/homework /sys/venv /sys/base
mount --bind "$homework" /sys/homework
mount --bind "$venv" /sys/venv
mount --bind "$base" /sys/base
mount -t tmpfs tmpfs "$cover"
mkdir -p "$place/homework" "$place/venv"
case $base/ in "$cover"/*) mkdir -p "$base"; mount --bind /sys/base "$base";; esac
mount --bind /sys/homework "$place/homework"
mount --bind /sys/venv "$place/venv"
ln -s venv "$place/link"; ln -s "$place/link" "$place/.venv"
cd "$place"; exec "$@"
"""
WHAT_IS_SEEN = """
import os, subprocess, sys
from homework import sandbox
inside = "import numpy, os, sys; print(sys.prefix, *map(os.listdir, sys.argv[1:]), sep='|')"
uid = int(sys.argv[1]) or None  # asked here, everybody would seem to be root
command = [next(sandbox.pythons()), "-I", "-c", inside, os.getcwd(), sandbox.OWN]
sys.exit(subprocess.run(sandbox.in_namespaces(command, uid), env=sandbox.CLEAN, cwd="/").returncode)
"""


@pytest.mark.parametrize(
    "cover, name, venv",
    [
        ("/tmp", "a/course", "venv"),
        ("/tmp", "a/course", ".venv"),
        ("/usr/local", "course", ".venv"),
        ("/opt", "course", ".venv"),
        ("/home", "anna/course", ".venv"),
        ("/tmp", "ein Äpfelchen", ".venv"),
    ],
)
def test_the_sandbox_starts_wherever_the_course_and_its_python_are(cover, name, venv, way):
    """The folder itself, and a link to a link to it; of the course, only Python is inside."""
    if way != "namespaces":
        pytest.skip("an own file system needs namespaces")
    place = f"{cover}/{name}"
    folders = [HOMEWORK, Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve()]
    ours = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    script = ["sh", "-c", LAID, "sh", cover, place, *folders]
    python = [f"{place}/{venv}/bin/python", "-c", WHAT_IS_SEEN, 0 if ours else 60800]
    command = ["unshare", "--mount", *ours, *script, *python]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    prefix, beside, own = (done.stdout or pytest.fail(done.stderr)).strip().split("|")
    assert prefix == f"{place}/venv" and "venv" in beside and "homework" not in beside
    assert own == "[]"


# ------------------------------------------------------------- each way, whoever runs the grader

HARD = {
    "ring_counter_example": "forged results and os._exit",
    "skip_heads": "a fork bomb",
    "svformer": "the judge's process killed",
    "critical_point": "a loop that resets timers",
    "windowed_bytes": "a full disk",
    "svformer_step": "folders that nobody can sweep",
    "grouped_attention": "links that lead everywhere",
    "cache_bytes": "a pair of sockets",
    "owners": "rings, faults and descriptors of the kernel",
}


@pytest.fixture
def course(as_root):
    """A copy of homework/ in a folder that other accounts may enter: pytest's own are closed."""
    quiet = dict(stderr=subprocess.DEVNULL)
    if not shutil.which("unshare") or subprocess.run(readable(["true"]), **quiet).returncode:
        pytest.skip("needs mount namespaces, to play both roles")
    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o777)
        ignore = shutil.ignore_patterns("__pycache__", "solutions", "*.mine-*")
        shutil.copytree(HOMEWORK, Path(root, "course", "homework"), ignore=ignore)
        Path(root, "course").chmod(0o755)
        yield Path(root)


def run(course, account, *arguments):
    command = [sys.executable, "-m", "homework.grade", "hw03", *map(str, arguments)]
    # The checkout that this Python is installed for is closed: its answers would be open to uid.
    where = "import importlib.util as u; print(*u.find_spec('homework').submodule_search_locations)"
    found = subprocess.run([sys.executable, "-I", "-c", where], capture_output=True, text=True)
    closing = 'test -z "$0" || mount -t tmpfs -o mode=700 tmpfs "$0"; exec "$@"'
    closed = ["unshare", "--mount", "sh", "-c", closing, found.stdout.strip()]
    command = [*closed, *readable([*account, *command])]
    path = os.pathsep.join([str(course / "course"), os.environ.get("PYTHONPATH", "")])
    how = dict(cwd=course / "course", env=dict(os.environ, PYTHONPATH=path))
    return subprocess.run(command, capture_output=True, text=True, **how)


def words(path):
    try:
        return path.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


def of_spare_accounts():
    """What spare accounts own in /tmp, and of System V."""
    files = [path for path in Path("/tmp").iterdir() if path.lstat().st_uid in sandbox.UIDS]
    rows = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    return files + [row for row in rows if {int(n) for n in row.split()[7:11]} & {*sandbox.UIDS}]


@pytest.mark.root
@pytest.mark.parametrize(
    "played, account", [("uid", []), ("namespaces", NOBODY), ("namespaces", [])]
)
def test_each_way_of_isolation_holds_by_itself(course, played, account):
    """A spare account without namespaces (as in a container), a user's own namespaces without
    root, and root's."""
    attacks = {n: a for n, a in HARD.items() if played == "namespaces" or a != "a full disk"}
    file = course / UNIT.file
    file.write_text(attacked(**{name: INSIDE[attack] for name, attack in attacks.items()}))
    if played == "uid":
        (course / "course").chmod(0o700)
    mark = f"1.{secrets.randbits(40)}1"  # seconds for a part, and a name for all that it starts
    limits = ["--seconds", mark, "--isolation", played]
    done = run(course, account, file, "--out", course / "results.json", *limits)
    assert f"isolation: {played}" in done.stderr, done
    result = json.loads((course / "results.json").read_text())
    lost = sum(WHOLE.exercises[name].points for name in attacks)
    assert result["score"] == WHOLE.points - lost, done.stdout
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if mark.encode() in words(p)]
    assert not left, "something outlived the grader"
    assert not of_spare_accounts()


@pytest.mark.root
def test_a_spare_account_is_refused_where_it_could_read_the_answers(course):
    (course / "handed" / "anna").mkdir(parents=True)
    (course / "handed" / "anna" / UNIT.file).write_text(HONEST)
    (course / "handed").chmod(0o755)
    uid = ["--isolation", "uid", "--out", course / "out"]

    # The grader's own folder is open, then the class folder; auto does not take this way either.
    for closed, open_one in [("handed", "course/homework"), ("course", "handed")]:
        (course / "course").chmod(0o700 if closed == "course" else 0o755)
        done = run(course, [], course / "handed", *uid)
        folder = course / open_one
        assert done.returncode == 2 and f"can enter {folder}: chmod 700" in done.stderr, done
        assert not (course / "out").exists()

    (course / "handed").chmod(0o700)
    done = run(course, [], course / "handed", *uid)
    assert done.returncode == 0 and "100 of 100" in done.stdout, done


def test_answers_among_pythons_own_libraries_are_refused(way, monkeypatch):
    """A checkout may lie where every way has to let a submission in."""
    libraries = Path(sys.prefix, "lib")
    monkeypatch.setattr(sandbox, "HERE", libraries)
    with pytest.raises(sandbox.GraderError, match=f"a submission can enter {libraries}: "):
        sandbox.check(way, 4)


def test_an_installed_copy_of_the_answers_is_refused():
    """Here this process plays the sandbox: its Python can import the course."""
    with pytest.raises(SystemExit, match=f"can enter {HOMEWORK}: "):
        runner.refuse_if_open([])
