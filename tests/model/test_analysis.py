"""Analyses against maps and curves whose answers are known."""

import math
from dataclasses import replace

import pytest
import torch

from course.crossings import critical_point
from course.watched import watched
from evidence.lab import studies
from evidence.lab.studies import across_study
from minimal import analysis
from minimal.compare import curves
from minimal.kernels.reference import visible, weights
from minimal.train import Trainer
from minimal.training.run import Run
from minimal.variants import build

SMALL = dict(layers=4, width=48, heads=4, vocab=97, context=64)
IDS = torch.randint(97, (2, 33), generator=torch.Generator().manual_seed(1))


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A text to train on, in a folder that keeps its runs."""
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))
    text = tmp_path / "book.txt"
    text.write_text("the cat sat on the mat, and the dog lay by the door. " * 3000)
    return str(text)


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


def test_the_cosine_study_finds_equation_3_exact_where_layers_agree():
    """Let layer n's keys equal layer m's: then Eq 2 and Eq 3 are the same and Eq 6 is not."""
    model = awake("share-k")
    study = across_study(model, IDS)
    assert [r["layer"] for r in study] == [1, 2, 3]
    assert all(r["eq3"] == pytest.approx(1, abs=1e-4) and r["eq6"] < 0.999 for r in study)
    other = across_study(awake(), IDS)
    assert all(r["eq3"] < 0.9999 for r in other)


def test_what_a_mixin_did_is_read_off_its_paths():
    steps = 40
    flat, up = [0.5] * steps, [i / steps for i in range(steps)]
    tent = [min(i, steps - i) / steps for i in range(steps)]
    down = [
        0.5 - i / steps for i in range(steps)
    ]  # positive at a tenth of the run, negative at its end
    paths = {f"streams.1.residual.{i}": [1.0] * steps for i in range(4)}
    paths |= {f"streams.1.x0.{i}": path for i, path in enumerate((flat, up, tent, down))}
    result = dict(
        coefficients=dict(names=list(paths), steps=[list(row) for row in zip(*paths.values())]),
        valid=[dict(loss=x) for x in (4.0, 3.5, 3.7, 3.4)],
    )
    told = studies.mixin_study(result)
    assert told["x0_share"] == pytest.approx([1 / 3, 39 / 79, 1 / 41, 19 / 59], abs=1e-3)
    assert told["fell"] == 2 and told["crossed"] == [3] and told["rise"] == pytest.approx(0.2)
    assert 0.4 < told["turn"] < 0.6, "at the end, in the middle, at the start"


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


def test_what_is_left_of_the_token_is_all_of_it_until_the_blocks_write(corpus, tmp_path):
    for name, lr in dict(still=1e-12, moved=None).items():
        run = Run(size="smoke", corpus=corpus, vocab=280, steps=20, lr=lr, out=str(tmp_path / name))
        left = studies.token_left(Trainer(run, quiet=True).fit() | dict(folder=run.out))[
            "token_left"
        ]
        assert len(left) == 3 and left[0] == 1
        assert left[2] == 1 if name == "still" else left[2] < 0.99


def test_a_layers_share_closes_with_its_gain_and_scales_with_its_table(
    corpus, tmp_path, monkeypatch
):
    run = Run("bov", size="smoke", corpus=corpus, vocab=280, steps=3, out=str(tmp_path / "bov"))
    result = Trainer(run, quiet=True).fit() | dict(folder=run.out)
    model, ids = studies.trained(result)
    assert len(model.coefficients()) == 1, "bov at this size has one layer with a gain"

    def shares(change):
        copy, _ = studies.trained(result)
        with torch.no_grad():
            change(copy)
        with monkeypatch.context() as patch:
            patch.setattr(studies, "trained", lambda result: (copy, ids))
            return studies.layer_shares(result)

    def scaled(factor):
        return shares(lambda model: [x.mul_(factor) for x in model.coefficients().values()])

    plain = scaled(1.0)
    # the last layer reads the table; the first has values of its own
    last = len(model.blocks) - 1
    assert 0 < plain["share"][last] < 1 and set(plain["share"]) == set(range(last + 1))
    # a gain of zero closes the layer that has it, and no layer below it
    closed = scaled(0.0)
    assert closed["value"][last] == closed["share"][last] == 0
    assert closed["share"][0] == plain["share"][0]
    # twice the gain: twice the values, twice the branch beside the same stream
    double = scaled(2.0)
    assert double["value"][last] == pytest.approx(2 * plain["value"][last], rel=1e-2)
    odds = [found["share"][last] / (1 - found["share"][last]) for found in (plain, double)]
    assert odds[1] == pytest.approx(2 * odds[0], rel=1e-2)
    # the stream is the one that attention's output is added to, not the one behind the block
    loud = shares(loud_outputs)
    with torch.no_grad():
        loud_outputs(model)
        tape = analysis.observe(model, ids)
        for at, block in enumerate(model.blocks):
            x = tape.streams[at]
            added = block.attention(block.first(x), at, tape)
            right = added.norm() / (added.norm() + x.norm())
            assert loud["share"][at] == pytest.approx(right.item(), abs=1e-3), at
            assert loud["share"][at] > 0.3, "large enough to tell the two streams apart"


def loud_outputs(model):
    """W_O as a trained model has it; after three steps it is almost zero."""
    chance = torch.Generator().manual_seed(0)
    for block in model.blocks:
        block.attention.out.weight.normal_(generator=chance)


def gains(model):
    return [value.item() for value in model.coefficients().values()]
