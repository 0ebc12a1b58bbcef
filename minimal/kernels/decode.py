"""How does one new query read a long past whose values are only named?

Decode is bound by bytes: every key once, the ids once for all layers, and table rows that sit mostly in the L2 cache.
`split` gives each program a stretch of the keys and all query heads that share them, so that a row is gathered once
for the group; `combine` joins the stretches. `scatter_masses` goes further: it adds the attention mass of equal tokens
first, and then one product with the table is all that is left of the values. gather.py has the reference and the
tolerance. Letters as in gather_forward.py; R = T * H/G query rows share a key head.
"""

import torch

from minimal.kernels.forward import INTERPRETED, LOG2E, may_see, tl, triton, where_it_starts
from minimal.kernels.reference import MOST_LOGIT, want

KEYS = 64  # keys a tile: with 4 warps and 3 stages about 38 KB of shared memory at D = 128, so several programs an SM

FEW_KEYS = 16  # the same in fp32, where 32 keys would spill

MOST_FIXED = 10.0  # as MOST_LOGIT: units of 2^-40 hold exp(-20) to three digits


@triton.jit
def stretch(low, length, SPLITS: tl.constexpr, WINDOW: tl.constexpr, N: tl.constexpr):
    """The keys [start, stop) of this program's split, whole tiles, of those that the first query at `low` can see."""
    start = 0
    if WINDOW > 0:
        start = tl.maximum(low - WINDOW, 0) // N * N
    each = tl.cdiv(tl.cdiv(tl.maximum(length - start, 0), N), SPLITS) * N
    start += tl.program_id(0) * each
    return start, tl.minimum(start + each, length)


@triton.jit
def split(
    q,
    k,
    table,
    ids,
    gain,
    lengths,
    out,
    lse,
    k_b,
    k_s,
    k_g,
    table_v,
    table_g,
    ids_b,
    T,
    S,
    H,
    scale,
    SPLITS: tl.constexpr,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    D: tl.constexpr,
    PADDED: tl.constexpr,
    R: tl.constexpr,
    N: tl.constexpr,
):
    """One program: a stretch of keys for all R = T * GROUP query rows of one key head. The head is the slowest axis of
    the grid, so programs that run together share one head's part of the table. Without ids the table is a cached V."""
    b, g = tl.program_id(1), tl.program_id(2)
    r = tl.arange(0, R)  # (R,), at least 16 because that is the least a tensor core takes
    t, h = r // GROUP, g * GROUP + r % GROUP
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    line = b * T * H + t * H + h  # (R,)
    inside = (t < T)[:, None] & (d[None, :] < D)
    query = tl.load(q + line[:, None] * D + d[None, :], mask=inside, other=0.0)
    k += b.to(tl.int64) * k_b + g * k_g
    table += g * table_g
    if ids is None:
        table += b.to(tl.int64) * S * table_v
    else:
        ids += b.to(tl.int64) * ids_b

    start, stop = stretch(first, length, SPLITS, WINDOW, N)
    total, top = tl.zeros([R], tl.float32), tl.full([R], float("-inf"), tl.float32)
    sums = tl.zeros([R, PADDED], tl.float32)
    for tile in tl.range(start, stop, N):
        key = tl.multiple_of(tile, N) + tl.arange(0, N)  # (N,)
        real = key < length
        token = (
            tl.where(real, key, 0) if ids is None else tl.load(ids + key, mask=real, other=0)
        )  # (N,)
        keys = tl.load(
            k + key[None, :] * k_s + d[:, None],
            mask=real[None, :] & (d[:, None] < D),
            other=0.0,
            eviction_policy="evict_first",
        )  # (D, N), read once; Triton 3.7 drops this hint, 3.9 keeps it
        values = tl.load(
            table + token[:, None] * table_v + d[None, :],
            mask=d[None, :] < D,
            other=0.0,
            eviction_policy="evict_last",
        ).to(query.dtype)  # (N, D), read again and again
        score = tl.dot(query, keys, input_precision="ieee") * (scale * LOG2E)  # (R, N)
        score = tl.where(
            may_see((first + t)[:, None], key[None, :], length, CAUSAL, WINDOW),
            score,
            float("-inf"),
        )
        new_top = tl.maximum(top, tl.max(score, 1))
        safe = tl.where(new_top == float("-inf"), 0.0, new_top)
        weight = tl.exp2(score - safe[:, None])
        shrink = tl.exp2(top - safe)
        total = total * shrink + tl.sum(weight, 1)
        sums = tl.dot(
            weight.to(query.dtype), values, sums * shrink[:, None], input_precision="ieee"
        )
        top = new_top
    seen = total > 0.0
    total = tl.where(seen, total, 1.0)
    mean = sums / total[:, None]
    if SPLITS == 1:  # nothing to join: finish here
        mean = mean if gain is None else mean * tl.load(gain).to(tl.float32)
        tl.store(out + line[:, None] * D + d[None, :], mean, mask=inside)
    else:
        line += tl.program_id(0) * tl.num_programs(1) * T * H
        tl.store(out + line[:, None].to(tl.int64) * D + d[None, :], mean, mask=inside)
        tl.store(lse + line, top + tl.log2(total), mask=t < T)  # -inf where nothing was seen


