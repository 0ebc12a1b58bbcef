"""Notebook 01: attention by hand, from scores to heads; where a token stands; a long row read in
pieces."""

import numpy as np

from homework.marking import Part, Unit, drawn, normals

unit = Unit("nb01_attention", "Attention from scratch")


@unit.exercise(Part("a square", 1, lambda r: (int(r.integers(3, 9)),)))
def square_mask(T):
    """(T, T) of bool, True where query t may see key s: a token sees itself and what came before.

    A row for each query, a column for each key.
    """
    place = np.arange(T)[:, None]
    seen = np.arange(T) <= place
    return seen


unit.mistakes("""
takes: easy, 4 minutes
hint: Draw the square for T = 3: in row 0 one column is True, in row 1 two, in row 2 all.
hint: Compare two aranges: the keys, torch.arange(T), against the queries in a column,
    | torch.arange(T)[:, None].
1 | your positions do not see themselves: the own key is at or before the query
    <= place => < place
1 | yours is True where a key is hidden; wanted True where it is visible
    return seen => return ~seen
1 | your positions see the key after them, the one that is to be predicted
    <= place => <= place + 1
1 | your rows see what comes AFTER them: queries are rows, keys are columns
    <= place => >= place
1 | your positions see themselves alone
    <= place => == place
1 | yours hides nothing: the queries stand in a column, torch.arange(T)[:, None]
    <= place => <= place + T
1 | yours holds numbers; wanted True and False: .bool()
    return seen => return seen.astype(float)
1 | that is what is ADDED to scores, 0 and -inf; wanted True where a key is seen
    return seen => return np.where(seen, 0.0, -np.inf)
1 | that is one row; wanted one for every query, and all columns of it: (T, T)
    return seen => return seen[-1]
""")


@unit.exercise(
    Part("as many queries as keys", 4, lambda r: (n := int(r.integers(3, 9)), n)),
    Part("fewer queries than keys", 4, lambda r: (int(r.integers(2, 5)), int(r.integers(6, 10)))),
)
def causal_mask(T, S):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions.
    """
    place = np.arange(S - T, S)[:, None]
    seen = np.arange(S) <= place
    return seen


unit.mistakes("""
takes: easy, 7 minutes
hint: Draw the square for T = 2, S = 4: the first query stands at position 2. How many keys does it
    | see?
hint: Compare two aranges: torch.arange(S) against torch.arange(T)[:, None] + (S - T).
8 | your positions do not see themselves: the own key is at or before the query
    <= place => < place
8 | yours is True where a key is hidden; wanted True where it is visible
    return seen => return ~seen
4 | with fewer queries than keys, the queries are the LAST positions: query t stands at t + S - T
    np.arange(S - T, S) => np.arange(T)
8 | your positions see the key after them, the one that is to be predicted
    <= place => <= place + 1
8 | your rows see what comes AFTER them: queries are rows, keys are columns
    <= place => >= place
8 | your positions see themselves alone
    <= place => == place
8 | yours hides nothing
    <= place => <= place + S
8 | yours holds numbers; wanted True and False: .bool()
    return seen => return seen.astype(float)
8 | that is what is ADDED to scores, 0 and -inf; wanted True where a key is seen
    return seen => return np.where(seen, 0.0, -np.inf)
4 | your diagonal is moved to the wrong side: query t sees keys up to t + S - T, tril(S - T)
    => np.tri(T, S, T - S, dtype=bool)
4 | yours has a column for every query; wanted one for every key: (T, S)
    => causal_mask(T, T)
4 | yours has a row for every position; wanted the last T of them: (T, S)
    => causal_mask(S, S)
""")


def queries_and_keys(T, S):
    return lambda r: normals(r, (2, T, 3, 4), (2, S, 3, 4))


@unit.exercise(
    Part("as many queries as keys", 1, queries_and_keys(4, 4)),
    Part("fewer queries than keys", 1, queries_and_keys(2, 5)),
)
def scores(q, k):
    """q (B, T, H, D), k (B, S, H, D) -> (B, H, T, S): every query times every key, in each head."""
    found = np.einsum("bthd,bshd->bhts", q, k)
    return found


unit.mistakes("""
takes: easy, 6 minutes
hint: torch.einsum takes a letter for each axis: "bthd,bshd->…". Which letters should be left?
hint: The letter d is summed, so it is missing on the right: "bthd,bshd->bhts".
2 | your rows are keys: wanted [b, h, t, s] with the query t before the key s
    bhts => bhst
