"""Notebook 13: how deep may a value read, what if it is the key, what is taken out of it? And what
goes deeper: which row two ids choose, and where a matrix may go."""

import numpy as np

from homework.by_index import normed, softmax
from homework.marking import Part, Unit, drawn, need, normals, refuse

unit = Unit("nb13_what_came_next", "What came next?")

PRIME = 2**31 - 1


def length(x):
    return np.sqrt((x**2).sum(-1, keepdims=True))


def layer_normed(x):
    """As PyTorch has it."""
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)


@drawn
def dial(r, n, j):
    """Five streams (N, B, T, C), which grow and lean to one side; a layer, a dial, W_V (E, C)."""
    streams, w = normals(r, (5, 2, 3, 4), (6, 4))
    return (streams + 0.5) * np.arange(1, 6)[:, None, None, None], n, j, w


@unit.exercise(
    Part("below, level, above", 3, [dial(3, 1), dial(2, 2), dial(1, 3), dial(4, 0), dial(3, 2)])
)
def upstream(streams, n, j, w):
    """(B, T, E): the values of layer n, made of the stream that enters layer j; of the layer's own
    stream where that comes first.

    streams (N, B, T, C): streams[i] is what enters layer i, before its norm. w (E, C): W_V of
    layer n. As in every layer, W_V reads the normed stream: x over the root of its mean square.
    """
    x = streams[min(j, n)]
    return normed(x) @ w.T


unit.mistakes("""
takes: easy, 5 minutes
hint: Which entry of streams is it? Try n = 3 and j = 1, then n = 1 and j = 3. And what does a
    | layer do to a stream before W_V reads it?
hint: norm(streams[min(j, n)]) @ w.T; norm is in minimal.model.layers and imported here.
3 | a layer below j reads its own stream; the one that enters j is not there yet: min(j, n)
    min(j, n) => j
3 | that is the layer's own stream, whatever j says
    min(j, n) => n
3 | that is x0, whatever j says
    min(j, n) => 0
3 | the earlier of the two streams is wanted, min(j, n); yours is the later one
    min(j, n) => max(j, n)
3 | the norm before W_V is missing
    normed(x) => x
3 | the norm comes before W_V; yours comes after it
    normed(x) @ w.T => normed(x @ w.T)
3 | streams[i] is what ENTERS layer i: yours is what leaves it
    min(j, n) => min(j + 1, n)
3 | streams[0] enters layer 0: yours counts from 1
    min(j, n) => min(j, n) - 1
    min(j, n) => min(max(j - 1, 0), n)
    min(j, n) => min(j - 1, n)
3 | streams[n] enters layer n itself: a layer may read it, and yours stops one before
    min(j, n) => min(j, n - 1)
3 | j counts from the first layer on, and not back from layer n
    min(j, n) => max(n - j, 0)
3 | norm divides by the root of the MEAN square, not of the sum
    normed(x) => x / length(x)
3 | one stream is wanted; you added all of them up to it
    streams[min(j, n)] => streams[: min(j, n) + 1].sum(0)
3 | norm here has no mean to take away: the root of the mean square alone
    normed(x) => normed(x - x.mean(-1, keepdims=True))
    normed(x) => layer_normed(x)
3 | the norm runs over the C numbers of a token: yours runs over tokens
    normed(x) => x / np.sqrt((x**2).mean())
    normed(x) => x / np.sqrt((x**2).mean(1, keepdims=True))
""")


def reads(r):
    """Weights (H, T, S), turned keys (S, H, D), cos and sin (T, D/2) of the last T places."""
    H, T, S, D = 2, 3, 5, 8
    scores, k = normals(r, (H, T, S), (S, H, D))
    angles = np.arange(S - T, S)[:, None] * np.array([1.0, 0.6, 0.3, 0.1])
    return softmax(scores), k, np.cos(angles), np.sin(angles)


