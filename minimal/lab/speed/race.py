"""How much sooner does the course's recipe reach a loss than GPT-2's? Steps to the same held-out loss, times a step."""

import statistics

from minimal.lab.speed.bench import stepper
from minimal.training.device import clock


def race(steps=1500, rates=(6e-4, 1e-3, 3e-3), size="wide", corpus="auto", compile=False):
    """The gpt2 plan with AdamW, best of three rates, against the course's recipe: time to the same held-out loss.

    How many steps each needs does not depend on the machine's mood, so those runs are cached; what a warm step takes is
    measured here, of both in turn. Time = steps x step: evaluation, preparation and compiling are not counted."""
    from minimal.lab.evidence.runs import cached
    from minimal.train import Run

    common = dict(size=size, corpus=corpus, rows=128, evaluate=10**6)
    base = [
        cached(Run(plan="gpt2", recipe="gpt2", lr=rate, steps=steps, **common)) for rate in rates
    ]
    best = min(base, key=lambda r: r["valid"][-1]["loss"])
    goal, own, needed = best["valid"][-1]["loss"], None, None
    for share in (
        0.05,
        0.075,
        0.1,
        0.11,
        0.115,
        0.12,
        0.135,
        0.15,
        0.2,
        0.3,
    ):  # a schedule must know its length
        own = cached(Run(plan="standard", recipe="course", steps=round(steps * share), **common))
        if own["valid"][-1]["loss"] <= goal:
            needed = own["steps"]
            break
    _, theirs = stepper("gpt2", size, "gpt2", 16, compile)
    _, ours = stepper("standard", size, "course", 16, compile)
    turns = [(clock(theirs, 5), clock(ours, 5)) for _ in range(5)]
    base_step, own_step = (
        statistics.median(s for turn in side for s in turn) for side in zip(*turns)
    )
    return dict(
        goal=goal,
        base_lr=best["run"]["lr"],
        base_losses=[r["valid"][-1]["loss"] for r in base],
        base_steps=steps,
        base_step_ms=1e3 * base_step,
        course_steps=needed,
        course_loss=own["valid"][-1]["loss"],
        course_step_ms=1e3 * own_step,
        compiled=compile,
        share=needed * own_step / (steps * base_step) if needed else None,
    )
