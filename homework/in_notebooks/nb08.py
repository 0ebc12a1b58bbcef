"""Notebook 08: what an encoder guesses, what is added to its values, and how it is scored."""

import math
from collections import Counter

import numpy as np

from homework.marking import Part, Unit, Wrong, slip

unit = Unit("nb08_bypass", "The BERT bypass", "The exercises of notebook 08.")


# ---- masking -------------------------------------------------------------------------------------


def thrown(special):
    """Texts with their dice; the dice are loaded, so that half of the pieces are chosen."""

    def make(r):
        ids, others = r.integers(10, 99, (2, 60)), r.integers(100, 199, (2, 60))
        dice, ordinary = r.random((2, 60)) * 0.3, np.ones((2, 60), bool)
        if special:
            ordinary[:, [0, 20, -1]] = False
            dice[:, 0] = 0.05
        return ids, dice, ordinary, others, 4

    return make


def ranked(ids, dice, ordinary, others, mask):
    """As if the dice were to be sorted: a mistake."""
    inputs, wanted = ids.copy(), np.full(ids.shape, -100)
    for text in range(len(ids)):
        places = sorted(np.flatnonzero(ordinary[text]), key=lambda t: dice[text, t])
        chosen = places[: round(0.15 * len(places))]
        for rank, t in enumerate(chosen):
            wanted[text, t] = ids[text, t]
            if rank < round(0.8 * len(chosen)):
                inputs[text, t] = mask
            elif rank < round(0.9 * len(chosen)):
                inputs[text, t] = others[text, t]
    return inputs, wanted


def edged(hidden, swapped):
    """The dice's edges mistaken."""
    return lambda *inputs: hide(*inputs, edges=(hidden, swapped, 0.15))


