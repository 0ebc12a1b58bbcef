"""Is a class of one's own, once it was changed, another run, wherever it was written?"""

import importlib
import linecache
from dataclasses import replace

import pytest
import torch

from minimal.compare.runs import run_key
from minimal.model.foreign import in_words
from minimal.model.plan import Plan, place
from minimal.training.run import Run

MINE = '''
import functools
from minimal.model.values import Own, Source

class Below:
    def twice(self, x):
        return 2 * x

class Mine(Below, Source):
    """Own values, rolled."""

    mark, start = "mix", "zero"
    held = {"b", "a"}
    gain = 0.5

    def __init__(self, far=1, **where):
        super().__init__(**where)
        self.x, self.way = Own(**where), far

    def rows(self, h, at, tape):
        scale = lambda v: 0.25 * v
        return scale(self.share * self.x.rows(h, at, tape).roll(1, 0))

    @property
    def share(self):
        return 3.0

    @staticmethod
    def turned(x):
        return x + 4

    @functools.cache
    def kept(self):
        return 5
'''

CHANGES = {  # one thing that a learner turns into another
    "a constant": (".roll(1, 0)", ".roll(2, 0)"),
    "a function inside": ("0.25 * v", "0.75 * v"),
    "a default": ("far=1", "far=2"),
    "a number of the class": ("gain = 0.5", "gain = 0.7"),
    "a set of the class": ('"a"', '"c"'),
    "a property": ("return 3.0", "return 3.5"),
    "a static method": ("x + 4", "x + 5"),
    "what a decorator holds": ("return 5", "return 6"),
    "what it inherits": ("return 2 * x", "return 3 * x"),
}


def in_a_cell(source, name):
    """A cell's functions have a source, and its classes have none."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    return source


PLACES = dict(cell=in_a_cell, nowhere=lambda source, name: source)


def mine(source, place_of="cell"):
    """The class Mine of this source, which no module holds."""
    name = f"<{place_of} {hash(source)}>"
    held = dict(__name__="of_a_cell")
    exec(compile(PLACES[place_of](source, name), name, "exec"), held)
    return held["Mine"]


def key_of(kind):
    plan = Plan(place(value=kind), name="mine")
    return run_key(Run(plan=plan, size="smoke", vocab=300), "f")


@pytest.mark.parametrize("place_of", PLACES)
@pytest.mark.parametrize("what", CHANGES)
def test_a_class_without_a_source_is_another_run_once_anything_in_it_changed(what, place_of):
    before, after = CHANGES[what]
    assert MINE.count(before) == 1
    changed = MINE.replace(before, after)
    assert key_of(mine(MINE, place_of)) != key_of(mine(changed, place_of))


@pytest.mark.parametrize("place_of", PLACES)
def test_the_same_class_made_again_is_the_same_run(place_of):
    assert key_of(mine(MINE, place_of)) == key_of(mine(MINE, place_of))


def test_a_class_that_inherits_a_changed_one_from_a_file_is_another_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    keys = []
    for name, gain in (("one", 0.5), ("two", 0.7), ("three", 0.5)):
        (tmp_path / f"{name}.py").write_text(MINE.replace("gain = 0.5", f"gain = {gain}"))
        (tmp_path / f"child_{name}.py").write_text(CHILD.format(name))
        keys.append(key_of(importlib.import_module(f"child_{name}").Child))
    assert keys[0] != keys[1] and keys[0] == keys[2]


CHILD = """
import {} as base

class Child(base.Mine):
    mark = "layer"
"""


def test_a_value_is_said_alike_in_every_process():
    thing = object()
    assert in_words([1, {"b": {2, 1}}, thing]) == "(1, dict of (('b', set of ['1', '2'])), object)"


def test_kept_runs_of_this_package_are_found_again(monkeypatch):
    """Their keys as they were when classes of one's own were looked at less closely."""
    monkeypatch.setattr(torch, "__version__", "2.0.0")
    nano = Run(plan="bov", size="nano")
    changes = dict(changes=dict(layers=3), overrides=dict(matrix=dict(lr=0.1)), warmup=0.1)
    keys = {
        "fb9bd9e21bee": Run(plan="bov"),
        "d190db30d40a": nano,
        "aeaa807a0569": replace(nano, recipe="course"),
        "986e281780a7": replace(nano, recipe="modded-open"),
        "8d6a14341a45": replace(nano, **changes),
    }
    assert {key: run_key(run, "f") for key, run in keys.items()} == {key: key for key in keys}
