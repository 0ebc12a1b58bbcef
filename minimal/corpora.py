"""Where does the text come from? Corpora by name, and what is held out of them."""

import hashlib
import json
import logging
import os
import re
import shutil
import sysconfig
import urllib.request
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Callable

from minimal.store import DataError, cache, once, short, slug

BLOCK, EVERY = 4_000, 25  # every 25th block of 4,000 characters is held out


# ---- a corpus and its two parts -----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Corpus:
    """Documents in one fixed order. `own_valid` where the source publishes held-out text; else we cut it out."""

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
        return cache() / f"{slug(self.name)}-{self.fingerprint}"


def cut(documents, held):
    """The training text, or the held-out blocks, of documents laid end to end. Held-out text is spread over the whole
    corpus because its tail is another kind of text (War and Peace ends in an essay). A cut begins a new document."""
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


# ---- text on this machine -------------------------------------------------------------------------------------------

TEXT = (".txt", ".md", ".rst")
# Not prose about Python: tests and their fixtures, installed packages, tables of characters, what differs by machine.
NOT_SOURCE = re.compile(r"\..*|__pycache__|site-packages|dist-packages|tests?|test_.*|idlelib|lib2to3|encodings"
                        r"|config-.*|_sysconfigdata.*|sitecustomize\.py|usercustomize\.py")


def text_of(path):
    """A file's text with \\n line ends, or one sentence."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataError(f"{path} is binary or not UTF-8: wanted plain text; convert it or leave it out")
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
    """Every Python file under `root`, source and documentation strings. The order is that of the hashes of their paths:
    fixed everywhere, and so mixed that a stretch of the corpus is not all about one subject."""
    kept = []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not NOT_SOURCE.fullmatch(name)]
        kept += [Path(folder, name) for name in names if name.endswith(".py") and not NOT_SOURCE.fullmatch(name)]
    kept.sort(key=lambda path: short(path.relative_to(root).as_posix()))
    if not kept:
        raise DataError(f"no Python source under {root}: name a folder of .py files")
    return files(name, kept, skip_bad=True)


def stdlib():
    return python_tree("stdlib", Path(sysconfig.get_paths()["stdlib"]))


def path_corpus(path):
    if not path.exists():
        raise DataError(f"no file or folder {path}: give the path of a text file or of a folder of text files")
    if path.is_file():
        return files(path.stem, [path])
    paths = sorted(p for p in path.rglob("*") if p.suffix.lower() in TEXT and p.is_file())
    if not paths:
        raise DataError(f"no {', '.join(TEXT)} files in {path}: for Python sources say python:{path}")
    return files(path.resolve().name, paths)


def books_folder():
    return Path(os.environ.get("MINIMAL_DATA", "")) / "books"


def books():
    if not os.environ.get("MINIMAL_DATA") or not books_folder().is_dir():
        raise DataError("corpus books is the folder $MINIMAL_DATA/books: set MINIMAL_DATA to a folder that has one")
    return path_corpus(books_folder())


# ---- text through `datasets`, streaming -----------------------------------------------------------------------------

def without_licence(text):
    """The work between Project Gutenberg's two marker lines."""
    text = re.split(r"\*\*\* ?START OF TH.*?\*\*\*", text.replace("\r\n", "\n"), maxsplit=1)[-1]
    return re.split(r"\*\*\* ?END OF TH", text, maxsplit=1)[0].strip() + "\n"


@dataclass(frozen=True)
class Hub:
    """What `datasets` must be told. `valid`: the split the source itself holds out; None = we cut blocks."""

    path: str
    config: str | None = None
    column: str = "text"
    train: str = "train"
    valid: str | None = None
    files: dict | None = None
    options: dict = field(default_factory=dict)
    domain: tuple = ()  # where a row keeps its domain's name
    mix: dict | None = None  # domain -> weight
    clean: Callable = field(default=str, repr=False)


HUB = {
    "tinystories": Hub("roneneldan/TinyStories", valid="validation"),
    # 6,543 shuffled shards; the last one is the validation set of nanochat and of Bank of Values
    "climbmix": Hub("karpathy/climbmix-400b-shuffle", valid="validation",
                    files={"train": "shard_0[0-5]*.parquet", "validation": "shard_06542.parquet"}),
    # a random sample of SlimPajama-627B, which itself comes and goes; the weights are ResFormer's, Table 2
    "slimpajama": Hub("DKYoon/SlimPajama-6B", valid="validation", domain=("meta", "redpajama_set_name"),
                      mix={"CommonCrawl": .5, "C4": .2, "Github": .1, "Book": .05, "ArXiv": .05, "Wikipedia": .05,
                           "StackExchange": .05}),
    "wikipedia": Hub("wikimedia/wikipedia", "20231101.en"),
    "fineweb": Hub("HuggingFaceFW/fineweb", "sample-10BT"),
    "war-and-peace": Hub("text", files={"train": "https://www.gutenberg.org/cache/epub/2600/pg2600.txt"},
                         options={"sample_by": "document"}, clean=without_licence),
}
CHARACTERS_PER_TOKEN = 5  # a little more than a vocabulary of 32,768 packs into a token
PATIENCE = 100_000  # documents read in vain before a mix is called impossible


