"""Where does the text come from? Corpora by name, and what is held out of them."""

import re
from dataclasses import replace
from pathlib import Path

from minimal.data.documents import books, books_folder, files, path_corpus, python_tree, stdlib
from minimal.data.files import DataError
from minimal.data.hub import HUB, Hub, materialise
from minimal.data.manual import manual


def find(name="auto", tokens=None):
    """The corpus of this name: one of `known()`.

    A name that says so, and no other, reaches for the network, for about `tokens` tokens (10
    million).
    """
    name = str(name)
    if name == "auto":
        name = "war-and-peace" if war_and_peace().is_file() else "stdlib"
    for finder in FINDERS:
        found = finder(name)
        if found:
            return found
    hub = hub_of(name)
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


# name -> Corpus, or None: whoever has texts of another kind adds a function here
FINDERS = []

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


def hub_of(name):
    """What `datasets` must be told for this name; None if it is no such name."""
    if name.startswith("hub:"):
        path, column, config, *_ = [*name.removeprefix("hub:").split(":"), "", ""]
        if not path:
            raise DataError(f"wanted hub:NAME, as in hub:roneneldan/TinyStories, got {name}")
        return Hub(path, config or None, column or "text")
    set_, _, domain = name.partition(":")
    hub = HUB.get(set_)
    if domain:
        return replace(hub, mix={domain: 1}) if hub and domain in (hub.mix or ()) else None
    return hub


def known():
    return [
        "auto",
        *LOCAL,
        *HUB,
        "slimpajama:DOMAIN",
        "books:TITLE",
        "a text file or folder",
        "python:DIR",
        "hub:NAME[:COLUMN[:CONFIG]]",
    ]
