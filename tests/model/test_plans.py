"""One parametrised test over all plans: the same lines train, prefill and decode every system of
the course."""

import re
from functools import partial

import pytest
import torch

from minimal.model import attention
from minimal.model import cache as cache_module
from minimal.model.attend import in_one_call
from minimal.model.count import count
from minimal.model.layers import Coefficient
from minimal.model.pieces import V1, V1_LEARNED, below, keys_below
from minimal.model.plan import by_layer
from minimal.model.tape import Rows
from minimal.model.values import Heads, Input, Own, Table
from minimal.variants import PLANS, Plan, after_first, build, describe, place, skeleton
from tests.defined import as_defined

EVERY = pytest.mark.parametrize("plan", PLANS)
SHORT = dict(layers=6, width=48, heads=2, vocab=97, context=64)


def kinds(model):
    """What a model is made of: what values, queries and keys of a layer read, less the numbers of
    layers, and classes of modules."""
    words = {re.sub(r"\d+", "", part) for word in describe(model) for part in word.split(", ")}
    heads = f"{model.config.heads} heads of {model.config.groups} groups"
    return words | {type(part).__name__ for part in model.modules()} | {heads}


def one_of_each():
    """Plans that have every kind between them: where another place or number of the same kind
    takes the same way, as through torch.compile."""
    of = {plan: kinds(skeleton(plan, "nano", **SHORT)) for plan in PLANS}
    known, chosen = set(), []
    for plan in sorted(PLANS, key=lambda plan: -len(of[plan])):
        if new := of[plan] - known:
            known |= new
            chosen.append(plan)
    return chosen


OF_EACH = one_of_each()
ONE_OF_EACH = pytest.mark.parametrize("plan", OF_EACH)


def quickly(plan):
    """A plan of whose kinds `make check` has met all already is left to `make test`."""
    return plan if plan in OF_EACH else pytest.param(plan, marks=pytest.mark.slow)


EVERY_QUICKLY = pytest.mark.parametrize("plan", [*map(quickly, PLANS)])


@torch.no_grad()
def awake(plan, seed=3, **changes):
    """A small model whose zero-initialised parts are random, so that every path carries signal:
    zero W_O would make all plans equal, and coefficients at 0 or 1 would hide what they
    multiply."""
    model = build(plan, "nano", **(SHORT | changes))
    g = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, Coefficient):
            module.value.copy_(0.3 + torch.rand(module.value.shape, generator=g))
    for _name, p in model.named_parameters():
        if p.ndim > 1 and p.abs().sum() == 0:
            p.normal_(0, p.shape[-1] ** -0.5, generator=g)
    return model.eval()


def tokens(n, batch=2, seed=0, vocab=97):
    return torch.randint(vocab, (batch, n), generator=torch.Generator().manual_seed(seed))


def decode(model, ids, splits, **how):
    cache = model.cache(**how)
    out, at = [], 0
    for n in splits:
        out.append(model(ids[:, at : at + n], cache=cache))
        at += n
    return torch.cat(out, 1), cache


MIXED = [12, 1, 1, 5, 9]  # a prefill, single tokens, chunks


@EVERY
@torch.no_grad()
def test_decoding_equals_the_forward_pass(plan):
    """Any split into prefill, chunks and single tokens; windows of 9 on some layers, so that rings
    are full early: token by token until they have turned over, then in chunks. Where nothing is
    overwritten, every split takes the way of the mixed one."""
    model, ids = awake(plan, windows=(9, 0, 5, 9, 7, 0)), tokens(28)
    whole = model(ids)
    for rings, split in ((False, MIXED), (True, MIXED), (True, [1] * 19 + [3] * 3)):
        pieces, _ = decode(model, ids, split, rings=rings)
        assert torch.allclose(pieces, whole, atol=2e-4), (rings, (pieces - whole).abs().max())


