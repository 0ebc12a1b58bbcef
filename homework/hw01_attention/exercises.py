"""hw01: what does a token do with the tokens before it, and how is that computed a tile, or a
token, at a time?"""

import functools

import numpy as np

from homework import by_index
from homework.marking import Part, Unit, Wrong, need, normals, refuse, slip

unit = Unit(
    "hw01_attention",
    "What does a token see?",
    """
    Fill in the functions, in any order, and run `pytest homework/hw01_attention` as often as
    you like.
    Letters: B batch, T new positions, S visible positions, H heads, D, E and C widths of heads,
    values and model.
    Functions answer in the dtype of their inputs, and leave their inputs as they
    were.
""",
)


def above(T, S, prefix):
    t, s = np.arange(S - T, S)[:, None], np.arange(S)
    return (s >= t) | whole_prefix(T, S, prefix)


def whole_prefix(T, S, prefix):
    return (np.arange(S - T, S)[:, None] < prefix) & (np.arange(S) < prefix)


def joined(y, turned, exchanged=False, rest=1):
    """The parts of a turned vector put together otherwise."""
    first, second, others = np.split(y, [turned // 2, turned], -1)
    halves = [second, first] if exchanged else [first, second]
    return np.concatenate([*halves, rest * others], -1)


def matrices(given):
    return flops_per_token(*given[:-1], 0)


def pairs_of(given):
    return flops_per_token(*given) - matrices(given)


def square(r):
    T = int(r.integers(5, 9))
    return T, T, int(r.integers(2, T - 1))


def late(r):
    """The first of the queries stands inside the prefix."""
    T, S = int(r.integers(3, 5)), int(r.integers(7, 10))
    return T, S, int(r.integers(S - T + 2, S))


@unit.exercise(
    Part("as many queries as keys", 4, square),
    Part("fewer queries than keys", 4, late),
    Wrong(
        "hides itself",
        8,
        "your positions do not see themselves: the own key is at or before the query",
        dict(itself=1),
        hint="for T = S = 1 the answer is [[True]]. Which comparison gives that, < or <=?",
    ),
    Wrong(
        "true means hidden",
        8,
        "yours is True where a key is hidden; wanted True where it is visible",
        dict(flip=True),
        hint="the answer is wanted for masked_fill(~mask, -inf): turn all of it with ~",
    ),
    Wrong(
        "from the left corner",
        4,
        "with fewer queries than keys, the queries are the LAST positions: query t stands "
        "at t + S - T",
        dict(corner=True),
        hint="draw T = 2, S = 4: the first query stands at position 2. What is added to its "
        "row number?",
    ),
    Wrong(
        "the prefix is not used",
        8,
        "yours is causal everywhere: a position inside the prefix sees the whole prefix, what "
        "comes after it too",
        dict(prefix_seen=False),
        hint="a second mask, of the keys alone: torch.arange(S) < prefix. Join the two with |",
    ),
    Wrong(
        "one key too many",
        8,
        "the prefix is the keys 0 to prefix - 1; yours shows key number `prefix` as well",
        dict(more=1),
        hint="a prefix of 1 is key 0 alone. Which comparison gives that, < or <=?",
    ),
    Wrong(
        "the prefix sees everything",
        8,
        "your positions inside the prefix see what comes behind it; there they are causal like all "
        "others",
        dict(everything=True),
        hint="the prefix is a condition on the KEY alone; where does a query enter yours?",
    ),
    Wrong(
        "the triangle above",
        8,
        "your rows see what comes AFTER them: queries are rows, keys are columns",
        returns=lambda T, S, prefix: above(T, S, prefix),
        hint="Row t holds what query t sees: the key s = 0 stands before every query.",
    ),
    Wrong(
        "both at once",
        8,
        "you asked for both at once; a key is seen if it comes before OR both are of the prefix",
        returns=lambda T, S, prefix: prefix_mask(T, S, 0) & whole_prefix(T, S, prefix),
        hint="Key 0 comes before the last query, which is of no prefix. Does it see it?",
    ),
    Wrong(
        "numbers",
        8,
        "yours holds numbers; wanted True and False: .bool()",
        returns=lambda *given: prefix_mask(*given).astype(float),
        hint="A comparison of two aranges is a mask already; | puts two masks together.",
    ),
    hints=[
        "Draw the square for T = S = 4 and a prefix of 3. Which keys does position 0 see? And "
        "position 3?",
        "Two masks, joined by |: the causal one, and one of the keys alone. The causal one "
        "compares torch.arange(S) with torch.arange(T)[:, None] + (S - T).",
    ],
    after="A key is visible if it is not later than the query, or if it lies in the prefix; and "
    "since the T queries are the newest of S positions, query t stands at S - T + t. "
    "README's question: nothing of a prefix is predicted, so what it sees cannot give an "
    "answer away; with a loss on its tokens it would. minimal/kernels/reference.py: visible "
    "has the causal condition, with windows and padding added. One of the three solutions "
    "cuts the last T rows out of a square mask.",
    level="medium",
    minutes=9,
)
def prefix_mask(
    T, S, prefix, *, itself=0, flip=False, corner=False, prefix_seen=True, more=0, everything=False
):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions. Causal, but the first `prefix` positions see each
    other whole, as a question that is read at once, before the answer is written.
    """
    mask = np.zeros((T, S), bool)
    for t in range(T):
        at = t if corner else t + S - T
        for s in range(S):
            within = prefix_seen and s < prefix + more
            within = within or (everything and at < prefix)
            mask[t, s] = (s + itself <= at or within) != flip
    return mask


def rows_of_documents(several):
    """Seven keys, four late queries; with several documents, one ends among the queries."""

    def make(r):
        q, k, v = normals(r, (2, 4, 3, 6), (2, 7, 3, 6), (2, 7, 3, 5))
        documents = np.zeros((2, 7), int)
        for row in documents:
            first, second = r.choice(9, 2, replace=False)
            row[:] = first
            row[int(r.integers(4, 6)) if several else 7 :] = second
        return q, k, v, documents

    return make


@unit.exercise(
    Part("one document", 6, rows_of_documents(False)),
    Part("several documents in a row", 8, rows_of_documents(True)),
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
        14,
        "with fewer queries than keys, the queries are the LAST positions: query t sees "
        "keys up to t + S - T",
        dict(corner=True),
    ),
    Wrong(
        "masked after the softmax",
        14,
        "you hid keys after the softmax: what is left no longer sums to one; hide "
        "them before, with -inf",
        dict(after=True),
    ),
    Wrong(
        "never masked",
        14,
        "your queries see keys that come after them, of their own document",
        dict(ahead=True),
    ),
    Wrong(
        "documents ignored",
        8,
        "you did not use `documents`: a query sees keys of its own document only",
        dict(blind=True),
    ),
    Wrong(
        "the query's document from the left",
        8,
        "you looked up the document of query t at position t; it stands at t + S - T",
        dict(left=True),
    ),
    hints=[
        "Move the heads next to the batch, (B,H,T,D), and everything is matrix products: q @ "
        "k.mT, softmax over the last dimension.",
        "The mask is now (B,T,S): causal, and documents[:, S - T:, None] == documents[:, None]. "
        "Give it a place for the heads.",
        "masked_fill(~mask, float('-inf')) before the softmax; no row of it is empty, since a "
        "query sees itself.",
    ],
    after="Dividing by the root of D keeps the softmax soft at any width, since a score is a sum "
    "of D products. Texts that share a row must not hear each other, so the mask differs "
    "from text to text; minimal/kernels/reference.py: by_definition takes such a mask, and "
    "every kernel must equal it. README's question: weights that are hidden after the "
    "softmax no longer sum to one, and the sum that they were divided by still holds the "
    "future. Nothing fails, so only a test notices: with all values equal to one, every "
    "output must be one.",
    level="medium",
    minutes=14,
)
def attention(q, k, v, documents, *, corner=False, ahead=False, blind=False, left=False, **how):
    """Causal attention over rows that hold several documents: q (B,T,H,D), k (B,S,H,D), v
    (B,S,H,E), documents (B,S) whole numbers -> (B,T,H,E).

    The queries are the last T of S positions. A query sees the keys at or before its own position
    that belong to its own document.
    """
    B, T, S = len(q), q.shape[1], k.shape[1]
    seen = np.zeros((B, T, S), bool)
    for b, t, s in np.ndindex(B, T, S):
        at = t + S - T
        mine = documents[b, t if left else at] == documents[b, s]
        past = s <= (t if corner else at) or ahead
        seen[b, t, s] = past and (mine or blind)
    return by_index.attention(q, k, v, causal=False, seen=seen, **how)


def far(base):
    """Odd positions behind 2,048, which half a precision cannot tell from their neighbours."""

    def make(r):
        positions = r.integers(0, 40, (2, 5))
        positions[:, [1, 3]] = 2 * r.integers(1024, 2048, (2, 2)) + 1
        return r.normal(size=(2, 5, 3, 10)), positions, base, 6

    return make


def scattered(r):
    return r.normal(size=(2, 5, 3, 10)), r.integers(0, 40, (2, 5)), 10000.0, 6


def in_order(r):
    return r.normal(size=(2, 5, 3, 10)), np.stack([np.arange(5)] * 2), 100.0, 6


@unit.exercise(
    Part("positions 0, 1, 2, …", 6, in_order),
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
        "you paired neighbours (0 with 1, 2 with 3); here entry i goes with entry i + turned/2",
        dict(split=False),
    ),
    Wrong(
        "frequencies half as steep",
        12,
        "your frequencies fall half as fast: base ** (-2i/turned) for i = 0 … turned/2 - 1",
        dict(steep=1),
    ),
    Wrong(
        "counts the rows",
        6,
        "you turned row t by t; the argument `positions` says where each row stands",
        dict(count=True),
    ),
    Wrong(
        "all features turned",
        12,
        "you turned all D features; only the first `turned` do, and the rest stay as they are",
        dict(whole=True),
    ),
    Wrong(
        "pairs across the whole head",
        12,
        "you paired entry i with entry i + D/2; the partner lies turned/2 further on, inside the "
        "part that turns",
        dict(reach="head"),
    ),
    Wrong(
        "frequencies of the whole head",
        12,
        "your frequencies fall as if all D features turned: base ** (-2i/turned)",
        dict(falls="head"),
    ),
    Wrong(
        "the first text's positions",
        6,
        "you turned every text by the positions of the first one",
        dict(one_text=True),
    ),
    Wrong(
        "positions in half precision",
        6,
        "your positions were rounded: half a precision has no odd numbers above "
        "2,048; keep positions and angles in float32 at least",
        dict(half_precision=True),
    ),
    slip(
        12,
        "your positions are one too large: position 0 does not turn",
        lambda x, positions, *how: rope(x, positions + 1, *how),
    ),
    slip(
        12,
        "you took neighbours as pairs, put into halves; the first half turns with the second",
        lambda x, positions, base, n: rope(
            np.concatenate([x[..., :n:2], x[..., 1:n:2], x[..., n:]], -1), positions, base, n
        ),
    ),
    slip(
        12,
        "your y1 and y2 are in each other's place",
        lambda *given: joined(rope(*given), given[3], exchanged=True),
    ),
    slip(
        12,
        "the features that do not turn stay as they are; yours are 0",
        lambda *given: joined(rope(*given), given[3], rest=0),
    ),
    slip(
        12,
        "that is no turn: one of the two sines has a minus, y2 = x2 cos - x1 sin",
        lambda x, positions, base, n: np.concatenate(
            [
                rope(x, positions, base, n)[..., : n // 2],
                rope(x, -positions, base, n)[..., n // 2 :],
            ],
            -1,
        ),
    ),
    hints=[
        "Cut x in three along the last dimension: two halves of what turns, and the rest. Each "
        "pair turns by its own angle; the rest is put back behind them.",
        "The angle is (B,T,turned/2), positions times base ** (-2 * i / turned); give it a heads "
        "dimension before you multiply.",
    ],
    after="A turn keeps the length of a pair, and in the product of a query and a key only the "
    "difference of their two angles is left: a score knows t - s and nothing else of the "
    "positions. minimal/model/layers.py: rotate has the same pairs and the same sign, for a "
    "head that turns whole; GPT-NeoX turns a quarter of it, and the rest can match content "
    "at any distance. The solution with complex numbers is the shortest proof: a pair is one "
    "number, and to turn it is to multiply by exp(-i angle).",
    level="medium",
    minutes=14,
)
def rope(
    x,
    positions,
    base,
    turned,
    *,
    sign=1,
    split=True,
    steep=2,
    count=False,
    half_precision=False,
    whole=False,
    reach="part",
    falls="part",
    one_text=False,
):
    """Rotary positions on a part of each head: x (B,T,H,D), positions (B,T) whole numbers, base a
    number, turned even -> (B,T,H,D).

    The first `turned` features turn, the others stay. With x1, x2 the first and second half of
    those that turn and angle = position * base ** (-2 i / turned), i = 0 … turned/2 - 1: y1 = x1
    cos(angle) + x2 sin(angle), y2 = -x1 sin(angle) + x2 cos(angle).
    """
    out, D = x.copy(), x.shape[-1]
    turned = D if whole else turned
    positions = positions.astype("f2").astype("f8") if half_precision else positions
    for b, t, i in np.ndindex(len(x), x.shape[1], turned // 2):
        at = t if count else positions[0 if one_text else b, t]
        angle = sign * at * base ** (-steep * i / (D if falls == "head" else turned))
        far_off = D // 2 if reach == "head" else turned // 2
        one, two = (i, i + far_off) if split else (2 * i, 2 * i + 1)
        out[b, t, :, one] = x[b, t, :, one] * np.cos(angle) + x[b, t, :, two] * np.sin(angle)
        out[b, t, :, two] = -x[b, t, :, one] * np.sin(angle) + x[b, t, :, two] * np.cos(angle)
    return out


def tiles(size, ragged):
    """Whole tiles from left to right; or of any width, in any order, and keys that are hidden: the
    first tile to come holds none that query 0 may see."""

    def make(r):
        scores, values = normals(r, (5, 11), (11, 3))
        places = np.array([[0, 4], [4, 8], [8, 11]])
        if ragged:
            cuts = np.sort(r.choice(np.arange(1, 11), 3, replace=False))
            places = np.stack([[0, *cuts], [*cuts, 11]], 1)
            places = places[[2, 0, 3, 1]]
        scores[1, slice(*places[0])] = -np.abs(scores[1, slice(*places[0])]) - 0.1
        scores *= size
        if ragged:
            scores[0, slice(*places[0])] = -np.inf
            scores[2, slice(*places[2])] = -np.inf
        return scores, values, places

    return make


def by_tiles(
    scores,
    values,
    tiles,
    keeps=True,
    shown="",
    often=False,
    more=0,
    plain=False,
):
    """The walk over tiles, with one step done otherwise."""
    m = np.full(len(scores), -np.inf)
    total, o = np.zeros(len(scores)), np.zeros((len(scores), values.shape[1]))
    maxima, sums = [], []
    with np.errstate(all="ignore"):
        for start, end in tiles:
            s, v = scores[:, start : end + more], values[start : end + more]
            new = np.maximum(m, s.max(1))
            safe = np.where(np.isinf(new), 0, new)
            shrink, p = np.exp(m - safe), np.exp(s - safe[:, None])
            if plain:
                shrink, p = np.ones_like(m), np.exp(s)
            total, o = total * shrink + p.sum(1), o * shrink[:, None] + p @ v
            m = new if keeps else m
            top = s.max(1)
            maxima.append(np.where(np.isinf(top), 0, top) if shown == "tile" else safe)
            lse = safe + np.log(total)
            sums.append(dict(tile=p.sum(1), lse=lse).get(shown, total))
            o = o / total[:, None] if often else o
        return o / total[:, None], np.stack(maxima), np.stack(sums)


@unit.exercise(
    Part("ordinary scores, from left to right", 6, tiles(2, False)),
    Part("scores in the hundreds, hidden keys, any order", 8, tiles(100, True)),
    Wrong(
        "sums not rescaled",
        14,
        "when the maximum grows, what was summed under the old maximum must shrink by "
        "exp(old - new): your running sum did not",
        dict(shrink_sum=False),
        hint="before you add to it: total = total * exp(m - new)",
    ),
    Wrong(
        "output not rescaled",
        14,
        "your running sum shrinks when the maximum grows, your running output does not",
        dict(shrink_out=False),
        hint="before you add to it: o = o * exp(m - new), one factor a row: [:, None]",
    ),
    Wrong(
        "one maximum a tile",
        14,
        "your maximum is that of the last tile alone; it must be the largest of all tiles so far",
        dict(running=False),
        hint="new = torch.maximum(m, tile.amax(-1)): compare with what was seen before",
    ),
    Wrong(
        "starts at 0",
        14,
        "your running maximum starts at 0, but all scores of a tile may be negative: start at -inf",
        dict(least=0.0),
        hint="torch.full((T,), -torch.inf): the first tile then always wins",
    ),
    Wrong(
        "always from left to right",
        8,
        "you read the tiles from left to right; they come in the order of the rows of `tiles`",
        dict(sort=True),
        hint="for start, end in tiles.tolist(): as they come, without sorting",
    ),
    Wrong(
        "nothing seen yet",
        8,
        "-inf minus -inf is NaN: where a query has seen nothing yet, subtract 0 in the place of "
        "its maximum",
        dict(guard=False),
        hint="safe = torch.where(new == -torch.inf, 0, new), and exp(… - safe) everywhere",
    ),
    slip(
        14,
        "after a tile the new maximum is the old one of the next: m = new",
        by_tiles,
        keeps=False,
    ),
    slip(
        14,
        "maxima are those of all tiles so far; yours are each tile's own",
        lambda s, v, t: (
            online_softmax(s, v, t)[0],
            by_tiles(s, v, t, shown="tile")[1],
            online_softmax(s, v, t)[2],
        ),
    ),
    slip(
        14,
        "sums are those of all tiles so far; yours are each tile's own",
        lambda s, v, t: (*online_softmax(s, v, t)[:2], by_tiles(s, v, t, shown="tile")[2]),
    ),
    slip(
        14,
        "wanted the sum itself, not maximum + log of the sum",
        lambda s, v, t: (*online_softmax(s, v, t)[:2], by_tiles(s, v, t, shown="lse")[2]),
    ),
    slip(
        14,
        "the running output is divided once, at the end",
        by_tiles,
        often=True,
    ),
    slip(
        14,
        "a tile ends BEFORE column tiles[n, 1]; yours takes it too",
        by_tiles,
        more=1,
    ),
    slip(
        14,
        "the maximum goes into the exponent: exp(s - maximum), and old sums shrink",
        by_tiles,
        plain=True,
    ),
    hints=[
        "Keep three things: m (T,) the maximum so far, total (T,) the sum of exp(score - m), o "
        "(T,E) the same sum weighted with values.",
        "A new tile: new = max(m, tile.max(-1)); shrink = exp(m - new); total = total * shrink + "
        "…; o = o * shrink[:, None] + …; m = new.",
        "-inf minus -inf is NaN. Where nothing has been seen yet, subtract 0 instead: exp(-inf) is "
        "0, and 0 is what belongs there.",
    ],
    after="Whatever was summed is relative to the largest score so far; when a larger one "
    "comes, the factor exp(old - new) moves it there, and exp never gets a number above "
    "0. A sum does not care for order, so tiles may come as they like; a row that has seen nothing "
    "yet needs one guard, which is where many kernels have had their NaN. "
    "minimal/kernels/forward.py: absorb is this loop as a Triton kernel, in base 2. "
    "One solution takes an ordinary sum over each prefix instead: the same numbers, but "
    "it reads a score again for every later tile.",
    level="hard",
    minutes=26,
)
def online_softmax(
    scores,
    values,
    tiles,
    *,
    shrink_sum=True,
    shrink_out=True,
    running=True,
    sort=False,
    guard=True,
    least=-np.inf,
):
    """softmax(scores) @ values, a tile of columns at a time, each read once: scores (T,S), values
    (S,E), tiles (N,2) whole numbers: as number n come the columns tiles[n,0] to tiles[n,1] - 1.

    The tiles cover all columns, in any order. A hidden key has the score -inf; a tile may hold
    nothing that a query sees, all tiles together hold something. Returns (out (T,E), maxima (N,T),
    sums (N,T)): the result, and after each tile the largest score so far and the sum of exp(score -
    that maximum) so far, both 0 for a query that has seen nothing yet. No exp of a number above 0.
    """
    T, E = len(scores), values.shape[1]
    m, total, o = np.full(T, least), np.zeros(T), np.zeros((T, E))
    maxima, sums = [], []
    for start, end in sorted(tiles.tolist()) if sort else tiles.tolist():
        for t in range(T):
            largest = max(scores[t, s] for s in range(start, end))
            new = max(m[t], largest) if running else largest
            safe = new if new > -np.inf or not guard else 0.0
            shrink = np.exp(m[t] - safe)
            e = [np.exp(scores[t, s] - safe) for s in range(start, end)]
            total[t] = total[t] * (shrink if shrink_sum else 1) + sum(e)
            o[t] = o[t] * (shrink if shrink_out else 1) + np.array(e) @ values[start:end]
            m[t] = new
        maxima.append(np.where(np.isinf(m) & guard, 0, m))
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
    slip(
        8,
        "you added the two outputs; each counts by its share of the sum",
        lambda a, la, b, lb: (a + b, np.logaddexp(la, lb)),
    ),
    slip(
        8,
        "logarithms of sums do not add up: logaddexp",
        lambda a, la, b, lb: (merge(a, la, b, lb)[0], la + lb),
    ),
    slip(
        8,
        "that is the sum itself; its LOGARITHM is handed on",
        lambda *given: (merge(*given)[0], np.exp(merge(*given)[1])),
    ),
    slip(
        8,
        "your weights are the logarithms; they are exp(lse - lse of both)",
        lambda a, la, b, lb: (
            (la[..., None] * a + lb[..., None] * b) / (la + lb)[..., None],
            np.logaddexp(la, lb),
        ),
    ),
    slip(
        8,
        "you took the half with the larger sum alone; each counts by its share",
        lambda a, la, b, lb: (np.where((la > lb)[..., None], a, b), np.logaddexp(la, lb)),
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
    minutes=9,
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


def step(filled):
    """Three texts in one cache of six rows; what a text has not filled holds another's leavings."""

    def make(r):
        new, caches = normals(r, *[(3, 1, 2, 6)] * 3), normals(r, *[(3, 6, 2, 6)] * 2)
        lengths = r.choice(np.arange(1, 6), 3, replace=False) if filled else np.zeros(3, int)
        return *new, *caches, lengths

    return make


def seen_rows(q, k, v, k_cache, v_cache, lengths, seen, hidden=-np.inf):
    """What a step returns under another mask: seen(row, length) -> bool."""
    _, keys, values = decode_step(q, k, v, k_cache, v_cache, lengths)
    out = np.zeros(q.shape)
    for b, h in np.ndindex(len(q), q.shape[2]):
        scores = keys[b, :, h] @ q[b, 0, h] / np.sqrt(q.shape[-1])
        scores = np.where(seen(np.arange(len(scores)), lengths[b]), scores, hidden)
        out[b, 0, h] = by_index.softmax(scores) @ values[b, :, h]
    return out


def written_at(q, k, v, k_cache, v_cache, lengths, places):
    """The new rows stand elsewhere; the mask is the right one."""
    keys, values = k_cache.copy(), v_cache.copy()
    for b, place in enumerate(places):
        keys[b, place], values[b, place] = k[b, 0], v[b, 0]
    out = np.zeros(q.shape)
    for b, h in np.ndindex(len(q), q.shape[2]):
        rows = slice(lengths[b] + 1)
        scores = keys[b, rows, h] @ q[b, 0, h] / np.sqrt(q.shape[-1])
        out[b, 0, h] = by_index.softmax(scores) @ values[b, rows, h]
    return out, keys, values


def behind(q, k, v, k_cache, v_cache):
    keys, values = np.concatenate([k_cache, k], 1), np.concatenate([v_cache, v], 1)
    return by_index.attention(q, keys, values, causal=False), keys, values


@unit.exercise(
    Part("the first token of every text", 4, step(False)),
    Part("texts of several lengths", 6, step(True)),
    Wrong(
        "blind to itself",
        10,
        "the new token must see itself: write its key and value first, then attend",
        dict(blind=True),
    ),
    Wrong(
        "reads what is not filled",
        10,
        "your queries read rows that their text has not written: text b ends at row lengths[b]",
        dict(all_rows=True),
    ),
    Wrong(
        "one length for all",
        6,
        "you took the longest text's length for all; text b has filled lengths[b] rows",
        dict(longest=True),
    ),
    Wrong(
        "one row too far",
        10,
        "the rows 0 to lengths[b] - 1 are filled, so the new one is row lengths[b]; you wrote "
        "behind it",
        dict(behind=1),
    ),
    Wrong(
        "the new key alone",
        6,
        "your query saw only the new key; it must see what its text has filled, too",
        dict(forgets=True),
    ),
    slip(
        6,
        "your scores are not divided by sqrt(D)",
        lambda q, k, v, kc, vc, lengths: decode_step(
            q * np.sqrt(q.shape[-1]), k, v, kc, vc, lengths
        ),
    ),
    slip(
        6,
        "the ROOT of D divides the scores",
        lambda q, k, v, kc, vc, lengths: decode_step(
            q / np.sqrt(q.shape[-1]), k, v, kc, vc, lengths
        ),
    ),
    slip(
        10,
        "your mask is turned round: filled rows are seen, the others hidden",
        lambda q, k, v, kc, vc, lengths: (
            seen_rows(q, k, v, kc, vc, lengths, lambda s, n: s > n),
            *decode_step(q, k, v, kc, vc, lengths)[1:],
        ),
    ),
    slip(
        10,
        "the new row's number is lengths[b]: rows 0 to lengths[b] - 1 are filled",
        lambda q, k, v, kc, vc, lengths: written_at(q, k, v, kc, vc, lengths, lengths - 1),
    ),
    slip(
        10,
        "new rows are written INTO the cache, at lengths[b], not behind all S rows",
        lambda q, k, v, kc, vc, lengths: behind(q, k, v, kc, vc),
    ),
    slip(
        6,
        "every text has a length of its own; you wrote all new rows at the longest",
        lambda q, k, v, kc, vc, lengths: written_at(
            q, k, v, kc, vc, lengths, 0 * lengths + lengths.max()
        ),
    ),
    slip(
        10,
        "the weights mix values; you mixed the keys",
        lambda q, k, v, kc, vc, lengths: (
            decode_step(q, k, k, kc, kc, lengths)[0],
            *decode_step(q, k, v, kc, vc, lengths)[1:],
        ),
    ),
    slip(
        10,
        "a hidden score is -inf; 0 is a score like others",
        lambda q, k, v, kc, vc, lengths: (
            seen_rows(q, k, v, kc, vc, lengths, lambda s, n: s <= n, 0.0),
            *decode_step(q, k, v, kc, vc, lengths)[1:],
        ),
    ),
    hints=[
        "Copy both caches. Text b's new row goes to place lengths[b]: an index for the text beside "
        "one for the row.",
        "A mask is needed again: torch.arange(S) <= lengths[:, None], (B,S), with places for heads "
        "and query.",
    ],
    after="For one text everything in its cache lies before the new token, so no mask is needed; "
    "the token sees itself because it is written before it attends. Texts of several "
    "lengths share one block of memory, and there a mask comes back, not to hide the future "
    "but to hide what is not there. README's question: its length is all that must be kept "
    "for a text, and the mask is made from it. minimal/kernels/reference.py: visible takes "
    "such lengths; minimal/model/cache.py: Cache.append serves texts of one length.",
    level="medium",
    minutes=15,
)
def decode_step(
    q,
    k,
    v,
    k_cache,
    v_cache,
    lengths,
    *,
    blind=False,
    all_rows=False,
    forgets=False,
    longest=False,
    behind=0,
):
    """One token of each of B texts, through caches of S rows of which text b has filled the first
    lengths[b], fewer than S: q, k, v (B,1,H,D), caches (B,S,H,D), lengths (B,) whole numbers ->
    (out (B,1,H,D), both caches (B,S,H,D), with the new rows written).

    Token after token, the outputs must equal causal attention on each text alone. What stands in
    rows that are not filled is unknown, and stays.
    """
    keys, values, out = k_cache.copy(), v_cache.copy(), np.zeros(q.shape)
    for b, length in enumerate(lengths):
        end = max(lengths) if longest else length
        at = min(end + behind, k_cache.shape[1] - 1)
        keys[b, at], values[b, at] = k[b, 0], v[b, 0]
        rows = range(len(keys[b])) if all_rows else [at] if forgets else range(at + 1 - blind)
        some = [x[b : b + 1, list(rows)] for x in (keys, values)]
        if rows:
            out[b] = by_index.attention(q[b : b + 1], *some, causal=False)[0]
    return out, keys, values


def sizes(context):
    def make(r):
        heads, groups = [(8, 2), (6, 3), (4, 1)][r.integers(3)]
        width = 64 * heads
        hidden = 64 * r.integers(width // 32, width // 20)
        asked = context and r.integers(128, 4096)
        return r.integers(2, 30), width, heads, groups, hidden, r.integers(1000, 60000), asked

    return make


@unit.exercise(
    Part("the matrices (context 0)", 4, sizes(0)),
    Part("with attention", 4, sizes(1)),
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
        "keys as wide as queries",
        8,
        "you made W_K and W_V C × C; with grouped heads they are C wide and groups · D high",
        dict(grouped=False),
    ),
    Wrong(
        "two matrices in the MLP",
        8,
        "SwiGLU has three matrices: up, gate and down",
        dict(mlp=2),
    ),
    Wrong(
        "grouping saves products",
        4,
        "you counted QKᵀ and AV for the groups alone; every query head still meets every key",
        dict(shared=True),
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
    slip(
        8,
        "2 for every weight is the forward pass; training takes three times as much, 6",
        lambda *given: matrices(given) / 3 + pairs_of(given),
    ),
    slip(
        8,
        "6 for every weight: 2 forward, 4 backward",
        lambda *given: matrices(given) / 2 + pairs_of(given),
    ),
    slip(
        4,
        "your attention is the forward pass alone; training takes three times as much",
        lambda *given: matrices(given) + pairs_of(given) / 3,
    ),
    slip(
        4,
        "every query head attends: H heads of width D make the whole width C",
        lambda *given: matrices(given) + pairs_of(given) / given[2],
    ),
    slip(
        4,
        "every LAYER attends",
        lambda *given: matrices(given) + pairs_of(given) / given[0],
    ),
    hints=[
        "Matrices of a layer: W_Q and W_O are C × C; W_K and W_V make `groups` heads of D = C / "
        "heads; the MLP has three of C × hidden. And one output head, C × V.",
        "Every weight of a matrix costs 2 FLOPs forward (multiply, add) and 4 backward.",
        "QKᵀ and AV: each 2 · D · context forward for a token and a QUERY head, in every layer, "
        "and twice that backward.",
    ],
    after="A weight costs a multiplication and an addition forward, and the same twice backward, "
    "for the gradient of its input and for its own: 6 in all; a look-up multiplies nothing, "
    "so the embedding is free and the head costs C times V. Grouping makes W_K, W_V and the "
    "cache smaller, and saves nothing in the products, because every query head still meets "
    "every key. minimal/model/count.py: count does this for every plan of the course, and "
    "takes the whole context as well, so that its numbers compare with published ones.",
    level="medium",
    minutes=10,
)
def flops_per_token(
    layers,
    width,
    heads,
    groups,
    hidden,
    vocabulary,
    context,
    *,
    embedding=0,
    each=6,
    attention=12,
    grouped=True,
    mlp=3,
    shared=False,
):
    """FLOPs of training on one token (a whole number), by the usual count, of a Llama-like model:
    `heads` query heads share `groups` key/value heads, all C / heads wide; SwiGLU with three
    matrices between C and `hidden`; an output head; no biases.

    6 for every weight of a matrix that multiplies, plus QKᵀ and AV over the full `context`; norms
    and look-ups cost nothing.
    """
    narrow = width // heads * groups
    total = 0
    for _ in range(layers):
        matrices = [(width, width)] * 2 + [(width, narrow if grouped else width)] * 2
        for rows, columns in matrices + [(width, hidden)] * mlp:
            total += each * rows * columns
        total += attention * (narrow if shared else width) * context * each // 6
    return total + each * width * vocabulary * (1 + embedding)


@functools.cache
@functools.cache
def output_size(scale):
    """Measured over 300 random queries: the root mean square of attention's output over 1,024
    standard normal values. They are independent, so it is the root of the sum of squared
    weights."""
    r = np.random.default_rng(0)
    squares = []
    for _ in range(300):
        scores = r.normal(size=(1024, 64)) @ r.normal(size=64) * scale
        squares.append((by_index.softmax(scores) ** 2).sum())
    return float(np.sqrt(np.mean(squares)))


def near(which, scale, why):
    def accept(answer):
        said = need(answer, even=0, with_root=0, without=0)[which]
        refuse(abs(said / output_size(scale) - 1) > 0.2, why)

    return accept


@unit.exercise(
    Part(
        "even weights",
        2,
        None,
        near(0, 0, "not within a fifth of what is measured: how large is a mean of 1,024 numbers?"),
    ),
    Part(
        "with the root",
        2,
        None,
        near(
            1,
            1 / 8,
            "not within a fifth of what is measured with the root: exp of a score, with a standard "
            "deviation of 1, varies; so some values count more than others, and fewer are averaged",
        ),
    ),
    Part(
        "without the root",
        2,
        None,
        near(
            2,
            1,
            "not within a fifth of what is measured without the root: how many values does a query "
            "take, if scores have a standard deviation of 8?",
        ),
    ),
    Wrong("a mean keeps the size", 6, "not within", returns=lambda: (1.0, 1.0, 1.0)),
    Wrong("a share for the size", 4, "not within", returns=lambda: (1 / 1024, 1 / 1024, 0.78)),
    hints=[
        "The values are independent, so the squares add up: the mean square of the output is the "
        "sum of the squared weights. For even weights that is one line.",
        "With the root a weight is exp(z) over a sum of 1,024 of them, z standard normal: the mean "
        "of exp(z) is exp(1/2), that of its square exp(2). And without the root, nearly all of the "
        "weight lies on one or two keys.",
    ],
    after="The squares of independent values add up, so the output's size is the root of the sum "
    "of the squared weights. Even weights give 1/32 = 0.031; with the root it is 0.051, "
    "more by the root of e; without it 0.76, nearly one value alone. So at the start a "
    "layer hands on a few per cent of the size of its values, and less in a longer text, "
    "until it has learned to point. The scale of every style is minimal/model/config.py: "
    "Style.attention_scale.",
    level="medium",
    minutes=8,
)
def predict_output_size():
    """Predict, then measure: a query, 1,024 keys and values, all standard normal and 64 wide, so a
    value has root mean square 1. What root mean square has attention's output (1) if all weights
    are even, (2) with softmax(q kᵀ / sqrt(64)), (3) with softmax(q kᵀ)? Three numbers; each counts
    within a fifth of it.
    """
    return output_size(0), output_size(1 / 8), output_size(1)


def one_of_five(which, q, k, v):
    """The five ways, in matrices: a learner chooses the size."""
    seen = np.tril(np.ones((len(q), len(q)), bool))
    scores = q @ k.T / np.sqrt(q.shape[1])
    if which == 2:
        scores = scores - scores.max(1, keepdims=True)
    if which in (1, 2, 5):
        scores = np.where(seen, scores, -np.inf)
    if which == 5:
        scores = scores - scores[:, :1]
    shares = np.stack([by_index.softmax(row) for row in scores])
    if which in (3, 4):
        shares = shares * seen
    if which == 4:
        shares = shares / shares.sum(1, keepdims=True)
    return shares @ v


def leaks(answer):
    which, q, k, v, q2, k2, v2 = need(answer, which=0, q=2, k=2, v=2, q2=2, k2=2, v2=2)
    refuse(which not in (1, 2, 3, 4, 5), "the first thing is the number of a way, 1 to 5")
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
    change = one_of_five(which, q, k, v) - one_of_five(which, q2, k2, v2)
    refuse(
        not np.abs(change[:-1]).max() >= 0.01,
        "in the way that you name no earlier row moves (by 0.01): what does an earlier query read "
        "of the last row there?",
    )


def same(last):
    """Three rows that are the unit vectors, and the last row once more, changed."""
    return np.eye(3), np.eye(3) + np.array([[0], [0], [last]])


@unit.exercise(
    Part("an earlier token moves", 8, None, leaks),
    Wrong(
        "the value alone",
        8,
        "in the way that you name no earlier row moves",
        returns=lambda: (3, np.eye(3), np.eye(3), np.eye(3), np.eye(3), *same(2)),
    ),
    Wrong(
        "shifted before the mask",
        8,
        "in the way that you name no earlier row moves",
        returns=lambda: (2, np.eye(3), same(2)[0], np.eye(3), np.eye(3), same(2)[1], np.eye(3)),
    ),
    Wrong(
        "another first row",
        8,
        "the two sequences may differ in the LAST row only",
        returns=lambda: (3, np.eye(3), np.eye(3), np.eye(3), np.eye(3), np.eye(3)[::-1], np.eye(3)),
    ),
    hints=[
        "In every way the hidden values are multiplied by 0. Through what else can a later row be "
        "heard? Look at what each row is divided by.",
        "Softmax first and the mask after it: the hidden keys are in the denominator. A larger "
        "last key makes every earlier output smaller.",
    ],
    after="In way 3 the hidden weights become 0, but the softmax has divided by a sum that holds "
    "the hidden keys: the future leaks through the keys, not the values, and a model can "
    "read from the size of its outputs what comes next. Way 4 divides again, and the wrong "
    "sum cancels. In ways 2 and 5 one number is subtracted from a whole row, which a "
    "softmax does not notice, wherever that number comes from. "
    "minimal/kernels/reference.py: visible makes the mask, and it meets the scores before "
    "the softmax.",
    level="medium",
    minutes=11,
)
def mask_counter_example():
    """Find the error. Five ways to write causal attention; seen is True where s <= t, and scores
    are q kᵀ / sqrt(D). One of them lets the future through.

    1: scores.masked_fill(~seen, -inf).softmax(-1) @ v
    2: (scores - scores.amax(-1, keepdim=True)).masked_fill(~seen, -inf).softmax(-1) @ v
    3: (scores.softmax(-1) * seen) @ v
    4: a = scores.softmax(-1) * seen;  (a / a.sum(-1, keepdim=True)) @ v
    5: z = scores.masked_fill(~seen, -inf);  (z - z[:, :1]).softmax(-1) @ v

    Return (which, q, k, v, q2, k2, v2): its number, and two sequences, q and k (T,D), v (T,E), that
    differ in their last row only and with which an earlier output of that way changes by at least
    0.01.
    """
    return 3, np.eye(3), same(2)[0], np.eye(3), np.eye(3), same(2)[1], np.eye(3)


def tile(T, start, S):
    """The keys start to start + S - 1 of T, behind causal attention over all of them."""

    def make(r):
        q, k, v, dout = normals(r, (T, 5), (T, 5), (T, 6), (T, 6))
        scores = np.where(np.tril(np.ones((T, T), bool)), q @ k.T / np.sqrt(5), -np.inf)
        lse = np.log(np.exp(scores).sum(1))
        out = np.exp(scores - lse[:, None]) @ v
        keys = slice(start, start + S)
        return q, k[keys], v[keys], out, lse, dout, start

    return make


def by_steps(
    q,
    k,
    v,
    out,
    lse,
    dout,
    start,
    dv=None,
    own=0,
    inner=None,
    soft=False,
    less=False,
    dP=None,
):
    """The three gradients, with one step done otherwise."""
    scale = q.shape[-1] ** -0.5
    hidden = np.arange(len(k)) + start + own > np.arange(len(q))[:, None]
    exponent = q @ k.T * (inner or scale) - lse[:, None]
    P = np.stack([by_index.softmax(row) for row in exponent]) if soft else np.exp(exponent)
    P = np.where(hidden, 0, P)
    dP = dout @ v.T if dP is None else dP
    dS = P * (1 - P if less else 1) * (dP - (dout * out).sum(1, keepdims=True)) * scale
    return dS @ k, dS.T @ q, dv(P, dP) if dv else P.T @ dout


@unit.exercise(
    Part("a tile that is the whole sequence", 4, tile(4, 0, 4)),
    Part("a tile of a longer sequence", 8, tile(9, 3, 3)),
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
    Wrong(
        "the mask forgotten",
        12,
        "you gave weight to keys behind the query: exp(score - lse) is not 0 there, so hide them "
        "again",
        dict(ahead=True),
    ),
    Wrong(
        "places counted in the tile",
        8,
        "you compared the query's position with the key's place in the tile; key s stands at "
        "start + s",
        dict(local=True),
    ),
    slip(
        12,
        "dv is Pᵀ dout, with the weights themselves",
        lambda q, k, v, out, lse, dout, start: by_steps(
            q, k, v, out, lse, dout, start, dv=lambda P, dP: dP.T @ dout
        ),
    ),
    slip(
        12,
        "dv is Pᵀ DOUT, not Pᵀ out",
        lambda q, k, v, out, lse, dout, start: by_steps(
            q, k, v, out, lse, dout, start, dv=lambda P, dP: P.T @ out
        ),
    ),
    slip(
        12,
        "a query sees its own key; only keys after it are hidden",
        by_steps,
        own=1,
    ),
    slip(
        12,
        "the scores in P are not divided by sqrt(D)",
        by_steps,
        inner=1.0,
    ),
    slip(
        12,
        "P is exp(score - lse), and no softmax over the tile: lse knows all keys",
        by_steps,
        soft=True,
    ),
    slip(
        12,
        "through a softmax: P * (dP - sum(dout * out)); there is no 1 - P",
        by_steps,
        less=True,
    ),
    slip(
        12,
        "dP is DOUT vᵀ, not out vᵀ",
        lambda q, k, v, out, lse, dout, start: by_steps(
            q, k, v, out, lse, dout, start, dP=out @ v.T
        ),
    ),
    hints=[
        "P = exp(q kᵀ / sqrt(D) - lse), 0 where start + s > t. dv = Pᵀ dout. dP = dout vᵀ.",
        "The row term of dS is a sum over all keys; out has them all. Why is that enough, when "
        "this tile never saw the others?",
        "The root divided the scores, so it divides the gradients of q and k, too.",
    ],
    after="The row sum of P dP runs over all keys, but the output is already the sum of P V "
    "over all keys, so the row sum is dO times O and one tile is enough. "
    "minimal/kernels/backward.py: backward_queries computes it once a row and calls it "
    "delta. In the solution that uses automatic differentiation the weights are held "
    "fixed and only the scores are differentiated: a softmax over the tile would know "
    "nothing of the other keys.",
    level="stretch",
    minutes=22,
)
def tile_backward(
    q, k, v, out, lse, dout, start, *, own=False, row=True, scaled=True, ahead=False, local=False
):
    """Stretch: what one tile of keys contributes to the gradients of causal attention, as flash
    attention recomputes it.

    q (T,D); k (S,D), v (S,E): the tile's keys and values, those of positions start to start + S - 1
    of T. out (T,E), lse (T,): result, and log of the sum of exp(scores), over ALL keys that a query
    sees. dout (T,E): gradient of the loss by out. Returns this tile's share of dq (T,D), and its
    dk, dv.
    """
    (T, D), S = q.shape, len(k)
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    for t in range(T):
        first = 0 if local else start
        seen = [s for s in range(S) if first + s <= t or ahead]
        if not seen:
            continue
        scores = np.array([q[t] @ k[s] / np.sqrt(D) for s in seen])
        P = by_index.softmax(scores) if own else np.exp(scores - lse[t])
        for weight, s in zip(P, seen):
            dS = weight * (dout[t] @ v[s] - (dout[t] @ out[t] if row else 0))
            dS /= np.sqrt(D) if scaled else 1
            dq[t] += dS * k[s]
            dk[s] += dS * q[t]
            dv[s] += weight * dout[t]
    return dq, dk, dv
