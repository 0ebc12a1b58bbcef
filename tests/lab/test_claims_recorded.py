"""Claims of which recorded runs say something, but no comparison of two plans says it (verdicts of
claims.json)."""

import itertools
import json
from dataclasses import replace

import pytest
import torch

from course.records import EVIDENCE, published, quoted, read
from course.significance import holm
from evidence.research import gains, numbers
from evidence.research.cells import GAINED
from evidence.research.numbers import lead_at, told
from minimal import analysis
from minimal.compare.curves import critical_point, relative
from minimal.compare.intervals import interval, paired
from minimal.training.recipes import RECIPES, laptop

ROWS = read("thirteen_rows")["rows"]
CURVES = {(row["plan"], row["seed"]): row["train"] for row in ROWS}
MODDED = [row["coefficients"] for row in ROWS if row["plan"] == "modded"]
SEEDS = sorted(seed for plan, seed in CURVES if plan == "svformer")


def farthest(role, steps):
    """How far Adam can carry a coefficient: the sum of its learning rates."""
    recipe = laptop(RECIPES["bov"])
    return recipe.rows[role].lr * sum(recipe.lr(step, steps) for step in range(steps))


@pytest.mark.parametrize("seed", SEEDS)
def test_within_500_steps_svformer_is_not_overtaken(seed):
    """The lead melts, but its end lies beyond our budget."""
    curves = CURVES["svformer", seed], CURVES["standard", seed]
    assert critical_point(*curves, 5) is None
    lead = relative(*curves, 5)
    assert lead[-1] < 0 and min(lead) < lead[-1]


def test_in_500_steps_no_weight_on_v_can_reach_6():
    assert 0.5 + farthest("lambda", 500) < 3
    gains = [value for row in MODDED for name, value in row.items() if name.endswith("gain")]
    assert len(gains) == 7 * len(MODDED) and all(0.3 < gain < 0.9 for gain in gains)


def test_in_500_steps_skip_weights_cannot_settle_where_the_articles_did():
    """They begin at 1; after 5,960 steps the article has .4, .5 and .3. Ours are on the way, and
    differ by seed."""
    ends = [
        value
        for row in MODDED
        for name, value in row.items()
        if name.startswith("streams.0.weight")
    ]
    assert len(ends) == 3 * len(MODDED) and all(0.55 < end < 0.9 for end in ends)
    assert farthest("skip", 500) < 0.1 * 0.015 * 5960


def test_at_a_tenth_of_its_rate_the_gain_of_bank_of_values_is_level_with_a_fixed_one():
    """So whether a fixed gain is worse (Figure 5b) is, at our scale, a question about the rate."""
    slow = {row["seed"]: row["loss"] for row in read("confound")["rows"] if row["plan"] == "bov"}
    loss = {(row["plan"], row["seed"]): row["loss"] for row in ROWS}
    for plan, low, high in (("bov-fixed", -0.02, 0.02), ("standard", -0.07, -0.05)):
        assert all(low < slow[seed] - loss[plan, seed] < high for seed in SEEDS)
    fast = [loss["bov", seed] for seed in SEEDS]
    assert max(slow.values()) - min(slow.values()) < 0.5 * (max(fast) - min(fast))


EQUAL = read("confound")["rows"]


@pytest.mark.parametrize(
    "learned, fixed", [("row6", "row5"), ("row9", "row8"), ("bov", "bov-fixed")]
)
def test_at_one_slow_rate_a_learned_gain_is_level_with_a_fixed_one(learned, fixed):
    slow = {row["seed"]: row["loss"] for row in EQUAL if row["plan"] == learned}
    loss = {row["seed"]: row["loss"] for row in ROWS if row["plan"] == fixed}
    mean, low, high = interval([slow[seed] - loss[seed] for seed in SEEDS])
    assert abs(mean) < 0.005 and low < 0 < high < 0.02


INSIDE = read("inside")["rows"]
INSIDE_CODE = read("inside_code")["rows"]
ON = pytest.mark.parametrize("inside", (INSIDE, INSIDE_CODE), ids=("novel", "code"))
ROW_13 = ("row13", "row13-equal")  # as published, and both coefficients at one rate


def differences_by_layer(inside, plan):
    """What the token explains of the value as read, less of V alone: layers 8 to 11, by seed."""
    found = [
        [mixed - own for mixed, own in zip(row["token"][8:], row["token_own"][8:])]
        for row in inside
        if row["plan"] == plan
    ]
    assert len(found) == len(SEEDS)
    return found


def test_in_row_13_a_coefficients_size_does_not_tell_how_much_of_the_value_is_the_tokens():
    """In layer 11 the weights of V and of x0 W_V are alike in size, and the token explains less of
    the mixture than of V."""
    for end in (row["coefficients"] for row in ROWS if row["plan"] == "row13"):
        assert 0.9 < -end["blocks.11.attention.value.b"] / end["blocks.11.attention.value.a"] < 1.1
    last = [(row["token"][11], row["token_own"][11]) for row in INSIDE if row["plan"] == "row13"]
    assert len(last) == len(SEEDS) and all(mixed < 0.6 and own > 0.68 for mixed, own in last)


@pytest.mark.parametrize("plan", ROW_13)
def test_a_negative_weight_makes_the_value_more_the_tokens_in_two_layers_and_less_in_one(plan):
    """h - x0 takes out what h holds of x0; h - 1.5 x0 overshoots. Layers 8 and 9 overshoot, layer
    10 evens out. On the novel."""
    for at8, at9, at10, at11 in differences_by_layer(INSIDE, plan):
        assert at8 > 0.2 and at9 > 0.1 and abs(at10) < 0.1 and at11 < -0.1


@pytest.mark.parametrize("plan", ROW_13)
def test_on_code_no_layer_of_row_13_takes_a_tenth_of_the_token_out(plan):
    """Layers 8 and 9 overshoot further, layer 10 is level in one run and overshoots in five, and
    the last layer is level."""
    for at8, at9, at10, at11 in differences_by_layer(INSIDE_CODE, plan):
        assert at8 > 0.25 and at9 > 0.15 and at10 > -0.01 and abs(at11) < 0.1


