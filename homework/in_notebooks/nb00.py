"""Notebook 00: two small things with tensors, and bits per byte."""

import numpy as np

from homework.marking import Part, Unit, drawn, normals

unit = Unit("nb00_start_here", "Start here")

LN2 = float(np.log(2))


def far_rows(r):
    """Rows of large scores, one far above the other."""
    return (r.normal(size=(3, 5)) + 1000 * np.arange(1, 4)[:, None],)


def far_scores(r):
    """Rows in which one score is far above the others."""
    return (1000 * np.eye(3, 5) + r.normal(size=(3, 5)),)


def by_hand(made, z):
    if any("softmax" in x.operation for x in made):
        return "torch.softmax made them: here exp, a sum and a division do"
    return ""


@unit.exercise(
    Part("small scores", 1, lambda r: normals(r, (2, 3, 4))),
    Part("scores of 1,000 and more", 1, [far_rows, far_scores]),
    forbids=by_hand,
)
def softmax(z):
    """z (…, S) -> weights (…, S): exp(z) over its sum along the last axis, for scores of any size.

    Without torch.softmax.
    """
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


unit.mistakes("""
takes: easy, 3 minutes
hint: Three lines: subtract the largest, exp, divide by the sum; each along the last axis.
hint: z.amax(-1, keepdim=True) has shape (…, 1), so it can be subtracted from z (…, S).
1 | you cut large scores off, so they are alike now: subtract every row's largest instead
    z - z.max(-1, keepdims=True) => np.minimum(z, 20)
    z - z.max(-1, keepdims=True) => np.minimum(z, 50)
2 | all your numbers together sum to one; wanted every row to sum to one: sum(-1, keepdim=True)
    z.max(-1, keepdims=True) => z.max()
    and: e.sum(-1, keepdims=True) => e.sum()
1 | exp(1000) is infinite: subtract every row's largest score before exp
    - z.max(-1, keepdims=True) =>
1 | you subtracted the largest score of all; every row has its own: amax(-1, keepdim=True)
    z.max(-1, keepdims=True) => z.max()
2 | that is exp(z) itself: divide it by its sum along the last axis
    => np.exp(z)
2 | your largest weight is 1 in every row; divide by the SUM of the row
    e.sum( => e.max(
2 | you divided the scores themselves by their sum; take exp of every score first
    => z / z.sum(-1, keepdims=True)
2 | those are logarithms of the weights; wanted the weights
    e / e.sum(-1, keepdims=True) => np.log(e / e.sum(-1, keepdims=True))
2 | you divided by sums along another axis; every row of the last one has its own: sum(-1)
    e.sum(-1 => e.sum(-2
    z.max(-1 => z.max(-2
    and: e.sum(-1 => e.sum(-2
    e.sum(-1 => e.sum(0
    e.sum(-1 => e.sum(0
    z.max(-1 => z.max(0
    and: e.sum(-1 => e.sum(0
1 | you divided by the sum along axis 1, which is not always the last: sum(-1, keepdim=True)
    e.sum(-1 => e.sum(1
    z.max(-1 => z.max(1
    and: e.sum(-1 => e.sum(1
2 | you took the maximum off above the line alone; the sum below it is of the same exponentials
    e.sum(-1 => np.exp(z).sum(-1
2 | your largest scores get the smallest weights: exp(z), not exp(-z)
    np.exp( => 1 / np.exp(
2 | you divided the differences to the largest score by their sum; take exp of each first
    np.exp( => (
1 | you subtracted the row's mean: a score far above it still overflows; subtract the LARGEST
    z.max( => z.mean(
2 | you divided the scores by their largest; subtract it
    z - z.max => z / z.max
2 | you took a sigmoid; wanted exp of every score
    np.exp(z - z.max(-1, keepdims=True)) => 1 / (1 + np.exp(-z))
""")


@drawn
def shares(r, T, V):
    p = r.random((T, V)) + 0.1
    return p / p.sum(-1, keepdims=True), r.integers(0, V, T)


@drawn
def sure_shares(r, T, V):
    """The same; the first target was hardly expected, the second was nearly sure, and in the third
    row another token was ruled out."""
    p, targets = shares(T, V)(r)
    p[2, targets[2] - 1] = 0
    p[2] /= p[2].sum()
    for t, share in enumerate((2e-6, 0.9998)):
        p[t] *= (1 - share) / (1 - p[t, targets[t]])
        p[t, targets[t]] = share
    return p, targets


@unit.exercise(
    Part("as many positions as tokens", 1, shares(5, 5)),
    Part("more tokens than positions", 1, sure_shares(4, 9)),
)
def nats_of(p, targets):
    """p (T, V) probabilities, targets (T,) token ids -> (T,): the loss -ln p of every target."""
    chosen = np.array([row[token] for row, token in zip(p, targets, strict=True)])
    return -np.log(chosen)


