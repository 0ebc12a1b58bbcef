"""What does a Python of the course find beside the package, and in no wheel? make setup asks once.

The homework stands in the checkout, what notebooks import and what serves the records under
notebooks: a line each in a .pth file of the environment. Its third line tells torch's threads to
sleep soon when they wait, so that a busy neighbour costs less; libgomp reads that once, as torch is
loaded (make bench PART=busy measures it). The package itself sets nothing. Its fourth line is for
`python -m homework.…`: our homework is loaded before the current folder counts, where a learner's
may lie.
"""

import sys
import sysconfig
from pathlib import Path

SLEEP = (
    'import os; "OMP_WAIT_POLICY" in os.environ or os.environ.setdefault("GOMP_SPINCOUNT", "2000")'
)
HOMEWORK = (
    'import sys; sys.argv[:1] == ["-m"] and "homework." in sys.orig_argv[-len(sys.argv)] '
    'and __import__("homework")'
)


def line_file():
    return Path(sysconfig.get_path("purelib"), "course.pth")


def addressed():
    """The checkout whose homework and notebooks this Python finds; '' before set-up."""
    file = line_file()
    return file.read_text(encoding="utf-8").partition("\n")[0] if file.exists() else ""


def readdress(old, new):
    """Programs of an environment begin with its place, and activate exports it. Where a folder was
    renamed or copied they would still start the Python of the other one."""
    for program in Path(sysconfig.get_path("scripts")).iterdir():
        if program.is_symlink() or not program.is_file():
            continue
        held = program.read_bytes()
        if old in held and b"\0" not in held:  # text
            program.write_bytes(held.replace(old, new))


def main(argv=()):
    if argv:
        print(f"{__doc__}\nIt takes no options; make setup runs it.")
        sys.exit(0 if "--help" in argv else 2)
    here = Path(__file__).resolve().parents[2]
    lines = [here, here / "notebooks", SLEEP, HOMEWORK, ""]
    if there := addressed():
        readdress(f"{there}/.venv".encode(), f"{here}/.venv".encode())
    line_file().write_text("\n".join(map(str, lines)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
