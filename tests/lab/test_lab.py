"""The laboratory: one table, what was asked, one comparison, predictions, marks."""

import itertools
import json
import math
import re
from dataclasses import replace

import nbformat
import pandas as pd
import pytest
from scipy import stats

from course import records
from evidence.lab import (
    along,
    asked,
    change,
    effect,
    foretold,
    lead,
    leads,
    marks,
    picture,
    quantities,
    rates,
    record,
    runs,
)
from evidence.lab.asked import grids
from evidence.lab.comparison import NotRecorded
from evidence.lab.names import with_names
from evidence.lab.quantities import quantity
from evidence.lab.table import at_step
from minimal.compare import ledger
from minimal.compare import runs as compare_runs
from minimal.data import results
from minimal.training.run import TimeIsUp

ANSWER = "lead x0-v code fine"


@pytest.fixture(scope="module")
def table():
    return runs()


# ---- the table -----------------------------------------------------------------------------------


def test_every_recorded_run_is_a_cell_of_its_grid():
    """But for a first recording that was kept as a measure of rounding."""
    wanted = {name: set(map(record.key_of_run, grid.runs())) for name, grid in grids().items()}
    there = {}
    for run in records.recorded_runs():
        there.setdefault(run["grid"], []).append(record.key_of(run))
    assert set(there) - set(wanted) == {"thirteen_older"}
    for name, keys in there.items():
        assert len(set(keys)) == len(keys), name
        assert set(keys) <= wanted.get(name, set(keys)), name


def test_no_run_of_the_table_was_lost(table):
    assert len(records.recorded_runs()) >= 3405
    assert {"grid", "topic", "text", "rates", "plan", "cell", "seed", "loss"} <= set(table)
    heads, known = records.recordings(), grids()
    assert set(heads) == {run["grid"] for run in records.recorded_runs()}
    assert all(heads[name]["topic"] == known[name].topic for name in heads.keys() & known.keys())
    for path in records.RUNS.glob("*.jsonl"):
        names = {json.loads(line)["grid"] for line in path.read_text().splitlines()}
        assert {heads[name]["topic"] for name in names} == {path.stem}


def test_a_part_of_a_grid_is_not_told(table, monkeypatch):
    some = [
        run for run in records.recorded_runs() if (run["grid"], run["seed"]) != ("fair_code", 3)
    ]
    monkeypatch.setattr(records, "recorded_runs", lambda: some)
    runs.__globals__["runs_when"].cache_clear()
    try:
        assert "fair_code" not in set(runs().grid) and "fair_novel" in set(runs().grid)
        assert "fair_code" in set(runs(whole=False).grid)
    finally:
        runs.__globals__["runs_when"].cache_clear()


def test_halfway_is_read_off_the_curve_and_the_end_is_exact(table):
    some = table[(table.topic == "d12") & (table.rates == "paper")]
    assert (at_step(some, 350).loss == some.loss).all()
    halfway = at_step(some, 175)
    assert [dict(curve)[175] for curve in some.valid] == halfway.loss.tolist()
    assert halfway.held_out.isna().all()  # stretches are those of the end
    shrunk = quantity("lead-at 175 x0-v d12").mean - quantity("lead x0-v d12").mean
    assert shrunk == pytest.approx(0.162, abs=0.0005)
    assert str(quantity("lead-at 350 x0-v d12")) == str(quantity("lead x0-v d12"))


# ---- the comparison ------------------------------------------------------------------------------


def test_the_answer(table):
    found = lead(table, "x0-v", text="code", rates="fine")
    assert str(found) == "+0.108 (+0.085 to +0.131)" and found.n == 10 and found.clear
    assert str(lead(table, "x0-v", text="novel", rates="fine")) == "+0.010 (+0.005 to +0.015)"


def test_one_sign(table):
    how = dict(text="code", rates="tuned")
    one, other = lead(table, "row8", "row12", **how), lead(table, "row12", "row8", **how)
    assert one.mean == pytest.approx(-other.mean) and one.low == pytest.approx(-other.high)
    assert one.mean > 0  # x0 W_V alone has the lower loss


