"""What recorded runs say of claims that no comparison of two plans decides (claims.toml).

The name of a test is the sentence that it bears out. A mean is ahead where its interval is clear.
"""

from statistics import fmean

import torch

from course import records
from course.crossings import critical_point
from minimal import analysis
from minimal.compare import intervals
from minimal.compare.curves import relative

BY_TEXT = dict(novel="thirteen_rows", code="stdlib")
INSIDE = dict(novel="inside", code="inside_code")
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
WINDOW = 5  # recorded values over which a curve is smoothed

STREAM, X0, SKIP = "streams.1.residual.{}", "streams.1.x0.{}", "streams.0.weight.{}"
GAIN, TABLE = "blocks.{}.attention.value.gain", "blocks.{}.attention.value.b"


def rows(grid, plan=None, **asked):
    """The rows of a grid, or of a file of measures; of one plan and setting."""
    some = [run for run in records.recorded_runs() if run["grid"] == grid]
    some = some or records.read(grid)["rows"]
    some = [row for row in some if plan in (None, row["plan"])]
    return [row for row in some if all(row.get(name) == asked[name] for name in asked)]


def by_seed(grid, plan, **asked):
    """{seed: row} of one plan in one setting."""
    some = rows(grid, plan, **asked)
    found = {row["seed"]: row for row in some}
    assert some and len(found) == len(some), (grid, plan, asked)
    return found


def ahead(values):
    """1 where a mean is clearly above zero, -1 where it is clearly below, else 0."""
    values = list(values)
    mean, low, high = intervals.interval(values)
    return (1 if mean > 0 else -1) if intervals.clear(low, high, len(values)) else 0


def less(theirs, ours, field="loss"):
    """The first less the second, seed by seed, of two {seed: row}: of losses, how far ours lead."""
    return [theirs[seed][field] - ours[seed][field] for seed in sorted(ours.keys() & theirs.keys())]


def both_of(grid, plans=("svformer", "standard"), **asked):
    return [by_seed(grid, plan, **asked) for plan in plans]


def grows(first, second):
    return [after - before for before, after in zip(first, second, strict=True)]


# ---- SVFormer: is it overtaken, and what moves its lead? -----------------------------------------


def crossings(ours, theirs):
    """Where each run of ours is overtaken: one point a seed, None where it is not."""
    both = sorted(ours.keys() & theirs.keys())
    return [critical_point(ours[s]["train"], theirs[s]["train"], WINDOW) for s in both]


def lead_at(style, lr, warmup=0.1):
    """SVFormer's lead over standard by seed, at a rate and a warm-up."""
    ours, theirs = both_of("critical_point", style=style, lr=lr, warmup=warmup)
    return less(theirs, ours)


def lead_of_length(context):
    ours, theirs = both_of("lengths", context=context)
    return less(theirs, ours)


def test_within_500_steps_svformer_is_not_overtaken_though_its_lead_melts():
    ours, theirs = both_of("thirteen_rows")
    curves = [relative(ours[seed]["train"], theirs[seed]["train"], WINDOW) for seed in ours]
    assert all(min(curve) < curve[-1] < 0 for curve in curves)
    assert not any(crossings(ours, theirs))


def test_at_no_length_is_svformer_overtaken_within_the_budget():
    points = [crossings(*both_of("lengths", context=context)) for context in (64, 128, 256)]
    assert not any(sum(points, [])) and len(sum(points, [])) == 9


def test_svformers_lead_does_not_clearly_grow_from_64_to_256_tokens():
    assert not ahead(grows(lead_of_length(64), lead_of_length(256)))


def test_whether_smaller_rates_help_svformer_more_depends_on_the_style():
    helps = {s: grows(lead_at(s, 3e-3), lead_at(s, 3e-4)) for s in ("nanochat", "llama")}
    assert [ahead(values) for values in helps.values()] == [1, -1]
    assert [ahead(lead_at("llama", lr)) for lr in RATES] == [1] * 4
    for lr in RATES:
        assert not any(crossings(*both_of("critical_point", style="llama", lr=lr, warmup=0.1)))


def test_at_the_papers_warm_ups_the_llama_lead_does_not_clearly_move():
    """1.2 % in its Table 4, 12 % in its text: ours are 1 and 10 % of the run."""
    for lr in RATES:
        assert not ahead(grows(lead_at("llama", lr, 0.01), lead_at("llama", lr, 0.1)))


# ---- coefficients of Table 1's rows --------------------------------------------------------------


def ends(grid, plan, letter):
    """Final coefficients whose names end so, over layers and rows."""
    every = [item for row in rows(grid, plan) for item in row["coefficients"].items()]
    return [value for name, value in every if name.endswith(f"value.{letter}")]


