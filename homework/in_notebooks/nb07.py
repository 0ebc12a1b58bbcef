"""Notebook 07: a value for every pair of tokens, and what is left of the pairs."""

import numpy as np

from homework.marking import Part, Unit, Wrong, slip

unit = Unit("nb07_dva", "Dynamic value attention", "The exercises of notebook 07.")


# ---- a value for every pair ----------------------------------------------------------------------


def mapped(gate):
    """A causal map of five tokens with the two streams and the queries' gates."""

    def make(r):
        weights = np.tril(r.random((5, 5))) + np.eye(5)
        v, qR, kR = r.normal(size=(3, 5, 4))
        return weights / weights.sum(1, keepdims=True), v, gate * qR, kR

    return make


AT_THE_KEY = (
    "you multiplied qR and kR of the SAME token and offered that to everybody; the gate belongs to "
    "the query: qR_i with kR_j"
)
TURNED = "your map is turned round: row i of a holds the weights with which query i looks at keys"


@unit.exercise(
    Part("gates that are shut", 1, mapped(0)),
    Part("gates that are open", 1, mapped(1)),
    Wrong("the key's own gate", 1, AT_THE_KEY, dict(gate="key")),
    Wrong("a turned map", 2, TURNED, dict(turned=True)),
    Wrong(
        "a sum",
        2,
        "the modifier is a product, feature by feature, of qR_i and kR_j; you added them",
        dict(times=False),
    ),
    Wrong(
        "the modifier unweighted",
        1,
        "you summed the modifiers of all pairs as they are; each has the weight a_ij of its value",
        dict(weighted=False),
    ),
    Wrong(
        "the modifier alone",
        2,
        "the static value is missing: v_ij = v_j + qR_i * kR_j",
        dict(static=0),
    ),
    slip(
        2,
        "the gate qR is missing: the modifier is qR_i * kR_j",
        lambda a, v, qR, kR: a @ v + a @ kR,
    ),
    slip(
        1,
        "you took qR and kR of the query itself; the modifier of a pair takes kR of the "
        "key, and its weight",
        lambda a, v, qR, kR: a @ v + qR * kR,
    ),
    slip(
        1,
        "qR and kR have changed places: the gate is the query's, qR_i, and what it opens "
        "is the key's, kR_j",
        lambda a, v, qR, kR: a @ v + kR * (a @ qR),
    ),
    slip(
        2, "you gated v as well: v_ij = v_j + qR_i * kR_j", lambda a, v, qR, kR: qR * (a @ (v + kR))
    ),
    slip(
        2,
        "you took v of the query; a pair's static value is the key's, v_j",
        lambda a, v, qR, kR: v * a.sum(1, keepdims=True) + qR * (a @ kR),
    ),
    slip(
        2,
        "you summed over the queries; query i hears the sum over the KEYS",
        lambda a, v, qR, kR: a.sum(0)[:, None] * v + (a.T @ qR) * kR,
    ),
    slip(1, "you took the modifier off; it is added", lambda a, v, qR, kR: a @ v - qR * (a @ kR)),
    slip(
        2,
        "a is a map already: no softmax is asked for",
        lambda a, v, qR, kR: by_pairs(np.exp(a) / np.exp(a).sum(1, keepdims=True), v, qR, kR),
    ),
    hints=[
        "Give every tensor a dimension of size 1 where it does not vary: v[None] and kR[None] are "
        "(1, S, C), qR[:, None] is (T, 1, C).",
        "pairs = v[None] + qR[:, None] * kR[None] is (T, S, C). Weigh it with a[:, :, None] and "
        "sum over the keys.",
    ],
    level="easy",
    minutes=6,
)
def by_pairs(a, v, qR, kR, *, gate="query", turned=False, times=True, weighted=True, static=1):
    """Every pair has its own value, v_ij = v_j + qR_i * kR_j (feature by feature), and query i
    hears sum_j a_ij v_ij: a map (T, S), v and kR (S, C), qR (T, C) -> (T, C).
    """
    out = np.zeros(qR.shape)
    for i, j in np.ndindex(*a.shape):
        weight = a[j, i] if turned else a[i, j]
        opening = qR[i] if gate == "query" else qR[j]
        modifier = opening * kR[j] if times else opening + kR[j]
        out[i] += weight * static * v[j] + (weight if weighted else 1) * modifier
    return out


def no_pairs(made, a, v, qR, kR):
    """A tensor of (T, S, C) numbers is one of pairs, in whatever order."""
    pairs = a.numel() * v.shape[1]
    if any(x.size >= pairs for x in made):
        return f"you made a tensor of T S C = {pairs} numbers: the pairs are what is to be avoided"
    return ""


