"""The front door chooses a way from shapes, refuses what it cannot do in one sentence, and works
without Triton."""

import re
import time

import pytest
import torch

from course import records
from minimal.kernels import dense, fastest, gather, histogram, reference
from minimal.kernels.check import check, may_look_now
from minimal.kernels.gather import gather_attention
from minimal.kernels.route import is_close, route, table_rows
from tests import warm
from tests.kernels.shapes import DECODING, TRAINING, Shape

# ---- errors --------------------------------------------------------------------------------------


def wrong(**changes):
    q, k, table, ids, gain = Shape().tensors()
    return dict(dict(q=q, k=k, table=table, ids=ids, gain=gain), **changes)


ids_of = torch.zeros(2, 40, dtype=torch.int32)
MISTAKES = {
    "ids want to name rows 0 to 10": wrong(ids=ids_of + 11),
    "padding too, got -1 to -1": wrong(ids=ids_of - 1),
    "ids wants torch.int32, got torch.int64": wrong(ids=ids_of.long()),
    "ids wants one id a key, (2, 40), got torch.Size([2, 39])": wrong(ids=ids_of[:, 1:]),
    "ids wants 2 dimensions": wrong(ids=ids_of[0]),
    "k wants batch 2 and head width 32": wrong(k=torch.zeros(2, 40, 2, 64)),
    "k wants batch 2": wrong(k=torch.zeros(3, 40, 2, 32)),
    "2 heads want to be a multiple of k's 3": wrong(k=torch.zeros(2, 40, 3, 32)),
    "table wants (V, 2, 32)": wrong(table=torch.zeros(11, 1, 32)),
    "table wants 3 dimensions": wrong(table=torch.zeros(11, 64)),
    "table wants a floating dtype": wrong(table=torch.zeros(11, 2, 32, dtype=torch.int32)),
    "q and k want one floating dtype": wrong(k=torch.zeros(2, 40, 2, 32).half()),
    "gain wants a 0-D tensor": wrong(gain=torch.ones(1)),
    "gain wants a 0-D tensor or None, got 0.7": wrong(gain=0.7),
    "window wants": wrong(window=-1),
    "scale wants a positive number": wrong(scale=0.0),
    "lengths wants 2 integers": wrong(lengths=torch.tensor([3])),
    "lengths wants 2 integers, one": wrong(lengths=torch.tensor([3.0, 4.0])),
    "lengths want 0 to 40 keys, got 3 to 41": wrong(lengths=torch.tensor([3, 41])),
    "all tensors want one device": wrong(table=torch.zeros(11, 2, 32, device="meta")),
    "way wants one of dense": wrong(way="sideways"),
    "float64": wrong(way="fused", **{n: x.double() for n, x in wrong().items() if n in "qk"}),
    "multiplies bfloat16 wrongly": wrong(
        way="fused", **{n: x.bfloat16() for n, x in wrong().items() if n in "qk"}
    ),
    "head width of 32 to 128, got 8": wrong(
        way="fused", **{n: wrong()[n][..., :8] for n in ("q", "k", "table")}
    ),
    "way='rows' has no backward": wrong(
        way="rows", q=torch.zeros(2, 40, 2, 32, requires_grad=True)
    ),
}


@pytest.mark.parametrize("sentence", MISTAKES)
def test_a_wrong_call_is_answered_by_one_clear_sentence(sentence, interpreter):
    with pytest.raises(ValueError) as caught:
        gather_attention(**MISTAKES[sentence])
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_histogram_that_follows_no_maximum_refuses_unbounded_logits(interpreter):
    from minimal.kernels.decode import run_histogram

    q, k, table, ids, gain = DECODING["plain"].tensors()
    how = dict(causal=True, window=0, lengths=None, scale=1.0)
    with pytest.raises(ValueError, match="wants .logit. <= "):
        run_histogram(q, k, table, ids, gain, bound=41.0, **how)


# ---- the rule that chooses -----------------------------------------------------------------------

