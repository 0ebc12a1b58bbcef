"""A quantity of the records by its name: what marks in prose and what was foretold refer to.

    quantity("lead x0-v code fine")                          Lead: +0.108 (+0.085 to +0.131)
    quantity("lead row13 over row8 novel tuned")             one system over another
    quantity("low x0-v code fine")                           the lower end of its interval
    quantity("lead standard+hidden=416 code tuned")          a cell with another size
    quantity("lead row8 code course per lead x0-v code course")    a number from several (computed)

The first word names a line of QUANTITIES. Of the others, those in WORDS choose rows of the table,
`over X` names the other system, and what is left is the system. A new number is a new line.
"""

import functools
import itertools
import re

import numpy as np
import pandas as pd
from scipy import stats

from course import records
from evidence.bench.gpu_table import SPANS
from evidence.lab import rates
from evidence.lab.asked import grids
from evidence.lab.comparison import (
    Lead,
    by_seed,
    change,
    difference,
    effect,
    lead,
    leads,
    of_seeds,
    paired,
    rows_where,
)
from evidence.lab.table import RATES, at_step, runs

WORDS = {
    **{text: dict(text=text) for text in ("code", "novel")},
    "novels": dict(text="books"),
    "dombey": dict(text="books:dombey-and-son"),
    "miserables": dict(text="books:les-mis-rables"),
    **{how: dict(rates=how) for how in RATES},
    "budgets": dict(topic="budgets"),
    "sweep": dict(topic="older"),  # every system once, one older recipe, three seeds
    "d12": dict(topic="d12", steps=350, rates="paper"),
}
STEPS = 500  # of a run, where no word says otherwise


def cell(word):
    """ "standard+hidden=416" as the table names it: "standard, hidden 416"."""
    return word.replace("+", ", ").replace("=", " ")


def asked_for(words):
    """(systems, over, where) of the words of a name."""
    systems, over, where, rest = [], "standard", dict(steps=STEPS), list(words)
    while rest:
        word = rest.pop(0)
        if word == "over":
            over = cell(rest.pop(0))
        elif word in WORDS:
            where |= WORDS[word]
        elif "=" in word and "+" not in word:  # a column of the table: grid=start, lr=0.001
            column, _, value = word.partition("=")
            where[column] = float(value) if value[0].isdigit() else value
        else:
            systems.append(cell(word))
    return systems, over, where


def lead_of(words):
    (system,), over, where = asked_for(words)
    return lead(runs(), system, over, **where)


def cell_runs(words):
    """The runs of one system, a row a seed."""
    (system,), _, where = asked_for(words)
    return by_seed(rows_where(runs(), **where), system, where)


def tokens_a_parameter(words):
    run = cell_runs(words).iloc[0]
    return float(run.tokens / run.parameters)


def change_of(words):
    """ "change x0-v code fine less x0-v code ten": the first lead less the second, seed by seed."""
    at = words.index("less")
    return change(lead_of(words[:at]), lead_of(words[at + 1 :]))


def apart(words):
    """ "apart standard lr=0.01 less standard lr=0.001": the first below the second, by seed."""
    at = words.index("less")
    some = [cell_runs(part) for part in (words[:at], words[at + 1 :])]
    seeds = some[0].index.intersection(some[1].index)
    return paired(*(rows.loc[seeds] for rows in some))


def mean_of(words):
    """ "mean fell modded grid=lambdas": the mean of a column over the runs of one system."""
    return float(cell_runs(words[1:])[words[0]].mean())


def more_of(words):
    """ "more turn row9 grid=x less row8 grid=x": by how much a column is larger, by seed."""
    column, *cells = words
    at = cells.index("less")
    return difference(*(cell_runs(part)[column] for part in (cells[:at], cells[at + 1 :])))


def effect_of(words):
    """ "effect one over many grid=dva_factorial"; a third word: among the plans that have it."""
    (after, *among), before, where = asked_for(words)
    some = rows_where(runs(), **where)
    for part in among:
        some = some[some.plan.str.split("/").map(set).map({part}.issubset)]
    return effect(some, after, before)


def lead_at_best(words):
    (system,), over, where = asked_for(words)
    return lead(rates.at_best(runs(), where["text"]), system, over)


def lead_at(words):
    """ "lead-at 175 x0-v d12": the lead at a step of the runs at which both were read."""
    step, *rest = words
    (system,), over, where = asked_for(rest)
    return lead(at_step(rows_where(runs(), **where), int(step)), system, over)