def test_a_lead_is_of_one_run_a_seed_and_says_what_it_lacks(table):
    with pytest.raises(ValueError, match="several in text='code': name text, rates, steps or grid"):
        lead(table, "x0-v", text="code")
    with pytest.raises(NotRecorded, match="wanted runs of row99, got none in text='code'"):
        lead(table, "row99", text="code")
    fair = table[(table.grid == "fair_code") & (table.seed.isin([3, 4]))]
    assert not lead(fair, "x0-v").clear, "two seeds decide nothing"
    with pytest.raises(ValueError, match="two seeds that x0-v and standard share, got 1"):
        lead(fair[fair.seed == 3], "x0-v")


def test_rates_that_nobody_tried_are_said_with_the_grid_that_would_try_them(table):
    assert rates.chosen(table, "code", "x0-v") == "matrices x 2"
    with pytest.raises(NotRecorded, match='wanted runs of mine on code that tried .* "tuning_…"'):
        rates.chosen(table, "code", "mine")


def test_two_states_of_the_numbers_are_not_compared(table):
    some = table[table.grid == "fair_code"].copy()
    some.loc[some.plan == "standard", "state"] = "another"
    with pytest.raises(ValueError, match="wanted x0-v and standard of one state of the numbers"):
        lead(some, "x0-v")


def test_the_interval_holds_seeds_and_rows(table):
    """Twice by hand: with rows the squares add, without rows the seeds' error stands alone."""
    some = table[table.grid == "fair_code"]
    with_rows, alone = lead(some, "x0-v"), lead(some.assign(held_out=None), "x0-v")
    by_seed = with_rows.by_seed
    assert alone.error == pytest.approx(by_seed.std(ddof=1) / math.sqrt(10))
    assert with_rows.error > alone.error and with_rows.mean == alone.mean
    # Student's t with nine degrees of freedom
    assert alone.high - alone.mean == pytest.approx(2.262157 * alone.error, rel=1e-6)


def test_a_change_is_tested_seed_by_seed(table):
    fine, ten = (lead(table, "x0-v", text="code", rates=rates) for rates in ("fine", "ten"))
    found = change(fine, ten)
    assert found.mean == pytest.approx(fine.mean - ten.mean) and found.n == 10
    assert str(found) == "−0.030 (−0.056 to −0.004)"


@pytest.mark.parametrize("text", ["code", "novel"])
def test_many_leads_and_what_stays_clear_among_them(table, text):
    """However many systems are tuned."""
    plans = set(table[(table.rates == "tuned") & (table.text == text)].plan) - {"standard"}
    found = leads(table, sorted(plans), text=text, rates="tuned")
    assert len(found) == len(plans)
    assert list(found["lead"]) == sorted(found["lead"], reverse=True)
    ahead, corrected = found[found["lead"] > 0], stats.false_discovery_control(found.p)
    assert quantity(f"ranked clear {text}") == (ahead.low > 0).sum()
    assert quantity(f"ranked bh {text}") == (corrected[found["lead"] > 0] < 0.05).sum()
    # Holm's step down: the smallest p against 0.05 over all, the next over one less
    ranks = range(len(found), 0, -1)
    kept = [p * rank < 0.05 for p, rank in zip(sorted(found.p), ranks, strict=True)]
    clear = sorted(found.p)[: (kept + [False]).index(False)]
    assert quantity(f"ranked holm {text}") == ahead.p.isin(clear).sum() > 0


def test_a_picture_says_what_it_shows(table):
    panels = {text: leads(table, ["x0-v", "row8"], text=text, rates="tuned") for text in ("code",)}
    fig, alt = picture(panels, "Two systems", names={"x0-v": "x0 W_V"})
    across = "Across: nats ahead; filled: clear of zero"
    assert alt == f"Two systems. {across}. code: x0 W_V +0.145; row8 +0.100."
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["row8", "x0 W_V"]