@EVERY
@torch.no_grad()
def test_a_model_in_float64_says_the_same_with_more_digits(plan):
    """Nothing on the way falls back to float32 but the positions' tables."""
    model, ids = awake(plan), tokens(20)
    single = model(ids)
    double = model.double()(ids)
    assert double.dtype == torch.float64
    assert torch.allclose(double, single.double(), atol=2e-4), (double - single).abs().max()
    pieces, _ = decode(model, ids, [7, 1, 12])
    assert torch.allclose(pieces, double, atol=1e-6)


@EVERY_QUICKLY
@torch.no_grad()
def test_rings_in_buffers_that_slide_give_the_same_answers(plan, monkeypatch):
    monkeypatch.setattr(cache_module, "SLACK", 3)
    model, ids = awake(plan, windows=(9, 0, 5, 9, 7, 0)), tokens(28)
    whole = model(ids)
    pieces, cache = decode(model, ids, [2, 14, 1, 1, 1, 1, 1, 1, 1, 5], capacity=28, rings=True)
    assert torch.allclose(pieces, whole, atol=2e-4), (pieces - whole).abs().max()
    assert min(t.shape[1] for t in cache.kept.values()) <= 2 * 9  # a ring has room for two windows


VALUES_BELOW, KEYS_BELOW = dict(value=by_layer(below)), dict(key=by_layer(keys_below))


@torch.no_grad()
@pytest.mark.parametrize(
    "doors",
    [
        VALUES_BELOW,
        KEYS_BELOW,
        VALUES_BELOW | KEYS_BELOW,
        dict(value=by_layer(lambda i, n: partial(Heads, Own, i - 1))),
        VALUES_BELOW | dict(read=attention.Across),
        KEYS_BELOW | dict(read=attention.Across),
    ],
    ids=("values", "keys", "both", "half", "values_across", "keys_across"),
)
def test_a_chain_of_readers_reaches_back_to_its_owner(doors):
    """Each layer reads the one below, so the first layer's rows must last for the last's window."""
    plan = Plan(place(after_first, **doors))
    model, ids = awake(plan, windows=(3, 3, 0, 3, 9, 5)), tokens(28)
    whole = model(ids)
    for splits in (MIXED, [1] * 28):
        pieces, _ = decode(model, ids, splits, rings=True)
        assert torch.allclose(pieces, whole, atol=2e-4), (pieces - whole).abs().max()


@torch.no_grad()
def test_a_chain_of_values_leaves_the_rings_of_keys_between_as_short_as_they_were():
    model = awake(Plan(place(after_first, **VALUES_BELOW)), windows=(3, 3, 3, 3, 9, 5))
    assert model.reach(model.windows) == [9, 3, 3, 3, 9, 5]


@torch.no_grad()
def test_a_window_wider_than_the_capacity_is_told_so():
    model, ids = awake("standard", windows=(30,) * 6), tokens(20)
    with pytest.raises(ValueError, match="room for 12 tokens"):
        decode(model, ids, [10, 10], capacity=12, rings=True)


@EVERY
@torch.no_grad()
def test_a_cache_with_capacity_gives_the_same_answers(plan):
    model, ids = awake(plan), tokens(20)
    pieces, cache = decode(model, ids, [7, 1, 12], capacity=20)
    assert torch.allclose(pieces, model(ids), atol=2e-4)
    with pytest.raises(ValueError, match="room for 20 tokens"):
        model(ids, cache=cache)


@EVERY_QUICKLY
@torch.no_grad()
def test_a_cache_that_stores_the_rows_of_tables_gives_the_same_answers(plan):
    model, ids = awake(plan, windows=(9, 0, 5, 9, 7, 0)), tokens(28)
    whole = model(ids)
    pieces, cache = decode(model, ids, [12, 1, 1, 5, 9], rings=True, stored=True)
    assert torch.allclose(pieces, whole, atol=2e-4), (pieces - whole).abs().max()
    named, _ = decode(model, ids, [12, 16], rings=True)
    assert torch.allclose(pieces, named, atol=2e-4)
    # where it matters, something else is kept
    tables = [at for at, block in enumerate(model.blocks) if plain_table(block)]
    assert all(("v", at) in cache.kept for at in tables)


