"""How are two ways timed fairly? In turn, in one process, and compared round by round.

Whoever times anything takes one of these: `clock` (warm calls of one thing, in seconds),
`in_turn` (several ways, in milliseconds) and `ratio`.
"""

import statistics

import torch

from minimal.kernels.fastest import in_turn
from minimal.training.device import clock

__all__ = ["clock", "in_turn", "medians", "ratio", "timer", "zipf"]


def timer(where, **how):
    """How in_turn times one call on this device: until its answer is there."""
    return lambda way: 1e3 * clock(way, 1, warm=0, where=where, **how)[0]


def ratio(taken, slow, fast):
    """The median over rounds of how many times faster `fast` is: both within the same second."""
    return statistics.median(a / b for a, b in zip(taken[slow], taken[fast], strict=True))


def medians(taken):
    """{name: median} of what in_turn gives."""
    return {name: statistics.median(times) for name, times in taken.items()}


def zipf(vocabulary, length, generator):
    """Ids whose frequencies fall as in text, in no order of frequency.

    Zipf-Mandelbrot with exponent 1 and offset 2.7."""
    weight = 1 / (torch.arange(vocabulary, dtype=torch.float64) + 2.7)
    drawn = torch.multinomial(weight, length, replacement=True, generator=generator)
    return torch.randperm(vocabulary, generator=generator)[drawn].int()
