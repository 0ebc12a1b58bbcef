"""Did the tuning grids come out as foretold? What was foretold stands in title.EXPECTED.

Three seeds chose each rate, so these are their means: a choice favours whom their noise favoured.
"""

import itertools
import json

from course.markdown import table
from evidence.research import answer, leads, title
from evidence.research.asked import came_between, so
from evidence.research.title import TEXTS

OVERRIDES = {  # factor on the rates of the matrices: the row of at_each_choice
    factor: title.at_times(factor, *title.MATRICES)
    for factor in (title.HALF, title.SAME, title.TWICE)
}


def at_factor(text, factor):
    """{plan: mean loss} where the matrices learn at so many times the recipe's rates."""
    means = answer.at_each_choice(text)
    row = next(at for at in means.index if json.loads(at).get("overrides", {}) == OVERRIDES[factor])
    return means.loc[row]


def faster_wanted(text):
    """The plans whose matrices want more than the recipe's rate."""
    best = answer.at_each_choice(text).idxmin()
    words = {plan: answer.rates_in_words(at) for plan, at in best.items()}
    return [plan for plan, rates in words.items() if "matrix" in rates and rates.endswith(" x 2")]


def turned_by_rates(text):
    """By how much at most two plans exchange places between two rates, both ways as far."""
    most, at_rates = 0.0, [at_factor(text, factor) for factor in OVERRIDES]
    for first, second in itertools.combinations(at_rates, 2):
        for one, other in itertools.permutations(first.index, 2):
            apart = first[other] - first[one], second[one] - second[other]
            most = max(most, min(apart))
    return most


def foretold():
    """What was written before the tuning grids, and what came: of means of three seeds."""
    faster = {text: faster_wanted(text) for text in TEXTS}
    wanted = [f"{' and '.join(plans)} on {text}" for text, plans in faster.items() if plans]
    lines = [
        [
            "matrices: the recipe's rate or half of it is best for every plan",
            f"{so(not wanted)}: twice the rate is best for {'; for '.join(wanted)}",
        ],
    ]
    for text in TEXTS:
        means = answer.at_each_choice(text)["bov-fixed"]
        usual = at_factor(text, title.SAME)["bov-fixed"]
        twice = next(loss for at, loss in means.items() if answer.rates_in_words(at) == "table x 2")
        lines.append(
            [
                f"tables: twice the rate is no worse on {text}",
                f"{so(twice <= usual)}: {leads.signed(usual - twice, 4)}",
            ]
        )
    for text, low, high, plans in (
        ("code", 0.08, 0.13, ("x0-v",)),
        ("novel", 0.02, 0.04, ("x0-v",)),
        ("code", 0.04, 0.08, ("resformer", "svformer")),
    ):
        rows = {row["plan"]: row for row in answer.at_their_best(text)}
        for plan in plans:
            words = f"{plan} ahead by {low:g} to {high:g} on {text}"
            lines.append([words, came_between(rows[plan], low, high)])
    best = answer.at_their_best("code")[0]
    lines.append(["bov-fixed ahead of all on code", so(best["plan"] == "bov-fixed")])
    for text in TEXTS:
        most = turned_by_rates(text)
        lines.append(
            [
                f"no order of two plans turns round by more than .02 nats on {text}",
                f"{so(most <= 0.02)}: by {leads.number(most)} at most, both ways",
            ]
        )
    return table(["foretold", "came"], lines)