@unit.exercise(
    Part("gates that are shut", 1, mapped(0)),
    Part("gates that are open", 1, mapped(1)),
    Wrong(
        "a gate on both streams",
        2,
        "you gated v as well: only the second stream stands behind the gate",
        dict(both=True),
    ),
    Wrong(
        "no gate",
        2,
        "the gate qR is missing, so that the second stream always comes through whole",
        dict(gate="none"),
    ),
    Wrong("the gate before the map", 1, AT_THE_KEY, dict(gate="key")),
    Wrong(
        "the second stream stays at home",
        1,
        "you took kR of the query itself; the second stream is carried by the map, as v is: a @ kR",
        dict(carried=False),
    ),
    Wrong("a turned map", 2, TURNED, dict(turned=True)),
    slip(
        1,
        "qR and kR have changed places: kR is what the map carries, qR the gate outside",
        lambda a, v, qR, kR: a @ v + kR * (a @ qR),
    ),
    slip(
        2,
        "you gated v and not kR: the gate stands on the second stream",
        lambda a, v, qR, kR: qR * (a @ v) + a @ kR,
    ),
    slip(2, "v is missing: the two streams are added", lambda a, v, qR, kR: qR * (a @ kR)),
    slip(
        1,
        "you gated v once more; the second stream is kR",
        lambda a, v, qR, kR: a @ v + qR * (a @ v),
    ),
    slip(
        1, "you took the second stream off; it is added", lambda a, v, qR, kR: a @ v - qR * (a @ kR)
    ),
    hints=[
        "In the sum over j of a_ij (v_j + qR_i * kR_j), which factor has no j? It may stand before "
        "the sum.",
        "Two sums remain, a @ v and a @ kR, each (T, C). The gate multiplies the second.",
    ],
    level="medium",
    minutes=8,
    forbids=no_pairs,
)
def two_streams(a, v, qR, kR, *, both=False, gate="query", carried=True, turned=False):
    """The same function of a map (T, S), v and kR (S, C), qR (T, C) -> (T, C), with no tensor
    larger than (T, S) or (T, C).
    """
    out = np.zeros(qR.shape)
    for i, j in np.ndindex(*a.shape):
        weight = a[j, i] if turned else a[i, j]
        opening = {"query": qR[i], "key": qR[j], "none": 1}[gate]
        second = opening * (kR[j] if carried else kR[i])
        out[i] += weight * ((opening if both else 1) * v[j] + second)
    return out


# ---- a gate that stands still --------------------------------------------------------------------


def matrices(still):
    return lambda r: (*r.normal(size=(2, 5, 5)), np.ones(5) if still else r.normal(size=5))


@unit.exercise(
    Part("a gate of ones", 1, matrices(True)),
    Part("another gate", 1, matrices(False)),
    Wrong(
        "rows scaled",
        1,
        "you scaled the rows of W_KR; h @ W has one column a feature, and the gate has one number "
        "a feature",
        dict(scaled="rows"),
    ),
    Wrong(
        "both scaled",
        1,
        "you scaled W_V as well; the gate stands on the second stream alone",
        dict(scaled="both"),
    ),
    Wrong("the gate left out", 1, "the gate c is missing", dict(scaled="none")),
    Wrong("the second alone", 2, "W_V is missing: the two are added", dict(first=0)),
    slip(
        2,
        "c @ W_KR mixes features; the gate multiplies each column by a number of its own",
        lambda W, K, c: W + c @ K,
    ),
    slip(
        2,
        "W_KR @ c mixes features; the gate multiplies each column by a number of its own",
        lambda W, K, c: W + K @ c,
    ),
    slip(
        1,
        "you scaled W_V and not W_KR: the gate stands on the second stream",
        lambda W, K, c: W * c + K,
    ),
    slip(2, "the two matrices are added, not multiplied", lambda W, K, c: W @ K * c),
    slip(2, "you took the second matrix off; it is added", lambda W, K, c: W - K * c),
    slip(2, "you turned W_KR round: only its columns are scaled", lambda W, K, c: W + (K * c).T),
    slip(
        1,
        "every column has its own c[i]; you used the mean of all",
        lambda W, K, c: W + K * c.mean(),
    ),
    slip(
        2,
        "both matrices are turned round: a row belongs to an input, a column to a feature",
        lambda W, K, c: (W + K * c).T,
    ),
    hints=[
        "a @ (h @ W_V) + c * (a @ (h @ W_KR)): c has no index of a token, so it may move inward, "
        "up to the matrix.",
        "c * (h @ W_KR) is h @ (W_KR * c): broadcasting puts c[i] on column i.",
    ],
    level="easy",
    minutes=4,
)
def folded(W_V, W_KR, c, *, scaled="columns", first=1):
    """One value matrix (C, C) in the place of two, where every query has the same gate c (C,): with
    it, ordinary attention makes what A (h W_V) + c * (A (h W_KR)) makes.
    """
    out = np.zeros(W_V.shape)
    for i, j in np.ndindex(*W_V.shape):
        gate = {"rows": c[i], "columns": c[j], "both": c[j], "none": 1}[scaled]
        out[i, j] = first * (gate if scaled == "both" else 1) * W_V[i, j] + gate * W_KR[i, j]
    return out


