"""How much of what a place has computed can a head say whose values are of the token?

    python -m evidence.research.by_heads --minutes 10     go on with fetch_by_heads.json

compute_then_fetch showed no need for values of the stream: its records stood still, and it had
fewer symbols than heads. Here records stand at changing places, and five symbols meet two, four
and eight heads.
"""

import itertools
import math
import statistics
import time

from course import figures, records
from course.markdown import table
from evidence.research.asked import so
from evidence.research.fetch import SEEDS, same, shares_of, trained_and_asked
from evidence.research.leads import mean_and_range
from evidence.research.made_up import CALLED, MOVING, OF_THE_TOKEN
from evidence.research.pairs import rows_once_whole
from minimal.command import command, number
from minimal.compare import ledger

# Predicted from the construction, before the first run of the grid. Symbols and steps were chosen
# on `standard` alone and a seed that is not recorded (99), so that it learns: with five symbols it
# answered all of `closed` with two, four and eight heads and in three layers, and all of `open`;
# with seven symbols and eight heads .86, so there are five.
EXPECTED = """In `closed` records the place of the key is the first that knows a, b and the key. Its
MLP can compute f there; a question fetches it in the second layer. A head adds up values, each
times a weight. Where values are of the token, the value at that place is that of the key, which the
question knows already; only the weight can depend on f. So a head says one number of it, where a
head of stream values says a vector. Numbers for a question: heads times the layers after the first.
Five answers from two numbers are hard to lay apart, from eight they are easy. Standard: .95 exact
or more with two, four and eight heads. x0 W_V, SVFormer, tables in two layers: at most .7 with two
heads, more with four, .9 or more with eight. x0 W_V with two heads in three layers, so with four
numbers: within .15 of four heads in two layers. `last`, stream values in the second layer alone:
within .05 of standard. `open` and `raw`, where the question finds the symbols themselves, x0 W_V
with two heads in two layers: .9 or more. What would change our mind: x0 W_V within .05 of standard
in `closed` with two heads in two layers."""

MANY_STEPS = 3000
HEADS = (2, 4, 8)


# ---- the grid ------------------------------------------------------------------------------------


def cells_by_heads():
    """Seed by seed, so that an interrupted grid is a whole grid with fewer seeds."""
    for seed in SEEDS:
        for heads, system in itertools.product(HEADS, ("standard", *OF_THE_TOKEN)):
            yield asked_cell(system, "closed", 2, heads, seed)
        yield asked_cell("last", "closed", 2, 2, seed)
        for system in ("standard", "x0"):
            yield asked_cell(system, "closed", 3, 2, seed)
        for kind, system in itertools.product(("raw", "open"), ("standard", "x0")):
            yield asked_cell(system, kind, 2, 2, seed)


def asked_cell(system, kind, depth, heads, seed):
    return dict(plan=system, text=kind, depth=depth, heads=heads, seed=seed)


def made_cell(asked):
    """(row, head of a new file, words) of a cell."""
    question = "How much can a head of token values say?"
    how = dict(text=MOVING, heads=asked["heads"])
    row, head, share = trained_and_asked(asked, question, COMMAND, MANY_STEPS, **how)
    words = f"{asked['text']}, {asked['depth']} layers, {asked['heads']} heads: {share:.3f}"
    return row, head, words


COMMAND = "python -m evidence.research.by_heads"
BY_HEADS = records.EVIDENCE / "fetch_by_heads.json"


# ---- for the page --------------------------------------------------------------------------------


def recorded_rows():
    return rows_once_whole(BY_HEADS, cells_by_heads, same)


def shares_at(system, heads=2, depth=2, kind="closed"):
    return shares_of(recorded_rows(), dict(plan=system, text=kind, depth=depth, heads=heads))


def mean_share(*asked):
    return statistics.fmean(shares_at(*asked))


SHAPES = (("closed", 2, 2), ("closed", 4, 2), ("closed", 8, 2), ("closed", 2, 3))
OTHERS = (("open", 2, 2), ("raw", 2, 2))


def answers_table():
    """Shares of exact answers: mean of the seeds, lowest and highest."""
    lines = []
    for kind, heads, depth in SHAPES + OTHERS:
        found = [shares_at(system, heads, depth, kind) for system in CALLED]
        shares = [mean_and_range(some) if some else "" for some in found]
        lines.append([kind, heads, depth, heads * (depth - 1), *shares])
    return table(["text", "heads", "layers", "numbers", *CALLED.values()], lines)


