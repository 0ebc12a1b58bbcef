"""hw02: what do deep layers lose, and what comes back with the first layer's values?"""

import numpy as np

from homework import by_index
from homework.marking import Part, Unit, Wrong, need, normals, refuse

unit = Unit(
    "hw02_resformer",
    "What comes back with the first layer's values?",
    """
    Fill in the functions, in any order, and run `pytest homework/hw02_resformer` as often as
    you like.
    Letters: B batch, T positions, H heads, D head width, C model width, L layers. A: attention
    weights, a row a query.
    Functions return new tensors, in the dtype of their inputs, and leave their inputs as they
    were.
""",
)


def causal(r, *batch, T=5, sharp=1.5):
    """Random causal attention weights (…,T,T)."""
    scores = r.normal(size=(*batch, T, T)) * sharp
    weights = np.exp(scores) * np.tril(np.ones((T, T)))
    return weights / weights.sum(-1, keepdims=True)


# ------------------------------------------------------------------------ instruments (notebook 03)


@unit.exercise(
    Part("several heads", 6, lambda r: (causal(r, 3, T=6),)),
    Part(
        "each token sees itself, or all see the first",
        4,
        [
            lambda r: (np.stack([np.eye(5)] * 2),),
            lambda r: (np.stack([np.eye(5)[[0] * 5]] * 2),),
            lambda r: (np.stack([np.eye(7)[[0] * 7]]),),
        ],
    ),
    Wrong(
        "rows, as printed",
        10,
        "you summed over the keys, as Eq 11 prints it: every row of weights sums to 1, so that is "
        "log T for any attention at all; importance is what a token RECEIVES, the sum over queries",
        dict(rows=True),
    ),
    Wrong(
        "heads apart",
        6,
        "you averaged the heads' entropies; average the heads' weights first, then take one "
        "entropy",
        dict(apart=True),
    ),
    Wrong("bits", 10, "your logarithm has base 2; the natural one is meant", dict(unit=np.log(2))),
    Wrong(
        "an entropy for every query",
        10,
        "you averaged the entropies of the queries' weights; importance is what a token "
        "receives from all queries together: one entropy, of the sums",
        dict(each=True),
    ),
    Wrong(
        "not normalised",
        10,
        "importance must sum to 1 before its entropy is taken: divide by the total",
        dict(total=False),
    ),
    Wrong("the sign", 10, "entropy is MINUS the sum of p log p", dict(sign=1)),
    Wrong("0 log 0", 4, "a token that receives nothing contributes 0, not NaN", dict(zero=np.nan)),
    hints=[
        "(H,T,T) -> mean over heads -> sum over queries -> divide by the total -> -sum p log p.",
        "Which dimension are the queries? Check with A that sends everything to the first token: "
        "the entropy must be 0.",
        "torch.xlogy(p, p) is 0 where p is 0.",
    ],
    after="Every row of weights sums to 1, so the sum over keys is the same for every token, "
    "and Eq 11 as printed gives log T for any model at any layer. The sum over queries "
    "is what a token receives, and low entropy then means that few tokens receive "
    "nearly everything. In the package: minimal/analysis.py: token_entropy.",
    level="easy",
    minutes=15,
)
def importance_entropy(
    A, *, rows=False, apart=False, unit=1.0, zero=0.0, each=False, total=True, sign=-1
):
    """Entropy (natural log, a number) of token importance under A (H,T,T): how evenly attention is
    spread over the tokens looked at.

    Average the heads; a token's importance is all the attention it receives, summed over the
    queries; normalise to sum 1.
    """

    def entropy(M):
        p = M.sum(1 if rows else 0) / (M.sum() if total else 1)
        return sign * sum(x * np.log(x) if x > 0 else zero for x in p) / unit

    if each:
        return np.float64(np.mean([entropy(row[None]) for row in A.mean(0)]))
    return np.float64(np.mean([entropy(M) for M in A]) if apart else entropy(A.mean(0)))


