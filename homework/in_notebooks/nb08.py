"""Notebook 08: what an encoder guesses, what is added to its values, and how it is scored."""

import math
from collections import Counter

import numpy as np

from homework.marking import Part, Unit, drawn

unit = Unit("nb08_bypass", "The BERT bypass", single=True)


@drawn
def thrown(r, special):
    """Texts with their dice; the dice are loaded, so that half of the pieces are chosen."""
    ids, others = r.integers(10, 99, (2, 60)), r.integers(100, 199, (2, 60))
    dice, ordinary = r.random((2, 60)) * 0.3, np.ones((2, 60), bool)
    if special:
        ordinary[:, [0, 20, -1]] = False
        dice[:, [0, 20]] = 0.05, 0.13  # one would be hidden, one swapped
    return ids, dice, ordinary, others, 4


@unit.exercise(
    Part("ordinary pieces", 1, thrown(False)), Part("with special pieces", 1, thrown(True))
)
def hide(ids, dice, ordinary, others, mask):
    """BERT's masking with one die in [0, 1) for each piece: all (B, T), `ordinary` of bool, `mask`
    a number.

    An ordinary piece is chosen if its die is below 0.15. In the lowest 80 % of that range it reads
    `mask`, in the next 10 % the piece in `others`, in the last 10 % it stays. -> (inputs, targets),
    where targets are the pieces that stood there, and -100 where none is chosen.
    """
    chosen = ordinary & (dice < 0.15)
    hidden, swapped = chosen & (dice < 0.12), chosen & (dice < 0.135)
    inputs = np.where(hidden, mask, np.where(swapped, others, ids))
    return inputs, np.where(chosen, ids, -100)


unit.mistakes(r"""
takes: medium, 8 minutes
hint: chosen = ordinary & (dice < 0.15). Of these, which are hidden, and which are swapped?
hint: Of 15 %, 80 % are 12 % and 10 % are 1.5 %: hidden below 0.12, swapped from there to 0.135.
hint: A chosen piece reads torch.where(dice < 0.12, mask, torch.where(dice < 0.135, others, ids)).
2 | 80 and 10 % are meant of the chosen 15 %: below 0.12 hides, below 0.135 swaps, below 0.15 leaves
    dice < 0.135 => dice < 0.13
    dice < 0.12 => dice < 0.8
    and: dice < 0.135 => dice < 0.9
    and: dice < 0.15 => dice < 1.0
2 | you hide all that are chosen; hidden are the lowest 80 % of these 15 %, below 0.12
    dice < 0.12 => dice < 0.15
2 | targets are `ids` where a piece is chosen, and -100 at all others
    np.where(chosen, ids, -100) => ids || chosen || np.where(chosen, inputs, -100)
    ids, -100 => -100, ids || ids, 0 || ids, mask
2 | you sorted the dice and took a share of the pieces; each is decided by its own die: below 0.15
    chosen = => dice = np.where(ordinary, dice, 1).argsort(1).argsort(1) + 0.5\ndice = dice /
  | ordinary.sum(1, keepdims=True)\nchosen =
1 | [CLS] and [SEP] are never chosen: look at `ordinary`
    ordinary & (dice < 0.15) => dice < 0.15
2 | in the last 10 % of the range a piece stays: it reads neither `mask` nor `others`
    np.where(swapped, others, ids) => np.where(swapped, others, np.where(chosen, mask, ids))
    chosen & (dice < 0.135) => chosen || chosen & (dice >= 0.135)
2 | every chosen piece is a target: one that is hidden, one that is swapped and one that stays
    np.where(chosen, ids => np.where(chosen & (inputs != ids), ids
    np.where(chosen, ids => np.where(chosen & (inputs == ids), ids
    np.where(chosen, ids => np.where(hidden | chosen & ~swapped, ids || np.where(hidden, ids
2 | chosen is a die BELOW 0.15
    dice < 0.15 => dice > 0.15
2 | those are the inputs alone; the targets are the second result
    return inputs, np.where(chosen, ids, -100) => return inputs
2 | the next 10 % are swapped: they read the piece in `others`
    np.where(swapped, others, ids) => ids
    dice < 0.12 => dice < 0.135
1 | [CLS] and [SEP] stay in the inputs as well: hide and swap only what is chosen
    chosen & (dice < 0.12), chosen & (dice < 0.135) => dice < 0.12, dice < 0.135
    chosen & (dice < 0.135) => (chosen | (dice > 0.12)) & (dice < 0.135)
2 | the LOWEST 80 % of the range are hidden: they read the mask
    mask, np.where(swapped, others, => others, np.where(swapped, mask,
    np.where(hidden, mask => np.where(hidden, others
    chosen & (dice < 0.12) => chosen & (dice < 0.135) & (dice >= 0.015)
    dice < 0.12 => dice >= 0.03
    and: dice < 0.135 => dice >= 0.015
""")


