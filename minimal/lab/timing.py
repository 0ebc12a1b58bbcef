"""How are two ways timed fairly? In turn, in one process, and compared round by round."""

import statistics
import time

import torch


def in_turn(ways, rounds):
    """{name: milliseconds of each round}: all ways once a round, starting with another one each time."""
    names, taken = list(ways), {name: [] for name in ways}
    for way in ways.values():
        way()
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            ways[name]()
            taken[name].append(1e3 * (time.perf_counter() - start))
    return taken


def ratio(taken, slow, fast):
    """The median over rounds of how many times faster `fast` is: both were timed within the same second."""
    return statistics.median(a / b for a, b in zip(taken[slow], taken[fast], strict=True))


def zipf(vocabulary, length, generator):
    """Ids whose frequencies fall as in text (Zipf-Mandelbrot, exponent 1, offset 2.7), in no order of frequency."""
    weight = 1 / (torch.arange(vocabulary, dtype=torch.float64) + 2.7)
    drawn = torch.multinomial(weight, length, replacement=True, generator=generator)
    return torch.randperm(vocabulary, generator=generator)[drawn].int()
