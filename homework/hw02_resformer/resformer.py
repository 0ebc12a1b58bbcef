"""hw02 · What comes back with the first layer's values?

Fill in the functions, in any order, and run `pytest homework/hw02_resformer` as often as
you like.
Letters: B batch, T positions, H heads, D head width, C model width, L layers. A: attention
weights, a row a query.
Functions answer in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def concentration(A, lengths):
    """How concentrated is each text's attention? A (B,H,T,T), lengths (B,) whole numbers -> (B,):
    how far, in nats, the entropy of token importance lies below that of even causal attention over
    a text of the same length.

    Text b has lengths[b] tokens; what stands behind them, as queries or as keys, is padding and
    counts for nothing. Average the heads; a token's importance is all the attention it receives
    from the text's queries, as a share of the whole. Below zero: more spread out than even.
    """
    raise NotImplementedError


def token_similarity(h):
    """Are tokens alike because their text made them so? h (B,T,C) -> two numbers, mean cosines of
    hidden states: of two different tokens of one text (Eq 13, the mean over the texts), and of two
    tokens of different texts.
    """
    raise NotImplementedError


def directions(v, share):
    """How many directions do a text's values use? v (B,T,D), share a number between 0 and 1 -> two
    times (B,) whole numbers: how many of the largest eigenvalues of the second moment (1/T) sum_i
    v_i v_iᵀ (Eq 12) hold at least this share of their sum, for the values as they are, and for the
    values less their text's mean.
    """
    raise NotImplementedError


def cross_layer(q, k, v):
    """Causal attention to M layers at once (Eq 2, with any number of earlier layers), one head,
    behind a cache: queries q (B,T,D) of layer n; keys and values k, v (M,B,S,D), the last of the M
    being layer n's own -> (output (B,T,D), shares (B,T,M)).

    One softmax over the keys of all M layers. The T queries are the last T of S positions, and see,
    in every layer, the positions up to their own. shares: how much of its attention a query gives
    to each layer; they sum to 1.
    """
    raise NotImplementedError


def resformer(x, wq, wk, wv, wo, lam):
    """A stack of attention layers whose values come from all layers so far, one head each, no
    norms, no MLP: x (B,T,C), four times (L,C,C), shares lam (L,L) -> (B,T,C).

    Layer n adds A_n V W_O to its input: causal A_n, scale 1/sqrt(C), q = x wq, k = x wk, and V =
    sum_{m <= n} lam[n, m] V_m, where V_m = x wv is what layer m made of its own input. (ResFormer,
    Eq 7, has lam[n] = one half at m = 0 and one half at m = n.)
    """
    raise NotImplementedError


def neutreno(A, v, v1, lam):
    """NeuTRENO's output (A - lam I) V_n + lam V_1, with a strength for each head and behind a
    cache: A (B,H,T,S), v and v1 (B,S,H,D), lam (H,) -> (B,T,H,D). The queries are the last T of S
    positions, and I is 1 where a query meets its own position.
    """
    raise NotImplementedError


def denseformer(x, w, a, dilation, period):
    """DenseFormer's depth-weighted averages, thinned out, around L toy blocks, block_n(x) = x +
    tanh(x @ w[n]): x (B,T,C), w (L,C,C), a (L,L+1), two whole numbers.

    X_0 = x, and X_{n+1} is the output of block n. If n + 1 is a multiple of `period`, the next
    block (or the caller) gets the sum of a[n, j] X_j over j = n+1, n+1-dilation, n+1-2 dilation, …,
    as far as j is not below 0. Otherwise it gets X_{n+1}.
    """
    raise NotImplementedError


def predict_entropies():
    """Predict, then measure: the entropy of token importance (natural log, Eq 11 as it should be)
    in 2,048 tokens, if (1) everyone looks at the token before it alone, the first at itself, (2)
    everyone gives half of its weight to the first token and half to itself, (3) everyone spreads
    its weight evenly over the last 256 tokens, itself included. Three numbers; 0.2 apart counts.
    """
    raise NotImplementedError


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
    raise NotImplementedError


def best_mix(q, k, v, k_m, v_m):
    """Stretch: the (a, b) with which a A V_n + b A V_m comes closest (least squares, all entries)
    to cross-layer attention, Eq 2.

    Queries, keys and values of layer n, keys and values of layer m, all (B,T,D); A is layer n's own
    causal attention. ResFormer takes (0.5, 0.5) of the first layer. Returns (2,).
    """
    raise NotImplementedError
