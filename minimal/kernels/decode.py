"""How does one new query read a long past whose values are only named? Decoding, by split keys.

Decode is bound by bytes: every key once, the ids once for all layers, and table rows, which are few
and are read again and again, so that most reads find them in the L2 cache by themselves.
`split` gives each program a stretch of the keys and all query heads that share them, so that a row
is gathered once for the group; `combine` joins the stretches. `scatter_masses` goes further: it
adds the attention mass of equal tokens first, and then one product with the table is all that is
left of the values. reference.py has what they must equal. Letters and the order of arguments as in
forward.py; R = T * H/G query rows share a key head.
"""

import torch

from minimal.kernels.check import want
from minimal.kernels.forward import (
    INTERPRETED,
    LOG2E,
    absorb,
    finished,
    may_see,
    memory_of,
    nothing_yet,
    padded_width,
    strides,
    tl,
    triton,
    where_it_starts,
)
from minimal.kernels.reference import MOST_LOGIT

# Keys a tile: with 4 warps and 3 stages about 38 KB of shared memory at D = 128, so that several
# programs share a processor; in fp32, where 32 keys would spill, fewer.
KEYS, KEYS_IN_FP32 = 64, 16
# Query rows in fp32 that a warp holds without spilling, before sm_90 and from there on.
ROWS_A_WARP = (8, 4)

MOST_SPLITS = 128

# Of the sum over a table's rows, where at most FEW_ROWS query rows share a key head.
STRETCHES, FEW_ROWS = 64, 8


@triton.jit
def stretch(low, length, WINDOW: tl.constexpr, N: tl.constexpr):
    """The keys [start, stop) of this program: whole tiles of what the first query, at `low`, sees.

    How many stretches there are is the grid's business and no constant, or every new number of them
    would be compiled. The last ones may be empty."""
    start = 0
    if WINDOW > 0:
        start = tl.maximum(low - WINDOW, 0) // N * N
    tiles = tl.cdiv(tl.maximum(length - start, 0), N)
    each = tl.cdiv(tiles, tl.num_programs(0)) * N
    start += tl.program_id(0) * each
    return start, tl.minimum(start + each, length)


