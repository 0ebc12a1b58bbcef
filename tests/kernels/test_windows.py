"""A windowed layer on a GPU computes the tiles of its window, and equals the mask that it replaces.

What chooses it there is asked here; what it computes is called directly: uncompiled FlexAttention
is plain PyTorch, on a CPU too."""

import collections
from types import SimpleNamespace

import pytest
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.nn.attention import flex_attention as flex

from minimal.kernels import dense
from minimal.kernels.reference import TOLERANCE, by_definition
from minimal.model import attend
from minimal.model.tape import Bank, Rows
from minimal.variants import build
from tests.defined import as_defined
from tests.kernels import on_gpu
from tests.kernels.shapes import Shape

pytestmark = pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")

EXACT = TOLERANCE[torch.float32]


@pytest.fixture
def backward_on_a_cpu(monkeypatch):
    """FlexAttention refuses gradients on a CPU because its kernel there has none; its definition
    has, and PyTorch's own reference is that."""
    monkeypatch.setattr(flex, "_validate_device", lambda *_: None)


@pytest.fixture
def as_on_a_gpu(backward_on_a_cpu, monkeypatch):
    """Every windowed layer slides, as it would where a model is compiled for a GPU."""
    monkeypatch.setattr(dense, "skips_tiles", lambda q, v: True)


def with_gradients(function, *leaves):
    out = function()
    push = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    return [out.detach(), *torch.autograd.grad(out, leaves, push)]


def close(found, wanted):
    for mine, right in zip(found, wanted, strict=True):
        assert mine.shape == right.shape
        assert (mine - right).abs().max() <= EXACT * max(1, right.abs().max())


# ---- what it computes ----------------------------------------------------------------------------


@pytest.mark.parametrize("H, G", ((2, 2), (4, 2), (3, 1)))
@pytest.mark.parametrize(
    "T, window",
    ((70, 17), (70, 1), (70, 69), (70, 70), (70, 90), (128, 64), (300, 128), (391, 130)),
)
def test_sliding_equals_the_masked_call_with_its_gradients(T, window, H, G, backward_on_a_cpu):
    q, k = Shape(B=2, T=T, S=T, H=H, G=G, D=16).tensors(grad=True)[:2]
    v = torch.randn(2, T, G, 16, requires_grad=True)
    how = dict(window=window, scale=0.3)
    mine = with_gradients(lambda: dense.sliding(q, k, v, **how), q, k, v)
    close(mine, with_gradients(lambda: dense.attention(q, k, v, **how), q, k, v))
    close(mine, with_gradients(lambda: by_definition(q, k, v, **how), q, k, v))


def test_what_a_gpu_will_be_asked_about_windows_runs(as_on_a_gpu, monkeypatch, capsys):
    """on_gpu.windows with smaller shapes, in float32 and uncompiled."""
    leaf = lambda x, *_, **__: x.detach().requires_grad_()
    monkeypatch.setattr(on_gpu, "on_gpu", lambda tensors, *_, **__: [leaf(x) for x in tensors])
    monkeypatch.setattr(
        "torch._inductor.utils.run_and_get_code", lambda call: (call(), ["flex_attention"])
    )
    monkeypatch.setattr(on_gpu, "WINDOWS", ((70, 20, 2, 2, 16), (50, 49, 4, 2, 16)))
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    on_gpu.windows()
    assert capsys.readouterr().out.count("queries in a window of") == 2
    slid = dense.sliding
    monkeypatch.setattr(dense, "sliding", lambda q, k, v, *how: slid(q, k, v * 1.1, *how))
    with pytest.raises(AssertionError, match="70 queries in a window of 20, .*: off by"):
        on_gpu.windows()
    monkeypatch.setattr("torch._inductor.utils.run_and_get_code", lambda call: (call(), ["masked"]))
    with pytest.raises(AssertionError, match="a mask was made"):
        on_gpu.windows()


