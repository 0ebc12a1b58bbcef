"""Is it what a value says, or the gradient's way home? From the grids `content_gradient_…`.

Half of V is the layer's own; of the other half, V1 or x0 W_V, the number passes, the gradient,
both, neither, or another text's number. What a part gains is counted from the cell in which
neither passes. The same cells for four times as long, on code alone, are told apart. What was
foretold stands in title.EXPECTED_CONTENT and EXPECTED_CONTENT_LONG.
"""

from course.markdown import table
from evidence.research import answer, asked
from evidence.research.asked import (
    NAMED,
    above,
    below,
    came_between,
    named_if_alone,
    so,
    standing,
    within,
)
from evidence.research.leads import row_in_words, signed
from evidence.research.title import LONGER

PASSED_WORDS = dict(
    both="number and gradient",
    forward="the number alone",
    gradient="the gradient alone",
    neither="neither",
    other="another text's number",
)
OF = dict(v1="V1", x0="x0 W_V")


def passed_cell(what, way):
    return f"standard/{what}-{way}"


texts, lead = asked.of_question("content_gradient")
texts_of_long, lead_after_long = asked.of_question("content_gradient_long")


def gain(text, what, way, ahead=lead):
    """How far the model is ahead of the one in which neither number nor gradient passes."""
    return ahead(text, passed_cell(what, way), passed_cell(what, "neither"))


def gain_after_long(what, way):
    return gain("code", what, way, lead_after_long)


def is_ahead(what, way):
    """On every text that is told?"""
    return {standing(gain(text, what, way)) for text in texts()} == {"ahead"}


def heading():
    return named_if_alone(what_helps(), texts())


def what_helps():
    """Of V1's two halves, by themselves, on every text."""
    number, gradient = is_ahead("v1", "forward"), is_ahead("v1", "gradient")
    if number and gradient:
        return "Of the first layer's value the number helps, and so does the gradient's way home"
    if number:
        return "Of the first layer's value the number helps; the gradient alone is not shown to"
    if gradient:
        return "The gradient's way home to the first layer helps; the number is not shown to"
    alone = "Neither the number of the first layer's value nor its gradient clearly helps alone"
    return f"{alone}; together they do" if is_ahead("v1", "both") else alone


def cells():
    """Every cell ahead of standard, a column a source and a text."""
    return passed_table(texts(), lead)


def cells_after_long():
    return passed_table(texts_of_long(), lead_after_long)


def alone_after_long(what):
    """The parts of V1, or of x0 W_V, that lead by themselves after four times as long: over
    standard and over neither."""
    return [
        way
        for way in ("forward", "gradient")
        if standing(lead_after_long("code", passed_cell(what, way))) == "ahead"
        and standing(gain_after_long(what, way)) == "ahead"
    ]


def sentence_after_long():
    both = standing(lead_after_long("code", passed_cell("v1", "both"))) == "ahead"
    together = "number and gradient lead together" if both else "not even both together lead"
    alone = " and ".join(PASSED_WORDS[way] for way in alone_after_long("v1"))
    word = "so does" if both else "yet it leads with"
    rest = f"{word} {alone}" if alone else "neither does alone"
    return f"Of V1 it is so after four times as long, too: {together}, {rest}"


def passed_table(on, ahead):
    heads = [f"{name}, {text}" for name in OF.values() for text in on]
    lines = []
    for way, words in PASSED_WORDS.items():
        found = [ahead(text, passed_cell(what, way)) for what in OF for text in on]
        lines.append([words, *map(row_in_words, found)])
    return table(["what passes", *heads], lines)


def picture():
    """(figure, alt text): what every part gains over neither, a panel a text and a length; None
    until a grid is whole."""
    if not texts():
        return None
    panels = {NAMED[text]: parts_gained(text, lead) for text in texts()}
    if texts_of_long():
        panels[f"code, {LONGER:,} steps"] = parts_gained("code", lead_after_long)
    xlabel = "nats ahead of the same model in which neither passes; filled: clear of zero"
    fig = answer.beside(panels, heading(), xlabel)
    alt = "What a part gains over neither, ahead above zero."
    return fig, f"{alt} {answer.panels_in_words(panels)}"


def parts_gained(text, ahead):
    """Rows of a picture: for V1 and for x0 W_V, all that may pass but neither."""
    rows = []
    for what, name in OF.items():
        for way in ("both", "forward", "gradient", "other"):
            row = gain(text, what, way, ahead)
            rows.append(row | dict(plan=f"{name}: {PASSED_WORDS[way]}"))
    return rows


