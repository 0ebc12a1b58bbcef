"""Where do queries and keys come from, and what happens while and after values are read?

The other two doors of an attention layer. Most plans leave both alone."""

import torch
from torch import nn

from minimal.kernels.dynamic_values import dynamic_values
from minimal.kernels.reference import visible, weights
from minimal.model.attend import attend, last
from minimal.model.layers import Linear, norm, rotate
from minimal.model.tape import Rows


class Own(nn.Module):
    """q or k = W h, then positions, then norm. `name` is "q" or "k". Keys are kept; queries are not."""

    reads, word = (), ""

    def __init__(self, name, *, config, at):
        super().__init__()
        self.name, self.config = name, config
        self.heads = config.heads if name == "q" else config.kv
        self.project = Linear(
            f"{at}.{name}", config.width, self.heads * config.head, bias=config.manners.qkv_bias
        )

    def flat(self, h, at, tape):
        tape.flat[self.name, at] = self.project(h)  # (B, T, heads D)
        return tape.flat[self.name, at]

    def forward(self, h, at, tape):
        x = self.flat(h, at, tape).unflatten(-1, (self.heads, self.config.head))  # (B, T, heads, D)
        if tape.rotation is not None:
            x = rotate(x, *tape.rotation)
        if self.config.manners.qk_norm is not None:
            x = norm(
                x
            )  # the gain of 1.2 on q and on k is part of the scale: see Style.attention_scale
        return tape.keep_rows("k", at, x) if self.name == "k" else x


class Residual(Own):
    """(x_n + x_1) / 2 before positions and norm: ResFormer's Fig 6, in our reading (the paper has no formula)."""

    @property
    def word(self):
        return f", {self.name} mixed with {self.name}1"

    def flat(self, h, at, tape):
        return (super().flat(h, at, tape) + tape.flat[self.name, 0]) / 2


class Shared(nn.Module):
    """The queries or keys of layer j, positions and norms included: nothing is projected, nothing kept."""

    def __init__(self, name, j, *, config, at):
        super().__init__()
        self.name, self.j, self.word = name, j, f", {name}{j + 1}"
        self.reads = (j,) if name == "k" else ()

    def forward(self, h, at, tape):
        return (tape.queries if self.name == "q" else tape.keys)[self.j]


