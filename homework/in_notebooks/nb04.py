"""Notebook 04: how do the first layer's values come along?"""

import numpy as np

from homework import by_index
from homework.by_index import softmax
from homework.marking import Part, Unit, drawn, normals

unit = Unit("nb04_resformer", "ResFormer", single=True)  # a loop may fill torch.zeros


@unit.exercise(
    Part("the second layer", 1, lambda r: normals(r, (2, 2, 3, 2, 4))),
    Part("deep layers", 2, lambda r: normals(r, (int(r.integers(4, 8)), 2, 3, 2, 4))),
)
def resformer_values(V):
    """The values that layer n attends with, (B, T, H, D): Eq 7. V (n, B, T, H, D), n > 1, holds
    what layers 1 to n made from their own streams; the last is this layer's."""
    return (V[-1] + V[0]) / 2


unit.mistakes(r"""
takes: easy, 3 minutes
hint: V[-1] is what this layer made itself. Which of the others is the first layer's?
hint: (V[-1] + V[0]) / 2
2 | you added the values of the layer below; ResFormer always adds those of the FIRST layer
    V[0] => V[-2]
2 | that is the mean of all layers so far (Eq 5); Eq 7 takes two, this layer's and the first one's
    => V.mean(0)
3 | the two are added with other weights in yours; Eq 7 takes HALF of each
    / 2 => || / 4 || / 2**0.5
2 | you mixed from layer to layer; Eq 7 mixes once, with what the FIRST layer made itself
    => v = V[0]\nfor x in V[1:]:\n    v = (x + v) / 2\nreturn v
3 | those are the first layer's values alone, as in SVFormer; this layer's own are the other half
    => V[0]
3 | V[-1:] keeps the axis of layers; V[-1] is one layer's values, (B, T, H, D)
    => (V[-1:] + V[:1]) / 2
3 | V[1] is the SECOND layer's; the first layer's values are V[0]
    V[0] => V[1]
3 | only one of the two is halved: put brackets around the sum
    => V[-1] + V[0] / 2 || V[-1] / 2 + V[0]
3 | those are this layer's own values; the first layer's are the other half
    => V[-1]
3 | you took the difference; Eq 7 ADDS half of each
    => (V[-1] - V[0]) / 2
2 | your other half is made of all layers before; Eq 7 takes the FIRST layer alone
    => V[-1] / 2 + V[:-1].mean(0) / 2 || V[-1] / 2 + V[:-1].sum(0) / 2
3 | layers are the FIRST axis of V (n, B, T, H, D): V[0] and V[-1]
    => (V[:, 0] + V[:, -1]) / 2
2 | those are the first two layers' values; this layer's own stand last, V[-1]
    => (V[0] + V[1]) / 2
2 | you divided by the number of layers; only two are added, half of each
    => (V[0] + V[-1]) / len(V)
3 | you gave every layer its half of the first; wanted are this layer's alone, V[-1]
    => (V + V[0]) / 2
""")


@drawn
def two_layers(r, same_keys):
    q, k, v, k_m, v_m = normals(r, *[(2, 4, 2, 3)] * 5)
    return q, k, v, k.copy() if same_keys else k_m, v_m


@unit.exercise(Part("equal keys", 1, two_layers(True)), Part("two layers", 2, two_layers(False)))
def two_layer_attention(q, k, v, k_m, v_m):
    """Causal attention to two layers with one softmax (Eq 2), all (B, T, H, D) -> (B, T, H, D):
    queries, keys and values of layer n, keys and values of layer m. A query sees, in either layer,
    the positions up to its own."""
    T, D = q.shape[1], q.shape[3]
    keys, values = np.concatenate([k, k_m], 1), np.concatenate([v, v_m], 1)
    seen = np.tril(np.ones((T, T)))
    scores = np.einsum("bthd,bshd->bhts", q, keys) / np.sqrt(D)
    scores = np.where(np.concatenate([seen, seen], 1), scores, -np.inf)
    return np.einsum("bhts,bshd->bthd", softmax(scores), values)


