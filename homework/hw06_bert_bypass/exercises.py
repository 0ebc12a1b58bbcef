"""hw06: does a shortcut around W_V help, and how would five runs tell?"""

import re
import string

import numpy as np

from homework.by_index import softmax
from homework.marking import Part, Unit, always, drawn, guesses, need, normals, refuse

unit = Unit(
    "hw06_bert_bypass",
    "How would five runs tell?",
    """Letters: B batch, T positions, H heads, D head width, C = H D model width. This is an
    encoder.""",
)


@drawn
def encoder(r, alpha):
    x, *matrices = normals(r, (2, 5, 6), *[(6, 6)] * 3)
    return x, *(0.6 * w for w in matrices), 2, np.array([5, 3]), np.array(alpha)


@unit.exercise(
    Part("without the bypass", 4, encoder([0.0, 0.0])), Part("with it", 10, encoder([0.5, -0.8]))
)
def bypass(x, wq, wk, wv, heads, lengths, alpha):
    """Encoder attention with the value bypass V' = x wv + alpha relu(x), an alpha for every head,
    no output matrix: x (B,T,C), matrices (C,C), alpha (heads,) -> (B,T,C).

    `heads` heads of width D = C // heads, scores over sqrt(D); lengths (B,) are whole numbers: keys
    behind a sequence's length are hidden; rows of padding queries are computed like any other.
    """
    out, D = np.zeros(x.shape), x.shape[2] // heads
    for b, h in np.ndindex(len(x), heads):
        part, n = slice(h * D, h * D + D), lengths[b]
        q, k, v = [x[b] @ matrix[:, part] for matrix in (wq, wk, wv)]
        y = np.maximum(x[b][:, part], 0)
        scores = q @ k.T / np.sqrt(D)
        scores[:, n:] = -np.inf
        out[b, :, part] = softmax(scores) @ (v + alpha[h] * y)
    return out


unit.mistakes(r"""
takes: medium, 16 minutes
hint: relu(x) has the full width C. Split it into heads like the values, head h with the entries h D
    | … h D + D - 1, and only then multiply by alpha, which has one number a head.
hint: Hide keys s >= lengths[b] with -inf before the softmax. Padding queries are rows like others.
after: A (x W_V + alpha relu(x)) = A x W_V + alpha A relu(x): attention weighs both terms, so what
    | is bypassed is the matrix W_V and not attention. Padding is hidden by -inf before the softmax;
    | one solution cuts the padded keys off, which is the same. In the package:
    | minimal/model/values.py: Bypass, mixed in by minimal/encoder/bypass.py: plan.
10 | you added alpha relu(x) to attention's output; it is added to the VALUES, which are weighed
     (v + alpha[h] * y) => v + alpha[h] * y
10 | you took relu of W_V x; the bypass is relu of x itself, past W_V
     np.maximum(x[b][:, part], 0) => np.maximum(v, 0)
14 | the bypass is scaled by alpha
     alpha[h] * =>
10 | every head has an alpha of its own: head h scales entries h D … h D + D - 1 of relu(x)
     alpha[h] => alpha[0]
14 | keys at or behind a sequence's length are padding: nobody may look at them
     scores[:, n:] = -np.inf => pass
14 | this is an encoder: a token also sees the tokens after it
     [:, n:] = -np.inf => [:, n:] = -np.inf\n    scores[np.triu_indices(len(scores), 1)] = -np.inf
10 | relu is missing: only what is above zero is added
     np.maximum(x[b][:, part], 0) => x[b][:, part]
14 | the scores are not divided by sqrt(D)
     / np.sqrt(D) =>
14 | the scores are divided by sqrt(D), the width of a HEAD, not by sqrt(C)
     np.sqrt(D) => np.sqrt(D * heads)
10 | every head has an alpha of its own: you took their mean
     alpha[h] => alpha.mean()
14 | a text of length n has the keys 0 … n - 1: yours sees one key of padding
     lengths[b] => lengths[b] + 1
14 | what is hidden has a score of -inf, not 0: exp(0) counts
     -np.inf => 0.0
14 | x wv is missing: the bypass is added to it
     (v + => (
""")


@drawn
def draws(r, special, edges=False):
    ids = r.integers(10, 99, (2, 60))
    share = r.random((2, 60)) * 0.3  # dice loaded: half are chosen
    action, hidden = r.random((2, 60)), r.random((2, 60)) < (0.3 if special else 0)
    starts = r.random((2, 60)) < 0.6
    if edges:  # dice that show a threshold, in float64 exactly
        share[0, :3], action[0, :3], hidden[0, :3] = [0.15, 0.1, 0.1], [0.1, 0.8, 0.9], False
        starts[0, :4] = True
        # and a word of two pieces that is swapped
        share[1, 0], action[1, 0], starts[1, 1], hidden[1, :2] = 0.1, 0.85, False, False
    # a special token is a word of its own
    starts |= hidden
    starts[:, 1:] |= hidden[:, :-1]
    starts[:, 0] = True
    return ids, share, action, r.integers(100, 199, (2, 60)), hidden, starts, 3


