"""Do verdicts follow from the records, and only where the seeds can carry them?"""

import json
import tomllib

import pandas as pd
import pytest

from course import records, tallies
from evidence.lab import claims
from evidence.lab.asked import grids
from evidence.lab.comparison import Lead, of_seeds
from evidence.lab.foretold import judge
from evidence.measured import bypass_seeds, portraits

COMPARED = {claim["id"]: claim for claim in records.written_claims() if "compare" in claim}
OTHERS = dict(
    inside={cell["plan"] for cell in portraits.PORTRAYED.values()},
    bypass={*bypass_seeds.PLANS},
    bypass_dials={*bypass_seeds.PLANS},
)


@pytest.mark.parametrize("name", COMPARED)
def test_what_is_compared_is_of_plans_that_some_grid_trains(name):
    claim, known = COMPARED[name], grids()
    made = {
        plan
        for file in claim["files"]
        for plan in OTHERS.get(file) or {cell["plan"] for cell in known[file].cells}
    }
    for comparison in claim["compare"]:
        first, relation, second, *at = comparison.split()
        assert {one.partition(".")[0] for one in (first, second)} <= made
        assert relation in ("<", "<~", "~", "wider") and not {"verdict", "kind"} & claim.keys()
        assert not at or at[0] == "at" and (at[1] in bypass_seeds.SIZES or at[1].isdigit())


def test_the_grids_that_are_compared_with_each_other_share_their_setting():
    found = [grids()[name] for name in ("thirteen_rows", "residuals", "sharing")]
    assert all(grid.run == found[0].run and grid.text == "novel" for grid in found)


# ---- one comparison ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "relation, low, high, said",
    [
        ("<", -0.05, -0.01, True),
        ("<", 0.01, 0.05, False),
        ("<", -0.05, 0.01, None),
        ("<~", -0.05, 0.01, True),
        ("<~", 0.03, 0.05, False),
        ("<~", -0.05, 0.03, None),
        ("~", -0.01, 0.01, True),
        ("~", 0.03, 0.05, False),
        ("~", -0.05, -0.03, False),
        ("~", -0.05, 0.01, None),
        ("<", 0.0, 0.0, False),  # alike to the last digit
        ("~", 0.0, 0.0, True),
    ],
)
def test_an_interval_says_yes_no_or_nothing(relation, low, high, said):
    seeds = pd.Series([(low + high) / 2] * 4)
    found = Lead(seeds, (high - low) / 2 / Lead(seeds, 1.0).reach())
    assert judge(found, **claims.range_of(relation, 0.02)).holds is said


@pytest.mark.parametrize("relation", ["<", "<~", "~"])
@pytest.mark.parametrize("mean", [-0.03, -0.012, -0.004, 0.001, 0.009, 0.013, 0.04])
@pytest.mark.parametrize("spread", [0.0005, 0.004, 0.02])
def test_a_p_below_5_per_cent_is_an_interval_that_can_tell(relation, mean, spread):
    found = of_seeds([mean + spread * x for x in (-1.0, 0.2, 0.1, 0.7)])
    limits = claims.range_of(relation, 0.01)
    assert (found.p_of(**limits) < 0.05) == (judge(found, **limits).holds is not None)


@pytest.fixture
def invent(monkeypatch):
    """invent(grid={plan: losses by seed}) in place of all records; where a grid has a dict a depth,
    each is a setting. `one_state` are whole grids that may decide in place of a claim's own."""

    def invented(one_state=(), field="loss", **by_grid):
        found = {}
        for name, plans in by_grid.items():
            depths = plans if isinstance(next(iter(plans.values())), dict) else {None: plans}
            found[name] = {
                ("tiny", json.dumps(dict(changes=dict(layers=depth)) if depth else {})): [
                    dict(plan=plan, seed=seed) | {field: value}
                    for plan, values in some.items()
                    for seed, value in enumerate(values)
                ]
                for depth, some in depths.items()
            }
        monkeypatch.setattr(claims, "settings", lambda name, now: found.get(name, {}))
        monkeypatch.setattr(claims, "of_one_state", lambda now: one_state)

    return invented


def claim(*compare, files=("own",)):
    return dict(id="one", files=list(files), compare=list(compare))


PLAIN, AHEAD, BEHIND = [3.0, 3.1, 3.2], [2.9, 3.01, 3.1], [3.1, 3.21, 3.3]


