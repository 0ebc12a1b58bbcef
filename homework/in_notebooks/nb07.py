"""Notebook 07: a value for every pair of tokens, and what is left of the pairs."""

import numpy as np

from homework.marking import Part, Unit, drawn

unit = Unit("nb07_dva", "Dynamic value attention", single=True)  # a loop may fill torch.zeros


@drawn
def mapped(r, gate):
    """A map of five tokens, causal or not, with the two streams and the queries' gates."""
    weights = r.random((5, 5)) + np.eye(5)
    v, qR, kR = r.normal(size=(3, 5, 4))
    return weights / weights.sum(1, keepdims=True), v, gate * qR, kR


def no_pair(made, a, v, qR, kR):
    """By the definition T S C numbers are made of qR and kR, at once or one pair after the other.
    Of NumPy and lists nothing is seen, and nothing said."""
    pairs = a.numel() * v.shape[1]
    of_both = sum(x.size for x in made if {"qR", "kR"} <= x.of and not x.view)
    if 0 < of_both < pairs:
        return (
            "already without the pairs, which is the next exercise: build all v_ij here, since the "
            "notebook counts what they keep"
        )
    return ""


@unit.exercise(
    Part("gates that are shut", 1, mapped(0)),
    Part("gates that are open", 1, mapped(1)),
    forbids=no_pair,
)
def by_pairs(a, v, qR, kR):
    """Every pair has its own value, v_ij = v_j + qR_i * kR_j (feature by feature), and query i
    hears sum_j a_ij v_ij: a map (T, S), v and kR (S, C), qR (T, C) -> (T, C).
    """
    out = np.zeros(qR.shape)
    for i, j in np.ndindex(*a.shape):
        out[i] += a[i, j] * (v[j] + qR[i] * kR[j])
    return out


unit.mistakes(r"""
takes: easy, 6 minutes
hint: Give every tensor size 1 where it does not vary: kR[None] (1, S, C), qR[:, None] (T, 1, C).
hint: pairs = v[None] + qR[:, None] * kR[None] is (T, S, C). Times a[:, :, None], sum over keys.
1 | you multiplied qR and kR of the SAME token; the gate belongs to the query: qR_i with kR_j
    qR[i] => qR[j]
2 | your map is turned round: row i of a holds the weights with which query i looks at keys
    a[i, j] => a[j, i]
2 | the modifier is a product, feature by feature, of qR_i and kR_j; you added them
    qR[i] * kR[j] => qR[i] + kR[j]
1 | you summed the modifiers of all pairs as they are; each has the weight a_ij of its value
    (v[j] + qR[i] * kR[j]) => v[j] + qR[i] * kR[j]
1 | the modifier is a product, feature by feature; you took the dot product, one number a pair
    qR[i] * kR[j] => qR[i] @ kR[j]
2 | the static value is missing: v_ij = v_j + qR_i * kR_j
    v[j] + =>
2 | the gate qR is missing: the modifier is qR_i * kR_j
    qR[i] * =>
1 | you took qR and kR of the query itself; a pair's modifier takes kR and weight of the key
    kR[j] => kR[i]
1 | qR and kR have changed places: the gate is the query's, qR_i, what it opens the key's, kR_j
    qR[i] * kR[j] => qR[j] * kR[i]
2 | you gated v as well: v_ij = v_j + qR_i * kR_j
    v[j] + qR[i] * kR[j] => qR[i] * (v[j] + kR[j])
2 | you took v of the query; a pair's static value is the key's, v_j
    v[j] => v[i]
2 | you summed over the queries or the features; query i hears the sum over the KEYS
    out[i] => out[j]
    => a * (v.sum(1) + qR @ kR.T)
2 | your loop keeps the last pair alone; wanted the sum of all
    out[i] += => out[i] =
2 | the gate is qR itself: no sigmoid, no 1 + qR
    qR[i] * => 1 / (1 + np.exp(-qR[i])) * || (1 + qR[i]) *
1 | you took the modifier off; it is added
    v[j] + => v[j] -
2 | a is a map already: no softmax is asked for
    for i, j in => a = np.exp(a) / np.exp(a).sum(1, keepdims=True)\nfor i, j in
2 | the modifier is ADDED to v_j; you multiplied the two
    v[j] + qR[i] => v[j] * qR[i]
2 | the map is missing: each value has the weight a_ij
    a[i, j] * =>
2 | the weights a_ij sum to 1 already, so sum over the keys: you took their mean
    return out => return out / len(v)
2 | you left out keys: a query sees itself, and all that its map shows, causal or not
    a[i, j] * => (i > j) * a[i, j] * || (i >= j) * a[i, j] * || (i != j) * a[i, j] *
""")


