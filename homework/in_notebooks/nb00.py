"""Notebook 00: three small things with tensors, a merge of byte pairs, and bits per byte."""

from collections import Counter

import numpy as np

from homework.marking import Part, Unit, Wrong, normals

unit = Unit("nb00_start_here", "Start here", "The exercises of notebook 00.")

LN2 = float(np.log(2))


# ---- three small things with tensors -------------------------------------------------------------


def rows(T, S):
    return lambda r: normals(r, (2, T, 3, 4), (2, S, 3, 4))


@unit.exercise(
    Part("as many queries as keys", 1, rows(4, 4)),
    Part("fewer queries than keys", 1, rows(2, 5)),
    Wrong(
        "keys in rows",
        2,
        "your rows are keys: wanted [b, h, t, s] with the query t before the key s",
        dict(turned=True),
    ),
    Wrong(
        "mean for sum",
        2,
        "you took the mean over the features; a product of vectors is the sum",
        dict(mean=True),
    ),
    Wrong(
        "heads before queries",
        2,
        "your results are [b, t, h, s]; heads stand next to the texts: wanted [b, h, t, s]",
        dict(late=True),
    ),
    hints=[
        'torch.einsum takes a letter for each axis: "bthd,bshd->…". Which letters should be left?',
        'The letter d is summed, so it is missing on the right: "bthd,bshd->bhts".',
    ],
    level="easy",
    minutes=3,
)
def products(q, k, *, turned=False, mean=False, late=False):
    """q (B, T, H, D), k (B, S, H, D) -> (B, H, T, S): every query times every key, in each head."""
    (B, T, H, D), S = q.shape, k.shape[1]
    found = np.zeros((B, H, T, S))
    for b, h, t, s in np.ndindex(B, H, T, S):
        found[b, h, t, s] = sum(q[b, t, h, d] * k[b, s, h, d] for d in range(D))
    found = found / D if mean else found
    if late:
        return found.transpose(0, 2, 1, 3)
    return found.transpose(0, 1, 3, 2) if turned else found


def by_hand(made, z):
    if any("softmax" in x.operation for x in made):
        return "torch.softmax made them: here exp, a sum and a division do"
    return ""