def measured_rows(name, words):
    """The rows of a file of what was measured where these columns are so: plan=bov, texts=4."""
    wanted = [word.split("=") for word in words]
    return [
        row
        for row in records.read(name)["rows"]
        if all(str(row.get(column)) == cell(value) for column, value in wanted)
    ]


def measured(words):
    """ "measured inside entropy_deep bov over standard": how much more of a column, by seed, in
    a file of what was measured of trained models."""
    file, column, system, _, other = words
    rows = pd.DataFrame(records.read(file)["rows"]).set_index("seed")
    return difference(*(rows[rows.plan == plan][column] for plan in (system, other)))


def said(words):
    """ "said gpu_session times_standard plan=bov texts=4": the column of one row of a file."""
    file, column, *wanted = words
    found = measured_rows(file, wanted)
    if len(found) != 1:
        raise ValueError(f"wanted one row of {file}, got {len(found)}: name more of its columns")
    return found[0][column]


def ranked(words):
    """ "ranked holm code": how many of all tuned systems are ahead of standard by Holm among them
    all; "bh" in its place, or "clear", each alone."""
    how, text = words
    tuned = rows_where(runs(), rates="tuned", text=text)
    found = leads(tuned, sorted({*tuned.plan} - {"standard"}))
    return int(found[how][found["lead"] > 0].sum())


