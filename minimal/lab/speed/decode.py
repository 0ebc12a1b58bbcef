"""What does a decode step cost on this CPU, by each way of having values? Ratios within one run, so that a busy machine
hurts all ways alike: every round times each way once, and the medians of the rounds are reported.

    python -m minimal.lab.speed.decode [--lengths 8192 32768 …] [--threads 2]        make bench PART=decode,dva

v_cache      keys and values stored, PyTorch's attention
products     the same cache by two plain products: the fastest that we found for a stored V, and so the hardest rival
materialise  the paper's way: gather all values from the table, then PyTorch's attention
rows         the gather fused: a weighted sum of table rows, no V
histogram    masses by token, then the whole table once
sorted       the prefix permuted by token once, one row a run
"""

import argparse
import json
import statistics

import torch
import torch.nn.functional as F

from minimal.kernels.histogram import (
    SortedCache,
    finish,
    histogram_bytes,
    histogram_decode,
    masses,
    rows_bytes,
    rows_decode,
    sorted_bytes,
    weighted_rows,
)
from minimal.lab.timing import in_turn, ratio, zipf

LENGTHS = (8192, 32768, 131072, 262144)


def decode_ways(S, H, D, V, seed=0):
    """The ways over one text: QK norm with its gains of 1.2 bounds logits by 1.44 sqrt(D); caches are head-major."""
    made = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(1, H, n, D, generator=made) for n in (1, S, S))
    q, k = (1.2 * F.rms_norm(x, (D,)) for x in (q, k))
    ids, gain, bound = zipf(V, S, made)[None], torch.tensor(0.7), 1.44 * D**0.5
    table = torch.randn(H, V, D, generator=made).transpose(0, 1)  # (V, H, D), head-major
    embedding = table.reshape(V, H * D)  # token-major, as nn.Embedding has it
    v[:] = table[ids[0]].permute(1, 0, 2)  # so that all ways have one answer
    prefix = SortedCache(k.transpose(1, 2), ids, room=0)
    heads = q.transpose(1, 2), k.transpose(1, 2)  # (1, 1, H, D), (1, S, H, D)

    def products():
        mass, total = masses(*heads, None, D**-0.5, bound, table)  # (1, H, S, 1), (1, H, 1, 1)
        every = torch.arange(S, dtype=torch.int32)[
            None
        ]  # a stored V: a table with a row a position
        return finish(
            weighted_rows(v[0].transpose(0, 1), every, mass.transpose(2, 3)), total, gain, heads[0]
        )

    def materialise():
        values = F.embedding(ids, embedding).view(1, S, H, D).transpose(1, 2)
        return F.scaled_dot_product_attention(q, k, values).transpose(1, 2) * gain

    return ids, dict(
        v_cache=lambda: F.scaled_dot_product_attention(q, k, v).transpose(1, 2) * gain,
        products=products,
        materialise=materialise,
        rows=lambda: rows_decode(*heads, table, ids, gain, bound=bound),
        histogram=lambda: histogram_decode(*heads, table, ids, gain, bound=bound),
        sorted=lambda: prefix.attend(heads[0], table, gain, bound=bound),
    )


@torch.no_grad()
def decode(lengths=LENGTHS, H=6, D=128, V=32768, rounds=9):
    """{length: {way: median ms, "faster": {way: times faster than v_cache}, "floor": {way: … if bytes were all}}}."""
    found = {}
    for S in lengths:
        ids, ways = decode_ways(S, H, D, V)
        answers = {name: way() for name, way in ways.items()}
        worst = max((answer - answers["v_cache"]).abs().max().item() for answer in answers.values())
        if not worst < 1e-4:
            raise AssertionError(
                f"at {S} keys the ways differ by {worst}: there is nothing to time"
            )
        taken = in_turn(ways, rounds)
        sizes, distinct = (1, 1, S, H, H, D), ids.unique().numel()
        moved = dict(
            rows=rows_bytes(*sizes, V, distinct=distinct)[0],
            histogram=histogram_bytes(*sizes, V),
            sorted=sorted_bytes(*sizes, distinct),
        )
        found[str(S)] = dict(
            {name: statistics.median(ms) for name, ms in taken.items()},
            faster={name: ratio(taken, "v_cache", name) for name in ways},
            histogram_over_materialise=ratio(taken, "materialise", "histogram"),
            floor={name: 2 * S * H * D * 4 / count for name, count in moved.items()},
            distinct=distinct,
        )
        report(S, found[str(S)])
    return found


