"""Where did coefficients end, and what do layers hold? Recorded weights, and measures of values."""

import torch

from course.records import published
from evidence.research import gains
from evidence.research.cells import GAINED
from evidence.research.leads import between, with_interval
from evidence.research.noted import BY_TEXT, GAIN, SKIP, STREAM, TABLE, X0, ends
from evidence.research.pairs import rows_asked
from evidence.research.statements import (
    ahead,
    average,
    count,
    lead_by_seed,
    of,
    per_seed,
    runs_by_seed,
    said,
    values,
)
from minimal import analysis

INSIDE = dict(novel="inside", code="inside_code")
ROW_13 = ("row13", "row13-equal")  # as published, and both coefficients at one rate


def near_zero(gain):
    return abs(gain) < gains.NEAR


# ---- gains ---------------------------------------------------------------------------------------


@said
def gains_of_context_free_values_end_below_2_on_the_novel_and_below_5_on_code():
    novel, code = (
        [abs(x) for plan in ("row6", "row9") for x in ends(grid, plan, "gain")]
        for grid in BY_TEXT.values()
    )
    above = count(code, lambda x: x > 2)
    about = {"on the novel": of(novel), "on code": of(code), "above 2 on code": above}
    return dict(so=max(novel) < 2 and 2 < max(code) < 5) | about


@said
def row_2s_gain_falls_from_1_toward_zero_in_every_layer():
    found = {text: [abs(x) for x in ends(grid, "row2", "gain")] for text, grid in BY_TEXT.items()}
    so = all(max(some) < 1 for some in found.values())
    about = {f"on {text}": of(some) for text, some in found.items()}
    return dict(so=so) | about | {f"{t}, near zero": count(s, near_zero) for t, s in found.items()}


@said
def learned_gains_silence_layers_on_the_novel_and_fixed_ones_do_not():
    silent, about = {}, {}
    for text in ("novel", "code"):
        for plan in ("standard", "bov-fixed", "bov", "bov-every", "row9"):
            shares = [
                r["share"][at] for r in rows_asked(f"shares_{text}", plan) for at in gains.DEEP
            ]
            silent[text, plan] = sum(share < gains.SILENT for share in shares)
            about[f"{plan} on the {text}"] = f"{silent[text, plan]} of {len(shares)}"
    fixed = [silent[text, plan] for text in BY_TEXT for plan in ("standard", "bov-fixed")]
    learned = ("bov", "bov-every", "row9")
    so = not any(fixed) and all(silent["novel", p] > silent["code", p] for p in learned)
    return dict(so=so) | about


@said
def no_layer_of_standard_is_near_to_silent():
    some = rows_asked("shares_code", "standard") + rows_asked("shares_novel", "standard")
    least = min(min(row["share"].values()) for row in some)
    return dict(so=least > gains.SILENT, least=least)


@said
def on_code_a_tenth_of_the_fast_rate_is_better_than_all_of_it_for_rows_6_and_9():
    found = {}
    for plan in ("row6", "row9", "bov"):
        slow = {row["seed"]: row for row in gains.slowed("code", plan, "0.05")}
        found[plan] = lead_by_seed(slow, runs_by_seed("ten_seeds_code", plan))
    so = [ahead(some) for some in found.values()] == [1, 1, 0]
    return dict(so=so) | {plan: with_interval(some) for plan, some in found.items()}


@said
def small_gains_of_the_bank_in_every_layer_do_not_make_its_layers_silent():
    """Where more than half of the gains are near zero, layers write nearly as much as where none
    is."""
    found = {rate: gains.slowed("code", "bov-every", rate) for rate in gains.SLOWER}
    closed = [gains.closed(map(gains.gains_of, some)) for some in found.values()]
    shares = [float(gains.written_share(some)) for some in found.values()]
    so = closed[0].split()[0] != "0" and closed[1].startswith("0 of")
    return dict(so=so and gains.SILENT < shares[0] < shares[1], closed=closed, shares=shares)


