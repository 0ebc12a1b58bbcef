"""When must a value come from the stream? A text in which something is computed, then fetched.

    python -m evidence.research.fetch --minutes 10     go on with compute_then_fetch.json
    python -m evidence.research.fetch --deeper         ... with compute_then_fetch_deeper.json

The text and the models are those of made_up.py; here are the grid and what its page says.
"""

import itertools
import math
import statistics
import textwrap
import time
from functools import partial

import torch

from course import figures, records
from course.markdown import table
from evidence.research import made_up
from evidence.research.asked import so
from evidence.research.leads import mean_and_range
from evidence.research.made_up import CALLED, KINDS, OF_THE_TOKEN, STEPS
from evidence.research.pairs import rows_once_whole
from minimal.command import command, number
from minimal.compare import ledger
from minimal.data import files, results

# Predicted from the construction, before the first run of the grid. Sizes and steps were chosen on
# `standard` alone and a seed that is not recorded (99), so that it learns: it answered .99 of
# `closed` at depth 2 in 1,000 of 1,500 steps, and .83 at depth 3 in a run of 1,000.
EXPECTED = """Values of the token alone move functions of one token; what a place has computed stays
there. f(a, b) is no sum of a part of a and a part of b, so it needs an MLP at a place that holds
both. Standard: a first layer brings the record together, its MLP computes f, a second layer fetches
it: two layers do for all texts, with or without the last MLP, .9 exact or more. Values of the token
(x0, SVFormer, tables): `raw` in two layers, .9 or more. `open` in two layers if an MLP follows the
fetch of a and of b, and below .6 without the last MLP. `closed`: a and b have no mark of their key,
so no value of a token is the answer. One way is left: keys are of the stream, so how much weight a
place gets can depend on f there, and a head for each of three symbols would do. So it is no proof
of failure, but a longer way: behind standard by .2 or more at depth 2, and by less at depths 3 and
4. One layer of stream values on top of x0 (`last`): within .05 of standard. What would change our
mind: x0 within .05 of standard in `closed` at depth 2."""

SEEDS = (0, 1, 2)


# ---- the grid ------------------------------------------------------------------------------------


# (texts, systems, depths, is there an MLP in the last layer?)
GRID_PARTS = (
    (("raw",), ("standard", *OF_THE_TOKEN), (2,), True),
    (("open", "closed"), ("standard", *OF_THE_TOKEN), (2, 3), True),
    (("open", "closed"), ("standard", *OF_THE_TOKEN), (2,), False),
    (("closed",), ("last",), (2, 3), True),
    (("closed",), ("standard", "x0"), (4,), True),
)
# Exploratory: asked after all others were recorded, and values of the token had answered as well.
AFTERWARDS = ((("closed",), ("standard", "x0"), (1,), True),)

# Asked after all of these: up to six layers, with and without the last MLP, of the text in which a
# need would show. In a file of its own, and predicted before its first run.
DEEPER = (
    (("closed",), ("standard", *OF_THE_TOKEN), (4, 5, 6), True),
    (("closed",), ("standard", *OF_THE_TOKEN), (3, 4, 5, 6), False),
)
EXPECTED_DEEPER = """A need does not show in deeper models either: at no depth do values of the
stream answer more, in every seed, than x0 W_V, SVFormer and tables in theirs. Standard, SVFormer
and tables answer .95 or more at every depth, with the last MLP and without. x0 W_V falls short in
one seed of three or so, as it did in three and four layers: .85 or more in the mean at every
depth, and not by the last MLP, .1 at most between with and without. What would change our mind:
standard above all three by .05 or more in every seed, at two depths or more."""


def asked_cells(*grids):
    """Seed by seed, so that an interrupted grid is a whole grid with fewer seeds."""
    for asked, seed in itertools.product(grids or (GRID_PARTS, AFTERWARDS), SEEDS):
        for kinds, systems, depths, last_mlp in asked:
            for depth, kind, system in itertools.product(depths, kinds, systems):
                yield dict(plan=system, text=kind, depth=depth, seed=seed, last_mlp=last_mlp)


