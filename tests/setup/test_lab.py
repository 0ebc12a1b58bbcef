"""Does `make lab` start a JupyterLab that answers, runs `minimal`, and leaves nothing behind?"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

from course import work
from tests.setup import own_lab

ROOT = pathlib.Path(__file__).resolve().parents[2]


def wait_for(what, seconds=90):
    """The first true value of what(), or a failure after that many seconds."""
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, f"nothing after {seconds} s"
        time.sleep(0.1)
    return value


def note(lab, folder):
    """What a server says of itself, once it has written all of it."""
    assert lab.poll() is None, (folder / "log").read_text()
    for path in (folder / "RUNTIME").glob("jpserver-*.json"):
        with contextlib.suppress(ValueError):
            return json.loads(path.read_text())


def call(server, path, data=None, token=True, read=lambda text: json.loads(text or "null")):
    request = urllib.request.Request(f"http://127.0.0.1:{server['port']}{path}", data=data)
    if token:
        request.add_header("Authorization", "token " + server["token"])
    with urllib.request.urlopen(request, timeout=20) as answer:
        return read(answer.read())


def test_lab_starts_on_a_free_port_answers_and_stops_with_all_its_children(tmp_path, outside):
    if not (ROOT / ".venv").exists():
        pytest.skip("no .venv: this Python was not set up by make")
    port = own_lab.free_port()
    folders = own_lab.folders(tmp_path)
    options = f"LAB_ARGS=--no-browser --port={port} --ServerApp.port_retries=0"
    with open(tmp_path / "log", "w") as log:
        lab = subprocess.Popen(
            ["make", "lab", options], cwd=ROOT, env=outside | folders, stdout=log, stderr=log
        )
    family = [psutil.Process(lab.pid)]
    try:
        server = wait_for(lambda: note(lab, tmp_path))
        assert server["port"] == port and pathlib.Path(server["root_dir"]) == ROOT
        wait_for(lambda: own_lab.listens(port))  # the note may be written first
        status = call(server, "/api/status")
        assert {"started", "kernels"} <= status.keys() and status["kernels"] == 0
        with pytest.raises(urllib.error.HTTPError, match="403"):
            call(server, "/api/status", token=False)
        assert "notebooks" in [entry["name"] for entry in call(server, "/api/contents")["content"]]
        call(server, "/api/kernels", data=b'{"name": "python3", "path": "notebooks"}')
        family += family[0].children(recursive=True)
        assert len(family) >= 3, "make, the server and its kernel"
        psutil.Process(server["pid"]).terminate()
        assert lab.wait(timeout=30) is not None
        wait_for(lambda: not any(alive(process) for process in family), 20)
    finally:
        for process in filter(
            alive, family + (family[0].children(recursive=True) if alive(family[0]) else [])
        ):
            process.kill()


@pytest.mark.parametrize("told", [True, False])
def test_the_conda_way_opens_jupyterlab_as_make_lab_does(tmp_path, told):
    """With the variables of environment.yml; the control, without them, is Jupyter's own Lab."""
    page = (ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"^    jupyter lab (.*)$", page, re.M)
    conda = (ROOT / "environment.yml").read_text(encoding="utf-8").partition("variables:\n")[2]
    variables = dict(re.findall(r"^  (\w+): (\S+)", conda.partition("channels:")[0], re.M))
    assert list(variables) == ["JUPYTER_CONFIG_PATH", "PYTHONPATH", "GOMP_SPINCOUNT"]
    port = own_lab.free_port()
    more = f"--no-browser --allow-root --port={port} --ServerApp.port_retries=0".split()
    with open(tmp_path / "log", "w") as log:
        lab = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", copied(words, tmp_path), *more],
            cwd=ROOT,
            env=os.environ | own_lab.folders(tmp_path) | (variables if told else {}),
            stdout=log,
            stderr=log,
        )
    try:
        server = wait_for(lambda: note(lab, tmp_path))
        wait_for(lambda: own_lab.listens(port))
        assert pathlib.Path(server["root_dir"]) == tmp_path / "work"
        plugin = "@jupyterlab/apputils-extension:notification"
        news = call(server, f"/lab/api/settings/{plugin}")["schema"]["properties"]["fetchNews"]
        assert (news["default"] == "false") == told, "no question about news"
        page = call(server, "/lab/tree/00_start_here.ipynb", read=lambda text: text.decode())
        assert ("minimal-course" in page) == told, "Predict and Your turn are loud"
        workspaces = call(server, "/lab/api/workspaces")["workspaces"]["values"]
        assert any("@jupyterlab/toc" in json.dumps(one) for one in workspaces) == told
    finally:
        lab.terminate()
        lab.wait(timeout=30)


def copied(words, folder):
    """The notebook that these words open, as the command above them copies it, in this folder."""
    assert words.startswith("work/")
    work.update(work.CHECKOUT, folder / "work")
    return str(folder / words)


def alive(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def test_a_notebook_in_notebooks_imports_minimal_from_this_tree():
    cell = nbformat.v4.new_code_cell(
        "import minimal, pathlib; print(pathlib.Path(minimal.__file__).parent)"
    )
    notebook = nbformat.v4.new_notebook(cells=[cell])
    NotebookClient(
        notebook,
        timeout=60,
        kernel_name="python3",
        resources={"metadata": {"path": str(ROOT / "notebooks")}},
    ).execute()
    assert notebook.cells[0].outputs[0].text.strip() == str(ROOT / "minimal")
