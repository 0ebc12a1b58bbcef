"""What if the key were the value, too? A layer with no W_V, and with or without a cache of its own.

What stands in the cache is turned by its position. Read as a value it must be turned back, and that
can wait until it is read: attention's output is turned back once, by the position of the query.
"""

from minimal.model.layers import by_head, norm
from minimal.model.tape import Rows
from minimal.model.values import Source


class TurnedKey(Source):
    """V = the key as it is attended, turned and normed: one row is kept for both (DeepSeek-V4).
    Read it by attention.TurnedBack."""

    keeps = None
    mark = "key"

    def rows(self, h, at, tape):
        return tape.new(tape.keys[at])  # (B, T, G, D)

    def values(self, h, at, tape):
        return Rows(tape.keys[at], self.scale())

    def word(self):
        return "k"


class PlainKey(Source):
    """V = norm(W_K h), the key before it is turned (Gemma 4's global layers). A matrix less; as the
    row in the cache is another one than the key's, no row less."""

    mark = "key"

    def rows(self, h, at, tape):
        return norm(by_head(tape.flat["k", at], self.config.groups))  # (B, T, G, D)

    def word(self):
        return "k unturned"
