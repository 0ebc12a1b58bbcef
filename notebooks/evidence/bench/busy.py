"""What does a run on two threads lose beside another busy process? Side by side, and in turn.

    make bench PART=busy

Threads that wait for one another spin before they sleep. On a machine of its own that is a gain; on
a laptop whose processors are busy a spinning thread keeps away the one that it waits for. Here the
same training step is taken alone, beside a second run of the same kind, and beside a loop of plain
Python: with as much spinning as `minimal` allows (see its __init__), with none, and with as much as
libgomp would do by itself. Two runs side by side share the machine: 2 times the time alone is what
one after the other would take.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import torch

from minimal.bench.timing import clock

SPINS = dict(ours=None, none="0", libgomp="300000")  # what it is told; 300,000 is its own default

LOOP = "while True: pass"

MOST = 2.5  # times as slow beside another run of the same kind, at most


def child(seconds, plan="standard", size="tiny", batch=16, threads=2):
    """Steps in a process of its own, from a line on its input on, then JSON on its output."""
    from minimal.bench.bench import stepper

    torch.set_num_threads(threads)
    _, step = stepper(plan, size, "course", batch, compile=False)
    clock(step, repeats=2, warm=0)
    print("ready", flush=True)
    sys.stdin.readline()
    taken, used = [], time.process_time()
    while sum(taken) < seconds:
        taken += clock(step, repeats=1, warm=0)
    used = time.process_time() - used
    found = dict(step_ms=1e3 * statistics.median(taken), processor_ms=1e3 * used / len(taken))
    print(json.dumps(found | dict(steps=len(taken))))


def environment(spin):
    """Ours, without what the user has said about waiting; `spin` instead of our own number."""
    kept = dict(os.environ)
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        kept.pop(name, None)
    return kept if spin is None else kept | dict(GOMP_SPINCOUNT=spin)


def start(code, spin=None):
    pipes = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return subprocess.Popen([sys.executable, "-c", code], env=environment(spin), **pipes)


def together(spin, runs=1, loops=0, **how):
    """What each of so many runs finds while all of them, and loops of plain Python, are busy."""
    call = f"from evidence.bench.busy import child; child(**{how!r})"
    running = [start(call, spin) for _ in range(runs)]
    try:
        # all are warm before one begins
        for run in running:
            if run.stdout.readline() != "ready\n":
                raise RuntimeError("a run of the busy part ended early: its reason stands above")
        running += [start(LOOP) for _ in range(loops)]
        for run in running[:runs]:
            run.stdin.write("go\n")
            run.stdin.flush()
        return [json.loads(run.stdout.readline()) for run in running[:runs]]
    finally:
        for run in running:
            run.kill()
            run.communicate()


def busy(seconds=4, rounds=2, spins=SPINS, **how):
    """{spin: milliseconds of a step alone, of two runs, beside a loop, and how much slower}.

    libgomp's own spinning once only: a step beside a neighbour may then take half a minute."""
    situations = dict(alone={}, two_runs=dict(runs=2), beside_a_loop=dict(loops=1))
    found = {name: {situation: [] for situation in situations} for name in spins}
    for turn in range(rounds):
        chosen = [name for name in spins if turn == 0 or name != "libgomp"]
        for name in chosen:
            for situation, neighbours in situations.items():
                found[name][situation] += together(
                    spins[name], **neighbours, seconds=seconds, **how
                )
    return {name: summary(runs) for name, runs in found.items()}


def summary(runs):
    """Medians over the rounds, processor time of a step, and ratios to a run alone."""
    median = {
        field: {name: statistics.median(one[field] for one in some) for name, some in runs.items()}
        for field in ("step_ms", "processor_ms")
    }
    alone = median["step_ms"]["alone"]
    slower = {name: ms / alone for name, ms in median["step_ms"].items() if name != "alone"}
    # Both were finished after as long as one of them took; in turn they would take twice `alone`.
    side_by_side_over_in_turn = slower["two_runs"] / 2
    return median | dict(slower=slower, side_by_side_over_in_turn=side_by_side_over_in_turn)


def report(found):
    """A line for each amount of spinning."""
    lines = ["busy: a tiny training step on 2 threads, and how much slower beside a neighbour"]
    for name, row in found.items():
        alone = row["step_ms"]["alone"]
        two, loop = row["slower"]["two_runs"], row["slower"]["beside_a_loop"]
        lines.append(
            f"  spinning {name:8} alone {alone:7.0f} ms; beside the same run {two:6.2f} times, "
            f"beside a loop {loop:6.2f} times"
        )
    ours = found["ours"]
    verdict = "" if ours["slower"]["two_runs"] <= MOST else "not "
    turns = ours["side_by_side_over_in_turn"]
    lines.append(
        f"  two runs side by side take {turns:.2f} of one after the other; {verdict}within "
        f"{MOST} times"
    )
    return "\n".join(lines)
