"""Claims of what came after the five sources that algebra or counting decides (notebook 13)."""

import pytest
import torch
import torch.nn.functional as F

from minimal.model import ngram
from minimal.model.count import count
from minimal.model.layers import rope_tables, rotate
from minimal.model.pieces import multi_latent
from minimal.model.plan import Plan, place
from minimal.variants import build, skeleton
from tests.lab.algebra import attention, draw

# ---- multi-head latent attention (DeepSeek-V2, 2405.04434) ---------------------------------------


def test_matrices_of_keys_and_values_walk_to_the_query_and_to_the_way_out():
    q, c = draw(7, 4, seed=0), draw(7, 3, seed=1)
    up_k, up_v, out = draw(4, 3, seed=2), draw(4, 3, seed=3), draw(5, 4, seed=4)
    scores = q @ (c @ up_k.T).T
    assert torch.allclose(scores, (q @ up_k) @ c.T)
    a = scores.softmax(-1)
    assert torch.allclose((a @ (c @ up_v.T)) @ out.T, (a @ c) @ (out @ up_v).T)


def test_a_rotation_of_the_key_stands_between_the_two_matrices():
    """Section 2.1.3: with rotary positions on W_UK c no one matrix at the query does for all s."""
    c, up = draw(1, 3, seed=0).expand(5, 3), draw(4, 3, seed=1)
    q = draw(1, 4, seed=2)
    cos, sin = rope_tables(torch.arange(5), 4, 100.0)
    keys = rotate((c @ up.T)[:, None], cos.to(c.dtype), sin.to(c.dtype))[:, 0]
    scores = (q @ keys.T)[0]
    absorbed = ((q @ up) @ c.T)[0]
    assert torch.allclose(scores[0], absorbed[0]), "at position 0 nothing turns"
    assert absorbed.std() < 1e-6 < scores.std(), "one latent, five places: the score must move"


def test_the_cache_is_that_of_two_and_a_quarter_groups():
    """Section 2.1.4: a latent of 4 heads' width and half a head for positions, at any size."""
    wide = Plan(place(**multi_latent(lambda config: 4 * config.head)))
    shape = dict(layers=2, width=1024, heads=8)
    bytes_of = lambda plan, **more: count(skeleton(plan, "d12", **shape, **more))[
        "cache_bytes_per_token"
    ]
    one_group = bytes_of("standard", groups=1)
    assert bytes_of(wide) == 2.25 * one_group


# ---- a gate on the way out (Gated Attention, 2505.06708) -----------------------------------------


def test_a_gate_on_the_way_out_is_dva_with_its_values_as_second_stream():
    a, v, g = attention(draw(7, 4), draw(7, 4, seed=1)), draw(7, 4, seed=2), draw(7, 4, seed=3)
    sigma = torch.sigmoid(g)
    assert torch.allclose(sigma * (a @ v), a @ v + (sigma - 1) * (a @ v))
    assert not torch.allclose(sigma * (a @ v), a @ (sigma * v), atol=0.1)


def test_without_the_gate_two_matrices_are_one_and_with_it_they_are_not():
    """Its first reason: W_V and W_O in a row are one map of low rank; the gate stands between."""
    a, h = attention(draw(9, 4), draw(9, 4, seed=1)), draw(9, 6, seed=2)
    w_v, w_o = draw(2, 6, seed=3), draw(6, 2, seed=4)
    sigma = torch.sigmoid(draw(9, 2, seed=5))
    ungated, gated = (a @ h @ w_v.T) @ w_o.T, (sigma * (a @ h @ w_v.T)) @ w_o.T
    mixed = a @ h
    best = lambda y: mixed @ torch.linalg.lstsq(mixed, y).solution
    assert torch.allclose(best(ungated), ungated, atol=1e-8)
    assert (best(gated) - gated).norm() > 0.05 * gated.norm()


# ---- Engram (2601.07372) -------------------------------------------------------------------------


def test_addresses_are_known_before_anything_is_computed():
    """Its reason for tables in host memory: which rows are read depends on ids alone."""
    one, other = (build("engram", "nano", seed=seed) for seed in (0, 1))
    ids = torch.randint(1024, (2, 20), generator=torch.Generator().manual_seed(0))
    read = []
    for model in (one, other):
        look = next(iter(model.streams[0].looks.values()))
        read.append(look.names(model.tape(ids)))
    assert torch.equal(*read) and read[0].shape == (2, 20, 8)


def test_several_hashes_seldom_collide_together():
    """2,000 pairs in 4,000 rows: under one hash 39 of 100 share a row, under all four hardly any
    two pairs do so."""
    pairs = torch.randint(32768, (2000, 2), generator=torch.Generator().manual_seed(0))
    pairs = pairs.unique(dim=0)
    slots = torch.stack([ngram.slots(pairs, 2, 4000, head)[:, 1] for head in range(4)], -1)
    for head in range(4):
        shared = torch.bincount(slots[:, head].long())[slots[:, head].long()] > 1
        assert shared.float().mean() == pytest.approx(0.39, abs=0.05)
    assert len(slots.unique(dim=0)) == len(pairs), "no two pairs share all four rows"


