"""Are the sources' numbers and claims complete, is evidence written whole, and are paired
differences honest?"""

import ast
import json
import math
import multiprocessing
import pathlib

import pytest

from course.records import (
    VERDICTS,
    WRONG,
    claims,
    published,
    quoted,
    read,
    recorded_names,
    recordings,
)
from course.records import rows as rows_of
from course.significance import welch
from minimal.compare import intervals
from minimal.compare.intervals import paired, t_quantile
from minimal.compare.ledger import fill
from minimal.data import files, results
from minimal.data.files import CHECKOUT as ROOT
from minimal.data.results import append

# ---- published.json ------------------------------------------------------------------------------

TABLES = dict(
    bov=[f"Table {n}" for n in range(1, 9)],
    resformer=[f"Table {n}" for n in range(1, 6)],
    dva=["Table 2"],
    bypass=["Table 1"],
    lambdas=["U-Net lambdas", "Value-embedding shares"],
    frontier=[],  # abstracts and public code
)


def test_every_table_of_the_five_sources_is_there_with_units_and_place():
    assert set(published()) == set(TABLES)
    for source, tables in TABLES.items():
        assert set(tables) <= set(published(source))
        for name in published(source):
            table = published(source, name)
            assert table["place"].endswith(name) and table["caption"] and table["rows"]
            assert all(len(row) == len(table["columns"]) for row in table["rows"])


def test_what_was_read_off_a_figure_is_marked_approximate_and_nothing_else_is():
    stated = {"Value-embedding tables", "Sign of x0_lambda"}
    for source in published():
        for name in published(source):
            drawn = name.startswith("Figure") or source == "lambdas" and name not in stated
            assert published(source, name)["approximate"] is drawn


def test_some_numbers_stand_where_the_sources_have_them():
    row3 = published("bov", "Table 1")["rows"][2]
    assert row3 == dict(plan="row3", output="V1", target="all 12", coefficient=1, bpb=0.872)
    assert published("resformer", "Table 5")["rows"][3]["GitHub"] == 1.3941
    assert [row["bypass std"] for row in published("bypass", "Table 1")["rows"]] == [
        3.32,
        1.47,
        0.50,
    ]
    assert quoted("dva", "training time saved")["value"] == 37.6


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(KeyError, match="wanted one of bov, dva"):
        published("nobody", "Table 1")
    with pytest.raises(KeyError, match="bypass has Table 1, Pre-training.*got 'Table 9'"):
        published("bypass", "Table 9")
    with pytest.raises(KeyError, match="training time saved"):
        quoted("dva", "a number that nobody printed")


# ---- the claims ----------------------------------------------------------------------------------


def exists(evidence):
    """A file of what is measured, a grid of runs, or a test: path::name."""
    path, _, test = evidence.partition("::")
    if not (ROOT / path).exists():
        return False
    if not test:
        return True
    if path.endswith(".jsonl"):
        return recordings().get(test, {}).get("topic") == pathlib.Path(path).stem
    return any(
        isinstance(node, ast.FunctionDef) and node.name == test
        for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    )


def test_there_are_enough_claims_each_told_once_and_from_every_source():
    rows = claims()
    assert len(rows) >= 50 and len({row["id"] for row in rows}) == len(
        {row["claim"] for row in rows}
    ) == len(rows)
    assert {row["source"] for row in rows} == set(published()), (
        "a claim belongs to a source of published.json"
    )
    assert all(
        row["verdict"] in VERDICTS and row["place"] and row["claim"].endswith(".") for row in rows
    )


@pytest.mark.parametrize("row", claims(), ids=lambda row: row["id"])
def test_no_verdict_without_evidence(row):
    if row["verdict"] == "open":
        assert row["decide"], "an open claim says what would decide it"
    elif row["verdict"] == "out of reach at our scale" and not row["evidence"]:
        assert row["decide"], "a claim out of reach says what would decide it"
    else:
        assert row["evidence"], f"{row['verdict']}, by what?"
    if row["evidence"]:
        assert exists(row["evidence"]), f"there is no {row['evidence']}"
    if row["verdict"] == "wrong":
        assert "::test_" in row["evidence"], "only a test shows that a claim is wrong"
    assert row.get("kind") in WRONG if row["verdict"] == "wrong" else "kind" not in row, (
        "a wrong claim says how it is wrong"
    )


def test_a_verdict_by_a_test_that_does_not_exist_would_be_noticed():
    assert not exists("tests/lab/test_claims_bov.py::test_that_nobody_wrote")
    assert not exists("notebooks/evidence/measured/nothing.json")
    assert exists("notebooks/evidence/runs/older.jsonl::thirteen_rows")
    assert not exists("notebooks/evidence/runs/best.jsonl::thirteen_rows")


# ---- evidence files ------------------------------------------------------------------------------

HEAD = dict(
    what="a test",
    command="none",
    commit=None,
    hardware="none",
    versions={},
    corpus=dict(name="toy", fingerprint="abc", tokens=1),
    rows=[],
)


