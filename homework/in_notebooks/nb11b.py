"""The exercises of notebook 11b: one query over a long past, whose values are named by ids."""

import itertools

import numpy as np
import torch

from homework.in_notebooks.kernels import KernelUnit, Launch, blocks, empty, told
from homework.marking import Part, Wrong, normals, slip

unit = KernelUnit(
    "nb11b_decode_and_the_best_kernel",
    "Decode",
    "Each is the text of one program. q is (H, D), k (S, H, D), the table (V, H, D), ids (S,).",
    prelude="import triton\nimport triton.language as tl",
)


def past(S, splits):
    def make(r):
        q, k, table = normals(r, (2, 16), (S, 2, 16), (9, 2, 16))
        return q, k, table, r.integers(0, 6, S), splits, 4

    return make


# ---- split, and join -----------------------------------------------------------------------------


def launch_split(q, k, table, ids, splits, N):
    S, H, D = k.shape
    part, lse = empty(splits, H, D), empty(splits, H)
    each = blocks(S, splits)
    arguments = (q, k, table, ids.int(), part, lse, S, H, each, D**-0.5)
    return Launch((splits, H), arguments, dict(D=D, N=N), (part, lse))


def stretches(
    q, k, table, ids, splits, N, shrink=(True, True), start=lambda s, each: s * each,
    stop=lambda s, each, S: min((s + 1) * each, S), idle=None,
):  # fmt: skip
    """(part, lse, lse less its top), tile by tile, with one of the steps mistaken."""
    (S, H, D), each = k.shape, blocks(len(k), splits)
    part, lse = np.zeros((splits, H, D)), np.full((splits, H), -np.inf)
    logs = lse.copy()
    for s, h in np.ndindex(splits, H):
        top, total, sums = -np.inf, 0.0, np.zeros(D)
        end = stop(s, each, S)
        for first in range(start(s, each), end, N):
            mine = np.arange(first, min(first + N, end))
            score, rows = k[mine, h] @ q[h] / np.sqrt(D), table[ids[mine], h]
            if idle is not None:
                score = np.append(score, [idle] * (N - len(mine)))
                rows = np.concatenate([rows, np.zeros((N - len(mine), D))])
            new = max(top, score.max())
            less, e = np.exp(top - new), np.exp(score - new)
            total = total * (less if shrink[0] else 1) + e.sum()
            sums, top = sums * (less if shrink[1] else 1) + e @ rows, new
        if total:
            part[s, h], logs[s, h] = sums / total, np.log(total)
            lse[s, h] = top + logs[s, h]
    return part, lse, logs


def split_but(*inputs, **how):
    return stretches(*inputs, **how)[:2]


@unit.exercise(
    Part("even splits", 4, past(10, 2)),
    Part("a short last split", 4, past(9, 2)),
    Part("an empty last split", 6, past(5, 4)),
    Wrong(
        "0 / 0",
        6,
        "the last split has no key: its total is 0, and 0 / 0 is NaN, which no weight makes "
        "disappear. Divide by tl.where(total > 0.0, total, 1.0)",
        dict(nothing=np.nan),
    ),
    Wrong(
        "into the neighbour's keys",
        14,
        "your last tile reads on into the next split's keys: the mask is key < stop, not key < S",
        dict(stop=False),
    ),
    slip(
        8,
        "your sums do not shrink when the maximum grows: sums * shrink",
        split_but,
        shrink=(True, False),
    ),
    slip(
        8,
        "your total does not shrink when the maximum grows: total * shrink",
        split_but,
        shrink=(False, True),
    ),
    slip(
        14, "the scores are not multiplied by scale", lambda q, *x: split(q * q.shape[1] ** 0.5, *x)
    ),
    slip(
        14,
        "a split ends at (s + 1) * each: yours reads on to the end of the text",
        split_but,
        stop=lambda s, each, S: S,
    ),
    slip(
        14,
        "a split begins at s * each: yours begins with the text",
        split_but,
        start=lambda s, each: 0,
    ),
    slip(
        14, "lse is top + log(total): top is missing", lambda *x: (split(*x)[0], stretches(*x)[2])
    ),
    slip(
        14,
        "part is the MEAN of the rows: divide the sums by total",
        lambda *x: (split(*x)[0] * np.exp(stretches(*x)[2])[..., None], split(*x)[1]),
    ),
    slip(
        14,
        "k is (S, H, D): key s of head h begins at (s * H + h) * D",
        lambda q, k, *x: split(q, k.reshape(k.shape[1], k.shape[0], -1).swapaxes(0, 1), *x),
    ),
    slip(
        14,
        "your idle lanes count: their score is 0 until tl.where puts -inf there",
        split_but,
        idle=0.0,
    ),
    arguments="q, k, table, ids, part, lse, S, H, each, scale, D: tl.constexpr, N: tl.constexpr",
    launch=launch_split,
    forbids=(told("ids"),),
    hints=[
        "stop = tl.minimum((s + 1) * each, S); the loop runs from s * each to stop. For the last "
        "of 4 splits of 5 keys that is from 6 to 5: not once.",
        "safe = tl.where(total > 0.0, total, 1.0); store sums / safe, and top + tl.log(safe): 0 "
        "and -inf where nothing was seen.",
    ],
    level="medium",
    minutes=20,
)
def split(q, k, table, ids, splits, N, *, nothing=0.0, stop=True):
    """One stretch of keys of one head: part is its mean of rows, lse the log of its sum.

    Program (s, h) has the keys from s * each to (s + 1) * each, those below S. A stretch may be
    empty: then part is 0 and lse is -inf.
    """
    (S, H, D), each = k.shape, blocks(len(k), splits)
    part, lse = np.full((splits, H, D), nothing), np.full((splits, H), -np.inf)
    for s in range(splits):
        end = min((s + 1) * each, S)
        if not stop and s * each < end:
            end = min(s * each + blocks(end - s * each, N) * N, S)
        for h in range(H):
            mine = range(s * each, end)
            if len(mine):
                score = np.array([q[h] @ k[p, h] for p in mine]) / np.sqrt(D)
                e = np.exp(score - score.max())
                part[s, h] = sum(w * table[ids[p], h] for w, p in zip(e, mine, strict=True))
                part[s, h] /= e.sum()
                lse[s, h] = score.max() + np.log(e.sum())
    return part, lse


