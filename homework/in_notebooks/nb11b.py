"""The exercises of notebook 11b: one query over a long past, whose values are named by ids."""

import itertools

import numpy as np
import torch

from homework.in_notebooks.kernels import KernelUnit, Launch, blocks, empty, told
from homework.marking import Part, drawn, normals

unit = KernelUnit("nb11b_decode_and_the_best_kernel", "Decode")


@drawn
def past(r, S, splits, low=0):
    """low: so far below 0 lie all scores; those of the first head grow."""
    q, k, table = normals(r, (2, 16), (S, 2, 16), (9, 2, 16))
    k = k[np.argsort(k[:, 0] @ q[0])]
    k -= low * 4 * q / (q**2).sum(1, keepdims=True)
    return q, k, table, r.integers(0, 6, S), splits, 4


def launch_split(q, k, table, ids, splits, N):
    S, H, D = k.shape
    part, lse = empty(splits, H, D), empty(splits, H)
    each = blocks(S, splits)
    arguments = (q, k, table, ids.int(), part, lse, S, H, each, D**-0.5)
    return Launch((splits, H), arguments, dict(D=D, N=N), (part, lse))


@unit.exercise(
    Part("even splits", 4, past(10, 2)),
    Part("a short last split, scores far below 0", 4, past(9, 2, low=200)),
    Part("an empty last split", 6, past(5, 4)),
    arguments="q, k, table, ids, part, lse, S, H, each, scale, D: tl.constexpr, N: tl.constexpr",
    launch=launch_split,
    forbids=(told("ids"),),
)
def split(q, k, table, ids, splits, N):
    """One stretch of keys of one head: part is its mean of rows, lse the log of its sum.

    Program (s, h) has the keys from s * each to (s + 1) * each, those below S. A stretch may be
    empty: then part is 0 and lse is -inf. q is (H, D), k (S, H, D), table (V, H, D), ids (S,),
    part (splits, H, D), lse (splits, H).
    """
    (S, H, D), each = k.shape, blocks(len(k), splits)
    part, lse = np.zeros((splits, H, D)), np.full((splits, H), -np.inf)
    for s, h in np.ndindex(splits, H):
        top, total, sums = -np.inf, 0.0, np.zeros(D)
        stop = min((s + 1) * each, S)
        for start in range(s * each, stop, N):
            key = np.arange(start, min(start + N, stop))
            score = k[key, h] @ q[h] / np.sqrt(D)
            higher = max(top, score.max())
            shrink, e = np.exp(top - higher), np.exp(score - higher)
            total = total * shrink + e.sum()
            sums = sums * shrink + e @ table[ids[key], h]
            top = higher
        if total:
            part[s, h], lse[s, h] = sums / total, top + np.log(total)
    return part, lse


unit.mistakes("""
takes: medium, 20 minutes
hint: stop = tl.minimum((s + 1) * each, S); the loop runs from s * each to stop. For the last of 4
    | splits of 5 keys that is from 6 to 5: not once.
hint: safe = tl.where(total > 0.0, total, 1.0); store sums / safe, and top + tl.log(safe): 0 and
    | -inf where nothing was seen.
 6 | the last split has no key: its total is 0, and 0 / 0 is NaN, which no weight makes disappear.
   | Divide by tl.where(total > 0.0, total, 1.0)
     np.zeros((splits, H, D)) => np.full((splits, H, D), np.nan)
14 | your last tile reads on into the next split's keys: the mask is key < stop, not key < S
     start + N, stop => start + N, S
 6 | an empty stretch weighs nothing, and exp(0) is 1: its lse is -inf
     np.full((splits, H), -np.inf) => np.zeros((splits, H))
 8 | your sums do not shrink when the maximum grows: sums * shrink
     sums * shrink => sums
 8 | your total does not shrink when the maximum grows: total * shrink
     total * shrink => total
14 | the scores are not multiplied by scale
     / np.sqrt(D) =>
14 | lse is top + log(total): both, and added
     top + np.log(total) => np.log(total)
     top + np.log(total) => top + total
     top + np.log(total) => total
14 | part is the MEAN of the rows: divide the sums by total, the sum of their weights
     sums / total => sums
     sums / total => sums / (stop - s * each)
14 | your top stays at -inf: at the end of each turn, top = higher
     top = higher =>
 4 | exp(-200) is 0 in fp32: the largest score so far begins at -inf, not at 0
     top, total, sums = -np.inf, => top, total, sums = 0.0,
     and: np.exp(score - higher) => np.exp((score - higher).astype("f4"))
14 | your idle lanes count: their score is 0 until tl.where puts -inf there
     k[key, h] @ q[h] / np.sqrt(D) => np.append(k[key, h] @ q[h] / np.sqrt(D), [0] * (N - len(key)))
     and: e @ => e[: len(key)] @
 8 | when the maximum grows, total and sums shrink by exp(old - new); yours do not
     np.exp(top - higher), => 1,
""")


