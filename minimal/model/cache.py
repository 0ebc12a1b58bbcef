"""What does decoding remember? The KV cache: one tensor a name, growing, laid out once, or in rings."""

import torch

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
        kept = rows if last is None else rows[:, max(0, rows.shape[1] - last) :]
        self.kept[name] = (
            kept.clone() if kept.shape != rows.shape else kept
        )  # a view would hold all rows
        return rows

    def room(self, last):
        """Rows of the buffer laid out for a layer of which `last` stay (None: all)."""
        return min(self.capacity, last + SLACK) if last else self.capacity

    def place(self, name, new, last):
        """append() into a buffer that exists: full layers grow to the right, rings move to the front when full."""
        at, t, room = self.filled.get(name, 0), new.shape[1], self.room(last)
        if at + t > room and (not last or last > room):
            raise ValueError(
                f"the cache has room for {self.capacity} tokens, {at + t} came: "
                f"make it with a larger capacity"
            )
        if name not in self.kept:
            self.kept[name] = new.new_empty(new.shape[0], room, *new.shape[2:])
        buffer, kept = self.kept[name], min(at, last or at)
        if at + t > room:
            rows = torch.cat([buffer[:, at - kept : at], new], 1)  # (B, kept + T, G, D)
            self.filled[name] = at = min(last, kept + t)
            buffer[:, :at] = rows[:, -at:]
            return rows
        buffer[:, at : at + t] = new
        self.filled[name] = at + t
        return buffer[:, at - kept : at + t]

    def bytes(self):
        """Bytes really held, each storage counted once."""
        storages = {
            t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in self.kept.values()
        }
        return sum(storages.values())

    def expand(self, n):
        """This cache for n copies of its one sequence; growing the copy leaves the original alone."""
        copy = Cache(self.capacity, self.rings)
        copy.kept = {
            name: t.expand(n, *t.shape[1:]).clone() if self.capacity else t.expand(n, *t.shape[1:])
            for name, t in self.kept.items()
        }
        copy.filled, copy.length = dict(self.filled), self.length
        return copy