def same(row, cell):
    return all(row[name] == value for name, value in cell.items())


def trained_and_asked(cell, question, command, steps, text=made_up.STILL, **how):
    """(row, head of a new file, share of exact answers) of a cell."""
    begun = time.monotonic()
    asked = dict(kind=cell["text"], depth=cell["depth"], seed=cell["seed"])
    net = made_up.train_small(cell["plan"], **asked, steps=steps, text=text, **how)
    later = torch.Generator().manual_seed(10**6)
    share = made_up.exact(net, cell["text"], later, text=text)
    seconds = round(time.monotonic() - begun, 1)
    row = cell | dict(exact=round(share, 4), steps=steps, seconds=seconds)
    f = files.digest(made_up.square(text).tolist())
    corpus = dict(name="compute, then fetch", fingerprint=f, tokens=None)
    return row, results.header(question, command, corpus), share


COMMAND = "python -m evidence.research.fetch"
PATH = records.EVIDENCE / "compute_then_fetch.json"
DEEPER_PATH = records.EVIDENCE / "compute_then_fetch_deeper.json"


def made(cell, question="When must a value come from the stream?", command=COMMAND):
    """(row, head of a new file, words) of a cell."""
    how = dict(last_mlp=cell["last_mlp"])
    row, head, share = trained_and_asked(cell, question, command, STEPS, **how)
    words = f"{cell['text']}, depth {cell['depth']}, last MLP {cell['last_mlp']}: {share:.3f}"
    return row, head, words


made_deeper = partial(
    made,
    question="When must a value come from the stream? Up to six layers, with and without an MLP "
    "in the last",
    command=f"{COMMAND} --deeper",
)


# ---- for the page --------------------------------------------------------------------------------

MEANT = dict(
    raw="raw: fetch a token",
    open="open: the key comes first",
    closed="closed: the key comes last",
)


def recorded_rows():
    return rows_once_whole(PATH, asked_cells, same)


def shares_of(rows, cell):
    """The shares of exact answers of a cell, by seed; none where the grid asks for no such cell."""
    found = [row for row in rows if same(row, cell)]
    return [row["exact"] for row in sorted(found, key=lambda row: row["seed"])]


def exact_shares(text, system, depth, last_mlp=True):
    cell = dict(plan=system, text=text, depth=depth, last_mlp=last_mlp)
    return shares_of(recorded_rows(), cell)


def mean_of(*cell):
    return statistics.fmean(exact_shares(*cell))


def layers_in_words(depth, last_mlp):
    return f"{depth}" if last_mlp else f"{depth}, no last MLP"


def answered():
    """Shares of exact answers: mean of the seeds, lowest and highest."""
    lines = []
    for text in KINDS:
        for depth, last_mlp in ((1, True), (2, True), (2, False), (3, True), (4, True)):
            found = [exact_shares(text, system, depth, last_mlp) for system in CALLED]
            if any(found):
                lines.append(
                    [
                        MEANT[text],
                        layers_in_words(depth, last_mlp),
                        *(mean_and_range(some) if some else "" for some in found),
                    ]
                )
    return table(["text", "layers", *CALLED.values()], lines)


def foretold():
    """What was predicted from the construction, and what came."""
    x0_behind = {
        at: mean_of("closed", "standard", at) - mean_of("closed", "x0", at) for at in (2, 3, 4)
    }
    bare = [mean_of("open", system, 2, False) for system in OF_THE_TOKEN]
    last = [abs(mean_of("closed", "last", at) - mean_of("closed", "standard", at)) for at in (2, 3)]
    lines = [
        ["standard: .9 or more in two layers, on all texts", least("standard", KINDS)],
        *(
            [f"{CALLED[name]}: `{kind}` in two layers", least(name, (kind,))]
            for kind in ("raw", "open")
            for name in OF_THE_TOKEN
        ),
        [
            "and below .6 there without the last MLP",
            f"{so(max(bare) < 0.6)}: at most {max(bare):.2f}",
        ],
        [
            "`closed`: x0 W_V behind standard by .2 or more in two layers",
            f"{so(x0_behind[2] >= 0.2)}: by {x0_behind[2]:.2f}",
        ],
        [
            "and by less in three and in four",
            f"{so(max(x0_behind[3], x0_behind[4]) < x0_behind[2])}: "
            f"by {x0_behind[3]:.2f} and {x0_behind[4]:.2f}",
        ],
        [
            "stream values in the last layer alone: within .05",
            f"{so(max(last) < 0.05)}: {max(last):.2f}",
        ],
        ["our mind changes: x0 W_V within .05 in `closed`, two layers", our_mind()],
    ]
    return table(["foretold", "came"], lines)