@unit.exercise(Part("the last places", 4, reads))
def read_turned(a, k, cos, sin):
    """(T, H, D): what is read where keys are the values, turned back by the place of the query.

    a (H, T, S): weights. k (S, H, D): keys, each turned by its place. cos, sin (T, D/2): of the
    queries' places. A place turns a row of two halves (x1, x2) into (x1 cos + x2 sin, x2 cos - x1
    sin); back is the same by minus the angle.
    """
    y = np.einsum("hts,shd->thd", a, k)
    y1, y2 = np.split(y, 2, -1)
    c, s = cos[:, None], sin[:, None]
    first = y1 * c - y2 * s
    second = y2 * c + y1 * s
    return np.concatenate([first, second], -1)


unit.mistakes("""
takes: medium, 8 minutes
hint: First the weighted mean of keys, for every query and head. Then turn each row of it, as
    | notebook 01 turned a key, by the query's angle and with the other sign of sin.
hint: y = torch.einsum('hts,shd->thd', a, k); y1, y2 = y.chunk(2, -1); cos[:, None] stands for all
    | heads. The first half is y1 cos - y2 sin.
4 | you did not turn back: that is the mean of turned keys
    np.concatenate([first, second], -1) => y
4 | you turned on, the same way as the keys: back is by the other sign of sin
    sin[:, None] => -sin[:, None]
4 | the pairs are the two HALVES of a row, x1 and x2; yours are neighbours
    np.split(y, 2, -1) => y[..., ::2], y[..., 1::2]
    and: np.concatenate([first, second], -1) => np.stack([first, second], -1).reshape(y.shape)
    np.split(y, 2, -1) => y[..., ::2], y[..., 1::2]
4 | in one half the sign of sin is still that of turning on
    + y1 * s => - y1 * s
    - y2 * s => + y2 * s
4 | your second half is made of the new first one: keep y1 until both are made
    y1 * s => first * s
4 | cos and sin have changed places
    cos[:, None], sin[:, None] => sin[:, None], cos[:, None]
4 | the halves of your rows have changed places
    [first, second] => [second, first]
4 | you turned back twice: each key was turned once
    cos[:, None], sin[:, None] => (cos**2 - sin**2)[:, None], (2 * cos * sin)[:, None]
4 | to turn back, sin alone changes its sign: cos keeps it
    cos[:, None], sin[:, None] => -cos[:, None], -sin[:, None]
    cos[:, None], sin[:, None] => -cos[:, None], sin[:, None]
4 | a holds weights already: no softmax is asked for
    a, k) => softmax(a), k)
4 | every head has weights of its own: you averaged them, or took one head's
    a, k) => a.mean(0, keepdims=True) + 0 * a, k)
    a, k) => a[:1] + 0 * a, k)
4 | every query turns back by its own place: you took one place's angle for all
    cos[:, None], sin[:, None] => cos[:1, None], sin[:1, None]
    cos[:, None], sin[:, None] => cos[-1:, None], sin[-1:, None]
""")


@unit.exercise(Part("every token and head", 3, lambda r: normals(r, (4, 3, 6), (4, 3, 6))))
def exclusive(y, v):
    """(T, H, D): what each token has heard, less what lies along its own value, head by head.

    y (T, H, D): what attention has said to each token. v (T, H, D): the value of that token itself.
    What is left has no part along v: its product with v is 0 for every token and head.
    """
    product = (y * v).sum(-1, keepdims=True)
    square = (v * v).sum(-1, keepdims=True)
    return y - product / square * v


