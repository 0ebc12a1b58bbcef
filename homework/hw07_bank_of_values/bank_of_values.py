"""hw07 · Where do deep layers get their values?

Fill in the functions, in any order, and run `pytest homework/hw07_bank_of_values` as often
as you like.
Letters: B batch, T new positions, S visible positions, H heads, D head width, C model
width, V vocabulary, L layers (numbered from 0).
Functions answer in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def which_rules(picked, layers):
    """Which rules could have picked these layers (a list, ascending) of a model with `layers`
    layers? Three answers, 1 for yes and 0 for no, in this order. last third: all from (2L)//3 on.
    every second: the last layer, and every second one below it. last half: all from L//2 on.
    """
    raise NotImplementedError


def value(row, layer, layers, v, v1, vx, a, b):
    """The value that layer `layer` of a model with `layers` layers uses in row 1 … 13 of the Bank
    of Values paper's Table 1. All tensors (B,T,H,D).

    v: the layer's own; v1: the first layer's; vx: x0 W_V. In place of V: 1 V, 2 aV, 3 and 5 V1, 4
    and 6 aV1, 8 x0W, 7 and 9 a x0W. Added: 10 (V + V1)/2, 11 aV + bV1, 12 (V + x0W)/2, 13 aV + b
    x0W. Row 3 changes all layers but layer 0, rows 4 and 7 "every second", all others the "last
    third" (see `which_rules`). A layer that its row does not change uses v.
    """
    raise NotImplementedError


def aligned_table(embedding, w):
    """One table for n layers, as near to all as it can be: layer i's own table would have the rows
    RMSNorm(embedding[t]) @ w[i]. Return the table with the smallest sum of squared differences from
    these n tables. embedding (V,C), w (n,C,E) -> (V,E).

    The norm is taken over C, without weights or epsilon (one of at most 1e-5 does no harm here).
    """
    raise NotImplementedError


def bov_attention(q, k, ids, table, gamma):
    """Causal attention with grouped heads whose values are looked up: q (B,T,H,D), k (B,S,G,D), ids
    (B,S), table (V,G,D), gamma a number -> (B,T,H,D).

    G divides H: query head h reads keys and rows of group h // (H // G). The value of position p is
    gamma * table[ids[p]] (Eq 5), scores are q k / sqrt(D); the T queries are the last T of S
    positions.
    """
    raise NotImplementedError


def histogram_decode(weights, ids, table, gamma):
    """Decode without any values, and read only the rows in use: how much attention falls on each
    TOKEN TYPE that stands anywhere in the batch, then one product with these rows.

    weights (B,H,S) of one query of each text, ids (B,S), table (V,H,D) -> (tokens (U,), masses
    (B,H,U), out (B,H,D)). tokens: every id of the batch once, ascending; a token that is not in a
    text has mass 0 there. out is what attention hands over, times gamma.
    """
    raise NotImplementedError


def flops_and_tokens(layers, width, vocabulary, windows, without):
    """(FLOPs of training on one token, how many per cent more tokens than standard attention the
    same FLOPs pay for).

    Counted as in hw01: 6 a matrix weight (each layer 12 C², one head C V), 12 C · window a layer;
    `without` layers have no W_V.
    """
    raise NotImplementedError


def saved_bytes(layers, tables, batch, tokens, vocabulary, value_width, width, size, id_size):
    """Bytes (a whole number, negative if it costs) that BoV saves at decode with `layers` target
    layers that share `tables` tables: Eq 6, done exactly.

    Gone: their value caches (batch · tokens · value_width each) and matrices W_V (width ·
    value_width each). New: the tables (vocabulary · value_width each) and one id of id_size bytes
    a position. Everything else has `size` bytes. Full context, no windows.
    """
    raise NotImplementedError


def predict_break_even():
    """Predict: a vocabulary of 32,768, full context, tables in HALF of the layers (leave ids and
    W_V out). Sixteen answers are written to one prompt of 3,000 tokens, whose keys and values are
    kept once for all. (1) From how many written tokens each does BoV save memory? (2) What per cent
    of the whole K and V cache can it save at most?
    """
    raise NotImplementedError


def expressivity_counter_example():
    """Find the error. Return (embedding (V,C), table (V,E)): token embeddings, and a value table
    for one layer.

    The paper says (Sec 5.2) that computing x0 W_V in a layer "has the same expressivity as BoV".
    Return a table that no matrix W_V reproduces: the best RMSNorm(embedding) W_V leaves at least
    half of it (in Frobenius norm) unexplained.
    """
    raise NotImplementedError


def windowed_break_even(windows, batch, prompt, vocabulary):
    """Stretch: `batch` sequences go on from one prompt, whose rows are kept once for all. After how
    many tokens of its own each would the target layers' value caches hold at least as many rows as
    their tables? The smallest such number, at least 1; -1 if never.

    windows[n]: how many keys to its left target layer n sees besides its own, 0 for all. A cache
    keeps only rows that the newest token can see: windows[n] + 1 of the prompt and the sequence's
    own tokens together, the newest included. prompt: its tokens, 0 for none.
    """
    raise NotImplementedError
