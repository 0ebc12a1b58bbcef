"""Do our systems compute what the public code computes? Our weights in their modules, in fp32.

MINIMAL_OFFICIAL names a folder with checkouts, each under its short name; one that is absent skips
its tests:
    nanochat                  RiddleHe/nanochat, branch research/bank_of_values, commit bee6dac
    DenseFormer               epfml/DenseFormer, commit c99a623
    modded-nanogpt            KellerJordan/modded-nanogpt, commit 06743860 (train_gpt_medium.py)
    Value-Residual-Learning   Zcchill/Value-Residual-Learning, commit 95652f6
    karpathy-nanochat         karpathy/nanochat, commit 92d63d4
    MUDDFormer                Caiyun-AI/MUDDFormer, commit fc067b2
    ExoFormer                 jon123boss/ExoFormer, commit 1f08c67
No line of theirs is kept here. With `pytest -s` every comparison prints its largest difference.
"""

import math
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from minimal.generate import context_windows
from minimal.model.count import count
from minimal.model.depth import Anchor
from minimal.model.residual import DenseFormer
from minimal.model.tape import Tape
from minimal.training.optim import Optimizer, carried, rows_by_name
from minimal.training.recipes import RECIPES
from minimal.variants import build, skeleton
from tests.model import official
from tests.model.official import (
    REGISTRY,
    Pair,
    bank_of_values,
    checkout,
    imported,
    their_optimizer,
    trainer,
)

pytestmark = pytest.mark.official

SHORT = dict(layers=6, width=48, heads=4, vocab=97, context=256)
SAME = pytest.mark.parametrize("plan", REGISTRY)


@pytest.fixture(autouse=True)
def one_thread(same_seeds_every_time):
    torch.set_num_threads(1)  # these models are too small for two


def batch(n, rows=2, vocab=97, seed=0):
    """Inputs and targets, (rows, n) each."""
    ids = torch.randint(vocab, (rows, n + 1), generator=torch.Generator().manual_seed(seed))
    return ids[:, :-1].contiguous(), ids[:, 1:].contiguous()


@torch.no_grad()
def awake(plan, **changes):
    """A model of ours in which nothing is zero or one: zero W_O would make all plans equal."""
    model = build(plan, "nano", **(SHORT | changes))
    g = torch.Generator().manual_seed(3)
    for name, p in model.named_parameters():
        if p.ndim < 2 or not p.any():
            p.copy_(
                0.3 + torch.rand(p.shape, generator=g)
                if p.ndim < 2
                else torch.randn(p.shape, generator=g) * p.shape[-1] ** -0.5
            )
        if name == "head.weight":
            p.normal_(0, 3 * p.shape[-1] ** -0.5, generator=g)  # logits near the softcap
    return model


def farthest(pairs):
    """The largest gap between our gradients and theirs, each in units of its tensor's largest
    entry."""
    gaps = {}
    for pair in pairs:
        mine, other = pair.ours.grad, pair.seen(pair.whole.grad)
        assert mine.abs().max() > 0, f"{pair.name} has no gradient"
        gaps[pair.name] = ((mine - other).abs().max() / mine.abs().max()).item()
    return max(gaps.values())


def agree(pairs, mine, other, loss, other_loss, what):
    """Logits, loss and every gradient."""
    assert mine.std() > 0.5, "logits this small would agree with anything"
    loss.backward()
    other_loss.backward()
    gap, slope = (mine - other).abs().max().item(), farthest(pairs)
    print(f"{what}: logits differ by {gap:.1e}, gradients by {slope:.1e} of their largest")
    assert gap < 1e-4 and abs(loss.item() - other_loss.item()) < 1e-5 and slope < 1e-3


def put(model, other):
    """Put every parameter there and fill the rest with what must not matter; returns the pairs."""
    pairs, rest = official.nanochat_pairs(model, other)
    for pair in pairs:
        pair.put()
    there = dict(other.named_parameters())
    dead = {name for name in rest if name.endswith("c_v.weight")}
    assert rest - dead <= {"smear_gate.weight", "smear_lambda"}
    with torch.no_grad():
        for name in rest:
            # a matrix that the paper says is dropped
            there[name].fill_(math.nan if name in dead else 0.0)
    return pairs


