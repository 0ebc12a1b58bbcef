"""What has this forward pass seen so far, and what survives to the next one? The tape.

A tape is the state of one pass over the layers; with a cache, it continues an earlier one.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F


class Rows(NamedTuple):
    """Values that exist: v (B, S, G, D). `gain` is applied once, at read, to attention's output."""

    v: torch.Tensor
    gain: torch.Tensor | None = None

    def dense(self):
        return self.v

    def kept(self):
        """What has a row for each visible token; over(rows) is the same value over these."""
        return self.v

    def over(self, rows):
        return self._replace(v=rows)


class Bank(NamedTuple):
    """Values named by token id: row p is table[ids[p]]. Nothing but the ids is remembered."""

    table: torch.Tensor  # (V, G, D)
    ids: torch.Tensor  # (B, S) int32
    gain: torch.Tensor | None = None

    def dense(self):
        # indexing would do, with a much slower gradient
        v = F.embedding(self.ids, self.table.flatten(1))  # (B, S, G D)
        return v.unflatten(-1, self.table.shape[1:])  # (B, S, G, D)

    def kept(self):
        return self.ids

    def over(self, rows):
        return self._replace(ids=rows)


class Latent(NamedTuple):
    """Values that are a matrix away from what is kept: v = W c, head by head."""

    latent: torch.Tensor  # (B, S, C)
    up: Any  # the Linear C -> H D
    heads: int
    gain: torch.Tensor | None = None

    def dense(self):
        return self.up(self.latent).unflatten(-1, (self.heads, -1))  # (B, S, H, D)

    def kept(self):
        return self.latent

    def over(self, rows):
        return self._replace(latent=rows)


class Tape:
    """State of one forward pass, by layer. A layer may have no attention, so these are dicts.

    queries, keys   as attended (positions and norms applied): (B, T, H, D), (B, S, G, D)
    flat            queries and keys before positions and norms, by (name, layer): (B, T, heads D)
    values          as attended: Rows, Bank or Latent over all visible positions
    raw             each layer's own value projection of the new rows: (B, T, G, D)
    rows            the new rows as this layer attends to them, after mixing
    out             attention output before W_O: (B, T, H, D)
    streams         the residual stream as it leaves each block; streams[0] is x0
    slots           slots of all visible positions, by the table's kind: (B, S)
    looked          what a layer looked up and added to its values: (B, T, C)
    anchor          values that were made outside of all layers: (B, T, G, D)
    """

    def __init__(self, ids, banks, cache=None, windows=None, lengths=None, reach=None, start=0):
        self.ids, self.banks, self.cache = ids, banks, cache
        self.windows, self.lengths, self.reach = windows, lengths, reach
        self.queries, self.keys, self.flat = {}, {}, {}
        self.values, self.raw, self.rows, self.out = {}, {}, {}, {}
        self.streams, self.slots, self.looked, self.anchor = [], {}, {}, None
        self.rotation = None  # heads -> tables of rotary positions, as wide as their rows
        self.seen = {}  # "ids": of all visible positions, once a source has asked for them
        self.start = start  # the position of the first new token
        self.stored = cache is not None and cache.stored  # rows of tables, as any values

    @property
    def x0(self):
        """The stream that enters the first block: the embedding, after norm and smear if any."""
        return self.streams[0]

    def raw_of(self, at):
        """Layer `at`'s own value projection, for a term that reads it (B, T, G, D)."""
        return made(self.raw, at)

    def rows_of(self, at):
        """The new rows that layer `at` attends to, for a term that reads them (B, T, G, D): of a
        table by id, or of another layer, no part has made them yet."""
        if at not in self.rows and at in self.values:
            value = self.values[at]
            new = value.over(self.new(value.kept())).dense()
            self.rows[at] = new.to(self.queries[at].dtype)
        return made(self.rows, at)

    def keep(self, name, new, last=None):
        """The one line that makes training, prefill and decode the same path.

        In training the identity; in decoding, remember the new rows and return all visible ones.
        `last`: only that many rows stay for the next step.
        """
        return new if self.cache is None else self.cache.bring(name, new, last)

    def keep_rows(self, name, at, new):
        """keep() for rows of layer `at`: with rings, as many as its widest reader's window."""
        last = None
        if self.cache is not None and self.cache.rings:
            last = self.reach[at] or None
        return self.keep((name, at), new, last)

    def before(self, name, new):
        """The row before each new one (B, T, …), zeros before the first: one row is kept."""
        rows = self.keep(name, new, last=1)  # (B, T or T + 1, …)
        return F.pad(rows, (0, 0, 1, 0))[:, -new.shape[1] - 1 : -1]

    def token_ids(self):
        """Every visible token id (B, S), kept once for all layers. No ring: some reader is long."""
        if "ids" not in self.seen:
            self.seen["ids"] = self.keep("ids", self.ids.int())
        return self.seen["ids"]

    # ---- which rows belong together? ----------------------------------------------------------
    def positions(self):
        """Of the new tokens (T,)."""
        end = self.start + self.ids.shape[1]
        return torch.arange(self.start, end, device=self.ids.device)

    def new(self, rows):
        """Of visible rows (B, S, …) those of the new tokens (B, T, …)."""
        return self.last(rows, self.ids.shape[1])

    def last(self, rows, s):
        """The last s of visible rows (B, S, …): with rings, layers reach back differently."""
        return rows if rows.shape[1] == s else rows[:, rows.shape[1] - s :]

    def lined_up(self, k, value):
        """Keys and values of as many tokens as both reach back to."""
        kept = value.kept()
        s = min(k.shape[1], kept.shape[1])
        return self.last(k, s), value.over(self.last(kept, s))

    def lengths_of(self, rows):
        """How many of these rows are text (B,); None: all of them."""
        return self.lengths

    def end(self):
        """The pass is over: what it brought is kept."""
        if self.cache is not None:
            self.cache.end(self.ids.shape[1])


def made(rows, at):
    """rows[at], or the reason why no term can stand on them."""
    if at not in rows:
        raise ValueError(
            f"layer {at} makes no values that another term could read: give it a source with W_V "
            "on the layer's own stream"
        )
    return rows[at]
