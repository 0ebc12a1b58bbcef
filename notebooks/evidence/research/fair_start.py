"""Did the tuning grids come out as foretold? What was foretold stands in title.EXPECTED, and of
systems that were tuned later in EXPECTED_THIRD and the others behind it.

Three seeds chose each rate, so these are their means: a choice favours whom their noise favoured.
"""

import itertools
import json
from typing import NamedTuple

from course.markdown import table
from evidence.research import answer, leads, pairs, title
from evidence.research.asked import NAMED, came_between, it_did, so
from evidence.research.grids import RATES_TRIED
from evidence.research.title import MARGIN, TEXTS

OVERRIDES = {  # factor on the rates of the matrices: the row of at_each_choice
    factor: title.at_times(factor, *title.MATRICES)
    for factor in (title.HALF, title.SAME, title.TWICE)
}


def in_words(overrides):
    """Rates as rates_in_words has them, of a row of a grid."""
    return answer.rates_in_words(json.dumps(dict(overrides=overrides), sort_keys=True))


AT_USUAL, AT_HALF, AT_TWICE = (
    in_words(OVERRIDES[factor]) for factor in (title.SAME, title.HALF, title.TWICE)
)
GAIN_SLOWED = tuple(map(in_words, title.SLOW_BETAS))
# one rate further, where the last was the best
FURTHER_RATES = ("tuning_beyond", *(f"tuning_beyond_{plan}" for plan in title.FURTHER_LATER))
FINER_RATES = "tuning_finer"  # half a step to both sides, of the two systems of the answer
OF_MATRICES = (AT_USUAL, AT_HALF, AT_TWICE)  # a column each of the table of choices


def by_rates(means):
    """The same with rates in words."""
    return means.set_axis([answer.rates_in_words(at) for at in means.index])


def choices(text):
    """A row a plan that was tuned: its mean loss at each of its rates, and in bold what it gets."""
    means = answer.at_each_choice(text, *RATES_TRIED, *FURTHER_RATES, FINER_RATES)
    means, lines = by_rates(means), []
    for plan in means:
        tried = means[plan].dropna()
        shown = {rates: leads.number(loss) for rates, loss in tried.items()}
        shown[tried.idxmin()] = f"**{shown[tried.idxmin()]}**"
        line = [shown.pop(rates) for rates in OF_MATRICES]
        others = (f"{rates.replace(' x ', ' ×')}: {loss}" for rates, loss in shown.items())
        lines.append([plan, *line, "; ".join(others)])
    return table(["plan", *OF_MATRICES, "other rates"], lines)


def taken():
    """The choice as a small table: the rates that each plan gets, on each text."""
    lines = rates_taken("", *RATES_TRIED)
    if finer_is_recorded():
        lines += rates_taken(", half a step finer", FINER_RATES)
    return table(["plan", *(f"on {NAMED[text]}" for text in TEXTS)], lines)


def rates_taken(how, *questions):
    """A row a plan of these grids."""
    best = [answer.at_each_choice(text, *questions).idxmin() for text in TEXTS]
    lines = []
    for plan in best[0].index:
        lines.append([plan + how, *(answer.rates_in_words(chosen[plan]) for chosen in best)])
    return lines


def at_factor(text, factor):
    """{plan: mean loss} where the matrices learn at so many times the recipe's rates."""
    means = answer.at_each_choice(text)
    row = next(at for at in means.index if json.loads(at).get("overrides", {}) == OVERRIDES[factor])
    return means.loc[row]


def faster_wanted(text):
    """The plans whose matrices want more than the recipe's rate."""
    best = answer.at_each_choice(text).idxmin()
    words = {plan: answer.rates_in_words(at) for plan, at in best.items()}
    return [plan for plan, rates in words.items() if rates == AT_TWICE]


def turned_by_rates(text):
    """By how much at most two plans exchange places between two rates, both ways as far."""
    most, at_rates = 0.0, [at_factor(text, factor) for factor in OVERRIDES]
    for first, second in itertools.combinations(at_rates, 2):
        for one, other in itertools.permutations(first.index, 2):
            apart = first[other] - first[one], second[one] - second[other]
            most = max(most, min(apart))
    return most


def neighbours(text):
    """The plan whose best rate of the matrices is farthest ahead of the next best, and by what."""
    at_rates = [at_factor(text, factor) for factor in OVERRIDES]
    most, plan = 0.0, "any"
    for one in at_rates[0].index:
        best, second, _ = sorted(losses[one] for losses in at_rates)
        most, plan = max((most, plan), (second - best, one))
    return f"{so(most < 0.02)}: {leads.number(most)} for {plan}"


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
    lines += [[f"within .02 of its neighbour on {text}", neighbours(text)] for text in TEXTS]
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


# ---- systems that were tuned after the six -------------------------------------------------------


