"""Does the vocabulary decide what tables by token pay? Leads on two texts at three vocabularies.

What was foretold by vocabulary, before a run, stands in evidence.research.why. Leads are in bits
per byte, since a token is another piece of text in another vocabulary.
"""

from course import figures
from course.markdown import table
from evidence.research import pairs, why
from evidence.research.leads import between, with_interval
from evidence.research.numbers import change_with_interval, number

AT_EQUAL_SIZE = "tables, against a standard as large"
# a comparison in words -> plan, its MLPs, and those of its rival standard; None: as they are
COMPARED = {
    "tables, as they are": ("bov-fixed", None, None),
    AT_EQUAL_SIZE: ("bov-fixed", None, why.WIDE),
    "tables made as large as standard": ("bov-fixed", why.SLIM_AT_VOCAB, None),
    "ResFormer": ("resformer", None, None),
}


def grid_at(text):
    return f"why_vocab_{text}"


def cell_losses(text, vocab, plan, hidden=None):
    """{seed: bits per byte} of one cell; nothing where there is no such cell."""
    cell = why.cell(plan, vocab, hidden)
    wanted = cell["plan"], cell.get("vocab"), cell.get("changes")
    found = {}
    for row in pairs.whole_rows(grid_at(text)):
        asked = row["asked"]
        if (row["plan"], asked.get("vocab"), asked.get("changes")) == wanted:
            found[row["seed"]] = row["bpb"]
    return found


def leads_at(text, vocab, compared=AT_EQUAL_SIZE):
    """How far a plan is ahead of standard, by seed; nothing where a vocabulary has no such pair."""
    plan, slim, wide = COMPARED[compared]
    if slim and vocab not in slim:
        return []  # the tables alone outweigh all MLPs
    ours = cell_losses(text, vocab, plan, slim and slim[vocab])
    theirs = cell_losses(text, vocab, "standard", wide and wide[vocab])
    return list(between(ours, theirs))


def lead_at_vocab(text, vocab, compared=AT_EQUAL_SIZE):
    """A lead with its interval."""
    found = leads_at(text, vocab, compared)
    return with_interval(found) if found else "no such plan"


def by_vocabulary(text):
    """A line a comparison, a column a vocabulary."""
    lines = [
        ["foretold: an id's word on the next, nats a byte", *map(number, why.BY_VOCAB[text])],
        ["what one farther back adds, nats a byte", *map(number, why.FARTHER_BY_VOCAB[text])],
        *([name, *(lead_at_vocab(text, vocab, name) for vocab in why.VOCABS)] for name in COMPARED),
    ]
    return table(["", *(f"{vocab:,}" for vocab in why.VOCABS)], lines)


def code_less_novel(vocab):
    """How much further tables lead on code than on the novel, at equal parameters."""
    return change_with_interval(*(leads_at(text, vocab) for text in why.SEEN))


def largest_less_smallest(text):
    """How much larger the lead at equal parameters is in the largest vocabulary."""
    return change_with_interval(leads_at(text, why.VOCABS[-1]), leads_at(text, why.VOCABS[0]))


def picture():
    """(figure, alt text): leads by vocabulary, a panel a text; None until both are whole."""
    if not all(pairs.whole(grid_at(text)) for text in why.SEEN):
        return None
    panels, told = {}, []
    for text in why.SEEN:
        panels[text] = {}
        for name in ("tables, as they are", AT_EQUAL_SIZE, "ResFormer"):
            at_each = [leads_at(text, vocab, name) for vocab in why.VOCABS]
            panels[text][name] = [list(curve) for curve in zip(*at_each, strict=True)]
            means = ", ".join(number(sum(found) / len(found)) for found in at_each)
            told.append(f"{text}, {name} {means}")
    fig = figures.bands(
        panels,
        "What tables gain, by vocabulary",
        "vocabulary",
        "bits per byte ahead of standard",
        x=why.VOCABS,
        logx=True,
        baseline=0,
        one_legend=True,
    )
    sizes = ", ".join(f"{vocab:,}" for vocab in why.VOCABS)
    alt = (
        "Bits per byte ahead of standard against the vocabulary, a panel a text; a band is from "
        f"the lowest seed to the highest. Means at {sizes}: {'; '.join(told)}."
    )
    return fig, alt