@unit.exercise(
    Part("ordinary pieces", 1, thrown(False)),
    Part("with special pieces", 1, thrown(True)),
    Wrong(
        "shares of all",
        2,
        "80 % are meant of the chosen 15 %: a die below 0.12 hides, one below 0.135 swaps, one "
        "below 0.15 leaves",
        dict(edges=(0.8, 0.9, 1.0)),
    ),
    Wrong(
        "always hidden",
        2,
        "you hide all that are chosen; of every ten, one is swapped and one left as it is",
        dict(edges=(0.15, 0.15, 0.15)),
    ),
    Wrong(
        "what is left is no target",
        2,
        "a chosen piece that stays in place is a target as well; you guess only what was changed",
        dict(kept=False),
    ),
    Wrong(
        "targets everywhere",
        2,
        "only chosen pieces are targets; at all others the target is -100",
        dict(targets="all"),
    ),
    Wrong(
        "the mask as a target",
        2,
        "your targets hold what the model reads; it has to guess what stood there before",
        dict(targets="read"),
    ),
    Wrong(
        "ranked",
        2,
        "you sorted the dice and took a share of the pieces; each piece is decided by its own die "
        "alone: below 0.15 it is chosen",
        returns=ranked,
    ),
    Wrong(
        "special pieces chosen",
        1,
        "[CLS] and [SEP] are never chosen: look at `ordinary`",
        dict(spare=False),
    ),
    slip(
        2,
        "the last tenth of the chosen pieces stays as it is; yours reads the mask",
        lambda i, d, o, s, m: (
            np.where(o & (d < 0.15) & ~((0.12 <= d) & (d < 0.135)), m, hide(i, d, o, s, m)[0]),
            hide(i, d, o, s, m)[1],
        ),
    ),
    slip(
        2,
        "all chosen pieces that are not hidden are swapped; in the last 10 % the piece stays",
        edged(0.12, 0.15),
    ),
    slip(
        2,
        "where none is chosen the target is -100, which the loss leaves out",
        lambda i, d, o, s, m: (hide(i, d, o, s, m)[0], np.where(o & (d < 0.15), i, 0)),
    ),
    slip(
        2,
        "hidden and swapped have changed places: the lowest 80 % read the mask",
        lambda i, d, o, s, m: (
            np.where(o & (d < 0.12), s, np.where(o & (d < 0.135), m, i)),
            hide(i, d, o, s, m)[1],
        ),
    ),
    slip(
        2,
        "a chosen piece that is swapped is a target as well, and so is one that stays",
        lambda i, d, o, s, m: (hide(i, d, o, s, m)[0], np.where(o & (d < 0.12), i, -100)),
    ),
    slip(
        2,
        "your targets are the wrong way round: -100 stands where a piece is NOT chosen",
        lambda i, d, o, s, m: (hide(i, d, o, s, m)[0], np.where(o & (d < 0.15), -100, i)),
    ),
    slip(
        2,
        "chosen is a die BELOW 0.15",
        lambda i, d, o, s, m: (
            np.where(o & (d > 0.15) & (d < 0.12), m, np.where(o & (d > 0.15) & (d < 0.135), s, i)),
            np.where(o & (d > 0.15), i, -100),
        ),
    ),
    slip(
        2,
        "nothing is swapped in yours: the next 10 % read the piece in `others`",
        edged(0.12, 0.12),
    ),
    slip(
        2,
        "the next 10 % are swapped, not hidden: they read the piece in `others`",
        edged(0.135, 0.135),
    ),
    slip(
        2,
        "those are the inputs alone; the targets are the second result",
        lambda *given: hide(*given)[0],
    ),
    slip(
        2,
        "the lowest 80 % are hidden and the LAST 10 % stay; you swapped those",
        lambda i, d, o, s, m: (
            np.where(o & (d < 0.12), m, np.where(o & (0.135 <= d) & (d < 0.15), s, i)),
            hide(i, d, o, s, m)[1],
        ),
    ),
    hints=[
        "chosen = ordinary & (dice < 0.15). Of these, which are hidden, and which are swapped?",
        "Of 15 %, 80 % are 12 % and 10 % are 1.5 %: hidden below 0.12, swapped from there to "
        "0.135.",
        "torch.where(dice < 0.12, mask, torch.where(dice < 0.135, others, ids)) is what a chosen "
        "piece reads; torch.where(chosen, ids, -100) are the targets.",
    ],
    level="medium",
    minutes=8,
)
def hide(
    ids, dice, ordinary, others, mask, *, edges=(0.12, 0.135, 0.15), kept=True, targets="chosen",
    spare=True,
):  # fmt: skip
    """BERT's masking with one die in [0, 1) for each piece: all (B, T), `ordinary` of bool, `mask`
    a number.

    An ordinary piece is chosen if its die is below 0.15. In the lowest 80 % of that range it reads
    `mask`, in the next 10 % the piece in `others`, in the last 10 % it stays. -> (inputs, targets),
    where targets are the pieces that stood there, and -100 where none is chosen.
    """
    inputs, wanted = ids.copy(), np.full(ids.shape, -100)
    for place in np.ndindex(*ids.shape):
        chosen = dice[place] < edges[2] and (ordinary[place] or not spare)
        if chosen and dice[place] < edges[0]:
            inputs[place] = mask
        elif chosen and dice[place] < edges[1]:
            inputs[place] = others[place]
        changed = inputs[place] != ids[place]
        if targets == "all" or chosen and (kept or changed):
            wanted[place] = inputs[place] if targets == "read" else ids[place]
    return inputs, wanted


# ---- answers -------------------------------------------------------------------------------------


def peaks(begins, ends):
    """Scores of twelve positions: a question, a passage from 3 to 9, and what stands behind it."""

    def make(r):
        begin, end = 0.1 * r.normal(size=(2, 12)) - 5
        inside, shift = np.isin(np.arange(12), range(3, 10)), int(r.integers(0, 2))
        for scores, bumps in ((begin, begins), (end, ends)):
            for place, height in bumps:
                scores[place + (shift if place > 2 else 0)] += height
        return begin, end, inside

    return make


def greedy(begin, end, inside):
    """The best beginning, then the best end that it allows: a mistake."""
    first = int(np.where(inside, begin, -np.inf).argmax())
    later = inside & (np.arange(len(end)) >= first)
    return first, int(np.where(later, end, -np.inf).argmax())


