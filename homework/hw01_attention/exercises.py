"""hw01: what does a token do with the tokens before it, and how is that computed a tile, or a
token, at a time?"""

import functools

import numpy as np

from homework.by_index import softmax
from homework.marking import Part, Unit, drawn, need, normals, refuse

unit = Unit(
    "hw01_attention",
    "What does a token see?",
    """Letters: B batch, T new positions, S visible positions, H heads, D, E and C widths of heads,
    values and model.""",
)


def square(r):
    T = int(r.integers(5, 9))
    return T, T, int(r.integers(2, T - 1))


def late(r):
    """The first of the queries stands inside the prefix."""
    T, S = int(r.integers(3, 5)), int(r.integers(7, 10))
    return T, S, int(r.integers(S - T + 2, S))


@unit.exercise(Part("as many queries as keys", 4, square), Part("fewer queries than keys", 4, late))
def prefix_mask(T, S, prefix):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions. Causal, but the first `prefix` positions see each
    other whole, as a question that is read at once, before the answer is written.
    """
    mask = np.zeros((T, S), bool)
    for t, s in np.ndindex(T, S):
        at = t + S - T
        mask[t, s] = s <= at or s < prefix
    return mask


unit.mistakes("""
takes: medium, 9 minutes
hint: Draw the square for T = S = 4 and a prefix of 3. Which keys do positions 0 and 3 see?
hint: Two masks, joined by |: the causal one, and one of the keys alone. The causal one compares
    | torch.arange(S) with torch.arange(T)[:, None] + (S - T).
after: A key is visible if it is not later than the query, or if it lies in the prefix; and since
    | the T queries are the newest of S positions, query t stands at S - T + t. README's question:
    | nothing of a prefix is predicted, so what it sees cannot give an answer away; with a loss on
    | its tokens it would. minimal/kernels/reference.py: visible has the causal condition, with
    | windows and padding added. One of the solutions cuts the last T rows out of a square.
8 | your positions do not see themselves: the own key is at or before the query
    hint: for T = S = 1 the answer is [[True]]. Which comparison gives that, < or <=?
    s <= at => s < at
8 | yours is True where a key is hidden; wanted True where it is visible
    hint: the answer is wanted for masked_fill(~mask, -inf): turn all of it with ~
    return mask => return ~mask
4 | with fewer queries than keys, the queries are the LAST positions: query t stands at t + S - T
    hint: draw T = 2, S = 4: the first query stands at position 2. What is added to its row number?
    t + S - T => t
8 | yours is causal everywhere: a position inside the prefix sees all of the prefix
    hint: a second mask, of the keys alone: torch.arange(S) < prefix. Join the two with |
    or s < prefix =>
8 | the prefix is the keys 0 to prefix - 1; yours shows key number `prefix` as well
    hint: a prefix of 1 is key 0 alone. Which comparison gives that, < or <=?
    s < prefix => s <= prefix
8 | your positions inside the prefix see what comes behind it; there they are causal like all others
    hint: the prefix is a condition on the KEY alone; where does a query enter yours?
    s < prefix => s < prefix or at < prefix
8 | your rows see what comes AFTER them: queries are rows, keys are columns
    hint: Row t holds what query t sees: the key s = 0 stands before every query.
    s <= at or s < prefix => s >= at or max(s, at) < prefix
8 | you asked for both at once; a key is seen if it comes before OR both are of the prefix
    hint: Key 0 comes before the last query, which is of no prefix. Does it see it?
    s <= at or s < prefix => s <= at < prefix
8 | yours holds numbers; wanted True and False: .bool()
    hint: A comparison of two aranges is a mask already; | puts two masks together.
    return mask => return mask.astype(float)