def larger_on_the_token(grid, plan):
    """In how many layers and runs x0's or V1's coefficient ends larger than V's."""
    both = zip(ends(grid, plan, "a"), ends(grid, plan, "b"), strict=True)
    return sum(abs(b) > abs(a) for a, b in both)


def test_row_2s_gain_falls_from_1_toward_zero_in_every_layer():
    for grid in BY_TEXT.values():
        assert max(map(abs, ends(grid, "row2", "gain"))) < 1


def test_gains_of_context_free_values_end_below_2_on_the_novel_and_below_5_on_code():
    novel, code = (
        max(abs(x) for plan in ("row6", "row9") for x in ends(grid, plan, "gain"))
        for grid in BY_TEXT.values()
    )
    assert novel < 2 < code < 5


def test_v_leaves_its_start_at_1_in_row_11_and_not_in_row_13():
    for grid in BY_TEXT.values():
        assert max(ends(grid, "row11", "a")) < min(ends(grid, "row13", "a"))


def test_the_token_has_the_larger_coefficient_in_row_13_and_not_in_row_11():
    assert len(ends("thirteen_rows", "row13", "a")) == 12
    assert larger_on_the_token("thirteen_rows", "row11") < 6
    assert min(larger_on_the_token(grid, "row13") for grid in BY_TEXT.values()) > 6


def test_in_row_13_a_coefficients_size_does_not_tell_how_much_of_the_value_is_the_tokens():
    """In layer 11 the token explains less of the mixture than of V."""
    last = [(row["token"][11], row["token_own"][11]) for row in rows("inside", "row13")]
    mixed, own = zip(*last)
    assert max(mixed) < min(own)


def test_resformers_entropy_is_higher_where_nothing_concentrates():
    """Over 128 tokens the map that looks evenly at all it may see has the entropy `level`: both
    plans lie above it in the upper half. ResFormer lies higher, on code not clearly."""
    even = torch.ones(1, 1, 128, 128).tril() / torch.arange(1, 129)[:, None]
    level = analysis.token_entropy(even).item()
    for text, name in INSIDE.items():
        ours, theirs = both_of(name, ("resformer", "standard"))
        assert all(row["entropy_deep"] > level for row in (*ours.values(), *theirs.values()))
        assert ahead(less(ours, theirs, "entropy_deep")) == (text == "novel")


# ---- the lambdas at the article's own length: sixteen layers, 5,960 steps ------------------------


def long(recipe="modded", plan="modded"):
    return by_seed("lambdas_long", plan, recipe=recipe)


def weights(row, form, layers=range(16)):
    """{layer: weight at the end} of one kind, in the layers that have it."""
    held = row["coefficients"]
    return {at: held[form.format(at)] for at in layers if form.format(at) in held}


def quoted(table):
    return records.published("lambdas", table)["rows"]


def test_at_its_own_length_layer_0_keeps_its_gap_and_its_weights_are_not_yet_alike():
    for row in long().values():
        stream, x0 = (weights(row, form)[0] for form in (STREAM, X0))
        assert round(stream - x0, 2) == 1 < stream / x0


def test_at_its_own_length_the_skips_are_ordered_the_other_way_round():
    printed = {row["destination"]: row["final"] for row in quoted("U-Net lambdas")}
    assert min(printed, key=printed.get) == 9
    for row in long().values():
        by_layer = weights(row, SKIP)
        assert by_layer[11] < by_layer[10] < by_layer[9]


def test_at_its_own_length_one_weight_on_v_of_27_reaches_6():
    (article,) = quoted("Value lambdas")
    found = [weight for row in long().values() for weight in weights(row, GAIN).values()]
    assert len(found) == 27 and sum(weight >= article["low"] for weight in found) == 1


def last_table_less(of_the_others, some):
    tables = [[*weights(row, TABLE).values()] for row in some.values()]
    return [table[-1] - of_the_others(table[:-1]) for table in tables]


def test_at_its_own_length_the_last_table_leads_the_mean_of_the_others_and_not_the_largest():
    assert ahead(last_table_less(fmean, long())) == 1
    assert not ahead(last_table_less(max, long()))
    assert fmean(last_table_less(max, long("modded-open"))) < 0


def test_at_its_own_length_x0_outweighs_the_stream_in_all_layers_but_one_or_two():
    for row in long().values():
        assert 1 <= sum(share <= 0.5 for share in row["x0_share"]) <= 2


