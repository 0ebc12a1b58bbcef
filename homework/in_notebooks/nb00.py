"""Notebook 00: two small things with tensors, and bits per byte."""

import numpy as np

from homework.marking import Part, Unit, Wrong, normals, slip

unit = Unit("nb00_start_here", "Start here", "The exercises of notebook 00.")

LN2 = float(np.log(2))


# ---- two small things with tensors ---------------------------------------------------------------


def far_rows(r):
    """Rows of large scores, one far above the other."""
    return (r.normal(size=(3, 5)) + 1000 * np.arange(1, 4)[:, None],)


def far_scores(r):
    """Rows in which one score is far above the others."""
    return (1000 * np.eye(3, 5) + r.normal(size=(3, 5)),)


def shifted(z):
    return np.exp(z - z.max(-1, keepdims=True))


def held_below(bound):
    """The mistake of scores that are cut off, so that exp stays finite."""

    def mistaken(z):
        e = np.exp(np.minimum(z, bound))
        return e / e.sum(-1, keepdims=True)

    return slip(
        1,
        "you cut large scores off, so they are alike now: subtract every row's largest instead",
        mistaken,
    )


def by_hand(made, z):
    if any("softmax" in x.operation for x in made):
        return "torch.softmax made them: here exp, a sum and a division do"
    return ""


@unit.exercise(
    Part("small scores", 1, lambda r: normals(r, (2, 3, 4))),
    Part("scores of 1,000 and more", 1, [far_rows, far_scores]),
    *[held_below(bound) for bound in (20, 50, 80, 88, 100)],
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
    Wrong(
        "one maximum for all",
        1,
        "you subtracted the largest score of all; every row has its own: amax(-1, keepdim=True)",
        dict(one_peak=True),
    ),
    Wrong(
        "not divided",
        2,
        "that is exp(z) itself: divide it by its sum along the last axis",
        dict(share="none"),
    ),
    Wrong(
        "divided by the largest",
        2,
        "your largest weight is 1 in every row; divide by the SUM of the row",
        dict(share="largest"),
    ),
    Wrong(
        "without exp",
        2,
        "you divided the scores themselves by their sum; take exp of every score first",
        dict(bend="none"),
    ),
    Wrong(
        "powers of two",
        2,
        "you took powers of 2; wanted powers of e: exp",
        dict(bend="two"),
    ),
    Wrong(
        "the logarithm of it",
        2,
        "those are logarithms of the weights; wanted the weights",
        dict(logarithm=True),
    ),
    slip(
        2,
        "you divided by the sum over another axis; divide every row by its own sum, "
        "sum(-1, keepdim=True)",
        lambda z: shifted(z) / shifted(z).sum(-2, keepdims=True),
    ),
    slip(
        2,
        "you divided by sums along the first axis; every row of the last one has its own",
        lambda z: shifted(z) / shifted(z).sum(0, keepdims=True),
    ),
    slip(
        1,
        "you divided by the sum along axis 1, which is not always the last: sum(-1, keepdim=True)",
        lambda z: shifted(z) / shifted(z).sum(1, keepdims=True),
    ),
    slip(
        2,
        "your largest scores get the smallest weights: exp(z), not exp(-z)",
        lambda z: (1 / shifted(z)) / (1 / shifted(z)).sum(-1, keepdims=True),
    ),
    slip(
        2,
        "you divided the differences to the largest score by their sum; take exp of each first",
        lambda z: (
            (z - z.max(-1, keepdims=True)) / (z - z.max(-1, keepdims=True)).sum(-1)[..., None]
        ),
    ),
    slip(
        1,
        "you subtracted the mean of every row: a score far above it still overflows; subtract the "
        "LARGEST of the row",
        lambda z: softmax(z - z.mean(-1, keepdims=True), plain=True),
    ),
    slip(
        2,
        "you took a sigmoid; wanted exp of every score",
        lambda z: (1 / (1 + np.exp(-z))) / (1 / (1 + np.exp(-z))).sum(-1, keepdims=True),
    ),
    hints=[
        "Three lines: subtract the largest, exp, divide by the sum; each along the last axis.",
        "z.amax(-1, keepdim=True) has shape (…, 1), so it can be subtracted from z (…, S).",
    ],
    level="easy",
    minutes=3,
    forbids=by_hand,
)
def softmax(z, *, axis=-1, plain=False, one_peak=False, share="sum", bend="exp", logarithm=False):
    """z (…, S) -> weights (…, S): exp(z) over its sum along the last axis, for scores of any size.

    Without torch.softmax.
    """
    peak = z.max() if one_peak else z.max(axis=axis, keepdims=True)
    shifted = z if plain or bend == "none" else z - peak
    e = dict(exp=np.exp, two=np.exp2, none=np.copy)[bend](shifted)
    if share == "none":
        return np.exp(z)
    whole = e.max(axis, keepdims=True) if share == "largest" else e.sum(axis, keepdims=True)
    return np.log(e / whole) if logarithm else e / whole


