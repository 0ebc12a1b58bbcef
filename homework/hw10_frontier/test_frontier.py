"""A test is a line of the report card, named after its part; `--hint 2` says more."""

from homework.hw10_frontier.exercises import unit
from homework.public import parts_of

test_part = parts_of(unit)
