"""The package's benchmarks measure what they say, on sizes that are over in a moment."""

import importlib
import json

import pytest
import torch

from minimal.bench import decoding, timing
from minimal.data import results
from minimal.kernels.dynamic_values import dynamic_values, mix


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


def test_a_stranger_hears_how_fast_tokens_are_made(monkeypatch):
    rows = decoding.generating(("standard", "bov"), size="smoke", tokens=3, rounds=2)
    assert [row["plan"] for row in rows] == ["standard", "bov"] and rows[0]["times"] == 1
    assert all(row["tokens_per_second"] > 0 and row["prompt"] == 64 for row in rows)
    (row,) = decoding.gathering((300,), H=2, D=32, V=50, rounds=2)
    assert row["keys"] == 300 and min(row[name] for name in ("stored", "gathered", "times")) > 0
    dense, seen = decoding.attention, []
    monkeypatch.setattr(
        decoding, "attention", lambda q, k, v: seen.append((k, v)) or dense(q, k, v)
    )
    decoding.gathering((300,), H=2, D=32, V=50, rounds=1)
    k, v = seen[0]
    assert (
        v.stride() == k.stride() == (2 * 300 * 32, 32, 300 * 32, 1)
    )  # head by head, as in a cache
    monkeypatch.setattr(decoding, "gather_attention", lambda q, k, table, ids, bound: 2 * q)
    with pytest.raises(AssertionError, match="300 keys: the ways differ by .*: nothing to time"):
        decoding.gathering((300,), H=2, D=32, V=50, rounds=1)


def test_the_parts_of_a_stranger_are_told_line_by_line(monkeypatch, capsys):
    bench = importlib.import_module("minimal.bench.__main__")
    made = dict(plan="bov", tokens_per_second=123.4, prompt=64, times=1.5)
    read = dict(keys=4096, stored=1.0, looked_up=3.0, gathered=0.5, times=2.0)
    monkeypatch.setattr(bench, "generating", lambda where: [made])
    monkeypatch.setattr(bench, "gathering", lambda where: [read])
    bench.measure_generating(None)
    bench.measure_gathering(None)
    said = capsys.readouterr().out
    assert "bov      :     123 tokens/s behind a prompt of 64, 1.50 times standard" in said
    assert "gathered 0.50: 2.00 times as fast as stored" in said
    assert list(bench.PARTS) == ["train", "generate", "gather"]


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


# ---- the commands --------------------------------------------------------------------------------


def test_the_bench_measures_its_parts_by_a_table_and_writes_each_at_once(
    monkeypatch, capsys, tmp_path
):
    bench = importlib.import_module("minimal.bench.__main__")
    monkeypatch.setattr(bench, "matmul_rate", lambda: 1e9)
    parts = dict(
        dva=("dva", lambda asked: dict(threads=asked.threads)),
        gpu=("gpu", lambda asked: None),
        race=("race", lambda asked: 1 / 0),
    )
    monkeypatch.setattr(bench, "PARTS", parts)
    out, before = tmp_path / "bench.json", torch.get_num_threads()
    try:
        bench.main(["--part", "gpu,dva", "--threads", "1", "--out", str(out)])
        found = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert found["dva"] == dict(threads=1) and found["gpu"] is found["race"] is None
        with pytest.raises(ZeroDivisionError):
            bench.main(["--part", "race,dva", "--threads", "1", "--out", str(out)])
    finally:
        torch.set_num_threads(before)
    rows = results.read(out)["rows"]
    assert [row["part"] for row in rows] == ["dva", "dva"], "measured before the race died"
    assert rows[0]["result"] == dict(threads=1) and rows[0]["machine"] == found["machine"]


def test_a_compiled_loss_never_falls_back_to_eager_in_silence():
    from minimal.training.compiling import MOST_GRAPHS, compiled

    assert MOST_GRAPHS >= 27, "modded grows its windows in up to 27 stages"
    graphs_made, whole = [], torch.compile
    backend = lambda graph, _: graphs_made.append(1) or graph.forward
    as_it_is = dict(recompile_limit=8, fail_on_recompile_limit_hit=False)
    with torch._dynamo.config.patch(**as_it_is):  # and puts back what there was
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "compile", lambda f, **how: whole(f, backend=backend, **how))
            work = compiled(lambda x, window: x[:window].sum())
        for window in range(1, 13):
            work(torch.ones(64), window)
        assert len(graphs_made) == 12, "PyTorch's own limit is 8"
        torch._dynamo.config.recompile_limit = 12
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
            work(torch.ones(64), 13)
    torch._dynamo.reset()