""")


@drawn
def rows_of_documents(r, several):
    """Seven keys, four late queries; with several documents, one ends among the queries."""
    q, k, v = normals(r, (2, 4, 3, 6), (2, 7, 3, 6), (2, 7, 3, 5))
    documents = np.zeros((2, 7), int)
    for row in documents:
        first, second = r.choice(9, 2, replace=False)
        row[:] = first
        row[int(r.integers(4, 6)) if several else 7 :] = second
    return q, k, v, documents


@unit.exercise(
    Part("one document", 6, rows_of_documents(False)),
    Part("several documents in a row", 8, rows_of_documents(True)),
)
def attention(q, k, v, documents):
    """Causal attention over rows that hold several documents: q (B,T,H,D), k (B,S,H,D), v
    (B,S,H,E), documents (B,S) whole numbers -> (B,T,H,E).

    The queries are the last T of S positions. A query sees the keys at or before its own position
    that belong to its own document.
    """
    (B, T, H, D), S = q.shape, k.shape[1]
    at, out = np.arange(S - T, S)[:, None], np.zeros((B, T, H, v.shape[-1]))
    for b, h in np.ndindex(B, H):
        scores = q[b, :, h] @ k[b, :, h].T / np.sqrt(D)
        seen = (np.arange(S) <= at) & (documents[b, at] == documents[b])
        out[b, :, h] = softmax(np.where(seen, scores, -np.inf)) @ v[b, :, h]
    return out


unit.mistakes("""
takes: medium, 14 minutes
hint: Move the heads next to the batch, (B,H,T,D), and everything is matrix products: q @ k.mT,
    | softmax over the last dimension.
hint: The mask is now (B,T,S): causal, and documents[:, S - T:, None] == documents[:, None]. Give it
    | a place for the heads.
hint: masked_fill(~mask, float('-inf')) before the softmax; no row is empty: a query sees itself.
after: Dividing by the root of D keeps the softmax soft at any width, since a score is a sum of D
    | products. Texts that share a row must not hear each other, so the mask differs from text to
    | text; minimal/kernels/reference.py: by_definition takes such a mask, and every kernel must
    | equal it. README's question: weights that are hidden after the softmax no longer sum to one,
    | and the sum that they were divided by still holds the future. Nothing fails, so only a test
    | notices: with all values equal to one, every output must be one.
14 | your output equals attention without the 1/sqrt(D) scale: see notebook 01, 'why the root'
     / np.sqrt(D) =>
14 | you divided by D; a sum of D products grows like its ROOT: see notebook 01, 'why the root'
     np.sqrt(D) => D
14 | your weights sum to one over the queries; each query spreads one unit over its keys
     -np.inf)) => -np.inf), 0)
14 | you divided by the root of the whole model width; a score sums over one head's D
     np.sqrt(D) => np.sqrt(D * H)
14 | with fewer queries than keys, the queries are the LAST positions: query t sees keys up to t + S
   | - T
     (np.arange(S) <= at) => (np.arange(S) <= at - S + T)
14 | you hid keys after the softmax: what is left no longer sums to one; hide them before, with -inf
     softmax(np.where(seen, scores, -np.inf)) => softmax(scores) * seen
14 | your queries see keys that come after them, of their own document
     (np.arange(S) <= at) & =>
 8 | you did not use `documents`: a query sees keys of its own document only
     & (documents[b, at] == documents[b]) =>
 8 | you looked up the document of query t at position t; it stands at t + S - T
     documents[b, at] => documents[b, at - S + T]
""")


@drawn
def far(r, base):
    """Odd positions behind 2,048, which half a precision cannot tell from their neighbours."""
    positions = r.integers(0, 40, (2, 5))
    positions[:, [1, 3]] = 2 * r.integers(1024, 2048, (2, 2)) + 1
    return r.normal(size=(2, 5, 3, 10)), positions, base, 6


def scattered(r):
    return r.normal(size=(2, 5, 3, 10)), r.integers(0, 40, (2, 5)), 10000.0, 6


def in_order(r):
    return r.normal(size=(2, 5, 3, 10)), np.stack([np.arange(5)] * 2), 100.0, 6


@unit.exercise(
    Part("positions 0, 1, 2, …", 6, in_order),
    Part("any positions", 6, [far(10000.0), far(100.0), scattered]),
)
def rope(x, positions, base, turned):
    """Rotary positions on a part of each head: x (B,T,H,D), positions (B,T) whole numbers, base a
    number, turned even -> (B,T,H,D).

    The first `turned` features turn, the others stay. With x1, x2 the first and second half of
    those that turn and angle = position * base ** (-2 i / turned), i = 0 … turned/2 - 1: y1 = x1
    cos(angle) + x2 sin(angle), y2 = -x1 sin(angle) + x2 cos(angle).
    """
    out = x.copy()
    for b, t, i in np.ndindex(len(x), x.shape[1], turned // 2):
        angle = positions[b, t] * base ** (-2 * i / turned)
        one, two = i, i + turned // 2
        out[b, t, :, one] = x[b, t, :, one] * np.cos(angle) + x[b, t, :, two] * np.sin(angle)
        out[b, t, :, two] = -x[b, t, :, one] * np.sin(angle) + x[b, t, :, two] * np.cos(angle)
    return out


unit.mistakes(r"""
takes: medium, 14 minutes
hint: Cut x in three along the last dimension: two halves of what turns, and the rest. Each pair
    | turns by its own angle; the rest is put back behind them.
