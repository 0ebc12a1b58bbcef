"""hw02: what do deep layers lose, and what comes back with the first layer's values?"""

import functools

import numpy as np

from homework.by_index import causal_weights, entropy_of, softmax, units
from homework.marking import Part, Unit, drawn, need, normals, refuse

unit = Unit(
    "hw02_resformer",
    "What comes back with the first layer's values?",
    """Letters: B batch, T positions, H heads, D head width, C model width, L layers. A: attention
    weights, a row a query.""",
)


def causal(r, *batch, T=5):
    """Random causal attention weights (…,T,T)."""
    scores = r.normal(size=(*batch, T, T)) * 1.5
    weights = np.exp(scores) * np.tril(np.ones((T, T)))
    return weights / weights.sum(-1, keepdims=True)


def importance(M):
    """What each token receives, as a share of the whole."""
    return M.sum(0) / M.sum()


def even(T):
    """Everyone looks evenly at all that it may see: (T,T)."""
    return np.tril(np.ones((T, T))) / np.arange(1, T + 1)[:, None]


@drawn
def whole(r, maps):
    """Three texts of one length; `maps` makes one, or random ones are drawn."""
    A = causal(r, 3, 2, T=6) if maps is None else np.stack([np.stack([maps(6)] * 2)] * 3)
    return A, np.array([6, 6, 6])


def padded(r):
    """Three texts of several lengths; what their padding looks at means nothing."""
    A, lengths = causal(r, 3, 2, T=7), r.permutation([4, 5, 7])
    for text, length in zip(A, lengths):
        text[:, length:] = r.random((2, 7 - length, 7))
    return A, lengths


@unit.exercise(
    Part("texts of one length", 4, [whole(None), whole(lambda T: np.eye(T)[[0] * T]), whole(even)]),
    Part("texts of several lengths", 6, padded),
)
def concentration(A, lengths):
    """How concentrated is each text's attention? A (B,H,T,T), lengths (B,) whole numbers -> (B,):
    how far, in nats, the entropy of token importance lies below that of even causal attention over
    a text of the same length.

    Text b has lengths[b] tokens; what stands behind them, as queries or as keys, is padding and
    counts for nothing. Average the heads; a token's importance is all the attention it receives
    from the text's queries, as a share of the whole. Below zero: more spread out than even.
    """
    found = []
    for text, T in zip(A, lengths):
        mean = text[:, :T, :T].mean(0)
        found.append(entropy_of(importance(even(T))) - entropy_of(importance(mean)))
    return np.array(found)


unit.mistakes("""
takes: medium, 17 minutes
hint: For one text: A[b, :, :n, :n] -> mean over heads -> sum over queries -> divide by the total ->
    | -sum p log p. A loop over the texts is right.
hint: The even map of length n has the rows 1, 1/2 1/2, 1/3 1/3 1/3, …; measure it likewise.
hint: torch.xlogy(p, p) is 0 where p is 0.
after: Every row of weights sums to 1, so the sum over keys is the same for every token, and Eq 11
    | as printed gives log T for any model at any layer; the sum over queries is what a token
    | receives. Causality alone concentrates, and more so in short texts, so an entropy says
    | something only beside that of the even map of the same length, which is minimal/analysis.py:
    | uniform_causal_entropy. Padding would look like tokens that nobody looks at.
in: importance, entropy_of, even
10 | you summed over the keys, as Eq 11 prints it: every row of weights sums to 1, so that is log T
   | for any attention at all; importance is what a token RECEIVES, the sum over queries
     M.sum(0) => M.sum(1)
10 | you averaged the heads' entropies; average the heads' weights first, then take one entropy
     entropy_of(importance(mean)) => np.mean([entropy_of(importance(M)) for M in text[:, :T, :T]])
10 | your logarithm has base 2; the natural one is meant
     np.log(x) => np.log2(x)
10 | you averaged the entropies of the queries' weights; importance is what a token receives from
   | all queries together: one entropy, of the sums
     entropy_of(importance(mean)) => np.mean([entropy_of(row) for row in mean])
10 | importance must sum to 1 before its entropy is taken: divide by the total
     / M.sum() =>
 4 | a token that receives nothing contributes 0, not NaN
     else 0.0 => else np.nan
10 | that is the entropy; wanted how far it lies BELOW that of even causal attention
     entropy_of(importance(even(T))) => 0
10 | you compared with log T; causality alone lies below it, so compare with the map in which every
   | token looks evenly at all that it may see
     entropy_of(importance(even(T))) => np.log(T)
10 | yours is negative where attention is concentrated: even minus measured is wanted
     np.array(found) => -np.array(found)
 6 | you counted padding: text b and its even map end at lengths[b], queries as well as keys
     zip(A, lengths) => zip(A, [A.shape[-1]] * len(A))
 6 | padding counts for nothing: both entropies are taken over the text's own tokens
     text[:, :T, :T].mean(0) => text.mean(0)
10 | a share is what a token receives over the sum of all; no softmax
     M.sum(0) / M.sum() => np.exp(M.sum(0)) / np.exp(M.sum(0)).sum()
10 | average the heads; you took the first
     text[:, :T, :T].mean(0) => text[0, :T, :T]
10 | even attention gives query t the weight 1 / (t + 1) on each key: its rows sum to 1
     / np.arange(1, T + 1)[:, None] =>
10 | an entropy is a sum over tokens, not their mean
     np.array(found) => np.array(found) / lengths
10 | that is the entropy of each query's weights; wanted that of what tokens RECEIVE
     entropy_of(importance(mean)) => np.mean([entropy_of(row) for row in mean])
     and: entropy_of(importance(even(T))) => np.mean([entropy_of(row) for row in even(T)])
""")


