"""How much sooner does the course's recipe reach a loss than GPT-2's? Steps needed, times a
step."""

from minimal.bench.bench import stepper
from minimal.bench.timing import in_turn, medians, ratio
from minimal.model.count import count
from minimal.variants import skeleton

SHARES = (0.05, 0.075, 0.1, 0.11, 0.115, 0.12, 0.135, 0.15, 0.2, 0.3)


def race(steps=1500, rates=(6e-4, 1e-3, 3e-3), size="wide", corpus="auto", compile=False):
    """The gpt2 plan with AdamW, best of three rates, against the course's recipe: time to one loss.

    How many steps each needs does not depend on what else the machine does, so those runs are
    cached; what a warm step takes is measured here, of both in turn. Time = steps x step:
    evaluation, preparation and compiling are not counted."""
    from minimal.compare.runs import cached
    from minimal.train import Run

    common = dict(size=size, corpus=corpus, rows=128, evaluate=10**6)
    base = []
    for rate in rates:
        run = Run(plan="gpt2", recipe="gpt2", lr=rate, steps=steps, **common)
        base.append(cached(run))
    best = min(base, key=lambda r: r["valid"][-1]["loss"])
    goal = best["valid"][-1]["loss"]

    # A schedule must know its length, so each share of the steps is a run of its own.
    needed = None
    for share in SHARES:
        run = Run(plan="standard", recipe="course", steps=round(steps * share), **common)
        own = cached(run)
        if own["valid"][-1]["loss"] <= goal:
            needed = own["steps"]
            break

    _, theirs = stepper("gpt2", size, "gpt2", 16, compile)
    _, ours = stepper("standard", size, "course", 16, compile)
    step_ms = medians(in_turn(dict(base=theirs, course=ours), rounds=25))
    share = None
    if needed is not None:
        share = needed * step_ms["course"] / (steps * step_ms["base"])
    return dict(
        goal=goal,
        base_lr=best["run"]["lr"],
        base_losses=[r["valid"][-1]["loss"] for r in base],
        base_steps=steps,
        base_step_ms=step_ms["base"],
        course_steps=needed,
        course_loss=own["valid"][-1]["loss"],
        course_step_ms=step_ms["course"],
        compiled=compile,
        share=share,
    )


# ---- corners of dynamic values -------------------------------------------------------------------

# Do dynamic values pay? A training step of their corners, timed in turn with the plain one.


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