@said
def at_a_hundredth_of_its_rate_no_gain_closes_on_the_novel_and_the_bank_leads():
    """README, the findings page and notebooks 09 and 10 say so."""
    so = gains.seeds("novel") == "five"
    for plan in GAINED:
        open_ = gains.closed(map(gains.gains_of, gains.slowed("novel", plan, "0.005")))
        fast = gains.closed(gains.final_gains("novel", plan)).split()
        so &= open_.startswith("0 of") and 2 * int(fast[0]) >= int(fast[2])
        so &= all(gains.slow_lead("novel", plan, rate).startswith("**+") for rate in gains.SLOWER)
    for rate in gains.SLOWER:  # against themselves at the paper's rate
        for plan in ("bov-every", "bov"):
            so &= gains.slow_lead("novel", plan, rate, plan).startswith("**+")
    return dict(so=so, bov=gains.slow_lead("novel", "bov", "0.005"))


@said
def at_a_tenth_gains_of_the_bank_in_every_layer_are_small_and_its_layers_write_as_others_do():
    slow = {plan: gains.slowed("novel", plan, "0.05") for plan in GAINED}
    closed = gains.closed(map(gains.gains_of, slow["bov-every"]))
    shares = [float(gains.written_share(some)) for some in slow.values()]
    small, _, every = closed.split()
    so = 2 * int(small) > int(every) and min(shares) > gains.SILENT
    return dict(so=so, closed=closed, shares=of(shares))


# ---- x0 W_V in one layer at a time ---------------------------------------------------------------


@said
def one_layer_of_token_values_gains_nothing_and_layer_6_is_behind():
    plain, leads, gain = runs_by_seed("thirteen_rows", "standard"), {}, {}
    for at in range(12):
        found = runs_by_seed("one_layer", f"row9@{at}")
        leads[at] = lead_by_seed(found, plain)
        for seed, row in found.items():
            gain[at, seed] = row["coefficients"][f"blocks.{at}.attention.value.gain"]
    clear = {at: ahead(some) for at, some in leads.items() if ahead(some)}
    small, last = count(gain.values(), near_zero), [gain[11, seed] for seed in plain]
    means = of([average(some) for some in leads.values()], 3)
    return dict(so=clear == {6: -1}, leads=means, gains_near_zero=small, gains_of_layer_11=last)


# ---- rows 11 and 13 ------------------------------------------------------------------------------


@said
def v_leaves_its_start_in_row_11_and_not_in_row_13():
    """It starts at 1, and all of row 11's ends lie below all of row 13's."""
    found = {
        (plan, text): ends(grid, plan, "a")
        for plan in ("row11", "row13")
        for text, grid in BY_TEXT.items()
    }
    so = all(max(found["row11", text]) < min(found["row13", text]) for text in BY_TEXT)
    return dict(so=so) | {f"{plan}, {text}": of(some) for (plan, text), some in found.items()}


@said
def the_token_has_the_larger_coefficient_in_row_13_and_not_in_row_11():
    """It is up to twice as large, where the article's Figure 2 has four times."""
    larger = {}
    for text, grid in BY_TEXT.items():
        for plan in ("row11", "row13"):
            both = list(zip(ends(grid, plan, "a"), ends(grid, plan, "b"), strict=True))
            larger[f"{plan}, {text}"] = count(both, lambda pair: abs(pair[1]) > abs(pair[0]))
    ends_13 = zip(*(ends("thirteen_rows", "row13", letter) for letter in "ab"), strict=True)
    most = max(abs(b / a) for a, b in ends_13)
    some = {name: int(words.split()[0]) for name, words in larger.items()}
    so = some["row11, novel"] < 6 and min(some["row13, novel"], some["row13, code"]) > 6
    return dict(so=so) | larger | {"at most, in row13 on the novel": most}


@said
def in_row_13_a_coefficients_size_does_not_tell_how_much_of_the_value_is_the_tokens():
    """In layer 11 the weights of V and of x0 W_V are alike in size, and the token explains less of
    the mixture than of V."""
    name = "blocks.11.attention.value."
    ratio = [
        -row["coefficients"][f"{name}b"] / row["coefficients"][f"{name}a"]
        for row in rows_asked("thirteen_rows", "row13")
    ]
    last = [(row["token"][11], row["token_own"][11]) for row in rows_asked("inside", "row13")]
    mixed, own = zip(*last)
    return dict(so=max(mixed) < min(own), ratio=of(ratio), mixture=of(mixed), own=of(own))


