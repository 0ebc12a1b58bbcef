"""Do rates, schedules and both algorithms do what their sources say, for every parameter?"""

import math
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from minimal.training import optim, rows
from minimal.training.recipes import RECIPES, ROLES, Row, Schedule, laptop, window
from minimal.variants import PLANS, build, skeleton


def nano(plan="standard", **changes):
    return build(
        plan, "nano", **(dict(layers=3, width=32, heads=2, vocab=64, context=16) | changes)
    )


def train(model, opt, steps, first=0):
    """Deterministic batches by step; returns the losses."""
    losses = []
    for step in range(first, first + steps):
        ids = torch.randint(60, (4, 17), generator=torch.Generator().manual_seed(step))
        loss = model.loss(ids[:, :-1], ids[:, 1:])
        loss.backward()
        opt.step(step)
        losses.append(loss.item())
    return losses


def weights(model):
    return {name: p.detach().clone() for name, p in model.named_parameters()}


def optimizer(model, recipe="bov", steps=20, scale="laptop", **more):
    scale = scale if isinstance(recipe, str) and RECIPES[recipe].steps else "paper"
    return optim.Optimizer(model, recipe, batch_tokens=2048, steps=steps, scale=scale, **more)


# ---- the numbers of the sources -----------------------------------------------------------------

TABLE = (
    # role: rate at d12, rate at d24, betas, decay at d12, decay at d24 (Bank of Values' code)
    dict(
        head=(0.008, 0.008, (0.8, 0.96), 0.01, 0.01),
        embed=(0.3, 0.3, (0.8, 0.995), 0.001, 0.001),
        table=(0.15, 0.15, (0.8, 0.995), 0.01, 0.01),
        smear=(0.2, 0.2, (0.8, 0.95), 0, 0),
        alpha=(0.005, 0.00707, (0.8, 0.95), 0.05, 0.05),
        beta=(0.5, 0.7071, (0.96, 0.95), 0, 0),
        matrix=(0.02, 0.02828, (None, 0.9), 0.28, 0.05974),
        mlp=(0.02, 0.02828, (None, 0.9), 0.28, 0.05974),
        gate=(0.02, 0.02828, (None, 0.9), 0.28, 0.05974),
        residual=(0.005, 0.00707, (0.8, 0.95), 0.05, 0.05),
        x0=(0.5, 0.7071, (0.96, 0.95), 0, 0),
    )
    | {"lambda": (0.005, 0.005, (0.8, 0.95), 0, 0)}
)


@pytest.mark.parametrize("role", TABLE)
def test_every_role_has_the_rates_of_bank_of_values_at_both_depths(role):
    at12, at24, betas, decay12, decay24 = TABLE[role]
    for size, batch, lr, decay in (("d12", 2**19, at12, decay12), ("d24", 2**20, at24, decay24)):
        for plan in ("standard", "svformer"):  # rates follow the size, never the plan
            row = optim.carried("bov", skeleton(plan, size), batch).rows[role]
            assert row.lr == pytest.approx(lr, rel=2e-3) and row.decay == pytest.approx(
                decay, rel=2e-4
            )
            assert row.betas == betas and row.eps == 1e-10


def test_a_laptop_run_keeps_the_rates_of_d12_and_shrinks_the_warm_up_with_the_run():
    paper, small = RECIPES["bov"], laptop(RECIPES["bov"])
    carried = optim.carried("bov", nano(), 2048, "laptop")
    assert carried.rows["matrix"].lr == 0.02 and carried.rows["embed"].lr == 0.3
    assert [small.lr(i, 3766) for i in (0, 20, 39, 1318, 3765)] == [
        paper.lr(i, 3766) for i in (0, 20, 39, 1318, 3765)
    ]
    assert small.lr(3, 300) == 1 and paper.lr(3, 300) == pytest.approx(4 / 40)
    # the momentum's warm-up, too, is a share: 400 of 3,766 steps are 32 of 300
    assert [small.momentum(i, 300) for i in (0, 16, 32)] == pytest.approx([0.85, 0.91, 0.97])
    short = RECIPES["bov-short"]  # the same shares, at the paper's rates
    assert (short.lr, short.momentum) == (small.lr, small.momentum) and short.rows == paper.rows
    modded = laptop(RECIPES["modded"]).momentum  # 300 of 5,960 are 15 of 298
    assert [modded(i, 298) for i in (0, 15)] == pytest.approx([0.85, 0.95])
    assert modded(14, 298) < 0.95
    assert optim.carried("bov", nano(), 2048).rows["matrix"].lr == pytest.approx(
        0.02 / 16
    )  # what it avoids


