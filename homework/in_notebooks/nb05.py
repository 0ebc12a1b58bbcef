"""Notebook 05: what must a cache hold, and who reads it?"""

import numpy as np

from homework.by_index import softmax
from homework.in_notebooks import models
from homework.marking import Part, Unit, drawn, normals

unit = Unit("nb05_svformer", "SVFormer and the KV cache")


@unit.exercise(*models.VALUES)
def value(self, n, h, v1, ids):
    """The values of layer n in SVFormer. The first layer (n = 0, v1 is None) makes its own, by
    self.layers[n].value(h); every other has the first layer's, v1. h, v1 (B, T, C), ids (B, T).
    """
    own = self.layers[n].value(h)
    return v1 if n else own


unit.mistakes("""
takes: easy, 3 minutes
hint: What does the first layer do, n = 0, and what is left to do for all others?
hint: return self.layers[n].value(h) if n == 0 else v1
2 | your deeper layers make values of their own; all of them have the first layer's, v1
    v1 => own
2 | that is ResFormer: half of each; here nothing of the layer's own is left
    v1 => (own + v1) / 2
2 | you added v1 to the layer's own values; here nothing of its own is left
    v1 => own + v1
2 | you halved v1; all of it is wanted
    v1 => v1 / 2
2 | you applied the first layer's matrix to THIS layer's stream; that layer made v1 of its own
    v1 => self.layers[0].value(h)
2 | v1 has been through the first layer's matrix; it needs no other
    v1 => self.layers[n].value(v1)
    v1 => self.layers[0].value(v1)
2 | those are values of the layer below; all have the first layer's, v1
    v1 => self.layers[n - 1].value(h)
2 | that is the stream; wanted values: v1
    v1 => h
2 | that is the embedding; wanted values: v1
    v1 => self.embed(ids)
2 | you added the stream to v1; v1 alone
    v1 => v1 + h
2 | your second layer makes its own values; only the first does, n = 0
    if n => if n > 1
1 | your first layer offers its stream
    else own => else h
""")


@drawn
def one_or_all(r, one):
    layers = int(r.integers(4, 13))
    return layers, [0] if one else list(range(layers))


def some(r):
    layers = int(r.integers(9, 13))
    return layers, [0, *sorted(int(n) for n in r.permutation(layers - 3)[:3] + 2)]


@unit.exercise(
    Part("one anchor, or as many as layers", 1, [one_or_all(True), one_or_all(False)]),
    Part("a few anchors", 2, some),
)
def owners_of(layers, anchors):
    """Whose rows each layer reads: a list of `layers` numbers of layers. The layers in `anchors` (0
    is one) make rows of their own; every other reads those of the latest anchor before it."""
    out = []
    for n in range(layers):
        owner = [a for a in anchors if a <= n][-1]
        out.append(owner)
    return np.array(out)


unit.mistakes("""
takes: easy, 4 minutes
hint: Write it down for 6 layers with anchors [0, 3]: whose rows do layers 2, 3 and 5 read?
hint: For layer n, take the largest anchor that is not above n.
hint: [max(a for a in anchors if a <= n) for n in range(layers)]
2 | you took the nearest anchor, even one above; a layer can only read what was made before it
    [a for a in anchors if a <= n][-1] => min(anchors, key=lambda a: (abs(a - n), a))
2 | you returned which anchor it is, counted from 0; wanted the number of its layer
    append(owner) => append(anchors.index(owner))
3 | your layers read the layer below, whether it made rows or not; they read the latest ANCHOR
    append(owner) => append(n if n in anchors else n - 1)
3 | an anchor owns its rows: it reads itself, not the anchor before it
    [a for a in anchors if a <= n] => [0, *(a for a in anchors if a < n)]
3 | all your layers read layer 0; they read the LATEST anchor
    append(owner) => append(0)
3 | all your layers read themselves; only anchors do
    append(owner) => append(n)
2 | your layers read the NEXT anchor, which is made after them; they read the latest before
    append(owner) => append(min((a for a in anchors if a >= n), default=max(anchors)))
3 | your layers begin at 1; the first is layer 0
    <= n => <= n + 1
2 | all but anchors read layer 0 in yours; they read the LATEST anchor
    append(owner) => append(n if n in anchors else 0)
2 | all but anchors read the LAST anchor in yours; it may be made after them
    append(owner) => append(n if n in anchors else max(anchors))
3 | yours says -1 where a layer makes no rows; wanted whose rows it reads
    append(owner) => append(n if n in anchors else -1)
3 | yours says whether a layer is an anchor; wanted its number
    append(owner) => append(n in anchors)
2 | your layers take the anchors by turns; they read the LATEST anchor before them
    append(owner) => append(anchors[n % len(anchors)])
2 | you gave every anchor as many layers; each reaches to the next one, wherever that is
    append(owner) => append(anchors[n * len(anchors) // layers])
    append(owner) => append(n - n % (layers // len(anchors)))
3 | all your layers read the LAST anchor; they read the latest that is made before them
    append(owner) => append(max(anchors))
""")


