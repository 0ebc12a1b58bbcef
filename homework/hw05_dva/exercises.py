"""hw05: does every pair of tokens deserve its own value, and what does that cost?"""

import numpy as np

from homework import by_index
from homework.marking import For, Part, Unit, Wrong, need, normals, per_cent, refuse, slip

unit = Unit(
    "hw05_dva",
    "Does every pair deserve its own value?",
    """
    Fill in the functions, in any order, and run `pytest homework/hw05_dva` as often as you
    like.
    Letters: B batch, T queries, S keys, C width (of the model and of its one head), F hidden
    width of an MLP, L layers, H heads of width D where there are several; qr and kr are the
    modifier's query and key.
    Functions answer in the dtype of their inputs, and leave these as they were.
""",
)


def heads(G):
    """Nine keys, four queries, six heads, and G heads of modifier keys."""
    return lambda r: normals(r, (9, 6, 5), (4, 6, 5), (9, G, 5))


@unit.exercise(
    Part("more keys than queries", 8, [heads(3), heads(2), heads(6)]),
    Wrong(
        "modifier keys by turns",
        8,
        "your heads take the modifier keys by turns (0, 1, 2, 0, 1, 2); neighbours share one "
        "(0, 0, 1, 1, 2, 2)",
        dict(turns=True),
    ),
    Wrong(
        "keys first",
        8,
        "your first two dimensions are (keys, queries); wanted (queries, keys)",
        dict(keys_first=True),
    ),
    Wrong(
        "a sum",
        8,
        "the modifier is a product, entry by entry, of qr and kr; you added them",
        dict(times=False),
    ),
    Wrong(
        "the modifier alone",
        8,
        "the static value is missing: v_ij = v_j + qr_i * kr_j",
        dict(static=0),
    ),
    slip(
        8,
        "you gated the static value, too; the gate stands at kr alone: v_j + qr_i * kr_j",
        lambda v, qr, kr: pair_values(0 * v, qr, kr) + qr[:, None] * v,
    ),
    slip(
        8,
        "you multiplied v + qr by kr; v is added to the product",
        lambda v, qr, kr: pair_values(0 * v, qr, kr) * (1 + v / qr[:, None]),
    ),
    slip(
        8,
        "you multiplied all three; v is added to the product of qr and kr",
        lambda v, qr, kr: v * pair_values(0 * v, qr, kr),
    ),
    slip(
        8,
        "you took the modifier away; it is added",
        lambda v, qr, kr: pair_values(v, -qr, kr),
    ),
    slip(
        8,
        "you summed the product over the entries; it stays entry by entry",
        lambda v, qr, kr: v + pair_values(0 * v, qr, kr).sum(-1, keepdims=True),
    ),
    slip(
        8,
        "all your heads read the first head of kr; H // G neighbours share one",
        lambda v, qr, kr: pair_values(v, qr, kr[:, :1]),
    ),
    slip(
        8,
        "your heads read the mean of kr's heads; H // G neighbours share one",
        lambda v, qr, kr: pair_values(v, qr, kr.mean(1, keepdims=True)),
    ),
    slip(
        8,
        "those are the static values alone: add qr_i * kr_j",
        lambda v, qr, kr: pair_values(v, 0 * qr, kr),
    ),
    slip(
        8,
        "no sigmoid stands around the product: v_j + qr_i * kr_j",
        lambda v, qr, kr: v + 1 / (1 + np.exp(-pair_values(0 * v, qr, kr))),
    ),
    hints=[
        "Which of the three depend on the query i, and which on the key j?",
        "Give each a dimension of size 1 where it does not vary: v[None], qr[:, None], kr[None]; "
        "and kr as many heads as v has.",
    ],
    after="v_j varies with the key alone, the product with both, so T times S vectors are "
    "needed to write all of them down. Shared modifier keys answer a question of notebook "
    "07: the third stream of the cache is then as much smaller as there are fewer heads in "
    "it. minimal/model/attention.py: Pairs does write "
    "them down: it is the slow reference for the layer that does not.",
    level="easy",
    minutes=5,
)
def pair_values(v, qr, kr, *, keys_first=False, times=True, static=1, turns=False):
    """The value that key j offers to query i in every head, v_ij = v_j + qr_i * kr_j (entry by
    entry), with fewer heads of kr: v (S,H,D), qr (T,H,D), kr (S,G,D) -> (T,S,H,D). H // G
    neighbouring heads share a head of kr.
    """
    out, (H, G) = np.zeros((len(qr), *v.shape)), (v.shape[1], kr.shape[1])
    reads = [h % G if turns else h // (H // G) for h in range(H)]
    for i in range(len(qr)):
        for j in range(len(v)):
            candidates = kr[j, reads]
            out[i, j] = static * v[j] + (qr[i] * candidates if times else qr[i] + candidates)
    return out.swapaxes(0, 1) if keys_first else out


def layer(T, M):
    """One text of T tokens, and M modifiers."""
    matrices = [(6, 6)] * 3 + [(M, 6, 6)] * 2
    return lambda r: (r.normal(size=(2, T, 6)), *(0.5 * x for x in normals(r, *matrices)))


def gated(x, wq, wk, wv, wqr, wkr, modifier):
    """The layer with another modifier: (A, qr, kr) of a text -> (T, C)."""
    out = []
    for text in x:
        A = by_index.weights(text @ wq, text @ wk)
        gates = zip(text @ wqr, text @ wkr, strict=True)
        out.append(A @ (text @ wv) + sum(modifier(A, g, s) for g, s in gates))
    return np.stack(out)


@unit.exercise(
    Part("one token", 4, layer(1, 2)),
    Part("a sequence", 10, layer(5, 3)),
    Wrong(
        "the first modifier alone",
        14,
        "only your first modifier arrives; the sum runs over all M of them",
        dict(which="first"),
    ),
    Wrong(
        "sums multiplied",
        14,
        "you multiplied the sum of all qr by the sum of all kr; every gate has a stream of its own",
        dict(which="sums"),
    ),
    Wrong(
        "the modifier of one position",
        10,
        "you multiplied qr and kr of the SAME position and added that to the value: then every "
        "query is offered the same again; the modifier of a pair takes qr of the query and kr of "
        "the key",
        dict(reading=True),
    ),
    Wrong("no root", 10, "your scores are not divided by sqrt(C)", dict(root=False)),
    Wrong("no mask", 10, "your queries also see the keys after them", dict(causal=False)),
    Wrong(
        "the modifier unweighted",
        10,
        "you added qr times the plain sum of kr; every pair's modifier is weighted like its value",
        dict(weighted=False),
    ),
    slip(
        10,
        "qr and kr have changed places: the query's x wqr gates, the keys' x wkr are mixed",
        lambda x, wq, wk, wv, wqr, wkr: dva(x, wq, wk, wv, wkr, wqr),
    ),
    slip(
        10,
        "the gate belongs to the query itself; you mixed it over the keys, too",
        lambda x, *w: gated(x, *w, lambda A, g, s: (A @ g) * (A @ s)),
    ),
    slip(
        10,
        "you gated each position's own kr; kr is mixed over the keys first",
        lambda x, *w: gated(x, *w, lambda A, g, s: g * s),
    ),
    slip(
        14,
        "you added qr to the mixed kr; the gate multiplies",
        lambda x, *w: gated(x, *w, lambda A, g, s: g + A @ s),
    ),
    slip(
        14,
        "the static values are missing: A v is added to the modifiers",
        lambda x, wq, wk, wv, *others: dva(x, wq, wk, 0 * wv, *others),
    ),
    slip(
        14,
        "you took the mean over the modifiers; they are summed",
        lambda x, wq, wk, wv, wqr, wkr: dva(x, wq, wk, wv, wqr / len(wqr), wkr),
    ),
    slip(
        10,
        "your softmax runs over the queries; the weights of a query sum to 1 over the keys",
        lambda *given: dva(*given, transposed=True),
    ),
    slip(
        14,
        "your gate meets the mixed VALUES; it gates A kr",
        lambda x, wq, wk, wv, *w: gated(x, wq, wk, wv, *w, lambda A, g, s: g * (A @ (x @ wv))),
    ),
    slip(
        14,
        "the gate has no sigmoid: qr multiplies as it is",
        lambda x, *w: gated(x, *w, lambda A, g, s: (A @ s) / (1 + np.exp(-g))),
    ),
    slip(
        14,
        "the layer's input is not added here",
        lambda x, *w: x + dva(x, *w),
    ),
    hints=[
        "For one modifier: sum_j a_ij (v_j + qr_i * kr_j). Which factor does not depend on j? Take "
        "it out of the sum.",
        "Every modifier has a stream of its own under the same map, and a gate of its own outside: "
        "nothing larger than (B,T,T) or (M,B,T,C) is made.",
    ],
    after="No qr_i depends on the key, so each leaves the sum: out = A v + the sum of all "
    "qr * (A kr), one map and M + 1 streams; with one modifier the receiver can gate "
    "only one mean, with M it can take heat from one kind of sender and comfort from "
    "another. In the package, for M = 1: minimal/model/attention.py: Dynamic, and "
    "minimal/kernels/dynamic_values.py: mix, which forms the map once for both. "
    "README's question: with qr the same for every i this is standard attention with "
    "the values x (W_V + W_KR diag(qr)), so the modifier folds into W_V.",
    level="medium",
    minutes=13,
)
def dva(x, wq, wk, wv, wqr, wkr, *, reading=False, weighted=True, which="all", **how):
    """Dynamic value attention with M modifiers, one head, no output matrix: x (B,T,C), wq, wk, wv
    (C,C), wqr, wkr (M,C,C) -> (B,T,C).

    out_i = sum_j a_ij (v_j + sum_m qr_mi * kr_mj), a = causal softmax(q kᵀ / sqrt(C)), with q = x
    wq, k = x wk, v = x wv, qr_m = x wqr[m], kr_m = x wkr[m]. Without a tensor of all pairs' values.
    """
    out = np.zeros(x.shape)
    if which == "first":
        wqr, wkr = wqr[:1], wkr[:1]
    if which == "sums":
        wqr, wkr = wqr.sum(0, keepdims=True), wkr.sum(0, keepdims=True)
    for b in range(len(x)):
        v, qr, kr = x[b] @ wv, x[b] @ wqr, x[b] @ wkr  # (T, C), and (M, T, C) twice
        A = by_index.weights(x[b] @ wq, x[b] @ wk, **how)
        for i in range(x.shape[1]):
            for j in range(x.shape[1]):
                modifier = sum((g[j] if reading else g[i]) * s[j] for g, s in zip(qr, kr))
                out[b, i] += A[i, j] * v[j] + (A[i, j] if weighted else 1.0 * (j <= i)) * modifier
    return out


@unit.exercise(
    Part("one sequence", 3, lambda r: (1, r.integers(100, 3000), 64 * r.integers(2, 20), 4)),
    Part(
        "a batch, half precision",
        5,
        lambda r: (r.integers(2, 30), r.integers(100, 3000), 64 * r.integers(2, 20), 2),
    ),
    Wrong(
        "elements",
        8,
        "those are elements; a byte count multiplies by the size of one",
        dict(sized=False),
    ),
    Wrong(
        "one sequence only", 5, "every sequence of the batch has its own pairs", dict(batched=False)
    ),
    Wrong(
        "one mixed stream", 8, "the factored form mixes two streams: A V and A K_R", dict(streams=1)
    ),
    slip(
        8,
        "naive: every query has a value from EVERY key, so the tokens count twice",
        lambda b, t, w, s: (b * t * w * s, pair_bytes(b, t, w, s)[1]),
    ),
    slip(
        8,
        "the weights A are made on the way, too: tokens * tokens numbers",
        lambda b, t, w, s: (pair_bytes(b, t, w, s)[0], 2 * b * t * w * s),
    ),
    slip(
        8,
        "only two mixed streams are made on the way; the value and the gate are there before",
        lambda b, t, w, s: (pair_bytes(b, t, w, s)[0], b * t * (t + 3 * w) * s),
    ),
    slip(
        8,
        "there is one map A; both streams share it",
        lambda b, t, w, s: (pair_bytes(b, t, w, s)[0], 2 * b * t * (t + w) * s),
    ),
    slip(
        8,
        "a value has `width` numbers, not their square",
        lambda b, t, w, s: (pair_bytes(b, t, w, s)[0] * w, pair_bytes(b, t, w, s)[1]),
    ),
    slip(
        8,
        "naive asks for the tensor of all v_ij alone, without the weights",
        lambda b, t, w, s: (b * t * t * (w + 1) * s, pair_bytes(b, t, w, s)[1]),
    ),
    slip(
        8,
        "you left the size of a number out of the first count",
        lambda b, t, w, s: (pair_bytes(b, t, w, 1)[0], pair_bytes(b, t, w, s)[1]),
    ),
    slip(
        8,
        "you left the size of a number out of the second count",
        lambda b, t, w, s: (pair_bytes(b, t, w, s)[0], pair_bytes(b, t, w, 1)[1]),
    ),
    slip(
        5,
        "the batch is missing in the first count",
        lambda b, t, w, s: (pair_bytes(1, t, w, s)[0], pair_bytes(b, t, w, s)[1]),
    ),
    slip(
        5,
        "the batch is missing in the second count",
        lambda b, t, w, s: (pair_bytes(b, t, w, s)[0], pair_bytes(1, t, w, s)[1]),
    ),
    slip(
        8,
        "wanted bytes, not megabytes",
        lambda *given: tuple(x / 1e6 for x in pair_bytes(*given)),
    ),
    slip(
        8,
        "no mask is asked for: every query has a value from every key",
        lambda b, t, w, s: (b * t * (t + 1) // 2 * w * s, pair_bytes(b, t, w, s)[1]),
    ),
    slip(
        8,
        "map and streams are added; you multiplied tokens by both widths",
        lambda b, t, w, s: (pair_bytes(b, t, w, s)[0], b * t * t * 2 * w * s),
    ),
    hints=[
        "All v_ij: B · T · T · C numbers. The weights: B · T · T. One mixed stream: B · T · C.",
        "For one sequence of 512, width 768, 4 bytes: 805,306,368 and 4,194,304.",
    ],
    after="For one sequence of 512, width 768 and float32, all v_ij are 805 MB and the "
    "factored form makes 4.2 MB, 192 times less: so the pair itself is cheap once it is "
    "written well. The two forms are minimal/model/attention.py: Pairs and "
    "minimal/model/attention.py: Dynamic, and a test holds that they agree.",
    level="easy",
    minutes=4,
)
def pair_bytes(batch, tokens, width, size, *, sized=True, batched=True, streams=2):
    """Bytes (two whole numbers) that one layer makes on the way, for `tokens` queries and keys and
    numbers of `size` bytes:

    (1) naive: the tensor of all v_ij. (2) factored: the weights A and the two mixed streams A V and
    A K_R.
    """
    each = (batch if batched else 1) * (size if sized else 1)
    naive = sum(tokens * width for _ in range(tokens)) * each
    return naive, (sum(tokens for _ in range(tokens)) + streams * tokens * width) * each


def model(plan):
    return lambda r: (
        plan,
        r.integers(2, 13),
        64 * r.integers(2, 20),
        r.integers(1000, 60000),
        r.integers(64, 1025),
    )


@unit.exercise(
    Part("gpt2", 4, [lambda r: ("gpt2", 12, 768, 50257, 256), model("gpt2"), model("gpt2")]),
    Part("dva", 4, [lambda r: ("dva", 12, 768, 50257, 256), model("dva"), model("dva")]),
    Part("dva that keeps W_O", 4, model("dva-wo")),
    Wrong(
        "tied head",
        12,
        "you counted the vocabulary once; embedding and output head are two tables here",
        dict(tables=1),
    ),
    Wrong("biases on q, k, v", 12, "q, k and v have no biases in this model", dict(biased=True)),
    Wrong(
        "a norm without its MLP", 8, "without the MLP, the norm before it goes too", dict(norms=2)
    ),
    Wrong(
        "modifiers as vectors",
        8,
        "the modifiers are two C × C matrices, W_QR and W_KR",
        dict(modifier=1),
    ),
    slip(
        12,
        "the table of positions is missing: context * width",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, 0),
    ),
    slip(
        12,
        "the last LayerNorm is missing",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - 2 * C,
    ),
    slip(
        8,
        "the bias of W_O is missing",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - (plan != "dva") * L * C,
    ),
    slip(
        4,
        "the two biases of the MLP are missing: 4 C and C",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - (plan == "gpt2") * 5 * L * C,
    ),
    slip(
        4,
        "the MLP's biases are 4 C and C, five C in all",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - (plan == "gpt2") * 3 * L * C,
    ),
    slip(
        4,
        "the norm before the MLP is missing",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - (plan == "gpt2") * 2 * L * C,
    ),
    slip(
        12,
        "a LayerNorm has a scale AND a shift: 2 C",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - C - L * C * (1 + (plan == "gpt2")),
    ),
    slip(
        12,
        "the norm before attention is missing",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - 2 * L * C,
    ),
    slip(
        4,
        "plain dva has no W_O",
        lambda plan, L, C, V, T: parameters("dva-wo" if plan == "dva" else plan, L, C, V, T),
    ),
    slip(
        4,
        "dva has two more matrices, W_QR and W_KR; you counted one",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - (plan == "dva") * L * C**2,
    ),
    slip(
        4,
        "dva has no MLP",
        lambda plan, L, C, V, T: (
            parameters(plan, L, C, V, T) + (plan == "dva") * L * (8 * C**2 + 7 * C)
        ),
    ),
    slip(
        4,
        "without the MLP, the norm before it goes too",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) + (plan == "dva") * L * 2 * C,
    ),
    slip(
        4,
        "the MLP has two matrices, C -> 4C and 4C -> C: eight C² in all",
        lambda plan, L, C, V, T: parameters(plan, L, C, V, T) - (plan == "gpt2") * L * 4 * C**2,
    ),
    slip(
        12,
        "the tables are missing: tokens, positions, and the output head",
        lambda plan, L, C, V, T: parameters(plan, L, C, 0, 0),
    ),
    hints=[
        "GPT-2 small with 50,257 tokens and context 256, head not tied: 162,419,712. Reproduce it "
        "first.",
        "A LayerNorm has 2 C. W_O has a bias. The MLP is C -> 4C -> C with biases. One more norm "
        "at the end.",
        "dva at the same size: 112,800,768; with W_O kept, 119,887,872. The paper prints 162M and "
        "112M.",
    ],
    after="Full C × C modifiers and no W_O give 112.8 million, which is the paper's 112M; "
    "with W_O kept it would be 119.9. This is what two rounded numbers allow us to say, "
    "not what the authors state. In the package: minimal/model/pieces.py: BARE, neither "
    "a network nor an output matrix.",
    level="medium",
    minutes=16,
)
def parameters(
    plan, layers, width, vocabulary, context, *, tables=2, biased=False, norms=1, modifier=2
):
    """How many parameters (a whole number)? plan: gpt2, dva, or dva-wo.

    gpt2: token and position embeddings; in each layer LayerNorm (scale and shift), W_Q, W_K, W_V
    without biases, W_O with one, LayerNorm, MLP C -> 4C -> C with biases; a last LayerNorm; an
    output head of its own, no bias. dva: no MLP and not its norm, no W_O, two more matrices W_QR,
    W_KR without biases. dva-wo: like dva, but W_O stays.
    """
    total = vocabulary * width * tables + context * width + 2 * width
    for _ in range(layers):
        total += 2 * width + 3 * (width * width + (width if biased else 0))
        if plan == "gpt2":
            total += 2 * width + (width * 4 * width + 4 * width) + (4 * width * width + width)
        else:
            total += 2 * width**modifier + 2 * width * (norms - 1)
        if plan != "dva":
            total += width * width + width
    return total


