"""Notebook 01: what may a token see?"""

import numpy as np

from homework.marking import Part, Unit, Wrong

unit = Unit("nb01_attention", "Attention from scratch", "The exercises of notebook 01.")


@unit.exercise(
    Part("as many queries as keys", 1, lambda r: (n := int(r.integers(3, 9)), n)),
    Part("fewer queries than keys", 1, lambda r: (int(r.integers(2, 5)), int(r.integers(6, 10)))),
    Wrong(
        "hides itself",
        2,
        "your positions do not see themselves: the own key is at or before the query",
        dict(itself=1),
    ),
    Wrong(
        "true means hidden",
        2,
        "yours is True where a key is hidden; wanted True where it is visible",
        dict(flip=True),
    ),
    Wrong(
        "from the left corner",
        1,
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
    """(T, S) of bool, True where query t may see key s. The T queries are the last T of S."""
    mask = np.zeros((T, S), bool)
    for t in range(T):
        for s in range(S):
            mask[t, s] = (s + itself <= t + (0 if corner else S - T)) != flip
    return mask