def test_bank_of_values_schedules_pass_through_the_known_points():
    lr, momentum, decay = RECIPES["bov"].lr, RECIPES["bov"].momentum, RECIPES["bov"].muon_decay
    assert [lr(i, 3766) for i in (0, 19, 39, 40, 1318)] == pytest.approx([1 / 40, 0.5, 1, 1, 1])
    assert (
        lr(1319, 3766) == pytest.approx(2447 / 2448 + 0.05 / 2448)
        and round(lr(3765, 3766), 4) == 0.0504
    )
    assert [momentum(i, 3766) for i in (0, 200, 400, 1318)] == pytest.approx(
        [0.85, 0.91, 0.97, 0.97]
    )
    assert momentum(3765, 3766) == pytest.approx(0.90, abs=1e-4) and momentum(
        2542, 3766
    ) == pytest.approx(0.935)
    assert [decay(i, 3766) for i in (0, 1883, 3766)] == pytest.approx([1, 0.5, 0])


def test_resformer_warms_up_for_120_of_10000_steps_and_ends_at_a_tenth():
    recipe = RECIPES["resformer"]
    rate = [recipe.rows["matrix"].lr * recipe.lr(i, 10_000) for i in (0, 60, 120, 5060, 10_000)]
    assert rate == pytest.approx([1e-7, 3.0005e-4, 6e-4, 3.3e-4, 6e-5])
    assert laptop(recipe).lr(3, 250) == 1 > laptop(recipe).lr(2, 250)
    row = recipe.rows["matrix"]
    assert (row.betas, row.eps, row.decay, recipe.clip) == ((0.9, 0.95), 1e-8, 0.1, 1.0)


def test_modded_holds_until_step_1788_and_then_falls_to_zero():
    recipe = RECIPES["modded"]
    assert [recipe.lr(i, 5960) for i in (0, 1788, 3874, 5960)] == pytest.approx([1, 1, 0.5, 0])
    assert recipe.lr(1789, 5960) < 1
    assert [recipe.momentum(i, 5960) for i in (0, 150, 300, 5959)] == pytest.approx(
        [0.85, 0.90, 0.95, 0.95]
    )
    rates = {
        role: recipe.rows[role].lr
        for role in ("head", "embed", "table", "lambda", "skip", "matrix")
    }
    assert rates == dict(head=1 / 320, embed=0.3, table=0.3, skip=0.015, matrix=0.025) | {
        "lambda": 0.015
    }
    assert recipe.rows["mlp"].decay == 2 * recipe.rows["matrix"].decay == 0.02


@pytest.mark.parametrize(
    "recipe, shaped",
    [("bov", True), ("course", True), ("modded", False), ("modded-constant", False)],
)
def test_the_shape_factor_reaches_the_decay_of_nanochat_and_not_that_of_modded(recipe, shaped):
    """A gradient of zero leaves nothing but the decay.

    nanochat multiplies it by the rate that carries the shape factor, modded-nanogpt
    (`eff_weight_decay = lr * wd * wd_mul`) by the bare rate.
    """
    model = nano()
    opt = optimizer(model, recipe, steps=1000)
    up = model.blocks[1].mlp.up.weight  # (128, 32): a shape factor of 2
    before, step = up.detach().clone(), 500
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    opt.step(step)

    row = opt.recipe.rows["mlp"]
    plain = row.lr * opt.recipe.lr(step, 1000) * row.decay * opt.recipe.muon_decay(step, 1000)
    lost = 1 - (up.detach() / before).double()
    assert lost.mean().item() == pytest.approx((2 if shaped else 1) * plain, rel=1e-3)