def differences_by_layer(text, plan):
    """What the token explains of the value as read, less of V alone: {layer: by seed}."""
    some = rows_asked(INSIDE[text], plan)
    return {at: [row["token"][at] - row["token_own"][at] for row in some] for at in range(8, 12)}


@said
def on_the_novel_a_negative_weight_makes_two_layers_of_row_13_more_the_tokens_and_one_less():
    """h - x0 takes out what h holds of x0; h - 1.5 x0 overshoots. Layers 8 and 9 overshoot, layer
    10 evens out."""
    so, about = True, {}
    for plan in ROW_13:
        at = differences_by_layer("novel", plan)
        so &= min(at[8] + at[9]) > 0 > max(at[11])
        so &= max(map(abs, at[10])) < min(at[8] + at[9])
        about |= {f"{plan}, layer {layer}": of(some) for layer, some in at.items()}
    return dict(so=so) | about


@said
def on_code_no_layer_of_row_13_takes_a_tenth_of_the_token_out():
    so, about = True, {}
    for plan in ROW_13:
        at = differences_by_layer("code", plan)
        so &= min(min(some) for some in at.values()) > -0.1 and min(at[8] + at[9]) > 0
        about |= {f"{plan}, layer {layer}": of(some) for layer, some in at.items()}
    return dict(so=so) | about


@said
def at_one_rate_too_row_13_has_a_negative_weight_on_the_token_in_every_layer():
    on_v, on_x0 = (ends("confound", "row13", letter) for letter in "ab")
    return dict(so=max(on_x0) < 0 < min(on_v), on_v=of(on_v), on_the_token=of(on_x0))


# ---- ResFormer from inside -----------------------------------------------------------------------


def over_standard(text, field, plan="resformer"):
    """By how much a field of a plan exceeds standard's, by seed."""
    ours, theirs = (runs_by_seed(INSIDE[text], name) for name in (plan, "standard"))
    return list(between(values(theirs, field), values(ours, field)))


@said
def resformers_entropy_is_higher_where_nothing_concentrates():
    """Over 128 tokens the map that looks evenly at all it may see has the entropy `even`: both
    plans lie above it in the upper half. ResFormer lies higher, on code not clearly."""
    even = torch.ones(1, 1, 128, 128).tril() / torch.arange(1, 129)[:, None]
    level = analysis.token_entropy(even).item()
    so, about = True, dict(even=f"{level:.2f}")
    for text in INSIDE:
        plans = ("standard", "resformer")
        so &= all(r["entropy_deep"] > level for p in plans for r in rows_asked(INSIDE[text], p))
        more = over_standard(text, "entropy_deep")
        so &= ahead(more) == (text == "novel")
        about[f"more on {text}"] = with_interval(more)
    return dict(so=so) | about


@said
def resformers_tokens_are_more_alike_in_the_upper_half():
    more = {text: over_standard(text, "similarity_deep") for text in INSIDE}
    so = all(ahead(some) == 1 for some in more.values())
    return dict(so=so) | {text: with_interval(some) for text, some in more.items()}


@said
def resformers_own_values_have_larger_eigenvalues_and_those_as_read_smaller_ones():
    fields = dict(own="log_largest_own", read="log_largest")
    more = {
        (text, name): over_standard(text, field)
        for text in INSIDE
        for name, field in fields.items()
    }
    so = all(ahead(some) == (1 if name == "own" else -1) for (_, name), some in more.items())
    return dict(so=so) | {
        f"{text}, {name}": with_interval(some) for (text, name), some in more.items()
    }


# ---- the lambdas: sixteen layers -----------------------------------------------------------------


def short(recipe="modded", plan="modded"):
    """500 steps, one schedule held still at a time, the gap moved or closed."""
    return runs_by_seed("lambdas", plan, recipe=recipe)


def long(recipe="modded", plan="modded"):
    """The article's 5,960 steps. They take away one excuse; width and data remain."""
    return runs_by_seed("lambdas_long", plan, recipe=recipe)


def at_the_end(row, form):
    """{layer: weight at the end} of one kind of weight, in the layers that have it."""
    names = {layer: form.format(layer) for layer in range(16)}
    held = row["coefficients"]
    return {layer: held[name] for layer, name in names.items() if name in held}


def weights_of(runs, form):
    """All of one kind, over layers and seeds."""
    return [weight for row in runs.values() for weight in at_the_end(row, form).values()]


