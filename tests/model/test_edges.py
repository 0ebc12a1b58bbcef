"""Is every wrong input refused once, at the door, in one sentence that says what was wanted?"""

import pytest
import torch

from minimal.encoder import bert
from minimal.generate import generate, pick
from minimal.model.config import Config, size
from minimal.variants import build, plan_named, skeleton

SMALL = dict(layers=4, width=48, heads=2, vocab=97, context=64)
IDS = torch.randint(97, (2, 9), generator=torch.Generator().manual_seed(1))
NAN, INF = float("nan"), float("inf")


@pytest.fixture(scope="module")
def model():
    return build("standard", "nano", **SMALL)


# ---- sizes, plans -----------------------------------------------------------------------------
SIZES = [
    (dict(layers=0), "layers: wanted a whole number from 1, got 0"),
    (dict(layers=-1), "layers: wanted a whole number from 1, got -1"),
    (dict(layers=2.0), "layers: wanted a whole number from 1, got 2.0"),
    (dict(width=0), "width: wanted a whole number from 1, got 0"),
    (dict(width=64.5), "width: wanted a whole number from 1, got 64.5"),
    (dict(heads=0), "heads: wanted a whole number from 1, got 0"),
    (dict(context=0), "context: wanted a whole number from 1, got 0"),
    (dict(vocab=0), "vocab: wanted a whole number from 1, got 0"),
    (dict(vocab=-5), "vocab: wanted a whole number from 1, got -5"),
    (dict(vocab=97.5), "vocab: wanted a whole number from 1, got 97.5"),
    (dict(vocab="97"), "vocab: wanted a whole number from 1, got '97'"),
    (dict(groups=0), "groups: wanted a whole number from 1, got 0"),
    (dict(groups=-1), "groups: wanted a whole number from 1, got -1"),
    (dict(hidden=0), "hidden: wanted a whole number from 1, got 0"),
    (dict(hidden=-8), "hidden: wanted a whole number from 1, got -8"),
    (dict(dropout=1.0), "dropout: wanted a share from 0 to below 1, got 1.0"),
    (dict(dropout=NAN), "dropout: wanted a share from 0 to below 1, got nan"),
    (dict(windows=()), r"pattern of S \(short\).* got \(\)"),
    (dict(windows=""), "pattern of S .* got ''"),
    (dict(windows=None), "pattern of S .* got None"),
    (dict(windows=4), "pattern of S .* got 4"),
    (dict(windows=(-1,)), r"pattern of S .* got \(-1,\)"),
    (dict(windows=(2.5,)), r"pattern of S .* got \(2.5,\)"),
    (dict(layers=2, windows=[1, 2, 3]), r"a width for each of 2 layers, .* got 3: \[1, 2, 3\]"),
    (dict(layers=3, windows=(4, 0)), r"a width for each of 3 layers, .* got 2: \(4, 0\)"),
    (dict(style="x"), "unknown style 'x'"),
    (dict(style=None), "unknown style None"),
]


@pytest.mark.parametrize("changes, words", SIZES)
def test_a_size_that_cannot_be_is_refused(changes, words):
    for ask in (lambda: size("nano", **changes), lambda: build("standard", "nano", **changes)):
        with pytest.raises(ValueError, match=words):
            ask()


PLANS = [
    (lambda: plan_named("bov@"), "cannot read 'bov@'"),
    (lambda: plan_named("bov/"), "cannot read 'bov/'"),
    (lambda: build("gpt2", "nano", style="nanochat"), "plan gpt2 is built in style gpt2"),
    (lambda: skeleton("gpt2", "nano", style="llama"), "plan gpt2 is built in style gpt2"),
    (lambda: build("standard", "nano", style="bert"), "python -m minimal.encoder.pretrain"),
    (lambda: skeleton("bov", "bert-4l"), "python -m minimal.encoder.pretrain"),
    (lambda: bert.build(size="nano"), "an encoder reads both ways: wanted style bert"),
    (lambda: bert.build("gpt2", size="bert-4l"), "wanted style bert, got gpt2"),
]


@pytest.mark.parametrize("ask, words", PLANS)
def test_a_plan_that_cannot_be_is_refused(ask, words):
    with pytest.raises(ValueError, match=words):
        ask()