def test_leads_along_an_axis_say_where_they_begin_and_end(table):
    some = table[table.topic == "budgets"]
    found = {"bov-fixed": [lead(some, "bov-fixed", text="code", steps=n) for n in (500, 4000)]}
    fig, alt = along({"code": found}, [1, 8], "Tables", "tokens", {"bov-fixed": "tables"})
    assert alt == "Tables. Across: tokens. From first to last, code: tables +0.193 to +0.112."
    (ax,) = fig.axes
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "8"]
    assert [words.get_text() for words in ax.texts] == ["tables"]


# ---- an effect: the mean over all twins, and nothing else ----------------------------------------

COST = dict(standard=0.1, dva=0.0, one=-0.02, noffn=0.3, nowo=0.05) | {"dva-random": 0.12}
FACTORS = ("standard", "dva-random", "dva"), ("one", "many"), ("ffn", "noffn"), ("wo", "nowo")


def factors(seeds=(0, 1)):
    """Losses that are sums of costs, and a network whose removal costs less with a modifier."""
    rows = []
    for seed, names in itertools.product(seeds, itertools.product(*FACTORS)):
        loss = 3 + seed / 10 + sum(COST.get(name, 0) for name in names)
        loss -= 0.1 * (names[0] == "dva" and names[2] == "noffn")
        rows.append(dict(plan="/".join(names), seed=seed, loss=loss))
    return pd.DataFrame(rows)


def test_an_effect_is_what_one_change_does_on_the_mean_of_all_twins():
    assert effect(factors(), "one", "many").by_seed.tolist() == pytest.approx([0.02, 0.02])
    assert effect(factors(), "noffn", "ffn").mean == pytest.approx(-(0.3 - 0.1 / 3))
    assert effect(factors(), "dva-random", "standard").mean == pytest.approx(-0.02)


def test_a_third_word_asks_among_some_plans_alone():
    some = factors()[factors().plan.str.startswith("dva/")]
    assert effect(some, "noffn", "ffn").mean == pytest.approx(-0.2)
    among = quantity("effect noffn over ffn dva grid=dva_factorial").mean
    of_all = quantity("effect noffn over ffn grid=dva_factorial").mean
    assert round(among, 3) == -0.116 and of_all < among


# ---- what was asked, and what was foretold of it -------------------------------------------------


def test_a_grid_of_two_texts_is_a_table():
    text = """
    [ours]
    what = "?"
    texts = {code = "stdlib", novel = "war-and-peace"}
    seeds = [0, 1]
    run = {steps = 10, recipe = "course"}
    cells = [{plan = "standard"}, {plan = "x0-v", times = {matrices = 0.5}}]
    """
    code, novel = asked.grids_in(text, "mine")
    assert (code.name, novel.name, novel.text) == ("ours_code", "ours_novel", "novel")
    made = list(code.runs())
    assert [(str(run.plan), run.seed, run.corpus) for run in made[:3]] == [
        ("standard", 0, "stdlib"),
        ("x0-v", 0, "stdlib"),
        ("standard", 1, "stdlib"),
    ]
    assert {role: how["lr"] for role, how in made[1].overrides.items()} == dict.fromkeys(
        ("matrix", "mlp", "gate"), 0.01
    )


@pytest.mark.parametrize(
    "found, limits, told",
    [
        (0.5, dict(low=0, high=1), "inside"),
        (1.5, dict(low=0, high=1), "above the range"),
        (-1, dict(low=0), "below the range"),
        (7, dict(high=7), "inside"),
        ("matrices x 2", dict(among=["matrices x 2"]), "inside"),
        ("beta x 0.1", dict(among=["matrices x 2"]), "outside the range"),
        (ANSWER, dict(low=0.08, high=0.14), "inside"),
        (ANSWER, dict(low=0.09, high=0.14), "inside, and its interval reaches beyond"),
        (ANSWER, dict(low=0.11, high=0.16), "below the range; its interval overlaps the range"),
        (ANSWER, dict(low=0.2), "below the range"),
        (ANSWER, dict(low=0, clear=True), "inside"),
        (ANSWER, dict(low=0.1, clear=True), "outside the range; its interval overlaps the range"),
    ],
)
def test_one_function_judges(found, limits, told):
    found = quantity(found) if found == ANSWER else found
    assert str(foretold.judge(found, **limits)) == told


