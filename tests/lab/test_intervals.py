"""Are intervals and tests those of the textbooks, and is what few runs cannot tell left open?"""

import math
import sys

import pytest

from course import significance
from minimal.compare import compare, intervals
from minimal.compare.intervals import t_quantile


def test_the_reports_own_table_gives_the_t_that_facts_say():
    """Its means and deviations: 55.51 ± .32 and 59.62 ± 3.32, five seeds each: t = 2.76."""

    def group(mean, std, n):
        shape = [i - (n - 1) / 2 for i in range(n)]
        scale = std / math.sqrt(sum(s * s for s in shape) / (n - 1))
        return [mean + scale * s for s in shape]

    rows = significance.compare_groups(
        dict(base=group(55.51, 0.32, 5), bypass=group(59.62, 3.32, 5)), "base"
    )
    assert rows[1]["t"] == pytest.approx(2.76, abs=0.01) and rows[1]["dof"] == pytest.approx(
        4.07, abs=0.02
    )
    assert rows[1]["ratio"] == pytest.approx(10.4, abs=0.1) and rows[1]["p"] == pytest.approx(
        0.050, abs=0.002
    )
    rows = significance.compare_groups(
        dict(base=group(63.15, 0.07, 3), bypass=group(64.74, 1.47, 3)), "base"
    )
    assert rows[1]["t"] == pytest.approx(1.87, abs=0.01) and rows[1]["low"] < 0 < rows[1]["high"]


def test_welch_by_hand():
    """a = 1, 2, 3 and b = 2, 4, 6, 8: variances 1 and 20/3; t = 3 / sqrt(1/3 + 5/3) with
    4 / (1/18 + 25/27) degrees of freedom."""
    a, b = significance.compare_groups(dict(a=[1, 2, 3], b=[2, 4, 6, 8]), "a")
    assert (a["mean"], a["std"], b["mean"]) == (2, 1, 5) and b["difference"] == 3
    assert b["t"] == pytest.approx(3 / math.sqrt(2)) and b["dof"] == pytest.approx(
        4 / (1 / 18 + 25 / 27)
    )
    assert (b["low"] + b["high"]) / 2 == pytest.approx(3)
    assert (b["high"] - b["low"]) / 2 == pytest.approx(
        t_quantile(0.975, b["dof"]) * math.sqrt(1 / 3 + 5 / 3)
    )
    assert significance.compare_groups(dict(a=[2, 4, 6, 8], b=[1, 2, 3]), "a")[1][
        "t"
    ] == pytest.approx(-b["t"])


def test_the_f_test_has_the_quantiles_of_the_tables():
    """The 97.5 % quantiles of F: 9.605 at (4, 4), 39.00 at (2, 2), 14.47 at (9, 3) degrees."""
    for n1, n2, quantile in ((5, 5, 9.605), (3, 3, 39.00), (10, 4, 14.473)):
        assert significance.f_test(math.sqrt(quantile), n1, 1.0, n2) == pytest.approx(
            0.05, abs=5e-5
        )
        assert significance.f_test(1.0, n2, math.sqrt(quantile), n1) == pytest.approx(
            0.05, abs=5e-5
        )
    assert significance.f_test(2.0, 5, 2.0, 5) == pytest.approx(1)
    assert significance.f_test(2.0, 5, 0.0, 5) == significance.f_test(0.0, 5, 2.0, 5) == 0


def test_what_one_run_or_no_spread_cannot_tell_is_none():
    one = significance.compare_groups(dict(a=[1.0, 2.0], b=[3.0]), "a")[1]
    assert one["difference"] == 1.5 and one["std"] is one["t"] is one["p"] is one["low"] is None
    assert "one run cannot say" in significance.sentence(one)
    same = significance.compare_groups(dict(a=[1.0, 1.0], b=[1.0, 1.0]), "a")[1]
    assert same["t"] is None and same["ratio"] is None
    equal = significance.compare_groups(dict(a=[1.0, 3.0], b=[0.0, 4.0]), "a")[1]
    assert equal["t"] == 0 and equal["p"] == pytest.approx(1)
    assert equal["low"] < 0 < equal["high"], "an interval needs no difference"
    with pytest.raises(ValueError, match="no group 'c'"):
        significance.compare_groups(dict(a=[1.0]), "c")


