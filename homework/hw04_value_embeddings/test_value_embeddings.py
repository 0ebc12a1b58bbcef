"""Each test is one line of the card that `pytest homework/hw04_value_embeddings` prints; `--hint 2` says more."""
import pytest

from homework.hw04_value_embeddings.exercises import unit


@pytest.mark.points(4)
def test_table_of_sixteen_layers_three_tables():
    unit.check("table_of", "sixteen layers, three tables")


@pytest.mark.points(4)
def test_table_of_other_depths():
    unit.check("table_of", "other depths")


@pytest.mark.points(6)
def test_mixed_value_with_a_table():
    unit.check("mixed_value", "with a table")


@pytest.mark.points(4)
def test_mixed_value_a_layer_without_one():
    unit.check("mixed_value", "a layer without one")


@pytest.mark.points(4)
def test_unet_x0_alone():
    unit.check("unet", "x0 alone")


@pytest.mark.points(4)
def test_unet_skips_alone():
    unit.check("unet", "skips alone")


@pytest.mark.points(8)
def test_unet_both():
    unit.check("unet", "both")


@pytest.mark.points(4)
def test_gated_value_a_gate_that_has_learned_nothing():
    unit.check("gated_value", "a gate that has learned nothing")


@pytest.mark.points(6)
def test_gated_value_any_gate():
    unit.check("gated_value", "any gate")


@pytest.mark.points(4)
def test_contribution_embeddings_of_size_one():
    unit.check("contribution", "embeddings of size one")


@pytest.mark.points(6)
def test_contribution_embeddings_of_any_size():
    unit.check("contribution", "embeddings of any size")


@pytest.mark.points(6)
def test_adam_pair_layer_0_both_see_the_same_gradient():
    unit.check("adam_pair", "layer 0: both see the same gradient")


@pytest.mark.points(6)
def test_adam_pair_another_layer():
    unit.check("adam_pair", "another layer")


@pytest.mark.points(4)
def test_window_both_ends():
    unit.check("window", "both ends")


@pytest.mark.points(4)
def test_window_on_the_way():
    unit.check("window", "on the way")


@pytest.mark.points(3)
def test_predict_lambdas_layer_0():
    unit.check("predict_lambdas", "layer 0")


@pytest.mark.points(3)
def test_predict_lambdas_a_skip_of_weight_one_half():
    unit.check("predict_lambdas", "a skip of weight one half")


@pytest.mark.points(8)
def test_skip_counter_example_five_points_between_the_rules():
    unit.check("skip_counter_example", "five points between the rules")


@pytest.mark.points(4)
def test_lambda_gradients_every_token_once():
    unit.check("lambda_gradients", "every token once")


@pytest.mark.points(8)
def test_lambda_gradients_tokens_that_come_again():
    unit.check("lambda_gradients", "tokens that come again")
