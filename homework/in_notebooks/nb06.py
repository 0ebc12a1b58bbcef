"""Notebook 06: what is mixed into a value or a stream, and how much of it is that?"""

import numpy as np

from homework.in_notebooks import models
from homework.marking import Part, Unit, drawn

unit = Unit("nb06_value_embeddings", "Value embeddings", single=True)


@unit.exercise(*models.VALUES)
def value(self, n, h, v1, ids):
    """The values of layer n: its own, self.layers[n].value(h), and added to them the rows that its
    own table has for these tokens, self.tables[n](ids). h (B, T, C), ids (B, T) -> (B, T, C).
    """
    own = self.layers[n].value(h)
    row = self.tables[n](ids)
    return own + row


unit.mistakes("""
takes: easy, 3 minutes
hint: Two summands: what the layer makes of h, and what its table holds for ids.
hint: return self.layers[n].value(h) + self.tables[n](ids)
3 | two summands: the layer's own values, and the rows of its own table
    own + row => row || own
3 | the row is ADDED, feature by feature, as it is: no half, no minus, no product, no norm
    own + row => (own + row) / 2 || own + row / 2 || own / 2 + row || own - row || own * row
    own + row => own + models.normed(row) || np.concatenate([own, row], -1)
3 | each position takes the row of its own token in its own text: no neighbour's, no mean
    own + row => own + np.roll(row, 1, 1) || own + row.mean(1, keepdims=True) || own + row[:1]
3 | you took row t of the table at position t; wanted the row of the token that stands there
    (ids) => .array[: ids.shape[1]]
2 | all your layers read the first table; every layer has its own, self.tables[n]
    tables[n] => tables[0]
3 | a layer reads its own table alone, self.tables[n]; you read another one, or all
    tables[n] => tables[n - 1] || tables[-1] || tables[(n + 1) % 3]
    row = self.tables[n](ids) => row = sum(table(ids) for table in self.tables)
2 | all your layers make values by the first one's matrix; each has its own, self.layers[n]
    layers[n] => layers[0]
3 | you added the embedding at the entrance; each layer has a table of its own
    self.tables[n](ids) => self.embed(ids)
3 | the row is added to the VALUE: not to the stream, and through no matrix
    self.layers[n].value(h) => h
    own + row => self.layers[n].value(h + row) || self.layers[n].value(row)
2 | v1 stays out; the layer's own values and the row are all
    own + row => (v1 if n else own) + row || own + row + (v1 if n else 0)
1 | your first layer has no row; every layer has a table, the first one, too
    own + row => own + row if n else own
2 | only your first layer has a row; every layer has a table
    own + row => own if n else own + row
""")


@drawn
def look_up(r, weights):
    """Values of two texts of five tokens, a table of eleven rows, and two weights."""
    v, table = r.normal(size=(2, 5, 2, 3)), r.normal(size=(11, 2, 3))
    ids = r.integers(5, 11, (2, 5))
    ids[:, 3] = ids[:, 1]  # a token that occurs twice
    return v, table, ids, *(r.uniform(0.3, 0.9, 2) + [0, 1] if weights else (1.0, 1.0))


@unit.exercise(Part("weights of one", 1, look_up(False)), Part("other weights", 1, look_up(True)))
def with_table(v, table, ids, a, b):
    """a v + b E[id]: values v (B, T, H, D), a table of one row a token (V, H, D), ids (B, T), two
    numbers, which may be tensors that learn -> (B, T, H, D).
    """
    out = np.zeros(v.shape)
    for text, t in np.ndindex(*ids.shape):
        row = table[ids[text, t]]
        out[text, t] = a * v[text, t] + b * row
    return out


unit.mistakes("""
takes: easy, 4 minutes
hint: ids (B, T) holds a row number for every position: index the table with it.
hint: table[ids] is (B, T, H, D), as large as v. Then a times the one, b times the other.
2 | each position takes the row of its own token, table[ids]: no neighbour's, no mean, no row t
    ids[text, t] => t || ids[text, t - 1] || ids[text, (t + 1) % 5] || ids[text, -1] || ids[0, t]
    ids[text, t] => ids[text, t] - 1
    table[ids[text, t]] => table[ids[:, t]].mean(0) || table.mean(0)
1 | a stands on the value and b on the table's row; you exchanged them
    a * v => b * v
    and: b * row => a * row
2 | you put the row in the place of the value; it is added to it
    a * v[text, t] + =>
2 | the sum and the row stay as they are: no division by a + b, no norm
    a * v[text, t] + b * row => (a * v[text, t] + b * row) / (a + b)
    b * row => b * row / np.sqrt((row**2).mean(-1, keepdims=True))
    b * row => b * row / np.linalg.norm(row, axis=-1, keepdims=True)
1 | a is missing: it multiplies the value
    a * v => v
1 | b is missing: it multiplies the row, as a the value
    b * row => row
2 | b is a number of its own, not 1 - a
    b * row => (1 - a) * row
1 | your a multiplies the row, too; it stands on the value alone
    b * row => a * b * row
2 | two products are added, a with the value and b with the row: no minus, nothing else between
    + b => - b || * b
    b * row => b + row
2 | each head has its own part of a row (H, D): no mean of heads, no reshape that mixes them
    b * row => b * row.mean(0) || b * row[:1] || b * row.T.reshape(row.shape)
""")