def test_the_unknown_style_is_told_which_styles_a_decoder_can_have():
    with pytest.raises(ValueError) as told:
        size("nano", style="gpt-2")
    offered, encoder = str(told.value).split(" (")
    assert "gpt2" in offered and "bert" not in offered
    assert "bert" in encoder and "minimal.encoder" in encoder


def test_widths_may_repeat_in_layers_that_they_divide():
    assert size("nano", layers=6, windows=(4, 0)).window_sizes() == [4, 0] * 3


@pytest.mark.parametrize("plan", ["dva", "dva-ffn", "dva-naive", "dva-random", "gated-bare"])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_plan_of_one_head_has_no_groups_to_share(plan, groups):
    config = skeleton(plan, "nano", heads=4, groups=groups).config
    assert (config.heads, config.groups) == (1, 1)
    model = build(plan, "nano", **SMALL | dict(heads=4, groups=groups))
    assert model(IDS).shape == (2, 9, 97)


def test_a_style_that_the_plan_has_anyway_may_be_named():
    assert build("gpt2", "nano", style="gpt2").config.style.name == "gpt2"
    assert build("gpt2", size("nano", style="nanochat")).config.style.name == "gpt2"


# ---- one pass ---------------------------------------------------------------------------------
PASSES = [
    # ids
    (dict(ids=IDS[0]), r"ids: wanted shape \(B, T\), got \(9,\)"),
    (dict(ids=IDS.float()), "ids: wanted whole numbers .*, got torch.float32"),
    (dict(ids=IDS.clamp(min=97)), "ids: wanted 0 to 96, got 97"),
    (dict(ids=IDS - 97), "ids: wanted 0 to 96, got -"),
    (dict(ids=IDS.tolist()), "ids: wanted a tensor, got list"),
    # windows
    (dict(windows=[-1] * 4), r"windows: wanted 4 whole numbers, .* got \[-1, -1, -1, -1\]"),
    (dict(windows=[4, 4]), r"windows: wanted 4 whole numbers, .* got \[4, 4\]"),
    (dict(windows=[4.5] * 4), "windows: wanted 4 whole numbers"),
    (dict(windows="L"), "windows: wanted 4 whole numbers"),
    # lengths
    (dict(lengths=torch.tensor([9, 10])), "lengths: wanted 0 to 9, got 10"),
    (dict(lengths=torch.tensor([-1, 9])), "lengths: wanted 0 to 9, got -1"),
    (dict(lengths=torch.tensor([9])), r"lengths: wanted shape \(2,\), one a row; got \(1,\)"),
    (dict(lengths=torch.tensor([9.0, 9.0])), "lengths: wanted whole numbers"),
    (dict(lengths=[9, 9]), "lengths: wanted a tensor, got list"),
]


@pytest.mark.parametrize("how, words", PASSES)
def test_a_pass_that_cannot_be_is_refused(model, how, words):
    how = dict(how)
    ids = how.pop("ids", IDS)
    with torch.no_grad(), pytest.raises(ValueError, match=words):
        model(ids, **how)
    with pytest.raises(ValueError, match=words):
        model.loss(ids, IDS, **how)


@torch.no_grad()
@pytest.mark.parametrize("plan", ["standard", "bov"])
@pytest.mark.parametrize("capacity", [None, 20])
def test_a_cache_of_another_batch_is_refused(plan, capacity):
    model = build(plan, "nano", **SMALL)
    cache = model.cache(capacity)
    model(IDS, cache=cache)
    with pytest.raises(ValueError, match="the cache holds 2 rows, and ids have 1: expand it"):
        model(IDS[:1], cache=cache)


@torch.no_grad()
@pytest.mark.parametrize("how", [{}, dict(capacity=20), dict(rings=True)], ids=str)
def test_a_cache_does_not_know_padding(model, how):
    """A row of padding would be kept as one of text, and be read as such by the next pass."""
    cache, lengths = model.cache(**how), torch.tensor([9, 6])
    with pytest.raises(ValueError, match="lengths: wanted a pass without a cache, got one with"):
        model(IDS, cache=cache, lengths=lengths)
    model(IDS, cache=cache)
    with pytest.raises(ValueError, match="lengths: wanted a pass without a cache, got one with"):
        model(IDS, cache=cache, lengths=lengths)
    assert cache.length == 9


