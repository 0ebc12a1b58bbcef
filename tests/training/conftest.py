"""What the tests of this folder share: a text, and a cache of its own for each file."""

import os
import signal

import pytest

from tests.training.toys import TEXT


@pytest.fixture(autouse=True, scope="session")
def ctrl_c_counts():
    """Also where the suite was started in the background, whose processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "animals.txt"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture(autouse=True, scope="module")
def runs(tmp_path_factory):
    old = os.environ.get("MINIMAL_RUNS")
    os.environ["MINIMAL_RUNS"] = str(tmp_path_factory.mktemp("runs"))
    yield
    os.environ.pop("MINIMAL_RUNS") if old is None else os.environ.update(MINIMAL_RUNS=old)