def launch_combine(part, lse, gain):
    splits, H, D = part.shape
    lse = torch.cat([lse[:-1], torch.full((1, H), float("-inf"))])  # the last stretch was empty
    out = empty(H, D)
    padded = 1 << (splits - 1).bit_length()
    arguments = (part, lse, torch.tensor([gain]), out, H, splits)
    return Launch((H,), arguments, dict(PADDED=padded, D=D), (out,))


def far_from_zero(r):
    """Logarithms of sums that fp32 cannot hold."""
    part, lse = normals(r, (5, 2, 16), (5, 2))
    return part, lse - 200, 0.7


def without_maximum(part, lse, gain):
    lse = lse.astype("f4").copy()
    lse[-1] = -np.inf
    weight = np.exp(lse)
    return gain * (weight[..., None] * part).sum(0) / weight.sum(0)[:, None]


def idle_zero(part, lse, gain):
    """Lanes behind the last split have an lse of 0, and rows of zeros."""
    idle = (1 << (len(part) - 1).bit_length()) - len(part)
    lse = np.concatenate([lse[:-1], np.full((1, 2), -np.inf), np.zeros((idle, 2))])
    weight = np.exp(lse - lse.max(0))
    return gain * (weight[: len(part), :, None] * part).sum(0) / weight.sum(0)[:, None]


def turned(part, lse, gain):
    """lse read as if it were (H, splits)."""
    lse = lse.copy()
    lse[-1] = -np.inf
    weight = lse.reshape(2, -1).T
    weight = np.exp(weight - weight.max(0))
    return gain * (weight[..., None] * part).sum(0) / weight.sum(0)[:, None]


