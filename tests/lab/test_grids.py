"""Do the grids name plans that exist, at the sizes and with the seeds that their comments say?"""

import json
from dataclasses import replace

import pytest
import torch

from evidence.lab.studies import largest_coefficients
from evidence.research import answer, at_best, fair_start, title, why
from evidence.research.grids import ASKED, EXPLORATORY, GRIDS
from minimal.compare.runs import asked_of
from minimal.model.config import size
from minimal.model.loss import rows_at_once
from minimal.training.run import Run
from minimal.variants import build, plan_named, skeleton


def shapes(grid):
    """The runs of a grid that differ in shape, one each."""
    return {(run.plan, run.size, str(run.config())): run for run in grid.runs()}.values()


def parameters(run, **more):
    model = skeleton(run.plan, run.size, **run.config() | more)
    return sum(weight.numel() for weight in model.parameters())


STANDARD = Run(size="tiny")


def test_every_grid_names_plans_that_exist():
    known = {}
    for grid in GRIDS.values():
        for run in shapes(grid):
            key = run.plan, run.size, str(run.config())
            known[key] = known.get(key) or skeleton(plan_named(run.plan), run.size, **run.config())
    assert len({run.plan for run in GRIDS["dva_factorial"].runs()}) == 24


def test_the_scores_of_every_grid_on_a_cpu_have_room_for_a_batch():
    """So their evaluations read as many rows at a time as when they were recorded: a product over
    fewer rows may round otherwise."""
    for grid in GRIDS.values():
        for run in grid.runs() if grid.on != "NVIDIA" else ():
            config = size(run.size, **run.config())
            room = rows_at_once(config.context, config.vocab, torch.device("cpu"))
            assert run.batch // run.accumulate <= room, run


def test_slim_plans_are_as_large_as_standard_to_the_nearest_width():
    slim = {id(run): (run, STANDARD) for run in shapes(GRIDS["parameters"])}
    for run in shapes(GRIDS["widths_code"]):
        if "hidden" in run.changes:
            wide = {name: run.changes[name] for name in ("width", "heads")}
            slim[id(run)] = run, replace(STANDARD, changes=wide)
    for run, standard in slim.values():
        target = parameters(standard)
        sizes = [parameters(run, hidden=run.changes["hidden"] + more) for more in (-1, 0, 1)]
        assert min(sizes, key=lambda size: abs(size - target)) == sizes[1], run
    assert len(slim) == 4 + 3


def test_narrowed_tables_of_the_frontier_have_the_parameters_of_what_they_are_compared_with():
    bov = parameters(Run("bov", size="tiny"))
    for name, target, count in [("frontier", bov, 1), ("frontier_places", parameters(STANDARD), 4)]:
        slim = [run for run in shapes(GRIDS[f"{name}_code"]) if run.changes]
        assert len(slim) == count
        for run in slim:
            sizes = [parameters(run, hidden=run.changes["hidden"] + more) for more in (-1, 0, 1)]
            assert min(sizes, key=lambda size: abs(size - target)) == sizes[1], run
    assert parameters(Run("ngram-small", size="tiny")) == bov


@pytest.mark.parametrize("vocab", why.VOCABS)
def test_tables_and_standard_have_each_others_parameters_at_every_vocabulary(vocab):
    """Standard is widened at each; tables are slim where the MLPs can pay for them."""
    changed = [
        run
        for run in shapes(GRIDS["why_vocab_code"])
        if run.changes and run.config().get("vocab", 1024) == vocab
    ]
    assert {run.plan for run in changed} == {"standard"} | (
        {"bov-fixed"} if vocab < 4096 else set()
    )
    for run in changed:
        other = "standard" if run.plan == "bov-fixed" else "bov-fixed"
        target = parameters(replace(run, plan=other, changes={}))
        sizes = [parameters(run, hidden=run.changes["hidden"] + more) for more in (-1, 0, 1)]
        assert min(sizes, key=lambda size: abs(size - target)) == sizes[1], run
    standard, tables = (
        parameters(Run(plan, size="tiny", vocab=vocab), hidden=256)
        for plan in ("standard", "bov-fixed")
    )
    mlps = 256 * (parameters(Run(size="tiny", vocab=vocab), hidden=257) - standard)
    assert (tables - standard < mlps) == (vocab < 4096)


def test_every_text_has_slim_tables_of_standards_parameters():
    for name in why.CORPUS_OF:
        (slim,) = (run for run in shapes(GRIDS[f"why_text_{name}"]) if run.changes)
        assert (slim.plan, parameters(slim)) == ("bov-fixed", parameters(STANDARD))


