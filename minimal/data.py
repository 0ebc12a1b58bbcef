"""How does text become batches? The tokenizer, packing, batches as a function of (seed, step), and bits per byte.

    python -m minimal.data --corpus war-and-peace --vocab 1024 --context 128
"""

import argparse
import json
import math
import sys
import time
from bisect import bisect_right, insort
from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view

from minimal import corpora
from minimal.store import DataError, once, short

# ---- tokenizer ------------------------------------------------------------------------------------------------------

BOS = "<|bos|>"
SMALLEST = 258  # BOS, the 256 bytes, and one merge
SPLIT = "|".join((  # what a token may not reach across; GPT-4's rule, with numbers cut into one or two digits
    r"'(?i:[sdmt]|ll|ve|re)",  # the ends of English contractions
    r"[^\r\n\p{L}\p{N}]?\p{L}+",  # a word, with the one space or sign before it
    r"\p{N}{1,2}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",  # signs, with the line ends that follow
    r"\s*[\r\n]+",
    r"\s+(?!\S)",  # spaces, less the one that belongs to the next word
    r"\s+",
))
CROP, SAMPLE = 10_000, 20_000_000  # characters a document in a round, and in all, that the tokenizer learns from


class Tokenizer:
    """Byte-level BPE: any text comes back as it was. `bytes` is the length of every token in raw bytes, 0 for BOS."""

    def __init__(self, text):
        import tokenizers
        self.text, self.raw = text, tokenizers.Tokenizer.from_str(text)  # the text of a tokenizer.json
        self.raw.encode_special_tokens = True  # "<|bos|>" in a text is text: only packing writes the token
        self.vocab = self.raw.get_vocab_size()
        names = [self.raw.id_to_token(i) for i in range(self.vocab)]
        self.bos = names.index(BOS)
        # In a byte-level name one character stands for one byte. Measuring the decoded token instead would count half
        # a character as U+FFFD, three bytes, and so flatter the model.
        self.bytes = np.array([0 if name == BOS else len(name) for name in names])  # (V,)
        self.fingerprint = short(SPLIT, names)

    def encode(self, text):
        return self.raw.encode(text, add_special_tokens=False).ids

    def encode_all(self, texts):
        """The same for many texts, on all cores."""
        return [encoding.ids for encoding in self.raw.encode_batch_fast(texts, add_special_tokens=False)]

    def decode(self, ids):
        return self.raw.decode([int(i) for i in ids])


def tokenizer(corpus, vocab=1024):
    """The tokenizer of this corpus with `vocab` tokens, BOS included; learned once, from training text only."""
    if vocab < SMALLEST:
        raise DataError(f"vocab {vocab} is too small: {SMALLEST} holds BOS, the 256 bytes and one merge; ask for more")
    folder = once(corpus.folder / f"tokenizer-{vocab}", lambda part: _learn(corpus, vocab, part))
    return Tokenizer((folder / "tokenizer.json").read_text(encoding="utf-8"))


