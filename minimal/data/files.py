"""Where do files live, and how are they written? Atomic writes, locks, and caches made once.

Whatever is killed, and whoever runs at the same time: a reader meets a whole file or none.
"""

import contextlib
import errno
import functools
import hashlib
import json
import os
import re
import shutil
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

CHECKOUT = Path(__file__).resolve().parents[2]  # the repository, where there is one

CACHE_FORMAT = 1  # raise it when a cached file changes its meaning: old caches are then left alone

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}

SUMS = "SHA256SUMS"  # in every cached folder; `sha256sum -c SHA256SUMS` reads it, too

PATIENCE = 10  # seconds that a process waits for a lock before it says so


class DataError(ValueError):
    """One sentence for the person at the keyboard: what was wanted, what we got, what to do."""


class Busy(DataError):
    """Another process holds the lock."""


# ---- places -------------------------------------------------------------------------------------
def in_checkout():
    """Does this package stand in the course's repository? Else it was installed somewhere."""
    return (CHECKOUT / "pyproject.toml").exists()


def runs_folder():
    """$MINIMAL_RUNS; else `runs` in the checkout, or in the current folder without a checkout."""
    home = CHECKOUT if in_checkout() else Path.cwd()
    return Path(os.environ.get("MINIMAL_RUNS") or home / "runs")


def data_folder():
    """Prepared text: corpora, tokenizers, packed tokens."""
    return runs_folder() / "data" / f"format-{CACHE_FORMAT}"


def digest(*parts):
    """A short name for these contents, equal on every machine."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def slug(name):
    """The name as a folder may bear it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# ---- atomic writes ------------------------------------------------------------------------------
@contextlib.contextmanager
def writing(path, kinds=None):
    """Say in one sentence why `path` cannot be written; `kinds` are the errno numbers meant."""
    try:
        yield
    except OSError as error:
        if kinds is not None and error.errno not in kinds:
            raise
        raise DataError(
            f"cannot write {path} ({error.strerror or error}): make room, or choose a folder that "
            "you may write to (--out; for what is cached, set MINIMAL_RUNS)"
        ) from error


FILE_KINDS = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def first_free(paths):
    """The first of these at which nothing lies, not even a link that leads nowhere."""
    return next(path for path in paths if not os.path.lexists(path))