# ---- how large is the model? ---------------------------------------------------------------------


def shape(layers):
    return lambda r: (
        int(r.integers(*layers)),
        64 * int(r.integers(2, 9)),
        int(r.integers(5_000, 50_000)),
        64 * int(r.integers(1, 9)),
    )


@unit.exercise(
    Part("no layer", 1, shape((0, 1))),
    Part("several layers", 1, shape((2, 13))),
    Wrong(
        "a tied head",
        2,
        "the head is not tied to the embedding here: both tables count",
        dict(tables=1),
    ),
    Wrong(
        "W_O kept",
        1,
        "there is no output matrix: five matrices a layer, W_Q, W_K, W_V, W_QR, W_KR",
        dict(matrices=6),
    ),
    Wrong(
        "three matrices",
        1,
        "the modifier brings two matrices: five a layer, W_Q, W_K, W_V, W_QR, W_KR",
        dict(matrices=3),
    ),
    Wrong(
        "the network's norm kept",
        1,
        "with the feed-forward network its norm is gone, too: one norm a layer",
        dict(norms=2),
    ),
    Wrong(
        "a norm without a shift",
        2,
        "a LayerNorm has a scale and a shift: 2 C numbers",
        dict(norm=1),
    ),
    Wrong("no last norm", 2, "one more norm stands before the head", dict(last=0)),
    Wrong("no positions", 2, "the learned positions are missing: context * C", dict(positions=0)),
    slip(
        1,
        "five matrices a layer: W_Q, W_K, W_V, W_QR, W_KR",
        lambda L, C, V, T: (2 * V + T) * C + L * (4 * C * C + 2 * C) + 2 * C,
    ),
    slip(
        1,
        "the LayerNorm of a layer has a shift, too: 2 C numbers",
        lambda L, C, V, T: (2 * V + T) * C + L * (5 * C * C + C) + 2 * C,
    ),
    slip(
        1,
        "these matrices have no biases",
        lambda L, C, V, T: (2 * V + T) * C + L * (5 * (C * C + C) + 2 * C) + 2 * C,
    ),
    slip(
        1,
        "there is no feed-forward network here: 5 C^2 a layer",
        lambda L, C, V, T: (2 * V + T) * C + L * (13 * C * C + 2 * C) + 2 * C,
    ),
    slip(
        2,
        "positions have one table: only the embedding has a second, the head",
        lambda L, C, V, T: 2 * (V + T) * C + L * (5 * C * C + 2 * C) + 2 * C,
    ),
    slip(
        2,
        "the last LayerNorm has a shift, too: 2 C numbers",
        lambda L, C, V, T: (2 * V + T) * C + L * (5 * C * C + 2 * C) + C,
    ),
    slip(
        1,
        "the LayerNorm of a layer is missing: a scale and a shift, 2 C numbers",
        lambda L, C, V, T: (2 * V + T) * C + L * 5 * C * C + 2 * C,
    ),
    slip(
        1,
        "a matrix is (C, C): C^2 numbers, not C",
        lambda L, C, V, T: (2 * V + T) * C + L * (5 * C + 2 * C) + 2 * C,
    ),
    slip(
        2,
        "the head has no bias",
        lambda L, C, V, T: (2 * V + T) * C + L * (5 * C * C + 2 * C) + 2 * C + V,
    ),
    slip(2, "wanted the number itself, not millions", lambda *sizes: dva_parameters(*sizes) / 1e6),
    hints=[
        "Three tables stand outside the layers: embedding, head and positions. And one norm.",
        "A layer has 5 C² + 2 C, everything else (2 vocab + context) C + 2 C.",
    ],
    level="medium",
    minutes=7,
)
def dva_parameters(
    layers, width, vocab, context, *, tables=2, matrices=5, norms=1, norm=2, last=1, positions=1
):
    """How many parameters has a DVA model in GPT-2's style? An embedding and a head of its own,
    (vocab, C) each; learned positions (context, C). In every layer one LayerNorm (scale and shift)
    and the matrices W_Q, W_K, W_V, W_QR, W_KR, (C, C) each, without biases; one LayerNorm more
    before the head. No feed-forward network, no W_O. C is the width.
    """
    count = tables * vocab * width + positions * context * width + last * norm * width
    for _ in range(layers):
        count += matrices * width * width + norms * norm * width
    return count
