"""hw10: what may a value be, what may its row be named by, and what must a cache keep of it?"""

import math

import numpy as np

from homework.by_index import normed, softmax
from homework.marking import Part, Unit, drawn, need, normals, refuse

unit = Unit(
    "hw10_frontier",
    "What may a value be?",
    """Letters: B texts, T new positions, S visible positions, H heads, G heads of keys and values,
    D key width, E value width, R width of what turns with positions, C width of a latent, M model
    width. Query head h reads key head h // (H / G).
    A slot is the row of a table that a name is given by a hash. p is the prime 2**31 - 1.""",
)

PRIME = 2**31 - 1


def slot_of(numbers, factors, total, rows):
    """((f_0 x_0 + f_1 x_1 + … + total) mod p) mod rows, in Python's whole numbers."""
    found = sum(int(f) * int(x) for f, x in zip(factors, numbers, strict=True)) + int(total)
    return found % PRIME % rows


def hash_of(r, n):
    """n factors, a summand, a number of rows."""
    return r.integers(1, PRIME, size=n), int(r.integers(1, PRIME)), int(r.integers(50, 900))


@drawn
def packed(r, n, several):
    ids = r.integers(0, 40, size=(2, 9))
    starts = np.zeros((2, 9), bool)
    if several:
        starts[0, [2, 6]] = starts[1, [3, 4]] = True
    else:
        starts[:, 0] = True
    return ids, starts, *hash_of(r, n)


@unit.exercise(
    Part("one document", 6, [packed(2, False), packed(3, False), packed(4, False)]),
    Part("several documents in a text", 12, [packed(3, True), packed(4, True), packed(2, True)]),
)
def document_slots(ids, starts, factors, total, rows):
    """(B,T): the slot of the last n ids at every place; n is the number of factors.

    slot = ((factors[0] x_0 + … + factors[n-1] x_{n-1} + total) mod p) mod rows. x_i is 1 plus the
    id i places earlier, and 0 if that place lies before the text or in an earlier document. starts
    (B,T) is True where a document starts.
    """
    slots = np.zeros(ids.shape, np.int64)
    for b, t in np.ndindex(*ids.shape):
        began = max(np.flatnonzero(starts[b, : t + 1]), default=0)
        numbers = [0] * len(factors)
        for i in range(min(len(factors), t - began + 1)):
            numbers[i] = int(ids[b, t - i]) + 1
        slots[b, t] = slot_of(numbers, factors, total, rows)
    return slots


unit.mistakes("""
takes: medium, 18 minutes
hint: For i = 0 … n - 1: shift the ids i places to the right, and set to 0 whatever comes from
    | before the document. factors[i] times that, mod p, is one summand.
hint: A running count of starts numbers the documents. The id i places earlier belongs to yours if
    | its number is yours: compare the numbers with themselves, shifted as the ids are.
after: Several documents lie in one row of a batch, and a row of the table should not learn the seam
    | between two that chance put side by side; minimal/model/ngram.py: last_ids does not know
    | documents and looks through. minimal/model/ngram.py: hashed takes each product modulo p,
    | because the sum of several could pass what 64 bits hold. README's question: attention can
    | learn to give another document little weight, while whoever names a table's row writes it.
in: slot_of
12 | your slots look through the start of a document, into another: what stands before it is 0
     began = max(np.flatnonzero(starts[b, : t + 1]), default=0) => began = 0
18 | id 0 and no id at all look alike in yours: ids are counted from 1 here
     int(ids[b, t - i]) + 1 => int(ids[b, t - i])
18 | factors[0] belongs to the id here, factors[1] to the one before it, and so on
     slot_of(numbers, => slot_of(numbers[::-1],
18 | a document's first id belongs to it: the place where it starts counts
     : t + 1]), => : t + 1]) + 1,
18 | x_i is the id i places EARLIER; you took the id here for all
     ids[b, t - i] => ids[b, t]
18 | total is missing: it is added before the remainders
     + int(total) =>
18 | the remainder by p comes first, then that by rows: yours is missing
     % PRIME =>
18 | the remainder by rows is missing: a slot is below rows
     % rows =>
18 | p is the prime 2^31 - 1, not 2^31
     PRIME => 2**31
18 | before a document stands 0, not an id: counting from 1 is for ids
     [0] => [1]
""")


@drawn
def latent_cache(r, S, large=False):
    n = int(r.choice(S))
    q, q_turned = normals(r, (3, 5), (3, 2))
    latent, turned = normals(r, (n, 6), (n, 2))
    up_k, up_v, out = normals(r, (3, 5, 6), (3, 7, 6), (8, 3, 7))
    return (q * 60 if large else q), q_turned, latent, turned, up_k, up_v, out