def test_notebook_09_tells_what_the_token_explains_of_row_13s_values_on_both_texts():
    """Its table, cell by cell: the least and the most of six runs a text."""
    cells = json.loads((EVIDENCE.parent / "09_thirteen_rows.ipynb").read_text())["cells"]
    text = "".join(next(cell for cell in cells if cell["id"] == "mixed-reading")["source"])
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    told = {line[0].strip(): [cell.strip() for cell in line[1:]] for line in lines[2:]}
    for words, layers in (("9 and 10", (8, 9)), ("11", (10,)), ("12", (11,))):
        cells = []
        for inside, field in itertools.product((INSIDE_CODE, INSIDE), ("token", "token_own")):
            rows = [row for row in inside if row["plan"] in ROW_13]
            values = [row[field][layer] for row in rows for layer in layers]
            cells.append(f"{min(values):.2f} to {max(values):.2f}")
        assert told.pop(words) == cells
    assert not told


@ON
def test_resformers_entropy_is_higher_where_nothing_concentrates(inside):
    """Over 128 tokens the map that looks evenly at all it may see has 4.44: both plans lie above it
    in the upper half. ResFormer lies higher, on code not clearly."""
    rows = {(row["plan"], row["seed"]): row["entropy_deep"] for row in inside}
    mean, low, high = interval([rows["resformer", seed] - rows["standard", seed] for seed in SEEDS])
    even = analysis.token_entropy(
        torch.ones(1, 1, 128, 128).tril() / torch.arange(1, 129)[:, None]
    ).item()
    assert 0.03 < mean < 0.045 and high < 0.09 and round(even, 2) == 4.44
    assert 0.03 < low < high < 0.06 if inside is INSIDE else low < 0
    assert all(
        rows[plan, seed] > even + 0.1 for plan in ("standard", "resformer") for seed in SEEDS
    )


@ON
def test_resformers_tokens_are_more_alike_in_the_upper_half(inside):
    rows = {(row["plan"], row["seed"]): row["similarity_deep"] for row in inside}
    _, low, high = interval([rows["resformer", seed] - rows["standard", seed] for seed in SEEDS])
    assert 0.07 < low < high < 0.13


@ON
def test_resformers_own_values_have_larger_eigenvalues_and_those_as_read_smaller_ones(inside):
    for field, sign in (("log_largest_own", 1), ("log_largest", -1)):
        rows = {(row["plan"], row["seed"]): row.get(field) for row in inside}
        apart = [rows["resformer", seed] - rows["standard", seed] for seed in SEEDS]
        _, low, high = interval([sign * value for value in apart])
        assert 0.1 < low, field


def test_at_one_rate_too_row_13_has_a_negative_weight_on_the_token_in_every_layer():
    ends = [row["coefficients"] for row in EQUAL if row["plan"] == "row13"]
    on_v, on_x0 = (
        [value for row in ends for name, value in row.items() if name.endswith(end)]
        for end in (".a", ".b")
    )
    assert (
        len(on_x0) == 4 * len(SEEDS)
        and all(-1.4 < b < -0.5 for b in on_x0)
        and all(0.6 < a < 1.2 for a in on_v)
    )


@pytest.mark.parametrize("context", (64, 128, 256))
def test_at_no_length_is_svformer_overtaken_within_the_budget(context):
    rows = {
        (row["plan"], row["seed"]): row["train"]
        for row in read("lengths")["rows"]
        if row["asked"]["context"] == context
    }
    assert {
        critical_point(rows["svformer", seed], rows["standard", seed], 5) for seed in SEEDS
    } == {None}


# ---- dynamic values: 24 corners, and two other kinds of equal ------------------------------------

CUBE = {(row["plan"], row["seed"]): row["loss"] for row in read("dva_factorial")["rows"]}
PLAIN = {row["seed"]: row["loss"] for row in ROWS if row["plan"] == "standard"}


def changed(factor, before, after, **held):
    """The interval over seeds of what one factor changes, averaged over all corners in which the
    `held` ones stand so."""
    by_seed = {}
    for plan, seed in CUBE:
        parts = plan.split("/")
        if parts[factor] == before and all(parts[int(at[1:])] == name for at, name in held.items()):
            twin = "/".join([*parts[:factor], after, *parts[factor + 1 :]])
            by_seed.setdefault(seed, []).append(CUBE[twin, seed] - CUBE[plan, seed])
    return interval([sum(changes) / len(changes) for changes in by_seed.values()])


@pytest.mark.parametrize(
    "factor, before, after, held, low, high",
    [
        (0, "standard", "dva", {}, -0.086, -0.058),
        (0, "standard", "dva-random", {}, 0.012, 0.024),
        (2, "ffn", "noffn", dict(f0="standard"), 0.15, 0.20),
        (2, "ffn", "noffn", dict(f0="dva"), 0.11, 0.12),
        (1, "many", "one", {}, -0.036, -0.028),
        (1, "many", "one", dict(f0="standard"), -0.025, -0.017),
        (3, "wo", "nowo", {}, 0.04, 0.07),
    ],
)
def test_each_factor_of_dva_has_its_own_clear_effect(factor, before, after, held, low, high):
    mean, *ends = changed(factor, before, after, **held)
    assert low < ends[0] < mean < ends[1] < high


def test_equal_parameters_and_equal_time_tell_different_stories_of_dva():
    matched = {
        ("changes" in row["asked"], row["plan"], row["seed"]): row["loss"]
        for row in read("dva_matched")["rows"]
    }
    against = {
        (large, plan): interval([matched[large, plan, seed] - PLAIN[seed] for seed in SEEDS])
        for large, plan, _ in matched
    }
    dva, bare = "dva/one/noffn/nowo", "standard/one/noffn/nowo"
    assert against[True, dva][2] < -0.03 and against[True, bare][1] < 0 < against[True, bare][2]
    for plan in (dva, bare):
        assert against[False, plan][1] < 0 < against[False, plan][2], "level at equal time"