def nanochat_agrees(model, other, what):
    pairs = put(model, other)
    x, y = batch(149)
    agree(pairs, model(x), other(x), model.loss(x, y), other(x, y), what)


CASES = dict(
    plain={},
    smear=dict(smear=True),
    windows=dict(windows=(9, 0, 5, 9, 7, 0)),
    layers3=dict(layers=3),
    layers5=dict(layers=5),
    layers7=dict(layers=7),
    layers9=dict(layers=9),
)


@SAME
@pytest.mark.parametrize("case", CASES)
def test_logits_and_gradients_equal_bank_of_values(plan, case):
    """149 tokens, so that the short windows of 128 cut; "windows": of 9, 5 and 7 tokens besides
    the query's own. Selectors of layers that agree at even depths part at odd ones."""
    model = awake(plan, **CASES[case])
    other = bank_of_values(plan, model.config)
    if case == "windows":
        for block, window in zip(other.transformer.h, model.windows):
            block.attn.window_size = (window or -1, 0)
    nanochat_agrees(model, other, f"{plan} ({case})")


def test_full_nanochat_equals_the_fork_without_backout():
    """The fork branched off before backout; its lambdas, gates and smear are those of our plan."""
    model = awake("nanochat")
    with torch.no_grad():
        model.streams[1].weight.value.zero_()
    model.streams = model.streams[:1]
    nanochat_agrees(model, bank_of_values("nanochat", model.config), "nanochat (fork)")


@pytest.mark.parametrize("layers", [3, 5, 6, 7, 9])
def test_full_nanochat_equals_upstream(layers):
    code = official.imported(checkout("karpathy-nanochat"), "nanochat.gpt")
    model = awake("nanochat", layers=layers)
    nanochat_agrees(
        model, official.nanochat(code.GPTConfig, code.GPT, model.config), "nanochat (upstream)"
    )


def decoded(forward, ids, prompt):
    """Logits of a prompt, then of one token at a time."""
    pieces = [ids[:, :prompt], *ids[:, prompt:].split(1, dim=1)]
    return torch.cat([forward(piece) for piece in pieces], dim=1)


def their_decoding(other, config, ids, prompt):
    cache = official.nanochat_cache(config, len(ids), ids.shape[1])
    return decoded(lambda piece: other(piece, kv_cache=cache), ids, prompt)


@SAME
@pytest.mark.parametrize("layers", [5, 6])
@torch.no_grad()
def test_decoding_equals_their_cache(plan, layers):
    """170 tokens, smear on: short windows of 128 cut while single tokens come."""
    model = awake(plan, layers=layers, smear=True)
    other = bank_of_values(plan, model.config).eval()
    put(model, other)
    ids, _ = batch(170)
    cache = model.eval().cache(rings=True)
    mine = decoded(lambda piece: model(piece, cache=cache), ids, 140)
    theirs = their_decoding(other, model.config, ids, 140)
    assert mine.std() > 0.5 and (mine - theirs).abs().max() < 1e-4


@pytest.mark.parametrize("plan", ["standard", "bov", "row6", "vplus"])
@torch.no_grad()
def test_past_the_context_sliding_is_their_rule(plan):
    """Their long layers see `context` keys besides the query's own; ours do when they slide."""
    model = awake(plan)
    other = bank_of_values(plan, model.config).eval()
    put(model, other)
    ids, _ = batch(300)
    theirs = their_decoding(other, model.config, ids, 280)
    gaps = {}
    for name, windows in dict(slide=context_windows(model), whole=None).items():
        cache = model.eval().cache(rings=True)
        step = lambda piece, cache=cache, w=windows: model(piece, cache=cache, windows=w)
        gaps[name] = (decoded(step, ids, 280) - theirs).abs().amax((0, 2))  # (T,)
    within = model.config.context + 1
    assert gaps["slide"].max() < 1e-4 and gaps["whole"][:within].max() < 1e-4
    assert gaps["whole"][within:].max() > 1e-3, "without sliding the old tokens are still heard"


@SAME
@pytest.mark.parametrize("layers", [3, 5, 7, 9])
def test_flops_and_parameters_at_odd_depths_are_what_their_code_counts(plan, layers):
    same_counts(plan, skeleton(plan, "d12", layers=layers))


