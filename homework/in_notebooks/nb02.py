"""Notebook 02: a GPT from its pieces, its training loop; deeper, the steps that train ours."""

import math

import numpy as np

from homework.in_notebooks import models
from homework.marking import Part, Unit, drawn, normals

unit = Unit("nb02_transformer", "A transformer that trains")


EPS = 2.0**-23  # torch.finfo(torch.float32).eps


def vectors(*shape, size=1, offset=0):
    return lambda r: (size * (r.normal(size=shape) + offset),)


def around_zero(r):
    x = r.normal(size=(4, 6))
    x[2] = 0
    x[1:2] *= 3e-4 / np.sqrt((x[1] ** 2).mean())
    return (x,)


@unit.exercise(
    Part("large vectors", 1, vectors(2, 4, 6, size=9)),
    Part("vectors whose entries are not around zero", 1, vectors(5, 8, size=0.5, offset=2)),
    Part("a vector of zeros, and one near them", 1, around_zero),
    single=True,
)
def norm(x):
    """x (…, C) -> (…, C): every vector brought to root mean square 1.

    With eps = torch.finfo(x.dtype).eps beside the mean square, against a division by zero.
    """
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + EPS)


unit.mistakes("""
takes: easy, 4 minutes
hint: x.square().mean(-1, keepdim=True) has shape (…, 1) and can divide x (…, C) after a root.
hint: x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
3 | yours have length 1; wanted root mean SQUARE 1, that is a length of sqrt(C)
    mean => sum
    => x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)
3 | you took one mean over everything; every vector has its own: mean(-1, keepdim=True)
    (-1, keepdims=True) => ()
3 | that is LayerNorm: it subtracts the mean first; here the vector keeps its direction
    => (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    => (x - x.mean(-1, keepdims=True)) / x.std(-1, ddof=1, keepdims=True)
    => (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    => (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPS)
    x / => (x - x.mean(-1, keepdims=True)) /
3 | you divided by .std(), measured from the mean; wanted the root mean square, from zero
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => x.std(-1, keepdims=True)
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => x.std(-1, ddof=1, keepdims=True)
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => (x.std(-1, keepdims=True) + EPS)
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => (x.std(-1, ddof=1, keepdims=True) + EPS)
3 | you divided by the mean of |x|; wanted the root of the mean SQUARE
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => abs(x).mean(-1, keepdims=True)
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => (abs(x).mean(-1, keepdims=True) + EPS)
3 | you divided by the largest entry; wanted the root mean square
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => abs(x).max(-1, keepdims=True)
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => x.max(-1, keepdims=True)
3 | you divided by the mean, which may be near 0; wanted the root of the mean SQUARE
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => x.mean(-1, keepdims=True)
3 | you squared the mean, so all that is left is its size; wanted the mean of the SQUARES
    (x**2).mean(-1, keepdims=True) => x.mean(-1, keepdims=True) ** 2
3 | you divided by the mean square, not by its root
    np.sqrt =>
3 | you multiplied by the root mean square; divide by it
    / => *
1 | you took the mean along axis 1, which is not always the last: mean(-1, keepdim=True)
    -1 => 1
3 | you took the mean along the first axis; every vector has its own: mean(-1, keepdim=True)
    -1 => 0
1 | a vector of zeros is divided by 0: put eps beside the mean square, below the root
    + EPS =>
1 | near zero eps decides, and yours is another one, or not below the root: it stands beside the
  | mean square, and is torch.finfo(x.dtype).eps
    np.sqrt((x**2).mean(-1, keepdims=True) + EPS) => (np.sqrt((x**2).mean(-1, keepdims=True)) + EPS)
    (x**2).mean(-1, keepdims=True) + EPS => np.maximum((x**2).mean(-1, keepdims=True), EPS)
    EPS => 1e-4
    EPS => 1e-5
    EPS => 1e-6
    EPS => 1e-8
    EPS => 1e-12
""")


def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


def a_layer(r):
    return models.NoMLP(r, 4), r.normal(size=(2, 3, 4))


@unit.exercise(Part("a layer of width 4", 2, a_layer))
def mlp(self, h):
    """What the MLP of a layer adds: widen by self.up, cut off at zero, square, narrow by self.down.
    h (B, T, C) -> (B, T, C)."""
    wide = self.up(h)
    return self.down(np.maximum(wide, 0) ** 2)


