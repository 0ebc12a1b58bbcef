"""Claims about dynamic values, modded-nanogpt's lambdas and the BERT bypass that algebra or
counting decides."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from course.records import claims, published, quoted
from course.significance import welch
from minimal.model.attention import Dynamic
from minimal.training.recipes import RECIPES, laptop
from minimal.variants import build
from tests.lab.algebra import attention, counted, covariance, draw, variance

# ---- dynamic value attention ---------------------------------------------------------------------


def test_a_value_for_every_pair_is_two_value_streams_and_a_gate():
    q, k, v, q_r, k_r = (draw(7, 4, seed=s) for s in range(5))
    a = attention(q, k)
    pairs = v[None] + q_r[:, None] * k_r[None]  # (T, T, C)
    assert torch.allclose((a[:, :, None] * pairs).sum(1), a @ v + q_r * (a @ k_r))


def test_a_modifier_per_position_is_another_model():
    q, k, v, q_r, k_r = (draw(7, 4, seed=s) for s in range(5))
    a = attention(q, k)
    dynamic, static = a @ v + q_r * (a @ k_r), a @ (v + q_r * k_r)
    assert (dynamic - static).abs().max() > 0.5
    changed = q_r.clone()
    changed[-1] += 1
    early = lambda r: (a @ (v + r * k_r))[0]
    assert torch.equal(early(q_r), early(changed)), "what a key offers does not depend on who asks"


def gpt2(
    width=768, layers=12, vocab=50257, context=256, tied=False, ffn=True, w_o=True, modifiers=False
):
    """Parameters of GPT-2 small as the book's configuration builds it: no biases on q, k, v."""
    attention_ = 3 * width**2 + w_o * (width**2 + width) + modifiers * 2 * width**2
    block = attention_ + 2 * width + ffn * (8 * width**2 + 5 * width + 2 * width)
    return vocab * width * (1 if tied else 2) + context * width + layers * block + 2 * width


def test_162M_and_112M_fit_square_modifiers_without_ffn_and_without_output_projection():
    assert gpt2() == counted("gpt2", "gpt2")["parameters"] == 162_419_712
    assert (
        gpt2(ffn=False, w_o=False, modifiers=True)
        == counted("dva", "gpt2")["parameters"]
        == 112_800_768
    )
    assert round(1 - 112_800_768 / 162_419_712, 3) == 0.305


def test_with_an_output_projection_dva_would_have_120M_parameters():
    assert gpt2(ffn=False, w_o=True, modifiers=True) == pytest.approx(119.9e6, rel=1e-3)
    dva = published("dva", "Table 2")["rows"][1]["parameters"]
    assert abs(gpt2(ffn=False, w_o=True, modifiers=True) - dva) > 7e6


def test_the_baseline_has_162M_parameters_because_its_head_is_not_tied():
    assert gpt2(tied=True) == pytest.approx(
        quoted("dva", "baseline's parameters, second figure")["value"], rel=0.01
    )
    assert gpt2() == pytest.approx(published("dva", "Table 2")["rows"][0]["parameters"], rel=0.01)


def test_the_feed_forward_network_is_attention_to_a_latent_set_with_relu_for_softmax():
    x, keys, values = draw(5, 4), draw(16, 4, seed=1), draw(16, 4, seed=2)
    network = F.linear(F.relu(F.linear(x, keys)), values.T)
    weights = F.relu(x @ keys.T)  # (T, latent)
    assert torch.allclose(network, weights @ values)
    assert not torch.allclose(network, (x @ keys.T).softmax(-1) @ values)