def weighted(sharp):
    def make(r):
        A = np.exp(r.normal(size=(4, 6)) * sharp)
        return A / A.sum(1, keepdims=True), *normals(r, (6, 5), (4, 5), (6, 5), (4, 5))

    return make


@unit.exercise(
    Part("weights that pick one key", 4, weighted(60)),
    Part("soft weights", 8, weighted(1)),
    Wrong(
        "the key's modifier without the gate",
        12,
        "on its way to kr the gradient passes the gate: dout * qr, then back through A",
        dict(gate=False),
    ),
    Wrong(
        "the gate sees the values",
        12,
        "qr multiplies A kr, so its gradient is dout * (A kr); you used A v",
        dict(mixed="v"),
    ),
    Wrong(
        "the values gated too",
        12,
        "the static values are not gated: dv is Aᵀ dout",
        dict(gated_v=True),
    ),
    slip(
        12,
        "the gradient passes the gate BEFORE it goes through Aᵀ: Aᵀ (dout * qr)",
        lambda A, v, qr, kr, dout: (
            A.T @ dout,
            dout * (A @ kr),
            (A.T @ dout) * qr[np.arange(len(v)) % len(qr)],
        ),
    ),
    slip(
        12,
        "dqr is dout TIMES what the gate multiplies, A kr",
        lambda A, v, qr, kr, dout: (A.T @ dout, A @ kr, A.T @ (dout * qr)),
    ),
    slip(
        12,
        "dkr starts from dout: Aᵀ (dout * qr)",
        lambda A, v, qr, kr, dout: (A.T @ dout, dout * (A @ kr), A.T @ qr),
    ),
    slip(
        12,
        "dv is Aᵀ dout alone: what passes the gate belongs to kr",
        lambda A, v, qr, kr, dout: (A.T @ (dout + dout * qr), dout * (A @ kr), A.T @ (dout * qr)),
    ),
    slip(
        12,
        "v does not pass the gate, so it has no part in dqr: dout * (A kr)",
        lambda A, v, qr, kr, dout: (A.T @ dout, dout * (A @ (v + kr)), A.T @ (dout * qr)),
    ),
    slip(
        12,
        "kr is no factor of its own gradient: Aᵀ (dout * qr)",
        lambda A, v, qr, kr, dout: (A.T @ dout, dout * (A @ kr), A.T @ (dout * qr) * kr),
    ),
    slip(
        12,
        "qr is no factor of its own gradient: dout * (A kr)",
        lambda A, v, qr, kr, dout: (A.T @ dout, dout * (A @ kr) * qr, A.T @ (dout * qr)),
    ),
    slip(
        12,
        "dqr takes kr as the query weighs it, A kr, not its plain sum",
        lambda A, v, qr, kr, dout: (A.T @ dout, dout * kr.sum(0), A.T @ (dout * qr)),
    ),
    hints=[
        "out = A v + qr * (A kr). Three products, each differentiated by one factor.",
        "Through A @ (…) the gradient goes back as A.T @ (…).",
    ],
    after="The gate's gradient is dout times what the second stream brought, A kr: where that "
    "is zero the gate learns nothing. The static values stand outside the gate, so "
    "theirs is Aᵀ dout, as always. The package writes no backward for it: automatic "
    "differentiation of minimal/model/attention.py: Dynamic gives these three products, "
    "as in the solution that uses it.",
    level="medium",
    minutes=8,
)
def dva_backward(A, v, qr, kr, dout, *, gate=True, mixed="kr", gated_v=False):
    """Gradients of out = sum_j A_ij (v_j + qr_i * kr_j): A (T,S), v and kr (S,C), qr and dout (T,C)
    -> (dv, dqr, dkr), by hand.
    """
    dv, dqr, dkr = np.zeros(v.shape), np.zeros(qr.shape), np.zeros(kr.shape)
    for i in range(len(qr)):
        for j in range(len(v)):
            dv[j] += A[i, j] * dout[i] * (qr[i] if gated_v else 1)
            dqr[i] += A[i, j] * dout[i] * (kr[j] if mixed == "kr" else v[j])
            dkr[j] += A[i, j] * dout[i] * (qr[i] if gate else 1)
    return dv, dqr, dkr


