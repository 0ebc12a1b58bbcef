"""How fast does each kind of parameter learn? A table a source, a row a role, and schedules that are pure functions.

Nothing here touches a tensor. A number that its source does not give carries the comment "ours".
"""

from dataclasses import dataclass, field, replace
from math import ceil, cos, log2, pi, prod, sqrt

REFERENCE_BATCH, REFERENCE_WIDTH, REFERENCE_PARAMETERS = (
    2**19,
    768,
    110_100_480,
)  # d12; block matrices and head


@dataclass(frozen=True)
class Row:
    """How one role is treated. `lr_by` and `decay_by` name the factors that carry d12's numbers to other sizes."""

    algorithm: str  # a key of optim's table of algorithms: adamw | muon
    lr: float
    decay: float = 0.0
    betas: tuple = (0.8, 0.95)  # Muon has its momentum from a schedule and keeps only the second
    eps: float = 1e-10
    lr_by: tuple = ()
    decay_by: tuple = ()
    cautious: bool = False  # Muon: decay an entry only where the update, too, moves it to zero
    shaped_decay: bool = (
        True  # Muon: the shape factor multiplies the decay like the update; False: the update alone
    )


@dataclass(frozen=True)
class Schedule:
    """start -> peak over the warm-up (step `warmup` is at peak), then peak -> end over the last `decay` of the run."""

    warmup: float = 0  # steps; below 1 a share of the run
    start: float = 0.0
    peak: float = 1.0
    decay: float = 0.0
    end: float = 0.0
    shape: str = "linear"

    def __call__(self, step, steps):
        warmup = self.warmup if self.warmup >= 1 else round(self.warmup * steps)
        begin = max(warmup, steps - round(self.decay * steps))
        if step < warmup:
            return self.start + (self.peak - self.start) * step / warmup
        if step <= begin or not self.decay:
            return self.peak
        return self.end + (self.peak - self.end) * SHAPES[self.shape](
            (step - begin) / (steps - begin)
        )


SHAPES = dict(linear=lambda done: 1 - done, cosine=lambda done: (1 + cos(pi * done)) / 2)


@dataclass(frozen=True)
class Recipe:
    """A row for every role, and what changes during the run. Its repr is its identity: two equal reprs train alike."""

    rows: dict
    lr: Schedule
    momentum: Schedule = Schedule()  # Muon's
    muon_decay: Schedule = Schedule()  # multiplies the decay of Muon's rows
    clip: float | None = None  # of the global gradient norm
    longest_window: int | None = (
        None  # tokens that the longest layer sees in the last step; None: no schedule
    )
    window_grows: bool = (
        True  # False: long and short layers see from the first step on what they see in the last
    )
    steps: int | None = field(
        default=None, repr=False
    )  # of the source's run, the base of its warm-ups in steps

    def change(self, *roles, **fields):
        """The same recipe with these fields of these roles' rows changed: change("alpha", "beta", lr=.05)."""
        return replace(
            self, rows=self.rows | {role: replace(self.rows[role], **fields) for role in roles}
        )

    def at(self, lr):
        """The same recipe with the matrices learning at `lr` and every other role scaled along."""
        factor = lr / self.rows["matrix"].lr
        return replace(
            self, rows={role: replace(row, lr=row.lr * factor) for role, row in self.rows.items()}
        )


def named(recipe):
    """A recipe, by its name if that came."""
    if not isinstance(recipe, Recipe) and recipe not in RECIPES:
        raise ValueError(f"there is no recipe {recipe!r}: choose one of {', '.join(RECIPES)}")
    return recipe if isinstance(recipe, Recipe) else RECIPES[recipe]


def scaled(recipe, width, batch_tokens, parameters):
    """The recipe in numbers for this size; `parameters` counts block matrices and head, as the reference does."""
    factors = dict(
        batch=sqrt(batch_tokens / REFERENCE_BATCH),
        width=sqrt(REFERENCE_WIDTH / width),
        size=REFERENCE_PARAMETERS / parameters,
    )
    return replace(
        recipe,
        rows={
            role: replace(
                row,
                lr=row.lr * prod(factors[name] for name in row.lr_by),
                lr_by=(),
                decay=row.decay * prod(factors[name] for name in row.decay_by),
                decay_by=(),
            )
            for role, row in recipe.rows.items()
        },
    )


def laptop(recipe):
    """The source's d12 numbers as they stand, and its warm-ups as shares of the run.

    Batches of 2,048 tokens would make sqrt(batch / 2^19) 1/16, and 40 steps of warm-up a sixth of a short run.
    """

    def share(schedule):
        return (
            replace(schedule, warmup=schedule.warmup / recipe.steps)
            if schedule.warmup >= 1
            else schedule
        )

    return replace(
        recipe,
        lr=share(recipe.lr),
        momentum=share(recipe.momentum),
        muon_decay=share(recipe.muon_decay),
        rows={role: replace(row, lr_by=(), decay_by=()) for role, row in recipe.rows.items()},
    )


SCALES = dict(paper=lambda recipe: recipe, laptop=laptop)


def auto_batch(parameters):
    """Tokens a step for a model with this many block and head parameters: 2^19 at d12, 2^20 at d24 (Bank of Values)."""
    return 2 ** round(log2(REFERENCE_BATCH * (parameters / REFERENCE_PARAMETERS) ** 0.383))


def window(step, steps, longest=3456, block=128):
    """Tokens a long layer sees: modded-nanogpt's cubic, rounded up to whole blocks, never none."""
    x = step / steps
    return block * max(1, ceil(longest * (4 * x**3 - 6 * x**2 + 3 * x) / block))


