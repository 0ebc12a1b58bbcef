"""Notebook 01: attention by hand, from scores to heads; where a token stands; a long row read in
pieces."""

import numpy as np

from homework import by_index
from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb01_attention", "Attention from scratch", "The exercises of notebook 01.")


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
    Wrong(
        "sees the next one",
        8,
        "your positions see the key after them, the one that is to be predicted",
        dict(itself=-1),
    ),
    Wrong(
        "the triangle above",
        8,
        "your rows see what comes AFTER them: queries are rows, keys are columns",
        dict(above=True),
    ),
    Wrong("itself alone", 8, "your positions see themselves alone", dict(alone=True)),
    Wrong("everything", 8, "yours hides nothing", dict(itself=-100)),
    slip(
        8,
        "yours holds numbers; wanted True and False: .bool()",
        lambda T, S: causal_mask(T, S).astype(float),
    ),
    slip(
        8,
        "that is what is ADDED to scores, 0 and -inf; wanted True where a key is seen",
        lambda T, S: np.where(causal_mask(T, S), 0.0, -np.inf),
    ),
    slip(
        4,
        "your diagonal is moved to the wrong side: query t sees keys up to t + S - T, tril(S - T)",
        lambda T, S: np.tri(T, S, T - S, dtype=bool),
    ),
    slip(
        4,
        "yours has a column for every query; wanted one for every key: (T, S)",
        lambda T, S: causal_mask(T, T),
    ),
    slip(
        4,
        "yours has a row for every position; wanted the last T of them: (T, S)",
        lambda T, S: causal_mask(S, S),
    ),
    hints=[
        "Draw the square for T = 2, S = 4: the first query stands at position 2. How many keys "
        "does it see?",
        "Compare two aranges: torch.arange(S) against torch.arange(T)[:, None] + (S - T).",
    ],
    level="easy",
    minutes=7,
)
def causal_mask(T, S, *, itself=0, flip=False, corner=False, above=False, alone=False):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions.
    """
    mask = np.zeros((T, S), bool)
    for t in range(T):
        for s in range(S):
            place = t + (0 if corner else S - T)
            seen = s >= place if above else s == place if alone else s + itself <= place
            mask[t, s] = seen != flip
    return mask


# ---- attention, step by step ---------------------------------------------------------------------


def queries_and_keys(T, S):
    return lambda r: normals(r, (2, T, 3, 4), (2, S, 3, 4))


@unit.exercise(
    Part("as many queries as keys", 1, queries_and_keys(4, 4)),
    Part("fewer queries than keys", 1, queries_and_keys(2, 5)),
    Wrong(
        "keys in rows",
        2,
        "your rows are keys: wanted [b, h, t, s] with the query t before the key s",
        dict(order=(0, 1, 3, 2)),
    ),
    Wrong(
        "heads before queries",
        2,
        "your results are [b, t, h, s]; heads stand next to the texts: wanted [b, h, t, s]",
        dict(order=(0, 2, 1, 3)),
    ),
    Wrong(
        "heads last",
        2,
        "your results are [b, t, s, h]; heads stand next to the texts: wanted [b, h, t, s]",
        dict(order=(0, 2, 3, 1)),
    ),
    Wrong(
        "mean for sum",
        2,
        "you took the mean over the features; a product of vectors is the sum",
        dict(divisor=4),
    ),
    Wrong(
        "the root already",
        2,
        "you divided by the root of D; that comes later in the notebook, here the bare sum is "
        "wanted",
        dict(divisor=2),
    ),
    Wrong(
        "heads summed",
        2,
        "you summed over the heads, too; every head has scores of its own",
        dict(heads=False),
    ),
    Wrong(
        "texts summed",
        2,
        "you summed over the texts, too; every text has scores of its own",
        dict(texts=False),
    ),
    Wrong(
        "not summed",
        2,
        "you kept the products of every feature; wanted their sum over the features",
        dict(summed=False),
    ),
    Wrong(
        "softmax already",
        2,
        "those are weights already; the softmax is the next step, here the bare sum is wanted",
        dict(softmax=True),
    ),
    Wrong(
        "cosines",
        2,
        "you divided by the lengths of both vectors; here the bare sum is wanted",
        dict(cosines=True),
    ),
    Wrong(
        "queries with queries",
        2,
        "you multiplied queries with queries; the second factor is a key",
        dict(itself=True),
    ),
    slip(
        2,
        "your heads meet each other, position by position: put heads before positions first, "
        "q.transpose(1, 2)",
        lambda q, k: np.einsum("bthd,btgd->bthg", q, k),
    ),
    slip(
        2,
        "your keys are not turned: q @ k.transpose(-1, -2), so that the sum is over features",
        lambda q, k: q.swapaxes(1, 2) @ k.swapaxes(1, 2),
    ),
    slip(
        2,
        "your keys are summed over their heads: query head h meets key head h, one letter in both",
        lambda q, k: np.einsum("bthd,bsgd->bhts", q, k),
    ),
    slip(
        2,
        "you took distances; wanted products, summed over the features",
        lambda q, k: -np.sqrt(((q[:, :, None] - k[:, None]) ** 2).sum(-1)).transpose(0, 3, 1, 2),
    ),
    hints=[
        'torch.einsum takes a letter for each axis: "bthd,bshd->…". Which letters should be left?',
        'The letter d is summed, so it is missing on the right: "bthd,bshd->bhts".',
    ],
    level="easy",
    minutes=6,
)
def scores(
    q,
    k,
    *,
    order=(0, 1, 2, 3),
    divisor=1,
    heads=True,
    texts=True,
    summed=True,
    softmax=False,
    cosines=False,
    itself=False,
):
    """q (B, T, H, D), k (B, S, H, D) -> (B, H, T, S): every query times every key, in each head."""
    k = q if itself else k
    if cosines:
        q, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (q, k))
    (B, T, H, D), S = q.shape, k.shape[1]
    products = np.zeros((B, H, T, S, D))
    for b, h, t, s in np.ndindex(B, H, T, S):
        products[b, h, t, s] = q[b, t, h] * k[b, s, h]
    if not summed:
        return products
    found = products.sum(-1) / divisor
    if softmax:
        return np.stack([[[by_index.softmax(row) for row in z] for z in text] for text in found])
    if not heads or not texts:
        return found.sum(0 if heads else 1)
    return found.transpose(order)


def scores_and_mask(T, S, far=0):
    """Scores and a mask; with `far`, visible scores lie far below zero and hidden ones above."""

    def make(r):
        seen = np.arange(S) <= np.arange(T)[:, None] + S - T
        z = r.normal(size=(2, 3, T, S)) + far * np.where(seen, -1, 2)
        return z, seen

    return make


def hidden_at(number):
    """The mistake of a hidden score that is a number not far below the others."""
    says = f"you put hidden scores to {number:g}, so they keep weight: put them to -inf"
    return slip(2, says, lambda z, seen: by_rows(np.where(seen, z, number)))


def by_rows(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def along(axis, says):
    """The mistake of a softmax along another axis: where all of it is hidden, nothing is left."""

    def mistaken(z, seen):
        z = np.where(seen, z, -np.inf)
        e = np.exp(z - z.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return slip(2, says, mistaken)


@unit.exercise(
    Part("small scores", 1, scores_and_mask(4, 4)),
    Part("scores in the thousands", 1, scores_and_mask(3, 5, far=1000)),
    along(
        1, "your softmax runs over the HEADS; each head has its own, along the keys: softmax(-1)"
    ),
    along(
        0, "your softmax runs over the TEXTS; each text has its own, along the keys: softmax(-1)"
    ),
    Wrong(
        "not masked",
        2,
        "your weights of hidden keys are not 0: their scores must go to -inf before the softmax",
        dict(hide="nothing"),
    ),
    Wrong(
        "masked after the softmax",
        2,
        "you hid weights AFTER the softmax, so your rows no longer sum to 1: hide scores before it",
        dict(hide="after"),
    ),
    Wrong(
        "masked after it, divided again",
        1,
        "right for small scores only: you hid weights after the softmax and divided again. Where a "
        "hidden score is the largest by far, nothing is left to divide: hide scores before it",
        dict(hide="again"),
    ),
    Wrong(
        "hidden scores are 0",
        2,
        "you put hidden scores to 0: exp(0) is 1, so they keep weight. Put them to -inf",
        dict(hide="zero"),
    ),
    Wrong(
        "hidden scores are minus a few",
        1,
        "your hidden scores are finite: among scores in the thousands they keep weight. Put them "
        "to -inf",
        dict(hide="few"),
    ),
    Wrong(
        "the mask inverted",
        2,
        "you hid what is visible: seen is True where a key may be seen, so hide where ~seen",
        dict(hide="visible"),
    ),
    Wrong(
        "over the queries",
        2,
        "your columns sum to 1; every row, a query's, must: the softmax goes along the last axis",
        dict(over="queries"),
    ),
    Wrong(
        "over everything",
        2,
        "all your numbers together sum to 1; wanted every row to sum to 1",
        dict(over="all"),
    ),
    Wrong(
        "not divided",
        2,
        "that is exp of the scores; divide every row by its sum",
        dict(over="none"),
    ),
    Wrong(
        "exp of what is large",
        1,
        "exp of a score in the thousands is infinite, or 0: subtract every row's largest score "
        "first, or use softmax(-1)",
        dict(over="bare"),
    ),
    slip(
        2,
        "those are the scores that the mask leaves; the softmax over them is missing",
        lambda z, seen: np.where(seen, z, -np.inf),
    ),
    hidden_at(-1.0),
    hidden_at(-10.0),
    hints=[
        "First the mask, then the softmax: z.masked_fill(~seen, -torch.inf).",
        "z.masked_fill(~seen, -torch.inf).softmax(-1): along the last axis, the keys.",
    ],
    level="easy",
    minutes=6,
)
def weights(z, seen, *, hide="before", over="keys"):
    """Scores z (B, H, T, S) -> weights (B, H, T, S) that sum to one over the keys.

    seen (T, S) is True where query t may see key s; a hidden key has weight 0.
    """
    hidden = np.broadcast_to(~seen if hide != "visible" else seen, z.shape)
    lowest = dict(zero=0.0, few=-100.0, nothing=z, after=z, again=z).get(hide, -np.inf)
    masked = np.where(hidden, lowest, z)
    axis = dict(queries=-2, all=None).get(over, -1)
    if over in ("none", "bare"):
        e = np.exp(masked)
        return e if over == "none" else e / e.sum(-1, keepdims=True)
    e = np.exp(masked - masked.max(axis, keepdims=True))
    found = e / e.sum(axis, keepdims=True)
    if hide in ("after", "again"):
        found = np.where(hidden, 0.0, found)
        return found / found.sum(-1, keepdims=True) if hide == "again" else found
    return found


def streams(T, S):
    return lambda r: normals(r, (2, T, 3, 4), (2, S, 3, 4), (2, S, 3, 4))


@unit.exercise(
    Part("as many queries as keys", 1, streams(4, 4)),
    Part("fewer queries than keys", 1, streams(2, 5)),
    Wrong(
        "no root",
        2,
        "your scores lack the division by the root of D",
        dict(scale=1.0),
    ),
    Wrong("divided by D", 2, "you divided the scores by D; wanted its root", dict(scale=4.0)),
    Wrong(
        "times the root",
        2,
        "you multiplied the scores by the root of D; divide",
        dict(scale=0.5),
    ),
    Wrong(
        "the root of another axis",
        2,
        "you divided by the root of the number of heads; wanted D, the last axis of q",
        dict(scale=float(np.sqrt(3))),
    ),
    Wrong(
        "root of the width",
        2,
        "you divided by the root of the whole width H D; wanted D, the width of one head",
        dict(scale=float(np.sqrt(12))),
    ),
    Wrong(
        "the root after the softmax",
        2,
        "you divided the weights, so they no longer sum to 1: divide the scores, before the "
        "softmax",
        dict(late_root=True),
    ),
    Wrong("no mask", 2, "your queries see keys that come after them", dict(causal=False)),
    Wrong(
        "a mask from the left corner",
        1,
        "with fewer queries than keys, the queries are the LAST positions: causal_mask(T, S)",
        dict(corner=True),
    ),
    Wrong(
        "sees one too many",
        2,
        "your queries see the key after them",
        dict(late=1),
    ),
    Wrong(
        "masked after the softmax",
        2,
        "your mask comes after the softmax, so your rows no longer sum to 1: hide scores before it",
        dict(hide_late=True),
    ),
    Wrong(
        "heads for positions",
        2,
        "your heads attend to each other: PyTorch's own function wants (B, H, T, D), so give it "
        "q.transpose(1, 2), and turn its answer back",
        dict(layout=True),
    ),
    Wrong(
        "q and k exchanged",
        2,
        "your keys look for queries: scores(q, k), in this order",
        dict(exchanged=True),
    ),
    Wrong(
        "the map turned",
        1,
        "you summed over the queries: value s goes with weight a[t, s], and the sum is over s",
        dict(turned=True),
    ),
    Wrong(
        "heads next to the texts",
        2,
        "your numbers are [b, h, t, d]; wanted [b, t, h, d], as q came",
        dict(heads_first=True),
    ),
    Wrong(
        "the map itself",
        2,
        "you returned the weights; the values are still to be summed with them",
        dict(only_map=True),
    ),
    slip(
        2,
        "your softmax runs over the queries; the weights of every QUERY sum to 1: the last axis",
        lambda q, k, v: by_index.attention(q, k, v, transposed=True),
    ),
    slip(
        2,
        "your hidden scores are 0, and exp(0) is 1: put them to -inf",
        lambda q, k, v: hidden_at_zero(q, k, v),
    ),
    slip(
        1,
        "you divided by the root of the number of keys; wanted D, the width of a head",
        lambda q, k, v: attention(q, k, v, scale=float(np.sqrt(k.shape[1]))),
    ),
    slip(
        1,
        "you divided by the root of the number of queries; wanted D, the width of a head",
        lambda q, k, v: attention(q, k, v, scale=float(np.sqrt(q.shape[1]))),
    ),
    slip(2, "you summed keys; what is summed are the values", lambda q, k, v: attention(q, k, k)),
    hints=[
        "Four lines, and three of them call what you wrote: causal_mask, scores over the root of "
        "D, weights; then the sum over the keys.",
        "a = weights(scores(q, k) / math.sqrt(D), seen), (B, H, T, S). The sum is an einsum of a "
        "and v in which the letter s is missing on the right.",
        'torch.einsum("bhts,bshd->bthd", a, v)',
    ],
    level="medium",
    minutes=10,
)
def attention(
    q,
    k,
    v,
    *,
    scale=None,
    causal=True,
    late=0,
    corner=False,
    late_root=False,
    turned=False,
    heads_first=False,
    only_map=False,
    hide_late=False,
    layout=False,
    exchanged=False,
):
    """Causal attention: q (B, T, H, D), k and v (B, S, H, D) -> (B, T, H, D).

    The T queries are the last T of S positions.
    """
    if layout:
        return attention(*(x.swapaxes(1, 2) for x in (q, k, v))).swapaxes(1, 2)
    q, k = (k, q) if exchanged else (q, k)
    (B, T, H, D), S = q.shape, k.shape[1]
    seen = causal_mask(T, S, itself=-late, corner=corner) if causal else None
    A = np.zeros((B, H, T, S))
    for b, h in np.ndindex(B, H):
        divided = 1.0 if late_root else scale
        A[b, h] = by_index.weights(
            q[b, :, h],
            k[b, :, h],
            causal=hide_late,
            seen=None if hide_late else seen,
            scale=divided,
            after=hide_late,
        )
    A = A / np.sqrt(D) if late_root else A
    if only_map:
        return A
    if turned and T == S:
        A = A.transpose(0, 1, 3, 2)
    out = np.zeros((B, T, H, v.shape[-1]))
    for b, t, h in np.ndindex(B, T, H):
        out[b, t, h] = sum(A[b, h, t, s] * v[b, s, h] for s in range(S))
    return out.transpose(0, 2, 1, 3) if heads_first else out


def hidden_at_zero(q, k, v):
    z = scores(q, k) / np.sqrt(q.shape[-1])
    seen = causal_mask(q.shape[1], k.shape[1])
    return np.einsum("bhts,bshd->bthd", weights(z, seen, hide="zero"), v)


def looking_ahead(q, k, v):
    T = q.shape[1]
    seen = np.broadcast_to(causal_mask(T, T, above=True), (len(q), T, T))
    return by_index.attention(q, k, v, causal=False, seen=seen)


def heads_for_positions(q, k, v):
    """Attention that was given (B, H, T, D); what comes of it, turned back."""
    turned = (x.swapaxes(1, 2) for x in (q, k, v))
    return attention(*turned).swapaxes(1, 2)


def cut_into_positions(x, W_Q, W_K, W_V, W_O, H):
    """view(B, H, T, D) without a transpose, and back the same way: heads made of positions."""
    B, T, C = x.shape
    q, k, v = ((x @ W).reshape(B, H, T, C // H).swapaxes(1, 2) for W in (W_Q, W_K, W_V))
    return by_index.attention(q, k, v).swapaxes(1, 2).reshape(B, T, C) @ W_O


def a_layer(H):
    return lambda r: (*normals(r, (2, 4, 6), *[(6, 6)] * 4), H)


@unit.exercise(
    Part("two heads", 2, a_layer(2)),
    Part("one head", 1, a_layer(1)),
    Part("three heads", 1, a_layer(3)),
    slip(
        3,
        "you cut positions into heads, and put them back the same way: view(B, T, H, D) first, "
        "then transpose(1, 2), and both again at the end",
        cut_into_positions,
    ),
    Wrong(
        "one head for all",
        3,
        "you never cut the width into heads: your scores are sums over all of it",
        dict(one=True),
    ),
    Wrong(
        "H is the width",
        4,
        "you made heads of width H; wanted H heads: unflatten(-1, (H, -1))",
        dict(width=True),
    ),
    Wrong(
        "features dealt out by turns",
        3,
        "your heads take every H-th feature; head 0 is the first D of them: unflatten(-1, (H, -1))",
        dict(turns=True),
    ),
    Wrong(
        "heads joined by turns",
        3,
        "your heads' outputs stand interleaved; side by side is flatten(2) of (B, T, H, D)",
        dict(joined="turns"),
    ),
    Wrong(
        "heads averaged",
        3,
        "you averaged the heads; they stand side by side: flatten(2)",
        dict(joined="mean"),
    ),
    Wrong("no W_O", 4, "W_O is missing: it mixes what the heads found", dict(out=False)),
    Wrong(
        "matrices from the left",
        4,
        "your matrices are turned: here it is x @ W, without a transpose",
        dict(turned=True),
    ),
    Wrong(
        "q and k exchanged",
        4,
        "your queries are made by W_K and your keys by W_Q",
        dict(order=(1, 0, 2)),
    ),
    Wrong(
        "k and v exchanged",
        4,
        "your keys are made by W_V and your values by W_K",
        dict(order=(0, 2, 1)),
    ),
    Wrong(
        "values from W_K",
        4,
        "your values are made by W_K; they have a matrix of their own, W_V",
        dict(order=(0, 1, 1)),
    ),
    Wrong(
        "the stream added",
        4,
        "you added x; that is the block's business, here what attention returns is wanted",
        dict(added=True),
    ),
    Wrong(
        "values as they stand",
        4,
        "your values are x itself; they are made by W_V",
        dict(order=(0, 1, None)),
    ),
    Wrong(
        "the root of the width",
        3,
        "you divided by the root of C; wanted D, the width of one head",
        dict(way=lambda q, k, v: attention(q, k, v, scale=float(np.sqrt(6)))),
    ),
    Wrong(
        "no root",
        4,
        "your scores lack the division by the root of D",
        dict(way=lambda q, k, v: attention(q, k, v, scale=1.0)),
    ),
    Wrong(
        "divided by D",
        4,
        "you divided the scores by D; wanted its root",
        dict(way=lambda q, k, v: attention(q, k, v, scale=float(q.shape[-1]))),
    ),
    Wrong(
        "no mask",
        4,
        "your queries see keys that come after them",
        dict(way=lambda q, k, v: attention(q, k, v, causal=False)),
    ),
    Wrong(
        "over the queries",
        4,
        "your softmax runs over the queries; the weights of every QUERY sum to 1: the last axis",
        dict(way=lambda q, k, v: by_index.attention(q, k, v, transposed=True)),
    ),
    Wrong(
        "the triangle above",
        4,
        "your queries see what comes after them, and not what came before",
        dict(way=looking_ahead),
    ),
    slip(
        4,
        "your W_O is turned: here it is y @ W_O, without a transpose",
        lambda x, Q, K, V, out, H: multi_head(x, Q, K, V, out.T, H),
    ),
    slip(
        4,
        "your W_Q is turned: here it is x @ W_Q, without a transpose",
        lambda x, Q, K, V, out, H: multi_head(x, Q.T, K, V, out, H),
    ),
    slip(
        3,
        "your heads stand before the positions when they are joined: turn them back first, "
        "(B, T, H, D), then flatten(2)",
        lambda *given: multi_head(*given, joined="heads first"),
    ),
    slip(
        3,
        "you cut positions into heads: view(B, T, H, D) first, then transpose(1, 2)",
        lambda *given: multi_head(*given, rows=True),
    ),
    slip(
        4,
        "you cut positions into heads: (B, T, C) becomes view(B, T, H, D), in this order",
        lambda *given: multi_head(*given, rows=True, way=heads_for_positions, joined="heads first"),
    ),
    slip(
        4,
        "your heads stand where positions belong: `attention` takes (B, T, H, D), without a "
        "transpose",
        lambda *given: multi_head(*given, way=heads_for_positions),
    ),
    hints=[
        "x @ W_Q is (B, T, C). Cut its last axis into heads: unflatten(-1, (H, -1)) makes "
        "(B, T, H, D) of it. The same for keys and values.",
        "attention gives (B, T, H, D); flatten(2) puts the heads side by side again, (B, T, C). "
        "Then W_O.",
    ],
    level="medium",
    minutes=10,
)
def multi_head(
    x,
    W_Q,
    W_K,
    W_V,
    W_O,
    H,
    *,
    one=False,
    width=False,
    turns=False,
    joined="side by side",
    out=True,
    turned=False,
    order=(0, 1, 2),
    added=False,
    rows=False,
    way=attention,
):
    """A whole layer of attention: x (B, T, C) and four matrices (C, C) -> (B, T, C).

    H heads of width D = C / H each: head 0 is the first D features, and so on.
    """
    B, T, C = x.shape
    matrices = [W_Q, W_K, W_V]
    if turned:
        matrices, W_O = [W.T for W in matrices], W_O.T
    H = 1 if one else C // H if width else H

    def cut(y):
        if rows:
            return y.reshape(B, H, T, -1).swapaxes(1, 2)
        return y.reshape(B, T, -1, H).swapaxes(2, 3) if turns else y.reshape(B, T, H, -1)

    q, k, v = (cut(x if i is None else x @ matrices[i]) for i in order)
    y = way(q, k, v)  # (B, T, H, D)
    y = y.swapaxes(1, 2) if joined == "heads first" else y
    if joined == "mean":
        y = np.repeat(y.mean(2, keepdims=True), H, 2)
    y = y.swapaxes(2, 3) if joined == "turns" else y
    y = y.reshape(B, T, C)
    y = y @ W_O if out else y
    return x + y if added else y


# ---- positions -----------------------------------------------------------------------------------


def turned_by(says, made, loses=2):
    """The mistake of another turn, made of both entries and of cosine and sine."""
    return slip(loses, says, lambda x1, x2, angle: made(x1, x2, np.cos(angle), np.sin(angle)))


def points(*shape):
    return lambda r: normals(r, *[shape] * 3)


@unit.exercise(
    Part("a few points", 1, points(4)),
    Part("as many angles as points", 1, points(2, 3, 4)),
    turned_by(
        "you turned by the opposite angle: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin",
        lambda x1, x2, c, s: (x1 * c - x2 * s, x2 * c + x1 * s),
    ),
    turned_by(
        "that is no turn: one of the two sines has a minus, y2 = x2 cos - x1 sin",
        lambda x1, x2, c, s: (x1 * c + x2 * s, x2 * c + x1 * s),
    ),
    turned_by(
        "that is no turn: one of the two sines has a plus, y1 = x1 cos + x2 sin",
        lambda x1, x2, c, s: (x1 * c - x2 * s, x2 * c - x1 * s),
    ),
    turned_by(
        "your cosine and sine are exchanged: an angle of 0 turns nothing, so y1 = x1",
        lambda x1, x2, c, s: (x1 * s + x2 * c, x2 * s - x1 * c),
    ),
    turned_by(
        "your y2 is made of the NEW y1; both are made of x1 and x2 as they came",
        lambda x1, x2, c, s: (x1 * c + x2 * s, x2 * c - (x1 * c + x2 * s) * s),
    ),
    turned_by(
        "your y1 is made of the NEW y2; both are made of x1 and x2 as they came",
        lambda x1, x2, c, s: (x1 * c + (x2 * c - x1 * s) * s, x2 * c - x1 * s),
    ),
    turned_by(
        "your y1 and y2 are in each other's place",
        lambda x1, x2, c, s: (x2 * c - x1 * s, x1 * c + x2 * s),
    ),
    turned_by(
        "that is y1 alone; y2 = x2 cos - x1 sin is the second result",
        lambda x1, x2, c, s: x1 * c + x2 * s,
    ),
    turned_by(
        "you turned the first entry alone; y2 = x2 cos - x1 sin",
        lambda x1, x2, c, s: (x1 * c + x2 * s, x2),
    ),
    turned_by(
        "each of your entries is shortened by itself; in a turn both entries meet",
        lambda x1, x2, c, s: (x1 * c, x2 * c),
    ),
    turned_by(
        "each of your entries is shortened by itself; in a turn both entries meet",
        lambda x1, x2, c, s: (x1 * c, x2 * s),
    ),
    turned_by(
        "your y2 is that of the other turn: y2 = x2 cos - x1 sin, and yours is x1 cos - x2 sin",
        lambda x1, x2, c, s: (x1 * c + x2 * s, x1 * c - x2 * s),
    ),
    turned_by("yours are x1 and x2 as they came", lambda x1, x2, c, s: (x1, x2)),
    slip(
        2,
        "you took the angle for degrees; cos and sin want radians, as it is",
        lambda x1, x2, angle: turn_pair(x1, x2, np.deg2rad(angle)),
    ),
    slip(
        2,
        "you multiplied the angle; it is turned by once",
        lambda x1, x2, angle: turn_pair(x1, x2, 2 * np.pi * angle),
    ),
    hints=[
        "Take cos = angle.cos() and sin = angle.sin() once; then two lines.",
        "return x1 * cos + x2 * sin, x2 * cos - x1 * sin",
    ],
    level="easy",
    minutes=4,
)
def turn_pair(x1, x2, angle):
    """The points (x1, x2) turned by their angles -> (y1, y2): y1 = x1 cos + x2 sin, and
    y2 = x2 cos - x1 sin. x1, x2 and angle have one shape, and so have y1 and y2.
    """
    return x1 * np.cos(angle) + x2 * np.sin(angle), x2 * np.cos(angle) - x1 * np.sin(angle)


def by_head(x, positions, base):
    """Angles that lie along the heads, where there are as many heads as positions."""
    return turn(x.swapaxes(1, 2), positions, base).swapaxes(1, 2)


def second_exchanged(x, *how):
    """x1 cos - x2 sin: the first half of the turn in the other direction."""
    return np.split(turn(x, *how, sign=-1), 2, -1)[0]


def rows_at(positions, heads):
    return lambda r: (r.normal(size=(2, 5, heads, 8)), positions(r), 50.0)


@unit.exercise(
    Part("positions 0, 1, 2, …", 1, rows_at(lambda r: np.arange(5), heads=5)),
    Part("any positions", 1, rows_at(lambda r: r.integers(0, 60, 5), heads=2)),
    Wrong(
        "turned the other way",
        2,
        "you turned by the opposite angle: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin",
        dict(sign=-1),
    ),
    Wrong(
        "neighbours are pairs",
        2,
        "you paired neighbours (0 with 1, 2 with 3); here entry i turns with entry i + D/2. Both "
        "habits exist, and weights trained with one are useless with the other",
        dict(split=False),
    ),
    Wrong(
        "rates half as steep",
        2,
        "your rates fall half as fast: base ** (-2 i / D) for i = 0 … D/2 - 1",
        dict(steep=1),
    ),
    Wrong(
        "one rate for all",
        2,
        "all your pairs turn at the same rate; pair i turns by position * base ** (-2 i / D)",
        dict(steep=0),
    ),
    Wrong(
        "counts the rows",
        1,
        "you turned row t by t; the argument `positions` says where each row stands",
        dict(count=True),
    ),
    Wrong(
        "both with plus",
        2,
        "that is no turn: one of the two sines has a minus, y2 = x2 cos - x1 sin",
        dict(minus=1),
    ),
    Wrong(
        "cos and sin exchanged",
        2,
        "your cosine and sine are exchanged: at position 0 nothing turns, so y1 = x1",
        dict(quarter=True),
    ),
    Wrong(
        "rates rise",
        2,
        "your later pairs turn faster; they turn more slowly: base ** (MINUS 2 i / D)",
        dict(steep=-2),
    ),
    Wrong(
        "counted from 1",
        2,
        "your pairs are counted from 1: the first one turns by the position itself, i = 0",
        dict(first=1),
    ),
    Wrong("not turned", 2, "yours is x as it came", dict(sign=0)),
    Wrong(
        "rates twice as steep",
        2,
        "your rates fall twice as fast: base ** (-2 i / D), with D and not D/2 below",
        dict(steep=4),
    ),
    slip(
        2,
        "your angles lie along the heads; they belong to the positions: angle[:, None], "
        "(T, 1, D/2)",
        by_head,
    ),
    slip(
        2,
        "your rates do not depend on `base`: you took 10,000, its default; the argument may differ",
        lambda x, positions, base: turn(x, positions),
    ),
    slip(
        2,
        "your y2 is that of the other turn: y2 = x2 cos - x1 sin, and yours is x1 cos - x2 sin",
        lambda x, *how: np.concatenate(
            [np.split(turn(x, *how), 2, -1)[0], second_exchanged(x, *how)], -1
        ),
    ),
    slip(
        2,
        "you took neighbours as pairs and put the halves one behind the other; here entry i turns "
        "with entry i + D/2",
        lambda x, *how: turn(np.concatenate([x[..., ::2], x[..., 1::2]], -1), *how),
    ),
    slip(
        2,
        "your y1 and y2 stand by turns; y1 is the first half, y2 the second: torch.cat",
        lambda x, *how: (
            turn(x, *how).reshape(*x.shape[:-1], 2, -1).swapaxes(-1, -2).reshape(x.shape)
        ),
    ),
    slip(
        2,
        "your positions are one too large: the first of them is 0, and does not turn",
        lambda x, positions, base: turn(x, positions + 1, base),
    ),
    slip(
        2,
        "your y1 and y2 are in each other's place",
        lambda x, *how: np.roll(turn(x, *how), x.shape[-1] // 2, -1),
    ),
    slip(
        2,
        "you turned the first half alone; y2 = x2 cos - x1 sin",
        lambda x, *how: np.concatenate([turn(x, *how)[..., :4], x[..., 4:]], -1),
    ),
    slip(
        2,
        "you took the angles for degrees; cos and sin want radians, as they are",
        lambda x, positions, base: turn(x, np.deg2rad(positions), base),
    ),
    hints=[
        "x1, x2 = x.chunk(2, -1): pair i is (x1[i], x2[i]). Each pair turns by its own angle.",
        "rate = base ** (-torch.arange(0, D, 2) / D), (D/2,); angle = positions[:, None] * rate, "
        "(T, D/2).",
        "x is (B, T, H, D): give the angle a place for the heads, angle[:, None], (T, 1, D/2). "
        "Then torch.cat(turn_pair(x1, x2, angle), -1).",
    ],
    level="medium",
    minutes=14,
)
def turn(
    x,
    positions,
    base=10_000.0,
    *,
    sign=1,
    split=True,
    steep=2,
    count=False,
    minus=-1,
    quarter=False,
    first=0,
):
    """x (B, T, H, D) at positions (T,) -> (B, T, H, D): RoPE.

    Pair i of D/2 holds x1 = entry i and x2 = entry i + D/2. It turns by the angle
    position * base ** (-2 i / D):  y1 = x1 cos + x2 sin,  y2 = x2 cos - x1 sin.
    """
    out, (_, T, _, D) = np.zeros(x.shape), x.shape
    for t in range(T):
        for i in range(D // 2):
            angle = sign * (t if count else positions[t]) * base ** (-steep * (i + first) / D)
            cos, sin = np.cos(angle), np.sin(angle)
            cos, sin = (sin, cos) if quarter else (cos, sin)
            a, b = (i, i + D // 2) if split else (2 * i, 2 * i + 1)
            out[:, t, :, a] = x[:, t, :, a] * cos + x[:, t, :, b] * sin
            out[:, t, :, b] = x[:, t, :, b] * cos + minus * x[:, t, :, a] * sin
    return out


# ---- a tile at a time ----------------------------------------------------------------------------


def with_exponents(m, total, out, scores, values, exponents, every=False):
    """A step with other exponents, or with one largest score for all."""
    found = scores.max() if every else scores.max(-1, keepdims=True)
    largest = np.maximum(m, found)
    shrink, e = np.exp(m - largest), np.exp(exponents(scores, largest))
    return largest, total * shrink + e.sum(-1, keepdims=True), out * shrink + e @ values


def with_factor(m, total, out, scores, values, factor):
    """A step that corrects what was summed before by another factor."""
    largest = np.maximum(m, scores.max(-1, keepdims=True))
    e, old = np.exp(scores - largest), factor(m, largest)
    return largest, total * old + e.sum(-1, keepdims=True), out * old + e @ values


def of_the_others(m, scores):
    """The sum of the exponentials of all queries but the own one."""
    e = np.exp(scores - np.maximum(m, scores.max(-1, keepdims=True)))
    return e.sum() - e.sum(-1, keepdims=True)


def out_with(m, total, out, scores, values, weights):
    """The third result with other weights of the values."""
    largest = np.maximum(m, scores.max(-1, keepdims=True))
    return out * np.exp(m - largest) + weights(np.exp(scores - largest)) @ values


def later_tile(size):
    """Some tiles were read: the largest score so far is now above, now below the new ones."""

    def make(r):
        m, scores, out, values = normals(r, (2, 3, 4, 1), (2, 3, 4, 5), (2, 3, 4, 6), (2, 3, 5, 6))
        return size * m, r.random((2, 3, 4, 1)) + 1, out, size * scores, values

    return make


def first_tile(r):
    """Nothing was read so far, and all scores are negative."""
    scores, values = -np.abs(r.normal(size=(2, 3, 4, 5))) - 1, r.normal(size=(2, 3, 5, 6))
    m, zero = np.full((2, 3, 4, 1), -np.inf), np.zeros((2, 3, 4, 1))
    return m, zero, np.zeros((2, 3, 4, 6)), scores, values


@unit.exercise(
    Part("the first tile", 1, first_tile),
    Part("a later tile", 1, later_tile(1)),
    Part("scores in the hundreds", 1, later_tile(200)),
    Wrong(
        "total not corrected",
        2,
        "when the largest score grows, what was summed before must shrink by exp(m - largest): "
        "your total did not",
        dict(shrink_total=False),
    ),
    Wrong(
        "output not corrected",
        2,
        "when the largest score grows, what was summed before must shrink by exp(m - largest): "
        "your out did not",
        dict(shrink_out=False),
    ),
    Wrong(
        "neither corrected",
        2,
        "when the largest score grows, what was summed before must shrink by exp(m - largest): "
        "neither your total nor your out did",
        dict(shrink_total=False, shrink_out=False),
    ),
    Wrong(
        "the tile's own maximum",
        2,
        "your largest score is that of this tile alone; take the larger of it and m",
        dict(own=True),
    ),
    Wrong(
        "divided too early",
        3,
        "you divided by the total in this tile; that is done once, after the last one",
        dict(early=True),
    ),
    Wrong(
        "the mean of values",
        3,
        "your total counts scores but not their weights: it grows by the sum of "
        "exp(score - largest), not by the number of scores",
        dict(counted=True),
    ),
    slip(
        3,
        "your exponents are the scores themselves; subtract the largest score so far first",
        lambda *given: with_exponents(*given, lambda scores, largest: scores),
    ),
    slip(
        3,
        "your total adds up the exponentials of all queries; every query has its own: sum(-1, "
        "keepdim=True)",
        lambda m, total, *given: (
            add_tile(m, total, *given)[0],
            add_tile(m, total, *given)[1] + of_the_others(m, given[1]),
            add_tile(m, total, *given)[2],
        ),
    ),
    slip(
        3,
        "your factor grows with the largest score: it is exp(m - largest), not exp(largest - m)",
        lambda *given: with_factor(*given, lambda m, largest: np.exp(largest - m)),
    ),
    slip(
        3,
        "your factor is the difference m - largest itself; take exp of it",
        lambda *given: with_factor(*given, lambda m, largest: m - largest),
    ),
    slip(
        3,
        "your exponents are relative to the OLD largest score; take the one that you return",
        lambda m, *given: with_exponents(m, *given, lambda scores, _: scores - m),
    ),
    slip(
        3,
        "you returned m as it came; wanted the largest score so far, this tile included",
        lambda m, *given: (m, *add_tile(m, *given)[1:]),
    ),
    slip(
        2,
        "your exponents are relative to the largest score of the tile; take the largest so far, "
        "the one that you return",
        lambda *given: with_exponents(*given, lambda s, _: s - s.max(-1, keepdims=True)),
    ),
    slip(
        3,
        "you took ONE largest score for all; every query has its own: amax(-1, keepdim=True)",
        lambda m, total, out, scores, values: with_exponents(
            m, total, out, scores, values, lambda s, largest: s - largest, every=True
        ),
    ),
    slip(
        3,
        "you weighted values with a softmax of this tile; that divides too early: exp alone",
        lambda *given: (*add_tile(*given)[:2], out_with(*given, lambda e: by_rows(e))),
    ),
    slip(
        3,
        "you weighted values with the scores; wanted exp(score - largest)",
        lambda *given: (*add_tile(*given)[:2], out_with(*given, lambda e: given[3])),
    ),
    hints=[
        "largest = torch.maximum(m, scores.amax(-1, keepdim=True)), (…, T, 1). All exponents are "
        "taken relative to it.",
        "shrink = (m - largest).exp() corrects what was summed before, total as well as out. It is "
        "0 in the first tile, where m is -inf.",
        "e = (scores - largest).exp(), (…, T, S): total * shrink + e.sum(-1, keepdim=True), and "
        "out * shrink + e @ values.",
    ],
    level="medium",
    minutes=12,
)
def add_tile(
    m,
    total,
    out,
    scores,
    values,
    *,
    shrink_total=True,
    shrink_out=True,
    own=False,
    early=False,
    counted=False,
):
    """One step of the online softmax: what was read so far and a new tile -> the three, brought up
    to date.

    So far: m (…, T, 1) the largest score, total (…, T, 1) the sum of exp(score - m), out (…, T, D)
    the sum of exp(score - m) times its value. The tile: scores (…, T, S) and values (…, S, D).
    """
    new_m, new_total, new_out = np.zeros(m.shape), np.zeros(total.shape), np.zeros(out.shape)
    *many, T, S = scores.shape
    for at in np.ndindex(*many):
        for t in range(T):
            row, before = scores[(*at, t)], m[(*at, t, 0)]
            largest = max(row) if own else max(before, max(row))
            shrink = np.exp(before - largest)
            e = [np.exp(score - largest) for score in row]
            gained = S if counted else sum(e)
            new_m[(*at, t, 0)] = largest
            new_total[(*at, t, 0)] = total[(*at, t, 0)] * (shrink if shrink_total else 1) + gained
            old = out[(*at, t)] * (shrink if shrink_out else 1)
            new_out[(*at, t)] = old + sum(e[s] * values[(*at, s)] for s in range(S))
    return new_m, new_total, new_out / new_total if early else new_out


# ---- a token at a time ---------------------------------------------------------------------------


def in_front(q, k, v, k_cache, v_cache, keys):
    """One of the two new rows in front of its cache."""
    k_cache = np.concatenate([k, k_cache] if keys else [k_cache, k], 1)
    v_cache = np.concatenate([v_cache, v] if keys else [v, v_cache], 1)
    return by_index.attention(q, k_cache, v_cache, causal=False), k_cache, v_cache


def over(q, keys, values, axis=-1, keys_twice=False):
    """One query with a softmax along another axis, or with keys as values."""
    z = np.einsum("bthd,bshd->bhts", q, keys) / np.sqrt(q.shape[-1])
    a = np.exp(z) / np.exp(z).sum(axis, keepdims=True)
    read = keys if keys_twice else values
    return np.einsum("bhts,bshd->bthd", a, read), keys, values


def heads_to_heads(q, keys, values):
    """Attention as scaled_dot_product_attention does it on (B, T, H, D)."""
    z = np.einsum("bhd,bsgd->bshg", q[:, 0], keys) / np.sqrt(q.shape[-1])
    return np.einsum("bshg,bsgd->bshd", by_rows(z), values), keys, values


def without_the_oldest(q, *rest):
    """Both caches, grown by a row, less their first one."""
    _, keys, values = decode_step(q, *rest)
    if keys.shape[1] == 1:
        return 0 * q, keys[:, 1:], values[:, 1:]
    seen = keys[:, 1:], values[:, 1:]
    return by_index.attention(q, *seen, causal=False), *seen


def step(S):
    return lambda r: normals(r, *[(2, 1, 3, 6)] * 3, *[(2, S, 3, 6)] * 2)


@unit.exercise(
    Part("the first token, from an empty cache", 1, step(0)),
    Part("a later token", 1, step(5)),
    Wrong(
        "blind to itself",
        2,
        "the new token must see itself: append its key and value first, then attend",
        dict(sees="cache"),
    ),
    Wrong(
        "the new key alone",
        1,
        "your query saw only the new key; it must see the whole cache",
        dict(sees="new"),
    ),
    Wrong(
        "a mask from the left corner",
        1,
        "your one query saw the first key alone; the new token is the LAST position and sees all: "
        "no mask is needed",
        dict(sees="first"),
    ),
    Wrong(
        "new rows in front",
        1,
        "you put the new rows in front of the cached ones; they belong behind them",
        dict(front=True),
    ),
    Wrong(
        "no root",
        1,
        "your scores lack the division by the root of D",
        dict(root=False),
    ),
    Wrong(
        "keys for values",
        2,
        "your values are keys: the second cache keeps v",
        dict(swap="v"),
    ),
    Wrong(
        "values for keys",
        2,
        "your keys are values: the first cache keeps k",
        dict(swap="k"),
    ),
    Wrong(
        "the oldest forgotten",
        1,
        "you dropped the oldest row of each cache; they grow by one row in every step",
        dict(forget=True),
    ),
    slip(
        1,
        "you put the new key in front of the cached ones; it belongs behind them, as its value",
        in_front,
        keys=True,
    ),
    slip(
        1,
        "you put the new value in front of the cached ones; it belongs behind them, as its key",
        in_front,
        keys=False,
    ),
    slip(
        1,
        "you divided the scores by D; wanted its root",
        lambda q, *rest: (
            by_index.attention(
                q, *decode_step(q, *rest)[1:], causal=False, scale=float(q.shape[-1])
            ),
            *decode_step(q, *rest)[1:],
        ),
    ),
    slip(
        2,
        "your heads attend to each other: PyTorch's own function wants (B, H, T, D), so give it "
        "q.transpose(1, 2), and turn its answer back",
        lambda q, *rest: heads_to_heads(q, *decode_step(q, *rest)[1:]),
    ),
    slip(
        2,
        "you summed keys; what is summed are the values",
        lambda q, *rest: over(q, *decode_step(q, *rest)[1:], keys_twice=True),
    ),
    slip(
        2,
        "your softmax runs over the heads; a query's weights sum to 1 over the keys: softmax(-1)",
        lambda q, *rest: over(q, *decode_step(q, *rest)[1:], axis=1),
    ),
    slip(
        2,
        "you dropped the oldest row of each cache, of an empty one even the new row; they grow by "
        "one row in every step",
        without_the_oldest,
    ),
    slip(
        2,
        "your query does not see the oldest row; it sees all that is kept",
        lambda *given: (without_the_oldest(*given)[0], *decode_step(*given)[1:]),
    ),
    slip(
        1,
        "you returned the new rows alone; the caches hold all rows so far",
        lambda q, k, v, *caches: (decode_step(q, k, v, *caches)[0], k, v),
    ),
    hints=[
        "torch.cat([k_cache, k], 1) first: positions are axis 1. Then one query against all keys.",
        "Your own `attention` does the rest: one query is the last of S + 1 positions, so its mask "
        "hides nothing.",
    ],
    level="medium",
    minutes=12,
)
def decode_step(
    q, k, v, k_cache, v_cache, *, sees="all", front=False, root=True, swap="", forget=False
):
    """One new token: q, k, v (B, 1, H, D) and caches (B, S, H, D), S may be 0 -> (out, k_cache,
    v_cache), with out (B, 1, H, D) and caches one row longer."""
    k, v = (v if swap == "k" else k), (k if swap == "v" else v)
    kept = (x[:, 1:] if forget else x for x in (k_cache, v_cache))
    pairs = zip(kept, (k, v), strict=True)
    keys, values = (np.concatenate([new, old] if front else [old, new], 1) for old, new in pairs)
    seen = dict(
        all=(keys, values), cache=(k_cache, v_cache), new=(k, v), first=(keys[:, :1], values[:, :1])
    )[sees]
    if seen[0].shape[1] == 0:
        return np.zeros(q.shape), keys, values
    return by_index.attention(q, *seen, causal=False, root=root), keys, values
