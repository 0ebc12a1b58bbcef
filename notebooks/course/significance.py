"""May a difference be chance? Tests beside the paired interval of minimal.compare.intervals.

    compare_groups             two groups of runs that nothing pairs: Welch's t, and the F test
    sign_flips, equivalence    a test without a bell curve; a test that two plans are alike
    holm, benjamini_hochberg   what a table of many tests may still call clear

Samples are lists of numbers; a p is two-sided unless its docstring says otherwise.
"""

import functools
import math

from scipy import stats

from minimal.compare.intervals import mean_spread, student, t_quantile

MOST_FLIPPED = 20  # pairs: 2^20 patterns of signs are counted in seconds


# ---- one sample: values, or differences of pairs -------------------------------------------------


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
    return float(stats.permutation_test((differences,), total, **how).pvalue)


def equivalence(differences, margin):
    """The p of "they differ by `margin` or more", by two one-sided t-tests: below .05 exactly when
    the 90 % interval lies within the margin. None where no spread was seen."""
    if not margin > 0:
        raise ValueError(f"wanted a margin above 0, got {margin}: name the least that matters")
    if not mean_spread(differences)[1]:
        return None
    test = functools.partial(stats.ttest_1samp, differences)
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
    adjusted = stats.false_discovery_control(list(ps.values()))
    return dict(zip(ps, map(float, adjusted)))


# ---- two groups of runs that nothing pairs -------------------------------------------------------

COMPARED = ("difference", "low", "high", "t", "dof", "p", "ratio", "ratio_p")


def f_test(std1, n1, std2, n2):
    """The p of equal variances, for normal samples: the share of a Beta((n1 - 1)/2, (n2 - 1)/2)
    below S1 / (S1 + S2), sums of squares."""
    one, two = (n1 - 1) * std1**2, (n2 - 1) * std2**2
    share = stats.beta.cdf(one / (one + two), (n1 - 1) / 2, (n2 - 1) / 2)
    return 2 * float(min(share, 1 - share))


def welch(mean1, std1, n1, mean2, std2, n2):
    """Welch's t of the second less the first: t, degrees of freedom, p."""
    a, b = std1**2 / n1, std2**2 / n2
    t = (mean2 - mean1) / math.sqrt(a + b)
    dof = (a + b) ** 2 / (a**2 / (n1 - 1) + b**2 / (n2 - 1))
    return t, dof, 2 * (1 - student(abs(t), dof))


def compare_groups(groups, baseline):
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
    """One row of `compare_groups` in words."""
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