def our_mind():
    """The condition under which our mind was to change."""
    behind = mean_of("closed", "standard", 2) - mean_of("closed", "x0", 2)
    return mind_after(behind, 0.05)


def mind_after(behind, margin):
    """Our mind was to change where values of the token fall behind by no more than this."""
    how = "behind" if behind >= 0 else "ahead"
    return f"{'it did' if behind <= margin else 'it did not'}: {how} by {abs(behind):.2f}"


def least(system, kinds):
    lowest = min(mean_of(kind, system, 2) for kind in kinds)
    return f"{so(lowest >= 0.9)}: {lowest:.2f}" + (" at least" if len(kinds) > 1 else "")


def is_needed():
    """Does `closed` show in two layers that a value must come from the stream?"""
    by_token = [exact_shares("closed", system, 2) for system in OF_THE_TOKEN]
    return answers_more(exact_shares("closed", "standard", 2), by_token)


def answers_more(by_stream, by_token):
    """Does every model with values of the stream answer more than any with values of the token?"""
    return min(by_stream) > max(map(max, by_token)) + 0.05


def claim():
    """When must a value come from the stream? As the title of the picture."""
    if is_needed():
        return (
            "Where a place has computed what a later one fetches, and nothing else can name it, "
            "no model with values of the token alone answered as well as any with values of the "
            "stream, in two layers"
        )
    return "A need for values of the stream is not shown by this text"


def sentence():
    """The claim, with its numbers where it is that nothing is shown."""
    if is_needed():
        return claim()
    least = min(mean_of("closed", system, 2) for system in OF_THE_TOKEN)
    one = [f"{mean_of('closed', system, 1):.2f}" for system in ("standard", "x0")]
    return (
        f"{claim()}: in two layers models with values of the token alone answer at least "
        f"{least:.2f} of it. One layer answers {one[0]} with values of the stream and {one[1]} "
        "with x0 W_V"
    )


# ---- in deeper models ----------------------------------------------------------------------------


def deeper_cells():
    return asked_cells(DEEPER)


def deeper_rows():
    return rows_once_whole(DEEPER_PATH, deeper_cells, same)


# (depth, is there an MLP in the last layer?), by depth
DEEPER_SETTINGS = sorted(
    {(cell["depth"], cell["last_mlp"]) for cell in deeper_cells()},
    key=lambda at: (at[0], not at[1]),
)
DEEPER_SYSTEMS = ("standard", *OF_THE_TOKEN)


def deeper_shares(system, depth, last_mlp):
    return shares_of(deeper_rows(), dict(plan=system, depth=depth, last_mlp=last_mlp))


def deeper_means():
    """{system: {setting: mean share of exact answers}}."""
    return {
        system: {at: statistics.fmean(deeper_shares(system, *at)) for at in DEEPER_SETTINGS}
        for system in DEEPER_SYSTEMS
    }


def answered_deeper():
    """Shares of exact answers of `closed` in deeper models."""
    lines = []
    for at in DEEPER_SETTINGS:
        found = (deeper_shares(system, *at) for system in DEEPER_SYSTEMS)
        lines.append([layers_in_words(*at), *map(mean_and_range, found)])
    return table(["layers", *(CALLED[system] for system in DEEPER_SYSTEMS)], lines)


def needed_at():
    """The settings at which values of the stream answer more, in every seed, than all others."""
    found = []
    for at in DEEPER_SETTINGS:
        by_stream, *by_token = (deeper_shares(system, *at) for system in DEEPER_SYSTEMS)
        if answers_more(by_stream, by_token):
            found.append(at)
    return found


