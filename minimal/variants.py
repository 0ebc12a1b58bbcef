"""Which systems does the course know? Every plan by name, in one table of contents.

python -m minimal.variants --size d12      what each of them costs, and where its values come from
"""

import json
import re
import sys
from functools import partial
from typing import Any

import torch

from minimal.command import command
from minimal.model import config as sizes
from minimal.model import latent
from minimal.model.attention import (
    Across,
    Dynamic,
    Exclusive,
    FromInput,
    Gated,
    Identity,
    NeuTRENO,
    Pairs,
    Residual,
    Shared,
    TurnedBack,
)
from minimal.model.count import count, describe, run_lengths
from minimal.model.depth import Attended, Dense, DepthAttention, WithStreams
from minimal.model.init import init
from minimal.model.keys import PlainKey, TurnedKey
from minimal.model.lookup import AlsoIntoStream, Engram, IntoStream, PerLayer
from minimal.model.ngram import NGram
from minimal.model.pieces import (
    ANCHORED,
    BARE,
    GATED,
    LAMBDAS,
    LEARNED,
    MODDED_PIECES,
    MOVED,
    NANOCHAT_PIECES,
    OPEN,
    TABLE,
    V1,
    V1_HALF,
    V1_LEARNED,
    WHOLE,
    X0,
    X0_LEARNED,
    anchor,
    behind_anchor,
    below,
    first,
    half_below,
    into_values,
    keys_below,
    mixed_with,
    modded_value,
    multi_latent,
)
from minimal.model.plan import (
    LayerPlan,
    Plan,
    after_first,
    alternate,
    by_layer,
    early_third,
    everywhere,
    half_heads,
    last_third,
    odd,
    place,
    second_and_middle,
    second_half,
    skipping_first,
)
from minimal.model.residual import DenseFormer
from minimal.model.transformer import GPT
from minimal.model.values import (
    Anchor,
    Bypass,
    Gate,
    Heads,
    Input,
    Mean,
    Own,
    Slots,
    Table,
    Upstream,
)

XSA_LEARNED = partial(Exclusive, True)