unit.mistakes("""
takes: easy, 3 minutes
hint: self.up(h) is (B, T, 4 C), and self.down brings it back to (B, T, C).
hint: self.down(self.up(h).relu().square())
2 | you cut off at zero but did not square
    ** 2 =>
2 | you cut off and squared h; that happens between the two matrices, to self.up(h)
    => self.down(self.up(np.maximum(h, 0) ** 2))
2 | you squared without cutting off first: no square is below zero, a cut behind it does nothing
    np.maximum(wide, 0) => wide
2 | your square comes behind `down`; it belongs between the two matrices
    => self.down(np.maximum(self.up(h), 0)) ** 2
2 | between the two matrices nothing bends
    np.maximum(wide, 0) ** 2 => wide
2 | yours is a gelu; wanted relu, squared
    np.maximum(wide, 0) ** 2 => gelu(wide)
2 | yours is a silu; wanted relu, squared
    np.maximum(wide, 0) ** 2 => wide / (1 + np.exp(-wide))
2 | you added h; the branch returns what it has to say, and forward adds it
    self.down => h + self.down
2 | yours is still wide: `down` is missing
    self.down =>
2 | you took the root; wanted the square
    np.maximum(wide, 0) ** 2 => np.sqrt(np.maximum(wide, 0))
2 | you kept what is BELOW zero; cut that off
    np.maximum(wide => np.maximum(-wide
2 | you squared and kept the sign; cut off what is negative first
    np.maximum(wide, 0) ** 2 => np.sign(wide) * wide**2
2 | you normed h; it comes normed, forward does that: self.up(h)
    self.up(h) => self.up(norm(h))
2 | you cut off and squared behind `down` once more; what comes out of `down` is the answer
    => np.maximum(mlp(self, h), 0) ** 2
2 | you cut off and squared behind `down`; both belong between the two matrices
    => np.maximum(self.down(self.up(h)), 0) ** 2
2 | you cut off h, before `up`; what `up` makes of it is cut off
    np.maximum(wide, 0) => self.up(np.maximum(h, 0))
2 | you squared a gelu; wanted a relu, squared
    np.maximum(wide, 0) ** 2 => gelu(wide) ** 2
""")


def a_model(layers):
    return lambda r: (models.GPT(r, layers), r.integers(0, 7, (2, 5)))


@unit.exercise(Part("one layer", 1, a_model(1)), Part("three layers", 3, a_model(3)))
def forward(self, ids):
    """The scores of a GPT for every next token: ids (B, T) -> (B, T, V).

    The stream x begins as the norm of self.embed(ids). For layer n of self.layers: h = norm(x), and
    v = self.value(n, h, v1, ids), where v1 are the values of the first layer (None before there are
    any); layer.attention(h, v) is added to x, then layer.mlp of the norm of x is. At the end
    self.scores(x).
    """
    x, v1 = norm(self.embed(ids)), None
    for n, layer in enumerate(self.layers):
        h = norm(x)
        v = self.value(n, h, v1, ids)
        v1 = v if n == 0 else v1
        x = x + layer.attention(h, v)
        x = x + layer.mlp(norm(x))
    return self.scores(x)


