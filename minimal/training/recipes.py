"""How fast does each kind of parameter learn? Recipes: learning rates, decays and schedules.

A table a source, a row a role, and schedules that are pure functions of the step. Nothing here
touches a tensor. A number that its source does not give carries the comment "ours".
"""

import sys
from dataclasses import dataclass, field, replace
from math import ceil, cos, pi, prod, sqrt

# of d12, at which Bank of Values gives its numbers
REFERENCE_BATCH = 2**19  # tokens
REFERENCE_WIDTH = 768
REFERENCE_PARAMETERS = 110_100_480  # of block matrices and head


@dataclass(frozen=True)
class Row:
    """How one role is treated.

    `lr_by` and `decay_by` name the factors that carry d12's numbers to other sizes (see `scaled`).
    """

    algorithm: str  # a key of ALGORITHMS
    lr: float
    decay: float = 0.0
    betas: tuple = (0.8, 0.95)  # Muon has its momentum from a schedule and uses only the second
    eps: float = 1e-10
    lr_by: tuple = ()
    decay_by: tuple = ()
    cautious: bool = False  # Muon: decay an entry only where the update, too, moves it to zero
    shaped_decay: bool = True  # Muon: the shape factor multiplies the decay as it does the update

    def __post_init__(self):
        for name in ("betas", "lr_by", "decay_by"):
            if isinstance(getattr(self, name), list):  # as JSON carries them
                object.__setattr__(self, name, tuple(getattr(self, name)))
        check_row(self)


@dataclass(frozen=True)
class Schedule:
    """start -> peak over the warm-up, then peak -> end over the last share `decay` of the run.

    Step number `warmup` is at the peak. Where the warm-up reaches into the last share `decay` (of
    `bov` at paper scale: in runs below 112 steps), the way down begins behind it. nanochat's begins
    on time, so that its rate falls at once behind the warm-up: in a run of 50 steps the two differ
    by up to 0.57 of the peak.
    """

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
        left = SHAPES[self.shape]((step - begin) / (steps - begin))
        return self.end + (self.peak - self.end) * left


# what is left of the way down, by the share of it that is done
SHAPES = dict(linear=lambda done: 1 - done, cosine=lambda done: (1 + cos(pi * done)) / 2)


@dataclass(frozen=True)
class Recipe:
    """A row for every role, and what changes during the run. Two with equal `numbers` train alike;
    of two with equal reprs `steps` may differ."""

    rows: dict
    lr: Schedule
    momentum: Schedule = Schedule()  # Muon's
    muon_decay: Schedule = Schedule()  # multiplies the decay of Muon's rows
    clip: float | None = None  # of the global gradient norm
    longest_window: int | None = None  # tokens a long layer sees in the last step; None: all
    window_grows: bool = True  # False: every layer sees at once what it would see in the last step
    steps: int | None = field(default=None, repr=False)  # of the source's run: its warm-ups' base

    def change(self, *roles, **fields):
        """The recipe with these fields of these roles changed: change("alpha", "beta", lr=0.05)."""
        for role in roles:
            if role not in self.rows:
                known = ", ".join(self.rows)
                raise ValueError(f"a recipe has no role {role!r}: choose one of {known}")
        for name in fields:
            if name not in Row.__dataclass_fields__:
                known = ", ".join(Row.__dataclass_fields__)
                raise ValueError(f"a recipe's row has no {name!r}: choose one of {known}")
        changed = {role: replace(self.rows[role], **fields) for role in roles}
        return replace(self, rows=self.rows | changed)

    def at(self, lr):
        """The same recipe with the matrices learning at `lr` and every other role scaled along."""
        factor = lr / self.rows["matrix"].lr
        rows = {role: replace(row, lr=row.lr * factor) for role, row in self.rows.items()}
        return replace(self, rows=rows)


def named(recipe):
    """A recipe itself, or the one of this name."""
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in RECIPES:
        raise ValueError(f"there is no recipe {recipe!r}: choose one of {', '.join(RECIPES)}")
    return RECIPES[recipe]


def numbers(recipe):
    """Everything in a recipe, as a text. Kept runs are found by the repr alone, without `steps`: so
    these are added only where no recipe of this package has that repr and those steps."""
    known = STEPS.get(repr(recipe))
    return repr(recipe) + f" steps={recipe.steps}" * (recipe.steps != known)


