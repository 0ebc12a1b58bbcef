"""Are the weights of recorded runs read as they were recorded?"""

from collections import Counter

import pytest
import torch

from course.lambdas import curves, mean_and_range, measured, share, sums
from course.proofs import wake
from minimal.variants import build

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
    assert (
        mean_and_range([0.5]) == "0.50"
        and mean_and_range([0.25, 0.75], "{:.0%}") == "50% (25% to 75%)"
    )


def test_every_sum_of_a_model_is_weighed_and_handed_over():
    model = wake(build("modded", "smoke", layers=16, style="modded"))
    ids, seen = torch.arange(24).view(2, 12), []

    def by_lengths(a, x, b, y):
        seen.append(a * x + b * y)
        return 0.25

    found = sums(model, ids, by_lengths)
    kinds = Counter(row["kind"] for row in found)
    assert kinds == dict(skip=3, x0=16, table=6, attention=15)  # layer 7 has no attention
    assert {row["lengths"] for row in found} == {0.25}
    weights = {row["layer"]: row["weights"] for row in found if row["kind"] == "skip"}
    assert weights == {9: 0.5, 10: 0.5, 11: 0.5}  # 1 and 1 at the start

    # the mixin's sum is what attention's output is added to
    mixin, attention = (
        next(total for row, total in zip(found, seen) if (row["layer"], row["kind"]) == (9, kind))
        for kind in ("x0", "attention")
    )
    assert 0.01 < (mixin - attention).abs().max() < 0.99 * attention.abs().max()