@unit.exercise(
    Part("ordinary text", 5, [draws(False), draws(False), draws(False, edges=True)]),
    Part("with special tokens", 5, [draws(True), draws(True), draws(True, edges=True)]),
)
def mask_tokens(ids, draw, action, random_ids, special, starts, mask_id):
    """BERT's masking of whole words, with the dice already thrown: all (B,T); ids and random_ids
    whole numbers, draw and action in [0, 1), special and starts bool.

    starts is True where a word begins; its further pieces follow, and they go by the draw and the
    action of the word's first piece. A word is chosen where draw < 0.15; special tokens, words of
    their own, never. Each piece of a chosen word becomes mask_id where action < 0.8, its own entry
    of random_ids where 0.8 <= action < 0.9, and stays otherwise. Returns (inputs, labels): labels
    are ids where chosen, -100 elsewhere.
    """
    inputs, labels = ids.copy(), np.full(ids.shape, -100)
    for place in np.ndindex(*ids.shape):
        row, first = place
        while not starts[row, first]:
            first -= 1
        chance, what = draw[row, first], action[row, first]
        if chance < 0.15 and not special[place]:
            labels[place] = ids[place]
            if what < 0.8:
                inputs[place] = mask_id
            elif what < 0.9:
                inputs[place] = random_ids[place]
    return inputs, labels


unit.mistakes("""
takes: medium, 14 minutes
hint: Where does the word of each piece begin? torch.where(starts, position, 0).cummax(1) says it;
    | gather the dice from there.
hint: chosen = (draw < 0.15) & ~special. Then torch.where, three times.
hint: labels = ids where chosen, else -100, the index that PyTorch's cross entropy ignores.
after: One chosen token in ten stays as it is and one becomes a random token, so that the model
    | needs a guess at unmasked places as well. -100 is what cross entropy ignores, so the loss is
    | taken at chosen positions only. Words are chosen whole, as in BERT's later releases, because a
    | piece is easy to guess from the other pieces of its word. minimal/encoder/wordpiece.py: mask
    | draws a fixed share of each row, not each token by its own dice, so the number of masked
    | tokens hardly varies.
10 | words are chosen whole: all pieces of a word go by the dice of its FIRST piece
     while not starts[row, first] => while False
10 | the loss is taken at chosen positions only: all other labels are -100
     np.full(ids.shape, -100) => ids.copy()
10 | from 0.8 to 0.9 the token becomes a random one, from 0.9 on it stays
     elif what < 0.9 => elif what >= 0.9
10 | only 80 % of the chosen become the mask
     what < 0.8 => True
 5 | special tokens are never chosen
     and not special[place] =>
10 | a draw of exactly 0.15 is not chosen, an action of exactly 0.8 takes the random token and one
   | of exactly 0.9 stays: <, not <=
     chance < 0.15 => chance <= 0.15
     and: what < 0.8 => what <= 0.8
     and: what < 0.9 => what <= 0.9
10 | a word is chosen by the draw of its FIRST piece; yours is chosen piece by piece
     draw[row, first] => draw[place]
10 | what a chosen word becomes is decided by the action of its FIRST piece
     action[row, first] => action[place]
10 | every piece has its OWN entry of random_ids, not that of the word's first piece
     random_ids[place] => random_ids[row, first]
10 | you chose the first pieces of words alone: all pieces of a chosen word are chosen
     chance < 0.15 => starts[place] and chance < 0.15
10 | a word is chosen where its draw lies BELOW 0.15
     chance < => chance >
10 | where nothing is chosen the label is -100, not 0: cross entropy leaves -100 out
     -100 => 0
10 | your labels hold what the model reads; it has to guess what stood there
     return inputs, labels => return inputs, np.where(labels < 0, -100, inputs)
10 | a chosen piece that stays as it is has a label, too
     return inputs, labels => return inputs, np.where(inputs == ids, -100, labels)
""")