CPU, GPU = dict(device="cpu"), dict(device="cuda", triton=True)
LONG, LATER = (8, 2048, 2048, 6, 6, 128, 32768), (1, 1, 131072, 6, 6, 128, 32768)
CHOICES = [  # (B, T, S, H, G, D, V), what else is known, the way
    (LONG, dict(CPU, training=True), "dense"),
    (LONG, dict(GPU, training=True), "dense"),
    (LONG, dict(GPU, training=True, window=512), "dense"),  # a quarter: measured, and d12's
    (LONG, dict(GPU, training=True, window=256, triton=False), "dense"),
    (LONG, CPU, "dense"),
    (LATER, CPU, "histogram"),
    (LATER, dict(CPU, window=512), "dense"),
    (LATER, dict(CPU, window=8192), "rows"),
    ((1, 1, 8192, 6, 6, 128, 32768), CPU, "rows"),
    ((8, 1, 8192, 6, 6, 128, 32768), CPU, "histogram"),
    ((1, 1, 512, 2, 2, 32, 1024), CPU, "dense"),
    (LATER, GPU, "split"),
    (LATER, dict(GPU, k_bytes=1, table_bytes=2), "split"),
    ((1, 1, 131072, 48, 6, 128, 32768), dict(GPU, k_bytes=1, table_bytes=2), "split"),
    (LATER, dict(GPU, triton=False), "dense"),
    ((8, 512, 512, 4, 4, 16, 512), dict(GPU, training=True, window=64), "dense"),  # as `smoke`
    ((1, 1, 512, 4, 4, 16, 512), GPU, "dense"),
    ((1, 1, 131072, 2, 2, 256, 32768), dict(GPU, k_bytes=1, table_bytes=2), "dense"),
    (LONG, dict(GPU, training=True, window=256, k_bytes=8, table_bytes=8), "dense"),
    (LATER, dict(GPU, k_bytes=8, table_bytes=8), "dense"),
    ((1, 1, 65536, 6, 6, 128, 32768), dict(GPU, k_bytes=2, table_bytes=4), "split"),
    ((8, 1, 32768, 6, 6, 128, 32768), dict(GPU, k_bytes=2, table_bytes=4), "split"),
]


@pytest.mark.parametrize("sizes, known, way", CHOICES)
def test_the_way_follows_from_shapes_and_comes_with_a_reason(sizes, known, way):
    chosen, reason = route(*sizes, **known)
    assert chosen == way and len(reason) > 20


@pytest.mark.parametrize("groups, queries", [(1, 8), (2, 16), (8, 64)])
def test_few_queries_are_those_that_share_a_key_head(groups, queries):
    """Sixty-four query rows a key head: with groups, fewer tokens at once."""
    for T, decoding in ((1, True), (queries, True), (queries + 1, False)):
        way, _ = route(1, T, 131072, 8, groups, 128, 32768, **GPU)
        assert (way == "split") == decoding, (groups, T)
        way, _ = route(1, T, 131072, 8, groups, 128, 32768, **CPU)
        assert (way in ("rows", "histogram")) == decoding, (groups, T)


@pytest.mark.parametrize(
    "B, T, H, G, window, by_position, by_token",
    [
        (1, 1, 4, 4, 0, 4 * 100, 4 * 50),  # every query head reads the table alone
        (1, 1, 4, 2, 0, 4 * 100, 2 * 50),  # two of them share a key head
        (1, 3, 4, 4, 0, 12 * 100, 4 * 50),  # so do three tokens
        (2, 1, 4, 4, 0, 8 * 100, 4 * 50),  # and two sequences
        (1, 3, 4, 2, 7, 12 * 10, 2 * 50),  # three queries and seven keys to their left
        (1, 3, 4, 2, 99, 12 * 100, 2 * 50),
    ],
)
def test_rows_of_the_table_are_counted_by_who_reads_them(B, T, H, G, window, by_position, by_token):
    assert table_rows(B, T, 100, H, G, 50, window) == (by_position, by_token)


def test_a_table_of_six_times_the_rows_is_close_for_one_token_and_far_for_three():
    """One query a key head reads the rows of tokens that occur only; three read the whole table."""
    assert is_close(1, 1, 100, 4, 4, 600) and not is_close(1, 3, 100, 4, 4, 1800)


def clocked(part, **where):
    """What the GPU on record said, the best setting of each way."""
    rows = records.rows("gather_gpu")
    return [row for row in rows if row["part"] == part and where.items() <= row.items()]


def ends(ratios, digits=1):
    return [f"{end:.{digits}f}" for end in (min(ratios), max(ratios))]


