"""Notebook 06: what is mixed into a value or a stream, and how much of it is that?"""

import numpy as np

from homework.in_notebooks import models
from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb06_value_embeddings", "Value embeddings", "The exercises of notebook 06.")


# ---- one term more -------------------------------------------------------------------------------


def at_layer(n):
    """A model of three layers with a table each, asked for the values of one layer."""

    def make(r):
        h, v1 = normals(r, (2, 5, 4), (2, 5, 4))
        model, ids = models.WithTables(r, 3), r.integers(0, 7, (2, 5))
        ids[:, 3] = ids[:, 1]  # a token that occurs twice
        return model, n, h, v1 if n else None, ids

    return make


def parts(says, mixed, loses=3):
    """The mistake of another mixture of the layer's own values and its rows."""
    return slip(
        loses,
        says,
        lambda self, n, h, v1, ids: mixed(self.layers[n].value(h), self.tables[n](ids)),
    )


def sums(says, own, row, loses=3):
    """The mistake of other summands, each made of (self, n, h, v1, ids)."""
    return slip(loses, says, lambda *given: own(*given) + row(*given))


def own_value(self, n, h, v1, ids):
    return self.layers[n].value(h)


def own_rows(self, n, h, v1, ids):
    return self.tables[n](ids)


@unit.exercise(
    Part("the first layer", 1, at_layer(0)),
    Part("a deeper layer", 2, [at_layer(1), at_layer(2), at_layer(1)]),
    parts("those are the rows alone; they are added to the layer's own values", lambda v, e: e),
    parts("those are the layer's own values; the rows of its table are missing", lambda v, e: v),
    parts("you took half of each; the row is added whole", lambda v, e: (v + e) / 2),
    parts("you halved the row; it is added whole", lambda v, e: v + e / 2),
    parts("you halved the layer's own values; they stay whole", lambda v, e: v / 2 + e),
    parts("the row is ADDED, not taken away", lambda v, e: v - e),
    parts("you multiplied; the row is added", lambda v, e: v * e),
    parts("your row tunes the value, v (1 + e); it is added", lambda v, e: v * (1 + e)),
    parts(
        "you put the two side by side; add them, feature by feature",
        lambda v, e: np.concatenate([v, e], -1),
    ),
    parts("you normed the row; it is added as it stands", lambda v, e: v + models.normed(e)),
    parts("you normed the sum; it stays as it comes", lambda v, e: models.normed(v + e)),
    parts(
        "your rows are those of the token before; each position takes its own token's",
        lambda v, e: v + np.roll(e, 1, 1),
    ),
    parts(
        "you added the mean row; each position takes the row of its own token",
        lambda v, e: v + e.mean(1, keepdims=True),
    ),
    parts(
        "both texts take the rows of the first one; each has its own ids",
        lambda v, e: v + e[:1],
    ),
    sums(
        "you took row t of the table at position t; wanted the row of the token that stands there",
        own_value,
        lambda self, n, h, v1, ids: self.tables[n].table[: ids.shape[1]],
    ),
    sums(
        "all your layers read the first table; every layer has its own, self.tables[n]",
        own_value,
        lambda self, n, h, v1, ids: self.tables[0](ids),
        2,
    ),
    sums(
        "you read the table of the layer below; every layer has its own, self.tables[n]",
        own_value,
        lambda self, n, h, v1, ids: self.tables[n - 1](ids),
    ),
    sums(
        "you read the last table in every layer; each has its own, self.tables[n]",
        own_value,
        lambda self, n, h, v1, ids: self.tables[-1](ids),
        3,
    ),
    sums(
        "all your layers make values by the first one's matrix; each has its own, self.layers[n]",
        lambda self, n, h, v1, ids: self.layers[0].value(h),
        own_rows,
        2,
    ),
    sums(
        "you added the embedding at the entrance; each layer has a table of its own",
        own_value,
        lambda self, n, h, v1, ids: self.embed(ids),
    ),
    sums(
        "you added the row to the stream; it is added to the value",
        lambda self, n, h, v1, ids: h,
        own_rows,
    ),
    slip(
        3,
        "your row went through the matrix; it is a value already",
        lambda self, n, h, v1, ids: self.layers[n].value(h + self.tables[n](ids)),
    ),
    slip(
        3,
        "your row went through the matrix; it is a value already",
        lambda self, n, h, v1, ids: self.layers[n].value(self.tables[n](ids)),
    ),
    slip(
        3,
        "your row went through the matrix; it is a value already",
        lambda self, n, h, v1, ids: (
            self.layers[n].value(h) + self.layers[n].value(self.tables[n](ids))
        ),
    ),
    slip(
        2,
        "you added the row to the first layer's values; every layer keeps its own",
        lambda self, n, h, v1, ids: (v1 if n else self.layers[0].value(h)) + self.tables[n](ids),
    ),
    slip(
        2,
        "you added v1 as well; the layer's own values and the row are all",
        lambda self, n, h, v1, ids: (
            own_value(self, n, h, v1, ids) + own_rows(self, n, h, v1, ids) + (v1 if n else 0)
        ),
    ),
    slip(
        1,
        "your first layer has no row; every layer has a table, the first one, too",
        lambda self, n, h, v1, ids: self.layers[n].value(h) + (self.tables[n](ids) if n else 0),
    ),
    slip(
        2,
        "only your first layer has a row; every layer has a table",
        lambda self, n, h, v1, ids: self.layers[n].value(h) + (0 if n else self.tables[n](ids)),
    ),
    hints=[
        "Two summands: what the layer makes of h, and what its table holds for ids.",
        "return self.layers[n].value(h) + self.tables[n](ids)",
    ],
    level="easy",
    minutes=3,
)
def value(self, n, h, v1, ids):
    """The values of layer n: its own, self.layers[n].value(h), and added to them the rows that its
    own table has for these tokens, self.tables[n](ids). h (B, T, C), ids (B, T) -> (B, T, C).
    """
    return self.layers[n].value(h) + self.tables[n](ids)