def test_the_speed_up_is_confounded_with_the_ffn_which_has_8_of_12_products():
    with_ffn, dva = (
        4 + 8,
        5,
    )  # products of C x C a layer: W_Q W_K W_V W_O and the network; three and two modifiers
    saved = counted("gpt2", "gpt2")["flops_per_token"] - counted("dva", "gpt2")["flops_per_token"]
    assert saved == 6 * 12 * 768 * ((with_ffn - dva) * 768 - 256), (
        "6 C T more a layer for the second value stream"
    )
    train, validation = (
        [row[part] for row in published("dva", "Table 2")["rows"]]
        for part in ("train", "validation")
    )
    assert train[0] - train[1] == pytest.approx(0.337) and validation[0] - validation[
        1
    ] == pytest.approx(0.024)


def test_dynamic_values_can_be_an_adapter_on_a_frozen_model():
    """Without a map of their own: born as the frozen model, and a few steps on the modifier alone
    teach it another text."""
    model = build("standard", "nano", vocab=64)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(std=0.3, generator=torch.Generator().manual_seed(len(name)))
    model.requires_grad_(False)
    ids = torch.arange(40)[None].repeat(2, 1) % 7  # seven words, over and over
    frozen = model.loss(ids[:, :-1], ids[:, 1:]).item()
    for at, block in enumerate(model.blocks):
        block.attention.read = Dynamic(config=model.config, at=at)
        torch.nn.init.zeros_(block.attention.read.query.weight)
        torch.nn.init.normal_(
            block.attention.read.key.weight, std=0.1, generator=torch.Generator().manual_seed(at)
        )
    assert model.loss(ids[:, :-1], ids[:, 1:]).item() == pytest.approx(frozen, abs=1e-4)
    free = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(free, lr=0.03)
    for _ in range(20):
        optimizer.zero_grad()
        loss = model.loss(ids[:, :-1], ids[:, 1:])
        loss.backward()
        optimizer.step()
    assert len(free) == 2 * len(model.blocks) and loss < 0.5 * frozen


@pytest.mark.data
def test_war_and_peace_has_3_2_million_characters_not_tokens(data):
    text = (data / "books" / "war-and-peace.txt").read_text(encoding="utf-8")
    said = quoted("dva", "data set")["value"]
    assert len(text) == pytest.approx(said, rel=0.02) and len(text.split()) < said / 5


# ---- modded-nanogpt's lambdas --------------------------------------------------------------------


def test_in_layer_0_both_lambdas_get_one_gradient_so_their_gap_stays_one():
    x = draw(8, 4)
    lambdas = torch.nn.Parameter(torch.tensor([1.0, 0.0], dtype=torch.float64))
    optimizer = torch.optim.Adam([lambdas], lr=0.05)
    for _step in range(200):
        optimizer.zero_grad()
        (((lambdas[0] * x + lambdas[1] * x) - 9 * x) ** 2).mean().backward()
        assert lambdas.grad[0] == lambdas.grad[1]
        optimizer.step()
    assert (lambdas[0] - lambdas[1]).item() == pytest.approx(1, abs=1e-6)
    assert (lambdas[0] / lambdas[1]).item() < 1.3, "they look alike because they have grown"


def test_a_skip_weight_w_skips_w_over_one_plus_w_not_w_over_two():
    for row in published("lambdas", "U-Net lambdas")["rows"]:
        w = row["final"]
        assert row["share"] == pytest.approx(w / 2) and w / (1 + w) > row["share"] + 0.05
    assert [round(w / (1 + w), 3) for w in (0.3, 0.4, 0.5)] == [0.231, 0.286, 0.333]
    assert all(w / (1 + w) == w / 2 for w in (0, 1))


def test_a_large_stream_cannot_drown_value_embeddings_since_values_are_normed_before_they_meet():
    x, w = draw(6, 8), draw(8, 8, seed=1)
    small, large = (F.rms_norm((scale * x) @ w, (8,), eps=0.0) for scale in (1, 100))
    assert torch.allclose(small, large)


def test_a_share_of_lambdas_is_not_a_share_of_contributions_since_tables_are_not_normed():
    v, table, lv, lt = F.rms_norm(draw(6, 8), (8,)), draw(6, 8, seed=1), 3.0, 1.0
    assert torch.allclose(lv * v + lt * table, lv * v + (lt / 10) * (10 * table))
    assert lt / (lt + lv) == 0.25 and lt / 10 / (lt / 10 + lv) < 0.04


