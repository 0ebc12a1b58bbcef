"""Notebook 04: how do the first layer's values come along?"""

import numpy as np

from homework import by_index
from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb04_resformer", "ResFormer", "The exercises of notebook 04.")


# ---- one line ------------------------------------------------------------------------------------


@unit.exercise(
    Part("the second layer", 1, lambda r: normals(r, (2, 2, 3, 2, 4))),
    Part("deep layers", 2, lambda r: normals(r, (int(r.integers(4, 8)), 2, 3, 2, 4))),
    Wrong(
        "the layer below",
        2,
        "you added the values of the layer below; ResFormer always adds those of the FIRST layer",
        dict(first=-2),
    ),
    Wrong(
        "mean of all",
        2,
        "that is the mean of all layers so far (Eq 5 of the paper); Eq 7 takes two of them, this "
        "layer's and the first one's",
        dict(every=True),
    ),
    Wrong(
        "sum for mean",
        3,
        "you added the two; Eq 7 takes half of each",
        dict(share=1.0),
    ),
    Wrong(
        "the first alone",
        3,
        "those are the first layer's values alone, which is SVFormer (notebook 05); here this "
        "layer's own are the other half",
        dict(own=False),
    ),
    Wrong(
        "counted from 1",
        3,
        "V[1] is the SECOND layer's; the first layer's values are V[0]",
        dict(first=1),
    ),
    Wrong(
        "half of one",
        3,
        "only one of the two is halved: put brackets around the sum",
        dict(whole=True),
    ),
    Wrong(
        "half of this layer's",
        3,
        "you halved this layer's values alone: put brackets around the sum",
        dict(theirs_whole=True),
    ),
    slip(
        3,
        "those are this layer's own values; the first layer's are the other half",
        lambda V: V[-1],
    ),
    slip(3, "you took the difference; Eq 7 ADDS half of each", lambda V: (V[-1] - V[0]) / 2),
    slip(
        3,
        "you took the mean of all layers but the first, and the first is what is added",
        lambda V: V[1:].mean(0),
    ),
    slip(
        2,
        "your other half is the mean of all layers before; Eq 7 takes the FIRST layer alone",
        lambda V: V[-1] / 2 + V[:-1].mean(0) / 2,
    ),
    slip(
        2,
        "you added half of ALL layers before; Eq 7 takes the first layer alone",
        lambda V: V[-1] / 2 + V[:-1].sum(0) / 2,
    ),
    slip(3, "you multiplied the two; Eq 7 adds half of each", lambda V: V[0] * V[-1]),
    slip(
        3,
        "layers are the FIRST axis of V (n, B, T, H, D): V[0] and V[-1]",
        lambda V: (V[:, 0] + V[:, -1]) / 2,
    ),
    slip(
        2,
        "those are the first two layers' values; this layer's own stand last, V[-1]",
        lambda V: (V[0] + V[1]) / 2,
    ),
    slip(
        2,
        "you divided by the number of layers; only two are added, half of each",
        lambda V: (V[0] + V[-1]) / len(V),
    ),
    slip(
        3,
        "you gave every layer its half of the first; wanted are this layer's alone, V[-1]",
        lambda V: (V + V[0]) / 2,
    ),
    hints=[
        "V[-1] is what this layer made itself. Which of the others is the first layer's?",
        "(V[-1] + V[0]) / 2",
    ],
    level="easy",
    minutes=3,
)
def resformer_values(
    V, *, first=0, every=False, share=0.5, own=True, whole=False, theirs_whole=False
):
    """The values that layer n attends with, (B, T, H, D): Eq 7. V (n, B, T, H, D) holds what layers
    1 to n made from their own streams; the last is this layer's."""
    out = np.zeros(V.shape[1:])
    for at in np.ndindex(*out.shape):
        mine, theirs = V[(-1, *at)], V[(first, *at)]
        out[at] = share * (mine + theirs) if own else theirs
        out[at] += mine / 2 if whole else theirs / 2 if theirs_whole else 0
        if every:
            out[at] = sum(V[(n, *at)] for n in range(len(V))) / len(V)
    return out


# ---- Eq 2 ----------------------------------------------------------------------------------------