@unit.exercise(
    Part("noise", 4, lambda r: (r.normal(size=(6, 4)),)),
    Part(
        "noise around a common direction",
        4,
        lambda r: (r.normal(size=(5, 8)) + 2 * r.normal(size=8),),
    ),
    Wrong(
        "with itself",
        8,
        "you counted each token's similarity with itself; leave the diagonal out",
        dict(itself=True),
    ),
    Wrong(
        "not normalised",
        8,
        "those are dot products; divide by both lengths to get cosines",
        dict(norm=False),
    ),
    hints=[
        "Bring every row to length 1; then all cosines are one matrix product.",
        "There are T (T - 1) pairs: (sum of the matrix - its trace) / (T (T - 1)).",
    ],
    after="A token's cosine with itself is 1, so with the diagonal even unrelated tokens look "
    "alike, most of all in short texts. The sum of all cosines is the squared length of "
    "the sum of the unit vectors, so minimal/analysis.py: similarity needs no matrix of "
    "pairs.",
    level="easy",
    minutes=10,
)
def token_similarity(h, *, itself=False, norm=True):
    """Mean cosine of the hidden states of two different tokens: h (T,C) -> a number (Eq 13)."""
    length = [np.sqrt(row @ row) if norm else 1.0 for row in h]
    pairs = [(i, j) for i in range(len(h)) for j in range(len(h)) if itself or i != j]
    return np.float64(sum(h[i] @ h[j] / length[i] / length[j] for i, j in pairs) / len(pairs))


@unit.exercise(
    Part("many tokens", 4, lambda r: (r.normal(size=(9, 4)) + 0.5,)),
    Part("fewer tokens than dimensions", 4, lambda r: (r.normal(size=(3, 5)) + 0.5,)),
    Wrong("centred", 8, "you subtracted the mean; Eq 12 does not", dict(centre=True)),
    Wrong("ascending", 8, "largest first", dict(order=1)),
    Wrong(
        "singular values",
        8,
        "those are singular values of v; an eigenvalue of (1/T) sum v vᵀ is their square over T",
        dict(power=1),
    ),
    hints=[
        "One (D,D) matrix: v.T @ v / T. It is symmetric.",
        "torch.linalg.eigvalsh gives them smallest first.",
    ],
    after="The singular values of v, squared and divided by T, are the eigenvalues of the "
    "second moment: one solution takes them and never forms the matrix, another adds up "
    "outer products. With fewer tokens than dimensions the rest are zeros. Without "
    "centring, a direction that all tokens share counts too; minimal/analysis.py: "
    "spectrum does the same, as Eq 12 prints it.",
    level="easy",
    minutes=10,
)
def spectrum(v, *, centre=False, order=-1, power=2):
    """Eigenvalues of the second moment of the values, (1/T) sum_i v_i v_iᵀ, largest first: v (T,D)
    -> (D,) (Eq 12)."""
    v = v - v.mean(0) if centre else v
    singular = np.zeros(v.shape[1])
    found = np.linalg.svd(v, compute_uv=False)
    singular[: len(found)] = found
    return np.sort(singular**power / (len(v) if power == 2 else 1))[::order]


# ------------------------------------------------------------------------ cross-layer (notebook 04)


def two_layers(same_keys):
    def make(r):
        q, k, v, k_m, v_m = normals(r, *[(2, 5, 3)] * 5)
        return q, k, v, k.copy() if same_keys else k_m, v_m

    return make


def gold(q, k, v, k_m, v_m, blind=False, swap=False, apart=False):
    """Eq 2, index by index."""
    out = np.zeros(v.shape)
    for b in range(len(q)):
        for t in range(q.shape[1]):
            seen, far = t + 1, len(k[b]) if blind else t + 1
            scores = np.concatenate([k[b, :seen], k_m[b, :far]]) @ q[b, t] / np.sqrt(q.shape[-1])
            first, second = (v_m, v) if swap else (v, v_m)
            if apart:
                near, distant = by_index.softmax(scores[:seen]), by_index.softmax(scores[seen:])
                out[b, t] = (near @ first[b, :seen] + distant @ second[b, :far]) / 2
            else:
                out[b, t] = by_index.softmax(scores) @ np.concatenate(
                    [first[b, :seen], second[b, :far]]
                )
    return out


