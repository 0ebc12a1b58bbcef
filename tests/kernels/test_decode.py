"""Every way to decode equals the reference: split keys, histograms, sorted prefixes; and moves the
bytes it says."""

from types import SimpleNamespace

import pytest
import torch

from minimal.kernels import dense, histogram
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import TOLERANCE, reference
from minimal.model.cache import laid_out
from tests.kernels.shapes import DECODING, Shape

EXACT = TOLERANCE[torch.float32]


def close(mine, right, tolerance=EXACT):
    assert mine.shape == right.shape and torch.isfinite(mine).all()
    assert (mine.double() - right.double()).abs().max() <= tolerance


def bounded(shape, **options):
    """Tensors with QK norm, and the bound that it gives on the logits: sqrt(D) for norms of sqrt(D)
    and no gain."""
    q, k, table, ids, gain = shape.tensors(**options)
    q, k = (torch.nn.functional.rms_norm(x.float(), x.shape[-1:]).to(x.dtype) for x in (q, k))
    return (q, k, table, ids, gain), shape.D**0.5


# ---- Triton --------------------------------------------------------------------------------------


@pytest.mark.parametrize("splits", (None, pytest.param(1, marks=pytest.mark.slow), 7))
@pytest.mark.parametrize("shape", DECODING.values(), ids=DECODING)
def test_split_decode_equals_the_reference_however_the_keys_are_split(shape, splits, interpreter):
    from minimal.kernels.decode import run_split

    inputs = shape.tensors()
    lengths = shape.how["lengths"]
    mine = run_split(
        *inputs,
        None if lengths is None else lengths.int(),
        shape.causal,
        shape.window,
        shape.D**-0.5,
        splits,
    )
    close(mine, reference(*inputs, **shape.how))


OVER_LENGTHS = [name for name, shape in DECODING.items() if shape.T == 1 and shape.lengths]


@pytest.mark.parametrize("name", (*OVER_LENGTHS, "grouped", "one_key_head", "wide"))
def test_a_laid_out_cache_of_which_a_part_is_text_is_read_without_a_mask(
    name, interpreter, monkeypatch
):
    """As a recorded step on a GPU reads values that are stored, in the layout of a cache."""
    shape = DECODING[name]
    if shape.lengths is None:
        shape = shape._replace(lengths=(shape.S, 3))
    q, k, table, ids, gain = shape.tensors()
    k, v = laid_out_as(k), laid_out_as(table[ids])
    right = reference(q, k, table, ids, gain, **shape.how)
    called, split = [], dense.split_keys
    monkeypatch.setattr(dense, "split_keys", lambda *given: called.append(1) or split(*given))
    monkeypatch.setattr(dense, "splits_keys", lambda *given: True)
    close(dense.attention(q, k, v, gain, **shape.how), right)
    assert called == [1]
    # with a mask, or for several queries, it is not
    mask = torch.ones(1, k.shape[1], dtype=torch.bool)
    dense.attention(q, k, v, gain, mask=mask)
    dense.attention(q.expand(-1, 2, -1, -1), k, v, gain, **shape.how)
    assert called == [1]


def laid_out_as(rows):
    """Head by head, with room behind them."""
    buffer = laid_out(rows, rows.shape[1] + 9)
    buffer[:, : rows.shape[1]] = rows
    return buffer[:, : rows.shape[1]]


def test_so_it_is_on_a_gpu_and_nowhere_else(monkeypatch):
    monkeypatch.setattr(dense, "HAS_TRITON", True)
    usual = dict(is_cuda=True, shape=(2, 1, 6, 128), dtype=torch.bfloat16)
    rows = dict(shape=(2, 500, 6, 128), stride=lambda at: 500 * 768 if at == 0 else 1)

    def asked(q=(), k=(), v=()):
        q, k, v = (
            SimpleNamespace(**usual | dict(q)),
            *(SimpleNamespace(**rows | dict(x)) for x in (k, v)),
        )
        with torch.no_grad():
            return dense.splits_keys(q, k, v)

    assert asked()
    assert not asked(q=dict(is_cuda=False)), "a CPU keeps its one call"
    assert not asked(q=dict(dtype=torch.float64))
    assert not asked(q=dict(shape=(2, 1, 2, 256))) and not asked(q=dict(shape=(2, 1, 2, 16)))
    assert not asked(v=dict(shape=(2, 500, 6, 64))), "values of another width: a latent"
    assert not asked(k=dict(stride=lambda at: 2**31 if at == 0 else 1)), "offsets of 32 bits"
    assert not asked(k=dict(stride=lambda at: 2)), "rows that do not lie together"
    assert asked(q=dict(shape=(2, 1, 64, 128)), k=dict(shape=(2, 500, 1, 128)))
    assert not asked(q=dict(shape=(2, 1, 65, 128)), k=dict(shape=(2, 500, 1, 128)))
    monkeypatch.setattr(dense, "HAS_TRITON", False)
    assert not asked()


