"""Notebook 02: a norm, a block, two ways from a gradient to a step, and a schedule."""

import numpy as np

from homework.marking import Part, Unit, Wrong, normals

unit = Unit("nb02_transformer", "A transformer that trains", "The exercises of notebook 02.")


# ---- the norm, and the block ---------------------------------------------------------------------


def vectors(*shape, size=1, offset=0):
    return lambda r: (size * (r.normal(size=shape) + offset),)


@unit.exercise(
    Part("vectors of size 3", 1, vectors(2, 4, 6, size=3)),
    Part("vectors whose entries are not around zero", 1, vectors(5, 8, offset=2)),
    Wrong(
        "divided by the length",
        2,
        "yours have length 1; wanted root mean SQUARE 1, that is a length of sqrt(C)",
        dict(mean=False),
    ),
    Wrong(
        "over all positions",
        2,
        "you took one mean over everything; every vector has its own: mean(-1, keepdim=True)",
        dict(whole=True),
    ),
    Wrong(
        "mean taken off",
        2,
        "you subtracted the mean first: that is LayerNorm; here the vector keeps its direction",
        dict(centred=True),
    ),
    Wrong(
        "without the root",
        2,
        "you divided by the mean square, not by its root",
        dict(root=False),
    ),
    hints=[
        "x.square().mean(-1, keepdim=True) has shape (…, 1) and can divide x (…, C) after a root.",
        "x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()",
    ],
    level="easy",
    minutes=4,
)
def rms_norm(x, *, mean=True, whole=False, centred=False, root=True):
    """x (…, C) -> (…, C): every vector brought to root mean square 1.

    With eps = torch.finfo(x.dtype).eps beside the mean square, against a division by zero.
    """
    out = np.zeros(x.shape)
    for at in np.ndindex(*x.shape[:-1]):
        row = x[at] - x[at].mean() if centred else x[at]
        squares = sum(value**2 for value in row)
        size = (x**2).mean() if whole else squares / len(row) if mean else squares
        out[at] = row / (np.sqrt(size) if root else size)
    return out


class Layer:
    """A layer as a function of arrays and of tensors alike, with a name to show."""

    def __init__(self, name, function):
        self.name, self.function = name, function

    def __repr__(self):
        return self.name

    def __call__(self, h):
        return self.function(h)


# the running sum moves things between positions, the square bends each of them
RUNNING_SUM = Layer("running_sum", lambda h: h.cumsum(1) / 4)
SQUARE = Layer("square", lambda h: h * abs(h))


def post_norm(x, attention, mlp):
    x = rms_norm(x + attention(x))
    return rms_norm(x + mlp(x))


def normed_outputs(x, attention, mlp):
    x = x + rms_norm(attention(x))
    return x + rms_norm(mlp(x))


def stream(size):
    return lambda r: (size * r.normal(size=(2, 4, 6)), RUNNING_SUM, SQUARE)


@unit.exercise(
    Part("a stream of size 1", 1, stream(1)),
    Part("a stream of size 5", 1, stream(5)),
    Wrong(
        "no norm before the MLP",
        2,
        "your MLP reads the stream as it is; it reads it through a norm of its own",
        dict(normed=(True, False)),
    ),
    Wrong(
        "no norm at all",
        2,
        "your layers read the stream as it is; each reads it through a norm",
        dict(normed=(False, False)),
    ),
    Wrong(
        "the old stream for the MLP",
        2,
        "your MLP reads what attention read; it reads the stream to which attention has added",
        dict(parallel=True),
    ),
    Wrong(
        "the norm goes into the stream",
        2,
        "you added to the normed vector; add to the stream itself and let only the layer read the "
        "norm",
        dict(into=True),
    ),
    Wrong(
        "nothing is added",
        2,
        "your layers replace the stream; what they return is added to it",
        dict(added=False),
    ),
    Wrong(
        "post-norm",
        2,
        "you normed the sum after each layer, as the first transformers did: the stream itself is "
        "never normed, only what a layer reads",
        returns=lambda x, attention, mlp: post_norm(x, attention, mlp),
    ),
    Wrong(
        "the output normed",
        2,
        "you normed what each layer returns; the norm stands before a layer, on what it reads",
        returns=lambda x, attention, mlp: normed_outputs(x, attention, mlp),
    ),
    hints=[
        "Two lines of one form: x = x + f(norm(x)).",
        "x = x + attention(rms_norm(x)), then the same with mlp: it reads the new x.",
    ],
    level="easy",
    minutes=5,
)
def block(x, attention, mlp, *, normed=(True, True), parallel=False, into=False, added=True):
    """x (B, T, C) through one block -> (B, T, C): attention adds to the stream, then the MLP does.

    attention and mlp are functions of what they read, (B, T, C) -> (B, T, C). Both read the stream
    through rms_norm.
    """
    first = rms_norm(x) if normed[0] else x
    middle = (first if into else x if added else 0) + attention(first)
    second = rms_norm(middle) if normed[1] else middle
    read = first if parallel else second
    return (second if into else middle if added else 0) + mlp(read)


