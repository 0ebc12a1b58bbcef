"""Each test is one line of the card that `pytest homework/hw06_bert_bypass` prints; `--hint 2` says more."""
import pytest

from homework.hw06_bert_bypass.exercises import unit


@pytest.mark.points(4)
def test_bypass_without_the_bypass():
    unit.check("bypass", "without the bypass")


@pytest.mark.points(10)
def test_bypass_with_it():
    unit.check("bypass", "with it")


@pytest.mark.points(5)
def test_mask_tokens_ordinary_text():
    unit.check("mask_tokens", "ordinary text")


@pytest.mark.points(5)
def test_mask_tokens_with_special_tokens():
    unit.check("mask_tokens", "with special tokens")


@pytest.mark.points(4)
def test_best_span_an_end_before_its_start():
    unit.check("best_span", "an end before its start")


@pytest.mark.points(4)
def test_best_span_an_end_too_far_away():
    unit.check("best_span", "an end too far away")


@pytest.mark.points(4)
def test_best_span_peaks_in_the_question():
    unit.check("best_span", "peaks in the question")


@pytest.mark.points(5)
def test_em_f1_the_same_answer_dressed_differently():
    unit.check("em_f1", "the same answer, dressed differently")


@pytest.mark.points(7)
def test_em_f1_some_words_in_common():
    unit.check("em_f1", "some words in common")


@pytest.mark.points(5)
def test_window_starts_long_documents():
    unit.check("window_starts", "long documents")


@pytest.mark.points(3)
def test_window_starts_at_the_edges():
    unit.check("window_starts", "at the edges")


@pytest.mark.points(8)
def test_variance_parts_two_features():
    unit.check("variance_parts", "two features")


@pytest.mark.points(5)
def test_welch_as_many_runs():
    unit.check("welch", "as many runs")


@pytest.mark.points(5)
def test_welch_fewer_runs_on_one_side():
    unit.check("welch", "fewer runs on one side")


@pytest.mark.points(3)
def test_predict_statistics_the_variance_of_relu():
    unit.check("predict_statistics", "the variance of relu")


@pytest.mark.points(3)
def test_predict_statistics_the_t_of_the_first_row():
    unit.check("predict_statistics", "the t of the first row")


@pytest.mark.points(8)
def test_variance_counter_example_the_variance_falls():
    unit.check("variance_counter_example", "the variance falls")


@pytest.mark.points(12)
def test_calming_alpha_where_the_two_oppose_each_other_and_where_not():
    unit.check("calming_alpha", "where the two oppose each other, and where not")
