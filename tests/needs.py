"""What may a test need that a bare machine lacks? It says so by a mark, and only then is it given.

A test that forgets its mark fails on every machine, and not only where the thing is missing: what
it would have found is hidden from all tests without that mark. A test with the mark is skipped
where the thing is absent; REQUIRE=site,root turns every skip of such a test into a failure.
"""

import functools
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from course import doctor

ROOT = Path(__file__).resolve().parent.parent

# mark: the variable that leads to what it needs; CHROME=none hides a Chromium that is on the PATH
VARIABLES = dict(
    site="CHROME",
    data="MINIMAL_DATA",
    official="MINIMAL_OFFICIAL",
    sources="SOURCES",
)
NOWHERE = dict(CHROME="none")  # the others are unset
# mark: the package that this extra brings
PACKAGES = dict(hub="datasets", parity="transformers")
# fixture: the mark without which no test may ask for it
FIXTURES = dict(
    browser="site",
    site="site",
    built="site",
    copies="site",
    data="data",
    as_root="root",
)


def given(name):
    """What a variable held when the tests began; workers ask who started them."""
    return os.environ[f"GIVEN_{name}"]


def on_disk(path):
    return bool(path) and Path(path).is_dir()


def npm_packages():
    return (ROOT / "node_modules").is_dir() or not (ROOT / "package.json").exists()


@functools.cache
def recorded_library():
    """Is the text that most records are of, Python's own library, the one of this Python?"""
    from course import records
    from minimal.data import corpora

    recorded = records.read("ten_seeds_code")["corpus"]
    return corpora.find("stdlib").fingerprint == recorded["fingerprint"]


PRESENT = dict(  # mark: is it here, and what brings it?
    site=(lambda: given("CHROME") and npm_packages(), "make setup EXTRAS=site"),
    hub=(lambda: installed("hub"), "make setup EXTRAS=hub"),
    parity=(lambda: installed("parity"), "make setup EXTRAS=parity"),
    data=(lambda: on_disk(given("MINIMAL_DATA")), "set MINIMAL_DATA to a folder with texts"),
    official=(
        lambda: on_disk(given("MINIMAL_OFFICIAL")),
        "set MINIMAL_OFFICIAL to a folder with checkouts, as tests/model/official.py names them",
    ),
    sources=(
        lambda: on_disk(given("SOURCES")),
        "set SOURCES to a folder with their texts, as tests/lab/test_quotes.py names them",
    ),
    root=(lambda: hasattr(os, "geteuid") and os.geteuid() == 0, "run the tests as root"),
    library=(recorded_library, "a Python with the library that the records are of"),
)


def installed(mark):
    return importlib.util.find_spec(PACKAGES[mark]) is not None


# ---- hiding --------------------------------------------------------------------------------------

HIDDEN = {}  # package: its module, or None where nothing has imported it yet
find_spec = PathFinder.find_spec


def find_what_is_not_hidden(name, *more):
    """In place of Python's own look into its folders: a hidden package is not installed."""
    return None if name.partition(".")[0] in HIDDEN else find_spec(name, *more)


def remember():
    """Once, before tests are collected: what a file reads as it is imported is hidden, too."""
    if not os.environ.get("PYTEST_XDIST_WORKER"):
        for name in VARIABLES.values():
            os.environ[f"GIVEN_{name}"] = os.environ.get(name, "")
        os.environ["GIVEN_CHROME"] = doctor.browser() or ""
    PathFinder.find_spec = staticmethod(find_what_is_not_hidden)
    give(())


def give(marks):
    """What these marks ask for is there, and nothing else of all this."""
    for mark, name in VARIABLES.items():
        value = given(name) if mark in marks else NOWHERE.get(name, "")
        if value:
            os.environ[name] = value
        else:
            os.environ.pop(name, None)
    for mark, name in PACKAGES.items():
        if mark in marks and name in HIDDEN:
            if module := HIDDEN.pop(name):
                sys.modules[name] = module
        elif mark not in marks and name not in HIDDEN:
            HIDDEN[name] = sys.modules.pop(name, None)


def allow(item):
    """Before a test is set up: give it what it asks for, skip it where that is absent, and fail it
    where it takes what it has not asked for."""
    marks = {mark for mark in PRESENT if item.get_closest_marker(mark)}
    for fixture, mark in FIXTURES.items():
        if fixture in item.fixturenames and mark not in marks:
            pytest.fail(f"wanted the mark {mark} on a test that takes the fixture {fixture}")
    give(marks)
    for mark in sorted(marks):
        present, fix = PRESENT[mark]
        if not present():
            pytest.skip(f"{mark} is absent: {fix}; make doctor says what is there")