def report(S, row):
    print(
        f"decode, {S:,} keys, {row['distinct']:,} distinct tokens, {torch.get_num_threads()} threads "
        "(times faster than the V cache; in brackets what bytes alone would give)"
    )
    for name, times in row["faster"].items():
        floor = f" ({row['floor'][name]:.2f})" if name in row["floor"] else ""
        print(f"  {name:12}{row[name]:9.1f} ms {times:7.2f}{floor}")
    print(
        f"  histogram is {row['histogram_over_materialise']:.1f} times as fast as the paper's way"
    )


@torch.no_grad()
def dva(n=512, d=768, heads=12, rounds=15):
    """Dynamic value attention, one head of width d, against standard attention with 12 heads: by its identity, by two
    calls of PyTorch's attention, and by its definition, which forms every pair's own value (n * n * d numbers)."""
    from minimal.kernels.dynamic_values import dynamic_values

    q, k, v, qr, kr = torch.randn(5, 1, n, 1, d, generator=torch.Generator().manual_seed(0)).unbind(
        0
    )
    hidden = torch.ones(n, n, dtype=torch.bool).triu(1)

    def fused(q, k, v):
        return F.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, v)), is_causal=True
        ).transpose(1, 2)

    def pairs():
        weight = (
            (q[0, :, 0] @ k[0, :, 0].T * d**-0.5).masked_fill(hidden, float("-inf")).softmax(-1)
        )  # (n, n)
        own = v[0, None, :, 0] + qr[0, :, None, 0] * kr[0, None, :, 0]  # (n, n, d)
        return torch.einsum("ts,tsd->td", weight, own)[None, :, None]

    ways = dict(
        standard=lambda: fused(*(x.view(1, n, heads, -1) for x in (q, k, v))),
        identity=lambda: dynamic_values(q, k, v, qr, kr),
        two_calls=lambda: fused(q, k, v) + qr * fused(q, k, kr),
    )
    worst = max(
        (way() - pairs()).abs().max().item() for way in (ways["identity"], ways["two_calls"])
    )
    if not worst < 1e-4:
        raise AssertionError(f"the identity is off by {worst}")
    taken, slow = in_turn(ways, rounds), in_turn(dict(standard=ways["standard"], pairs=pairs), 3)
    found = dict(
        {name: statistics.median(ms) for name, ms in taken.items()},
        n=n,
        d=d,
        pairs=statistics.median(slow["pairs"]),
        identity_over_standard=ratio(taken, "identity", "standard"),
        two_calls_over_standard=ratio(taken, "two_calls", "standard"),
        pairs_over_standard=ratio(slow, "pairs", "standard"),
    )
    print(
        f"dva, n = {n}, d = {d}: standard {found['standard']:.1f} ms; as many times that: "
        f"identity {found['identity_over_standard']:.2f}, two calls {found['two_calls_over_standard']:.2f}, "
        f"every pair's own value {found['pairs_over_standard']:.0f}"
    )
    return found


def main():
    ask = argparse.ArgumentParser(
        prog="python -m minimal.lab.speed.decode", description=__doc__.splitlines()[0]
    )
    ask.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    ask.add_argument("--rounds", type=int, default=9)
    ask.add_argument("--threads", type=int, default=2)
    asked = ask.parse_args()
    torch.set_num_threads(asked.threads)
    print(json.dumps(dict(decode_cpu=decode(asked.lengths, rounds=asked.rounds), dva=dva())))


if __name__ == "__main__":
    main()
