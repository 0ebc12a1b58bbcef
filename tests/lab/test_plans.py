"""Do doors of our own begin as standard attention, learn apart or together, and decode?"""

import pytest
import torch

from evidence.lab import plans, studies
from minimal.model.cache import Cache
from minimal.variants import build

SIZE = dict(layers=4, width=16, heads=2)
EACH = pytest.mark.parametrize("name", plans.MIXES)


def model(plan, awake=False):
    made = build(plan, "smoke", 0, **SIZE)
    if awake:
        random = torch.Generator().manual_seed(1)
        for weight in made.parameters():
            weight.data += 0.2 * torch.randn(weight.shape, generator=random)
    return made.eval()


def some(count=2, length=9):
    return torch.randint(100, (count, length), generator=torch.Generator().manual_seed(0))


@EACH
def test_the_start_is_standard_attention(name):
    plain, ours = model("standard"), model(plans.MIXES[name])
    for made in (plain, ours):
        for block in made.blocks:
            block.attention.out.weight.data.fill_(0.03)
    assert torch.allclose(plain(some()), ours(some()), atol=1e-5)


@EACH
def test_what_is_learned_is_counted_once(name):
    more = {
        name: sum(w.numel() for w in model(plan).parameters()) for name, plan in plans.MIXES.items()
    }
    plain = sum(w.numel() for w in model("standard").parameters())
    each = dict(zip(plans.MIXES, (2, 6, 16, 48)))
    assert more[name] - plain == 4 * each[name]


@pytest.mark.parametrize("name", plans.OURS)
def test_decode_equals_forward(name):
    made, ids = model(plans.OURS[name], awake=True), some()
    whole = made(ids)
    cache = Cache()
    parts = [made(ids[:, :5], cache=cache)]
    parts += [made(ids[:, at : at + 1], cache=cache) for at in range(5, 9)]
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-4)


def test_apart_each_door_has_its_own_mixture_and_together_one():
    together = model(plans.MIXES["coef-shared"], awake=True).blocks[1].attention
    own = model(plans.MIXES["coef-apart"], awake=True).blocks[1].attention
    found = [[d.mixture.b().item() for d in (x.query, x.key, x.value)] for x in (together, own)]
    assert len(set(found[0])) == 1 and len(set(found[1])) == 3


def test_what_was_mixed_is_told_by_door_and_layer():
    mixed = studies.mixtures(model(plans.MIXES["depth-apart"], awake=True), some())["mixed"]
    assert set(mixed) == {"q", "k", "v"}
    for by_layer in mixed.values():
        assert [len(shares) for shares in by_layer] == [1, 2, 3, 4]
        assert all(sum(shares) == pytest.approx(1, abs=0.001) for shares in by_layer)
    weights = studies.mixtures(model(plans.MIXES["coef-apart"]), some())["mixed"]
    assert weights["v"] == [0.0] * 4 and studies.mixtures(model("standard"), some()) == {}


def test_what_passes_of_a_value_is_its_number_or_its_gradient():
    x = torch.randn(2, 3, requires_grad=True)
    passed = {way: passes(x) for way, passes in plans.PASSES.items()}
    assert torch.equal(passed["both"], x) and torch.equal(passed["forward"], x)
    assert not passed["gradient"].any() and not passed["neither"].any()
    assert torch.equal(passed["other"], x.flip(0))
    assert [way for way, y in passed.items() if y.requires_grad] == ["both", "gradient"]


def test_a_gain_at_its_largest_is_told_whichever_its_sign():
    paths = dict(names=["a.gain", "b.gain"], steps=[[1.0, 0.2], [-1.5, 0.1], [0.1, 0.0]])
    assert studies.largest_coefficients(dict(coefficients=paths)) == {
        "largest": {"a.gain": 1.5, "b.gain": 0.2}
    }


def test_the_detached_control_has_resformers_numbers_and_not_its_way_for_gradients():
    ids = torch.randint(256, (2, 12), generator=torch.Generator().manual_seed(0))
    logits, into_first = {}, {}
    for name in ("resformer", "resformer/detached", "standard"):
        model = build(name, "smoke", seed=3)
        torch.manual_seed(0)
        for block in model.blocks:  # as built, the way out is closed
            torch.nn.init.normal_(block.attention.out.weight, std=0.1)
        logits[name] = model(ids)
        model.loss(ids[:, :-1], ids[:, 1:]).backward()
        into_first[name] = model.blocks[0].attention.value.project.weight.grad
    assert torch.equal(logits["resformer"], logits["resformer/detached"])
    assert not torch.allclose(logits["resformer"], logits["standard"])
    assert not torch.allclose(into_first["resformer"], into_first["resformer/detached"])
    assert into_first["resformer/detached"].abs().sum() > 0, "its own layer still learns"