@unit.exercise(
    Part("a short past", 8, latent_cache([3, 4, 5])),
    Part("a longer past, large scores", 12, latent_cache([9, 11, 13], large=True)),
)
def latent_step(q, q_turned, latent, turned, up_k, up_v, out):
    """One decode step of latent attention, absorbed: no key and no value of the past is made.

    q (H,D), q_turned (H,R): the query. latent (S,C), turned (S,R): what the cache keeps, one of
    each for all heads. up_k (H,D,C), up_v (H,E,C), out (M,H,E): the matrices of contents, of
    values, and the way out. A score is the sum of q[h] . (up_k[h] latent[s]) and
    q_turned[h] . turned[s], over the root of D + R.
    Returns (weights (H,S), mixed (H,C) the weighted sums of latents, y (M,)).
    """
    (H, D), R = q.shape, q_turned.shape[1]
    content = np.array([[q[h] @ (up_k[h] @ row) for row in latent] for h in range(H)])
    position = np.array([[q_turned[h] @ row for row in turned] for h in range(H)])
    scores = (content + position) / np.sqrt(D + R)
    weights = softmax(scores)
    mixed = weights @ latent
    heads = np.array([out[:, h] @ (up_v[h] @ mixed[h]) for h in range(H)])
    return weights, mixed, heads.sum(0)


unit.mistakes("""
takes: hard, 16 minutes
hint: A head's query joins its up_k: (H,D) and (H,D,C) make (H,C), and what meets the cache is the
    | latent. All heads read ONE turned key a position.
hint: mixed[h] is the softmax-weighted sum of latents. Values come afterwards: up_v[h] @ mixed[h] is
    | head h's output of width E, and out[:, h] takes it to the stream.
after: A position costs one latent and one turned key, whatever the number of heads; the turned key
    | is what no matrix can join, because it depends on the distance. In the package:
    | minimal/model/latent.py: Read.absorbed. README's question: joined, a head has M C numbers,
    | apart E (M + C), so joining pays only where a latent is narrower than about a head: with a
    | latent of 512, heads of 128 and a width of 5,120 it would be 3.6 times the work.
20 | a query has D + R features: divide by the root of D + R
     np.sqrt(D + R) => np.sqrt(D)
20 | a score is the sum of two products: of the contents, and of what turns with positions
     content + position => content
20 | the scores are not divided by the root of D + R
     / np.sqrt(D + R) =>
20 | your softmax runs over the heads; the weights of each HEAD sum to one
     softmax(scores) => softmax(scores, 0)
20 | weights are wanted: the softmax of the scores
     return weights => return scores
20 | scores are over the root of D + R, the widths of a query, whatever the latent's
     np.sqrt(D + R) => np.sqrt(latent.shape[1] + R)
20 | every head has a mixture of its own; you averaged them on the way out
     @ mixed[h] => @ mixed.mean(0)
20 | the root of the SUM D + R, not the sum of two roots
     np.sqrt(D + R) => (np.sqrt(D) + np.sqrt(R))
20 | y is one vector of M numbers: the heads are added up
     heads.sum(0) => heads.T
""")


def rotated(x, cos, sin):
    """A row of two halves, turned by one place."""
    first, second = np.split(x, 2, -1)
    return np.concatenate([first * cos + second * sin, second * cos - first * sin], -1)


@drawn
def step(r, S, H, G):
    """A new token at place S, and the turned keys of all places before it."""
    B, C, D = 2, 7, 6
    h, w_q, w_k, kept = normals(r, (B, C), (H * D, C), (G * D, C), (B, S, G, D))
    angles = S * np.array([1.0, 0.4, 0.1])
    return h, w_q, w_k, normed(kept), np.cos(angles), np.sin(angles)


