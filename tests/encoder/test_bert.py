"""Is the encoder the public BERT, weight for weight, on the course's own attention? Does it read
both ways and no padding?"""

import pytest
import torch

from minimal.encoder import bert, bypass
from minimal.model import attend
from minimal.model.attention import Attention
from minimal.model.config import SIZES, Config
from minimal.model.transformer import GPT, Block

SMALL = Config(3, 48, 4, 40, 211, style="bert", windows="L", dropout=0.1)


def batch(n=3, t=17, seed=0):
    random = torch.Generator().manual_seed(seed)
    ids, segments = (torch.randint(high, (n, t), generator=random) for high in (211, 2))
    return ids, segments, torch.tensor([t, 9, 4][:n])


def awake(model, std=0.2):
    """Noise on every parameter, biases and norms too: zeros and ones would hide a swapped name."""
    random = torch.Generator().manual_seed(1)
    for p in model.parameters():
        p.data += torch.empty_like(p).normal_(0, std, generator=random)
    return model.eval()


# ---- the public implementation ------------------------------------------------------------------


def public(kind):
    import transformers

    config = transformers.BertConfig(
        vocab_size=211,
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=192,
        max_position_embeddings=40,
    )
    return awake(getattr(transformers, kind)(config))


@pytest.mark.parity
@pytest.mark.parametrize(
    "kind, head",
    [
        ("BertForMaskedLM", bert.Masked),
        ("BertForQuestionAnswering", bert.Spans),
        ("BertModel", bert.Masked),
    ],
)
def test_the_same_weights_give_the_public_outputs(kind, head, tmp_path):
    from safetensors.torch import save_file

    theirs = public(kind)
    ours = bert.build("standard", SMALL, head, seed=5).eval()
    save_file(
        {name: t.clone() for name, t in theirs.state_dict().items()}, tmp_path / "model.safetensors"
    )
    missing, spare = bert.load_public(ours, tmp_path / "model.safetensors")
    assert all(name.startswith("head.") for name in missing) and (kind == "BertModel") == bool(
        missing
    )
    assert set(spare) <= {
        "cls.predictions.decoder.bias",
        "cls.predictions.decoder.weight",
        "bert.pooler.dense.weight",
        "bert.pooler.dense.bias",
    }, "a tied copy, or a pooler that this head does not use"
    ids, segments, lengths = batch()
    real = torch.arange(17) < lengths[:, None]
    with torch.no_grad():
        expected = theirs(
            input_ids=ids,
            token_type_ids=segments,
            attention_mask=real.long(),
            output_hidden_states=True,
        )
        tape = ours.tape(ids, lengths=lengths)
        got = ours(ids, segments=segments, tape=tape)
    assert len(tape.streams) == len(expected.hidden_states) == 4
    for mine, other in zip(tape.streams, expected.hidden_states):
        torch.testing.assert_close(mine[real], other[real], atol=1e-5, rtol=0)
    pairs = {
        "BertForMaskedLM": lambda: [(got[real], expected.logits[real])],
        "BertForQuestionAnswering": lambda: [
            (got[0][real], expected.start_logits[real]),
            (got[1][real], expected.end_logits[real]),
        ],
        "BertModel": lambda: [],
    }[kind]()
    for mine, other in pairs:
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=0)


@pytest.mark.parity
def test_public_weights_start_a_bypass_model_that_differs_by_its_alpha_only():
    theirs = public("BertForMaskedLM")
    plain, past = (bert.build(plan, SMALL).eval() for plan in ("standard", dict(alpha="head")))
    for model in (plain, past):
        bert.load_public(model, theirs.state_dict())
    ids, segments, _ = batch()
    assert not torch.allclose(
        plain(ids, segments=segments), past(ids, segments=segments), atol=1e-2
    )
    for c in past.coefficients().values():
        c.data.zero_()
    torch.testing.assert_close(plain(ids, segments=segments), past(ids, segments=segments))


def public_state(model):
    """Our weights under the public names, as a checkpoint would have them."""
    named = dict(model.named_parameters())
    return {
        theirs: named[ours].detach().clone() for ours, theirs in bert.public_names(model).items()
    }


