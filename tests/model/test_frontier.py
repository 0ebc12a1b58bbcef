"""Do the plans that came after compute what their equations say? By definition, index by index."""

import math

import pytest
import torch
import torch.nn.functional as F

from course.collisions import collisions
from minimal.kernels.gather import gather_attention
from minimal.kernels.histogram import histogram_decode, rows_decode
from minimal.kernels.reference import reference
from minimal.model import latent, ngram
from minimal.model.count import count
from minimal.model.layers import Coefficient, norm
from minimal.model.lookup import Engram, PerLayer
from minimal.model.tape import Bank
from minimal.variants import build, describe, skeleton
from tests.defined import as_defined
from tests.model.test_plans import SHORT, awake, decode, tokens


# ---- slots --------------------------------------------------------------------------------------
def slot_by_hand(names, rows, head=0):
    *a, b = ngram.factors(len(names), head)
    return (b + sum(x * y for x, y in zip(a, names))) % ngram.PRIME % rows


@pytest.mark.parametrize("n, rows, head", [(1, 7, 0), (2, 97, 0), (2, 97, 3), (3, 5000, 1)])
def test_a_slot_is_the_universal_hash_of_the_last_ids(n, rows, head):
    ids = tokens(12)
    got = ngram.slots(ids, n, rows, head)
    assert got.dtype == torch.int32 and got.shape == ids.shape
    for b, t in [(0, 0), (0, 1), (1, 5), (1, 11)]:
        names = [int(ids[b, t - i]) + 1 if t >= i else 0 for i in range(n)]
        assert got[b, t] == slot_by_hand(names, rows, head)


@pytest.mark.parametrize("n,head", [(8, 0), (2, 16)])
def test_more_ids_or_heads_than_there_are_factors_are_refused(n, head):
    with pytest.raises(ValueError, match="wanted at most 7 ids and a head below 16, got"):
        ngram.slots(tokens(9), n, 100, head)


def test_slots_of_a_token_keep_the_token_and_with_one_row_are_the_ids():
    ids = tokens(200)
    assert torch.equal(ngram.slots_of_token(ids, 2, 97, 1), ids.int())
    got = ngram.slots_of_token(ids, 2, 97, 8)
    assert torch.equal(got % 97, ids.int()) and got.max() < 8 * 97
    same = (ids[:, 1:, None] == ids[:, None, 1:]) & (ids[:, :-1, None] == ids[:, None, :-1])
    alike = got[:, 1:, None] == got[:, None, 1:]
    assert alike[same].all(), "one bigram, one slot"


def test_names_meet_as_often_as_chance_would_have_it():
    """Of N names in m slots, one is alone with probability (1 - 1/m)^(N - 1)."""
    ids = torch.randint(32768, (1600, 2), generator=torch.Generator().manual_seed(0))
    for rows in (400, 1600, 6400, 25600):
        found = collisions(ids, 2, rows)
        assert found["names"] == 1600
        alone = (1 - 1 / rows) ** 1599
        assert found["names_sharing"] == pytest.approx(1 - alone, abs=0.05)
        assert found["positions_sharing"] == pytest.approx(found["names_sharing"])


def test_collisions_are_counted_by_name_and_by_position():
    """Three names: 4 5, which is seen twice and alone, and 5 4 and 5 6, which share a slot."""
    by_hand = lambda ids, n, rows: torch.tensor([[0, 3, 7, 3, 7]]).int()
    ids = torch.tensor([[4, 5, 4, 5, 6]])
    found = collisions(ids, 2, 10, by_hand)
    assert found == dict(names=3, used=2, names_sharing=pytest.approx(2 / 3), positions_sharing=0.5)


def test_with_one_row_a_token_the_bank_of_ngrams_is_bank_of_values():
    from functools import partial

    from minimal.model.pieces import LEARNED
    from minimal.variants import Plan, last_third, place

    plan = Plan(place(last_third, value=partial(ngram.NGram, times=1, **LEARNED)))
    one, bov = awake(plan), awake("bov")
    ids = tokens(20)
    assert torch.equal(one(ids), bov(ids))


def test_all_rows_of_a_token_start_as_bank_of_values_row():
    many, bov = build("ngram", "nano", **SHORT), build("bov", "nano", **SHORT)
    rows = len(bov.embed.weight)
    for name in bov.banks:
        parts = many.banks[name].weight.split(rows)
        assert len(parts) == 8 and all(torch.equal(p, bov.banks[name].weight) for p in parts)