@SAME
@pytest.mark.parametrize("size", ["d12", "d24"])
def test_flops_and_parameters_are_what_their_code_counts(plan, size):
    same_counts(plan, skeleton(plan, size))


def same_counts(plan, model):
    """Ours = theirs - 25 for smear - the value matrices that their forward pass never calls."""
    other, counted = bank_of_values(plan, model.config, "meta"), count(model)
    pairs, rest = official.nanochat_pairs(model, other)
    dead = [
        p.numel()
        for name, p in other.named_parameters()
        if name in rest and name.endswith("c_v.weight")
    ]
    assert counted["flops_per_token"] == other.estimate_flops()
    assert counted["parameters"] == sum(p.numel() for p in other.parameters()) - 25 - sum(dead)


@pytest.mark.parametrize("context", [128, 256, 512, 1024, 2048, 4096])
@pytest.mark.parametrize("layers", [4, 6, 12])
def test_windows_are_theirs(context, layers):
    config = skeleton("standard", "nano", layers=layers, context=context).config
    other = [left for left, _ in bank_of_values("standard", config, "meta").window_sizes]
    assert config.window_sizes() == [0 if left >= context else left for left in other]


@SAME
def test_every_tensor_starts_in_the_same_way(plan):
    """Equal scalars; for the others equal size and shape of the distribution (1.8 for uniform, 3
    for normal). Smear is apart: theirs starts from whatever the memory held."""
    model = build(plan, "nano", **(SHORT | dict(width=96)))
    pairs, _ = official.nanochat_pairs(model, bank_of_values(plan, model.config))
    assert pairs
    for pair in pairs:
        mine, other = pair.ours.detach().flatten(), pair.seen(pair.whole).detach().flatten()
        if mine.numel() == 1 or not other.any():
            assert torch.equal(mine, other), pair.name
            continue
        loose, peaked = 3 / mine.numel() ** 0.5, lambda t: (t**4).mean() / (t**2).mean() ** 2
        assert mine.norm() == pytest.approx(other.norm().item(), rel=loose), pair.name
        assert peaked(mine) == pytest.approx(peaked(other).item(), abs=0.3 + 2 * loose), pair.name


@pytest.mark.parametrize("plan", ["bov", "bov-fixed", "bov-shared", "bov-keep", "bov-half"])
def test_their_init_aligns_a_table_as_ours_does(plan, monkeypatch):
    """Their tables are made from our embedding and from the W_V that the x0 plan of the same seed
    holds."""
    model, donor = build(plan, "nano", **SHORT), build("standard", "nano", **SHORT)
    other = bank_of_values(plan, model.config)
    for start in ("normal_", "uniform_", "zeros_"):
        monkeypatch.setattr(torch.nn.init, start, lambda tensor, *more, **how: tensor)
    for pair in official.nanochat_pairs(donor, other)[0]:
        pair.put()
    other.init_weights()
    tables = [
        pair for pair in official.nanochat_pairs(model, other)[0] if pair.name.startswith("banks")
    ]
    assert len(tables) == len(model.banks) > 0
    for pair in tables:
        assert torch.allclose(pair.ours, pair.seen(pair.whole), atol=1e-5), pair.name


@SAME
@pytest.mark.parametrize(
    "size,tokens,smaller", [("d12", 2**19, 1.0), ("d24", 2**20, 110_100_480 / 729_808_896)]
)
def test_every_parameter_learns_at_their_rate(plan, size, tokens, smaller):
    """Their decay goes by matrices and head of the standard model (d12 / d24 = 110.1M / 729.8M),
    whatever the plan."""
    model, (args, _) = skeleton(plan, size), trainer(1)
    other = bank_of_values(plan, model.config, "meta")
    rows = rows_by_name(
        carried("bov", model, tokens), model.roles(), dict(model.named_parameters())
    )
    optimizer = their_optimizer(other, args, tokens, smaller)
    groups = {id(p): group for group in optimizer.param_groups for p in group["params"]}
    for pair in official.nanochat_pairs(model, other)[0]:
        row, group = rows[pair.name], groups[id(pair.whole)]
        assert row.algorithm == group["kind"], pair.name
        assert row.lr == pytest.approx(group["lr"]) and row.decay == pytest.approx(
            group["weight_decay"]
        ), pair.name
        if row.algorithm == "adamw":
            assert (row.betas, row.eps) == (group["betas"], group["eps"]), pair.name
        else:
            assert row.betas[1] == group["beta2"] and row.cautious, pair.name


