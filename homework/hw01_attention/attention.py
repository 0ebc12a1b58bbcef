"""hw01 · What does a token see?

Fill in the functions, in any order, and run `pytest homework/hw01_attention` as often as
you like.
Letters: B batch, T new positions, S visible positions, H heads, D, E and C widths of heads,
values and model.
Functions answer in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def prefix_mask(T, S, prefix):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions. Causal, but the first `prefix` positions see each
    other whole, as a question that is read at once, before the answer is written.
    """
    raise NotImplementedError


def attention(q, k, v, documents):
    """Causal attention over rows that hold several documents: q (B,T,H,D), k (B,S,H,D), v
    (B,S,H,E), documents (B,S) whole numbers -> (B,T,H,E).

    The queries are the last T of S positions. A query sees the keys at or before its own position
    that belong to its own document.
    """
    raise NotImplementedError


def rope(x, positions, base, turned):
    """Rotary positions on a part of each head: x (B,T,H,D), positions (B,T) whole numbers, base a
    number, turned even -> (B,T,H,D).

    The first `turned` features turn, the others stay. With x1, x2 the first and second half of
    those that turn and angle = position * base ** (-2 i / turned), i = 0 … turned/2 - 1: y1 = x1
    cos(angle) + x2 sin(angle), y2 = -x1 sin(angle) + x2 cos(angle).
    """
    raise NotImplementedError


def online_softmax(scores, values, tiles):
    """softmax(scores) @ values, a tile of columns at a time, each read once: scores (T,S), values
    (S,E), tiles (N,2) whole numbers: as number n come the columns tiles[n,0] to tiles[n,1] - 1.

    The tiles cover all columns, in any order. A hidden key has the score -inf; a tile may hold
    nothing that a query sees, all tiles together hold something. Returns (out (T,E), maxima (N,T),
    sums (N,T)): the result, and after each tile the largest score so far and the sum of exp(score -
    that maximum) so far, both 0 for a query that has seen nothing yet. No exp of a number above 0.
    """
    raise NotImplementedError


def merge(out_a, lse_a, out_b, lse_b):
    """Attention over all keys from attention over two halves of them: out (…,E) and lse (…) of each
    half -> (out, lse) of both.

    lse is the log of the sum of exp(score) over the half's keys. This is how a long cache is split
    over processors.
    """
    raise NotImplementedError


def decode_step(q, k, v, k_cache, v_cache, lengths):
    """One token of each of B texts, through caches of S rows of which text b has filled the first
    lengths[b], fewer than S: q, k, v (B,1,H,D), caches (B,S,H,D), lengths (B,) whole numbers ->
    (out (B,1,H,D), both caches (B,S,H,D), with the new rows written).

    Token after token, the outputs must equal causal attention on each text alone. What stands in
    rows that are not filled is unknown, and stays.
    """
    raise NotImplementedError


def flops_per_token(layers, width, heads, groups, hidden, vocabulary, context):
    """FLOPs of training on one token (a whole number), by the usual count, of a Llama-like model:
    `heads` query heads share `groups` key/value heads, all C / heads wide; SwiGLU with three
    matrices between C and `hidden`; an output head; no biases.

    6 for every weight of a matrix that multiplies, plus QKᵀ and AV over the full `context`; norms
    and look-ups cost nothing.
    """
    raise NotImplementedError


def predict_output_size():
    """Predict, then measure: a query, 1,024 keys and values, all standard normal and 64 wide, so a
    value has root mean square 1. What root mean square has attention's output (1) if all weights
    are even, (2) with softmax(q kᵀ / sqrt(64)), (3) with softmax(q kᵀ)? Three numbers; each counts
    within a fifth of it.
    """
    raise NotImplementedError


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
    raise NotImplementedError


def tile_backward(q, k, v, out, lse, dout, start):
    """Stretch: what one tile of keys contributes to the gradients of causal attention, as flash
    attention recomputes it.

    q (T,D); k (S,D), v (S,E): the tile's keys and values, those of positions start to start + S - 1
    of T. out (T,E), lse (T,): result, and log of the sum of exp(scores), over ALL keys that a query
    sees. dout (T,E): gradient of the loss by out. Returns this tile's share of dq (T,D), and its
    dk, dv.
    """
    raise NotImplementedError