@drawn
def streams(r, skip):
    x, x0, early = r.normal(size=(3, 2, 4, 5))
    r_, z = r.uniform(0.5, 2, 2)
    return x, x0, early, r_, z, r.uniform(0.3, 0.9) if skip else 0.0


@unit.exercise(
    Part("a layer without a skip", 1, streams(False)), Part("a layer with a skip", 1, streams(True))
)
def enter_layer(x, x0, early, r, z, w):
    """What a layer reads. First the skip: w times an earlier layer's output is added to the stream.
    Then the mixin: r times that, plus z times x0. Streams (B, T, C), numbers that may learn.
    """
    out = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        joined = x[i] + w * early[i]
        out[i] = r * joined + z * x0[i]
    return out


unit.mistakes("""
takes: easy, 4 minutes
hint: Two lines. The first adds the early stream to x; what comes out is the x of the second.
hint: x = x + w * early, and then r * x + z * x0.
1 | you mixed in x0 first and added the skip then; the skip comes first, and r multiplies it, too
    r * joined => r * x[i] + w * early[i]
2 | r multiplies your x0, too; r stands on the stream alone: r (…) + z x0
    r * joined + z * x0[i] => r * (joined + z * x0[i])
1 | the skip is added: x + w early. You took it as a share, (1 - w) x + w early
    = x[i] => = (1 - w) * x[i]
2 | r stands on the stream and z on x0; you exchanged them
    r * joined => z * joined
    and: z * x0 => r * x0
2 | early and x0 have changed places: w goes with early, z with x0
    w * early => w * x0
    and: z * x0 => z * early
    => r * x + z * early + w * x0
2 | after the skip, r times the stream and z times x0 are all: yours holds the stream once more
    r * joined => (r + 1) * joined || r * x[i] + joined
2 | r and z are numbers of their own; yours are shares of one, 1 - z and z
    r * joined => (1 - z) * joined
2 | w stands on the early stream, not on x
    x[i] + w * early => w * x[i] + early
2 | r or z is missing: r times the stream and the skip in it, plus z times x0
    r * joined => joined
    r * joined + z * x0[i] => r * joined + x0[i] || joined + x0[i] || joined
""")


@drawn
def run_of(r, falls):
    steps = int(r.integers(50, 90))
    return float(r.uniform(0.01, 0.02)), steps, int(r.integers(20, 40)) if falls else 1


@unit.exercise(
    Part("a constant rate", 1, run_of(False)), Part("a rate that falls", 1, run_of(True))
)
def furthest(lr, steps, falling):
    """The sum of a run's learning rates: lr at the start, the same until step number
    steps - falling, then in a line down, to 0 at step number `steps`, which is not taken. The steps
    taken are 0, 1, …, steps - 1; falling is at least 1.
    """
    total = 0.0
    for step in range(steps):
        left = steps - step
        total += lr * min(1, left / falling)
    return total