def test_weights_come_back_through_the_public_names_old_and_new():
    ours = awake(bert.build("standard", SMALL))
    state = public_state(ours)
    assert len(state) == len(list(ours.parameters())), "every parameter has a public name"
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): t
        for name, t in state.items()
    }
    bare = {name.removeprefix("bert."): t for name, t in state.items()}
    ids, segments, lengths = batch()
    for form in (state, old, bare):
        other = bert.build("standard", SMALL, seed=9).eval()
        missing, spare = bert.load_public(other, form)
        assert missing == spare == []
        torch.testing.assert_close(
            other(ids, segments=segments), ours(ids, segments=segments), rtol=0, atol=0
        )


def test_weights_of_another_model_are_refused_in_one_sentence(tmp_path):
    state = public_state(bert.build("standard", SMALL))
    for model, wanted in (
        (bert.build("standard", SMALL.but(layers=4)), "lacks 16 of the encoder's"),
        (
            bert.build("standard", SMALL.but(vocab=200)),
            r"is \(211, 48\) in the file and \(200, 48\) here",
        ),
    ):
        with pytest.raises(ValueError, match=wanted):
            bert.load_public(model, state)
    with pytest.raises(FileNotFoundError, match="is not there"):
        bert.load_public(model, tmp_path / "none.safetensors")


def test_base_has_the_public_number_of_parameters():
    with torch.device("meta"):
        base = bert.Bert(SIZES["bert-base"], bypass.plan("standard"))
    assert sum(p.numel() for p in base.parameters()) == 109_514_298  # BertForMaskedLM
    widths = {
        name: (SIZES[name].layers, SIZES[name].width)
        for name in ("bert-4l", "bert-6l", "bert-8l", "bert-base")
    }
    assert widths == {
        "bert-4l": (4, 256),
        "bert-6l": (6, 384),
        "bert-8l": (8, 512),
        "bert-base": (12, 768),
    }


# ---- the same stack -----------------------------------------------------------------------------


def test_the_encoder_is_the_decoders_stack_and_attention(monkeypatch):
    model = bert.build("standard", SMALL).eval()
    assert isinstance(model, GPT) and all(
        type(b) is Block and type(b.attention) is Attention for b in model.blocks
    )
    calls, whole = [], attend.in_one_call
    monkeypatch.setattr(
        attend, "in_one_call", lambda *a, **how: calls.append(how) or whole(*a, **how)
    )
    ids, segments, lengths = batch()
    model(ids, segments=segments, lengths=lengths)
    assert len(calls) == 3 and all(how["causal"] is False for how in calls)


def test_every_position_sees_every_other_and_none_sees_padding():
    model = awake(bert.build("standard", SMALL, bert.Spans))
    ids, segments, lengths = batch()
    before = model.hidden(ids, model.tape(ids, lengths=lengths), segments)
    other = ids.clone()
    other[:, 3] = (other[:, 3] + 1) % 211
    moved = (
        (model.hidden(other, model.tape(other, lengths=lengths), segments) - before).abs().amax(-1)
    )
    assert all((moved[row, :n] > 1e-4).all() for row, n in enumerate(lengths.tolist())), (
        "before it and after it"
    )
    padded = ids.clone()
    padded[1, 9:], padded[2, 4:] = 7, 7
    after = model.hidden(padded, model.tape(padded, lengths=lengths), segments)
    for row, n in enumerate(lengths.tolist()):
        torch.testing.assert_close(after[row, :n], before[row, :n], rtol=0, atol=1e-6)
        alone = model.hidden(
            ids[row : row + 1, :n], model.tape(ids[row : row + 1, :n]), segments[row : row + 1, :n]
        )
        torch.testing.assert_close(alone[0], before[row, :n], rtol=0, atol=2e-5)


def test_lengths_beside_a_tape_which_knows_its_own_are_refused():
    model = bert.build(size=SMALL)
    ids, _, lengths = batch()
    with pytest.raises(ValueError, match="wanted a tape alone, got lengths beside it"):
        model(ids, lengths=lengths, tape=model.tape(ids))