@drawn
def texts_around(r, common, own):
    """Three texts: noise, a direction of all texts, and one of each text."""
    noise, all_of_them, each = normals(r, (3, 5, 8), (8,), (3, 1, 8))
    return (noise + common * all_of_them + own * each,)


@unit.exercise(
    Part("noise", 4, texts_around(0, 0)),
    Part("noise around common directions", 4, texts_around(1, 1)),
)
def token_similarity(h):
    """Are tokens alike because their text made them so? h (B,T,C) -> two numbers, mean cosines of
    hidden states: of two different tokens of one text (Eq 13, the mean over the texts), and of two
    tokens of different texts.
    """
    (B, T, _), unit = h.shape, units(h)
    within, between = [], []
    for b, c, t, s in np.ndindex(B, B, T, T):
        if b == c and t != s:
            within.append(unit[b, t] @ unit[b, s])
        if b != c:
            between.append(unit[b, t] @ unit[c, s])
    return np.mean(within), np.mean(between)


unit.mistakes("""
takes: medium, 11 minutes
hint: Bring every token to length 1; then all cosines are one matrix product of (B T, C), and which
    | pairs count is a mask.
hint: Without pairs: with u_b the sum of text b's unit vectors, |u_b|² - T is what its own pairs
    | give; |sum_b u_b|² less all |u_b|² is what the pairs across give.
after: A token's cosine with itself is 1, so with the diagonal even unrelated tokens look alike,
    | most of all in short texts. Where the second number is nearly as large as the first, tokens
    | are alike because of a vector that all texts share, and no text has made its own tokens alike.
    | Both come from sums of unit vectors, so minimal/analysis.py: similarity needs no matrix of
    | pairs.
8 | you counted each token's similarity with itself; leave the diagonal out
    if b == c and t != s => if b == c
8 | those are dot products; divide by both lengths to get cosines
    units(h) => h
8 | your second number holds pairs of one text, too; its pairs are tokens of different texts
    if b != c => if b != c or t != s
8 | your second number compares equal places only; any token of a text meets any of another
    if b != c => if b != c and t == s
8 | your second number is the cosine of the texts' mean vectors; wanted the mean of the cosines
    np.mean(between) => ((units(unit.mean(1)).sum(0) ** 2).sum() - B) / (B * (B - 1))
8 | the tokens of a text were centred; take them as they are
    => token_similarity(h - h.mean(1, keepdims=True))
8 | two texts have T * T pairs: tokens at the same place in both are one of them
    np.mean(between) => np.mean(between) * T / (T - 1)
8 | B texts make B (B - 1) pairs of different texts; you divided by B * B
    np.mean(between) => np.mean(between) * (B - 1) / B
8 | your second mean holds the tokens of one text, too
    if b != c => if True
8 | the second number is the mean over two texts itself, not what the first has over it
    np.mean(between) => np.mean(within) - np.mean(between)
8 | a number for each text stands first in yours; wanted their mean
    np.mean(within) => np.mean(np.reshape(within, (B, -1)), 1)
8 | those are dot products; bring every token to length 1 first
    units(h) => h
    and: np.mean(within) => np.mean(((unit.sum(1) ** 2).sum(-1) - T) / (T * (T - 1)))
""")


@drawn
def decaying(r, T, D):
    """Values whose directions weigh ever less, around a vector that all tokens share."""
    texts = []
    for rate in r.permutation([0.55, 0.7, 0.85]):
        noise = r.normal(size=(T, min(T - 1, D)))
        U = np.linalg.qr(noise - noise.mean(0))[0]  # orthonormal, and of mean zero
        V = np.linalg.qr(r.normal(size=(D, D)))[0][: U.shape[1]]
        texts.append(U * rate ** np.arange(U.shape[1]) @ V + r.normal(size=D) / np.sqrt(D))
    return np.stack(texts), 0.9


