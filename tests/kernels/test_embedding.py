"""A table's gradient in a compiled model: that of eager training, by one call of the compiler's.

What it costs on a GPU is measured by gpu.table_gradient; here is asked what it is."""

import pytest
import torch
import torch.nn.functional as F
from torch import library
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._inductor.decomposition import select_decomp_table

from minimal.kernels import embedding, fastest, fused
from minimal.kernels.embedding import look_up, sum_rows
from minimal.kernels.reference import TOLERANCE
from minimal.variants import build
from tests.kernels import on_gpu

IDS = dict(
    drawn=torch.tensor([[3, 1, 3, 0, 6], [3, 5, 5, 5, 2]]),
    padding=torch.full((2, 5), 7),
    once=torch.tensor([[4]]),
    int32=torch.tensor([[3, 1, 3, 0, 6]], dtype=torch.int32),
    slots=torch.tensor([[[3, 1], [1, 3]], [[0, 0], [0, 2]]]),
)


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


# ---- the same gradient ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16, torch.float64, None))
def test_a_compiled_gradient_has_the_bits_of_eager_training_and_equals_float64(name, dtype):
    ids, chance = IDS[name], torch.Generator().manual_seed(0)
    table = torch.randn(8, 2, 3, generator=chance, requires_grad=True)
    push = torch.randn(*ids.shape, 2, 3, generator=chance).to(dtype or table.dtype)
    compiled = torch.compile(look_up, backend="aot_eager", fullgraph=True, dynamic=False)
    rows, eager = compiled(table, ids, dtype), look_up(table, ids, dtype)
    plain = F.embedding(ids, table.flatten(1)).view(push.shape).to(push.dtype)
    assert rows.dtype == push.dtype and torch.equal(rows, eager) and torch.equal(rows, plain)
    found = [torch.autograd.grad(out, table, push)[0] for out in (rows, eager, plain)]
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
    exact = torch.zeros(8, 6, dtype=torch.float64)
    exact.index_add_(0, ids.flatten().long(), push.double().view(-1, 6))
    torch.testing.assert_close(found[0].double().flatten(1), exact, rtol=1e-6, atol=1e-6)


def test_a_table_that_is_read_twice_gets_both_gradients():
    first, second = (torch.randn(8, 2, 3, requires_grad=True) for _ in range(2))
    work = lambda a, b: (
        (look_up(a, IDS["drawn"]) * look_up(b, IDS["padding"])).sum()
        + (look_up(a, IDS["padding"]) ** 3).sum()
    )
    compiled = torch.compile(work, backend="aot_eager", fullgraph=True)
    found = torch.autograd.grad(compiled(first, second), (first, second))
    for mine, right in zip(found, torch.autograd.grad(work(first, second), (first, second))):
        torch.testing.assert_close(mine, right)
        assert right.any()


def test_a_transposed_table_and_one_that_is_not_trained_are_read_all_the_same():
    turned = torch.randn(2, 8, 3).transpose(0, 1).requires_grad_()
    frozen = torch.randn(8, 2, 3)
    for table in (turned, frozen):
        compiled = torch.compile(look_up, backend="aot_eager", fullgraph=True)
        assert torch.equal(compiled(table, IDS["drawn"]), table[IDS["drawn"]])
    (found,) = torch.autograd.grad(look_up(turned, IDS["padding"]).sum(), turned)
    assert found[7].eq(10).all() and not found[:7].any()


def test_an_eager_lookup_keeps_its_second_derivative():
    table = torch.randn(8, 2, 3, dtype=torch.float64, requires_grad=True)
    cubes = lambda table: look_up(table, IDS["drawn"]) ** 3
    assert torch.autograd.gradgradcheck(cubes, table)


# ---- one call to the compiler --------------------------------------------------------------------


def operators(model, ids, targets):
    """(forward, backward): the operators that inductor's compiler is given for a training loss."""
    seen = []

    def listing(graph, inputs):
        seen.append([str(node.target) for node in graph.graph.nodes if node.op == "call_function"])
        return make_boxed_func(graph.forward)

    backend = aot_autograd(
        fw_compiler=listing, bw_compiler=listing, decompositions=select_decomp_table()
    )
    loss = torch.compile(model.loss, backend=backend, fullgraph=True, dynamic=False)(ids, targets)
    loss.backward()
    forward, backward = seen
    return forward, backward, loss


# plan -> the tables that its two layers read, the embedding among them
TABLES = dict(vplus=2, standard=1, svformer=1, bov=2)
PLANS = ["vplus", *(pytest.param(plan, marks=pytest.mark.slow) for plan in [*TABLES][1:])]


def awake(plan):
    """In bf16 with fp32 weights, as a GPU trains; random numbers where it would start at zero."""
    model, random = build(plan, "nano", vocab=61, layers=2), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=random) * 0.1)
    return model.to(compute=torch.bfloat16)


