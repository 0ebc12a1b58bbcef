"""Did the mean move, or only the seeds? Intervals, paired differences, and tests of their size.

    paired, compare            plans against a baseline: paired by seed, or as two groups
    pooled                     the same differences with one spread, that of all plans together
    sign_flips, equivalence    a test without a bell curve; a test that two plans are alike
    holm, benjamini_hochberg   what a table of many tests may still call clear

Samples are lists of numbers; a p is two-sided unless its docstring says otherwise. An interval and
its t-test need nothing but Python; what goes further asks SciPy, of the extra `compare`.
"""

import functools
import math
import statistics

FEWEST = 3  # pairs: two may agree by luck, and their interval has no width then
MOST_FLIPPED = 20  # pairs: 2^20 patterns of signs are counted in seconds


def scipys_tests():
    try:
        from scipy import stats
    except ModuleNotFoundError as lacking:
        what = "this test needs SciPy: pip install 'minimal[compare]'"
        raise ModuleNotFoundError(what, name="scipy") from lacking
    return stats


# ---- the distribution of t -----------------------------------------------------------------------


def simpson(f, end, steps=400):
    """The integral of f from 0 to `end`, by Simpson's rule."""
    inner = (f(end * i / steps) * (4 if i % 2 else 2) for i in range(1, steps))
    return math.fsum([f(0), *inner, f(end)]) * end / steps / 3


@functools.lru_cache(maxsize=10_000)  # one comparison is asked for in several tables
def student(t, dof):
    """P(T <= t) of Student's t. With t = sqrt(dof) tan(a) its density is cos(a)^(dof - 1)."""
    angle = math.atan(abs(t) / math.sqrt(dof))
    area = simpson(lambda a: math.cos(a) ** (dof - 1), angle)
    log_whole = math.lgamma(dof / 2) - math.lgamma((dof + 1) / 2)
    whole = math.sqrt(math.pi) * math.exp(log_whole)  # from -pi/2 to pi/2
    return 0.5 + math.copysign(area / whole, t)


@functools.cache  # a table asks for the same few in every row, and each is 24,000 cosines
def t_quantile(p, dof):
    """The t below which a share p lies: 4.303 for p = .975 and two degrees of freedom."""
    low, high = -math.pi / 2, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        if student(math.sqrt(dof) * math.tan(middle), dof) < p:
            low = middle
        else:
            high = middle
    return math.sqrt(dof) * math.tan((low + high) / 2)


def f_test(std1, n1, std2, n2):
    """The p of equal variances, for normal samples: the share of a Beta((n1 - 1)/2, (n2 - 1)/2)
    below S1 / (S1 + S2), sums of squares."""
    one, two = (n1 - 1) * std1**2, (n2 - 1) * std2**2
    share = scipys_tests().beta.cdf(one / (one + two), (n1 - 1) / 2, (n2 - 1) / 2)
    return 2 * float(min(share, 1 - share))


# ---- one sample: values, or differences of pairs -------------------------------------------------


def mean_spread(values):
    """Mean, and standard deviation between runs (n - 1); one run has no spread (None)."""
    spread = statistics.stdev(values) if len(values) > 1 else None
    return statistics.fmean(values), spread


def interval(values, share=0.95):
    """Mean, low, high of a t-interval; low and high are None where one value cannot give them."""
    mean, spread = mean_spread(values)
    if spread is None:
        return mean, None, None
    reach = t_quantile((1 + share) / 2, len(values) - 1) * spread / math.sqrt(len(values))
    return mean, mean - reach, mean + reach


def clear(low, high, n):
    """Does the interval of n values exclude zero, and are they enough to say so?"""
    return low is not None and n >= FEWEST and not low <= 0 <= high


def t_test(differences):
    """The p of a mean difference of 0, by Student's t; None where no spread was seen."""
    mean, spread = mean_spread(differences)
    if not spread:
        return None
    t = mean / (spread / math.sqrt(len(differences)))
    return 2 * (1 - student(abs(t), len(differences) - 1))