@drawn
def logits(r, kind):
    """Context are the tokens 3 to 13: a question lies before it, padding behind it."""
    start, end = r.normal(size=(2, 16)) * 0.1
    shift, context = int(r.integers(0, 2)), (np.arange(16) >= 3) & (np.arange(16) < 14)
    peaks = {
        "order": ([(9, 6), (5, 4)], [(5, 4), (7, 6)]),
        "one token": ([(8, 6), (12, 3)], [(8, 6), (4, 3)]),
        "length": ([(4, 6), (7, 4)], [(12, 6), (8, 4)]),
        "question": ([(1, 9), (6, 5)], [(2, 9), (8, 5)]),
        "padding": ([(6, 5), (12, 4)], [(8, 5), (14, 9)]),
        "no answer": ([(0, 7), (6, 5)], [(0, 7), (8, 5)]),
        "too close": ([(0, 4.5), (6, 5)], [(0, 4.5), (8, 5)]),
        "far enough": ([(0, 3), (6, 5)], [(0, 3), (8, 5)]),
    }[kind]
    for logit, bumps in zip((start, end), peaks, strict=True):
        for place, height in bumps:
            logit[place + (shift if place > 2 else 0)] += height
    low = 10 if kind == "padding" else 0  # every sum of two is negative there
    return start - low, end - low, context, 4, 2.0


@unit.exercise(
    Part("an end before its start", 3, [logits("order"), logits("one token"), logits("order")]),
    Part("an end too far away", 3, logits("length")),
    Part("peaks in the question", 3, [logits("question"), logits("padding"), logits("question")]),
    Part("is there an answer?", 3, [logits(k) for k in ("no answer", "too close", "far enough")]),
)
def best_span(start, end, context, longest, threshold):
    """The best answer span (s, e), two whole numbers, or (0, 0) for "no answer".

    Of all pairs with s <= e < s + longest, both of them context tokens, take the one with the
    largest start[s] + end[e]. It is the answer if this sum exceeds start[0] + end[0], the score of
    "no answer", by more than threshold. start, end (T,) logits, context (T,) bool, False at 0.
    """
    best, highest = (0, 0), -np.inf
    for s, e in np.ndindex(len(start), len(end)):
        allowed = context[s] and context[e] and s <= e and e < s + longest
        score = start[s] + end[e]
        if allowed and score > highest:
            best, highest = (s, e), score
    return best if highest > start[0] + end[0] + threshold else (0, 0)


unit.mistakes("""
takes: medium, 15 minutes
hint: All pairs at once: start[:, None] + end[None, :] is (T,T). Which entries are allowed?
hint: Set the others to -inf, take argmax of the flat matrix, and divmod by T.
hint: Then compare: is the largest entry more than threshold above start[0] + end[0]? If not, the
    | answer is (0, 0).
after: The best start and the best end, each by itself, may be in the wrong order, too far apart or
    | in the question, so all pairs are scored and what is not allowed is -inf before the argmax. As
    | a matrix the allowed pairs are a band above the diagonal. Position 0 is [CLS], where a model
    | of SQuAD v2 says that there is no answer; the threshold is set afterwards, on questions whose
    | answers are known. In the package: minimal/tasks/passages.py: best_spans, which keeps twenty,
    | because a question's windows compete.
3 | a question may have no answer: compare the best pair with start[0] + end[0]
    highest > start[0] + end[0] + threshold => True
3 | the best pair must exceed start[0] + end[0] by MORE than the threshold
    + threshold =>
3 | your span ends before it starts
    and s <= e =>
3 | your span is longer than `longest` tokens
    and e < s + longest =>
3 | your span is one token too long: e < s + longest
    e < s => e <= s
3 | your span starts in the context, but ends behind it: both ends must be context tokens
    and context[e] =>
3 | logits may all be negative, and then 0 beats them: what is not allowed, and the best score
  | before the first, is -inf
    context[s] and context[e] and =>
    and: start[s] + end[e] => start[s] * context[s] + end[e] * context[e]
3 | your span lies in the question; only context tokens can be answers
    context[s] and context[e] and =>
3 | an answer may be one word long: s <= e
    s <= e => s < e
6 | the two logits are ADDED
    start[s] + end[e] => start[s] * end[e]
""")


ARTICLES = re.compile(r"\b(a|an|the)\b")
WORDS = ["tower", "river", "north", "of", "castle", "king", "old", "1066", "norman"]


def words_of(text):
    """What is compared of a text."""
    text = text.lower()
    text = "".join(c for c in text if c not in string.punctuation)
    text = ARTICLES.sub(" ", text)
    return text.split()


def f1(said, wanted):
    p, g = words_of(said), words_of(wanted)
    common = sum(min(p.count(w), g.count(w)) for w in set(p))
    return 2 * common / (len(p) + len(g)) if p and g else float(p == g)


def sentence(r, n):
    words = [r.choice([word, word.title(), word + ","]) for word in r.choice(WORDS, n)]
    return " ".join(f"{r.choice(['', 'the ', 'a ', 'The '])}{word}" for word in words)