def launch_combine(part, lse, gain):
    splits, H, D = part.shape
    lse = lse.clone()
    lse[1] = float("-inf")  # this stretch was empty
    out = empty(H, D)
    padded = 1 << (splits - 1).bit_length()
    arguments = (part, lse, torch.tensor([gain]), out, H, splits)
    return Launch((H,), arguments, dict(PADDED=padded, D=D), (out,))


def far_from_zero(r):
    """Logarithms of sums that fp32 cannot hold."""
    part, lse = normals(r, (5, 2, 16), (5, 2))
    return part, lse - 200, 0.7


@unit.exercise(
    Part("a power of two of splits", 3, lambda r: (*normals(r, (4, 2, 16), (4, 2)), 0.7)),
    Part("any number of splits", 3, far_from_zero),
    arguments="part, lse, gain, out, H, splits, PADDED: tl.constexpr, D: tl.constexpr",
    launch=launch_combine,
)
def combine(part, lse, gain):
    """One head: its parts (splits, H, D), weighted by the softmax of their lse (splits, H).

    PADDED is the power of two at or above splits. An lse may be -inf, not all of them are, and it
    may lie in the hundreds.
    """
    lse = lse.copy()
    lse[1] = -np.inf
    weight = np.exp(lse - lse.max(0))
    return gain * (weight[..., None] * part).sum(0) / weight.sum(0)[:, None]


unit.mistakes(r"""
takes: easy, 8 minutes
hint: norm = tl.load(lse + s * H + h, mask=s < splits, other=float('-inf')) with s = tl.arange(0,
    | PADDED); weight = tl.exp(norm - tl.max(norm, 0)).
hint: tl.sum(weight[:, None] * means, 0) / tl.sum(weight, 0), times the gain.
6 | you averaged the parts; each counts by exp(lse), so that an empty one counts nothing
    np.exp(lse - lse.max(0)) => np.ones_like(lse)
6 | the gain multiplies the joined mean, once
    gain * =>
3 | exp(-200) is 0 in fp32, and 0 / 0 is NaN: subtract the largest lse of the head before exp
    lse - lse.max(0) => lse.astype("f4")
6 | divide by the sum of the weights
    / weight.sum(0)[:, None] =>
6 | divide by the sum of the weights, not by the number of splits
    weight.sum(0)[:, None] => len(part)
3 | your idle lanes loaded 0, and exp of it counts in the sum: other=float('-inf')
    lse[1] = -np.inf => lse[1] = -np.inf\nlse = np.append(lse, np.zeros((-len(part) % 4, 2)), 0)
    and: weight[..., None] => weight[: len(part), :, None]
6 | the weights are exp(lse - the largest lse)
    np.exp(lse - lse.max(0)) => (lse - lse.max(0))
    np.exp(lse - lse.max(0)) => lse
    np.exp(lse - lse.max(0)) => np.exp(-lse)
6 | all parts count, each by its weight; you took the heaviest alone
    np.exp(lse - lse.max(0)) => 1.0 * (lse == lse.max(0))
6 | the gain multiplies once; yours does so twice
    gain * => gain**2 *
""")


def launch_scatter(q, k, ids, V, bound, N):
    S, H, D = k.shape
    bins = torch.zeros(H, V)
    arguments = (q, k, ids.int(), bins, S, H, V, D**-0.5, bound)
    return Launch((blocks(S, N), H), arguments, dict(D=D, N=N), (bins,), shared=True)


@drawn
def weights(r, S):
    q, k = (x / np.sqrt((x**2).mean(-1, keepdims=True)) for x in normals(r, (2, 16), (S, 2, 16)))
    return q, k, r.integers(0, 6, S), 8, 4.0, 8


@unit.exercise(
    Part("whole tiles", 3, weights(16)),
    Part("a ragged end", 5, weights(21)),
    arguments="q, k, ids, bins, S, H, V, scale, bound, D: tl.constexpr, N: tl.constexpr",
    launch=launch_scatter,
)
def scatter(q, k, ids, V, bound, N):
    """bins[h, w] += exp(score - bound) for N keys of one head, w the key's token; bins is (H, V).

    Program (i, h) has the keys from i * N on, those below S. Scores never pass the bound. q is
    (H, D), k (S, H, D), ids (S,).
    """
    S, H, D = k.shape
    bins = np.zeros((H, V))
    for start, h in itertools.product(range(0, S, N), range(H)):
        key = np.arange(start, min(start + N, S))
        score = k[key, h] @ q[h] / np.sqrt(D)
        np.add.at(bins[h], ids[key], np.exp(score - bound))
    return bins


