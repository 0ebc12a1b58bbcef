"""How many answers can a weight say? The text of fetch_first, with more symbols.

    python -m evidence.research.many_answers --minutes 10     go on with many_answers.json

With five answers values of the token needed no stream: the weight that a question gives to the
place of its key followed what was computed there. A weight is one number a head. Here the same
number has to tell ten answers apart, then twenty.
"""

import dataclasses
import statistics

from course import figures, records
from course.markdown import table
from evidence.research import fetch_first
from evidence.research.fetch import (
    SEEDS,
    answers_more,
    go_on,
    mind_after,
    same,
    shares_of,
    trained_and_asked,
)
from evidence.research.fetch_first import in_numbers
from evidence.research.leads import mean_and_range
from evidence.research.made_up import CALLED, MOVING, OF_THE_TOKEN, square
from evidence.research.pairs import rows_once_whole
from minimal.command import command
from minimal.data import files

# Predicted from the construction, before the first run of the grid. The numbers of answers, of
# heads and of steps were chosen on `standard` alone and a seed that is not recorded (99): with two
# heads it answered .9997 of ten in 3,000 steps and all of twenty in 6,000, and with one head
# nothing of ten.
EXPECTED = """Nothing forbids it: a number can be cut into any number of pieces, and a last layer
that reads it can name each piece. But the pieces get narrow, all other weights disturb them, and a
softmax is to hit them for every place and text. So it is a matter of precision, and a need that
grows. Two layers, no MLP in the last. Standard: .95 or more with ten answers and with twenty. Two
heads, x0 W_V: at most .85 of ten and at most .6 of twenty. SVFormer and tables: at most .7 of
twenty. Eight heads are eight numbers: x0 W_V answers more of twenty, by .1 or more. What would
change our mind: x0 W_V within .1 of standard with two heads and twenty answers."""

STEPS = 6000
MANY, FEW = 20, 10
BY_TOKEN = ("standard", *OF_THE_TOKEN)
SHAPES = (  # (answers, heads, systems)
    (FEW, 2, BY_TOKEN),
    (MANY, 2, BY_TOKEN),
    (MANY, 8, ("standard", "x0")),
)


# ---- the grid ------------------------------------------------------------------------------------


def many_cells():
    """Seed by seed, so that an interrupted grid is a whole grid with fewer seeds."""
    for seed in SEEDS:
        for answers, heads, systems in SHAPES:
            for system in systems:
                yield many_cell(system, answers, heads, seed)


def many_cell(system, answers, heads, seed):
    shape = dict(answers=answers, heads=heads, depth=2, last_mlp=False)
    return dict(plan=system, text="closed", **shape, seed=seed)


def text_of(answers):
    return dataclasses.replace(MOVING, symbols=answers)


BOTH_TEXTS = text_of(FEW), text_of(MANY)  # one file holds both


def many_row(cell):
    """(row, head of a new file, words) of a cell."""
    how = dict(text=text_of(cell["answers"]), heads=cell["heads"], last_mlp=cell["last_mlp"])
    row, head, share = trained_and_asked(cell, __doc__.splitlines()[0], COMMAND, STEPS, **how)
    head["corpus"]["fingerprint"] = files.digest([square(text).tolist() for text in BOTH_TEXTS])
    return row, head, f"{cell['answers']} answers, {cell['heads']} heads: {share:.3f}"


COMMAND = "python -m evidence.research.many_answers"
MANY_ANSWERS = records.EVIDENCE / "many_answers.json"


# ---- for the page --------------------------------------------------------------------------------


def recorded_rows():
    return rows_once_whole(MANY_ANSWERS, many_cells, same)


def shares_of_many(system, answers=MANY, heads=2):
    return shares_of(recorded_rows(), dict(plan=system, answers=answers, heads=heads))


def mean_of_many(*asked):
    return statistics.fmean(shares_of_many(*asked))


