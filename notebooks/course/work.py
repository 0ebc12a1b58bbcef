"""Where does a learner work? On copies in work/, which git ignores.

    python -m course.work                make the copies that are missing, renew the untouched ones
    python -m course.work --reset 04     a fresh copy of one; yours stays beside it, with its date
    python -m course.work --reset slides/04_resformer.ipynb     the same of a deck, or of any copy

`make lab` does the first, so an update, by git pull, meets no changed file and has no conflict.
Copied are notebooks, decks and what the open project asks for; of every other unit of homework the
file to fill in is written from its exercises. What each was made from is noted beside them. A copy
is renewed when the course changes and the learner has not; what had run, or was changed, is kept.
"""

import datetime
import itertools
import json
import os
import re
import runpy

from course import CHECKOUT
from minimal.command import command
from minimal.data import files

NAME = re.compile(r"\d\d[a-z]?_\w+\.ipynb")
PROJECT = ("project.py", "report.md")  # of hw09
EXERCISES = "exercises.py"  # of each other unit, which asks for one file, of its own name
KERNEL = "python3"  # as every notebook of the course names it
GIVEN = ".given.json"  # in work/: what each copy was made from
DECK = re.compile(rb"\]\(\.\./(slides/\w+\.ipynb)\)")  # as a notebook links it
QUESTIONS = "notebooks/evidence/questions"  # notebooks that read what is recorded
BESIDE_IT = re.compile(rb"\]\(\.\./(?!\.\./)")  # as one of these links the pages beside it
LESSON = re.compile(rb"\]\(\.\./\.\./(\d\d\w+\.ipynb)\)")  # and a notebook of the course


def sources(root):
    """{place in work/: the course's own file} of all that a learner runs or changes; of homework,
    what is to be filled in is made from the unit's exercises, unless a learner of earlier days
    wrote beside them."""
    found = {path.name: path for path in numbered(root / "notebooks")}
    found |= {f"slides/{path.name}": path for path in numbered(root / "slides")}
    found |= {f"questions/{path.name}": path for path in sorted(root.glob(f"{QUESTIONS}/*.ipynb"))}
    for folder in sorted(root.glob("homework/hw*_*")):
        own = folder.name.partition("_")[2] + ".py"
        here = [name for name in (own, *PROJECT) if (folder / name).is_file()]
        if (folder / EXERCISES).is_file():
            found[f"{folder.name}/{own}"] = folder / EXERCISES
        found |= {f"{folder.name}/{name}": folder / name for name in here}
    return found


def numbered(folder):
    return sorted(path for path in folder.glob("*.ipynb") if NAME.fullmatch(path.name))


def update(root, work):
    """A copy in `work` of each of the course's sources; [(place, what happened)] where anything
    did: new, renewed, set aside as another name, or kept although the course has a newer one."""
    found = sources(root)
    check(work, found)
    given, happened = noted(work), []
    work.mkdir(exist_ok=True)
    for place, source in found.items():
        fresh = as_copied(source)
        what = update_one(fresh, work / place, given.get(place))
        if same_as_course(fresh, work / place):
            given[place] = state(fresh, place)["now"]
        happened += [(place, what)] if what else []
    note(work, given)
    return happened


def update_one(fresh, copy, given):
    """The copy as it should be after an update, and in a word what had to be done."""
    if not copy.exists():
        write(copy, fresh)
        return "new"
    theirs, mine = state(copy.read_bytes(), copy.name), state(fresh, copy.name)
    if theirs and theirs["now"] == mine["now"]:
        return ""
    if not theirs or theirs["now"] != given:
        return "kept" if not theirs or given != mine["now"] else ""
    aside = set_aside(copy) if theirs["worth"] else None
    write(copy, fresh)
    return f"renewed; the one before is now {aside.name}" if aside else "renewed"


def reset(root, work, place):
    """A fresh copy, and where the learner's went: None where there was none."""
    check(work, [place])
    fresh, copy = as_copied(sources(root)[place]), work / place
    aside = set_aside(copy) if copy.exists() else None
    write(copy, fresh)
    note(work, noted(work) | {place: state(fresh, place)["now"]})
    return aside


# ---- one copy ------------------------------------------------------------------------------------


def as_copied(source):
    """What a copy of this file holds: a notebook in work/ links the deck that lies there, too, and
    a question the notebooks that lie there. Of exercises, their functions to fill in."""
    if source.name == EXERCISES:
        return runpy.run_path(str(source))["unit"].stub().encode()
    content = source.read_bytes()
    if source.parent.name == "questions":
        content = BESIDE_IT.sub(b"](../../notebooks/evidence/", content)
        content = LESSON.sub(rb"](../\1)", content)
    return DECK.sub(rb"](\1)", content) if source.suffix == ".ipynb" else content