@unit.exercise(
    Part("many tokens", 4, decaying(12, 8)), Part("fewer tokens than dimensions", 4, decaying(7, 9))
)
def directions(v, share):
    """How many directions do a text's values use? v (B,T,D), share a number between 0 and 1 -> two
    times (B,) whole numbers: how many of the largest eigenvalues of the second moment (1/T) sum_i
    v_i v_iᵀ (Eq 12) hold at least this share of their sum, for the values as they are, and for the
    values less their text's mean.
    """
    found = np.zeros((2, len(v)), int)
    for centred, b in np.ndindex(2, len(v)):
        values = v[b] - centred * v[b].mean(0)
        sizes = np.linalg.svd(values.T @ values, compute_uv=False)  # the eigenvalues
        found[centred, b] = (np.cumsum(sizes) / sizes.sum() < share).sum() + 1
    return tuple(found)


unit.mistakes("""
takes: medium, 12 minutes
hint: For each text one (D,D) matrix, v.mT @ v / T; torch.linalg.eigvalsh gives its eigenvalues, the
    | smallest first.
hint: Running shares: the cumulative sum, largest first, over the whole sum. How many of them lie
    | below `share`? And one more.
after: The singular values of v, squared and divided by T, are the eigenvalues of the second moment:
    | one solution takes them and never forms the matrix, another adds up outer products. A vector
    | that all tokens share is one direction with a large share, so without it more directions are
    | needed for the same share of what is left. minimal/analysis.py: spectrum gives the
    | eigenvalues, not centred, as Eq 12 prints it.
8 | your second number is the first again; there the text's mean value is taken off first
    - centred * v[b].mean(0) =>
8 | you took the mean off in both numbers; Eq 12 does not centre, so the first one does not
    centred * v[b] => v[b]
8 | you added up from the smallest eigenvalue on; the largest come first
    np.cumsum(sizes) => np.cumsum(sizes[::-1])
8 | those are shares of singular values of v; an eigenvalue of the second moment is their square
    np.cumsum(sizes) / sizes.sum() => np.cumsum(np.sqrt(sizes)) / np.sqrt(sizes).sum()
8 | that many directions do not yet hold the share; one more is needed
    + 1 =>
8 | the mean is that of a text's tokens, one for each feature; you took it over the features
    v[b].mean(0) => v[b].mean(1, keepdims=True)
8 | every text has a mean of its own; yours is that of all texts
    v[b].mean(0) => v.mean((0, 1))
8 | how many hold the share TOGETHER; you counted those that hold it alone
    (np.cumsum(sizes) / sizes.sum() < share).sum() + 1 => (sizes / sizes.sum() >= share).sum()
8 | count the directions up to the share, not those behind it
    < share).sum() + 1 => > share).sum()
    < share).sum() + 1 => > share).sum() - max(0, v.shape[2] - v.shape[1])
""")


@drawn
def two_layers(r, same_keys):
    q, k, v, k_m, v_m = normals(r, *[(2, 5, 3)] * 5)
    return q, k, v, k.copy() if same_keys else k_m, v_m


@drawn
def many_layers(r, T, S, same_keys):
    """Queries, and keys and values of four layers, the last of them the queries' own."""
    q, k, v = normals(r, (2, T, 5), (4, 2, S, 5), (4, 2, S, 5))
    return q, k[[0, 0, 0, 0]] if same_keys else k, v


def maps(q, k):
    """The causal attention weights of every text."""
    return np.stack([causal_weights(*text) for text in zip(q, k, strict=True)])


@unit.exercise(
    Part("all layers have the same keys (Eq 3)", 4, many_layers(6, 6, True)),
    Part("four layers, behind a cache (Eq 2)", 8, many_layers(3, 7, False)),
)
def cross_layer(q, k, v):
    """Causal attention to M layers at once (Eq 2, with any number of earlier layers), one head,
    behind a cache: queries q (B,T,D) of layer n; keys and values k, v (M,B,S,D), the last of the M
    being layer n's own -> (output (B,T,D), shares (B,T,M)).

    One softmax over the keys of all M layers. The T queries are the last T of S positions, and see,
    in every layer, the positions up to their own. shares: how much of its attention a query gives
    to each layer; they sum to 1.
    """
    (B, T, D), (M, _, S, _) = q.shape, k.shape
    out, won = np.zeros(q.shape), np.zeros((B, T, M))
    for b, t in np.ndindex(B, T):
        scores = k[:, b] @ q[b, t] / np.sqrt(D)
        scores[:, t + S - T + 1 :] = -np.inf
        a = softmax(scores.ravel()).reshape(M, S)
        won[b, t] = a.sum(1)
        out[b, t] = sum(a[m] @ v[m, b] for m in range(M))
    return out, won