# Roles that few sources know. Coefficients of what is ADDED stand rates that break coefficients of what is already
# there (nanochat's log: a hundredfold), which is why alpha and beta differ so. Each keeps its own source's rate.
COEFFICIENTS = dict(
    alpha=Row("adamw", 0.005, 0.05, lr_by=("batch",)),
    beta=Row("adamw", 0.5, betas=(0.96, 0.95), lr_by=("batch",)),
    residual=Row("adamw", 0.005, 0.05, lr_by=("batch",)),
    x0=Row("adamw", 0.5, betas=(0.96, 0.95), lr_by=("batch",)),
    smear=Row("adamw", 0.2),
    skip=Row("adamw", 0.015),  # modded-nanogpt's
    dense=Row("adamw", 0.002, 0.001, (0.9, 0.95), 1e-8),  # DenseFormer's
    norm=Row("adamw", 0.005),
    bias=Row("adamw", 0.005),
)  # ours: the source has neither

LAMBDA = dict(per_head=Row("adamw", 0.005), learned=Row("adamw", 0.02, betas=(0.9, 0.95)))

BOV = dict(
    COEFFICIENTS,
    **{"lambda": LAMBDA["per_head"]},
    head=Row("adamw", 0.008, 0.01, (0.8, 0.96), lr_by=("batch", "width")),
    embed=Row("adamw", 0.3, 0.001, (0.8, 0.995), lr_by=("batch", "width")),
    position=Row(
        "adamw", 0.3, 0.001, (0.8, 0.995), lr_by=("batch", "width")
    ),  # ours: the source has none
    table=Row("adamw", 0.15, 0.01, (0.8, 0.995), lr_by=("batch", "width")),
    **dict.fromkeys(
        ("matrix", "mlp", "gate"),
        Row(
            "muon",
            0.02,
            0.28,
            (None, 0.9),
            lr_by=("batch",),
            decay_by=("batch", "size"),
            cautious=True,
        ),
    ),
)

ROLES = tuple(BOV)


def adamw(lr, betas, eps, decay, **own):
    """Every role alike, but no decay for norms and biases (ours: the sources do not say); `own` rows stand."""
    row = Row("adamw", lr, decay, betas, eps)
    return (
        dict.fromkeys(ROLES, row) | dict.fromkeys(("norm", "bias"), replace(row, decay=0.0)) | own
    )


OWN = {
    role: replace(row, lr_by=())
    for role, row in COEFFICIENTS.items()
    if role not in ("norm", "bias")
}

SCALAR = Row("adamw", 0.015)

RECIPES = dict(
    bov=Recipe(
        BOV,
        lr=Schedule(39, 1 / 40, decay=0.65, end=0.05),
        steps=3766,
        momentum=Schedule(400, 0.85, 0.97, 0.65, 0.90),
        muon_decay=Schedule(decay=1, shape="cosine"),
    ),
    resformer=Recipe(
        adamw(6e-4, (0.9, 0.95), 1e-8, 0.1, **OWN, **{"lambda": LAMBDA["learned"]}),
        clip=1.0,
        steps=10_000,
        lr=Schedule(120, 1e-7 / 6e-4, decay=1, end=0.1, shape="cosine"),
    ),
    # Its five Newton-Schulz triples are not among our facts: Polar Express stands in. No second moment, plain decay.
    modded=Recipe(
        dict.fromkeys(ROLES, SCALAR)
        | dict(
            head=Row("adamw", 1 / 320),
            **dict.fromkeys(("embed", "position", "table"), Row("adamw", 0.3)),
            **dict.fromkeys(
                ("matrix", "gate"), Row("muon", 0.025, 0.01, (None, None), shaped_decay=False)
            ),
            mlp=Row("muon", 0.025, 0.02, (None, None), shaped_decay=False),
        ),
        lr=Schedule(decay=0.7),
        momentum=Schedule(300, 0.85, 0.95),
        longest_window=3456,
        steps=5960,
    ),
    # The sources (DVA, GPT-2) give no optimizer: these are the common numbers. The encoder's peak rate is BERT's.
    gpt2=Recipe(
        adamw(6e-4, (0.9, 0.95), 1e-8, 0.1, **OWN, **{"lambda": LAMBDA["learned"]}),
        clip=1.0,
        lr=Schedule(0.02, decay=1, end=0.1, shape="cosine"),
    ),
    bert=Recipe(adamw(1e-4, (0.9, 0.999), 1e-8, 0.01), lr=Schedule(0.1, decay=1)),
    squad=Recipe(adamw(5e-5, (0.9, 0.999), 1e-8, 0.0), lr=Schedule(decay=1), clip=1.0),
)

RECIPES["gpt2-constant"] = replace(RECIPES["gpt2"], lr=Schedule())

RECIPES["modded-constant"] = replace(RECIPES["modded"], lr=Schedule())

RECIPES["modded-open"] = replace(RECIPES["modded"], window_grows=False)

# Ours, for batches of about 2,048 tokens and some hundred steps: Bank of Values' rates as they stand, with what a short
# search found on the standard plan alone (tiny, 250 steps: 3.744 nats before, 3.674 after). No plan was tuned for.
RECIPES["course"] = replace(
    laptop(RECIPES["bov"]).change("matrix", "mlp", "gate", decay=1.0).change("head", lr=0.02),
    lr=Schedule(0.01, 1 / 40, decay=0.4, end=0.05),
    momentum=Schedule(peak=0.95),
)
