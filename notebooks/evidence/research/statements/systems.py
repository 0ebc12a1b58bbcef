"""How far apart are systems? What notebooks and decks tell of leads that no claim asks for."""

from course import records
from course.owner import CHECKOUT
from course.significance import holm
from evidence.research import (
    asked,
    at_best,
    content,
    dose,
    fair_start,
    leads,
    many_answers,
    numbers,
    own_rates,
    pairs,
    title,
    who,
)
from evidence.research.leads import rank_correlation, with_interval
from evidence.research.pairs import rows_asked
from evidence.research.statements import ahead, average, count, lead_by_seed, of, runs_by_seed, said
from evidence.research.title import TEXTS
from minimal.compare.intervals import paired

LEARNED_AND_FIXED = (("row6", "row5"), ("row9", "row8"), ("bov", "bov-fixed"))


def notebook(name):
    (path,) = records.EVIDENCE.parent.glob(f"{name}_*.ipynb")
    return path.read_text(encoding="utf-8")


def front_page():
    """README in one line: its sentences are wrapped."""
    return " ".join((CHECKOUT / "README.md").read_text(encoding="utf-8").split())


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


@said
def on_code_a_slow_learned_gain_of_a_table_is_ahead_of_a_fixed_one_by_little():
    """At a tenth of the recipe's rate and at a hundredth; notebooks 09 and 10 say the first."""
    fixed, over = runs_by_seed("ten_seeds_code", "bov-fixed"), {}
    for rate in (0.05, 0.005):
        rows = rows_asked("gains_code", "bov")
        slow = [row for row in rows if row["asked"]["overrides"]["beta"]["lr"] == rate]
        over[rate] = lead_by_seed({row["seed"]: row for row in slow}, fixed)
    said_ = leads.number(average(over[0.05]))
    so = all(ahead(some) == 1 for some in over.values()) and len(over[0.05]) == 5
    so = so and f"a table's helps by {said_} on code (five seeds)" in notebook("09")
    so = so and f"the learned one is ahead by {said_} (five seeds)" in notebook("10")
    return dict(so=so) | {f"at {rate}": with_interval(some) for rate, some in over.items()}


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


def of_dose(*cells):
    """The lead of a cell of the dose on both texts, over standard or over another cell."""
    return [f"{dose.lead(place, *cells)['difference']:.3f}" for place in TEXTS]


@said
def the_answer_to_the_title_is_what_notebook_09_says():
    """Its three numbers to remember, and what stands beside and against them: leads, code first."""
    top, bottom = dose.DOSES["from the top"], dose.DOSES["from the bottom"]
    all_twelve = [leads.number(row["difference"]) for row in dose.answer_leads().values()]
    one_recipe, at_the_top = of_dose(dose.ALL), of_dose(top[2])
    bottom = of_dose(bottom[8])
    text = notebook("09")
    so = "by {} nats on code and by {} on the novel".format(*all_twelve) in text
    so = so and "- **{}** on code, values".format(all_twelve[0]) in text
    so = so and "- **{}** on code, in the two layers at the top".format(at_the_top[0]) in text
    so = so and f"With one recipe for both it was {one_recipe[1]} on the novel," in text
    took = own_rates.answer_changes()
    words = f"rates of their own took {leads.number(-took['novel']['difference'])} of that;"
    so = so and words in text and took["novel"]["clear"] and not took["code"]["clear"]
    others = [dose.recorded_elsewhere()[f"dose_{name}"] for name in ("dombey", "miserables")]
    so = so and {dose.standing(row) for row in others} == {"ahead"}
    by = " and ".join(leads.number(row["difference"]) for row in others)
    so = so and f"| two other novels, one English and one French | | {by} |" in text
    lasts = [dose.recorded_elsewhere()[f"dose_long_{name}"] for name in ("code", "novels")]
    so = so and {dose.standing(row) for row in lasts} == {"ahead"}
    later = [leads.number(row["difference"]) for row in lasts]
    so = so and "| after eight times as many tokens | {} | {},".format(*later) in text
    so = so and f"eight layers from the bottom lead by {bottom[1]}" in text
    return dict(so=so, all_twelve=all_twelve, two_at_the_top=at_the_top, later=later, novels=by)


