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
        v = F.embedding(self.ids, self.table.flatten(1))  # indexing would do, with a much slower gradient
        return v.unflatten(-1, self.table.shape[1:])  # (B, S, G, D)


SLACK = 128  # rows of room at the end of a ring: it is moved to the front once every so many tokens, not at each


class Cache:
    """What decoding keeps: one tensor a name, rows along dim 1.

    Without `capacity` it holds exactly the rows it needs (bytes equal the formulas) and copies them as it grows; with
    it, buffers are laid out once and filled in place. `rings`: layers with a window keep no more rows than they can see.
    """

    def __init__(self, capacity=None, rings=False):
        self.capacity, self.rings = capacity, rings
        self.kept, self.filled, self.length = {}, {}, 0

    def append(self, name, new, last=None):
        """Remember `new`, return everything visible (the kept rows and the new ones). `last`: how many stay."""
        if self.capacity is not None:
            return self.place(name, new, last)
        rows = torch.cat([self.kept[name], new], 1) if name in self.kept else new
        kept = rows if last is None else rows[:, max(0, rows.shape[1] - last):]
        self.kept[name] = kept.clone() if kept.shape != rows.shape else kept  # a view would hold all rows
        return rows

    def room(self, last):
        """Rows of the buffer laid out for a layer of which `last` stay (None: all)."""
        return min(self.capacity, last + SLACK) if last else self.capacity

    def place(self, name, new, last):
        """append() into a buffer that exists: full layers grow to the right, rings move to the front when full."""
        at, t, room = self.filled.get(name, 0), new.shape[1], self.room(last)
        if at + t > room and (not last or last > room):
            raise ValueError(f"the cache has room for {self.capacity} tokens, {at + t} came: "
                             f"make it with a larger capacity")
        if name not in self.kept:
            self.kept[name] = new.new_empty(new.shape[0], room, *new.shape[2:])
        buffer, kept = self.kept[name], min(at, last or at)
        if at + t > room:
            rows = torch.cat([buffer[:, at - kept:at], new], 1)  # (B, kept + T, G, D)
            self.filled[name] = at = min(last, kept + t)
            buffer[:, :at] = rows[:, -at:]
            return rows
        buffer[:, at:at + t] = new
        self.filled[name] = at + t
        return buffer[:, at - kept:at + t]

    def bytes(self):
        """Bytes really held, each storage counted once."""
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in self.kept.values()}
        return sum(storages.values())

    def expand(self, n):
        """This cache for n copies of its one sequence; growing the copy leaves the original alone."""
        copy = Cache(self.capacity, self.rings)
        copy.kept = {name: t.expand(n, *t.shape[1:]).clone() if self.capacity else t.expand(n, *t.shape[1:])
                     for name, t in self.kept.items()}
        copy.filled, copy.length = dict(self.filled), self.length
        return copy


class Made(dict):
    """New rows by layer. A reader that asks for what no layer made has met a source it cannot stand on."""

    def __missing__(self, at):
        raise ValueError(f"layer {at} makes no values that another term could read: give it a source with W_V on "
                         "the layer's own stream")


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