def test_every_number_of_a_reason_was_measured():
    """The reasons for GPUs quote notebooks/evidence/measured/gather_gpu.json."""
    numbers = lambda sizes, **known: re.findall(r"\d+\.\d+", route(*sizes, **GPU | known)[1])
    # training: through the rows that PyTorch wants, in a window FlexAttention
    reason, looked_up, faster = route(*LONG, **GPU, training=True)[1], [], []
    for row in clocked("forward"):
        best = "flex" if row["window"] else "sdpa"
        looked_up.append(1 - row[f"{best}_us"] / row[f"rows_and_{best}_us"])
        faster.append(row["fused_us"] / row[f"rows_and_{best}_us"])
    assert f"{100 * min(looked_up):.0f} to {100 * max(looked_up):.0f} %" in reason
    back = [1 / row["fused_over_dense"] for row in clocked("backward")]
    assert re.findall(r"\d+\.\d+", reason) == ends(faster) + ends(back)
    # decode, over values that are stored and over a table
    split = [row["v_cache_us"] / row["sdpa_us"] for row in clocked("decode")]
    assert re.findall(r"\d?\.\d\d", dense.splits_keys.__doc__) == [
        end.removeprefix("0") for end in ends(split, 2)
    ]
    long = [row["faster_than_v_cache"] for row in clocked("decode") if row["B"] * row["T"] >= 16384]
    assert numbers(LATER) == ends(long)
    (few,) = clocked("decode", B=1, T=4096)
    assert numbers((1, 1, 4096, 6, 6, 128, 32768)) == [f"{1 / few['faster_than_v_cache']:.1f}"]
    assert few["gather_us"] < min(few["materialise_us"], few["rows_and_sdpa_us"]), "without a V"
    # rows twice as wide as keys, beside rows as wide as keys
    wide = dict(k_bytes=2, table_bytes=4)
    (short,) = clocked("wide", T=16384)
    ahead = [row["faster_than_v_cache"] for row in clocked("wide", T=131072)]
    (same,) = clocked("decode", B=1, T=131072)
    told = [f"{short['faster_than_v_cache']:.1f}", *ends(ahead)]
    assert numbers(LATER, **wide) == [*told, f"{same['faster_than_v_cache']:.1f}"]
    assert short["faster_than_v_cache"] < 1 < min(ahead) and len(clocked("wide")) == 3


def test_what_no_gpu_has_said_is_not_claimed():
    known = dict(GPU, k_bytes=1, table_bytes=2)
    assert "not yet measured on a GPU" in route(*LATER, **known)[1]
    without = [row["histogram_us"] / row["gather_us"] for row in clocked("decode", H=6)]
    assert min(without) > 1, "where keys are as small as rows the bins never won"
    smaller = {
        (row["B"], row["T"]): row["histogram_us"] / row["gather_us"] for row in clocked("wide")
    }
    won = [shape for shape, ratio in smaller.items() if ratio < 1]
    assert won == [(4, 131072)] and smaller[won[0]] > 0.95, "by a hair, in one case"
    assert all(row["histogram_us"] < row["histogram_whole_us"] for row in clocked("wide"))


def test_the_front_door_takes_the_chosen_way(monkeypatch):
    taken = []
    for name in gather.WAYS:
        monkeypatch.setitem(gather.WAYS, name, lambda *a, name=name, **b: taken.append(name))
    for T, S, V, grad in (
        (40, 40, 11, True),
        (1, 40, 11, False),
        (1, 9000, 11, False),
        (1, 9000, 80000, False),
    ):
        gather_attention(*Shape(T=T, S=S, V=V).tensors(grad=grad))
    assert taken == ["dense", "dense", "histogram", "rows"]


def test_a_window_makes_the_past_short_whatever_the_way(monkeypatch):
    lengths = []
    for name in gather.WAYS:
        monkeypatch.setitem(gather.WAYS, name, lambda q, k, *a, **b: lengths.append(k.shape[1]))
    for T, S, window in ((1, 150, 40), (3, 150, 40), (1, 41, 40), (150, 150, 40), (1, 150, 0)):
        gather_attention(*Shape(T=T, S=S).tensors(), window=window)
    assert lengths == [41, 43, 41, 150, 150]


def test_a_look_at_the_ids_of_a_gpu_is_once_a_step_in_inference_too(monkeypatch):
    class OnGPU(torch.Tensor):
        is_cuda = True

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            ids = torch.zeros(1, 4, dtype=torch.int32).as_subclass(OnGPU)
            assert [may_look_now(ids, V) for V in (11, 11, 12)] == [True, False, True]
    ids = torch.zeros(1, 4, dtype=torch.int32).as_subclass(OnGPU)
    assert may_look_now(ids, 11) and not may_look_now(ids, 11)
    ids[0, 0] = 1
    assert may_look_now(ids, 11)


# ---- a model's table, in fp32 under bf16 activations ---------------------------------------------


def half_a_model():
    from minimal.variants import build

    model = build("bov", "tiny", compute=torch.bfloat16)
    for bank in model.banks.values():
        torch.nn.init.normal_(bank.weight)
    return model, torch.randint(
        model.config.vocab, (2, 40), generator=torch.Generator().manual_seed(0)
    )


