"""The benchmarks measure what they say, on sizes that are over in a moment."""

import json

import torch

from minimal.kernels import histogram
from minimal.kernels.backward import backward_bytes, sum_by_token_bytes
from minimal.kernels.decode import cached_bytes, split_bytes
from minimal.kernels.decode import histogram_bytes as gpu_histogram_bytes
from minimal.kernels.dynamic_values import dynamic_values, mix
from minimal.kernels.forward import forward_bytes
from minimal.lab import timing
from minimal.lab.speed import decode
from tests.kernels.shapes import Shape


def test_the_decode_bench_checks_its_ways_times_them_in_turn_and_reports_json():
    found = decode.decode(lengths=(2000,), H=2, D=32, V=300, rounds=3)
    row = json.loads(json.dumps(found))["2000"]
    assert all(
        row[name] > 0
        for name in ("v_cache", "materialise", "histogram", "sorted", "rows", "products")
    )
    assert row["faster"]["v_cache"] == 1 and row["histogram_over_materialise"] > 0


def test_every_way_of_the_bench_gives_one_answer_and_a_wrong_one_stops_it(monkeypatch):
    _, ways = decode.decode_ways(1500, 2, 32, 200)
    answers = [way() for way in ways.values()]
    assert all((answer - answers[0]).abs().max() < 1e-5 for answer in answers)
    broken = lambda *a, **b: histogram.histogram_decode(*a, **b) * 1.001
    monkeypatch.setattr(decode, "histogram_decode", broken)
    try:
        decode.decode(lengths=(1500,), H=2, D=32, V=200, rounds=1)
    except AssertionError as error:
        assert "nothing to time" in str(error)
    else:
        raise AssertionError("a way that is wrong by a thousandth was timed")


def test_ways_take_turns_and_ratios_compare_within_a_round():
    order = []
    taken = timing.in_turn({name: lambda name=name: order.append(name) for name in "abc"}, rounds=3)
    assert order == list("abcabcbcacab") and all(len(times) == 3 for times in taken.values())
    assert timing.ratio(dict(slow=[2, 30, 4], fast=[1, 10, 4]), "slow", "fast") == 2


def test_ids_of_the_bench_are_distributed_as_in_text():
    ids = timing.zipf(32768, 131072, torch.Generator().manual_seed(0))
    assert abs(ids.unique().numel() - 20745) < 400  # the expectation at 131,072 draws
    counts = ids.bincount(minlength=32768).sort(descending=True).values
    assert 0.02 < counts[0] / 131072 < 0.05 and ids.dtype == torch.int32
    assert ids.bincount(minlength=32768).argmax() > 10  # frequent tokens do not stand together


def test_two_streams_share_one_map():
    for T in (1, 127, 128, 129, 300):
        q, k, v, qr, kr = torch.randn(5, 2, T, 3, 8, dtype=torch.float64, requires_grad=True)
        hidden = torch.ones(T, T, dtype=torch.bool).triu(1)
        weight = (
            (torch.einsum("bthd,bshd->bhts", q, k) * 8**-0.5)
            .masked_fill(hidden, float("-inf"))
            .softmax(-1)
        )
        pairs = torch.einsum("bhts,btshd->bthd", weight, v[:, None] + qr[:, :, None] * kr[:, None])
        mine = dynamic_values(q, k, v, qr, kr)
        assert (mine - pairs).abs().max() < 1e-12
    push = torch.randn_like(mine)
    for a, b in zip(
        *(torch.autograd.grad(y, (q, k, v, qr, kr), push) for y in (mine, pairs)), strict=True
    ):
        assert (a - b).abs().max() < 1e-11
    wide, narrow = mix(q, k, [v, kr[..., :3]])
    assert wide.shape[-1] == 8 and narrow.shape[-1] == 3


def test_the_dva_bench_compares_the_identity_with_attention_of_the_same_width():
    found = decode.dva(n=128, d=48, heads=4, rounds=3)
    assert all(
        found[name] > 0
        for name in ("standard", "identity", "two_calls", "pairs", "identity_over_standard")
    )