class Plain(nn.Module):
    """softmax(q k^T) V. `scores` and `mixes` count how often q k^T and A V are formed, for the FLOPs."""

    reads, word = (), ""
    scores = mixes = 1

    def __init__(self, *, config, at):
        super().__init__()
        self.config, self.at = config, at

    def how(self, at, tape):
        manners = self.config.manners
        scale = manners.attention_scale(self.config.head)
        return dict(
            causal=manners.causal, window=tape.windows[at], lengths=tape.lengths, scale=scale
        )

    def forward(self, q, k, value, h, at, tape):
        dropout = self.config.dropout if self.training else 0.0
        bound = self.config.manners.logit_bound(self.config.head)
        return attend(
            q, k, value, dropout=dropout, bound=bound, **self.how(at, tape)
        )  # (B, T, H, D)

    def over_heads(self, v):
        return v.repeat_interleave(self.config.heads // v.shape[2], dim=2)  # (B, T, H, D)


class NeuTRENO(Plain):
    """NeuTRENO (ResFormer's Eq 8, with I where the paper prints the ones matrix J): A V_n + strength (V_1 - V_n)."""

    def __init__(self, strength=0.4, **where):
        super().__init__(**where)
        self.strength, self.word = strength, f" +{strength:g}(V1-V)"

    def forward(self, q, k, value, h, at, tape):
        y = super().forward(q, k, value, h, at, tape)
        return y + self.strength * self.over_heads(tape.raw[0] - tape.rows[at])


class Identity(Plain):
    """A V_n + mean of V_1 … V_{n-1} at the same position (ResFormer, Eq 6)."""

    word = " +mean before"

    def __init__(self, **where):
        super().__init__(**where)
        self.j = self.at - 1  # and all below it

    def forward(self, q, k, value, h, at, tape):
        y = super().forward(q, k, value, h, at, tape)
        return y + self.over_heads(torch.stack([tape.raw[j] for j in range(at)]).mean(0))


class Across(Plain):
    """One softmax over this layer's keys and the previous layer's (ResFormer, Eq 2); both halves causal."""

    scores = mixes = 2
    word = " +layer below"

    def __init__(self, **where):
        super().__init__(**where)
        self.j = self.at - 1
        self.reads = (self.j,)

    def forward(self, q, k, value, h, at, tape):
        how, k2, v2 = self.how(at, tape), tape.keys[at - 1], tape.values[at - 1].dense()
        s = min(
            k.shape[1], k2.shape[1], v2.shape[1]
        )  # with rings the two layers may remember different lengths
        seen = visible(
            q.shape[1], s, how["causal"], how["window"], how["lengths"], q.device
        )  # (T, S)
        keys, values = (
            torch.cat([last(one, s), last(two, s)], dim=1)
            for one, two in ((k, k2), (value.dense(), v2))
        )
        return attend(
            q, keys, Rows(values), scale=how["scale"], mask=torch.cat([seen, seen], dim=-1)
        )


LIMITS = dict(none=lambda x: x, clamp=lambda x: x.clamp(-1, 1), norm=norm)


class Dynamic(Plain):
    """Dynamic value attention: v_ij = v_j + qR_i * kR_j. By its identity the sum over j is (A V)_i + qR_i * (A K_R)_i:
    two value streams, one map, a gate on the way out; no n*n*d tensor. `limit` bounds |r|: "clamp" or "norm"."""

    mixes = 2
    word = " +qR·kR"

    def __init__(self, learn=True, limit="none", **where):
        super().__init__(**where)
        width, own = self.config.width, self.config.heads * self.config.head
        self.limit, self.learn = limit, learn
        self.query, self.key = (
            Linear(f"{self.at}.qr", width, own),
            Linear(f"{self.at}.kr", width, own),
        )
        for matrix in (self.query, self.key):
            matrix.weight.requires_grad_(
                learn
            )  # dva-random: is it the modifier, or only its shape?

    def streams(self, q, k, value, h, at, tape):
        heads = (self.config.heads, self.config.head)
        bounded = LIMITS[self.limit]
        qr = bounded(self.query(h).unflatten(-1, heads))  # (B, T, H, D)
        kr = tape.keep_rows("kr", at, bounded(self.key(h).unflatten(-1, heads)))  # (B, S, H, D)
        return qr, kr, self.over_heads(k)  # grouped keys, if any, stand once a head

    def forward(self, q, k, value, h, at, tape):
        qr, kr, k = self.streams(q, k, value, h, at, tape)
        value = Rows(self.over_heads(value.dense()), value.gain)
        whole = (
            q.shape[1] == k.shape[1]
            and not tape.windows[at]
            and tape.lengths is None
            and value.gain is None
        )
        if (
            whole
            and q.device.type == "cpu"
            and self.config.manners.causal
            and not torch.is_grad_enabled()
        ):
            scale = self.config.manners.attention_scale(self.config.head)
            return dynamic_values(
                q, k, value.v, qr, kr, scale
            )  # one map for both streams: 1.6 times faster than two calls
        return super().forward(q, k, value, h, at, tape) + qr * super().forward(
            q, k, Rows(kr), h, at, tape
        )


class Pairs(Dynamic):
    """The same by definition: every pair's own value is formed, at n*n*d numbers. The reference for Dynamic."""

    def forward(self, q, k, value, h, at, tape):
        qr, kr, k = self.streams(q, k, value, h, at, tape)
        a = weights(q, k, **self.how(at, tape))  # (B, H, T, S)
        v = self.over_heads(
            value.dense() if value.gain is None else value.dense() * value.gain
        )  # (B, S, H, D)
        pairs = v[:, None] + qr[:, :, None] * kr[:, None]  # (B, T, S, H, D)
        return torch.einsum("bhts,btshd->bthd", a, pairs)  # (B, T, H, D)


class Attention(nn.Module):
    """Three doors (query, key, value), one way of reading, one way out: each an entry of the plan's line."""

    def __init__(self, config, at, line):
        super().__init__()
        where = dict(config=config, at=at)
        self.query, self.key, self.value = (
            line.query("q", **where),
            line.key("k", **where),
            line.value(**where),
        )
        self.read = line.read(**where)
        own = config.heads * config.head
        self.out = (
            Linear(f"{at}.o", own, config.width, "out", config.manners.bias)
            if line.wo
            else nn.Identity()
        )

    def forward(self, h, at, tape):
        q = tape.queries[at] = self.query(h, at, tape)  # (B, T, H, D)
        k = tape.keys[at] = self.key(h, at, tape)  # (B, S, G, D)
        value = tape.values[at] = self.value.values(h, at, tape)  # Rows or Bank over S
        y = tape.out[at] = self.read(q, k, value, h, at, tape)  # (B, T, H, D)
        return self.out(y.flatten(2))  # (B, T, C)
