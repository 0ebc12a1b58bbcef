"""Notebook 05: what must a cache hold, and who reads it?"""

import numpy as np

from homework import by_index
from homework.in_notebooks import models
from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb05_svformer", "SVFormer and the KV cache", "The exercises of notebook 05.")


# ---- one stream of values ------------------------------------------------------------------------


def at_layer(n):
    """A model of three layers, asked for the values of one; the first has no v1 yet."""

    def make(r):
        h, v1 = normals(r, (2, 5, 4), (2, 5, 4))
        return models.Unwritten(r, 3), n, h, v1 if n else None, r.integers(0, 7, (2, 5))

    return make


def offers(says, made, loses=2):
    """The mistake of other values in every layer but the first."""
    return slip(
        loses,
        says,
        lambda self, n, h, v1, ids: made(self, n, h, v1, ids) if n else self.layers[0].value(h),
    )


@unit.exercise(
    Part("the first layer", 1, at_layer(0)),
    Part("a deeper layer", 2, [at_layer(1), at_layer(2), at_layer(1)]),
    offers(
        "your deeper layers make values of their own; all of them have the first layer's, v1",
        lambda self, n, h, v1, ids: self.layers[n].value(h),
    ),
    offers(
        "that is ResFormer: half of each; here nothing of the layer's own is left",
        lambda self, n, h, v1, ids: (self.layers[n].value(h) + v1) / 2,
    ),
    offers(
        "you added v1 to the layer's own values; here nothing of its own is left",
        lambda self, n, h, v1, ids: self.layers[n].value(h) + v1,
    ),
    offers("you halved v1; all of it is wanted", lambda self, n, h, v1, ids: v1 / 2),
    offers(
        "you applied the first layer's matrix to THIS layer's stream; v1 is what the first layer "
        "made of its own",
        lambda self, n, h, v1, ids: self.layers[0].value(h),
    ),
    offers(
        "v1 has been through the first layer's matrix; it needs no other",
        lambda self, n, h, v1, ids: self.layers[n].value(v1),
    ),
    offers(
        "v1 has been through the first layer's matrix; it needs no other",
        lambda self, n, h, v1, ids: self.layers[0].value(v1),
    ),
    offers(
        "those are values of the layer below; all have the first layer's, v1",
        lambda self, n, h, v1, ids: self.layers[n - 1].value(h),
    ),
    offers("that is the stream; wanted values: v1", lambda self, n, h, v1, ids: h),
    offers("that is the embedding; wanted values: v1", lambda self, n, h, v1, ids: self.embed(ids)),
    offers("your deeper layers have no values; they have v1", lambda self, n, h, v1, ids: 0 * v1),
    offers("you added the stream to v1; v1 alone", lambda self, n, h, v1, ids: v1 + h),
    offers("your v1 is normed; it comes as it is", lambda self, n, h, v1, ids: models.normed(v1)),
    offers(
        "your v1 comes one token late; each position has its own",
        lambda self, n, h, v1, ids: np.roll(v1, 1, 1),
    ),
    slip(
        2,
        "your second layer makes its own values; only the first does, n = 0",
        lambda self, n, h, v1, ids: self.layers[n].value(h) if n <= 1 else v1,
    ),
    slip(
        2,
        "your layers take v1 and their own by turns; all but the first have v1",
        lambda self, n, h, v1, ids: v1 if n % 2 else self.layers[n].value(h),
    ),
    slip(
        1,
        "your first layer has the values of the last; it makes its own, self.layers[n].value(h)",
        lambda self, n, h, v1, ids: v1 if n else self.layers[-1].value(h),
    ),
    slip(1, "your first layer offers its stream", lambda self, n, h, v1, ids: v1 if n else h),
    hints=[
        "What does the first layer do, n = 0, and what is left to do for all others?",
        "return self.layers[n].value(h) if n == 0 else v1",
    ],
    level="easy",
    minutes=3,
)
def value(self, n, h, v1, ids):
    """The values of layer n in SVFormer. The first layer (n = 0, v1 is None) makes its own, by
    self.layers[n].value(h); every other has the first layer's, v1. h, v1 (B, T, C), ids (B, T).
    """
    return v1 if n else self.layers[n].value(h)


# ---- whose rows ----------------------------------------------------------------------------------


def each(says, owner, loses=3):
    """The mistake of another owner for every layer."""
    return slip(
        loses, says, lambda layers, anchors: np.array([owner(n, anchors) for n in range(layers)])
    )