unit.mistakes(r"""
takes: medium, 14 minutes
hint: The scores are (M,B,T,S), and the causal mask (T,S) is the same for every layer. Over which
    | two of these dimensions does the softmax run?
hint: Bring M next to S and flatten the two: (B,T,M S), softmax, and unflatten again. The sum over S
    | is what a layer won; the sum over M and S with the values is what is read.
hint: With the same keys in all layers each share must be 1/M, and the output that of one map on the
    | mean of the values: that is Eq 4.
after: One softmax over all layers' keys lets a layer win more than its even share, or less, token
    | by token, at M times the cost of attention; that is what the second result measures. With
    | equal keys every weight appears M times at an M-th of its size, and the result is one map on
    | the mean of the values: with two layers this is how ResFormer avoids the cost. In the package:
    | minimal/model/attention.py: Across.
12 | that is notebook 04's attention to two layers, this one and the first; here one softmax runs
   | over the keys of all M layers
     a = softmax => scores[1:-1] = -np.inf\n    a = softmax
 8 | you took one softmax for each layer and averaged; Eq 2 has one softmax over the keys of all
   | layers, so one layer can win more than its even share
     softmax(scores.ravel()).reshape(M, S) => softmax(scores) / M
12 | your mask covers the keys of the last layer only: the future leaks in through the others
     scores[:, t => scores[-1, t
 8 | that is notebook 04's mask, with as many queries as keys; here the queries are the LAST
   | positions: query t sees keys up to t + S - T, in every layer
     t + S - T + 1 => t + 1
 8 | a layer's keys met another layer's values
     v[m, b] => v[M - 1 - m, b]
12 | your scores are not divided by sqrt(D)
     / np.sqrt(D) =>
12 | sqrt(D) divides the scores, whatever the number of layers
     np.sqrt(D) => np.sqrt(D * M)
12 | your queries also see the keys after them
     scores[:, t + S - T + 1 :] = -np.inf => pass
12 | the output mixes the values of ALL layers; yours are layer n's alone
     v[m, b] => v[-1, b]
 8 | every layer's values are weighed by its OWN keys' weights; you took a mean of values
     sum(a[m] @ v[m, b] for m in range(M)) => softmax(scores[-1]) @ v.mean(0)[b]
""")


@drawn
def stack(r, shares):
    """A text, the matrices of four layers, and what `shares` (rng, layers) says of their values."""
    matrices = [0.3 * x for x in normals(r, *[(4, 6, 6)] * 4)]
    return r.normal(size=(2, 5, 6)), *matrices, shares(r, 4)


def in_some(r, L):
    """ResFormer's mean in every second layer, the own value in the others."""
    lam = np.eye(L)
    lam[1::2] /= 2
    lam[1::2, 0] += 0.5
    return lam


@unit.exercise(
    Part("the mean in some layers", 4, stack(in_some)),
    Part(
        "every layer mixes all before it", 8, stack(lambda r, L: np.tril(r.uniform(0.2, 1, (L, L))))
    ),
)
def resformer(x, wq, wk, wv, wo, lam):
    """A stack of attention layers whose values come from all layers so far, one head each, no
    norms, no MLP: x (B,T,C), four times (L,C,C), shares lam (L,L) -> (B,T,C).

    Layer n adds A_n V W_O to its input: causal A_n, scale 1/sqrt(C), q = x wq, k = x wk, and V =
    sum_{m <= n} lam[n, m] V_m, where V_m = x wv is what layer m made of its own input. (ResFormer,
    Eq 7, has lam[n] = one half at m = 0 and one half at m = n.)
    """
    made = []
    for n in range(len(wq)):
        made.append(x @ wv[n])
        v = sum(lam[n, m] * made[m] for m in range(n + 1))
        x = x + maps(x @ wq[n], x @ wk[n]) @ v @ wo[n]
    return x