def test_a_step_of_dva_is_shorter_because_its_network_is_gone():
    (corners,) = (row["result"] for row in read("bench")["rows"] if row["part"] == "corners")
    share = {row["plan"]: row["time"] for row in corners if row["size"] == "gpt2"}
    said = quoted("dva", "training time saved")["value"] / 100
    assert 1 - share["dva/one/noffn/nowo"] == pytest.approx(said, abs=0.06)
    assert (
        share["standard/one/noffn/nowo"] < share["dva/one/noffn/nowo"] - 0.1
        and share["dva/many/ffn/wo"] > 1.1
    )


# ---- the lambdas: sixteen layers, one schedule held still at a time, the gap moved or closed -----

MIXIN = {}
for row in read("lambdas")["rows"]:
    MIXIN.setdefault((row["plan"], row["asked"]["recipe"]), {})[row["seed"]] = row
PLAIN_MIX = MIXIN["modded", "modded"]


def against_plain(control, field):
    return interval([control[seed][field] - PLAIN_MIX[seed][field] for seed in SEEDS])


def test_the_rate_turns_the_curves_and_the_window_cannot_be_seen_to():
    still, shut = MIXIN["modded", "modded-constant"], MIXIN["modded", "modded-open"]
    assert all(row["fell"] == 14 for row in PLAIN_MIX.values()) and all(
        row["fell"] <= 1 for row in still.values()
    )
    assert against_plain(still, "fell")[2] < -10
    low, high = against_plain(shut, "fell")[1:]
    assert low < 0 < high < 1


def test_where_x0_outweighs_the_stream_depends_on_how_far_the_rate_carries():
    above = lambda rows: sorted(
        sum(share > 0.5 for share in row["x0_share"][1:]) for row in rows.values()
    )
    assert max(above(PLAIN_MIX)) <= 4 and min(above(MIXIN["modded", "modded-constant"])) >= 12
    assert PLAIN_MIX[0]["steps"] < 5960 / 10


def test_layer_8_takes_less_of_the_stream_not_more():
    def beside(row, layer):
        weights = {i: row["coefficients"][f"streams.1.residual.{i}"] for i in range(1, 14)}
        return weights.pop(layer) - sum(weights.values()) / len(weights)

    assert interval([beside(row, 8) for row in PLAIN_MIX.values()])[2] < -0.05
    for plan in ("modded-moved", "modded-whole"):
        assert all(beside(row, 8) < 0.05 for row in MIXIN[plan, "modded"].values()), (
            "low or level without its gap, too"
        )


def test_no_weight_on_x0_changes_sign_late_and_the_loss_rises_only_with_the_window():
    assert all(row["crossed"] == [] for rows in MIXIN.values() for row in rows.values())
    assert all(row["rise"] > 0.05 for row in PLAIN_MIX.values())
    assert all(row["rise"] < 0 for row in MIXIN["modded", "modded-open"].values())
    assert against_plain(MIXIN["modded", "modded-open"], "loss")[2] < -0.05


# ---- SVFormer's critical point -------------------------------------------------------------------


def test_a_warm_up_hardly_moves_the_summed_rate_so_no_grid_of_both_can_tell_them_apart():
    """A climbing line averages .50 of the peak, the cosine that falls to a tenth .55: four rates
    move the sum 33-fold."""
    recipe = laptop(RECIPES["resformer"])
    sums = [
        sum(replace(recipe.lr, warmup=share)(step, 500) for step in range(500))
        for share in (0.01, 0.1, 0.4)
    ]
    assert max(sums) / min(sums) < 1.04


@pytest.mark.parametrize("warmup", (0.01, 0.1, 0.4))
def test_only_at_the_smallest_rate_is_svformer_clearly_ahead(warmup):
    runs = {
        (row["asked"]["lr"], row["plan"], row["seed"]): row
        for row in read("critical_point")["rows"]
        if row["asked"]["warmup"] == warmup and row["asked"]["style"] == "nanochat"
    }
    lead, crossed = {}, {}
    for lr in (3e-4, 1e-3, 3e-3, 1e-2):
        pairs = [(runs[lr, "svformer", seed], runs[lr, "standard", seed]) for seed in SEEDS]
        lead[lr] = [one["loss"] - two["loss"] for one, two in pairs]
        crossed[lr] = sum(
            critical_point(one["train"], two["train"], 5) is not None for one, two in pairs
        )
    assert interval(lead[3e-4])[2] < -0.009 and crossed[3e-4] == 0
    for lr in (1e-3, 3e-3, 1e-2):
        _, low, high = interval(lead[lr])
        assert low < 0 < high
    assert sum(crossed.values()) in (4, 5, 6)
    shrinks = interval([a - b for a, b in zip(lead[3e-4], lead[3e-3])])
    assert shrinks[0] < 0 and (shrinks[2] < 0) == (warmup < 0.4)


# ---- the same systems on code --------------------------------------------------------------------

CODE = {(row["plan"], row["seed"]): row["loss"] for row in read("stdlib")["rows"]}


@pytest.mark.parametrize(
    "one, other, low, high",
    [
        ("bov", "standard", -0.228, -0.168),
        ("resformer", "standard", -0.066, -0.052),
        ("row2", "standard", 0.007, 0.016),
        ("gqa", "standard", 0.010, 0.022),
        ("row3", "standard", -0.068, -0.039),
        ("bov", "bov-shared", -0.141, -0.030),
        ("bov", "bov-fixed", -0.033, 0.022),
        ("resformer", "neutreno", -0.069, -0.042),
        ("resformer", "denseformer", -0.057, 0.013),
        ("svformer", "gqa", -0.089, -0.050),
        ("svformer", "cla", -0.077, -0.052),
        ("row8", "row5", -0.035, -0.006),
        ("row9", "row7", -0.007, 0.038),
        ("row9", "standard", -0.073, -0.008),
        ("row7", "standard", -0.106, -0.006),
    ],
)
def test_on_code_the_intervals_are_those_that_the_pages_quote(one, other, low, high):
    found = interval([CODE[one, seed] - CODE[other, seed] for seed in SEEDS])
    assert found[1:] == (pytest.approx(low, abs=6e-4), pytest.approx(high, abs=6e-4))