def scaled(recipe, width, batch_tokens, parameters):
    """The recipe in numbers for this size.

    `parameters` counts block matrices and head, as the reference does.
    """
    factors = dict(
        batch=sqrt(batch_tokens / REFERENCE_BATCH),
        width=sqrt(REFERENCE_WIDTH / width),
        size=REFERENCE_PARAMETERS / parameters,
    )

    def carried(row):
        lr = row.lr * prod(factors[name] for name in row.lr_by)
        decay = row.decay * prod(factors[name] for name in row.decay_by)
        return replace(row, lr=lr, lr_by=(), decay=decay, decay_by=())

    return replace(recipe, rows={role: carried(row) for role, row in recipe.rows.items()})


def any_length(recipe):
    """Warm-ups as shares of the run: 40 steps are a sixth of a short one, and 400 outlast it."""

    def share(schedule):
        if schedule.warmup < 1:
            return schedule
        return replace(schedule, warmup=schedule.warmup / recipe.steps)

    schedules = dict(lr=recipe.lr, momentum=recipe.momentum, muon_decay=recipe.muon_decay)
    return replace(recipe, **{name: share(schedule) for name, schedule in schedules.items()})


def laptop(recipe):
    """The source's d12 numbers as they stand, and its warm-ups as shares of the run.

    Batches of 2,048 tokens would make sqrt(batch / 2^19) 1/16.
    """
    rows = {role: replace(row, lr_by=(), decay_by=()) for role, row in recipe.rows.items()}
    return replace(any_length(recipe), rows=rows)


SCALES = dict(paper=lambda recipe: recipe, laptop=laptop)


# ---- what a row may say --------------------------------------------------------------------------
def is_number(value):
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return plain and 0 <= value <= sys.float_info.max


def is_share(value):
    return is_number(value) and value < 1


def is_yes_or_no(value):
    return isinstance(value, bool)


def are_factors(names):
    return isinstance(names, tuple) and all(name in CARRIED_BY for name in names)


# algorithm -> (may this be one of its two betas?, what is wanted of them)
ALGORITHMS = dict(
    adamw=(is_share, "two numbers from 0 and below 1, as (0.9, 0.95), for adamw"),
    muon=(lambda beta: beta is None or is_share(beta), "two numbers below 1 or None, for muon"),
)

CARRIED_BY = ("batch", "width", "size")  # which `scaled` knows

NUMBER = is_number, "a number from 0"
SOME_FACTORS = are_factors, f"some of {', '.join(CARRIED_BY)}"
YES_OR_NO = is_yes_or_no, "True or False"

# field -> (may this be its value?, what is wanted of it)
WANTED = dict(
    algorithm=(lambda name: name in tuple(ALGORITHMS), " or ".join(ALGORITHMS)),
    lr=NUMBER,
    decay=NUMBER,
    eps=NUMBER,
    lr_by=SOME_FACTORS,
    decay_by=SOME_FACTORS,
    cautious=YES_OR_NO,
    shaped_decay=YES_OR_NO,
)


def check_row(row):
    """Refuse what no optimizer can use, wherever the row comes from: the parameters of an algorithm
    that is not known would belong to nobody, and stay as they are."""
    for name, (good, wanted) in WANTED.items():
        check_field(name, getattr(row, name), good, wanted)
    good, wanted = ALGORITHMS[row.algorithm]
    two = lambda betas: isinstance(betas, tuple) and len(betas) == 2 and all(map(good, betas))
    check_field("betas", row.betas, two, wanted)


def check_field(name, value, good, wanted):
    if not good(value):
        raise ValueError(f"{name} in a recipe's row: wanted {wanted}, got {value!r}")


# ---- windows that grow (modded-nanogpt) ---------------------------------------------------------
def window(step, steps, longest=3456, block=128):
    """Tokens a long layer sees: a cubic in the share of the run, in whole blocks, never none."""
    x = step / steps
    return block * max(1, ceil(longest * (4 * x**3 - 6 * x**2 + 3 * x) / block))


