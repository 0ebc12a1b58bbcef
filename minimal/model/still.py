"""What stays the same from one new token to the next? Everything but a few numbers.

A decode step at a past of 1,000 tokens and one at 1,001 differ in how many rows are in use. Where
that stands in a tensor, and each step is shown the whole buffer and told how much of it is text,
no shape changes: the step can be compiled, or recorded once and replayed. `Still` is the tape of
such a step; sources and ways to read do not know which tape they are given.
"""

import time
import weakref

import torch

from minimal.kernels.recorded import Made, Recorded, on_gpu
from minimal.model import checks
from minimal.model.tape import Tape

SHORTEST = 64  # rows that a step is shown at least

TRIES = 5  # tokens of each way: the first two are launched one by one, the third is recorded


class Still(Tape):
    """One new token of every text, over buffers that are laid out.

    `buffers`: {name: rows}. `used`: {rows that are shown: how many of them hold older tokens (1,)};
    all rows that are shown in the same number belong to the same tokens."""

    def __init__(self, model, ids, position, buffers, used, windows, stored):
        super().__init__(ids, model.banks, windows=windows)
        self.stored = stored
        self.position, self.buffers, self.used = position, buffers, used
        self.bucket = max(used)

    def keep(self, name, new, last=None):
        """The new row into its place. -> all rows that are shown, whatever the others hold"""
        buffer = self.buffers[name]
        shown = min(self.bucket, buffer.shape[1])
        buffer.index_copy_(1, self.used[shown], new)
        return buffer[:, :shown]

    def keep_rows(self, name, at, new):
        return self.keep((name, at), new)

    def before(self, name, new):
        rows = self.keep(name, new)
        at = self.used[rows.shape[1]]
        row = rows.index_select(1, (at - 1).clamp(min=0))
        return torch.where(at > 0, row, 0)

    # ---- which rows belong together? ----------------------------------------------------------
    def positions(self):
        return self.position

    def new(self, rows):
        return rows.index_select(1, self.used[rows.shape[1]])

    def last(self, rows, s):
        """Rows of the tokens to which another number of rows, s, belongs."""
        shown = rows.shape[1]
        if shown == s:
            return rows
        at = torch.arange(s, device=rows.device) + self.used[shown] - self.used[s]
        return rows.index_select(1, at.clamp(0, shown - 1))

    def lengths_of(self, rows):
        return (self.used[rows.shape[1]] + 1).expand(len(rows))

    def end(self):
        """Numbers move between two steps, not in them: see Stand.count."""


class Stand:
    """A cache that texts have begun, and the numbers that its next step reads."""

    def __init__(self, model, cache):
        cache.begin(model)
        self.model, self.cache = model, cache
        rooms = {rows.shape[1] for rows in cache.kept.values()}
        self.used = {room: self.number() for room in (cache.capacity, *rooms)}
        self.position = self.number()

    def number(self):
        return torch.zeros(1, dtype=torch.long, device=self.model.device)

    def ready(self):
        """Write the numbers of the next step. -> how many rows it is shown"""
        cache = self.cache
        checks.positions(self.model, cache.length + 1)
        cache.make_room()
        self.position.fill_(cache.length)
        filled = {}
        for name, rows in cache.kept.items():
            if filled.setdefault(rows.shape[1], cache.filled[name]) != cache.filled[name]:
                cache.refuse(cache.length + 1)  # rings that are cut short by it, and turned over
        for room, rows in filled.items():
            self.used[room].fill_(rows)
        return bucket_of(cache.length + 1, cache.capacity)

    def shown(self, bucket):
        """{rows that are shown: how many of them are in use}"""
        found = {room: used for room, used in self.used.items() if room < bucket}
        whole = bucket == self.cache.capacity
        return found | {bucket: self.used[bucket] if whole else self.position}

    def count(self):
        """The step is over: what it wrote is kept."""
        cache = self.cache
        cache.coming = {name: (rows, cache.filled[name] + 1) for name, rows in cache.kept.items()}
        cache.end(tokens=1)


def bucket_of(tokens, capacity):
    """The rows that are shown for so many tokens: all, or a fourth as many, or a fourth of that."""
    rows = capacity
    while rows // 4 >= max(tokens, SHORTEST):
        rows //= 4
    return rows


# ---- a whole token ------------------------------------------------------------------------------
def token(model, windows, stored, choose, ids, noise, position, buffers, used):
    """Embedding, layers, head, and the choice of the next id (B, 1)."""
    tape = Still(model, ids, position, buffers, used, windows, stored)
    logits = model.logits(model.hidden(ids, tape))[:, -1]  # (B, V)
    return choose(logits, noise)


class StillStep:
    """token() over a cache that texts have begun, again and again.

    On a GPU it is recorded, once for each bucket; a recording holds addresses, so it lives as long
    as this step, its cache, and the cache's buffers. `compile`: by PyTorch's compiler first, which
    joins small operations into few; what it made serves every cache of this shape."""

    def __init__(self, model, cache, windows, choose, compile=()):
        self.model, self.choose, self.compile = model, choose, compile
        self.windows = list(model.windows if windows is None else windows)
        self.stand = Stand(model, cache)
        self.recorded, self.seen = None, {}  # the recording, and the buffers that it writes into

    def __call__(self, ids, noise):
        bucket = self.stand.ready()
        given = (ids,) if noise is None else (ids, noise)
        take = self.recording() if on_gpu(self.model.device) else self.step
        (chosen,) = take(bucket, *given)
        self.stand.count()
        return chosen

    def recording(self):
        """Another one where a pass between two steps has put a new buffer in the place of a ring's:
        the old one would go on writing into buffers that nobody keeps."""
        kept = self.stand.cache.kept
        same = [rows is self.seen.get(name) for name, rows in kept.items()]
        if self.recorded is None or not all(same):
            self.recorded, self.seen = Recorded(self.step, self.model.device), dict(kept)
        return self.recorded

    def step(self, bucket, ids, noise=None):
        stand = self.stand
        position, buffers, used = stand.position, stand.cache.kept, stand.shown(bucket)

        def work():
            how = self.model, self.windows, stand.cache.stored, self.choose
            return (token(*how, ids, noise, position, buffers, used),)

        if not self.compile:
            return work()
        tensors = [position, *buffers.values(), *used.values(), ids, noise]
        return made_for(self.model, bucket, stand, self.windows, self.compile)(work, *tensors)


def made_for(model, bucket, stand, windows, dials):
    """The compiled step of this model for caches of this shape."""
    cache = stand.cache
    where = model.device, model.dtype, model.embed.weight.dtype, torch.get_num_threads()
    key = bucket, cache.capacity, cache.rings, cache.stored, cache.batch, *windows, *dials, *where
    return MADE.setdefault(model, {}).setdefault(key, Made())


MADE = weakref.WeakKeyDictionary()  # model -> its compiled steps


class Tried:
    """Two ways to take the same step: each takes some, then all are the faster one's."""

    def __init__(self, still, passes, clock=time.perf_counter):
        self.ways, self.clock = (still, passes), clock
        self.taken = {way: [] for way in self.ways}

    def __call__(self, ids, noise):
        left = [way for way in self.ways if len(self.taken[way]) < TRIES]
        if not left:
            return min(self.ways, key=lambda way: min(self.taken[way]))(ids, noise)
        start = self.clock()
        chosen = left[0](ids, noise)
        chosen.cpu()  # the clock stops when the device has answered
        self.taken[left[0]].append(self.clock() - start)
        return chosen