@pytest.mark.parametrize(
    "fixed, verdict",
    [
        (BEHIND, "reproduced"),
        (AHEAD, "not reproduced"),
        ([3.10, 3.10, 3.20], "too close for our seeds"),
        (BEHIND[:2], "open"),
        ([], "open"),
    ],
)
def test_a_verdict_needs_three_seeds_and_an_interval_without_zero(invent, fixed, verdict):
    invent(own={"bov": PLAIN, "bov-fixed": fixed})
    said, words = claims.verdict_on(claim("bov < bov-fixed"))
    assert said == verdict and ("seeds" in words) == bool(fixed)


def test_a_comparison_without_runs_leaves_a_claim_open(invent):
    invent(own=dict(a=PLAIN, b=BEHIND))
    assert claims.verdict_on(claim("a < b", "a < c"))[0] == "open"
    assert claims.verdict_on(claim("a < b", files=["nowhere"])) == ("open", "")


def test_a_comparison_must_hold_at_every_depth(invent):
    ahead, behind = dict(a=PLAIN, b=AHEAD), dict(a=PLAIN, b=BEHIND)
    invent(own={3: ahead, 6: ahead})
    assert claims.verdict_on(claim("b < a"))[0] == "reproduced"
    invent(own={3: ahead, 6: behind})
    verdict, said = claims.verdict_on(claim("b < a"))
    assert verdict == "not reproduced"
    assert "at layers 3: +0.09" in said and "at layers 6: −0.1" in said


def test_spreads_are_told_apart_by_an_f_test(invent):
    wide, even = [60.0, 70.0, 80.0, 90.0, 75.0], [74.0, 75.0, 76.0, 75.5, 74.5]
    for one, other, verdict in (
        (wide, even, "reproduced"),
        (even, wide, "not reproduced"),
        (even, even, "too close for our seeds"),
        (wide[:2], even[:2], "open"),
    ):
        invent(field="f1", own=dict(a=one, b=other))
        said, words = claims.verdict_on(claim("a.f1 wider b.f1"))
        assert said == verdict and ("F test" in words) == (verdict != "open")


# ---- whole grids, one state, most seeds ----------------------------------------------------------


def test_a_whole_grid_with_more_seeds_decides_in_place_of_the_claims_own(invent):
    own, more = dict(a=PLAIN, b=BEHIND), dict(a=PLAIN + PLAIN, b=AHEAD + AHEAD)
    invent(own=own, more=more, one_state=["more"])
    (found,) = claims.compared(["own"], "a < b")
    assert (found["holds"], found["grid"], found["n"]) == (False, "more", 6)
    invent(own=own, more=more)  # of several states of the numbers
    (found,) = claims.compared(["own"], "a < b")
    assert (found["holds"], found["grid"], found["n"]) == (True, "own", 3)


def test_a_grid_that_begins_and_one_of_two_states_or_of_another_machine_decide_nothing(monkeypatch):
    now = records.written()
    one = claims.of_one_state(now)
    assert "ten_seeds_code" in one and not {"thirteen_rows", "noise_code", "answer_d12"} & {*one}
    whole = records.rows("thirteen_rows")
    assert claims.settings.__wrapped__("thirteen_rows", now)
    monkeypatch.setattr(records, "rows", lambda name: whole[:-1])
    assert not claims.settings.__wrapped__("thirteen_rows", now)


def test_another_text_stands_beside_a_verdict_and_does_not_change_it(invent):
    asked = claim("a < b", files=["thirteen_rows"])
    invent(thirteen_rows=dict(a=PLAIN, b=BEHIND), stdlib=dict(a=PLAIN, b=AHEAD))
    assert claims.verdict_on(asked)[0] == "reproduced"
    verdict, words = claims.verdict_on(asked, on_code=True)
    assert verdict == "not reproduced" and words.startswith("a ahead of b: −0.09")
    assert claims.verdict_on(claim("a < b"), on_code=True) == ("open", "")


# ---- what makes a verdict weaker -----------------------------------------------------------------


def test_a_verdict_says_whether_it_stands_among_all_comparisons(invent):
    """One p of about .0005 among four and, beside it, one of about .03."""
    apart = dict(a=[0.1, 0.103, 0.098], b=[0.1, 0.15, 0.07], c=[0.1, -0.1, 0.0], d=[0.1, -0.2, 0.0])
    invent(own=dict(o=PLAIN) | {p: [x + y for x, y in zip(PLAIN, v)] for p, v in apart.items()})
    asked = [claim(f"o < {plan}") | dict(id=plan) for plan in apart]
    number, stays = correction = claims.corrected(asked)
    assert number == 4 and stays == dict(a=(True, True), b=(False, False))
    words = claims.in_doubt(asked[1], "reproduced", correction)
    assert words == " Among the 4 comparisons behind verdicts: clear by neither " + (
        "Benjamini-Hochberg nor Holm."
    )
    assert claims.in_doubt(asked[2], "too close for our seeds", correction) == ""