@unit.exercise(
    Part("both layers have the same keys (Eq 3)", 4, two_layers(True)),
    Part("two layers (Eq 2)", 8, two_layers(False)),
    Wrong(
        "two softmaxes",
        8,
        "you took one softmax for each layer and averaged; Eq 2 has one softmax over all 2 S "
        "keys, so one layer can "
        "win more than half",
        dict(apart=True),
    ),
    Wrong(
        "half a mask",
        12,
        "your mask covers layer n's keys only: the future leaks in through layer m's",
        dict(blind=True),
    ),
    Wrong("values crossed", 8, "layer n's keys met layer m's values", dict(swap=True)),
    hints=[
        "torch.cat keys and values along the positions; the scores are (B,T,2T).",
        "The mask is the causal one, twice side by side.",
        "With the same keys in both halves, your output must equal softmax(q kᵀ / sqrt(D)) (v + "
        "v_m) / 2: that is Eq 4.",
    ],
    after="One softmax over both layers' keys lets the earlier layer win more than half of "
    "the weight, or less, token by token, at twice the cost of attention. With equal "
    "keys every weight appears twice at half its size, and the result is one map on "
    "(V_n + V_m) / 2: that is how ResFormer avoids the cost. In the package: "
    "minimal/model/attention.py: Across.",
    level="medium",
    minutes=20,
)
def cross_layer(q, k, v, k_m, v_m, *, blind=False, swap=False, apart=False):
    """Causal cross-layer attention (Eq 2), one head: queries, keys, values of layer n, keys and
    values of an earlier layer m.

    All (B,T,D) -> (B,T,D). One softmax over both layers' keys; a query sees, in both, the positions
    up to its own.
    """
    return gold(q, k, v, k_m, v_m, blind, swap, apart)


def stack(L):
    return lambda r: (r.normal(size=(2, 5, 6)), *(0.3 * x for x in normals(r, *[(L, 6, 6)] * 4)))


@unit.exercise(
    Part("one layer", 3, stack(1)),
    Part("several layers", 9, stack(4)),
    Wrong("sum, not mean", 9, "you added V_1 and V_n; Eq 7 takes half of each", dict(share=1.0)),
    Wrong(
        "the layer below",
        9,
        "you mixed in the values of the layer below; ResFormer always mixes in those of the first",
        dict(below=True),
    ),
    Wrong(
        "halves the first layer",
        12,
        "your first layer is halved too; Eq 7 holds from the second layer on",
        dict(first=False),
    ),
    Wrong(
        "mixed values passed on",
        9,
        "you mixed in the already mixed values; V_1 is the first layer's own "
        "projection, kept as it was",
        dict(passed=True),
    ),
    hints=[
        "v1 = x @ wv[0], kept before the loop; in layer n >= 1: v = (v_n + v1) / 2.",
        "Layer 0 is a standard layer. (With v = (v_0 + v1) / 2 it would be one too: why?)",
    ],
    after="V_1 is the first layer's own projection, kept as it was made; in the first layer "
    "its mean with itself is V_1 again, so no solution needs a special case there. In "
    "the package it is minimal/model/pieces.py: V1_HALF, a minimal/model/values.py: "
    "Mix. README's question: ResFormer mixes before attention, so if a later layer "
    "looks at the first token only, every token receives the mixed value of that one "
    "and nothing of its own.",
    level="medium",
    minutes=20,
)
def resformer(x, wq, wk, wv, wo, *, share=0.5, below=False, first=True, passed=False):
    """A stack of ResFormer's attention layers, one head each, no norms, no MLP: x (B,T,C), four
    times (L,C,C) -> (B,T,C).

    Layer n adds A_n V W_O to its input: V = V_n in the first layer, (V_n + V_1) / 2 above it (Eq
    7); causal A_n, scale 1/sqrt(C), q = x wq, k = x wk, V_n = x wv of the layer.
    """
    early = None
    for n in range(len(wq)):
        own = x @ wv[n]
        v = share * (own + early) if n else own if first else own / 2
        if below or early is None:
            early = own
        elif passed:
            early = v
        q, k, v = ((y)[:, :, None] for y in (x @ wq[n], x @ wk[n], v))
        x = x + by_index.attention(q, k, v)[:, :, 0] @ wo[n]
    return x


