"""Each test is one line of the card that `pytest homework/hw07_bank_of_values` prints; `--hint 2` says more."""
import pytest

from homework.hw07_bank_of_values.exercises import unit


@pytest.mark.points(4)
def test_targets_the_last_third():
    unit.check("targets", "the last third")


@pytest.mark.points(4)
def test_targets_every_second_layer_and_half():
    unit.check("targets", "every second layer, and half")


@pytest.mark.points(6)
def test_value_in_place_of_v():
    unit.check("value", "in place of V")


@pytest.mark.points(6)
def test_value_added_to_v():
    unit.check("value", "added to V")


@pytest.mark.points(4)
def test_aligned_table_as_many_columns():
    unit.check("aligned_table", "as many columns")


@pytest.mark.points(4)
def test_aligned_table_a_narrower_value():
    unit.check("aligned_table", "a narrower value")


@pytest.mark.points(7)
def test_bov_attention_a_whole_sequence():
    unit.check("bov_attention", "a whole sequence")


@pytest.mark.points(7)
def test_bov_attention_behind_a_cache():
    unit.check("bov_attention", "behind a cache")


@pytest.mark.points(3)
def test_histogram_decode_every_token_once():
    unit.check("histogram_decode", "every token once")


@pytest.mark.points(7)
def test_histogram_decode_tokens_that_come_again():
    unit.check("histogram_decode", "tokens that come again")


@pytest.mark.points(5)
def test_flops_and_tokens_the_models_of_the_paper():
    unit.check("flops_and_tokens", "the models of the paper")


@pytest.mark.points(5)
def test_flops_and_tokens_other_models():
    unit.check("flops_and_tokens", "other models")


@pytest.mark.points(4)
def test_saved_bytes_one_sequence():
    unit.check("saved_bytes", "one sequence")


@pytest.mark.points(8)
def test_saved_bytes_a_batch():
    unit.check("saved_bytes", "a batch")


@pytest.mark.points(3)
def test_predict_break_even_the_length():
    unit.check("predict_break_even", "the length")


@pytest.mark.points(3)
def test_predict_break_even_the_share():
    unit.check("predict_break_even", "the share")


@pytest.mark.points(8)
def test_expressivity_counter_example_a_table_that_no_w_v_comes_near():
    unit.check("expressivity_counter_example", "a table that no W_V comes near")


@pytest.mark.points(3)
def test_windowed_break_even_all_targets_see_everything():
    unit.check("windowed_break_even", "all targets see everything")


@pytest.mark.points(6)
def test_windowed_break_even_some_are_windowed():
    unit.check("windowed_break_even", "some are windowed")


@pytest.mark.points(3)
def test_windowed_break_even_all_are_windowed():
    unit.check("windowed_break_even", "all are windowed")