@drawn
def peaks(r, begins, ends, passage=range(3, 10)):
    """Scores of twelve positions: a question, a passage from 3 to 9, and what stands behind it; or
    all of them are the passage."""
    begin, end = 0.1 * r.normal(size=(2, 12)) - 5
    inside, shift = np.isin(np.arange(12), passage), int(r.integers(0, 2))
    for scores, bumps in ((begin, begins), (end, ends)):
        for place, height in bumps:
            scores[place + (shift if 3 < place < 8 else 0)] += height
    return begin, end, inside


@unit.exercise(
    Part(
        "an end before its beginning",
        1,
        [peaks([(7, 4), (4, 2)], [(5, 4), (8, 1)]), peaks([(6, 4)], [(4, 3), (7, 2)])],
    ),
    Part("an answer of one word", 1, peaks([(5, 4)], [(5, 4)])),
    Part(
        "an answer at the edge",
        1,
        [
            peaks([(3, 4)], [(9, 4)]),
            peaks([(0, 4)], [(11, 4)], range(12)),
            peaks([(3, 4)], [(3, 4)], range(3, 5)),
            peaks([(11, 4)], [(11, 4)], range(12)),
        ],
    ),
    Part(
        "peaks outside the passage",
        1,
        [
            peaks([(1, 4), (5, 2)], [(2, 4), (7, 2)]),
            peaks([(5, 4)], [(10, 4), (7, 2)]),
            peaks([(10, 4), (4, 2)], [(10, 4), (8, 2)]),
        ],
    ),
)
def best_pair(begin, end, inside):
    """The answer (first, last), two whole numbers: the pair with the largest begin[first] +
    end[last] of which last is not before first and both are inside the passage. All (T,); scores
    may be negative.
    """
    fits = np.triu(inside[:, None] & inside)
    scores = np.where(fits, begin[:, None] + end, -np.inf)
    first, last = divmod(int(scores.argmax()), len(end))
    return first, last