def fetched(place):
    """A web address as a file of the cache: `datasets` alone no longer reads plain https."""
    if not place.startswith("http"):
        return place

    def make(part):
        asked = urllib.request.Request(place, headers={"User-Agent": "minimal (a course on attention)"})
        with urllib.request.urlopen(asked, timeout=30) as answer, open(part, "wb") as file:
            shutil.copyfileobj(answer, file)
    return str(once(cache() / f"{short(place)}{Path(place).suffix}", make))


def rows_of(name, hub, split):
    """The rows of one split, streaming. Whatever goes wrong on the way here becomes one sentence."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # six lines about retries before our one
    try:
        import datasets
        places = {part: fetched(place) for part, place in hub.files.items()} if hub.files else None
        yield from datasets.load_dataset(hub.path, hub.config, split=split, data_files=places, streaming=True,
                                         **hub.options)
    except Exception as error:  # no network, no such set, a gate, a server error: each library has its own class
        why = (str(error).strip() or "no reason given").splitlines()[0][:200]
        raise DataError(f"corpus {name} did not come through `datasets` ({type(error).__name__}: {why}): "
                        "go online and try again, or take a corpus of this machine: stdlib, or the path of a text file"
                        ) from error


def documents_of(name, hub, split):
    rows = rows_of(name, hub, split)
    if hub.mix:
        rows = mixed(name, rows, hub)
    for row in rows:
        if hub.column not in row:
            raise DataError(f"corpus {name} has no column {hub.column!r} but {', '.join(row)}: "
                            f"write hub:{hub.path}:COLUMN")
        text = hub.clean(row[hub.column] or "")
        if text.strip():
            yield text


def mixed(name, rows, hub):
    """Rows whose domains keep to the weights, by characters, at every point of the stream: a row is taken when its
    domain is not ahead of its share. (Some domain never is, so the stream moves on.)"""
    share = {domain: weight / sum(hub.mix.values()) for domain, weight in hub.mix.items()}
    taken, vain = dict.fromkeys(share, 0), 0
    for row in rows:
        place = row
        for key in hub.domain:
            place = place[key]
        domain, total = place.removeprefix("RedPajama"), sum(taken.values())
        if domain in share and taken[domain] <= share[domain] * total:
            taken[domain] += len(row.get(hub.column) or "")
            vain = 0
            yield row
        elif (vain := vain + 1) >= PATIENCE:
            late = [domain for domain in share if taken[domain] <= share[domain] * total]
            raise DataError(f"corpus {name}: {PATIENCE:,} documents and none from {' or '.join(late)}: change mix")


def materialise(name, hub, tokens):
    """Enough of a streamed corpus for `tokens` training tokens, in a cache file: read once, the same ever after."""
    from tqdm.auto import tqdm
    characters = CHARACTERS_PER_TOKEN * tokens
    wanted = {"train": (hub.train, characters)}
    if hub.valid:
        wanted["valid"] = hub.valid, characters // (EVERY - 1)

    def lines(folder, part):
        def read():
            with open(folder / f"{part}.jsonl", encoding="utf-8") as file:
                yield from map(json.loads, file)
        return read

    def make(folder):
        folder.mkdir()
        for part, (split, limit) in wanted.items():
            bar = tqdm(total=limit, desc=f"{name} {part}", unit="char", unit_scale=True, disable=None)
            with open(folder / f"{part}.jsonl", "w", encoding="utf-8") as file, bar:
                for text in documents_of(name, hub, split):
                    text = text[:limit]
                    file.write(json.dumps(text, ensure_ascii=False) + "\n")
                    bar.update(len(text))
                    limit -= len(text)
                    if not limit:
                        break
        corpus = survey(name, *(lines(folder, part) for part in wanted))
        about = dict(fingerprint=corpus.fingerprint, characters=corpus.characters, texts=corpus.texts)
        (folder / "about.json").write_text(json.dumps(about))

    folder = once(cache() / f"{slug(name)}-{short(repr(hub), characters)}", make)
    about = json.loads((folder / "about.json").read_text())
    return Corpus(name, read=lines(folder, "train"), own_valid=lines(folder, "valid") if hub.valid else None, **about)


def weights(mix):
    """{"C4": .7, "Github": .3} from itself or from "C4=.7,Github=.3"."""
    try:
        pairs = mix.items() if isinstance(mix, dict) else (pair.split("=") for pair in mix.split(","))
        table = {domain.strip(): float(weight) for domain, weight in pairs}
        if min(table.values()) <= 0:
            raise ValueError
    except ValueError:
        raise DataError(f"mix {mix!r} is not a list of domains and positive weights: say C4=.7,Github=.3") from None
    return table


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
            raise DataError(f"corpus {name} has no domains to mix: leave mix out, or take slimpajama")
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
    raise DataError(f"unknown corpus {name!r}: one of {', '.join(known())} (there is no file or folder of that name in {Path.cwd()})")


def known():
    return ["auto", "stdlib", "books", *HUB, "a text file or folder", "python:DIR", "hub:NAME[:COLUMN[:CONFIG]]"]