def by_score(scores, fits):
    """The best pair by other scores, or of other places (T, T) that fit."""
    return np.unravel_index(np.where(np.triu(fits), scores, -np.inf).argmax(), scores.shape)


def one_end(fits):
    """The mistake of a pair of which one end alone has to be inside."""
    return slip(
        1,
        "one end lies outside the passage: BOTH must be inside",
        lambda b, e, inside: by_score(b[:, None] + e, fits(inside[:, None], inside[None])),
    )


@unit.exercise(
    Part(
        "an end before its beginning",
        1,
        [peaks([(7, 4), (4, 2)], [(5, 4), (8, 1)]), peaks([(6, 4)], [(4, 3), (7, 2)])],
    ),
    Part("an answer of one word", 1, peaks([(5, 4)], [(5, 4)])),
    Part(
        "peaks outside the passage",
        1,
        [
            peaks([(1, 4), (5, 2)], [(2, 4), (7, 2)]),
            peaks([(5, 4)], [(10, 4), (7, 2)]),
            peaks([(10, 4), (4, 2)], [(10, 4), (8, 2)]),
        ],
    ),
    Wrong("backwards", 1, "your answer ends before it begins", dict(order=False)),
    Wrong(
        "out of the question",
        1,
        "your answer lies outside the passage; both of its ends must be inside",
        dict(anywhere=True),
    ),
    Wrong(
        "two words at least",
        1,
        "an answer may be one word long: last >= first, not >",
        dict(least=1),
    ),
    Wrong(
        "greedy",
        1,
        "you took the best beginning first, then the best end behind it; another beginning may "
        "have the larger SUM: look at all pairs",
        returns=greedy,
    ),
    Wrong(
        "0 for what is no answer",
        3,
        "your answer is (0, 0), no answer at all: scores may all be negative, and then a 0 "
        "would win; what is no answer gets -inf, and the LARGEST sum is wanted",
        dict(hidden=0.0),
    ),
    slip(
        2,
        "begin and end have changed places: begin[first] + end[last]",
        lambda b, e, inside: best_pair(e, b, inside),
    ),
    slip(
        2,
        "last is not BEFORE first; you kept the pairs the other way round",
        lambda b, e, inside: best_pair(e, b, inside)[::-1],
    ),
    slip(
        3,
        "the largest SUM of the two scores is wanted, with their signs: not their product, nor "
        "a size without its sign",
        lambda b, e, inside: by_score(np.outer(b, e), inside[:, None] & inside),
    ),
    one_end(lambda first, last: first | last),
    one_end(lambda first, last: first & (last | True)),
    one_end(lambda first, last: (first | True) & last),
    slip(
        1,
        "you chose the two ends apart and sorted them; wanted the PAIR with the largest sum",
        lambda b, e, inside: tuple(
            sorted(int(np.where(inside, x, -np.inf).argmax()) for x in (b, e))
        ),
    ),
    slip(
        1,
        "you took the best end first, then the best beginning before it: look at all pairs",
        lambda b, e, inside: tuple(len(b) - 1 - n for n in greedy(e[::-1], b[::-1], inside[::-1]))[
            ::-1
        ],
    ),
    hints=[
        "All pairs at once: begin[:, None] + end[None] is (T, T), rows for beginnings. Which of "
        "its entries are answers?",
        "An entry counts where inside[:, None] & inside[None], and last >= first: put -inf on all "
        "others.",
        "divmod(scores.argmax().item(), T) turns the place in the flat square into a pair.",
    ],
    level="medium",
    minutes=8,
)
def best_pair(begin, end, inside, *, order=True, anywhere=False, least=0, hidden=-np.inf):
    """The answer (first, last), two whole numbers: the pair with the largest begin[first] +
    end[last] of which last is not before first and both are inside the passage. All (T,); scores
    may be negative.
    """
    best = (-np.inf, 0, 0)
    for first in range(len(begin)):
        for last in range(len(end)):
            fits = anywhere or (inside[first] and inside[last])
            fits = fits and (first + least <= last or not order)
            score = begin[first] + end[last] if fits else hidden
            if score > best[0]:
                best = (score, first, last)
    return best[1:]


WORDS = "tower river north castle king old norman bridge".split()