# ---- the table of contents --------------------------------------------------------------------
# fmt: off
PLANS = {
    # The transformer, and fewer key/value heads
    "standard": Plan(),
    "gqa": Plan(groups=half_heads),
    "mqa": Plan(groups=lambda heads: 1),

    # ResFormer and SVFormer (2410.17897), and what the paper compares them with
    "resformer": Plan(place(after_first, value=V1_HALF)),
    "resformer-learned": Plan(place(after_first, value=mixed_with(V1, 0.5, 0.5, roles=LAMBDAS))),
    "resformer-nearest": Plan(place(after_first, value=by_layer(half_below))),
    "svformer": Plan(place(after_first, value=first())),
    "svformer-anchors": Plan(place(behind_anchor, value=by_layer(anchor))),
    "svformer-gqa": Plan(place(after_first, value=V1), groups=half_heads),
    "cross": Plan(place(after_first, read=Across)),
    "cross-mean": Plan(place(after_first, value=by_layer(half_below))),
    "cross-all": Plan(place(after_first, value=Mean)),
    "identity": Plan(place(after_first, read=Identity)),
    "neutreno": Plan(place(after_first, read=NeuTRENO)),
    "resformer-neutreno": Plan(place(after_first, value=V1_HALF, read=partial(NeuTRENO, 0.2))),
    "denseformer": Plan(streams=(DenseFormer,)),

    # What else could be mixed or shared: queries, keys, pairs of layers, half the heads, slots
    "residual-q": Plan(place(after_first, query=Residual)),
    "residual-k": Plan(place(after_first, key=Residual)),
    "share-q": Plan(place(after_first, query=partial(Shared, j=0))),
    "share-k": Plan(place(after_first, key=partial(Shared, j=0))),
    "share-k2": Plan(place(odd, key=by_layer(keys_below))),
    "share-v2": Plan(place(odd, value=by_layer(below))),
    "cla": Plan(place(odd, key=by_layer(keys_below), value=by_layer(below))),
    "skipv1": Plan(place(after_first, value=partial(Heads, Own))),
    "move": Plan(place(value=partial(Slots, Own))),

    # Bank of Values (2606.02780), Table 1: thirteen rows
    "row1": Plan(),
    "row2": Plan(place(last_third, value=partial(Own, **LEARNED))),
    "row3": Plan(place(after_first, value=V1)),
    "row4": Plan(place(skipping_first(alternate), value=V1_LEARNED)),
    "row5": Plan(place(skipping_first(last_third), value=V1)),
    "row6": Plan(place(skipping_first(last_third), value=V1_LEARNED)),
    "row7": Plan(place(alternate, value=X0_LEARNED)),
    "row8": Plan(place(last_third, value=X0)),
    "row9": Plan(place(last_third, value=X0_LEARNED)),
    "row10": Plan(place(skipping_first(last_third), value=V1_HALF)),
    "row11": Plan(place(skipping_first(last_third), value=mixed_with(V1, 1.0, 0.0, **OPEN))),
    "row12": Plan(place(last_third, value=mixed_with(X0, 0.5, 0.5, tie=True))),
    "row13": Plan(place(last_third, value=mixed_with(X0, 1.0, 0.0, tie=True, **OPEN))),

    # Bank of Values: tables by token
    "bov": Plan(place(last_third, value=TABLE)),
    "bov-shared": Plan(place(last_third, value=partial(Table, "shared", **LEARNED))),
    "bov-fixed": Plan(place(last_third, value=Table)),
    "bov-every": Plan(place(everywhere, value=TABLE)),
    "bov-alternate": Plan(place(alternate, value=TABLE)),
    "bov-half": Plan(place(second_half, value=TABLE)),
    "bov-early": Plan(place(early_third, value=TABLE)),
    "row9-early": Plan(place(early_third, value=X0_LEARNED)),
    "bov-keep": Plan(place(last_third, value=mixed_with(Table, 1.0, 0.0, **OPEN))),
    "bov-gqa": Plan(place(last_third, value=TABLE), groups=half_heads),
    "vplus": Plan(place(alternate, value=GATED)),
    "x0-detach": Plan(place(last_third, value=partial(Input, True, **LEARNED))),

    # Who needs the stream? Queries, keys, values, each of it or of norm(x0), in all layers; size of
    # standard. x0-v is row 8 everywhere
    "x0-q": Plan(place(query=FromInput)),
    "x0-k": Plan(place(key=FromInput)),
    "x0-v": Plan(place(value=X0)),
    "x0-qk": Plan(place(query=FromInput, key=FromInput)),
    "x0-qv": Plan(place(query=FromInput, value=X0)),
    "x0-kv": Plan(place(key=FromInput, value=X0)),
    "x0-qkv": Plan(place(query=FromInput, key=FromInput, value=X0)),

    # Value embeddings in practice: modded-nanogpt (medium track), nanochat
    "modded": Plan(place(value=by_layer(modded_value)), MODDED_PIECES),
    "modded-moved": Plan(place(value=MOVED), MODDED_PIECES),
    "modded-whole": Plan(place(value=WHOLE), MODDED_PIECES),
    "nanochat": Plan(place(alternate, value=GATED), NANOCHAT_PIECES, smear=True),

    # Dynamic value attention (2512.22212)
    "dva": Plan(place(read=Dynamic, **BARE), heads=1),
    "dva-ffn": Plan(place(read=Dynamic), heads=1),
    "dva-naive": Plan(place(read=Pairs, **BARE), heads=1),
    "dva-random": Plan(place(read=partial(Dynamic, False), **BARE), heads=1),

    # The BERT bypass, in a decoder; and the plain transformer in GPT-2's style
    "bypass": Plan(place(value=mixed_with(Bypass, 1.0, 0.5))),
    "gpt2": Plan(style="gpt2"),

    # What came after. A bank of n-gram values (ours): slots where Bank of Values has ids
    "ngram": Plan(place(last_third, value=partial(NGram, **LEARNED))),
    "ngram-fixed": Plan(place(last_third, value=NGram)),
    "ngram-two": Plan(place(last_third, value=partial(NGram, times=2, **LEARNED))),
    "ngram-hash": Plan(place(last_third, value=partial(NGram, by="hash", **LEARNED))),
    "ngram-small": Plan(place(last_third, value=partial(NGram, times=1, by="hash", **LEARNED))),
    "ngram-3": Plan(place(last_third, value=partial(NGram, n=3, **LEARNED))),
    "ngram-plus": Plan(place(alternate, value=partial(Gate, Own, partial(NGram, start="uniform")))),

    # Tables by id into the stream, into V, or into both: Gemma 3n's, and Engram's (2601.07372)
    "ple": Plan(streams=(partial(IntoStream, PerLayer, everywhere, behind=True),)),
    "ple-v": Plan(place(value=into_values(PerLayer))),
    "ple-both": Plan(place(value=into_values(PerLayer)), (AlsoIntoStream,)),
    "engram": Plan(streams=(partial(IntoStream, Engram, second_and_middle),)),
    "engram-v": Plan(place(second_and_middle, value=into_values(Engram))),
    "engram-both": Plan(place(second_and_middle, value=into_values(Engram)), (AlsoIntoStream,)),

    # Multi-head latent attention (DeepSeek-V2, 2405.04434)
    "mla": Plan(place(**multi_latent(latent.half_width))),
    "mla-half": Plan(place(**multi_latent(latent.half_cache))),

    # A gate on the way out (Gated Attention, 2505.06708); one with the parameters of dva
    "gated": Plan(place(read=Gated)),
    "gated-head": Plan(place(read=partial(Gated, "head"))),
    "gated-bare": Plan(place(read=Gated, mlp=False), heads=1),

    # Values from a mixture of all layers, by the token (MUDDFormer, 2502.12170), and by nobody;
    # by attention over what the blocks have added (Attention Residuals, 2603.15031)
    "mudd": Plan(place(after_first, value=Dense)),
    "mudd-fixed": Plan(place(after_first, value=partial(Dense, False))),
    "attnres": Plan(place(after_first, value=Attended)),

    # The same with values in the place of streams (Depth-Attention, 2606.05014); streams that join
    # V past W_V (modded-nanogpt); one V1 outside of the stack (ExoFormer, 2601.08131)
    "depth-attention": Plan(place(after_first, value=DepthAttention)),
    "mudd-stream": Plan(place(after_first, value=WithStreams)),
    "exo": Plan(place(value=ANCHORED), (Anchor,)),

    # V from the stream that entered layer j: x0-v is j = 0, standard j = l
    **{f"upstream-{j}": Plan(place(value=partial(Upstream, j))) for j in range(1, 12)},

    # Attention without what lies along the query's own value (XSA, 2603.09078)
    "xsa": Plan(place(read=Exclusive)),
    "xsa-learned": Plan(place(read=XSA_LEARNED)),

    # The key is the value, too: turned, and turned back where it is read (DeepSeek-V4), so that one
    # row is kept; or as it is before it is turned (Gemma 4), where two are
    "keys-turned": Plan(place(value=TurnedKey, read=TurnedBack)),
    "keys-turned-gqa": Plan(place(value=TurnedKey, read=TurnedBack), groups=half_heads),
    "keys-plain": Plan(place(value=PlainKey)),
}
# fmt: on