unit.mistakes("""
takes: easy, 5 minutes
hint: The direction of v is u = v over its length. How far does y reach along u? A product, one
    | number a token and head.
hint: u = F.normalize(v, dim=-1); then y - (y * u).sum(-1, keepdim=True) * u.
3 | v is not of length 1: divide by v . v, or take the direction of v first
    / square =>
3 | v comes in twice, in the product and behind it: divide by its length twice
    / square => / length(v)
3 | you added what lies along v: it is taken out
    y - product => y + product
3 | that is what is taken out; what is LEFT is wanted
    y - product => product
3 | you took out the whole value: only y's share along it goes
    product / square * v => v
3 | you took out the direction of v, however far y reaches along it: their product is missing
    product / square * v => v / length(v)
3 | every head has a value of its own: your product runs over the heads, too
    (y * v).sum(-1 => (y * v).sum((1, 2)
    and: (v * v).sum(-1 => (v * v).sum((1, 2)
    (y * v).sum(-1 => (y * v / length(v)).sum((1, 2)
    and: / square => / length(v)
    => y - np.einsum("thd,tgd,tge,tg->the", y, v, v, 1 / (v * v).sum(-1))
3 | every head has a value of its own: divide by the length of that one
    (v * v).sum(-1 => (v * v).sum((1, 2)
    (v * v).sum(-1, keepdims=True) => (v * v).sum()
3 | the length of v runs over the D numbers of a head; yours runs over the heads: F.normalize takes
  | axis 1 unless it is told dim=-1
    => (lambda u: y - (y * u).sum(-1)[..., None] * u)(v / np.sqrt((v * v).sum(1, keepdims=True)))
3 | y and v have changed places: y is what is kept, less its share along v
    => exclusive(v, y)
3 | the length of v runs over the D numbers of a head; yours runs over the tokens
    (v * v).sum(-1 => (v * v).sum(0
    => y - (y * v / ((v * v).sum(0)) ** 0.5).sum(-1, keepdims=True) * v / ((v * v).sum(0)) ** 0.5
3 | the length of v is the root of the SUM of squares; yours is that of their mean
    / square => / square * v.shape[-1]
3 | divide by v . v, not by y . y, and take it out along v
    (v * v) => (y * y)
    / square * v => / length(y) * y
3 | along v: what is taken out is the product times the DIRECTION of v, behind it as well
    product / square * v => product / length(v)
3 | a product of two vectors is the SUM over their numbers; yours is the mean
    (y * v).sum => (y * v).mean
3 | the sum over the D numbers of a head is missing
    (y * v).sum(-1, keepdims=True) => y * v
3 | your product runs over the tokens; it runs over the D numbers of a head
    (y * v).sum(-1 => (y * v).sum(0
    and: (v * v).sum(-1 => (v * v).sum(0
    (y * v).sum(-1 => (y * v / length(v)).sum(0
    and: / square => / length(v)
3 | your product runs over the heads; it runs over the D numbers of a head
    (y * v).sum(-1 => (y * v).sum(1
    and: (v * v).sum(-1 => (v * v).sum(1
    (y * v).sum(-1 => (y * v / length(v)).sum(1
    and: / square => / length(v)
3 | a cosine knows no lengths: how far y reaches along v has y's length in it
    / square => / length(y) / length(v)
    / square => / length(y) / square
3 | what is left keeps the length that it has: no norm behind it
    => normed(exclusive(y, v))
    => exclusive(y, v) / length(exclusive(y, v))
3 | a share against v goes as well: no abs, no relu
    y - product => y - np.abs(product)
    y - product => y - np.maximum(product, 0)
""")


def texts(r):
    """Ids (2, T), three factors, a number of rows."""
    ids = r.integers(0, 50, size=(2, int(r.integers(3, 9))))
    a, b, c = (int(x) for x in r.integers(1, PRIME, size=3))
    return ids, a, b, c, int(r.integers(5, 200))


def one_token(r):
    _, a, b, c, rows = texts(r)
    return r.integers(0, 50, size=(2, 1)), a, b, c, rows


def shifted(ids):
    """Each text one place to the right, a zero in front."""
    return np.pad(ids, ((0, 0), (1, 0)))[:, :-1]


@unit.exercise(Part("texts", 3, [texts, texts, one_token]))
def bigram_slots(ids, a, b, c, rows):
    """(B, T): ((a here + b before + c) mod (2**31 - 1)) mod rows, with ids counted from 1.

    ids (B, T) int64. here: the id at this place plus 1; before: the id one place earlier plus 1,
    and 0 at the first place.
    """
    here = ids + 1
    before = shifted(here)
    slots = (a * here + b * before + c) % PRIME
    return slots % rows


