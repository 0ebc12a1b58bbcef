"""How does text become batches? Packing into rows, batches by (seed, step), and bits per byte.

python -m minimal.data --corpus war-and-peace --vocab 1024 --context 128
"""

import json
import math
from bisect import bisect_right, insort
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from minimal.data import corpora
from minimal.data.files import DataError, digest, once
from minimal.data.tokenizer import tokenizer


# ---- from a name to rows ------------------------------------------------------------------------
def prepare_text(name, vocab, context, how="stream", tokens=None):
    """(corpus, tokenizer, rows): find the text, learn its tokenizer, pack it; each is made once."""
    corpus = corpora.find(name, tokens)
    tok = tokenizer(corpus, vocab)
    return corpus, tok, pack(corpus, tok, context, how, tokens)


# ---- packing ------------------------------------------------------------------------------------
def pack(corpus, tok, context=128, how="stream", tokens=None):
    """Rows of context + 1 tokens for training and validation; `tokens` caps the training rows.

    stream   the documents one after the other, BOS before each. Rows start every `context` tokens
             and so share one token with their neighbour: every token is predicted exactly once an
             epoch (the very first, and a tail shorter than a row, never); rows that shared none
             would never predict their own first token.
    bestfit  whole documents fitted into rows, and cropped where none fits: see `best_fit`.

    Validation is always packed as a stream: all held-out text is scored, and the two packings can
    be compared.
    """
    if how not in ("stream", "bestfit"):
        raise DataError(
            f'unknown packing {how!r}: "stream", or "bestfit" for corpora of short documents'
        )
    if context < 1:
        raise DataError(f"context must be above 0, got {context}: ask for a row of some tokens")
    if tokens is not None and tokens < context:
        raise DataError(f"tokens {tokens} is less than one row of {context}: ask for more")

    # flat token files
    train, held, about = token_files(corpus, tok)
    cropped, stride = 0.0, context
    if how == "bestfit":
        train, cropped = fitted_file(corpus, tok, context, train)
        stride = context + 1
        print(f"bestfit: {cropped:.1%} of the training tokens cropped")

    # rows
    rows = overlapping_rows(corpus, "train", train, context, stride)
    if tokens is not None:
        rows = rows[: tokens // context]
    held_rows = overlapping_rows(corpus, "valid", held, context, context)
    fingerprint = digest(corpus.fingerprint, tok.fingerprint, how, context, len(rows))
    return Dataset(rows, held_rows, context, cropped, about, fingerprint)


def overlapping_rows(corpus, part, flat, context, stride):
    """A view of a token file as rows; nothing is copied until a batch is."""
    if len(flat) <= context:
        raise DataError(
            f"corpus {corpus.name} is too short: {len(flat)} tokens for {part}, and one row takes "
            f"{context + 1}; give more text (held-out text starts after 96,000 characters) "
            "or a smaller context"
        )
    return sliding_window_view(flat, context + 1)[::stride]  # (rows, T+1)


def token_files(corpus, tok):
    """Both parts of the corpus as flat token files, and what is known about them."""
    kind = np.uint16 if tok.vocab <= 1 << 16 else np.uint32

    def make(folder):
        folder.mkdir()
        about = {
            part: write_tokens(folder / f"{part}.bin", corpus.documents(part), tok, kind)
            for part in ("train", "valid")
        }
        (folder / "about.json").write_text(json.dumps(about))

    folder = once(corpus.folder / f"stream-{tok.fingerprint}", make)
    about = json.loads((folder / "about.json").read_text())
    train, held = (
        open_tokens(folder / f"{part}.bin", kind, about[part]["tokens"])
        for part in ("train", "valid")
    )
    return train, held, about


def write_tokens(path, documents, tok, kind):
    """A flat token file of these documents, BOS before each; and how many it holds of what."""
    count = tokens = size = 0
    with open(path, "wb") as file:
        for texts in portions(documents):
            count += len(texts)
            size += sum(len(text.encode()) for text in texts)
            for ids in tok.encode_all(texts):
                file.write(np.array([tok.bos, *ids], kind).tobytes())
                tokens += 1 + len(ids)
    return dict(documents=count, tokens=tokens, bytes=size)


def open_tokens(path, kind, length):
    """A token file as an array that is read from the disk, page by page."""
    size = path.stat().st_size
    if size != length * kind().itemsize:
        raise DataError(f"{path} is damaged ({size} bytes for {length} tokens): delete its folder")
    return np.memmap(path, kind, mode="r") if length else np.empty(0, kind)


def portions(documents, characters=2_000_000):
    """Lists of documents, each of about this many characters: enough for all cores to encode."""
    texts, size = [], 0
    for text in documents:
        texts.append(text)
        size += len(text)
        if size >= characters:
            yield texts
            texts, size = [], 0
    if texts:
        yield texts


def fitted_file(corpus, tok, context, flat):
    """The bestfit rows of a flat token file, end to end, and the share of tokens that they lost."""

    def make(folder):
        folder.mkdir()
        starts = np.flatnonzero(flat == tok.bos)
        documents = (flat[a:b] for a, b in zip(starts, [*starts[1:], len(flat)]))
        size = 0
        with open(folder / "train.bin", "wb") as file:
            for row in best_fit(documents, context + 1):
                size += file.write(row.tobytes())
        tokens = size // flat.itemsize
        cropped = 1 - tokens / max(len(flat), 1)
        if cropped > 0.5:
            raise DataError(
                f"bestfit at context {context} would crop {cropped:.0%} of corpus {corpus.name}, "
                "whose documents are longer than a row: pack it as a stream, or take a longer "
                "context"
            )
        (folder / "about.json").write_text(json.dumps(dict(tokens=tokens, cropped=cropped)))

    # 2: since the first read of the shortest is cropped, older files hold other rows
    folder = once(corpus.folder / f"bestfit-2-{context}-{tok.fingerprint}", make)
    about = json.loads((folder / "about.json").read_text())
    rows = open_tokens(folder / "train.bin", flat.dtype.type, about["tokens"])
    return rows, about["cropped"]


def best_fit(documents, room, buffer=1000):
    """Rows of exactly `room` tokens, as nanochat fits them; without padding.

    From the next 1,000 documents the longest that still fits goes in. When none fits, the shortest
    is cropped to fill the row, and its rest is thrown away. Of equals the first read goes first.
    """
    documents = enumerate(documents)
    waiting = []  # (length, -number, tokens), in order: of equals the first read stands last
    row, free = [], room
    while True:
        # read ahead
        while len(waiting) < buffer:
            number, tokens = next(documents, (None, None))
            if number is None:
                break
            insort(waiting, (len(tokens), -number, tokens), key=lambda entry: entry[:2])
        if not waiting:
            return  # a last row that is not full is lost too

        # take one
        length = max(free, waiting[0][0])  # where none fits: that of the shortest
        at = bisect_right(waiting, length, key=lambda entry: entry[0]) - 1
        length, _, tokens = waiting.pop(at)
        row.append(tokens[:free])
        free -= min(length, free)
        if not free:
            yield np.concatenate(row)
            row, free = [], room


# ---- batches ------------------------------------------------------------------------------------
@lru_cache(maxsize=4)
def permutation(rows, seed, epoch):
    """The order of the rows in one epoch, by the generator that NumPy promises never to change."""
    return np.random.RandomState([seed, epoch]).permutation(rows)


def inputs_and_targets(rows):
    rows = torch.from_numpy(rows.astype(np.int64))  # (B, T+1)
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()  # (B, T) each


@dataclass(frozen=True)
class Dataset:
    """Rows of tokens, and batches of them."""

    train: np.ndarray  # (rows, T+1)
    held: np.ndarray  # (rows, T+1)
    context: int
    cropped: float  # the share of training tokens that packing lost
    about: dict  # documents, tokens and bytes of "train" and "valid"
    fingerprint: str

    def batch(self, step, batch=16, seed=0, rank=0, world=1):
        """(inputs, targets) of a step: a pure function, so that a resumed run needs no data state.

        Ranks take turns: together they hold the rows that one process would.
        """
        if batch % world:
            raise DataError(
                f"a batch of {batch} does not split over {world} processes: choose a multiple"
            )
        rows = len(self.train)
        chosen = []
        for place in range(step * batch + rank, (step + 1) * batch, world):
            epoch, at = divmod(place, rows)
            chosen.append(permutation(rows, seed, epoch)[at])
        return inputs_and_targets(self.train[chosen])

    def valid(self, batch=16, rows=None):
        """Held-out (inputs, targets), of `rows` rows spread evenly. The last may be smaller."""
        total = len(self.held)
        wanted = min(rows or total, total)
        chosen = np.arange(wanted) * total // wanted
        for at in range(0, wanted, batch):
            yield inputs_and_targets(self.held[chosen[at : at + batch]])

    def epochs(self, steps, batch):
        """How often a run of this length sees every row."""
        return steps * batch / len(self.train)


# ---- bits per byte ------------------------------------------------------------------------------
def nats_and_bytes(nats, targets, lengths):
    """(summed nats, summed bytes) over the targets that stand for bytes.

    Those are not BOS and not the ignored (negative) ones. Sums, so that batches and processes can
    be added before they are divided.
    """
    lengths = torch.as_tensor(lengths, device=targets.device)  # (V,)
    weight = torch.where(targets >= 0, lengths[targets.clamp(min=0)], 0)  # (B, T)
    counted = nats.cpu().double() * (weight > 0).cpu()  # (B, T), there: MPS has no float64
    return counted.sum().item(), weight.sum().item()


def bits_per_byte(nats, targets, lengths):
    """Loss that does not depend on the tokenizer: nats / (ln 2 * raw bytes)."""
    total, size = nats_and_bytes(nats, targets, lengths)
    if not size:
        raise DataError(
            "no target stands for a byte: bits per byte needs some text among the targets"
        )
    return total / (math.log(2) * size)
