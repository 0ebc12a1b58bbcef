"""Is every number of a plan the one that its equation has? By algebra on small tensors, without the
code of anybody else."""

import math
from functools import partial

import pytest
import torch

from minimal.analysis import attention_map
from minimal.encoder.bert import Masked
from minimal.kernels.dense import attention
from minimal.kernels.reference import by_definition
from minimal.model.cache import Cache
from minimal.model.config import SIZES
from minimal.model.count import count
from minimal.model.init import start_tensor
from minimal.model.layers import Embedding, rope_tables
from minimal.model.plan import LayerPlan, Plan
from minimal.model.residual import falling
from minimal.model.values import Layer, Own
from minimal.variants import build

IDS = torch.randint(97, (2, 11), generator=torch.Generator().manual_seed(3))


@torch.no_grad()
def awake(plan, size="smoke", **changes):
    """A plan with random numbers wherever it starts at zero or one."""
    model = build(plan, size, vocab=97, **changes)
    random = torch.Generator().manual_seed(1)
    for p in model.parameters():
        p.add_(torch.randn(p.shape, generator=random) * 0.2)
    return model


def passed(model):
    """What one pass over IDS left behind."""
    tape = model.tape(IDS)
    model(IDS, tape=tape)
    return tape


# ---- who sees whom -------------------------------------------------------------------------------


@pytest.mark.parametrize("S", range(2, 7))
def test_every_window_shows_what_it_says_up_to_the_one_that_hides_nothing(S):
    """A window of S - 2 hides one key of S, from one query: the last hears all but the first."""
    q, k, v = torch.randn(3, 1, S, 2, 8, generator=torch.Generator().manual_seed(S)).double()
    whole = attention(q, k, v)
    for window in range(1, S + 1):
        seen = attention(q, k, v, window=window)
        torch.testing.assert_close(seen, by_definition(q, k, v, window=window))
        assert torch.allclose(seen, whole) == (window >= S - 1), window


def test_a_window_longer_than_the_context_costs_what_the_context_costs():
    """FLOPs count the keys that there are."""
    wide, narrow = (
        count(build("standard", "smoke", vocab=97, windows=(window,) * SIZES["smoke"].layers))
        for window in (10 * SIZES["smoke"].context, 0)
    )
    assert wide["flops_per_token"] == narrow["flops_per_token"]


# ---- values --------------------------------------------------------------------------------------


def test_values_that_are_shared_have_the_product_of_all_gains():
    """A layer with a gain that reads a layer with a gain."""
    owner = LayerPlan(value=partial(Own, gain=("beta", 0.5)))
    readers = LayerPlan(value=partial(Layer, 0, gain=("beta", 3.0)))
    plan = Plan(lambda i, n: readers if i else owner)
    values = passed(build(plan, "smoke", vocab=97)).values
    gains = [float(values[at].gain) for at in range(len(values))]
    assert gains == [0.5] + [1.5] * (len(gains) - 1)


@torch.no_grad()
def test_skipv1_keeps_the_second_half_of_the_first_layers_heads():
    model = awake("skipv1")
    tape, half = passed(model), model.config.groups // 2
    first = tape.values[0].v
    assert not torch.allclose(first[:, :, :half], first[:, :, half:])
    for at in range(1, model.config.layers):
        heads = tape.values[at].v
        torch.testing.assert_close(heads[:, :, half:], first[:, :, half:], rtol=0, atol=0)
        torch.testing.assert_close(heads[:, :, :half], tape.rows_of(at), rtol=0, atol=0)