def test_at_its_own_length_shares_turn_back_in_13_of_15_layers():
    """At half of the run; later in a run of 500 steps."""
    assert [row["fell"] for row in long().values()] == [13, 13, 13]
    short = by_seed("lambdas", "modded", recipe="modded")
    assert max(row["turn"] for row in long().values()) < min(row["turn"] for row in short.values())


def lower_half_more(row):
    sizes = {at: abs(weight) for at, weight in weights(row, X0).items()}
    return fmean(sizes[at] for at in range(1, 8)) - fmean(sizes[at] for at in range(8, 16))


def test_at_its_own_length_x0s_weights_are_larger_in_the_lower_half():
    for some in (long(), long(plan="modded-whole"), long("modded-open")):
        assert ahead(map(lower_half_more, some.values())) == 1


def less_in_layer_8(row):
    """The mean weight on the stream of the other layers from 1 to 13, less that of layer 8."""
    by_layer = weights(row, STREAM, range(1, 14))
    return fmean(weight for at, weight in by_layer.items() if at != 8) - by_layer[8]


def test_at_its_own_length_layer_8_has_the_smallest_weight_on_the_stream_with_and_without_the_gap():
    cells = long(), long(plan="modded-whole"), long("modded-open")
    for some in cells:
        assert ahead(map(less_in_layer_8, some.values())) == 1
        for row in some.values():
            by_layer = weights(row, STREAM, range(1, 14))
            assert min(by_layer, key=by_layer.get) == 8
    with_gap, without = ([*map(less_in_layer_8, some.values())] for some in cells[:2])
    assert ahead(grows(without, with_gap)) == 1, "the gap lowers it, where the reason wants it high"


def test_at_its_own_length_an_open_window_moves_the_turn_a_little_and_does_not_undo_it():
    assert not ahead(less(long(), long("modded-open"), "fell"))
    assert ahead(less(long(), long("modded-open"), "turn")) == 1


def test_no_weight_on_x0_changes_sign_and_the_loss_rises_only_with_the_window():
    """In runs of 500 and of 5,960 steps."""
    for grid in ("lambdas", "lambdas_long"):
        assert all(row["crossed"] == [] for row in rows(grid))
        whole, shut = (by_seed(grid, "modded", recipe=r) for r in ("modded", "modded-open"))
        rise, none = ([row["rise"] for row in some.values()] for some in (whole, shut))
        assert min(rise) > 0 > max(none) and ahead(less(whole, shut)) == 1
    assert not ahead(less(long(), long(plan="modded-whole")))


# ---- what query, key and value choose ------------------------------------------------------------

# What the posts' words are taken to say, of a share; set before the second grid was whole.
MUCH_LARGER, NEAR_ZERO, RECENT = 2 / 3, 0.2, 3


def in_upper_half(text, plan, door, of_layer):
    """{seed: what of_layer finds in a door's mixtures, as the mean of layers 7 to 12}."""
    found = by_seed(f"own_mixture_{text}", plan)
    return {s: fmean(map(of_layer, row["mixed"][door][6:])) for s, row in found.items()}


def of_the_token(mixed):
    """x0's weight beside the stream's; or the shares of all parts, the embedding first."""
    return mixed[0] if isinstance(mixed, list) else mixed


def values_ask_most(text, plan):
    """Do values ask for more of the token than queries and keys, in every seed?"""
    q, k, v = (in_upper_half(text, plan, door, of_the_token) for door in "qkv")
    return all(v[seed] > max(q[seed], k[seed]) for seed in v)


def test_one_pair_for_all_three_gives_the_token_more_than_the_stream_on_code_alone():
    """And nowhere twice as much."""
    code, novel = (
        in_upper_half(text, "coef-shared", "v", of_the_token).values() for text in ("code", "novel")
    )
    assert max(novel) < 1 / 2 < min(code) and max(*code, *novel) < MUCH_LARGER


def test_with_a_pair_each_values_ask_most_for_the_token_and_on_code_queries_are_not_near_0():
    assert all(values_ask_most(text, "coef-apart") for text in ("code", "novel"))
    queries = in_upper_half("code", "coef-apart", "q", of_the_token)
    assert fmean(queries.values()) >= NEAR_ZERO


def test_over_depth_values_read_most_of_the_token_and_queries_and_keys_no_more_of_the_last_layers():
    """Of the last three of the parts that a layer of the upper half may read."""
    more_than_evenly = lambda shares: sum(shares[-RECENT:]) - RECENT / len(shares)
    for text in ("code", "novel"):
        assert values_ask_most(text, "depth-apart")
        for door in "qk":
            found = in_upper_half(text, "depth-apart", door, more_than_evenly)
            assert fmean(found.values()) <= 0