unit.mistakes("""
takes: medium, 12 minutes
hint: Before the loop: x = norm(self.embed(ids)) and v1 = None. After it: self.scores(x).
hint: In the loop, for n, layer in enumerate(self.layers): h = norm(x), then the values by
    | self.value(n, h, v1, ids); they are v1 if n is 0.
hint: Then two lines of one form: x = x + layer.attention(h, v), x = x + layer.mlp(norm(x)).
4 | the stream begins as the NORM of the embedding
    norm(self.embed(ids)) => self.embed(ids)
3 | your attention reads the stream as it is; it reads h = norm(x)
    attention(h, v) => attention(x, v)
3 | your values are made of x; they are made of h = norm(x), which attention reads, too
    value(n, h, v1, ids) => value(n, x, v1, ids)
4 | your MLP reads the stream as it is; it reads it through a norm of its own
    mlp(norm(x)) => mlp(x)
4 | your MLP reads what attention read; it reads the stream to which attention has added
    mlp(norm(x)) => mlp(h)
4 | your stream itself is normed: you added to the normed vector, or normed the sum (post-norm, as
  | in 2017). Here only what a branch reads is normed
    x + layer.attention => h + layer.attention
    and: x + layer.mlp => norm(x) + layer.mlp
4 | your stream itself is normed behind attention; only what the MLP reads is normed
    x + layer.attention(h, v) => norm(x + layer.attention(h, v))
4 | your attention replaces the stream; what it returns is added to it
    x + layer.attention => layer.attention
3 | your stream itself is normed before attention: keep h = norm(x) apart, and add to x
    x + layer.attention => h + layer.attention
3 | you return inside the loop, after the first layer: move `return` out of it
    enumerate(self.layers) => enumerate(self.layers[:1])
4 | your layers have no MLP
    x = x + layer.mlp(norm(x)) =>
3 | your v1 is the value of the layer BELOW; it stays that of the first layer
    v if n == 0 else v1 => v
3 | your v1 stays None; after the first layer it is that layer's values
    v if n == 0 else v1 => None
3 | your v1 is what the first layer read; it is the values that this layer made
    v if n == 0 else v1 => h if n == 0 else v1
4 | you asked layer.value(h), in the first layer or in all; ask self.value(n, h, v1, ids), the line
  | that the course changes
    self.value(n, h, v1, ids) => layer.value(h)
    self.value(n, h, v1, ids) => self.value(n, h, v1, ids) if n else layer.value(h)
4 | your layers have no attention: what it returns is added to x
    x = x + layer.attention(h, v) =>
4 | your MLP replaces the stream; what it returns is added to it
    x + layer.mlp => layer.mlp
4 | you added the MLP to h; it is added to the stream x, which attention has grown
    x + layer.mlp => h + layer.mlp
4 | your norm stands behind the MLP; it stands before it, layer.mlp(norm(x))
    layer.mlp(norm(x)) => norm(layer.mlp(x))
3 | attention reads v1 in every layer; it reads v, which self.value makes of h and v1
    attention(h, v) => attention(h, v1)
4 | the head alone is not all: self.scores(x) norms before it, and bounds what comes out
    self.scores(x) => self.head(norm(x))
    self.scores(x) => self.head(x)
4 | that is the stream; self.scores(x) is missing
    self.scores(x) => x
    self.scores(x) => norm(x)
3 | your h was made once, before the loop; every layer reads the norm of what the stream is THEN
    h = norm(x) => h = h if n else norm(x)
4 | your norms stand behind the branches; a branch READS through a norm, and what it says is added
    layer.attention(h, v) => norm(layer.attention(x, v))
    and: layer.mlp(norm(x)) => norm(layer.mlp(x))
    layer.attention(h, v) => norm(layer.attention(h, v))
    and: layer.mlp(norm(x)) => norm(layer.mlp(x))
4 | your MLP comes before attention, and adds first; attention does
    h = norm(x) => x = x + layer.mlp(norm(x)); h = norm(x)
    and: x = x + layer.mlp(norm(x)) => pass
""")


@drawn
def to_train(r, many):
    """A model of five tokens, its optimizer, and batches of two texts."""
    model = models.Bigram(r.normal(size=(5, 5)))
    optimizer = models.Descent(model.parameters(), lr=2 + 2 * r.random())
    pairs = [tuple(r.integers(0, 5, (2, 2, 6))) for _ in range(many)]
    return model, optimizer, models.Batches(pairs, model)


def short_of_a_step(made, model, optimizer, batches):
    """The last step is in no loss; whoever has taken it has moved the model there."""
    w = model.start
    for batch in batches.pairs:
        w = w - optimizer.defaults["lr"] * models.loss_and_slope(w, *batch)[1]
    there = np.allclose(w, model.table.detach().numpy())
    return "" if there else "your model ends without its last step: `step` comes behind `backward`"


@unit.exercise(
    Part("two batches", 1, to_train(2)),
    Part("five batches", 3, to_train(5)),
    forbids=short_of_a_step,
)
def training(model, optimizer, batches):
    """Train a model: a step of the optimizer for every (ids, targets) of batches, in their order.

    -> the list of losses, a number for every batch, each as it was before its step.
    """
    w, losses = model.start, []
    for batch in batches.pairs:
        loss, slope = models.loss_and_slope(w, *batch)
        losses.append(loss)
        w = w - optimizer.defaults["lr"] * slope
    return np.array(losses)


