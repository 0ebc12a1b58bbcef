"""hw03 · What must the cache keep?

Fill in the functions, in any order, and run `pytest homework/hw03_kv_cache` as often as you
like.
Letters: B batch, T new positions, S visible positions, H query heads, G key/value heads, D
and C widths.
Functions answer in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def owners(plan, windows, anchors):
    """Whose keys, and whose values, each layer reads, in a model that mixes windows: two lists of
    layer numbers. windows[n]: how many keys to its left layer n sees; 0 means everything.

    Layers share with layers of the same window only. standard: each layer reads its own. svformer:
    its own keys, the values of the first layer with its window. cla: of the layers with one window,
    taken in order, the second reads both from the first, the fourth from the third, and so on.
    share-k2, share-v2: the same for the keys alone, or the values alone. anchors: own keys; the
    layers in `anchors` make values, every other layer reads those of the latest anchor below it
    with its window. (The first layer of every window is an anchor.)
    """
    raise NotImplementedError


def cache_bytes(plan, layers, batch, tokens, heads, groups, width, key_bits, value_bits):
    """Bytes that the cache must hold (a whole number) after `tokens` tokens of `batch` sequences.

    heads: query heads, groups: key/value heads, width: of one head. A number of the keys has
    key_bits bits, one of the values value_bits (16, 8 or 4). Below 16 bits every row, one token in
    one head, keeps a scale of 16 bits beside its numbers. plan: standard, svformer, cla (as in
    `owners`, all layers with one window) or skipv1 (SkipV1Former with half of the heads its own).
    """
    raise NotImplementedError


def grouped_attention(q, k, v):
    """Causal attention with fewer key heads than query heads, and another number of value heads: q
    (B,T,H,D), k (B,S,G,D), v (B,S,K,E) -> (B,T,H,E).

    H // G neighbouring query heads read the same key head, H // K the same value head. The T
    queries are the last T of S positions.
    """
    raise NotImplementedError


def skip_heads(v, v1):
    """SkipV1Former's values with fewer heads of its own: v (B,T,G,D) of this layer, v1 (B,T,H,D) of
    the first -> (B,T,H,D).

    The first half of the H heads is the layer's own: neighbouring heads share one of the G, equally
    many each. Head h of the second half is head h of v1.
    """
    raise NotImplementedError


def svformer(x, wq, wk, wv, wo):
    """A stack of SVFormer's attention layers, one head each, no norms, no MLP: x (B,T,C) ->
    (B,T,C).

    wq, wk, wo (L,C,C) belong to their layers; wv (C,C) is the only value matrix. Layer n adds A_n
    V_1 W_O to its input (Eq 10), with causal A_n = softmax(Q_n K_n^T / sqrt(C)) and V_1 = (input of
    the first layer) W_V.
    """
    raise NotImplementedError


def svformer_step(x, keys, value, wq, wk, wv, wo):
    """One decode step of `svformer`: x (B,1,C), keys (L,B,S,C), value (B,S,C) -> the three, with S
    + 1 positions kept.

    The cache is L key streams and ONE value stream; S may be 0. Token by token it must equal
    `svformer` on the whole.
    """
    raise NotImplementedError


def critical_point(method, baseline, window):
    """The step (a whole number) at which the baseline overtakes the method, from two loss curves
    (N,); -1 if never.

    Smooth method - baseline by a moving average: m[k] is the mean over steps k … k + window - 1.
    Return the smallest k >= 1 with m[k - 1] < 0 and m[k] >= 0. (ResFormer paper, Fig 11: SVFormer
    is ahead early in training.)
    """
    raise NotImplementedError


def predict_savings():
    """Predict, then count: how many per cent of the standard cache are saved? Three numbers.

    (1) 24 layers that see everything: every fourth, from layer 0 on, makes values, and the others
    read the latest. (2) SVFormer, 12 layers in the pattern SSSL, 65,536 tokens: the S layers see
    512 keys to their left and keep no more than they see. (3) SVFormer, 12 layers of which only the
    last sees everything, the others as in (2). Within 5 points counts, within 2 for (3).
    """
    raise NotImplementedError


def ring_counter_example():
    """Find the error. A window of N is masked by `row - col <= N`, and a ring keeps the newest rows
    of a cache. One of four sentences is false; return its number and a case: (which, q, k, v, N).

    (1) The newest query sees itself and N keys to its left. (2) As long as there are at most N
    keys, a ring of N entries gives the output of the mask. (3) A ring of N entries gives it at any
    length. (4) In which order the ring holds its rows does not matter to the output. The case: q
    (D,) the newest query, k (S,D) and v (S,E) all so far, with outputs at least 0.01 apart.
    """
    raise NotImplementedError


def windowed_bytes(key_owners, value_owners, windows, batch, tokens, groups, width, size):
    """Stretch: bytes (a whole number) of a cache whose streams are shared, as `owners` says, AND
    windowed.

    Layer n sees windows[n] keys to its left, and itself; 0: all. After `tokens` tokens a stream
    keeps what some reader of it can see from the newest one, which is included: windows[n] + 1
    rows, if there are as many.
    """
    raise NotImplementedError
