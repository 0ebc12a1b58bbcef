"""Bank of Values' claims that algebra or counting decides (verdicts of claims.toml)."""

import math

import pytest
import torch
import torch.nn.functional as F

from course.records import published, quoted
from minimal.variants import build
from tests.lab.algebra import attention, counted, draw

D12, D24 = dict(layers=12, width=768), dict(layers=24, width=1536)
VOCAB, CONTEXT = 32768, 2048


def matrices(layers, width):
    return 12 * layers * width**2, VOCAB * width


def window_sum(layers):
    """Tokens that the layers' windows span: SSSL, the last layer long."""
    return sum(CONTEXT if i % 4 == 3 or i == layers - 1 else CONTEXT // 4 for i in range(layers))


def flops(layers, width, dropped=0):
    blocks, head = matrices(layers, width)
    return 6 * (blocks - dropped * width**2 + head) + 12 * width * window_sum(layers)


def table_8(name):
    return {size: quoted("bov", name)[size] for size in ("d12", "d24")}


def test_table_8_counts_parameters_flops_iterations_and_tokens_right():
    for size, shape in (("d12", D12), ("d24", D24)):
        blocks, head = matrices(**shape)
        assert blocks + 2 * head == pytest.approx(table_8("parameters")[size], rel=1e-3)
        assert flops(**shape) == pytest.approx(table_8("FLOPs per token")[size], rel=2e-3)
        steps = table_8("target FLOPs")[size] / flops(**shape) / table_8("total batch size")[size]
        assert round(steps) == table_8("iterations")[size]
        assert steps * table_8("total batch size")[size] == pytest.approx(
            table_8("total tokens")[size], rel=3e-3
        )


def test_the_tokens_to_parameters_ratio_leaves_the_embedding_out():
    for size, shape in (("d12", D12), ("d24", D24)):
        tokens, said = table_8("total tokens")[size], table_8("tokens-to-parameters ratio")[size]
        assert tokens / sum(matrices(**shape)) == pytest.approx(said, abs=0.06)
        assert tokens / table_8("parameters")[size] < said - 0.5


def test_learning_rates_and_decay_at_780M_follow_from_those_at_135M():
    matrix, decay = table_8("matrix LR"), table_8("weight decay")
    assert matrix["d24"] == pytest.approx(matrix["d12"] * math.sqrt(2), abs=6e-5)
    ratio = sum(matrices(**D12)) / sum(matrices(**D24))
    assert decay["d24"] == pytest.approx(decay["d12"] * math.sqrt(2) * ratio, abs=6e-5)


def test_section_5_and_table_8_disagree_on_muons_rate_at_780M():
    assert quoted("bov", "Muon LR at 780M")["value"] == 0.02 != table_8("matrix LR")["d24"]


def test_bov_uses_fewer_flops_a_token_and_so_sees_more_tokens():
    assert flops(**D12, dropped=4) == 745_537_536 < flops(**D12) == 759_693_312
    assert [counted(plan, "d12")["flops_per_token"] for plan in ("bov", "standard")] == [
        745_537_536,
        759_693_312,
    ]
    seen = quoted("bov", "tokens BoV sees in 3.91e19 FLOPs")["value"]
    assert 3.91e19 / flops(**D24, dropped=8) == pytest.approx(seen, rel=2e-3)
    tokens = 95_367 * 2**20
    for dropped, name in (
        (0, "FLOPs, 780M baseline on 100B tokens"),
        (8, "FLOPs, 780M BoV on 100B tokens"),
    ):
        assert tokens * flops(**D24, dropped=dropped) == pytest.approx(
            quoted("bov", name)["value"], rel=2e-3
        )


def test_bov_has_three_quarters_more_parameters_at_135M():
    blocks, head = matrices(**D12)
    base, bov = blocks + 2 * head, blocks - 4 * 768**2 + 2 * head + 4 * head + 4
    assert [counted(plan, "d12")["parameters"] for plan in ("standard", "bov")] == [base, bov]
    assert bov / base - 1 == pytest.approx(0.727, abs=0.001)


def saved_bytes(tokens, layers=4, width=768, each=2, ids=0):
    """Eq 6 in bytes, batch 1: values not cached, less the tables, plus the W_V that go, less the
    ids."""
    return layers * each * width * (tokens - VOCAB + width) - tokens * ids


def test_eq_6_breaks_even_near_the_vocabulary_and_costs_memory_at_the_training_length():
    assert saved_bytes(2048) == pytest.approx(-184.0e6, rel=1e-3)
    assert saved_bytes(32768) == pytest.approx(4.72e6, rel=0.03)
    assert saved_bytes(32768, ids=4) == pytest.approx(4.59e6, rel=1e-2)
    assert saved_bytes(VOCAB - 768) == 0
    assert saved_bytes(131072, ids=4) == pytest.approx(608.2e6, rel=1e-2)


def test_the_saved_fraction_of_figure_5a_ends_at_a_sixth_so_it_is_of_keys_and_values():
    limit = 4 / 12
    seen = published("bov", "Figure 5a")
    assert seen["approximate"] and seen["rows"][0]["value"] == pytest.approx(limit / 2, abs=0.001)


def test_a_cache_of_ids_holds_30724_bytes_a_token_where_the_standard_one_holds_36864():
    standard, bov = 12 * 2 * 768 * 2, (12 * 2 - 4) * 768 * 2 + 4  # 2 bytes an element, an id of 4
    assert (standard, bov) == (36_864, 30_724)
    assert [counted(plan, "d12")["cache_bytes_per_token"] for plan in ("standard", "bov")] == [
        standard,
        bov,
    ]


def test_the_context_free_value_depends_on_the_previous_token_once_smear_is_on():
    e = F.rms_norm(draw(4, 8), (8,))
    for smear, same in ((0.0, True), (0.5, False)):
        x0 = lambda ids: e[ids] + smear * F.pad(e[ids], (0, 0, 1, 0))[:-1]
        assert torch.allclose(x0([1, 2])[1], x0([3, 2])[1]) is same


def test_a_table_filled_with_x0_w_v_gives_the_same_values():
    e, w, ids = draw(11, 8), draw(8, 8, seed=1), torch.tensor([3, 1, 3, 7])
    table = F.rms_norm(e, (8,)) @ w
    assert torch.allclose(table[ids], F.rms_norm(e[ids], (8,)) @ w)


def test_with_a_zero_output_matrix_every_variant_starts_alike():
    ids = torch.arange(20)[None]  # (B, T)
    plans = ("standard", "bov", "row9", "row6", "bov-shared", "svformer")
    start, *others = (build(plan, "nano")(ids) for plan in plans)
    assert start.std() > 0 and all(torch.equal(start, other) for other in others)


def test_x0_w_v_is_not_as_expressive_as_a_table():
    e, table = draw(200, 16), draw(200, 16, seed=1)
    fit = e @ torch.linalg.lstsq(e, table).solution
    assert ((fit - table).norm() / table.norm()).item() == pytest.approx(
        math.sqrt(1 - 16 / 200), abs=0.02
    )


def test_a_coefficients_size_says_nothing_since_the_table_can_take_it_over():
    a, table, wo, gamma = (
        attention(draw(6, 4), draw(6, 4, seed=1)),
        draw(6, 4, seed=2),
        draw(4, 4, seed=3),
        12.0,
    )
    assert torch.allclose(gamma * a @ table @ wo, (gamma / 10) * a @ (10 * table) @ wo)


def figure_2():
    """(|V|, |context-free value|) by layer, of the two additive variants: eight pairs, read by
    eye."""
    return [
        (abs(row["V"]), abs(row[name]))
        for part, name in (("b", "V1"), ("c", "x0 W_V"))
        for row in published("bov", f"Figure 2{part}")["rows"]
    ]


def test_in_six_of_eight_layers_of_figure_2_the_token_has_the_larger_coefficient():
    assert (
        sum(token > v for v, token in figure_2()) == 6
        and sum(token >= 4 * v for v, token in figure_2()) == 5
    )


def test_in_figure_2_one_layer_of_eight_has_a_v_near_0():
    found = [v for v, _ in figure_2()]
    assert (
        sum(v < 0.3 for v in found) == 1
        and sum(v < 0.8 for v in found) == 2
        and min(found[:4]) >= 1.0
    )


def test_v1_in_the_last_third_has_bovs_flops_and_the_baselines_core_is_above_it():
    assert flops(**D24, dropped=8) < flops(**D24)
    rows = {row["plan"]: row for row in published("bov", "Table 3")["rows"]}
    assert rows["row6"]["core"] < rows["standard"]["core"] < rows["bov"]["core"]


def test_the_additive_scalars_of_modded_nanogpt_are_unbounded_and_not_on_every_second_layer():
    tables = published("lambdas", "Value-embedding tables")["rows"]
    layers = sorted(row[side] for row in tables for side in ("first", "second"))
    assert layers == [0, 1, 2, 13, 14, 15] != list(range(1, 16, 2))
    assert published("lambdas", "Value lambdas")["rows"][0]["low"] > 3, (
        "a gate 3 sigmoid(.) could not reach it"
    )


def test_the_additive_variant_has_the_lower_validation_loss():
    bpb = published("bov", "Table 7")["rows"][0]
    assert bpb["task"] == "bpb" and bpb["vplus"] < bpb["bov"]


def test_with_the_models_own_windows_eq_6_breaks_even_near_four_vocabularies():
    """Four tables of |V| rows against four caches, three of which never hold more than 512."""
    windows = [CONTEXT if i % 4 == 3 else CONTEXT // 4 for i in range(8, 12)]
    assert windows == [512, 512, 512, 2048] and VOCAB == 32768
    width = D12["width"]
    rows = 4 * VOCAB - 4 * width  # the tables, less the four W_V that are gone
    # beyond its window a cache does not grow: only the last one can pay for all four tables
    length = rows - 3 * 512
    assert length == 4 * VOCAB - 3 * 512 - 4 * width == 126464
    assert VOCAB + 3 * 512 < rows, "at T = |V| the tables still cost more than the caches"


def test_two_of_the_compared_methods_use_no_more_flops_and_one_half_the_cache():
    layers = D24["layers"]
    bov, last_third, everywhere = layers // 3, layers // 3, layers - 1  # W_V that are gone
    assert flops(**D24, dropped=last_third) == flops(**D24, dropped=bov)
    assert flops(**D24, dropped=everywhere) < flops(**D24, dropped=bov)
    # rows a token: K in every layer, V where it is kept
    kept = dict(bov=2 * layers - bov, everywhere=layers + 1, standard=2 * layers)
    assert kept["everywhere"] < kept["bov"] < kept["standard"]
    assert kept["everywhere"] / kept["standard"] == pytest.approx(0.52, abs=0.01)


def test_the_introduction_and_section_6_disagree_on_moves_tables():
    once, again = (quoted("bov", f"tables of MoVE (Li, 2026){more}") for more in ("", ", again"))
    assert (once["where"], again["where"]) == ("Introduction", "Section 6")
    assert "shared" in once["value"] and again["value"] == "per layer"


def test_skipv1formers_abstract_reports_better_perplexity():
    said = quoted("bov", "SkipV1Former and SVFormer report")["value"]
    itself = quoted("bov", "SkipV1Former reports")["value"]
    assert said.startswith("degraded") and itself.startswith("better")