def kind_of(path, look=os.lstat):
    """What lies at `path` itself, in two words; "" where there is nothing."""
    try:
        mode = look(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return next((words for of_kind, words in FILE_KINDS if of_kind(mode)), "a device")


def target(path, ours=None):
    """The file that a write to `path` may make or replace. Anything else there is refused.

    It may be nothing yet, an empty file, or a regular file: one for which `ours(path)` is true,
    where that is given. A link to such a file stays a link, and the file that it names is written,
    as the shell's > does it. A folder, a device, a pipe, a socket, a link to one of them or to
    nowhere, and what this command prints into are never touched; neither is a file that is
    protected against writing, which a rename alone would not mind.
    """
    path = Path(path)
    file = Path(os.path.realpath(path)) if path.is_symlink() else path
    kind = kind_of(path)
    if kind == "a link":
        kind = "a link to " + (kind_of(path, os.stat) or "nowhere")
    if str(path) == "-" or is_printed_to(path):
        kind = "where this command prints"
    if kind not in ("", "a file", "a link to a file"):
        raise DataError(
            f"wanted a file to write, got {path}, which is {kind}: it is left as it is; name "
            "another file"
        )
    if kind and not may(file, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    if kind and ours and file.stat().st_size and not ours(file):
        raise DataError(
            f"{path} holds something that this command did not write: it is left as it is; name "
            "another file"
        )
    return file


def may(path, how):
    """May this process do that, as whom it acts now?"""
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def is_printed_to(path):
    """Is this our standard output or error under another name, /dev/stdout for one?"""
    for stream in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(stream), os.stat(path)):
                return True
    return False


def check_target(path, ours=None):
    """Say before any work is done that its result could not be written to `path`."""
    with writing(path):
        file = target(path, ours)
        folder = next(place for place in file.absolute().parents if place.exists())
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        if not may(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


@contextlib.contextmanager
def whole(path, part=None, ours=None):
    """Whole or not at all (an atomic write): fill `part`, and one rename makes it `path`.

    What may be replaced says `target`. It is on the disk before it is renamed, so after a power
    cut, too, `path` is old or new, and never half of either. Whoever holds a lock may give `part`
    a fixed name: what a kill left there is then replaced. All others get a file of their own.
    """
    file = target(path, ours)
    file.parent.mkdir(parents=True, exist_ok=True)
    if part is None:
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        remove(part)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    else:
        remove(part)
    try:
        yield part
        to_disk(part)
        if file.exists():
            shutil.copymode(file, part)
        os.replace(part, file)
        to_disk(file.parent)
    finally:
        remove(part)


def to_disk(path):
    """Wait until a file, or the names in a folder, would survive a power cut."""
    if path.is_dir() and os.name == "nt":  # Windows does not open folders
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def remove(path):
    """Delete a file of ours, if it is there. What is no regular file is not ours."""
    kind = kind_of(path)
    if kind not in ("", "a file"):
        raise DataError(f"wanted to replace {path}, which is {kind}, no file of ours: move it away")
    path.unlink(missing_ok=True)


def remove_folder(path):
    """Delete a folder that we have made, if it is there; never one that a link leads to."""
    if kind_of(path) == "a folder":
        shutil.rmtree(path)
    else:
        remove(path)


def write_whole(path, content, ours=None):
    """Write a text, or bytes, whole or not at all."""
    content = content.encode() if isinstance(content, str) else content
    with writing(path), whole(path, ours=ours) as part:
        part.write_bytes(content)


# ---- locks --------------------------------------------------------------------------------------
@contextlib.contextmanager
def locked(path, wait=True):
    """One writer at a time: a lock file beside `path`, which the system releases after a kill, too.

    With wait=False a lock that another process holds raises Busy.
    """
    path = Path(path)
    name = path.with_name(path.name + ".lock")
    with writing(name):  # FileLock would try for ever
        path.parent.mkdir(parents=True, exist_ok=True)
        target(name).open("a").close()
    lock = FileLock(name)
    try:
        lock.acquire(timeout=PATIENCE if wait else 0)
    except Timeout:
        if not wait:
            raise Busy(f"another process holds {name}: wait for it, or end it") from None
        print(f"waiting for {name}, which another process holds", file=sys.stderr, flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


# ---- caches -------------------------------------------------------------------------------------
def once(path, make):
    """`path`, made at most once: `make(part)` fills a file or folder, which is then renamed.

    Of two processes the second waits and reads. What is in a folder is checked against its sums
    whenever it is opened; a damaged one is made again.
    """
    if path.exists() and not damage(path):
        return path
    with writing(path, UNWRITABLE), locked(path):
        found = damage(path)
        if found:
            print(f"{path} is damaged ({found}): it is made again", file=sys.stderr, flush=True)
        if found or not path.exists():
            cache(path, make)
    return path


def cache(path, make):
    """Make a file or a folder under another name, and give it its own when it is whole."""
    part = path.with_name(path.name + ".part")
    remove_folder(part)  # what a kill left
    try:
        make(part)
        write_sums(part)
        for file in [*part.rglob("*"), part]:
            to_disk(file)
        remove_folder(path)  # the damaged one: a folder cannot be renamed onto another
        os.replace(part, path)
        to_disk(path.parent)
    finally:
        remove_folder(part)


def write_sums(folder):
    """The SHA-256 of every file of a folder, in the format of sha256sum."""
    if not folder.is_dir():
        return
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    lines = [f"{sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damage(folder):
    """What is wrong with a cached folder, in a few words, or None. One without sums is trusted."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return f"{SUMS} is no text"
    except OSError:
        return None
    for line in lines:
        expected, _, name = line.partition("  ")
        path = folder / name
        if not path.is_file():
            return f"{name or SUMS} is missing"
        seen = path.stat()
        if same_sum(path, expected, seen.st_size, seen.st_mtime_ns) is False:
            return f"{name} is not what was written"
    return None


@functools.lru_cache(maxsize=1024)
def same_sum(path, expected, size, changed):
    """Is this file what was written? Asked once a process, as long as size and time stay."""
    return sha256(path) == expected


# ---- logs ---------------------------------------------------------------------------------------
def read_lines(path):
    """The lines of a log of JSON objects; one that was cut by a kill, or is none, is left out."""
    if not Path(path).is_file():
        return []
    rows = []
    for line in Path(path).read_text(encoding="utf-8", errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return [row for row in rows if isinstance(row, dict)]


def append_lines(path, rows):
    """Append rows to such a log in one write, on a new line whatever a killed writer left."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    with writing(path):
        file = target(path)
    with locked(path), writing(path), open(file, "ab+") as log:
        if log.tell():
            log.seek(-1, os.SEEK_END)
            if log.read(1) != b"\n":
                lines = "\n" + lines
        log.write(lines.encode())


# ---- what is left out ---------------------------------------------------------------------------
class Skip(Exception):
    """This one item cannot be used; the sentence says why."""


def need(true, why):
    if not true:
        raise Skip(why)


@dataclass
class Report:
    """What was skipped or changed, one sentence an item: nothing is dropped in silence."""

    skipped: dict = field(default_factory=dict)  # id -> why
    changed: dict = field(default_factory=dict)  # id -> what was done to an item that stays

    def change(self, id, what):
        self.changed[id] = f"{self.changed[id]}; {what}" if id in self.changed else what

    def __str__(self, most=8):
        lines = [f"{len(self.skipped)} skipped, {len(self.changed)} changed"]
        for name, items in (("skipped", self.skipped), ("changed", self.changed)):
            lines += [f"{name} {id}: {why}" for id, why in list(items.items())[:most]]
            if len(items) > most:
                lines.append(f"… and {len(items) - most} more: all are in .{name}")
        return "\n".join(lines)