# ---- a value by look-up --------------------------------------------------------------------------


def look_up(weights):
    """Values of two texts of five tokens, a table of eleven rows, and two weights."""

    def make(r):
        v, table = r.normal(size=(2, 5, 2, 3)), r.normal(size=(11, 2, 3))
        ids = r.integers(5, 11, (2, 5))
        ids[:, 3] = ids[:, 1]  # a token that occurs twice
        return v, table, ids, *(r.uniform(0.3, 0.9, 2) + [0, 1] if weights else (1.0, 1.0))

    return make


@unit.exercise(
    Part("weights of one", 1, look_up(False)),
    Part("other weights", 1, look_up(True)),
    Wrong(
        "by position",
        2,
        "you took row t of the table at position t; wanted the row of the token that stands there, "
        "table[ids]",
        dict(by="place"),
    ),
    Wrong(
        "the token before",
        2,
        "your rows are those of the token before; each position takes the row of its own token",
        dict(by="before"),
    ),
    Wrong(
        "weights exchanged",
        1,
        "a stands on the value and b on the table's row; you exchanged them",
        dict(exchanged=True),
    ),
    Wrong(
        "in its place",
        2,
        "you put the row in the place of the value; it is added to it",
        dict(own=0),
    ),
    Wrong(
        "divided by the weights",
        2,
        "you divided by a + b; this is a sum with two weights, and they need not add up to one",
        dict(mean=True),
    ),
    Wrong(
        "a normed row",
        2,
        "you normed the row; it is added as it stands in the table",
        dict(normed=True),
    ),
    slip(
        2,
        "you brought the row to length 1; it is added as it stands in the table",
        lambda v, table, ids, a, b: (
            a * v + b * (table / np.linalg.norm(table, axis=-1, keepdims=True))[ids]
        ),
    ),
    slip(
        1,
        "your a multiplies the row, too; it stands on the value alone",
        lambda v, table, ids, a, b: a * (v + b * table[ids]),
    ),
    slip(2, "the row is ADDED, not taken away", lambda v, t, ids, a, b: a * v - b * t[ids]),
    slip(2, "you multiplied; the row is added", lambda v, t, ids, a, b: a * v * b * t[ids]),
    slip(
        2,
        "you took the mean row of the texts; each position takes the row of its own token",
        lambda v, t, ids, a, b: a * v + b * t[ids].mean(0),
    ),
    slip(
        2,
        "all your texts take the rows of the first one; each has its own ids",
        lambda v, t, ids, a, b: a * v + b * t[ids[0]],
    ),
    slip(
        2,
        "your row numbers are one too small: token 0 has row 0",
        lambda v, t, ids, a, b: a * v + b * t[ids - 1],
    ),
    slip(
        2,
        "you averaged the heads of a row; every head has its own part of it",
        lambda v, t, ids, a, b: a * v + b * t[ids].mean(2, keepdims=True),
    ),
    hints=[
        "ids (B, T) holds a row number for every position: index the table with it.",
        "table[ids] is (B, T, H, D), as large as v. Then a times the one, b times the other.",
    ],
    level="easy",
    minutes=4,
)
def with_table(v, table, ids, a, b, *, by="id", exchanged=False, own=1, mean=False, normed=False):
    """a v + b E[id]: values v (B, T, H, D), a table of one row a token (V, H, D), ids (B, T), two
    numbers -> (B, T, H, D).
    """
    out = np.zeros(v.shape)
    a, b = (b, a) if exchanged else (a, b)
    for place in np.ndindex(*ids.shape):
        text, t = place
        row = table[{"id": ids[place], "place": t, "before": ids[text, t - 1]}[by]]
        row = row / np.sqrt((row**2).mean(-1, keepdims=True)) if normed else row
        out[place] = (own * a * v[place] + b * row) / (a + b if mean else 1)
    return out


