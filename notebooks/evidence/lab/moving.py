"""Which pictures of the essay move? In how many layers, and which three seeds of ten.

python -m evidence.lab.moving        draw them anew into slides/figures/
"""

import itertools

from course.drawings.__main__ import write_pictures
from course.drawings.moving import dose, seeds
from evidence.lab.comparison import of_seeds
from evidence.lab.quantities import quantity
from minimal.command import command

TOP_LAYERS = (2, 4, 8, 12)  # layers from the top that take their values from the token
TRIES = 6  # of all ways to choose three seeds, as many are shown

DOSE_TOLD = (
    "Twelve layers as boxes, which change from the top down: two, four, eight, all take their "
    "values from the token. Beside them the lead over standard attention on code and on a novel, "
    "with intervals. On both texts two layers have more than half of what all twelve have; on code "
    "the lead is several times that on the novel."
)
SEEDS_TOLD = (
    "The lead over standard attention from three of ten seeds, six times, and from all ten, each "
    "with its interval. On the novel most tries hold zero, though all ten seeds together are clear "
    "of it; on code every try is clear of zero."
)


def moving_dose(columns=2):
    """The leads of the question notebook "In how many layers?", one recipe, five seeds."""
    cell = lambda count: "x0-v@" + ",".join(map(str, range(12 - count, 12)))
    of = lambda text: [quantity(f"lead {cell(count)} {text} course") for count in TOP_LAYERS]
    leads = {text: of(text) for text in ("code", "novel")}
    return dose(TOP_LAYERS, leads, DOSE_TOLD, columns)


def moving_seeds(columns=2):
    """The ten seeds of the answer, three at a time: choices evenly spaced from the lowest mean to
    the highest. The lead of every seed, and the interval that these seeds alone give."""
    rows = {}
    for title, text in (("the novel", "novel"), ("code", "code")):
        by_seed = list(quantity(f"lead x0-v {text} fine").by_seed)
        tries = sorted(itertools.combinations(by_seed, 3), key=sum)
        shown = [tries[int(len(tries) * (at + 0.5) / TRIES)] for at in range(TRIES)]
        named = [*((f"try {at}", some) for at, some in enumerate(shown, 1)), ("all ten", by_seed)]
        rows[title] = [(name, of_seeds(some)) for name, some in named]
    return seeds(rows, SEEDS_TOLD, columns)


# a phone has the tall ones
MOVING = {
    "dose-moving": moving_dose,
    "dose-moving-tall": lambda: moving_dose(columns=1),
    "seeds-moving": moving_seeds,
    "seeds-moving-tall": lambda: moving_seeds(columns=1),
}


@command("evidence.lab.moving", __doc__)
def main(parser, argv):
    parser.parse_args(argv)
    write_pictures(MOVING)


if __name__ == "__main__":
    main()