SLIM = {
    (row["plan"], row["seed"]): row["loss"]
    for row in read("code")["rows"]
    if "changes" in row["asked"]
}
SLOW = {
    (row["plan"], row["seed"]): row["loss"]
    for row in read("code")["rows"]
    if "overrides" in row["asked"]
}


@pytest.mark.parametrize(
    "runs, one, others, other, low, high",
    [
        (SLIM, "bov", CODE, "standard", -0.250, -0.062),
        (SLIM, "bov-fixed", CODE, "standard", -0.181, -0.108),
        (SLIM, "bov-keep", CODE, "standard", -0.163, -0.110),
        (SLIM, "modded", CODE, "standard", -0.138, -0.115),
        (SLOW, "bov", CODE, "bov", -0.042, 0.032),
        (SLOW, "row2", CODE, "row2", -0.038, -0.002),
        (SLOW, "row2", CODE, "standard", -0.030, 0.013),
    ],
)
def test_on_code_tables_pay_for_themselves_and_a_slow_gain_heals_row_2(
    runs, one, others, other, low, high
):
    found = interval([runs[one, seed] - others[other, seed] for seed in SEEDS])
    assert found[1:] == (pytest.approx(low, abs=6e-4), pytest.approx(high, abs=6e-4))


def test_on_code_more_systems_lead_clearly_in_a_similar_order():
    novel, code = (
        {row["plan"]: row for row in paired(read(name)["rows"], "loss")}
        for name in ("thirteen_rows", "stdlib")
    )
    ahead = [
        sum(row["clear"] and row["difference"] < 0 for row in table.values())
        for table in (novel, code)
    ]
    assert ahead == [14, 20] and len(code) == 29
    plans = [plan for plan in code if plan != "standard"]
    ranks = [
        torch.tensor([table[plan]["difference"] for plan in plans]).argsort().argsort().double()
        for table in (novel, code)
    ]
    assert round(torch.corrcoef(torch.stack(ranks))[0, 1].item(), 2) == 0.80


# ---- x0 W_V in one layer at a time ---------------------------------------------------------------


def test_one_layer_of_token_values_gains_nothing_and_what_seed_0_showed_does_not_come_again():
    rows = read("one_layer")["rows"]
    cells = {(int(row["plan"].split("@")[1]), row["seed"]): row for row in rows}
    assert len(cells) == len(rows) == 36
    for at in range(12):
        change, low, high = interval([cells[at, seed]["loss"] - PLAIN[seed] for seed in SEEDS])
        assert (low > 0) == (at == 6) and high > 0, "only in layer 6 is it behind"
        assert abs(change) < 0.01, at
    gains = {
        cell: row["coefficients"][f"blocks.{cell[0]}.attention.value.gain"]
        for cell, row in cells.items()
    }
    assert sum(abs(gain) < 0.2 for gain in gains.values()) == 32
    assert gains[11, 0] > 1.4 and max(gains[11, 1], gains[11, 2]) < 0.3


# ---- SVFormer in the paper's style ---------------------------------------------------------------

RATES = {
    (
        row["asked"]["style"],
        row["asked"]["lr"],
        row["asked"]["warmup"],
        row["plan"],
        row["seed"],
    ): row
    for row in read("critical_point")["rows"]
}


def lead(style, lr, seed, warmup=0.1):
    return (
        RATES[style, lr, warmup, "svformer", seed]["loss"]
        - RATES[style, lr, warmup, "standard", seed]["loss"]
    )


def test_whether_smaller_rates_help_svformer_more_depends_on_the_style():
    moved = {
        style: interval([lead(style, 3e-3, seed) - lead(style, 3e-4, seed) for seed in SEEDS])
        for style in ("nanochat", "llama")
    }
    assert moved["nanochat"][1] > 0 and moved["llama"][2] < -0.1
    for lr in (3e-4, 1e-3, 3e-3, 1e-2):
        assert interval([lead("llama", lr, seed) for seed in SEEDS])[2] < 0
        for seed in SEEDS:
            one, two = (
                RATES["llama", lr, 0.1, plan, seed]["train"] for plan in ("svformer", "standard")
            )
            assert critical_point(one, two, 5) is None


def test_in_the_llama_style_a_long_warm_up_costs_a_good_part_of_the_lead_at_an_equal_sum():
    for lr in (3e-4, 1e-3, 3e-3):
        assert (
            interval(
                [lead("llama", lr, seed, 0.4) - lead("llama", lr, seed, 0.01) for seed in SEEDS]
            )[1]
            > 0.02
        )


def test_in_the_nanochat_style_the_warm_up_moves_the_lead_by_little():
    for lr in (3e-4, 1e-3, 3e-3):
        assert (
            abs(
                interval(
                    [
                        lead("nanochat", lr, seed, 0.4) - lead("nanochat", lr, seed, 0.01)
                        for seed in SEEDS
                    ]
                )[0]
            )
            < 0.025
        )


def test_what_moves_the_lead_in_the_llama_style_is_mostly_the_standard_model():
    """The long warm-up helps it alone; and each at its best recorded setting, less than half of the
    largest lead is left."""
    gain = {
        plan: interval(
            [
                RATES["llama", 3e-3, 0.4, plan, seed]["loss"]
                - RATES["llama", 3e-3, 0.01, plan, seed]["loss"]
                for seed in SEEDS
            ]
        )
        for plan in ("standard", "svformer")
    }
    assert gain["standard"][2] < -0.1 and gain["svformer"][1] < 0 < gain["svformer"][2]
    cells = {cell[1:3] for cell in RATES}
    for plan in ("standard", "svformer"):
        mean = {at: sum(RATES["llama", *at, plan, seed]["loss"] for seed in SEEDS) for at in cells}
        assert min(mean, key=mean.get) == (1e-2, 0.4)
    best, low, high = interval([lead("llama", 1e-2, seed, 0.4) for seed in SEEDS])
    assert (
        round(best, 2) == -0.16
        and high < 0
        and best > interval([lead("llama", 1e-2, seed) for seed in SEEDS])[0] / 2
    )
    assert (
        interval([lead("llama", 1e-3, seed) - lead("llama", 3e-4, seed) for seed in SEEDS])[2] > 0
    ), "not clear below 1e-3"


