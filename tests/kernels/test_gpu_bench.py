"""The laboratory's benchmarks measure what they say, on sizes that are over in a moment."""

import importlib
import itertools
import json
import pathlib
from collections import Counter

import pytest
import torch
from torch.nn.attention import flex_attention

from course import figures, records
from evidence.bench import (
    decode,
    documents,
    gpu,
    gpu_decode,
    gpu_table,
    graphs,
    offload,
    step_profile,
)
from evidence.bench.graphs import forward_bytes, split_bytes
from minimal.bench import timing
from minimal.data import results
from minimal.kernels import histogram
from minimal.kernels.reference import by_definition, visible
from minimal.model import gradients
from tests import warm
from tests.kernels.shapes import Shape


def test_the_decode_bench_checks_its_ways_times_them_in_turn_and_reports_json():
    found = decode.decode(lengths=(2000,), H=2, D=32, V=300, rounds=3)
    row = json.loads(json.dumps(found))["2000"]
    assert all(
        row[name] > 0
        for name in (
            *("v_cache", "materialise", "histogram", "sorted", "rows", "products"),
            "front_door",
        )
    )
    assert row["front_door_over"].keys() == {"rows", "sorted", "v_cache"}
    assert row["faster"]["v_cache"] == 1 and row["histogram_over_materialise"] > 0


def test_every_way_of_the_bench_gives_one_answer_and_a_wrong_one_stops_it(monkeypatch):
    _, ways = decode.decode_ways(1500, 2, 32, 200)
    answers = [way() for way in ways.values()]
    assert all((answer - answers[0]).abs().max() < 1e-5 for answer in answers)
    broken = lambda *a, **b: histogram.histogram_decode(*a, **b) * 1.001
    monkeypatch.setattr(decode, "histogram_decode", broken)
    with pytest.raises(AssertionError, match="histogram is off by .*: there is nothing to time"):
        decode.decode(lengths=(1500,), H=2, D=32, V=200, rounds=1)


def test_the_dva_bench_compares_the_identity_with_attention_of_the_same_width():
    found = decode.dva(n=128, d=48, heads=4, rounds=3)
    assert all(
        found[name] > 0
        for name in ("standard", "identity", "two_calls", "pairs", "identity_over_standard")
    )


@pytest.mark.slow
def test_the_gpu_bench_runs_from_end_to_end_in_the_interpreter(interpreter, capsys):
    rows = tried_out(gpu)
    assert [row["part"] for row in rows] == [
        *("bandwidth", "decode", "decode", "forward", "forward", "backward", "backward"),
        *("documents", "table", "table", "train", "train", "wide"),
    ]
    assert [
        (row["plan"], row["tokens_per_second"] > 0, 0 < row["share"] < 1) for row in rows[-3:-1]
    ] == [("bov", True, True), ("vplus", True, True)]
    assert {"v_cache_us", "materialise_us", "gather_us", "sdpa_us", "share_of_floor"} <= set(
        rows[1]
    )
    assert {"fused_us", "stored_us", "bytes_us"} <= set(rows[3]), (
        "a forward is bound by products: bytes are no floor"
    )
    said = capsys.readouterr().out
    assert "of the floor" in said
    refused = "FlexAttention is one kernel only where it is compiled for a GPU"
    assert f"decode 2 x 70: flex is refused: {refused}" in said
    assert said.count(refused) == 2 * 2 + 2 * 2 + 2 + 2 + 2  # … backward, documents, wide

    # Rivals at their best settings, each named; the rows that were missing.
    assert {"rows_and_sdpa_us", "histogram_us"} <= rows[1].keys()
    assert (rows[2]["H"], rows[2]["G"]) == (4, 2) and "histogram_us" not in rows[2]
    assert "stages" in rows[1]["v_cache_settings"] and "splits" in rows[1]["gather_settings"]
    assert rows[1]["sdpa_settings"] in graphs.backends("cpu")
    assert {"fused_training_us", "rows_and_sdpa_us"} <= rows[3].keys()
    assert {"fused_us", "rows_and_sdpa_us", "fused_over_dense"} <= rows[5].keys()

    # Windows, and a token that stands everywhere.
    assert [row["window"] for row in rows[3:7]] == [0, 9, 0, 9]
    assert {"sum_by_token_us", "embedding_us", "atomics_us", "floor_us"} <= rows[8].keys()
    assert rows[8]["hottest"] < rows[-4]["hottest"] == 1
    trained = {"chosen_us", "compiled_us", "joined_us", "eager_us"}
    assert all(trained <= row.keys() and row["compiled_over_best"] > 0 for row in rows[8:10])

    # Every backend by its name, and what training takes beside the best of them.
    assert {"rows_and_sdpa FLASH_ATTENTION", "rows_and_chosen"} <= rows[5]["each_us"].keys()
    assert all(row["chosen_over_best"] > 0 for row in rows[3:7] + rows[8:10])
    ways = {"sdpa FLASH_ATTENTION", "sdpa MATH"}
    assert rows[7]["forward_us"].keys() == rows[7]["backward_us"].keys() == ways

    # Rows wider than keys: no floor is told, and the sum by token stands beside.
    assert {"narrowed_us", "histogram_whole_us", "binned_over_v_cache"} <= rows[-1].keys()
    assert "floor_us" not in rows[-1]


