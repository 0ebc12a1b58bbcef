"""After a pass that was cut off, by an error or by Ctrl-C, does the same cache go on as if nothing
had been? It does, to the last digit."""

import pytest
import torch

from minimal.generate import generate
from minimal.model import cache as caches
from minimal.variants import build
from tests.model.test_plans import EVERY_QUICKLY

SMALL = dict(layers=4, width=16, heads=2, vocab=97, context=64)
IDS = torch.randint(97, (2, 40), generator=torch.Generator().manual_seed(1))
CACHES = dict(grown=dict(rings=True), laid_out=dict(capacity=40, rings=True))


def awake(plan, **more):
    """A small model in which every part carries signal; the second layer from the end sees all."""
    model = build(plan, "nano", **(SMALL | dict(windows=(5, 3, 0, 7)) | more)).eval()
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=chance))
    return model


class CutOff(Exception):
    pass


def cut_off(*_):
    raise CutOff


def places(model):
    """Where a pass may be cut off: within each layer, when its rows have been made, and behind."""
    for block in model.blocks:
        if block.attention:
            yield block.attention.read.register_forward_pre_hook
        yield block.register_forward_hook


@pytest.mark.parametrize("how", CACHES)
@EVERY_QUICKLY
@torch.inference_mode()
def test_a_pass_that_is_cut_off_leaves_the_cache_as_it_was(plan, how, monkeypatch):
    monkeypatch.setattr(caches, "SLACK", 3)  # rings turn over at every other pass
    model = awake(plan, smear=True)
    whole, other = model.cache(**CACHES[how]), model.cache(**CACHES[how])
    at = 0
    for step, hook in enumerate((None, *places(model))):
        new = IDS[:, at : at + (6, 1, 3, 1)[step % 4]]
        at += new.shape[1]
        right = model(new, cache=whole)
        if hook:
            handle = hook(cut_off)
            wrong = (new, IDS[:, :2])[step % 2]  # what comes next need not be what was cut off
            with pytest.raises(CutOff):
                model(wrong, cache=other)
            handle.remove()
        assert torch.equal(model(new, cache=other), right)
    assert other.length == whole.length == at


@pytest.mark.parametrize("plan", ["standard", "bov", "resformer", "dva", "cross"])
@torch.inference_mode()
def test_a_step_for_which_there_is_no_room_leaves_the_cache_as_it_was(plan):
    model = awake(plan, windows=(3, 3, 3, 0), smear=True)
    whole, other = (model.cache(capacity=8, rings=True) for _ in range(2))
    for cache in (whole, other):
        model(IDS[:, :5], cache=cache)
    with pytest.raises(ValueError, match="room for 8 tokens, wanted 9"):
        model(IDS[:, 5:9], cache=other)
    right, got = (model(IDS[:, 5:7], cache=cache) for cache in (whole, other))
    assert torch.equal(got, right)


def test_a_text_that_was_cut_off_goes_on():
    model = awake("bov")
    cache = model.cache(40, rings=True)
    handle = model.blocks[2].register_forward_hook(cut_off)
    with pytest.raises(CutOff):
        generate(model, IDS[:, :9], 12, cache=cache)
    handle.remove()
    assert torch.equal(
        generate(model, IDS[:, :9], 12, cache=cache), generate(model, IDS[:, :9], 12)
    )


def test_another_models_cache_is_refused():
    mine, other = awake("standard"), awake("standard")
    cache = mine.cache(40)
    with torch.no_grad():
        mine(IDS[:1, :5], cache=cache)
    for rows, begun in ((1, cache), (2, cache.expand(2))):
        with pytest.raises(ValueError, match="another model's rows: give each model a cache"):
            other(IDS[:rows, 5:6], cache=begun)