unit.mistakes("""
takes: easy, 8 minutes
hint: The ids before: the same tensor, one place to the right, with a column of zeros in front.
hint: torch.nn.functional.pad(ids + 1, (1, 0))[:, :-1] is the ids before, from 1, 0 for none.
3 | your slot depends on the id that comes next; wanted the id here and the one before
    shifted(here) => np.pad(here, ((0, 0), (0, 1)))[:, 1:]
3 | your first slot knows the last id of the text (roll does that); before a text stands 0
    shifted(here) => np.roll(here, 1, 1)
3 | cold water and water cold share your slot: each of the two ids has a factor of its own
    b * before => a * before
3 | id 0 and no id at all look alike in yours: ids are counted from 1, the one before as well
    ids + 1 => ids
    shifted(here) => shifted(ids)
3 | the id here is counted from 1, too
    a * here => a * ids
3 | the remainder is that of the whole sum: brackets around all three terms
    (a * here + b * before + c) % PRIME => a * here + b * before + c % PRIME % rows
    and: slots % rows => slots
3 | the first place has a slot like all others: there, `before` is 0
    return slots % rows => return slots % rows * (before > 0)
3 | no id stands before the first place: 0 there, not its own id once more
    shifted(here) => np.maximum(shifted(here), (np.arange(ids.shape[1]) == 0) * here)
3 | before is the id one PLACE earlier, not a smaller id
    shifted(here) => ids
3 | the remainder is wanted, %; // is the quotient
    slots % rows => slots // rows
3 | before the first place stands 0, which no id has; you put a 1 there
    shifted(here) => np.maximum(shifted(here), 1)
3 | a and b have changed places: a belongs to the id here
    a * here + b * before => b * here + a * before
3 | c is missing
    + c =>
3 | the remainder by 2**31 - 1 comes first, then that by rows: yours is missing, or comes last
    % PRIME =>
3 | the remainder by rows is missing: a slot is below rows
    % rows =>
3 | 2**31 - 1 is wanted, a prime; you took 2**31
    PRIME => 2**31
3 | % comes before -: 2**31 - 1 stands in brackets of its own
    % PRIME => % 2**31 - 1
    % PRIME => % 2**31 - 1
    and: return slots % rows => return slots
3 | a power is 2**31 in Python; 2^31 is something else
    PRIME => (2 ^ 31 - 1)
3 | you looked two places back; the id before stands one place earlier
    shifted(here) => shifted(shifted(here))
3 | c is added before the remainder by 2**31 - 1
    + c) % PRIME => ) % PRIME + c
3 | before the first place of EVERY text stands 0; yours knows the last id of the text above
    shifted(here) => np.append(0, here.ravel()[:-1]).reshape(here.shape)
3 | you shifted the batch: the place before is in the same text
    shifted(here) => shifted(here.T).T
""")


def no_keys(made, q, latent, up):
    """What is made of the latent and W_UK, and of no query, is a key."""
    if any(x.of == {"latent", "up"} for x in made):
        return "you made the keys: up met the latent before a query did. Let up join the queries"
    return ""


def heads(r):
    H, D, C, T, S = (int(n) for n in r.integers(2, 6, size=5))
    return normals(r, (T, H, D), (S, C), (H, D, C))


@unit.exercise(Part("queries that read the latent", 3, heads), forbids=no_keys)
def absorbed_scores(q, latent, up):
    """(H, T, S): q[t, h] . (up[h] latent[s]), without making a key: only q and latent meet s.

    q (T, H, D): queries. latent (S, C): what the cache keeps. up (H, D, C): W_UK, head by head.
    """
    scores = np.einsum("thd,hdc,sc->hts", q, up, latent)
    return scores