unit.mistakes("""
takes: easy, 6 minutes
hint: The first steps - falling steps have the rate lr, then step i has lr * (steps - i) / falling.
hint: lr * (steps - falling), plus the sum of lr * left / falling over left = 1, …, falling.
after: A cosine in place of the line gives the same sum, and so does every fall that is symmetrical
    | about its middle: what one step has less, another has more.
1 | the rate falls in the last steps; you counted it in full there
    min(1, left / falling) => 1
2 | the steps in which the rate falls count, too, each with what is left of the rate
    min(1, left / falling) => (left > falling)
2 | yours is the mean rate; every step may go as far as its rate, so the sum is the bound
    return total => return total / steps
2 | one lr is missing: step 0 counts, and number steps - falling has all of lr, and then it falls
    left / falling => (left - 1) / falling
2 | what falls sums to lr * (falling + 1) / 2; yours, as the area of a triangle, to lr * falling / 2
    => lr * (steps - falling) + lr * falling / 2
1 | you forgot to divide by falling: step number i has lr * (steps - i) / falling
    => lr * (steps - falling) + lr * falling * (falling + 1) / 2
1 | your rate falls a step too late: step number steps - falling + 1 is below lr already
    return total => return total + lr - lr / falling
2 | the rate is never above lr: min(1, …)
    min(1, left / falling) => left / falling || max(1, left / falling)
2 | you counted a step too many at the whole rate: steps - falling come before it falls
    return total => return total + lr
1 | your line is at 0 in the last step already; 0 belongs to step number `steps`, one later
    => lr * (steps - falling) + np.linspace(lr, 0, falling).sum()
1 | the rate falls in a LINE, from lr itself: step i has lr * (steps - i) / falling
    min(1, left / falling) => min(1, left / falling) ** 2
    => lr * (steps - falling) + lr * np.cumprod(np.arange(falling, 0, -1) / falling).sum()
    => lr * (steps - falling) + lr * sum(left / (falling + 1) for left in range(1, falling)) + lr
2 | lr is missing where the rate falls: step i has lr * (steps - i) / falling
    => lr * (steps - falling) + (falling + 1) / 2
2 | the first steps - falling have all of lr, and then it falls in the LAST `falling` steps
    => lr * steps + lr * (falling + 1) / 2 || lr * (falling + 1) / 2
    => lr * falling + lr * (steps - falling + 1) / 2
    min(1, left / falling) => left / steps
1 | `//` leaves no fraction of the rate: divide with /
    left / falling => left // falling
2 | that is the rate of one step; wanted the sum over all of them
    => lr || lr / falling
1 | what is left of the rate is counted in steps of the FALL: divide by falling, not by steps
    min(1, left / falling) => (1 if left >= falling else left / steps)
2 | what is left of the rate is counted in steps of the FALL: divide by falling, not by steps
    => lr * (steps - falling) + lr * falling * (falling + 1) / 2 / steps
""")


def length(v):
    return np.sqrt((v**2).sum())


@drawn
def sums(r, sign):
    lengths = np.array([0.2, 5.0, 1.0, 2.0, 0.5])[:, None]  # of the tokens of two texts
    x, y = r.normal(size=(2, 2, 5, 6)) * np.stack([lengths, 1.5 + lengths[::-1]])[:, None]
    a, b = float(r.uniform(0.8, 1.5)), float(r.uniform(0.4, 0.7))
    return (a if sign != "a" else -a), x, (-b if sign == "b" else b), y


@unit.exercise(
    Part("both weights above zero", 1, sums("")),
    Part("a negative weight", 1, [sums("b"), sums("a")]),
)
def share_of_lengths(a, x, b, y):
    """How much of a x + b y is b y? At every token the length of b y over the sum of the two
    lengths; then the mean over tokens: x and y (…, C), two numbers -> a number.
    """
    shares = []
    for place in np.ndindex(*x.shape[:-1]):
        left, right = length(a * x[place]), length(b * y[place])
        shares.append(right / (left + right))
    return np.mean(shares)


unit.mistakes("""
takes: medium, 6 minutes
hint: A length for every token: (a * x).norm(dim=-1).
hint: (right / (left + right)).mean(), with left = (a * x).norm(dim=-1) and right the same of b * y.
in: length
2 | yours is the share of the weights, |b| / (|a| + |b|): the vectors do not enter it
    length(a * x[place]), length(b * y[place]) => abs(a), abs(b)
2 | you compare x with y; wanted what is added: a x with b y
    a * x => x
    and: b * y => y
2 | wanted a share of one: the length of b y over the SUM of the two lengths
    right / => left / || 100 * right /
    left + right => length(a * x[place] + b * y[place]) || left || np.hypot(left, right)
    right / (left + right) => (b * y[place] @ (s := a * x[place] + b * y[place])) / (s @ s)
2 | a stands on x and b on y, once each, below the root
    => share_of_lengths(b, x, a, y) || share_of_lengths(a * a, x, b * b, y)
2 | a length is the ROOT of the sum of SQUARES; one of yours or both are something else
    np.sqrt =>
    length(b * y[place]) => length(b * y[place]) ** 2
    length(a * x[place]), => length(a * x[place]) ** 2,
    np.sqrt((v**2).sum()) => abs(v).sum() || abs(v).max() || abs(v.sum()) || v.sum() || np.std(v)
2 | every TOKEN has a length, norm(dim=-1), and a share; their mean comes last
    => length(b * y) / (length(a * x) + length(b * y))
    => share_of_lengths(a, x.T, b, y.T)
    => share_of_lengths(a, x.swapaxes(1, 2), b, y.swapaxes(1, 2))
    => (abs(b * y) / (abs(a * x) + abs(b * y))).mean()
    shares.append(right / (left + right)) => shares.append([left, right])
    and: np.mean(shares) => np.sum(shares, 0)[1] / np.sum(shares)
1 | a length is never negative, whatever the sign of its weight
    length(a * x[place]) => a * length(x[place])
    and: length(b * y[place]) => b * length(y[place])
2 | those are the shares of all tokens, or their sum or median; wanted their mean
    np.mean => np.array || np.sum || np.median
    np.mean(shares) => np.sort(shares)[(len(shares) - 1) // 2]
2 | q / p + q is (q / p) + q: put brackets around the sum of the lengths
    right / (left + right) => right / left + right
""")


