"""How do learners get the course without its solutions, and those of a unit when it is over?

    python -m homework.release ../course         a repository with one commit, and no solutions
    python -m homework.release ../course hw03    the solutions of hw03, as a commit of their own

What is committed here is taken. Nothing is pushed: that stays with you.
"""

import subprocess
import sys
from pathlib import Path

from homework.marking import HERE, find
from minimal.command import command
from minimal.data.files import remove_folder, unpack, write_whole

ROOT = HERE.parent
WITHHELD = ["homework/solutions", "tests/homework"]  # the tests prove the exercises by solutions

HANDED_IN = """
# homework is handed in by git: what learners write for it, and none of their notebooks
!work
work/*
!work/hw*
"""


def git(folder, *arguments):
    """What git says on success; its last words end the command otherwise."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
        raise SystemExit(f"git {arguments[0]} in {folder} failed: {said[-1]}")
    return done.stdout


def check_identity(folder):
    """Say, before anything is written, that git would not commit here: it does not know as whom."""
    for role in ("AUTHOR", "COMMITTER"):
        done = subprocess.run(
            ["git", "-C", str(folder), "var", f"GIT_{role}_IDENT"], capture_output=True
        )
        if done.returncode:
            raise SystemExit(
                "git does not know who you are, and commits for nobody: git config --global "
                "user.name 'Your Name', then git config --global user.email you@example.org"
            )


def copy(out, *which):
    """These files of the last commit, into another folder."""
    packed = git(ROOT, "archive", "HEAD", "--", *which)
    unpack(packed, out)


def start(out):
    """A repository whose history holds no solution, and whose git takes homework from work/."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SystemExit(f"wanted a new or an empty folder, got {out}")
    is_new = not out.exists()
    out.mkdir(parents=True, exist_ok=True)
    try:
        fill(out)
    except BaseException:  # a second try finds what the first one found
        for made in [out] if is_new else [*out.iterdir()]:
            remove_folder(made)
        raise
    return f"{out} holds the course without {' and '.join(WITHHELD)}, as one commit"


def fill(out):
    """The course without its solutions, as the only commit of an empty folder."""
    git(out, "init", "--quiet", "--initial-branch=main")
    check_identity(out)
    copy(out, ".", *(f":!{name}" for name in WITHHELD))
    ignored = out / ".gitignore"
    known = ignored.read_text(encoding="utf-8") if ignored.is_file() else ""
    write_whole(ignored, known + HANDED_IN)
    git(out, "add", "--all", "--force")
    git(out, "commit", "--quiet", "--message", "The course")


def release(out, unit):
    """A unit's solutions, as a commit."""
    if not (out / ".git").exists() or not (out / "homework" / unit.folder).is_dir():
        raise SystemExit(f"wanted a course made by this command, got {out}: name only the folder")
    folder = f"homework/solutions/{unit.folder}"
    check_identity(out)
    copy(out, folder)
    git(out, "add", "--force", folder)
    git(out, "commit", "--quiet", "--message", f"Solutions of {unit.short}", "--", folder)
    return f"{out} holds the solutions of {unit.short}, as a commit: push it"


@command("homework.release", __doc__)
def main(parser, argv):
    parser.add_argument("out", type=Path, help="the folder that learners get")
    parser.add_argument("unit", nargs="?", help="for example hw03; left out, the course is made")
    options = parser.parse_args(argv)
    if options.unit:
        print(release(options.out, find(options.unit)))
    else:
        print(start(options.out))


if __name__ == "__main__":
    sys.exit(main())
