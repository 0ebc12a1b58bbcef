"""How are the tests spread over the cores? In files, the longest first, by `make test`.

`pytest -n auto` starts as many workers as cores and memory allow, and plain `pytest` none. What
one worker is given at a time is a unit: a file, so that what a file prepares for its tests is
prepared once; or several files that share more than that, a row of TOGETHER. ORDER=7 shuffles them.
"""

import os
import pathlib
import random

import pytest

MOST = 8  # workers: with more, collecting costs more than they win
GIGABYTES = 2  # of memory for a worker, with the notebooks or the browser that it starts

# unit: the files, or folders, that share what is there once
TOGETHER = {
    "the executed course": (  # and the kernel that is forked: it takes six seconds to start
        *(f"tests/notebooks/test_{n}.py" for n in "course questions runner".split()),
        "tests/setup/test_warm.py",
        "tests/slides/",
    ),
    "the spare accounts of this machine": tuple(
        f"tests/homework/test_{name}.py"
        for name in "grade sandbox reports road bad_input handed_in".split()
    ),
}
FIRST = (  # they take longest, so they begin first: no core waits for another at the end
    *TOGETHER,
    "tests/model/test_plans.py",
    "tests/model/test_still.py",
    "tests/lab/test_rented.py",
    "tests/training/test_train.py",
    "tests/setup/test_lab_in_browser.py",
    "tests/notebooks/test_goes_on.py",  # on two cores the executed course has left its runs by now
    "tests/homework/test_turn.py",
    "tests/homework/test_blind.py",
    "tests/homework/test_proofs.py",
    "tests/setup/test_wheel.py",
    "tests/kernels/test_windows.py",
    "tests/model/test_trace.py",
    "tests/model/test_new_variant.py",
    "tests/kernels/test_gpu_bench.py",
    "tests/lab/test_own_class.py",
    "tests/lab/test_speed.py",
    "tests/homework/test_card.py",
    "tests/kernels/test_compiled.py",
    "tests/setup/test_commands.py",
    "tests/setup/test_rules.py",
)


def unit(nodeid):
    """The name of what goes to one worker in one piece with this test."""
    file = nodeid.partition("::")[0]
    for name, places in TOGETHER.items():
        if file.startswith(places):
            return name
    return file


def turn(nodeid):
    """A number to sort by: units of FIRST in its order, then the others as they come."""
    name = unit(nodeid)
    return FIRST.index(name) if name in FIRST else len(FIRST)


WALKS = {  # file: why its tests are one walk, each going on from where the one before stopped
    "tests/setup/test_lab_in_browser.py": "a learner opens JupyterLab, runs 00, answers in 01",
}


def shuffled(items, seed):
    """Files in an order that follows from the seed, and so the tests within each; whole files stay
    together, since what a file prepares is prepared once."""
    chance, files = random.Random(seed), {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    for file, tests in files.items():
        if file not in WALKS:
            chance.shuffle(tests)
    groups = list(files.values())
    chance.shuffle(groups)
    return [item for tests in groups for item in tests]


# ---- how many ------------------------------------------------------------------------------------


def cores():
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory(limit=pathlib.Path("/sys/fs/cgroup/memory.max")):
    """Gigabytes that are free here, or that a container may have if that is less."""
    import psutil

    free = psutil.virtual_memory().available
    try:
        free = min(free, int(limit.read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    return free / 2**30


def fitting(cores, gigabytes):
    """How many workers; 0 where a second one has no room: then there is one process, without."""
    number = min(cores, int(gigabytes / GIGABYTES), MOST)
    return number if number > 1 else 0


# ---- what pytest-xdist asks ----------------------------------------------------------------------


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    if not os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS"):  # somebody's own number
        return fitting(cores(), memory())


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") != "load":  # somebody's own choice
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return unit(nodeid)

    config.option.loadscopereorder = False  # our order holds
    return Units(config, log)


def pytest_report_header():
    if seed := os.environ.get("ORDER"):
        return f"order: files, and tests within them, at random; ORDER={seed} repeats it"


def pytest_collection_modifyitems(config, items):
    if seed := os.environ.get("ORDER"):
        items[:] = shuffled(items, seed)
    if hasattr(config, "workerinput"):  # a worker's; one process alone goes folder by folder
        items.sort(key=lambda item: turn(item.nodeid))
