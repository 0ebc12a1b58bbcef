"""Notebook 02: a GPT from its pieces, its training loop; deeper, the steps that train ours."""

import math

import numpy as np

from homework.in_notebooks import models
from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb02_transformer", "A transformer that trains", "The exercises of notebook 02.")


# ---- the norm, and the MLP -----------------------------------------------------------------------


def vectors(*shape, size=1, offset=0):
    return lambda r: (size * (r.normal(size=shape) + offset),)


@unit.exercise(
    Part("vectors of size 3", 1, vectors(2, 4, 6, size=3)),
    Part("vectors whose entries are not around zero", 1, vectors(5, 8, offset=2)),
    Wrong(
        "divided by the length",
        2,
        "yours have length 1; wanted root mean SQUARE 1, that is a length of sqrt(C)",
        dict(size="length"),
    ),
    Wrong(
        "over all positions",
        2,
        "you took one mean over everything; every vector has its own: mean(-1, keepdim=True)",
        dict(size="whole"),
    ),
    Wrong(
        "over the positions",
        2,
        "your mean runs over the vectors, not over the features of each: mean(-1, keepdim=True)",
        dict(size="positions"),
    ),
    Wrong(
        "mean taken off",
        2,
        "you subtracted the mean first: that is LayerNorm; here the vector keeps its direction",
        dict(centred=True),
    ),
    Wrong(
        "PyTorch's LayerNorm",
        2,
        "that is LayerNorm: it subtracts the mean first; here the vector keeps its direction",
        dict(centred=True, size="with eps"),
    ),
    Wrong(
        "the standard deviation",
        2,
        "you divided by the standard deviation, which is measured from the mean; wanted the root "
        "mean square, measured from zero",
        dict(size="deviation"),
    ),
    Wrong(
        "the standard deviation of a sample",
        2,
        "you divided by .std(), which is measured from the mean; wanted the root mean square, "
        "measured from zero",
        dict(size="sample"),
    ),
    Wrong(
        "the mean size of the entries",
        2,
        "you divided by the mean of |x|; wanted the root of the mean SQUARE",
        dict(size="absolute"),
    ),
    Wrong(
        "the largest entry",
        2,
        "you divided by the largest entry; wanted the root mean square",
        dict(size="largest"),
    ),
    Wrong(
        "the largest entry with its sign",
        2,
        "you divided by the largest entry; wanted the root mean square",
        dict(size="top"),
    ),
    Wrong(
        "the mean",
        2,
        "you divided by the mean, which may be near 0; wanted the root of the mean SQUARE",
        dict(size="mean"),
    ),
    Wrong(
        "without the root",
        2,
        "you divided by the mean square, not by its root",
        dict(size="square"),
    ),
    Wrong(
        "times the size",
        2,
        "you multiplied by the root mean square; divide by it",
        dict(size="turned"),
    ),
    slip(
        1,
        "you took the mean along axis 1, which is not always the last: mean(-1, keepdim=True)",
        lambda x: x / np.sqrt((x**2).mean(1, keepdims=True)),
    ),
    slip(
        2,
        "you took the mean along the first axis; every vector has its own: mean(-1, keepdim=True)",
        lambda x: x / np.sqrt((x**2).mean(0, keepdims=True)),
    ),
    slip(
        2,
        "you subtracted the mean; here the vector keeps its direction, and is divided alone",
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt((x**2).mean(-1, keepdims=True)),
    ),
    hints=[
        "x.square().mean(-1, keepdim=True) has shape (…, 1) and can divide x (…, C) after a root.",
        "x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()",
    ],
    level="easy",
    minutes=4,
)
def norm(x, *, size="root mean square", centred=False):
    """x (…, C) -> (…, C): every vector brought to root mean square 1.

    With eps = torch.finfo(x.dtype).eps beside the mean square, against a division by zero.
    """
    squares = (x**2).mean(-2)
    sizes = dict(
        length=lambda row: np.sqrt((row**2).sum()),
        whole=lambda row: np.sqrt((x**2).mean()),
        deviation=lambda row: row.std(),
        sample=lambda row: row.std(ddof=1),
        absolute=lambda row: abs(row).mean(),
        largest=lambda row: abs(row).max(),
        top=lambda row: row.max(),
        mean=lambda row: row.mean(),
        square=lambda row: (row**2).mean(),
        turned=lambda row: 1 / np.sqrt((row**2).mean()),
    )
    sizes["with eps"] = lambda row: np.sqrt((row**2).mean() + 1e-5)
    out = np.zeros(x.shape)
    for at in np.ndindex(*x.shape[:-1]):
        row = x[at] - x[at].mean() if centred else x[at]
        if size == "positions":
            out[at] = row / np.sqrt(squares[at[:-1]])
            continue
        out[at] = row / sizes.get(size, lambda row: np.sqrt((row**2).mean()))(row)
    return out