@unit.exercise(
    Part("a key for every head", 8, [step(4, 3, 3), step(3, 2, 2), step(1, 3, 3)]),
    Part("shared keys", 10, [step(4, 4, 2), step(3, 4, 2), step(2, 6, 3)]),
)
def turned_step(h, w_q, w_k, kept, cos, sin):
    """One decode step of attention whose keys are its values: (y (B,H,D), kept (B,S+1,G,D)).

    h (B,M): the new token, normed. w_q (H D,M), w_k (G D,M). kept (B,S,G,D): the keys of the places
    before it, turned and normed. cos, sin (D/2,): of the new place, which turns (x1, x2), the two
    halves of a row, into (x1 cos + x2 sin, x2 cos - x1 sin). q and k of the new token are W h, by
    head, turned, and normed over D (by the root of the mean square). Scores are over the root of D;
    the new token sees itself. y is what is read of the keys, turned back by the new place.
    """
    (B, _, G, D), H = kept.shape, len(w_q) // kept.shape[3]
    q = (h @ w_q.T).reshape(B, H, D)
    k = (h @ w_k.T).reshape(B, G, D)
    query = normed(rotated(q, cos, sin))
    key = normed(rotated(k, cos, sin))
    left = np.concatenate([kept, key[:, None]], 1)
    y = np.zeros((B, H, D))
    for b, head in np.ndindex(B, H):
        rows = left[b, :, head // (H // G)]
        scores = rows @ query[b, head] / np.sqrt(D)
        y[b, head] = softmax(scores) @ rows
    return rotated(y, cos, -sin), left


unit.mistakes("""
takes: medium, 20 minutes
hint: Queries and keys first: W h, by head, turned by cos and sin, normed. Then the new key goes
    | behind the old ones, and attention reads these rows twice, as keys and as values.
hint: y = weights @ keys, then the turn once more with -sin in the place of sin. For shared keys
    | repeat_interleave(H // G) makes a key for every query head.
after: One row a token and layer is all that is kept: half of the cache, and a matrix less. Turning
    | is linear, so one turn of the sum does what a turn of each row of the past would. README's
    | question: the only key is turned back by the place by which it was turned, so y is the normed
    | W_k h, wherever the text begins. In the package: minimal/model/values.py: TurnedKey and
    | minimal/model/attention.py: TurnedBack.
18 | y is not turned back: what is read depends on where in the text it stands
     rotated(y, cos, -sin) => y
18 | you turned y on, not back: by -sin
     -sin => sin
18 | the new token sees itself, too: its key joins those that are kept before anybody reads
     rows = left[b => rows = kept[b
18 | the query is turned by its place, too
     rotated(q, cos, sin) => q
18 | the new key is turned by its place, as those that are kept have been
     rotated(k, cos, sin) => k
18 | the norm of the query or of the key is missing
     query = normed => query =
     key = normed => key =
18 | scores are over the root of D
     / np.sqrt(D) =>
10 | query head h reads key head h // (H / G): neighbours share a key; yours take turns
     head // (H // G) => head % G
18 | the newest key is kept LAST
     [kept, key[:, None]] => [key[:, None], kept]
18 | no norm of y is asked for
     softmax(scores) @ rows => normed(softmax(scores) @ rows)
18 | what is kept is the key that came in: the new one must be among them now
     , left => , kept
""")


@drawn
def heard(r, T, S, H, G):
    y, v, a = normals(r, (2, T, H, 5), (2, S, G, 5), (H,))
    return y, v, a


@unit.exercise(
    Part("all places, a value a head", 4, [heard(4, 4, 3, 3), heard(3, 3, 2, 2)]),
    Part("the last places, shared values", 8, [heard(2, 5, 4, 2), heard(3, 4, 6, 2)]),
)
def shares_taken(y, v, a):
    """(B,T,H,D): what was heard, less a share of what lies along the own value.

    y (B,T,H,D): what the last T of S places have heard. v (B,S,G,D): the values of all S places. a
    (H,): head h takes out tanh(a[h]) of the part of y that lies along v, the value of the same
    place that head h reads.
    """
    (T, H), G = y.shape[1:3], v.shape[2]
    own = v[:, v.shape[1] - T :][:, :, np.arange(H) // (H // G)]
    product = (y * own).sum(-1, keepdims=True)
    size = (own**2).sum(-1, keepdims=True)
    along = product / size * own
    return y - np.tanh(a)[:, None] * along


unit.mistakes("""
takes: easy, 7 minutes
hint: Which value is the own one? Of S visible places the last T are the new ones. Give every query
    | head a copy of the value that it reads: (B,T,H,D).
hint: u = own / its length; y - tanh(a)[:, None] * (y * u).sum(-1, keepdim=True) * u.
after: At a = 0 the layer is standard attention, so the share is learned or it is nothing; at 1 it
    | would be XSA as its paper has it, which tanh only comes near. The own value is asked for by
    | place and not by row, minimal/model/tape.py: Tape.rows_of, so that it is there for rows of
    | tables, too; minimal/model/attention.py: Exclusive is the plan. Public reports disagree on
    | whether a learned share is better than the whole.
 8 | the new places are the LAST of those that are visible; you took the values of the first
     v.shape[1] - T : => :T
 8 | query head h reads value head h // (H / G): neighbours share one; yours take turns
     np.arange(H) // (H // G) => np.arange(H) % G
12 | the share is tanh of a, not a itself and no sigmoid
     np.tanh(a) => a
     np.tanh(a) => (1 / (1 + np.exp(-a)))
12 | a is forgotten: each head takes out a share of its own
     np.tanh(a) => np.ones_like(a)
12 | v is not of length 1: divide by v . v
     / size =>
12 | v comes in twice: divide by its length twice
     / size => / np.sqrt(size)
12 | the share is taken out; you added it
     return y - => return y +
12 | every head has a product of its own: yours runs over the heads, too
     (y * own).sum(-1, => (y * own).sum((-2, -1),
     and: (own**2).sum(-1, => (own**2).sum((-2, -1),
12 | that is what is taken out; what is left is wanted
     return y - => return
12 | you took out a share of the whole value, whatever was heard: only what lies along it goes
     product / size * own => own
""")


@drawn
def near(answer, which, right):
    said = float(need(answer, one=0, two=0)[which])
    refuse(said > 1, "a share, not per cent: 0.5, not 50")
    refuse(not 0.85 * right < said < 1.15 * right)


ONE = 1 - math.exp(-1e5 / 1e6)
TWO = (1 - math.exp(-1e5 / 5e5)) ** 2


@unit.exercise(
    Part("one hash", 3, None, near(0, ONE)),
    Part("two hashes, the same memory", 3, None, near(1, TWO)),
)
def predict_two_hashes():
    """Predict two shares. 100,000 different names. (1) One hash gives each of them one of 1,000,000
    rows: which share of the names has a row that another name uses, too? (2) The same memory as two
    tables of 500,000 rows, each with a hash of its own: which share of the names shares its row
    in BOTH tables? Within 15 % counts.
    """
    return ONE, TWO


unit.mistakes("""
takes: easy, 4 minutes
off for one hash: more than 15 % off: a name has 99,999 rivals
off for two hashes, the same memory: more than 15 % off: with half the rows each hash is worse, and
    | both must fail
hint for one hash: 100,000 names, a million rows: how likely does a second name fall on mine?
hint for one hash: 1 - exp(-names / rows).
hint for two hashes, the same memory: Each table has 500,000 rows now.
hint for two hashes, the same memory: The share for one such table, squared.
after: In the large table 9.5 per cent of the names share a row; in a half as large one 18.1 per
    | cent do, and under both hashes 3.3 per cent. So two small tables separate names better than a
    | large one, until they are crowded. notebooks/course/collisions.py: collisions counts it for a
    | text; the vectors of both hashes are narrower by half, which the count does not see.
3 | more than 15 % off: with half the rows
    TWO => 0.01
6 | a share, not per cent
    => (9.5, 3.3)
""")


FALSE = 3
TRUE = {
    1: "statement 1 is true: a sum over d can be made before the sum over c",
    2: "statement 2 is true: hashes of other factors send the same two names elsewhere",
    4: "statement 4 is true: a number that is the same in every summand leaves the sum",
}


def refuted(answer):
    which, A, v, g = need(answer, which=0, A=2, v=1, g=1)
    which = float(which)
    refuse(which in TRUE, TRUE.get(which, ""))
    refuse(which != FALSE, "which must be the number of a statement, 1 to 4")
    T = len(v)
    refuse(not 2 <= T <= 16, "wanted 2 to 16 tokens")
    refuse(A.shape != (T, T) or g.shape != (T,), "wanted A (T,T), v (T,) and g (T,)")
    refuse((A < 0).any() or np.abs(A.sum(1) - 1).max() > 1e-4, "every row of A is a share: sum 1")
    refuse(np.abs(np.triu(A, 1)).max() > 1e-6, "A must be causal: no weight on later tokens")
    refuse(g.min() <= 0 or g.max() >= 1, "a sigmoid lies between 0 and 1")
    refuse(g.max() - g.min() < 1e-3, "your gate is the same for all tokens: see statement 4")
    gap = np.abs(g * (A @ v) - A @ (g * v)).max()
    refuse(gap < 1e-3, "both sides are equal here: let a token look at one with another gate")


UNIFORM = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]


@unit.exercise(Part("the false one, refuted", 8, None, refuted))
def false_counter_example():
    """Find the error. One of these four is false. Return (which, A, v, g): its number, and, to
    refute the false one, a causal map A (T,T) whose rows sum to 1, values v (T,) and gates g (T,)
    between 0 and 1, T at most 16.

    1. Scores do not change when W_UK is taken from the keys to the queries. 2. Two names that share
    a row under one hash may have rows of their own under another. 3. With g_t the gate of token t,
    gating what attention has collected, g_t (A v)_t, is collecting what was gated, (A (g v))_t.
    4. That is so if all tokens have the same gate.
    """
    return 3, UNIFORM, np.array([1.0, 2.0, 4.0]), np.array([0.2, 0.5, 0.8])


unit.mistakes("""
takes: easy, 6 minutes
hint: Write each as an equation with two sums. In which of them would a factor have to leave a sum
    | although it depends on what is summed over?
hint: Two tokens are enough. The second looks at the first, whose gate is another.
after: The gate on the way out belongs to the token that looks, a gate on values to the token that
    | is looked at; only a gate that all share can change sides. That is why a gate on values is a
    | source in the package, minimal/model/values.py: Gate, and a gate on the way out a way of
    | reading, minimal/model/attention.py: Gated.
8 | statement 1 is true
    return 3 => return 1
8 | statement 2 is true
    return 3 => return 2
8 | statement 4 is true
    return 3 => return 4
    and: [0.2, 0.5, 0.8] => [0.5, 0.5, 0.5]
8 | both sides are equal here
    UNIFORM => np.eye(3)
""")


@drawn
def going_on(r, n, T):
    kept = r.integers(0, 40, size=(3, n - 1))
    ids = r.integers(0, 40, size=(3, T))
    starts = np.zeros((3, T), bool)
    starts[0, -1] = starts[1, 0] = True
    return kept, ids, starts, *hash_of(r, n)


@unit.exercise(
    Part("one id at a time", 8, [going_on(3, 1), going_on(4, 1), going_on(3, 1)]),
    Part("some ids at once", 10, [going_on(4, 2), going_on(3, 4), going_on(5, 3)]),
)
def slots_go_on(kept, ids, starts, factors, total, rows):
    """Stretch: document_slots, some ids at a time. Returns (slots (B,T), kept (B,n-1)).

    kept (B,n-1) is what an earlier call returned: for the last n - 1 places, oldest first, 1 plus
    the id there, and 0 where the document had not begun. ids and starts (B,T) are new, T any
    number. A whole text cut into any pieces, with kept all 0 at first, gets document_slots' slots.
    """
    slots, left = np.zeros(ids.shape, np.int64), np.zeros(kept.shape, np.int64)
    for b in range(len(ids)):
        state = list(kept[b])
        for t in range(ids.shape[1]):
            if starts[b, t]:
                state = [0] * len(state)
            new = ids[b, t] + 1
            state = [*state, new]
            slots[b, t] = slot_of(state[::-1], factors, total, rows)
            state = state[1:]
        left[b] = state
    return slots, left


unit.mistakes("""
takes: stretch, 24 minutes
hint: Put kept and the new ids plus 1 side by side: (B, n - 1 + T). Every window of n of them is one
    | name, read from its end. What is to be kept is the last n - 1.
hint: A start at t makes everything to the left of t 0, for places from t on: for the slots after
    | it, and for what is kept. Go place by place if several starts are too many at once.
after: A state of n - 1 numbers a text is all that a bank of n-grams must keep beside the rows
    | themselves, and no layer's values. The package keeps all ids, minimal/model/cache.py: Cache,
    | because kernels read slots of the whole past, and makes the slots of new places from them.
    | That decoding equals the whole pass is a test of every plan.
in: slot_of
18 | you returned the numbers that came in: the new ids must be among them now
     left[b] = state => left[b] = kept[b]
18 | your state is turned round: oldest first, as it came in
     left[b] = state => left[b] = state[::-1]
18 | what you keep reaches back through the start of a document: before it there is nothing, 0
     left[b] = state => left[b] = [*kept[b], *(ids[b] + 1)][ids.shape[1] :]
18 | `kept` holds numbers that count from 1 already: only the new ids get 1 more
     list(kept[b]) => list(kept[b] + 1)
18 | factors[0] belongs to the NEWEST id; yours are turned round
     slot_of(state[::-1], => slot_of(state,
18 | ids count from 1 in a slot: each gets 1 more
     ids[b, t] + 1 => ids[b, t]
18 | your slots look through the start of a document: before it there is nothing, 0
     if starts[b, t]: => if False:
18 | a document's first id is a part of its own names
     [*state, new] => [*state, 0 if starts[b, t] else new]
18 | you forgot `kept`: the ids of earlier calls come before the new ones
     list(kept[b]) => [0] * len(kept[b])
18 | p is 2**31 - 1, one less than yours
     PRIME => 2**31
18 | `total` is missing in the sum
     + int(total) =>
18 | mod rows is missing
     % rows =>
18 | what you keep are ids; `kept` holds 1 more than each
     return slots, left => return slots, left - 1
""")
