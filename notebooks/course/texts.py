"""What does a notebook read, and what must a model beat on it?

book, tok, dataset = packed("auto", SIZES["tiny"])
single, pairs = counted(dataset, tok.vocab)          # notebook 00 writes these four lines
noise = in_random_order(dataset, seed=0)             # the same tokens, and nothing to learn
"""

import re
from dataclasses import replace

import numpy as np

from course import records
from minimal.data import corpora, packing
from minimal.data.documents import survey
from minimal.data.tokenizer import tokenizer


def packed(corpus, config):
    """(text, its tokenizer, its rows) for models of these sizes."""
    book = corpora.find(corpus)
    tok = tokenizer(book, config.vocab)
    return book, tok, packing.pack(book, tok, config.context)


def beginning(book, characters):
    """Its first characters alone, under its name."""

    def read():
        room = characters
        for text in book.read():
            yield text[:room]
            room -= len(text)
            if room <= 0:
                return

    return survey(book.name, read, book.own_valid)


def counted(dataset, vocab):
    """(V,) the share of every token in the training text, seen once more than it was; and (V, V)
    its share after each token, where that is rare mixed with its share alone."""
    stream = dataset.train[:, :-1].reshape(-1)  # (tokens,)
    times = np.bincount(stream, minlength=vocab) + 1.0  # (V,)
    single = times / times.sum()
    pairs = np.zeros((vocab, vocab))
    np.add.at(pairs, (stream[:-1], stream[1:]), 1)
    return single, (pairs + 50 * single) / (pairs.sum(1, keepdims=True) + 50)


def in_random_order(dataset, seed):
    """The training tokens of a dataset, shuffled: frequencies are left, and nothing else."""
    train = dataset.train
    order = np.random.RandomState(seed).permutation(train.size)
    return replace(dataset, train=train.reshape(-1)[order].reshape(train.shape))


def recorded_bits(book, vocab, plan="standard"):
    """Bits per byte of a plan's ten recorded runs on this text; [] where there are none, or of
    another vocabulary."""
    if vocab != 1024:
        return []
    for name in ("ten_seeds_code", "ten_seeds_novel"):
        evidence = records.read(name)
        if evidence["corpus"]["fingerprint"] == book.fingerprint:
            return [row["bpb"] for row in evidence["rows"] if row["plan"] == plan]
    return []


def readable_line(book, tok, shortest=30, longest=60, words=5):
    """The held-out line of so many letters that breaks into the longest tokens: an example of this
    text that can be read token by token."""
    lines = {line.strip() for text in book.documents("valid") for line in text.splitlines()}
    of_words = [line for line in lines if len(re.findall(r"[A-Za-z]{2,}", line)) >= words]
    some = sorted(line for line in of_words if shortest <= len(line) <= longest)
    if not some:
        raise ValueError(
            f"wanted a line of {shortest} to {longest} letters, got none in {book.name}"
        )
    return max(some, key=lambda line: len(line) / len(tok.encode(line)))