def test_segments_and_positions_matter_and_too_many_positions_are_refused():
    model = awake(bert.build("standard", SMALL))
    ids, segments, _ = batch()
    assert not torch.allclose(
        model(ids, segments=segments), model(ids, segments=1 - segments), atol=1e-2
    )
    assert not torch.allclose(model(ids.flip(1)).flip(1), model(ids), atol=1e-2)
    with pytest.raises(
        ValueError, match="wanted at most 40 positions, the model's context, got 41"
    ):
        model(torch.zeros(1, 41, dtype=torch.long))


def test_dropout_acts_in_training_only_and_same_seeds_give_the_same_weights():
    model = bert.build("standard", SMALL)
    ids, _, _ = batch()
    model.train()
    assert not torch.equal(model(ids), model(ids))
    model.eval()
    assert torch.equal(model(ids), model(ids))
    again = bert.build("standard", SMALL).eval()
    assert torch.equal(model(ids), again(ids)) and not torch.equal(
        model(ids), bert.build("standard", SMALL, seed=1).eval()(ids)
    )


@pytest.mark.parametrize("width", [48, 192])
def test_every_matrix_starts_at_the_size_that_berts_has_at_its_width(width):
    """0.02 sqrt(768 / C), the tied embedding and the segments included: each is scaled once."""
    model = bert.build("standard", SMALL.but(width=width, vocab=2000, context=500))
    for name, p in model.named_parameters():
        if p.ndim == 2 and min(p.shape) > 2:
            assert p.std().item() == pytest.approx(0.02 * (768 / width) ** 0.5, rel=0.05), name
    assert model.segment.weight.std().item() == pytest.approx(0.02 * (768 / width) ** 0.5, rel=0.2)


def test_the_mlm_head_is_tied_and_another_head_leaves_the_encoder_alone():
    model = bert.build("standard", SMALL)
    assert model.head.out.weight is model.embed.weight
    assert (
        len(model.roles())
        == len(list(model.parameters()))
        == len({id(p) for p in model.parameters()})
    )
    before = {
        name: p.clone() for name, p in model.named_parameters() if not name.startswith("head.")
    }
    model.with_head(bert.Spans, seed=3)
    assert {name for name, _ in model.named_parameters() if name.startswith("head.")} == {
        "head.out.weight",
        "head.out.bias",
    }
    assert all(
        torch.equal(p, before[name]) for name, p in model.named_parameters() if name in before
    )
    ids, _, _ = batch()
    assert [tuple(s.shape) for s in model(ids)] == [(3, 17), (3, 17)]
    model.with_head(bert.Masked, seed=4)
    assert model.head.out.weight is model.embed.weight and torch.equal(
        model.embed.weight, before["embed.weight"]
    )


def test_activations_may_be_bf16_over_fp32_weights():
    model = awake(bert.build({}, SMALL), std=0.05)
    ids, segments, lengths = batch()
    whole = model(ids, segments=segments, lengths=lengths)
    model.to("cpu", compute=torch.bfloat16)
    tape = model.tape(ids, lengths=lengths)
    half = model(ids, segments=segments, tape=tape)
    assert (
        all(stream.dtype == torch.bfloat16 for stream in tape.streams)
        and half.dtype == torch.float32
    )
    real = torch.arange(17) < lengths[:, None]
    assert 0 < (half - whole)[real].abs().max() < 0.05 * whole[real].abs().max()


@pytest.mark.parametrize(
    "plan",
    ["standard", "bypass", "resformer", dict(alpha="gate"), dict(alpha="global", where=(1,))],
)
def test_every_parameter_gets_a_gradient(plan):
    model = bert.build(plan, SMALL).train()
    ids, segments, lengths = batch()
    model(ids, segments=segments, lengths=lengths).square().mean().backward()
    assert [
        name for name, p in model.named_parameters() if p.grad is None or not p.grad.abs().any()
    ] == dead(model)


def dead(model):
    """A key's bias adds the same to all scores of a query: softmax cannot see it (its gradient is
    rounding, or nothing)."""
    return [
        name
        for name, p in model.named_parameters()
        if name.endswith("key.project.bias") and not p.grad.abs().any()
    ]