@triton.jit
def split(
    q, k, table, ids, gain, lengths, out, lse,
    k_b, k_s, k_g, table_v, table_g, ids_b,
    T, S, H, scale,
    JOINED: tl.constexpr, GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    D: tl.constexpr, PADDED: tl.constexpr, R: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """One program: a stretch of keys for all R = T * GROUP query rows of one key head.

    The head is the slowest axis of the grid, so programs that run together share one head's part of
    the table. Without ids the table is a cached V. JOINED: `combine` follows, to join stretches."""
    # its query rows: at least 16, because that is the least a tensor core takes
    b, g = tl.program_id(1), tl.program_id(2)
    r = tl.arange(0, R)  # (R,)
    t, h = r // GROUP, g * GROUP + r % GROUP
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    line = b * T * H + t * H + h  # (R,)
    inside = (t < T)[:, None] & (d[None, :] < D)
    query = tl.load(q + line[:, None] * D + d[None, :], mask=inside, other=0.0)
    memory = memory_of(k, table, ids, b, g, k_b, k_s, k_g, table_v, table_g, ids_b)
    if ids is not None:
        ids += b.to(tl.int64) * ids_b

    # its stretch of keys
    start, stop = stretch(first, length, WINDOW, N)
    scale = tl.full([], scale * LOG2E, tl.float32)  # PyTorch's compiler hands it over in float64
    at, sums = first + t, nothing_yet(R, PADDED)
    sums = absorb(
        sums, query, memory, ids, start, stop, at, length, scale,
        True, CAUSAL, WINDOW, D, N, "evict_first",
    )  # fmt: skip
    mean, norm = finished(sums)

    # a part of the answer, or the answer
    if JOINED:
        line += tl.program_id(0) * tl.num_programs(1) * T * H
        tl.store(lse + line, norm, mask=t < T)  # -inf where nothing was seen
    elif gain is not None:
        mean *= tl.load(gain).to(tl.float32)
    tl.store(out + line[:, None].to(tl.int64) * D + d[None, :], mean, mask=inside)


@triton.jit
def combine(
    part, lse, gain, out,
    lines, splits,
    PADDED_SPLITS: tl.constexpr, D: tl.constexpr, PADDED: tl.constexpr,
):  # fmt: skip
    """One program: one query row. Means of stretches, weighted by the softmax of their log sums.

    Reference: (lse.softmax(0)[..., None] * part).sum(0) * gain, the gain once."""
    line = tl.program_id(0)
    s, d = tl.arange(0, PADDED_SPLITS), tl.arange(0, PADDED)
    norm = tl.load(lse + s * lines + line, mask=s < splits, other=float("-inf"))  # base 2
    top = tl.max(norm, 0)
    weight = tl.exp2(norm - tl.where(top == float("-inf"), 0.0, top))  # 0 for empty stretches
    total = tl.sum(weight, 0)

    at = part + (s.to(tl.int64) * lines + line)[:, None] * D + d[None, :]
    inside = (s < splits)[:, None] & (d[None, :] < D)
    means = tl.load(at, mask=inside, other=0.0)  # (splits, D)
    mean = tl.sum(means * weight[:, None], 0) / tl.where(total > 0.0, total, 1.0)
    if gain is not None:
        mean *= tl.load(gain).to(tl.float32)
    tl.store(out + line.to(tl.int64) * D + d, mean, mask=d < D)


@triton.jit
def scatter_masses(
    q, k, ids, lengths, bins,
    k_b, k_s, k_g, ids_b,
    T, S, H, V, scale, bound,
    GROUP: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    D: tl.constexpr, PADDED: tl.constexpr, R: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """One program: exp(logit - bound) of a stretch of keys, added to the bins of their tokens.

    No maximum is followed, nothing is normalised: the bins' own sum is the softmax's denominator.
    Additions happen in whatever order programs finish, so the last bits differ between runs.
    Reference: bins.scatter_add_(-1, ids, exp(scores - bound))."""
    # its query rows
    b, g = tl.program_id(1), tl.program_id(2)
    r = tl.arange(0, R)
    t, h = r // GROUP, g * GROUP + r % GROUP
    d = tl.arange(0, PADDED)
    length = S if lengths is None else tl.load(lengths + b)
    first = where_it_starts(length, T, S)
    line = b * T * H + t * H + h  # (R,)
    inside = (t < T)[:, None] & (d[None, :] < D)
    query = tl.load(q + line[:, None] * D + d[None, :], mask=inside, other=0.0)
    k += b.to(tl.int64) * k_b + g * k_g
    ids += b.to(tl.int64) * ids_b

    # its stretch of keys, straight into the bins
    scale, bound = tl.full([], scale, tl.float32), tl.full([], bound, tl.float32)
    start, stop = stretch(first, length, WINDOW, N)
    for tile in tl.range(start, stop, N):
        key = tl.multiple_of(tile, N) + tl.arange(0, N)  # (N,)
        token = tl.load(ids + key, mask=key < length, other=0)  # (N,)
        at = k + key[None, :] * k_s + d[:, None]
        real = (key < length)[None, :] & (d[:, None] < D)
        keys = tl.load(at, mask=real, other=0.0, eviction_policy="evict_first")  # (D, N)
        score = tl.dot(query, keys.to(query.dtype), input_precision="ieee")  # (R, N)
        mass = tl.exp2((score * scale - bound) * LOG2E)
        see = may_see((first + t)[:, None], key[None, :], length, CAUSAL, WINDOW)
        bin_of = line[:, None].to(tl.int64) * V + token[None, :]
        tl.atomic_add(bins + bin_of, mass, mask=see & (t < T)[:, None], sem="relaxed")


# ---- launching -----------------------------------------------------------------------------------
def how_many_splits(B, G, S, processors=132, programs_each=4):
    """The fewest splits that fill the GPU once: more would only add partial results to join."""
    enough_keys = -(-S // (4 * KEYS))
    fill_once = processors * programs_each // max(1, B * G)
    return max(1, min(enough_keys, fill_once, MOST_SPLITS))


def rows_and_warps(T, group, element_size, generation):
    """(query rows of a program, warps): at least 16 rows, which is the least of a tensor core."""
    rows = max(16, 1 << (T * group - 1).bit_length())
    held = ROWS_A_WARP[generation >= 9] if element_size == 4 else rows
    return rows, max(4, rows // held)


def decode_plan(q, k, window, splits, stages=3):
    """(grid, constants, launch options): the same for both kernels that walk over the keys."""
    (B, T, H, D), (_, S, G, _) = q.shape, k.shape
    if splits is None:
        reach = min(S, window + T) if window else S
        processors = 2
        if q.is_cuda:
            processors = torch.cuda.get_device_properties(q.device).multi_processor_count
        splits = how_many_splits(B, G, reach, processors)
    keys_a_tile = KEYS if q.element_size() == 2 else KEYS_IN_FP32
    generation = torch.cuda.get_device_capability(q.device)[0] if q.is_cuda else 0
    rows, warps = rows_and_warps(T, H // G, q.element_size(), generation)
    constants = dict(
        GROUP=H // G,
        WINDOW=window,
        D=D,
        PADDED=padded_width(D),
        R=rows,
        N=32 if INTERPRETED else keys_a_tile,
    )
    launch = dict(num_warps=1 if INTERPRETED else warps, num_stages=stages)
    return (splits, B, G), constants, launch


def run_split(q, k, table, ids, gain, lengths, causal, window, scale, splits=None, stages=3):
    """Attention of T new queries. Without ids `table` is a cached V, (B, S, G, D)."""
    (B, T, H, D), S = q.shape, k.shape[1]
    grid, constants, launch = decode_plan(q, k, window, splits, stages)
    splits = grid[0]
    joined = splits > 1
    out = torch.empty_like(q)
    part = torch.empty(splits, B, T, H, D, device=q.device) if joined else out
    lse = torch.empty(splits, B, T, H, device=q.device) if joined else None

    tensors = (q, k, table, ids, gain, lengths, part, lse)
    numbers = (*strides(k, table, ids), T, S, H, scale)
    split[grid](*tensors, *numbers, JOINED=joined, CAUSAL=causal, **constants, **launch)
    if joined:
        widths = dict(D=D, PADDED=constants["PADDED"])
        padded = 1 << (splits - 1).bit_length()
        lines = B * T * H
        combine[(lines,)](
            part, lse, gain, out, lines, splits,
            PADDED_SPLITS=padded, num_warps=launch["num_warps"], **widths,
        )  # fmt: skip
    return out


def run_histogram(
    q, k, table, ids, gain,
    *, bound, causal, window, lengths, scale, splits=None, stretches=STRETCHES,
):  # fmt: skip
    """Masses into bins, then one product of the bins with each head's table."""
    want(
        bound <= MOST_LOGIT,
        "the histogram follows no maximum and wants |logit| <= {}, got a bound of {}: "
        "normalise q and k, or use way='split'",
        MOST_LOGIT,
        bound,
    )
    (B, T, H, D), (_, S, G, _), V = q.shape, k.shape, len(table)
    grid, constants, launch = decode_plan(q, k, window, splits)
    bins = torch.zeros(B, T, H, V, device=q.device)
    numbers = (*k.stride()[:3], ids.stride(0), T, S, H, V, scale, float(bound))
    scatter_masses[grid](
        q, k, ids, lengths, bins, *numbers, CAUSAL=causal, **constants, **launch
    )  # fmt: skip

    # The bins' sum is the denominator; then each head's share of the table's rows.
    total = bins.sum(-1, keepdim=True, dtype=torch.float64)  # (B, T, H, 1)
    share = (bins / total.masked_fill(total == 0, 1)).to(table.dtype)  # (B, T, H, V)
    by_head = share.view(B * T, G, H // G, V).transpose(0, 1).reshape(G, -1, V)
    sums = summed_rows(by_head, table, stretches)  # (G, B*T*H/G, D)
    mean = sums.view(G, B * T, H // G, D).transpose(0, 1).reshape(B, T, H, D)
    return (mean if gain is None else mean * gain).to(q.dtype)


def summed_rows(share, table, stretches=STRETCHES):
    """share (G, N, V) times table (V, G, D) -> (G, N, D).

    A product of few query rows over one long sum keeps few programs busy, so the sum is cut into
    stretches of tokens, side by side: on an H100 that took 5 to 11 % off the whole way."""
    G, N, V = share.shape
    if N > FEW_ROWS or V % stretches:
        return torch.bmm(share, table.transpose(0, 1))
    rows = table.unflatten(0, (stretches, -1))  # (stretches, V / stretches, G, D)
    parts = share.unflatten(2, (stretches, -1)).transpose(1, 2)  # (G, stretches, N, V / stretches)
    sums = [torch.bmm(parts[head], rows[:, :, head]).sum(0) for head in range(G)]
    return torch.stack(sums)