unit.mistakes("""
takes: medium, 10 minutes
hint: Put keys side by side along the positions, torch.cat([k, k_m], 1): scores are (B, H, T, 2 T).
hint: The mask is the causal one, twice side by side: torch.cat([seen, seen], -1).
hint: Then as in notebook 01: divide by the root, hide, softmax over all 2 T, einsum with values.
2 | you averaged two softmaxes; Eq 2 has ONE over the keys of both, so one layer can win
    softmax(scores) => np.concatenate([softmax(x) for x in np.split(scores, 2, 3)], 3) / 2
3 | your mask covers the keys of layer n only: the future leaks in through those of layer m
    [seen, seen] => [seen, np.ones((T, T))]
2 | that is Eq 4, one map over the mean of two values; in Eq 2 the keys of layer m score, too
    => by_index.causal_attention(q, k, (v + v_m) / 2)
2 | layer n's keys met layer m's values
    [v, v_m] => [v_m, v]
3 | the keys of both layers met the same layer's values; v goes with k, v_m with k_m
    [v, v_m] => [v, v] || [v_m, v_m]
3 | your heads share one map, made of all of them; each head has its own
    np.einsum("bthd,bshd->bhts", q, keys) => np.einsum("bthd,bshd,g->bgts", q, keys, [1, 1])
3 | your scores are not divided by the square root of the head's width
    / np.sqrt(D) =>
3 | your queries also see the keys after them
    np.tril(np.ones((T, T))) => np.ones((T, T))
3 | your softmax runs over the queries; each QUERY's weights sum to one: the last axis, 2 T long
    softmax(scores) => softmax(scores, 2)
3 | layer m is not heard: its keys are missing, or one triangle over all 2 T columns hides them. The
  | triangle is needed twice, side by side
    [seen, seen] => [seen, 0 * seen]
3 | you took notebook 01's mask for T queries and 2 T keys: it takes the keys of layer n for an
  | older text and shows all of them. The causal square is needed twice, side by side
    [seen, seen] => [np.ones((T, T)), seen]
3 | you added two attentions, so weights sum to 2: Eq 2 has ONE softmax over the keys of both
    softmax(scores) => np.concatenate([softmax(x) for x in np.split(scores, 2, 3)], 3)
3 | scores are divided by the ROOT of D; you divided by D, or multiplied
    np.sqrt(D) => D
    / np.sqrt(D) => * np.sqrt(D)
3 | you added the keys, and the values, of both layers; they stand side by side, 2 T of them
    => by_index.causal_attention(q, k + k_m, v + v_m)
2 | you averaged the keys, and the values, of both layers; they stand side by side, 2 T of them
    => by_index.causal_attention(q, (k + k_m) / 2, (v + v_m) / 2)
3 | you hid the future after the softmax; with -inf on the scores before it, weights sum to 1
    softmax(scores), values => softmax(np.einsum("bthd,bshd->bhts", q, keys) / np.sqrt(D)) *
  | np.concatenate([seen, seen], 1), values
3 | your queries do not see a key at their own position: it is no future
    [seen, seen] => [seen, np.tril(seen, -1)]
    np.tril(np.ones((T, T))) => np.tril(np.ones((T, T)), -1)
3 | you put 0 where the future is, and a score of 0 still gets weight: put -inf there
    -np.inf => 0
3 | your mask is turned round: it hides what stands before and shows what comes after
    np.tril(np.ones((T, T))) => 1 - np.tril(np.ones((T, T)))
    np.tril => np.triu
3 | you divided by the root of 2 D, or of the number of keys; D is the width of a head
    np.sqrt(D) => np.sqrt(T) || np.sqrt(2 * D) || np.sqrt(2 * T)
3 | your mask shows every column twice in a row; the triangle stands there whole, and then once more
    np.concatenate([seen, seen], 1) => np.repeat(seen, 2, 1)
""")


@drawn
def a_layer(r, T, lam):
    q, k, v, v1 = normals(r, *[(2, T, 2, 3)] * 4)
    weights = by_index.causal_weights
    heads = [[weights(q[b, :, h], k[b, :, h]) for h in range(2)] for b in range(2)]
    return np.array(heads), v, v1, lam


@unit.exercise(Part("a single token", 1, a_layer(1, 0.4)), Part("a text", 2, a_layer(5, 0.3)))
def neutreno(A, v, v1, lam):
    """NeuTRENO's output (A - lam I) V_n + lam V_1: A (B, H, T, T), v and v1 (B, T, H, D), lam a
    number -> (B, T, H, D)."""
    y = np.einsum("bhts,bshd->bthd", A, v)
    return y + lam * (v1 - v)