def beside_layer_8_of(row):
    """Layer 8's weight on the stream, less the mean of the other layers from 1 to 13."""
    r = {at: weight for at, weight in at_the_end(row, STREAM).items() if 1 <= at <= 13}
    return r.pop(8) - average(r.values())


@said
def in_500_steps_weights_on_v_and_on_skips_are_on_their_way():
    """Skips begin at 1 and end, in the article, at .4, .5 and .3 after 5,960 steps."""
    skips, on_v = (weights_of(short(), form) for form in (SKIP, GAIN))
    (article,) = published("lambdas", "Value lambdas")["rows"]
    so = max(skips) < 1 and max(on_v) < article["low"]
    so = so and all(by[9] > by[11] for by in per_seed(short(), lambda r: at_the_end(r, SKIP)))
    return dict(so=so, skips=of(skips), on_v=of(on_v))


@said
def after_500_steps_x0s_weights_are_as_large_in_the_last_layers_as_in_the_first():
    found = per_seed(short(), lambda row: at_the_end(row, X0))
    early, late = ([by[at] for by in found for at in ends_] for ends_ in ((1, 2), (14, 15)))
    so = max(min(early), min(late)) < min(max(early), max(late))  # the ranges overlap
    return dict(so=so, first=of(early), last=of(late))


@said
def after_500_steps_the_last_tables_weight_is_not_the_largest():
    tables = per_seed(short(), lambda row: at_the_end(row, TABLE))
    so = all(max(by, key=by.get) != 15 for by in tables)
    return dict(so=so, weights=of(weights_of(short(), TABLE)))


@said
def the_rate_turns_the_curves_and_the_window_cannot_be_seen_to():
    still = between(values(short("modded-constant"), "fell"), values(short(), "fell"))
    shut = between(values(short("modded-open"), "fell"), values(short(), "fell"))
    fell = [row["fell"] for row in short().values()]
    return dict(so=ahead(still) == 1 and not ahead(shut), fell=fell, window=with_interval(shut))


@said
def where_x0_outweighs_the_stream_depends_on_how_far_the_rate_carries():
    def above(recipe):
        return per_seed(short(recipe), lambda r: sum(one > 0.5 for one in r["x0_share"][1:]))

    plain, constant = above("modded"), above("modded-constant")
    return dict(so=max(plain) < min(constant), plain=plain, constant=constant)


@said
def after_500_steps_layer_8_takes_less_of_the_stream_not_more():
    less = [-value for value in per_seed(short(), beside_layer_8_of)]
    other = {
        plan: per_seed(short(plan=plan), beside_layer_8_of)
        for plan in ("modded-moved", "modded-whole")
    }
    about = {f"beside the others, {plan}": of(some) for plan, some in other.items()}
    return dict(so=ahead(less) == 1, less=with_interval(less)) | about


@said
def no_weight_on_x0_changes_sign_and_the_loss_rises_only_with_the_window():
    """In runs of 500 and of 5,960 steps."""
    so, about = True, {}
    for grid, of_length in (("lambdas", short), ("lambdas_long", long)):
        so &= all(row["crossed"] == [] for row in rows_asked(grid))
        rise, shut = (
            per_seed(of_length(r), lambda x: x["rise"]) for r in ("modded", "modded-open")
        )
        gain = lead_by_seed(of_length("modded-open"), of_length())
        so &= min(rise) > 0 > max(shut) and ahead(gain) == 1
        about |= {f"{grid}: rise": of(rise, 3), f"{grid}: window open": with_interval(gain)}
    gap = lead_by_seed(long(plan="modded-whole"), long())
    return dict(so=so and not ahead(gap)) | about | {"gap closed": with_interval(gap)}


# ---- the lambdas at their own length -------------------------------------------------------------


@said
def at_its_own_length_layer_0_keeps_its_gap_and_its_weights_are_not_yet_alike():
    pairs = per_seed(long(), lambda r: (at_the_end(r, STREAM)[0], at_the_end(r, X0)[0]))
    gaps, ratios = [r - z for r, z in pairs], [r / z for r, z in pairs]
    so = all(round(gap, 2) == 1 for gap in gaps) and min(ratios) > 1
    return dict(so=so, gap=of(gaps), stream=of([r for r, _ in pairs]), ratio=of(ratios))


