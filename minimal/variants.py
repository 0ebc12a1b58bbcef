"""Which systems does the course know? Every plan by name, in one table; `python -m minimal.variants --size d12`."""

import argparse
import json
import re
import sys
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from minimal.model import attention
from minimal.model import config as sizes
from minimal.model.count import count
from minimal.model.init import init
from minimal.model.residual import Backout, DenseFormer, Lambdas, UNet
from minimal.model.transformer import GPT
from minimal.model.values import (
    Bypass,
    Gate,
    Heads,
    Input,
    Layer,
    Mean,
    Mix,
    Own,
    Slots,
    Table,
    part,
)


class LayerPlan(NamedTuple):
    """One layer of a plan: where queries, keys and values come from, how they are read, what follows."""

    value: Any = Own
    query: Any = attention.Own
    key: Any = attention.Own
    read: Any = attention.Plain
    mlp: bool = True
    wo: bool = True


# Which layers? Each selector is (i, L) -> bool.
def everywhere(i, n):
    return True


def after_first(i, n):
    return i > 0


def last_third(i, n):
    """i >= (2L)//3, so ceil(L/3) layers (Bank of Values)."""
    return i >= 2 * n // 3


def alternate(i, n):
    return i % 2 == (n - 1) % 2


def second_half(i, n):
    return i >= n // 2


def odd(i, n):
    return i % 2 == 1


def skipping_first(where):
    """The same layers without layer 0, which cannot point at itself."""
    return lambda i, n: i > 0 and where(i, n)


def place(where=everywhere, **doors):
    """A plan's layers: `doors` (value=…, key=…, read=…) where `where` says so, a standard layer elsewhere. A door may
    be a function of the layer index, marked by `by_layer`."""

    def line(i, n):
        here = {
            name: door.make(i, n) if isinstance(door, by_layer) else door
            for name, door in doors.items()
        }
        return LayerPlan(**here) if where(i, n) else LayerPlan()

    return line


class by_layer(NamedTuple):
    """A door that depends on the layer: by_layer(lambda i, n: …)."""

    make: Any


@dataclass(frozen=True)
class Plan:
    """One row of the course's table."""

    line: Any = place()
    streams: tuple = ()
    heads: int | None = None  # DVA has one head
    kv: Any = None  # heads -> key/value heads
    style: str | None = None
    smear: bool = False

    def adapt(self, config):
        """The size as this plan wants it."""
        changes = dict(heads=self.heads, style=self.style, smear=self.smear or None)
        config = config.but(**{k: v for k, v in changes.items() if v is not None})
        if self.heads:
            config = config.but(groups=None)
        return config.but(groups=self.kv(config.heads)) if self.kv else config

    def lines(self, config):
        return [self.line(i, config.layers) for i in range(config.layers)]

    def but(self, **changes):
        """The same plan with changes; `every=dict(mlp=True)` changes a field of every line."""
        every = changes.pop("every", None)
        if every:
            old = self.line
            changes["line"] = lambda i, n: old(i, n)._replace(**every)
        return replace(self, **changes)


def first(**more):
    return part(Layer, 0, **more)


def mixed_with(y, a, b, **more):
    return part(Mix, Own, y, a, b, **more)


LEARNED = dict(gain=("beta", 1.0))

OPEN = dict(
    roles=("alpha", "beta")
)  # a starts at 1 and learns slowly, b starts at 0 and learns fast