def plain_table(block):
    """Are this layer's values rows of a table and nothing beside them?"""
    return isinstance(getattr(block.attention, "value", None), Table)


@EVERY
def test_every_parameter_is_initialised_and_learns(plan):
    model, ids = awake(plan).train(), tokens(24)
    model.loss(ids[:, :-1], ids[:, 1:]).backward()
    roles = model.roles()
    assert set(roles) == {name for name, _ in model.named_parameters()}
    for name, p in model.named_parameters():
        assert p.isfinite().all(), name
        if p.requires_grad:
            assert p.grad is not None and p.grad.abs().sum() > 0, f"{name} gets no gradient"
        else:
            assert plan == "dva-random" and p.grad is None


@EVERY
@torch.no_grad()
def test_the_future_does_not_reach_back(plan):
    model, ids = awake(plan), tokens(24)
    changed = ids.clone()
    changed[:, 15] = (changed[:, 15] + 1) % 97
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :15], after[:, :15])
    assert not torch.allclose(before[:, 15:], after[:, 15:], atol=1e-3)


@EVERY_QUICKLY
@torch.no_grad()
def test_the_cache_holds_what_was_counted(plan):
    """Forty tokens of batch 2, storages counted once, fp32: the counted bytes per token, scaled."""
    model, counted = awake(plan), count(skeleton(plan, "nano", **SHORT))
    ids = tokens(40)
    _, cache = decode(model, ids, [25] + [1] * 15)
    id_bytes = 4 if "ids" in cache.kept else 0
    smear = 48 * 4 * 2 if model.smear else 0
    expected = 2 * 40 * (2 * (counted["cache_bytes_per_token"] - id_bytes) + id_bytes) + smear
    assert cache.bytes() == expected


def kinds_in(plan, layers):
    try:
        return kinds(skeleton(plan, "nano", **(SHORT | dict(layers=layers))))
    except ValueError:  # it cannot stand in so few
        return None


def fewest(plan):
    """Layers that hold every sort of it: two; or three, the first, the last and one between, if
    something happens between layers; or four."""
    between = len(skeleton(plan, "nano", **SHORT).streams) > 0
    for layers in (2 + between, 3):
        if kinds_in(plan, layers) == kinds_in(plan, 4):
            return layers
    return 4


@ONE_OF_EACH
@pytest.mark.slow
def test_the_plan_compiles_whole(plan):
    torch._dynamo.reset()
    model, ids = awake(plan, layers=fewest(plan)), tokens(12)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad():
        assert torch.allclose(compiled(ids), model(ids), atol=1e-5)


@pytest.mark.parametrize(
    "heads,groups,window,lengths",
    [(4, 4, 0, None), (4, 2, 0, None), (4, 1, 3, None), (2, 2, 3, [9, 5]), (2, 1, 0, [9, 5])],
)
def test_the_fused_route_equals_the_reference(heads, groups, window, lengths):
    g = torch.Generator().manual_seed(0)
    for t in (9, 3, 1):
        q = torch.randn(2, t, heads, 8, generator=g)
        k, v = torch.randn(2, 2, 9, groups, 8, generator=g)
        how = dict(window=window, lengths=torch.tensor(lengths) if lengths else None)
        value = Rows(v, torch.tensor(-0.7))
        assert torch.allclose(
            in_one_call(q, k, value, **how), as_defined(q, k, value, **how), atol=1e-5
        )