def test_a_models_table_reaches_attention_uncopied(monkeypatch):
    model, ids = half_a_model()
    from minimal.model import attend

    seen, whole = [], attend.unchecked
    monkeypatch.setattr(attend, "unchecked", lambda *a, **b: seen.append(a[2]) or whole(*a, **b))
    with torch.inference_mode():
        model.eval()(ids, cache=model.cache())
    assert [table.data_ptr() for table in seen] == [
        bank.weight.data_ptr() for bank in model.banks.values()
    ]
    assert len(seen) == 4 and {table.dtype for table in seen} == {torch.float32}


def test_a_table_in_fp32_gives_what_its_copy_in_bf16_gave_with_finer_gradients(monkeypatch):
    from minimal.model import tape, values

    model, ids = half_a_model()

    def outputs():
        model.zero_grad()
        out = model.train()(ids)
        out.square().mean().backward()
        with torch.inference_mode():
            read = model.eval()(ids, cache=model.cache())
        return out.detach(), read, *(bank.weight.grad.clone() for bank in model.banks.values())

    mine = outputs()
    monkeypatch.setattr(values, "Bank", lambda table, *rest: tape.Bank(table.bfloat16(), *rest))
    for now, before in zip(mine, outputs(), strict=True):
        assert now.dtype == before.dtype and torch.isfinite(now).all()
        assert (now - before).abs().max() <= reference.TOLERANCE[
            torch.bfloat16
        ] * before.abs().max()


def test_the_dense_way_compiles_in_one_piece():
    inputs = Shape().tensors(grad=True)
    compiled = torch.compile(gather_attention, backend="eager", fullgraph=True)
    assert torch.equal(compiled(*inputs, window=7), gather_attention(*inputs, window=7))


@pytest.mark.parametrize("shape", (TRAINING | DECODING).values(), ids=TRAINING | DECODING)
def test_the_mask_is_the_rule_that_its_docstring_states_query_by_query(shape):
    lengths = shape.how["lengths"]
    seen = reference.visible(shape.T, shape.S, **shape.how)
    assert seen.ndim == (2 if lengths is None else 4)
    seen = seen.expand(shape.B, 1, shape.T, shape.S)[:, 0]
    for b in range(shape.B):
        length = shape.S if lengths is None else int(lengths[b])
        start = 0 if shape.T == shape.S else length - shape.T
        for t in range(shape.T):
            at = start + t
            last = min(length - 1, at) if shape.causal else length - 1
            first = max(0, at - shape.window) if shape.window else 0
            right = [first <= s <= last for s in range(shape.S)]
            assert seen[b, t].tolist() == right, (b, t)


def test_models_and_kernels_share_one_mask_and_one_definition():
    from minimal import gpt
    from minimal.kernels import dense
    from minimal.model import attend

    assert gpt.weights is reference.weights
    assert attend.attention is dense.attention and dense.visible is reference.visible


# ---- the same by measurement ---------------------------------------------------------------------


def test_where_bytes_leave_it_open_both_ways_are_timed_once_and_the_faster_is_kept(monkeypatch):
    """9,000 keys, 20,000 rows: within a factor of four. A second call asks nobody again."""
    monkeypatch.setattr(fastest, "CHOSEN", {})
    inputs, taken = Shape(T=1, S=9000, V=20000).tensors(), []
    slow = dict(rows=0.0, histogram=0.02)

    def timed(name):
        return lambda *a, **b: taken.append(name) or time.sleep(slow[name])

    for name in slow:
        monkeypatch.setitem(gather.WAYS, name, timed(name))
    gather_attention(*inputs)
    assert set(taken) == {"rows", "histogram"} and taken[-1] == "rows"
    slow.update(rows=0.02, histogram=0.0)
    before = len(taken)
    gather_attention(*inputs)
    assert taken[before:] == ["rows"], "the answer is remembered"
    monkeypatch.setattr(fastest, "CHOSEN", {})
    gather_attention(*inputs)
    assert taken[-1] == "histogram"


def test_a_text_much_shorter_than_the_table_is_measured_too():
    """The histogram reads rows of tokens that occur, so a large table is no reason against it."""
    assert is_close(1, 1, 3000, 2, 2, 20000)
    assert not is_close(1, 1, 2000, 2, 2, 20000), "ten bins to clear for a key"
    assert not is_close(1, 1, 90000, 2, 2, 20000), "every row read four times by position"


