"""hw06 · How would five runs tell?

Fill in the functions, in any order, and run `pytest homework/hw06_bert_bypass` as often as
you like.
Letters: B batch, T positions, H heads, D head width, C = H D model width. This is an
encoder.
Functions return new tensors, in the dtype of their inputs, and leave their inputs as they
were.
"""

import torch  # noqa: F401


def bypass(x, wq, wk, wv, heads, lengths, alpha):
    """Encoder attention with the value bypass V' = x wv + alpha relu(x), no output matrix: x
    (B,T,C), matrices (C,C) -> (B,T,C).

    `heads` heads of width D = C // heads, scores over sqrt(D); lengths (B,) are whole numbers: keys
    behind a sequence's length are hidden; rows of padding queries are computed like any other.
    """
    raise NotImplementedError


def mask_tokens(ids, draw, action, random_ids, special, mask_id):
    """BERT's masking, with the dice already thrown: all (B,T); ids and random_ids whole numbers,
    draw and action in [0, 1), special bool.

    A position is chosen where draw < 0.15, if it is not special. A chosen token becomes mask_id
    where action < 0.8, its entry of random_ids where 0.8 <= action < 0.9, and stays otherwise.
    Returns (inputs, labels): labels are ids where chosen, -100 elsewhere.
    """
    raise NotImplementedError


def best_span(start, end, context, longest):
    """The best answer span (s, e), two whole numbers: the pair with the largest start[s] + end[e]
    of which s <= e < s + longest, and both are context tokens. start, end (T,) logits, context (T,)
    bool.
    """
    raise NotImplementedError


def em_f1(prediction, golds):
    """SQuAD's two scores, (EM, F1), numbers between 0 and 1, of a predicted text against a list of
    gold texts: the best over the list.

    Normalise first: lower case, delete punctuation (string.punctuation), delete the words a, an,
    the, collapse white space. EM: equal. F1: harmonic mean of precision and recall of words, with
    multiplicity; where nothing is left of one of the two, F1 is 0, and of both, 1.
    """
    raise NotImplementedError


def window_starts(length, size, overlap):
    """Where the windows of a long document start (a list of whole numbers): each `size` tokens,
    neighbours share `overlap` of them, as few as cover all `length` tokens; always at least one.
    The last may reach beyond the end: it is not moved back.
    """
    raise NotImplementedError


def variance_parts(v, r, alpha):
    """Var[V + alpha R] taken apart: (Var V, alpha² Var R, the covariance term), for samples v and r
    (N,). Divide by N.
    """
    raise NotImplementedError


def welch(a, b):
    """Welch's test of two sets of runs, a and b (N,) of possibly different N: (t, degrees of
    freedom); t > 0 if b's mean is larger.
    """
    raise NotImplementedError


def predict_statistics():
    """Predict. (1) The variance of relu(x), x standard normal. (2) The report's first row: F1 55.51
    ± 0.32 without, 59.62 ± 3.32 with the bypass, five runs each. Welch's t? Two numbers; 0.06 apart
    (1), or 0.5 (2), counts.
    """
    raise NotImplementedError


def variance_counter_example():
    """Find the error. Return (v, x, alpha): samples v and x (N,), N at least 4, and a positive
    alpha.

    The report says of Var[V + alpha relu(X)] that it "is always >= Var[V]. Thus the output variance
    cannot decrease". Return a case in which it falls by at least a tenth.
    """
    raise NotImplementedError


def calming_alpha(v, r):
    """Stretch: for every feature (columns of v and r, (N,D)) the positive alpha that makes Var[V +
    alpha R] smallest, and the alpha below which it stays smaller than Var V. Two tensors (D,); 0
    where no positive alpha lowers the variance.
    """
    raise NotImplementedError