@said
def at_its_own_length_the_skips_are_ordered_the_other_way_round():
    table = {
        row["destination"]: row["final"] for row in published("lambdas", "U-Net lambdas")["rows"]
    }
    found = per_seed(long(), lambda row: at_the_end(row, SKIP))
    so = min(table, key=table.get) == 9 and all(by[11] < by[10] < by[9] for by in found)
    return dict(so=so) | {f"layer {at}": of([by[at] for by in found]) for at in (9, 10, 11)}


@said
def at_its_own_length_one_weight_on_v_of_27_reaches_6():
    (article,) = published("lambdas", "Value lambdas")["rows"]
    found = weights_of(long(), GAIN)
    reach = count(found, lambda weight: weight >= article["low"])
    return dict(so=reach == "1 of 27", reach=reach, weights=of(found), mean=average(found))


@said
def at_its_own_length_the_last_table_leads_the_mean_of_the_others_and_not_the_largest():
    def last_less(of_the_others, runs):
        weights = per_seed(runs, lambda row: [*at_the_end(row, TABLE).values()])
        return [some[-1] - of_the_others(some[:-1]) for some in weights]

    over_mean, over_largest = last_less(average, long()), last_less(max, long())
    so = ahead(over_mean) == 1 and not ahead(over_largest)
    so = so and average(last_less(max, long("modded-open"))) < 0
    return dict(
        so=so, over_the_mean=with_interval(over_mean), over_the_largest=with_interval(over_largest)
    )


@said
def at_its_own_length_x0_outweighs_the_stream_in_all_layers_but_one_or_two():
    def exceptions(row):
        return [layer for layer, share in enumerate(row["x0_share"]) if share <= 0.5]

    found = per_seed(long(), exceptions)
    return dict(so=all(1 <= len(some) <= 2 for some in found), exceptions=found)


@said
def at_its_own_length_shares_turn_back_in_13_of_15_layers():
    """At half of the run; later in a run of 500 steps."""
    fell, turn = (per_seed(long(), lambda row, f=field: row[f]) for field in ("fell", "turn"))
    later = per_seed(short(), lambda row: row["turn"])
    so = fell == [13, 13, 13] and max(turn) < min(later)
    return dict(so=so, fell=fell, turn=of(turn), turn_of_500=of(later))


@said
def at_its_own_length_x0s_weights_are_larger_in_the_lower_half():
    def lower_half(row):
        z = {layer: abs(weight) for layer, weight in at_the_end(row, X0).items()}
        return average([z[at] for at in range(1, 8)]) - average([z[at] for at in range(8, 16)])

    found = [
        per_seed(some, lower_half)
        for some in (long(), long(plan="modded-whole"), long("modded-open"))
    ]
    return dict(so=all(ahead(some) == 1 for some in found), more=with_interval(found[0]))


@said
def at_its_own_length_layer_8_has_the_smallest_weight_on_the_stream_with_and_without_the_gap():
    def smallest(row):
        r = {at: w for at, w in at_the_end(row, STREAM).items() if 1 <= at <= 13}
        return min(r, key=r.get) == 8

    cells = {
        "as it is": long(),
        "gap closed": long(plan="modded-whole"),
        "window open": long("modded-open"),
    }
    less = {
        name: [-value for value in per_seed(some, beside_layer_8_of)]
        for name, some in cells.items()
    }
    so = all(ahead(some) == 1 for some in less.values())
    so = so and all(all(per_seed(some, smallest)) for some in cells.values())
    gap = [one - other for one, other in zip(less["as it is"], less["gap closed"], strict=True)]
    about = {f"less, {name}": with_interval(some) for name, some in less.items()}
    return dict(so=so and ahead(gap) == 1) | about | {"the gap lowers it by": with_interval(gap)}


@said
def at_its_own_length_an_open_window_moves_the_turn_a_little_and_does_not_undo_it():
    def change(field):
        return list(between(values(long("modded-open"), field), values(long(), field)))

    fell, turn = change("fell"), change("turn")
    falls = per_seed(long("modded-open"), lambda row: row["fell"])
    return dict(
        so=not ahead(fell) and ahead(turn) == 1, fell=falls, turn_earlier_by=with_interval(turn)
    )