def sentence_of_deeper():
    """What three to six layers say of a need."""
    least = {system: min(means.values()) for system, means in deeper_means().items()}
    needed = needed_at()
    where = f"{len(needed)} of {len(DEEPER_SETTINGS)}" if needed else "none"
    return (
        f"In three to six layers, with and without an MLP in the last, a need is shown in {where} "
        f"of the models. The least mean share is {least['standard']:.2f} with values of the "
        f"stream, {least['x0']:.2f} with x0 W_V, {least['svformer']:.2f} in SVFormer and "
        f"{least['tables']:.2f} with tables"
    )


def foretold_of_deeper():
    """What was predicted of them, and what came."""
    means, needed = deeper_means(), needed_at()
    lines = [["a need shows at no depth", so(not needed)]]
    for system, least in (("standard", 0.95), ("svformer", 0.95), ("tables", 0.95), ("x0", 0.85)):
        lowest = min(means[system].values())
        words = f"{CALLED[system]}: {least:g} or more at every depth, in the mean"
        lines.append([words, f"{so(lowest >= least)}: {lowest:.2f} at least"])
    apart = max(abs(means["x0"][at, True] - means["x0"][at, False]) for at in (4, 5, 6))
    words = "x0 W_V: with and without the last MLP within .1"
    lines.append([words, f"{so(apart <= 0.1)}: {apart:.2f} apart at most"])
    mind = "it did" if len({depth for depth, _ in needed}) >= 2 else "it did not"
    lines.append(["our mind changes: a need at two depths or more", mind])
    return table(["foretold", "came"], lines)


def picture():
    """(figure, alt text): exact answers by depth, a panel a text; None until all is recorded."""
    if not recorded_rows():
        return None
    title = f"Exact answers. {claim()}"
    title = textwrap.fill(title, 96)
    fig, panels = figures.panels_of(MEANT.values(), title, "layers", "exact answers", 9.6)
    told = []
    for ax, text in zip(panels, KINDS):
        for i, (system, name) in enumerate(CALLED.items()):
            found = {at: exact_shares(text, system, at) for at in (1, 2, 3, 4)}
            found = {at + 0.04 * i: values for at, values in found.items() if values}
            if found:
                middle = [statistics.fmean(values) for values in found.values()]
                ax.plot(list(found), middle, label=name, **figures.line_style(i))
                for x, values in found.items():
                    ax.plot([x, x], [min(values), max(values)], color=figures.COLOURS[i])
                told.append(f"{text}, {name}: " + ", ".join(f"{m:.2f}" for m in middle))
        ax.axhline(1 / made_up.STILL.symbols, color=figures.INK, linestyle=":", linewidth=1)
        ax.set_xticks((1, 2, 3, 4))
        ax.set_ylim(0, 1.05)
    marks, names = panels[-1].get_legend_handles_labels()
    fig.legend(marks, names, frameon=False, loc="outside lower center", ncols=len(names))
    alt = "Shares of exact answers by layers, three panels, lowest to highest seed; dots: chance. "
    return fig, alt + "; ".join(told) + "."


# ---- the command ---------------------------------------------------------------------------------


def go_on(parser, argv, *grid, **others):
    """The command of a grid of made-up texts, (its file, cells, what makes a row): go on with it,
    to its end or for some minutes of the clock. An option asks for one of the `others` instead."""
    parser.set_defaults(grid=grid)
    for name, other in others.items():
        parser.add_argument(f"--{name}", dest="grid", action="store_const", const=other)
    parser.add_argument("--minutes", type=number(float, 0), default=math.inf)
    asked = parser.parse_args(argv)
    path, cells, make = asked.grid
    ledger.fill(path, cells, same, make, time.monotonic() + 60 * asked.minutes)


@command("evidence.research.fetch", __doc__)
def main(parser, argv):
    deeper = (DEEPER_PATH, deeper_cells(), made_deeper)
    go_on(parser, argv, PATH, asked_cells(), made, deeper=deeper)


if __name__ == "__main__":
    main()
