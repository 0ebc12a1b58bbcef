"""Each test is one line of the card that `pytest homework/hw03_kv_cache` prints; `--hint 2` says more."""
import pytest

from homework.hw03_kv_cache.exercises import unit


@pytest.mark.points(4)
def test_owners_standard_and_svformer():
    unit.check("owners", "standard and SVFormer")


@pytest.mark.points(3)
def test_owners_cla_or_keys_alone_or_values_alone():
    unit.check("owners", "CLA, or keys alone, or values alone")


@pytest.mark.points(3)
def test_owners_anchors():
    unit.check("owners", "anchors")


@pytest.mark.points(4)
def test_cache_bytes_standard_with_grouped_heads():
    unit.check("cache_bytes", "standard, with grouped heads")


@pytest.mark.points(4)
def test_cache_bytes_svformer_and_cla():
    unit.check("cache_bytes", "SVFormer and CLA")


@pytest.mark.points(4)
def test_cache_bytes_skipv1former():
    unit.check("cache_bytes", "SkipV1Former")


@pytest.mark.points(7)
def test_grouped_attention_pairs_of_query_heads_share_a_key_head():
    unit.check("grouped_attention", "pairs of query heads share a key head")


@pytest.mark.points(5)
def test_grouped_attention_one_key_head_for_all_and_a_cache():
    unit.check("grouped_attention", "one key head for all, and a cache")


@pytest.mark.points(8)
def test_skip_heads_half_the_heads():
    unit.check("skip_heads", "half the heads")


@pytest.mark.points(4)
def test_svformer_one_layer():
    unit.check("svformer", "one layer")


@pytest.mark.points(8)
def test_svformer_several_layers():
    unit.check("svformer", "several layers")


@pytest.mark.points(4)
def test_svformer_step_the_first_token_from_an_empty_cache():
    unit.check("svformer_step", "the first token, from an empty cache")


@pytest.mark.points(8)
def test_svformer_step_a_later_token():
    unit.check("svformer_step", "a later token")


@pytest.mark.points(5)
def test_critical_point_noisy_curves():
    unit.check("critical_point", "noisy curves")


@pytest.mark.points(3)
def test_critical_point_never_overtaken():
    unit.check("critical_point", "never overtaken")


@pytest.mark.points(3)
def test_predict_savings_24_layers_that_see_everything():
    unit.check("predict_savings", "24 layers that see everything")


@pytest.mark.points(3)
def test_predict_savings_three_windows_to_one_full_layer():
    unit.check("predict_savings", "three windows to one full layer")


@pytest.mark.points(2)
def test_predict_savings_one_full_layer_in_twelve():
    unit.check("predict_savings", "one full layer in twelve")


@pytest.mark.points(8)
def test_ring_counter_example_a_ring_of_n_entries_gives_another_output():
    unit.check("ring_counter_example", "a ring of N entries gives another output")


@pytest.mark.points(4)
def test_windowed_bytes_every_layer_its_own():
    unit.check("windowed_bytes", "every layer its own")


@pytest.mark.points(6)
def test_windowed_bytes_shared_values():
    unit.check("windowed_bytes", "shared values")
