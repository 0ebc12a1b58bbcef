"""Where do made things live, and how is each made only once, whatever is killed and whoever runs beside?"""

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

CHECKOUT = Path(__file__).resolve().parents[2]  # the repository, where there is one
FORMAT = 1  # raise it when the meaning of a cached file changes: old caches are then left alone, not misread

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


class DataError(ValueError):
    """One sentence for the person at the keyboard: what was wanted, what came, what to do."""


def runs_folder():
    """$MINIMAL_RUNS; by default `runs` in the checkout, or in the current folder where there is no checkout."""
    home = CHECKOUT if (CHECKOUT / "pyproject.toml").exists() else Path.cwd()
    return Path(os.environ.get("MINIMAL_RUNS") or home / "runs")


def data_folder():
    """Prepared text: corpora, tokenizers, packed tokens."""
    return runs_folder() / "data" / f"format-{FORMAT}"


def once(path, make):
    """`path`, made at most once: `make(part)` fills a file or folder beside it, which one rename then publishes.
    Of two processes the second waits and reads; one that is killed leaves a part that the next one replaces."""
    if not path.exists():
        part = path.with_name(path.name + ".part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_name(path.name + ".lock")):
                if not path.exists():
                    _remove(part)
                    try:
                        make(part)
                        os.replace(part, path)
                    finally:
                        _remove(part)
        except OSError as error:
            if error.errno not in UNWRITABLE:
                raise
            raise DataError(
                f"cannot write {path} ({error.strerror}): "
                "set MINIMAL_RUNS to a folder with room that you may write to"
            ) from error
    return path


def _remove(part):
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def digest(*parts):
    """A short name for these contents, equal on every machine."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def slug(name):
    """The name as a folder may bear it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


class Skip(Exception):
    """This one item cannot be used; the sentence says why."""


def need(true, why):
    if not true:
        raise Skip(why)


@dataclass
class Report:
    """What was skipped or changed on the way, one sentence an item: nothing is dropped in silence."""

    skipped: dict = field(default_factory=dict)  # id -> why
    changed: dict = field(default_factory=dict)  # id -> what was done to an item that stays

    def change(self, id, what):
        self.changed[id] = f"{self.changed[id]}; {what}" if id in self.changed else what

    def __str__(self, most=8):
        lines = [f"{len(self.skipped)} skipped, {len(self.changed)} changed"]
        for name, items in (("skipped", self.skipped), ("changed", self.changed)):
            lines += [f"{name} {id}: {why}" for id, why in list(items.items())[:most]]
            lines += (
                [f"… and {len(items) - most} more: all are in .{name}"] if len(items) > most else []
            )
        return "\n".join(lines)


def locked(path):
    """One writer at a time: a lock file beside `path`, released by the system even when its holder is killed."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(path.with_name(path.name + ".lock"))


def write_whole(path, text):
    """Whole or not at all: a reader never meets half a file."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f"{path.name}.{os.getpid()}.half")
    half.write_text(text, encoding="utf-8")
    os.replace(half, path)


def read_lines(path):
    """The whole lines of a log of JSON objects; a last line cut short by a kill is left out."""
    rows = []
    for line in Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []:
        with contextlib.suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return rows


def append_lines(path, rows):
    """Append rows to such a log in one write, after the end of whatever a killed writer left."""
    with locked(path), open(path, "ab+") as log:
        torn = log.tell() and (log.seek(-1, os.SEEK_END), log.read(1))[1] != b"\n"
        log.write(
            (b"\n" if torn else b"") + "".join(json.dumps(row) + "\n" for row in rows).encode()
        )
