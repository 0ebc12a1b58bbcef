"""Notebook 03: what do the instruments measure that look inside the stack?"""

import numpy as np

from homework.by_index import entropy_of, units
from homework.marking import Part, Unit, normals

unit = Unit("nb03_inside", "Inside the stack", single=True)  # a loop may fill torch.zeros


def maps(r, *batch, T=6):
    """Random causal attention weights (…, T, T)."""
    e = np.exp(1.5 * r.normal(size=(*batch, T, T))) * np.tril(np.ones((T, T)))
    return e / e.sum(-1, keepdims=True)


@unit.exercise(
    Part("the token itself", 1, lambda r: (maps(r, 3), 0)),
    Part("tokens before", 2, lambda r: (maps(r, 2, T=7), int(r.integers(1, 4)))),
)
def weight_back(A, back):
    """Mean weight that queries give to the key `back` positions before them: A (H, T, T) -> (H,).
    Queries that have no such key do not count."""
    T = A.shape[1]
    found = np.array([[head[t, t - back] for t in range(back, T)] for head in A])
    return found.mean(1)


unit.mistakes("""
takes: easy, 5 minutes
hint: Draw a map of 4 by 4, and mark the weight of key t - 1 at query t: a diagonal below the main.
hint: A.diagonal(-back, -2, -1) is that diagonal of every head: (H, T - back).
2 | you looked `back` positions AHEAD: queries are rows, keys are columns, so the key is at t - back
    head[t, t - back] => head[t - back, t]
3 | you took column `back` of every query; the key moves along with the query: t - back
    head[t, t - back] => head[t, back]
2 | you counted all T queries; the first `back` of them have no such key and do not count
    found.mean(1) => found.sum(1) / T
3 | every head has one number, its queries' mean, mean(-1): no sum, no one query, no mean of heads
    .mean(1) => || .sum(1) || [:, -1] || .max(1) || .mean() || .mean(0)
3 | you took the mean of all T² weights; T - back of them lie on the diagonal
    => np.stack([np.diagonal(head, -back).sum() / head.size for head in A])
2 | you took the main diagonal, a token's weight on itself; wanted the one that lies `back` below it
    head[t, t - back] => head[t, t]
    => weight_back(A, 0)
3 | your diagonal lies one too far from the main one, or one too near
    => weight_back(A, back + 1) || np.stack([np.diagonal(head, 1 - back) for head in A]).mean(1)
3 | you summed all keys `back` or more positions before; wanted the one key at t - back
    => np.tril(A, -back).sum(-1).mean(-1) || np.tril(A, -back).sum((1, 2)) / (A.shape[1] - back)
3 | you took a mean of whole rows, or of a block; of each row one weight is meant, key t - back's
    => A[:, back:].mean((1, 2)) || A[:, back:, : A.shape[1] - back].mean((1, 2))
3 | you left out a query too many: query t = back has a key at 0, and is the first that counts
    range(back, T) => range(back + 1, T)
    range(back, T) => range(back + 1, T)
    and: .mean(1) => .sum(1) / (T - back)
1 | with back = 0 your slice :-back is empty, since -0 is 0: write :T - back
    found.mean(1) => found.mean(1) + (0 if back else np.nan)
2 | you summed the keys from t - back up to the token itself; wanted the one at t - back
    head[t, t - back] => head[t, t - back : t + 1].sum()
    => (np.tril(A) - np.tril(A, -back - 1)).sum((1, 2)) / (A.shape[1] - back)
""")


def first_only(r):
    """Everybody looks at the first token: the others receive nothing."""
    T = int(r.integers(4, 8))
    return (np.broadcast_to(np.eye(T)[[0] * T], (2, 3, T, T)).copy(),)


@unit.exercise(
    Part("several texts and heads", 3, lambda r: (maps(r, 2, 3),)),
    Part("a token that nobody looks at", 1, first_only),
    single=False,  # where a small number in the logarithm shows
)
def token_entropy(A):
    """Entropy (natural log) of token importance, a number: A (B, H, T, S), S = T. Average the
    heads; a token's importance is the attention that it receives, as a share of all; one entropy
    for each text, then their mean."""
    found = []
    for text in A:
        M = text.mean(0)
        received = M.sum(0)
        found.append(entropy_of(received / received.sum()))
    return np.mean(found)


