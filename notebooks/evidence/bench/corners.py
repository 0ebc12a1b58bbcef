"""Do dynamic values pay? A training step of their corners, timed in turn with the plain one."""

from minimal.bench.bench import stepper
from minimal.bench.timing import in_turn, medians, ratio
from minimal.model.count import count
from minimal.variants import skeleton


def corners(sizes=(("tiny", 16), ("gpt2", 2)), rounds=7):
    """A training step of dynamic value attention's corners, as a share of the plain transformer's.

    The corners are one head and no network, without the modifier and with it; by size and batch,
    beside the share of the arithmetic."""
    plain = "standard/many/ffn/wo"
    corners = ("standard/one/noffn/nowo", "dva/one/noffn/nowo", "dva/many/ffn/wo")
    names, found = (plain, *corners), []
    for size, batch in sizes:
        steps = {name: stepper(name, size, "gpt2", batch, False)[1] for name in names}
        taken = in_turn(steps, rounds)
        flops = {name: count(skeleton(name, size))["flops_per_token"] for name in names}
        for name in names:
            found.append(
                dict(
                    plan=name,
                    size=size,
                    batch=batch,
                    ms=medians(taken)[name],
                    time=ratio(taken, name, plain),
                    arithmetic=flops[name] / flops[plain],
                )
            )
    return found