def step(S):
    return lambda r: (
        *(r.normal(size=(2, 1, 5)) for _ in range(5)),
        *(r.normal(size=(2, S, 5)) for _ in range(3)),
    )


def stepped(
    q, k, v, qr, kr, *caches, root=True, exchanged=False, mixed=False, even=False, front=""
):
    """What a step returns, (B,1,C), by slips that change no cache."""
    rows = [np.concatenate([old, new], 1) for old, new in zip(caches, (k, v, kr), strict=True)]
    A = np.stack(
        [by_index.weights(q[b], rows[0][b], causal=False, root=root) for b in range(len(q))]
    )
    A = A * 0 + 1 if even else A
    if front:
        place = dict(v=1, kr=2)[front]
        rows[place] = np.concatenate([(v, kr)[place - 1], caches[place]], 1)
    values, others = A @ rows[1], A @ rows[2]
    if mixed:
        return others
    return qr * values + others if exchanged else values + qr * others


@unit.exercise(
    Part("the first token, from empty caches", 4, step(0)),
    Part("a later token", 8, step(4)),
    Wrong(
        "two caches",
        8,
        "you used the new kr alone; the modifier keys of all earlier tokens must be cached too",
        dict(forgets=True),
    ),
    Wrong(
        "products cached",
        12,
        "you cached qr * kr; a later query brings its own qr, so kr must be kept by itself",
        dict(product=True),
    ),
    Wrong("new rows in front", 8, "new rows belong behind the cached ones", dict(front=True)),
    slip(
        8,
        "your scores are not divided by sqrt(C)",
        lambda *given: (stepped(*given, root=False), *dva_step(*given)[1:]),
    ),
    slip(
        12,
        "the modifiers are missing: qr * (A kr) is added",
        lambda q, k, v, qr, *others: dva_step(q, k, v, 0 * qr, *others),
    ),
    slip(
        12,
        "the query's gate is missing: qr * (A kr)",
        lambda q, k, v, qr, *others: dva_step(q, k, v, 0 * qr + 1, *others),
    ),
    slip(
        12,
        "you gate the values and add kr; qr multiplies A kr",
        lambda q, k, v, qr, kr, *caches: (
            stepped(q, k, v, qr, kr, *caches, exchanged=True),
            *dva_step(q, k, v, qr, kr, *caches)[1:],
        ),
    ),
    slip(
        12,
        "the caches come back grown by the new row",
        lambda *given: (dva_step(*given)[0], *given[5:]),
    ),
    slip(
        8,
        "kr is kept as it came; A kr is no cache",
        lambda *given: (*dva_step(*given)[:3], stepped(*given, mixed=True)),
    ),
    slip(
        12,
        "v is kept as it came: a later query brings its own qr",
        lambda q, k, v, qr, kr, kc, vc, krc: (
            dva_step(q, k, v, qr, kr, kc, vc, krc)[0] + 0,
            *dva_step(q, k, v + qr * kr, qr, kr, kc, vc, krc)[1:],
        ),
    ),
    slip(
        8,
        "one row of scores: the softmax runs over the keys, its last axis",
        lambda *given: (stepped(*given, even=True), *dva_step(*given)[1:]),
    ),
    slip(
        8,
        "new rows of kr belong behind the cached ones, as those of k and v",
        lambda *given: (
            stepped(*given, front="kr"),
            *dva_step(*given)[1:3],
            dva_step(*given, front=True)[3],
        ),
    ),
    slip(
        8,
        "new rows of v belong behind the cached ones, as those of k and kr",
        lambda *given: (
            stepped(*given, front="v"),
            dva_step(*given)[1],
            dva_step(*given, front=True)[2],
            dva_step(*given)[3],
        ),
    ),
    hints=[
        "Three streams grow by one row: k, v and kr. qr is used once and forgotten.",
        "out = weights @ v + qr * (weights @ kr), with one row of weights.",
    ],
    after="Three streams grow: k, v and kr, where a standard layer has two, so its cache is "
    "half as large again. qr is used once and forgotten; qr * kr cannot be cached, "
    "because a later query brings a qr of its own. In the package the third stream is "
    "kept by minimal/model/attention.py: Dynamic.modifiers.",
    level="medium",
    minutes=12,
)
def dva_step(
    q, k, v, qr, kr, k_cache, v_cache, kr_cache, *, forgets=False, product=False, front=False
):
    """One decode step of DVA: five new rows (B,1,C), three caches (B,S,C), S may be 0 -> (out
    (B,1,C), three caches (B,S+1,C)).
    """
    grown = [
        np.concatenate([new, old] if front else [old, new], 1)
        for old, new in ((k_cache, k), (v_cache, v), (kr_cache, qr * kr if product else kr))
    ]
    out = np.zeros(q.shape)
    for b in range(len(q)):
        A = by_index.weights(q[b], grown[0][b], causal=False)
        modifiers = np.repeat(kr[b], A.shape[1], 0) if forgets else grown[2][b]
        out[b] = A @ grown[1][b] + (1 if product else qr[b]) * (A @ modifiers)
    return out, *grown


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
    Part("without biases", 4, mlp(0), same_function),
    Part("with biases", 6, mlp(1), same_function),
    Wrong(
        "without b2",
        6,
        "b2 is missing",
        returns=lambda w1, b1, w2, b2: (
            np.concatenate([np.concatenate([w1, b1[:, None]], 1), np.zeros((1, 5))]),
            np.concatenate([w2.T, b2[None]]),
        ),
    ),
    Wrong(
        "without b1",
        6,
        "b1 is missing",
        returns=lambda w1, b1, w2, b2: (
            np.concatenate([np.concatenate([w1, 0 * b1[:, None]], 1), np.eye(5)[4:]]),
            np.concatenate([w2.T, b2[None]]),
        ),
    ),
    Wrong(
        "no latent for the bias",
        10,
        "wanted keys (F+1, C+1)",
        returns=lambda w1, b1, w2, b2: (np.concatenate([w1, b1[:, None]], 1), w2.T),
    ),
    hints=[
        "Row f of w1 is a key, column f of w2 is its value, relu of their product is an attention "
        "weight that nobody normalised.",
        "x w1ᵀ + b1 = [x, 1] [w1, b1]ᵀ: the bias is one more entry of the key.",
        "b2 is the value of a latent whose key is (0, …, 0, 1): its score is always 1, and "
        "relu(1) = 1.",
    ],
    after="Row f of w1 is a key, column f of w2 its value, and relu of their product a weight "
    "that nobody normalises: attention to a set that no token changes. The 1 behind the "
    "query carries b1, and one latent whose score is always 1 carries b2; one solution "
    "gives it a score of 2 and half of b2, so the set is not unique. The layer that it "
    "describes is minimal/model/layers.py: MLP.",
    level="medium",
    minutes=10,
)
def latent_set(w1, b1, w2, b2):
    """An MLP as attention to a set of latents. Given x -> relu(x w1ᵀ + b1) w2ᵀ + b2, with w1 (F,C),
    b1 (F,), w2 (C,F), b2 (C,), return keys (F+1, C+1) and values (F+1, C) with relu([x, 1] keysᵀ)
    values equal to it for every x: no softmax, no bias left over.
    """
    keys = np.zeros((len(w1) + 1, w1.shape[1] + 1))
    keys[:-1, :-1], keys[:-1, -1], keys[-1, -1] = w1, b1, 1
    return keys, np.concatenate([w2.T, b2[None]])


