"""A made-up text in which something is computed, then fetched; and small models that read it.

A text is records of a key and two symbols, then questions: a key, and the answer that belongs to
it. The answer is a symbol as it stood (`raw`), or f(a, b), a Latin square: neither a nor b alone
says anything of it. In `open` records the key comes first, so the places of a and b know it and a
question can find both. In `closed` records it comes last: they cannot.
"""

from dataclasses import dataclass
from functools import partial

import torch

from minimal.model.config import Config
from minimal.model.pieces import V1, X0
from minimal.model.plan import LayerPlan, Plan
from minimal.model.values import Own, Table
from minimal.variants import build

STEPS, BATCH, RATE = 1500, 64, 3e-3


# ---- the text ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MadeUpText:
    """Tokens are symbols, then keys, the token that ends the records, and the blank."""

    symbols: int = 3
    keys: int = 4
    records: int = 2
    blanks: int = 0  # between the records of a text, anywhere: they move the records
    symmetric: bool = False  # f(a, b) = f(b, a): a place can compute it from a sum of both

    @property
    def ask(self):
        return self.symbols + self.keys

    @property
    def told(self):
        """How many places the records take."""
        return 3 * self.records + self.blanks

    @property
    def length(self):
        return self.told + 1 + 2 * self.records

    @property
    def vocabulary(self):
        return self.ask + 1 + (self.blanks > 0)


STILL = MadeUpText()
MOVING = MadeUpText(symbols=5, records=3, blanks=3, symmetric=True)
KINDS = ("raw", "open", "closed")


def square(text=STILL):
    """f as a table (a, b) -> answer: addition, all names shuffled. A Latin square."""
    shuffled = torch.Generator().manual_seed(8)
    a, b, c = (torch.randperm(text.symbols, generator=shuffled) for _ in range(3))
    if text.symmetric:
        b = a
    return c[(a[:, None] + b[None, :]) % text.symbols]


def made_texts(kind, count, random, text=STILL):
    """(ids, targets), both (count, T): targets are answers at the keys of questions, else -1."""
    rows = torch.arange(count)[:, None]
    keys = torch.rand(count, text.keys, generator=random).argsort(1)[:, : text.records]
    a, b = torch.randint(text.symbols, (2, count, text.records), generator=random)
    answers = b if kind == "raw" else square(text)[a, b]
    named = keys + text.symbols
    # questions, in another order
    order = torch.rand(count, text.records, generator=random).argsort(1)
    asked = torch.stack([named[rows, order], answers[rows, order]], -1).flatten(1)
    # records, each at its place among blanks
    starts = places(count, random, text)
    told = torch.full((count, text.told), text.ask + 1)
    for step, part in enumerate((a, b, named) if kind == "closed" else (named, a, b)):
        told[rows, starts + step] = part
    ids = torch.cat([told, torch.full((count, 1), text.ask), asked], 1)
    targets = torch.full_like(ids, -1)
    targets[:, text.told + 1 :: 2] = answers[rows, order]
    return ids, targets


def places(count, random, text):
    """(count, records): where each record begins. All ways to lay blanks are equally likely."""
    record = torch.arange(text.records)
    if not text.blanks:
        return (3 * record).expand(count, -1)
    # a row of records and blanks: which of its places are records
    row = text.records + text.blanks
    chosen = torch.rand(count, row, generator=random).argsort(1)[:, : text.records]
    return chosen.sort(1).values + 2 * record  # a record before it takes two places more


# ---- the systems ---------------------------------------------------------------------------------

VALUE_OF = dict(
    standard=lambda i, n: dict(value=Own),
    x0=lambda i, n: dict(value=X0),
    svformer=lambda i, n: dict(value=V1 if i else Own),
    tables=lambda i, n: dict(value=partial(Table, start="aligned")),
    last=lambda i, n: dict(value=Own if i == n - 1 else X0),
)
OF_THE_TOKEN = ("x0", "svformer", "tables")
CALLED = dict(
    standard="standard",
    x0="x0 W_V",
    svformer="SVFormer",
    tables="tables",
    last="x0 W_V, stream in the last",
)


def plan_of(system, last_mlp=True):
    """Values of one kind in all layers; the last layer with or without an MLP."""

    def line(i, n):
        return LayerPlan(mlp=last_mlp or i < n - 1, **VALUE_OF[system](i, n))

    return Plan(line, name=system)


def model(system, depth, seed, last_mlp=True, text=STILL, heads=4):
    size = Config(depth, 64, heads, text.length, text.vocabulary, windows="L")
    return build(plan_of(system, last_mlp), size, seed)


def exact(net, kind, random, count=1024, text=STILL):
    """The share of questions that are answered right."""
    ids, targets = made_texts(kind, count, random, text)
    with torch.no_grad():
        guesses = net(ids).argmax(-1)
    asked = targets >= 0
    return (guesses[asked] == targets[asked]).float().mean().item()


def train_small(system, kind, depth=2, seed=0, last_mlp=True, steps=STEPS, text=STILL, heads=4):
    """A model, trained on new texts at every step."""
    net = model(system, depth, seed, last_mlp, text, heads)
    random = torch.Generator().manual_seed(seed)
    adam = torch.optim.AdamW(net.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(steps):
        adam.param_groups[0]["lr"] = RATE * min(1, (step + 1) / 100, 4 * (steps - step) / steps)
        ids, targets = made_texts(kind, BATCH, random, text)
        net.loss(ids, targets).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
    return net
