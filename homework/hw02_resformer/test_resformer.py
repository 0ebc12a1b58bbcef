"""Each test is one line of the card that `pytest homework/hw02_resformer` prints; `--hint 2` says more."""

from homework.hw02_resformer.exercises import unit
from homework.public import parts_of

test_part = parts_of(unit)
