"""hw04 · What do the lambdas say?

Fill in the functions, in any order, and run `pytest homework/hw04_value_embeddings` as
often as you like.
Letters: B batch, T positions, H heads, D head width, C model width, V vocabulary, L layers
(numbered from 0). A value embedding ve is read from a table by token id.
Functions answer in the dtype of their inputs, and leave these as they were.
"""

import torch  # noqa: F401


def table_of(layers, tables, without):
    """Which value table does each layer read? A list of `layers` numbers, -1 for none.

    The layers in `without` have no attention, so no values to add a table to. Of the others, the
    first `tables` read 0, 1, 2, …, and the last `tables` read them again in the same order
    (modded-nanogpt, medium track: 16 layers, 3 tables, no attention in layer 7).
    """
    raise NotImplementedError


def mixed_value(v, ve, s0, s1):
    """The value of a modded-nanogpt layer whose table is smaller, s0 * rmsnorm(v) + s1 * ve: v
    (B,T,H,D), ve (B,T,G*D) or None -> (B,T,H,D).

    The table's rows have G heads, and H // G neighbouring heads of v share one. The norm is taken
    in each head by itself, over D, without weights or epsilon (one of at most 1e-5 does no harm
    here).
    """
    raise NotImplementedError


def unet(x0, w, lambdas, skips, weights):
    """The residual stream of modded-nanogpt (medium) around L toy blocks, block_i(x) = x + tanh(x @
    w[i]): x0 (B,T,C), w (L,C,C) -> (B,T,C).

    At layer i, in this order: add weights[n] times the output of layer a for every skips[n] = [a,
    i]; then x = lambdas[i, 0] x + lambdas[i, 1] x0; then the block. The stream starts as x0.
    """
    raise NotImplementedError


def gated_value(v, ve, x, w):
    """nanochat's value: v + 3 sigmoid(w · first 12 entries of x) ve, a gate a token and head. v, ve
    (B,T,H,D), x (B,T,C), w (H,12).
    """
    raise NotImplementedError


def contribution(v, ve, s0, s1):
    """How large is the value embedding's share? Two numbers between 0 and 1, for v and ve
    (B,T,H,D), mixed as in `mixed_value`:

    (1) by the lambdas, |s1| / (|s0| + |s1|), as the blog plots it; (2) by the vectors, the mean
    over tokens and heads of ‖s1 ve‖ / (‖s0 rmsnorm(v)‖ + ‖s1 ve‖).
    """
    raise NotImplementedError


def adam_pair(start, gradients, lr, beta1, beta2, eps):
    """The two mixing lambdas of a layer, trained by Adam: start (2,), gradients (N,2) -> their
    values after each step, (N,2). A step is lr times the mean of gradients over (the root of the
    mean of their squares + eps), both corrected.
    """
    raise NotImplementedError


def window(step, steps, longest, block):
    """The attention window (a whole number) at a training step: the smallest positive multiple of
    `block` that is not below longest * (4x³ - 6x² + 3x), x = step / steps. (The blog plots it as
    "sequence length".)
    """
    raise NotImplementedError


def predict_lambdas():
    """Predict, then check with your own functions. (1) In layer 0, where x is x0, the two mixing
    lambdas start at 1 and 0 and are trained by Adam, the second at twice the rate of the first. The
    first ends at 9.3. Where does the second end? (2) x - 0.5 x', and x' is three times as long as
    x: how many per cent of the two lengths is the second term's?
    """
    raise NotImplementedError


def skip_counter_example():
    """Find the error. Four sentences about late + lam * early, two streams of one length and lam
    from 0 to 1, and about the early one's share of the sum of lengths. One is false: return its
    number and a case: (which, early, late, lam), early and late (C,).

    (1) At lam = 1 the share is one half. (2) The share is lam / 2: 0.4 skips by 20 %. (3) The share
    is never more than one half. (4) If only the early stream grew longer, and lam is not 0, its
    share would grow. In the case, what the sentence says must be at least 5 points off.
    """
    raise NotImplementedError


def lambda_gradients(ids, table, v, s0, s1, dout):
    """Stretch: backward through `mixed_value` with ve = table[ids], by hand: ids (B,T), table
    (V,H*D), v and dout (B,T,H,D).

    Returns (ds0, ds1, dtable (V,H*D)). Rows of tokens that do not occur get no gradient at all.
    """
    raise NotImplementedError
