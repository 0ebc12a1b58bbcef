"""Do the grids of asked/*.toml name plans that exist, at the sizes and rates that they say?"""

import json
from dataclasses import replace

import pytest
import torch

from course import records
from evidence.lab import quantities, rates, record, runs
from evidence.lab.asked import grids
from evidence.lab.foretold import judged
from minimal.model.config import size
from minimal.model.loss import rows_at_once
from minimal.training.run import Run
from minimal.variants import build, plan_named, skeleton

GRIDS = {name: grid for name, grid in grids().items() if grid.cells}
STANDARD = Run(size="tiny")


def shapes(name):
    """The runs of a grid that differ in shape, one each, with their plans."""
    every = map(record.ready, GRIDS[name].runs())
    return {(str(run.plan), run.size, str(run.config())): run for run in every}.values()


def parameters(run, **more):
    model = skeleton(run.plan, run.size, **run.config() | more)
    return sum(weight.numel() for weight in model.parameters())


def test_every_grid_names_plans_that_exist():
    known = {}
    for name in GRIDS:
        for run in shapes(name):
            key = str(run.plan), run.size, str(run.config())
            known[key] = known.get(key) or skeleton(plan_named(run.plan), run.size, **run.config())
    assert len(known) > 100 and len({run.plan for run in GRIDS["dva_factorial"].runs()}) == 24


def test_a_study_of_a_grid_is_one_of_studies():
    for grid in GRIDS.values():
        assert callable(record.study_of(grid))
    unknown = replace(GRIDS["dose_code"], study="dreams")
    with pytest.raises(ValueError, match="dose_code: wanted a study, got 'dreams'"):
        record.study_of(unknown)


def test_the_scores_of_every_grid_on_a_cpu_have_room_for_a_batch():
    """So their evaluations read as many rows at a time as when they were recorded: a product over
    fewer rows may round otherwise."""
    for name, grid in GRIDS.items():
        for run in shapes(name) if "NVIDIA" not in grid.machine else ():
            config = size(run.size, **run.config())
            room = rows_at_once(config.context, config.vocab, torch.device("cpu"))
            assert run.batch // run.accumulate <= room, run


def test_every_grid_reads_its_loss_at_the_end():
    at_equal_time = "dva_matched"  # its steps are those of the time of others
    names = GRIDS.keys() - {at_equal_time}
    assert all(run.steps % run.evaluate == 0 for name in names for run in shapes(name))


# ---- equal parameters ----------------------------------------------------------------------------


def nearest_width(run, target):
    """Is no other width of the MLP nearer to so many parameters?"""
    hidden = run.changes["hidden"]
    sizes = [abs(parameters(run, hidden=hidden + more) - target) for more in (-1, 0, 1)]
    return min(sizes) == sizes[1]


def changed(name):
    return [run for run in shapes(name) if "hidden" in (run.changes or {})]


AS_LARGE_AS = {  # grid: (the plan as large as which a slim or a widened one is, how many such)
    "parameters": ("standard", 4),
    "frontier_code": ("bov", 1),
    "frontier_places_code": ("standard", 4),
    "widths_code": ("standard", 3),  # at every width
    "why_vocab_code": ("standard", 5),  # at every vocabulary; standard is as large as tables
    **{f"why_text_{text}": ("standard", 1) for text in ("code", "fresh", "novel_shuffled")},
}


@pytest.mark.parametrize("name", AS_LARGE_AS)
def test_a_changed_plan_is_as_large_as_another_to_the_nearest_width(name):
    (other, count), some = AS_LARGE_AS[name], changed(name)
    assert len(some) == count
    for run in some:
        shape = {key: value for key, value in run.changes.items() if key != "hidden"}
        plan = "bov-fixed" if run.plan == other else other
        assert nearest_width(run, parameters(replace(run, plan=plan, changes=shape)))


def test_dva_as_large_as_standard_has_its_parameters_to_one_per_cent():
    for run in shapes("dva_matched"):
        if run.changes:
            assert parameters(run) == pytest.approx(parameters(STANDARD), rel=0.01), run.plan


def test_cells_without_tables_are_as_large_as_standard_and_widened_ones_as_large_as_tables():
    sizes = {(run.plan, run.config().get("hidden")): parameters(run) for run in shapes("dose_code")}
    plain = sizes.pop(("standard", None))
    for hidden, layers in ((416, "8,9,10,11"), (736, "0,1,2,3,4,5,6,7,8,9,10,11")):
        assert sizes.pop(("standard", hidden)) == sizes.pop((f"bov-fixed@{layers}", None))
    assert {*sizes.values()} == {plain}
    tables, wide = map(parameters, shapes("answer_d12_tables"))
    assert tables < wide < 1.005 * tables
    for name in ("content_gradient_code", "who_needs_code"):
        assert {*map(parameters, shapes(name))} == {plain}