def between(says, bend):
    """The mistake of another bend between the two matrices."""
    return slip(2, says, lambda self, h: self.down(bend(self.up(h))))


def a_layer(r):
    return models.Layer(r, 4), r.normal(size=(2, 3, 4))


@unit.exercise(
    Part("a layer of width 4", 2, a_layer),
    Wrong("no square", 2, "you cut off at zero but did not square", dict(bend="relu")),
    Wrong(
        "nothing cut off",
        2,
        "you squared without cutting off first: a square is never below zero, so a cut behind it "
        "does nothing",
        dict(bend="square"),
    ),
    Wrong(
        "squared behind `down`",
        2,
        "your square comes behind `down`; it belongs between the two matrices",
        dict(bend="relu", behind=True),
    ),
    Wrong("nothing between", 2, "between the two matrices nothing bends", dict(bend="")),
    Wrong("halves of a wave", 2, "yours is a gelu; wanted relu, squared", dict(bend="gelu")),
    Wrong("silu", 2, "yours is a silu; wanted relu, squared", dict(bend="silu")),
    Wrong("absolute values", 2, "you turned what is negative round; cut it off", dict(bend="abs")),
    Wrong(
        "the stream added",
        2,
        "you added h; the branch returns what it has to say, and forward adds it",
        dict(added=True),
    ),
    Wrong("wide", 2, "yours is still wide: `down` is missing", dict(narrow=False)),
    between("you took the root; wanted the square", lambda x: np.sqrt(np.maximum(x, 0))),
    between("you kept what is BELOW zero; cut that off", lambda x: np.maximum(-x, 0) ** 2),
    between("you doubled; wanted the square", lambda x: 2 * np.maximum(x, 0)),
    between("you took a sigmoid; wanted relu, squared", lambda x: 1 / (1 + np.exp(-x))),
    between(
        "you squared and kept the sign; cut off what is negative first", lambda x: np.sign(x) * x**2
    ),
    slip(
        2,
        "you normed h; it comes normed, forward does that: self.up(h)",
        lambda self, h: mlp(self, models.normed(h)),
    ),
    slip(
        2,
        "you cut off and squared behind `down` once more; what comes out of `down` is the answer",
        lambda self, h: np.maximum(mlp(self, h), 0) ** 2,
    ),
    slip(
        2,
        "you cut off and squared behind `down`; both belong between the two matrices",
        lambda self, h: np.maximum(self.down(self.up(h)), 0) ** 2,
    ),
    hints=[
        "self.up(h) is (B, T, 4 C), and self.down brings it back to (B, T, C).",
        "self.down(self.up(h).relu().square())",
    ],
    level="easy",
    minutes=3,
)
def mlp(self, h, *, bend="both", behind=False, added=False, narrow=True):
    """What the MLP of a layer adds: widen by self.up, cut off at zero, square, narrow by self.down.
    h (B, T, C) -> (B, T, C)."""
    wide = self.up(h)
    bent = {
        "both": np.maximum(wide, 0) ** 2,
        "relu": np.maximum(wide, 0),
        "square": wide**2,
        "abs": abs(wide) ** 2,
        "gelu": wide * (1 + np.vectorize(math.erf)(wide / math.sqrt(2))) / 2,
        "silu": wide / (1 + np.exp(-wide)),
        "": wide,
    }[bend]
    bent = abs(wide) if bend == "abs" else bent
    if not narrow:
        return bent
    found = self.down(bent)
    found = found**2 if behind else found
    return h + found if added else found


