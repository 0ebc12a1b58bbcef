"""Each test is one line of the card that `pytest homework/hw01_attention` prints; `--hint 2` says more."""

from homework.hw01_attention.exercises import unit
from homework.public import parts_of

test_part = parts_of(unit)
