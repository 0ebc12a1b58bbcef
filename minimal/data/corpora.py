"""Where does the text come from? Corpora by name, and what is held out of them."""

import re
from dataclasses import replace
from pathlib import Path

from minimal.data.derived import PYTHON, RULES, derived
from minimal.data.documents import books, books_folder, files, path_corpus, python_tree, stdlib
from minimal.data.files import DataError
from minimal.data.hub import HUB, Hub, materialise, weights
from minimal.data.manual import manual


def find(name="auto", tokens=None, mix=None):
    """The corpus of this name: one of `known()`.

    A name that says so, and no other, reaches for the network, for about `tokens` tokens (10
    million).
    """
    name = str(name)
    if name == "auto":
        name = "war-and-peace" if war_and_peace().is_file() else "stdlib"
    if by_rule(name):
        text, _, rule = name.rpartition(":")
        return derived(find(text), rule)
    hub = hub_of(name, mix)
    if name == "war-and-peace" and war_and_peace().is_file():
        return files(name, [war_and_peace()])
    if hub:
        return materialise(name, hub, tokens or 10_000_000)
    if name in LOCAL:
        return LOCAL[name]()
    if name.startswith("books:"):
        return book(name)
    if name.startswith("python:"):
        root = Path(name.removeprefix("python:")).expanduser()
        return python_tree(f"python:{root.resolve().name}", root)
    if Path(name).expanduser().exists() or re.search(r"[/\\.~]", name):
        return path_corpus(Path(name).expanduser())
    raise DataError(
        f"unknown corpus {name!r}: one of {', '.join(known())} "
        f"(there is no file or folder of that name in {Path.cwd()})"
    )


LOCAL = dict(stdlib=stdlib, manual=manual, books=books)


def war_and_peace():
    return books_folder() / "war-and-peace.txt"


def book(name):
    """One book of the folder: books:dombey-and-son."""
    path = books_folder() / f"{name.removeprefix('books:')}.txt"
    if not path.is_file():
        titles = ", ".join(sorted(path.stem for path in books_folder().glob("*.txt")))
        raise DataError(
            f"no {path.name} in $MINIMAL_DATA/books ({titles or 'none'}): name a book it has"
        )
    return files(name, [path])


def by_rule(name):
    """Does this name ask for a text derived from another, of those on this machine?"""
    text, _, rule = name.rpartition(":")
    source = name.split(":")[0]
    if rule not in RULES or source not in ("stdlib", "books", "war-and-peace"):
        return False
    if rule in PYTHON and source != "stdlib":
        raise DataError(f"{rule} is a rule for Python, and {text} is prose: stdlib:{rule}")
    if source == "war-and-peace" and not war_and_peace().is_file():
        raise DataError(
            f"corpus {name} is derived from $MINIMAL_DATA/books/war-and-peace.txt: "
            "set MINIMAL_DATA to a folder that has it"
        )
    return True


def hub_of(name, mix=None):
    """What `datasets` must be told for this name, in this mix; None if it is no such name."""
    hub = HUB.get(name)
    if name.startswith("hub:"):
        path, column, config, *_ = [*name.removeprefix("hub:").split(":"), "", ""]
        if not path:
            raise DataError(f"wanted hub:NAME, as in hub:roneneldan/TinyStories, got {name}")
        hub = Hub(path, config or None, column or "text")
    if not mix:
        return hub
    if not (hub and hub.domain):
        raise DataError(f"corpus {name} has no domains to mix: leave mix out, or take slimpajama")
    return replace(hub, mix=weights(mix))


def known():
    return [
        "auto",
        *LOCAL,
        *HUB,
        "books:TITLE",
        f"one of these by a rule, as stdlib:RULE ({', '.join(RULES)})",
        "a text file or folder",
        "python:DIR",
        "hub:NAME[:COLUMN[:CONFIG]]",
    ]