def latest(n, anchors):
    return max(a for a in anchors if a <= n)


def one_or_all(one):
    def make(r):
        layers = int(r.integers(4, 13))
        return layers, [0] if one else list(range(layers))

    return make


def some(r):
    layers = int(r.integers(9, 13))
    return layers, [0, *sorted(int(n) for n in r.permutation(layers - 3)[:3] + 2)]


@unit.exercise(
    Part("one anchor, or as many as layers", 1, [one_or_all(True), one_or_all(False)]),
    Part("a few anchors", 2, some),
    Wrong(
        "the nearest",
        2,
        "you took the nearest anchor, even one above; a layer can only read what was made before "
        "it",
        dict(nearest=True),
    ),
    Wrong(
        "counted, not named",
        2,
        "you returned which anchor it is, counted from 0; wanted the number of its layer",
        dict(count=True),
    ),
    Wrong(
        "the layer below",
        3,
        "your layers read the layer below, whether it made rows or not; they read the latest "
        "ANCHOR",
        returns=lambda layers, anchors: np.array(
            [n if n in anchors else n - 1 for n in range(layers)]
        ),
    ),
    Wrong(
        "an anchor reads below",
        3,
        "an anchor owns its rows: it reads itself, not the anchor before it",
        dict(below=True),
    ),
    each("all your layers read layer 0; they read the LATEST anchor", lambda n, anchors: 0),
    each("all your layers read themselves; only anchors do", lambda n, anchors: n),
    each(
        "your layers read the NEXT anchor, which is made after them; they read the latest before",
        lambda n, anchors: min((a for a in anchors if a >= n), default=max(anchors)),
        2,
    ),
    each("your layers begin at 1; the first is layer 0", lambda n, anchors: latest(n + 1, anchors)),
    each(
        "all but anchors read layer 0 in yours; they read the LATEST anchor",
        lambda n, anchors: n if n in anchors else 0,
        2,
    ),
    each(
        "all but anchors read the LAST anchor in yours; it may be made after them",
        lambda n, anchors: n if n in anchors else max(anchors),
        2,
    ),
    each(
        "yours says -1 where a layer makes no rows; wanted whose rows it reads",
        lambda n, anchors: n if n in anchors else -1,
    ),
    each("yours says whether a layer is an anchor; wanted its number", lambda n, a: n in a),
    slip(
        3,
        "your list has an entry too few: one for every layer, layer 0 too",
        lambda layers, anchors: owners_of(layers, anchors)[1:],
    ),
    each(
        "your layers take the anchors by turns; they read the LATEST anchor before them",
        lambda n, anchors: anchors[n % len(anchors)],
        2,
    ),
    slip(
        2,
        "you gave every anchor as many layers; each reaches to the next one, wherever that is",
        lambda layers, anchors: np.array(
            [anchors[n * len(anchors) // layers] for n in range(layers)]
        ),
    ),
    hints=[
        "Write it down for 6 layers with anchors [0, 3]: whose rows does layer 2 read, and layer "
        "3, and layer 5?",
        "For layer n, take the largest anchor that is not above n.",
        "[max(a for a in anchors if a <= n) for n in range(layers)]",
    ],
    level="easy",
    minutes=4,
)
def owners_of(layers, anchors, *, nearest=False, count=False, below=False):
    """Whose rows each layer reads: a list of `layers` numbers of layers. The layers in `anchors` (0
    is one) make rows of their own; every other reads those of the latest anchor before it."""
    out = []
    for n in range(layers):
        seen = [a for a in anchors if a < n or (a == n and not below)] or [0]
        owner = min(anchors, key=lambda a: (abs(a - n), a)) if nearest else seen[-1]
        out.append(anchors.index(owner) if count else owner)
    return np.array(out)


# ---- how many bytes ------------------------------------------------------------------------------


def owns(owners):
    return len(set(owners))


def rows(says, loses, count):
    """The mistake of another number of rows."""
    return slip(loses, says, lambda k, v, groups, width, size: count(k, v) * groups * width * size)


def a_plan(shared):
    def make(r):
        layers = int(r.integers(4, 13))
        keys = values = list(range(layers))
        if shared:
            anchors = [0, *sorted(int(n) for n in r.permutation(layers - 1)[:2] + 1)]
            values = owners_of(layers, anchors).tolist()
            keys = owners_of(layers, list(range(0, layers, 2))).tolist()
        return (
            keys,
            values,
            int(r.integers(3, 9)),
            int(r.choice([32, 64, 128])),
            int(r.choice([4, 8])),
        )

    return make


@unit.exercise(
    Part("nothing is shared", 1, a_plan(False)),
    Part("some layers read others", 2, a_plan(True)),
    Wrong(
        "counts the readers",
        2,
        "you counted a row for every layer that READS; a row that several layers read is kept once",
        dict(readers=True),
    ),
    Wrong(
        "keys and values in one",
        3,
        "you counted the layers that own anything; keys and values are two rows, each with its own "
        "owners",
        dict(together=True),
    ),
    Wrong(
        "twice the keys",
        2,
        "you counted the owners of keys twice; values have owners of their own",
        dict(twice=True),
    ),
    Wrong("keys alone", 3, "you counted the keys; values are kept, too", dict(alone=True)),
    Wrong(
        "numbers, not bytes",
        3,
        "you counted numbers; each of them takes `size` bytes",
        dict(sized=False),
    ),
    rows(
        "you counted the owners of values twice; keys have owners of their own",
        2,
        lambda k, v: 2 * owns(v),
    ),
    rows("you counted the values; keys are kept, too", 3, lambda k, v: owns(v)),
    rows("you divided by 8: size is in bytes already", 3, lambda k, v: (owns(k) + owns(v)) / 8),
    rows("those are bits; size is in bytes already", 3, lambda k, v: (owns(k) + owns(v)) * 8),
    rows(
        "you counted the layers that READ keys; keys that several layers read are kept once",
        2,
        lambda k, v: len(k) + owns(v),
    ),
    rows(
        "you counted the layers that READ values; values that several layers read are kept once",
        2,
        lambda k, v: owns(k) + len(v),
    ),
    rows(
        "you multiplied the two counts; keys and values ADD up", 3, lambda k, v: owns(k) * owns(v)
    ),
    rows(
        "you took the highest number of a layer; count the owners", 3, lambda k, v: max(k) + max(v)
    ),
    rows("you added up the numbers of layers; count the owners", 3, lambda k, v: sum(k) + sum(v)),
    rows(
        "you counted pairs of a key's and a value's owner; count the owners of each",
        2,
        lambda k, v: 2 * len(set(zip(k, v, strict=True))),
    ),
    rows(
        "you counted more than owners of keys and of values; a query is used once and not kept",
        3,
        lambda k, v: owns(k) + owns(v) + len(k),
    ),
    rows(
        "you counted more than owners of keys and of values; a query is used once and not kept",
        3,
        lambda k, v: 3 * len(k),
    ),
    rows(
        "you counted more than owners of keys and of values; a query is used once and not kept",
        3,
        lambda k, v: 2 * owns(k) + owns(v),
    ),
    slip(
        3,
        "a row has groups TIMES width numbers; you added them",
        lambda k, v, groups, width, size: (owns(k) + owns(v)) * (groups + width) * size,
    ),
    rows(
        "you doubled what is counted already: the owners of keys and those of values",
        3,
        lambda k, v: 2 * (owns(k) + owns(v)),
    ),
    rows(
        "you took the mean of the two counts; keys and values ADD up",
        3,
        lambda k, v: (owns(k) + owns(v)) // 2,
    ),
    rows(
        "the highest number of a layer does not say how many own anything: count the owners",
        2,
        lambda k, v: max(k) + 1 + max(v) + 1,
    ),
    hints=[
        "How many different layers own keys, and how many own values? len(set(…)) says it.",
        "A row is groups * width numbers of `size` bytes each, for keys and for values alike.",
        "(len(set(keys)) + len(set(values))) * groups * width * size",
    ],
    level="easy",
    minutes=4,
)
def bytes_a_token(
    keys,
    values,
    groups,
    width,
    size,
    *,
    readers=False,
    together=False,
    alone=False,
    sized=True,
    twice=False,
):
    """Bytes that a token leaves behind in the cache, a whole number. keys, values: whose rows each
    layer reads. A row has `groups` heads of `width` numbers, a number has `size` bytes."""
    row = groups * width * (size if sized else 1)
    counted = list if readers else set
    values = keys if twice else values
    rows = len(counted(keys)) + (0 if alone else len(counted(values)))
    return len(set(keys) | set(values)) * row if together else rows * row


# ---- GQA's heads ---------------------------------------------------------------------------------


def grouped(G, H):
    return lambda r: (*normals(r, (2, 4, G, 3)), H)


@unit.exercise(
    Part("neighbours share a head", 2, [grouped(3, 6), grouped(2, 6), grouped(2, 4)]),
    Part("one head for all (MQA)", 1, grouped(1, 4)),
    Wrong(
        "by turns",
        2,
        "your query heads take the shared ones by turns (0, 1, 0, 1); neighbours share one "
        "(0, 0, 1, 1): repeat_interleave, not repeat",
        dict(turns=True),
    ),
    Wrong(
        "along the positions",
        3,
        "you repeated positions; the heads are dimension 2 of (B, S, G, D)",
        dict(axis=1),
    ),
    Wrong(
        "along the features",
        3,
        "you repeated features; the heads are dimension 2 of (B, S, G, D)",
        dict(axis=3),
    ),
    Wrong(
        "H times",
        2,
        "you repeated each head H times; wanted H heads in all, so each of the G is needed H // G "
        "times",
        dict(times=True),
    ),
    slip(
        3,
        "you repeated each head G times; it is needed H // G times",
        lambda rows, H: np.repeat(rows, rows.shape[2], 2),
    ),
    slip(
        3,
        "you repeated texts; the heads are dimension 2 of (B, S, G, D)",
        lambda rows, H: np.repeat(rows, H // rows.shape[2], 0),
    ),
    slip(
        2,
        "all your query heads read the first shared head; neighbours share one",
        lambda rows, H: np.repeat(rows[:, :, :1], H, 2),
    ),
    slip(
        2,
        "all your query heads read the last shared head; neighbours share one",
        lambda rows, H: np.repeat(rows[:, :, -1:], H, 2),
    ),
    slip(
        2,
        "all your query heads read the mean of the shared ones; neighbours share one",
        lambda rows, H: np.repeat(rows.mean(2, keepdims=True), H, 2),
    ),
    slip(
        3,
        "your copies have an axis of their own; put it into the heads: flatten(2, 3)",
        lambda rows, H: np.repeat(rows[:, :, :, None], H // rows.shape[2], 3),
    ),
    slip(
        3,
        "you filled up with zeros; neighbours share a head",
        lambda rows, H: np.pad(rows, ((0, 0), (0, 0), (0, H - rows.shape[2]), (0, 0))),
    ),
    hints=[
        "With G = 2 and H = 4, which of the two heads do query heads 0, 1, 2, 3 read?",
        "Each head is needed H // G times, next to itself: repeat_interleave along dimension 2.",
    ],
    level="easy",
    minutes=3,
)
def shared_heads(rows, H, *, turns=False, axis=2, times=False):
    """Keys or values with a head for each of H query heads: rows (B, S, G, D) -> (B, S, H, D).
    H // G neighbouring query heads read the same one."""
    B, S, G, D = rows.shape
    if times:
        return np.repeat(rows, H, 2)
    if axis != 2:
        return np.repeat(rows, H // G, axis)
    out = np.zeros((B, S, H, D))
    for h in range(H):
        out[:, :, h] = rows[:, :, h % G if turns else h // (H // G)]
    return out


# ---- a decoding step -----------------------------------------------------------------------------


def heads_to_heads(q, keys, value):
    """Attention as scaled_dot_product_attention does it on (B, T, H, D)."""
    e = np.exp(np.einsum("bhd,bsgd->bshg", q[:, 0], keys) / np.sqrt(q.shape[-1]))
    return np.einsum("bshg,bsgd->bshd", e / e.sum(-1, keepdims=True), value), keys


def elsewhere(q, keys, value, axis):
    """The softmax over another axis of the scores (B, S, H)."""
    e = np.exp((q * keys).sum(-1) / np.sqrt(q.shape[-1]))
    a = e / e.sum(axis, keepdims=True)
    return (a[..., None] * value).sum(1, keepdims=True), keys


def unweighted(q, keys, value):
    """The scores (B, S, H) themselves as weights."""
    z = (q * keys).sum(-1) / np.sqrt(q.shape[-1])
    return (z[..., None] * value).sum(1, keepdims=True), keys


def to_others(q, k, keys, value):
    """The new token attends to all but itself, to nothing at the beginning."""
    y, grown = deep_step(q, k, keys, value, blind=True)
    return y if keys.shape[1] else np.zeros_like(y), grown


def a_step(S):
    return lambda r: normals(r, (2, 1, 2, 3), (2, 1, 2, 3), (2, S, 2, 3), (2, S + 1, 2, 3))


@unit.exercise(
    Part("the first token, from an empty cache", 1, a_step(0)),
    Part("a later token", 2, a_step(5)),
    Wrong(
        "the new key in front",
        2,
        "you put the new key in front of the cached ones; then keys and values belong to different "
        "tokens: it goes behind them",
        dict(front=True),
    ),
    Wrong(
        "a mask from the left",
        2,
        "your mask lets the new query see the first key only; it is the LAST of all positions and "
        "sees everything that is kept: no mask is needed",
        dict(corner=True),
    ),
    Wrong(
        "does not see itself",
        2,
        "the new token must see itself, too: append its key first, then attend",
        dict(blind=True),
    ),
    Wrong(
        "no root",
        2,
        "your scores are not divided by the square root of the head's width",
        dict(root=False),
    ),
    Wrong(
        "keys first",
        3,
        "the two results are exchanged: first what attention puts out, then the keys",
        dict(exchanged=True),
    ),
    slip(
        2,
        "you divided the scores by the head's width; wanted its root",
        lambda q, *rest: deep_step(q / q.shape[-1] ** 0.5, *rest),
    ),
    slip(
        2,
        "you took the gain of the QK norm, 1.2 for q and for k; here q and k are used as they come",
        lambda q, *rest: deep_step(1.44 * q, *rest),
    ),
    slip(
        2,
        "you took the gain of the QK norm, 1.2 for q and for k; here q and k are used as they come",
        lambda q, *rest: deep_step(1.2 * q, *rest),
    ),
    slip(
        3,
        "your scores went into the sum as they are; a softmax makes weights of them",
        lambda q, k, keys, value: unweighted(q, np.concatenate([keys, k], 1), value),
    ),
    slip(
        2,
        "your values are turned round: value s belongs to key s",
        lambda q, k, keys, value: deep_step(q, k, keys, value[:, ::-1]),
    ),
    slip(
        3,
        "that is the output alone; the keys, grown by one, are the second result",
        lambda *given: deep_step(*given)[0],
    ),
    slip(
        3,
        "your heads attend to each other: PyTorch's own function wants (B, H, T, D), so give it "
        "q.transpose(1, 2), and turn its answer back",
        lambda q, k, keys, value: heads_to_heads(q, np.concatenate([keys, k], 1), value),
    ),
    slip(
        3,
        "your softmax runs over the heads; the weights of one head sum to one over the POSITIONS",
        lambda q, k, keys, value: elsewhere(q, np.concatenate([keys, k], 1), value, 2),
    ),
    slip(
        3,
        "your softmax runs over the texts; the weights of a query sum to one over the POSITIONS",
        lambda q, k, keys, value: elsewhere(q, np.concatenate([keys, k], 1), value, 0),
    ),
    slip(
        3,
        "the new token must see itself, too: append its key first, then attend",
        lambda *given: to_others(*given),
    ),
    slip(
        3,
        "your output has lost the axis of its one token: wanted (B, 1, H, D)",
        lambda *given: (deep_step(*given)[0][:, 0], deep_step(*given)[1]),
    ),
    hints=[
        "First append: keys = torch.cat([keys, k], 1), now (B, S + 1, H, D), as many as there are "
        "values.",
        "Then attend as in notebook 01, with one query. What would a mask have to hide?",
        'a = (torch.einsum("bthd,bshd->bhts", q, keys) / D**0.5).softmax(-1), and return both: '
        "what attention puts out, and the grown keys.",
    ],
    level="medium",
    minutes=8,
)
def deep_step(
    q, k, keys, value, *, front=False, corner=False, blind=False, root=True, exchanged=False
):
    """A deep layer of SVFormer decodes one token: (output (B, 1, H, D), keys (B, S + 1, H, D)).

    q, k (B, 1, H, D) are the token's, keys (B, S, H, D) this layer's so far; value (B, S + 1, H, D)
    is the one stream of all layers, to which the first layer has added the token already.
    """
    grown = np.concatenate([k, keys] if front else [keys, k], 1)
    out = np.zeros(q.shape)
    B, _, H, D = q.shape
    S = keys.shape[1]
    seen = 1 if corner else S if blind and S else S + 1
    for b, h in np.ndindex(B, H):
        scores = np.array([q[b, 0, h] @ grown[b, s, h] for s in range(seen)])
        a = by_index.softmax(scores / (np.sqrt(D) if root else 1))
        out[b, 0, h] = sum(a[s] * value[b, s, h] for s in range(seen))
    return (grown, out) if exchanged else (out, grown)


# ---- all values of SVFormer, as a table ----------------------------------------------------------


def in_place_of(says, made):
    """The mistake of another table, made of a model with an embedding (V, C)."""
    return slip(3, says, lambda model: made(model, model.embed.table))


def a_whole_model(r):
    return (models.Whole(r, 3),)


def layer_normed(x):
    return models.normed(x - x.mean(-1, keepdims=True))


@unit.exercise(
    Part("a vocabulary of seven", 3, a_whole_model),
    in_place_of(
        "your embedding goes in as it is; the stream begins as its NORM",
        lambda model, E: model.layers[0].value(E),
    ),
    in_place_of(
        "those are streams; the first layer's matrix makes values of them",
        lambda model, E: models.normed(E),
    ),
    in_place_of("that is the embedding; wanted values, from model.layers[0]", lambda model, E: E),
    in_place_of(
        "you took the matrix of the last layer; all layers have the values of the FIRST",
        lambda model, E: model.layers[-1].value(models.normed(E)),
    ),
    in_place_of(
        "you took the matrix of the second layer; all layers have the values of the FIRST",
        lambda model, E: model.layers[1].value(models.normed(E)),
    ),
    in_place_of(
        "your values are normed; the norm stands before the matrix, and values stay as they come",
        lambda model, E: models.normed(model.layers[0].value(E)),
    ),
    in_place_of(
        "your norm runs over the tokens; each token's row has its own",
        lambda model, E: model.layers[0].value(models.normed(E.T).T),
    ),
    in_place_of(
        "you took one norm over the whole table; each token's row has its own",
        lambda model, E: model.layers[0].value(E / np.sqrt((E**2).mean())),
    ),
    in_place_of(
        "your rows have length 1; the norm of this course brings their mean SQUARE to 1",
        lambda model, E: model.layers[0].value(E / np.linalg.norm(E, axis=-1, keepdims=True)),
    ),
    in_place_of(
        "you subtracted the mean, as LayerNorm does; this norm leaves the direction alone",
        lambda model, E: model.layers[0].value(layer_normed(E)),
    ),
    in_place_of(
        "your table is turned: a row for every token, (V, C)",
        lambda model, E: model.layers[0].value(models.normed(E)).T,
    ),
    in_place_of(
        "that is the mean of all rows; wanted a row for every token",
        lambda model, E: model.layers[0].value(models.normed(E)).mean(0),
    ),
    in_place_of(
        "you left out a token; the vocabulary has V of them, from 0",
        lambda model, E: model.layers[0].value(models.normed(E))[1:],
    ),
    in_place_of(
        "you left out a token; the vocabulary has V of them, from 0",
        lambda model, E: model.layers[0].value(models.normed(E))[:-1],
    ),
    in_place_of(
        "those are scores; wanted the values of the first layer",
        lambda model, E: model.scores(models.normed(E)),
    ),
    in_place_of(
        "you took the mean over all layers' matrices; all layers have the values of the FIRST",
        lambda model, E: sum(one.value(models.normed(E)) for one in model.layers) / 3,
    ),
    in_place_of(
        "you added the stream; a value is what the matrix makes of it",
        lambda model, E: models.normed(E) + model.layers[0].value(models.normed(E)),
    ),
    in_place_of(
        "your rows went through the MLP; values are made by model.layers[0].value",
        lambda model, E: model.layers[0].mlp(models.normed(E)),
    ),
    hints=[
        "model.embed.weight has a row for every token. What happens to it on the way to "
        "layers[0].value?",
        "model.layers[0].value(norm(norm(model.embed.weight)))",
    ],
    level="medium",
    minutes=5,
)
def value_table(model):
    """All values that the layers of a SVFormer can ever hear: a row for each token, (V, C).

    model.embed.weight (V, C) holds a row for each token; its norm is where the stream begins, and
    the first layer makes its values of a norm of the stream, by model.layers[0].value.
    """
    return model.layers[0].value(models.normed(model.embed.table))