def told(which, accepts, why):
    def accept(answer):
        refuse(not accepts(need(answer, tokens=0, left=0)[which]), why)

    return accept


@unit.exercise(
    Part(
        "tokens",
        3,
        None,
        told(
            0,
            lambda said: 1536 / 1.1 < said < 1536 * 1.1,
            "not within a tenth: a map has T · T numbers, a mixed stream T · C, and there are two "
            "streams",
        ),
    ),
    Part(
        "what is left of a layer",
        3,
        None,
        told(
            1,
            lambda said: abs(per_cent(said) - 100 * 5 / 12) < 3,
            "more than 3 points off: count the C × C products of a layer, before and after",
        ),
    ),
    Wrong("one stream", 3, "not within a tenth", returns=lambda: (768, 41.7)),
    Wrong("a fraction", 3, "per cent, not a fraction", returns=lambda: (1536, 5 / 12)),
    Wrong("the modifiers forgotten", 3, "more than 3 points off", returns=lambda: (1536, 25.0)),
    Wrong("W_O kept", 3, "more than 3 points off", returns=lambda: (1536, 50.0)),
    hints=[
        For("tokens", "T · T against 2 · T · C: what is left when both are divided by T?"),
        For(
            "what is left of a layer",
            "W_Q, W_K, W_V, W_O are C² each, the MLP's two matrices 4 C² each. Which go, and which "
            "come?",
        ),
    ],
    after="T · T is more than 2 · T · C from T = 2 C on, 1,536 tokens at width 768: after that "
    "the map is the larger part, and a kernel that never holds it is worth writing, as "
    "minimal/kernels/dynamic_values.py: mix is. Of a layer's 12 C² the network's 8 and "
    "W_O's one go and two come: five are left, 41.7 per cent. So whoever removes the "
    "network, as minimal/model/pieces.py: BARE does, has changed far more than the "
    "values.",
    level="easy",
    minutes=5,
)
def predict_cost():
    """Predict: (1) The factored form makes a map and two mixed streams for every sequence. From how
    many tokens on does the map hold more numbers than both streams, at width 768? (2) A standard
    layer loses its MLP (C -> 4C -> C) and W_O and gains W_QR and W_KR. How many per cent of its
    matrix weights are left? A tenth (1), or 3 points (2), counts.
    """
    return 2 * 768, 100 * 5 / 12


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


