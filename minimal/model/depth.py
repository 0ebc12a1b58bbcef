"""What if every token chose its own mixture of layers? Values from all that was put out so far.

Two papers do so for the whole stream: MUDDFormer (2502.12170) with weights that the newest stream
makes, Attention Residuals (2603.15031) by attention over depth. Here either mixture feeds the
values alone, so that it stands beside ResFormer: the same question, answered token by token.
"""

import torch
import torch.nn.functional as F

from minimal.model.layers import Coefficient, Linear, norm
from minimal.model.values import Own


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
