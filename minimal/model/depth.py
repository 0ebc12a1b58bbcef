"""What if every token chose its own mixture of layers? Values from a dynamic dense connection.

MUDDFormer (2502.12170) mixes the outputs of all blocks so far, with weights that the token makes,
separately for queries, keys, values and the stream. Here its mixture feeds the values alone, so
that it stands beside ResFormer: the same question, answered token by token.
"""

import torch
import torch.nn.functional as F

from minimal.model.layers import Coefficient, Linear, norm
from minimal.model.values import Own


class Mixture(Own):
    """V = W_V norm(sum_j a_j X_j), a = W_2 gelu(W_1 norm(X)) + b, over the streams X_0 … X_n.

    W_2 starts at 0 and b picks the newest stream, so that the start is standard attention.
    `dynamic` False leaves b alone: fixed weights, as in DenseFormer.
    """

    mark = "depth"

    def __init__(self, dynamic=True, **where):
        super().__init__(**where)
        streams = self.at + 1  # x0 and what every block below put out
        self.dynamic = dynamic
        self.fixed = Coefficient("dense", [0.0] * self.at + [1.0], (streams,))
        if dynamic:
            self.first = Linear(f"{self.at}.depth1", self.config.width, streams)
            self.second = Linear(f"{self.at}.depth2", streams, streams, kind="zero")

    def shares(self, tape):
        """The weights of all streams, for every new token (B, T, n + 1)."""
        newest = tape.streams[self.at]
        fixed = self.fixed().to(newest.dtype)
        if not self.dynamic:
            return fixed.expand(*newest.shape[:2], -1)
        return self.second(F.gelu(self.first(norm(newest)))) + fixed

    def rows(self, h, at, tape):
        streams = torch.stack(tape.streams[: at + 1], -1)  # (B, T, C, n + 1)
        mixed = torch.einsum("btcn,btn->btc", streams, self.shares(tape))
        tape.raw[at] = self.through(norm(mixed))  # (B, T, G, D)
        return tape.raw[at]

    def word(self):
        return "Σ streams" if self.dynamic else "Σ streams, fixed"
