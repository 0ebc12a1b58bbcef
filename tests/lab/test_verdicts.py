"""Do verdicts follow from the records, and only where the seeds can carry them?"""

import json

import pytest

from course import records
from evidence.measured import bypass_seeds, portraits, states
from evidence.research import claims, pairs, tallies, verdicts
from evidence.research.grids import GRIDS, Grid
from minimal.compare import intervals
from minimal.compare import runs as runs_module
from minimal.data import results
from minimal.data.files import write_whole
from minimal.training.run import Run


@pytest.mark.parametrize("claim", verdicts.CLAIMED)
def test_what_is_asked_is_a_claim_whose_runs_some_grid_makes(claim):
    files, comparisons = verdicts.CLAIMED[claim]
    encoders = [Run(plan=plan) for plan in bypass_seeds.PLANS]
    others = dict(
        inside=[Run(**changes) for changes in portraits.PORTRAYED.values()],
        bypass=encoders,
        bypass_dials=encoders,
    )
    assert claim in {row["id"] for row in records.claims()}
    made = {
        run.plan
        for file in files
        for run in (GRIDS[file].runs() if file in GRIDS else others[file])
    }
    for first, relation, second, *at in map(str.split, comparisons):
        assert {name.partition(".")[0] for name in (first, second)} <= made and relation in (
            "<",
            "<~",
            "~",
            "wider",
        )
        assert not at or at[0] == "at" and (at[1] in bypass_seeds.SIZES or at[1].isdigit())


def test_the_files_compared_with_each_other_share_their_setting():
    asked = {
        json.dumps([r.corpus, r.steps, r.size, r.rows])
        for file in verdicts.ON_NOVEL
        for r in GRIDS[file].runs()
    }
    assert len(asked) == 1


def test_a_comparison_without_its_claim_is_told_so(monkeypatch, tmp_path):
    monkeypatch.setitem(verdicts.CLAIMED, "nobody-said-so", (verdicts.ON_NOVEL, ["bov < standard"]))
    with pytest.raises(SystemExit, match="claims.json has no nobody-said-so: add its row"):
        verdicts.main([])


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
    ],
)
def test_an_interval_says_yes_no_or_nothing(relation, low, high, said):
    assert pairs.holds(relation, low, high, 0.02) is said


@pytest.mark.parametrize("relation", ["<", "<~", "~"])
@pytest.mark.parametrize("mean", [-0.03, -0.012, -0.004, 0.001, 0.009, 0.013, 0.04])
@pytest.mark.parametrize("spread", [0.0005, 0.004, 0.02])
def test_a_p_below_5_per_cent_is_an_interval_that_can_tell(relation, mean, spread):
    differences = [mean + spread * x for x in (-1.0, 0.2, 0.1, 0.7)]
    _, low, high = intervals.interval(differences)
    can_tell = pairs.holds(relation, low, high, 0.01) is not None
    assert (pairs.p_of(relation, differences, 0.01) < 0.05) == can_tell


def record(tmp_path, monkeypatch, losses, name="thirteen_rows", field="loss"):
    """An evidence file: {plan: losses by seed}; a dict of them by depth makes several settings."""
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    settings = losses if all(isinstance(v, dict) for v in losses.values()) else {None: losses}
    rows = [
        dict(
            plan=plan,
            size="tiny",
            seed=seed,
            asked=dict(steps=500) | (dict(changes=dict(layers=at)) if at else {}),
            **{field: loss},
        )
        for at, plans in settings.items()
        for plan, row in plans.items()
        for seed, loss in enumerate(row)
    ]
    head = dict(
        what="w",
        command="c",
        commit=None,
        hardware="h",
        versions={},
        corpus=dict(name="n", fingerprint="f", tokens=1),
    )
    results.write(tmp_path / f"{name}.json", head | dict(rows=rows))


@pytest.mark.parametrize(
    "fixed, verdict",
    [
        ([3.10, 3.21, 3.30], "reproduced"),
        ([2.90, 3.01, 3.10], "not reproduced"),
        ([3.10, 3.10, 3.20], "too close for our seeds"),
        ([3.10, 3.21], "open"),
        ([], "open"),
    ],
)
def test_a_verdict_needs_three_seeds_and_an_interval_without_zero(
    tmp_path, monkeypatch, fixed, verdict
):
    record(tmp_path, monkeypatch, dict(bov=[3.0, 3.1, 3.2]) | {"bov-fixed": fixed})
    said = verdicts.judged("bov-fixed")
    assert said[0] == verdict
    assert (said[1] is None) == (not fixed) and ("seeds" in said[2]) == bool(fixed)


