"""Is a class of one's own, once it was changed, another run, wherever it was written?"""

import importlib
import json
import linecache
from dataclasses import field, fields, make_dataclass, replace
from types import SimpleNamespace

import pytest
import torch

from minimal.compare import comparison, runs
from minimal.compare.budgets import MATCH
from minimal.compare.comparison import by_name, compare
from minimal.compare.runs import run_key
from minimal.data import corpora, results
from minimal.model.config import Config
from minimal.model.foreign import in_words
from minimal.model.plan import Plan, place
from minimal.model.values import Mix, Own
from minimal.training.run import Run
from tests.training.toys import TEXT

MINE = '''
import functools
from minimal.model.values import Own, Source

FACTOR, EVERY = 1.5, []

def outside(x):
    return inner_of_outside(x) + 6

@functools.cache
def inner_of_outside(x):
    EVERY.append(7)
    return x * FACTOR

class Helper:
    def help(self, x):
        return x + 8

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
        return Helper().help(outside(x + 4))

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
    "a function that it uses": ("+ 6", "+ 9"),
    "a function that this one uses": ("EVERY.append(7)", "pass"),
    "a number that this one uses": ("FACTOR, EVERY = 1.5", "FACTOR, EVERY = 1.25"),
    "a class that it uses": ("x + 8", "x + 9"),
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


def test_a_list_that_fills_while_a_model_runs_makes_no_other_run():
    assert key_of(mine(MINE)) == key_of(mine(MINE.replace("1.5, []", "1.5, [7]")))


@pytest.mark.parametrize("before, after", [("gain = 0.5", "gain = 0.7"), ("1.5", "1.25")])
def test_a_class_that_inherits_a_changed_one_from_a_file_is_another_run(
    tmp_path, monkeypatch, before, after
):
    monkeypatch.syspath_prepend(tmp_path)
    keys = []
    for file, source in (("one", MINE), ("two", MINE.replace(before, after)), ("three", MINE)):
        name = f"{file}_{before[0]}"  # a module is imported once
        (tmp_path / f"{name}.py").write_text(source)
        (tmp_path / f"child_{name}.py").write_text(CHILD.format(name))
        keys.append(key_of(importlib.import_module(f"child_{name}").Child))
    assert keys[0] != keys[1] and keys[0] == keys[2]


CHILD = """
import {} as base

class Child(base.Mine):
    mark = "layer"
"""


# ---- comparisons of plans of one's own -----------------------------------------------------------


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """ask(plans, …) compares them at smoke scale: {plan: mean loss}."""
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "runs"))
    (tmp_path / "text.txt").write_text(TEXT)
    text = str(tmp_path / "text.txt")
    small = dict(match="steps", budget=2, seeds=(0,), size="smoke", corpus=text, batch=4, vocab=300)

    def compared(*plans, **more):
        return {row["plan"]: row["mean"] for row in compare([*plans], **small | more)}

    return compared


def scaled(gain):
    """A plan of one's own: values times a gain that stands in a class of one name."""
    source = MINE.replace("return 3.0", f"return {gain}")
    return Plan(place(value=mine(source)), name="mine")


def test_a_comparison_of_a_class_that_was_changed_is_made_anew(ask):
    before, after = ask(scaled(3.0)), ask(scaled(0.0))
    assert before["standard"] == after["standard"] and before["mine"] != after["mine"]
    assert ask(scaled(3.0)) == before


def test_a_file_does_not_go_on_with_a_class_that_was_changed(ask, tmp_path, monkeypatch):
    out = str(tmp_path / "mine.json")
    before = ask(scaled(3.0), out=out)
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "record", None)  # it is said before anything is trained
        with pytest.raises(ValueError, match="another comparison .code of mine: .*another --out"):
            ask(scaled(0.0), out=out)
        with pytest.raises(ValueError, match="another comparison .code of mine: .*another --out"):
            ask(Plan(place(value=Own), name="mine"), out=out)
    assert ask(scaled(3.0), out=out, seeds=(0,)) == before


def test_rows_of_the_package_say_nothing_of_code_and_go_on(ask, tmp_path):
    out = str(tmp_path / "mine.json")
    ask("gqa", out=out)
    rows = results.read(out)["rows"]
    assert [row["plan"] for row in rows] == ["standard", "gqa"]
    assert not any("code" in row for row in rows)
    assert ask("gqa", scaled(3.0), out=out).keys() == {"standard", "gqa", "mine"}
    assert results.read(out)["rows"][:2] == rows


def sought(path, make):
    """In place of `once`: which file would hold this comparison?"""
    raise LookupError(path.name)


def test_a_comparison_on_a_text_that_was_changed_is_another(ask, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "once", sought)
    names = []
    for text in (TEXT, TEXT.replace("moon", "noon"), TEXT):
        (tmp_path / "text.txt").write_text(text)
        with pytest.raises(LookupError) as told:
            ask("gqa")
        names.append(str(told.value))
    assert names[0] != names[1] and names[0] == names[2]


def test_a_whole_file_is_not_shown_for_a_text_that_was_changed(ask, tmp_path, monkeypatch):
    out = tmp_path / "mine.json"
    ask(out=str(out))
    before = out.read_bytes()
    (tmp_path / "text.txt").write_text(TEXT.replace("moon", "noon"))
    monkeypatch.setattr(comparison, "once", None)  # it is said before anything is measured
    with pytest.raises(ValueError, match="mine.json holds runs on corpus text .*; give it a file"):
        ask(out=str(out))
    assert out.read_bytes() == before


@pytest.mark.parametrize(
    "other, told",
    [
        (dict(batch=8), "batch: 4 there, 8 here"),
        (dict(vocab=320), "vocab: 300 there, 320 here"),
        (dict(size="nano"), "size: smoke there, nano here"),
        (dict(corpus="stdlib"), "corpus: .*text.txt there, stdlib here"),
    ],
)
def test_a_file_does_not_go_on_with_another_comparison(ask, tmp_path, monkeypatch, other, told):
    out = str(tmp_path / "mine.json")
    before = ask("gqa", out=out)
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "once", None)  # it is said before anything is measured
        with pytest.raises(ValueError, match=f"another comparison .{told}.: name another --out"):
            ask("gqa", out=out, **other)
    assert ask("gqa", out=out) == before, "the file is as it was"


def test_a_file_whose_rows_are_no_runs_is_refused_in_a_sentence(ask, tmp_path):
    out = tmp_path / "mine.json"
    ask("gqa", out=str(out))
    held = results.read(out)
    out.write_text(json.dumps(held | dict(rows=[dict(plan="gqa", loss=1.0)])))
    with pytest.raises(
        ValueError, match="rows without size, seed, steps, asked, which are no runs"
    ):
        ask("gqa", out=str(out))


def test_a_file_does_not_go_on_where_a_second_measurement_gave_other_steps(
    ask, tmp_path, monkeypatch
):
    """Among other plans time is measured anew."""
    steps, out = iter([2, 3, 4, 5, 6]), str(tmp_path / "mine.json")
    monkeypatch.setitem(MATCH, "time", lambda run, budget: replace(run, steps=next(steps)))
    ask("gqa", match="time", out=out)
    with pytest.raises(ValueError, match="another comparison .steps: 2 there, 4 here.: name ano"):
        ask("gqa", "bov", match="time", out=out)


def test_two_plans_of_one_name_are_refused_with_a_way_to_name_one():
    own, other = Plan(place(value=Own)), Plan(place(value=Mix))
    named_so = Plan(place(value=Own), name="standard")
    told = "wanted a name for each plan, got two plans named '{}': name yours as in Plan"
    for plans, name in (([own, other], "own"), ([named_so], "standard"), (["own", own], "own")):
        with pytest.raises(ValueError, match=told.format(name)):
            compare(plans)


def test_a_measure_that_nobody_knows_is_answered_with_those_that_are_known():
    with pytest.raises(ValueError, match="match: wanted one of steps, tokens, .*, got 'step'"):
        compare(["bov"], match="step")


def test_one_plan_may_be_named_twice_and_be_the_baseline_by_its_name():
    own = Plan(place(value=Own), name="mine")
    assert by_name("mine", ["bov", own, own]) == dict(mine=own, bov="bov")
    assert [*by_name("mine", ["bov", own])] == ["mine", "bov"], "the baseline is the first"
    assert by_name("dva/ffn", ["bov", "dva/ffn"]) == {"dva/ffn": "dva/ffn", "bov": "bov"}
    assert by_name("standard", [own]) == dict(standard="standard", mine=own)
    with pytest.raises(ValueError, match="unknown plan 'nobody'"):
        compare([own], baseline="nobody")


def test_comparisons_of_the_package_are_found_again(ask, monkeypatch):
    """On one text their files have one name, on every machine."""
    monkeypatch.setattr(comparison, "once", sought)
    monkeypatch.setattr(corpora, "find", lambda name: SimpleNamespace(name=name, fingerprint="f"))
    with pytest.raises(LookupError, match="^de13e9c2ba24.de13e9c2ba24.cells$"):
        compare(["bov", "row13"])


# ---- words ---------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("kind", [Run, Config])
def test_an_option_more_loses_no_kept_run_and_tells_runs_apart_where_it_is_asked_for(
    kind, monkeypatch
):
    """Run and Config of tomorrow, with one option between those of today."""
    nano = Run(plan="bov", size="nano")
    before = run_key(nano, "f")
    asked = {"Run": "asked", "Config": "stored"}[kind.__name__]
    today, option = getattr(kind, asked), dict(tomorrow=0.5)
    more = [("tomorrow", float, field(default=0.5))]
    later = make_dataclass(kind.__name__, more, bases=(kind,), frozen=True)
    monkeypatch.setattr(kind, asked, lambda self: option | today(self))
    known = {kind: later}
    monkeypatch.setattr(runs, "fields", lambda which: fields(known.get(which, which)))
    assert run_key(nano, "f") == before
    option["tomorrow"] = 0.7
    assert run_key(nano, "f") != before
