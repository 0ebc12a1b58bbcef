"""Notebook 13: which row do two ids choose, and where may a matrix go?"""

import numpy as np

from homework.marking import Part, Unit, Wrong, normals

unit = Unit("nb13_what_came_next", "What came next?", "The exercises of notebook 13.")

PRIME = 2**31 - 1


def texts(r):
    """Ids (2, T), three factors, a number of rows."""
    ids = r.integers(0, 50, size=(2, int(r.integers(3, 9))))
    a, b, c = (int(x) for x in r.integers(1, PRIME, size=3))
    return ids, a, b, c, int(r.integers(5, 200))


def one_token(r):
    _, a, b, c, rows = texts(r)
    return r.integers(0, 50, size=(2, 1)), a, b, c, rows


@unit.exercise(
    Part("texts", 3, [texts, texts, one_token]),
    Wrong(
        "looks ahead",
        3,
        "your slot depends on the id that comes next; wanted the id here and the one before",
        dict(step=-1),
    ),
    Wrong(
        "comes round",
        3,
        "your first slot knows the last id of the text (roll does that); before a text there is "
        "none, which counts as 0",
        dict(around=True),
    ),
    Wrong(
        "order forgotten",
        3,
        "cold water and water cold share your slot: each of the two ids has a factor of its own",
        dict(swap=True),
    ),
    Wrong(
        "no room for none",
        3,
        "id 0 and no id at all look alike in yours: ids are counted from 1 here",
        dict(one=0),
    ),
    hints=[
        "The ids before: the same tensor, one place to the right, with a column of zeros in front.",
        "torch.nn.functional.pad(ids + 1, (1, 0))[:, :-1] is the ids before, from 1, 0 for none.",
    ],
    level="easy",
    minutes=6,
)
def bigram_slots(ids, a, b, c, rows, *, step=1, around=False, swap=False, one=1):
    """(B, T): ((a here + b before + c) mod (2**31 - 1)) mod rows, with ids counted from 1.

    ids (B, T) int64. here: the id at this place plus 1; before: the id one place earlier plus 1,
    and 0 at the first place.
    """
    B, T = ids.shape
    slots = np.zeros((B, T), dtype=np.int64)
    for i in range(B):
        for t in range(T):
            here = int(ids[i, t]) + one
            at = t - step
            there = 0 <= at < T
            before = int(ids[i, at % T]) + one if there or around else 0
            first, second = (a, a) if swap else (a, b)
            slots[i, t] = (first * here + second * before + c) % PRIME % rows
    return slots


def heads(r):
    H, D, C, T, S = (int(n) for n in r.integers(2, 6, size=5))
    return normals(r, (T, H, D), (S, C), (H, D, C))


@unit.exercise(
    Part("queries that read the latent", 3, heads),
    Wrong(
        "one matrix for all",
        3,
        "every head has a matrix of its own: yours gives all heads the first one's",
        dict(shared=True),
    ),
    Wrong(
        "heads added up",
        3,
        "your heads all ask the same: the sum over h belongs into no part of it",
        dict(summed=True),
    ),
    hints=[
        "A score is the sum over d of q[t, h, d] times the sum over c of up[h, d, c] latent[s, c]. "
        "Which of the two sums can be made without s?",
        "Sum over d first: q' [t, h, c] = sum over d of q[t, h, d] up[h, d, c]. One einsum.",
    ],
    level="medium",
    minutes=8,
)
def absorbed_scores(q, latent, up, *, shared=False, summed=False):
    """(H, T, S): q[t, h] . (up[h] latent[s]), without making a key: only q and latent meet s.

    q (T, H, D): queries. latent (S, C): what the cache keeps. up (H, D, C): W_UK, head by head.
    """
    T, H, D = q.shape
    S, C = latent.shape
    scores = np.zeros((H, T, S))
    for h in range(H):
        for t in range(T):
            for s in range(S):
                key = up[0 if shared else h] @ latent[s]
                scores[h, t, s] = q[t, h] @ key
    return np.repeat(scores.sum(0, keepdims=True), H, 0) if summed else scores