# ---- the way through a GPT -----------------------------------------------------------------------


def a_model(layers):
    return lambda r: (models.GPT(r, layers), r.integers(0, 7, (2, 5)))


@unit.exercise(
    Part("one layer", 1, a_model(1)),
    Part("three layers", 3, a_model(3)),
    Wrong(
        "no norm at the start",
        4,
        "the stream begins as the NORM of the embedding",
        dict(begins="raw"),
    ),
    Wrong(
        "attention without a norm",
        3,
        "your attention reads the stream as it is; it reads h = norm(x)",
        dict(reads="x"),
    ),
    Wrong(
        "values of the stream",
        3,
        "your values are made of x; they are made of h = norm(x), which attention reads, too",
        dict(values_of="x"),
    ),
    Wrong(
        "no norm before the MLP",
        4,
        "your MLP reads the stream as it is; it reads it through a norm of its own",
        dict(mlp_reads="x"),
    ),
    Wrong(
        "the old stream for the MLP",
        4,
        "your MLP reads what attention read; it reads the stream to which attention has added",
        dict(mlp_reads="h"),
    ),
    Wrong(
        "the norm goes into the stream",
        4,
        "your stream itself is normed: you added to the normed vector, or normed the sum "
        "(post-norm, as in 2017). Here only what a branch reads is normed",
        dict(adds="h"),
    ),
    Wrong(
        "the sum of attention normed",
        4,
        "your stream itself is normed behind attention: x = x + layer.attention(h, v), and the "
        "norm only for what the MLP reads",
        dict(adds="and norms"),
    ),
    Wrong(
        "nothing is added",
        4,
        "your branches replace the stream; what they return is added to it",
        dict(adds="nothing"),
    ),
    Wrong(
        "attention replaces",
        4,
        "your attention replaces the stream; what it returns is added to it",
        dict(adds="by the MLP alone"),
    ),
    Wrong(
        "the stream normed for attention",
        3,
        "your stream itself is normed before attention: keep h = norm(x) apart, and add to x",
        dict(adds="h at attention"),
    ),
    Wrong(
        "left after a layer",
        3,
        "you return inside the loop, after the first layer: move `return` out of it",
        dict(layers=1),
    ),
    Wrong(
        "the MLP first",
        4,
        "your MLP comes before attention; attention adds first",
        dict(first="mlp"),
    ),
    Wrong("no MLP", 4, "your layers have no MLP", dict(first="attention alone")),
    Wrong(
        "the layer below",
        3,
        "your v1 is the value of the layer BELOW; it stays that of the first layer",
        dict(v1="below"),
    ),
    Wrong(
        "v1 stays empty",
        3,
        "your v1 stays None; after the first layer it is that layer's values",
        dict(v1="none"),
    ),
    Wrong(
        "the layer's own matrix",
        3,
        "you asked layer.value(h); ask self.value(n, h, v1, ids), the line that the course changes",
        dict(v1="not asked"),
    ),
    Wrong(
        "no attention",
        4,
        "your layers have no attention: what it returns is added to x",
        dict(first="mlp alone"),
    ),
    Wrong(
        "the MLP replaces",
        4,
        "your MLP replaces the stream; what it returns is added to it",
        dict(adds="by attention alone"),
    ),
    Wrong(
        "the MLP added to h",
        4,
        "you added the MLP to h; it is added to the stream x, which attention has grown",
        dict(adds="h at the MLP"),
    ),
    Wrong(
        "the norm behind the MLP",
        4,
        "your norm stands behind the MLP; it stands before it, layer.mlp(norm(x))",
        dict(mlp_reads="normed behind"),
    ),
    Wrong(
        "v1 for all",
        3,
        "attention reads v1 in every layer; it reads v, which self.value makes of h and v1",
        dict(v1="read"),
    ),
    Wrong("no scores", 4, "that is the stream; self.scores(x) is missing", dict(scored=False)),
    Wrong(
        "the first layer for all",
        3,
        "you ran the first layer again and again",
        dict(same=True),
    ),
    hints=[
        "Before the loop: x = norm(self.embed(ids)) and v1 = None. After it: self.scores(x).",
        "In the loop, for n, layer in enumerate(self.layers): h = norm(x), then the values by "
        "self.value(n, h, v1, ids); they are v1 if n is 0.",
        "Then two lines of one form: x = x + layer.attention(h, v), x = x + layer.mlp(norm(x)).",
    ],
    level="medium",
    minutes=12,
)
def forward(
    self,
    ids,
    *,
    begins="normed",
    reads="h",
    values_of="h",
    mlp_reads="norm",
    adds="x",
    first="attention",
    v1="first",
    scored=True,
    same=False,
    layers=None,
):
    """The scores of a GPT for every next token: ids (B, T) -> (B, T, V).

    The stream x begins as the norm of self.embed(ids). For layer n of self.layers: h = norm(x), and
    v = self.value(n, h, v1, ids), where v1 are the values of the first layer (None before there are
    any); layer.attention(h, v) is added to x, then layer.mlp of the norm of x is. At the end
    self.scores(x).
    """
    embedded = self.embed(ids)
    x = embedded if begins == "raw" else models.normed(embedded)
    kept = None
    for n in range(layers or len(self.layers)):
        layer = self.layers[0 if same else n]
        h = models.normed(x)
        asked = x if values_of == "x" else h
        v = layer.value(asked) if v1 == "not asked" else self.value(n, asked, kept, ids)
        if v1 == "below" or n == 0:
            kept = None if v1 == "none" else v
        stream = {"h": h, "h at attention": h, "nothing": 0, "by the MLP alone": 0}.get(adds, x)
        v = kept if v1 == "read" else v
        if first == "mlp":
            x = stream + layer.mlp(h)
            x = x + layer.attention(models.normed(x), v)
            continue
        if first != "mlp alone":
            x = stream + layer.attention(x if reads == "x" else h, v)
        x = models.normed(x) if adds == "and norms" else x
        if first == "attention alone":
            continue
        second = models.normed(x)
        read = {"h": h, "norm": second}.get(mlp_reads, x)
        added = layer.mlp(read)
        added = models.normed(added) if mlp_reads == "normed behind" else added
        none = {"nothing": 0, "by attention alone": 0, "h": second, "h at the MLP": h}
        x = none.get(adds, x) + added
    return self.scores(x) if scored else x


