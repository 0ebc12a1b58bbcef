"""What decoding holds, counted on tensors and compared with the formulas; and what leaving tables
on the host costs."""

import json
import sys

import pytest
import torch

from course import memory
from course.offload import Offloaded, fetched_bytes, mapped
from minimal.kernels.gather import gather_attention
from minimal.kernels.reference import TOLERANCE
from tests import warm
from tests.kernels.shapes import DECODING

pytestmark = pytest.mark.slow


def formula(plan, layers, T, kv, table_rows, windows, batch=1, b=2):
    """facts: a key a layer and position, a value likewise unless it is somebody else's or named;
    ids once; tables."""
    rows = [min(window or T, T) for window in windows]  # of each layer
    targets = range(2 * layers // 3, layers)
    if plan == "svformer":
        rows[0] = T  # layers that see everything read its values, and its keys stay with them
    values = dict(standard=sum(rows), svformer=T, bov=sum(rows[: targets.start]))[plan]
    own = dict(standard=0, svformer=0, bov=len(targets) * table_rows * kv * b + batch * T * 4)[plan]
    return batch * kv * b * (sum(rows) + values) + own


@pytest.mark.parametrize("rings", (False, True), ids=("full_context", "rings"))
@pytest.mark.parametrize("plan", memory.PLANS)
def test_counted_bytes_equal_the_formula(plan, rings):
    windows = ([512, 512, 512, 0] * 3) if rings else [0] * 12
    for batch in (1, 8):
        counted = memory.counter(plan, "d12", rings, batch)
        for T in (100, 5000, 131072):
            assert counted(T) == formula(plan, 12, T, 768, 32768, windows, batch)


@pytest.mark.parametrize("plan", memory.PLANS)
def test_what_is_counted_on_sizes_is_what_a_filled_cache_holds(plan):
    from minimal.variants import build

    for rings in (False, True):
        model = build(plan, "tiny").eval()
        cache = memory.filled(model, 300, rings)
        tables = sum(bank.weight.numel() for bank in model.banks.values()) * 4
        counted = memory.counter(plan, "tiny", rings, element=4)
        assert cache.bytes() == counted(300) - tables
        with torch.no_grad():
            model(torch.zeros(1, 1, dtype=torch.long), cache=cache)
        assert cache.bytes() == counted(301) - tables


def test_storages_that_several_tensors_share_are_counted_once():
    rows = torch.zeros(10, 4)
    assert memory.distinct_bytes([rows, rows[2:], rows.view(-1), torch.zeros(3).half()]) == 160 + 6


def test_a_bank_of_values_pays_from_where_the_exact_formula_says():
    """Eq 6 with ids: 4 layers save 2 * 768 bytes a position and pay for 32,768 rows each, and 4
    bytes an id."""
    row, ids = 2 * 768, 4
    exact = lambda rows_saved, layers_saving: rows_saved * row / (layers_saving * row - ids)
    assert memory.break_even() == int(exact(4 * 32768, 4)) + 1 == 32790
    assert memory.break_even(rings=True) == int(exact(4 * 32768 - 3 * 512, 1)) + 1 == 129875
    assert 4 * 32768 - 3 * 512 == 129536  # the same without ids
    assert memory.break_even(batch=8) == -(-32790 // 8)


def test_a_bank_of_values_stores_no_values_for_its_layers():
    from minimal.variants import skeleton

    kept = memory.filled(skeleton("bov", "tiny"), 300).kept
    assert [at for at in range(12) if ("v", at) in kept] == list(range(8))
    assert all(("k", at) in kept for at in range(12)) and kept["ids"].dtype == torch.int32
    assert not any(
        t.numel() == kept["k", 8].numel()
        for name, t in kept.items()
        if name not in [(kind, at) for kind in "kv" for at in range(12)]
    )


def in_a_fork(plan, **how):
    call = f"memory.one_step({plan!r}, **{how!r})"
    done = warm.run(["-c", f"import json; from course import memory; print(json.dumps({call}))"])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.slow
@pytest.mark.parametrize("rings", (False, True), ids=("full_context", "rings"))
@pytest.mark.parametrize("plan", ("standard", "svformer", "bov"))
def test_the_peak_of_a_process_that_decodes_is_what_its_cache_holds(plan, rings):
    """A fork has a peak of its own too; one child is started truly."""
    child = memory.in_a_child if (plan, rings) == ("bov", True) else in_a_fork
    found = child(plan, length=32768, rings=rings)
    tables = (
        4 * 1024 * 64 * 4 if plan == "bov" else 0
    )  # among the weights of the model, not in the cache
    if not rings:
        assert found["held"] == pytest.approx(
            formula(plan, 12, 32768, 64, 1024, [0] * 12, b=4) - tables, rel=1e-4
        )
    assert found["held_after"] == found["held"], "a step fills its place and lays out nothing"
    assert found["peak"] - found["before"] == pytest.approx(found["held"], rel=0.1)


# ---- tables on the host --------------------------------------------------------------------------


@pytest.mark.parametrize("way", ("dense", "rows", "histogram"))
def test_resident_rows_and_local_ids_attend_as_the_whole_table_does(way):
    shape = DECODING["many_words"]
    q, k, table, ids, gain = shape.tensors()
    second = torch.randn_like(table)
    bank = Offloaded([table, second], room=4)  # has to grow
    local = bank.local(ids)
    for layer, whole in enumerate((table, second)):
        mine = gather_attention(q, k, bank.table(layer), local, gain, way=way)
        right = gather_attention(q, k, whole, ids, gain, way=way)
        assert (mine - right).abs().max() <= TOLERANCE[torch.float32]
    assert bank.count == ids.unique().numel() == len(bank.table(0))


def test_a_row_crosses_the_bus_once_and_every_byte_is_counted():
    table = torch.randn(50, 2, 8)
    bank = Offloaded([table] * 3, room=8)
    bank.local(torch.tensor([[4, 7, 4, 9]], dtype=torch.int32))
    assert bank.fetched_bytes == fetched_bytes(3, layers=3, G=2, D=8)
    bank.local(torch.tensor([[9, 4]], dtype=torch.int32))
    assert bank.fetched_bytes == fetched_bytes(3, layers=3, G=2, D=8)
    first = bank.local(torch.tensor([[4]], dtype=torch.int32))
    bank.local(torch.arange(50, dtype=torch.int32)[None])
    assert bank.fetched_bytes == fetched_bytes(50, layers=3, G=2, D=8)
    assert torch.equal(first, bank.local(torch.tensor([[4]], dtype=torch.int32))), (
        "a local id must never change"
    )
    assert torch.equal(bank.table(2)[bank.local(torch.arange(50))], table)


def test_a_prefetch_returns_before_its_rows_arrive_and_the_next_use_waits_for_them():
    import threading

    table, go = torch.randn(20, 1, 4), threading.Event()
    bank = Offloaded([table], room=32)
    copy = bank.copy
    bank.copy = lambda *what: (go.wait(10), copy(*what))
    bank.prefetch(torch.tensor([3, 5]))  # comes back although nothing has been copied
    assert not go.is_set() and bank.pending is not None
    go.set()
    assert torch.equal(bank.table(0)[bank.local(torch.tensor([5, 3]))], table[[5, 3]])


def test_tables_may_lie_in_a_file(tmp_path):
    table = mapped(tmp_path / "table", (40, 2, 8)).normal_()
    bank = Offloaded([mapped(tmp_path / "table", (40, 2, 8))])
    ids = torch.tensor([[31, 2, 31]], dtype=torch.int32)
    local = bank.local(ids)
    assert torch.equal(bank.table(0)[local], table[ids])
    assert (tmp_path / "table").stat().st_size == 40 * 16 * 4
    assert bank.resident_bytes() == 1024 * 16 * 4