@said
def most_leads_on_the_novel_shrink_where_each_system_has_rates_of_its_own():
    """Of those that both grids have; notebook 09 says so."""
    found = own_rates.changes_on_the_novel()
    smaller = [row for row in found.values() if row["clear"] and row["difference"] < 0]
    larger = [row for row in found.values() if row["clear"] and row["difference"] > 0]
    words = "most of those in the picture are clearly smaller than with the older recipe, and none"
    so = words in notebook("09") and 2 * len(smaller) > len(found) and not larger
    return dict(so=so) | {plan: leads.row_in_words(row) for plan, row in found.items()}


@said
def notebook_09_says_that_eight_layers_at_the_top_are_ahead_of_all_twelve_on_code():
    """One comparison of several; four at the top are not told from twelve."""
    top = dose.DOSES["from the top"]
    eight, four = dose.lead("code", top[8], dose.ALL), dose.lead("code", dose.ALL, top[4])
    words = "the eight at the top lead by more than all twelve, clear"
    so = asked.standing(eight) == "ahead" and asked.standing(four) == "open"
    return dict(so=so and words in notebook("09"), eight=leads.row_in_words(eight))


@said
def the_front_page_answers_as_the_records_do():
    """README: all twelve layers at each plan's own rates, clear on both texts, what queries or keys
    of the token cost, and tables over a standard as large, at their rates; leads, code first."""
    fair = dose.answer_leads()
    all_twelve = [leads.number(row["difference"]) for row in fair.values()]
    over_as_wide = {text: at_best.over_as_wide(text) for text in at_best.texts_of_wide()}
    tables = [leads.number(row["difference"]) for row in over_as_wide.values()]
    text = front_page()
    so = "by {} nats on code and by {} on a novel. That is 0.7M".format(*all_twelve) in text
    part = (
        own_rates.answer_changes()["novel"]["difference"]
        / dose.lead("novel", dose.ALL)["difference"]
    )
    so = so and 0.6 < -part < 0.73 and "rates of their own take two thirds of that lead." in text
    so = so and [*over_as_wide] == [*TEXTS] and {r["n"] for r in over_as_wide.values()} == {5}
    so = so and "by {} nats on code and by {} on a novel. That is 0.97M".format(*tables) in text
    lost = lost_without_the_stream("code")
    so = so and "made so lose on both, {} and {} nats on code (five".format(*lost) in text
    so = so and all(set(who.standings(door)) == {"behind"} for door in ("q", "k"))
    so = so and {dose.standing(row) for row in fair.values()} == {"ahead"}
    so = so and {row["n"] for row in fair.values()} == {10} and "and ten other seeds" in text
    return dict(so=so, all_twelve=all_twelve, queries_and_keys=lost, tables=tables)


def lost_without_the_stream(text):
    """By how much the loss is higher where queries, and where keys, are of the token alone."""
    rows = (who.lead(text, who.EVERYWHERE[door]) for door in ("q", "k"))
    return [leads.number(-row["difference"]) for row in rows]


@said
def notebook_09_says_what_queries_and_keys_of_the_token_cost():
    """Clear on both texts; code first."""
    (q_code, k_code), (q_novel, k_novel) = map(lost_without_the_stream, ("code", "novel"))
    queries = f"queries cost {q_code} nats on code and {q_novel} on the novel"
    told = f"{queries}. Keys cost {k_code} and {k_novel},"
    so = told in notebook("09")
    so = so and all(who.standings(door) == ["behind", "behind"] for door in ("q", "k"))
    return dict(so=so, queries=[q_code, q_novel], keys=[k_code, k_novel])


