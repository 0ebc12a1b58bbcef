"""hw01 · What does a token see?

Fill in the functions, in any order, and run `pytest homework/hw01_attention` as often as
you like.
Letters: B batch, T new positions, S visible positions, H heads, D, E and C widths of heads,
values and model.
Functions return new tensors, in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def causal_mask(T, S):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions.
    """
    raise NotImplementedError


def attention(q, k, v, causal):
    """Softmax attention: q (B,T,H,D), k (B,S,H,D), v (B,S,H,E) -> (B,T,H,E). If `causal`, the
    queries are the last T of S positions.
    """
    raise NotImplementedError


def rope(x, positions, base):
    """Rotary positions: x (B,T,H,D), positions (T,) whole numbers, base a number -> (B,T,H,D).

    With x1, x2 the first and second half of the last dimension and angle = position * base ** (-2 i
    / D), i = 0 … D/2 - 1: y1 = x1 cos(angle) + x2 sin(angle), y2 = -x1 sin(angle) + x2 cos(angle).
    """
    raise NotImplementedError


def online_softmax(scores, values, tile):
    """softmax(scores) @ values, reading `tile` columns at a time, once: scores (T,S), values (S,E).

    Returns (out (T,E), maxima (N,T), sums (N,T)): the result, and after each of the N tiles (the
    last may be shorter) the largest score so far and the sum of exp(score - that maximum) so far.
    No exp of a number above 0.
    """
    raise NotImplementedError


def merge(out_a, lse_a, out_b, lse_b):
    """Attention over all keys from attention over two halves of them: out (…,E) and lse (…) of each
    half -> (out, lse) of both.

    lse is the log of the sum of exp(score) over the half's keys. This is how a long cache is split
    over processors.
    """
    raise NotImplementedError


def decode_step(q, k, v, k_cache, v_cache):
    """One token through a cache: q, k, v (B,1,H,D), caches (B,S,H,D), S may be 0 -> (out (B,1,H,D),
    both caches (B,S+1,H,D)).

    Token after token, the outputs must equal causal attention on the whole sequence.
    """
    raise NotImplementedError


def flops_per_token(layers, width, vocabulary, context):
    """FLOPs of training on one token (a whole number), by the usual count: standard layers, MLP 4C
    wide, an output head, no biases.

    6 for every weight of a matrix that multiplies, plus QKᵀ and AV over the full `context`; norms
    and look-ups cost nothing.
    """
    raise NotImplementedError


def predict_sharpness():
    """Predict, then measure: q and 128 keys are standard normal and 64 wide. On average, how large
    is the largest of the 128 weights (1) of softmax(q kᵀ), and (2) of softmax(q kᵀ / sqrt(64))?
    Return the two numbers; 0.15 apart (1), or a factor of 2 (2), counts.
    """
    raise NotImplementedError


def mask_counter_example():
    """Find the error. Return (q, k, v, q2, k2, v2): two sequences, q and k (T,D), v (T,E), that
    differ in their last row only.

    The Bank of Values paper prints attention as softmax(Q Kᵀ / sqrt(d)) V (Eq 2), for a model that
    predicts the next token. Return a case in which that formula, taken as printed, lets the last
    token change an earlier output by at least 0.01.
    """
    raise NotImplementedError


def tile_backward(q, k, v, out, lse, dout):
    """Stretch: what one tile of keys contributes to the gradients of (unmasked) attention, as flash
    attention recomputes it.

    q (T,D), k (S,D), v (S,E): the tile's keys and values, S of possibly many more. out (T,E), lse
    (T,): result, and log of the sum of exp(scores), over ALL keys. dout (T,E): gradient of the loss
    by out. Returns this tile's share of dq (T,D), and its dk, dv.
    """
    raise NotImplementedError