# The same where the values are of the token, rows of tables, or mixed with V1
for name, values in {"x0": "x0-v", "bank": "bov-fixed", "v1": "resformer"}.items():
    for end, read in {"": Exclusive, "-learned": XSA_LEARNED}.items():
        PLANS[f"xsa-{name}{end}"] = PLANS[values].but(every=dict(read=read))

# A name may carry twists, "dva/ffn/wo": a factorial is then a list of names. Add one of your own.
TWISTS = dict(
    ffn=dict(every=dict(mlp=True)),
    noffn=dict(every=dict(mlp=False)),
    wo=dict(every=dict(output=True)),
    nowo=dict(every=dict(output=False)),
    one=dict(heads=1),
    many=dict(heads=None),
)


# ---- from a name to a model -------------------------------------------------------------------
def plan_named(name):
    """The plan of a name, twisted ("dva/ffn") and placed ("row9@3,5": in these layers only)."""
    if isinstance(name, Plan):
        return name
    rest, at, layers = name.partition("@")
    base, *twists = rest.split("/")
    if base not in PLANS:
        raise ValueError(f"unknown plan {base!r}: one of {', '.join(PLANS)}")
    if set(twists) - set(TWISTS) or (at and not re.fullmatch(r"\d+(,\d+)*", layers)):
        raise ValueError(
            f"cannot read {name!r}: after / comes one of {', '.join(TWISTS)}, after @ layer numbers"
        )
    plan = PLANS[base]
    for twist in twists:
        plan = plan.but(**TWISTS[twist])
    if layers:
        chosen = {int(i) for i in layers.split(",")}
        plan = plan.but(line=only_in(chosen, plan.line, name))
    return plan