unit.mistakes("""
takes: medium, 8 minutes
hint: (B, H, T, S): mean over the heads, sum over the QUERIES, divide by each text's total.
hint: Check with a map that sends everything to the first token: the entropy must be 0.
    | torch.special.xlogy(p, p) is p log p, and 0 where p is 0.
hint: received = A.mean(1).sum(-2)  # (B, S); p = received / received.sum(-1, keepdim=True)
in: entropy_of
4 | you summed over the keys, as Eq 11 prints it: that is 1 for all; wanted the sum over QUERIES
    M.sum(0) => M.sum(1)
3 | you averaged the heads' entropies; average the heads' maps first, then take one entropy
    entropy_of(received / received.sum()) => np.mean([entropy_of(head.sum(0) / head.sum()) for
  | head in text])
3 | you averaged the maps of all texts; an entropy for each text comes first, then their mean
    text in A => text in [A.mean(0)]
4 | importance must sum to 1 in each text before its entropy is taken: divide by the text's total
    / received.sum() => || / len(received) * len(text) || / A.mean(1).sum() || * len(text)
1 | a token that receives nothing contributes 0, not NaN
    else 0.0 => else np.nan
3 | entropy is MINUS the sum of p log p
    -sum( => sum(
3 | your logarithm has base 2 or 10; the natural one is meant
    np.log(x) => np.log2(x) || np.log10(x)
3 | you averaged the entropies of the queries' rows; wanted one of what all queries give together
    entropy_of(received / received.sum()) => np.mean([entropy_of(row) for row in M])
    entropy_of(received / received.sum()) => np.mean([entropy_of(row) for head in text for row
  | in head])
3 | you took one text, head or query alone, or the largest weight; all of them count, and are summed
    text in A => text in A[:1]
    text.mean(0) => text[0]
    M.sum(0) => M[-1] || M.max(0)
4 | that is a number for each text; wanted their mean
    np.mean(found) => np.array(found)
3 | wanted the mean over the texts of a SUM over tokens: no sum of texts, no division by T or log T
    np.mean(found) => np.sum(found) || np.mean(found) / A.shape[-1]
    np.mean(found) => np.mean(found) / np.log(A.shape[-1])
4 | you took a softmax of what tokens receive; divide it by its sum
    received / received.sum() => np.exp(received) / np.exp(received).sum()
4 | you added a small number inside the logarithm, which moves the entropy: xlogy(p, p) needs none
    np.log(x) => np.log(x + 1e-2) || np.log(x + 1e-3) || np.log(x + 1e-4) || np.log(x + 1e-5)
""")


def sized(r, common):
    """Tokens of different lengths, with a direction that all of them share."""
    h = r.normal(size=(2, 7, 4)) + common * r.normal(size=4)
    return (h * np.exp(r.normal(size=(2, 7, 1))),)


@unit.exercise(
    Part("independent tokens", 1, lambda r: sized(r, 0)),
    Part("tokens with a common vector", 1, lambda r: sized(r, 1)),
)
def similarity(h):
    """Mean cosine of two different tokens of a text, for each text: h (B, T, C) -> (B,) (Eq 13).
    It can be done without forming the pairs."""
    T, u = h.shape[1], units(h)
    cosines = u @ u.swapaxes(1, 2)
    return (cosines.sum((1, 2)) - T) / (T * (T - 1))


unit.mistakes("""
takes: easy, 6 minutes
hint: u = h / h.norm(dim=-1, keepdim=True) has tokens of length 1. Sum u over the tokens.
hint: The squared length of that sum is the sum of ALL cosines. How many are a token's with itself?
hint: (u.sum(1).square().sum(-1) - T) / (T * (T - 1))
2 | the T cosines of a token with itself, 1 each, are no pairs: take T off the sum, and then divide
    (cosines.sum((1, 2)) - T) / (T * (T - 1)) => cosines.mean((1, 2))
    (cosines.sum((1, 2)) - T) / (T * (T - 1)) => cosines.sum((1, 2)) - T / (T * (T - 1))
    (cosines.sum((1, 2)) - T) / => -T + cosines.sum((1, 2)) /
    - T) => ) || - 1)
    - T) / => + T) / 2 /
2 | those are dot products; bring every token to length 1 first to get cosines
    units(h) => h
    and: - T) => - (h**2).sum((1, 2)))
    units(h) => h
2 | T (T - 1) pairs count in both orders, half as many with i < j: divide the sum by their number
    / (T * (T - 1)) => || / (T - 1) || / T || / T**2 || / T**2 / 2 || / (T * (T - 1)) / 2
    / (T * (T - 1)) => / (T * (T - 1) / 2)
2 | T is the number of tokens, h.shape[1]; you took another side of h
    h.shape[1] => h.shape[2] || h.shape[0]
2 | wanted the squared LENGTH of the summed unit vectors: no root, no sum over the features before
    cosines.sum((1, 2)) => u.sum((1, 2)) ** 2 || np.sqrt(cosines.sum((1, 2)))
2 | you compared tokens of different texts; every text gives a number of its own: (B,)
    cosines.sum((1, 2)) => (cosines.mean(0) + 0 * cosines).sum((1, 2))
2 | you divided by lengths along the positions; a token's length is over its features: dim=-1
    units(h) => h / np.linalg.norm(h, axis=1, keepdims=True)
2 | each token is divided by its own LENGTH: no square, no root of a MEAN square, no norm of all
    units(h) => h / np.linalg.norm(h) || h / (h**2).sum(-1, keepdims=True)
    units(h) => h / np.sqrt((h**2).mean(-1, keepdims=True))
2 | you subtracted a mean first; Eq 13 takes the tokens as they are
    units(h) => units(h - h.mean(1, keepdims=True)) || units(h - h.mean(2, keepdims=True))
2 | you squared the cosines, or took their absolute values; wanted the mean of them as they are
    cosines.sum => (cosines**2).sum || abs(cosines).sum
2 | you compared features; wanted tokens: (T, T) products, u @ u.mT
    u @ u.swapaxes(1, 2) => u.swapaxes(1, 2) @ u
2 | you compared each token with its neighbour, the first one or the mean; wanted all pairs
    => (units(h) * units(h.mean(1))[:, None]).sum(-1).mean(-1)
    => (units(h)[:, 1:] * units(h)[:, :-1]).sum(-1).mean(-1)
    => (units(h)[:, 1:] * units(h)[:, :1]).sum(-1).mean(-1)
""")


