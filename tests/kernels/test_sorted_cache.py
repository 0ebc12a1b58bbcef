"""Does a cache that is sorted by token decode as attention does?"""

import pytest
import torch

from evidence.bench.decode import SortedCache
from minimal.kernels.reference import TOLERANCE, reference
from tests.kernels.shapes import Shape
from tests.kernels.test_decode import bounded, close
from tests.kernels.test_slots import slotted


@pytest.mark.parametrize(
    "shape",
    (
        Shape(T=1, S=60),
        Shape(B=3, T=1, S=60, H=6, G=2, gain=-1.3),
        Shape(T=1, S=60, V=900),
        Shape(T=1, S=60, V=1),
    ),
    ids=("plain", "grouped", "few_repeat", "one_word"),
)
@pytest.mark.parametrize("bound", (None, 6.0))
def test_a_sorted_prefix_with_a_tail_equals_the_reference_at_every_step(shape, bound):
    (q, k, table, ids, gain), _ = bounded(shape)
    cache = SortedCache(k[:, :50], ids[:, :50], room=10)
    for length in range(50, 61):
        close(
            cache.attend(q, table, gain, bound=bound),
            reference(q, k[:, :length], table, ids[:, :length], gain),
        )
        if length < 60:
            cache.append(k[:, length : length + 1], ids[:, length : length + 1])


def test_a_sorted_cache_lies_where_its_keys_lie():
    _, k, _, ids, _ = Shape(B=1, T=1, S=20).tensors()
    with torch.device("meta"):  # wherever else new tensors would go
        cache = SortedCache(k, ids)
    assert {x.device for x in (cache.keys, cache.tokens, cache.counts)} == {k.device}


def test_a_sorted_cache_reads_one_row_a_run_and_says_when_it_is_full():
    q, k, table, ids, _ = Shape(B=1, T=1, S=60, V=7).tensors()
    cache = SortedCache(k, ids, room=2)
    assert cache.runs == ids.unique().numel() and cache.counts.sum(-1).unique().tolist() == [60]
    with pytest.raises(ValueError, match="room for 2 more tokens, got 3"):
        cache.append(k[:, :3], ids[:, :3])
    with pytest.raises(ValueError, match="one query a sequence, got 2"):
        cache.attend(q.expand(1, 2, 2, 32), table)


def test_a_sorted_cache_gives_the_same_bits_in_every_run():
    q, k, table, ids, _ = Shape(B=2, T=1, S=5000, V=50, H=4, G=4).tensors()
    cache = SortedCache(k, ids)
    first = cache.attend(q, table)
    assert all(torch.equal(cache.attend(q, table), first) for _ in range(5))


def test_a_sorted_cache_may_read_a_table_in_fp32_in_half_precision():
    (q, k, table, ids, gain), bound = bounded(Shape(T=1, S=90, H=4, G=4))
    q, k = q.half(), k.half()
    mine = SortedCache(k, ids).attend(q, table, gain, bound=bound)
    assert mine.dtype == torch.float16
    right = reference(q.double(), k.double(), table.double(), ids, gain)
    close(mine, right, TOLERANCE[torch.float16])


def test_a_sorted_cache_reads_slots_of_n_grams_as_it_reads_ids():
    q, k, table, slots, gain = slotted(T=1, S=90)
    close(SortedCache(k, slots).attend(q, table, gain), reference(q, k, table, slots, gain))
