"""Where do made things live, and how is each made only once, whatever is killed and whoever runs beside?"""

import errno
import hashlib
import json
import os
import re
import shutil
from pathlib import Path

from filelock import FileLock

FORMAT = 1  # raise it when the meaning of a cached file changes: old caches are then left alone, not misread
UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS}


class DataError(ValueError):
    """One sentence for the person at the keyboard: what was wanted, what came, what to do."""


def runs():
    """$MINIMAL_RUNS; by default `runs` in the checkout, or in the current folder where there is no checkout."""
    home = Path(__file__).resolve().parents[1]
    return Path(os.environ.get("MINIMAL_RUNS") or (home if (home / "pyproject.toml").exists() else Path.cwd()) / "runs")


def cache():
    """Prepared text: corpora, tokenizers, packed tokens."""
    return runs() / "data" / f"format-{FORMAT}"


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
            raise DataError(f"cannot write {path} ({error.strerror}): "
                            "set MINIMAL_RUNS to a folder with room that you may write to") from error
    return path


def _remove(part):
    if part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


def short(*parts):
    """A short name for these contents, equal on every machine."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]


def slug(name):
    """The name as a folder may bear it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