@unit.exercise(
    Part(
        "the same answer, dressed differently",
        5,
        [
            lambda r: ("The Eiffel  Tower!", ["eiffel tower"]),
            lambda r: ("An apple, a pear.", ["Apple pear", "fruit"]),
            lambda r: ("London", ["the Thames", "London"]),
            lambda r: ("theatre", ["atre"]),
            lambda r: ("Nor'west", ["the norwest"]),
            lambda r: ("Rock", ['"The" Rock']),
            lambda r: ("USA", ["U.S.A."]),
            lambda r: ("The!", ["a", "an elm"]),
            lambda r: ("the", ["a castle"]),
            lambda r: ("The snake_case", ["snakecase"]),
            lambda r: ("Café", ["caf"]),
            lambda r: ("Łódź", ["d"]),
            lambda r: ("The Thames", ["Thames!", "the river Thames", "Thames"]),
        ],
    ),
    Part(
        "some words in common",
        7,
        [
            lambda r: ("to be or not to be", ["to be"]),
            lambda r: ("the old river of the north", ["north river", "a river, old and northern"]),
            lambda r: ("the castle, of old", ["a castle of stone"]),
            lambda r: ("no such thing", ["the castle"]),
            lambda r: ("the keep", ["wall", "keep, a tower"]),
            lambda r: ("an old king", ["old king", "the king of the north", "a queen"]),
            lambda r: (sentence(r, 6), [sentence(r, 4), sentence(r, 7)]),
        ],
    ),
)
def em_f1(prediction, golds):
    """SQuAD's two scores of a predicted text against a list of gold texts, each from another
    person, and what a person would score: (EM, F1, person), numbers between 0 and 1.

    Normalise first: lower case, delete punctuation (string.punctuation), delete the words a, an,
    the, collapse white space. EM: equal. F1: harmonic mean of precision and recall of words, with
    multiplicity; where nothing is left of one of the two, F1 is 0, and of both, 1. Both: the best
    over the list. person: every gold text is scored by F1 as if it were the prediction, against the
    texts of the others; the mean of these. One gold text alone has nobody to differ from: 1.
    """
    exact = [float(words_of(prediction) == words_of(gold)) for gold in golds]
    best = [f1(prediction, gold) for gold in golds]
    people = []
    for i, gold in enumerate(golds):
        others = golds[:i] + golds[i + 1 :]
        people.append(max([f1(gold, other) for other in others], default=1.0))
    return max(exact), max(best), sum(people) / len(people)


unit.mistakes(r"""
takes: medium, 21 minutes
hint: Normalise both: lower case, no punctuation, no words a, an, the, single spaces; then split.
hint: Common = sum of (Counter(p) & Counter(g)).values(); precision = common / len(p), recall =
    | common / len(g).
hint: EM and F1 are each the maximum over the gold answers; F1 is 0 if nothing is common.
hint: For the person: gold text i is the prediction, and the list of all others is its golds. You
    | have that function already.
after: The normalisation decides first, and in this order: marks before articles, or '"The" Rock'
    | keeps its article and U.S.A. loses its A. Words are compared as multisets; where nothing is
    | left of either text, minimal/tasks/squad.py: f1 knows both official rules, 0 in version 1 and
    | 1 in version 2, as here. The third number is the line against which a model is read: a model
    | is compared with all people's texts, a person with all but her own, so the same answer can
    | score less when a person gives it.
in: f1, words_of
12 | you scored each person's text against her own, too, which makes all perfect: leave it out
     golds[:i] + golds[i + 1 :] => golds
12 | a person is scored as a prediction is: the best over the others' texts, not their mean
     max([f1(gold, other) for other in others], default=1.0) => sum(f1(gold, other) for other in
   | others) / len(others) if others else 1.0
 5 | that is notebook 08's rule (SQuAD v1); two texts of which nothing is left agree: F1 is 1
     float(p == g) => 0.0
 5 | delete punctuation, and put no space in its place: Nor'west is norwest
     c for c in text if c not in string.punctuation => " " if c in string.punctuation else c for c
   | in text
 5 | delete punctuation first, articles then: U.S.A. is usa, and "The" with its quotes an article
     text.lower() => ARTICLES.sub(" ", text.lower())
     and: text = ARTICLES.sub(" ", text) =>
     text.lower() => " ".join(w for w in text.lower().split() if not ARTICLES.fullmatch(w))
     and: text = ARTICLES.sub(" ", text) =>
12 | drop punctuation and the articles a, an, the before you compare
     text = ARTICLES.sub(" ", text) =>
     if c not in string.punctuation =>
 5 | an underscore is punctuation, too: string.punctuation has it, and \w keeps it
     string.punctuation => string.punctuation.replace("_", "")
 5 | letters beyond ASCII are letters: café is not caf
     in string.punctuation => in string.punctuation and c.isascii()
 7 | a word that occurs twice counts twice: compare multisets (collections.Counter), not sets
     return text.split() => return sorted(set(text.split()))
12 | take the best score over ALL gold answers
     max(exact), max(best) => exact[0], best[0]
12 | compare in lower case: The is an article, and Tower is tower
     text.lower() => text
12 | delete punctuation before you drop articles and compare: tower! is tower
     text.lower() => " ".join(w for w in text.lower().split() if not ARTICLES.fullmatch(w))
     and: if c not in string.punctuation =>
     and: text = ARTICLES.sub(" ", text) =>
 7 | a word that both have twice is twice in common: count with a Counter, not in sets
     sum(min(p.count(w), g.count(w)) for w in set(p)) => len(set(p) & set(g))
12 | F1 is the harmonic mean of precision and recall; yours is their plain mean
     2 * common / (len(p) + len(g)) => (common / len(p) + common / len(g)) / 2
12 | that is precision or recall alone; F1 is their harmonic mean
     2 * common / (len(p) + len(g)) => common / len(p)
     2 * common / (len(p) + len(g)) => common / len(g)
12 | the best gold text counts for F1, not the mean over all
     max(best) => sum(best) / len(best)
12 | F1 is the best over ALL gold texts; you took the first
     max(best) => best[0]
12 | EM compares normalised texts, as F1 does
     max(exact) => float(prediction in golds)
12 | one gold text alone has nobody to differ from: person is 1
     default=1.0 => default=0.0
12 | person is the mean over all persons, not the best of them
     sum(people) / len(people) => max(people)
""")