unit.mistakes("""
takes: easy, 4 minutes
hint: p[t, targets[t]] for every t at once: index with two vectors.
hint: torch.arange(len(targets)) is the vector of all t.
1 | you cut probabilities off at a bound; a loss is -ln p, however small or large p is
    (chosen) => (chosen.clip(0.01))
    (chosen) => (chosen.clip(1e-3))
    (chosen) => (chosen.clip(1e-4))
    (chosen) => (chosen.clip(1e-5))
    (chosen) => (chosen.clip(None, 0.99))
    (chosen) => (chosen.clip(1e-3, 0.999))
2 | your losses are negative, as the logarithm of a number below 1 is; a loss is minus that
    -np => np
1 | 0 times the logarithm of 0 is NaN, wherever p holds a 0: take the target's p first, then its log
    => -(np.eye(p.shape[1])[targets] * np.log(p)).sum(-1)
2 | you measured in bits (log2); nats are wanted: the natural logarithm
    .log( => .log2(
2 | you returned the mean; wanted a loss for every position
    (chosen) => (chosen).mean()
2 | those are the probabilities themselves; the loss is minus their natural logarithm
    -np.log(chosen) => chosen
2 | those are minus the probabilities; the loss is minus their natural LOGARITHM
    np.log(chosen) => chosen
2 | you took 1 - p; the loss is minus the natural logarithm of p
    -np.log(chosen) => 1 - chosen
2 | you took the largest probability of every row; wanted that of the token that came
    row[token] => row.max()
2 | you returned the sum; wanted a loss for every position
    (chosen) => (chosen).sum()
2 | you looked up every target in every row; position t asks for one number, p[t, targets[t]]
    => -np.log(p[:, targets])
2 | you took whole rows, those of the tokens' numbers; position t asks for p[t, targets[t]]
    => -np.log(p[targets])
2 | that is the loss of everything BUT the target: -ln p, not -ln(1 - p)
    (chosen) => (1 - chosen)
2 | cross_entropy wants scores and takes a softmax of them; p are probabilities already
    => nats_of(np.exp(p) / np.exp(p).sum(-1, keepdims=True), targets)
2 | you weighted the loss with p, as in an entropy; the loss is -ln p alone
    (chosen) => (chosen) * chosen
    => -(p * np.log(p)).sum(-1)
2 | yours is a column; wanted (T,)
    (chosen) => (chosen)[:, None]
2 | your indices are exchanged: the position comes first, p[t, targets[t]]
    => -np.log(p[targets % len(p), np.arange(len(p))])
2 | you added a small number to p, which moves its logarithm; a loss is -ln p itself
    (chosen) => (chosen + 1e-3)
    (chosen) => (chosen + 1e-4)
    (chosen) => (chosen + 1e-6)
1 | you added a small number to p, which moves its logarithm; a loss is -ln p itself
    (chosen) => (chosen + 1e-8)
""")


@drawn
def losses(r, begins):
    nats, count = 3 * r.random(8) + 0.5, r.integers(1, 7, 8)
    count[: 2 if begins else 0] = 0
    return nats, count


@unit.exercise(
    Part("every token stands for bytes", 1, losses(begins=False)),
    Part("two of them stand for no byte", 1, losses(begins=True)),
)
def bits_per_byte(nats, count):
    """nats (N,) losses of N tokens, count (N,) bytes of each -> a number.

    A token of no bytes, such as <|bos|>, counts for nothing: neither above nor below.
    """
    real = count > 0
    bits, size = nats[real].sum() / LN2, count[real].sum()
    return bits / size


unit.mistakes("""
takes: easy, 5 minutes
hint: One fraction: the sum of all losses in bits above, the sum of all bytes below.
hint: nats[count > 0].sum() leaves out what stands for no byte; math.log(2) nats are a bit.
2 | yours are nats per byte: a bit is ln 2 nats, so divide by ln 2
    / LN2 =>
2 | you multiplied by ln 2: there are more bits than nats, so divide
    / LN2 => * LN2
2 | you divided by the number of tokens; divide by the bytes of the text
    bits / size => bits / real.sum()
1 | a token that stands for no byte must not count above either: leave out its loss
    nats[real] => nats
2 | you took the mean of bits per byte over the tokens; wanted ONE fraction: all bits over all bytes
    bits / size => (nats[real] / LN2 / count[real]).mean()
2 | those are bytes per bit: bits belong above, bytes below
    bits / size => size / bits
2 | that is the sum of bits; divide it by the bytes of the text
    bits / size => bits
2 | you divided by the number of tokens, and counted those of no byte; divide by the bytes
    bits / size => bits / len(nats)
2 | you took the logarithm of a loss, which is one already; divide the nats by ln 2
    nats[real].sum() / LN2 => np.log2(nats[real]).sum()
2 | you took the MEAN of bits above and the sum of bytes below; wanted the sum in both
    bits / size => bits / real.sum() / size
1 | your mean of bytes counts the tokens of no byte, that of bits does not: take sums of both
    bits / size => bits / real.sum() / count.mean()
2 | you divided by the decimal logarithm of 2; a bit is ln 2 nats: math.log(2)
    / LN2 => / np.log10(2)
2 | you weighted every loss with its bytes; a token's loss counts once, whatever its length
    nats[real].sum() => (nats * count).sum()
2 | you kept the tokens of NO byte; those are left out
    nats[real].sum() => nats[~real].sum()
    nats[real].sum() => nats[~real].sum()
    and: count[real].sum() => count[~real].sum()
2 | you divided by bits, 8 a byte; divide by the bytes
    bits / size => bits / size / 8
2 | you added up a fraction for every token; wanted ONE fraction: all bits over all bytes
    bits / size => (nats[real] / LN2 / count[real]).sum()
2 | that is a fraction for every token; wanted ONE: all bits over all bytes
    bits / size => nats[real] / LN2 / count[real]
1 | your tokens of no byte count as one byte each; they count for nothing, above and below
    nats[real] => nats
    and: count[real] => count.clip(1)
    count[real] => count.clip(1)
2 | you left out the first token; every token counts that stands for bytes
    nats[real].sum() => nats[1:].sum()
    and: count[real].sum() => count[1:].sum()
    nats[real].sum() => nats[1:].sum()
2 | you left out the last token; every token counts that stands for bytes
    nats[real].sum() => nats[:-1][real[:-1]].sum()
    and: count[real].sum() => count[:-1].sum()
    nats[real].sum() => nats[:-1].sum()
    nats[real].sum() => nats[:-1][real[:-1]].sum()
""")