hint: The angle is (B,T,turned/2), positions times base ** (-2 * i / turned); give it a heads
    | dimension before you multiply.
after: A turn keeps the length of a pair, and in the product of a query and a key only the
    | difference of their two angles is left: a score knows t - s and nothing else of the positions.
    | minimal/model/layers.py: rotate has the same pairs and the same sign, for a head that turns
    | whole; GPT-NeoX turns a quarter of it, and the rest can match content at any distance. The
    | solution with complex numbers is the shortest proof: a pair is one number, and to turn it is
    | to multiply by exp(-i angle).
12 | you turned by the opposite angle: y1 = x1 cos + x2 sin, y2 = -x1 sin + x2 cos
     angle = => angle = -
12 | you paired neighbours (0 with 1, 2 with 3); here entry i goes with entry i + turned/2
     i, i + turned // 2 => 2 * i, 2 * i + 1
12 | your frequencies fall half as fast: base ** (-2i/turned) for i = 0 … turned/2 - 1
     -2 * i => -i
 6 | you turned row t by t; the argument `positions` says where each row stands
     positions[b, t] => t
12 | you turned all D features; only the first `turned` do, and the rest stay as they are
     out = x.copy() => out, turned = x.copy(), x.shape[-1]
12 | you paired entry i with entry i + D/2; the partner is i + turned/2, inside what turns
     i + turned // 2 => i + x.shape[-1] // 2
12 | your frequencies fall as if all D features turned: base ** (-2i/turned)
     i / turned => i / x.shape[-1]
 6 | you turned every text by the positions of the first one
     positions[b, t] => positions[0, t]
 6 | your positions were rounded: half a precision has no odd numbers above 2,048; keep positions
   | and angles in float32 at least
     positions[b, t] => positions.astype("f2").astype("f8")[b, t]
12 | your positions are one too large: position 0 does not turn
     positions[b, t] => (positions[b, t] + 1)
12 | you took neighbours as pairs, put into halves; the first half turns with the second
     out = x.copy() => x = np.concatenate([x[..., :turned:2], x[..., 1:turned:2], x[...,
   | turned:]], -1)\nout = x.copy()
12 | your y1 and y2 are in each other's place
     out[b, t, :, one] => out[b, t, :, two]
     and: out[b, t, :, two] => out[b, t, :, one]
12 | the features that do not turn stay as they are; yours are 0
     x.copy() => np.zeros(x.shape)
12 | that is no turn: one of the two sines has a minus, y2 = x2 cos - x1 sin
     -x[b, t, :, one] => x[b, t, :, one]
""")


@drawn
def tiles(r, size, ragged):
    """Whole tiles from left to right; or of any width, in any order, and keys that are hidden: the
    first tile to come holds none that query 0 may see."""
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


@unit.exercise(
    Part("ordinary scores, from left to right", 6, tiles(2, False)),
    Part("scores in the hundreds, hidden keys, any order", 8, tiles(100, True)),
)
def online_softmax(scores, values, tiles):
    """softmax(scores) @ values, a tile of columns at a time, each read once: scores (T,S), values
    (S,E), tiles (N,2) whole numbers: as number n come the columns tiles[n,0] to tiles[n,1] - 1.

    The tiles cover all columns, in any order. A hidden key has the score -inf; a tile may hold
    nothing that a query sees, all tiles together hold something. Returns (out (T,E), maxima (N,T),
    sums (N,T)): the result, and after each tile the largest score so far and the sum of exp(score -
    that maximum) so far, both 0 for a query that has seen nothing yet. No exp of a number above 0.
    """
    T, E = len(scores), values.shape[1]
    m, total, o = np.full(T, -np.inf), np.zeros(T), np.zeros((T, E))
    maxima, sums = np.zeros((2, len(tiles), T))
    for n, (start, end) in enumerate(tiles):
        for t in range(T):
            tile = scores[t, start:end]
            new = max(m[t], tile.max())
            safe = new if new > -np.inf else 0.0
            shrink = np.exp(m[t] - safe)
            e = np.exp(tile - safe)
            total[t] = total[t] * shrink + e.sum()
            o[t] = o[t] * shrink + e @ values[start:end]
            m[t] = new
            maxima[n, t] = safe
            sums[n, t] = total[t]
    return o / total[:, None], maxima, sums


unit.mistakes(r"""
takes: hard, 26 minutes
hint: Keep three things: m (T,) the maximum so far, total (T,) the sum of exp(score - m), o (T,E)
    | the same sum weighted with values.