@pytest.mark.parametrize(
    "S, splits", ((1, 2), (1, 16), (31, 7), (32, 2), (65, 7), (65, 64), (1000, 7), (1000, 64))
)
def test_splits_may_be_empty_and_the_last_one_short(S, splits, interpreter):
    """1,000 keys are 32 tiles: of 64 splits the last 32 have none, and 1 key leaves all but one."""
    from minimal.kernels.decode import run_split

    inputs = Shape(B=1, T=1, S=S, H=1, G=1).tensors()
    for causal, window in ((True, 0), (True, 40)):
        mine = run_split(*inputs, None, causal, window, 32**-0.5, splits)
        close(mine, reference(*inputs, causal=causal, window=window))


def test_another_number_of_splits_is_not_another_kernel():
    """A generation meets dozens of numbers of splits: as constants, each would be compiled."""
    from minimal.kernels import decode

    told, constants = set(), set()
    for kernel in (decode.split, decode.combine, decode.scatter_masses):
        told |= set(kernel.arg_names)
        constants |= set(kernel.fn.__annotations__)
    about_splits = {name for name in told if "SPLITS" in name.upper()}
    assert about_splits == {"splits", "PADDED_SPLITS"}
    assert about_splits & constants == {"PADDED_SPLITS"}, "a power of two: eight at most"


def test_split_decode_of_a_cached_v_is_the_same_kernel_without_ids(interpreter):
    from minimal.kernels.decode import run_split

    q, k, _, _, gain = Shape(T=1, S=90).tensors()
    v, every = torch.randn(2, 90, 2, 32), torch.arange(180, dtype=torch.int32).view(2, 90)
    close(
        run_split(q, k, v, None, gain, None, True, 0, 32**-0.5, 3),
        reference(q, k, v.flatten(0, 1), every, gain),
    )


def test_a_cached_v_may_lie_head_by_head_with_room_behind_it(interpreter):
    """As decoding lays it out: a sequence begins where its buffer does, not S rows on."""
    from minimal.kernels.decode import run_split
    from minimal.kernels.forward import run_forward
    from minimal.model.cache import laid_out

    q, k, _, _, gain = Shape(T=1, S=40).tensors()
    v = torch.randn(2, 40, 2, 32, generator=torch.Generator().manual_seed(1))
    buffer = laid_out(v, 50)
    buffer[:, :40] = v
    how = (gain, None, True, 0, 32**-0.5)
    right = run_split(q, k, v, None, *how, 3)
    assert torch.equal(run_split(q, k, buffer[:, :40], None, *how, 3), right)
    out, _, _ = run_forward(q, k, buffer[:, :40], None, *how, keep=False)
    assert torch.equal(out, run_forward(q, k, v, None, *how, keep=False)[0])


def test_combining_stretches_is_the_softmax_of_their_log_sums_however_large(interpreter):
    from minimal.kernels.decode import combine

    part, lse, out = (
        torch.randn(5, 6, 32),
        torch.randn(5, 6) * 3 + 500,
        torch.full((6, 32), float("nan")),
    )
    lse[1], lse[3, 2] = float("-inf"), float("-inf")  # stretches in which nothing was visible
    lse[:, 4] = float("-inf")  # a query that sees nothing at all
    combine[(6,)](part, lse, None, out, 6, 5, PADDED_SPLITS=8, D=32, PADDED=32)
    right = ((lse * 0.6931471805599453).softmax(0)[..., None] * part).sum(0)
    right[4] = 0
    close(out, right)


@pytest.mark.parametrize("shape", DECODING.values(), ids=DECODING)
def test_the_histogram_kernel_equals_the_reference(shape, interpreter):
    from minimal.kernels.decode import run_histogram

    inputs, bound = bounded(shape)
    lengths = shape.how["lengths"]
    mine = run_histogram(
        *inputs,
        bound=bound,
        causal=shape.causal,
        window=shape.window,
        lengths=None if lengths is None else lengths.int(),
        scale=shape.D**-0.5,
        splits=3,
    )
    close(mine, reference(*inputs, **shape.how))