@drawn
def document(r, low, high, size, overlap):
    return int(r.integers(low, high)), size, overlap


documents = [
    document(*x) for x in ((700, 3000, 384, 128), (300, 900, 100, 61), (700, 3000, 384, 127))
]
edges = [always(*x) for x in ((384, 384, 128), (1, 384, 128), (385, 384, 128), (640, 384, 129))]


@unit.exercise(Part("long documents", 5, documents), Part("at the edges", 3, edges))
def best_windows(length, size, overlap):
    """The windows of a long document, and the one in which each token is seen best: (starts (W,),
    best (length,)), whole numbers.

    Windows hold `size` tokens and neighbours share `overlap` of them, as few windows as cover all
    `length` tokens; always at least one. The last may reach beyond the end: it is not moved back.
    A token is seen best in the window (0 to W - 1) where its poorer side, the smaller of the
    numbers of tokens to its left and to its right in that window, is longest; if two are equal, in
    the earlier.
    """
    starts, best = [0], []
    while starts[-1] + size < length:
        starts.append(starts[-1] + size - overlap)
    for t in range(length):
        poorer = [min(t - s, s + size - 1 - t) for s in starts]
        best.append(poorer.index(max(poorer)))
    return np.array(starts), np.array(best)


unit.mistakes(r"""
takes: medium, 12 minutes
hint: Starts are 0, size - overlap, 2 (size - overlap), …; stop with the first window that reaches
    | the end: start + size >= length.
hint: In window w token t has t - start to its left and start + size - 1 - t to its right. Below
    | zero means that the window does not hold it.
hint: The smaller of the two, for all tokens and windows at once, is a table (length, windows);
    | argmax along the windows names the first of several largest.
after: Every further window brings size - overlap new tokens, and the first that reaches the end is
    | the last. An answer of at most `overlap` tokens lies whole in at least one window: that is
    | what the overlap is for. But a token at an edge is understood from one side only, so BERT's
    | code for SQuAD lets a window begin an answer only at tokens that it sees best: that is your
    | second result. minimal/tasks/passages.py: parts_of makes the same windows and is told the
    | step, BERT's doc_stride, in place of the overlap.
8 | `overlap` is what two neighbours share; the step is size - overlap
    size - overlap => overlap
3 | a last window that holds nothing new is one too many
    size < length => size <= length
8 | you gave each token to the first or the last window that holds it, where it may stand at the
  | very edge; wanted the one in which its poorer side is longest
    poorer.index(max(poorer)) => [p >= 0 for p in poorer].index(True)
    poorer.index(max(poorer)) => max(w for w, p in enumerate(poorer) if p >= 0)
8 | where two windows give a token equally much, it belongs to the earlier
    poorer.index(max(poorer)) => max(w for w, p in enumerate(poorer) if p == max(poorer))
8 | neighbours share `overlap` tokens; yours share none
    size - overlap => size
8 | as few windows as cover the document: stop with the first that reaches its end
    size < length => size < length + overlap
8 | the POORER side decides, the smaller of the two
    min(t => max(t
8 | you looked at the left side alone
    min(t - s, s + size - 1 - t) => t - s
8 | the token itself is on neither side: to its right stand start + size - 1 - t tokens
    size - 1 - t => size - t
8 | the last window is not moved back: it may reach beyond the end
    for t in => starts[-1] = max(0, length - size)\nfor t in
8 | name a window by its number, 0 to W - 1, not by where it starts
    np.array(best) => np.array(starts)[best]
8 | windows are counted from 0
    np.array(best) => np.array(best) + 1
""")