hint: A new tile: new = max(m, tile.max(-1)); shrink = exp(m - new); total = total * shrink + …; o =
    | o * shrink[:, None] + …; m = new.
hint: -inf minus -inf is NaN. Where nothing has been seen yet, subtract 0 instead: exp(-inf) is 0,
    | and 0 is what belongs there.
after: Whatever was summed is relative to the largest score so far; when a larger one comes, the
    | factor exp(old - new) moves it there, and exp never gets a number above 0. A sum does not care
    | for order, so tiles may come as they like; a row that has seen nothing yet needs one guard,
    | which is where many kernels have had their NaN. minimal/kernels/forward.py: absorb is this
    | loop as a Triton kernel, in base 2. One solution takes an ordinary sum over each prefix
    | instead: the same numbers, but it reads a score again for every later tile.
14 | when the maximum grows, what was summed shrinks by exp(old - new): your running sum did not
     hint: before you add to it: total = total * exp(m - new)
     total[t] * shrink => total[t]
14 | your running sum shrinks when the maximum grows, your running output does not
     hint: before you add to it: o = o * exp(m - new), one factor a row: [:, None]
     o[t] * shrink => o[t]
14 | your maximum is that of the last tile alone; it must be the largest of all tiles so far
     hint: new = torch.maximum(m, tile.amax(-1)): compare with what was seen before
     max(m[t], tile.max()) => tile.max()
14 | your running maximum starts at 0, but all scores of a tile may be negative: start at -inf
     hint: torch.full((T,), -torch.inf): the first tile then always wins
     np.full(T, -np.inf) => np.zeros(T)
 8 | you read the tiles from left to right; they come in the order of the rows of `tiles`
     hint: for start, end in tiles.tolist(): as they come, without sorting
     enumerate(tiles) => enumerate(sorted(tiles.tolist()))
 8 | -inf minus -inf is NaN: where a query has seen nothing yet, subtract 0, not its maximum
     hint: safe = torch.where(new == -torch.inf, 0, new), and exp(… - safe) everywhere
     new if new > -np.inf else 0.0 => new
14 | after a tile the new maximum is the old one of the next: m = new
     m[t] = new =>
14 | maxima and sums are those of all tiles so far; yours are each tile's own
     sums[n, t] = total[t] => sums[n, t] = e.sum()
     maxima[n, t] = safe => maxima[n, t] = tile.max() if tile.max() > -np.inf else 0
14 | wanted the sum itself, not maximum + log of the sum
     sums[n, t] = total[t] => sums[n, t] = safe + np.log(total[t])
14 | the running output is divided once, at the end
     e @ values[start:end] => e @ values[start:end]\n        o[t] /= total[t]
14 | a tile ends BEFORE column tiles[n, 1]; yours takes it too
     enumerate(tiles) => enumerate(tiles + [0, 1])
14 | the maximum goes into the exponent: exp(s - maximum), and old sums shrink
     np.exp(m[t] - safe) => 1
     and: np.exp(tile - safe) => np.exp(tile)
""")


def halves(size):
    def half(r):
        return r.normal(size=(2, 3, 4, 5)), r.normal(size=(2, 3, 4)) + size

    return lambda r: (*half(r), *half(r))


@unit.exercise(Part("small sums", 4, halves(0)), Part("sums too large for exp", 4, halves(500)))
def merge(out_a, lse_a, out_b, lse_b):
    """Attention over all keys from attention over two halves of them: out (…,E) and lse (…) of each
    half -> (out, lse) of both.

    lse is the log of the sum of exp(score) over the half's keys. This is how a long cache is split
    over processors.
    """
    top = np.maximum(lse_a, lse_b)
    a, b = np.exp(lse_a - top), np.exp(lse_b - top)
    share = (a / (a + b))[..., None]
    return share * out_a + (1 - share) * out_b, top + np.log(a + b)


unit.mistakes("""
takes: medium, 9 minutes
hint: The share of half a is exp(lse_a) / (exp(lse_a) + exp(lse_b)): a sigmoid of the difference.
hint: torch.logaddexp for the new lse, and share_a = exp(lse_a - lse): nothing overflows. Mind the
    | last dimension of out.