2 | your positions stand next to the texts; heads do: wanted [b, h, t, s]
    bhts => bths
    bhts => btsh
2 | you took the mean over the features; a product of vectors is the sum
    return found => return found / q.shape[-1]
2 | you divided by the root of D; that comes later in the notebook, here the bare sum is wanted
    return found => return found / np.sqrt(q.shape[-1])
2 | you summed over the heads, too; every head has scores of its own
    bhts => bts
2 | those are weights already; the softmax is the next step, here the bare sum is wanted
    return found => return weights(found, True)
2 | you summed each vector by itself; wanted the sum of the products: one letter for both features
    => np.einsum("bthd,bshe->bhts", q, k)
2 | you divided by the lengths of both vectors; here the bare sum is wanted
    q, k) => *(x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k)))
2 | you multiplied queries with queries; the second factor is a key
    q, k) => q, q)
2 | your heads meet each other at each position: put heads before positions, q.transpose(1, 2)
    bshd->bhts => btgd->bthg
2 | your keys are not turned: q @ k.transpose(-1, -2), so that the sum is over features
    => q.swapaxes(1, 2) @ k.swapaxes(1, 2)
2 | your keys are summed over their heads: query head h meets key head h, one letter in both
    bshd => bsgd
2 | you took distances; wanted products, summed over the features
    => -np.sqrt(((q[:, :, None] - k[:, None]) ** 2).sum(-1)).transpose(0, 3, 1, 2)
2 | you cut positions into heads: reshape and view keep the numbers in their old order. Exchange the
  | two axes, q.transpose(1, 2)
    => q.reshape(2, 3, -1, 4) @ k.reshape(2, 3, -1, 4).swapaxes(2, 3)