def test_what_another_text_says_stands_beside_a_verdict_and_does_not_change_it(
    tmp_path, monkeypatch
):
    claim = dict(id="bov-fixed", verdict="open", evidence=None)
    record(tmp_path, monkeypatch, dict(bov=[3.0, 3.1, 3.2]) | {"bov-fixed": [3.1, 3.21, 3.3]})
    assert "on_code" not in verdicts.settled([claim])[0]
    record(
        tmp_path, monkeypatch, dict(bov=[3.0, 3.1, 3.2]) | {"bov-fixed": [2.9, 3.01, 3.1]}, "stdlib"
    )
    (told,) = verdicts.settled([claim])
    assert told["verdict"] == "reproduced" and told["verdict_on_code"] == "not reproduced"
    assert told["on_code"].startswith("bov ahead of bov-fixed: −0.09")


# ---- whole grids, one state, most seeds ----------------------------------------------------------


@pytest.fixture
def two_grids(tmp_path, monkeypatch):
    """Three seeds of an older file, and a function that records seeds of a second grid, whose rows
    name their commit."""
    record(tmp_path, monkeypatch, dict(bov=[3.0, 3.1, 3.2]) | {"bov-fixed": [3.1, 3.21, 3.3]})
    cells = [dict(plan="bov"), dict(plan="bov-fixed")]
    novel = GRIDS["thirteen_rows"].base
    monkeypatch.setitem(GRIDS, "more", Grid("more seeds", cells, range(6), novel))
    known = {("aaa", "2", "cpu"): "one", ("bbb", "2", "cpu"): "two"}
    monkeypatch.setattr(states, "known", lambda: known)

    def more(fixed, commits="a" * 12):
        both = zip(range(6), [3.0, 3.1, 3.2, 3.0, 3.1, 3.2], fixed)
        runs = [(p, seed, x) for seed, a, b in both for p, x in (("bov", a), ("bov-fixed", b))]
        asked = runs_module.asked_of(next(GRIDS["more"].runs()))
        rows = [
            dict(plan=plan, size="tiny", seed=seed, loss=loss, asked=asked)
            | dict(commit=3 * letter, torch="2", machine="cpu")
            for (plan, seed, loss), letter in zip(runs, commits)
        ]
        content = records.read("thirteen_rows")
        for row in content["rows"]:
            row["asked"] = asked
        results.write(tmp_path / "thirteen_rows.json", content)
        results.write(tmp_path / "more.json", content | dict(rows=rows))

    return more


AHEAD = [2.9, 3.01, 3.1, 2.9, 3.01, 3.1]


def test_a_whole_grid_with_more_seeds_decides_in_place_of_the_claims_own_file(two_grids):
    two_grids(AHEAD)
    verdict, evidence, words = verdicts.judged("bov-fixed")
    assert (verdict, evidence) == ("not reproduced", "notebooks/evidence/more.json")
    assert "6 seeds" in words
    assert verdicts.judged("bov-fixed", most_seeds=False)[0] == "reproduced"


@pytest.mark.parametrize(
    "fixed, commits",
    [
        (AHEAD[:5], "a" * 10),  # a run is missing
        (AHEAD, "aaaaaabbbbbb"),  # two states of the numbers
        (AHEAD, "c" * 12),  # a commit of which no fingerprint was taken
    ],
)
def test_neither_a_part_of_a_grid_nor_mixed_states_decide_anything(two_grids, fixed, commits):
    two_grids(fixed, commits)
    verdict, evidence, words = verdicts.judged("bov-fixed")
    assert (verdict, evidence) == ("reproduced", "notebooks/evidence/thirteen_rows.json")
    assert "3 seeds" in words


def test_what_a_grid_lacks_is_counted_as_the_recorder_counts_it(two_grids):
    for fixed, number in ((AHEAD, 0), (AHEAD[:5], 2), (AHEAD[:1], 10)):
        two_grids(fixed)
        path = records.EVIDENCE / "more.json"
        assert pairs.lacking("more") == len(runs_module.missing_runs(GRIDS["more"], path)) == number


def test_a_claim_whose_own_grid_is_not_whole_stays_open(two_grids):
    two_grids(AHEAD[:5])
    assert verdicts.judged("bov-fixed", ("more",)) == ("open", None, "")
    two_grids(AHEAD)
    assert verdicts.judged("bov-fixed", ("more",))[0] == "not reproduced"