def table_of_many():
    """Shares of exact answers: mean of the seeds, lowest and highest."""
    lines = []
    for answers, heads, _ in SHAPES:
        found = [shares_of_many(system, answers, heads) for system in BY_TOKEN]
        lines.append([answers, heads, *(mean_and_range(some) if some else "" for some in found)])
    return table(["answers", "heads", *(CALLED[system] for system in BY_TOKEN)], lines)


def foretold():
    """What was predicted from the construction, and what came."""
    standard = [mean_of_many("standard", answers) for answers in (FEW, MANY)]
    few, many, eight = mean_of_many("x0", FEW), mean_of_many("x0"), mean_of_many("x0", MANY, 8)
    others = [mean_of_many(system) for system in OF_THE_TOKEN if system != "x0"]
    lines = [
        ["standard, two heads: .95 or more", in_numbers(min(standard) >= 0.95, *standard)],
        ["x0 W_V of ten answers: at most .85", in_numbers(few <= 0.85, few)],
        ["x0 W_V of twenty: at most .6", in_numbers(many <= 0.6, many)],
        ["SVFormer, tables of twenty: at most .7", in_numbers(max(others) <= 0.7, *others)],
        ["x0 W_V with eight heads: more, by .1", in_numbers(eight - many >= 0.1, eight)],
        ["our mind changes: x0 W_V within .1 of standard, two heads, twenty", our_mind()],
    ]
    return table(["foretold", "came"], lines)


def our_mind():
    """The condition under which our mind was to change."""
    return mind_after(mean_of_many("standard") - mean_of_many("x0"), 0.1)


def many_need_it():
    """Of twenty, does every model with values of the stream answer more?"""
    return answers_more(shares_of_many("standard"), map(shares_of_many, OF_THE_TOKEN))


def claim_of_many():
    """As the title of the picture."""
    if many_need_it():
        return "The more answers there are, the more a value must come from the stream"
    return "A need for values of the stream is not shown by twenty answers either"


def sentence():
    """The claim, with its numbers."""
    return (
        f"{claim_of_many()}. With two heads and no MLP after the fetch, values of the token "
        f"(x0 W_V) answer {five():.2f} of the questions where there are five answers, and "
        f"{mean_of_many('x0'):.2f} where there are twenty; values of the stream answer "
        f"{mean_of_many('standard'):.2f} of these"
    )


def five():
    """What x0 W_V has answered in fetch_first, in half the steps."""
    return fetch_first.mean_share("x0")


def picture():
    """(figure, alt text): exact answers against how many there are; None until all is there."""
    if not recorded_rows() or not fetch_first.recorded_rows():
        return None
    xlabel = "answers to choose from (two heads; small: seeds)"
    fig, ax = figures.axes(claim_of_many(), xlabel, "exact answers", width=8.0)
    told, places = [], (MOVING.symbols, FEW, MANY)
    for i, system in enumerate(BY_TOKEN):
        found = [fetch_first.shares_at(system)]
        found += [shares_of_many(system, answers) for answers in (FEW, MANY)]
        means, style = [statistics.fmean(shares) for shares in found], figures.line_style(i)
        xs = [at + 0.06 * (i - 1.5) for at in range(len(places))]
        ax.plot(xs, means, label=CALLED[system], **style)
        for x, shares in zip(xs, found):
            ax.plot(
                [x] * len(shares), shares, **style | dict(linestyle="", markersize=3, alpha=0.6)
            )
        told.append(f"{CALLED[system]}: " + ", ".join(f"{mean:.2f}" for mean in means))
    ax.plot(range(len(places)), [1 / n for n in places], color=figures.INK, linestyle=":")
    ax.set_xticks(range(len(places)), places)
    ax.set_ylim(0, 1.05)
    ax.legend(frameon=False)
    alt = "Shares of exact answers with five, ten and twenty answers, a mark a seed; dots: chance. "
    return fig, alt + "; ".join(told) + "."


# ---- the command ---------------------------------------------------------------------------------


@command("evidence.research.many_answers", __doc__)
def main(parser, argv):
    go_on(parser, argv, MANY_ANSWERS, many_cells(), many_row)


if __name__ == "__main__":
    main()