@said
def readme_and_three_notebooks_tell_what_stays_at_each_systems_best_rates():
    """ResFormer's lead stays on code alone, and so does that of x0 W_V in the last third;
    SVFormer's is not clear there, and behind on the novel. Code first."""
    told = ("resformer", "row8", "svformer")
    found = {plan: [at_best.lead(text, plan) for text in TEXTS] for plan in told}
    shown = {plan: [asked.standing(row) for row in rows] for plan, rows in found.items()}
    so = all(shown[plan][0] == "ahead" for plan in ("resformer", "row8"))
    so = so and all(shown[plan][1] in ("open", "level") for plan in ("resformer", "row8"))
    so = so and shown["svformer"] == ["open", "behind"]
    against = "At best rates neither ResFormer nor x₀ W<sub>V</sub> in the last third leads clearly"
    keep_v = [at_best.lead("novel", plan) for plan in KEEPERS]
    so = so and {asked.standing(row) for row in keep_v} == {"ahead"}
    by = sorted(leads.number(row["difference"]) for row in keep_v)
    keepers = f"and three of standard's size that keep V lead by {by[0]} to {by[-1]};"
    more = f"on the novel, SVFormer is behind, {keepers}"
    so = so and f"{against} {more}" in front_page()
    means = {plan: [float(row["difference"]) for row in rows] for plan, rows in found.items()}
    stays, behind = leads.number(means["resformer"][0]), leads.number(-means["svformer"][1])
    so = so and f"the lead on code stays, {stays} nats, and on the novel it cannot" in notebook(
        "04"
    )
    so = so and "the lead is not clear on code, and on the novel SVFormer is behind" in notebook(
        "05"
    )
    so = so and f"and on the novel SVFormer is behind by {behind}." in notebook("09")
    return dict(so=so) | means


@said
def notebook_09_says_what_half_of_v_takes_away_at_best_rates():
    """It takes some of the token's lead on code, clearly, and on the novel neither is ahead."""
    found = at_best.later_on_each("row8", "row12")
    so = [asked.standing(row) for row in found.values()] == ["ahead", "open"]
    taken = leads.number(found["code"]["difference"])
    words = f"takes {taken} on code, and on the novel neither is clearly ahead."
    so = so and words in notebook("09")
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in found.items()}


@said
def notebook_09_says_where_v_with_learned_weights_beside_the_token_helps():
    """In the last third at best rates: clearly on the novel, over the token alone and over it with
    a learned gain; on code it is not ahead of the first and behind the second. Code first."""
    alone = at_best.later_on_each("row13", "row8")
    with_gain = at_best.later_on_each("row13", "row9")
    so = [asked.standing(row) for row in alone.values()] == ["open", "ahead"]
    so = so and [asked.standing(row) for row in with_gain.values()] == ["behind", "ahead"]
    words = f"gains {leads.number(alone['novel']['difference'])} over $x_0 W_V$ alone on the novel;"
    so = so and words in notebook("09")
    words = f"ahead of row 9, by {leads.number(with_gain['novel']['difference'])} at best rates"
    so = so and words in notebook("09")
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in alone.items()}


@said
def notebook_09_tells_all_layers_from_the_last_third_at_best_rates():
    """At our size all layers are ahead on the novel, and on code neither is."""
    found = at_best.later_on_each("x0-v", "row8")
    so = [asked.standing(row) for row in found.values()] == ["open", "ahead"]
    behind = leads.number(found["novel"]["difference"])
    words = f"the last third is {behind} nats behind all layers on the novel, and on code neither"
    so = so and words in notebook("09")
    so = so and asked.standing(at_best.lead("novel", "row8")) == "open"
    so = so and "the last third is not shown to be ahead of `standard` there." in notebook("09")
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in found.items()}


@said
def notebooks_04_and_09_tell_of_rivals_at_best_rates():
    """DenseFormer stands to ResFormer as with one recipe; NeuTRENO is ahead of it on the novel, and
    there x0 W_V in all layers is not clearly ahead of NeuTRENO, and clearly behind DenseFormer."""
    dense = at_best.later_on_each("resformer", "denseformer").values()
    neutreno = at_best.later_on_each("neutreno", "resformer").values()
    over_all_layers = [at_best.lead("novel", plan, "x0-v") for plan in KEEPERS]
    shown = [asked.standing(row) for row in (*dense, *neutreno, *over_all_layers)]
    so = shown == ["ahead", "behind", "behind", "ahead", "open", "open", "ahead"]
    apart = [leads.number(abs(row["difference"])) for row in (*dense, *neutreno)]
    over_dense = "ahead of DenseFormer on code by {} nats and behind it on the novel by {}."
    turned = "it is behind ResFormer on code by {} and ahead of it on the novel by {}."
    words = f"{over_dense} NeuTRENO changes places: {turned}"
    so = so and words.format(*apart) in notebook("04")
    ahead = (at_best.lead("novel", plan)["difference"] for plan in KEEPERS)
    first, second, further = map(leads.number, ahead)
    words = f"leads there by {first}, and row 13, which keeps it too, by {second}; neither is told"
    so = so and words in notebook("09")
    so = so and f"leads by {further}, clearly more than all twelve layers" in notebook("09")
    finer = asked.lead("fair_finer", "novel", "x0-v", "denseformer", of="at_its_best")
    so = so and "not clearly more than these at finer rates" in notebook("09")
    so = so and asked.standing(finer) == "open"
    return dict(so=so, apart=apart)


