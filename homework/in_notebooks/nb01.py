"""Notebook 01: what may a token see, where does it stand, and how is a long row read in pieces?"""

import numpy as np

from homework import by_index
from homework.marking import Part, Unit, Wrong, normals

unit = Unit("nb01_attention", "Attention from scratch", "The exercises of notebook 01.")


@unit.exercise(
    Part("as many queries as keys", 4, lambda r: (n := int(r.integers(3, 9)), n)),
    Part("fewer queries than keys", 4, lambda r: (int(r.integers(2, 5)), int(r.integers(6, 10)))),
    Wrong(
        "hides itself",
        8,
        "your positions do not see themselves: the own key is at or before the query",
        dict(itself=1),
    ),
    Wrong(
        "true means hidden",
        8,
        "yours is True where a key is hidden; wanted True where it is visible",
        dict(flip=True),
    ),
    Wrong(
        "from the left corner",
        4,
        "with fewer queries than keys, the queries are the LAST positions: query t stands "
        "at t + S - T",
        dict(corner=True),
    ),
    hints=[
        "Draw the square for T = 2, S = 4: the first query stands at position 2. How many keys "
        "does it see?",
        "Compare two aranges: torch.arange(S) against torch.arange(T)[:, None] + (S - T).",
    ],
    level="easy",
    minutes=5,
)
def causal_mask(T, S, *, itself=0, flip=False, corner=False):
    """(T,S) of bool, True where query t may see key s.

    The T queries are the last T of S positions.
    """
    mask = np.zeros((T, S), bool)
    for t in range(T):
        for s in range(S):
            mask[t, s] = (s + itself <= t + (0 if corner else S - T)) != flip
    return mask


# ---- positions -----------------------------------------------------------------------------------


def rows_at(positions):
    return lambda r: (r.normal(size=(2, 5, 2, 8)), positions(r), 100.0)