def test_a_name_may_twist_a_plan_and_place_it():
    from minimal.variants import describe, plan_named

    assert (
        describe(skeleton("row9@3,5", "tiny"))
        == ["own"] * 3 + ["γ·x0", "own", "γ·x0"] + ["own"] * 6
    )
    model = skeleton("dva/ffn/wo/many", "tiny")
    assert (
        model.config.heads == 2
        and model.blocks[0].mlp is not None
        and hasattr(model.blocks[0].attention.out, "weight")
    )
    for wrong in ("dva/fnn", "row9@x", "row9@3,,5", "nothing/ffn"):
        with pytest.raises(ValueError, match="cannot read|unknown plan"):
            plan_named(wrong)


@pytest.mark.parametrize(
    "name, words",
    [
        ("row9@12", "there are layers 0 to 11"),
        ("denseformer@3", "denseformer must change the last of them"),
        ("row6@0", "layer 0 would read layer 0"),
        ("cla@3", "layer 3 would read layer 10"),
        ("cross@0", "layer 0 would read layer -1"),
        ("resformer-nearest@3", "layer 3 would read layer 10"),
        ("share-k@0", "layer 0 would read layer 0"),
        ("identity@0", "layer 0 would read layer -1"),
    ],
)
def test_a_plan_in_layers_where_it_cannot_stand_is_refused(name, words):
    with pytest.raises(ValueError, match=words):
        skeleton(name, "tiny")


@pytest.mark.parametrize(
    "value, read",
    [(Table, attention.Identity), (Input, attention.Identity)],
)
def test_a_term_over_values_that_no_layer_makes_is_refused(value, read):
    plan = Plan(place(after_first, value=value, read=read))
    with pytest.raises(ValueError, match="layer 1 makes no values that another term could read"):
        build(plan, "nano", **SHORT)(tokens(4))


@torch.no_grad()
@pytest.mark.parametrize("rings", [False, True])
@pytest.mark.parametrize(
    "value, changes", [(V1, False), (V1_LEARNED, False), (Table, True)], ids=["V1", "γV1", "E"]
)
def test_neutreno_over_values_that_its_layer_does_not_make_is_served(value, changes, rings):
    """Decoded as it trains. Over V1 it adds strength (V1 - V1), nothing; over a table it adds."""
    model, plain = (
        awake(Plan(place(after_first, value=value, **read)), windows=(9, 0, 5, 9, 7, 0))
        for read in (dict(read=attention.NeuTRENO), {})
    )
    ids = tokens(28)
    whole = model(ids)
    pieces, _ = decode(model, ids, MIXED, rings=rings)
    assert torch.allclose(pieces, whole, atol=2e-4), (pieces - whole).abs().max()
    assert torch.allclose(whole, plain(ids), atol=1e-5) != changes


@EVERY_QUICKLY
def test_every_plan_reads_learns_and_decodes_in_half_precision(plan):
    stands_half_precision(plan, torch.bfloat16)


@ONE_OF_EACH
def test_every_kind_of_plan_does_so_in_float16_too(plan):
    stands_half_precision(plan, torch.float16)


def stands_half_precision(plan, dtype):
    """Activations in half precision, then the weights too; as near to fp32 as rounding allows."""
    low, ids = awake(plan), tokens(20)
    with torch.no_grad():
        right = low(ids)
        low.to("cpu", compute=dtype)
        got = low(ids)
        pieces, cache = decode(low, ids, [12, 1, 7])
    assert got.dtype == torch.float32 and got.isfinite().all()
    far = 0.1 if dtype == torch.bfloat16 else 0.02
    assert (got - right).norm() < far * right.norm()
    assert (pieces - got).norm() < far * right.norm()
    kept = {rows.dtype for name, rows in cache.kept.items() if name != "ids"}
    assert kept == {dtype}
    loss = low.train().loss(ids[:, :-1], ids[:, 1:])
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in low.parameters() if p.requires_grad)
    with torch.no_grad():
        whole = low.eval().to(dtype)(ids)
    assert (whole - right).norm() < far * right.norm()
