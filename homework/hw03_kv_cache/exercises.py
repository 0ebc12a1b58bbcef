"""hw03: what does a key/value cache have to keep, and for how long?"""

import numpy as np

from homework.by_index import causal_weights
from homework.marking import Part, Unit, drawn, guesses, need, normals, per_cent, refuse

unit = Unit(
    "hw03_kv_cache",
    "What must the cache keep?",
    """Letters: B batch, T new positions, S visible positions, H query heads, G key/value heads, D
    and C widths.""",
)


@drawn
def plan(r, name):
    """Two windowed layers to one that sees everything, beginning anywhere in this order."""
    layers, shift, window = 9 + r.integers(4), r.integers(3), int(r.choice([128, 512, 1024]))
    windows = [[window, window, 0][(n + shift) % 3] for n in range(layers)]
    firsts = {windows.index(window), windows.index(0)}
    anchors = sorted(firsts | {int(n) for n in r.permutation(7)[:3] + 2})
    return name, windows, anchors if name == "anchors" else []


@unit.exercise(
    Part("standard and SVFormer", 4, [plan("svformer"), plan("standard")]),
    Part(
        "CLA, or keys alone, or values alone", 3, [plan("cla"), plan("share-k2"), plan("share-v2")]
    ),
    Part("anchors", 3, plan("anchors")),
)
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
    keys, values = [], []
    for n, window in enumerate(windows):
        kind = [m for m in range(n + 1) if windows[m] == window]
        paired = kind[::2][-1]
        keys.append(paired if plan in ("share-k2", "cla") else n)
        if plan == "svformer":
            values.append(kind[0])
        elif plan == "anchors":
            values.append(max(m for m in kind if m in anchors))
        else:
            values.append(paired if plan in ("share-v2", "cla") else n)
    return keys, values


unit.mistakes("""
takes: medium, 17 minutes
hint: Write it for windows [512, 512, 0, 512, 0] by hand. Which layers may share at all, and whose
    | values does each read under SVFormer?
hint: First list the layers up to n that have n's window. The first of them is SVFormer's; pairs are
    | counted in this list, not in all layers.
hint: The owner of layer n under anchors is the largest number in that list which is an anchor.
after: A layer can read only what was computed before it, and a layer that sees everything finds too
    | few rows in the ring of a windowed one, so models that mix windows share within a kind. A plan
    | is then two lists of layer numbers, and the cache is the distinct ones among them. In the
    | package every plan is a line of minimal/variants.py: PLANS, and a source that reads another
    | layer keeps nothing itself: minimal/model/values.py: Layer.
10 | that is notebook 05's table; here a layer shares only with layers of its own window
     if windows[m] == window =>
 4 | you let each layer read the values of the one below it with its window; SVFormer's layers all
   | read those of the first (Eq 10), here the first with their window
     kind[0] => kind[-2:][0]
 3 | in CLA the second layer of a pair has no keys or values of its own: it reads the first's
     plan in ("share-k2", "cla") => plan == "share-k2"
 3 | you took the nearest anchor of its window, even one above; a layer reads what was made before
     max(m for m in kind if m in anchors) => min([m for m in anchors if windows[m] == window],
   | key=lambda m: (abs(m - n), m))
 4 | SVFormer's layers share within their window: the first layer WITH IT, not layer 0
     kind[0] => 0
 3 | pairs are counted among the layers of one window; you counted all layers
     kind[::2][-1] => n - n % 2
 3 | the first and second layer with a window are a pair; yours starts with the second
     kind[::2][-1] => [kind[0], *kind[1::2]][-1]
 3 | of a pair the second layer reads the first one's; in yours every layer reads its own
     kind[::2][-1] => n
 3 | an anchor must have the layer's own window
     for m in kind if m in anchors => for m in range(n + 1) if m in anchors
 3 | a layer that is no anchor reads the LATEST anchor below it, not the first of them or layer 0
     max(m for m in kind => min(m for m in kind
     max(m for m in kind if m in anchors) => n if n in anchors else kind[0]
 3 | pairs: the third layer with a window begins a new one
     kind[::2][-1] => kind[0]
 3 | pairs: every second layer keeps its own; you let each read the one before it
     kind[::2][-1] => kind[-2:][0]
10 | layers share only with layers of the SAME window; a wider one does not count
     windows[m] == window => windows[m] >= window
""")


