"""A question of the title, put to two texts: one grid each, told once that grid is whole.

    texts("dose")                   of which texts anything may be told
    lead("dose", "code", a, b)      how far cell a is ahead of cell b; the interval holds the error
                                    of the seeds and that of the held-out rows
    standing(row)                   what such a lead shows, by the margin set before the runs

dose, who, content, at_best and own_mixtures ask one question each.
"""

from functools import partial

from course.markdown import table
from evidence.research import leads, pairs
from evidence.research.leads import as_row_with_rows, row_in_words
from evidence.research.title import MARGIN, TEXTS

NAMED = dict(code="code", novel="the novel")


def texts(question):
    """The texts whose grid is whole: only of these anything is told."""
    return [text for text in TEXTS if pairs.whole(f"{question}_{text}")]


def held_out_losses(question, text):
    """{cell: {seed: what was lost on the held-out text}}; nothing until the grid is whole."""
    found = {}
    for row in pairs.whole_rows(f"{question}_{text}"):
        cell = leads.cell_of(row["plan"], row["asked"].get("changes") or {})
        found.setdefault(cell, {})[row["seed"]] = leads.Read.of(row)
    return found


def lead(question, text, cell, over="standard", of=None):
    """How far a cell is ahead of another: a row of a table, ahead above zero. The other is `of`
    the grid of another question, where that is named: of the same state, as its caller knows."""
    ours, theirs = held_out_losses(question, text), held_out_losses(of or question, text)
    return as_row_with_rows(cell, ours[cell], theirs[over])


def of_question(question):
    """(texts, lead) of one question."""
    return partial(texts, question), partial(lead, question)


def standing(row):
    """What a lead shows. "level": its interval lies within the margin that was set before the runs;
    "ahead" and "behind": it excludes zero; else it is "open"."""
    if -MARGIN < row["low"] and row["high"] < MARGIN:
        return "level"
    if row["clear"]:
        return "ahead" if row["difference"] > 0 else "behind"
    return "open"


# ---- in words ------------------------------------------------------------------------------------


def on_each(leads_, by=""):
    """{text: a lead} in words, code first."""
    return " and ".join(f"{by}{row_in_words(row)} on {NAMED[text]}" for text, row in leads_.items())


def text_beside_text(rows, head):
    """A table of {words: {text: a lead}}, a line each, code first; all have the same texts."""
    lines = [[words, *map(row_in_words, by_text.values())] for words, by_text in rows.items()]
    texts_ = next(iter(rows.values()))
    return table([head, *(NAMED[text] for text in texts_)], lines)


def named_if_alone(claim, told):
    """A claim that rests on one text says on which."""
    return f"{claim} (on {NAMED[told[0]]})" if len(told) == 1 else claim


# Did it come as foretold? The interval decides where it lies on one side; else the mean does, and
# the words say so.
IN_THE_MEAN = ", in the mean"


def came_between(row, low, high):
    mean = row["difference"]
    word = "so" if low <= mean <= high else "less" if mean < low else "more"
    inside = low <= row["low"] and row["high"] <= high
    outside = row["high"] < low or high < row["low"]
    doubt = "" if inside or outside else IN_THE_MEAN
    return f"{word}{doubt}: {row_in_words(row)}"


def above(row, least):
    """Is a lead at least so large? The interval says so, or the mean alone does."""
    return came_or_not(row, row["low"] >= least, row["difference"] >= least, row["high"] < least)


def below(row, most):
    return came_or_not(row, row["high"] < most, row["difference"] < most, row["low"] >= most)


def within(row, margin):
    inside = -margin < row["low"] and row["high"] < margin
    outside = row["low"] >= margin or row["high"] <= -margin
    return came_or_not(row, inside, abs(row["difference"]) < margin, outside)


def so(holds):
    return "so" if holds else "not so"


def it_did(holds):
    """Did our mind change?"""
    return "it did" if holds else "it did not"


def came_or_not(row, shown, likely, refuted):
    word = so(likely)
    if not (shown or refuted):
        word += IN_THE_MEAN
    return f"{word}: {row_in_words(row)}"
