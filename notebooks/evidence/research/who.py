"""Query, key or value: which of them needs the stream? From the two grids `who_needs_…`.

Each is made from the stream, as in `standard`, or by the same matrix from the token alone: in all
layers, or in the last third. What was foretold stands in title.EXPECTED_WHO; here each of its
sentences meets what came.
"""

from course.markdown import table
from evidence.research import answer, asked
from evidence.research.asked import (
    NAMED,
    above,
    came_between,
    named_if_alone,
    so,
    standing,
)
from evidence.research.leads import as_row_with_rows, row_in_words, signed
from evidence.research.title import DOORS, TOP, in_layers

PARTS = dict(q="queries", k="keys", v="values")
EVERYWHERE = {doors: f"x0-{doors}" for doors in DOORS}
LAST_THIRD = {doors: in_layers(f"x0-{doors}", TOP[4]) for doors in DOORS}


def named(doors):
    """ "qv" -> "queries and values"."""
    *most, last = (PARTS[door] for door in doors)
    return f"{', '.join(most)} and {last}" if most else last


texts, lead = asked.of_question("who_needs")


def where():
    """Which texts are told."""
    return "both texts" if len(texts()) == 2 else f"{' and '.join(texts())} alone"


# ---- the answer ----------------------------------------------------------------------------------


def standings(door, where=EVERYWHERE):
    """What this part of the token alone, in all layers or elsewhere, shows on each text."""
    return [standing(lead(text, where[door])) for text in texts()]


def heading():
    return named_if_alone(who_is_behind(), texts())


def who_is_behind():
    """Who is behind without the stream on every text, and who is nowhere behind."""
    need = [door for door in PARTS if set(standings(door)) == {"behind"}]
    free = [door for door in PARTS if "behind" not in standings(door)]
    if not need:
        return "No part of attention is clearly worse without the stream on every text"
    worse = f"In all layers {named(need)} do worse without the stream of their layer"
    return f"{worse}, {named(free)} do not" if free else worse


def alone_in_the_last_third():
    """Who loses there by itself, if any of the three does on any text."""
    loses = [door for door in PARTS if "behind" in standings(door, LAST_THIRD)]
    if not loses:
        return "In the last third none of the three is shown to lose by itself"
    return f"In the last third {named(loses)} made from the token lose by themselves, too"


# ---- table and picture ---------------------------------------------------------------------------


def cells():
    """Every cell ahead of standard, a column a place and a text."""
    places = {"all layers": EVERYWHERE, "last third": LAST_THIRD}
    heads = [f"{place}, {text}" for place in places for text in texts()]
    lines = []
    for doors in DOORS:
        found = [lead(text, by[doors]) for by in places.values() for text in texts()]
        lines.append([named(doors), *map(row_in_words, found)])
    return table(["made from the token alone", *heads], lines)


def picture():
    """(figure, alt text): all layers, a panel a text; None until a grid is whole."""
    if not texts():
        return None
    panels = {NAMED[text]: [] for text in texts()}
    for text in texts():
        for doors in DOORS:
            row = lead(text, EVERYWHERE[doors])
            panels[NAMED[text]].append(row | dict(plan=named(doors)))
    xlabel = "made from the token alone, all layers: nats ahead of standard; filled: clear of zero"
    fig = answer.beside(panels, heading(), xlabel)
    alt = "Lead over standard, ahead above zero, where parts of attention are made from the token."
    return fig, f"{alt} {answer.panels_in_words(panels)}"


# ---- did it come as foretold? --------------------------------------------------------------------

RANGES = {  # (lowest, highest) lead in all layers
    ("q", "code"): (-0.05, -0.01),
    ("q", "novel"): (-0.05, -0.01),
    ("k", "code"): (-0.06, -0.01),
    ("k", "novel"): (-0.06, -0.01),
    ("v", "code"): (0.08, 0.13),
    ("v", "novel"): (0.02, 0.04),
}


def foretold():
    """What was written before the first run, and what came."""
    rows = [*of_each(), *of_two(), *beside_the_token(), *in_the_last_third(), our_mind()]
    return table(["foretold", "came"], rows)


def of_each():
    for (door, text), (low, high) in RANGES.items():
        if text in texts():
            words = f"{PARTS[door]} lead by {signed(low, 2)} to {signed(high, 2)} on {NAMED[text]}"
            yield [words, came_between(lead(text, EVERYWHERE[door]), low, high)]


def beyond_the_sum(text):
    """How far queries and keys together are ahead of what the two would be if their leads added."""
    found = asked.held_out_losses("who_needs", text)
    base, q, k, both = (found[cell] for cell in ("standard", "x0-q", "x0-k", "x0-qk"))
    return as_row_with_rows("qk", plus(both, base), plus(q, k))


def plus(ours, theirs):
    """{seed: what was lost}, added."""
    return {seed: ours[seed].plus(theirs[seed]) for seed in ours}


def of_two():
    for text in texts():
        row = beyond_the_sum(text)
        word = so(row["difference"] < 0) + ("" if row["clear"] else ", not clear")
        words = f"{word}: {row_in_words(row)} ahead of the sum"
        yield [f"queries and keys cost more than the sum of each on {NAMED[text]}", words]


def beside_the_token():
    for text in texts():
        for door in "qk":
            row = lead(text, EVERYWHERE[f"{door}v"], EVERYWHERE[door])
            words = f"values gain beside {PARTS[door]} of the token on {NAMED[text]}"
            yield [words, above(row, 0.0)]


def in_the_last_third():
    for text in texts():
        told = []
        for door, words in PARTS.items():
            few, all_ = (lead(text, by[door])["difference"] for by in (LAST_THIRD, EVERYWHERE))
            share = few / all_
            told.append(f"{words} {so(0 <= share <= 0.5)}, {signed(few)} of {signed(all_)}")
        yield [
            f"in the last third the same signs, at most half as large, on {NAMED[text]}",
            f"in the mean: {'; '.join(told)}",
        ]


def our_mind():
    """The condition under which the answer would be another."""
    costs = []
    for text in texts():
        q, k, v = (lead(text, EVERYWHERE[door])["difference"] for door in "qkv")
        if v <= max(q, k):
            costs.append(NAMED[text])
    word = f"it did, on {' and '.join(costs)}" if costs else "it did not"
    return ["our mind changes: values cost as much as queries or keys, on either text", word]
