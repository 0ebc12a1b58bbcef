"""The kernels of notebook 11a, as the course writes them."""

try:
    import triton
    import triton.language as tl
except ImportError:  # macOS, Windows: the same text on tiles of PyTorch
    from minimal.kernels.tiles import tl, triton


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,): my places
    mine = place < n
    total = tl.load(x + place, mask=mine) + tl.load(y + place, mask=mine)
    tl.store(out + place, total, mask=mine)


@triton.jit
def transpose(x, out, R, C, x_row, x_column, M: tl.constexpr, N: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)[:, None]  # (M, 1)
    c = tl.program_id(1) * N + tl.arange(0, N)[None, :]  # (1, N)
    mine = (r < R) & (c < C)  # (M, N)
    tile = tl.load(x + r * x_row + c * x_column, mask=mine)
    tl.store(out + c * R + r, tile, mask=mine)


@triton.jit
def row_sum(x, out, C, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * C + lane, mask=lane < C, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(row, 0))


@triton.jit
def softmax(x, out, C, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    place = tl.program_id(0) * C + lane
    row = tl.load(x + place, mask=lane < C, other=float("-inf"))
    e = tl.exp(row - tl.max(row, 0))
    tl.store(out + place, e / tl.sum(e, 0), mask=lane < C)


@triton.jit
def add_rows(v, table, ids, gate, out, D, BLOCK: tl.constexpr):
    t, lane = tl.program_id(0), tl.arange(0, BLOCK)
    own = tl.load(v + t * D + lane, mask=lane < D)
    row = tl.load(table + tl.load(ids + t) * D + lane, mask=lane < D)
    tl.store(out + t * D + lane, own + tl.load(gate + t) * row, mask=lane < D)


@triton.jit
def matmul(a, b, out, R, C, S, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    r = tl.program_id(0) * M + tl.arange(0, M)[:, None]  # (M, 1)
    c = tl.program_id(1) * N + tl.arange(0, N)[None, :]  # (1, N)
    acc = tl.zeros([M, N], tl.float32)
    for start in tl.range(0, S, K):
        s = start + tl.arange(0, K)
        mask_a = (r < R) & (s[None, :] < S)
        mask_b = (s[:, None] < S) & (c < C)
        tile_a = tl.load(a + r * S + s[None, :], mask=mask_a, other=0.0)  # (M, K)
        tile_b = tl.load(b + s[:, None] * C + c, mask=mask_b, other=0.0)  # (K, N)
        acc = tl.dot(tile_a, tile_b, acc, input_precision="ieee")
    tl.store(out + r * C + c, acc, mask=(r < R) & (c < C))


@triton.jit
def online(x, out, C, N: tl.constexpr):
    row = tl.program_id(0)
    top, total = tl.full([1], float("-inf"), tl.float32), tl.zeros([1], tl.float32)
    for start in tl.range(0, C, N):
        lane = start + tl.arange(0, N)
        tile = tl.load(x + row * C + lane, mask=lane < C, other=float("-inf"))
        higher = tl.maximum(top, tl.max(tile, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(tile - higher), 0)
        top = higher
    tl.store(out + row + tl.arange(0, 1), top + tl.log(total))


@triton.jit
def flash(q, k, v, out, lse, T, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    t, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    at = t[:, None] * D + d[None, :]  # (M, D)
    query = tl.load(q + at, mask=t[:, None] < T, other=0.0)
    top, total = tl.full([M], float("-inf"), tl.float32), tl.zeros([M], tl.float32)
    sums = tl.zeros([M, D], tl.float32)
    for start in tl.range(0, tl.minimum((tl.program_id(0) + 1) * M, T), N):
        key = start + tl.arange(0, N)
        place = key[:, None] * D + d[None, :]  # (N, D)
        keys = tl.load(k + place, mask=key[:, None] < T, other=0.0)
        values = tl.load(v + place, mask=key[:, None] < T, other=0.0)
        score = tl.dot(query, keys.T, input_precision="ieee") * scale  # (M, N)
        score = tl.where(key[None, :] <= t[:, None], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        shrink, e = tl.exp(top - higher), tl.exp(score - higher[:, None])
        total = total * shrink + tl.sum(e, 1)
        sums = tl.dot(e, values, sums * shrink[:, None], input_precision="ieee")
        top = higher
    tl.store(out + at, sums / total[:, None], mask=t[:, None] < T)
    tl.store(lse + t, top + tl.log(total), mask=t < T)


@triton.jit
def gather(
    q, k, table, ids, gain, out, lse, T, scale, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr
):
    t, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    at = t[:, None] * D + d[None, :]  # (M, D)
    query = tl.load(q + at, mask=t[:, None] < T, other=0.0)
    top, total = tl.full([M], float("-inf"), tl.float32), tl.zeros([M], tl.float32)
    sums = tl.zeros([M, D], tl.float32)
    for start in tl.range(0, tl.minimum((tl.program_id(0) + 1) * M, T), N):
        key = start + tl.arange(0, N)
        keys = tl.load(k + key[:, None] * D + d[None, :], mask=key[:, None] < T, other=0.0)
        row = tl.load(ids + key, mask=key < T, other=0)  # the one line
        values = tl.load(table + row[:, None] * D + d[None, :], mask=key[:, None] < T, other=0.0)
        score = tl.dot(query, keys.T, input_precision="ieee") * scale  # (M, N)
        score = tl.where(key[None, :] <= t[:, None], score, float("-inf"))
        higher = tl.maximum(top, tl.max(score, 1))
        shrink, e = tl.exp(top - higher), tl.exp(score - higher[:, None])
        total = total * shrink + tl.sum(e, 1)
        sums = tl.dot(e, values, sums * shrink[:, None], input_precision="ieee")
        top = higher
    tl.store(out + at, sums / total[:, None] * tl.load(gain), mask=t[:, None] < T)
    tl.store(lse + t, top + tl.log(total), mask=t < T)


@triton.jit
def grad_keys(
    q, k, v, above, lse, delta, grad_k, grad_v, T, scale,
    D: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    key, d = tl.program_id(0) * N + tl.arange(0, N), tl.arange(0, D)
    place = key[:, None] * D + d[None, :]  # (N, D)
    keys = tl.load(k + place, mask=key[:, None] < T, other=0.0)
    values = tl.load(v + place, mask=key[:, None] < T, other=0.0)
    sum_k, sum_v = tl.zeros([N, D], tl.float32), tl.zeros([N, D], tl.float32)
    for start in tl.range(tl.program_id(0) * N // M * M, T, M):
        t = start + tl.arange(0, M)
        at = t[:, None] * D + d[None, :]  # (M, D)
        query = tl.load(q + at, mask=t[:, None] < T, other=0.0)
        push = tl.load(above + at, mask=t[:, None] < T, other=0.0)
        norm = tl.load(lse + t, mask=t < T, other=float("inf"))  # weight 0 behind the end
        mean = tl.load(delta + t, mask=t < T, other=0.0)
        score = tl.dot(query, keys.T, input_precision="ieee") * scale  # (M, N)
        weight = tl.where(key[None, :] <= t[:, None], tl.exp(score - norm[:, None]), 0.0)
        sum_v = tl.dot(weight.T, push, sum_v, input_precision="ieee")
        pull = weight * (tl.dot(push, values.T, input_precision="ieee") - mean[:, None])
        sum_k = tl.dot(pull.T, query, sum_k, input_precision="ieee")
    tl.store(grad_k + place, sum_k * scale, mask=key[:, None] < T)
    tl.store(grad_v + place, sum_v, mask=key[:, None] < T)


@triton.jit
def token_sums(rows, order, starts, out, D: tl.constexpr, N: tl.constexpr):
    token, d = tl.program_id(0), tl.arange(0, D)
    start, stop = tl.load(starts + token), tl.load(starts + token + 1)
    total = tl.zeros([D], tl.float32)
    for tile in tl.range(start, stop, N):
        place = tile + tl.arange(0, N)
        row = tl.load(order + place, mask=place < stop, other=0)  # positions of my token
        at = row[:, None] * D + d[None, :]  # (N, D)
        total += tl.sum(tl.load(rows + at, mask=place[:, None] < stop, other=0.0), 0)
    tl.store(out + token * D + d, total)  # zeros too: an absent token clears its own row