@drawn
def gates(r, width):
    """Values of two texts of five tokens, a table, ids, streams, and gates of two heads."""
    v, table = r.normal(size=(2, 5, 2, 3)), r.normal(size=(11, 2, 3))
    ids = r.integers(5, 11, (2, 5))
    return v, table, ids, r.normal(size=(2, 5, width)), r.normal(size=(2, 12))


@unit.exercise(
    Part("a stream of twelve features", 1, gates(12)), Part("a wider stream", 1, gates(20))
)
def gated_value(v, table, ids, h, W):
    """v + g E[id] with a gate g for every token and head: 3 times the sigmoid of W times the first
    twelve features of h. v (B, T, H, D), a table (V, H, D), ids (B, T), h (B, T, C), W (H, 12).
    """
    z = np.einsum("btc,hc->bth", h[..., :12], W)
    g = 3 / (1 + np.exp(-z))
    out = np.zeros(v.shape)
    for b, t, n in np.ndindex(*z.shape):
        gate, row = g[b, t, n], table[ids[b, t], n]
        out[b, t, n] = v[b, t, n] + gate * row
    return out


unit.mistakes(r"""
takes: easy, 6 minutes
hint: The product with the first twelve features, h[..., :12] @ W.T, is (B, T, H). Which dimension
    | must be added before it can meet the rows (B, T, H, D)?
hint: g = 3 * torch.sigmoid(h[..., :12] @ W.T)[..., None], and then v + g * table[ids].
2 | your gate does not end at 3: it is 3 times the sigmoid, so that an unmoved gate stands at 1.5
    3 / => 1 / || 2 / || 1.5 /
2 | the sigmoid is taken of the product of h and W; yours is taken of one of them, or of the rows
    z = => W = 1 / (1 + np.exp(-W))\nz =
    and: 3 / (1 + np.exp(-z)) => 3 * z
    z = => h = 1 / (1 + np.exp(-h))\nz =
    and: 3 / (1 + np.exp(-z)) => 3 * z
    gate * row => 3 / (1 + np.exp(-z[b, t, n] * row))
2 | the gate is 3 * sigmoid(z), with bounds: no z alone, no softmax, tanh or ReLU, no 3 z, no -z
    3 / (1 + np.exp(-z)) => 3 * z || z || 1 / (1 + np.exp(-3 * z)) || 3 / (1 + np.exp(z))
    3 / (1 + np.exp(-z)) => 3 * np.exp(z) / np.exp(z).sum(2, keepdims=True)
    3 / (1 + np.exp(-z)) => 3 * np.exp(z) / np.exp(z).sum(1, keepdims=True)
    3 / (1 + np.exp(-z)) => 3 * np.tanh(z) || 3 * np.maximum(z, 0)
2 | your gates stand at the wrong heads: row n of W belongs to head n
    12], W) => 12], W[::-1])
2 | your gate reads the stream of the token before; each token opens its own row
    h[..., :12] => np.roll(h[..., :12], 1, 1)
2 | the value stays whole, and the gate TIMES the row is added to it: no share 1 - g, no minus
    3 / => 1 /
    and: v[b, t, n] + => (1 - gate) * v[b, t, n] +
    v[b, t, n] + => || (1 - gate / 3) * v[b, t, n] + || (3 - gate) * v[b, t, n] +
    v[b, t, n] + => (1 - gate) * v[b, t, n] + || gate * v[b, t, n] + || v[b, t, n] -
    v[b, t, n] + gate * row => gate * v[b, t, n] + row
    gate * row => (3 + gate / 3) * row || gate + row
1 | you read the last twelve features; the gate reads the first twelve, h[..., :12]
    :12 => -12:
2 | each position takes the row of its own token, table[ids]; you took row t, or a neighbour's
    ids[b, t] => t || ids[b, t - 1]
2 | each token and head has a gate of its own: no mean, no first one for all
    g[b, t, n] => g[b, 0, n] || g[b, :, n].mean() || g[:, :, n].mean() || g.mean()
    np.exp(-z) => np.exp(0 * z - z.mean(1, keepdims=True))
    g[b, t, n] => g[b, t].mean() || g[b, t, 0]
    12], W) => 12], 0 * W + W.mean(0))
""")