def test_the_window_grows_by_the_cubic_in_whole_blocks():
    assert [window(x * 5960 // 4, 5960) for x in range(5)] == [128, 1536, 1792, 2048, 3456]
    assert [window(x, 4, longest=128, block=16) for x in range(5)] == [16, 64, 64, 80, 128]


def test_bert_and_gpt2_have_their_recipes():
    bert, gpt2 = RECIPES["bert"], RECIPES["gpt2"]
    assert {(row.betas, row.eps) for row in bert.rows.values()} == {((0.9, 0.999), 1e-8)}
    assert (
        bert.rows["matrix"].decay == 0.01
        and bert.rows["norm"].decay == bert.rows["bias"].decay == 0
    )
    assert [bert.lr(i, 1000) for i in (0, 50, 100, 550, 1000)] == pytest.approx([0, 0.5, 1, 0.5, 0])
    assert [gpt2.lr(i, 1000) for i in (10, 20, 1000)] == pytest.approx([0.5, 1, 0.1])
    assert {RECIPES["gpt2-constant"].lr(i, 1000) for i in range(1000)} == {1.0}
    assert RECIPES["squad"].rows["matrix"].lr == 5e-5


def test_one_rate_moves_the_whole_table_along():
    bov = RECIPES["bov"].at(0.01)
    assert (
        bov.rows["matrix"].lr == 0.01
        and bov.rows["beta"].lr == 0.25
        and bov.rows["head"].lr == 0.004
    )
    equal = RECIPES["bov"].change("alpha", "beta", lr=0.05)
    assert equal.rows["alpha"].lr == equal.rows["beta"].lr == 0.05 and equal.rows["x0"].lr == 0.5
    assert optimizer(nano(), "gpt2", lr=3e-3).recipe.rows["embed"].lr == pytest.approx(3e-3)


# ---- Muon ---------------------------------------------------------------------------------------

SHAPES = pytest.mark.parametrize("rows, columns", [(32, 32), (96, 24), (24, 96), (2, 12)])


def stack(rows, columns, count=5, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(count, rows, columns, generator=g)


@SHAPES
def test_an_orthogonalised_matrix_keeps_its_directions_and_has_singular_values_near_one(
    rows, columns
):
    """Every singular value above a thousandth of the norm ends between 0.858 and 1.142."""
    x = stack(rows, columns)
    u, before, v = torch.linalg.svd(x, full_matrices=False)
    after = (u.mT @ optim.orthogonal(x) @ v.mT).diagonal(dim1=-2, dim2=-1)
    assert torch.allclose(u @ after.diag_embed() @ v, optim.orthogonal(x), atol=1e-4)
    seen = before > 1e-3 * optim.frobenius(x)[..., 0]
    assert seen.float().mean() > 0.9 and before.min() < 0.6 * before.max()
    assert after[seen].min() > 0.858 and after[seen].max() < 1.142


@SHAPES
def test_the_long_side_in_bf16_gives_what_the_short_side_gives_in_fp32(rows, columns):
    x = stack(rows, columns)
    long, short = optim.orthogonal(x.bfloat16()).float(), optim.orthogonal(x)
    assert (long - short).norm() < 0.12 * short.norm()


def by_hand(p, g, buffer, second, lr, momentum, decay):
    """Muon for one matrix in float64, entry by entry from the source's text."""
    rows, columns = p.shape
    buffer = momentum * buffer + (1 - momentum) * g
    u = (1 - momentum) * g + momentum * buffer
    u = u / (1.01 * u.square().sum().sqrt() + 1e-6)
    for a, b, c in (
        (8.15655, -22.48329, 15.87877),
        (4.04293, -2.80892, 0.500018),
        (3.89167, -2.77248, 0.506065),
        (3.28575, -2.36813, 0.464490),
        (2.34654, -1.70978, 0.423236),
    ):
        u = a * u + b * (u @ u.T @ u) + c * (u @ u.T @ u @ u.T @ u)
    size = u.square().sum().sqrt()
    v = (
        u.square().sum(1, keepdim=True) / columns
        if rows >= columns
        else u.square().sum(0, keepdim=True) / rows
    )
    second = 0.9 * second + 0.1 * v
    u = u / second.clamp(min=1e-10).sqrt()
    u = u * size / u.square().sum().sqrt()
    lr = lr * max(1, rows / columns) ** 0.5
    return p - lr * u - torch.where(u * p >= 0, lr * decay * p, 0 * p), buffer, second


@SHAPES
def test_muon_equals_the_formula_written_out(rows, columns):
    p, buffer = stack(rows, columns), torch.zeros(5, rows, columns)
    second = torch.zeros(5, rows, 1) if rows >= columns else torch.zeros(5, 1, columns)
    ours, oracle = (
        (p, buffer, second),
        [tuple(t[i].double() for t in (p, buffer, second)) for i in range(5)],
    )
    factor = max(1, rows / columns) ** 0.5
    for step in range(4):
        g = stack(rows, columns, seed=step + 1)
        ours = optim.muon(ours[0], g, *ours[1:], 0.1 * factor, 0.9, 0.3)
        oracle = [
            by_hand(p, g[i].double(), *state, 0.1, 0.9, 0.3) for i, (p, *state) in enumerate(oracle)
        ]
    for mine, theirs in zip(ours, zip(*oracle)):
        assert mine.shape == torch.stack(theirs).shape
        assert torch.allclose(mine.double(), torch.stack(theirs), atol=1e-4)


def test_the_optimizer_hands_muon_what_rows_and_schedules_say_at_this_step():
    """Late in a run, where rate, momentum and decay have left their peaks; all three shapes."""
    recipe = RECIPES["bov"].change("matrix", "mlp", lr=0.1, decay=2.0)
    model, step, steps = nano(), 700, 1000
    opt = optim.Optimizer(model, recipe, batch_tokens=2**19, steps=steps)
    decay = opt.recipe.rows["matrix"].decay * (1 + math.cos(math.pi * 0.7)) / 2
    multiplier, momentum = (
        0.05 + 0.95 * 300 / 650,
        0.97 - 0.07 * 300 / 600,
    )  # this short a run starts from step 400
    expected = {}
    for i, (name, p) in enumerate((n, p) for n, p in model.named_parameters() if "blocks" in n):
        p.grad = torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
        second = (
            torch.zeros(p.shape[0], 1) if p.shape[0] >= p.shape[1] else torch.zeros(1, p.shape[1])
        )
        old, grad, second = p.detach().double(), p.grad.double(), second.double()
        expected[name] = by_hand(
            old, grad, torch.zeros_like(old), second, 0.1 * multiplier, momentum, decay
        )[0]
    opt.step(step)
    assert {tuple(p.shape) for p in expected.values()} == {(32, 32), (128, 32), (32, 128)}
    for name, p in model.named_parameters():
        assert name not in expected or torch.allclose(p.double(), expected[name], atol=1e-5), name


def test_muon_is_a_pure_function():
    given = stack(8, 4), stack(8, 4, seed=1), stack(8, 4, seed=2), torch.rand(5, 8, 1)
    kept = [t.clone() for t in given]
    first = optim.muon(*given, 0.1, 0.95, 0.2)
    assert all(torch.equal(a, b) for a, b in zip(given, kept))
    assert all(torch.equal(a, b) for a, b in zip(first, optim.muon(*given, 0.1, 0.95, 0.2)))
    assert not torch.equal(first[0], given[0])


def test_decay_is_cautious():
    """Where the update moves an entry from zero there is no decay; else it is lr * decay * p."""
    p, g, buffer, second = (
        stack(8, 8),
        stack(8, 8, seed=1),
        torch.zeros(5, 8, 8),
        torch.zeros(5, 8, 1),
    )
    free, cautious, plain = (
        optim.muon(p, g, buffer, second, 0.1, 0.9, decay, cautious=careful)[0]
        for decay, careful in ((0, True), (0.5, True), (0.5, False))
    )
    inward = (p - free) * p >= 0
    assert 0 < inward.sum() < inward.numel()
    assert torch.equal(cautious[~inward], free[~inward])
    assert torch.allclose(cautious[inward], (free - 0.05 * p)[inward], atol=1e-6)
    assert torch.allclose(plain, free - 0.05 * p, atol=1e-6)


def test_without_the_second_moment_the_update_is_the_orthogonal_matrix_itself():
    p, g = stack(8, 8), stack(8, 8, seed=1)
    after, _, second = optim.muon(
        p, g, torch.zeros(5, 8, 8), torch.zeros(5, 8, 1), 0.1, 0.0, 0.0, beta2=None
    )
    assert torch.allclose(p - after, 0.1 * optim.orthogonal(g), atol=1e-6) and not second.any()


def test_a_matrix_without_gradient_signal_stays_finite_and_still():
    p = stack(8, 4)
    after, *_ = optim.muon(
        p, torch.zeros_like(p), torch.zeros_like(p), torch.zeros(5, 8, 1), 0.1, 0.95, 0.0
    )
    assert torch.equal(after, p)


def test_stacking_changes_speed_and_nothing_else(monkeypatch):
    ends, counts = [], []
    for limit in (1, 2**11, 2**30):
        monkeypatch.setitem(rows.STACK, "cpu", limit)
        model = nano()
        opt = optimizer(model)
        counts.append(len(opt.stacks))
        train(model, opt, 4)
        ends.append((weights(model), opt.state_dict()))
    assert counts == [
        18,
        12,
        3,
    ]  # 12 squares, 3 up, 3 down: one by one; squares in pairs; by shape alone
    for one, other in zip(ends, ends[1:]):
        for mine, theirs in zip(one, other):
            assert mine.keys() == theirs.keys()
            assert all(torch.allclose(mine[name], theirs[name], atol=1e-5) for name in mine)


def test_the_compiled_step_is_one_graph_for_all_stacks_and_all_rates():
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    plain, compiled = nano("vplus"), nano("vplus")
    opt = optimizer(plain)
    losses = train(plain, opt, 5)
    assert len({stack.buffer.shape[1:] for stack in opt.stacks}) == 4
    assert train(compiled, optimizer(compiled, backend=count), 5) == pytest.approx(losses, abs=1e-4)
    assert len(graphs) == 1


# ---- AdamW --------------------------------------------------------------------------------------


def adamw(p, g, m, v, t, lr, betas, eps, decay):
    p = p * (1 - lr * decay)
    m, v = m.lerp(g, 1 - betas[0]), v.lerp(g * g, 1 - betas[1])
    bias1, bias2 = 1 - betas[0] ** t, 1 - betas[1] ** t
    return p - lr / bias1 * m / ((v / bias2).sqrt() + eps), m, v


@pytest.mark.parametrize("eps", [1e-10, 1e-2])
def test_adamw_is_six_lines_of_arithmetic(eps):
    """In float64, so that order and the place of eps show."""
    p = torch.nn.Parameter(torch.randn(7, 3, dtype=torch.float64))
    row = Row("adamw", 0.1, 0.2, (0.8, 0.96), eps)
    part, oracle = (
        optim.Elementwise(dict(p=p), row),
        (p.detach().clone(), torch.zeros(7, 3).double(), torch.zeros(7, 3).double()),
    )
    for t in range(1, 6):
        p.grad = torch.randn(7, 3, dtype=torch.float64)
        rate = 0.1 / t
        oracle = adamw(oracle[0], p.grad, *oracle[1:], t, rate, (0.8, 0.96), eps, 0.2)
        part.step(rate)
        assert torch.allclose(p, oracle[0], rtol=1e-6, atol=1e-8)


def test_a_row_of_the_embedding_that_no_batch_has_seen_only_decays():
    model = nano()
    opt = optimizer(model, RECIPES["bov"].change("embed", lr=0.1, decay=0.5, lr_by=()))
    before = model.embed.weight.detach().clone()
    train(model, opt, 3)  # ids below 60
    shrunk = math.prod(1 - 0.1 * 0.5 * opt.recipe.lr(i, 20) for i in range(3))
    assert shrunk < 0.999
    assert torch.allclose(model.embed.weight[60:], before[60:] * shrunk, rtol=1e-5)
    assert not torch.allclose(model.embed.weight[:60], before[:60] * shrunk, rtol=1e-2)


def test_gradients_are_clipped_by_their_common_norm():
    """With a large eps AdamW follows a gradient's size; a clipped one's is always the same."""
    ends = []
    for scale in (1e-3, 10, 1000):
        model = nano()
        recipe = RECIPES["gpt2"].change(*ROLES, eps=1.0, decay=0.0)
        opt = optim.Optimizer(model, replace(recipe, lr=Schedule()), batch_tokens=2048, steps=5)
        for i, p in enumerate(model.parameters()):
            p.grad = scale * torch.randn(p.shape, generator=torch.Generator().manual_seed(i))
        opt.step(0)
        ends.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    start = torch.cat([p.detach().flatten() for p in nano().parameters()])
    assert torch.allclose(ends[1], ends[2], atol=1e-7)
    assert (ends[0] - start).norm() < 0.5 * (ends[1] - start).norm()


# ---- the set is closed --------------------------------------------------------------------------


@pytest.mark.parametrize("plan", PLANS)
def test_the_optimised_parameters_are_those_that_want_a_gradient(plan):
    model = nano(plan)
    wanted = {name for name, p in model.named_parameters() if p.requires_grad}
    for recipe in RECIPES:
        opt = optimizer(model, recipe)
        held = [name for part in (*opt.dense, *opt.stacks) for name in part.named]
        assert sorted(held) == sorted(wanted)


def test_frozen_parameters_are_left_alone():
    model = nano("bov")
    for block in model.blocks:
        block.requires_grad_(False)
    model.embed.requires_grad_(False)
    frozen = {name: p.clone() for name, p in model.named_parameters() if not p.requires_grad}
    opt = optimizer(model)
    train(model, opt, 2)
    assert not opt.stacks and not any("blocks" in key or "embed" in key for key in opt.state_dict())
    after = weights(model)
    assert all(torch.equal(after[name], value) for name, value in frozen.items())
    assert not torch.equal(after["head.weight"], nano("bov").head.weight)


def test_matrices_of_the_mlp_have_a_row_of_their_own():
    opt = optimizer(nano(), "modded")
    decay = {name: stack.row.decay for stack in opt.stacks for name in stack.named}
    assert (
        decay["blocks.1.mlp.up.weight"] == 0.02 and decay["blocks.1.attention.out.weight"] == 0.01
    )


def test_a_role_without_a_row_is_an_error_that_names_it():
    recipe = RECIPES["bov"]
    with pytest.raises(
        ValueError, match="head.weight has the role 'head', for which this recipe has no row"
    ):
        optimizer(
            nano(),
            replace(
                recipe, rows={role: row for role, row in recipe.rows.items() if role != "head"}
            ),
        )
    with pytest.raises(
        ValueError, match=r"Muon takes matrices, and .* has shape \(\): give 'beta' an AdamW row"
    ):
        optimizer(nano("bov"), recipe.change("beta", algorithm="muon", betas=(None, 0.9)))
    with pytest.raises(ValueError, match="there is no recipe 'sgd': choose one of bov"):
        optim.Optimizer(nano(), "sgd", batch_tokens=2048, steps=5)


def test_a_matrix_that_got_no_gradient_is_an_error_that_names_it():
    model = nano()
    opt = optimizer(model)
    model.loss(torch.arange(8)[None], torch.arange(8)[None]).backward()
    model.blocks[1].mlp.up.weight.grad = None
    with pytest.raises(ValueError, match="Muon wanted a gradient for blocks.1.mlp.up.weight"):
        opt.step(0)


def test_gradients_are_cleared_and_the_loss_falls():
    model = nano("bov")
    opt = optimizer(model, "course", steps=30)
    losses = []
    for step in range(30):
        ids = torch.arange(16)[None].expand(4, -1) + torch.arange(4)[:, None]
        loss = model.loss(ids, ids + 1)
        loss.backward()
        opt.step(step)
        losses.append(loss.item())
        assert all(p.grad is None for p in model.parameters())
    assert losses[-1] < 0.2 * losses[0]


# ---- stopping and going on ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "plan, recipe",
    [("vplus", "bov"), ("nanochat", "course"), ("gpt2", "gpt2"), ("modded", "modded")],
)
def test_a_run_that_was_saved_and_loaded_goes_on_bit_by_bit(plan, recipe, tmp_path):
    whole = nano(plan)
    straight = optimizer(whole, recipe)
    train(whole, straight, 3)
    save_file(straight.state_dict(), tmp_path / "optimizer.safetensors")
    saved = weights(whole)
    train(whole, straight, 3, first=3)

    again = nano(plan, seed=7)
    with torch.no_grad():
        for name, p in again.named_parameters():
            p.copy_(saved[name])
    resumed = optimizer(again, recipe)
    resumed.load_state_dict(load_file(tmp_path / "optimizer.safetensors"))
    train(again, resumed, 3, first=3)
    after, expected = weights(again), weights(whole)
    assert all(torch.equal(after[name], expected[name]) for name in expected)
    assert all(
        torch.equal(resumed.state_dict()[key], value)
        for key, value in straight.state_dict().items()
    )


def test_the_state_is_a_snapshot_and_does_not_depend_on_stacking(monkeypatch):
    model = nano()
    opt = optimizer(model)
    train(model, opt, 1)
    state = opt.state_dict()
    kept = {key: value.clone() for key, value in state.items()}
    train(model, opt, 1, first=1)
    assert all(torch.equal(state[key], kept[key]) for key in kept)
    monkeypatch.setitem(rows.STACK, "cpu", 1)
    other = optimizer(nano())
    other.load_state_dict(kept)
    assert all(torch.equal(other.state_dict()[key], kept[key]) for key in kept)


def test_the_state_of_another_model_is_refused():
    with pytest.raises(
        ValueError, match="belongs to another model or recipe: .* entries differ, first banks"
    ):
        optimizer(nano()).load_state_dict(optimizer(nano("bov")).state_dict())
    with pytest.raises(ValueError, match="belongs to another model or recipe"):
        optimizer(nano()).load_state_dict(optimizer(nano(width=64)).state_dict())
