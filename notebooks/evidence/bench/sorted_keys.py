"""What if the keys of a finished text were permuted by token, once? Equal tokens are neighbours
then, and one table row a run is read.

It needs a copy of all keys, so no model of ours keeps such a cache; decode.py measures it beside
the others. Plain PyTorch without gradients, equal to the reference within TOLERANCE."""

import torch

from minimal.kernels.check import want
from minimal.kernels.histogram import finish, masses, weighted_rows


class SortedCache:
    """A finished prefix, permuted by token id: attention does not care about the order of keys that
    carry their positions inside. New tokens follow as they arrive, each a run of its own. No window
    can be applied."""

    def __init__(self, k, ids, room=256):
        (B, S, G, D) = k.shape
        ids, order = ids.sort(dim=1, stable=True)

        # Keys by token and by head: a head's keys lie together.
        self.keys = k.new_empty(B, G, S + room, D)
        for b in range(B):
            self.keys[b, :, :S] = k[b, order[b]].transpose(0, 1)

        # Runs of equal tokens: which token, how many keys. Unused runs have none.
        runs = [ids[b].unique_consecutive(return_counts=True) for b in range(B)]
        self.filled = S
        self.runs = max(len(tokens) for tokens, _ in runs)
        self.tokens = ids.new_zeros(B, self.runs + room)
        self.counts = ids.new_zeros(B, G, self.runs + room, dtype=torch.int64)
        for b, (tokens, counts) in enumerate(runs):
            self.tokens[b, : len(tokens)] = tokens
            self.counts[b, :, : len(tokens)] = counts

    def append(self, k, ids):
        """k (B, T, G, D), ids (B, T) of new tokens."""
        T, room = k.shape[1], self.keys.shape[2] - self.filled
        full = "the sorted cache has room for {} more tokens, got {}: make it with more room"
        want(T <= room, full, room, T)
        self.keys[:, :, self.filled : self.filled + T] = k.transpose(1, 2)
        self.tokens[:, self.runs : self.runs + T] = ids
        self.counts[:, :, self.runs : self.runs + T] = 1
        self.filled, self.runs = self.filled + T, self.runs + T

    @torch.no_grad()
    def attend(self, q, table, gain=None, *, scale=None, bound=None):
        """q (B, 1, H, D), which sees everything in the cache."""
        want(q.shape[1] == 1, "sorted decode wants one query a sequence, got {}", q.shape[1])
        keys = self.keys[:, :, : self.filled].transpose(1, 2)
        scale = q.shape[-1] ** -0.5 if scale is None else scale
        mass, total = masses(q, keys, None, scale, bound, table.dtype)
        by_key = mass.transpose(2, 3).contiguous()  # (B, G, S, R)
        lengths = self.counts[:, :, : self.runs].contiguous()
        by_run = torch.segment_reduce(
            by_key, "sum", lengths=lengths, axis=2, unsafe=True, initial=0
        )  # (B, G, runs, R)
        sums = weighted_rows(table, self.tokens[:, : self.runs], by_run.transpose(2, 3))
        return finish(sums, total, gain, q)
