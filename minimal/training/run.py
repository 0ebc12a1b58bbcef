"""What decides a training run? The fields of a Run; and the ways in which a run can end early."""

import functools
import json
import sys
from dataclasses import dataclass, field, fields, replace
from typing import Any

from minimal.command import Stop
from minimal.training import recipes

# Fields that change neither a run's numbers nor what is measured,
NOT_IN_IDENTITY = {"out", "save", "device", "compile", "graph"}

# those that change only how often it is measured, and those that change on how much.
HOW_OFTEN, HOW_MUCH = {"evaluate"}, {"rows"}

TYPE_WORDS = {int: "a whole number", float: "a number", str: "a name", bool: "True or False"}

MOST = dict(  # what is above is a slip of the keyboard; int fields are at least 1 besides
    steps=10**9,
    batch=2**20,
    accumulate=2**20,
    context=2**20,
    vocab=2**20,
    tokens=2**40,
    evaluate=10**9,
    rows=2**30,
    save=10**9,
    flops=1e30,
    lr=sys.float_info.max,
)


def option(default, told, **more):
    """A field with the words that --help says of it."""
    return field(default=default, metadata=dict(help=told, **more))


@dataclass(frozen=True)
class Run:
    """Everything that decides a training run.

    The same Run gives the same numbers on the same machine, to the last digit on a CPU. On a GPU it
    gives them only about: with --compile, Inductor adds up the gradients of embeddings with atomic
    operations, whose order changes from call to call, and other kernels of PyTorch may do so too.
    torch.use_deterministic_algorithms(True) trades speed for the last digit.
    """

    plan: Any = option("standard", "a name of minimal.variants; in Python, or a Plan of your own")
    size: str = option("tiny", "a name of minimal.model.config")
    corpus: str = option("auto", "auto, stdlib, a file or folder, python:DIR, or a known name")
    steps: int | None = option(None, "optimizer steps (default 250)")
    flops: float | None = option(
        None, "a budget instead of steps: round(flops / (FLOPs per token * batch))"
    )
    batch: int = option(16, "sequences a step, over all processes")
    accumulate: int = option(1, "parts that a step's batch is cut into")
    context: int | None = option(None, "tokens a sequence (default: the size's)")
    vocab: int | None = option(None, "tokens of the vocabulary (default: the size's)")
    style: str | None = option(None, "nanochat, llama, gpt2, modded (default: the size's)")
    recipe: str = option("bov", "a name of minimal.training.recipes: rates, betas, schedules")
    scale: str = option(
        "laptop", "laptop: the recipe's numbers as they stand; paper: carried by batch and width"
    )
    warmup: float | None = option(None, "share of the run that warms up (the recipe's)")
    lr: float | None = option(None, "rate of the matrices; all other rates move along")
    seed: int = option(0, "of weights, order and dropout")
    packing: str = option("stream", "stream or bestfit")
    tokens: int | None = option(None, "cap on the training tokens that are prepared")
    evaluate: int = option(250, "steps between evaluations (the last step always)")
    rows: int = option(64, "held-out rows an evaluation reads")
    save: int = option(100, "steps between checkpoints")
    out: str | None = option(
        None, "folder for checkpoint and log; a second call goes on from there"
    )
    device: str = option("auto", "auto, cpu, cuda or mps")
    compile: bool = option(False, "torch.compile: pays on GPUs and on long CPU runs")
    graph: bool = option(False, "a step as one CUDA graph: pays for small models on one GPU")
    # further fields of Config; and role -> fields of the recipe's row, replaced
    changes: dict = field(default_factory=dict, metadata=dict(cli=False))
    overrides: dict = field(default_factory=dict, metadata=dict(cli=False))

    def __post_init__(self):
        if not isinstance(self.plan, str) and not hasattr(self.plan, "line"):
            raise ValueError(
                f"plan: wanted a name of minimal.variants or a Plan, got {self.plan!r}"
            )
        for entry in fields(self):
            if entry.name != "plan":
                check_kind(entry, getattr(self, entry.name))
        for name, most in MOST.items():
            check_size(name, getattr(self, name), most)
        if self.steps is not None and self.flops is not None:
            raise ValueError(
                f"wanted steps or flops, got both, {self.steps} and {self.flops:g}: leave one out"
            )
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed: wanted a whole number from 0 to {2**32 - 1}, got {self.seed}")
        if self.warmup is not None and not 0 <= self.warmup < 1:
            raise ValueError(
                f"warmup is a share of the run: wanted 0 or more and below 1, got {self.warmup}"
            )
        if self.scale not in recipes.SCALES:
            known = ", ".join(recipes.SCALES)
            raise ValueError(f"there is no scale {self.scale!r}: choose one of {known}")
        check_stored("changes", self.changes)
        check_overrides(self.overrides)
        if self.recipe in recipes.RECIPES:  # a checkpoint may name one that is not known here
            self.whole_recipe()

    def asked(self):
        """Its fields as they are written down: a Plan of one's own by its name."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return found | dict(plan=str(self.plan))

    def config(self):
        """What this run changes in its size's Config."""
        named = {name: getattr(self, name) for name in ("context", "vocab", "style")}
        return {name: value for name, value in named.items() if value is not None} | self.changes

    def total_steps(self, flops_a_step):
        if self.flops is not None:
            return max(1, round(self.flops / flops_a_step))
        return 250 if self.steps is None else self.steps

    def whole_recipe(self):
        """The named recipe with this run's own rows and warm-up."""
        recipe = recipes.named(self.recipe)
        for role, row in self.overrides.items():
            recipe = recipe.change(role, **row)
        if self.warmup is not None:
            recipe = replace(recipe, lr=replace(recipe.lr, warmup=self.warmup))
        return recipe


@functools.cache  # a grid has thousands of runs
def type_of(entry):
    """The type of a field, without its `| None`."""
    if entry.type is Any:
        return str
    return next(kind for kind in (int, float, str, bool, dict) if entry.type in (kind, kind | None))


def check_kind(entry, value):
    kind = type_of(entry)
    if value is None and entry.type != kind:
        return
    good = {float: (int, float)}.get(kind, kind)
    if not isinstance(value, good) or (kind in (int, float) and isinstance(value, bool)):
        wanted = TYPE_WORDS.get(kind, kind.__name__)
        raise ValueError(f"{entry.name}: wanted {wanted}, got {value!r}")


def check_overrides(overrides):
    for role, row in overrides.items():
        if not isinstance(row, dict):
            raise ValueError(
                f"overrides: wanted fields of a role, as in dict({role}=dict(lr=0.01)), got {row!r}"
            )
        check_stored(f"overrides of {role}", row)


def check_stored(name, values):
    """Checkpoints and rows hold a run as JSON: what that cannot hold would fail at the first save,
    when there is something to lose."""
    for key, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: wanted for {key} what JSON can hold, got {value!r}: give a number or a "
                "text of Python's own, as float(x) is, or fields, dataclasses.asdict(x)"
            ) from None


def check_size(name, value, most):
    if value is None:
        return
    if not value > 0:
        raise ValueError(f"{name} must be above 0, got {value}: leave it out for the default")
    if not value <= most:
        raise ValueError(f"{name}: wanted a finite number, at most {most:,}, got {value}")


class TimeIsUp(Stop):
    """The minutes that were given are over: the same run goes on from there."""


class Diverged(Stop):
    """A loss or a weight became no number: going on would not help."""
