"""Why do tables pay on code and hardly on a novel? What nine texts say: a table and a picture.

What each text foretold of itself, before a run, stands in evidence.research.why.
"""

import statistics

from course import figures
from course.markdown import table
from evidence.research import foretold, pairs, why
from evidence.research.leads import as_row, rank_correlation, with_interval
from evidence.research.numbers import change_with_interval, number

TEXT_TITLES = dict(
    bare="the library without comments",
    renamed="its names renamed, one for one",
    code="Python's library as it is",
    fresh="its names renamed anew at each use",
    novel="War and Peace",
    dombey="Dombey and Son",
    miserables="Les Misérables",
    code_shuffled="the library, its words shuffled",
    novel_shuffled="War and Peace, its words shuffled",
)

# what was counted of each text before a run: the guess at stake, and its rival
GUESSES = dict(next="an id's word on the next", farther="what one farther back adds")


def grid_of(text):
    return f"why_text_{text}"


def titled(text):
    """Its name; two were seen before and confirm nothing."""
    return TEXT_TITLES[text] + (" (seen before)" if text in why.SEEN else "")


def leads_on(text, plan="bov-fixed", changes=foretold.SLIM_CHANGES):
    """A plan's lead over standard on a text, by seed; none until that grid is whole."""
    return foretold.lead_of(pairs.whole_rows(grid_of(text)), plan, changes)


def nine_texts():
    """The nine, in the order that was foretold: what was, and what three leads are."""
    lines = []
    for name in why.FORETOLD:
        line = [titled(name), *(number(guessed(name, guess), 2) for guess in GUESSES)]
        line += [with_interval(found) for found in (leads_on(name), leads_on(name, changes={}))]
        line.append(with_interval(leads_on(name, "resformer", {})))
        lines.append(line)
    columns = ["text", *GUESSES.values()]
    columns += ["tables, as large as standard", "tables, as they are", "ResFormer"]
    return table(columns, lines)


def mean_on(text, plan="bov-fixed", changes=foretold.SLIM_CHANGES):
    """A lead's mean over seeds, as prose writes it."""
    return number(statistics.fmean(leads_on(text, plan, changes)))


def guessed(text, guess="next"):
    """What was foretold of a text, in nats a token."""
    return why.FORETOLD[text][[*GUESSES].index(guess)]


def agreement(guess="next", plan="bov-fixed", changes=foretold.SLIM_CHANGES):
    """The rank correlation of what was foretold and this lead, over the texts that are new."""
    new = [name for name in why.FORETOLD if name not in why.SEEN]
    ahead = [guessed(name, guess) for name in new]
    found = [statistics.fmean(leads_on(name, plan, changes)) for name in new]
    return number(rank_correlation(ahead, found), 2)


def line(guess="next"):
    """The correlation of the sizes themselves, over all nine: do they lie on a line?"""
    ahead = [guessed(name, guess) for name in why.FORETOLD]
    found = [statistics.fmean(leads_on(name)) for name in why.FORETOLD]
    return number(statistics.correlation(ahead, found), 2)


def beyond(text, other):
    """How much larger the lead is on one text than on another, with its interval over seeds."""
    return change_with_interval(leads_on(text), leads_on(other))


def left_of(text, of):
    """The share of the lead on `of` that is left on this text, per cent."""
    return number(100 * statistics.fmean(leads_on(text)) / statistics.fmean(leads_on(of)), 0)


def verdict_on_nine():
    """What the leads make of the prediction."""
    return foretold.verdict({name: leads_on(name) for name in why.FORETOLD})


def picture():
    """(figure, alt text): what was foretold beside what came; None before all nine are whole."""
    if not all(pairs.whole(grid_of(name)) for name in why.FORETOLD):
        return None
    word, _, more = verdict_on_nine().partition(":")
    title = f"Do tables pay in the order that was foretold? {word.capitalize()}:{more}"
    fig, panels = figures.axes(title, "", "", 9.4, 4.2, columns=3)
    *before, after = panels

    # the texts from the top, in the order that was foretold
    rows = [as_row(name, leads_on(name)) for name in why.FORETOLD]
    figures.interval_marks(after, rows[::-1])
    places = range(len(rows))[::-1]
    for panel, guess in zip(before, GUESSES, strict=True):
        panel.plot([guessed(name, guess) for name in why.FORETOLD], places, "o", color=figures.INK)

    panels[0].set_yticks(places, [titled(name) for name in why.FORETOLD])
    for panel in panels[1:]:
        panel.set_yticks(places, [""] * len(places))
    before[0].set_xlabel("foretold: an id\nof the next, nats")
    before[1].set_xlabel("its rival: what one\nfarther back adds")
    after.set_xlabel("came: lead\nof tables, nats")
    told = ", ".join(f"{TEXT_TITLES[name]} {mean_on(name)}" for name in why.FORETOLD)
    alt = (
        "Nine texts down, in the order that was foretold. Across: what an id says of the next one; "
        "what one farther back adds, with a gap below the four texts of code in order; the lead of "
        "tables over standard at equal parameters, with 95 per cent intervals, where the same four "
        f"lead; filled marks exclude zero. Mean leads from the top: {told}."
    )
    return fig, alt