# ---- the loop ------------------------------------------------------------------------------------


def to_train(many):
    """A model of two weights, its optimizer, and batches of eight examples."""

    def make(r):
        model = models.Line(r.normal(size=2))
        optimizer = models.Descent(model.parameters(), lr=0.05 + 0.1 * r.random())
        pairs = [normals(r, (8, 2), (8,)) for _ in range(many)]
        return model, optimizer, models.Batches(pairs, model)

    return make


@unit.exercise(
    Part("two batches", 1, to_train(2)),
    Part("five batches", 3, to_train(5)),
    Wrong(
        "never cleared",
        3,
        "your gradients pile up: backward ADDS to what is there, so clear it once for every batch, "
        "with optimizer.zero_grad()",
        dict(clear="never"),
    ),
    Wrong(
        "never moves",
        4,
        "your losses are those of a model that never moves: is backward or step missing, or are "
        "the gradients cleared between the two?",
        dict(moves=False),
    ),
    Wrong(
        "a batch late",
        4,
        "your step uses the gradient of the batch before: backward comes first, then step",
        dict(late=True),
    ),
    Wrong(
        "the loss after the step",
        4,
        "you measured every loss after the step; wanted the loss from which the step was made",
        dict(after=True),
    ),
    Wrong(
        "the last loss alone",
        4,
        "that is the last loss; wanted the list of all",
        dict(returns="last"),
    ),
    Wrong("their mean", 4, "that is the mean; wanted the list of all", dict(returns="mean")),
    Wrong("their sum", 4, "that is the sum; wanted the list of all", dict(returns="sum")),
    Wrong(
        "sums so far",
        4,
        "your list holds sums of all losses so far; wanted the loss of every batch",
        dict(returns="so far"),
    ),
    Wrong(
        "the first batch for all",
        4,
        "you read the first batch again and again",
        dict(same=True),
    ),
    Wrong(
        "two steps a batch",
        4,
        "you step twice for every batch; once is wanted",
        dict(twice=True),
    ),
    Wrong(
        "last batch first",
        4,
        "you read the batches from the last to the first; their order is that of the list",
        dict(back=True),
    ),
    Wrong(
        "divided by the batches",
        4,
        "you divided the loss by the number of batches before backward: every batch has a step of "
        "its own, from its whole loss",
        dict(divided=True),
    ),
    slip(
        4,
        "your list has one entry: append inside the loop, for every batch",
        lambda *given: training(*given)[-1:],
    ),
    slip(
        4,
        "your list ends after the first batch: `return` stands inside the loop",
        lambda *given: training(*given)[:1],
    ),
    slip(
        4,
        "your list lacks the first loss, that of the model before any step",
        lambda *given: training(*given)[1:],
    ),
    hints=[
        "for ids, targets in batches: four things happen in it, and a number is kept.",
        "loss = model.loss(ids, targets); optimizer.zero_grad(); loss.backward(); "
        "optimizer.step(). Keep loss.item(), a number without its history.",
    ],
    level="medium",
    minutes=8,
)
def training(
    model,
    optimizer,
    batches,
    *,
    clear="each",
    moves=True,
    late=False,
    after=False,
    returns="all",
    same=False,
    twice=False,
    back=False,
    divided=False,
):
    """Train a model: a step of the optimizer for every (ids, targets) of batches, in their order.

    -> the list of losses, a number for every batch, each as it was before its step.
    """
    w, before, losses = model.start.copy(), np.zeros(2), []
    rate = optimizer.defaults["lr"]
    for x, y in batches.pairs[::-1] if back else batches.pairs:
        x, y = batches.pairs[0] if same else (x, y)
        loss, new = loss_and_slope(w, x, y)
        slope = before if late else before + new if clear == "never" else new
        slope = slope / len(batches.pairs) if divided else slope
        w = w - rate * slope * (2 if twice else 1) * moves
        before = new if late else slope
        losses.append(loss_and_slope(w, x, y)[0] if after else loss)
    if returns in ("last", "mean", "sum"):
        return dict(last=losses[-1], mean=np.mean(losses), sum=sum(losses))[returns]
    return np.cumsum(losses) if returns == "so far" else np.array(losses)


