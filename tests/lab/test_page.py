"""Is the page of findings what its words and the records say, and does it tell nothing else?"""

import json
import re
import shutil
import zlib

import jinja2
import pytest

from course import records
from evidence.lab import marks
from evidence.research import (
    answer,
    at_best,
    fair_start,
    measured,
    numbers,
    page,
    pairs,
    statements,
    tables,
    title,
)
from evidence.research.grids import EXPLORATORY, GRIDS
from minimal.compare.runs import asked_of
from minimal.data import results

TEMPLATE = "".join(path.read_text(encoding="utf-8") for path in page.templates().values())


def test_what_is_written_from_the_records_is_what_they_say():
    """Verdicts, pages, statements, pictures: the one test that a recorded number moves."""
    assert page.stale() == [], "python -m evidence.research.page writes it: read what has changed"
    assert statements.untrue() == [], "change what says it, or the sentence"


def test_the_first_page_is_read_in_six_minutes_and_its_numbers_are_marked():
    first = (records.EVIDENCE / "README.md").read_text(encoding="utf-8")
    pictures = re.compile(r"!\[.*?\]\(.*?\)", flags=re.S)
    plain = pictures.sub("", marks.without_marks(first))
    assert len(plain.split()) <= 1500 and first.count("![") <= 5
    assert len(marks.MARKED.findall(first)) >= 30


def test_a_grid_that_grew_after_it_was_recorded_is_exploratory():
    """As git tells it; a shallow copy of the repository tells nothing."""
    for name, grid in GRIDS.items():
        if answer.grown(name):
            assert grid.kind == EXPLORATORY, f"{name} grew: {answer.grown(name)}"


def test_a_cell_that_came_after_a_whole_recording_is_noticed(monkeypatch):
    runs = list(GRIDS["noise_code"].runs())
    rows = [dict(plan=run.plan, seed=run.seed, asked=asked_of(run)) for run in runs]
    without = [row for row in rows if row["plan"] != "resformer"]
    versions = dict(part=without[:4], before=without, after=rows)

    def git(*words):
        if words[0] == "log":
            return " ".join(versions)
        return json.dumps(dict(rows=versions[words[1].partition(":")[0]]))

    monkeypatch.setattr(answer, "said_by_git", git)
    assert answer.grown("noise_code") == ["resformer"]
    del versions["before"]
    assert answer.grown("noise_code") == [], "it was recorded part by part"


def test_a_grid_that_is_said_to_be_prepared_names_its_cells_in_that_commit():
    for name, commit in answer.PREPARED.items():
        said = answer.said_by_git("grep", "-h", "-A4", f"{name}=Grid", commit, "--", "*.py")
        if said:  # a shallow copy tells nothing
            assert all(word in said for word in ("nanochat", "llama", "1e-2", "0.4"))


def test_what_waits_for_a_grid_is_told_once_that_grid_is_whole(monkeypatch):
    text = 'a\n{% if whole("noise_code", "gains_code") %}\nb\n{% else %}\nc\n{% endif %}\nd\n'
    for there, told in [
        (("noise_code", "gains_code"), "a b d"),
        (("gains_code",), "a c d"),
        ((), "a c d"),
    ]:
        monkeypatch.setattr(pairs, "whole", lambda name, there=there: name in there)
        assert page.filled(text).split() == told.split()
    with pytest.raises(ValueError, match="wanted a grid of GRIDS, got nothing"):
        page.filled('{% if whole("nothing") %}{% endif %}')


def test_a_mark_that_names_nothing_is_refused():
    with pytest.raises(jinja2.UndefinedError, match="nobody"):
        page.filled("{{ nobody.lead() }}")


def test_code_and_links_stay_on_one_line():
    words = "A few words first, " * 5 + "`python -m one two` and [two words](a.md) here."
    lines = page.wrapped(words)
    assert "`python -m one two`" in lines and "[two words](a.md)" in lines and "\n" in lines.strip()


# ---- numbers -------------------------------------------------------------------------------------


def test_a_lead_is_that_of_the_file_that_a_cell_names():
    """By hand from the files: mean over seeds of standard less bov-fixed."""
    rows = records.read("thirteen_rows")["rows"]
    losses = {(row["plan"], row["seed"]): row["loss"] for row in rows}
    slim = {row["seed"]: row["loss"] for row in pairs.whole_rows("parameters") if is_slim(row)}
    by_hand = sum(losses["standard", seed] - slim[seed] for seed in range(3)) / 3
    assert numbers.mean_lead("bov-fixed", "parameters", "standard in novel") == f"{by_hand:.3f}"
    with pytest.raises(ValueError, match="wanted one setting of bov in code.json, got several"):
        numbers.mean_lead("bov", "code.json", "standard in code")
    with pytest.raises(ValueError, match="wanted seeds that bov and standard share in sizes"):
        numbers.mean_lead("bov", "sizes layers=3")


def is_slim(row):
    return row["plan"] == "bov-fixed"


