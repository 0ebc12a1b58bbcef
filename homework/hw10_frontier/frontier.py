"""hw10 · What may a value be?

Fill in the functions, in any order, and run `pytest homework/hw10_frontier` as often as you
like.
Letters: B texts, T new positions, S visible positions, H heads, G heads of keys and values, D
key width, E value width, R width of what turns with positions, C width of a latent, M model
width. Query head h reads key head h // (H / G).
A slot is the row of a table that a name is given by a hash. p is the prime 2**31 - 1.
Functions answer in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def document_slots(ids, starts, factors, total, rows):
    """(B,T): the slot of the last n ids at every place; n is the number of factors.

    slot = ((factors[0] x_0 + … + factors[n-1] x_{n-1} + total) mod p) mod rows. x_i is 1 plus the
    id i places earlier, and 0 if that place lies before the text or in an earlier document. starts
    (B,T) is True where a document starts.
    """
    raise NotImplementedError


def latent_step(q, q_turned, latent, turned, up_k, up_v, out):
    """One decode step of latent attention, absorbed: no key and no value of the past is made.

    q (H,D), q_turned (H,R): the query. latent (S,C), turned (S,R): what the cache keeps, one of
    each for all heads. up_k (H,D,C), up_v (H,E,C), out (M,H,E): the matrices of contents, of
    values, and the way out. A score is the sum of q[h] . (up_k[h] latent[s]) and
    q_turned[h] . turned[s], over the root of D + R.
    Returns (weights (H,S), mixed (H,C) the weighted sums of latents, y (M,)).
    """
    raise NotImplementedError


def turned_step(h, w_q, w_k, kept, cos, sin):
    """One decode step of attention whose keys are its values: (y (B,H,D), kept (B,S+1,G,D)).

    h (B,M): the new token, normed. w_q (H D,M), w_k (G D,M). kept (B,S,G,D): the keys of the places
    before it, turned and normed. cos, sin (D/2,): of the new place, which turns (x1, x2), the two
    halves of a row, into (x1 cos + x2 sin, x2 cos - x1 sin). q and k of the new token are W h, by
    head, turned, and normed over D (by the root of the mean square). Scores are over the root of D;
    the new token sees itself. y is what is read of the keys, turned back by the new place.
    """
    raise NotImplementedError


def shares_taken(y, v, a):
    """(B,T,H,D): what was heard, less a share of what lies along the own value.

    y (B,T,H,D): what the last T of S places have heard. v (B,S,G,D): the values of all S places. a
    (H,): head h takes out tanh(a[h]) of the part of y that lies along v, the value of the same
    place that head h reads.
    """
    raise NotImplementedError


def predict_two_hashes():
    """Predict two shares. 100,000 different names. (1) One hash gives each of them one of 1,000,000
    rows: which share of the names has a row that another name uses, too? (2) The same memory as two
    tables of 500,000 rows, each with a hash of its own: which share of the names shares its row
    in BOTH tables? Within 15 % counts.
    """
    raise NotImplementedError


def false_counter_example():
    """Find the error. One of these four is false. Return (which, A, v, g): its number, and, to
    refute the false one, a causal map A (T,T) whose rows sum to 1, values v (T,) and gates g (T,)
    between 0 and 1, T at most 16.

    1. Scores do not change when W_UK is taken from the keys to the queries. 2. Two names that share
    a row under one hash may have rows of their own under another. 3. With g_t the gate of token t,
    gating what attention has collected, g_t (A v)_t, is collecting what was gated, (A (g v))_t.
    4. That is so if all tokens have the same gate.
    """
    raise NotImplementedError


def slots_go_on(kept, ids, starts, factors, total, rows):
    """Stretch: document_slots, some ids at a time. Returns (slots (B,T), kept (B,n-1)).

    kept (B,n-1) is what an earlier call returned: for the last n - 1 places, oldest first, 1 plus
    the id there, and 0 where the document had not begun. ids and starts (B,T) are new, T any
    number. A whole text cut into any pieces, with kept all 0 at first, gets document_slots' slots.
    """
    raise NotImplementedError