@said
def readme_and_notebooks_09_and_13_tell_of_engram_at_best_rates():
    """A table of the last ids read into the stream: ahead of one by one id in V on the novel."""
    over = [at_best.lead(text, "engram") for text in TEXTS]
    tables = at_best.later_on_each("engram", "bov-fixed")
    so = {asked.standing(row) for row in over} == {"ahead"}
    so = so and [asked.standing(row) for row in tables.values()] == ["open", "ahead"]
    code, novel = (leads.number(row["difference"]) for row in over)
    so = so and f"Engram, which is larger, leads by {novel} there." in notebook("09")
    so = so and f"Engram, larger, keeps V and leads by {novel}." in front_page()
    words = f"leads `standard` by {code} nats on code and by {novel} on the novel. It is ahead"
    so = so and words in notebook("13")
    words = f"by one id in $V$ by {leads.number(tables['novel']['difference'])} on the novel;"
    so = so and words in notebook("13")
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in tables.items()}


@said
def notebook_09_does_not_tell_an_own_matrix_from_a_shared_one_at_best_rates():
    """In the last third on neither text, but with a gain on the novel; in all layers on both."""
    found = at_best.later_on_each("row8", "row5")
    so = [*found] == [*TEXTS] and not any(row["clear"] for row in found.values())
    words = "at best rates (below) they cannot be told apart on either in the last third;"
    so = so and words in notebook("09")
    everywhere = at_best.later_on_each("x0-v", "svformer").values()
    so = so and {asked.standing(row) for row in everywhere} == {"ahead"}
    with_gain = at_best.later_on_each("row9", "row6")
    so = so and [row["clear"] for row in with_gain.values()] == [False, True]
    so = so and "the own matrix is clearly ahead on the novel there" in notebook("09")
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in found.items()}


@said
def notebooks_09_and_10_tell_tables_alone_from_tables_beside_v_on_neither_text_at_best_rates():
    """With one recipe tables alone are ahead. Both lead standard, on both texts."""
    beside = at_best.later_on_each("bov-keep", "bov-fixed")
    so = [*beside] == [*TEXTS] and {asked.standing(row) for row in beside.values()} == {"open"}
    ahead = {asked.standing(at_best.lead(text, "bov-keep")) for text in TEXTS}
    words = "at best rates neither is clearly ahead on either text."
    so = so and ahead == {"ahead"} and words in notebook("09")
    words = "Nor is a table alone clearly ahead of a table beside $V$, or behind it."
    so = so and words in notebook("10")
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in beside.items()}


@said
def notebook_09_says_what_a_choice_by_three_seeds_is_worth():
    """Half a step finer, which they preferred, x0 W_V does worse on code in ten other seeds."""
    row = asked.lead("fair_finer", "code", "x0-v", "x0-v", of="fair")
    preferred = fair_start.finer_steps("code")["x0-v"].max()
    words = f"does worse with these on code, by {leads.number(-row['difference'])}, clear:"
    so = asked.standing(row) == "behind" and preferred > 0 and words in notebook("09")
    return dict(so=so, ten=leads.row_in_words(row), three=leads.signed(preferred))


@said
def notebook_09_says_that_at_best_rates_a_learned_gain_on_x0_w_v_helps_a_little():
    """In the last third, clear on both texts; of tables neither form is clearly ahead."""
    found = at_best.later_on_each("row9", "row8")
    by = (leads.number(row["difference"]) for row in found.values())
    words = "that of $x_0 W_V$ does a little, by {} on code and {} on the novel".format(*by)
    so = at_best.changes_our_mind("row9") and words in notebook("09")
    of_tables = at_best.later_on_each("bov", "bov-fixed").values()
    so = so and not any(asked.standing(row) in ("ahead", "behind") for row in of_tables)
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in found.items()}