def sign_flips(differences):
    """The p of a mean difference of 0, exact and without a bell curve: if plan and baseline were
    one, each difference might as well have had the other sign. The share of all patterns of signs
    whose mean is as far from 0 as ours: n pairs cannot bring it below 2 / 2^n (.25 for three)."""
    if len(differences) > MOST_FLIPPED:
        raise ValueError(
            f"wanted at most {MOST_FLIPPED} differences, got {len(differences)}: "
            "use the t-test, which so many pairs can carry"
        )
    if len(differences) < 2:
        return 1.0  # one sign, and its mirror
    total = lambda signed, axis: signed.sum(axis=axis)
    how = dict(permutation_type="samples", n_resamples=math.inf, batch=10_000, vectorized=True)
    return float(scipys_tests().permutation_test((differences,), total, **how).pvalue)


def equivalence(differences, margin):
    """The p of "they differ by `margin` or more", by two one-sided t-tests: below .05 exactly when
    the 90 % interval lies within the margin. None where no spread was seen."""
    if not margin > 0:
        raise ValueError(f"wanted a margin above 0, got {margin}: name the least that matters")
    if not mean_spread(differences)[1]:
        return None
    test = functools.partial(scipys_tests().ttest_1samp, differences)
    too_low = test(-margin, alternative="greater").pvalue
    too_high = test(margin, alternative="less").pvalue
    return float(max(too_low, too_high))


# ---- many tests at once --------------------------------------------------------------------------


def holm(ps):
    """{name: p} -> {name: adjusted p}. Whatever is called clear below .05 then holds a single false
    alarm with a chance of 5 % at most, however the tests hang together."""
    adjusted, largest = {}, 0.0
    for rank, name in enumerate(sorted(ps, key=ps.get)):
        largest = max(largest, (len(ps) - rank) * ps[name])
        adjusted[name] = min(1.0, largest)
    return {name: adjusted[name] for name in ps}


def benjamini_hochberg(ps):
    """{name: p} -> {name: adjusted p}. Of what is called clear below .05 then 5 % at most are false
    alarms in the mean, for tests that are independent or rise together."""
    if not ps:
        return {}
    adjusted = scipys_tests().false_discovery_control(list(ps.values()))
    return dict(zip(ps, map(float, adjusted)))


# ---- plans against a baseline, paired by (size, seed) --------------------------------------------


def by_cell(rows, metric):
    """{plan: {(size, seed): value}} of evidence rows; a run that blew up has no value."""
    if rows and not any(metric in row for row in rows):
        raise ValueError(f"no row has a {metric!r}: choose one of {', '.join(rows[0])}")
    grid = {}
    for row in rows:
        cell = (row.get("size"), row.get("seed"))
        values = grid.setdefault(row["plan"], {})
        if cell in values:
            raise ValueError(
                f"two rows for {row['plan']}, size {cell[0]}, seed {cell[1]}; "
                "keep one budget: filter the rows by steps or tokens first"
            )
        value = row.get(metric)
        if value is not None and math.isfinite(value):
            values[cell] = value
    return grid


def paired(rows, metric, baseline="standard", share=0.95, plans=None, cells=None):
    """Each plan against the baseline on the same (size, seed): one dict a plan with n, mean,
    spread, difference, low, high, clear, p, and missing, the cells that plan or baseline lacks.
    Name `plans` or `cells` [(size, seed)] to hear of absent ones, too."""
    grid = by_cell(rows, metric)
    wanted = cells or sorted({(row.get("size"), row.get("seed")) for row in rows}, key=str)
    base = grid.get(baseline, {})
    table = []
    for plan in plans or grid:
        own = {cell: value for cell, value in grid.get(plan, {}).items() if cell in wanted}
        both = [cell for cell in wanted if cell in own and cell in base]
        differences = [own[cell] - base[cell] for cell in both]
        mean, spread = mean_spread(list(own.values())) if own else (None, None)
        change, low, high = interval(differences, share) if both else (None, None, None)
        row = dict(plan=plan, n=len(both), mean=mean, spread=spread)
        row |= dict(difference=change, low=low, high=high)
        row["clear"] = plan != baseline and clear(low, high, len(both))
        row["p"] = t_test(differences) if both else None
        row["missing"] = [cell for cell in wanted if cell not in both]
        table.append(row)
    return table


