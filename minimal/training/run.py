"""What decides a training run, and who trains it?"""

from dataclasses import dataclass, field

from minimal.training.recipes import SCALES

NOT_IN_IDENTITY = {
    "out",
    "save",
    "device",
    "compile",
}  # fields of a run that change neither its numbers nor what is measured

HOW_OFTEN = {"evaluate", "rows"}  # and those that change only how often and how much it is measured

POSITIVE = (
    "steps",
    "flops",
    "batch",
    "accumulate",
    "context",
    "vocab",
    "lr",
    "tokens",
    "evaluate",
    "rows",
    "save",
)


@dataclass(frozen=True)
class Run:
    """Everything that decides a training run. The same Run gives the same numbers on the same machine."""

    plan: str = field(default="standard", metadata=dict(help="a name of minimal.variants"))
    size: str = field(default="tiny", metadata=dict(help="a name of minimal.model.config"))
    corpus: str = field(
        default="auto",
        metadata=dict(help="auto, stdlib, a file or folder, python:DIR, or a known name"),
    )
    steps: int | None = field(default=None, metadata=dict(help="optimizer steps (default 250)"))
    flops: float | None = field(
        default=None,
        metadata=dict(help="a budget instead of steps: round(flops / (FLOPs per token * batch))"),
    )
    batch: int = field(default=16, metadata=dict(help="sequences a step, over all processes"))
    accumulate: int = field(default=1, metadata=dict(help="parts that a step's batch is cut into"))
    context: int | None = field(
        default=None, metadata=dict(help="tokens a sequence (default: the size's)")
    )
    vocab: int | None = field(
        default=None, metadata=dict(help="tokens of the vocabulary (default: the size's)")
    )
    style: str | None = field(
        default=None, metadata=dict(help="nanochat, llama, gpt2, modded (default: the size's)")
    )
    recipe: str = field(
        default="bov",
        metadata=dict(help="a name of minimal.training.recipes: rates, betas, schedules"),
    )
    scale: str = field(
        default="laptop",
        metadata=dict(
            help="laptop: the recipe's numbers as they stand; paper: carried by batch and width"
        ),
    )
    warmup: float | None = field(
        default=None, metadata=dict(help="share of the run that warms up (the recipe's)")
    )
    lr: float | None = field(
        default=None, metadata=dict(help="rate of the matrices; all other rates move along")
    )
    seed: int = 0
    packing: str = field(default="stream", metadata=dict(help="stream or bestfit"))
    tokens: int | None = field(
        default=None, metadata=dict(help="cap on the training tokens that are prepared")
    )
    mix: str | None = field(default=None, metadata=dict(help="weights of slimpajama's domains"))
    evaluate: int = field(
        default=250, metadata=dict(help="steps between evaluations (the last step always)")
    )
    rows: int = field(default=64, metadata=dict(help="held-out rows an evaluation reads"))
    save: int = field(default=100, metadata=dict(help="steps between checkpoints"))
    out: str | None = field(
        default=None,
        metadata=dict(help="folder for checkpoint and log; a second call goes on from there"),
    )
    device: str = "auto"
    compile: bool = field(
        default=False, metadata=dict(help="torch.compile: pays on GPUs and on long CPU runs")
    )
    changes: dict = field(
        default_factory=dict, metadata=dict(cli=False)
    )  # further fields of Config
    overrides: dict = field(
        default_factory=dict, metadata=dict(cli=False)
    )  # role -> row of the recipe, replaced

    def __post_init__(self):
        for name in POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(
                    f"{name} must be above 0, and {value} came: leave it out for the default"
                )
        if self.warmup is not None and not 0 <= self.warmup < 1:
            raise ValueError(
                f"warmup is a share of the run, from 0 to below 1, and {self.warmup:g} came"
            )
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
