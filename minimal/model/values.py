"""Where do the values come from? The seam of the whole course.

A value source answers for one layer. `rows` makes the values of the NEW positions; `values` is what attention reads.
Rule: combine on new rows, keep once, on the outside. Only the outermost `values` touches the cache, so every
combination of sources trains, prefills and decodes by the same lines.
"""

import math
from functools import partial as part  # noqa: F401, the plans' word for it

import torch
import torch.nn.functional as F
from torch import nn

from minimal.model.layers import Coefficient, Linear, coefficient, norm
from minimal.model.tape import Bank, Rows

ACTS = dict(relu=F.relu, gelu=F.gelu, silu=F.silu, none=lambda x: x)


class Source(nn.Module):
    """Base of all value sources: subclasses make rows, this class keeps them."""

    reads = ()  # layers whose kept rows are read
    bank = None  # name of a table in model.banks
    mark = "own"  # what the map of sources draws

    def __init__(self, *, config, at, gain=None):
        super().__init__()
        self.config, self.at = config, at
        self.gain = (
            Coefficient(*gain) if gain else None
        )  # (role, start): multiplies what attention reads

    def rows(self, h, at, tape):
        raise NotImplementedError

    def scale(self):
        return None if self.gain is None else self.gain()

    def values(self, h, at, tape):
        tape.rows[at] = self.rows(h, at, tape)  # (B, T, G, D)
        return Rows(tape.keep_rows("v", at, tape.rows[at]), self.scale())

    def label(self):
        return ("γ·" if self.gain is not None else "") + self.word()

    def word(self):
        return self.mark


class Own(Source):
    """V = W_V h: this layer's own stream, as in every standard transformer."""

    def __init__(self, groups=None, **where):
        super().__init__(**where)
        self.groups = groups or self.config.kv
        self.project = Linear(
            f"{self.at}.v",
            self.config.width,
            self.groups * self.config.head,
            bias=self.config.manners.qkv_bias,
        )

    def through(self, h):
        v = self.project(h).unflatten(-1, (self.groups, self.config.head))  # (B, T, G, D)
        return norm(v) if self.config.manners.value_norm else v

    def rows(self, h, at, tape):
        tape.raw[at] = self.through(h)
        return tape.raw[at]


class Input(Own):
    """V = W_V norm(x0): this layer's matrix on the token embedding (Bank of Values, rows 7 to 9). `detach` keeps the
    value but cuts the gradient's short way home to the embedding."""

    mark = "x0"

    def __init__(self, detach=False, **where):
        super().__init__(**where)
        self.detach = detach

    def rows(self, h, at, tape):
        x0 = tape.x0.detach() if self.detach else tape.x0
        return self.through(norm(x0))


class Layer(Source):
    """V_j: the raw values of an earlier layer. Alone it keeps nothing: the owner's rows are read again (SVFormer,
    ResFormer Eq 10; rows 3 to 6)."""

    mark = "layer"

    def __init__(self, j, **where):
        super().__init__(**where)
        self.j = j
        self.reads = (j,)

    def rows(self, h, at, tape):
        return tape.raw[self.j]

    def values(self, h, at, tape):
        owner = tape.values[self.j]
        gains = [g for g in (owner.gain, self.scale()) if g is not None]
        return owner._replace(gain=math.prod(gains) if gains else None)

    def word(self):
        return f"V{self.j + 1}"


class Table(Source):
    """V = E[id]: a row of a table by token id (value embeddings; Bank of Values, Eq 5). Alone it keeps only ids.
    `start`: "aligned" rows equal norm(x0) W_V at step 0; "uniform" is nanochat's, "normal" modded-nanogpt's."""

    mark = "table"

    def __init__(self, bank=None, start="aligned", **where):
        super().__init__(**where)
        self.bank, self.start = bank or str(self.at), start

    def rows(self, h, at, tape):
        return tape.banks[self.bank](tape.ids).to(h.dtype)  # (B, T, G, D)

    def values(self, h, at, tape):
        return Bank(
            tape.banks[self.bank].rows(), tape.token_ids(), self.scale()
        )  # rows are cast where read

    def word(self):
        return f"E{'' if self.bank == str(self.at) else '[' + self.bank + ']'}"


class Bypass(Source):
    """act(X): the layer's input itself, past W_V (the BERT bypass report). `on`: "raw" or "norm".
    `ramp` multiplies it: 1, unless the training loop moves it."""

    mark = "input"
    ramp = 1.0

    def __init__(self, act="relu", on="raw", **where):
        super().__init__(**where)
        self.act, self.on = act, on
        if self.config.kv != self.config.heads:
            raise ValueError(
                f"the bypass adds the {self.config.width}-wide input to the values, which grouped heads "
                f"make {self.config.kv * self.config.head} wide: use groups = heads"
            )

    def rows(self, h, at, tape):
        x = F.layer_norm(h, h.shape[-1:]) if self.on == "norm" else h
        y = ACTS[self.act](x) if self.ramp == 1 else self.ramp * ACTS[self.act](x)
        return y.unflatten(-1, (self.config.kv, self.config.head))  # (B, T, G, D)

    def word(self):
        return self.act + "(x)"


