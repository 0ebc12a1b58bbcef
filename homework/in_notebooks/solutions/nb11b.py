"""The kernels of notebook 11b, as the course writes them."""

try:
    import triton
    import triton.language as tl
except ImportError:  # macOS, Windows: the same text on tiles of PyTorch
    from minimal.kernels.tiles import tl, triton


@triton.jit
def split(
    q, k, table, ids, part, lse, S, H, each, scale, D: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    s, h, d = tl.program_id(0), tl.program_id(1), tl.arange(0, D)
    query = tl.load(q + h * D + d) * scale  # (D,)
    top, total = tl.full([1], float("-inf"), tl.float32), tl.zeros([1], tl.float32)
    sums = tl.zeros([D], tl.float32)
    stop = tl.minimum((s + 1) * each, S)
    for start in tl.range(s * each, stop, N):
        key = start + tl.arange(0, N)
        real = key < stop
        at = (key * H + h)[:, None] * D + d[None, :]  # (N, D)
        keys = tl.load(k + at, mask=real[:, None], other=0.0)
        token = tl.load(ids + key, mask=real, other=0)
        row = (token * H + h)[:, None] * D + d[None, :]
        rows = tl.load(table + row, mask=real[:, None], other=0.0)  # (N, D)
        score = tl.where(real, tl.sum(keys * query[None, :], 1), float("-inf"))  # (N,)
        higher = tl.maximum(top, tl.max(score, 0))
        shrink, e = tl.exp(top - higher), tl.exp(score - higher)
        total = total * shrink + tl.sum(e, 0)
        sums = sums * shrink + tl.sum(e[:, None] * rows, 0)
        top = higher
    safe = tl.where(total > 0.0, total, 1.0)  # a stretch without keys: 0 and -inf
    tl.store(part + (s * H + h) * D + d, sums / safe)
    tl.store(lse + s * H + h + tl.arange(0, 1), top + tl.log(safe))


@triton.jit
def combine(part, lse, gain, out, H, splits, PADDED: tl.constexpr, D: tl.constexpr):
    h, s, d = tl.program_id(0), tl.arange(0, PADDED), tl.arange(0, D)
    norm = tl.load(lse + s * H + h, mask=s < splits, other=float("-inf"))  # (PADDED,)
    weight = tl.exp(norm - tl.max(norm, 0))
    at = (s * H + h)[:, None] * D + d[None, :]
    means = tl.load(part + at, mask=s[:, None] < splits, other=0.0)  # (PADDED, D)
    mean = tl.sum(weight[:, None] * means, 0) / tl.sum(weight, 0)
    tl.store(out + h * D + d, mean * tl.load(gain))


@triton.jit
def scatter(q, k, ids, bins, S, H, V, scale, bound, D: tl.constexpr, N: tl.constexpr):
    h, d = tl.program_id(1), tl.arange(0, D)
    key = tl.program_id(0) * N + tl.arange(0, N)  # (N,)
    query = tl.load(q + h * D + d) * scale
    at = (key * H + h)[:, None] * D + d[None, :]
    keys = tl.load(k + at, mask=key[:, None] < S, other=0.0)  # (N, D)
    token = tl.load(ids + key, mask=key < S, other=0)
    mass = tl.exp(tl.sum(keys * query[None, :], 1) - bound)  # (N,): no maximum is followed
    tl.atomic_add(bins + h * V + token, mass, mask=key < S, sem="relaxed")


@triton.jit
def mass_of_runs(q, k, starts, mass, H, scale, bound, D: tl.constexpr, N: tl.constexpr):
    run, h, d = tl.program_id(0), tl.program_id(1), tl.arange(0, D)
    query, total = tl.load(q + h * D + d) * scale, tl.zeros([1], tl.float32)
    start, stop = tl.load(starts + run), tl.load(starts + run + 1)
    for tile in tl.range(start, stop, N):
        key = tile + tl.arange(0, N)
        at = (key * H + h)[:, None] * D + d[None, :]
        keys = tl.load(k + at, mask=key[:, None] < stop, other=0.0)  # (N, D)
        score = tl.sum(keys * query[None, :], 1)
        total += tl.sum(tl.where(key < stop, tl.exp(score - bound), 0.0), 0)
    tl.store(mass + run * H + h + tl.arange(0, 1), total)