@pytest.mark.parametrize("way", ("occurring", "streamed", "product"))
def test_every_way_to_read_the_rows_of_bins_is_the_definition(way, monkeypatch):
    inputs = Shape(B=1, T=1, S=700, V=300).tensors()
    monkeypatch.setattr(histogram, "fastest", lambda _, ways: way if way in ways else "keys_first")
    found = gather_attention(*inputs, way="histogram")
    assert (found - reference.reference(*inputs)).abs().max() <= reference.TOLERANCE[torch.float32]


def test_rows_of_tokens_that_do_not_occur_can_be_left_unread(monkeypatch):
    q, k, table, ids, gain = Shape(B=1, T=1, V=60).tensors()
    right = gather_attention(q, k, table, ids, gain, way="histogram")
    absent = torch.ones(len(table), dtype=torch.bool)
    absent[ids.flatten()] = False
    assert absent.any() and (~absent).any()
    table[absent] = torch.nan
    first = lambda _, ways: "occurring" if "occurring" in ways else "keys_first"
    monkeypatch.setattr(histogram, "fastest", first)
    found = gather_attention(q, k, table, ids, gain, way="histogram")
    assert (found - right).abs().max() <= reference.TOLERANCE[torch.float32]
    assert histogram.tokens_in(torch.tensor([[4, 2], [4, 0]]), 6).tolist() == [0, 2, 4]


def test_a_way_that_is_asked_for_by_name_is_taken_unmeasured(monkeypatch):
    taken = []
    for name in ("rows", "histogram"):
        monkeypatch.setitem(gather.WAYS, name, lambda *a, name=name, **b: taken.append(name))
    gather_attention(*Shape(T=1, S=9000, V=20000).tensors(), way="histogram")
    assert taken == ["histogram"]


@pytest.mark.parametrize("shape", DECODING.values(), ids=DECODING)
def test_either_product_gives_the_same_logits_within_the_tolerance(shape, monkeypatch):
    (q, k, table, ids, gain), found = shape.tensors(), {}
    for name in histogram.PRODUCTS:
        monkeypatch.setattr(
            histogram,
            "fastest",
            lambda question, ways, name=name: name if name in ways else "product",
        )
        for way in ("rows", "histogram"):
            found[name, way] = gather_attention(q, k, table, ids, gain, way=way, **shape.how)
    right = reference.reference(q, k, table, ids, gain, **shape.how)
    for answer in found.values():
        assert (answer - right).abs().max() <= reference.TOLERANCE[torch.float32]


def test_keys_that_lie_by_position_are_not_copied_for_the_product():
    """B sequences of (S, G, D): a product over the batch would first copy every key."""
    from torch.profiler import ProfilerActivity, profile

    q, k, table, ids, _ = Shape(B=4, T=1, S=4096, D=64).tensors()
    for way in ("rows", "histogram"):
        gather_attention(q, k, table, ids, way=way)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            gather_attention(q, k, table, ids, way=way)
        largest = max(event.self_cpu_memory_usage for event in seen.events())
        assert largest < k.numel() * 4 / 4, (way, largest)


def test_check_alone_is_quiet_about_what_is_right():
    for shape in (TRAINING | DECODING).values():
        check(*shape.tensors(), shape.window, shape.how["lengths"], None)


# ---- without Triton ------------------------------------------------------------------------------


def test_importing_the_front_door_loads_no_triton():
    code = (
        "import sys, minimal.kernels.gather, minimal.kernels.histogram\n"
        "print('triton' in sys.modules)"
    )
    done = warm.run(["-c", code])
    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.slow
def test_without_triton_everything_works_and_says_so_once():
    done = warm.run(
        [
            "-c",
            """
import sys, warnings
sys.modules["triton"] = None  # importing it now raises ImportError
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "triton" else find(name)
import torch
from minimal.kernels import backward, decode, gather, histogram, reference
from course import compiled, offload
torch.manual_seed(0)
q, k = torch.randn(2, 1, 9, 2, 32)
table = torch.randn(5, 2, 32, requires_grad=True)
ids = torch.randint(5, (1, 9), dtype=torch.int32)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(3):
        out = gather.gather_attention(q, k, table, ids, way="fused")
out.sum().backward()
right = reference.reference(q, k, table, ids)
print(len(said), said[0].message, (out - right).abs().max().item() < 1e-5, table.grad is not None)
from minimal.kernels.route import route
print(route(1, 1, 4096, 6, 6, 128, 32768, device="cuda")[1])
""",
        ]
    )
    assert done.stdout.splitlines() == [
        "1 gather_attention: Triton cannot run on cpu tensors here, so fused becomes dense "
        "True True",
        "Triton is not installed",
    ], done.stderr
