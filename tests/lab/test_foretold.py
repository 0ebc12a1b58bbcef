"""Does the predictor say what is known of texts whose answer is known, and is what was foretold
what it said?"""

import math

import numpy as np
import pytest

from course import records
from evidence.research import foretold, why
from evidence.research.foretold import verdict
from evidence.research.grids import GRIDS

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
    return foretold.guesses(*rows_of(ids[3:], n), vocab, back=(1, 2))


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
    assert set(why.FORETOLD) == set(why.CORPUS_OF)
    ahead = [numbers[0] for numbers in why.FORETOLD.values()]
    assert ahead == sorted(ahead, reverse=True)
    for place, name in enumerate(why.FORETOLD, 1):
        grid = GRIDS[f"why_text_{name}"]
        assert f"lead {place} of 9" in grid.what and grid.base.corpus == why.CORPUS_OF[name]
        assert ("exploratory" in grid.what) == (name in why.SEEN)
        assert ("confirmatory" in grid.what) == (name not in why.SEEN)
    assert all("exploratory" in GRIDS[f"why_vocab_{name}"].what for name in why.SEEN)


@pytest.mark.library
@pytest.mark.slow  # 20 s: it learns the library's tokenizer
def test_what_was_foretold_of_the_standard_library_is_what_its_text_says(capsys):
    ahead, farther, fingerprint = why.FORETOLD["code"]
    foretold.main(["--texts", "stdlib"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert line.split()[:4] == ["stdlib", "1024", f"{ahead:.3f}", f"{farther:.3f}"]
    assert line.endswith(fingerprint)


# ---- the verdict ---------------------------------------------------------------------------------


def leads(order):
    """Leads of three seeds that fall in this order of texts."""
    return {name: [0.1 - 0.01 * place] * 3 for place, name in enumerate(order)}


def test_the_verdict_is_that_of_the_new_texts_alone_and_never_of_a_part():
    order = [*why.FORETOLD]
    assert verdict(leads(order)).startswith("held: rank correlation 1.000 over 7 new texts")
    assert verdict(leads(order[::-1])).startswith("failed: rank correlation -1.000")
    turned = leads(order) | dict(code=[-1.0] * 3, novel=[1.0] * 3)  # seen before: no part of it
    assert verdict(turned).startswith("held")
    assert verdict({}).startswith("open: no verdict before bare")
    part = leads(order) | dict(fresh=[0.1, 0.1])
    assert verdict(part) == "open: no verdict before fresh have 3 seeds"


@pytest.mark.parametrize(
    "order, found, word",
    [([4, 1, 0, 2, 3, 5, 6], "0.607", "open"), ([2, 1, 3, 0, 4, 6, 5], "0.714", "held")],
)
def test_the_bounds_are_those_that_were_fixed(order, found, word):
    new = [name for name in why.FORETOLD if name not in why.SEEN]
    assert verdict(leads([new[i] for i in order])).startswith(f"{word}: rank correlation {found}")


def test_chance_reaches_the_bound_in_one_order_of_twenty():
    import itertools

    places = np.array(list(itertools.permutations(range(7))))
    found = 1 - 6 * np.square(places - np.arange(7)).sum(1) / (7 * 48)
    assert (found > why.HELD - 0.001).mean() == pytest.approx(0.044, abs=0.001)


def test_judging_reads_the_lead_at_equal_parameters_seed_by_seed(tmp_path, monkeypatch, capsys):
    slim = dict(changes=dict(hidden=96))
    rows = [
        dict(plan="standard", seed=0, loss=3.0, asked={}),
        dict(plan="standard", seed=1, loss=3.2, asked={}),
        dict(plan="bov-fixed", seed=0, loss=2.5, asked={}),
        dict(plan="bov-fixed", seed=0, loss=2.9, asked=slim),
        dict(plan="bov-fixed", seed=1, loss=3.0, asked=slim),
        dict(plan="bov-fixed", seed=2, loss=2.0, asked=slim),  # its standard is missing
    ]
    assert foretold.lead_of(rows) == pytest.approx([0.1, 0.2])
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    monkeypatch.setattr(records, "rows_of", lambda path: rows if "fresh" in path.stem else [])
    foretold.main(["--judge"])
    said = capsys.readouterr().out
    assert "+0.1000 +0.2000" in said and said.count("not recorded") == 8
    assert "open: no verdict before" in said
