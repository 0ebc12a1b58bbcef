"""What if the input went past W_V? V' = V + alpha act(X): its dials, and its ramps."""

import math
from dataclasses import dataclass
from functools import partial

from minimal.model.layers import Coefficient, Linear
from minimal.model.values import ACTS, Bypass, Gate, Mix, Own
from minimal.variants import (
    Plan,
    after_first,
    alternate,
    everywhere,
    last_third,
    place,
    plan_named,
    second_half,
)

# ---- the dials ----------------------------------------------------------------------------------
# V' = V + alpha act(X) is Mix(Own, Bypass, 1, alpha). The report ran the first setting of every
# dial; the others are what its section 4.2 names and did not run.
ALPHAS = {  # how alpha is chosen -> what Mix is told besides its start
    "fixed": dict(),
    "layer": dict(roles=(None, "alpha")),
    "head": dict(roles=(None, "alpha"), by_head=True),
    "global": dict(),  # one number that all layers share: see OneAlpha
    "gate": None,  # one number a token: see TokenGate
}

LAYERS = dict(
    everywhere=everywhere,
    after_first=after_first,
    alternate=alternate,
    second_half=second_half,
    last_third=last_third,
)

DIALS = dict(alpha="fixed", start=0.5, act="relu", on="raw", where="everywhere")

ALLOWED = dict(alpha=ALPHAS, act=ACTS, on=("raw", "norm"))


class TokenGate(Gate):
    """x + sigmoid(w . h) y: one number a token, from all of h. w starts at 0, so it opens at 1/2.
    The report's conclusion asks for it."""

    def __init__(self, x, y, **where):
        super().__init__(x, y, top=1.0, **where)
        self.features = self.config.width
        self.gate = Linear(f"{self.at}.bypass", self.features, 1, kind="zero")

    def rows(self, h, at, tape):
        opening = self.opening(h)  # (B, T, 1, 1)  first: sums of gradients round as in the record
        return self.x.rows(h, at, tape) + opening * self.y.rows(h, at, tape)


@dataclass(frozen=True)
class OneAlpha(Plan):
    """A plan whose mixed layers hold one learned alpha. Every model that is built gets its own."""

    start: float = 0.5

    def lines(self, config):
        alpha = Coefficient("alpha", self.start)
        lines = super().lines(config)
        return [
            line if line.value is Own else line._replace(value=partial(line.value, b=alpha))
            for line in lines
        ]


def plan(spec):
    """A plan from what JSON can carry: its name, or the dials of a bypass.
    plan("standard"), plan({}) for the report's setting, plan(dict(alpha="gate", where=(0, 1)))."""
    if isinstance(spec, str):
        return plan_named(spec)
    dials = DIALS | spec
    check_spec(dials)
    alpha, start, layers = dials["alpha"], dials["start"], dials["where"]
    chosen = LAYERS[layers] if isinstance(layers, str) else numbered(layers)
    past = partial(Bypass, dials["act"], dials["on"])
    if alpha == "gate":
        return Plan(place(chosen, value=partial(TokenGate, Own, past)))
    layer_values = place(chosen, value=partial(Mix, Own, past, a=1.0, b=start, **ALPHAS[alpha]))
    return OneAlpha(layer_values, start=start) if alpha == "global" else Plan(layer_values)


def check_spec(dials):
    """One sentence about the first dial that cannot be set so."""
    for name, value in dials.items():
        if name not in DIALS:
            raise ValueError(f"unknown dial {name!r}: one of {', '.join(DIALS)}")
        if name in ALLOWED and value not in tuple(ALLOWED[name]):
            raise ValueError(f"{name}={value!r}: wanted one of {', '.join(ALLOWED[name])}")
    start, layers = dials["start"], dials["where"]
    if not isinstance(start, (int, float)) or not math.isfinite(start):
        raise ValueError(f"start={start!r}: wanted a number, as in 0.5")
    if not isinstance(layers, (tuple, list)) and layers not in tuple(LAYERS):
        names = ", ".join(LAYERS)
        raise ValueError(f"where={layers!r}: wanted one of {names}, or layer numbers as in (0, 1)")


def numbered(layers):
    """The layers of these numbers, as a selector for `place`."""

    def chosen(at, count):
        absent = [number for number in layers if number not in range(count)]
        if absent:
            raise ValueError(
                f"where={layers!r}: there is no layer {absent[0]}, wanted 0 to {count - 1}"
            )
        return at in layers

    return chosen


# ---- over training ------------------------------------------------------------------------------
RAMPS = dict(  # share of training done -> what the bypass is multiplied by
    constant=lambda done: 1.0,
    warmup=lambda done: min(1.0, 2 * done),  # full from half-time on
    decay=lambda done: 1.0 - done,  # gone at the end
)


def set_ramp(model, name, done):
    """Multiply every bypass of a model by what the ramp says when a share `done` of training is
    over. Without a name they stay as they are."""
    if name is None:
        return
    for module in model.modules():
        if isinstance(module, Bypass):
            module.ramp = RAMPS[name](done)