unit.mistakes(r"""
takes: medium, 8 minutes
hint: All pairs: begin[:, None] + end[None] is (T, T), rows for beginnings. Which are answers?
hint: Those where inside[:, None] & inside[None], and last >= first: put -inf on all others.
hint: divmod(scores.argmax().item(), T) turns the place in the flat square into a pair.
1 | your answer ends before it begins
    np.triu =>
2 | your answer ends before it begins, or lies outside the passage: you took the best of each alone
    first, last = divmod(int(scores.argmax()), len(end)) => first, last = begin.argmax(),
  | end.argmax()
4 | you counted the place of the end from the beginning; wanted its place among all T
    return first, last => return first, last - first || return first, last - first + 1
    first, last = divmod(int(scores.argmax()), len(end)) => first = int(np.where(inside, begin,
  | -np.inf).argmax())\nlast = int(scores[first, first:].argmax())
4 | places count from 0, and `last` is the last word's own, no slice's end behind it
    return first, last => return first, last + 1 || return first + 1, last + 1
1 | you left out the first or the last place, of all or of the passage: range(a, b) ends before b
    np.where(fits => np.where(fits & (np.arange(len(end)) < len(end) - 1)
    np.where(fits => np.where(fits & (np.arange(len(end)) < len(end) - 1)[:, None]
    np.where(fits => np.where(fits & (np.arange(len(end)) < inside.nonzero()[0][-1])
    np.where(fits => np.where(fits & (np.arange(len(end)) > 0)[:, None]
    np.where(fits => np.where(fits & (np.arange(len(end)) > inside.argmax())[:, None]
3 | both ends are one place in yours: an answer may end behind its beginning
    np.triu(inside[:, None] & inside) => np.diag(inside)
4 | those are places in the passage; wanted the places among all T, as in begin and end
    return first, last => return first - inside.argmax(), last - inside.argmax()
1 | your answer lies outside the passage; both of its ends must be inside
    inside[:, None] & inside => np.ones((len(end), len(end)), bool)
    inside[:, None] & inside => (np.arange(len(end)) >= inside.argmax())[:, None] & (inside | True)
2 | an answer may be one word long: last >= first, not >
    & inside) => & inside, 1)
1 | you chose one end first, then the other for it; another pair may have the larger SUM
    first, last = divmod(int(scores.argmax()), len(end)) => first = int(np.where(inside, begin,
  | -np.inf).argmax())\nlast = int(scores[first].argmax())
    first, last = divmod(int(scores.argmax()), len(end)) => last = int(np.where(inside, end,
  | -np.inf).argmax())\nfirst = int(scores[:, last].argmax())
4 | what is no answer has a score of 0 in yours, and that beats scores below zero: give it -inf
    -np.inf => 0.0
    + end, -np.inf => + end, np.where(np.tri(len(end), k=-1), 0, -np.inf)
    begin[:, None] + end => (begin * inside)[:, None] + end * inside
    and: inside[:, None] & inside => np.ones((len(end), len(end)), bool)
4 | you answer (0, 0) where all scores are below 0: the best of them must begin at -inf
    => 0, 0
3 | begin and end have changed places: begin[first] + end[last]
    begin[:, None] + end => end[:, None] + begin
3 | last is not BEFORE first; you kept the pairs the other way round
    np.triu => np.tril
4 | the largest SUM of the two scores is wanted, with their signs: no product, no abs
    begin[:, None] + end => begin[:, None] * end
1 | one end lies outside the passage: BOTH must be inside
    inside[:, None] & inside => inside[:, None] | inside || inside[:, None] & (inside | True)
    inside[:, None] & inside => (inside[:, None] | True) & inside
1 | you chose the two ends apart and sorted them; wanted the PAIR with the largest sum
    divmod(int(scores.argmax()), len(end)) => sorted(int(np.where(inside, x, -np.inf).argmax()) for
  | x in (begin, end))
""")


WORDS = "tower river north castle king old norman bridge".split()


def phrases(*pairs):
    """Pairs of answers as lists of words, drawn anew: letters stand for words."""

    @drawn
    def pair(r, *answers):
        names = dict(zip("abcdefgh", r.permutation(WORDS).tolist(), strict=True))
        return tuple([names[letter] for letter in answer] for answer in answers)

    return [pair(*answers.split("/")) for answers in pairs]


@unit.exercise(
    Part("no word twice", 1, phrases("abc/bd", "ab/abcd", "abcde/efgh", "ab/cd")),
    Part("words that occur twice", 1, phrases("abcabd/ab", "aab/aacd", "aaa/ab", "ab/aac")),
    Part("nothing is left", 1, phrases("/ab", "ab/", "/")),
)
def word_f1(said, wanted):
    """F1 of two answers, lists of words: 2 c / (p + g), with c words in common, as often as both
    have them, p words said and g wanted. 0.0 where there is nothing in common.
    """
    common = (Counter(said) & Counter(wanted)).total()
    p, g = len(said), len(wanted)
    return 2 * common / (p + g) if common else 0.0