def only_in(chosen, line, name):
    """A line with the plan's last layer (every such plan changes it) in the chosen layers."""

    def placed(i, n):
        last = line(n - 1, n)
        if max(chosen) >= n or last == LayerPlan():
            raise ValueError(
                f"{name!r} cannot be placed: there are layers 0 to {n - 1}, "
                f"and {name.partition('@')[0]} must change the last of them"
            )
        return last if i in chosen else LayerPlan()

    return placed


def build(
    plan: str | Plan = "standard",
    size: str | sizes.Config = "tiny",
    seed: int = 0,
    device: str | torch.device = "cpu",
    compute: torch.dtype | None = None,
    **changes: Any,
) -> GPT:
    """A model ready to run: build("bov", "tiny", vocab=1024, seed=1). `size` may be a Config.

    `compute`: the type of the activations on that device, where the weights stay fp32.
    """
    model = GPT(*fitted(plan, size, changes))
    return init(model, seed).to(device, compute=compute)


def skeleton(plan, size, **changes):
    """The same model without storage, for counting."""
    with torch.device("meta"):
        return GPT(*fitted(plan, size, changes))


def fitted(name, size, changes):
    """(Config, Plan), where the plan has had its say in the size."""
    plan, config = plan_named(name), sizes.size(size, **changes)
    if plan.style and "style" in changes and config.style.name != plan.style:
        raise ValueError(
            f"plan {name} is built in style {plan.style}, got {config.style.name}: leave out the "
            "style, or choose plan standard"
        )
    return plan.adapt(config), plan


# ---- the command ------------------------------------------------------------------------------
def summary(name, size, **changes):
    model = skeleton(name, size, **changes)
    return dict(plan=name) | count(model) | dict(sources=describe(model))


@command("minimal.variants", __doc__)
def main(parser, argv):
    add = parser.add_argument
    add("--size", default="tiny", choices=sizes.SIZES)
    add("--plans", nargs="+", default=list(PLANS), metavar="PLAN")
    add("--json", action="store_true", help="a list of objects instead of a table")
    asked = parser.parse_args(argv)
    rows = []
    for name in asked.plans:
        try:
            rows.append(summary(name, asked.size))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    if asked.json:
        letters = "utf" in sys.stdout.encoding.lower()  # else escaped, so that it stays JSON
        print(json.dumps(rows, indent=1, ensure_ascii=not letters))
    else:
        print(f"{asked.size}: bytes at 2 an element, int32 ids, full context, batch 1\n")
        print(in_columns(rows))


def in_columns(rows):
    """One line a plan."""
    heads = ("plan", "parameters", "FLOPs/token", "cache B/token", "fixed B", "values by layer")
    line = "{:20} {:>13} {:>15} {:>14} {:>13}  {}"
    lines = [line.format(*heads)]
    for row in rows:
        plan, *numbers, sources = row.values()
        counted = [f"{number:,}" for number in numbers]
        lines.append(line.format(plan, *counted, run_lengths(sources)))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