def test_a_verdict_says_whether_it_stands_among_all_comparisons(tmp_path, monkeypatch):
    """One p of about .0005 among four and, beside it, one of about .03."""
    monkeypatch.setattr(
        verdicts,
        "CLAIMED",
        {
            name: (verdicts.ON_NOVEL, [comparison])
            for name, comparison in dict(
                strong="bov < a", weak="bov < b", none="bov < c", even="bov < d"
            ).items()
        },
    )
    apart = dict(a=[0.1, 0.103, 0.098], b=[0.1, 0.15, 0.07], c=[0.1, -0.1, 0.0], d=[0.1, -0.2, 0.0])
    losses = dict(bov=[3.0, 3.1, 3.2])
    losses |= {p: [x + y for x, y in zip(losses["bov"], more)] for p, more in apart.items()}
    record(tmp_path, monkeypatch, losses)
    number, stays = verdicts.corrected()
    assert number == 4 and stays == dict(strong=(True, True), weak=(False, False))
    (claim, *_) = verdicts.settled([dict(id="weak", verdict="open", evidence=None)])
    assert claim["verdict"] == "reproduced"
    assert "Among the 4 comparisons behind verdicts: clear by neither" in claim["measured"]
    (claim, *_) = verdicts.settled([dict(id="none", verdict="open", evidence=None)])
    assert "Among" not in claim["measured"]


def test_a_verdict_from_an_exploratory_grid_says_so(tmp_path, monkeypatch):
    losses = dict(bov=[3.0, 3.1, 3.2], a=[3.1, 3.21, 3.3])
    for name, late in (("thirteen_rows", False), ("confound", True)):
        monkeypatch.setattr(verdicts, "CLAIMED", dict(one=((name,), ["bov < a"])))
        record(tmp_path / name, monkeypatch, losses, name)
        (claim,) = verdicts.settled([dict(id="one", verdict="open", evidence=None)])
        assert ("Exploratory: confound." in claim["measured"]) == late


def test_a_comparison_must_hold_at_every_depth(tmp_path, monkeypatch):
    ahead, behind = [
        dict(standard=[3.0, 3.1, 3.2], resformer=[x + d for x in (3.0, 3.11, 3.2)])
        for d in (-0.1, 0.1)
    ]
    record(tmp_path, monkeypatch, {3: ahead, 6: ahead}, "sizes")
    assert verdicts.judged("res-beats")[0] == "reproduced"
    record(tmp_path, monkeypatch, {3: ahead, 6: behind}, "sizes")
    verdict, _, said = verdicts.judged("res-beats")
    assert (
        verdict == "not reproduced" and "at layers 3: +0.09" in said and "at layers 6: −0.1" in said
    )


def test_spreads_are_told_apart_by_an_f_test(tmp_path, monkeypatch):
    wide, even = [60.0, 70.0, 80.0, 90.0, 75.0], [74.0, 75.0, 76.0, 75.5, 74.5]
    for name, standard, bypass, verdict in (
        ("wider", even, wide, "reproduced"),
        ("narrower", wide, even, "not reproduced"),
        ("alike", even, even, "too close for our seeds"),
        ("few", even[:2], wide[:2], "open"),
    ):
        record(tmp_path / name, monkeypatch, dict(standard=standard, bypass=bypass), "bypass", "f1")
        said = verdicts.judged("byp-spread")
        assert said[0] == verdict and ("F test" in said[2]) == (name != "few")


def test_a_comparison_without_runs_leaves_a_claim_open(tmp_path, monkeypatch):
    record(tmp_path, monkeypatch, dict(resformer=[3.0, 3.1, 3.2], neutreno=[3.1, 3.21, 3.3]))
    assert verdicts.judged("res-rivals")[0] == "open"  # nothing of denseformer


def test_the_command_writes_the_file_and_says_what_changed(tmp_path, monkeypatch, capsys):
    book = records.claims()
    record(tmp_path, monkeypatch, dict(bov=[3.0, 3.1, 3.2]) | {"bov-fixed": [3.1, 3.21, 3.3]})
    write_whole(tmp_path / "claims.json", json.dumps(book))
    verdicts.main([])
    after = {claim["id"]: claim for claim in records.claims()}
    assert after["bov-fixed"]["verdict"] == "reproduced" and "bov-fixed" in capsys.readouterr().out
    assert [claim["id"] for claim in records.claims()] == [claim["id"] for claim in book]
    assert after["res-eq4"] in book


@pytest.mark.parametrize(
    "words, status, said",
    [
        ("--help", 0, "usage: python -m evidence.research.verdicts"),
        ("--zzz", 2, "verdicts: unrecognized arguments: --zzz"),
    ],
)
def test_asking_for_help_and_a_wrong_option_write_nothing(words, status, said, capsys, monkeypatch):
    monkeypatch.setattr(verdicts, "write_whole", None)  # writing would fail
    with pytest.raises(SystemExit) as ended:
        verdicts.main([words])
    assert ended.value.code == status
    assert "".join(capsys.readouterr()).startswith(said)


