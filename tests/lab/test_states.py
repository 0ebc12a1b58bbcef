"""Is a state of the numbers told by its last bit, and do rows name one state only when they do?"""

import math
import subprocess
from types import SimpleNamespace

import pytest

from course import records
from evidence.measured import states
from evidence.research.grids import GRIDS
from minimal.compare import ledger
from minimal.data import results

KNOWN = {("aaa", "2", "cpu"): "one", ("bbb", "2", "cpu"): "one", ("ccc", "2", "cpu"): "two"}


def row(commit, machine="cpu"):
    return dict(plan="bov", commit=commit, torch="2", machine=machine)


def test_the_last_bit_of_one_loss_makes_another_state():
    losses = dict(bov=[6.5, 6.25], dva=[6.5, 6.0])
    moved = losses | dict(dva=[6.5, math.nextafter(6.0, 7)])
    assert states.fingerprint(losses) == states.fingerprint(dict(losses))
    assert states.fingerprint(losses) != states.fingerprint(moved)


@pytest.mark.parametrize(
    "rows, state",
    [
        ([row("aaa")], "one"),
        ([row("aaa"), row("bbb")], "one"),
        ([row("aaa, then bbb")], "one"),
        ([row("aaa"), row("ccc")], None),
        ([row("aaa, then ccc")], None),
        ([row("aaa"), row("aaa", "another cpu")], None),
        ([row("nobody took its fingerprint")], None),
        ([dict(plan="bov"), row("aaa")], None),
        ([], None),
    ],
)
def test_rows_share_a_state_or_name_none(rows, state):
    assert states.state_of(rows, KNOWN) == state


def test_a_commits_own_code_is_what_is_measured_and_it_is_measured_once(
    tmp_path, monkeypatch, capsys
):
    """The number that `minimal` holds in each of two commits of a repository."""
    monkeypatch.setattr(states, "CHECKOUT", tmp_path)
    monkeypatch.setattr(records, "EVIDENCE", tmp_path)
    about = dict(name="toy", fingerprint="f", tokens=1)
    here = dict(commit=None, torch="2", machine="cpu")
    program = "import json, minimal; losses = dict(bov=[minimal.loss])\n"
    program += f"print(json.dumps([losses, {about}, {here}]))"
    monkeypatch.setattr(states, "PROGRAM", program)
    (tmp_path / "minimal").mkdir()
    person = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    git = lambda *words: subprocess.run(
        ["git", *words], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout.strip()
    git("init")
    commits = []
    for loss in (6.5, 6.25, 6.25):
        (tmp_path / "minimal" / "__init__.py").write_text(f"loss = {loss}\n")
        git("add", "minimal")
        git(*person, "commit", "--allow-empty", "-m", "one")
        commits.append(git("rev-parse", "--short", "HEAD"))
    states.main(commits)
    states.main(commits)
    rows = records.rows_of(tmp_path / "states.json")
    assert [row["commit"] for row in rows] == commits
    first, second, third = (row["state"] for row in rows)
    assert first != second == third
    assert capsys.readouterr().out.splitlines()[0].startswith(f"{commits[0]}: state {first}")
    with pytest.raises(SystemExit, match="wanted a commit of this checkout, got nothing"):
        states.main(["nothing"])


def test_recorded_rows_that_name_their_commit_belong_to_one_state():
    rows = [
        row for grid in ("ten_seeds_code", "frontier_code") for row in records.read(grid)["rows"]
    ]
    assert states.state_of(rows)


def test_the_state_of_a_file_without_commits_is_that_at_both_of_its_ends():
    known = {(commit, "t", "m"): state for commit, state in dict(a="one", b="one", c="two").items()}
    silent = dict(rows=[dict(plan="bov")], versions=dict(torch="t"), machine="m", commit="a")
    assert states.state_of_file(silent | dict(until="b"), known) == "one"
    assert states.state_of_file(silent | dict(until="c"), known) is None
    assert states.state_of_file(silent | dict(until="unknown"), known) is None
    assert states.state_of_file(silent | dict(until="b", machine="another"), known) is None
    assert states.state_of_file(silent, known) is None
    # rows that name their commit are asked themselves, and are of the same state as the rest
    named = dict(commit="b", torch="t", machine="m")
    mixed = silent | dict(until="b", rows=[named, dict(plan="bov")])
    assert states.state_of_file(mixed, known) == "one"
    assert states.state_of_file(mixed | dict(rows=[named | dict(commit="c"), {}]), known) is None
    assert states.state_of_file(dict(rows=[named]), known) == "one"
    # without a fingerprint, rows of one commit on one machine are of one state all the same
    lent = dict(commit="e", torch="t", machine="lent")
    assert states.state_of_file(dict(rows=[lent, lent]), known) == "e t lent"
    assert states.state_of_file(dict(rows=[lent, lent | dict(commit="f")]), known) is None
    assert states.state_of_file(dict(rows=[lent | dict(commit="e+")]), known) is None


# a grid is registered in a commit before its first run
BEGUN = [name for name in GRIDS if (records.EVIDENCE / f"{name}.json").exists()]


def test_every_grid_on_file_is_of_one_state_and_the_oldest_are_all_of_the_same():
    made = {name: states.state_of_file(records.read(name)) for name in BEGUN}
    oldest = list(filter(silent, BEGUN))
    assert all(made.values()), [name for name, state in made.items() if state is None]
    assert len(oldest) == 16
    assert len({made[name] for name in oldest}) == 1


def silent(name):
    """Has a grid rows that name no commit?"""
    return not all(row.get("commit") for row in records.read(name)["rows"])


@pytest.mark.parametrize(
    "machine, maker, named",
    [
        ("x86_64 AVX512, 1 threads", "AuthenticAMD", "x86_64 AVX512 AuthenticAMD, 1 threads"),
        ("x86_64 AVX512 AuthenticAMD, 1 threads", "AuthenticAMD", None),
        ("x86_64 AVX512, 1 threads", "GenuineIntel", None),
        ("arm64 DEFAULT, 8 threads", "", None),
        ("NVIDIA H100 80GB HBM3, float32", "AuthenticAMD", None),
    ],
)
def test_two_makers_of_one_instruction_set_are_two_machines(machine, maker, named):
    assert ledger.of_maker(machine, maker) == (named or machine)


@pytest.mark.parametrize(
    "process, maker",
    [
        (SimpleNamespace(), "AuthenticAMD"),
        (SimpleNamespace(mkl_serv_intel_cpu_true=None), "GenuineIntel"),
    ],
)
def test_a_processor_counts_as_the_maker_that_mkl_is_told(monkeypatch, process, maker):
    monkeypatch.setattr(ledger.ctypes, "CDLL", lambda name: process)
    monkeypatch.setattr(ledger.results, "cpu_says", lambda name: "AuthenticAMD")
    assert ledger.told_maker() == maker


def test_recorded_fingerprints_of_one_code_differ_by_maker():
    known = states.known()
    intel, amd = [
        known["c60d88f", "2.13.0+cpu", f"x86_64 AVX512{maker}, 1 threads"]
        for maker in ("", " AuthenticAMD")
    ]
    assert intel != amd


def test_the_system_is_asked_for_its_first_processor(tmp_path):
    told = tmp_path / "cpuinfo"
    told.write_text("vendor_id\t: One\nmodel name\t: A 1\n\nvendor_id\t: Two\n")
    assert results.cpu_says("vendor_id", told) == "One"
    assert results.cpu_says("flags", told) == results.cpu_says("vendor_id", tmp_path / "no") == ""
