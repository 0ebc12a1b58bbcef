"""Plans of our own, through the same seam that every plan uses.

Does each of query, key and value choose its own mixture of the stream and the token? Two
observations that Bank of Values' authors reported after their paper, as systems to compare:

coef   a h + b norm(x0) in front of W_q, W_k and W_v, a and b learned: one pair for all three, or
       one for each
depth  softmax attention over what every block has added (Attention Residuals), in front of the
       same three: one choice for all, or one for each

All of them begin as standard attention.

What passes of a value: its number, or the gradient's way home? "standard/v1-gradient" is half V,
half V1 (or x0 W_V), of which one half alone passes: controls of ResFormer's. Where this
file is imported, plans may be named so.
"""

from functools import partial

import torch

from minimal.model import attention, values
from minimal.model.layers import Coefficient, Linear, Module, coefficient, norm
from minimal.model.pieces import mixed_with
from minimal.model.plan import LayerPlan, Plan, after_first, place
from minimal.model.values import Input, Layer
from minimal.variants import TWISTS

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


# ---- what passes of a value ----------------------------------------------------------------------


class Detached(Layer):
    """V_j as a term of a mixture, with the gradient's short way home cut: a control of ResFormer's,
    which has its numbers and not its way for gradients."""

    def rows(self, h, at, tape):
        return super().rows(h, at, tape).detach()


# what passes of a value: its number, the gradient's way home, or neither; or another text's number
PASSES = dict(
    both=lambda x: x,
    forward=lambda x: x.detach(),
    gradient=lambda x: x - x.detach(),  # straight through: zero, with the gradient of x
    neither=lambda x: 0 * x.detach(),
    other=lambda x: x.roll(1, 0).detach(),  # of the text beside it in the batch
)


class PassedLayer(Layer):
    """V_j as a term of a mixture, of which `passes` comes through: a control of ResFormer's."""

    def __init__(self, j, passes, **where):
        super().__init__(j, **where)
        self.passes = passes

    def rows(self, h, at, tape):
        return PASSES[self.passes](super().rows(h, at, tape))


class PassedInput(Input):
    """norm(x0) W_V as a term of a mixture, where `passes` comes through of x0 itself."""

    def __init__(self, passes, **where):
        super().__init__(**where)
        self.passes = passes

    def rows(self, h, at, tape):
        return self.through(PASSES[self.passes](norm(tape.x0)))


DETACHED = mixed_with(partial(Detached, 0), 0.5, 0.5)
PASSED = {f"v1-{way}": mixed_with(partial(PassedLayer, 0, way), 0.5, 0.5) for way in PASSES}
PASSED |= {f"x0-{way}": mixed_with(partial(PassedInput, way), 0.5, 0.5, tie=True) for way in PASSES}

for _name, _value in dict(detached=DETACHED, **PASSED).items():
    TWISTS[_name] = dict(line=place(after_first, value=_value))


# ---- what a grid may name beside PLANS -----------------------------------------------------------

# A value source that is tried is a class above, and a line here: "mine": Plan(…, name="mine").
OURS = {
    **MIXES,
}