def over_queries(q, k, v, k_m, v_m):
    """The softmax along the wrong axis: a mistake."""
    T, D = q.shape[1], q.shape[3]
    score = np.einsum("bthd,bshd->bhts", q, np.concatenate([k, k_m], 1)) / np.sqrt(D)
    seen = np.tril(np.ones((T, T), bool))
    score = np.where(np.concatenate([seen, seen], 1), score, -np.inf)
    e = np.exp(score - score.max(2, keepdims=True))
    a = e / e.sum(2, keepdims=True)
    return np.einsum("bhts,bshd->bthd", a, np.concatenate([v, v_m], 1))


def masked(q, k, v, k_m, v_m, seen, fill=-np.inf):
    """Eq 2 with another mask (T, T), or another number where it hides: a mistake."""
    score = np.einsum("bthd,bshd->bhts", q, np.concatenate([k, k_m], 1)) / np.sqrt(q.shape[3])
    score = np.where(np.concatenate([seen, seen], 1), score, fill)
    e = np.exp(score - score.max(3, keepdims=True))
    a = e / e.sum(3, keepdims=True)
    return np.einsum("bhts,bshd->bthd", a, np.concatenate([v, v_m], 1))


def causal(q):
    return np.tril(np.ones((q.shape[1], q.shape[1]), bool))


def two_layers(same_keys):
    def make(r):
        q, k, v, k_m, v_m = normals(r, *[(2, 4, 2, 3)] * 5)
        return q, k, v, k.copy() if same_keys else k_m, v_m

    return make


@unit.exercise(
    Part("equal keys", 1, two_layers(True)),
    Part("two layers", 2, two_layers(False)),
    Wrong(
        "two softmaxes",
        2,
        "you took a softmax for each layer and averaged; Eq 2 has ONE softmax over the keys of "
        "both, so one layer can win more than half",
        dict(apart=True),
    ),
    Wrong(
        "half a mask",
        3,
        "your mask covers the keys of layer n only: the future leaks in through those of layer m",
        dict(blind=True),
    ),
    Wrong("values crossed", 2, "layer n's keys met layer m's values", dict(crossed=True)),
    Wrong(
        "no root",
        3,
        "your scores are not divided by the square root of the head's width",
        dict(root=False),
    ),
    Wrong(
        "no mask",
        3,
        "your queries also see the keys after them",
        dict(blind=True, all_seen=True),
    ),
    Wrong(
        "softmax over the queries",
        3,
        "your softmax runs over the queries; the weights of each QUERY sum to one: the last axis "
        "of (B, H, T, 2 T)",
        returns=lambda q, k, v, k_m, v_m: over_queries(q, k, v, k_m, v_m),
    ),
    Wrong(
        "one triangle",
        3,
        "your mask is one triangle over all 2 T columns, which hides layer m: it is needed twice, "
        "side by side",
        dict(triangle=True),
    ),
    Wrong(
        "one mask of notebook 01",
        3,
        "you took notebook 01's mask for T queries and 2 T keys: it takes the keys of layer n for "
        "an older text and shows all of them. The causal square is needed twice, side by side",
        dict(older=True),
    ),
    Wrong(
        "two softmaxes, added",
        3,
        "you added two attentions: the weights of a query then sum to 2. Eq 2 has ONE softmax over "
        "the keys of both layers",
        dict(apart=True, share=1),
    ),
    slip(
        3,
        "you divided the scores by D; wanted its root",
        lambda q, *rest: two_layer_attention(q / q.shape[-1] ** 0.5, *rest),
    ),
    slip(
        3,
        "you added the keys, and the values, of both layers; they stand side by side, 2 T of them",
        lambda q, k, v, k_m, v_m: by_index.attention(q, k + k_m, v + v_m),
    ),
    slip(
        3,
        "you put 0 where the future is, and a score of 0 still gets weight: put -inf there",
        lambda q, *rest: masked(q, *rest, seen=causal(q), fill=0),
    ),
    slip(
        3,
        "your mask is turned round: it hides what stands before and shows what comes after",
        lambda q, *rest: masked(q, *rest, seen=causal(q).T),
    ),
    hints=[
        "Put the keys of both layers side by side along the positions, torch.cat([k, k_m], 1), and "
        "the values likewise. The scores are (B, H, T, 2 T).",
        "The mask is the causal one, twice side by side: torch.cat([seen, seen], -1).",
        "From there on it is attention as in notebook 01: divide by the root, hide, softmax over "
        "all 2 T, einsum with the values.",
    ],
    level="medium",
    minutes=10,
)
def two_layer_attention(
    q,
    k,
    v,
    k_m,
    v_m,
    *,
    apart=False,
    blind=False,
    crossed=False,
    root=True,
    all_seen=False,
    triangle=False,
    older=False,
    share=0.5,
):
    """Causal attention to two layers with one softmax (Eq 2), all (B, T, H, D) -> (B, T, H, D):
    queries, keys and values of layer n, keys and values of layer m. A query sees, in either layer,
    the positions up to its own."""
    out = np.zeros(v.shape)
    B, T, H, D = q.shape
    near, far = (v_m, v) if crossed else (v, v_m)
    for b, t, h in np.ndindex(B, T, H):
        seen, seen_m = T if all_seen or older else t + 1, T if blind else 0 if triangle else t + 1
        scores = [q[b, t, h] @ k[b, s, h] for s in range(seen)]
        scores += [q[b, t, h] @ k_m[b, s, h] for s in range(seen_m)]
        scores = np.array(scores) / (np.sqrt(D) if root else 1)
        a = by_index.softmax(scores)
        if apart:
            halves = [by_index.softmax(scores[:seen]), by_index.softmax(scores[seen:])]
            a = np.concatenate(halves) * share
        out[b, t, h] = sum(a[s] * near[b, s, h] for s in range(seen))
        out[b, t, h] += sum(a[seen + s] * far[b, s, h] for s in range(seen_m))
    return out