@unit.exercise(
    Part("positions 0, 1, 2, …", 1, rows_at(lambda r: np.arange(5))),
    Part("any positions", 1, rows_at(lambda r: r.integers(0, 60, 5))),
    Wrong(
        "turned the other way",
        2,
        "you turned by the opposite angle: y1 = x1 cos + x2 sin, y2 = x2 cos - x1 sin",
        dict(sign=-1),
    ),
    Wrong(
        "neighbours are pairs",
        2,
        "you paired neighbours (0 with 1, 2 with 3); here entry i turns with entry i + D/2. Both "
        "habits exist, and weights trained with one are useless with the other",
        dict(split=False),
    ),
    Wrong(
        "rates half as steep",
        2,
        "your rates fall half as fast: base ** (-2 i / D) for i = 0 … D/2 - 1",
        dict(steep=1),
    ),
    Wrong(
        "one rate for all",
        2,
        "all your pairs turn at the same rate; pair i turns by position * base ** (-2 i / D)",
        dict(steep=0),
    ),
    Wrong(
        "counts the rows",
        1,
        "you turned row t by t; the argument `positions` says where each row stands",
        dict(count=True),
    ),
    hints=[
        "x1, x2 = x.chunk(2, -1): pair i is (x1[i], x2[i]). Each pair turns by its own angle.",
        "rate = base ** (-torch.arange(0, D, 2) / D), (D/2,); angle = positions[:, None] * rate, "
        "(T, D/2).",
        "x is (B, T, H, D): give the angle a place for the heads, angle[:, None], (T, 1, D/2). "
        "Then torch.cat([x1 * cos + x2 * sin, x2 * cos - x1 * sin], -1).",
    ],
    level="medium",
    minutes=12,
)
def turn(x, positions, base=10_000.0, *, sign=1, split=True, steep=2, count=False):
    """x (B, T, H, D) at positions (T,) -> (B, T, H, D): RoPE.

    Pair i of D/2 holds x1 = entry i and x2 = entry i + D/2. It turns by the angle
    position * base ** (-2 i / D):  y1 = x1 cos + x2 sin,  y2 = x2 cos - x1 sin.
    """
    out, (_, T, _, D) = np.zeros(x.shape), x.shape
    for t in range(T):
        for i in range(D // 2):
            angle = sign * (t if count else positions[t]) * base ** (-steep * i / D)
            a, b = (i, i + D // 2) if split else (2 * i, 2 * i + 1)
            out[:, t, :, a] = x[:, t, :, a] * np.cos(angle) + x[:, t, :, b] * np.sin(angle)
            out[:, t, :, b] = x[:, t, :, b] * np.cos(angle) - x[:, t, :, a] * np.sin(angle)
    return out


# ---- a tile at a time ----------------------------------------------------------------------------


def later_tile(size):
    """Some tiles were read: the largest score so far is now above, now below the new ones."""

    def make(r):
        m, scores, out, values = normals(r, (2, 3, 4, 1), (2, 3, 4, 5), (2, 3, 4, 6), (2, 3, 5, 6))
        return size * m, r.random((2, 3, 4, 1)) + 1, out, size * scores, values

    return make


def first_tile(r):
    """Nothing was read so far, and all scores are negative."""
    scores, values = -np.abs(r.normal(size=(2, 3, 4, 5))) - 1, r.normal(size=(2, 3, 5, 6))
    m, zero = np.full((2, 3, 4, 1), -np.inf), np.zeros((2, 3, 4, 1))
    return m, zero, np.zeros((2, 3, 4, 6)), scores, values


@unit.exercise(
    Part("the first tile", 1, first_tile),
    Part("a later tile", 1, later_tile(1)),
    Part("scores in the hundreds", 1, later_tile(200)),
    Wrong(
        "total not corrected",
        2,
        "when the largest score grows, what was summed before must shrink by exp(m - largest): "
        "your total did not",
        dict(shrink_total=False),
    ),
    Wrong(
        "output not corrected",
        2,
        "your total shrinks when the largest score grows, your out does not",
        dict(shrink_out=False),
    ),
    Wrong(
        "the tile's own maximum",
        2,
        "your largest score is that of this tile alone; take the larger of it and m",
        dict(own=True),
    ),
    Wrong(
        "divided too early",
        3,
        "you divided by the total in this tile; that is done once, after the last one",
        dict(early=True),
    ),
    Wrong(
        "the mean of values",
        3,
        "your total counts scores but not their weights: it grows by the sum of "
        "exp(score - largest), not by the number of scores",
        dict(counted=True),
    ),
    hints=[
        "largest = torch.maximum(m, scores.amax(-1, keepdim=True)), (…, T, 1). All exponents are "
        "taken relative to it.",
        "shrink = (m - largest).exp() corrects what was summed before, total as well as out. It is "
        "0 in the first tile, where m is -inf.",
        "e = (scores - largest).exp(), (…, T, S): total * shrink + e.sum(-1, keepdim=True), and "
        "out * shrink + e @ values.",
    ],
    level="medium",
    minutes=12,
)
def add_tile(
    m,
    total,
    out,
    scores,
    values,
    *,
    shrink_total=True,
    shrink_out=True,
    own=False,
    early=False,
    counted=False,
):
    """One step of the online softmax: what was read so far and a new tile -> the three, brought up
    to date.

    So far: m (…, T, 1) the largest score, total (…, T, 1) the sum of exp(score - m), out (…, T, D)
    the sum of exp(score - m) times its value. The tile: scores (…, T, S) and values (…, S, D).
    """
    new_m, new_total, new_out = np.zeros(m.shape), np.zeros(total.shape), np.zeros(out.shape)
    *many, T, S = scores.shape
    for at in np.ndindex(*many):
        for t in range(T):
            row, before = scores[(*at, t)], m[(*at, t, 0)]
            largest = max(row) if own else max(before, max(row))
            shrink = np.exp(before - largest)
            e = [np.exp(score - largest) for score in row]
            gained = S if counted else sum(e)
            new_m[(*at, t, 0)] = largest
            new_total[(*at, t, 0)] = total[(*at, t, 0)] * (shrink if shrink_total else 1) + gained
            old = out[(*at, t)] * (shrink if shrink_out else 1)
            new_out[(*at, t)] = old + sum(e[s] * values[(*at, s)] for s in range(S))
    return new_m, new_total, new_out / new_total if early else new_out


# ---- a token at a time ---------------------------------------------------------------------------


def step(S):
    return lambda r: normals(r, *[(2, 1, 3, 6)] * 3, *[(2, S, 3, 6)] * 2)


@unit.exercise(
    Part("the first token, from an empty cache", 1, step(0)),
    Part("a later token", 1, step(5)),
    Wrong(
        "blind to itself",
        2,
        "the new token must see itself: append its key and value first, then attend",
        dict(sees="cache"),
    ),
    Wrong(
        "the new key alone",
        1,
        "your query saw only the new key; it must see the whole cache",
        dict(sees="new"),
    ),
    Wrong(
        "a mask from the left corner",
        1,
        "your one query saw the first key alone; the new token is the LAST position and sees all: "
        "no mask is needed",
        dict(sees="first"),
    ),
    Wrong(
        "new rows in front",
        1,
        "you put the new rows in front of the cached ones; they belong behind them",
        dict(front=True),
    ),
    Wrong(
        "no root",
        1,
        "your scores lack the division by the root of D",
        dict(root=False),
    ),
    hints=[
        "torch.cat([k_cache, k], 1) first: positions are axis 1. Then one query against all keys.",
        "No mask: what is in the cache lies before the new token, and the token sees itself. Your "
        "own line of attention does the rest.",
    ],
    level="medium",
    minutes=8,
)
def decode_step(q, k, v, k_cache, v_cache, *, sees="all", front=False, root=True):
    """One new token: q, k, v (B, 1, H, D) and caches (B, S, H, D), S may be 0 -> (out, k_cache,
    v_cache), with out (B, 1, H, D) and caches one row longer."""
    keys = np.concatenate([k, k_cache] if front else [k_cache, k], 1)
    values = np.concatenate([v, v_cache] if front else [v_cache, v], 1)
    seen = dict(
        all=(keys, values), cache=(k_cache, v_cache), new=(k, v), first=(keys[:, :1], values[:, :1])
    )[sees]
    if seen[0].shape[1] == 0:
        return np.zeros(q.shape), keys, values
    return by_index.attention(q, *seen, causal=False, root=root), keys, values