class Mix(Source):
    """a x + b y on new rows: ResFormer (Eq 7), rows 10 to 13, V + E. `roles` names who learns a and b, if anyone;
    a Coefficient in their place is one that several layers share. `by_head`: a number a head.
    `tie`: y uses x's matrix (rows 12 and 13 apply one W_V to two inputs)."""

    mark = "mix"

    def __init__(self, x, y, a=0.5, b=0.5, roles=(None, None), tie=False, by_head=False, **where):
        super().__init__(**where)
        self.x, self.y = x(**where), y(**where)
        self.starts = tuple(getattr(weight, "start", weight) for weight in (a, b))
        shape = (self.config.kv, 1) if by_head else ()
        self.a, self.b = (coefficient(role, weight, shape) for role, weight in zip(roles, (a, b)))
        if tie:
            self.y.project = self.x.project

    def rows(self, h, at, tape):
        x, y = self.x.rows(h, at, tape), self.y.rows(h, at, tape)
        return self.a() * x + self.b() * y

    def word(self):
        return f"{self.x.label()}+{self.y.label()}"


class Mean(Own):
    """(V_1 + … + V_n) / n (ResFormer, Eq 5)."""

    mark = "mix"

    def rows(self, h, at, tape):
        own = super().rows(h, at, tape)
        return torch.stack([tape.raw[j] for j in range(at)] + [own]).mean(0)

    def word(self):
        return "mean"


class Gate(Source):
    """x + 3 sigmoid(W_g h[:12]) y: one gate a token and head, in (0, 3), about 1.5 at the start (nanochat)."""

    mark = "mix"

    def __init__(self, x, y, top=3.0, **where):
        super().__init__(**where)
        self.x, self.y, self.top = x(**where), y(**where), top
        self.features = min(12, self.config.width)
        self.gate = Linear(f"{self.at}.gate", self.features, self.config.kv, kind="gate")

    def opening(self, h):
        return (
            self.top * torch.sigmoid(self.gate(h[..., : self.features]))[..., None]
        )  # (B, T, G, 1)

    def rows(self, h, at, tape):
        return self.x.rows(h, at, tape) + self.opening(h) * self.y.rows(h, at, tape)

    def word(self):
        return f"{self.x.label()}+g·{self.y.label()}"


class Heads(Source):
    """The first half of the heads from x, the second half of layer 0's (SkipV1Former, taught from its review)."""

    mark = "mix"

    def __init__(self, x, j=0, **where):
        super().__init__(**where)
        if self.config.kv % 2:
            raise ValueError(
                f"SkipV1Former splits the key/value heads in two halves; {self.config.kv} do not split: "
                f"use an even number of groups"
            )
        self.x, self.j, self.half = x(groups=self.config.kv // 2, **where), j, self.config.kv // 2
        self.reads = (j,)

    def rows(self, h, at, tape):
        return self.x.rows(h, at, tape)

    def values(self, h, at, tape):
        own = super().values(h, at, tape)
        first = tape.values[self.j].v[:, -own.v.shape[1] :, self.half :]  # (B, S, G/2, D)
        return own._replace(v=torch.cat([own.v, first], dim=2))

    def word(self):
        return "½own ½V1"


class Slots(Source):
    """V_h = g_0 V_h + sum_i g_i E[id, i]_h with g = 2 sigmoid(W h): one bank of M slots for all layers (MoVE, taught
    from its summary). Gates start at 1."""

    mark = "mix"

    def __init__(self, x, bank="slots", **where):
        super().__init__(**where)
        self.x, self.bank, self.start = x(**where), bank, "uniform"
        self.slots = max(1, self.config.layers // 2)
        self.router = Linear(
            f"{self.at}.router", self.config.width, self.config.kv * (self.slots + 1), kind="zero"
        )

    def rows(self, h, at, tape):
        g = 2 * torch.sigmoid(self.router(h)).unflatten(
            -1, (self.config.kv, self.slots + 1)
        )  # (B, T, G, M+1)
        e = tape.banks[self.bank](tape.ids).to(h.dtype)  # (B, T, M, G, D)
        return g[..., :1] * self.x.rows(h, at, tape) + torch.einsum(
            "btgm,btmgd->btgd", g[..., 1:], e
        )

    def word(self):
        return "own+slots"