@said
def notebook_09_says_that_a_learned_gain_on_v_itself_is_worse_on_code_at_best_rates():
    """The control of every gain; on the novel it is not told from standard."""
    found = {text: at_best.lead(text, "row2") for text in TEXTS}
    so = [asked.standing(row) for row in found.values()] == ["behind", "open"]
    so = so and "at best rates (below) it is, clearly, on code" in notebook("09")
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in found.items()}


@said
def notebook_10_tells_learned_gains_from_fixed_ones_at_best_rates():
    """Both lead clearly, and neither form is ahead of the other. Code first."""
    over_fixed = at_best.later_on_each("bov", "bov-fixed")
    so = [asked.standing(row) for row in over_fixed.values()] == ["open", "level"]
    ahead = [at_best.lead(text, "bov") for text in TEXTS]
    so = so and {asked.standing(row) for row in ahead} == {"ahead"}
    code, novel = (leads.number(row["difference"]) for row in ahead)
    words = f"leads `standard` by {code} nats on code and by {novel} on the novel, and on"
    so = so and words in notebook("10")
    slow = {"beta": dict(lr=0.01 * title.RECIPE.rows["beta"].lr)}
    so = so and title.BANK_AT_ITS_BEST["novel"] == [dict(plan="bov", overrides=slow)]
    return dict(so=so) | {text: leads.row_in_words(row) for text, row in over_fixed.items()}


@said
def notebooks_04_and_09_say_that_number_and_gradient_of_v1_help_only_together():
    """Both lead standard, clearly, on both texts; the number alone and the gradient alone on
    neither, over standard or over the cell in which nothing passes. Code first."""
    leads_, gains_ = {}, {}
    for way in ("both", "forward", "gradient"):
        leads_[way] = [content.lead(text, content.passed_cell("v1", way)) for text in TEXTS]
        gains_[way] = [content.gain(text, "v1", way) for text in TEXTS]
    so = content.texts() == [*TEXTS]
    for found in (leads_, gains_):
        so = so and {asked.standing(row) for row in found["both"]} == {"ahead"}
        alone = found["forward"] + found["gradient"]
        so = so and "ahead" not in map(asked.standing, alone)
    means = {way: [leads.number(row["difference"]) for row in rows] for way, rows in leads_.items()}
    long = leads.number(
        content.lead_after_long("code", content.passed_cell("v1", "both"))["difference"]
    )
    longer = f"on code, both together lead by {long} nats, and still neither leads alone"
    so = so and content.alone_after_long("v1") == [] and longer in notebook("04")
    told = "lead by {} nats on code and {} on the novel".format(*means["both"])
    so = so and told in notebook("04") and told in notebook("09")
    return dict(so=so) | means


@said
def notebook_09_tells_how_many_answers_a_weight_says():
    """Of ten and of twenty, in per cent: mean of three seeds, and the least and the most."""
    few = [many_answers.mean_of_many(plan, many_answers.FEW) for plan in many_answers.BY_TOKEN]
    many = {plan: many_answers.shares_of_many(plan) for plan in ("standard", "x0")}
    ends = [f"{100 * min(some):.0f} to {100 * max(some):.0f} %" for some in many.values()]
    told = f"$x_0 W_V$ finds {100 * few[1]:.0f} % and the others all"
    told = [told, "`standard` finds {}, $x_0 W_V$ {}".format(*ends)]
    so = all(words in notebook("09") for words in told)
    so = so and min(few[:1] + few[2:]) > 0.995 and not many_answers.many_need_it()
    return dict(so=so, ten=few, twenty=ends)


@said
def notebook_09_tells_what_the_token_explains_of_row_13s_values_on_both_texts():
    """Its table, cell by cell: the least and the most of six runs a text."""
    text, so, about = notebook("09"), True, {}
    for words, layers in (("9 and 10", (8, 9)), ("11", (10,)), ("12", (11,))):
        cells = []
        for grid in ("inside_code", "inside"):
            some = rows_asked(grid, "row13") + rows_asked(grid, "row13-equal")
            for field in ("token", "token_own"):
                cells.append(of([row[field][layer] for row in some for layer in layers]))
        so &= f"| {words} | " + " | ".join(cells) in text
        about[f"layers {words}"] = cells
    return dict(so=so) | about


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