unit.mistakes("""
takes: medium, 10 minutes
hint: A score is the sum over d of q[t, h, d] times the sum over c of up[h, d, c] latent[s, c].
    | Which of the two sums can be made without s?
hint: Sum over d first: q' [t, h, c] = sum over d of q[t, h, d] up[h, d, c]. One einsum.
3 | every head has a matrix of its own: yours gives all heads the first one's
    up, => up[:1] + 0 * up,
3 | every head has a matrix of its own: you added them up, or averaged them
    up, => up.sum(0, keepdims=True) + 0 * up,
    up, => up.mean(0, keepdims=True) + 0 * up,
3 | the latent is read as it is kept: no norm is asked for
    up, latent) => up, normed(latent))
3 | q is (T, H, D): exchange its axes by transpose; reshape mixes tokens and heads
    q, => q.reshape(q.shape[1], q.shape[0], -1).swapaxes(0, 1),
    return scores => return scores.swapaxes(0, 1).reshape(scores.shape)
3 | your heads all ask the same: the sum over h belongs into no part of it
    return scores => return scores.sum(0) + 0 * scores
    hts => ts
3 | heads and queries have changed places: wanted (H, T, S)
    hts => ths
3 | queries and places have changed places: wanted (H, T, S)
    hts => hst
3 | every head has a query of its own: yours gives all heads the first one's
    q, => q[:, :1] + 0 * q,
3 | scores alone: no softmax is asked for, and no mask
    return scores => return softmax(scores)
    return scores => return np.where(np.tri(*scores.shape[1:]) > 0, scores, -np.inf)
3 | every head has a query of its own: you averaged them
    q, => q.mean(1, keepdims=True) + 0 * q,
3 | no scale is asked for: you divided by the root of a width
    return scores => return scores / latent.shape[1] ** 0.5
    return scores => return scores / q.shape[2] ** 0.5
""")


def shapes(r):
    """Tokens, layers, heads (even), their width, a latent's width, a vocabulary."""
    low = (50, 3, 1, 8, 10, 100)
    tokens, layers, half, head, latent, vocab = (int(r.integers(x, 4 * x)) for x in low)
    return tokens, layers, 2 * half, head, latent, vocab


@unit.exercise(Part("bytes", 4, shapes))
def five_caches(tokens, layers, heads, head, latent, vocab):
    """(gqa, mla, svformer, bank, turned): the bytes that so many tokens keep, tables included.

    Two bytes a number, four an id. gqa has keys and values of heads / 2 heads. mla keeps `latent`
    numbers a token and layer. svformer has keys of all heads and layers, and values of the first
    layer. bank has keys of all heads and layers, the ids, and in every layer a table of `vocab`
    rows for each head. turned has keys of all heads and layers, which are its values, too.
    """
    keys = 2 * tokens * heads * head
    table = 2 * vocab * heads * head
    gqa = layers * 2 * (keys // 2)
    mla = 2 * tokens * layers * latent
    svformer = layers * keys + keys
    bank = layers * keys + 4 * tokens + layers * table
    turned = layers * keys
    return gqa, mla, svformer, bank, turned


unit.mistakes("""
takes: medium, 12 minutes
hint: Two bytes a number, four an id. What is kept for each token, and what is kept once?
hint: gqa: 2 * 2 * tokens * layers * heads / 2 * head. svformer has `layers` streams of keys and one
    | of values. The bank's tables do not grow with the text. turned: `layers` streams.
4 | bytes are wanted, and not millions of them
    return gqa, mla, svformer, bank, turned => return tuple(x / 1e6 for x in (
  | gqa, mla, svformer, bank, turned))
4 | you counted numbers; bytes are wanted, two a number
    keys = 2 => keys = 1
    and: table = 2 => table = 1
    and: mla = 2 => mla = 1
    and: 4 * tokens => tokens
    keys = 2 => keys = 1
    and: table = 2 => table = 1
    and: mla = 2 => mla = 1
4 | a number takes two bytes in all five; yours takes four
    keys = 2 => keys = 4
    and: table = 2 => table = 4
    and: mla = 2 => mla = 4
4 | the bank keeps no values: its tables stand for them
    bank = layers => bank = 2 * layers
4 | that is for one token; wanted so many `tokens`
    => five_caches(1, layers, heads, head, latent, vocab)
4 | your latent is counted twice: keys and values are made of the same one
    * latent => * 2 * latent
4 | svformer shares values, not keys: every layer keeps keys of its own
    svformer = layers * keys => svformer = keys
4 | the ids are kept once, for all layers
    4 * tokens => 4 * tokens * layers
4 | you counted one table: here every layer reads one of its own
    layers * table => table
4 | gqa keeps keys and values for half of the heads
    keys // 2 => keys
4 | gqa keeps two streams, keys AND values, of two bytes a number
    layers * 2 => layers
4 | a number takes two bytes, of a latent and of a table as well
    mla = 2 * => mla =
    2 * vocab => vocab
4 | a table is kept once, however long the text is
    layers * table => layers * table * tokens
4 | mla keeps a latent in every layer
    tokens * layers => tokens
4 | mla keeps one latent for all heads together
    * latent => * latent * heads
4 | svformer keeps the values of the first layer alone: layers + 1 streams
    + keys => + layers * keys
    + keys =>
4 | the bank keeps the ids as well: four bytes a token
    + 4 * tokens =>
4 | an id takes four bytes
    4 * tokens => 2 * tokens
4 | the tables are included: one in every layer
    + layers * table =>
4 | a table has a row for every head
    vocab * heads => vocab
4 | a turned key is its value, too: a row for every layer and head, and nothing beside it
    turned = layers * keys => turned = 2 * layers * keys
    turned = layers * keys => turned = keys
    turned = layers * keys => turned = layers * keys // 2
""")


MAPS = [np.eye(6), np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]]  # two causal maps, (T, T)