@triton.jit
def combine(
    part,
    lse,
    gain,
    out,
    lines,
    SPLITS: tl.constexpr,
    PADDED_SPLITS: tl.constexpr,
    D: tl.constexpr,
    PADDED: tl.constexpr,
):
    """One program: one query row. Means of stretches, weighted by the softmax of their log sums; then the gain, once.

    Reference: (lse.softmax(0)[..., None] * part).sum(0) * gain."""
    line = tl.program_id(0)
    s, d = tl.arange(0, PADDED_SPLITS), tl.arange(0, PADDED)
    norm = tl.load(
        lse + s * lines + line, mask=s < SPLITS, other=float("-inf")
    )  # (splits,), base 2
    top = tl.max(norm, 0)
    weight = tl.exp2(norm - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(weight, 0)
    place = (s.to(tl.int64) * lines + line)[:, None] * D + d[None, :]
    means = tl.load(
        part + place, mask=(s < SPLITS)[:, None] & (d[None, :] < D), other=0.0
    )  # (splits, D)
    mean = tl.sum(means * weight[:, None], 0) / tl.where(total > 0.0, total, 1.0)
    mean = mean if gain is None else mean * tl.load(gain).to(tl.float32)
    tl.store(out + line.to(tl.int64) * D + d, mean, mask=d < D)


@triton.jit
def scatter_masses(
    q,
    k,
    ids,
    lengths,
    bins,
    k_b,
    k_s,
    k_g,
    ids_b,
    T,
    S,
    H,
    V,
    scale,
    bound,
    FIXED_POINT: tl.constexpr,
    SPLITS: tl.constexpr,
    GROUP: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    D: tl.constexpr,
    PADDED: tl.constexpr,
    R: tl.constexpr,
    N: tl.constexpr,
):
    """One program: exp(logit - bound) of a stretch of keys, added to the bins of their tokens. No maximum is followed
    and nothing is normalised: the bins' own sum is the softmax's denominator.

    Reference: bins.scatter_add_(-1, ids, exp(scores - bound)). Integer sums do not depend on their order, so with
    FIXED_POINT (bins int64, units of 2^-40) two runs agree to the bit."""
    b, g = tl.program_id(1), tl.program_id(2)
    r = tl.arange(0, R)
    t, h = r // GROUP, g * GROUP + r % GROUP
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    line = b * T * H + t * H + h  # (R,)
    query = tl.load(
        q + line[:, None] * D + d[None, :], mask=(t < T)[:, None] & (d[None, :] < D), other=0.0
    )
    k += b.to(tl.int64) * k_b + g * k_g
    ids += b.to(tl.int64) * ids_b
    start, stop = stretch(first, length, SPLITS, WINDOW, N)
    for tile in tl.range(start, stop, N):
        key = tl.multiple_of(tile, N) + tl.arange(0, N)  # (N,)
        real = (key < length)[None, :] & (d[:, None] < D)
        token = tl.load(ids + key, mask=key < length, other=0)  # (N,)
        keys = tl.load(
            k + key[None, :] * k_s + d[:, None], mask=real, other=0.0, eviction_policy="evict_first"
        )
        score = tl.dot(query, keys.to(query.dtype), input_precision="ieee")  # (R, N)
        mass = tl.exp2((score * scale - bound) * LOG2E)
        see = may_see((first + t)[:, None], key[None, :], length, CAUSAL, WINDOW) & (t < T)[:, None]
        bin_of = line[:, None].to(tl.int64) * V + token[None, :]
        if FIXED_POINT:
            tl.atomic_add(
                bins + bin_of, (mass * 1099511627776.0).to(tl.int64), mask=see, sem="relaxed"
            )
        else:
            tl.atomic_add(bins + bin_of, mass, mask=see, sem="relaxed")


# ---- launching -----------------------------------------------------------------------------------
def how_many_splits(B, G, S, processors=132, programs_each=4):
    """The fewest splits that fill the GPU once: more would only add partial results to join."""
    return max(1, min(-(-S // (4 * KEYS)), processors * programs_each // max(1, B * G), 128))


def decode_plan(q, k, window, splits):
    """Splits, grid, compile-time constants, launch options: the same for both kernels that walk over the keys."""
    (B, T, H, D), (_, S, G, _) = q.shape, k.shape
    if splits is None:
        processors = (
            torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 2
        )
        splits = how_many_splits(B, G, min(S, window + T) if window else S, processors)
    rows = max(16, 1 << (T * (H // G) - 1).bit_length())
    constants = dict(
        SPLITS=splits,
        GROUP=H // G,
        WINDOW=window,
        D=D,
        PADDED=max(32, 1 << (D - 1).bit_length()),
        R=rows,
        N=32 if INTERPRETED else KEYS if q.element_size() == 2 else FEW_KEYS,
    )
    return splits, (splits, B, G), constants, dict(num_warps=1 if INTERPRETED else 4, num_stages=3)


def run_split(q, k, table, ids, gain, lengths, causal, window, scale, splits=None):
    (B, T, H, D), S = q.shape, k.shape[1]
    splits, grid, constants, launch = decode_plan(q, k, window, splits)
    out = torch.empty_like(q)
    part = out if splits == 1 else torch.empty(splits, B, T, H, D, device=q.device)
    lse = None if splits == 1 else torch.empty(splits, B, T, H, device=q.device)
    split[grid](
        q,
        k,
        table,
        ids,
        gain,
        lengths,
        part,
        lse,
        *k.stride()[:3],
        *table.stride()[-3:-1],
        0 if ids is None else ids.stride(0),
        T,
        S,
        H,
        scale,
        CAUSAL=causal,
        **constants,
        **launch,
    )
    if splits > 1:
        combine[(B * T * H,)](
            part,
            lse,
            gain,
            out,
            B * T * H,
            SPLITS=splits,
            D=D,
            PADDED=constants["PADDED"],
            PADDED_SPLITS=1 << (splits - 1).bit_length(),
            num_warps=launch["num_warps"],
        )
    return out


def run_histogram(
    q, k, table, ids, gain, *, bound, causal, window, lengths, scale, fixed_point=False, splits=None
):
    """Masses into bins, then one product of the bins with each head's table; the bins' sum is the denominator."""
    most = MOST_FIXED if fixed_point else MOST_LOGIT
    want(
        bound <= most,
        "the histogram follows no maximum and wants |logit| <= {}, got a bound of {}: "
        "normalise q and k, or use way='split'",
        most,
        bound,
    )
    (B, T, H, D), (_, S, G, _), V = q.shape, k.shape, len(table)
    _, grid, constants, launch = decode_plan(q, k, window, splits)
    bins = torch.zeros(
        B, T, H, V, dtype=torch.int64 if fixed_point else torch.float32, device=q.device
    )
    scatter_masses[grid](
        q,
        k,
        ids,
        lengths,
        bins,
        *k.stride()[:3],
        ids.stride(0),
        T,
        S,
        H,
        V,
        scale,
        float(bound),
        FIXED_POINT=fixed_point,
        CAUSAL=causal,
        **constants,
        **launch,
    )
    total = bins.sum(-1, keepdim=True, dtype=torch.float64)  # (B, T, H, 1)
    share = (bins / total.masked_fill(total == 0, 1)).to(table.dtype)  # (B, T, H, V)
    by_head = share.view(B * T, G, H // G, V).transpose(0, 1).reshape(G, -1, V)  # (G, B*T*H/G, V)
    mean = (
        torch.bmm(by_head, table.transpose(0, 1))
        .view(G, B * T, H // G, D)
        .transpose(0, 1)
        .reshape(B, T, H, D)
    )
    return (mean if gain is None else mean * gain).to(q.dtype)


class Graphed:
    """A decode step that was recorded once as a CUDA graph and is replayed: no launches by Python, no allocation.

    step() must read everything that changes from tensors that stay where they are: q, the cache, ids, lengths. Call it
    to replay and get its output tensor. On a CPU it simply calls step. Not yet measured on a GPU."""

    def __init__(self, step, device):
        self.step, self.graph, self.out = step, None, None
        if torch.device(device).type == "cuda":
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                step()  # compiles, and lets gather_attention look at the ids, which it cannot do while recording
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = step()

    def __call__(self):
        if self.graph is None:
            return self.step()
        self.graph.replay()
        return self.out


# ---- bytes ---------------------------------------------------------------------------------------
def split_bytes(B, T, S, H, G, D, V, b=2, splits=1, distinct=None):
    """(from HBM, through L2): keys and ids once; rows that occur from HBM, a row a key from L2; partial results."""
    keys, partial = (
        B * S * G * D * b + B * S * 4,
        (splits > 1) * 2 * splits * B * T * H * (D + 1) * 4,
    )
    edges = 2 * B * T * H * D * b + partial
    return keys + edges + min(distinct or V, B * S) * G * D * b, keys + edges + B * S * G * D * b


def cached_bytes(B, T, S, H, G, D, b=2):
    """What attention over a stored V must read: keys, values, q, and out."""
    return 2 * B * S * G * D * b + 2 * B * T * H * D * b


def histogram_bytes(B, T, S, H, G, D, V, b=2, bin_b=4):
    """Keys and ids once, bins cleared, filled (read and written) and read, and the table once for the whole batch."""
    return (
        B * S * G * D * b
        + B * S * 4
        + 4 * B * T * H * V * bin_b
        + V * G * D * b
        + 2 * B * T * H * D * b
    )