@pytest.mark.parametrize("V, N, stretches", [(128, 3, 64), (130, 3, 64), (128, 9, 64), (96, 1, 1)])
def test_a_sum_over_a_table_is_the_same_in_stretches_and_whole(V, N, stretches, interpreter):
    """Few rows of shares and a table that divides; else the product as it is."""
    from minimal.kernels.decode import summed_rows

    chance = torch.Generator().manual_seed(0)
    share, table = torch.rand(2, N, V, generator=chance), torch.randn(V, 2, 8, generator=chance)
    right = torch.einsum("gnv,vgd->gnd", share.double(), table.double()).float()
    close(summed_rows(share, table, stretches), right)
    head_major = table.transpose(0, 1).contiguous().transpose(0, 1)
    close(summed_rows(share, head_major, stretches), right)


def test_the_number_of_splits_fills_a_gpu_once_and_never_exceeds_the_work():
    from minimal.kernels.decode import KEYS, how_many_splits

    for B, G, S in ((1, 6, 4096), (1, 6, 131072), (64, 6, 4096), (1, 1, 1), (512, 8, 32)):
        splits = how_many_splits(B, G, S)
        assert 1 <= splits <= max(1, -(-S // KEYS)) and (splits == 1 or splits * B * G <= 132 * 4)


def test_more_query_rows_in_fp32_take_more_warps_where_they_would_spill():
    from minimal.kernels.decode import rows_and_warps

    assert [rows_and_warps(1, rows, 4, 9) for rows in (1, 16, 17, 64)] == [
        *((16, 4), (16, 4), (32, 8), (64, 16))
    ]
    assert [rows_and_warps(1, rows, 4, 8)[1] for rows in (16, 32, 64)] == [4, 4, 8]
    assert {rows_and_warps(T, 8, 2, sm)[1] for T in (1, 8) for sm in (8, 9)} == {4}


def test_a_recorded_step_is_the_step_itself_where_there_is_no_gpu():
    from minimal.kernels.recorded import Graphed

    inputs = Shape(T=1, S=40).tensors()
    step = Graphed(lambda: gather_attention(*inputs), "cpu")
    close(step(), reference(*inputs))


@pytest.mark.parametrize("way", ("call", "products"))
@pytest.mark.parametrize("bound", (None, 30.0))
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_one_query_over_stored_values_is_the_same_by_every_product(way, bound, dtype, monkeypatch):
    from minimal.kernels import dense
    from minimal.kernels.reference import TOLERANCE, by_definition

    monkeypatch.setattr(dense, "FEW_VALUES", 1)
    monkeypatch.setattr(dense, "fastest", lambda question, ways: way)
    g = torch.Generator().manual_seed(0)
    for H, G in ((4, 4), (4, 2), (3, 1)):
        q, k, v = (torch.randn(2, n, h, 16, generator=g) for n, h in ((1, H), (50, G), (50, G)))
        gain = torch.tensor(-0.7)
        right = by_definition(q, k, v, gain, scale=0.3)
        inputs = (x.to(dtype) for x in (q, k, v))
        with torch.no_grad():
            got = dense.attention(*inputs, gain, scale=0.3, bound=bound)
        assert (got - right).abs().max() < TOLERANCE[dtype]


@pytest.mark.parametrize("way", ("call", "products"))
def test_one_query_in_half_precision_reads_stored_values_in_fp32(way, monkeypatch):
    from minimal.kernels import dense

    monkeypatch.setattr(dense, "FEW_VALUES", 1)
    monkeypatch.setattr(dense, "fastest", lambda question, ways: way)
    q, k, table, ids, gain = Shape(T=1, S=50, H=4, G=2).tensors()
    q, k = q.bfloat16(), k.bfloat16()
    right = reference(q.double(), k.double(), table.double(), ids, gain)
    with torch.no_grad():
        mine = gather_attention(q, k, table, ids, gain, way="dense")
    assert mine.dtype == torch.bfloat16
    close(mine, right, TOLERANCE[torch.bfloat16])


# ---- plain PyTorch -------------------------------------------------------------------------------


@pytest.mark.parametrize("bound", (False, True), ids=("any_logits", "bounded"))
@pytest.mark.parametrize("head_major", (False, True), ids=("token_major", "head_major"))
@pytest.mark.parametrize("way", ("rows", "histogram"))
@pytest.mark.parametrize("shape", DECODING.values(), ids=DECODING)
def test_counting_by_token_on_a_cpu_equals_the_reference(shape, way, head_major, bound):
    (q, k, table, ids, gain), largest = bounded(shape)
    right = reference(q, k, table, ids, gain, **shape.how)
    if head_major:
        k, table = (
            k.transpose(1, 2).contiguous().transpose(1, 2),
            table.transpose(0, 1).contiguous().transpose(0, 1),
        )
    mine = gather_attention(
        q, k, table, ids, gain, way=way, bound=largest if bound else None, **shape.how
    )
    close(mine, right)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16, torch.float64))