class Tuned(NamedTuple):
    """A system that was tuned later, and what was written before its rates were tried."""

    question: str  # its tuning grids
    rates: dict  # {text: those of which one was expected to be best}
    rival: str
    over_rival: dict  # {text: (lowest, highest) lead over that, each at its best}
    neighbours: float | None = None  # nats within which its other rates were expected


SLOWED_OR_HALF = (*GAIN_SLOWED, AT_HALF)
TUNED_LATER = {
    "row8": Tuned(
        "tuning_third",
        dict(code=(AT_TWICE,), novel=(AT_USUAL,)),
        "x0-v",
        dict(code=(-0.03, 0.03), novel=(-0.01, 0.01)),
        neighbours=0.02,
    ),
    "row12": Tuned(
        "tuning_half",
        dict(code=(AT_USUAL, AT_TWICE), novel=(AT_USUAL, AT_HALF)),
        "row8",
        dict(code=(-0.08, -0.02), novel=(-0.015, 0.015)),
    ),
    "bov": Tuned(
        "tuning_bank",
        dict(code=(*GAIN_SLOWED, AT_TWICE), novel=GAIN_SLOWED),
        "bov-fixed",
        dict(code=(-0.03, 0.03), novel=(-0.01, 0.01)),
    ),
    "row5": Tuned(
        "tuning_first",
        dict(code=(AT_USUAL,), novel=(AT_USUAL, AT_HALF)),
        "resformer",
        dict(code=(-0.06, -0.01), novel=(-0.015, 0.015)),
    ),
    "neutreno": Tuned(
        "tuning_first",
        dict(code=(AT_HALF,), novel=(AT_HALF,)),
        "standard",
        dict(code=(-0.01, 0.03), novel=(0, 0.02)),
    ),
    "bov-keep": Tuned(
        "tuning_keep",
        dict(code=(AT_TWICE,), novel=GAIN_SLOWED),
        "bov-fixed",
        dict(code=(-0.07, 0), novel=(-0.015, 0)),
    ),
    "row9": Tuned(
        "tuning_gain",
        dict(code=(AT_USUAL, *GAIN_SLOWED, AT_TWICE), novel=GAIN_SLOWED),
        "row8",
        dict(code=(-0.03, 0.03), novel=(-0.01, 0.01)),
    ),
    "row6": Tuned(
        "tuning_v1_gain",
        dict(code=(AT_USUAL, *GAIN_SLOWED), novel=SLOWED_OR_HALF),
        "row5",
        dict(code=(-0.03, 0.03), novel=(-0.01, 0.01)),
    ),
    "row2": Tuned(
        "tuning_own_gain",
        dict(code=SLOWED_OR_HALF, novel=SLOWED_OR_HALF),
        "standard",
        dict(code=(-0.02, 0.01), novel=(-0.02, 0.005)),
    ),
    "row11": Tuned(
        "tuning_open",
        dict(code=(AT_USUAL, *GAIN_SLOWED), novel=SLOWED_OR_HALF),
        "row5",
        dict(code=(-0.03, 0.03), novel=(-0.01, 0.01)),
    ),
    "row13": Tuned(
        "tuning_open",
        dict(code=(AT_USUAL, *GAIN_SLOWED), novel=SLOWED_OR_HALF),
        "row8",
        dict(code=(-0.04, 0.02), novel=(-0.01, 0.01)),
    ),
    "engram": Tuned(
        "tuning_engram",
        dict(code=(AT_USUAL, AT_TWICE), novel=(AT_USUAL, "table x 2")),
        "bov-fixed",
        dict(code=(-0.05, 0.03), novel=(0.05, 0.10)),
    ),
}


def tuned_later():
    """The systems whose tuning grids are whole on both texts."""
    whole = {
        plan: all(pairs.whole(f"{tuned.question}_{text}") for text in TEXTS)
        for plan, tuned in TUNED_LATER.items()
    }
    return [plan for plan, both in whole.items() if both]


def losses_at_rates(text, plan):
    """The mean loss of a system at each of the rates that its own grid tried."""
    question = TUNED_LATER[plan].question if plan in TUNED_LATER else "tuning"
    return answer.at_each_choice(text, question)[plan]


def came_of_mean(ahead, low, high):
    """Did a mean of three seeds come between these?"""
    return f"{so(low <= ahead <= high)}: {leads.signed(ahead)}"


def foretold_of_rates(plan):
    """What was written before this system was tuned, and what came: means of three seeds."""
    lines, tuned = [], TUNED_LATER[plan]
    for text in TEXTS:
        rates, means = tuned.rates[text], by_rates(losses_at_rates(text, plan))
        chosen = means.idxmin()
        lines.append([f"{' or '.join(rates)} on {text}", f"{so(chosen in rates)}: {chosen}"])
        if tuned.neighbours:
            apart = (means - means[AT_USUAL]).abs().max()
            within = f"{tuned.neighbours:g}".lstrip("0")
            words = f"neighbouring rates within {within} nats on {text}"
            lines.append([words, f"{so(apart < tuned.neighbours)}: {leads.number(apart)}"])
        low, high = tuned.over_rival[text]
        ahead = losses_at_rates(text, tuned.rival).min() - means.min()
        words = f"ahead of {tuned.rival} by {leads.from_to(low, high)} on {text}"
        lines.append([words, came_of_mean(ahead, low, high)])
    return table(["foretold", "came"], lines)