@unit.exercise(
    Part("small scores", 1, lambda r: normals(r, (2, 3, 4))),
    Part("scores in the hundreds", 1, lambda r: (500 * r.normal(size=(3, 5)) + 1000,)),
    Wrong(
        "over the wrong axis",
        2,
        "your columns sum to one; wanted every row of the last axis to sum to one",
        dict(axis=-2),
    ),
    Wrong(
        "over everything",
        2,
        "all your numbers together sum to one; wanted every row to sum to one: sum(-1, "
        "keepdim=True)",
        dict(axis=None),
    ),
    Wrong(
        "too large for exp",
        1,
        "exp(1000) is infinite: subtract every row's largest score before exp",
        dict(plain=True),
    ),
    hints=[
        "Three lines: subtract the largest, exp, divide by the sum; each along the last axis.",
        "z.amax(-1, keepdim=True) has shape (…, 1), so it can be subtracted from z (…, S).",
    ],
    level="easy",
    minutes=3,
    forbids=by_hand,
)
def softmax(z, *, axis=-1, plain=False):
    """z (…, S) -> weights (…, S): exp(z) over its sum along the last axis, for scores of any size.

    Without torch.softmax.
    """
    e = np.exp(z if plain else z - z.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def shares(T, V):
    def make(r):
        p = r.random((T, V)) + 0.1
        return p / p.sum(-1, keepdims=True), r.integers(0, V, T)

    return make


@unit.exercise(
    Part("as many positions as tokens", 1, shares(5, 5)),
    Part("more tokens than positions", 1, shares(4, 9)),
    Wrong(
        "the sign",
        2,
        "your losses are negative: a probability below 1 has a negative logarithm, and a loss is "
        "minus that",
        dict(sign=1),
    ),
    Wrong(
        "in bits",
        2,
        "you measured in bits (log2); nats are wanted: the natural logarithm",
        dict(log=np.log2),
    ),
    Wrong(
        "the mean at once",
        2,
        "you returned the mean; wanted a loss for every position",
        dict(mean=True),
    ),
    Wrong(
        "the first row alone",
        2,
        "you looked up all targets in the first row; position t has a row of its own, p[t]",
        dict(first=True),
    ),
    hints=[
        "p[t, targets[t]] for every t at once: index with two vectors.",
        "torch.arange(len(targets)) is the vector of all t.",
    ],
    level="easy",
    minutes=4,
)
def nats_of(p, targets, *, sign=-1, log=np.log, mean=False, first=False):
    """p (T, V) probabilities, targets (T,) token ids -> (T,): the loss -ln p of every target."""
    found = np.zeros(len(targets))
    for t, token in enumerate(targets):
        found[t] = sign * log(p[0 if first else t, token])
    return found.mean() if mean else found


# ---- byte pairs ----------------------------------------------------------------------------------


def some_words(r):
    """Words of symbols 1 to 4 and how often each occurs."""
    made = {}
    while len(made) < 6:
        word = tuple(int(x) for x in r.integers(1, 5, int(r.integers(2, 6))))
        made[word] = int(r.integers(1, 30))
    return (made,)


def rare_but_long(r):
    """A word that says one pair three times but stands once, and one that is frequent."""
    often = int(r.integers(5, 20))
    return ({(4, 3, 4, 3, 4, 3): 1, (1, 2): often, (2, 1): often - 2},)


def equals(r):
    """Three pairs are equally frequent, and the one with the smallest numbers is met last."""
    often = int(r.integers(3, 20))
    return ({(2, 3): often, (3, 4): often, (2, 1): often, (1, 4): 1},)


@unit.exercise(
    Part("one pair is the most frequent", 1, [rare_but_long, some_words, rare_but_long]),
    Part("several are equally frequent", 1, equals),
    Wrong(
        "every word once",
        2,
        "a word that stands 30 times in the text counts 30 times: add its number, not 1",
        dict(once=True),
    ),
    Wrong(
        "the first of equals",
        1,
        "of equally frequent pairs take the one with the smaller numbers, not the one met first",
        dict(tie=0),
    ),
    Wrong(
        "the largest of equals",
        1,
        "of equally frequent pairs take the one with the smaller numbers; yours has the larger",
        dict(tie=1),
    ),
    Wrong(
        "the rarest",
        2,
        "yours is the least frequent pair; wanted the most frequent",
        dict(rarest=True),
    ),
    hints=[
        "Count first: for every word, for every pair of neighbours, add how often the word stands. "
        "zip(word, word[1:]) gives the neighbours, collections.Counter the sums.",
        "Then max(pairs, key=…), where the key puts frequency first and small numbers second.",
        "max(pairs, key=lambda p: (pairs[p], -p[0], -p[1]))",
    ],
    level="easy",
    minutes=6,
)
def commonest_pair(words, *, once=False, tie=-1, rarest=False):
    """words {(symbol, …): how often} -> (left, right), the most frequent pair of neighbours.

    Symbols are whole numbers. Of equally frequent pairs the one with the smaller left symbol, then
    the smaller right one.
    """
    counts = Counter()
    for word, times in words.items():
        for i in range(len(word) - 1):
            counts[word[i], word[i + 1]] += 1 if once else times
    most = min(counts.values()) if rarest else max(counts.values())
    equal = [pair for pair in counts if counts[pair] == most]
    return {-1: min(equal), 0: equal[0], 1: max(equal)}[tie]


def a_word(r):
    """A word in which the pair (1, 2) stands twice at least."""
    parts = [(1, 2), (3,), (1, 2), (2,), (1,)]
    return sum((parts[i] for i in r.permutation(5)), (4,)), (1, 2), 9


def a_run(r):
    """A run of one symbol: pairs could overlap."""
    return (3, *[1] * int(r.integers(1, 4) * 2 + 1), 2), (1, 1), 9


@unit.exercise(
    Part("two different symbols", 1, a_word),
    Part("a run of one symbol", 1, a_run),
    Wrong(
        "the first one only",
        2,
        "you merged the first place only; every place in the word is merged",
        dict(places=1),
    ),
    Wrong(
        "keeps the right one",
        2,
        "the right symbol of a merged pair is still there: skip it, the new symbol stands for both",
        dict(keep=True),
    ),
    Wrong(
        "from the right",
        1,
        "in a run such as 1 1 1 pairs are taken from the left: the last 1 is left over, not the "
        "first",
        dict(back=True),
    ),
    Wrong(
        "symbols instead of places",
        2,
        "you merged wherever the left symbol stood; its neighbour must be the right one",
        dict(loose=True),
    ),
    hints=[
        "Walk through the word and keep a list of what is done. When does the next symbol join the "
        "last one of the list?",
        "If the list's last symbol is pair[0] and the next one is pair[1], replace the last by "
        "new; else append. A new symbol cannot be merged twice: it differs from pair[0].",
    ],
    level="easy",
    minutes=6,
)
def merge(word, pair, new, *, places=None, keep=False, back=False, loose=False):
    """word (symbol, …), pair (left, right) -> the word with `new` wherever the pair stands.

    From left to right; a symbol belongs to one pair only.
    """
    if back:
        turned = merge(word[::-1], pair[::-1], new)
        return turned[::-1]
    found, i, done = [], 0, 0
    while i < len(word):
        here = word[i] == pair[0] if loose else word[i : i + 2] == pair
        if here and (places is None or done < places):
            found.append(new)
            i, done = i + (1 if keep else 2), done + 1
        else:
            found.append(word[i])
            i += 1
    return tuple(found)


# ---- bits per byte -------------------------------------------------------------------------------


def losses(begins):
    def make(r):
        nats, count = 3 * r.random(8) + 0.5, r.integers(1, 7, 8)
        count[: 2 if begins else 0] = 0
        return nats, count

    return make


@unit.exercise(
    Part("every token stands for bytes", 1, losses(begins=False)),
    Part("two of them stand for no byte", 1, losses(begins=True)),
    Wrong(
        "nats a byte",
        2,
        "yours are nats per byte: a bit is ln 2 nats, so divide by ln 2",
        dict(unit=1.0),
    ),
    Wrong(
        "times ln 2",
        2,
        "you multiplied by ln 2: there are more bits than nats, so divide",
        dict(unit=1 / LN2),
    ),
    Wrong(
        "bits a token",
        2,
        "you divided by the number of tokens; divide by the bytes of the text",
        dict(a_token=True),
    ),
    Wrong(
        "a token without bytes counts",
        1,
        "a token that stands for no byte must not count above either: leave out its loss",
        dict(begins=True),
    ),
    hints=[
        "One fraction: the sum of all losses in bits above, the sum of all bytes below.",
        "nats[count > 0].sum() leaves out what stands for no byte; math.log(2) nats are a bit.",
    ],
    level="easy",
    minutes=5,
)
def bits_per_byte(nats, count, *, unit=LN2, a_token=False, begins=False):
    """nats (N,) losses of N tokens, count (N,) bytes of each -> a number.

    A token of no bytes, such as <|bos|>, counts for nothing: neither above nor below.
    """
    above = below = 0.0
    for loss, size in zip(nats, count, strict=True):
        if size > 0 or begins:
            above += loss / unit
            below += 1 if a_token else size
    return above / below