# ---- MUDDFormer (2502.12170) ---------------------------------------------------------------------


def test_weights_over_all_layers_cost_a_quarter_of_a_hundredth_of_the_parameters():
    """Abstract: "adding only 0.23% parameters", at 2.8B: 32 layers of 2,560, four ways of l + 2
    streams with W_1 (C x K) and W_2 (K x K), the last layer's one. By its public code .20 %."""
    hidden = [4 * streams for streams in range(2, 33)] + [33]
    added = sum(2560 * k + k * k for k in hidden)
    assert added / 2.8e9 == pytest.approx(0.0023, abs=0.0003)


def test_the_value_stream_alone_costs_less_still():
    parameters = lambda plan: count(skeleton(plan, "d24"))["parameters"]
    added = parameters("mudd") - parameters("standard")
    assert 0 < added / parameters("standard") < 0.001


def test_a_dynamic_mixture_can_be_resformer_s_stream_mix_and_standard_attention():
    """b picks the newest stream, or half of it and half of the first; no token has a say then."""
    model = build("mudd", "nano")
    source = model.blocks[3].attention.value
    tape = model.tape(torch.zeros(1, 5, dtype=torch.long))
    model(tape.ids, tape=tape)
    newest = F.one_hot(torch.tensor(3), 4).float().expand(1, 5, 4)
    assert torch.equal(source.shares(tape), newest)
    with torch.no_grad():
        source.fixed.value.copy_(torch.tensor([0.5, 0.0, 0.0, 0.5]))
    assert torch.equal(source.shares(tape)[0, 0], torch.tensor([0.5, 0.0, 0.0, 0.5]))


# ---- the key as the value (DeepSeek-V4), the own value taken out (XSA), SkipV1Former -------------


def read_back(x, w_q, w_k, first, back=True):
    """What is read of keys that are the values, of a text that begins at a place."""
    cos, sin = (y.to(x.dtype) for y in rope_tables(torch.arange(first, first + len(x)), 4, 100.0))
    q, k = (rotate((x @ w.T)[:, None], cos, sin)[:, 0] for w in (w_q, w_k))
    y = attention(q, k) @ k
    return rotate(y[:, None], cos, -sin)[:, 0] if back else y


def test_turned_back_what_is_read_of_keys_knows_distances_and_no_places():
    x, w_q, w_k = draw(7, 5, seed=0), draw(4, 5, seed=1), draw(4, 5, seed=2)
    here, there = (read_back(x, w_q, w_k, first) for first in (0, 9))
    assert torch.allclose(here, there, atol=1e-4)
    not_back = [read_back(x, w_q, w_k, first, back=False) for first in (0, 9)]
    assert not torch.allclose(*not_back, atol=0.1)
    # a value that is not turned would say the same at every distance
    assert not torch.allclose(here, attention(x @ w_q.T, x @ w_k.T) @ (x @ w_k.T), atol=0.1)


def test_whatever_a_token_says_to_itself_is_taken_out():
    y, v = draw(7, 4, seed=0), draw(7, 4, seed=1)
    u = v / v.norm(dim=-1, keepdim=True)
    left = lambda heard: heard - (heard * u).sum(-1, keepdim=True) * u
    assert torch.allclose(left(y + 3 * v), left(y))
    assert torch.allclose((left(y) * v).sum(-1), torch.zeros(7, dtype=y.dtype), atol=1e-9)
    assert not torch.allclose(left(y), y - v, atol=0.1), "not the own value: what lies along it"


@pytest.mark.parametrize("layers", [6, 12, 24])
def test_half_of_the_first_layers_values_saves_nearly_a_quarter_of_the_cache(layers):
    kept = {
        plan: count(skeleton(plan, "d12", layers=layers))["cache_bytes_per_token"]
        for plan in ("standard", "skipv1")
    }
    saved = 1 - kept["skipv1"] / kept["standard"]
    assert saved == pytest.approx(0.25 * (layers - 1) / layers)
    assert saved > 0.2


def test_skipv1formers_latent_cache_halves_the_first_layer_too():
    """Its Table 2, bytes a token: grouped heads as its rule says, the latent not."""
    layers = 24
    sizes = dict(layers=layers, width=1024, heads=16, groups=8)
    standard, skipv1 = (
        count(skeleton(plan, "d12", **sizes))["cache_bytes_per_token"]  # two bytes a number
        for plan in ("gqa", "skipv1")
    )
    assert 2 * standard == 98_304  # theirs take four
    assert 2 * skipv1 == 74_752
    latent, turned, number = 256, 32, 2  # d_c and d_R
    assert layers * (latent + turned) * number == 13_824
    halved = (latent // 2 + turned) * number
    assert layers * halved == 7_680  # as printed
    assert (latent + turned) * number + (layers - 1) * halved == 7_936  # the first layer whole
