"""Where do queries and keys come from, and how are values read? The other doors of attention.

Most plans leave all of them alone. A query or key door answers `forward(h, at, tape)`, a way to
read `forward(q, k, value, h, at, tape)`; what else they say of themselves is in layers.Part.
"""

import torch
import torch.nn.functional as F
from torch import nn

from minimal.kernels.dynamic_values import dynamic_values
from minimal.kernels.reference import visible, weights
from minimal.model.attend import attend
from minimal.model.layers import Coefficient, Linear, Module, Part, by_head, norm, rotate_rows
from minimal.model.tape import Rows


# ---- queries and keys -------------------------------------------------------------------------
class Projection(Part):
    """q or k = W h, then positions, then norm. `name` is "q" or "k". Keys are kept."""

    stored_as = "Own"

    def __init__(self, name, *, config, at):
        super().__init__()
        self.name, self.config = name, config
        self.heads = config.heads if name == "q" else config.groups
        n_out = self.heads * config.head
        self.project = Linear(f"{at}.{name}", config.width, n_out, bias=config.style.qkv_bias)

    @property
    def keeps(self):
        return "k" if self.name == "k" else None

    def flat(self, h, at, tape):
        tape.flat[self.name, at] = self.project(h)  # (B, T, heads D)
        return tape.flat[self.name, at]

    def forward(self, h, at, tape):
        x = by_head(self.flat(h, at, tape), self.heads)  # (B, T, heads, D)
        # positions
        if tape.rotation is not None:
            x = rotate_rows(x, *tape.rotation[self.heads])
        # QK norm; its gain is part of the scale: see Style.attention_scale
        if self.config.style.qk_norm is not None:
            x = norm(x)
        # keys stay for later tokens
        return tape.keep_rows(self.keeps, at, x) if self.keeps else x


class Residual(Projection):
    """(x_n + x_1) / 2 before positions and norm: ResFormer's Fig 6, which prints no formula."""

    def flat(self, h, at, tape):
        return (super().flat(h, at, tape) + tape.flat[self.name, 0]) / 2

    def label(self):
        return f", {self.name} mixed with {self.name}1"


class FromInput(Projection):
    """W norm(x0): queries or keys of the token embedding, as values.Input has values of it."""

    def flat(self, h, at, tape):
        return super().flat(norm(tape.x0), at, tape)

    def label(self):
        return f", {self.name} of x0"


class Shared(Part):
    """The queries or keys of layer j, positions and norms included: nothing projected or kept."""

    def __init__(self, name, j, *, config, at):
        super().__init__()
        self.name, self.j = name, j
        self.reads = (j,) if name == "k" else ()

    def forward(self, h, at, tape):
        made = tape.queries if self.name == "q" else tape.keys
        return made[self.j]

    def label(self):
        return f", {self.name}{self.j + 1}"