unit.mistakes(r"""
takes: medium, 17 minutes
hint: Keep a list of the layers' own projections, V_1 to V_n, each appended before it is mixed.
hint: In layer n: v is the sum of lam[n, m] times entry m of the list, over all that is in it. What
    | is above lam's diagonal does not exist yet.
hint: With ones on the diagonal you have a standard stack, with ones in the first column SVFormer.
after: One matrix of shares holds the whole family: the diagonal alone is a standard transformer,
    | the first column SVFormer, a half of each from the second row on ResFormer, and the paper's
    | sparse and dense forms lie between. What is carried are the own projections, each made from
    | the stream of its layer and kept as it was. In the package a mixture of two is
    | minimal/model/values.py: Mix. README's question: values are mixed before attention, so if a
    | later layer looks at the first token only, every token receives the mixed value of that one
    | and nothing of its own.
in: maps, causal_weights
12 | that is notebook 04's line, the mean of V_n and V_1 in every layer above the first; here row n
   | of lam says what layer n mixes
     sum(lam[n, m] * made[m] for m in range(n + 1)) => (made[0] + made[n]) / 2
12 | that is a standard stack, each layer with its own values; row n of lam says what layer n mixes
     sum(lam[n, m] * made[m] for m in range(n + 1)) => made[n]
12 | you read lam by columns; row n belongs to layer n, and its entry m to the values of layer m
     lam[n, m] => lam[m, n]
12 | you made the earlier layers' values anew, from layer n's stream; V_m was made in layer m, from
   | the stream that stood there: keep it
     made[m] for => x @ wv[m] for
 8 | you mixed values that were mixed already; keep each layer's own projection, as it was made
     x = x + => made[n] = v\n    x = x +
 8 | you divided by the sum of the row; shares are used as they were learned, whatever their sum
     lam[n, m] => lam[n, m] / lam[n, : n + 1].sum()
12 | a layer ADDS to its input
     x = x + => x =
12 | every layer has a value matrix of its own
     x @ wv[n] => x @ wv[0]
12 | V_m is made by layer m's OWN matrix; you mixed the streams first
     x @ wv[n] => x
     and: for m in range(n + 1)) => for m in range(n + 1)) @ wv[n]
12 | your scores are not divided by sqrt(C)
     / np.sqrt(D) =>
12 | your queries also see the keys after them
     scores[t, t + S - T + 1 :] = -np.inf => pass
12 | your softmax runs over the queries; the weights of a query sum to 1
     softmax(scores) => softmax(scores, 0)
12 | lam[n, m] belongs to layer m, counted from the first; yours counts from layer n down
     lam[n, m] => lam[n, n - m]
""")


@drawn
def behind_a_cache(r, T, S):
    A = causal(r, 2, 3, T=S)[:, :, S - T :]
    return A, *normals(r, (2, S, 3, 4), (2, S, 3, 4)), r.permutation([0.2, 0.4, 0.7])


@unit.exercise(
    Part("as many queries as keys", 4, behind_a_cache(5, 5)),
    Part("behind a cache", 4, behind_a_cache(2, 6)),
)
def neutreno(A, v, v1, lam):
    """NeuTRENO's output (A - lam I) V_n + lam V_1, with a strength for each head and behind a
    cache: A (B,H,T,S), v and v1 (B,S,H,D), lam (H,) -> (B,T,H,D). The queries are the last T of S
    positions, and I is 1 where a query meets its own position.
    """
    B, H, T, S = A.shape
    out = np.zeros((B, T, H, v.shape[-1]))
    for b, h, t in np.ndindex(B, H, T):
        at = t + S - T
        out[b, t, h] = A[b, h, t] @ v[b, :, h] + lam[h] * (v1[b, at, h] - v[b, at, h])
    return out


unit.mistakes("""
takes: medium, 9 minutes
hint: (A - lam I) V_n + lam V_1, multiplied out, has three terms. Which has a row a query already?
hint: The identity of T queries among S keys has its ones at (t, t + S - T): it picks the last T
    | rows of the values. lam[:, None] fits (B,T,H,D).
after: Multiplied out, (A - lam I) V_n + lam V_1 is A V_n + lam (V_1 - V_n): a correction at each
    | query's own position, past the map, so behind a cache it takes the last T rows. README's
    | question: it still works where attention looks at nothing but the first token, because every
    | token gets the correction of its own position. minimal/model/attention.py: NeuTRENO has the
    | identity where Eq 8 prints ones.
8 | you subtracted lam times a matrix of ones times V, as Eq 8 prints it; the code (and NeuTRENO)
  | subtracts lam times the token's own value: the identity
    - v[b, at, h] => - v[b, :, h].sum(0)
8 | your correction has the wrong sign: it adds what only the first layer has, V_1 - V_n
    + lam[h] => - lam[h]
8 | you corrected the values and then attended; the correction is added to the attention's output
    @ v[b, :, h] => @ (v[b, :, h] + lam[h] * (v1 - v)[b, :, h])
    and: + lam[h] * (v1[b, at, h] - v[b, at, h]) =>
4 | you corrected query t with the values of position t; of the LAST T it stands at t + S - T
    t + S - T => t
8 | you gave every head the strength of head 0; head h has lam[h]
    lam[h] => lam[0]
8 | you added lam V_1 and forgot to take lam V_n away
    - v[b, at, h] =>
8 | your heads share the mean of lam; every head has its own
    lam[h] => lam.mean()
8 | you took lam times the OUTPUT away; (A - lam I) V_n takes lam V_n
    - v[b, at, h] => - A[b, h, t] @ v[b, :, h]
""")


