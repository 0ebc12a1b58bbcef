"""What Bank of Values' benchmark tables can carry (verdicts of claims.toml)."""

import json
import math

import pytest

from course.records import published, quoted
from minimal.tasks.core import aggregate, centred, standard_error
from minimal.tasks.core_tasks import TASKS


def scores(source, table, column):
    return {
        row["task"]: row[column]
        for row in published(source, table)["rows"]
        if row["task"] not in ("bpb", "core")
    }


def printed(table, column, name="core"):
    return next(row[column] for row in published("bov", table)["rows"] if row["task"] == name)


@pytest.mark.parametrize(
    "table, column, core",
    [
        ("Table 5", "standard", 0.2602),
        ("Table 5", "bov", 0.2721),
        ("Table 6", "standard", 0.3336),
        ("Table 6", "bov", 0.3512),
        ("Table 7", "vplus", 0.2680),
        ("Table 7", "bov", 0.2721),
    ],
)
def test_the_published_core_scores_follow_from_the_published_tasks(table, column, core):
    value, error, n = aggregate(scores("bov", table, column))
    assert (
        n == 21
        and value == pytest.approx(core, abs=5e-5)
        and round(value, 3) == printed(table, column)
    )
    assert 0.003 < error < 0.008


def test_the_printed_changes_are_the_differences_of_the_printed_scores():
    for table, base in (("Table 5", "standard"), ("Table 6", "standard"), ("Table 7", "vplus")):
        for row in published("bov", table)["rows"]:
            assert row["bov"] - row[base] == pytest.approx(row["change"], abs=1.01e-3), row["task"]


def test_tables_2_3_and_4_repeat_tables_6_5_and_7():
    for short, table, columns in (
        ("Table 2", "Table 6", {"standard": "standard", "bov": "bov"}),
        ("Table 3", "Table 5", {"standard": "standard", "bov": "bov"}),
        ("Table 4", "Table 7", {"vplus": "vplus", "bov": "bov"}),
    ):
        full = {row["task"]: row for row in published("bov", table)["rows"]}
        rows = {row["plan"]: row for row in published("bov", short)["rows"]}
        for plan, column in columns.items():
            assert all(
                full[name][column] == value for name, value in rows[plan].items() if name in full
            )


def better_worse(table, base):
    rows = [row for row in published("bov", table)["rows"] if row["task"] not in ("bpb", "core")]
    return (
        sum(row["bov"] > row[base] for row in rows),
        sum(row["bov"] < row[base] for row in rows),
        rows,
    )


def test_bov_is_ahead_on_16_of_21_tasks_at_100B_tokens():
    better, worse, rows = better_worse("Table 6", "standard")
    assert (better, worse) == (
        quoted("bov", "tasks on which BoV is better, 100B tokens")["value"],
        5,
    )
    behind = {row["task"] for row in rows if row["change"] < 0}
    assert behind == {
        "agi_eval_lsat_ar",
        "bigbench_cs_algorithms",
        "bigbench_qa_wikidata",
        "arc_challenge",
        "winograd",
    }


def test_bov_is_ahead_of_the_additive_variant_on_10_of_21_tasks_which_is_not_most():
    better, worse, rows = better_worse("Table 7", "vplus")
    assert (better, worse, len(rows) - better - worse) == (10, 8, 3)


def test_symbolic_tasks_gain_little_once_lsat_is_counted():
    rows = [
        row
        for row in published("bov", "Table 6")["rows"]
        if row["category"] == "symbolic problem solving"
    ]
    gains = {row["task"]: row["change"] for row in rows}
    assert sum(gains.values()) / 5 == pytest.approx(0.0058, abs=1e-4)
    without = [change for task, change in gains.items() if task != "agi_eval_lsat_ar"]
    assert sum(without) / 4 == pytest.approx(0.0355, abs=1e-4)


def test_commonsense_and_copa_lost_at_8B_tokens_what_they_gain_at_100B():
    for task in ("commonsense_qa", "copa"):
        assert printed("Table 5", "change", task) < 0 < printed("Table 6", "change", task)


def test_a_quarter_of_the_core_gain_at_100B_is_three_items():
    gain = printed("Table 6", "change", "bigbench_repeat_copy_logic")
    assert round(gain * 32) == 3 and gain / 21 == pytest.approx(0.0045, abs=5e-5)
    total = printed("Table 6", "bov") - printed("Table 6", "standard")
    assert gain / 21 / total > 0.25


def test_a_guesser_would_score_core_above_zero():
    guess = {task.label: task.chance for task in TASKS}
    shifted = {
        t.label: round(centred(t.chance, t.baseline), 4) for t in TASKS if t.chance != t.baseline
    }
    assert shifted == {
        "commonsense_qa": 0.0625,
        "agi_eval_lsat_ar": 0.0625,
        "bigbench_language_identification": 0.1749,
    }
    value, _, _ = aggregate(guess)
    assert value == pytest.approx(0.0143, abs=1e-4)
    assert value > printed("Table 5", "bov") - printed("Table 5", "standard")
    assert aggregate(guess, level="chance")[0] == 0


def test_all_models_are_at_chance_in_language_identification():
    for table, columns in (
        ("Table 5", ("standard", "bov")),
        ("Table 6", ("standard", "bov")),
        ("Table 7", ("vplus",)),
    ):
        for column in columns:
            share = scores("bov", table, column)["bigbench_language_identification"]
            assert abs(share - 0.25) < 0.025


