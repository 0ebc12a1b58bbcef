"""Where does a learner work? On copies of the notebooks in work/, which git ignores.

    python -m course.work                make the copies that are missing, renew the untouched ones
    python -m course.work --reset 04     a fresh copy of one; yours stays beside it, with its date

`make lab` does the first, so an update, by git pull, meets no changed file and has no conflict. A
copy remembers in its metadata what it was made from. It is renewed when the course changes and the
learner has not; what had run, or was changed, is kept.
"""

import datetime
import itertools
import json
import os
import re
from pathlib import Path

from minimal.command import command
from minimal.data import files

NOTEBOOKS = Path(__file__).resolve().parents[1]
NAME = re.compile(r"\d\d[a-z]?_\w+\.ipynb")


def update(course, work):
    """Copies of every notebook of `course` in `work`; [(name, what happened)] where anything did:
    new, renewed, set aside as another name, or kept although the course has a newer one."""
    paths = sorted(path for path in course.iterdir() if NAME.fullmatch(path.name))
    refuse(work, "a folder")
    for path in paths:
        refuse(work / path.name, "a file")
    work.mkdir(exist_ok=True)
    found = [(path.name, update_one(path, work / path.name)) for path in paths]
    return [(name, what) for name, what in found if what]


def update_one(source, copy):
    """The copy as it should be after an update, and in a word what had to be done."""
    if not copy.exists():
        write(source, copy)
        return "new"
    theirs, mine = state(copy.read_bytes()), state(source.read_bytes())
    if theirs and theirs["now"] == mine["now"]:
        return ""
    if not theirs or theirs["now"] != theirs["given"]:
        return "kept" if not theirs or theirs["given"] != mine["now"] else ""
    aside = set_aside(copy) if theirs["ran"] else None
    write(source, copy)
    return f"renewed; what had run is now {aside.name}" if aside else "renewed"


def reset(source, copy):
    """A fresh copy, and where the learner's went: None where there was none."""
    refuse(copy.parent, "a folder")
    refuse(copy, "a file")
    copy.parent.mkdir(exist_ok=True)
    aside = set_aside(copy) if copy.exists() else None
    write(source, copy)
    return aside


# ---- one copy ------------------------------------------------------------------------------------


def state(content):
    """What a notebook says now, what it was made from, and whether it ran; None: no notebook."""
    try:
        book = json.loads(content)
        cells = [
            (cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", []))
            for cell in book["cells"]
        ]
        ran = any(cell.get("outputs") for cell in book["cells"])
        given = book["metadata"].get("course", {}).get("given", "")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    # outputs, counts and folds are the machine's; the cells above are what a learner writes
    return dict(now=files.digest(cells), given=given, ran=ran)


def write(source, copy):
    """The copy, with a word of what it was made from."""
    content = source.read_bytes()
    book = json.loads(content)
    book["metadata"]["course"] = dict(given=state(content)["now"])
    text = json.dumps(book, indent=1, ensure_ascii=False)
    files.write_whole(copy, text + "\n")


def set_aside(copy):
    """Give the learner's copy a dated name beside it, one that nothing has yet; the name."""
    dated = f"{copy.stem}.{datetime.date.today().isoformat()}"
    ends = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    aside = files.first_free(copy.with_name(f"{dated}{end}.ipynb") for end in ends)
    with files.writing(copy):
        os.rename(copy, aside)
    return aside


def refuse(path, wanted):
    """Nothing but a folder or a file of its own is written to: not what a link leads to."""
    kind = files.kind_of(path)
    if kind not in ("", wanted):
        where = "/".join(path.parts[-2:]) if wanted == "a file" else f"{path.name}/"
        raise ValueError(f"wanted {wanted} at {where}, got {kind}: move it away, then try again")


# ---- the command ---------------------------------------------------------------------------------


def named(word):
    """The notebook that a learner means by 04, 11a, 04_resformer or 04_resformer.ipynb."""
    ours = sorted(path for path in NOTEBOOKS.iterdir() if NAME.fullmatch(path.name))
    meant = [path for path in ours if word in (path.stem.split("_")[0], path.stem, path.name)]
    if not meant:
        numbers = ", ".join(path.stem.split("_")[0] for path in ours)
        raise ValueError(f"wanted a notebook, one of {numbers}, got {word!r}: NOTEBOOK=04")
    return meant[0]


def told(happened):
    """What a learner is told of an update: a line for each kind of news."""
    new = [name for name, what in happened if what == "new"]
    kept = [name.split("_")[0] for name, what in happened if what == "kept"]
    lines = (
        [f"work/ has {len(new)} new notebooks: yours to change, git ignores them"] if new else []
    )
    lines += [f"work/{name} is {what}" for name, what in happened if what.startswith("renewed")]
    if kept:
        lines.append(
            f"you changed {', '.join(kept)}, and the course has newer ones: yours are kept, and "
            f"`make reset NOTEBOOK={kept[0]}` gets the new one, with yours beside it"
        )
    return lines


@command("course.work", __doc__)
def main(parser, argv):
    parser.add_argument("--reset", metavar="NOTEBOOK", help="a fresh copy of one, such as 04")
    asked, work = parser.parse_args(argv), NOTEBOOKS.parent / "work"
    if asked.reset is None:
        print("\n".join(told(update(NOTEBOOKS, work))) or "work/ is up to date")
        return
    source = named(asked.reset)
    aside = reset(source, work / source.name)
    also = f"; yours is now {aside.name} beside it" if aside else ""
    print(f"work/{source.name} is as the course has it{also}")


if __name__ == "__main__":
    main()