def phrases(said, wanted):
    """Two answers as lists of words, drawn anew: letters stand for words."""

    def make(r):
        names = dict(zip("abcdefgh", r.permutation(WORDS), strict=True))
        return [str(names[x]) for x in said], [str(names[x]) for x in wanted]

    return make


def common(said, wanted):
    return (Counter(said) & Counter(wanted)).total()


def f1_of(both, said, wanted):
    """F1 with another count of words in common."""
    return 2 * both / (len(said) + len(wanted)) if both else 0.0


@unit.exercise(
    Part(
        "no word twice",
        1,
        [
            phrases("abc", "bd"),
            phrases("ab", "abcd"),
            phrases("abcde", "efgh"),
            phrases("ab", "cd"),
        ],
    ),
    Part(
        "words that occur twice",
        1,
        [
            phrases("abcabd", "ab"),
            phrases("aab", "aacd"),
            phrases("aaa", "ab"),
            phrases("ab", "aac"),
        ],
    ),
    Part("nothing is left", 1, [phrases("", "ab"), phrases("ab", ""), phrases("", "")]),
    Wrong(
        "each word once",
        1,
        "a word that both have twice counts twice: compare bags (collections.Counter), not sets",
        dict(bags=False),
    ),
    Wrong(
        "precision",
        2,
        "yours is precision, the share of the said words that are right; F1 is 2 c / (p + g)",
        dict(of="said"),
    ),
    Wrong(
        "recall",
        2,
        "yours is recall, the share of the wanted words that were said; F1 is 2 c / (p + g)",
        dict(of="wanted"),
    ),
    Wrong(
        "over the union",
        2,
        "you divided by the words that occur in either; F1 divides by p + g and doubles c",
        dict(of="union"),
    ),
    Wrong(
        "nothing equals nothing",
        1,
        "two empty answers have no word in common: in the scorer of SQuAD v1 their F1 is 0",
        dict(empty=1.0),
    ),
    slip(2, "2 c / (p + g): the factor 2 is missing", lambda p, g: word_f1(p, g) / 2),
    slip(
        2,
        "you averaged precision and recall; F1 is 2 c / (p + g), their harmonic mean",
        lambda p, g: common(p, g) and (common(p, g) / len(p) + common(p, g) / len(g)) / 2,
    ),
    slip(
        1,
        "a said word counts at most as often as it is wanted",
        lambda p, g: f1_of(sum(w in g for w in p), p, g),
    ),
    slip(
        1,
        "a wanted word counts at most as often as it was said",
        lambda p, g: f1_of(sum(w in p for w in g), p, g),
    ),
    slip(
        1,
        "the order of words plays no part: you compared place by place",
        lambda p, g: f1_of(sum(a == b for a, b in zip(p, g)), p, g),
    ),
    slip(
        3,
        "that is an exact match; F1 gives a share for words in common",
        lambda p, g: float(p == g),
    ),
    slip(
        1,
        "c counts a word as often as both have it, not once",
        lambda p, g: f1_of(len(set(p) & set(g)), p, g),
    ),
    slip(
        1,
        "p and g count words as often as they occur: len, not the size of a set",
        lambda p, g: common(p, g) and 2 * common(p, g) / (len(set(p)) + len(set(g))),
    ),
    slip(2, "that is per cent; wanted a share of one", lambda p, g: 100 * word_f1(p, g)),
    slip(2, "that is c alone; F1 is 2 c / (p + g)", lambda p, g: common(p, g)),
    slip(
        2,
        "you divided by the longer answer; F1 is 2 c / (p + g)",
        lambda p, g: common(p, g) and common(p, g) / max(len(p), len(g)),
    ),
    hints=[
        "Counter(said) & Counter(wanted) keeps of every word the smaller of its two counts.",
        "c = (Counter(said) & Counter(wanted)).total(), and where c is 0, so is F1.",
    ],
    level="easy",
    minutes=5,
)
def word_f1(said, wanted, *, bags=True, of="both", empty=0.0):
    """F1 of two answers, lists of words: 2 c / (p + g), with c words in common, as often as both
    have them, p words said and g wanted. 0.0 where there is nothing in common.
    """
    if not bags:
        said, wanted = sorted(set(said)), sorted(set(wanted))
    if not said and not wanted:
        return empty
    both, left = 0, list(wanted)
    for word in said:
        if word in left:
            left.remove(word)
            both += 1
    if not both:
        return 0.0
    union = sum((Counter(said) | Counter(wanted)).values())
    over = {"both": (len(said) + len(wanted)) / 2, "said": len(said), "wanted": len(wanted)}
    return both / (union if of == "union" else over[of])


