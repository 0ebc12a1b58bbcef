"""What a GPU said, as its page tells it: the arithmetic, and what its sentences rest on."""

import pytest

from course import records
from evidence.bench import gpu_table, table
from evidence.bench.gpu_table import SPANS
from evidence.bench.graphs import split_bytes
from minimal.data import results
from minimal.kernels import dense
from minimal.kernels.decode import summed_rows


def cells(markdown):
    return [line[2:-2].split(" | ") for line in markdown.splitlines()[2:]]


@pytest.fixture
def on_file(tmp_path, monkeypatch):
    """Puts rows into a file of what a GPU said, in the place of what is recorded."""
    monkeypatch.setattr(records, "MEASURED", tmp_path)
    head = results.header("invented", "none", dict(name="none", fingerprint="none", tokens=0))
    return lambda name, *rows: [
        results.append(tmp_path / f"{name}.json", row, head) for row in rows
    ]


DECODE = dict(part="decode", B=2, T=1000, H=4, G=4, D=32, gather_us=10.0, materialise_us=30.0)
DECODE |= dict(faster_than_v_cache=1.5, histogram_us=15.0, floor_us=8.0, share_of_floor=0.8)


def test_decode_is_told_as_times_the_best_v_cache_beside_what_bytes_promise(on_file):
    few = {name: value for name, value in DECODE.items() if name != "histogram_us"}
    few |= dict(B=1, H=8, faster_than_v_cache=0.9)
    on_file("gather_gpu", dict(part="bandwidth", memory_gb_s=64.0), DECODE, few)
    # 2 x 2,000 keys and values of 256 bytes at 64 GB/s are 16 us
    assert gpu_table.promised(DECODE) == pytest.approx(16 / 8)
    assert cells(gpu_table.decode()) == [
        ["1,000", "1 × 1,000", "8 on 4", "0.90", "0.30", "", "1.00", "80 %"],
        ["2,000", "2 × 1,000", "4", "1.50", "0.50", "1.00", "2.00", "80 %"],
    ]


def test_forward_and_backward_are_told_in_one_line_of_a_shape(on_file):
    shape = dict(B=2, T=40, H=3, D=32, window=0)
    forward = dict(part="forward", fused_us=10.0, fused_over_stored=0.8, rows_and_sdpa_us=5.0)
    backward = dict(part="backward", fused_us=10.0, rows_and_sdpa_us=20.0)
    flex = dict(rows_and_flex_us=15.0)
    windowed = shape | dict(window=9)
    rows = [shape | forward, windowed | forward | flex, windowed | backward | flex]
    on_file("gather_gpu", *rows, shape | backward)
    name = "2 × 40, 3 × 32"
    assert cells(gpu_table.attention()) == [
        [name, "none", "0.80", "0.50", "", "2.00", ""],
        [name, "9", "0.80", "0.50", "1.50", "2.00", "1.50"],
    ]


def test_a_run_that_was_cut_off_is_named_and_none_is_invented(on_file):
    step = dict(part="training", tokens_per_second=5000, share=0.5, tflops=494.5)
    run = dict(part="run", seed=0, loss=2.0, bpb=0.7, epochs=0.5)
    steps = [step | dict(plan=plan) for plan in ("standard", "bov")]
    on_file("gpu_session", *steps, run | dict(plan="standard"))
    assert cells(gpu_table.training()) == [
        ["`standard`", "5,000", "50 %", "50 %", "2.000", "0.700"],
        ["`bov`", "5,000", "50 %", "50 %", "", ""],
    ]
    assert gpu_table.epochs() == "0.50"
    on_file("gpu_session", run | dict(plan="bov", loss=1.9))
    assert gpu_table.run_leads("bov") == pytest.approx([0.1])
    # a second seed of standard has no partner, until bov has it too
    on_file("gpu_session", run | dict(plan="standard", seed=1, loss=2.05))
    assert gpu_table.run_leads("bov") == pytest.approx([0.1])
    on_file("gpu_session", run | dict(plan="bov", seed=1, loss=1.93))
    assert gpu_table.run_leads("bov") == pytest.approx([0.1, 0.12])
    assert [line[4] for line in cells(gpu_table.training())] == ["2.000, 2.050", "1.900, 1.930"]


def test_rows_wider_than_keys_and_whole_generations_are_told_by_the_row(on_file):
    wide = DECODE | dict(part="wide", T=500, narrowed_us=7.5)
    on_file("gather_gpu", wide)
    assert cells(gpu_table.wide()) == [["1,000", "2 × 500", "1.50", "2.00", "1.00"]]
    row = dict(part="generation", texts=4, length=1000, bytes_allow=1.25, interval=[0.9, 1.1])
    row |= dict(floor_tokens_per_second=1000.0, times_standard=1.0)
    one = row | dict(plan="standard", tokens_per_second=500.0)
    other = row | dict(plan="bov", tokens_per_second=100.0, times_standard=0.2)
    loop = row | dict(plan="plain loop", tokens_per_second=800.0, times_standard=1.6)
    called = row | dict(part="called", plan="bov-every", times_standard=0.8)
    on_file("gpu_session", called, one)
    assert cells(gpu_table.generation())[0][-2:] == ["", "50 %"], "and without the loop"
    on_file("gpu_session", other, loop)
    assert cells(gpu_table.generation()) == [
        ["4 × 1,000", "`standard`", "500", "1.00 (0.90 to 1.10)", "1.25", "0.62", "50 %"],
        ["4 × 1,000", "`bov`", "100", "0.20 (0.90 to 1.10)", "1.25", "0.12", "10 %"],
        ["4 × 1,000", "`plain loop`", "800", "1.60 (0.90 to 1.10)", "1.25", "1.00", "80 %"],
    ]
    spans = {name: [*SPANS[name](4, 1000)] for name in ("over-loop", "floor", "step-ms")}
    assert spans["over-loop"] == pytest.approx([0.625, 0.125])
    assert spans["floor"] == [0.5, 0.1] and spans["step-ms"] == [2.0, 10.0]
    assert [*SPANS["loop"]()] == [1.6] and SPANS["called"]() == [0.8]


