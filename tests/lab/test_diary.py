"""The diary of guesses: what it says, what it keeps, and that a blank guess is no guess."""

import pytest
import torch

from course import diary


@pytest.fixture(autouse=True)
def own_diary(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path))


@pytest.mark.parametrize(
    "truth, guess, words",
    [
        (0.5, 0.5, "right"),
        (36, 36, "right"),
        (0.5, 0.4, "off by 0.1, 20% of it"),
        (36, 72, "2 times too large"),
        (36, 9, "4 times too small"),
        (0, 3, "off by 3"),
        (-1.0, 0.5, "off by 1.5, 150% of it"),
        ("the table", "The table ", "right"),
        ("the table", "V1", "not so"),
        (True, False, "not so"),
        ([1, 2, 3], [1, 5, 3], "2 of 3 right: right; 2.5 times too large; right"),
        (3, "three", "right"),
        (3, "a few", "not so: wanted a number"),
        (0, "none", "right"),
        (0.61, "60 percent", "off by 0.01, 2% of it"),
        (22.5, "100 %", "4.44 times too large"),
        (-13.2, "costs 13 %", "off by 26.2, 198% of it"),
        (-0.05, "minus 0.05", "right"),
        (4.852, "log 128", "right"),
        (4.852, "log T of 128", "not so: wanted a number"),
        (4.852, "log 0", "not so: wanted a number"),
        (38.6e6, "38 600 000", "right"),
        ([1, -50], "1 and -50", "2 of 2 right"),
        (["dva", "bov"], "dva > bov", "2 of 2 right"),
        ("standard", "the `standard` model", "right"),
        ("standard", "not standard", "not so"),
        ("up", "up, then down", "not so"),
        ("no", "no, they stay", "right"),
        (True, 1, "right"),
        (True, 0.5, "not so"),
        (3, "2 or 3", "not so: wanted a number"),
        (0.3, "30 %", "right"),
        (30.0, "30%", "right"),
        (-0.3, "about −.3", "right"),
        (0.75, "3/4", "right"),
        (0.5, "1/0", "not so: wanted a number"),
        (0.3, "~0,3", "right"),
        (18432, "18,432 bytes", "right"),
        ([0.3, 12], "0.3, 13", "1 of 2 right: right; off by 1, 8% of it"),
        (["deep", "middle"], "deep, middle", "2 of 2 right"),
        (False, "No.", "right"),
        (True, "no", "not so"),
        ("no", False, "right"),
        (0.21, "2 to 3", "not so: wanted a number"),
        (50.3, "50%", "right"),
        (0.25, "1/4", "right"),
        (300, "about 300", "right"),
        (3842, "3,842 steps", "right"),
        (0.14, ".14", "right"),
        ([0.2, 0.4], ["20 %", 0.4], "2 of 2 right"),
        (3e-7, 0, "right"),
        (0.001, 0, "off by 0.001, 100% of it"),
        ("no", "No.", "right"),
        ([0.2, 0.4], 0.3, "not so: wanted a list of 2, got one answer"),
        (["bov", "standard"], "bov", "not so: wanted a list of 2, got one answer"),
        (["bov", "standard"], ["bov"], "not so: wanted a list of 2, got a list of 1"),
        (36, [36, 36], "not so: wanted one answer, got a list of 2"),
        ([1, 2], torch.tensor([1, 3]), "1 of 2 right: right; off by 1, 50% of it"),
        ("bov", {"bov"}, "not so"),
    ],
)
def test_a_guess_is_answered_with_how_far_off_it_is(capsys, truth, guess, words):
    diary.answer("a question", truth, guess)
    assert capsys.readouterr().out.endswith(f": {words}\n")


@pytest.mark.parametrize(
    "guess, told", [(400.0, "400"), (0.5, "0.5"), (float("nan"), "nan"), (400, "400")]
)
def test_a_guess_at_a_whole_number_may_be_any_number(capsys, guess, told):
    """As who writes 0.4 * 1000."""
    diary.answer("cells", 400, guess, form="d")
    assert capsys.readouterr().out.startswith(f"cells: 400. You said {told}: ")


@pytest.mark.parametrize("guess, told", [("1/3", "0.33"), (-0.13, "-0.13"), (20, "20")])
def test_a_share_is_not_rounded_away_where_the_answer_is_in_per_cent(capsys, guess, told):
    diary.answer("cost", 33.3, guess, form=".0f")
    assert capsys.readouterr().out.startswith(f"cost: 33. You said {told}: ")


@pytest.mark.parametrize("blank", [None, (None, None)])
def test_a_blank_guess_prints_the_truth_and_no_word_of_a_guess(capsys, blank):
    diary.answer("heat at water", torch.tensor(-1.0), blank, form="+.2f")
    assert capsys.readouterr().out == "heat at water: -1.00\n"
    assert diary.guesses() == [] and not diary.diary().exists()


def test_the_first_guess_is_kept_since_the_second_has_seen_the_answer():
    diary.answer("cells", 36, 55)
    diary.answer("cells", 36, 36)
    assert diary.guesses() == [dict(question="cells", truth=36, guess=55)]


def test_calibration_is_the_logarithm_of_guess_over_truth(capsys):
    diary.answer("twice", 4.0, 8.0)
    diary.answer("half", torch.tensor(4), 2)
    diary.answer("word", "V1", "v1")
    diary.answer("sign", -1.0, 1.0)
    diary.answer("order", [2, 0, 1], [2, 0, 1])
    diary.answer("another order", [2, 0, 1], [2, 1, 0])
    diary.answer("several", [2, 0, 1], 2)
    assert diary.calibration() == ([("twice", 1.0), ("half", -1.0)], (2, 5))


def test_a_folder_that_cannot_be_written_costs_the_diary_and_not_the_answer(
    capsys, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "file" / "runs"))
    diary.answer("cells", 36, 36)
    assert capsys.readouterr().out == "cells: 36. You said 36: right\n"


def test_a_diary_that_cannot_be_written_in_a_folder_that_can_is_none_either(capsys, tmp_path):
    """As where the folder is read-only, which stops no administrator."""
    (tmp_path / "diary.jsonl").mkdir()
    diary.answer("cells", 36, 36)
    assert capsys.readouterr().out == "cells: 36. You said 36: right\n"
    assert diary.guesses() == []


def test_the_picture_counts_the_guesses_within_a_factor_of_two():
    fig = diary.picture([("twice", 1.0), ("far", 3.0), ("half", -1.0)])
    assert fig._suptitle.get_text() == "2 of your 3 numbers lie within a factor of two"
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["half", "twice", "far"]
    assert fig.axes[0].lines[0].get_xdata().tolist() == [0.5, 2.0, 8.0]