def test_the_gpu_bench_runs_from_end_to_end_in_the_interpreter(interpreter, capsys):
    from minimal.lab.speed import gpu

    rows = gpu.everything(
        "cpu",
        [(2, 70)],
        [(1, 40)],
        [(2, 32)],
        V=50,
        dtype=torch.float32,
        out=None,
        buffers=dict(small=1 << 13, large=1 << 13, programs=2),
        models=dict(plans=("bov", "vplus"), size="smoke", batch=2, compile=False),
        rounds=1,
    )
    assert [row["part"] for row in rows] == ["bandwidth", "decode", "forward", "train", "train"]
    assert [
        (row["plan"], row["tokens_per_second"] > 0, 0 < row["share"] < 1) for row in rows[3:]
    ] == [("bov", True, True), ("vplus", True, True)]
    assert {"v_cache_us", "materialise_us", "gather_us", "sdpa_us", "share_of_floor"} <= set(
        rows[1]
    )
    assert {"fused_us", "stored_us", "bytes_us"} <= set(rows[2]), (
        "a forward is bound by products: bytes are no floor"
    )
    assert "of the floor" in capsys.readouterr().out


# ---- bytes ----------------------------------------------------------------------------------------


def test_the_bytes_of_decode_are_those_of_its_tensors():
    shape = Shape(B=2, T=1, S=300, H=4, G=2, D=32, V=20)
    q, k, table, ids, _ = (x.bfloat16() if x.is_floating_point() else x for x in shape.tensors())
    size = lambda *tensors: sum(t.numel() * t.element_size() for t in tensors)
    memory, cache = split_bytes(2, 1, 300, 4, 2, 32, 20, distinct=ids.unique().numel())
    assert memory == size(q, k, ids, table, q) and cache == size(q, k, ids, table[ids], q)
    assert cached_bytes(2, 1, 300, 4, 2, 32) == size(q, k, table[ids], q)
    part = torch.empty(5, 2, 1, 4, 33)
    assert split_bytes(2, 1, 300, 4, 2, 32, 20, splits=5)[0] == size(
        q, k, ids, table, q
    ) + 2 * size(part)
    bins = torch.empty(2, 1, 4, 20)
    assert gpu_histogram_bytes(2, 1, 300, 4, 2, 32, 20) == size(k, ids, table, q, q) + 4 * size(
        bins
    )


def test_the_bytes_of_training_are_those_of_its_tensors():
    shape = Shape(B=2, T=64, S=64, H=4, G=2, D=32, V=20)
    q, k, table, ids, _ = shape.tensors()
    lse = torch.empty(2, 4, 64)
    size = lambda *tensors: sum(t.numel() * t.element_size() for t in tensors)
    given = (2, 64, 64, 4, 2, 32, 20, 4)
    assert forward_bytes(*given, keep=False) == size(q, k, table, ids, q)
    assert forward_bytes(*given) == size(q, k, table, ids, q, q, lse)
    queries, keys = backward_bytes(*given)
    assert queries == size(q, q, q, q, k, table, ids, lse, lse) and keys == size(
        q, q, k, k, k, table, ids, lse, lse
    )
    assert sum_by_token_bytes(2, 64, 2, 32, 20, 4) == size(k, ids, table) + 21 * 4


def test_the_floors_of_the_table_that_was_computed_by_hand():
    """6 heads of 128, |V| 32,768, one sequence of 131,072: 201 MB of keys, 201 of a V cache, 32 of rows: 1.7 times."""
    memory, cache = split_bytes(1, 1, 131072, 6, 6, 128, 32768, distinct=20745)
    seconds = max(memory / 3.0e12, cache / 5.5e12)
    rival = cached_bytes(1, 1, 131072, 6, 6, 128) / 3.0e12
    assert round(rival * 1e6) == 134 and 1.65 < rival / seconds < 1.8
    cpu = dict(b=4)
    for S, times in ((131072, 1.6), (262144, 1.78)):
        both = 2 * S * 768 * 4
        assert (
            abs(both / histogram.histogram_bytes(1, 1, S, 6, 6, 128, 32768, **cpu) - times) < 0.03
        )