def state(content, name):
    """What a file says now, and whether it is worth a name of its own once it is renewed; None: no
    notebook, though it is called one."""
    if not name.endswith(".ipynb"):
        return dict(now=files.digest(content.hex()), worth=True)
    try:
        book = json.loads(content)
        cells = [
            (cell["cell_type"], "".join(cell["source"]), cell["metadata"].get("tags", []))
            for cell in book["cells"]
        ]
        ran = any(cell.get("outputs") for cell in book["cells"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    # outputs, counts and folds are the machine's; the cells above are what a learner writes
    return dict(now=files.digest(cells), worth=ran)


def same_as_course(fresh, copy):
    """Does the copy say what the course says?"""
    theirs = state(copy.read_bytes(), copy.name)
    return bool(theirs) and theirs["now"] == state(fresh, copy.name)["now"]


def write(copy, content):
    copy.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(copy, with_kernel(content) if copy.suffix == ".ipynb" else content)


def with_kernel(content):
    """A notebook that names this machine's kernel. JupyterLab would write that into it as soon as
    the kernel answers, and the tab would count as unsaved before anybody has typed."""
    from ipykernel.ipkernel import IPythonKernel  # slow imports, for new copies alone
    from jupyter_client.kernelspec import get_kernel_spec

    spec = get_kernel_spec(KERNEL)
    named = dict(display_name=spec.display_name, language=spec.language, name=KERNEL)
    book = json.loads(content)
    book["metadata"] |= dict(kernelspec=named, language_info=IPythonKernel.language_info)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def set_aside(copy):
    """Give the learner's copy a dated name beside it, one that nothing has yet; the name."""
    dated = f"{copy.stem}.{datetime.date.today().isoformat()}"
    ends = itertools.chain([""], (f"-{number}" for number in itertools.count(2)))
    aside = files.first_free(copy.with_name(f"{dated}{end}{copy.suffix}") for end in ends)
    with files.writing(copy):
        os.rename(copy, aside)
    return aside


# ---- all of them ---------------------------------------------------------------------------------


def noted(work):
    """{place: what its copy was made from}; empty where nobody noted it."""
    try:
        given = json.loads((work / GIVEN).read_bytes())
    except (OSError, ValueError):
        return {}
    return given if isinstance(given, dict) else {}


def note(work, given):
    files.write_whole(work / GIVEN, json.dumps(given, indent=1) + "\n")


def check(work, places):
    """Nothing but folders and files of its own is written to: not what a link leads to."""
    refuse(work, "a folder")
    for place in places:
        refuse((work / place).parent, "a folder")
        refuse(work / place, "a file")
    refuse(work / GIVEN, "a file")


def refuse(path, wanted):
    kind = files.kind_of(path)
    if kind not in ("", wanted):
        where = "/".join(path.parts[-2:]) if wanted == "a file" else f"{path.name}/"
        raise ValueError(f"wanted {wanted} at {where}, got {kind}: move it away, then try again")


# ---- the command ---------------------------------------------------------------------------------


def named(word):
    """The copy that a learner means by 04, 11a, 04_resformer, or by its place in work/."""
    if word in sources(CHECKOUT):
        return word
    ours = numbered(CHECKOUT / "notebooks")
    meant = [path for path in ours if word in (path.stem.split("_")[0], path.stem)]
    if not meant:
        numbers = ", ".join(path.stem.split("_")[0] for path in ours)
        raise ValueError(
            f"wanted a notebook, one of {numbers}, or a file of work/, got {word!r}: NOTEBOOK=04, "
            f"or NOTEBOOK=slides/{ours[0].name}"
        )
    return meant[0].name


def news(happened):
    """What a learner is told of an update: a line for each kind of news."""
    new = sum(what == "new" for _, what in happened)
    what = "notebooks, decks and homework: yours to change, git ignores them"
    lines = [f"work/ has {new} new files, {what}"] if new else []
    lines += [f"work/{place} is {what}" for place, what in happened if what.startswith("renewed")]
    for place, what in happened:
        if what == "kept":
            lines.append(f"you changed work/{place}, and the course has a newer one: {way(place)}")
    return lines


def way(place):
    """How a learner gets the course's own, where hers is kept."""
    folder, _, name = place.rpartition("/")
    short, _, rest = (folder or name).partition("_")
    asked = f"HW={short}" if name == f"{rest}.py" else f"NOTEBOOK={place if folder else short}"
    return f"yours is kept, and `make reset {asked}` gets that one, with yours beside it"


@command("course.work", __doc__)
def main(parser, argv):
    parser.add_argument("--reset", metavar="NOTEBOOK", help="a fresh copy of one, such as 04")
    asked, work = parser.parse_args(argv), CHECKOUT / "work"
    if asked.reset is None:
        print("\n".join(news(update(CHECKOUT, work))) or "work/ is up to date")
        return
    place = named(asked.reset)
    aside = reset(CHECKOUT, work, place)
    also = f"; yours is now {aside.name} beside it" if aside else ""
    print(f"work/{place} is as the course has it{also}")


if __name__ == "__main__":
    main()
