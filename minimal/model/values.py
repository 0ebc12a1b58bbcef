"""Where do the values come from? The seam of the whole course: a value source for every layer.

A source answers for one layer. `rows` makes the values of the NEW positions; `values` is what
attention reads. Rule: combine on new rows, keep once, on the outside. Only the outermost `values`
touches the cache, so every combination of sources trains, prefills and decodes by the same lines.
"""

import math

import torch
import torch.nn.functional as F

from minimal.model.layers import Coefficient, Linear, Module, Part, by_head, coefficient, norm
from minimal.model.tape import Bank, Rows

ACTS = dict(relu=F.relu, gelu=F.gelu, silu=F.silu, none=lambda x: x)


class Source(Part):
    """Base of all value sources: a subclass makes rows, this class keeps them.

    To write one, give it `rows(h, at, tape)` and, where its answer differs from the one below,

    j, reads, keeps   what it reads and keeps: see Part. Of nested sources only the outermost keeps
    mark              where its rows come from, in one word, as label() and drawings have it
    bank, start       the name of a table in model.banks, made for whoever names it, and its start
    size              how many rows that table has; None: one a token
    slots             how many vectors a row of that table holds; None: one
    word()            its values in words, without the gain
    partner()         of a mixture, the source that joins the layer's own values; else itself
    """

    keeps = "v"
    mark = "own"
    bank = start = None
    size = slots = None

    def __init__(self, *, config, at, gain=None):
        super().__init__()
        self.config, self.at = config, at
        # gain = (role, start) multiplies what attention reads
        self.gain = Coefficient(*gain) if gain else None

    def rows(self, h, at, tape):
        raise NotImplementedError

    def scale(self):
        return None if self.gain is None else self.gain()

    def values(self, h, at, tape):
        return self.stored(self.keeps, h, at, tape)

    def stored(self, name, h, at, tape):
        tape.rows[at] = self.rows(h, at, tape)  # (B, T, G, D)
        kept = tape.keep_rows(name, at, tape.rows[at])  # (B, S, G, D)
        return Rows(kept, self.scale())

    def word(self):
        return self.mark

    def label(self):
        return self.word() if self.gain is None else "γ·" + self.word()

    def partner(self):
        return self


class Own(Source):
    """V = W_V h: this layer's own stream, as in every standard transformer."""

    def __init__(self, groups=None, **where):
        super().__init__(**where)
        config = self.config
        self.groups = groups or config.groups
        n_out = self.groups * config.head
        self.project = Linear(f"{self.at}.v", config.width, n_out, bias=config.style.qkv_bias)

    def through(self, h):
        v = by_head(self.project(h), self.groups)  # (B, T, G, D)
        return norm(v) if self.config.style.value_norm else v

    def rows(self, h, at, tape):
        tape.raw[at] = self.through(h)
        return tape.raw[at]


class Input(Own):
    """V = W_V norm(x0): this layer's matrix on the token embedding (Bank of Values, rows 7 to 9).

    `detach` keeps the value but cuts the gradient's short way home to the embedding.
    """

    mark = "x0"

    def __init__(self, detach=False, **where):
        super().__init__(**where)
        self.detach = detach

    def rows(self, h, at, tape):
        x0 = tape.x0.detach() if self.detach else tape.x0
        return self.through(norm(x0))


class Upstream(Own):
    """V = W_V norm(X_j): this layer's matrix on the stream that enters layer j, or on its own where
    that comes first. The dial between Input (j = 0) and Own (modded-nanogpt reads X_7 of 11)."""

    def __init__(self, j, **where):
        super().__init__(**where)
        self.stream = min(j, self.at)
        self.mark = "own" if self.stream == self.at else "stream"

    def rows(self, h, at, tape):
        if self.stream == at:
            return super().rows(h, at, tape)
        return self.through(norm(tape.streams[self.stream]))

    def word(self):
        return "own" if self.stream == self.at else f"X{self.stream}"


class Anchored(Source):
    """norm(W_A norm(x0)), which `Anchor` has made (ExoFormer)."""

    mark = "x0"

    def rows(self, h, at, tape):
        return tape.anchor

    def word(self):
        return "anchor"


