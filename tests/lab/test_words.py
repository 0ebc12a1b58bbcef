"""Does the predictor say what is known of texts whose answer is known, and is what was foretold
what it said?"""

import math

import numpy as np
import pytest

from evidence.lab.asked import grids
from evidence.measured import words

V, T = 16, 128


def rows_of(stream, n):
    """Both parts of a stream of ids, as n rows each."""
    rows = np.asarray(stream).reshape(-1, T + 1)
    return rows[:n], rows[n : 2 * n]


def told(make, n=400, vocab=V):
    """The prediction of a text whose id at place t is make(the ids before, a random generator)."""
    random = np.random.RandomState(0)
    ids = [0, 0, 0]
    for _ in range(2 * n * (T + 1)):
        ids.append(make(ids, random))
    return words.guesses(*rows_of(ids[3:], n), vocab, back=(1, 2))


def test_ids_that_know_nothing_of_each_other_foretell_nothing():
    found = told(lambda ids, random: random.randint(V))
    assert found["next"] == pytest.approx(0, abs=0.005)
    assert -0.1 < found["farther"] < 0.005  # rare pairs mislead a little, and never help


def test_where_the_id_decides_the_next_one_it_says_all_there_is():
    found = told(lambda ids, random: (ids[-1] + 1) % V)
    assert found["next"] == pytest.approx(math.log(V), abs=0.01)
    assert found["farther"] == pytest.approx(0, abs=0.005)


def test_half_a_rule_is_worth_what_arithmetic_says():
    def make(ids, random):
        return (ids[-1] + 1) % V if random.rand() < 0.5 else random.randint(V)

    likely, other = 0.5 + 0.5 / V, 0.5 / V
    left = -likely * math.log(likely) - (V - 1) * other * math.log(other)
    assert told(make, n=2000)["next"] == pytest.approx(math.log(V) - left, abs=0.01)


def test_a_rule_of_two_places_back_is_seen_by_farther_alone():
    found = told(lambda ids, random: (ids[-2] + random.randint(2)) % V)
    assert found["next"] == pytest.approx(0, abs=0.01)
    ahead = math.log(V) - math.log(2)  # at one of the two distances; at the other nothing
    assert found["farther"] == pytest.approx(ahead / 2, abs=0.06)


def test_pairs_that_were_seen_once_are_not_believed():
    """Counted on the text itself, random ids of a large vocabulary would say nearly all."""
    found = told(lambda ids, random: random.randint(2000), n=40, vocab=2000)
    assert found["next"] < 0.01


# ---- what was foretold ---------------------------------------------------------------------------


def test_the_order_that_was_foretold_is_that_of_its_numbers_and_stands_in_the_grids():
    texts = [grids()[f"why_text_{name}"] for name in words.CORPUS_OF]
    assert len(texts) == 9
    for place, grid in enumerate(sorted(texts, key=lambda grid: -grid.counted["next"]), 1):
        assert f"lead {place} of 9 (next {grid.counted['next']:.3f};" in grid.what
        assert grid.run["corpus"] == words.CORPUS_OF[grid.name.removeprefix("why_text_")]
        assert ("exploratory" if grid.exploratory else "confirmatory") in grid.what
    assert {grid.name for grid in texts if grid.exploratory} == {"why_text_code", "why_text_novel"}
    assert all(grids()[f"why_vocab_{name}"].exploratory for name in ("code", "novel"))


@pytest.mark.library
@pytest.mark.slow  # 20 s: it learns the library's tokenizer
def test_what_was_foretold_of_the_standard_library_is_what_its_text_says(capsys):
    ahead, farther, fingerprint = grids()["why_text_code"].counted.values()
    words.main(["--texts", "stdlib"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split()[:4] == ["stdlib", "1024", f"{ahead:.3f}", f"{farther:.3f}"]
    assert line.endswith(fingerprint)