def test_a_verdict_from_an_exploratory_grid_or_chosen_after_a_look_says_so(invent):
    invent(thirteen_rows=dict(a=PLAIN, b=BEHIND), confound=dict(a=PLAIN, b=BEHIND))
    for name, late in (("thirteen_rows", ""), ("confound", " Exploratory: confound.")):
        asked = claim("a < b", files=[name])
        assert claims.in_doubt(asked, "open", (1, {})) == late
    words = claims.in_doubt(asked | dict(after_a_look=True), "open", (1, {}))
    assert words.endswith("The comparison was chosen after a look.")


# ---- the files -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    return claims.verdicts()


def test_the_verdicts_and_the_page_are_what_the_records_say(found, monkeypatch, capsys):
    monkeypatch.setattr(claims, "verdicts", lambda: found)
    claims.main(["--check"])
    assert capsys.readouterr().out == "claims: nothing written\n"


def test_the_command_writes_what_has_moved_and_only_that(found, monkeypatch, tmp_path, capsys):
    moved = found | {"bov-fixed": found["bov-fixed"] | dict(verdict="reproduced")}
    monkeypatch.setattr(claims, "verdicts", lambda: moved)
    for name in ("VERDICTS", "PAGE"):
        path = tmp_path / getattr(claims, name).name
        path.write_text(getattr(claims, name).read_text())
        monkeypatch.setattr(claims, name, path)
    with pytest.raises(SystemExit, match="verdicts.json, claims.md is not what the records say"):
        claims.main(["--check"])
    claims.main([])
    assert capsys.readouterr().out == "claims: verdicts.json, claims.md written\n"
    assert json.loads(claims.VERDICTS.read_text()) == moved
    assert claims.PAGE.read_text().startswith("# What the sources claim")
    claims.main([])
    assert "nothing written" in capsys.readouterr().out


def test_a_claim_that_is_no_longer_compared_keeps_no_verdict_of_an_earlier_list(found):
    text = (records.EVIDENCE / "claims.toml").read_text()
    assert tomllib.loads(text)["claims"] == records.written_claims()
    assert found.keys() == COMPARED.keys()
    without = {name: told for name, told in found.items() if name != "bov-fixed"}
    (one,) = (claim for claim in records.claims(without) if claim["id"] == "bov-fixed")
    assert one["verdict"] == "open" and one["evidence"] is None


def test_twelve_claims_that_readers_ask_about_stand_first_on_the_page():
    asked = records.asked_about()
    assert len({*asked}) == 12 and {*asked} <= {claim["id"] for claim in records.claims()}
    first = claims.PAGE.read_text().partition("## Twelve")[2].partition("\n## ")[0]
    assert [name for name in asked if f"| `{name}` |" in first] == asked


# ---- at best rates -------------------------------------------------------------------------------


def test_a_claim_is_asked_again_only_if_all_its_systems_were_tuned():
    told = claims.at_best_rates(records.claims())
    assert "`res-rivals`" in told and "`bov-every`" in told  # row3 is svformer
    assert "`res-lengths`" not in told  # it asks of several lengths
    assert "`bov-gains`" not in told  # of rows 10 and 12 one was never tuned
    assert "`bov-deterministic`" not in told  # no runs decide it


def test_at_best_rates_a_verdict_is_that_of_these_leads():
    told = claims.said_at_best(COMPARED["res-rivals"], "code")
    assert told.startswith("reproduced; resformer ahead of denseformer: **+0.029** (+0.002 to ")
    assert claims.said_at_best(COMPARED["res-rivals"], "novel").startswith("not reproduced; ")


# ---- the picture ---------------------------------------------------------------------------------


def test_both_texts_stand_in_the_picture_of_verdicts():
    book, sources = records.claims(), records.published()
    both = [row for row in book if "verdict_on_code" in row]
    *by_source, novel, code = tallies.tallies(book, sources).values()
    assert sum(sum(counts.values()) for counts in by_source) == len(book)
    assert sum(novel.values()) == sum(code.values()) == len(both) >= 10
    assert novel != code, "the texts disagree"
    numbers = [int(text.get_text()) for text in tallies.bars(book, sources).axes[0].texts]
    assert sum(numbers) == len(book) + 2 * len(both)
    assert {*tallies.INKS} == {*records.VERDICTS}
    assert len({*tallies.INKS.values()}) == len(records.VERDICTS)