def test_when_nothing_changes_the_command_says_so(tmp_path, monkeypatch, capsys):
    record(tmp_path, monkeypatch, dict(bov=[3.0, 3.1, 3.2]) | {"bov-fixed": [3.1, 3.21, 3.3]})
    book = [
        dict(id=claim, verdict="open", evidence=None, measured="") for claim in verdicts.CLAIMED
    ]
    write_whole(tmp_path / "claims.json", json.dumps(book))
    verdicts.main([])
    verdicts.main([])
    said = capsys.readouterr().out.splitlines()
    assert any(line.startswith("bov-fixed") for line in said) and said[-1].startswith(
        "verdicts: every claim already"
    )


def test_both_texts_stand_in_the_picture_of_verdicts():
    claims, sources = records.claims(), records.published()
    found = tallies.tallies(claims, sources)
    both = [row for row in claims if "verdict_on_code" in row]
    *by_source, novel, code = found.values()
    assert sum(map(sum, (counts.values() for counts in by_source))) == len(claims)
    assert sum(novel.values()) == sum(code.values()) == len(both) >= 10
    assert novel != code, "the texts disagree"
    ax = tallies.bars(claims, sources).axes[0]
    numbers = [int(text.get_text()) for text in ax.texts]
    assert sum(numbers) == len(claims) + 2 * len(both)
    assert set(tallies.LOOKS) == set(records.VERDICTS)
    assert len(set(tallies.LOOKS.values())) == len(records.VERDICTS)


def test_rows_are_read_anew_when_their_file_is_written_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    head = dict.fromkeys(results.FIELDS, "")
    assert pairs.whole_rows("made") == [] and pairs.settings(("made",)) == {}
    for loss in (3.0, 2.0):
        row = dict(plan="standard", seed=0, size="tiny", loss=loss)
        results.write(tmp_path / "made.json", head | dict(rows=[row]))
        assert pairs.whole_rows("made") == [row]
        assert pairs.settings(("made",)) == {("tiny", "{}"): [row]}


LEADS_AT_BEST = {  # (ours, over): (lead, low, high)
    ("resformer", "denseformer"): (0.03, 0.02, 0.04),
    ("resformer", "neutreno"): (0.05, 0.03, 0.07),
    ("bov-fixed", "bov-keep"): (-0.005, -0.02, 0.01),
    ("row5", "standard"): (-0.03, -0.04, -0.02),
    ("row8", "standard"): (0.02, 0.01, 0.03),
    ("bov-fixed", "standard"): (0.2, 0.1, 0.3),
}


def test_a_claim_is_asked_again_where_each_system_has_its_best_rates(monkeypatch):
    def lead(text, plan, over="standard"):
        mean, low, high = LEADS_AT_BEST[plan, over]
        return dict(difference=mean, low=low, high=high, clear=low * high > 0)

    monkeypatch.setattr(claims.at_best, "lead", lead)
    assert claims.said_at_best("res-rivals", "code").startswith("reproduced; ")
    assert claims.said_at_best("bov-keep", "code").startswith("too close for our seeds; ")
    assert claims.said_at_best("bov-no-cost", "code").startswith("not reproduced; row5 ahead of")


def test_a_claim_is_asked_again_only_if_all_its_systems_were_tuned(monkeypatch):
    monkeypatch.setattr(claims.at_best, "told_systems", lambda: ["resformer", "neutreno"])
    assert not claims.of_tuned_systems("res-rivals")
    monkeypatch.setattr(
        claims.at_best, "told_systems", lambda: ["resformer", "neutreno", "denseformer"]
    )
    assert claims.of_tuned_systems("res-rivals")
    assert not claims.of_tuned_systems("res-lengths")  # it asks of several lengths
    assert not claims.of_tuned_systems("bov-deterministic")  # no runs decide it


def test_a_claim_that_is_no_longer_compared_keeps_no_verdict_of_an_earlier_list():
    """Nor does one whose plan was deleted."""
    written = dict(id="x", verdict="reproduced", measured="a less b", on_code="c", note="n")
    assert verdicts.without_verdict(written) == dict(id="x", verdict="open", note="n")
    by_hand = dict(id="y", verdict="wrong", note="n")
    assert verdicts.without_verdict(by_hand) == by_hand
    computed = {"measured", "on_code"}
    listed = {claim["id"] for claim in records.claims() if computed & claim.keys()}
    assert listed <= verdicts.CLAIMED.keys()
