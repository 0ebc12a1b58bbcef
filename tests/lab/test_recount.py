"""Are recorded FLOPs those of the count, and does a correction leave all else as it was?"""

import copy
import json

import pytest

from course import records
from evidence.research import recount
from minimal.data import results


@pytest.fixture
def recorded():
    """Two rows of a file of evidence."""
    content = records.read("frontier_code")
    rows = {row["plan"]: row for row in content["rows"] if row["seed"] == 0}
    content.pop("recounted", None)
    return content | dict(rows=[rows["standard"], rows["mla"]])


def test_recorded_runs_have_the_flops_that_are_counted_today():
    """Of the plans that came last; `--check` asks all files, in twenty seconds."""
    for name in ("frontier_novel", "frontier_forms_code"):
        assert recount.recount(records.EVIDENCE / f"{name}.json", write=False) == "", name


def test_only_flops_of_outdated_rows_change_and_the_head_says_so(recorded, tmp_path, monkeypatch):
    path = tmp_path / "frontier_code.json"
    old = copy.deepcopy(recorded)
    old["rows"][1]["flops"] -= 1
    results.write(path, old)
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    with pytest.raises(SystemExit, match=r"frontier_code.json \(mla\)"):
        recount.main(["--check"])
    assert json.loads(path.read_text()) == old
    recount.main([])
    told = "python -m evidence.research.recount: flops of mla; losses are as recorded"
    assert json.loads(path.read_text()) == recorded | dict(recounted=told)
    recount.main(["--check"])


def test_what_holds_no_runs_is_passed_over(recorded):
    bare = {name: value for name, value in recorded["rows"][0].items() if name != "asked"}
    assert recount.outdated([dict(plan="standard"), bare]) == []
