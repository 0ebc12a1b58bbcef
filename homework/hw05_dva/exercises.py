"""hw05: does every pair of tokens deserve its own value, and what does that cost?"""

import numpy as np

from homework.by_index import causal_weights
from homework.marking import Part, Unit, drawn, guesses, need, normals, per_cent, refuse

unit = Unit(
    "hw05_dva",
    "Does every pair deserve its own value?",
    """Letters: B batch, T queries, S keys, C width (of the model and of its one head), F hidden
    width of an MLP, L layers, H heads of width D where there are several; qr and kr are the
    modifier's query and key.""",
)


def heads(G):
    """Nine keys, four queries, six heads, and G heads of modifier keys."""
    return lambda r: normals(r, (9, 6, 5), (4, 6, 5), (9, G, 5))


@unit.exercise(Part("more keys than queries", 8, [heads(3), heads(2), heads(6)]))
def pair_values(v, qr, kr):
    """The value that key j offers to query i in every head, v_ij = v_j + qr_i * kr_j (entry by
    entry), with fewer heads of kr: v (S,H,D), qr (T,H,D), kr (S,G,D) -> (T,S,H,D). H // G
    neighbouring heads share a head of kr.
    """
    out, (H, G) = np.zeros((len(qr), *v.shape)), (v.shape[1], kr.shape[1])
    for i, j, h in np.ndindex(out.shape[:3]):
        sent = kr[j, h // (H // G)]
        out[i, j, h] = v[j, h] + qr[i, h] * sent
    return out


unit.mistakes("""
takes: easy, 5 minutes
hint: Which of the three depend on the query i, and which on the key j?
hint: Give each a dimension of size 1 where it does not vary: v[None], qr[:, None], kr[None]; and kr
    | as many heads as v has.
after: v_j varies with the key alone, the product with both, so T times S vectors are needed to
    | write all of them down. Shared modifier keys answer a question of notebook 07: the third
    | stream of the cache is then as much smaller as there are fewer heads in it.
    | minimal/model/attention.py: Pairs does write them down, the slow reference for the layer.
8 | your heads take the modifier keys by turns (0, 1, 2, 0, 1, 2); neighbours share one (0, 0, 1, 1,
  | 2, 2)
    h // (H // G) => h % G
8 | your first two dimensions are (keys, queries); wanted (queries, keys)
    return out => return out.swapaxes(0, 1)
8 | the modifier is a product, entry by entry, of qr and kr; you added them
    * sent => + sent
8 | the static value is missing: v_ij = v_j + qr_i * kr_j
    v[j, h] + =>
8 | you gated the static value, too; the gate stands at kr alone: v_j + qr_i * kr_j
    v[j, h] + qr[i, h] * sent => qr[i, h] * (v[j, h] + sent)
8 | you multiplied v + qr by kr; v is added to the product
    v[j, h] + qr[i, h] => (v[j, h] + qr[i, h])
8 | you multiplied all three; v is added to the product of qr and kr
    v[j, h] + => v[j, h] *
8 | you took the modifier away; it is added
    v[j, h] + => v[j, h] -
8 | you summed the product over the entries; it stays entry by entry
    * sent => @ sent
8 | all your heads read the first head of kr, or the mean of its heads; H // G neighbours share one
    h // (H // G) => 0
    kr[j, h // (H // G)] => kr[j].mean(0)
8 | those are the static values alone: add qr_i * kr_j
    + qr[i, h] * sent =>
8 | no sigmoid stands around the product: v_j + qr_i * kr_j
    qr[i, h] * sent => 1 / (1 + np.exp(-qr[i, h] * sent))
""")


def layer(T, M):
    """One text of T tokens, and M modifiers."""
    matrices = [(6, 6)] * 3 + [(M, 6, 6)] * 2
    return lambda r: (r.normal(size=(2, T, 6)), *(0.5 * x for x in normals(r, *matrices)))


@unit.exercise(Part("one token", 4, layer(1, 2)), Part("a sequence", 10, layer(5, 3)))
def dva(x, wq, wk, wv, wqr, wkr):
    """Dynamic value attention with M modifiers, one head, no output matrix: x (B,T,C), wq, wk, wv
    (C,C), wqr, wkr (M,C,C) -> (B,T,C).

    out_i = sum_j a_ij (v_j + sum_m qr_mi * kr_mj), a = causal softmax(q kᵀ / sqrt(C)), with q = x
    wq, k = x wk, v = x wv, qr_m = x wqr[m], kr_m = x wkr[m]. Without a tensor of all pairs' values.
    """
    out, T = np.zeros(x.shape), x.shape[1]
    for b, text in enumerate(x):
        v, qr, kr = text @ wv, text @ wqr, text @ wkr  # (T, C), and (M, T, C) twice
        A = causal_weights(text @ wq, text @ wk)
        for i, j in np.ndindex(T, T):
            modifier = sum(g[i] * s[j] for g, s in zip(qr, kr))
            out[b, i] += A[i, j] * (v[j] + modifier)
    return out


unit.mistakes("""
takes: medium, 13 minutes
hint: For one modifier: sum_j a_ij (v_j + qr_i * kr_j). Take the factor without j out of the sum.
hint: Every modifier has a stream of its own under the same map, and a gate of its own outside:
    | nothing larger than (B,T,T) or (M,B,T,C) is made.
after: No qr_i depends on the key, so each leaves the sum: out = A v + the sum of all qr * (A kr),
    | one map and M + 1 streams; with one modifier the receiver can gate only one mean, with M it
    | can take heat from one kind of sender and comfort from another. In the package, for M = 1:
    | minimal/model/attention.py: Dynamic, and minimal/kernels/dynamic_values.py: mix, which forms
    | the map once for both. README's question: with qr the same for every i this is standard
    | attention with the values x (W_V + W_KR diag(qr)), so the modifier folds into W_V.
in: causal_weights
14 | only your first modifier arrives; the sum runs over all M of them
     zip(qr, kr) => zip(qr[:1], kr[:1])
14 | you multiplied the sum of all qr by the sum of all kr; every gate has a stream of its own
     zip(qr, kr) => [(qr.sum(0), kr.sum(0))]
10 | you multiplied qr and kr of the SAME position and added that to the value: then every query is
   | offered the same again; the modifier of a pair takes qr of the query and kr of the key
     g[i] => g[j]
10 | your scores are not divided by sqrt(C)
     / np.sqrt(D) =>
10 | your queries also see the keys after them
     scores[t, t + S - T + 1 :] = -np.inf => pass
10 | you added qr times the plain sum of kr; every pair's modifier is weighted like its value
     (v[j] + modifier) => v[j] + (j <= i) * modifier
10 | qr and kr have changed places: the query's x wqr gates, the keys' x wkr are mixed
     g[i] * s[j] => g[j] * s[i]
10 | the gate belongs to the query itself; you mixed it over the keys, too
     g[i] => (A @ g)[i]
10 | you gated each position's own kr; kr is mixed over the keys first
     s[j] => s[i]
14 | you added qr to the mixed kr; the gate multiplies
     g[i] * s[j] => g[i] + s[j]
14 | the static values are missing: A v is added to the modifiers
     v[j] + modifier => modifier
14 | you took the mean over the modifiers; they are summed
     v[j] + modifier => v[j] + modifier / len(qr)
10 | your softmax runs over the queries; the weights of a query sum to 1 over the keys
     softmax(scores) => softmax(scores, 0)
14 | your gate meets the mixed VALUES; it gates A kr
     s[j] => v[j]
14 | the gate has no sigmoid: qr multiplies as it is
     g[i] * s[j] => s[j] / (1 + np.exp(-g[i]))
14 | the layer's input is not added here
     np.zeros(x.shape) => x.copy()
""")


@unit.exercise(
    Part("one sequence", 3, lambda r: (1, r.integers(100, 3000), 64 * r.integers(2, 20), 4)),
    Part(
        "a batch, half precision",
        5,
        lambda r: (r.integers(2, 30), r.integers(100, 3000), 64 * r.integers(2, 20), 2),
    ),
)
def pair_bytes(batch, tokens, width, size):
    """Bytes (two whole numbers) that one layer makes on the way, for `tokens` queries and keys and
    numbers of `size` bytes:

    (1) naive: the tensor of all v_ij. (2) factored: the weights A and the two mixed streams A V and
    A K_R.
    """
    naive = batch * tokens * tokens * width * size
    factored = batch * (tokens * tokens + 2 * tokens * width) * size
    return naive, factored


unit.mistakes("""
takes: easy, 4 minutes
hint: All v_ij: B · T · T · C numbers. The weights: B · T · T. One mixed stream: B · T · C.
hint: For one sequence of 512, width 768, 4 bytes: 805,306,368 and 4,194,304.
after: For one sequence of 512, width 768 and float32, all v_ij are 805 MB and the factored form
    | makes 4.2 MB, 192 times less: so the pair itself is cheap once it is written well. The two
    | forms are minimal/model/attention.py: Pairs and minimal/model/attention.py: Dynamic, and a
    | test holds that they agree.
8 | those are elements; a byte count multiplies by the size of one
    width * size => width
    and: width) * size => width)
5 | every sequence of the batch has its own pairs
    naive = batch * => naive =
    and: factored = batch * => factored =
8 | the factored form mixes two streams: A V and A K_R
    2 * tokens => tokens
8 | naive: every query has a value from EVERY key, so the tokens count twice
    naive = batch * tokens => naive = batch
8 | the weights A are made on the way, too: tokens * tokens numbers
    tokens * tokens + =>
8 | only two mixed streams are made on the way; the value and the gate are there before
    2 * tokens => 3 * tokens
8 | there is one map A; both streams share it
    (tokens => (2 * tokens
8 | a value has `width` numbers, not their square
    width * size => width * width * size
8 | naive asks for the tensor of all v_ij alone, without the weights
    width * size => (width + 1) * size
8 | you left the size of a number out of one of the counts
    width * size => width
    width) * size => width)
5 | the batch is missing in one of the counts
    naive = batch * => naive =
    factored = batch * => factored =
8 | wanted bytes, not megabytes
    return naive, factored => return naive / 1e6, factored / 1e6
8 | no mask is asked for: every query has a value from every key
    batch * tokens * tokens => batch * (tokens * (tokens + 1) // 2)
8 | map and streams are added; you multiplied tokens by both widths
    tokens + 2 * tokens => tokens * 2
""")


@drawn
def model(r, plan):
    layers, width = r.integers(2, 13), 64 * r.integers(2, 20)
    return plan, layers, width, r.integers(1000, 60000), r.integers(64, 1025)


@unit.exercise(
    Part("gpt2", 4, [lambda r: ("gpt2", 12, 768, 50257, 256), model("gpt2"), model("gpt2")]),
    Part("dva", 4, [lambda r: ("dva", 12, 768, 50257, 256), model("dva"), model("dva")]),
    Part("dva that keeps W_O", 4, model("dva-wo")),
)
def parameters(plan, layers, width, vocabulary, context):
    """How many parameters (a whole number)? plan: gpt2, dva, or dva-wo.

    gpt2: token and position embeddings; in each layer LayerNorm (scale and shift), W_Q, W_K, W_V
    without biases, W_O with one, LayerNorm, MLP C -> 4C -> C with biases; a last LayerNorm; an
    output head of its own, no bias. dva: no MLP and not its norm, no W_O, two more matrices W_QR,
    W_KR without biases. dva-wo: like dva, but W_O stays.
    """
    C, norm = width, 2 * width
    mlp = norm + (4 * C * C + 4 * C) + (4 * C * C + C)
    each = norm + 3 * C * C
    each += mlp if plan == "gpt2" else 2 * C * C
    each += 0 if plan == "dva" else C * C + C
    tables = 2 * vocabulary * C + context * C
    return tables + layers * each + norm


unit.mistakes("""
takes: medium, 16 minutes
hint: GPT-2 small with 50,257 tokens and context 256, head not tied, has 162,419,712. Begin with it.
hint: A LayerNorm has 2 C. W_O has a bias. The MLP is C -> 4C -> C with biases. A norm at the end.
hint: dva at the same size: 112,800,768; with W_O kept, 119,887,872. The paper prints 162M and 112M.
after: Full C × C modifiers and no W_O give 112.8 million, which is the paper's 112M; with W_O kept
    | it would be 119.9. This is what two rounded numbers allow us to say, not what the authors
    | state. In the package: minimal/model/pieces.py: BARE, neither a network nor an output matrix.
12 | you counted the vocabulary once; embedding and output head are two tables here
     2 * vocabulary => vocabulary
12 | q, k and v have no biases in this model
     3 * C * C => 3 * (C * C + C)
 8 | without the MLP, the norm before it goes too
     2 * C * C => 2 * C * C + norm
 8 | the modifiers are two C × C matrices, W_QR and W_KR
     2 * C * C => 2 * C
12 | the table of positions is missing: context * width
     + context * C =>
12 | the last LayerNorm is missing
     each + norm => each
 8 | the bias of W_O is missing
     else C * C + C => else C * C
 4 | the two biases of the MLP are missing: 4 C and C
     (4 * C * C + 4 * C) + (4 * C * C + C) => 8 * C * C
 4 | the MLP's biases are 4 C and C, five C in all
     + 4 * C) => + C)
 4 | the norm before the MLP is missing
     mlp = norm + => mlp =
12 | a LayerNorm has a scale AND a shift: 2 C
     2 * width => width
12 | the norm before attention is missing
     each = norm + => each =
 4 | plain dva has no W_O
     0 if plan == "dva" else =>
 4 | dva has two more matrices, W_QR and W_KR; you counted one
     2 * C * C => (2 - (plan == "dva")) * C * C
 4 | dva has no MLP
     2 * C * C => 2 * C * C + (plan == "dva") * mlp
 4 | without the MLP, the norm before it goes too
     2 * C * C => 2 * C * C + (plan == "dva") * norm
 4 | the MLP has two matrices, C -> 4C and 4C -> C: eight C² in all
     (4 * C * C + C) => C
12 | the tables are missing: tokens, positions, and the output head
     return tables + => return
 8 | a bias is added, not taken away: W_O has C² + C
     else C * C + C => else C * C - C
""")


@drawn
def weighted(r, sharp):
    A = np.exp(r.normal(size=(4, 6)) * sharp)
    return A / A.sum(1, keepdims=True), *normals(r, (6, 5), (4, 5), (6, 5), (4, 5))


@unit.exercise(
    Part("weights that pick one key", 4, weighted(60)), Part("soft weights", 8, weighted(1))
)
def dva_backward(A, v, qr, kr, dout):
    """Gradients of out = sum_j A_ij (v_j + qr_i * kr_j): A (T,S), v and kr (S,C), qr and dout (T,C)
    -> (dv, dqr, dkr), by hand.
    """
    dv, dqr, dkr = np.zeros(v.shape), np.zeros(qr.shape), np.zeros(kr.shape)
    for i, j in np.ndindex(A.shape):
        passed = A[i, j] * dout[i]
        dv[j] += passed
        dqr[i] += passed * kr[j]
        dkr[j] += passed * qr[i]
    return dv, dqr, dkr


unit.mistakes("""
takes: medium, 8 minutes
hint: out = A v + qr * (A kr). Three products, each differentiated by one factor.
hint: Through A @ (…) the gradient goes back as A.T @ (…).
after: The gate's gradient is dout times what the second stream brought, A kr: where that is zero
    | the gate learns nothing. The static values stand outside the gate, so theirs is Aᵀ dout, as
    | always. The package writes no backward: automatic differentiation of
    | minimal/model/attention.py: Dynamic gives these three products.
12 | on its way to kr the gradient passes the gate: dout * qr, then back through A
     passed * qr[i] => passed
12 | qr multiplies A kr, so its gradient is dout * (A kr); you used A v
     passed * kr[j] => passed * v[j]
12 | the static values are not gated: dv is Aᵀ dout
     dv[j] += => dv[j] += qr[i] *
12 | the gradient passes the gate BEFORE it goes through Aᵀ: Aᵀ (dout * qr)
     passed * qr[i] => passed * qr[j % len(qr)]
12 | dqr is dout TIMES what the gate multiplies, A kr
     passed * kr[j] => A[i, j] * kr[j]
12 | dkr starts from dout: Aᵀ (dout * qr)
     passed * qr[i] => A[i, j] * qr[i]
12 | dv is Aᵀ dout alone: what passes the gate belongs to kr
     dv[j] += => dv[j] += (1 + qr[i]) *
12 | v does not pass the gate, so it has no part in dqr: dout * (A kr)
     passed * kr[j] => passed * (v[j] + kr[j])
12 | kr and qr are no factors of their own gradients: Aᵀ (dout * qr), dout * (A kr)
     passed * qr[i] => passed * qr[i] * kr[j]
     passed * kr[j] => passed * kr[j] * qr[i]
12 | dqr takes kr as the query weighs it, A kr, not its plain sum
     passed * kr[j] => dout[i] * kr[j]
""")


def step(S):
    return lambda r: normals(r, *[(2, 1, 5)] * 5, *[(2, S, 5)] * 3)


@unit.exercise(
    Part("the first token, from empty caches", 4, step(0)), Part("a later token", 8, step(4))
)
def dva_step(q, k, v, qr, kr, k_cache, v_cache, kr_cache):
    """One decode step of DVA: five new rows (B,1,C), three caches (B,S,C), S may be 0 -> (out
    (B,1,C), three caches (B,S+1,C)).
    """
    kept = [(k_cache, k), (v_cache, v), (kr_cache, kr)]
    keys, values, others = [np.concatenate(rows, 1) for rows in kept]
    out = np.zeros(q.shape)
    for b in range(len(q)):
        A = causal_weights(q[b], keys[b])
        out[b] = A @ values[b] + qr[b] * (A @ others[b])
    return out, keys, values, others


unit.mistakes(r"""
takes: medium, 12 minutes
hint: Three streams grow by one row: k, v and kr. qr is used once and forgotten.
hint: out = weights @ v + qr * (weights @ kr), with one row of weights.
after: Three streams grow: k, v and kr, where a standard layer has two, so its cache is half as
    | large again. qr is used once and forgotten; qr * kr cannot be cached, because a later query
    | brings a qr of its own. In the package the third stream is kept by minimal/model/attention.py:
    | Dynamic.modifiers.
in: causal_weights
 8 | you used the new kr alone; the modifier keys of all earlier tokens must be cached too
     A @ others[b] => kr[b]
12 | you cached qr * kr; a later query brings its own qr, so kr must be kept by itself
     (kr_cache, kr) => (kr_cache, qr * kr)
     and: qr[b] * (A => (A
 8 | new rows belong behind the cached ones: those of k, of kr and of v
     concatenate(rows => concatenate(rows[::-1]
     (kr_cache, kr) => (kr, kr_cache)
     (v_cache, v) => (v, v_cache)
 8 | your scores are not divided by sqrt(C)
     / np.sqrt(D) =>
12 | the modifiers are missing: qr * (A kr) is added
     + qr[b] * (A @ others[b]) =>
12 | the query's gate is missing: qr * (A kr)
     qr[b] * (A => (A
12 | you gate the values and add kr; qr multiplies A kr
     A @ values[b] + qr[b] * (A @ others[b]) => qr[b] * (A @ values[b]) + A @ others[b]
12 | the caches come back grown by the new row
     return out, keys, values, others => return out, k_cache, v_cache, kr_cache
 8 | kr is kept as it came; A kr is no cache
     return out, keys, values, others => mixed = [causal_weights(*one) @ row for *one, row in zip(q,
   | keys, others)]\nreturn out, keys, values, np.stack(mixed)
12 | v is kept as it came: a later query brings its own qr
     return out => values[:, -1:] += qr * kr\nreturn out
 8 | one row of scores: the softmax runs over the keys, its last axis
     causal_weights(q[b], keys[b]) => np.ones((1, len(keys[b])))
""")


def mlp(biases):
    return lambda r: tuple(
        x * (biases if x.ndim == 1 else 1) for x in normals(r, (7, 4), 7, (4, 7), 4)
    )


def same_function(answer, w1, b1, w2, b2):
    keys, values = need(answer, keys=2, values=2)
    F, C = w1.shape
    refuse(
        keys.shape != (F + 1, C + 1) or values.shape != (F + 1, C),
        "wanted keys (F+1, C+1) and values (F+1, C)",
    )
    x = np.random.default_rng(5).normal(size=(9, C))
    latent = np.maximum(np.concatenate([x, np.ones((9, 1))], 1) @ keys.T, 0) @ values

    def wanted(first, last):
        return np.maximum(x @ w1.T + first * b1, 0) @ w2.T + last * b2

    def is_it(other):
        return np.abs(latent - other).max() < 1e-3

    refuse(
        not is_it(wanted(1, 1)) and is_it(wanted(1, 0)),
        "b2 is missing: let one more latent, whose score is always 1, carry it",
    )
    refuse(
        not is_it(wanted(1, 1)) and is_it(wanted(0, 1)),
        "b1 is missing: the query ends in a 1, so a key can carry its own bias",
    )
    refuse(not is_it(wanted(1, 1)), "relu([x, 1] keysᵀ) values is not what the MLP computes")


@unit.exercise(
    Part("without biases", 4, mlp(0), same_function), Part("with biases", 6, mlp(1), same_function)
)
def latent_set(w1, b1, w2, b2):
    """An MLP as attention to a set of latents. Given x -> relu(x w1ᵀ + b1) w2ᵀ + b2, with w1 (F,C),
    b1 (F,), w2 (C,F), b2 (C,), return keys (F+1, C+1) and values (F+1, C) with relu([x, 1] keysᵀ)
    values equal to it for every x: no softmax, no bias left over.
    """
    keys = np.zeros((len(w1) + 1, w1.shape[1] + 1))
    keys[:-1, :-1], keys[:-1, -1], keys[-1, -1] = w1, b1, 1
    return keys, np.concatenate([w2.T, b2[None]])


unit.mistakes("""
takes: medium, 10 minutes
hint: Row f of w1 is a key, column f of w2 is its value, relu of their product is an attention
    | weight that nobody normalised.
hint: x w1ᵀ + b1 = [x, 1] [w1, b1]ᵀ: the bias is one more entry of the key.
hint: b2 is the value of a latent whose key is (0, …, 0, 1): its score is always 1, and relu(1) = 1.
after: Row f of w1 is a key, column f of w2 its value, and relu of their product a weight that
    | nobody normalises: attention to a set that no token changes. The 1 behind the query carries
    | b1, and one latent whose score is always 1 carries b2; one solution gives it a score of 2 and
    | half of b2, so the set is not unique. The layer is minimal/model/layers.py: MLP.
 6 | b2 is missing
     => (np.concatenate([np.concatenate([w1, b1[:, None]], 1), np.zeros((1, 5))]),
   | np.concatenate([w2.T, b2[None]]))
 6 | b1 is missing
     => (np.concatenate([np.concatenate([w1, 0 * b1[:, None]], 1), np.eye(5)[4:]]),
   | np.concatenate([w2.T, b2[None]]))
10 | wanted keys (F+1, C+1)
     => (np.concatenate([w1, b1[:, None]], 1), w2.T)
""")


near = guesses("tokens", "left")


@unit.exercise(
    Part("tokens", 3, None, near(0, 2 * 768, 153.6)),
    Part("what is left of a layer", 3, None, near(1, 100 * 5 / 12, 3, per_cent)),
)
def predict_cost():
    """Predict: (1) The factored form makes a map and two mixed streams for every sequence. From how
    many tokens on does the map hold more numbers than both streams, at width 768? (2) A standard
    layer loses its MLP (C -> 4C -> C) and W_O and gains W_QR and W_KR. How many per cent of its
    matrix weights are left? A tenth (1), or 3 points (2), counts.
    """
    return 2 * 768, 100 * 5 / 12


unit.mistakes("""
takes: easy, 5 minutes
off for tokens: not within a tenth: a map has T · T numbers, each of two mixed streams T · C
off for what is left of a layer: more than 3 points off: count the C × C products before and after
hint for tokens: T · T against 2 · T · C: what is left when both are divided by T?
hint for what is left of a layer: W_Q, W_K, W_V, W_O are C² each, the MLP's two matrices 4 C² each.
    | Which go, and which come?
after: T · T is more than 2 · T · C from T = 2 C on, 1,536 tokens at width 768: after that the map
    | is the larger part, and a kernel that never holds it is worth writing, as
    | minimal/kernels/dynamic_values.py: mix is. Of a layer's 12 C² the network's 8 and W_O's one go
    | and two come: five are left, 41.7 per cent. So whoever removes the network, as
    | minimal/model/pieces.py: BARE does, has changed far more than the values.
3 | not within a tenth
    => (768, 41.7)
3 | per cent, not a fraction
    => (1536, 5 / 12)
3 | more than 3 points off
    => (1536, 25.0)
    => (1536, 50.0)
""")


TRUE = {
    1: "the query's own gate stands outside the sum",
    3: "the second stream is then zero for everybody, whatever the gate",
    4: "equal weights give equal means, and equal gates take the same from them",
}


def not_dynamic(answer):
    which, A, v, qr, kr = need(answer, which=0, A=2, v=2, qr=2, kr=2)
    refuse(which not in (1, 2, 3, 4), "which must be 1, 2, 3 or 4")
    refuse(which != 2, f"sentence {int(which)} is true: {TRUE.get(int(which))}")
    T = len(A)
    refuse(
        A.shape != (T, T) or not v.shape == qr.shape == kr.shape or len(v) != T,
        "wanted A (T,T) and v, qr, kr (T,C)",
    )
    refuse(
        A.min() < -1e-6 or np.abs(A.sum(1) - 1).max() > 1e-3,
        "A must be attention: no weight negative, every row sums to 1",
    )
    pairs = [(i, j) for i in range(T) for j in range(i) if np.abs(A[i] - A[j]).max() < 1e-6]
    refuse(not pairs, "two queries must have the same row of weights")
    dynamic = A @ v + qr * (A @ kr)
    refuse(
        max(np.abs(dynamic[i] - dynamic[j]).max() for i, j in pairs) < 0.1,
        "your two queries get the same (within 0.1) in both readings: what must differ between "
        "them, and what must it multiply?",
    )


@unit.exercise(Part("the sentence, and a case", 8, None, not_dynamic))
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
    return 2, np.full((2, 2), 0.5), np.zeros((2, 1)), np.array([[0.0], [1.0]]), np.ones((2, 1))


unit.mistakes("""
takes: medium, 10 minutes
hint: Try each sentence on two queries that weigh two keys alike.
hint: With r_j = qr_j * kr_j the modified value of key j is one vector. Two queries with equal
    | weights then get equal outputs.
hint: Give the two queries different qr, and keys whose kr does not vanish.
after: With the product taken position by position, key j has one modified value for everybody:
    | equal rows of weights then give equal outputs, and the layer is a standard one with other
    | values. In v_j + qr_i * kr_j the query's own qr stands outside the sum and tells the two
    | apart. The package reads the paper in pairs: minimal/model/attention.py: Dynamic.
8 | sentence 1 is true
    => (1, *reading_counter_example()[1:])
8 | sentence 4 is true
    => (4, np.full((2, 2), 0.5), np.eye(2), np.ones((2, 2)), np.ones((2, 2)))
8 | your two queries get the same
    => (2, np.full((2, 2), 0.5), np.eye(2), np.ones((2, 2)), np.ones((2, 2)))
    => (2, np.full((2, 2), 0.5), np.eye(2), np.eye(2), np.zeros((2, 2)))
8 | two queries must have the same row
    => (2, np.eye(2), np.eye(2), np.eye(2), np.ones((2, 2)))
""")


@drawn
def tiles(r, S, size):
    """In the hundreds, the first row's first tile lies so far below 0 that exp(score) is 0, even in
    float64."""
    scores = size * r.normal(size=(4, S))
    scores[0, :4] -= 1000 if size > 1 else 0
    return scores, *normals(r, (S, 3), (4, 3), (S, 3)), 4


@unit.exercise(
    Part("ordinary scores, whole tiles", 4, tiles(12, 1)),
    Part("scores in the hundreds, a short last tile", 6, tiles(10, 50)),
)
def dva_tiles(scores, v, qr, kr, tile):
    """Stretch: DVA as flash attention would do it, `tile` keys at a time: scores (T,S), v and kr
    (S,C), qr (T,C) -> (N,T,C).

    Entry n is the DVA output if the keys ended with tile n (the last may be shorter); entry N-1 is
    the whole. No mask. No exp of a positive number, nothing larger than T × tile or T × C but the
    result.
    """
    T, S = scores.shape
    out = np.zeros((-(-S // tile), *qr.shape))
    for t in range(T):
        m, total, o, r = -np.inf, 0.0, 0.0, 0.0
        for n, start in enumerate(range(0, S, tile)):
            part = slice(start, start + tile)
            new = max(m, scores[t, part].max())
            shrink, p = np.exp(m - new), np.exp(scores[t, part] - new)
            total = total * shrink + p.sum()
            o = o * shrink + p @ v[part]
            r = r * shrink + p @ kr[part]
            m = new
            out[n, t] = (o + qr[t] * r) / total
    return out


unit.mistakes(r"""
takes: stretch, 29 minutes
hint: hw01's online softmax with two running outputs, one for v and one for kr, that share the
    | maximum and the sum.
hint: The gate waits outside: after each tile, (o_v + qr * o_kr) / total.
after: Both streams share the maximum and the sum, and the gate waits outside, because it does not
    | depend on the key. One solution merges whole outputs by their lse, which is allowed because
    | the output is linear in the weights. README's question: the cost of the gate is the difference
    | of two runs that differ in the gate alone, with the network in both or in neither, with the
    | same W_O; minimal/variants.py: PLANS has dva and dva-ffn for one side of it.
10 | when the maximum grows BOTH running streams shrink; your modifier stream did not
     r * shrink => r
10 | your n-th result is that of the n-th tile alone; wanted all keys up to its end
     new = max => m, total, o, r = -np.inf, 0.0, 0.0, 0.0\n        new = max
 6 | your running maximum starts at 0: where all scores lie far below, every exp is 0; start at -inf
     -np.inf => 0.0
10 | the modifier stream is divided by the running sum too
     (o + qr[t] * r) / total => o / total + qr[t] * r
10 | the running sum shrinks, too, when the maximum grows
     total * shrink => total
10 | the stream of the values shrinks, too, when the maximum grows
     o * shrink => o
10 | divide both streams by the running sum
     / total =>
10 | the gate or the whole modifier is missing: o + qr * r
     qr[t] * r => r
     + qr[t] * r =>
10 | wanted the result after every tile, one under another; yours is the last
     return out => return out[-1]
10 | shrink is exp(old maximum - new), at most 1
     m - new => new - m
10 | the modifier stream lost what the tiles before brought
     r * shrink + =>
10 | you divided the running stream itself; only what goes out is divided
     out[n, t] = => out[n, t] = o =
""")