def test_runs_are_overtaken_at_summed_rates_that_have_nothing_in_common():
    recipe, sums = laptop(RECIPES["resformer"]), []
    for lr in (1e-3, 3e-3, 1e-2):
        for warmup, seed in itertools.product((0.01, 0.1, 0.4), SEEDS):
            rate = replace(recipe.lr, warmup=warmup)
            one, two = (
                RATES["nanochat", lr, warmup, plan, seed]["train"]
                for plan in ("svformer", "standard")
            )
            point = critical_point(one, two, 5)
            if point:
                sums.append(lr * sum(rate(step, 500) for step in range(10 * point)))
    assert len(sums) == 15 and 0.16 < min(sums) < 0.18 and 2.6 < max(sums) < 2.7


def test_in_the_llama_style_most_of_svformers_lead_hangs_on_how_the_embedding_enters():
    found = {
        (row["asked"]["style"], row["plan"], row["seed"]): row for row in read("start")["rows"]
    }
    ahead = lambda style: [
        found[style, "svformer", seed]["loss"] - found[style, "standard", seed]["loss"]
        for seed in SEEDS
    ]
    left = lambda style: [
        sum(found[style, "standard", seed]["token_left"][1:]) / 12 for seed in SEEDS
    ]
    change = lambda plan: interval(
        [
            found["llama-loud", plan, seed]["loss"] - found["llama", plan, seed]["loss"]
            for seed in SEEDS
        ]
    )
    assert interval(ahead("llama"))[2] < -0.05 and interval(ahead("llama-fan-in"))[2] < -0.15
    assert -0.04 < interval(ahead("llama-loud"))[1] < interval(ahead("llama-loud"))[2] < 0
    assert interval([a - b for a, b in zip(ahead("llama"), ahead("llama-loud"))])[2] < -0.04
    assert change("standard")[2] < 0 < change("svformer")[1], (
        "the louder embedding helps standard alone"
    )
    assert (
        max(left("llama-fan-in")) < 0.1 < 0.5 < min(left("llama")) <= max(left("llama")) < 0.6
        and min(left("llama-loud")) > 0.9
    )
    assert (
        0.65 < min(left("nanochat"))
        and interval(ahead("nanochat"))[1] < 0 < interval(ahead("nanochat"))[2]
    )
    assert max(left("nanochat")) < 0.75, (
        "so a lost token alone does not make a lead: llama-loud keeps more and leads by more"
    )
    assert interval([a - b for a, b in zip(ahead("llama-fan-in"), ahead("llama"))])[2] > 0, (
        "not clearly more than llama's"
    )


# ---- coefficients that a figure shows, and ours --------------------------------------------------


def ends(name, plan, letter):
    """Final coefficients of a plan whose name ends so, over layers and seeds of a file."""
    return [
        value
        for row in read(name)["rows"]
        if row["plan"] == plan
        for key, value in row["coefficients"].items()
        if key.endswith(f"value.{letter}")
    ]


def test_gains_of_context_free_values_end_below_2_on_the_novel_and_below_5_on_code():
    novel, code = (
        [abs(x) for plan in ("row6", "row9") for x in ends(name, plan, "gain")]
        for name in ("thirteen_rows", "stdlib")
    )
    assert len(novel) == len(code) == 24
    assert sum(x > 2 for x in novel) == 0 and round(max(novel), 2) == 1.95
    assert sum(x > 2 for x in code) == 10 and round(max(code), 1) == 4.0


def test_row_2s_gain_falls_from_1_toward_zero_in_every_layer():
    novel, code = (ends(name, "row2", "gain") for name in ("thirteen_rows", "stdlib"))
    assert len(novel) == len(code) == 12 and max(map(abs, novel + code)) < 0.92
    assert [sum(abs(x) < 0.2 for x in some) for some in (novel, code)] == [6, 9]


def test_v_leaves_its_start_in_row_11_and_not_in_row_13():
    for name in ("thirteen_rows", "stdlib"):
        assert all(0.49 < x < 0.86 for x in ends(name, "row11", "a"))
        assert all(0.87 < x < 1.32 for x in ends(name, "row13", "a"))


def test_the_token_has_the_larger_coefficient_in_row_13_and_not_in_row_11():
    larger = {
        (name, plan): sum(
            abs(b) > abs(a)
            for a, b in zip(ends(name, plan, "a"), ends(name, plan, "b"), strict=True)
        )
        for name in ("thirteen_rows", "stdlib")
        for plan in ("row11", "row13")
    }
    assert larger == {
        ("thirteen_rows", "row11"): 5,
        ("thirteen_rows", "row13"): 11,
        ("stdlib", "row11"): 11,
        ("stdlib", "row13"): 12,
    }


# ---- what 500 of 5,960 steps can say of the lambdas ----------------------------------------------


def sixteen(recipe, start):
    """Final weights by seed whose names start so, in the article's sixteen layers."""
    return [
        {key: value for key, value in row["coefficients"].items() if key.startswith(start)}
        for row in MIXIN["modded", recipe].values()
    ]


def test_after_500_steps_skips_and_weights_on_v_are_on_their_way():
    skips = sixteen("modded", "streams.0.weight")
    assert len(skips) == len(SEEDS) and all(0.4 < x < 1 for by in skips for x in by.values())
    assert all(by["streams.0.weight.9"] > by["streams.0.weight.11"] for by in skips)
    gains = [
        value
        for by in sixteen("modded", "blocks")
        for name, value in by.items()
        if name.endswith("gain")
    ]
    assert len(gains) == 9 * len(SEEDS) and 0.4 < min(gains) and max(gains) < 2
    assert max(gains) < 6 and PLAIN_MIX[0]["steps"] < 5960 / 10


def test_after_500_steps_x0s_weights_are_as_large_in_the_last_layers_as_in_the_first():
    for by in sixteen("modded", "streams.1.x0"):
        early, late = ([by[f"streams.1.x0.{i}"] for i in layers] for layers in ((1, 2), (14, 15)))
        assert all(0.85 < x < 1.25 for x in early + late)


