"""hw04: what do scalars that mix two streams tell us, and what do they not?"""

import math

import numpy as np

from homework.by_index import normed
from homework.marking import Part, Unit, always, drawn, guesses, need, normals, per_cent, refuse

unit = Unit(
    "hw04_value_embeddings",
    "What do the lambdas say?",
    """Letters: B batch, T positions, H heads, D head width, C model width, V vocabulary, L layers
    (numbered from 0). A value embedding ve is read from a table by token id.""",
)


def size(x):
    return np.linalg.norm(x, axis=-1)


def gaps(r):
    """A model with a layer without attention at each end and one between."""
    layers, tables = int(r.integers(13, 30)), int(r.integers(2, 5))
    early, late = int(r.integers(tables)), layers - 1 - int(r.integers(tables))
    return layers, tables, [early, layers // 2, late]


@unit.exercise(
    Part("sixteen layers, three tables", 4, [always(16, 3, x) for x in ([7, 14], [1], [0, 7, 15])]),
    Part("other depths", 4, gaps),
)
def table_of(layers, tables, without):
    """Which value table does each layer read? A list of `layers` numbers, -1 for none.

    The layers in `without` have no attention, so no values to add a table to. Of the others, the
    first `tables` read 0, 1, 2, …, and the last `tables` read them again in the same order
    (modded-nanogpt, medium track: 16 layers, 3 tables, no attention in layer 7).
    """
    able = [n for n in range(layers) if n not in without]
    reads = [-1] * layers
    for t in range(tables):
        reads[able[t]] = t
        reads[able[t - tables]] = t
    return reads


unit.mistakes("""
takes: easy, 8 minutes
hint: List the layers with attention, in order. Which read at the lower end, and which at the upper?
hint: With `able` as that list: able[t] and able[t - tables] read table t.
after: The last layers read the same tables in the same order, 0 with 13, 1 with 14, 2 with 15, so
    | three tables serve six layers and each learns from two places. A value needs attention to
    | carry it, so the gap of layer 7 costs nothing where it lies, and would move the rule at either
    | end. In the package: minimal/model/pieces.py: modded_value, scaled to other depths.
8 | those are notebook 06's layers, counted among all; neither end counts one without attention
    if n not in without =>
8 | a layer without attention passes its table on to the next one inwards; yours is lost
    if n not in without =>
    and: return reads => return [-1 if n in without else t for n, t in enumerate(reads)]
8 | you mirrored the second half; the order stays: of 16 layers, 0 with 13, 1 with 14, 2 with 15
    able[t - tables] => able[-1 - t]
8 | the last layers read the tables too
    reads[able[t - tables]] = t =>
8 | the last layers share the first layers' tables; yours have new ones
    [t - tables]] = t => [t - tables]] = tables + t
8 | the FIRST layers with attention read tables, too
    reads[able[t]] = t =>
8 | -1 stands where no table is read; 0 is the first table
    [-1] * layers => [0] * layers
8 | tables are counted from 0
    [t]] = t => [t]] = t + 1
    and: [t - tables]] = t => [t - tables]] = t + 1
8 | your list lacks the layers without attention; they read -1
    return reads => return [reads[n] for n in able]
8 | the layers between read none; you went round again and again
    => np.arange(layers) % tables
8 | you read a table too few
    range(tables) => range(tables - 1)
""")


@drawn
def value(r, shared):
    """Six heads of v, and a table with `shared` heads, or none. The mean square of v is about 100:
    next to it an epsilon of 1e-5 is nothing, one of 1e-2 is not."""
    v, ve = normals(r, (2, 4, 6, 5), (2, 4, 5 * max(shared, 1)))
    v = normed(v) * (8 + 4 * r.random((2, 4, 6, 1)))
    return v, 2 * ve if shared else None, 1.7, -0.6


@unit.exercise(
    Part("with a table", 6, [value(3), value(2), value(6)]),
    Part("a layer without one", 4, value(0)),
)
def mixed_value(v, ve, s0, s1):
    """The value of a modded-nanogpt layer whose table is smaller, s0 * rmsnorm(v) + s1 * ve: v
    (B,T,H,D), ve (B,T,G*D) or None -> (B,T,H,D).

    The table's rows have G heads, and H // G neighbouring heads of v share one. The norm is taken
    in each head by itself, over D, without weights or epsilon (one of at most 1e-5 does no harm
    here).
    """
    H, D = v.shape[2:]
    out = s0 * normed(v)
    if ve is not None:
        heads = ve.reshape(*v.shape[:2], -1, D)
        G = heads.shape[2]
        for h in range(H):
            out[:, :, h] += s1 * heads[:, :, h * G // H]
    return out


unit.mistakes("""
takes: medium, 15 minutes
hint: v / sqrt(mean of v² over the last dimension), before anything else.
hint: ve comes flat, (B,T,G*D): unflatten it into heads of width D first. How many are there, and
    | which of them does head h of v read?
hint: Without a table (ve is None) only the first term is left.
after: v has a root mean square of 1 in every head when it is mixed; ve has whatever size its rows
    | have grown to, and a table with fewer heads is as much smaller as a cache of fewer heads would
    | be. So s1 alone does not say how much arrives: a table twice as large with half of s1 gives
    | the same value. In the package minimal/model/values.py: Mix joins the two, and the norm of v
    | is in minimal/model/values.py: Own.through.
 6 | your heads take the table's heads by turns (0, 1, 2, 0, 1, 2); neighbours share one (0, 0, 1,
   | 1, 2, 2)
     h * G // H => h % G
10 | v is RMS-normalised in every head before it is mixed (the blog's formula leaves that out)
     normed(v) => v
10 | you normalised all heads together; each head has its own root mean square
     normed(v) => normed(v.reshape(*v.shape[:2], -1)).reshape(v.shape)
 6 | the value embedding is not normalised; only v is
     s1 * heads => s1 * normed(heads)
10 | s0 belongs to v and s1 to the value embedding
     s0 * normed => s1 * normed
     and: s1 * heads => s0 * heads
10 | yours have length 1 before they are mixed; wanted root mean SQUARE 1
     normed(v) => normed(v) / D**0.5
 6 | s0 stands on the value and s1 on the table's row; you exchanged them
     s0 * normed => (s0 if ve is None else s1) * normed
     and: s1 * heads => s0 * heads
 6 | s0 is missing: it multiplies the normed value
     s0 * normed => (s0 if ve is None else 1) * normed
 6 | the table's row is ADDED; the value stays
     s0 * normed => (s0 if ve is None else 0) * normed
""")


@drawn
def streams(r, mixing, skipping):
    L = 7
    lambdas = r.normal(size=(L, 2)) + [1, 0] if mixing else np.tile([1.0, 0.0], (L, 1))
    skips = [[0, 6], [2, 5], [2, 6]] if skipping else []
    x, w, gains = normals(r, (2, 3, 5), (L, 5, 5), len(skips))
    return x, 0.5 * w, lambdas, skips, gains + 1


@unit.exercise(
    Part("x0 alone", 4, streams(True, False)),
    Part("skips alone", 4, streams(False, True)),
    Part("both", 8, streams(True, True)),
)
def unet(x0, w, lambdas, skips, weights):
    """The residual stream of modded-nanogpt (medium) around L toy blocks, block_i(x) = x + tanh(x @
    w[i]): x0 (B,T,C), w (L,C,C) -> (B,T,C).

    At layer i, in this order: add weights[n] times the output of layer a for every skips[n] = [a,
    i]; then x = lambdas[i, 0] x + lambdas[i, 1] x0; then the block. The stream starts as x0.
    """
    found = np.zeros(x0.shape)
    for b, t in np.ndindex(x0.shape[:2]):
        x, out = x0[b, t], []
        for i in range(len(w)):
            for (source, end), weight in zip(skips, weights, strict=True):
                if end == i:
                    x = x + weight * out[source]
            x = lambdas[i, 0] * x + lambdas[i, 1] * x0[b, t]
            x = x + np.tanh(x @ w[i])
            out.append(x)
        found[b, t] = x
    return found


unit.mistakes(r"""
takes: medium, 17 minutes
hint: Keep a list out = []; after each block out.append(x).
hint: Layer i: (1) for every skip that ends here, x = x + weight * out[source]; (2) x = l[i,0] x +
    | l[i,1] x0; (3) the block.
hint: With lambdas (1, 0) and no skips it must be the plain stack.
after: The skip is added first, so the first lambda scales it together with the stream. In the
    | package the order is that of minimal/model/pieces.py: MODDED_PIECES,
    | minimal/model/residual.py: UNet before minimal/model/residual.py: Lambdas. README's question:
    | saved above its block, a skip carries what goes into the source layer, so that layer is
    | skipped as well; all shapes fit, and nothing fails.
 8 | the skip comes first: it is added, and the sum is mixed with x0
     for (source => x = lambdas[i, 0] * x + lambdas[i, 1] * x0[b, t]\n        for (source
     and: x = lambdas[i, 0] * x + lambdas[i, 1] * x0[b, t] =>
12 | a skip carries what its source layer puts OUT; you carried what went in
     x = x + np => out.append(x)\n        x = x + np
     and: out.append(x) =>
16 | the first lambda belongs to the stream x, the second to x0
     lambdas[i, 0] * x + lambdas[i, 1] => lambdas[i, 1] * x + lambdas[i, 0]
12 | a skip is added, x + w · earlier; you took a weighted mean of the two
     x + weight * out[source] => (x + weight * out[source]) / (1 + weight)
12 | a skip is ADDED to the stream
     x + weight => weight
12 | a skip comes from the layer that it names, not from the one below
     out[source] => out[-1]
12 | lambdas[i, 0] scales the stream; it is missing in yours
     lambdas[i, 0] * x => x
16 | a block adds to the stream: x + tanh(x @ w[i])
     x + np.tanh => np.tanh
12 | the lambdas come BEFORE the block
     x = lambdas => x = x + np.tanh(x @ w[i])\n        x = lambdas
     and: x = x + np.tanh(x @ w[i]) =>
16 | x0 has a lambda of its own, lambdas[i, 1]
     lambdas[i, 1] => lambdas[i, 0]
12 | x0 is mixed in in every layer, not the output of the layer below
     * x0[b, t] => * (out[-1] if out else x)
""")


def gating(size):
    return lambda r: (*normals(r, *[(2, 4, 3, 5)] * 2, (2, 4, 20)), size * r.normal(size=(3, 12)))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@unit.exercise(
    Part("a gate that has learned nothing", 4, gating(0)), Part("any gate", 6, gating(1))
)
def gated_value(v, ve, x, w):
    """nanochat's value: v + 3 sigmoid(w · first 12 entries of x) ve, a gate a token and head. v, ve
    (B,T,H,D), x (B,T,C), w (H,12).
    """
    out = v.copy()
    for h in range(v.shape[2]):
        gate = 3 * sigmoid(x[..., :12] @ w[h])
        out[:, :, h] += gate[..., None] * ve[:, :, h]
    return out


unit.mistakes("""
takes: easy, 5 minutes
hint: x[..., :12] @ w.T is (B,T,H): one number a token and head.
hint: Give it a last dimension before it meets ve.
after: The sigmoid of 0 is one half, so a gate that has learned nothing is 1.5, and the table is
    | heard from the first step. A lambda is one number for all tokens; this is one a token and
    | head, read from twelve entries of the stream. In the package: minimal/model/values.py: Gate.
10 | the gate is 3 · sigmoid: 1.5 when its weights are zero
     3 * sigmoid => 2 * sigmoid
 6 | the gate looks at the FIRST twelve entries of x
     :12 => -12:
10 | v is added as it is; the gate scales the value embedding only
     out[:, :, h] += gate[..., None] * ve => out[:, :, h] = gate[..., None] * (v + ve)
 6 | every head has its own gate
     w[h] => w[0]
10 | the 3 is missing: a gate goes up to 3
     3 * sigmoid => sigmoid
10 | the 3 stands before the sigmoid, not inside
     3 * sigmoid( => sigmoid(3 *
10 | the gate is a sigmoid, not a tanh
     sigmoid => np.tanh
10 | the gate belongs to ve; you gated v
     v.copy() => ve.copy()
     and: ve[:, :, h] => v[:, :, h]
10 | v comes whole: nothing is taken away from it
     3 * sigmoid => sigmoid
     and: ve[:, :, h] => (ve - v)[:, :, h]
10 | heads do not compete: a sigmoid for each, no softmax over them
     sigmoid(x[..., :12] @ w[h]) => np.exp(x[..., :12] @ w[h]) / np.exp(x[..., :12] @ w.T).sum(-1)
 6 | every head has a gate of its own; yours share their mean
     w[h] => w.mean(0)
10 | the sigmoid is missing
     sigmoid( => (
 6 | every token has a gate of its own; all of yours are those of the first
     x[..., :12] => x[:, :1, :12]
 6 | the entries of x come as they are, not brought to length 1
     x[..., :12] => x[..., :12] / np.linalg.norm(x[..., :12], axis=-1, keepdims=True)
""")


@drawn
def sized(r, unit_size):
    ve = r.normal(size=(2, 4, 3, 5)) * np.exp(2 * r.normal(size=(2, 4, 3, 1)))
    v = 400 * r.normal(size=ve.shape)
    return v, normed(ve) if unit_size else ve, 5 + r.random(), -1 - r.random()


@unit.exercise(
    Part("embeddings of size one", 4, sized(True)), Part("embeddings of any size", 6, sized(False))
)
def contribution(v, ve, s0, s1):
    """How large is the value embedding's share? Two numbers between 0 and 1, for v and ve
    (B,T,H,D), mixed as in `mixed_value`:

    (1) by the lambdas, |s1| / (|s0| + |s1|), as the blog plots it; (2) by the vectors, the mean
    over tokens and heads of ‖s1 ve‖ / (‖s0 rmsnorm(v)‖ + ‖s1 ve‖).
    """
    a, b = abs(s0), abs(s1)
    own = a * size(normed(v))
    other = b * size(ve)
    return b / (a + b), (other / (own + other)).mean()


unit.mistakes("""
takes: medium, 10 minutes
hint: The first number needs the two lambdas and nothing else.
hint: For every token and head: length of s1 ve over (length of s0 rmsnorm(v) + length of s1 ve);
    | then the mean.
after: In the first part ve has a root mean square of one, like the normalised v, so both vectors
    | are equally long, the lengths cancel and only the lambdas are left. Otherwise the ratio of the
    | lambdas is no share of anything. notebooks/evidence/lab/studies.py: layer_shares
    | therefore measures sizes of what arrives, on text, and not coefficients.
 6 | your second number is the first again; it looks at the vectors, for ve is not normalised
     (other / (own + other)).mean() => b / (a + b)
10 | take absolute values: a negative lambda contributes as well
     abs(s0), abs(s1) => s0, s1
10 | v is normalised before its lambda meets it, so its own size does not count
     normed(v) => v
10 | you compared the vectors without s0 and s1; wanted what is added
     own = a * => own =
     and: other = b * => other =
10 | wanted the sum of the two lengths below: you took the length of the sum, or the root of the sum
   | of squares
     (own + other) => size(s0 * normed(v) + s1 * ve)
     (own + other) => np.hypot(own, other)
10 | your lengths are squares; take their roots first
     other / (own + other) => other**2 / (own**2 + other**2)
10 | that is a share for each token and head; wanted their mean
     .mean() =>
""")


def gradients(same):
    def maker(eps):
        def make(r):
            g = r.normal(size=(12, 2)) + 0.3
            return np.array([1.0, 0.0]), g[:, [0, 0]] if same else g, 0.015, 0.8, 0.95, eps

        return make

    return [maker(1e-10), maker(0.1), maker(1e-10)]


@unit.exercise(
    Part("layer 0: both see the same gradient", 6, gradients(True)),
    Part("another layer", 6, gradients(False)),
)
def adam_pair(start, gradients, lr, beta1, beta2, eps):
    """The two mixing lambdas of a layer, trained by Adam: start (2,), gradients (N,2) -> their
    values after each step, (N,2). A step is lr times the mean of gradients over (the root of the
    mean of their squares + eps), both corrected.
    """
    p, m, s, values = start, np.zeros(2), np.zeros(2), []
    for n, g in enumerate(gradients, 1):
        m = beta1 * m + (1 - beta1) * g
        s = beta2 * s + (1 - beta2) * g**2
        up, down = m / (1 - beta1**n), s / (1 - beta2**n)
        p = p - lr * up / (np.sqrt(down) + eps)
        values.append(p)
    return np.stack(values)


unit.mistakes(r"""
takes: medium, 14 minutes
hint: m = beta1 m + (1 - beta1) g; s = beta2 s + (1 - beta2) g²; step n from 1: m / (1 - beta1 **
    | n), s / (1 - beta2 ** n).
hint: p = p - lr * m' / (sqrt(s') + eps). Stack p after every step.
hint: In the first part, watch p[0] - p[1]: what stays the same, and why?
after: A step of Adam depends on the gradients alone: two scalars that see the same gradient take
    | the same steps, and their difference stays what it was, 1. As both grow their ratio nears 1,
    | which looks like agreement and is a division. The pair is minimal/model/residual.py: Lambdas;
    | torch.optim.Adam gives the same numbers, as one solution shows.
12 | your averages start at 0 and are not corrected: divide by 1 - beta ** step
     m / (1 - beta1**n), s / (1 - beta2**n) => m, s
12 | beta1 belongs to the mean of gradients, beta2 to the mean of their squares
     p, m, s => beta1, beta2 = beta2, beta1\np, m, s
12 | eps is added to the root, not under it
     np.sqrt(down) + eps => np.sqrt(down + eps)
12 | that is lr times the gradient; Adam divides by the root of the mean square
     up / (np.sqrt(down) + eps) => g
 6 | each scalar has its own mean square
     g**2 => (g**2).mean()
12 | both means are corrected: each is divided by 1 - its beta to the power of the step
     m / (1 - beta1**n) => m
     s / (1 - beta2**n) => s
12 | the first step is number 1; your corrections start at 2
     enumerate(gradients, 1) => enumerate(gradients, 2)
12 | a root is missing: the mean of SQUARES stands below as its root
     np.sqrt(down) => down
12 | a step goes AGAINST the gradient: minus
     p - lr => p + lr
12 | beta1 keeps the old mean, 1 - beta1 takes the new gradient; you exchanged them
     beta1 * m + (1 - beta1) * g => (1 - beta1) * m + beta1 * g
12 | square the gradients before they are averaged
     g**2 => g
12 | a mean takes (1 - beta1) of the new gradient, not all of it
     (1 - beta1) * g => g
12 | wanted the values after EVERY step, (N,2); yours are the last
     np.stack(values) => values[-1]
12 | square the gradient, not its running mean
     g**2 => m**2
12 | a step goes on from where the last one ended, not from the start
     p - lr => start - lr
12 | a value is kept AFTER its step; yours stands before it
     p = p - lr => values.append(p)\n    p = p - lr
     and: values.append(p) =>
12 | the squares have a beta of their own, beta2
     p, m, s => beta2 = beta1\np, m, s
""")


def curve(x):
    return 4 * x**3 - 6 * x**2 + 3 * x


@drawn
def at_an_edge(r, late):
    """The last step of a window, or the first of the next one."""
    raw = 3456 * curve(np.arange(5960) / 5960)
    first = int(np.argmax(raw > 128 * r.choice([6, 8, 10, 17, 20]) + 0.01))
    return first - 1 + late, 5960, 3456, 128


ends = [always(step, 5960, 3456, 128) for step in (0, 20, 5960)]
ends += [always(5960, 5960, 3400, 128)]
way = [at_an_edge(0), at_an_edge(1), lambda r: (r.integers(200, 5800), 5960, 3456, 128)]


@unit.exercise(Part("both ends", 4, ends), Part("on the way", 4, way))
def window(step, steps, longest, block):
    """The attention window (a whole number) at a training step: the smallest positive multiple of
    `block` that is not below longest * (4x³ - 6x² + 3x), x = step / steps. (The blog plots it as
    "sequence length".)
    """
    x = step / steps
    raw = longest * curve(x)
    return block * max(1, math.ceil(raw / block))


unit.mistakes("""
takes: easy, 5 minutes
hint: x = step / steps; raw = longest * (4x³ - 6x² + 3x); blocks = ceil(raw / block), at least 1.
hint: Half way it is 1,728 raw, so 1,792 in blocks of 128.
after: What is scheduled is how far a query looks back, in whole blocks; the length of the sequences
    | does not change. The cubic is flat in the middle, so half way the window is half of the
    | longest: 1,728, rounded up to 1,792. In the package: minimal/training/recipes.py: window.
8 | round up to whole blocks
    max(1, math.ceil(raw / block)) => max(0, math.floor((raw - 1) / block))
4 | at step 0 the curve is 0, but a window has at least one block
    max(1 => max(0
4 | you cut the window at `longest`; where that is no multiple of `block`, the last window is the
  | multiple above it
    block * max(1, math.ceil(raw / block)) => min(longest, block * max(1, math.ceil(raw / block)))
4 | steps count from 0: x is step / steps
    step / steps => (step - 1) / steps
4 | that grows in a straight line; the curve is 4x³ - 6x² + 3x
    curve(x) => x
8 | wanted is a multiple of block
    block * max(1, math.ceil(raw / block)) => max(block, math.ceil(raw))
4 | a multiple itself stays; yours goes one block further
    max(1, math.ceil(raw / block)) => (math.floor(raw / block) + 1)
8 | that is the number of blocks; times block
    block * max => max
""")


near = guesses("second", "share")


@unit.exercise(
    Part("layer 0", 3, None, near(0, 16.6, 0.05)),
    Part("a long stream taken away", 3, None, near(1, 60.0, 2, per_cent)),
)
def predict_lambdas():
    """Predict, then check with your own functions. (1) In layer 0, where x is x0, the two mixing
    lambdas start at 1 and 0 and are trained by Adam, the second at twice the rate of the first. The
    first ends at 9.3. Where does the second end? (2) x - 0.5 x', and x' is three times as long as
    x: how many per cent of the two lengths is the second term's?
    """
    return 16.6, 60.0


unit.mistakes("""
takes: easy, 5 minutes
off for layer 0: not within 0.05: with the same gradient at every step and twice the rate, how far
    | does Adam carry the second while the first goes from 1 to 9.3?
off for a long stream taken away: more than 2 points off: of x - 0.5 x', x' three times as long, how
    | much of the two lengths is 0.5 x'?
hint for layer 0: x is x0 in layer 0, so d loss / d lambda is the same number for both.
hint for a long stream taken away: Call x one long. How long is 0.5 x', whatever its sign?
after: In layer 0 both lambdas see the same gradient at every step, and a step of Adam is as long as
    | its rate: while the first goes 8.3 up, the second goes 16.6, and their ratio of 0.56 says how
    | they were trained, not what the layer prefers. Of x - 0.5 x', x' three times as long, x' has
    | 1.5 of 2.5 lengths, 60 per cent, by a weight of a third. Both stand in
    | minimal/model/residual.py: Lambdas and minimal/model/residual.py: UNet.
3 | not within 0.05
    => (8.3, 60.0)
    => (9.3, 60.0)
    => (18.6, 60.0)
3 | per cent, not a fraction
    => (16.6, 0.6)
3 | more than 2 points off
    => (16.6, 100 / 3)
    => (16.6, -300.0)
""")


TRUE = {
    1: "of two equal lengths each is one half",
    3: "lam times as long as the other is at most as long as the other",
    4: "the weight is the same and the vector is longer",
}


def half_is_wrong(answer):
    which, early, late, lam = need(answer, which=0, early=1, late=1, lam=0)
    refuse(which not in (1, 2, 3, 4), "which must be 1, 2, 3 or 4")
    refuse(which != 2, f"sentence {int(which)} is true: {TRUE.get(int(which))}")
    refuse(early.shape != late.shape or len(early) == 0, "wanted early and late (C,) of the same C")
    refuse(not 0 <= lam <= 1, "lam must be between 0 and 1, where both rules make sense")
    a, b = np.linalg.norm(early), np.linalg.norm(late)
    refuse(
        a < 1e-6 or abs(a - b) > 1e-3 * a,
        "the two streams must be equally long (and not zero): do not win by scaling one",
    )
    refuse(
        abs(lam / 2 - lam * a / (b + lam * a)) < 0.05,
        "lam / 2 and the true share agree within 5 points here: they do at both ends",
    )


@unit.exercise(Part("the sentence, and a case", 8, None, half_is_wrong))
def skip_counter_example():
    """Find the error. Four sentences about late + lam * early, two streams of one length and lam
    from 0 to 1, and about the early one's share of the sum of lengths. One is false: return its
    number and a case: (which, early, late, lam), early and late (C,).

    (1) At lam = 1 the share is one half. (2) The share is lam / 2: 0.4 skips by 20 %. (3) The share
    is never more than one half. (4) If only the early stream grew longer, and lam is not 0, its
    share would grow. In the case, what the sentence says must be at least 5 points off.
    """
    return 2, np.ones(4), np.ones(4), 0.4


unit.mistakes("""
takes: medium, 9 minutes
hint: Two vectors of the same length: what is the share of lam x' in x + lam x'?
hint: Put 0, 0.2, 0.4 and 1 into every sentence.
after: The share of the earlier stream is lam / (1 + lam): 28.6 per cent at 0.4, where the rule says
    | 20. The two agree at 0 and at 1; between them lam / 2 is too low, by 8.6 points at most, near
    | 0.41. In the package the skip is minimal/model/residual.py: UNet.
8 | sentence 1 is true
    => (1, np.ones(3), np.ones(3), 0.4)
8 | sentence 3 is true
    => (3, np.ones(3), np.ones(3), 0.4)
8 | lam / 2 and the true share agree
    => (2, np.ones(3), np.ones(3), 1.0)
8 | the two streams must be equally long
    => (2, 9 * np.ones(3), np.ones(3), 1.0)
""")


@drawn
def lookups(r, repeat):
    ids = r.integers(0, 3, (2, 4)) if repeat else r.permutation(9)[:8].reshape(2, 4)
    table, v, dout = normals(r, (9, 15), (2, 4, 3, 5), (2, 4, 3, 5))
    return ids, table, v * 200, 1.7, -0.6, dout


@unit.exercise(
    Part("every token once", 4, lookups(False)), Part("tokens that come again", 8, lookups(True))
)
def lambda_gradients(ids, table, v, s0, s1, dout):
    """Stretch: backward through `mixed_value` with ve = table[ids], by hand: ids (B,T), table
    (V,H*D), v and dout (B,T,H,D).

    Returns (ds0, ds1, dtable (V,H*D)). Rows of tokens that do not occur get no gradient at all.
    """
    ds0, ds1, dtable = 0.0, 0.0, np.zeros(table.shape)
    for b, t in np.ndindex(ids.shape):
        g = dout[b, t].ravel()
        ds0 += g @ normed(v[b, t]).ravel()
        ds1 += g @ table[ids[b, t]]
        dtable[ids[b, t]] += s1 * g
    return ds0, ds1, dtable


unit.mistakes("""
takes: stretch, 19 minutes
hint: ds0 = sum of dout * rmsnorm(v), ds1 = sum of dout * ve, with ve = table[ids] shaped as v.
hint: dtable: zeros, and index_add_ of s1 * dout at the ids, all positions flattened.
after: A row collects one gradient for every place where its token stands; index_add, a product with
    | one-hot rows and automatic differentiation give the same sum. README's question: a row whose
    | token does not occur has gradient 0, and AdamW moves it all the same, by weight decay and by
    | the mean of earlier gradients. In the package the tables are trained so by
    | minimal/training/optim.py: Elementwise.
 8 | a token that occurs twice collects the gradients of both places; yours kept the last
     += s1 => = s1
12 | s0 multiplies the NORMALISED v, and so does its gradient
     normed(v[b, t]) => v[b, t]
12 | on its way into the table the gradient passes s1
     s1 * g => g
12 | ds0 and ds1 are SUMS over all entries, no means
     ds0 += g => ds0 += g / v.size
     ds1 += g => ds1 += g / v.size
12 | s0 and s1 are no factors of their own gradients
     ds0 += g => ds0 += s0 * g
     ds1 += g => ds1 += s1 * g
12 | those are gradients of places; add them up in the table's rows, by id
     return ds0, ds1, dtable => return ds0, ds1, s1 * dout.reshape(*ids.shape, -1)
12 | norm brings v to root mean square 1; yours has length 1
     normed(v[b, t]) => (normed(v[b, t]) / v.shape[-1] ** 0.5)
 8 | the places of a token are summed, not averaged
     s1 * g => s1 * g / (ids == ids[b, t]).sum()
""")