def test_dva_as_large_as_standard_has_its_parameters_to_one_per_cent():
    target = parameters(STANDARD)
    for run in shapes(GRIDS["dva_matched"]):
        if run.changes:
            assert parameters(run) == pytest.approx(target, rel=0.01), run.plan


@pytest.mark.parametrize(
    "name, cells, seeds, corpus",
    [
        ("ten_seeds_code", 15, 10, "stdlib"),
        ("ten_seeds_novel", 15, 10, "war-and-peace"),
        ("noise_code", 3, 5, "stdlib"),
        ("noise_novel", 15, 5, "war-and-peace"),
        ("thirteen_rows", 29, 3, "war-and-peace"),
        ("controls_code", 5, 5, "stdlib"),
        ("controls_novel", 3, 5, "war-and-peace"),
        ("gains_code", 14, 5, "stdlib"),
        ("gains_novel", 14, 5, "war-and-peace"),
        ("shares_code", 5, 3, "stdlib"),
        ("shares_novel", 5, 3, "war-and-peace"),
        ("budgets_code", 28, 3, "stdlib"),
        ("budgets_novels", 28, 3, "books"),
        ("widths_code", 15, 3, "stdlib"),
        ("lambdas_long", 3, 3, "books"),
        ("frontier_code", 15, 3, "stdlib"),
        ("frontier_novel", 15, 3, "war-and-peace"),
        ("frontier_places_code", 11, 3, "stdlib"),
        ("frontier_places_novel", 11, 3, "war-and-peace"),
        ("frontier_forms_code", 17, 3, "stdlib"),
        ("frontier_forms_novel", 17, 3, "war-and-peace"),
        ("frontier_early_code", 5, 3, "stdlib"),
        ("frontier_early_novel", 5, 3, "war-and-peace"),
        *((f"why_text_{name}", 4, 3, corpus) for name, corpus in why.CORPUS_OF.items()),
        ("why_vocab_code", 14, 3, "stdlib"),
        ("why_vocab_novel", 14, 3, "war-and-peace"),
    ],
)
def test_the_grids_that_are_prepared_have_fixed_seeds_and_one_text_each(name, cells, seeds, corpus):
    runs = list(GRIDS[name].runs())
    assert len({(str(asked_of(run)), run.plan) for run in runs}) == cells
    assert [run.seed for run in runs] == [seed for seed in range(seeds) for _ in range(cells)]
    assert {run.corpus for run in runs} == {corpus}
    assert all(run.steps % run.evaluate == 0 for run in runs)


def test_every_run_of_the_noise_floor_is_the_twin_of_a_run_with_ten_seeds():
    for text in ("code", "novel"):
        twins = list(GRIDS[f"ten_seeds_{text}"].runs())
        assert all(run in twins for run in GRIDS[f"noise_{text}"].runs())


def test_a_gain_at_its_largest_is_told_whichever_its_sign():
    paths = dict(names=["a.gain", "b.gain"], steps=[[1.0, 0.2], [-1.5, 0.1], [0.1, 0.0]])
    assert largest_coefficients(dict(coefficients=paths)) == {
        "largest": {"a.gain": 1.5, "b.gain": 0.2}
    }


def test_grids_that_were_chosen_after_looking_are_marked():
    kinds = {name: grid.kind for name, grid in GRIDS.items()}
    assert set(kinds.values()) == {ASKED, EXPLORATORY}
    seen = ["why_text_code", "why_text_novel", "why_vocab_code", "why_vocab_novel"]
    early = ["frontier_early_code", "frontier_early_novel", "shares_code", "shares_novel"]
    grew = ["frontier_forms_code", "frontier_forms_novel"]
    assert sorted(name for name, kind in kinds.items() if kind == EXPLORATORY) == sorted(
        ["confound", "parameters", "code", "start", *early, *grew, *seen]
    )


# ---- the grids of the title ----------------------------------------------------------------------

ANSWERS = ("dose", "content_gradient", "who_needs")
CELLS = [f"{grid} {run.plan}" for grid in ANSWERS for run in shapes(GRIDS[f"{grid}_code"])]


def test_content_or_gradient_is_asked_again_for_four_times_as_long_and_of_nothing_else():
    short, long = GRIDS["content_gradient_code"], GRIDS["content_gradient_long_code"]
    assert long.kind == ASKED and len(long.expected) > 200
    first = [run for run in short.runs() if run.seed in (0, 1, 2)]
    assert [replace(run, steps=2000) for run in first] == list(long.runs())


@pytest.mark.parametrize("grid", ANSWERS)
def test_an_answer_is_registered_on_both_texts_with_what_is_expected(grid):
    code, novel = (GRIDS[f"{grid}_{text}"] for text in ("code", "novel"))
    assert code.kind == novel.kind == ASKED and len(code.expected) > 200
    assert [*map(str, code.cells)] == [*map(str, novel.cells)]
    assert code.base.corpus != novel.base.corpus and len(code.seeds) == len(novel.seeds) == 5