def test_a_row_is_chosen_by_the_last_n_ids_and_by_nothing_else():
    for plan, n in {"ngram": 2, "ngram-hash": 2, "ngram-3": 3}.items():
        model, ids = awake(plan), tokens(20)
        for back in range(4):
            moved = []
            for other in range(1, 8):  # of eight rows a token, another id may choose the same
                changed = ids.clone()
                changed[:, 9 - back] = (changed[:, 9 - back] + other) % 97
                before, after = (named(model, x) for x in (ids, changed))
                moved.append(not torch.equal(before[:, 9], after[:, 9]))
            assert any(moved) == (back < n), (plan, back)


@torch.no_grad()
def named(model, ids):
    tape = model.tape(ids)
    model(ids, tape=tape)
    value = tape.values[model.config.layers - 1]
    assert isinstance(value, Bank)
    return value.ids


def test_bigrams_cost_what_a_bank_costs_by_rows_and_keep_ids_only():
    one, many = (count(skeleton(plan, "d12")) for plan in ("bov", "ngram"))
    assert one["cache_bytes_per_token"] == many["cache_bytes_per_token"]
    assert one["flops_per_token"] == many["flops_per_token"]
    assert many["cache_bytes_fixed"] == 8 * one["cache_bytes_fixed"]
    small = count(skeleton("ngram-small", "d12"))
    assert small["parameters"] == one["parameters"]


@torch.no_grad()
def test_kernels_read_slots_where_they_read_ids():
    """Dense, by rows, by histogram and by sorted prefix: the bank is larger, nothing else."""
    model, ids = awake("ngram-hash"), tokens(40)
    tape = model.tape(ids)
    model(ids, tape=tape)
    at = model.config.layers - 1
    value, q, k = tape.values[at], tape.queries[at], tape.keys[at]
    assert len(value.table) == 8 * 128 and value.ids.max() >= 128, "slots beyond the vocabulary"
    given = (q[:, -1:], k, value.table, value.ids, value.gain)
    right = reference(*given)
    for way in ("dense", "rows", "histogram"):
        got = gather_attention(*given, way=way)
        torch.testing.assert_close(got, right, atol=1e-5, rtol=1e-4)
    how = dict(causal=True, window=0, lengths=None, scale=q.shape[-1] ** -0.5, bound=None)
    for decode_by in (rows_decode, histogram_decode):
        got = decode_by(*given, **how)
        torch.testing.assert_close(got, right, atol=1e-5, rtol=1e-4)
    whole = (q, k, value.table, value.ids, value.gain)
    torch.testing.assert_close(
        gather_attention(*whole), as_defined(q, k, value), atol=1e-5, rtol=1e-4
    )


# ---- multi-head latent attention ----------------------------------------------------------------
@torch.no_grad()
@pytest.mark.parametrize("plan", ["mla", "mla-half"])
@pytest.mark.parametrize("style", ["nanochat", "llama", "gpt2", "modded"])
def test_absorbed_matrices_read_the_latent_and_give_the_same_outputs(plan, style):
    """One query with a past: written out, keys and values of all tokens are made; absorbed, W_UK
    joins the query and W_UV the way out."""
    model, ids = awake(plan, style=style), tokens(20)
    tape = model.tape(ids)
    model(ids, tape=tape)
    for at, block in enumerate(model.blocks):
        read, value = block.attention.read, tape.values[at]
        assert value.latent.shape == (2, 20, read.latent), "no head has values of its own"
        q = tape.queries[at][:, -3:]
        position = tape.keys[at][:, :, :1, model.config.head :]
        kept = torch.cat([value.latent[:, :, None], position], -1)
        written = read.written_out(q, kept, value, at, tape)
        absorbed = read.absorbed(q, kept, value, at, tape)
        torch.testing.assert_close(absorbed, written, atol=1e-5, rtol=1e-4)
        assert tape.queries[at].shape[-1] == kept.shape[-1], "queries as wide as what is kept"


@torch.no_grad()
def test_decoding_keeps_one_row_a_layer_and_never_the_heads():
    model, ids = awake("mla"), tokens(16)
    _, cache = decode(model, ids, [10] + [1] * 6)
    width, turning = 48 // 2, latent.turning(model.config)
    assert turning == 12
    assert {name: rows.shape for name, rows in cache.kept.items()} == {
        ("c", at): (2, 16, 1, width + turning) for at in range(6)
    }