class Anchor(Module):
    """Values of the token by one matrix outside of the stack, for whichever layer mixes them in: a
    first layer's V without its other job (ExoFormer, 2601.08131, has four, for q, k, v, gate)."""

    def __init__(self, *, config):
        super().__init__()
        self.groups = config.groups
        self.project = Linear("anchor.v", config.width, config.groups * config.head)

    def enter(self, x, at, tape):
        if at == 0:
            tape.anchor = norm(by_head(self.project(norm(tape.x0)), self.groups))  # (B, T, G, D)
        return x


class Layer(Source):
    """V_j: the raw values of an earlier layer (SVFormer, ResFormer Eq 10; rows 3 to 6).

    Alone it keeps nothing: the owner's rows are read again.
    """

    keeps = None
    mark = "layer"

    def __init__(self, j, **where):
        super().__init__(**where)
        self.j = j
        self.reads = (j,)

    def rows(self, h, at, tape):
        return tape.raw_of(self.j)

    def values(self, h, at, tape):
        owner = tape.values[self.j]
        gains = [gain for gain in (owner.gain, self.scale()) if gain is not None]
        return owner._replace(gain=math.prod(gains) if gains else None)

    def word(self):
        return f"V{self.j + 1}"


class Table(Source):
    """V = E[id]: a row of a table by token id (value embeddings; Bank of Values, Eq 5).

    Alone it keeps only ids, unless the cache stores rows. Layers that name one `bank` share one
    table. `start`: "aligned" rows equal norm(x0) W_V at step 0; "uniform" is nanochat's, "normal"
    modded-nanogpt's.
    """

    keeps = "ids"
    mark = "table"

    def __init__(self, bank=None, start="aligned", **where):
        super().__init__(**where)
        self.bank, self.start = bank or str(self.at), start

    def rows(self, h, at, tape):
        return tape.banks[self.bank](tape.ids).to(h.dtype)  # (B, T, G, D)

    def named(self, tape):
        """The row of every visible position (B, S)."""
        return tape.token_ids()

    def values(self, h, at, tape):
        if tape.stored:
            return self.stored("v", h, at, tape)
        table = tape.banks[self.bank].rows()  # (V, G, D), cast where it is read
        return Bank(table, self.named(tape), self.scale())

    def word(self):
        return "E" if self.bank == str(self.at) else f"E[{self.bank}]"


def check_width(config, what):
    """What joins the values past W_V must be as wide as they are."""
    if config.groups != config.heads:
        raise ValueError(
            f"{what} is {config.width} wide, and grouped heads make values "
            f"{config.groups * config.head} wide: use groups = heads"
        )


def as_heads(x, config):
    """(B, T, C) -> (B, T, G, D), of what is as wide as the values."""
    return x.unflatten(-1, (config.groups, config.head))


class Bypass(Source):
    """act(X): the layer's input, past W_V (the BERT bypass report). `on`: "raw" or "norm".
    `ramp` multiplies it: 1, unless the training loop moves it."""

    mark = "input"
    ramp = 1.0

    def __init__(self, act="relu", on="raw", **where):
        super().__init__(**where)
        self.act, self.on = act, on
        check_width(self.config, "the input")

    def rows(self, h, at, tape):
        x = F.layer_norm(h, h.shape[-1:]) if self.on == "norm" else h
        y = ACTS[self.act](x) if self.ramp == 1 else self.ramp * ACTS[self.act](x)
        return as_heads(y, self.config)

    def word(self):
        return self.act + "(x)"


