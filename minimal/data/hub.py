"""How does text come from the network? Through `datasets`, streaming, into a file of the cache."""

import logging
import re
import shutil
import urllib.request
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Callable

from minimal.data.documents import EVERY, kept_corpus
from minimal.data.files import DataError, data_folder, digest, once


def without_licence(text):
    """The work between Project Gutenberg's two marker lines."""
    text = re.split(r"\*\*\* ?START OF TH.*?\*\*\*", text.replace("\r\n", "\n"), maxsplit=1)[-1]
    return re.split(r"\*\*\* ?END OF TH", text, maxsplit=1)[0].strip() + "\n"


@dataclass(frozen=True)
class Hub:
    """What `datasets` must be told.

    `valid` is the split that the source itself holds out; None: we cut blocks.
    """

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
    "climbmix": Hub(
        "karpathy/climbmix-400b-shuffle",
        valid="validation",
        files={"train": "shard_0[0-5]*.parquet", "validation": "shard_06542.parquet"},
    ),
    # a random sample of SlimPajama-627B, which itself is not always to be had; the weights are
    # ResFormer's, Table 2
    "slimpajama": Hub(
        "DKYoon/SlimPajama-6B",
        valid="validation",
        domain=("meta", "redpajama_set_name"),
        mix={
            "CommonCrawl": 0.5,
            "C4": 0.2,
            "Github": 0.1,
            "Book": 0.05,
            "ArXiv": 0.05,
            "Wikipedia": 0.05,
            "StackExchange": 0.05,
        },
    ),
    "wikipedia": Hub("wikimedia/wikipedia", "20231101.en"),
    "fineweb": Hub("HuggingFaceFW/fineweb", "sample-10BT"),
    "war-and-peace": Hub(
        "text",
        files={"train": "https://www.gutenberg.org/cache/epub/2600/pg2600.txt"},
        options={"sample_by": "document"},
        clean=without_licence,
    ),
}

CHARACTERS_PER_TOKEN = 5  # a little more than a vocabulary of 32,768 packs into a token

MOST_IN_VAIN = 100_000  # documents read in vain before a mix is called impossible


def fetched(place):
    """A web address as a file of the cache: `datasets` alone no longer reads plain https."""
    if not place.startswith("http"):
        return place

    def make(part):
        name = {"User-Agent": "minimal (a course on attention)"}
        asked = urllib.request.Request(place, headers=name)
        with urllib.request.urlopen(asked, timeout=30) as answer, open(part, "wb") as file:
            shutil.copyfileobj(answer, file)  # which ends without a word where the connection does
            wanted, got = answer.headers["Content-Length"], file.tell()
        if wanted is not None and got != int(wanted):
            raise DataError(f"wanted {int(wanted):,} bytes of {place}, got {got:,}: try again")

    return str(once(data_folder() / f"{digest(place)}{Path(place).suffix}", make))


def the_library(what):
    """`datasets`, which is an extra: nobody needs it for texts of this machine."""
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"{what} comes through `datasets`, which is not installed here: "
            "pip install 'minimal[hub]', or take what is on this machine"
        ) from error
    return datasets


def streamed_rows(name, hub, split):
    """The rows of one split, streaming. Whatever goes wrong on the way becomes one sentence."""
    # six lines about retries would stand before our one
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    datasets = the_library(f"corpus {name}")
    try:
        places = None
        if hub.files:
            places = {part: fetched(place) for part, place in hub.files.items()}
        yield from datasets.load_dataset(
            hub.path, hub.config, split=split, data_files=places, streaming=True, **hub.options
        )
    except Exception as error:  # no network, no such set, a gate: each library has its own class
        why = (str(error).strip() or "no reason given").splitlines()[0][:200]
        raise DataError(
            f"corpus {name} did not come through `datasets` ({type(error).__name__}: {why}): "
            "go online and try again, or take a corpus of this machine: stdlib, or the path of a "
            "text file"
        ) from error


def documents_of(name, hub, split):
    rows = streamed_rows(name, hub, split)
    if hub.mix:
        rows = mixed(name, rows, hub)
    for row in rows:
        if hub.column not in row:
            raise DataError(
                f"corpus {name} has no column {hub.column!r} but {', '.join(row)}: "
                f"write hub:{hub.path}:COLUMN"
            )
        text = hub.clean(row[hub.column] or "")
        if text.strip():
            yield text


def mixed(name, rows, hub):
    """Rows whose domains keep to the weights, by characters, at every point of the stream.

    A row is taken when its domain is not ahead of its share. (Some domain never is, so the stream
    moves on.)
    """
    share = {domain: weight / sum(hub.mix.values()) for domain, weight in hub.mix.items()}
    taken = dict.fromkeys(share, 0)  # characters
    vain = 0
    for row in rows:
        place = row
        for key in hub.domain:
            place = place[key]
        domain, total = place.removeprefix("RedPajama"), sum(taken.values())
        if domain in share and taken[domain] <= share[domain] * total:
            taken[domain] += len(row.get(hub.column) or "")
            vain = 0
            yield row
            continue
        vain += 1
        if vain >= MOST_IN_VAIN:
            late = [domain for domain in share if taken[domain] <= share[domain] * total]
            raise DataError(
                f"corpus {name}: {MOST_IN_VAIN:,} documents and none from {' or '.join(late)}: "
                "take another corpus, or a domain that it has, as in slimpajama:C4"
            )


def materialise(name, hub, tokens):
    """Enough of a streamed corpus for `tokens` training tokens: read once, the same ever after."""
    characters = CHARACTERS_PER_TOKEN * tokens
    wanted = {"train": (hub.train, characters)}
    if hub.valid:
        wanted["valid"] = hub.valid, characters // (EVERY - 1)
    parts = {part: partial(some_documents, name, hub, *what) for part, what in wanted.items()}
    return kept_corpus(name, digest(repr(hub), characters), parts)


def some_documents(name, hub, split, limit):
    """The documents of a split, up to `limit` characters in all."""
    from tqdm.auto import tqdm

    with tqdm(
        total=limit, desc=f"{name} {split}", unit="char", unit_scale=True, disable=None
    ) as bar:
        for text in documents_of(name, hub, split):
            text = text[:limit]
            yield text
            bar.update(len(text))
            limit -= len(text)
            if not limit:
                return