@unit.exercise(
    Part("a power of two of splits", 3, lambda r: (*normals(r, (4, 2, 16), (4, 2)), 0.7)),
    Part("any number of splits", 3, far_from_zero),
    Wrong(
        "plain mean",
        6,
        "you averaged the parts; each counts by exp(lse), so that an empty one counts nothing",
        dict(weighted=False),
    ),
    Wrong("no gain", 6, "the gain multiplies the joined mean, once", dict(gained=False)),
    Wrong(
        "no maximum",
        3,
        "exp(-200) is 0 in fp32, and 0 / 0 is NaN: subtract the largest lse of the head before exp",
        returns=without_maximum,
    ),
    slip(
        6,
        "divide by the sum of the weights",
        lambda part, lse, gain: (
            combine(part, lse, gain) * np.exp(lse[:-1] - lse[:-1].max(0)).sum(0)[:, None]
        ),
    ),
    slip(
        6,
        "divide by the sum of the weights, not by the number of splits",
        lambda part, lse, gain: (
            combine(part, lse, gain)
            * np.exp(lse[:-1] - lse[:-1].max(0)).sum(0)[:, None]
            / len(part)
        ),
    ),
    slip(
        3,
        "your idle lanes loaded 0, and exp of it counts in the sum: other=float('-inf')",
        lambda part, lse, gain: idle_zero(part, lse, gain),
    ),
    slip(
        6,
        "lse is (splits, H): split s of head h stands at s * H + h",
        lambda part, lse, gain: turned(part, lse, gain),
    ),
    slip(
        6,
        "part is (splits, H, D): split s of head h begins at (s * H + h) * D",
        lambda part, lse, gain: combine(part.reshape(2, len(part), -1).swapaxes(0, 1), lse, gain),
    ),
    arguments="part, lse, gain, out, H, splits, PADDED: tl.constexpr, D: tl.constexpr",
    launch=launch_combine,
    hints=[
        "norm = tl.load(lse + s * H + h, mask=s < splits, other=float('-inf')) with "
        "s = tl.arange(0, PADDED); weight = tl.exp(norm - tl.max(norm, 0)).",
        "tl.sum(weight[:, None] * means, 0) / tl.sum(weight, 0), times the gain.",
    ],
    level="easy",
    minutes=8,
)
def combine(part, lse, gain, *, weighted=True, gained=True):
    """One head: its parts (splits, H, D), weighted by the softmax of their lse (splits, H).

    PADDED is the power of two at or above splits. An lse may be -inf, not all of them are, and it
    may lie in the hundreds.
    """
    lse = lse.copy()
    lse[-1] = -np.inf
    weight = np.exp(lse - lse.max(0)) if weighted else np.ones_like(lse)
    mean = (weight[..., None] * part).sum(0) / weight.sum(0)[:, None]
    return mean * (gain if gained else 1)


# ---- count tokens --------------------------------------------------------------------------------


def launch_scatter(q, k, ids, V, bound, N):
    S, H, D = k.shape
    bins = torch.zeros(H, V)
    arguments = (q, k, ids.int(), bins, S, H, V, D**-0.5, bound)
    return Launch((blocks(S, N), H), arguments, dict(D=D, N=N), (bins,), shared=True)


def weights(S):
    def make(r):
        q, k = (
            x / np.sqrt((x**2).mean(-1, keepdims=True)) for x in normals(r, (2, 16), (S, 2, 16))
        )
        return q, k, r.integers(0, 6, S), 8, 4.0, 8

    return make


def binned(
    q, k, ids, V, bound, N, weight=lambda z, bound: np.exp(z - bound), tile=False, first=False,
    idle=False,
):  # fmt: skip
    """bins, with one of the steps mistaken."""
    S, H, D = k.shape
    bins = np.zeros((H, V))
    for start, h in itertools.product(range(0, S, N), range(H)):
        mine = np.arange(N) + (0 if first else start)
        mine = mine[mine < S]
        z = k[mine, h] @ q[h] / np.sqrt(D)
        off = N - len(mine)
        over = max(z.max(), 0 if off else -np.inf) if tile else bound
        np.add.at(bins[h], ids[mine], weight(z, over))
        bins[h, 0] += off * weight(0, bound) if idle else 0
    return bins


def turned_bins(q, k, ids, V, bound, N):
    """Token w of head h at w * H + h."""
    bins = scatter(q, k, ids, V, bound, N)
    return bins.T.reshape(bins.shape)


@unit.exercise(
    Part("whole tiles", 3, weights(16)),
    Part("a ragged end", 5, weights(21)),
    Wrong(
        "stored, not added",
        8,
        "a token that stands twice keeps only its last weight: tl.atomic_add, not tl.store",
        dict(add=False),
    ),
    Wrong(
        "all heads in one row",
        8,
        "each head has its own bins: they begin at h * V",
        dict(heads=False),
    ),
    slip(
        8,
        "a weight is exp(score - bound): exp is missing",
        binned,
        weight=lambda z, bound: z - bound,
    ),
    slip(
        8,
        "bins is (H, V): token w of head h stands at h * V + w",
        lambda q, k, ids, V, bound, N: turned_bins(q, k, ids, V, bound, N),
    ),
    slip(
        8,
        "the scores are not multiplied by scale",
        lambda q, *x: scatter(q * q.shape[1] ** 0.5, *x),
    ),
    slip(
        8,
        "subtract the bound, which is the same for all programs; a tile's own maximum is not",
        binned,
        tile=True,
    ),
    slip(
        8,
        "every head has a query of its own, at q + h * D",
        lambda q, *x: scatter(q[:1] + 0 * q, *x),
    ),
    slip(
        8,
        "program i has the keys from i * N on; yours all have the first",
        binned,
        first=True,
    ),
    slip(5, "your idle lanes add a weight to token 0: mask=key < S", binned, idle=True),
    arguments="q, k, ids, bins, S, H, V, scale, bound, D: tl.constexpr, N: tl.constexpr",
    launch=launch_scatter,
    hints=[
        "mass = tl.exp(tl.sum(keys * query[None, :], 1) * scale - bound): (N,), no maximum.",
        'tl.atomic_add(bins + h * V + token, mass, mask=key < S, sem="relaxed")',
    ],
    level="medium",
    minutes=9,
)
def scatter(q, k, ids, V, bound, N, *, add=True, heads=True):
    """bins[h, w] += exp(score - bound) for N keys of one head, w the key's token; bins is (H, V).

    Program (i, h) has the keys from i * N on, those below S. Scores never pass the bound.
    """
    S, H, D = k.shape
    bins = np.zeros((H, V))
    for h in range(H):
        for p in range(S):
            mass = np.exp(q[h] @ k[p, h] / np.sqrt(D) - bound)
            row = h if heads else 0
            bins[row, ids[p]] = mass + (bins[row, ids[p]] if add else 0)
    return bins