def no_pairs(made, a, v, qR, kR):
    """A tensor of (T, S, C) numbers is one of pairs, in whatever order."""
    pairs = a.numel() * v.shape[1]
    if any(x.size >= pairs for x in made):
        return f"you made a tensor of T S C = {pairs} numbers: the pairs are what is to be avoided"
    return ""


@unit.exercise(
    Part("gates that are shut", 1, mapped(0)),
    Part("gates that are open", 1, mapped(1)),
    forbids=no_pairs,
)
def two_streams(a, v, qR, kR):
    """The same function of a map (T, S), v and kR (S, C), qR (T, C) -> (T, C), with no tensor
    larger than (T, S) or (T, C).
    """
    return a @ v + qR * (a @ kR)


unit.mistakes("""
takes: medium, 8 minutes
hint: In the sum over j of a_ij (v_j + qR_i * kR_j), which factor has no j? Put it before the sum.
hint: Two sums remain, a @ v and a @ kR, each (T, C). The gate multiplies the second.
2 | you gated v as well: only the second stream stands behind the gate
    => qR * (a @ v + a @ kR)
2 | the gate qR is missing, so that the second stream always comes through whole
    qR * =>
1 | you multiplied qR and kR of the SAME token; the gate belongs to the query: qR_i with kR_j
    qR * (a @ kR) => a @ (qR * kR)
1 | you took kR of the query itself; the second stream is carried by the map, as v is: a @ kR
    (a @ kR) => kR
2 | your map is turned round: row i of a holds the weights with which query i looks at keys
    => a.T @ v + qR * (a.T @ kR)
1 | qR and kR have changed places: kR is what the map carries, qR the gate outside
    qR * (a @ kR) => kR * (a @ qR)
2 | you gated v and not kR: the gate stands on the second stream
    => qR * (a @ v) + a @ kR
2 | v of the query itself stands in the place of a @ v: the map carries v as it carries kR
    a @ v => v
1 | the map carries qR, too; the gate stays outside, each query's own
    + qR => + a @ qR
1 | all your queries share one gate, the mean of theirs; each has its own
    + qR => + qR.mean(0)
1 | the gate multiplies what arrives, feature by feature; you changed the weights of the map with it
    => (a * (1 + qR @ kR.T)) @ v
2 | v is missing: the two streams are added
    a @ v + =>
1 | you gated v once more; the second stream is kR
    a @ kR => a @ v
1 | you took the second stream off; it is added
    + qR => - qR
1 | the map carries kR as it carries v, a @ kR; you summed or averaged kR without it
    (a @ kR) => kR.sum(0) || kR.mean(0)
1 | the gate multiplies feature by feature: no dot product, no product of matrices with qR
    qR * (a @ kR) => qR @ kR.T @ v || (qR * (a @ kR)).sum(1, keepdims=True)
2 | the gate MULTIPLIES the second stream, and is qR itself: no sum, no sigmoid, no 1 + qR
    qR * => qR + || (1 + qR) * || 1 / (1 + np.exp(-qR)) *
2 | a is a map already: no softmax is asked for
    => two_streams(np.exp(a) / np.exp(a).sum(1, keepdims=True), v, qR, kR)
""")


def matrices(still):
    return lambda r: (*r.normal(size=(2, 5, 5)), np.ones(5) if still else r.normal(size=5))


@unit.exercise(Part("a gate of ones", 1, matrices(True)), Part("another gate", 1, matrices(False)))
def folded(W_V, W_KR, c):
    """One value matrix (C, C) in the place of two, where every query has the same gate c (C,): with
    it, ordinary attention makes what A (h W_V) + c * (A (h W_KR)) makes.
    """
    return W_V + W_KR * c