# ---- one rate beyond the last --------------------------------------------------------------------

FURTHER = dict(  # {text: {system: between what one rate further was expected ahead of its best}}
    code={
        "standard": (-0.06, -0.01),
        "x0-v": (-0.12, -0.02),
        "bov-fixed": (-0.12, -0.02),
        "bov": (-0.12, -0.02),
        "bov-keep": (-0.12, -0.02),
        "denseformer": (-0.01, 0.01),
        "row6": (-0.12, -0.02),
        "row2": (-0.13, -0.05),
        "engram": (-0.10, -0.02),
    },
    novel={
        "standard": (-0.04, 0),
        "svformer": (-0.04, 0),
        "row12": (-0.04, 0),
        "row5": (-0.04, 0),
        "denseformer": (-0.01, 0.01),
        "bov-fixed": (-0.01, 0.01),
        "bov": (-0.01, 0.01),
        "row2": (-0.13, -0.05),
        "row11": (-0.13, -0.05),
        "engram": (-0.10, -0.02),
    },
)


def beyond_is_recorded():
    return all(pairs.whole(f"{FURTHER_RATES[0]}_{text}") for text in TEXTS)


def steps_beyond(text):
    """{system: (its best of the rates tried first, one further, how far this is ahead)}; of grids
    that are whole."""
    steps, further = {}, answer.at_each_choice(text, *FURTHER_RATES)
    for plan in filter(further.columns.__contains__, FURTHER[text]):
        tried, beyond = losses_at_rates(text, plan), further[plan].dropna()
        ahead = tried.min() - beyond.item()
        rates = map(answer.rates_in_words, (tried.idxmin(), beyond.index.item()))
        steps[plan] = (*rates, ahead)
    return steps


def better_beyond(text):
    """The systems that are better one rate further."""
    return [plan for plan, (*_, ahead) in steps_beyond(text).items() if ahead > 0]


def who_is_better_beyond():
    """ "none", or "standard on code"."""
    found = [f"{plan} on {text}" for text in TEXTS for plan in better_beyond(text)]
    return " and ".join(found) or "none"


def foretold_of_beyond():
    """What was written before one rate further was tried, and what came: means of three seeds."""
    lines = []
    for text in TEXTS:
        for plan, (best, further, ahead) in steps_beyond(text).items():
            low, high = FURTHER[text][plan]
            span = leads.from_to(low, high)
            words = f"{plan} on {text}: {further} ahead of {best} by {span}"
            lines.append([words, came_of_mean(ahead, low, high)])
        *_, ahead = steps_beyond(text)["standard"]
        words = f"our mind changes on {text}: standard better by more than .01"
        lines.append([words, it_did(ahead > MARGIN)])
    return table(["foretold", "came"], lines)


# ---- half a step to both sides -------------------------------------------------------------------

# {text: {system: {rates: between what they were expected ahead of its choice}}}
FORETOLD_FINER = dict(
    code={
        "standard": {"matrices x 0.354": (-0.04, -0.01), "matrices x 0.707": (0, 0.012)},
        "x0-v": {"matrices x 1.414": (-0.005, 0.012), "matrices x 2.828": (-0.03, -0.005)},
    },
    novel={
        "standard": {"matrices x 0.354": (-0.04, -0.01), "matrices x 0.707": (0, 0.01)},
        "x0-v": {"matrices x 0.707": (-0.006, 0.006), "matrices x 1.414": (-0.006, 0.006)},
    },
)


def finer_is_recorded():
    return all(pairs.whole(f"{FINER_RATES}_{text}") for text in TEXTS)


def finer_steps(text):
    """{system: {rates: how far ahead of its choice, half a step to either side}}"""
    finer = by_rates(answer.at_each_choice(text, FINER_RATES))
    return {
        plan: losses_at_rates(text, plan).min() - finer[plan].dropna()
        for plan in FORETOLD_FINER[text]
    }


def foretold_of_finer():
    """What was written before half a step was tried, and what came: means of three seeds."""
    lines = []
    for text in TEXTS:
        for plan, steps in finer_steps(text).items():
            for rates, (low, high) in FORETOLD_FINER[text][plan].items():
                span = leads.from_to(low, high)
                words = f"{plan} on {text}: {rates} ahead of its choice by {span}"
                lines.append([words, came_of_mean(steps[rates], low, high)])
    return table(["foretold", "came"], lines)
