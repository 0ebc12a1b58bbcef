"""Does the runner report every failure, those of runs that look well too? Each is made here."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest

from notebooks import run
from tests import warm


def notebook(path, *sources, **tagged):
    """A notebook of these code cells behind its parameters; `tagged`: {tag: source} at the end."""
    cells = [
        nbformat.v4.new_markdown_cell("# 99 · Made by a test", id="title"),
        nbformat.v4.new_code_cell(
            'profile: str = "laptop"  # how large\nseed: int = 0  # of chance',
            id="parameters",
            metadata=dict(tags=["parameters"]),
        ),
    ]
    cells += [nbformat.v4.new_code_cell(source, id=f"cell-{i}") for i, source in enumerate(sources)]
    cells += [
        nbformat.v4.new_code_cell(source, id=tag, metadata=dict(tags=[tag.replace("_", "-")]))
        for tag, source in tagged.items()
    ]
    nbformat.write(run.clean(nbformat.v4.new_notebook(cells=cells), path.stem), path)
    return path


@pytest.fixture
def executed(tmp_path):
    def execute(*sources, parameters=None, limits=(60, 120), **tagged):
        path = notebook(tmp_path / "99_made.ipynb", *sources, **tagged)
        with warm.kernels():  # below, a command starts some truly
            return run.execute(path, "smoke", tmp_path / "out", parameters, limits)

    return execute


def test_a_whole_notebook_passes_and_its_checks_are_counted(executed, tmp_path):
    checks = """for n in (1, 2):
    assert n