@drawn
def dense(r, L, dilation, period):
    a = np.tril(r.normal(size=(L, L + 1)), 1)
    return r.normal(size=(2, 3, 5)), r.normal(size=(L, 5, 5)) * 0.7, a, dilation, period


@unit.exercise(
    Part("an average after every block", 4, [dense(4, 2, 1), dense(5, 3, 1)]),
    Part("an average now and then", 8, [dense(6, 2, 3), dense(5, 3, 2), dense(6, 1, 2)]),
)
def denseformer(x, w, a, dilation, period):
    """DenseFormer's depth-weighted averages, thinned out, around L toy blocks, block_n(x) = x +
    tanh(x @ w[n]): x (B,T,C), w (L,C,C), a (L,L+1), two whole numbers.

    X_0 = x, and X_{n+1} is the output of block n. If n + 1 is a multiple of `period`, the next
    block (or the caller) gets the sum of a[n, j] X_j over j = n+1, n+1-dilation, n+1-2 dilation, …,
    as far as j is not below 0. Otherwise it gets X_{n+1}.
    """
    X = [x]
    for n in range(len(w)):
        x = x + np.tanh(x @ w[n])
        X.append(x)
        if (n + 1) % period == 0:
            x = sum(a[n, j] * X[j] for j in range(n + 1, -1, -dilation))
    return x


unit.mistakes("""
takes: medium, 15 minutes
hint: Keep a list X = [x]. Block n: append its output, the next x unless an average is due.
hint: Due is one after block n if (n + 1) % period == 0. It takes X_{n+1}, X_{n+1-dilation},
    | X_{n+1-2 dilation}, and so on, down to X_0 or the last that is above it.
hint: X[j] with j in range(n + 1, -1, -dilation); the weights are a[n, j].
after: The averages are passed on, but what is averaged are the blocks' raw outputs: every later
    | layer can still take any of them as it was. Each average reads one stream for every entry, so
    | the paper's authors thin them out in depth (dilation) and in number (period).
    | minimal/model/residual.py: DenseFormer has both at 1, and starts with weights that take the
    | newest output alone. README's question: it averages position by position and knows no map, so
    | every token still gets its own earlier streams, whatever attention looks at.
12 | that is notebook 04's DenseFormer: an average of everything, after every block. Here only every
   | `dilation`-th output enters one, and one follows only every `period`-th block
     X = [x] => X, dilation, period = [x], 1, 1
12 | you took the outputs 0, dilation, 2 dilation, …; they are counted back from the newest
     range(n + 1, -1, -dilation) => range(0, n + 2, dilation)
 8 | you averaged after blocks 0, period, …; an average follows once `period` blocks have run, so
   | first after block period - 1
     (n + 1) % period => n % period
12 | you kept the averages; what is averaged later are the raw outputs of the blocks
     x = sum( => X[-1] = x = sum(
12 | X_0, the input of the first block, takes part where its turn comes
     range(n + 1, -1, => range(n + 1, 0,
12 | your blocks eat the raw output of the block below; after an average the next one eats that
     x = x + np.tanh(x @ w[n]) => x = X[-1] + np.tanh(X[-1] @ w[n])
12 | j begins at n + 1, the output of block n itself
     range(n + 1, => range(n,
12 | the average takes the stream's place; it is not added to it
     x = sum( => x = x + sum(
12 | a block adds to its input: x + tanh(x @ w[n])
     x = x + np.tanh => x = np.tanh
12 | the caller gets the last average, too, where one is due
     return x => return X[-1]
12 | the weights a are taken as they are; they need not sum to 1
     a[n, j] => a[n, j] / a[n, n + 1 :: -dilation].sum()
""")


LENGTH, WINDOW = 2048, 256


@functools.cache
def entropy_received(which):
    """Measured: the entropy of what 2,048 tokens receive, in each of three maps."""
    received = np.ones(LENGTH)
    if which == 0:  # everyone looks at the token before, the first at itself
        received[0], received[-1] = 2, 0
    elif which == 1:  # half of every row on the first token, half on itself
        received *= 0.5
        received[0] += 0.5 * LENGTH
    else:  # evenly over the last 256
        received[:] = 0
        for t in range(LENGTH):
            start = max(0, t + 1 - WINDOW)
            received[start : t + 1] += 1 / (t + 1 - start)
    return float(entropy_of(received / received.sum()))