# ---- what stands before a layer ------------------------------------------------------------------


def streams(skip):
    def make(r):
        x, x0, early = r.normal(size=(3, 2, 4, 5))
        r_, z = r.uniform(0.5, 2, 2)
        return x, x0, early, r_, z, r.uniform(0.3, 0.9) if skip else 0.0

    return make


@unit.exercise(
    Part("a layer without a skip", 1, streams(False)),
    Part("a layer with a skip", 1, streams(True)),
    Wrong(
        "the mixin first",
        1,
        "you mixed in x0 first and added the skip afterwards; the skip comes first, so that r "
        "multiplies it as well",
        dict(order="mixin"),
    ),
    Wrong(
        "x0 inside",
        2,
        "r multiplies your x0, too; r stands on the stream alone: r (…) + z x0",
        dict(order="all"),
    ),
    Wrong(
        "a share",
        1,
        "the skip is added: x + w early. You took it as a share, (1 - w) x + w early",
        dict(share=True),
    ),
    Wrong(
        "r for z",
        2,
        "r stands on the stream and z on x0; you exchanged them",
        dict(exchanged=True),
    ),
    slip(
        2,
        "early and x0 have changed places: w goes with early, z with x0",
        lambda x, x0, early, r, z, w: r * (x + w * x0) + z * early,
    ),
    slip(
        2,
        "w stands on the early stream, not on x",
        lambda x, x0, early, r, z, w: r * (w * x + early) + z * x0,
    ),
    hints=[
        "Two lines. The first adds the early stream to x; what comes out is the x of the second.",
        "x = x + w * early, and then r * x + z * x0.",
    ],
    level="easy",
    minutes=4,
)
def enter_layer(x, x0, early, r, z, w, *, order="skip", share=False, exchanged=False):
    """What a layer reads. First the skip: w times an earlier layer's output is added to the stream.
    Then the mixin: r times that, plus z times x0. Three streams (B, T, C), three numbers.
    """
    out = np.zeros(x.shape)
    r, z = (z, r) if exchanged else (r, z)
    for i in np.ndindex(*x.shape):
        joined = (1 - w if share else 1) * x[i] + w * early[i]
        if order == "mixin":
            out[i] = r * x[i] + z * x0[i] + w * early[i]
        elif order == "all":
            out[i] = r * (joined + z * x0[i])
        else:
            out[i] = r * joined + z * x0[i]
    return out


# ---- the furthest that a weight can go -----------------------------------------------------------


def run_of(falls):
    def make(r):
        steps = int(r.integers(50, 90))
        return float(r.uniform(0.01, 0.02)), steps, int(r.integers(20, 40)) if falls else 1

    return make