def test_every_prediction_is_judged_and_three_of_four_came():
    """As they were judged when each question had a program of its own."""
    came = [(row, outcome) for _, row, outcome in foretold.predictions()]
    said = [outcome.where for row, outcome in came if not row.get("mind")]
    assert len(came) >= 322 and len(said) >= 280
    assert (said.count("inside"), said.count("below"), said.count("undecided")) >= (206, 0, 0)
    minds = [row["that"] for row, outcome in came if row.get("mind") and outcome.where == "inside"]
    assert len(minds) == 7


@pytest.mark.parametrize(
    "name, found",
    [
        ("choosers matrices x 2 code", 2),
        ("at-rate row8 matrices x 2 code", -0.11712),
        ("from-the-next novel", 0.0241933),
        ("turned-round code", 0.00421333),
        ("turned-round novel", 0.01946),
        ("token-share q coef-apart grid=own_mixture_code", 0.315557),
        ("token-asked coef-apart grid=own_mixture_code", 0.324833),
        ("token-asked depth-apart grid=own_mixture_novel", 0.160983),
        ("farthest standard d12 grid=answer_d12 less standard steps=350 rates=again", 0.00037),
    ],
)
def test_quantities_of_predictions_are_what_programs_of_their_own_found(name, found):
    assert quantity(name) == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize(
    "sentence, told",
    [
        ("xsa-v1 over resformer, on code", "XSA over ResFormer ahead of ResFormer, on code"),
        (
            "x0-v@8,9,10,11 over gqa, heads 4",
            "x0 W_V in the top 4 layers ahead of GQA with 4 heads",
        ),
        ("a mixture over xsa-row4 and all layers", "a mixture over xsa-row4 and all layers"),
    ],
)
def test_a_prediction_names_systems_as_the_pages_do(sentence, told):
    assert with_names(sentence) == told


def test_surprises_are_what_did_not_come_and_what_changed_our_mind(capsys):
    shown = foretold.surprises("keys_code", "keys_novel", "xsa_x0_at_its_best_code").data
    assert "18 of 19 predictions came" in capsys.readouterr().out
    assert list(shown.came) == ["below the range; its interval overlaps the range", "it did"]
    assert shown.foretold[1].startswith("our mind changes about XSA over x0 W_V")
    assert shown.found[1] == "+0.039 (−0.005 to +0.083)"  # the whole interval


@pytest.mark.parametrize("of", ["lead row99 code tuned", "ahead-beyond row99 novel"])
def test_a_prediction_whose_runs_are_not_there_is_undecided(of):
    assert foretold.outcome_of(dict(of=of, low=0)).where == "undecided"
    with pytest.raises(ValueError, match="wanted one of lead, "):
        foretold.outcome_of(dict(of="leap x0-v code fine", low=0))


@pytest.mark.skipif(not asked.git("rev-parse", "HEAD"), reason="there is no history here")
def test_git_says_whether_a_grid_was_asked_before_its_runs():
    told = {name: asked.asked_before(grids()[name]) for name in ("fair_finer_code", "noise_novel")}
    if told["fair_finer_code"][0] == 0:
        pytest.skip("a shallow clone has no history")
    assert told == dict(fair_finer_code=(20, 20), noise_novel=(0, 75))
    shared = asked.asked_before(grids()["at_its_best_code"])
    assert shared == (20, 30), "the runs that it shares with fair_code were trained before"


# ---- marks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stands, renewed",
    [
        ("0.1", "0.1"),
        ("+0.9", "+0.1"),
        ("0.999", "0.108"),
        (".99", ".11"),
        ("−0.105", "+0.108"),
        ("9 %", "11 %"),
        ("**+0.1** (+0.0 to +0.2)", "**+0.1** (+0.1 to +0.1)"),
        ("+0.100 (+0.000 to +0.200)", "**+0.108** (+0.085 to +0.131)"),
    ],
)
def test_a_renewed_number_keeps_its_form(stands, renewed):
    mark = f"<!--= {ANSWER} -->"
    assert marks.renew(f"by {stands}{mark} nats") == f"by {renewed}{mark} nats"


