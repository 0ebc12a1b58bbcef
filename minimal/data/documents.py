"""What is a corpus? Documents in one fixed order, a fingerprint, and the part that is held out."""

import hashlib
import json
import os
import re
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

from minimal.data.files import DataError, data_folder, digest, once, slug

BLOCK, EVERY = 4_000, 25  # every 25th block of 4,000 characters is held out


@dataclass(frozen=True)
class Corpus:
    """Documents in one fixed order.

    `own_valid` reads the held-out text that the source publishes; where it is None, we cut it out.
    """

    name: str
    fingerprint: str  # of the text alone: the same book under another name is the same corpus
    characters: int
    texts: int  # documents before the cut
    read: Callable = field(repr=False)
    own_valid: Callable | None = field(default=None, repr=False)

    def documents(self, split):
        """The documents of "train" or "valid", as strings; the same ones at every call."""
        if split not in ("train", "valid"):
            raise DataError(f'unknown split {split!r}: "train" or "valid"')
        if self.own_valid:
            return self.read() if split == "train" else self.own_valid()
        return cut(self.read(), held=split == "valid")

    @property
    def folder(self):
        return data_folder() / f"{slug(self.name)}-{self.fingerprint}"


def cut(documents, held):
    """The training text, or the held-out blocks, of documents laid end to end.

    Held-out text is spread over the whole corpus because its tail is another kind of text (War and
    Peace ends in an essay). A cut begins a new document.
    """
    period, start = BLOCK * EVERY, 0
    for text in documents:
        at = 0
        while at < len(text):
            phase = (start + at) % period  # where in its 25 blocks this character stands
            inside = phase >= period - BLOCK
            end = at + (period if inside else period - BLOCK) - phase
            if inside == held:
                yield text[at:end]
            at = end
        start += len(text)


def survey(name, read, own_valid=None):
    """Read everything once: the corpus with its sizes and its fingerprint."""
    digest, characters, texts = hashlib.sha256(), 0, 0
    for part in filter(None, (read, own_valid)):
        digest.update(b"part")
        for text in part():
            raw = text.encode()
            digest.update(len(raw).to_bytes(8, "big") + raw)
            characters, texts = characters + len(text), texts + 1
    if not characters:
        raise DataError(f"corpus {name} is empty: give it a file or folder that holds text")
    return Corpus(name, digest.hexdigest()[:12], characters, texts, read, own_valid)


def kept_corpus(name, key, parts):
    """A corpus whose documents are made once, and then read from files of the cache: the `parts`
    "train" and, where the source holds text out, "valid", each a function. They hang on the key."""

    def make(folder):
        folder.mkdir()
        for part, documents in parts.items():
            with open(folder / f"{part}.jsonl", "w", encoding="utf-8") as file:
                for text in documents():
                    file.write(json.dumps(text, ensure_ascii=False) + "\n")
        made = survey(name, *(lines(folder / f"{part}.jsonl") for part in parts))
        about = {field: getattr(made, field) for field in ("fingerprint", "characters", "texts")}
        (folder / "about.json").write_text(json.dumps(about))

    folder = once(data_folder() / f"{slug(name)}-{key}", make)
    about = json.loads((folder / "about.json").read_text())
    train, *valid = (lines(folder / f"{part}.jsonl") for part in parts)
    return Corpus(name, **about, read=train, own_valid=valid[0] if valid else None)


def lines(path):
    """A function that reads a file of JSON strings, one a line."""

    def read():
        with open(path, encoding="utf-8") as file:
            yield from map(json.loads, file)

    return read


TEXT = (".txt", ".md", ".rst")

# Copies that an editor or Jupyter keeps: read as documents, they would put held-out text into
# training text.
HIDDEN = re.compile(r"\..*")

# Not prose about Python: tests and their fixtures, installed packages, tables of characters, and
# what differs from machine to machine.
NOT_SOURCE = re.compile(
    rf"{HIDDEN.pattern}|__pycache__|site-packages|dist-packages|tests?|test_.*|idlelib|lib2to3"
    r"|encodings|config-.*|_sysconfigdata.*|sitecustomize\.py|usercustomize\.py"
)


def files_below(root, left_out):
    """The files below a folder, whatever its own name, without those that have a name that is left
    out, or lie in a folder of such a name."""
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not left_out.fullmatch(name)]
        yield from (Path(folder, name) for name in names if not left_out.fullmatch(name))


def text_of(path):
    """A file's text with \\n line ends, or one sentence."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataError(
            f"{path} is binary or not UTF-8: wanted plain text; convert it or leave it out"
        )
    return text


def files(name, paths, skip_bad=False):
    """One file, one document; blank files are left out."""

    def read():
        for path in paths:
            try:
                text = text_of(path)
            except DataError:
                if not skip_bad:
                    raise
                continue
            if text.strip():
                yield text

    return survey(name, read)


def python_tree(name, root):
    """Every Python file under `root`, source and documentation strings.

    The order is that of the hashes of their paths: fixed everywhere, and so mixed that a stretch of
    the corpus is not all about one subject.
    """
    kept = [path for path in files_below(root, NOT_SOURCE) if path.name.endswith(".py")]
    kept.sort(key=lambda path: digest(path.relative_to(root).as_posix()))
    if not kept:
        raise DataError(f"no Python source under {root}: name a folder of .py files")
    return files(name, kept, skip_bad=True)


def stdlib():
    return python_tree("stdlib", Path(sysconfig.get_paths()["stdlib"]))


def path_corpus(path):
    if not path.exists():
        raise DataError(
            f"no file or folder {path}: give the path of a text file or of a folder of text files"
        )
    if path.is_file():
        return files(path.stem, [path])
    seen = files_below(path, HIDDEN)
    paths = sorted(p for p in seen if p.suffix.lower() in TEXT and p.is_file())
    if not paths:
        raise DataError(
            f"no {', '.join(TEXT)} files in {path}: for Python sources say python:{path}"
        )
    return files(path.resolve().name, paths)


def books_folder():
    return Path(os.environ.get("MINIMAL_DATA", "")) / "books"


def books():
    if not os.environ.get("MINIMAL_DATA") or not books_folder().is_dir():
        raise DataError(
            "corpus books is the folder $MINIMAL_DATA/books: "
            "set MINIMAL_DATA to a folder that has one"
        )
    return path_corpus(books_folder())
