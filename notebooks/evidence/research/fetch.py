"""When must a value come from the stream? A text in which something is computed, then fetched.

    python -m evidence.research.fetch --minutes 10     go on with compute_then_fetch.json

A text is records of a key and two symbols, then questions: a key, and the answer that belongs to
it. The answer is a symbol as it stood (`raw`), or f(a, b), a Latin square: neither a nor b alone
says anything of it. In `open` records the key comes first, so the places of a and b know it and a
question can find both. In `closed` records it comes last: they cannot.
"""

import math
import time
from functools import partial

import torch

from course import records
from minimal.command import command, number
from minimal.compare import ledger
from minimal.data import files, results
from minimal.model.attention import FromInput
from minimal.model.config import Config
from minimal.model.pieces import V1, X0
from minimal.model.plan import LayerPlan, Plan
from minimal.model.values import Own, Table
from minimal.variants import build

# Predicted from the construction, before the first run.
EXPECTED = """Values of the token alone move functions of one token; what a place has computed stays
there. f(a, b) is no sum of a part of a and a part of b, so it needs an MLP (or a product) at a
place that holds both. Standard: a first layer brings the record together, its MLP computes f, a
second fetches: two layers do for all texts, with or without the last MLP. Values of the token (x0,
SVFormer, tables): `raw` in two layers. `open` in two layers if an MLP follows the fetch of a and
of b, and not without the last MLP; from three layers on the fetch can stand one layer lower, and
both work. `closed`: a and b have no mark of their key, so no value of a token is the answer. One
way is left: keys are of the stream, and how much weight a place gets can depend on f there. A head
then passes one number, where a value passes D. So x0 is no proof of failure: expected below .5
exact at depth 2, more with depth, behind standard by .2 or more at depths 2 and 3. Keys of x0, too:
at chance (1/8) in `closed` at depth 2. One layer of stream values on top of x0 (`last`): as good as
standard. What would change our mind: x0 within .05 of standard in `closed` at depth 2."""

SYMBOLS, KEYS, RECORDS = 8, 16, 5
ASK = SYMBOLS + KEYS  # the token between records and questions
TEXTS = ("raw", "open", "closed")
DEPTHS, SEEDS = (2, 3, 4, 6), (0, 1, 2)
STEPS, BATCH, RATE = 1000, 64, 3e-3


# ---- the text ------------------------------------------------------------------------------------


def square():
    """f as a table (a, b) -> answer: addition, all three names shuffled. A Latin square."""
    shuffled = torch.Generator().manual_seed(8)
    a, b, c = (torch.randperm(SYMBOLS, generator=shuffled) for _ in range(3))
    return c[(a[:, None] + b[None, :]) % SYMBOLS]


def texts(kind, count, random):
    """(ids, targets), both (count, T): targets are answers at the keys of questions, else -1."""
    rows = torch.arange(count)[:, None]
    keys = torch.rand(count, KEYS, generator=random).argsort(1)[:, :RECORDS]
    a, b = torch.randint(SYMBOLS, (2, count, RECORDS), generator=random)
    answers = b if kind == "raw" else square()[a, b]
    named = keys + SYMBOLS
    # records
    parts = (a, b, named) if kind == "closed" else (named, a, b)
    told = torch.stack(parts, -1).flatten(1)  # (count, 3 RECORDS)
    # questions, in another order
    order = torch.rand(count, RECORDS, generator=random).argsort(1)
    asked = torch.stack([named[rows, order], answers[rows, order]], -1).flatten(1)
    ids = torch.cat([told, torch.full((count, 1), ASK), asked], 1)
    targets = torch.full_like(ids, -1)
    targets[:, told.shape[1] + 1 :: 2] = answers[rows, order]
    return ids, targets


# ---- the systems ---------------------------------------------------------------------------------

DOORS = dict(
    standard=lambda i, n: dict(value=Own),
    x0=lambda i, n: dict(value=X0),
    svformer=lambda i, n: dict(value=V1 if i else Own),
    tables=lambda i, n: dict(value=partial(Table, start="aligned")),
    keys=lambda i, n: dict(value=X0, key=FromInput),
    last=lambda i, n: dict(value=Own if i == n - 1 else X0),
)


def plan(system, last_mlp=True):
    """Values of one kind in all layers; the last layer with or without an MLP."""

    def line(i, n):
        return LayerPlan(mlp=last_mlp or i < n - 1, **DOORS[system](i, n))

    return Plan(line, name=system)


def model(system, depth, seed, last_mlp=True):
    size = Config(depth, 64, 4, 3 * RECORDS + 1 + 2 * RECORDS, ASK + 1, windows="L")
    return build(plan(system, last_mlp), size, seed)


def exact(net, kind, random, count=1024):
    """The share of questions that are answered right."""
    ids, targets = texts(kind, count, random)
    with torch.no_grad():
        guesses = net(ids).argmax(-1)
    asked = targets >= 0
    return (guesses[asked] == targets[asked]).float().mean().item()


def trained(system, kind, depth=2, seed=0, last_mlp=True, steps=STEPS):
    """A model, trained on new texts at every step."""
    net = model(system, depth, seed, last_mlp)
    random = torch.Generator().manual_seed(seed)
    adam = torch.optim.AdamW(net.parameters(), RATE, betas=(0.9, 0.98), weight_decay=0.0)
    for step in range(steps):
        adam.param_groups[0]["lr"] = RATE * min(1, (step + 1) / 100, 4 * (steps - step) / steps)
        ids, targets = texts(kind, BATCH, random)
        net.loss(ids, targets).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
    return net


# ---- the grid ------------------------------------------------------------------------------------


def cells():
    """Seed by seed within a depth, shallow models first."""
    for depth in DEPTHS:
        for seed in SEEDS:
            for kind in reversed(TEXTS):
                for last_mlp in (True, False):
                    for system in DOORS:
                        yield dict(
                            plan=system, text=kind, depth=depth, seed=seed, last_mlp=last_mlp
                        )


def same(row, cell):
    return all(row[name] == value for name, value in cell.items())


def made(cell):
    """(row, head of a new file, words) of a cell."""
    begun = time.monotonic()
    asked = dict(
        kind=cell["text"], depth=cell["depth"], seed=cell["seed"], last_mlp=cell["last_mlp"]
    )
    net = trained(cell["plan"], **asked)
    share = exact(net, cell["text"], torch.Generator().manual_seed(10**6))
    row = cell | dict(
        exact=round(share, 4), steps=STEPS, seconds=round(time.monotonic() - begun, 1)
    )
    corpus = dict(
        name="compute, then fetch", fingerprint=files.digest(square().tolist()), tokens=None
    )
    head = results.header("When must a value come from the stream?", COMMAND, corpus)
    words = f"{cell['text']}, depth {cell['depth']}, last MLP {cell['last_mlp']}: {share:.3f}"
    return row, head, words


COMMAND = "python -m evidence.research.fetch"
PATH = records.EVIDENCE / "compute_then_fetch.json"


@command("evidence.research.fetch", __doc__)
def main(parser, argv):
    parser.add_argument("--minutes", type=number(float, 0), default=math.inf)
    asked = parser.parse_args(argv)
    ledger.fill(PATH, cells(), same, made, time.monotonic() + 60 * asked.minutes)


if __name__ == "__main__":
    main()
