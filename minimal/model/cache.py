"""What does decoding remember? The KV cache: tensors that grow, are laid out once, or in rings."""

import weakref

import torch

SLACK = 128  # spare rows of a ring: it moves to the front once every so many tokens, not at each


def laid_out(new, room):
    """A buffer of zeros for `room` rows like `new`. Rows of heads (B, room, G, D) lie head by head:
    attention reads one head after another."""
    batch, _, *row = new.shape
    if len(row) != 2:
        return new.new_zeros(batch, room, *row)
    heads, width = row
    return new.new_zeros(batch, heads, room, width).transpose(1, 2)


class Cache:
    """What decoding keeps: one tensor a name, rows along dim 1.

    Without `capacity` it holds exactly the rows it needs (bytes equal the formulas) and copies them
    as it grows; with it, buffers are laid out once and filled in place. `rings`: layers with a
    window keep no more rows than they can see. `stored`: rows of a table are kept like any values;
    a short past is read faster so than it is named.

    A pass that ends is kept whole, and of one that is cut off nothing: until `end`, new rows stand
    behind those in use or in a tensor of their own, so the next pass goes on from where it was.
    """

    def __init__(self, capacity=None, rings=False, stored=False):
        self.capacity, self.rings, self.stored = capacity, rings, stored
        self.kept = {}  # name -> rows, or the buffer that holds them
        self.filled = {}  # name -> rows of its buffer in use
        self.length = 0  # tokens so far
        self.stays = {}  # name -> rows that stay of a buffer that is a ring
        self.coming = {}  # name -> (rows or buffer, rows in use): of the pass that goes on
        self.model = None  # a weak reference to the model whose rows these are

    @property
    def batch(self):
        """Sequences held; None: nothing yet."""
        for rows in self.kept.values():
            return len(rows)
        return None

    # ---- one pass -----------------------------------------------------------------------------
    def begin(self, model):
        """A pass of `model` over this cache. -> the position of its first token"""
        if self.model is None:
            self.model = weakref.ref(model)
        if self.model() is not model:
            raise ValueError(
                "the cache holds another model's rows: give each model a cache of its own"
            )
        self.coming = {}
        return self.length

    def append(self, name, new, last=None):
        """Remember `new` and return all that is visible, kept and new. `last`: how many stay."""
        rows = self.bring(name, new, last)
        self.end(tokens=0)
        return rows

    def bring(self, name, new, last=None):
        """append() within a pass: nothing is kept before its end."""
        if self.capacity is not None:
            return self.place(name, new, last)
        rows = torch.cat([self.kept[name], new], 1) if name in self.kept else new
        extra = 0 if last is None else rows.shape[1] - last
        # a slice alone is a view, and a view would hold all rows
        stay = rows[:, extra:].clone() if extra > 0 else rows
        self.coming[name] = stay, stay.shape[1]
        return rows

    def end(self, tokens):
        """The pass has ended: what it brought is kept."""
        kept, filled = dict(self.kept), dict(self.filled)
        for name, (rows, used) in self.coming.items():
            kept[name], filled[name] = rows, used
        length = self.length + tokens
        # no call between these: an interrupt comes before all of them, or after
        self.kept, self.filled, self.length, self.coming = kept, filled, length, {}

    # ---- buffers ------------------------------------------------------------------------------
    def room(self, last):
        """Rows of the buffer laid out for a layer of which `last` stay (None: all)."""
        return min(self.capacity, last + max(last, SLACK)) if last else self.capacity

    def place(self, name, new, last):
        """bring() into a buffer: layers grow to the right, a full ring begins a new buffer."""
        at, t, room = self.filled.get(name, 0), new.shape[1], self.room(last)
        if at + t > room and (not last or last > room):
            self.refuse(at + t)
        if last and last <= room:
            self.stays[name] = last
        buffer = self.kept[name] if name in self.kept else laid_out(new, room)
        seen = min(at, last) if last else at  # older rows that the new ones may see
        # the ring is full: its last rows go to the front of a new one
        if at + t > room:
            rows = torch.cat([buffer[:, at - seen : at], new], 1)  # (B, seen + T, G, D)
            stay = min(last, seen + t)
            buffer = laid_out(new, room)
            buffer[:, :stay] = rows[:, -stay:]
            self.coming[name] = buffer, stay
            return rows
        # there is room
        buffer[:, at : at + t] = new
        self.coming[name] = buffer, at + t
        return buffer[:, at - seen : at + t]

    def refuse(self, tokens):
        raise ValueError(
            f"the cache has room for {self.capacity} tokens, wanted {tokens}: "
            "make it with a larger capacity"
        )

    def make_room(self):
        """Room for one token more in every buffer: the last rows of a full ring move to its front.

        They fit before the place where they stand, so until they are counted they stand in both.
        A ring that takes more than half of the capacity has no such place."""
        for name, buffer in self.kept.items():
            at, last = self.filled[name], self.stays.get(name)
            if at < buffer.shape[1]:
                continue
            if not last or at < 2 * last:
                self.refuse(at + 1)
            buffer[:, :last] = buffer[:, at - last : at]
            self.filled[name] = last

    # ---- the whole ----------------------------------------------------------------------------
    def bytes(self):
        """Bytes really held, each storage counted once."""
        storages = [rows.untyped_storage() for rows in self.kept.values()]
        return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())

    def expand(self, n):
        """This cache for n copies of its one sequence; the copy grows, the original does not."""
        copy = Cache(self.capacity, self.rings, self.stored)
        for name, rows in self.kept.items():
            many = rows.expand(n, *rows.shape[1:])
            copy.kept[name] = many.clone() if self.capacity else many
        copy.filled, copy.stays = dict(self.filled), dict(self.stays)
        copy.length, copy.model = self.length, self.model
        return copy