@pytest.mark.slow
def test_half_the_cache_is_that_of_half_the_heads_at_every_size():
    for size in ("tiny", "d12", "d24"):
        bytes_of = lambda plan: count(skeleton(plan, size))["cache_bytes_per_token"]
        assert bytes_of("mla-half") == bytes_of("standard") // 2
        assert bytes_of("mla") < bytes_of("mla-half")
    assert bytes_of("gqa") == bytes_of("mla-half")


# ---- a gate on the way out ----------------------------------------------------------------------
@torch.no_grad()
def test_a_gate_multiplies_each_head_or_each_channel():
    ids = tokens(9)
    for plan in ("gated", "gated-head"):
        model = awake(plan)
        tape, plain = model.tape(ids), model.tape(ids)
        model(ids, tape=tape)
        block = model.blocks[0]
        h = block.first(tape.streams[0])
        block.attention.read.gate.weight.fill_(0.0)
        model(ids, tape=plain)
        opening = 2 * tape.out[0] / (2 * plain.out[0])  # a gate of zero is a half
        assert opening.min() > 0 and opening.max() < 2
        if plan == "gated-head":
            assert torch.allclose(opening, opening[..., :1].expand_as(opening), atol=1e-3)
    model = awake("gated")
    tape = model.tape(ids)
    model(ids, tape=tape)
    read = model.blocks[0].attention.read
    opening = torch.sigmoid(h @ read.gate.weight.T).unflatten(-1, (2, 24))
    torch.testing.assert_close(tape.out[0], 2 * opening * plain.out[0], atol=1e-5, rtol=1e-4)


def test_gates_stand_beside_dva_at_equal_parameters():
    parameters = lambda plan, size: count(skeleton(plan, size))["parameters"]
    for size in ("tiny", "d12"):
        assert parameters("gated-bare", size) == parameters("dva", size)
        assert parameters("gated/one", size) == parameters("dva/ffn", size)