@drawn
def near(answer, which):
    said = need(answer, before=0, sink=0, window=0)
    equal = said[0] == said[1] == said[2]
    refuse(equal, "one number three times is no prediction: the three differ")
    refuse(abs(said[which] - entropy_received(which)) > 0.2)


@unit.exercise(
    Part("everyone looks at the token before", 2, None, near(0)),
    Part("half on the first token, half on itself", 2, None, near(1)),
    Part("evenly over the last 256", 4, None, near(2)),
)
def predict_entropies():
    """Predict, then measure: the entropy of token importance (natural log, Eq 11 as it should be)
    in 2,048 tokens, if (1) everyone looks at the token before it alone, the first at itself, (2)
    everyone gives half of its weight to the first token and half to itself, (3) everyone spreads
    its weight evenly over the last 256 tokens, itself included. Three numbers; 0.2 apart counts.
    """
    return tuple(entropy_received(which) for which in range(3))


unit.mistakes("""
takes: medium, 9 minutes
off for everyone looks at the token before: more than 0.2 from what is measured: how often is each
    | token looked at? Importance does not ask how sharp a row is
off for half on the first token, half on itself: more than 0.2 from what is measured: half of
    | everything lies on one token, the other half on all of them evenly
off for evenly over the last 256: more than 0.2 from what is measured: a query looks at 256 tokens;
    | how many queries look at a token?
hint: log 2048 is 7.62: every token receives the same. In which of the three maps is that nearly so?
hint: Half of the weight on one token, half over 2,048: the entropy is log 2 plus half of log 2048.
after: Looking at the token before, every token but two is looked at once: the entropy is log 2048 =
    | 7.62 again, although each single row is as sharp as can be. With half of all weight on one
    | token it is 4.50. A window of 256 gives 7.56 and not log 256 = 5.55: each query looks at few,
    | but each token is looked at by as many as any other. So importance does not see how far a head
    | looks; minimal/analysis.py: importance sums the columns.
4 | more than 0.2 from what is measured
    => (7.62, 4.5, np.log(256))
8 | more than 0.2 from what is measured
    => (0.0, np.log(2), np.log(256))
    => (11.0, 6.5, 10.9)
""")


LAST = np.array([[0], [0], [1]])  # added to the future alone


def one_of_five(which, A, v, lam):
    """The five outputs, less what V_1 adds to them: it is the same for both cases."""
    steps = np.arange(1, len(v) + 1)[:, None]
    return (
        A @ v / 2,
        A @ v - lam * v,
        (A - lam * np.ones(A.shape)) @ v,
        A @ (v - lam * np.cumsum(v, 0) / steps),
        (A - lam * A @ A) @ v,
    )[which - 1]


def leaks(answer):
    which, A, v, v2, lam = need(answer, which=0, A=2, v=2, v2=2, lam=0)
    refuse(which not in (1, 2, 3, 4, 5), "the first thing is the number of a formula, 1 to 5")
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
    change = one_of_five(int(which), A, v, lam) - one_of_five(int(which), A, v2, lam)
    refuse(
        not np.abs(change[:-1]).max() >= 0.01,
        "in the formula that you name no earlier row moves (by 0.01)",
    )


@unit.exercise(Part("an earlier token moves", 10, None, leaks))
def formula_counter_example():
    """Find the error. Five outputs of a layer, with causal attention A (T,T), values V_n and V_1
    (T,D), lam a number, J a matrix of ones, M the running mean (row t is the mean of rows 0 to t):

    1: A (V_n + V_1) / 2
    2: A V_n + lam (V_1 - V_n)
    3: (A - lam J) V_n + lam V_1
    4: A (V_n - lam M V_n) + lam V_1
    5: (A - lam A A) V_n + lam V_1

    One of them stands in a paper, and lets the last token change an earlier output. Return (which,
    A, v, v2, lam): its number, and a case: values v and v2 (T,D) that differ in the last row only,
    and with which, V_1 being the same, an earlier row of that formula moves by at least 0.01.
    """
    return 3, np.eye(3), np.eye(3), np.eye(3) + LAST, 0.4


