"""What does a decode step cost on this CPU, by each way of having values? Ratios within one run.

So a busy machine hurts all ways alike: every round times each way once, and medians are reported.

    make bench PART=decode,dva
    python -m evidence.bench.decode [--lengths 8192 32768 …] [--threads 2]

v_cache      keys and values stored, PyTorch's attention
products     the same cache by two plain products: the fastest that we found for a stored V, and so
             the strongest baseline
materialise  the paper's way: gather all values from the table, then PyTorch's attention
rows         the gather fused: a weighted sum of table rows, no V
histogram    masses by token, then once every row that occurs, or the whole table
sorted       the prefix permuted by token once, one row a run
front_door   what gather_attention takes by itself, by size and by one measurement
"""

import json
from functools import partial

import torch
import torch.nn.functional as F

from evidence.bench.graphs import histogram_bytes, rows_bytes, sorted_bytes
from evidence.bench.table import LENGTHS
from minimal.bench.timing import in_turn, medians, ratio, zipf
from minimal.command import command, number
from minimal.kernels.check import want
from minimal.kernels.dynamic_values import dynamic_values
from minimal.kernels.gather import gather_attention
from minimal.kernels.histogram import (
    finish,
    histogram_decode,
    masses,
    rows_decode,
    weighted_rows,
)

# ---- keys by token -------------------------------------------------------------------------------

# What if the keys of a finished text were permuted by token, once? Equal tokens are neighbours
# then, and one table row a run is read.
#
# It needs a copy of all keys, so no model of ours keeps such a cache; decode.py measures it beside
# the others. Plain PyTorch without gradients, equal to the reference within TOLERANCE.


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


BEST_OF = ("rows", "sorted", "v_cache")  # what the front door should never be slower than


def decode_ways(S, H, D, V, seed=0):
    """(ids, the ways over one text). Caches are head-major.

    QK norm with its gains of 1.2 bounds logits by 1.44 sqrt(D)."""
    # one text: queries, keys, ids, a table, and the values that it names
    made = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, H, n, D, generator=made) for n in (1, S, S))
    q, k = (1.2 * F.rms_norm(x, (D,)) for x in (q, k))
    ids, gain, bound = zipf(V, S, made)[None], torch.tensor(0.7), 1.44 * D**0.5
    table = torch.randn(H, V, D, generator=made).transpose(0, 1)  # (V, H, D), head-major
    embedding = table.reshape(V, H * D)  # token-major, as nn.Embedding has it
    v[:] = table[ids[0]].permute(1, 0, 2)  # so that all ways have one answer
    q1, k1 = q.transpose(1, 2), k.transpose(1, 2)  # (1, 1, H, D), (1, S, H, D)
    prefix = SortedCache(k1, ids, room=0)

    # the ways that need more than a line
    def products():
        mass, total = masses(q1, k1, None, D**-0.5, bound, v.dtype)  # (1, H, 1, S), (1, H, 1, 1)
        every = torch.arange(S, dtype=torch.int32)[None]
        stored = v[0].transpose(0, 1)  # a stored V is a table with a row a position
        return finish(weighted_rows(stored, every, mass), total, gain, q1)

    def materialise():
        values = F.embedding(ids, embedding).view(1, S, H, D).transpose(1, 2)
        return F.scaled_dot_product_attention(q, k, values).transpose(1, 2) * gain

    given = (q1, k1, table, ids, gain)
    return ids, dict(
        v_cache=lambda: F.scaled_dot_product_attention(q, k, v).transpose(1, 2) * gain,
        products=products,
        materialise=materialise,
        rows=lambda: rows_decode(*given, bound=bound),
        histogram=lambda: histogram_decode(*given, bound=bound),
        sorted=lambda: prefix.attend(q1, table, gain, bound=bound),
        front_door=lambda: gather_attention(*given, bound=bound),
    )


def agree(ways, most=1e-4):
    """All ways give one answer, or there is nothing to time."""
    answers = {name: way() for name, way in ways.items()}
    first = next(iter(answers.values()))
    for name, answer in answers.items():
        off = (answer - first).abs().max().item()
        if not off < most:
            raise AssertionError(f"{name} is off by {off:.1e}: there is nothing to time")


