"""Numbers in notes that are no difference of losses: a function for each name in braces."""

import statistics

from course.crossings import critical_point
from evidence.research import factorial, own_mixtures, pairs
from evidence.research.asked import NAMED
from evidence.research.cells import WAR
from evidence.research.leads import as_row, between, bounds, mean_and_range, number, signed
from evidence.research.statements import ends_of, of
from minimal.compare import intervals
from minimal.model.count import count
from minimal.variants import skeleton

WINDOW = 5  # recorded values over which a curve is smoothed
BY_TEXT = dict(novel="thirteen_rows", code="stdlib")
SLOW_BY_TEXT = dict(novel="confound", code="code")


class NotRecorded(ValueError):
    """A number waits for runs."""


def recorded(grid, **fields):
    """The rows of a grid with these fields; there must be some."""
    found = [row for row in pairs.whole_rows(grid) if fields.items() <= row.items()]
    if not found:
        raise NotRecorded(f"wanted rows of {grid} with {fields}, got none: record them")
    return found


def rows_of_plan(grid, plan, **asked):
    """The rows of a plan that were asked so."""
    recorded(grid, plan=plan)
    return pairs.rows_asked(grid, plan, **asked)


def each(values):
    """ "14, 14 and 14" of counts by seed."""
    *some, last = map(str, values)
    return f"{', '.join(some)} and {last}"


def over_seeds(values, digits=2):
    """Mean and interval of a number a seed."""
    row = as_row("", values)
    mean = signed(row["difference"], digits)
    return f"{mean} ({bounds(row, digits)}, {row['n']} seeds)"


# ---- coefficients of Table 1's rows --------------------------------------------------------------


def ends(grid, plan, letter, **asked):
    return ends_of(rows_of_plan(grid, plan, **asked), letter)


def row2_most():
    return number(max(abs(x) for grid in BY_TEXT.values() for x in ends(grid, "row2", "gain")), 2)


def row2_zero(text):
    """How many of row 2's gains end near zero."""
    found = ends(BY_TEXT[text], "row2", "gain")
    return f"{sum(abs(x) < 0.2 for x in found)} of {len(found)}"


def row2_slow(text):
    """Their mean size where they learned at one slow rate."""
    found = ends(SLOW_BY_TEXT[text], "row2", "gain")
    return number(statistics.fmean(map(abs, found)), 2)


def larger(plan, text):
    """In how many layers x0's or V1's coefficient ends larger than V's."""
    both = zip(*(ends(BY_TEXT[text], plan, letter) for letter in "ab"), strict=True)
    found = [abs(b) > abs(a) for a, b in both]
    return f"{sum(found)} of {len(found)}"


def on_v(plan):
    """Where V's coefficient ends, on both texts."""
    return of(x for grid in BY_TEXT.values() for x in ends(grid, plan, "a"))


def gains_above_2(text):
    """How many gains of rows 6 and 9 end above 2, and the largest: "10 of 24 (largest 4.0)"."""
    found = [abs(x) for plan in ("row6", "row9") for x in ends(BY_TEXT[text], plan, "gain")]
    return f"{sum(x > 2 for x in found)} of {len(found)} (largest {number(max(found), 2)})"


def of_the_token(field):
    """What the token explains of row 13's value in the last layer: "token" as read, or its own."""
    return of(row[field][-1] for row in recorded("inside", plan="row13"))


def arithmetic_saved():
    """Per cent of standard's arithmetic that Bank of Values saves, and the steps this buys."""
    plans = (skeleton(plan, "tiny") for plan in ("bov", "standard"))
    ours, theirs = (count(model)["flops_per_token"] for model in plans)
    saved = f"{100 * (1 - ours / theirs):.1f} %"
    more = WAR.steps * (theirs / ours - 1)
    return f"{saved} of arithmetic that BoV saves would buy {more:.0f} steps"


# ---- what query, key and value choose ------------------------------------------------------------


def x0_share(plan, door):
    """x0's share of what a door reads in the upper half, mean and range of seeds, on both texts."""
    return both_texts(lambda text: own_mixtures.token_shares(text, plan, door), mean_and_range)


def last_read(door):
    """What a door reads of the last parts more than if it read all evenly, on both texts."""
    return both_texts(lambda text: own_mixtures.of_the_last(text, door), over_seeds)


def both_texts(found, in_words):
    by_text = {}
    for text, name in NAMED.items():
        recorded(f"own_mixture_{text}")
        by_text[name] = in_words(found(text).values())
    return " and ".join(f"{words} on {name}" for name, words in by_text.items())


# ---- ResFormer and SVFormer ----------------------------------------------------------------------


def token_similarity(plan, layer):
    """How alike tokens are after a layer, mean of seeds."""
    found = recorded("inside", plan=plan)
    return number(statistics.fmean(row["similarity"][layer] for row in found), 2)


def crossed(grid, least):
    """In how many runs of at least so many steps was SVFormer overtaken: "6 of 9"."""
    curves = {}
    for row in recorded(grid):
        if row["plan"] in ("standard", "svformer") and row["asked"]["steps"] >= least:
            curves.setdefault((row["asked"]["steps"], row["seed"]), {})[row["plan"]] = row["train"]
    points = [critical_point(c["svformer"], c["standard"], WINDOW) for c in curves.values()]
    return f"{sum(point is not None for point in points)} of {len(points)}"


# ---- dynamic values ------------------------------------------------------------------------------


def saved(corner, size):
    """Per cent of standard's time that a training step saves."""
    (corners,) = recorded("bench", part="corners")
    row = next(x for x in corners["result"] if (x["plan"], x["size"]) == (corner, size))
    return f"{100 * (1 - row['time']):.0f}"