@unit.exercise(
    Part("a constant rate", 1, run_of(False)),
    Part("a rate that falls", 1, run_of(True)),
    Wrong(
        "as if it never fell",
        1,
        "the rate falls in the last steps; you counted it in full there",
        dict(fall="none"),
    ),
    Wrong(
        "nothing while it falls",
        2,
        "the steps in which the rate falls count, too, each with what is left of the rate",
        dict(fall="zero"),
    ),
    Wrong(
        "the mean",
        2,
        "yours is the mean rate; every step may go as far as its rate, so the sum is the bound",
        dict(mean=True),
    ),
    Wrong(
        "it falls a step too early",
        2,
        "step number steps - falling still has the whole rate; yours falls there already",
        dict(late=1),
    ),
    slip(
        2,
        "the area of a triangle is not quite the sum of its steps: falling + 1 halves, not falling",
        lambda lr, steps, falling: lr * (steps - falling) + lr * falling / 2,
    ),
    slip(
        1,
        "you forgot to divide by falling: step number i has lr * (steps - i) / falling",
        lambda lr, steps, falling: lr * (steps - falling) + lr * falling * (falling + 1) / 2,
    ),
    slip(
        1,
        "your rate falls a step too late: step number steps - falling + 1 is below lr already",
        lambda lr, steps, falling: (
            furthest(lr, steps, falling) + (lr if falling > 1 else 0) - lr / falling * (falling > 1)
        ),
    ),
    slip(
        2,
        "you did not hold the rate at lr before it falls: at most 1 times lr",
        lambda lr, steps, falling: lr * sum((steps - i) / falling for i in range(steps)),
    ),
    slip(
        2,
        "you took the larger of the two; the rate is never above lr: min",
        lambda lr, steps, falling: lr * sum(max(1, (steps - i) / falling) for i in range(steps)),
    ),
    slip(
        2,
        "you counted a step too many at the whole rate: steps - falling come before it falls",
        lambda lr, steps, falling: furthest(lr, steps, falling) + lr,
    ),
    slip(
        1,
        "your line is at 0 in the last step already; 0 belongs to step number `steps`, one later",
        lambda lr, steps, falling: lr * (steps - falling) + np.linspace(lr, 0, falling).sum(),
    ),
    slip(
        2,
        "what is left of the rate is counted in steps of the FALL: divide by falling, not by steps",
        lambda lr, steps, falling: (
            lr * (steps - falling) + lr * falling * (falling + 1) / 2 / steps
        ),
    ),
    slip(
        2,
        "you held the rate for `falling` steps; so many it FALLS, and these come last",
        lambda lr, steps, falling: lr * falling + lr * (steps - falling + 1) / 2,
    ),
    hints=[
        "The first steps - falling steps have the rate lr. Of the others, step number i has "
        "lr * (steps - i) / falling.",
        "lr * (steps - falling), plus the sum of lr * left / falling over left = 1, …, falling.",
    ],
    after="A cosine in place of the line gives the same sum, and so does every fall that is "
    "symmetrical about its middle: what one step has less, another has more.",
    level="easy",
    minutes=6,
)
def furthest(lr, steps, falling, *, fall="line", mean=False, late=0):
    """The sum of a run's learning rates: lr at the start, the same until step number
    steps - falling, then in a line down, to 0 at step number `steps`, which is not taken. The steps
    taken are 0, 1, …, steps - 1; falling is at least 1.
    """
    total = 0.0
    for step in range(steps):
        left = 1.0
        if step >= steps - falling:
            left = {"line": (steps - step - late) / falling, "none": 1, "zero": 0}[fall]
        total += lr * left
    return total / steps if mean else total


# ---- a share of what is there --------------------------------------------------------------------


def share_with(left, right):
    return (right / (left + right)).mean()


def of_lengths(says, share, gather=np.mean):
    """The mistake of another fraction of the two lengths, or of what becomes of the tokens."""
    return slip(
        2,
        says,
        lambda a, x, b, y: gather(
            share(np.linalg.norm(a * x, axis=-1), np.linalg.norm(b * y, axis=-1))
        ),
    )


