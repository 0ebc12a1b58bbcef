"""hw02 · What comes back with the first layer's values?

Fill in the functions, in any order, and run `pytest homework/hw02_resformer` as often as
you like.
Letters: B batch, T positions, H heads, D head width, C model width, L layers. A: attention
weights, a row a query.
Functions return new tensors, in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def importance_entropy(A):
    """Entropy (natural log, a number) of token importance under A (H,T,T): how evenly attention is
    spread over the tokens looked at.

    Average the heads; a token's importance is all the attention it receives, summed over the
    queries; normalise to sum 1.
    """
    raise NotImplementedError


def token_similarity(h):
    """Mean cosine of the hidden states of two different tokens: h (T,C) -> a number (Eq 13)."""
    raise NotImplementedError


def spectrum(v):
    """Eigenvalues of the second moment of the values, (1/T) sum_i v_i v_iᵀ, largest first: v (T,D)
    -> (D,) (Eq 12).
    """
    raise NotImplementedError


def cross_layer(q, k, v, k_m, v_m):
    """Causal cross-layer attention (Eq 2), one head: queries, keys, values of layer n, keys and
    values of an earlier layer m.

    All (B,T,D) -> (B,T,D). One softmax over both layers' keys; a query sees, in both, the positions
    up to its own.
    """
    raise NotImplementedError


def resformer(x, wq, wk, wv, wo):
    """A stack of ResFormer's attention layers, one head each, no norms, no MLP: x (B,T,C), four
    times (L,C,C) -> (B,T,C).

    Layer n adds A_n V W_O to its input: V = V_n in the first layer, (V_n + V_1) / 2 above it (Eq
    7); causal A_n, scale 1/sqrt(C), q = x wq, k = x wk, V_n = x wv of the layer.
    """
    raise NotImplementedError


def neutreno(A, v, v1, lam):
    """NeuTRENO's output (A - lam I) V_n + lam V_1: A (B,T,T), v and v1 (B,T,D), lam a number ->
    (B,T,D).
    """
    raise NotImplementedError


def denseformer(x, w, a):
    """DenseFormer's depth-weighted averages around L toy blocks, block_n(x) = x + tanh(x @ w[n]): x
    (B,T,C), w (L,C,C), a (L,L+1).

    X_0 = x. After block n, X_{n+1} is its output and the next block (or the caller) gets sum_{j <=
    n+1} a[n, j] X_j.
    """
    raise NotImplementedError


def predict_entropies():
    """Predict, then measure: `importance_entropy` (natural log) of 2,048 tokens of which (1) each
    sees only itself, (2) all see only the first, (3) each spreads its attention evenly over itself
    and everything before it. Three numbers; 0.2 apart counts.
    """
    raise NotImplementedError


def ones_counter_example():
    """Find the error. Return (A, v, v2, lam): causal attention A (T,T), values v and v2 (T,D) that
    differ in the last row only.

    The ResFormer paper writes NeuTRENO as (A - lam J) V_n + lam V_1 with "J a matrix of ones" (Eq
    8). Return a case in which that formula, with the same V_1, lets the last token change an
    earlier output by at least 0.01.
    """
    raise NotImplementedError


def best_mix(q, k, v, k_m, v_m):
    """Stretch: the (a, b) with which a A V_n + b A V_m comes closest (least squares, all entries)
    to cross-layer attention, Eq 2.

    Inputs as in `cross_layer`; A is layer n's own causal attention. ResFormer takes (0.5, 0.5) of
    the first layer. Returns (2,).
    """
    raise NotImplementedError
