"""Is Welch's t the textbook's, is what few runs cannot tell left open, and does the figure show every run?"""

import math

import pytest

from minimal.lab.evidence import intervals
from minimal.lab.evidence.intervals import t_quantile


def test_the_reports_own_table_gives_the_t_that_facts_say():
    """Groups with the report's means and deviations: 55.51 ± .32 and 59.62 ± 3.32, five seeds each: t = 2.76."""

    def group(mean, std, n):
        shape = [i - (n - 1) / 2 for i in range(n)]
        scale = std / math.sqrt(sum(s * s for s in shape) / (n - 1))
        return [mean + scale * s for s in shape]

    rows = intervals.compare(dict(base=group(55.51, 0.32, 5), bypass=group(59.62, 3.32, 5)), "base")
    assert rows[1]["t"] == pytest.approx(2.76, abs=0.01) and rows[1]["dof"] == pytest.approx(
        4.07, abs=0.02
    )
    assert rows[1]["ratio"] == pytest.approx(10.4, abs=0.1) and rows[1]["p"] == pytest.approx(
        0.050, abs=0.002
    )
    rows = intervals.compare(dict(base=group(63.15, 0.07, 3), bypass=group(64.74, 1.47, 3)), "base")
    assert rows[1]["t"] == pytest.approx(1.87, abs=0.01) and rows[1]["low"] < 0 < rows[1]["high"]


def test_welch_by_hand():
    """a = 1, 2, 3 and b = 2, 4, 6, 8: variances 1 and 20/3; t = 3 / sqrt(1/3 + 5/3), dof = 4 / (1/18 + 25/27)."""
    a, b = intervals.compare(dict(a=[1, 2, 3], b=[2, 4, 6, 8]), "a")
    assert (a["mean"], a["std"], b["mean"]) == (2, 1, 5) and b["difference"] == 3
    assert b["t"] == pytest.approx(3 / math.sqrt(2)) and b["dof"] == pytest.approx(
        4 / (1 / 18 + 25 / 27)
    )
    assert (b["low"] + b["high"]) / 2 == pytest.approx(3)
    assert (b["high"] - b["low"]) / 2 == pytest.approx(
        t_quantile(0.975, b["dof"]) * math.sqrt(1 / 3 + 5 / 3)
    )
    assert intervals.compare(dict(a=[2, 4, 6, 8], b=[1, 2, 3]), "a")[1]["t"] == pytest.approx(
        -b["t"]
    )


def test_the_f_test_has_the_quantiles_of_the_tables():
    """The 97.5 % quantiles of F: 9.605 at (4, 4), 39.00 at (2, 2), 14.47 at (9, 3) degrees of freedom."""
    for n1, n2, quantile in ((5, 5, 9.605), (3, 3, 39.00), (10, 4, 14.473)):
        assert intervals.f_test(math.sqrt(quantile), n1, 1.0, n2) == pytest.approx(0.05, abs=5e-5)
        assert intervals.f_test(1.0, n2, math.sqrt(quantile), n1) == pytest.approx(0.05, abs=5e-5)
    assert intervals.f_test(2.0, 5, 2.0, 5) == pytest.approx(1)


def test_what_one_run_or_no_spread_cannot_tell_is_none():
    one = intervals.compare(dict(a=[1.0, 2.0], b=[3.0]), "a")[1]
    assert one["difference"] == 1.5 and one["std"] is one["t"] is one["p"] is one["low"] is None
    assert "one run cannot say" in intervals.sentence(one)
    same = intervals.compare(dict(a=[1.0, 1.0], b=[1.0, 1.0]), "a")[1]
    assert same["t"] is None and same["ratio"] is None
    equal = intervals.compare(dict(a=[1.0, 3.0], b=[0.0, 4.0]), "a")[1]
    assert equal["t"] == 0 and equal["p"] == pytest.approx(1)
    assert equal["low"] < 0 < equal["high"], "an interval needs no difference"
    with pytest.raises(ValueError, match="no group 'c'"):
        intervals.compare(dict(a=[1.0]), "c")


def test_sentences_carry_the_numbers():
    base, other = intervals.compare(dict(base=[10, 11, 12], bypass=[11, 14, 17]), "base")
    assert intervals.sentence(base) == "base: 11.00 ± 1.00 (n = 3)"
    assert (
        "+3.00" in intervals.sentence(other)
        and "p = " in intervals.sentence(other)
        and "× 3.0" in intervals.sentence(other)
    )
