"""What has this forward pass seen so far, and what survives to the next one?"""

from typing import NamedTuple

import torch
import torch.nn.functional as F


class Rows(NamedTuple):
    """Values that exist: v (B, S, G, D). `gain` is applied once, at read, to the attention output."""

    v: torch.Tensor
    gain: torch.Tensor | None = None

    def dense(self):
        return self.v


class Bank(NamedTuple):
    """Values named by token id: row p is table[ids[p]]. Nothing but the ids needs to be remembered."""

    table: torch.Tensor  # (V, G, D)
    ids: torch.Tensor  # (B, S) int32
    gain: torch.Tensor | None = None

    def dense(self):
        v = F.embedding(
            self.ids, self.table.flatten(1)
        )  # indexing would do, with a much slower gradient
        return v.unflatten(-1, self.table.shape[1:])  # (B, S, G, D)


class Made(dict):
    """New rows by layer. A reader that asks for what no layer made has met a source it cannot stand on."""

    def __missing__(self, at):
        raise ValueError(
            f"layer {at} makes no values that another term could read: give it a source with W_V on "
            "the layer's own stream"
        )


class Tape:
    """State of one forward pass, by layer. A layer may have no attention, so these are dicts, not lists.

    queries, keys   as attended (positions and norms applied): (B, T, H, D), (B, S, G, D)
    values          as attended: Rows or Bank over all visible positions
    raw             each layer's own value projection of the new rows, before any mixing: (B, T, G, D)
    rows            the new rows as this layer attends to them, after mixing
    out             attention output before W_O: (B, T, H, D)
    streams         the residual stream as it came out of each block; streams[0] is x0
    """

    def __init__(self, ids, banks, cache=None, windows=None, lengths=None, reach=None):
        self.ids, self.banks, self.cache = ids, banks, cache
        self.windows, self.lengths, self.reach = windows, lengths, reach
        self.queries, self.keys, self.values, self.out = {}, {}, {}, {}
        self.raw, self.rows = Made(), Made()
        self.flat = {}  # queries and keys before positions and norms, for the variants that mix them
        self.streams, self.seen = [], None
        self.start = cache.length if cache is not None else 0
        self.rotation = None

    @property
    def x0(self):
        """The stream that enters the first block: the token embedding (after norm and smear, where there is any)."""
        return self.streams[0]

    def keep(self, name, new, last=None):
        """The one line that makes training, prefill and decode the same path: in training the identity; in decoding
        remember the new rows and return all visible ones. `last`: only that many rows stay for the next step."""
        return new if self.cache is None else self.cache.append(name, new, last)

    def keep_rows(self, name, at, new):
        """keep() for rows that layer `at` owns: with rings, as many as the widest window among their readers."""
        last = self.reach[at] if self.cache is not None and self.cache.rings else 0
        return self.keep((name, at), new, last or None)

    def token_ids(self):
        """Every visible token id, kept once for all layers as int32. No ring: some reader may be long."""
        if self.seen is None:
            self.seen = self.keep("ids", self.ids.int())
        return self.seen  # (B, S)
