"""Notebook 12: how much is a difference worth?"""

import itertools

import numpy as np

from homework.marking import Part, Unit, always, drawn

unit = Unit("nb12_scale_and_evidence", "Scale and evidence")


@drawn
def two_scores(r, tasks):
    """Scores of two models on some tasks, and their standard errors, of unlike sizes."""
    old, new = 0.2 + 0.3 * r.random((2, tasks))
    old_error, new_error = 0.01 + 0.05 * r.random((2, tasks))
    if tasks == 1:  # the new one is better; among many, some are worse
        new = old + 0.1 + 0.1 * r.random(1)
    return new, new_error, old, old_error


@unit.exercise(Part("one task", 1, two_scores(1)), Part("many tasks", 1, two_scores(21)))
def z_of(new, new_error, old, old_error):
    """The difference new - old in units of its own standard error; all are (n,), and so is it.

    new_error and old_error are the standard errors of two independent scores.
    """
    error = np.sqrt(new_error**2 + old_error**2)
    return (new - old) / error


unit.mistakes("""
takes: easy, 5 minutes
hint: How uncertain is a difference of two numbers that are independent? Squares add up.
hint: error = sqrt(new_error² + old_error²); z is the difference in units of it.
hint: return (new - old) / (new_error**2 + old_error**2).sqrt()
2 | you divided by one model's error; BOTH scores are uncertain, their difference even more
    np.sqrt(new_error**2 + old_error**2) => new_error
2 | you divided by the old model's error alone; both scores are uncertain
    np.sqrt(new_error**2 + old_error**2) => old_error
2 | you added the errors; chance of two models may cancel, so their SQUARES are added
    np.sqrt(new_error**2 + old_error**2) => new_error + old_error
2 | the error of a difference is larger than either error, not between them: add squares
    np.sqrt(new_error**2 + old_error**2) => (new_error + old_error) / 2
2 | that is the variance of the difference; its error is the root of it
    np.sqrt =>
2 | the squares of the errors are added, not averaged: a difference is less certain than both
    new_error**2 + old_error**2 => (new_error**2 + old_error**2) / 2
2 | z counts single errors; that a difference is clear beyond two of them comes afterwards
    np.sqrt => 2 * np.sqrt
1 | keep the sign: below zero the old one is better
    (new - old) => abs(new - old)
2 | new minus old: above zero the new one is better
    new - old => old - new
2 | the errors are squared BEFORE they are added
    new_error**2 + old_error**2 => new_error + old_error
2 | divide the difference by the error of the difference; you took two z apart
    => new / new_error - old / old_error
2 | the squares are ADDED, also for a difference
    new_error**2 + old_error**2 => abs(new_error**2 - old_error**2)
""")


@drawn
def runs(r, pairs, t):
    """Losses of a plan and of the baseline: seeds move both together. In the first the plan is
    behind."""
    ahead = np.where(np.arange(pairs) == 0, -0.15, 0.2)
    seed = 3 + 0.3 * r.normal(size=pairs)
    return seed - ahead + 0.02 * r.normal(size=pairs), seed + 0.02 * r.normal(size=pairs), t


@unit.exercise(Part("three pairs", 1, runs(3, 4.302653)), Part("eight pairs", 1, runs(8, 2.364624)))
def paired_interval(plan, baseline, t):
    """How far a plan is ahead, (mean, low, high) of baseline minus plan: losses (n,) of the same
    seeds in the same order.

    low and high lie t standard errors below and above the mean. t is the number of Student's
    table for n - 1 degrees of freedom.
    """
    d = baseline - plan
    error = d.std(ddof=1) / np.sqrt(len(d))
    mean, reach = d.mean(), t * error
    return mean, mean - reach, mean + reach