unit.mistakes(r"""
takes: easy, 5 minutes
hint: Counter(said) & Counter(wanted) keeps of every word the smaller of its two counts.
hint: c = (Counter(said) & Counter(wanted)).total(), and where c is 0, so is F1.
1 | of every word the SMALLER of its two counts is common: bags (collections.Counter), no sets
    common = => said, wanted = set(said), set(wanted)\ncommon =
    (Counter(said) & Counter(wanted)).total() => len(set(said) & set(wanted))
    (Counter(said) & Counter(wanted)).total() => sum(word in wanted for word in said)
    (Counter(said) & Counter(wanted)).total() => sum(word in said for word in wanted)
    (Counter(said) & Counter(wanted)).total() => sum(said.count(word) for word in wanted)
    (Counter(said) & Counter(wanted)).total() => sum(min(x.count(w) for x in (said, wanted)) for w
  | in said)
    (Counter(said) & Counter(wanted)).total() => sum(n - 1 for n in Counter(said + wanted).values())
2 | yours is precision, c / p, or recall, c / g; F1 is 2 c / (p + g)
    2 * common / (p + g) => common / p || common / g
2 | you divided by something else; F1 is 2 c / (p + g), with all words of both
    2 * common / (p + g) => common / (Counter(said) | Counter(wanted)).total() || common / max(p, g)
    2 * common / (p + g) => common / (p * g) ** 0.5 || common / min(p, g)
    2 * common / (p + g) => 2 * common**2 / (p * g)
    (p + g) => (p * g) || (p + g - common)
2 | `//` leaves no fraction: divide with /
    2 * common / (p + g) => 2 * common // (p + g)
1 | two empty answers have no word in common: in the scorer of SQuAD v1 their F1 is 0
    else 0.0 => else float(said == wanted)
2 | F1 is 2 c / (p + g): the 2 or the division is missing in yours, or it is per cent
    2 * common => common || 200 * common
    2 * common / (p + g) => common
2 | you averaged precision and recall; F1 is 2 c / (p + g), their harmonic mean
    2 * common / (p + g) => (common / p + common / g) / 2
1 | the order of words plays no part: you compared place by place
    (Counter(said) & Counter(wanted)).total() => sum(a == b for a, b in zip(said, wanted))
3 | that is an exact match; F1 gives a share for words in common
    => float(said == wanted)
1 | p and g count words as often as they occur: len, not the size of a set
    len(said), len(wanted) => len(set(said)), len(set(wanted))
2 | 2 c / p + g is (2 c / p) + g: put brackets around p + g
    (p + g) => p + g
3 | c counts words that BOTH have: & of the two bags, not |
    & Counter => | Counter
""")


def normal_cdf(x):
    return (1 + np.vectorize(math.erf)(x / 2**0.5)) / 2


def stream(alpha):
    return lambda r: (r.normal(size=(2, 4, 5)), r.normal(size=(5, 5)), alpha)


@unit.exercise(
    Part("alpha of zero", 1, stream(0.0)),
    Part("alpha above and below zero", 1, [stream(0.5), stream(-0.4)]),
)
def with_bypass(x, W_V, alpha):
    """V' = X W_V + alpha relu(X): x (B, T, C), a matrix (C, C), a number -> (B, T, C)."""
    return x @ W_V + alpha * np.maximum(x, 0)


unit.mistakes("""
takes: easy, 2 minutes
hint: One sum: x @ W_V, and alpha times F.relu(x).
1 | you took relu of X W_V; the bypass is relu of X itself, past the matrix
    np.maximum(x, 0) => np.maximum(x @ W_V, 0)
    alpha * np.maximum(x, 0) => np.maximum(alpha * (x @ W_V), 0)
2 | relu acts on X alone; you took it of everything
    => np.maximum(x @ W_V + alpha * x, 0)
1 | X W_V keeps its weight of one; you gave it 1 - alpha
    x @ W_V => (1 - alpha) * (x @ W_V)
2 | X W_V is x @ W_V, of X itself, and the bypass is added to it
    W_V => W_V.T
    x @ W_V => x || np.maximum(x, 0) @ W_V
    x @ W_V + =>
2 | alpha scales relu(X) alone
    x @ W_V + alpha * => alpha * (x @ W_V) +
    => alpha * (x @ W_V + np.maximum(x, 0))
2 | alpha MULTIPLIES relu(X): yours has none, adds it, or makes it the slope below zero
    alpha * =>
    alpha * np.maximum(x, 0) => np.maximum(x + alpha, 0) || np.where(x > 0, x, alpha * x)
1 | what is added goes PAST the matrix; you sent it through W_V
    => (x + alpha * np.maximum(x, 0)) @ W_V
1 | you took relu(X) off; it is added
    + alpha => - alpha
1 | you took relu of alpha X, which turns round where alpha is below zero
    alpha * np.maximum(x, 0) => np.maximum(alpha * x, 0)
1 | relu(x) is x above zero and 0 below: no |x|, no step, no GELU or SiLU, no sigmoid, not x itself
    np.maximum(x, 0) => x || (x > 0) || abs(x) || np.minimum(x, 0)
    np.maximum(x, 0) => x * normal_cdf(x) || 1 / (1 + np.exp(-x)) || x / (1 + np.exp(-x))
""")