def test_a_share_falls_where_its_weight_falls_so_one_cannot_reverse_without_the_other():
    """Two sentences on layers without value embeddings, whose other weight stands still."""
    (row,) = (row for row in claims() if row["id"] == "lam-reverses")
    assert "never reverses course" in row["quote"] and "slightly falling" in row["note"]
    share = lambda weight, still: weight / (weight + still)
    assert all(share(6.5, still) < share(7.0, still) for still in (0.1, 0.5, 1.0))


def test_the_article_names_layer_14_both_as_negative_and_as_the_one_that_stays_positive():
    said = {
        row["statement"]: set(row["layers"])
        for row in published("lambdas", "Sign of x0_lambda")["rows"]
    }
    assert said["crosses into negative territory"] & said[
        "remains positive while lower than x_lambda"
    ] == {14}
    assert (
        said["crosses into negative territory"]
        != said["crosses into negative values (later paragraph)"]
    )


def test_the_window_rises_to_half_rests_and_rises_again():
    share = lambda x: 4 * x**3 - 6 * x**2 + 3 * x  # of 3,456 tokens, over training
    steps = 5960
    assert [round(3456 * share(x)) for x in (0, 0.25, 0.5, 0.75, 1)] == [0, 1512, 1728, 1944, 3456]
    middle = [share(step / steps) for step in range(2000, 4001, 100)]
    assert min(middle) > 0.48 and max(middle) < 0.525


# ---- the BERT bypass -----------------------------------------------------------------------------


def test_the_variance_of_a_sum_needs_alpha_in_the_covariance_term():
    v, r, a = draw(4000), F.relu(draw(4000, seed=1)) + 0.5 * draw(4000), 0.5
    true = variance(v) + a * a * variance(r) + 2 * a * covariance(v, r)
    as_printed = variance(v) + a * a * variance(r) + 2 * covariance(v, r)
    assert variance(v + a * r) == pytest.approx(true) != pytest.approx(as_printed, rel=0.05)


def test_the_bypass_can_divide_the_variance_of_a_value_by_four():
    r = F.relu(draw(400_000))
    assert variance(r) == pytest.approx(0.5 - 1 / (2 * math.pi), abs=0.005)
    assert variance(-r + 0.5 * r) / variance(-r) == pytest.approx(1 / 4)


def test_the_bypass_stays_inside_attention():
    x, w = draw(6, 4), draw(4, 4, seed=1)
    a, b = attention(x, draw(6, 4, seed=2)), attention(x, draw(6, 4, seed=3))
    value = x @ w + 0.5 * F.relu(x)
    assert torch.allclose(a @ value, a @ x @ w + 0.5 * a @ F.relu(x))
    assert not torch.allclose(a @ F.relu(x), b @ F.relu(x)), (
        "attention selects among the bypassed terms too"
    )


def test_the_printed_ratios_of_spread_are_right():
    for row in published("bypass", "Table 1")["rows"]:
        assert row["bypass std"] / row["base std"] == pytest.approx(row["std ratio"], rel=0.06)


def test_with_so_few_seeds_no_difference_of_means_is_clear():
    found = {}
    for row in published("bypass", "Table 1")["rows"]:
        n = row["seeds"]
        found[row["size"]] = welch(
            row["base"], row["base std"], n, row["bypass"], row["bypass std"], n
        )
    assert [round(t, 2) for t, _, _ in found.values()] == [2.76, 1.87, -0.37]
    assert all(p > 0.05 for _, _, p in found.values())