# ---- did it come as foretold? --------------------------------------------------------------------


def foretold():
    """What was written before the first run, and what came."""
    return table(["foretold", "came"], [*on_code(), *of_neither(), *on_the_novel(), our_mind()])


def of_both(text, what, way, ahead=lead):
    """Does one part alone gain at least half of what both gain? By the means."""
    part, whole_ = (gain(text, what, w, ahead)["difference"] for w in (way, "both"))
    return f"{so(part >= whole_ / 2)}, in the mean: {signed(part)} of {signed(whole_)}"


def on_code():
    if "code" not in texts():
        return
    for what, most, little in (("v1", "gradient", "forward"), ("x0", "forward", "gradient")):
        name = OF[what]
        yield [
            f"{name}: {PASSED_WORDS[most]} gains at least half of what both gain on code",
            of_both("code", what, most),
        ]
        yield [
            f"{name}: {PASSED_WORDS[little]} gains less than .02 on code",
            below(gain("code", what, little), 0.02),
        ]
    costs = lead("code", passed_cell("v1", "neither"), passed_cell("v1", "other"))
    yield ["another text's V1 costs .01 or more against neither on code", above(costs, 0.01)]


def of_neither():
    for text in texts():
        for what, name in OF.items():
            row = lead(text, passed_cell(what, "neither"))
            yield [f"neither, for {name}: within .02 of standard on {text}", within(row, 0.02)]


def on_the_novel():
    if "novel" in texts():
        for way in ("both", "forward", "gradient"):
            row = gain("novel", "v1", way)
            yield [f"V1: {PASSED_WORDS[way]} gains less than .02 on the novel", below(row, 0.02)]
        costs = lead("novel", passed_cell("v1", "neither"), passed_cell("v1", "other"))
        yield [
            "another text's V1 costs less than .02 against neither on the novel",
            below(costs, 0.02),
        ]


def our_mind():
    """The condition under which the answer would be another."""
    parts = []
    for text in texts():
        row = lead(text, passed_cell("v1", "forward"), passed_cell("v1", "both"))
        word = "behind" if standing(row) == "behind" else "not shown to be behind"
        parts.append(f"{word} on {NAMED[text]}, {row_in_words(row)}")
    return ["our mind changes: V1's number alone as good as both", "; ".join(parts)]


# ---- after four times as long, on code -----------------------------------------------------------


def foretold_of_long():
    return table(["foretold", "came"], [signs(), *of_each_source(), *of_v1(), *of_x0(), mind()])


def signs():
    """Does a gain of the short runs turn round? By the means."""
    turned = [
        f"{PASSED_WORDS[way]} of {name}"
        for what, name in OF.items()
        for way in ("both", "forward", "gradient", "other")
        if gain("code", what, way)["difference"] * gain_after_long(what, way)["difference"] < 0
    ]
    came = f"not so, in the mean: {', '.join(turned)} turned round" if turned else "so, in the mean"
    return ["the signs are those of 500 steps", came]


def of_each_source():
    for what, name in OF.items():
        yield [
            f"{name}: number and gradient gain .02 to .08",
            came_between(gain_after_long(what, "both"), 0.02, 0.08),
        ]
        neither, other = passed_cell(what, "neither"), passed_cell(what, "other")
        yield [
            f"another text's {name} costs .02 or more against neither",
            above(lead_after_long("code", neither, other), 0.02),
        ]
        yield [
            f"neither, for {name}: within .02 of standard",
            within(lead_after_long("code", neither), 0.02),
        ]


def of_v1():
    for way in ("forward", "gradient"):
        row = gain_after_long("v1", way)
        yield [f"V1: {PASSED_WORDS[way]} is within .02 of neither", within(row, 0.02)]


def of_x0():
    number = gain_after_long("x0", "forward")
    yield ["x0 W_V: the number alone gains 0 to .05", came_between(number, 0.0, 0.05)]
    gradient = gain_after_long("x0", "gradient")
    yield ["x0 W_V: the gradient alone gains less than .02", below(gradient, 0.02)]


def mind():
    """The condition under which what is said of the short runs would not be said of long ones."""
    parts = (
        f"{PASSED_WORDS[way]}: {of_both('code', 'v1', way, lead_after_long)}"
        for way in ("forward", "gradient")
    )
    half = "our mind changes: V1's number alone, or its gradient alone, gains half of both"
    return [half, "; ".join(parts)]