""")


@drawn
def scores_and_mask(r, T, S, far=0):
    """Scores and a mask with holes in the past; with `far`, visible scores lie far below zero and
    hidden ones above, and the mask is the causal one."""
    past = np.arange(S) - np.arange(T)[:, None] - S + T  # 0: a query's own position
    seen = (past == 0) | (past < 0) & (r.random((T, S)) < (1 if far else 0.6))
    z = r.normal(size=(2, 3, T, S)) + far * np.where(seen, -1, 2)
    return z, seen


@unit.exercise(
    Part("small scores", 1, scores_and_mask(4, 4)),
    Part("scores in the thousands", 1, scores_and_mask(3, 5, far=20_000)),
)
def weights(z, seen):
    """Scores z (B, H, T, S) -> weights (B, H, T, S) that sum to one over the keys.

    seen (T, S) is True where query t may see key s; a hidden key has weight 0.
    """
    z = np.where(seen, z, -np.inf)
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


unit.mistakes("""
takes: easy, 6 minutes
hint: First the mask, then the softmax: z.masked_fill(~seen, -torch.inf).
hint: z.masked_fill(~seen, -torch.inf).softmax(-1): along the last axis, the keys.
2 | your softmax runs over heads or texts; each has its own, along the keys: softmax(-1)
    z.max(-1 => z.max(1
    and: e.sum(-1 => e.sum(1
    z.max(-1 => z.max(0
    and: e.sum(-1 => e.sum(0
2 | your weights of hidden keys are not 0: their scores must go to -inf before the softmax
    z = np.where(seen, z, -np.inf) =>
2 | you hid weights AFTER the softmax, so your rows no longer sum to 1: hide scores before it
    z = np.where(seen, z, -np.inf) =>
    and: return e => return seen * e
1 | right for small scores only: you hid weights after the softmax and divided again. Where a hidden
  | score is the largest by far, nothing is left to divide: hide scores before it
    z = np.where(seen, z, -np.inf) =>
    and: e = np.exp => e = seen * np.exp
2 | you hid weights after the softmax, by -inf; a hidden weight is 0: hide scores before it
    z = np.where(seen, z, -np.inf) =>
    and: return e => return np.where(seen, 0, -np.inf) + e
2 | your hidden scores are at 0, or near it: exp(0) is 1, so they keep weight. Put them to -inf
    -np.inf => 0
1 | your hidden scores are finite: among scores in the thousands they keep weight. Put them to -inf
    -np.inf => -100
    -np.inf => -1e4
2 | your mask is turned: its rows are queries and its columns keys, as in the scores
    where(seen => where(seen.T
2 | you hid what is visible: seen is True where a key may be seen, so hide where ~seen
    where(seen => where(~seen
2 | your columns sum to 1; every row, a query's, must: the softmax goes along the last axis
    z.max(-1 => z.max(-2
    and: e.sum(-1 => e.sum(-2
2 | all your numbers together sum to 1; wanted every row to sum to 1
    z.max(-1, keepdims=True) => z.max()
    and: e.sum(-1, keepdims=True) => e.sum()
2 | that is exp of the scores; divide every row by its sum
    - z.max(-1, keepdims=True) =>
    and: / e.sum(-1, keepdims=True) =>
1 | exp of a score in the thousands is infinite, or 0: subtract the row's largest, or softmax(-1)
    - z.max(-1, keepdims=True) =>
2 | those are the scores that the mask leaves; the softmax over them is missing
    => np.where(seen, z, -np.inf)
2 | your hidden scores are near zero, so they keep weight: put them to -inf
    -np.inf => -1
    -np.inf => -10
1 | you hid the future; `seen` may hide other keys, too, as a window does: hide where ~seen
    where(seen => where(np.tri(*seen.shape, -np.subtract(*seen.shape)) > 0
2 | 0 times infinity is NaN, so seen keys have it, too: z.masked_fill(~seen, -torch.inf)
    np.where(seen, z, -np.inf) => z + ~seen * -np.inf
2 | you divided the scores by a root; that is done before they come here
    np.where(seen, z, -np.inf) => np.where(seen, z / np.sqrt(z.shape[-1]), -np.inf)
    np.where(seen, z, -np.inf) => np.where(seen, z / np.sqrt(z.shape[-2]), -np.inf)
""")


def streams(T, S):
    return lambda r: normals(r, (2, T, 3, 4), (2, S, 3, 4), (2, S, 3, 4))


@unit.exercise(
    Part("as many queries as keys", 1, streams(4, 4)),
    Part("fewer queries than keys", 1, streams(2, 5)),
)
def attention(q, k, v):
    """Causal attention: q (B, T, H, D), k and v (B, S, H, D) -> (B, T, H, D).

    The T queries are the last T of S positions.
    """
    seen = causal_mask(q.shape[1], k.shape[1])
    z = scores(q, k) / np.sqrt(q.shape[-1])
    a = weights(z, seen)
    return np.einsum("bhts,bshd->bthd", a, v)


unit.mistakes("""
takes: medium, 10 minutes
hint: Four lines, and three of them call what you wrote: causal_mask, scores over the root of D,
    | weights; then the sum over the keys.
hint: a = weights(scores(q, k) / math.sqrt(D), seen), (B, H, T, S). The sum is an einsum of a and v
    | in which the letter s is missing on the right.
hint: torch.einsum("bhts,bshd->bthd", a, v)
in: causal_mask, weights
2 | your scores lack the division by the root of D
    / np.sqrt(q.shape[-1]) =>
2 | you divided the scores by D; wanted its root
    np.sqrt(q.shape[-1]) => q.shape[-1]
2 | you multiplied the scores by the root of D; divide
    / np.sqrt(q.shape[-1]) => * np.sqrt(q.shape[-1])
2 | you divided by the root of H or of H D; wanted D, the width of one head, the last axis of q
    q.shape[-1] => q.shape[2]
    q.shape[-1] => q[0, 0].size
2 | you divided the weights, so they no longer sum to 1: divide the scores, before the softmax
    / np.sqrt(q.shape[-1]) =>
    and: weights(z, seen) => weights(z, seen) / np.sqrt(q.shape[-1])
2 | your queries see keys that come after them
    <= place => <= place + S
1 | with fewer queries than keys, the queries are the LAST positions: causal_mask(T, S)
    np.arange(S - T, S) => np.arange(T)
2 | your mask comes after the softmax, so your rows no longer sum to 1: hide scores before it
    z = np.where(seen, z, -np.inf) =>
    and: return e => return seen * e
2 | your heads attend to each other: PyTorch's own function wants (B, H, T, D), so give it
  | q.transpose(1, 2), and turn its answer back
    => attention(*(x.swapaxes(1, 2) for x in (q, k, v))).swapaxes(1, 2)
1 | you summed over the queries: value s goes with weight a[t, s], and the sum is over s
    a, v) => a.swapaxes(2, 3) if a.shape[2] == a.shape[3] else a, v)
2 | your numbers are [b, h, t, d]; wanted [b, t, h, d], as q came
    ->bthd => ->bhtd
2 | your softmax runs over the queries; the weights of every QUERY sum to 1: the last axis
    z.max(-1 => z.max(-2
    and: e.sum(-1 => e.sum(-2
2 | your hidden scores are 0, and exp(0) is 1: put them to -inf
    -np.inf => 0
2 | you took a softmax twice; `weights` has one inside
    a = weights(z, seen) => a = weights(weights(z, seen), True)
    a = weights(z, seen) => a = weights(weights(z, seen), seen)
1 | you divided by the root of the number of keys or of queries; wanted D, the width of a head
    q.shape[-1] => k.shape[1]
    q.shape[-1] => q.shape[1]
2 | you summed keys; what is summed are the values
    a, v) => a, k)
2 | you put heads and positions together by reshape or view; they change places: transpose(1, 2)
    return np.einsum("bhts,bshd->bthd", a, v) =>
  | return np.einsum("bhts,bshd->bhtd", a, v).reshape(q.shape)
""")


def heads(y, H):
    """y (B, T, C) cut into H heads: (B, T, H, D)."""
    return y.reshape(*y.shape[:2], H, -1)


def a_layer(H):
    return lambda r: (*normals(r, (2, 4, 6), *[(6, 6)] * 4), H)


@unit.exercise(
    Part("two heads", 2, a_layer(2)),
    Part("one head", 1, a_layer(1)),
    Part("three heads", 1, a_layer(3)),
)
def multi_head(x, W_Q, W_K, W_V, W_O, H):
    """A whole layer of attention: x (B, T, C) and four matrices (C, C) -> (B, T, C).

    H heads of width D = C / H each: head 0 is the first D features, and so on.
    """
    q, k, v = heads(x @ W_Q, H), heads(x @ W_K, H), heads(x @ W_V, H)
    y = attention(q, k, v)
    return y.reshape(x.shape) @ W_O


unit.mistakes(r"""
takes: medium, 10 minutes
hint: x @ W_Q is (B, T, C). Cut its last axis into heads: unflatten(-1, (H, -1)) makes (B, T, H, D)
    | of it. The same for keys and values.
hint: attention gives (B, T, H, D); flatten(2) puts the heads side by side, (B, T, C). Then W_O.
in: heads, attention, causal_mask, weights
3 | you cut positions into heads, and put them back the same way: view(B, T, H, D) first, then
  | transpose(1, 2), and both again at the end
    *y.shape[:2], H, -1) => len(y), H, y.shape[1], -1).swapaxes(1, 2)
    and: y.reshape(x.shape) => y.swapaxes(1, 2).reshape(x.shape)
3 | you never cut the width into heads: your scores are sums over all of it
    q, k, v = heads => H = 1\nq, k, v = heads
4 | you made heads of width H; wanted H heads: unflatten(-1, (H, -1))
    q, k, v = heads => H = x.shape[2] // H\nq, k, v = heads
3 | your heads take every H-th feature; head 0 is the first D of them: unflatten(-1, (H, -1))
    *y.shape[:2], H, -1) => *y.shape[:2], -1, H).swapaxes(2, 3)
3 | you averaged the heads; they stand side by side: flatten(2)
    y.reshape(x.shape) => np.repeat(y.mean(2, keepdims=True), H, 2).reshape(x.shape)
4 | W_O is missing: it mixes what the heads found
    @ W_O =>
4 | your matrices, or one of them, are turned: here it is x @ W, without a transpose
    W_Q, H => W_Q.T, H
    and: W_K, H => W_K.T, H
    and: W_V, H => W_V.T, H
    and: W_O => W_O.T
    W_O => W_O.T
    W_Q => W_Q.T
4 | your queries are made by W_K and your keys by W_Q
    q, k, v = heads => k, q, v = heads
4 | your keys are made by W_V and your values by W_K
    q, k, v = heads => q, v, k = heads
4 | your values are made by W_K; they have a matrix of their own, W_V
    W_V => W_K
4 | you added x; that is the block's business, here what attention returns is wanted
    return y.reshape(x => return x + y.reshape(x
4 | your values are x itself; they are made by W_V
    x @ W_V => x
3 | you divided by the root of C; wanted D, the width of one head
    q.shape[-1] => q[0, 0].size
4 | your scores lack the division by the root of D
    / np.sqrt(q.shape[-1]) =>
4 | you divided the scores by D; wanted its root
    np.sqrt(q.shape[-1]) => q.shape[-1]
4 | your queries see keys that come after them
    <= place => <= place + S
4 | your softmax runs over the queries; the weights of every QUERY sum to 1: the last axis
    z.max(-1 => z.max(-2
    and: e.sum(-1 => e.sum(-2
4 | your queries see what comes after them, and not what came before
    <= place => >= place
3 | you joined heads that stand before positions: turn back to (B, T, H, D), then flatten(2)
    y.reshape(x.shape) => y.swapaxes(1, 2).reshape(x.shape)
3 | you cut positions into heads: view(B, T, H, D) first, then transpose(1, 2)
    *y.shape[:2], H, -1) => len(y), H, y.shape[1], -1).swapaxes(1, 2)
4 | you cut positions into heads: (B, T, C) becomes view(B, T, H, D), in this order
    *y.shape[:2], H, -1) => len(y), H, y.shape[1], -1)
4 | your heads stand where positions belong: `attention` takes (B, T, H, D), without a transpose
    attention(q, k, v) => attention(*(part.swapaxes(1, 2) for part in (q, k, v))).swapaxes(1, 2)
""")


def points(*shape):
    return lambda r: normals(r, *[shape] * 3)


@unit.exercise(
    Part("a few points", 1, points(4)), Part("as many angles as points", 1, points(2, 3, 4))
)
def turn_pair(x1, x2, angle):
    """The points (x1, x2) turned by their angles -> (y1, y2): y1 = x1 cos + x2 sin, and
    y2 = x2 cos - x1 sin. x1, x2 and angle have one shape, and so have y1 and y2.
    """
    c, s = np.cos(angle), np.sin(angle)
    y1 = x1 * c + x2 * s
    y2 = x2 * c - x1 * s
    return y1, y2


unit.mistakes(r"""
takes: easy, 4 minutes
hint: Take cos = angle.cos() and sin = angle.sin() once; then two lines.
hint: return x1 * cos + x2 * sin, x2 * cos - x1 * sin
2 | you turned by the opposite angle: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin
    np.sin(angle) => -np.sin(angle)
2 | that is no turn, which has one sine with a minus: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin
    c - x1 => c + x1
    c + x2 => c - x2
2 | your cosine and sine are exchanged: an angle of 0 turns nothing, so y1 = x1
    c, s = => s, c =
2 | one result of yours is made of the other; both are made of x1 and x2 as they came
    return y1, y2 => return x1 * c + y2 * s, y2
    - x1 * s => - y1 * s
2 | your y1 and y2 are in each other's place
    return y1, y2 => return y2, y1
2 | that is y1 alone; y2 = x2 cos - x1 sin is the second result
    return y1, y2 => return y1
2 | you turned the first entry alone; y2 = x2 cos - x1 sin
    return y1, y2 => return y1, x2
2 | each of your entries is shortened by itself; in a turn both entries meet
    c + x2 * s => c
    and: c - x1 * s => c
    => x1 * np.cos(angle), x2 * np.sin(angle)
2 | y2 is x2 cos - x1 sin, and yours is x1 cos - x2 sin
    x2 * c - x1 * s => x1 * c - x2 * s
2 | you took the angle for degrees; cos and sin want radians, as it is
    c, s = => angle = np.deg2rad(angle)\nc, s =
2 | your y2 has the wrong sign: y2 = x2 cos - x1 sin
    return y1, y2 => return y1, -y2
""")


def rows_at(positions, heads):
    return lambda r: (r.normal(size=(2, 5, heads, 8)), positions(r), 50.0)


@unit.exercise(
    Part("positions 0, 1, 2, …", 1, rows_at(lambda r: np.arange(5), heads=5)),
    Part("any positions", 1, rows_at(lambda r: r.integers(0, 60, 5), heads=2)),
)
def turn(x, positions, base=10_000.0):
    """x (B, T, H, D) at positions (T,) -> (B, T, H, D): RoPE.

    Pair i of D/2 holds x1 = entry i and x2 = entry i + D/2. It turns by the angle
    position * base ** (-2 i / D):  y1 = x1 cos + x2 sin,  y2 = x2 cos - x1 sin.
    """
    D = x.shape[-1]
    rate = base ** (-np.arange(0, D, 2) / D)
    angle = positions[:, None, None] * rate
    cos, sin = np.cos(angle), np.sin(angle)
    x1, x2 = np.split(x, 2, -1)
    halves = [x1 * cos + x2 * sin, x2 * cos - x1 * sin]
    return np.concatenate(halves, -1)


unit.mistakes("""
takes: medium, 14 minutes
hint: x1, x2 = x.chunk(2, -1): pair i is (x1[i], x2[i]). Each pair turns by its own angle.
hint: rate = base ** (-torch.arange(0, D, 2) / D), (D/2,); angle = positions[:, None] * rate.
hint: x is (B, T, H, D): give the angle a place for the heads, angle[:, None], (T, 1, D/2). Then
    | torch.cat(turn_pair(x1, x2, angle), -1).
2 | you turned by the opposite angle: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin
    np.sin(angle) => -np.sin(angle)
2 | you paired neighbours (0 with 1, 2 with 3); here entry i turns with entry i + D/2. Both habits
  | exist, and weights trained with one are useless with the other
    np.split(x, 2, -1) => x[..., ::2], x[..., 1::2]
    and: np.concatenate(halves, -1) => np.stack(halves, -1).reshape(x.shape)
2 | your rates fall half as fast: base ** (-2 i / D) for i = 0 … D/2 - 1
    np.arange(0, D, 2) => np.arange(D // 2)
2 | all your pairs turn at the same rate; pair i turns by position * base ** (-2 i / D)
    np.arange(0, D, 2) => 0 * np.arange(0, D, 2)
1 | you turned row t by t; the argument `positions` says where each row stands
    positions[: => np.arange(len(positions))[:
2 | that is no turn: one of the two sines has a minus, y2 = x2 cos - x1 sin
    cos - x1 => cos + x1
2 | your cosine and sine are exchanged: at position 0 nothing turns, so y1 = x1
    cos, sin = => sin, cos =
2 | your later pairs turn faster; they turn more slowly: base ** (MINUS 2 i / D)
    -np.arange => np.arange
2 | your pairs are counted from 1: the first one turns by the position itself, i = 0
    np.arange(0, D, 2) => np.arange(2, D + 2, 2)
2 | your rates fall twice as fast: base ** (-2 i / D), with D and not D/2 below
    np.arange(0, D, 2) => 2 * np.arange(0, D, 2)
2 | your angles lie along the heads; they belong to the positions: angle[:, None], (T, 1, D/2)
    [:, None, None] => [: x.shape[2], None]
2 | your rates do not depend on `base`: you took 10,000, its default; the argument may differ
    base ** => 10_000.0 **
2 | y2 is x2 cos - x1 sin, and yours is x1 cos - x2 sin
    x2 * cos - x1 * sin => x1 * cos - x2 * sin
2 | you took neighbours as pairs, and put them into halves; here entry i turns with entry i + D/2
    np.split(x, 2, -1) => x[..., ::2], x[..., 1::2]
2 | your y1 and y2 stand by turns; y1 is the first half, y2 the second: torch.cat
    np.concatenate(halves, -1) => np.stack(halves, -1).reshape(x.shape)
2 | your positions are one too large: the first of them is 0, and does not turn
    positions[:, None, None] => (positions[:, None, None] + 1)
2 | your y1 and y2 are in each other's place
    (halves, -1) => (halves[::-1], -1)
2 | you turned the first half alone; y2 = x2 cos - x1 sin
    x2 * cos - x1 * sin => x2
2 | you took the angles for degrees; cos and sin want radians, as they are
    positions[:, None, None] => np.deg2rad(positions[:, None, None])
""")


@drawn
def later_tile(r, size):
    """Some tiles were read: the largest score so far is now above, now below the new ones."""
    m, scores, out, values = normals(r, (2, 3, 4, 1), (2, 3, 4, 5), (2, 3, 4, 6), (2, 3, 5, 6))
    return size * m, r.random((2, 3, 4, 1)) + 1, out, size * scores, values


def first_tile(r):
    """Nothing was read so far, and all scores are negative."""
    scores, values = -np.abs(r.normal(size=(2, 3, 4, 5))) - 1, r.normal(size=(2, 3, 5, 6))
    m, zero = np.full((2, 3, 4, 1), -np.inf), np.zeros((2, 3, 4, 1))
    return m, zero, np.zeros((2, 3, 4, 6)), scores, values


@unit.exercise(
    Part("the first tile", 1, first_tile),
    Part("a later tile", 1, later_tile(1)),
    Part("scores in the hundreds", 1, later_tile(200)),
)
def add_tile(m, total, out, scores, values):
    """One step of the online softmax: what was read so far and a new tile -> the three, brought up
    to date.

    So far: m (…, T, 1) the largest score, total (…, T, 1) the sum of exp(score - m), out (…, T, D)
    the sum of exp(score - m) times its value. The tile: scores (…, T, S) and values (…, S, D).
    """
    largest = np.maximum(m, scores.max(-1, keepdims=True))
    shrink, e = np.exp(m - largest), np.exp(scores - largest)
    total = total * shrink + e.sum(-1, keepdims=True)
    out = out * shrink + e @ values
    return largest, total, out


unit.mistakes("""
takes: medium, 12 minutes
hint: largest = torch.maximum(m, scores.amax(-1, keepdim=True)), (…, T, 1). It is in all exponents.
hint: shrink = (m - largest).exp() corrects what was summed before, total as well as out. It is 0 in
    | the first tile, where m is -inf.
hint: e = (scores - largest).exp(), (…, T, S): total * shrink + e.sum(-1, keepdim=True), and out *
    | shrink + e @ values.
2 | when the largest score grows, what was summed shrinks by exp(m - largest): your total did not
    total * shrink => total
2 | when the largest score grows, what was summed shrinks by exp(m - largest): your out did not
    out * shrink => out
2 | when the largest score grows, what was summed shrinks by exp(m - largest): neither your total
  | nor your out did
    np.exp(m - largest) => 1
2 | your largest score is that of this tile alone; take the larger of it and m
    np.maximum(m, scores.max(-1, keepdims=True)) => scores.max(-1, keepdims=True)
3 | you divided by the total in this tile; that is done once, after the last one
    return largest, total, out => return largest, total, out / total
3 | your exponents are the scores themselves; subtract the largest score so far first
    scores - largest => scores
3 | your total adds up all queries; every query has its own: sum(-1, keepdim=True)
    e.sum(-1, keepdims=True) => e.sum()
3 | your factor grows with the largest score: it is exp(m - largest), not exp(largest - m)
    m - largest => largest - m
3 | your factor is the difference m - largest itself; take exp of it
    np.exp(m - largest) => m - largest
3 | your exponents are relative to the OLD largest score; take the one that you return
    scores - largest => scores - m
3 | you returned m as it came; wanted the largest score so far, this tile included
    return largest => return m
2 | your exponents are relative to the tile's largest score; take the largest so far
    scores - largest => scores - scores.max(-1, keepdims=True)
3 | you took ONE largest score for all; every query has its own: amax(-1, keepdim=True)
    scores.max(-1, keepdims=True) => scores.max()
3 | you weighted values with a softmax of this tile; that divides too early: exp alone
    e @ values => e / e.sum(-1, keepdims=True) @ values
    e @ values => weights(e, True) @ values
3 | you weighted values with the scores; wanted exp(score - largest)
    e @ values => scores @ values
3 | you shrank what this tile adds, too; its exponents are relative to the new largest score already
    total * shrink + e.sum(-1, keepdims=True) => (total + e.sum(-1, keepdims=True)) * shrink
    and: out * shrink + e @ values => (out + e @ values) * shrink
""")


def step(S):
    return lambda r: normals(r, *[(2, 1, 3, 6)] * 3, *[(2, S, 3, 6)] * 2)


@unit.exercise(
    Part("the first token, from an empty cache", 1, step(0)), Part("a later token", 1, step(5))
)
def decode_step(q, k, v, k_cache, v_cache):
    """One new token: q, k, v (B, 1, H, D) and caches (B, S, H, D), S may be 0 -> (out, k_cache,
    v_cache), with out (B, 1, H, D) and caches one row longer."""
    keys, values = np.concatenate([k_cache, k], 1), np.concatenate([v_cache, v], 1)
    return attention(q, keys, values), keys, values


unit.mistakes("""
takes: medium, 12 minutes
hint: torch.cat([k_cache, k], 1) first: positions are axis 1. Then one query against all keys.
hint: Your own `attention` does the rest: one query is the last of S + 1, so nothing is hidden.
in: attention, weights
2 | the new token must see itself: append its key and value first, then attend
    attention(q, keys, values) => attention(q, k_cache, v_cache) if k_cache.size else 0 * q
1 | your query saw only the new key; it must see the whole cache
    attention(q, keys, values) => attention(q, k, v)
1 | your one query saw the first key alone; the new token is LAST and sees all, without a mask
    attention(q, keys, values) => attention(q, keys[:, :1], values[:, :1])
1 | what is new in yours stands in front of the cached rows; it belongs behind them, k and v alike
    [k_cache, k] => [k, k_cache]
    and: [v_cache, v] => [v, v_cache]
    [k_cache, k] => [k, k_cache]
    [v_cache, v] => [v, v_cache]
1 | your scores lack the division by the root of D
    / np.sqrt(q.shape[-1]) =>
2 | your values are keys, or your keys values: the first cache keeps k, the second v
    [k_cache, k] => [k_cache, v]
    [v_cache, v] => [v_cache, k]
1 | you divided the scores by D; wanted its root
    np.sqrt(q.shape[-1]) => q.shape[-1]
2 | your heads attend to each other: PyTorch's own function wants (B, H, T, D), so give it
  | q.transpose(1, 2), and turn its answer back
    attention(q, keys, values) => np.einsum("bshg,bsgd->bshd",
  | weights(np.einsum("bhd,bsgd->bshg", q[:, 0], keys) / np.sqrt(q.shape[-1]), True), values)
2 | you summed keys; what is summed are the values
    attention(q, keys, values) => attention(q, keys, keys)
2 | your softmax runs over the heads; a query's weights sum to 1 over the keys: softmax(-1)
    z.max(-1 => z.max(1
    and: e.sum(-1 => e.sum(1
2 | you dropped the oldest row of each cache, of an empty one even the new row; they grow by one row
  | in every step
    [k_cache, k], 1) => [k_cache, k], 1)[:, 1:]
    and: [v_cache, v], 1) => [v_cache, v], 1)[:, 1:]
    and: attention(q, keys, values) => attention(q, keys, values) if keys.size else 0 * q
1 | you returned the new rows alone; the caches hold all rows so far
    ), keys, values => ), k, v
""")