def loss_and_slope(w, x, y):
    off = x @ w - y
    return (off**2).mean(), 2 * x.T @ off / len(y)


# ---- from a gradient to a step -------------------------------------------------------------------


def mean_of(p, g, m, s, step, rule):
    """A step with another running mean."""
    return adamw_step(p, g, m, s, step, mean_of=rule)


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
    Wrong(
        "the other correction only",
        2,
        "you corrected the mean of the squares but not that of the gradients",
        dict(corrected=(False, True)),
    ),
    Wrong(
        "decay after the step",
        2,
        "your decay comes after the step, so it shrinks the step, too; it shrinks the old p alone",
        dict(pull="after"),
    ),
    Wrong(
        "decay twice",
        2,
        "your decay stands in the gradient as well; it stands beside the step alone",
        dict(inside="both"),
    ),
    Wrong("steps from 2", 2, "your correction is a step ahead: 1 - beta ** step", dict(late=-1)),
    Wrong("no rate", 2, "your step lacks lr", dict(sign=100)),
    Wrong(
        "the gradient itself",
        1,
        "you step along the gradient g; the step goes along the corrected mean",
        dict(along="g"),
    ),
    slip(
        2,
        "your betas are in each other's place: the first is that of the gradients",
        lambda *given: adamw_step(*given, betas=(0.95, 0.8)),
    ),
    slip(
        2,
        "beta is the share of what was BEFORE: m = b1 * m + (1 - b1) * g",
        lambda *given: mean_of(*given, lambda m, g: 0.2 * m + 0.8 * g),
    ),
    slip(
        2,
        "beta is the share of what was BEFORE, in both means: m = b1 * m + (1 - b1) * g",
        lambda *given: adamw_step(*given, new_share=(0.8, 0.95)),
    ),
    slip(
        2,
        "your s is a mean of gradients; wanted that of their squares: (1 - b2) * g * g",
        lambda *given: adamw_step(*given, power=1),
    ),
    slip(
        2,
        "your gradient enters in full; its share is 1 - b1, so that m stays a mean",
        lambda *given: mean_of(*given, lambda m, g: 0.8 * m + g),
    ),
    slip(
        1,
        "your correction is a step behind from the second step on: 1 - beta ** step",
        lambda p, g, m, s, step: adamw_step(p, g, m, s, step, late=1 if step > 1 else 0),
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
    along="mean",
    mean_of=None,
    new_share=None,
    power=2,
):
    """Step 1, 2, … of one tensor p of any shape, with gradient g -> new p, m and s.

    m is the running mean of the gradients and s that of their squares, of g's shape; both start at
    zero. betas are their shares of what was before.
    """
    new_p, new_m, new_s = np.zeros(p.shape), np.zeros(p.shape), np.zeros(p.shape)
    count = step - late
    new = new_share or (1 - betas[0], 1 - betas[1])
    for at in np.ndindex(*p.shape):
        slope = g[at] + decay * p[at] if inside else g[at]
        mean = (1 - new[0]) * m[at] + new[0] * slope
        mean = mean_of(m[at], g[at]) if mean_of else mean
        square = (1 - new[1]) * s[at] + new[1] * slope**power
        fair = mean / (1 - betas[0] ** count) if corrected[0] else mean
        fair_square = square / (1 - betas[1] ** count) if corrected[1] else square
        factor = {"rate": 1 - lr * decay, "whole": 1 - decay}.get(pull, 1)
        pulled = p[at] if inside is True else p[at] * factor
        divisor = np.sqrt(fair_square) if root else fair_square
        new_p[at] = pulled - sign * lr * (slope if along == "g" else fair) / (divisor + eps)
        new_p[at] *= 1 - lr * decay if pull == "after" else 1
        new_m[at], new_s[at] = (fair, fair_square) if kept else (mean, square)
    return new_p, new_m, new_s