def launch_runs(q, k, ids, bound, N):
    S, H, D = k.shape
    tokens, order = ids.sort(stable=True)
    counts = tokens.unique_consecutive(return_counts=True)[1]
    starts = torch.cat([torch.zeros(1), counts.cumsum(0)]).int()
    mass = empty(len(counts), H)
    arguments = (q, k[order].contiguous(), starts, mass, H, D**-0.5, bound)
    return Launch((len(counts), H), arguments, dict(D=D, N=N), (mass,))


def read(r):
    q, k, ids, _, bound, _ = weights(21)(r)
    return q, k, np.append(ids[:-6], [5] * 6), bound, 4  # six of one kind: more than a tile


def run_masses(q, k, ids, bound, N, keep=lambda p, N: p, weight=lambda z, bound: np.exp(z - bound)):
    """The mass of each run, over other places or of other weights."""
    found = [keep(np.flatnonzero(ids == w), N) for w in sorted(set(ids.tolist()))]
    D = q.shape[1]
    return np.stack(
        [[weight(k[p, h] @ q[h] / np.sqrt(D), bound).sum() for h in range(len(q))] for p in found]
    )


@unit.exercise(
    Part("runs of several lengths", 6, read),
    Wrong(
        "idle lanes counted",
        6,
        "an idle lane's key loaded 0, its score is 0, and exp(0 - bound) is a mass: "
        "tl.where(key < stop, …, 0.0)",
        dict(idle=True),
    ),
    Wrong(
        "one tile only",
        6,
        "a run may fill several tiles: loop from start to stop in steps of N",
        dict(tiles=1),
    ),
    slip(
        6,
        "the mass grows from tile to tile; yours keeps the last",
        run_masses,
        keep=lambda p, N: p[(len(p) - 1) // N * N :],
    ),
    slip(
        6,
        "what is left after the last whole tile is missing: the loop runs to stop",
        run_masses,
        keep=lambda p, N: p[: len(p) // N * N],
    ),
    slip(
        6,
        "the scores are not multiplied by scale",
        lambda q, *x: mass_of_runs(q * q.shape[1] ** 0.5, *x),
    ),
    slip(
        6,
        "a mass is exp(score - bound): exp is missing",
        run_masses,
        weight=lambda z, bound: z,
    ),
    slip(
        6,
        "every head has a query of its own, at q + h * D",
        lambda q, *x: mass_of_runs(q[:1] + 0 * q, *x),
    ),
    arguments="q, k, starts, mass, H, scale, bound, D: tl.constexpr, N: tl.constexpr",
    launch=launch_runs,
    hints=[
        "start and stop are tl.load(starts + run) and tl.load(starts + run + 1), as in token_sums.",
        "total += tl.sum(tl.where(key < stop, tl.exp(score - bound), 0.0), 0); store to "
        "mass + run * H + h + tl.arange(0, 1).",
    ],
    level="medium",
    minutes=9,
)
def mass_of_runs(q, k, ids, bound, N, *, idle=False, tiles=None):
    """The sum of exp(score - bound) over one run of equal tokens, for one head; mass is (runs, H).

    k is sorted by token already: run r has the keys starts[r] to starts[r + 1].
    """
    S, H, D = k.shape
    kinds = sorted(set(ids.tolist()))
    mass = np.zeros((len(kinds), H))
    for i, w in enumerate(kinds):
        mine = np.flatnonzero(ids == w)[: tiles * N if tiles else None]
        off = blocks(len(mine), N) * N - len(mine) if idle else 0
        for h in range(H):
            mass[i, h] = sum(np.exp(q[h] @ k[p, h] / np.sqrt(D) - bound) for p in mine)
            mass[i, h] += off * np.exp(-bound)
    return mass