@unit.exercise(
    Part("the sentence, and a case", 8, None, not_dynamic),
    Wrong(
        "the first sentence",
        8,
        "sentence 1 is true",
        returns=lambda: (1, *reading_counter_example()[1:]),
    ),
    Wrong(
        "the still gate",
        8,
        "sentence 4 is true",
        returns=lambda: (4, np.full((2, 2), 0.5), np.eye(2), np.ones((2, 2)), np.ones((2, 2))),
    ),
    Wrong(
        "the same gate",
        8,
        "your two queries get the same",
        returns=lambda: (2, np.full((2, 2), 0.5), np.eye(2), np.ones((2, 2)), np.ones((2, 2))),
    ),
    Wrong(
        "nothing to gate",
        8,
        "your two queries get the same",
        returns=lambda: (2, np.full((2, 2), 0.5), np.eye(2), np.eye(2), np.zeros((2, 2))),
    ),
    Wrong(
        "two rows of weights",
        8,
        "two queries must have the same row",
        returns=lambda: (2, np.eye(2), np.eye(2), np.eye(2), np.ones((2, 2))),
    ),
    hints=[
        "Try each sentence on two queries that weigh two keys alike.",
        "With r_j = qr_j * kr_j the modified value of key j is one vector. Two queries with equal "
        "weights then get equal outputs.",
        "Give the two queries different qr, and keys whose kr does not vanish.",
    ],
    after="With the product taken position by position, key j has one modified value for "
    "everybody: equal rows of weights then give equal outputs, and the layer is a "
    "standard one with other values. In v_j + qr_i * kr_j the query's own qr stands "
    "outside the sum and tells the two apart. The package reads the paper in pairs: "
    "minimal/model/attention.py: Dynamic.",
    level="medium",
    minutes=15,
)
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


