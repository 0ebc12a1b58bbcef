"""Do the plans of the value path's frontier compute what their equations say? Number by number."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F

from minimal.model import ngram
from minimal.model.attention import Exclusive
from minimal.model.cache import Cache
from minimal.model.count import count
from minimal.model.depth import Upstream
from minimal.model.layers import norm, rope_tables, rotate
from minimal.model.ngram import Joined
from minimal.model.plan import Plan, place
from minimal.model.values import Input, Own
from minimal.variants import PLANS, build, skeleton
from tests.model.test_plans import SHORT, awake, decode, tokens


def passed(plan, n=9, **changes):
    """An awake model of a plan, and the tape of one pass over n tokens."""
    model, ids = awake(plan, **changes), tokens(n)
    tape = model.tape(ids)
    model(ids, tape=tape)
    return model, tape


def parameters(plan, size="tiny"):
    return sum(p.numel() for p in skeleton(plan, size).parameters())


# ---- V from an earlier stream -------------------------------------------------------------------
@torch.no_grad()
def test_upstream_by_definition():
    model, tape = passed("upstream-2")
    for at, block in enumerate(model.blocks):
        w = block.attention.value.project.weight
        v = norm(tape.streams[min(2, at)]) @ w.T
        torch.testing.assert_close(tape.values[at].v.flatten(2), v)


@torch.no_grad()
@pytest.mark.parametrize("j, end", [(0, Input), (6, Own)])
def test_the_ends_of_the_dial_are_x0_and_standard(j, end):
    ids = tokens(12)
    ours, theirs = (awake(Plan(place(value=source))) for source in (partial(Upstream, j), end))
    assert torch.equal(ours(ids), theirs(ids))


def test_the_dial_costs_nothing():
    counted = count(skeleton("standard", "tiny"))
    for j in range(1, 12):
        assert count(skeleton(f"upstream-{j}", "tiny")) == counted


@torch.no_grad()
def test_a_stream_above_the_layer_is_the_layers_own():
    model = awake("upstream-4@2,5")
    words = [block.attention.value.label() for block in model.blocks]
    assert words == ["own", "own", "own", "own", "own", "X4"]


# ---- exclusive self-attention -------------------------------------------------------------------
XSA = [name for name in PLANS if name.startswith("xsa")]


@torch.no_grad()
@pytest.mark.parametrize("plan", XSA)
def test_what_is_left_is_what_attention_said_less_the_share_along_the_own_value(plan):
    model, tape = passed(plan)
    for at, block in enumerate(model.blocks):
        read = block.attention.read
        value = tape.values[at]
        plain = super(Exclusive, read).forward(
            tape.queries[at], tape.keys[at], value, None, at, tape
        )
        v = value.dense()  # (B, T, H, D)
        along = (plain * v).sum(-1, keepdim=True) / (v * v).sum(-1, keepdim=True) * v
        share = torch.tanh(read.share()) if plan.endswith("learned") else 1.0
        torch.testing.assert_close(tape.out[at], plain - share * along, atol=1e-5, rtol=1e-4)
        assert not torch.allclose(tape.out[at], plain, atol=1e-3)


@torch.no_grad()
@pytest.mark.parametrize("plan", [name for name in XSA if not name.endswith("learned")])
def test_the_first_token_reads_nothing(plan):
    """All it can read is its own value, and all of that is taken out."""
    model, tape = passed(plan)
    for at in range(model.config.layers):
        first = tape.out[at][:, 0]
        assert first.abs().max() < 1e-5 * tape.values[at].dense().abs().max()


@torch.no_grad()
def test_a_learned_share_starts_at_nothing():
    ids = tokens(9)
    models = [build(plan, "nano", **SHORT) for plan in ("xsa-learned", "standard")]
    for model in models:
        for block in model.blocks:
            block.attention.out.weight.fill_(0.01)
    assert torch.equal(*(model(ids) for model in models))


@torch.no_grad()
def test_grouped_heads_take_out_the_value_that_they_share():
    model, tape = passed("xsa", heads=4, groups=2)
    v = tape.values[0].v.repeat_interleave(2, dim=2)
    angle = F.cosine_similarity(tape.out[0][:, 1:], v[:, 1:], dim=-1)
    assert angle.abs().max() < 1e-4


@torch.no_grad()
def test_rows_of_a_table_in_pages_are_taken_out_as_those_that_are_stored():
    model, ids = awake("xsa-bank"), tokens(20)
    named, _ = decode(model, ids, [12, 1, 1, 6])
    stored, _ = decode(model, ids, [12, 1, 1, 6], stored=True)
    torch.testing.assert_close(named, stored, atol=1e-4, rtol=1e-4)


def test_xsa_has_the_parameters_of_what_it_reads():
    values = {"": "standard", "-x0": "x0-v", "-bank": "bov-fixed", "-v1": "resformer"}
    for plan, other in values.items():
        assert parameters(f"xsa{plan}") == parameters(other)
        assert parameters(f"xsa{plan}-learned") == parameters(other) + 12 * 2  # a number a head


# ---- the key as the value -----------------------------------------------------------------------
@torch.no_grad()
@pytest.mark.parametrize("changes", [{}, dict(heads=4, groups=2)])
def test_a_turned_key_is_read_as_the_key_turned_by_its_distance(changes):
    """o_i = sum_j a_ij R_(i-j)^-1 norm(W h_j): the angle depends on the distance alone."""
    model, tape = passed("keys-turned", **changes)
    config, t = model.config, tape.ids.shape[1]
    at = 2
    a = model.blocks[at].attention
    bare = norm(tape.flat["k", at].unflatten(-1, (config.groups, config.head)))
    bare = bare.repeat_interleave(config.heads // config.groups, 2)  # (B, T, H, D)
    k = tape.keys[at].repeat_interleave(config.heads // config.groups, 2)
    scores = torch.einsum("bthd,bshd->bhts", tape.queries[at], k)
    scores = scores * config.style.attention_scale(config.head)
    seen = torch.ones(t, t).tril().bool()
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    for i in (0, 4, t - 1):
        away = torch.arange(t) - i  # of every key from this query: at or below 0
        cos, sin = rope_tables(away, config.head, config.style.rope_base)
        turned = rotate(bare, cos, sin)
        wanted = torch.einsum("bhs,bshd->bhd", weights[:, :, i], turned)
        torch.testing.assert_close(tape.out[at][:, i], wanted, atol=1e-5, rtol=1e-4)
    assert not hasattr(a.value, "project")


@torch.no_grad()
def test_a_plain_key_is_the_key_before_it_is_turned():
    model, tape = passed("keys-plain", heads=4, groups=2)
    for at in range(model.config.layers):
        v = tape.values[at].v
        k = tape.flat["k", at].unflatten(-1, (2, -1))
        torch.testing.assert_close(v, norm(k))
        cos, sin = tables_of(model, v.shape[1])
        torch.testing.assert_close(norm(rotate(v, cos, sin)), tape.keys[at], atol=1e-5, rtol=1e-4)


def tables_of(model, n):
    return rope_tables(torch.arange(n), model.config.head, model.config.style.rope_base)


@pytest.mark.parametrize("size", ["tiny", "d12"])
def test_a_turned_key_halves_the_cache_and_a_plain_one_only_the_matrices(size):
    counted = {
        plan: count(skeleton(plan, size)) for plan in ("standard", "keys-turned", "keys-plain")
    }
    config = skeleton("standard", size).config
    standard, turned, plain = counted.values()
    matrices = config.layers * config.width * config.groups * config.head
    for keys in (turned, plain):
        assert standard["parameters"] - keys["parameters"] == matrices
        assert standard["flops_per_token"] - keys["flops_per_token"] == 6 * matrices
    assert 2 * turned["cache_bytes_per_token"] == standard["cache_bytes_per_token"]
    assert plain["cache_bytes_per_token"] == standard["cache_bytes_per_token"]
    if size == "d12":
        assert (turned["cache_bytes_per_token"], matrices) == (18_432, 7_077_888)


def test_the_turned_key_has_the_cache_and_the_parameters_of_grouped_heads_half_as_many():
    for ours, theirs in [("keys-turned", "gqa"), ("keys-turned-gqa", "mqa")]:
        counted = [count(skeleton(plan, "tiny", heads=4)) for plan in (ours, theirs)]
        assert counted[0]["cache_bytes_per_token"] == counted[1]["cache_bytes_per_token"]
    counted = [count(skeleton(plan, "tiny", heads=4)) for plan in ("keys-turned", "gqa")]
    assert counted[0] == counted[1]


@torch.no_grad()
def test_a_turned_key_is_kept_once():
    model = awake("keys-turned")
    cache = Cache()
    model(tokens(7), cache=cache)
    assert set(cache.kept) == {("k", at) for at in range(model.config.layers)}


# ---- mixtures over depth ------------------------------------------------------------------------
@torch.no_grad()
@pytest.mark.parametrize("changes", [{}, dict(heads=4, groups=2)])
def test_depth_attention_by_definition(changes):
    model, tape = passed("depth-attention", **changes)
    config = model.config
    share = config.heads // config.groups
    for at, b, t, g in [(0, 0, 3, 0), (1, 1, 0, 1), (5, 0, 8, 1), (5, 1, 2, 0)]:
        own = tape.raw[at][b, t, g]
        q = tape.queries[at][b, t, g * share : (g + 1) * share].mean(0)
        scale = config.style.attention_scale(config.head)
        scores = torch.stack([scale * q @ tape.keys[j][b, t, g] for j in range(at + 1)])
        below = [tape.values[j].v[b, t, g] for j in range(at)]
        wanted = sum(a * v for a, v in zip(scores.softmax(0), [*below, own]))
        torch.testing.assert_close(tape.values[at].v[b, t, g], wanted, atol=1e-5, rtol=1e-4)


def test_depth_attention_costs_no_parameter_and_no_cache():
    assert count(skeleton("depth-attention", "tiny")) == count(skeleton("standard", "tiny"))


@torch.no_grad()
def test_streams_join_the_values_by_weights_of_the_token():
    model, tape = passed("mudd-stream")
    for at, block in enumerate(model.blocks[1:], start=1):
        source = block.attention.value
        x = tape.streams[at]
        hidden = F.gelu(norm(x) @ source.first.weight.T)
        mu = hidden @ source.second.weight.T
        chosen = [tape.streams[0], tape.streams[int(0.7 * at + 1e-9)], x]
        joined = sum(mu[..., i : i + 1] * chosen[i] for i in range(3))
        wanted = norm(x) @ source.project.weight.T + joined
        torch.testing.assert_close(tape.values[at].v.flatten(2), wanted, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_streams_start_as_standard_attention():
    ids = tokens(9)
    models = [build(plan, "nano", **SHORT) for plan in ("mudd-stream", "standard")]
    for model in models:
        for block in model.blocks:
            block.attention.out.weight.fill_(0.01)
    assert torch.equal(*(model(ids) for model in models))


def test_streams_beside_grouped_values_are_refused():
    with pytest.raises(ValueError, match="a stream is 768 wide.*use groups = heads"):
        skeleton("mudd-stream", "d12", groups=2)


@torch.no_grad()
def test_the_anchor_is_one_matrix_for_all_layers():
    model, tape = passed("exo")
    (anchor,) = model.streams
    groups = model.config.groups
    v = norm((norm(tape.x0) @ anchor.project.weight.T).unflatten(-1, (groups, -1)))
    for at, block in enumerate(model.blocks):
        mix = block.attention.value
        wanted = mix.a() * tape.raw[at] + mix.b() * v
        torch.testing.assert_close(tape.values[at].v, wanted)
        assert sum(p.numel() for p in mix.y.parameters()) == 0
    more = 64 * 64 + 12 * 2  # one matrix, two numbers a layer
    assert parameters("exo") == parameters("standard") + more


# ---- rows of n-grams that are joined ------------------------------------------------------------
@torch.no_grad()
def test_joined_rows_by_definition():
    """V and, through a gate each, the rows of the last 2 ids and of the last 3: E_t + sum_s w_s
    E_{t-s}, and nothing before the text begins."""
    model, tape = passed("xgram")
    at = 1
    outer = model.blocks[at].attention.value
    inner = outer.x
    h = norm(tape.streams[at])
    wanted = inner.x.through(h)
    for n, gate in ((2, inner), (3, outer)):
        source = gate.y
        named = ngram.slots(tape.ids, n, source.size)
        e = tape.banks[source.bank].weight[named.long()]  # (B, T, G, D)
        total = e.clone()
        for back, weight in enumerate(source.join()):
            shifted = torch.zeros_like(e)
            shifted[:, back:] = e[:, : e.shape[1] - back]
            total += weight * shifted
        opening = 2**0.5 * torch.sigmoid(h[..., :12] @ gate.gate.weight.T)
        wanted = wanted + opening[..., None] * total
    torch.testing.assert_close(tape.values[at].v, wanted, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_joined_rows_start_as_rows_of_n_grams():
    model = build("xgram", "nano", **SHORT)
    source = model.blocks[1].attention.value.y
    tape = model.tape(tokens(9))
    named = source.named(tape)
    assert torch.equal(source.rows(torch.zeros(2, 9, 1), 1, tape), model.banks[source.bank](named))


@torch.no_grad()
def test_joined_rows_alone_are_kept_as_values():
    """No id names such a row, so a layer that has nothing else keeps it."""
    plan = Plan(place(value=partial(Joined, 2)))
    model, ids = awake(plan), tokens(20)
    pieces, cache = decode(model, ids, [11, 1, 1, 7])
    torch.testing.assert_close(pieces, model(ids), atol=2e-4, rtol=1e-4)
    assert ("v", 0) in cache.kept


# ---- a gate that reads table and stream ---------------------------------------------------------
@torch.no_grad()
def test_a_gate_of_both_reads_six_features_of_each():
    model, tape = passed("vplus-both")
    at = 5
    gate = model.blocks[at].attention.value
    h = norm(tape.streams[at])
    y = tape.banks[gate.y.bank](tape.ids)  # (B, T, G, D)
    seen = torch.cat([h[..., :6], y[..., 0, :6]], -1)
    opening = 2 * torch.sigmoid(seen @ gate.gate.weight.T)[..., None]
    torch.testing.assert_close(tape.values[at].v, gate.x.through(h) + opening * y)
    assert parameters("vplus-both") == parameters("vplus")


# ---- a start against the own value --------------------------------------------------------------
@torch.no_grad()
@pytest.mark.parametrize("changes", [{}, dict(heads=4, groups=2)])
def test_a_start_against_the_own_value_is_minus_beta_on_the_diagonal(changes):
    """W_O W_V over many starts: -beta I in the mean."""
    products = []
    for seed in range(40):
        model = build("standard", "nano", seed, style="nanochat-against", **SHORT | changes)
        a = model.blocks[0].attention
        v = a.value.project.weight.unflatten(0, (model.config.groups, -1))
        v = v.repeat_interleave(model.config.heads // model.config.groups, 0).flatten(0, 1)
        products.append(a.out.weight @ v)
    mean = torch.stack(products).mean(0)
    torch.testing.assert_close(mean.diagonal().mean(), torch.tensor(-0.05), atol=1e-3, rtol=0)
    off = mean - torch.diag(mean.diagonal())
    assert off.abs().mean() < 0.05 * 0.2


def test_every_other_tensor_starts_as_in_nanochats_style():
    ours, theirs = (
        dict(build("standard", "nano", style=style, **SHORT).named_parameters())
        for style in ("nanochat-against", "nanochat")
    )
    differ = [name for name, p in ours.items() if not torch.equal(p, theirs[name])]
    assert differ == [f"blocks.{at}.attention.out.weight" for at in range(6)]
