"""Each test is one line of the card that `pytest homework/hw05_dva` prints; `--hint 2` says more."""
import pytest

from homework.hw05_dva.exercises import unit


@pytest.mark.points(8)
def test_pair_values_more_keys_than_queries():
    unit.check("pair_values", "more keys than queries")


@pytest.mark.points(4)
def test_dva_one_token():
    unit.check("dva", "one token")


@pytest.mark.points(10)
def test_dva_a_sequence():
    unit.check("dva", "a sequence")


@pytest.mark.points(3)
def test_pair_bytes_one_sequence():
    unit.check("pair_bytes", "one sequence")


@pytest.mark.points(5)
def test_pair_bytes_a_batch_half_precision():
    unit.check("pair_bytes", "a batch, half precision")


@pytest.mark.points(4)
def test_parameters_gpt2():
    unit.check("parameters", "gpt2")


@pytest.mark.points(4)
def test_parameters_dva():
    unit.check("parameters", "dva")


@pytest.mark.points(4)
def test_parameters_dva_that_keeps_w_o():
    unit.check("parameters", "dva that keeps W_O")


@pytest.mark.points(4)
def test_dva_backward_weights_that_pick_one_key():
    unit.check("dva_backward", "weights that pick one key")


@pytest.mark.points(8)
def test_dva_backward_soft_weights():
    unit.check("dva_backward", "soft weights")


@pytest.mark.points(4)
def test_dva_step_the_first_token_from_empty_caches():
    unit.check("dva_step", "the first token, from empty caches")


@pytest.mark.points(8)
def test_dva_step_a_later_token():
    unit.check("dva_step", "a later token")


@pytest.mark.points(4)
def test_latent_set_without_biases():
    unit.check("latent_set", "without biases")


@pytest.mark.points(6)
def test_latent_set_with_biases():
    unit.check("latent_set", "with biases")


@pytest.mark.points(3)
def test_predict_cost_megabytes():
    unit.check("predict_cost", "megabytes")


@pytest.mark.points(3)
def test_predict_cost_the_share_of_the_mlp():
    unit.check("predict_cost", "the share of the MLP")


@pytest.mark.points(8)
def test_reading_counter_example_two_queries_one_row_of_weights_two_outputs():
    unit.check("reading_counter_example", "two queries, one row of weights, two outputs")


@pytest.mark.points(4)
def test_dva_tiles_ordinary_scores_whole_tiles():
    unit.check("dva_tiles", "ordinary scores, whole tiles")


@pytest.mark.points(6)
def test_dva_tiles_scores_in_the_hundreds_a_short_last_tile():
    unit.check("dva_tiles", "scores in the hundreds, a short last tile")