def tiles(S, size):
    """In the hundreds, the first row's first tile lies so far below 0 that exp(score) is 0, even in
    float64."""

    def make(r):
        scores = size * r.normal(size=(4, S))
        scores[0, :4] -= 1000 if size > 1 else 0
        return scores, *normals(r, (S, 3), (4, 3), (S, 3)), 4

    return make


def running(
    scores,
    v,
    qr,
    kr,
    tile,
    total="",
    o="",
    r="",
    divided=True,
    back=False,
    again=False,
):
    """The same by tiles, with one step of the running sums done otherwise."""
    m, sums, out = np.full((len(scores), 1), -np.inf), [0.0, 0.0, 0.0], []
    for start in range(0, scores.shape[1], tile):
        part = slice(start, start + tile)
        top = scores[:, part].max(1, keepdims=True)
        new = np.maximum(m, top)
        p, shrink = np.exp(scores[:, part] - new), np.exp(new - m if back else m - new)
        brings = [p.sum(1, keepdims=True), p @ v[part], p @ kr[part]]
        for i, how in enumerate((total, o, r)):
            before = 0 if how == "new" else sums[i] if how == "grows" else sums[i] * shrink
            sums[i] = before + brings[i]
        m = new
        out.append((sums[1] + qr * sums[2]) / (sums[0] if divided else 1))
        sums[1] = out[-1] if again else sums[1]
    return np.stack(out)


