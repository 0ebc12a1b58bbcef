"""What if keys and values came from one small latent? Multi-head latent attention (DeepSeek-V2).

c = norm(W_DKV h) is all that decoding keeps of a token, and a short key with a position, shared by
all heads. k = W_UK c and v = W_UV c are a matrix away, and matrices move: q . W_UK c = W_UK^T q . c
and A (W_UV c) = W_UV (A c). Read so, one head of keys and values (c itself) serves all queries.
"""

import torch

from minimal.model.attend import attend
from minimal.model.attention import Plain
from minimal.model.layers import Linear, Part, norm, rope_tables, rotate_rows, whole_rows
from minimal.model.tape import Latent, Rows
from minimal.model.values import Source


def turning(config):
    """Features a head that carry positions: half as many as the others, in whole pairs."""
    return max(2, config.head // 4 * 2)


def turned(x, tape, config):
    """x (B, T, heads, R) with rotary positions, where the style has them."""
    if tape.rotation is None:
        return x
    heads, width = x.shape[-2:]
    if (heads, width) not in tape.rotation:
        style = config.style
        half = style.positions == "half-rope"
        cos, sin = rope_tables(tape.positions(), width, style.rope_base, half)
        tape.rotation[heads, width] = whole_rows(cos.to(x.dtype), sin.to(x.dtype), heads)
    return rotate_rows(x, *tape.rotation[heads, width])


class Query(Part):
    """Queries of two parts: D features that compare contents, R that compare positions."""

    def __init__(self, name, *, config, at):
        super().__init__()
        self.config, self.turning = config, turning(config)
        self.project = Linear(
            f"{at}.{name}", config.width, config.heads * (config.head + self.turning)
        )

    def forward(self, h, at, tape):
        q = self.project(h).unflatten(-1, (self.config.heads, -1))  # (B, T, H, D + R)
        content, position = q.split([self.config.head, self.turning], dim=-1)
        return torch.cat([content, turned(position, tape, self.config)], dim=-1)


class Key(Part):
    """What is kept: the latent and the key with positions, [c, k_R], as one head of C + R."""

    keeps = "c"

    def __init__(self, name, size, *, config, at):
        super().__init__()
        self.config, self.latent, self.turning = config, size(config), turning(config)
        self.down = Linear(f"{at}.down_kv", config.width, self.latent + self.turning)

    def forward(self, h, at, tape):
        latent, position = self.down(h)[:, :, None].split([self.latent, self.turning], dim=-1)
        rows = torch.cat([norm(latent), turned(position, tape, self.config)], dim=-1)
        return tape.keep_rows(self.keeps, at, rows)  # (B, S, 1, C + R)


class FromLatent(Source):
    """V = W_UV c: every head's values out of the latent that the keys, too, are made of."""

    keeps = None
    mark = "latent"

    def __init__(self, size, **where):
        super().__init__(**where)
        config = self.config
        self.latent = size(config)
        self.project = Linear(f"{self.at}.up_v", self.latent, config.heads * config.head)

    def values(self, h, at, tape):
        latent = tape.keys[at][:, :, 0, : self.latent]  # (B, S, C)
        return Latent(latent, self.project, self.config.heads, self.scale())

    def word(self):
        return "W c"


class Read(Plain):
    """softmax(q k^T) V with k = W_UK c. `absorbed`, as decoding does it: W_UK joins the queries and
    W_UV the way out, so that all heads read the latent itself, as in multi-query attention."""

    def __init__(self, size, **where):
        super().__init__(**where)
        config = self.config
        self.latent, self.turning = size(config), turning(config)
        self.up = Linear(f"{self.at}.up_k", self.latent, config.heads * config.head)
        self.scores = 1 + self.turning / config.head

    def how(self, at, tape, k=None):
        features = self.config.head + self.turning
        return super().how(at, tape, k) | dict(scale=features**-0.5)

    def forward(self, q, k, value, h, at, tape):
        # with a past, making keys and values of all of it anew would cost more than the reading
        absorbed = q.shape[1] < k.shape[1]
        read = self.absorbed if absorbed else self.written_out
        return read(q, k, value, at, tape)

    def written_out(self, q, k, value, at, tape):
        content, position = k.split([self.latent, self.turning], dim=-1)
        content = self.up(content[:, :, 0]).unflatten(-1, (self.config.heads, -1))  # (B, S, H, D)
        position = position.expand(-1, -1, self.config.heads, -1)  # (B, S, H, R)
        keys = tape.keys[at] = torch.cat([content, position], dim=-1)  # (B, S, H, D + R)
        dropout = self.config.dropout if self.training else 0.0
        values = Rows(value.dense(), value.gain)
        return attend(q, keys, values, dropout=dropout, **self.how(at, tape, k))  # (B, T, H, D)

    def absorbed(self, q, k, value, at, tape):
        content, position = q.split([self.config.head, self.turning], dim=-1)
        content = torch.einsum("bthd,hdc->bthc", content, self.by_head(self.up, q.dtype))
        queries = tape.queries[at] = torch.cat([content, position], dim=-1)  # (B, T, H, C + R)
        latent = Rows(value.latent[:, :, None], value.gain)  # (B, S, 1, C)
        y = attend(queries, k, latent, **self.how(at, tape, k))  # (B, T, H, C)
        return torch.einsum("bthc,hdc->bthd", y, self.by_head(value.up, y.dtype))  # (B, T, H, D)

    def by_head(self, up, dtype):
        """The matrix of a Linear from the latent to all heads, as (H, D, C)."""
        return up.weight.unflatten(0, (self.config.heads, -1)).to(dtype)

    def label(self):
        return ", keys W c"


# ---- how large is the latent? -----------------------------------------------------------------
def half_width(config):
    """C = width / 2: at d12, with the positions, 448 numbers a token and layer for 1,536."""
    return config.width // 2


def half_cache(config):
    """As many numbers as half of the key/value heads would keep, positions included."""
    return config.width - turning(config)