unit.mistakes("""
takes: easy, 8 minutes
hint: First the n differences. Then their mean, and their spread with n - 1.
hint: reach = t * d.std() / sqrt(n); the interval is mean - reach to mean + reach.
hint: d = baseline - plan; reach = t * d.std() / len(d) ** 0.5; from d.mean(), reach down and up
2 | you took the spread of runs; a pair shares its seed, so take the spread of the DIFFERENCES
    d.std(ddof=1) => np.sqrt(plan.var(ddof=1) + baseline.var(ddof=1))
    d.std(ddof=1) => (plan.std(ddof=1) + baseline.std(ddof=1))
    d.std => plan.std
    d.std => baseline.std
2 | that is how far single differences scatter; a MEAN of n scatters by sqrt(n) less
    / np.sqrt(len(d)) =>
2 | the spread of a sample divides by n - 1: the mean was taken from the same numbers
    ddof=1 => ddof=0
2 | that is plan minus baseline; a lead is above zero where the PLAN has the lower loss
    baseline - plan => plan - baseline
2 | a seed in which the plan is BEHIND counts against it: no abs
    baseline - plan => abs(baseline - plan)
2 | low and high stand in each other's place
    mean - reach, mean + reach => mean + reach, mean - reach
2 | a mean of n scatters by the ROOT of n less; you divided by n
    np.sqrt(len(d)) => len(d)
2 | the root is that of n alone: t * d.std() / sqrt(n)
    t * error => np.sqrt(t * d.std(ddof=1) / len(d))
2 | you took the variance; the error is made of its root, d.std()
    d.std => d.var
2 | t is missing: the ends lie t standard errors from the mean
    t * error => error
2 | 1.96 is the number of many runs; t is given
    t * error => 1.96 * error
2 | n - 1 is in the spread already; a mean of n scatters by sqrt(n) less
    np.sqrt(len(d)) => np.sqrt(len(d) - 1)
2 | wanted (mean, low, high), in this order
    mean, mean - reach, => mean - reach, mean,
2 | low and high are the ends: the mean less the reach, and the mean plus it
    mean - reach, mean + reach => reach, reach
    mean - reach, mean + reach => -reach, reach
""")


def on_both_sides(r):
    """Some below zero and some above, with a sum below zero."""
    d = 0.03 + 0.05 * r.normal(size=6)
    return (-d if d.sum() > 0 else d,)


@drawn
def on_one_side(r, n, sign):
    return (sign * (0.02 + 0.1 * r.random(n)),)


def two_large_against_one(r):
    return (np.array([-0.06, -0.05, 0.01]) - 0.005 * r.random(3),)


# 56 of 64 sums are as far from zero as theirs; rounding, in fp32 and in fp64, hides 4 of these
# (they are so small that whoever leaves a room of 1e-9 is right)
TIES = np.array([-0.004, -0.001, 0.009, -0.006, -0.002, 0.001]) / 16


@unit.exercise(
    Part("three pairs and five", 1, [on_one_side(3, -1), on_one_side(5, 1), two_large_against_one]),
    Part("six pairs on both sides", 1, [on_both_sides, always(TIES)]),
)
def sign_flips(d):
    """The share of all 2^n patterns of signs whose sum is as far from zero as that of d, (n,) -> a
    number. Sums that are equal up to rounding count as equal.
    """
    flips = np.array(list(itertools.product([1, -1], repeat=len(d))))
    sums = abs(flips @ d)
    ours = abs(d.sum())
    room = 1e-6 * abs(d.sum())
    return np.mean(sums >= ours - room)


unit.mistakes(r"""
takes: medium, 10 minutes
hint: n differences have 2^n patterns of signs. Each gives a sum: how many lie as far from 0?
hint: itertools.product([1, -1], repeat=n) makes the patterns; leave a little room for rounding (>=
    | (1 - 1e-6) times ours).
hint: flipped = torch.tensor(list(itertools.product([1, -1], repeat=n))).to(d) @ d; (flipped.abs()
    | >= d.sum().abs() * (1 - 1e-6)).double().mean().item()
2 | you counted one direction; a mean as far on the OTHER side of zero is as surprising
    abs(flips @ d) => flips @ d * np.sign(d.sum())
2 | you counted sums at or ABOVE that of d; as far from zero means on either side: take abs
    abs(flips @ d) => flips @ d
    and: ours = abs(d.sum()) => ours = d.sum()
2 | the pattern that was measured counts as well: at least as far, not further
    ours - room => ours + room
2 | all 2^n patterns: any number of signs may be flipped at once; you flipped one at a time
    np.array(list(itertools.product([1, -1], repeat=len(d)))) => 1 - 2 * np.eye(len(d))
2 | as far from zero or further; you counted the nearer ones
    >= ours - room => <= ours + room
2 | both sides have a distance: take the absolute value of d's sum, too
    ours = abs(d.sum()) => ours = d.sum()
2 | a share is wanted: divide by the number of patterns
    np.mean => 2 ** len(d) * np.mean
    np.mean => 2 ** len(d) / len(d) * np.mean
2 | you changed the order of the numbers; their SIGNS are changed, and no order changes a sum
    flips @ d => np.full(len(flips), d.sum())
2 | a flipped number keeps its size: the signs are 1 and -1, not 1 and 0
    [1, -1] => [1, 0]
1 | sums that are equal up to rounding count as equal: leave a little room below ours
    ours - room => ours
    and: flips @ d => (flips * d).sum(1)
2 | both sides are in the patterns already; you doubled the share
    np.mean => 2 * np.mean
2 | you compared a sum with a mean: both must be sums, or both means
    sums >= => sums / len(d) >=
    ours - room => (ours - room) / len(d)
2 | the pattern that was measured is one of the 2^n: none is left out
    np.mean(sums >= ours - room) => (np.sum(sums >= ours - room) - 1) / (2 ** len(d) - 1)
2 | d has a sum of its own, with the signs that were measured; you took the furthest possible
    ours = abs(d.sum()) => ours = abs(d).sum()
""")