def test_cells_of_two_states_of_the_numbers_are_not_compared(monkeypatch):
    states = dict(parameters="one", thirteen_rows="older")
    monkeypatch.setattr(numbers, "state_in", states.get)
    with pytest.raises(ValueError, match="wanted files of one state of the numbers, but "):
        numbers.mean_lead("bov-fixed", "parameters", "standard in novel")


def test_the_first_stream_is_counted_where_it_has_a_rival(monkeypatch):
    depth = {"1": [0.4, 0.6], "2": [0.5, 0.2, 0.3], "3": [0.1, 0.3, 0.2, 0.4], "4": [0.3] * 5}
    rows = [dict(plan="mudd", depth=depth), dict(plan="standard")]
    monkeypatch.setattr(pairs, "whole_rows", lambda grid: rows)
    assert measured.first_stream("frontier_code") == "2 of 3"  # layer 1 has the embedding alone


def test_the_share_of_the_first_stream_is_told_by_stretches_of_layers(monkeypatch):
    curves = [[0.9] + [0.5] * 5 + [0.3] * 3 + [0.1] * 2, [0.9] + [0.7] * 5 + [0.1] * 3 + [0.3] * 2]
    whole = [{str(at): [share, 1 - share] for at, share in enumerate(one, 1)} for one in curves]
    one = {"1": [0.4, 0.6], "2": [0.5, 0.2, 0.3], "3": [0.1, 0.3, 0.2, 0.4]}
    two = {"1": [0.8, 0.2], "2": [0.9, 0.1, 0.0], "3": [0.3, 0.3, 0.2, 0.2]}
    rows = [dict(plan="attnres", depth=one), dict(plan="standard"), dict(plan="attnres", depth=two)]
    monkeypatch.setattr(pairs, "whole_rows", lambda grid: rows)
    assert measured.first_shares("any", "attnres") == [[0.4, 0.5, 0.1], [0.8, 0.9, 0.3]]
    rows[:] = [dict(plan="attnres", depth=depth) for depth in whole]
    told = tables.shares_of_first("attnres", "any_code")
    assert [line.split(" | ")[1] for line in told.splitlines()[2:]] == [
        "60 % (50 %) |",
        "20 % (10 %) |",
        "20 % (10 %) |",
    ]


@pytest.mark.parametrize("place", ["novel", "code"])
def test_fewer_systems_stay_clear_the_harder_it_is_asked(place):
    rows = numbers.systems(place)
    assert len(rows) == len({run.plan for run in GRIDS["thirteen_rows"].runs()}) - 1
    for row in rows:
        assert row["clear"] >= row["by_rate"] >= row["by_holm"]
        assert row["pool_low"] < row["difference"] < row["pool_high"]
    assert 0 < sum(row["by_holm"] for row in rows) < sum(row["clear"] for row in rows)
    marked = [line for line in tables.systems_table(place).splitlines() if "‡" in line]
    assert len(marked) == sum(row["by_holm"] for row in rows)


def test_the_command_writes_checks_and_says_what_it_did(tmp_path, monkeypatch, capsys):
    """What is stale alone is written, and a sentence that is no longer so is named."""
    said = f"| so it is | {statements.YES} | |\n| so it was | {statements.NO} | |\n"
    texts = {"README.md": "new\n", "same.md": "same\n", "statements.md": said}
    monkeypatch.setattr(page, "written", lambda: ((tmp_path / n, t) for n, t in texts.items()))
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    for name, text in (texts | {"README.md": "old\n"}).items():
        (tmp_path / name).write_text(text)
    with pytest.raises(
        SystemExit, match="README.md is not what .*python -m evidence.research.page"
    ):
        page.main(["--check"])
    page.main([])
    page.main(["--check"])
    assert (tmp_path / "README.md").read_text() == "new\n"
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "page: README.md written" and told[2].startswith("page: all pages are")
    assert told[1] == told[3] == "no longer so: so it was; change what says it, or the sentence"


# ---- statements ----------------------------------------------------------------------------------


def test_a_statement_is_told_with_what_was_found_and_two_of_one_name_are_refused(monkeypatch):
    monkeypatch.setattr(statements, "SAID", {})
    monkeypatch.setattr(statements, "MODULES", ())

    @statements.said
    def it_rises():
        return dict(so=False, by_how_much=0.5, of=[1, 2])

    assert "| it rises | **no** | by how much: 0.500; of: 1, 2 |" in statements.statements_page()
    with pytest.raises(ValueError, match="wanted a sentence of its own, got it_rises twice"):
        statements.said(it_rises)


def test_a_loss_moved_by_a_thousandth_moves_what_is_told(tmp_path, monkeypatch):
    before = statements.all_of_them()["on_code_who_is_ahead_of_whom"]()
    shutil.copytree(records.EVIDENCE, tmp_path, dirs_exist_ok=True)
    book = json.loads((tmp_path / "stdlib.json").read_text())
    next(row for row in book["rows"] if row["plan"] == "bov")["loss"] += 0.001
    (tmp_path / "stdlib.json").write_text(json.dumps(book))
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    after = statements.all_of_them()["on_code_who_is_ahead_of_whom"]()
    moved = {name for name in before if before[name] != after[name]}
    assert after["so"] and moved and all(name.startswith("bov ") for name in moved)


