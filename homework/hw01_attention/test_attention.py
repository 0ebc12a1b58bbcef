"""Each test is one line of the card that `pytest homework/hw01_attention` prints; `--hint 2` says more."""
import pytest

from homework.hw01_attention.exercises import unit


@pytest.mark.points(4)
def test_causal_mask_as_many_queries_as_keys():
    unit.check("causal_mask", "as many queries as keys")


@pytest.mark.points(4)
def test_causal_mask_fewer_queries_than_keys():
    unit.check("causal_mask", "fewer queries than keys")


@pytest.mark.points(6)
def test_attention_everyone_sees_everything():
    unit.check("attention", "everyone sees everything")


@pytest.mark.points(8)
def test_attention_causal_behind_a_cache():
    unit.check("attention", "causal, behind a cache")


@pytest.mark.points(6)
def test_rope_positions_0_1_2():
    unit.check("rope", "positions 0, 1, 2, …")


@pytest.mark.points(6)
def test_rope_any_positions():
    unit.check("rope", "any positions")


@pytest.mark.points(6)
def test_online_softmax_ordinary_scores_whole_tiles():
    unit.check("online_softmax", "ordinary scores, whole tiles")


@pytest.mark.points(8)
def test_online_softmax_scores_in_the_hundreds_a_short_last_tile():
    unit.check("online_softmax", "scores in the hundreds, a short last tile")


@pytest.mark.points(4)
def test_merge_small_sums():
    unit.check("merge", "small sums")


@pytest.mark.points(4)
def test_merge_sums_too_large_for_exp():
    unit.check("merge", "sums too large for exp")


@pytest.mark.points(4)
def test_decode_step_the_first_token_from_an_empty_cache():
    unit.check("decode_step", "the first token, from an empty cache")


@pytest.mark.points(6)
def test_decode_step_a_later_token():
    unit.check("decode_step", "a later token")


@pytest.mark.points(4)
def test_flops_per_token_the_matrices_context_0():
    unit.check("flops_per_token", "the matrices (context 0)")


@pytest.mark.points(4)
def test_flops_per_token_with_attention():
    unit.check("flops_per_token", "with attention")


@pytest.mark.points(3)
def test_predict_sharpness_without_the_root():
    unit.check("predict_sharpness", "without the root")


@pytest.mark.points(3)
def test_predict_sharpness_with_the_root():
    unit.check("predict_sharpness", "with the root")


@pytest.mark.points(8)
def test_mask_counter_example_an_earlier_token_moves():
    unit.check("mask_counter_example", "an earlier token moves")


@pytest.mark.points(4)
def test_tile_backward_a_tile_that_is_the_whole_sequence():
    unit.check("tile_backward", "a tile that is the whole sequence")


@pytest.mark.points(8)
def test_tile_backward_a_tile_of_a_longer_sequence():
    unit.check("tile_backward", "a tile of a longer sequence")