@pytest.mark.parametrize("plan", PLANS)
def test_a_compiler_is_given_one_operator_a_table_and_adds_no_row_by_itself(plan):
    """Its own way is an index_put that accumulates: an atomic addition of every number."""
    ids = torch.randint(61, (2, 13), generator=torch.Generator().manual_seed(0))
    ids[:, 9:] = 0
    model, uncompiled = awake(plan), awake(plan)
    _, backward, loss = operators(model, ids[:, :-1], ids[:, 1:])
    assert backward.count("minimal.sum_rows.default") == TABLES[plan]
    assert not [name for name in backward if "index_put" in name or "scatter_add" in name]
    # and it trains as uncompiled
    right = uncompiled.loss(ids[:, :-1], ids[:, 1:])
    right.backward()
    assert loss.item() == pytest.approx(right.item(), rel=1e-2)
    tables = [name for name, _ in model.named_parameters() if name.startswith(("embed", "banks"))]
    assert len(tables) == TABLES[plan]
    for name in tables:
        mine, theirs = (one.get_parameter(name).grad for one in (model, uncompiled))
        assert mine.dtype == torch.float32 and theirs.any()
        assert (mine - theirs).norm() < 0.03 * theirs.norm(), name


def test_the_operator_keeps_the_compilers_rules():
    rows, ids = torch.randn(2, 5, 6, dtype=torch.bfloat16), IDS["drawn"]
    rules = ("test_schema", "test_faketensor")
    library.opcheck(sum_rows, (rows, ids, 8, torch.float32), test_utils=rules)


# ---- whichever is faster -------------------------------------------------------------------------


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("dtype", (torch.float32, torch.bfloat16))
def test_both_ways_are_the_sum_and_the_faster_one_is_taken(name, dtype, interpreter, monkeypatch):
    ids, asked = IDS[name], []
    rows = torch.randn(*ids.shape, 40, generator=torch.Generator().manual_seed(0)).to(dtype)
    exact = torch.zeros(8, 40, dtype=torch.float64)
    exact.index_add_(0, ids.flatten().long(), rows.double().view(-1, 40))

    def take(question, ways):
        asked.append(question)
        for one in (way() for way in ways.values()):
            assert one.dtype == torch.float32 and one.shape == (8, 40)
            limit = TOLERANCE[torch.float32] * exact.abs().max()
            assert (one.double() - exact).abs().max() <= limit
        ways.update(segments=lambda: "ours", embedding=lambda: "PyTorch's")
        return ("segments", "embedding")[len(asked) - 1]

    monkeypatch.setattr(fused, "fastest", take)
    for told in ("ours", "PyTorch's"):
        assert fused.sum_by_id(rows, ids, 8, torch.float32) == told
    assert asked == 2 * [("table", True, ids.numel(), 8, 40, dtype, torch.float32)]


def test_doubles_and_whoever_has_no_kernels_take_pytorchs_own(interpreter, monkeypatch):
    monkeypatch.setattr(fused, "fastest", lambda *_: pytest.fail("nothing is to be measured"))
    rows, ids = torch.randn(2, 5, 6), IDS["drawn"]
    there = fused.sum_by_id(rows.double(), ids, 8, torch.float64)
    monkeypatch.setattr(fused, "kernels_run", lambda device: False)
    here = fused.sum_by_id(rows, ids, 8, torch.float32)
    torch.testing.assert_close(here.double(), there)


def test_no_sort_is_kept_on_ids_whose_memory_a_compiled_step_gives_to_others(
    interpreter, monkeypatch
):
    """Their tensor is the same object with the same count of writes, and holds other ids."""
    monkeypatch.setattr(fused, "fastest", lambda question, ways: "segments")
    ids, rows = IDS["drawn"].clone(), torch.randn(2, 5, 6)
    fused.sum_by_id(rows, ids, 8, torch.float32)
    ids.data.copy_(IDS["padding"])
    found = fused.sum_by_id(rows, ids, 8, torch.float32)
    torch.testing.assert_close(found[7], rows.sum((0, 1)))
    assert not found[:7].any()


def test_nothing_is_measured_where_the_clock_may_not_choose(monkeypatch):
    """While a CUDA graph is recorded, and where the same bits are wanted in every run: but what is
    known by then holds in a recording."""
    ways = dict(first=lambda: None, second=lambda: None)
    monkeypatch.setattr(fastest, "CHOSEN", {})
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert fastest.fastest(("a",), ways) == "first" and not fastest.CHOSEN
    fastest.CHOSEN["a", torch.get_num_threads()] = "second"
    assert fastest.fastest(("a",), ways) == "second"
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    assert fastest.fastest(("a",), ways) == "first"


def test_a_gpu_is_waited_for_before_and_after_a_call(monkeypatch):
    said = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: said.append("wait"))
    fastest.milliseconds(lambda: said.append("work"))
    assert said == ["wait", "work", "wait"]


def test_what_a_gpu_will_be_asked_about_tables_runs(interpreter, monkeypatch):
    """on_gpu.table with a smaller table, in the interpreter."""
    compiling = torch.compile
    monkeypatch.setattr(torch, "compile", lambda work, **how: compiling(work, backend="aot_eager"))
    monkeypatch.setattr(on_gpu, "TABLE", (9, 20, 1, 8))
    on_gpu.table("cpu")
    torch._dynamo.reset()
    right = embedding.sum_rows
    monkeypatch.setattr(embedding, "sum_rows", lambda rows, *how: right(rows * 1.1, *how))
    with pytest.raises(AssertionError, match="a table's gradient, 0% one token, .*: off by"):
        on_gpu.table("cpu")
