"""How does Gradescope grade a unit? `python -m homework.gradescope hw03` writes the zip for it."""

import argparse
import zipfile
from pathlib import Path

from homework.marking import HERE, find

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image.
set -e
apt-get update && apt-get install -y python3 python3-venv util-linux
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "wanted Python 3.11 or newer, got $(python3 --version): choose a newer base image" >&2
    exit 1
}
python3 -m venv /opt/grader
pins="$(dirname "$0")/constraints.txt"
/opt/grader/bin/pip install -c "$pins" --index-url https://download.pytorch.org/whl/cpu torch
/opt/grader/bin/pip install -c "$pins" numpy triton
"""

RUN = """#!/usr/bin/env bash
# Gradescope runs this for every submission. AUTOGRADER and PYTHON can be set to try it elsewhere.
# No account but this one may enter these folders: what is graded would find the answers there.
home="${AUTOGRADER:-/autograder}"
chmod 700 "$home/source" "$home/submission" "$home/results"
cd "$home/source"
exec "${PYTHON:-/opt/grader/bin/python}" -m homework.grade UNIT "$home/submission" \\
    --out "$home/results/results.json"
"""

PARTS = ["__init__.py", "marking.py", "compare.py", "diagnosis.py", "by_index.py"]
PARTS += ["runner.py", "sandbox.py", "syscalls.py", "grade.py", "reports.py"]
PARTS += ["handed_in.py", "roster.py"]


def build(unit, out):
    """setup.sh, run_autograder, the course's pins and just what grading needs: no solutions."""
    out.parent.mkdir(parents=True, exist_ok=True)
    scripts = {"setup.sh": SETUP, "run_autograder": RUN.replace("UNIT", unit.short)}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in scripts.items():
            entry = zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0))
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
        archive.write(HERE.parent / "constraints.txt", "constraints.txt")
        for name in [*PARTS, f"{unit.folder}/exercises.py"]:
            archive.write(HERE / name, f"homework/{name}")
    return out


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("unit", help="for example hw03")
    parser.add_argument("--out", type=Path, help="default: build/hw03_gradescope.zip")
    options = parser.parse_args(argv)
    unit = find(options.unit)
    out = options.out or Path("build") / f"{unit.short}_gradescope.zip"
    try:
        print(build(unit, out))
    except OSError as error:
        where = error.filename or out
        parser.error(f"the zip cannot be written to {out}: {where}: {error.strerror}")


if __name__ == "__main__":
    main()
