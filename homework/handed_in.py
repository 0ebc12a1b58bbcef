"""Who handed in what? A folder or a .zip, as learning platforms and git give them.

    ann.py, ann/kv_cache.py                               a file or a folder a learner
    hw03-ann/homework/hw03_kv_cache/kv_cache.py           clones of GitHub Classroom
    jonesben_LATE_123_456_kv_cache-1.py                   Canvas: learner's and upload's numbers
    Ann Example_123_assignsubmission_file_/kv_cache.py    Moodle

A clone has the file twice: the stub, and the copy in its folder `work`, which is filled in.
How files are read, and that nothing is unpacked and no link followed, is homework/reading.py's.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from homework.reading import file_at, in_zip, on_disk

STUB = "it is the stub, with nothing written in it"
CANVAS = re.compile(
    r"(?P<who>[^_]+)_(?P<late>LATE_)?(?P<number>\d+)_(?P<order>\d{1,18})_(?P<file>.+)"
)
MOODLE = re.compile(r"(?P<who>.+)_(?P<number>\d+)_assignsubmission_[a-z]+_?(?P<file>.*)")


@dataclass
class HandedIn:
    """One learner's files, under the name that the platform or the folder gives."""

    who: str
    files: list = field(default_factory=list)
    number: str = ""  # the platform's own, of the learner
    late: bool = False  # marked so by the platform
    judged: bool = False  # by a platform that marks who is late
    alone: bool = False  # a file for itself, whatever it is called
    clone: bool = False  # times of files are those of cloning
    clones: list = field(default_factory=list)  # the names of all clones beside this one
    shut: str = ""  # what could not be looked through
    top: str = ""  # the name of the folder
    chosen: tuple = None

    def choose(self, unit):
        """(the file to grade or None, what an instructor wants to know), the same as long as this
        process runs, whatever becomes of the folder."""
        if self.chosen is None:
            self.chosen = self.choice(unit)
        return self.chosen

    def has(self, unit):
        """Is there a file to grade, or may there be one?"""
        return self.choose(unit)[0] is not None or bool(self.shut)

    def choice(self, unit):
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


# ------------------------------------------------------------------------------- whose it is


def single(path):
    """One learner's file or folder."""
    if not path.is_dir():
        return HandedIn(path.stem, [file_at(path.parent, (path.name,))], alone=True)
    listed = on_disk(path)
    return HandedIn(path.name, listed.files, shut=next(filter(None, listed.tops.values()), ""))


def whole_class(path, within=()):
    """(what each learner handed in, what is nobody's, names that stand for two) at a place, or in a
    folder there."""
    listed = in_zip(path, within) if path.is_file() else on_disk(path, within)
    learners, left = {}, []
    for top, shut in listed.tops.items():
        known = MOODLE.fullmatch(top)
        name, number = known.group("who", "number") if known else (top, "")
        about = dict(number=number, clone=top in listed.clones, shut=shut, top=top)
        learners[name, number, bool(known)] = HandedIn(name, **about)
    clones = [mine for mine in learners.values() if mine.clone]
    for mine in clones:
        mine.clones = [other.who for other in clones]
    twice = []
    for file in listed.files:
        top, below = file.path.parts[0], len(file.path.parts) > 1
        known = MOODLE.fullmatch(top) or (None if below else CANVAS.fullmatch(top))
        if known:
            name, number = known.group("who", "number")
            mine = learners.setdefault((name, number, True), HandedIn(name, number=number))
        elif below:
            mine = learners[top, "", False]
        elif top.endswith(".py") or file.is_link:
            name = top.removesuffix(".py")
            twice += [name] if (name, "", False) in learners else []
            mine = learners[name, "", False] = HandedIn(name, alone=True)
        else:
            left.append(top)
            continue
        mine.files.append(named(file, known))
        mine.late |= bool(known and known.groupdict().get("late"))
        mine.judged |= known is not None and known.re is CANVAS

    # Two learners of one name are told apart by the platform's number.
    names = [mine.who for mine in learners.values()]
    for mine in learners.values():
        mine.who += f"_{mine.number}" if names.count(mine.who) > 1 else ""
    return sorted(learners.values(), key=lambda mine: mine.who), left, twice


def find_class(path, unit):
    """(`whole_class`, the folder) of a place, or of the only folder there where the class lies in
    that: an archive's outer one, or a tool's."""
    learners, left, twice = whole_class(path)
    top = learners[0].top if len(learners) == 1 else ""
    if not top or learners[0].has(unit):
        return (learners, left, twice), ""
    below, more, again = whole_class(path, (top,))
    known = [mine for mine in below if mine.has(unit) and (mine.number or not mine.alone)]
    if len(known) > 1:
        return (below, left + more, again), top
    return (learners, left, twice), ""


def named(file, known):
    """The file as its learner called it, without what a platform or a folder put around it."""
    below = file.path.parts[1:] or file.path.parts
    file = replace(file, path=PurePosixPath(*below))
    if not known or not known["file"]:
        return file
    order = ()
    if "order" in known.groupdict():
        again = re.search(r"-(\d{1,18})\.py$", known["file"])
        order = (int(known["order"]), int(again[1]) if again else 0)
    return replace(file, path=PurePosixPath(known["file"]), called=known["file"], order=order)


def shared(learners, unit):
    """{learner: whose file it is as well}: one file on the disk under two names (a hard link)."""
    by_inode = {}
    for mine in learners:
        file, _ = mine.choose(unit)
        if file and file.content.inode:
            by_inode.setdefault(file.content.inode, []).append(mine.who)
    several = [names for names in by_inode.values() if len(names) > 1]
    return {who: [n for n in names if n != who] for names in several for who in names}