def test_every_recorded_file_follows_the_schema():
    for name in recorded_names():
        content = read(name)
        assert {*results.FIELDS} <= content.keys() and content["rows"] == rows_of(name)
        about = content["corpus"]  # none where the rows are facts about code
        assert content["rows"] and (
            about is None or {"name", "fingerprint", "tokens"} <= set(about)
        ), name
    assert rows_of("nothing_of_the_kind") == []
    with pytest.raises(FileNotFoundError, match="wanted nothing.json in measured/, which holds"):
        read("nothing")


def writer(path, plan):
    for seed in range(10):
        append(path, dict(plan=plan, size="toy", seed=seed, loss=1.0), HEAD)


def test_parallel_writers_lose_no_row_and_a_reader_never_meets_half_a_file(tmp_path):
    path = tmp_path / "grid.json"
    writers = [
        multiprocessing.get_context("fork").Process(target=writer, args=(path, f"plan{n}"))
        for n in range(4)
    ]
    for process in writers:
        process.start()
    seen = 0
    while any(process.is_alive() for process in writers):
        if path.exists():
            now = len(read(path)["rows"])
            assert now >= seen
            seen = now
    assert [process.exitcode for process in writers] == [0] * 4
    rows = read(path)["rows"]
    assert len(rows) == 40 and len({(row["plan"], row["seed"]) for row in rows}) == 40
    assert sorted(p.name for p in tmp_path.iterdir()) in (
        ["grid.json"],
        ["grid.json", "grid.json.lock"],
    )


def test_a_row_that_another_writer_adds_meanwhile_is_not_added_twice(tmp_path, monkeypatch):
    """Between the last look into the file and the writing: the look under the lock decides."""
    path, row = tmp_path / "grid.json", dict(plan="standard", seed=0)

    def late(path, row, head, **more):
        append(path, row, head)  # by another process
        append(path, row, head, **more)

    monkeypatch.setattr(results, "append", late)
    make = lambda cell: (row, HEAD, "made")
    assert fill(path, ["cell"], lambda row, cell: row["plan"] == "standard", make) == []
    assert len(read(path)["rows"]) == 1


def test_what_another_process_has_made_is_not_made_again(tmp_path):
    """It made the second of three cells while this one made the first: that one is passed over."""
    path, begun = tmp_path / "grid.json", []

    def make(cell):
        begun.append(cell)
        if cell == "one":
            append(path, dict(plan="two", seed=0), HEAD)  # by another process
        return dict(plan=cell, seed=0), HEAD, "made"

    there = lambda row, cell: row["plan"] == cell
    assert fill(path, ["one", "two", "three"], there, make) == []
    assert begun == ["one", "three"]


def test_rows_of_another_corpus_are_refused(tmp_path):
    append(tmp_path / "grid.json", dict(plan="standard"), HEAD)
    other = HEAD | dict(corpus=dict(name="other", fingerprint="xyz", tokens=1))
    with pytest.raises(
        ValueError, match=r"holds runs on corpus toy \(abc\); this row is from other \(xyz\)"
    ):
        append(tmp_path / "grid.json", dict(plan="standard"), other)
    assert len(read(tmp_path / "grid.json")["rows"]) == 1


@pytest.mark.parametrize("rows", ["[1, 2]", '{"a": 1}', '"none"', "[{}, null]"])
def test_rows_that_are_no_objects_are_told(tmp_path, rows):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(dict.fromkeys(results.FIELDS, "") | dict(rows=json.loads(rows))))
    with pytest.raises(ValueError, match="x.json is no evidence file: wanted rows that are obj"):
        read(path)


def test_a_file_that_is_no_evidence_says_so(tmp_path):
    (tmp_path / "half.json").write_text('{"what": ')
    (tmp_path / "bare.json").write_text('{"rows": []}')
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ValueError, match="deep.json nests lists too deep"):
        read(tmp_path / "deep.json")
    (tmp_path / "deep.json").unlink()
    with pytest.raises(ValueError, match="half.json, line 1: not JSON"):
        read(tmp_path / "half.json")
    with pytest.raises(ValueError, match="bare.json is no evidence file.*lacks what, command"):
        read(tmp_path / "bare.json")
    with pytest.raises(
        FileNotFoundError, match=r"wanted gone.json in .*which holds bare.json, half.json"
    ):
        read(tmp_path / "gone.json")


def test_a_header_names_the_machine_and_the_versions():
    head = results.header("a run", "python -m x", HEAD["corpus"])
    assert set(head) == set(results.FIELDS) and set(head["versions"]) == {"python", "torch"}
    assert head["hardware"] and head["rows"] == []


