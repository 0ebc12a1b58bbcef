"""The identities by which the systems of the course hang together: T1 to T18, each with W_O awake.

At the start W_O is zero, so all plans give equal logits and any wiring passes: every test here
first gives W_O, and whatever else starts at zero, random numbers that are the same in both
models."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from minimal.model import attention
from minimal.model.layers import Coefficient, norm
from minimal.model.values import Gate, Layer, Own, Table
from minimal.training import optim
from minimal.variants import Plan, after_first, build, place, plan_named

SMALL = dict(layers=6, width=48, heads=4, vocab=97, context=64)


@torch.no_grad()
def wake(model):
    """Fill what starts at zero from each parameter's own name, so that equal parts of two models
    stay equal."""
    for name, p in model.named_parameters():
        if name.endswith("out.weight") or name.endswith("down.weight") or name == "head.weight":
            g = torch.Generator().manual_seed(sum(map(ord, name.replace(".value.x.", ".value."))))
            p.normal_(0, p.shape[-1] ** -0.5, generator=g)
    return model.eval()


def made(plan, **changes):
    return wake(build(plan, "nano", **(SMALL | changes)))


IDS = torch.randint(97, (2, 31), generator=torch.Generator().manual_seed(1))


@torch.no_grad()
def gap(one, two):
    return (one(IDS) - two(IDS)).abs().max().item()


@torch.no_grad()
def put(model, **values):
    """Set coefficients by the end of their names."""
    for end, value in values.items():
        found = [c for name, c in model.coefficients().items() if name.endswith(f".{end}")]
        assert found, f"no coefficient ends with {end}"
        for c in found:
            c.fill_(value)
    return model


def test_t1_a_bank_starts_as_the_x0_values_it_replaces():
    assert gap(made("bov"), made("row9")) < 1e-5
    assert gap(made("bov"), made("standard")) > 0.05, "and that is not the standard model"
    assert gap(made("bov-shared"), made("row9")) > 0.05, (
        "a shared table equals only its first layer's values (D22)"
    )


def test_a_bank_starts_so_where_values_are_normed_too():
    assert gap(made("bov", style="modded"), made("row9", style="modded")) < 1e-5
    assert gap(made("bov", style="modded"), made("standard", style="modded")) > 0.05


def test_zero_output_matrices_would_have_hidden_all_of_this():
    plain = [build(plan, "nano", **SMALL) for plan in ("standard", "bov", "svformer", "neutreno")]
    assert all(gap(plain[0], other) == 0 for other in plain[1:])


@pytest.mark.parametrize("plan", ["row11", "row13", "bov-keep"])
def test_t2_open_mixtures_start_as_the_baseline(plan):
    assert gap(made(plan), made("standard")) < 1e-5
    model = put(made(plan), **{"value.b": 0.5})
    assert gap(model, made("standard")) > 0.01


def test_t3_row_5_on_all_layers_but_the_first_is_svformer():
    everywhere = Plan(place(after_first, value=partial(Layer, 0)))
    assert gap(made(everywhere), made("svformer")) == 0
    assert gap(made("row5"), made("svformer")) > 0.05


def test_t4_row_10_on_all_layers_but_the_first_is_resformer():
    from minimal.variants import mixed_with

    assert (
        gap(
            made(Plan(place(after_first, value=mixed_with(partial(Layer, 0), 0.5, 0.5)))),
            made("resformer"),
        )
        == 0
    )


def test_t5_each_addition_at_zero_is_the_baseline():
    base = made("standard")
    assert gap(made(Plan(place(after_first, read=partial(attention.NeuTRENO, 0.0)))), base) < 1e-6
    assert gap(made("denseformer"), base) < 1e-5
    unet = made(plan_named("modded").but(line=place()))
    with torch.no_grad():
        for name, c in unet.coefficients().items():
            c.fill_(1.0 if ".residual." in name else 0.0)  # x lambda 1, x0 lambda 0, skips 0
    assert gap(unet, base) < 1e-6
    move = made("move")
    with torch.no_grad():
        move.banks["slots"].weight.zero_()
    assert gap(move, base) < 1e-5
    from minimal.model.values import Bypass, Mix

    assert gap(made(Plan(place(value=partial(Mix, Own, Bypass, 1.0, 0.0)))), base) == 0
    assert gap(made("bypass"), base) > 0.05


def test_t6_equation_3_is_equation_4():
    """One softmax over [K_n; K_n] with values [V_n; V_m] equals half the attention over V_n + V_m,
    causal mask and all."""
    from minimal.kernels.reference import visible
    from minimal.model.attend import in_one_call
    from minimal.model.tape import Rows
    from tests.defined import as_defined

    g = torch.Generator().manual_seed(0)
    q, k, v, w = torch.randn(4, 2, 9, 3, 8, generator=g)
    seen = visible(9, 9)
    twice = as_defined(
        q, torch.cat([k, k], 1), Rows(torch.cat([v, w], 1)), mask=torch.cat([seen, seen], -1)
    )
    assert torch.allclose(twice, in_one_call(q, k, Rows((v + w) / 2)), atol=1e-6)


def test_t7_dva_by_pairs_equals_dva_by_its_identity():
    assert gap(made("dva-naive"), made("dva")) < 1e-4
    silent = made("dva")
    with torch.no_grad():
        for block in silent.blocks:
            block.attention.read.query.weight.zero_()
    assert gap(made("dva"), silent) > 0.05


@pytest.mark.parametrize(
    "value",
    [
        Table,
        partial(Layer, 0),
        partial(Own, gain=("gamma", 0.7)),
        partial(Table, gain=("gamma", 0.7)),
    ],
)
def test_dynamic_values_come_from_any_source_gained_or_not(value):
    """And decoding them equals the forward pass."""
    plan = lambda read: Plan(place(after_first, value=value, read=read))
    model = made(plan(attention.Dynamic))
    assert gap(made(plan(attention.Pairs)), model) < 1e-4
    with torch.no_grad():
        cache = model.cache()
        pieces = torch.cat(
            [model(IDS[:, :20], cache=cache)]
            + [model(IDS[:, i : i + 1], cache=cache) for i in range(20, 31)],
            1,
        )
        assert torch.allclose(pieces, model(IDS), atol=1e-4)


def test_a_mask_is_heard_whatever_the_values_are_and_whoever_learns():
    from minimal.model.attend import attend, in_one_call
    from minimal.model.tape import Bank

    g = torch.Generator().manual_seed(0)
    q, k, table = (
        torch.randn(2, 6, 2, 8, generator=g),
        torch.randn(2, 6, 2, 8, generator=g),
        torch.randn(11, 2, 8, generator=g),
    )
    value, mask = (
        Bank(table, torch.randint(11, (2, 6), generator=g, dtype=torch.int32)),
        torch.eye(6, dtype=torch.bool),
    )
    with torch.no_grad():
        assert torch.allclose(attend(q, k, value, mask=mask), value.dense(), atol=1e-6)
    assert torch.allclose(in_one_call(q, k, value, mask=mask), value.dense(), atol=1e-6)


def test_dva_by_position_would_be_another_model():
    """The summary's steps 4 to 6 read r_j = qR_j * kR_j; then nothing is dynamic, and the output
    differs."""
    g = torch.Generator().manual_seed(0)
    q, k, v, qr, kr = torch.randn(5, 7, 8, generator=g)
    a = (
        (q @ k.T / math.sqrt(8))
        .masked_fill(torch.ones(7, 7).triu(1).bool(), -torch.inf)
        .softmax(-1)
    )
    pairs = torch.einsum("ts,tsd->td", a, v[None] + qr[:, None] * kr[None])
    assert torch.allclose(pairs, a @ v + qr * (a @ kr), atol=1e-6)
    assert (pairs - a @ (v + qr * kr)).abs().max() > 1


@pytest.mark.parametrize("limit,bound", [("clamp", 1.0), ("norm", 48**0.5)])
def test_the_modifier_can_be_bounded(limit, bound):
    """|r| = |qR * kR| cannot pass the square of the bound on either factor."""
    model = made(
        Plan(place(read=partial(attention.Dynamic, True, limit), mlp=False, output=False), heads=1)
    )
    with torch.no_grad():
        for block in model.blocks:
            block.attention.read.query.weight.mul_(100)
        tape, read = model.tape(IDS), model.blocks[3].attention.read
        model(IDS, tape=tape)
        h = norm(tape.streams[3])
        heads = (1, 48)
        bounded = attention.LIMITS[read.limit]
        r = bounded(read.query(h).unflatten(-1, heads)) * bounded(read.key(h).unflatten(-1, heads))
    assert r.abs().max() <= bound**2 + 1e-4


def test_t11_a_replaced_matrix_is_gone():
    for plan in ("svformer", "bov"):
        model = build(plan, "nano", **SMALL)
        last = {
            name
            for name, _ in model.named_parameters()
            if name.startswith("blocks.5.attention.value")
        }
        assert last == ({"blocks.5.attention.value.gain.value"} if plan == "bov" else set())


def test_t12_only_tokens_that_were_seen_move_their_rows():
    model = made("bov").train()
    optimizer = optim.Optimizer(model, "bov", batch_tokens=64, steps=100, scale="laptop")
    unseen, before = 96, model.banks["5"].weight.detach().clone()
    ids = IDS.clamp(max=95)
    model.loss(ids[:, :-1], ids[:, 1:]).backward()
    grad = model.banks["5"].weight.grad
    present = torch.zeros(97, dtype=torch.bool).index_fill(0, ids[:, :-1].unique(), True)
    touched = grad.flatten(1).abs().sum(1)[:97] > 0
    assert torch.equal(touched, present)
    optimizer.step(50)
    after = model.banks["5"].weight.detach()
    ratio = after[unseen] / before[unseen]
    assert (
        torch.allclose(ratio, ratio.flatten()[0].expand_as(ratio), atol=1e-5)
        and 0.99 < ratio.mean() < 1
    ), "an unseen row only decays"


def test_t14_gates_start_near_one_and_a_half():
    model = build("vplus", "d12", layers=2, vocab=500)
    gate = next(m for m in model.modules() if isinstance(m, Gate))
    opening = gate.opening(torch.randn(4, 50, 768, generator=torch.Generator().manual_seed(0)))
    assert 1.4 < opening.mean() < 1.6 and opening.min() > 0 and opening.max() < 3


def test_t15_groups_equal_to_heads_change_nothing():
    assert gap(made("standard", groups=4), made("standard")) == 0
    assert gap(made("standard", groups=2), made("standard")) > 0.01


def test_t16_norm_twice_is_norm_once():
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(norm(norm(x)), norm(x), atol=1e-6)


def test_smear_lets_the_previous_token_in():
    """With smear x0 is no function of the token: V1 and x0 W_V see the token before, a table by id
    does not (D1)."""
    ids = torch.tensor([[5, 9], [6, 9]])
    for smear, same in ((False, True), (True, False)):
        model = made("row9", smear=smear)
        if smear:
            with torch.no_grad():
                model.smear.weight.value.fill_(0.5)
        tape = model.tape(ids)
        with torch.no_grad():
            model(ids, tape=tape)
        v = tape.values[5].v[:, 1]
        assert torch.allclose(v[0], v[1], atol=1e-6) == same


def test_neutreno_with_the_printed_matrix_of_ones_breaks_causality():
    """Eq 8 prints J; (A - lambda J) V takes the sum over all positions, future ones too. With I
    nothing leaks."""
    g = torch.Generator().manual_seed(0)
    v1, v = torch.randn(2, 9, 8, generator=g)
    a = (
        torch.randn(9, 9, generator=g)
        .masked_fill(torch.ones(9, 9).triu(1).bool(), -torch.inf)
        .softmax(-1)
    )
    moved = v.clone()
    moved[8] += 1
    for matrix, leaks in ((torch.ones(9, 9), True), (torch.eye(9), False)):
        u = lambda v: (a - 0.4 * matrix) @ v + 0.4 * v1
        assert (not torch.allclose(u(v)[:8], u(moved)[:8], atol=1e-6)) == leaks


def test_resformer_with_neutreno_is_the_sum_that_the_code_computes():
    """.5 A (V1 + Vn) + .1 (V1 - Vn): the correction reads the mixed values."""
    model = made("resformer-neutreno")
    tape = model.tape(IDS)
    with torch.no_grad():
        model(IDS, tape=tape)
    from minimal.model.tape import Rows
    from tests.defined import as_defined

    v1, vn = tape.raw[0], tape.raw[3]
    scale = model.config.style.attention_scale(model.config.head)
    plain = as_defined(tape.queries[3], tape.keys[3], Rows(0.5 * (v1 + vn)), scale=scale)
    assert torch.allclose(tape.out[3], plain + 0.1 * (v1 - vn), atol=1e-5)


def test_cross_all_is_the_mean_of_all_values_so_far():
    """ResFormer's Eq 5 divides the n values up to layer n by n."""
    model = made("cross-all")
    tape = model.tape(IDS)
    with torch.no_grad():
        model(IDS, tape=tape)
    for n in range(2, 7):  # layer n, counted from one
        mean = sum(tape.raw[at] for at in range(n)) / n
        torch.testing.assert_close(tape.rows[n - 1], mean, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("layers, blocks", [(3, 2), (4, 3), (5, 3), (6, 4), (7, 4), (12, 7)])
def test_backout_takes_back_what_the_middle_block_left(layers, blocks):
    """nanochat keeps the stream behind block L // 2, counted from zero: so many blocks are done."""
    streams = torch.eye(layers + 1)  # a stream a row: after no block, after one, …
    tape = SimpleNamespace(streams=list(streams))
    backout = build("nanochat", "nano", **SMALL | dict(layers=layers)).streams[1]
    x = torch.zeros(layers + 1)
    with torch.no_grad():
        assert all(torch.equal(backout.enter(x, at, tape), x) for at in range(layers))
        assert torch.equal(backout.enter(x, layers, tape), -0.2 * streams[blocks])


def test_equal_names_start_equal_in_every_plan():
    """Paired seeds: two plans share every matrix that both have, so only the value path differs."""
    one, two = build("standard", "nano", **SMALL), build("vplus", "nano", **SMALL)
    theirs = dict(two.named_parameters())
    shared = [name for name, p in one.named_parameters() if name in theirs]
    assert len(shared) > 30 and all(
        torch.equal(dict(one.named_parameters())[n], theirs[n]) for n in shared
    )
    assert not torch.equal(
        build("standard", "nano", seed=1, **SMALL).embed.weight, one.embed.weight
    )


def test_a_forgotten_parameter_is_named():
    from minimal.model.init import init

    model = build("standard", "nano", **SMALL)
    model.extra = torch.nn.Linear(3, 3)
    with pytest.raises(RuntimeError, match="no init for extra.weight"):
        init(model)
    with pytest.raises(TypeError, match="has no role"):
        model.roles()


@pytest.mark.parametrize(
    "what,words",
    [
        (dict(plan="bovv"), "unknown plan 'bovv'"),
        (dict(size="huge"), "unknown size 'huge'"),
        (dict(heads=5), "does not split into 5 heads"),
        (dict(style="x"), "unknown style"),
        (dict(width=66), "do not split into pairs"),
        (dict(windows="sssl"), "pattern of S"),
        (dict(plan="skipv1", groups=1), "even number of groups"),
        (dict(plan="bypass", groups=1), "use groups = heads"),
    ],
)
def test_wrong_wishes_get_one_sentence(what, words):
    with pytest.raises(ValueError, match=words):
        build(what.pop("plan", "standard"), what.pop("size", "nano"), **what)


def test_the_controls_of_the_start_change_one_thing_each():
    plain, loud, large = (
        build("standard", "nano", style=style, **SMALL)
        for style in ("llama", "llama-loud", "llama-fan-in")
    )
    for (name, p), q, r in zip(plain.named_parameters(), loud.parameters(), large.parameters()):
        matrix = ".attention." in name or ".mlp." in name
        assert torch.equal(p, q) and torch.equal(p, r) == (not (matrix and p.ndim == 2)), name
        if not torch.equal(p, r):
            assert abs(r.std() * p.shape[1] ** 0.5 - 1) < 0.1, name
    sizes = [model.tape(IDS) for model in (plain, loud)]
    for model, tape in zip((plain, loud), sizes):
        model(IDS, tape=tape)
    quiet, unit = (tape.x0.square().mean().sqrt().item() for tape in sizes)
    assert abs(quiet / 0.02 - 1) < 0.1 and abs(unit - 1) < 1e-3


@pytest.mark.parametrize("style", ["llama", "gpt2", "modded"])
@pytest.mark.parametrize("plan", ["bov", "dva", "modded", "resformer-neutreno"])
@torch.no_grad()
def test_styles_carry_plans(style, plan):
    model = made(plan, style=style)
    for p in model.parameters():
        assert p.isfinite().all()
    cache = model.cache()
    pieces = torch.cat(
        [model(IDS[:, :20], cache=cache)]
        + [model(IDS[:, i : i + 1], cache=cache) for i in range(20, 31)],
        1,
    )
    assert torch.allclose(pieces, model(IDS), atol=2e-4)


def test_only_routers_and_what_writes_into_the_stream_start_at_zero():
    silent = {
        name
        for name, p in build("move", "nano", **SMALL).named_parameters()
        if p.ndim == 2 and not p.any()
    }
    assert {name.rpartition(".weight")[0].rpartition(".")[2] for name in silent} == {
        "router",
        "out",
        "down",
    }
    assert not any(isinstance(m, Coefficient) for m in build("standard", "nano", **SMALL).modules())
