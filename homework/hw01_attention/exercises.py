"""hw01: what does a token do with the tokens before it, and how is that computed a tile, or a
token, at a time?"""

import functools

import numpy as np

from homework import by_index
from homework.marking import Part, Unit, Wrong, need, normals, refuse

unit = Unit(
    "hw01_attention",
    "What does a token see?",
    """
    Fill in the functions, in any order, and run `pytest homework/hw01_attention` as often as
    you like.
    Letters: B batch, T new positions, S visible positions, H heads, D, E and C widths of heads,
    values and model.
    Functions return new tensors, in the dtype of their inputs, and leave their inputs as they
    were.
""",
)


@unit.exercise(
    Part("as many queries as keys", 4, lambda r: (n := int(r.integers(3, 9)), n)),
    Part("fewer queries than keys", 4, lambda r: (int(r.integers(2, 5)), int(r.integers(6, 10)))),
    Wrong(
        "hides itself",
        8,
        "your positions do not see themselves: the own key is at or before the query",
        dict(itself=1),
    ),
    Wrong(
        "true means hidden",
        8,
        "yours is True where a key is hidden; wanted True where it is visible",
        dict(flip=True),
    ),
    Wrong(
        "from the left corner",
        4,
        "with fewer queries than keys, the queries are the LAST positions: query t stands "
        "at t + S - T",
        dict(corner=True),
    ),
    hints=[
        "Draw the square for T = 2, S = 4: the first query stands at position 2. How many keys "
        "does it see?",
        "Compare two aranges: torch.arange(S) against torch.arange(T)[:, None] + (S - T).",
    ],
    after="The T queries are the newest of S positions, so query t stands at S - T + t and "
    "sees the keys up to there. minimal/kernels/reference.py: visible has the same "
    "line, with windows and padding added. One of the three solutions cuts the last T "
    "rows out of the square mask: a mask behind a cache is the bottom of the mask of "
    "the whole text.",
    level="easy",
    minutes=3,
)
def causal_mask(T, S, *, itself=0, flip=False, corner=False):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions.
    """
    mask = np.zeros((T, S), bool)
    for t in range(T):
        for s in range(S):
            mask[t, s] = (s + itself <= t + (0 if corner else S - T)) != flip
    return mask


def qkv(T, S, H=3):
    return lambda r: normals(r, (2, T, H, 6), (2, S, H, 6), (2, S, H, 5))


@unit.exercise(
    Part("everyone sees everything", 6, lambda r: (*qkv(4, 7)(r), False)),
    Part("causal, behind a cache", 8, lambda r: (*qkv(4, 7)(r), True)),
    Wrong(
        "no root",
        14,
        "your output equals attention without the 1/sqrt(D) scale: see notebook 01, 'why the root'",
        dict(root=False),
    ),
    Wrong(
        "divided by D",
        14,
        "you divided by D, not by its root: a sum of D products grows like the root; see notebook "
        "01, 'why the root'",
        dict(scale=6),
    ),
    Wrong(
        "softmax over the queries",
        14,
        "your weights sum to one over the queries; each query spreads one unit over its keys",
        dict(transposed=True),
    ),
    Wrong(
        "root of the model width",
        14,
        "you divided by the root of the whole model width; a score is a sum of D "
        "products, D the width of one head",
        dict(scale=18**0.5),
    ),
    Wrong(
        "mask from the left",
        8,
        "with fewer queries than keys, the queries are the LAST positions: query t sees "
        "keys up to t + S - T",
        dict(corner=True),
    ),
    Wrong(
        "masked after the softmax",
        8,
        "you hid keys after the softmax: what is left no longer sums to one; hide "
        "them before, with -inf",
        dict(after=True),
    ),
    Wrong(
        "never masked",
        8,
        "you did not use `causal`: the queries see keys after them",
        dict(never=True),
    ),
    hints=[
        "Move the heads next to the batch, (B,H,T,D), and everything is matrix products: q @ "
        "k.mT, softmax over the last dimension.",
        "masked_fill(~mask, float('-inf')) before the softmax, with the mask of the first "
        "exercise.",
        "softmax(q kᵀ / sqrt(D)) v, and the heads back to where they were.",
    ],
    after="A score is a sum of D products, so its spread grows like the root of D; dividing "
    "by that root keeps the softmax soft at any width. The package defines attention in "
    "minimal/kernels/reference.py: by_definition, and every kernel must equal it. "
    "README's question: weights that are hidden after the softmax no longer sum to one, "
    "and the sum that they were divided by still holds the future. Nothing fails, so "
    "only a test notices: with all values equal to one, every output must be one.",
    level="medium",
    minutes=10,
)
def attention(q, k, v, causal, *, corner=False, never=False, **how):
    """Softmax attention: q (B,T,H,D), k (B,S,H,D), v (B,S,H,E) -> (B,T,H,E). If `causal`, the
    queries are the last T of S positions.
    """
    late = q.shape[1] - k.shape[1] if corner else 0
    return by_index.attention(q, k, v, causal=causal and not never, late=late, **how)


def far(base):
    """Odd positions behind 2,048, which half a precision cannot tell from their neighbours."""

    def make(r):
        positions = r.integers(0, 40, 5)
        positions[[1, 3]] = 2 * r.integers(1024, 2048, 2) + 1
        return r.normal(size=(2, 5, 3, 8)), positions, base

    return make


def scattered(r):
    return r.normal(size=(2, 5, 3, 8)), r.integers(0, 40, 5), 10000.0


@unit.exercise(
    Part("positions 0, 1, 2, …", 6, lambda r: (r.normal(size=(2, 5, 3, 8)), np.arange(5), 100.0)),
    Part("any positions", 6, [far(10000.0), far(100.0), scattered]),
    Wrong(
        "turned backwards",
        12,
        "you turned by the opposite angle: y1 = x1 cos + x2 sin, y2 = -x1 sin + x2 cos",
        dict(sign=-1),
    ),
    Wrong(
        "neighbours are pairs",
        12,
        "you paired neighbours (0 with 1, 2 with 3); here entry i goes with entry i + D/2",
        dict(split=False),
    ),
    Wrong(
        "frequencies half as steep",
        12,
        "your frequencies fall half as fast: base ** (-2i/D) for i = 0 … D/2 - 1",
        dict(steep=1),
    ),
    Wrong(
        "counts the rows",
        6,
        "you turned row t by t; the argument `positions` says where each row stands",
        dict(count=True),
    ),
    Wrong(
        "positions in half precision",
        6,
        "your positions were rounded: half a precision has no odd numbers above "
        "2,048; keep positions and angles in float32 at least",
        dict(half_precision=True),
    ),
    hints=[
        "Two halves: x1, x2 = x[..., :D//2], x[..., D//2:]. Each pair (x1[i], x2[i]) turns by its "
        "own angle.",
        "angle = positions[:, None] * base ** (-2 * i / D), of shape (T, D/2); give it a heads "
        "dimension before you multiply.",
    ],
    after="A turn keeps the length of a pair, and in the product of a query and a key only "
    "the difference of their two angles is left: a score knows t - s and nothing else "
    "of the positions. minimal/model/layers.py: rotate has the same pairs and the same "
    "sign. The solution with complex numbers is the shortest proof: a pair is one "
    "number, and to turn it is to multiply by exp(-i angle).",
    level="medium",
    minutes=10,
)
def rope(x, positions, base, *, sign=1, split=True, steep=2, count=False, half_precision=False):
    """Rotary positions: x (B,T,H,D), positions (T,) whole numbers, base a number -> (B,T,H,D).

    With x1, x2 the first and second half of the last dimension and angle = position * base ** (-2 i
    / D), i = 0 … D/2 - 1: y1 = x1 cos(angle) + x2 sin(angle), y2 = -x1 sin(angle) + x2 cos(angle).
    """
    out, half = np.zeros(x.shape), x.shape[-1] // 2
    positions = positions.astype("f2").astype("f8") if half_precision else positions
    for t in range(x.shape[1]):
        for i in range(half):
            angle = sign * (t if count else positions[t]) * base ** (-steep * i / x.shape[-1])
            a, b = (i, i + half) if split else (2 * i, 2 * i + 1)
            out[:, t, :, a] = x[:, t, :, a] * np.cos(angle) + x[:, t, :, b] * np.sin(angle)
            out[:, t, :, b] = -x[:, t, :, a] * np.sin(angle) + x[:, t, :, b] * np.cos(angle)
    return out


def tiles(S, size):
    """In the first row, the first tile holds negative scores only."""

    def make(r):
        scores, values = normals(r, (5, S), (S, 3))
        scores[0, :4] = -np.abs(scores[0, :4]) - 0.1
        return size * scores, values, 4

    return make


@unit.exercise(
    Part("ordinary scores, whole tiles", 6, tiles(12, 2)),
    Part("scores in the hundreds, a short last tile", 8, tiles(11, 100)),
    Wrong(
        "sums not rescaled",
        14,
        "when the maximum grows, what was summed under the old maximum must shrink by "
        "exp(old - new): your running sum did not",
        dict(shrink_sum=False),
    ),
    Wrong(
        "output not rescaled",
        14,
        "your running sum shrinks when the maximum grows, your running output does not",
        dict(shrink_out=False),
    ),
    Wrong(
        "one maximum a tile",
        14,
        "your maximum is that of the last tile alone; it must be the largest of all tiles so far",
        dict(running=False),
    ),
    Wrong(
        "starts at 0",
        14,
        "your running maximum starts at 0, but all scores of a tile may be negative: start at -inf",
        dict(least=0.0),
    ),
    Wrong(
        "drops the short tile",
        8,
        "the last, shorter tile is missing from your output",
        dict(whole=True),
    ),
    hints=[
        "Keep three things: m (T,) the maximum so far, total (T,) the sum of exp(score - m), o "
        "(T,E) the same sum weighted with values.",
        "A new tile: new = max(m, tile.max(-1)); shrink = exp(m - new); total = total * shrink + "
        "…; o = o * shrink[:, None] + …; m = new.",
        "Start with m = -inf, total = 0, o = 0; divide o by total once, at the end. Append m and "
        "total to lists after each tile.",
    ],
    after="Whatever was summed is relative to the largest score so far; when a larger one "
    "comes, the factor exp(old - new) moves it there, and exp never gets a number above "
    "0. minimal/kernels/forward.py: absorb is this loop as a Triton kernel, in base 2. "
    "One solution takes an ordinary sum over each prefix instead: the same numbers, but "
    "it reads a score again for every later tile.",
    level="hard",
    minutes=15,
)
def online_softmax(
    scores,
    values,
    tile,
    *,
    shrink_sum=True,
    shrink_out=True,
    running=True,
    whole=False,
    least=-np.inf,
):
    """softmax(scores) @ values, reading `tile` columns at a time, once: scores (T,S), values (S,E).

    Returns (out (T,E), maxima (N,T), sums (N,T)): the result, and after each of the N tiles (the
    last may be shorter) the largest score so far and the sum of exp(score - that maximum) so far.
    No exp of a number above 0.
    """
    (T, S), E = scores.shape, values.shape[1]
    m, total, o = np.full(T, least), np.zeros(T), np.zeros((T, E))
    maxima, sums = [], []
    for start in range(0, S - S % tile if whole else S, tile):
        for t in range(T):
            columns = range(start, min(start + tile, S))
            largest = max(scores[t, s] for s in columns)
            new = max(m[t], largest) if running else largest
            shrink = np.exp(m[t] - new)
            total[t] = total[t] * (shrink if shrink_sum else 1) + sum(
                np.exp(scores[t, s] - new) for s in columns
            )
            o[t] = o[t] * (shrink if shrink_out else 1) + sum(
                np.exp(scores[t, s] - new) * values[s] for s in columns
            )
            m[t] = new
        maxima.append(m.copy())
        sums.append(total.copy())
    return o / total[:, None], np.stack(maxima), np.stack(sums)


def halves(size):
    def half(r):
        return r.normal(size=(2, 3, 4, 5)), r.normal(size=(2, 3, 4)) + size

    return lambda r: (*half(r), *half(r))


@unit.exercise(
    Part("small sums", 4, halves(0)),
    Part("sums too large for exp", 4, halves(500)),
    Wrong(
        "the plain mean",
        8,
        "you averaged the halves; each counts by its share of the total weight, exp(lse) of its "
        "own half",
        dict(shares="mean"),
    ),
    Wrong("shares swapped", 8, "you gave each half the other's share", dict(shares="swapped")),
    Wrong(
        "the larger lse",
        8,
        "the joint lse is log(exp(a) + exp(b)), not the larger of the two",
        dict(joint="max"),
    ),
    hints=[
        "The share of half a is exp(lse_a) / (exp(lse_a) + exp(lse_b)): a sigmoid of the "
        "difference.",
        "torch.logaddexp for the new lse, and share_a = exp(lse_a - lse): nothing overflows. Mind "
        "the last dimension of out.",
    ],
    after="Besides its output each half must report one number, its lse. The share of a half "
    "is exp(its lse - the joint lse): only differences meet exp, so nothing overflows. "
    "The three solutions write the same share with logaddexp, as a softmax over the "
    "halves, and as a sigmoid of the difference; minimal/kernels/decode.py: combine "
    "does it for any number of splits.",
    level="medium",
    minutes=10,
)
def merge(out_a, lse_a, out_b, lse_b, *, shares="own", joint="sum"):
    """Attention over all keys from attention over two halves of them: out (…,E) and lse (…) of each
    half -> (out, lse) of both.

    lse is the log of the sum of exp(score) over the half's keys. This is how a long cache is split
    over processors.
    """
    top = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - top), np.exp(lse_b - top)
    lse = top + np.log(a + b)
    share = {"own": a / (a + b), "swapped": b / (a + b), "mean": np.full(a.shape, 0.5)}[shares][
        ..., None
    ]
    return share * out_a + (1 - share) * out_b, lse if joint == "sum" else top


def step(S):
    return lambda r: normals(r, *[(2, 1, 3, 6)] * 3, *[(2, S, 3, 6)] * 2)


@unit.exercise(
    Part("the first token, from an empty cache", 4, step(0)),
    Part("a later token", 6, step(5)),
    Wrong(
        "blind to itself",
        10,
        "the new token must see itself: append its key and value first, then attend",
        dict(blind=True),
    ),
    Wrong(
        "new rows in front",
        6,
        "you put the new rows in front of the cached ones; they belong behind them",
        dict(front=True),
    ),
    Wrong(
        "a mask for one query",
        6,
        "your mask has its corner at the first key, so the query sees that alone; the new token "
        "is the LAST position and sees all: no mask is needed",
        dict(corner=True),
    ),
    Wrong(
        "the new key alone",
        6,
        "your query saw only the new key; it must see the whole cache",
        dict(forgets=True),
    ),
    hints=[
        "torch.cat along the positions first, then one query against all keys.",
        "No mask is needed: everything in the cache lies before the new token, and the token sees "
        "itself.",
    ],
    after="Everything in the cache lies before the new token, so the last row of the causal "
    "mask hides nothing and no mask is needed. The token sees itself because it is "
    "appended before it attends. In the package that is minimal/model/cache.py: "
    "Cache.append, called by minimal/model/tape.py: Tape.keep, the one line by which "
    "training and decoding are the same code.",
    level="medium",
    minutes=8,
)
def decode_step(
    q, k, v, k_cache, v_cache, *, blind=False, front=False, forgets=False, corner=False
):
    """One token through a cache: q, k, v (B,1,H,D), caches (B,S,H,D), S may be 0 -> (out (B,1,H,D),
    both caches (B,S+1,H,D)).

    Token after token, the outputs must equal causal attention on the whole sequence.
    """
    keys = np.concatenate([k, k_cache] if front else [k_cache, k], 1)
    values = np.concatenate([v, v_cache] if front else [v_cache, v], 1)
    seen = (
        (k_cache, v_cache)
        if blind
        else (k, v)
        if forgets
        else (keys[:, :1], values[:, :1])
        if corner
        else (keys, values)
    )
    out = by_index.attention(q, *seen, causal=False) if seen[0].shape[1] else np.zeros(q.shape)
    return out, keys, values


def shape(context):
    def make(r):
        return (
            r.integers(2, 30),
            64 * r.integers(2, 20),
            r.integers(1000, 60000),
            context and r.integers(128, 4096),
        )

    return make


@unit.exercise(
    Part("the matrices (context 0)", 4, shape(0)),
    Part("with attention", 4, shape(1)),
    Wrong(
        "the embedding too",
        8,
        "you counted the embedding table: looking a row up is no multiplication",
        dict(embedding=1),
    ),
    Wrong("no head", 8, "the output head is a matrix too: C × V", dict(embedding=-1)),
    Wrong(
        "forward only",
        8,
        "you counted the forward pass: training takes 2 for it and 4 for the backward pass, 6 in "
        "all",
        dict(each=2),
    ),
    Wrong(
        "no attention",
        4,
        "the products with keys and values are missing: 12 · C · context a layer",
        dict(attention=0),
    ),
    Wrong(
        "the causal half",
        4,
        "you halved attention for the mask; the usual count takes the whole context",
        dict(attention=6),
    ),
    hints=[
        "Matrices of a layer: W_Q, W_K, W_V, W_O are C × C; the MLP goes C -> 4C -> C. And one "
        "head, C × V.",
        "Every weight of a matrix costs 2 FLOPs forward (multiply, add) and 4 backward.",
        "QKᵀ and AV: each 2 · C · context forward for a token, in every layer, and twice that "
        "backward.",
    ],
    after="A weight costs a multiplication and an addition forward, and the same twice "
    "backward, for the gradient of its input and for its own: 6 in all. A look-up "
    "multiplies nothing, so the embedding is free and the head costs C times V. "
    "minimal/model/count.py: count does this for every plan of the course, and takes "
    "the whole context as well, so that its numbers compare with published ones.",
    level="easy",
    minutes=15,
)
def flops_per_token(layers, width, vocabulary, context, *, embedding=0, each=6, attention=12):
    """FLOPs of training on one token (a whole number), by the usual count: standard layers, MLP 4C
    wide, an output head, no biases.

    6 for every weight of a matrix that multiplies, plus QKᵀ and AV over the full `context`; norms
    and look-ups cost nothing.
    """
    total = 0
    for _ in range(layers):
        for rows, columns in [(width, width)] * 4 + [(width, 4 * width), (4 * width, width)]:
            total += each * rows * columns
        total += attention * width * context * each // 6
    return total + each * width * vocabulary * (1 + embedding)


@functools.cache
def largest_weight(root):
    """Measured: the mean, over 300 random queries, of the largest of 128 weights, at width 64."""
    r = np.random.default_rng(0)
    scores = np.einsum("qd,qkd->qk", r.normal(size=(300, 64)), r.normal(size=(300, 128, 64))) / (
        8 if root else 1
    )
    return float(np.mean([by_index.softmax(row).max() for row in scores]))


def close(which, root, within, why):
    def accept(answer):
        refuse(not within(need(answer, without=0, with_root=0)[which], largest_weight(root)), why)

    return accept


@unit.exercise(
    Part(
        "without the root",
        3,
        None,
        close(
            0,
            False,
            lambda said, measured: abs(said - measured) < 0.15,
            "not within 0.15 of what is measured without the root: how large are these scores?",
        ),
    ),
    Part(
        "with the root",
        3,
        None,
        close(
            1,
            True,
            lambda said, measured: measured / 2 < said < measured * 2,
            "not within a factor of 2 of what is measured with the root: 128 keys share one unit",
        ),
    ),
    Wrong("an even spread", 6, "not within", returns=lambda: (1 / 128, 1 / 128)),
    Wrong("the root does little", 3, "not within", returns=lambda: (0.75, 0.7)),
    hints=[
        "A score is a sum of 64 products of standard normals. What is its standard deviation? And "
        "divided by 8?",
        "exp of a number with standard deviation 8 against exp of one with standard deviation 1: "
        "which of them has one winner?",
    ],
    after="Without the root a score has a standard deviation of 8 and the best of 128 keys "
    "gets 0.77 of the weight on average; with the root the deviation is 1 and the best "
    "key gets 0.07. Where one key has nearly all the weight, the softmax passes almost "
    "no gradient to the others: that is the answer to 'why the root'. The scale of "
    "every style is minimal/model/config.py: Style.attention_scale.",
    level="easy",
    minutes=5,
)
def predict_sharpness():
    """Predict, then measure: q and 128 keys are standard normal and 64 wide. On average, how large
    is the largest of the 128 weights (1) of softmax(q kᵀ), and (2) of softmax(q kᵀ / sqrt(64))?
    Return the two numbers; 0.15 apart (1), or a factor of 2 (2), counts.
    """
    return largest_weight(False), largest_weight(True)


def printed(q, k, v):
    """Eq 2 as it is printed, in matrices: a learner chooses the size."""
    scores = q @ k.T / np.sqrt(q.shape[1])
    shares = np.exp(scores - scores.max(1, keepdims=True))
    return shares / shares.sum(1, keepdims=True) @ v


def leaks(answer):
    q, k, v, q2, k2, v2 = need(answer, q=2, k=2, v=2, q2=2, k2=2, v2=2)
    refuse(
        not q.shape == k.shape == q2.shape == k2.shape
        or v.shape != v2.shape
        or len(v) != len(q)
        or len(q) < 2,
        "wanted q, k, q2, k2 of one shape (T,D) and v, v2 of one shape (T,E), T at least 2",
    )
    refuse(
        any(np.abs(a[:-1] - b[:-1]).max() > 1e-6 for a, b in ((q, q2), (k, k2), (v, v2))),
        "the two sequences may differ in the LAST row only: the future",
    )
    change = printed(q, k, v) - printed(q2, k2, v2)
    refuse(
        np.abs(change[:-1]).max() < 0.01,
        "no earlier row of Eq 2 moves (by 0.01): what does an earlier query read of the last row?",
    )


@unit.exercise(
    Part("an earlier token moves", 8, None, leaks),
    Wrong(
        "another last query",
        8,
        "no earlier row of Eq 2 moves",
        returns=lambda: (
            np.eye(3),
            np.eye(3),
            np.eye(3),
            np.eye(3) + [[0], [0], [2]],
            np.eye(3),
            np.eye(3),
        ),
    ),
    Wrong(
        "another first row",
        8,
        "the two sequences may differ in the LAST row only",
        returns=lambda: (np.eye(3), np.eye(3), np.eye(3), np.eye(3), np.eye(3), np.eye(3)[::-1]),
    ),
    hints=[
        "The first token of a language model must not depend on the last. In Eq 2 as printed, "
        "which of q, k, v of the last row reach the first row's output?",
        "Keep q and k, and change the last row of v.",
    ],
    after="A softmax gives every key a weight above zero, so in Eq 2 as printed each row "
    "reads the last value. A model trained by that formula could read the next token "
    "from its input instead of predicting it: a low loss in training, and no use in "
    "writing. What the formula leaves out is minimal/kernels/reference.py: visible, "
    "with causal=True.",
    level="easy",
    minutes=5,
)
def mask_counter_example():
    """Find the error. Return (q, k, v, q2, k2, v2): two sequences, q and k (T,D), v (T,E), that
    differ in their last row only.

    The Bank of Values paper prints attention as softmax(Q Kᵀ / sqrt(d)) V (Eq 2), for a model that
    predicts the next token. Return a case in which that formula, taken as printed, lets the last
    token change an earlier output by at least 0.01.
    """
    return np.eye(3), np.eye(3), np.eye(3), np.eye(3), np.eye(3), np.eye(3) + [[0], [0], [1]]


def tile(everything):
    def make(r):
        T, S, D, E = 4, 3 if everything else 9, 5, 6
        q, k, v, dout = (
            r.normal(size=(T, D)),
            r.normal(size=(S, D)),
            r.normal(size=(S, E)),
            r.normal(size=(T, E)),
        )
        scores = q @ k.T / np.sqrt(D)
        lse = np.log(np.exp(scores).sum(1))
        return q, k[:3], v[:3], np.exp(scores - lse[:, None]) @ v, lse, dout

    return make


@unit.exercise(
    Part("a tile that is the whole sequence", 4, tile(True)),
    Part("a tile of a longer sequence", 8, tile(False)),
    Wrong(
        "normalised within the tile",
        8,
        "you took the softmax over this tile; the weights are exp(score - lse), "
        "with the lse of the whole sequence",
        dict(own=True),
    ),
    Wrong(
        "without the row term",
        12,
        "dS = P (dP - D) with D the row sums of dout · out: your D is missing",
        dict(row=False),
    ),
    Wrong(
        "scale forgotten in dq",
        12,
        "the scores were divided by sqrt(D), so their gradients with respect to q and k are too",
        dict(scaled=False),
    ),
    hints=[
        "P = exp(q kᵀ / sqrt(D) - lse). dv = Pᵀ dout. dP = dout vᵀ.",
        "dS = P * (dP - (dout * out).sum(-1)). Why is out enough, when this tile never saw the "
        "other keys?",
        "dq = dS k / sqrt(D), dk = dSᵀ q / sqrt(D).",
    ],
    after="The row sum of P dP runs over all keys, but the output is already the sum of P V "
    "over all keys, so the row sum is dO times O and one tile is enough. "
    "minimal/kernels/backward.py: backward_queries computes it once a row and calls it "
    "delta. In the solution that uses automatic differentiation the weights are held "
    "fixed and only the scores are differentiated: a softmax over the tile would know "
    "nothing of the other keys.",
    level="stretch",
    minutes=15,
)
def tile_backward(q, k, v, out, lse, dout, *, own=False, row=True, scaled=True):
    """Stretch: what one tile of keys contributes to the gradients of (unmasked) attention, as flash
    attention recomputes it.

    q (T,D), k (S,D), v (S,E): the tile's keys and values, S of possibly many more. out (T,E), lse
    (T,): result, and log of the sum of exp(scores), over ALL keys. dout (T,E): gradient of the loss
    by out. Returns this tile's share of dq (T,D), and its dk, dv.
    """
    (T, D), S = q.shape, len(k)
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    for t in range(T):
        scores = np.array([q[t] @ k[s] / np.sqrt(D) for s in range(S)])
        P = by_index.softmax(scores) if own else np.exp(scores - lse[t])
        for s in range(S):
            dS = (
                P[s]
                * (dout[t] @ v[s] - (dout[t] @ out[t] if row else 0))
                / (np.sqrt(D) if scaled else 1)
            )
            dq[t] += dS * k[s]
            dk[s] += dS * q[t]
            dv[s] += P[s] * dout[t]
    return dq, dk, dv
