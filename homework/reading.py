"""What lies in a folder or an archive that others write to? Names first, then each file once.

Whoever hands in may change the folder while it is graded. So a file is opened step by step from the
folder that the instructor names, never through a link; it is asked what it is once it is open; and
at most 1 MB of it is read, without waiting for anybody. What was read stays.
"""

import contextlib
import errno
import functools
import os
import stat
import zipfile
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import PurePosixPath

MOST = 1 << 20  # bytes of a file
DEPTH, MANY = 64, 100_000  # folders below each other, and names, that are looked at of a learner
SYSTEMS = {"__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini"}  # nobody is called that
EDITORS = {".DS_Store", ".git", ".github", ".gitignore", ".ipynb_checkpoints", ".idea", ".vscode"}
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # whatever else may ask for much memory


@dataclass(frozen=True)
class Content:
    """What was read of a file: its bytes, or why it is none to grade, or why it could not be read
    here, which is nobody's loss."""

    data: bytes = b""
    none: str = ""
    shut: str = ""
    when: float = None  # None: not known
    inode: tuple = None  # of a file that has other names, too


@dataclass(frozen=True)
class File:
    """A file below its learner's folder. It is read when somebody first asks, and only then."""

    path: PurePosixPath
    fetch: callable = None
    called: str = ""  # as the learner called it
    order: tuple = ()  # among attempts: the last counts
    is_link: bool = False

    @functools.cached_property
    def content(self):
        return self.fetch()

    @property
    def none(self):
        return self.content.none

    def read(self):
        return self.content.data

    def is_written(self, unit):
        """Does it say more than the stub? What cannot be read is for the grader to tell."""
        return bool(self.none or self.content.shut) or not unit.is_stub(self.read())


@dataclass
class Listed:
    """The folders at the top, and why one could not be looked through; every file; the clones."""

    tops: dict = field(default_factory=dict)
    files: list = field(default_factory=list)
    clones: set = field(default_factory=set)


def ignored(name):
    """What systems and editors put there; what is merely hidden may be a learner's."""
    return name in SYSTEMS | EDITORS or name.startswith("._")


# ------------------------------------------------------------------------------- on the disk


@contextlib.contextmanager
def opened(root, parts, how):
    """What lies below a folder, open; no step on the way is a link."""
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for number, name in enumerate(parts, 1):
            flags = how if number == len(parts) else os.O_DIRECTORY
            flags |= os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            below = os.open(name, flags, dir_fd=at)
            os.close(at)
            at = below
        yield at
    finally:
        os.close(at)


def fetch(root, parts):
    """The Content of a file below a folder."""
    name = parts[-1]
    try:
        with opened(root, parts, 0) as handle:
            info = os.fstat(handle)
            if not stat.S_ISREG(info.st_mode):
                return Content(none=f"{name} is no file")
            with open(handle, "rb", closefd=False) as file:
                data = file.read(MOST + 1)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return Content(none=f"{name} is a link: each learner hands in a file of their own")
        if error.errno in (errno.ENXIO, errno.EOPNOTSUPP):  # a socket
            return Content(none=f"{name} is no file")
        return Content(shut=could_not(name, error))
    if len(data) > MOST:
        return Content(none=f"{name} is larger than 1 MB")
    inode = (info.st_dev, info.st_ino) if info.st_nlink > 1 else None
    return Content(data, when=info.st_mtime, inode=inode)


def could_not(name, error):
    return f"{name} cannot be read here: {error.strerror}; see to that, and grade again"


def file_at(root, parts, is_link=False, within=()):
    """A file below a folder; `within` are folders that no path of a learner's begins with."""
    read = functools.partial(fetch, root, (*within, *parts))
    return File(PurePosixPath(*parts), read, parts[-1], is_link=is_link)


def look(root, parts):
    """(names of folders, names of others with whether they are links) in a folder."""
    folders, others = [], []
    with opened(root, parts, os.O_DIRECTORY) as handle, os.scandir(handle) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
            else:
                others.append((entry.name, entry.is_symlink()))
    return sorted(folders), sorted(others)


def on_disk(root, within=()):
    """Every folder at the top of a class, and every file."""
    listed = Listed()
    folders, others = look(root, within)
    known = [(name, is_link) for name, is_link in others if not ignored(name)]
    listed.files = [file_at(root, (name,), is_link, within) for name, is_link in known]
    for top in folders:
        if not ignored(top):
            listed.tops[top] = look_through(root, within, top, listed)
    listed.files.sort(key=lambda file: file.path)
    return listed


def look_through(root, within, top, listed):
    """Add a learner's files, those near the top first; returns what could not be looked at."""
    waiting, count, shut = deque([(top,)]), 0, ""
    while waiting:
        parts = waiting.popleft()
        try:
            folders, others = look(root, (*within, *parts))
        except OSError as error:
            shut = shut or could_not("/".join(parts)[:100], error)
            continue
        if parts == (top,) and ".git" in [*folders, *(name for name, _ in others)]:
            listed.clones.add(top)
        count += len(folders) + len(others)
        if count > MANY or len(parts) > DEPTH:
            return f"{top} holds too much to be looked through: find the file, and grade it alone"
        known = [(name, is_link) for name, is_link in others if not ignored(name)]
        paths = [((*parts, name), is_link) for name, is_link in known]
        listed.files += [file_at(root, path, is_link, within) for path, is_link in paths]
        waiting += [(*parts, name) for name in folders if not ignored(name)]
    return shut


# ------------------------------------------------------------------------------- in an archive


def in_zip(path, within=()):
    """Every folder at the top of an archive, and every file; nothing is written to the disk."""
    listed, archive, deep = Listed(), zipfile.ZipFile(path), len(within)
    entries = [(parts_of(entry), entry) for entry in archive.infolist()]
    entries = [(parts[deep:], entry) for parts, entry in entries if parts[:deep] == within]
    several = Counter(parts for parts, entry in entries if not entry.is_dir())
    for parts, entry in sorted(entries, key=lambda pair: pair[0]):
        if parts[1:2] == (".git",):
            listed.clones.add(parts[0])
        if any(map(ignored, parts)) or not parts:
            continue
        if len(parts) > 1 or entry.is_dir():
            listed.tops[parts[0]] = ""
        if not entry.is_dir() and several[parts]:
            read = functools.partial(unpacked, archive, entry, several.pop(parts))
            listed.files.append(File(PurePosixPath(*parts), read, parts[-1]))
    return listed


def parts_of(entry):
    """A name in an archive, without what climbs out of it. Some programs of Windows write \\."""
    names = entry.filename.replace("\\", "/").split("/")
    return tuple(name for name in names if name not in ("", ".", ".."))


def unpacked(archive, entry, times):
    """The Content of a file of an archive, never more than it claims to be."""
    name = parts_of(entry)[-1]
    if times > 1:
        return Content(none=f"{name} is in the archive {times} times: which one is meant?")
    if entry.file_size > MOST:
        return Content(none=f"{name} is larger than 1 MB")
    if entry.flag_bits & 1:
        return Content(none=f"{name} is encrypted in the archive: ask for it without a password")
    try:
        if entry.compress_type not in PACKED:
            raise NotImplementedError
        with archive.open(entry) as file:
            return Content(file.read(MOST))
    except Exception:  # an archive may be damaged in many ways
        return Content(none=f"{name} is damaged in the archive: ask for it anew")