# ---- seeds, texts, rates -------------------------------------------------------------------------


@pytest.mark.parametrize("grid", ["dose", "content_gradient", "who_needs", "own_mixture"])
def test_an_answer_is_registered_on_both_texts_with_what_is_expected(grid):
    code, novel = (GRIDS[f"{grid}_{text}"] for text in ("code", "novel"))
    assert not code.exploratory and not novel.exploratory and len(code.expected) > 200
    assert code.cells == novel.cells and code.seeds == novel.seeds and len(code.seeds) == 5
    assert code.run["corpus"] != novel.run["corpus"]


def test_every_run_of_the_noise_floor_is_the_twin_of_a_run_with_ten_seeds():
    for text in ("code", "novel"):
        twins = list(GRIDS[f"ten_seeds_{text}"].runs())
        assert all(run in twins for run in GRIDS[f"noise_{text}"].runs())


def test_grids_that_were_chosen_after_looking_are_marked():
    late = [name for name, grid in GRIDS.items() if grid.exploratory]
    families = ("frontier_early_{}", "frontier_forms_{}", "shares_{}")
    both = [name.format(text) for name in families for text in ("code", "novel")]
    seen = ["why_text_code", "why_text_novel", "why_vocab_code", "why_vocab_novel"]
    assert sorted(late) == sorted(["code", "confound", "parameters", "start", *both, *seen])


TUNED = [name for name, grid in GRIDS.items() if grid.rates in ("tuned", "ten")]


@pytest.mark.parametrize("name", TUNED)
def test_a_tuned_system_has_the_rates_that_the_grids_of_its_text_chose_and_none_of_their_seeds(
    name,
):
    table, grid = runs(), GRIDS[name]
    tried = table[(table.rates == "tried") & (table.text == grid.text)]
    assert not {*grid.seeds} & {*tried.seed}
    for run in shapes(name):
        plan = "standard" if run.changes else run.plan
        assert rates.in_words(run.overrides or None) == rates.chosen(table, grid.text, plan), plan


def test_a_grid_that_tries_rates_has_the_name_by_which_the_choice_finds_it():
    tries = [name for name, grid in GRIDS.items() if grid.rates == "tried"]
    assert tries and all(name.startswith("tuning_") for name in tries)


@pytest.mark.parametrize("text", ["code", "novel"])
def test_rates_half_a_step_finer_lie_beside_the_chosen_and_the_best_of_all_is_taken(text):
    both = rates.means(runs(), text, rates.COARSE), rates.means(runs(), text, rates.FINER)
    for run in shapes(f"fair_finer_{text}"):
        coarse, finer = (means[run.plan].dropna() for means in both)
        best = min((coarse, finer), key=lambda means: means.min()).idxmin()
        assert rates.in_words(run.overrides or None) == best, run.plan
    assert GRIDS[f"fair_finer_{text}"].seeds == GRIDS[f"fair_{text}"].seeds


# ---- a cell in two steps -------------------------------------------------------------------------

ANSWERS = ("dose_code", "content_gradient_code", "who_needs_code")
CELLS = sorted({run.plan for name in ANSWERS for run in GRIDS[name].runs()})


@pytest.mark.parametrize("plan", CELLS)
def test_every_cell_of_an_answer_takes_two_steps(plan):
    """At the twelve layers that its name counts, four wide."""
    torch.manual_seed(0)
    model = build(plan, "smoke", layers=12, width=16, heads=2)
    rate = torch.optim.SGD(model.parameters(), 0.01)
    ids = torch.randint(model.config.vocab, (2, 9))
    for _ in range(2):
        rate.zero_grad()
        loss = model(ids[:, :-1]).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(loss.float(), ids[:, 1:].flatten())
        loss.backward()
        rate.step()
    assert loss.isfinite()


def test_a_grid_is_judged_once_its_last_run_is_there(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(records, "RUNS", tmp_path)
    quantities.quantity.cache_clear()
    grid = GRIDS["upstream_code"]
    rows = [
        dict(grid=grid.name, plan=cell["plan"], seed=seed, corpus="stdlib", steps=500)
        | dict(loss=3 - at / 100 + seed / (1000 + at), commit="none", held_out=None, valid=[])
        for at, cell in enumerate(grid.cells)
        for seed in grid.seeds
    ]
    (tmp_path / "recordings.json").write_text('{"upstream_code": {"topic": "value_path"}}')
    for known in (rows[:-1], rows):
        (tmp_path / "value_path.jsonl").write_text("\n".join(map(json.dumps, known)))
        open_ones = judged(grid.name).to_html().count("not yet recorded")
        waits = known != rows
        assert ("upstream_code: registered, not yet recorded" in capsys.readouterr().out) == waits
        assert (open_ones == len(grid.foretold)) == waits
    quantities.quantity.cache_clear()
