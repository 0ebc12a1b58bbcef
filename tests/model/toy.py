"""What would somebody else's variant look like? A source, and a line of PLANS; nothing else.

As a plugin of pytest (-p tests.model.toy) it joins the course's plans before tests are collected.
"""

from functools import partial

from minimal.model.plan import Plan, last_third, place
from minimal.model.values import Mix, Own, Source
from minimal.variants import PLANS


class Rolled(Source):
    """The first layer's values, rolled over the heads."""

    mark = "layer"

    def __init__(self, **where):
        super().__init__(**where)
        self.j = 0

    def rows(self, h, at, tape):
        return tape.raw_of(self.j).roll(1, dims=2)

    def word(self):
        return "rolled V1"


TOY = Plan(place(last_third, value=partial(Mix, Own, Rolled, 0.5, 0.5, gain=("beta", 1.0))))


def pytest_configure(config):
    PLANS["toy"] = TOY
