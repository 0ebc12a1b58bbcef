"""Which of several ways to compute the same is fastest here? Measured once a process, remembered.

Two products of the same numbers can differ by two on one machine and not at all on another, so no
constant in a file can choose between them."""

import time

import torch

CHOSEN = {}  # question -> the name of the way that was fastest


def milliseconds(way):
    """Of one call, by the clock on the wall."""
    start = time.perf_counter()
    way()
    return 1e3 * (time.perf_counter() - start)


def in_turn(ways, rounds, measure=milliseconds):
    """{name: milliseconds of each round}: every way once a round, beginning with another each time.

    So whatever else the machine does hurts all ways alike. Each is called once before, to warm up.
    `measure(way)` calls a way and says how long it took: on a GPU, by its events."""
    names = list(ways)
    for way in ways.values():
        way()
    taken = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(measure(ways[name]))
    return taken


def fastest(question, ways, rounds=5):
    """The name of the fastest of `ways`, {name: call}; asked again, the answer is remembered. While
    a graph is made nobody can measure, and the first way is taken.

    The question holds what the answer hangs on: sizes to a power of two, types; threads are
    added to it."""
    if torch.compiler.is_compiling():
        return next(iter(ways))
    question = *question, torch.get_num_threads()
    if question not in CHOSEN:
        taken = in_turn(ways, rounds)
        CHOSEN[question] = min(taken, key=lambda name: min(taken[name]))
    return CHOSEN[question]
