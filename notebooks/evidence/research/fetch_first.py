"""Must what a place has computed be fetched, or can the parts be fetched first and computed then?

    python -m evidence.research.fetch_first --minutes 10     go on with fetch_first.json

compute_then_fetch showed no need for values of the stream: its records stood still, and it had
fewer symbols than heads. Here records stand at changing places, and the last layer has no MLP,
so that nothing can be computed of what it fetches.
"""

import itertools
import statistics

from course import figures, records
from course.markdown import table
from evidence.research.asked import so
from evidence.research.fetch import (
    SEEDS,
    answers_more,
    go_on,
    mind_after,
    same,
    shares_of,
    trained_and_asked,
)
from evidence.research.leads import mean_and_range
from evidence.research.made_up import CALLED, MOVING, OF_THE_TOKEN
from evidence.research.pairs import rows_once_whole
from minimal.command import command

# Predicted from the construction, before the first run of the grid. Symbols and steps were chosen
# on `standard` alone and a seed that is not recorded (99), so that it learns: it answered all with
# two and with eight heads. Eight runs of two grids that are withdrawn had shown what their
# construction overlooked: with an MLP in the last layer x0 W_V answered .999 of `closed` with two
# heads, and .9997 where b itself was asked for, one of 512 symbols (`standard` .54 there, in one
# seed). A question can learn how far back its key stands, fetch a and b from their own places by
# that distance, and compute f then.
EXPECTED = """With an MLP in the last layer values of the token fetch a and b from their own places
and compute f afterwards: x0 W_V .95 exact or more, in two layers with two heads. Without it nothing
follows the fetch, and f is no sum of a part of a and a part of b. What a place has computed has to
be fetched, and of that a head of token values says one number, its weight. Standard: .95 or more
with and without. x0 W_V, SVFormer, tables, two layers, two heads, without: at most .7; with eight
heads more, by .05 or more. x0 W_V in three layers without the last MLP: .9 or more, since the
second layer fetches and computes. `last`, stream values in the second layer alone, without its MLP:
.9 or more. What would change our mind: x0 W_V within .1 of standard with two heads in two layers
without the last MLP."""

MANY_STEPS = 3000
HEADS = (2, 8)


# ---- the grid ------------------------------------------------------------------------------------


def moving_cells():
    """Seed by seed, so that an interrupted grid is a whole grid with fewer seeds."""
    for seed in SEEDS:
        for heads, system in itertools.product(HEADS, ("standard", *OF_THE_TOKEN)):
            yield moving_cell(system, seed, heads=heads)
        yield moving_cell("last", seed)
        for system in ("standard", "x0"):
            yield moving_cell(system, seed, last_mlp=True)
            yield moving_cell(system, seed, depth=3)


def moving_cell(system, seed, heads=2, depth=2, last_mlp=False):
    shape = dict(depth=depth, heads=heads, last_mlp=last_mlp)
    return dict(plan=system, text="closed", **shape, seed=seed)


def moving_row(cell):
    """(row, head of a new file, words) of a cell."""
    how = dict(text=MOVING, heads=cell["heads"], last_mlp=cell["last_mlp"])
    row, head, share = trained_and_asked(cell, __doc__.splitlines()[0], COMMAND, MANY_STEPS, **how)
    mlp = "" if cell["last_mlp"] else ", no last MLP"
    return row, head, f"{cell['depth']} layers, {cell['heads']} heads{mlp}: {share:.3f}"


COMMAND = "python -m evidence.research.fetch_first"
FETCH_FIRST = records.EVIDENCE / "fetch_first.json"


# ---- for the page --------------------------------------------------------------------------------

SHAPES = (  # (heads, layers, is there an MLP in the last layer?)
    (2, 2, True),
    (2, 2, False),
    (8, 2, False),
    (2, 3, False),
)


def recorded_rows():
    return rows_once_whole(FETCH_FIRST, moving_cells, same)


def shares_at(system, heads=2, depth=2, last_mlp=False):
    cell = dict(plan=system, heads=heads, depth=depth, last_mlp=last_mlp)
    return shares_of(recorded_rows(), cell)


def mean_share(*asked):
    return statistics.fmean(shares_at(*asked))