@drawn
def model(r, plan, key_bits, value_bits, odd=0):
    """A maker of model shapes with fewer key/value heads than query heads."""
    G = int(r.integers(1, 4))
    layers, batch, tokens = 2 * r.integers(2, 9) + odd, r.integers(1, 9), r.integers(100, 5000)
    heads, width = G * r.integers(2, 5), r.choice([32, 64, 128])
    return plan, layers, batch, tokens, heads, G, width, key_bits, value_bits


two_plans = [
    *(model("svformer", 16, 8), model("cla", 8, 4)),
    *(model("cla", 16, 4, odd=1), model("svformer", 8, 4, odd=1)),
]


def skipping(r):
    return "skipv1", r.integers(3, 20), 2, r.integers(100, 999), 12, 4, 64, 8, 4


@unit.exercise(
    Part("standard, with grouped heads", 4, [model("standard", bits, bits) for bits in (16, 8, 4)]),
    Part("SVFormer and CLA", 4, two_plans),
    Part("SkipV1Former", 4, skipping),
)
def cache_bytes(plan, layers, batch, tokens, heads, groups, width, key_bits, value_bits):
    """Bytes that the cache must hold (a whole number) after `tokens` tokens of `batch` sequences.

    heads: query heads, groups: key/value heads, width: of one head. A number of the keys has
    key_bits bits, one of the values value_bits (16, 8 or 4). Below 16 bits every row, one token in
    one head, keeps a scale of 16 bits beside its numbers. plan: standard, svformer, cla (as in
    `owners`, all layers with one window) or skipv1 (SkipV1Former with half of the heads its own).
    """

    def stream(bits):
        row = width * bits + (16 if bits < 16 else 0)
        return batch * tokens * groups * row // 8

    key, value, total = stream(key_bits), stream(value_bits), 0
    for n in range(layers):
        if plan == "svformer":
            total += key + (0 if n else value)
        elif plan == "cla":
            total += 0 if n % 2 else key + value
        elif plan == "skipv1":
            total += key + (value // 2 if n else value)
        else:
            total += key + value
    return total


unit.mistakes("""
takes: medium, 19 minutes
hint: A row of one head is D numbers of so many bits, and below 16 bits a scale of 16 more. How many
    | rows has a stream, and how many streams of keys, and of values, does each plan keep?
hint: SVFormer: L key streams and one value stream. CLA: only even layers keep anything. Odd depths?
hint: SkipV1Former: above layer 0 half of the value heads are its own, the others layer 0's.
after: Every plan is a number of key streams and a number of value streams of B T G rows;
    | minimal/model/count.py: count finds them by running two tokens through the model. A scale
    | weighs most where rows are narrow: at 4 bits and a width of 32 it is two bytes of eighteen.
    | README's question: SVFormer keeps L + 1 streams, GQA with two query heads to a key head the
    | bytes of L, so GQA's cache is the smaller one at any depth. The abstract's 'better than GQA
    | and CLA' is about loss: section 4.6 finds it at 64,000 tokens, and at 2,048 the reverse for
    | GQA, so ask for length and bytes beside it.
12 | you counted the query heads; the cache holds key/value heads only
     tokens * groups => tokens * heads
12 | you counted bits; a byte has eight of them
     row // 8 => row
12 | the scales are missing: below 16 bits every row of a head keeps two bytes more
     + (16 if bits < 16 else 0) =>
 8 | you kept the values with the keys' bits; they have bits of their own
     stream(value_bits) => stream(key_bits)
12 | you counted one of the two streams; keys and values are both cached
     stream(value_bits) => 0
 4 | SVFormer still keeps one value stream, that of its first layer: L + 1 streams, not L
     (0 if n else value) => 0
 4 | SkipV1Former's first layer is standard: only those above keep half of their value heads
     (value // 2 if n else value) => value // 2
 8 | at 16 bits there is no scale
     (16 if bits < 16 else 0) => 16
 4 | SVFormer keeps one value stream and all key streams, not half of both
     key + (0 if n else value) => (key + value) // 2
 4 | with an odd number of layers, the last one of CLA keeps its own
     0 if n % 2 else key + value => key + value if n % 2 else 0
 4 | SkipV1Former's first layer keeps all its value heads; each of the OTHERS half
     (value // 2 if n else value) => (value // 2 if n else value + value // 2)
 4 | half of the value heads above the first layer are their own, and cached
     (value // 2 if n else value) => (0 if n else value)
12 | every ROW has a scale: one token in one head
     row // 8 => width * bits // 8 + (2 if bits < 16 else 0)
 4 | every layer has a cache of its own
     total += key + value => total = key + value
 4 | SVFormer's layers keep their own keys
     key + (0 if n else value) => 0 if n else key + value
 4 | SVFormer shares values, not keys
     key + (0 if n else value) => value + (0 if n else key)
12 | groups are the key/value heads already; query heads keep nothing
     return total => return total * heads
 4 | CLA's pairs share keys AND values
     0 if n % 2 else key + value => key if n % 2 else key + value
12 | a scale has 16 bits; two BYTES
     (16 if bits => (2 if bits
 4 | SkipV1Former keeps all keys
     key + (value // 2 => key // 2 + (value // 2
""")


def heads(T, S, H, G, K):
    return lambda r: normals(r, (2, T, H, 6), (2, S, G, 6), (2, S, K, 5))


@unit.exercise(
    Part("more value heads than key heads", 7, heads(5, 5, 6, 2, 3)),
    Part("one key head for all, and a cache", 5, heads(3, 7, 4, 1, 2)),
)
def grouped_attention(q, k, v):
    """Causal attention with fewer key heads than query heads, and another number of value heads: q
    (B,T,H,D), k (B,S,G,D), v (B,S,K,E) -> (B,T,H,E).

    H // G neighbouring query heads read the same key head, H // K the same value head. The T
    queries are the last T of S positions.
    """
    B, T, H, D = q.shape
    out = np.zeros((B, T, H, v.shape[3]))
    for b, h in np.ndindex(B, H):
        keys = k[b, :, h * k.shape[2] // H]
        values = v[b, :, h * v.shape[2] // H]
        out[b, :, h] = causal_weights(q[b, :, h], keys) @ values
    return out


unit.mistakes("""
takes: medium, 14 minutes
hint: Give every query head its key head and its value head, then it is ordinary attention:
    | repeat_interleave, not repeat.
hint: The mask compares absolute positions: query t stands at t + S - T.
after: A map belongs to a query head, so who shares keys and who shares values are two questions:
    | neighbours share (0, 0, 1, 1), by repeat_interleave, once for each. The einsum solution copies
    | nothing: it looks at the heads as G groups for the scores and as K groups for the values. The
    | package's definition is minimal/kernels/reference.py: weights, and minimal/kernels/decode.py:
    | split gives one program all query heads of a key head, so that each key is read once.
in: causal_weights
12 | you gave the values the groups of the keys; there are more value heads, each for fewer queries
     h * v.shape[2] // H => h * k.shape[2] // H
12 | your query heads take the key heads by turns (0, 1, 2, 0, 1, 2); neighbours share one (0, 0, 1,
   | 1, 2, 2)
     h * k.shape[2] // H => h % k.shape[2]
     and: h * v.shape[2] // H => h % v.shape[2]
12 | your queries also see the keys after them
     scores[t, t + S - T + 1 :] = -np.inf => pass
12 | your scores are not divided by the square root of D: see notebook 01, 'why the root'
     / np.sqrt(D) =>
 5 | with fewer queries than keys, the queries are the LAST positions: query t sees keys up to t + S
   | - T
     t + S - T + 1 => t + 1
 7 | your KEY heads go by turns; neighbours share one: repeat_interleave
     h * k.shape[2] // H => h % k.shape[2]
12 | your VALUE heads go by turns; neighbours share one: repeat_interleave
     h * v.shape[2] // H => h % v.shape[2]
12 | you divided the scores by D; wanted its root
     np.sqrt(D) => D
12 | you divided by the root of the values' width; wanted that of the keys, D
     q[b, :, h], keys => q[b, :, h] * np.sqrt(D / v.shape[3]), keys
12 | your softmax runs over the queries; the weights of every QUERY sum to 1
     softmax(scores) => softmax(scores, 0)
""")


def values(G, H):
    return lambda r: normals(r, (2, 5, G, 3), (2, 5, H, 3))


@unit.exercise(Part("half the heads", 8, [values(2, 8), values(3, 12), values(2, 12)]))
def skip_heads(v, v1):
    """SkipV1Former's values with fewer heads of its own: v (B,T,G,D) of this layer, v1 (B,T,H,D) of
    the first -> (B,T,H,D).

    The first half of the H heads is the layer's own: neighbouring heads share one of the G, equally
    many each. Head h of the second half is head h of v1.
    """
    G, half = v.shape[2], v1.shape[2] // 2
    lower = [v[:, :, h // (half // G)] for h in range(half)]
    upper = [v1[:, :, half + h] for h in range(half)]
    return np.stack(lower + upper, 2)


unit.mistakes("""
takes: medium, 10 minutes
hint: With 8 heads and 2 of its own: heads 0 and 1 read head 0 of v, heads 2 and 3 read head 1, and
    | heads 4 to 7 are heads 4 to 7 of v1.
hint: First make half as many heads as v1 has out of v, then one torch.cat with the upper half of v1
    | along the head dimension.
after: The upper half of the heads is the first layer's, where it is cached already, and the lower
    | half shares fewer heads: two ways of saving that multiply, as GQA and SVFormer do. In the
    | package the first is minimal/model/values.py: Heads. Where SkipV1Former's paper adds GQA, it
    | groups both halves (2510.16807, Section 5.2).
8 | that is notebook 05's line, which borrows as many heads as are missing: here each of the layer's
  | own heads serves several, and only the upper half is borrowed
    => np.concatenate([v, v1[:, :, v.shape[2] :]], 2)
8 | the heads of the lower half take the layer's own by turns (0, 1, 0, 1); neighbours share one (0,
  | 0, 1, 1)
    h // (half // G) => h % G
8 | you borrowed the first half of layer 1's heads; head h borrows head h, so the upper half
    half + h => h
8 | you put the layer's own heads last; they are the first half
    lower + upper => upper + lower
8 | own and borrowed heads go by turns in yours; the first HALF is the layer's own
    lower + upper => [head for both in zip(lower, upper) for head in both]
8 | you took the mean of own and borrowed; each head is one or the other
    => (np.repeat(v, v1.shape[2] // v.shape[2], 2) + v1) / 2
8 | your borrowed heads are in reverse order; head h is head h of v1
    lower + upper => lower + upper[::-1]
""")


@drawn
def stack(r, L, S=None):
    B, T, C = 2, 5, 6
    matrices = [0.4 * x for x in normals(r, (L, C, C), (L, C, C), (C, C), (L, C, C))]
    shapes = [(B, T, C)] if S is None else [(B, 1, C), (L, B, S, C), (B, S, C)]
    return *normals(r, *shapes), *matrices


def heard(q, k, v):
    """Causal attention with one head: q (B,T,C), k and v (B,S,C) -> (B,T,C)."""
    return np.stack([causal_weights(a, b) @ c for a, b, c in zip(q, k, v, strict=True)])


@unit.exercise(Part("one layer", 4, stack(1)), Part("several layers", 8, stack(3)))
def svformer(x, wq, wk, wv, wo):
    """A stack of SVFormer's attention layers, one head each, no norms, no MLP: x (B,T,C) ->
    (B,T,C).

    wq, wk, wo (L,C,C) belong to their layers; wv (C,C) is the only value matrix. Layer n adds A_n
    V_1 W_O to its input (Eq 10), with causal A_n = softmax(Q_n K_n^T / sqrt(C)) and V_1 = (input of
    the first layer) W_V.
    """
    v = x @ wv
    for n in range(len(wq)):
        q, k = x @ wq[n], x @ wk[n]
        x = x + heard(q, k, v) @ wo[n]
    return x


unit.mistakes(r"""
takes: medium, 16 minutes
hint: Compute v = x @ wv once, before the loop over layers.
hint: In the loop: q = x @ wq[n], k = x @ wk[n], causal weights, x = x + weights @ v @ wo[n].
after: What is shared is the product V_1, not the matrix: W_V applied to each layer's own stream
    | would give other values in every layer, and nothing would be saved. minimal/model/values.py:
    | Layer hands out the owner's rows. One solution of the three is only svformer_step, token by
    | token: that both agree is the promise of a cache.
in: heard, causal_weights
 8 | you shared the matrix W_V and applied it to each layer's stream; SVFormer shares the values
   | themselves, computed once from the input
     heard(q, k, v) => heard(q, k, x @ wv)
12 | the layer's output is added to its input, not put in its place
     x + heard => heard
12 | your queries also see the keys after them
     scores[t, t + S - T + 1 :] = -np.inf => pass
12 | your scores are not divided by sqrt(C)
     / np.sqrt(D) =>
12 | your softmax runs over the queries; the weights of a query sum to 1
     softmax(scores) => softmax(scores, 0)
12 | values are V_1 alone, without the stream
     heard(q, k, v) => heard(q, k, v + x)
12 | queries and keys have changed places
     q, k = x => k, q = x
 8 | V_1 stays as it is: every layer weighs the same values, not those that the last one mixed
     x = x + heard(q, k, v) => v = heard(q, k, v)\n    x = x + v
12 | x stands before its matrix: x @ wq[n], without a transpose
     x @ wq[n], x @ wk[n] => x @ wq[n].T, x @ wk[n].T
 8 | every layer has a map of its own, from its own stream
     x @ wq[n], x @ wk[n] => x @ wq[0], x @ wk[0]
 8 | a layer adds to the stream that the layer below left, not to the input
     range(len(wq)) => range(len(wq) - 1, len(wq))
12 | wo stands behind the mixed values as it is: no transpose
     wo[n] => wo[n].T
""")


@unit.exercise(
    Part("the first token, from an empty cache", 4, stack(3, S=0)),
    Part("a later token", 8, stack(3, S=4)),
)
def svformer_step(x, keys, value, wq, wk, wv, wo):
    """One decode step of `svformer`: x (B,1,C), keys (L,B,S,C), value (B,S,C) -> the three, with S
    + 1 positions kept.

    The cache is L key streams and ONE value stream; S may be 0. Token by token it must equal
    `svformer` on the whole.
    """
    grown, value = [], np.concatenate([value, x @ wv], 1)
    for n in range(len(wq)):
        grown.append(np.concatenate([keys[n], x @ wk[n]], 1))
        x = x + heard(x @ wq[n], grown[n], value) @ wo[n]
    return x, np.stack(grown), value


unit.mistakes(r"""
takes: medium, 15 minutes
hint: The value row is made once, of the first layer's input x, and appended before the loop.
hint: Layer n: append x @ wk[n] to keys[n]; the query x @ wq[n] sees all of it, unmasked (why?).
hint: Collect the L grown key tensors in a list and torch.stack them at the end.
after: The value row is made once, from the first layer's input, and L key rows join it: L + 1 rows
    | a token. The newest token may see all of them, so no mask is needed. README's question: with
    | V_1 stored again in every layer the outputs stay right and the bytes grow; svformer, which has
    | no cache, would pass, and svformer_step would not, since it must return one value stream. In
    | the package minimal/model/values.py: Layer keeps nothing, and so cannot store it twice.
in: heard, causal_weights
 8 | you put the new row in front of the cached ones; it belongs behind them
     [value, x @ wv] => [x @ wv, value]
     and: [keys[n], x @ wk[n]] => [x @ wk[n], keys[n]]
12 | the new token must also see itself: append first, then attend
     x = x + heard(x @ wq[n], grown[n], value) @ wo[n] => if keys.shape[2]:\n        x = x +
   | heard(x @ wq[n], keys[n], value[:, :-1]) @ wo[n]
12 | each of your layers makes the new value from its own stream; V_1's row is made once, from the
   | input of the first layer
     grown.append( => value[:, -1:] = x @ wv\n    grown.append(
12 | the value row you cached is of a deeper layer's stream; V_1 is made of the first layer's input
     return x => value[:, -1:] = x @ wv\nreturn x
12 | the layer's output is added to its input, not put in its place
     x + heard => heard
 8 | your scores are not divided by sqrt(C)
     / np.sqrt(D) =>
12 | every layer's key comes from its own stream, not from the input of the first
     grown, value = [] => first, grown, value = x, []
     and: x @ wk[n] => first @ wk[n]
 8 | new rows of keys and values belong behind the cached ones
     [value, x @ wv] => [x @ wv, value]
     [keys[n], x @ wk[n]] => [x @ wk[n], keys[n]]
""")


@drawn
def curves(r, cross):
    steps = np.arange(160)
    baseline = 3 + 4 * np.exp(-steps / 40)
    trend = (steps - 70 - r.integers(20)) / 400 if cross else -0.5 + steps / 900
    spike = 2.0 * (steps == 20 + r.integers(20))  # one bad batch: only the raw curves cross
    noisy = baseline + trend + spike + r.normal(size=160) * 0.1 + 12 * (steps < 3)
    return noisy, baseline, r.integers(20, 30)


def smooth(r):
    """One crossing, and nothing that would need an average."""
    steps = np.arange(160)
    return 3 + (steps - 60.3 - r.integers(20)) / 40, np.full(160, 3.0), 9


def touching(r):
    """Three crossings, the first of which rests at exactly 0 before it turns back."""
    baseline = 3 + np.arange(160) % 8 / 4
    gap = np.repeat([-1, 0, -1, 1, -1, 1], [40, 20, 20, 20, 20, 40]) * r.choice([0.5, 1.0, 2.0])
    return baseline + gap, baseline, 8


@unit.exercise(
    Part("noisy curves", 5, [curves(True), curves(True), curves(True), touching]),
    Part("never overtaken, or once", 3, [curves(False), smooth, curves(False)]),
)
def critical_point(method, baseline, window):
    """The step (a whole number) at which the baseline overtakes the method, from two loss curves
    (N,); -1 if never.

    Smooth method - baseline by a moving average: m[k] is the mean over steps k … k + window - 1.
    Return the smallest k >= 1 with m[k - 1] < 0 and m[k] >= 0. (ResFormer paper, Fig 11: SVFormer
    is ahead early in training.)
    """
    gap = method - baseline
    m = [sum(gap[k : k + window]) / window for k in range(len(gap) - window + 1)]
    turns = [k for k in range(1, len(m)) if m[k - 1] < 0 <= m[k]]
    return turns[0] if turns else -1


unit.mistakes("""
takes: medium, 10 minutes
hint: m[k] is the mean of (method - baseline)[k : k + window]; N - window + 1 of them (unfold).
hint: The answer is the smallest k >= 1 with m[k - 1] < 0 and m[k] >= 0, or -1.
after: Noisy curves cross many times, so 'the step at which it is overtaken' means nothing before
    | you name the average, the crossing and the step that is called by it. Here it is the first
    | crossing, called by the first step of its window. notebooks/course/crossings.py:
    | critical_point takes the last one, after which the method never leads again, and calls it by
    | where the window ends: say which, before you compare two such numbers.
8 | you read the raw difference; it is noisy: average it over the window first
    gap = method - baseline => gap, window = method - baseline, 1
8 | you took the first average that is not negative; the one just before must be negative
    m[k - 1] < 0 <= m[k] => 0 <= m[k]
8 | your difference has the wrong sign: relative loss is method minus baseline
    method - baseline => baseline - method
5 | m[k] = 0 counts: the method is no longer ahead there
    < 0 <= m[k] => < 0 < m[k]
5 | the curves cross more than once; wanted is the first crossing
    turns[0] => turns[-1]
8 | your step is the end of the window; the average over steps k to k + window - 1 is called k
    turns[0] => turns[0] + window - 1
3 | where it is never overtaken the answer is -1
    else -1 => else 0
8 | k is the FIRST step of its window, not the middle
    turns[0] => turns[0] + window // 2
""")


def saved(windows, tokens):
    """Per cent of the cache that one shared value stream saves, if layer n sees windows[n] keys
    back (0: all)."""
    kept = [tokens if w == 0 else min(tokens, w + 1) for w in windows]
    return 100 * (1 - (sum(kept) + max(kept)) / (2 * sum(kept)))


SIX_OF_24 = 100 * (1 - (24 + 6) / 48)  # six layers of 24 make values


near = guesses("full", "sssl", "one")
SSSL, ONE_IN_12 = saved([512, 512, 512, 0] * 3, 65536), saved([512] * 11 + [0], 65536)


@unit.exercise(
    Part("24 layers, six of which make values", 3, None, near(0, SIX_OF_24, 5, per_cent)),
    Part("three windows to one full layer", 3, None, near(1, SSSL, 5, per_cent)),
    Part("one full layer in twelve", 2, None, near(2, ONE_IN_12, 2, per_cent)),
)
def predict_savings():
    """Predict, then count: how many per cent of the standard cache are saved? Three numbers.

    (1) 24 layers that see everything: every fourth, from layer 0 on, makes values, and the others
    read the latest. (2) SVFormer, 12 layers in the pattern SSSL, 65,536 tokens: the S layers see
    512 keys to their left and keep no more than they see. (3) SVFormer, 12 layers of which only the
    last sees everything, the others as in (2). Within 5 points counts, within 2 for (3).
    """
    return SIX_OF_24, SSSL, ONE_IN_12


unit.mistakes("""
takes: easy, 5 minutes
off for 24 layers, six of which make values: more than 5 points from the count: all 24 streams of
    | keys stay, and six of values
off for three windows to one full layer: more than 5 points from the count: the standard model's
    | windowed layers keep 513 rows each; V_1, which stays whole, is not one of many
off for one full layer in twelve: more than 2 points from the count: as long as one reader sees
    | everything, V_1 stays whole; what do the other eleven value streams weigh?
hint: Write the numbers down before you compute; then let `windowed_bytes` below correct you.
hint: In full streams: windowed layers weigh next to nothing. What is left of the two caches?
after: Six value streams for 24 layers save 37.5 per cent. One for all saves 33.7 with three windows
    | to a full layer, and 4.0 with one full layer in twelve. The windowed layers had little to
    | save, and V_1 must stay whole as long as one reader sees everything.
    | notebooks/course/memory.py: counter counts it for any plan, with rings=True.
8 | per cent, not a fraction
    => (0.375, 0.337, 0.04)
3 | more than 5 points from the count
    => (47.9, 33.7, 4.0)
8 | more than 5 points from the count
    => (50.0, 50.0, 50.0)
    => (62.5, 66.3, 96.0)
5 | more than 5 points from the count
    => (37.5, 45.8, 45.8)
""")


TRUE = {
    1: "row - col may be 0, 1, …, N, and 0 is the query itself",
    2: "with N keys or fewer nothing has been overwritten",
    4: "a softmax and a sum over keys do not know in which order the keys stand",
}


def ring_fails(answer):
    which, q, k, v, N = need(answer, which=0, q=1, k=2, v=2, N=0)
    refuse(which not in (1, 2, 3, 4), "which must be 1, 2, 3 or 4")
    refuse(which != 3, f"sentence {int(which)} is true: {TRUE.get(int(which))}")
    refuse(N != int(N) or N < 1, "N must be a whole number of at least 1")
    refuse(
        k.shape != (len(v), len(q)) or len(v) == 0,
        "wanted q (D,), k (S,D), v (S,E) with the same S and D",
    )
    refuse(
        len(k) <= N, "your sequence is not longer than N: a ring of N entries still holds all of it"
    )

    def out(last):
        return causal_weights(q[None], k[-last:])[0] @ v[-last:]

    refuse(
        np.abs(out(int(N)) - out(int(N) + 1)).max() < 0.01,
        "both rings give the same output (within 0.01): the key "
        "that one of them has lost must matter, and its value must differ from the rest",
    )


@unit.exercise(Part("the sentence, and a case", 8, None, ring_fails))
def ring_counter_example():
    """Find the error. A window of N is masked by `row - col <= N`, and a ring keeps the newest rows
    of a cache. One of four sentences is false; return its number and a case: (which, q, k, v, N).

    (1) The newest query sees itself and N keys to its left. (2) As long as there are at most N
    keys, a ring of N entries gives the output of the mask. (3) A ring of N entries gives it at any
    length. (4) In which order the ring holds its rows does not matter to the output. The case: q
    (D,) the newest query, k (S,D) and v (S,E) all so far, with outputs at least 0.01 apart.
    """
    return 3, np.array([4.0]), np.array([[4.0], [0.0], [0.0]]), np.eye(3), 2


unit.mistakes("""
takes: medium, 9 minutes
hint: The mask lets row - col be 0, 1, …, N. Count them.
hint: Test each sentence on three keys and N = 2.
hint: Make the key exactly N places back match the query strongly, with a value unlike all others.
after: row - col may be 0, 1, …, N, which are N + 1 keys, so a ring of N has lost the oldest of
    | them. If that key matches the query and has a value of its own, the outputs differ.
    | minimal/model/cache.py: Cache keeps N rows between steps and the new row makes N + 1: both
    | counts are right, if one says when one counts.
8 | sentence 1 is true
    => (1, np.array([4.0]), np.array([[4.0], [0.0], [0.0]]), np.eye(3), 2)
8 | sentence 4 is true
    => (4, np.array([4.0]), np.array([[4.0], [0.0], [0.0]]), np.eye(3), 2)
8 | your sequence is not longer than N
    => (3, np.ones(2), np.ones((3, 2)), np.eye(3), 3)
8 | both rings give the same output
    => (3, np.ones(2), np.eye(6)[:, :2], np.ones((6, 2)), 3)
    => (3, np.array([9.0]), np.array([[0.0], [0.0], [9.0], [9.0]]), np.eye(4), 3)
""")


OWN = [0, 1, 2, 3, 4, 5]


@drawn
def windowed(r, keys=OWN, values=OWN):
    L, tokens = 6, r.integers(700, 2000)
    windows = [int(w) for w in r.choice([0, 64, 200, 512, 3000], L)]
    windows[0], windows[1], windows[4], windows[5] = 64, 512, 200, 0
    return list(keys), list(values), windows, 2, tokens, 3, 32, 2


@unit.exercise(
    Part("every layer its own", 4, windowed()),
    Part(
        "shared streams",
        6,
        [
            windowed(values=[0, 0, 0, 0, 4, 4]),
            windowed(keys=[0, 0, 0, 3, 4, 4]),
            windowed([0, 0, 2, 2, 4, 4], [0, 0, 0, 0, 4, 4]),
        ],
    ),
)
def windowed_bytes(key_owners, value_owners, windows, batch, tokens, groups, width, size):
    """Stretch: bytes (a whole number) of a cache whose streams are shared, as `owners` says, AND
    windowed.

    Layer n sees windows[n] keys to its left, and itself; 0: all. After `tokens` tokens a stream
    keeps what some reader of it can see from the newest one, which is included: windows[n] + 1
    rows, if there are as many.
    """
    needs, rows = [min(tokens, w + 1) if w else tokens for w in windows], 0
    for reads in (key_owners, value_owners):
        for owner in set(reads):
            readers = [n for n, o in enumerate(reads) if o == owner]
            rows += max(needs[n] for n in readers)
    return rows * batch * groups * width * size


unit.mistakes("""
takes: stretch, 21 minutes
hint: Rows that reader n needs: all of them for window 0, else min(tokens, window + 1).
hint: For each distinct owner of keys, and of values: the largest need of the layers that read it.
after: A stream lasts as long as its widest reader looks back, whoever made it: an owner with a
    | short window may have to keep everything for a reader without one. In the package that is the
    | `reach` of minimal/model/tape.py: Tape.keep_rows. The einsum solution says it in one line, a
    | dictionary from stream and owner to the largest need.
10 | a window of N keys to the left keeps N + 1 rows, itself included
     w + 1 => w
 6 | a window of 0 means all: it is the widest of its readers, not the narrowest
     max(needs[n] for n in readers) => needs[max(readers, key=lambda n: windows[n])]
 6 | a shared stream must last as long as its widest reader looks back, not as its owner does
     max(needs[n] for n in readers) => needs[owner]
 6 | you counted a stream once for every reader; it is stored once
     set(reads) => reads
 6 | key_owners says whose keys each layer reads: keys can be shared as well
     (key_owners, value_owners) => (range(len(windows)), value_owners)
10 | a window of 0 means that the layer sees everything
     if w else tokens =>
10 | a windowed stream keeps its window alone, not all tokens
     min(tokens, w + 1) if w else tokens => tokens
 6 | readers of one stream share its rows: the longest need counts, not the sum
     max(needs => sum(needs
 6 | keys and values have owners of their own: you took the keys' for both
     (key_owners, value_owners) => (key_owners, key_owners)
10 | keys AND values are cached; you counted the keys alone
     (key_owners, value_owners) => (key_owners,)
10 | keys and values are counted by their owners already: nothing is doubled
     return rows => return 2 * rows
10 | a layer sees w keys to its left, and itself: w + 1, not 2 w + 1
     w + 1 => 2 * w + 1
10 | a stream of keys and one of values are two, even if one layer owns both
     (key_owners, value_owners) => ([*key_owners, *value_owners],)
     and: for w in windows => for w in [*windows, *windows]
""")