def test_after_500_steps_weights_on_tables_are_not_low():
    for by in sixteen("modded", "blocks"):
        tables = {name: value for name, value in by.items() if name.endswith("value.b")}
        assert len(tables) == 6 and all(0.2 < x < 1.15 for x in tables.values())
        assert max(tables, key=tables.get) != "blocks.15.attention.value.b"


# ---- the lambdas at their own length -------------------------------------------------------------

# 5,960 steps take away one excuse; width and data remain. So an order (of layers, of two weights,
# of two moments) is judged by three seeds, and a number at which a weight ends is told and stays
# out of reach.

RESIDUAL, X0 = "streams.1.residual.{}", "streams.1.x0.{}"
GAIN, TABLE_WEIGHT = "blocks.{}.attention.value.gain", "blocks.{}.attention.value.b"

LONG = {}
for row in read("lambdas_long")["rows"]:
    LONG.setdefault((row["plan"], row["asked"]["recipe"]), {})[row["seed"]] = row
LONG_PLAIN, LONG_OPEN = LONG["modded", "modded"], LONG["modded", "modded-open"]
LONG_WHOLE = LONG["modded-whole", "modded"]


def at_the_end(row, form):
    """{layer: weight at the end} of one kind of weight, in the layers that have it."""
    names = {layer: form.format(layer) for layer in range(16)}
    return {
        i: row["coefficients"][name] for i, name in names.items() if name in row["coefficients"]
    }


def over_seeds(what, rows, base=None):
    """Mean, low, high of a number of a run, or of its difference from the same seed's base run."""
    return interval([what(row) - (what(base[seed]) if base else 0) for seed, row in rows.items()])


def near(*numbers):
    return pytest.approx(numbers, abs=6e-3)


def test_the_long_runs_are_three_paired_seeds_of_the_articles_5960_steps():
    assert [sorted(rows) for rows in LONG.values()] == [SEEDS] * 3
    assert {row["steps"] for rows in LONG.values() for row in rows.values()} == {5960}


def test_at_its_own_length_layer_0_keeps_its_gap_and_its_weights_are_not_yet_alike():
    for row in LONG_PLAIN.values():
        r, z = (at_the_end(row, form)[0] for form in (RESIDUAL, X0))
        assert r - z == pytest.approx(1, abs=2e-4)
        assert 4.8 < r < 5.3 and 1.2 < r / z < 1.3


def test_at_its_own_length_the_skips_are_ordered_the_other_way_round():
    printed = {
        row["destination"]: row["final"] for row in published("lambdas", "U-Net lambdas")["rows"]
    }
    assert min(printed, key=printed.get) == 9
    for row in LONG_PLAIN.values():
        found = at_the_end(row, "streams.0.weight.{}")
        assert -0.1 < found[11] < 0.05 and 0.69 < found[10] < 0.98 and 1.15 < found[9] < 1.34


def test_at_its_own_length_one_weight_on_v_of_27_reaches_6():
    (printed,) = published("lambdas", "Value lambdas")["rows"]
    gains = [x for row in LONG_PLAIN.values() for x in at_the_end(row, GAIN).values()]
    assert len(gains) == 27 and sum(x >= printed["low"] for x in gains) == 1
    assert 2.4 < min(gains) and max(gains) < 6.1 and 3.9 < sum(gains) / 27 < 4.0
    recipe = RECIPES["modded"]
    rates = sum(recipe.lr(step, 5960) for step in range(5960)) * recipe.rows["lambda"].lr
    assert rates == pytest.approx(58, abs=0.3)


def test_at_its_own_length_the_last_table_leads_the_mean_of_the_others_and_not_the_largest():
    def last_less(of_the_others):
        def found(row):
            *others, last = at_the_end(row, TABLE_WEIGHT).values()
            assert len(others) == 5
            return last - of_the_others(others)

        return found

    mean = last_less(lambda others: sum(others) / len(others))
    assert over_seeds(mean, LONG_PLAIN) == near(0.263, 0.142, 0.383)
    low, high = over_seeds(last_less(max), LONG_PLAIN)[1:]
    assert (low, high) == near(-0.129, 0.290)
    assert over_seeds(last_less(max), LONG_OPEN)[0] < 0


def test_at_its_own_length_x0_outweighs_the_stream_in_all_layers_but_one_or_two():
    exceptions = [
        [layer for layer, share in enumerate(row["x0_share"]) if share <= 0.5]
        for row in LONG_PLAIN.values()
    ]
    assert exceptions == [[0], [0], [0, 7]]


def test_at_its_own_length_shares_turn_back_in_13_of_15_layers():
    assert [row["fell"] for row in LONG_PLAIN.values()] == [13, 13, 13]
    assert all(0.5 < row["turn"] < 0.52 for row in LONG_PLAIN.values())
    assert all(row["turn"] > 0.55 for row in PLAIN_MIX.values()), "later in a run of 500 steps"


def test_at_its_own_length_x0s_weights_are_larger_in_the_lower_half():
    def lower_half(row):
        z = at_the_end(row, X0)
        return sum(abs(z[i]) for i in range(1, 8)) / 7 - sum(abs(z[i]) for i in range(8, 16)) / 8

    assert over_seeds(lower_half, LONG_PLAIN) == near(1.665, 1.086, 2.243)
    assert all(over_seeds(lower_half, rows)[1] > 0 for rows in (LONG_WHOLE, LONG_OPEN))
    for row in LONG_PLAIN.values():
        z = at_the_end(row, X0)
        assert 6.5 < min(z[1], z[2]) and max(z[14], z[15]) < 4.8


def test_at_its_own_length_layer_8_has_the_smallest_weight_on_the_stream_with_and_without_the_gap():
    def beside(row):
        r = {
            layer: weight for layer, weight in at_the_end(row, RESIDUAL).items() if 1 <= layer <= 13
        }
        assert min(r, key=r.get) == 8
        return r.pop(8) - sum(r.values()) / len(r)

    assert over_seeds(beside, LONG_OPEN)[2] < 0
    assert over_seeds(beside, LONG_PLAIN) == near(-0.642, -0.797, -0.487)
    assert over_seeds(beside, LONG_WHOLE) == near(-0.448, -0.786, -0.111)
    assert over_seeds(beside, LONG_PLAIN, LONG_WHOLE)[2] < 0, "the gap lowers it"


