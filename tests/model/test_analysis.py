"""Analyses against maps and curves whose answers are known."""

import math
from dataclasses import replace

import pytest
import torch

from course.crossings import critical_point
from course.watched import watched
from minimal import analysis
from minimal.compare import curves
from minimal.kernels.reference import visible, weights
from minimal.train import Trainer
from minimal.training.run import Run
from minimal.variants import build

SMALL = dict(layers=4, width=48, heads=4, vocab=97, context=64)
IDS = torch.randint(97, (2, 33), generator=torch.Generator().manual_seed(1))


def awake(plan="standard", **more):
    model = build(plan, "nano", **(SMALL | more))
    with torch.no_grad():
        for p in model.parameters():
            if p.abs().sum() == 0:
                p.normal_(0, 0.1, generator=torch.Generator().manual_seed(p.numel()))
    return model


def test_entropy_of_importance_on_the_cases_that_can_be_worked_out():
    n = 64
    identity, first = torch.eye(n)[None, None], torch.zeros(1, 1, n, n)
    first[..., 0] = 1
    causal = torch.ones(n, n).tril()
    causal = (causal / causal.sum(-1, keepdim=True))[None, None]
    assert analysis.token_entropy(identity).item() == pytest.approx(math.log(n), abs=1e-5)
    assert analysis.token_entropy(first).item() == 0
    assert analysis.token_entropy(causal).item() == pytest.approx(
        analysis.uniform_causal_entropy(n)[0], abs=1e-4
    )
    assert analysis.token_entropy(causal).item() < math.log(n), "causality alone lowers it"


def test_uniform_causal_attention_over_2048_tokens():
    found, top = analysis.uniform_causal_entropy(2048)
    assert (round(found, 4), round(top, 4)) == (7.2025, 7.6246)


def test_the_printed_row_sums_say_nothing():
    """Eq 11 as printed: rows of any attention map sum to 1, so their entropy is log l for every
    map."""
    for seed in range(3):
        a = torch.rand(9, 9, generator=torch.Generator().manual_seed(seed)).softmax(-1)
        rows = a.sum(-1)
        assert analysis.entropy(rows / rows.sum()).item() == pytest.approx(math.log(9), abs=1e-5)


def test_heads_are_averaged_before_or_looked_at_one_by_one():
    one, other = torch.zeros(8, 8), torch.zeros(8, 8)
    one[:, 0], other[:, 1] = 1, 1
    a = torch.stack([one, other])[None]
    assert analysis.token_entropy(a).item() == pytest.approx(math.log(2))
    assert analysis.token_entropy(a, heads="each").tolist() == [0, 0]


def test_similarity_equals_the_double_loop():
    h = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(0))
    pairs = [
        torch.cosine_similarity(x[i], x[j], dim=0)
        for x in h
        for i in range(7)
        for j in range(7)
        if i != j
    ]
    assert analysis.similarity(h).item() == pytest.approx(
        torch.stack(pairs).mean().item(), abs=1e-6
    )
    assert analysis.similarity(torch.ones(1, 4, 5)).item() == pytest.approx(1)


def test_the_spectrum_is_that_of_the_uncentred_second_moment():
    v = torch.randn(1, 50, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor(
        [5.0, 1, 1, 1, 1, 0]
    )
    found = analysis.spectrum(v)
    assert found[0] > 10 and found[-1].abs() < 1e-5 and (found[:-1] >= found[1:]).all()
    assert found.sum().item() == pytest.approx(v.square().sum().item() / 50, rel=1e-5)
    moved = analysis.spectrum(v + 10)
    assert moved[0] > 100, "a mean is not removed"


def test_maps_on_the_tape_are_the_maps_that_attention_used():
    model = awake(windows=(5, 0, 5, 0))
    tape = analysis.observe(model, IDS)
    for at in range(4):
        a = analysis.attention_map(model, tape, at)
        assert torch.allclose(a.sum(-1), torch.ones_like(a.sum(-1)), atol=1e-5)
        out = torch.einsum("bhts,bshd->bthd", a, tape.values[at].dense())
        assert torch.allclose(out, tape.out[at], atol=1e-5)


def test_a_layer_whose_softmax_spans_two_layers_has_no_map_of_its_own():
    model = awake("cross", windows="L")
    tape = analysis.observe(model, IDS)
    analysis.attention_map(model, tape, 0)  # the first layer has none below it
    with pytest.raises(ValueError, match="layer 2: wanted a map over its own keys, .* layer 1"):
        analysis.attention_map(model, tape, 2)
    # by the way that the message names
    mask = visible(33, 33).repeat(1, 2)
    keys = torch.cat([tape.keys[2], tape.keys[1]], 1)
    values = torch.cat([tape.values[2].dense(), tape.values[1].dense()], 1)
    scale = model.config.style.attention_scale(model.config.head)
    a = weights(tape.queries[2], keys, mask=mask, scale=scale)
    out = torch.einsum("bhts,bshd->bthd", a, values)
    torch.testing.assert_close(out, tape.out[2], atol=1e-5, rtol=0)


def test_relative_loss_and_the_critical_point():
    base = [3.0] * 400
    method = [2.9] * 250 + [3.2] * 150
    curve = curves.relative(method, base, window=10)
    assert len(curve) == 391 and curve[0] == pytest.approx(-0.1) and curve[-1] == pytest.approx(0.2)
    assert abs(critical_point(method, base, window=10) - 254) <= 10
    assert critical_point([2.9] * 400, base, window=10) is None, "it still leads"
    assert critical_point([3.1] * 400, base, window=10) is None, "it never led"
    with pytest.raises(ValueError, match="equal lengths"):
        curves.relative(base, base[1:])


@pytest.mark.slow
@pytest.mark.parity
def test_any_hugging_face_model_that_returns_attentions_can_be_read():
    import transformers

    config = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=16, vocab_size=50, n_positions=64, attn_implementation="eager"
    )
    found = analysis.observe_hf(transformers.GPT2LMHeadModel(config).eval(), torch.arange(40)[None])
    assert len(found["entropy"]) == 2 and len(found["similarity"]) == 3
    assert all(0 < e <= math.log(40) for e in found["entropy"])


def test_a_watched_run_is_trained_once_and_noted_at_every_step_asked(corpus, monkeypatch):
    run = Run(plan="row9", size="smoke", corpus=corpus, vocab=280, steps=6)
    first = watched(run, gains, every=2)
    assert first["steps"] == [0, 2, 4, 6] and len(first["notes"]) == 4
    assert first["notes"][0] == [1.0] and first["notes"][-1] != [1.0], (
        "the gain starts at one and learns"
    )
    whole = Trainer(replace(run, out=None), quiet=True).fit()
    assert first["loss"] == pytest.approx(whole["valid"][-1]["loss"], abs=1e-6), (
        "watching changes nothing"
    )
    monkeypatch.setattr(Trainer, "step", None)  # a second training would fail
    assert watched(run, gains, every=2) == first


def gains(model):
    return [value.item() for value in model.coefficients().values()]