def token_share(words):
    """ "token-share v coef-apart grid=own_mixture_code": how much of the token q, k or v takes, by
    seed, the mean of the upper half of the layers."""
    door, *rest = words
    found = {}
    for seed, mixed in cell_runs(rest).mixed.items():
        upper = mixed[door][len(mixed[door]) // 2 :]
        # a weight, or the shares of all parts, of which the token is the first
        found[seed] = np.mean([np.ravel(layer)[0] for layer in upper])
    return pd.Series(found)


def token_asked(words):
    """ "token-asked coef-apart grid=own_mixture_code": by how much v takes more of the token than q
    and k do, in the seed in which that is least."""
    q, k, v = (token_share([door, *words]) for door in "qkv")
    return float((v - np.maximum(q, k)).min())


def values_forgotten(words):
    """The nats that a trained standard loses when its values become their token's mean, in all
    layers; "values-forgotten code token layer 3" in one; "... code all last 12": one mean for all.
    """
    text, *what = words
    kind, *layers = what or ("token", "last", "12")
    losses = [row["held_out"] for row in records.read(f"mean_values_{text}")["rows"]]
    without = [loss[f"{kind}, {' '.join(layers)}"] for loss in losses]
    return float(np.mean(without) - np.mean([loss["nothing"] for loss in losses]))


def stretch_leads(words):
    """The lead in each stretch of 16 held-out texts, the mean over seeds."""
    (system,), over, where = asked_for(words)
    rows = rows_where(runs(), **where)
    ours, theirs = (np.stack(by_seed(rows, one, where).held_out) for one in (system, over))
    return (theirs - ours).mean(0)


def tries_of_three(words):
    """ "unclear-threes x0-v novel fine": of all ways to choose three of the seeds, how many give an
    interval, of these seeds alone, that holds zero."""
    tries = itertools.combinations(lead_of(words).by_seed, 3)
    return sum(not of_seeds(some).clear for some in tries)


def claims_with(words):
    """ "claims reproduced", or all of them."""
    verdict = " ".join(words)
    return sum(verdict in ("", claim["verdict"]) for claim in records.claims())


def wrong_of(words):
    """ "wrong misprint": claims that are wrong in this way."""
    return sum(claim.get("kind") == words[0] for claim in records.claims())


def exact_of(words):
    """ "exact many_answers plan=x0 answers=20 heads=2": the mean share of exact answers of these
    models of a made-up text."""
    return float(np.mean([row["exact"] for row in measured_rows(words[0], words[1:])]))


def depths_in_need(words):
    """ "depths-in-need compute_then_fetch_deeper": at how many depths each model whose values come
    from the stream answers more, by .05, than every model whose values are the token's."""
    rows = pd.DataFrame(records.read(*words)["rows"])
    stream, token = rows[rows.plan == "standard"], rows[rows.plan != "standard"]
    shape = ["depth", "last_mlp"]
    needed = stream.groupby(shape).exact.min() > token.groupby(shape).exact.max() + 0.05
    return int(needed.groupby("depth").any().sum())


def order_of(words):
    """ "order next": the rank correlation of what was counted in each new text before a run, and of
    what tables lead by there at the parameters of standard."""
    (guess,) = words
    new = [grid for name, grid in grids().items() if name.startswith("why_text") and grid.counted]
    new = [grid for grid in new if not grid.exploratory]
    leads = [lead(runs(), "bov-fixed, hidden 96", grid=grid.name).mean for grid in new]
    return float(stats.spearmanr([grid.counted[guess] for grid in new], leads)[0])


def bits_lead(words):
    """How far a system is below standard in bits a byte, in the mean."""
    systems, _, where = asked_for(words)
    standard, system = (
        by_seed(rows_where(runs(), **where), cell, where).bpb.mean()
        for cell in ("standard", *systems)
    )
    return standard - system


def of_rates(function):
    """A function of evidence.lab.rates: "at-rate row8 matrices x 2 code"."""

    def found(words):
        *asked, text = words
        return function(runs(), text, *asked)

    return found


QUANTITIES = {
    "lead": lead_of,
    "apart": apart,
    "effect": effect_of,
    "mean": mean_of,
    "more": more_of,
    "range": lambda words: float(np.ptp(cell_runs(words).loss)),
    "measured": measured,
    "said": said,
    "lag": lambda words: -lead_of(words).mean,
    "low": lambda words: lead_of(words).low,
    "seeds": lambda words: lead_of(words).n,
    "p": lambda words: lead_of(words).p,
    "change": change_of,
    "shrinks": lambda words: -change_of(words).mean,
    "loss": lambda words: cell_runs(words).loss.mean(),
    "bits": lambda words: cell_runs(words).bpb.mean(),
    "bits-lead": bits_lead,
    "tokens": lambda words: cell_runs(words).tokens.iloc[0],
    "parameters": lambda words: cell_runs(words).parameters.iloc[0],
    "tokens-a-parameter": tokens_a_parameter,
    "unclear-threes": tries_of_three,
    "stretches": lambda words: len(stretch_leads(words)),
    "stretches-ahead": lambda words: int((stretch_leads(words) > 0).sum()),
    "spread": lambda words: lead_of(words).by_seed.std(),
    "ranked": ranked,
    "lead-at": lead_at,
    "farthest": lambda words: apart(words).by_seed.abs().max(),
    "token-share": lambda words: token_share(words).mean(),
    "token-asked": token_asked,
    "values-forgotten": values_forgotten,
    "claims": claims_with,
    "wrong": wrong_of,
    "order": order_of,
    "exact": exact_of,
    "depths-in-need": depths_in_need,
    # of what a GPU said: "gpu-most over-loop 4 131072"
    "gpu-least": lambda words: min(SPANS[words[0]](*words[1:])),
    "gpu-most": lambda words: max(SPANS[words[0]](*words[1:])),
    # of the runs that chose rates
    "lead-at-best": lead_at_best,
    "chosen": of_rates(rates.chosen),
    "choosers": of_rates(rates.choosers),
    "at-rate": of_rates(rates.at_rate),
    "from-the-next": of_rates(rates.from_the_next),
    "turned-round": of_rates(rates.turned_round),
    "gain-of-tuning": of_rates(rates.gain_of_tuning),
    "ahead-beyond": of_rates(rates.ahead_beyond),
    "ahead-finer": of_rates(rates.ahead_finer),
    "ahead-at-best": lambda words: lead_at_best(words).mean,
}


def computed(name):
    """A number from the means of several: "lead x0-q novel course per lead x0-q code course", or
    with "minus" and "plus" between them, which are done before "per"."""
    above, per, below = name.partition(" per ")
    if per:
        return computed(above) / computed(below)
    first, *rest = re.split(r" (minus|plus) ", name)
    return as_number(first) + sum(
        as_number(one) * (1 if sign == "plus" else -1) for sign, one in zip(rest[::2], rest[1::2])
    )


def as_number(name):
    if name.isdecimal():
        return float(name)
    found = quantity(name)
    return found.mean if isinstance(found, Lead) else float(found)


@functools.lru_cache(maxsize=4096)  # pages name the same number often
def quantity(name):
    if re.search(r" (per|minus|plus) ", name):
        return computed(name)
    first, *words = name.split()
    if first not in QUANTITIES:
        raise ValueError(f"wanted one of {', '.join(QUANTITIES)}; got {first!r} in {name!r}")
    try:
        return QUANTITIES[first](words)
    except ValueError as error:
        raise type(error)(f"{name!r}: {error}") from None