unit.mistakes(r"""
takes: medium, 8 minutes
hint: for ids, targets in batches: four things happen in it, and a number is kept.
hint: loss = model.loss(ids, targets); optimizer.zero_grad(); loss.backward(); optimizer.step().
    | Keep loss.item(), a number without its history.
3 | your gradients pile up: backward ADDS, so clear them for every batch: optimizer.zero_grad()
    w, losses = model.start, [] => w, losses, sums = model.start, [], 0
    and: losses.append(loss) => losses.append(loss); sums = slope = sums + slope
4 | your losses are those of a model that never moves: is backward or step missing, or do they
  | stand the other way round, or are the gradients cleared between the two?
    w = w - optimizer => w = w - 0 * optimizer
4 | you measured every loss after the step; wanted the loss from which the step was made
    losses.append(loss) =>
    and: * slope => * slope\n    losses.append(models.loss_and_slope(w, *batch)[0])
4 | that is one number, the last loss or the sum or mean of all; wanted the list of all
    np.array(losses) => losses[-1]
    np.array => np.mean
    np.array => sum
4 | your list holds sums of all losses so far; wanted the loss of every batch
    np.array => np.cumsum
4 | ids and targets are in each other's place: model.loss(ids, targets)
    *batch => *batch[::-1]
4 | you read the batches from the last to the first; their order is that of the list
    batches.pairs => batches.pairs[::-1]
4 | you divided the loss by the number of batches; every batch has a step of its own
    * slope => * slope / len(batches.pairs)
4 | your list has one entry: append inside the loop, for every batch
    losses) => losses[-1:])
4 | your list ends after the first batch: a `return` or a `break` stands inside the loop
    losses) => losses[:1])
4 | your list lacks the first loss, that of the model before any step
    losses) => losses[1:])
""")


@drawn
def a_tensor(r, step, size=1):
    p, g, m, s = normals(r, *[(4, 3)] * 4)
    g, m, s = size * g, 0.3 * size * m * (step > 1), 0.3 * (size * s) ** 2 * (step > 1)
    return p, g, m, s, step


@unit.exercise(
    Part("the first step", 1, a_tensor(1)),
    Part("a later step", 1, [a_tensor(4), a_tensor(4, size=3e-6)]),
)
def adamw_step(p, g, m, s, step, lr=0.01, betas=(0.8, 0.95), eps=1e-10, decay=0.1):
    """Step 1, 2, … of one tensor p of any shape, with gradient g -> new p, m and s.

    m is the running mean of the gradients and s that of their squares, of g's shape; both start at
    zero. betas are their shares of what was before.
    """
    b1, b2 = betas
    m = b1 * m + (1 - b1) * g
    s = b2 * s + (1 - b2) * g**2
    mean = m / (1 - b1**step)
    square = s / (1 - b2**step)
    p = p * (1 - lr * decay)
    p = p - lr * mean / (np.sqrt(square) + eps)
    return p, m, s


