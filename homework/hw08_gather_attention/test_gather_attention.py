"""Each test is one line of the card that `pytest homework/hw08_gather_attention` prints; `--hint 2` says more."""
import pytest

from homework.hw08_gather_attention.exercises import unit


@pytest.mark.points(2)
def test_copy_tiles_whole_blocks():
    unit.check("copy_tiles", "whole blocks")


@pytest.mark.points(4)
def test_copy_tiles_a_ragged_end():
    unit.check("copy_tiles", "a ragged end")


@pytest.mark.points(3)
def test_softmax_rows_rows_as_wide_as_the_block():
    unit.check("softmax_rows", "rows as wide as the block")


@pytest.mark.points(5)
def test_softmax_rows_narrower_rows_large_numbers():
    unit.check("softmax_rows", "narrower rows, large numbers")


@pytest.mark.points(6)
def test_flash_whole_tiles():
    unit.check("flash", "whole tiles")


@pytest.mark.points(10)
def test_flash_ragged_tiles():
    unit.check("flash", "ragged tiles")


@pytest.mark.points(6)
def test_gather_flash_whole_tiles():
    unit.check("gather_flash", "whole tiles")


@pytest.mark.points(8)
def test_gather_flash_ragged_tiles():
    unit.check("gather_flash", "ragged tiles")


@pytest.mark.points(6)
def test_split_decode_even_splits():
    unit.check("split_decode", "even splits")


@pytest.mark.points(8)
def test_split_decode_uneven_splits():
    unit.check("split_decode", "uneven splits")


@pytest.mark.points(4)
def test_histogram_decode_all_tokens_distinct():
    unit.check("histogram_decode", "all tokens distinct")


@pytest.mark.points(8)
def test_histogram_decode_tokens_that_repeat():
    unit.check("histogram_decode", "tokens that repeat")


@pytest.mark.points(5)
def test_table_gradient_a_gain():
    unit.check("table_gradient", "a gain")


@pytest.mark.points(5)
def test_table_gradient_a_gain_of_zero():
    unit.check("table_gradient", "a gain of zero")


@pytest.mark.points(3)
def test_predict_speed_gathered_on_the_fly():
    unit.check("predict_speed", "gathered on the fly")


@pytest.mark.points(3)
def test_predict_speed_gathered_into_memory_first():
    unit.check("predict_speed", "gathered into memory first")


@pytest.mark.points(6)
def test_offload_counter_example_the_link_is_the_slower_way():
    unit.check("offload_counter_example", "the link is the slower way")


@pytest.mark.points(8)
def test_best_splits_many_shapes():
    unit.check("best_splits", "many shapes")