def test_the_core_gains_are_about_two_standard_errors():
    for table, base, low, high in (
        ("Table 5", "standard", 0.9, 2.2),
        ("Table 6", "standard", 1.4, 3),
        ("Table 7", "vplus", 0.2, 1),
    ):
        (a, ea, _), (b, eb, _) = (
            aggregate(scores("bov", table, base)),
            aggregate(scores("bov", table, "bov")),
        )
        assert low < (b - a) / math.hypot(ea, eb) < high


@pytest.mark.parametrize(
    "task, error",
    [
        ("copa", 0.044),
        ("bigbench_repeat_copy_logic", 0.052),
        ("agi_eval_lsat_ar", 0.026),
        ("winograd", 0.027),
        ("bigbench_operators", 0.029),
        ("commonsense_qa", 0.014),
    ],
)
def test_the_standard_errors_of_small_tasks_are_as_large_as_the_gains(task, error):
    items = next(t.items for t in TASKS if t.label == task)
    assert standard_error(scores("bov", "Table 6", "bov")[task], items) == pytest.approx(
        error, abs=6e-4
    )


@pytest.fixture
def core_items(data):
    """core_items(task): the public items of a task."""
    lines = lambda task: (data / "core" / f"{task}.jsonl").open(encoding="utf-8")
    return lambda task: list(map(json.loads, lines(task)))


@pytest.mark.data
def test_the_baselines_lsat_score_is_that_of_always_answering_d(core_items):
    gold = [item["gold"] for item in core_items("agi_eval_lsat_ar")]
    said = scores("bov", "Table 6", "standard")["agi_eval_lsat_ar"]
    assert gold.count(3) / len(gold) == pytest.approx(said, abs=5e-4)


@pytest.mark.data
def test_always_answering_c_beats_every_8B_model_in_commonsense_qa(core_items):
    gold = [item["gold"] for item in core_items("commonsense_qa")]
    always = gold.count(2) / len(gold)
    assert always == pytest.approx(0.403, abs=5e-4)
    assert all(
        scores("bov", *place)["commonsense_qa"] < always
        for place in (("Table 5", "standard"), ("Table 5", "bov"), ("Table 7", "vplus"))
    )


def by_category(table):
    """{category: changes of its tasks}."""
    found = {}
    for row in published("bov", table)["rows"]:
        if row["task"] not in ("bpb", "core"):
            found.setdefault(row["category"], []).append(row["change"])
    return found


def test_big_bench_gains_most_and_its_category_least():
    means = {name: sum(x) / len(x) for name, x in by_category("Table 6").items()}
    symbolic = means.pop("symbolic problem solving")
    rows = published("bov", "Table 6")["rows"]
    gains = {row["task"]: row["change"] for row in rows}
    symbols = [row["task"] for row in rows if row["category"] == "symbolic problem solving"]
    big_bench = [gains[task] for task in symbols if task.startswith("bigbench")]
    assert len(big_bench) == 4 and sum(big_bench) / 4 > max(means.values())
    assert symbolic < min(means.values()) and len(means) == 4


def test_bov_is_better_on_two_of_four_tasks_of_world_knowledge():
    found = by_category("Table 6")
    better = {name: (sum(x > 0 for x in found[name]), len(found[name])) for name in found}
    assert better["world knowledge"] == (2, 4)
    assert better["reading comprehension"] == (3, 3)
    assert better["language understanding"] == (4, 5)


def test_two_of_three_rivals_below_the_baselines_core_have_the_lower_loss():
    rows = {row["plan"]: row for row in published("bov", "Table 3")["rows"]}
    base = rows["standard"]
    rivals = [rows[plan] for plan in ("row9", "row6", "row3")]
    assert all(row["core"] < base["core"] for row in rivals)
    assert [row["bpb"] < base["bpb"] for row in rivals] == [True, True, False]
    error = aggregate(scores("bov", "Table 5", "standard"))[1]
    assert base["core"] - rows["row9"]["core"] == pytest.approx(0.001, abs=1e-9) and error > 0.003


def test_the_additive_variant_has_one_size():
    sized = {
        table: "780M" in published("bov", table)["caption"]
        for table in published("bov")
        if "vplus" in published("bov", table)["columns"]
        or any(row.get("plan") == "vplus" for row in published("bov", table)["rows"])
    }
    assert {"Table 4", "Table 7"} <= set(sized) and all(sized.values())
    assert (
        published("bov", "Table 7")["rows"][0]["vplus"]
        < (published("bov", "Table 7")["rows"][0]["bov"])
    )


def test_the_four_benchmarks_of_table_4_do_not_represent_the_21():
    rows = {row["plan"]: row for row in published("bov", "Table 4")["rows"]}
    tasks = [name for name in rows["bov"] if name != "plan"]
    signs = [round(rows["bov"][task] - rows["vplus"][task], 3) for task in tasks]
    assert sum(sign > 0 for sign in signs) == 3 and sum(sign == 0 for sign in signs) == 1
    better, worse, all_rows = better_worse("Table 7", "vplus")
    assert better / len(all_rows) < 0.5 and worse == 8