@drawn
def a_plan(r, shared):
    layers = int(r.integers(4, 13))
    keys = values = list(range(layers))
    if shared:
        anchors = [0, *sorted(int(n) for n in r.permutation(layers - 1)[:2] + 1)]
        values = owners_of(layers, anchors).tolist()
        keys = owners_of(layers, list(range(0, layers, 2))).tolist()
    heads, width, size = r.integers(3, 9), r.choice([32, 64, 128]), r.choice([4, 8])
    return keys, values, int(heads), int(width), int(size)


@unit.exercise(
    Part("nothing is shared", 1, a_plan(False)), Part("some layers read others", 2, a_plan(True))
)
def bytes_a_token(keys, values, groups, width, size):
    """Bytes that a token leaves behind in the cache, a whole number. keys, values: whose rows each
    layer reads. A row has `groups` heads of `width` numbers, a number has `size` bytes."""
    k, v = len(set(keys)), len(set(values))
    row = groups * width * size
    return (k + v) * row


unit.mistakes("""
takes: easy, 4 minutes
hint: How many different layers own keys, and how many own values? len(set(…)) says it.
hint: A row is groups * width numbers of `size` bytes each, for keys and for values alike.
hint: (len(set(keys)) + len(set(values))) * groups * width * size
2 | you counted the layers that READ; a row that several layers read is kept once
    len(set(keys)), len(set(values)) => len(keys), len(values)
    set(keys) => keys
    set(values) => values
3 | you counted the layers that own anything; keys and values are two rows, each with its own owners
    k + v => len(set(keys + values))
2 | keys and values have owners of their own each; you counted one of the two twice
    set(values) => set(keys)
    set(keys) => set(values)
3 | you counted one of the two; keys and values are kept
    k + v => k
    k + v => v
3 | you counted numbers; each of them takes `size` bytes
    * size =>
3 | only the values are multiplied in yours: put brackets around keys plus values
    (k + v) * row => k + v * row
3 | you divided by 8: size is in bytes already
    * row => * row / 8
3 | those are bits; size is in bytes already
    * row => * row * 8
3 | you multiplied the two counts; keys and values ADD up
    k + v => k * v
3 | you took the highest number of a layer; count the owners
    k + v => max(keys) + max(values)
2 | you counted pairs of a key's and a value's owner; count the owners of each
    k + v => 2 * len(set(zip(keys, values)))
3 | you counted more than owners of keys and of values; a query is used once and not kept
    k + v => k + v + len(keys)
    k + v => 3 * len(keys)
    k + v => 2 * k + v
3 | you doubled what is counted already: the owners of keys and those of values
    k + v => 2 * (k + v)
2 | the highest number of a layer does not say how many own anything: count the owners
    k + v => max(keys) + 1 + max(values) + 1
3 | a row has `groups` heads: groups * width numbers
    groups * width => width
    groups * width => width // groups
""")


def grouped(G, H):
    return lambda r: (*normals(r, (2, 4, G, 3)), H)