# ----------------------------------------------------------------------------------- the neighbours


@unit.exercise(
    Part(
        "weights and values given",
        8,
        lambda r: (causal(r, 2), *normals(r, (2, 5, 4), (2, 5, 4)), 0.4),
    ),
    Wrong(
        "ones, as printed",
        8,
        "you subtracted lam times a matrix of ones times V, as Eq 8 prints it; the code (and "
        "NeuTRENO) subtracts lam times the token's own value: the identity",
        dict(ones=True),
    ),
    Wrong(
        "the other way round",
        8,
        "your correction has the wrong sign: it adds what the first layer has and this one "
        "lacks, V_1 - V_n",
        dict(sign=-1),
    ),
    Wrong(
        "corrected before attention",
        8,
        "you corrected the values and then attended; the correction is added to the "
        "attention's output",
        dict(inside=True),
    ),
    hints=[
        "(A - lam I) V_n + lam V_1, multiplied out, has three terms.",
        "A @ v + lam * (v1 - v).",
    ],
    after="Multiplied out, (A - lam I) V_n + lam V_1 is A V_n + lam (V_1 - V_n): a correction "
    "at each position, past the map. README's question: it still works where attention "
    "looks at nothing but the first token, because every token gets the correction of "
    "its own position. minimal/model/attention.py: NeuTRENO has the identity where Eq 8 "
    "prints ones.",
    level="easy",
    minutes=10,
)
def neutreno(A, v, v1, lam, *, ones=False, sign=1, inside=False):
    """NeuTRENO's output (A - lam I) V_n + lam V_1: A (B,T,T), v and v1 (B,T,D), lam a number ->
    (B,T,D)."""
    out = np.zeros(v.shape)
    for b in range(len(v)):
        correction = sign * lam * (v1[b] - v[b])
        for t in range(v.shape[1]):
            out[b, t] = A[b, t] @ (v[b] + correction if inside else v[b])
            out[b, t] += 0 if inside else lam * (v1[b, t] - v[b].sum(0)) if ones else correction[t]
    return out


def dense(identity):
    def make(r):
        L, C = 4, 5
        a = np.tril(r.normal(size=(L, L + 1)), 1)
        return (
            r.normal(size=(2, 3, C)),
            r.normal(size=(L, C, C)) * 0.7,
            np.eye(L, L + 1, 1) if identity else a,
        )

    return make


@unit.exercise(
    Part("weights that do nothing", 4, dense(True)),
    Part("weights that mix", 8, dense(False)),
    Wrong(
        "stores the averages",
        8,
        "you kept the averages; what is averaged later are the raw outputs of the blocks",
        dict(raw=False),
    ),
    Wrong(
        "without the embedding",
        8,
        "X_0, the input of the first block, takes part in every average",
        dict(start=1),
    ),
    Wrong(
        "the last output returned",
        8,
        "your last block's output is returned as it is; the caller, too, gets an average",
        dict(last=False),
    ),
    Wrong(
        "the average is not passed on",
        8,
        "your blocks eat the raw output of the block below; each eats the average before it",
        dict(eats="raw"),
    ),
    hints=[
        "Keep a list X = [x]. Block n: append its output, then x = sum_j a[n, j] X[j] over all of "
        "the list.",
        "With a[n, n + 1] = 1 and zeros elsewhere it must be the plain stack.",
    ],
    after="The averages are passed on, but what is averaged are the blocks' raw outputs: "
    "every later layer can still take any of them as it was. minimal/model/residual.py: "
    "DenseFormer starts with the weights of your first part, those that do nothing. "
    "README's question: it averages position by position and knows no map, so every "
    "token still gets its own earlier streams, whatever attention looks at.",
    level="medium",
    minutes=20,
)
def denseformer(x, w, a, *, raw=True, start=0, eats="average", last=True):
    """DenseFormer's depth-weighted averages around L toy blocks, block_n(x) = x + tanh(x @ w[n]): x
    (B,T,C), w (L,C,C), a (L,L+1).

    X_0 = x. After block n, X_{n+1} is its output and the next block (or the caller) gets sum_{j <=
    n+1} a[n, j] X_j.
    """
    X = [x]
    for n in range(len(w)):
        block = x + np.tanh(x @ w[n])
        X.append(block)
        average = sum(a[n, j] * X[j] for j in range(start, n + 2))
        X[-1] = block if raw else average
        x = (
            block
            if n == len(w) - 1 and not last
            else average
            if eats == "average" or n == len(w) - 1
            else block
        )
    return x