# ---- ways to read -----------------------------------------------------------------------------
class Plain(Part):
    """softmax(q k^T) V. `scores` and `mixes` count the products q k^T and A V, for the FLOPs."""

    scores = mixes = 1

    def __init__(self, *, config, at):
        super().__init__()
        self.config, self.at = config, at

    def how(self, at, tape, k=None):
        """What hides keys from queries, and the scale; for the layer's own keys, or for these."""
        style = self.config.style
        return dict(
            causal=style.causal,
            window=tape.windows[at],
            lengths=tape.lengths_of(tape.keys[at] if k is None else k),
            scale=style.attention_scale(self.config.head),
        )

    def forward(self, q, k, value, h, at, tape):
        k, value = tape.lined_up(k, value)
        dropout = self.config.dropout if self.training else 0.0
        bound = self.config.style.logit_bound(self.config.head)
        how = self.how(at, tape, k)
        return attend(q, k, value, dropout=dropout, bound=bound, **how)  # (B, T, H, D)

    def over_heads(self, v):
        return v.repeat_interleave(self.config.heads // v.shape[2], dim=2)  # (B, T, H, D)


class NeuTRENO(Plain):
    """A V_n + strength (V_1 - V_n): ResFormer's Eq 8, with I where it prints the ones matrix J."""

    def __init__(self, strength=0.4, **where):
        super().__init__(**where)
        self.strength = strength

    def forward(self, q, k, value, h, at, tape):
        y = super().forward(q, k, value, h, at, tape)
        return y + self.strength * self.over_heads(tape.raw_of(0) - tape.rows_of(at))

    def label(self):
        return f" +{self.strength:g}(V1-V)"


class Exclusive(Plain):
    """y - a (y . u) u, u the direction of the query's own value: what attention says beside what
    the token says of itself (exclusive self-attention, 2603.09078). A gain of the values does not
    turn u. `learned`: a is tanh of a number a head that starts at 0 (modded-nanogpt); else 1."""

    def __init__(self, learned=False, **where):
        super().__init__(**where)
        self.share = Coefficient("lambda", 0.0, (self.config.heads, 1)) if learned else None

    def forward(self, q, k, value, h, at, tape):
        y = super().forward(q, k, value, h, at, tape)  # (B, T, H, D)
        own = F.normalize(self.over_heads(tape.rows_of(at)), dim=-1)  # (B, T, H, D)
        along = (y * own).sum(-1, keepdim=True) * own
        return y - (along if self.share is None else torch.tanh(self.share()).to(y.dtype) * along)

    def label(self):
        return " -own v" if self.share is None else " -α own v"


class TurnedBack(Plain):
    """R_i^-1 A V, for values that were turned as keys are: what is read depends on how far away it
    stood (DeepSeek-V4)."""

    def forward(self, q, k, value, h, at, tape):
        y = super().forward(q, k, value, h, at, tape)
        if tape.rotation is None:
            return y
        both, signed = tape.rotation[self.config.heads]
        return rotate_rows(y, both, -signed)

    def label(self):
        return " turned back"


class Identity(Plain):
    """A V_n + mean of V_1 … V_{n-1} at the same position (ResFormer, Eq 6)."""

    def __init__(self, **where):
        super().__init__(**where)
        self.j = self.at - 1  # and all below it

    def forward(self, q, k, value, h, at, tape):
        y = super().forward(q, k, value, h, at, tape)
        earlier = torch.stack([tape.raw_of(j) for j in range(at)])  # (at, B, T, G, D)
        return y + self.over_heads(earlier.mean(0))

    def label(self):
        return " +mean before"


class Across(Plain):
    """One softmax over this layer's keys and the layer below's (ResFormer, Eq 2), both causal."""

    scores = mixes = 2

    def __init__(self, **where):
        super().__init__(**where)
        self.j = self.at - 1
        self.reads = (self.j,)

    def forward(self, q, k, value, h, at, tape):
        j, masks, keys, values = self.j, [], [], []
        for pair in ((k, value), (tape.keys[j], tape.values[j])):
            key, rows = tape.lined_up(*pair)
            keys.append(key)
            values.append(rows.dense())
            how = self.how(at, tape, key)
            hides = how["causal"], how["window"], how["lengths"]
            masks.append(visible(q.shape[1], key.shape[1], *hides, q.device))
        # one softmax over both
        keys, values = torch.cat(keys, 1), torch.cat(values, 1)  # (B, S + S', G, D)
        mask = torch.cat(masks, -1)  # (T, S + S')
        return attend(q, keys, Rows(values), scale=how["scale"], mask=mask)

    def label(self):
        return " +layer below"


LIMITS = dict(none=lambda x: x, clamp=lambda x: x.clamp(-1, 1), norm=norm)


class Dynamic(Plain):
    """Dynamic value attention: v_ij = v_j + qR_i * kR_j.

    By its identity the sum over j is (A V)_i + qR_i * (A K_R)_i: two value streams, one map, a gate
    on the way out; no n*n*d tensor. `limit` bounds |r|: "clamp" or "norm". `learn` is False in
    dva-random, which asks: is it the modifier, or only its shape?
    """

    keeps = "kr"
    mixes = 2

    def __init__(self, learn=True, limit="none", **where):
        super().__init__(**where)
        width, own = self.config.width, self.config.heads * self.config.head
        self.limit, self.learn = limit, learn
        self.query = Linear(f"{self.at}.qr", width, own)
        self.key = Linear(f"{self.at}.kr", width, own)
        self.query.weight.requires_grad_(learn)
        self.key.weight.requires_grad_(learn)

    def modifiers(self, h, at, tape):
        """qR of the new positions (B, T, H, D), kR of all visible ones (B, S, H, D)."""
        heads = (self.config.heads, self.config.head)
        bounded = LIMITS[self.limit]
        qr = bounded(self.query(h).unflatten(-1, heads))
        kr = bounded(self.key(h).unflatten(-1, heads))
        return qr, tape.keep_rows(self.keeps, at, kr)

    def forward(self, q, k, value, h, at, tape):
        qr, kr = self.modifiers(h, at, tape)
        # keys and values, if grouped, stand once a head
        k = self.over_heads(k)
        value = Rows(self.over_heads(value.dense()), value.gain)
        # without gradients, one map for both streams: 1.6 times faster than two calls
        if self.one_map(q, k, value, at, tape):
            scale = self.config.style.attention_scale(self.config.head)
            return dynamic_values(q, k, value.v, qr, kr, scale)
        own = super().forward(q, k, value, h, at, tape)
        modifier = super().forward(q, k, Rows(kr), h, at, tape)
        return own + qr * modifier

    def one_map(self, q, k, value, at, tape):
        """May kernels/dynamic_values do it? It knows whole causal maps on a CPU, and no gain."""
        whole = q.shape[1] == k.shape[1] and not tape.windows[at] and tape.lengths is None
        here = q.device.type == "cpu" and not torch.is_grad_enabled()
        return whole and here and self.config.style.causal and value.gain is None

    def label(self):
        return " +qR·kR"


class Pairs(Dynamic):
    """The same by definition: every pair's own value, n*n*d numbers. The reference for Dynamic."""

    def forward(self, q, k, value, h, at, tape):
        qr, kr = self.modifiers(h, at, tape)
        k, value = tape.lined_up(k, value)
        a = weights(q, self.over_heads(k), **self.how(at, tape, k))  # (B, H, T, S)
        # in the map's type, fp32 or better
        v = value.dense().to(a.dtype)
        if value.gain is not None:
            v = v * value.gain
        modifiers = qr.to(a.dtype)[:, :, None] * kr.to(a.dtype)[:, None]  # (B, T, S, H, D)
        pairs = self.over_heads(v)[:, None] + modifiers  # (B, T, S, H, D)
        return torch.einsum("bhts,btshd->bthd", a, pairs).to(q.dtype)  # (B, T, H, D)


class Gated(Plain):
    """sigmoid(W_g h) (A V), before W_O: Gated Attention's gate, as Qwen3-Next has it (2505.06708).

    `by` "channel": a number for each of the H D outputs; "head": one a head. Starts near 1/2.
    """

    def __init__(self, by="channel", **where):
        super().__init__(**where)
        self.by, config = by, self.config
        n_out = config.heads * (config.head if by == "channel" else 1)
        self.gate = Linear(f"{self.at}.gate_out", config.width, n_out, kind="gate")

    def forward(self, q, k, value, h, at, tape):
        y = super().forward(q, k, value, h, at, tape)  # (B, T, H, D)
        opening = torch.sigmoid(self.gate(h)).unflatten(-1, (self.config.heads, -1))
        return opening * y  # (B, T, H, D or 1) * (B, T, H, D)

    def label(self):
        return f" ·gate by {self.by}"


# ---- the layer --------------------------------------------------------------------------------
class Attention(Module):
    """Three doors (query, key, value), one way to read, one way out: fields of the LayerPlan."""

    def __init__(self, config, at, line):
        super().__init__()
        where = dict(config=config, at=at)
        self.query = line.query("q", **where)
        self.key = line.key("k", **where)
        self.value = line.value(**where)
        self.read = line.read(**where)
        self.out = nn.Identity()
        if line.output:
            own = config.heads * config.head
            self.out = Linear(f"{at}.o", own, config.width, "out", config.style.bias)

    def forward(self, h, at, tape):
        q = tape.queries[at] = self.query(h, at, tape)  # (B, T, H, D)
        k = tape.keys[at] = self.key(h, at, tape)  # (B, S, G, D)
        value = tape.values[at] = self.value.values(h, at, tape)  # Rows or Bank over S
        y = tape.out[at] = self.read(q, k, value, h, at, tape)  # (B, T, H, D)
        return self.out(y.flatten(2))  # (B, T, C)