def test_marks_in_tables_in_bold_and_by_hand():
    line = f"| x0 W_V | **+0.5<!--= {ANSWER} -->** | 10<!--= seeds x0-v code fine --> |"
    assert marks.renew(line) == line.replace("0.5", "0.1")
    by_hand = "2.806<!--= by hand: Table 1 of the paper -->"
    assert marks.renew(by_hand) == by_hand
    with pytest.raises(ValueError, match="'seeds x0-v code fine' has no interval"):
        marks.renew("+0.1 (+0.0 to +0.2)<!--= seeds x0-v code fine -->")
    with pytest.raises(ValueError, match="'chosen x0-v code' is 'matrices x 2', and no number"):
        marks.renew("2<!--= chosen x0-v code -->")


def test_a_mark_behind_no_number_is_refused(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(f"clearly ahead<!--= {ANSWER} -->\n")
    with pytest.raises(ValueError, match="a.md: a mark stands behind no number"):
        marks.stale(page)


def test_a_file_is_renewed_to_the_byte_elsewhere(tmp_path):
    page, book = tmp_path / "a.md", tmp_path / "a.ipynb"
    page.write_text(f"x  0.5<!--= {ANSWER} -->\n\n  0.5 y\n")
    cells = [nbformat.v4.new_markdown_cell(f'"0.5<!--= {ANSWER} -->"', id="a")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), book)
    before = book.read_text()
    for path in (page, book):
        marks.write(path, marks.stale(path))
        assert marks.stale(path) == []
    assert page.read_text() == f"x  0.1<!--= {ANSWER} -->\n\n  0.5 y\n"
    assert book.read_text() == before.replace("0.5", "0.1")


def test_a_picture_is_shown_in_the_words_that_its_file_holds(tmp_path, monkeypatch):
    monkeypatch.setattr(marks, "FIGURES", tmp_path)
    (tmp_path / "a.svg").write_text("<svg><desc>x0&#x27;s lead</desc></svg>")
    shown = '![{0}](../figures/a.svg) or <img src="figures/a.svg" alt="{0}">, ![b](c.svg)'
    page = tmp_path / "a.md"
    page.write_text(shown.format("its lag"))
    marks.write(page, marks.stale(page))
    assert page.read_text() == shown.format("x0's lead")
    translated = tmp_path / "a.zh.md"
    translated.write_text(shown.format("words of its own"))
    assert marks.stale(translated) == []
    page.write_text("![](figures/lost.svg)")
    with pytest.raises(ValueError, match="lost.svg is shown and not there"):
        marks.stale(page)