@unit.exercise(
    Part("ordinary scores, whole tiles", 4, tiles(12, 1)),
    Part("scores in the hundreds, a short last tile", 6, tiles(10, 50)),
    Wrong(
        "one stream not rescaled",
        10,
        "when the maximum grows BOTH running streams shrink; your modifier stream did not",
        dict(both=False),
    ),
    Wrong(
        "each tile by itself",
        10,
        "your n-th result is that of the n-th tile alone; wanted all keys up to its end",
        dict(alone=True),
    ),
    Wrong(
        "starts at 0",
        6,
        "your running maximum starts at 0: where all scores lie far below, every exp is 0; start "
        "at -inf",
        dict(least=0.0),
    ),
    Wrong(
        "gate without division",
        10,
        "the modifier stream is divided by the running sum too",
        dict(divided=False),
    ),
    slip(
        10,
        "the running sum shrinks, too, when the maximum grows",
        running,
        total="grows",
    ),
    slip(
        10,
        "the stream of the values shrinks, too, when the maximum grows",
        running,
        o="grows",
    ),
    slip(
        10,
        "divide both streams by the running sum",
        running,
        divided=False,
    ),
    slip(
        10,
        "the gate is missing: o + qr * r",
        lambda scores, v, qr, kr, tile: dva_tiles(scores, v, 0 * qr + 1, kr, tile),
    ),
    slip(
        10,
        "the modifier stream is missing: o + qr * r",
        lambda scores, v, qr, kr, tile: dva_tiles(scores, v, 0 * qr, kr, tile),
    ),
    slip(
        10,
        "wanted the result after every tile, one under another; yours is the last",
        lambda *given: dva_tiles(*given)[-1],
    ),
    slip(
        10,
        "shrink is exp(old maximum - new), at most 1",
        running,
        back=True,
    ),
    slip(
        10,
        "the modifier stream lost what the tiles before brought",
        running,
        r="new",
    ),
    slip(
        10,
        "you divided the running stream itself; only what goes out is divided",
        running,
        again=True,
    ),
    hints=[
        "hw01's online softmax with two running outputs, one for v and one for kr, that share the "
        "maximum and the sum.",
        "The gate waits outside: after each tile, (o_v + qr * o_kr) / total.",
    ],
    after="Both streams share the maximum and the sum, and the gate waits outside, because it "
    "does not depend on the key. One solution merges whole outputs by their lse, which "
    "is allowed because the output is linear in the weights. README's question: the "
    "cost of the gate is the difference of two runs that differ in the gate alone, with "
    "the network in both or in neither, with the same W_O; minimal/variants.py: PLANS "
    "has dva and dva-ffn for one side of it.",
    level="stretch",
    minutes=29,
)
def dva_tiles(scores, v, qr, kr, tile, *, both=True, alone=False, divided=True, least=-np.inf):
    """Stretch: DVA as flash attention would do it, `tile` keys at a time: scores (T,S), v and kr
    (S,C), qr (T,C) -> (N,T,C).

    Entry n is the DVA output if the keys ended with tile n (the last may be shorter); entry N-1 is
    the whole. No mask. No exp of a positive number, nothing larger than T × tile or T × C but the
    result.
    """
    (T, S), out = scores.shape, []
    m, total, o, r = (
        np.full(T, least),
        np.zeros(T),
        np.zeros((T, v.shape[1])),
        np.zeros((T, v.shape[1])),
    )
    for start in range(0, S, tile):
        if alone:
            m, total, o, r = np.full(T, least), np.zeros(T), o * 0, r * 0
        for t in range(T):
            columns = range(start, min(start + tile, S))
            new = max(m[t], max(scores[t, s] for s in columns))
            shrink = np.exp(m[t] - new)
            total[t] = total[t] * shrink + sum(np.exp(scores[t, s] - new) for s in columns)
            o[t] = o[t] * shrink + sum(np.exp(scores[t, s] - new) * v[s] for s in columns)
            r[t] = r[t] * (shrink if both else 1) + sum(
                np.exp(scores[t, s] - new) * kr[s] for s in columns
            )
            m[t] = new
        out.append((o + (qr * r if divided else qr * r * total[:, None])) / total[:, None])
    return np.stack(out)
