"""Where does the text come from? Corpora by name, and what is held out of them."""

import re
from dataclasses import replace
from pathlib import Path

from minimal.data.documents import books, books_folder, files, path_corpus, python_tree, stdlib
from minimal.data.files import DataError
from minimal.data.hub import HUB, Hub, materialise, weights


# ---- by name --------------------------------------------------------------------------------------------------------
def find(name="auto", tokens=None, mix=None):
    """The corpus of this name: one of `known()`, the path of a text file or folder, python:DIR, or
    hub:NAME[:COLUMN[:CONFIG]]. Only names that say so reach for the network, for about `tokens` tokens (10 million)."""
    name = str(name)
    book = books_folder() / "war-and-peace.txt"
    if name == "auto":
        name = "war-and-peace" if book.is_file() else "stdlib"
    hub = HUB.get(name)
    if name.startswith("hub:"):
        path, column, config, *_ = [*name[4:].split(":"), "", ""]
        hub = Hub(path, config or None, column or "text")
    if mix:
        if not (hub and hub.domain):
            raise DataError(
                f"corpus {name} has no domains to mix: leave mix out, or take slimpajama"
            )
        hub = replace(hub, mix=weights(mix))
    if name == "war-and-peace" and book.is_file():
        return files(name, [book])
    if hub:
        return materialise(name, hub, tokens or 10_000_000)
    if name in ("stdlib", "books"):
        return {"stdlib": stdlib, "books": books}[name]()
    if name.startswith("python:"):
        root = Path(name[7:]).expanduser()
        return python_tree(f"python:{root.resolve().name}", root)
    if Path(name).expanduser().exists() or re.search(r"[/\\.~]", name):
        return path_corpus(Path(name).expanduser())
    raise DataError(
        f"unknown corpus {name!r}: one of {', '.join(known())} (there is no file or folder of that name in {Path.cwd()})"
    )


def known():
    return [
        "auto",
        "stdlib",
        "books",
        *HUB,
        "a text file or folder",
        "python:DIR",
        "hub:NAME[:COLUMN[:CONFIG]]",
    ]