@torch.no_grad()
@pytest.mark.parametrize("name", ["cache", "windows", "lengths"])
def test_what_a_tape_was_to_be_made_with_is_refused_beside_it(model, name):
    given = dict(cache=model.cache(), windows=[1] * 4, lengths=torch.tensor([9, 6]))
    for ask in (model, lambda ids, **how: model.loss(ids, IDS, **how)):
        with pytest.raises(ValueError, match=f"wanted a tape alone, got {name} beside it"):
            ask(IDS, tape=model.tape(IDS), **{name: given[name]})


def test_a_tape_holds_one_pass(model):
    used = model.tape(IDS)
    model(IDS, tape=used)
    for ask in (model, model.hidden, lambda ids, tape: model.loss(ids, IDS, tape=tape)):
        with pytest.raises(ValueError, match="wanted a blank tape, got one with a pass on it"):
            ask(IDS, tape=used)


TARGETS = [
    (IDS.clamp(min=97), "targets: wanted numbers below 97, got 97"),
    (IDS[:, 1:], r"targets: wanted shape \(2, 9\), that of ids; got \(2, 8\)"),
    (IDS.float(), "targets: wanted whole numbers"),
    (torch.full_like(IDS, -1), "targets: wanted one at least that counts"),
]


@pytest.mark.parametrize("targets, words", TARGETS)
def test_targets_that_cannot_be_are_refused(model, targets, words):
    with pytest.raises(ValueError, match=words):
        model.loss(IDS, targets)
    with torch.no_grad(), pytest.raises(ValueError, match=words):
        model.loss(IDS, targets)


@torch.no_grad()
def test_what_is_empty_or_at_the_edge_still_runs(model):
    assert model(IDS[:, :0]).shape == (2, 0, 97) and model(IDS[:0]).shape == (0, 9, 97)
    model(IDS.clamp(min=96))
    model(IDS, windows=[0, 1, 2, 3], lengths=torch.tensor([0, 9]))
    assert model.loss(IDS, torch.full_like(IDS, -1), reduction="none").sum() == 0
    assert build("standard", "nano", layers=1, context=1, vocab=1)(IDS * 0).shape == (2, 9, 1)


def test_nothing_is_looked_at_on_other_devices():
    """A look at a number on a GPU would wait for it; meta tensors have no numbers at all."""
    counted = skeleton("standard", "nano", **SMALL)
    ids = torch.full((2, 9), 10**6, device="meta")
    assert counted(ids).shape == (2, 9, 97)
    assert counted.loss(ids, ids).shape == ()


def test_a_config_survives_json():
    import json
    from dataclasses import asdict

    for name in ("nano", "bert-4l", "modded-medium"):
        for windows in ("L", (9, 0)):
            config = size(name, windows=windows)
            assert Config(**json.loads(json.dumps(asdict(config)))) == config


# ---- sampling ---------------------------------------------------------------------------------
Z = torch.zeros(1, 5)

SAMPLES = [
    (lambda: pick(Z, temperature=NAN), "sampling wants temperature .* got nan"),
    (lambda: pick(Z, temperature="hot"), "sampling wants temperature .* got hot"),
    (lambda: pick(Z, temperature=1e-40), "sampling wants temperature .* got 1e-40"),
    (lambda: pick(Z, top_k=1.5), "sampling wants .* top_k"),
    (lambda: pick(Z + NAN), "logits: wanted numbers, got nan"),
    (lambda: pick(Z + NAN, temperature=0), "logits: wanted numbers, got nan"),
    (lambda: pick(Z + INF), "logits: wanted numbers, got inf"),
    (lambda: pick(Z - INF), "logits: wanted numbers, got -inf"),
]


@pytest.mark.parametrize("ask, words", SAMPLES)
def test_a_draw_that_cannot_be_is_refused(ask, words):
    with pytest.raises(ValueError, match=words):
        ask()


@pytest.mark.parametrize("tokens", [-3, 2.5, None])
def test_tokens_are_a_whole_number(model, tokens):
    with pytest.raises(ValueError, match=f"tokens: wanted a whole number from 0, got {tokens}"):
        generate(model, IDS, tokens)


def test_generation_looks_at_its_text(model):
    with pytest.raises(ValueError, match=r"ids: wanted shape \(B, T\)"):
        generate(model, IDS[0], 3)
    assert torch.equal(generate(model, IDS, 0), IDS)
