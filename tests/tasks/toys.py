"""Models whose answers are known, a tokenizer, items of every kind: what the tests of CORE and bits
per byte share."""

import argparse
import functools
import json
import random

import pytest
import torch

from minimal.data import corpora
from minimal.data import tokenizer as tokenizers
from minimal.tasks.core_tasks import LM, MC, TASKS

TASK = {task.label: task for task in TASKS}


def public_items(data, task):
    """The folder of the public items, of which some are not everywhere."""
    if not (data / "core" / f"{task.file}.jsonl").is_file():
        pytest.skip(f"the public file of {task.label} is not there")
    return data / "core"


@functools.cache
def tokenizer(vocab=512):
    return tokenizers.tokenizer(corpora.find(argparse.__file__), vocab)


class History:
    """The cache of a model that only needs to know what it has read."""

    def __init__(self, ids=None):
        self.ids = ids

    def expand(self, n):
        return History(self.ids.expand(n, -1))


class Knows(torch.nn.Module):
    """A model with the interface of ours whose logits are a function of all ids so far: tell(ids)
    -> (B, S, V)."""

    def __init__(self, tell, vocab=512, context=10**9):
        super().__init__()
        self.tell, self.read, self.device = tell, 0, torch.device("cpu")
        self.config = argparse.Namespace(vocab=vocab, context=context)

    def forward(self, ids, cache=None):
        self.read += ids.numel()
        if cache is None:
            return self.tell(ids)
        cache.ids = ids if cache.ids is None else torch.cat([cache.ids, ids], 1)
        return self.tell(cache.ids)[:, -ids.shape[1] :]

    def cache(self):
        return History()


def uniform(vocab=512):
    return lambda ids: torch.zeros(*ids.shape, vocab)


def constant(token, logit, vocab=512):
    def tell(ids):
        z = torch.zeros(*ids.shape, vocab)
        z[..., token] = logit
        return z

    return tell


def oracle(rows, vocab=512):
    """Predicts the next token of whichever known row begins as the text does; knows nothing where
    none does."""
    rows = [torch.tensor(row) for row in rows]

    def tell(ids):
        z = torch.zeros(*ids.shape, vocab)
        for b, text in enumerate(ids):
            for row in rows:
                n = min(len(row), len(text))
                alike = int((row[:n] == text[:n]).long().cumprod(0).sum())
                places = torch.arange(min(alike, len(row) - 1))
                z[b, places, row[places + 1]] = 50.0
        return z

    return tell


def words(rng, n):
    return " ".join("".join(rng.choices("aeioubdklmnrst", k=rng.randint(2, 6))) for _ in range(n))


def item(task, rng):
    """One item in the layout of the public files; choices differ in their first letter and in
    length."""
    if task.kind == LM:
        return dict(
            context=words(rng, 6) + rng.choice(["", " ", "\n"]),
            continuation=words(rng, rng.randint(1, 3)),
        )
    letters = rng.sample("abcdefgh", 2 if task.chance > 0.4 else 4)
    options = [letter + words(rng, rng.randint(1, 4)) for letter in letters]
    gold = rng.randrange(len(options))
    if task.kind == MC:
        return dict(query=words(rng, 5), choices=options, gold=gold)
    contexts = [words(rng, 3) + " " + option for option in options]
    return dict(context_options=contexts, continuation=words(rng, 4) + ".", gold=gold)


def write_items(folder, n=30, tasks=TASKS):
    rng = random.Random(0)
    for task in tasks:
        lines = [json.dumps(item(task, rng)) for _ in range(n)]
        (folder / f"{task.file}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
