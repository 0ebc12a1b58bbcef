"""Do doors of our own begin as standard attention, learn apart or together, and decode?"""

import pytest
import torch

from evidence.research import doors, studies
from evidence.research.grids import GRIDS
from minimal.compare import runs
from minimal.data import results
from minimal.model.cache import Cache
from minimal.training.run import Run
from minimal.variants import build

SIZE = dict(layers=4, width=16, heads=2)
EACH = pytest.mark.parametrize("name", doors.MIXES)


def model(plan, awake=False):
    made = build(plan, "smoke", 0, **SIZE)
    if awake:
        random = torch.Generator().manual_seed(1)
        for weight in made.parameters():
            weight.data += 0.2 * torch.randn(weight.shape, generator=random)
    return made.eval()


def some(count=2, length=9):
    return torch.randint(100, (count, length), generator=torch.Generator().manual_seed(0))


@EACH
def test_the_start_is_standard_attention(name):
    plain, ours = model("standard"), model(doors.MIXES[name])
    for made in (plain, ours):
        for block in made.blocks:
            block.attention.out.weight.data.fill_(0.03)
    assert torch.allclose(plain(some()), ours(some()), atol=1e-5)


@EACH
def test_what_is_learned_is_counted_once(name):
    more = {
        name: sum(w.numel() for w in model(plan).parameters()) for name, plan in doors.MIXES.items()
    }
    plain = sum(w.numel() for w in model("standard").parameters())
    each = dict(zip(doors.MIXES, (2, 6, 16, 48)))
    assert more[name] - plain == 4 * each[name]


@EACH
def test_decode_equals_forward(name):
    made, ids = model(doors.MIXES[name], awake=True), some()
    whole = made(ids)
    cache = Cache()
    parts = [made(ids[:, :5], cache=cache)]
    parts += [made(ids[:, at : at + 1], cache=cache) for at in range(5, 9)]
    assert torch.allclose(torch.cat(parts, 1), whole, atol=1e-4)


def test_apart_each_door_has_its_own_mixture_and_together_one():
    together = model(doors.MIXES["coef-shared"], awake=True).blocks[1].attention
    own = model(doors.MIXES["coef-apart"], awake=True).blocks[1].attention
    found = [[d.mixture.b().item() for d in (x.query, x.key, x.value)] for x in (together, own)]
    assert len(set(found[0])) == 1 and len(set(found[1])) == 3


def test_what_was_mixed_is_told_by_door_and_layer():
    mixed = doors.mixtures(model(doors.MIXES["depth-apart"], awake=True), some())["mixed"]
    assert set(mixed) == {"q", "k", "v"}
    for by_layer in mixed.values():
        assert [len(shares) for shares in by_layer] == [1, 2, 3, 4]
        assert all(sum(shares) == pytest.approx(1, abs=0.001) for shares in by_layer)
    weights = doors.mixtures(model(doors.MIXES["coef-apart"]), some())["mixed"]
    assert weights["v"] == [0.0] * 4 and doors.mixtures(model("standard"), some()) == {}


def test_a_run_of_a_plan_of_our_own_is_recorded_whole(tmp_path, monkeypatch):
    monkeypatch.setenv("MINIMAL_RUNS", str(tmp_path / "runs"))
    (tmp_path / "text.txt").write_text("the cat sees a river, and the dog hears rain. " * 3000)
    smoke = dict(size="smoke", vocab=270, context=32, batch=4, rows=8, steps=4, evaluate=2)
    base = Run(corpus=str(tmp_path / "text.txt"), **smoke)
    cells = [cell for cell in doors.CELLS if str(cell["plan"]) in ("coef-apart", "depth-apart")]
    grid = runs.Grid("a few steps", cells, seeds=(0,), base=base, also=studies.own_mixture)
    assert runs.record(grid, tmp_path / "few.json", "a test") == (0, [])
    for row in results.read(tmp_path / "few.json")["rows"]:
        assert set(row["mixed"]) == {"q", "k", "v"} and row["held_out"]
    assert runs.missing_runs(grid, tmp_path / "few.json") == []


def test_the_grid_is_registered_on_both_texts():
    for text in ("code", "novel"):
        grid = GRIDS[f"own_mixture_{text}"]
        assert len(grid.expected) > 200 and len(list(grid.runs())) == 25
        names = [str(run.plan) for run in grid.runs()][:5]
        assert names == ["standard", *doors.MIXES]