def tried_out(gpu, **more):
    """Everything, on sizes that are over in a moment, in the interpreter."""
    sizes = dict(
        cached=[(2, 70, 2, 2, 32), (1, 70, 4, 2, 32)],
        wide=[(1, 70, 2, 2, 32)],
        trained=[(1, 40, 2, 2, 32), (1, 40, 2, 2, 32, 9)],
        texts=[(2, 40, 4, 2, 32, 12)],
        hottest=(0.0, 1.0),
        buffers=dict(small=1 << 13, large=1 << 13, programs=2),
        models=dict(plans=("bov", "vplus"), size="smoke", batch=2, compile=False),
    )
    bench = graphs.Bench("cpu", torch.float32, V=8, rounds=1, layers=1, backwards=1)
    return gpu.everything(bench=bench, **(sizes | more))


ONE_OF_EACH = dict(cached=[(1, 40, 2, 2, 32)], trained=[(1, 40, 2, 2, 32, 9)])


@pytest.mark.slow
def test_a_row_of_the_gpu_bench_is_on_file_before_the_next_is_measured(
    interpreter, monkeypatch, tmp_path
):
    """A command that runs out of time, or a model out of memory, must not lose what was
    measured."""

    def dies(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(gpu, "forward", dies)
    with pytest.raises(torch.OutOfMemoryError):
        tried_out(gpu, out=tmp_path, parts=("decode", "forward"), **ONE_OF_EACH)
    kept = results.read(tmp_path / "gather_gpu.json")
    assert [row["part"] for row in kept["rows"]] == ["bandwidth", "decode"]
    tried_out(gpu, out=tmp_path, parts=("backward",), **ONE_OF_EACH)
    kept = results.read(tmp_path / "gather_gpu.json")
    assert [row["part"] for row in kept["rows"][2:]] == ["bandwidth", "backward"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_is_a_rival_on_a_gpu(interpreter, monkeypatch):
    # what it would compute there: the same as all others, or nothing would be timed
    monkeypatch.setattr(graphs, "best_flex", lambda device: flex_attention.flex_attention)
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)
    rows = tried_out(gpu, parts=("decode", "forward", "backward"), **ONE_OF_EACH)
    assert [row["part"] for row in rows[1:]] == ["decode", "forward", "backward"]
    assert all({"flex_us", "rows_and_flex_us"} <= row.keys() for row in rows[1:3])
    assert "rows_and_flex_us" in rows[3]


@pytest.mark.slow
def test_flex_attention_is_compiled_at_its_best_and_its_backward_may_run_again(monkeypatch):
    asked = {}
    monkeypatch.setattr(graphs, "compiled", lambda work, **how: asked.update(how))
    with torch._functorch.config.patch(donated_buffer=True):  # and puts back what there was
        graphs.best_flex.__wrapped__("cuda")
        assert torch._functorch.config.donated_buffer is False
    assert asked == dict(mode="max-autotune-no-cudagraphs")


def test_flex_attention_is_compiled_for_shapes_that_are_measured():
    assert {*gpu.CACHED, *gpu.TRAINED} >= graphs.FLEX
    toy = graphs.Bench("cuda")
    assert graphs.flex_joins(toy, *gpu.TRAINED[-1])
    assert not graphs.flex_joins(toy, *gpu.CACHED[0])


def test_pairs_of_a_window_are_those_of_its_mask():
    for T, window in ((40, 9), (300, 128), (12, 11)):
        assert gpu.visible_pairs(T, window) == visible(T, T, True, window).sum()


def test_one_token_is_made_as_hot_as_is_asked():
    ids = graphs.Bench("cpu", V=1000).ids(4, 5000)
    assert torch.equal(gpu.heated(ids, 0.0), ids)
    shares = [(gpu.heated(ids, share) == 0).float().mean().item() for share in gpu.HOTTEST]
    assert shares[0] < 0.05 and shares[-1] == 1 and shares == sorted(shares)
    for share, more in zip(shares, gpu.HOTTEST):
        assert abs(share - shares[0] - more) < 0.01 + shares[0] * more


def queries_and_values(B, T, H, G, D):
    g = torch.Generator().manual_seed(0)
    shapes = ((B, T, H, D), (B, T, G, D), (B, T, G, D))
    return [torch.randn(shape, generator=g, requires_grad=True) for shape in shapes]


@pytest.fixture
def flex_on_a_cpu(monkeypatch):
    """Its definition: what it would compute on a GPU."""
    monkeypatch.setattr(graphs, "best_flex", lambda device: flex_attention.flex_attention)
    monkeypatch.setattr(flex_attention, "_validate_device", lambda *_: None)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("window, mean", ((0, None), (9, None), (None, 12)))
def test_every_backend_that_is_timed_equals_float64_with_its_gradients(window, mean, flex_on_a_cpu):
    """Whole, in a window, and within documents."""
    shape, toy = (2, 40, 4, 2, 16), graphs.Bench("cpu", torch.float32)
    leaves = queries_and_values(*shape)
    exact = [x.detach().double().requires_grad_() for x in leaves]
    if mean is None:
        ways = gpu.torch_ways(toy, *shape, window)
        right = by_definition(*exact, window=window)
    else:
        document = documents.names(toy, 2, 40, mean)
        assert (document[:, -1] > document[:, 0]).all(), "each row holds several"
        ways = documents.ways_of(toy, document)
        right = masked_by_definition(*exact, documents.within(document))
    wanted = {"sdpa", "flex"} | (set() if mean else {"chosen"})
    assert {family for family, _ in ways} == wanted
    push = torch.randn(right.shape, generator=torch.Generator().manual_seed(1))
    rights = (right, *torch.autograd.grad(right, exact, push.double()))
    for name, way in ways.items():
        out = way(*leaves)
        mine = (out, *torch.autograd.grad(out, leaves, push))
        for a, b in zip(mine, rights, strict=True):
            assert (a - b).abs().max() <= 1e-5 * b.abs().max(), name


def masked_by_definition(q, k, v, mask):
    k, v = (x.repeat_interleave(q.shape[2] // k.shape[2], 2) for x in (k, v))
    scores = torch.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    weight = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return torch.einsum("bhts,bshd->bthd", weight, v)


def test_a_document_sees_itself_and_nothing_before_it():
    document = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 2, 2]])
    seen = documents.within(document)
    for row, numbers in enumerate(document.tolist()):
        for query, key in itertools.product(range(5), repeat=2):
            right = key <= query and numbers[query] == numbers[key]
            assert seen[row, 0, query, key] == right
    tiles = documents.tiles(torch.arange(4).repeat_interleave(128).view(1, 512))
    dense = tiles.to_dense()[0, 0].bool()
    assert torch.equal(dense, torch.eye(4, dtype=torch.bool)), (
        "tiles between documents are left out"
    )


