"""How does Gradescope grade a unit? `python -m homework.gradescope hw03` writes the zip for it."""

import io
import re
import zipfile
from pathlib import Path

from homework.marking import HERE, find
from minimal.command import command
from minimal.data.files import write_whole

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image.
set -e
apt-get update && apt-get install -y python3 python3-venv util-linux
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "wanted Python 3.11 or newer, got $(python3 --version): choose a newer base image" >&2
    exit 1
}
python3 -m venv /opt/grader
cd "$(dirname "$0")"
cpu=https://download.pytorch.org/whl/cpu  # the builds without CUDA, and not all that torch needs
/opt/grader/bin/pip install --require-hashes --no-deps -r hashes.txt
/opt/grader/bin/pip install -c constraints.txt --no-deps --index-url "$cpu" torch
"""

RUN = """#!/usr/bin/env bash
# Gradescope runs this for every submission. AUTOGRADER and PYTHON can be set to try it elsewhere.
# No account but this one may enter these folders: what is graded would find the answers there.
home="${AUTOGRADER:-/autograder}"
chmod 700 "$home/source" "$home/submission" "$home/results"
cd "$home/source"
export PYTHONPATH="$home/source"  # these modules, whatever course that Python knows
exec "${PYTHON:-/opt/grader/bin/python}" -m homework.grade UNIT "$home/submission" \\
    --out "$home/results/results.json"
"""

PARTS = ["__init__.py", "marking.py", "compare.py", "diagnosis.py", "relation.py", "by_index.py"]
PARTS += ["edits.py", "runner.py", "sandbox.py", "syscalls.py", "grade.py", "reports.py"]
PARTS += ["handed_in.py", "reading.py", "roster.py", "alarm.py", "unnamed.py", "slips.py"]
SHARED = ["__init__.py", "command.py", "data/__init__.py", "data/files.py"]  # of minimal
NEEDED = """numpy triton filelock fsspec jinja2 markupsafe mpmath networkx setuptools sympy
typing-extensions""".split()  # by graded code, and by torch


def build(unit, out):
    """setup.sh, run_autograder, the course's pins and just what grading needs: no solutions."""
    made = io.BytesIO()
    scripts = {"setup.sh": SETUP, "run_autograder": RUN.replace("UNIT", unit.short)}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in scripts.items():
            entry = zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0))
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
        archive.write(HERE.parent / "constraints.txt", "constraints.txt")
        archive.writestr("hashes.txt", hashes(NEEDED))
        for name in [*PARTS, f"{unit.folder}/exercises.py"]:
            archive.write(HERE / name, f"homework/{name}")
        for name in SHARED:
            archive.write(HERE.parent / "minimal" / name, f"minimal/{name}")
    write_whole(out, made.getvalue(), is_autograder)
    return out


def hashes(names):
    """The lines of hashes.txt for these packages."""
    told = (HERE.parent / "hashes.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^[\w.-]+==.*\n(?: +--hash.*\n)+", told, re.M)
    return "".join(pin for pin in pins if pin.partition("==")[0] in names)


def is_autograder(path):
    """Is this a zip that `build` made?"""
    return zipfile.is_zipfile(path) and "run_autograder" in zipfile.ZipFile(path).namelist()


@command("homework.gradescope", __doc__)
def main(parser, argv):
    parser.add_argument("unit", help="for example hw03")
    parser.add_argument("--out", type=Path, help="default: build/hw03_gradescope.zip")
    options = parser.parse_args(argv)
    unit = find(options.unit)
    out = options.out or Path("build") / f"{unit.short}_gradescope.zip"
    print(build(unit, out))


if __name__ == "__main__":
    main()
