"""Where does a new token's time go? Our step and a plain loop's, operation by operation.

    make bench PART=token          by operator on a processor, by kernel on a GPU

Seconds are an operator's own, without those it calls. What stands under "outside" is no operator's:
Python between the calls, and on a GPU the gaps between kernels."""

import statistics
import time

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from evidence.bench.generation import Text
from evidence.bench.rivals import PLAIN_RIVAL, Loop
from minimal.training.device import clock

ROUNDS = 5
SHOWN = 20  # operators by name; all others are one line


def one_token(
    plan="standard", size="tiny", length=1024, texts=1, tokens=8, where="cpu", compiled=False, **how
):
    """{"ours" or PLAIN_RIVAL: {operator: (calls, microseconds) of one token}}; `compiled`: and the
    compiler's step."""
    shape = dict(length=length, tokens=tokens, texts=texts, where=where)
    ways = {"ours": Text(plan, size, **shape, **how), PLAIN_RIVAL: Loop(size, **shape)}
    if compiled:
        ways["ours, compiled"] = ways["ours"].compiled()
    return {name: by_operator(way, tokens, where) for name, way in ways.items()}


def by_operator(way, tokens, where):
    for _ in range(4):  # watched, written down, recorded
        way()
    on_gpu = where == "cuda"
    kind = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    with profile(activities=[kind]) as seen:
        for _ in range(ROUNDS):
            way()
        if on_gpu:
            torch.cuda.synchronize()
    found = per_token(seen.events(), ROUNDS * tokens, on_gpu)
    # a profiler costs time of its own: without it, and the least of some
    own = {} if on_gpu else dict(now=time.process_time)
    whole = min(clock(way, ROUNDS, warm=0, where=where, **own))
    found["outside"] = 0, max(0.0, 1e6 * whole / tokens - sum_of(found))
    return found


def per_token(events, tokens, on_gpu):
    """{operator or kernel: (calls, microseconds)}: calls times the median of their times, because
    what else the machine does makes some calls long. Of a GPU only its own events are kernels:
    launches, which stand among them, are the processor's."""
    taken, found = {}, {}
    for event in events:
        if on_gpu and event.device_type == DeviceType.CPU:
            continue
        us = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        taken.setdefault(event.key, []).append(us)
    for operator, times in taken.items():
        calls = len(times) / tokens
        found[operator] = calls, calls * statistics.median(times)
    return found


def sum_of(found):
    return sum(us for _, us in found.values())


def as_table(found):
    """Lines of Markdown: the operators that take longest in either, and the sum."""
    names = sorted(
        {name for rows in found.values() for name in rows},
        key=lambda name: -max(rows.get(name, (0, 0))[1] for rows in found.values()),
    )
    heads = [f"{name}: {what}" for name in found for what in ("calls", "µs")]
    lines = [f"| operator | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|"]
    rest = {name: [0.0, 0.0] for name in found}
    for at, operator in enumerate(names):
        cells = [rows.get(operator, (0, 0)) for rows in found.values()]
        if at < SHOWN:
            lines.append(line_of(operator, cells))
            continue
        for name, (calls, us) in zip(found, cells, strict=True):
            rest[name][0] += calls
            rest[name][1] += us
    lines.append(line_of("all others", rest.values()))
    sums = [[sum(x) for x in zip(*rows.values(), strict=True)] for rows in found.values()]
    return "\n".join([*lines, line_of("sum", sums)])


def line_of(operator, cells):
    words = [f"{calls:.0f} | {us:,.0f}" for calls, us in cells]
    return f"| `{operator[:60]}` | {' | '.join(words)} |"