# ---- Eq 8 ----------------------------------------------------------------------------------------


def carried(A, v):
    return np.einsum("bhts,bshd->bthd", A, v)


def a_layer(T, lam):
    def make(r):
        q, k, v, v1 = normals(r, *[(2, T, 2, 3)] * 4)
        heads = [[by_index.weights(q[b, :, h], k[b, :, h]) for h in range(2)] for b in range(2)]
        return np.array(heads), v, v1, lam

    return make


@unit.exercise(
    Part("a single token", 1, a_layer(1, 0.4)),
    Part("a text", 2, a_layer(5, 0.3)),
    Wrong(
        "ones, as printed",
        2,
        "you took lam times the sum of ALL values away, as Eq 8 prints it with J: that looks "
        "ahead, too. With I a position loses its own value only",
        dict(ones=True),
    ),
    Wrong(
        "the other way round",
        3,
        "the correction has the wrong sign: it adds what the first layer has and this one lacks, "
        "lam (V_1 - V_n)",
        dict(sign=-1),
    ),
    Wrong(
        "through the map",
        2,
        "you corrected the values and then attended; lam (V_1 - V_n) goes PAST the map: add it to "
        "what attention puts out",
        dict(inside=True),
    ),
    Wrong(
        "the first layer alone",
        3,
        "you added lam V_1 and forgot to take lam V_n away",
        dict(keep=True),
    ),
    Wrong(
        "transposed map",
        2,
        "your map carries the values the other way: queries are its rows (t), keys its columns "
        '(s), and the sum runs over s: "bhts,bshd->bthd"',
        dict(turned=True),
    ),
    slip(
        2,
        "you took lam times the OUTPUT away; (A - lam I) V_n takes lam V_n, past the map",
        lambda A, v, v1, lam: (1 - lam) * carried(A, v) + lam * v1,
    ),
    slip(
        2,
        "your map carries V_1, too; lam V_1 goes PAST the map",
        lambda A, v, v1, lam: carried(A, v) - lam * v + lam * carried(A, v1),
    ),
    slip(
        3,
        "you took lam itself away; lam I V_n is lam times V_n",
        lambda A, v, v1, lam: carried(A, v) - lam + lam * v1,
    ),
    slip(
        3,
        "your v and v1 are in each other's place",
        lambda A, v, v1, lam: neutreno(A, v1, v, lam),
    ),
    slip(
        3,
        "heads stand before positions in yours: wanted (B, T, H, D)",
        lambda *given: neutreno(*given).swapaxes(1, 2),
    ),
    hints=[
        "Multiply out (A - lam I) V_n + lam V_1: three terms. What does I V_n do to V_n?",
        'A carries the values as in notebook 01: torch.einsum("bhts,bshd->bthd", A, v).',
        "… + lam * (v1 - v)",
    ],
    level="easy",
    minutes=5,
)
def neutreno(A, v, v1, lam, *, ones=False, sign=1, inside=False, keep=False, turned=False):
    """NeuTRENO's output (A - lam I) V_n + lam V_1: A (B, H, T, T), v and v1 (B, T, H, D), lam a
    number -> (B, T, H, D)."""
    out = np.zeros(v.shape)
    B, T, H, _ = v.shape
    A = A.swapaxes(2, 3) if turned else A
    for b, t, h in np.ndindex(B, T, H):
        taken = 0 if keep else sum(v[b, :, h]) if ones else v[b, t, h]
        out[b, t, h] = sum(A[b, h, t, s] * v[b, s, h] for s in range(T))
        if inside:
            out[b, t, h] += lam * sum(A[b, h, t, s] * (v1[b, s, h] - v[b, s, h]) for s in range(T))
        else:
            out[b, t, h] += sign * lam * (v1[b, t, h] - taken)
    return out


