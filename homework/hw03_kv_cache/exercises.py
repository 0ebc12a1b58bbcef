"""hw03: what does a key/value cache have to keep, and for how long?"""

import numpy as np

from homework import by_index
from homework.marking import Part, Unit, Wrong, need, normals, per_cent, refuse, slip

unit = Unit(
    "hw03_kv_cache",
    "What must the cache keep?",
    """
    Fill in the functions, in any order, and run `pytest homework/hw03_kv_cache` as often as you
    like.
    Letters: B batch, T new positions, S visible positions, H query heads, G key/value heads, D
    and C widths.
    Functions answer in the dtype of their inputs, and leave their inputs as they
    were.
""",
)


def by_turns(rows, q):
    return np.tile(rows, (1, 1, q.shape[2] // rows.shape[2], 1))


def side_by_side(rows, q):
    return np.repeat(rows, q.shape[2] // rows.shape[2], 2)


def plan(name):
    """Two windowed layers to one that sees everything, beginning anywhere in this order."""

    def make(r):
        layers, shift, window = 9 + r.integers(4), r.integers(3), int(r.choice([128, 512, 1024]))
        windows = [[window, window, 0][(n + shift) % 3] for n in range(layers)]
        firsts = {windows.index(window), windows.index(0)}
        anchors = sorted(firsts | {int(n) for n in r.permutation(7)[:3] + 2})
        return name, windows, anchors if name == "anchors" else []

    return make


def owned(plan, windows, anchors, first=None, paired=None, latest=None, same=None):
    """The two lists, with one rule changed."""
    keys, values = [], []
    for n, window in enumerate(windows):
        kind = [m for m in range(n + 1) if (same or np.equal)(windows[m], window)]
        pair = paired(kind, n) if paired else kind[(len(kind) - 1) // 2 * 2]
        anchor = max([m for m in kind if m in anchors], default=n)
        anchor = latest(kind, n) if latest else anchor
        value = dict(svformer=first(kind) if first else kind[0], cla=pair, anchors=anchor)
        value["share-v2"] = pair
        keys.append(pair if plan in ("cla", "share-k2") else n)
        values.append(value.get(plan, n))
    return keys, values


@unit.exercise(
    Part("standard and SVFormer", 4, [plan("svformer"), plan("standard")]),
    Part(
        "CLA, or keys alone, or values alone", 3, [plan("cla"), plan("share-k2"), plan("share-v2")]
    ),
    Part("anchors", 3, plan("anchors")),
    Wrong(
        "notebook 05's table",
        10,
        "that is notebook 05's table, for layers that all see everything: here a layer shares only "
        "with layers of its own window",
        dict(kinds=False),
    ),
    Wrong(
        "the layer below",
        4,
        "you let each layer read the values of the one below it with its window; SVFormer's layers "
        "all read those of the first (Eq 10), here the first with their window",
        dict(first=lambda kind: kind[max(len(kind) - 2, 0)]),
    ),
    Wrong(
        "CLA shares values only",
        3,
        "in CLA the second layer of a pair has neither keys nor values of its own: it reads "
        "both from the first",
        dict(cla=("v",)),
    ),
    Wrong(
        "the nearest anchor",
        3,
        "you took the nearest anchor of its window, even one that lies above; a layer can only "
        "read what was computed before it",
        dict(nearest=True),
    ),
    slip(
        4,
        "SVFormer's layers share within their window: the first layer WITH IT, not layer 0",
        owned,
        first=lambda kind: 0,
    ),
    slip(
        3,
        "pairs are counted among the layers of one window; you counted all layers",
        owned,
        paired=lambda kind, n: n - n % 2,
    ),
    slip(
        3,
        "the first and second layer with a window are a pair; yours starts with the second",
        owned,
        paired=lambda kind, n: kind[(len(kind) // 2 * 2) - (len(kind) % 2 == 0)],
    ),
    slip(
        3,
        "an anchor must have the layer's own window",
        lambda plan, windows, anchors: owned(
            plan,
            windows,
            anchors,
            latest=lambda kind, n: max([m for m in range(n + 1) if m in anchors], default=n),
        ),
    ),
    slip(
        3,
        "a layer reads the LATEST anchor below it, not the first",
        lambda plan, windows, anchors: owned(
            plan,
            windows,
            anchors,
            latest=lambda kind, n: min([m for m in kind if m in anchors], default=n),
        ),
    ),
    slip(
        3,
        "a layer that is no anchor reads the latest anchor below it, not the first layer",
        lambda plan, windows, anchors: owned(
            plan, windows, anchors, latest=lambda kind, n: n if n in anchors else kind[0]
        ),
    ),
    slip(
        3,
        "pairs: the third layer with a window begins a new one",
        owned,
        paired=lambda kind, n: kind[0],
    ),
    slip(
        3,
        "pairs: every second layer keeps its own; you let each read the one before it",
        owned,
        paired=lambda kind, n: kind[-2] if len(kind) > 1 else n,
    ),
    slip(
        10,
        "layers share only with layers of the SAME window; a wider one does not count",
        owned,
        same=lambda a, b: a >= b,
    ),
    hints=[
        "Write it for windows [512, 512, 0, 512, 0] by hand. Which layers may share at all, and "
        "whose values does each read under SVFormer?",
        "First list the layers up to n that have n's window. The first of them is SVFormer's; "
        "pairs are counted in this list, not in all layers.",
        "The owner of layer n under anchors is the largest number in that list which is an anchor.",
    ],
    after="A layer can read only what was computed before it, and a layer that sees everything "
    "finds too few rows in the ring of a windowed one, so models that mix windows share within a "
    "kind. A plan is then two lists of layer numbers, and the cache is the distinct ones among "
    "them. In the package every plan is a line of minimal/variants.py: PLANS, and a source that "
    "reads another layer keeps nothing itself: minimal/model/values.py: Layer.",
    level="medium",
    minutes=17,
)
def owners(
    plan,
    windows,
    anchors,
    *,
    kinds=True,
    first=lambda kind: kind[0],
    cla=("k", "v"),
    nearest=False,
):
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
        kind = [m for m in range(n + 1) if windows[m] == window or not kinds]
        paired = kind[len(kind) - 1 - (len(kind) - 1) % 2]
        made = [a for a in anchors if windows[a] == window or not kinds]
        keys.append(paired if plan == "share-k2" or (plan == "cla" and "k" in cla) else n)
        if plan == "svformer":
            values.append(first(kind))
        elif plan == "anchors" and nearest:
            values.append(min(made, key=lambda a: (abs(a - n), a)))
        elif plan == "anchors":
            values.append(max(a for a in made if a <= n))
        elif plan == "share-v2" or (plan == "cla" and "v" in cla):
            values.append(paired)
        else:
            values.append(n)
    return keys, values


def model(plan, key_bits, value_bits, odd=0):
    """A maker of model shapes with fewer key/value heads than query heads."""

    def make(r):
        G = int(r.integers(1, 4))
        return (
            plan,
            2 * r.integers(2, 9) + odd,
            r.integers(1, 9),
            r.integers(100, 5000),
            G * r.integers(2, 5),
            G,
            r.choice([32, 64, 128]),
            key_bits,
            value_bits,
        )

    return make


def held(
    plan,
    layers,
    batch,
    tokens,
    heads,
    groups,
    width,
    key_bits,
    value_bits,
    scale=16,
    scales="each",
    scale_at_16=False,
    **otherwise,
):
    """The bytes, with one rule changed: a plan's sum, or how scales are counted."""

    def stream(bits):
        rows = batch * tokens * groups
        more = scale if bits < 16 or scale_at_16 else 0
        return (rows * width * bits + (rows if scales == "each" else 1) * more) // 8

    rules = dict(
        svformer=lambda L, k, v: L * k + v,
        cla=lambda L, k, v: (L + 1) // 2 * (k + v),
        skipv1=lambda L, k, v: L * k + v + (L - 1) * v // 2,
        standard=lambda L, k, v: L * (k + v),
    )
    return (rules | otherwise)[plan](layers, stream(key_bits), stream(value_bits))


@unit.exercise(
    Part(
        "standard, with grouped heads",
        4,
        [model("standard", bits, bits) for bits in (16, 8, 4)],
    ),
    Part(
        "SVFormer and CLA",
        4,
        [
            model("svformer", 16, 8),
            model("cla", 8, 4),
            model("cla", 16, 4, odd=1),
            model("svformer", 8, 4, odd=1),
        ],
    ),
    Part(
        "SkipV1Former",
        4,
        lambda r: ("skipv1", r.integers(3, 20), 2, r.integers(100, 999), 12, 4, 64, 8, 4),
    ),
    Wrong(
        "query heads",
        12,
        "you counted the query heads; the cache holds key/value heads only",
        dict(by="heads"),
    ),
    Wrong(
        "bits",
        12,
        "you counted bits; a byte has eight of them",
        dict(of_bits=1),
    ),
    Wrong(
        "no scales",
        12,
        "the scales are missing: below 16 bits every row of a head keeps two bytes more",
        dict(scale=0),
    ),
    Wrong(
        "one precision",
        8,
        "you kept the values with the keys' bits; they have bits of their own",
        dict(one_precision=True),
    ),
    Wrong(
        "keys only",
        12,
        "you counted one of the two streams; keys and values are both cached",
        dict(streams=1),
    ),
    Wrong(
        "no first value",
        4,
        "SVFormer still keeps one value stream, that of its first layer: L + 1 streams, not L",
        dict(kept_values=0),
    ),
    Wrong(
        "skips the first layer too",
        4,
        "SkipV1Former's first layer is a standard layer: only the layers above it "
        "keep half of their value heads",
        dict(skip_from=0),
    ),
    slip(
        8,
        "at 16 bits there is no scale",
        held,
        scale_at_16=True,
    ),
    slip(
        4,
        "SVFormer keeps one value stream and all key streams, not half of both",
        held,
        svformer=lambda L, k, v: L * (k + v) // 2,
    ),
    slip(
        4,
        "with an odd number of layers, the last one of CLA keeps its own",
        held,
        cla=lambda L, k, v: L // 2 * (k + v),
    ),
    slip(
        4,
        "SkipV1Former's first layer keeps all its value heads; each of the OTHERS half",
        held,
        skipv1=lambda L, k, v: L * k + v + L * v // 2,
    ),
    slip(
        4,
        "half of the value heads above the first layer are their own, and cached",
        held,
        skipv1=lambda L, k, v: L * k + v,
    ),
    slip(
        12,
        "every ROW has a scale: one token in one head",
        held,
        scales="one",
    ),
    slip(
        4,
        "every layer has a cache of its own",
        held,
        standard=lambda L, k, v: k + v,
    ),
    slip(
        4,
        "SVFormer's layers keep their own keys",
        held,
        svformer=lambda L, k, v: k + v,
    ),
    slip(
        4,
        "SVFormer shares values, not keys",
        held,
        svformer=lambda L, k, v: k + L * v,
    ),
    slip(
        12,
        "groups are the key/value heads already; query heads keep nothing",
        lambda *given: held(*given) * given[4],
    ),
    slip(
        4,
        "CLA's pairs share keys AND values",
        held,
        cla=lambda L, k, v: L * k + (L + 1) // 2 * v,
    ),
    slip(
        12,
        "a scale has 16 bits; two BYTES",
        held,
        scale=2,
    ),
    slip(
        4,
        "SkipV1Former keeps all keys",
        held,
        skipv1=lambda L, k, v: L * k // 2 + v + (L - 1) * v // 2,
    ),
    hints=[
        "A row of one head is D numbers of so many bits, and below 16 bits a scale of 16 more. How "
        "many rows has a stream, and how many streams of keys, and of values, does each plan keep?",
        "SVFormer: L key streams and one value stream. CLA: only the even layers keep anything. "
        "Mind odd depths.",
        "SkipV1Former: above layer 0 half of the value heads are its own; the others are layer "
        "0's, cached there.",
    ],
    after="Every plan is a number of key streams and a number of value streams of B T G rows; "
    "minimal/model/count.py: count finds them by running two tokens through the model. "
    "A scale weighs most where rows are narrow: at 4 bits and a width of 32 it is two "
    "bytes of eighteen. README's question: SVFormer keeps L + 1 streams, GQA with two "
    "query heads to a key head the bytes of L, so GQA's cache is the smaller one at any depth. The "
    "abstract's 'better than GQA and CLA' is about loss: section 4.6 finds it at 64,000 "
    "tokens, and at 2,048 the reverse for GQA, so ask for length and bytes beside it.",
    level="medium",
    minutes=19,
)
def cache_bytes(
    plan,
    layers,
    batch,
    tokens,
    heads,
    groups,
    width,
    key_bits,
    value_bits,
    *,
    by="groups",
    of_bits=8,
    scale=16,
    one_precision=False,
    streams=2,
    kept_values=1,
    skip_from=1,
):
    """Bytes that the cache must hold (a whole number) after `tokens` tokens of `batch` sequences.

    heads: query heads, groups: key/value heads, width: of one head. A number of the keys has
    key_bits bits, one of the values value_bits (16, 8 or 4). Below 16 bits every row, one token in
    one head, keeps a scale of 16 bits beside its numbers. plan: standard, svformer, cla (as in
    `owners`, all layers with one window) or skipv1 (SkipV1Former with half of the heads its own).
    """

    def stream(bits):
        row = width * bits + (scale if bits < 16 else 0)
        return batch * tokens * (groups if by == "groups" else heads) * row // of_bits

    one_key, one = stream(key_bits), stream(key_bits if one_precision else value_bits)
    keys = values = 0
    for n in range(layers):
        keys += 0 if plan == "cla" and n % 2 else one_key
        if plan == "svformer":
            values += one * kept_values if n == 0 else 0
        elif plan == "skipv1":
            values += one // 2 if n >= skip_from else one
        else:
            values += 0 if plan == "cla" and n % 2 else one
    return keys + values if streams == 2 else keys


def heads(T, S, H, G, K):
    return lambda r: normals(r, (2, T, H, 6), (2, S, G, 6), (2, S, K, 5))


@unit.exercise(
    Part("more value heads than key heads", 7, heads(5, 5, 6, 2, 3)),
    Part("one key head for all, and a cache", 5, heads(3, 7, 4, 1, 2)),
    Wrong(
        "values grouped as the keys",
        12,
        "you gave the values the groups of the keys; there are more value heads, so fewer query "
        "heads share one",
        dict(as_keys=True),
    ),
    Wrong(
        "by turns",
        12,
        "your query heads take the key heads by turns (0, 1, 2, 0, 1, 2); neighbours share one "
        "(0, 0, 1, 1, 2, 2)",
        dict(turns=True),
    ),
    Wrong("no mask", 12, "your queries also see the keys after them", dict(causal=False)),
    Wrong(
        "no root",
        12,
        "your scores are not divided by the square root of the head width: see notebook 01, 'why "
        "the root'",
        dict(root=False),
    ),
    Wrong(
        "mask from the left",
        5,
        "with fewer queries than keys, the queries are the LAST positions: query t sees "
        "keys up to t + S - T",
        dict(corner=True),
    ),
    slip(
        7,
        "your KEY heads go by turns; neighbours share one: repeat_interleave",
        lambda q, k, v: by_index.attention(q, by_turns(k, q), side_by_side(v, q)),
    ),
    slip(
        12,
        "your VALUE heads go by turns; neighbours share one: repeat_interleave",
        lambda q, k, v: by_index.attention(q, side_by_side(k, q), by_turns(v, q)),
    ),
    slip(
        12,
        "you divided the scores by D; wanted its root",
        lambda q, k, v: by_index.attention(
            q, side_by_side(k, q), side_by_side(v, q), scale=float(q.shape[-1])
        ),
    ),
    slip(
        12,
        "you divided by the root of the values' width; wanted that of the keys, D",
        lambda q, k, v: by_index.attention(
            q, side_by_side(k, q), side_by_side(v, q), scale=v.shape[-1] ** 0.5
        ),
    ),
    slip(
        12,
        "your softmax runs over the queries; the weights of every QUERY sum to 1",
        lambda q, k, v: by_index.attention(
            q, side_by_side(k, q), side_by_side(v, q), transposed=True
        ),
    ),
    hints=[
        "Give every query head its key head and its value head, then it is ordinary attention: "
        "repeat_interleave, not repeat.",
        "The mask compares absolute positions: query t stands at t + S - T.",
    ],
    after="A map belongs to a query head, so who shares keys and who shares values are two "
    "questions: neighbours share (0, 0, 1, 1), by repeat_interleave, once for each. The "
    "einsum solution copies nothing: it looks at the heads as G groups for the scores "
    "and as K groups for the values. The package's "
    "definition is minimal/kernels/reference.py: weights, and "
    "minimal/kernels/decode.py: split gives one program all query heads of a key head, "
    "so that each key is read once.",
    level="medium",
    minutes=14,
)
def grouped_attention(q, k, v, *, turns=False, as_keys=False, causal=True, root=True, corner=False):
    """Causal attention with fewer key heads than query heads, and another number of value heads: q
    (B,T,H,D), k (B,S,G,D), v (B,S,K,E) -> (B,T,H,E).

    H // G neighbouring query heads read the same key head, H // K the same value head. The T
    queries are the last T of S positions.
    """
    late, H, G = q.shape[1] - k.shape[1] if corner else 0, q.shape[2], k.shape[2]

    def for_each_query_head(rows, groups):
        reads = [h % groups if turns else h // (H // groups) for h in range(H)]
        return rows[:, :, reads]

    k = for_each_query_head(k, G)
    v = for_each_query_head(v, G if as_keys else v.shape[2])
    return by_index.attention(q, k, v, causal=causal, root=root, late=late)


@unit.exercise(
    Part(
        "half the heads",
        8,
        [
            lambda r: normals(r, (2, 5, 2, 3), (2, 5, 8, 3)),
            lambda r: normals(r, (2, 5, 3, 3), (2, 5, 12, 3)),
            lambda r: normals(r, (2, 5, 2, 3), (2, 5, 12, 3)),
        ],
    ),
    Wrong(
        "notebook 05's line",
        8,
        "that is notebook 05's line, which borrows as many heads as are missing: here each of the "
        "layer's own heads serves several, and only the upper half is borrowed",
        dict(missing=True),
    ),
    Wrong(
        "by turns",
        8,
        "the heads of the lower half take the layer's own by turns (0, 1, 0, 1); neighbours share "
        "one (0, 0, 1, 1)",
        dict(turns=True),
    ),
    Wrong(
        "the first heads of V1",
        8,
        "you borrowed the first half of layer 1's heads; head h borrows head h, so the upper half",
        dict(borrow=0),
    ),
    Wrong(
        "own heads last",
        8,
        "you put the layer's own heads last; they are the first half",
        dict(own_first=False),
    ),
    slip(
        8,
        "own and borrowed heads go by turns in yours; the first HALF is the layer's own",
        lambda v, v1: np.stack(np.split(skip_heads(v, v1), 2, 2), 3).reshape(v1.shape),
    ),
    slip(
        8,
        "you took the mean of own and borrowed; each head is one or the other",
        lambda v, v1: (np.repeat(v, v1.shape[2] // v.shape[2], 2) + v1) / 2,
    ),
    slip(
        8,
        "your borrowed heads are in reverse order; head h is head h of v1",
        lambda v, v1: np.concatenate(
            [skip_heads(v, v1)[:, :, : v1.shape[2] // 2], v1[:, :, : v1.shape[2] // 2 - 1 : -1]], 2
        ),
    ),
    hints=[
        "With 8 heads and 2 of its own: heads 0 and 1 read head 0 of v, heads 2 and 3 read head 1, "
        "and heads 4 to 7 are heads 4 to 7 of v1.",
        "First make half as many heads as v1 has out of v, then one torch.cat with the upper half "
        "of v1 along the head dimension.",
    ],
    after="The upper half of the heads is the first layer's, where it is cached already, and the "
    "lower half shares fewer heads: two ways of saving that multiply, as GQA and SVFormer do. In "
    "the package the first is minimal/model/values.py: Heads. We know SkipV1Former by its review "
    "and abstract, so the order of the heads is our reading.",
    level="medium",
    minutes=10,
)
def skip_heads(v, v1, *, borrow=1, own_first=True, turns=False, missing=False):
    """SkipV1Former's values with fewer heads of its own: v (B,T,G,D) of this layer, v1 (B,T,H,D) of
    the first -> (B,T,H,D).

    The first half of the H heads is the layer's own: neighbouring heads share one of the G, equally
    many each. Head h of the second half is head h of v1.
    """
    G, H = v.shape[2], v1.shape[2]
    if missing:
        return np.concatenate([v, v1[:, :, G:]], 2)
    half, out = H // 2, np.zeros(v1.shape)
    for h in range(H):
        if (h < half) == own_first:
            out[:, :, h] = v[:, :, h % half % G if turns else h % half // (half // G)]
        else:
            out[:, :, h] = v1[:, :, h % half + half * borrow]
    return out


def stack(L, S=None):
    def make(r):
        B, T, C = 2, 5, 6
        matrices = [0.4 * x for x in normals(r, (L, C, C), (L, C, C), (C, C), (L, C, C))]
        return *normals(
            r, *([(B, T, C)] if S is None else [(B, 1, C), (L, B, S, C), (B, S, C)])
        ), *matrices

    return make


def one_head(q, k, v, **how):
    return by_index.attention(q[:, :, None], k[:, :, None], v[:, :, None], **how)[:, :, 0]


def layered(x, wq, wk, wv, wo, values=None, mixed=False, **how):
    """The stack, with one step done otherwise."""
    v = x @ wv
    for n in range(len(wq)):
        given = values(v, x) if values else v
        heard = one_head(x @ wq[n], x @ wk[n], given, **how)
        v = heard if mixed else v
        x = x + heard @ wo[n]
    return x


@unit.exercise(
    Part("one layer", 4, stack(1)),
    Part("several layers", 8, stack(3)),
    Wrong(
        "shares W_V, not V",
        8,
        "you shared the matrix W_V and applied it to each layer's stream; SVFormer shares "
        "the values themselves, computed once from the input",
        dict(fresh=True),
    ),
    Wrong(
        "no residual",
        12,
        "the layer's output is added to its input, not put in its place",
        dict(residual=0),
    ),
    Wrong("no mask", 12, "your queries also see the keys after them", dict(causal=False)),
    slip(
        12,
        "your scores are not divided by sqrt(C)",
        lambda x, wq, wk, wv, wo: svformer(x, wq * np.sqrt(x.shape[-1]), wk, wv, wo),
    ),
    slip(
        12,
        "your softmax runs over the queries; the weights of a query sum to 1",
        layered,
        transposed=True,
    ),
    slip(
        12,
        "values are V_1 alone, without the stream",
        lambda x, wq, wk, wv, wo: layered(x, wq, wk, wv, wo, values=lambda v, x: v + x),
    ),
    slip(
        12,
        "queries and keys have changed places",
        lambda x, wq, wk, wv, wo: svformer(x, wk, wq, wv, wo),
    ),
    slip(
        8,
        "V_1 stays as it is: every layer weighs the same values, not those that the last one mixed",
        layered,
        mixed=True,
    ),
    slip(
        12,
        "x stands before its matrix: x @ wq[n], without a transpose",
        lambda x, wq, wk, wv, wo: svformer(x, wq.swapaxes(1, 2), wk.swapaxes(1, 2), wv, wo),
    ),
    slip(
        8,
        "every layer has a map of its own, from its own stream",
        lambda x, wq, wk, wv, wo: svformer(
            x, np.stack([wq[0]] * len(wq)), np.stack([wk[0]] * len(wk)), wv, wo
        ),
    ),
    slip(
        8,
        "a layer adds to the stream that the layer below left, not to the input",
        lambda x, wq, wk, wv, wo: svformer(x, wq[-1:], wk[-1:], wv, wo[-1:]),
    ),
    slip(
        12,
        "wo stands behind the mixed values as it is: no transpose",
        lambda x, wq, wk, wv, wo: svformer(x, wq, wk, wv, wo.swapaxes(1, 2)),
    ),
    hints=[
        "Compute v = x @ wv once, before the loop over layers.",
        "In the loop: q = x @ wq[n], k = x @ wk[n], causal weights, x = x + weights @ v @ wo[n].",
    ],
    after="What is shared is the product V_1, not the matrix: W_V applied to each layer's own "
    "stream would give other values in every layer, and nothing would be saved. "
    "minimal/model/values.py: Layer hands out the owner's rows. One solution of the "
    "three is only svformer_step, token by token: that both agree is the promise of a "
    "cache.",
    level="medium",
    minutes=16,
)
def svformer(x, wq, wk, wv, wo, *, fresh=False, residual=1, causal=True):
    """A stack of SVFormer's attention layers, one head each, no norms, no MLP: x (B,T,C) ->
    (B,T,C).

    wq, wk, wo (L,C,C) belong to their layers; wv (C,C) is the only value matrix. Layer n adds A_n
    V_1 W_O to its input (Eq 10), with causal A_n = softmax(Q_n K_n^T / sqrt(C)) and V_1 = (input of
    the first layer) W_V.
    """
    v = x @ wv
    for n in range(len(wq)):
        x = (
            residual * x
            + one_head(x @ wq[n], x @ wk[n], x @ wv if fresh else v, causal=causal) @ wo[n]
        )
    return x


def one_step(x, keys, value, wq, wk, wv, wo, residual=1, first=False, front=""):
    """A step, with one thing done otherwise."""

    def append(old, new, turned):
        return np.concatenate([new, old] if turned else [old, new], 1)

    x0, grown, value = x, [], append(value, x @ wv, front == "v")
    for n in range(len(wq)):
        grown.append(append(keys[n], (x0 if first else x) @ wk[n], front == "k"))
        x = residual * x + one_head(x @ wq[n], grown[-1], value) @ wo[n]
    return x, np.stack(grown), value


@unit.exercise(
    Part("the first token, from an empty cache", 4, stack(3, S=0)),
    Part("a later token", 8, stack(3, S=4)),
    Wrong(
        "new rows in front",
        8,
        "you put the new row in front of the cached ones; it belongs behind them",
        dict(front=True),
    ),
    Wrong(
        "the new token does not see itself",
        12,
        "the new token must also see itself: append first, then attend",
        dict(blind=True),
    ),
    Wrong(
        "a value for every layer",
        12,
        "each of your layers makes the new value from its own stream; V_1's row is made once, "
        "from the input of the first layer",
        dict(fresh=True),
    ),
    Wrong(
        "values from a deep layer",
        12,
        "the value row you cached comes from a deeper layer's stream; V_1 is "
        "computed from the input of the first layer",
        dict(deep=True),
    ),
    slip(
        12,
        "the layer's output is added to its input, not put in its place",
        one_step,
        residual=0,
    ),
    slip(
        8,
        "your scores are not divided by sqrt(C)",
        lambda x, keys, value, wq, wk, wv, wo: one_step(
            x, keys, value, wq * np.sqrt(x.shape[-1]), wk, wv, wo
        ),
    ),
    slip(
        12,
        "every layer's key comes from its own stream, not from the input of the first",
        one_step,
        first=True,
    ),
    slip(
        8,
        "the new value row belongs behind the cached ones",
        one_step,
        front="v",
    ),
    slip(
        8,
        "the new key rows belong behind the cached ones",
        one_step,
        front="k",
    ),
    hints=[
        "The value row is made once, from the input x of the first layer, and appended to `value` "
        "before the loop.",
        "Layer n: append x @ wk[n] to keys[n]; the query x @ wq[n] sees all of it (no mask is "
        "needed: why?).",
        "Collect the L grown key tensors in a list and torch.stack them at the end.",
    ],
    after="The value row is made once, from the first layer's input, and L key rows join it: "
    "L + 1 rows a token. The newest token may see all of them, so no mask is needed. "
    "README's question: with V_1 stored again in every layer the outputs stay right and "
    "the bytes grow; svformer, which has no cache, would pass, and svformer_step would "
    "not, since it must return one value stream. In the package "
    "minimal/model/values.py: Layer keeps nothing, and so cannot store it twice.",
    level="medium",
    minutes=15,
)
def svformer_step(
    x, keys, value, wq, wk, wv, wo, *, front=False, blind=False, deep=False, fresh=False
):
    """One decode step of `svformer`: x (B,1,C), keys (L,B,S,C), value (B,S,C) -> the three, with S
    + 1 positions kept.

    The cache is L key streams and ONE value stream; S may be 0. Token by token it must equal
    `svformer` on the whole.
    """

    def append(old, new):
        return np.concatenate([new, old] if front else [old, new], 1)

    row, grown, past = x @ wv, [], value
    value = append(value, row)
    for n in range(len(wq)):
        grown.append(append(keys[n], x @ wk[n]))
        value = append(past, x @ wv) if fresh else value
        seen_k, seen_v = (keys[n], past) if blind else (grown[-1], value)
        if seen_k.shape[1]:
            x = x + one_head(x @ wq[n], seen_k, seen_v) @ wo[n]
    return x, np.stack(grown), append(past, x @ wv) if deep else value


def curves(cross):
    def make(r):
        steps = np.arange(160)
        baseline = 3 + 4 * np.exp(-steps / 40)
        trend = (steps - 70 - r.integers(20)) / 400 if cross else -0.5 + steps / 900
        spike = 2.0 * (steps == 20 + r.integers(20))  # one bad batch: only the raw curves cross
        return (
            baseline + trend + spike + r.normal(size=160) * 0.1 + 12 * (steps < 3),
            baseline,
            r.integers(20, 30),
        )

    return make


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
    Wrong(
        "no smoothing",
        8,
        "you read the raw difference; it is noisy: average it over the window first",
        dict(smooth=False),
    ),
    Wrong(
        "the first average that is not negative",
        8,
        "you took the first average that is not negative; the method "
        "must have been ahead (negative) just before",
        dict(before=False),
    ),
    Wrong(
        "baseline minus method",
        8,
        "your difference has the wrong sign: relative loss is method minus baseline",
        dict(sign=-1),
    ),
    Wrong(
        "above, not at", 5, "m[k] = 0 counts: the method is no longer ahead there", dict(least=1e-9)
    ),
    Wrong(
        "the last crossing",
        5,
        "the curves cross more than once; wanted is the first crossing",
        dict(which=-1),
    ),
    Wrong(
        "counted from the window's end",
        8,
        "your step is the end of the averaging window; the k-th average covers "
        "steps k to k + window - 1 and is called k",
        dict(end=True),
    ),
    slip(
        3,
        "where it is never overtaken the answer is -1",
        lambda *given: max(critical_point(*given), 0),
    ),
    slip(
        8,
        "k is the FIRST step of its window, not the middle",
        lambda *given: (
            critical_point(*given) + (given[2] // 2 if critical_point(*given) >= 0 else 0)
        ),
    ),
    hints=[
        "m[k] is the mean of (method - baseline)[k : k + window]; there are N - window + 1 of "
        "them (unfold).",
        "The answer is the smallest k >= 1 with m[k - 1] < 0 and m[k] >= 0, or -1.",
    ],
    after="Noisy curves cross many times, so 'the step at which it is overtaken' means "
    "nothing before you name the average, the crossing and the step that is called by "
    "it. Here it is the first crossing, called by the first step of its window. "
    "notebooks/course/crossings.py: critical_point takes the last one, after which the "
    "method never leads again, and calls it by where the window ends: say which, before "
    "you compare two such numbers.",
    level="medium",
    minutes=10,
)
def critical_point(
    method, baseline, window, *, smooth=True, sign=1, end=False, before=True, least=0.0, which=0
):
    """The step (a whole number) at which the baseline overtakes the method, from two loss curves
    (N,); -1 if never.

    Smooth method - baseline by a moving average: m[k] is the mean over steps k … k + window - 1.
    Return the smallest k >= 1 with m[k - 1] < 0 and m[k] >= 0. (ResFormer paper, Fig 11: SVFormer
    is ahead early in training.)
    """
    width = window if smooth else 1
    gap = sign * (method - baseline)
    m = [sum(gap[k : k + width]) / width for k in range(len(gap) - width + 1)]
    turns = [k for k in range(1, len(m)) if m[k] >= least and (m[k - 1] < 0 or not before)]
    return turns[which] + (width - 1 if end else 0) if turns else -1


def saved(windows, tokens):
    """Per cent of the cache that one shared value stream saves, if layer n sees windows[n] keys
    back (0: all)."""
    kept = [tokens if w == 0 else min(tokens, w + 1) for w in windows]
    return 100 * (1 - (sum(kept) + max(kept)) / (2 * sum(kept)))


SIX_OF_24 = 100 * (1 - (24 + 6) / 48)  # six layers of 24 make values


def near(which, value, why, within=5):
    def accept(answer):
        said = per_cent(need(answer, full=0, sssl=0, one=0)[which])
        refuse(abs(said - value) > within, f"more than {within} points from the count: {why}")

    return accept


@unit.exercise(
    Part(
        "24 layers, six of which make values",
        3,
        None,
        near(0, SIX_OF_24, "all 24 streams of keys stay, and six of values"),
    ),
    Part(
        "three windows to one full layer",
        3,
        None,
        near(
            1,
            saved([512, 512, 512, 0] * 3, 65536),
            "the standard model's windowed layers keep 513 rows each; V_1, which stays whole, is "
            "not one of many",
        ),
    ),
    Part(
        "one full layer in twelve",
        2,
        None,
        near(
            2,
            saved([512] * 11 + [0], 65536),
            "as long as one reader sees everything, V_1 stays whole; what do the other eleven "
            "value streams weigh?",
            within=2,
        ),
    ),
    Wrong("fractions", 8, "per cent, not a fraction", returns=lambda: (0.375, 0.337, 0.04)),
    Wrong(
        "one stream of values",
        3,
        "more than 5 points from the count",
        returns=lambda: (47.9, 33.7, 4.0),
    ),
    Wrong(
        "half, always", 8, "more than 5 points from the count", returns=lambda: (50.0, 50.0, 50.0)
    ),
    Wrong(
        "as with full context",
        5,
        "more than 5 points from the count",
        returns=lambda: (37.5, 45.8, 45.8),
    ),
    Wrong(
        "what stays, not what is saved",
        8,
        "more than 5 points from the count",
        returns=lambda: (62.5, 66.3, 96.0),
    ),
    hints=[
        "Write the numbers down before you compute anything; then let `windowed_bytes` below "
        "correct you.",
        "In full streams: windowed layers weigh next to nothing. What is left of the two caches?",
    ],
    after="Six value streams for 24 layers save 37.5 per cent. One for all saves 33.7 with three "
    "windows to a full layer, and 4.0 with one full layer in twelve. The "
    "windowed layers had little to save, and V_1 must stay whole as long as one reader "
    "sees everything. notebooks/course/memory.py: counter counts it for any plan, with "
    "rings=True.",
    level="easy",
    minutes=5,
)
def predict_savings():
    """Predict, then count: how many per cent of the standard cache are saved? Three numbers.

    (1) 24 layers that see everything: every fourth, from layer 0 on, makes values, and the others
    read the latest. (2) SVFormer, 12 layers in the pattern SSSL, 65,536 tokens: the S layers see
    512 keys to their left and keep no more than they see. (3) SVFormer, 12 layers of which only the
    last sees everything, the others as in (2). Within 5 points counts, within 2 for (3).
    """
    return (
        SIX_OF_24,
        saved([512, 512, 512, 0] * 3, 65536),
        saved([512] * 11 + [0], 65536),
    )


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
        return by_index.weights(q[None], k[-last:], causal=False)[0] @ v[-last:]

    refuse(
        np.abs(out(int(N)) - out(int(N) + 1)).max() < 0.01,
        "both rings give the same output (within 0.01): the key "
        "that one of them has lost must matter, and its value must differ from the rest",
    )


@unit.exercise(
    Part("the sentence, and a case", 8, None, ring_fails),
    Wrong(
        "the mask's own sentence",
        8,
        "sentence 1 is true",
        returns=lambda: (1, np.array([4.0]), np.array([[4.0], [0.0], [0.0]]), np.eye(3), 2),
    ),
    Wrong(
        "the order of the keys",
        8,
        "sentence 4 is true",
        returns=lambda: (4, np.array([4.0]), np.array([[4.0], [0.0], [0.0]]), np.eye(3), 2),
    ),
    Wrong(
        "too short",
        8,
        "your sequence is not longer than N",
        returns=lambda: (3, np.ones(2), np.ones((3, 2)), np.eye(3), 3),
    ),
    Wrong(
        "equal values",
        8,
        "both rings give the same output",
        returns=lambda: (3, np.ones(2), np.eye(6)[:, :2], np.ones((6, 2)), 3),
    ),
    Wrong(
        "a key nobody looks at",
        8,
        "both rings give the same output",
        returns=lambda: (3, np.array([9.0]), np.array([[0.0], [0.0], [9.0], [9.0]]), np.eye(4), 3),
    ),
    hints=[
        "The mask lets row - col be 0, 1, …, N. Count them.",
        "Test each sentence on three keys and N = 2.",
        "Make the key exactly N places back match the query strongly, and give it a value unlike "
        "all the others.",
    ],
    after="row - col may be 0, 1, …, N, which are N + 1 keys, so a ring of N has lost the "
    "oldest of them. If that key matches the query and has a value of its own, the "
    "outputs differ. minimal/model/cache.py: Cache keeps N rows between steps and the "
    "new row makes N + 1: both counts are right, if one says when one counts.",
    level="medium",
    minutes=9,
)
def ring_counter_example():
    """Find the error. A window of N is masked by `row - col <= N`, and a ring keeps the newest rows
    of a cache. One of four sentences is false; return its number and a case: (which, q, k, v, N).

    (1) The newest query sees itself and N keys to its left. (2) As long as there are at most N
    keys, a ring of N entries gives the output of the mask. (3) A ring of N entries gives it at any
    length. (4) In which order the ring holds its rows does not matter to the output. The case: q
    (D,) the newest query, k (S,D) and v (S,E) all so far, with outputs at least 0.01 apart.
    """
    return 3, np.array([4.0]), np.array([[4.0], [0.0], [0.0]]), np.eye(3), 2


OWN = [0, 1, 2, 3, 4, 5]


def windowed(keys=OWN, values=OWN):
    def make(r):
        L, tokens = 6, r.integers(700, 2000)
        windows = [int(w) for w in r.choice([0, 64, 200, 512, 3000], L)]
        windows[0], windows[1], windows[4], windows[5] = 64, 512, 200, 0
        return list(keys), list(values), windows, 2, tokens, 3, 32, 2

    return make


def rows_kept(
    key_owners,
    value_owners,
    windows,
    batch,
    tokens,
    groups,
    width,
    size,
    keep=None,
    gather=max,
    streams=2,
    joined=False,
):
    """The bytes, with one rule changed."""
    needs = [keep(w, tokens) if keep else min(tokens, w + 1) if w else tokens for w in windows]
    rows, lists = 0, [list(key_owners), list(value_owners)][:streams]
    if joined:
        lists, needs = [lists[0] + lists[1]], needs * 2
    for reads in lists:
        for owner in set(reads):
            rows += gather([need for need, read in zip(needs, reads, strict=True) if read == owner])
    return rows * batch * groups * width * size


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
    Wrong(
        "N entries",
        10,
        "a window of N keys to the left keeps N + 1 rows, itself included",
        dict(itself=0),
    ),
    Wrong(
        "the largest number",
        6,
        "a window of 0 means all: it is the widest of its readers, not the narrowest",
        dict(widest="number"),
    ),
    Wrong(
        "the owner's window",
        6,
        "a shared stream must last as long as its widest reader looks back, not as its owner does",
        dict(widest=False),
    ),
    Wrong(
        "ignores sharing",
        6,
        "you counted a stream once for every reader; it is stored once",
        dict(once=False),
    ),
    Wrong(
        "keys are always their own",
        6,
        "key_owners says whose keys each layer reads: keys can be shared as well",
        dict(own_keys=True),
    ),
    slip(
        10,
        "a window of 0 means that the layer sees everything",
        rows_kept,
        keep=lambda w, T: min(T, w + 1),
    ),
    slip(
        10,
        "a windowed stream keeps its window alone, not all tokens",
        rows_kept,
        keep=lambda w, T: T,
    ),
    slip(
        6,
        "readers of one stream share its rows: the longest need counts, not the sum",
        rows_kept,
        gather=sum,
    ),
    slip(
        6,
        "keys and values have owners of their own: you took the keys' for both",
        lambda k, v, *others: rows_kept(k, k, *others),
    ),
    slip(
        10,
        "keys AND values are cached; you counted the keys alone",
        lambda k, v, *others: rows_kept(k, v, *others, streams=1),
    ),
    slip(
        10,
        "keys and values are counted by their owners already: nothing is doubled",
        lambda *given: 2 * rows_kept(*given),
    ),
    slip(
        10,
        "a layer sees w keys to its left, and itself: w + 1, not 2 w + 1",
        rows_kept,
        keep=lambda w, T: min(T, 2 * w + 1) if w else T,
    ),
    slip(
        10,
        "a stream of keys and one of values are two, even if one layer owns both",
        rows_kept,
        joined=True,
    ),
    hints=[
        "Rows that reader n needs: all of them for window 0, else min(tokens, window + 1).",
        "For each distinct owner of keys, and of values: the largest need among the layers that "
        "read it.",
    ],
    after="A stream lasts as long as its widest reader looks back, whoever made it: an owner "
    "with a short window may have to keep everything for a reader without one. In the "
    "package that is the `reach` of minimal/model/tape.py: Tape.keep_rows. The einsum "
    "solution says it in one line, a dictionary from stream and owner to the largest "
    "need.",
    level="stretch",
    minutes=21,
)
def windowed_bytes(
    key_owners,
    value_owners,
    windows,
    batch,
    tokens,
    groups,
    width,
    size,
    *,
    itself=1,
    widest=True,
    once=True,
    own_keys=False,
):
    """Stretch: bytes (a whole number) of a cache whose streams are shared, as `owners` says, AND
    windowed.

    Layer n sees windows[n] keys to its left, and itself; 0: all. After `tokens` tokens a stream
    keeps what some reader of it can see from the newest one, which is included: windows[n] + 1
    rows, if there are as many.
    """

    def need_of(n):
        return tokens if windows[n] == 0 else min(tokens, windows[n] + itself)

    rows = 0
    key_owners = range(len(windows)) if own_keys else key_owners
    for reads in (key_owners, value_owners):
        for owner in sorted(set(reads)) if once else reads:
            readers = [n for n, o in enumerate(reads) if o == owner]
            if widest == "number":
                readers = [max(readers, key=lambda n: windows[n])]
            rows += max(need_of(n) for n in readers) if widest else need_of(owner)
    return rows * batch * groups * width * size
