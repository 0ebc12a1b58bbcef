"""Which of several ways to compute the same is fastest here? Measured once a process, remembered.

Two products of the same numbers can differ by two on one machine and not at all on another, so no
constant in a file can choose between them."""

import time

CHOSEN = {}  # question -> the name of the way that was fastest


def in_turn(ways, rounds, wait=lambda: None):
    """{name: milliseconds of each round}: every way once a round, beginning with another each time.

    `wait` returns when the device has finished: torch.cuda.synchronize, or nothing on a CPU."""
    names = list(ways)
    for way in ways.values():
        way()
    taken = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            wait()
            start = time.perf_counter()
            ways[name]()
            wait()
            taken[name].append(1e3 * (time.perf_counter() - start))
    return taken


def fastest(question, ways, rounds=3):
    """The name of the fastest of `ways`, {name: call}; asked again, the answer is remembered.

    The question holds what the answer hangs on: sizes to a power of two, types, threads."""
    if question not in CHOSEN:
        taken = in_turn(ways, rounds)
        CHOSEN[question] = min(taken, key=lambda name: min(taken[name]))
    return CHOSEN[question]