unit.mistakes("""
takes: medium, 12 minutes
hint: Write each formula as a matrix times V_n. An output hears the future where that matrix has
    | something above its diagonal.
hint: The product of two lower triangular matrices is lower triangular, and a running mean is one of
    | them. A may be the identity: change the last value and look at the first output.
after: Every row of J V is the sum of all values, the last included, so formula 3, which is Eq 8 of
    | the ResFormer paper, lets each output depend on the future. The running mean and A A are lower
    | triangular, as A is, and hear nothing of it. The paper's code runs formula 2, with the
    | identity: minimal/model/attention.py: NeuTRENO. So the paper's remark about results can only
    | be about formula 2, and says nothing of the printed one.
10 | A must be causal attention
     => (3, np.full((3, 3), 1 / 3), np.eye(3), np.eye(3) + LAST, 0.4)
10 | v and v2 may differ in the LAST row only
     => (3, np.tril(np.ones((2, 2))) / [[1], [2]], np.eye(2), np.eye(2)[::-1], 0.4)
10 | in the formula that you name no earlier row moves
     => (3, np.eye(3), np.eye(3), np.eye(3) + LAST, 0.0)
     => (5, even(3), np.eye(3), np.eye(3) + LAST, 0.4)
""")


def shared(x):
    return x / x.sum()


def of_sum_one(q, k, v, k_m, v_m):
    """The fit whose two coefficients must sum to 1: a mistake."""
    X, Y = (maps(q, k) @ x for x in (v, v_m))
    target = cross_layer(q, np.stack([k_m, k]), np.stack([v_m, v]))[0]
    a = ((X - Y) * (target - Y)).sum() / ((X - Y) ** 2).sum()
    return np.array([a, 1 - a])


@unit.exercise(
    Part("both layers have the same keys", 4, two_layers(True)),
    Part("two layers", 8, two_layers(False)),
)
def best_mix(q, k, v, k_m, v_m):
    """Stretch: the (a, b) with which a A V_n + b A V_m comes closest (least squares, all entries)
    to cross-layer attention, Eq 2.

    Queries, keys and values of layer n, keys and values of layer m, all (B,T,D); A is layer n's own
    causal attention. ResFormer takes (0.5, 0.5) of the first layer. Returns (2,).
    """
    A = maps(q, k)
    X, Y = (A @ v).ravel(), (A @ v_m).ravel()
    target = cross_layer(q, np.stack([k_m, k]), np.stack([v_m, v]))[0].ravel()
    return np.linalg.solve([[X @ X, X @ Y], [X @ Y, Y @ Y]], [X @ target, Y @ target])


unit.mistakes("""
takes: stretch, 19 minutes
hint: X = A v and Y = A v_m, flattened, are two columns; the target is the flattened output of
    | `cross_layer` for these two layers.
hint: Two normal equations, or torch.linalg.lstsq. With equal keys you must find (0.5, 0.5): that is
    | the proof of Eq 4.
after: When the keys agree, Eq 2 is exactly the mix, so least squares must find one half and one
    | half; otherwise both numbers move, and nothing makes them sum to 1. The two streams overlap,
    | so they are fitted together: two solutions solve the two normal equations, the third leaves
    | them to lstsq. notebooks/evidence/lab/studies.py: across_study asks the same of a trained
    | model, by cosines.
in: maps, causal_weights, cross_layer
12 | you fitted each coefficient alone; the two streams overlap, so they must be fitted together
     [X @ X, X @ Y], [X @ Y, Y @ Y] => [X @ X, 0], [0, Y @ Y]
 8 | you forced the two to sum to 1; nothing says they do
     => of_sum_one(q, k, v, k_m, v_m)
 8 | V_m stands under layer n's OWN map A, not under that of layer m's keys
     (A @ v_m) => (maps(q, k_m) @ v_m)
 8 | least squares asks for no sum of 1
     => shared(best_mix(q, k, v, k_m, v_m))
12 | the columns are A V_n and A V_m; you fitted the values before they are mixed
     (A @ v).ravel(), (A @ v_m).ravel() => v.ravel(), v_m.ravel()
 8 | in Eq 2 the keys of layer m are its own; you took layer n's twice
     [k_m, k] => [k, k]
12 | Eq 2 is ONE softmax over both layers' keys, not a sum of two attentions
     cross_layer(q, np.stack([k_m, k]), np.stack([v_m, v]))[0] => (A @ v + maps(q, k_m) @ v_m)
 8 | Eq 2 is ONE softmax over both layers' keys, not a mean of two attentions
     cross_layer(q, np.stack([k_m, k]), np.stack([v_m, v]))[0] => ((A @ v + maps(q, k_m) @ v_m) / 2)
 8 | your scores are not divided by sqrt(D)
     => best_mix(q * np.sqrt(q.shape[-1]), k, v, k_m, v_m)
 8 | all ENTRIES count, not their sums over the features
     (A @ v).ravel() => (A @ v).sum(-1).ravel()
     and: (A @ v_m).ravel() => (A @ v_m).sum(-1).ravel()
     and: [0].ravel() => [0].sum(-1).ravel()
 8 | your queries also see the keys after them
     scores[t, t + S - T + 1 :] = -np.inf => pass
     and: scores[:, t + S - T + 1 :] = -np.inf => pass
""")
