"""A small text, small runs on it, and their options."""

from minimal.train import Trainer
from minimal.training.run import Run

LINES = [
    f"{a} {b} {c}."
    for a in ("the cat", "a dog", "my horse", "one bird")
    for b in ("sees", "hears", "follows", "knows")
    for c in ("the moon", "a river", "the old house", "nobody", "three men", "rain")
]
TEXT = "\n".join(LINES) * 180
TINY = dict(size="nano", vocab=300, context=32, batch=8, rows=8, changes=dict(layers=2, width=32))
CLI = ["--size", "smoke", "--vocab", "300", "--context", "32", "--batch", "8", "--rows", "8"]


def made(corpus, out=None, kind=Trainer, **more):
    """A trainer of 20 steps, or of what `more` says."""
    asked = TINY | dict(steps=20) | more
    return kind(Run(corpus=corpus, out=str(out) if out else None, **asked), quiet=True)


def trained(corpus, out=None, minutes=None, **more):
    return made(corpus, out, **more).fit(minutes)