def test_at_its_own_length_an_open_window_moves_the_turn_a_little_and_does_not_undo_it():
    assert [row["fell"] for row in LONG_OPEN.values()] == [13, 13, 12]
    low, high = over_seeds(lambda row: row["fell"], LONG_OPEN, LONG_PLAIN)[1:]
    assert low < 0 < high
    turn = over_seeds(lambda row: row["turn"], LONG_OPEN, LONG_PLAIN)
    assert turn == pytest.approx((-0.027, -0.052, -0.002), abs=6e-4)


def test_at_its_own_length_no_weight_on_x0_changes_sign_and_the_loss_rises_only_with_the_window():
    assert all(row["crossed"] == [] for rows in LONG.values() for row in rows.values())
    for rows in (LONG_PLAIN, LONG_WHOLE):
        assert all(0.014 < row["rise"] < 0.024 for row in rows.values())
    assert all(row["rise"] < 0 for row in LONG_OPEN.values())
    loss = over_seeds(lambda row: row["loss"], LONG_OPEN, LONG_PLAIN)
    assert loss == pytest.approx((-0.036, -0.043, -0.030), abs=6e-4)
    low, high = over_seeds(lambda row: row["loss"], LONG_WHOLE, LONG_PLAIN)[1:]
    assert low < 0 < high


# ---- warm-ups and lengths ------------------------------------------------------------------------


def test_at_the_papers_warm_ups_the_llama_lead_does_not_clearly_move():
    """1.2 % in its Table 4, 12 % in its text: ours are 1 and 10 % of the run."""
    for lr in (3e-4, 1e-3, 3e-3, 1e-2):
        moved = [lead("llama", lr, seed, 0.1) - lead("llama", lr, seed, 0.01) for seed in SEEDS]
        mean, low, high = interval(moved)
        assert low < 0 < high and abs(mean) < 0.12, lr


def test_svformers_lead_does_not_clearly_grow_from_64_to_256_tokens():
    loss = {
        (row["asked"]["context"], row["plan"], row["seed"]): row["loss"]
        for row in read("lengths")["rows"]
    }
    leads = {
        context: [loss[context, "svformer", s] - loss[context, "standard", s] for s in SEEDS]
        for context in (64, 256)
    }
    mean, low, high = interval([b - a for a, b in zip(leads[64], leads[256])])
    assert low < 0 < high and round(mean, 3) == 0.004


def test_at_equal_parameters_dva_without_its_network_is_ahead_of_dva_with_it():
    matched = {
        (row["plan"], row["seed"]): row["loss"]
        for row in read("dva_matched")["rows"]
        if "changes" in row["asked"]
    }
    change = interval(
        [matched["dva/one/noffn/nowo", s] - matched["dva/many/ffn/wo", s] for s in SEEDS]
    )
    assert change == (
        pytest.approx(-0.027, abs=6e-4),
        pytest.approx(-0.036, abs=6e-4),
        pytest.approx(-0.018, abs=6e-4),
    )


def silent(text):
    """{plan: how many of the last four layers of three seeds write less than a twentieth}."""
    counts = {}
    for row in read(f"shares_{text}")["rows"]:
        few = sum(row["share"][layer] < gains.SILENT for layer in gains.DEEP)
        counts[row["plan"]] = counts.get(row["plan"], 0) + few
    return counts


def test_learned_gains_silence_layers_on_the_novel_and_fixed_ones_do_not():
    novel, code = silent("novel"), silent("code")
    assert novel["standard"] == code["standard"] == novel["bov-fixed"] == code["bov-fixed"] == 0
    assert (novel["bov"], novel["bov-every"], novel["row9"]) == (7, 9, 7)
    assert (code["bov"], code["bov-every"], code["row9"]) == (0, 1, 3)


def test_no_layer_of_standard_is_near_to_silent():
    rows = read("shares_code")["rows"] + read("shares_novel")["rows"]
    least = min(min(row["share"].values()) for row in rows if row["plan"] == "standard")
    assert least > gains.SILENT


SLOW = read("gains_code")["rows"]


@pytest.mark.parametrize("plan, better", [("row6", True), ("row9", True), ("bov", False)])
def test_on_code_a_tenth_of_the_rate_is_better_than_the_papers(plan, better):
    fast = {r["seed"]: r["loss"] for r in read("ten_seeds_code")["rows"] if r["plan"] == plan}
    slow = [row for row in SLOW if row["plan"] == plan and gains.rate_of(row) == "0.05"]
    _, low, _ = interval([fast[row["seed"]] - row["loss"] for row in slow])
    assert len(slow) == 5 and (low > 0) == better


def test_small_gains_of_the_bank_in_every_layer_do_not_make_its_layers_silent():
    """Where more than half of the gains are near zero, layers write as much as where none is."""
    rows = [row for row in SLOW if row["plan"] == "bov-every"]
    by_rate = {rate: [r for r in rows if gains.rate_of(r) == rate] for rate in gains.SLOWER}
    closed = [gains.closed(map(gains.gains_of, some)) for some in by_rate.values()]
    assert closed == ["36 of 60", "0 of 60"]
    small, open_ = (float(gains.share(some)) for some in by_rate.values())
    assert 0.15 < small < open_ < 0.19


def test_the_detached_models_lead_melts_while_resformers_stays():
    """Notebook 04: seven tenths of it after 100 steps, less than a tenth at the end."""
    rows = read("controls_code")["rows"]
    curves = {(row["plan"], row["seed"]): dict(row["valid"]) for row in rows}

    def lead(plan, step):
        seeds = [seed for name, seed in curves if name == plan]
        gaps = [curves["standard", seed][step] - curves[plan, seed][step] for seed in seeds]
        return sum(gaps) / len(gaps)

    part = {step: lead("resformer/detached", step) / lead("resformer", step) for step in (100, 500)}
    assert 0.65 < part[100] < 0.75 and 0 < part[500] < 0.1