def test_sentences_carry_the_numbers():
    base, other = significance.compare_groups(dict(base=[10, 11, 12], bypass=[11, 14, 17]), "base")
    assert significance.sentence(base) == "base: 11.00 ± 1.00 (n = 3)"
    assert (
        "+3.00" in significance.sentence(other)
        and "p = " in significance.sentence(other)
        and "× 3.0" in significance.sentence(other)
    )


# ---- one sample of differences -------------------------------------------------------------------


def test_students_t_of_differences_by_hand():
    """Three differences of mean -.04 and spread .01: t = -.04 / (.01 / sqrt 3) = -6.928, and with
    two degrees of freedom P(|T| > t) = 1 - t / sqrt(2 + t^2)."""
    t = 0.04 * math.sqrt(3) / 0.01
    by_hand = 1 - t / math.sqrt(2 + t**2)
    assert intervals.t_test([-0.05, -0.04, -0.03]) == pytest.approx(by_hand, abs=1e-9)
    assert intervals.t_test([0.2]) is None and intervals.t_test([0.2, 0.2]) is None


@pytest.mark.parametrize(
    "differences, p",
    [
        ([1, 2, 3], 2 / 8),  # only + + + and - - - are as far out
        ([1, 2, -3], 1),  # every pattern is at least 0 away
        ([3, 2, -1], 4 / 8),  # 4, of the sums 6, 4, 2, 0 and their mirrors
        ([0.1, 0.2, 0.3], 2 / 8),  # .1 + .2 + .3 is not .3 + .2 + .1 in floating point
        ([5] * 10, 2 / 1024),
    ],
)
def test_flipped_signs_are_counted_one_by_one(differences, p):
    assert significance.sign_flips(differences) == p
    assert significance.sign_flips([-value for value in differences]) == p


def test_darwins_fifteen_pairs_of_maize_have_the_p_that_fisher_counted():
    """The Design of Experiments, section 21: 1,726 of 2^15 patterns give a sum of 314 or more away
    from 0, a p of 5.267 %; Student's t is 2.148 with 14 degrees of freedom, p = 4.97 %."""
    maize = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert significance.sign_flips(maize) == 1726 / 2**15
    assert intervals.t_test(maize) == pytest.approx(0.0497, abs=1e-4)


def test_one_pair_cannot_be_told_from_its_mirror():
    assert significance.sign_flips([0.3]) == 1


@pytest.mark.parametrize("dof", [1, 2, 4, 9, 9.7, 56])
def test_students_t_is_the_integral_of_its_density(dof):
    """With t = sqrt(dof) tan(a) the density is cos(a)^(dof - 1), by any rule of integration."""

    def area(end, steps=20_000):
        middles = (end * (i + 0.5) / steps for i in range(steps))
        return math.fsum(math.cos(a) ** (dof - 1) for a in middles) * end / steps

    for t in (0.1, 1.0, 2.776, 20.0):
        share = 0.5 + area(math.atan(t / math.sqrt(dof))) / (2 * area(math.pi / 2))
        assert intervals.student(t, dof) == pytest.approx(share, abs=1e-7)
        assert intervals.student(-t, dof) == pytest.approx(1 - share, abs=1e-7)
        if share < 1 - 1e-6:
            assert t_quantile(share, dof) == pytest.approx(t, rel=1e-3)


def test_without_scipy_a_comparison_says_so_before_it_trains(monkeypatch, tmp_path):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))
    monkeypatch.setitem(sys.modules, "scipy", None)
    intervals.functions.cache_clear()
    with pytest.raises(ValueError, match=r"SciPy: pip install 'minimal\[compare\]'"):
        compare(["gqa"])
    assert list(tmp_path.iterdir()) == []