@pytest.mark.parametrize("plan", sorted({cell.split()[1] for cell in CELLS}))
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


def test_cells_without_tables_are_as_large_as_standard_and_widened_ones_as_large_as_tables():
    sizes = {}
    for run in shapes(GRIDS["dose_code"]):
        sizes[run.plan, run.config().get("hidden")] = parameters(run)
    plain = sizes.pop(("standard", None))
    for k, hidden in title.WIDENED.items():
        wide = sizes.pop(("standard", hidden))
        assert wide == sizes.pop((title.in_layers("bov-fixed", title.TOP[k]), None))
    assert set(sizes.values()) == {plain}
    tables, wide = (parameters(run) for run in shapes(GRIDS["answer_d12_tables"]))
    assert tables < wide < 1.005 * tables
    for grid in ("content_gradient_code", "who_needs_code"):
        assert {parameters(run) for run in shapes(GRIDS[grid])} == {plain}


@pytest.mark.parametrize("text", ["code", "novel"])
def test_each_system_has_the_rates_that_the_tuning_grid_chose(text):
    best = answer.at_each_choice(text).idxmin()
    for plan, overrides in title.CHOSEN[text].items():
        assert json.loads(best[plan]).get("overrides", {}) == overrides, plan
    assert title.CHOSEN[text].keys() == set(best.index)
    for grid in (f"fair_{text}", f"at_its_best_{text}"):
        assert not set(GRIDS[grid].seeds) & set(GRIDS[f"tuning_{text}"].seeds)


def test_what_passes_of_a_value_is_its_number_or_its_gradient():
    x = torch.randn(2, 3, requires_grad=True)
    passed = {way: passes.PASSES[way](x) for way in title.WAYS}
    assert torch.equal(passed["both"], x) and torch.equal(passed["forward"], x)
    assert not passed["gradient"].any() and not passed["neither"].any()
    assert torch.equal(passed["other"], x.flip(0))
    assert [way for way, y in passed.items() if y.requires_grad] == ["both", "gradient"]


@pytest.mark.parametrize("text", ["code", "novel"])
@pytest.mark.parametrize("plan", at_best.ON_FRESH_SEEDS)
def test_a_system_that_was_tuned_later_has_the_rates_that_its_grid_chose(plan, text):
    question = fair_start.TUNED_LATER[plan].question
    fresh = GRIDS.get(f"{at_best.ON_FRESH_SEEDS[plan].question}_{text}")
    if not fresh:
        pytest.skip("its fresh seeds are not registered")
    chosen = answer.at_each_choice(text, question)[plan].idxmin()
    (cell,) = [cell for cell in fresh.cells if cell["plan"] == plan]
    assert cell["overrides"] == json.loads(chosen).get("overrides", {})
    beside = GRIDS[f"at_its_best_{text}"]
    assert (fresh.seeds, fresh.base) == (beside.seeds, beside.base)


@pytest.mark.parametrize("text", ["code", "novel"])
def test_rates_half_a_step_finer_lie_beside_the_chosen_and_the_best_of_all_is_taken(text):
    tried = answer.at_each_choice(text, "tuning", "tuning_finer").idxmin()
    asked = {run.plan: run.overrides or {} for run in shapes(GRIDS[f"fair_finer_{text}"])}
    for plan, overrides in asked.items():
        assert json.loads(tried[plan])["overrides"] == overrides, plan
        finer = [cell["overrides"] for cell in title.FINER[text] if cell["plan"] == plan]
        rate = title.CHOSEN[text][plan].get("matrix", {}).get("lr", title.RECIPE.rows["matrix"].lr)
        factors = [one["matrix"]["lr"] / rate for one in finer]
        assert factors == pytest.approx([0.5**0.5, 2**0.5]) and overrides in finer
    assert GRIDS[f"fair_finer_{text}"].seeds == GRIDS[f"fair_{text}"].seeds


@pytest.mark.parametrize("text", ["code", "novel"])
def test_the_fair_grid_takes_the_rates_that_the_tuning_grid_chose_and_none_of_its_seeds(text):
    fair, tuning = GRIDS[f"fair_{text}"], GRIDS[f"tuning_{text}"]
    assert not set(fair.seeds) & set(tuning.seeds) and len(fair.seeds) == 10
    assert fair.kind == ASKED and fair.base == tuning.base
    best = answer.at_each_choice(text).idxmin()
    for run in shapes(fair):
        asked = json.loads(best[run.plan]).get("overrides", {})
        assert {role: how["lr"] for role, how in (run.overrides or {}).items()} == {
            role: how["lr"] for role, how in asked.items()
        }