def test_the_spread_grows_clearly_in_two_sizes_of_three():
    """P(F > f) is 1 / (1 + f) for (2, 2) degrees of freedom and (1 + 3 f) / (1 + f)^3 for (4,
    4)."""
    tail = {3: lambda f: 1 / (1 + f), 5: lambda f: (1 + 3 * f) / (1 + f) ** 3}
    rows = published("bypass", "Table 1")["rows"]
    p = [tail[row["seeds"]]((row["bypass std"] / row["base std"]) ** 2) for row in rows]
    assert p[0] < 0.001 and p[1] < 0.01 and 0.05 < p[2] < 0.06


def test_three_epochs_of_squad_are_4100_steps_of_64():
    assert (
        round(3 * 87_599 / quoted("bypass", "batch")["value"], -2)
        == quoted("bypass", "steps")["value"]
    )


def test_berts_corpora_are_larger_in_tokens_than_in_words():
    """A word has one token or more, so 0.6B tokens are considerably fewer whichever of the two is
    meant."""
    ours, berts = (
        quoted("bypass", name)["value"]
        for name in ("corpus, tokens", "BERT's corpus as quoted, tokens")
    )
    assert ours < berts / 5 and published("bypass", "SQuAD")


def test_pre_training_sees_more_tokens_than_the_corpus_has():
    seen = sum(
        row["length"] * row["batch"] * row["steps"]
        for row in published("bypass", "Pre-training")["rows"]
    )
    assert seen == 768_000_000 > quoted("bypass", "corpus, tokens")["value"]


def test_value_embeddings_stand_in_six_of_fifteen_attention_layers():
    tables = published("lambdas", "Value-embedding tables")["rows"]
    layers = {row[side] for row in tables for side in ("first", "second")}
    assert layers == {0, 1, 2, 13, 14, 15} and len(set(range(16)) - {7}) == 15


def test_the_rate_is_constant_for_30_per_cent_of_the_run_about_2000_steps():
    from minimal.training.recipes import RECIPES

    rate = RECIPES["modded"].lr
    peak = [step for step in range(5960) if rate(step, 5960) == rate(100, 5960)]
    assert peak == list(range(len(peak))) and len(peak) == pytest.approx(1788, abs=2)
    (first, *_) = published("lambdas", "Schedules")["rows"]
    assert first["learning rate"] == "constant" and len(peak) == pytest.approx(
        first["to"], rel=0.15
    )


def test_the_report_both_made_and_did_not_make_experiments_with_a_trainable_alpha():
    before, after = (
        quoted("bypass", f"trainable alpha, Section {number}")["value"] for number in ("2", "4.2.1")
    )
    assert before == "experiments were not conducted" and after == "having no impact"


# ---- how far a recipe carries a coefficient ------------------------------------------------------


def farthest(role, steps):
    """How far Adam can carry a coefficient: the sum of its learning rates."""
    recipe = laptop(RECIPES["bov"])
    return recipe.rows[role].lr * sum(recipe.lr(step, steps) for step in range(steps))


def test_in_500_steps_no_weight_on_v_can_reach_6_and_no_skip_the_articles():
    """Weights on V begin at .5. Skips end after 5,960 steps at .4, .5 and .3."""
    assert 0.5 + farthest("lambda", 500) < 3
    assert farthest("skip", 500) < 0.1 * 0.015 * 5960


def test_in_the_articles_5960_steps_the_rates_would_carry_a_weight_on_v_to_6():
    recipe = RECIPES["modded"]
    summed = sum(recipe.lr(step, 5960) for step in range(5960)) * recipe.rows["lambda"].lr
    (printed,) = published("lambdas", "Value lambdas")["rows"]
    assert summed > 5 * printed["low"]


def test_a_warm_up_hardly_moves_the_summed_rate_so_no_grid_of_both_can_tell_them_apart():
    """A climbing line averages .50 of the peak, the cosine that falls to a tenth .55: four rates
    move the sum 33-fold."""
    recipe = laptop(RECIPES["resformer"])
    sums = [
        sum(replace(recipe.lr, warmup=share)(step, 500) for step in range(500))
        for share in (0.01, 0.1, 0.4)
    ]
    assert max(sums) / min(sums) < 1.04