def test_a_cache_no_faster_than_memory_is_said(interpreter, monkeypatch, capsys):
    small = dict(small=1 << 13, large=1 << 13, programs=2)
    bench = graphs.Bench("cpu", torch.float32, rounds=1)
    for seconds, told in ((2e-3, True), (1e-3, False)):  # the same rate; twice as fast
        taken = dict(memory=1e-3, l2=seconds)
        monkeypatch.setattr(graphs.Bench, "graphs", lambda self, ways, taken=taken: taken)
        graphs.bandwidths(bench, **small)
        assert ("hardly faster than memory" in capsys.readouterr().out) is told


@pytest.mark.parametrize(
    "part, kernel", (("decode", "run_split"), ("wide", "run_split"), ("forward", "run_forward"))
)
def test_a_kernel_that_is_wrong_is_not_timed(part, kernel, interpreter, monkeypatch):
    room = gpu if part == "forward" else gpu_decode
    whole = getattr(room, kernel)

    def wrong_through_ids(q, k, table, ids, *rest, **how):
        out = whole(q, k, table, ids, *rest, **how)
        if ids is None:
            return out
        return out * 1.01 if torch.is_tensor(out) else (out[0] * 1.01, *out[1:])

    monkeypatch.setattr(room, kernel, wrong_through_ids)
    with pytest.raises(AssertionError, match="there is nothing to time"):
        tried_out(gpu, parts=(part,))