# --------------------------------------------------------------------------- predictions and errors


def entropy_of(A):
    return float(importance_entropy(A[None]))


LENGTH = 2048
MEASURED = [np.log(LENGTH), 0.0, None]


def uniform():
    """Uniform causal attention: token j receives 1/(t+1) from every t >= j."""
    p = np.cumsum((1 / np.arange(1, LENGTH + 1))[::-1])[::-1] / LENGTH
    return float(-(p * np.log(p)).sum())


def near(which, why):
    def accept(answer):
        value = uniform() if which == 2 else MEASURED[which]
        said = need(answer, itself=0, first=0, even=0)
        refuse(
            said[0] == said[1] == said[2],
            "one number three times is no prediction: the three differ",
        )
        refuse(abs(said[which] - value) > 0.2, f"more than 0.2 from what is measured: {why}")

    return accept


@unit.exercise(
    Part(
        "each token sees only itself",
        2,
        None,
        near(0, "every token receives the same; is that concentrated or spread?"),
    ),
    Part("all see only the first token", 2, None, near(1, "one token receives everything")),
    Part(
        "each spreads evenly over what it may see",
        4,
        None,
        near(2, "how often is the last token looked at, and how often the first?"),
    ),
    Wrong(
        "even is most even",
        4,
        "more than 0.2 from what is measured",
        returns=lambda: (np.log(2048), 0.0, np.log(2048)),
    ),
    Wrong(
        "self-attention is concentrated",
        2,
        "more than 0.2 from what is measured",
        returns=lambda: (0.0, 0.0, 7.2),
    ),
    Wrong("bits", 6, "more than 0.2 from what is measured", returns=lambda: (11.0, 0.0, 10.4)),
    hints=[
        "log 2048 is 7.62. Which of the three reaches it?",
        "Under even causal attention token j receives 1/(j+1) + 1/(j+2) + … + 1/T. Is that the "
        "same for all j?",
    ],
    after="If each token sees only itself, all receive the same: that is the largest entropy "
    "there is, log 2048 = 7.62, although each single row is as sharp as can be. If all "
    "see the first token it is 0. Even causal attention gives 7.20, since the first "
    "token is seen by every query and the last by one: causality alone concentrates, "
    "and minimal/analysis.py: uniform_causal_entropy is the line to compare with.",
    level="easy",
    minutes=5,
)
def predict_entropies():
    """Predict, then measure: `importance_entropy` (natural log) of 2,048 tokens of which (1) each
    sees only itself, (2) all see only the first, (3) each spreads its attention evenly over itself
    and everything before it. Three numbers; 0.2 apart counts.
    """
    return np.log(LENGTH), 0.0, uniform()


def leaks(answer):
    A, v, v2, lam = need(answer, A=2, v=2, v2=2, lam=0)
    refuse(
        A.shape != (len(v), len(v)) or v.shape != v2.shape or len(v) < 2,
        "wanted A (T,T), v and v2 (T,D) with T at least 2",
    )
    refuse(
        np.abs(np.triu(A, 1)).max() > 1e-6 or A.min() < -1e-6 or np.abs(A.sum(1) - 1).max() > 1e-3,
        "A must be causal attention: no weight above the diagonal, none negative, every row sums "
        "to 1",
    )
    refuse(
        np.abs(v[:-1] - v2[:-1]).max() > 1e-6,
        "v and v2 may differ in the LAST row only: the future",
    )
    change = (A - lam * np.ones(A.shape)) @ (v - v2)
    refuse(np.abs(change[:-1]).max() < 0.01, "no earlier row moves (by 0.01)")


