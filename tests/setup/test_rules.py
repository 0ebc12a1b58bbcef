"""Do the rules of tests/conftest.py hold?

No network, the same seeds, required extras, and a summary that names what was skipped: in one
process, and where workers run the tests and another process has the last word.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from types import SimpleNamespace

import pytest
import torch

from tests import warm, workers

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
ALONE, WORKERS = (), ("-n", "2")
either = pytest.mark.parametrize("how", [ALONE, WORKERS], ids=["alone", "workers"])


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


@pytest.mark.parametrize("words", ["pip download --dest", "uv pip install --no-cache --target"])
def test_a_process_that_would_install_something_finds_no_index(tmp_path, words):
    pytest.importorskip(words.split()[0])  # conda's way has no uv
    words = [sys.executable, "-m", *words.split(), tmp_path, "tqdm"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    told = "No matching distribution", "network was disabled", "Network connectivity is disabled"
    assert done.returncode and any(one in done.stderr for one in told), done.stderr


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
    names = ("conftest.py", "workers.py", "needs.py")
    ours = {name: (ROOT / "tests" / name).read_text() for name in names}
    for name, text in (SUITE | ours).items():
        (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests" / name).write_text(text)

    def run(*arguments, **environment):
        ours = dict(PYTHONPATH=str(ROOT), CHROME=sys.executable, PYTEST_XDIST_WORKER="")
        environment = os.environ | ours | environment
        return warm.run(["-m", "pytest", *arguments], cwd=tmp_path, env=environment)

    return run


@either
def test_the_run_ends_with_seconds_per_folder_and_the_names_of_what_was_skipped(suite, how):
    lines = suite(*how, REQUIRE="").stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("seconds per folder"))
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["kernels", "slides", "all"]
    assert lines[at + 4 : -1] == [
        "skipped: 3",
        "  tests/kernels/test_a.py::test_gpu (2 times): no GPU",
        "  tests/slides/test_b.py::test_deck: no browser",
    ]
    assert "2 passed, 3 skipped" in lines[-1], "pytest's closing line is the last"


@either
def test_a_required_extra_turns_its_skips_into_failures_and_leaves_the_others(suite, how):
    done = suite(*how, REQUIRE="site,parity")
    last = done.stdout.splitlines()[-1]
    assert done.returncode == 1 and "1 failed, 2 passed, 2 skipped" in last
    assert "REQUIRE=site, yet skipped: no browser" in done.stdout


def test_where_an_extra_is_absent_its_tests_are_skipped_by_their_mark_alone(suite, tmp_path):
    told = "tests/slides/test_b.py::test_deck: site is absent: make setup EXTRAS=site"
    assert told in suite(REQUIRE="", CHROME="nowhere").stdout
    (tmp_path / "package.json").touch()
    assert told in suite(REQUIRE="").stdout, "npm packages are asked for and not installed"


TAKES = """import os, sys
import pytest
def test_a_browser():
    from course import doctor
    assert doctor.browser()
def test_texts(): assert os.environ["MINIMAL_DATA"]
def test_a_package_of_an_extra(): import transformers
def test_a_package_that_another_has_imported(): import datasets
@pytest.mark.site
def test_with_its_mark():
    from course import doctor
    assert doctor.browser()