FIVE = (
    (8.15655, -22.48329, 15.87877),
    (4.04293, -2.80892, 0.500018),
    (3.89167, -2.77248, 0.506065),
    (3.28575, -2.36813, 0.464490),
    (2.34654, -1.70978, 0.423236),
)


def divided_by(says, size):
    """The mistake of another size at the start."""
    return slip(2, says, lambda G, rounds: orthogonal(G / (size(G) + 1e-6), rounds, scaled=False))


def other_rounds(says, change):
    """The mistake of another (a, b, c) in every round."""
    return slip(2, says, lambda G, rounds: orthogonal(G, [change(*round) for round in rounds]))


def exactly_orthogonal(G, rounds):
    U, _, Wt = np.linalg.svd(G, full_matrices=False)
    return U @ Wt


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
    divided_by("you left out the 1.01 in front of the norm", lambda G: np.linalg.norm(G)),
    divided_by("the norm is the ROOT of the sum of squares", lambda G: 1.01 * (G**2).sum()),
    divided_by("you summed absolute values; the norm sums squares", lambda G: 1.01 * abs(G).sum()),
    divided_by(
        "you divided every row by its own norm; one norm of the whole matrix is wanted",
        lambda G: 1.01 * np.linalg.norm(G, axis=-1, keepdims=True),
    ),
    divided_by(
        "you divided every row by its own norm, without the 1.01; one norm of the whole matrix is "
        "wanted, 1.01 times",
        lambda G: np.linalg.norm(G, axis=-1, keepdims=True),
    ),
    divided_by(
        "you divided by the largest singular value; wanted the root of the sum of all squares",
        lambda G: 1.01 * np.linalg.norm(G, 2),
    ),
    other_rounds("c stands on A @ A, not on A", lambda a, b, c: (a, b + c, 0)),
    other_rounds("A @ A has the factor c, not b", lambda a, b, c: (a, b, b)),
    other_rounds("a and b are in each other's place", lambda a, b, c: (b, a, c)),
    other_rounds("a and c are in each other's place", lambda a, b, c: (c, b, a)),
    other_rounds("c * A @ A is added, not subtracted", lambda a, b, c: (a, b, -c)),
    slip(
        1,
        "you made one round of five: the loop goes over all of them, and `return` stands behind it",
        lambda G, rounds: orthogonal(G, rounds[:1]),
    ),
    slip(
        1,
        "every round of yours begins at the first X: give its result to the next, X = a * X + …",
        lambda G, rounds: orthogonal(G, rounds[-1:]),
    ),
    slip(
        2,
        "that is U Wᵀ itself, every singular value exactly 1; wanted the rounds that come near it",
        exactly_orthogonal,
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


def rising(says, rate):
    """The mistake of another way up, by the share x of it."""
    return slip(
        1,
        says,
        lambda step, steps, warmup: (
            rate(step / warmup) if step < warmup else learning_rate(step, steps, warmup)
        ),
    )


def falling(says, rate):
    """The mistake of another way down, by the share of it that is left."""
    return slip(
        1,
        says,
        lambda step, steps, warmup: (
            rate((steps - step) / (0.65 * steps))
            if step > 0.35 * steps
            else learning_rate(step, steps, warmup)
        ),
    )


def between_steps(says, ends):
    """The mistake of a line down from 1 to 0.05 between two other steps."""

    def mistaken(step, steps, warmup):
        begin, end = ends(steps, warmup)
        if step <= 0.35 * steps:
            return learning_rate(step, steps, warmup)
        return 1 - 0.95 * (step - begin) / (end - begin)

    return slip(1, says, mistaken)


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
    rising(
        "your rate rises above 1: a line from start to 1 is start + (1 - start) * x",
        lambda x: 0.025 + x,
    ),
    rising("your rate falls on the way up; it goes from start up to 1", lambda x: 0.025 * (1 - x)),
    rising("your rate has no warm-up; it begins at `start`", lambda x: 1.0),
    rising("your rate stays at `start`; it rises in a line to 1 at step warmup", lambda x: 0.025),
    slip(
        1,
        "your warm-up is a step ahead: step 0 has the rate `start`",
        lambda step, steps, warmup: learning_rate(step + (step < warmup), steps, warmup),
    ),
    slip(
        1,
        "your way down is a step ahead: it would reach `end` at step `steps`, not before",
        lambda step, steps, warmup: learning_rate(step + (step > 0.35 * steps), steps, warmup),
    ),
    between_steps(
        "your way down reaches `end` a step too early: it would reach it at step `steps`",
        lambda steps, warmup: (0.35 * steps, steps - 1),
    ),
    between_steps(
        "your line down goes by step / steps; it begins at 1 where the last 65 % begin",
        lambda steps, warmup: (0, steps),
    ),
    between_steps(
        "your 65 % are those of the steps behind the warm-up; they are 65 % of all steps",
        lambda steps, warmup: (warmup + round(0.35 * (steps - warmup)), steps),
    ),
    falling(
        "your way down is divided by all steps; divide by its own, steps - begin",
        lambda left: 1 - 0.95 * 0.65 * (1 - left),
    ),
    falling("your rate jumps: on the way down it goes from 1 to `end`", lambda left: 0.05 * left),
    falling("your rate RISES on the way down; left goes from 1 to 0", lambda left: 1 - left),
    falling("your rate RISES on the way down; left goes from 1 to 0", lambda left: 1 - 0.95 * left),
    falling("your rate is at `end` at once; it goes down in a line", lambda left: 0.05),
    falling("your rate never falls; it does so over the last 65 %", lambda left: 1.0),
    falling("your rate falls by powers; a line is wanted", lambda left: 0.05 ** (1 - left)),
    falling(
        "your rate falls along a cosine; a line is wanted",
        lambda left: 0.05 + 0.95 * (1 + math.cos(math.pi * (1 - left))) / 2,
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


# ---- an arrow is moved ---------------------------------------------------------------------------


def at_layer(n):
    """A model of three layers, asked for the values of one; the first has no v1 yet."""

    def make(r):
        h, v1 = normals(r, (2, 5, 4), (2, 5, 4))
        ids = r.integers(0, 7, (2, 5))
        return models.Unwritten(r, 3), n, h, v1 if n else None, ids

    return make


def deeper(says, mixed, loses=2):
    """The mistake of another mixture of own and v1 in a deeper layer."""

    def mistaken(self, n, h, v1, ids):
        own = self.layers[n].value(h)
        return mixed(own, v1) if n else own

    return slip(loses, says, mistaken)


def instead(says, made, loses=2):
    """The mistake of another thing in place of the layer's own values."""

    def mistaken(self, n, h, v1, ids):
        return (made(self, n, h, ids) + v1) / 2 if n else value(self, n, h, v1, ids)

    return slip(loses, says, mistaken)


@unit.exercise(
    Part("the first layer", 1, at_layer(0)),
    Part("a deeper layer", 2, [at_layer(1), at_layer(2), at_layer(1)]),
    deeper(
        "those are the first layer's values alone; half of them, half of its own", lambda v, w: w
    ),
    deeper("those are the layer's own values alone; half of v1 is missing", lambda v, w: v),
    deeper("you added the two; take half of each", lambda v, w: v + w),
    deeper("only v1 is halved in yours: (v + v1) / 2, with brackets", lambda v, w: v + w / 2),
    deeper("only the layer's own is halved in yours; v1 is halved, too", lambda v, w: v / 2 + w),
    deeper("half of both is missing something: that is half of its own alone", lambda v, w: v / 2),
    deeper("that is half of v1 alone; the layer's own half is missing", lambda v, w: w / 2),
    deeper("you took v1 away; it is added", lambda v, w: (v - w) / 2),
    deeper("you multiplied the two; add a half of each", lambda v, w: v * w),
    deeper("you multiplied the two; add a half of each", lambda v, w: v * w / 2),
    deeper("a quarter of each is too little: half of each", lambda v, w: (v + w) / 4),
    deeper(
        "you put the two side by side; add them, feature by feature",
        lambda v, w: np.concatenate([v, w], -1),
    ),
    deeper(
        "you put the two side by side; add them, feature by feature",
        lambda v, w: np.concatenate([v, w], -1) / 2,
    ),
    deeper("that is a number for each token; a value has C of them", lambda v, w: (v + w).mean(-1)),
    deeper(
        "your v1 comes one token late; each position has its own", lambda v, w: v + np.roll(w, 1, 1)
    ),
    instead(
        "you mixed in the stream h; the layer's own values are layers[n].value(h)",
        lambda s, n, h, i: h,
    ),
    instead(
        "every layer has a matrix of its own: self.layers[n], not self.layers[0]",
        lambda self, n, h, ids: self.layers[0].value(h),
    ),
    instead(
        "that is the matrix of the layer below: self.layers[n]",
        lambda self, n, h, ids: self.layers[n - 1].value(h),
    ),
    instead(
        "you mixed in the embedding; the other half is the layer's own, self.layers[n].value(h)",
        lambda self, n, h, ids: self.embed(ids),
    ),
    slip(
        2,
        "you mixed before the matrix; v1 has been through the first layer's already",
        lambda self, n, h, v1, ids: self.layers[n].value((h + v1) / 2 if n else h),
    ),
    slip(
        2,
        "you mixed before the matrix; v1 has been through the first layer's already",
        lambda self, n, h, v1, ids: self.layers[n].value(h + v1 if n else h),
    ),
    slip(
        1,
        "your first layer has half of its own values; it keeps them whole",
        lambda self, n, h, v1, ids: (self.layers[n].value(h) + (v1 if n else 0)) / 2,
    ),
    slip(
        2,
        "your second layer keeps its own values; only the first does, n = 0",
        lambda self, n, h, v1, ids: (
            self.layers[n].value(h) if n <= 1 else value(self, n, h, v1, ids)
        ),
    ),
    hints=[
        "v = self.layers[n].value(h) is what the layer makes itself.",
        "return v if n == 0 else (v + v1) / 2",
    ],
    level="easy",
    minutes=3,
)
def value(self, n, h, v1, ids):
    """The values of layer n: half its own, self.layers[n].value(h), half the first layer's, v1. The
    first layer (n = 0, and v1 is None) keeps its own. h and v1 (B, T, C), ids (B, T) -> (B, T, C).
    """
    own = self.layers[n].value(h)
    return (own + v1) / 2 if n else own