def _learn(corpus, vocab, folder):
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    raw.decoder = decoders.ByteLevel()
    raw.train_from_iterator(_sample(corpus), trainers.BpeTrainer(
        vocab_size=vocab, special_tokens=[BOS], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    if raw.get_vocab_size() < vocab:
        raise DataError(f"corpus {corpus.name} is too short for {vocab} tokens: its pairs run out at "
                        f"{raw.get_vocab_size()}; ask for a smaller vocab or give more text")
    folder.mkdir()
    raw.save(str(folder / "tokenizer.json"))


def _sample(corpus):
    """The first 10,000 characters of every document, then the next of every one, up to 20 million: of many short
    documents this is the usual crop, and one long novel is still read whole."""
    room = SAMPLE
    for start in count(step=CROP):
        pieces = (text[start:start + CROP] for text in corpus.documents("train"))
        before = room
        for piece in filter(None, pieces):
            yield piece[:room]
            room -= len(piece)
            if room <= 0:
                return
        if room == before:
            return


def check_vocab(tok, model_vocab):
    """A tokenizer and a model that belong together."""
    if tok.vocab != model_vocab:
        raise DataError(f"the tokenizer has {tok.vocab} tokens, the model {model_vocab}: "
                        "make the tokenizer with the model's vocabulary, or the model with the tokenizer's")


# ---- packing --------------------------------------------------------------------------------------------------------

def pack(corpus, tok, context=128, how="stream", tokens=None):
    """Rows of context + 1 tokens for training and validation; `tokens` caps the training rows.

    stream   the documents one after the other, BOS before each. Rows start every `context` tokens and so share one
             token with their neighbour: every token is predicted exactly once an epoch (the very first, and a tail
             shorter than a row, never); rows that shared none would never predict their own first token.
    bestfit  whole documents fitted into rows, and cropped where none fits: see `fit`.
    Validation is always packed as a stream: all held-out text is scored, and the two packings can be compared.
    """
    if how not in ("stream", "bestfit"):
        raise DataError(f'unknown packing {how!r}: "stream", or "bestfit" for corpora of short documents')
    train, held, about = _tokens(corpus, tok)
    cropped, stride = 0.0, context
    if how == "bestfit":
        train, cropped = _fitted(corpus, tok, context, train)
        stride = context + 1
        print(f"bestfit: {cropped:.1%} of the training tokens cropped")
    rows = _rows(corpus, "train", train, context, stride)
    if tokens is not None:
        if tokens < context:
            raise DataError(f"tokens {tokens} is less than one row of {context}: ask for more")
        rows = rows[:tokens // context]
    return Dataset(rows, _rows(corpus, "valid", held, context, context), context, cropped, about,
                   short(corpus.fingerprint, tok.fingerprint, how, context, len(rows)))


def _rows(corpus, part, flat, context, stride):
    """A view of a token file as rows; nothing is copied until a batch is."""
    if len(flat) <= context:
        raise DataError(f"corpus {corpus.name} is too short: {len(flat)} tokens for {part}, and one row takes "
                        f"{context + 1}; give more text (held-out text starts after 96,000 characters) "
                        "or a smaller context")
    return sliding_window_view(flat, context + 1)[::stride]  # (rows, T+1)


def _tokens(corpus, tok):
    """Both parts of the corpus as flat token files, and what is known about them."""
    kind = np.uint16 if tok.vocab <= 1 << 16 else np.uint32

    def make(folder):
        folder.mkdir()
        about = {}
        for part in ("train", "valid"):
            documents = tokens = size = 0
            with open(folder / f"{part}.bin", "wb") as file:
                for texts in _portions(corpus.documents(part)):
                    documents += len(texts)
                    size += sum(len(text.encode()) for text in texts)
                    for ids in tok.encode_all(texts):
                        file.write(np.array([tok.bos, *ids], kind).tobytes())
                        tokens += 1 + len(ids)
            about[part] = dict(documents=documents, tokens=tokens, bytes=size)
        (folder / "about.json").write_text(json.dumps(about))

    folder = once(corpus.folder / f"stream-{tok.fingerprint}", make)
    about = json.loads((folder / "about.json").read_text())
    return *(_open(folder / f"{part}.bin", kind, about[part]["tokens"]) for part in ("train", "valid")), about


def _open(path, kind, length):
    if path.stat().st_size != length * kind().itemsize:
        raise DataError(f"{path} is damaged ({path.stat().st_size} bytes for {length} tokens): delete its folder")
    return np.memmap(path, kind, mode="r") if length else np.empty(0, kind)


def _portions(documents, characters=2_000_000):
    """Lists of documents, each of about this many characters: enough for all cores, little for the memory."""
    texts, size = [], 0
    for text in documents:
        texts.append(text)
        size += len(text)
        if size >= characters:
            yield texts
            texts, size = [], 0
    if texts:
        yield texts


def _fitted(corpus, tok, context, flat):
    """The bestfit rows of a flat token file, end to end, and the share of tokens that they lost."""
    def make(folder):
        folder.mkdir()
        starts = np.flatnonzero(flat == tok.bos)
        documents = (flat[a:b] for a, b in zip(starts, [*starts[1:], len(flat)]))
        with open(folder / "train.bin", "wb") as file:
            tokens = sum(file.write(row.tobytes()) for row in fit(documents, context + 1)) // flat.itemsize
        cropped = 1 - tokens / max(len(flat), 1)
        if cropped > 0.5:
            raise DataError(f"bestfit at context {context} would crop {cropped:.0%} of corpus {corpus.name}, whose "
                            "documents are longer than a row: pack it as a stream, or take a longer context")
        (folder / "about.json").write_text(json.dumps(dict(tokens=tokens, cropped=cropped)))

    folder = once(corpus.folder / f"bestfit-{context}-{tok.fingerprint}", make)
    about = json.loads((folder / "about.json").read_text())
    return _open(folder / "train.bin", flat.dtype.type, about["tokens"]), about["cropped"]


def fit(documents, room, buffer=1000):
    """Rows of exactly `room` tokens (nanochat's best fit): from the next 1,000 documents the longest that still fits
    goes in; when none fits, the shortest is cropped to fill the row and its rest thrown away. No padding."""
    documents = enumerate(documents)
    waiting = []  # (length, -number, tokens), in order: of equals the first read goes first
    row, free = [], room
    while True:
        while len(waiting) < buffer and (following := next(documents, None)):
            number, tokens = following
            insort(waiting, (len(tokens), -number, tokens), key=lambda entry: entry[:2])
        if not waiting:
            return  # a last row that is not full is lost too
        at = bisect_right(waiting, free, key=lambda entry: entry[0]) - 1
        length, _, tokens = waiting.pop(max(at, 0))
        row.append(tokens[:free])
        free -= min(length, free)
        if not free:
            yield np.concatenate(row)
            row, free = [], room


# ---- batches --------------------------------------------------------------------------------------------------------

@lru_cache(maxsize=4)
def permutation(rows, seed, epoch):
    """The order of the rows in one epoch. RandomState is the generator that NumPy promises never to change."""
    return np.random.RandomState([seed, epoch]).permutation(rows)


def _pair(rows):
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
        """(inputs, targets) of a step: a pure function of its arguments, so a resumed run needs no data state.
        Ranks take turns: together they hold the rows that one process would."""
        if batch % world:
            raise DataError(f"a batch of {batch} does not split over {world} processes: choose a multiple")
        rows = len(self.train)
        places = range(step * batch + rank, (step + 1) * batch, world)
        return _pair(self.train[[permutation(rows, seed, place // rows)[place % rows] for place in places]])

    def valid(self, batch=16, rows=None):
        """Held-out (inputs, targets); `rows` takes that many, spread evenly over them. The last may be smaller."""
        total = len(self.held)
        chosen = np.arange(min(rows or total, total)) * total // min(rows or total, total)
        for at in range(0, len(chosen), batch):
            yield _pair(self.held[chosen[at:at + batch]])

    def epochs(self, steps, batch):
        """How often a run of this length sees every row."""
        return steps * batch / len(self.train)


# ---- bits per byte --------------------------------------------------------------------------------------------------

def nats_and_bytes(nats, targets, lengths):
    """(summed nats, summed bytes) over the targets that stand for bytes: not BOS, not the ignored (negative) ones.
    Sums, so that batches and processes can be added before they are divided."""
    lengths = torch.as_tensor(lengths, device=targets.device)  # (V,)
    weight = torch.where(targets >= 0, lengths[targets.clamp(min=0)], 0)  # (B, T)
    return (nats.cpu().double() * (weight > 0).cpu()).sum().item(), weight.sum().item()  # MPS has no float64


def bits_per_byte(nats, targets, lengths):
    """Loss that does not depend on the tokenizer: nats / (ln 2 * raw bytes)."""
    total, size = nats_and_bytes(nats, targets, lengths)
    if not size:
        raise DataError("no target stands for a byte: bits per byte needs some text among the targets")
    return total / (math.log(2) * size)


# ---- the table ------------------------------------------------------------------------------------------------------

def main(argv=None):
    ask = argparse.ArgumentParser(prog="python -m minimal.data", description="Prepare a corpus and say what it holds.")
    ask.add_argument("--corpus", default="auto", help=", ".join(corpora.known()))
    ask.add_argument("--vocab", type=int, default=1024)
    ask.add_argument("--context", type=int, default=128)
    ask.add_argument("--packing", default="stream", help="stream or bestfit")
    ask.add_argument("--tokens", type=int, help="training tokens; also how much of a streamed corpus is fetched")
    ask.add_argument("--mix", help="weights of slimpajama's domains, as C4=.7,Github=.3")
    asked = ask.parse_args(argv)
    start = time.perf_counter()
    try:
        corpus = corpora.find(asked.corpus, asked.tokens, asked.mix)
        tok = tokenizer(corpus, asked.vocab)
        ds = pack(corpus, tok, asked.context, asked.packing, asked.tokens)
    except DataError as error:
        sys.exit(f"data: {error}")
    both = {key: ds.about["train"][key] + ds.about["valid"][key] for key in ("documents", "tokens", "bytes")}
    for name, value in {
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint,
        "characters": f"{corpus.characters:,}",
        "documents": f"{corpus.texts:,} ({both['documents']:,} after the cut)",
        "tokens": f"{both['tokens']:,} of {tok.vocab:,} kinds (tokenizer {tok.fingerprint})",
        "bytes per token": f"{both['bytes'] / (both['tokens'] - both['documents']):.3f}",
        "rows train / valid": f"{len(ds.train):,} / {len(ds.held):,} of {ds.context} + 1 (data {ds.fingerprint})",
        "seconds": f"{time.perf_counter() - start:.1f}",
    }.items():
        print(f"{name:20}{value}")


if __name__ == "__main__":
    main()