@pytest.mark.data
def test_texts_with_their_mark(data): assert data.is_dir() and data != os.curdir
@pytest.mark.hub
def test_a_package_with_its_mark(): import datasets
@pytest.fixture(scope="session")
def page(browser): pass
@pytest.mark.site
def test_opens_one(page): pass
def test_finds_it_open(page): pass
def test_plays_another_account(as_root): pass
"""
STAND_IN = "class Browser:\n    __enter__ = __exit__ = lambda *_: None\n"


@either
def test_who_forgets_a_mark_fails_where_everything_is_there(suite, tmp_path, how):
    """Each test below that finds what it takes has a mark; in whatever order they come."""
    (tmp_path / "tests/slides/test_b.py").write_text(TAKES)
    packages = tmp_path / "packages"
    for at, text in {
        "datasets.py": "",
        "transformers.py": "",
        "slides/browser.py": STAND_IN,
    }.items():
        (packages / at).parent.mkdir(parents=True, exist_ok=True)
        (packages / at).write_text(text)
    here = dict(
        PYTHONPATH=f"{packages}:{ROOT}", MINIMAL_DATA=str(tmp_path), REQUIRE="site,data,hub"
    )
    for order in ("", "2") if how is ALONE else ("2",):
        done = suite(*how, "tests/slides/test_b.py", ORDER=order, **here)
        ended = dict(re.findall(r"^(?:FAILED|ERROR) \S+::(\w+) - (.*)$", done.stdout, re.M))
        assert ended.keys() == {
            "test_a_browser",
            "test_texts",
            "test_a_package_of_an_extra",
            "test_a_package_that_another_has_imported",
            "test_finds_it_open",
            "test_plays_another_account",
        }, done.stdout
        assert ended["test_plays_another_account"].startswith("Failed: wanted the")
        assert "4 passed" in done.stdout


def test_a_random_order_is_repeated_by_its_seed_and_keeps_files_whole(suite):
    """And what is one walk stays one."""
    orders = {}
    for order in ("", "7", "7", "8"):
        told = suite("--collect-only", "-q", "tests", ORDER=order).stdout
        names = tuple(line for line in told.splitlines() if "::" in line)
        files = [name.partition("::")[0] for name in names]
        assert len(names) == 5 and sorted(files, key=files.index) == files
        orders.setdefault(order, set()).add(names)
    assert len(orders["7"]) == 1 and len(orders[""] | orders["7"] | orders["8"]) > 1
    assert "ORDER=7 repeats it" in suite("-k", "deck", ORDER="7").stdout
    walk = [SimpleNamespace(nodeid=f"{file}::{n}") for file in workers.WALKS for n in range(20)]
    assert workers.shuffled(walk, "7") == walk
    assert all((ROOT / file).exists() for file in workers.WALKS)


def test_the_quick_loop_leaves_the_slow_ones_out(suite):
    assert "1 deselected" in suite("tests/kernels", "-m", "not slow").stdout


# ---- workers -------------------------------------------------------------------------------------

TOLD = """import os, socket
import pytest
@pytest.mark.parametrize('n', [1, 2])
def test_tells(n, note):
    note('where', os.environ['MINIMAL_RUNS'], os.environ['PYTEST_XDIST_WORKER'])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('example.com', 80))
"""


def test_workers_share_their_runs_and_each_file_has_one_worker_whose_notes_arrive(suite, tmp_path):
    for room in ("data", "model"):
        (tmp_path / "tests" / room).mkdir()
        (tmp_path / "tests" / room / f"test_{room}.py").write_text(TOLD)
    done = suite("-n", "2", "tests/data", "tests/model")
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    folder, told = re.search(r"^(.*minimal-runs-.*): (.*)$", done.stdout, re.M).groups()
    assert sorted(told.split(", ")) == ["gw0", "gw0", "gw1", "gw1"]
    assert folder != os.environ["MINIMAL_RUNS"] and not pathlib.Path(folder).exists()


def test_what_shares_something_goes_to_one_worker_and_the_longest_go_first():
    assert workers.unit("tests/data/test_files.py::test_a[x::y]") == "tests/data/test_files.py"
    course = "tests/notebooks/test_course.py::test_a"
    assert workers.unit(course) == workers.unit("tests/slides/test_site.py::test_b[1]")
    assert workers.unit("tests/notebooks/test_sources.py::test_c") != workers.unit(course)
    ids = ["tests/data/test_a.py::test_1", "tests/homework/test_grade.py::test_2", course]
    assert sorted(ids, key=workers.turn) == ids[::-1]
    named = [place for places in workers.TOGETHER.values() for place in places]
    named += [name for name in workers.FIRST if name not in workers.TOGETHER]
    assert [place for place in named if not (ROOT / place).exists()] == []


@pytest.mark.parametrize(
    "cores, gigabytes, number",
    [
        (1, 64.0, 0),
        (2, 16.0, 2),
        (2, 5.0, 2),
        (2, 3.9, 0),
        (16, 12.0, 6),
        (64, 500.0, workers.MOST),
    ],
)
def test_workers_are_as_many_as_cores_if_memory_allows(cores, gigabytes, number):
    """0: one process and no worker."""
    assert workers.fitting(cores, gigabytes) == number


def test_a_container_with_less_memory_than_the_machine_is_noticed(tmp_path):
    (tmp_path / "limit").write_text("1073741824\n")
    assert workers.memory(tmp_path / "limit") == 1.0
    (tmp_path / "limit").write_text("max\n")
    assert workers.memory(tmp_path / "limit") == pytest.approx(workers.memory(tmp_path), rel=0.5)


def test_somebodys_own_number_of_workers_counts(suite):
    assert "3/3 workers" in suite("-n", "auto", PYTEST_XDIST_AUTO_NUM_WORKERS="3").stdout
