"""hw05 · Does every pair deserve its own value?

Fill in the functions, in any order, and run `pytest homework/hw05_dva` as often as you
like.
Letters: B batch, T queries, S keys, C width (of the model and of its one head), F hidden
width of an MLP, L layers, H heads of width D where there are several; qr and kr are the
modifier's query and key.
Functions answer in the dtype of their inputs, and leave these as they were.
"""

import torch  # noqa: F401


def pair_values(v, qr, kr):
    """The value that key j offers to query i in every head, v_ij = v_j + qr_i * kr_j (entry by
    entry), with fewer heads of kr: v (S,H,D), qr (T,H,D), kr (S,G,D) -> (T,S,H,D). H // G
    neighbouring heads share a head of kr.
    """
    raise NotImplementedError


def dva(x, wq, wk, wv, wqr, wkr):
    """Dynamic value attention with M modifiers, one head, no output matrix: x (B,T,C), wq, wk, wv
    (C,C), wqr, wkr (M,C,C) -> (B,T,C).

    out_i = sum_j a_ij (v_j + sum_m qr_mi * kr_mj), a = causal softmax(q kᵀ / sqrt(C)), with q = x
    wq, k = x wk, v = x wv, qr_m = x wqr[m], kr_m = x wkr[m]. Without a tensor of all pairs' values.
    """
    raise NotImplementedError


def pair_bytes(batch, tokens, width, size):
    """Bytes (two whole numbers) that one layer makes on the way, for `tokens` queries and keys and
    numbers of `size` bytes:

    (1) naive: the tensor of all v_ij. (2) factored: the weights A and the two mixed streams A V and
    A K_R.
    """
    raise NotImplementedError


def parameters(plan, layers, width, vocabulary, context):
    """How many parameters (a whole number)? plan: gpt2, dva, or dva-wo.

    gpt2: token and position embeddings; in each layer LayerNorm (scale and shift), W_Q, W_K, W_V
    without biases, W_O with one, LayerNorm, MLP C -> 4C -> C with biases; a last LayerNorm; an
    output head of its own, no bias. dva: no MLP and not its norm, no W_O, two more matrices W_QR,
    W_KR without biases. dva-wo: like dva, but W_O stays.
    """
    raise NotImplementedError


def dva_backward(A, v, qr, kr, dout):
    """Gradients of out = sum_j A_ij (v_j + qr_i * kr_j): A (T,S), v and kr (S,C), qr and dout (T,C)
    -> (dv, dqr, dkr), by hand.
    """
    raise NotImplementedError


def dva_step(q, k, v, qr, kr, k_cache, v_cache, kr_cache):
    """One decode step of DVA: five new rows (B,1,C), three caches (B,S,C), S may be 0 -> (out
    (B,1,C), three caches (B,S+1,C)).
    """
    raise NotImplementedError


def latent_set(w1, b1, w2, b2):
    """An MLP as attention to a set of latents. Given x -> relu(x w1ᵀ + b1) w2ᵀ + b2, with w1 (F,C),
    b1 (F,), w2 (C,F), b2 (C,), return keys (F+1, C+1) and values (F+1, C) with relu([x, 1] keysᵀ)
    values equal to it for every x: no softmax, no bias left over.
    """
    raise NotImplementedError


def predict_cost():
    """Predict: (1) The factored form makes a map and two mixed streams for every sequence. From how
    many tokens on does the map hold more numbers than both streams, at width 768? (2) A standard
    layer loses its MLP (C -> 4C -> C) and W_O and gains W_QR and W_KR. How many per cent of its
    matrix weights are left? A tenth (1), or 3 points (2), counts.
    """
    raise NotImplementedError


def reading_counter_example():
    """Find the error. One of four sentences about v_j + qr_i * kr_j is false. Return its number and
    a case that refutes it: (which, A, v, qr, kr), weights A (T,T) of which two rows are equal, and
    v, qr, kr (T,C).

    (1) Two queries with equal rows of weights may get different outputs. (2) Instead one may take
    r = qr * kr position by position, as a summary of the paper does, and attend to V + r: the
    output is the same. (3) Where kr is zero for every key, the layer is ordinary attention. (4)
    Where qr is the same for every query, equal rows of weights give equal outputs. What the case
    must tell apart has to differ by 0.1.
    """
    raise NotImplementedError


def dva_tiles(scores, v, qr, kr, tile):
    """Stretch: DVA as flash attention would do it, `tile` keys at a time: scores (T,S), v and kr
    (S,C), qr (T,C) -> (N,T,C).

    Entry n is the DVA output if the keys ended with tile n (the last may be shorter); entry N-1 is
    the whole. No mask. No exp of a positive number, nothing larger than T × tile or T × C but the
    result.
    """
    raise NotImplementedError
