"""Which three numbers carry each finding of the first page? A small table each, text beside text.

Everything else that a question has recorded stands in the ledger. A finding is asked of the grids
that its own module names; here is chosen only what a reader needs to see.
"""

from course.markdown import table
from evidence.research import answer, at_best, content, dose, leads, mean_values, who
from evidence.research.asked import text_beside_text
from evidence.research.title import TEXTS


def at_which_rates():
    """The answer, by how finely the rates of its two systems were chosen."""
    rows = {
        "their own, half a step apart; ten seeds that chose nothing": dose.leads_of("fair_finer"),
        "their own, a factor of two apart; the same ten seeds": dose.leads_of("fair"),
        "one recipe for both, as in the picture; five seeds": {
            text: dose.lead(text, dose.ALL) for text in TEXTS
        },
    }
    return text_beside_text(rows, "rates tried")


def of_values_of_the_token():
    """Values of the token at the size of standard, as tables, and in a model trained with V."""
    rows = {
        "x0 W_V in all twelve layers, over `standard`": dose.answer_leads(),
        "tables in the last third, over a `standard` as large": {
            text: at_best.over_as_wide(text) for text in TEXTS
        },
        "a trained `standard` whose values become the mean of their token, over itself": {
            text: mean_values.lead_after(text, "token, last 12") for text in TEXTS
        },
    }
    return text_beside_text(rows, "ahead")


def of_keeping_v():
    """V beside the token's value, over that value alone; each at its best rates."""
    rows = {
        "half V and half x0 W_V, over x0 W_V": at_best.later_on_each("row12", "row8"),
        "V and x0 W_V, weights learned, over x0 W_V": at_best.later_on_each("row13", "row8"),
        "the same, over x0 W_V with a learned gain": at_best.later_on_each("row13", "row9"),
        "V and a table, weights learned, over the table": at_best.later_on_each(
            "bov-keep", "bov-fixed"
        ),
    }
    return text_beside_text(rows, "V kept")


def of_number_and_gradient():
    """What the parts of V1 gain over neither."""
    rows = {
        content.PASSED_WORDS[way]: {text: content.gain(text, "v1", way) for text in TEXTS}
        for way in ("both", "forward", "gradient")
    }
    return text_beside_text(rows, "of V1, ahead of neither")


def of_more_tokens():
    """How leads change from 500 steps to 4,000."""
    named = {
        "bov-fixed": "tables, last third, gain fixed",
        "bov, equal parameters": "tables, gain learned, as large as `standard`",
        "bov, slow gain": "tables, slow gain",
        "denseformer": "DenseFormer",
    }
    lines = []
    for system, words in named.items():
        found = (answer.along(grid, system) for grid in ("budgets_code", "budgets_novels"))
        lines.append([words, *map(leads.with_interval, found)])
    return table(["the lead after 4,000 steps less that after 500", "code", "novels"], lines)


def of_the_ranking():
    """Systems that two texts order in two ways."""
    rows = {
        at_best.CALLED_HERE[plan]: at_best.later_on_each(plan)
        for plan in ("bov-fixed", "engram", "row8", "denseformer")
    }
    return text_beside_text(rows, "each at its best rates, over `standard`")


def of_query_key_value():
    """Each part alone from the token, in all layers."""
    rows = {
        words: {text: who.lead(text, who.EVERYWHERE[door]) for text in TEXTS}
        for door, words in who.PARTS.items()
    }
    return text_beside_text(rows, "made from the token alone, over `standard`")


# ---- systems at rates of their own, one over another ---------------------------------------------

ONE_OVER_ANOTHER = {  # both have their best rates, on the same fresh seeds
    ("x0-v", "row8"): "x0 W_V in all layers, over the last third",
    ("row8", "row12"): "x0 W_V alone, over the same with half of V",
    ("row13", "row8"): "V beside x0 W_V with learned weights, over x0 W_V alone",
    ("row13", "row9"): "the same, over x0 W_V alone with a learned gain",
    ("row11", "row5"): "V beside the first layer's V with learned weights, over that alone",
    ("engram", "bov-fixed"): "Engram, over tables in V with a fixed gain",
    ("bov-fixed", "bov-keep"): "tables alone, over tables beside V",
    ("bov", "bov-fixed"): "a learned gain of tables, over one fixed at 1",
    ("row9", "row8"): "a learned gain of x0 W_V, over none",
    ("row6", "row5"): "a learned gain of the first layer's V, over none",
    ("row5", "resformer"): "the first layer's V in the last third, over ResFormer",
    ("neutreno", "resformer"): "NeuTRENO, over ResFormer",
}


def one_over_another():
    rows = {
        words: at_best.later_on_each(*both)
        for both, words in ONE_OVER_ANOTHER.items()
        if set(both) <= set(at_best.told_systems())
    }
    return text_beside_text(rows, "each at its own best rates, ahead")