# ---- tables into the stream, into V, into both --------------------------------------------------
@torch.no_grad()
def test_per_layer_embeddings_by_definition():
    model, ids = awake("ple"), tokens(7)
    tape = model.tape(ids)
    model(ids, tape=tape)
    look = model.streams[0].looks["2"]
    assert isinstance(look, PerLayer)
    x, x0 = tape.streams[3], tape.x0
    for b, t in [(0, 0), (1, 6)]:
        context = norm(look.context.weight @ x0[b, t], 1e-6) * look.norms[0].weight
        e = (look.table.weight[ids[b, t]] + context) / math.sqrt(2)
        g = F.gelu(look.gate.weight @ x[b, t], approximate="tanh")
        right = norm(look.project.weight @ (g * e), 1e-6) * look.norms[1].weight
        torch.testing.assert_close(look(x, tape)[b, t], right, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("layers, middle", [(4, 2), (5, 2), (6, 3), (7, 3), (9, 4), (30, 15)])
def test_engram_stands_in_the_second_layer_and_in_the_middle(layers, middle):
    """Layers 1 and 15 of its 30, counted from zero: at odd depth the earlier of the two."""
    for plan in ("engram", "engram-both"):
        model = skeleton(plan, "nano", layers=layers)
        into_values = {at for at, word in enumerate(describe(model)) if "engram" in word}
        into_stream = {int(at) for at in getattr(model.streams[0], "looks", {})}
        assert (into_values or into_stream) == {1, middle}, plan


@torch.no_grad()
def test_engram_by_definition():
    model, ids = awake("engram"), tokens(9)
    tape = model.tape(ids)
    model(ids, tape=tape)
    look = model.streams[0].looks["3"]
    assert isinstance(look, Engram) and sorted(model.streams[0].looks) == ["1", "3"]
    x = tape.streams[3]
    for b, t in [(0, 0), (0, 1), (1, 8)]:
        rows = []
        for order in (2, 3):
            names = [int(ids[b, t - i]) + 1 if t >= i else 0 for i in range(order)]
            for head in range(4):
                slot = slot_by_hand(names, look.rows, head)
                rows.append(look.table.weight[look.rows * len(rows) + slot])
        e = torch.cat(rows)
        match = norm(x[b, t]) @ norm(look.key.weight @ e) / math.sqrt(48)
        right = torch.sigmoid(match) * (look.value.weight @ e)
        torch.testing.assert_close(look(x, tape)[b, t], right, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["ple", "engram"])
def test_into_v_into_the_stream_and_into_both_have_the_same_parameters(name):
    models = [build(plan, "nano", **SHORT) for plan in (name, f"{name}-v", f"{name}-both")]
    assert len({sum(p.numel() for p in model.parameters()) for model in models}) == 1
    tables = [
        [p for key, p in model.named_parameters() if key.endswith("table.weight")]
        for model in models
    ]
    assert len(tables[0]) == (6 if name == "ple" else 2)
    for others in tables[1:]:
        assert all(torch.equal(a, b) for a, b in zip(tables[0], others)), "one start for all three"


@torch.no_grad()
@pytest.mark.parametrize("name", ["ple", "engram"])
def test_what_goes_into_v_joins_the_stream_behind_the_layer_where_both_are_fed(name):
    ids = tokens(9)
    alone, both = awake(f"{name}-v"), awake(f"{name}-both")
    both.load_state_dict(alone.state_dict())
    tapes = [model.tape(ids) for model in (alone, both)]
    for model, tape in zip((alone, both), tapes):
        model(ids, tape=tape)
    at = min(tapes[0].looked)
    first = [tape.streams[at + 1] for tape in tapes]
    torch.testing.assert_close(first[0], first[1])
    entered = both.streams[0].enter(first[1], at + 1, tapes[1])
    torch.testing.assert_close(entered, first[1] + tapes[1].looked[at])
    assert not torch.allclose(tapes[0].streams[at + 2], tapes[1].streams[at + 2], atol=1e-3)


def test_a_lookup_beside_grouped_values_is_refused():
    with pytest.raises(ValueError, match="use groups = heads"):
        skeleton("ple-v", "d12", groups=2)


# ---- a mixture of all layers --------------------------------------------------------------------
@torch.no_grad()
@pytest.mark.parametrize("plan", ["mudd", "attnres"])
def test_a_mixture_by_definition(plan):
    """One sum at a time, for one token of one text."""
    model, ids = awake(plan), tokens(8)
    tape = model.tape(ids)
    model(ids, tape=tape)
    for at in (1, 4):
        source = model.blocks[at].attention.value
        for b, t in [(0, 0), (1, 7)]:
            streams = [tape.streams[j][b, t] for j in range(at + 1)]
            parts, a = dict(mudd=dense, attnres=attended)[plan](source, streams)
            mixed = sum(a[j] * parts[j] for j in range(at + 1))
            right = source.project.weight @ norm(mixed)
            torch.testing.assert_close(tape.rows[at][b, t].flatten(), right, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(source.shares(tape)[b, t], a)


def dense(source, streams):
    hidden = F.gelu(source.first.weight @ norm(streams[-1]))
    return streams, source.second.weight @ hidden + source.fixed()


def attended(source, streams):
    """Softmax over what was added so far; a part is key and value at once."""
    assert source.query.weight.std() > 0, "awake"
    added = [streams[0], *(new - old for old, new in zip(streams, streams[1:]))]
    scores = torch.stack([source.query.weight[0] @ norm(part) for part in added])
    return added, scores.exp() / scores.exp().sum()


def test_the_mixture_starts_as_standard_attention():
    plans = ("standard", "mudd", "mudd-fixed", "attnres")
    models = {plan: build(plan, "nano", **SHORT) for plan in plans}
    g = torch.Generator().manual_seed(1)
    for at in range(6):
        w = torch.randn(48, 48, generator=g) / 7
        for model in models.values():
            model.blocks[at].attention.out.weight.data.copy_(w)
    ids = tokens(12)
    right = models["standard"](ids)
    for plan in ("mudd", "mudd-fixed"):
        torch.testing.assert_close(models[plan](ids), right, atol=1e-5, rtol=1e-4)
        fixed = [m for m in models[plan].modules() if isinstance(m, Coefficient)]
        assert [len(c.value) for c in fixed] == [2, 3, 4, 5, 6]
    tape = models["attnres"].tape(ids)
    torch.testing.assert_close(models["attnres"](ids, tape=tape), right, atol=1e-5, rtol=1e-4)
    for at in range(1, 6):
        shares = models["attnres"].blocks[at].attention.value.shares(tape)
        assert torch.equal(shares, torch.full_like(shares, 1 / (at + 1))), "equal shares"