def test_a_machine_without_git_records_too(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert results.header("a run", "python -m x", HEAD["corpus"])["commit"] is None


def test_a_log_survives_a_torn_last_line(tmp_path):
    log = tmp_path / "log.jsonl"
    assert files.read_lines(log) == []
    files.append_lines(log, [dict(n=1), dict(n=2)])
    log.write_bytes(log.read_bytes() + b'{"n": 3, "half')
    assert files.read_lines(log) == [dict(n=1), dict(n=2)]
    files.append_lines(log, [dict(n=4)])
    assert files.read_lines(log) == [dict(n=1), dict(n=2), dict(n=4)]


# ---- differences ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "p, dof, t",
    [
        (0.975, 1, 12.706),
        (0.975, 2, 4.303),
        (0.975, 3, 3.182),
        (0.975, 4, 2.776),
        (0.975, 9, 2.262),
        (0.975, 29, 2.045),
        (0.95, 2, 2.920),
        (0.95, 10, 1.812),
        (0.995, 2, 9.925),
        (0.995, 4, 4.604),
        (0.9, 5, 1.476),
        (0.975, 1000, 1.962),
    ],
)
def test_t_quantiles_are_those_of_the_tables(p, dof, t):
    assert t_quantile(p, dof) == pytest.approx(t, abs=6e-4)
    assert t_quantile(1 - p, dof) == pytest.approx(-t, abs=6e-4)
    assert intervals.student(t_quantile(p, dof), dof) == pytest.approx(p, abs=1e-9)


def test_welch_agrees_with_a_textbook_case():
    """Equal spreads and sizes: Student's own test with 2n - 2 degrees of freedom."""
    t, dof, p = welch(10.0, 2.0, 5, 13.0, 2.0, 5)
    assert (t, dof) == pytest.approx((3 / math.sqrt(8 / 5), 8)) and p == pytest.approx(
        0.0451, abs=1e-4
    )
    assert welch(10.0, 0.1, 3, 10.0, 3.0, 3)[1] == pytest.approx(2, abs=0.01), (
        "the wide group decides"
    )


def rows(**losses):
    return [
        dict(plan=plan, size="tiny", seed=seed, loss=loss)
        for plan, values in losses.items()
        for seed, loss in enumerate(values, 1)
        if loss is not None
    ]


def test_a_paired_interval_is_the_one_computed_by_hand():
    standard, bov = paired(rows(standard=[3.40, 3.50, 3.60], bov=[3.36, 3.45, 3.57]), "loss")
    assert (standard["n"], standard["difference"], standard["clear"]) == (3, 0, False)
    assert standard["mean"] == pytest.approx(3.5) and standard["spread"] == pytest.approx(0.1)
    reach = 4.302653 * 0.01 / math.sqrt(3)
    assert bov["difference"] == pytest.approx(-0.04)
    assert (bov["low"], bov["high"]) == pytest.approx((-0.04 - reach, -0.04 + reach), abs=1e-6)
    assert bov["clear"] and bov["missing"] == []


def test_pairing_by_seed_sees_what_the_spread_between_seeds_would_hide():
    _, bov = paired(rows(standard=[3.0, 4.0, 5.0], bov=[2.9, 3.89, 4.91]), "loss")
    assert bov["spread"] > 0.9 and bov["clear"]


def test_two_seeds_need_an_interval_three_times_as_wide():
    _, far = paired(rows(standard=[3.0, 3.0], bov=[2.9, 2.8]), "loss")
    assert (
        far["low"] == pytest.approx(-0.15 - 12.706 * 0.0707107 / math.sqrt(2), abs=1e-4)
        and not far["clear"]
    )


def test_missing_cells_are_named_and_one_pair_has_no_interval():
    table = {
        row["plan"]: row
        for row in paired(
            rows(standard=[3.4, 3.5, None], bov=[3.3, None, 3.2]),
            "loss",
            plans=["bov", "dva"],
            cells=[("tiny", seed) for seed in (1, 2, 3)],
        )
    }
    assert (table["bov"]["n"], table["bov"]["low"], table["bov"]["clear"]) == (1, None, False)
    assert table["bov"]["missing"] == [("tiny", 2), ("tiny", 3)]
    assert table["dva"]["mean"] is None and len(table["dva"]["missing"]) == 3


def test_a_run_that_blew_up_is_missing_not_clear():
    _, bov = paired(rows(standard=[3.4, 3.5], bov=[3.3, math.nan]), "loss")
    assert bov["n"] == 1 and not bov["clear"] and bov["missing"] == [("tiny", 2)]


def test_two_rows_for_one_cell_are_refused():
    with pytest.raises(ValueError, match="two rows for bov, size tiny, seed 1; keep one budget"):
        paired(rows(standard=[3.4], bov=[3.3]) + rows(bov=[3.2]), "loss")


def test_a_metric_that_no_row_has_is_refused():
    with pytest.raises(ValueError, match="no row has a 'los': choose one of plan, .*loss"):
        paired(rows(standard=[3.4], bov=[3.3]), "los")


def test_rows_are_written_one_a_line(tmp_path):
    results.write(tmp_path / "x.json", HEAD | dict(rows=[dict(plan="a"), dict(plan="b")]))
    text = (tmp_path / "x.json").read_text()
    assert json.loads(text)["rows"] == [dict(plan="a"), dict(plan="b")]
    assert sum('"plan"' in line for line in text.splitlines()) == 2
