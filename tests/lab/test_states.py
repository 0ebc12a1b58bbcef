"""Is a state of the numbers told by its last bit, and do rows name one state only when they do?"""

import math
import subprocess
from types import SimpleNamespace

import pytest

from course import records
from evidence.lab.asked import grids
from evidence.lab.table import known_states, state_of
from evidence.measured import states
from minimal.compare import ledger
from minimal.data import results


def test_the_last_bit_of_one_loss_makes_another_state():
    losses = dict(bov=[6.5, 6.25], dva=[6.5, 6.0])
    moved = losses | dict(dva=[6.5, math.nextafter(6.0, 7)])
    assert states.fingerprint(losses) == states.fingerprint(dict(losses))
    assert states.fingerprint(losses) != states.fingerprint(moved)


def test_a_commits_own_code_is_what_is_measured_and_it_is_measured_once(
    tmp_path, monkeypatch, capsys
):
    """The number that `minimal` holds in each of two commits of a repository."""
    monkeypatch.setattr(states, "CHECKOUT", tmp_path)
    monkeypatch.setattr(records, "MEASURED", tmp_path)
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
    rows = records.rows("states")
    assert [row["commit"] for row in rows] == commits
    first, second, third = (row["state"] for row in rows)
    assert first != second == third
    assert capsys.readouterr().out.splitlines()[0].startswith(f"{commits[0]}: state {first}")
    with pytest.raises(SystemExit, match="wanted a commit of this checkout, got nothing"):
        states.main(["nothing"])


# ---- the states of recorded runs -----------------------------------------------------------------

KNOWN = {("aaa", "2", "cpu"): "one", ("bbb", "2", "cpu"): "one", ("ccc", "2", "cpu"): "two"}


@pytest.mark.parametrize(
    "commit, machine, state",
    [
        ("aaa", "cpu", "one"),
        ("aaa, then bbb", "cpu", "one"),
        ("aaa, then ccc", "cpu", None),
        ("aaa", "another cpu", None),
        ("nobody took its fingerprint", "cpu", None),
        (None, "cpu", None),
    ],
)
def test_a_run_has_the_state_of_the_commits_that_it_names(commit, machine, state):
    assert state_of(dict(commit=commit, torch="2", machine=machine), KNOWN) == state


def made(run, head):
    """What a run, or else the file in which it was first recorded, says of its making: each commit
    with torch and machine. The oldest rows name no commit: the head of their file has the commits
    at which it began and ended, and the machine with which they come again (oldest_again)."""
    if run.get("commit"):
        ends, torch, machine = run["commit"].split(", then "), run["torch"], run["machine"]
    else:
        ends = [head["commit"], head["until"]]
        torch, machine = head["versions"]["torch"], head["machine"]
    return {(commit, torch, machine) for commit in ends}


def test_every_grid_on_file_is_of_one_state_and_the_oldest_are_all_of_the_same():
    """Where no fingerprint was taken, on a GPU that was lent, of one commit on one machine."""
    known, heads, states_of, silent = known_states(), records.recordings(), {}, set()
    for run in (run for run in records.recorded_runs() if run["grid"] in grids()):
        told = made(run, heads[run["grid"]])
        states_of.setdefault(run["grid"], set()).update(known.get(one, one) for one in told)
        if not run.get("commit"):
            silent.add(run["grid"])
    assert {grid: found for grid, found in states_of.items() if len(found) > 1} == {}
    assert not any("+" in one[0] for found in states_of.values() for one in found), "changed code"
    assert len(silent) == 16 and len(set.union(*(states_of[grid] for grid in silent))) == 1


def test_recorded_fingerprints_of_one_code_differ_by_maker():
    known = known_states()
    intel, amd = [
        known["c60d88f", "2.13.0+cpu", f"x86_64 AVX512{maker}, 1 threads"]
        for maker in ("", " AuthenticAMD")
    ]
    assert intel != amd


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


def test_the_system_is_asked_for_its_first_processor(tmp_path):
    told = tmp_path / "cpuinfo"
    told.write_text("vendor_id\t: One\nmodel name\t: A 1\n\nvendor_id\t: Two\n")
    assert results.cpu_says("vendor_id", told) == "One"
    assert results.cpu_says("flags", told) == results.cpu_says("vendor_id", tmp_path / "no") == ""
