"""hw06 · How would five runs tell?

Fill in the functions, in any order, and run `pytest homework/hw06_bert_bypass` as often as
you like.
Letters: B batch, T positions, H heads, D head width, C = H D model width. This is an
encoder.
Functions answer in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def bypass(x, wq, wk, wv, heads, lengths, alpha):
    """Encoder attention with the value bypass V' = x wv + alpha relu(x), an alpha for every head,
    no output matrix: x (B,T,C), matrices (C,C), alpha (heads,) -> (B,T,C).

    `heads` heads of width D = C // heads, scores over sqrt(D); lengths (B,) are whole numbers: keys
    behind a sequence's length are hidden; rows of padding queries are computed like any other.
    """
    raise NotImplementedError


def mask_tokens(ids, draw, action, random_ids, special, starts, mask_id):
    """BERT's masking of whole words, with the dice already thrown: all (B,T); ids and random_ids
    whole numbers, draw and action in [0, 1), special and starts bool.

    starts is True where a word begins; its further pieces follow, and they go by the draw and the
    action of the word's first piece. A word is chosen where draw < 0.15; special tokens, words of
    their own, never. Each piece of a chosen word becomes mask_id where action < 0.8, its own entry
    of random_ids where 0.8 <= action < 0.9, and stays otherwise. Returns (inputs, labels): labels
    are ids where chosen, -100 elsewhere.
    """
    raise NotImplementedError


def best_span(start, end, context, longest, threshold):
    """The best answer span (s, e), two whole numbers, or (0, 0) for "no answer".

    Of all pairs with s <= e < s + longest, both of them context tokens, take the one with the
    largest start[s] + end[e]. It is the answer if this sum exceeds start[0] + end[0], the score of
    "no answer", by more than threshold. start, end (T,) logits, context (T,) bool, False at 0.
    """
    raise NotImplementedError


def em_f1(prediction, golds):
    """SQuAD's two scores of a predicted text against a list of gold texts, each from another
    person, and what a person would score: (EM, F1, person), numbers between 0 and 1.

    Normalise first: lower case, delete punctuation (string.punctuation), delete the words a, an,
    the, collapse white space. EM: equal. F1: harmonic mean of precision and recall of words, with
    multiplicity; where nothing is left of one of the two, F1 is 0, and of both, 1. Both: the best
    over the list. person: every gold text is scored by F1 as if it were the prediction, against the
    texts of the others; the mean of these. One gold text alone has nobody to differ from: 1.
    """
    raise NotImplementedError


def best_windows(length, size, overlap):
    """The windows of a long document, and the one in which each token is seen best: (starts (W,),
    best (length,)), whole numbers.

    Windows hold `size` tokens and neighbours share `overlap` of them, as few windows as cover all
    `length` tokens; always at least one. The last may reach beyond the end: it is not moved back.
    A token is seen best in the window (0 to W - 1) where its poorer side, the smaller of the
    numbers of tokens to its left and to its right in that window, is longest; if two are equal, in
    the earlier.
    """
    raise NotImplementedError


def variance_parts(streams, weights):
    """The variance of w_0 X_0 + w_1 X_1 + … taken apart: streams (K,N), N samples of each; weights
    (K,) -> (K,K), what each pair of streams contributes. Entry (i, i) is stream i's own variance in
    the sum, (i, j) half of what the pair adds, so all entries together are the variance of the sum.
    Divide by N.
    """
    raise NotImplementedError


def welch(a, mean, std, n):
    """Welch's test of your runs a (N,) against a row that a paper prints, the mean and the standard
    deviation (with n - 1) of n runs that you never see: (t, degrees of freedom); t > 0 if the
    printed mean is larger.
    """
    raise NotImplementedError


def predict_statistics():
    """Predict. (1) x is standard normal and the value is V = -x. What is the variance of
    V + relu(x)? (2) The report's first row: F1 55.51 ± 0.32 without, 59.62 ± 3.32 with the bypass,
    five runs each. Had it printed the same numbers of TEN runs each, what would Welch's t be? Two
    numbers; 0.06 apart (1), or 0.4 (2), counts.
    """
    raise NotImplementedError


def variance_counter_example():
    """Find the error. Return (v, x, alpha): samples v and x (N,), N at least 4, and a positive
    alpha.

    Of Var[V + alpha relu(X)] the report says that it "is always >= Var[V]. Thus the output variance
    cannot decrease". Notebook 08 refutes it with V = -relu(X). Somebody answers that trained values
    follow their input, and that then the sentence holds. Return a case in which v and x are
    correlated by at least 0.1, and the variance falls by at least a tenth all the same.
    """
    raise NotImplementedError


def calming_alpha(v, r):
    """Stretch: for every feature (columns of v and r, (N,D)) the positive alpha that makes Var[V +
    alpha R] smallest, and the alpha below which it stays smaller than Var V. Two tensors (D,); 0
    where no positive alpha lowers the variance.
    """
    raise NotImplementedError