# ---- the bypass ----------------------------------------------------------------------------------


def normal_cdf(x):
    return (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2


def stream(alpha):
    return lambda r: (r.normal(size=(2, 4, 5)), r.normal(size=(5, 5)), alpha)


@unit.exercise(
    Part("alpha of zero", 1, stream(0.0)),
    Part("alpha above and below zero", 1, [stream(0.5), stream(-0.4)]),
    Wrong(
        "relu of the values",
        1,
        "you took relu of X W_V; the bypass is relu of X itself, past the matrix",
        dict(of="value"),
    ),
    Wrong(
        "relu of the sum",
        2,
        "relu acts on X alone; you took it of everything",
        dict(of="sum"),
    ),
    Wrong(
        "a share",
        1,
        "X W_V keeps its weight of one; you gave it 1 - alpha",
        dict(share=True),
    ),
    Wrong("no relu", 1, "relu is missing: only what is above zero is added", dict(of="input")),
    slip(
        2,
        "relu of X W_V is no bypass: X W_V stays, and alpha relu(X) is added",
        lambda x, W, alpha: np.maximum(x @ W, 0),
    ),
    slip(
        2,
        "your matrix is turned round: X W_V is x @ W_V",
        lambda x, W, alpha: x @ W.T + alpha * np.maximum(x, 0),
    ),
    slip(
        2,
        "alpha scales relu(X) alone; you scaled both terms",
        lambda x, W, alpha: alpha * (x @ W + np.maximum(x, 0)),
    ),
    slip(2, "alpha is missing: it scales relu(X)", lambda x, W, alpha: x @ W + np.maximum(x, 0)),
    slip(2, "the matrix is missing: V is X W_V", lambda x, W, alpha: x + alpha * np.maximum(x, 0)),
    slip(
        2,
        "alpha belongs to relu(X), not to X W_V",
        lambda x, W, alpha: alpha * (x @ W) + np.maximum(x, 0),
    ),
    slip(
        1,
        "what is added goes PAST the matrix; you sent it through W_V",
        lambda x, W, alpha: (x + alpha * np.maximum(x, 0)) @ W,
    ),
    slip(
        1, "you took relu(X) off; it is added", lambda x, W, alpha: x @ W - alpha * np.maximum(x, 0)
    ),
    slip(
        2,
        "X W_V is missing: the bypass is added to it",
        lambda x, W, alpha: alpha * np.maximum(x, 0),
    ),
    slip(
        1,
        "you took relu of alpha X, which turns round where alpha is below zero",
        lambda x, W, alpha: x @ W + np.maximum(alpha * x, 0),
    ),
    slip(
        1,
        "you took GELU, as BERT's feed-forward networks do; the bypass is relu",
        lambda x, W, alpha: x @ W + alpha * x * normal_cdf(x),
    ),
    slip(
        1,
        "you added alpha wherever x is above zero; relu(x) is x itself there",
        lambda x, W, alpha: x @ W + alpha * (x > 0),
    ),
    slip(1, "relu(x) is 0 below zero; you took |x|", lambda x, W, alpha: x @ W + alpha * abs(x)),
    slip(
        2,
        "X W_V takes X as it is; relu belongs to what is added",
        lambda x, W, alpha: np.maximum(x, 0) @ W + alpha * np.maximum(x, 0),
    ),
    slip(
        2,
        "relu stands in the wrong term: X W_V as it is, and alpha relu(X)",
        lambda x, W, alpha: np.maximum(x @ W, 0) + alpha * x,
    ),
    hints=["One sum: x @ W_V, and alpha times F.relu(x)."],
    level="easy",
    minutes=2,
)
def with_bypass(x, W_V, alpha, *, of="relu", share=False):
    """V' = X W_V + alpha relu(X): x (B, T, C), a matrix (C, C), a number -> (B, T, C)."""
    v = np.zeros(x.shape)
    for b, t, i in np.ndindex(*x.shape):
        v[b, t, i] = sum(x[b, t, c] * W_V[c, i] for c in range(x.shape[2]))
    added = {"relu": np.maximum(x, 0), "value": np.maximum(v, 0), "input": x, "sum": x}[of]
    out = (1 - alpha if share else 1) * v + alpha * added
    return np.maximum(out, 0) if of == "sum" else out


# ---- judging -------------------------------------------------------------------------------------


def runs_of(n, m, better=4):
    return lambda r: (70 + 3 * r.normal(size=n), 70 + better + 0.7 * r.normal(size=m))


def gap(a, b, middle=np.mean):
    return middle(b) - middle(a)


def square(runs):
    """The square of the standard error of a mean."""
    return np.var(runs, ddof=1) / len(runs)


@unit.exercise(
    Part("five runs a side", 1, [runs_of(5, 5), runs_of(5, 5, better=-4)]),
    Part("more runs on one side", 1, runs_of(3, 8)),
    Wrong(
        "one spread for both",
        1,
        "you pooled the two variances, as Student's test does; Welch's takes each over its own "
        "number of runs",
        dict(pooled=True),
    ),
    Wrong(
        "over n",
        2,
        "a variance between runs divides by n - 1; yours divides by n",
        dict(ddof=0),
    ),
    Wrong(
        "deviations of runs",
        2,
        "the error of a mean is smaller than the deviation of a run: divide each variance by its n",
        dict(error=False),
    ),
    Wrong(
        "deviations for variances",
        2,
        "you added standard deviations over n; their SQUARES, the variances, are added: a.var()",
        dict(squared=False),
    ),
    Wrong(
        "turned round", 2, "your sign is turned: wanted the mean of b less that of a", dict(sign=-1)
    ),
    slip(
        2,
        "the root is missing: the standard error is the ROOT of the sum",
        lambda a, b: gap(a, b) / (square(a) + square(b)),
    ),
    slip(
        2,
        "each variance is divided by its OWN number of runs; you divided their sum by all",
        lambda a, b: (
            gap(a, b) / ((np.var(a, ddof=1) + np.var(b, ddof=1)) / (len(a) + len(b))) ** 0.5
        ),
    ),
    slip(
        1,
        "each variance is divided by its OWN number of runs; you exchanged n and m",
        lambda a, b: gap(a, b) / (np.var(a, ddof=1) / len(b) + np.var(b, ddof=1) / len(a)) ** 0.5,
    ),
    slip(
        2,
        "n - 1 is in the variance already; divide it by n",
        lambda a, b: (
            gap(a, b)
            / (square(a) * len(a) / (len(a) - 1) + square(b) * len(b) / (len(b) - 1)) ** 0.5
        ),
    ),
    slip(
        2,
        "you added the two standard errors; their SQUARES are added",
        lambda a, b: gap(a, b) / (square(a) ** 0.5 + square(b) ** 0.5),
    ),
    slip(
        2,
        "you took medians; Welch's t is of means",
        lambda a, b: (
            gap(a, b, middle=lambda x: np.sort(x)[(len(x) - 1) // 2])
            / (square(a) + square(b)) ** 0.5
        ),
    ),
    slip(
        2,
        "the error of b's mean is missing: both groups are uncertain",
        lambda a, b: gap(a, b) / square(a) ** 0.5,
    ),
    slip(
        2,
        "that is the spread of all scores together; the error is made of each group's own variance",
        lambda a, b: gap(a, b) / np.std([*a, *b], ddof=1),
    ),
    slip(
        2,
        "you took mean deviations; s is the root of the mean SQUARE deviation, over n - 1",
        lambda a, b: gap(a, b) / sum(abs(x - x.mean()).mean() ** 2 / len(x) for x in (a, b)) ** 0.5,
    ),
    slip(
        1,
        "t has a sign: it is below zero where b's mean is the lower one",
        lambda a, b: abs(welch_t(a, b)),
    ),
    slip(
        2,
        "that is the difference of the means alone; divide it by its standard error",
        lambda a, b: gap(a, b),
    ),
    slip(
        2,
        "you divided by the spread of a RUN (Cohen's d); the error of a mean is smaller",
        lambda a, b: gap(a, b) / ((np.var(a, ddof=1) + np.var(b, ddof=1)) / 2) ** 0.5,
    ),
    slip(
        2,
        "under the root stand the SQUARES of the two standard errors",
        lambda a, b: gap(a, b) / (square(a) ** 0.5 + square(b) ** 0.5) ** 0.5,
    ),
    slip(
        2,
        "the error of a's mean is missing: both groups are uncertain",
        lambda a, b: gap(a, b) / square(b) ** 0.5,
    ),
    slip(
        2,
        "two errors ADD up in squares; you took the mean of the squares",
        lambda a, b: gap(a, b) / ((square(a) + square(b)) / 2) ** 0.5,
    ),
    hints=[
        "The error of a mean of n runs has the square s² / n, with s² over n - 1 (a.var() in "
        "PyTorch). Two errors add up in squares.",
        "(b.mean() - a.mean()) / (a.var() / len(a) + b.var() / len(b)).sqrt()",
    ],
    level="easy",
    minutes=5,
)
def welch_t(a, b, *, pooled=False, ddof=1, error=True, sign=1, squared=True):
    """Welch's t of two groups of scores, (n,) and (m,), b less a: the difference of the means over
    its standard error, the root of s_a² / n + s_b² / m. -> a number.
    """
    mean = [sum(x) / len(x) for x in (a, b)]
    squares = [sum((y - m) ** 2 for y in x) for x, m in zip((a, b), mean, strict=True)]
    variances = [s / (len(x) - ddof) for s, x in zip(squares, (a, b), strict=True)]
    if pooled:
        variances = [sum(squares) / (len(a) + len(b) - 2)] * 2
    variances = variances if squared else np.sqrt(variances)
    over = [len(a), len(b)] if error else [1, 1]
    return sign * (mean[1] - mean[0]) / np.sqrt(variances[0] / over[0] + variances[1] / over[1])


# ---- the variance of a sum -----------------------------------------------------------------------


def leaning(slope, alpha):
    """Values that go with what is added, or against it, away from zero and of an odd shape."""

    def make(r):
        x = r.normal(size=(2, 5, 3))
        relu = np.maximum(x, 0)
        return 1 + slope * relu + 0.3 * r.normal(size=x.shape), relu, alpha

    return make


@unit.exercise(
    Part("values that go against it", 1, leaning(-1.0, 0.6)),
    Part("values that go with it", 1, leaning(0.8, 0.3)),
    Wrong(
        "as printed",
        2,
        "the last term has lost its alpha, as in the report: it is 2 alpha Cov(V, R)",
        dict(cross="printed"),
    ),
    Wrong(
        "not halved, not doubled",
        2,
        "the last term stands twice, once for either order: 2 alpha Cov(V, R)",
        dict(cross="once"),
    ),
    Wrong(
        "alpha not squared",
        2,
        "Var[alpha R] is alpha squared times Var R",
        dict(power=1),
    ),
    Wrong(
        "not centred",
        2,
        "a variance is around the mean: take the mean of all entries off first",
        dict(centred=False),
    ),
    Wrong(
        "n - 1",
        2,
        "divide by the number of entries, as a mean does: correction=0",
        dict(ddof=1),
    ),
    Wrong(
        "two of three with n - 1",
        2,
        "divide by the number of entries, as a mean does: .var() divides by one less, unless you "
        "say correction=0",
        dict(ddof=1, cov_ddof=0),
    ),
    Wrong(
        "together not centred",
        2,
        "a covariance is around both means: take the mean off V and off R before you multiply",
        dict(cov_centred=False),
    ),
    Wrong(
        "deviations",
        2,
        "these are standard deviations; a variance is a mean of squares",
        dict(root=True),
    ),
    Wrong(
        "without factors",
        2,
        "the terms are those of V + alpha R: the second takes alpha squared, the third 2 alpha",
        dict(bare=True),
    ),
    Wrong(
        "alpha squared twice",
        2,
        "alpha enters the last term once, since only R is multiplied by it: 2 alpha Cov(V, R)",
        dict(cross="squared"),
    ),
    Wrong(
        "no sign",
        1,
        "a covariance has a sign: it is below zero where V and R go against each other",
        dict(cross="size"),
    ),
    Wrong(
        "feature by feature",
        2,
        "over ALL entries: one mean and one variance of the whole tensor",
        dict(each=True),
    ),
    slip(
        2,
        "over ALL entries: you took means over the features of each token",
        lambda V, R, alpha: three_terms(
            V - V.mean(-1, keepdims=True), R - R.mean(-1, keepdims=True), alpha
        ),
    ),
    slip(
        2,
        "your third number is the variance of the sum; wanted is what the two have together",
        lambda V, R, alpha: (*three_terms(V, R, alpha)[:2], np.var(V + alpha * R)),
    ),
    slip(
        2,
        "the sign of the last term is turned: it is below zero where the two go against each other",
        lambda V, R, alpha: (*three_terms(V, R, alpha)[:2], -three_terms(V, R, alpha)[2]),
    ),
    slip(
        2,
        "R is multiplied by alpha: its own part is alpha squared times Var R",
        lambda V, R, alpha: (np.var(V), np.var(R), three_terms(V, R, alpha)[2]),
    ),
    slip(
        2,
        "R is not centred in yours: take the mean off R as well as off V",
        lambda V, R, alpha: (
            np.var(V),
            alpha**2 * np.mean(R * R),
            2 * alpha * np.mean((V - V.mean()) * R),
        ),
    ),
    slip(
        2,
        "your third number still holds alpha R's own part: that is the second",
        lambda V, R, alpha: (
            *three_terms(V, R, alpha)[:2],
            three_terms(V, R, alpha)[1] + three_terms(V, R, alpha)[2],
        ),
    ),
    slip(
        2,
        "you took a correlation; a covariance is not divided by the deviations",
        lambda V, R, alpha: (
            *three_terms(V, R, alpha)[:2],
            2 * alpha * np.corrcoef(V.ravel(), R.ravel())[0, 1],
        ),
    ),
    slip(
        2,
        "0 would be right if V and R had nothing to do with each other; here they have",
        lambda V, R, alpha: (*three_terms(V, R, alpha)[:2], 0.0),
    ),
    hints=[
        "Take the mean off V and off R; the three terms are means of products of what is left.",
        "v = V - V.mean(); r = R - R.mean(); then (v * v).mean(), alpha**2 * (r * r).mean(), and "
        "2 * alpha * (v * r).mean().",
    ],
    level="easy",
    minutes=6,
)
def three_terms(
    V, R, alpha, *, cross="right", power=2, centred=True, cov_centred=True, ddof=0, cov_ddof=None,
    each=False, root=False, bare=False,
):  # fmt: skip
    """The three numbers that make up Var[V + alpha R]: the variance of V, the part that alpha R has
    for itself, and the part that the two have together, as a tuple. V and R (B,T,C), alpha a
    number; means are taken over all entries.
    """
    axis = (0, 1) if each else None
    v = V - (V.mean(axis) if centred else 0)
    r = R - (R.mean(axis) if centred else 0)
    n = V.size - ddof
    n_cov = n if cov_ddof is None else V.size - cov_ddof
    of_v, of_r = float((v * v).sum() / n), float((r * r).sum() / n)
    together = float((v * r).sum() / n_cov) if cov_centred else float((V * R).mean())
    last = {
        "right": 2 * alpha * together,
        "printed": 2 * together,
        "once": alpha * together,
        "size": 2 * alpha * abs(together),
        "squared": 2 * alpha**2 * together,
    }[cross]
    if bare:
        return of_v, of_r, together
    if root:
        return of_v**0.5, alpha * of_r**0.5, last
    return of_v, alpha**power * of_r, last
