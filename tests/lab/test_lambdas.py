"""Are the weights of recorded runs read as they were recorded?"""

import pytest

from minimal.lab.evidence.lambdas import curves, measured, share, told

NAMES = ["streams.1.residual.0.value", "streams.1.x0.0.value"]


def result(steps, lengths):
    sums = [
        dict(kind="skip", layer=9, lengths=lengths),
        dict(kind="x0", layer=9, lengths=0.9),
        dict(kind="skip", layer=11, lengths=lengths / 2),
    ]
    valid = [dict(sums=[dict(kind="skip", layer=9, lengths=0.0)]), dict(sums=sums)]
    return dict(coefficients=dict(names=NAMES, steps=steps), valid=valid)


RUNS = [result([[1.0, 0.0], [0.5, -0.5]], 0.4), result([[1.0, 0.0], [0.9, 0.1]], 0.2)]


def test_a_weight_is_followed_in_every_run():
    assert curves(RUNS, NAMES[1]) == [[0.0, -0.5], [0.0, 0.1]]


def test_a_share_forgets_the_sign():
    found = share(curves(RUNS, NAMES[1]), curves(RUNS, NAMES[0]))
    assert found[0] == [0.0, 0.5] and found[1] == pytest.approx([0.0, 0.1])


def test_sums_are_gathered_by_layer():
    assert measured(RUNS, "skip", "lengths") == {9: [0.4, 0.2], 11: [0.2, 0.1]}
    assert measured(RUNS, "skip", "lengths", at=0) == {9: [0.0, 0.0]}


def test_one_run_has_no_range():
    assert told([0.5]) == "0.50" and told([0.25, 0.75], "{:.0%}") == "50% (25% to 75%)"