after: Besides its output each half must report one number, its lse. The share of a half is exp(its
    | lse - the joint lse): only differences meet exp, so nothing overflows. The three solutions
    | write the same share with logaddexp, as a softmax over the halves, and as a sigmoid of the
    | difference; minimal/kernels/decode.py: combine does it for any number of splits.
8 | you averaged the halves; each counts by its share of the total weight, exp(lse) of its own half
    (a / (a + b))[..., None] => 0.5
8 | you gave each half the other's share
    a / (a + b) => b / (a + b)
8 | the joint lse is log(exp(a) + exp(b)), not the larger of the two
    + np.log(a + b) =>
8 | you added the two outputs; each counts by its share of the sum
    share * out_a + (1 - share) * out_b => out_a + out_b
8 | logarithms of sums do not add up: logaddexp
    top + np.log(a + b) => lse_a + lse_b
8 | that is the sum itself; its LOGARITHM is handed on
    top + np.log(a + b) => np.exp(top + np.log(a + b))
8 | your weights are the logarithms; they are exp(lse - lse of both)
    a / (a + b) => lse_a / (lse_a + lse_b)
8 | you took the half with the larger sum alone; each counts by its share
    a / (a + b) => lse_a > lse_b
""")


@drawn
def step(r, filled):
    """Three texts in one cache of six rows; what a text has not filled holds another's leavings."""
    new, caches = normals(r, *[(3, 1, 2, 6)] * 3), normals(r, *[(3, 6, 2, 6)] * 2)
    lengths = r.choice(np.arange(1, 6), 3, replace=False) if filled else np.zeros(3, int)
    return *new, *caches, lengths


@unit.exercise(
    Part("the first token of every text", 4, step(False)),
    Part("texts of several lengths", 6, step(True)),
)
def decode_step(q, k, v, k_cache, v_cache, lengths):
    """One token of each of B texts, through caches of S rows of which text b has filled the first
    lengths[b], fewer than S: q, k, v (B,1,H,D), caches (B,S,H,D), lengths (B,) whole numbers ->
    (out (B,1,H,D), both caches (B,S,H,D), with the new rows written).

    Token after token, the outputs must equal causal attention on each text alone. What stands in
    rows that are not filled is unknown, and stays.
    """
    keys, values, out = k_cache.copy(), v_cache.copy(), np.zeros(q.shape)
    for b, n in enumerate(lengths):
        keys[b, n], values[b, n] = k[b, 0], v[b, 0]
        seen = np.arange(keys.shape[1]) <= n
        for h in range(q.shape[2]):
            scores = keys[b, :, h] @ q[b, 0, h] / np.sqrt(q.shape[3])
            weights = softmax(np.where(seen, scores, -np.inf))
            out[b, 0, h] = weights @ values[b, :, h]
    return out, keys, values