def test_too_many_pairs_for_counting_are_refused():
    with pytest.raises(ValueError, match="wanted at most 20 differences, got 21: use the t-test"):
        significance.sign_flips([1.0] * 21)


def test_two_one_sided_tests_by_hand():
    """Differences 0, 1, 2 and a margin of 3: t = (1 + 3) / (1 / sqrt 3) and (1 - 3) / (1 / sqrt 3);
    the larger p is the upper one's, (1 - t / sqrt(2 + t^2)) / 2 with t = 2 sqrt 3."""
    t = 2 * math.sqrt(3)
    by_hand = (1 - t / math.sqrt(2 + t**2)) / 2
    assert significance.equivalence([0, 1, 2], 3) == pytest.approx(by_hand, abs=1e-9)
    assert significance.equivalence([0, -1, -2], 3) == pytest.approx(by_hand, abs=1e-9)
    assert significance.equivalence([0, 1, 2], 1) == pytest.approx(0.5), "the mean is at the margin"
    assert significance.equivalence([0.5], 3) is None
    with pytest.raises(ValueError, match="wanted a margin above 0, got 0"):
        significance.equivalence([0, 1, 2], 0)


@pytest.mark.parametrize("margin", [0.02, 0.027, 0.028, 0.05])
def test_equivalence_at_5_per_cent_is_a_90_per_cent_interval_within_the_margin(margin):
    differences = [0.01, -0.012, 0.02, 0.013, 0.03]
    _, low, high = intervals.interval(differences, share=0.9)
    within = -margin < low and high < margin
    assert (significance.equivalence(differences, margin) < 0.05) == within


# ---- many tests ----------------------------------------------------------------------------------

# Benjamini and Hochberg (1995), section 4.2: fifteen endpoints of a study of thrombolysis
FIFTEEN = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459]
FIFTEEN += [0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0]


def test_corrections_call_clear_what_their_papers_do():
    """Four of fifteen by the false discovery rate, three by Holm."""
    ps = {f"endpoint {n}": p for n, p in reversed(list(enumerate(FIFTEEN, 1)))}
    for correct, clear in ((significance.benjamini_hochberg, 4), (significance.holm, 3)):
        adjusted = correct(ps)
        assert list(adjusted) == list(ps), "in the order of the table"
        found = {name for name, p in adjusted.items() if p <= 0.05}
        assert found == {f"endpoint {n}" for n in range(1, clear + 1)}


def test_corrections_by_hand():
    """.01, .03, .04, .2: Holm 4 x .01, 3 x .03, no less for .04, .2; BH 4/1 to 4/4 times each."""
    ps = dict(a=0.04, b=0.01, c=0.03, d=0.2)
    assert significance.holm(ps) == pytest.approx(dict(a=0.09, b=0.04, c=0.09, d=0.2))
    step_up = dict(a=0.16 / 3, b=0.04, c=0.16 / 3, d=0.2)
    assert significance.benjamini_hochberg(ps) == pytest.approx(step_up)
    assert significance.holm(dict(a=0.6, b=0.9)) == dict(a=1.0, b=1.0)
    assert significance.holm({}) == significance.benjamini_hochberg({}) == {}


# ---- one spread for all plans --------------------------------------------------------------------


def runs(**losses):
    return [
        dict(plan=plan, size="tiny", seed=seed, loss=loss)
        for plan, values in losses.items()
        for seed, loss in enumerate(values)
    ]


@pytest.mark.parametrize(
    "values, clear",
    [
        ([0.1], False),
        ([0.1, 0.1], False),  # no width, by luck: two are too few to say so
        ([0.1, 0.1, 0.1], True),
        ([0.1, -0.1, 0.3], False),
        ([-0.1, -0.11, -0.12], True),
    ],
)
def test_clear_wants_three_values_and_an_interval_without_zero(values, clear):
    _, low, high = intervals.interval(values)
    assert intervals.clear(low, high, len(values)) is clear