assert True, 'said'
if not profile:
    assert False"""
    source = "import sys; print(profile, seed, sys.executable)"
    row = executed(source, parameters=dict(seed=7), checks=checks)
    assert row["faults"] == [] and (row["ran"], row["cells"]) == (4, 4), (
        "the injected cell counts as well"
    )
    assert (row["held"], row["checks"]) == (2, 2), (
        "an assert inside a branch may not have run, and is not counted"
    )
    copy = nbformat.read(tmp_path / "out" / "99_made.ipynb", 4)
    assert copy.cells[3].outputs[0].text.split() == ["smoke", "7", sys.executable]
    page = (tmp_path / "out" / "99_made.html").read_text()
    assert "<title>99 · Made by a test</title>" in page and "smoke 7" in page
    assert str(tmp_path) not in page + nbformat.writes(copy), (
        "papermill notes full paths; they are taken out"
    )


def test_leaving_by_sys_exit_is_reported_though_papermill_calls_it_success(executed):
    row = executed("import sys; sys.exit(0)", "print('never')")
    assert "cell cell-0: SystemExit: 0" in row["faults"] and "not run: cell-1" in row["faults"]


def test_a_cell_that_is_not_python_is_reported_with_its_own_error(executed):
    row = executed("assert True\nif", "never = 1", checks="assert True")
    assert row["faults"][0].startswith("cell cell-0: SyntaxError: invalid syntax")
    assert row["faults"][1:] == ["not run: cell-1, checks"]
    assert (row["held"], row["checks"]) == (0, 1), "nobody can count asserts in what is not Python"


def test_a_runner_that_is_killed_leaves_no_half_run_copy(tmp_path):
    """papermill writes before all have run; what is published is written when all have."""
    mark = tmp_path / "begun"
    wait = f"import pathlib, time; pathlib.Path({str(mark)!r}).touch(); time.sleep(600)"
    path = notebook(tmp_path / "99_made.ipynb", "x = 1", wait)
    out = tmp_path / "out"
    task = dict(path=str(path), profile="smoke", out=str(out), parameters={})
    command = [sys.executable, run.__file__, "--task", json.dumps(task)]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    runner = subprocess.Popen(command, env=os.environ | dict(TMPDIR=str(temporary)))
    try:
        until = time.monotonic() + 60
        while not mark.exists() and time.monotonic() < until:
            time.sleep(0.1)
        assert mark.exists(), "the first cell ran"
        assert list(temporary.rglob(path.name)), "papermill's own copy"
    finally:
        family = psutil.Process(runner.pid).children(recursive=True)
        for process in [runner, *family]:
            process.kill()
        runner.wait()
    assert not out.exists() or list(out.rglob("*.ipynb")) == []


def test_an_error_is_reported_with_its_cell_and_what_did_not_run(executed):
    row = executed("fine = 1", "1 / 0", checks="assert True")
    assert row["faults"] == ["cell cell-1: ZeroDivisionError: division by zero", "not run: checks"]
    assert (row["held"], row["checks"]) == (0, 1)


def test_a_broken_claim_is_reported_in_its_own_words(executed):
    row = executed(checks="assert 1 > 2, 'one is more than two'")
    assert row["faults"] == ["cell checks: AssertionError: one is more than two"]


def test_claims_are_checked_where_python_was_told_to_skip_them(tmp_path):
    """Through the command line: a kernel that is started truly has the runner's environment."""
    path = notebook(tmp_path / "99_made.ipynb", checks="assert 1 > 2, 'one is more than two'")
    done = subprocess.run(
        [sys.executable, run.__file__, path, "--profile", "smoke", "--out", tmp_path / "out"],
        env=os.environ | dict(PYTHONOPTIMIZE="1"),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and "one is more than two" in done.stdout, done.stdout + done.stderr


def test_checks_that_are_skipped_are_not_said_to_hold():
    code = "from course.checks import all_hold; all_hold()"
    done = subprocess.run(
        [sys.executable, "-O", "-c", code], cwd=run.HERE, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 1 and "no assert is checked here: unset PYTHONOPTIMIZE" in done.stderr


def test_a_dead_kernel_is_reported(executed):
    faults = executed("import os; os._exit(0)", "never = 1")["faults"]
    assert (
        "DeadKernelError" in faults[0]
        and faults[1].startswith("not run:")
        and "cell-1" in faults[1]
    )


def test_a_cell_that_hangs_is_stopped_and_reported(executed):
    row = executed("import time; time.sleep(600)", limits=(2, 120))
    assert "CellTimeoutError" in row["faults"][0] and row["seconds"] < 60


def test_a_notebook_beyond_its_time_is_reported_though_every_cell_kept_to_its_own(executed):
    assert "more than its 0 s" in executed("pass", limits=(60, 0))["faults"][0]


@pytest.mark.parametrize("tag", ["skip_execution", "raises_exception"])
def test_tags_that_hide_failures_are_reported_before_anything_runs(executed, tag):
    row = executed(**{tag: "1 / 0"})
    assert row["faults"] == [f"cell {tag}: tag {tag.replace('_', '-')}"] and row["ran"] == 0


def test_an_unknown_parameter_is_reported_with_the_known_ones(executed):
    row = executed("pass", parameters=dict(sead=1))
    assert row["faults"] == ["no parameter sead: it has profile, seed"] and row["ran"] == 0


def test_cells_that_ran_twice_or_out_of_order_are_reported(tmp_path):
    made = nbformat.read(notebook(tmp_path / "99_made.ipynb", "a = 1", "b = 2"), 4)
    for counts, fault in (
        ((1, 2, 3), []),
        ((1, 3, 2), ["cells ran in the order [1, 3, 2]"]),
        ((1, None, 2), ["not run: cell-0"]),
    ):
        for cell, count in zip(run.code(made), counts):
            cell.execution_count = count
        assert run.faults_after(made) == fault


@pytest.mark.parametrize("content", ["[]", "{", '{"cells": 3}', "", "[" * 100_000])
def test_a_file_that_is_no_notebook_is_reported_in_a_sentence(tmp_path, content):
    (tmp_path / "99_made.ipynb").write_text(content)
    row = run.execute(tmp_path / "99_made.ipynb", "smoke", tmp_path / "out")
    (fault,) = row["faults"]
    assert fault.startswith("99_made.ipynb is no notebook: ") and "\n" not in fault


def test_several_run_side_by_side_and_one_that_fails_fails_the_run(tmp_path):
    """Through the command line, past a kernel called python3 that would start nothing."""
    decoy = tmp_path / "data" / "kernels" / "python3"
    decoy.mkdir(parents=True)
    (decoy / "kernel.json").write_text(
        json.dumps(dict(argv=["false"], display_name="not ours", language="python"))
    )
    good = notebook(tmp_path / "98_good.ipynb", checks="assert seed == 5")
    bad = notebook(tmp_path / "99_bad.ipynb", checks="assert seed == 0")
    options = ["--profile", "smoke", "-p", "seed", "5", "--out", tmp_path / "out"]
    data = str(tmp_path / "data")
    done = subprocess.run(
        [sys.executable, run.__file__, good, bad, *options],
        env=os.environ | dict(JUPYTER_PATH=data, JUPYTER_DATA_DIR=data),
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert done.returncode == 1, done.stdout + done.stderr
    assert [line[0] for line in lines[:2]] == ["start", "start"], "two at a time"
    assert next(line for line in lines if line[:1] == ["98_good"])[2:] == ["3/3", "1/1", "ok"]
    assert next(line for line in lines if line[:1] == ["99_bad"])[2:] == ["2/3", "0/1", "FAILED"]
    assert (tmp_path / "out/smoke/98_good.html").exists()
    assert (tmp_path / "out/smoke/99_bad.html").exists()


def test_without_a_name_the_course_and_the_questions_of_the_laboratory_are_run(
    tmp_path, monkeypatch, capsys
):
    ran = []
    row = dict(name="x", seconds=0.0, ran=1, cells=1, held=0, checks=0, faults=[])
    monkeypatch.setattr(run, "in_a_process", lambda path, *_: ran.append(path) or row)
    assert run.main(["--jobs", "1", "--out", str(tmp_path)]) == 0
    assert ran[:15] == run.numbered(run.HERE) and ran[15:] == run.questions() != []
    assert f"profile laptop: {len(ran)} of {len(ran)} notebooks whole" in capsys.readouterr().out


def test_the_runner_is_ready_without_what_no_notebook_needs():
    """Every notebook and deck starts a runner of its own: a second there is half a minute."""
    code = "import sys, notebooks.run; print({'torch', 'lark', 'matplotlib'} & set(sys.modules))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=run.ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout == "set()\n", done.stderr


@pytest.mark.parametrize("asked, told", [("1", "1"), ("", "2")])
def test_both_libraries_are_told_the_same_number_of_threads(monkeypatch, asked, told):
    heard = {}
    monkeypatch.setenv("OMP_NUM_THREADS", asked)
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setattr(
        os, "sched_getaffinity", lambda pid: {0, 1, 2, 3}, raising=False
    )  # macOS has none
    row = dict(name="x", seconds=0.0, ran=0, cells=0, held=0, checks=0, faults=[])
    monkeypatch.setattr(
        run.subprocess,
        "run",
        lambda *_, env, **__: heard.update(env) or SimpleNamespace(stdout=json.dumps(row)),
    )
    run.in_a_process(Path("x.ipynb"), "smoke", "out", {}, jobs=2)
    assert (heard["OMP_NUM_THREADS"], heard["MKL_NUM_THREADS"]) == (told, told)


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("--jobs 0", "argument --jobs: wanted a whole number above 0, got 0"),
        ("--jobs -1", "argument --jobs: wanted a whole number above 0, got -1"),
        ("--jobs two", "argument --jobs: wanted a whole number above 0, got two"),
        ("--task x", "this is how run.py calls itself; name notebooks instead"),
        ("--task {}", "this is how run.py calls itself; name notebooks instead"),
        ("-p profile zzz", "the profile is an option of its own: --profile zzz"),
    ],
)
def test_an_option_that_cannot_be_is_refused_in_one_sentence(capsys, words, sentence):
    with pytest.raises(SystemExit) as left:
        run.main(["00", *words.split()])
    assert left.value.code == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("run: ") and sentence in said


def test_a_notebook_that_does_not_exist_is_one_sentence():
    with pytest.raises(SystemExit, match="no notebook 'attention'"):
        run.chosen(["attention"])


def test_what_a_cell_prints_is_published_in_one_piece_however_the_kernel_cut_it():
    out = lambda name, text: nbformat.v4.new_output("stream", name=name, text=text)
    picture = nbformat.v4.new_output("display_data", {"text/html": "<img>"})
    joined = run.joined(
        [
            out("stdout", "a"),
            out("stdout", "b\n"),
            out("stderr", "c"),
            picture,
            out("stdout", "d"),
            out("stdout", "e"),
        ]
    )
    assert [output.get("text", "picture") for output in joined] == ["ab\n", "c", "picture", "de"]


# ---- what is published ---------------------------------------------------------------------------


def test_cleaning_takes_out_every_trace_of_a_run_and_gives_ids_that_can_be_read(tmp_path):
    made = nbformat.read(notebook(tmp_path / "99_made.ipynb", "x = 1"), 4)
    made.cells += [
        nbformat.v4.new_markdown_cell("## Why the root?", id="1f0c9a2e"),
        nbformat.v4.new_code_cell("y = 2", id="0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"),
        nbformat.v4.new_code_cell(
            "profile = 'smoke'", id="77777777", metadata=dict(tags=["injected-parameters"])
        ),
    ]
    for cell in run.code(made):
        cell.execution_count, cell.outputs = 3, [nbformat.v4.new_output("stream", text="ran")]
        cell.metadata.update(papermill=dict(duration=1), execution=dict(a=1), scrolled=True)
    made.metadata.update(
        papermill=dict(output_path="somewhere"),
        kernelspec=dict(name="conda-env-x", display_name="x"),
    )
    clean = run.clean(made, "99_made")
    assert [cell.id for cell in clean.cells] == [
        "title",
        "parameters",
        "cell-0",
        "why-the-root-1",
        "why-the-root-2",
    ]
    assert all(
        cell.execution_count is None and cell.outputs == [] and set(cell.metadata) <= {"tags"}
        for cell in run.code(clean)
    )
    assert clean.metadata == dict(
        kernelspec=dict(display_name="Python 3", language="python", name="python3"),
        language_info=dict(name="python"),
    )


def test_the_command_that_cleans_runs_from_any_folder(tmp_path):
    made = run.ROOT / "notebooks" / "00_start_here.ipynb"
    before = made.read_bytes()
    command = [sys.executable, str(run.HERE / "run.py"), "--clean", "00"]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert made.read_bytes() == before, "the sources are as the command leaves them"


def test_a_number_means_all_its_parts_and_a_stem_one():
    names = lambda *asked: [path.stem for path in run.chosen(list(asked))]  # noqa: E731
    assert names("11") == ["11a_write_a_kernel", "11b_decode_and_the_best_kernel"]
    assert names("11b") == ["11b_decode_and_the_best_kernel"] and names("01") == ["01_attention"]
    assert names("11a_write") == ["11a_write_a_kernel"]