unit.mistakes("""
takes: easy, 4 minutes
hint: a @ (h @ W_V) + c * (a @ (h @ W_KR)): c has no token's index, so it may move to the matrix.
hint: c * (h @ W_KR) is h @ (W_KR * c): broadcasting puts c[i] on column i.
1 | you scaled the rows of W_KR; h @ W has a column, and the gate a number, for each feature
    * c => * c[:, None]
1 | the gate c is missing
    * c =>
2 | W_V is missing: the two are added
    W_V + =>
2 | `@` with c mixes features; the gate multiplies each column by a number of its own
    W_KR * c => c @ W_KR || W_KR @ c || W_KR @ np.outer(c, c)
1 | you scaled W_V; the gate stands on the second stream alone, W_KR
    => (W_V + W_KR) * c || W_V * c + W_KR
2 | the two matrices are ADDED: no product, no mean, no share 1 - c
    W_V + => W_V @ || W_V * || (1 - c) * W_V +
    => (W_V + W_KR * c) / 2
2 | you took the second matrix off; it is added
    W_V + => W_V -
2 | you turned a matrix round; only columns are scaled
    W_V + => W_V.T +
    W_KR * c => (W_KR * c).T || W_KR.T * c
2 | you added c to the matrix; it multiplies the columns of W_KR
    W_KR * c => W_KR + c || W_KR + np.diag(c)
2 | column i of W_KR is multiplied by c[i] itself: no sum, no length, no sigmoid of c
    * c => * c.sum() || * np.linalg.norm(c) || / (1 + np.exp(-c))
1 | column i of W_KR is multiplied by c[i], once; yours by another number
    * c => * c.mean() || * c[0] || * c**2 || / c || * np.outer(c, c)
2 | both matrices are turned round: a row belongs to an input, a column to a feature
    => (W_V + W_KR * c).T
""")


@drawn
def shape(r, layers):
    numbers = [int(r.integers(*x)) for x in (layers, (2, 9), (5_000, 50_000), (1, 9))]
    return numbers[0], 64 * numbers[1], numbers[2], 64 * numbers[3]


@unit.exercise(Part("no layer", 1, shape((0, 1))), Part("several layers", 1, shape((2, 13))))
def dva_parameters(layers, width, vocab, context):
    """How many parameters has a DVA model in GPT-2's style? An embedding and a head of its own,
    (vocab, C) each; learned positions (context, C). In every layer one LayerNorm (scale and shift)
    and the matrices W_Q, W_K, W_V, W_QR, W_KR, (C, C) each, without biases; one LayerNorm more
    before the head. No feed-forward network, no W_O. C is the width.
    """
    C, norm = width, 2 * width
    tables = 2 * vocab * C + context * C
    layer = 5 * C * C + norm
    return tables + layers * layer + norm


unit.mistakes("""
takes: medium, 7 minutes
hint: Three tables stand outside the layers: embedding, head and positions. And one norm.
hint: A layer has 5 C² + 2 C, everything else (2 vocab + context) C + 2 C.
2 | the head is not tied to the embedding here: both tables count
    2 * vocab => vocab
1 | with the feed-forward network its norm is gone, too: one norm a layer
    C * C + norm => C * C + 2 * norm
2 | a LayerNorm has a scale and a shift: 2 C numbers
    2 * width => width
    layers * layer + norm => layers * layer + C
2 | the norms are missing: one in every layer and one more before the head, 2 C numbers each
    2 * width => 0
2 | one more norm stands before the head
    layers * layer + norm => layers * layer
2 | the learned positions are missing: context * C
    + context * C =>
1 | five matrices a layer: W_Q, W_K and W_V, the modifier's W_QR and W_KR, and no W_O
    5 * C => 6 * C || 4 * C || 3 * C
1 | these matrices have no biases
    5 * C * C => 5 * (C * C + C)
1 | there is no feed-forward network here: 5 C^2 a layer
    5 * C => 13 * C
2 | positions have one table of (context, C), outside the layers
    context * C => 2 * context * C || layers * context * C || context * vocab || context**2
1 | `^` is no power in Python: width**2
    5 * C * C => 5 * C ^ 2
1 | the LayerNorm of a layer has a scale and a shift: 2 C numbers
    C * C + norm => C * C + C || C * C
1 | a matrix is (C, C): C^2 numbers, not C
    5 * C * C => 5 * C
2 | the head has no bias
    return tables => return vocab + tables
2 | wanted the number itself, not millions
    return tables + layers * layer + norm => return (tables + layers * layer + norm) / 1e6
2 | EVERY layer has a LayerNorm; you counted one for all of them
    layers * layer + norm => layers * (layer - norm) + 2 * norm
""")