def offset(*shape):
    return lambda r: (normals(r, shape)[0] + 0.5,)


@unit.exercise(
    Part("one text", 1, offset(1, 9, 4)),
    Part("several texts", 2, offset(3, 7, 4)),
    Part("fewer tokens than features", 1, offset(2, 3, 5)),
)
def spectrum(v):
    """Eigenvalues of the second moment of the values, (1/T) sum_i v_i v_iᵀ, largest first; the mean
    over texts: v (B, T, C) -> (C,) (Eq 12)."""
    found = []
    for text in v:
        values = np.linalg.eigvalsh(text.T @ text / len(text))
        found.append(values[::-1])
    return np.mean(found, 0)


unit.mistakes("""
takes: medium, 8 minutes
hint: v.mT @ v is the sum over the tokens of v vᵀ, a (C, C) for each text. It is symmetric.
hint: torch.linalg.eigvalsh gives the eigenvalues of a symmetric matrix, smallest first.
hint: torch.linalg.eigvalsh(v.mT @ v / T).flip(-1).mean(0)
4 | Eq 12 takes values as they are: no mean is subtracted, no value is brought to length 1
    text in v => text in v - v.mean(1, keepdims=True) || text in units(v)
    text.T @ text / len(text) => np.cov(text.T)
4 | largest first: .flip(-1)
    [::-1] =>
4 | those are singular values of v; an eigenvalue of the mean of v vᵀ is their SQUARE, over T
    values[::-1] => np.sqrt(np.abs(values[::-1]) * len(text))
    values[::-1] => np.sqrt(np.abs(values[::-1]) * len(text))[: len(text)]
    values[::-1] => np.sqrt(np.abs(values[::-1]) / len(text))[: len(text)]
4 | Eq 12 divides by T, the number of tokens: no sum, no T - 1, no number of features or texts
    / len(text) => || / (len(text) - 1) || / text.shape[1] || / len(v)
1 | with fewer tokens than features svdvals gives T values; there are C eigenvalues, the others 0
    [::-1] => [::-1][: len(text)]
4 | that is the product of the MEAN value with itself; wanted the mean of the products
    text.T @ text / len(text) => np.outer(text.mean(0), text.mean(0))
4 | you took products of tokens with tokens, (T, T); the second moment is (C, C): v.mT @ v
    text.T @ text => text @ text.T
3 | each text has a second moment and a spectrum of its own, and these have a mean: no sum
    text in v => text in v[:1] || text in [v.mean(0)] || text in [v.reshape(-1, v.shape[-1])]
    text in v => text in [v.reshape(-1, v.shape[-1])]
    and: len(text) => v.shape[1]
    np.mean(found, 0) => np.sum(found, 0)
4 | wanted the eigenvalues themselves: no shares, no sums, no roots, squares or logarithms
    [::-1] => [::-1] / values.sum()
    np.mean(found, 0) => np.mean(found, 0) / np.sum(np.mean(found, 0))
    np.mean(found, 0) => np.cumsum(np.mean(found, 0)) || np.mean(found, 0) / np.mean(found, 0)[0]
    np.mean(found, 0) => np.cumsum(np.mean(found, 0)) / np.sum(np.mean(found, 0))
    values[::-1] => values[::-1] ** 2 || np.sqrt(np.abs(values[::-1]))
    values[::-1] => np.sqrt(np.abs(values[::-1]))[: len(text)]
4 | you took the diagonal of the second moment; wanted its eigenvalues
    => (v**2).mean(1).mean(0) || np.sort((v**2).mean(1))[:, ::-1].mean(0)
4 | wanted the mean of the texts, mean(0), of each eigenvalue
    np.mean(found, 0) => np.array(found) || np.mean(found, 1)
""")