unit.mistakes("""
takes: medium, 15 minutes
hint: Copy both caches. Text b's new row goes to place lengths[b]: index texts and rows.
hint: A mask is needed again: torch.arange(S) <= lengths[:, None], (B,S), with places for heads and
    | query.
after: For one text everything in its cache lies before the new token, so no mask is needed; the
    | token sees itself because it is written before it attends. Texts of several lengths share one
    | block of memory, and there a mask comes back, not to hide the future but to hide what is not
    | there. README's question: its length is all that must be kept for a text, and the mask is made
    | from it. minimal/kernels/reference.py: visible takes such lengths; minimal/model/cache.py:
    | Cache.append serves texts of one length.
10 | the new token must see itself: write its key and value first, then attend
     <= n => < n
     and: weights @ => np.nan_to_num(weights) @
     <= n => < n
10 | your queries read rows that their text has not written: text b ends at row lengths[b]
     <= n => >= 0
 6 | you took the longest text's length for all; text b has filled lengths[b] rows
     enumerate(lengths) => enumerate([max(lengths)] * len(q))
10 | the rows 0 to lengths[b] - 1 are filled, so the new one is row lengths[b]; you wrote behind it
     enumerate(lengths) => enumerate(np.minimum(lengths + 1, k_cache.shape[1] - 1))
 6 | your query saw only the new key; it must see what its text has filled, too
     <= n => == n
 6 | your scores are not divided by sqrt(D)
     / np.sqrt(q.shape[3]) =>
 6 | the ROOT of D divides the scores
     np.sqrt(q.shape[3]) => q.shape[3]
10 | your mask is turned round: filled rows are seen, the others hidden
     <= n => > n
10 | the new row's number is lengths[b]: rows 0 to lengths[b] - 1 are filled
     keys[b, n], values[b, n] => keys[b, n - 1], values[b, n - 1]
10 | new rows are written INTO the cache, at lengths[b], not behind all S rows
     k_cache.copy(), v_cache.copy() => np.concatenate([k_cache, k], 1),
   | np.concatenate([v_cache, v], 1)
     and: keys[b, n], values[b, n] = k[b, 0], v[b, 0] =>
     and: <= n => >= 0
 6 | every text has a length of its own; you wrote all new rows at the longest
     keys[b, n], values[b, n] => keys[b, max(lengths)], values[b, max(lengths)]
10 | the weights mix values; you mixed the keys
     @ values[b, :, h] => @ keys[b, :, h]
10 | a hidden score is -inf; 0 is a score like others
     -np.inf => 0
""")


