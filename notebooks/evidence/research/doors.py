"""Does each of query, key and value choose its own mixture of the stream and the token? Doors of
our own, through the same seam that every plan uses.

Two observations that Bank of Values' authors reported after their paper, as systems to compare:

coef   a h + b norm(x0) in front of W_q, W_k and W_v, a and b learned: one pair for all three, or
       one for each
depth  softmax attention over what every block has added (Attention Residuals), in front of the
       same three: one choice for all, or one for each

All of them begin as standard attention.
"""

import torch

from evidence.research.cells import EQUAL
from minimal.model import attention, values
from minimal.model.layers import Coefficient, Linear, Module, coefficient, norm
from minimal.model.plan import LayerPlan, Plan

ROLES = ("alpha", "beta")


# ---- what stands in front of W_q, W_k and W_v ----------------------------------------------------


class Weighed(Module):
    """a h + b norm(x0). A coefficient that is given is shared with the doors that have it, too."""

    def __init__(self, config, at, name, a=1.0, b=0.0):
        super().__init__()
        self.a, self.b = coefficient(ROLES[0], a), coefficient(ROLES[1], b)

    def forward(self, h, at, tape):
        return self.a() * h + self.b() * norm(tape.x0)


class Chosen(Module):
    """norm(sum_j s_j P_j) over what every block below has added, s a softmax of a learned query.

    Its query starts at 0: equal shares of all parts are the stream over their number, and norm
    takes the number out.
    """

    def __init__(self, config, at, name):
        super().__init__()
        self.query = Linear(f"{at}.depth-{name}", config.width, 1, kind="zero")

    def shares(self, parts):
        return self.query(norm(parts)).squeeze(-1).softmax(-1)  # (B, T, n + 1)

    def forward(self, h, at, tape):
        parts = parts_of(tape, at)
        mixed = (self.shares(parts)[..., None] * parts).sum(2)  # (B, T, C)
        tape.flat["chosen", at] = norm(mixed)
        return tape.flat["chosen", at]


class AsChosen(Module):
    """What the query's door of the same layer chose."""

    def __init__(self, config, at, name):
        super().__init__()

    def forward(self, h, at, tape):
        return tape.flat["chosen", at]


def parts_of(tape, at):
    """The embedding, and what every block below has added (B, T, n + 1, C)."""
    streams = torch.stack(tape.streams[: at + 1], 2)
    nothing = torch.zeros_like(streams[:, :, :1])
    return torch.diff(streams, dim=2, prepend=nothing)


# ---- the doors -----------------------------------------------------------------------------------


class Asking(attention.Projection):
    """q or k = W of a mixture in place of h."""

    def __init__(self, name, mixture, config, at):
        super().__init__(name, config=config, at=at)
        self.mixture = mixture(config, at, name)

    def flat(self, h, at, tape):
        return super().flat(self.mixture(h, at, tape), at, tape)

    def label(self):
        return f", {self.name} of a mixture"


class Handing(values.Own):
    """V = W_V of a mixture in place of h."""

    mark = "depth"

    def __init__(self, mixture, **where):
        super().__init__(**where)
        self.mixture = mixture(where["config"], where["at"], "v")

    def rows(self, h, at, tape):
        return super().rows(self.mixture(h, at, tape), at, tape)

    def word(self):
        return "a mixture"


# ---- the plans -----------------------------------------------------------------------------------


def each_its_own(mixture):
    """A line of a plan: every door has a mixture of its own."""
    return lambda i, n: doors(mixture, mixture, mixture)


def doors(query, key, value):
    def asking(mixture):
        return lambda name, config, at: Asking(name, mixture, config, at)

    return LayerPlan(
        query=asking(query),
        key=asking(key),
        value=lambda config, at: Handing(value, config=config, at=at),
    )


def one_pair(i, n):
    """One a and one b in front of all three."""
    a, b = Coefficient(ROLES[0], 1.0), Coefficient(ROLES[1], 0.0)

    def shared(config, at, name):
        return Weighed(config, at, name, a, b)

    return doors(shared, shared, shared)


def one_choice(i, n):
    return doors(Chosen, AsChosen, AsChosen)


MIXES = {
    plan.name: plan
    for plan in (
        Plan(one_pair, name="coef-shared"),
        Plan(each_its_own(Weighed), name="coef-apart"),
        Plan(one_choice, name="depth-shared"),
        Plan(each_its_own(Chosen), name="depth-apart"),
    )
}

# ---- the grid ------------------------------------------------------------------------------------

# Both coefficients at one rate: that of x0 would else be a hundred times the stream's, and go far
# for that alone.
CELLS = [
    dict(plan="standard"),
    dict(plan=MIXES["coef-shared"], overrides=EQUAL),
    dict(plan=MIXES["coef-apart"], overrides=EQUAL),
    dict(plan=MIXES["depth-shared"]),
    dict(plan=MIXES["depth-apart"]),
]
EXPECTED = """As their authors reported it of larger models. Apart: in the upper half the weight of
x0, |b| / (|a| + |b|), is larger for v than for q and for k, in the mean of layers, in all seeds and
on both texts; for q and k it is below .2. Shared: the one pair lies nearer to v's than to q's. Over
depth, apart: v gives the embedding a larger share in the upper half than q and k do. Each of the
four is ahead of standard on code by .02 or more; apart is ahead of shared by less than .01 for the
coefficients and by .01 or more for depth. What would change our mind: v's weight of x0 not above
those of q and k on either text; then values of the token gain for another reason than that v asks
for them."""


def mixtures(model, ids):
    """What each door mixes, by layer: the weight of x0 beside the stream's, or the share of every
    part, the embedding first, as means over held-out tokens."""
    from minimal.analysis import observe

    found = {}
    with torch.no_grad():
        tape = observe(model, ids)
        for at, block in enumerate(model.blocks):
            layer = block.attention
            for name, door in (("q", layer.query), ("k", layer.key), ("v", layer.value)):
                mixture = getattr(door, "mixture", None)
                if isinstance(mixture, Weighed):
                    a, b = abs(mixture.a().item()), abs(mixture.b().item())
                    found.setdefault(name, []).append(round(b / (a + b), 4))
                if isinstance(mixture, Chosen):
                    shares = mixture.shares(parts_of(tape, at)).mean((0, 1))
                    found.setdefault(name, []).append([round(s, 4) for s in shares.tolist()])
    return dict(mixed=found) if found else {}