@drawn
def sampled(r, K, N):
    """K streams of N samples that belong together, and a weight for each."""
    own = r.normal(size=(K, N))
    own[1] = np.maximum(own[1] - 0.6 * own[0], 0)
    own[-1] += 0.5 * own[0]
    return own, r.uniform(0.3, 2.5, K) * r.choice([-1, 1], K)


@unit.exercise(Part("three and more streams", 8, [sampled(3, 50), sampled(4, 30), sampled(5, 20)]))
def variance_parts(streams, weights):
    """The variance of w_0 X_0 + w_1 X_1 + … taken apart: streams (K,N), N samples of each; weights
    (K,) -> (K,K), what each pair of streams contributes. Entry (i, i) is stream i's own variance in
    the sum, (i, j) half of what the pair adds, so all entries together are the variance of the sum.
    Divide by N.
    """
    K, N = streams.shape
    parts = np.zeros((K, K))
    for i, j in np.ndindex(K, K):
        a, b = [streams[n] - streams[n].mean() for n in (i, j)]
        scale = weights[i] * weights[j]
        parts[i, j] = scale * sum(a * b) / N
    return parts


unit.mistakes("""
takes: medium, 9 minutes
hint: Expand E[S²] - (E[S])² for S = w_0 X_0 + w_1 X_1 + w_2 X_2. How many products are there, and
    | which of them are equal?
hint: All entries must add up to torch.var(weights @ streams, unbiased=False).
hint: Take the means off, multiply each row by its weight: one matrix product does the rest.
after: A sum of K streams has K variances and K (K - 1) covariances, each with both weights; the
    | report's line for two has lost one of them, and a covariance may be negative. README's
    | question: the equation is about one model's activations over tokens, the table about a score
    | over seeds, and nothing in it leads from one to the other. To connect them, measure the first
    | in every run and see whether what has more of it scatters more: notebooks/course/variance.py:
    | variance_of_sum, recorded for each seed by notebooks/evidence/measured/bypass_seeds.py: run.
8 | your covariances have lost their weights, as the report's equation has: w_i w_j Cov
    weights[i] * weights[j] => weights[i] ** 2 if i == j else 1
8 | those are notebook 08's terms for a sum of two; here any number is added, with an entry a pair
    => (weights[0] ** 2 * streams[0].var(), weights[1] ** 2 * streams[1].var(), 2 * weights[0] *
  | weights[1] * np.cov(streams[:2], ddof=0)[0, 1])
8 | the 2 before a covariance stands for two entries, (i, j) and (j, i); you wrote it into both
    scale = => scale = (1 + (i != j)) *
8 | divide by N here (the variance of these numbers, not an estimate from a sample)
    / N => / (N - 1)
8 | you multiplied the samples as they are; take each stream's mean off first
    - streams[n].mean() =>
8 | the weights are missing: each stream counts with its own
    weights[i] * weights[j] => 1
8 | what two streams have together belongs in it: the entries off the diagonal are not 0
    return parts => return np.diag(np.diag(parts))
8 | every stream has a mean of its own
    streams[n].mean() => streams.mean()
8 | divide by N
    / N =>
8 | a weight enters once with each of the two streams, so its square stands on the diagonal alone
    weights[i] * weights[j] => (weights[i] * weights[j]) ** 2
8 | a negative weight turns the sign of what its stream has with others
    weights[i] * weights[j] => abs(weights[i] * weights[j])
""")


@unit.exercise(
    Part(
        "as many runs",
        5,
        lambda r: (r.normal(size=5) * 0.3 + 5.5, 9.6 + r.normal(), 2 + r.random(), 5),
    ),
    Part(
        "fewer runs on one side",
        5,
        lambda r: (r.normal(size=3) * 0.3 + 3, 1 + 0.3 * r.normal(), 0.5 + r.random(), 7),
    ),
)
def welch(a, mean, std, n):
    """Welch's test of your runs a (N,) against a row that a paper prints, the mean and the standard
    deviation (with n - 1) of n runs that you never see: (t, degrees of freedom); t > 0 if the
    printed mean is larger.
    """
    m, change = len(a), mean - a.mean()
    own, printed = sum((a - a.mean()) ** 2) / (m - 1), std**2
    p, q = own / m, printed / n
    dof = (p + q) ** 2 / (p**2 / (m - 1) + q**2 / (n - 1))
    return change / np.sqrt(p + q), dof


