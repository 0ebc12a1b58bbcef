"""What breaks when recorded losses move by a thousandth? The snapshot, and nothing else.

    python -m tests.lab.moved                   one loss in every file of records, then tests/lab
    python -m tests.lab.moved tests/lab/test_page.py tests/slides/test_sources.py

It works in a copy of what git tracks. To be run by hand after a change of what reads records.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from minimal.data.files import CHECKOUT

BY, PLAN = 0.001, "standard"
SNAPSHOT = "test_what_is_written_from_the_records_is_what_they_say"


def copy_to(folder):
    told = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True)
    for name in filter(None, told.stdout.decode().split("\0")):
        target = Path(folder, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (CHECKOUT / name).exists():
            shutil.copy2(CHECKOUT / name, target)


def move(path):
    """The first loss of the plan in a file, if it has one."""
    book = json.loads(path.read_text(encoding="utf-8"))
    rows = book.get("rows", []) if isinstance(book, dict) else []
    losses = [row for row in rows if row.get("plan") == PLAN and "loss" in row]
    if losses:
        losses[0]["loss"] += BY
        path.write_text(json.dumps(book), encoding="utf-8")
    return bool(losses)


def main(argv):
    with tempfile.TemporaryDirectory(prefix="moved-") as folder:
        copy_to(folder)
        moved = sum(map(move, Path(folder, "notebooks", "evidence").glob("*.json")))
        print(f"{moved} files with one loss moved by {BY}")
        command = [sys.executable, "-m", "pytest", "-q", "-n0", *(argv or ["tests/lab"])]
        paths = os.pathsep.join([folder, str(Path(folder, "notebooks"))])
        environment = os.environ | dict(PYTHONPATH=paths)
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    print("\n".join([*failed, done.stdout.splitlines()[-1]]))
    return [line for line in failed if SNAPSHOT not in line]


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