def runs_of(n, m, better=4):
    return lambda r: (70 + 3 * r.normal(size=n), 70 + better + 0.7 * r.normal(size=m))


@unit.exercise(
    Part("five runs a side", 1, [runs_of(5, 5), runs_of(5, 5, better=-4)]),
    Part("more runs on one side", 1, runs_of(3, 8)),
)
def welch_t(a, b):
    """Welch's t of two groups of scores, (n,) and (m,), b less a: the difference of the means over
    its standard error, the root of s_a² / n + s_b² / m. -> a number.
    """
    n, m = len(a), len(b)
    s_a, s_b = a.var(ddof=1), b.var(ddof=1)  # squares
    gap, square = b.mean() - a.mean(), s_a / n + s_b / m
    return gap / square**0.5


unit.mistakes("""
takes: easy, 5 minutes
hint: A mean's error has the square s² / n, s² over n - 1: a.var(). Two errors add up in squares.
hint: (b.mean() - a.mean()) / (a.var() / len(a) + b.var() / len(b)).sqrt()
1 | you pooled the two variances, as Student's test does; Welch's takes each over its own n
    s_a, s_b = a.var(ddof=1), b.var(ddof=1) => s_a = s_b = (n * a.var() + m * b.var()) / (n + m - 2)
2 | a variance between runs divides by n - 1; yours divides by n
    a.var(ddof=1), b.var(ddof=1) => a.var(), b.var()
2 | the error of a MEAN is smaller than the spread of a run: divide each variance by its n
    s_a / n + s_b / m => s_a + s_b || (s_a + s_b) / 2
2 | the SQUARES of two errors are added, a.var() / n; you added deviations over n, or errors
    a.var(ddof=1), b.var(ddof=1) => a.std(ddof=1), b.std(ddof=1)
    square**0.5 => ((s_a / n) ** 0.5 + (s_b / m) ** 0.5) || (s_a**0.5 + s_b**0.5)
2 | your sign is turned: wanted the mean of b less that of a
    b.mean() - a.mean() => a.mean() - b.mean()
2 | the root is missing: the standard error is the ROOT of the sum
    square**0.5 => square
2 | each variance is divided by its OWN number of runs; you divided their sum by all
    s_a / n + s_b / m => (s_a + s_b) / (n + m) || s_a + s_b / (n + m)
2 | Welch's t is of MEANS; you took sums, or medians
    b.mean() - a.mean() => b.sum() - a.sum() || np.sort(b)[(m - 1) // 2] - np.sort(a)[(n - 1) // 2]
2 | the error of one mean is missing: both groups are uncertain
    + s_b / m =>
    s_a / n + =>
2 | that is the spread of all scores together; the error is made of each group's own variance
    square**0.5 => np.std([*a, *b], ddof=1)
    s_a / n + s_b / m => np.var([*a, *b], ddof=1) * (1 / n + 1 / m)
1 | t has a sign: it is below zero where b's mean is the lower one
    gap / square => abs(gap) / square
2 | t is the difference of the means DIVIDED by its standard error: no product, neither alone
    gap / square**0.5 => gap || square**0.5 || gap * square**0.5
2 | b.mean() - a.mean() / … divides a's mean alone: put brackets around the difference
    gap / square**0.5 => b.mean() - a.mean() / square**0.5
2 | a variance is divided by n itself: no n - 1, no root, no square of n
    s_a / n + s_b / m => s_a / n**0.5 + s_b / m**0.5 || s_a / n**2 + s_b / m**2
    s_a / n + s_b / m => s_a / (n - 1) + s_b / (m - 1)
2 | two errors ADD up in squares; you took the mean or the difference of these
    s_a / n + s_b / m => (s_a / n + s_b / m) / 2 || abs(s_a / n - s_b / m)
2 | these runs are no pairs: Welch's t takes the mean and the variance of each group
    gap / square**0.5 => (b[: min(n, m)] - a[: min(n, m)]).mean() / ((b[: min(n, m)] - a[: min(n,
  | m)]).var(ddof=1) / min(n, m)) ** 0.5
1 | each variance is divided by its OWN number of runs: a's by n, b's by m
    s_a / n + s_b / m => s_a / m + s_b / n
    s_b / m => s_b / n
""")


