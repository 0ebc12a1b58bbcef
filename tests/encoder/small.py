"""A small encoder, and a text in which some words always follow others: what these tests share."""

import torch

from minimal.encoder import bert
from minimal.model.config import Config

TINY = Config(2, 32, 2, 64, 400, style="bert", windows="L", dropout=0.1)

WORDS = (
    "the river rises near a mill and falls past the town where old people sleep while cats watch "
    "boats go by"
).split()


def encoder(vocab, plan="standard", **changes):
    return bert.build(plan, TINY.but(vocab=vocab, **changes))


def river():
    """200,000 characters."""
    random = torch.Generator().manual_seed(0)
    starts = torch.randint(len(WORDS), (12_000,), generator=random).tolist()
    return " ".join(f"{WORDS[i]} {WORDS[(i + 1) % 20]} {WORDS[(i + 2) % 20]}." for i in starts)
