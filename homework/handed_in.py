"""Who handed in what? A folder or a .zip, as learning platforms and git give them.

    ann.py, ann/kv_cache.py                               a file or a folder a learner
    hw03-ann/homework/hw03_kv_cache/kv_cache.py           clones of GitHub Classroom
    jonesben_LATE_123_456_kv_cache-1.py                   Canvas: learner's and upload's numbers
    Ann Example_123_assignsubmission_file_/kv_cache.py    Moodle

A clone has the file twice: the stub, and the copy in its folder `work`, which is filled in.
Nothing is unpacked, and no link is followed.
"""

import functools
import os
import re
import stat
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

MOST = 1 << 20  # bytes of a file
STUB = "it is the stub, with nothing written in it"
SYSTEMS = {"__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini"}  # nobody is called that
EDITORS = {".DS_Store", ".git", ".github", ".gitignore", ".ipynb_checkpoints", ".idea", ".vscode"}
CANVAS = re.compile(r"(?P<who>[^_]+)_(?P<late>LATE_)?(?P<number>\d+)_(?P<order>\d+)_(?P<file>.+)")
MOODLE = re.compile(r"(?P<who>.+)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)")


@dataclass(frozen=True)
class File:
    """A file, below its learner's folder: how to read it, or why it is none."""

    path: PurePosixPath
    read: callable = None
    none: str = ""
    when: float = None  # None: not known
    inode: tuple = None
    order: tuple = ()  # among attempts: the last counts
    called: str = ""  # as the learner called it

    def is_written(self, unit):
        """Does it say more than the stub? What cannot be read is for the grader to tell."""
        try:
            return bool(self.none) or not unit.is_stub(self.read())
        except Exception:  # an archive may be damaged in many ways
            return True


@dataclass
class HandedIn:
    """One learner's files, under the name that the platform or the folder gives."""

    who: str
    files: list = field(default_factory=list)
    number: str = ""  # the platform's own, of the learner
    late: bool = False  # marked so by the platform
    alone: bool = False  # a file for itself, whatever it is called
    clone: bool = False  # times of files are those of cloning
    clones: list = field(default_factory=list)  # the names of all clones beside this one

    def choose(self, unit):
        """(the file to grade or None, what an instructor wants to know)."""
        exact = [f for f in self.files if f.called == unit.file]
        again = re.compile(re.escape(Path(unit.file).stem) + r"[ _-]?\(?\d+\)?\.py")
        numbered = [f for f in self.files if again.fullmatch(f.called)]
        attempts = [f for f in exact + numbered if f.order]
        if attempts:
            last = max(attempts, key=lambda f: f.order)
            several = f"{len(attempts)} attempts: {last.called}, the last, was graded"
            notes = [several] if len(attempts) > 1 else []
            notes += [] if last.is_written(unit) else [STUB]
            return last, "; ".join(notes)
        found = self.files if self.alone else exact or numbered
        if not found:
            names = sorted(f.called for f in self.files)
            said = ", ".join(names[:3])[:100] + ", …" * (len(names) > 3)
            return None, f"{unit.file} missing" + (f"; found {said}" if names else "")
        rooms = ("", f"work/{unit.folder}", f"homework/{unit.folder}")
        places = [PurePosixPath(room, unit.file) for room in rooms]
        usual = [f for place in places for f in found if f.path == place]
        if not usual and len(found) > 1:
            names = ", ".join(str(f.path) for f in found[:3])
            return None, f"several files are called {unit.file}: {names}"
        usual = usual or found
        written = [f for f in usual if f.is_written(unit)]
        file = (written or usual)[0]
        known = self.alone or file.path == PurePosixPath(unit.file)
        notes = [] if known else [f"{file.path} was graded"]
        if not written:
            notes.append(STUB)
        return file, "; ".join(notes)


# ------------------------------------------------------------------------------- what lies there


def ignored(name):
    """What systems and editors put there; what is merely hidden may be a learner's."""
    return name in SYSTEMS | EDITORS or name.startswith("._")


def file_at(path, relative):
    """A file of the disk."""
    info = path.lstat()
    none = ""
    if stat.S_ISLNK(info.st_mode):
        none = f"{path.name} is a link: each learner hands in a file of their own"
    elif not stat.S_ISREG(info.st_mode):
        none = f"{path.name} is no file"
    elif info.st_size > MOST:
        none = f"{path.name} is larger than 1 MB"
    inode = (info.st_dev, info.st_ino) if info.st_nlink > 1 else None
    return File(relative, path.read_bytes, none, info.st_mtime, inode, called=path.name)


