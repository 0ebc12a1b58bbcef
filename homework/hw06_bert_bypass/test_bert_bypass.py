"""Each test is one line of the card that `pytest homework/hw06_bert_bypass` prints; `--hint 2` says more."""

from homework.hw06_bert_bypass.exercises import unit
from homework.public import parts_of

test_part = parts_of(unit)