def foretold():
    """What was predicted from the construction, and what came."""
    standard = min(mean_share("standard", heads) for heads in HEADS)
    two, four, eight = (
        {system: mean_share(system, heads) for system in OF_THE_TOKEN} for heads in HEADS
    )
    rises = all(two[system] < four[system] for system in OF_THE_TOKEN)
    deeper = mean_share("x0", 2, 3)
    apart = abs(deeper - four["x0"])
    last = abs(mean_share("last") - mean_share("standard"))
    found = min(mean_share("x0", 2, 2, kind) for kind in ("raw", "open"))
    lines = [
        ["standard: .95 or more at two, four, eight heads", in_numbers(standard >= 0.95, standard)],
        [
            "values of the token, two heads: at most .7",
            in_numbers(max(two.values()) <= 0.7, *two.values()),
        ],
        ["more with four heads", in_numbers(rises, *four.values())],
        ["eight heads: .9 or more", in_numbers(min(eight.values()) >= 0.9, *eight.values())],
        [
            "x0 W_V, two heads, three layers: within .15 of four heads",
            in_numbers(apart <= 0.15, deeper),
        ],
        [
            "stream values in the last layer alone: within .05 of standard",
            in_numbers(last <= 0.05, last),
        ],
        ["x0 W_V, two heads, `open` and `raw`: .9 or more", in_numbers(found >= 0.9, found)],
        ["our mind changes: x0 W_V within .05 of standard with two heads", our_mind()],
    ]
    return table(["foretold", "came"], lines)


def in_numbers(holds, *numbers):
    return f"{so(holds)}: {', '.join(f'{number:.2f}' for number in numbers)}"


def behind():
    """By how much x0 W_V is behind standard with two heads in two layers."""
    return mean_share("standard") - mean_share("x0")


def our_mind():
    """The condition under which our mind was to change."""
    return f"{'it did' if behind() <= 0.05 else 'it did not'}: behind by {behind():.2f}"


def few_heads_fail():
    """Does every model with values of the stream answer more than any with values of the token,
    with two heads in two layers?"""
    token = max(max(shares_at(system)) for system in OF_THE_TOKEN)
    return min(shares_at("standard")) > token + 0.05


def claim_of_heads():
    """As the title of the picture."""
    if few_heads_fail():
        return "With few heads, what a place has computed arrives only by values of the stream"
    return "A need for values of the stream is not shown by records that move"


def sentence():
    """The claim, with its numbers."""
    heads = [f"{mean_share('x0', heads):.2f}" for heads in HEADS]
    return (
        f"{claim_of_heads()}: in two layers with two heads values of the stream answer "
        f"{mean_share('standard'):.2f} of the questions. Values of the token (x0 W_V) answer "
        f"{heads[0]} with two heads, {heads[1]} with four and {heads[2]} with eight"
    )


def picture():
    """(figure, alt text): exact answers by heads; None until all is recorded."""
    if not recorded_rows():
        return None
    fig, ax = figures.axes(claim_of_heads(), "heads", "exact answers", width=8.0)
    told, ends = [], []
    for i, system in enumerate(("standard", *OF_THE_TOKEN)):
        shares = [shares_at(system, heads) for heads in HEADS]
        middle = [statistics.fmean(some) for some in shares]
        places = [heads + 0.05 * i for heads in HEADS]
        ax.plot(places, middle, **figures.line_style(i))
        for x, some in zip(places, shares):
            ax.plot([x, x], [min(some), max(some)], color=figures.COLOURS[i])
        ends.append([middle[-1], places[-1], CALLED[system], figures.COLOURS[i]])
        told.append(f"{CALLED[system]}: " + ", ".join(f"{share:.2f}" for share in middle))
    ax.axhline(1 / MOVING.symbols, color=figures.INK, linestyle=":", linewidth=1)
    ax.set_xticks(HEADS)
    ax.set_ylim(0, 1.05)
    figures.label_ends(ax, ends)
    alt = "Shares of exact answers with two, four and eight heads in two layers; bars: lowest to "
    return fig, alt + "highest seed; dots: chance. " + "; ".join(told) + "."


# ---- the command ---------------------------------------------------------------------------------


@command("evidence.research.by_heads", __doc__)
def main(parser, argv):
    parser.add_argument("--minutes", type=number(float, 0), default=math.inf)
    asked = parser.parse_args(argv)
    ledger.fill(BY_HEADS, cells_by_heads(), same, made_cell, time.monotonic() + 60 * asked.minutes)


if __name__ == "__main__":
    main()