def test_what_the_page_says_of_a_gpu_without_a_number_is_what_was_measured():
    forward, backward = gpu_table.gpu_rows("forward"), gpu_table.gpu_rows("backward")
    # PyTorch's attention is faster than our fused kernels, unless a window is a mask to it
    for row in forward + backward:
        assert (row["rows_and_sdpa_us"] > row["fused_us"]) == bool(row["window"])
    # FlexAttention is faster than ours wherever it was tried
    tried = [row for row in forward + backward if "rows_and_flex_us" in row]
    assert len(tried) >= 6 and all(row["rows_and_flex_us"] < row["fused_us"] for row in tried)
    # narrowing the whole table in every step pays with several long texts only
    wide = gpu_table.gpu_rows("wide")
    narrow = [(row["B"], row["T"], row["narrowed_us"] < row["gather_us"]) for row in wide]
    assert narrow == [(1, 16384, False), (1, 131072, False), (4, 131072, True)]
    # as one graph, generation with tables is faster where texts are long
    rows = gpu_table.recorded_steps()
    tables = [row for row in rows if row["plan"].startswith("bov")]
    long = [row for row in tables if row["texts"] * row["length"] > 2**17 - 1]
    assert len(long) == 6 and all(row["interval"][0] > 1.05 for row in long)
    # behind a short text no plan differs much
    short = gpu_table.plans_at(1, 4096)
    assert all(0.95 < row["times_standard"] < 1.1 for row in short)
    # beside the plain loop everything but bov-every is behind it or level
    ahead = [row for row in rows if gpu_table.over_loop(row) > 1.01]
    assert {(row["plan"], row["length"]) for row in ahead} == {("bov-every", 131072)}
    # called from Python, tables made it slower
    called = gpu_table.gpu_rows("called", gpu_table.FILE)
    slower = [row["times_standard"] < 1 for row in called if row["plan"].startswith("bov")]
    assert slower == [True] * 6
    # the histogram never beats the gather
    decode = [row for row in gpu_table.gpu_rows("decode") if "histogram_us" in row]
    assert decode and all(row["histogram_us"] > row["gather_us"] for row in decode)
    # the kernel of sum_by_token leads as drawn and trails from a text's share on
    drawn, *hot_rows = gpu_table.gpu_rows("table")
    assert drawn["sum_by_token_us"] < min(drawn["embedding_us"], drawn["atomics_us"])
    assert all(row["sum_by_token_us"] > row["embedding_us"] for row in hot_rows)
    # all checks against the definition held
    (row,) = gpu_table.gpu_rows("kernels", gpu_table.FILE)
    assert gpu_table.unequal() == f"0 of {len(row['equal'])}"


@pytest.mark.parametrize("name", table.PAGES)
def test_the_tables_of_a_page_are_what_the_records_say(name):
    text = (records.EVIDENCE / name).read_text(encoding="utf-8")
    made = [maker() for maker in table.PAGES[name]]
    assert table.with_tables(text, made) == text, "python -m evidence.bench.table renews them"
    moved = [one[:-3] + "9 |" for one in made]
    assert table.with_tables(text, moved) != text


def test_a_page_that_lacks_a_table_says_so():
    with pytest.raises(ValueError, match="wanted a table with the head '. a . b .': put one line"):
        table.with_tables("no table", ["| a | b |\n| --- | --- |\n| 1 | 2 |"])


def test_floors_on_file_are_the_bytes_that_are_counted_today():
    speed, again = gpu_table.gpu_rows("bandwidth")  # of the first session, and of the second
    assert again["memory_gb_s"] == pytest.approx(speed["memory_gb_s"], rel=0.03)
    for row in gpu_table.gpu_rows("decode"):
        B, S, H, G, D = (row[name] for name in "BTHGD")
        memory, l2 = split_bytes(B, 1, S, H, G, D, 32768, distinct=row["distinct"])
        floor = max(memory / speed["memory_gb_s"], l2 / speed["l2_gb_s"]) / 1e3
        assert row["floor_us"] == pytest.approx(floor)
        assert 1 < gpu_table.promised(row) < 2 and row["share_of_floor"] < 1


def test_a_split_of_hot_tokens_would_save_less_than_a_twentieth_of_a_backward():
    drawn, warm, _ = gpu_table.gpu_rows("table")
    shape = dict(B=32, T=2048, D=128, window=0)
    (row,) = (row for row in gpu_table.gpu_rows("backward") if shape.items() <= row.items())
    assert 0 < warm["sum_by_token_us"] - drawn["sum_by_token_us"] < row["fused_us"] / 20


def test_a_sum_in_stretches_took_off_what_its_docstring_says():
    wide = gpu_table.gpu_rows("wide")
    off = [100 * (1 - row["histogram_us"] / row["histogram_whole_us"]) for row in wide]
    assert f"{min(off):.0f} to {max(off):.0f} %" in summed_rows.__doc__


def test_a_window_by_tiles_and_by_its_mask_took_what_a_docstring_says():
    (row,) = (
        row for row in gpu_table.gpu_rows("forward") if (row["T"], row["window"]) == (2048, 512)
    )
    said = f"took {row['flex_us']:.0f} us by it and {row['sdpa_us']:,.0f} by the mask"
    assert said in " ".join(dense.__doc__.split())