def is_the_gate(answer, sigma, v):
    """Is A v + q_r * (A k_r) = sigma * (A v), whatever the map?"""
    q_r, k_r = need(answer, q_r=2, k_r=2)
    refuse(q_r.shape != v.shape or k_r.shape != v.shape, f"wanted two of shape {v.shape}")
    gaps = [np.abs(A @ v + q_r * (A @ k_r) - sigma * (A @ v)).max() for A in MAPS]
    refuse(
        gaps[0] < 1e-4 < gaps[1],
        "right where a token sees itself alone. Where it hears others, A mixes K_R over them: the "
        "gate of the query belongs into q_R alone, and V alone into K_R",
    )
    extra = np.abs(q_r * (MAPS[1] @ k_r) - sigma * (MAPS[1] @ v)).max()
    refuse(extra < 1e-4, "A V stands in the sum already: yours has one A V too many")
    turned = np.abs(q_r * (MAPS[1] @ k_r) + (sigma - 1) * (MAPS[1] @ v)).max()
    refuse(turned < 1e-4, "what you add to A V has the wrong sign: sigma is less than one")
    wrong = max(gaps) >= 1e-4
    refuse(wrong and np.allclose(q_r, sigma - 1), "q_R is right, and A K_R must be A V for any map")
    refuse(wrong and np.allclose(k_r, v), "K_R is right, and 1 + q_R must be sigma")
    refuse(wrong, "A V + q_R * (A K_R) is not sigma * (A V)")


def gates(r):
    (v,) = normals(r, (6, 3))
    return 1 / (1 + np.exp(-r.normal(size=(6, 3)))), v


@unit.exercise(Part("any map", 3, gates, is_the_gate))
def gate_as_dva(sigma, v):
    """(q_r, k_r), both (T, D), with which dynamic values are a gate: for every map A (T, T)

    A v + q_r * (A k_r) = sigma * (A v). sigma, v (T, D): the gate of each query, the values.
    """
    return sigma - 1, v


unit.mistakes("""
takes: easy, 5 minutes
hint: Write sigma * (A V) as A V + something. What is the something?
hint: K_R = V: then both sums are A V. Which q_R makes of 1 + q_R the gate?
3 | A V stands in the sum already
    => (sigma, v)
3 | right where a token sees itself alone
    => (np.ones_like(v), (sigma - 1) * v)
3 | what you add to A V has the wrong sign
    => (1 - sigma, v)
3 | q_R is right
    => (sigma - 1, np.ones_like(v))
3 | K_R is right
    => (sigma + 1, v)
""")
