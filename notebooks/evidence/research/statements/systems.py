"""How far apart are systems? What notebooks and decks tell of leads that no claim asks for."""

from course.significance import holm
from evidence.research import (
    numbers,
    pairs,
)
from evidence.research.leads import rank_correlation, with_interval
from evidence.research.pairs import rows_asked
from evidence.research.statements import ahead, average, count, lead_by_seed, runs_by_seed, said
from minimal.compare.intervals import paired

LEARNED_AND_FIXED = (("row6", "row5"), ("row9", "row8"), ("bov", "bov-fixed"))


# ---- gains at a slow rate ------------------------------------------------------------------------


@said
def at_a_tenth_of_its_rate_the_gain_of_bank_of_values_is_level_with_a_fixed_one():
    """So whether a fixed gain is worse (Figure 5b) is, at our scale, a question about the rate."""
    slow, fast = runs_by_seed("confound", "bov"), runs_by_seed("thirteen_rows", "bov")
    over = {
        p: lead_by_seed(slow, runs_by_seed("thirteen_rows", p)) for p in ("bov-fixed", "standard")
    }
    apart = [max(some) - min(some) for some in (losses(slow), losses(fast))]
    so = not ahead(over["bov-fixed"]) and ahead(over["standard"]) == 1
    so = so and apart[0] < apart[1] / 2
    return dict(so=so) | {f"over {plan}": with_interval(some) for plan, some in over.items()}


def losses(runs):
    return [row["loss"] for row in runs.values()]


@said
def at_one_slow_rate_a_learned_gain_is_level_with_a_fixed_one():
    over = {
        f"{plan} over {fixed}": lead_by_seed(
            runs_by_seed("confound", plan), runs_by_seed("thirteen_rows", fixed)
        )
        for plan, fixed in LEARNED_AND_FIXED
    }
    little = pairs.LITTLE["loss"]
    so = all(not ahead(some) and abs(average(some)) < little for some in over.values())
    return dict(so=so) | {name: with_interval(some) for name, some in over.items()}


# ---- the same systems on code --------------------------------------------------------------------

# ours, theirs, and which way it is clear
LEADS_ON_CODE = [
    ("bov", "standard", 1),
    ("resformer", "standard", 1),
    ("row2", "standard", -1),
    ("gqa", "standard", -1),
    ("row3", "standard", 1),
    ("bov", "bov-shared", 1),
    ("bov", "bov-fixed", 0),
    ("resformer", "neutreno", 1),
    ("resformer", "denseformer", 0),
    ("svformer", "gqa", 1),
    ("svformer", "cla", 1),
    ("row8", "row5", 1),
    ("row9", "row7", 0),
    ("row9", "standard", 1),
    ("row7", "standard", 1),
]


@said
def on_code_who_is_ahead_of_whom():
    over = {
        (one, other): lead_by_seed(*(runs_by_seed("stdlib", p) for p in (one, other)))
        for one, other, _ in LEADS_ON_CODE
    }
    so = [ahead(some) for some in over.values()] == [side for *_, side in LEADS_ON_CODE]
    told = {f"{one} over {other}": with_interval(some) for (one, other), some in over.items()}
    return dict(so=so) | told


@said
def on_code_tables_pay_for_themselves_and_a_slow_gain_heals_row_2():
    about, so = {}, True
    kept = dict(slim="changes", slow="overrides")

    def changed(how, plan):
        some = [row for row in rows_asked("code", plan) if kept[how] in row["asked"]]
        return {row["seed"]: row for row in some}

    for how, plan, over, side in (
        *(("slim", plan, "standard", 1) for plan in ("bov", "bov-fixed", "bov-keep", "modded")),
        ("slow", "bov", "bov", 0),
        ("slow", "row2", "row2", 1),
        ("slow", "row2", "standard", 0),
    ):
        some = lead_by_seed(changed(how, plan), runs_by_seed("stdlib", over))
        so &= ahead(some) == side
        about[f"{plan}, {how}, over {over}"] = with_interval(some)
    return dict(so=so) | about


@said
def on_code_more_systems_lead_clearly_in_a_similar_order():
    novel, code = (
        {row["plan"]: row for row in paired(pairs.whole_rows(grid), "loss")}
        for grid in ("thirteen_rows", "stdlib")
    )
    leading = [count(some.values(), clearly_ahead) for some in (novel, code)]
    plans = [plan for plan in code if plan != "standard"]
    order = [[some[plan]["difference"] for plan in plans] for some in (novel, code)]
    alike = rank_correlation(*order)
    so = int(leading[0].split()[0]) < int(leading[1].split()[0]) and alike > 0.5
    return dict(so=so, ahead=leading, rank_correlation=alike)


def clearly_ahead(row):
    return row["clear"] and row["difference"] < 0


# ---- what notebooks and decks tell ---------------------------------------------------------------