def test_a_backend_that_refuses_is_left_out_and_no_other_error_is_swallowed(capsys):
    right = torch.ones(3)

    def refuses():
        raise RuntimeError("No available kernel")

    ways = {("gather", ""): lambda: right, ("sdpa", "CUDNN"): refuses, ("sdpa", "FLASH"): refuses}
    assert list(graphs.agree(ways, torch.float32, "row")) == [("gather", "")]
    assert "sdpa CUDNN is refused: No available kernel" in capsys.readouterr().out
    with pytest.raises(RuntimeError):
        graphs.agree({("gather", ""): refuses}, torch.float32, "row")


@pytest.mark.parametrize(
    "module, argv, sentence",
    (
        ("__main__", ["--threads", "0"], "wanted a whole number from 1 to 1,024, got 0"),
        ("__main__", ["--threads", "-1"], "wanted a whole number from 1 to 1,024, got -1"),
        ("__main__", ["--part", "sideways"], "wanted some of train, decode, dva, corners"),
        ("__main__", ["--out", "bench"], "wanted a file that ends in .json, got bench"),
        ("decode", ["--threads", "0"], "wanted a whole number from 1 to 1,024, got 0"),
        ("decode", ["--lengths", "0"], "wanted a whole number from 1, got 0"),
        ("decode", ["--rounds", "x"], "wanted a whole number from 1, got x"),
        ("offload", ["--length", "-5"], "wanted a whole number from 1, got -5"),
        ("memory", ["--length", "0"], "wanted a whole number from 1, got 0"),
        ("gpu", ["--part", "sideways"], "invalid choice: 'sideways'"),
        ("gpu", [], "wanted a GPU that torch can use, got none"),
    ),
)
def test_a_wrong_option_is_answered_in_one_sentence(module, argv, sentence, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    room = "course" if module == "memory" else "evidence.bench"
    main = importlib.import_module(f"{room}.{module}").main
    with pytest.raises(SystemExit) as ended:
        main(argv)
    said = capsys.readouterr().err
    assert ended.value.code == 2 and sentence in said and said.count("\n") == 1


def test_all_timing_of_the_lab_is_one():
    """bench, decode, gpu, race, offload and budgets take clock or in_turn; none has a clock of its
    own."""
    bench, records = (pathlib.Path(part.__file__).parent for part in (timing, graphs))
    users = [*bench.glob("*.py"), *records.glob("*.py"), bench.parent / "compare" / "budgets.py"]
    assert len(users) > 8
    assert [path.name for path in users if "perf_counter" in path.read_text()] == []


def test_the_bytes_of_decode_are_those_of_its_tensors():
    shape = Shape(B=2, T=1, S=300, H=4, G=2, D=32, V=20)
    q, k, table, ids, _ = (x.bfloat16() if x.is_floating_point() else x for x in shape.tensors())
    size = lambda *tensors: sum(t.numel() * t.element_size() for t in tensors)
    memory, cache = split_bytes(2, 1, 300, 4, 2, 32, 20, distinct=ids.unique().numel())
    assert memory == size(q, k, ids, table, q) and cache == size(q, k, ids, table[ids], q)
    part = torch.empty(5, 2, 1, 4, 33)
    assert split_bytes(2, 1, 300, 4, 2, 32, 20, splits=5)[0] == size(
        q, k, ids, table, q
    ) + 2 * size(part)


def test_the_bytes_of_training_are_those_of_its_tensors():
    shape = Shape(B=2, T=64, S=64, H=4, G=2, D=32, V=20)
    q, k, table, ids, _ = shape.tensors()
    lse = torch.empty(2, 4, 64)
    size = lambda *tensors: sum(t.numel() * t.element_size() for t in tensors)
    given = (2, 64, 64, 4, 2, 32, 20, 4)
    assert forward_bytes(*given, keep=False) == size(q, k, table, ids, q)
    assert forward_bytes(*given) == size(q, k, table, ids, q, q, lse)


def test_the_floors_of_the_table_that_was_computed_by_hand():
    """6 heads of 128, |V| 32,768, one sequence of 131,072: 201 MB of keys, 201 of a V cache, 32 of
    rows: 1.7 times."""
    memory, cache = split_bytes(1, 1, 131072, 6, 6, 128, 32768, distinct=20745)
    seconds = max(memory / 3.0e12, cache / 5.5e12)
    rival = (2 * 131072 * 6 * 128 * 2 + 2 * 6 * 128 * 2) / 3.0e12  # keys, values, q and out
    assert round(rival * 1e6) == 134 and 1.65 < rival / seconds < 1.8
    cpu = dict(b=4)
    for S, times in ((131072, 1.6), (262144, 1.78)):
        both = 2 * S * 768 * 4
        assert abs(both / graphs.histogram_bytes(1, 1, S, 6, 6, 128, 32768, **cpu) - times) < 0.03


def test_the_profile_counts_every_part_of_a_step_once():
    before = gradients.by_hand
    found = json.loads(json.dumps(step_profile.profile("bov", "smoke", batch=2, rounds=3)))
    assert list(found["parts_ms"]) == list(step_profile.PARTS)
    assert all(ms > 0 for ms in found["parts_ms"].values())
    assert 0 < found["share"] < 1 and found["autograd_over_ours"] > 0
    assert gradients.by_hand is before
    assert found["products_ms"] > 0
    alone = f"each at its own shape: {found['products_ms']:.0f} ms, "
    assert alone in step_profile.report(found)


def test_the_products_of_a_step_are_all_that_it_calls_and_are_called_again_as_they_were(
    monkeypatch,
):
    """Four products and one attention, forwards; backwards two of each product that asks for two
    gradients, and attention's own."""
    x = torch.ones(2, 6, 4, requires_grad=True)
    table, weight = torch.ones(1, 4).expand(4, 4), torch.ones(4, 4, requires_grad=True)

    def step():
        torch.mm(table, table.T)  # strides of zero
        torch.baddbmm(x, x, (x @ weight).mT @ x, alpha=0.5)
        heads = x.view(2, 3, 2, 4)
        attend = torch.nn.functional.scaled_dot_product_attention
        attend(heads, heads, heads, is_causal=True).square().sum().backward()
        torch.sin(x)

    found = step_profile.products_of(step)
    kinds = Counter()
    for (function, *_), often in found.items():
        kinds[function.overloadpacket._qualified_op_name.removeprefix("aten::")] += often
    attention = "_scaled_dot_product_flash_attention_for_cpu"
    assert kinds == {"mm": 2, "bmm": 1, "baddbmm": 1, attention: 1, f"{attention}_backward": 1}

    # the same layouts come again, as often as they are timed
    monkeypatch.setattr(step_profile, "CALLS", 1)
    again = step_profile.products_of(lambda: step_profile.seconds_alone(found))
    assert given_to(again) == {key: 2 for key in given_to(found)}


def given_to(found):
    """By operation and the tensors that it gets, without its other arguments."""
    tensors = lambda layouts: tuple(told for told in layouts if isinstance(told, tuple))
    return {(function, tensors(told)): often for (function, told, _), often in found.items()}


def test_products_are_counted_as_often_as_the_step_calls_them():
    a = torch.ones(4, 4)
    found = step_profile.products_of(lambda: [torch.mm(a, a) for _ in range(5)])
    now = iter(range(100))
    assert list(found.values()) == [5]
    assert step_profile.seconds_alone(found, now=lambda: next(now)) == 5.0


def test_a_part_inside_another_is_counted_as_the_inner_one(monkeypatch):
    now = iter((0.0, 1.0, 4.0, 9.0))  # outer from 0 to 9, inner from 1 to 4
    timed = step_profile.Timed()
    inner = timed.part("forward", lambda: None)
    outer = timed.part("loss", inner)
    monkeypatch.setattr(step_profile.time, "process_time", lambda: next(now))
    outer()
    assert timed.seconds["forward"] == 3 and timed.seconds["loss"] == 6


def test_the_profile_wants_one_thread(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    with pytest.raises(ValueError, match="one thread"):
        step_profile.profile(rounds=1)


def test_what_a_gpu_said_of_decoding_is_drawn_and_nothing_else(tmp_path, monkeypatch):
    fig = figures.lines(dict(floor=[1, 2]), "", "tokens", "times")
    monkeypatch.setattr(records, "MEASURED", tmp_path)
    before = len(fig.axes[0].lines)
    assert gpu_table.gpu_marks(fig) == 0 and len(fig.axes[0].lines) == before
    row = dict(part="decode", B=8, T=4096, v_cache_us=33.0, gather_us=20.0, materialise_us=60.0)
    row["faster_than_v_cache"] = 1.5  # PyTorch's was faster than ours
    monkeypatch.setattr(records, "rows", lambda name: [row, dict(part="forward")])
    assert gpu_table.gpu_marks(fig) == 1
    marks = [line.get_xydata()[0].tolist() for line in fig.axes[0].lines[before:]]
    assert marks == [[8 * 4096, 1.5], [8 * 4096, 0.5]]


def test_the_cost_of_offloading_is_the_distinct_tokens_once():
    found = offload.offload_cost(length=3000, steps=10, layers=2, G=2, D=16, V=500)
    assert found["prefill_bytes"] == found["distinct"] * 2 * 2 * 16 * 4
    assert 0 <= found["step_bytes"] <= 2 * 2 * 16 * 4 < found["every_row_each_step_bytes"]
    assert (
        found["resident_bytes"] <= found["tables_bytes"]
        and found["resident_bytes"] < found["v_cache_bytes"]
    )


@pytest.mark.slow
def test_the_gpu_bench_is_read_where_triton_is_absent():
    done = warm.run(
        ["-c", 'import sys; sys.modules["triton"] = None; from evidence.bench import gpu']
    )
    assert done.returncode == 0, done.stderr
