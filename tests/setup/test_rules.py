"""Do the rules of tests/conftest.py hold?

No network, the same seeds, required extras, and a summary that names what was skipped.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import urllib.request

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITE = {
    "kernels/test_a.py": """import pytest
def test_runs(): pass
@pytest.mark.slow
def test_is_slow(): pass
@pytest.mark.parametrize('n', [1, 2])
def test_gpu(n): pytest.skip('no GPU')
""",
    "slides/test_b.py": """import pytest
@pytest.mark.site
def test_deck(): pytest.skip('no browser')
""",
}


@pytest.mark.parametrize(
    "reach",
    [
        lambda: socket.create_connection(("example.com", 80)),
        lambda: socket.socket().connect(("93.184.216.34", 80)),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
            b"x", ("93.184.216.34", 53)
        ),
        lambda: socket.getaddrinfo("example.com", 80),
        lambda: urllib.request.urlopen("https://example.com"),
    ],
)
def test_reaching_out_is_refused_at_once(reach):
    with pytest.raises(OSError, match="tests run without the network: something tried to reach"):
        reach()


def test_this_machine_itself_can_be_reached():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        socket.create_connection(("localhost", server.getsockname()[1])).close()


DRAWN = []


@pytest.mark.parametrize("_", range(2))
def test_every_test_starts_from_the_same_seed_on_one_thread(_):
    DRAWN.append(torch.rand(1).item())  # ()
    assert set(DRAWN) == {DRAWN[0]} and torch.get_num_threads() == 1
    assert os.environ["HF_HUB_OFFLINE"] == "1" and os.environ["MINIMAL_RUNS"] != str(ROOT / "runs")


@pytest.fixture
def suite(tmp_path):
    """A small suite in a folder of its own, under the rules of this one."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name, text in SUITE.items() | {("conftest.py", (ROOT / "tests/conftest.py").read_text())}:
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text(text)

    def run(*arguments, **environment):
        environment = os.environ | dict(PYTHONPATH=str(ROOT), CHROME=sys.executable) | environment
        return subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
            timeout=60,
        )

    return run


def test_the_run_ends_with_seconds_per_folder_and_the_names_of_what_was_skipped(suite):
    lines = suite(REQUIRE="").stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("seconds per folder"))
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["kernels", "slides", "all"]
    assert lines[at + 4 : -1] == [
        "skipped: 3",
        "  tests/kernels/test_a.py::test_gpu (2 times): no GPU",
        "  tests/slides/test_b.py::test_deck: no browser",
    ]
    assert "2 passed, 3 skipped" in lines[-1], "pytest's closing line is the last"


def test_a_required_extra_turns_its_skips_into_failures_and_leaves_the_others(suite):
    done = suite(REQUIRE="site,parity")
    assert done.returncode == 1 and "1 failed, 2 passed, 2 skipped" in done.stdout
    assert "REQUIRE=site, yet skipped: no browser" in done.stdout


def test_where_an_extra_is_absent_its_tests_are_skipped_by_their_mark_alone(suite, tmp_path):
    told = "tests/slides/test_b.py::test_deck: the extra site is absent: make setup EXTRAS=site"
    assert told in suite(REQUIRE="", CHROME="nowhere").stdout
    (tmp_path / "package.json").touch()
    assert told in suite(REQUIRE="").stdout, "npm packages are asked for and not installed"


def test_the_quick_loop_leaves_the_slow_ones_out(suite):
    assert "1 deselected" in suite("tests/kernels", "-m", "not slow").stdout
