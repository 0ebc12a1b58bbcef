"""Does the doctor say on one screen what is here, and does it still speak when nothing is?"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from course import doctor
from tests import warm

ROOT = pathlib.Path(__file__).resolve().parents[2]


def visit(*arguments, python=None, **environment):
    """What the doctor says; to this Python, started for the question, or quickly to a warm one."""
    words, environment = ["-m", "course.doctor", *arguments], os.environ | environment
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT}/notebooks"  # as make doctor says
    if python is None:
        return warm.run(words, cwd=ROOT, env=environment)
    how = dict(cwd=ROOT, env=environment, text=True, capture_output=True, timeout=120)
    return subprocess.run([*python, *words], **how)


def test_the_doctor_fills_one_screen_and_finds_a_set_up_machine_well():
    done = visit(python=[sys.executable], MINIMAL_DATA="/a/rather/long/way/" * 9, CHROME="")
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert len(lines) <= 24 and max(map(len, lines)) <= 100
    assert not any(line.startswith("FAIL") for line in lines)
    assert "Everything needed is here" in lines[-1]


def test_as_json_each_row_has_a_status_and_all_that_are_not_ok_have_a_fix():
    report = json.loads(visit("--json").stdout)
    assert report["ok"] is True and len(report["rows"]) == len(doctor.LOOKS)
    assert {row["status"] for row in report["rows"]} <= {"OK", "--", "FAIL"}
    assert all(row["fix"] for row in report["rows"] if row["status"] != "OK")


def test_every_line_that_is_not_ok_ends_with_what_to_do():
    done = visit(MINIMAL_DATA="", CHROME="/no/such/browser")
    wanting = [line for line in done.stdout.splitlines() if line.startswith(("  --", "FAIL"))]
    assert len(wanting) >= 4 and all("  -> " in line for line in wanting)
    assert not any(line.endswith("-> ") for line in wanting)


def test_a_wrong_option_is_refused_in_one_sentence():
    done = visit("--zzz")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("doctor: unrecognized arguments: --zzz")
    assert "usage: python -m course.doctor" in visit("--help").stdout


def test_before_set_up_a_bare_python_gets_the_same_screen_and_the_fix():
    done = visit(python=(sys.executable, "-S"))  # -S: the standard library and nothing else
    lines = done.stdout.splitlines()
    assert done.returncode == 1 and not done.stderr
    assert len(lines) <= 24 and max(map(len, lines)) <= 100
    for what in ("packages", "torch", "notebook kernel"):
        assert any(line.startswith("FAIL") and what in line and "make" in line for line in lines), (
            what
        )


def test_data_folders_and_the_browser_are_seen_when_they_are_there(tmp_path, monkeypatch):
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "a.txt").write_text("text")
    monkeypatch.setenv("MINIMAL_DATA", str(tmp_path))
    monkeypatch.setenv("CHROME", sys.executable)
    status = {row["what"]: row["status"] for row in doctor.examine()}
    assert status["text: books"] == status["browser"] == "OK" and status["tasks: core"] == "--"
    monkeypatch.setenv("CHROME", str(tmp_path / "no-such-browser"))
    assert doctor.browser() is None


def test_a_missing_requirement_fails_and_another_version_than_the_pin_is_told(monkeypatch):
    real = doctor.version
    monkeypatch.setattr(doctor, "version", lambda name: None if name == "tqdm" else real(name))
    assert doctor.packages() == ("missing: tqdm", doctor.SETUP)
    monkeypatch.setattr(doctor, "version", lambda name: "0.1" if name == "tqdm" else real(name))
    assert "; tqdm 0.1" in doctor.packages()[0] and doctor.packages()[1] == ""


@pytest.mark.parametrize(
    "named, ready, fix",
    [
        ("", "", ""),
        ("here", "here", ""),
        ("elsewhere", "elsewhere", "make setup"),
        ("elsewhere", "", "make -B setup"),  # set up before it was noted where
        ("elsewhere", "here", "make -B setup"),
    ],
)
def test_a_folder_that_was_renamed_or_copied_is_told(tmp_path, monkeypatch, named, ready, fix):
    """Its .venv would go on with the homework and notebooks of the other one."""
    places = {"": "", "here": str(tmp_path / "here"), "elsewhere": str(tmp_path / "elsewhere")}
    venv = tmp_path / "here" / ".venv"
    venv.mkdir(parents=True)
    (venv / ".ready").write_text(places[ready] + "\n" * bool(ready))
    if named:
        (venv / "course.pth").write_text(f"{places[named]}\n{places[named]}/notebooks\n")
    monkeypatch.setattr(doctor, "CHECKOUT", tmp_path / "here")
    monkeypatch.setattr(doctor, "SETUP", "make -B setup")
    monkeypatch.setattr(doctor.sysconfig, "get_path", lambda name: str(venv))
    monkeypatch.setattr(sys, "prefix", str(venv))
    found, told = doctor.folder()
    assert told == fix and (places["elsewhere"] in found) == (named == "elsewhere")
    assert ("folder", True, doctor.folder) in doctor.LOOKS

    # a Python that is not this folder's: make does without its lines
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert doctor.folder()[1] == ""


def test_a_venv_that_is_a_link_is_this_folders(tmp_path, monkeypatch):
    (tmp_path / "large disk").mkdir()
    (tmp_path / ".venv").symlink_to("large disk")
    monkeypatch.setattr(doctor, "CHECKOUT", tmp_path)
    for prefix, place in ((".venv", "in .venv"), ("large disk", "in .venv"), ("", "not .venv's")):
        monkeypatch.setattr(sys, "prefix", str(tmp_path / prefix))
        assert f", {place}" in doctor.python()[0]


@pytest.mark.parametrize(
    "system, smi, node, build",
    [
        ("linux", False, "", "cpu"),
        ("linux", True, "", ""),
        ("linux", False, "/dev/nvidiactl", ""),
        ("linux", False, "/usr/lib/wsl/lib/nvidia-smi", ""),
        ("darwin", False, "", ""),  # what the index has is a CPU build there
    ],
)
def test_set_up_takes_the_cpu_build_on_linux_without_a_card(
    monkeypatch, capsys, system, smi, node, build
):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}" if smi else None)
    monkeypatch.setattr(doctor.os.path, "exists", lambda path: path == node)
    assert doctor.main(["--torch"]) == 0 and capsys.readouterr().out == f"{build}\n"


def test_an_amd_card_and_an_intel_mac_are_told(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor.os.path, "exists", lambda path: path == "/dev/kfd")
    found, fix = doctor.device()
    assert "an AMD card is not used" in found and "no ROCm" in fix
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
    found, fix = doctor.python()
    assert "PyTorch ends at 2.2.2" in found and "Docker" in fix
    monkeypatch.setattr(doctor.platform, "machine", lambda: "arm64")
    assert doctor.python()[1] == ""


def test_a_gpu_that_torch_cannot_reach_is_told_with_its_fix(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}")
    for build, found, fix in (
        ("12.8", "12.8 finds no GPU", "update its driver"),
        (None, "CPU build", "TORCH=cuda"),
    ):
        monkeypatch.setattr(torch.version, "cuda", build)
        (row,) = (row for row in doctor.examine() if row["what"] == "device")
        assert row["status"] == "--" and found in row["found"] and fix in row["fix"]
    monkeypatch.setattr(doctor, "card", lambda: False)
    assert doctor.device()[1] == ""


def test_a_look_that_breaks_is_a_row_not_a_traceback(monkeypatch):
    def broken():
        raise OSError("libfoo.so: cannot open\nand more")

    monkeypatch.setattr(doctor, "LOOKS", [("torch", True, broken)])
    assert doctor.examine() == [
        {
            "what": "torch",
            "status": "FAIL",
            "fix": doctor.SETUP,
            "found": "OSError: libfoo.so: cannot open",
        }
    ]
