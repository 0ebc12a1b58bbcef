"""What decides a training run, and who trains it?"""

import os
from dataclasses import dataclass, field

import torch
import torch.distributed as dist

from minimal.base import device
from minimal.recipes import SCALES

WHERE = {"out", "save", "device", "compile"}  # fields of a run that change neither its numbers nor what is measured
SEEN = {"evaluate", "rows"}  # and those that change only how often and how much it is measured
POSITIVE = ("steps", "flops", "batch", "accumulate", "context", "vocab", "lr", "tokens", "evaluate", "rows", "save")


@dataclass(frozen=True)
class Run:
    """Everything that decides a training run. The same Run gives the same numbers on the same machine."""

    plan: str = field(default="standard", metadata=dict(help="a name of minimal.variants"))
    size: str = field(default="tiny", metadata=dict(help="a name of minimal.config"))
    corpus: str = field(default="auto", metadata=dict(help="auto, stdlib, a file or folder, python:DIR, or a known name"))
    steps: int | None = field(default=None, metadata=dict(help="optimizer steps (default 250)"))
    flops: float | None = field(default=None, metadata=dict(
        help="a budget instead of steps: round(flops / (FLOPs per token * batch))"))
    batch: int = field(default=16, metadata=dict(help="sequences a step, over all processes"))
    accumulate: int = field(default=1, metadata=dict(help="parts that a step's batch is cut into"))
    context: int | None = field(default=None, metadata=dict(help="tokens a sequence (default: the size's)"))
    vocab: int | None = field(default=None, metadata=dict(help="tokens of the vocabulary (default: the size's)"))
    style: str | None = field(default=None, metadata=dict(help="nanochat, llama, gpt2, modded (default: the size's)"))
    recipe: str = field(default="bov", metadata=dict(help="a name of minimal.recipes: rates, betas, schedules"))
    scale: str = field(default="laptop", metadata=dict(
        help="laptop: the recipe's numbers as they stand; paper: carried by batch and width"))
    warmup: float | None = field(default=None, metadata=dict(help="share of the run that warms up (the recipe's)"))
    lr: float | None = field(default=None, metadata=dict(help="rate of the matrices; all other rates move along"))
    seed: int = 0
    packing: str = field(default="stream", metadata=dict(help="stream or bestfit"))
    tokens: int | None = field(default=None, metadata=dict(help="cap on the training tokens that are prepared"))
    mix: str | None = field(default=None, metadata=dict(help="weights of slimpajama's domains"))
    evaluate: int = field(default=250, metadata=dict(help="steps between evaluations (the last step always)"))
    rows: int = field(default=64, metadata=dict(help="held-out rows an evaluation reads"))
    save: int = field(default=100, metadata=dict(help="steps between checkpoints"))
    out: str | None = field(default=None, metadata=dict(
        help="folder for checkpoint and log; a second call goes on from there"))
    device: str = "auto"
    compile: bool = field(default=False, metadata=dict(help="torch.compile: pays on GPUs and on long CPU runs"))
    changes: dict = field(default_factory=dict, metadata=dict(cli=False))  # further fields of Config
    overrides: dict = field(default_factory=dict, metadata=dict(cli=False))  # role -> row of the recipe, replaced

    def __post_init__(self):
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, and {value} came: leave it out for the default")
        if self.warmup is not None and not 0 <= self.warmup < 1:
            raise ValueError(f"warmup is a share of the run, from 0 to below 1, and {self.warmup:g} came")
        if self.scale not in SCALES:
            raise ValueError(f"there is no scale {self.scale!r}: choose one of {', '.join(SCALES)}")

    def config(self):
        named = {name: getattr(self, name) for name in ("context", "vocab", "style")}
        return {k: v for k, v in named.items() if v is not None} | self.changes


class Stop(Exception):
    """The run ended early, in one sentence; what was reached is on disk."""


class TimeIsUp(Stop):
    """The minutes that were given are over: the same run goes on from there."""


class Diverged(Stop):
    """The loss became no number: going on would not help."""


class Team:
    """The processes that train together: one alone, or what torchrun started."""

    def __init__(self, where):
        self.rank, self.world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.device = device(where)
        if self.world > 1:
            if self.device.type == "cuda":
                self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
                torch.cuda.set_device(self.device)
            if not dist.is_initialized():
                dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")

    def any(self, yes):
        """Does any process say so? All hear the same, so that they stop at the same step."""
        if self.world == 1:
            return yes
        said = torch.tensor(float(yes), device=self.device)
        dist.all_reduce(said)
        return said.item() > 0

    def average(self, tensors):
        """Replace every tensor by its mean over all processes, one message a type."""
        if self.world == 1:
            return
        for kind in {t.dtype for t in tensors}:
            same = [t for t in tensors if t.dtype == kind]
            flat = torch.cat([t.reshape(-1) for t in same])
            dist.all_reduce(flat)
            for t, mean in zip(same, (flat / self.world).split([t.numel() for t in same])):
                t.copy_(mean.view_as(t))