unit.mistakes(r"""
takes: medium, 9 minutes
hint: mass = tl.exp(tl.sum(keys * query[None, :], 1) * scale - bound): (N,), no maximum.
hint: tl.atomic_add(bins + h * V + token, mass, mask=key < S, sem="relaxed")
8 | a token that stands twice keeps only its last weight: tl.atomic_add, not tl.store
    np.add.at(bins[h], ids[key], np.exp(score - bound)) => bins[h, ids[key]] = np.exp(score - bound)
8 | a token that stands twice in a tile keeps only its last weight: tl.atomic_add adds where you
  | load, add and store
    np.add.at(bins[h], ids[key], np.exp(score - bound)) =>
  | bins[h, ids[key]] += np.exp(score - bound)
8 | a weight is exp(score - bound): exp is missing
    np.exp(score - bound) => score - bound
8 | the bound is subtracted BEFORE exp
    np.exp(score - bound) => np.exp(score) - bound
8 | the scores are not multiplied by scale
    / np.sqrt(D) =>
8 | subtract the bound, which is the same for all programs; a tile's own maximum is not
    score - bound => score - max(score.max(), *[0] * (start + N > S), -np.inf)
5 | your idle lanes add a weight to token 0: mask=key < S
    return bins => bins[:, 0] += -S % N * np.exp(-bound)\nreturn bins
8 | a weight is exp(score - bound): the bound is taken off the score
    score - bound => score
    score - bound => score + bound
    score - bound => bound - score
8 | scale multiplies the score alone, not the bound
    score - bound => score - bound / np.sqrt(D)
8 | the bound stands in place of a softmax's sum: divide by nothing
    np.exp(score - bound) =>
  | np.exp(score) / (np.exp(score).sum() + N - len(key))
""")


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


@unit.exercise(
    Part("runs of several lengths", 6, read),
    arguments="q, k, starts, mass, H, scale, bound, D: tl.constexpr, N: tl.constexpr",
    launch=launch_runs,
)
def mass_of_runs(q, k, ids, bound, N):
    """The sum of exp(score - bound) over one run of equal tokens, for one head; mass is (runs, H).

    k is sorted by token already: run r has the keys starts[r] to starts[r + 1].
    """
    H, D = q.shape
    runs = [np.flatnonzero(ids == w) for w in np.unique(ids)]
    mass = np.zeros((len(runs), H))
    for (r, key), h in itertools.product(enumerate(runs), range(H)):
        score = k[key, h] @ q[h] / np.sqrt(D)
        mass[r, h] = np.exp(score - bound).sum()
    return mass


unit.mistakes("""
takes: medium, 9 minutes
hint: start and stop are tl.load(starts + run) and tl.load(starts + run + 1), as in token_sums.
hint: total += tl.sum(tl.where(key < stop, tl.exp(score - bound), 0.0), 0); store to mass + run * H
    | + h + tl.arange(0, 1).
6 | an idle lane's score is 0, and exp(0 - bound) is a mass: tl.where(key < stop, …, 0.0)
    .sum() => .sum() + -len(key) % N * np.exp(-bound)
6 | the mass grows from tile to tile; yours keeps the last
    enumerate(runs) => enumerate(x[(len(x) - 1) // N * N :] for x in runs)
6 | the scores are not multiplied by scale
    / np.sqrt(D) =>
6 | a mass is exp(score - bound): exp is missing
    np.exp(score - bound) => score
    np.exp(score - bound) => (score - bound)
6 | a sum of exponentials is wanted: exp of each score, then the sum
    np.exp(score - bound).sum() =>
  | sum(np.exp(score[i : i + N].sum() - bound) for i in range(0, len(score), N))
    np.exp(score - bound).sum() =>
  | sum(np.exp((score - bound)[i : i + N].sum()) for i in range(0, len(score), N))
6 | a sum is wanted: the number of keys has no part in it
    .sum() => .sum() / max(len(key), 1)
    .sum() => .sum() * len(key)
6 | the bound is subtracted from each score, BEFORE exp
    np.exp(score - bound).sum() => np.exp(score).sum() - bound
    np.exp(score - bound) => (np.exp(score) - bound)
6 | the mass itself is wanted, not its logarithm
    np.exp(score - bound).sum() => np.log(np.exp(score - bound).sum())
    np.exp(score - bound).sum() => np.log(np.exp(score).sum())
6 | a mass is exp(score - bound): subtract the bound
    score - bound => score
""")
