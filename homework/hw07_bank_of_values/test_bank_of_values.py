"""Each test is one line of the card that `pytest homework/hw07_bank_of_values` prints; `--hint 2` says more."""

from homework.hw07_bank_of_values.exercises import unit
from homework.public import parts_of

test_part = parts_of(unit)