unit.mistakes(r"""
takes: medium, 10 minutes
hint: The new means first: m = b1 * m + (1 - b1) * g, s = b2 * s + (1 - b2) * g * g.
hint: Corrected, for this step alone: m / (1 - b1 ** step) and s / (1 - b2 ** step).
hint: p * (1 - lr * decay) - lr * mean / (square.sqrt() + eps); return it with m and s.
2 | both means start at zero and are too small in the first steps: divide them by 1 - beta ** step
    / (1 - b1**step) =>
    and: / (1 - b2**step) =>
2 | you corrected the mean of the gradients but not that of their squares
    / (1 - b2**step) =>
2 | you handed on the corrected means; hand on the running ones and correct them in each step
    return p, m, s => return p, mean, square
2 | your correction is a step behind: step counts from 1
    b1**step => b1 ** (step - 1)
    and: b2**step => b2 ** (step - 1)
2 | you divided by the mean square; divide by its root
    np.sqrt(square) => square
2 | you added decay * p to the gradient: that is Adam with L2. In AdamW the pull goes past both
  | means: p * (1 - lr * decay)
    b1, b2 = betas => b1, b2 = betas\ng = g + decay * p
    and: p = p * (1 - lr * decay) =>
2 | the pull towards zero is missing: p * (1 - lr * decay)
    * (1 - lr * decay) =>
2 | your pull is decay itself; it is lr * decay, so that it falls with the rate
    lr * decay => decay
2 | you added the step; it leads downhill, so subtract
    p - lr * mean => p + lr * mean
2 | you corrected the mean of the squares but not that of the gradients
    / (1 - b1**step) =>
2 | your decay comes after the step, so it shrinks the step, too; it shrinks the old p alone
    p = p * (1 - lr * decay) =>
    and: return p, => return p * (1 - lr * decay),
2 | your decay stands in the gradient as well; it stands beside the step alone
    b1, b2 = betas => b1, b2 = betas\ng = g + decay * p
2 | your correction is a step ahead: 1 - beta ** step
    b1**step => b1 ** (step + 1)
    and: b2**step => b2 ** (step + 1)
2 | your step lacks lr
    lr * mean => mean
1 | you step along the gradient g; the step goes along the corrected mean
    lr * mean => lr * g
2 | you took one beta for both means: betas[0] is that of the gradients, betas[1] of their squares
    b1, b2 = betas => b1, b2 = betas[0], betas[0]
    b1, b2 = betas => b1, b2 = betas[1], betas[1]
2 | your betas are in each other's place: the first is that of the gradients
    b1, b2 = betas => b2, b1 = betas
2 | beta is the share of what was BEFORE: m = b1 * m + (1 - b1) * g, and s alike
    b1 * m + (1 - b1) * g => (1 - b1) * m + b1 * g
    b1 * m + (1 - b1) * g => (1 - b1) * m + b1 * g
    and: b2 * s + (1 - b2) * g => (1 - b2) * s + b2 * g
2 | your s is a mean of gradients; wanted that of their squares: (1 - b2) * g * g
    g**2 => g
    g**2 => abs(g)
2 | your gradient enters in full; its share is 1 - b1, so that m stays a mean
    (1 - b1) * g => g
1 | your correction is a step behind from the second step on: 1 - beta ** step
    b1**step => b1 ** max(step - 1, 1)
    and: b2**step => b2 ** max(step - 1, 1)
2 | your s is a mean of m squared; wanted that of the gradients squared: (1 - b2) * g * g
    g**2 => m**2
1 | your correction is that of step 1 in every step: 1 - beta ** step
    b1**step => b1
    and: b2**step => b2
1 | your eps stands below the root; it is added to the root: square.sqrt() + eps
    np.sqrt(square) + eps => np.sqrt(square + eps)
""")


FIVE = (
    (8.15655, -22.48329, 15.87877),
    (4.04293, -2.80892, 0.500018),
    (3.89167, -2.77248, 0.506065),
    (3.28575, -2.36813, 0.464490),
    (2.34654, -1.70978, 0.423236),
)


def exactly_orthogonal(G):
    U, _, Wt = np.linalg.svd(G, full_matrices=False)
    return U @ Wt


def matrix(rows, columns, rounds):
    return lambda r: (2 * r.normal(size=(rows, columns)), rounds)


@unit.exercise(
    Part("one round", 1, matrix(4, 6, FIVE[1:2])),
    Part("five rounds", 1, matrix(3, 6, FIVE)),
    single=True,
)
def orthogonal(G, rounds):
    """G (rows, columns) -> the same directions with every singular value brought near 1.

    X = G / (1.01 |G| + 1e-6), with |G| the root of the sum of all squares. Then, for each (a, b, c)
    of rounds, with A = X Xᵀ:  X <- a X + (b A + c A A) X.
    """
    X = G / (1.01 * np.sqrt((G**2).sum()) + 1e-6)
    for a, b, c in rounds:
        A = X @ X.T
        X = a * X + (b * A + c * A @ A) @ X
    return X