@said
def the_detached_models_lead_melts_while_resformers_stays():
    """Notebook 04: most of it after 100 steps, hardly any at the end."""
    curves = {}
    for row in rows_asked("controls_code"):
        curves.setdefault(row["plan"], {})[row["seed"]] = dict(row["valid"])

    def lead_after(plan, step):
        return average(
            [curves["standard"][s][step] - curve[step] for s, curve in curves[plan].items()]
        )

    part = {s: lead_after("resformer/detached", s) / lead_after("resformer", s) for s in (100, 500)}
    return dict(so=part[500] < part[100] / 2) | {f"part at {at}": some for at, some in part.items()}


@said
def leads_of_tables_on_code_grow_and_shrink_long_before_the_end_on_the_novel():
    """Of runs of 500 steps, as the table of the findings has them."""
    so, about = True, {}
    for plan in ("bov-fixed", "bov"):
        at = {
            text: [float(numbers.lead_at(plan, text, step)) for step in range(150, 501, 50)]
            for text in ("code", "novel")
        }
        so &= at["code"][:-1] == sorted(at["code"][:-1])
        so &= at["novel"].index(max(at["novel"])) <= 3 and at["novel"][-1] < max(at["novel"])
        about |= {f"{plan} on {text}": some for text, some in at.items()}
    return dict(so=so) | about


KEEPERS = ("neutreno", "row13", "denseformer")  # of V, as large as standard, ahead on the novel


@said
def what_ten_seeds_decide_on_the_novel():
    """What notebooks 04 and 10 tell of ten_seeds_novel."""
    ten = lambda plan, over="standard": lead_by_seed(
        *(runs_by_seed("ten_seeds_novel", name) for name in (plan, over))
    )
    leads = {f"row{i}": ten(f"row{i}") for i in (2, 5, 6, 8, 9, 11, 13)}
    means = {row: average(some) for row, some in leads.items()}
    more = {
        "bov-fixed over bov": ten("bov-fixed", "bov"),
        "bov-fixed over bov-keep": ten("bov-fixed", "bov-keep"),
        "bov-fixed": ten("bov-fixed"),
        "resformer": ten("resformer"),
    }
    so = all(ahead(some) == 1 for some in (*leads.values(), *more.values()))
    so = so and max(means, key=means.get) == "row13" and min(means, key=means.get) == "row2"
    return dict(so=so) | {name: with_interval(some) for name, some in (leads | more).items()}


def systems_by_text():
    found = {}
    for text in ("novel", "code"):
        found[text] = {row["plan"]: row for row in numbers.systems(text)}
    return found


@said
def the_decks_04_and_05_tell_who_leads():
    some = systems_by_text()
    over = {text: numbers.told("resformer", text, "denseformer") for text in some}
    so = over["novel"].startswith("**−") and over["code"].startswith("**+")
    so = so and all(clearly_ahead(some["novel"][plan]) for plan in ("resformer", "svformer"))
    about = {f"ResFormer over DenseFormer, {text}": words for text, words in over.items()}
    for text, plan in (("code", "resformer"), ("novel", "resformer"), ("novel", "svformer")):
        about[f"{plan}, {text}"] = numbers.mean_lead(plan, text)
    return dict(so=so) | about


@said
def the_deck_09_tells_which_rows_lead():
    some = systems_by_text()
    shown = ["svformer", *(f"row{i}" for i in (2, 5, 6, 8, 9, 11, 13))]
    so = all(one[row]["n"] == 10 and one[row]["clear"] for one in some.values() for row in shown)
    behind = [row for row in shown if not clearly_ahead(some["code"][row])]
    so = so and behind == ["row2"] and clearly_ahead(some["novel"]["row2"])
    first = {
        text: sorted(shown, key=lambda row, one=one: one[row]["difference"])[:2]
        for text, one in some.items()
    }
    so = so and first["novel"] == ["row13", "row8"] and first["code"][0] == "row8"
    return dict(so=so, behind_on_code=behind) | {f"first on {t}": f for t, f in first.items()}


@said
def the_decks_10_and_12_tell_how_many_stay_clear():
    some = systems_by_text()
    shown = ["row8", "bov", "bov-keep", "bov-fixed"]
    so = all(clearly_ahead(one[plan]) for plan in shown for one in some.values())
    stay = {text: sum(row["by_holm"] for row in one.values()) for text, one in some.items()}
    three = {}
    for text, grid in (("novel", "thirteen_rows"), ("code", "stdlib")):
        ps = {row["plan"]: row["p"] for row in paired(pairs.whole_rows(grid), "loss") if row["p"]}
        three[text] = sum(p < 0.05 for p in holm(ps).values())
    so = so and all(three[text] < stay[text] for text in stay)
    about = {f"by Holm on {text}": number for text, number in stay.items()}
    about |= {f"by Holm on {text}, three seeds": number for text, number in three.items()}
    return dict(so=so) | about | {"bov-fixed, novel": numbers.mean_lead("bov-fixed", "novel")}