# ---- recording -----------------------------------------------------------------------------------


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A grid of two runs at smoke scale, in a laboratory where nothing else is recorded."""
    text = tmp_path / "text.txt"
    text.write_text("the cat sees a river, and the dog hears rain. " * 3000)
    (grid,) = asked.grids_in(
        f"""
        [mine]
        what = "two smoke runs"
        corpus = "{text}"
        seeds = [0]
        run = {{size = "smoke", vocab = 270, context = 32, steps = 2, evaluate = 2, rows = 2}}
        study = "held_out"
        cells = [{{plan = "standard"}}, {{plan = "x0-v"}}]
        """,
        "new",
    )
    for name in ("runs", "measured"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(records, name.upper(), tmp_path / name)
    (records.RUNS / "recordings.json").write_text("{}\n")
    known_states_are()
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "cache"))
    monkeypatch.setattr(record, "grids", lambda: dict(mine=grid))
    return grid


def known_states_are(*rows):
    """As evidence.measured.states would have found them."""
    content = dict.fromkeys(results.FIELDS, "a test") | dict(rows=rows)
    (records.MEASURED / "states.json").write_text(json.dumps(content))


def test_a_grid_is_recorded_by_one_command_and_goes_on(mine, monkeypatch):
    assert record.record(mine, "test", until=0) == 2
    assert record.record(mine, "test") == 0
    lines = (records.RUNS / "new.jsonl").read_text().splitlines()
    assert [json.loads(line)["plan"] for line in lines] == ["standard", "x0-v"]
    first, row = json.loads(lines[0]), records.rows("mine")[0]
    assert first["held_out"] and first["grid"] == "mine" and "asked" not in first
    assert records.recordings()["mine"]["topic"] == "new" == records.read("mine")["topic"]
    assert row.pop("asked").keys() | row.keys() == first.keys() - {"grid"}
    assert record.record(mine, "test") == 0
    assert (records.RUNS / "new.jsonl").read_text().splitlines() == lines
    monkeypatch.setattr(mine, "machine", "a toaster")
    with pytest.raises(ValueError, match="mine: wanted a machine that says a toaster"):
        record.record(mine, "test")


def test_two_who_measure_one_trained_model_record_it_once(mine, monkeypatch):
    """As happened: both had the run from the cache, and both wrote its row."""
    line_of = record.line_of

    def while_the_other_records(*asked):
        monkeypatch.setattr(record, "line_of", line_of)
        record.record(mine, "the other")
        return line_of(*asked)

    monkeypatch.setattr(record, "line_of", while_the_other_records)
    assert record.record(mine, "test") == 0
    assert [row["plan"] for row in records.rows("mine")] == ["standard", "x0-v"]


def test_a_run_that_another_grid_has_is_not_trained_again(mine, monkeypatch):
    """Only where its numbers are those of this code and this machine."""
    assert record.record(mine, "test") == 0
    yours, other_study = replace(mine, name="yours"), replace(mine, name="theirs", study="")
    known = dict(mine=mine, yours=yours, theirs=other_study)
    monkeypatch.setattr(record, "grids", lambda: known)
    asked_to_train = []
    monkeypatch.setattr(compare_runs, "cached", lambda *asked, **how: asked_to_train.append(asked))
    assert record.record(yours, "test") == 2 == len(asked_to_train)  # the state is not known
    known_states_are(ledger.numerical_state() | dict(state="1234abcd"))
    assert record.record(other_study, "test") == 2 and len(asked_to_train) == 4
    assert record.record(replace(yours, rates="again"), "test") == 2 and len(asked_to_train) == 6
    assert record.record(yours, "test") == 0 and len(asked_to_train) == 6
    plans = [(row["plan"], row["loss"]) for row in records.rows("yours")]
    assert plans == [(row["plan"], row["loss"]) for row in records.rows("mine")]
    assert records.recordings()["yours"]["corpus"] == records.recordings()["mine"]["corpus"]


def test_a_run_of_a_plan_of_our_own_is_recorded_with_what_it_mixes(mine):
    mine.cells[:] = [dict(plan="coef-apart"), dict(plan="depth-apart")]
    mine.study = "own_mixture"
    assert record.record(mine, "test") == 0
    rows = records.rows("mine")
    assert [row["plan"] for row in rows] == ["coef-apart", "depth-apart"]
    assert all(set(row["mixed"]) == {"q", "k", "v"} and row["held_out"] for row in rows)


def test_a_grid_that_runs_out_of_minutes_says_where_it_stopped(mine, monkeypatch, capsys):
    def out_of_time(*asked, **how):
        raise TimeIsUp("stopped at step 9 of 500 (time is up)")

    monkeypatch.setattr(compare_runs, "cached", out_of_time)
    assert record.record(mine, "test") == 2
    assert "standard             seed 0: stopped at step 9 of 500" in capsys.readouterr().out


def test_the_command_says_what_is_recorded_and_goes_on_with_what_is_named(mine, capsys):
    record.main([])
    assert "mine                           0 of   2 runs recorded   two smoke runs" in (
        capsys.readouterr().out
    )
    record.main(["mine"])
    assert capsys.readouterr().out.endswith("mine: 0 runs to go\n")
    with pytest.raises(SystemExit) as ended:
        record.main(["yours"])
    assert ended.value.code == 2
    assert "no grid yours: asked/*.toml have mine" in capsys.readouterr().err


def test_a_run_that_diverges_does_not_block_those_behind_it(mine, capsys):
    mine.cells[0]["lr"] = 1e30
    assert record.record(mine, "test") == 1
    assert [run["plan"] for run in records.recorded_runs()] == ["x0-v"]
    assert "try a smaller --lr" in capsys.readouterr().out


def test_a_recorded_run_is_trained_once_more_beside_its_record(mine, capsys):
    record.record(mine, "test")
    path = records.RUNS / "new.jsonl"
    first, second = map(json.loads, path.read_text().splitlines())
    first["loss"] += 0.01
    path.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")
    before = path.read_text()
    capsys.readouterr()
    for _ in range(2):
        record.main(["--again", "mine", "standard", "0"])
        said = capsys.readouterr().out
        assert f"recorded {first['loss']:.5f}" in said and "difference -0.01000" in said
    assert path.read_text() == before
    again = records.rows("again_mine")
    assert [row["difference"] for row in again] == [-0.01, -0.01]
    assert again[0]["recorded_commit"] == first["commit"]


@pytest.mark.parametrize(
    "words, told",
    [
        ("mine standard 0", "wanted a number from 1 to 0, as many runs of standard with seed 0"),
        ("mine standard", "--again wants GRID PLAN SEED [NUMBER], got mine standard"),
        ("yours standard 0", "--again wants GRID PLAN SEED [NUMBER], got yours standard 0"),
        ("mine standard -1", "--again wants GRID PLAN SEED [NUMBER], got mine standard -1"),
    ],
)
def test_what_cannot_be_trained_again_is_said(mine, words, told, capsys):
    with pytest.raises(SystemExit) as ended:
        record.main(["--again", *words.split()])
    assert told in f"{ended.value.code}{capsys.readouterr().err}"


def test_a_run_on_another_text_is_not_trained_again(mine):
    record.record(mine, "test")
    path = records.RUNS / "recordings.json"
    heads = json.loads(path.read_text())
    heads["mine"]["corpus"]["fingerprint"] = "another"
    path.write_text(json.dumps(heads))
    with pytest.raises(SystemExit, match=r"wanted corpus .*\(another\), .*: take the text of"):
        record.main(["--again", "mine", "standard", "0"])
    with pytest.raises(ValueError, match=r"mine holds runs on corpus .*\(another\), this one"):
        record.note_recording(mine, "test", dict(fingerprint="here"))


def test_the_names_of_quantities_that_it_tells_are_known():
    told = re.findall(r'quantity\("([^"]+)"\)', quantities.__doc__)
    assert len(told) > 3 and all(quantity(name) is not None for name in told[:3])
    assert quantity("loss standard code fine") == pytest.approx(3.0919, abs=1e-4)


def test_a_grid_by_its_name_tells_two_runs_of_one_cell_apart():
    asked = "lead x0-v code steps=4000"
    with pytest.raises(ValueError, match="wanted one run of standard a seed"):
        quantity(asked)
    assert quantity(f"{asked} grid=dose_long_code").mean == pytest.approx(0.071, abs=5e-4)


def test_claims_are_counted_by_verdict_and_by_what_is_wrong():
    found = records.claims()
    verdicts = {claim["verdict"] for claim in found}
    assert quantity("claims") == len(found) == sum(quantity(f"claims {one}") for one in verdicts)
    kinds = {claim["kind"] for claim in found if "kind" in claim}
    assert quantity("claims wrong") == sum(quantity(f"wrong {kind}") for kind in kinds) > 30


def test_a_number_is_computed_from_the_means_of_several():
    one, other, third = (f"lead {plan} code tuned" for plan in ("x0-v", "row8", "svformer"))
    x, y, z = (quantity(name).mean for name in (one, other, third))
    assert quantity(f"{one} minus {other} plus {third}") == pytest.approx(x - y + z)
    assert quantity(f"{one} minus {other} per {third} minus {one}") == pytest.approx(
        (x - y) / (z - x)
    )
    assert quantity(f"{one} per 2") == pytest.approx(x / 2)
