"""Each test is one line of the card that `pytest homework/hw02_resformer` prints; `--hint 2` says more."""
import pytest

from homework.hw02_resformer.exercises import unit


@pytest.mark.points(6)
def test_importance_entropy_several_heads():
    unit.check("importance_entropy", "several heads")


@pytest.mark.points(4)
def test_importance_entropy_each_token_sees_itself_or_all_see_the_first():
    unit.check("importance_entropy", "each token sees itself, or all see the first")


@pytest.mark.points(4)
def test_token_similarity_noise():
    unit.check("token_similarity", "noise")


@pytest.mark.points(4)
def test_token_similarity_noise_around_a_common_direction():
    unit.check("token_similarity", "noise around a common direction")


@pytest.mark.points(4)
def test_spectrum_many_tokens():
    unit.check("spectrum", "many tokens")


@pytest.mark.points(4)
def test_spectrum_fewer_tokens_than_dimensions():
    unit.check("spectrum", "fewer tokens than dimensions")


@pytest.mark.points(4)
def test_cross_layer_both_layers_have_the_same_keys_eq_3():
    unit.check("cross_layer", "both layers have the same keys (Eq 3)")


@pytest.mark.points(8)
def test_cross_layer_two_layers_eq_2():
    unit.check("cross_layer", "two layers (Eq 2)")


@pytest.mark.points(3)
def test_resformer_one_layer():
    unit.check("resformer", "one layer")


@pytest.mark.points(9)
def test_resformer_several_layers():
    unit.check("resformer", "several layers")


@pytest.mark.points(8)
def test_neutreno_weights_and_values_given():
    unit.check("neutreno", "weights and values given")


@pytest.mark.points(4)
def test_denseformer_weights_that_do_nothing():
    unit.check("denseformer", "weights that do nothing")


@pytest.mark.points(8)
def test_denseformer_weights_that_mix():
    unit.check("denseformer", "weights that mix")


@pytest.mark.points(2)
def test_predict_entropies_each_token_sees_only_itself():
    unit.check("predict_entropies", "each token sees only itself")


@pytest.mark.points(2)
def test_predict_entropies_all_see_only_the_first_token():
    unit.check("predict_entropies", "all see only the first token")


@pytest.mark.points(4)
def test_predict_entropies_each_spreads_evenly_over_what_it_may_see():
    unit.check("predict_entropies", "each spreads evenly over what it may see")


@pytest.mark.points(10)
def test_ones_counter_example_an_earlier_token_moves():
    unit.check("ones_counter_example", "an earlier token moves")


@pytest.mark.points(4)
def test_best_mix_both_layers_have_the_same_keys():
    unit.check("best_mix", "both layers have the same keys")


@pytest.mark.points(8)
def test_best_mix_two_layers():
    unit.check("best_mix", "two layers")