def modded_value(i, n, gap=7):
    """Tables on the first and last k = 3L/16 layers, the same ones in both places; layer `gap` of 16 has no attention."""
    k = max(1, 3 * n // 16)
    table = i if i < k else i - (n - k) if i >= n - k else None
    if gap is not None and i == gap * n // 16:
        return None
    if table is None:
        return part(Own, gain=("lambda", 0.5))
    return mixed_with(part(Table, f"ve{table}", "normal"), 0.5, 0.5, roles=("lambda", "lambda"))


def modded_skips(n):
    return sorted(
        {
            (i * n // 16, j * n // 16)
            for i, j in ((6, 9), (4, 10), (2, 11))
            if i * n // 16 < j * n // 16
        }
    )


MIXED = (
    part(UNet, modded_skips),
    part(Lambdas, lambda i, n: 1.0, lambda i, n: 0.0, ("lambda", "lambda")),
)


def half_heads(heads):
    """About half the key/value heads: the largest divisor of H that is at most H / 2."""
    return max(g for g in range(1, max(1, heads // 2) + 1) if heads % g == 0)


DVA = dict(mlp=False, wo=False)

GATED = part(Gate, Own, part(Table, start="uniform"))

V1, X0 = first(), part(Input)

BELOW = by_layer(lambda i, n: mixed_with(part(Layer, i - 1), 0.5, 0.5))

NANOCHAT = part(
    Lambdas,
    lambda i, n: 1.15 - 0.10 * i / max(1, n - 1),
    lambda i, n: 0.20 - 0.15 * i / max(1, n - 1),
)

PLANS = dict(
    standard=Plan(),
    gqa=Plan(kv=half_heads),
    mqa=Plan(kv=lambda heads: 1),
    resformer=Plan(place(after_first, value=mixed_with(V1, 0.5, 0.5))),
    **{
        "resformer-learned": Plan(
            place(after_first, value=mixed_with(V1, 0.5, 0.5, roles=("lambda", "lambda")))
        ),
        "resformer-nearest": Plan(place(after_first, value=BELOW)),
    },
    svformer=Plan(place(after_first, value=V1)),
    **{
        "svformer-anchors": Plan(
            place(
                lambda i, n: i % -(-n // 3) > 0,
                value=by_layer(lambda i, n: part(Layer, i - i % -(-n // 3))),
            )
        ),
        "svformer-gqa": Plan(place(after_first, value=V1), kv=half_heads),
    },
    cross=Plan(place(after_first, read=attention.Across)),
    **{
        "cross-mean": Plan(place(after_first, value=BELOW)),
        "cross-all": Plan(place(after_first, value=Mean)),
    },
    identity=Plan(place(after_first, read=attention.Identity)),
    neutreno=Plan(place(after_first, read=attention.NeuTRENO)),
    **{
        "resformer-neutreno": Plan(
            place(after_first, value=mixed_with(V1, 0.5, 0.5), read=part(attention.NeuTRENO, 0.2))
        )
    },
    denseformer=Plan(streams=(DenseFormer,)),
    **{
        "residual-q": Plan(place(after_first, query=attention.Residual)),
        "residual-k": Plan(place(after_first, key=attention.Residual)),
        "share-q": Plan(place(after_first, query=lambda name, **w: attention.Shared(name, 0, **w))),
        "share-k": Plan(place(after_first, key=lambda name, **w: attention.Shared(name, 0, **w))),
        "share-k2": Plan(
            place(
                odd, key=by_layer(lambda i, n: lambda name, **w: attention.Shared(name, i - 1, **w))
            )
        ),
        "share-v2": Plan(place(odd, value=by_layer(lambda i, n: part(Layer, i - 1)))),
    },
    cla=Plan(
        place(
            odd,
            key=by_layer(lambda i, n: lambda name, **w: attention.Shared(name, i - 1, **w)),
            value=by_layer(lambda i, n: part(Layer, i - 1)),
        )
    ),
    skipv1=Plan(place(after_first, value=part(Heads, Own))),
    move=Plan(place(value=part(Slots, Own))),
    row1=Plan(),
    row2=Plan(place(last_third, value=part(Own, **LEARNED))),
    row3=Plan(place(after_first, value=V1)),
    row4=Plan(place(skipping_first(alternate), value=first(**LEARNED))),
    row5=Plan(place(skipping_first(last_third), value=V1)),
    row6=Plan(place(skipping_first(last_third), value=first(**LEARNED))),
    row7=Plan(place(alternate, value=part(Input, **LEARNED))),
    row8=Plan(place(last_third, value=X0)),
    row9=Plan(place(last_third, value=part(Input, **LEARNED))),
    row10=Plan(place(skipping_first(last_third), value=mixed_with(V1, 0.5, 0.5))),
    row11=Plan(place(skipping_first(last_third), value=mixed_with(V1, 1.0, 0.0, **OPEN))),
    row12=Plan(place(last_third, value=mixed_with(X0, 0.5, 0.5, tie=True))),
    row13=Plan(place(last_third, value=mixed_with(X0, 1.0, 0.0, tie=True, **OPEN))),
    bov=Plan(place(last_third, value=part(Table, **LEARNED))),
    **{
        "bov-shared": Plan(place(last_third, value=part(Table, "shared", **LEARNED))),
        "bov-fixed": Plan(place(last_third, value=Table)),
        "bov-every": Plan(place(everywhere, value=part(Table, **LEARNED))),
        "bov-alternate": Plan(place(alternate, value=part(Table, **LEARNED))),
        "bov-half": Plan(place(second_half, value=part(Table, **LEARNED))),
        "bov-keep": Plan(place(last_third, value=mixed_with(Table, 1.0, 0.0, **OPEN))),
        "bov-gqa": Plan(place(last_third, value=part(Table, **LEARNED)), kv=half_heads),
    },
    vplus=Plan(place(alternate, value=GATED)),
    **{"x0-detach": Plan(place(last_third, value=part(Input, True, **LEARNED)))},
    modded=Plan(place(value=by_layer(modded_value)), MIXED),
    **{
        "modded-moved": Plan(place(value=by_layer(part(modded_value, gap=5))), MIXED),
        "modded-whole": Plan(place(value=by_layer(part(modded_value, gap=None))), MIXED),
    },
    nanochat=Plan(place(alternate, value=GATED), (NANOCHAT, Backout), smear=True),
    dva=Plan(place(read=attention.Dynamic, **DVA), heads=1),
    **{
        "dva-ffn": Plan(place(read=attention.Dynamic), heads=1),
        "dva-naive": Plan(place(read=attention.Pairs, **DVA), heads=1),
        "dva-random": Plan(place(read=part(attention.Dynamic, False), **DVA), heads=1),
    },
    bypass=Plan(place(value=mixed_with(Bypass, 1.0, 0.5))),
    gpt2=Plan(style="gpt2"),
)

# A name may carry twists, "dva/ffn/wo" (a factorial is then a list of names), and layers, "row9@3,5" (only there).
TWISTS = dict(
    ffn=dict(every=dict(mlp=True)),
    noffn=dict(every=dict(mlp=False)),
    wo=dict(every=dict(wo=True)),
    nowo=dict(every=dict(wo=False)),
    one=dict(heads=1),
    many=dict(heads=None),
)


def plan_named(name):
    """The plan of that name, twisted and placed as the name says."""
    if isinstance(name, Plan):
        return name
    rest, _, layers = name.partition("@")
    base, *twists = rest.split("/")
    if base not in PLANS:
        raise ValueError(f"unknown plan {base!r}: one of {', '.join(PLANS)}")
    if set(twists) - set(TWISTS) or (layers and not re.fullmatch(r"\d+(,\d+)*", layers)):
        raise ValueError(
            f"cannot read {name!r}: after / comes one of {', '.join(TWISTS)}, after @ layer numbers"
        )
    plan = PLANS[base]
    for twist in twists:
        plan = plan.but(**TWISTS[twist])
    if layers:
        there, line = {int(i) for i in layers.split(",")}, plan.line

        def placed(i, n):
            if max(there) >= n or line(n - 1, n) == LayerPlan():
                raise ValueError(
                    f"{name!r} cannot be placed: there are layers 0 to {n - 1}, "
                    f"and {base} must change the last of them"
                )
            return (
                line(n - 1, n) if i in there else LayerPlan()
            )  # as in the last layer, which is a target of every such plan

        plan = plan.but(line=placed)
    return plan


def build(plan="standard", size="tiny", seed=0, device="cpu", **changes):
    """A model ready to run: build("bov", "tiny", vocab=1024, seed=1). `size` may be a Config."""
    plan = plan_named(plan)
    return init(GPT(plan.adapt(sizes.size(size, **changes)), plan), seed).to(device)


def skeleton(plan, size, **changes):
    """The same model without storage, for counting."""
    plan = plan_named(plan)
    with torch.device("meta"):
        return GPT(plan.adapt(sizes.size(size, **changes)), plan)


def describe(model):
    """What each layer attends with, in words: its values, then whatever is unusual about its other doors."""
    words = []
    for block in model.blocks:
        a = block.attention
        words.append(
            "no attention"
            if a is None
            else a.value.label() + a.query.word + a.key.word + a.read.word
        )
    return words


def summary(name, size, **changes):
    model = skeleton(name, size, **changes)
    return dict(plan=name) | count(model) | dict(sources=describe(model))


def main():
    parser = argparse.ArgumentParser(prog="python -m minimal.variants", description=__doc__)
    parser.add_argument("--size", default="tiny", choices=sizes.SIZES)
    parser.add_argument("--plans", nargs="+", default=list(PLANS), metavar="PLAN")
    parser.add_argument("--json", action="store_true", help="a list of objects instead of a table")
    args = parser.parse_args()
    rows = []
    for name in args.plans:
        try:
            rows.append(summary(name, args.size))
        except ValueError as error:
            sys.exit(f"variants: {name}: {error}")
    if args.json:
        print(json.dumps(rows, indent=1, ensure_ascii=False))
        return
    print(f"{args.size}: bytes at 2 an element, int32 ids, full context, batch 1\n")
    print(
        f"{'plan':20} {'parameters':>13} {'FLOPs/token':>15} {'cache B/token':>14} {'fixed B':>13}  values by layer"
    )
    for r in rows:
        print(
            f"{r['plan']:20} {r['parameters']:>13,} {r['flops_per_token']:>15,} {r['cache_bytes_per_token']:>14,} "
            f"{r['cache_bytes_fixed']:>13,}  {run_lengths(r['sources'])}"
        )


def run_lengths(words):
    """own own own E E -> 'own x3, E x2'."""
    out = []
    for word in words:
        if out and out[-1][0] == word:
            out[-1][1] += 1
        else:
            out.append([word, 1])
    return ", ".join(word if n == 1 else f"{word} ×{n}" for word, n in out)


if __name__ == "__main__":
    main()
