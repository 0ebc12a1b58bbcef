"""How does Gradescope grade a unit? `python -m homework.gradescope hw03` writes the zip that it asks for."""
import argparse
import zipfile
from pathlib import Path

from homework.marking import HERE, find

SETUP = """#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image.
set -e
apt-get update && apt-get install -y python3 python3-venv util-linux
python3 -m venv /opt/grader
/opt/grader/bin/pip install "torch>=2.11" "numpy>=2" "triton>=3.6"
"""

RUN = """#!/usr/bin/env bash
# Gradescope runs this for every submission. AUTOGRADER and PYTHON can be set to try it elsewhere.
home="${AUTOGRADER:-/autograder}"
cd "$home/source"
exec "${PYTHON:-/opt/grader/bin/python}" -m homework.grade UNIT "$home/submission" --out "$home/results/results.json"
"""

PARTS = ["__init__.py", "marking.py", "by_index.py", "runner.py", "grade.py"]


def build(unit, out):
    """setup.sh, run_autograder and just what grading needs: no solutions, no notebooks."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in [("setup.sh", SETUP), ("run_autograder", RUN.replace("UNIT", unit.short))]:
            entry = zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0))
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
        for name in [*PARTS, f"{unit.folder}/exercises.py"]:
            archive.write(HERE / name, f"homework/{name}")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("unit", help="for example hw03")
    parser.add_argument("--out", type=Path, help="default: build/hw03_gradescope.zip")
    options = parser.parse_args()
    unit = find(options.unit)
    print(build(unit, options.out or Path("build") / f"{unit.short}_gradescope.zip"))


if __name__ == "__main__":
    main()