@drawn
def leaning(r, slope, alpha):
    """Values that go with what is added, or against it, away from zero and of an odd shape."""
    x = r.normal(size=(2, 5, 3))
    relu = np.maximum(x, 0)
    return 1 + slope * relu + 0.3 * r.normal(size=x.shape), relu, alpha


@unit.exercise(
    Part("values that go against it", 1, leaning(-1.0, 0.6)),
    Part("values that go with it", 1, leaning(0.8, 0.3)),
)
def three_terms(V, R, alpha):
    """The three numbers that make up Var[V + alpha R]: the variance of V, the part that alpha R has
    for itself, and the part that the two have together, as a tuple. V and R (B,T,C), alpha a
    number; means are taken over all entries.
    """
    v, r, n = V - V.mean(), R - R.mean(), V.size
    of_v, of_r = (v * v).sum() / n, (r * r).sum() / n
    together = (v * r).sum() / n
    return of_v, alpha**2 * of_r, 2 * alpha * together


unit.mistakes("""
takes: easy, 6 minutes
hint: Take the mean off V and off R; the three terms are means of products of what is left.
hint: v, r = V - V.mean(), R - R.mean(); the last term is 2 * alpha * (v * r).mean().
2 | the last term is 2 alpha Cov(V, R), with its sign: a factor is missing in yours, or too many
    2 * alpha * together => 2 * together
    2 * alpha => alpha || 2 * alpha**2 || -2 * alpha || alpha**2
2 | R is multiplied by alpha once: alpha² Var R, and 2 alpha Cov(V, R)
    alpha**2 * of_r => of_r || alpha * of_r
    alpha**2 * of_r, 2 * alpha * together => of_r, together
    alpha**2 * of_r, 2 * alpha * together => alpha**4 * of_r, 2 * alpha**2 * together
2 | a variance is around the mean: take the mean of all entries off V and off R first
    V - V.mean(), R - R.mean() => V, R
    R - R.mean() => R
    V - V.mean() => V
    of_v, of_r = (v * v) => of_v, of_r = (V * V)
    (v * v).sum() / n, (r * r).sum() / n => (V * V).sum() / n, (R * R).sum() / n
2 | divide by the number of entries, as a mean does; .var() divides by one less: correction=0
    V.size => V.size - 1
    (v * v).sum() / n, (r * r).sum() / n => (v * v).sum() / (n - 1), (r * r).sum() / (n - 1)
2 | a covariance is around both means: take the mean off V and off R before you multiply
    (v * r) => (V * R)
2 | these are standard deviations; a variance is a mean of squares
    return of_v, alpha**2 * of_r => return of_v**0.5, alpha * of_r**0.5
2 | your last term is 0; what the two have together is the mean of the PRODUCTS v r
    * together => * 0
1 | a covariance has a sign: it is below zero where V and R go against each other
    * together => * abs(together)
2 | over ALL entries: one mean and one variance of the whole tensor, not one a token or a feature
    V - V.mean(), R - R.mean() => V - V.mean((0, 1)), R - R.mean((0, 1))
    V - V.mean(), R - R.mean() => V - V.mean(-1, keepdims=True), R - R.mean(-1, keepdims=True)
2 | one of your numbers is the variance of the sum; wanted are its three parts
    2 * alpha * together => np.var(V + alpha * R)
    return of_v => return np.var(V + alpha * R)
2 | your third number still holds alpha R's own part: that is the second
    2 * alpha * together => alpha**2 * of_r + 2 * alpha * together
2 | those are sums; a variance is a MEAN over all entries
    V.size => 1
2 | a covariance is the mean of the products v r: no correlation, no product of deviations
    * together => * together / (of_v * of_r) ** 0.5 || * (of_v * of_r) ** 0.5
""")