@pytest.mark.parametrize("T", (128, 640))
def test_only_tiles_that_the_window_shows_are_computed(T, monkeypatch):
    """Of 128 x 128: a window of 200 reaches into two tiles before a query's own."""
    seen = []
    whole = flex.create_block_mask
    keep = lambda *a, **b: seen.append(whole(*a, **b)) or seen[-1]
    monkeypatch.setattr(flex, "create_block_mask", keep)
    q = torch.randn(1, T, 1, 16)
    dense.sliding(q, q, q, 200)
    (tiles,) = seen
    each = (tiles.kv_num_blocks + tiles.full_kv_num_blocks).flatten().tolist()
    assert each == [1, 2, 3, 3, 3][: T // 128]


@pytest.mark.parametrize("kind", ("rows", "bank"))
def test_values_of_either_kind_may_be_read_so(kind, as_on_a_gpu, monkeypatch):
    q, k, table, ids, gain = Shape(T=70, S=70, H=4, G=2, D=16).tensors(grad=True)
    v = torch.randn(2, 70, 2, 16, requires_grad=True)
    value = dict(rows=Rows(v, gain), bank=Bank(table, ids, gain))[kind]
    leaves = (q, k, gain, dict(rows=v, bank=table)[kind])
    slid, calls = dense.sliding, []
    monkeypatch.setattr(dense, "sliding", lambda *a: calls.append(1) or slid(*a))
    mine = with_gradients(lambda: attend.attend(q, k, value, window=20), *leaves)
    close(mine, with_gradients(lambda: as_defined(q, k, value, window=20), *leaves))
    assert calls == [1]


# ---- where it is chosen --------------------------------------------------------------------------


def test_it_stands_on_a_gpu_and_nowhere_else(monkeypatch):
    on_gpu = dict(is_cuda=True, shape=(8, 2048, 6, 128), element_size=lambda: 2)

    def asked(**change):
        q = SimpleNamespace(**on_gpu | change)
        return dense.skips_tiles(q, q)

    monkeypatch.setattr(dense, "HAS_TRITON", True)
    assert asked()
    assert not asked(is_cuda=False)
    assert not asked(shape=(8, 512, 6, 128)), "a short text"
    assert not asked(shape=(8, 2048, 1, 768)), "one head as wide as the model"
    assert not asked(element_size=lambda: 4), "a GPU before Ampere"
    monkeypatch.setattr(dense, "HAS_TRITON", False)
    assert not asked()


@pytest.mark.parametrize(
    "shape, more, slides",
    (
        (Shape(window=9), {}, True),
        (Shape(window=0), {}, False),
        (Shape(window=39), {}, False),  # every key is seen
        (Shape(window=9, causal=False), {}, False),
        (Shape(window=9, lengths=(40, 12)), {}, False),
        (Shape(T=5, window=9), {}, False),
        (Shape(window=9), dict(dropout=0.1), False),
        (Shape(), dict(mask=torch.ones(40, 40, dtype=torch.bool)), False),
    ),
)
def test_what_is_no_plain_window_keeps_its_mask(shape, more, slides, as_on_a_gpu, monkeypatch):
    calls = []
    monkeypatch.setattr(dense, "sliding", lambda q, *_: calls.append(1) or q)
    q, k = shape.tensors()[:2]
    dense.attention(q, k, k, **shape.how, **more)
    assert bool(calls) is slides


def test_where_the_model_is_not_compiled_this_call_is_by_itself(monkeypatch):
    """As on a GPU, where FlexAttention that is not compiled holds all scores."""
    compiled, made = [], []
    monkeypatch.setattr(torch, "compile", lambda work, **how: compiled.append(how) or work)
    monkeypatch.setattr(dense, "stands_alone", lambda q: True)
    for once in (dense.compiled_once, dense.tiles_once):
        once.cache_clear()
    whole = flex.create_block_mask
    monkeypatch.setattr(flex, "create_block_mask", lambda *a, **b: made.append(1) or whole(*a, **b))
    q = torch.randn(1, 70, 2, 16)
    found = [dense.sliding(q, q, q, 20, 0.3) for _ in range(3)]
    close(found, [by_definition(q, q, q, window=20, scale=0.3)] * 3)
    ours = [how for how in compiled if "backend" not in how]  # PyTorch's own is another
    assert ours == [dict(dynamic=False)] and made == [1]
    for once in (dense.compiled_once, dense.tiles_once):
        once.cache_clear()


# ---- in a compiled model -------------------------------------------------------------------------

PLANS = ("bov", "mla", pytest.param("ngram-plus", marks=pytest.mark.slow))


def model_and_ids(plan):
    sizes = dict(context=48, layers=3, vocab=300, windows=(9, 0, 9))
    model = build(plan, "nano", **sizes)
    ids = torch.randint(300, (2, 49), generator=torch.Generator().manual_seed(0))
    return model, ids[:, :-1], ids[:, 1:]


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS)
def test_a_windowed_model_compiles_in_one_piece(plan, as_on_a_gpu, monkeypatch):
    """One graph, and the loss and gradients of the masks.

    In PyTorch 2.13, what an object is given after FlexAttention was traced is lost to the tracer
    (pytorch#195954): a tape keeps what later layers read in dicts, which are not."""
    model, ids, targets = model_and_ids(plan)
    loss = torch.compile(model.loss, backend="eager", fullgraph=True, dynamic=False)
    mine = loss(ids, targets)
    mine.backward()
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    torch._dynamo.reset()
    monkeypatch.setattr(dense, "skips_tiles", lambda q, v: False)
    right = model.loss(ids, targets)
    right.backward()
    assert abs(mine - right) < 1e-5
    wanted = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert found.keys() == wanted.keys()
    close(found.values(), wanted.values())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Your compiler for AOTAutograd")
def test_layers_of_one_window_share_the_search_for_their_tiles(backward_on_a_cpu):
    q, k, v = torch.randn(3, 1, 40, 2, 16, requires_grad=True)
    graphs = []

    def keep(graph, _):
        graphs.append(collections.Counter(str(node.target) for node in graph.graph.nodes))
        return graph.forward

    def two_layers(q, k, v):
        return dense.sliding(dense.sliding(q, k, v, 9), k, v, 9)

    how = dict(fw_compiler=keep, partition_fn=min_cut_rematerialization_partition)
    compiled = torch.compile(two_layers, backend=aot_autograd(**how), fullgraph=True)
    close(
        with_gradients(lambda: compiled(q, k, v), q, k, v),
        with_gradients(lambda: two_layers(q, k, v), q, k, v),
    )
    torch._dynamo.reset()
    forward, backward = graphs
    assert forward["flex_attention"] == backward["flex_attention_backward"] == 2
    assert forward["aten.sort.stable"] == 4, "four lists of tiles, not four a layer"
    assert "aten.sort.stable" not in backward
