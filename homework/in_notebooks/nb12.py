"""Notebook 12: how much is a difference worth?"""

import itertools
import math

import numpy as np

from homework.marking import Part, Unit, Wrong, slip

unit = Unit("nb12_scale_and_evidence", "Scale and evidence", "The exercises of notebook 12.")


# ---- two scores, each with an error --------------------------------------------------------------


def two_scores(tasks):
    """Scores of two models on some tasks, and their standard errors, of unlike sizes."""

    def make(r):
        old, new = 0.2 + 0.3 * r.random((2, tasks))
        old_error, new_error = 0.01 + 0.05 * r.random((2, tasks))
        if tasks == 1:  # the new one is better; among many, some are worse
            new = old + 0.1 + 0.1 * r.random(1)
        return new, new_error, old, old_error

    return make


@unit.exercise(
    Part("one task", 1, two_scores(1)),
    Part("many tasks", 1, two_scores(21)),
    Wrong(
        "one error",
        2,
        "you divided by one model's error; BOTH scores are uncertain, and so their difference is "
        "more uncertain than either",
        dict(errors="new"),
    ),
    Wrong(
        "the other error",
        2,
        "you divided by the old model's error alone; both scores are uncertain",
        dict(errors="old"),
    ),
    Wrong(
        "errors added",
        2,
        "you added the errors; chance of one model can cancel chance of the other, so their "
        "SQUARES are added",
        dict(errors="sum"),
    ),
    Wrong(
        "errors averaged",
        2,
        "the error of a difference is larger than either error, not between them: add squares",
        dict(errors="mean"),
    ),
    Wrong(
        "no root",
        2,
        "that is the variance of the difference; its error is the root of it",
        dict(errors="variance"),
    ),
    Wrong(
        "mean of squares",
        2,
        "the squares of the errors are added, not averaged: a difference is less certain than both",
        dict(errors="mean square"),
    ),
    Wrong(
        "two errors",
        2,
        "z counts single errors; that a difference is clear beyond two of them comes afterwards",
        dict(errors="twice"),
    ),
    Wrong("without its sign", 1, "keep the sign: below zero the old one is better", dict(sign=0)),
    Wrong("turned round", 2, "new minus old: above zero the new one is better", dict(sign=-1)),
    slip(
        2,
        "errors add up in squares: the larger alone is too small",
        lambda n, e, o, f: (n - o) / np.maximum(e, f),
    ),
    slip(
        2,
        "errors add up in squares; you took their geometric mean",
        lambda n, e, o, f: (n - o) / np.sqrt(e * f),
    ),
    slip(
        2,
        "the errors are squared BEFORE they are added",
        lambda n, e, o, f: (n - o) / np.sqrt(e + f),
    ),
    slip(
        2,
        "divide the difference by the error of the difference; you took two z apart",
        lambda n, e, o, f: n / e - o / f,
    ),
    slip(
        2,
        "the squares are ADDED, also for a difference",
        lambda n, e, o, f: (n - o) / np.sqrt(abs(e**2 - f**2)),
    ),
    hints=[
        "How uncertain is a difference of two numbers that are independent? Squares add up.",
        "error = sqrt(new_error² + old_error²); z is the difference in units of it.",
        "return (new - old) / (new_error**2 + old_error**2).sqrt()",
    ],
    level="easy",
    minutes=5,
)
def z_of(new, new_error, old, old_error, *, errors="both", sign=1):
    """The difference new - old in units of its own standard error; all are (n,), and so is it.

    new_error and old_error are the standard errors of two independent scores.
    """
    error = dict(
        both=np.sqrt(new_error**2 + old_error**2),
        new=new_error,
        old=old_error,
        sum=new_error + old_error,
        mean=(new_error + old_error) / 2,
        variance=new_error**2 + old_error**2,
        twice=2 * np.sqrt(new_error**2 + old_error**2),
    ) | {"mean square": np.sqrt((new_error**2 + old_error**2) / 2)}
    z = (new - old) / error[errors]
    return sign * z if sign else abs(z)


# ---- a paired interval ---------------------------------------------------------------------------


def runs(pairs, t):
    """Losses of a plan and of the baseline: seeds move both together."""

    def make(r):
        seed = 3 + 0.3 * r.normal(size=pairs)
        return seed - 0.1 + 0.02 * r.normal(size=pairs), seed + 0.02 * r.normal(size=pairs), t

    return make


