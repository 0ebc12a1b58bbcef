"""Notebook 03: what do the instruments measure that look inside the stack?"""

import numpy as np

from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb03_inside", "Inside the stack", "The exercises of notebook 03.")


def maps(r, *batch, T=6):
    """Random causal attention weights (…, T, T)."""
    e = np.exp(1.5 * r.normal(size=(*batch, T, T))) * np.tril(np.ones((T, T)))
    return e / e.sum(-1, keepdims=True)


# ---- what a head looks at ------------------------------------------------------------------------


def diagonals(A, back):
    return np.stack([np.diagonal(head, -back) for head in A])


@unit.exercise(
    Part("the token itself", 1, lambda r: (maps(r, 3), 0)),
    Part("tokens before", 2, lambda r: (maps(r, 2, T=7), int(r.integers(1, 4)))),
    Wrong(
        "ahead",
        2,
        "you looked `back` positions AHEAD, where the mask lets no weight through: queries are "
        "rows, keys are columns, so the key stands at column t - back",
        dict(ahead=True),
    ),
    Wrong(
        "a fixed column",
        3,
        "you took column `back` of every query; the key that is meant moves along with the query: "
        "it stands at t - back",
        dict(fixed=True),
    ),
    Wrong(
        "divided by all",
        2,
        "you divided by all T queries; the first `back` of them have no such key and do not count",
        dict(every=True),
    ),
    Wrong(
        "sum for mean",
        3,
        "that is the sum over the queries; wanted their mean",
        dict(mean=False),
    ),
    Wrong(
        "heads together",
        3,
        "that is one number for all heads; every head has its own: (H,)",
        dict(together=True),
    ),
    slip(
        3,
        "your diagonal lies one too far from the main one",
        lambda A, back: weight_back(A, back + 1),
    ),
    slip(
        3,
        "your diagonal lies one too near to the main one, or above it",
        lambda A, back: diagonals(A, back - 1).mean(-1),
    ),
    slip(
        3, "you took the last query alone; wanted all queries", lambda A, b: diagonals(A, b)[:, -1]
    ),
    slip(3, "you took the largest; wanted the mean", lambda A, b: diagonals(A, b).max(-1)),
    slip(
        3,
        "you took the median; wanted the mean",
        lambda A, b: np.sort(diagonals(A, b))[:, (A.shape[1] - b - 1) // 2],
    ),
    slip(
        3,
        "you summed all keys `back` or more positions before; wanted the one key at t - back",
        lambda A, back: np.tril(A, -back).sum(-1).mean(-1),
    ),
    slip(
        3,
        "you took a mean of whole rows; of each row one weight is meant, that of key t - back",
        lambda A, back: A[:, back:].mean((1, 2)),
    ),
    slip(
        3,
        "you averaged the heads; every head has its own mean over the queries: mean(-1)",
        lambda A, back: diagonals(A, back).mean(0),
    ),
    slip(
        3, "those are the weights of every query; wanted their mean", lambda A, b: diagonals(A, b)
    ),
    hints=[
        "Draw a map of 4 by 4 and mark the weights that query t gives to key t - 1. They lie on a "
        "diagonal below the main one.",
        "A.diagonal(-back, -2, -1) is that diagonal of every head: (H, T - back).",
    ],
    level="easy",
    minutes=5,
)
def weight_back(A, back, *, ahead=False, fixed=False, every=False, mean=True, together=False):
    """Mean weight that queries give to the key `back` positions before them: A (H, T, T) -> (H,).
    Queries that have no such key do not count."""
    H, T, _ = A.shape
    out = np.zeros(H)
    for h in range(H):
        for t in range(back, T):
            s = back if fixed else t - back
            out[h] += A[h, s, t] if ahead else A[h, t, s]
        out[h] /= (T if every else T - back) if mean else 1
    return out.mean() if together else out


# ---- Eq 11 as it should be -----------------------------------------------------------------------


def entropy_of(p):
    return -sum(x * np.log(x) for x in p if x > 0)


def first_only(r):
    """Everybody looks at the first token: the others receive nothing."""
    T = int(r.integers(4, 8))
    return (np.broadcast_to(np.eye(T)[[0] * T], (2, 3, T, T)).copy(),)


@unit.exercise(
    Part("several texts and heads", 3, lambda r: (maps(r, 2, 3),)),
    Part("a token that nobody looks at", 1, first_only),
    Wrong(
        "rows, as printed",
        4,
        "you summed over the keys, as Eq 11 prints it: every row of weights sums to 1, so that is "
        "log T for any map at all; importance is what a token RECEIVES, the sum over queries",
        dict(rows=True),
    ),
    Wrong(
        "heads apart",
        3,
        "you averaged the heads' entropies; average the heads' maps first, then take one entropy",
        dict(apart=True),
    ),
    Wrong(
        "texts together",
        3,
        "you averaged the maps of all texts; every text has its own tokens: an entropy for each "
        "text first, then their mean",
        dict(together=True),
    ),
    Wrong(
        "not normalised",
        4,
        "importance must sum to 1 before its entropy is taken: divide by the total",
        dict(total=False),
    ),
    Wrong("0 log 0", 1, "a token that receives nothing contributes 0, not NaN", dict(zero=np.nan)),
    Wrong("the sign", 3, "entropy is MINUS the sum of p log p", dict(sign=1)),
    Wrong("bits", 3, "your logarithm has base 2; the natural one is meant", dict(unit=np.log(2))),
    Wrong(
        "an entropy for every query",
        3,
        "you averaged the entropies of the queries' rows: how widely each of them looks; "
        "importance is one distribution, of what the tokens receive from all queries together",
        dict(each=True),
    ),
    Wrong(
        "a number for each text",
        4,
        "that is a number for each text; wanted their mean",
        dict(texts=True),
    ),
    slip(
        3,
        "that is the sum over the texts; wanted their mean",
        lambda A: token_entropy(A, texts=True).sum(),
    ),
    slip(
        4,
        "you divided by the total of ALL texts; the importance in each text sums to 1",
        lambda A: np.mean([entropy_of(m.sum(0) / A.mean(1).sum()) for m in A.mean(1)]),
    ),
    slip(
        3,
        "you averaged entropies of rows, head by head; importance is one distribution for a text",
        lambda A: np.mean([entropy_of(row) for row in A.reshape(-1, A.shape[-1])]),
    ),
    slip(
        3,
        "entropy is a SUM over the tokens; you took the mean",
        lambda A: token_entropy(A) / A.shape[-1],
    ),
    slip(
        3,
        "you divided by log T; the entropy itself is wanted, in nats",
        lambda A: token_entropy(A) / np.log(A.shape[-1]),
    ),
    slip(
        4,
        "you took a softmax of what tokens receive; divide it by its sum",
        lambda A: np.mean(
            [entropy_of(np.exp(m.sum(0)) / np.exp(m.sum(0)).sum()) for m in A.mean(1)]
        ),
    ),
    slip(
        3,
        "you took the largest of the heads; wanted their mean",
        lambda A: np.mean([entropy_of(m.sum(0) / m.sum()) for m in A.max(1)]),
    ),
    hints=[
        "(B, H, T, S): mean over the heads, sum over the QUERIES, divide by the total. That is one "
        "distribution over S keys for each text.",
        "Check with a map that sends everything to the first token: the entropy must be 0. "
        "torch.special.xlogy(p, p) is p log p, and 0 where p is 0.",
        "received = A.mean(1).sum(-2)  # (B, S); p = received / received.sum(-1, keepdim=True)",
    ],
    level="medium",
    minutes=8,
)
def token_entropy(
    A,
    *,
    rows=False,
    apart=False,
    together=False,
    total=True,
    zero=0.0,
    sign=-1,
    unit=1.0,
    each=False,
    texts=False,
):
    """Entropy (natural log) of token importance, a number: A (B, H, T, S), S = T. Average the
    heads; a token's importance is the attention that it receives, as a share of all; one entropy
    for each text, then their mean."""

    def entropy(M):
        received = [sum(M[t, s] for t in range(len(M))) for s in range(M.shape[1])]
        received = M.sum(1) if rows else received
        p = [x / (M.sum() if total else 1) for x in received]
        return sign * sum(x * np.log(x) if x > 0 else zero for x in p) / unit

    if together:
        return np.float64(entropy(A.mean((0, 1))))
    if apart:
        return np.float64(np.mean([entropy(M) for text in A for M in text]))
    if each:
        return np.float64(np.mean([entropy(row[None]) for text in A for row in text.mean(0)]))
    found = np.array([entropy(text.mean(0)) for text in A])
    return found if texts else np.float64(found.mean())


# ---- Eq 13 without its pairs ---------------------------------------------------------------------


def units(h):
    return h / np.linalg.norm(h, axis=-1, keepdims=True)


def of_pairs(h, bend):
    """The mean over pairs of bent cosines."""
    cosines, T = units(h) @ units(h).swapaxes(1, 2), h.shape[1]
    return (bend(cosines).sum((1, 2)) - T) / (T * (T - 1))


def lengths(says, length):
    """The mistake of another length: T is taken off, as if a token's product with itself were 1."""

    def mistaken(h):
        T = h.shape[1]
        return (((h / length(h)).sum(1) ** 2).sum(-1) - T) / (T * (T - 1))

    return slip(2, says, mistaken)


def sized(r, common):
    """Tokens of different lengths, with a direction that all of them share."""
    h = r.normal(size=(2, 5, 4)) + common * r.normal(size=4)
    return (h * np.exp(r.normal(size=(2, 5, 1))),)


@unit.exercise(
    Part("independent tokens", 1, lambda r: sized(r, 0)),
    Part("tokens with a common vector", 1, lambda r: sized(r, 2)),
    Wrong(
        "with itself",
        2,
        "you counted each token's cosine with itself, which is 1; leave these T out, above and "
        "below",
        dict(itself=True),
    ),
    Wrong(
        "not normalised",
        2,
        "those are dot products; bring every token to length 1 first to get cosines",
        dict(unit=False),
    ),
    Wrong(
        "pairs counted once",
        2,
        "that is twice the mean: in the square of a sum each pair stands twice, so divide by "
        "T (T - 1), not by half of it",
        dict(pairs=0.5),
    ),
    Wrong(
        "itself above only",
        2,
        "you divided by T (T - 1), but the T cosines of a token with itself are still in the sum",
        dict(above=True),
    ),
    Wrong(
        "not squared",
        2,
        "you took the LENGTH of the summed unit vectors; the sum of all pairs is its square",
        dict(squared=False),
    ),
    Wrong(
        "texts together",
        2,
        "you compared tokens of different texts; every text gives a number of its own: (B,)",
        dict(together=True),
    ),
    lengths(
        "those are dot products; bring every token to length 1 first to get cosines",
        lambda h: 1.0,
    ),
    lengths(
        "you divided by lengths along the positions; a token's length is over its features: dim=-1",
        lambda h: np.linalg.norm(h, axis=1, keepdims=True),
    ),
    lengths("you took one norm of everything; every token has its own", np.linalg.norm),
    lengths(
        "your tokens have root mean square 1, that is length sqrt(C); wanted length 1",
        lambda h: np.sqrt((h**2).mean(-1, keepdims=True)),
    ),
    lengths(
        "you divided by the SQUARE of the length",
        lambda h: (h**2).sum(-1, keepdims=True),
    ),
    slip(
        2,
        "you subtracted the mean of the tokens first; Eq 13 takes them as they are",
        lambda h: similarity(h - h.mean(1, keepdims=True)),
    ),
    slip(2, "you squared the cosines; wanted their mean", lambda h: of_pairs(h, np.square)),
    slip(
        2,
        "that is half of the mean: T (T - 1) / 2 pairs have i < j, and T (T - 1) stand there in "
        "both orders",
        lambda h: similarity(h) / 2,
    ),
    slip(
        2,
        "you divided by T²; without the T pairs of a token with itself, T (T - 1) are left",
        lambda h: similarity(h) * (h.shape[1] - 1) / h.shape[1],
    ),
    slip(
        2,
        "you took every pair once, i < j, and divided by T²: T (T - 1) / 2 pairs are left",
        lambda h: similarity(h) * (h.shape[1] - 1) / h.shape[1] / 2,
    ),
    slip(
        2,
        "you took the main diagonal in, j = i; a token with itself is no pair: triu(1)",
        lambda h: (similarity(h) + 2 / (h.shape[1] - 1)) / 2,
    ),
    slip(
        2,
        "you compared features; wanted tokens: (T, T) products, u @ u.mT",
        lambda h: (
            (np.einsum("btc,btd->b", units(h), units(h)) - h.shape[1])
            / (h.shape[1] * (h.shape[1] - 1))
        ),
    ),
    slip(
        2,
        "you compared each token with its neighbour; wanted all pairs",
        lambda h: (units(h)[:, 1:] * units(h)[:, :-1]).sum(-1).mean(-1),
    ),
    slip(
        2,
        "you compared the tokens with their mean; wanted the pairs",
        lambda h: (units(h) * units(h.mean(1, keepdims=True))).sum(-1).mean(-1),
    ),
    hints=[
        "h / h.norm(dim=-1, keepdim=True) has tokens of length 1: u (B, T, C). Sum u over the "
        "tokens, not over the features.",
        "The squared length of that sum is the sum of ALL cosines. How many of them are a token's "
        "with itself, and how large are these?",
        "(u.sum(1).square().sum(-1) - T) / (T * (T - 1))",
    ],
    level="easy",
    minutes=6,
)
def similarity(h, *, itself=False, unit=True, pairs=1.0, together=False, above=False, squared=True):
    """Mean cosine of two different tokens of a text, for each text: h (B, T, C) -> (B,) (Eq 13).
    It can be done without forming the pairs."""
    B, T, _ = h.shape
    length = [[np.sqrt(row @ row) if unit else 1.0 for row in text] for text in h]
    out = np.zeros(B)
    for b in range(B):
        for i in range(T):
            for j in range(T):
                if itself or above or not squared or i != j:
                    out[b] += h[b, i] @ h[b, j] / length[b][i] / length[b][j]
        out[b] = out[b] if squared else np.sqrt(out[b]) - T
        out[b] /= T * T if itself else pairs * T * (T - 1)
    return out.mean(keepdims=True).repeat(B) if together else out


# ---- Eq 12 ---------------------------------------------------------------------------------------


def offset(*shape):
    return lambda r: (normals(r, shape)[0] + 0.5,)


@unit.exercise(
    Part("one text", 1, offset(1, 9, 4)),
    Part("several texts", 2, offset(3, 7, 4)),
    Part("fewer tokens than features", 1, offset(2, 3, 5)),
    Wrong("centred", 4, "you subtracted the mean; Eq 12 does not", dict(centre=True)),
    Wrong("smallest first", 4, "largest first: .flip(-1)", dict(order=1)),
    Wrong(
        "singular values",
        4,
        "those are singular values of v; an eigenvalue of the mean of v vᵀ is their square, over T",
        dict(root=True),
    ),
    Wrong(
        "sum for mean",
        4,
        "that is the spectrum of the SUM of v vᵀ; Eq 12 divides by the number of tokens",
        dict(mean=False),
    ),
    Wrong(
        "fewer eigenvalues",
        1,
        "with fewer tokens than features svdvals gives T values only; the eigenvalues are C, and "
        "those that are missing are 0",
        dict(short=True),
    ),
    Wrong(
        "tokens by tokens",
        4,
        "you took the products of tokens with tokens, (T, T); the second moment is (C, C): "
        "v.mT @ v, not v @ v.mT",
        dict(tokens=True),
    ),
    Wrong(
        "texts together",
        3,
        "you put all texts into one second moment; take the spectrum of each text, then the mean",
        dict(together=True),
    ),
    slip(3, "you took the first text alone; wanted the mean over texts", lambda v: spectrum(v[:1])),
    slip(
        4,
        "those are shares of their sum; wanted the eigenvalues themselves",
        lambda v: np.mean([spectrum(x[None]) / spectrum(x[None]).sum() for x in v], 0),
    ),
    slip(
        4,
        "you took the diagonal of the second moment; wanted its eigenvalues",
        lambda v: (v**2).mean(1).mean(0),
    ),
    slip(
        4,
        "those are singular values of v over T; an eigenvalue of the mean of v vᵀ is their SQUARE "
        "over T",
        lambda v: spectrum(v, root=True, short=True) / v.shape[1],
    ),
    slip(4, "you summed them up one by one; wanted each", lambda v: np.cumsum(spectrum(v))),
    slip(
        4,
        "you brought every value to length 1 first; Eq 12 takes them as they are",
        lambda v: spectrum(units(v)),
    ),
    slip(
        4,
        "that is a spectrum for each text; wanted their mean",
        lambda v: np.stack([spectrum(x[None]) for x in v]),
    ),
    hints=[
        "v.mT @ v is the sum over the tokens of v vᵀ, a (C, C) for each text. It is symmetric.",
        "torch.linalg.eigvalsh gives the eigenvalues of a symmetric matrix, smallest first.",
        "torch.linalg.eigvalsh(v.mT @ v / T).flip(-1).mean(0)",
    ],
    level="medium",
    minutes=8,
)
def spectrum(
    v, *, centre=False, order=-1, root=False, mean=True, together=False, short=False, tokens=False
):
    """Eigenvalues of the second moment of the values, (1/T) sum_i v_i v_iᵀ, largest first; the mean
    over texts: v (B, T, C) -> (C,) (Eq 12)."""
    texts = [v.reshape(-1, v.shape[-1])] if together else list(v)
    found = []
    for text in texts:
        rows = text - text.mean(0) if centre else text
        moment = sum(np.outer(row, row) for row in rows) / (len(rows) if mean else 1)
        moment = rows @ rows.T / len(rows) if tokens else moment
        values = np.sort(np.linalg.eigvalsh(moment))[::order]
        values = values[: len(rows)] if short else values
        found.append(np.sqrt(np.abs(values) * len(rows)) if root else values)
    return np.mean(found, 0)