def effect(factor, before, after, fixed=None):
    """What one factor of dva_factorial costs, over the corners that hold `fixed`."""
    cube = recorded("dva_factorial")
    some = [row for row in cube if not fixed or fixed in row["plan"].split("/")]
    found = factorial.effect_row(some, factor, before, after)
    return f"{signed(found['difference'])} nats ({bounds(found)}, {found['n']} seeds)"


# ---- modded-nanogpt's lambdas --------------------------------------------------------------------

SHORT, LONG = "lambdas", "lambdas_long"


def mixed(grid, plan="modded", recipe="modded"):
    """The runs of one setting, by seed."""
    return sorted(rows_of_plan(grid, plan, recipe=recipe), key=lambda row: row["seed"])


def weight(row, form, layer):
    return row["coefficients"][form.format(layer)]


STREAM, X0, SKIP = "streams.1.residual.{}", "streams.1.x0.{}", "streams.0.weight.{}"
GAIN, TABLE = "blocks.{}.attention.value.gain", "blocks.{}.attention.value.b"
WITH_TABLES = (0, 1, 2, 13, 14, 15)


def weights(grid, form, *layers, recipe="modded"):
    """Where the weights of these layers end, over seeds."""
    found = [weight(row, form, layer) for row in mixed(grid, recipe=recipe) for layer in layers]
    return of(map(abs, found) if form == X0 else found)


def value_gains(grid):
    """All weights on V of layers without a table."""
    found = (row["coefficients"] for row in mixed(grid))
    return [x for one in found for name, x in one.items() if name.endswith("value.gain")]


def reach_6():
    found = value_gains(LONG)
    return f"{sum(x >= 6 for x in found)} of {len(found)}"


def last_table_less(of_the_others):
    """The last layer's weight on its table less that of the others."""
    found = []
    for row in mixed(LONG):
        *others, last = (weight(row, TABLE, layer) for layer in WITH_TABLES)
        found.append(last - of_the_others(others))
    return over_seeds(found)


def outweighs(grid, recipe="modded", plan="modded"):
    """In how many layers after the first x0's share is above one half, by seed."""
    found = mixed(grid, plan, recipe)
    return each(sum(share > 0.5 for share in row["x0_share"][1:]) for row in found)


def fell(grid, recipe="modded", plan="modded"):
    """In how many layers x0's share falls again, by seed."""
    return each(row["fell"] for row in mixed(grid, plan, recipe))


def turn():
    return of(row["turn"] for row in mixed(LONG))


def turn_moved():
    """By how much an open window moves the turn, as a part of the run."""
    ours, theirs = (
        {row["seed"]: row["turn"] for row in mixed(LONG, recipe=recipe)}
        for recipe in ("modded", "modded-open")
    )
    return over_seeds(between(ours, theirs), 3)


def early_less_late():
    """x0's weights in layers 1 to 7 less those in layers 8 to 15."""
    size = lambda row, layers: statistics.fmean(abs(weight(row, X0, layer)) for layer in layers)
    return over_seeds(size(row, range(1, 8)) - size(row, range(8, 16)) for row in mixed(LONG))


def lowest(form, grid=LONG):
    """In how many runs layer 8 has the smallest weight of layers 1 to 15: "9 of 9"."""
    found = []
    for row in recorded(grid):
        sizes = {layer: abs(weight(row, form, layer)) for layer in range(1, 16)}
        found.append(min(sizes, key=sizes.get) == 8)
    return f"{sum(found)} of {len(found)}"


def rank_of_15(form):
    """Where layer 15 stands among layers 1 to 15 in the size of a weight, from the smallest."""
    found = []
    for row in mixed(LONG):
        sizes = sorted(abs(weight(row, form, layer)) for layer in range(1, 16))
        found.append(1 + sizes.index(abs(weight(row, form, 15))))
    return each(found)


def beside_layer_8(row):
    others = [weight(row, STREAM, layer) for layer in range(1, 14) if layer != 8]
    return weight(row, STREAM, 8) - statistics.fmean(others)


def layer_8(plan):
    """Layer 8's weight on the stream less the mean of layers 1 to 13."""
    return over_seeds(beside_layer_8(row) for row in mixed(LONG, plan))


def gap_on_layer_8():
    """What the gap in attention does to that."""
    ours, theirs = (
        {row["seed"]: beside_layer_8(row) for row in mixed(LONG, plan)}
        for plan in ("modded-whole", "modded")
    )
    return over_seeds(between(ours, theirs))


def stream_share(layer):
    """The stream's share by weights in a layer, over seeds."""
    return of(1 - row["x0_share"][layer] for row in mixed(LONG))


def weights_that_crossed():
    """How many weights on x0 changed sign, in how many runs."""
    found = [len(row["crossed"]) for grid in (SHORT, LONG) for row in recorded(grid)]
    return f"{sum(found) or 'no'} weight on x0 of {len(found)} runs"


def rise(recipe):
    return of((row["rise"] for row in mixed(LONG, recipe=recipe)), 3)


# ---- the bypass ----------------------------------------------------------------------------------


def f1_gain(size):
    """What the bypass gains in F1, in points, in one size of encoder."""
    of_size = recorded("bypass", size=size)
    ours, theirs = (
        {row["seed"]: -row["f1"] for row in of_size if row["plan"] == plan}
        for plan in ("bypass", "standard")
    )
    return over_seeds(between(ours, theirs), 1)


def dials_apart():
    """How many dials of the bypass differ clearly from standard: "1 of 14"."""
    found = intervals.paired(recorded("bypass_dials"), "f1")
    others = [row for row in found if row["plan"] != "standard"]
    return f"{sum(row['clear'] for row in others)} of {len(others)}"