def on_disk(folder):
    """Every folder at the top of a class, and every file."""
    tops, files = [], []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not ignored(name))
        for name in [*folders, *names]:
            path = Path(place, name)
            relative = PurePosixPath(*path.relative_to(folder).parts)
            if not path.is_symlink() and path.is_dir():
                tops += [name] if place == os.fspath(folder) else []
            elif not ignored(name):
                files.append(file_at(path, relative))
    return tops, sorted(files, key=lambda f: f.path)


def in_zip(path):
    """Every folder at the top of an archive, and every file; nothing is written to the disk."""
    tops, files = [], []
    archive = zipfile.ZipFile(path)
    for entry in sorted(archive.infolist(), key=lambda entry: entry.filename):
        parts = [part for part in PurePosixPath(entry.filename).parts if part not in ("..", "/")]
        relative = PurePosixPath(*parts)
        if any(map(ignored, parts)) or not parts:
            continue
        if len(parts) > 1 or entry.is_dir():
            tops.append(parts[0])
        if not entry.is_dir():
            name = relative.name
            none = f"{name} is larger than 1 MB" if entry.file_size > MOST else ""
            read = functools.partial(unpacked, archive, entry)
            files.append(File(relative, read, none, called=name))
    return list(dict.fromkeys(tops)), files


def unpacked(archive, entry):
    """A file of an archive, never more than what it claims to be at most."""
    with archive.open(entry) as file:
        return file.read(MOST)


# ------------------------------------------------------------------------------- whose it is


def single(path):
    """One learner's file or folder."""
    if not path.is_dir():
        return HandedIn(path.stem, [file_at(path, PurePosixPath(path.name))], alone=True)
    return HandedIn(path.name, on_disk(path)[1])


def with_git(path):
    """The folders at the top of a class that are clones."""
    if path.is_dir():
        return {place.parent.name for place in path.glob("*/.git")}
    parts = [PurePosixPath(name).parts for name in zipfile.ZipFile(path).namelist()]
    return {top for top, *below in filter(None, parts) if below[:1] == [".git"]}


def whole_class(path):
    """(what each learner handed in, what is nobody's, names that stand for two)."""
    tops, files = in_zip(path) if path.is_file() else on_disk(path)
    learners, left, repositories = {}, [], with_git(path)
    for top in tops:
        known = MOODLE.fullmatch(top)
        name, number = known.group("who", "number") if known else (top, "")
        clone = top in repositories
        learners[name, number, bool(known)] = HandedIn(name, number=number, clone=clone)
    clones = [mine for mine in learners.values() if mine.clone]
    for mine in clones:
        mine.clones = [other.who for other in clones]
    twice = []
    for file in files:
        top, below = file.path.parts[0], len(file.path.parts) > 1
        known = MOODLE.fullmatch(top) or (None if below else CANVAS.fullmatch(top))
        if known:
            name, number = known.group("who", "number")
            mine = learners.setdefault((name, number, True), HandedIn(name, number=number))
        elif below:
            mine = learners[top, "", False]
        elif top.endswith(".py") or file.none.endswith("of their own"):
            name = top.removesuffix(".py")
            twice += [name] if (name, "", False) in learners else []
            mine = learners[name, "", False] = HandedIn(name, alone=True)
        else:
            left.append(top)
            continue
        mine.files.append(named(file, known))
        mine.late |= bool(known and known.groupdict().get("late"))

    # Two learners of one name are told apart by the platform's number.
    names = [mine.who for mine in learners.values()]
    for mine in learners.values():
        mine.who += f"_{mine.number}" if names.count(mine.who) > 1 else ""
    return sorted(learners.values(), key=lambda mine: mine.who), left, twice


def named(file, known):
    """The file as its learner called it, without what a platform or a folder put around it."""
    below = file.path.parts[1:] or file.path.parts
    file = replace(file, path=PurePosixPath(*below))
    if not known or not known["file"]:
        return file
    order = ()
    if "order" in known.groupdict():
        again = re.search(r"-(\d+)\.py$", known["file"])
        order = (int(known["order"]), int(again[1]) if again else 0)
    return replace(file, path=PurePosixPath(known["file"]), called=known["file"], order=order)


def shared(learners, unit):
    """{learner: whose file it is as well}: one file on the disk under two names (a hard link)."""
    by_inode = {}
    for mine in learners:
        file, _ = mine.choose(unit)
        if file and file.inode:
            by_inode.setdefault(file.inode, []).append(mine.who)
    several = [names for names in by_inode.values() if len(names) > 1]
    return {who: [n for n in names if n != who] for names in several for who in names}