@unit.exercise(
    Part("an earlier token moves", 10, None, leaks),
    Wrong(
        "attention that sees ahead",
        10,
        "A must be causal attention",
        returns=lambda: (np.full((3, 3), 1 / 3), np.eye(3), np.eye(3) + [[0], [0], [1]], 0.4),
    ),
    Wrong(
        "another first value",
        10,
        "v and v2 may differ in the LAST row only",
        returns=lambda: (np.tril(np.ones((2, 2))) / [[1], [2]], np.eye(2), np.eye(2)[::-1], 0.4),
    ),
    Wrong(
        "no correction",
        10,
        "no earlier row moves",
        returns=lambda: (np.eye(3), np.eye(3), np.eye(3) + [[0], [0], [1]], 0.0),
    ),
    hints=[
        "Multiply it out: what does row 1 of J V contain?",
        "A may be the identity. Change the last value and look at the first output.",
    ],
    after="Every row of J V is the sum of all values, the last included, so with a matrix of "
    "ones each output depends on the future. With the identity only the token's own "
    "value is subtracted: minimal/model/attention.py: NeuTRENO. A remark about results "
    "can only be about what was run, and the code runs the identity: so the remark says "
    "nothing of the printed formula.",
    level="easy",
    minutes=10,
)
def ones_counter_example():
    """Find the error. Return (A, v, v2, lam): causal attention A (T,T), values v and v2 (T,D) that
    differ in the last row only.

    The ResFormer paper writes NeuTRENO as (A - lam J) V_n + lam V_1 with "J a matrix of ones" (Eq
    8). Return a case in which that formula, with the same V_1, lets the last token change an
    earlier output by at least 0.01.
    """
    return np.eye(3), np.eye(3), np.eye(3) + [[0], [0], [1]], 0.4


@unit.exercise(
    Part("both layers have the same keys", 4, two_layers(True)),
    Part("two layers", 8, two_layers(False)),
    Wrong(
        "one at a time",
        12,
        "you fitted each coefficient alone; the two streams overlap, so they must be fitted "
        "together",
        dict(alone=True),
    ),
    Wrong(
        "shares of one",
        8,
        "you forced the two to sum to 1; nothing says they do",
        dict(sum_one=True),
    ),
    hints=[
        "X = A v and Y = A v_m, flattened, are two columns; the target is the flattened output of "
        "`cross_layer`.",
        "Two normal equations, or torch.linalg.lstsq. With equal keys you must find (0.5, 0.5): "
        "that is the proof of Eq 4.",
    ],
    after="When the keys agree, Eq 2 is exactly the mix, so least squares must find one half "
    "and one half; otherwise both numbers move, and nothing makes them sum to 1. The "
    "two streams overlap, so they are fitted together: two solutions solve the two "
    "normal equations, the third leaves them to lstsq. minimal/analysis.py: "
    "across_study asks the same of a trained model, by cosines.",
    level="stretch",
    minutes=25,
)
def best_mix(q, k, v, k_m, v_m, *, alone=False, sum_one=False):
    """Stretch: the (a, b) with which a A V_n + b A V_m comes closest (least squares, all entries)
    to cross-layer attention, Eq 2.

    Inputs as in `cross_layer`; A is layer n's own causal attention. ResFormer takes (0.5, 0.5) of
    the first layer. Returns (2,).
    """
    target = gold(q, k, v, k_m, v_m).ravel()
    X, Y = (
        by_index.attention(q[:, :, None], k[:, :, None], y[:, :, None]).ravel() for y in (v, v_m)
    )
    if alone:
        return np.array([X @ target / (X @ X), Y @ target / (Y @ Y)])
    if sum_one:
        a = (X - Y) @ (target - Y) / ((X - Y) @ (X - Y))
        return np.array([a, 1 - a])
    return np.linalg.solve([[X @ X, X @ Y], [X @ Y, Y @ Y]], [X @ target, Y @ target])