def answers_table():
    """Shares of exact answers: mean of the seeds, lowest and highest."""
    lines = []
    for heads, depth, last_mlp in SHAPES:
        found = [shares_at(system, heads, depth, last_mlp) for system in CALLED]
        shares = [mean_and_range(some) if some else "" for some in found]
        lines.append([depth, heads, "yes" if last_mlp else "no", *shares])
    return table(["layers", "heads", "last MLP", *CALLED.values()], lines)


def foretold():
    """What was predicted from the construction, and what came."""
    standard = [mean_share("standard", *shape) for shape in SHAPES]
    with_mlp = mean_share("x0", 2, 2, True)
    few, many = ([mean_share(system, heads) for system in OF_THE_TOKEN] for heads in HEADS)
    more = min(b - a for a, b in zip(few, many)) >= 0.05
    deeper, last = mean_share("x0", 2, 3), mean_share("last")
    lines = [
        ["standard: .95 or more everywhere", in_numbers(min(standard) >= 0.95, *standard)],
        ["x0 W_V with the last MLP: .95 or more", in_numbers(with_mlp >= 0.95, with_mlp)],
        [
            "x0 W_V, SVFormer, tables without it, two heads: at most .7",
            in_numbers(max(few) <= 0.7, *few),
        ],
        ["with eight heads more, by .05", in_numbers(more, *many)],
        ["x0 W_V in three layers: .9 or more", in_numbers(deeper >= 0.9, deeper)],
        ["stream values in the second layer alone: .9 or more", in_numbers(last >= 0.9, last)],
        ["our mind changes: x0 W_V within .1 of standard, two heads, without it", our_mind()],
    ]
    return table(["foretold", "came"], lines)


def in_numbers(holds, *numbers):
    return f"{so(holds)}: {', '.join(f'{number:.2f}' for number in numbers)}"


def left_behind():
    """By how much x0 W_V is behind standard with two heads in two layers without the last MLP."""
    return mean_share("standard") - mean_share("x0")


def our_mind():
    """The condition under which our mind was to change."""
    return mind_after(left_behind(), 0.1)


def stream_is_needed():
    """Without the last MLP, does every model with values of the stream answer more?"""
    return answers_more(shares_at("standard"), map(shares_at, OF_THE_TOKEN))


def claim_of_moving():
    """As the title of the picture."""
    if stream_is_needed():
        return "Values of the stream are needed where nothing computes after the fetch"
    return "A need for values of the stream is not shown by records that move"


def sentence():
    """The claim, with its numbers."""
    return (
        f"{claim_of_moving()}. In two layers with two heads values of the token (x0 W_V) answer "
        f"{mean_share('x0', 2, 2, True):.2f} of the questions if an MLP follows the fetch, and "
        f"{mean_share('x0'):.2f} if none does; values of the stream answer "
        f"{mean_share('standard'):.2f} without it"
    )


def picture():
    """(figure, alt text): exact answers with and without the last MLP; None until all is there."""
    if not recorded_rows():
        return None
    names = [
        "2 layers,\nlast MLP",
        "2 layers,\n2 heads",
        "2 layers,\n8 heads",
        "3 layers,\n2 heads",
    ]
    fig, ax = figures.axes(claim_of_moving(), "", "exact answers", width=8.0)
    told = []
    for i, system in enumerate(("standard", *OF_THE_TOKEN)):
        for at, shape in enumerate(SHAPES):
            shares = shares_at(system, *shape)
            if not shares:
                continue
            x, style = at + 0.16 * (i - 1.5), figures.line_style(i) | dict(linestyle="")
            label = CALLED[system] if at == 1 else None
            ax.plot([x] * len(shares), shares, label=label, **style)
            words = names[at].replace("\n", " ")
            told.append(f"{CALLED[system]}, {words}: {statistics.fmean(shares):.2f}")
    ax.axhline(1 / MOVING.symbols, color=figures.INK, linestyle=":", linewidth=1)
    ax.set_xticks(range(len(names)), names)
    ax.set_xlim(-0.5, len(names) - 0.5)
    ax.set_ylim(0, 1.05)
    fig.legend(frameon=False, loc="outside lower center", ncols=4)
    alt = "Shares of exact answers, a mark a seed; all but the first without the last MLP; dots: "
    return fig, alt + "chance. " + "; ".join(told) + "."


# ---- the command ---------------------------------------------------------------------------------


@command("evidence.research.fetch_first", __doc__)
def main(parser, argv):
    go_on(parser, argv, FETCH_FIRST, moving_cells(), moving_row)


if __name__ == "__main__":
    main()
