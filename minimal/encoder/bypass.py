"""What if the input went past W_V? V' = V + alpha act(X), every dial of it, and what it does to the values' spread."""

from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import nn

from minimal.model.layers import Coefficient, Linear
from minimal.model.values import ACTS, Bypass, Own, Source
from minimal.variants import (
    LayerPlan,
    Plan,
    after_first,
    alternate,
    everywhere,
    last_third,
    plan_named,
    second_half,
)


class Constant(nn.Module):
    """A number that nobody learns."""

    def __init__(self, start):
        super().__init__()
        self.start = start

    def forward(self):
        return self.start


class Gate(nn.Module):
    """sigmoid(w . x), one number a token: what the report's conclusion asks for. w starts at 0, so it opens at 1/2."""

    def __init__(self, config, at):
        super().__init__()
        self.gate = Linear(f"{at}.bypass", config.width, 1, kind="zero")

    def forward(self, h):
        return torch.sigmoid(self.gate(h))[..., None]  # (B, T, 1, 1)


# How alpha is chosen: start, config, layer -> a module. "global" is one Coefficient that all layers of a model hold.
ALPHAS = dict(
    fixed=lambda start, config, at: Constant(start),
    layer=lambda start, config, at: Coefficient("alpha", start),
    head=lambda start, config, at: Coefficient("alpha", start, (config.kv, 1)),
    gate=lambda start, config, at: Gate(config, at),
)


class MixedBypass(Source):
    """V' = V + turn alpha act(X) on the new rows, so it stays inside the attention: A V' = A V + alpha A act(X).
    `turn` is 1 unless the training loop ramps it."""

    mark = "mix"

    def __init__(self, alpha="fixed", start=0.5, act="relu", on="raw", **where):
        super().__init__(**where)
        self.x, self.y = Own(**where), Bypass(act, on, **where)
        self.alpha = (
            alpha if isinstance(alpha, nn.Module) else ALPHAS[alpha](start, self.config, self.at)
        )
        self.register_buffer("turn", torch.ones(()), persistent=False)

    def rows(self, h, at, tape):
        alpha = self.alpha(h) if isinstance(self.alpha, Gate) else self.alpha()
        return self.x.rows(h, at, tape) + self.turn * alpha * self.y.rows(
            h, at, tape
        )  # (B, T, G, D)

    def word(self):
        return f"{self.x.label()}+{self.y.label()}"


WHERE = dict(
    everywhere=everywhere,
    after_first=after_first,
    alternate=alternate,
    second_half=second_half,
    last_third=last_third,
)


@dataclass(frozen=True)
class Dials:
    """Every experiment that the report names and did not run (its section 4.2); as they stand here, the one it ran."""

    alpha: str = "fixed"  # fixed | layer | head | global | gate
    start: float = 0.5
    act: str = "relu"  # relu | gelu | silu | none
    on: str = "raw"  # raw X, or "norm": LayerNorm(X)
    where: str | tuple = "everywhere"  # a name in WHERE, or the numbers of the layers

    def __post_init__(self):
        for name, wanted in (
            ("alpha", (*ALPHAS, "global")),
            ("act", ACTS),
            ("on", ("raw", "norm")),
        ):
            if getattr(self, name) not in wanted:
                raise ValueError(
                    f"{name}={getattr(self, name)!r}: wanted one of {', '.join(wanted)}"
                )
        if not isinstance(self.where, (tuple, list)) and self.where not in WHERE:
            raise ValueError(
                f"where={self.where!r}: wanted one of {', '.join(WHERE)}, or layer numbers as in (0, 1)"
            )

    def here(self, at, layers):
        return WHERE[self.where](at, layers) if isinstance(self.where, str) else at in self.where


@dataclass(frozen=True)
class Bypassed(Plan):
    """A plan by its dials: Bypassed(dials=Dials(alpha="head", act="gelu"))."""

    dials: Dials = Dials()

    def lines(self, config):
        d = self.dials
        lost = (
            []
            if isinstance(d.where, str)
            else [at for at in d.where if at not in range(config.layers)]
        )
        if lost:
            raise ValueError(
                f"where={d.where!r}: there is no layer {lost[0]}, wanted 0 to {config.layers - 1}"
            )
        alpha = Coefficient("alpha", d.start) if d.alpha == "global" else d.alpha
        value = partial(MixedBypass, alpha, d.start, d.act, d.on)
        return [
            LayerPlan(value=value) if d.here(at, config.layers) else LayerPlan()
            for at in range(config.layers)
        ]


def plan(spec):
    """A plan's name, or the dials of a bypass: plan("standard"), plan(dict(alpha="gate")). What JSON can carry."""
    if isinstance(spec, str):
        return plan_named(spec)
    known = [field.name for field in fields(Dials)]
    for name in spec.keys() - known:
        raise ValueError(f"unknown dial {name!r}: one of {', '.join(known)}")
    return Bypassed(dials=Dials(**spec))


# ---- over training ----------------------------------------------------------------------------------------------
RAMPS = dict(  # share of training done -> what alpha is multiplied by
    constant=lambda done: 1.0,
    warmup=lambda done: min(1.0, 2 * done),  # full from half-time on
    decay=lambda done: 1.0 - done,  # gone at the end
)


def turn(model, ramp, done):
    """Set every detour of a model to what the ramp says when a share `done` of training is over; None: leave them."""
    for module in model.modules():
        if ramp and isinstance(module, MixedBypass):
            module.turn.fill_(RAMPS[ramp](done))


# ---- the spread of the values -----------------------------------------------------------------------------------
def variance_of_sum(v, r, a):
    """Both sides of Var(V + a R) = Var V + a² Var R + 2 a Cov(V, R), over all entries, in float64.

    The report prints the last term without its a, and concludes that the sum is "always ≥ Var V". It is less wherever
    Cov(V, R) < -a Var(R) / 2: for V = -relu(X) and a = 1/2 a quarter is left."""
    v, r = v.detach().double().flatten(), r.detach().double().flatten()
    cross = 2 * a * ((v - v.mean()) * (r - r.mean())).mean()
    right = dict(v=v.var(correction=0), r=a**2 * r.var(correction=0), cross=cross)
    parts = {name: term.item() for name, term in right.items()}
    return dict(
        parts,
        left=(v + a * r).var(correction=0).item(),
        right=sum(parts.values()),
        falls=parts["r"] + parts["cross"] < 0,
    )


@torch.no_grad()
def spread(model, ids, a=0.5, act="relu", on="raw", segments=None):
    """variance_of_sum on an encoder's activations, a dict a layer: V as W_V makes it, R = act(X) of the layer's input.
    `attended` is the variance of the values that the layer really attends to."""
    tape = model.tape(ids)
    model.hidden(ids, tape, segments)
    past = [Bypass(act, on, config=model.config, at=at) for at in range(model.config.layers)]
    return [
        variance_of_sum(tape.raw[at], past[at].rows(tape.streams[at], at, tape), a)
        | dict(attended=tape.rows[at].double().var(correction=0).item())
        for at in sorted(tape.raw)
    ]