unit.mistakes(r"""
takes: medium, 9 minutes
hint: Runs enter only by mean, variance (with n - 1) and number. Of the row you have all three.
hint: Let p = var(a)/n_a and q = std²/n. t = (mean - mean of a) / sqrt(p + q). Degrees of freedom:
    | (p + q)² / (p²/(n_a - 1) + q²/(n - 1)).
after: Each side's variance is divided by its own number of runs, and the side that scatters more
    | pulls the degrees of freedom towards its own n - 1: 4.07 in the report's first row, where a
    | pooled test would claim 8. In the package: notebooks/course/significance.py: welch, from means
    | and spreads as papers print them.
10 | what is printed is the standard deviation: square it
     std**2 => std
10 | that is Student's test, which assumes equal variances; Welch's keeps them apart
     return change / np.sqrt(p + q), dof => common = ((m - 1) * own + (n - 1) * printed) / (m + n -
   | 2)\nreturn change / np.sqrt(common / m + common / n), float(m + n - 2)
10 | a variance estimated from n runs is divided by n - 1
     (m - 1), => m,
10 | the sign: t is positive when the printed mean is larger
     mean - a.mean() => a.mean() - mean
10 | the root is missing: t is the difference over the ROOT of the sum
     np.sqrt(p + q) => (p + q)
10 | the degrees of freedom divide by n - 1, not by n
     p**2 / (m - 1) + q**2 / (n - 1) => p**2 / m + q**2 / n
10 | N + n - 2 is Student's number of degrees; Welch's has a formula of its own
     q), dof => q), m + n - 2.0
10 | each variance is divided by its own number of runs
     own / m, printed / n => own, printed
10 | the numerator of the degrees of freedom is the SQUARE of the sum
     (p + q) ** 2 => (p + q)
10 | the spread of your own runs counts as well
     own / m => 0 * own
10 | you added the two standard errors; their SQUARES are added
     np.sqrt(p + q) => (np.sqrt(p) + np.sqrt(q))
 5 | t has a sign: below zero the printed mean is the smaller
     return change => return abs(change)
""")


near = guesses("variance", "t")

LEFT = 0.5 - 0.5 / np.pi
TEN_RUNS = 4.11 / np.sqrt((0.32**2 + 3.32**2) / 10)


@unit.exercise(
    Part("what is left of the variance", 3, None, near(0, LEFT, 0.06)),
    Part("the t of ten runs", 3, None, near(1, TEN_RUNS, 0.4)),
)
def predict_statistics():
    """Predict. (1) x is standard normal and the value is V = -x. What is the variance of
    V + relu(x)? (2) The report's first row: F1 55.51 ± 0.32 without, 59.62 ± 3.32 with the bypass,
    five runs each. Had it printed the same numbers of TEN runs each, what would Welch's t be? Two
    numbers; 0.06 apart (1), or 0.4 (2), counts.
    """
    return LEFT, TEN_RUNS


unit.mistakes("""
takes: medium, 9 minutes
off for what is left of the variance: more than 0.06 off: what is relu(x) - x, for a positive x and
    | for a negative one?
off for the t of ten runs: more than 0.4 off: how does the error of a mean fall with n?
hint for what is left of the variance: relu(x) - x is 0 or -x: which function is that?
hint for the t of ten runs: 4.11 / sqrt((0.32² + 3.32²) / n). Only n has changed.
after: relu(x) - x is relu(-x): E relu² is 1/2 and the mean is 1/sqrt(2 pi), so the variance is 1/2
    | - 1/(2 pi) = 0.34: a bypass that cancels half of the values takes two thirds of it. With ten
    | runs the t is 3.897, root two times that of five. With the five of the report the t is 2.755,
    | and at 4.07 degrees of freedom the 5 per cent line is 2.757: with these rounded numbers p is
    | 0.0501, exactly on the fence. Both come from notebooks/course/significance.py: welch and
    | minimal/compare/intervals.py: t_quantile.
3 | more than 0.06 off
    => (1.34, 3.9)
    => (0.5, 3.9)
3 | more than 0.4 off
    => (0.34, 2.76)
    => (0.34, 5.51)
""")


def shrinks(answer):
    v, x, alpha = need(answer, v=1, x=1, alpha=0)
    refuse(v.shape != x.shape or len(v) < 4, "wanted v and x (N,) of the same N, at least 4")
    refuse(not 0.01 <= alpha <= 10, "alpha must be positive (0.01 to 10), as in the report")
    relu = np.maximum(x, 0)
    refuse(relu.var() < 1e-3, "relu(x) must vary")
    refuse(
        np.mean((v - v.mean()) * (x - x.mean())) < 0.1 * v.std() * x.std(),
        "v and x are to be correlated by at least 0.1: the covariance that decides is another one",
    )
    refuse(
        (v + alpha * relu).var() > 0.9 * v.var(),
        "the variance does not fall by a tenth: what covariance would make it?",
    )