@drawn
def sizes(r, context):
    heads, groups = [(8, 2), (6, 3), (4, 1)][r.integers(3)]
    width = 64 * heads
    hidden = 64 * r.integers(width // 32, width // 20)
    asked = context and r.integers(128, 4096)
    return r.integers(2, 30), width, heads, groups, hidden, r.integers(1000, 60000), asked


@unit.exercise(Part("the matrices (context 0)", 4, sizes(0)), Part("with attention", 4, sizes(1)))
def flops_per_token(layers, width, heads, groups, hidden, vocabulary, context):
    """FLOPs of training on one token (a whole number), by the usual count, of a Llama-like model:
    `heads` query heads share `groups` key/value heads, all C / heads wide; SwiGLU with three
    matrices between C and `hidden`; an output head; no biases.

    6 for every weight of a matrix that multiplies, plus QKᵀ and AV over the full `context`; norms
    and look-ups cost nothing.
    """
    narrow, total = width // heads * groups, 0
    for _ in range(layers):
        for rows, columns in [(width, width)] * 2 + [(width, narrow)] * 2 + [(width, hidden)] * 3:
            total += 6 * rows * columns
        total += 12 * width * context
    total += 6 * width * vocabulary
    return total


unit.mistakes("""
takes: medium, 10 minutes
hint: Matrices of a layer: W_Q and W_O are C × C; W_K and W_V make `groups` heads of D = C / heads;
    | the MLP has three of C × hidden. And one output head, C × V.
hint: Every weight of a matrix costs 2 FLOPs forward (multiply, add) and 4 backward.
hint: QKᵀ and AV: a token, QUERY head and layer takes 2 · D · context forward, twice that backward.
after: A weight costs a multiplication and an addition forward, and the same twice backward, for the
    | gradient of its input and for its own: 6 in all; a look-up multiplies nothing, so the
    | embedding is free and the head costs C times V. Grouping makes W_K, W_V and the cache smaller,
    | and saves nothing in the products, because every query head still meets every key.
    | minimal/model/count.py: count does this for every plan of the course, and takes the whole
    | context as well, so that its numbers compare with published ones.
8 | you counted the embedding table: looking a row up is no multiplication
    6 * width * vocabulary => 6 * width * vocabulary * 2
8 | the output head is a matrix too: C × V
    total += 6 * width * vocabulary =>
8 | you counted the forward pass: training takes 2 for it and 4 for the backward pass, 6 in all
    return total => return total // 3
8 | you made W_K and W_V C × C; with grouped heads they are C wide and groups · D high
    (width, narrow) => (width, width)
8 | SwiGLU has three matrices: up, gate and down
    [(width, hidden)] * 3 => [(width, hidden)] * 2
4 | you counted QKᵀ and AV for the groups alone; every query head still meets every key
    12 * width => 12 * narrow
4 | the products with keys and values are missing: 12 · C · context a layer
    total += 12 * width * context =>
4 | you halved attention for the mask; the usual count takes the whole context
    12 * width => 6 * width
8 | 2 for every weight is the forward pass; training takes three times as much, 6
    6 * rows => 2 * rows
    and: 6 * width * vocabulary => 2 * width * vocabulary
8 | 6 for every weight: 2 forward, 4 backward
    6 * rows => 3 * rows
    and: 6 * width * vocabulary => 3 * width * vocabulary
4 | your attention is the forward pass alone; training takes three times as much
    12 * width => 4 * width
4 | every query head attends: H heads of width D make the whole width C
    12 * width => 12 * (width // heads)
4 | every LAYER attends
    total += 12 * width * context =>
    and: 6 * width * vocabulary => 6 * width * vocabulary + 12 * width * context
""")


@functools.cache
def output_size(scale):
    """Measured over 300 random queries: the root mean square of attention's output over 1,024
    standard normal values. They are independent, so it is the root of the sum of squared
    weights."""
    r = np.random.default_rng(0)
    squares = []
    for _ in range(300):
        scores = r.normal(size=(1024, 64)) @ r.normal(size=64) * scale
        squares.append((softmax(scores) ** 2).sum())
    return float(np.sqrt(np.mean(squares)))


@drawn
def near(answer, which, scale):
    said = need(answer, even=0, with_root=0, without=0)[which]
    refuse(abs(said / output_size(scale) - 1) > 0.2)


@unit.exercise(
    Part("even weights", 2, None, near(0, 0)),
    Part("with the root", 2, None, near(1, 1 / 8)),
    Part("without the root", 2, None, near(2, 1)),
)
def predict_output_size():
    """Predict, then measure: a query, 1,024 keys and values, all standard normal and 64 wide, so a
    value has root mean square 1. What root mean square has attention's output (1) if all weights
    are even, (2) with softmax(q kᵀ / sqrt(64)), (3) with softmax(q kᵀ)? Three numbers; each counts
    within a fifth of it.
    """
    return output_size(0), output_size(1 / 8), output_size(1)


unit.mistakes("""
takes: medium, 8 minutes
off for even weights: not within a fifth of what is measured: how large is a mean of 1,024 numbers?
off for with the root: not within a fifth of what is measured with the root: exp of a score, with a
    | standard deviation of 1, varies; so some values count more than others, and fewer are averaged
off for without the root: not within a fifth of what is measured without the root: how many values
    | does a query take, if scores have a standard deviation of 8?
hint: The values are independent, so the squares add up: the mean square of the output is the sum of
    | the squared weights. For even weights that is one line.
hint: With the root a weight is exp(z) over a sum of 1,024 of them, z standard normal: the mean of
    | exp(z) is exp(1/2), that of its square exp(2). And without the root, nearly all of the weight
    | lies on one or two keys.
after: The squares of independent values add up, so the output's size is the root of the sum of the
    | squared weights. Even weights give 1/32 = 0.031; with the root it is 0.051, more by the root
    | of e; without it 0.76, nearly one value alone. So at the start a layer hands on a few per cent
    | of the size of its values, and less in a longer text, until it has learned to point. The scale
    | of every style is minimal/model/config.py: Style.attention_scale.
6 | not within
    => (1.0, 1.0, 1.0)
4 | not within
    => (1 / 1024, 1 / 1024, 0.78)
""")


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
    shares = softmax(scores)
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


@unit.exercise(Part("an earlier token moves", 8, None, leaks))
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


unit.mistakes("""
takes: medium, 11 minutes
hint: In every way the hidden values are multiplied by 0. Through what else can a later row be
    | heard? Look at what each row is divided by.
hint: Softmax first and the mask after it: the hidden keys are in the denominator. A larger last key
    | makes every earlier output smaller.
after: In way 3 the hidden weights become 0, but the softmax has divided by a sum that holds the
    | hidden keys: the future leaks through the keys, not the values, and a model can read from the
    | size of its outputs what comes next. Way 4 divides again, and the wrong sum cancels. In ways 2
    | and 5 one number is subtracted from a whole row, which a softmax does not notice, wherever
    | that number comes from. minimal/kernels/reference.py: visible makes the mask, and it meets the
    | scores before the softmax.
8 | in the way that you name no earlier row moves
    => (3, np.eye(3), np.eye(3), np.eye(3), np.eye(3), *same(2))
    => (2, np.eye(3), same(2)[0], np.eye(3), np.eye(3), same(2)[1], np.eye(3))
8 | the two sequences may differ in the LAST row only
    => (3, np.eye(3), np.eye(3), np.eye(3), np.eye(3), np.eye(3)[::-1], np.eye(3))
""")


@drawn
def tile(r, T, start, S):
    """The keys start to start + S - 1 of T, behind causal attention over all of them."""
    q, k, v, dout = normals(r, (T, 5), (T, 5), (T, 6), (T, 6))
    scores = np.where(np.tril(np.ones((T, T), bool)), q @ k.T / np.sqrt(5), -np.inf)
    lse = np.log(np.exp(scores).sum(1))
    out = np.exp(scores - lse[:, None]) @ v
    keys = slice(start, start + S)
    return q, k[keys], v[keys], out, lse, dout, start


@unit.exercise(
    Part("a tile that is the whole sequence", 4, tile(4, 0, 4)),
    Part("a tile of a longer sequence", 8, tile(9, 3, 3)),
)
def tile_backward(q, k, v, out, lse, dout, start):
    """Stretch: what one tile of keys contributes to the gradients of causal attention, as flash
    attention recomputes it.

    q (T,D); k (S,D), v (S,E): the tile's keys and values, those of positions start to start + S - 1
    of T. out (T,E), lse (T,): result, and log of the sum of exp(scores), over ALL keys that a query
    sees. dout (T,E): gradient of the loss by out. Returns this tile's share of dq (T,D), and its
    dk, dv.
    """
    (T, D), S = q.shape, len(k)
    dq, dk, dv = np.zeros(q.shape), np.zeros(k.shape), np.zeros(v.shape)
    for t, s in np.ndindex(T, S):
        if start + s <= t:
            P = np.exp(q[t] @ k[s] / np.sqrt(D) - lse[t])
            dP = dout[t] @ v[s] - dout[t] @ out[t]
            dS = P * dP / np.sqrt(D)
            dq[t] += dS * k[s]
            dk[s] += dS * q[t]
            dv[s] += P * dout[t]
    return dq, dk, dv


unit.mistakes("""
takes: stretch, 22 minutes
hint: P = exp(q kᵀ / sqrt(D) - lse), 0 where start + s > t. dv = Pᵀ dout. dP = dout vᵀ.
hint: The row term of dS is a sum over all keys; out has them all. Why is that enough, when this
    | tile never saw the others?
hint: The root divided the scores, so it divides the gradients of q and k, too.
after: The row sum of P dP runs over all keys, but the output is already the sum of P V over all
    | keys, so the row sum is dO times O and one tile is enough. minimal/kernels/backward.py:
    | backward_queries computes it once a row and calls it delta. In the solution that uses
    | automatic differentiation the weights are held fixed and only the scores are differentiated: a
    | softmax over the tile would know nothing of the other keys.
 8 | you took the softmax over this tile; the weights are exp(score - lse) of the whole sequence
     lse[t] => np.log(np.exp(q[t] @ k[: t - start + 1].T / np.sqrt(D)).sum())
12 | dS = P (dP - D) with D the row sums of dout · out: your D is missing
     - dout[t] @ out[t] =>
12 | the scores were divided by sqrt(D), so their gradients with respect to q and k are too
     dP / np.sqrt(D) => dP
12 | you gave weight to keys behind the query: exp(score - lse) is not 0 there, so hide them again
     start + s <= t => True
 8 | you compared the query's position with the key's place in the tile; key s stands at start + s
     start + s <= t => s <= t
12 | dv is Pᵀ dout, with the weights themselves
     return dq, dk, dv => return dq, dk, v @ dout.T @ dout
12 | dv is Pᵀ DOUT, not Pᵀ out
     P * dout[t] => P * out[t]
12 | a query sees its own key; only keys after it are hidden
     start + s <= t => start + s < t
12 | the scores in P are not divided by sqrt(D)
     k[s] / np.sqrt(D) => k[s]
12 | P is exp(score - lse), and no softmax over the tile: lse knows all keys
     lse[t] => np.log(np.exp(q[t] @ k.T / np.sqrt(D)).sum())
12 | through a softmax: P * (dP - sum(dout * out)); there is no 1 - P
     P * dP => P * (1 - P) * dP
12 | dP is DOUT vᵀ, not out vᵀ
     dout[t] @ v[s] => out[t] @ v[s]
""")
