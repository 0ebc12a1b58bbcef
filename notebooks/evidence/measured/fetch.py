"""When must a value come from the stream? Made-up texts: something is computed, then fetched.

    python -m evidence.measured.fetch --minutes 10            go on with compute_then_fetch.json
    python -m evidence.measured.fetch fetch_first             ... with another grid of GRIDS

The texts and the models are those of made_up.py. What was foretold of each grid stands in
notebooks/evidence/asked/made_up.toml. Sizes and steps were chosen on `standard` alone and a seed
that is not recorded (99), so that it learns.

compute_then_fetch          records stand still, and there are as many heads as symbols or more
compute_then_fetch_deeper   up to six layers, with and without an MLP in the last
fetch_first                 records stand at changing places, and nothing computes after the fetch:
                            must what was computed be fetched, or can its parts be, and f be then?
many_answers                the same with more symbols: a weight is one number a head, and has to
                            tell ten answers apart, then twenty
"""

import dataclasses
import itertools
import math
import time
from functools import partial

import torch

from course import records
from evidence.measured import made_up
from evidence.measured.made_up import MOVING, OF_THE_TOKEN, STEPS, STILL
from minimal.command import command, number
from minimal.compare import ledger
from minimal.data import files, results

SEEDS = (0, 1, 2)
BY_TOKEN = ("standard", *OF_THE_TOKEN)

# (texts, systems, depths, is there an MLP in the last layer?)
STANDING = (
    (("raw",), BY_TOKEN, (2,), True),
    (("open", "closed"), BY_TOKEN, (2, 3), True),
    (("open", "closed"), BY_TOKEN, (2,), False),
    (("closed",), ("last",), (2, 3), True),
    (("closed",), ("standard", "x0"), (4,), True),
)
# Exploratory: asked after all others were recorded, and values of the token had answered as well.
AFTERWARDS = ((("closed",), ("standard", "x0"), (1,), True),)

# Asked after all of these, of the text in which a need would show.
DEEPER = (
    (("closed",), BY_TOKEN, (4, 5, 6), True),
    (("closed",), BY_TOKEN, (3, 4, 5, 6), False),
)

MANY = (  # (answers, heads, systems)
    (10, 2, BY_TOKEN),
    (20, 2, BY_TOKEN),
    (20, 8, ("standard", "x0")),
)


# ---- the cells: seed by seed, so that an interrupted grid is a whole grid with fewer seeds -------


def standing_cells(*grids):
    for asked, seed in itertools.product(grids, SEEDS):
        for kinds, systems, depths, last_mlp in asked:
            for depth, kind, system in itertools.product(depths, kinds, systems):
                yield dict(plan=system, text=kind, depth=depth, seed=seed, last_mlp=last_mlp)


def cell_of(plan, seed, heads=2, depth=2, last_mlp=False, **more):
    shape = more | dict(depth=depth, heads=heads, last_mlp=last_mlp)
    return dict(plan=plan, text="closed", **shape, seed=seed)


def moving_cells():
    for seed in SEEDS:
        for heads, system in itertools.product((2, 8), BY_TOKEN):
            yield cell_of(system, seed, heads)
        yield cell_of("last", seed)
        for system in ("standard", "x0"):
            yield cell_of(system, seed, last_mlp=True)
            yield cell_of(system, seed, depth=3)


def many_cells():
    for seed in SEEDS:
        for answers, heads, systems in MANY:
            for system in systems:
                yield cell_of(system, seed, heads, answers=answers)


# ---- one cell ------------------------------------------------------------------------------------


def with_answers(answers):
    return dataclasses.replace(MOVING, symbols=answers)


def text_of(cell):
    """Records that stand still, or that move; with as many symbols as answers are asked for."""
    if "heads" not in cell:
        return STILL
    return with_answers(cell.get("answers", MOVING.symbols))


def function_of(cell):
    """What f is: tables of the texts of the cell's file, of which many_answers has two."""
    if "answers" in cell:
        return [made_up.square(with_answers(answers)).tolist() for answers in (10, 20)]
    return made_up.square(text_of(cell)).tolist()


def made(question, command, steps, cell):
    """(row, head of a new file, words) of a cell."""
    begun, text = time.monotonic(), text_of(cell)
    shape = {name: cell[name] for name in ("depth", "seed", "last_mlp", "heads") if name in cell}
    net = made_up.train_small(cell["plan"], cell["text"], steps=steps, text=text, **shape)
    later = torch.Generator().manual_seed(10**6)
    share = made_up.exact(net, cell["text"], later, text=text)
    row = cell | dict(exact=round(share, 4), steps=steps)
    row |= dict(seconds=round(time.monotonic() - begun, 1))
    fingerprint = files.digest(function_of(cell))
    corpus = dict(name="compute, then fetch", fingerprint=fingerprint, tokens=None)
    words = ", ".join(f"{name} {value}" for name, value in cell.items() if name != "plan")
    return row, results.header(question, command, corpus), f"{words}: {share:.3f}"


# ---- the command ---------------------------------------------------------------------------------

GRIDS = dict(  # name of the file: (question, cells, steps)
    compute_then_fetch=(
        "When must a value come from the stream?",
        partial(standing_cells, STANDING, AFTERWARDS),
        STEPS,
    ),
    compute_then_fetch_deeper=(
        "When must a value come from the stream? Up to six layers, with and without an MLP in the "
        "last",
        partial(standing_cells, DEEPER),
        STEPS,
    ),
    fetch_first=(
        "Must what a place has computed be fetched, or can the parts be fetched first and computed "
        "then?",
        moving_cells,
        2 * STEPS,
    ),
    many_answers=(
        "How many answers can a weight say? The text of fetch_first, with more symbols.",
        many_cells,
        4 * STEPS,
    ),
)


def same(row, cell):
    return all(row[name] == value for name, value in cell.items())


@command("evidence.measured.fetch", __doc__)
def main(parser, argv):
    parser.add_argument("grid", nargs="?", choices=GRIDS, default="compute_then_fetch")
    parser.add_argument("--minutes", type=number(float, 0), default=math.inf)
    asked = parser.parse_args(argv)
    question, cells, steps = GRIDS[asked.grid]
    words = f"python -m evidence.measured.fetch {asked.grid}"
    path, until = records.MEASURED / f"{asked.grid}.json", time.monotonic() + 60 * asked.minutes
    ledger.fill(path, cells(), same, partial(made, question, words, steps), until)


if __name__ == "__main__":
    main()