def layer_windows(recipe, step, steps, scale, context, long_layers):
    """Keys to the left of a query, layer by layer, or None where the recipe has no schedule.

    `long_layers` says of every layer whether it is a long one; short ones see half, in whole
    blocks. On a laptop the source's 3,456 tokens are our context, and its blocks a sixteenth of it.
    """
    if recipe.longest_window is None:
        return None
    longest, block = recipe.longest_window, 128
    if scale == "laptop":
        longest, block = context, max(1, context // 16)
    now = window(step, steps, longest, block) if recipe.window_grows else longest
    short = max(block, now // (2 * block) * block)
    return [now if long else short for long in long_layers]


# ---- the tables ---------------------------------------------------------------------------------
# Roles that few sources know. Coefficients of what is ADDED stand rates that break coefficients of
# what is already there (nanochat's log: a hundredfold), which is why alpha and beta differ so. Each
# keeps its own source's rate.
COEFFICIENTS = dict(
    alpha=Row("adamw", 0.005, 0.05, lr_by=("batch",)),
    beta=Row("adamw", 0.5, betas=(0.96, 0.95), lr_by=("batch",)),
    residual=Row("adamw", 0.005, 0.05, lr_by=("batch",)),
    x0=Row("adamw", 0.5, betas=(0.96, 0.95), lr_by=("batch",)),
    smear=Row("adamw", 0.2),
    skip=Row("adamw", 0.015),  # modded-nanogpt's
    dense=Row("adamw", 0.002, 0.001, (0.9, 0.95), 1e-8),  # DenseFormer's
    norm=Row("adamw", 0.005),  # ours, as the next: the source has neither
    bias=Row("adamw", 0.005),
)

LAMBDA = dict(per_head=Row("adamw", 0.005), learned=Row("adamw", 0.02, betas=(0.9, 0.95)))

BOV_MATRIX = Row(
    "muon", 0.02, 0.28, (None, 0.9), lr_by=("batch",), decay_by=("batch", "size"), cautious=True
)

BOV = dict(
    COEFFICIENTS,
    **{"lambda": LAMBDA["per_head"]},
    head=Row("adamw", 0.008, 0.01, (0.8, 0.96), lr_by=("batch", "width")),
    embed=Row("adamw", 0.3, 0.001, (0.8, 0.995), lr_by=("batch", "width")),
    # ours: the source has no positions
    position=Row("adamw", 0.3, 0.001, (0.8, 0.995), lr_by=("batch", "width")),
    table=Row("adamw", 0.15, 0.01, (0.8, 0.995), lr_by=("batch", "width")),
    **dict.fromkeys(("matrix", "mlp", "gate"), BOV_MATRIX),
)

ROLES = tuple(BOV)


def adamw(lr, betas, eps, decay, **own):
    """Every role alike, but norms and biases without decay (ours: the sources do not say).

    Rows in `own` stand as they are.
    """
    row = Row("adamw", lr, decay, betas, eps)
    rows = dict.fromkeys(ROLES, row)
    rows |= dict.fromkeys(("norm", "bias"), replace(row, decay=0.0))
    return rows | own


OWN = {role: replace(row, lr_by=()) for role, row in COEFFICIENTS.items()}
del OWN["norm"], OWN["bias"]

MODDED_SCALAR = Row("adamw", 0.015)
MODDED_MATRIX = Row("muon", 0.025, 0.01, (None, None), shaped_decay=False)

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
    # The source's rates and schedules, not all of its run. Polar Express stands in for its own five
    # Newton-Schulz polynomials. No second moment; the decay is plain, and by the bare rate, without
    # the shape factor. Its attention is masked by document, its windows are blocks (a query sees
    # 128 (w - 1) to 128 w tokens), and its softmax includes 47 rows of padding; ours do neither.
    modded=Recipe(
        dict.fromkeys(ROLES, MODDED_SCALAR)
        | dict(
            head=Row("adamw", 1 / 320),
            **dict.fromkeys(("embed", "position", "table"), Row("adamw", 0.3)),
            **dict.fromkeys(("matrix", "gate"), MODDED_MATRIX),
            mlp=replace(MODDED_MATRIX, decay=0.02),
        ),
        lr=Schedule(decay=0.7),
        momentum=Schedule(300, 0.85, 0.95),
        longest_window=3456,
        steps=5960,
    ),
    # The sources (DVA, GPT-2) give no optimizer: these are the common numbers. The encoder's peak
    # rate is BERT's.
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

# Bank of Values' numbers for runs of d12 that last some hundred steps.
RECIPES["bov-short"] = any_length(RECIPES["bov"])

# Ours, for batches of about 2,048 tokens and some hundred steps: Bank of Values' rates as they
# stand, with what a short search found on the standard plan alone (tiny, 250 steps: 3.744 nats
# before, 3.674 after). No plan was tuned for.
RECIPES["course"] = replace(
    laptop(RECIPES["bov"]).change("matrix", "mlp", "gate", decay=1.0).change("head", lr=0.02),
    lr=Schedule(0.01, 1 / 40, decay=0.4, end=0.05),
    momentum=Schedule(peak=0.95),
)

STEPS = {repr(recipe): recipe.steps for recipe in RECIPES.values()}  # see `numbers`