@unit.exercise(
    Part("neighbours share a head", 2, [grouped(3, 6), grouped(2, 6), grouped(2, 4)]),
    Part("one head for all (MQA)", 1, grouped(1, 4)),
)
def shared_heads(rows, H):
    """Keys or values with a head for each of H query heads: rows (B, S, G, D) -> (B, S, H, D).
    H // G neighbouring query heads read the same one."""
    B, S, G, D = rows.shape
    out = np.zeros((B, S, H, D))
    for h in range(H):
        out[:, :, h] = rows[:, :, h // (H // G)]
    return out


unit.mistakes("""
takes: easy, 3 minutes
hint: With G = 2 and H = 4, which of the two heads do query heads 0, 1, 2, 3 read?
hint: Each head is needed H // G times, next to itself: repeat_interleave along dimension 2.
2 | your query heads take the shared ones by turns (0, 1, 0, 1); neighbours share one (0, 0, 1, 1):
  | repeat_interleave, not repeat
    h // (H // G) => h % G
3 | you repeated positions, features or texts; the heads are dimension 2 of (B, S, G, D)
    => np.repeat(rows, H // rows.shape[2], 1)
    => np.repeat(rows, H // rows.shape[2], 3)
    => np.repeat(rows, H // rows.shape[2], 0)
2 | you repeated each head H times; wanted H heads in all, so each of the G is needed H // G times
    => np.repeat(rows, H, 2)
3 | you repeated each head G times; it is needed H // G times
    => np.repeat(rows, rows.shape[2], 2)
2 | all your query heads read one shared head; H // G neighbours share each of the G
    h // (H // G) => 0
    h // (H // G) => -1
2 | all your query heads read the mean of the shared ones; neighbours share one
    rows[:, :, h // (H // G)] => rows.mean(2)
3 | your copies have an axis of their own; put it into the heads: flatten(2, 3)
    => np.repeat(rows[:, :, :, None], H // rows.shape[2], 3)
3 | you filled up with zeros; neighbours share a head
    rows[:, :, h // (H // G)] => rows[:, :, h] if h < G else 0
2 | you divided h by G; each shared head has H // G neighbours: h // (H // G)
    h // (H // G) => min(h // G, G - 1)
""")


def a_step(S):
    return lambda r: normals(r, (2, 1, 2, 3), (2, 1, 2, 3), (2, S, 2, 3), (2, S + 1, 2, 3))


@unit.exercise(
    Part("the first token, from an empty cache", 1, a_step(0)), Part("a later token", 2, a_step(5))
)
def deep_step(q, k, keys, value):
    """A deep layer of SVFormer decodes one token: (output (B, 1, H, D), keys (B, S + 1, H, D)).

    q, k (B, 1, H, D) are the token's, keys (B, S, H, D) this layer's so far; value (B, S + 1, H, D)
    is the one stream of all layers, to which the first layer has added the token already.
    """
    grown = np.concatenate([keys, k], 1)
    z = (q * grown).sum(-1) / np.sqrt(q.shape[-1])
    a = softmax(z, 1)
    y = (a[..., None] * value).sum(1, keepdims=True)
    return y, grown


unit.mistakes("""
takes: medium, 8 minutes
hint: First append: keys = torch.cat([keys, k], 1), now (B, S + 1, H, D), as many as values.
hint: Then attend as in notebook 01, with one query. What would a mask have to hide?
hint: a = (torch.einsum("bthd,bshd->bhts", q, keys) / D**0.5).softmax(-1), and return both: what
    | attention puts out, and the grown keys.
2 | you put the new key in front of the cached ones; it goes behind them, as the values do
    [keys, k] => [k, keys]
2 | your mask lets the new query see the first key only; it is the LAST of all positions and sees
  | everything that is kept: no mask is needed
    (a[..., None] * value).sum(1, keepdims=True) => value[:, :1]
2 | the new token must see itself, too: append its key first, then attend
    q * grown => q * (keys if keys.size else k)
    and: * value) => * value[:, : keys.shape[1] or 1])
2 | your scores are not divided by the square root of the head's width
    / np.sqrt(q.shape[-1]) =>
3 | the two results are exchanged: first what attention puts out, then the keys
    y, grown => grown, y
2 | you divided the scores by the head's width; wanted its root
    np.sqrt(q.shape[-1]) => q.shape[-1]
2 | you took the gain of the QK norm, 1.2 for q and for k; here q and k are used as they come
    q * grown => 1.44 * q * grown
    q * grown => 1.2 * q * grown
3 | your scores went into the sum as they are; a softmax makes weights of them
    softmax(z, 1) => z
2 | your values are turned round: value s belongs to key s
    * value) => * value[:, ::-1])
3 | that is the output alone; the keys, grown by one, are the second result
    y, grown => y
3 | your heads attend to each other: PyTorch's own function wants (B, H, T, D), so give it
  | q.transpose(1, 2), and turn its answer back
    (a[..., None] * value).sum(1, keepdims=True) => np.einsum("bshg,bsgd->bshd",
  | softmax(np.einsum("bhd,bsgd->bshg", q[:, 0], grown) / np.sqrt(q.shape[-1])), value)
3 | your softmax runs over heads or texts; the weights of a query sum to one over the POSITIONS
    softmax(z, 1) => softmax(z, 2)
    softmax(z, 1) => softmax(z, 0)
2 | your softmax runs over the queries, and there is one: its weights sum to one over the POSITIONS
    softmax(z, 1) => 1 + 0 * z
3 | the new token must see itself, too: append its key first, then attend
    q * grown => q * (keys if keys.size else k)
    and: * value) => * value[:, : keys.shape[1] or 1] * bool(keys.size))
    y, grown => y * bool(keys.size), keys
3 | your output has lost the axis of its one token: wanted (B, 1, H, D)
    y, grown => y[:, 0], grown
1 | you appended to the values; the first layer has done that: value has S + 1 rows as it comes
    * value) => * (value + k if not keys.size else value))
    * value) => * (value + value if not keys.size else value))
""")


@unit.exercise(Part("a vocabulary of seven", 3, lambda r: (models.GPT(r, 3, width=6),)))
def value_table(model):
    """All values that the layers of a SVFormer can ever hear: a row for each token, (V, C).

    model.embed.weight (V, C) holds a row for each token; its norm is where the stream begins, and
    the first layer makes its values of a norm of the stream, by model.layers[0].value.
    """
    E = model.embed.array
    x = models.normed(E)
    return model.layers[0].value(x)


unit.mistakes("""
takes: medium, 5 minutes
hint: model.embed.weight has a row for every token. What is done to it before layers[0].value?
hint: model.layers[0].value(norm(norm(model.embed.weight)))
3 | your embedding goes in as it is; the stream begins as its NORM
    models.normed(E) => E
3 | those are streams; the first layer's matrix makes values of them
    model.layers[0].value(x) => x
3 | that is the embedding; wanted values, from model.layers[0]
    model.layers[0].value(x) => E
3 | you took the matrix of the last layer; all layers have the values of the FIRST
    layers[0] => layers[-1]
3 | you took the matrix of the second layer; all layers have the values of the FIRST
    layers[0] => layers[1]
3 | you took the head, which makes scores; the stream begins with model.embed
    E = model.embed.array => E = model.head.array
3 | those are keys of the first layer; wanted its values
    model.layers[0].value(x) => model.layers[0].key(x)
3 | the matrix is turned round: a torch Linear multiplies by weight.T
    model.layers[0].value(x) => x @ model.layers[0].value.array
3 | your values are normed; the norm stands before the matrix, and values stay as they come
    model.layers[0].value(x) => models.normed(model.layers[0].value(x))
3 | your norm runs over the tokens; each token's row has its own
    models.normed(E) => models.normed(E.T).T
3 | you took one norm over the whole table; each token's row has its own
    models.normed(E) => E / np.sqrt((E**2).mean())
3 | your rows have length 1; the norm of this course brings their mean SQUARE to 1
    models.normed(E) => E / np.linalg.norm(E, axis=-1, keepdims=True)
3 | you subtracted the mean, as LayerNorm does; this norm leaves the direction alone
    models.normed(E) => models.normed(E - E.mean(-1, keepdims=True))
3 | your table is turned: a row for every token, (V, C)
    value(x) => value(x).T
3 | those are scores; wanted the values of the first layer
    model.layers[0].value(x) => model.scores(x)
3 | you added the stream; a value is what the matrix makes of it
    return => return x +
3 | your rows went through the MLP; values are made by model.layers[0].value
    value(x) => mlp(x)
""")