def test_leads_of_tables_on_code_grow_until_step_450_and_shrink_long_before_on_the_novel(
    monkeypatch,
):
    """Of runs of 500 steps, as the table of the findings has them."""
    at = lambda plan, place: [float(lead_at(plan, place, step)) for step in range(150, 501, 50)]
    for plan in ("bov-fixed", "bov"):
        leads = at(plan, "code")
        assert leads[:-1] == sorted(leads[:-1]) and abs(leads[-1] - leads[-2]) < 0.0035
        leads = at(plan, "novel")
        assert leads.index(max(leads)) <= 3 and leads[-1] < 0.75 * max(leads)
    # the first three seeds, of which this was said first
    monkeypatch.setattr(numbers, "best", lambda *_: dict(file="thirteen_rows"))
    for plan in ("bov-fixed", "bov"):
        leads = at(plan, "novel")
        assert leads.index(max(leads)) <= 3 and leads[-1] < 0.7 * max(leads)


def test_the_answer_to_the_title_is_what_notebook_09_says():
    """Its three numbers to remember, and what stands against them: leads, code first."""
    text = (EVIDENCE.parent / "09_thirteen_rows.ipynb").read_text(encoding="utf-8")
    lead = lambda plan, place, over="standard": numbers.lead(plan, place, over)
    assert [lead("svformer", place) for place in ("code", "novel")] == ["0.049", "0.016"]
    assert "by 0.049 nats on code and 0.016 on the novel" in text
    slow = [gains.lead(place, "bov-every", "0.005")[2:8] for place in ("code", "novel")]
    assert slow == ["+0.206", "+0.099"] and "lead by 0.206 and 0.099" in text
    kept = [lead("bov-fixed", place, "bov-keep") for place in ("code", "novel")]
    assert kept == ["0.015", "0.006"] and "by 0.015 and 0.006, clear on both" in text
    cut = told("resformer/detached", "controls_code.json")
    assert cut.startswith("+0.004 (") and "falls from 0.055 nats to 0.004, not clear" in text


def test_what_ten_seeds_decide_on_the_novel():
    """What notebooks 04 and 10 tell of ten_seeds_novel."""
    ten = lambda plan, over="standard": told(plan, "ten_seeds_novel.json", over)
    rows = [f"row{i}" for i in (2, 5, 6, 8, 9, 11, 13)]
    assert all(ten(row).startswith("**+") for row in rows), "all seven are ahead and clear"
    leads = {row: float(ten(row)[3:8]) for row in rows}
    assert max(leads, key=leads.get) == "row13" and min(leads, key=leads.get) == "row2"
    assert ten("bov-fixed", "bov") == "**+0.024** (+0.016 to +0.033)"
    assert ten("bov-fixed").startswith("**+0.057**")
    assert ten("bov-fixed", "bov-keep").startswith("**+0.006**")
    assert ten("resformer").startswith("**+0.021**")


def test_the_decks_tell_what_their_pictures_of_most_seeds_show():
    """Notes of decks 04, 05, 09, 10 and 12: who is clear, by whom and by how much."""
    by_text = {
        text: {row["plan"]: row for row in numbers.systems(text)} for text in ("novel", "code")
    }
    novel, code = by_text.values()
    ahead = lambda row: row["clear"] and row["difference"] < 0

    # 04 and 05
    assert told("resformer", "novel", "denseformer").startswith("**−")
    assert told("resformer", "code", "denseformer").startswith("**+")
    assert ahead(novel["resformer"]) and 0.05 < -code["resformer"]["difference"] < 0.06
    assert ahead(novel["svformer"]) and -novel["svformer"]["difference"] < 0.02

    # 09
    rows = ["row2", "row3", "row5", "row6", "row8", "row9", "row11", "row13"]
    shown = ["svformer" if row == "row3" else row for row in rows]
    assert all(by_text[text][row]["n"] == 10 for text in by_text for row in shown)
    assert all(novel[row]["clear"] and code[row]["clear"] for row in shown)
    assert [row for row in shown if not ahead(code[row])] == ["row2"] and ahead(novel["row2"])
    by_loss = [sorted(shown, key=lambda row: some[row]["difference"]) for some in (novel, code)]
    assert by_loss[0][:2] == ["row13", "row8"] and by_loss[1][0] == "row8"

    # 10 and 12
    shown = ["row8", "bov", "bov-keep", "bov-fixed"]
    assert all(ahead(some[plan]) for plan in shown for some in (novel, code))
    assert -novel["bov-fixed"]["difference"] > 0.055
    left = [sum(row["by_holm"] for row in some.values()) for some in (novel, code)]
    assert left == [13, 18]
    ps = [
        {row["plan"]: row["p"] for row in paired(read(name)["rows"], "loss") if row["p"]}
        for name in ("thirteen_rows", "stdlib")
    ]
    assert [sum(p < 0.05 for p in holm(some).values()) for some in ps] == [2, 6]


def test_at_a_hundredth_of_its_rate_no_gain_closes_on_the_novel_and_the_bank_leads():
    """README, the findings page and notebooks 09 and 10 say so; closed is an end within 0.2."""
    for plan in GAINED:
        runs = gains.slowed("novel", plan, "0.005")
        assert len(runs) == 5 and gains.closed(map(gains.gains_of, runs)).startswith("0 of ")
        fast = gains.closed(gains.final_gains("novel", plan)).split()
        assert 2 * int(fast[0]) >= int(fast[2]), "at the paper's rate half of them or more"
        for rate in gains.SLOWER:
            assert gains.lead("novel", plan, rate).startswith("**+"), "all seven lead clearly"
    for rate in gains.SLOWER:  # against themselves at the paper's rate
        assert gains.lead("novel", "bov-every", rate, "bov-every").startswith("**+")
        assert gains.lead("novel", "bov", rate, "bov").startswith("**+")
    assert gains.lead("novel", "bov", "0.005") == "**+0.061** (+0.053 to +0.069)"
    assert gains.seeds("novel") == "five"

    # the exception at a tenth: gains near zero, and layers that write as those of the others
    closed = gains.closed(map(gains.gains_of, gains.slowed("novel", "bov-every", "0.05"))).split()
    assert int(closed[0]) > int(closed[2]) / 2
    shares = [float(gains.share(gains.slowed("novel", plan, "0.05"))) for plan in GAINED]
    assert max(shares) - min(shares) <= 0.061