class Mix(Source):
    """a x + b y on new rows: ResFormer (Eq 7), rows 10 to 13, V + E. `roles` names who learns a and
    b, if anyone; a Coefficient in their place is one that several layers share. `by_head`: a number
    a head. `tie`: y uses x's matrix (rows 12 and 13 apply one W_V to two inputs)."""

    mark = "mix"

    def __init__(
        self, x, y, a=0.5, b=0.5, roles=(None, None), tie=False, by_head=False, gain=None, **where
    ):
        super().__init__(gain=gain, **where)
        self.x = x(**where)
        self.y = y(**where)
        self.starts = tuple(
            weight.start if isinstance(weight, Coefficient) else weight for weight in (a, b)
        )
        shape = (self.config.groups, 1) if by_head else ()
        self.a = coefficient(roles[0], a, shape)
        self.b = coefficient(roles[1], b, shape)
        if tie:
            self.y.project = self.x.project

    def rows(self, h, at, tape):
        x = self.x.rows(h, at, tape)  # (B, T, G, D)
        y = self.y.rows(h, at, tape)  # (B, T, G, D)
        return self.a() * x + self.b() * y

    def word(self):
        return f"{self.x.label()}+{self.y.label()}"

    def partner(self):
        return self.y


class Mean(Own):
    """(V_1 + … + V_n) / n (ResFormer, Eq 5)."""

    mark = "mix"

    def rows(self, h, at, tape):
        own = super().rows(h, at, tape)
        earlier = [tape.raw_of(j) for j in range(at)]
        return torch.stack(earlier + [own]).mean(0)

    def word(self):
        return "mean"


class Gate(Source):
    """x + 3 sigmoid(W_g h[:12]) y: a gate a token and head, about 1.5 at the start (nanochat)."""

    mark = "mix"

    def __init__(self, x, y, top=3.0, gain=None, **where):
        super().__init__(gain=gain, **where)
        self.x = x(**where)
        self.y = y(**where)
        self.top = top
        self.features = min(12, self.config.width)
        self.gate = Linear(f"{self.at}.gate", self.features, self.config.groups, kind="gate")

    def opening(self, h):
        scores = self.gate(h[..., : self.features])  # (B, T, G)
        return self.top * torch.sigmoid(scores)[..., None]  # (B, T, G, 1)

    def rows(self, h, at, tape):
        return self.x.rows(h, at, tape) + self.opening(h) * self.y.rows(h, at, tape)

    def word(self):
        return f"{self.x.label()}+g·{self.y.label()}"

    def partner(self):
        return self.y


class Heads(Source):
    """Half of the heads from x, half of layer j's (SkipV1Former, taught from its review)."""

    mark = "mix"

    def __init__(self, x, j=0, gain=None, **where):
        super().__init__(gain=gain, **where)
        groups = self.config.groups
        if groups % 2:
            raise ValueError(
                f"SkipV1Former splits the key/value heads in two halves; {groups} do not split: "
                "use an even number of groups"
            )
        self.half = groups // 2
        self.x = x(groups=self.half, **where)
        self.j = j
        self.reads = (j,)

    def rows(self, h, at, tape):
        return self.x.rows(h, at, tape)

    def values(self, h, at, tape):
        own = super().values(h, at, tape)
        first = tape.last(tape.values[self.j].v, own.v.shape[1])  # (B, S, G, D)
        return own.over(torch.cat([own.v, first[:, :, self.half :]], dim=2))

    def word(self):
        return "½own ½V1"


class Slots(Source):
    """V_h = g_0 V_h + sum_i g_i E[id, i]_h, g = 2 sigmoid(W h): one bank of M slots for all layers.

    MoVE, taught from its summary. Gates start at 1.
    """

    mark = "mix"
    start = "uniform"

    def __init__(self, x, bank="slots", gain=None, **where):
        super().__init__(gain=gain, **where)
        config = self.config
        self.x = x(**where)
        self.bank = bank
        self.slots = max(1, config.layers // 2)
        n_out = config.groups * (self.slots + 1)
        self.router = Linear(f"{self.at}.router", config.width, n_out, kind="zero")

    def rows(self, h, at, tape):
        scores = self.router(h).unflatten(-1, (self.config.groups, self.slots + 1))
        g = 2 * torch.sigmoid(scores)  # (B, T, G, M+1)
        e = tape.banks[self.bank](tape.ids).to(h.dtype)  # (B, T, M, G, D)
        stored = torch.einsum("btgm,btmgd->btgd", g[..., 1:], e)
        return g[..., :1] * self.x.rows(h, at, tape) + stored

    def word(self):
        return "own+slots"