@unit.exercise(Part("the variance falls", 8, None, shrinks))
def variance_counter_example():
    """Find the error. Return (v, x, alpha): samples v and x (N,), N at least 4, and a positive
    alpha.

    Of Var[V + alpha relu(X)] the report says that it "is always >= Var[V]. Thus the output variance
    cannot decrease". Notebook 08 refutes it with V = -relu(X). Somebody answers that trained values
    follow their input, and that then the sentence holds. Return a case in which v and x are
    correlated by at least 0.1, and the variance falls by at least a tenth all the same.
    """
    return np.array([-3.0, 0, -1, -2, -3]), np.array([-10.0, 0, 1, 2, 3]), 0.5


unit.mistakes("""
takes: medium, 10 minutes
hint: Var V + alpha² Var R + 2 alpha Cov(V, R): only one term can be negative, and it asks for the
    | covariance with R = relu(x), not with x.
hint: Where x is positive, let v fall as x grows. Where x is negative, R does not see it: there v
    | may do what makes it follow x on the whole.
after: R is blind to negative inputs. So V may follow X on the whole and yet oppose relu(X), and a
    | look at the correlation of V and X says nothing. The sum falls wherever Cov(V, R) is below
    | -alpha Var(R) / 2; 'cannot decrease' would need a covariance that is never so negative.
    | notebooks/course/variance.py: variance_of_sum says for a trained layer whether it falls.
8 | the variance does not fall
    => (np.arange(6.0), np.arange(6.0), 0.5)
8 | alpha must be positive
    => (np.arange(6.0), np.arange(6.0), -0.5)
8 | relu(x) must vary
    => (np.arange(6.0), -np.arange(6.0), 0.5)
8 | v and x are to be correlated
    => (-np.arange(6.0), np.arange(6.0), 0.5)
""")


def features(r):
    x = r.normal(size=(60, 4))
    return r.normal(size=(60, 4)) * 0.5 + np.maximum(x, 0) * [-1, -0.4, 0.6, -2], np.maximum(x, 0)


@unit.exercise(Part("where the two oppose each other, and where not", 12, features))
def calming_alpha(v, r):
    """Stretch: for every feature (columns of v and r, (N,D)) the positive alpha that makes Var[V +
    alpha R] smallest, and the alpha below which it stays smaller than Var V. Two tensors (D,); 0
    where no positive alpha lowers the variance.
    """
    lowest = []
    for a, b in zip(v.T, r.T, strict=True):
        covariance = np.mean((a - a.mean()) * (b - b.mean()))
        lowest.append(-covariance / b.var())
    best = np.maximum(lowest, 0)
    return best, 2 * best


unit.mistakes("""
takes: stretch, 18 minutes
hint: Var V + alpha² Var R + 2 alpha Cov is a parabola in alpha. Where is its lowest point, and
    | where is it back at Var V?
hint: Best: -Cov / Var R. Limit: twice that. Both 0 where Cov >= 0.
after: In alpha the variance is a parabola: lowest at -Cov / Var R, and back at Var V at twice that.
    | Whether one divides by n or by n - 1 does not matter, because it cancels in the ratio: one
    | solution uses torch.cov. The terms of a trained encoder, layer by layer, are in
    | notebooks/course/variance.py: spread.
12 | where v and r do not oppose each other no positive alpha helps: both answers are 0 there
     np.maximum(lowest, 0) => np.array(lowest)
12 | the variance stays below that of v until twice the best alpha
     2 * best => best
12 | the limit is twice the best alpha, not half of it
     2 * best => best / 2
12 | your sign is turned: the variance falls where the covariance is BELOW zero
     -covariance => covariance
12 | where the covariance is above zero no positive alpha helps: its size is no alpha
     np.maximum(lowest, 0) => np.abs(lowest)
12 | you doubled it: the lowest point is at -Cov / Var R, and at twice that it is back
     -covariance => -2 * covariance
12 | divide by the variance of R, not of V
     b.var() => a.var()
12 | divide by the VARIANCE of R, not by its root
     b.var() => b.std()
12 | that is a correlation; alpha is the covariance over the variance of R
     b.var() => (a.std() * b.std())
12 | covariance and variance are divided by the same number, N or N - 1
     b.var() => b.var(ddof=1)
12 | take the means off first: a covariance is that of what is left
     (a - a.mean()) * (b - b.mean()) => a * b
     and: b.var() => np.mean(b * b)
""")
