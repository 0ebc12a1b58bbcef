"""What if every token chose its own mixture of layers? Values from all that was put out so far.

Two papers do so for the whole stream: MUDDFormer (2502.12170) with weights that the newest stream
makes, Attention Residuals (2603.15031) by attention over depth. Here either mixture feeds the
values alone, so that it stands beside ResFormer: the same question, answered token by token.

Two more mix values and not streams: Depth-Attention (2606.05014), and modded-nanogpt's streams that
join V past W_V.
"""

import torch
import torch.nn.functional as F

from minimal.model.layers import Coefficient, Linear, norm
from minimal.model.values import Own, as_heads, check_width


class Mixture(Own):
    """V = W_V norm(sum_j a_j P_j). A subclass says what the parts P and their shares a are."""

    mark = "depth"

    def parts(self, tape):
        """What is mixed (B, T, C, n + 1): X_0 and what every block below has put out."""
        raise NotImplementedError

    def shares(self, tape):
        """The weights of all parts, for every new token (B, T, n + 1)."""
        raise NotImplementedError

    def rows(self, h, at, tape):
        mixed = torch.einsum("btcn,btn->btc", self.parts(tape), self.shares(tape))
        tape.raw[at] = self.through(norm(mixed))  # (B, T, G, D)
        return tape.raw[at]


class Dense(Mixture):
    """a = W_2 gelu(W_1 norm(X_n)) + b over the streams X_0 … X_n (MUDDFormer).

    W_2 starts at 0 and b picks the newest stream, so that the start is standard attention.
    `dynamic` False leaves b alone: fixed weights, as in DenseFormer.
    """

    def __init__(self, dynamic=True, **where):
        super().__init__(**where)
        streams = self.at + 1  # x0 and what every block below put out
        self.dynamic = dynamic
        self.fixed = Coefficient("dense", [0.0] * self.at + [1.0], (streams,))
        if dynamic:
            self.first = Linear(f"{self.at}.depth1", self.config.width, streams)
            self.second = Linear(f"{self.at}.depth2", streams, streams, kind="zero")

    def parts(self, tape):
        return torch.stack(tape.streams[: self.at + 1], -1)  # (B, T, C, n + 1)

    def shares(self, tape):
        newest = tape.streams[self.at]
        fixed = self.fixed().to(newest.dtype)
        if not self.dynamic:
            return fixed.expand(*newest.shape[:2], -1)
        return self.second(F.gelu(self.first(norm(newest)))) + fixed

    def word(self):
        return "Σ streams" if self.dynamic else "Σ streams, fixed"


class Attended(Mixture):
    """a = softmax_j(w · norm(P_j)) over what every block has added: P_0 = X_0, P_j = X_j - X_{j-1}
    (Attention Residuals; a query w for each layer, and P is key and value).

    w starts at 0. Equal shares of all parts are the stream over their number, and norm takes the
    number out: the start is standard attention.
    """

    def __init__(self, **where):
        super().__init__(**where)
        self.query = Linear(f"{self.at}.depth", self.config.width, 1, kind="zero")

    def parts(self, tape):
        streams = torch.stack(tape.streams[: self.at + 1], -1)  # (B, T, C, n + 1)
        nothing = torch.zeros_like(streams[..., :1])
        return torch.diff(streams, prepend=nothing)  # (B, T, C, n + 1)

    def shares(self, tape):
        keys = norm(self.parts(tape).transpose(-1, -2))  # (B, T, n + 1, C)
        return self.query(keys).squeeze(-1).softmax(-1)  # (B, T, n + 1)

    def word(self):
        return "softmax over blocks"


class DepthAttention(Own):
    """V_n = sum_j a_j V_j, a = softmax_j(q_n · k_j): this layer's query reads the layers below and
    itself, at one place, where both are turned alike (2606.05014, taught from its summary).

    V_j are values as layer j attended to them, mixed themselves, as the cache holds them. Heads
    that share keys read them by the mean of their queries."""

    mark = "depth"

    def shares(self, at, tape):
        """(B, T, G, n + 1)"""
        q = tape.queries[at].unflatten(2, (self.groups, -1)).mean(3)  # (B, T, G, D)
        k = torch.stack([tape.new(tape.keys[j]) for j in range(at + 1)], 3)  # (B, T, G, n + 1, D)
        scores = torch.einsum("btgd,btgnd->btgn", q, k)
        return (scores * self.config.style.attention_scale(self.config.head)).softmax(-1)

    def rows(self, h, at, tape):
        own = super().rows(h, at, tape)
        v = torch.stack([*(tape.rows_of(j) for j in range(at)), own], 3)  # (B, T, G, n + 1, D)
        return torch.einsum("btgn,btgnd->btgd", self.shares(at, tape), v)

    def word(self):
        return "softmax over layers"


class WithStreams(Own):
    """V + mu_0 X_0 + mu_1 X_m + mu_2 X_n: streams join past W_V, by weights that the token makes, m
    at seven tenths of n (modded-nanogpt's record of April 2026: 7 of 10, in that layer alone).
    mu = W_2 gelu(W_1 norm(X_n)) starts at 0; its factor of .1 is left out."""

    mark = "depth"

    def __init__(self, **where):
        super().__init__(**where)
        check_width(self.config, "a stream")
        width = self.config.width
        self.streams = (0, 7 * self.at // 10, self.at)
        hidden = max(len(self.streams), width // 12)  # 64 of 768
        self.first = Linear(f"{self.at}.depth1", width, hidden)
        self.second = Linear(f"{self.at}.depth2", hidden, len(self.streams), kind="zero")

    def rows(self, h, at, tape):
        streams = torch.stack([tape.streams[j] for j in self.streams], -1)  # (B, T, C, 3)
        mu = self.second(F.gelu(self.first(norm(tape.streams[at]))))  # (B, T, 3)
        joined = torch.einsum("btcn,btn->btc", streams, mu)
        return super().rows(h, at, tape) + as_heads(joined, self.config)

    def word(self):
        return "own+streams"