def sums(sign):
    def make(r):
        lengths = np.array([0.2, 5.0, 1.0, 2.0, 0.5])[:, None]  # of the tokens
        x, y = r.normal(size=(2, 5, 6)) * [lengths, 1.5 + lengths[::-1]]
        a, b = float(r.uniform(0.8, 1.5)), float(r.uniform(0.4, 0.7))
        return (a if sign != "a" else -a), x, (-b if sign == "b" else b), y

    return make


@unit.exercise(
    Part("both weights above zero", 1, sums("")),
    Part("a negative weight", 1, [sums("b"), sums("a")]),
    Wrong(
        "by the weights",
        2,
        "yours is the share of the weights, |b| / (|a| + |b|): the vectors do not enter it",
        dict(of="weights"),
    ),
    Wrong(
        "without the weights",
        2,
        "you compare x with y; wanted what is added: a x with b y",
        dict(of="vectors"),
    ),
    Wrong(
        "x's share",
        2,
        "yours is the share of a x; wanted that of b y",
        dict(of="other"),
    ),
    Wrong(
        "of the sum",
        2,
        "you divided by the length of a x + b y; wanted the sum of the two lengths",
        dict(of="whole"),
    ),
    Wrong(
        "one norm around everything",
        2,
        "you took one norm of all tokens and features; a length for every token: norm(dim=-1)",
        dict(wrapped=True),
    ),
    Wrong(
        "squares",
        2,
        "your lengths have lost their root",
        dict(power=2),
    ),
    Wrong(
        "all tokens at once",
        2,
        "you took the lengths of all tokens together, and the long ones decide; wanted the share "
        "of each token, then the mean",
        dict(at_once=True),
    ),
    Wrong(
        "the sign kept",
        1,
        "a length is never negative, whatever the sign of its weight",
        dict(signed=True),
    ),
    of_lengths("you divided by the other length; wanted the sum of both", lambda x, y: y / x),
    of_lengths(
        "you divided by the root of the sum of squares; wanted the sum of the two lengths",
        lambda x, y: y / np.hypot(x, y),
    ),
    of_lengths("you took the difference of the two shares", lambda x, y: (x - y) / (x + y)),
    of_lengths("that is per cent; wanted a share of one", lambda x, y: 100 * y / (x + y)),
    of_lengths(
        "that is a share for each token; wanted their mean", lambda x, y: y / (x + y), np.array
    ),
    of_lengths("that is the sum over tokens; wanted their mean", lambda x, y: y / (x + y), np.sum),
    of_lengths("you took the median; wanted the mean", lambda x, y: y / (x + y), np.median),
    slip(
        2,
        "you summed absolute values; a length is the root of the sum of SQUARES",
        lambda a, x, b, y: share_with(abs(a * x).sum(-1), abs(b * y).sum(-1)),
    ),
    slip(
        2,
        "you took a length for every feature; every TOKEN has one: norm(dim=-1)",
        lambda a, x, b, y: share_with(np.linalg.norm(a * x, axis=0), np.linalg.norm(b * y, axis=0)),
    ),
    slip(
        2,
        "you summed the features; a length is the root of the sum of their squares",
        lambda a, x, b, y: share_with((a * x).sum(-1), (b * y).sum(-1)),
    ),
    hints=[
        "A length for every token: (a * x).norm(dim=-1).",
        "(right / (left + right)).mean(), with left = (a * x).norm(dim=-1) and right the same of "
        "b * y.",
    ],
    level="medium",
    minutes=6,
)
def share_of_lengths(
    a, x, b, y, *, of="parts", power=1, at_once=False, signed=False, wrapped=False
):
    """How much of a x + b y is b y? At every token the length of b y over the sum of the two
    lengths; then the mean over tokens: x and y (…, C), two numbers -> a number.
    """
    left, right = [], []
    for place in np.ndindex(*x.shape[:-1]):
        own, other = np.sqrt((x[place] ** 2).sum()), np.sqrt((y[place] ** 2).sum())
        whole = np.sqrt(((a * x[place] + b * y[place]) ** 2).sum())
        lengths = {
            "parts": ((a if signed else abs(a)) * own, (b if signed else abs(b)) * other),
            "weights": (abs(a), abs(b)),
            "vectors": (own, other),
            "other": (abs(b) * other, abs(a) * own),
            "whole": (whole - abs(b) * other, abs(b) * other),
        }[of]
        left.append(lengths[0] ** power)
        right.append(lengths[1] ** power)
    if wrapped:
        left, right = ([np.sqrt(np.square(sizes).sum())] for sizes in (left, right))
    if at_once:
        return sum(right) / (sum(left) + sum(right))
    return sum(y / (x + y) for x, y in zip(left, right, strict=True)) / len(left)