def pooled(rows, metric, baseline="standard", share=0.95):
    """Each plan against the baseline with one spread for all plans: what is left of the values once
    the mean of each plan and of each (size, seed) is taken out, a two-way analysis of variance.

    It has (plans - 1)(cells - 1) degrees of freedom where a paired interval has cells - 1, so no
    plan is clear by the luck of its own three seeds; the price is the belief that all plans
    scatter alike. Only cells that every plan has count. With two plans it is paired's interval."""
    grid = by_cell(rows, metric)
    if baseline not in grid:
        raise ValueError(f"wanted a baseline of {', '.join(grid)}; got {baseline!r}")
    cells = sorted(set.intersection(*map(set, grid.values())), key=str)
    dof = (len(grid) - 1) * (len(cells) - 1)
    if dof < 1:
        raise ValueError(
            f"wanted two plans and two (size, seed) that all have, got {len(grid)} and "
            f"{len(cells)}: leave out the plans that lack rows"
        )
    # a value is its plan's mean plus its cell's, less the mean of all, plus chance
    mean = {plan: statistics.fmean(values[cell] for cell in cells) for plan, values in grid.items()}
    level = {cell: statistics.fmean(values[cell] for values in grid.values()) for cell in cells}
    whole = statistics.fmean(mean.values())
    chance = [
        values[cell] - mean[plan] - level[cell] + whole
        for plan, values in grid.items()
        for cell in cells
    ]
    spread = math.sqrt(math.fsum(value**2 for value in chance) / dof)
    reach = t_quantile((1 + share) / 2, dof) * spread * math.sqrt(2 / len(cells))
    table = []
    for plan in grid:
        change = mean[plan] - mean[baseline]
        row = dict(plan=plan, n=len(cells), spread=spread, dof=dof, difference=change)
        row |= dict(low=change - reach, high=change + reach, clear=abs(change) > reach)
        table.append(row)
    return table


# ---- two groups of runs that nothing pairs -------------------------------------------------------

COMPARED = ("difference", "low", "high", "t", "dof", "p", "ratio", "ratio_p")


def welch(mean1, std1, n1, mean2, std2, n2):
    """Welch's t of the second less the first: t, degrees of freedom, p."""
    a, b = std1**2 / n1, std2**2 / n2
    t = (mean2 - mean1) / math.sqrt(a + b)
    dof = (a + b) ** 2 / (a**2 / (n1 - 1) + b**2 / (n2 - 1))
    return t, dof, 2 * (1 - student(abs(t), dof))


def compare(groups, baseline):
    """{name: scores by seed} -> a row a group: n, mean, std, and against the baseline the
    difference, its 95 % interval (Welch's), t, degrees of freedom, p; the ratio of the spreads and
    its p (F test, which believes in normal scores). What one run cannot tell is None."""
    if baseline not in groups:
        raise ValueError(
            f"there is no group {baseline!r} to compare with: one of {', '.join(groups)}"
        )
    table = []
    for name, scores in groups.items():
        mean, std = mean_spread(scores)
        row = dict(name=name, n=len(scores), mean=mean, std=std) | dict.fromkeys(COMPARED)
        if name != baseline:
            row |= against(groups[baseline], scores)
        table.append(row)
    return table


def against(base, scores):
    """What two groups of scores tell of each other: the fields of COMPARED that they can fill."""
    (mean1, std1), (mean2, std2) = mean_spread(base), mean_spread(scores)
    found = dict(difference=mean2 - mean1)
    if std1 is None or std2 is None:
        return found
    if std1:
        found["ratio"] = std2 / std1
    if std1 or std2:
        t, dof, p = welch(mean1, std1, len(base), mean2, std2, len(scores))
        error = math.sqrt(std1**2 / len(base) + std2**2 / len(scores))
        reach = t_quantile(0.975, dof) * error
        found |= dict(t=t, dof=dof, p=p, low=mean2 - mean1 - reach, high=mean2 - mean1 + reach)
        found["ratio_p"] = f_test(std1, len(base), std2, len(scores))
    return found


def sentence(row):
    """One row of `compare` in words."""
    if row["difference"] is None:
        spread = f" ± {row['std']:.2f}" if row["std"] is not None else ""
        return f"{row['name']}: {row['mean']:.2f}{spread} (n = {row['n']})"
    change = f"{row['name']}: {row['difference']:+.2f}"
    if row["t"] is None:
        return f"{change}; one run cannot say whether that is chance (n = {row['n']})"
    welch_t = f"Welch t = {row['t']:.2f}, {row['dof']:.1f} degrees of freedom, p = {row['p']:.3f}"
    spread = "from none"
    if row["ratio"] is not None:
        spread = f"× {row['ratio']:.1f} (F test p = {row['ratio_p']:.3f})"
    return f"{change} ({welch_t}), spread {spread}"