@torch.no_grad()
def decode(lengths=LENGTHS, H=6, D=128, V=32768, rounds=9):
    """{length: {way: median ms, faster: {way: times the V cache}, floor: the same by bytes}}."""
    found = {}
    for S in lengths:
        ids, ways = decode_ways(S, H, D, V)
        agree(ways)
        taken = in_turn(ways, rounds)
        sizes, distinct = (1, 1, S, H, H, D), ids.unique().numel()
        moved = dict(
            rows=rows_bytes(*sizes, V, distinct=distinct)[0],
            histogram=histogram_bytes(*sizes, V, distinct=distinct),
            sorted=sorted_bytes(*sizes, distinct),
        )
        v_cache_bytes = 2 * S * H * D * 4
        found[str(S)] = dict(
            medians(taken),
            faster={name: ratio(taken, "v_cache", name) for name in ways},
            histogram_over_materialise=ratio(taken, "materialise", "histogram"),
            front_door_over={name: ratio(taken, name, "front_door") for name in BEST_OF},
            floor={name: v_cache_bytes / count for name, count in moved.items()},
            distinct=distinct,
        )
        report(S, found[str(S)])
    return found


def report(S, row):
    threads = torch.get_num_threads()
    print(
        f"decode, {S:,} keys, {row['distinct']:,} distinct tokens, {threads} threads"
        " (times faster than the V cache; in brackets what bytes alone would give)"
    )
    for name, times in row["faster"].items():
        floor = f" ({row['floor'][name]:.2f})" if name in row["floor"] else ""
        print(f"  {name:12}{row[name]:9.1f} ms {times:7.2f}{floor}")
    over = row["histogram_over_materialise"]
    print(f"  histogram is {over:.1f} times as fast as the paper's way")
    over = ", ".join(f"{times:.2f} times {name}" for name, times in row["front_door_over"].items())
    print(f"  front_door is as fast as {over}")


def pairs(q, k, v, qr, kr):
    """Dynamic value attention by its definition: n * n * d numbers. One text, one head."""
    n, d = q.shape[1], q.shape[3]
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)
    score = q[0, :, 0] @ k[0, :, 0].T * d**-0.5
    weight = score.masked_fill(hidden, float("-inf")).softmax(-1)  # (n, n)
    own = v[0, None, :, 0] + qr[0, :, None, 0] * kr[0, None, :, 0]  # (n, n, d)
    return torch.einsum("ts,tsd->td", weight, own)[None, :, None]


@torch.no_grad()
def dva(n=512, d=768, heads=12, rounds=15):
    """Dynamic value attention, one head of width d, against standard attention with 12 heads.

    By its identity, by two calls of PyTorch's attention, and by its definition, which forms every
    pair's own value."""
    drawn = torch.randn(5, 1, n, 1, d, generator=torch.Generator().manual_seed(0))
    q, k, v, qr, kr = streams = drawn.unbind(0)

    def fused(*streams):
        q, k, v = (x.transpose(1, 2) for x in streams)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)

    # right first, then timed
    ways = dict(
        identity=lambda: dynamic_values(*streams),
        two_calls=lambda: fused(q, k, v) + qr * fused(q, k, kr),
    )
    by_definition = partial(pairs, *streams)
    agree(dict(ways, pairs=by_definition))
    ways["standard"] = lambda: fused(*(x.view(1, n, heads, -1) for x in (q, k, v)))
    taken = in_turn(ways, rounds)
    slow = in_turn(dict(standard=ways["standard"], pairs=by_definition), 3)
    found = dict(
        medians(taken),
        n=n,
        d=d,
        pairs=medians(slow)["pairs"],
        identity_over_standard=ratio(taken, "identity", "standard"),
        two_calls_over_standard=ratio(taken, "two_calls", "standard"),
        pairs_over_standard=ratio(slow, "pairs", "standard"),
    )
    print(
        "dva, n = {n}, d = {d}: standard {standard:.1f} ms; as many times that: identity "
        "{identity_over_standard:.2f}, two calls {two_calls_over_standard:.2f}, every pair's own "
        "value {pairs_over_standard:.0f}".format(**found)
    )
    return found


@command("evidence.bench.decode", __doc__.splitlines()[0])
def main(parser, argv):
    parser.add_argument("--lengths", type=number(int, least=1), nargs="+", default=LENGTHS)
    parser.add_argument("--rounds", type=number(int, least=1), default=9)
    parser.add_argument("--threads", type=number(int, least=1, most=1024), default=2)
    asked = parser.parse_args(argv)
    torch.set_num_threads(asked.threads)
    print(json.dumps(dict(decode_cpu=decode(asked.lengths, rounds=asked.rounds), dva=dva())))


if __name__ == "__main__":
    main()
