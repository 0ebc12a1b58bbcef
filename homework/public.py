"""Which tests does a learner run? One for each part of each exercise, named after it, worth its
points."""

import re

import pytest


def parts_of(unit):
    """The test function of a unit's `test_….py`: pytest asks it once a part."""

    @pytest.mark.parametrize("exercise, part", [param(*pair) for pair in unit.parts()])
    def test_part(exercise, part):
        unit.check(exercise, part)

    return test_part


def param(exercise, part):
    name = re.sub(r"\W+", "_", part.name.lower()).strip("_")
    return pytest.param(
        exercise.name,
        part.name,
        id=f"{exercise.name}_{name}",
        marks=pytest.mark.points(part.points),
    )
