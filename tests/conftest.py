"""What holds for every test: one thread, the same seeds, no network, a cache of its own for runs.

And what the run says at its end: what tests have noted, seconds per folder (summed over workers:
see workers.py), and which tests were skipped and why.

Marks: `slow` (left out of `make check`), and those of needs.py, for what a bare machine lacks.
"""

import collections
import gc
import os
import pathlib
import random
import socket
import sys
import tempfile
import time

import pytest

if sys.version_info < (3, 12):  # where something of Python's distutils may be loaded before the
    os.environ.setdefault("SETUPTOOLS_USE_DISTUTILS", "stdlib")  # compiler asks for setuptools'

from tests import needs
from tests.workers import (  # noqa: F401 pytest finds its hooks here
    pytest_collection_modifyitems,
    pytest_report_header,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)

# Seconds a folder may take: what it took in a whole run on two cores, rounded up, so that over its
# budget means slower than it was; the three short ones have some room.
BUDGET = dict(
    setup=110,
    model=195,
    training=50,
    data=30,
    kernels=110,
    encoder=25,
    tasks=25,
    lab=110,
    homework=220,
    notebooks=300,
    slides=360,
)
REQUIRED = set(filter(None, os.environ.get("REQUIRE", "").split(",")))

# Before torch is imported, and inherited by every process that a test starts. One thread: tensors
# here are so small that a second one gains nothing on idle cores, and on busy ones waiting for it
# cost five times the time. Workers share the runs of the process that started them.
if not os.environ.get("PYTEST_XDIST_WORKER"):
    RUNS = tempfile.TemporaryDirectory(prefix="minimal-runs-")
    os.environ["MINIMAL_RUNS"] = RUNS.name
os.environ.update(
    OMP_NUM_THREADS="1",
    MKL_NUM_THREADS="1",
    TORCHINDUCTOR_COMPILE_THREADS="1",  # with more it starts processes that import torch
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    PIP_NO_INDEX="1",  # nor does a process that a test starts set anything up
    UV_OFFLINE="1",
    NPM_CONFIG_OFFLINE="true",
)
if sys.platform == "linux":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")


# No network: a connection that leaves this machine is refused at once, with the same kind of error
# as a cut cable.

LOCAL = {"localhost", "ip6-localhost", "", "0.0.0.0", "::", "::1", socket.gethostname(), None}
connect, connect_ex, sendto = socket.socket.connect, socket.socket.connect_ex, socket.socket.sendto
getaddrinfo = socket.getaddrinfo


def refuse_strangers(host):
    name = host.decode() if isinstance(host, bytes) else host
    if name not in LOCAL and not str(name).startswith("127."):
        raise ConnectionRefusedError(
            f"tests run without the network: something tried to reach {name}"
        )


def guarded(call, address_at):
    def guard(self, *arguments):
        if self.family in (socket.AF_INET, socket.AF_INET6):
            refuse_strangers(arguments[address_at][0])
        return call(self, *arguments)

    return guard


def guarded_getaddrinfo(host, *arguments, **options):
    refuse_strangers(host)
    return getaddrinfo(host, *arguments, **options)


socket.socket.connect, socket.socket.connect_ex = guarded(connect, 0), guarded(connect_ex, 0)
socket.socket.sendto, socket.getaddrinfo = guarded(sendto, -1), guarded_getaddrinfo


@pytest.fixture(autouse=True)
def same_seeds_every_time():
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def nothing_is_left_for_the_next():
    """Tests pass in any order: a plan or a place that one leaves would be there for some others."""
    variants = sys.modules.get("minimal.variants")
    place, plans = os.getcwd(), variants and list(variants.PLANS)
    yield
    assert os.getcwd() == place, "wanted the working folder as it was: monkeypatch.chdir resets it"
    assert not variants or list(variants.PLANS) == plans, "wanted PLANS as before: take yours out"


@pytest.fixture
def own_runs(tmp_path):
    """A folder for the runs of one test alone, over the corpora that all tests share: to prepare
    the standard library takes five seconds."""
    corpora = pathlib.Path(os.environ["MINIMAL_RUNS"], "data")
    corpora.mkdir(exist_ok=True)
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "data").symlink_to(corpora, target_is_directory=True)
    return folder


# What a bare machine lacks: given by a mark, skipped where absent, failed where required.

needs.remember()


def pytest_runtest_setup(item):
    needs.allow(item)


@pytest.fixture(scope="session")
def browser():
    """A Chromium, one for all; for tests with the mark `site`."""
    from slides.browser import Browser

    with Browser() as one:
        yield one


@pytest.fixture
def data():
    """The folder MINIMAL_DATA, with texts and tasks; for tests with the mark of this name."""
    return pathlib.Path(os.environ["MINIMAL_DATA"])


@pytest.fixture
def as_root():
    """We are root, and may play other accounts; for tests with the mark `root`."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    needed = [mark for mark in needs.PRESENT if mark in REQUIRED and item.get_closest_marker(mark)]
    if report.skipped and needed and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = (
            "failed",
            f"REQUIRE={needed[0]}, yet skipped: {reason(report)}",
        )
    return report


# The end of the run. Workers send reports; what a test wants said there travels with its report.

gc.disable()  # until the tests are collected: a quarter of that time went into finding no garbage
clock = dict(start=time.perf_counter(), collected=0.0)
seconds, skips = collections.Counter(), collections.Counter()
notes = collections.defaultdict(dict)


@pytest.fixture
def note(record_property):
    """note(heading, row, cell): below this heading a line `row: cell, another cell`."""

    def say(heading, row, cell=""):
        record_property("note", (heading, row, cell))

    return say


def reason(report):
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return why.removeprefix("Skipped: ")


def pytest_collection_finish():
    clock["collected"] = time.perf_counter() - clock["start"]
    gc.enable()
    gc.collect()
    gc.freeze()  # torch and five thousand tests stay: no later collection looks through them


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished():
    pytest_collection_finish()


def pytest_runtest_logreport(report):
    parts = report.nodeid.split("/")
    seconds[parts[1] if len(parts) > 2 else "."] += report.duration
    note_skip(report)
    if report.when == "call":
        for name, value in report.user_properties:
            if name == "note":
                heading, row, cell = value
                notes[heading].setdefault(row, []).append(cell)


def pytest_collectreport(report):
    note_skip(report)


def note_skip(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        skips[report.nodeid.partition("[")[0], reason(report)] += 1


def pytest_terminal_summary(terminalreporter):
    say = terminalreporter.write_line
    for heading, rows in notes.items():
        terminalreporter.section(heading)
        for row, cells in sorted(rows.items()):
            told = ", ".join(filter(None, cells))
            say(f"{row}: {told}" if told else row)
    say(f"\nseconds per folder (after {clock['collected']:.1f} of collecting)")
    for folder, spent in sorted(seconds.items()):
        late = f"  over its budget of {BUDGET[folder]}" if spent > BUDGET.get(folder, spent) else ""
        say(f"  {folder:<11}{spent:7.1f}{late}")
    say(f"  {'all':<11}{seconds.total():7.1f}")
    say(f"skipped: {skips.total() or 'nothing'}")
    for (name, why), times in sorted(skips.items()):
        say(f"  {name}{f' ({times} times)' if times > 1 else ''}: {why}")