unit.mistakes(r"""
takes: medium, 8 minutes
hint: X = G / (1.01 * G.norm() + 1e-6); then the loop over rounds.
hint: In the loop: A = X @ X.T, (rows, rows), and X = a * X + (b * A + c * A @ A) @ X.
2 | singular values above 1 fly away: divide G by its own norm first
    / (1.01 * np.sqrt((G**2).sum()) + 1e-6) =>
2 | you took powers of the entries; the polynomial is one of matrices: A = X @ X.T first
    (b * A + c * A @ A) @ X => b * X**3 + c * X**5
2 | your A * A squares the entries of A; wanted the product A @ A
    A @ A => A * A
1 | you kept A from the first round; X has changed, so A = X @ X.T belongs into the loop
    for a, b, c => A = X @ X.T\nfor a, b, c
    and: A = X @ X.T => pass
2 | your sum lacks a * X itself: the new X is a * X + (b * A + c * A @ A) @ X
    a * X + =>
2 | you left out the 1.01 in front of the norm
    1.01 * =>
2 | the norm is the ROOT of the sum of squares
    np.sqrt((G**2).sum()) => (G**2).sum()
2 | you summed absolute values; the norm sums squares
    np.sqrt((G**2).sum()) => abs(G).sum()
2 | you divided every row by its own norm; one norm of the whole matrix is wanted
    .sum() => .sum(1, keepdims=True)
    1.01 * =>
    and: .sum() => .sum(1, keepdims=True)
2 | you divided by the largest singular value; wanted the root of the sum of all squares
    np.sqrt((G**2).sum()) => np.linalg.norm(G, 2)
2 | you divided by the 1.01 alone: brackets around all of it, G / (1.01 * G.norm() + 1e-6)
    (1.01 * np.sqrt((G**2).sum()) + 1e-6) => 1.01 * np.sqrt((G**2).sum()) + 1e-6
2 | you multiplied by G; a round is made of the X of the one before
    A) @ X => A) @ G
2 | c stands on A @ A, not on A
    A @ A => A
2 | A @ A has the factor c, not b
    c * A @ A => b * A @ A
1 | you made one round of five: the loop goes over all of them, and `return` stands behind it
    in rounds => in rounds[:1]
1 | every round of yours begins at the first X: give its result to the next, X = a * X + …
    in rounds => in rounds[-1:]
2 | that is U Wᵀ itself, every singular value exactly 1; wanted the rounds that come near it
    => exactly_orthogonal(G)
1 | you divided in every round; G is divided once, before the loop
    A = X @ X.T => X = X / (1.01 * np.sqrt((X**2).sum()) + 1e-6); A = X @ X.T
""")


@drawn
def moment(r, low, high):
    """A step in a stretch of the run, given as shares of it."""
    steps = 20 * int(r.integers(5, 20))
    step = int(r.integers(int(low * steps) + 1, int(high * steps)))
    return step, steps, steps // 20


@unit.exercise(
    Part("on the way up", 1, moment(0, 0.05)),
    Part("level", 1, moment(0.06, 0.34)),
    Part("on the way down", 1, moment(0.66, 1)),
)
def learning_rate(step, steps, warmup, falls=0.65, start=0.025, end=0.05):
    """The factor on every rate at a step 0, 1, … of a run of `steps` steps -> a number.

    In a line from `start` up to 1 at step `warmup`; level at 1; and over the last share `falls` of
    the run in a line down, so that it would reach `end` at step `steps`.
    """
    begin = steps - round(falls * steps)
    if step < warmup:
        return start + (1 - start) * step / warmup
    if step <= begin:
        return 1.0
    done = (step - begin) / (steps - begin)
    return 1 + (end - 1) * done