def test_a_mean_is_clear_above_zero_below_or_neither():
    assert statements.ahead([0.1, 0.11, 0.12]) == 1
    assert statements.ahead([-0.1, -0.11, -0.12]) == -1
    assert statements.ahead([0.1, -0.1, 0.2]) == statements.ahead([0.1, 0.1]) == 0


# ---- the page of a day on which all is recorded --------------------------------------------------

WAITING = re.findall(r'"(\w+)"', " ".join(re.findall(r"whole\((.*?)\)", TEMPLATE)))
# told a text at a time, by modules that ask for their grids themselves
LATER = {tuned.question for tuned in fair_start.TUNED_LATER.values()}
LATER |= {later.question for later in at_best.ON_FRESH_SEEDS.values()}
AT_BEST = ("fair", "fair_finer", "at_its_best", "as_wide", *sorted(LATER))
for question in ("dose", "who_needs", "content_gradient", *AT_BEST, "own_mixture"):
    WAITING += [f"{question}_code", f"{question}_novel"]
WAITING += ["answer_d12", *title.MORE_AT_D12, "content_gradient_long_code", *title.ELSEWHERE]
COEFFICIENTS = {f"blocks.{at}.attention.value.gain": 0.1 * at for at in (8, 9, 10, 11)}
MIXED = {door: [weight] * 12 for door, weight in dict(q=0.1, k=0.2, v=0.5).items()}


def invented(name):
    """Rows of a whole grid: losses by plan, seed and what was asked, told apart by small steps."""
    grid, plans_ = GRIDS[name], list(GRIDS["thirteen_rows"].runs())
    order = {run.plan: i for i, run in enumerate(plans_)}
    state = records.read("states")["rows"][0]
    for i, run in enumerate(grid.runs()):
        loss = (
            3.2
            - 0.002 * order.get(str(run.plan), i % 30)
            + 0.01 * run.seed
            + 1e-3 * (i * 7919 % 13)
        )
        loss += 1e-4 * (i * zlib.crc32(name.encode()) % 11)  # no two grids have the same leads
        steps = run.steps
        yield dict(
            plan=str(run.plan),
            size=run.size,
            seed=run.seed,
            steps=steps,
            tokens=steps * run.batch * 128,
            loss=loss,
            bpb=loss / 2,
            valid=[
                [at, loss + 1 - at / steps] for at in range(steps // 10, steps + 1, steps // 10)
            ],
            parameters=700_000,
            flops=1e15,
            coefficients=COEFFICIENTS,
            mixed=MIXED,
            held_out=[loss + at % 5 / 100 for at in range(8)],
            share={str(at): 0.3 for at in (8, 9, 10, 11)},
            depth={str(at): [1 / (at + 1)] * (at + 1) for at in range(1, 12)},
            **dict(x0_share=[0.4] + [0.6] * 15, turn=0.5, fell=13, crossed=[], rise=0.02),
            asked=json.loads(json.dumps(asked_of(run))),
            commit=state["commit"],
            torch=state["torch"],
            machine=state["machine"],
        )


def test_the_page_can_be_written_on_the_day_when_all_is_recorded(tmp_path, monkeypatch):
    shutil.copytree(records.EVIDENCE, tmp_path, dirs_exist_ok=True)
    head = records.read("thirteen_rows")
    pairs_of_texts = {name for name in GRIDS if name.startswith("frontier_")}
    for name in {*WAITING, *pairs_of_texts, "ten_seeds_novel"}:
        results.write(tmp_path / f"{name}.json", head | dict(rows=list(invented(name))))
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    text = "".join(map(page.page, page.templates()))
    assert "{{" not in text and "runs recorded" not in text
    for told in (
        "the systems with more seeds from [ten_seeds_code.json](runs/ten_seeds.jsonl)",
        "pairs of runs on code",
        "orders the new texts with ",
        "| 4,000 steps |",
        "| width 64 | width 128 | width 192 |",
        "| `mla` |",
        "| `ngram-plus`, beside V |",
        "(`engram-v`, `engram`) |",
        "in 30 of 30 mixtures on code",
        "| the same | `bov` |",
        "| attention's share at 0.05 |",
        "| 0 of 20 | 0 of 20 | 0.30 | 0.30 |",
        "| 5,960 steps, window open | 13, 13 and 13 | 50 % | 15, 15 and 15 |",
        "In all of these runs no weight of the embedding changes sign",
        "| tables over standard as large | 12 |",
        "| every second layer lies between four and eight from the top |",
        "| queries and values |",
        "| another text's number |",
        "| SVFormer by −0.025 to 0.000 on the novel |",
        "| queries and keys cost more than the sum of each on code |",
        "Of the same after 2,000 steps on code",
    ):
        assert told in " ".join(text.split()), told
    on_code = text.partition("All systems on code ([stdlib.json]")[2]
    on_code = on_code.partition("\n\nAll on the novel")[0].partition("\n\n")[2]
    lines = on_code.splitlines()[2:]
    rows = {line.split("|")[2].strip(" `"): line.split("|")[-2] for line in lines}
    assert rows["resformer"].strip() == "10" and rows["dva"].strip() == "3"