# ---- from a gradient to a step -------------------------------------------------------------------


def a_tensor(step):
    def make(r):
        p, g, m, s = normals(r, *[(4, 3)] * 4)
        started = step > 1
        return p, g, 0.3 * m * started, 0.3 * s**2 * started, step

    return make


@unit.exercise(
    Part("the first step", 1, a_tensor(1)),
    Part("a later step", 1, a_tensor(4)),
    Wrong(
        "no corrections",
        2,
        "both means start at zero and are too small in the first steps: divide them by "
        "1 - beta ** step",
        dict(corrected=(False, False)),
    ),
    Wrong(
        "one correction only",
        2,
        "you corrected the mean of the gradients but not that of their squares",
        dict(corrected=(True, False)),
    ),
    Wrong(
        "corrected means are kept",
        2,
        "you handed on the corrected means; hand on the running ones and correct them in each step",
        dict(kept=True),
    ),
    Wrong(
        "steps from 0",
        2,
        "your correction is a step behind: step counts from 1",
        dict(late=1),
    ),
    Wrong(
        "without the root",
        2,
        "you divided by the mean square; divide by its root",
        dict(root=False),
    ),
    Wrong(
        "decay in the gradient",
        2,
        "you added decay * p to the gradient: that is Adam with L2. In AdamW the pull goes past "
        "both means: p * (1 - lr * decay)",
        dict(inside=True),
    ),
    Wrong(
        "no decay",
        2,
        "the pull towards zero is missing: p * (1 - lr * decay)",
        dict(pull="none"),
    ),
    Wrong(
        "decay without lr",
        2,
        "your pull is decay itself; it is lr * decay, so that it falls with the rate",
        dict(pull="whole"),
    ),
    Wrong(
        "uphill",
        2,
        "you added the step; it leads downhill, so subtract",
        dict(sign=-1),
    ),
    hints=[
        "The new means first: m = b1 * m + (1 - b1) * g, s = b2 * s + (1 - b2) * g * g.",
        "Corrected, for this step alone: m / (1 - b1 ** step) and s / (1 - b2 ** step).",
        "p * (1 - lr * decay) - lr * mean / (square.sqrt() + eps); return it with m and s.",
    ],
    level="medium",
    minutes=10,
)
def adamw_step(
    p,
    g,
    m,
    s,
    step,
    lr=0.01,
    betas=(0.8, 0.95),
    eps=1e-10,
    decay=0.1,
    *,
    corrected=(True, True),
    kept=False,
    late=0,
    root=True,
    inside=False,
    pull="rate",
    sign=1,
):
    """Step 1, 2, … of one tensor p of any shape, with gradient g -> new p, m and s.

    m is the running mean of the gradients and s that of their squares, of g's shape; both start at
    zero. betas are their shares of what was before.
    """
    new_p, new_m, new_s = np.zeros(p.shape), np.zeros(p.shape), np.zeros(p.shape)
    count = step - late
    for at in np.ndindex(*p.shape):
        slope = g[at] + decay * p[at] if inside else g[at]
        mean = betas[0] * m[at] + (1 - betas[0]) * slope
        square = betas[1] * s[at] + (1 - betas[1]) * slope**2
        fair = mean / (1 - betas[0] ** count) if corrected[0] else mean
        fair_square = square / (1 - betas[1] ** count) if corrected[1] else square
        factor = {"rate": 1 - lr * decay, "none": 1, "whole": 1 - decay}[pull]
        pulled = p[at] if inside else p[at] * factor
        divisor = np.sqrt(fair_square) if root else fair_square
        new_p[at] = pulled - sign * lr * fair / (divisor + eps)
        new_m[at], new_s[at] = (fair, fair_square) if kept else (mean, square)
    return new_p, new_m, new_s


FIVE = (
    (8.15655, -22.48329, 15.87877),
    (4.04293, -2.80892, 0.500018),
    (3.89167, -2.77248, 0.506065),
    (3.28575, -2.36813, 0.464490),
    (2.34654, -1.70978, 0.423236),
)