def lower_middle(d):
    """The median as PyTorch takes it."""
    return np.sort(d)[(len(d) - 1) // 2]


def reached(plan, baseline, t, error, middle=np.mean):
    """An interval with another error, or around another middle."""
    d = baseline - plan
    reach = t * error(d, len(d))
    return middle(d), middle(d) - reach, middle(d) + reach


@unit.exercise(
    Part("three pairs", 1, runs(3, 4.302653)),
    Part("eight pairs", 1, runs(8, 2.364624)),
    Wrong(
        "not paired",
        2,
        "you took the spread of the runs; a pair shares its seed, so take the spread of the "
        "DIFFERENCES",
        dict(paired=False),
    ),
    Wrong(
        "the root forgotten",
        2,
        "that is how far single differences scatter; a MEAN of n scatters by sqrt(n) less",
        dict(root=False),
    ),
    Wrong(
        "divided by n",
        2,
        "the spread of a sample divides by n - 1: the mean was taken from the same numbers",
        dict(free=0),
    ),
    Wrong(
        "turned round",
        2,
        "that is plan minus baseline; a lead is above zero where the PLAN has the lower loss",
        dict(sign=-1),
    ),
    slip(
        2,
        "a mean of n scatters by the ROOT of n less; you divided by n",
        lambda p, b, t: reached(p, b, t, lambda d, n: np.std(d, ddof=1) / n),
    ),
    slip(
        2,
        "you took the variance; the error is made of its root, d.std()",
        lambda p, b, t: reached(p, b, t, lambda d, n: np.var(d, ddof=1) / n**0.5),
    ),
    slip(
        2,
        "t is missing: the ends lie t standard errors from the mean",
        lambda p, b, t: reached(p, b, 1, lambda d, n: np.std(d, ddof=1) / n**0.5),
    ),
    slip(
        2,
        "1.96 is the number of many runs; t is given",
        lambda p, b, t: reached(p, b, 1.96, lambda d, n: np.std(d, ddof=1) / n**0.5),
    ),
    slip(
        2,
        "n - 1 is in the spread already; a mean of n scatters by sqrt(n) less",
        lambda p, b, t: reached(p, b, t, lambda d, n: np.std(d, ddof=1) / (n - 1) ** 0.5),
    ),
    slip(
        2,
        "you took the spread of one model's runs; a pair shares its seed, so take that "
        "of the DIFFERENCES",
        lambda p, b, t: reached(p, b, t, lambda d, n: np.std(p, ddof=1) / n**0.5),
    ),
    slip(
        2,
        "wanted (mean, low, high), in this order",
        lambda p, b, t: [paired_interval(p, b, t)[at] for at in (1, 0, 2)],
    ),
    slip(
        2,
        "low and high are the ends: the mean less the reach, and the mean plus it",
        lambda p, b, t: (np.mean(b - p), *2 * [np.mean(b - p) - paired_interval(p, b, t)[1]]),
    ),
    slip(
        2,
        "t standard errors lie on EITHER side of the mean; you halved them",
        lambda p, b, t: reached(p, b, t / 2, lambda d, n: np.std(d, ddof=1) / n**0.5),
    ),
    slip(
        2,
        "you took mean deviations; the spread is the root of the mean SQUARE, over n - 1",
        lambda p, b, t: reached(p, b, t, lambda d, n: abs(d - d.mean()).mean() / n**0.5),
    ),
    slip(
        2,
        "wanted the mean, not the median",
        lambda p, b, t: reached(p, b, t, lambda d, n: np.std(d, ddof=1) / n**0.5, lower_middle),
    ),
    slip(
        2,
        "you added two spreads; a pair shares its seed, so take the spread of the DIFFERENCES",
        lambda p, b, t: reached(
            p, b, t, lambda d, n: (np.std(p, ddof=1) + np.std(b, ddof=1)) / n**0.5
        ),
    ),
    hints=[
        "First the n differences. Then their mean, and their spread with n - 1.",
        "reach = t * d.std() / sqrt(n); the interval is mean - reach to mean + reach.",
        "d = baseline - plan; reach = t * d.std() / len(d) ** 0.5; "
        "return d.mean(), d.mean() - reach, d.mean() + reach",
    ],
    level="easy",
    minutes=8,
)
def paired_interval(plan, baseline, t, *, paired=True, root=True, free=1, sign=1):
    """How far a plan is ahead, (mean, low, high) of baseline minus plan: losses (n,) of the same
    seeds in the same order.

    low and high lie t standard errors below and above the mean. t is the number of Student's
    table for n - 1 degrees of freedom.
    """
    n = len(plan)
    d = [sign * (b - a) for a, b in zip(plan, baseline)]

    def variance(values):
        mean = sum(values) / n
        return sum((value - mean) ** 2 for value in values) / (n - free)

    spread = math.sqrt(variance(d) if paired else variance(plan) + variance(baseline))
    reach = t * spread / (math.sqrt(n) if root else 1)
    mean = sum(d) / n
    return mean, mean - reach, mean + reach


# ---- a test without a bell curve -----------------------------------------------------------------


def on_both_sides(r):
    """Some below zero and some above, with a sum below zero."""
    d = 0.03 + 0.05 * r.normal(size=6)
    return (-d if d.sum() > 0 else d,)


def above_only(d):
    sums = [float(np.dot(signs, d)) for signs in itertools.product([1, -1], repeat=len(d))]
    return np.mean([total >= d.sum() - 1e-6 * abs(d.sum()) for total in sums])


def flipped(d, counts):
    """The share of patterns whose distance from zero counts, beside the sum of d."""
    sums = [np.dot(signs, d) for signs in itertools.product([1, -1], repeat=len(d))]
    return np.mean([counts(abs(total), d.sum()) for total in sums])


@unit.exercise(
    Part(
        "three pairs and five, all on one side",
        1,
        [
            lambda r: (-(0.02 + 0.1 * r.random(3)),),
            lambda r: (0.02 + 0.1 * r.random(5),),
            lambda r: (-(0.02 + 0.1 * r.random(5)),),
        ],
    ),
    Part("six pairs on both sides", 1, on_both_sides),
    Wrong(
        "one side",
        2,
        "you counted one direction; a mean as far on the OTHER side of zero is as surprising",
        dict(sides=1),
    ),
    Wrong(
        "above only",
        2,
        "you counted sums at or ABOVE that of d, with its sign; as far from zero means on either "
        "side: compare absolute values",
        returns=lambda d: above_only(d),
    ),
    Wrong(
        "further only",
        2,
        "the pattern that was measured counts as well: at least as far, not further",
        dict(equal=False),
    ),
    Wrong(
        "signs only",
        1,
        "you counted how many signs agree; the sum of the flipped NUMBERS decides",
        dict(signs=True),
    ),
    slip(
        2,
        "as far from zero or further; you counted the nearer ones",
        lambda d: flipped(d, lambda s, ours: s <= abs(ours) * (1 + 1e-6)),
    ),
    slip(
        2,
        "both sides have a distance: take the absolute value of d's sum, too",
        lambda d: flipped(d, lambda s, ours: s >= ours - 1e-6 * abs(ours)),
    ),
    slip(
        2,
        "a share is wanted: divide by the number of patterns",
        lambda d: sign_flips(d) * 2 ** len(d),
    ),
    slip(
        2,
        "both sides are in the patterns already; you doubled the share",
        lambda d: 2 * sign_flips(d),
    ),
    slip(
        2,
        "you compared means with the sum of d: both must be sums, or both means",
        lambda d: flipped(d, lambda s, ours: s / len(d) >= abs(ours) * (1 - 1e-6)),
    ),
    slip(
        2,
        "you compared sums with the mean of d: both must be sums, or both means",
        lambda d: flipped(d, lambda s, ours: s >= abs(ours) / len(d) * (1 - 1e-6)),
    ),
    slip(
        2,
        "the pattern that was measured is one of the 2^n: none is left out",
        lambda d: (sign_flips(d) * 2 ** len(d) - 1) / (2 ** len(d) - 1),
    ),
    slip(
        2,
        "all 2^n patterns are here: 1 is added only where patterns are drawn",
        lambda d: sign_flips(d) * 2 ** len(d) / (2 ** len(d) + 1),
    ),
    slip(
        1,
        "d has a sum of its own, with the signs that were measured; you took the furthest possible",
        lambda d: 2.0 ** (1 - len(d)),
    ),
    hints=[
        "n differences have 2^n patterns of signs. Each gives a sum; how many of them are as far "
        "from zero as ours?",
        "itertools.product([1, -1], repeat=n) makes the patterns; leave a little room for rounding "
        "(>= (1 - 1e-6) times ours).",
        "flipped = torch.tensor(list(itertools.product([1, -1], repeat=n))).to(d) @ d; "
        "(flipped.abs() >= d.sum().abs() * (1 - 1e-6)).double().mean().item()",
    ],
    level="medium",
    minutes=10,
)
def sign_flips(d, *, sides=2, equal=True, signs=False):
    """The share of all 2^n patterns of signs whose sum is as far from zero as that of d, (n,) -> a
    number. Sums that are equal up to rounding count as equal.
    """
    values = [math.copysign(1, x) for x in d] if signs else list(d)
    ours, count = sum(values), 0
    for pattern in itertools.product([1, -1], repeat=len(values)):
        total = sum(sign * x for sign, x in zip(pattern, values))
        far = total * math.copysign(1, ours) if sides == 1 else abs(total)
        close = abs(far - abs(ours)) <= 1e-6 * abs(ours)
        count += (far > abs(ours) and not close) or (close and equal)
    return count / 2 ** len(values)


# ---- many tests at once --------------------------------------------------------------------------


def ps(r):
    """Four small p, in no order, whose corrected values differ, and two that reach 1."""
    small = 0.002 * (1 + np.arange(4)) * (1 + 0.2 * r.random(4))
    return (r.permutation(np.concatenate([small, 0.6 + 0.3 * r.random(2)])),)


def crossing(r):
    """Two p so near to each other that the second alone would be corrected to less."""
    return (np.array([0.3, 0.0101, 0.0100, 0.04]) * (1 + 0.1 * r.random()),)


def benjamini_hochberg(p):
    m, order = len(p), np.argsort(p)
    ranked = p[order] * m / np.arange(1, m + 1)
    out = np.zeros(m)
    out[order] = np.minimum(1, np.minimum.accumulate(ranked[::-1])[::-1])
    return out


def stepped(p, times, keep=np.maximum, power=False):
    """Holm's way with other factors, or another running choice."""
    order, out = np.argsort(p), np.zeros(len(p))
    each = 1 - (1 - p[order]) ** times if power else p[order] * times
    out[order] = np.minimum(1, keep.accumulate(each))
    return out


@unit.exercise(
    Part("p that lie apart", 1, ps),
    Part("p that lie close", 1, crossing),
    Wrong(
        "Bonferroni",
        2,
        "you multiplied every p by the number of tests; Holm multiplies the smallest by m, the "
        "next by m - 1, and so on",
        dict(step=0),
    ),
    Wrong(
        "from the largest",
        2,
        "you counted from the other end: the SMALLEST p is multiplied by m, the largest by 1",
        dict(turned=True),
    ),
    Wrong(
        "sorted",
        2,
        "the corrected p are wanted in the order in which the p came",
        dict(back=False),
    ),
    Wrong(
        "no running maximum",
        2,
        "a larger p may not be corrected to less than a smaller one: keep the largest so far",
        dict(running=False),
    ),
    Wrong(
        "Benjamini-Hochberg",
        2,
        "that is Benjamini and Hochberg's way, p * m / rank: it bounds the share of false finds. "
        "Holm bounds the chance of a single one: m, m - 1, …, 1 times",
        returns=lambda p: benjamini_hochberg(p),
    ),
    Wrong("above one", 1, "a probability is at most 1: cut it there", dict(most=math.inf)),
    slip(
        2,
        "p[order] sorts; to go back, write out[order] = …: indexing once more does not undo it",
        lambda p: np.sort(holm(p))[np.argsort(p)],
    ),
    slip(
        2,
        "the smallest p is multiplied by m, and the largest by 1: you began one too low",
        lambda p: stepped(p, np.arange(len(p) - 1, -1, -1)),
    ),
    slip(2, "sort from the SMALLEST p on", lambda p: stepped(-p, -np.arange(len(p), 0, -1))),
    slip(
        2,
        "no corrected p is below that of a smaller p: the running MAXIMUM, from the smallest on",
        lambda p: stepped(p, np.arange(len(p), 0, -1), np.minimum),
    ),
    slip(
        2,
        "that is Šidák's step, 1 - (1 - p)^k; Holm multiplies",
        lambda p: stepped(p, np.arange(len(p), 0, -1), power=True),
    ),
    slip(
        2,
        "p is multiplied, not divided: a correction makes it larger",
        lambda p: stepped(p, 1 / np.arange(len(p), 0, -1)),
    ),
    slip(
        2,
        "the p are sorted before they are multiplied; you went by the order in which they came",
        lambda p: np.minimum(1, np.maximum.accumulate(p * np.arange(len(p), 0, -1))),
    ),
    slip(
        2,
        "the largest so far is kept; you added them up",
        lambda p: stepped(p, np.arange(len(p), 0, -1), np.add),
    ),
    hints=[
        "Sort, multiply the k-th smallest (from 0) by m - k, and go upwards.",
        "torch.cummax(…).values keeps the largest so far; .clamp(max=1) cuts.",
        "order = p.argsort(); q = (p[order] * torch.arange(m, 0, -1)).cummax(0).values.clamp(max=1)"
        "; out = torch.empty_like(p); out[order] = q",
    ],
    level="medium",
    minutes=10,
)
def holm(p, *, step=1, turned=False, back=True, running=True, most=1.0):
    """Holm's corrected p, in the order of p: (m,) -> (m,).

    The smallest p is multiplied by m, the next by m - 1, …, the largest by 1; no corrected p is
    below that of a smaller p, and none is above 1.
    """
    m = len(p)
    order = sorted(range(m), key=lambda i: p[i])
    out, largest = np.zeros(m), 0.0
    for k, i in enumerate(order):
        value = (k + 1 if turned else m - step * k) * p[i]
        largest = max(largest, value) if running else value
        out[i if back else k] = min(most, largest)
    return out