def ps(r):
    """Four small p, in no order, whose corrected values differ, and two that reach 1."""
    small = 0.002 * (1 + np.arange(4)) * (1 + 0.2 * r.random(4))
    return (r.permutation(np.concatenate([small, 0.6 + 0.3 * r.random(2)])),)


def crossing(r):
    """Three p so near to each other that the later ones alone would be corrected to less."""
    return (np.array([0.3, 0.0102, 0.0100, 0.0101, 0.04]) * (1 + 0.1 * r.random()),)


@unit.exercise(Part("p that lie apart", 1, ps), Part("p that lie close", 1, crossing))
def holm(p):
    """Holm's corrected p, in the order of p: (m,) -> (m,).

    The smallest p is multiplied by m, the next by m - 1, …, the largest by 1; no corrected p is
    below that of a smaller p, and none is above 1.
    """
    m, order = len(p), np.argsort(p)
    times = np.arange(m, 0, -1)
    corrected = np.maximum.accumulate(p[order] * times)
    out = np.zeros(m)
    out[order] = np.minimum(corrected, 1)
    return out


unit.mistakes("""
takes: medium, 10 minutes
hint: Sort, multiply the k-th smallest (from 0) by m - k, and go upwards.
hint: torch.cummax(…).values keeps the largest so far; .clamp(max=1) cuts.
hint: order = p.argsort(); q = (p[order] * torch.arange(m, 0, -1)).cummax(0).values.clamp(max=1);
    | out = torch.empty_like(p); out[order] = q
2 | you multiplied every p by the number of tests; Holm takes m for the smallest, m - 1 next, …
    np.arange(m, 0, -1) => m
2 | you counted from the other end: the SMALLEST p is multiplied by m, the largest by 1
    np.arange(m, 0, -1) => np.arange(1, m + 1)
2 | the corrected p are wanted in the order in which the p came
    out[order] = => out[:] =
2 | a larger p may not be corrected to less than a smaller one: keep the largest so far
    np.maximum.accumulate =>
2 | that is Benjamini and Hochberg's way, p * m / rank: it bounds the share of false finds. Holm
  | bounds the chance of a single one: m, m - 1, …, 1 times
    np.arange(m, 0, -1) => m / np.arange(1, m + 1)
    and: np.maximum.accumulate(p[order] * times) =>
  | np.minimum.accumulate((p[order] * times)[::-1])[::-1]
    np.arange(m, 0, -1) => m / np.arange(1, m + 1)
1 | a probability is at most 1: cut it there
    np.minimum(corrected, 1) => corrected
2 | p[order] sorts; to go back, write out[order] = …: indexing once more does not undo it
    out[order] = np.minimum(corrected, 1) => out[:] = np.minimum(corrected, 1)[order]
2 | the smallest p is multiplied by m, and the largest by 1: you began one off
    np.arange(m, 0, -1) => np.arange(m - 1, -1, -1)
    np.arange(m, 0, -1) => np.arange(m + 1, 1, -1)
2 | argsort says which p comes next, not the rank of each: ranks are argsort of argsort
    => np.minimum(p * (len(p) - np.argsort(p)), 1)
    => np.minimum(np.maximum.accumulate(p * (len(p) - np.argsort(p))), 1)
2 | the largest so far is taken along the SORTED p, not in the order in which they came
    => np.minimum(np.maximum.accumulate(p * (len(p) - np.argsort(np.argsort(p)))), 1)
2 | sort from the SMALLEST p on
    argsort(p) => argsort(-p)
2 | no corrected p is below that of a smaller p: the running MAXIMUM, from the smallest on
    np.maximum => np.minimum
2 | p is multiplied, not divided: a correction makes it larger
    * times => / times
2 | the p are sorted before they are multiplied; you went by the order in which they came
    np.argsort(p) => np.arange(len(p))
""")