@pytest.mark.parametrize("way", ("dense", "rows", "histogram"))
def test_other_precisions_stay_within_their_tolerances(way, dtype):
    for name in ("grouped", "ragged_window"):
        shape = DECODING[name]
        for bound in (None, 30.0):
            q, k, table, ids, gain = shape.tensors(dtype)
            right = reference(*(x.double() for x in (q, k, table)), ids, gain, **shape.how)
            close(
                gather_attention(q, k, table, ids, gain, way=way, bound=bound, **shape.how),
                right,
                TOLERANCE[dtype],
            )


@pytest.mark.parametrize("way", ("dense", "rows", "histogram"))
def test_a_table_in_fp32_may_be_read_by_queries_in_bf16(way):
    shape = DECODING["ragged_window"]
    q, k, table, ids, gain = shape.tensors()
    q, k = q.bfloat16(), k.bfloat16()
    right = reference(q.double(), k.double(), table.double(), ids, gain, **shape.how)
    for bound in (None, 30.0):
        mine = gather_attention(q, k, table, ids, gain, way=way, bound=bound, **shape.how)
        assert mine.dtype == torch.bfloat16
        close(mine, right, TOLERANCE[torch.bfloat16])


def test_a_table_in_fp32_may_be_read_by_the_kernels_in_half_precision(interpreter):
    from minimal.kernels.decode import run_histogram, run_split

    (q, k, table, ids, gain), bound = bounded(Shape(T=1, S=90, H=4, G=4))
    q, k = q.half(), k.half()
    right = reference(q.double(), k.double(), table.double(), ids, gain)
    how = dict(causal=True, window=0, lengths=None, scale=32**-0.5)
    for mine in (
        run_split(q, k, table, ids, gain, splits=3, **how),
        run_histogram(q, k, table, ids, gain, bound=bound, **how),
    ):
        assert mine.dtype == torch.float16
        close(mine, right, TOLERANCE[torch.float16])


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
@pytest.mark.parametrize("way", ("rows", "histogram"))
def test_half_precision_counts_a_long_text_without_losing_tokens_or_overflowing(way, dtype):
    """100,000 keys of each of two tokens: sums in bfloat16 would stop at 256, float16 ends at
    65,504."""
    S = 200_000
    q, k, table = torch.zeros(1, 1, 1, 32), torch.zeros(1, S, 1, 32), torch.eye(32)[:2, None]
    ids = torch.zeros(1, S, dtype=torch.int32)
    ids[0, ::2] = 1
    out = gather_attention(q.to(dtype), k.to(dtype), table.to(dtype), ids, way=way, bound=1.0)[
        0, 0, 0, :2
    ]
    assert (out - 0.5).abs().max() < TOLERANCE[dtype]


def test_logits_beyond_every_exponential_are_safe_without_a_bound_and_with_a_large_one():
    q, k, table, ids, gain = Shape(T=1, S=50).tensors()
    for bound in (None, 1e4):
        for way in ("rows", "histogram"):
            close(
                gather_attention(q * 100, k * 10, table, ids, gain, way=way, bound=bound),
                reference(q * 100, k * 10, table, ids, gain),
            )


def test_a_table_of_the_tokens_that_occur_gives_the_same_answer():
    q, k, table, ids, gain = DECODING["many_words"].tensors()
    small, local = histogram.shrink(table, ids)
    assert len(small) == ids.unique().numel() < len(table)
    close(histogram.histogram_decode(q, k, small, local, gain), reference(q, k, table, ids, gain))


def test_counting_by_token_gives_the_same_bits_in_every_run():
    inputs = Shape(B=2, T=1, S=5000, V=50, H=4, G=4).tensors()
    first = gather_attention(*inputs, way="histogram")
    assert all(torch.equal(gather_attention(*inputs, way="histogram"), first) for _ in range(5))


def test_rows_are_never_stored_the_largest_new_tensor_is_smaller_than_v():
    """The paper's way writes B*S*G*D numbers every step. Ours may not: watched through PyTorch's
    own allocations."""
    shape = Shape(B=1, T=1, S=4096, H=4, G=4, D=64, V=500)
    inputs = shape.tensors()
    from torch.profiler import ProfilerActivity, profile

    for way, allowed in (("rows", 0.25), ("histogram", 0.25), ("dense", None)):
        gather_attention(*inputs, way=way)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
            gather_attention(*inputs, way=way)
        largest = max(event.self_cpu_memory_usage for event in seen.events())
        value_bytes = 4096 * 4 * 64 * 4
        assert largest < allowed * value_bytes if allowed else largest >= value_bytes, (
            way,
            largest,
        )