def minus_others(p, targets):
    return -np.log(1 - np.exp(-nats_of(p, targets)))


def shares(T, V):
    def make(r):
        p = r.random((T, V)) + 0.1
        return p / p.sum(-1, keepdims=True), r.integers(0, V, T)

    return make


def sure_shares(T, V):
    """The same; the first target was hardly expected, and the second was nearly sure."""

    def make(r):
        p, targets = shares(T, V)(r)
        for t, share in enumerate((2e-6, 0.9998)):
            p[t] *= (1 - share) / (1 - p[t, targets[t]])
            p[t, targets[t]] = share
        return p, targets

    return make


def cut_off(low, high):
    """The mistake of probabilities that are held within bounds."""
    return slip(
        1,
        "you cut probabilities off at a bound; a loss is -ln p, however small or large p is",
        lambda p, targets: nats_of(np.clip(p, low, high), targets),
    )


@unit.exercise(
    Part("as many positions as tokens", 1, shares(5, 5)),
    Part("more tokens than positions", 1, sure_shares(4, 9)),
    *[cut_off(low, None) for low in (0.01, 1e-3, 1e-4, 1e-5)],
    *[cut_off(None, high) for high in (0.9, 0.99, 0.999)],
    *[cut_off(low, 1 - low) for low in (0.01, 1e-3)],
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
    Wrong(
        "without the logarithm",
        2,
        "those are the probabilities themselves; the loss is minus their natural logarithm",
        dict(sign=1, log=np.copy),
    ),
    Wrong(
        "minus the probability",
        2,
        "those are minus the probabilities; the loss is minus their natural LOGARITHM",
        dict(log=np.copy),
    ),
    Wrong(
        "one minus p",
        2,
        "you took 1 - p; the loss is minus the natural logarithm of p",
        dict(sign=1, log=lambda p: 1 - p),
    ),
    Wrong(
        "the likeliest token",
        2,
        "you took the largest probability of every row; wanted that of the token that came",
        dict(best=True),
    ),
    Wrong(
        "the sum at once",
        2,
        "you returned the sum; wanted a loss for every position",
        dict(total=True),
    ),
    slip(
        2,
        "you looked up every target in every row; position t asks for one number, p[t, targets[t]]",
        lambda p, targets: -np.log(p[:, targets]),
    ),
    slip(
        2,
        "you took whole rows, those of the tokens' numbers; position t asks for p[t, targets[t]]",
        lambda p, targets: -np.log(p[targets]),
    ),
    slip(2, "that is the loss of everything BUT the target: -ln p, not -ln(1 - p)", minus_others),
    slip(
        2,
        "cross_entropy wants scores and takes a softmax of them; p are probabilities already",
        lambda p, targets: nats_of(np.exp(p) / np.exp(p).sum(-1, keepdims=True), targets),
    ),
    slip(
        2,
        "you weighted the loss with p, as in an entropy; the loss is -ln p alone",
        lambda p, targets: nats_of(p, targets) * np.exp(-nats_of(p, targets)),
    ),
    slip(2, "yours is a column; wanted (T,)", lambda p, targets: nats_of(p, targets)[:, None]),
    hints=[
        "p[t, targets[t]] for every t at once: index with two vectors.",
        "torch.arange(len(targets)) is the vector of all t.",
    ],
    level="easy",
    minutes=4,
)
def nats_of(p, targets, *, sign=-1, log=np.log, mean=False, first=False, best=False, total=False):
    """p (T, V) probabilities, targets (T,) token ids -> (T,): the loss -ln p of every target."""
    found = np.zeros(len(targets))
    for t, token in enumerate(targets):
        row = p[0 if first else t]
        found[t] = sign * log(row.max() if best else row[token])
    if total:
        return found.sum()
    return found.mean() if mean else found


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
    Wrong(
        "a mean of fractions",
        2,
        "you took the mean of bits per byte over the tokens; wanted ONE fraction: all bits over "
        "all bytes",
        dict(fractions=True),
    ),
    Wrong(
        "upside down",
        2,
        "those are bytes per bit: bits belong above, bytes below",
        dict(turned=True),
    ),
    Wrong(
        "bits alone",
        2,
        "that is the sum of bits; divide it by the bytes of the text",
        dict(alone=True),
    ),
    slip(
        2,
        "you divided by the number of tokens, and counted those of no byte; divide by the bytes",
        lambda nats, count: bits_per_byte(nats, count) * count.sum() / len(nats),
    ),
    slip(
        2,
        "you took the logarithm of a loss, which is one already; divide the nats by ln 2",
        lambda nats, count: np.log2(nats[count > 0]).sum() / count.sum(),
    ),
    slip(
        2,
        "you took the MEAN of bits above and the sum of bytes below; wanted the sum in both",
        lambda nats, count: bits_per_byte(nats, count) / (count > 0).sum(),
    ),
    slip(
        1,
        "your mean of bytes counts the tokens of no byte, your mean of bits does not: take sums, "
        "all bits over all bytes",
        lambda nats, count: bits_per_byte(nats, count) * len(nats) / (count > 0).sum(),
    ),
    slip(
        2,
        "you divided by the decimal logarithm of 2; a bit is ln 2 nats: math.log(2)",
        lambda nats, count: bits_per_byte(nats, count, unit=np.log10(2)),
    ),
    slip(
        2,
        "you divided by bits, 8 a byte; divide by the bytes",
        lambda nats, count: bits_per_byte(nats, count) / 8,
    ),
    slip(
        2,
        "you added up a fraction for every token; wanted ONE fraction: all bits over all bytes",
        lambda nats, count: (nats[count > 0] / LN2 / count[count > 0]).sum(),
    ),
    slip(
        2,
        "that is a fraction for every token; wanted ONE: all bits over all bytes",
        lambda nats, count: nats[count > 0] / LN2 / count[count > 0],
    ),
    hints=[
        "One fraction: the sum of all losses in bits above, the sum of all bytes below.",
        "nats[count > 0].sum() leaves out what stands for no byte; math.log(2) nats are a bit.",
    ],
    level="easy",
    minutes=5,
)
def bits_per_byte(
    nats,
    count,
    *,
    unit=LN2,
    a_token=False,
    begins=False,
    fractions=False,
    turned=False,
    alone=False,
):
    """nats (N,) losses of N tokens, count (N,) bytes of each -> a number.

    A token of no bytes, such as <|bos|>, counts for nothing: neither above nor below.
    """
    above = below = 0.0
    each = []
    for loss, size in zip(nats, count, strict=True):
        if size > 0 or begins:
            above += loss / unit
            below += 1 if a_token else size
            each.append(loss / unit / max(size, 1))
    if fractions:
        return np.mean(each)
    if alone:
        return above
    return below / above if turned else above / below