# ---- nanochat's gate -----------------------------------------------------------------------------


def logits(g):
    """What the sigmoid was taken of, for gates between 0 and 3."""
    return np.log(g / (3 - g))


def logistic(z):
    return 3 / (1 + np.exp(-z))


def of_gates(says, mixed):
    """The mistake of another use of the gates g (B, T, H, 1) and the table's rows."""

    def mistaken(v, table, ids, h, W):
        z = np.einsum("btc,hc->bth", h[..., :12], W)
        return mixed(v, 3 / (1 + np.exp(-z))[..., None], table[ids])

    return slip(2, says, mistaken)


def gates(width):
    """Values of two texts of five tokens, a table, ids, streams, and gates of two heads."""

    def make(r):
        v, table = r.normal(size=(2, 5, 2, 3)), r.normal(size=(11, 2, 3))
        ids = r.integers(5, 11, (2, 5))
        return v, table, ids, r.normal(size=(2, 5, width)), r.normal(size=(2, 12))

    return make


@unit.exercise(
    Part("a stream of twelve features", 1, gates(12)),
    Part("a wider stream", 1, gates(20)),
    Wrong(
        "up to one",
        2,
        "your gate ends at 1: nanochat takes 3 times the sigmoid, so that an unmoved gate stands "
        "at 1.5",
        dict(top=1.0),
    ),
    Wrong("up to two", 2, "your gate ends at 2; this one takes 3 times the sigmoid", dict(top=2.0)),
    Wrong(
        "three inside",
        2,
        "your 3 stands inside the sigmoid; it multiplies what comes out",
        dict(top=1.0, inside=3.0),
    ),
    Wrong(
        "no sigmoid",
        2,
        "your gate is the product alone: without the sigmoid it has no bounds and may turn the row "
        "round",
        dict(squash="none"),
    ),
    Wrong(
        "a softmax",
        2,
        "your gates share one softmax over the heads; each head has a sigmoid of its own",
        dict(squash="softmax"),
    ),
    Wrong(
        "a softmax over tokens",
        2,
        "your gates share one softmax over a text; each token has a sigmoid of its own",
        dict(squash="tokens"),
    ),
    Wrong("tanh", 2, "your gate is a tanh; this one is a sigmoid", dict(squash="tanh")),
    Wrong("relu", 2, "your gate is a ReLU; this one is a sigmoid", dict(squash="relu")),
    Wrong(
        "one gate for all heads",
        2,
        "your heads share one gate, the mean of W; each head has a row of W of its own",
        dict(heads="mean"),
    ),
    Wrong(
        "the other head's gate",
        2,
        "your gates stand at the wrong heads: row n of W belongs to head n",
        dict(heads="turned"),
    ),
    Wrong(
        "the token before",
        2,
        "your gate reads the stream of the token before; each token opens its own row",
        dict(before=True),
    ),
    Wrong(
        "a share",
        2,
        "you mixed with shares g and 1 - g; the value stays whole, and g E[id] is added to it",
        dict(top=1.0, share=True),
    ),
    Wrong(
        "the last twelve",
        1,
        "you read the last twelve features; the gate reads the first twelve, h[..., :12]",
        dict(first=False),
    ),
    Wrong(
        "on the value",
        2,
        "your gate stands on the value; it stands on the table's row",
        dict(on="v"),
    ),
    Wrong(
        "on both",
        2,
        "your gate multiplies the value, too; it stands on the table's row alone",
        dict(on="both"),
    ),
    Wrong(
        "in its place",
        2,
        "you put the gated row in the place of the value; it is added to it",
        dict(own=0),
    ),
    Wrong(
        "by position",
        2,
        "you took row t of the table at position t; wanted the row of the token that stands there, "
        "table[ids]",
        dict(by="place"),
    ),
    of_gates(
        "you mixed with shares g and 1 - g; the value stays whole, and g E[id] is added to it",
        lambda v, g, e: (1 - g / 3) * v + g * e,
    ),
    of_gates(
        "you mixed with shares g and 1 - g; the value stays whole, and g E[id] is added to it",
        lambda v, g, e: (3 - g) * v + g * e,
    ),
    of_gates(
        "your tokens share one gate, the mean of theirs; each token has a gate of its own",
        lambda v, g, e: v + logistic(logits(g).mean(1, keepdims=True)) * e,
    ),
    of_gates(
        "both texts share their gates; each token has a gate of its own",
        lambda v, g, e: v + g.mean((0, 1)) * e,
    ),
    of_gates(
        "all your tokens and heads share one gate; each token and head has its own",
        lambda v, g, e: v + g.mean() * e,
    ),
    of_gates("the gated row is ADDED, not taken away", lambda v, g, e: v - g * e),
    of_gates(
        "you mixed with shares g and 1 - g; the value stays whole, and g E[id] is added to it",
        lambda v, g, e: (1 - g) * v + g * e,
    ),
    of_gates(
        "your heads share one gate, the mean of theirs; each head has a gate of its own",
        lambda v, g, e: v + g.mean(2, keepdims=True) * e,
    ),
    of_gates(
        "your tokens share one gate, the mean of theirs; each token has a gate of its own",
        lambda v, g, e: v + g.mean(1, keepdims=True) * e,
    ),
    of_gates("your gate is turned: sigmoid(z), not sigmoid(-z)", lambda v, g, e: v + (3 - g) * e),
    of_gates(
        "you took the third power of the sigmoid; multiply by 3",
        lambda v, g, e: v + (g / 3) ** 3 * e,
    ),
    of_gates("you added 3; the sigmoid is multiplied by 3", lambda v, g, e: v + (3 + g / 3) * e),
    of_gates("you added the gate to the row; it multiplies the row", lambda v, g, e: v + g + e),
    of_gates(
        "your gate ends at 1.5; this one takes 3 times the sigmoid", lambda v, g, e: v + g / 2 * e
    ),
    hints=[
        "The product with the first twelve features, h[..., :12] @ W.T, is (B, T, H). Which "
        "dimension must be added before it can meet the rows (B, T, H, D)?",
        "g = 3 * torch.sigmoid(h[..., :12] @ W.T)[..., None], and then v + g * table[ids].",
    ],
    level="easy",
    minutes=6,
)
def gated_value(
    v,
    table,
    ids,
    h,
    W,
    *,
    top=3.0,
    inside=1.0,
    squash="sigmoid",
    heads="own",
    before=False,
    share=False,
    first=True,
    on="row",
    own=1,
    by="id",
):
    """v + g E[id] with a gate g for every token and head: 3 times the sigmoid of W times the first
    twelve features of h. v (B, T, H, D), a table (V, H, D), ids (B, T), h (B, T, C), W (H, 12).
    """
    W = {"own": W, "mean": 0 * W + W.mean(0), "turned": W[::-1]}[heads]
    features = h[..., :12] if first else h[..., -12:]
    features = np.roll(features, 1, 1) if before else features
    z = inside * np.einsum("btc,hc->bth", features, W)
    gates = {
        "sigmoid": 1 / (1 + np.exp(-z)),
        "none": z,
        "tanh": np.tanh(z),
        "relu": np.maximum(z, 0),
        "softmax": np.exp(z) / np.exp(z).sum(2, keepdims=True),
        "tokens": np.exp(z) / np.exp(z).sum(1, keepdims=True),
    }[squash]
    out = np.zeros(v.shape)
    for b, t, n in np.ndindex(*z.shape):
        g, row = top * gates[b, t, n], table[ids[b, t] if by == "id" else t, n]
        kept = own * (g if on in ("v", "both") else 1 - g if share else 1)
        out[b, t, n] = kept * v[b, t, n] + (1 if on == "v" else g) * row
    return out