# ---- the learned mix -----------------------------------------------------------------------------


def shares(by_head):
    def make(r):
        a, b = r.uniform(0.2, 1.5, size=(2, 4)) if by_head else r.uniform(0.2, 1.5, size=(2, 1))
        return *normals(r, (2, 3, 4, 4), (2, 3, 4, 4)), a + np.zeros(4), b + np.zeros(4)

    return make


@unit.exercise(
    Part("all heads alike", 1, shares(False)),
    Part("a share for each head", 2, shares(True)),
    Wrong(
        "by feature",
        2,
        "your shares run along the features D; there is one for each head: a[:, None]",
        dict(feature=True),
    ),
    Wrong(
        "exchanged",
        3,
        "a belongs to this layer's values, b to those of the first",
        dict(crossed=True),
    ),
    Wrong(
        "made to sum to one",
        3,
        "you divided by a + b; the shares are used as they were learned, whatever their sum",
        dict(total=True),
    ),
    Wrong(
        "the rest",
        3,
        "you gave V_1 the rest, 1 - a; it has a share of its own, b",
        dict(rest=True),
    ),
    slip(
        2,
        "your heads share the mean of a, and of b; every head has its own",
        lambda v, v1, a, b: a.mean() * v + b.mean() * v1,
    ),
    slip(
        2,
        "all your heads take the shares of the first head; every head has its own",
        lambda v, v1, a, b: a[0] * v + b[0] * v1,
    ),
    slip(
        3,
        "you took a sigmoid of the shares; they are used as they were learned",
        lambda v, v1, a, b: learned_mix(v, v1, 1 / (1 + np.exp(-a)), 1 / (1 + np.exp(-b))),
    ),
    slip(
        3,
        "you multiplied the two; they are added",
        lambda v, v1, a, b: (a * b)[:, None] * v * v1,
    ),
    slip(
        3,
        "you took a softmax of the two shares; they are used as they were learned",
        lambda v, v1, a, b: learned_mix(v, v1, 1 / (1 + np.exp(b - a)), 1 / (1 + np.exp(a - b))),
    ),
    slip(
        3,
        "you took a softmax over the heads; the shares are used as they were learned",
        lambda v, v1, a, b: learned_mix(v, v1, by_index.softmax(a), by_index.softmax(b)),
    ),
    slip(
        3,
        "your a multiplies V_1, too; it stands on this layer's values alone",
        lambda v, v1, a, b: learned_mix(v, v1, a, a * b),
    ),
    slip(
        3,
        "the two are added; you took the difference",
        lambda v, v1, a, b: learned_mix(v, v1, a, -b),
    ),
    hints=[
        "The shapes: v is (B, T, H, D), a is (H,). Broadcasting lines up the LAST dimensions: "
        "which shape must a have?",
        "a[:, None] * v + b[:, None] * v1",
    ],
    level="easy",
    minutes=3,
)
def learned_mix(v, v1, a, b, *, feature=False, crossed=False, total=False, rest=False):
    """Shares that are learned, one of each kind for a head: a V_n + b V_1, from v and v1 (B, T, H,
    D), a and b (H,) -> (B, T, H, D)."""
    out = np.zeros(v.shape)
    for at in np.ndindex(*v.shape):
        n = at[3] if feature else at[2]
        mine, theirs = (b[n], a[n]) if crossed else (a[n], 1 - a[n] if rest else b[n])
        out[at] = (mine * v[at] + theirs * v1[at]) / (a[n] + b[n] if total else 1)
    return out