unit.mistakes("""
takes: easy, 5 minutes
hint: Multiply out (A - lam I) V_n + lam V_1: three terms. What does I V_n do to V_n?
hint: A carries the values as in notebook 01: torch.einsum("bhts,bshd->bthd", A, v).
hint: … + lam * (v1 - v)
2 | you took lam times the sum of ALL values away, as Eq 8 prints it with J: that looks ahead, too.
  | With I a position loses its own value only
    (v1 - v) => (v1 - v.sum(1, keepdims=True))
3 | the correction has the wrong sign: it adds what only the first layer has, lam (V_1 - V_n)
    (v1 - v) => (v - v1)
2 | you corrected the values and then attended; lam (V_1 - V_n) goes PAST the map, to the output
    => np.einsum("bhts,bshd->bthd", A, v + lam * (v1 - v))
3 | you added lam V_1 and forgot to take lam V_n away
    (v1 - v) => v1
2 | your map is turned round: its columns (s) are keys, and the sum runs over them
    bhts,bshd => bhst,bshd
2 | your map moves no values: the sum over s is of A[t, s] v[s], "bhts,bshd->bthd"
    bhts,bshd => bhts,bthd
2 | A is a map already: no softmax is asked for
    A, v) => softmax(A), v)
2 | your heads share one map, a mean; each head has its own
    A, v) => 0 * A + A.mean(1, keepdims=True), v)
3 | (A - lam I) stands on V_n alone; it carries V_1, too, in yours
    => neutreno(A, v + lam * v1, 0 * v1, lam) || neutreno(A, v + v1, 0 * v1, lam)
2 | you took lam times the OUTPUT away; (A - lam I) V_n takes lam V_n, past the map
    (v1 - v) => (v1 - y)
2 | your map carries V_1, too; lam V_1 goes PAST the map
    (v1 - v) => (np.einsum("bhts,bshd->bthd", A, v1) - v)
3 | you took lam itself away; lam I V_n is lam times V_n
    lam * (v1 - v) => lam * v1 - lam
3 | your v and v1 are in each other's place
    => neutreno(A, v1, v, lam)
3 | lam stands on I alone: (A - lam I), not lam (A - I)
    return y + lam * (v1 - v) => return lam * (y + v1 - v)
3 | lam multiplies both, what is added and what is taken away: lam V_1 - lam V_n
    lam * (v1 - v) => v1 - lam * v || lam * v1 - v || v1 - v
2 | you took lam times the MEAN of the values away; a position loses its own value only
    (v1 - v) => (v1 - v.mean(1, keepdims=True))
""")


@drawn
def shares(r, by_head):
    a, b = r.uniform(0.2, 1.5, size=(2, 4)) if by_head else r.uniform(0.2, 1.5, size=(2, 1))
    return *normals(r, (2, 3, 4, 4), (2, 3, 4, 4)), a + np.zeros(4), b + np.zeros(4)


@unit.exercise(
    Part("all heads alike", 1, shares(False)), Part("a share for each head", 2, shares(True))
)
def learned_mix(v, v1, a, b):
    """Shares that are learned, one of each kind for a head: a V_n + b V_1, from v and v1 (B, T, H,
    D), a and b (H,) -> (B, T, H, D)."""
    return a[:, None] * v + b[:, None] * v1


unit.mistakes("""
takes: easy, 3 minutes
hint: v is (B, T, H, D). Broadcasting lines up the LAST dimensions: which shape must a (H,) have?
hint: a[:, None] * v + b[:, None] * v1
2 | your shares run along the features D; there is one for each head: a[:, None], b[:, None]
    => a * v + b * v1
    b[:, None] => b
    a[:, None] => a
3 | a belongs to this layer's values, b to those of the first
    => b[:, None] * v + a[:, None] * v1
3 | you divided the sum; the shares are used as they were learned, whatever they sum to
    => (a[:, None] * v + b[:, None] * v1) / 2
    => (a[:, None] * v + b[:, None] * v1) / (a + b)[:, None]
3 | a and b are numbers of their own; neither is the rest, 1 - a or 1 - b
    b[:, None] => (1 - a[:, None])
    a[:, None] => (1 - b[:, None])
2 | your heads share one a and one b, one head's or a mean; every head has its own
    => a.mean() * v + b.mean() * v1 || a[0] * v + b[0] * v1 || a[-1] * v + b[-1] * v1
3 | the shares are used as they were learned: no sigmoid, softmax, tanh, exp or square of them
    => learned_mix(v, v1, np.tanh(a), np.tanh(b)) || learned_mix(v, v1, np.exp(a), np.exp(b))
    => learned_mix(v, v1, a * a, b * b)
    => learned_mix(v, v1, 1 / (1 + np.exp(-a)), 1 / (1 + np.exp(-b)))
    => learned_mix(v, v1, 1 / (1 + np.exp(b - a)), 1 / (1 + np.exp(a - b)))
    => learned_mix(v, v1, softmax(a), softmax(b))
3 | your a multiplies V_1, too; it stands on this layer's values alone
    b[:, None] => (a * b)[:, None]
3 | the two are ADDED: no difference and no product
    + b => - b || * b
3 | both of your terms take the same values; wanted a V_n + b V_1
    a[:, None] * v + => a[:, None] * v1 +
    * v1 => * v
3 | heads stand first in yours: torch.stack(…, 2) puts them where they belong
    => np.moveaxis(learned_mix(v, v1, a, b), 2, 0)
""")