unit.mistakes("""
takes: easy, 7 minutes
hint: Three stretches: step < warmup, step <= begin (steps - round(falls * steps)), the rest.
hint: A line from a to b while x goes from 0 to 1 is a + (b - a) * x. Up: x = step / warmup. Down: x
    | = (step - begin) / (steps - begin).
1 | your rate falls over the last 35 % of the run; wanted the LAST 65 %, that is from 35 % on
    falls * steps => (1 - falls) * steps
1 | your line down aims at 0; it aims at `end`, which it would reach at step `steps`
    (end - 1) * done => -done
1 | your rate begins at 0; wanted `start` at step 0
    start + (1 - start) * step => step
2 | your rate falls right after the warm-up; it stays at 1 until the last 65 % begin
    steps - round(falls * steps) => warmup
1 | your rate rises above 1: a line from start to 1 is start + (1 - start) * x
    (1 - start) * step => step
1 | your rate falls on the way up; it goes from start up to 1
    start + (1 - start) * step / warmup => start * (1 - step / warmup)
1 | your rate has no warm-up; it begins at `start`
    start + (1 - start) * step / warmup => 1.0
1 | your warm-up is a step ahead: step 0 has the rate `start`
    * step / warmup => * (step + 1) / warmup
1 | your way down is a step ahead: it would reach `end` at step `steps`, not before
    (step - begin) => (step + 1 - begin)
1 | your way down reaches `end` a step too early: it would reach it at step `steps`
    (steps - begin) => (steps - 1 - begin)
1 | your line down goes by step / steps; it begins at 1 where the last 65 % begin
    (step - begin) / (steps - begin) => step / steps
1 | your 65 % are those of the steps behind the warm-up; they are 65 % of all steps
    falls * steps => falls * (steps - warmup)
    steps - round(falls * steps) => steps - falls * (steps - warmup)
1 | your way down is divided by all steps; divide by its own, steps - begin
    / (steps - begin) => / steps
1 | your rate jumps: on the way down it goes from 1 to `end`
    1 + (end - 1) * done => end * (1 - done)
1 | your line falls BY `end`; it falls TO `end`, that is by 1 - end
    (end - 1) * done => -end * done
1 | your warm-up reaches 1 a step early; it does so at step `warmup`
    * step / warmup => * step / (warmup - 1)
1 | your rate RISES on the way down; left goes from 1 to 0
    1 + (end - 1) * done => done
    1 + (end - 1) * done => 1 + (end - 1) * (1 - done)
1 | your rate is at `end` at once; it goes down in a line
    1 + (end - 1) * done => end
1 | your rate never falls; it does so over the last 65 %
    1 + (end - 1) * done => 1.0
1 | your rate falls along a cosine; a line is wanted
    1 + (end - 1) * done => end + (1 - end) * (1 + np.cos(np.pi * done)) / 2
""")


@unit.exercise(*models.VALUES)
def value(self, n, h, v1, ids):
    """The values of layer n: half its own, self.layers[n].value(h), half the first layer's, v1. The
    first layer (n = 0, and v1 is None) keeps its own. h and v1 (B, T, C), ids (B, T) -> (B, T, C).
    """
    own = self.layers[n].value(h)
    return (own + v1) / 2 if n else own


unit.mistakes("""
takes: easy, 3 minutes
hint: v = self.layers[n].value(h) is what the layer makes itself.
hint: return v if n == 0 else (v + v1) / 2
2 | those are the first layer's values alone; half of them, half of its own
    (own + v1) / 2 => v1
2 | those are the layer's own values alone; half of v1 is missing
    (own + v1) / 2 => own
2 | you added the two; take half of each
    (own + v1) / 2 => own + v1
2 | only one of the two is halved in yours: (v + v1) / 2, with brackets
    (own + v1) / 2 => own + v1 / 2
    (own + v1) / 2 => own / 2 + v1
2 | a quarter of each is too little: half of each
    (own + v1) / 2 => (own + v1) / 4
2 | you put the two side by side; add them, feature by feature
    (own + v1) / 2 => np.concatenate([own, v1], -1)
    (own + v1) / 2 => np.concatenate([own, v1], -1) / 2
2 | you took half of the features from each; every feature is half of one and half of the other
    (own + v1) / 2 => np.concatenate([own[..., :2], v1[..., 2:]], -1)
    (own + v1) / 2 => np.concatenate([v1[..., :2], own[..., 2:]], -1)
2 | you mixed in the stream h; the layer's own values are layers[n].value(h)
    (own + v1) / 2 => (h + v1) / 2
2 | every layer has a matrix of its own: self.layers[n], not self.layers[0]
    layers[n] => layers[0]
2 | you mixed in the embedding; the other half is the layer's own, self.layers[n].value(h)
    (own + v1) / 2 => (self.embed(ids) + v1) / 2
2 | you mixed before the matrix; v1 has been through the first layer's already
    => self.layers[n].value((h + v1) / 2 if n else h)
    => self.layers[n].value(h + v1 if n else h)
1 | your first layer has half of its own values; it keeps them whole
    else own => else own / 2
2 | your second layer keeps its own values; only the first does, n = 0
    if n => if n > 1
2 | you asked the first layer's matrix for values of THIS h; v1 is what it made of its own
    (own + v1) / 2 => (own + self.layers[0].value(h)) / 2
""")