def matrix(rows, columns, rounds):
    return lambda r: (2 * r.normal(size=(rows, columns)), rounds)


@unit.exercise(
    Part("one round", 1, matrix(4, 6, FIVE[1:2])),
    Part("five rounds", 1, matrix(3, 6, FIVE)),
    Wrong(
        "not made small first",
        2,
        "singular values above 1 fly away: divide G by its own norm first",
        dict(scaled=False),
    ),
    Wrong(
        "powers of the entries",
        2,
        "you took powers of the entries; the polynomial is one of matrices: A = X @ X.T first",
        dict(entries=True),
    ),
    Wrong(
        "squares of the entries",
        2,
        "your A * A squares the entries of A; wanted the product A @ A",
        dict(square=True),
    ),
    Wrong(
        "A from the first round",
        1,
        "you kept A from the first round; X has changed, so A = X @ X.T belongs into the loop",
        dict(stale=True),
    ),
    Wrong(
        "a A for a X",
        2,
        "your sum lacks a * X itself: the new X is a * X + (b * A + c * A @ A) @ X",
        dict(lacks=True),
    ),
    hints=[
        "X = G / (1.01 * G.norm() + 1e-6); then the loop over rounds.",
        "In the loop: A = X @ X.T, (rows, rows), and X = a * X + (b * A + c * A @ A) @ X.",
    ],
    level="medium",
    minutes=8,
)
def orthogonal(G, rounds, *, scaled=True, entries=False, square=False, stale=False, lacks=False):
    """G (rows, columns) -> the same directions with every singular value brought near 1.

    X = G / (1.01 |G| + 1e-6), with |G| the root of the sum of all squares. Then, for each (a, b, c)
    of rounds, with A = X Xᵀ:  X <- a X + (b A + c A A) X.
    """
    X = G / (1.01 * np.sqrt((G**2).sum()) + 1e-6) if scaled else G
    first = X @ X.T
    for a, b, c in rounds:
        A = first if stale else X @ X.T
        if entries:
            X = a * X + b * X**3 + c * X**5
            continue
        AA = A * A if square else A @ A
        X = (0 if lacks else a * X) + (b * A + c * AA) @ X
    return X


# ---- the schedule --------------------------------------------------------------------------------


def moment(low, high):
    """A step in a stretch of the run, given as shares of it."""

    def make(r):
        steps = 20 * int(r.integers(5, 20))
        step = int(r.integers(int(low * steps) + 1, int(high * steps)))
        return step, steps, steps // 20

    return make


@unit.exercise(
    Part("on the way up", 1, moment(0, 0.05)),
    Part("level", 1, moment(0.06, 0.34)),
    Part("on the way down", 1, moment(0.66, 1)),
    Wrong(
        "falls from 65 % on",
        1,
        "your rate falls over the last 35 % of the run; wanted the LAST 65 %, that is from 35 % on",
        dict(swapped=True),
    ),
    Wrong(
        "ends at zero",
        1,
        "your rate ends at 0; wanted `end` at the last step",
        dict(zero=True),
    ),
    Wrong(
        "begins at zero",
        1,
        "your rate begins at 0; wanted `start` at step 0",
        dict(nothing=True),
    ),
    Wrong(
        "falls at once",
        2,
        "your rate falls right after the warm-up; it stays at 1 until the last 65 % begin",
        dict(at_once=True),
    ),
    hints=[
        "Three stretches: step < warmup, step <= begin with begin = steps - round(falls * steps), "
        "and the rest.",
        "A line from a to b while x goes from 0 to 1 is a + (b - a) * x. Up: x = step / warmup. "
        "Down: x = (step - begin) / (steps - begin).",
    ],
    level="easy",
    minutes=7,
)
def learning_rate(
    step,
    steps,
    warmup,
    falls=0.65,
    start=0.025,
    end=0.05,
    *,
    swapped=False,
    zero=False,
    nothing=False,
    at_once=False,
):
    """The factor on every rate at a step 0, 1, … of a run of `steps` steps -> a number.

    In a line from `start` up to 1 at step `warmup`; level at 1; and over the last share `falls` of
    the run in a line down, so that it would reach `end` at step `steps`.
    """
    share = 1 - falls if swapped else falls
    begin = warmup if at_once else steps - round(share * steps)
    start, end = 0 if nothing else start, 0 if zero else end
    if step < warmup:
        return start + (1 - start) * step / warmup
    if step <= begin:
        return 1.0
    return 1 + (end - 1) * (step - begin) / (steps - begin)