@torch.no_grad()
def test_move_gives_the_first_gate_to_the_own_values_and_the_others_to_its_slots():
    model = awake("move")
    tape = passed(model)
    for at, block in enumerate(model.blocks):
        source = block.attention.value
        h = block.first(tape.streams[at])
        gates = 2 * torch.sigmoid(source.router(h)).unflatten(-1, (model.config.groups, -1))
        rows = gates[..., 0, None] * source.x.through(h)
        for slot in range(source.slots):
            row = model.banks[source.bank](IDS)[:, :, slot]  # (B, T, G, D)
            rows = rows + gates[..., 1 + slot, None] * row
        torch.testing.assert_close(tape.rows_of(at), rows, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("plan, sends", [("row8", True), ("x0-detach", False)])
def test_values_of_a_detached_x0_send_no_gradient_to_the_embedding(plan, sends):
    """Through the values, that is: of what queries and keys send, nothing is asked here."""
    tape = (model := awake(plan)).tape(IDS)
    model(IDS, tape=tape)
    values = tape.values[model.config.layers - 1].dense()
    (grad,) = torch.autograd.grad(values.sum(), model.embed.weight, allow_unused=True)
    assert (grad is not None) == sends


# ---- starts --------------------------------------------------------------------------------------


def test_a_start_that_falls_ends_where_it_says():
    """nanochat's lambdas: 1.15 in the first layer, 1.05 in the last, in equal steps."""
    start = falling(1.15, 0.1)
    assert [start(i, 5) for i in range(5)] == pytest.approx([1.15, 1.125, 1.1, 1.075, 1.05])
    assert start(0, 1) == 1.15


def test_a_uniform_start_has_the_deviation_that_it_names():
    """U(-a, a) has the standard deviation a / sqrt 3."""
    random = torch.Generator().manual_seed(0)
    drawn = start_tensor(torch.empty(100_000), ("uniform", 0.5, "fan-in"), 16, random)
    assert drawn.std().item() == pytest.approx(0.125, rel=0.01)
    assert drawn.abs().max().item() == pytest.approx(math.sqrt(3) * 0.125, rel=0.01)


def test_nanochats_matrices_start_with_the_deviation_of_their_fan_in():
    model = build("standard", "nano", vocab=97, style="nanochat")
    matrix = model.blocks[0].attention.query.project.weight
    wanted = matrix.shape[1] ** -0.5
    assert matrix.std().item() == pytest.approx(wanted, rel=0.03)


# ---- scales --------------------------------------------------------------------------------------


@torch.no_grad()
def test_latent_attention_divides_by_the_root_of_all_features_that_are_compared():
    """Content and position both, sqrt(D + R): its map, by softmax of its own queries and keys."""
    model = awake("mla").eval()
    tape = passed(model)
    at = model.config.layers - 1
    q, k = tape.queries[at], tape.keys[at]  # (B, T, H, D + R) each
    assert q.shape[-1] == model.config.head + model.blocks[at].attention.read.turning
    assert q.shape[-1] > model.config.head
    scores = torch.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
    future = torch.ones(11, 11, dtype=torch.bool).triu(1)
    wanted = scores.masked_fill(future, -torch.inf).softmax(-1)
    torch.testing.assert_close(attention_map(model, tape, at), wanted, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_the_masked_head_of_an_encoder_is_a_matrix_gelu_and_a_norm_with_berts_eps():
    config = SIZES["smoke"].but(vocab=97, style="bert")
    embed = Embedding("embed", 97, (config.width,), "embed", "embed")
    head, random = Masked(config, embed), torch.Generator().manual_seed(0)
    for p in head.parameters():
        p.normal_(generator=random)
    head.mix.weight.mul_(1e-4), head.mix.bias.mul_(1e-4)  # so small that an eps of 1e-5 would show
    x = torch.randn(3, config.width, generator=random)
    u = x @ head.mix.weight.T + head.mix.bias
    u = u * (1 + torch.erf(u / math.sqrt(2))) / 2  # gelu, the exact one
    u = (u - u.mean(-1, keepdim=True)) / (u.var(-1, correction=0, keepdim=True) + 1e-12).sqrt()
    wanted = (u * head.norm.weight + head.norm.bias) @ embed.weight.T + head.out.bias
    torch.testing.assert_close(head(x), wanted, rtol=1e-4, atol=1e-3)


def test_half_of_moddeds_features_turn_from_one_radian_a_position_down_to_one_in_its_base():
    """Rates (1 / base) ** (i / (n - 1)) for i = 0 … n - 1, both ends included; then zeros."""
    cos, sin = rope_tables(torch.arange(3), 32, 1024.0, half=True)
    rates = [1024.0 ** (-i / 7) for i in range(8)] + [0.0] * 8
    angles = torch.tensor([[position * rate for rate in rates] for position in range(3)])
    torch.testing.assert_close(cos[:, 0], angles.cos())
    torch.testing.assert_close(sin[:, 0], angles.sin())


# ---- dropout, and doubles ------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["standard", "cross", "dva", "dva-naive", "mla", "bov"])
def test_attention_drops_in_training_whatever_the_plan(plan):
    """Each layer's way to read, on the inputs that it has in a pass without training."""
    model, given = awake(plan, dropout=0.5).eval(), {}
    for at, block in enumerate(model.blocks):
        note = lambda read, inputs, at=at: given.setdefault(at, inputs)
        block.attention.read.register_forward_pre_hook(note)
    model(IDS)
    for at, block in enumerate(model.blocks):
        calm = block.attention.read(*given[at])
        loud = block.attention.read.train()(*given[at])
        assert not torch.allclose(loud, calm, atol=1e-3), at


def test_a_model_in_doubles_answers_in_doubles_its_losses_and_gradients_too():
    model = awake("bov").double()
    half = awake("bov")
    for reduction in ("mean", "sum"):
        loss = model.loss(IDS, IDS.roll(-1, 1), reduction)
        assert loss.dtype == torch.float64 == model(IDS).dtype
        single = half.loss(IDS, IDS.roll(-1, 1), reduction)
        assert single.dtype == torch.float32
        torch.testing.assert_close(loss.float(), single, rtol=1e-5, atol=1e-5)
    mean = torch.autograd.grad(model.loss(IDS, IDS.roll(-1, 1)), model.head.weight)[0]
    whole = torch.autograd.grad(
        model.loss(IDS, IDS.roll(-1, 1), "sum") / IDS.numel(), model.head.weight
    )[0]
    torch.testing.assert_close(mean, whole, rtol=1e-12, atol=1e-14)


# ---- the cache -----------------------------------------------------------------------------------


@pytest.mark.parametrize("capacity, stay, moves", [(4, 2, True), (5, 3, False), (6, 3, True)])
def test_a_ring_moves_to_its_front_only_where_old_and_new_places_do_not_meet(capacity, stay, moves):
    cache = Cache(capacity, rings=True)
    rows = torch.arange(capacity).view(1, -1, 1).float()
    cache.kept["v"], cache.filled["v"], cache.stays["v"] = rows.clone(), capacity, stay
    if moves:
        cache.make_room()
        assert cache.kept["v"][0, :stay, 0].tolist() == list(range(capacity - stay, capacity))
        assert cache.filled["v"] == stay
    else:
        with pytest.raises(ValueError, match=f"room for {capacity} tokens, wanted {capacity + 1}"):
            cache.make_room()
        assert torch.equal(cache.kept["v"], rows)