@pytest.mark.parametrize("steps", [3697, 3766, 3838, 7998, 95_367])
def test_schedules_are_theirs(steps):
    (args, schedule), recipe = trainer(steps), RECIPES["bov"]
    for step in range(0, steps, max(1, steps // 997)):
        assert recipe.lr(step, steps) == pytest.approx(schedule.get_lr_multiplier(step))
        assert recipe.momentum(step, steps) == pytest.approx(schedule.get_muon_momentum(step))
        assert args.weight_decay * recipe.muon_decay(step, steps) == pytest.approx(
            schedule.get_weight_decay(step)
        )


@pytest.mark.parametrize("decay, near", [(None, 0.02), (0.0, 2e-4)])
@pytest.mark.parametrize("plan", ["bov", "row13", "vplus"])
def test_five_steps_of_training_move_the_weights_as_theirs(plan, decay, near):
    """Equal weights, equal batches, their optimizer and schedules in fp32. What is left, some
    thousandths of the way, are single entries whose update is nearly zero, so that rounding decides
    whether they decay: without Muon's decay nothing of it is left."""
    steps, model = 100, awake(plan, smear=True)
    other = bank_of_values(plan, model.config)
    pairs, _ = official.nanochat_pairs(model, other)
    for pair in pairs:
        pair.put()
    start = {pair.name: pair.ours.detach().clone() for pair in pairs}
    args, schedule = trainer(steps)
    recipe = RECIPES["bov"].change(
        "matrix", "mlp", "gate", decay_by=()
    )  # d12's: at this width it would be 179
    if decay is not None:
        recipe = recipe.change("matrix", "mlp", "gate", decay=decay)
    optimizer, other_optimizer = (
        Optimizer(model, recipe, batch_tokens=2**19, steps=steps),
        their_optimizer(other, args),
    )
    for step in range(5):
        x, y = batch(40, seed=step)
        model.loss(x, y).backward()
        other(x, y).backward()
        for group in other_optimizer.param_groups:
            group["lr"] = group["initial_lr"] * schedule.get_lr_multiplier(step)
            if group["kind"] == "muon":
                group["momentum"] = schedule.get_muon_momentum(step)
                wanted = schedule.get_weight_decay(step)
                group["weight_decay"] = wanted if decay is None else decay
        with torch.compiler.set_stance("force_eager"), official.OnCpuInFp32():
            other_optimizer.step()
        other.zero_grad(set_to_none=True)
        optimizer.step(step)
    gaps = {}
    for pair in pairs:
        path, apart = (
            pair.ours.detach() - start[pair.name],
            pair.ours.detach() - pair.seen(pair.whole.detach()),
        )
        gaps[pair.name] = (apart.norm() / path.norm()).item()
    worst = max(gaps, key=gaps.get)
    print(f"{plan}: after five steps apart by {gaps[worst]:.1e} of the way ({worst})")
    assert gaps[worst] < near


def test_densely_weighted_averages_equal_denseformer():
    """Five blocks of random maps; every state enters the average before the next block reads it."""
    code = official.imported(checkout("DenseFormer"), "denseformer")
    g = torch.Generator().manual_seed(0)
    layers, maps = 5, torch.randn(5, 16, 16, generator=g) / 4
    ours = DenseFormer(config=SimpleNamespace(layers=layers))
    other = code.DWAModules(layers)
    for mine, alpha in zip(ours.mix, other.alphas, strict=True):
        with torch.no_grad():
            mine.value.copy_(torch.tensor(mine.start))
            assert torch.equal(mine.value, alpha.weight[0]), "both start as the identity"
            mine.value.normal_(generator=g)
            alpha.weight[0] = mine.value
    x = torch.randn(2, 7, 16, generator=g)

    def run(average):
        h = x
        for at in range(layers):
            h = average(h, at, torch.tanh(h @ maps[at]) + h)
        return h

    tape = Tape(ids=None, banks=None)
    tape.streams = [x]

    def mine(h, at, new):
        tape.streams.append(new)
        return ours.enter(new, at + 1, tape)

    other.init_accumulators(x)
    y, z = run(mine), run(lambda h, at, new: other(new, at))
    y.square().sum().backward()
    z.square().sum().backward()
    print(f"denseformer: outputs differ by {(y - z).abs().max():.1e} of {y.abs().max():.1f}")
    assert torch.allclose(y, z, atol=1e-5 * y.abs().max().item())
    for a, alpha in zip(ours.mix, other.alphas):
        apart = (a.value.grad - alpha.weight.grad[0]).abs().max()
        assert apart < 1e-4 * a.value.grad.abs().max()


MEDIUM = dict(
    layers=16,
    width=256,
    heads=2,
    vocab=256,
    context=512,
    style="modded",
    windows="LSSSLSSSSSSLSSSL",
)


def medium(n):
    """Our plan and their model with our weights; ids without their end-of-text, since we have no
    document mask. Whether attention reads the stream normed or not cannot show: q, k and v are
    normed by head right after their matrices."""
    code, model = official.modded(checkout("modded-nanogpt")), awake("modded", **MEDIUM)
    with official.OnCpuInFp32():
        other = code.GPT(vocab_size=256, num_layers=16, num_heads=2, model_dim=256, max_seq_len=n)
    pairs, rest = official.paired(model, other, official.modded_rules(model.streams[0].skips))
    assert not rest
    for pair in pairs:
        pair.put()
    return model, other.train(), pairs, *batch(n, rows=1, vocab=256)


def medium_agrees(model, other, pairs, x, y, blocks, windows, what):
    with official.OnCpuInFp32() as mode:
        other_loss = other(x[0], y[0], torch.tensor(blocks))
    logits = model(x, windows=windows)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    agree(pairs, logits[0], mode.logits, loss, other_loss, what)


def test_modded_medium_equals_ours_where_windows_see_everything():
    model, other, pairs, x, y = medium(256)
    medium_agrees(model, other, pairs, x, y, blocks=8, windows=[0] * 16, what="modded")


def test_modded_medium_has_its_long_windows_where_ours_are():
    """Their windows are whole blocks of 128; here their masks are replaced by ours, long ones of 40
    tokens and short ones of 20, so that only the order of long and short layers is at stake."""
    model, other, pairs, x, y = medium(128)

    def masks(ids, blocks):
        from torch.nn.attention.flex_attention import create_block_mask

        rule = lambda reach: lambda b, h, q, k: (k <= q) & (q - k <= reach)
        return [
            create_block_mask(rule(reach), None, None, len(ids), len(ids), device="cpu")
            for reach in (40, 20)
        ]

    other.create_blockmasks = masks
    sizes = skeleton("modded", "modded-medium").config.window_sizes()
    windows = [20 if size else 40 for size in sizes]
    medium_agrees(model, other, pairs, x, y, blocks=2, windows=windows, what="modded (windows)")


def test_modded_medium_starts_as_theirs():
    code, model = official.modded(checkout("modded-nanogpt")), build("modded", "nano", **MEDIUM)
    with official.OnCpuInFp32():
        other = code.GPT(vocab_size=256, num_layers=16, num_heads=2, model_dim=256, max_seq_len=128)
    for pair in official.paired(model, other, official.modded_rules(model.streams[0].skips))[0]:
        mine, there = pair.ours.detach(), pair.seen(pair.whole).detach()
        assert mine.norm() == pytest.approx(there.norm().item(), rel=0.02), pair.name
        assert mine.abs().max() == pytest.approx(there.abs().max().item(), rel=0.2), pair.name


RESFORMER = dict(
    standard="baseline",
    resformer="resformer",
    svformer="svformer",
    neutreno="NeuTRENO_lambda04",
    **{"resformer-neutreno": "NeuTRENO_resformer"},
)


@pytest.mark.parametrize("plan", RESFORMER)
@pytest.mark.parametrize("layers", [3, 6])
def test_llama_plans_equal_resformers_code(plan, layers):
    file = (
        checkout("Value-Residual-Learning")
        / "src"
        / "modeling"
        / f"modeling_llama_{RESFORMER[plan]}.py"
    )
    model = awake(plan, style="llama", windows="L", heads=3, hidden=112, layers=layers)
    other = official.Llama(file, model.config)
    pairs, rest = official.paired(model, other, official.LLAMA, official.turned(model.config))
    assert not rest
    for pair in pairs:
        pair.put()
    x, y = batch(60)
    logits = other(x)
    other_loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    agree(pairs, model(x), logits, model.loss(x, y), other_loss, f"llama {plan}")


def part_agrees(pairs, mine, theirs, what):
    """One part of a layer: what it puts out, and the gradients of its parameters."""
    push = torch.randn(mine.shape, generator=torch.Generator().manual_seed(3))
    (mine * push).sum().backward()
    (theirs * push).sum().backward()
    gap = (mine - theirs).abs().max().item()
    print(f"{what} differ by {gap:.1e}")
    assert gap < 1e-5 and mine.std() > 0.3
    for pair in pairs:
        assert pair.ours.grad.abs().max() > 0
        torch.testing.assert_close(pair.ours.grad, pair.seen(pair.whole.grad), atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("at", [1, 2, 5])
def test_the_dynamic_mixture_equals_muddformers_code(at):
    """Behind block at - 1 theirs mixes at + 1 streams; ours mixes them in front of block at."""
    file = checkout("MUDDFormer") / "pytorch" / "muddformer" / "modeling_muddformer.py"
    model = awake("mudd")
    source = model.blocks[at].attention.value
    other = official.mudd(file, 48, at - 1)
    fixed = torch.zeros_like(source.fixed.value).requires_grad_()
    pairs = [
        Pair("first", source.first.weight, other.w1.weight),
        Pair("second", source.second.weight, other.w2.weight),
        Pair("fixed", source.fixed.value, fixed),
    ]
    for pair in pairs:
        pair.put()
    g = torch.Generator().manual_seed(2)
    streams = [torch.randn(2, 9, 48, generator=g) for _ in range(at + 1)]
    tape = Tape(torch.zeros(2, 9, dtype=torch.long), {})
    tape.streams = streams
    mine = torch.einsum("btcn,btn->btc", torch.stack(streams, -1), source.shares(tape))
    theirs = other.layer_mix(streams, other(streams[-1]) + fixed)[0]
    part_agrees(pairs, mine, theirs, f"mudd, layer {at}: mixtures")


@pytest.mark.parametrize("at", [0, 2])
def test_the_anchored_value_equals_exoformers_code(at):
    """Theirs mixes queries, keys and gates, too; here the values alone. One token hears itself, so
    what their attention gives is the value."""
    public = imported(checkout("ExoFormer"), "model")
    model = awake("exo")
    config, source = model.config, model.blocks[at].attention.value
    other = public.OBPM(
        public.ModelConfig(
            vocab_size=97, n_layer=at + 1, n_head=config.heads, n_embd=config.width,
            rmsnorm_eps=torch.finfo(torch.float32).eps, residual_mode="scalar",
            query_res_enabled=False, key_res_enabled=False, gate_res_enabled=False,
            gated_attention_enabled=False, dynamic_mixing_enabled=False,
        )
    )  # fmt: skip
    theirs, width = other.transformer.layers[at].attn, config.width
    anchor = next(piece for piece in model.streams if isinstance(piece, Anchor))
    values = slice(2 * width, None)  # the rows behind those of queries and keys
    pairs = [
        Pair("own", source.x.project.weight, theirs.c_attn.weight, values),
        Pair("anchor", anchor.project.weight, other.anchor_proj.weight, values),
        Pair("a", source.a.value, theirs.lambda_v2),
        Pair("b", source.b.value, theirs.lambda_v1),
    ]
    for pair in pairs:
        pair.put()
    with torch.no_grad():
        theirs.c_proj.weight.copy_(torch.eye(width))
    g = torch.Generator().manual_seed(2)
    x0, h = (torch.randn(9, 1, width, generator=g) for _ in range(2))
    tape = Tape(torch.zeros(9, 1, dtype=torch.long), {})
    tape.streams = [x0]
    anchor.enter(x0, 0, tape)
    mine = source.rows(h, at, tape).flatten(2)
    mixed = theirs(h, v_anc=other._compute_decoupled_anchors(x0)[2])
    part_agrees(pairs, mine, mixed, f"exo, layer {at}: values")
